/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * DMA objects that CPU threads drive as kernels do: copies by both engines, refused arguments, full
 * queues, errors, aborts and time limits; and that gdaki and libmlx5 post the same bytes.
 */
#include "doca_dma_rig.h"

#include <infiniband/mlx5dv.h>

#include "../../core/nic/net_dev.h"
#include "../../core/reclaim.h"

#define ALL  (DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE)
#define COPY GDK_DMA_ENGINE_COPY
#define WR   GDK_DMA_ENGINE_RDMA_WRITE

static void open_all(void)
{
	base_open(ALL);
}

TestSuite(doca_dma, .init = open_all, .fini = base_close, .timeout = 60);

/* ---- copies ---- */

struct worker {
	pthread_t thread;
	unsigned int n;
	pthread_barrier_t *all;
};

/* Thread n copies its 8 buffers in reverse; one thread commits, each waits. */
static void *work(void *arg)
{
	struct worker *w = arg;
	unsigned int i;

	for (i = 0; i < 8; i++)
		OK(copy(w->n * 8 + i, 0, BUFS - 1 - (w->n * 8 + i), 0, SIZE));
	pthread_barrier_wait(w->all);
	if (w->n == 0)
		OK(doca_gpu_dev_dma_commit(handle));
	OK(gdk_gpu_dev_dma_wait_all(handle, 20 * SECOND));
	return NULL;
}

static void copy_by_threads(enum gdk_dma_engine engine)
{
	struct worker w[8];
	pthread_barrier_t all;
	unsigned int i;

	dma_start(engine, 256);
	pthread_barrier_init(&all, NULL, 8);
	for (i = 0; i < 8; i++) {
		w[i] = (struct worker){ .n = i, .all = &all };
		cr_assert_eq(pthread_create(&w[i].thread, NULL, work, &w[i]), 0);
	}
	for (i = 0; i < 8; i++)
		pthread_join(w[i].thread, NULL);
	for (i = 0; i < BUFS; i++)
		cr_expect_arr_eq(to.mem + (BUFS - 1 - i) * SIZE, from.mem + i * SIZE, SIZE,
				 "buffer %u", i);
	pthread_barrier_destroy(&all);
	dma_stop();
}

Test(doca_dma, threads_copy_by_the_engine)
{
	copy_by_threads(COPY);
}

Test(doca_dma, threads_copy_by_rdma_writes)
{
	copy_by_threads(WR);
}

static void offsets_and_lengths(enum gdk_dma_engine engine)
{
	uint64_t ticket = 0;

	dma_start(engine, 16);
	OK(copy(0, 17, 1, 33, 1));
	OK(gdk_gpu_dev_dma_memcpy(handle, buf_of(&from, 2), 1, buf_of(&to, 3), 0, SIZE - 1,
				  &ticket));
	OK(gdk_gpu_dev_dma_wait(handle, ticket, 20 * SECOND));
	cr_expect_eq(to.mem[SIZE + 33], from.mem[17]);
	cr_expect_eq(to.mem[SIZE + 32] | to.mem[SIZE + 34], 0);
	cr_expect_arr_eq(to.mem + 3 * SIZE, from.mem + 2 * SIZE + 1, SIZE - 1);
	cr_expect_eq(to.mem[4 * SIZE - 1], 0);
	dma_stop();
}

Test(doca_dma, offsets_and_lengths_by_the_engine)
{
	offsets_and_lengths(COPY);
}

Test(doca_dma, offsets_and_lengths_by_rdma_writes)
{
	offsets_and_lengths(WR);
}

/* Copies longer than one request are several requests. */
Test(doca_dma, long_copies_are_cut)
{
	struct doca_gpu_dma cut;

	dma_start(COPY, 16);
	cut = *handle;
	cut.max = 1024;
	handle = &cut;
	OK(copy(0, 0, 0, 0, SIZE - 100));
	cr_expect_eq(*gdk_rsvd_index(cut.qp), 4);
	OK(gdk_gpu_dev_dma_wait_all(handle, 20 * SECOND));
	cr_expect_arr_eq(to.mem, from.mem, SIZE - 100);
	dma_stop();
}

/* Nothing rings before the commit, so the first copies begin when the ring is full. */
Test(doca_dma, a_full_ring_begins_copies_without_commit)
{
	unsigned int i;

	dma_start(COPY, 8);
	for (i = 0; i < 3 * BUFS; i++)
		OK(copy(i % BUFS, 0, i % BUFS, 0, SIZE));
	OK(gdk_gpu_dev_dma_wait_all(handle, 20 * SECOND));
	cr_expect_arr_eq(to.mem, from.mem, BUFS * SIZE);
	dma_stop();
}

