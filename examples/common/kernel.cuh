/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What the kernels of the examples share: the queue pair and the slots of a thread, waits for
 * memory that the peer writes, times, and the loop of a ping-pong. Everything else, the operations
 * and the waits for their completion, is in the kernels themselves, by the DOCA device API.
 */
#ifndef EXAMPLES_KERNEL_CUH
#define EXAMPLES_KERNEL_CUH

#include "grid_kernel.cuh"
#include "pattern.h"

#include "doca_gpunetio_device.h"

#ifndef KERNEL_DEBUG_TIMES
#define KERNEL_DEBUG_TIMES 0
#endif

#define EX_DEV	      static __device__ __forceinline__
#define EX_FULL_WARP  0xffffffffu
#define EX_BLOCK_MAX  512  /* threads of a block: limits the registers of a thread to 128 */
#define EX_CHECK_POLL 1024 /* polls of memory between two checks of the queue pair */

/* A variable in the shared memory of a block that has one thread. */
#ifdef __CUDACC__
#define EX_SHARED __shared__ __align__(64)
#else
#define EX_SHARED __align__(64)
#endif

/* ---- threads ---- */

/* The queue pair of the thread: its index, and its description. */
EX_DEV uint32_t ex_queue_index(const struct ex_job &job)
{
	return blockIdx.x / job.blocks;
}
EX_DEV struct ex_dev_queue ex_queue(const struct ex_job &job)
{
	return job.queues[ex_queue_index(job)];
}

/* The number of the thread among those of its queue pair. */
EX_DEV uint32_t ex_thread(const struct ex_job &job)
{
	return blockIdx.x % job.blocks * blockDim.x + threadIdx.x;
}

/* Stores what the host reads after the grid has ended: 0 or a negative errno. */
EX_DEV void ex_finish(const struct ex_job &job, int rc)
{
	job.status[blockIdx.x * blockDim.x + threadIdx.x] = rc;
}

/* An operation at warp scope needs all lanes, so all lanes of a warp must stop if one of them
 * failed. */
template <enum doca_gpu_dev_verbs_exec_scope scope> EX_DEV bool ex_any_failed(int rc)
{
	if (scope == DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP)
		return __any_sync(EX_FULL_WARP, rc != 0);
	return rc != 0;
}

/* Returns whether a thread waits after iteration i of this launch. */
EX_DEV bool ex_batch_ends(const struct ex_job &job, uint32_t i)
{
	return (i + 1) % job.batch == 0 || i + 1 == job.iters;
}

/* Returns 0 if the NIC returned, for the last addition to the peer's flag, the old value that the
 * iterations so far lead to. Otherwise -EBADMSG. */
EX_DEV int ex_check_old_flag(const struct ex_job &job, const struct ex_dev_queue &q,
			     uint32_t thread)
{
	const uint64_t old = doca_gpu_dev_verbs_load_relaxed_sys_global(&q.prev[thread]);

	return old == job.first + job.iters - 1 ? 0 : -EBADMSG;
}

/* ---- addresses for the NIC ---- */

EX_DEV struct doca_gpu_dev_verbs_addr ex_addr(uint64_t addr, uint32_t key)
{
	struct doca_gpu_dev_verbs_addr a;

	a.addr = addr;
	a.key = key;
	return a;
}

/* Bytes at an offset of this side's data, and of the peer's. */
EX_DEV struct doca_gpu_dev_verbs_addr ex_local(const struct ex_dev_queue &q, uint64_t offset)
{
	return ex_addr(q.data_addr + offset, q.key);
}
EX_DEV struct doca_gpu_dev_verbs_addr ex_remote(const struct ex_dev_queue &q, uint64_t offset)
{
	return ex_addr(q.peer_addr + offset, q.peer_key);
}

/* The peer's flag of a thread, and the word to which the NIC stores the flag's old value. */
EX_DEV struct doca_gpu_dev_verbs_addr ex_peer_flag(const struct ex_dev_queue &q, uint32_t thread)
{
	return ex_addr(q.peer_flags_addr + 8ull * thread, q.peer_key);
}
EX_DEV struct doca_gpu_dev_verbs_addr ex_old_flag(const struct ex_dev_queue &q, uint32_t thread)
{
	return ex_addr(q.prev_addr + 8ull * thread, q.key);
}

/* ---- waits for the peer ---- */

/* Returns 0, or the negative errno that ended the queue pair. Polls its completion queue for the
 * last operation. A thread that waits for the peer calls this, because after an error completion,
 * or an abort by the host, the peer does not answer. */
EX_DEV int ex_check_queue(struct doca_gpu_dev_verbs_qp *qp)
{
	const uint64_t end = doca_gpu_dev_verbs_atomic_read<
		uint64_t, DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE>(&qp->sq_rsvd_index);
	int rc = 0;

	if (end)
		rc = doca_gpu_dev_verbs_poll_one_cq_at<
			DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE>(
			doca_gpu_dev_verbs_qp_get_cq_sq(qp), end - 1);
	return rc < 0 ? rc : gdk_qp_status(qp);
}

