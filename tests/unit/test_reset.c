/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A QP is reset many times, with every handler, with plain and collapsed CQs, and with
 * a proxy service if a CPU thread rings. Between resets it posts writes, some of them
 * unsignalled. Some resets happen while writes are in flight; all other writes must
 * arrive and complete. Also tests the computation of a CQ's producer index from the
 * firmware's 24-bit counter.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "../../qp/export/export.h"
#include "../lib/e2e.h"

#define DEPTH	  16u
#define ROUNDS	  40u
#define POSTS_MAX 40u
#define SIZE	  64u

struct kind {
	const char *name;
	enum doca_gpu_dev_verbs_nic_handler handler;
	enum doca_gpu_verbs_send_dbr_mode_ext dbr;
	bool collapsed;
	gdk_mode_t mode;
};

#define VALID	 DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR
#define NO_DBR	 DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW
#define EMULATED DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_SW_EMULATED

static const struct kind kinds[] = {
	{ "GPU_SM_DB", E2E_DB, VALID, false, E2E_MODE },
	{ "GPU_SM_DB, exclusive", E2E_DB, VALID, false, E2E_EXCL },
	{ "GPU_SM_DB, collapsed", E2E_DB, VALID, true, E2E_MODE },
	{ "GPU_SM_BF", E2E_BF, VALID, false, E2E_MODE },
	{ "GPU_SM_NO_DBR", E2E_NO_DBR, NO_DBR, false, E2E_MODE },
	{ "emulated", E2E_AUTO, EMULATED, false, E2E_MODE },
	{ "CPU_PROXY", E2E_PROXY, VALID, false, E2E_MODE },
	{ "CPU_PROXY, exclusive", E2E_PROXY, VALID, false, E2E_EXCL },
	{ "CPU_PROXY, collapsed", E2E_PROXY, VALID, true, E2E_MODE },
	{ "CPU_PROXY, no DBREC", E2E_PROXY, NO_DBR, false, E2E_MODE },
};

struct rig {
	struct e2e_nic nic;
	struct e2e_qp tx, rx;
	struct e2e_buf src, dst;
	struct doca_gpu_dev_verbs_qp *list;
	doca_gpu_verbs_service_t service;
	uint32_t random, psn;
};

static uint32_t draw(struct rig *r, uint32_t below)
{
	r->random = r->random * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)r->random * below >> 32);
}

/* Each connection has its own PSNs: packets of the previous connection may be in flight. */
static void connect(struct rig *r)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7, .psn = r->psn += 4096 };

	cr_assert_eq(e2e_connect(&r->nic, r->tx.hl->qp, &r->nic.gid, r->rx.qpn, path), 0);
	cr_assert_eq(e2e_connect(&r->nic, r->rx.hl->qp, &r->nic.gid, r->tx.qpn, path), 0);
}

/* Moves the device struct to a new flat list. */
static void list_again(struct rig *r)
{
	if (r->list)
		cr_assert_eq(doca_gpu_verbs_qp_flat_list_destroy_hl(r->list), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_qp_flat_list_create_hl(&r->tx.hl, 1, &r->list), DOCA_SUCCESS);
	r->tx.dev = r->list;
}

/* listed: put the device struct into a flat list */
static void rig_open(struct rig *r, const struct kind *k, bool listed)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = { 0 };
	struct doca_gpu_verbs_qp_hl *hl;

	memset(r, 0, sizeof(*r));
	e2e_open(&r->nic);
	attr.gpu_dev = r->nic.gpu;
	attr.net_dev = r->nic.dev;
	attr.ibpd = r->nic.pd;
	attr.sq_nwqe = DEPTH;
	attr.nic_handler = k->handler;
	attr.send_dbr_mode_ext = k->dbr;
	attr.cq_collapsed = k->collapsed;
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS, "%s: QP not created",
		     k->name);
	r->tx.hl = hl;
	if (listed)
		list_again(r);
	e2e_qp_adopt(&r->nic, &r->tx, hl);
	cr_assert(!listed || r->tx.dev == r->list);
	e2e_qp_open(&r->nic, &r->rx, E2E_DB, DEPTH);
	e2e_buf_open(&r->nic, &r->src, POSTS_MAX * SIZE, IBV_ACCESS_LOCAL_WRITE);
	e2e_buf_open(&r->nic, &r->dst, POSTS_MAX * SIZE, E2E_REMOTE);
	if (hl->qp_gverbs->cpu_proxy) {
		cr_assert_eq(doca_gpu_verbs_create_service(&r->service), DOCA_SUCCESS);
		cr_assert_eq(doca_gpu_verbs_service_monitor_qp(r->service, hl->qp_gverbs),
			     DOCA_SUCCESS);
	}
	connect(r);
}

