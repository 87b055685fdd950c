/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Frames of raw Ethernet on the wire: the VXLAN header in both directions, what is
 * dropped, delivery to the own process, injected faults, and the counters, which account
 * for each copy of each frame.
 */
#include <errno.h>
#include <fcntl.h>

#include "eth_wire_rig.h"

TestSuite(eth_wire, .init = rig_open, .fini = rig_close, .timeout = 60);

static const uint8_t everyone[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
static const uint8_t stranger[6] = { 0x52, 0x54, 0, 1, 2, 3 };

/* The counters of what was sent add up. The test has received `arrived` frames before. */
static void account(unsigned arrived)
{
	const struct sn_stats *s = &sn_dev->stats;
	unsigned i;

	sn_eth_close(e);
	for (i = 1; i < RIG_HOSTS; i++)
		while (rig_take(i) >= 0)
			arrived++;
	for (i = 0; i < rig_ngot; i++)
		arrived += rig_got[i].local;
	cr_assert_eq(s->eth_tx_copies + s->eth_tx_duplicated,
		     arrived + s->eth_tx_lost + s->eth_tx_failed + s->eth_fcs_errors);
}

Test(eth_wire, sends_vxlan)
{
	static const uint8_t head[8] = { 0x08, 0, 0, 0, 0x12, 0x34, 0x56, 0 };
	static const uint32_t lens[] = { 14, 60, 1514, 9000, SN_ETH_FRAME_MAX };
	uint8_t mac[6], own[6], want[SN_ETH_FRAME_MAX];

	rig_start();
	mac_of(1, mac);
	mac_of(0, own);
	for (unsigned i = 0; i < 5; i++) {
		cr_assert(rig_send(mac, lens[i], 3));
		rig_pass(1000);
		cr_assert_eq(rig_take(1), (int)lens[i]);
		rig_fill(want, lens[i], mac, own, 3);
		cr_assert_arr_eq(rig_packet, head, 8);
		cr_assert_arr_eq(rig_packet + 8, want, lens[i]);
	}
	cr_assert_eq(rig_take(2), -1);
	STAT(eth_tx_frames, 5);
	STAT(eth_tx_copies, 5);
	STAT(eth_tx_bytes, 14 + 60 + 1514 + 9000 + SN_ETH_FRAME_MAX);
	account(5);
}

/* Frames of one length to one host are one message for the kernel. Sends some of these and others,
 * which must arrive one by one, in order. */
static void send_runs(void)
{
	static const struct {
		unsigned host;
		uint32_t len;
	} f[] = { { 1, 100 },  { 1, 100 },  { 1, 60 },	 { 1, 60 },   { 1, 100 },
		  { 2, 100 },  { 2, 100 },  { 1, 100 },	 { 1, 60 },   { 1, 100 },
		  { 3, 9000 }, { 3, 9000 }, { 3, 9000 }, { 3, 9000 }, { 3, 9000 },
		  { 3, 9000 }, { 3, 9000 }, { 3, 9000 }, { 3, 14 },   { 1, 14 } };
	uint8_t mac[6], own[6], want[SN_ETH_FRAME_MAX];
	unsigned i, host;

	mac_of(0, own);
	for (i = 0; i < sizeof(f) / sizeof(f[0]); i++) {
		mac_of(f[i].host, mac);
		cr_assert(rig_send(mac, f[i].len, (uint8_t)i));
	}
	rig_pass(1000);
	for (host = 1; host < RIG_HOSTS; host++) {
		mac_of(host, mac);
		for (i = 0; i < sizeof(f) / sizeof(f[0]); i++) {
			if (f[i].host != host)
				continue;
			cr_assert_eq(rig_take(host), (int)f[i].len, "frame %u", i);
			rig_fill(want, f[i].len, mac, own, (uint8_t)i);
			cr_assert_arr_eq(rig_packet + 8, want, f[i].len);
		}
		cr_assert_eq(rig_take(host), -1);
	}
	STAT(eth_tx_failed, 0);
}

Test(eth_wire, sends_runs)
{
	rig_start();
	send_runs();
	cr_assert_geq(e->eth->run_max, 9008, "the kernel refuses runs");
}

/* A socket without checksums does not permit runs. */
Test(eth_wire, sends_without_runs)
{
	int on = 1;

	rig_start();
	cr_assert_eq(setsockopt(e->eth->fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)), 0);
	send_runs();
	cr_assert_lt(e->eth->run_max, 108);
}

