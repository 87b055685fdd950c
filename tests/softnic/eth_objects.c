/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Creation, look-up and destruction of the objects of raw Ethernet, with their reference
 * counts: an object that another one uses is busy. Firmware commands (cmd_eth*.c) and verbs
 * (uverbs_raw.c, uverbs_wq.c, uverbs_flow.c) check the attributes and call these functions.
 * flow.c orders the rules.
 */
#include "eth.h"
#include "front.h"

#include <errno.h>
#include <stdlib.h>

#define TDN_BASE	   0x10u
#define TISN_BASE	   0x20u
#define RQTN_BASE	   0x30u
#define TIRN_BASE	   0x40u
#define COUNTER_SET_BASE   1u
#define COUNTER_SETS	   255u /* the identifier has 8 bits, and 0 means none */
#define FLOW_COUNTER_SHIFT 16u	/* an identifier is (index + 1) << 16, plus the number in a bulk */
#define FLOW_COUNTERS	   0xffffu

/* ---- transport domains and TISes ---- */
struct sn_td *sn_td_create(struct sn_dev *dev, struct sn_ctx *ctx)
{
	struct sn_td *td = calloc(1, sizeof(*td));

	if (!td || sn_obj_publish(dev, ctx, SN_TD, &dev->front->tds, td, &td->tdn, &td->handle)) {
		free(td);
		return NULL;
	}
	td->tdn += TDN_BASE;
	return td;
}

struct sn_td *sn_find_td(struct sn_dev *dev, uint32_t tdn)
{
	return sn_table_get(&dev->front->tds, tdn - TDN_BASE);
}

int sn_td_destroy(struct sn_dev *dev, struct sn_td *td)
{
	if (td->users)
		return -EBUSY;
	sn_table_del(&dev->front->tds, td->tdn - TDN_BASE);
	sn_handle_del(dev, td->handle);
	free(td);
	return 0;
}

struct sn_tis *sn_tis_create(struct sn_dev *dev, struct sn_ctx *ctx, struct sn_td *td, uint8_t prio)
{
	struct sn_tis *tis = calloc(1, sizeof(*tis));

	if (!tis ||
	    sn_obj_publish(dev, ctx, SN_TIS, &dev->front->tiss, tis, &tis->tisn, &tis->handle)) {
		free(tis);
		return NULL;
	}
	tis->tisn += TISN_BASE;
	tis->td = td;
	tis->prio = prio;
	td->users++;
	return tis;
}

struct sn_tis *sn_find_tis(struct sn_dev *dev, uint32_t tisn)
{
	return sn_table_get(&dev->front->tiss, tisn - TISN_BASE);
}

int sn_tis_destroy(struct sn_dev *dev, struct sn_tis *tis)
{
	if (tis->users)
		return -EBUSY;
	tis->td->users--;
	sn_table_del(&dev->front->tiss, tis->tisn - TISN_BASE);
	sn_handle_del(dev, tis->handle);
	free(tis);
	return 0;
}

/* ---- the transport domain of a context ---- */
void sn_ctx_td_put(struct sn_dev *dev, struct sn_ctx *ctx)
{
	if (ctx->td && !sn_td_destroy(dev, ctx->td))
		ctx->td = NULL;
}

struct sn_td *sn_ctx_td(struct sn_dev *dev, struct sn_ctx *ctx)
{
	if (ctx->td)
		return ctx->td;
	ctx->td = sn_td_create(dev, ctx);
	if (ctx->td)
		sn_handle_hide(dev, ctx->td->handle);
	return ctx->td;
}

struct sn_tis *sn_ctx_tis(struct sn_dev *dev, struct sn_ctx *ctx)
{
	struct sn_td *td = sn_ctx_td(dev, ctx);
	struct sn_tis *tis = td ? sn_tis_create(dev, ctx, td, 0) : NULL;

	if (tis)
		sn_handle_hide(dev, tis->handle);
	else
		sn_ctx_td_put(dev, ctx);
	return tis;
}

void sn_ctx_tis_put(struct sn_dev *dev, struct sn_ctx *ctx, struct sn_tis *tis)
{
	sn_tis_destroy(dev, tis);
	sn_ctx_td_put(dev, ctx);
}

/* ---- counters ---- */

/* Lets sn_table_add() choose a free index below `limit`, in rotation. Returns false if there is
 * none. */
static bool stay_below(struct sn_table *t, uint32_t limit)
{
	uint32_t i;

	for (i = 0; i < limit; i++, t->next++) {
		if (t->next >= limit)
			t->next = 0;
		if (!t->slot[t->next])
			return true;
	}
	return false;
}

