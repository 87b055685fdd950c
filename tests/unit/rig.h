/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * One QP in plain memory, and functions that play the NIC: they read doorbells,
 * check index, QP number and size of each rung WQE, and write CQEs. For tests of
 * the device data path alone, without the software NIC.
 */
#ifndef RIG_H
#define RIG_H

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/gdk/onesided_dev.h"

#define RIG_QPN	   0x00abcdu
#define RIG_POISON 0xdeadbeefu
#define RIG_DB	   DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB
#define RIG_BF	   DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF
#define RIG_NO_DBR DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR
#define RIG_PROXY  DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY
#define RIG_AUTO   DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO
#define RIG_EXCL   DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE
#define RIG_CTA	   DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA
#define RIG_GPU	   DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU
#define RIG_THREAD DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD

struct rig {
	struct doca_gpu_dev_verbs_qp qp;
	struct gdk_qp_state *st;
	uint32_t depth, cqe_num; /* cqe_num: entries of the CQ in use, 1 of a collapsed CQ */
	int handler, collapsed;
	uint8_t *ring;
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint32_t dbrec[2];
	uint8_t *page;	  /* doorbell registers at 0x800 and 0x900 */
	uint64_t counter; /* counter of the CPU proxy */
	/* the NIC's producer and consumer index of the send queue, and producer index of the CQ */
	uint64_t pi, ci, cq_pi;
	/* index of the first WQE that fails; it and all later ones get an error CQE */
	uint64_t fail_at;
	int failed, faults, rings;
	int lanes_ring; /* 1: several lanes ring at once, and a DBREC may follow its doorbell */
	/* called for each executed WQE; NULL: none */
	void (*exec)(struct rig *r, uint64_t slot, const struct doca_gpu_dev_verbs_wqe *wqe);
	void *arg;
};

static inline void *rig_alloc(size_t align, size_t len)
{
	void *p = aligned_alloc(align, (len + align - 1) / align * align);

	if (!p)
		abort();
	return memset(p, 0, len);
}

static inline void rig_init(struct rig *r, uint32_t depth, int handler, int collapsed)
{
	uint32_t i, len = (uint32_t)gdk_qp_state_size(depth);

	memset(r, 0, sizeof(*r));
	r->depth = depth;
	r->cqe_num = collapsed ? 1 : depth;
	r->handler = handler;
	r->collapsed = collapsed;
	r->fail_at = UINT64_MAX;
	r->ring = rig_alloc(4096, depth * 64);
	r->cqe = rig_alloc(4096, depth * 64);
	r->page = rig_alloc(4096, 4096);
	r->st = rig_alloc(GDK_STATE_LINE, len);
	gdk_qp_state_format(r->st, depth,
			    GDK_QPF_SYS_SCOPE | GDK_QPF_HOST_EXEC |
				    (handler == RIG_BF ? GDK_QPF_BLUEFLAME : 0) |
				    (collapsed ? GDK_QPF_COLLAPSED : 0));
	r->st->wait_limit_ns = 40000000000u; /* for threads without a core */
	for (i = 0; i < depth; i++)
		r->cqe[i].op_own = 0xf1;
	r->dbrec[1] = handler == RIG_NO_DBR ? RIG_POISON : 0;
	r->qp.sq_num = RIG_QPN;
	r->qp.sq_num_shift8 = RIG_QPN << 8;
	r->qp.sq_num_shift8_be = htobe32(RIG_QPN << 8);
	r->qp.sq_wqe_num = (uint16_t)depth;
	r->qp.sq_wqe_mask = (uint16_t)(depth - 1);
	r->qp.sq_wqe_daddr = r->ring;
	r->qp.sq_dbrec = &r->dbrec[1];
	r->qp.sq_db = handler == RIG_PROXY ? &r->counter : (uint64_t *)(void *)(r->page + 0x800);
	r->qp.gdk_state = r->st;
	r->qp.nic_handler = (enum doca_gpu_dev_verbs_nic_handler)handler;
	r->qp.cq_sq.cqe_daddr = (uint8_t *)r->cqe;
	r->qp.cq_sq.cqe_num = depth;
	r->qp.cq_sq.cqe_mask = depth - 1;
	r->qp.cq_sq.cqe_size = 64;
	r->qp.cq_sq.gdk_state = r->st;
	gdk_qp_state_bind(r->st, &r->qp);
}

static inline void rig_fini(struct rig *r)
{
	free(r->ring);
	free(r->cqe);
	free(r->page);
	free(r->st);
}

static inline void rig_fault(struct rig *r, const char *what, uint64_t at)
{
	if (r->faults++ < 8)
		fprintf(stderr, "rig: %s at %llu\n", what, (unsigned long long)at);
}

static inline void rig_cqe(struct rig *r, uint64_t slot, unsigned int opcode)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *e = &r->cqe[r->cq_pi & (r->cqe_num - 1)];
	const uint32_t owner = r->collapsed ? 0 : !!(r->cq_pi & r->cqe_num);

	__atomic_store_n((uint32_t *)(void *)&e->wqe_counter,
			 (uint32_t)htobe16((uint16_t)slot) | (opcode << 4 | owner) << 24,
			 __ATOMIC_RELEASE);
	r->cq_pi++;
}

