/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * libFuzzer: packets of a hostile peer to one queue pair that sends and receives. An
 * input contains the queue pair's setup and a sequence of steps: a packet, whose PSN,
 * keys and lengths fit the connection if the input selects that; a work request or
 * another action of the local program; passes of the NIC's thread; a pause. The engine
 * must survive, and memory to which no key gives write access must not change.
 */
#include "rig.h"

#define STEPS 48

/* Bits of the first byte of a packet's description. */
enum {
	/* PSN: 0 expected, 1 in flight, 2 before the expected one, 3 from the input */
	CTL_PSN = 0x03,
	CTL_RAW = 0x04,	     /* only bytes of the input after the BTH */
	CTL_STRANGER = 0x08, /* sent from another address */
	CTL_ICRC = 0x10,     /* the ICRC is wrong */
	CTL_PAD = 0x20,	     /* pad count from the input instead of the length */
	CTL_ACKREQ = 0x40,
	CTL_ODD = 0x80, /* solicited event, P_Key, version and QP number from the input */
};

static uint32_t psn_of(struct fuzz_rig *r, uint8_t ctl, struct fuzz_in *in)
{
	uint32_t sent, expected, off;
	uint16_t ci;

	sn_eng_qp_query(&r->q.qp, &sent, &expected, &ci);
	if ((ctl & CTL_PSN) == 3)
		return fuzz_u32(in) & SN_PSN_MASK;
	if (!(ctl & CTL_PSN))
		return expected;
	off = fuzz_u8(in);
	return ((ctl & CTL_PSN) == 1 ? sent - 1 - off : expected - 1 - off) & SN_PSN_MASK;
}

static uint8_t *put_raddr(uint8_t *p, struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in);
	enum rig_region region = (enum rig_region)(how % 4 % RIG_REGIONS);

	sn_put64(p, (uintptr_t)rig_memory(region) + (how & 0x80 ? fuzz_u16(in) : how >> 4 << 3));
	sn_put32(p + 8, how & 8 ? fuzz_u32(in) : rig_key[region]);
	return p + 12;
}

/* Returns a length: below 64, a multiple of the MTU, near the MTU, or any 16-bit number. */
static uint32_t length_of(const struct fuzz_rig *r, struct fuzz_in *in)
{
	uint32_t mtu = r->q.qp.type == SN_QPT_UD ? 4096 : 128u << r->q.qp.path_mtu;
	uint8_t how = fuzz_u8(in);

	switch (how >> 6) {
	case 0:
		return how;
	case 1:
		return mtu * (how & 7);
	case 2:
		return mtu - 1 + (how & 3);
	}
	return fuzz_u16(in);
}

static bool has_imm(uint8_t op)
{
	op &= 0x1f;
	return op == SN_BTH_SEND_LAST_IMM || op == SN_BTH_SEND_ONLY_IMM ||
	       op == SN_BTH_WRITE_LAST_IMM || op == SN_BTH_WRITE_ONLY_IMM;
}

/* Writes the headers for the opcode, and payload. */
static uint8_t *put_body(struct fuzz_rig *r, uint8_t op, uint8_t *p, struct fuzz_in *in)
{
	uint8_t service = op >> 5, kind = op & 0x1f;
	uint32_t n;

	if (service == 3) { /* unreliable datagrams */
		sn_put32(p, RIG_QKEY);
		sn_put32(p + 4, fuzz_u8(in));
		p += 8;
	}
	if (sn_bth_atomic(op)) {
		p = put_raddr(p, in);
		n = op >= SN_BTH_MASKED_CS ? 32 : 16;
		memset(p, 0, n);
		fuzz_bytes(in, p, n);
		return p + n;
	}
	if (kind == SN_BTH_WRITE_FIRST || kind == SN_BTH_WRITE_ONLY ||
	    kind == SN_BTH_WRITE_ONLY_IMM || kind == SN_BTH_READ_REQ) {
		p = put_raddr(p, in);
		sn_put32(p, length_of(r, in));
		p += 4;
	}
	if (kind >= SN_BTH_RESP_FIRST && kind <= SN_BTH_ATOMIC_ACK && kind != SN_BTH_RESP_MIDDLE) {
		sn_put32(p, (uint32_t)fuzz_u8(in) << 24);
		p += 4;
	}
	if (has_imm(op)) {
		sn_put32(p, 0x12345678);
		p += 4;
	}
	if (kind == SN_BTH_READ_REQ || kind == SN_BTH_ACK)
		return p;
	n = kind == SN_BTH_ATOMIC_ACK ? 8 : length_of(r, in) % (4096 + 2);
	memset(p, 0xa5, n);
	return p + n;
}

