/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The counters of Ethernet send queues, receive queues and flow rules in the report, including
 * those of destroyed objects. stats.c calls these functions for the text and for the JSON file.
 * eth_send.c, eth_recv.c and flow.c increment the counters. eth.h declares them.
 */
#include "eth.h"
#include "front.h"
#include "text.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define TEXT_LINES 64u /* objects of each kind listed in the text; the JSON file lists all */

enum { SQS, RQS, RULES, KINDS };

static const char *const array_names[KINDS] = { "sqs", "rqs", "rules" };
static const char *const text_names[KINDS] = { "send queues", "receive queues", "flow rules" };

/* Counters of struct sn_qp_stats that SQs and RQs have, too. */
/* clang-format off */
#define QUEUE_STATS(X) \
	X(doorbells) X(blueflame) X(db_recovered) X(wqes) X(cqes) X(error_cqes) X(flushed) \
	X(local_prot_errors)
/* clang-format on */

struct queue_record {
	uint32_t number, cqn;
	struct sn_qp_stats stats;
	struct sn_eth_stats eth;
};

struct rule_record {
	uint64_t order, packets, bytes;
	uint8_t match[SN_MATCH_LEN], mask[SN_MATCH_LEN];
	bool egress, drop, sniffer, set_tag;
	uint32_t tag, tirn, rqn, rqtn; /* 0: none */
};

/* The first SN_GONE_MAX destroyed objects of each kind that had traffic. */
struct sn_eth_gone {
	void *of[KINDS]; /* queue_record or rule_record */
	uint32_t n[KINDS], unlisted[KINDS];
};

static const struct {
	const char *name;
	size_t off;
} fields[] = {
#define QP_ROW(n)  { #n, offsetof(struct queue_record, stats.n) },
#define ETH_ROW(n) { #n, offsetof(struct queue_record, eth.n) },
	QUEUE_STATS(QP_ROW) SN_ETH_STATS(ETH_ROW)
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static uint64_t value(const struct queue_record *q, size_t field)
{
	return *(const uint64_t *)((const char *)q + fields[field].off);
}

/* ---- records ---- */

static struct queue_record queue_record(const struct sn_qp *qp)
{
	const struct sn_cq *cq = qp->type == SN_QPT_SQ ? qp->scq : qp->rcq;

	return (struct queue_record){ .number = qp->qpn,
				      .cqn = cq ? cq->cqn : 0,
				      .stats = qp->stats,
				      .eth = qp->eth->stats };
}

static struct rule_record rule_record(const struct sn_rule *rule)
{
	const struct sn_tir *tir = rule->tir;
	struct rule_record r = { .order = rule->order,
				 .packets = rule->packets,
				 .bytes = rule->bytes,
				 .egress = rule->egress,
				 .drop = rule->drop,
				 .sniffer = rule->sniffer,
				 .set_tag = rule->set_tag,
				 .tag = rule->tag };

	memcpy(r.match, rule->match, sizeof(r.match));
	memcpy(r.mask, rule->mask, sizeof(r.mask));
	if (tir) {
		r.tirn = tir->tirn;
		r.rqn = tir->rq ? tir->rq->qpn : 0;
		r.rqtn = tir->rqt ? tir->rqt->rqtn : 0;
	}
	return r;
}

/* Returns room for one more record, or NULL if the limit is reached or there is no memory. */
static void *add_gone(struct sn_dev *dev, int kind, size_t size)
{
	struct sn_eth_gone *g = dev->eth_gone;

	if (!g)
		g = dev->eth_gone = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	if (!sn_stats_grow(&g->of[kind], g->n[kind], size)) {
		g->unlisted[kind]++;
		return NULL;
	}
	return (char *)g->of[kind] + size * g->n[kind]++;
}

void sn_stats_eth_gone(struct sn_dev *dev, const struct sn_qp *qp)
{
	struct queue_record now = queue_record(qp), *r;
	uint64_t any = 0;
	size_t i;

	for (i = 0; i < FIELDS; i++)
		any |= value(&now, i);
	if (!any)
		return;
	r = add_gone(dev, qp->type == SN_QPT_SQ ? SQS : RQS, sizeof(*r));
	if (r)
		*r = now;
}

void sn_stats_rule_gone(struct sn_dev *dev, const struct sn_rule *rule)
{
	struct rule_record *r;

	if (!rule->packets)
		return;
	r = add_gone(dev, RULES, sizeof(*r));
	if (r)
		*r = rule_record(rule);
}

void sn_stats_eth_forget(struct sn_dev *dev)
{
	int i;

	if (!dev->eth_gone)
		return;
	for (i = 0; i < KINDS; i++)
		free(dev->eth_gone->of[i]);
	free(dev->eth_gone);
	dev->eth_gone = NULL;
}

/* ---- what a rule matches ---- */

enum how { HEX, DEC, MAC, IP };

/* Fields of the outer headers: first byte, lowest bit of the field's 32-bit word or 0, bits. */
static const struct match_field {
	const char *name;
	uint8_t byte, shift, bits;
	enum how how;
} match_fields[] = {
	{ "smac", 0x00, 0, 48, MAC },	    { "ethertype", 0x04, 0, 16, HEX },
	{ "dmac", 0x08, 0, 48, MAC },	    { "priority", 0x0c, 13, 3, DEC },
	{ "vlan", 0x0c, 0, 12, DEC },	    { "protocol", 0x10, 24, 8, DEC },
	{ "dscp", 0x10, 18, 6, DEC },	    { "ecn", 0x10, 16, 2, DEC },
	{ "cvlan_tag", 0x10, 15, 1, DEC },  { "svlan_tag", 0x10, 14, 1, DEC },
	{ "fragment", 0x10, 13, 1, DEC },   { "ip_version", 0x10, 9, 4, DEC },
	{ "tcp_flags", 0x10, 0, 9, HEX },   { "tcp_sport", 0x14, 16, 16, DEC },
	{ "tcp_dport", 0x14, 0, 16, DEC },  { "l4_type", 0x18, 30, 2, DEC },
	{ "ihl", 0x18, 12, 4, DEC },	    { "ttl", 0x18, 0, 8, DEC },
	{ "udp_sport", 0x1c, 16, 16, DEC }, { "udp_dport", 0x1c, 0, 16, DEC },
	{ "src", 0x20, 0, 128, IP },	    { "dst", 0x30, 0, 128, IP },
};

static uint32_t bits_of(const uint8_t *match, const struct match_field *f)
{
	uint32_t word;

	memcpy(&word, match + f->byte, 4);
	return ntohl(word) >> f->shift & ((1u << f->bits) - 1);
}

/* An IPv4 address is in the last four bytes. */
static void put_ip(struct sn_text *t, const uint8_t *p, bool v4)
{
	char text[INET6_ADDRSTRLEN];

	sn_text_add(t, "%s",
		    inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? p + 12 : p, text, sizeof(text)));
}

