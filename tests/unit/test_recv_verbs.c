/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Messages between a queue pair of this library and one of libmlx5, in both directions: every
 * kind that consumes a receive, receives that are posted too late or never, and receives that
 * are too short. Both sides must report the right error.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <unistd.h>

#include "../lib/bound.h"
#include "../lib/recv_rig.h"
#include "../lib/vb.h"
#include "../softnic/softnic.h"

#define HOW  gdk_how(E2E_EXCL, GDK_AUTO, GDK_THREAD, 0)
#define TO   32768u /* where messages arrive */
#define ROOM 4096u
#define PSN  0x1234u
#define IMM  0x11223344u
#define ID   7u

enum kind { SEND, SEND_IMM, WRITE_IMM, KINDS };

static const char *const names[] = { "SEND", "SEND_IMM", "WRITE_IMM" };
static const struct doca_gpu_dev_verbs_addr nothing;
static struct e2e_nic nic;
static struct recv_end g; /* this library */
static struct vb v;	  /* libmlx5 */
static struct ibv_cq *scq, *rcq;
static struct ibv_qp *qp;
static uint64_t verbs_sent;

/* ---- objects ---- */

static void connect_verbs(uint8_t rnr_retry, uint8_t rnr_timer)
{
	const bool rc = qp->qp_type == IBV_QPT_RC;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR,
				 .path_mtu = IBV_MTU_1024,
				 .dest_qp_num = g.qpn,
				 .rq_psn = PSN,
				 .max_dest_rd_atomic = 1,
				 .min_rnr_timer = rnr_timer,
				 .ah_attr = vb_ah(&v) };

	vb_to_init(qp);
	cr_assert_eq(
		ibv_modify_qp(qp, &a,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				      IBV_QP_RQ_PSN |
				      (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)),
		0);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				  .sq_psn = PSN,
				  .timeout = 14,
				  .retry_cnt = 7,
				  .rnr_retry = rnr_retry,
				  .max_rd_atomic = 1 };
	cr_assert_eq(
		ibv_modify_qp(qp, &a,
			      IBV_QP_STATE | IBV_QP_SQ_PSN |
				      (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						       IBV_QP_MAX_QP_RD_ATOMIC
					  : 0)),
		0);
}

static void set_rnr_timer(uint8_t code)
{
	doca_verbs_qp_attr_t *attr;

	E2E_REQUIRE(!doca_verbs_qp_attr_create(&attr));
	E2E_REQUIRE(!doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_RTS));
	E2E_REQUIRE(!doca_verbs_qp_attr_set_min_rnr_timer(attr, code));
	E2E_REQUIRE(!doca_verbs_qp_modify(
		g.qp, attr, DOCA_VERBS_QP_ATTR_NEXT_STATE | DOCA_VERBS_QP_ATTR_MIN_RNR_TIMER));
	E2E_REQUIRE(!doca_verbs_qp_attr_destroy(attr));
}

static void want_inline(doca_verbs_qp_init_attr_t *init)
{
	cr_assert_eq(doca_verbs_qp_init_attr_set_cqe_inline(init, 1), DOCA_SUCCESS);
}

/* rnr_timer: InfiniBand code of the delay that both sides request when they are not ready. */
static void open_pair(bool uc, uint8_t rnr_retry, uint8_t rnr_timer, recv_init_fn change)
{
	const struct e2e_path path = { 14, 7, PSN };

	verbs_sent = 0;
	e2e_open(&nic);
	recv_end_open(&nic, &g, (struct recv_rig_how){ .handler = E2E_DB, .uc = uc }, change);
	v = (struct vb){ .ctx = nic.ctx, .pd = nic.pd, .gid = nic.gid, .gid_index = nic.gid_index };
	v.mem = aligned_alloc(4096, RECV_RIG_BYTES);
	cr_assert(v.mem);
	v.mr = ibv_reg_mr(v.pd, v.mem, RECV_RIG_BYTES, E2E_REMOTE);
	scq = ibv_create_cq(v.ctx, 64, NULL, NULL, 0);
	rcq = ibv_create_cq(v.ctx, 64, NULL, NULL, 0);
	cr_assert(v.mr && scq && rcq);
	qp = ibv_create_qp(v.pd,
			   &(struct ibv_qp_init_attr){ .qp_type = uc ? IBV_QPT_UC : IBV_QPT_RC,
						       .send_cq = scq,
						       .recv_cq = rcq,
						       .cap = { .max_send_wr = 64,
								.max_recv_wr = 64,
								.max_send_sge = 1,
								.max_recv_sge = 1,
								.max_inline_data = 64 } });
	cr_assert(qp);
	connect_verbs(rnr_retry, rnr_timer);
	if (uc) {
		E2E_REQUIRE(!e2e_connect_uc(&nic, g.qp, &nic.gid, qp->qp_num, path));
	} else {
		E2E_REQUIRE(!e2e_connect_rnr(&nic, g.qp, &nic.gid, qp->qp_num, path, rnr_retry));
		set_rnr_timer(rnr_timer);
	}
	for (uint32_t i = 0; i < TO; i++) {
		v.mem[i] = e2e_pattern(i, 1);
		g.buf.mem[i] = e2e_pattern(i, 2);
	}
}