Test(eth_wire, receives_vxlan)
{
	uint8_t own[6], want[SN_ETH_FRAME_MAX];

	rig_start();
	mac_of(0, own);
	rig_from(1, stranger, 14, 1);
	rig_from(2, stranger, SN_ETH_FRAME_MAX, 2);
	rig_pass(1000);
	cr_assert_eq(rig_ngot, 2);
	cr_assert_eq(rig_got[0].len, 14);
	cr_assert_eq(rig_got[1].len, SN_ETH_FRAME_MAX);
	rig_fill(want, SN_ETH_FRAME_MAX, own, stranger, 2);
	cr_assert_arr_eq(rig_got[1].data, want, SN_ETH_FRAME_MAX);
	cr_assert_not(rig_got[0].local);
	cr_assert_not(rig_got[0].may_wait);
}

Test(eth_wire, checks_headers)
{
	uint8_t p[8 + SN_ETH_FRAME_MAX + 1] = { 0x08, 0, 0, 0, 0x12, 0x34, 0x56 };

	rig_start();
	p[0] = 0; /* flag I is missing */
	rig_raw(1, p, 80);
	p[0] = 0x08;
	rig_raw(1, p, 0);
	rig_raw(1, p, 7);
	rig_raw(1, p, 8 + 13);
	rig_raw(1, p, sizeof(p)); /* too long */
	rig_pass(1000);
	STAT(wire_malformed, 4);
	STAT(eth_malformed, 1); /* a frame of 13 bytes */
	cr_assert_eq(rig_ngot, 0);
	p[6]++;
	rig_raw(1, p, 80);
	rig_pass(1000);
	STAT(eth_other_vni, 1);
	p[6]--;
	p[0] = 0xff; /* unknown flags are ignored, and so are the bits that they define */
	p[1] = p[7] = 0xff;
	rig_raw(1, p, 80);
	rig_pass(1000);
	cr_assert_eq(rig_ngot, 1);
}

Test(eth_wire, checks_fcs)
{
	uint8_t p[80] = { 0x08, 0, 0, 0, 0x12, 0x34, 0x56 };
	uint32_t crc = (uint32_t)crc32(0, p + 8, 72);

	rig_start();
	sn_put32(p, 0x08000000 | crc >> 8);
	p[7] = (uint8_t)crc;
	rig_raw(1, p, 80);
	rig_pass(1000);
	cr_assert_eq(rig_ngot, 1);
	for (unsigned bit = 0; bit < 8 * 72; bit += 5) {
		p[8 + bit / 8] ^= 1 << bit % 8;
		rig_raw(1, p, 80);
		p[8 + bit / 8] ^= 1 << bit % 8;
	}
	for (int i = 0; i < 20; i++)
		rig_pass(1000);
	cr_assert_eq(rig_ngot, 1);
	STAT(eth_fcs_errors, 8 * 72 / 5 + 1);
}

Test(eth_wire, delivers_locally)
{
	uint8_t own[6], mac[6];

	rig_wants = true;
	rig_start();
	mac_of(0, own);
	mac_of(1, mac);
	cr_assert(rig_send(own, 60, 1)); /* to this process only */
	cr_assert(sn_eth_busy(e));
	cr_assert(rig_send(mac, 60, 2)); /* to both */
	rig_pass(1000);
	cr_assert_eq(rig_ngot, 2);
	cr_assert(rig_got[0].local && rig_got[1].local);
	STAT(eth_tx_frames, 2);
	STAT(eth_tx_copies, 3);
	rig_wants = false;
	cr_assert(rig_send(own, 60, 3));
	cr_assert(rig_send(everyone, 60, 3)); /* no other host is known but 1, which never sent */
	rig_pass(1000);
	STAT(eth_no_peer, 2);
	cr_assert_eq(rig_ngot, 2);
	cr_assert_not(sn_eth_busy(e));
	cr_assert_eq(rig_take(1), 60);
	cr_assert_eq(rig_take(1), -1);
}

