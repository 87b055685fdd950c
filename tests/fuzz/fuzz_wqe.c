/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * libFuzzer: work queue entries. An input contains the queue pair's setup and a
 * sequence of steps: a send WQE with a valid control segment and segments from the
 * input, or with arbitrary bytes, rung or not; doorbells with any value; receive WQEs.
 * The queue pair is connected to itself, so that its messages arrive, or to a peer
 * that does not answer. The engine must survive, and memory to which no key gives write
 * access must not change.
 */
#include "rig.h"

#define STEPS 48
#define SEG   16u
#define RING  (FAKE_DEPTH * 64u)

static uint8_t *segment(struct fuzz_rig *r, uint32_t i)
{
	return r->q.sq + (r->q.pi * 64 + i * SEG) % RING;
}

static void put_data(uint8_t *s, struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in), len = fuzz_u8(in);
	enum rig_region region = (enum rig_region)(how % 4 % RIG_REGIONS);

	sn_put32(s, how & 4 ? 0x80000000u | len : how & 8 ? len : (uint32_t)len << 5);
	sn_put32(s + 4, rig_key[region]);
	sn_put64(s + 8, (uintptr_t)rig_memory(region) + (how >> 4) * 8);
	if (how & 4)
		fuzz_bytes(in, s + 4, 12);
}

static void put_raddr(uint8_t *s, struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in);
	enum rig_region region = (enum rig_region)(how % 4 % RIG_REGIONS);

	sn_put64(s, (uintptr_t)rig_memory(region) + (how >> 4) * 8);
	sn_put32(s + 8, how & 4 ? 1 : rig_key[region]);
	sn_put32(s + 12, how & 8 ? 1 : 0);
}

/* Writes the address vector of a datagram to the queue pair itself; returns the number
 * of segments before the data. */
static uint32_t put_av(struct fuzz_rig *r, struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in), *s;
	struct sn_gid gid;
	uint32_t i, index = sn_dev->cfg.infiniband ? 0 : how & 3;

	for (i = 1; i < 4; i++)
		memset(segment(r, i), 0, SEG);
	s = segment(r, 1);
	sn_put32(s, how & 4 ? RIG_QKEY : 0x80000000u);
	sn_put32(s + 8, 0x80000000u | RIG_QPN);
	s[14] = how & 8 ? 0xc1 : 0;
	s[15] = (uint8_t)sn_lid_of_ip(&sn_dev->cfg.ip);
	sn_put32(segment(r, 2) + 12, 1u << 30 | index << 20);
	if (sn_gid_at(&sn_dev->cfg, index, &gid))
		memcpy(segment(r, 3), gid.raw, 16);
	return 4;
}

/* Writes the segments that precede the data for this opcode, with fields from the
 * input where it selects that. Returns their number. */
static uint32_t put_fixed(struct fuzz_rig *r, uint8_t opcode, struct fuzz_in *in)
{
	uint32_t i = 1, n;

	switch (opcode) {
	case SN_OP_SEND:
	case SN_OP_SEND_IMM:
		return r->q.qp.type == SN_QPT_UD ? put_av(r, in) : i;
	case SN_OP_WRITE:
	case SN_OP_WRITE_IMM:
	case SN_OP_READ:
		put_raddr(segment(r, i), in);
		return i + 1;
	case SN_OP_CS:
	case SN_OP_FA:
	case SN_OP_MASKED_CS:
	case SN_OP_MASKED_FA:
		put_raddr(segment(r, i++), in);
		n = opcode == SN_OP_MASKED_CS ? fuzz_u8(in) % 3 : 1;
		for (; n--; i++)
			fuzz_bytes(in, segment(r, i), SEG);
		return i;
	case SN_OP_MMO: /* key and address of the result */
		n = fuzz_u8(in);
		sn_put32(segment(r, i), n & 0x40 ? n : 0);
		sn_put32(segment(r, i) + 4, rig_key[n % RIG_REGIONS]);
		sn_put64(segment(r, i) + 8,
			 (uintptr_t)rig_memory((enum rig_region)(n % RIG_REGIONS)) +
				 (n >> 2) % 16 * 8);
		return i + 1;
	case SN_OP_WAIT:
		memset(segment(r, i), 0, SEG);
		sn_put32(segment(r, i) + 8, fuzz_u8(in));
		sn_put32(segment(r, i) + 12, r->q.scq.cqn + fuzz_u8(in) % 4);
		return i + 1;
	}
	return i;
}

