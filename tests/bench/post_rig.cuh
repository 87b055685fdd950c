/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Queue pairs without a NIC for the posting benchmark, and one timed run on them. The
 * including file defines the layout of a queue pair with the kit_* functions. Rings,
 * CQs, DBRECs and states are in GPU memory; the register pages are in pinned host
 * memory, so that a doorbell crosses PCIe, or optionally in GPU memory. Before each run,
 * rings and CQs are filled with invalid values.
 */
#ifndef POST_RIG_CUH
#define POST_RIG_CUH

#include <atomic>
#include <cuda_runtime.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <thread>
#include <time.h>
#include <unistd.h>

#include "post_nic.cuh"

#define CK(x) \
	do { \
		cudaError_t ck_ = (x); \
		if (ck_ != cudaSuccess) { \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #x, \
				cudaGetErrorString(ck_)); \
			exit(1); \
		} \
	} while (0)

/* bytes from one QP to the next; an export also allocates each QP alone */
#define POST_QP_STRIDE	512
#define POST_REG_STRIDE 4096
#define POST_LINE	128
#define POST_MAX_QPS	132
#define POST_UP		256 /* at least the number of the consumer's blocks */
#define POST_RADDR	0x7f1200000000ull
#define POST_LADDR	0x7e3400000000ull
#define POST_RKEY	0x44332211u
#define POST_LKEY	0x88776655u
/* ns after which the consumer ends even if it has not seen all WQEs */
#define POST_NIC_LIMIT_NS 15000000000ull
#define POST_HANG_S	  25 /* seconds: a kernel that takes longer is reported as hanging */

struct post_options {
	int reg_on_gpu;	   /* register pages in GPU memory */
	int sys_scope;	   /* fences at system scope, as if a part of the QP were in host memory */
	double target_ms;  /* duration of one run */
	int first;	   /* first row to run */
	int matrix, micro; /* run this part instead of the table */
};

enum post_handler { POST_DB, POST_BF, POST_NO_DBR, POST_PROXY };

/* Grid of the posting kernel: block b uses QP b % qps. depth: slots of each ring. */
struct post_shape {
	uint32_t blocks, threads, qps, depth;
};

typedef void (*post_kernel)(uint8_t *qps, uint32_t n, uint32_t iters, uint32_t every,
			    struct post_clock *clock);

struct post_row {
	const char *name;
	post_kernel checked, unchecked; /* unchecked: without the check for free slots, or NULL */
	enum post_handler handler;
	struct post_shape shape;
	uint32_t bytes, inl;
	uint32_t every;	  /* messages per doorbell; 0: no doorbell */
	uint32_t granule; /* the number of iterations is a multiple of it */
	double target;	  /* required rate, as a multiple of the peer's rate; 0: none */
	int capacity;	  /* 1: also measure the consumer's own speed on this row */
};

struct post_rig {
	struct post_shape shape;
	enum post_handler handler;
	struct post_expect want;
	int sys_scope, reg_on_gpu;
	uint8_t *image;	      /* host copy of the initial QPs */
	uint8_t *state_image; /* host copy of the initial states; unused for the peer */
	size_t state_size;
	uint8_t *qps, *rings, *cqs, *records, *states, *regs;
	/* allocations that contain qps, records and states */
	uint8_t *qps_mem, *records_mem, *states_mem;
	struct post_watch *watches;
	struct post_seen *seen;
	struct post_clock *clock;
	/* pinned: one word per consumer block, which the block sets when it starts */
	volatile uint32_t *up;
	/* Pinned: copies of the registers for the consumer, one cache line each. The next line
	 * is the round counter of the thread that copies. */
	uint8_t *passed;
	cudaStream_t post, nic;
};

/* Bytes of the state of one QP; 0: none. */
static size_t kit_state_size(uint32_t depth);
/* Offset of a QP's struct from the start of a cache line. */
static size_t kit_skew(void);
/* Fills in QP i in r->image and r->state_image, which are copied to the GPU before each
 * run. */
static void kit_fill(struct post_rig *r, uint32_t i);
/* Fills in *w: what the NIC polls and expects for QP i. */
static void kit_watch(const struct post_rig *r, uint32_t i, struct post_watch *w);
/* Number of reserved slots, read from a copy of a QP's memory after a run. */
static uint64_t kit_reserved(const uint8_t *qp);

/* Returns what the NIC polls: the proxy's counter or the register. With BlueFlame, which
 * uses two halves of the register page in turn, the NIC polls the DBREC. */
static enum post_source rig_source(const struct post_rig *r)
{
	if (r->handler == POST_PROXY)
		return POST_COUNTER;
	return r->handler == POST_BF ? POST_RECORD : POST_REGISTER;
}

