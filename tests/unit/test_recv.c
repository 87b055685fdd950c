/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Receives by one thread in exclusive use, end to end: every message that consumes a receive, its
 * CQE, and the errors of a receiver. */
#include <criterion/criterion.h>

#include "../lib/recv_rig.h"

#define HOW gdk_how(E2E_EXCL, GDK_AUTO, GDK_THREAD, 0)

static const struct doca_gpu_dev_verbs_addr nothing;

static struct recv_rig r;

static void open_db(void)
{
	recv_rig_open(&r, (struct recv_rig_how){ .handler = E2E_DB });
}

static void close_rig(void)
{
	recv_rig_close(&r);
}

TestSuite(recv, .init = open_db, .fini = close_rig);

static void fill(struct recv_end *e, uint32_t seed)
{
	for (size_t i = 0; i < RECV_RIG_BYTES; i++)
		e->buf.mem[i] = e2e_pattern(i, seed);
}

static int wait_recv(struct recv_end *e, uint64_t ticket, struct doca_gpunetio_ib_mlx5_cqe64 **cqe)
{
	return gdk_recv_wait(e->dev, ticket, nothing, DOCA_GPUNETIO_VERBS_MCST_DISABLED, E2E_EXCL,
			     cqe);
}

static void post_recv(struct recv_end *e, size_t at, size_t len, uint64_t expect)
{
	uint64_t ticket;

	cr_assert_eq(gdk_recv(e->dev, recv_at(e, at), len, &ticket, HOW), 0);
	cr_assert_eq(ticket, expect);
}

static uint32_t opcode(const struct doca_gpunetio_ib_mlx5_cqe64 *cqe)
{
	return cqe->op_own >> 4;
}

Test(recv, a_send_arrives_in_the_buffer)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint64_t sent;

	fill(&r.a, 1);
	post_recv(&r.b, 4096, 3000, 0);
	cr_assert_eq(recv_dbrec(&r.b), 1);
	cr_assert_eq(r.b.dev->rq_wqe_pi, 1);
	cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, 0), 3000, &sent, HOW), 0);
	cr_assert_eq(wait_recv(&r.b, 0, &cqe), 0);
	cr_assert_eq(gdk_wait(r.a.dev, sent, E2E_EXCL), 0);
	cr_assert_eq(memcmp(r.b.buf.mem + 4096, r.a.buf.mem, 3000), 0);
	cr_assert_eq(opcode(cqe), DOCA_GPUNETIO_IB_MLX5_CQE_RESP_SEND);
	cr_assert_eq(gdk_cqe_bytes(cqe), 3000);
	cr_assert_eq(gdk_cqe_is_inline(cqe), 0);
	cr_assert_eq(r.b.buf.mem[4095], 0);
	cr_assert_eq(r.b.buf.mem[7096], 0);
}

Test(recv, the_immediate_value_is_in_the_cqe)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint64_t sent;

	fill(&r.a, 2);
	post_recv(&r.b, 0, 64, 0);
	post_recv(&r.b, 0, 0, 1);
	cr_assert_eq(gdk_send_imm(r.a.dev, recv_at(&r.a, 8), 64, htobe32(0x12345678), &sent, HOW),
		     0);
	cr_assert_eq(gdk_put_imm(r.a.dev, recv_remote(&r.b, 512), recv_at(&r.a, 16), 100,
				 htobe32(0xabcd), &sent, HOW),
		     0);
	cr_assert_eq(wait_recv(&r.b, 0, &cqe), 0);
	cr_assert_eq(opcode(cqe), DOCA_GPUNETIO_IB_MLX5_CQE_RESP_SEND_IMM);
	cr_assert_eq(be32toh(gdk_cqe_imm(cqe)), 0x12345678);
	cr_assert_eq(memcmp(r.b.buf.mem, r.a.buf.mem + 8, 64), 0);
	cr_assert_eq(wait_recv(&r.b, 1, &cqe), 0);
	cr_assert_eq(opcode(cqe), DOCA_GPUNETIO_IB_MLX5_CQE_RESP_WR_IMM);
	cr_assert_eq(be32toh(gdk_cqe_imm(cqe)), 0xabcd);
	cr_assert_eq(gdk_cqe_bytes(cqe), 100);
	cr_assert_eq(memcmp(r.b.buf.mem + 512, r.a.buf.mem + 16, 100), 0);
	cr_assert_eq(gdk_wait(r.a.dev, sent, E2E_EXCL), 0);
}