static void put_value(struct sn_text *t, const uint8_t *match, const struct match_field *f, bool v4)
{
	const uint8_t *p = match + f->byte;

	if (f->how == MAC)
		sn_text_add(t, "%02x:%02x:%02x:%02x:%02x:%02x", p[0], p[1], p[2], p[3], p[4], p[5]);
	else if (f->how == IP)
		put_ip(t, p, v4);
	else
		sn_text_add(t, f->how == HEX ? "0x%x" : "%u", bits_of(match, f));
}

/* Whether all bits of the field are 0 (ones: 1). */
static bool all_bits(const uint8_t *mask, const struct match_field *f, bool v4, bool ones)
{
	uint32_t i, first = v4 ? 12 : 0;

	if (f->bits < 32)
		return bits_of(mask, f) == (ones ? (1u << f->bits) - 1 : 0);
	for (i = f->how == IP ? first : 0; i < f->bits / 8; i++)
		if (mask[f->byte + i] != (ones ? 0xff : 0))
			return false;
	return true;
}

static void put_match(struct sn_text *t, const struct rule_record *r)
{
	static const uint8_t none[12];
	const char *sep = "";
	size_t i;

	for (i = 0; i < sizeof(match_fields) / sizeof(match_fields[0]); i++) {
		const struct match_field *f = &match_fields[i];
		bool v4 = f->how == IP && !memcmp(r->mask + f->byte, none, sizeof(none));

		if (all_bits(r->mask, f, v4, false))
			continue;
		sn_text_add(t, "%s%s ", sep, f->name);
		put_value(t, r->match, f, v4);
		if (!all_bits(r->mask, f, v4, true)) {
			sn_text_add(t, "/");
			put_value(t, r->mask, f, v4);
		}
		sep = " ";
	}
	if (!*sep)
		sn_text_add(t, "all");
}

static void put_action(struct sn_text *t, const struct rule_record *r)
{
	const char *to = r->drop ? "drop" : r->tirn ? "" : "count";

	sn_text_add(t, "%s", to);
	if (r->tirn)
		sn_text_add(t, "%sTIR 0x%x", *to ? ", " : "", r->tirn);
	if (r->rqn)
		sn_text_add(t, " RQ 0x%x", r->rqn);
	if (r->rqtn)
		sn_text_add(t, " RQT 0x%x", r->rqtn);
	if (r->set_tag)
		sn_text_add(t, ", tag 0x%x", r->tag);
	if (r->sniffer)
		sn_text_add(t, ", copy");
}

