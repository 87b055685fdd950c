/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * For tests of flow rules: work queues of verbs in place of RXQs, frames of frame_rig.h that a raw
 * packet QP sends, and the queues that receive them. The functions of eth.h that flow rules call
 * are here; they know these queues only.
 */
#ifndef STEER_RIG_H
#define STEER_RIG_H

#include "../../qp/eth/eth.h"
#include "doca_rdma_bridge.h"
#include "gdk_eth_steer.h"

#include "../lib/capture.h"
#include "../lib/nicfail.h"

#include "frame_rig.h"

#define QUEUES 4u
#define POSTED 32u
#define OK(call) \
	do { \
		doca_error_t ok_ = call; \
\
		cr_assert_eq(ok_, DOCA_SUCCESS, "%s returned %s", #call, \
			     doca_error_get_name(ok_)); \
	} while (0)

static struct doca_dev *dev;
static struct ibv_cq *wq_cq[QUEUES];
static struct ibv_wq *wq[QUEUES];
static struct doca_eth_rxq rxqs[QUEUES];
static struct doca_eth_rxq *rxq[QUEUES]; /* their addresses */

/* ---- the functions of eth.h ---- */
bool gdk_eth_rxq_runs(const struct doca_eth_rxq *q, const char *func)
{
	if (q->num)
		return true;
	fprintf(stderr, "%s: the queue does not run\n", func);
	return false;
}

struct doca_eth_rxq *gdk_eth_rxq_find(const struct doca_dev *of, uint16_t queue_id)
{
	uint32_t i;

	for (i = 0; i < QUEUES; i++)
		if (rxqs[i].ctx.dev == of && rxqs[i].queue_id == queue_id)
			return &rxqs[i];
	return NULL;
}

void gdk_eth_rxq_hold(struct doca_eth_rxq *q)
{
	atomic_fetch_add(&q->rules, 1);
}

void gdk_eth_rxq_release(struct doca_eth_rxq *q)
{
	cr_assert_geq(atomic_fetch_sub(&q->rules, 1), 1);
}

/* ---- queues ---- */
static inline void wq_post(uint32_t i, uint64_t id)
{
	struct ibv_sge sge = vb_sge(&v, SLOT * (1 + i * POSTED + id), SLOT);
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	cr_assert_eq(ibv_post_wq_recv(wq[i], &wr, &bad), 0);
}

static inline void wq_open(uint32_t i)
{
	struct ibv_wq_init_attr init = { .wq_type = IBV_WQT_RQ,
					 .max_wr = POSTED,
					 .max_sge = 1,
					 .pd = v.pd };
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	uint32_t k;

	init.cq = wq_cq[i] = ibv_create_cq(v.ctx, 63, NULL, NULL, 0);
	wq[i] = ibv_create_wq(v.ctx, &init);
	cr_assert(wq[i] && !ibv_modify_wq(wq[i], &attr));
	for (k = 0; k < POSTED; k++)
		wq_post(i, k);
	rxqs[i] = (struct doca_eth_rxq){ .ctx.dev = dev, .queue_id = (int32_t)i, .num = POSTED };
	rxqs[i].rq.number = wq[i]->wq_num;
	rxq[i] = &rxqs[i];
}

static inline void steer_open(void)
{
	uint32_t i;

	raw_need();
	v = vb_open(SLOT * (1 + QUEUES * POSTED));
	frame = v.mem;
	send_cq = ibv_create_cq(v.ctx, 63, NULL, NULL, 0);
	sender = raw_qp(&v, send_cq, 16, 0, 0);
	raw_ready(sender);
	OK(doca_rdma_bridge_open_dev_from_pd(v.pd, &dev));
	for (i = 0; i < QUEUES; i++)
		wq_open(i);
	nicfail_find();
}

/* Criterion does not count assertions of a teardown. */
#define MUST_END(ok) \
	do { \
		if (!(ok)) { \
			fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #ok); \
			abort(); \
		} \
	} while (0)

static inline void steer_close(void)
{
	uint32_t i;

	if (!v.ctx)
		return;
	MUST_END(!doca_dev_close(dev));
	for (i = 0; i < QUEUES; i++) {
		MUST_END(!atomic_load(&rxqs[i].rules));
		MUST_END(!ibv_destroy_wq(wq[i]));
		MUST_END(!ibv_destroy_cq(wq_cq[i]));
	}
	MUST_END(!ibv_destroy_qp(sender));
	MUST_END(!ibv_destroy_cq(send_cq));
	vb_close(&v);
	MUST_END(!nicfail_live());
}

/* ---- frames ---- */

/* Sends the frame and returns the set of queues that receive it, each once. expected: wait until
 * these have it; for others only a short time. */
static inline unsigned arrives(unsigned expected)
{
	struct timespec nap = { 0, 300000 };
	unsigned got = 0, tries = 0;
	struct ibv_wc wc;
	uint32_t i;

	raw_send(&v, sender, 0, len);
	cr_assert_eq(raw_wait(send_cq).status, IBV_WC_SUCCESS);
	for (; tries < 3 || (got != expected && tries < 20000); tries++) {
		for (i = 0; i < QUEUES; i++) {
			if (!ibv_poll_cq(wq_cq[i], 1, &wc))
				continue;
			cr_assert_eq(wc.status, IBV_WC_SUCCESS);
			cr_assert(!(got & 1u << i), "queue %u received the frame twice", i);
			cr_assert_arr_eq(v.mem + SLOT * (1 + i * POSTED + wc.wr_id), frame, len);
			wq_post(i, wc.wr_id);
			got |= 1u << i;
		}
		nanosleep(&nap, NULL);
	}
	return got;
}

#define AT(set)	 cr_expect_eq(arrives(set), (unsigned)(set), "line %d", __LINE__)
#define NOWHERE	 AT(0u)
#define QUEUE(i) AT(1u << (i))

/* Parts of the frames of frame_rig.h. */
#define SRC_IP	 0x0a010203u
#define DST_IP	 0x0a040506u
#define SRC_PORT 0x1111u
#define DST_PORT 0x2222u

static inline void udp4(void)
{
	build(4, IPPROTO_UDP, false);
}

static inline void tcp4(uint8_t flags)
{
	build(4, IPPROTO_TCP, false);
	frame[14 + 20 + 13] = flags;
}

static inline void icmp4(void)
{
	build(4, IPPROTO_ICMP, false);
}

#endif