/* The NIC's thread sleeps while no frame waits, but not beyond the end of a WAIT on time. */
Test(eth_wire, sleeps)
{
	struct fake_qp sq;
	uint8_t own[6];

	rig_wants = true;
	rig_start();
	e->now += 1000000000;
	cr_assert_eq(sn_wait_time(e), -1);
	mac_of(0, own);
	cr_assert(rig_send(own, 60, 1));
	cr_assert(sn_wait_time(e) > 0 && sn_wait_time(e) <= 100000);
	rig_pass(1000);
	e->now += 1000000000;
	cr_assert_eq(sn_wait_time(e), -1);
	fake_qp_init_as(&sq, SN_QPT_SQ, 0x77, 1);
	cr_assert_gt(sn_wait_time(e), 100000);
	rig_due = e->now + 1234;
	cr_assert_eq(sn_wait_time(e), 1234);
	rig_due = e->now + 1000000000;
	cr_assert_leq(sn_wait_time(e), 2000000);
	rig_due = e->now - 1;
	cr_assert_eq(sn_wait_time(e), 0);
	fake_qp_fini(&sq);
}

/* A process that sends to itself faster than it receives loses frames, and counts them. */
Test(eth_wire, bounds_local_frames)
{
	uint8_t own[6];

	rig_wants = true;
	rig_start();
	mac_of(0, own);
	for (unsigned i = 0; i < SN_ETH_LOCAL_MAX + 100; i++)
		cr_assert(rig_send(own, 60, (uint8_t)i));
	for (unsigned i = 0; i < SN_ETH_LOCAL_MAX; i++)
		rig_pass(1000);
	cr_assert_eq(rig_ngot, SN_ETH_LOCAL_MAX);
	STAT(eth_tx_failed, 100);
	account(0);
}

Test(eth_wire, bounds_memory)
{
	struct sn_frame *f, *all = NULL;
	unsigned n = 0;

	rig_start();
	while ((f = sn_frame_get(e))) {
		f->next = all;
		all = f;
		n++;
	}
	cr_assert_eq(n, SN_ETH_FRAMES - SN_ETH_BATCH);
	rig_from(1, stranger, 100, 1);
	rig_pass(1000);
	cr_assert_eq(rig_ngot, 0, "a frame was received without memory");
	while ((f = all)) {
		all = f->next;
		sn_frame_put(e, f);
	}
	rig_from(1, stranger, 100, 1);
	rig_pass(1000);
	cr_assert_eq(rig_ngot, 1);
	STAT(eth_rx_missed, 1);
}

static void send_many(unsigned n, unsigned host)
{
	uint8_t mac[6];

	mac_of(host, mac);
	for (unsigned i = 0; i < n; i++) {
		cr_assert(rig_send(mac, 100, (uint8_t)i));
		if (i % 16 == 0)
			rig_pass(1000);
	}
	rig_pass(1000);
}

Test(eth_wire, loses)
{
	sn_dev->cfg.loss_ppm = 300000;
	rig_start();
	send_many(200, 1);
	cr_assert(sn_dev->stats.eth_tx_lost > 30 && sn_dev->stats.eth_tx_lost < 100);
	account(0);
}

Test(eth_wire, duplicates)
{
	sn_dev->cfg.dup_ppm = 300000;
	rig_start();
	send_many(100, 1);
	cr_assert(sn_dev->stats.eth_tx_duplicated > 15 && sn_dev->stats.eth_tx_duplicated < 50);
	account(0);
}

Test(eth_wire, reorders)
{
	unsigned late = 0, n;
	uint8_t last = 0;

	sn_dev->cfg.reorder_ppm = 300000;
	rig_start();
	send_many(100, 1);
	rig_pass(2000000); /* a frame without a successor */
	for (n = 0; rig_take(1) >= 0; n++) {
		late += n && rig_packet[8 + 14] < last;
		last = rig_packet[8 + 14];
	}
	cr_assert_eq(n, 100);
	cr_assert_gt(late, 10);
}

