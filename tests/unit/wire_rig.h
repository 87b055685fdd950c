/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * One QP of the software NIC's engine, connected to a peer whose packets the test
 * builds by hand (wire_peer.h). Used by the tests of the requester, the responder,
 * the wire format and the unreliable transports.
 */
#ifndef WIRE_RIG_H
#define WIRE_RIG_H

#include <stdlib.h>

#include "wire_peer.h"

#define QPN 0x101u
/* first PSN in each direction, see fake_connect(); it wraps after 16 packets */
#define P0     0xfffff0u
#define MTU    1024u
#define SIZE   (1u << 16)
#define ACKED  0x1f /* AETH syndromes */
#define SEQ    0x60
#define INV    0x61
#define ACCESS 0x62

static struct fake_qp a;
static struct wire_peer peer;
static uint8_t *mem;
static uint32_t key;
static char ip_a[32], ip_b[32];

static inline void wire_rig(enum sn_qp_type type, uint8_t timeout)
{

	fake_ip(ip_a, 1);
	fake_ip(ip_b, 2);
	fake_open(ip_a);
	mem = aligned_alloc(4096, SIZE);
	for (unsigned i = 0; i < SIZE; i++)
		mem[i] = i * 2654435761u >> 13;
	key = fake_mr(mem, SIZE, 0xf);
	fake_qp_init_as(&a, type, QPN, 1);
	a.qp.ack_timeout = timeout;
	fake_connect(&a, ip_b, PEER_QPN);
	peer = peer_open(ip_b, ip_a);
}

static inline void wire_over(void)
{
	close(peer.fd);
	fake_close();
}

static inline void wire_restart(void)
{
	fake_modify(&a, SN_QPS_RST);
	a.rpi = a.pi = 0;
	memset(a.dbr, 0, 8);
	fake_connect(&a, ip_b, PEER_QPN);
}

static inline enum sn_qp_state wire_state(void)
{
	enum sn_qp_state s;

	pthread_mutex_lock(&sn_dev->lock);
	s = a.qp.state;
	pthread_mutex_unlock(&sn_dev->lock);
	return s;
}

static inline uint64_t wire_count(const uint64_t *field)
{
	uint64_t n;

	pthread_mutex_lock(&sn_dev->lock);
	n = *field;
	pthread_mutex_unlock(&sn_dev->lock);
	return n;
}
#define COUNT(field) wire_count(&sn_dev->stats.field)

/* A RETH and `payload` bytes of value v. Returns the total length. */
static inline uint32_t reth(uint8_t *b, uint32_t off, uint32_t len, uint32_t payload, uint8_t v)
{
	sn_put64(b, (uintptr_t)mem + off);
	sn_put32(b + 8, key);
	sn_put32(b + 12, len);
	memset(b + 16, v, payload);
	return 16 + payload;
}

static inline void send_write(uint8_t opcode, uint32_t psn, uint32_t off, uint32_t len,
			      uint32_t payload, uint8_t v)
{
	uint8_t b[16 + 4096];
	uint32_t n = reth(b, off, len, payload, v);

	peer_send(&peer, opcode, QPN, psn, b, n);
}

static inline void send_bytes(uint8_t opcode, uint32_t psn, uint32_t len, uint8_t v)
{
	uint8_t b[4200];

	memset(b, v, len);
	peer_send(&peer, opcode, QPN, psn, b, len);
}

#endif
