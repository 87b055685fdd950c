/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Shared by the host part of the GPU test (device*.c, C) and its kernels
 * (device_kernels.cu, CUDA): the description of a launch (struct gt_job), and the data
 * that each operation moves.
 *
 * A launch has `blocks` blocks of `threads` threads, and each thread performs `iters`
 * operations; comments below name the operations that differ. Operation i of thread t has
 * the number k = t * iters + i and its own cell: size bytes at src + k * size and at dst +
 * k * size, and 8 bytes (word k) at old + 8 * k. An operation that moves data moves
 * gt_length() bytes of its cell; those that gt_kind() selects have lengths of their own
 * (kind_facts in device_check.c). Offsets are in bytes from the start of the payload.
 */
#ifndef GT_DEVICE_H
#define GT_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define GT_CONST constexpr
#else
#define GT_CONST
#endif
#ifdef __CUDACC__
#define GT_BOTH __host__ __device__ static inline
#else
#define GT_BOTH static inline
#endif

#define GT_QPS	     64
#define GT_BLOCK_MAX 256 /* largest number of threads per block */
#ifndef GT_PART
#define GT_PART (4u << 20) /* bytes of each of src, dst and old */
#endif
#ifndef GT_CHUNK_SHIFT
#define GT_CHUNK_SHIFT 30 /* log2 of the largest transfer of one WQE */
#endif
#define GT_OLD_HALF  (GT_PART / 2)
#define GT_UNTOUCHED UINT64_MAX /* initial value of the words in old */
#define GT_RUNNING   0x7f7f7f7f
#define GT_EBADDATA  4242 /* status: data is wrong, or a function returned a wrong value */

enum gt_op {
	GT_PUT,
	GT_P,	       /* inline put; size is 1, 2, 4, 8, 28, 60 or 100 bytes */
	GT_SIGNAL,     /* adds 1 to counter 0 */
	GT_SIGNAL_SET, /* sets word k of old */
	GT_PUT_SIGNAL, /* a put and a signal that adds */
	GT_PUT_SIGNAL_SET,
	GT_P_SIGNAL,
	GT_GET,			      /* reads src into dst; the kernel checks the result */
	GT_GET_MCST,		      /* blocking get, followed by a dump WQE */
	GT_LAST_SCOPED = GT_GET_MCST, /* up to this one also at warp and block scope */
	GT_GET_WAIT,		      /* get, then get_wait with a dump */
	/* get, fence, then a put of the received data to the cell in old */
	GT_FENCE,
	GT_CAS, /* word k at `counters` changes from k to gt_word(k, 0) */
	/* built by the kernel: an unsignaled NOP and a write, published together */
	GT_LOW,
	/* built by the kernel; BlueFlame writes a copy of the WQE from shared memory */
	GT_LOW_BF,
	/* built by the kernel; all lanes together write each lane's WQE through BlueFlame */
	GT_LOW_BF_WARP,
	/* Built by the kernel with the WQE builder that gt_kind() selects. Half of the
	 * operations are submitted with the function for the QP's handler. */
	GT_BUILD,
	GT_RING,	/* built by the kernel; rung with the low-level ring functions */
	GT_PAIR,	/* half of the cell on the QP, half on its companion, submitted together */
	GT_FORMS,	/* functions named for one scope, and functions without a ticket */
	GT_HANDLER,	/* put with the QP's handler named in the kernel instead of AUTO */
	GT_BARE_PUT,	/* put of data that the host wrote; cells of any length */
	GT_BARE_GET,	/* get of data that the host wrote; cells of any length */
	GT_IMM,		/* write with the index of its slot as immediate data; some after a NOP */
	GT_MIX,		/* gt_kind() selects the operation, as for GT_BUILD and GT_FORMS */
	GT_PUT_COUNTER, /* *_COUNTER: as without COUNTER; the companion also adds 1 to counter 1 */
	GT_P_COUNTER,
	GT_PUT_SIGNAL_COUNTER,
	GT_SIGNAL_COUNTER,
	GT_GET_COUNTER,
	/* A receive, then a send to the same QP, then a wait for the receive. A message begins with
	 * its number k, and word k at counters counts it. Each QP has a receive queue. */
	GT_RECV,
	/* thread 0 posts a receive; all wait for it, or for a free slot, until an abort */
	GT_RECV_HOLE,
	/* Operations of the RDMA library on an object at counters + GT_RDMA, whose connections are
	 * the QPs. Weak: a group reserves a position for each of its threads. */
	GT_RDMA_STRONG,
	GT_RDMA_WEAK,
	GT_HOLE,   /* thread 0 reserves slot 0 and never fills it; all wait until an abort */
	GT_DENIED, /* thread 0 posts a good write and one with a wrong rkey; all wait for the 2nd */
	GT_TOOLS,  /* functions that need no queue */
	GT_WRONG,  /* thread 0 posts a good WQE and one with a changed word; all wait for the 2nd */
	GT_SHOW,   /* one put; the kernel prints its WQE and its CQE */
	GT_UNRUNG, /* one put, then three slots that are reserved and never rung */
	GT_OPS,
};

