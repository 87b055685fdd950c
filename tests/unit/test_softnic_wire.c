/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * IP and UDP headers of the software NIC: source port, traffic class and hop limit
 * of the packets that it sends, and the IP ID of the packets that it receives,
 * which the ICRC covers but a UDP socket cannot see.
 */
#include <fcntl.h>

#include "wire_rig.h"

static void rc(void)
{
	wire_rig(SN_QPT_RC, 0);
}

TestSuite(softnic_wire, .init = rc, .fini = wire_over, .timeout = 60);

/* header fields of the next packet */
struct ip_header {
	uint16_t port;
	int tos, ttl;
};

static struct ip_header next_header(void)
{
	uint8_t b[4300], ctl[128];
	struct sockaddr_in from = { .sin_port = 0 };
	struct iovec iov = { b, sizeof(b) };
	struct msghdr m = { .msg_name = &from,
			    .msg_namelen = sizeof(from),
			    .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = ctl,
			    .msg_controllen = sizeof(ctl) };
	struct timeval tv = { .tv_sec = 5 };
	struct ip_header got = { .tos = -1, .ttl = -1 };
	int on = 1;

	setsockopt(peer.fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	setsockopt(peer.fd, IPPROTO_IP, IP_RECVTOS, &on, sizeof(on));
	setsockopt(peer.fd, IPPROTO_IP, IP_RECVTTL, &on, sizeof(on));
	send_write(0x0a, P0, 0, 8, 8, 1);
	cr_assert_gt(recvmsg(peer.fd, &m, 0), 0);
	got.port = ntohs(from.sin_port);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_type == IP_TOS)
			got.tos = *CMSG_DATA(c);
		else if (c->cmsg_type == IP_TTL)
			memcpy(&got.ttl, CMSG_DATA(c), sizeof(got.ttl));
	}
	return got;
}

static void set_path(struct sn_way way)
{
	pthread_mutex_lock(&sn_dev->lock);
	way.ip = a.qp.way.ip;
	a.qp.way = way;
	pthread_mutex_unlock(&sn_dev->lock);
}

Test(softnic_wire, default_port_tos_and_ttl)
{
	struct ip_header got = next_header();

	cr_assert_eq(got.port, 4791);
	cr_assert_eq(got.tos, 0);
	cr_assert_eq(got.ttl, 64);
}

Test(softnic_wire, port_tos_and_ttl_of_the_path)
{
	struct ip_header got;

	set_path((struct sn_way){ .sport = 0xc123, .tclass = 0x6a, .hop_limit = 3 });
	got = next_header();
	cr_assert_eq(got.port, 0xc123);
	cr_assert_eq(got.tos, 0x6a, "the TOS must include both ECN bits");
	cr_assert_eq(got.ttl, 3);
}

/* If another process has the source port, packets are sent from 4791. */
Test(softnic_wire, source_port_in_use_falls_back_to_4791)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(0xc124) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	cr_assert(inet_aton(ip_a, &at.sin_addr));
	cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	set_path((struct sn_way){ .sport = 0xc124 });
	cr_assert_eq(next_header().port, 4791);
	close(fd);
}

Test(softnic_wire, source_ports_beyond_the_socket_limit)
{
	unsigned own = 0;

	for (unsigned i = 0; i < SN_PORTS + 8; i++) {
		set_path((struct sn_way){ .sport = 0xd000 + i * 3 });
		own += next_header().port == 0xd000 + i * 3;
	}
	cr_assert_eq(own, SN_PORTS);
}

Test(softnic_wire, peer_that_sends_ip_ids)
{
	for (unsigned i = 0; i < 4; i++) {
		peer.ip_id = 0x1234 * (i + 1);
		send_write(0x0a, P0 + i, 0, 8 + i * 100, 8 + i * 100, 1);
		peer_expect_ack(&peer, P0 + i, ACKED);
	}
	cr_assert_eq(COUNT(icrc_unchecked), 4);
	peer.bad_icrc = true;
	send_write(0x0a, P0 + 4, 0, 8, 8, 1);
	peer_expect_nothing(&peer);
	cr_assert_eq(COUNT(icrc_errors), 1);
}

Test(softnic_wire, ip_id_after_packets_without_one_is_refused)
{
	send_write(0x0a, P0, 0, 8, 8, 1);
	peer_expect_ack(&peer, P0, ACKED);
	peer.ip_id = 0x1234;
	send_write(0x0a, P0 + 1, 0, 8, 8, 1);
	peer_expect_nothing(&peer);
	cr_assert_eq(COUNT(icrc_unchecked), 0);
	cr_assert_eq(COUNT(icrc_errors), 1);
}

/* The ICRC error of a flipped bit must rarely look like that of an IP ID: about 1 in 2^15. */
Test(softnic_wire, flipped_bits_rarely_look_like_an_ip_id)
{
	uint8_t h[28] = { 0x45, 0, 1, 2, 0, 0, 0x40, 0, 64, 17 }, b[300];
	unsigned taken = 0;
	uint32_t want;

	for (unsigned i = 0; i < sizeof(b); i++)
		b[i] = i * 7;
	want = sn_icrc(h, sizeof(h), b, sizeof(b));
	h[4] = 0xab, h[5] = 0xcd;
	cr_assert(sn_icrc_but_id(want ^ sn_icrc(h, 28, b, sizeof(b)), 28, sizeof(b)));
	h[6] = 0;
	cr_assert(sn_icrc_but_id(want ^ sn_icrc(h, 28, b, sizeof(b)), 28, sizeof(b)),
		  "must be accepted without DF");
	h[6] = 0x20;
	cr_assert_not(sn_icrc_but_id(want ^ sn_icrc(h, 28, b, sizeof(b)), 28, sizeof(b)),
		      "must be refused with MF");
	h[4] = h[5] = 0, h[6] = 0x40;
	for (unsigned bit = 0; bit < sizeof(b) * 8; bit++) {
		b[bit / 8] ^= 1u << bit % 8;
		if (bit / 8 != 4) /* the ICRC does not cover this byte */
			taken += sn_icrc_but_id(want ^ sn_icrc(h, 28, b, sizeof(b)), 28, sizeof(b));
		b[bit / 8] ^= 1u << bit % 8;
	}
	cr_assert_leq(taken, 1, "%u of %zu flipped bits look like an IP ID", taken, sizeof(b) * 8);
	cr_assert_not(sn_icrc_but_id(1, 48, sizeof(b)), "IPv6 has no IP ID");
}

/* ---- sockets ---- */

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* A daemon has closed its standard input: the next socket has the number 0. */
Test(softnic_wire, descriptor_0_can_be_a_socket)
{
	static struct sn_dev other;
	static struct sn_eng e = { .dev = &other };

	other.cfg = sn_dev->cfg;
	other.cfg.ip.s6_addr[15] ^= 0x40;
	close(0);
	cr_assert_eq(sn_wire_open(&e), 0);
	cr_expect_eq(e.sock, 0);
	cr_expect(e.rx);
	sn_wire_close(&e);
	cr_expect_not(is_open(0));
	sn_peers_open(&e);
	cr_expect_eq(e.peers.fd, 0);
	cr_expect(is_open(0));
	sn_peers_close(&e);
	cr_expect_not(is_open(0));
}
