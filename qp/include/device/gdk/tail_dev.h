/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The debug build checks a queue pair at the end of a kernel. */
#ifndef GDK_TAIL_DEV_H
#define GDK_TAIL_DEV_H

#include "device/gdk/debug_dev.h"
#include "device/gdk/slots_dev.h"

/*
 * A kernel calls this function at its end, when its threads are done with the QP. Returns the
 * number of slots that were reserved and never rung, and prints a line if there are any. Returns 0
 * for a QP that has ended, and always without GDK_DEBUG.
 */
GDK_FN uint64_t gdk_debug_check_tail(struct doca_gpu_dev_verbs_qp *qp)
{
#ifdef GDK_DEBUG
	struct gdk_qp_state *st = gdk_state_of_qp(qp);
	const uint32_t depth = gdk_ldc32(&st->depth);
	const uint64_t end = gdk_ld64(gdk_rsvd_index(qp), GDK_SCOPE_GPU);
	const uint64_t rung = gdk_ld64_acq(&st->rung, GDK_SCOPE_GPU);
	uint64_t i, published = 0;
	char buf[GDK_TEXT_MAX];
	struct gdk_text t;

	if (end <= rung || gdk_state_status(st))
		return 0;
	for (i = rung; i < end && i < rung + depth; i++)
		published += gdk_is_ready(st, depth, i) ? 1u : 0u;
	gdk_text_start(&t, buf, sizeof(buf));
	gdk_text_field(&t, "gdaki: QP ", gdk_ldc32(GDK_QP_AT(qp, sq_num)));
	gdk_text_count(&t, ": WQEs ", rung);
	gdk_text_count(&t, " to ", end - 1);
	gdk_text_count(&t, " are reserved and were never rung, ", published);
	gdk_text_add(&t, " of them published\n");
	GDK_DEBUG_PRINT(buf);
	return end - rung;
#else
	(void)qp;
	return 0;
#endif
}

#endif
