/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Queue pairs without a NIC for the posting benchmark, and one timed run on them.
 * Rings, CQs, records and states are in GPU memory; the register pages in pinned
 * host memory, as a doorbell crosses PCIe, or in GPU memory on request. Whatever
 * a run may read is poisoned before it.
 */
#ifndef POST_RIG_CUH
#define POST_RIG_CUH

#include <cuda_runtime.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "doca_gpunetio_device.h"

#include "post_nic.cuh"

#define CK(x)                                                                            \
	do {                                                                             \
		cudaError_t ck_ = (x);                                                   \
		if (ck_ != cudaSuccess) {                                                \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #x,       \
				cudaGetErrorString(ck_));                                \
			exit(1);                                                         \
		}                                                                        \
	} while (0)

#define POST_QP_STRIDE 512  /* each exported QP is an allocation of its own */
#define POST_REG_STRIDE 4096
#define POST_MAX_QPS 132
#define POST_RADDR 0x7f1200000000ull
#define POST_LADDR 0x7e3400000000ull
#define POST_RKEY 0x44332211u
#define POST_LKEY 0x88776655u
#define POST_NIC_LIMIT_NS 15000000000ull /* then the consumer gives up */
#define POST_HANG_S 25			 /* then the process does */

typedef struct doca_gpu_dev_verbs_qp QP;

struct post_options {
	int reg_on_gpu;	  /* register pages in GPU memory */
	int sys_scope;	  /* fences as if something of the QP were in host memory */
	double target_ms; /* of one run */
	int first;	  /* row to begin with */
	int matrix, micro;
};

/* Grid of the posting kernel: block b uses QP b % qps. */
struct post_shape {
	uint32_t blocks, threads, qps, depth;
};

typedef void (*post_kernel)(uint8_t *qps, uint32_t n, uint32_t iters, uint32_t every,
			    struct post_clock *clock);

struct post_rig {
	struct post_shape shape;
	enum doca_gpu_dev_verbs_nic_handler handler;
	struct post_expect want;
	int sys_scope, reg_on_gpu;
	uint8_t *image;	   /* host: what the QPs begin with */
	uint8_t *state_image; /* host: likewise, of our states; NULL for the peer */
	size_t state_size;
	uint8_t *qps, *rings, *cqs, *records, *states, *regs;
	struct post_watch *watches;
	struct post_seen *seen;
	struct post_clock *clock;
	volatile uint32_t *up; /* pinned: consumer blocks that run */
	cudaStream_t post, nic;
};

/* The one place where our build and the peer's differ. */
#ifdef GDK_QP_STATE_H
static size_t state_size(uint32_t depth)
{
	return gdk_qp_state_size(depth);
}
static void state_attach(QP *q, uint8_t *image, uint8_t *dev, uint32_t depth, int sys_scope)
{
	gdk_qp_state_format(image, (uint64_t)(uintptr_t)dev, depth,
			    sys_scope ? GDK_QPF_SYS_SCOPE : 0);
	q->gdk_state = (struct gdk_qp_state *)dev;
	q->cq_sq.gdk_state = (struct gdk_qp_state *)dev;
}
#else
static size_t state_size(uint32_t depth)
{
	(void)depth;
	return 0;
}
static void state_attach(QP *, uint8_t *, uint8_t *, uint32_t, int) {}
#endif

static void rig_fill_qp(struct post_rig *r, uint32_t i)
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
	q->cq_sq.mem_type = DOCA_GPUNETIO_VERBS_MEM_TYPE_GPU;
	q->mem_type = DOCA_GPUNETIO_VERBS_MEM_TYPE_GPU;
	q->nic_handler = r->handler;
	state_attach(q, r->state_image + i * r->state_size, r->states + i * r->state_size, depth,
		     r->sys_scope);
}

/* What the NIC watches: a doorbell tells it at once, the record is as good where
 * the register's content cannot be read whole (BlueFlame's two halves). */
static enum post_source rig_source(const struct post_rig *r)
{
	if (r->handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY)
		return POST_COUNTER;
	return r->handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF ? POST_RECORD :
									 POST_REGISTER;
}

static void rig_fill_watch(struct post_rig *r, uint32_t i, struct post_watch *w)
{
	const QP *q = (const QP *)(r->image + (size_t)i * POST_QP_STRIDE);

	memset(w, 0, sizeof(*w));
	w->want = r->want;
	w->want.qpn = q->sq_num;
	w->ring = (const uint4 *)q->sq_wqe_daddr;
	w->cq = q->cq_sq.cqe_daddr;
	w->reg = q->sq_db;
	w->record = q->sq_dbrec;
	w->depth = r->shape.depth;
	w->source = rig_source(r);
	if (r->handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR && !r->state_size)
		w->submitted = (uint64_t *)(r->qps + (size_t)i * POST_QP_STRIDE +
					    offsetof(QP, sq_wqe_pi));
}

