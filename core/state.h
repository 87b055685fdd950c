/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The state block: all mutable state that the threads of one exported QP share, apart from
 * the public device struct, which users may copy. There is one block per QP, 128-byte
 * aligned, in memory that the GPU addresses. The device struct (field gdk_state) and its CQ
 * point to it. The host writes an initial image at export and after each reset.
 *
 * Two mutable fields remain in the device struct: sq_rsvd_index, and the plain end
 * (status_dev.h). So slots must be reserved through the one original struct
 * (dev_struct.c); all other calls may use a copy.
 */
#ifndef GDK_QP_STATE_H
#define GDK_QP_STATE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../../common/doca_gpunetio_verbs_dev.h"

/* Fences that order accesses to ring, CQ, DBREC or register must have system scope, because the CPU
 * can access the memory of one of them (or the GPU is made of CPU threads). */
#define GDK_QPF_SYS_SCOPE  0x1u
#define GDK_QPF_COLLAPSED  0x2u	 /* every CQE is written to entry 0 */
#define GDK_QPF_HOST_EXEC  0x4u	 /* the GPU is made of CPU threads */
#define GDK_QPF_BLUEFLAME  0x8u	 /* BlueFlame register: doorbells must not overlap WQE copies */
#define GDK_QPF_HOST_LOOKS 0x10u /* a waiting GPU polls CQEs in host memory */
#define GDK_QPF_RUNG_READ  0x20u /* a CPU thread polls rung and writes the DBREC */
#define GDK_QPF_RECV	   0x40u /* the state block of a receive queue (recv_dev.h) */
#define GDK_QPF_ETHERNET   0x80u /* the WQEs are those of an Ethernet send queue */

/* A request to the NIC's copy engine (MLX5_OPCODE_MMO in mlx5dv.h of rdma-core 44) and its opcode
 * modifier (MLX5_OPC_MOD_MMO_DMA in providers/mlx5/wqe.h). DOCA GPUNetIO has no names for them. */
#define GDK_OPCODE_MMO	  0x2fu
#define GDK_OPMOD_MMO_DMA 1u

/* Values of `left`. 0: a thread holds the token, or the token is parked in a word. */
#define GDK_LEFT     1u /* left: the next thread that wants slots to be rung takes the token */
#define GDK_LEFT_OWN 2u /* owned by exclusive use */
#define GDK_LEFT_SYS 3u /* owned by exclusive use, and GDK_QPF_SYS_SCOPE is set */

#define GDK_STATE_LINE 128

/*
 * Offset of a device struct from the start of a cache line. It puts sq_rsvd_index, which
 * posters increment, and the read-only fields that follow into different lines: an atomic
 * addition makes later loads of its line miss the first-level cache, 110 to 130 ns each
 * (H200, 256 threads that share a QP: 149 M WQE/s; with both in one line: 132 M).
 */
#define GDK_DEV_SKEW 96

#define GDK_NO_WQE	  UINT64_MAX	 /* error_wqe while there is no error */
#define GDK_WAIT_LIMIT_NS 60000000000ull /* default wait_limit_ns */

/*
 * A word in host memory for each exported QP, by which the host and waiting GPU threads report
 * that the QP cannot complete work. A GPU thread reads it after the first millisecond of a wait
 * and when the time limit of the wait is over, so posts and the first polls do not touch it. All
 * accesses are relaxed: no other data depend on the two words.
 */
struct gdk_watch_word {
	uint32_t hints;	  /* GDK_HINT_*; the host changes it by atomic operations */
	uint32_t refused; /* GPU threads store 1: -ENOTCONN ended the QP; the host clears it */
};
#define GDK_HINT_UNCONNECTED 1u /* not connected since its creation or its last reset */
#define GDK_HINT_UNSERVED    2u /* doorbells are pending, but no CPU thread rings them */

/*
 * Indices count 64-byte slots since export or reset and never wrap. Invariants:
 *   all slots below rung are published;
 *   completed <= rung, because the ringer stores rung before it rings the doorbell.
 * The words follow the struct, one for 32 slots. The low half of a word has the ready bits:
 * slot i is published when its bit is 1 in even laps of the ring (lap = i / depth) or 0 in
 * odd laps. The high half has the token bits; at most one is set in all words (token_dev.h).
 */
