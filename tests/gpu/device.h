/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Between the driver of the GPU test (device*.c, C) and its kernels
 * (device_kernels.cu, CUDA): what a launch does, and which value belongs where.
 *
 * A launch has blocks * threads threads; each makes iters operations. Operation i
 * of thread t has the number k = t * iters + i and a cell of its own: size bytes
 * at src + k * size and dst + k * size, 8 bytes at old + 8 * k; of a cell gt_length()
 * bytes are moved. Offsets are in bytes from the payload's start.
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
#define GT_BLOCK_MAX 256 /* threads */
#ifndef GT_PART
#define GT_PART (4u << 20) /* bytes of each of src, dst and old */
#endif
#ifndef GT_CHUNK_SHIFT
#define GT_CHUNK_SHIFT 30 /* of the most bytes of one WQE */
#endif
#define GT_OLD_HALF  (GT_PART / 2)
#define GT_UNTOUCHED UINT64_MAX /* what old is filled with */
#define GT_RUNNING   0x7f7f7f7f
#define GT_EBADDATA  4242 /* status: completed, and the data was not there */

enum gt_op {
	GT_PUT,
	GT_P,	       /* of size bytes: 1, 2, 4, 8, 28, 60 or 100 */
	GT_SIGNAL,     /* add 1 to counter 0 */
	GT_SIGNAL_SET, /* set word k of old */
	GT_PUT_SIGNAL, /* both */
	GT_PUT_SIGNAL_SET,
	GT_P_SIGNAL,
	GT_GET,			      /* src is the far end; the kernel checks what it got */
	GT_GET_MCST,		      /* get with a dump, blocking */
	GT_LAST_SCOPED = GT_GET_MCST, /* these at warp and block scope too */
	GT_GET_WAIT,		      /* get, then get_wait with a dump */
	GT_FENCE,		      /* get, fence, put of what was got to the cell of old */
	GT_CAS,			      /* counter k goes from k to its value */
	GT_LOW,			      /* by hand: an unsignalled NOP and a write, one publication */
	GT_LOW_BF,		      /* by hand, the WQE's copy in shared memory for BlueFlame */
	GT_LOW_BF_WARP,		      /* by hand, one lane's WQE by BlueFlame of the warp */
	GT_BUILD,    /* by hand, every builder; rung by the function for the handler */
	GT_RING,     /* by hand, rung past the functions that publish */
	GT_PAIR,     /* half on the QP, half on its companion, submitted together */
	GT_FORMS,    /* functions of one scope, and those without ticket */
	GT_HANDLER,  /* put with the handler named in the kernel, not AUTO */
	GT_BARE_PUT, /* put of what the host wrote; cells of any length */
	GT_BARE_GET,
	GT_IMM,		/* writes whose immediate is their slot's index, and NOPs */
	GT_MIX,		/* of GT_MIX, GT_BUILD, GT_FORMS gt_kind() says which */
	GT_PUT_COUNTER, /* as without; the companion adds 1 to counter 1 */
	GT_P_COUNTER,
	GT_PUT_SIGNAL_COUNTER,
	GT_SIGNAL_COUNTER,
	GT_GET_COUNTER,
	GT_HOLE,   /* thread 0 reserves a slot that stays empty; all wait for it */
	GT_DENIED, /* thread 0 writes with a wrong key; all wait for it */
	GT_TOOLS,  /* what needs no queue */
	GT_WRONG,  /* thread 0: a good WQE, and one with a word changed; all wait for it */
	GT_SHOW,   /* one put, whose WQE and CQE are printed */
	GT_UNRUNG, /* three slots that are never rung */
	GT_OPS,
};

/* What an operation does, in bits. */
#define GT_DATA	 0x01u /* the cell appears at dst */
#define GT_STAMP 0x02u /* the thread fills the cell at src first */
#define GT_ADD	 0x04u /* counter 0 rises by 1; its old value lands in old */
#define GT_SET	 0x08u /* word k of old is set */
#define GT_READ	 0x10u /* the thread looks at its dst afterwards */
#define GT_TAIL	 0x20u /* a WQE behind the data, one for the whole group */
#define GT_COUNT 0x40u /* counter 1 rises by 1; its old value lands in old's second half */
#define GT_THIRD 0x80u /* the cell appears at old */

/* What operation k of a GT_MIX, GT_BUILD or GT_FORMS does. */
enum gt_kind {
	GT_KIND_PUT,
	GT_KIND_PUT_NO_DB,
	GT_KIND_P,
	GT_KIND_ADD,
	GT_KIND_LOW_PAIR, /* two slots, the first unsignalled, of one reservation */
	GT_KIND_LOW_NO_DB,
	GT_KIND_LONG, /* a WQE of two slots; changes the cell's first word */
	GT_KIND_GET,
	GT_MIX_KINDS,
	GT_KIND_WRITE2 = GT_MIX_KINDS, /* of two pieces */
	GT_KIND_READ,
	GT_KIND_READ2,
	GT_KIND_INLINE,	      /* of memory */
	GT_KIND_INLINE_PARTS, /* head, then the value */
	GT_KIND_FA,
	GT_KIND_CS,
	GT_KIND_MFA4, /* masked, of 4 bytes */
	GT_KIND_MFA8,
	GT_KIND_MCS4,
	GT_KIND_DUMP, /* behind a write */
	GT_KIND_WAIT, /* for a write, before another */
	GT_BUILD_END,
	GT_KIND_PUT_SCOPE = GT_BUILD_END, /* names that end in their scope */
	GT_KIND_P_SCOPE,
	GT_KIND_PUT_SIGNAL_SCOPE,
	GT_KIND_SIGNAL_SCOPE,
	GT_KIND_GET_SCOPE,
	GT_KIND_PUT_BARE, /* without ticket */
	GT_KIND_P_BARE,
	GT_KIND_PUT_SIGNAL_BARE,
	GT_KIND_P_SIGNAL_BARE,
	GT_KIND_SIGNAL_BARE,
	GT_KINDS,
};
#define GT_SPLIT 24 /* bytes of the first of two pieces */