/* Returns the ICRC that the NIC computes for a packet from the peer (see wire.c). */
static uint32_t icrc_of(const struct fuzz_rig *r, const uint8_t *bth, uint32_t len)
{
	uint8_t h[48] = { 0 };
	bool v4 = IN6_IS_ADDR_V4MAPPED(&r->peer);
	uint32_t udp = 8 + len + 4, head = v4 ? 28 : 48;
	uint8_t *u = h + head - 8;

	if (v4) {
		h[0] = 0x45;
		h[2] = (uint8_t)((20 + udp) >> 8);
		h[3] = (uint8_t)(20 + udp);
		h[6] = 0x40;
		h[9] = IPPROTO_UDP;
		memcpy(h + 12, r->peer.s6_addr + 12, 4);
		memcpy(h + 16, sn_dev->cfg.ip.s6_addr + 12, 4);
	} else {
		sn_put32(h, 6u << 28);
		h[4] = (uint8_t)(udp >> 8);
		h[5] = (uint8_t)udp;
		h[6] = IPPROTO_UDP;
		memcpy(h + 8, &r->peer, 16);
		memcpy(h + 24, &sn_dev->cfg.ip, 16);
	}
	u[0] = 0xc1; /* source port, as in stage.c */
	u[1] = 0x23;
	u[2] = 4791 >> 8;
	u[3] = 4791 & 0xff;
	u[4] = (uint8_t)(udp >> 8);
	u[5] = (uint8_t)udp;
	return sn_icrc(h, head, bth, len);
}

static void packet(struct fuzz_rig *r, struct fuzz_in *in)
{
	uint8_t ctl = fuzz_u8(in), op = fuzz_u8(in), odd = ctl & CTL_ODD ? fuzz_u8(in) : 0;
	uint32_t psn = psn_of(r, ctl, in), len, pad, icrc;
	struct in6_addr from = r->peer;
	uint8_t data[SN_PKT_DATA + 128], *p = data + 12;

	if (ctl & CTL_RAW) {
		len = fuzz_u8(in) % 128u;
		memset(p, 0, len);
		fuzz_bytes(in, p, len);
		p += len;
	} else {
		p = put_body(r, op, p, in);
	}
	len = (uint32_t)(p - data);
	pad = -len & 3;
	memset(p, 0, pad);
	len += ctl & CTL_PAD && odd & 0x40 ? 0 : pad;
	pad = ctl & CTL_PAD ? odd & 3 : pad;
	sn_put32(data, (uint32_t)op << 24 | (odd >> 2 & 1u) << 23 | 1u << 22 | pad << 20 |
			       (odd >> 3 & 1u) << 16 | (odd & 0x10 ? 0x7ffe : 0xffff));
	sn_put32(data + 4, odd & 0x20 ? RIG_QPN + 1 : RIG_QPN);
	sn_put32(data + 8, (uint32_t) !!(ctl & CTL_ACKREQ) << 31 | psn);
	if (ctl & CTL_STRANGER)
		from.s6_addr[15] ^= 0x40;
	icrc = htole32(icrc_of(r, data, len) ^ !!(ctl & CTL_ICRC));
	memcpy(data + len, &icrc, 4);
	fuzz_deliver(&from, data, len + 4);
}

/* ---- actions of the local program ---- */

static void post(struct fuzz_rig *r, struct fuzz_in *in)
{
	static const uint8_t ops[] = { SN_OP_SEND, SN_OP_SEND_IMM, SN_OP_WRITE, SN_OP_WRITE_IMM,
				       SN_OP_READ, SN_OP_READ,	   SN_OP_CS,	SN_OP_FA };
	uint8_t what = fuzz_u8(in), flags = fuzz_u8(in);
	struct fake_wqe w = { .opcode = ops[what & 7],
			      .fm = flags & 0xee,
			      .rkey = rig_key[RIG_ALL],
			      .nsge = 1 };

	if (r->q.qp.type == SN_QPT_UD || r->q.qp.state == SN_QPS_RST)
		return; /* fuzz_wqe.c covers these */
	w.raddr = (uintptr_t)rig_memory(RIG_ALL) + (what >> 4) * 8;
	w.sge[0].addr = rig_memory(flags & 1 ? RIG_LOCAL : RIG_ALL) + 64;
	w.sge[0].lkey = rig_key[flags & 1 ? RIG_LOCAL : RIG_ALL];
	w.sge[0].len = w.opcode == SN_OP_CS || w.opcode == SN_OP_FA
			       ? 8
			       : length_of(r, in) % (RIG_REGION / 2) + (what >> 3 & 1);
	fake_post(&r->q, &w);
}

static void step(struct fuzz_rig *r, struct fuzz_in *in)
{
	uint8_t what = fuzz_u8(in);

	switch (what & 7) {
	case 0:
	case 1:
	case 2:
		packet(r, in);
		if (what & 0x80)
			return;
		break;
	case 3:
		post(r, in);
		break;
	case 4:
		rig_recv(r, in, false);
		return;
	case 5:
		fuzz_sleep(1000ull << (what >> 3));
		break;
	case 6:
		rig_state(r, in);
		break;
	case 7:
		rig_program(r, in);
		return;
	}
	fuzz_passes(sn_dev, 1 + (what >> 5 & 3));
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
