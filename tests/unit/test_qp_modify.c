/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * doca_verbs_qp_modify() and doca_verbs_qp_query(): which transitions exist, which
 * attributes each one requires and permits, and what a query returns.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "../../qp/verbs/qp.h"
#include "../lib/e2e.h"

#define A(name) DOCA_VERBS_QP_ATTR_##name
#define S(name) DOCA_VERBS_QP_STATE_##name
#define TO_INIT \
	(A(NEXT_STATE) | A(PKEY_INDEX) | A(PORT_NUM) | A(ALLOW_REMOTE_WRITE) | A(ALLOW_REMOTE_READ))
#define TO_RTR \
	(A(NEXT_STATE) | A(RQ_PSN) | A(DEST_QP_NUM) | A(PATH_MTU) | A(AH_ATTR) | A(MIN_RNR_TIMER))
#define TO_RTS (A(NEXT_STATE) | A(SQ_PSN) | A(ACK_TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY))

static struct e2e_nic nic;
static struct e2e_qp q;
static doca_verbs_qp_attr_t *attr;
static doca_verbs_ah_attr_t *ah;

static void open_all(void)
{
	struct doca_verbs_gid gid;

	e2e_open(&nic);
	e2e_qp_open(&nic, &q, E2E_DB, 16);
	memcpy(gid.raw, nic.gid.raw, 16);
	cr_assert_eq(doca_verbs_ah_attr_create(nic.dev, &ah), DOCA_SUCCESS);
	doca_verbs_ah_attr_set_gid(ah, gid);
	doca_verbs_ah_attr_set_sgid_index(ah, (uint8_t)nic.gid_index);
	doca_verbs_ah_attr_set_addr_type(ah, DOCA_VERBS_ADDR_TYPE_IPv4);
	cr_assert_eq(doca_verbs_qp_attr_create(&attr), DOCA_SUCCESS);
	doca_verbs_qp_attr_set_port_num(attr, 1);
	doca_verbs_qp_attr_set_allow_remote_write(attr, 1);
	doca_verbs_qp_attr_set_dest_qp_num(attr, q.qpn);
	doca_verbs_qp_attr_set_path_mtu(attr, DOCA_VERBS_MTU_SIZE_1K_BYTES);
	doca_verbs_qp_attr_set_ah_attr(attr, ah);
	doca_verbs_qp_attr_set_min_rnr_timer(attr, 12);
	doca_verbs_qp_attr_set_rq_psn(attr, 0x123456);
	doca_verbs_qp_attr_set_sq_psn(attr, 0x654321);
	doca_verbs_qp_attr_set_ack_timeout(attr, 14);
	doca_verbs_qp_attr_set_retry_cnt(attr, 5);
	doca_verbs_qp_attr_set_rnr_retry(attr, 6);
	doca_verbs_qp_attr_set_max_rd_atomic(attr, 4);
}

static void close_all(void)
{
	doca_verbs_qp_attr_destroy(attr);
	doca_verbs_ah_attr_destroy(ah);
	e2e_qp_close(&q);
	e2e_close(&nic);
}

TestSuite(qp_modify, .init = open_all, .fini = close_all);

static doca_error_t move(enum doca_verbs_qp_state to, int mask)
{
	doca_verbs_qp_attr_set_next_state(attr, to);
	return doca_verbs_qp_modify(q.hl->qp, attr, mask);
}

/*
 * Queries the QP: returns its state and stores its attributes in got, and in *mask
 * the bits of those that are valid.
 */
static enum doca_verbs_qp_state state(doca_verbs_qp_attr_t *got, int *mask)
{
	doca_verbs_qp_init_attr_t *init;

	cr_assert_eq(doca_verbs_qp_init_attr_create(&init), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_query(q.hl->qp, got, init, mask), DOCA_SUCCESS);
	cr_assert_eq(init->sq_wr, 16);
	doca_verbs_qp_init_attr_destroy(init);
	return got->current_state;
}

static void to_rts(void)
{
	cr_assert_eq(move(S(INIT), TO_INIT), DOCA_SUCCESS);
	cr_assert_eq(move(S(RTR), TO_RTR), DOCA_SUCCESS);
	cr_assert_eq(move(S(RTS), TO_RTS | A(MAX_QP_RD_ATOMIC)), DOCA_SUCCESS);
}