/* How a thread waits for what it posted. */
enum gt_wait {
	GT_WAIT,      /* wait(ticket) */
	GT_FLUSH,     /* wait() for all that was reserved */
	GT_POLL_AT,   /* poll_cq_at */
	GT_POLL_ONE,  /* poll_one_cq_at until it is there */
	GT_IN_TURN,   /* the four above; all WQEs have one slot and a CQE */
	GT_BY_TICKET, /* the first two */
	GT_POLL_NEXT, /* poll_cq of as many CQEs as were posted; alone on the QP */
	GT_COLLAPSED, /* poll_cq_collapsed_at */
	GT_COUNTED,   /* wait() for the QP and for its companion */
};

struct gt_job {
	struct doca_gpu_dev_verbs_qp *qp[GT_QPS], *companion[GT_QPS];
	uint32_t nqps;
	uint32_t by_thread; /* thread t uses qp[t mod nqps]; else block b does */
	uint32_t op, mode, scope, handler, wait, code_opt;
	uint32_t blocks, threads, iters, size;
	uint32_t batch;	 /* waits after so many operations */
	uint32_t varied; /* lengths differ from cell to cell */
	uint32_t idle;	 /* mask of the lanes that do nothing */
	uint32_t depth;	 /* of each ring */
	uint32_t seed;
	uint32_t word, flip; /* of GT_WRONG: which, in WQE 1, and its bits */
	uint32_t debug;	     /* the kernel of the debug build */
	uint32_t lkey_be, rkey_be;
	uint64_t nic;			  /* the payload's start as in WQEs */
	uint8_t *gpu;			  /* and as the GPU addresses it */
	uint64_t src, dst, old, counters; /* offsets */
	int *status;			  /* of each thread, GT_RUNNING before it ends */
};

/* What all threads of a GT_TOOLS change together, at counters; zero before. */
struct gt_tools {
	uint64_t sum, most, ready;
	int64_t least_negated;
	uint32_t sum32, most32, locked;
	int lock;
};

/* What kernels of the debug build print, at counters + GT_LOG; text ends in 0. */
#define GT_LOG 4096
struct gt_log {
	uint64_t used;		   /* bytes of text */
	uint32_t wqe[16], cqe[16]; /* of GT_SHOW */
	char text[16384];
};

/* Word w of cell k. */
GT_BOTH uint64_t gt_word(uint64_t k, uint64_t w, uint32_t seed)
{
	uint64_t v = (k * 64 + w + 1) * 0x9e3779b97f4a7c15ull + seed;

	v ^= v >> 32;
	return (v * 0xff51afd7ed558ccdull) ^ v >> 29;
}

/* Byte i of cell k. */
GT_BOTH uint8_t gt_byte(uint64_t k, uint32_t i, uint32_t seed)
{
	return (uint8_t)(gt_word(k, i / 8, seed) >> 8 * (i % 8));
}

/* Is operation k one of a lane that does nothing? */
GT_BOTH int gt_idle(const struct gt_job *j, uint64_t k)
{
	return j->idle && j->idle >> k / j->iters % j->threads % 32 & 1;
}

/* Bytes of cell k that its operation moves: none, few, or up to all of it. */
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

/* GT_KINDS where all operations of the job are the same. */
GT_BOTH enum gt_kind gt_kind(const struct gt_job *j, uint64_t k)
{
	const uint32_t any = (uint32_t)(gt_word(k, 63, j->seed) >> 40);

	if (j->op == GT_MIX)
		return (enum gt_kind)(any % GT_MIX_KINDS);
	if (j->op == GT_BUILD)
		return (enum gt_kind)(GT_MIX_KINDS + any % (GT_BUILD_END - GT_MIX_KINDS));
	if (j->op == GT_FORMS) /* the same for all lanes of a warp */
		return (enum gt_kind)(GT_BUILD_END + k % j->iters % (GT_KINDS - GT_BUILD_END));
	return GT_KINDS;
}

#ifdef __cplusplus
extern "C" {
#endif

/* 0, or a negative number after saying why on stderr. */
int gt_gpu_open(const char *pci);
int gt_gpu_launch(const struct gt_job *job);
int gt_gpu_done(void); /* 1: the kernel ended, 0: not yet */
int gt_gpu_copy(void *dst, const void *src, size_t len);

/* One per sharing mode, each from its own compilation of device_kernels.cu. */
int gt_launch_EXCLUSIVE(const struct gt_job *job, void *stream);
int gt_launch_CTA(const struct gt_job *job, void *stream);
int gt_launch_GPU(const struct gt_job *job, void *stream);
int gt_launch_DEBUG(const struct gt_job *job, void *stream); /* GPU, with GDK_DEBUG */

#ifdef __cplusplus
}
#endif

#endif