Test(eth_wire, delays)
{
	uint8_t mac[6];

	sn_dev->cfg.delay_us = 1000;
	rig_start();
	mac_of(1, mac);
	cr_assert(rig_send(mac, 100, 1));
	rig_pass(999000);
	cr_assert(sn_eth_busy(e));
	cr_assert_eq(rig_take(1), -1);
	rig_pass(1000);
	cr_assert_eq(rig_take(1), 100);
	cr_assert(rig_send(mac, 100, 1));
	account(1); /* the close sends what waits */
}

/* The receiver, which is the same code, must find each error. */
Test(eth_wire, corrupts)
{
	uint8_t copy[200][8 + 100], mac[6];
	unsigned n;

	sn_dev->cfg.corrupt_ppm = 300000;
	rig_start();
	send_many(200, 1);
	for (n = 0; n < 200 && rig_take(1) == 100; n++)
		memcpy(copy[n], rig_packet, sizeof(copy[n]));
	cr_assert_eq(n, 200);
	for (unsigned i = 0; i < n; i++) {
		rig_raw(2, copy[i], sizeof(copy[i]));
		rig_pass(1000);
	}
	cr_assert_eq(sn_dev->stats.eth_fcs_errors, sn_dev->stats.faults_injected);
	cr_assert_gt(sn_dev->stats.faults_injected, 30);
	cr_assert_eq(rig_ngot, 200 - sn_dev->stats.faults_injected);
	mac_of(0, mac);
	for (unsigned i = 0; i < rig_ngot; i++) {
		uint8_t want[100];

		mac_of(1, want);
		cr_assert_arr_eq(rig_got[i].data, want, 6);
		rig_fill(want, 100, rig_got[i].data, mac,
			 (uint8_t)(rig_got[i].data[14] - 14 * 7 - 100));
		cr_assert_arr_eq(rig_got[i].data, want, 100);
	}
}

Test(eth_wire, corrupts_local_frames)
{
	uint8_t own[6];

	sn_dev->cfg.corrupt_ppm = 1000000;
	rig_wants = true;
	rig_start();
	mac_of(0, own);
	cr_assert(rig_send(own, 60, 1));
	rig_pass(1000);
	cr_assert_eq(rig_ngot, 0);
	STAT(eth_fcs_errors, 1);
}

