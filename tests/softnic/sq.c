/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Send WQEs: reads them from the send ring between fetch and pi, checks them strictly
 * and turns them into messages, which no longer need the ring. An invalid WQE becomes
 * a message that completes with an error after the earlier ones. Flushing completes
 * all posted WQEs in order. requester.c sends the messages.
 */
#include <stdlib.h>

#include "eng.h"

#define INLINE_SEG 0x80000000u
#define AV_LEN	   48u
/* reserved bits of the third word, which also holds signature and flags */
#define CTRL_RESERVED 0x00ffff11u
#define FENCE_MAX     4u
#define CE_MASK	      0x0c
/* CE mode 1: only the first error of the queue writes a CQE; WQEs flushed later write none */
#define CE_FIRST_ERROR 0x04
#define EXTENDED       8u /* opcode modifier of a 4-byte masked atomic; plus 1: 8 bytes */

bool sn_sq_bad(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m, uint64_t *count,
	       const char *what, uint32_t value)
{
	sn_violation(count, "refusing QP 0x%x WQE %u: %s 0x%x", q->qp->qpn, m->idx & 0xffff, what,
		     value);
	m->synd = SN_SYND_LOC_OP;
	m->vendor = 0x68;
	m->local = true;
	(void)e;
	return false;
}

/* Copies the leading inline segments to m->data. Returns the address after them, or NULL if one
 * does not fit the WQE. */
static const uint8_t *parse_inline(struct sn_msg *m, const uint8_t *p, const uint8_t *end)
{
	uint32_t n;

	for (; p < end && (n = sn_get32(p)) & INLINE_SEG; p += (4 + n + 15) & ~15u) {
		n &= ~INLINE_SEG;
		if (n > (size_t)(end - p) - 4)
			return NULL;
		memcpy(m->data + m->inl_len, p + 4, n);
		m->inl_len += n;
		m->inl = true;
	}
	return p;
}

static bool parse_data(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m, const uint8_t *p,
		       const uint8_t *end)
{
	const uint8_t *data = parse_inline(m, p, end);
	uint64_t sum = m->inl_len;
	uint32_t n;

	if (!data)
		return sn_sq_bad(e, q, m, &e->dev->stats.bad_reserved,
				 "length of an inline segment exceeds the WQE, control word",
				 sn_get32(p));
	for (; data < end; data += 16) {
		n = sn_get32(data);
		if (n & INLINE_SEG)
			return sn_sq_bad(e, q, m, &e->dev->stats.bad_reserved,
					 "inline segment after a data segment, byte count", n);
		if (!n)
			n = INLINE_SEG; /* a count of 0 means 2 GiB */
		sn_msg_sges(m)[m->nsge++] = (struct sn_sge){ sn_get64(data + 8), n,
							     sn_get32(data + 4) };
		sum += n;
	}
	m->len = sum > SN_MAX_MSG ? SN_MAX_MSG + 1 : sum;
	return true;
}

/* Checks the length of the message and the keys and bounds of its whole gather list, before
 * anything is sent. */
static void check_local(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m, bool write)
{
	const struct sn_sge *sge = sn_msg_sges(m);
	unsigned i;

	if (m->len > SN_MAX_MSG && !m->synd) {
		m->synd = SN_SYND_LOC_LEN;
		m->vendor = 0x53;
	}
	for (i = 0; !m->synd && i < m->nsge; i++)
		if (!sn_mr_allows(e->dev, sge[i].lkey, q->qp->pdn, sge[i].addr, sge[i].len,
				  write)) {
			SN_COUNT(e, q->qp, local_prot_errors, 1);
			m->synd = SN_SYND_LOC_PROT;
			m->vendor = 0x51;
		}
	if (m->synd)
		m->local = true;
}

static const uint8_t *parse_raddr(struct sn_msg *m, const uint8_t *p)
{
	m->raddr = sn_get64(p);
	m->rkey = sn_get32(p + 8);
	return p + 16;
}

/* Reads the operands. CS: swap, compare. FA: add; the second is unused. Masked CS: swap, compare,
 * swap mask, compare mask. Masked FA: add, boundary. */
