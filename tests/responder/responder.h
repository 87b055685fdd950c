/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A host of few functions on a raw packet queue pair: it answers ARP requests, pings and
 * UDP datagrams, and receives one TCP connection at a time. responder.c has the queue pair,
 * answer.c the protocols. Checksums that it receives are verified in software; those of
 * IPv4, UDP and TCP that it sends are computed by the NIC.
 */
#ifndef RESPONDER_H
#define RESPONDER_H

#include <stdbool.h>
#include <stdint.h>

#define FRAME_MAX 2048u

struct host {
	uint8_t mac[6];
	uint8_t ip[4];
};

/* The receiving end of a TCP connection. Sequence numbers are in host byte order. */
struct tcp {
	bool open;
	uint8_t peer_ip[4];
	uint16_t peer_port, port;
	uint32_t next; /* sequence number of the next byte */
	uint32_t seq;  /* own sequence number */
	uint64_t bytes;
	uint32_t crc; /* CRC-32 of the bytes received */
	bool finished;
};

struct counts {
	uint64_t frames, arp, pings, datagrams, segments, bad_sums, ignored;
};

struct answerer {
	struct host host;
	struct tcp tcp;
	struct counts counts;
};

/* Handles one received frame and builds the answer in `out`, of FRAME_MAX bytes. Returns the
 * bytes of the answer; 0: none. *hw: the NIC computes the checksums of IPv4, UDP and TCP. */
uint32_t answer(struct answerer *a, const uint8_t *in, uint32_t len, uint8_t *out, bool *hw);

#endif
