/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The debug build's look at a queue pair when a kernel ends. */
#ifndef GDK_TAIL_DEV_H
#define GDK_TAIL_DEV_H

#include "../../device/gdk/ring_dev.h"

/*
 * For the end of a kernel whose threads are done with the QP: slots that were
 * reserved and never rung, with a line if there are any (in the debug build;
 * otherwise 0 is returned). On a QP that has ended this is as it should be.
 */
GDK_FN uint64_t gdk_debug_check_tail(struct doca_gpu_dev_verbs_qp *qp)
{
#ifdef GDK_DEBUG
	const struct gdk_sq q = gdk_sq_of(qp);
	const uint64_t end = gdk_ld64(gdk_rsvd_index(qp), GDK_SCOPE_GPU);
	const uint64_t rung = gdk_ld64_acq(&q.st->rung, GDK_SCOPE_GPU);
	uint64_t i, published = 0;
	char buf[GDK_TEXT_MAX];
	struct gdk_text t;

	if (end <= rung || gdk_state_status(q.st))
		return 0;
	for (i = rung; i < end && i < rung + q.depth; i++)
		published += gdk_is_ready(&q, i, GDK_SCOPE_GPU) ? 1u : 0u;
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