static void put_ctrl(struct fuzz_rig *r, uint8_t opcode, uint32_t ds, struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in), modifier = 0, *s = segment(r, 0);

	if (opcode == SN_OP_MASKED_CS || opcode == SN_OP_MASKED_FA)
		modifier = 8 + (how & 1);
	else if (opcode == SN_OP_MMO)
		modifier = 1;
	sn_put32(s, (uint32_t)modifier << 24 | (r->q.pi & 0xffff) << 8 | opcode);
	sn_put32(s + 4, RIG_QPN << 8 | ds);
	sn_put32(s + 8, how & 0xee);
	sn_put32(s + 12, 0x12345678);
	if (how & 0x10)
		fuzz_bytes(in, s, 4 + fuzz_u8(in) % 13);
}

static void write_wqe(struct fuzz_rig *r, struct fuzz_in *in)
{
	static const uint8_t ops[16] = {
		SN_OP_NOP,  SN_OP_SEND_INVAL, SN_OP_WRITE,     SN_OP_WRITE_IMM,
		SN_OP_SEND, SN_OP_SEND_IMM,   SN_OP_WAIT,      SN_OP_READ,
		SN_OP_CS,   SN_OP_FA,	      SN_OP_MASKED_CS, SN_OP_MASKED_FA,
		SN_OP_DUMP, SN_OP_MMO,	      SN_OP_READ,      0x77,
	};
	uint8_t what = fuzz_u8(in), opcode = ops[what & 15];
	uint32_t i = put_fixed(r, opcode, in), n = what >> 4;

	if (n > 12)
		n = fuzz_u8(in) % 64;
	for (; n && i < 63; n--, i++)
		put_data(segment(r, i), in);
	put_ctrl(r, opcode, i, in);
	r->q.pi += (i + 3) / 4;
}

static void raw_wqe(struct fuzz_rig *r, struct fuzz_in *in)
{
	uint32_t len = fuzz_u8(in), i;

	for (i = 0; i * SEG < len; i++)
		fuzz_bytes(in, segment(r, i), SEG);
	r->q.pi += (i + 3) / 4;
}

/* Rings for the posted WQEs or with any index, at one of several offsets in the UAR page. */
static void ring(struct fuzz_rig *r, struct fuzz_in *in)
{
	static const uint16_t at[8] = { 0x800, 0x900, 0x600, 0xa00, 0xb00, 0x20, 0x808, 0x800 };
	uint8_t how = fuzz_u8(in), db[8];
	uint32_t index = how & 8 ? fuzz_u16(in) : r->q.pi & 0xffff;

	if (how & 0x10) /* like libmlx5: index and size of the last WQE */
		index = (index - 1) & 0xffff;
	if (!(how & 0x20))
		r->q.dbr[1] = htobe32(index + (how >> 4 & 1));
	sn_put32(db, index << 8);
	sn_put32(db + 4, (RIG_QPN + (how >> 7)) << 8 | (how & 0x10 ? 1 : 0));
	memcpy(r->q.uar + at[how & 7], db, 8);
	if (how & 0x40) /* write the rest of a BlueFlame copy */
		memset(r->q.uar + at[how & 7] + 8, 0x11, 16);
}

static void step(struct fuzz_rig *r, struct fuzz_in *in)
{
	uint8_t what = fuzz_u8(in);

	switch (what & 7) {
	case 0:
	case 1:
		write_wqe(r, in);
		if (what & 0x80)
			return;
		fake_ring(&r->q);
		break;
	case 2:
		raw_wqe(r, in);
		return;
	case 3:
		ring(r, in);
		break;
	case 4:
		rig_recv(r, in, what & 0x80);
		return;
	case 5:
		fuzz_sleep(1000ull << (what >> 3));
		break;
	case 6:
		rig_state(r, in);
		break;
	case 7:
		rig_program(r, in);
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
	rig_input(data, size, STEPS, step);
	return 0;
}