static void close_pair(void)
{
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_cq(scq), 0);
	cr_assert_eq(ibv_destroy_cq(rcq), 0);
	cr_assert_eq(ibv_dereg_mr(v.mr), 0);
	free(v.mem);
	recv_end_close(&g);
	e2e_close(&nic);
}

static uint64_t naks(void)
{
	const struct sn_stats *(*stats)(void);

	*(void **)&stats = dlsym(RTLD_DEFAULT, "sn_stats_get");
	cr_assert(stats);
	return stats()->naks_received;
}

/* ---- libmlx5 ---- */

static void verbs_send(enum kind kind, size_t at, uint32_t len, bool inl)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						  IBV_WR_RDMA_WRITE_WITH_IMM };
	struct ibv_sge sge = vb_sge(&v, at, len);
	struct ibv_send_wr wr = { .wr_id = verbs_sent++,
				  .sg_list = &sge,
				  .num_sge = len ? 1 : 0,
				  .opcode = ops[kind],
				  .send_flags = IBV_SEND_SIGNALED | (inl ? IBV_SEND_INLINE : 0),
				  .imm_data = htobe32(IMM + len),
				  .wr.rdma = { .remote_addr = (uintptr_t)g.buf.mem + TO,
					       .rkey = g.buf.mr->rkey } },
			   *bad;

	cr_assert_eq(ibv_post_send(qp, &wr, &bad), 0);
}

static void verbs_recv(uint64_t id, uint32_t len)
{
	cr_assert_eq(vb_recv(&v, qp, id, TO, len), 0);
}

/* ---- this library ---- */

/* A WQE that the library has no operation for. */
static uint64_t lib_send_by_hand(enum kind kind, size_t at, uint32_t len)
{
	const uint32_t ops[] = { DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND,
				 DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND_IMM,
				 DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE_IMM };
	const struct gdk_mem to = gdk_mem((uintptr_t)v.mem + TO, gdk_key(v.mr->rkey));
	struct gdk_wqe_at wqe;
	uint64_t idx;

	cr_assert_eq(gdk_reserve(g.dev, 1, E2E_EXCL, 0, &idx), 0);
	wqe = gdk_wqe_at(gdk_get_wqe_ptr(g.dev, idx), (uint16_t)idx, ops[kind], GDK_CE_ALWAYS);
	wqe.imm_be = htobe32(IMM + len);
	if (kind != WRITE_IMM) {
		gdk_wqe_send_inl(g.dev, wqe, g.buf.mem + at, len);
	} else if (len) {
		gdk_wqe_write_inl(g.dev, wqe, to, g.buf.mem + at, len);
	} else {
		gdk_seg_ctrl(g.dev, wqe, 2);
		gdk_seg_raddr(wqe.wqe, 1, to.addr, to.key);
	}
	gdk_mark_ready(g.dev, idx, idx, E2E_EXCL, GDK_AUTO);
	gdk_submit(g.dev, idx + 1, HOW);
	return idx;
}

