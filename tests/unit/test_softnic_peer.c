/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Retries of a reliable connection to a NIC of another process, which the test plays by
 * the socket of this NIC (peer_rig.h): they run out if that NIC runs and does not answer,
 * but not if it gets no processor. The clock is e->now, which only the test advances.
 */
#include <arpa/inet.h>

#include "engine_fake.h"
#include "peer_rig.h"

#define MS	  1000000ull
#define STEP	  (5 * MS)
#define SECOND	  (1000 * MS)
#define TIMEOUT	  14 /* code of 67 ms */
#define LONG_TIME 24 /* code of 69 s */

static struct sn_eng *e;
static struct fake_qp a;
static char own[16], other[16];
static int fd = -1; /* the other NIC's socket; -1: it does not exist */
static uint8_t mem[64];
static bool card_timers;

static void rig(uint8_t ack_timeout, bool lives)
{
	struct fake_wqe w = { .opcode = SN_OP_WRITE, .fm = 0x08, .nsge = 1 };
	uint32_t key;

	fake_ip(own, 1);
	fake_ip(other, 2);
	fake_open_still(own);
	sn_dev->cfg.card_timers = card_timers;
	e = sn_dev->eng;
	e->now = SECOND;
	memset(&sn_dev->stats, 0, sizeof(sn_dev->stats));
	if (lives)
		fd = peer_lives(other);
	key = fake_mr(mem, sizeof(mem), 0xf);
	fake_qp_init(&a, 0x101, 1);
	a.qp.ack_timeout = ack_timeout;
	fake_connect(&a, other, 0x102);
	w.sge[0].addr = mem;
	w.sge[0].len = sizeof(mem);
	w.sge[0].lkey = key;
	fake_post(&a, &w);
	sn_eng_pass(e);
	cr_assert_eq(sn_dev->stats.wqes, 1);
}

static void rig_close(void)
{
	if (fd >= 0)
		close(fd);
	fake_qp_fini(&a);
	fake_close();
	memset(&sn_dev->cfg, 0, sizeof(sn_dev->cfg));
}

TestSuite(softnic_peer, .fini = rig_close, .timeout = 60);

/* Lets time pass until it is over or the queue pair fails. Returns the time that passed. */
static uint64_t pass(uint64_t ns, bool answers)
{
	uint64_t start = e->now;

	while (e->now - start < ns && a.qp.state == SN_QPS_RTS) {
		e->now += STEP;
		sn_eng_pass(e);
		if (answers)
			peer_answers(fd);
	}
	return e->now - start;
}

static void expect_retry_error(void)
{
	uint8_t cqe[64];

	cr_assert(fake_poll(&a, false, cqe, 0));
	cr_assert_eq(cqe[55], SN_SYND_RETRY);
	cr_assert_eq(a.qp.state, SN_QPS_ERR);
}

Test(softnic_peer, retries_wait_for_a_starved_peer)
{
	rig(TIMEOUT, true);
	pass(200 * SECOND, false);
	cr_assert_eq(a.qp.state, SN_QPS_RTS);
	cr_assert_eq(sn_dev->stats.timeouts, 0);
	/* it runs, and the destination does not answer */
	cr_assert_lt(pass(10 * SECOND, true), 2 * SECOND);
	cr_assert_eq(sn_dev->stats.timeouts, 8);
	expect_retry_error();
}

/* A NIC that was stopped for long has few queries to answer. */
Test(softnic_peer, few_queries_wait_at_a_stopped_peer)
{
	rig(TIMEOUT, true);
	pass(100 * SECOND, false);
	cr_assert_leq(peer_answers(fd), 8);
}

Test(softnic_peer, retries_run_out_if_the_peer_runs)
{
	rig(TIMEOUT, true);
	cr_assert_lt(pass(10 * SECOND, true), SECOND);
	cr_assert_eq(sn_dev->stats.timeouts, 8);
	expect_retry_error();
}

Test(softnic_peer, retries_to_another_host_run_out_by_time)
{
	rig(TIMEOUT, false);
	cr_assert_lt(pass(10 * SECOND, false), SECOND);
	cr_assert_eq(sn_dev->stats.timeouts, 8);
	expect_retry_error();
}

Test(softnic_peer, card_timers_ignore_the_peer)
{
	card_timers = true;
	rig(TIMEOUT, true);
	cr_assert_lt(pass(10 * SECOND, false), SECOND);
	cr_assert_eq(peer_answers(fd), 0);
	expect_retry_error();
}

