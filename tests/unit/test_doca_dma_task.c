/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Copies that the CPU submits as tasks: results, callbacks, refused buffers, failed copies, and
 * a stop while tasks are not done.
 */
#include "../lib/bound.h"
#include "doca_dma_rig.h"

#include "doca_buf_inventory.h"

#define ALL   (DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE)
#define TASKS 16u

static struct doca_pe *pe;
static struct doca_buf_inventory *inv;
static unsigned int done, failed;
static uint64_t seen;

static void on_done(struct doca_dma_task_memcpy *task, union doca_data user, union doca_data of_ctx)
{
	cr_expect_eq(doca_task_get_status(doca_dma_task_memcpy_as_task(task)), DOCA_SUCCESS);
	cr_expect_eq(of_ctx.u64, 77);
	seen |= 1ull << user.u64;
	done++;
}

static void on_error(struct doca_dma_task_memcpy *task, union doca_data user,
		     union doca_data of_ctx)
{
	(void)user, (void)of_ctx;
	cr_expect_eq(doca_task_get_status(doca_dma_task_memcpy_as_task(task)),
		     DOCA_ERROR_IO_FAILED);
	failed++;
}

static void open_tasks(enum gdk_dma_engine engine)
{
	union doca_data user = { .u64 = 77 };

	done = failed = 0;
	seen = 0;
	OK(doca_pe_create(&pe));
	OK(doca_buf_inventory_create(4 * TASKS, &inv));
	OK(doca_buf_inventory_start(inv));
	OK(doca_dma_create(dev, &dma));
	OK(gdk_dma_set_engine(dma, engine));
	OK(doca_pe_connect_ctx(pe, doca_dma_as_ctx(dma)));
	OK(doca_ctx_set_user_data(doca_dma_as_ctx(dma), user));
	OK(doca_dma_task_memcpy_set_conf(dma, on_done, on_error, TASKS));
	OK(doca_ctx_start(doca_dma_as_ctx(dma)));
}

static void close_tasks(void)
{
	enum doca_ctx_states state;

	OK(doca_ctx_get_state(doca_dma_as_ctx(dma), &state));
	if (state != DOCA_CTX_STATE_IDLE)
		OK(doca_ctx_stop(doca_dma_as_ctx(dma)));
	OK(doca_dma_destroy(dma));
	OK(doca_buf_inventory_destroy(inv));
	OK(doca_pe_destroy(pe));
}

static void open_all(void)
{
	base_open(ALL);
}

TestSuite(doca_dma_task, .init = open_all, .fini = base_close, .timeout = 60);

static struct doca_buf *source(unsigned int i, size_t len)
{
	struct doca_buf *buf;

	OK(doca_buf_inventory_buf_get_by_data(inv, from.map, from.mem + i * SIZE, len, &buf));
	return buf;
}

static struct doca_buf *target(unsigned int i, size_t len)
{
	struct doca_buf *buf;

	OK(doca_buf_inventory_buf_get_by_addr(inv, to.map, to.mem + i * SIZE, len, &buf));
	return buf;
}

static void put(struct doca_buf *buf)
{
	OK(doca_buf_dec_refcount(buf, NULL));
}

static void progress_until(unsigned int n)
{
	struct bound b = bound_begin(done + failed, false);

	while (done + failed < n && !bound_passed(&b, done + failed, 20 * SECOND))
		doca_pe_progress(pe);
	cr_assert_eq(done + failed, n);
}

static void copy_all(enum gdk_dma_engine engine)
{
	struct doca_dma_task_memcpy *t[TASKS];
	struct doca_buf *src[TASKS], *dst[TASKS];
	union doca_data user;
	unsigned int i;
	void *data;

	open_tasks(engine);
	for (i = 0; i < TASKS; i++) {
		user.u64 = i;
		src[i] = source(i, SIZE);
		dst[i] = target(TASKS - 1 - i, SIZE);
		OK(doca_dma_task_memcpy_alloc_init(dma, src[i], dst[i], user, &t[i]));
		OK(doca_task_submit(doca_dma_task_memcpy_as_task(t[i])));
	}
	progress_until(TASKS);
	cr_expect_eq(seen, (1u << TASKS) - 1);
	for (i = 0; i < TASKS; i++) {
		cr_expect_arr_eq(to.mem + (TASKS - 1 - i) * SIZE, from.mem + i * SIZE, SIZE);
		OK(doca_buf_get_data(dst[i], &data));
		cr_expect_eq(data, to.mem + (TASKS - 1 - i) * SIZE);
		doca_task_free(doca_dma_task_memcpy_as_task(t[i]));
		put(src[i]);
		put(dst[i]);
	}
	close_tasks();
}

