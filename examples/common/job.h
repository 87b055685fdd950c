/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The work of one kernel launch: queue pairs, payload and number of messages. Kernels get a struct
 * ex_job by value. For C, for CUDA, and for C++ on CPU threads. pattern.h defines the data.
 *
 * A grid has num_queues * blocks blocks of threads / blocks threads. Block b works on queue pair
 * b / blocks.
 */
#ifndef EXAMPLES_JOB_H
#define EXAMPLES_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __CUDACC__
#define EX_FN static __host__ __device__ __forceinline__
#else
#define EX_FN static inline
#endif

struct doca_gpu_dev_verbs_qp;

/* One queue pair and its part of the payload. Pointers are addresses for threads (of the GPU or the
 * CPU), *_addr are addresses for the NIC. */
struct ex_dev_queue {
	struct doca_gpu_dev_verbs_qp *qp;
	struct doca_gpu_dev_verbs_qp *companion; /* NULL unless the program uses counters */
	uint8_t *data;				 /* source of puts, destination of gets */
	const uint8_t *recv; /* the peer puts into it; same as data unless it is ping-pong */
	uint64_t data_addr;  /* data, for the NIC */
	uint64_t peer_addr;  /* destination of puts, source of gets, in the peer's memory */
	uint64_t *flags;     /* 8 bytes per thread of the queue pair; the peer adds to them */
	uint64_t *prev;	     /* 8 bytes per thread: results of its fetch-and-add */
	uint64_t flags_addr, prev_addr, peer_flags_addr;
	uint32_t key, peer_key; /* of the whole payload, big-endian */
};

struct ex_job {
	struct ex_dev_queue *queues; /* array in memory that threads can access */
	uint32_t num_queues;
	uint32_t blocks;     /* of each queue pair */
	uint32_t threads;    /* of each queue pair, in all its blocks together */
	uint32_t size;	     /* bytes of a message */
	uint32_t window;     /* slots of each thread in the data */
	uint64_t first;	     /* number of the first iteration; launches continue one another */
	uint32_t iters;	     /* iterations of each thread in this launch */
	uint32_t batch;	     /* messages of a thread between two waits, at most window */
	bool warp;	     /* post at warp scope */
	bool client;	     /* false: the server of a ping-pong program */
	uint32_t handler;    /* enum doca_gpu_dev_verbs_nic_handler in effect */
	uint32_t *samples;   /* latency: ticks of each iteration, iters entries; otherwise NULL */
	double *ns_per_tick; /* stored by the kernel */
	int *status;	     /* of each thread of the grid: 0 or negative errno; -1 before it ran */
	const void *arg;     /* NULL, or what else the kernel of the program reads */
};

#endif
