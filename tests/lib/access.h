/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Helpers for tests of access rights, over plain verbs: one process opens two
 * connected RC queue pairs, posts one operation from the first to the second, and
 * returns the status of its completion.
 */
#ifndef ACCESS_H
#define ACCESS_H

#include "vb.h"

#define PAGE   4096u
#define REMOTE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define ALL    (IBV_ACCESS_LOCAL_WRITE | REMOTE)

struct rig {
	struct vb v;
	struct ibv_cq *cq;
	struct ibv_qp *a, *b;
};

static const struct {
	int right;
	enum ibv_wr_opcode op;
} ops[] = {
	{ IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE },
	{ IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ },
	{ IBV_ACCESS_REMOTE_ATOMIC, IBV_WR_ATOMIC_FETCH_AND_ADD },
};
#define OPS (sizeof(ops) / sizeof(ops[0]))

static inline void rig_open(struct rig *r, uint32_t pages)
{
	r->v = vb_open(pages * PAGE);
	r->cq = ibv_create_cq(r->v.ctx, 64, NULL, NULL, 0);
	cr_assert(r->cq);
	r->a = vb_qp(&r->v, IBV_QPT_RC, r->cq, NULL);
	r->b = vb_qp(&r->v, IBV_QPT_RC, r->cq, NULL);
	vb_connect(&r->v, r->a, r->b);
}

static inline void rig_close(struct rig *r)
{
	cr_assert_eq(ibv_destroy_qp(r->a), 0);
	cr_assert_eq(ibv_destroy_qp(r->b), 0);
	cr_assert_eq(ibv_destroy_cq(r->cq), 0);
	vb_close(&r->v);
}

/* Posts one signaled operation and returns the status of its completion. An atomic adds 1. */
static inline enum ibv_wc_status post(struct rig *r, enum ibv_wr_opcode op, struct ibv_sge sge,
				      uint64_t addr, uint32_t rkey)
{
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	cr_assert_eq(ibv_post_send(r->a, &wr, &bad), 0);
	return vb_wc(r->cq).status;
}

/* Accesses 8 bytes at addr; the local side is the start of the rig's buffer. */
static inline enum ibv_wc_status access_to(struct rig *r, enum ibv_wr_opcode op, uint64_t addr,
					   uint32_t rkey)
{
	return post(r, op, vb_sge(&r->v, 0, 8), addr, rkey);
}

#endif