Test(doca_dma_task, copies_by_the_engine)
{
	copy_all(GDK_DMA_ENGINE_COPY);
}

Test(doca_dma_task, copies_by_rdma_writes)
{
	copy_all(GDK_DMA_ENGINE_RDMA_WRITE);
}

/* A task that is done may be submitted again: it copies behind the data of the destination. */
Test(doca_dma_task, data_is_appended)
{
	struct doca_dma_task_memcpy *t;
	union doca_data user = { .u64 = 1 };
	struct doca_buf *src, *dst;

	open_tasks(GDK_DMA_ENGINE_AUTO);
	src = source(0, 1000);
	dst = target(0, SIZE);
	OK(doca_dma_task_memcpy_alloc_init(dma, src, dst, user, &t));
	OK(doca_task_submit(doca_dma_task_memcpy_as_task(t)));
	progress_until(1);
	OK(doca_task_submit(doca_dma_task_memcpy_as_task(t)));
	progress_until(2);
	cr_expect_arr_eq(to.mem, from.mem, 1000);
	cr_expect_arr_eq(to.mem + 1000, from.mem, 1000);
	cr_expect_eq(to.mem[2000], 0);
	put(src);
	put(dst);
	close_tasks(); /* frees the task */
}

Test(doca_dma_task, bad_buffers_are_refused)
{
	struct doca_dma_task_memcpy *t, *more[TASKS];
	struct doca_buf *src, *dst, *small, *empty, *same;
	union doca_data user = { .u64 = 1 };
	unsigned int i;

	open_tasks(GDK_DMA_ENGINE_AUTO);
	src = source(0, SIZE);
	dst = target(0, SIZE);
	small = target(1, SIZE - 1);
	empty = target(2, SIZE);
	OK(doca_buf_inventory_buf_get_by_addr(inv, from.map, from.mem + 1, SIZE, &same));
	capture_begin();
#define TRY(a, b) doca_dma_task_memcpy_alloc_init(dma, a, b, user, &t)
	cr_expect_eq(TRY(src, small), DOCA_ERROR_INVALID_VALUE, "too small");
	cr_expect_eq(TRY(empty, dst), DOCA_ERROR_INVALID_VALUE, "no data");
	cr_expect_eq(TRY(src, same), DOCA_ERROR_INVALID_VALUE, "overlap");
	cr_expect_eq(TRY(NULL, dst), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(TRY(src, NULL), DOCA_ERROR_INVALID_VALUE);
	for (i = 0; i < TASKS; i++)
		OK(doca_dma_task_memcpy_alloc_init(dma, src, dst, user, &more[i]));
	cr_expect_eq(TRY(src, dst), DOCA_ERROR_FULL);
	cr_expect_eq(doca_task_get_status(doca_dma_task_memcpy_as_task(more[0])),
		     DOCA_ERROR_BAD_STATE, "not submitted");
	OK(doca_buf_chain_list(src, empty));
	doca_task_free(doca_dma_task_memcpy_as_task(more[0]));
	cr_expect_eq(TRY(src, dst), DOCA_ERROR_NOT_SUPPORTED, "a list");
	cr_expect_eq(doca_dma_task_memcpy_set_conf(dma, on_done, on_error, 1),
		     DOCA_ERROR_BAD_STATE);
	cr_expect_eq(doca_dma_get_gpu_handle(dma, &handle), DOCA_ERROR_BAD_STATE);
	cr_expect_null(doca_dma_task_memcpy_as_task(NULL));
	cr_expect(*capture_end());
	put(src);
	put(dst);
	put(small);
	put(same);
	close_tasks();
}

Test(doca_dma_task, states_of_tasks)
{
	struct doca_dma_task_memcpy *t;
	union doca_data user = { .u64 = 1 };
	struct doca_buf *src, *dst;
	struct doca_task *task;

	open_tasks(GDK_DMA_ENGINE_AUTO);
	src = source(0, SIZE);
	dst = target(0, SIZE);
	OK(doca_dma_task_memcpy_alloc_init(dma, src, dst, user, &t));
	task = doca_dma_task_memcpy_as_task(t);
	OK(doca_task_submit(task));
	cr_expect_eq(doca_task_get_status(task), DOCA_ERROR_IN_PROGRESS);
	capture_begin();
	cr_expect_eq(doca_task_submit(task), DOCA_ERROR_BAD_STATE, "submitted already");
	doca_task_free(task);
	cr_expect(strstr(capture_end(), "doca_task_free: the DMA task"));
	cr_expect_eq(doca_ctx_stop(doca_dma_as_ctx(dma)), DOCA_ERROR_IN_PROGRESS);
	progress_until(1);
	capture_begin();
	cr_expect_eq(doca_task_submit(task), DOCA_ERROR_BAD_STATE, "the context is idle");
	cr_expect(strstr(capture_end(), "the DMA context does not run"));
	doca_task_free(task);
	put(src);
	put(dst);
	close_tasks();
}

/* The memory of the destination is deregistered by another mmap: its key is unknown to the NIC. */
Test(doca_dma_task, failed_copies_are_logged_once)
{
	struct doca_dma_task_memcpy *t[3];
	union doca_data user = { .u64 = 1 };
	struct doca_buf *src, *dst[3];
	struct doca_mmap *map;
	unsigned int i;
	const char *log;

	open_tasks(GDK_DMA_ENGINE_COPY);
	OK(doca_mmap_create(&map));
	OK(doca_mmap_add_dev(map, dev));
	OK(doca_mmap_set_memrange(map, to.mem, SIZE));
	OK(doca_mmap_set_permissions(map, DOCA_ACCESS_FLAG_RDMA_READ)); /* no local write */
	OK(doca_mmap_start(map));
	src = source(0, 64);
	OK(doca_buf_inventory_buf_get_by_addr(inv, map, to.mem, SIZE, &dst[0]));
	dst[1] = target(1, SIZE);
	dst[2] = target(2, SIZE);
	for (i = 0; i < 3; i++)
		OK(doca_dma_task_memcpy_alloc_init(dma, src, dst[i], user, &t[i]));
	capture_begin();
	for (i = 0; i < 2; i++)
		OK(doca_task_submit(doca_dma_task_memcpy_as_task(t[i])));
	progress_until(2);
	log = capture_end();
	cr_expect(strstr(log, "local protection error") && strstr(log, "copy engine"), "%s", log);
	log = strstr(log, "a copy failed");
	cr_expect(log && !strstr(log + 1, "a copy failed"), "logged once");
	cr_expect_eq(failed, 2);
	capture_begin();
	cr_expect_eq(doca_task_submit(doca_dma_task_memcpy_as_task(t[2])), DOCA_ERROR_IO_FAILED);
	cr_expect(strstr(capture_end(), "stop and start the context"));
	OK(doca_ctx_stop(doca_dma_as_ctx(dma)));
	OK(doca_ctx_start(doca_dma_as_ctx(dma)));
	OK(doca_task_submit(doca_dma_task_memcpy_as_task(t[2])));
	progress_until(3);
	cr_expect_eq(done, 1);
	put(src);
	for (i = 0; i < 3; i++)
		put(dst[i]);
	OK(doca_mmap_destroy(map));
	close_tasks();
}

static doca_error_t one_task(void)
{
	struct doca_dma_task_memcpy *t;
	union doca_data user = { .u64 = 1 };
	struct doca_buf *src = source(0, 64), *dst = target(0, 64);
	doca_error_t err = doca_dma_task_memcpy_alloc_init(dma, src, dst, user, &t);

	if (!err)
		doca_task_free(doca_dma_task_memcpy_as_task(t));
	put(src);
	put(dst);
	return err;
}

Test(doca_dma_task, each_allocation_may_fail)
{
	open_tasks(GDK_DMA_ENGINE_AUTO);
	rig_faults(one_task, 1, 0);
	close_tasks();
}

/* ---- ends in callbacks ---- */

static struct doca_buf *last_src, *last_dst;
static void *last_used[64];

/* The object and the task are gone when this returns, and their memory is used again. */
static void destroy_all(struct doca_dma_task_memcpy *task, union doca_data user,
			union doca_data of_ctx)
{
	(void)task, (void)user, (void)of_ctx;
	OK(doca_ctx_stop(doca_dma_as_ctx(dma)));
	OK(doca_dma_destroy(dma));
	for (size_t i = 0; i < 64; i++) {
		last_used[i] = malloc(16 + 16 * i);
		memset(last_used[i], 0xee, 16 + 16 * i);
	}
	done++;
}

static void submit_one(struct doca_dma_task_memcpy **t, size_t len)
{
	union doca_data user = { .u64 = 1 };

	last_src = source(0, len);
	last_dst = target(0, len);
	OK(doca_dma_task_memcpy_alloc_init(dma, last_src, last_dst, user, t));
	OK(doca_task_submit(doca_dma_task_memcpy_as_task(*t)));
}

static void put_both(void)
{
	put(last_src);
	put(last_dst);
}

Test(doca_dma_task, a_callback_may_destroy_the_object)
{
	struct doca_dma_task_memcpy *t;

	open_tasks(GDK_DMA_ENGINE_AUTO);
	OK(doca_ctx_stop(doca_dma_as_ctx(dma)));
	OK(doca_dma_task_memcpy_set_conf(dma, destroy_all, on_error, TASKS));
	OK(doca_ctx_start(doca_dma_as_ctx(dma)));
	submit_one(&t, SIZE);
	progress_until(1);
	for (size_t i = 0; i < 64; i++)
		free(last_used[i]);
	put_both();
	OK(doca_buf_inventory_destroy(inv));
	OK(doca_pe_destroy(pe));
}

static void count(struct doca_dma_task_memcpy *task, union doca_data user, union doca_data of_ctx)
{
	(void)task, (void)user, (void)of_ctx;
	done++;
}

static enum doca_ctx_states state_of(void)
{
	enum doca_ctx_states state;

	OK(doca_ctx_get_state(doca_dma_as_ctx(dma), &state));
	return state;
}

static void stop_with_task(struct doca_dma_task_memcpy **t)
{
	open_tasks(GDK_DMA_ENGINE_AUTO);
	OK(doca_ctx_stop(doca_dma_as_ctx(dma)));
	OK(doca_dma_task_memcpy_set_conf(dma, count, count, TASKS));
	OK(doca_ctx_start(doca_dma_as_ctx(dma)));
	submit_one(t, SIZE);
	cr_expect_eq(doca_ctx_stop(doca_dma_as_ctx(dma)), DOCA_ERROR_IN_PROGRESS);
}

/* A NIC that hangs does not keep a program from stopping. */
Test(doca_dma_task, an_abort_ends_a_stop)
{
	struct doca_dma_task_memcpy *t;

	stop_with_task(&t);
	capture_begin();
	OK(gdk_dma_abort(dma));
	progress_until(1);
	cr_expect(!strstr(capture_end(), "syndrome"), "no copy has failed");
	cr_expect_eq(state_of(), DOCA_CTX_STATE_IDLE);
	put_both();
	close_tasks();
}

Test(doca_dma_task, a_stop_that_fails_is_continued)
{
	struct doca_dma_task_memcpy *t;

	nicfail_find();
	stop_with_task(&t);
	nicfail_next(0, 0, 0, 1);
	capture_begin();
	progress_until(1);
	cr_expect(*capture_end(), "the queue pair is not destroyed");
	nicfail_next(0, 0, 0, 0);
	cr_expect_eq(state_of(), DOCA_CTX_STATE_STOPPING);
	OK(gdk_dma_abort(dma));
	doca_pe_progress(pe);
	cr_expect_eq(state_of(), DOCA_CTX_STATE_IDLE);
	put_both();
	close_tasks();
}

/* What was true when the task was created may have changed since. */
Test(doca_dma_task, buffers_are_checked_at_each_submission)
{
	struct doca_dma_task_memcpy *t;
	union doca_data user = { .u64 = 1 };
	struct doca_buf *src, *dst, *more;
	struct doca_mmap *map;

	open_tasks(GDK_DMA_ENGINE_COPY);
	OK(doca_mmap_create(&map));
	OK(doca_mmap_add_dev(map, dev));
	OK(doca_mmap_set_memrange(map, to.mem, SIZE));
	OK(doca_mmap_set_permissions(map, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE));
	OK(doca_mmap_start(map));
	src = source(0, 64);
	more = source(1, 64);
	OK(doca_buf_inventory_buf_get_by_addr(inv, map, to.mem, SIZE, &dst));
	OK(doca_dma_task_memcpy_alloc_init(dma, src, dst, user, &t));
	OK(doca_ctx_stop(doca_dma_as_ctx(dma)));
	OK(gdk_dma_set_engine(dma, GDK_DMA_ENGINE_RDMA_WRITE));
	OK(doca_ctx_start(doca_dma_as_ctx(dma)));
	capture_begin();
	cr_expect_eq(doca_task_submit(doca_dma_task_memcpy_as_task(t)), DOCA_ERROR_NOT_PERMITTED);
	cr_expect(strstr(capture_end(), "DOCA_ACCESS_FLAG_RDMA_WRITE"));
	OK(doca_ctx_stop(doca_dma_as_ctx(dma)));
	OK(gdk_dma_set_engine(dma, GDK_DMA_ENGINE_COPY));
	OK(doca_ctx_start(doca_dma_as_ctx(dma)));
	OK(doca_buf_chain_list(src, more));
	capture_begin();
	cr_expect_eq(doca_task_submit(doca_dma_task_memcpy_as_task(t)), DOCA_ERROR_NOT_SUPPORTED);
	cr_expect(strstr(capture_end(), "buffers in a list"));
	put(src);
	put(dst);
	OK(doca_mmap_destroy(map));
	close_tasks();
}
