/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Sending Ethernet packets: the ways to post, multi-packet WQEs, completions by kernels and by the
 * CPU, the CPU proxy, errors, aborts, indices that wrap, and calls in a wrong order.
 */
#include <time.h>

#include "eth_queue_rig.h"

#define NOTIFY DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY
#define DEPTH  64u

static struct queues q;

static void close_queues(void)
{
	if (q.dev)
		rig_close_both(&q);
}

TestSuite(doca_eth_send, .fini = close_queues, .timeout = 60);

static void open_queues(void)
{
	rig_open_both(&q, 256, DEPTH, rig_gpu_cq);
}

static void write_at(uint64_t slot, uint32_t packet, uint32_t flags)
{
	gdk_eth_wqe_send(q.tx, slot, rig_pkt(&q, packet), flags);
}

/* ---- the ways to post ---- */

static void post_without_reservation(gdk_mode_t mode)
{
	uint32_t i, k;

	open_queues();
	for (i = 0; i < 640; i += 32) {
		for (k = 0; k < 32; k++)
			write_at(i + k, i + k, k == 31 ? NOTIFY : 0);
		gdk_eth_submit(q.tx, i + 32, rig_how(mode));
		cr_assert_eq(gdk_eth_poll_at(q.tx, i / 32, 1, mode), 0);
		rig_expect(&q, i, 32);
	}
	cr_expect_eq(q.tx->wqe_pi, 640);
}

Test(doca_eth_send, prepare_and_submit_without_reservation)
{
	post_without_reservation(SHARE);
}

Test(doca_eth_send, prepare_and_submit_without_reservation_in_exclusive_use)
{
	post_without_reservation(EXCL);
}

/* The second of two reservations is submitted first: its packets must not be sent before those of
 * the first one are written, and nothing else is. */
Test(doca_eth_send, a_submit_vouches_for_its_reservation_only)
{
	struct gdk_eth_batch b;
	uint64_t first, second;
	uint32_t k;

	open_queues();
	cr_assert_eq(gdk_eth_reserve(q.tx, 4, SHARE, &first), 0);
	cr_assert_eq(gdk_eth_reserve(q.tx, 4, SHARE, &second), 0);
	cr_assert_eq(second, first + 4);
	for (k = 4; k < 8; k++)
		write_at(k, k, 0);
	gdk_eth_submit(q.tx, 8, rig_how(SHARE));
	cr_assert_eq(gdk_eth_recv(q.rx, 1, 20000000, 0, ALONE, &b), 0);
	cr_assert_eq(b.num, 0, "a slot was sent that is not written");
	for (k = 0; k < 4; k++)
		write_at(k, k, k == 3 ? NOTIFY : 0);
	gdk_eth_submit(q.tx, 4, rig_how(SHARE));
	rig_expect(&q, 0, 8);
}

Test(doca_eth_send, an_addition_to_wqe_pi_reserves)
{
	uint32_t i, k;
	uint64_t pi;

	open_queues();
	for (i = 0; i < 66000; i += 30) {
		pi = gdk_ld64(&q.tx->wqe_pi, GDK_SCOPE_GPU);
		cr_assert_eq(pi, i);
		for (k = 0; k < 30; k++)
			write_at((pi + k) & 0xffff, i + k, k == 29 ? NOTIFY : 0);
		gdk_rmw_add64(&q.tx->wqe_pi, 30, GDK_SCOPE_GPU);
		gdk_eth_submit(q.tx, (pi + 30) & 0xffff, rig_how(SHARE));
		cr_assert_eq(gdk_eth_poll_at(q.tx, i / 30, 1, SHARE), 0);
		rig_expect(&q, i, 30);
	}
}

/* After sends by hand, others find the doorbell's token. */
Test(doca_eth_send, all_ways_follow_each_other)
{
	uint64_t idx;

	open_queues();
	write_at(0, 0, 0);
	gdk_eth_submit(q.tx, 1, rig_how(SHARE));
	rig_send(&q, 1, 0, SHARE);
	cr_assert_eq(gdk_eth_reserve(q.tx, 1, SHARE, &idx), 0);
	cr_assert_eq(idx, 2);
	write_at(2, 2, 0);
	gdk_eth_submit(q.tx, 3, rig_how(SHARE));
	rig_send(&q, 3, 0, EXCL);
	write_at(4, 4, 0);
	gdk_eth_submit(q.tx, 5, rig_how(EXCL));
	rig_send(&q, 5, NOTIFY, SHARE);
	rig_expect(&q, 0, 6);
	cr_assert_eq(gdk_eth_wait_for(q.tx, 5, SHARE), 0);
}