static uint64_t lib_send(enum kind kind, size_t at, uint32_t len, bool inl)
{
	uint64_t ticket = 0;
	int rc;

	if (inl || (kind == WRITE_IMM && !len))
		return lib_send_by_hand(kind, at, len);
	if (kind == SEND)
		rc = gdk_send(g.dev, recv_at(&g, at), len, &ticket, HOW);
	else if (kind == SEND_IMM)
		rc = gdk_send_imm(g.dev, recv_at(&g, at), len, htobe32(IMM + len), &ticket, HOW);
	else
		rc = gdk_put_imm(g.dev, e2e_addr(v.mem + TO, v.mr->rkey), recv_at(&g, at), len,
				 htobe32(IMM + len), &ticket, HOW);
	cr_assert_eq(rc, 0);
	return ticket;
}

static uint64_t lib_recv(uint32_t len)
{
	uint64_t ticket;

	cr_assert_eq(gdk_recv(g.dev, recv_at(&g, TO), len, &ticket, HOW), 0);
	return ticket;
}

static int lib_wait(uint64_t ticket, struct doca_gpunetio_ib_mlx5_cqe64 **cqe)
{
	return gdk_recv_wait(g.dev, ticket, nothing, DOCA_GPUNETIO_VERBS_MCST_DISABLED, E2E_EXCL,
			     cqe);
}

/* Syndrome of the first error CQE that is not a flush. */
static uint8_t lib_syndrome(bool is_receive)
{
	struct gdk_qp_error e;

	cr_assert_eq(gdk_verbs_qp_get_error(g.ex, &e), DOCA_SUCCESS);
	cr_assert(e.has_cqe);
	cr_assert_eq(e.is_receive, is_receive);
	return e.syndrome;
}

static void expect_lib_received(enum kind kind, uint64_t ticket, size_t at, uint32_t len, bool inl)
{
	static const uint8_t ops[] = { DOCA_GPUNETIO_IB_MLX5_CQE_RESP_SEND,
				       DOCA_GPUNETIO_IB_MLX5_CQE_RESP_SEND_IMM,
				       DOCA_GPUNETIO_IB_MLX5_CQE_RESP_WR_IMM };
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	bool in_cqe = inl && kind != WRITE_IMM && len && len <= 32;

	cr_assert_eq(lib_wait(ticket, &cqe), 0, "%s of %u bytes", names[kind], len);
	cr_assert_eq(cqe->op_own >> 4, ops[kind], "%s of %u bytes", names[kind], len);
	cr_assert_eq(be16toh(cqe->wqe_counter), ticket);
	cr_assert_eq(gdk_cqe_bytes(cqe), len, "%s of %u bytes", names[kind], len);
	cr_assert_eq(gdk_cqe_is_inline(cqe), in_cqe, "%s of %u bytes", names[kind], len);
	if (kind != SEND)
		cr_assert_eq(be32toh(gdk_cqe_imm(cqe)), IMM + len);
	cr_assert_eq(memcmp(in_cqe ? gdk_cqe_inl_data(cqe) : g.buf.mem + TO, v.mem + at, len), 0,
		     "%s of %u bytes arrived changed", names[kind], len);
	cr_assert_eq(g.buf.mem[TO + (in_cqe ? 0 : len)], 0, "%s of %u bytes wrote more",
		     names[kind], len);
}

static void expect_verbs_received(enum kind kind, uint64_t id, size_t at, uint32_t len)
{
	struct ibv_wc wc = vb_wc(rcq);

	cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s of %u bytes: %s", names[kind], len,
		     ibv_wc_status_str(wc.status));
	cr_assert_eq(wc.wr_id, id);
	cr_assert_eq(wc.opcode, kind == WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
	cr_assert_eq(wc.byte_len, len);
	cr_assert_eq(wc.wc_flags & IBV_WC_WITH_IMM, kind == SEND ? 0 : IBV_WC_WITH_IMM);
	if (kind != SEND)
		cr_assert_eq(be32toh(wc.imm_data), IMM + len);
	cr_assert_eq(memcmp(v.mem + TO, g.buf.mem + at, len), 0, "%s of %u bytes arrived changed",
		     names[kind], len);
	cr_assert_eq(v.mem[TO + len], 0, "%s of %u bytes wrote more", names[kind], len);
}

/* ---- every message ---- */