struct gdk_qp_state {
	/* Written by the host only. The addresses are those that GPU threads use. */
	uint32_t flags;		/* GDK_QPF_* */
	uint32_t depth;		/* slots, a power of two, at most 32768 */
	uint64_t wait_limit_ns; /* time limit of every wait; 0: no limit */
	uint64_t watch;		/* the QP's gdk_watch_word; 0: none */
	uint64_t ring;		/* slot 0 */
	uint64_t reg;		/* doorbell register, or counter of the CPU proxy */
	uint64_t dbrec;		/* send word of the DBREC */
	uint64_t cq_ring;	/* entry 0 of the CQ */
	uint64_t cq_rsvd;	/* CQE index of slot 0 */
	uint32_t cq_num;	/* entries of the CQ in use, a power of two; collapsed: 1 */
	uint32_t qpn8_be;	/* QP number << 8, big-endian: second word of a doorbell */
	uint32_t handler;	/* enum doca_gpu_dev_verbs_nic_handler of the export */
	uint8_t pad0[GDK_STATE_LINE - 76];

	/* Requests to ring, and the token when it is left. */
	uint64_t wanted; /* slots below this index must be rung once published; only grows */
	uint32_t left;	 /* GDK_LEFT*; 0: the token is held or parked */
	uint32_t pad1;
	/* Exclusive use: end of the slots published without a doorbell. Not in the line of
	 * `doorbells`, which the same posts load: a store makes such a load miss the first-level
	 * cache (H100: 4.4 instead of 7.7 M/s). */
	uint64_t marked;
	uint8_t pad2[GDK_STATE_LINE - 24];

	/* Written by the holder of the token only. */
	uint64_t rung;	       /* slots below this index were rung */
	uint64_t doorbells;    /* register writes by GPU threads */
	uint64_t parked;       /* slot where shared use parked the token last, or GDK_NO_WQE */
	uint64_t bare_rings;   /* register writes without a DBREC update */
	uint64_t bare_records; /* DBREC updates without a register write */
	uint32_t bf_half;      /* 0 or 0x100: offset of the BlueFlame half to use next */
	uint32_t key_noted;    /* debug build: a suspicious key was reported */
	uint64_t pad3;	       /* the figures were measured with the offsets below */
	uint32_t polled;    /* exclusive use: empty polls since the last ring (wait_time_dev.h) */
	uint64_t plain_at;  /* exclusive use: address of the plain end (status_dev.h), or 0 */
	uint64_t plain_sys; /* the plain end with GDK_QPF_SYS_SCOPE */
	uint8_t pad4[GDK_STATE_LINE - 80];

	/* Completion, errors and abort (wait_dev.h). */
	uint64_t completed;  /* slots below this index are complete; loaded with status */
	int32_t status;	     /* sticky: 0, or the negative errno that ended the QP */
	uint32_t abort_word; /* set by the host; loaded together with status */
	uint64_t cqe_ci;     /* CQEs below this absolute index are processed */
	uint64_t error_wqe;  /* WQE index of an error CQE (the lowest seen), or GDK_NO_WQE */
	uint64_t error_ci;   /* absolute index of that CQE, or GDK_NO_WQE */
	uint32_t uneven;     /* sticky: a WQE was unsignalled or longer than one slot */
	uint32_t long_wqe;   /* sticky: a WQE was longer than one slot */
	uint32_t poll_ns;    /* HOST_LOOKS: time of the last poll of a CQE, ns modulo 2^32 */
	uint64_t cqes_told;  /* consumer index of the CQ that callers reported (gdk_cq_consume()) */
	uint8_t pad5[GDK_STATE_LINE - 64];
	/* the words follow */
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

/* Returns the offset of the device struct from the start of the state block, in the memory that
 * holds both. */
static inline size_t gdk_dev_struct_at(uint32_t depth)
{
	return gdk_qp_state_size(depth) + GDK_DEV_SKEW;
}

/*
 * Writes the initial image, in which no slot is reserved, published, rung or complete and
 * the token is parked at slot 0. image is host memory of gdk_qp_state_size(depth) bytes.
 * The caller then calls gdk_qp_state_bind(). After a reset that kept the CQ, the caller sets
 * cqe_ci in the image and cqe_rsvd in the device CQ to the absolute producer index of the CQ.
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

/* Copies what never changes from the device struct of the QP to the image, whose flags are set. */
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
