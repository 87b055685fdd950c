/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Lossless flow control of raw Ethernet (--eth-pause). The test plays the other hosts,
 * also those that break off, lose frames or never answer, and reads every request and
 * grant.
 */
#include "eth_pause_rig.h"

TestSuite(eth_pause, .init = pause_rig, .fini = rig_close, .timeout = 60);

/* ---- the port sends ---- */

Test(eth_pause, waits_for_grant)
{
	struct control c;

	cr_assert_not(send_to(1));
	grant(1, 3);
	for (int i = 0; i < 3; i++)
		cr_assert(send_to(1), "frame %d", i);
	cr_assert_not(send_to(1));
	rig_pass(1000);
	cr_assert(take_control(1, &c));
	cr_assert_eq(c.kind, REQUEST);
	cr_assert(c.count >= COST && c.count <= 2 * COST); /* before the limit was reached */
	STAT(eth_tx_frames, 3);
	STAT(eth_tx_copies, 3);
}

Test(eth_pause, repeats_requests)
{
	struct control c;
	unsigned n = 0;

	for (int i = 0; i < 990; i++) {
		cr_assert_not(send_to(1));
		rig_pass(1 * MS);
	}
	while (take_control(1, &c))
		n++;
	cr_assert(n >= 15 && n <= 40, "%u requests", n);
	STAT(eth_tx_frames, 0);
}

/* A host that does not answer for 5 s does not stop the port forever. */
Test(eth_pause, gives_up_and_returns)
{
	struct control c = { 0 }, last;

	for (int i = 0; i < 5000; i++) {
		cr_assert_not(send_to(1));
		rig_pass(1 * MS);
	}
	rig_pass(2 * MS);
	cr_assert(send_to(1));
	STAT(eth_tx_failed, 1);
	STAT(eth_tx_copies, 1);
	STAT(eth_no_peer, 0);
	for (int i = 0; i < 1000; i++) {
		cr_assert(send_to(1));
		rig_pass(1 * MS);
	}
	STAT(eth_tx_failed, 1001);
	while (take_control(1, &last))
		c = last;
	cr_assert(e->now - c.stamp < 150 * MS, "no request to a dead host");
	c.kind = GRANT;
	c.count += 10 * COST;
	give(1, c);
	rig_pass(1000);
	cr_assert(send_to(1));
	rig_pass(1000);
	cr_assert_eq(rig_take(1), 100);
	STAT(eth_tx_failed, 1001);
}

/* A pause of the program, with a lost request before it, is not a host's silence. */
Test(eth_pause, silence_without_traffic)
{
	cr_assert_not(send_to(1));
	rig_pass(20000 * MS);
	cr_assert_not(send_to(1));
	rig_pass(1 * MS);
	cr_assert_not(send_to(1));
	STAT(eth_tx_failed, 0);
}

/* A host that answers, but has no room, may stop the port for any time. */
Test(eth_pause, waits_for_host_that_answers)
{
	struct control c;

	for (int i = 0; i < 20000; i++) {
		cr_assert_not(send_to(1));
		rig_pass(1 * MS);
		while (take_control(1, &c)) {
			c.kind = GRANT;
			c.count = 0;
			give(1, c);
		}
	}
	STAT(eth_tx_frames, 0);
}

Test(eth_pause, grants_expire)
{
	cr_assert_not(send_to(1));
	grant(1, 100);
	cr_assert(send_to(1));
	rig_pass(498 * MS);
	cr_assert(send_to(1));
	rig_pass(2 * MS);
	cr_assert_not(send_to(1));
}

Test(eth_pause, refuses_foreign_grants)
{
	struct control c = { 0 };

	cr_assert_not(send_to(1));
	rig_pass(1000);
	cr_assert(take_control(1, &c));
	c.kind = GRANT;
	c.count = 100 * COST;
	c.nonce++;
	give(1, c);
	c.nonce--;
	c.stamp = e->now + 1000 * MS;
	give(1, c);
	c.stamp = e->now - 600 * MS;
	give(1, c);
	rig_pass(1000);
	cr_assert_not(send_to(1));
	cr_assert_eq(rig_ngot, 0, "a control frame was delivered");
}

Test(eth_pause, broadcast_waits_for_all)
{
	cr_assert_not(rig_send(everyone, 100, 1));
	grant(1, 10);
	cr_assert_not(rig_send(everyone, 100, 1));
	grant(2, 10);
	cr_assert(rig_send(everyone, 100, 1));
	rig_pass(1000);
	cr_assert_eq(rig_take(1), 100);
	cr_assert_eq(rig_take(2), 100);
	STAT(eth_tx_frames, 1);
	STAT(eth_tx_copies, 2);
}

/* ---- the port receives ---- */

static struct control request(unsigned host, uint64_t sent)
{
	return (struct control){ REQUEST, 0x1111 * host, e->now, sent };
}