Test(doca_dma, bad_arguments_post_nothing)
{
	struct doca_gpu_buf *f, *t;

	dma_start(COPY, 16);
	f = buf_of(&from, 0);
	t = buf_of(&to, 0);
	cr_expect_eq(copy(0, 0, 0, 0, 0), DOCA_ERROR_INVALID_VALUE, "length 0");
	cr_expect_eq(copy(0, 0, 0, 0, SIZE + 1), DOCA_ERROR_INVALID_VALUE, "too long");
	cr_expect_eq(copy(0, 1, 0, 0, SIZE), DOCA_ERROR_INVALID_VALUE, "source out of bounds");
	cr_expect_eq(copy(0, 0, 0, 1, SIZE), DOCA_ERROR_INVALID_VALUE, "target out of bounds");
	cr_expect_eq(copy(0, UINT64_MAX, 0, 0, 2), DOCA_ERROR_INVALID_VALUE, "offset wraps");
	cr_expect_eq(copy(0, 0, 0, 0, UINT64_MAX), DOCA_ERROR_INVALID_VALUE, "length wraps");
	cr_expect_eq(doca_gpu_dev_dma_memcpy(NULL, f, 0, t, 0, 1), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_dev_dma_memcpy(handle, NULL, 0, t, 0, 1), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_dev_dma_memcpy(handle, f, 0, NULL, 0, 1), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_dev_dma_memcpy(handle, t, 0, t, 8, 9), DOCA_ERROR_INVALID_VALUE,
		     "overlap");
	cr_expect_eq(doca_gpu_dev_dma_memcpy(handle, t, 8, t, 0, 9), DOCA_ERROR_INVALID_VALUE,
		     "overlap");
	cr_expect_eq(doca_gpu_dev_dma_memcpy(handle, t, 8, t, 8, 1), DOCA_ERROR_INVALID_VALUE,
		     "overlap");
	cr_expect_eq(*gdk_rsvd_index(handle->qp), 0);
	OK(doca_gpu_dev_dma_memcpy(handle, t, 0, t, 8, 8));
	OK(gdk_gpu_dev_dma_wait_all(handle, 20 * SECOND));
	cr_expect_eq(doca_gpu_dev_dma_commit(NULL), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(gdk_gpu_dev_dma_wait_all(NULL, 0), DOCA_ERROR_INVALID_VALUE);
	dma_stop();
}

Test(doca_dma, the_largest_copy_is_written_as_length_0)
{
	struct doca_gpu_dma fake = { .max = GDK_DMA_MAX_COPY };
	struct gdk_dma_span s = { .len = GDK_DMA_MAX_COPY };
	struct gdk_one one = gdk_dma_one(&fake, &s, 1u << 31, 0);

	cr_expect_eq((uint32_t)one.w[2], 0);
	cr_expect_eq((uint32_t)one.w[4], 0);
	one = gdk_dma_one(&fake, &s, (1u << 31) - 1, 0);
	cr_expect_eq((uint32_t)one.w[2], htobe32(0x7fffffff));
}

/* ---- the same bytes as libmlx5 ---- */

/* Posts one copy with mlx5dv_wr_memcpy(), and returns the slot of its ring. */
static const uint8_t *post_by_libmlx5(const struct gdk_dma_span *s, struct ibv_qp **out,
				      struct ibv_cq **cq)
{
	struct mlx5dv_qp_init_attr dv = { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
					  .send_ops_flags = MLX5DV_QP_EX_WITH_MEMCPY };
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_RC,
					    .cap = { .max_send_wr = 8, .max_send_sge = 1 },
					    .comp_mask = IBV_QP_INIT_ATTR_PD |
							 IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					    .pd = dev->pd,
					    .send_ops_flags = IBV_QP_EX_WITH_SEND };
	struct mlx5dv_qp qp_view = { 0 };
	struct mlx5dv_obj obj = { 0 };
	struct ibv_qp_ex *ex;
	struct ibv_qp *qp;

	*cq = ibv_create_cq(dev->ctx, 8, NULL, NULL, 0);
	cr_assert(*cq);
	init.send_cq = init.recv_cq = *cq;
	qp = mlx5dv_create_qp(dev->ctx, &init, &dv);
	cr_assert(qp, "mlx5dv_create_qp: %s", strerror(errno));
	ex = ibv_qp_to_qp_ex(qp);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	mlx5dv_wr_memcpy(mlx5dv_qp_ex_from_ibv_qp_ex(ex), be32toh(s->to_key), s->to,
			 be32toh(s->from_key), s->from, s->len);
	obj.qp.in = qp;
	obj.qp.out = &qp_view;
	cr_assert_eq(mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP), 0);
	*out = qp;
	return qp_view.sq.buf;
}

