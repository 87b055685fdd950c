/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The remote end of the wire, played by the test. It builds and parses packets byte
 * by byte and sends them through its own UDP socket, so that the NIC's requester,
 * responder and headers are not used to check themselves. Only the ICRC is computed
 * by the NIC's function, which wire.sh checks.
 */
#ifndef WIRE_PEER_H
#define WIRE_PEER_H

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine_fake.h"

#define PEER_QPN      0x777u
#define PEER_QUIET_MS 60

struct wire_peer {
	int fd;
	struct sockaddr_in self, nic;
	uint16_t pkey;	 /* P_Key of the packets that the peer sends */
	uint8_t version; /* header version of the packets that the peer sends */
	bool bad_icrc;
	uint16_t ip_id; /* the IP ID that the ICRC covers; the kernel sends 0 */
};

struct wire_packet {
	uint8_t opcode, pad;
	bool solicited, ackreq;
	uint16_t pkey;
	uint32_t qpn, psn, len; /* len: bytes after the BTH, without padding */
	uint8_t p[4200];
};

static inline struct wire_peer peer_open(const char *ip, const char *nic)
{
	struct wire_peer w = { .pkey = 0xffff };
	int df = IP_PMTUDISC_DO;

	w.self = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(4791) };
	w.nic = w.self;
	cr_assert(inet_aton(ip, &w.self.sin_addr) && inet_aton(nic, &w.nic.sin_addr));
	w.fd = socket(AF_INET, SOCK_DGRAM, 0);
	setsockopt(w.fd, IPPROTO_IP, IP_MTU_DISCOVER, &df, sizeof(df));
	cr_assert_eq(bind(w.fd, (struct sockaddr *)&w.self, sizeof(w.self)), 0);
	return w;
}

static inline uint32_t peer_icrc(const struct sockaddr_in *from, const struct sockaddr_in *to,
				 uint16_t id, const uint8_t *bth, uint32_t len)
{
	uint8_t h[28] = { 0x45, 0, (28 + len + 4) >> 8, 28 + len + 4, id >> 8, id & 0xff, 0x40, 0,
			  64,	17 };

	memcpy(h + 12, &from->sin_addr, 4);
	memcpy(h + 16, &to->sin_addr, 4);
	h[20] = h[22] = 4791 >> 8;
	h[21] = h[23] = 4791 & 0xff;
	h[24] = (8 + len + 4) >> 8;
	h[25] = 8 + len + 4;
	return htole32(sn_icrc(h, sizeof(h), bth, len));
}

static inline void peer_send(struct wire_peer *w, uint8_t opcode, uint32_t qpn, uint32_t psn,
			     const void *bytes, uint32_t len)
{
	uint8_t b[4300] = { 0 };
	uint32_t pad = -len & 3, all = 12 + len + pad, icrc;

	sn_put32(b, (uint32_t)opcode << 24 | pad << 20 | (uint32_t)w->version << 16 | w->pkey);
	sn_put32(b + 4, qpn);
	sn_put32(b + 8, 1u << 31 | (psn & 0xffffff));
	if (len)
		memcpy(b + 12, bytes, len);
	icrc = peer_icrc(&w->self, &w->nic, w->ip_id, b, all) ^ w->bad_icrc;
	memcpy(b + all, &icrc, 4);
	cr_assert_eq(sendto(w->fd, b, all + 4, 0, (struct sockaddr *)&w->nic, sizeof(w->nic)),
		     all + 4);
}

/* Sends an ACK or NAK, according to the syndrome. */
static inline void peer_ack(struct wire_peer *w, uint32_t qpn, uint32_t psn, uint8_t syndrome)
{
	uint8_t aeth[4] = { syndrome };

	peer_send(w, 0x11, qpn, psn, aeth, 4);
}

/* Receives one packet. Returns false if none arrives within ms milliseconds. */
static inline bool peer_recv(struct wire_peer *w, struct wire_packet *k, int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };
	uint8_t b[4300];
	uint32_t icrc;
	ssize_t n;

	setsockopt(w->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	n = recv(w->fd, b, sizeof(b), 0);
	if (n < 0)
		return false;
	cr_assert_geq(n, 16);
	memcpy(&icrc, b + n - 4, 4);
	cr_assert_eq(icrc, peer_icrc(&w->nic, &w->self, 0, b, n - 4),
		     "wrong ICRC in a packet from the NIC");
	k->opcode = b[0];
	k->solicited = b[1] >> 7;
	k->pad = b[1] >> 4 & 3;
	k->pkey = b[2] << 8 | b[3];
	k->qpn = sn_get32(b + 4) & 0xffffff;
	k->ackreq = b[8] >> 7;
	k->psn = sn_get32(b + 8) & 0xffffff;
	k->len = n - 16 - k->pad;
	memcpy(k->p, b + 12, k->len);
	return true;
}

static inline struct wire_packet peer_expect(struct wire_peer *w, uint8_t opcode, uint32_t psn)
{
	struct wire_packet k;

	cr_assert(peer_recv(w, &k, 5000), "no packet 0x%02x psn 0x%x", opcode, psn & 0xffffff);
	cr_assert_eq(k.opcode, opcode,
		     "got opcode 0x%02x psn 0x%x, expected 0x%02x psn 0x%x (first byte 0x%02x)",
		     k.opcode, k.psn, opcode, psn & 0xffffff, k.p[0]);
	cr_assert_eq(k.psn, psn & 0xffffff, "got psn 0x%x, expected 0x%x", k.psn, psn & 0xffffff);
	return k;
}

static inline void peer_expect_ack(struct wire_peer *w, uint32_t psn, uint8_t syndrome)
{
	struct wire_packet k = peer_expect(w, 0x11, psn);

	cr_assert_eq(k.p[0], syndrome, "got syndrome 0x%02x, expected 0x%02x", k.p[0], syndrome);
	cr_assert_eq(k.qpn, PEER_QPN);
	cr_assert_eq(k.len, 4);
}

static inline void peer_expect_nothing(struct wire_peer *w)
{
	struct wire_packet k;

	cr_assert_not(peer_recv(w, &k, PEER_QUIET_MS),
		      "unexpected packet: opcode 0x%02x psn 0x%x (0x%02x)", k.opcode, k.psn,
		      k.p[0]);
}

#endif
