/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The payload of gpunetio_verbs_put_bw, and the interface between the program (C, without
 * CUDA) and the two implementations of its data path: CPU threads (put_bw_host.c) and a GPU
 * (put_bw_kernel.cu, a separate shared object).
 *
 * Each thread owns `window` slots of `size` bytes in the payload (these are not slots of the
 * send ring). Its message i goes from its slot i % window to the same slot of the server. The
 * first 8 bytes of a slot change with each message; the other bytes depend on thread and slot
 * only. So the server can compute the expected value of every byte after the last message.
 */
#ifndef PUT_BW_H
#define PUT_BW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define PUT_BW_FN static __host__ __device__ __forceinline__
#else
#define PUT_BW_FN static inline
#endif

struct doca_gpu_dev_verbs_qp;

struct put_bw_shape { /* parameters that the client sends to the server */
	uint32_t threads;
	uint32_t iters;	 /* messages of each thread */
	uint32_t size;	 /* bytes of a message */
	uint32_t window; /* slots of each thread */
};

struct put_bw_job {
	struct put_bw_shape shape;
	const char *gpu; /* PCI address; unused by CPU threads */
	struct doca_gpu_dev_verbs_qp *qp;
	bool warp;
	uint32_t batch; /* number of messages after which a thread waits */
	uint8_t *src;	/* address at which the threads access the client's slots */
	uint64_t src_addr, dst_addr;
	uint32_t lkey_be, rkey_be;
	unsigned int timeout_s;
	void (*abort)(void *arg); /* ends all waits of the threads */
	void *arg;
	double seconds; /* result: time from the start of the threads to their end */
};

/* Returns 0 or a negative errno value: that of the first thread that failed, -ETIMEDOUT, -EINTR, or
 * that of the failed start. */
int put_bw_host_run(struct put_bw_job *job);

/* The GPU's shared object exports these two functions; put_bw_cuda.c loads them. */
#ifdef __cplusplus
extern "C" {
#endif
int put_bw_gpu_run(struct put_bw_job *job);
int put_bw_gpu_copy(const char *gpu, void *dst, const void *src, size_t len);
#ifdef __cplusplus
}
#endif

/* put_bw_cuda.c: call put_bw_gpu_run() and put_bw_gpu_copy() of the shared object. They print an
 * error and return -1 if the shared object is missing. */
int put_bw_cuda_run(struct put_bw_job *job);
int put_bw_cuda_copy(const char *gpu, void *dst, const void *src, size_t len);

/* put_bw_pattern.c, for all slots. put_bw_fill() writes the client's source. put_bw_poison() writes
 * the server's memory before the transfer: every byte differs from the expected one.
 * put_bw_check() returns 0 if all bytes are right; otherwise it prints the first wrong one and
 * returns -1. */
int put_bw_fill(const struct put_bw_shape *s, uint8_t *payload);
int put_bw_poison(const struct put_bw_shape *s, uint8_t *payload);
int put_bw_check(const struct put_bw_shape *s, uint8_t *payload);

PUT_BW_FN size_t put_bw_bytes(const struct put_bw_shape *s)
{
	return (size_t)s->threads * s->window * s->size;
}

PUT_BW_FN uint64_t put_bw_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

PUT_BW_FN uint64_t put_bw_slot(const struct put_bw_shape *s, uint32_t thread, uint32_t iter)
{
	return ((uint64_t)thread * s->window + iter % s->window) * s->size;
}

/* Word w of a slot that contains message iter. Word 0 is the stamp, which changes with iter. */
PUT_BW_FN uint64_t put_bw_word(const struct put_bw_shape *s, uint32_t thread, uint32_t iter,
			       uint32_t w)
{
	uint32_t tag = w ? iter % s->window : iter;

	return put_bw_mix(put_bw_mix((uint64_t)thread << 32 | tag) + w);
}

PUT_BW_FN void put_bw_stamp(const struct put_bw_shape *s, uint8_t *slot, uint32_t thread,
			    uint32_t iter)
{
	uint64_t word = put_bw_word(s, thread, iter, 0);

	for (uint32_t b = 0; b < 8 && b < s->size; b++)
		slot[b] = (uint8_t)(word >> 8 * b);
}

#endif