static void rig_open(struct post_rig *r, const struct post_options *o,
		     const struct post_shape *shape, enum doca_gpu_dev_verbs_nic_handler handler,
		     uint32_t bytes, uint32_t inl)
{
	const size_t n = shape->qps, ring = n * shape->depth * 64;

	memset(r, 0, sizeof(*r));
	r->shape = *shape;
	r->handler = handler;
	r->reg_on_gpu = o->reg_on_gpu;
	/* As export does: a CPU that looks on needs the wider fences. */
	r->sys_scope = o->sys_scope || handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY;
	r->want.raddr = POST_RADDR;
	r->want.laddr = POST_LADDR;
	r->want.rkey = POST_RKEY;
	r->want.lkey = POST_LKEY;
	r->want.bytes = bytes;
	r->want.inl = inl;
	r->state_size = state_size(shape->depth);
	r->image = (uint8_t *)calloc(n, POST_QP_STRIDE);
	r->state_image = (uint8_t *)calloc(n, r->state_size + 1);
	CK(cudaMalloc(&r->qps, n * POST_QP_STRIDE));
	CK(cudaMalloc(&r->rings, ring));
	CK(cudaMalloc(&r->cqs, ring));
	CK(cudaMalloc(&r->records, n * 128));
	CK(cudaMalloc(&r->states, n * r->state_size + 128));
	CK(cudaMalloc(&r->watches, n * sizeof(*r->watches)));
	CK(cudaMalloc(&r->seen, n * sizeof(*r->seen)));
	CK(cudaMalloc(&r->clock, sizeof(*r->clock)));
	if (r->reg_on_gpu)
		CK(cudaMalloc(&r->regs, n * POST_REG_STRIDE));
	else
		CK(cudaHostAlloc(&r->regs, n * POST_REG_STRIDE, cudaHostAllocMapped));
	CK(cudaHostAlloc((void **)&r->up, n * sizeof(*r->up), cudaHostAllocMapped));
	CK(cudaStreamCreateWithFlags(&r->post, cudaStreamNonBlocking));
	CK(cudaStreamCreateWithFlags(&r->nic, cudaStreamNonBlocking));
	for (uint32_t i = 0; i < n; i++)
		rig_fill_qp(r, i);
}

static void rig_close(struct post_rig *r)
{
	CK(cudaStreamDestroy(r->post));
	CK(cudaStreamDestroy(r->nic));
	CK(cudaFreeHost((void *)r->up));
	CK(r->reg_on_gpu ? cudaFree(r->regs) : cudaFreeHost(r->regs));
	void *const dev[] = { r->qps,	 r->rings,   r->cqs,  r->records,
			      r->states, r->watches, r->seen, r->clock };
	for (void *p : dev)
		CK(cudaFree(p));
	free(r->image);
	free(r->state_image);
}