Test(recv, a_message_without_data_needs_no_buffer)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint64_t sent;

	post_recv(&r.b, 0, 0, 0);
	cr_assert_eq(gdk_send(r.a.dev, nothing, 0, &sent, HOW), 0);
	cr_assert_eq(wait_recv(&r.b, 0, &cqe), 0);
	cr_assert_eq(opcode(cqe), DOCA_GPUNETIO_IB_MLX5_CQE_RESP_SEND);
	cr_assert_eq(gdk_cqe_bytes(cqe), 0);
	cr_assert_eq(gdk_wait(r.a.dev, sent, E2E_EXCL), 0);
}

Test(recv, many_laps_in_both_directions)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint64_t sent;

	fill(&r.a, 3);
	for (uint64_t i = 0; i < 300; i++) {
		struct recv_end *to = i & 1 ? &r.a : &r.b, *from = i & 1 ? &r.b : &r.a;
		uint32_t len = (uint32_t)(i * 7 % 200 + 1);

		post_recv(to, 32768 + i * 64 % 16384, 256, i / 2);
		cr_assert_eq(gdk_send(from->dev, recv_at(from, i), len, &sent, HOW), 0);
		cr_assert_eq(wait_recv(to, i / 2, &cqe), 0);
		cr_assert_eq(be16toh(cqe->wqe_counter), i / 2);
		cr_assert_eq(gdk_cqe_bytes(cqe), len);
		cr_assert_eq(memcmp(to->buf.mem + 32768 + i * 64 % 16384, from->buf.mem + i, len),
			     0, "message %lu", i);
		cr_assert_eq(gdk_wait(from->dev, sent, E2E_EXCL), 0);
	}
	cr_assert_eq(recv_dbrec(&r.a), 150);
}

Test(recv, waiting_for_all_waits_for_the_last_one)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint64_t sent;

	cr_assert_eq(gdk_recv_wait_all(r.b.dev, nothing, DOCA_GPUNETIO_VERBS_MCST_DISABLED,
				       E2E_EXCL, &cqe),
		     0);
	cr_assert_null(cqe);
	for (uint64_t i = 0; i < 5; i++) {
		post_recv(&r.b, 0, 64, i);
		cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, 0), i + 1, &sent, HOW), 0);
	}
	cr_assert_eq(gdk_recv_wait_all(r.b.dev, nothing, DOCA_GPUNETIO_VERBS_MCST_DISABLED,
				       E2E_EXCL, &cqe),
		     0);
	cr_assert_eq(gdk_cqe_bytes(cqe), 5);
	cr_assert_eq(gdk_wait(r.a.dev, sent, E2E_EXCL), 0);
}

Test(recv, a_dump_is_posted_where_it_is_needed)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	struct gdk_qp_counters c;
	uint64_t sent;

	cr_assert_eq(r.b.dev->need_mcst, 0, "CPU threads need no DUMP");
	for (uint64_t i = 0; i < 3; i++) {
		r.b.dev->need_mcst = i == 2;
		post_recv(&r.b, 0, 64, i);
		cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, 0), 8, &sent, HOW), 0);
		cr_assert_eq(gdk_recv_wait(r.b.dev, i, recv_at(&r.b, 0),
					   i ? GDK_MCST_AUTO : DOCA_GPUNETIO_VERBS_MCST_ENABLED,
					   E2E_EXCL, &cqe),
			     0);
		cr_assert_eq(gdk_verbs_qp_get_counters(r.b.ex, &c), DOCA_SUCCESS);
		cr_assert_eq(c.completions, i < 2 ? 1 : 2, "DUMPs after receive %lu", i);
	}
	cr_assert_eq(gdk_rq_wait(r.b.dev, 2, E2E_EXCL), 0);
	cr_assert_eq(gdk_rq_flush(r.b.dev, E2E_EXCL), 0);
	cr_assert_eq(gdk_verbs_qp_get_counters(r.b.ex, &c), DOCA_SUCCESS);
	cr_assert_eq(c.completions, 2, "waits without an address post a DUMP");
	cr_assert_eq(gdk_wait(r.a.dev, sent, E2E_EXCL), 0);
}

