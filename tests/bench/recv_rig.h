/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A queue pair with a receive queue and without a NIC, for the benchmark of receives: one piece
 * of memory with the device structs, the state blocks, the rings, the CQs, the DBREC and a word
 * in place of the doorbell register. A program writes the initial image on the CPU, and copies it
 * to GPU memory or uses it where it is.
 */
#ifndef RECV_RIG_H
#define RECV_RIG_H

#include <stdlib.h>

#include "device/gdk/recv_dev.h"
#include "device/gdk/send_dev.h"

#include "post_verify.h"

#define RECV_LINE	 128u
#define RECV_WQE	 16u /* bytes of a receive WQE: one data segment */
#define RECV_SQ_DEPTH	 1024u
#define RECV_LKEY	 0x88776655u
#define RECV_FREE_PLACES 4096u /* see recv_place() */

/* A kernel must end within some seconds. A program of CPU threads can be suspended for longer. */
#ifdef __CUDACC__
#define RECV_LIMIT_NS 5000000000ull /* the NIC ends after this time */
#define RECV_WAIT_NS  4000000000ull /* time limit of the waits */
#else
#define RECV_LIMIT_NS 60000000000ull
#define RECV_WAIT_NS  50000000000ull
#endif

/* Offsets of the parts from the start of the memory. */
struct recv_at {
	size_t dev, state, rq_dev, rq_state, dbrec, reg, sq, scq, rq, rcq, last, begun, buf, len;
	uint32_t depth;
};

static inline size_t recv_part(size_t *len, size_t bytes)
{
	const size_t at = *len;

	*len = (at + bytes + RECV_LINE - 1) & ~(size_t)(RECV_LINE - 1);
	return at;
}

/* depth: receive WQEs. buffers: bytes for payload. */
static inline struct recv_at recv_layout(uint32_t depth, size_t buffers)
{
	const size_t dev = GDK_DEV_SKEW + sizeof(struct doca_gpu_dev_verbs_qp);
	struct recv_at at;

	memset(&at, 0, sizeof(at));
	at.depth = depth;
	at.dev = recv_part(&at.len, dev) + GDK_DEV_SKEW;
	at.rq_dev = recv_part(&at.len, dev) + GDK_DEV_SKEW;
	at.state = recv_part(&at.len, gdk_qp_state_size(RECV_SQ_DEPTH));
	at.rq_state = recv_part(&at.len, gdk_qp_state_size(depth));
	at.dbrec = recv_part(&at.len, 8);
	at.reg = recv_part(&at.len, 8);
	at.sq = recv_part(&at.len, (size_t)RECV_SQ_DEPTH * 64);
	at.scq = recv_part(&at.len, (size_t)RECV_SQ_DEPTH * 64);
	at.rq = recv_part(&at.len, (size_t)depth * RECV_WQE);
	at.rcq = recv_part(&at.len, (size_t)depth * 64);
	at.last = recv_part(&at.len, (size_t)depth * 4);
	at.begun = recv_part(&at.len, 8);
	at.buf = recv_part(&at.len, buffers);
	return at;
}

/* Offset of the memory of run `place` in an allocation. The address of a word determines which
 * part of the L2 cache holds it, and thereby the speed, so the runs of a row use different ones. */
static inline size_t recv_place(uint32_t place)
{
	return (size_t)(place * 2654435761u % RECV_FREE_PLACES) * RECV_LINE;
}