template <typename T> EX_DEV bool ex_word_is(const T *word, T want, bool or_above)
{
	const T now = doca_gpu_dev_verbs_load_relaxed_sys_global(const_cast<T *>(word));

	return or_above ? now >= want : now == want;
}

/* Waits until the peer has stored want to *word, a byte or 8 bytes, in memory of queue pair q; or,
 * if or_above, a larger number. Acquire: what the peer wrote before is visible afterwards. */
template <typename T>
EX_DEV int ex_wait_word(const struct ex_dev_queue &q, const T *word, T want, bool or_above = false)
{
	int rc = 0;

	for (uint32_t polls = 1; !ex_word_is(word, want, or_above); polls++) {
		if (polls % EX_CHECK_POLL == 0) {
			rc = ex_check_queue(q.qp);
			if (!rc && q.companion)
				rc = ex_check_queue(q.companion);
			if (rc)
				return rc;
		}
		gdk_relax(polls);
	}
	doca_gpu_dev_verbs_fence_acquire<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>();
	return 0;
}

/* ---- times ---- */

/* Ticks of clock64() per time: clock64() is cheaper to read than the timer in nanoseconds. */
struct ex_ticks {
	long long ticks;
	uint64_t ns;
};

EX_DEV struct ex_ticks ex_ticks_begin(void)
{
	struct ex_ticks t;

	t.ns = doca_gpu_dev_verbs_query_globaltimer();
	t.ticks = clock64();
	return t;
}

/* Stores the length of a tick, measured since begin. */
EX_DEV void ex_ticks_end(const struct ex_job &job, const struct ex_ticks &begin)
{
	const uint64_t ns = doca_gpu_dev_verbs_query_globaltimer() - begin.ns;
	const long long ticks = clock64() - begin.ticks;

	if (job.ns_per_tick && ticks > 0)
		*job.ns_per_tick = (double)ns / (double)ticks;
}

/* Stores half the time of iteration i of this launch, a round trip: from before the client's
 * message to the answer. ib_write_lat of perftest reports halves, too. */
EX_DEV void ex_sample(const struct ex_job &job, uint32_t i, long long ticks)
{
	const long long half = ticks / 2;

	if (job.samples && ex_queue_index(job) == 0)
		job.samples[i] = half > UINT32_MAX ? UINT32_MAX : (uint32_t)half;
}

/* Times of one iteration, printed if KERNEL_DEBUG_TIMES is 1: before the operation, after it, and
 * after the wait for its completion. Otherwise these functions do nothing. */
struct ex_debug {
	uint64_t begin, posted;
};

EX_DEV void ex_debug_begin(struct ex_debug *d)
{
	if (KERNEL_DEBUG_TIMES == 1)
		d->begin = doca_gpu_dev_verbs_query_globaltimer();
}
EX_DEV void ex_debug_posted(struct ex_debug *d)
{
	if (KERNEL_DEBUG_TIMES == 1)
		d->posted = doca_gpu_dev_verbs_query_globaltimer();
}
/* what: name of the operation. */
EX_DEV void ex_debug_print(const struct ex_debug *d, const char *what, uint64_t iter)
{
	if (KERNEL_DEBUG_TIMES == 1 && threadIdx.x == 0)
		printf("block %u iteration %llu: %s %llu ns, poll %llu ns\n", blockIdx.x,
		       (unsigned long long)iter, what, (unsigned long long)(d->posted - d->begin),
		       (unsigned long long)(doca_gpu_dev_verbs_query_globaltimer() - d->posted));
}

/* ---- ping-pong ---- */

typedef int (*ex_pass_t)(const struct ex_job &job, const struct ex_dev_queue &q, uint64_t iter);

/* The iterations of a ping-pong by one thread: the client sends and then receives, the server
 * receives and then sends. send posts the message of iteration iter, receive waits for the peer's.
 * what: name of the operation. Returns 0 or a negative errno. */
template <ex_pass_t send, ex_pass_t receive>
EX_DEV int ex_pingpong(const struct ex_job &job, const struct ex_dev_queue &q, const char *what)
{
	const struct ex_ticks begin = ex_ticks_begin();
	struct ex_debug times = {};
	int rc = 0;

	for (uint32_t i = 0; !rc && i < job.iters; i++) {
		const uint64_t iter = job.first + i;
		const long long start = clock64();

		if (!job.client)
			rc = receive(job, q, iter);
		ex_debug_begin(&times);
		if (!rc)
			rc = send(job, q, iter);
		ex_debug_posted(&times);
		if (!rc && job.client)
			rc = receive(job, q, iter);
		ex_sample(job, i, clock64() - start);
		ex_debug_print(&times, what, iter);
		if (!rc)
			rc = ex_check_queue(q.qp);
	}
	ex_ticks_end(job, begin);
	return rc;
}

#endif