/* Does the operation need a receive queue? */
GT_BOTH GT_CONST int gt_receives(uint32_t op)
{
	return op == GT_RECV || op == GT_RECV_HOLE;
}

GT_BOTH GT_CONST int gt_rdma(uint32_t op)
{
	return op == GT_RDMA_STRONG || op == GT_RDMA_WEAK;
}

/* Effects of an operation, as bits. */
#define GT_DATA	 0x01u /* writes the cell at dst */
#define GT_STAMP 0x02u /* the thread fills the cell at src first */
#define GT_ADD	 0x04u /* adds 1 to counter 0; the old value is returned in word k of old */
#define GT_SET	 0x08u /* sets word k of old */
#define GT_READ	 0x10u /* the thread checks its cell at dst afterwards */
#define GT_TAIL	 0x20u /* one more WQE, after any data: a signal per thread, or a dump per group */
/* adds 1 to counter 1; the old value is returned in word k of the second half of old */
#define GT_COUNT 0x40u
#define GT_THIRD 0x80u /* also writes size bytes at old + k * size */

/* What operation k of GT_MIX, GT_BUILD or GT_FORMS does. */
enum gt_kind {
	GT_KIND_PUT,
	GT_KIND_PUT_NO_DB,
	GT_KIND_P,
	GT_KIND_ADD,
	GT_KIND_LOW_PAIR, /* one reservation of two slots; the first WQE is unsignaled */
	GT_KIND_LOW_NO_DB,
	GT_KIND_LONG, /* one WQE of two slots; writes the first word of the cell */
	GT_KIND_GET,
	GT_MIX_KINDS,
	GT_KIND_WRITE2 = GT_MIX_KINDS, /* with two data segments */
	GT_KIND_READ,
	GT_KIND_READ2,
	GT_KIND_INLINE,	      /* inline data from memory */
	GT_KIND_INLINE_PARTS, /* inline data: builds the header first, then the value */
	GT_KIND_FA,
	GT_KIND_CS,
	GT_KIND_MFA4, /* masked atomic on 4 bytes */
	GT_KIND_MFA8,
	GT_KIND_MCS4,
	GT_KIND_DUMP, /* a write, then a dump */
	GT_KIND_WAIT, /* a write, a WAIT for its completion, then another write */
	GT_BUILD_END,
	GT_KIND_PUT_SCOPE = GT_BUILD_END, /* *_SCOPE: functions whose names end in their scope */
	GT_KIND_P_SCOPE,
	GT_KIND_PUT_SIGNAL_SCOPE,
	GT_KIND_SIGNAL_SCOPE,
	GT_KIND_GET_SCOPE,
	GT_KIND_PUT_BARE, /* *_BARE: functions without a ticket argument */
	GT_KIND_P_BARE,
	GT_KIND_PUT_SIGNAL_BARE,
	GT_KIND_P_SIGNAL_BARE,
	GT_KIND_SIGNAL_BARE,
	GT_KINDS,
};
#define GT_SPLIT 24 /* bytes of the first of two data segments */