Test(recv, a_buffer_that_is_too_short_ends_both_sides)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	struct gdk_qp_recv_counters c;
	uint64_t sent, ticket;

	post_recv(&r.b, 0, 16, 0);
	post_recv(&r.b, 64, 16, 1);
	cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, 0), 8, &sent, HOW), 0);
	cr_assert_eq(wait_recv(&r.b, 0, &cqe), 0);
	cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, 0), 17, &sent, HOW), 0);
	cr_assert_eq(wait_recv(&r.b, 1, &cqe), -EIO);
	cr_assert_eq(((struct doca_gpunetio_ib_mlx5_err_cqe_ex *)cqe)->syndrome, 0x01);
	cr_assert_eq(opcode(cqe), DOCA_GPUNETIO_IB_MLX5_CQE_RESP_ERR);
	cr_assert_eq(gdk_wait(r.a.dev, sent, E2E_EXCL), -EIO);
	cr_assert_eq(gdk_qp_status(r.b.dev), -EIO, "a failed receive ends the send queue, too");
	cr_assert_eq(gdk_recv(r.b.dev, recv_at(&r.b, 0), 16, &ticket, HOW), -EIO);
	cr_assert_eq(gdk_verbs_qp_get_recv_counters(r.b.ex, &c), DOCA_SUCCESS);
	cr_assert_eq(c.status, -EIO);
	cr_assert_eq(c.error_wqe, 1);
	cr_assert_eq(c.completions, 1);
	cr_assert_eq(c.posted, 2);
}

/* The sender retries until its rnr_retry is used up; e2e_connect() sets 1. */
Test(recv, a_receive_that_is_not_posted_fails_the_sender_only)
{
	uint64_t sent;

	cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, 0), 8, &sent, HOW), 0);
	cr_assert_eq(gdk_wait(r.a.dev, sent, E2E_EXCL), -EIO);
	cr_assert_eq(gdk_qp_status(r.b.dev), 0);
}

Test(recv, a_wait_hears_the_abort_and_the_limit)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint64_t posted;

	post_recv(&r.b, 0, 64, 0);
	cr_assert_eq(gdk_verbs_qp_set_wait_limit(r.b.ex, 3000000), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_qp_abort(r.b.ex), DOCA_SUCCESS);
	cr_assert_eq(gdk_recv(r.b.dev, recv_at(&r.b, 0), 64, &posted, HOW), -ECANCELED,
		     "the next receive after a plain one");
	cr_assert_eq(wait_recv(&r.b, 0, &cqe), -ECANCELED);
	cr_assert_eq(gdk_verbs_qp_clear_abort(r.b.ex), DOCA_SUCCESS);
	cr_assert_eq(wait_recv(&r.b, 0, &cqe), -ETIMEDOUT);
	cr_assert_eq(gdk_qp_status(r.b.dev), -ETIMEDOUT);
}

Test(recv, a_full_queue_waits_until_a_receive_is_complete)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint64_t sent, ticket;

	for (uint64_t i = 0; i < 64; i++)
		post_recv(&r.b, 0, 64, i);
	cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, 0), 8, &sent, HOW), 0);
	post_recv(&r.b, 0, 64, 64);
	cr_assert_eq(wait_recv(&r.b, 0, &cqe), 0);
	cr_assert_eq(gdk_verbs_qp_set_wait_limit(r.b.ex, 1000000), DOCA_SUCCESS);
	cr_assert_eq(gdk_recv(r.b.dev, recv_at(&r.b, 0), 64, &ticket, HOW), -ETIMEDOUT);
	cr_assert_eq(gdk_wait(r.a.dev, sent, E2E_EXCL), 0);
}