/* CQEs are invalid and of the lap before; indices, records and registers 0. */
static void rig_reset(struct post_rig *r, uint64_t per_qp)
{
	const size_t n = r->shape.qps, ring = n * r->shape.depth * 64;
	static const struct post_clock clock = { UINT64_MAX, 0 };
	struct post_watch w[POST_MAX_QPS];
	struct post_seen seen[POST_MAX_QPS] = {};

	r->want.count = per_qp;
	for (uint32_t i = 0; i < n; i++) {
		rig_fill_watch(r, i, &w[i]);
		seen[i].end_ns = POST_POISON;
		r->up[i] = 0;
	}
	CK(cudaMemcpy(r->watches, w, n * sizeof(w[0]), cudaMemcpyHostToDevice));
	CK(cudaMemcpy(r->seen, seen, n * sizeof(seen[0]), cudaMemcpyHostToDevice));
	CK(cudaMemcpy(r->clock, &clock, sizeof(clock), cudaMemcpyHostToDevice));
	CK(cudaMemcpy(r->qps, r->image, n * POST_QP_STRIDE, cudaMemcpyHostToDevice));
	if (r->state_size)
		CK(cudaMemcpy(r->states, r->state_image, n * r->state_size,
			      cudaMemcpyHostToDevice));
	CK(cudaMemset(r->rings, 0xa5, ring));
	CK(cudaMemset(r->cqs, 0xff, ring));
	CK(cudaMemset(r->records, 0, n * 128));
	if (r->reg_on_gpu)
		CK(cudaMemset(r->regs, 0, n * POST_REG_STRIDE));
	else
		memset(r->regs, 0, n * POST_REG_STRIDE);
	CK(cudaDeviceSynchronize());
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* A kernel that hangs cannot be ended: the process says so and goes. */
static void rig_sync(cudaStream_t s, const char *what)
{
	const double end = seconds() + POST_HANG_S;
	cudaError_t err;

	while ((err = cudaStreamQuery(s)) == cudaErrorNotReady) {
		if (seconds() > end) {
			printf("HANG\t%s\n", what);
			fflush(stdout);
			_exit(3);
		}
		usleep(50);
	}
	CK(err);
}

static void rig_start_nic(struct post_rig *r, const char *what)
{
	const double end = seconds() + POST_HANG_S;
	uint32_t i = 0;

	post_consume<<<r->shape.qps, r->shape.qps == 1 ? 1024 : 128, 0, r->nic>>>(
		r->watches, r->seen, r->up, POST_NIC_LIMIT_NS);
	CK(cudaGetLastError());
	while (i < r->shape.qps) {
		if (r->up[i])
			i++;
		else if (seconds() > end) {
			printf("HANG\t%s: the consumer did not start\n", what);
			fflush(stdout);
			_exit(3);
		}
	}
}

struct post_result {
	double ns;
	uint64_t verified, mismatches, bad, late;
};

/* After the run: slots handed out, last doorbell. */
static uint64_t rig_end(const struct post_rig *r, uint64_t per_qp, int rung)
{
	const size_t n = r->shape.qps;
	uint8_t *got = (uint8_t *)malloc(n * POST_QP_STRIDE);
	uint8_t *reg = (uint8_t *)malloc(n * POST_REG_STRIDE);
	uint64_t wrong = 0;

	CK(cudaMemcpy(got, r->qps, n * POST_QP_STRIDE, cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(reg, r->regs, n * POST_REG_STRIDE, cudaMemcpyDefault));
	for (uint32_t i = 0; i < n; i++) {
		const QP *q = (const QP *)(got + (size_t)i * POST_QP_STRIDE);
		const uint64_t *db = (const uint64_t *)(reg + (size_t)i * POST_REG_STRIDE);
		const uint32_t last = (uint32_t)per_qp & 0xffff;
		int ok = q->sq_rsvd_index == per_qp;

		if (rung && rig_source(r) == POST_COUNTER)
			ok = ok && db[0] == per_qp;
		else if (rung && r->handler != DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR)
			ok = ok && ((post_register_index(db[0]) & 0xffff) == last ||
				    (post_register_index(db[32]) & 0xffff) == last);
		wrong += !ok;
	}
	free(got);
	free(reg);
	return wrong;
}

/* Posts iters messages per thread; with the NIC, until the last is verified. */
static struct post_result rig_run(struct post_rig *r, post_kernel kernel, uint32_t iters,
				  uint32_t every, int with_nic, const char *what)
{
	const uint64_t per_qp = (uint64_t)r->shape.blocks / r->shape.qps * r->shape.threads * iters;
	struct post_seen seen[POST_MAX_QPS];
	struct post_result res = {};
	struct post_clock clock;

	rig_reset(r, per_qp);
	if (with_nic)
		rig_start_nic(r, what);
	kernel<<<r->shape.blocks, r->shape.threads, 0, r->post>>>(r->qps, r->shape.qps, iters,
								  every, r->clock);
	CK(cudaGetLastError());
	rig_sync(r->post, what);
	rig_sync(r->nic, what);
	CK(cudaMemcpy(&clock, r->clock, sizeof(clock), cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(seen, r->seen, r->shape.qps * sizeof(seen[0]), cudaMemcpyDeviceToHost));
	for (uint32_t i = 0; with_nic && i < r->shape.qps; i++) {
		const struct post_seen *s = &seen[i];

		res.verified += s->verified;
		res.mismatches += s->mismatches;
		res.bad |= s->bad;
		res.late += s->late;
		if (s->verified != per_qp || s->sum != post_sum(per_qp) ||
		    s->squares != post_sum_squares(per_qp))
			res.mismatches++, res.bad |= POST_BAD_SET;
		if (s->end_ns > clock.end_ns)
			clock.end_ns = s->end_ns;
	}
	const uint64_t wrong = rig_end(r, per_qp, every != 0);

	res.mismatches += wrong;
	res.bad |= wrong ? POST_BAD_END : 0;
	res.ns = (double)(clock.end_ns - clock.start_ns);
	return res;
}

#endif
