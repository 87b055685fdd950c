/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Receiving Ethernet packets: when slots are released and packets dropped, time limits, errors,
 * aborts, indices that wrap, and calls in a wrong order.
 */
#include <time.h>

#include "../lib/bound.h"
#include "eth_queue_rig.h"

#define NUM 64u

static struct queues q;

static void open_queues(void)
{
	rig_open_both(&q, NUM, 128, rig_gpu_cq);
}

static void close_queues(void)
{
	rig_close_both(&q);
}

TestSuite(doca_eth_recv, .init = open_queues, .fini = close_queues, .timeout = 60);

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t dropped(void)
{
	struct gdk_eth_rxq_counters c;

	cr_assert_eq(gdk_eth_rxq_get_counters(q.rxq, &c), DOCA_SUCCESS);
	return c.out_of_buffer;
}

/* How many packets the NIC has received or dropped. */
static uint64_t handled(void)
{
	uint64_t i = gdk_ld64(&q.rx->next, GDK_SCOPE_GPU);
	const uint64_t end = gdk_ld64(&q.rx->freed, GDK_SCOPE_GPU) + q.rx->num;

	while (i < end && gdk_eth_test(q.rx, i, 1, 0, 1) >> GDK_ETH_PASS_BITS)
		i++;
	return i + dropped();
}

/* Sends n packets from `first` on and waits until the NIC has received or dropped them, which it
 * does some time after the sends complete. */
static void send_packets(uint32_t first, uint32_t n)
{
	const uint64_t want = handled() + n;
	uint64_t now;
	struct bound b;
	uint32_t k;

	for (k = 0; k < n; k++)
		rig_send(&q, first + k, k + 1 == n ? DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY : 0, EXCL);
	cr_assert_eq(gdk_eth_wait_for(q.tx, first + n - 1, EXCL), 0);
	b = bound_begin(0, false);
	while ((now = handled()) != want)
		cr_assert(!bound_passed(&b, now, 10000000000), "%llu of %u packets are not handled",
			  (unsigned long long)(want - now), n);
}

static struct gdk_eth_batch recv_now(uint32_t max, uint32_t opt)
{
	struct gdk_eth_batch b;

	cr_assert_eq(gdk_eth_recv(q.rx, max, 0, opt, ALONE, &b), 0);
	return b;
}

static const uint8_t *packet_at(uint64_t idx)
{
	return (const uint8_t *)(uintptr_t)gdk_eth_pkt_addr(q.rx, idx);
}

Test(doca_eth_recv, packets_without_a_free_slot_are_counted)
{
	send_packets(0, NUM + 36);
	rig_expect(&q, 0, NUM);
	cr_expect_eq(dropped(), 36);
	cr_expect_eq(recv_now(0, 0).num, 0);
}

/* Until the next receive, packets stay in their slots, and packets for which no slot is free are
 * dropped. Then the slots are filled again. */
Test(doca_eth_recv, slots_are_released_by_the_next_receive)
{
	struct gdk_eth_batch b;
	uint32_t i;

	send_packets(0, NUM);
	b = recv_now(NUM, 0);
	cr_assert_eq(b.num, NUM);
	send_packets(NUM, 10);
	for (i = 0; i < NUM; i++)
		packet_expect(packet_at(i), gdk_eth_pkt_bytes(q.rx, i), i);
	cr_expect_eq(dropped(), 10);
	cr_expect_eq(recv_now(NUM, 0).num, 0);
	send_packets(NUM + 10, 5);
	b = recv_now(NUM, 0);
	cr_assert_eq(b.num, 5);
	cr_assert_eq(b.first, NUM);
	packet_expect(packet_at(NUM), gdk_eth_pkt_bytes(q.rx, NUM), NUM + 10);
}