Test(qp_modify, reset_to_rts_and_query)
{
	struct doca_verbs_qp_attr got = { 0 };
	int mask = 0;

	cr_assert_eq(state(&got, &mask), S(RST));
	cr_assert_eq(mask & A(AH_ATTR), 0);
	to_rts();
	cr_assert_eq(state(&got, &mask), S(RTS));
	cr_assert_eq(got.sq_psn, 0x654321);
	cr_assert_eq(got.rq_psn, 0x123456);
	cr_assert_eq(got.dest_qp_num, q.qpn);
	cr_assert_eq(got.path_mtu, DOCA_VERBS_MTU_SIZE_1K_BYTES);
	cr_assert_eq(got.allow_remote_write, 1);
	cr_assert_eq(got.allow_remote_read, 0);
	cr_assert_eq(got.ack_timeout, 14);
	cr_assert_eq(got.retry_cnt, 5);
	cr_assert_eq(got.rnr_retry, 6);
	cr_assert_eq(got.min_rnr_timer, 12);
	cr_assert_eq(got.max_rd_atomic, 4);
	cr_assert_eq(got.port_num, 1);
	cr_assert_eq(got.ah.hop_limit, 64, "default hop limit");
	cr_assert_eq(memcmp(got.ah.gid.raw, nic.gid.raw, 16), 0);
	cr_assert_neq(mask & A(SQ_PSN), 0);
}

Test(qp_modify, invalid_transitions_are_refused)
{
	cr_assert_eq(move(S(RTR), TO_RTR), DOCA_ERROR_BAD_STATE);
	cr_assert_eq(move(S(RTS), TO_RTS), DOCA_ERROR_BAD_STATE);
	cr_assert_eq(move(S(INIT), TO_INIT), DOCA_SUCCESS);
	cr_assert_eq(move(S(RTS), TO_RTS), DOCA_ERROR_BAD_STATE);
	cr_assert_eq(move(S(RTR), TO_RTR), DOCA_SUCCESS);
	cr_assert_eq(move(S(RTR), TO_RTR), DOCA_ERROR_BAD_STATE);
	cr_assert_eq(move(S(INIT), TO_INIT), DOCA_ERROR_BAD_STATE);
}

