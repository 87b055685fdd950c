/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Queue pairs without a NIC for the posting benchmark. The including file defines the
 * layout of a queue pair with the kit_* functions. Rings, CQs and DBRECs are in GPU
 * memory or optionally in pinned host memory; states are in GPU memory. The register
 * pages are in pinned host memory, so that a doorbell crosses PCIe, or optionally in GPU
 * memory. Before each run, rings and CQs are filled with invalid values.
 */
#ifndef POST_RIG_CUH
#define POST_RIG_CUH

#include <atomic>
#include <endian.h>
#include <string.h>
#include <thread>

#include "post_nic.cuh"

/* bytes from one QP to the next; an export also allocates each QP alone */
#define POST_QP_STRIDE	512
#define POST_REG_STRIDE 4096
#define POST_LINE	128
#define POST_MAX_QPS	512
#define POST_UP		256 /* at least the number of the consumer's blocks */
#define POST_RADDR	0x7f1200000000ull
#define POST_LADDR	0x7e3400000000ull
#define POST_RKEY	0x44332211u
#define POST_LKEY	0x88776655u
/* ns after which the consumer ends even if it has not seen all WQEs */
#define POST_NIC_LIMIT_NS 15000000000ull

struct post_options {
	int reg_on_gpu;	   /* register pages in GPU memory */
	int sys_scope;	   /* fences at system scope, as if a part of the QP were in host memory */
	int host_queues;   /* rings, CQs and DBRECs in pinned host memory */
	double target_ms;  /* duration of one run */
	int first;	   /* first row to run */
	int matrix, micro; /* run this part instead of the table */
	int exclusive;	   /* only rows of one thread per QP and of exclusive QPs */
	int no_free;	   /* without the rates without availability check */
};

enum post_handler { POST_DB, POST_BF, POST_NO_DBR, POST_PROXY };

/* Grid of the posting kernel: block b uses QP b % qps. depth: slots of each ring. */
struct post_shape {
	uint32_t blocks, threads, qps, depth;
};

typedef void (*post_kernel)(uint8_t *qps, uint32_t n, uint32_t iters, uint32_t every,
			    struct post_clock *clock);
typedef void (*post_nic_kernel)(const struct post_watch *watches, struct post_seen *seen,
				volatile uint32_t *up, uint64_t limit_ns, uint32_t blocks,
				uint32_t parts);

struct post_row {
	const char *name;
	post_kernel checked, unchecked; /* unchecked: without the check for free slots, or NULL */
	enum post_handler handler;
	struct post_shape shape;
	uint32_t bytes, inl;
	uint32_t every;	  /* messages per doorbell; 0: no doorbell */
	uint32_t granule; /* the number of iterations is a multiple of it */
	double target;	  /* required rate, as a multiple of the peer's rate; 0: none */
	/* Of an Ethernet queue: struct post_expect; the consumer. NULL: that of queue pairs. */
	uint32_t call_slots, call_packets;
	post_nic_kernel nic;
	int capacity; /* 1: also measure the consumer's own speed on this row */
};

