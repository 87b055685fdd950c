/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Parses the send WQEs of Ethernet SQs and checks them strictly. Everything is checked
 * before the first frame is sent: reserved bits, opcode, lengths, keys and bounds, and the
 * headers that must be inline. An invalid WQE gets a syndrome for its error CQE. Layouts
 * are those of Linux (qp.h), rdma-core (mlx5dv.h) and DPDK (mlx5_prm.h).
 */
#include "eth_wqe.h"

#define INLINE_SEG    0x80000000u
#define CTRL_RESERVED 0x00ffff11u /* in the third word, as in sq.c */
#define FENCE_MAX     4u
#define ETH_SEG	      16u    /* offset of the Ethernet segment */
#define INSERT_VLAN   0x8000 /* in the word that otherwise is the length of the inline header */
#define INSERT_SVLAN  0x0001
#define WAIT_TIME     2u /* opcode modifier */
#define WAIT_DS	      3u
#define WAIT_REACHED  5u /* the operation "value is cyclically smaller than the time" */
#define VENDOR_BAD    0x68
#define VENDOR_LEN    0x53
#define VENDOR_PROT   0x51
enum { INLINE_NONE, INLINE_L2, INLINE_IP, INLINE_L4 }; /* min_wqe_inline_mode */

uint32_t sn_eth_mtu(const struct sn_eng *e)
{
	uint32_t mtu = e->dev->cfg.eth_mtu;

	return mtu && mtu < SN_ETH_MTU_MAX ? mtu : SN_ETH_MTU_MAX;
}

void sn_eth_wqe_bad(struct sn_qp_eng *q, struct sn_eth_wqe *w, uint64_t *count, const char *what,
		    uint32_t value)
{
	sn_violation(count, "refusing SQ 0x%x WQE %u: %s 0x%x", q->qp->qpn, w->idx & 0xffff, what,
		     value);
	w->synd = SN_SYND_LOC_OP;
	w->vendor = VENDOR_BAD;
}

static void reserved(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_wqe *w, const char *what,
		     uint32_t value)
{
	sn_eth_wqe_bad(q, w, &e->dev->stats.bad_reserved, what, value);
}

static void bad_length(struct sn_qp_eng *q, struct sn_eth_wqe *w, const char *what, uint32_t bytes)
{
	sn_trace("refusing SQ 0x%x WQE %u: %s, %u bytes", q->qp->qpn, w->idx & 0xffff, what, bytes);
	q->qp->eth->stats.too_long++;
	w->synd = SN_SYND_LOC_LEN;
	w->vendor = VENDOR_LEN;
}

/* ---- segments ---- */

/* The word after the metadata is the length of the inline header, or with INSERT_VLAN a tag. */
static uint32_t parse_eth(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_wqe *w,
			  uint32_t bytes)
{
	const uint8_t *p = w->raw + ETH_SEG;
	uint32_t word = sn_get32(p + 12), type = word >> 16, end;

	w->cs_flags = p[4];
	w->mss = p[6] << 8 | p[7];
	if (sn_get32(p) || p[5])
		reserved(e, q, w, "software parser is not supported, flags", p[5]);
	else if (w->cs_flags & ~(SN_ETH_L3_CSUM | SN_ETH_L4_CSUM))
		reserved(e, q, w, "unsupported checksum flags", w->cs_flags);
	if (w->synd)
		return 0;
	if (type & INSERT_VLAN) {
		if (type & ~(INSERT_VLAN | INSERT_SVLAN))
			reserved(e, q, w, "reserved bits set in the insertion type", type);
		w->vlan_proto = type & INSERT_SVLAN ? 0x88a8 : 0x8100;
		w->vlan = word;
		return ETH_SEG + 16;
	}
	w->hdr_len = type;
	end = (SN_ETH_HDR_AT + type + 15) & ~15u;
	if (end > bytes)
		reserved(e, q, w, "inline header exceeds the WQE, bytes", type);
	return end;
}

/* Adds the data segment at offset `at`. Returns the offset after it; 0: it is invalid. */
static uint32_t parse_piece(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_wqe *w,
			    uint32_t at, uint32_t bytes)
{
	struct sn_eth_piece *piece = &w->piece[w->npieces++];
	uint32_t n = sn_get32(w->raw + at);

	if (n & INLINE_SEG) {
		n &= ~INLINE_SEG;
		*piece = (struct sn_eth_piece){ .inl = true, .at = at + 4, .sge.len = n };
		if (n > bytes - at - 4) {
			reserved(e, q, w, "inline segment exceeds the WQE, bytes", n);
			return 0;
		}
		at += (4 + n + 15) & ~15u;
	} else {
		*piece = (struct sn_eth_piece){ .sge = { sn_get64(w->raw + at + 8),
							 n ? n : INLINE_SEG, /* 0: 2 GiB */
							 sn_get32(w->raw + at + 4) } };
		at += 16;
	}
	return at;
}

