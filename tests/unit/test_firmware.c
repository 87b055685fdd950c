/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Attributes and the firmware: values that were set must be in the firmware's
 * object, and a query must return what the firmware has. Each attribute with more
 * than one valid value is tested with two, so that a default cannot be mistaken for
 * the value.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <string.h>

#include "../../core/nic/devx.h"
#include "../../qp/verbs/qp.h"
#include "../lib/e2e.h"

#define A(name)	       DOCA_VERBS_QP_ATTR_##name
#define S(name)	       DOCA_VERBS_QP_STATE_##name
#define IN_PATH(field) ((field) + ((uint32_t)PRM_QPC_PATH_AT << 16))
#define SIDES	       2

static struct e2e_nic nic;
static doca_verbs_cq_t *cq;

static void open_all(void)
{
	doca_verbs_cq_attr_t *attr;

	e2e_open(&nic);
	cr_assert_eq(doca_verbs_cq_attr_create(&attr), DOCA_SUCCESS);
	doca_verbs_cq_attr_set_cq_size(attr, 256);
	cr_assert_eq(doca_verbs_cq_create(nic.dev, attr, &cq), DOCA_SUCCESS);
	doca_verbs_cq_attr_destroy(attr);
}

static void close_all(void)
{
	cr_assert_eq(doca_verbs_cq_destroy(cq), DOCA_SUCCESS);
	e2e_close(&nic);
}

TestSuite(firmware, .init = open_all, .fini = close_all);

/* ---- attributes of a transition ---- */

/* attribute, its field in the QPC, the two values in the API, the same two in the firmware */
#define QP_ATTRS(X) \
	X(allow_remote_write, PRM_QPC_RWE, 1, 0, 1, 0) \
	X(allow_remote_read, PRM_QPC_RRE, 0, 1, 0, 1) \
	X(atomic_mode, PRM_QPC_ATOMIC_MODE, 1, 5, 1, 5) \
	X(port_num, IN_PATH(PRM_ADS_VHCA_PORT_NUM), 1, 1, 1, 1) \
	X(pkey_index, IN_PATH(PRM_ADS_PKEY_INDEX), 0, 0, 0, 0) \
	X(path_mtu, PRM_QPC_MTU, 1, 2, 2, 3) \
	X(rq_psn, PRM_QPC_NEXT_RCV_PSN, 0x123456, 0xfffffe, 0x123456, 0xfffffe) \
	X(sq_psn, PRM_QPC_NEXT_SEND_PSN, 0xabcdef, 1, 0xabcdef, 1) \
	X(dest_qp_num, PRM_QPC_REMOTE_QPN, 0xfedcba, 5, 0xfedcba, 5) \
	X(min_rnr_timer, PRM_QPC_MIN_RNR_NAK, 31, 7, 31, 7) \
	X(max_dest_rd_atomic, PRM_QPC_LOG_RRA_MAX, 16, 2, 4, 1) \
	X(ack_timeout, IN_PATH(PRM_ADS_ACK_TIMEOUT), 31, 3, 31, 3) \
	X(retry_cnt, PRM_QPC_RETRY_COUNT, 7, 2, 7, 2) \
	X(rnr_retry, PRM_QPC_RNR_RETRY, 1, 6, 1, 6) \
	X(max_rd_atomic, PRM_QPC_LOG_SRA_MAX, 8, 1, 3, 0)

/* like QP_ATTRS, for attributes of the path; expect_all() also checks the DSCP */
#define AH_ATTRS(X) \
	X(sl, IN_PATH(PRM_ADS_ETH_PRIO), 5, 2, 5, 2) \
	X(sgid_index, IN_PATH(PRM_ADS_SRC_ADDR_INDEX), 3, 2, 3, 2) \
	X(static_rate, IN_PATH(PRM_ADS_STAT_RATE), 7, 12, 7, 12) \
	X(hop_limit, IN_PATH(PRM_ADS_HOP_LIMIT), 1, 255, 1, 255) \
	X(traffic_class, IN_PATH(PRM_ADS_TCLASS), 0x68, 0xfc, 0x68, 0xfc)

#define MASK_INIT \
	(A(NEXT_STATE) | A(PKEY_INDEX) | A(PORT_NUM) | A(ALLOW_REMOTE_WRITE) | \
	 A(ALLOW_REMOTE_READ) | A(ATOMIC_MODE))
#define MASK_RTR \
	(A(NEXT_STATE) | A(RQ_PSN) | A(DEST_QP_NUM) | A(PATH_MTU) | A(AH_ATTR) | \
	 A(MIN_RNR_TIMER) | A(MAX_DEST_RD_ATOMIC))