static const uint32_t sizes[] = { 0, 1, 2, 12, 13, 28, 29, 31, 32, 33, 44, 64, 1024, 1025, 3000 };
#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

static void verbs_to_lib(bool uc, recv_init_fn change)
{
	open_pair(uc, 0, 1, change);
	for (enum kind kind = SEND; kind < KINDS; kind++)
		for (size_t i = 0; i < 2 * NSIZES; i++) {
			const uint32_t len = sizes[i / 2];
			const size_t at = 64 * i;
			uint64_t ticket;

			if (i & 1 && len > 64)
				continue;
			memset(g.buf.mem + TO, 0, ROOM);
			/* A write needs no buffer. */
			ticket = lib_recv(kind == WRITE_IMM && i & 2 ? 0 : ROOM);
			verbs_send(kind, at, len, i & 1);
			cr_assert_eq(vb_wc(scq).status, IBV_WC_SUCCESS);
			expect_lib_received(kind, ticket, at, len, change != NULL);
		}
	close_pair();
}

static void lib_to_verbs(bool uc)
{
	open_pair(uc, 0, 1, NULL);
	for (enum kind kind = SEND; kind < KINDS; kind++)
		for (size_t i = 0; i < 2 * NSIZES; i++) {
			const uint32_t len = sizes[i / 2];
			const size_t at = 64 * i;

			if (i & 1 && len > (kind == WRITE_IMM ? 28 : GDK_SEND_INLINE))
				continue;
			memset(v.mem + TO, 0, ROOM);
			verbs_recv(i, kind == WRITE_IMM && i & 2 ? 0 : ROOM);
			cr_assert_eq(gdk_wait(g.dev, lib_send(kind, at, len, i & 1), E2E_EXCL), 0);
			expect_verbs_received(kind, i, at, len);
		}
	close_pair();
}

Test(recv_verbs, messages_of_libmlx5_arrive)
{
	verbs_to_lib(false, NULL);
}

Test(recv_verbs, messages_of_libmlx5_arrive_in_the_cqe)
{
	verbs_to_lib(false, want_inline);
}

Test(recv_verbs, messages_of_libmlx5_arrive_unreliably)
{
	verbs_to_lib(true, NULL);
}

Test(recv_verbs, messages_to_libmlx5_arrive)
{
	lib_to_verbs(false);
}

Test(recv_verbs, messages_to_libmlx5_arrive_unreliably)
{
	lib_to_verbs(true);
}

/* ---- the receiver is not ready ---- */

#define FAST	 1  /* codes of min_rnr_timer: 10 us */
#define SLOW	 26 /* 82 ms */
#define LATE_LEN 1500u

/* Without a receive the sender tries 1 + rnr_retry times. */
static void never_ready(enum kind kind, uint8_t rnr_retry)
{
	struct ibv_wc wc;
	uint64_t before;

	open_pair(false, rnr_retry, FAST, NULL);
	before = naks();
	verbs_send(kind, 0, LATE_LEN, false);
	wc = vb_wc(scq);
	cr_assert_eq(wc.status, IBV_WC_RNR_RETRY_EXC_ERR, "%s, rnr_retry %u: %s", names[kind],
		     rnr_retry, ibv_wc_status_str(wc.status));
	cr_assert_eq(naks() - before, rnr_retry + 1u, "%s, rnr_retry %u", names[kind], rnr_retry);
	cr_assert_eq(gdk_qp_status(g.dev), 0, "the receiver has not failed");
	close_pair();

	open_pair(false, rnr_retry, FAST, NULL);
	before = naks();
	cr_assert_eq(gdk_wait(g.dev, lib_send(kind, 0, LATE_LEN, false), E2E_EXCL), -EIO);
	cr_assert_eq(lib_syndrome(false), 0x16);
	cr_assert_eq(naks() - before, rnr_retry + 1u, "%s, rnr_retry %u", names[kind], rnr_retry);
	cr_assert_eq(ibv_poll_cq(rcq, 1, &wc), 0, "the receiver has not failed");
	close_pair();
}

Test(recv_verbs, rnr_retry_0_fails_at_once)
{
	for (enum kind kind = SEND; kind < KINDS; kind++)
		never_ready(kind, 0);
}

