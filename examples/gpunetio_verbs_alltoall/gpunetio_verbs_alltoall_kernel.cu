/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The data path of gpunetio_verbs_alltoall, for a GPU and for CPU threads. In each iteration a
 * thread puts its piece of a block to its peer, waits for the peer's piece and checks it.
 *
 * A launch does not wait without limit: two processes without CUDA MPS use one GPU alternately,
 * and the peer may not run at all. A thread that has waited long enough stores its progress and
 * ends with -EAGAIN. The next launch continues there.
 */
#define KERNEL_DEBUG_TIMES 0 /* 1: each thread prints the times of its put and of its poll */

#include <unistd.h>

#include "kernel.cuh"

#include "alltoall.h"

#define SHARING DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU
#define HANDLER DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO
#define ADD	DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD

struct piece { /* the part of a block that belongs to the calling thread */
	struct ex_dev_queue queue;
	uint32_t thread, threads; /* number of the thread, and threads, of the queue pair */
	uint32_t rank, peer;	  /* this rank, the other one */
	uint64_t from, to;	  /* first byte, byte after the last one */
	uint64_t stride;	  /* of the slots */
};

EX_DEV uint8_t *send_slot(const struct piece *p, uint64_t iter)
{
	return p->queue.data + iter % A2A_SLOTS * p->stride;
}

EX_DEV const uint8_t *receive_slot(const struct piece *p, uint64_t iter)
{
	return p->queue.recv + iter % A2A_SLOTS * p->stride;
}

/* Writes bytes [from, to) of the block of this iteration. */
EX_DEV void fill(const struct piece *p, uint64_t iter, uint64_t to)
{
	uint8_t *slot = send_slot(p, iter);
	uint64_t at = p->from;

	for (; at + 8 <= to; at += 8)
		*(uint64_t *)(slot + at) = a2a_word(p->rank, p->peer, iter, at / 8);
	for (uint64_t word = a2a_word(p->rank, p->peer, iter, at / 8); at < to; at++, word >>= 8)
		slot[at] = (uint8_t)word;
}

EX_DEV void store_wrong(struct a2a_thread *me, uint64_t at, uint8_t got, uint8_t expected)
{
	if (me->wrong++ > 0)
		return;
	me->wrong_iter = me->done;
	me->wrong_at = (uint32_t)at;
	me->got = got;
	me->expected = expected;
}

/* Compares bytes [from, to) of the block that the peer has put. */
EX_DEV void check(const struct piece *p, struct a2a_thread *me, uint64_t to)
{
	const uint8_t *slot = receive_slot(p, me->done);

	for (uint64_t at = p->from; at < to; at += 8) {
		uint64_t word = a2a_word(p->peer, p->rank, me->done, at / 8);

		if (at + 8 <= to && *(const uint64_t *)(slot + at) == word)
			continue;
		for (uint64_t i = at; i < at + 8 && i < to; i++, word >>= 8)
			if (slot[i] != (uint8_t)word) {
				store_wrong(me, i, slot[i], (uint8_t)word);
				return;
			}
	}
}

/* Puts the piece and adds 1 to the peer's flag of this thread. The companion, if there is one, then
 * adds 1 to the counter of this thread. */
EX_DEV int put(const struct piece *p, uint64_t iter, uint64_t *ticket)
{
	const struct ex_dev_queue *q = &p->queue;
	const uint64_t at = iter % A2A_SLOTS * p->stride + p->from;
	struct doca_gpu_dev_verbs_addr to, from, flag, old, counter, counter_old;

	from.addr = q->data_addr + at;
	to.addr = q->peer_addr + at;
	flag.addr = q->peer_flags_addr + 8ull * p->thread;
	old.addr = q->prev_addr + 8ull * p->thread;
	counter.addr = q->flags_addr + 8ull * (p->threads + p->thread);
	counter_old.addr = q->prev_addr + 8ull * (p->threads + p->thread);
	from.key = old.key = counter.key = counter_old.key = q->key;
	to.key = flag.key = q->peer_key;
	if (q->companion)
		return doca_gpu_dev_verbs_put_signal_counter<ADD, SHARING, HANDLER>(
			q->qp, to, from, p->to - p->from, flag, old, 1, q->companion, counter,
			counter_old, 1);
	return doca_gpu_dev_verbs_put_signal<ADD, SHARING, HANDLER>(
		q->qp, to, from, p->to - p->from, flag, old, 1, ticket);
}

