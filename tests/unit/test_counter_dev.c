/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Operations that increment a counter through a companion QP (gdk_put_counter()
 * etc.), end to end on the software NIC. The QP group's main QP (tx) is connected
 * to a third QP (rx), the companion to itself.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "../lib/e2e.h"
#include "../lib/post_slots.h"
#include "device/gdk/counter_dev.h"

#define BYTES	8192u
#define COUNTER 4096u /* in local memory: the counter, followed by its previous value */
#define OLD	4104u
#define WORD	4096u /* in remote memory: the signal */
#define THREAD	DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD
#define CTA	DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA
#define ADD	DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD
#define ACCESS	(E2E_REMOTE | IBV_ACCESS_REMOTE_ATOMIC)

static struct e2e_nic nic;
static struct doca_gpu_verbs_qp_group_hl *group;
static struct e2e_qp tx, companion, rx;
static struct e2e_buf local, remote;
static gdk_mode_t mode;
static uint64_t counted;

static void connect_all(uint32_t psn)
{
	const struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7, .psn = psn };

	cr_assert_eq(e2e_connect(&nic, tx.hl->qp, &nic.gid, rx.qpn, path), DOCA_SUCCESS);
	cr_assert_eq(e2e_connect(&nic, rx.hl->qp, &nic.gid, tx.qpn, path), DOCA_SUCCESS);
	cr_assert_eq(e2e_connect(&nic, companion.hl->qp, &nic.gid, companion.qpn, path),
		     DOCA_SUCCESS);
}

static void open_group(gdk_handler_t handler, uint16_t depth, bool collapsed)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = { 0 };

	e2e_open(&nic);
	attr.gpu_dev = nic.gpu;
	attr.net_dev = nic.dev;
	attr.ibpd = nic.pd;
	attr.sq_nwqe = depth;
	attr.nic_handler = handler;
	attr.cq_collapsed = collapsed;
	if (handler == E2E_NO_DBR)
		attr.send_dbr_mode_ext = DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW;
	cr_assert_eq(doca_gpu_verbs_create_qp_group_hl(&attr, &group), DOCA_SUCCESS);
	e2e_qp_adopt(&nic, &tx, &group->qp_main);
	e2e_qp_adopt(&nic, &companion, &group->qp_companion);
	e2e_qp_open(&nic, &rx, E2E_DB, 64);
	connect_all(0);
	if (handler == E2E_PROXY) {
		e2e_proxy_begin(&tx);
		e2e_proxy_begin(&companion);
	}
	e2e_buf_open(&nic, &local, BYTES, ACCESS);
	e2e_buf_open(&nic, &remote, BYTES, ACCESS);
	for (size_t i = 0; i < COUNTER; i++)
		local.mem[i] = e2e_pattern(i, 3);
	mode = E2E_MODE;
	counted = 0;
}

static void close_group(void)
{
	e2e_proxy_end(&tx);
	e2e_proxy_end(&companion);
	cr_assert_eq(doca_gpu_verbs_destroy_qp_group_hl(group), DOCA_SUCCESS);
	e2e_qp_close(&rx);
	e2e_buf_close(&local);
	e2e_buf_close(&remote);
	e2e_close(&nic);
}

static struct doca_gpu_dev_verbs_addr here(size_t off)
{
	return e2e_addr(local.mem + off, local.mr->lkey);
}

static struct doca_gpu_dev_verbs_addr there(size_t off)
{
	return e2e_addr(remote.mem + off, remote.mr->rkey);
}

static struct gdk_counter counter(uint64_t value)
{
	return (struct gdk_counter){ companion.dev, e2e_addr(local.mem + COUNTER, local.mr->rkey),
				     here(OLD), value };
}

static uint64_t word(const struct e2e_buf *buf, size_t off)
{
	return __atomic_load_n((const uint64_t *)(const void *)(buf->mem + off), __ATOMIC_ACQUIRE);
}

/* Waits for the companion's last WQE, which adds to the counter. Then tx must be complete. */
static void expect_count(uint64_t added)
{
	cr_assert_eq(gdk_flush(companion.dev, mode), 0);
	counted += added;
	cr_assert_eq(word(&local, COUNTER), counted);
	cr_assert_eq(word(&local, OLD), counted - added);
	cr_assert_eq(gdk_poll_ticket(tx.dev, tx.dev->sq_rsvd_index - 1, mode), 0);
}

