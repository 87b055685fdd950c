/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Receives Ethernet frames: finds the rules, selects an RQ by each rule's TIR, writes the
 * frame to a receive WQE, and reports it by a CQE. Fields of the CQE are as Linux's and
 * DPDK's mlx5 drivers read them. The device counts each frame once, by the best outcome of
 * its rules; each RQ counts what happened to its copy.
 */
#include <zlib.h>

#include "eng.h"
#include "eth.h"
#include "eth_wqe.h"

#define MACS	   12u /* destination and source */
#define TAG	   4u
#define FCS	   4u
#define CACHE_LINE 64u
#define VENDOR_LEN 0x6a /* vendor syndromes, as for SENDs */
#define VENDOR_MEM 0x33

/* hdr_type_etc of the CQE */
enum {
	HDR_VLAN_STRIPPED = 1 << 0,
	HDR_IP_OPTIONS = 1 << 1,
	HDR_IPV6 = 1 << 2,
	HDR_IPV4 = 2 << 2,
	HDR_TCP_NO_ACK = 1 << 4,
	HDR_UDP = 2 << 4,
	HDR_TCP_ACK_EMPTY = 3 << 4,
	HDR_TCP_ACK_DATA = 4 << 4,
	HDR_FRAGMENT = 1 << 7,
	HDR_L2_OK = 1 << 8,
	HDR_L3_OK = 1 << 9,
	HDR_L4_OK = 1 << 10,
};
#define TCP_FLAG_ACK 0x10

/* Outcomes of a frame, the best one last. */
enum outcome { NO_RULE, DROPPED, NOT_READY, TOO_LONG, NO_BUFFER, FAULT, DELIVERED };

struct arrival {
	const struct sn_frame *f;
	struct sn_parsed p;
	bool local; /* sent by this process */
};

/* ---- rules ---- */

/* The rule from which the search continues after `last`, which may be NULL. */
static struct sn_rule *search_from(struct sn_eng *e, const struct sn_rule *last)
{
	struct sn_rule *r = last ? last->next : e->dev->rules;

	while (r && last && last->default_miss && r->order < SN_ORDER_LEFTOVERS)
		r = r->next;
	return r;
}

/*
 * Returns the next rule that receives the frame, after `last` (NULL: the first one). *decider is
 * the first match that ends the search: after it, only rules that are the same as it receive.
 * Among rules of equal order, only those that are the same as the first match receive.
 */
static struct sn_rule *next_rule(struct sn_eng *e, const struct arrival *a, struct sn_rule *last,
				 struct sn_rule **decider)
{
	const struct sn_rule *first = *decider ? *decider : last;
	struct sn_rule *r = sn_flow_find(search_from(e, last), &a->p, false);

	while (r && first && r->order == first->order && !sn_rule_same(r, first))
		r = sn_flow_find(r->next, &a->p, false);
	if (r && *decider && r->order != (*decider)->order)
		return NULL;
	if (r && !r->sniffer && !r->default_miss)
		*decider = r;
	return r;
}

static bool blocked(const struct arrival *a, const struct sn_tir *tir)
{
	uint8_t permit = a->f->data[0] & 1 ? SN_LOOPBACK_MULTICAST : SN_LOOPBACK_UNICAST;

	return a->local && tir->td && a->f->tdn == tir->td->tdn && !(tir->self_lb_block & permit);
}

/* The RQ that receives the frame by this rule; NULL: none. */
static struct sn_qp *select_rq(const struct arrival *a, const struct sn_rule *r,
			       struct sn_cqe_eth *c)
{
	if (r->drop || !r->tir || blocked(a, r->tir))
		return NULL;
	c->hash = sn_eth_hash(r->tir, a->f->data, &a->p, &c->hash_type);
	return sn_eth_pick(r->tir, c->hash);
}

static bool is_ready(const struct sn_qp *rq)
{
	return rq->state == SN_QPS_RTS && rq->eng;
}

static bool share_wqes(const struct sn_qp *a, const struct sn_qp *b)
{
	return a == b || (a->srq && a->srq == b->srq);
}

/* The number of WQEs that the rules up to `last` take from this RQ, or from its RMP. */
static uint32_t wqes_needed(struct sn_eng *e, const struct arrival *a, const struct sn_rule *last,
			    const struct sn_qp *rq)
{
	struct sn_rule *r = NULL, *decider = NULL;
	struct sn_cqe_eth c;
	struct sn_qp *other;
	uint32_t n = 0;

	while (r != last && (r = next_rule(e, a, r, &decider))) {
		other = select_rq(a, r, &c);
		n += other && is_ready(other) && share_wqes(other, rq);
	}
	return n;
}

/* Whether an RQ that receives the frame is ready, but has too few WQEs. */
static bool any_full(struct sn_eng *e, const struct arrival *a)
{
	struct sn_rule *r = NULL, *decider = NULL;
	struct sn_cqe_eth c;
	struct sn_qp *rq;

	while ((r = next_rule(e, a, r, &decider))) {
		rq = select_rq(a, r, &c);
		if (rq && is_ready(rq) && sn_rq_left(rq->eng) < wqes_needed(e, a, r, rq))
			return true;
	}
	return false;
}