/* The address of a word determines which part of the L2 cache holds it, near or far,
 * and thereby changes the speed of a QP by up to a half. `place` is the index of one memory
 * layout. The runs of one measurement use different places, which put QPs, DBRECs and states
 * (`what` 0, 1 and 2) at different pseudo-random offsets. The offsets of a place are the same
 * at every start of the program. The matrix uses only place 0. */
#define POST_PLACE_LINES 65536u

static size_t rig_place(uint32_t place, uint32_t what)
{
	return (size_t)((place * 3 + what) * 2654435761u % POST_PLACE_LINES) * POST_LINE;
}

static void rig_open(struct post_rig *r, const struct post_options *o, const struct post_row *w,
		     uint32_t place)
{
	const size_t n = w->shape.qps, ring = n * w->shape.depth * 64;
	const size_t room = (size_t)POST_PLACE_LINES * POST_LINE;

	memset(r, 0, sizeof(*r));
	r->shape = w->shape;
	r->handler = w->handler;
	r->reg_on_gpu = o->reg_on_gpu;
	r->sys_scope = o->sys_scope;
	r->want.raddr = POST_RADDR;
	r->want.laddr = POST_LADDR;
	r->want.rkey = POST_RKEY;
	r->want.lkey = POST_LKEY;
	r->want.bytes = w->bytes;
	r->want.inl = w->inl;
	r->state_size = kit_state_size(w->shape.depth);
	r->image = (uint8_t *)calloc(n, POST_QP_STRIDE);
	r->state_image = (uint8_t *)calloc(n, r->state_size + 1);
	CK(cudaMalloc(&r->qps_mem, n * POST_QP_STRIDE + room + kit_skew()));
	CK(cudaMalloc(&r->rings, ring));
	CK(cudaMalloc(&r->cqs, ring));
	CK(cudaMalloc(&r->records_mem, n * POST_LINE + room));
	CK(cudaMalloc(&r->states_mem, n * r->state_size + 128 + room));
	r->qps = r->qps_mem + rig_place(place, 0) + kit_skew();
	r->records = r->records_mem + rig_place(place, 1);
	r->states = r->states_mem + rig_place(place, 2);
	CK(cudaMalloc(&r->watches, n * sizeof(*r->watches)));
	CK(cudaMalloc(&r->seen, n * sizeof(*r->seen)));
	CK(cudaMalloc(&r->clock, sizeof(*r->clock)));
	if (r->reg_on_gpu)
		CK(cudaMalloc(&r->regs, n * POST_REG_STRIDE));
	else
		CK(cudaHostAlloc(&r->regs, n * POST_REG_STRIDE, cudaHostAllocMapped));
	CK(cudaHostAlloc(&r->passed, (n + 1) * POST_LINE, cudaHostAllocMapped));
	memset(r->passed, 0, (n + 1) * POST_LINE);
	CK(cudaHostAlloc((void **)&r->up, POST_UP * sizeof(*r->up), cudaHostAllocMapped));
	CK(cudaStreamCreateWithFlags(&r->post, cudaStreamNonBlocking));
	CK(cudaStreamCreateWithFlags(&r->nic, cudaStreamNonBlocking));
	for (uint32_t i = 0; i < n; i++)
		kit_fill(r, i);
}

static void rig_close(struct post_rig *r)
{
	CK(cudaStreamDestroy(r->post));
	CK(cudaStreamDestroy(r->nic));
	CK(cudaFreeHost((void *)r->up));
	CK(cudaFreeHost(r->passed));
	CK(r->reg_on_gpu ? cudaFree(r->regs) : cudaFreeHost(r->regs));
	void *const dev[] = { r->qps_mem,    r->rings,	 r->cqs,  r->records_mem,
			      r->states_mem, r->watches, r->seen, r->clock };
	for (void *p : dev)
		CK(cudaFree(p));
	free(r->image);
	free(r->state_image);
}

static void rig_reset_nic(struct post_rig *r, uint64_t per_qp)
{
	const size_t n = r->shape.qps;
	struct post_watch w[POST_MAX_QPS];
	struct post_seen seen[POST_MAX_QPS] = {};

	r->want.count = per_qp;
	for (uint32_t i = 0; i < n; i++) {
		memset(&w[i], 0, sizeof(w[i]));
		w[i].want = r->want;
		w[i].depth = r->shape.depth;
		w[i].source = rig_source(r);
		kit_watch(r, i, &w[i]);
		if (!r->reg_on_gpu) {
			w[i].reg = (uint64_t *)(r->passed + (size_t)i * POST_LINE);
			w[i].beat = (uint64_t *)(r->passed + n * POST_LINE);
		}
		seen[i].end_ns = POST_POISON;
	}
	CK(cudaMemcpy(r->watches, w, n * sizeof(w[0]), cudaMemcpyHostToDevice));
	CK(cudaMemcpy(r->seen, seen, n * sizeof(seen[0]), cudaMemcpyHostToDevice));
}

