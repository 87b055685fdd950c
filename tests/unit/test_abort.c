/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * gdk_verbs_qp_abort() and gdk_verbs_qp_clear_abort(): the host ends the device
 * functions of a QP with an error, and permits them again. Also the time limit of
 * waits.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "device/gdk/state.h"
#include "../lib/e2e.h"
#include "wait_rig.h"

static struct e2e_pair p;
static struct doca_gpu_verbs_qp *qp;

static void open_pair(void)
{
	e2e_pair_open(&p, E2E_DB, 16, 4096);
	qp = p.tx.hl->qp_gverbs;
}

static void close_pair(void)
{
	e2e_pair_close(&p);
}

TestSuite(qp_abort, .init = open_pair, .fini = close_pair);

static int put(uint32_t code_opt, doca_gpu_dev_verbs_ticket_t *t)
{
	return gdk_put(
		p.tx.dev, e2e_addr(p.dst.mem, p.dst.mr->rkey), e2e_addr(p.src.mem, p.src.mr->lkey),
		64, t,
		gdk_how(E2E_MODE, E2E_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, code_opt));
}

/*
 * Operations that fail after the abort reserve slots that they never publish;
 * clear_abort() must undo these reservations.
 */
Test(qp_abort, works_again_after_clear_abort)
{
	doca_gpu_dev_verbs_ticket_t t;
	unsigned int round, i;

	for (round = 0; round < 5; round++) {
		for (i = 0; i < 7; i++)
			cr_assert_eq(put(0, &t), 0);
		cr_assert_eq(gdk_verbs_qp_abort(qp), DOCA_SUCCESS);
		for (i = 0; i < 40; i++)
			cr_assert_eq(put(0, &t), -ECANCELED);
		cr_assert_eq(gdk_wait(p.tx.dev, 7 * round, E2E_MODE), -ECANCELED);
		cr_assert_eq(gdk_verbs_qp_clear_abort(qp), DOCA_SUCCESS);
		cr_assert_eq(gdk_qp_status(p.tx.dev), 0);
		cr_assert_eq(gdk_flush(p.tx.dev, E2E_MODE), 0);
		cr_assert_eq(gdk_ld64(gdk_rsvd_index(p.tx.dev), GDK_SCOPE_GPU), 7 * (round + 1));
	}
	cr_assert_eq(p.tx.dev->gdk_state->completed, 35);
}

Test(qp_abort, clear_abort_before_any_call_saw_the_abort)
{
	doca_gpu_dev_verbs_ticket_t t;

	cr_assert_eq(gdk_verbs_qp_abort(qp), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_qp_clear_abort(qp), DOCA_SUCCESS);
	cr_assert_eq(put(0, &t), 0);
	cr_assert_eq(gdk_wait(p.tx.dev, t, E2E_MODE), 0);
}

/* The next doorbell also rings a WQE that was published, but not rung, before the abort. */
Test(qp_abort, published_wqes_survive_an_abort)
{
	doca_gpu_dev_verbs_ticket_t t;

	cr_assert_eq(put(GDK_OPT_SKIP_DB, &t), 0);
	cr_assert_eq(gdk_verbs_qp_abort(qp), DOCA_SUCCESS);
	cr_assert_eq(put(0, &t), -ECANCELED);
	cr_assert_eq(gdk_verbs_qp_clear_abort(qp), DOCA_SUCCESS);
	cr_assert_eq(put(0, &t), 0);
	cr_assert_eq(t, 1);
	cr_assert_eq(gdk_wait(p.tx.dev, t, E2E_MODE), 0);
	cr_assert_eq(p.tx.dev->gdk_state->completed, 2);
}

Test(qp_abort, clear_abort_fails_with_an_unpublished_gap)
{
	doca_gpu_dev_verbs_ticket_t t;
	uint64_t gap;

	cr_assert_eq(gdk_reserve(p.tx.dev, 1, E2E_MODE, 0, &gap), 0);
	cr_assert_eq(put(0, &t), 0);
	cr_assert_eq(gdk_verbs_qp_abort(qp), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_qp_clear_abort(qp), DOCA_ERROR_BAD_STATE);
	cr_assert_eq(gdk_qp_status(p.tx.dev), -ECANCELED);
	cr_assert_eq(doca_gpu_verbs_reset_tracking_and_memory(qp), DOCA_SUCCESS);
	cr_assert_eq(gdk_qp_status(p.tx.dev), 0);
}

Test(qp_abort, clear_abort_keeps_an_error_status)
{
	p.tx.dev->gdk_state->status = -EIO;
	p.tx.dev->gdk_state->error_wqe = 5;
	cr_assert_eq(gdk_verbs_qp_abort(qp), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_qp_clear_abort(qp), DOCA_ERROR_BAD_STATE);
	cr_assert_eq(gdk_qp_status(p.tx.dev), -EIO);
	cr_assert_eq(gdk_qp_error_wqe(p.tx.dev), 5);
}

Test(qp_abort, wait_limit_applies_and_survives_a_reset)
{
	struct gdk_qp_counters c;

	cr_assert_eq(p.tx.dev->gdk_state->wait_limit_ns, 60000000000u);
	cr_assert_eq(gdk_verbs_qp_set_wait_limit(qp, 5000000), DOCA_SUCCESS);
	cr_assert_eq(gdk_wait(p.tx.dev, 3, E2E_MODE), -ETIMEDOUT);
	cr_assert_eq(gdk_verbs_qp_get_counters(qp, &c), DOCA_SUCCESS);
	cr_assert_eq(c.status, -ETIMEDOUT);
	cr_assert_eq(doca_gpu_verbs_reset_tracking_and_memory(qp), DOCA_SUCCESS);
	cr_assert_eq(gdk_qp_status(p.tx.dev), 0);
	cr_assert_eq(p.tx.dev->gdk_state->wait_limit_ns, 5000000);
}

/* Each kind of wait must end at the limit on its own; the QP is reset after each. */
Test(qp_abort, wait_limit_ends_each_kind_of_wait, .timeout = 60)
{
	cr_assert_eq(gdk_verbs_qp_set_wait_limit(qp, 2000000), DOCA_SUCCESS);
	for (unsigned int way = 0; way < WAIT_FOR; way++) {
		cr_assert_eq(wait_alone(p.tx.dev, way), -ETIMEDOUT, "kind of wait %u", way);
		cr_assert_eq(gdk_qp_status(p.tx.dev), -ETIMEDOUT);
		cr_assert_eq(doca_gpu_verbs_reset_tracking_and_memory(qp), DOCA_SUCCESS);
	}
}

Test(qp_abort, null_arguments_are_refused)
{
	cr_assert_eq(gdk_verbs_qp_abort(NULL), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(gdk_verbs_qp_clear_abort(NULL), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(gdk_verbs_qp_set_wait_limit(NULL, 0), DOCA_ERROR_INVALID_VALUE);
}
