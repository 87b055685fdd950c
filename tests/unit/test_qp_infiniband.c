/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Paths on an InfiniBand port: by LID, with and without GRH, and their fields in
 * the QP context of the firmware.
 */
/* softnic-run: --link-layer infiniband */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../../qp/verbs/qp.h"
#include "../lib/e2e.h"

#define A(name) DOCA_VERBS_QP_ATTR_##name
#define S(name) DOCA_VERBS_QP_STATE_##name

static struct e2e_nic nic;
static struct e2e_qp q;
static struct ibv_port_attr port;
static doca_verbs_qp_attr_t *attr;
static doca_verbs_ah_attr_t *ah;

static void open_all(void)
{
	struct doca_verbs_gid gid;

	e2e_open(&nic);
	e2e_qp_open(&nic, &q, E2E_DB, 16);
	cr_assert_eq(ibv_query_port(nic.ctx, 1, &port), 0);
	cr_assert_eq(port.link_layer, IBV_LINK_LAYER_INFINIBAND);
	cr_assert(port.lid && port.lid < 0xc000);
	memcpy(gid.raw, nic.gid.raw, 16);
	cr_assert_eq(doca_verbs_ah_attr_create(nic.dev, &ah), DOCA_SUCCESS);
	doca_verbs_ah_attr_set_gid(ah, gid);
	doca_verbs_ah_attr_set_dlid(ah, port.lid);
	doca_verbs_ah_attr_set_sl(ah, 3);
	cr_assert_eq(doca_verbs_qp_attr_create(&attr), DOCA_SUCCESS);
	doca_verbs_qp_attr_set_port_num(attr, 1);
	doca_verbs_qp_attr_set_dest_qp_num(attr, q.qpn);
	doca_verbs_qp_attr_set_path_mtu(attr, DOCA_VERBS_MTU_SIZE_1K_BYTES);
}

static void close_all(void)
{
	doca_verbs_qp_attr_destroy(attr);
	doca_verbs_ah_attr_destroy(ah);
	e2e_qp_close(&q);
	e2e_close(&nic);
}

TestSuite(qp_infiniband, .init = open_all, .fini = close_all);

static void expect_query(enum doca_verbs_addr_type type)
{
	doca_verbs_qp_init_attr_t *init;
	doca_verbs_qp_attr_t *got;

	cr_assert_eq(doca_verbs_qp_attr_create(&got), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_init_attr_create(&init), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_query(q.hl->qp, got, init, NULL), DOCA_SUCCESS);
	cr_expect_eq(got->ah.addr_type, type);
	cr_expect_eq(got->ah.dlid, port.lid);
	cr_expect_eq(got->ah.sl, 3);
	doca_verbs_qp_attr_destroy(got);
	doca_verbs_qp_init_attr_destroy(init);
}

/* Moves the QP to RTR with this address type. On success, path receives the firmware's path. */
static doca_error_t connect_by(enum doca_verbs_addr_type type, uint8_t path[PRM_ADS_LEN])
{
	uint8_t out[PRM_QUERY_QP_OUT_LEN];
	enum doca_verbs_qp_state st;
	doca_error_t err;

	doca_verbs_ah_attr_set_addr_type(ah, type);
	doca_verbs_qp_attr_set_ah_attr(attr, ah);
	doca_verbs_qp_attr_set_next_state(attr, S(INIT));
	cr_assert_eq(doca_verbs_qp_modify(q.hl->qp, attr,
					  A(NEXT_STATE) | A(PKEY_INDEX) | A(PORT_NUM) |
						  A(ALLOW_REMOTE_WRITE) | A(ALLOW_REMOTE_READ)),
		     DOCA_SUCCESS);
	doca_verbs_qp_attr_set_next_state(attr, S(RTR));
	err = doca_verbs_qp_modify(q.hl->qp, attr,
				   A(NEXT_STATE) | A(RQ_PSN) | A(DEST_QP_NUM) | A(PATH_MTU) |
					   A(AH_ATTR) | A(MIN_RNR_TIMER));
	if (err == DOCA_SUCCESS) {
		expect_query(type);
		cr_assert_eq(gdk_qp_query_state(q.hl->qp, out, &st), DOCA_SUCCESS);
		memcpy(path, out + PRM_QUERY_QP_QPC_AT + PRM_QPC_PATH_AT, PRM_ADS_LEN);
	}
	return err;
}

Test(qp_infiniband, path_by_lid)
{
	uint8_t path[PRM_ADS_LEN];

	cr_assert_eq(connect_by(DOCA_VERBS_ADDR_TYPE_IB_NO_GRH, path), DOCA_SUCCESS);
	cr_assert_eq(prm_get(path, PRM_ADS_RLID), port.lid);
	cr_assert_eq(prm_get(path, PRM_ADS_GRH), 0);
	cr_assert_eq(prm_get(path, PRM_ADS_SL), 3);
}

Test(qp_infiniband, path_by_lid_and_gid)
{
	uint8_t path[PRM_ADS_LEN];

	cr_assert_eq(connect_by(DOCA_VERBS_ADDR_TYPE_IB_GRH, path), DOCA_SUCCESS);
	cr_assert_eq(prm_get(path, PRM_ADS_RLID), port.lid);
	cr_assert_eq(prm_get(path, PRM_ADS_GRH), 1);
	cr_assert_arr_eq(path + PRM_ADS_RGID_AT, nic.gid.raw, 16);
}

Test(qp_infiniband, ip_addresses_are_refused)
{
	uint8_t path[PRM_ADS_LEN];

	cr_assert_eq(connect_by(DOCA_VERBS_ADDR_TYPE_IPv4, path), DOCA_ERROR_INVALID_VALUE);
}

Test(qp_infiniband, lid_0_is_refused)
{
	uint8_t path[PRM_ADS_LEN];

	doca_verbs_ah_attr_set_dlid(ah, 0);
	cr_assert_neq(connect_by(DOCA_VERBS_ADDR_TYPE_IB_NO_GRH, path), DOCA_SUCCESS);
}

Test(qp_infiniband, one_gid_of_type_infiniband)
{
	struct ibv_gid_entry e[2];

	cr_assert_eq(ibv_query_gid_table(nic.ctx, e, 2, 0), 1);
	cr_assert_eq(e[0].gid_type, IBV_GID_TYPE_IB);
	cr_assert_eq(e[0].ndev_ifindex, 0);
	cr_assert_eq(e[0].gid.raw[0], 0xfe);
	cr_assert_eq(ibv_query_gid_ex(nic.ctx, 1, 1, e, 0), ENODATA);
}