static void do_all(uint32_t opt)
{
	struct gdk_counter c = counter(5);
	const struct gdk_op put_add = {
		gdk_move_of(GDK_MOVE_WRITE, there(1000), here(1000), 500),
		gdk_tail_signal(gdk_signal_of(ADD, there(WORD), here(OLD + 8), 3)),
	};
	doca_gpu_dev_verbs_ticket_t t;
	uint64_t v = 0x0123456789abcdefu, before = word(&remote, WORD);

	memset(remote.mem, 0, WORD);
	cr_assert_eq(gdk_put_counter(tx.dev, there(0), here(0), 1000, &c, &t,
				     gdk_how(mode, E2E_AUTO, THREAD, opt)),
		     0);
	expect_count(5);
	cr_assert_eq(memcmp(remote.mem, local.mem, 1000), 0);
	cr_assert_eq(gdk_p_counter(tx.dev, there(2000), &v, 8, &c, &t,
				   gdk_how(mode, E2E_AUTO, THREAD, opt)),
		     0);
	expect_count(5);
	cr_assert_eq(word(&remote, 2000), v);
	cr_assert_eq(
		gdk_op_run_counted(tx.dev, &put_add, &c, &t, gdk_how(mode, E2E_AUTO, THREAD, opt)),
		0);
	expect_count(5);
	cr_assert_eq(memcmp(remote.mem, local.mem, 1500), 0);
	cr_assert_eq(word(&remote, WORD), before + 3);
	cr_assert_eq(
		gdk_signal_counter(tx.dev,
				   gdk_signal_of(GDK_SIGNAL_OP_SET, there(WORD), here(OLD + 8), 77),
				   &c, &t, gdk_how(mode, E2E_AUTO, THREAD, opt)),
		0);
	expect_count(5);
	cr_assert_eq(word(&remote, WORD), 77);
	cr_assert_eq(gdk_get_counter(tx.dev, there(2000), here(3000), 8, &c, &t,
				     gdk_how(mode, E2E_AUTO, THREAD, opt)),
		     0);
	expect_count(5);
	cr_assert_eq(word(&local, 3000), v);
}

static void by_handler(gdk_handler_t handler)
{
	static const gdk_mode_t modes[] = { E2E_EXCL, CTA, E2E_MODE };

	open_group(handler, 16, false);
	for (size_t m = 0; m < 3; m++) {
		mode = modes[m];
		for (int i = 0; i < 5; i++)
			do_all(0);
	}
	close_group();
}

Test(counter_dev, by_gpu_sm_db)
{
	by_handler(E2E_DB);
}
Test(counter_dev, by_gpu_sm_no_dbr)
{
	by_handler(E2E_NO_DBR);
}
Test(counter_dev, by_cpu_proxy)
{
	by_handler(E2E_PROXY);
}

/* A put must change the counter only after it has been rung. */
static void expect_wait(void)
{
	const uint64_t next = companion.dev->sq_rsvd_index;
	struct gdk_counter c = counter(1);
	doca_gpu_dev_verbs_ticket_t t;

	mode = E2E_EXCL;
	cr_assert_eq(gdk_put_counter(tx.dev, there(0), here(0), 100, &c, &t,
				     gdk_how(mode, E2E_AUTO, THREAD, GDK_OPT_SKIP_DB)),
		     0);
	gdk_submit(companion.dev, next + 2, gdk_how(mode, E2E_AUTO, GDK_THREAD, 0));
	cr_assert_eq(gdk_wait_for(companion.dev, next + 1, mode, 50000000), -ETIMEDOUT);
	cr_assert_eq(word(&local, COUNTER), counted);
	cr_assert_eq(gdk_qp_status(companion.dev), 0);
	gdk_submit(tx.dev, t + 1, gdk_how(mode, E2E_AUTO, GDK_THREAD, 0));
	expect_count(1);
}

Test(counter_dev, waits_for_the_operation)
{
	open_group(E2E_DB, 16, false);
	expect_wait();
	close_group();
}

/*
 * Posts more than both rings hold and skips all doorbells. A thread that waits for
 * slots of the companion must ring the operations that the companion waits for.
 */