/* How a thread waits for the operations that it posted. The functions have the prefix
 * doca_gpu_dev_verbs_. */
enum gt_wait {
	GT_WAIT,      /* wait(ticket) */
	GT_FLUSH,     /* wait() for all reserved slots */
	GT_POLL_AT,   /* poll_cq_at */
	GT_POLL_ONE,  /* poll_one_cq_at, repeated until the CQE is there */
	GT_IN_TURN,   /* the four above, alternating; requires one slot and one CQE per WQE */
	GT_BY_TICKET, /* wait(ticket) and wait(), alternating */
	GT_POLL_NEXT, /* poll_cq for as many CQEs as WQEs were posted; requires one thread per QP */
	GT_COLLAPSED, /* poll_cq_collapsed_at */
	GT_COUNTED,   /* wait() for the QP and for its companion */
};

struct gt_job {
	struct doca_gpu_dev_verbs_qp *qp[GT_QPS], *companion[GT_QPS];
	uint32_t nqps;
	uint32_t by_thread; /* 1: thread t uses qp[t mod nqps]; 0: block b uses qp[b mod nqps] */
	uint32_t op, mode, scope, handler, wait, code_opt;
	uint32_t blocks, threads, iters, size;
	uint32_t batch;	 /* operations between two waits */
	uint32_t varied; /* 1: lengths differ from cell to cell, see gt_length() */
	uint32_t idle;	 /* bit mask of the lanes that do nothing */
	uint32_t depth;	 /* of each ring, in slots */
	uint32_t seed;
	/* GT_WRONG: index of the changed word of WQE 1, and the bits to flip */
	uint32_t word, flip;
	uint32_t debug; /* 1: use the kernel of the debug build */
	uint32_t lkey_be, rkey_be;
	uint64_t nic;			  /* address of the payload in WQEs */
	uint8_t *gpu;			  /* address of the payload for the GPU */
	uint64_t src, dst, old, counters; /* offsets in the payload */
	int *status;			  /* one per thread; GT_RUNNING until the thread ends */
};

/* Words at `counters` that all threads of GT_TOOLS change; initially zero. */
struct gt_tools {
	uint64_t sum, most, ready;
	int64_t least_negated;
	uint32_t sum32, most32, locked;
	int lock;
};

/* Of operations of the RDMA library: the object at counters + GT_RDMA, and words that all threads
 * change at counters + GT_RDMA_WORDS; initially zero. */
#define GT_RDMA	       4096
#define GT_RDMA_WORDS  32768
#define GT_RDMA_CONNS  32
#define GT_RDMA_BLOCKS 256
struct gt_rdma {
	uint64_t made, counted; /* commits */
	uint64_t reserved[GT_RDMA_CONNS], turn[GT_RDMA_CONNS];
	uint64_t passed[GT_RDMA_BLOCKS]; /* from the first thread of a block to the others */
	uint32_t failed;
};

/* Output of the debug build's kernels, at counters + GT_LOG. text ends with a NUL. */
#define GT_LOG 4096
struct gt_log {
	uint64_t used;		   /* bytes appended to text, also those that did not fit */
	uint32_t wqe[16], cqe[16]; /* written by GT_SHOW */
	char text[16384];
};

/* Word w of the data of cell k. */
GT_BOTH uint64_t gt_word(uint64_t k, uint64_t w, uint32_t seed)
{
	uint64_t v = (k * 64 + w + 1) * 0x9e3779b97f4a7c15ull + seed;

	v ^= v >> 32;
	return (v * 0xff51afd7ed558ccdull) ^ v >> 29;
}

/* Byte i of the data of cell k. */
GT_BOTH uint8_t gt_byte(uint64_t k, uint32_t i, uint32_t seed)
{
	return (uint8_t)(gt_word(k, i / 8, seed) >> 8 * (i % 8));
}

/* Returns whether operation k belongs to an idle lane. */
GT_BOTH int gt_idle(const struct gt_job *j, uint64_t k)
{
	return j->idle && j->idle >> k / j->iters % j->threads % 32 & 1;
}

