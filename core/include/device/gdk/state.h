/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The state block: all mutable state that the threads of one exported QP share, apart from the
 * public device struct, which users may copy. There is one block per QP, 128-byte aligned, in
 * memory that the GPU addresses. An exported receive queue has a block of its own (recv_dev.h). The
 * device struct (field gdk_state) and its CQ point to the block. The host writes an initial image
 * at export and after each reset.
 *
 * Posts need two mutable fields of the device struct: sq_rsvd_index, and the plain end
 * (status_dev.h). So slots must be reserved through the one original struct (dev_struct.c); all
 * other calls may use a copy. Other mutable fields (sq_wqe_pi, rq_wqe_pi, cqe_ci of a CQ) are
 * stored for programs that read them.
 */
#ifndef GDK_QP_STATE_H
#define GDK_QP_STATE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/doca_gpunetio_verbs_dev.h"

/* Fences that order accesses to ring, CQ, DBREC or register must have system scope, because the CPU
 * can access the memory of one of them, or because CPU threads execute the device functions. */
#define GDK_QPF_SYS_SCOPE  0x1u
#define GDK_QPF_COLLAPSED  0x2u	 /* every CQE is written to entry 0 */
#define GDK_QPF_HOST_EXEC  0x4u	 /* CPU threads execute the device functions */
#define GDK_QPF_BLUEFLAME  0x8u	 /* BlueFlame register: doorbells must not overlap copies of WQEs */
#define GDK_QPF_HOST_LOOKS 0x10u /* waiting GPU threads poll CQEs or this block in host memory */
#define GDK_QPF_RUNG_READ  0x20u /* a CPU thread polls `rung` and stores the DBREC */
#define GDK_QPF_RECV	   0x40u /* this is the block of a receive queue (recv_dev.h) */
#define GDK_QPF_ETHERNET   0x80u /* the ring is an Ethernet send queue */

/* Opcode of a request to the NIC's copy engine (MLX5_OPCODE_MMO in mlx5dv.h of rdma-core 44), and
 * its opcode modifier (MLX5_OPC_MOD_MMO_DMA in providers/mlx5/wqe.h). DOCA GPUNetIO has no names
 * for them. */
#define GDK_OPCODE_MMO	  0x2fu
#define GDK_OPMOD_MMO_DMA 1u

/* Values of `left`. It is 0 if a thread holds the token, or if the token is parked in a word;
 * token_dev.h describes these states of the token. */
#define GDK_LEFT     1u /* the token is left: the next thread that wants a doorbell takes it */
#define GDK_LEFT_OWN 2u /* a thread in exclusive use owns the token */
#define GDK_LEFT_SYS 3u /* the same, and GDK_QPF_SYS_SCOPE is set */

#define GDK_STATE_LINE 128

/*
 * Offset of a device struct from the start of a cache line. It puts sq_rsvd_index, which posters
 * increment, and the read-only fields that follow it into different lines. An atomic addition makes
 * later loads of its line miss the first-level cache, 110 to 130 ns each (H200, 256 threads that
 * share a QP: 149 M WQE/s; with both in one line: 132 M).
 */
#define GDK_DEV_SKEW 96

#define GDK_NO_WQE	  UINT64_MAX	 /* value of error_wqe while there is no error */
#define GDK_WAIT_LIMIT_NS 60000000000ull /* default of wait_limit_ns */

/*
 * Two fields in host memory for each exported queue. In them the host and waiting GPU threads
 * report that the queue cannot complete work. A waiting GPU thread reads them only after the first
 * millisecond of its wait and when its time limit is over, so posts and the first polls do not
 * touch them. All accesses are relaxed, because no other data depends on the two fields.
 */
struct gdk_watch_word {
	uint32_t hint;	/* 0, or GDK_HINT_*; the host stores it */
	uint32_t ended; /* errno with which a wait ended the queue, or 0; the host clears it */
};
#define GDK_HINT_UNCONNECTED 1u /* the QP was not connected since its creation or its last reset */
/* The CPU must ring, no service monitors the QP, and slots below this index are rung. */
#define GDK_HINT_RUNG(index) ((uint32_t)(index) << 2 | 2u)