static const uint8_t *parse_atomic(struct sn_msg *m, const uint8_t *p, unsigned size)
{
	unsigned i, n = m->opcode == SN_OP_MASKED_CS ? 4 : 2;

	p = parse_raddr(m, p);
	for (i = 0; i < n; i++)
		m->operand[i] = size == 8 ? sn_get64(p + 8 * i) : sn_get32(p + 4 * i);
	if (m->opcode == SN_OP_MASKED_FA)
		m->operand[2] = m->operand[1];
	return p + (n * size < 16 ? 16 : n * size);
}

static const uint8_t *parse_av(struct sn_eng *e, struct sn_msg *m, const uint8_t *p)
{
	/* One field holds the LID, or over Ethernet the UDP source port. */
	bool ib = e->dev->cfg.infiniband;
	uint32_t grh = sn_get32(p + 28);
	struct sn_dest dest = { .dlid = (uint16_t)(p[14] << 8 | p[15]),
				.grh = !ib || grh >> 30 & 1,
				.sgid_index = (uint8_t)(grh >> 20) };

	m->ud.qkey = sn_get32(p);
	m->ud.qpn = sn_get32(p + 8) & 0xffffff;
	m->ud.way = (struct sn_way){ .sport = dest.dlid, .tclass = p[26], .hop_limit = p[27] };
	if (ib)
		m->ud.way.sport = 0;
	else /* the service level of a port of Ethernet has 3 bits (create_ib_ah() of Linux) */
		m->ud.way.tci = sn_vlan_tci(&e->dev->cfg, dest.sgid_index, p[12] >> 1 & 7);
	memcpy(dest.dgid, p + 32, 16);
	if (sn_dest_find(&e->dev->cfg, &dest, &m->ud.way.ip))
		m->ud.way.ip = in6addr_any;
	return p + AV_LEN;
}

/* Returns the bytes of an atomic's word, 8 for other opcodes; 0: the modifier is invalid for the
 * opcode. */
static unsigned atomic_size(uint8_t opcode, unsigned modifier)
{
	if (opcode == SN_OP_MASKED_CS || opcode == SN_OP_MASKED_FA)
		return modifier == EXTENDED ? 4 : modifier == EXTENDED + 1 ? 8 : 0;
	return modifier ? 0 : 8;
}

/* Returns the bytes of an opcode's segments before the data segments, without the address vector
 * of UD; 0: the opcode is not supported. */
static uint32_t fixed_bytes(uint8_t opcode, unsigned size)
{
	switch (opcode) {
	case SN_OP_NOP:
	case SN_OP_SEND:
	case SN_OP_SEND_IMM:
	case SN_OP_DUMP:
		return 16;
	case SN_OP_WRITE:
	case SN_OP_WRITE_IMM:
	case SN_OP_READ:
	case SN_OP_WAIT:
		return 32;
	case SN_OP_CS:
	case SN_OP_FA:
	case SN_OP_MASKED_FA:
		return 48;
	case SN_OP_MASKED_CS:
		return 32 + 4 * size;
	}
	return 0;
}

/* Returns whether the transport of the queue pair supports the opcode. */
static bool serves(enum sn_qp_type type, const struct sn_msg *m)
{
	if (m->opcode == SN_OP_WRITE || m->opcode == SN_OP_WRITE_IMM)
		return type != SN_QPT_UD;
	return type == SN_QPT_RC || !sn_msg_reads(m);
}