Test(qp_modify, missing_and_extra_attributes_are_refused)
{
	cr_assert_eq(move(S(INIT), TO_INIT & ~A(PORT_NUM)), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(move(S(INIT), TO_INIT | A(SQ_PSN)), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(move(S(INIT), TO_INIT), DOCA_SUCCESS);
	for (int bit = 0; bit < 18; bit++)
		if ((TO_RTR & ~A(NEXT_STATE)) >> bit & 1)
			cr_assert_eq(move(S(RTR), TO_RTR & ~(1 << bit)), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(move(S(RTR), TO_RTR), DOCA_SUCCESS);
}

Test(qp_modify, given_current_state_must_match)
{
	doca_verbs_qp_attr_set_current_state(attr, S(RTS));
	cr_assert_eq(move(S(INIT), TO_INIT | A(CURRENT_STATE)), DOCA_ERROR_BAD_STATE);
	doca_verbs_qp_attr_set_current_state(attr, S(RST));
	cr_assert_eq(move(S(INIT), TO_INIT | A(CURRENT_STATE)), DOCA_SUCCESS);
}

Test(qp_modify, init_to_init_changes_rights)
{
	struct doca_verbs_qp_attr got = { 0 };

	cr_assert_eq(move(S(INIT), TO_INIT), DOCA_SUCCESS);
	doca_verbs_qp_attr_set_allow_remote_read(attr, 1);
	cr_assert_eq(move(S(INIT), A(NEXT_STATE) | A(ALLOW_REMOTE_READ)), DOCA_SUCCESS);
	state(&got, NULL);
	cr_assert_eq(got.allow_remote_read, 1);
	cr_assert_eq(got.allow_remote_write, 1, "an attribute outside the mask changed");
}

Test(qp_modify, rts_to_rts_then_error_and_reset)
{
	struct doca_verbs_qp_attr got = { 0 };

	to_rts();
	doca_verbs_qp_attr_set_min_rnr_timer(attr, 20);
	cr_assert_eq(move(S(RTS), A(NEXT_STATE) | A(MIN_RNR_TIMER)), DOCA_SUCCESS);
	state(&got, NULL);
	cr_assert_eq(got.min_rnr_timer, 20);
	cr_assert_eq(got.sq_psn, 0x654321);
	cr_assert_eq(move(S(ERR), A(NEXT_STATE)), DOCA_SUCCESS);
	cr_assert_eq(state(&got, NULL), S(ERR));
	cr_assert_eq(move(S(RTS), TO_RTS), DOCA_ERROR_BAD_STATE);
	cr_assert_eq(move(S(RST), A(NEXT_STATE)), DOCA_SUCCESS);
	cr_assert_eq(state(&got, NULL), S(RST));
	to_rts();
}

/*
 * Changes the source GID index, the traffic class and the atomic mode in a
 * transition from RTS to RTS. Expects the new index and the atomic mode in the
 * firmware, `dscp` as the DSCP, and an unchanged remote GID.
 */
static void change_path(int sgid_index, uint8_t traffic_class, uint8_t dscp,
			enum doca_verbs_qp_atomic_mode atomics)
{
	uint8_t out[PRM_QUERY_QP_OUT_LEN], *qpc = out + PRM_QUERY_QP_QPC_AT;
	uint8_t *path = qpc + PRM_QPC_PATH_AT;
	enum doca_verbs_qp_state st;

	doca_verbs_ah_attr_set_sgid_index(ah, (uint8_t)sgid_index);
	doca_verbs_ah_attr_set_traffic_class(ah, traffic_class);
	doca_verbs_qp_attr_set_ah_attr(attr, ah);
	doca_verbs_qp_attr_set_atomic_mode(attr, atomics);
	cr_assert_eq(move(S(RTS), A(NEXT_STATE) | A(AH_ATTR) | A(ATOMIC_MODE)), DOCA_SUCCESS);
	cr_assert_eq(gdk_qp_query_state(q.hl->qp, out, &st), DOCA_SUCCESS);
	cr_expect_eq(prm_get(path, PRM_ADS_SRC_ADDR_INDEX), (unsigned int)sgid_index);
	cr_expect_eq(prm_get(path, PRM_ADS_DSCP), dscp);
	cr_expect_eq(prm_get(qpc, PRM_QPC_RAE), atomics != DOCA_VERBS_QP_ATOMIC_MODE_NONE);
	cr_expect_arr_eq(path + PRM_ADS_RGID_AT, nic.gid.raw, 16, "the remote GID must not change");
}

Test(qp_modify, rts_to_rts_changes_path_and_rights)
{
	static const struct doca_verbs_gid elsewhere = { { 0xfe, 0x80 } };

	to_rts();
	doca_verbs_ah_attr_set_gid(ah, elsewhere);
	change_path(nic.gid_index - 1, 0x68, 0x68 >> 2, DOCA_VERBS_QP_ATOMIC_MODE_IB_SPEC);
	change_path(nic.gid_index, 0xfc, 0xfc >> 2, DOCA_VERBS_QP_ATOMIC_MODE_NONE);
	nic.dev->caps.rts2rts_dscp = 0;
	change_path(nic.gid_index - 1, 0x68, 0xfc >> 2, DOCA_VERBS_QP_ATOMIC_MODE_NONE);
	doca_verbs_ah_attr_set_sgid_index(ah, 200);
	doca_verbs_qp_attr_set_ah_attr(attr, ah);
	cr_assert_eq(move(S(RTS), A(NEXT_STATE) | A(AH_ATTR)), DOCA_ERROR_DRIVER,
		     "a GID index that does not exist must be refused");
}

Test(qp_modify, invalid_paths_are_refused)
{
	cr_assert_eq(move(S(INIT), TO_INIT), DOCA_SUCCESS);
	doca_verbs_ah_attr_set_addr_type(ah, DOCA_VERBS_ADDR_TYPE_IB_GRH);
	doca_verbs_qp_attr_set_ah_attr(attr, ah);
	cr_assert_eq(move(S(RTR), TO_RTR), DOCA_ERROR_INVALID_VALUE,
		     "an InfiniBand address on an Ethernet port must be refused");
	doca_verbs_ah_attr_set_addr_type(ah, DOCA_VERBS_ADDR_TYPE_IPv4);
	doca_verbs_ah_attr_set_sgid_index(ah, 200);
	doca_verbs_qp_attr_set_ah_attr(attr, ah);
	cr_assert_eq(move(S(RTR), TO_RTR), DOCA_ERROR_INVALID_VALUE,
		     "a GID index that does not exist must be refused");
	cr_assert_eq(q.hl->qp->state, S(INIT));
}

Test(qp_modify, every_gid_of_the_port_connects)
{
	uint8_t out[PRM_QUERY_QP_OUT_LEN], *path = out + PRM_QUERY_QP_QPC_AT + PRM_QPC_PATH_AT;
	enum doca_verbs_qp_state st;
	struct doca_verbs_gid gid;
	struct ibv_gid_entry e;
	uint32_t i, n = 0;

	for (i = 0; i < 8; i++) {
		if (ibv_query_gid_ex(nic.ctx, 1, i, &e, 0))
			continue;
		memcpy(gid.raw, e.gid.raw, 16);
		doca_verbs_ah_attr_set_gid(ah, gid);
		doca_verbs_ah_attr_set_sgid_index(ah, (uint8_t)i);
		doca_verbs_ah_attr_set_addr_type(ah, e.gid.raw[10] == 0xff && !e.gid.raw[0]
							     ? DOCA_VERBS_ADDR_TYPE_IPv4
							     : DOCA_VERBS_ADDR_TYPE_IPv6);
		doca_verbs_ah_attr_set_traffic_class(ah, 0x68);
		doca_verbs_qp_attr_set_ah_attr(attr, ah);
		to_rts();
		cr_assert_eq(gdk_qp_query_state(q.hl->qp, out, &st), DOCA_SUCCESS);
		cr_expect_eq(prm_get(path, PRM_ADS_UDP_SPORT) != 0,
			     e.gid_type == IBV_GID_TYPE_ROCE_V2,
			     "only RoCE v2 has a UDP source port");
		cr_assert_eq(move(S(RST), A(NEXT_STATE)), DOCA_SUCCESS, "GID %u: reset failed", i);
		n++;
	}
	cr_assert_eq(n, 4, "expected link-local and IPv4 GIDs, each for RoCE v1 and v2");
}

Test(qp_modify, udp_source_port_is_the_hash_of_the_connection)
{
	uint8_t out[PRM_QUERY_QP_OUT_LEN], *path;
	enum doca_verbs_qp_state st;

	to_rts();
	cr_assert_eq(gdk_qp_query_state(q.hl->qp, out, &st), DOCA_SUCCESS);
	path = out + PRM_QUERY_QP_QPC_AT + PRM_QPC_PATH_AT;
	cr_assert_eq(prm_get(path, PRM_ADS_UDP_SPORT),
		     gdk_path_udp_sport(q.qpn, q.qpn, nic.gid.raw, nic.gid.raw));
	cr_assert_neq(prm_get(path, PRM_ADS_RMAC_31_0), 0);
}

Test(qp_modify, udp_source_port_is_in_the_devices_range)
{
	uint8_t out[PRM_QUERY_QP_OUT_LEN];
	enum doca_verbs_qp_state st;
	uint64_t port;

	nic.dev->caps.r_roce_min_src_udp_port = 0xd001;
	nic.dev->caps.r_roce_max_src_udp_port = 0xd003;
	to_rts();
	cr_assert_eq(gdk_qp_query_state(q.hl->qp, out, &st), DOCA_SUCCESS);
	port = prm_get(out + PRM_QUERY_QP_QPC_AT + PRM_QPC_PATH_AT, PRM_ADS_UDP_SPORT);
	cr_expect(port >= 0xd001 && port <= 0xd003, "source port 0x%x", (unsigned int)port);
}