/*
 * Indices count slots since export or reset and never wrap. A slot of a send ring has 64 bytes.
 * Invariants:
 *   all slots below `rung` are published (in exclusive use right after `rung` is stored);
 *   completed <= rung, because the ringer stores `rung` before it rings the doorbell.
 * The words follow the struct, one for 32 slots. The low half of a word has the ready bits: slot i
 * is published when its bit is 1 in an even lap of the ring (lap = i / depth), or 0 in an odd lap.
 * The high half has the token bits; at most one is set in all words (token_dev.h).
 */
struct gdk_qp_state {
	/* Only the host writes these fields. The addresses are those that GPU threads use. */
	uint32_t flags;		/* GDK_QPF_* */
	uint32_t depth;		/* number of slots, a power of two, at most 32768 */
	uint64_t wait_limit_ns; /* time limit of every wait; 0: no limit */
	uint64_t watch;		/* address of the queue's gdk_watch_word */
	uint64_t ring;		/* address of slot 0 */
	uint64_t reg;		/* address of doorbell register, or counter of the CPU proxy */
	uint64_t dbrec;		/* address of this queue's word of the DBREC */
	uint64_t cq_ring;	/* address of entry 0 of the CQ */
	uint64_t cq_rsvd;	/* absolute index of the CQE of slot 0 */
	uint32_t cq_num;	/* number of CQ entries in use, a power of two; collapsed: 1 */
	uint32_t qpn8_be;	/* QP number << 8, big-endian: second word of a doorbell */
	uint32_t handler;	/* handler of the export, enum doca_gpu_dev_verbs_nic_handler */
	uint8_t pad0[GDK_STATE_LINE - 76];

	/* Requests for doorbells, and the token while it is left or owned. */
	uint64_t wanted; /* slots below it must be rung once they are published; only grows */
	uint32_t left;	 /* GDK_LEFT*; 0: a thread holds the token, or it is parked */
	uint32_t pad1;
	/* Exclusive use: end of the slots that were published without a doorbell. It is not in the
	 * line of `doorbells`, which the same posts load, because a store makes such a load miss
	 * the first-level cache (H100: 4.4 instead of 7.7 M/s). */
	uint64_t marked;
	uint8_t pad2[GDK_STATE_LINE - 24];

	/* Only the holder of the token writes these fields. Exceptions: any thread may store `rung`
	 * by hand (by_hand_dev.h), increase a counter, set key_noted, or clear the plain end. */
	uint64_t rung;	       /* slots below this index were rung */
	uint64_t doorbells;    /* number of register stores by GPU threads */
	uint64_t parked;       /* slot where the token was parked last, or GDK_NO_WQE */
	uint64_t bare_rings;   /* number of register stores without a DBREC store */
	uint64_t bare_records; /* number of DBREC stores without a register store */
	uint32_t bf_half;      /* 0 or 0x100: offset of the BlueFlame half to use next */
	uint32_t key_noted;    /* 1: the debug build has reported a suspicious key */
	uint64_t pad3;	       /* keeps the offsets with which the rates were measured */
	uint32_t polled;       /* exclusive use: counts empty polls (gdk_poll_repeats()) */
	uint64_t plain_at;     /* exclusive use: address of the plain end (status_dev.h), or 0 */
	uint64_t plain_sys;    /* the plain end itself if GDK_QPF_SYS_SCOPE is set */
	uint8_t pad4[GDK_STATE_LINE - 80];

	/* Completion, errors and abort (wait_dev.h). */
	uint64_t completed;  /* slots below this index are complete; loaded with `status` */
	int32_t status;	     /* 0, or the first negative errno, which ended the QP */
	uint32_t abort_word; /* the host sets it to abort; loaded with `status` */
	uint64_t cqe_ci;     /* CQEs below this absolute index are processed */
	uint64_t error_wqe;  /* lowest WQE index of the error CQEs found, or GDK_NO_WQE */
	uint64_t error_ci;   /* lowest absolute index of these CQEs, or GDK_NO_WQE */
	uint32_t uneven;     /* 1: a WQE was unsignalled or longer than one slot; stays 1 */
	uint32_t long_wqe;   /* 1: a WQE was longer than one slot; stays 1 */
	uint32_t poll_ns;    /* HOST_LOOKS: time of the last poll of a CQE, ns modulo 2^32 */
	uint64_t cqes_told;  /* number of CQEs that callers have consumed (gdk_cq_consume()) */
	struct gdk_watch_word unwatched; /* for a queue that has no gdk_watch_word in host memory */
	uint8_t pad5[GDK_STATE_LINE - 72];
	/* the words of the slots follow */
};