Test(recv, sizes_that_no_wqe_can_have_are_refused)
{
	uint64_t ticket;

	cr_assert_eq(gdk_recv(r.b.dev, nothing, GDK_CHUNK + 1, &ticket, HOW), -EINVAL);
	cr_assert_eq(gdk_send(r.a.dev, nothing, GDK_CHUNK + 1, &ticket, HOW), -EINVAL);
	cr_assert_eq(gdk_send_imm(r.a.dev, nothing, GDK_CHUNK + 1, 0, &ticket, HOW), -EINVAL);
	cr_assert_eq(recv_dbrec(&r.b), 0);
}

/* ---- other shapes of the queue ---- */

Test(recv_shapes, lists_of_buffers_are_filled_in_order)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	struct doca_gpu_dev_verbs_addr bufs[5];
	uint32_t bytes[5] = { 10, 0, 20, 30, 1 };
	uint64_t idx, sent;

	recv_rig_open(&r, (struct recv_rig_how){ .handler = E2E_DB, .rq_wr = 8, .sges = 3 });
	fill(&r.a, 4);
	cr_assert_eq(gdk_rwqe_segs(r.b.dev), 4, "rounded up to a power of two");
	for (int i = 0; i < 5; i++)
		bufs[i] = recv_at(&r.b, 1000 * (size_t)i);
	for (uint64_t i = 0; i < 20; i++) {
		cr_assert_eq(gdk_rq_reserve(r.b.dev, 1, E2E_EXCL, 0, &idx), 0);
		cr_assert_eq(gdk_wqe_recv_list(r.b.dev, gdk_get_rwqe_ptr(r.b.dev, idx), bufs, bytes,
					       i & 1 ? 3 : 4),
			     0);
		cr_assert_eq(
			gdk_wqe_recv_list(r.b.dev, gdk_get_rwqe_ptr(r.b.dev, idx), bufs, bytes, 5),
			-EINVAL);
		gdk_rq_mark_ready(r.b.dev, idx, idx, E2E_EXCL);
		cr_assert_eq(gdk_rq_submit(r.b.dev, idx + 1, HOW), 0);
		cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, i), 30, &sent, HOW), 0);
		cr_assert_eq(wait_recv(&r.b, idx, &cqe), 0);
		cr_assert_eq(memcmp(r.b.buf.mem, r.a.buf.mem + i, 10), 0);
		cr_assert_eq(memcmp(r.b.buf.mem + 2000, r.a.buf.mem + i + 10, 20), 0);
	}
	/* A list of 2 buffers, 30 bytes, ends before the segments of an earlier, longer list. */
	cr_assert_eq(gdk_rq_reserve(r.b.dev, 1, E2E_EXCL, 0, &idx), 0);
	cr_assert_eq(gdk_wqe_recv_list(r.b.dev, gdk_get_rwqe_ptr(r.b.dev, idx), bufs, bytes, 3), 0);
	gdk_rq_mark_ready(r.b.dev, idx, idx, E2E_EXCL);
	cr_assert_eq(gdk_rq_submit(r.b.dev, idx + 1, HOW), 0);
	cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, 0), 31, &sent, HOW), 0);
	cr_assert_eq(wait_recv(&r.b, idx, &cqe), -EIO);
	recv_rig_close(&r);
}

