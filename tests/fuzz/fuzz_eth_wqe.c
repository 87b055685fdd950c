/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * libFuzzer: send WQEs of an Ethernet SQ. An input contains the configuration of the port and a
 * sequence of steps: frames in memory, a WQE with fields from the input (SEND, TSO, eMPW, WAIT)
 * or of arbitrary bytes, doorbells with any value, receive WQEs, rules. Frames go to a peer and
 * to the receive queues of the same port. Each frame that is sent must have an acceptable
 * length, and each copy of it must be accounted for.
 */
#include "eth_rig.h"

#define STEPS 48
#define SEG   16u
#define RING  (FAKE_DEPTH * 64u)

static uint8_t *at(uint32_t byte)
{
	return eth_rig.sq.sq + (eth_rig.sq.pi * 64 + byte) % RING;
}

static void copy_in(uint32_t byte, const uint8_t *src, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		*at(byte + i) = src[i];
}

static void put_data(uint32_t byte, struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in), *s = at(byte);
	enum rig_region region = (enum rig_region)(how % 4 % RIG_REGIONS);
	uint32_t len = how & 4 ? fuzz_u8(in) : how & 8 ? fuzz_u16(in) : 60;

	sn_put32(s, how & 0x80 ? 0x80000000u | (how & 0x10 ? len : len % 64) : len);
	sn_put32(s + 4, how & 0x40 ? 1 : rig_key[region]);
	sn_put64(s + 8, (uintptr_t)rig_memory(region) + (how & 0x20 ? fuzz_u8(in) : 0));
	if (how & 0x80)
		fuzz_bytes(in, s + 4, 12);
}

/* Makes the headers of a TCP segment; returns their length, or `len` unless it is 0. */
static uint32_t tcp_header(struct fuzz_in *in, uint8_t frame[ETH_ROOM], uint32_t len)
{
	struct sn_parsed p;

	sn_eth_parse(frame, eth_frame(in, frame), &p);
	return len ? len : p.l4_off ? p.l4_off + 20 : 54;
}

/* Writes the Ethernet segment with an inline header. Returns the offset of the data segments. */
static uint32_t put_eth(uint8_t opcode, struct fuzz_in *in)
{
	static const uint16_t tags[4] = { 0x8000, 0x8001, 0x8123, 0x9000 };
	uint8_t how = fuzz_u8(in), seg[SEG] = { 0 }, frame[ETH_ROOM];
	uint32_t inl = how & 1 ? fuzz_u8(in) % 160 : 0;

	if (opcode == SN_OP_TSO)
		inl = tcp_header(in, frame, inl);
	else if (inl)
		eth_frame(in, frame);
	seg[4] = how & 0xc0;
	if (opcode == SN_OP_TSO || how & 2)
		sn_put32(seg + 4, (uint32_t)seg[4] << 24 | fuzz_u16(in));
	sn_put32(seg + 12, inl << 16);
	if (how & 4)
		sn_put32(seg + 12, (uint32_t)tags[how >> 4 & 3] << 16 | fuzz_u16(in));
	if (how & 8)
		fuzz_bytes(in, seg, fuzz_u8(in) % (SEG + 1));
	copy_in(SEG, seg, SEG);
	if (!inl)
		return 2 * SEG;
	copy_in(SEG + 14, frame, inl);
	return (SEG + 14 + inl + SEG - 1) / SEG * SEG;
}

static uint32_t put_wait(struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in), seg[2 * SEG] = { 0 };

	sn_put32(seg, how & 1 ? fuzz_u8(in) : 5);
	sn_put64(seg + 16, sn_clock_stamp(sn_dev->eng, how & 2) + fuzz_u16(in));
	sn_put64(seg + 24, how & 4 ? fuzz_u64(in) : (uint64_t)-1);
	copy_in(SEG, seg, sizeof(seg));
	return 3 * SEG;
}