#define GDK_WORD_SLOTS 32u
#define GDK_TOKEN(bit) ((uint64_t)1 << (GDK_WORD_SLOTS + (bit)))

/* Returns the size of a state block in bytes. Its address must be a multiple of GDK_STATE_LINE. */
static inline size_t gdk_qp_state_size(uint32_t depth)
{
	size_t words = (depth + GDK_WORD_SLOTS - 1) / GDK_WORD_SLOTS;
	size_t len = sizeof(struct gdk_qp_state) + words * sizeof(uint64_t);

	return (len + GDK_STATE_LINE - 1) & ~(size_t)(GDK_STATE_LINE - 1);
}

/* Returns the offset of the device struct from the start of the state block. One piece of memory
 * contains both. */
static inline size_t gdk_dev_struct_at(uint32_t depth)
{
	return gdk_qp_state_size(depth) + GDK_DEV_SKEW;
}

/*
 * Writes the initial image. In it no slot is reserved, published, rung or complete, and the token
 * is parked at slot 0. `image` is host memory of gdk_qp_state_size(depth) bytes. The caller then
 * calls gdk_qp_state_bind(). After a reset that kept the CQ, the caller sets cqe_ci in the image,
 * and cqe_rsvd in the device CQ, to the absolute producer index of the CQ.
 */
static inline void gdk_qp_state_format(void *image, uint32_t depth, uint32_t flags)
{
	struct gdk_qp_state *st = (struct gdk_qp_state *)image;
	uint64_t *words = (uint64_t *)(st + 1);

	memset(image, 0, gdk_qp_state_size(depth));
	st->flags = flags;
	st->depth = depth;
	st->wait_limit_ns = GDK_WAIT_LIMIT_NS;
	st->error_wqe = GDK_NO_WQE;
	st->error_ci = GDK_NO_WQE;
	words[0] = GDK_TOKEN(0);
}

/* Copies the constant fields from the device struct of the QP to the image. The flags of the image
 * are already set. */
static inline void gdk_qp_state_bind(void *image, const struct doca_gpu_dev_verbs_qp *dev)
{
	struct gdk_qp_state *st = (struct gdk_qp_state *)image;

	st->ring = (uint64_t)(uintptr_t)dev->sq_wqe_daddr;
	st->reg = (uint64_t)(uintptr_t)dev->sq_db;
	st->dbrec = (uint64_t)(uintptr_t)dev->sq_dbrec;
	st->cq_ring = (uint64_t)(uintptr_t)dev->cq_sq.cqe_daddr;
	st->cq_rsvd = dev->cq_sq.cqe_rsvd;
	st->cq_num = st->flags & GDK_QPF_COLLAPSED ? 1 : dev->cq_sq.cqe_num;
	st->qpn8_be = dev->sq_num_shift8_be;
	st->watch = (uint64_t)(uintptr_t)dev->gdk_state + offsetof(struct gdk_qp_state, unwatched);
	st->handler = (uint32_t)dev->nic_handler;
}

#if defined(__cplusplus)
#define GDK_STATE_ASSERT(cond, text) static_assert(cond, text)
#else
#define GDK_STATE_ASSERT(cond, text) _Static_assert(cond, text)
#endif
GDK_STATE_ASSERT(sizeof(struct gdk_qp_state) == 4 * GDK_STATE_LINE, "one line per writer");
GDK_STATE_ASSERT(sizeof(struct gdk_watch_word) == 8, "one word of a page of words");
GDK_STATE_ASSERT(offsetof(struct gdk_qp_state, wanted) == GDK_STATE_LINE, "line 0: constants");
GDK_STATE_ASSERT(offsetof(struct gdk_qp_state, rung) % 16 == 0, "rung, doorbells: one access");
GDK_STATE_ASSERT(offsetof(struct gdk_qp_state, plain_sys) ==
			 offsetof(struct gdk_qp_state, plain_at) + 8,
		 "one write clears both");
GDK_STATE_ASSERT(offsetof(struct gdk_qp_state, completed) % 16 == 0, "and status: one access");

#endif