Test(recv_verbs, rnr_retry_3_tries_four_times)
{
	for (enum kind kind = SEND; kind < KINDS; kind++)
		never_ready(kind, 3);
}

static void wait_for_naks(uint64_t num)
{
	struct bound b = bound_begin(naks(), false);

	while (naks() < num) {
		cr_assert(!bound_passed(&b, naks(), E2E_WAIT_NS), "%lu NAKs of %lu", naks(), num);
		usleep(100);
	}
}

/* The receive is posted after some NAKs. */
static void ready_late(enum kind kind, uint8_t rnr_retry, uint8_t timer, uint64_t after)
{
	uint64_t ticket, before;
	struct ibv_wc wc;

	open_pair(false, rnr_retry, timer, NULL);
	memset(g.buf.mem + TO, 0, ROOM);
	memset(v.mem + TO, 0, ROOM);
	before = naks();
	verbs_send(kind, 64, LATE_LEN, false);
	wait_for_naks(before + after);
	cr_assert_eq(ibv_poll_cq(scq, 1, &wc), 0, "the sender still tries");
	ticket = lib_recv(ROOM);
	expect_lib_received(kind, ticket, 64, LATE_LEN, false);
	cr_assert_eq(vb_wc(scq).status, IBV_WC_SUCCESS);

	before = naks();
	ticket = lib_send(kind, 128, LATE_LEN, false);
	wait_for_naks(before + after);
	verbs_recv(ID, ROOM);
	cr_assert_eq(gdk_wait(g.dev, ticket, E2E_EXCL), 0);
	expect_verbs_received(kind, ID, 128, LATE_LEN);
	close_pair();
}

Test(recv_verbs, rnr_retry_3_succeeds_if_the_receive_is_posted_in_time)
{
	for (enum kind kind = SEND; kind < KINDS; kind++)
		ready_late(kind, 3, SLOW, 1);
}

Test(recv_verbs, rnr_retry_7_tries_until_the_receive_is_posted)
{
	for (enum kind kind = SEND; kind < KINDS; kind++)
		ready_late(kind, 7, FAST, 100);
}

/* ---- receives that do not fit ---- */

static void expect_flushed(struct ibv_cq *cq, uint64_t id, enum ibv_wc_status first)
{
	struct ibv_wc wc = vb_wc(cq);

	cr_assert_eq(wc.status, first, "%s", ibv_wc_status_str(wc.status));
	cr_assert_eq(wc.wr_id, id);
	wc = vb_wc(cq);
	cr_assert_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(wc.wr_id, id + 1);
}

static uint8_t cqe_syndrome(uint64_t ticket)
{
	struct bound b = bound_begin(0, false);
	struct doca_gpunetio_ib_mlx5_err_cqe_ex *cqe = (void *)gdk_cqe_at(gdk_qp_cq_rq(g.dev),
									  ticket);

	while (*(volatile uint8_t *)&cqe->op_own >> 4 != DOCA_GPUNETIO_IB_MLX5_CQE_RESP_ERR)
		cr_assert(!bound_passed(&b, 0, E2E_WAIT_NS), "receive %lu does not complete",
			  ticket);
	return cqe->syndrome;
}

/* Which receive does not fit, and what both sides must report. */
struct misfit {
	uint32_t len, room;
	bool bad_key;
	uint8_t receiver, sender; /* syndromes */
	enum ibv_wc_status receiver_wc, sender_wc;
};

static const struct misfit misfits[] = {
#define TOO_SHORT 0x01, 0x12, IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR
#define BAD_KEY	  0x04, 0x14, IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR
	{ 1, 0, false, TOO_SHORT },
	{ 17, 16, false, TOO_SHORT },
	{ 33, 32, false, TOO_SHORT },
	{ 1025, 1024, false, TOO_SHORT }, /* the second of two packets */
	{ 3000, 2048, false, TOO_SHORT },
	{ 40, 64, true, BAD_KEY },
	{ 3000, 4096, true, BAD_KEY },
};
#define NMISFITS (sizeof(misfits) / sizeof(misfits[0]))