/* Prepares a run: copies the initial QPs and states to the GPU, fills the rings with invalid
 * WQEs and the CQs with invalid CQEs (with the owner bit of the previous lap), and sets
 * DBRECs and registers to 0. */
static void rig_reset(struct post_rig *r, uint64_t per_qp)
{
	const size_t n = r->shape.qps, ring = n * r->shape.depth * 64;
	static const struct post_clock clock = { UINT64_MAX, 0 };

	rig_reset_nic(r, per_qp);
	CK(cudaMemcpy(r->clock, &clock, sizeof(clock), cudaMemcpyHostToDevice));
	CK(cudaMemcpy(r->qps, r->image, n * POST_QP_STRIDE, cudaMemcpyHostToDevice));
	if (r->state_size)
		CK(cudaMemcpy(r->states, r->state_image, n * r->state_size,
			      cudaMemcpyHostToDevice));
	CK(cudaMemset(r->rings, 0xa5, ring));
	CK(cudaMemset(r->cqs, 0xff, ring));
	CK(cudaMemset(r->records, 0, n * POST_LINE));
	if (r->reg_on_gpu)
		CK(cudaMemset(r->regs, 0, n * POST_REG_STRIDE));
	else
		memset(r->regs, 0, n * POST_REG_STRIDE);
	memset(r->passed, 0, n * POST_LINE); /* keeps the round counter after them */
	CK(cudaDeviceSynchronize());
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Waits for a stream. A kernel that hangs cannot be ended, so the process reports it after
 * POST_HANG_S and exits. */
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

/* Number of the consumer's blocks per QP. Each block of 1024 threads fills a multiprocessor.
 * With few QPs, several blocks (a cluster) serve one QP, because each QP can receive more
 * WQEs. With many QPs, one block serves nic_parts() QPs. */
static uint32_t nic_blocks(uint32_t qps)
{
	return qps == 1 ? 8 : qps <= 4 ? 4 : 1;
}

static uint32_t nic_parts(uint32_t qps)
{
	return qps > 32 ? POST_PARTS : 1;
}

static uint32_t nic_grid(uint32_t qps)
{
	return nic_blocks(qps) * qps / nic_parts(qps);
}

static void launch_nic(struct post_rig *r)
{
	const uint32_t blocks = nic_blocks(r->shape.qps), parts = nic_parts(r->shape.qps);
	cudaLaunchConfig_t config = {};
	cudaLaunchAttribute cluster = {};

	cluster.id = cudaLaunchAttributeClusterDimension;
	cluster.val.clusterDim = { blocks, 1, 1 };
	config.gridDim = nic_grid(r->shape.qps);
	config.blockDim = 1024;
	config.stream = r->nic;
	config.attrs = &cluster;
	config.numAttrs = 1;
	CK(cudaLaunchKernelEx(&config, post_consume, (const struct post_watch *)r->watches, r->seen,
			      r->up, (uint64_t)POST_NIC_LIMIT_NS, blocks, parts));
}

static void rig_start_nic(struct post_rig *r, const char *what)
{
	const uint32_t blocks = nic_grid(r->shape.qps);
	const double end = seconds() + POST_HANG_S;
	uint32_t i = 0;

	memset((void *)r->up, 0, POST_UP * sizeof(*r->up));
	launch_nic(r);
	while (i < blocks) {
		if (r->up[i])
			i++;
		else if (seconds() > end) {
			printf("HANG\t%s: the consumer did not start\n", what);
			fflush(stdout);
			_exit(3);
		}
	}
}

/* Copies the registers in host memory to the consumer's lines, in rounds that it counts,
 * until `stop` is set. */
static void rig_pass_on(const struct post_rig *r, const std::atomic<int> *stop)
{
	volatile uint64_t *beat = (uint64_t *)(r->passed + r->shape.qps * POST_LINE);

	while (!stop->load(std::memory_order_relaxed)) {
		for (uint32_t i = 0; i < r->shape.qps; i++) {
			const uint8_t *reg = r->regs + (size_t)i * POST_REG_STRIDE;
			uint8_t *to = r->passed + (size_t)i * POST_LINE;
			const uint64_t v = *(const volatile uint64_t *)reg;

			if (*(volatile uint64_t *)to != v)
				*(volatile uint64_t *)to = v;
		}
		*beat = *beat + 1;
	}
}

struct post_result {
	double ns;
	uint64_t verified, mismatches, bad, late;
	uint64_t nic_start_ns; /* start of the last block of the consumer */
};

/* Checks the number of reserved slots of each QP after a run and, if doorbells were rung
 * (`rung`), the last doorbell, except with POST_NO_DBR. If doorbells were late (`late`), one
 * may have overwritten the register; the last index in the DBREC is then sufficient.
 * Returns the number of wrong QPs. */
static uint64_t rig_end(const struct post_rig *r, uint64_t per_qp, int rung, int late)
{
	const size_t n = r->shape.qps;
	uint8_t *got = (uint8_t *)malloc(n * POST_QP_STRIDE);
	uint8_t *reg = (uint8_t *)malloc(n * POST_REG_STRIDE);
	uint8_t *record = (uint8_t *)malloc(n * POST_LINE);
	uint64_t wrong = 0;

	CK(cudaMemcpy(got, r->qps, n * POST_QP_STRIDE, cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(reg, r->regs, n * POST_REG_STRIDE, cudaMemcpyDefault));
	CK(cudaMemcpy(record, r->records, n * POST_LINE, cudaMemcpyDeviceToHost));
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t *db = (const uint64_t *)(reg + (size_t)i * POST_REG_STRIDE);
		const uint32_t said = be32toh(*(const uint32_t *)(record + i * POST_LINE));
		const uint32_t last = (uint32_t)per_qp & 0xffff;
		int ok = kit_reserved(got + (size_t)i * POST_QP_STRIDE) == per_qp;

		if (rung && rig_source(r) == POST_COUNTER)
			ok = ok && db[0] == per_qp;
		else if (rung && r->handler != POST_NO_DBR)
			ok = ok && ((post_register_index(db[0]) & 0xffff) == last ||
				    (post_register_index(db[32]) & 0xffff) == last ||
				    (late && (said & 0xffff) == last));
		wrong += !ok;
	}
	free(got);
	free(reg);
	free(record);
	return wrong;
}

/* Adds up the consumer's results. Every message of every QP must have been seen
 * exactly once. *end_ns becomes the time at which the consumer finished the last QP, if
 * that is later. */
static void rig_judge(struct post_rig *r, struct post_result *res, uint64_t *end_ns)
{
	const uint64_t count = r->want.count;
	struct post_seen seen[POST_MAX_QPS];

	CK(cudaMemcpy(seen, r->seen, r->shape.qps * sizeof(seen[0]), cudaMemcpyDeviceToHost));
	for (uint32_t i = 0; i < r->shape.qps; i++) {
		const struct post_seen *s = &seen[i];

		res->verified += s->verified;
		res->mismatches += s->mismatches;
		res->bad |= s->bad;
		res->late += s->late;
		if (s->verified != count || s->sum != post_sum(count) ||
		    s->squares != post_sum_squares(count))
			res->mismatches++, res->bad |= POST_BAD_SET;
		*end_ns = s->end_ns > *end_ns ? s->end_ns : *end_ns;
		res->nic_start_ns = s->start_ns > res->nic_start_ns ? s->start_ns
								    : res->nic_start_ns;
	}
}

/* Posts iters messages per thread. The time runs until the last message is verified or,
 * without the NIC, until the last thread has posted. */
static struct post_result rig_run(struct post_rig *r, post_kernel kernel, uint32_t iters,
				  uint32_t every, int with_nic, const char *what)
{
	const uint64_t per_qp = (uint64_t)r->shape.blocks / r->shape.qps * r->shape.threads * iters;
	std::atomic<int> stop(!with_nic || r->reg_on_gpu);
	struct post_result res = {};
	struct post_clock clock;

	rig_reset(r, per_qp);
	std::thread passing(rig_pass_on, r, &stop);
	if (with_nic)
		rig_start_nic(r, what);
	kernel<<<r->shape.blocks, r->shape.threads, 0, r->post>>>(r->qps, r->shape.qps, iters,
								  every, r->clock);
	CK(cudaGetLastError());
	rig_sync(r->post, what);
	rig_sync(r->nic, what);
	stop = 1;
	passing.join();
	CK(cudaMemcpy(&clock, r->clock, sizeof(clock), cudaMemcpyDeviceToHost));
	if (with_nic)
		rig_judge(r, &res, &clock.end_ns);
	const uint64_t wrong = rig_end(r, per_qp, every != 0, res.late != 0);

	res.mismatches += wrong;
	res.bad |= wrong ? POST_BAD_END : 0;
	res.ns = (double)(clock.end_ns - clock.start_ns);
	return res;
}

/* Runs the consumer alone over what the last run posted (at most one ring) and returns
 * its own limit, in million WQEs per second; 0 if a WQE is wrong. */
static double rig_capacity(struct post_rig *r)
{
	struct post_result res = {};
	uint64_t end_ns = 0;

	rig_reset_nic(r, r->want.count);
	rig_start_nic(r, "the consumer alone");
	rig_sync(r->nic, "the consumer alone");
	rig_judge(r, &res, &end_ns);
	return res.mismatches ? 0
			      : (double)res.verified * 1e3 / (double)(end_ns - res.nic_start_ns);
}

#endif