Test(doca_eth_recv, kept_slots_are_released_by_hand)
{
	struct gdk_eth_batch b;

	send_packets(0, NUM);
	b = recv_now(NUM / 2, GDK_ETH_KEEP);
	cr_assert_eq(b.num, NUM / 2);
	b = recv_now(NUM, GDK_ETH_KEEP);
	cr_assert_eq(b.num, NUM / 2);
	cr_expect_eq(recv_now(0, GDK_ETH_KEEP).num, 0, "no slot is free");
	send_packets(NUM, 3);
	cr_expect_eq(dropped(), 3);
	packet_expect(packet_at(0), gdk_eth_pkt_bytes(q.rx, 0), 0);
	gdk_eth_release(q.rx, 8);
	gdk_eth_release(q.rx, 4); /* released already */
	send_packets(NUM + 3, 10);
	b = recv_now(0, GDK_ETH_KEEP);
	cr_expect_eq(b.num, 8);
	cr_expect_eq(dropped(), 5);
	packet_expect(packet_at(8), gdk_eth_pkt_bytes(q.rx, 8), 8);
	gdk_eth_release(q.rx, UINT64_MAX);
	send_packets(NUM + 13, NUM);
	cr_expect_eq(recv_now(0, 0).num, NUM);
	cr_expect_eq(dropped(), 5);
}

Test(doca_eth_recv, limits_of_number_and_time)
{
	struct gdk_eth_batch b;
	uint64_t start = now_ns();

	cr_assert_eq(gdk_eth_recv(q.rx, 10, 3000000, 0, ALONE, &b), 0);
	cr_expect_eq(b.num, 0);
	cr_expect_geq(now_ns() - start, 3000000);
	send_packets(0, 20);
	cr_assert_eq(gdk_eth_recv(q.rx, 7, UINT64_MAX, 0, ALONE, &b), 0);
	cr_expect_eq(b.num, 7);
	/* Without a limit of the number, a receive does not wait for more than one. */
	cr_assert_eq(gdk_eth_recv(q.rx, 0, UINT64_MAX, 0, ALONE, &b), 0);
	cr_expect_eq(b.first, 7);
	cr_expect_eq(b.num, 13);
	start = now_ns();
	send_packets(20, 2);
	cr_assert_eq(gdk_eth_recv(q.rx, 3, 2000000, 0, ALONE, &b), 0);
	cr_expect_eq(b.num, 2);
	cr_expect_geq(now_ns() - start, 2000000);
}

Test(doca_eth_recv, attributes_of_packets)
{
	send_packets(0, 3);
	rig_expect(&q, 0, 3);
	cr_expect_eq(gdk_eth_pkt_checks(q.rx, 0), GDK_ETH_L2_OK, "0x%x",
		     gdk_eth_pkt_checks(q.rx, 0));
	cr_expect_leq(gdk_eth_pkt_ts(q.rx, 0), gdk_eth_pkt_ts(q.rx, 2));
	cr_expect_gt(gdk_eth_pkt_ts(q.rx, 0), 0);
	cr_expect_eq(gdk_ldc32(&q.rx->mkey) & 0xff000000, gdk_ldc32(&q.rx->mkey) & 0xff000000);
}

/* One frame of `len` bytes, longer than a slot if len > SLOT. */
static void send_frame(uint32_t idx, uint32_t len)
{
	doca_gpu_dev_eth_ticket_t ticket;
	struct gdk_eth_pkt pkt;

	packet_write(q.tx_buf, 0);
	pkt = gdk_eth_pkt((uintptr_t)q.tx_buf, q.tx_key, len);
	cr_assert_eq(
		gdk_eth_send(q.tx, pkt, DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY, rig_how(EXCL), &ticket),
		0);
	cr_assert_eq(ticket, idx);
	cr_assert_eq(gdk_eth_wait_for(q.tx, idx, EXCL), 0);
}

Test(doca_eth_recv, an_error_ends_the_queue_after_the_packets_before_it)
{
	struct gdk_eth_rxq_counters c;
	struct gdk_eth_batch b;
	int k;

	send_packets(0, 2);
	send_frame(2, SLOT + 1);
	cr_assert_eq(gdk_eth_recv(q.rx, 10, 1000000000, 0, ALONE, &b), 0);
	cr_expect_eq(b.num, 2, "packets before the error are returned");
	for (k = 0; k < 2; k++) {
		cr_expect_eq(gdk_eth_recv(q.rx, 10, 1000000000, 0, ALONE, &b), -EIO);
		cr_expect_eq(b.num, 0);
	}
	cr_assert_eq(gdk_eth_rxq_get_counters(q.rxq, &c), DOCA_SUCCESS);
	cr_expect_eq(c.status, -EIO);
	cr_expect_eq(c.error_packet, 2);
	cr_expect_eq(gdk_eth_rxq_abort(q.rxq), DOCA_SUCCESS);
	cr_expect_eq(gdk_eth_rxq_status(q.rx), -EIO, "the first status stays");
}