static void rig_close(struct rig *r)
{
	if (r->service)
		cr_assert_eq(doca_gpu_verbs_destroy_service(r->service), DOCA_SUCCESS);
	e2e_qp_close(&r->tx);
	e2e_qp_close(&r->rx);
	if (r->list)
		cr_assert_eq(doca_gpu_verbs_qp_flat_list_destroy_hl(r->list), DOCA_SUCCESS);
	e2e_buf_close(&r->src);
	e2e_buf_close(&r->dst);
	e2e_close(&r->nic);
}

/* Posts n writes, signalled at random, but always the last one and one per half ring. */
static uint64_t post(struct rig *r, gdk_mode_t mode, uint32_t n)
{
	uint64_t idx = 0;

	for (uint32_t i = 0; i < n; i++) {
		bool signalled = i + 1 == n || i % (DEPTH / 2) == 0 || draw(r, 3) == 0;

		cr_assert_eq(gdk_reserve(r->tx.dev, 1, mode, 0, &idx), 0);
		gdk_wqe_rdma(r->tx.dev,
			     gdk_wqe_at(gdk_get_wqe_ptr(r->tx.dev, idx), (uint16_t)idx,
					DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE,
					signalled ? DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE : 0),
			     gdk_mem((uintptr_t)r->dst.mem + i * SIZE, gdk_key(r->dst.mr->rkey)),
			     gdk_mem((uintptr_t)r->src.mem + i * SIZE, gdk_key(r->src.mr->lkey)),
			     SIZE);
		gdk_mark_ready(r->tx.dev, idx, idx, mode, E2E_AUTO);
		if (i + 1 == n || draw(r, 2))
			gdk_submit(r->tx.dev, idx + 1, gdk_how(mode, E2E_AUTO, GDK_THREAD, 0));
	}
	return idx;
}

static void round_of_posts(struct rig *r, const struct kind *k, uint32_t round)
{
	uint32_t n = 1 + draw(r, POSTS_MAX);
	uint64_t last;

	for (uint32_t i = 0; i < n * SIZE; i++)
		r->src.mem[i] = e2e_pattern(i, round);
	last = post(r, k->mode, n);
	cr_assert_eq(last + 1, n, "%s: indices must start at 0 after a reset", k->name);
	if (draw(r, 4) == 0)
		return; /* the reset comes while the NIC or the proxy is busy */
	cr_assert_eq(gdk_wait_for(r->tx.dev, last, k->mode, E2E_WAIT_NS), 0,
		     "%s, round %u: %u writes not complete", k->name, round, n);
	cr_assert_eq(memcmp(r->src.mem, r->dst.mem, n * SIZE), 0, "%s, round %u: wrong data",
		     k->name, round);
}

Test(qp_reset, many_resets_with_random_signalling, .timeout = 100)
{
	struct rig r;

	for (unsigned int i = 0; i < 2 * sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (kinds[i / 2].dbr == NO_DBR && !e2e_has_no_dbr())
			continue;
		rig_open(&r, &kinds[i / 2], i % 2);
		r.random = i;
		for (uint32_t round = 0; round < ROUNDS; round++) {
			round_of_posts(&r, &kinds[i / 2], round);
			if (r.list && round % 4 == 0)
				list_again(&r);
			e2e_qp_reset(&r.tx);
			e2e_qp_reset(&r.rx);
			connect(&r);
		}
		rig_close(&r);
	}
}

/* ---- the producer index from a 24-bit counter ---- */

#define LAPS	  2048u
#define NEAR_WRAP 16775716u /* 1500 before 2^24: less than a lap, more than the counter may lag */

Test(qp_reset, counter_just_before_its_wrap)
{
	cr_expect_eq(gdk_cq_nearest(NEAR_WRAP, NEAR_WRAP % LAPS, LAPS, 0), NEAR_WRAP);
	cr_expect_eq(gdk_cq_nearest(NEAR_WRAP - 4, NEAR_WRAP % LAPS, LAPS, 0), NEAR_WRAP);
	cr_expect_eq(gdk_cq_extend(NEAR_WRAP, 0), NEAR_WRAP);
}

Test(qp_reset, counter_wrapped_since_the_last_reset)
{
	const uint64_t base = 0x2fffff0, now = 0x3000010;

	cr_expect_eq(gdk_cq_nearest(now & 0xffffff, now % LAPS, LAPS, base), now);
	cr_expect_eq(gdk_cq_nearest(0xffffff, now % LAPS, LAPS, base), now,
		     "a counter that lags by 17");
	cr_expect_eq(gdk_cq_extend(now & 0xffffff, base), now);
}

Test(qp_reset, counter_behind_the_last_reset)
{
	cr_expect_eq(gdk_cq_nearest(0xfffffc, 0, LAPS, 0), 0);
	cr_expect_eq(gdk_cq_nearest(4996, 5000 % LAPS, LAPS, 5000), 5000);
	cr_expect_eq(gdk_cq_nearest(4996, 5003 % LAPS, LAPS, 5000), 5003);
	cr_expect_eq(gdk_cq_extend(0xfffffc, 0), 0);
	cr_expect_eq(gdk_cq_extend(4996, 5000), 5000);
}
