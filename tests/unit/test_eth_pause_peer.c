/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * --eth-pause between processes of one machine: a host whose process lives may be silent
 * for any time, frames to one that has ended fail, and the NIC's own absence is no silence
 * of others.
 */
#include <errno.h>

#include "eth_pause_rig.h"
#include "peer_rig.h"

TestSuite(eth_pause_peer, .init = pause_rig, .fini = rig_close, .timeout = 60);

/* The process of host 1 lives. Lets time pass while a frame waits for it; runs: its NIC runs, but
 * does not answer requests. Returns when the frame waits no more, or `ns` have passed. */
static void wait_for_process(int fd, bool runs, uint64_t ns)
{
	for (uint64_t end = e->now + ns; e->now < end && !send_to(1) && !rig_sent;) {
		rig_pass(5 * MS);
		if (runs)
			peer_answers(fd);
	}
}

Test(eth_pause_peer, waits_for_starved_process)
{
	int fd = peer_lives(rig_ip[1]);

	wait_for_process(fd, false, 1000000 * MS);
	cr_assert_eq(rig_sent, 0);
	STAT(eth_tx_frames, 0);
	wait_for_process(fd, true, 10000 * MS);
	cr_assert_eq(rig_sent, 1, "waits for a process without an Ethernet port");
	STAT(eth_tx_failed, 1);
	close(fd);
}

Test(eth_pause_peer, process_without_port_is_given_up)
{
	int fd = peer_lives(rig_ip[1]);

	wait_for_process(fd, true, 4900 * MS);
	cr_assert_eq(rig_sent, 0);
	wait_for_process(fd, true, 300 * MS);
	cr_assert_eq(rig_sent, 1);
	STAT(eth_tx_failed, 1);
	close(fd);
}

Test(eth_pause_peer, card_timers_ignore_the_process)
{
	int fd = peer_lives(rig_ip[1]);

	sn_dev->cfg.card_timers = true;
	wait_for_process(fd, false, 5100 * MS);
	cr_assert_eq(rig_sent, 1);
	STAT(eth_tx_failed, 1);
	close(fd);
}

/* The NIC of the process of host 1 answers requests until it has taken a frame. */
static void take_frame(void)
{
	struct control c;

	do {
		rig_pass(1 * MS);
		while (take_control(1, &c)) {
			c.kind = GRANT;
			c.count = 10 * COST;
			give(1, c);
		}
		rig_pass(1 * MS);
	} while (!send_to(1));
	rig_pass(1000);
	cr_assert_eq(rig_take(1), 100);
}

Test(eth_pause_peer, frame_to_ended_process_fails)
{
	int fd = peer_lives(rig_ip[1]);

	wait_for_process(fd, true, 1000 * MS);
	cr_assert_eq(rig_sent, 0);
	close(fd);
	wait_for_process(fd, false, 200 * MS);
	cr_assert_eq(rig_sent, -EHOSTDOWN);
	cr_assert_not(send_to(1));
	STAT(eth_tx_frames, 0);
	STAT(eth_tx_copies, 0);
	/* another process takes the address, and answers */
	fd = peer_lives(rig_ip[1]);
	rig_pass(200 * MS);
	cr_assert_not(send_to(1));
	take_frame();
	close(fd);
}

Test(eth_pause_peer, broadcast_is_dropped_for_ended_process)
{
	int fd = peer_lives(rig_ip[2]);

	cr_assert_not(rig_send(everyone, 100, 1));
	grant(1, 10);
	cr_assert_not(rig_send(everyone, 100, 1));
	close(fd);
	for (int i = 0; i < 40 && !rig_send(everyone, 100, 1); i++) {
		cr_assert_eq(rig_sent, 0);
		rig_pass(10 * MS);
	}
	rig_pass(1000);
	cr_assert_eq(rig_take(1), 100);
	STAT(eth_tx_frames, 1);
	STAT(eth_tx_copies, 2);
	STAT(eth_tx_failed, 1);
}

/* The process of host 1 closes its port. */
static void leave(int fd)
{
	struct peer_note query, n = { .magic = PEER_MAGIC, .kind = PEER_LEAVE, .pid = PEER_PID };
	const struct in6_addr ip = rig_addr(1);
	struct sockaddr_un from;
	socklen_t len;

	cr_assert(peer_take(fd, &query, &from, &len));
	memcpy(n.ip, &ip, sizeof(n.ip));
	cr_assert_eq(sendto(fd, &n, sizeof(n), 0, (struct sockaddr *)&from, len), sizeof(n));
	rig_pass(5 * MS);
}

Test(eth_pause_peer, frame_to_closed_port_is_dropped)
{
	int fd = peer_lives(rig_ip[1]);
	struct control c;

	wait_for_process(fd, false, 10 * MS);
	cr_assert(take_control(1, &c));
	leave(fd);
	c.kind = GRANT; /* sent before the port was closed */
	give(1, c);
	rig_pass(1 * MS);
	close(fd);
	wait_for_process(-1, false, 200 * MS);
	cr_assert_eq(rig_sent, 1);
	STAT(eth_tx_failed, 1);
}

Test(eth_pause_peer, port_that_opens_again_can_be_killed)
{
	int fd = peer_lives(rig_ip[1]);
	struct control before;

	wait_for_process(fd, false, 10 * MS);
	leave(fd);
	while (take_control(1, &before))
		;
	take_frame();
	while (send_to(1)) /* what it has room for */
		;
	close(fd);
	wait_for_process(-1, false, 1000 * MS);
	cr_assert_eq(rig_sent, -EHOSTDOWN);
}

Test(eth_pause_peer, closing_tells_those_that_send)
{
	const struct control request = { .kind = REQUEST, .stamp = e->now };
	const struct in6_addr own = sn_dev->cfg.ip;
	int sender = peer_lives(rig_ip[1]), other = peer_lives(rig_ip[2]);
	bool left = false;
	struct peer_note n;
	struct sockaddr_un from;
	socklen_t len;

	give(1, request);
	rig_pass(1 * MS);
	sn_eth_close(e);
	while (peer_take(sender, &n, &from, &len))
		left |= n.kind == PEER_LEAVE && !memcmp(n.ip, &own, sizeof(n.ip));
	cr_assert(left);
	while (peer_take(other, &n, &from, &len))
		cr_assert_eq(n.kind, PEER_QUERY);
	close(sender);
	close(other);
}

Test(eth_pause_peer, own_absence_does_not_count)
{
	for (int i = 0; i < 1000; i++) {
		cr_assert_not(send_to(1));
		e->absent += 90 * MS;
		rig_pass(91 * MS);
	}
	STAT(eth_tx_failed, 0);
}
