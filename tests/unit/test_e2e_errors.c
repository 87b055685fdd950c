/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Puts that must fail: each must produce the right error CQE, end the wait with an
 * error in bounded time, and leave the target memory unchanged. The error status
 * must stay until a reset. Also an abort during a wait.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../lib/e2e.h"

#define BYTES	       8192u
#define LOCAL_PROT     0x04
#define REMOTE_INVALID 0x12
#define REMOTE_ACCESS  0x13
#define SOON_NS	       5000000000ull

struct wrong {
	uint32_t lkey_flip, rkey_flip;
	size_t off; /* offset of the put in dst */
	uint32_t syndrome;
	int access; /* access flags of dst; 0: those of e2e_pair_open() */
	enum doca_gpu_dev_verbs_nic_handler handler;
	bool qp_refuses; /* the target QP does not allow remote writes */
};

/* Forbids remote writes to the QP, by an RTS-to-RTS transition. */
static void take_remote_write_back(struct e2e_qp *qp)
{
	doca_verbs_qp_attr_t *attr;

	cr_assert_eq(doca_verbs_qp_attr_create(&attr), DOCA_SUCCESS);
	doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_RTS);
	doca_verbs_qp_attr_set_allow_remote_write(attr, 0);
	cr_assert_eq(doca_verbs_qp_modify(qp->hl->qp, attr,
					  DOCA_VERBS_QP_ATTR_NEXT_STATE |
						  DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_WRITE),
		     DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_attr_destroy(attr), DOCA_SUCCESS);
}

static int put_wrong(struct e2e_pair *p, const struct wrong *w, size_t len)
{
	doca_gpu_dev_verbs_ticket_t t;
	int rc = gdk_put(p->tx.dev, e2e_addr(p->dst.mem + w->off, p->dst.mr->rkey ^ w->rkey_flip),
			 e2e_addr(p->src.mem, p->src.mr->lkey ^ w->lkey_flip), len, &t,
			 gdk_how(E2E_MODE, E2E_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0));

	return rc ? rc : e2e_wait(&p->tx, t);
}

/* Expects that a query reports the error state, resets both QPs and connects them again. */
static void recover(struct e2e_pair *p)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };
	doca_verbs_qp_init_attr_t *init;
	doca_verbs_qp_attr_t *attr;

	cr_assert(!doca_verbs_qp_attr_create(&attr) && !doca_verbs_qp_init_attr_create(&init));
	cr_assert(!doca_verbs_qp_query(p->tx.hl->qp, attr, init, NULL));
	cr_expect_eq(doca_verbs_qp_attr_get_next_state(attr), DOCA_VERBS_QP_STATE_ERR);
	doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_RST);
	cr_expect_eq(doca_verbs_qp_modify(p->tx.hl->qp, attr,
					  DOCA_VERBS_QP_ATTR_NEXT_STATE |
						  DOCA_VERBS_QP_ATTR_CURRENT_STATE),
		     DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_qp_modify(p->tx.hl->qp, attr,
					  DOCA_VERBS_QP_ATTR_NEXT_STATE |
						  DOCA_VERBS_QP_ATTR_CURRENT_STATE),
		     DOCA_ERROR_BAD_STATE);
	cr_assert(!doca_verbs_qp_attr_destroy(attr) && !doca_verbs_qp_init_attr_destroy(init));
	e2e_qp_reset(&p->tx);
	e2e_qp_reset(&p->rx);
	cr_assert(!e2e_connect(&p->nic, p->tx.hl->qp, &p->nic.gid, p->rx.qpn, path));
	cr_assert(!e2e_connect(&p->nic, p->rx.hl->qp, &p->nic.gid, p->tx.qpn, path));
}

