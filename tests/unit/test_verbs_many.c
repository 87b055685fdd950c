/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * 1024 QPs of one process, many of them on each register page. All QPs ring several
 * times before any completion is polled, so doorbells may overwrite each other; no
 * message may be lost. Then one QP is busy while the others are idle.
 */
#include "../lib/vb.h"

#define QPS    1024u
#define ROUNDS 8u

static struct ibv_qp *qps[QPS];
static struct vb v;
static uint64_t *from, *to; /* one word per QP and round */

static void post_word(uint32_t i, uint32_t round)
{
	size_t word = (size_t)round * QPS + i;
	struct ibv_sge sge = { .addr = (uintptr_t)&from[word], .length = 8, .lkey = v.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = word,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { .remote_addr = (uintptr_t)&to[word],
					       .rkey = v.mr->rkey } },
			   *bad;

	from[word] = word * 0x9e3779b97f4a7c15ull + 1;
	cr_assert_eq(ibv_post_send(qps[i], &wr, &bad), 0);
}

/* The messages of each QP must complete in the order in which they were posted. */
static void collect(struct ibv_cq *cq, uint32_t *next, uint32_t count)
{
	struct ibv_wc wc;
	uint32_t i;

	while (count--) {
		wc = vb_wc(cq);
		cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
		i = (uint32_t)(wc.wr_id % QPS);
		cr_assert_eq(wc.wr_id / QPS, next[i], "QP %u: out of order", i);
		next[i]++;
		cr_assert_eq(wc.qp_num, qps[i]->qp_num);
		cr_assert_eq(to[wc.wr_id], from[wc.wr_id]);
	}
}

Test(many, no_doorbell_of_1024_qps_is_lost, .timeout = 100)
{
	uint32_t next[QPS] = { 0 }, i, round;
	struct ibv_cq *cq;

	v = vb_open(2 * sizeof(*from) * QPS * ROUNDS);
	from = (uint64_t *)(void *)v.mem;
	to = from + QPS * ROUNDS;
	cq = ibv_create_cq(v.ctx, QPS * ROUNDS, NULL, NULL, 0);
	cr_assert(cq);
	for (i = 0; i < QPS; i++)
		qps[i] = vb_qp(&v, IBV_QPT_RC, cq, NULL);
	for (i = 0; i < QPS; i += 2)
		vb_connect(&v, qps[i], qps[i + 1]);
	for (round = 0; round < ROUNDS / 2; round++)
		for (i = 0; i < QPS; i++)
			post_word(i, round);
	collect(cq, next, QPS * ROUNDS / 2);
	for (round = ROUNDS / 2; round < ROUNDS; round++) {
		post_word(QPS / 2, round);
		collect(cq, next, 1);
	}
	for (i = 0; i < QPS; i++)
		cr_assert_eq(ibv_destroy_qp(qps[i]), 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	vb_close(&v);
}