Test(softnic_peer, end_of_the_peer_fails_the_qp_before_its_timeout)
{
	rig(LONG_TIME, true);
	pass(SECOND, true);
	cr_assert_eq(a.qp.state, SN_QPS_RTS);
	close(fd);
	fd = -1;
	cr_assert_lt(pass(10 * SECOND, false), 200 * MS);
	cr_assert_eq(sn_dev->stats.timeouts, 0);
	expect_retry_error();
}

/* Another process may take the address. It does not know the queue pair. */
Test(softnic_peer, peer_restarts)
{
	rig(TIMEOUT, true);
	pass(SECOND, false);
	close(fd);
	pass(STEP, false);
	fd = peer_lives(other);
	pass(10 * SECOND, false);
	cr_assert_eq(a.qp.state, SN_QPS_RTS);
	pass(10 * SECOND, true);
	expect_retry_error();
}

Test(softnic_peer, own_absence_does_not_count)
{
	rig(TIMEOUT, false);
	for (int i = 0; i < 100; i++) {
		e->absent += 10 * SECOND;
		e->now += 10 * SECOND;
		sn_eng_pass(e);
	}
	cr_assert_eq(sn_dev->stats.timeouts, 0);
	cr_assert_eq(a.qp.state, SN_QPS_RTS);
}

static uint64_t time_now;

static uint64_t fake_clock(void)
{
	return time_now;
}

Test(softnic_peer, late_pass_is_an_absence)
{
	rig(TIMEOUT, false);
	sn_clock = fake_clock;
	time_now = 20 * SECOND;
	sn_eng_clock(e, time_now - 9 * MS);
	cr_assert_eq(sn_awake(e), time_now);
	sn_eng_clock(e, time_now - 11 * MS);
	cr_assert_eq(sn_awake(e), time_now - 11 * MS);
	sn_eng_clock(e, UINT64_MAX);
	cr_assert_eq(sn_awake(e), time_now - 11 * MS);
}

/* ---- the NIC is the peer of another one ---- */

static void ask_nic(uint64_t stamp)
{
	struct peer_note n = { PEER_MAGIC, PEER_QUERY, stamp, { 0 }, PEER_PID };
	struct sockaddr_un to;
	socklen_t len = peer_name(own, &to);

	cr_assert_eq(sendto(fd, &n, sizeof(n), 0, (struct sockaddr *)&to, len), sizeof(n));
}

static bool answered(uint64_t stamp)
{
	struct sockaddr_un from;
	struct peer_note n;
	socklen_t len;

	while (peer_take(fd, &n, &from, &len)) {
		if (n.kind == PEER_QUERY)
			continue;
		cr_assert_eq(n.stamp, stamp);
		cr_assert_eq(n.pid, getpid());
		return true;
	}
	return false;
}

Test(softnic_peer, query_is_answered)
{
	rig(LONG_TIME, true);
	ask_nic(77);
	cr_assert_not(answered(77));
	e->now += 2 * MS;
	sn_eng_pass(e);
	cr_assert(answered(77));
}

/* The answer must not overtake packets that arrived before the query. */
Test(softnic_peer, query_is_answered_after_earlier_packets)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(4791) };
	int udp = socket(AF_INET, SOCK_DGRAM, 0);

	rig(LONG_TIME, true);
	inet_pton(AF_INET, own, &to.sin_addr);
	for (unsigned i = 0; i < 2 * SN_RXQ + 1; i++)
		cr_assert_eq(sendto(udp, mem, 60, 0, (struct sockaddr *)&to, sizeof(to)), 60);
	close(udp);
	ask_nic(77);
	e->now += 2 * MS;
	sn_eng_pass(e);
	cr_assert_not(answered(77));
	sn_eng_pass(e);
	cr_assert_not(answered(77));
	sn_eng_pass(e);
	cr_assert(answered(77));
	cr_assert_eq(sn_dev->stats.rx_packets, 2 * SN_RXQ + 1);
}

Test(softnic_peer, garbage_is_ignored)
{
	struct sockaddr_un to;
	socklen_t len;

	rig(LONG_TIME, true);
	len = peer_name(own, &to);
	for (size_t n = 0; n < sizeof(mem); n++) {
		cr_assert_eq(sendto(fd, mem, n, 0, (struct sockaddr *)&to, len), (ssize_t)n);
		e->now += 2 * MS;
		sn_eng_pass(e);
	}
	cr_assert_not(answered(0));
	ask_nic(77);
	e->now += 2 * MS;
	sn_eng_pass(e);
	cr_assert(answered(77));
}