static void post_more_than_the_rings_hold(gdk_mode_t m)
{
	struct gdk_counter c;
	doca_gpu_dev_verbs_ticket_t t;

	open_group(E2E_DB, 8, false);
	mode = m;
	c = counter(1);
	for (int i = 0; i < 100; i++) {
		if (i == 3) /* leaves one slot free, but the next put needs two */
			cr_assert_eq(gdk_fence(companion.dev, mode, E2E_AUTO), 0);
		cr_assert_eq(gdk_put_counter(tx.dev, there(0), here(0), 100, &c, &t,
					     gdk_how(mode, E2E_AUTO, THREAD, GDK_OPT_SKIP_DB)),
			     0);
	}
	cr_assert_eq(gdk_flush(tx.dev, mode), 0);
	cr_assert_eq(gdk_flush(companion.dev, mode), 0);
	cr_assert_eq(word(&local, COUNTER), 100);
	close_group();
}

Test(counter_dev, skipped_doorbells_exclusive)
{
	post_more_than_the_rings_hold(E2E_EXCL);
}
Test(counter_dev, skipped_doorbells_shared)
{
	post_more_than_the_rings_hold(E2E_MODE);
}

/* The companion's WAIT WQE, which waits for a CQE of tx, also works on a collapsed CQ. */
Test(counter_dev, on_a_collapsed_cq)
{
	open_group(E2E_DB, 16, true);
	for (int i = 0; i < 20; i++)
		do_all(0);
	close_group();
}

/* Counting works after each reset of the QPs, although the reset keeps the CQ's index. */
static void after_resets(bool collapsed)
{
	open_group(E2E_DB, 16, collapsed);
	for (uint32_t round = 1; round < 7; round++) {
		for (uint32_t i = 0; i < 2 * round; i++)
			do_all(0);
		expect_wait();
		e2e_qp_reset(&tx);
		e2e_qp_reset(&companion);
		e2e_qp_reset(&rx);
		connect_all(round << 12);
	}
	close_group();
}

Test(counter_dev, after_resets_of_a_ring)
{
	after_resets(false);
}
Test(counter_dev, after_resets_of_a_collapsed_cq)
{
	after_resets(true);
}

/*
 * After a WQE without CQE, the index of a CQE differs from that of its WQE, so
 * gdk_put_counter() must fail and post nothing.
 */
Test(counter_dev, refused_after_an_unsignalled_wqe)
{
	struct gdk_counter c;
	doca_gpu_dev_verbs_ticket_t t;
	uint64_t idx;

	open_group(E2E_DB, 16, false);
	cr_assert_eq(gdk_reserve(tx.dev, 1, mode, 0, &idx), 0);
	gdk_wqe_nop(tx.dev, gdk_get_wqe_ptr(tx.dev, idx), (uint16_t)idx, 0);
	post_slots(tx.dev, idx, idx, mode, E2E_AUTO, 0);
	c = counter(1);
	cr_assert_eq(gdk_put_counter(tx.dev, there(0), here(0), 100, &c, &t,
				     gdk_how(mode, E2E_AUTO, THREAD, 0)),
		     -ENOTSUP);
	cr_assert_eq(tx.dev->sq_rsvd_index, 1);
	cr_assert_eq(companion.dev->sq_rsvd_index, 0);
	close_group();
}

/* gdk_submit_multi() rings both QPs, unless GDK_OPT_SKIP_DB is set. */
Test(counter_dev, submit_to_several)
{
	struct doca_gpu_dev_verbs_qp *qps[2];
	uint64_t pis[2], idx;

	open_group(E2E_DB, 16, false);
	qps[0] = tx.dev;
	qps[1] = companion.dev;
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(gdk_reserve(qps[i], 1, mode, 0, &idx), 0);
		gdk_wqe_nop(qps[i], gdk_get_wqe_ptr(qps[i], idx), (uint16_t)idx, GDK_CE_ALWAYS);
		gdk_mark_ready(qps[i], idx, idx, mode, E2E_AUTO);
		pis[i] = idx + 1;
	}
	gdk_submit_multi(qps, pis, 2, gdk_how(mode, E2E_AUTO, GDK_THREAD, GDK_OPT_SKIP_DB));
	cr_assert_eq(gdk_poll_ticket(tx.dev, 0, mode), EBUSY);
	gdk_submit_multi(qps, pis, 2, gdk_how(mode, E2E_AUTO, GDK_THREAD, 0));
	for (int i = 0; i < 2; i++)
		cr_assert_eq(gdk_poll_cq_at(gdk_qp_cq(qps[i]), 0, mode), 0);
	close_group();
}
