/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * libFuzzer: UDP packets on the VXLAN port. An input contains the configuration of the port and
 * a sequence of steps: a packet of a peer or of a stranger, with a header, a frame or a control
 * frame of the flow control, any of which may be wrong; frames that the local program sends;
 * receive WQEs, rules, pauses. Each packet and each frame must be accounted for, and the number
 * of frames in memory is bounded.
 */
#include <sys/random.h>
#include <zlib.h>

#include "../softnic/eth_wire.h"
#include "eth_rig.h"

#define STEPS	    64
#define HEADER	    8u
#define CONTROL_LEN 60u

bool __real_sn_pause_control(struct sn_eng *e, const struct sn_frame *f);
bool __wrap_sn_pause_control(struct sn_eng *e, const struct sn_frame *f);
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned int flags);

static uint64_t controls, delivered; /* control frames; datagrams that the NIC can receive */

/* Counts the control frames that the port accepts. */
bool __wrap_sn_pause_control(struct sn_eng *e, const struct sn_frame *f)
{
	bool is = __real_sn_pause_control(e, f);

	controls += is;
	return is;
}

/* The nonce of the port's requests is the same for each input. */
ssize_t __wrap_getrandom(void *buf, size_t len, unsigned int flags)
{
	(void)flags;
	memset(buf, 0x11, len);
	return (ssize_t)len;
}

/* ---- packets ---- */

/* Fills a request or grant of the flow control, mostly a valid one. */
static uint32_t put_control(uint8_t *p, struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in), back = fuzz_u8(in);
	uint64_t nonce = how & 4 ? fuzz_u64(in) : sn_dev->eng->eth->nonce;

	memset(p, 0, CONTROL_LEN);
	memcpy(p, (const uint8_t[]){ 0x01, 0x80, 0xc2, 0, 0, 0x01 }, 6);
	p[6] = 2;
	sn_put32(p + 12, 0x88b50000 | 0x6770);
	sn_put32(p + 14, 0x67706131);
	sn_put32(p + 18, how & 0x40 ? fuzz_u8(in) : 1 + (how & 1));
	sn_put64(p + 22, nonce);
	sn_put64(p + 30, how & 8 ? fuzz_u64(in) : sn_dev->eng->now - back * 1000ull);
	sn_put64(p + 38, how & 0x10 ? fuzz_u64(in) : fuzz_u16(in) * 16ull);
	if (how & 0x80)
		fuzz_bytes(in, p, fuzz_u8(in) % (CONTROL_LEN + 1));
	return how & 0x20 ? fuzz_u8(in) % 128 : CONTROL_LEN;
}

static void put_header(uint8_t *head, const uint8_t *frame, uint32_t len, struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in);
	uint32_t fcs = 0;

	if (how & 1)
		fcs = (uint32_t)crc32(0, frame, len) ^ (how & 2);
	sn_put32(head, (how & 4 ? (uint32_t)fuzz_u8(in) : 8u) << 24 | fcs >> 8);
	sn_put32(head + 4, (how & 8 ? fuzz_u8(in) : sn_dev->cfg.eth_vni) << 8 | (fcs & 0xff));
	if (how & 0x10)
		fuzz_bytes(in, head, HEADER);
}

static void packet(struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in), bytes[HEADER + ETH_ROOM], n = 1 + (how >> 5);
	struct in6_addr from = sn_dev->cfg.ip;
	uint32_t len;

	from.s6_addr[15] ^= how & 3 ? 1 : fuzz_u8(in);
	if (how & 4)
		len = put_control(bytes + HEADER, in);
	else
		len = eth_frame(in, bytes + HEADER);
	put_header(bytes, bytes + HEADER, len, in);
	len += HEADER;
	if (how & 8)
		len = fuzz_u16(in) % (len + 1);
	while (n--)
		delivered += fuzz_deliver_vxlan(&from, bytes, len);
}

/* ---- the local program ---- */

/* Sends a frame to the peer or to all. */
static void send_one(struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in), *s = eth_rig.sq.sq + eth_rig.sq.pi % FAKE_DEPTH * 64;
	uint8_t frame[64] = { 0 };
	struct in6_addr to = sn_dev->cfg.ip;

	to.s6_addr[15] ^= how & 3;
	sn_mac_of_ip(&to, frame);
	if (how & 4)
		memset(frame, 0xff, 6);
	eth_store(RIG_READ_ONLY, 0, frame, sizeof(frame));
	memset(s, 0, 64);
	sn_put32(s, (eth_rig.sq.pi & 0xffff) << 8 | SN_OP_SEND);
	sn_put32(s + 4, ETH_SQN << 8 | 3);
	sn_put32(s + 32, 60 + (how >> 3) * 60);
	sn_put32(s + 36, rig_key[RIG_READ_ONLY]);
	sn_put64(s + 40, (uintptr_t)rig_memory(RIG_READ_ONLY));
	eth_rig.sq.pi++;
	fake_ring(&eth_rig.sq);
}

/* Packets that the NIC received and that are not frames of the port. */
static void count_arrivals(void)
{
	uint64_t taken = delivered - fuzz_vxlan_left();

	eth_rig.arrived = taken - controls - ETH_COUNT(wire_malformed) - ETH_COUNT(eth_other_vni) -
			  ETH_COUNT(eth_rx_missed);
}

static void step(struct fuzz_in *in)
{
	uint8_t what = fuzz_u8(in);

	switch (what & 7) {
	case 0:
	case 1:
	case 2:
		packet(in);
		if (what & 0x80)
			return;
		break;
	case 3:
		send_one(in);
		break;
	case 4:
		eth_recv(in);
		return;
	case 5:
		eth_rule(in);
		return;
	case 6:
		eth_program(in);
		break;
	case 7:
		fuzz_sleep(1000ull << (what >> 3));
		break;
	}
	fuzz_passes(sn_dev, 1 + (what >> 4 & 7));
	ETH_CHECK(sn_dev->eng->eth->frames <= SN_ETH_FRAMES, "%u frames in memory",
		  sn_dev->eng->eth->frames);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	rig_setup();
	eth_rig_account = count_arrivals;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	controls = delivered = 0;
	eth_input(data, size, STEPS, step);
	return 0;
}