/* Only the number of the queue pair, and key and address of the result, may differ. */
static void expect_same(uint64_t len)
{
	struct gdk_dma_span s = { .from = 0x1122334455667788,
				  .to = 0x99aabbccddeeff00,
				  .len = len,
				  .from_key = htobe32(0x01020304),
				  .to_key = htobe32(0x05060708) };
	const uint8_t *ours, *theirs;
	uint64_t ticket = 0;
	struct ibv_qp *qp;
	struct ibv_cq *cq;

	dma_start(COPY, 16);
	cr_assert_eq(gdk_dma_post(handle, s, &ticket), 0);
	ours = (const uint8_t *)gdk_get_wqe_ptr(handle->qp, ticket);
	theirs = post_by_libmlx5(&s, &qp, &cq);
	cr_expect_arr_eq(ours, theirs, 4, "opcode, index, modifier");
	cr_expect_eq(ours[7], theirs[7], "size");
	cr_expect_arr_eq(ours + 8, theirs + 8, 12, "flags, immediate, MMO control");
	cr_expect_arr_eq(ours + 32, theirs + 32, 32, "source and destination");
	cr_expect_eq(ours[3], 0x2f);
	cr_expect_eq(ours[0], 1);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	cr_expect_eq(ibv_destroy_cq(cq), 0);
	dma_stop();
}

Test(doca_dma, libmlx5_posts_the_same_bytes)
{
	expect_same(1);
	expect_same(0x12345678);
	expect_same(1u << 30);
	expect_same(GDK_DMA_MAX_COPY);
}

/* ---- errors ---- */

static uint64_t now(void)
{
	return gdk_now_ns();
}

static void failing_copy(enum gdk_dma_engine engine)
{
	struct doca_gpu_buf bad;
	uint64_t start = now();

	dma_start(engine, 16);
	OK(copy(0, 0, 0, 0, SIZE));
	bad = *buf_of(&to, 1);
	bad.mkey = htobe32(0x777700);
	OK(doca_gpu_dev_dma_memcpy(handle, buf_of(&from, 1), 0, &bad, 0, SIZE));
	OK(copy(2, 0, 2, 0, SIZE));
	OK(doca_gpu_dev_dma_commit(handle));
	cr_expect_eq(gdk_gpu_dev_dma_wait_all(handle, 0), DOCA_ERROR_IO_FAILED);
	cr_expect_eq(gdk_gpu_dev_dma_wait(handle, 1, 0), DOCA_ERROR_IO_FAILED);
	cr_expect_eq(copy(0, 0, 0, 0, 1), DOCA_ERROR_IO_FAILED, "the queue has ended");
	cr_expect_eq(doca_gpu_dev_dma_commit(handle), DOCA_ERROR_IO_FAILED);
	cr_expect_lt(now() - start, 20 * SECOND);
	cr_expect_arr_eq(to.mem, from.mem, SIZE, "the copy before the failed one");
	dma_stop();
	dma_start(engine, 16);
	OK(copy(5, 0, 5, 0, SIZE));
	OK(gdk_gpu_dev_dma_wait_all(handle, 20 * SECOND));
	dma_stop();
}

Test(doca_dma, a_bad_key_ends_waits_of_the_engine)
{
	failing_copy(COPY);
}

Test(doca_dma, a_bad_key_ends_waits_of_rdma_writes)
{
	failing_copy(WR);
}

static void *abort_soon(void *arg)
{
	(void)arg;
	usleep(100000);
	OK(gdk_dma_abort(dma));
	return NULL;
}

/* Reserves a slot that is never published, so that later copies cannot begin. */
static void block_queue(void)
{
	uint64_t idx;

	cr_assert_eq(
		gdk_reserve(handle->qp, 1, DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU, 0, &idx),
		0);
}

Test(doca_dma, an_abort_ends_waits_for_copies_and_for_slots)
{
	doca_error_t err = DOCA_SUCCESS;
	uint64_t start = now();
	pthread_t thread;
	unsigned int i;

	dma_start(COPY, 8);
	block_queue();
	cr_assert_eq(pthread_create(&thread, NULL, abort_soon, NULL), 0);
	for (i = 0; i < 16 && !err; i++)
		err = copy(i, 0, i, 0, SIZE);
	cr_expect_eq(err, DOCA_ERROR_SHUTDOWN, "%s", doca_error_get_name(err));
	cr_expect_eq(gdk_gpu_dev_dma_wait_all(handle, 0), DOCA_ERROR_SHUTDOWN);
	pthread_join(thread, NULL);
	cr_expect_lt(now() - start, 20 * SECOND);
	dma_stop();
}

