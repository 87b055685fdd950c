/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What host and kernel of gpunetio_echo share: the requests and replies of ICMP echo (RFC 792) and
 * of the UDP echo service (RFC 862).
 */
#ifndef ECHO_H
#define ECHO_H

#include "ethernet.h"

#define EC_PORT	   7u /* UDP port of the echo service */
#define EC_ID	   0x6764u
#define EC_REQUEST 8u /* ICMP types */
#define EC_REPLY   0u

enum { EC_ICMP, EC_UDP, EC_KINDS };

/* What the kernel gets, in memory that its threads can access. */
struct ec_job {
	struct doca_gpu_eth_rxq *rxq;
	struct doca_gpu_eth_txq *txq;
	uint32_t stop;		     /* set by the host */
	uint64_t answered[EC_KINDS]; /* requests */
	uint64_t others;	     /* packets that are no requests */
};

/* Headers of an ICMP message with the payload of et_byte(). */
EX_FN void ec_icmp_headers(uint8_t *h, const struct et_flow *flow, uint32_t bytes, uint32_t number,
			   uint32_t type)
{
	uint8_t *icmp = h + ET_ETH + ET_IP;
	uint32_t i, sum;

	et_ip_header(h, flow, ET_PROTO_ICMP, bytes);
	et_put32(icmp, type << 24);
	et_put16(icmp + 4, EC_ID);
	et_put16(icmp + 6, number);
	sum = et_sum(icmp, 8, 0);
	for (i = 0; i < bytes - ET_HEAD; i++)
		sum += i & 1 ? et_byte(number, i) : (uint32_t)et_byte(number, i) << 8;
	et_put16(icmp + 2, et_checksum(sum));
}

#endif