/* The kernel counts the packets that its socket buffer cannot hold. */
Test(eth_wire, counts_overruns)
{
	int size = 20000;

	rig_start();
	setsockopt(e->eth->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	for (unsigned round = 0; round < 2; round++) { /* the counter is read less often */
		for (unsigned i = 0; i < 1000; i++)
			rig_from(1, stranger, 100, (uint8_t)i);
		for (unsigned i = 0; i < 100; i++)
			rig_pass(1000);
	}
	cr_assert_gt(sn_dev->stats.eth_rx_missed, 0);
	sn_eth_close(e);
	cr_assert_eq(rig_ngot + sn_dev->stats.eth_rx_missed, 2000);
}

/* Frames that the socket holds when it is closed are counted. */
Test(eth_wire, counts_unread)
{
	rig_start();
	for (unsigned i = 0; i < 100; i++)
		rig_from(1, stranger, 100, (uint8_t)i);
	sn_eth_close(e);
	cr_assert_eq(rig_ngot, 0);
	STAT(eth_rx_missed, 100);
}

/* Packets of any content are dropped or delivered. */
Test(eth_wire, hostile_packets)
{
	uint64_t v = 4711;
	uint8_t p[256];

	rig_start();
	for (unsigned i = 0; i < 20000; i++) {
		for (unsigned k = 0; k < sizeof(p); k += 8) {
			v = v * 6364136223846793005ull + 1442695040888963407ull;
			sn_put64(p + k, v);
		}
		if (v >> 63)
			p[0] = 0x08;
		if (v >> 62 & 1)
			sn_put32(p + 4, VNI << 8 | (v >> 48 & 1));
		rig_raw(1 + i % 3, p, (v >> 32) % sizeof(p));
		rig_pass(1000);
		if (rig_ngot > 1000)
			rig_ngot = 0;
	}
	cr_assert(sn_dev->stats.wire_malformed && sn_dev->stats.eth_other_vni);
	cr_assert(sn_dev->stats.eth_fcs_errors && sn_dev->stats.eth_malformed);
}

/* Frames that the kernel refuses are counted. The queue of a full socket is bounded. */
Test(eth_wire, counts_failures)
{
	uint8_t far[6] = { 2, 0, 240, 1, 2, 3 }, mac[6];

	rig_start();
	cr_assert(rig_send(far, 60, 1)); /* 240.1.2.3 is not a unicast address: unknown */
	rig_pass(1000);
	STAT(eth_no_peer, 1);
	close(e->eth->fd);
	e->eth->fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	mac_of(1, mac);
	for (unsigned i = 0; i < 100; i++)
		cr_assert(rig_send(mac, 60, 1));
	rig_pass(1000);
	STAT(eth_tx_failed, 100);
	account(0);
}

Test(eth_wire, captures)
{
	static const uint8_t udp4[] = { 0x45, 0, 0, 20 + 16 + 60, 0, 0, 0, 0, 64, 17, 0, 0 };
	uint8_t file[4096], mac[6];
	FILE *f = tmpfile();
	size_t n;

	e->pcap = f;
	rig_start();
	mac_of(1, mac);
	cr_assert(rig_send(mac, 60, 1));
	rig_from(2, stranger, 61, 1);
	rig_pass(1000);
	rewind(f);
	n = fread(file, 1, sizeof(file), f);
	cr_assert_eq(n, 16 + 36 + 60 + 16 + 36 + 61);
	cr_assert_arr_eq(file + 16, udp4, sizeof(udp4));
	cr_assert_arr_eq(file + 16 + 12, rig_addr(0).s6_addr + 12, 4);
	cr_assert_arr_eq(file + 16 + 16, rig_addr(1).s6_addr + 12, 4);
	cr_assert_eq(sn_get32(file + 16 + 20), 4789u << 16 | 4789);
	cr_assert_eq(file[16 + 28], 0x08);
	cr_assert_arr_eq(file + 16 + 36, mac, 6);
	cr_assert_arr_eq(file + 112 + 16 + 12, rig_addr(2).s6_addr + 12, 4);
	cr_assert_arr_eq(file + 112 + 16 + 16, rig_addr(0).s6_addr + 12, 4);
}

/* With --vlan the packets of the capture have Ethernet headers. */
Test(eth_wire, captures_with_ethernet_headers)
{
	uint8_t file[4096], mac[6], own[6];
	FILE *f = tmpfile();

	e->pcap = f;
	sn_dev->cfg.vlan = 5;
	rig_start();
	mac_of(0, own);
	mac_of(1, mac);
	cr_assert(rig_send(mac, 60, 1));
	rig_pass(1000);
	rewind(f);
	cr_assert_eq(fread(file, 1, sizeof(file), f), 16 + 14 + 36 + 60);
	cr_assert_eq(sn_get32(file + 8), be32toh(14 + 36 + 60));
	cr_assert_arr_eq(file + 16, mac, 6);
	cr_assert_arr_eq(file + 16 + 6, own, 6);
	cr_assert_eq(sn_get32(file + 16 + 12), 0x08004500);
	cr_assert_arr_eq(file + 16 + 14 + 36, mac, 6);
}

/* The parent's port is not touched in a forked child, which may have copied it half changed. */
Test(eth_wire, forked_child)
{
	struct sn_eth_port *port;
	int fd;

	rig_start();
	port = e->eth;
	e->eth->local.head = (void *)8; /* a list in the middle of a change */
	e->eth->local.n = 1;
	fd = e->eth->fd;
	e->dead = true;
	sn_eth_close(e);
	cr_assert_null(e->eth);
	cr_assert_lt(write(fd, "", 1), 0, "the socket is open");
	cr_assert_null(sn_frame_get(e));
	cr_assert_eq(sn_eth_open(e), -ENODEV);
	e->dead = false; /* the test frees what a child leaves */
	e->eth = port;
	port->fd = -1;
	sn_list_init(&port->local);
	sn_eth_close(e);
}
