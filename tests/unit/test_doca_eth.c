/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Ethernet queues: packets of a TXQ that arrive at a RXQ of the same process, by one CPU thread.
 * Every packet is counted and compared.
 */
#include "eth_queue_rig.h"

static struct queues q;

TestSuite(doca_eth, .timeout = 60);

#define PACKETS 10000u

/* Sends all packets in bursts, and receives each burst before the next one. */
static void exchange(gdk_mode_t mode, uint32_t burst)
{
	struct gdk_eth_txq_counters tx;
	struct gdk_eth_rxq_counters rx;
	uint32_t i, n, k;

	for (i = 0; i < PACKETS; i += n) {
		n = PACKETS - i < burst ? PACKETS - i : burst;
		for (k = 0; k < n; k++)
			rig_send(&q, i + k, k + 1 == n ? DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY : 0,
				 mode);
		rig_expect(&q, i, n);
		cr_assert_eq(gdk_eth_wait_for(q.tx, i + n - 1, mode), 0);
	}
	cr_assert_eq(gdk_eth_txq_get_counters(q.txq, &tx), DOCA_SUCCESS);
	cr_assert_eq(gdk_eth_rxq_get_counters(q.rxq, &rx), DOCA_SUCCESS);
	cr_expect_eq(tx.reserved, PACKETS);
	cr_expect_eq(tx.completed, PACKETS);
	cr_expect_eq(tx.status, 0);
	cr_expect_eq(rx.packets, PACKETS);
	cr_expect_eq(rx.out_of_buffer, 0);
	cr_expect_eq(rx.status, 0);
	cr_expect_leq(rx.dbrecs, PACKETS / burst + 1);
}

Test(doca_eth, ten_thousand_packets_in_exclusive_use)
{
	rig_open_both(&q, 256, 128, rig_gpu_cq);
	exchange(EXCL, 100);
	rig_close_both(&q);
}

Test(doca_eth, ten_thousand_packets_in_shared_use)
{
	rig_open_both(&q, 256, 64, rig_gpu_cq);
	exchange(SHARE, 64);
	rig_close_both(&q);
}

/* This NIC has no real-time clock. */
Test(doca_eth, sends_at_a_given_time_are_refused)
{
	enum doca_eth_wait_on_time_type type;
	struct doca_eth_txq *txq;
	struct doca_ctx *ctx;

	rig_open_dev(&q);
	cr_assert_eq(doca_eth_txq_cap_get_wait_on_time_offload_supported(doca_dev_as_devinfo(q.dev),
									 &type),
		     DOCA_SUCCESS);
	cr_expect_eq(type, DOCA_ETH_WAIT_ON_TIME_TYPE_NONE);
	cr_assert_eq(doca_eth_txq_create(q.dev, 64, &txq), DOCA_SUCCESS);
	cr_assert_eq(doca_eth_txq_set_wait_on_time_offload(txq), DOCA_SUCCESS);
	ctx = doca_eth_txq_as_doca_ctx(txq);
	cr_assert_eq(doca_ctx_set_datapath_on_gpu(ctx, q.gpu), DOCA_SUCCESS);
	capture_begin();
	cr_expect_eq(doca_ctx_start(ctx), DOCA_ERROR_NOT_SUPPORTED);
	cr_expect(strstr(capture_end(), "REAL_TIME_CLOCK_ENABLE"));
	cr_expect_eq(doca_eth_txq_destroy(txq), DOCA_SUCCESS);
	rig_close_dev(&q);
}

/* The CPU needs no DUMP; the queue is created and used all the same. */
Test(doca_eth, packets_are_awaited_by_dumps)
{
	struct gdk_eth_batch b;
	uint32_t i;

	rig_open_both(&q, 64, 64, rig_gpu_cq);
	b.num = 0;
	cr_expect_eq(gdk_eth_mcst(q.rx, &b, 1, ALONE), -EOPNOTSUPP, "there is no send queue");
	cr_expect_eq(gdk_eth_mcst(q.rx, &b, 0, ALONE), 0);
	rig_unsteer(&q);
	cr_assert_eq(doca_ctx_stop(doca_eth_rxq_as_doca_ctx(q.rxq)), DOCA_SUCCESS);
	cr_assert_eq(doca_eth_rxq_gpu_enable_mcst_qp(q.rxq), DOCA_SUCCESS);
	cr_assert_eq(doca_ctx_start(doca_eth_rxq_as_doca_ctx(q.rxq)), DOCA_SUCCESS);
	cr_assert_eq(doca_eth_rxq_get_gpu_handle(q.rxq, &q.rx), DOCA_SUCCESS);
	rig_steer(&q);
	for (i = 0; i < 300; i++) {
		rig_send(&q, i, DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY, EXCL);
		cr_assert_eq(gdk_eth_recv(q.rx, 1, 5000000000, 0, ALONE, &b), 0);
		cr_assert_eq(b.num, 1);
		cr_assert_eq(gdk_eth_mcst(q.rx, &b, 1, ALONE), 0);
		packet_expect((const uint8_t *)(uintptr_t)gdk_eth_pkt_addr(q.rx, i),
			      gdk_eth_pkt_bytes(q.rx, i), i);
	}
	rig_close_both(&q);
}
