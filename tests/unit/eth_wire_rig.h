/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The Ethernet port of the software NIC without queues: the test sends frames by
 * sn_eth_transmit(), takes the place of the receive queues (--wrap, see tests.mk), and
 * plays the other hosts by UDP sockets, packet by packet. Time is e->now, which only
 * the test advances.
 */
#ifndef ETH_WIRE_RIG_H
#define ETH_WIRE_RIG_H

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include "../softnic/eth_wire.h"
#include "engine_fake.h"

#define VNI	  0x123456u
#define RIG_HOSTS 4
#define RIG_GOT	  4096

struct rig_frame {
	uint32_t len;
	bool local, may_wait;
	uint8_t data[SN_ETH_FRAME_MAX];
};

static struct sn_eng *e;
static char rig_ip[RIG_HOSTS][16]; /* 0: the NIC */
static int rig_fd[RIG_HOSTS];
static bool rig_wants, rig_full; /* what the receive queues answer */
static uint64_t rig_due;	 /* time at which the send queues continue */
static struct rig_frame *rig_got;
static unsigned rig_ngot;
static int rig_sent;				 /* what sn_eth_transmit() last returned */
static uint8_t rig_packet[8 + SN_ETH_FRAME_MAX]; /* the last packet that a host received */
static int rig_mark;				 /* a socket that is connected to itself */

enum sn_eth_result __wrap_sn_eth_receive(struct sn_eng *eng, const struct sn_frame *f,
					 bool may_wait);
bool __wrap_sn_eth_wants(struct sn_eng *eng, const struct sn_frame *f);
uint64_t __wrap_sn_eth_sq_due(const struct sn_qp_eng *q);

uint64_t __wrap_sn_eth_sq_due(const struct sn_qp_eng *q)
{
	(void)q;
	return rig_due;
}

enum sn_eth_result __wrap_sn_eth_receive(struct sn_eng *eng, const struct sn_frame *f,
					 bool may_wait)
{
	struct rig_frame *g = &rig_got[rig_ngot];

	if (f->corrupt || f->len < SN_ETH_FRAME_MIN) {
		++*(f->corrupt ? &eng->dev->stats.eth_fcs_errors : &eng->dev->stats.eth_malformed);
		return SN_ETH_TAKEN;
	}
	if (rig_full && may_wait)
		return SN_ETH_FULL;
	cr_assert_lt(rig_ngot, RIG_GOT);
	g->len = f->len;
	g->local = f->local;
	g->may_wait = may_wait;
	memcpy(g->data, f->data, f->len);
	rig_ngot++;
	return SN_ETH_TAKEN;
}

bool __wrap_sn_eth_wants(struct sn_eng *eng, const struct sn_frame *f)
{
	(void)eng;
	(void)f;
	return rig_wants;
}

static inline struct sockaddr_in rig_at(unsigned host)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(4789) };

	cr_assert(inet_aton(rig_ip[host], &at.sin_addr));
	return at;
}

static inline struct in6_addr rig_addr(unsigned host)
{
	struct in6_addr ip = { .s6_addr = { [10] = 0xff, [11] = 0xff } };
	struct sockaddr_in at = rig_at(host);

	memcpy(ip.s6_addr + 12, &at.sin_addr, 4);
	return ip;
}

/* On a busy machine the kernel delivers packets of the loopback after the call that sends them, but
 * those of one CPU in order. */
static inline void rig_mark_open(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);
	cpu_set_t cpu;

	CPU_ZERO(&cpu);
	CPU_SET(sched_getcpu(), &cpu);
	cr_assert_eq(sched_setaffinity(0, sizeof(cpu), &cpu), 0);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	rig_mark = socket(AF_INET, SOCK_DGRAM, 0);
	cr_assert_eq(bind(rig_mark, (struct sockaddr *)&at, len), 0);
	cr_assert_eq(getsockname(rig_mark, (struct sockaddr *)&at, &len), 0);
	cr_assert_eq(connect(rig_mark, (struct sockaddr *)&at, len), 0);
}

