/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The packets of the Ethernet examples: UDP over IPv4, with a number and a payload that depends on
 * it. Sender and receiver compute the same bytes, so that the receiver checks each one. For CPU and
 * GPU threads.
 */
#ifndef ETHERNET_FRAME_H
#define ETHERNET_FRAME_H

#include <stdint.h>

#include "job.h"

#define ET_ETH	     14u /* bytes of the Ethernet header */
#define ET_IP	     20u /* of an IPv4 header without options */
#define ET_UDP	     8u
#define ET_HEAD	     (ET_ETH + ET_IP + ET_UDP)
#define ET_BYTES_MIN 60u /* a frame without the frame check sequence */
#define ET_BYTES_MAX 1514u

#define ET_PROTO_ICMP 1u
#define ET_PROTO_UDP  17u

/* Who sends to whom. Numbers are in the byte order of the CPU. */
struct et_flow {
	uint8_t dst_mac[6], src_mac[6];
	uint32_t src_ip, dst_ip;
	uint16_t src_port, dst_port;
};

EX_FN void et_put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

EX_FN void et_put32(uint8_t *p, uint32_t v)
{
	et_put16(p, v >> 16);
	et_put16(p + 2, v);
}

EX_FN uint32_t et_get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

EX_FN uint32_t et_get32(const uint8_t *p)
{
	return et_get16(p) << 16 | et_get16(p + 2);
}

/* Sum of 16-bit words for a checksum. */
EX_FN uint32_t et_sum(const uint8_t *p, uint32_t bytes, uint32_t sum)
{
	for (uint32_t i = 0; i < bytes; i++)
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	return sum;
}

EX_FN uint32_t et_checksum(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum & 0xffff;
}

/* Byte `at` behind the headers: the number in 4 bytes, then bytes that depend on it. */
EX_FN uint8_t et_byte(uint32_t number, uint32_t at)
{
	if (at < 4)
		return (uint8_t)(number >> (24 - 8 * at));
	return (uint8_t)(((number + 1) * 2654435761u >> (at % 3 * 8)) + at * 31);
}

/* Headers of Ethernet and IPv4, for `bytes` bytes in all, with the checksum of the header. */
EX_FN void et_ip_header(uint8_t *h, const struct et_flow *flow, uint32_t protocol, uint32_t bytes)
{
	for (uint32_t i = 0; i < 6; i++) {
		h[i] = flow->dst_mac[i];
		h[6 + i] = flow->src_mac[i];
	}
	et_put16(h + 12, 0x0800);
	h += ET_ETH;
	et_put16(h, 0x4500); /* version and length of the header */
	et_put16(h + 2, bytes - ET_ETH);
	et_put32(h + 4, 0x00004000); /* identification 0, do not fragment */
	et_put32(h + 8, 64u << 24 | protocol << 16);
	et_put32(h + 12, flow->src_ip);
	et_put32(h + 16, flow->dst_ip);
	et_put16(h + 10, et_checksum(et_sum(h, ET_IP, 0)));
}

/* All headers of packet `number`, with both checksums. */
EX_FN void et_headers(uint8_t *h, const struct et_flow *flow, uint32_t bytes, uint32_t number)
{
	const uint32_t len = bytes - ET_ETH - ET_IP;
	uint8_t *udp = h + ET_ETH + ET_IP;
	uint32_t sum, i;

	et_ip_header(h, flow, ET_PROTO_UDP, bytes);
	et_put16(udp, flow->src_port);
	et_put16(udp + 2, flow->dst_port);
	et_put32(udp + 4, len << 16);
	/* The pseudo header: addresses, protocol, length. */
	sum = et_sum(udp, ET_UDP, et_sum(h + ET_ETH + 12, 8, ET_PROTO_UDP + len));
	for (i = 0; i < len - ET_UDP; i++)
		sum += i & 1 ? et_byte(number, i) : (uint32_t)et_byte(number, i) << 8;
	sum = et_checksum(sum);
	et_put16(udp + 6, sum ? sum : 0xffff); /* 0: no checksum */
}

/* Writes packet `number`. Without `sums`, the NIC inserts the checksums. */
EX_FN void et_write(uint8_t *frame, const struct et_flow *flow, uint32_t bytes, uint32_t number,
		    bool sums)
{
	et_headers(frame, flow, bytes, number);
	for (uint32_t i = ET_HEAD; i < bytes; i++)
		frame[i] = et_byte(number, i - ET_HEAD);
	if (sums)
		return;
	et_put16(frame + ET_ETH + 10, 0);
	et_put16(frame + ET_ETH + ET_IP + 6, 0);
}

/* Returns whether each byte of a packet is that of the number in it. */
EX_FN bool et_right(const uint8_t *frame, const struct et_flow *flow, uint32_t got, uint32_t bytes,
		    uint32_t *number)
{
	uint8_t h[ET_HEAD];
	uint32_t i;

	if (got != bytes)
		return false;
	*number = et_get32(frame + ET_HEAD);
	et_headers(h, flow, bytes, *number);
	for (i = 0; i < ET_HEAD; i++)
		if (frame[i] != h[i])
			return false;
	for (; i < bytes; i++)
		if (frame[i] != et_byte(*number, i - ET_HEAD))
			return false;
	return true;
}

#endif