/* Without any request for a CQE, slots still become free. */
Test(doca_eth_send, unsignalled_sends_do_not_fill_the_ring)
{
	uint32_t i;

	open_queues();
	for (i = 0; i < 20 * DEPTH; i += 32) {
		uint32_t k;

		for (k = 0; k < 32; k++)
			rig_send(&q, i + k, 0, SHARE);
		rig_expect(&q, i, 32);
	}
}

/* ---- multi-packet WQEs ---- */

Test(doca_eth_send, multi_packet_wqe_of_each_size)
{
	uint32_t n, k, at = 0, sent = 0;

	open_queues();
	for (n = 1; n <= GDK_ETH_EMPW_MAX; n++) {
		for (k = n; k-- > 0;)
			cr_assert_eq(gdk_eth_wqe_empw(q.tx, at + (k + 2) / 4, n, k,
						      rig_pkt(&q, sent + k), NOTIFY),
				     0);
		at += gdk_eth_empw_slots(n);
		gdk_eth_submit(q.tx, at, rig_how(SHARE));
		cr_assert_eq(gdk_eth_poll_at(q.tx, n - 1, 1, SHARE), 0);
		rig_expect(&q, sent, n);
		sent += n;
	}
	cr_expect_eq(gdk_eth_wqe_empw(q.tx, at, 62, 0, rig_pkt(&q, 0), 0), -EINVAL);
	cr_expect_eq(gdk_eth_wqe_empw(q.tx, at, 3, 3, rig_pkt(&q, 0), 0), -EINVAL);
}

Test(doca_eth_send, multi_packet_send_with_one_doorbell)
{
	struct gdk_how how = gdk_how(SHARE, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
				     DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP, 0);
	struct gdk_eth_txq_counters c;
	struct gdk_eth_pkt pkts[100];
	uint32_t i, k;
	uint64_t ticket = 0;

	rig_open_both(&q, 256, 128, rig_gpu_cq);
	for (i = 0; i < 1000; i += 100) {
		for (k = 0; k < 100; k++)
			pkts[k] = rig_pkt(&q, i + k);
		cr_assert_eq(gdk_eth_send_multi(q.tx, pkts, 100, NOTIFY, how, &ticket), 0);
		cr_assert_eq(gdk_eth_wait_for(q.tx, ticket, SHARE), 0);
		rig_expect(&q, i, 100);
	}
	cr_assert_eq(gdk_eth_txq_get_counters(q.txq, &c), DOCA_SUCCESS);
	cr_expect_eq(c.doorbells, 10);
	cr_expect_eq(c.reserved, 10 * (16 + gdk_eth_empw_slots(39)));
	cr_expect_eq(gdk_eth_send_multi(q.tx, pkts, 0, 0, how, &ticket), -EINVAL);
}

/* ---- completions ---- */

Test(doca_eth_send, polls_count_requested_cqes_only)
{
	uint32_t i, done, k;

	open_queues();
	cr_expect_eq(gdk_eth_poll(q.tx, 1, 1, 0, SHARE, &done), 0);
	cr_expect_eq(done, 0);
	cr_expect_eq(gdk_eth_poll_at(q.tx, 0, 0, SHARE), EBUSY);
	for (i = 0; i < 300; i += 30) {
		/* 3 requests; the ends of half rings add CQEs of their own */
		for (k = 0; k < 30; k++)
			rig_send(&q, i + k, k % 10 == 9 ? NOTIFY : 0, SHARE);
		cr_assert_eq(gdk_eth_poll(q.tx, 2, 1, 1, SHARE, &done), 0);
		cr_assert_eq(done, 2);
		rig_expect(&q, i, 30);
		cr_assert_eq(gdk_eth_wait_for(q.tx, i + 29, SHARE), 0);
		cr_assert_eq(gdk_eth_poll(q.tx, 2, 1, 0, SHARE, &done), 0);
		cr_assert_eq(done, 0, "only one has not been taken");
		cr_assert_eq(gdk_eth_poll(q.tx, 2, 0, 0, SHARE, &done), 0);
		cr_assert_eq(done, 1);
	}
	cr_expect_eq(gdk_eth_poll_at(q.tx, 30, 0, SHARE), EBUSY);
	cr_assert_eq(gdk_eth_txq_set_wait_limit(q.txq, 1000000), DOCA_SUCCESS);
	cr_expect_eq(gdk_eth_poll_at(q.tx, 30, 1, SHARE), -ETIMEDOUT);
	cr_expect_eq(gdk_eth_poll_at(q.tx, 0, 1, SHARE), 0, "an old one is complete");
}

