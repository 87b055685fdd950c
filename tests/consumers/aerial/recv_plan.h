/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The packets that recv.cu sends: uplink U-plane messages, whose bytes are written here by
 * O-RAN.WG4.CUS.0 (3.1.3.1 and 6.3), not by Aerial's structs.
 */
#ifndef AERIAL_RECV_PLAN_H
#define AERIAL_RECV_PLAN_H

#include <stdint.h>

#include <random>
#include <vector>

#define CELLS	      3
#define WHOLE_SLOTS   8			/* of which all packets are sent */
#define SLOTS	      (WHOLE_SLOTS + 2) /* then one packet is missing, then all are */
#define FIRST_SLOT    14		/* of frame FRAME */
#define FRAME	      7
#define PER_FRAME     20 /* slots of a frame, 30 kHz */
#define PRACH_SECTION 2048

static const int bit_widths[CELLS] = { 9, 14, 16 };
static const int prb_sizes[CELLS] = { 28, 43, 48 }; /* 12 I/Q pairs; below 16 bits also a byte */

/* What a packet is to the kernel of slot n. */
enum use {
	KEEP,	/* of slot n */
	EARLY,	/* of slot n + 1 */
	IGNORED /* of another frame, or of another slot */
};

struct packet {
	enum use use;
	uint32_t prbs[2]; /* of PUSCH and PRACH */
	std::vector<uint8_t> bytes;
};

static inline void put(std::vector<uint8_t> *to, uint64_t value, int num)
{
	while (num-- > 0)
		to->push_back((uint8_t)(value >> 8 * num));
}

static inline int frame_of(int slot)
{
	return FRAME + (FIRST_SLOT + slot) / PER_FRAME;
}

/* A section: its header and PRBs. */
static inline void add_section(packet *p, int cell, uint32_t id, bool prach, uint32_t start,
			       uint32_t prbs)
{
	put(&p->bytes, (prach ? PRACH_SECTION + id : id) << 20 | start << 8 | prbs, 4);
	for (int at = 0; at < (int)prbs * prb_sizes[cell]; at++)
		p->bytes.push_back((uint8_t)(id * 7 + start * 31 + (uint32_t)at * 13 + prbs));
	p->prbs[prach] += prbs;
}

/* Packet i of a slot. No two packets of a cell are the same. */
static inline packet make_packet(int cell, int frame, int slot, int i, enum use use)
{
	const bool prach = i % 5 == 4;
	const int in_frame = (FIRST_SLOT + slot) % PER_FRAME, sections = 1 + (i + slot) % 3;
	packet p = { use, {}, {} };

	put(&p.bytes, 0x020000000000u + (uint64_t)cell, 6);
	put(&p.bytes, 0x020000000100u + (uint64_t)cell, 6);
	put(&p.bytes, 0x81000002aefe, 6); /* VLAN 2, eCPRI */
	put(&p.bytes, 0x1000, 2);	  /* version 1, I/Q data */
	put(&p.bytes, 0, 2);		  /* number of bytes that follow, set below */
	put(&p.bytes, (uint64_t)(i % 4 + (prach ? 8 : 0)), 2); /* eAxC */
	put(&p.bytes, (uint64_t)(uint8_t)i << 8 | 0x80, 2);    /* sequence number, last part */
	put(&p.bytes, 0x10, 1);				       /* uplink, version 1 */
	put(&p.bytes, (uint64_t)frame, 1);
	put(&p.bytes, (uint64_t)(in_frame / 2 << 12 | in_frame % 2 << 6 | i % 14), 2);
	for (int k = 0; k < sections; k++)
		add_section(&p, cell, (uint32_t)(i * 4 + k), prach, (uint32_t)(k * 64 + i % 64),
			    (uint32_t)(1 + (i * 5 + slot * 3 + k * 7) % 9));
	p.bytes[20] = (uint8_t)((p.bytes.size() - 22) >> 8);
	p.bytes[21] = (uint8_t)(p.bytes.size() - 22);
	return p;
}

static inline int num_packets(int cell, int slot)
{
	return 80 + (slot * 17 + cell * 29) % 90;
}

/* Whether a packet is sent during the slot before its own: not the first packet, and none of the
 * first slot of a frame, which the kernel would ignore. */
static inline bool is_early(int slot, int i)
{
	return slot > 0 && slot <= WHOLE_SLOTS && frame_of(slot) == frame_of(slot - 1) &&
	       i % 7 == 3;
}

/* The packets for the kernel of a slot, in the order of sending. The last one completes the slot,
 * because the kernel ends with the batch that completes it. */
static inline std::vector<packet> plan(int cell, int slot)
{
	std::mt19937 random((unsigned int)(cell * 100 + slot));
	const int frame = frame_of(slot);
	std::vector<packet> all;

	for (int i = 1; i < num_packets(cell, slot); i++)
		if (!is_early(slot, i))
			all.push_back(make_packet(cell, frame, slot, i, KEEP));
	for (int i = 0; i < num_packets(cell, slot + 1); i++)
		if (is_early(slot + 1, i))
			all.push_back(make_packet(cell, frame, slot + 1, i, EARLY));
	for (int i = 0; i < 3; i++) {
		all.push_back(make_packet(cell, frame + 1, slot, i, IGNORED));
		all.push_back(make_packet(cell, frame, slot + 2 + i, i, IGNORED));
		all.push_back(make_packet(cell, frame, slot - 1 + PER_FRAME, i, IGNORED));
	}
	for (size_t i = all.size(); i > 1; i--)
		std::swap(all[i - 1], all[random() % i]);
	if (slot < WHOLE_SLOTS)
		all.push_back(make_packet(cell, frame, slot, 0, KEEP));
	if (slot > WHOLE_SLOTS)
		all.clear();
	return all;
}

#endif