/* Sends a request and returns the limit of the answer. Earlier packets arrive first. */
static uint64_t ask(unsigned host, uint64_t sent)
{
	struct control c = { 0 };
	uint64_t now = e->now;

	give(host, request(host, sent));
	for (int i = 0; i < 300; i++) {
		rig_pass(1000);
		while (take_control(host, &c)) {
			cr_assert_eq(c.kind, GRANT);
			cr_assert_eq(c.nonce, 0x1111 * host);
			if (c.stamp == now)
				return c.count;
		}
	}
	cr_assert_fail("no answer");
	return 0;
}

Test(eth_pause, grants_within_window)
{
	uint64_t window = e->eth->window, a = ask(1, 0), b, c;

	cr_assert_eq(ask(1, COST), a, "raised, although little was used");
	b = ask(2, 1000000) - 1000000;
	c = ask(3, 0);
	cr_assert(a >= window / 4 && a <= window / 2);
	cr_assert(b >= window / 4 && b <= window / 2);
	cr_assert_leq(a - COST + b + c, window);
	cr_assert_eq(ask(1, COST), a);
}

static unsigned fill(unsigned host, uint64_t *sent, uint64_t limit, uint32_t len)
{
	uint64_t cost = 2 * (len + 56ull) + 1024;
	uint8_t mac[6];
	unsigned n;

	mac_of(host, mac);
	for (n = 0; *sent + cost <= limit; n++) {
		rig_from(host, mac, len, (uint8_t)n);
		*sent += cost;
	}
	return n;
}

/* The socket buffer holds all that was granted, with small frames and large ones. */
static void overflow(uint32_t len)
{
	uint64_t sent[4] = { 0 }, limit;
	unsigned n;

	for (int round = 0; round < 6; round++) {
		n = rig_ngot = 0;
		for (unsigned host = 1; host < 4; host++) {
			limit = ask(host, sent[host]);
			n += fill(host, &sent[host], limit, len);
		}
		for (int i = 0; i < 200; i++)
			rig_pass(1000);
		cr_assert(n && rig_ngot == n);
	}
	sn_eth_close(e);
	STAT(eth_rx_missed, 0);
}

Test(eth_pause, small_frames_fit)
{
	overflow(60);
}

Test(eth_pause, large_frames_fit)
{
	overflow(SN_ETH_FRAME_MAX);
}