struct sn_counter_set *sn_counter_set_create(struct sn_dev *dev, struct sn_ctx *ctx)
{
	struct sn_counter_set *set;

	if (!stay_below(&dev->front->counter_sets, COUNTER_SETS))
		return NULL;
	set = calloc(1, sizeof(*set));
	if (!set || sn_obj_publish(dev, ctx, SN_COUNTER_SET, &dev->front->counter_sets, set,
				   &set->id, &set->handle)) {
		free(set);
		return NULL;
	}
	set->id += COUNTER_SET_BASE;
	return set;
}

struct sn_counter_set *sn_find_counter_set(struct sn_dev *dev, uint32_t id)
{
	return sn_table_get(&dev->front->counter_sets, id - COUNTER_SET_BASE);
}

int sn_counter_set_destroy(struct sn_dev *dev, struct sn_counter_set *set)
{
	if (set->users)
		return -EBUSY;
	sn_table_del(&dev->front->counter_sets, set->id - COUNTER_SET_BASE);
	sn_handle_del(dev, set->handle);
	free(set);
	return 0;
}

struct sn_flow_counter *sn_flow_counter_create(struct sn_dev *dev, struct sn_ctx *ctx, uint32_t n)
{
	struct sn_flow_counter *c;

	if (!stay_below(&dev->front->flow_counters, FLOW_COUNTERS))
		return NULL;
	c = calloc(1, sizeof(*c));
	if (c)
		c->count = calloc(n, sizeof(*c->count));
	if (!c || !c->count ||
	    sn_obj_publish(dev, ctx, SN_FLOW_COUNTER, &dev->front->flow_counters, c, &c->id,
			   &c->handle)) {
		if (c)
			free(c->count);
		free(c);
		return NULL;
	}
	c->id = (c->id + 1) << FLOW_COUNTER_SHIFT;
	c->n = n;
	return c;
}

struct sn_flow_counter *sn_find_flow_counter(struct sn_dev *dev, uint32_t id, uint32_t *index)
{
	struct sn_flow_counter *c = sn_table_get(&dev->front->flow_counters,
						 (id >> FLOW_COUNTER_SHIFT) - 1);

	*index = id & ((1u << FLOW_COUNTER_SHIFT) - 1);
	return c && *index < c->n ? c : NULL;
}

int sn_flow_counter_destroy(struct sn_dev *dev, struct sn_flow_counter *counter)
{
	if (counter->users)
		return -EBUSY;
	sn_table_del(&dev->front->flow_counters, (counter->id >> FLOW_COUNTER_SHIFT) - 1);
	sn_handle_del(dev, counter->handle);
	free(counter->count);
	free(counter);
	return 0;
}

/* ---- send and receive queues ---- */
static void eth_refs(struct sn_eth *eth, int delta)
{
	if (eth->tis)
		eth->tis->users += delta;
	if (eth->counters)
		eth->counters->users += delta;
}

int sn_eth_qp_add(struct sn_dev *dev, struct sn_ctx *ctx, struct sn_qp *qp, enum sn_kind kind)
{
	int rc = sn_eng_eth_open(dev);

	if (!rc)
		rc = sn_qp_add_as(dev, ctx, qp, kind);
	if (!rc)
		eth_refs(qp->eth, 1);
	return rc;
}

void sn_eth_set_counters(struct sn_eth *eth, struct sn_counter_set *counters)
{
	eth_refs(eth, -1);
	eth->counters = counters;
	eth_refs(eth, 1);
}

int sn_eth_qp_destroy(struct sn_dev *dev, struct sn_qp *qp)
{
	if (qp->eth->users)
		return -EBUSY;
	eth_refs(qp->eth, -1);
	return sn_qp_destroy(dev, qp);
}

struct sn_qp *sn_find_rq(struct sn_dev *dev, uint32_t rqn)
{
	struct sn_qp *qp = sn_find_qp(dev, rqn);

	return qp && qp->type == SN_QPT_RQ ? qp : NULL;
}

/* ---- tables of receive queues ---- */
static void rqt_refs(struct sn_rqt *rqt, int delta)
{
	uint32_t i;

	for (i = 0; i < rqt->n; i++)
		rqt->rq[i]->eth->users += delta;
}

static void rqt_fill(struct sn_rqt *rqt, struct sn_qp *const *rq, uint32_t n)
{
	memcpy(rqt->rq, rq, n * sizeof(struct sn_qp *));
	rqt->n = n;
	rqt_refs(rqt, 1);
}