/* A CQE of another packet than the one that is due: the CQ was overrun. */
Test(doca_eth_recv, an_overrun_ends_the_queue)
{
	struct gdk_eth_batch b;

	send_packets(0, 4);
	q.rx->next += 2 * NUM;
	q.rx->freed += 2 * NUM;
	cr_expect_eq(gdk_eth_recv(q.rx, 4, 1000000000, 0, ALONE, &b), -EOVERFLOW);
	cr_expect_eq(gdk_eth_recv(q.rx, 4, 1000000000, 0, ALONE, &b), -EOVERFLOW);
	q.rx->next -= 2 * NUM;
	q.rx->freed -= 2 * NUM;
}

static void *abort_later(void *arg)
{
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	cr_expect_eq(gdk_eth_rxq_abort(arg), DOCA_SUCCESS);
	return NULL;
}

Test(doca_eth_recv, an_abort_ends_a_receive_that_waits)
{
	struct gdk_eth_batch b;
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, abort_later, q.rxq), 0);
	cr_expect_eq(gdk_eth_recv(q.rx, 1, UINT64_MAX, 0, ALONE, &b), -ECANCELED);
	pthread_join(thread, NULL);
	send_packets(0, 1);
	cr_expect_eq(gdk_eth_recv(q.rx, 1, 0, 0, ALONE, &b), -ECANCELED);
	cr_expect_eq(b.num, 0);
}

/* Packets from a preset index on, over 2^16 WQEs of the NIC. */
static void receive_many(uint64_t preset)
{
	struct gdk_eth_batch b;
	uint32_t i, k;

	q.rx->next = q.rx->freed = preset;
	for (i = 0; i < 66000; i += 50) {
		for (k = 0; k < 50; k++)
			rig_send(&q, i + k, 0, EXCL);
		for (k = 0; k < 50; k += b.num) {
			cr_assert_eq(gdk_eth_recv(q.rx, 50 - k, 5000000000, 0, ALONE, &b), 0);
			cr_assert(b.num, "packet %u has not arrived", i + k);
			cr_assert_eq(b.first, preset + i + k);
			packet_expect(packet_at(b.first), gdk_eth_pkt_bytes(q.rx, b.first), i + k);
		}
		gdk_eth_release(q.rx, UINT64_MAX);
	}
}

Test(doca_eth_recv, indices_beyond_2_16)
{
	receive_many(0);
}

Test(doca_eth_recv, indices_beyond_2_32)
{
	receive_many((1ull << 32) - 65536);
}

Test(doca_eth_recv, numbers_for_flow_rules)
{
	struct doca_eth_rxq *other;
	struct doca_ctx *ctx;

	cr_assert_eq(doca_eth_rxq_create(q.dev, 8, 100, &other), DOCA_SUCCESS);
	ctx = doca_eth_rxq_as_doca_ctx(other);
	cr_assert_eq(doca_ctx_set_datapath_on_gpu(ctx, q.gpu), DOCA_SUCCESS);
	cr_assert_eq(doca_eth_rxq_set_pkt_buf(other, q.rx_map, 0, 8 * 128), DOCA_SUCCESS);
	cr_assert_eq(doca_ctx_start(ctx), DOCA_SUCCESS);
	cr_expect_eq(doca_eth_rxq_apply_queue_id(other, 0), DOCA_SUCCESS, "q.rxq has no number");
	cr_expect_eq(doca_eth_rxq_apply_queue_id(q.rxq, 3), DOCA_SUCCESS);
	REFUSED(DOCA_ERROR_ALREADY_EXIST, "queue_id 3 is that of RQ",
		doca_eth_rxq_apply_queue_id(other, 3));
	cr_expect_eq(doca_eth_rxq_apply_queue_id(q.rxq, 4), DOCA_SUCCESS);
	cr_assert_eq(doca_ctx_stop(ctx), DOCA_SUCCESS);
	cr_assert_eq(doca_eth_rxq_destroy(other), DOCA_SUCCESS);
}