/* The default buffer of Linux, without privilege. */
static void small_buffer(void)
{
	int size = 212992 / 2;

	setsockopt(e->eth->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	sn_pause_open(e);
	cr_assert_leq(e->eth->window, 212992 / 2);
}

Test(eth_pause, small_frames_fit_small_buffer)
{
	small_buffer();
	overflow(60);
}

Test(eth_pause, large_frames_fit_small_buffer)
{
	small_buffer();
	overflow(SN_ETH_FRAME_MAX);
}

Test(eth_pause, holds_frames)
{
	uint64_t sent = 0, limit;
	struct control c;
	unsigned n, i;

	rig_full = true;
	limit = ask(1, 0);
	n = fill(1, &sent, limit, 100);
	for (i = 0; i < 100; i++)
		rig_pass(1 * MS);
	cr_assert_eq(rig_ngot, 0);
	STAT(eth_held, 1);
	cr_assert_eq(e->eth->waiting.n, n);
	cr_assert(sn_eth_busy(e));
	cr_assert_eq(ask(1, sent), limit, "no room");
	rig_pass(3000 * MS);
	cr_assert_leq(ask(1, sent), limit, "no room after any time");
	rig_full = false;
	rig_pass(1000);
	cr_assert_eq(rig_ngot, n);
	cr_assert(take_control(1, &c), "a grant without a further request");
	cr_assert_gt(c.count, limit);
	for (i = 0; i < n; i++)
		cr_assert_eq(rig_got[i].data[14], (uint8_t)(14 * 7 + 100 + i));
	STAT(eth_rx_missed, 0);
}

/* Lost frames do not use up the limit. */
Test(eth_pause, survives_loss)
{
	uint64_t sent = 0, limit;

	for (int i = 0; i < 1000; i++) {
		limit = ask(1, sent);
		cr_assert_geq(limit, sent + 100 * COST);
		sent = limit;
	}
}

/* Frames that arrive twice do not raise the limit forever. */
Test(eth_pause, survives_duplicates)
{
	uint64_t sent = 0, twice, limit;

	for (int i = 0; i < 20; i++) {
		limit = ask(1, sent);
		cr_assert_leq(limit, sent + e->eth->window);
		twice = sent;
		fill(1, &twice, limit, 1000);
		fill(1, &sent, limit, 1000);
		for (int k = 0; k < 200; k++)
			rig_pass(1000);
		rig_ngot = 0;
	}
}

Test(eth_pause, host_restarts)
{
	uint64_t sent = 1ull << 40;
	struct control c;

	fill(1, &sent, ask(1, sent), 100);
	ask(1, sent);
	c = request(1, 0);
	c.nonce = 99;
	give(1, c);
	rig_pass(1000);
	cr_assert(take_control(1, &c));
	cr_assert_eq(c.nonce, 99);
	cr_assert(c.count >= 100 * COST && c.count <= e->eth->window);
}

/* What a host does not use is available to others later, but not before it expires. */
Test(eth_pause, takes_back_limits)
{
	uint64_t left = e->eth->window, got;
	struct sn_eth_host *h;
	int i;

	for (i = 0; i < 60; i++) { /* hosts that take all, and never send */
		struct in6_addr ip = rig_addr(3);

		ip.s6_addr[13] = 222;
		ip.s6_addr[15] = (uint8_t)(i + 1);
		h = sn_eth_host(e, &ip);
		h->rx.active = true;
		h->rx.until = e->now + 1000 * MS;
		h->rx.granted = e->eth->window / 60;
		left -= h->rx.granted;
	}
	got = ask(1, 0);
	cr_assert_leq(got, left);
	rig_pass(1000 * MS);
	cr_assert_geq(ask(1, 0), e->eth->window / 4);
}

/* A limit is raised only if any frame fits, and without a further request once there is room. */
Test(eth_pause, grants_when_others_have_sent)
{
	struct in6_addr ip = rig_addr(1);
	struct sn_eth_host *h = sn_eth_host(e, &ip);
	uint64_t sent = 0;
	struct control c;

	small_buffer();
	h->rx.active = true;
	h->rx.until = e->now + 1000 * MS;
	h->rx.granted = e->eth->window - 12000;
	cr_assert_eq(ask(2, 0), 0);
	fill(1, &sent, h->rx.granted, 1000);
	for (int i = 0; i < 10; i++)
		rig_pass(1000);
	cr_assert(take_control(2, &c));
	cr_assert_geq(c.count, 2 * SN_ETH_FRAME_MAX);
}

/* The frames of a host that never asked are not held: it could send without end. */
Test(eth_pause, does_not_hold_others)
{
	uint64_t sent = 0;

	fill(2, &sent, 5 * COST, 100);
	rig_pass(1000);
	cr_assert_eq(rig_ngot, 5);
	cr_assert_not(rig_got[0].may_wait);
	fill(1, &sent, ask(1, 0), 100);
	rig_pass(1000);
	cr_assert(rig_got[5].may_wait);
}

/* A port without --eth-pause answers, so that its socket does not overflow, but holds nothing. */
Test(eth_pause, answers_without_option)
{
	uint64_t sent = 0, limit;

	sn_dev->cfg.eth_pause = false;
	limit = ask(1, 0);
	cr_assert_geq(limit, 10 * COST);
	fill(1, &sent, limit, 100);
	rig_pass(1000);
	cr_assert_gt(rig_ngot, 0);
	cr_assert_not(rig_got[0].may_wait);
}

Test(eth_pause, local_frames_wait)
{
	uint8_t own[6];
	unsigned n;

	mac_of(0, own);
	rig_wants = rig_full = true;
	for (n = 0; rig_send(own, 100, (uint8_t)n); n++) {
		cr_assert_lt(n, SN_ETH_LOCAL_MAX);
		rig_pass(1000);
	}
	cr_assert_eq(rig_ngot, 0);
	STAT(eth_held, 1);
	rig_full = false;
	for (unsigned i = 0; i < n; i++)
		rig_pass(1000);
	cr_assert_eq(rig_ngot, n);
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(rig_got[i].data[14], (uint8_t)(14 * 7 + 100 + i));
	cr_assert(rig_send(own, 100, 1));
	STAT(eth_tx_failed, 0);
}

/* Requests and grants with any content change nothing else, and crash nothing. */
Test(eth_pause, hostile_control_frames)
{
	uint64_t v = 12345;

	for (int i = 0; i < 20000; i++) {
		struct control c;

		v = v * 6364136223846793005ull + 1442695040888963407ull;
		c.kind = 1 + (v >> 60 & 1);
		c.nonce = v >> 58 & 1 ? e->eth->nonce : v;
		c.stamp = v >> 57 & 1 ? e->now : v << 7;
		c.count = v >> 56 & 1 ? v : v >> 40;
		give(1 + (v >> 33) % 3, c);
		if (v >> 32 & 1)
			fill(1 + (v >> 31 & 1), &(uint64_t){ 0 }, COST, 100);
		rig_full = v >> 30 & 1;
		if (v >> 29 & 1) {
			rig_pass(v >> 44);
			rig_ngot = 0;
		}
		while (rig_take(1 + i % 3) >= 0)
			;
	}
	cr_assert_leq(e->eth->waiting.n, SN_ETH_FRAMES);
}
