/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The status of a QP is 0, or the negative errno that ended the QP; a later error does not change
 * it. The plain end is an index: exclusive use posts slots below it without loading the status. */
#ifndef GDK_STATUS_DEV_H
#define GDK_STATUS_DEV_H

#include "device/gdk/ring_dev.h"

GDK_FN struct gdk_qp_state *gdk_state_of_qp(const struct doca_gpu_dev_verbs_qp *qp)
{
	return (struct gdk_qp_state *)(uintptr_t)gdk_ld_state(GDK_QP_AT(qp, gdk_state));
}

GDK_FN struct gdk_qp_state *gdk_state_of_cq(const struct doca_gpu_dev_verbs_cq *cq)
{
	return (struct gdk_qp_state *)(uintptr_t)gdk_ld_state(GDK_CQ_AT(cq, gdk_state));
}

GDK_FN struct doca_gpu_dev_verbs_cq *gdk_qp_cq(struct doca_gpu_dev_verbs_qp *qp)
{
	return (struct doca_gpu_dev_verbs_cq *)(uintptr_t)GDK_QP_AT(qp, cq_sq);
}

/*
 * The plain end is an index. Exclusive use may post slots below it without a further check of the
 * state block (state.h): these slots are free, one doorbell may announce all of them
 * (gdk_ring_most()), the token is owned (token_dev.h), and the QP has not ended.
 *
 * It is in the device struct, so that a post waits for one load, not for two that follow each
 * other. If fences need system scope, the plain end of the device struct stays 0, and `plain_sys`
 * of the state block is used instead, which only gdk_own_make_plain() reads.
 *
 * gdk_plain_set() sets it, and waits raise it. The end of the QP, an abort, a reset and shared use
 * set it to 0. A wait that began before an abort, or before another lane found an error, may raise
 * it once more. Posts then notice the end of the QP one lap of the ring later at most. Posts with
 * SKIP_AVAILABILITY_CHECK only compare the plain end with 0; they notice the end of the QP after
 * the next wait.
 */
GDK_FN uint64_t *gdk_plain_end(struct doca_gpu_dev_verbs_qp *qp)
{
	return (uint64_t *)(uintptr_t)GDK_QP_AT(qp, gdk_plain_end);
}

/* Called by a wait that has found the slots below `done` complete: raises the plain end
 * accordingly. at: the address of the plain end (`plain_at` in the state block), or 0 if there is
 * none. */
GDK_FN void gdk_plain_raise(uint64_t at, uint64_t done, uint32_t depth)
{
	if (at)
		gdk_st64((uint64_t *)(uintptr_t)at, done + gdk_ring_most(depth), GDK_SCOPE_THREAD);
}

/* Sets the plain end to 0, so that the next post in exclusive use checks the state block. */
GDK_FN void gdk_plain_clear(struct gdk_qp_state *st)
{
	const uint64_t at = gdk_ld64(&st->plain_at, GDK_SCOPE_GPU);

	if (!at)
		return;
	gdk_st64((uint64_t *)(uintptr_t)at, 0, GDK_SCOPE_GPU);
	gdk_st64(&st->plain_at, 0, GDK_SCOPE_GPU);
}

/* Ends the QP: stores `status`, a negative errno, unless the QP has ended before. Returns the
 * status that ended it. */
GDK_FN int gdk_state_end(struct gdk_qp_state *st, int status)
{
	uint32_t old = gdk_rmw_cas32((uint32_t *)&st->status, 0, (uint32_t)status, GDK_SCOPE_GPU);

	gdk_plain_clear(st);
	return old ? (int)old : status;
}

/* Returns 1 if the QP has ended, or if the host has aborted it. One load reads `status` and
 * `abort_word`. */
GDK_FN int gdk_state_ended(const struct gdk_qp_state *st)
{
	return gdk_ld64((const uint64_t *)(const void *)&st->status, GDK_SCOPE_GPU) != 0;
}

/* Returns 0, or the status that ended the QP. If the host has aborted the QP and nothing else has
 * ended it, this call ends it with -ECANCELED. */
GDK_FN int gdk_state_status(struct gdk_qp_state *st)
{
	uint64_t both = gdk_ld64((const uint64_t *)(const void *)&st->status, GDK_SCOPE_GPU);

	if (!both)
		return 0;
	return (uint32_t)both ? (int)(uint32_t)both : gdk_state_end(st, -ECANCELED);
}

GDK_FN int gdk_qp_status(const struct doca_gpu_dev_verbs_qp *qp)
{
	return gdk_state_status(gdk_state_of_qp(qp));
}

#endif