struct sn_rqt *sn_rqt_create(struct sn_dev *dev, struct sn_ctx *ctx, struct sn_qp *const *rq,
			     uint32_t n, uint32_t max)
{
	struct sn_rqt *rqt = calloc(1, sizeof(*rqt));

	if (rqt)
		rqt->rq = calloc(max ? max : 1, sizeof(struct sn_qp *));
	if (!rqt || !rqt->rq || n > max ||
	    sn_obj_publish(dev, ctx, SN_RQT, &dev->front->rqts, rqt, &rqt->rqtn, &rqt->handle)) {
		if (rqt)
			free(rqt->rq);
		free(rqt);
		return NULL;
	}
	rqt->rqtn += RQTN_BASE;
	rqt->max = max;
	rqt_fill(rqt, rq, n);
	return rqt;
}

int sn_rqt_modify(struct sn_rqt *rqt, struct sn_qp *const *rq, uint32_t n)
{
	if (n > rqt->max)
		return -EINVAL;
	rqt_refs(rqt, -1);
	rqt_fill(rqt, rq, n);
	return 0;
}

struct sn_rqt *sn_find_rqt(struct sn_dev *dev, uint32_t rqtn)
{
	return sn_table_get(&dev->front->rqts, rqtn - RQTN_BASE);
}

int sn_rqt_destroy(struct sn_dev *dev, struct sn_rqt *rqt)
{
	if (rqt->users)
		return -EBUSY;
	rqt_refs(rqt, -1);
	sn_table_del(&dev->front->rqts, rqt->rqtn - RQTN_BASE);
	sn_handle_del(dev, rqt->handle);
	free(rqt->rq);
	free(rqt);
	return 0;
}

/* ---- TIRs ---- */
static void tir_refs(struct sn_tir *tir, int delta)
{
	if (tir->td)
		tir->td->users += delta;
	if (tir->rq)
		tir->rq->eth->users += delta;
	if (tir->rqt)
		tir->rqt->users += delta;
}

struct sn_tir *sn_tir_create(struct sn_dev *dev, struct sn_ctx *ctx, const struct sn_tir *from)
{
	struct sn_tir *tir = malloc(sizeof(*tir));

	if (!tir)
		return NULL;
	*tir = *from;
	tir->users = 0;
	if (sn_obj_publish(dev, ctx, SN_TIR, &dev->front->tirs, tir, &tir->tirn, &tir->handle)) {
		free(tir);
		return NULL;
	}
	tir->tirn += TIRN_BASE;
	tir_refs(tir, 1);
	return tir;
}

void sn_tir_modify(struct sn_tir *tir, const struct sn_tir *from)
{
	struct sn_tir old = *tir;

	tir_refs(tir, -1);
	*tir = *from;
	tir->handle = old.handle;
	tir->tirn = old.tirn;
	tir->td = old.td;
	tir->users = old.users;
	tir_refs(tir, 1);
}

int sn_tir_destroy(struct sn_dev *dev, struct sn_tir *tir)
{
	if (tir->users)
		return -EBUSY;
	tir_refs(tir, -1);
	sn_table_del(&dev->front->tirs, tir->tirn - TIRN_BASE);
	sn_handle_del(dev, tir->handle);
	free(tir);
	return 0;
}

/* ---- rules ---- */
static void rule_refs(struct sn_rule *rule, int delta)
{
	if (rule->tir)
		rule->tir->users += delta;
	if (rule->held)
		rule->held->users += delta;
	if (rule->counter)
		rule->counter->users += delta;
	if (rule->bytes_counter)
		rule->bytes_counter->users += delta;
	if (rule->matcher)
		rule->matcher->users += delta;
}

struct sn_rule *sn_rule_create(struct sn_dev *dev, struct sn_ctx *ctx, const struct sn_rule *from)
{
	struct sn_rule *rule = sn_eng_eth_open(dev) ? NULL : malloc(sizeof(*rule));

	if (!rule)
		return NULL;
	*rule = *from;
	rule->packets = rule->bytes = 0;
	rule->handle = sn_handle_add(dev, ctx, SN_RULE, rule);
	if (!rule->handle) {
		free(rule);
		return NULL;
	}
	rule_refs(rule, 1);
	sn_flow_insert(dev, rule);
	return rule;
}

int sn_rule_destroy(struct sn_dev *dev, struct sn_rule *rule)
{
	struct sn_rule *partner = rule->partner;

	if (partner) {
		partner->partner = NULL;
		sn_rule_destroy(dev, partner);
	}
	sn_stats_rule_gone(dev, rule);
	sn_flow_remove(rule);
	rule_refs(rule, -1);
	sn_handle_del(dev, rule->handle);
	free(rule);
	return 0;
}