Test(doca_dma, limits_end_waits)
{
	dma_start(COPY, 8);
	block_queue();
	OK(copy(0, 0, 0, 0, SIZE));
	cr_expect_eq(gdk_gpu_dev_dma_wait_all(handle, SECOND / 50), DOCA_ERROR_TIME_OUT);
	cr_expect_eq(gdk_qp_status(handle->qp), 0, "the queue goes on");
	OK(gdk_dma_set_wait_limit(dma, SECOND / 50));
	cr_expect_eq(gdk_gpu_dev_dma_wait_all(handle, 0), DOCA_ERROR_TIME_OUT);
	cr_expect_eq(copy(0, 0, 0, 0, SIZE), DOCA_ERROR_TIME_OUT, "the queue has ended");
	dma_stop();
}

/* ---- host calls ---- */

Test(doca_dma, the_object_reports_its_engine)
{
	enum gdk_dma_engine engine;
	uint64_t max;

	dma_start(GDK_DMA_ENGINE_AUTO, 16);
	OK(gdk_dma_get_engine(dma, &engine, &max));
	cr_expect_eq(engine, COPY);
	cr_expect_eq(max, GDK_DMA_MAX_COPY);
	dma_stop();
	dma_start(WR, 16);
	OK(gdk_dma_get_engine(dma, &engine, NULL));
	cr_expect_eq(engine, WR);
	cr_expect_str_eq(gdk_dma_engine_text(engine), "RDMA write");
	dma_stop();
}

Test(doca_dma, calls_in_wrong_states_are_refused)
{
	enum gdk_dma_engine engine;
	struct doca_ctx *ctx;

	OK(doca_dma_create(dev, &dma));
	ctx = doca_dma_as_ctx(dma);
	capture_begin();
	cr_expect_eq(doca_ctx_start(ctx), DOCA_ERROR_BAD_STATE, "no GPU and no tasks");
	cr_expect_eq(doca_dma_get_gpu_handle(dma, &handle), DOCA_ERROR_BAD_STATE);
	cr_expect_eq(gdk_dma_get_engine(dma, &engine, NULL), DOCA_ERROR_BAD_STATE);
	cr_expect_eq(gdk_dma_abort(dma), DOCA_ERROR_BAD_STATE);
	cr_expect_eq(gdk_dma_set_wait_limit(dma, 1), DOCA_ERROR_BAD_STATE);
	cr_expect_eq(gdk_dma_set_queue_size(dma, 0), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(gdk_dma_set_queue_size(dma, 32769), DOCA_ERROR_INVALID_VALUE);
	OK(doca_ctx_set_datapath_on_gpu(ctx, gpu));
	OK(doca_ctx_start(ctx));
	cr_expect_eq(gdk_dma_set_queue_size(dma, 8), DOCA_ERROR_BAD_STATE);
	cr_expect_eq(gdk_dma_set_engine(dma, WR), DOCA_ERROR_BAD_STATE);
	cr_expect_eq(doca_dma_destroy(dma), DOCA_ERROR_BAD_STATE);
	cr_expect_eq(gdk_dma_set_wait_limit(dma, 0), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_dev_close(dev), DOCA_ERROR_IN_USE);
	cr_expect(*capture_end());
	OK(doca_ctx_stop(ctx));
	OK(doca_dma_destroy(dma));
}

/* ---- failures of single calls ---- */

static enum gdk_dma_engine of_fault;

static doca_error_t start_and_stop(void)
{
	struct doca_dma *d;
	doca_error_t err, err2;

	err = doca_dma_create(dev, &d);
	if (err)
		return err;
	err = gdk_dma_set_engine(d, of_fault);
	if (!err)
		err = doca_ctx_set_datapath_on_gpu(doca_dma_as_ctx(d), gpu);
	if (!err)
		err = doca_ctx_start(doca_dma_as_ctx(d));
	if (!err) {
		err = doca_ctx_stop(doca_dma_as_ctx(d));
		if (err) /* a failed call of the stop */
			OK(doca_ctx_stop(doca_dma_as_ctx(d)));
	}
	err2 = doca_dma_destroy(d);
	cr_expect_eq(err2, DOCA_SUCCESS);
	/* Unused slabs are kept for the next queue pair. Twice: a call of the first may fail. */
	gdk_reclaim(gpu, dev);
	gdk_reclaim(gpu, dev);
	return err;
}

/* libmlx5 keeps register pages of both kinds, once they were allocated. */
static void allocate_both_uars(void)
{
	uint32_t n;

	for (n = 3; n <= 4; n++) {
		failalloc_arm(n);
		start_and_stop();
		failalloc_disarm();
	}
}

static void failures(enum gdk_dma_engine engine)
{
	of_fault = engine;
	allocate_both_uars();
	rig_faults_but(start_and_stop, 12, 10, 6);
	rig_cmd_faults(start_and_stop, 5);
}

Test(doca_dma, each_allocation_and_call_of_the_engine_may_fail)
{
	failures(COPY);
}

Test(doca_dma, each_allocation_and_call_of_rdma_writes_may_fail)
{
	failures(WR);
}
