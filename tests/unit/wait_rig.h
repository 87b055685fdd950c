/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Each kind of wait on a QP that has 16 WQEs and no work, for tests of what ends a wait. */
#ifndef WAIT_RIG_H
#define WAIT_RIG_H

#include <criterion/criterion.h>

#include "../lib/e2e.h"

/* The kinds before WAIT_FOR have the time limit of the QP; WAIT_FOR has its own. */
enum { WAIT_POLL_AT, WAIT_POLL, WAIT_COLLAPSED, WAIT_TICKET, WAIT_SLOT, WAIT_FOR, WAIT_KINDS };

/* Waits for slot 3, or for a free slot of the full ring. Returns the status of the wait. */
static inline int wait_alone(struct doca_gpu_dev_verbs_qp *qp, unsigned int kind)
{
	struct doca_gpu_dev_verbs_cq *cq = gdk_qp_cq(qp);
	uint64_t idx;

	switch (kind) {
	case WAIT_POLL_AT:
		return gdk_poll_cq_at(cq, 3, E2E_MODE);
	case WAIT_POLL:
		return gdk_poll_cq(cq, 1, E2E_MODE);
	case WAIT_COLLAPSED:
		return gdk_poll_collapsed_at(qp, 3, E2E_MODE);
	case WAIT_TICKET:
		return gdk_wait(qp, 3, E2E_MODE);
	case WAIT_FOR:
		return gdk_wait_for(qp, 3, E2E_MODE, E2E_WAIT_NS);
	default:
		cr_assert_eq(gdk_reserve(qp, 16, E2E_MODE, 0, &idx), 0);
		return gdk_reserve(qp, 1, E2E_MODE, 0, &idx);
	}
}

#endif