static bool parse_body(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m, const uint8_t *wqe,
		       uint32_t bytes)
{
	bool ud = q->qp->type == SN_QPT_UD &&
		  (m->opcode == SN_OP_SEND || m->opcode == SN_OP_SEND_IMM);
	unsigned size;
	const uint8_t *p = wqe + 16, *end = wqe + bytes;
	uint32_t need;

	if (m->opcode == SN_OP_MMO)
		return sn_dma_parse(e, q, m, wqe, bytes);
	size = atomic_size(m->opcode, wqe[0]);
	need = fixed_bytes(m->opcode, size);
	if (!need || !serves(q->qp->type, m) || (m->opcode == SN_OP_WAIT && !e->dev->cfg.cd))
		return sn_sq_bad(e, q, m, &e->dev->stats.bad_opcode,
				 "unknown or unsupported opcode", m->opcode);
	if (!size)
		return sn_sq_bad(e, q, m, &e->dev->stats.bad_reserved,
				 "opcode modifier invalid for the opcode:", wqe[0]);
	if (bytes < need + (ud ? AV_LEN : 0))
		return sn_sq_bad(e, q, m, &e->dev->stats.bad_reserved,
				 "WQE too short for its opcode, 16-byte units", bytes / 16);
	m->atomic_size = size;
	switch (m->opcode) {
	case SN_OP_NOP:
		m->local = true;
		return true;
	case SN_OP_WAIT:
		m->local = true;
		m->wait_index = sn_get32(p + 8);
		m->wait_cqn = sn_get32(p + 12) & 0xffffff;
		return true;
	case SN_OP_DUMP:
		m->local = true;
		break;
	case SN_OP_WRITE:
	case SN_OP_WRITE_IMM:
	case SN_OP_READ:
		p = parse_raddr(m, p);
		break;
	case SN_OP_SEND:
	case SN_OP_SEND_IMM:
		if (ud)
			p = parse_av(e, m, p);
		break;
	default:
		p = parse_atomic(m, p, size);
	}
	return parse_data(e, q, m, p, end);
}

static void check_semantics(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m)
{
	bool atomic = sn_msg_atomic(m), reads = sn_msg_reads(m);

	if (reads && m->inl)
		sn_sq_bad(e, q, m, &e->dev->stats.bad_reserved,
			  "inline data not allowed with opcode", m->opcode);
	else if ((atomic && m->len != m->atomic_size) ||
		 (q->qp->type == SN_QPT_UD && m->len > q->mtu)) {
		m->synd = SN_SYND_LOC_LEN;
		m->vendor = 0x53;
	}
	if (m->opcode != SN_OP_MMO)
		check_local(e, q, m, reads);
	if (m->local)
		m->npkts = 0;
	else if (atomic || !m->len)
		m->npkts = 1;
	else
		m->npkts = (m->len + q->mtu - 1) / q->mtu;
}

static void parse(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m, const uint8_t *wqe)
{
	uint32_t w0 = sn_get32(wqe), w1 = sn_get32(wqe + 4), w2 = sn_get32(wqe + 8);
	uint32_t ds = w1 & 0x3f;

	m->opcode = w0;
	m->fm = w2 & 0xff;
	m->solicited = m->fm & 2;
	memcpy(&m->imm, wqe + 12, 4);
	if ((w0 >> 8 & 0xffff) != (m->idx & 0xffff) || w1 >> 8 != q->qp->qpn)
		sn_sq_bad(e, q, m, &e->dev->stats.db_unwritten_wqe,
			  "rung before it was written, first control word", w0);
	else if (w1 & 0xc0 || w2 & CTRL_RESERVED || m->fm >> 5 > FENCE_MAX)
		sn_sq_bad(e, q, m, &e->dev->stats.bad_reserved, "reserved bits set in control word",
			  w2);
	else if (parse_body(e, q, m, wqe, ds * 16))
		check_semantics(e, q, m);
	if (m->synd)
		m->npkts = 0;
}

/* Returns the size in blocks of 64 bytes that the control segment contains; 0 is invalid. */
static uint32_t wqe_blocks(const uint8_t *wqe)
{
	uint32_t ds = sn_get32(wqe + 4) & 0x3f;

	return ds ? (ds + 3) / 4 : 0;
}

/* Doubles the circular array of messages. Returns false if it has its maximum size or no memory
 * can be allocated. */
static bool grow(struct sn_qp_eng *q)
{
	uint32_t n, size = q->nmsgs ? 2 * q->nmsgs : SN_MSGS_FIRST;
	struct sn_msg *msgs = size <= SN_MSGS ? calloc(size, sizeof(*msgs)) : NULL, *m;

	if (!msgs)
		return false;
	for (n = q->req.head; n != q->req.tail; n++) {
		m = &msgs[n & (size - 1)];
		*m = *sn_msg_at(q, n);
		if (m->sge == sn_msg_at(q, n)->few)
			m->sge = m->few;
	}
	free(q->msgs);
	q->msgs = msgs;
	q->nmsgs = size;
	return true;
}