static void ping_pong(enum doca_gpu_dev_verbs_nic_handler handler)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	struct gdk_qp_counters c;
	uint64_t sent;

	recv_rig_open(&r, (struct recv_rig_how){ .handler = handler, .rq_wr = 4 });
	for (uint64_t i = 0; i < 30; i++) {
		post_recv(&r.b, 0, 64, i);
		cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, 0), 8, &sent, HOW), 0);
		if (handler == E2E_PROXY)
			cr_assert_eq(doca_gpu_verbs_cpu_proxy_progress(r.a.ex, &(bool){ 0 }), 0);
		cr_assert_eq(wait_recv(&r.b, i, &cqe), 0);
	}
	cr_assert_eq(gdk_verbs_qp_get_counters(r.b.ex, &c), DOCA_SUCCESS);
	cr_assert_eq(c.doorbells, 0, "a receive writes no register");
	cr_assert_eq(c.wqes_reserved, 0);
	cr_assert_neq(r.b.dev->gdk_rq->sq_db, r.b.dev->sq_db);
	cr_assert_eq(r.b.dev->gdk_rq->sq_db, (void *)r.b.dev->gdk_rq->reserved3);
	if (handler == E2E_PROXY)
		cr_assert_eq(*r.b.ex->cpu_db, 0, "a receive does not raise the send counter");
	cr_assert_eq(recv_dbrec(&r.b), 30);
	recv_rig_close(&r);
}

Test(recv_shapes, with_each_handler)
{
	ping_pong(E2E_DB);
	ping_pong(E2E_BF);
	ping_pong(E2E_PROXY);
}

Test(recv_shapes, without_a_send_dbrec)
{
	E2E_NEEDS_NO_DBR();
	ping_pong(E2E_NO_DBR);
}

Test(recv_shapes, a_queue_that_is_not_exported_is_refused)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	struct gdk_qp_recv_counters c;
	uint64_t ticket;

	recv_rig_open(&r, (struct recv_rig_how){ .handler = E2E_DB, .no_rq = true });
	cr_assert_null(r.b.dev->gdk_rq);
	cr_assert_eq(gdk_recv(r.b.dev, recv_at(&r.b, 0), 8, &ticket, HOW), -EOPNOTSUPP);
	cr_assert_eq(gdk_rq_reserve(r.b.dev, 1, E2E_EXCL, 0, &ticket), -EOPNOTSUPP);
	cr_assert_eq(gdk_rq_submit(r.b.dev, 1, HOW), -EOPNOTSUPP);
	cr_assert_eq(wait_recv(&r.b, 0, &cqe), -EOPNOTSUPP);
	cr_assert_eq(gdk_verbs_qp_get_recv_counters(r.b.ex, &c), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(recv_dbrec(&r.b), 0);
	recv_rig_close(&r);
}

/* ---- what cannot be exported ---- */

static doca_error_t try_export(struct recv_end *e, doca_verbs_cq_t *cq_rq)
{
	struct doca_gpu_verbs_qp *ex;

	return gdk_verbs_export_qp_rq(r.nic.gpu, e->qp, E2E_DB, e->scq, cq_rq,
				      DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR, &ex);
}

static bool has_rq, shares_cq;

static void change_queues(doca_verbs_qp_init_attr_t *init)
{
	if (!has_rq)
		doca_verbs_qp_init_attr_set_rq_wr(init, 0);
	if (shares_cq)
		doca_verbs_qp_init_attr_set_receive_cq(init, r.a.scq);
}

/* Creates the QP of r.a anew. */
static void recreate(bool rq, bool shared)
{
	has_rq = rq;
	shares_cq = shared;
	E2E_REQUIRE(!doca_verbs_qp_destroy(r.a.qp));
	recv_qp_create(&r.a, change_queues);
}