static void expect_refused(const struct wrong *w)
{
	struct doca_gpu_verbs_qp_error_info info;
	struct gdk_qp_counters c;
	const struct wrong right = { .off = 0 };
	struct e2e_pair p;
	uint64_t start;

	e2e_pair_open(&p, w->handler ? w->handler : E2E_DB, 64, BYTES);
	if (w->access) {
		ibv_dereg_mr(p.dst.mr);
		cr_assert(p.dst.mr = ibv_reg_mr(p.nic.pd, p.dst.mem, BYTES, w->access));
	}
	memset(p.src.mem, 0xab, BYTES);
	if (!w->access) {
		cr_assert_eq(put_wrong(&p, &right, 64), 0, "a correct put failed");
		cr_assert_eq(p.dst.mem[63], 0xab);
	}
	if (w->qp_refuses)
		take_remote_write_back(&p.rx);
	memset(p.dst.mem, 0x11, BYTES);
	start = e2e_now_ns();
	cr_expect_eq(put_wrong(&p, w, 256), -EIO);
	cr_expect_lt(e2e_now_ns() - start, SOON_NS);
	for (size_t i = 0; i < BYTES; i++)
		cr_assert_eq(p.dst.mem[i], 0x11, "byte %zu of the target was written", i);

	cr_assert_eq(doca_gpu_verbs_query_last_error(p.tx.hl->qp_gverbs, &info), DOCA_SUCCESS);
	cr_expect(info.has_error);
	cr_expect_eq(info.syndrome, (int)w->syndrome, "syndrome 0x%x", info.syndrome);
	cr_expect_eq(info.wqe_counter, w->access ? 0 : 1);

	/* The error status stays: a correct put fails, too, and writes nothing. */
	cr_expect_eq(put_wrong(&p, &right, 64), -EIO);
	cr_expect_eq(p.dst.mem[0], 0x11);
	cr_assert_eq(gdk_verbs_qp_get_counters(p.tx.hl->qp_gverbs, &c), DOCA_SUCCESS);
	cr_expect_eq(c.status, -EIO);
	cr_expect_eq(c.error_wqe, w->access ? 0 : 1);
	recover(&p);
	cr_assert_eq(doca_gpu_verbs_query_last_error(p.tx.hl->qp_gverbs, &info), DOCA_SUCCESS);
	cr_expect_not(info.has_error);
	cr_expect_eq(put_wrong(&p, &right, 64), w->access ? -EIO : 0);
	cr_expect_eq(p.dst.mem[63], w->access ? 0x11 : 0xab);
	e2e_pair_close(&p);
}

Test(e2e_errors, bad_rkey)
{
	expect_refused(&(struct wrong){ .rkey_flip = 0x100, .syndrome = REMOTE_ACCESS });
}

Test(e2e_errors, bad_rkey_variant)
{
	expect_refused(&(struct wrong){ .rkey_flip = 0x1, .syndrome = REMOTE_ACCESS });
}

Test(e2e_errors, bad_lkey)
{
	expect_refused(&(struct wrong){ .lkey_flip = 0x100, .syndrome = LOCAL_PROT });
}

Test(e2e_errors, past_the_end_of_the_region)
{
	expect_refused(&(struct wrong){ .off = BYTES - 255, .syndrome = REMOTE_ACCESS });
}

Test(e2e_errors, far_outside_the_region)
{
	expect_refused(&(struct wrong){ .off = BYTES + 65536, .syndrome = REMOTE_ACCESS });
}

Test(e2e_errors, region_without_remote_write)
{
	expect_refused(
		&(struct wrong){ .syndrome = REMOTE_ACCESS,
				 .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ });
}

Test(e2e_errors, queue_pair_without_remote_write)
{
	expect_refused(&(struct wrong){ .qp_refuses = true, .syndrome = REMOTE_INVALID });
}

Test(e2e_errors, bad_rkey_through_every_handler)
{
	expect_refused(&(struct wrong){ .rkey_flip = 0x100,
					.syndrome = REMOTE_ACCESS,
					.handler = E2E_PROXY });
	expect_refused(&(
		struct wrong){ .rkey_flip = 0x100, .syndrome = REMOTE_ACCESS, .handler = E2E_BF });
}

Test(e2e_errors, bad_rkey_without_dbrec)
{
	E2E_NEEDS_NO_DBR();
	expect_refused(&(struct wrong){ .rkey_flip = 0x100,
					.syndrome = REMOTE_ACCESS,
					.handler = E2E_NO_DBR });
}

/* Aborts the QP after 50 ms; meanwhile another thread waits for a put. */
static void *abort_later(void *arg)
{
	struct timespec t = { .tv_nsec = 50000000 };

	nanosleep(&t, NULL);
	gdk_verbs_qp_abort(arg);
	return NULL;
}

/* No proxy runs, so the put is never rung, and only the abort can end the wait. */
Test(e2e_errors, abort_ends_a_wait)
{
	doca_gpu_dev_verbs_ticket_t t;
	struct e2e_pair p;
	pthread_t thread;
	uint64_t start;
	int err;

	e2e_pair_open(&p, E2E_PROXY, 64, BYTES);
	e2e_proxy_end(&p.tx);
	cr_assert_eq(e2e_put(&p, 0, 64, &t), 0);
	start = e2e_now_ns();
	err = gdk_wait_for(p.tx.dev, t, E2E_MODE, 20000000);
	cr_expect_eq(err, -ETIMEDOUT, "status %d", err);
	cr_expect_lt(e2e_now_ns() - start, SOON_NS);
	cr_assert_eq(pthread_create(&thread, NULL, abort_later, p.tx.hl->qp_gverbs), 0);
	cr_expect_eq(e2e_wait(&p.tx, t), -ECANCELED);
	cr_expect_lt(e2e_now_ns() - start, SOON_NS);
	pthread_join(thread, NULL);
	e2e_pair_close(&p);
}
