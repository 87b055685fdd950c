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

/* ---- lateness ---- */

static uint64_t asked[64], late_sum, late_max; /* times by slot; lateness by the events */
static uint32_t events;
static struct doca_pe *pe;

static void on_notify(struct doca_eth_txq_gpu_event_notify_send_packet *event, union doca_data data)
{
	uint64_t stamp, late;
	uint16_t position;

	(void)data;
	cr_assert_eq(doca_eth_txq_gpu_event_notify_send_packet_get_position(event, &position),
		     DOCA_SUCCESS);
	cr_assert_eq(doca_eth_txq_gpu_event_notify_send_packet_get_timestamp(event, &stamp),
		     DOCA_SUCCESS);
	events++;
	if (!asked[position % 64])
		return;
	late = stamp - asked[position % 64];
	cr_assert_lt(late, 1ull << 63, "early");
	late_sum += late;
	late_max = late > late_max ? late : late_max;
	asked[position % 64] = 0;
}

static void with_events(struct doca_eth_txq *txq)
{
	const union doca_data none = { .u64 = 0 };

	cr_assert_eq(doca_eth_txq_set_wait_on_time_offload(txq), DOCA_SUCCESS);
	cr_assert_eq(doca_eth_txq_gpu_event_notify_send_packet_register(txq, on_notify, none),
		     DOCA_SUCCESS);
	cr_assert_eq(doca_pe_create(&pe), DOCA_SUCCESS);
	cr_assert_eq(doca_pe_connect_ctx(pe, doca_eth_txq_as_doca_ctx(txq)), DOCA_SUCCESS);
}

/* A WAIT and a packet; the packet, or the WAIT itself, generates the CQE. Then a plain packet. */
static void post_late(uint32_t i, bool by_wait)
{
	const uint64_t at = real_ns() + 100000;
	uint64_t when, idx, ticket = 0;

	cr_assert_eq(doca_eth_txq_calculate_timestamp(q.txq, at, &when), DOCA_SUCCESS);
	if (by_wait) {
		cr_assert_eq(gdk_eth_reserve(q.tx, 2, SHARE, &idx), 0);
		cr_assert_eq(gdk_eth_wqe_wait(q.tx, idx, when, NOTIFY), 0);
		gdk_eth_wqe_send(q.tx, idx + 1, rig_pkt(&q, 2 * i), 0);
		asked[idx % 64] = at;
		gdk_eth_submit(q.tx, idx + 2, rig_how(SHARE));
	} else {
		cr_assert_eq(gdk_eth_wait(q.tx, when, rig_pkt(&q, 2 * i), NOTIFY, rig_how(SHARE),
					  &ticket),
			     0);
		asked[ticket % 64] = at;
	}
	cr_assert_eq(gdk_eth_send(q.tx, rig_pkt(&q, 2 * i + 1), NOTIFY, rig_how(SHARE), &ticket),
		     0);
}

Test(doca_eth_time, counters_tell_how_late_sends_were, .timeout = 60)
{
	const uint32_t pairs = 200; /* several laps: timed slots get plain packets, and reverse */
	struct gdk_eth_txq_counters c;
	struct gdk_eth_batch b;
	uint32_t i;

	rig_open_dev(&q);
	rig_open_rxq(&q, 256);
	rig_open_txq(&q, 64, with_events);
	for (i = 0; i < pairs; i++) {
		post_late(i, i % 3 == 1);
		cr_assert_eq(gdk_eth_recv(q.rx, 2, 5000000000, 0, ALONE, &b), 0);
		cr_assert_eq(b.num, 2);
		while (events < 2 * (i + 1))
			doca_pe_progress(pe);
	}
	cr_assert_eq(gdk_eth_txq_get_counters(q.txq, &c), DOCA_SUCCESS);
	cr_expect_eq(c.notified, 2 * pairs);
	cr_expect_eq(c.timed, pairs);
	cr_expect_eq(c.early, 0);
	cr_expect_eq(c.late_ns, late_sum);
	cr_expect_eq(c.late_max_ns, late_max);
	cr_expect_gt(late_max, 0);
	rig_close_txq(&q);
	rig_close_rxq(&q);
	cr_expect_eq(doca_pe_destroy(pe), DOCA_SUCCESS);
	rig_close_dev(&q);
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