/* From libmlx5 to this library. */
static void lib_receives(const struct misfit *m, enum kind kind, recv_init_fn change)
{
	struct doca_gpu_dev_verbs_addr to;
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint64_t ticket;

	open_pair(false, 0, 1, change);
	to = e2e_addr(g.buf.mem + TO, m->bad_key ? g.buf.mr->lkey ^ 0x100 : g.buf.mr->lkey);
	cr_assert_eq(gdk_recv(g.dev, to, m->room, &ticket, HOW), 0);
	(void)lib_recv(ROOM);
	verbs_send(kind, 0, m->len, false);
	verbs_send(kind, 0, 1, false);
	cr_assert_eq(lib_wait(0, &cqe), -EIO, "%u bytes into %u", m->len, m->room);
	cr_assert_eq(lib_syndrome(true), m->receiver, "%u bytes into %u", m->len, m->room);
	cr_assert_eq(cqe_syndrome(0), m->receiver);
	cr_assert_eq(cqe_syndrome(1), 0x05, "flushed");
	expect_flushed(scq, 0, m->sender_wc);
	close_pair();
}

/* From this library to libmlx5. */
static void verbs_receives(const struct misfit *m, enum kind kind)
{
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .wr_id = 0, .sg_list = &sge, .num_sge = 1 }, *bad;
	uint64_t ticket;

	open_pair(false, 0, 1, NULL);
	sge = vb_sge(&v, TO, m->room);
	sge.lkey ^= m->bad_key ? 0x100 : 0;
	wr.num_sge = m->room ? 1 : 0;
	cr_assert_eq(ibv_post_recv(qp, &wr, &bad), 0);
	verbs_recv(1, ROOM);
	ticket = lib_send(kind, 0, m->len, false);
	(void)lib_send(kind, 0, 1, false);
	cr_assert_eq(gdk_wait(g.dev, ticket, E2E_EXCL), -EIO, "%u bytes into %u", m->len, m->room);
	cr_assert_eq(lib_syndrome(false), m->sender, "%u bytes into %u", m->len, m->room);
	expect_flushed(rcq, 0, m->receiver_wc);
	close_pair();
}

Test(recv_verbs, receives_of_this_library_that_do_not_fit)
{
	for (size_t i = 0; i < NMISFITS; i++) {
		lib_receives(&misfits[i], SEND, NULL);
		lib_receives(&misfits[i], SEND_IMM, misfits[i].bad_key ? NULL : want_inline);
	}
}

Test(recv_verbs, receives_of_libmlx5_that_do_not_fit)
{
	for (size_t i = 0; i < NMISFITS; i++) {
		verbs_receives(&misfits[i], SEND);
		verbs_receives(&misfits[i], SEND_IMM);
	}
}

/* An unreliable connection drops the message, and the next one takes the receive. */
Test(recv_verbs, unreliable_messages_without_a_fitting_receive_are_dropped)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	struct ibv_wc wc;

	open_pair(true, 0, 1, NULL);
	for (enum kind kind = SEND; kind < KINDS; kind++) {
		verbs_send(kind, 0, 100, false);
		cr_assert_eq(vb_wc(scq).status, IBV_WC_SUCCESS, "sent, although it is dropped");
		cr_assert_eq(gdk_wait(g.dev, lib_send(kind, 0, 100, false), E2E_EXCL), 0);
	}
	(void)lib_recv(16);
	verbs_recv(ID, 16);
	verbs_send(SEND, 0, 17, false);
	verbs_send(SEND, 64, 16, false);
	(void)lib_send(SEND, 0, 17, false);
	(void)lib_send(SEND, 64, 16, false);
	cr_assert_eq(lib_wait(0, &cqe), 0);
	cr_assert_eq(gdk_cqe_bytes(cqe), 16);
	cr_assert_eq(memcmp(g.buf.mem + TO, v.mem + 64, 16), 0);
	wc = vb_wc(rcq);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
	cr_assert_eq(wc.byte_len, 16);
	cr_assert_eq(memcmp(v.mem + TO, g.buf.mem + 64, 16), 0);
	cr_assert_eq(ibv_poll_cq(rcq, 1, &wc), 0);
	cr_assert_eq(gdk_poll_one_cq_at(gdk_qp_cq_rq(g.dev), 1, E2E_EXCL), EBUSY);
	close_pair();
}
