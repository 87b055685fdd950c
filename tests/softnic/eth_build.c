/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Builds the frames of a checked send WQE: inline header and gathered data, insertion of
 * a VLAN tag, TCP segmentation, and checksums. Payload is read through the memory keys,
 * from host or GPU memory.
 */
#include <errno.h>

#include "eth_wqe.h"

#define ETHERTYPE_AT 12u
#define TCP_FIN	     0x01
#define TCP_PSH	     0x08
#define TCP_CWR	     0x80

static uint16_t get16(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

static void put16(uint8_t *p, uint16_t v)
{
	p[0] = v >> 8;
	p[1] = v;
}

/* ---- headers ---- */

static uint32_t transport_len(const uint8_t *p, uint32_t room, uint8_t proto)
{
	if (proto == IPPROTO_UDP)
		return 8;
	if (proto != IPPROTO_TCP || room < 13)
		return 0;
	return (p[12] >> 4) * 4u;
}

/* Finds layer 4. Extension headers of IPv6 are not followed: proto is then the first of them. */
static void find_l4(const uint8_t *p, uint32_t len, struct sn_eth_heads *h)
{
	const uint8_t *ip = p + h->l3;
	uint32_t room = len - h->l3, head = 40, l4;

	if (h->ip == 4 && room >= 20) {
		head = (ip[0] & 15) * 4u;
		h->proto = ip[9];
		h->fragment = get16(ip + 6) & 0x3fff;
	} else if (h->ip == 6 && room >= 40) {
		h->proto = ip[6];
	} else {
		h->cut = true;
		return;
	}
	if (ip[0] >> 4 != h->ip || head < 20 || head > room) {
		h->cut = true;
		return;
	}
	h->l4 = h->end = h->l3 + head;
	l4 = transport_len(p + h->l4, room - head, h->proto);
	if (!l4 || l4 > room - head || (h->proto == IPPROTO_TCP && l4 < 20))
		h->cut = true;
	else
		h->end += l4;
}

void sn_eth_heads(const uint8_t *p, uint32_t len, struct sn_eth_heads *h)
{
	unsigned tags = 0;
	uint16_t type;

	*h = (struct sn_eth_heads){ .l3 = SN_ETH_FRAME_MIN, .cut = len < SN_ETH_FRAME_MIN };
	if (h->cut)
		return;
	type = get16(p + ETHERTYPE_AT);
	while ((type == 0x8100 || type == 0x88a8) && tags++ < SN_ETH_TAGS_MAX &&
	       len >= h->l3 + SN_ETH_VLAN_LEN) {
		h->l3 += SN_ETH_VLAN_LEN;
		type = get16(p + h->l3 - 2);
	}
	h->end = h->l3;
	h->ip = type == 0x0800 ? 4 : type == 0x86dd ? 6 : 0;
	if (h->ip)
		find_l4(p, len, h);
}

/* ---- payload ---- */

int sn_eth_gather(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_eth_wqe *w, unsigned first,
		  uint32_t off, uint8_t *dst, uint32_t len)
{
	const struct sn_eth_piece *p = w->piece + first;
	uint32_t n;

	for (; len && p < w->piece + w->npieces; p++) {
		if (off >= p->sge.len) {
			off -= p->sge.len;
			continue;
		}
		n = p->sge.len - off < len ? p->sge.len - off : len;
		if (p->inl)
			memcpy(dst, w->raw + p->at + off, n);
		else if (sn_mr_read(e->dev, p->sge.lkey, q->qp->pdn, p->sge.addr + off, n, 0, dst))
			return -EFAULT;
		dst += n;
		len -= n;
		off = 0;
	}
	return len ? -EFAULT : 0;
}

/* ---- checksums ---- */

static void ip_checksum(uint8_t *ip)
{
	put16(ip + 10, 0);
	put16(ip + 10, ~sn_csum_fold(sn_csum_add(0, ip, (ip[0] & 15) * 4u)));
}

/* The parser has checked the lengths. The UDP length may be less than the rest of the IP packet;
 * the checksum covers it alone. */
static void l4_checksum(uint8_t *frame, const struct sn_parsed *p)
{
	uint8_t *l4 = frame + p->l4_off, *field = l4 + (p->l4 == IPPROTO_TCP ? 16 : 6);
	uint32_t len = p->l3_off + p->l3_len - p->l4_off;
	uint16_t sum;

	if (p->l4 == IPPROTO_UDP)
		len = get16(l4 + 4);
	put16(field, 0);
	sum = ~sn_csum_fold(sn_csum_add(sn_csum_pseudo(frame, p, len), l4, len));
	put16(field, sum || p->l4 == IPPROTO_TCP ? sum : 0xffff);
}

void sn_eth_checksum(struct sn_frame *f, const struct sn_parsed *p, uint8_t cs_flags)
{
	if (cs_flags & SN_ETH_L4_CSUM && p->l4)
		l4_checksum(f->data, p);
	if (cs_flags & SN_ETH_L3_CSUM && p->ip == 4)
		ip_checksum(f->data + p->l3_off);
}

/* ---- frames ---- */

static void insert_tag(const struct sn_eth_wqe *w, struct sn_frame *f)
{
	memmove(f->data + ETHERTYPE_AT + SN_ETH_VLAN_LEN, f->data + ETHERTYPE_AT,
		f->len - ETHERTYPE_AT);
	put16(f->data + ETHERTYPE_AT, w->vlan_proto);
	put16(f->data + ETHERTYPE_AT + 2, w->vlan);
	f->len += SN_ETH_VLAN_LEN;
}

/* Adapts the headers of segment n, of `len` bytes of payload. */
static void edit_segment(const struct sn_eth_wqe *w, uint32_t n, uint32_t len, uint8_t *frame)
{
	struct sn_eth_heads h;
	uint8_t *ip, *tcp;

	sn_eth_heads(frame, w->hdr_len, &h);
	ip = frame + h.l3;
	tcp = frame + h.l4;
	if (h.ip == 4) {
		put16(ip + 2, w->hdr_len - h.l3 + len);
		put16(ip + 4, get16(ip + 4) + n);
	} else {
		put16(ip + 4, w->hdr_len - h.l4 + len);
	}
	sn_put32(tcp + 4, sn_get32(tcp + 4) + n * w->mss);
	if (n)
		tcp[13] &= ~TCP_CWR;
	if (n + 1 < w->frames)
		tcp[13] &= ~(TCP_FIN | TCP_PSH);
}

int sn_eth_build(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_eth_wqe *w, uint32_t n,
		 struct sn_frame *f)
{
	bool tso = w->opcode == SN_OP_TSO, empw = w->opcode == SN_OP_EMPW;
	uint32_t off = tso ? n * w->mss : 0, len = empw ? w->piece[n].sge.len : w->len - off;

	if (tso && len > w->mss)
		len = w->mss;
	sn_mem_plan(tso ? sn_min64(w->len - off, SN_ETH_PASS_FRAMES * w->mss) : 0);
	memcpy(f->data, w->raw + SN_ETH_HDR_AT, w->hdr_len);
	if (sn_eth_gather(e, q, w, empw ? n : 0, off, f->data + w->hdr_len, len))
		return -EFAULT;
	f->len = w->hdr_len + len;
	if (tso)
		edit_segment(w, n, len, f->data);
	if (w->vlan_proto)
		insert_tag(w, f);
	return 0;
}