/* Executes one WQE. Returns its number of slots, or 0 if it has none or not all were rung. */
static inline uint32_t rig_exec(struct rig *r)
{
	struct doca_gpu_dev_verbs_wqe wqe[2];
	const uint32_t at = (uint32_t)(r->ci & (r->depth - 1)), next = (at + 1) & (r->depth - 1);
	uint32_t op, qpn_ds, slots;

	memcpy(&wqe[0], r->ring + at * 64, 64);
	memcpy(&wqe[1], r->ring + next * 64, 64);
	op = be32toh(wqe[0].rw_cseg.opmod_idx_opcode);
	qpn_ds = be32toh(wqe[0].rw_cseg.qpn_ds);
	slots = ((qpn_ds & 0x3f) + 3) / 4;
	if ((op >> 8 & 0xffff) != (r->ci & 0xffff))
		rig_fault(r, "WQE index", r->ci);
	if (qpn_ds >> 8 != RIG_QPN || qpn_ds & 0xc0 || slots == 0)
		rig_fault(r, "QPN or size", r->ci);
	if (slots == 0 || slots > r->pi - r->ci) {
		rig_fault(r, "WQE rung only in part", r->ci);
		return 0;
	}
	if (r->failed || r->ci >= r->fail_at) {
		r->failed = 1;
		rig_cqe(r, r->ci, DOCA_GPUNETIO_IB_MLX5_CQE_REQ_ERR);
		return slots;
	}
	if (r->exec)
		r->exec(r, r->ci, wqe);
	if (wqe[0].rw_cseg.fm_ce_se & 8)
		rig_cqe(r, r->ci, DOCA_GPUNETIO_IB_MLX5_CQE_REQ);
	return slots;
}

/*
 * Consumes the value of a doorbell register, if one was written. The value has the
 * format of a control segment's first half: the new producer index is its WQE index
 * plus its size in slots (0 in a plain doorbell).
 */
static inline void rig_take(struct rig *r, unsigned int offset)
{
	uint64_t v = __atomic_exchange_n((uint64_t *)(void *)(r->page + offset), 0,
					 __ATOMIC_ACQ_REL);
	uint32_t qpn_ds = be32toh((uint32_t)(v >> 32));
	int16_t step;
	uint16_t pi;

	if (!v)
		return;
	r->rings++;
	pi = (uint16_t)((be32toh((uint32_t)v) >> 8) + ((qpn_ds & 0x3f) + 3) / 4);
	step = (int16_t)(pi - (uint16_t)r->pi);
	if (qpn_ds >> 8 != RIG_QPN)
		rig_fault(r, "wrong QPN in a doorbell at PI", r->pi);
	if (step > 0)
		r->pi += (uint16_t)step;
	if (r->handler == RIG_NO_DBR || r->lanes_ring)
		return;
	if ((int16_t)(be32toh(__atomic_load_n(&r->dbrec[1], __ATOMIC_ACQUIRE)) - pi) < 0)
		rig_fault(r, "doorbell register written before the DBREC, PI", r->pi);
}

/* One pass of the NIC: reads the doorbells, then executes all WQEs that were rung. */
static inline void rig_nic(struct rig *r)
{
	uint32_t n;

	if (r->handler == RIG_PROXY) {
		r->pi = __atomic_load_n(&r->counter, __ATOMIC_ACQUIRE);
	} else {
		rig_take(r, 0x800);
		rig_take(r, 0x900);
	}
	while (r->ci < r->pi) {
		n = rig_exec(r);
		if (!n)
			abort();
		r->ci += n;
	}
}

/* Publishes slots from `from` to `to`, which were reserved by gdk_reserve() and are written, and
 * has them rung unless opt is GDK_OPT_SKIP_DB. */
static inline void rig_post(struct rig *r, uint64_t from, uint64_t to, gdk_mode_t mode,
			    gdk_handler_t handler, uint32_t opt)
{
	gdk_mark_ready(&r->qp, from, to, mode, handler);
	gdk_submit(&r->qp, to + 1, gdk_how(mode, handler, GDK_THREAD, opt));
}

/* Posts n NOPs as one operation, whose doorbell is rung in one step where possible. Returns its
 * first slot. */
static inline uint64_t rig_post_nops(struct rig *r, uint32_t n, gdk_mode_t mode, uint32_t opt)
{
	const struct gdk_how how = gdk_how(mode, RIG_AUTO, GDK_THREAD, opt);
	struct gdk_post p;
	uint32_t i;

	if (gdk_post_begin(&r->qp, &p, n, 0, how))
		abort();
	for (i = 0; i < n; i++)
		gdk_wqe_nop(&r->qp, gdk_get_wqe_ptr(&r->qp, p.idx + i), (uint16_t)(p.idx + i),
			    GDK_CE_ALWAYS);
	gdk_post_end(&p, how);
	return p.idx;
}

#endif