/* ---- completion ---- */

static uint16_t header_type(const struct sn_parsed *p)
{
	uint16_t t = HDR_L2_OK;

	if (p->ip)
		t |= p->ip == 4 ? HDR_IPV4 : HDR_IPV6;
	if (p->ip_options)
		t |= HDR_IP_OPTIONS;
	if (p->fragment)
		t |= HDR_FRAGMENT;
	if (p->l4 == IPPROTO_UDP)
		t |= HDR_UDP;
	else if (p->l4 && !(p->tcp_flags & TCP_FLAG_ACK))
		t |= HDR_TCP_NO_ACK;
	else if (p->l4)
		t |= p->tcp_empty ? HDR_TCP_ACK_EMPTY : HDR_TCP_ACK_DATA;
	return t | (p->l3_ok ? HDR_L3_OK : 0) | (p->l4_ok ? HDR_L4_OK : 0);
}

/* The sum covers the IP packet, without VLAN tags and without padding. Linux's mlx5 driver adds
 * these unless the device has cqe_checksum_full (en_rx.c, mlx5e_skb_csum_fixup). */
static uint16_t packet_sum(const struct arrival *a)
{
	if (!a->p.ip)
		return 0;
	return sn_csum_fold(sn_csum_add(0, a->f->data + a->p.l3_off, a->p.l3_len));
}

static void report_error(struct sn_eng *e, struct sn_qp *rq, uint32_t idx, uint8_t synd)
{
	struct sn_cqe_args args = { .opcode = SN_CQE_RESP_ERR,
				    .synd = synd,
				    .vendor = synd == SN_SYND_LOC_LEN ? VENDOR_LEN : VENDOR_MEM,
				    .counter = (uint16_t)idx };

	sn_cqe_write(e, rq->rcq, rq, &args);
}

/* ---- one RQ ---- */

/* An RQ whose WQEs or buffers cannot be accessed reports it and goes to error. */
static enum outcome rq_fault(struct sn_eng *e, struct sn_qp *rq, uint32_t idx, uint8_t synd)
{
	report_error(e, rq, idx, synd);
	sn_event_async_qp(e->dev, rq, SN_ASYNC_WQ_FATAL);
	sn_eth_qp_modify(e->dev, rq, SN_QPS_ERR);
	return FAULT;
}

/* Writes zeros after the frame up to a multiple of 64 bytes, at most to the end of the WQE's
 * memory. */
static uint8_t pad_end(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_rwqe *w, uint32_t len)
{
	static const uint8_t zeros[CACHE_LINE];
	uint32_t pad = -len % CACHE_LINE;

	if (pad > w->len - len)
		pad = w->len - len;
	return sn_rq_scatter(e, q, w, len, zeros, pad);
}

/* Writes the frame to the WQE. Returns 0 or a syndrome, and the number of bytes in *bytes. */
static uint8_t write_frame(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_rwqe *w,
			   const struct arrival *a, bool strip, uint32_t *bytes)
{
	const struct sn_eth *eth = q->qp->eth;
	const struct sn_frame *f = a->f;
	uint32_t skip = strip ? TAG : 0, n = f->len - skip, head = strip ? MACS : 0;
	uint32_t fcs;
	uint8_t synd;

	*bytes = n + (eth->scatter_fcs ? FCS : 0);
	if (*bytes > w->len)
		return SN_SYND_LOC_LEN;
	synd = sn_rq_scatter(e, q, w, 0, f->data, head);
	if (!synd)
		synd = sn_rq_scatter(e, q, w, head, f->data + head + skip, n - head);
	if (!synd && eth->scatter_fcs) {
		fcs = htole32((uint32_t)crc32(0, f->data, f->len));
		synd = sn_rq_scatter(e, q, w, n, &fcs, FCS);
	}
	if (!synd && eth->end_pad)
		synd = pad_end(e, q, w, *bytes);
	return synd;
}

static enum outcome no_buffer(struct sn_qp *rq)
{
	rq->eth->stats.out_of_buffer++;
	if (rq->eth->counters)
		rq->eth->counters->out_of_buffer++;
	return NO_BUFFER;
}

static enum outcome deliver(struct sn_eng *e, struct sn_qp *rq, const struct arrival *a,
			    struct sn_cqe_eth *c)
{
	struct sn_cqe_args args = { .opcode = SN_CQE_RESP_SEND, .eth = c };
	bool strip = a->p.vlan && !rq->eth->keep_vlan;
	struct sn_rwqe w = { .idx = rq->eng->rsp.rq_ci };
	int got = sn_rq_take(e, rq->eng, &w);
	uint8_t synd;