/* A pause between two polls of a flag. There can be many more CPU threads than processors, so these
 * sleep longer and longer: otherwise the threads of the software NIC, which share the processors,
 * answer so late that the peer's retransmissions end. */
EX_DEV void relax(uint32_t polls)
{
#ifdef __CUDACC__
	(void)polls;
	__nanosleep(100);
#else
	if (polls < 16)
		gdk_relax(63);
	else
		usleep(polls < 24 ? 10u << (polls - 16) : 5000);
#endif
}

/* Waits until a flag has a value. Returns -EAGAIN if that takes too long. */
EX_DEV int wait_flag(uint64_t *flag, uint64_t value, uint64_t wait_ns)
{
	const uint64_t end = doca_gpu_dev_verbs_query_globaltimer() + wait_ns;

	for (uint32_t n = 0; doca_gpu_dev_verbs_load_relaxed_sys_global(flag) < value; n++) {
		if (doca_gpu_dev_verbs_query_globaltimer() >= end)
			return -EAGAIN;
		relax(n);
	}
	/* Orders the loads of the piece after the load of the flag, which the NIC wrote later. */
	doca_gpu_dev_verbs_fence_acquire<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>();
	return 0;
}

/* Waits until the put is complete, so that its slot can be filled again. */
EX_DEV int wait_put(const struct piece *p, const struct a2a_thread *me, uint64_t wait_ns)
{
	if (p->queue.companion)
		return wait_flag(p->queue.flags + p->threads + p->thread, me->done + 1, wait_ns);
	return doca_gpu_dev_verbs_poll_cq_at<SHARING>(doca_gpu_dev_verbs_qp_get_cq_sq(p->queue.qp),
						      me->ticket);
}

EX_DEV int start_iteration(const struct piece *p, const struct a2a_run *run, struct a2a_thread *me,
			   uint64_t checked)
{
	fill(p, me->done, checked);
	if (me->done == run->bad_iter && p->peer == run->peer[0] && p->thread == 0)
		send_slot(p, me->done)[checked - 1] ^= 1;
	return put(p, me->done, &me->ticket);
}

/* One iteration, or its rest if the launch before ended in the middle. */
EX_DEV int iterate(const struct piece *p, const struct a2a_run *run, struct a2a_thread *me)
{
	const uint64_t stamp = p->from + 8 < p->to ? p->from + 8 : p->to;
	const uint64_t checked = a2a_whole(run, me->done) ? p->to : stamp;
	struct ex_debug times;
	int rc;

	ex_debug_begin(&times);
	if (me->step == A2A_BEGIN) {
		rc = start_iteration(p, run, me, checked);
		if (rc)
			return rc;
		me->step = A2A_POSTED;
	}
	ex_debug_posted(&times);
	if (me->step == A2A_POSTED) {
		rc = wait_flag(p->queue.flags + p->thread, me->done + 1, run->wait_ns);
		if (rc)
			return rc;
		check(p, me, checked);
		me->step = A2A_CHECKED;
	}
	rc = wait_put(p, me, run->wait_ns);
	if (rc)
		return rc;
	ex_debug_print(&times, "put", me->done);
	me->step = A2A_BEGIN;
	me->done++;
	return 0;
}

__global__ void __launch_bounds__(EX_BLOCK_MAX) alltoall(struct ex_job job)
{
	/* Copies, because the memory of these is that of the host, far from a GPU. */
	const struct a2a_run run = *(const struct a2a_run *)job.arg;
	const uint32_t queue = blockIdx.x / job.blocks,
		       index = queue * job.threads + ex_thread(job);
	const uint64_t begin = doca_gpu_dev_verbs_query_globaltimer();
	const uint64_t end = job.first + job.iters;
	const uint64_t size = a2a_piece(job.size, job.threads);
	struct a2a_thread me = run.threads[index];
	struct piece p;
	int rc = 0;

	p.queue = ex_queue(job);
	p.thread = ex_thread(job);
	p.threads = job.threads;
	p.rank = run.rank;
	p.peer = run.peer[queue];
	p.stride = a2a_stride(job.size);
	p.from = size * p.thread;
	p.to = p.from + size < job.size ? p.from + size : job.size;
	if (p.from >= job.size) /* more threads than words of 8 bytes */
		me.done = end;
	while (!rc && me.done < end) {
		if (doca_gpu_dev_verbs_query_globaltimer() - begin > run.launch_ns)
			rc = -EAGAIN;
		else
			rc = iterate(&p, &run, &me);
	}
	run.threads[index] = me;
	ex_finish(job, rc);
}

EX_KERNELS(alltoall, nullptr)