static void parse_pieces(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_wqe *w, uint32_t at,
			 uint32_t bytes)
{
	uint64_t sum = 0;

	while (at && at < bytes) {
		at = parse_piece(e, q, w, at, bytes);
		sum += w->piece[w->npieces - 1].sge.len;
	}
	w->len = sum < UINT32_MAX ? sum : UINT32_MAX;
}

static void check_keys(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_wqe *w)
{
	const struct sn_eth_piece *p;

	for (p = w->piece; p < w->piece + w->npieces && !w->synd; p++) {
		if (p->inl ||
		    sn_mr_allows(e->dev, p->sge.lkey, q->qp->pdn, p->sge.addr, p->sge.len, 0))
			continue;
		sn_trace("refusing SQ 0x%x WQE %u: key 0x%x does not allow %u bytes at 0x%llx",
			 q->qp->qpn, w->idx & 0xffff, p->sge.lkey, p->sge.len,
			 (unsigned long long)p->sge.addr);
		SN_COUNT(e, q->qp, local_prot_errors, 1);
		w->synd = SN_SYND_LOC_PROT;
		w->vendor = VENDOR_PROT;
	}
}

/* ---- frames ---- */

/* Number of the first bytes that must be inline. */
static uint32_t inline_need(const struct sn_eth_heads *h, uint8_t mode)
{
	if (mode == INLINE_NONE)
		return 0;
	if (mode == INLINE_L2 || !h->l4)
		return h->l3;
	return mode == INLINE_IP ? h->l4 : h->end;
}

/* Checks the length and the inline part of one frame: inl bytes inline, then `len` bytes of the
 * pieces from `first` on. */
static void check_frame(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_wqe *w, unsigned first,
			uint32_t inl, uint32_t len)
{
	uint8_t head[192], mode = q->qp->eth->min_inline;
	uint64_t total = (uint64_t)w->hdr_len + len;
	uint32_t n = w->hdr_len < sizeof(head) ? w->hdr_len : sizeof(head), more;
	struct sn_eth_heads h;

	if (total < SN_ETH_FRAME_MIN) {
		bad_length(q, w, "frame shorter than an Ethernet header", (uint32_t)total);
		return;
	}
	if (total <= sn_eth_mtu(e) + SN_ETH_FRAME_MIN && !mode)
		return;
	more = sn_min64(len, sizeof(head) - n);
	memcpy(head, w->raw + SN_ETH_HDR_AT, n);
	if (sn_eth_gather(e, q, w, first, 0, head + n, more)) {
		w->synd = SN_SYND_LOC_PROT;
		w->vendor = VENDOR_PROT;
		return;
	}
	sn_eth_heads(head, n + more, &h);
	if (total - h.l3 > sn_eth_mtu(e))
		bad_length(q, w, "frame longer than the MTU",
			   (uint32_t)sn_min64(total, UINT32_MAX));
	else if (inl < inline_need(&h, mode))
		reserved(e, q, w, "the SQ requires longer inline headers, inline bytes", inl);
}

static void check_send(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_wqe *w)
{
	if (w->mss) {
		reserved(e, q, w, "segment size without segmentation", w->mss);
		return;
	}
	check_frame(e, q, w, 0, w->hdr_len, w->len);
	w->frames = 1;
}

static void check_empw(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_wqe *w)
{
	unsigned i;

	if (!q->qp->eth->empw)
		sn_eth_wqe_bad(q, w, &e->dev->stats.bad_opcode,
			       "the SQ does not allow multi-packet WQEs, opcode", w->opcode);
	else if (w->mss || w->hdr_len || w->vlan_proto)
		reserved(e, q, w, "multi-packet WQE with segment size, header or VLAN",
			 sn_get32(w->raw + ETH_SEG + 12));
	else if (!w->npieces)
		reserved(e, q, w, "multi-packet WQE without packets, pieces", 0);
	for (i = 0; i < w->npieces && !w->synd; i++)
		check_frame(e, q, w, i, w->piece[i].inl ? w->piece[i].sge.len : 0,
			    w->piece[i].sge.len);
	w->frames = w->npieces;
}