/* Waits until all packets that this thread has sent are delivered. */
static inline void rig_settle(void)
{
	char mark = 0;

	cr_assert_eq(send(rig_mark, &mark, 1, 0), 1);
	cr_assert_eq(recv(rig_mark, &mark, 1, 0), 1);
}

static inline void rig_open(void)
{
	unsigned i;

	rig_wants = rig_full = false;
	rig_ngot = 0;
	rig_got = calloc(RIG_GOT, sizeof(*rig_got));
	rig_mark_open();
	for (i = 0; i < RIG_HOSTS; i++)
		fake_ip(rig_ip[i], i + 1);
	fake_open_still(rig_ip[0]);
	e = sn_dev->eng;
	e->now = 1000000000;
	sn_dev->cfg.eth_vni = VNI;
	for (i = 1; i < RIG_HOSTS; i++) {
		struct sockaddr_in at = rig_at(i);

		rig_fd[i] = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
		cr_assert_eq(bind(rig_fd[i], (struct sockaddr *)&at, sizeof(at)), 0);
	}
}

/* Opens the port after the test has changed sn_dev->cfg. */
static inline void rig_start(void)
{
	cr_assert_eq(sn_eth_open(e), 0);
}

static inline void rig_close(void)
{
	unsigned i;

	for (i = 1; i < RIG_HOSTS; i++)
		close(rig_fd[i]);
	close(rig_mark);
	fake_close();
	memset(&sn_dev->cfg, 0, sizeof(sn_dev->cfg));
	memset(&sn_dev->stats, 0, sizeof(sn_dev->stats));
	free(rig_got);
}

static inline void rig_pass(uint64_t ns)
{
	e->now += ns;
	rig_settle();
	sn_eng_pass(e);
}

static inline void mac_of(unsigned host, uint8_t mac[6])
{
	struct in6_addr ip = rig_addr(host);

	sn_mac_of_ip(&ip, mac);
}

/* Fills a frame whose bytes depend on its length and on `seed`. */
static inline void rig_fill(uint8_t *data, uint32_t len, const uint8_t dst[6], const uint8_t src[6],
			    uint8_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		data[i] = (uint8_t)(i * 7 + len + seed);
	memcpy(data, dst, 6);
	memcpy(data + 6, src, 6);
	data[12] = 0x88;
	data[13] = 0xb6;
}

static inline bool rig_send(const uint8_t dst[6], uint32_t len, uint8_t seed)
{
	struct sn_frame *f = sn_frame_get(e);
	uint8_t own[6];

	cr_assert(f);
	mac_of(0, own);
	f->len = len;
	rig_fill(f->data, len, dst, own, seed);
	rig_sent = sn_eth_transmit(e, f);
	if (rig_sent > 0)
		return true;
	sn_frame_put(e, f);
	return false;
}

/* Receives a packet at a host, without the control frames of software NICs. Returns the length of
 * the frame; -1: none. */
static inline int rig_take(unsigned host)
{
	ssize_t n;

	rig_settle();
	do
		n = recv(rig_fd[host], rig_packet, sizeof(rig_packet), 0);
	while (n >= 22 && rig_packet[20] == 0x88 && rig_packet[21] == 0xb5);
	return n < 8 ? -1 : (int)n - 8;
}

/* Sends a packet to the NIC: header, then a frame. */
static inline void rig_raw(unsigned host, const void *packet, size_t len)
{
	struct sockaddr_in to = rig_at(0);

	cr_assert_eq(sendto(rig_fd[host], packet, len, 0, (struct sockaddr *)&to, sizeof(to)),
		     (ssize_t)len);
}

static inline void rig_from(unsigned host, const uint8_t src[6], uint32_t len, uint8_t seed)
{
	uint8_t packet[8 + SN_ETH_FRAME_MAX] = { 0x08 }, own[6];

	mac_of(0, own);
	sn_put32(packet + 4, VNI << 8);
	rig_fill(packet + 8, len, own, src, seed);
	rig_raw(host, packet, 8 + len);
}

#define STAT(name, n) \
	cr_assert_eq(sn_dev->stats.name, (uint64_t)(n), #name " is %llu, not %llu", \
		     (unsigned long long)sn_dev->stats.name, (unsigned long long)(n))

#endif