static struct {
	unsigned int errors, notes;
	uint16_t position[64], failed;
	uint64_t stamp;
} seen;

static void on_error(struct doca_eth_txq_gpu_event_error_send_packet *ev, union doca_data data)
{
	cr_expect_eq(data.u64, 77);
	cr_expect_eq(doca_eth_txq_gpu_event_error_send_packet_get_position(ev, &seen.failed),
		     DOCA_SUCCESS);
	seen.errors++;
}

static void on_notify(struct doca_eth_txq_gpu_event_notify_send_packet *ev, union doca_data data)
{
	uint64_t stamp;

	cr_expect_eq(data.u64, 88);
	cr_expect_eq(doca_eth_txq_gpu_event_notify_send_packet_get_position(
			     ev, &seen.position[seen.notes++ % 64]),
		     DOCA_SUCCESS);
	cr_expect_eq(doca_eth_txq_gpu_event_notify_send_packet_get_timestamp(ev, &stamp),
		     DOCA_SUCCESS);
	cr_expect_geq(stamp, seen.stamp, "time stamps grow");
	seen.stamp = stamp;
}

static struct doca_pe *pe;

static void with_events(struct doca_eth_txq *txq)
{
	const union doca_data e = { .u64 = 77 }, n = { .u64 = 88 };

	memset(&seen, 0, sizeof(seen));
	cr_assert_eq(doca_eth_txq_gpu_event_error_send_packet_register(txq, on_error, e),
		     DOCA_SUCCESS);
	cr_assert_eq(doca_eth_txq_gpu_event_notify_send_packet_register(txq, on_notify, n),
		     DOCA_SUCCESS);
	cr_assert_eq(doca_pe_create(&pe), DOCA_SUCCESS);
	cr_assert_eq(doca_pe_connect_ctx(pe, doca_eth_txq_as_doca_ctx(txq)), DOCA_SUCCESS);
	cr_expect_eq(doca_pe_progress(pe), 0, "the queue is idle");
}

static void with_events_and_gpu_cq(struct doca_eth_txq *txq)
{
	with_events(txq);
	rig_gpu_cq(txq);
}

/* The CPU must not take CQEs that kernels poll. */
Test(doca_eth_send, no_events_of_a_queue_that_kernels_poll)
{
	rig_open_both(&q, 256, DEPTH, with_events_and_gpu_cq);
	rig_send(&q, 0, NOTIFY, SHARE);
	rig_expect(&q, 0, 1);
	cr_expect_eq(doca_pe_progress(pe), 0);
	cr_assert_eq(gdk_eth_poll_at(q.tx, 0, 1, SHARE), 0);
	cr_expect_eq(doca_pe_progress(pe), 0);
	cr_expect_eq(seen.notes, 0);
	close_queues();
	q.dev = NULL;
	cr_expect_eq(doca_pe_destroy(pe), DOCA_SUCCESS);
}

Test(doca_eth_send, events_on_the_cpu_are_those_that_were_requested)
{
	uint32_t i, k, done;

	rig_open_both(&q, 256, DEPTH, with_events);
	cr_expect_eq(gdk_eth_poll(q.tx, 1, 1, 0, SHARE, &done), -EOPNOTSUPP);
	for (i = 0; i < 70000; i += 50) {
		for (k = 0; k < 50; k++)
			rig_send(&q, i + k, k % 25 == 7 ? NOTIFY : 0, SHARE);
		rig_expect(&q, i, 50);
		cr_assert_eq(gdk_eth_wait_for(q.tx, i + 32, SHARE), 0);
		while (doca_pe_progress(pe))
			;
		cr_assert_eq(seen.notes, (i / 50 + 1) * 2);
		cr_assert_eq(seen.position[(seen.notes - 2) % 64], (uint16_t)(i + 7));
		cr_assert_eq(seen.position[(seen.notes - 1) % 64], (uint16_t)(i + 32));
	}
	cr_expect_eq(seen.errors, 0);
	close_queues();
	q.dev = NULL;
	cr_expect_eq(doca_pe_destroy(pe), DOCA_SUCCESS);
}

/* ---- errors ---- */

static void send_with_a_bad_key(void)
{
	struct gdk_eth_pkt pkt = rig_pkt(&q, 2);
	doca_gpu_dev_eth_ticket_t ticket;

	rig_send(&q, 0, 0, SHARE);
	rig_send(&q, 1, NOTIFY, SHARE);
	pkt.mkey = htobe32(0xbad00);
	cr_assert_eq(gdk_eth_send(q.tx, pkt, 0, rig_how(SHARE), &ticket), 0);
	cr_expect_eq(gdk_eth_wait_for(q.tx, 2, SHARE), -EIO);
	rig_expect(&q, 0, 2);
}