Test(recv_refused, receive_queues_and_cqs_that_do_not_fit, .init = open_db)
{
	doca_verbs_cq_t *small = recv_cq_open(&r.nic, 32), *mine = r.a.rcq;

	cr_assert_eq(doca_gpu_verbs_unexport_qp(r.nic.gpu, r.a.ex), DOCA_SUCCESS);
	cr_assert_eq(try_export(&r.a, r.b.rcq), DOCA_ERROR_INVALID_VALUE, "the CQ of another QP");
	recreate(false, false);
	cr_assert_eq(try_export(&r.a, r.a.rcq), DOCA_ERROR_INVALID_VALUE, "no receive queue");
	recreate(true, true);
	cr_assert_eq(try_export(&r.a, r.a.scq), DOCA_ERROR_NOT_SUPPORTED, "the send CQ");
	r.a.rcq = small;
	recreate(true, false);
	cr_assert_eq(try_export(&r.a, small), DOCA_ERROR_INVALID_VALUE, "32 entries for 64 WQEs");
	r.a.rcq = r.b.rcq;
	recreate(true, false);
	cr_assert_eq(try_export(&r.a, r.b.rcq), DOCA_ERROR_IN_USE, "the CQ of an exported QP");
	r.a.rcq = mine;
	recreate(true, false);
	cr_assert_eq(gdk_verbs_export_qp_rq(r.nic.gpu, r.a.qp, E2E_DB, r.a.scq, r.a.rcq,
					    DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR,
					    &r.a.ex),
		     DOCA_SUCCESS, "the refusals left nothing behind");
	cr_assert_eq(doca_verbs_cq_destroy(small), DOCA_SUCCESS);
	recv_rig_close(&r);
}

/* ---- data in the CQE ---- */

static void want_inline(doca_verbs_qp_init_attr_t *init)
{
	cr_assert_eq(doca_verbs_qp_init_attr_set_cqe_inline(init, 1), DOCA_SUCCESS);
}

Test(recv_inline, short_messages_are_in_the_cqe)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	struct doca_verbs_device_attr *attr;
	uint64_t sent;

	recv_rig_open_with(&r, (struct recv_rig_how){ .handler = E2E_DB, .rq_wr = 8 }, want_inline);
	cr_assert_eq(doca_verbs_query_device(r.nic.ctx, &attr), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_device_attr_get_is_cqe_inline_supported(attr), DOCA_SUCCESS);
	doca_verbs_device_attr_free(attr);
	fill(&r.a, 5);
	for (uint32_t len = 1; len <= 40; len++) {
		memset(r.b.buf.mem, 0, 64);
		post_recv(&r.b, 0, 64, len - 1);
		cr_assert_eq(gdk_send(r.a.dev, recv_at(&r.a, len), len, &sent, HOW), 0);
		cr_assert_eq(wait_recv(&r.b, len - 1, &cqe), 0);
		cr_assert_eq(gdk_cqe_bytes(cqe), len);
		cr_assert_eq(gdk_cqe_is_inline(cqe), len <= 32, "%u bytes", len);
		cr_assert_eq(memcmp(len <= 32 ? gdk_cqe_inl_data(cqe) : r.b.buf.mem,
				    r.a.buf.mem + len, len),
			     0, "%u bytes", len);
	}
	recv_rig_close(&r);
}

Test(recv_inline, the_attribute_is_returned_and_needs_a_receive_queue, .init = open_db)
{
	struct gdk_qp_init_attr values;
	doca_verbs_qp_init_attr_t *init;
	doca_verbs_qp_attr_t *attr;
	doca_verbs_qp_t *qp;

	cr_assert_eq(doca_verbs_qp_init_attr_create(&init), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_attr_create(&attr), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_init_attr_set_cqe_inline(init, 2), DOCA_ERROR_INVALID_VALUE);
	want_inline(init);
	doca_verbs_qp_init_attr_set_sq_wr(init, 4);
	doca_verbs_qp_init_attr_set_send_max_sges(init, 1);
	doca_verbs_qp_init_attr_set_send_cq(init, r.a.scq);
	cr_assert_eq(doca_verbs_qp_create(r.nic.dev, init, &qp), DOCA_ERROR_INVALID_VALUE);
	doca_verbs_qp_init_attr_set_rq_wr(init, 4);
	doca_verbs_qp_init_attr_set_receive_max_sges(init, 1);
	doca_verbs_qp_init_attr_set_receive_cq(init, r.a.rcq);
	cr_assert_eq(doca_verbs_qp_create(r.nic.dev, init, &qp), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_query(qp, attr, init, NULL), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_qp_init_attr_get(init, &values), DOCA_SUCCESS);
	cr_assert(values.cqe_inline);
	cr_assert_eq(doca_verbs_qp_query(r.a.qp, attr, init, NULL), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_qp_init_attr_get(init, &values), DOCA_SUCCESS);
	cr_assert_not(values.cqe_inline);
	cr_assert_eq(doca_verbs_qp_destroy(qp), DOCA_SUCCESS);
	doca_verbs_qp_attr_destroy(attr);
	doca_verbs_qp_init_attr_destroy(init);
	close_rig();
}