Test(doca_eth_recv, wrong_calls)
{
	struct doca_eth_rxq *rxq;
	struct doca_ctx *ctx;
	uint32_t bytes;

	capture_begin();
	cr_expect_eq(doca_eth_rxq_create(q.dev, 65537, 100, &rxq), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_eth_rxq_create(q.dev, 8, 16385, &rxq), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_eth_rxq_estimate_packet_buf_size(DOCA_ETH_RXQ_TYPE_CYCLIC, 0, 0, 0, 8, 0,
							   0, 0, &bytes),
		     DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(doca_eth_rxq_create(q.dev, 8, 100, &rxq), DOCA_SUCCESS);
	cr_expect_eq(doca_eth_rxq_set_type(rxq, DOCA_ETH_RXQ_TYPE_MANAGED_MEMPOOL),
		     DOCA_ERROR_NOT_SUPPORTED);
	cr_expect_eq(doca_eth_rxq_set_pkt_buf(rxq, q.rx_map, 0, 8 * 128 - 1),
		     DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_eth_rxq_set_pkt_buf(rxq, q.rx_map, 32, 8 * 128),
		     DOCA_ERROR_INVALID_VALUE);
	ctx = doca_eth_rxq_as_doca_ctx(rxq);
	cr_expect_eq(doca_ctx_start(ctx), DOCA_ERROR_BAD_STATE);
	cr_assert_eq(doca_ctx_set_datapath_on_gpu(ctx, q.gpu), DOCA_SUCCESS);
	cr_expect_eq(doca_ctx_start(ctx), DOCA_ERROR_BAD_STATE);
	cr_expect(strstr(capture_end(), "it has no buffer: call doca_eth_rxq_set_pkt_buf()"));
	cr_assert_eq(doca_eth_rxq_set_pkt_buf(rxq, q.rx_map, 64, 8 * 128), DOCA_SUCCESS);
	cr_assert_eq(doca_ctx_start(ctx), DOCA_SUCCESS);
	cr_assert_eq(doca_ctx_stop(ctx), DOCA_SUCCESS);
	cr_expect_eq(doca_eth_rxq_destroy(rxq), DOCA_SUCCESS);
}

/* ---- faults ---- */

static struct doca_eth_rxq *faulty;

static doca_error_t start_and_stop(void)
{
	struct doca_ctx *ctx = doca_eth_rxq_as_doca_ctx(faulty);
	doca_error_t err = doca_ctx_start(ctx), again;

	if (err)
		return err;
	/* A stop that fails may be repeated. */
	for (err = again = doca_ctx_stop(ctx); again; again = doca_ctx_stop(ctx))
		;
	return err;
}

/* tolerated: allocations without which another kind of UAR is used, or a warning is logged. */
static void each_failure(bool mcst, uint32_t allocs, uint32_t tolerated)
{
	cr_assert_eq(doca_eth_rxq_create(q.dev, 100, 100, &faulty), DOCA_SUCCESS);
	if (mcst)
		cr_assert_eq(doca_eth_rxq_gpu_enable_mcst_qp(faulty), DOCA_SUCCESS);
	cr_assert_eq(doca_eth_rxq_set_pkt_buf(faulty, q.rx_map, 0, 128 * 128), DOCA_SUCCESS);
	cr_assert_eq(doca_ctx_set_datapath_on_gpu(doca_eth_rxq_as_doca_ctx(faulty), q.gpu),
		     DOCA_SUCCESS);
	rig_warm_uars(&q);
	rig_faults_but(start_and_stop, allocs, 8, tolerated);
	cr_expect_eq(doca_eth_rxq_destroy(faulty), DOCA_SUCCESS);
}

Test(doca_eth_recv, each_failure_of_the_start_leaks_nothing)
{
	each_failure(false, 6, 2);
}

Test(doca_eth_recv, each_failure_of_the_start_with_a_send_queue_leaks_nothing)
{
	each_failure(true, 12, 5);
}