Test(doca_eth_send, an_error_ends_the_queue)
{
	struct gdk_eth_txq_counters c;
	doca_gpu_dev_eth_ticket_t ticket;
	uint32_t done;

	open_queues();
	send_with_a_bad_key();
	cr_expect_eq(gdk_eth_send(q.tx, rig_pkt(&q, 3), 0, rig_how(SHARE), &ticket), -EIO);
	cr_expect_eq(gdk_eth_poll(q.tx, 5, 1, 1, SHARE, &done), -EIO);
	cr_assert_eq(gdk_eth_txq_get_counters(q.txq, &c), DOCA_SUCCESS);
	cr_expect_eq(c.status, -EIO);
	cr_expect_eq(c.error_wqe, 2);
}

Test(doca_eth_send, an_error_is_an_event_on_the_cpu)
{
	rig_open_both(&q, 256, DEPTH, with_events);
	send_with_a_bad_key();
	capture_begin();
	while (doca_pe_progress(pe))
		;
	cr_expect(strstr(capture_end(), "WQE 2 failed"));
	cr_expect_eq(seen.errors, 1);
	cr_expect_eq(seen.failed, 2);
	cr_expect_eq(seen.notes, 1);
	close_queues();
	q.dev = NULL;
	cr_expect_eq(doca_pe_destroy(pe), DOCA_SUCCESS);
}

Test(doca_eth_send, an_abort_ends_the_queue)
{
	doca_gpu_dev_eth_ticket_t ticket;

	open_queues();
	rig_send(&q, 0, NOTIFY, SHARE);
	cr_expect_eq(gdk_eth_wait_for(q.tx, 0, SHARE), 0);
	cr_assert_eq(gdk_eth_txq_abort(q.txq), DOCA_SUCCESS);
	cr_expect_eq(gdk_eth_send(q.tx, rig_pkt(&q, 1), 0, rig_how(SHARE), &ticket), -ECANCELED);
	cr_expect_eq(gdk_eth_poll_at(q.tx, 9, 1, SHARE), -ECANCELED);
}

/* ---- the CPU proxy ---- */

static void with_proxy(struct doca_eth_txq *txq)
{
	rig_gpu_cq(txq);
	cr_assert_eq(doca_eth_txq_gpu_set_uar_on_cpu(txq), DOCA_SUCCESS);
}

Test(doca_eth_send, the_cpu_rings)
{
	enum doca_gpu_dev_verbs_nic_handler handler;
	struct gdk_eth_batch b;
	char why[256];
	uint32_t i;

	rig_open_both(&q, 256, DEPTH, with_proxy);
	cr_assert_eq(gdk_eth_txq_get_nic_handler(q.txq, &handler, why, sizeof(why)), DOCA_SUCCESS);
	cr_expect_eq(handler, DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY);
	cr_expect(strstr(why, "CPU_PROXY: usable"), "%s", why);
	for (i = 0; i < 1000; i += 10) {
		uint32_t k;

		for (k = 0; k < 10; k++)
			rig_send(&q, i + k, k == 9 ? NOTIFY : 0, SHARE);
		if (!i) {
			cr_assert_eq(gdk_eth_recv(q.rx, 1, 5000000, 0, ALONE, &b), 0);
			cr_assert_eq(b.num, 0, "no CPU thread has rung");
		}
		cr_assert_eq(doca_eth_txq_gpu_cpu_proxy_progress(q.txq), DOCA_SUCCESS);
		rig_expect(&q, i, 10);
		cr_assert_eq(gdk_eth_poll_at(q.tx, i / 10, 1, SHARE), 0);
	}
}

/* Reasons are cut to the length of the buffer. Without a buffer or a length there are none. */
static void expect_reasons(const char *why)
{
	enum doca_gpu_dev_verbs_nic_handler handler;
	char text[256];
	size_t len;

	cr_expect_eq(gdk_eth_txq_get_nic_handler(q.txq, &handler, NULL, 10), DOCA_SUCCESS);
	for (len = 0; len <= strlen(why); len += len < 2 ? 1 : 20) {
		memset(text, '#', sizeof(text));
		cr_expect_eq(gdk_eth_txq_get_nic_handler(q.txq, &handler, text, len), DOCA_SUCCESS);
		cr_expect(!len || (strlen(text) == len - 1 && !memcmp(text, why, len - 1)),
			  "%zu bytes: %s", len, text);
		cr_expect_eq(text[len], '#', "more than %zu bytes were written", len);
	}
}