	if (!got)
		return no_buffer(rq);
	if (got < 0)
		return rq_fault(e, rq, w.idx, SN_SYND_LOC_OP);
	synd = write_frame(e, rq->eng, &w, a, strip, &args.byte_cnt);
	if (synd == SN_SYND_LOC_LEN) { /* the RQ stays ready */
		rq->eth->stats.too_long++;
		report_error(e, rq, w.idx, synd);
		return TOO_LONG;
	}
	if (synd)
		return rq_fault(e, rq, w.idx, synd);
	c->type = header_type(&a->p) | (strip ? HDR_VLAN_STRIPPED : 0);
	c->vlan = strip ? a->p.tci : 0;
	c->csum = packet_sum(a);
	args.counter = (uint16_t)w.idx;
	rq->eth->stats.frames++;
	rq->eth->stats.frame_bytes += args.byte_cnt;
	sn_cqe_write(e, rq->rcq, rq, &args);
	return DELIVERED;
}

static enum outcome apply(struct sn_eng *e, const struct arrival *a, struct sn_rule *r)
{
	struct sn_cqe_eth c = { .flow_tag = r->set_tag ? r->tag : 0 };
	struct sn_qp *rq;

	sn_rule_hit(r, a->f->len);
	rq = select_rq(a, r, &c);
	if (e->dev->cfg.trace)
		sn_trace_rule(a->f, r, rq);
	if (r->drop || (r->tir && blocked(a, r->tir)))
		return DROPPED;
	if (!r->tir)
		return NO_RULE;
	if (!rq)
		return NOT_READY;
	if (!is_ready(rq)) {
		rq->eth->stats.not_ready++;
		return NOT_READY;
	}
	return deliver(e, rq, a, &c);
}

/* ---- frames ---- */

static void count(struct sn_stats *s, enum outcome o)
{
	uint64_t *const by[] = {
		[NO_RULE] = &s->eth_no_rule,	     [DROPPED] = &s->eth_rule_dropped,
		[NOT_READY] = &s->eth_not_ready,     [TOO_LONG] = &s->eth_too_long,
		[NO_BUFFER] = &s->eth_out_of_buffer, [FAULT] = &s->eth_rx_faults,
		[DELIVERED] = &s->eth_delivered,
	};

	++*by[o];
}

static bool length_ok(const struct sn_frame *f)
{
	return f->len >= SN_ETH_FRAME_MIN && f->len <= SN_ETH_FRAME_MAX;
}

/* The port drops frames that exceed the MTU before the rules see them. */
static bool within_mtu(struct sn_eng *e, const struct arrival *a)
{
	return a->f->len - a->p.l2_len <= sn_eth_mtu(e);
}

static enum outcome apply_all(struct sn_eng *e, const struct arrival *a)
{
	struct sn_rule *r = NULL, *decider = NULL;
	enum outcome best = NO_RULE, o;

	if (!within_mtu(e, a))
		return TOO_LONG;
	while ((r = next_rule(e, a, r, &decider))) {
		o = apply(e, a, r);
		best = o > best ? o : best;
	}
	if (best == NO_RULE && e->dev->cfg.trace)
		sn_trace_frame("rx", a->f, ", no rule");
	return best;
}

enum sn_eth_result sn_eth_receive(struct sn_eng *e, const struct sn_frame *f, bool may_wait)
{
	struct sn_stats *s = &e->dev->stats;
	struct arrival a = { .f = f, .local = f->local };
	bool valid = length_ok(f) && !f->corrupt;

	if (valid)
		sn_eth_parse(f->data, f->len, &a.p);
	if (valid && may_wait && within_mtu(e, &a) && any_full(e, &a))
		return SN_ETH_FULL;
	s->eth_rx_frames++;
	s->eth_rx_bytes += f->len;
	if (valid)
		count(s, apply_all(e, &a));
	else
		++*(length_ok(f) ? &s->eth_fcs_errors : &s->eth_malformed);
	return SN_ETH_TAKEN;
}

/* Does not change the device's counters, because they count received frames only. */
void sn_eth_copy(struct sn_eng *e, const struct sn_frame *f, struct sn_rule *rule)
{
	struct arrival a = { .f = f };

	sn_eth_parse(f->data, f->len, &a.p);
	apply(e, &a, rule);
}

/* Ignores rules whose TIR does not receive frames of the sender's transport domain. */
bool sn_eth_wants(struct sn_eng *e, const struct sn_frame *f)
{
	struct arrival a = { .f = f, .local = true };
	struct sn_rule *r = NULL, *decider = NULL;

	if (!e->dev->rules || !length_ok(f))
		return false;
	sn_eth_parse(f->data, f->len, &a.p);
	while ((r = next_rule(e, &a, r, &decider)))
		if (!r->tir || !blocked(&a, r->tir))
			return true;
	return false;
}

void sn_eth_rq_flush(struct sn_eng *e, struct sn_qp_eng *q)
{
	if (q->qp->eth->flush_in_error)
		sn_rq_flush(e, q);
}
