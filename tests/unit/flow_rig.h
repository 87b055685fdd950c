/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * One raw packet QP that sends frames and three that receive by flow rules, all in this
 * process, and rules of ibv_create_flow. rig_open() and rig_close() are for each test.
 */
#ifndef FLOW_RIG_H
#define FLOW_RIG_H

#include "frame_rig.h"

#define QPS   3u
#define BATCH 8u /* receives that are posted at first */

static struct ibv_cq *cq[QPS];
static struct ibv_qp *qp[QPS];
static struct ibv_flow *flows[64];
static unsigned nflows;

static inline void rig_open(void)
{
	uint32_t i, k;

	raw_need();
	v = vb_open(SLOT * (1 + QPS * BATCH));
	frame = v.mem;
	send_cq = ibv_create_cq(v.ctx, 63, NULL, NULL, 0);
	sender = raw_qp(&v, send_cq, 16, 0, 0);
	raw_ready(sender);
	for (i = 0; i < QPS; i++) {
		cq[i] = ibv_create_cq(v.ctx, 63, NULL, NULL, 0);
		qp[i] = raw_qp(&v, cq[i], 0, 16, 0);
		raw_ready(qp[i]);
		for (k = 0; k < BATCH; k++)
			cr_assert_eq(vb_recv(&v, qp[i], k, SLOT * (1 + i * BATCH + k), SLOT), 0);
	}
	nflows = 0;
}

static inline void no_rules(void)
{
	while (nflows)
		cr_assert_eq(ibv_destroy_flow(flows[--nflows]), 0);
}

static inline void rig_close(void)
{
	uint32_t i;

	if (!v.ctx)
		return;
	no_rules();
	for (i = 0; i < QPS; i++) {
		cr_assert_eq(ibv_destroy_qp(qp[i]), 0);
		cr_assert_eq(ibv_destroy_cq(cq[i]), 0);
	}
	cr_assert_eq(ibv_destroy_qp(sender), 0);
	cr_assert_eq(ibv_destroy_cq(send_cq), 0);
	vb_close(&v);
}

/* ---- frames ---- */
static struct ibv_wc last[QPS];

/* Sends the frame and returns the set of QPs that receive it, each once. expected: wait until
 * these have it; for others only a short time. */
static inline unsigned received(unsigned expected)
{
	struct timespec nap = { 0, 300000 };
	unsigned got = 0, tries = 0;
	uint32_t i;

	raw_send(&v, sender, 0, len);
	cr_assert_eq(raw_wait(send_cq).status, IBV_WC_SUCCESS);
	while (tries < 3 || (got != expected && tries < 20000)) {
		for (i = 0; i < QPS; i++) {
			if (!ibv_poll_cq(cq[i], 1, &last[i]))
				continue;
			cr_assert_eq(last[i].status, IBV_WC_SUCCESS);
			cr_assert_eq(last[i].byte_len, len);
			cr_assert(!(got & 1u << i), "QP %u received the frame twice", i);
			cr_assert_arr_eq(v.mem + SLOT * (1 + i * BATCH + last[i].wr_id), frame,
					 len);
			cr_assert_eq(vb_recv(&v, qp[i], last[i].wr_id,
					     SLOT * (1 + i * BATCH + last[i].wr_id), SLOT),
				     0);
			got |= 1u << i;
		}
		tries++;
		nanosleep(&nap, NULL);
	}
	return got;
}

#define EXPECT(set) cr_assert_eq(received(set), (unsigned)(set))

/* ---- rules of verbs ---- */
static struct {
	struct ibv_flow_attr attr;
	uint8_t specs[512];
} rule;

static inline void rule_start(enum ibv_flow_attr_type type, uint16_t priority, uint32_t flags)
{
	memset(&rule, 0, sizeof(rule));
	rule.attr = (struct ibv_flow_attr){ .type = type,
					    .size = sizeof(rule.attr),
					    .priority = priority,
					    .port = 1,
					    .flags = flags };
}

/* Appends a spec and returns it. */
static inline void *rule_spec(uint32_t type, uint16_t size)
{
	struct ibv_flow_spec_eth *s = (void *)((uint8_t *)&rule + rule.attr.size);

	s->type = type;
	s->size = size;
	rule.attr.size = (uint16_t)(rule.attr.size + size);
	rule.attr.num_of_specs++;
	return s;
}

static inline void rule_dmac(const uint8_t *value)
{
	struct ibv_flow_spec_eth *s = rule_spec(IBV_FLOW_SPEC_ETH, sizeof(*s));

	memcpy(s->val.dst_mac, value, 6);
	memset(s->mask.dst_mac, 0xff, 6);
}

static inline struct ibv_flow *rule_add(unsigned to)
{
	struct ibv_flow *f = ibv_create_flow(qp[to], &rule.attr);

	cr_assert(f, "rule: %s", strerror(errno));
	return flows[nflows++] = f;
}

static inline struct ibv_flow *rule_for_dmac(uint16_t priority, uint32_t flags, unsigned to)
{
	rule_start(IBV_FLOW_ATTR_NORMAL, priority, flags);
	rule_dmac(dmac);
	return rule_add(to);
}

#endif