/* ---- report ---- */

struct report {
	FILE *f; /* JSON; NULL: text to fd */
	int fd;
	int kind;
	unsigned n;
};

static void queue_json(const struct report *r, const struct queue_record *q)
{
	size_t i;

	fprintf(r->f, "\"%s\": %u, \"cqn\": %u", r->kind == SQS ? "sqn" : "rqn", q->number, q->cqn);
	for (i = 0; i < FIELDS; i++)
		fprintf(r->f, ", \"%s\": %" PRIu64, fields[i].name, value(q, i));
}

static void queue_text(const struct report *r, const struct queue_record *q, struct sn_text *t)
{
	size_t i;

	sn_text_add(t, "%s 0x%x CQ 0x%x:", r->kind == SQS ? "sq" : "rq", q->number, q->cqn);
	for (i = 0; i < FIELDS; i++)
		if (value(q, i))
			sn_text_add(t, " %s %" PRIu64, fields[i].name, value(q, i));
}

static void rule_json(const struct report *r, const struct rule_record *rule)
{
	char match[512], action[128];
	struct sn_text m = { match, sizeof(match) }, a = { action, sizeof(action) };

	put_match(&m, rule);
	put_action(&a, rule);
	fprintf(r->f,
		"\"direction\": \"%s\", \"order\": %" PRIu64 ", \"match\": \"%s\", "
		"\"action\": \"%s\", \"tirn\": %u, \"packets\": %" PRIu64 ", \"bytes\": %" PRIu64,
		rule->egress ? "send" : "receive", rule->order, match, action, rule->tirn,
		rule->packets, rule->bytes);
}

static void rule_text(const struct rule_record *rule, struct sn_text *t)
{
	sn_text_add(t, "rule %s ", rule->egress ? "send" : "receive");
	put_match(t, rule);
	sn_text_add(t, " -> ");
	put_action(t, rule);
	sn_text_add(t, ": packets %" PRIu64 " bytes %" PRIu64, rule->packets, rule->bytes);
}

static void one(struct report *r, const void *record)
{
	char line[1024];
	struct sn_text t = { line, sizeof(line) };

	r->n++;
	if (r->f) {
		fprintf(r->f, "%s\n  {", r->n > 1 ? "," : "");
		if (r->kind == RULES)
			rule_json(r, record);
		else
			queue_json(r, record);
		fputc('}', r->f);
		return;
	}
	if (r->n > TEXT_LINES)
		return;
	if (r->kind == RULES)
		rule_text(record, &t);
	else
		queue_text(r, record, &t);
	dprintf(r->fd, "  %s\n", line);
}

static void one_queue(struct sn_qp *qp, void *arg)
{
	struct report *r = arg;
	struct queue_record now;

	if (!qp->eth || qp->type != (r->kind == SQS ? SN_QPT_SQ : SN_QPT_RQ))
		return;
	now = queue_record(qp);
	one(r, &now);
}

static void one_kind(struct sn_dev *dev, struct report *r)
{
	const struct sn_eth_gone *g = dev->eth_gone;
	size_t size = r->kind == RULES ? sizeof(struct rule_record) : sizeof(struct queue_record);
	const struct sn_rule *rule;
	struct rule_record now;
	uint32_t i;

	for (i = 0; g && i < g->n[r->kind]; i++)
		one(r, (const char *)g->of[r->kind] + size * i);
	if (r->kind != RULES) {
		sn_for_each_qp(dev, one_queue, r);
		return;
	}
	for (rule = dev->rules; rule; rule = rule->next) {
		now = rule_record(rule);
		one(r, &now);
	}
}

static uint32_t unlisted(const struct sn_dev *dev, int kind)
{
	return dev->eth_gone ? dev->eth_gone->unlisted[kind] : 0;
}

void sn_stats_eth_json(struct sn_dev *dev, FILE *f)
{
	struct report r = { .f = f };

	for (r.kind = 0; r.kind < KINDS; r.kind++) {
		r.n = 0;
		fprintf(f, ",\n \"%s_unlisted\": %u,\n \"%s\": [", array_names[r.kind],
			unlisted(dev, r.kind), array_names[r.kind]);
		one_kind(dev, &r);
		fputc(']', f);
	}
}

void sn_stats_eth_text(struct sn_dev *dev, int fd)
{
	struct report r = { .fd = fd };
	uint32_t more;

	for (r.kind = 0; r.kind < KINDS; r.kind++) {
		r.n = 0;
		one_kind(dev, &r);
		more = unlisted(dev, r.kind) + (r.n > TEXT_LINES ? r.n - TEXT_LINES : 0);
		if (more)
			dprintf(fd, "  %u more %s not listed\n", more, text_names[r.kind]);
	}
}
