/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Attribute objects of queue pairs: which values the setters accept and refuse, and
 * what the getters return.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "host/doca_verbs.h"
#include "../../qp/verbs/attr.h"

static doca_verbs_qp_attr_t *attr;
static doca_verbs_qp_init_attr_t *init;

static void open_attrs(void)
{
	cr_assert_eq(doca_verbs_qp_attr_create(&attr), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_init_attr_create(&init), DOCA_SUCCESS);
}

static void close_attrs(void)
{
	cr_assert_eq(doca_verbs_qp_attr_destroy(attr), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_init_attr_destroy(init), DOCA_SUCCESS);
}

TestSuite(attr, .init = open_attrs, .fini = close_attrs);

Test(attr, starts_as_zero)
{
	static const struct doca_verbs_qp_attr zero;

	cr_assert_eq(memcmp(attr, &zero, sizeof(zero)), 0);
}

Test(attr, refuses_values_wider_than_their_field)
{
	cr_assert_eq(doca_verbs_qp_attr_set_dest_qp_num(attr, 1u << 24), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(doca_verbs_qp_attr_set_dest_qp_num(attr, 0xffffff), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_attr_set_retry_cnt(attr, 8), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(doca_verbs_qp_attr_set_rnr_retry(attr, 8), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(doca_verbs_qp_attr_set_ack_timeout(attr, 32), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(doca_verbs_qp_attr_set_min_rnr_timer(attr, 32), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(doca_verbs_qp_attr_set_port_num(attr, 0), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(doca_verbs_qp_attr_set_path_mtu(attr, DOCA_VERBS_MTU_SIZE_RAW_ETHERNET),
		     DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(doca_verbs_qp_init_attr_set_user_index(init, 1u << 24),
		     DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(doca_verbs_qp_init_attr_set_core_direct_master(init, 2),
		     DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(doca_verbs_qp_init_attr_set_qp_type(init, 2), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(attr->retry_cnt, 0, "a refused value was stored");
}

Test(attr, getters_return_what_was_set)
{
	enum doca_verbs_qp_send_dbr_mode mode;
	enum doca_verbs_qp_ordering_semantic order;
	enum doca_verbs_qp_state state;
	bool emulate = false;

	doca_verbs_qp_init_attr_set_send_dbr_mode(init, DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT);
	doca_verbs_qp_init_attr_set_emulate_no_dbr_ext(init, true);
	doca_verbs_qp_init_attr_set_ordering_semantic(init, DOCA_VERBS_QP_ORDERING_SEMANTIC_OOO_RW);
	doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_RTR);
	doca_verbs_qp_attr_set_current_state(attr, DOCA_VERBS_QP_STATE_INIT);
	cr_assert_eq(doca_verbs_qp_init_attr_get_send_dbr_mode(init, &mode), DOCA_SUCCESS);
	cr_assert_eq(mode, DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT);
	cr_assert_eq(doca_verbs_qp_init_attr_get_emulate_no_dbr_ext(init, &emulate), DOCA_SUCCESS);
	cr_assert(emulate);
	cr_assert_eq(doca_verbs_qp_init_attr_get_ordering_semantic(init, &order), DOCA_SUCCESS);
	cr_assert_eq(order, DOCA_VERBS_QP_ORDERING_SEMANTIC_OOO_RW);
	cr_assert_eq(doca_verbs_qp_attr_get_next_state(attr), DOCA_VERBS_QP_STATE_RTR);
	cr_assert_eq(doca_verbs_qp_attr_get_current_state(attr, &state), DOCA_SUCCESS);
	cr_assert_eq(state, DOCA_VERBS_QP_STATE_INIT);
}

Test(attr, null_objects_are_refused)
{
	cr_assert_eq(doca_verbs_qp_attr_set_rq_psn(NULL, 1), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(doca_verbs_qp_attr_set_ah_attr(attr, NULL), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(doca_verbs_qp_init_attr_set_sq_wr(NULL, 1), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(doca_verbs_qp_attr_create(NULL), DOCA_ERROR_INVALID_VALUE);
}
