/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* softnic-run: --loss 0.002 --dup 0.002 --reorder 0.002 --seed 7 */
/*
 * Weak operations of several threads on one connection, with the discipline of NIXL: a request
 * reserves positions by an addition and passes their low 16 bits; the members of a block write the
 * operations; then the block waits for its turn, commits, and passes the turn on. One more thread
 * waits for all commits, and learns from their number which requests are complete. So each commit
 * must be counted once, and not before its operations are complete. Requests that are read back and
 * requests that are written take turns.
 */
#include <pthread.h>

#include "../lib/rdma_rig.h"

#define BLOCKS	 3u
#define DEPTH	 64u /* the requests that are posted at a time fit into the ring */
#define MOST	 20u /* operations of a request */
#define REQUESTS 600u

static struct rig r;
static uint64_t reserved, posted; /* positions; requests */
static uint32_t sizes[REQUESTS];
static int failed;

static void fail(const char *what, uint64_t a, uint64_t b)
{
	if (!__atomic_exchange_n(&failed, 1, __ATOMIC_RELAXED))
		fprintf(stderr, "%s: %llu, %llu\n", what, (unsigned long long)a,
			(unsigned long long)b);
}

static int has_failed(void)
{
	return __atomic_load_n(&failed, __ATOMIC_RELAXED);
}

static uint32_t size_of(uint32_t request)
{
	return 1 + request * 7 % MOST;
}

/* The buffer of operation i of a request. */
static uint32_t buf_of(uint32_t request, uint32_t i)
{
	return request % 8 * MOST + i;
}

static void post(uint32_t request, uint32_t i, uint32_t position)
{
	const uint32_t buf = buf_of(request, i);
	doca_error_t err;

	if (request % 2)
		err = doca_gpu_dev_rdma_read_weak(r.a.dev, 0, rig_remote(&r.b, buf), 0,
						  rig_buf(&r.a, buf), 0, 256, 0, position);
	else
		err = doca_gpu_dev_rdma_write_weak(r.a.dev, 0, rig_remote(&r.b, buf), 0,
						   rig_buf(&r.a, buf), 0, 256, request,
						   DOCA_GPU_RDMA_WRITE_FLAG_NONE, position);
	if (err)
		fail("a post failed", request, err);
}

static void *block(void *arg)
{
	const uint32_t me = (uint32_t)(uintptr_t)arg;

	for (uint32_t request = me; request < REQUESTS && !has_failed(); request += BLOCKS) {
		const uint32_t n = size_of(request);
		const uint64_t base = __atomic_fetch_add(&reserved, n, __ATOMIC_RELAXED);

		sizes[request] = n;
		for (uint32_t i = n; i-- > 0;)
			post(request, i, (uint32_t)(base + i) & 0xffff);
		/* Acquire: the commits of earlier requests. */
		while (__atomic_load_n(&posted, __ATOMIC_ACQUIRE) != request && !has_failed())
			gdk_host_yield();
		if (doca_gpu_dev_rdma_commit_weak(r.a.dev, 0, n))
			fail("a commit failed", request, n);
		__atomic_store_n(&posted, request + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* All operations of the requests below `done` are complete: those of requests that write from equal
 * buffers, and those that read. */
static void check(uint32_t request)
{
	for (uint32_t i = 0; i < size_of(request); i++) {
		const size_t at = (size_t)buf_of(request, i) * 256;

		if (memcmp(r.a.m.mem + at, r.b.m.mem + at, 256))
			fail("the data of a request is wrong", request, i);
	}
}

static void progress(void)
{
	const struct gdk_qp_state *st =
		gdk_state_of_qp(gdk_rdma_conn_qp(gdk_rdma_conn(r.a.dev, 0)));
	uint32_t done = 0, num;
	uint64_t end = 0;

	while (done < REQUESTS && !has_failed()) {
		if (doca_gpu_dev_rdma_wait_all(r.a.dev, &num))
			fail("a wait failed", done, num);
		if (num > REQUESTS - done)
			fail("more commits than requests", done, num);
		for (; num && !has_failed(); num--, done++)
			end += sizes[done];
		if (gdk_ld64_acq(&st->completed, GDK_SCOPE_GPU) < end)
			fail("a commit was counted before its operations were complete", done, end);
		if (!num)
			gdk_host_yield();
	}
}

int main(void)
{
	pthread_t threads[BLOCKS];

	rig_begin(&r, (struct rig_how){ .send = DEPTH });
	for (size_t i = 0; i < r.how.bytes; i++)
		r.a.m.mem[i] = r.b.m.mem[i] = (uint8_t)(i * 31 + (i >> 8));
	for (size_t i = 0; i < r.how.bytes; i++) /* the requests that write come first */
		if (i / 256 / MOST % 2 == 0)
			r.b.m.mem[i] = 0;
		else
			r.a.m.mem[i] = 0;
	for (uintptr_t i = 0; i < BLOCKS; i++)
		if (pthread_create(&threads[i], NULL, block, (void *)i))
			abort();
	progress();
	for (uint32_t i = 0; i < BLOCKS; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < 8 && !has_failed(); i++)
		check(i);
	rig_end(&r);
	return has_failed();
}