#define MASK_RTS \
	(A(NEXT_STATE) | A(SQ_PSN) | A(ACK_TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | \
	 A(MAX_QP_RD_ATOMIC))

static void modify(doca_verbs_qp_t *qp, doca_verbs_qp_attr_t *attr, enum doca_verbs_qp_state to,
		   int mask)
{
	doca_verbs_qp_attr_set_next_state(attr, to);
	cr_assert_eq(doca_verbs_qp_modify(qp, attr, mask), DOCA_SUCCESS, "transition to state %d",
		     to);
}

static void set_all(doca_verbs_qp_attr_t *attr, int side)
{
	struct doca_verbs_gid gid;
	doca_verbs_ah_attr_t *ah;

	memcpy(gid.raw, nic.gid.raw, sizeof(gid.raw));
	cr_assert_eq(doca_verbs_ah_attr_create(nic.dev, &ah), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_ah_attr_set_gid(ah, gid), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_ah_attr_set_addr_type(ah, DOCA_VERBS_ADDR_TYPE_IPv4), DOCA_SUCCESS);
#define SET_AH(name, field, a, b, fa, fb) \
	cr_assert_eq(doca_verbs_ah_attr_set_##name(ah, side ? (b) : (a)), DOCA_SUCCESS); \
	cr_assert_eq(doca_verbs_ah_get_##name(ah), side ? (b) : (a));
	AH_ATTRS(SET_AH)
#define SET_QP(name, field, a, b, fa, fb) \
	cr_assert_eq(doca_verbs_qp_attr_set_##name(attr, side ? (b) : (a)), DOCA_SUCCESS);
	QP_ATTRS(SET_QP)
	cr_assert_eq(doca_verbs_qp_attr_set_ah_attr(attr, ah), DOCA_SUCCESS);
	doca_verbs_ah_attr_destroy(ah);
}

static void expect_all(struct e2e_qp *q, int side)
{
	uint8_t out[PRM_QUERY_QP_OUT_LEN], *qpc = out + PRM_QUERY_QP_QPC_AT;
	doca_verbs_qp_init_attr_t *init;
	doca_verbs_qp_attr_t *attr;
	enum doca_verbs_qp_state state;
	struct gdk_qp_attr got;
	int mask = 0;

	doca_verbs_qp_attr_create(&attr);
	doca_verbs_qp_init_attr_create(&init);
	cr_assert_eq(gdk_qp_query_state(q->hl->qp, out, &state), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_query(q->hl->qp, attr, init, &mask), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_qp_attr_get(attr, &got), DOCA_SUCCESS);
	cr_expect_eq(state, S(RTS));
	cr_expect_eq(got.current_state, S(RTS));
	cr_expect_eq(mask, MASK_INIT | MASK_RTR | MASK_RTS | A(CURRENT_STATE));
#define EXPECT(name, field, a, b, fa, fb) \
	cr_expect_eq(prm_get(qpc, field), side ? (fb) : (fa), #name " in the firmware is 0x%x", \
		     (unsigned int)prm_get(qpc, field)); \
	cr_expect_eq(got.name, side ? (b) : (a), #name " from the query is 0x%x", \
		     (unsigned int)got.name);
	QP_ATTRS(EXPECT)
	AH_ATTRS(EXPECT)
	cr_expect_eq(prm_get(qpc, IN_PATH(PRM_ADS_DSCP)), side ? 0xfc >> 2 : 0x68 >> 2);
	cr_expect_eq(got.addr_type, DOCA_VERBS_ADDR_TYPE_IPv4);
	cr_expect_arr_eq(got.gid.raw, nic.gid.raw, 16);
	doca_verbs_qp_attr_destroy(attr);
	doca_verbs_qp_init_attr_destroy(init);
}

static void expect_no_path(struct e2e_qp *q)
{
	static const struct doca_verbs_gid none;
	doca_verbs_qp_init_attr_t *init;
	doca_verbs_qp_attr_t *attr;
	struct gdk_qp_attr got;

	doca_verbs_qp_attr_create(&attr);
	doca_verbs_qp_init_attr_create(&init);
	cr_assert_eq(doca_verbs_qp_query(q->hl->qp, attr, init, NULL), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_qp_attr_get(attr, &got), DOCA_SUCCESS);
	cr_expect_not(attr->has_ah);
	cr_expect_eq(got.next_state, S(INIT));
	cr_expect_eq(got.addr_type, DOCA_VERBS_ADDR_TYPE_IPv4);
	cr_expect(!memcmp(&got.gid, &none, sizeof(none)) && !got.hop_limit && !got.sgid_index);
	doca_verbs_qp_attr_destroy(attr);
	doca_verbs_qp_init_attr_destroy(init);
}

/* Expects that a query of the QP returns this traffic class. */
static void expect_traffic_class(struct e2e_qp *q, uint8_t want)
{
	doca_verbs_qp_init_attr_t *init;
	doca_verbs_qp_attr_t *attr;
	struct gdk_qp_attr got;

	doca_verbs_qp_attr_create(&attr);
	doca_verbs_qp_init_attr_create(&init);
	cr_assert_eq(doca_verbs_qp_query(q->hl->qp, attr, init, NULL), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_qp_attr_get(attr, &got), DOCA_SUCCESS);
	cr_expect_eq(got.traffic_class, want, "traffic class is 0x%x", got.traffic_class);
	doca_verbs_qp_attr_destroy(attr);
	doca_verbs_qp_init_attr_destroy(init);
}

Test(firmware, modify_changes_the_traffic_class)
{
	doca_verbs_qp_attr_t *attr;
	struct e2e_qp q;

	e2e_qp_open(&nic, &q, E2E_DB, 16);
	cr_assert_eq(doca_verbs_qp_attr_create(&attr), DOCA_SUCCESS);
	set_all(attr, 0);
	modify(q.hl->qp, attr, S(INIT), MASK_INIT);
	modify(q.hl->qp, attr, S(RTR), MASK_RTR);
	modify(q.hl->qp, attr, S(RTS), MASK_RTS);
	expect_traffic_class(&q, 0x68);
	set_all(attr, 1);
	modify(q.hl->qp, attr, S(RTS), A(NEXT_STATE) | A(AH_ATTR));
	expect_traffic_class(&q, 0xfc);
	doca_verbs_qp_attr_destroy(attr);
	e2e_qp_close(&q);
}

/*
 * Sets log_ack_req_freq (the requester asks for an ACK once per 2^n packets), with
 * `mask` in the transition to RTS. Expects the value `want` in the firmware and in
 * the query.
 */
static void expect_ack_req_freq(int mask, uint8_t log, uint64_t want)
{
	doca_verbs_qp_init_attr_t *init;
	doca_verbs_qp_attr_t *attr;
	uint8_t out[PRM_QUERY_QP_OUT_LEN];
	enum doca_verbs_qp_state state;
	struct gdk_qp_attr got;
	struct e2e_qp q;

	e2e_qp_open(&nic, &q, E2E_DB, 16);
	doca_verbs_qp_init_attr_create(&init);
	cr_assert_eq(doca_verbs_qp_attr_create(&attr), DOCA_SUCCESS);
	set_all(attr, 0);
	cr_expect_eq(gdk_verbs_qp_attr_set_log_ack_req_freq(attr, 9), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(gdk_verbs_qp_attr_set_log_ack_req_freq(attr, log), DOCA_SUCCESS);
	modify(q.hl->qp, attr, S(INIT), MASK_INIT);
	modify(q.hl->qp, attr, S(RTR), MASK_RTR);
	modify(q.hl->qp, attr, S(RTS), MASK_RTS | mask);
	cr_assert_eq(gdk_qp_query_state(q.hl->qp, out, &state), DOCA_SUCCESS);
	cr_expect_eq(prm_get(out + PRM_QUERY_QP_QPC_AT, PRM_QPC_LOG_ACK_REQ_FREQ), want);
	cr_assert_eq(doca_verbs_qp_query(q.hl->qp, attr, init, NULL), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_qp_attr_get(attr, &got), DOCA_SUCCESS);
	cr_expect_eq(got.log_ack_req_freq, want);
	doca_verbs_qp_attr_destroy(attr);
	doca_verbs_qp_init_attr_destroy(init);
	e2e_qp_close(&q);
}

Test(firmware, ack_request_frequency)
{
	expect_ack_req_freq(GDK_VERBS_QP_ATTR_LOG_ACK_REQ_FREQ, 8, 8);
	expect_ack_req_freq(GDK_VERBS_QP_ATTR_LOG_ACK_REQ_FREQ, 3, 3);
	expect_ack_req_freq(0, 8, 0);
}

Test(firmware, attributes_reach_the_firmware_and_the_query)
{
	doca_verbs_qp_attr_t *attr;
	struct e2e_qp q;

	e2e_qp_open(&nic, &q, E2E_DB, 16);
	cr_assert_eq(doca_verbs_qp_attr_create(&attr), DOCA_SUCCESS);
	for (int side = 0; side < SIDES; side++) {
		set_all(attr, side);
		modify(q.hl->qp, attr, S(INIT), MASK_INIT);
		expect_no_path(&q);
		modify(q.hl->qp, attr, S(RTR), MASK_RTR);
		modify(q.hl->qp, attr, S(RTS), MASK_RTS);
		expect_all(&q, side);
		modify(q.hl->qp, attr, S(RST), A(NEXT_STATE));
	}
	doca_verbs_qp_attr_destroy(attr);
	e2e_qp_close(&q);
}

Test(firmware, attributes_outside_the_mask_are_ignored)
{
	uint8_t out[PRM_QUERY_QP_OUT_LEN], *qpc = out + PRM_QUERY_QP_QPC_AT;
	enum doca_verbs_qp_state state;
	doca_verbs_qp_attr_t *attr;
	struct e2e_qp q;

	e2e_qp_open(&nic, &q, E2E_DB, 16);
	cr_assert_eq(doca_verbs_qp_attr_create(&attr), DOCA_SUCCESS);
	set_all(attr, 0);
	modify(q.hl->qp, attr, S(INIT), MASK_INIT & ~A(ATOMIC_MODE));
	modify(q.hl->qp, attr, S(RTR), MASK_RTR & ~A(MAX_DEST_RD_ATOMIC));
	modify(q.hl->qp, attr, S(RTS), MASK_RTS & ~A(MAX_QP_RD_ATOMIC));
	cr_assert_eq(gdk_qp_query_state(q.hl->qp, out, &state), DOCA_SUCCESS);
	cr_expect_eq(prm_get(qpc, PRM_QPC_RAE), 0);
	cr_expect_eq(prm_get(qpc, PRM_QPC_ATOMIC_MODE), 0);
	cr_expect_eq(prm_get(qpc, PRM_QPC_LOG_RRA_MAX), 0);
	cr_expect_eq(prm_get(qpc, PRM_QPC_LOG_SRA_MAX), 0);
	doca_verbs_qp_attr_destroy(attr);
	e2e_qp_close(&q);
}

/* ---- states ---- */

static int force_state = -1;
static uint32_t force_status;

/*
 * Replaces mlx5dv_devx_obj_query of libmlx5. force_state >= 0 is stored as the QP
 * state in the reply. A non-zero force_status is stored as the reply's status, but
 * the function reports no error, as some kernels do if the firmware refuses a
 * command.
 */
int mlx5dv_devx_obj_query(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, void *out,
			  size_t outlen)
{
	int (*real)(struct mlx5dv_devx_obj *, const void *, size_t, void *, size_t);
	int rc;

	*(void **)&real = dlsym(RTLD_NEXT, "mlx5dv_devx_obj_query");
	rc = real(obj, in, inlen, out, outlen);
	if (force_state >= 0)
		prm_set((uint8_t *)out + PRM_QUERY_QP_QPC_AT, PRM_QPC_STATE, (uint32_t)force_state);
	if (force_status)
		prm_set(out, PRM_CMD_STATUS, force_status);
	return rc;
}

Test(firmware, query_converts_each_state_or_fails)
{
	static const int known[] = { S(RST), S(INIT), S(RTR), S(RTS), S(ERR), -1, S(ERR) };
	doca_verbs_qp_init_attr_t *init;
	enum doca_verbs_qp_state state;
	doca_verbs_qp_attr_t *attr;
	struct e2e_qp q;

	e2e_qp_open(&nic, &q, E2E_DB, 16);
	cr_assert(!doca_verbs_qp_attr_create(&attr) && !doca_verbs_qp_init_attr_create(&init));
	for (force_state = 0; force_state < 16; force_state++) {
		int want = force_state < 7 ? known[force_state] : -1;
		doca_error_t err = doca_verbs_qp_query(q.hl->qp, attr, init, NULL);

		cr_expect_eq(err, want < 0 ? DOCA_ERROR_UNEXPECTED : DOCA_SUCCESS,
			     "state %d of the firmware", force_state);
		cr_assert(!doca_verbs_qp_attr_get_current_state(attr, &state));
		cr_expect(err || (int)state == want, "state %d of the firmware became %d",
			  force_state, (int)state);
	}
	force_state = -1;
	force_status = 5;
	cr_expect_eq(doca_verbs_qp_query(q.hl->qp, attr, init, NULL), DOCA_ERROR_DRIVER);
	force_status = 0;
	cr_assert(!doca_verbs_qp_attr_destroy(attr) && !doca_verbs_qp_init_attr_destroy(init));
	e2e_qp_close(&q);
}

/* ---- attributes of QP creation: test_boxes.c has the command ---- */

static const struct qp_row {
	uint32_t sq_wr, rq_wr, sges, inl, uidx;
	uint8_t master;
	enum doca_verbs_qp_send_dbr_mode dbr;
	uint32_t sq_granted, rq_granted; /* expected */
} qp_rows[SIDES] = {
	{ 60, 100, 1, 0, 0xabcdef, 1, DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID, 64, 128 },
	{ 64, 0, 3, 200, 0x10, 0, DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT, 64, 0 },
};

static doca_verbs_qp_init_attr_t *init_of(const struct qp_row *r)
{
	doca_verbs_qp_init_attr_t *init;

	cr_assert_eq(doca_verbs_qp_init_attr_create(&init), DOCA_SUCCESS);
	doca_verbs_qp_init_attr_set_pd(init, nic.dev);
	doca_verbs_qp_init_attr_set_send_cq(init, cq);
	doca_verbs_qp_init_attr_set_receive_cq(init, cq);
	doca_verbs_qp_init_attr_set_sq_sig_all(init, 1);
	doca_verbs_qp_init_attr_set_qp_type(init, DOCA_VERBS_QP_TYPE_RC);
	doca_verbs_qp_init_attr_set_qp_context(init, &nic);
	doca_verbs_qp_init_attr_set_sq_wr(init, r->sq_wr);
	doca_verbs_qp_init_attr_set_rq_wr(init, r->rq_wr);
	doca_verbs_qp_init_attr_set_send_max_sges(init, r->sges);
	doca_verbs_qp_init_attr_set_receive_max_sges(init, 1);
	doca_verbs_qp_init_attr_set_max_inline_data(init, r->inl);
	doca_verbs_qp_init_attr_set_user_index(init, r->uidx);
	doca_verbs_qp_init_attr_set_core_direct_master(init, r->master);
	doca_verbs_qp_init_attr_set_send_dbr_mode(init, r->dbr);
	return init;
}

static void expect_init(doca_verbs_qp_t *qp, const struct qp_row *r)
{
	doca_verbs_qp_init_attr_t *init;
	struct gdk_qp_init_attr got;
	doca_verbs_qp_attr_t *attr;

	doca_verbs_qp_attr_create(&attr);
	doca_verbs_qp_init_attr_create(&init);
	/* Overwrite the library's copies, because the query must return the firmware's values. */
	qp->init.user_index = qp->init.core_direct_master = 0;
	qp->init.send_dbr_mode = DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID;
	qp->init.rq_wr = 77;
	cr_assert_eq(doca_verbs_qp_query(qp, attr, init, NULL), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_qp_init_attr_get(init, &got), DOCA_SUCCESS);
	cr_expect_eq(got.sq_wr, r->sq_granted);
	cr_expect_eq(got.rq_wr, r->rq_granted);
	cr_expect_geq(got.send_max_sges, r->sges);
	cr_expect_geq(got.max_inline_data, r->inl);
	cr_expect_eq(got.user_index, r->uidx);
	cr_expect_eq(got.core_direct_master, r->master);
	cr_expect_eq(got.send_dbr_mode, r->dbr);
	cr_expect_eq(init->qp_type, (uint32_t)DOCA_VERBS_QP_TYPE_RC);
	cr_expect_eq(got.sq_sig_all, 1);
	cr_expect(got.send_cq == cq && got.receive_cq == cq && init->pd == nic.dev);
	cr_expect_eq(got.qp_context, &nic);
	doca_verbs_qp_attr_destroy(attr);
	doca_verbs_qp_init_attr_destroy(init);
}

Test(firmware, query_returns_the_creation_attributes)
{
	for (int side = 0; side < SIDES; side++) {
		doca_verbs_qp_init_attr_t *init = init_of(&qp_rows[side]);
		doca_verbs_qp_t *qp;

		cr_assert_eq(doca_verbs_qp_create(nic.dev, init, &qp), DOCA_SUCCESS);
		doca_verbs_qp_init_attr_destroy(init);
		expect_init(qp, &qp_rows[side]);
		cr_assert_eq(doca_verbs_qp_destroy(qp), DOCA_SUCCESS);
	}
}