/* Provides memory for the gather list or the inline data of a WQE. Returns false if none can be
 * allocated. */
static bool room_for(struct sn_msg *m, const uint8_t *wqe)
{
	uint32_t ds = sn_get32(wqe + 4) & 0x3f;

	if (ds <= 1 + SN_FEW_SGES)
		return true;
	if (!m->big && !(m->big = malloc(SN_WQE_MAX)))
		return false;
	m->data = m->big;
	return true;
}

void sn_sq_free(struct sn_qp_eng *q)
{
	uint32_t i;

	for (i = 0; i < q->nmsgs; i++)
		free(q->msgs[i].big);
	free(q->msgs);
	free(q->cache);
}

/* Turns the WQE at fetch into a message. Returns false if no memory can be allocated; the WQE
 * then stays in the ring. */
static bool fetch_one(struct sn_eng *e, struct sn_qp_eng *q)
{
	struct sn_msg *m = sn_msg_at(q, q->req.tail);
	uint8_t wqe[SN_WQE_MAX];
	uint32_t blocks;

	memset(m, 0, offsetof(struct sn_msg, sge));
	m->sge = m->few;
	m->idx = q->sq.fetch;
	m->blocks = 1;
	m->psn = q->req.next_psn;
	if (!sn_sq_read(q, q->sq.fetch, wqe, 1)) {
		m->synd = SN_SYND_LOC_PROT;
		m->vendor = 0x33;
		m->local = true;
	} else {
		blocks = wqe_blocks(wqe);
		if (!blocks || blocks > q->sq.pi - q->sq.fetch)
			sn_sq_bad(e, q, m, &e->dev->stats.db_unwritten_wqe,
				  "size is 0 or exceeds the rung index, blocks", blocks);
		else if (blocks > 1 && !sn_sq_read(q, q->sq.fetch, wqe, blocks))
			m->synd = SN_SYND_LOC_PROT, m->local = true;
		else if (!room_for(m, wqe))
			return false;
		else
			m->blocks = blocks, parse(e, q, m, wqe);
	}
	if (e->dev->cfg.trace)
		sn_trace_wqe(q, m);
	q->sq.fetch += m->blocks;
	q->req.tail++;
	q->req.next_psn = (q->req.next_psn + m->npkts) & SN_PSN_MASK;
	SN_COUNT(e, q->qp, wqes, 1);
	return true;
}

bool sn_sq_fetch(struct sn_eng *e, struct sn_qp_eng *q)
{
	bool any = false;

	while (q->sq.fetch != q->sq.pi && (q->req.tail - q->req.head < q->nmsgs || grow(q)) &&
	       fetch_one(e, q))
		any = true;
	return any;
}

static void flush_cqe(struct sn_eng *e, struct sn_qp_eng *q, uint32_t idx, uint8_t opcode,
		      uint8_t fm)
{
	struct sn_cqe_args a = { .opcode = SN_CQE_REQ_ERR,
				 .synd = SN_SYND_FLUSH,
				 .vendor = 0xf9,
				 .wqe_opcode = opcode,
				 .counter = idx };

	SN_COUNT(e, q->qp, flushed, 1);
	if ((fm & CE_MASK) == CE_FIRST_ERROR && q->req.ce_error)
		return;
	q->req.ce_error = true;
	sn_cqe_write(e, q->qp->scq, q->qp, &a);
}

void sn_sq_flush(struct sn_eng *e, struct sn_qp_eng *q)
{
	uint8_t wqe[64];
	uint32_t n;

	for (; q->req.head != q->req.tail; q->req.head++) {
		const struct sn_msg *m = sn_msg_at(q, q->req.head);

		flush_cqe(e, q, m->idx, m->opcode, m->fm);
	}
	q->req.cur = q->req.head;
	while (q->sq.fetch != q->sq.pi) {
		if (!sn_sq_read(q, q->sq.fetch, wqe, 1))
			memset(wqe, 0, sizeof(wqe));
		n = wqe_blocks(wqe);
		flush_cqe(e, q, q->sq.fetch, wqe[3], wqe[11]);
		q->sq.fetch += n && n <= q->sq.pi - q->sq.fetch ? n : 1;
	}
}