static inline void recv_fill_queue(struct doca_gpu_dev_verbs_qp *q, uint32_t qpn, uint32_t depth)
{
	q->sq_num = qpn;
	q->sq_num_shift8 = qpn << 8;
	q->sq_num_shift8_be = post_swap32(qpn << 8);
	q->sq_num_shift8_be_1ds = post_swap32(qpn << 8 | 1);
	q->sq_num_shift8_be_2ds = post_swap32(qpn << 8 | 2);
	q->sq_num_shift8_be_3ds = post_swap32(qpn << 8 | 3);
	q->sq_num_shift8_be_4ds = post_swap32(qpn << 8 | 4);
	q->sq_num_shift8_be_5ds = post_swap32(qpn << 8 | 5);
	q->sq_wqe_num = (uint16_t)depth;
	q->sq_wqe_mask = (uint16_t)(depth - 1);
	q->cq_sq.cqe_num = depth;
	q->cq_sq.cqe_mask = depth - 1;
	q->cq_sq.cqe_size = 64;
	q->cq_sq.mem_type = DOCA_GPUNETIO_VERBS_MEM_TYPE_GPU;
	q->mem_type = DOCA_GPUNETIO_VERBS_MEM_TYPE_GPU;
	q->nic_handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB;
}

static inline void recv_fill_state(uint8_t *image, struct doca_gpu_dev_verbs_qp *q, uint32_t depth,
				   uint32_t flags)
{
	gdk_qp_state_format(image, depth, flags);
	gdk_qp_state_bind(image, q);
	((struct gdk_qp_state *)(void *)image)->wait_limit_ns = RECV_WAIT_NS;
}

/* Writes the initial image of QP qpn for memory at `mem`. CQs and receive ring have invalid
 * entries. flags: GDK_QPF_* of the state blocks. */
static inline void recv_image(uint8_t *image, uint8_t *mem, const struct recv_at *at, uint32_t qpn,
			      uint32_t flags)
{
	struct doca_gpu_dev_verbs_qp q, rq;

	memset(image, 0, at->len);
	memset(image + at->rq, 0xa5, (size_t)at->depth * RECV_WQE);
	memset(image + at->scq, 0xff, (size_t)RECV_SQ_DEPTH * 64);
	memset(image + at->rcq, 0xff, (size_t)at->depth * 64);
	memset(&q, 0, sizeof(q));
	memset(&rq, 0, sizeof(rq));
	recv_fill_queue(&q, qpn, RECV_SQ_DEPTH);
	q.sq_wqe_daddr = mem + at->sq;
	q.sq_dbrec = (__be32 *)(void *)(mem + at->dbrec + 4);
	q.sq_db = (uint64_t *)(void *)(mem + at->reg);
	q.cq_sq.cqe_daddr = mem + at->scq;
	q.gdk_state = (struct gdk_qp_state *)(void *)(mem + at->state);
	q.cq_sq.gdk_state = q.gdk_state;
	recv_fill_queue(&rq, qpn, at->depth);
	rq.sq_wqe_daddr = mem + at->rq;
	rq.sq_dbrec = (__be32 *)(void *)(mem + at->dbrec);
	rq.sq_db = (uint64_t *)(void *)(mem + at->rq_dev +
					offsetof(struct doca_gpu_dev_verbs_qp, reserved3));
	rq.cq_sq.cqe_daddr = mem + at->rcq;
	rq.gdk_state = (struct gdk_qp_state *)(void *)(mem + at->rq_state);
	rq.cq_sq.gdk_state = rq.gdk_state;
	q.rq_wqe_daddr = mem + at->rq;
	q.gdk_rq = (struct doca_gpu_dev_verbs_qp *)(void *)(mem + at->rq_dev);
	q.rq_wqe_num = at->depth;
	q.rq_wqe_mask = at->depth - 1;
	q.gdk_rq_shift = 4;
	q.cq_rq = rq.cq_sq;
	recv_fill_state(image + at->state, &q, RECV_SQ_DEPTH, flags);
	recv_fill_state(image + at->rq_state, &rq, at->depth, flags | GDK_QPF_RECV);
	memcpy(image + at->dev, &q, sizeof(q));
	memcpy(image + at->rq_dev, &rq, sizeof(rq));
}

static inline struct doca_gpu_dev_verbs_qp *recv_qp(uint8_t *mem, const struct recv_at *at)
{
	return (struct doca_gpu_dev_verbs_qp *)(void *)(mem + at->dev);
}

static inline uint64_t *recv_begun(uint8_t *mem, const struct recv_at *at)
{
	return (uint64_t *)(void *)(mem + at->begun);
}

#endif