struct post_rig {
	struct post_shape shape;
	enum post_handler handler;
	struct post_expect want;
	post_nic_kernel consume;
	int sys_scope, reg_on_gpu, host_queues;
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

/* Allocates memory of the queues. */
static uint8_t *rig_alloc(const struct post_rig *r, size_t len)
{
	uint8_t *p;

	if (r->host_queues)
		CK(cudaHostAlloc(&p, len, cudaHostAllocMapped));
	else
		CK(cudaMalloc(&p, len));
	return p;
}

static void rig_free(const struct post_rig *r, uint8_t *p)
{
	CK(r->host_queues ? cudaFreeHost(p) : cudaFree(p));
}

static void rig_fill(const struct post_rig *r, uint8_t *p, int value, size_t len)
{
	if (r->host_queues)
		memset(p, value, len);
	else
		CK(cudaMemset(p, value, len));
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
	r->sys_scope = o->sys_scope || o->host_queues;
	r->host_queues = o->host_queues;
	r->want.raddr = POST_RADDR;
	r->want.laddr = POST_LADDR;
	r->want.rkey = POST_RKEY;
	r->want.lkey = POST_LKEY;
	r->want.bytes = w->bytes;
	r->want.inl = w->inl;
	r->want.call_slots = w->call_slots;
	r->want.call_packets = w->call_packets;
	r->consume = w->nic ? w->nic : post_consume<struct post_puts_of_qp>;
	r->state_size = kit_state_size(w->shape.depth);
	r->image = (uint8_t *)calloc(n, POST_QP_STRIDE);
	r->state_image = (uint8_t *)calloc(n, r->state_size + 1);
	CK(cudaMalloc(&r->qps_mem, n * POST_QP_STRIDE + room + kit_skew()));
	r->rings = rig_alloc(r, ring);
	r->cqs = rig_alloc(r, ring);
	r->records_mem = rig_alloc(r, n * POST_LINE + room);
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
	rig_free(r, r->rings);
	rig_free(r, r->cqs);
	rig_free(r, r->records_mem);
	void *const dev[] = { r->qps_mem, r->states_mem, r->watches, r->seen, r->clock };
	for (void *p : dev)
		CK(cudaFree(p));
	free(r->image);
	free(r->state_image);
}

/* Slots that the messages of a QP take. */
static uint64_t rig_slots(const struct post_rig *r)
{
	return r->want.call_slots ? r->want.count / r->want.call_packets * r->want.call_slots
				  : r->want.count;
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
		w[i].slots = rig_slots(r);
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
	rig_fill(r, r->rings, 0xa5, ring);
	rig_fill(r, r->cqs, 0xff, ring);
	rig_fill(r, r->records, 0, n * POST_LINE);
	if (r->reg_on_gpu)
		CK(cudaMemset(r->regs, 0, n * POST_REG_STRIDE));
	else
		memset(r->regs, 0, n * POST_REG_STRIDE);
	memset(r->passed, 0, n * POST_LINE); /* keeps the round counter after them */
	CK(cudaDeviceSynchronize());
}

/* Fills the CQs with the CQEs of the first lap, so that all WQEs of this lap seem complete. */
static inline void rig_fill_cqes(const struct post_rig *r)
{
	const size_t len = (size_t)r->shape.depth * 64;
	uint8_t *cq = (uint8_t *)calloc(1, len);

	for (uint32_t q = 0; q < r->shape.qps; q++) {
		for (uint32_t i = 0; i < r->shape.depth; i++) {
			const uint64_t tail = post_cqe_tail(i, r->shape.depth, 0x100 + q);

			memcpy(cq + (size_t)i * 64 + 56, &tail, sizeof(tail));
		}
		CK(cudaMemcpy(r->cqs + q * len, cq, len, cudaMemcpyDefault));
	}
	free(cq);
}

/* Copies the registers in host memory to the consumer's lines, in rounds that it counts,
 * until `stop` is set. */
static inline void rig_pass_on(const struct post_rig *r, const std::atomic<int> *stop)
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

/* Checks after a run that each QP has reserved `slots` slots and, if doorbells were rung
 * (`rung`), the last doorbell, except with POST_NO_DBR. If doorbells were late (`late`), one
 * may have overwritten the register; the last index in the DBREC is then sufficient.
 * Returns the number of wrong QPs. */
static uint64_t rig_end(const struct post_rig *r, uint64_t slots, int rung, int late)
{
	const size_t n = r->shape.qps;
	uint8_t *got = (uint8_t *)malloc(n * POST_QP_STRIDE);
	uint8_t *reg = (uint8_t *)malloc(n * POST_REG_STRIDE);
	uint8_t *record = (uint8_t *)malloc(n * POST_LINE);
	uint64_t wrong = 0;

	CK(cudaMemcpy(got, r->qps, n * POST_QP_STRIDE, cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(reg, r->regs, n * POST_REG_STRIDE, cudaMemcpyDefault));
	CK(cudaMemcpy(record, r->records, n * POST_LINE, cudaMemcpyDefault));
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t *db = (const uint64_t *)(reg + (size_t)i * POST_REG_STRIDE);
		const uint32_t said = be32toh(*(const uint32_t *)(record + i * POST_LINE));
		const uint32_t last = (uint32_t)slots & 0xffff;
		int ok = kit_reserved(got + (size_t)i * POST_QP_STRIDE) == slots;

		if (rung && rig_source(r) == POST_COUNTER)
			ok = ok && db[0] == slots;
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

#endif
