/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Queue pairs for the posting benchmark, filled in by hand instead of by an export.
 * Our build and the peer's use the same struct, that of DOCA's device API. */
#ifndef POST_DOCA_CUH
#define POST_DOCA_CUH

#include "doca_gpunetio_device.h"
#ifdef POST_ETHERNET /* also Ethernet send queues, whose device struct is that of a queue pair */
#include "gdk_sdk_eth_txq_dev.h"
#endif

#include "post_rig.cuh"

#define EXC    DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE
#define CTA    DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA
#define GPU    DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU
#define DB     DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB
#define BF     DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF
#define NODBR  DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR
#define PROXY  DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY
#define THREAD DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD
#define WARP   DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP
#ifdef GDK_QP_STATE_H
#define BLOCK GDK_EXEC_SCOPE_BLOCK
#endif
#define SKIP_CHECK DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_AVAILABILITY_CHECK
#define SKIP_DB	   DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_DB_RINGING

typedef struct doca_gpu_dev_verbs_qp QP;

/* Our functions return a status, the peer's some nothing. */
#ifdef GDK_QP_STATE_H
#define STATUS(call) ((call))
#else
#define STATUS(call) ((void)(call), 0)
#endif

/* Our queue pairs have a separate state block, and their struct has an offset from the start
 * of a cache line. The peer has only the struct, without an offset. */
#ifdef GDK_QP_STATE_H
static size_t kit_skew(void)
{
	return GDK_DEV_SKEW;
}
#ifdef POST_ETHERNET
/* What a send queue has behind the state of a queue pair: struct gdk_eth_marks, spans, notes. */
static size_t kit_state_size(uint32_t depth)
{
	return gdk_qp_state_size(depth) + sizeof(struct gdk_eth_marks) + depth * 12;
}
static void ethernet_attach(QP *q, uint8_t *image, uint8_t *dev, uint32_t depth)
{
	struct gdk_qp_state *st = (struct gdk_qp_state *)image;
	struct doca_gpu_eth_txq *txq = (struct doca_gpu_eth_txq *)q;

	st->flags |= GDK_QPF_ETHERNET;
	st->uneven = st->long_wqe = 1;
	txq->tx.marks = (uintptr_t)dev + gdk_qp_state_size(depth);
	txq->tx.notes = txq->tx.marks + sizeof(struct gdk_eth_marks) + depth * 4;
	txq->tx.flags = GDK_ETH_TXF_EMPW;
}
#else
static size_t kit_state_size(uint32_t depth)
{
	return gdk_qp_state_size(depth);
}
#endif
static void state_attach(QP *q, uint8_t *image, uint8_t *dev, uint32_t depth, int sys_scope,
			 int host_cq)
{
	const int bf = q->nic_handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF;

	gdk_qp_state_format(image, depth,
			    (sys_scope ? GDK_QPF_SYS_SCOPE : 0) | (bf ? GDK_QPF_BLUEFLAME : 0) |
				    (host_cq ? GDK_QPF_HOST_LOOKS : 0));
	gdk_qp_state_bind(image, q);
	q->gdk_state = (struct gdk_qp_state *)dev;
	q->cq_sq.gdk_state = (struct gdk_qp_state *)dev;
}
#else
static size_t kit_skew(void)
{
	return 0;
}
static size_t kit_state_size(uint32_t depth)
{
	(void)depth;
	return 0;
}
static void state_attach(QP *, uint8_t *, uint8_t *, uint32_t, int, int)
{
}
#endif

static enum doca_gpu_dev_verbs_nic_handler kit_handler(enum post_handler h)
{
	return h == POST_DB	  ? DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB
	       : h == POST_BF	  ? DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF
	       : h == POST_NO_DBR ? DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR
				  : DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY;
}

static void kit_fill(struct post_rig *r, uint32_t i)
{
	QP *q = (QP *)(r->image + (size_t)i * POST_QP_STRIDE);
	const uint32_t depth = r->shape.depth, qpn8 = (0x100 + i) << 8;

	q->sq_num = 0x100 + i;
	q->sq_num_shift8 = qpn8;
	q->sq_num_shift8_be = htobe32(qpn8);
	q->sq_num_shift8_be_1ds = htobe32(qpn8 | 1);
	q->sq_num_shift8_be_2ds = htobe32(qpn8 | 2);
	q->sq_num_shift8_be_3ds = htobe32(qpn8 | 3);
	q->sq_num_shift8_be_4ds = htobe32(qpn8 | 4);
	q->sq_num_shift8_be_5ds = htobe32(qpn8 | 5);
	q->sq_wqe_num = (uint16_t)depth;
	q->sq_wqe_mask = (uint16_t)(depth - 1);
	q->sq_wqe_daddr = r->rings + (size_t)i * depth * 64;
	q->sq_dbrec = (__be32 *)(r->records + (size_t)i * 128);
	q->sq_db = (uint64_t *)(r->regs + (size_t)i * POST_REG_STRIDE);
	q->cq_sq.cqe_daddr = r->cqs + (size_t)i * depth * 64;
	q->cq_sq.cqe_num = depth;
	q->cq_sq.cqe_mask = depth - 1;
	q->cq_sq.cqe_size = 64;
	q->cq_sq.dbrec = (__be32 *)(r->records + (size_t)i * 128 + 64);
	q->cq_sq.mem_type = r->host_queues ? DOCA_GPUNETIO_VERBS_MEM_TYPE_HOST
					   : DOCA_GPUNETIO_VERBS_MEM_TYPE_GPU;
	q->mem_type = q->cq_sq.mem_type;
	q->nic_handler = kit_handler(r->handler);
	state_attach(q, r->state_image + i * r->state_size, r->states + i * r->state_size, depth,
		     r->sys_scope, r->host_queues);
#ifdef POST_ETHERNET
	if (r->want.call_slots)
		ethernet_attach(q, r->state_image + i * r->state_size,
				r->states + i * r->state_size, depth);
#endif
}

static void kit_watch(const struct post_rig *r, uint32_t i, struct post_watch *w)
{
	const QP *q = (const QP *)(r->image + (size_t)i * POST_QP_STRIDE);

	w->want.qpn = q->sq_num;
	w->ring = (const uint4 *)q->sq_wqe_daddr;
	w->cq = q->cq_sq.cqe_daddr;
	w->reg = q->sq_db;
	w->record = q->sq_dbrec;
	/* In our implementation, the thread that holds the token can write its doorbell late. The
	 * DBREC is then ahead of the register, so the consumer also checks the DBREC. The peer
	 * rings without a lock in the mode without DBREC, so several threads can write their
	 * doorbells out of order. The consumer then also checks the index sq_wqe_pi. */
	w->recorded = r->handler == POST_DB && r->state_size;
	if (r->handler == POST_NO_DBR && !r->state_size)
		w->submitted =
			(uint64_t *)(r->qps + (size_t)i * POST_QP_STRIDE + offsetof(QP, sq_wqe_pi));
}

static uint64_t kit_reserved(const uint8_t *qp)
{
	return ((const QP *)qp)->sq_rsvd_index;
}

#endif