static void put_ctrl(uint8_t opcode, uint32_t ds, struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in), ctrl[SEG] = { 0 };
	uint32_t modifier = opcode == SN_OP_WAIT ? 2 : 0;

	sn_put32(ctrl, modifier << 24 | (eth_rig.sq.pi & 0xffff) << 8 | opcode);
	sn_put32(ctrl + 4, ETH_SQN << 8 | (ds & 0x3f));
	sn_put32(ctrl + 8, how & 0xee);
	if (how & 0x10)
		fuzz_bytes(in, ctrl, 4 + fuzz_u8(in) % 13);
	copy_in(0, ctrl, SEG);
}

static void write_wqe(struct fuzz_in *in)
{
	static const uint8_t ops[8] = { SN_OP_SEND, SN_OP_SEND, SN_OP_TSO, SN_OP_EMPW,
					SN_OP_EMPW, SN_OP_WAIT, SN_OP_NOP, SN_OP_WRITE };
	uint8_t what = fuzz_u8(in), opcode = ops[what & 7];
	uint32_t byte = SEG, n = what >> 3 & 7;

	if (opcode == SN_OP_WAIT) {
		byte = put_wait(in);
		n = 0;
	} else if (opcode != SN_OP_NOP) {
		byte = put_eth(opcode, in);
	} else {
		n = 0;
	}
	if (n == 7)
		n = fuzz_u8(in) % 61;
	for (; n && byte < 63 * SEG; n--, byte += SEG)
		put_data(byte, in);
	put_ctrl(opcode, byte / SEG, in);
	eth_rig.sq.pi += (byte + 63) / 64;
}

static void raw_wqe(struct fuzz_in *in)
{
	uint8_t bytes[256] = { 0 };
	uint32_t n = 1 + fuzz_u8(in) % 4;

	fuzz_bytes(in, bytes, n * 64);
	copy_in(0, bytes, n * 64);
	eth_rig.sq.pi += n;
}

/* Stores a frame where data segments point to. */
static void store(struct fuzz_in *in)
{
	static const enum rig_region where[4] = { RIG_READ_ONLY, RIG_READ_ONLY, RIG_LOCAL,
						  RIG_ALL };
	uint8_t how = fuzz_u8(in), frame[ETH_ROOM];
	uint32_t len = eth_frame(in, frame);

	if (len > RIG_REGION)
		len = RIG_REGION;
	eth_store(where[how & 3], 0, frame, len);
}

/* Rings with any index, at any of several offsets in the UAR page. */
static void ring(struct fuzz_in *in)
{
	static const uint16_t offs[4] = { 0x800, 0x900, 0x600, 0x804 };
	uint8_t how = fuzz_u8(in), db[8];
	uint32_t index = how & 8 ? fuzz_u16(in) : eth_rig.sq.pi & 0xffff;

	if (!(how & 0x10))
		eth_rig.sq.dbr[1] = htobe32(index);
	sn_put32(db, index << 8);
	sn_put32(db + 4, (ETH_SQN + (how >> 6)) << 8);
	memcpy(eth_rig.sq.uar + offs[how & 3], db, sizeof(db));
}

static void step(struct fuzz_in *in)
{
	uint8_t what = fuzz_u8(in);

	switch (what & 7) {
	case 0:
	case 1:
	case 2:
		write_wqe(in);
		if (what & 0x80)
			return;
		fake_ring(&eth_rig.sq);
		break;
	case 3:
		store(in);
		return;
	case 4:
		if (what & 0x80)
			raw_wqe(in);
		else
			ring(in);
		break;
	case 5:
		eth_recv(in);
		return;
	case 6:
		eth_rule(in);
		return;
	case 7:
		eth_program(in);
		break;
	}
	fuzz_passes(sn_dev, 1 + (what >> 4 & 7));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	rig_setup();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	eth_input(data, size, STEPS, step);
	return 0;
}