/* Number of bytes of cell k that its operation moves: the whole cell, or with `varied`
 * 0, 1, about a third, half or all of it. */
GT_BOTH uint32_t gt_length(const struct gt_job *j, uint64_t k)
{
	const uint32_t turn = (uint32_t)(gt_word(k, 62, j->seed) >> 40) % 5;

	if (!j->varied)
		return j->size;
	return turn < 2 ? turn : turn == 4 ? j->size : (j->size - 1) / (5 - turn);
}

GT_BOTH GT_CONST uint32_t gt_flags(uint32_t op)
{
	switch (op) {
	case GT_P:
		return GT_DATA;
	case GT_SIGNAL:
		return GT_ADD | GT_TAIL;
	case GT_SIGNAL_SET:
		return GT_SET | GT_TAIL;
	case GT_PUT_SIGNAL:
		return GT_DATA | GT_STAMP | GT_ADD | GT_TAIL;
	case GT_PUT_SIGNAL_SET:
		return GT_DATA | GT_STAMP | GT_SET | GT_TAIL;
	case GT_P_SIGNAL:
		return GT_DATA | GT_ADD | GT_TAIL;
	case GT_GET:
		return GT_DATA | GT_STAMP | GT_READ;
	case GT_GET_MCST:
	case GT_GET_WAIT:
		return GT_DATA | GT_STAMP | GT_READ | GT_TAIL;
	case GT_FENCE:
		return GT_DATA | GT_STAMP | GT_READ | GT_THIRD;
	case GT_CAS:
		return 0;
	case GT_BARE_PUT:
	case GT_BARE_GET:
		return GT_DATA;
	case GT_PUT_COUNTER:
	case GT_GET_COUNTER:
		return GT_DATA | GT_STAMP | GT_COUNT;
	case GT_P_COUNTER:
		return GT_DATA | GT_COUNT;
	case GT_PUT_SIGNAL_COUNTER:
		return GT_DATA | GT_STAMP | GT_ADD | GT_TAIL | GT_COUNT;
	case GT_SIGNAL_COUNTER:
		return GT_ADD | GT_TAIL | GT_COUNT;
	default:
		return GT_DATA | GT_STAMP;
	}
}

/* Kind of operation k; GT_KINDS if all operations of the job are the same. */
GT_BOTH enum gt_kind gt_kind(const struct gt_job *j, uint64_t k)
{
	const uint32_t any = (uint32_t)(gt_word(k, 63, j->seed) >> 40);

	if (j->op == GT_MIX)
		return (enum gt_kind)(any % GT_MIX_KINDS);
	if (j->op == GT_BUILD)
		return (enum gt_kind)(GT_MIX_KINDS + any % (GT_BUILD_END - GT_MIX_KINDS));
	if (j->op == GT_FORMS) /* must be the same for all lanes of a warp */
		return (enum gt_kind)(GT_BUILD_END + k % j->iters % (GT_KINDS - GT_BUILD_END));
	return GT_KINDS;
}

#ifdef __cplusplus
extern "C" {
#endif

/* These return 0, or another number after a failure. Errors of CUDA are logged on stderr. */
int gt_gpu_open(const char *pci);
int gt_gpu_launch(const struct gt_job *job);
int gt_gpu_done(void); /* 1: the kernel ended, 0: it is still running, negative: it failed */
int gt_gpu_copy(void *dst, const void *src, size_t len);

/* One per sharing mode, each from its own compilation of device_kernels.cu. They return -1
 * if the operation is not compiled for that build. */
int gt_launch_EXCLUSIVE(const struct gt_job *job, void *stream);
int gt_launch_CTA(const struct gt_job *job, void *stream);
int gt_launch_GPU(const struct gt_job *job, void *stream);
/* sharing mode GPU, compiled with GDK_DEBUG */
int gt_launch_DEBUG(const struct gt_job *job, void *stream);

#ifdef __cplusplus
}
#endif

#endif