Test(doca_eth_send, handlers)
{
	enum doca_gpu_dev_verbs_nic_handler handler;
	char why[256];

	open_queues();
	cr_assert_eq(gdk_eth_txq_get_nic_handler(q.txq, &handler, why, sizeof(why)), DOCA_SUCCESS);
	cr_expect_eq(handler, DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB);
	expect_reasons(why);
	capture_begin();
	cr_expect_eq(doca_eth_txq_gpu_cpu_proxy_progress(q.txq), DOCA_ERROR_NOT_SUPPORTED);
	cr_expect_eq(gdk_eth_txq_set_nic_handler(q.txq, handler), DOCA_ERROR_BAD_STATE);
	cr_assert_eq(doca_ctx_stop(doca_eth_txq_as_doca_ctx(q.txq)), DOCA_SUCCESS);
	cr_expect_eq(
		gdk_eth_txq_set_nic_handler(q.txq, DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR),
		DOCA_ERROR_NOT_SUPPORTED);
	cr_expect(strstr(capture_end(), "no field for the mode without DBREC"));
	cr_assert_eq(doca_ctx_start(doca_eth_txq_as_doca_ctx(q.txq)), DOCA_SUCCESS);
}

Test(doca_eth_send, the_smallest_ring_has_32_slots)
{
	open_queues();
	rig_close_txq(&q);
	rig_open_txq(&q, 1, rig_gpu_cq);
	cr_expect_eq(q.tx->qp.sq_wqe_num, 32);
}

Test(doca_eth_send, a_queue_without_a_gpu_does_not_start)
{
	struct doca_eth_txq *txq;

	open_queues();
	cr_assert_eq(doca_eth_txq_create(q.dev, 64, &txq), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_BAD_STATE, "no GPU is set: call doca_ctx_set_datapath_on_gpu()",
		doca_ctx_start(doca_eth_txq_as_doca_ctx(txq)));
	cr_expect_eq(doca_eth_txq_destroy(txq), DOCA_SUCCESS);
}

/* ---- indices ---- */

/* Sends from a preset index of the queue on. The NIC's counters begin at 0: only 16 bits matter. */
static void send_from(uint64_t preset, gdk_mode_t mode)
{
	doca_gpu_dev_eth_ticket_t ticket;
	struct gdk_qp_state *st;
	uint32_t i, k;

	open_queues();
	st = gdk_state_of_qp(&q.tx->qp);
	q.tx->qp.sq_rsvd_index = preset;
	st->rung = st->completed = st->cqe_ci = st->wanted = st->parked = preset;
	for (i = 0; i < 66000; i += 50) {
		for (k = 0; k < 50; k++) {
			cr_assert_eq(gdk_eth_send(q.tx, rig_pkt(&q, i + k), k == 49 ? NOTIFY : 0,
						  rig_how(mode), &ticket),
				     0);
			cr_assert_eq(ticket, preset + i + k);
		}
		cr_assert_eq(gdk_eth_poll_at(q.tx, i / 50, 1, mode), 0);
		rig_expect(&q, i, 50);
	}
}

Test(doca_eth_send, indices_beyond_2_32_in_shared_use)
{
	send_from((1ull << 32) - 65536, SHARE);
}

Test(doca_eth_send, indices_beyond_2_32_in_exclusive_use)
{
	send_from((1ull << 32) - 65536, EXCL);
}

/* ---- faults ---- */

static doca_error_t start_and_stop(void)
{
	struct doca_ctx *ctx = doca_eth_txq_as_doca_ctx(q.txq);
	doca_error_t err = doca_ctx_start(ctx), again;

	if (err)
		return err;
	/* A stop that fails may be repeated. */
	for (err = again = doca_ctx_stop(ctx); again; again = doca_ctx_stop(ctx))
		;
	return err;
}

static void fail(void (*set)(struct doca_eth_txq *))
{
	rig_open_both(&q, 64, DEPTH, set);
	cr_assert_eq(doca_ctx_stop(doca_eth_txq_as_doca_ctx(q.txq)), DOCA_SUCCESS);
	rig_warm_uars(&q);
	rig_faults_but(start_and_stop, 8, 10,
		       9); /* another kind of UAR, or no watch word, will do */
	cr_assert_eq(doca_ctx_start(doca_eth_txq_as_doca_ctx(q.txq)), DOCA_SUCCESS);
}

Test(doca_eth_send, each_failure_of_the_start_leaks_nothing)
{
	fail(rig_gpu_cq);
}

Test(doca_eth_send, each_failure_of_the_start_with_a_proxy_leaks_nothing)
{
	fail(with_proxy);
}