/* The layout of an entry of 128 bytes: the CQE is its second half. */
Test(recv_inline, cqes_made_by_hand)
{
	struct doca_gpunetio_ib_mlx5_cqe64 entry[2];

	memset(entry, 0, sizeof(entry));
	cr_assert_eq(gdk_cqe_is_inline(&entry[1]), 0);
	entry[1].op_own = 0x24;
	cr_assert_eq(gdk_cqe_is_inline(&entry[1]), 1);
	cr_assert_eq(gdk_cqe_inl_data(&entry[1]), (uint8_t *)&entry[1]);
	entry[1].op_own = 0x29;
	cr_assert_eq(gdk_cqe_is_inline(&entry[1]), 1);
	cr_assert_eq(gdk_cqe_inl_data(&entry[1]), (uint8_t *)&entry[0]);
	entry[1].op_own = 0x23;
	cr_assert_eq(gdk_cqe_is_inline(&entry[1]), 0);
	entry[1].byte_cnt = htobe32(0x01020304);
	cr_assert_eq(gdk_cqe_bytes(&entry[1]), 0x01020304);
}

/* ---- high-level queue pairs ---- */

static struct doca_gpu_verbs_qp_init_attr_hl hl_attr(void)
{
	return (struct doca_gpu_verbs_qp_init_attr_hl){ .gpu_dev = r.nic.gpu,
							.net_dev = r.nic.dev,
							.nic_handler = E2E_DB,
							.sq_nwqe = 16 };
}

/* The queue pair has num receive WQEs and receives what it sends to itself. */
static void use_hl(struct doca_gpu_verbs_qp_hl *hl, const struct gdk_qp_rq_attr_hl *rq,
		   uint32_t num)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	doca_verbs_cq_t *cq_rq, *same;
	struct e2e_qp q;
	uint64_t sent;

	e2e_qp_adopt(&r.nic, &q, hl);
	cr_assert_eq(q.dev->rq_wqe_num, num);
	cr_assert_eq(q.dev->rq_wqe_daddr, hl->qp_umem_gpu_ptr);
	cr_assert_eq(gdk_verbs_qp_hl_get_cq_rq(hl, &cq_rq), DOCA_SUCCESS);
	cr_assert_neq(cq_rq, hl->cq_sq);
	cr_assert_eq(gdk_verbs_qp_hl_get_cq_rq(hl, &same), DOCA_SUCCESS);
	cr_assert_eq(cq_rq, same);
	/* Connected to itself. */
	cr_assert_eq(e2e_connect(&r.nic, hl->qp, &r.nic.gid, q.qpn, (struct e2e_path){ 14, 7, 99 }),
		     DOCA_SUCCESS);
	for (uint64_t i = 0; i < 3 * num; i++) {
		uint64_t ticket;

		cr_assert_eq(gdk_recv(q.dev, recv_at(&r.b, 0), 64, &ticket, HOW), 0);
		cr_assert_eq(gdk_send(q.dev, recv_at(&r.a, i), 20, &sent, HOW), 0);
		cr_assert_eq(gdk_recv_wait(q.dev, ticket, nothing,
					   DOCA_GPUNETIO_VERBS_MCST_DISABLED, E2E_EXCL, &cqe),
			     0);
		cr_assert_eq(gdk_cqe_is_inline(cqe), rq->cqe_inline);
		cr_assert_eq(memcmp(rq->cqe_inline ? gdk_cqe_inl_data(cqe) : r.b.buf.mem,
				    r.a.buf.mem + i, 20),
			     0);
		cr_assert_eq(gdk_wait(q.dev, sent, E2E_EXCL), 0);
	}
}

