/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Sends of Ethernet packets at a given time, on a NIC with real-time clocks: none is early, and the
 * time stamps tell how late each is.
 */
/* softnic-run: --ts-format real --wait-on-time 1 */
#include <time.h>

#include "eth_queue_rig.h"

#define NOTIFY DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY

static struct queues q;

static void with_time(struct doca_eth_txq *txq)
{
	rig_gpu_cq(txq);
	cr_assert_eq(doca_eth_txq_set_wait_on_time_offload(txq), DOCA_SUCCESS);
}

static uint64_t real_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

Test(doca_eth_time, thousand_bursts_and_none_is_early, .timeout = 60)
{
	enum doca_eth_wait_on_time_type type;
	uint64_t at, when, late = 0, ticket, stamp;
	struct gdk_eth_batch b;
	uint32_t i;

	rig_open_both(&q, 256, 64, with_time);
	cr_assert_eq(doca_eth_txq_cap_get_wait_on_time_offload_supported(doca_dev_as_devinfo(q.dev),
									 &type),
		     DOCA_SUCCESS);
	cr_assert_eq(type, DOCA_ETH_WAIT_ON_TIME_TYPE_NATIVE);
	for (i = 0; i < 2000; i += 2) {
		at = real_ns() + 300000;
		cr_assert_eq(doca_eth_txq_calculate_timestamp(q.txq, at, &when), DOCA_SUCCESS);
		cr_assert_eq(gdk_eth_wait(q.tx, when, rig_pkt(&q, i), 0, rig_how(SHARE), &ticket),
			     0);
		cr_assert_eq(ticket, i / 2 * 3 + 1, "one slot for the WAIT");
		cr_assert_eq(
			gdk_eth_send(q.tx, rig_pkt(&q, i + 1), NOTIFY, rig_how(SHARE), &ticket), 0);
		cr_assert_eq(gdk_eth_recv(q.rx, 2, 5000000000, 0, ALONE, &b), 0);
		cr_assert_eq(b.num, 2);
		stamp = gdk_eth_pkt_ts(q.rx, b.first);
		cr_assert_geq(stamp, at, "burst %u is %llu ns early", i / 2,
			      (unsigned long long)(at - stamp));
		late = stamp - at > late ? stamp - at : late;
	}
	cr_log_info("at most %llu ns late", (unsigned long long)late);
	rig_close_both(&q);
}

Test(doca_eth_time, a_queue_that_did_not_ask_cannot_wait)
{
	uint64_t when, ticket;

	rig_open_both(&q, 64, 64, rig_gpu_cq);
	cr_expect_eq(gdk_eth_wait(q.tx, 1, rig_pkt(&q, 0), 0, rig_how(SHARE), &ticket),
		     -EOPNOTSUPP);
	cr_expect_eq(gdk_eth_wqe_wait(q.tx, 0, 1, 0), -EOPNOTSUPP);
	capture_begin();
	cr_expect_eq(doca_eth_txq_calculate_timestamp(q.txq, 1, &when), DOCA_ERROR_NOT_SUPPORTED);
	cr_expect(strstr(capture_end(), "doca_eth_txq_set_wait_on_time_offload()"));
	rig_send(&q, 0, NOTIFY, SHARE);
	rig_expect(&q, 0, 1);
	rig_close_both(&q);
}