static void check_tso(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_wqe *w)
{
	struct sn_eth_heads h;

	sn_eth_heads(w->raw + SN_ETH_HDR_AT, w->hdr_len, &h);
	if (!w->mss)
		reserved(e, q, w, "segmentation with segment size", 0);
	else if (h.cut || !h.l4 || h.proto != IPPROTO_TCP || h.fragment || h.end != w->hdr_len)
		reserved(e, q, w, "inline header is not exactly Ethernet, IP and TCP, bytes",
			 w->hdr_len);
	else if (w->len > SN_ETH_LSO_MAX)
		bad_length(q, w, "payload to segment too long", w->len);
	else if (w->hdr_len - h.l3 + sn_min64(w->mss, w->len) > sn_eth_mtu(e))
		bad_length(q, w, "segments longer than the MTU", w->mss);
	if (!w->synd)
		w->frames = w->len ? (w->len + w->mss - 1) / w->mss : 1;
}

static void parse_packets(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_wqe *w,
			  uint32_t bytes)
{
	uint32_t at;

	if (bytes < ETH_SEG + 16) {
		reserved(e, q, w, "WQE too short for its opcode, 16-byte units", bytes / 16);
		return;
	}
	at = parse_eth(e, q, w, bytes);
	if (!w->synd)
		parse_pieces(e, q, w, at, bytes);
	if (!w->synd)
		check_keys(e, q, w);
	if (w->synd)
		return;
	if (w->opcode == SN_OP_TSO)
		check_tso(e, q, w);
	else if (w->opcode == SN_OP_EMPW)
		check_empw(e, q, w);
	else
		check_send(e, q, w);
}

/* Bits above the highest one of the mask do not take part in the comparison, as with the masks of
 * DPDK, which are 2^n - 1. */
static void parse_wait(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_wqe *w, uint32_t bytes)
{
	const uint8_t *p = w->raw + 16;

	w->wait_value = sn_get64(p + 16);
	w->wait_mask = sn_get64(p + 24);
	if (bytes != WAIT_DS * 16)
		reserved(e, q, w, "wait for a time has 3 units of 16 bytes, not", bytes / 16);
	else if (sn_get32(p) != WAIT_REACHED)
		reserved(e, q, w, "unsupported operation of a wait", sn_get32(p));
	else if (sn_get32(p + 4) || sn_get64(p + 8))
		reserved(e, q, w, "wait for a time with a memory key", sn_get32(p + 4));
	else if (!w->wait_mask || w->wait_mask & (w->wait_mask + 1))
		reserved(e, q, w, "mask of a wait is not 2^n - 1, low bits", w->wait_mask);
}

/* A DUMP reads memory and sends nothing. Linux 6.12 posts it to SQs (en_accel/ktls_tx.c,
 * post_dump_wqe()): a control and a data segment. */
static void parse_dump(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_wqe *w, uint32_t bytes)
{
	if (bytes != 32) {
		reserved(e, q, w, "a DUMP has 2 units of 16 bytes, not", bytes / 16);
		return;
	}
	parse_pieces(e, q, w, 16, bytes);
	if (!w->synd)
		check_keys(e, q, w);
}

/* The opcode modifier selects the kind of a WAIT; it is 0 for the other opcodes. */
static bool supported(const struct sn_eng *e, uint8_t opcode, uint8_t modifier)
{
	switch (opcode) {
	case SN_OP_NOP:
	case SN_OP_SEND:
	case SN_OP_TSO:
	case SN_OP_EMPW:
	case SN_OP_DUMP:
		return !modifier;
	case SN_OP_WAIT:
		return modifier == WAIT_TIME && e->dev->cfg.wait_on_time;
	}
	return false;
}

void sn_eth_wqe_parse(struct sn_eng *e, struct sn_qp_eng *q, struct sn_eth_wqe *w)
{
	uint32_t w0 = sn_get32(w->raw), w1 = sn_get32(w->raw + 4), w2 = sn_get32(w->raw + 8);
	uint32_t bytes = (w1 & 0x3f) * 16;

	w->opcode = w0;
	w->fm = w2;
	if ((w0 >> 8 & 0xffff) != (w->idx & 0xffff) || w1 >> 8 != q->qp->qpn)
		sn_eth_wqe_bad(q, w, &e->dev->stats.db_unwritten_wqe,
			       "rung before it was written, first control word", w0);
	else if (w1 & 0xc0 || w2 & CTRL_RESERVED || w->fm >> 5 > FENCE_MAX)
		reserved(e, q, w, "reserved bits set in control word", w2);
	else if (!supported(e, w->opcode, w0 >> 24))
		sn_eth_wqe_bad(q, w, &e->dev->stats.bad_opcode, "unsupported modifier and opcode",
			       w0 & 0xff0000ff);
	else if (w->opcode == SN_OP_WAIT)
		parse_wait(e, q, w, bytes);
	else if (w->opcode == SN_OP_DUMP)
		parse_dump(e, q, w, bytes);
	else if (w->opcode != SN_OP_NOP)
		parse_packets(e, q, w, bytes);
	if (w->synd)
		w->frames = 0;
}