static void check_hl(uint32_t flags, const struct gdk_qp_rq_attr_hl *rq, uint32_t num)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = hl_attr();
	struct doca_gpu_verbs_qp_hl *hl;

	cr_assert_eq(gdk_verbs_create_qp_rq_hl(&attr, rq, flags, &hl), DOCA_SUCCESS);
	use_hl(hl, rq, num);
	cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(hl), DOCA_SUCCESS);
}

Test(recv_hl, creates_both_queues, .init = open_db, .fini = close_rig)
{
	fill(&r.a, 6);
	check_hl(0, &(struct gdk_qp_rq_attr_hl){ .rq_nwqe = 16 }, 16);
	check_hl(0, &(struct gdk_qp_rq_attr_hl){ .rq_nwqe = 1 }, 4);
	check_hl(0, &(struct gdk_qp_rq_attr_hl){ .rq_nwqe = 5, .receive_max_sges = 3 }, 8);
	check_hl(GDK_QP_HL_QUEUES_ON_HOST,
		 &(struct gdk_qp_rq_attr_hl){ .rq_nwqe = 100, .cqe_inline = true }, 128);
}

/* The main QP of a group has the receive queue; the companion has none. */
Test(recv_hl, creates_groups, .init = open_db, .fini = close_rig)
{
	const struct gdk_qp_rq_attr_hl rq = { .rq_nwqe = 20, .cqe_inline = true };
	struct doca_gpu_verbs_qp_init_attr_hl attr = hl_attr();
	struct doca_gpu_verbs_qp_group_hl *g;
	struct gdk_qp_recv_counters c;
	doca_verbs_cq_t *cq;

	fill(&r.a, 8);
	for (uint32_t flags = 0; flags <= GDK_QP_HL_QUEUES_ON_HOST; flags++) {
		cr_assert_eq(gdk_verbs_create_qp_group_rq_hl(&attr, &rq, flags, &g), DOCA_SUCCESS);
		use_hl(&g->qp_main, &rq, 32);
		cr_assert_eq(gdk_verbs_qp_get_recv_counters(g->qp_main.qp_gverbs, &c),
			     DOCA_SUCCESS);
		cr_assert_eq(c.completions, 96);
		cr_assert_eq(gdk_verbs_qp_hl_get_cq_rq(&g->qp_companion, &cq),
			     DOCA_ERROR_INVALID_VALUE);
		cr_assert_eq(gdk_verbs_qp_get_recv_counters(g->qp_companion.qp_gverbs, &c),
			     DOCA_ERROR_INVALID_VALUE);
		cr_assert_eq(doca_gpu_verbs_destroy_qp_group_hl(g), DOCA_SUCCESS);
	}
}

Test(recv_hl, refuses_values_out_of_range, .init = open_db, .fini = close_rig)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = hl_attr();
	struct gdk_qp_rq_attr_hl rq = { .rq_nwqe = 0 };
	struct doca_gpu_verbs_qp_group_hl *g;
	struct doca_gpu_verbs_qp_hl *hl;
	doca_verbs_cq_t *cq;

	cr_assert_eq(gdk_verbs_create_qp_rq_hl(&attr, &rq, 0, &hl), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(gdk_verbs_create_qp_group_rq_hl(&attr, &rq, 0, &g), DOCA_ERROR_INVALID_VALUE);
	rq.rq_nwqe = 32769;
	cr_assert_eq(gdk_verbs_create_qp_rq_hl(&attr, &rq, 0, &hl), DOCA_ERROR_INVALID_VALUE);
	rq.rq_nwqe = 8;
	rq.receive_max_sges = 33;
	cr_assert_eq(gdk_verbs_create_qp_rq_hl(&attr, &rq, 0, &hl), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(gdk_verbs_create_qp_hl(&attr, 0, &hl), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_qp_hl_get_cq_rq(hl, &cq), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(hl), DOCA_SUCCESS);
}
