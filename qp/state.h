/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The shared mutable state of one exported queue pair, beside the fixed public
 * device struct, which users copy. One block per QP, 128-byte aligned, in
 * memory that the GPU addresses; the device struct (gdk_state) and its CQ point
 * to it. The host formats an image of it at export and after each reset.
 *
 * What stays in the device struct is sq_rsvd_index alone, so slots must be
 * reserved through the QP's one struct (dev_struct.c); every other call may go
 * through a copy.
 */
#ifndef GDK_QP_STATE_H
#define GDK_QP_STATE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Some of ring, DBREC, register page or first observer is in host memory: what
 * orders them is a system-scope fence. */
#define GDK_QPF_SYS_SCOPE  0x1u
#define GDK_QPF_COLLAPSED  0x2u	 /* every CQE lands in entry 0 */
#define GDK_QPF_HOST_EXEC  0x4u	 /* the "GPU" is CPU threads */
#define GDK_QPF_BLUEFLAME  0x8u	 /* the register takes WQEs, which a doorbell must not meet */
#define GDK_QPF_HOST_LOOKS 0x10u /* a GPU that waits reads the host's memory: CQ or state */

/* Where the token is when it is neither held nor parked in a word. */
#define GDK_LEFT     1u /* with published slots that nobody wanted */
#define GDK_LEFT_OWN 2u /* with exclusive use */
#define GDK_LEFT_SYS 3u /* likewise, and GDK_QPF_SYS_SCOPE */

#define GDK_STATE_LINE 128

/*
 * A device struct begins so many bytes behind the start of a line: sq_rsvd_index, which
 * posters add to, is in one line, what every post reads of the QP in the next. An atomic
 * addition makes all later loads of its line miss the first-level cache. On an H200: 110
 * to 130 ns each; 256 threads that share a QP post 149 M WQE/s so, 132 in one line.
 */
#define GDK_DEV_SKEW 96

#define GDK_NO_WQE	  UINT64_MAX	 /* error_wqe while there is no error */
#define GDK_WAIT_LIMIT_NS 60000000000ull /* default wait_limit_ns */

/*
 * Indices count 64-byte slots since export or reset and never wrap.
 *   rung <= every slot index published without a gap, and
 *   completed <= rung: rung is stored before the doorbell that the NIC acts on.
 * One word stands for 32 slots. Its low half are ready bits: slot i is published
 * when its bit is 1 in even laps of the ring (lap = i / depth), 0 in odd ones. Its
 * high half are token bits; at most one is set in all words (qp_dev.h).
 */
struct gdk_qp_state {
	/* Written by the host only. */
	uint32_t flags;		/* GDK_QPF_* */
	uint32_t depth;		/* slots, a power of two, at most 32768 */
	uint64_t wait_limit_ns; /* every wait ends after this; 0: only by error or abort */
	uint8_t pad0[GDK_STATE_LINE - 16];

	/* What is to be rung. */
	uint64_t wanted; /* sticky: slots below are to be rung once published */
	uint64_t reserved1;
	uint32_t left; /* GDK_LEFT*: the token lies here */
	uint32_t reserved2;
	uint64_t written; /* exclusive use: slots below are written and not rung, or 0 */
	uint8_t pad1[GDK_STATE_LINE - 32];

	/* Written by the holder of the token only. */
	uint64_t rung;	       /* slots below were handed to the NIC */
	uint64_t doorbells;    /* register writes by this side */
	uint64_t bare_rings;   /* those of them that no record update belongs to */
	uint64_t bare_records; /* record updates that no register write belongs to */
	uint64_t settled;      /* exclusive use: index of the last doorbell rung after its record */
	uint32_t bf_half;      /* 0 or 0x100: BlueFlame half for the next use */
	uint32_t key_noted;    /* debug build: a doubtful key was reported */
	uint64_t parked;       /* where the token was parked last by shared use */
	uint8_t pad2[GDK_STATE_LINE - 56];

	/* Completion and how everything ends (cq_dev.h). */
	uint64_t completed;  /* slots below are complete; read as one with status */
	int32_t status;	     /* sticky: 0, or the negative errno that ended the QP */
	uint32_t abort_word; /* raised by the host; status and it are read as one */
	uint64_t cqe_ci;     /* CQEs below this absolute index were folded in */
	uint64_t error_wqe;  /* lowest index that ended in error, or GDK_NO_WQE */
	uint32_t uneven;     /* sticky: a WQE was unsignalled or longer than one slot */
	uint32_t long_wqe;   /* sticky: a WQE was longer than one slot; ring is set */
	uint64_t ring;	     /* address of slot 0, for the length of such a WQE */
	uint8_t pad3[GDK_STATE_LINE - 48];
	/* followed by the words */
};

#define GDK_WORD_SLOTS 32u
#define GDK_TOKEN(bit) ((uint64_t)1 << (GDK_WORD_SLOTS + (bit)))

/* Bytes of one state block; allocate at GDK_STATE_LINE alignment. */
static inline size_t gdk_qp_state_size(uint32_t depth)
{
	size_t words = (depth + GDK_WORD_SLOTS - 1) / GDK_WORD_SLOTS;
	size_t len = sizeof(struct gdk_qp_state) + words * sizeof(uint64_t);

	return (len + GDK_STATE_LINE - 1) & ~(size_t)(GDK_STATE_LINE - 1);
}

/* Where the device struct is, behind the start of its QP's state block. */
static inline size_t gdk_dev_struct_at(uint32_t depth)
{
	return gdk_qp_state_size(depth) + GDK_DEV_SKEW;
}

/*
 * Writes the initial image: nothing reserved, published, rung or complete. The
 * image is host memory of gdk_qp_state_size(depth) bytes. After a reset that kept
 * the CQ, set cqe_ci in the image and cqe_rsvd in the device CQ to the CQ's absolute
 * producer index.
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
	words[0] = GDK_TOKEN(0);
}

#if defined(__cplusplus)
#define GDK_STATE_ASSERT(cond, text) static_assert(cond, text)
#else
#define GDK_STATE_ASSERT(cond, text) _Static_assert(cond, text)
#endif
GDK_STATE_ASSERT(sizeof(struct gdk_qp_state) == 4 * GDK_STATE_LINE, "one line per writer");
GDK_STATE_ASSERT(offsetof(struct gdk_qp_state, rung) % 16 == 0, "rung, doorbells: one access");
GDK_STATE_ASSERT(offsetof(struct gdk_qp_state, left) % 16 == 0, "left, written: one access");
GDK_STATE_ASSERT(offsetof(struct gdk_qp_state, completed) % 16 == 0, "and status: one access");

#endif
