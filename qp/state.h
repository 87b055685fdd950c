/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The shared mutable state of one exported queue pair, beside the fixed public
 * device struct, which users copy. One block per QP, 128-byte aligned, in
 * memory that the GPU addresses; the device struct (gdk_state) and its CQ point
 * to it. The host formats an image of it at export and after each reset.
 *
 * What stays in the device struct is sq_rsvd_index alone, so slots must be
 * reserved through the one struct that the export returns; every other call
 * may go through a copy.
 */
#ifndef GDK_QP_STATE_H
#define GDK_QP_STATE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Some of ring, DBREC, register page or first observer is in host memory: what
 * orders them is a system-scope fence. */
#define GDK_QPF_SYS_SCOPE 0x1u
#define GDK_QPF_COLLAPSED 0x2u /* every CQE lands in entry 0 */
#define GDK_QPF_HOST_EXEC 0x4u /* the "GPU" is CPU threads */

#define GDK_STATE_LINE 128
#define GDK_NO_WQE UINT64_MAX			/* error_wqe while there is no error */
#define GDK_WAIT_LIMIT_NS 60000000000ull	/* default wait_limit_ns */

/*
 * Indices count 64-byte slots since export or reset and never wrap.
 *   rung <= every slot index published without a gap, and
 *   completed <= rung: rung is stored before the doorbell that the NIC acts on.
 * ready[i mod depth] == lap(i), which is i / depth + 1: slot i is published.
 */
struct gdk_qp_state {
	/* Written by the host only. */
	uint32_t flags; /* GDK_QPF_* */
	uint32_t depth; /* slots, a power of two, at most 32768 */
	uint32_t depth_log2;
	uint32_t reserved0;
	uint32_t *ready;	/* device address of the ready words, one per slot */
	uint64_t wait_limit_ns; /* every wait ends after this; 0: only by error or abort */
	uint8_t pad0[GDK_STATE_LINE - 32];

	/* Publishers and submitters meet here (qp_dev.h). */
	uint32_t pending; /* events not yet served; 0: nobody holds the ringer's role */
	uint32_t reserved1;
	uint64_t wanted; /* sticky: slots below are to be rung once published */
	uint8_t pad1[GDK_STATE_LINE - 16];

	/* Written by the holder of the ringer's role only. */
	uint64_t rung;		/* slots below were handed to the NIC */
	uint64_t doorbells;	/* register writes by this side */
	uint64_t dbrec_updates; /* doorbell record stores by this side */
	uint32_t bf_half;	/* 0 or 0x100: BlueFlame half for the next use */
	uint32_t key_noted;	/* debug build: a doubtful key was reported */
	uint8_t pad2[GDK_STATE_LINE - 32];

	/* Completion and how everything ends (cq_dev.h). */
	uint64_t completed; /* slots below are complete */
	uint64_t cqe_ci;    /* CQEs below this absolute index were folded in */
	uint64_t error_wqe; /* lowest index that ended in error, or GDK_NO_WQE */
	int32_t status;	    /* sticky: 0, or the negative errno that ended the QP */
	uint32_t abort_word; /* raised by the host; status and it are read as one */
	uint32_t uneven;    /* sticky: a WQE was unsignalled or longer than one slot */
	uint32_t long_wqe;  /* sticky: a WQE was longer than one slot; ring is set */
	uint64_t ring;	    /* address of slot 0, for the length of such a WQE */
	uint8_t pad3[GDK_STATE_LINE - 48];
	/* followed by ready[depth] */
};

/* Bytes of one state block; allocate at GDK_STATE_LINE alignment. */
static inline size_t gdk_qp_state_size(uint32_t depth)
{
	size_t len = sizeof(struct gdk_qp_state) + depth * sizeof(uint32_t);

	return (len + GDK_STATE_LINE - 1) & ~(size_t)(GDK_STATE_LINE - 1);
}

/*
 * Writes the initial image: nothing reserved, published, rung or complete. The
 * image is host memory of gdk_qp_state_size(depth) bytes; dev_addr is where the
 * GPU will see it. After a reset that kept the CQ, set cqe_ci in the image and
 * cqe_rsvd in the device CQ to the CQ's absolute producer index.
 */
static inline void gdk_qp_state_format(void *image, uint64_t dev_addr, uint32_t depth,
				       uint32_t flags)
{
	struct gdk_qp_state *st = (struct gdk_qp_state *)image;

	memset(image, 0, gdk_qp_state_size(depth));
	st->flags = flags;
	st->depth = depth;
	while ((1u << st->depth_log2) < depth)
		st->depth_log2++;
	st->ready = (uint32_t *)(uintptr_t)(dev_addr + sizeof(*st));
	st->wait_limit_ns = GDK_WAIT_LIMIT_NS;
	st->error_wqe = GDK_NO_WQE;
}

#if defined(__cplusplus)
static_assert(sizeof(struct gdk_qp_state) == 4 * GDK_STATE_LINE, "one line per writer");
static_assert(offsetof(struct gdk_qp_state, status) % 8 == 0, "status and abort_word: one load");
#else
_Static_assert(sizeof(struct gdk_qp_state) == 4 * GDK_STATE_LINE, "one line per writer");
_Static_assert(offsetof(struct gdk_qp_state, status) % 8 == 0, "status and abort_word: one load");
#endif

#endif
