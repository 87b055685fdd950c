/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Plain verbs, for tests of the NIC that use libibverbs alone: one opened NIC with a
 * registered buffer, queue pairs connected to each other in this process, and a wait
 * for completions with a time limit.
 */
#ifndef VB_H
#define VB_H

#include <criterion/criterion.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pick.h"

#define VB_WAIT_S 10

struct vb {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint8_t *mem;
	union ibv_gid gid;
	int gid_index;
};

static inline struct vb vb_open(size_t len)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_gid_entry e;
	struct vb v = { 0 };

	v.ctx = pick_open();
	cr_assert(v.ctx, "no NIC can be opened; run the test under softnic-run");
	v.pd = ibv_alloc_pd(v.ctx);
	v.mem = aligned_alloc(4096, (len + 4095) & ~4095ul);
	cr_assert(v.pd && v.mem);
	memset(v.mem, 0, len);
	v.mr = ibv_reg_mr(v.pd, v.mem, len, access);
	cr_assert(v.mr);
	for (v.gid_index = 0; !ibv_query_gid_ex(v.ctx, 1, v.gid_index, &e, 0); v.gid_index++)
		if (e.gid_type == IBV_GID_TYPE_ROCE_V2 && e.gid.raw[10] == 0xff)
			break;
	cr_assert_eq(e.gid_type, IBV_GID_TYPE_ROCE_V2, "no RoCE v2 GID of an IPv4 address");
	v.gid = e.gid;
	return v;
}

static inline void vb_close(struct vb *v)
{
	cr_assert_eq(ibv_dereg_mr(v->mr), 0);
	cr_assert_eq(ibv_dealloc_pd(v->pd), 0);
	cr_assert_eq(ibv_close_device(v->ctx), 0);
	free(v->mem);
}

static inline struct ibv_sge vb_sge(const struct vb *v, size_t off, uint32_t len)
{
	return (struct ibv_sge){ .addr = (uintptr_t)v->mem + off,
				 .length = len,
				 .lkey = v->mr->lkey };
}

static inline struct ibv_qp *vb_qp(struct vb *v, enum ibv_qp_type type, struct ibv_cq *cq,
				   struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = type,
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.cap = { .max_send_wr = 64,
			 .max_recv_wr = srq ? 0 : 64,
			 .max_send_sge = 4,
			 .max_recv_sge = 4,
			 .max_inline_data = 64 },
	};
	struct ibv_qp *qp = ibv_create_qp(v->pd, &init);

	cr_assert(qp);
	return qp;
}

static inline void vb_to_init(struct ibv_qp *qp)
{
	int what = qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = 0x11111111,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};

	cr_assert_eq(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | what),
		     0);
}

static inline struct ibv_ah_attr vb_ah(const struct vb *v)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = v->gid, .sgid_index = (uint8_t)v->gid_index, .hop_limit = 64 }
	};
}

/* Moves the QP from INIT to RTS, connected to a queue pair of this process. The first
 * PSN of each direction is the sender's QP number. */
static inline void vb_to_rts(struct vb *v, struct ibv_qp *qp, uint32_t dest, uint8_t rnr_retry)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest,
		.rq_psn = dest,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = vb_ah(v),
	};
	int rtr = IBV_QP_STATE, rts = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (qp->qp_type != IBV_QPT_UD)
		rtr |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (qp->qp_type == IBV_QPT_RC) {
		rtr |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		rts |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC;
	}
	cr_assert_eq(ibv_modify_qp(qp, &a, rtr), 0);
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				  .sq_psn = qp->qp_num,
				  .timeout = 14,
				  .retry_cnt = 7,
				  .rnr_retry = rnr_retry,
				  .max_rd_atomic = 4 };
	cr_assert_eq(ibv_modify_qp(qp, &a, rts), 0);
}

static inline void vb_connect(struct vb *v, struct ibv_qp *a, struct ibv_qp *b)
{
	vb_to_init(a);
	vb_to_rts(v, a, b->qp_num, 7);
	if (a == b)
		return;
	vb_to_init(b);
	vb_to_rts(v, b, a->qp_num, 7);
}

static inline int vb_recv(struct vb *v, struct ibv_qp *qp, uint64_t id, size_t off, uint32_t len)
{
	struct ibv_sge sge = vb_sge(v, off, len);
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(qp, &wr, &bad);
}

static inline int vb_srq_recv(struct vb *v, struct ibv_srq *srq, uint64_t id, size_t off,
			      uint32_t len)
{
	struct ibv_sge sge = vb_sge(v, off, len);
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

static inline int vb_send(struct vb *v, struct ibv_qp *qp, uint64_t id, size_t off, uint32_t len)
{
	struct ibv_sge sge = vb_sge(v, off, len);
	struct ibv_send_wr wr = { .wr_id = id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	return ibv_post_send(qp, &wr, &bad);
}

/* Waits for one completion. The test fails if none arrives within VB_WAIT_S seconds. */
static inline struct ibv_wc vb_wc(struct ibv_cq *cq)
{
	struct timespec nap = { 0, 20000 };
	time_t end = time(NULL) + VB_WAIT_S;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)) && time(NULL) < end)
		nanosleep(&nap, NULL);
	cr_assert_eq(n, 1, "no completion within %d s", VB_WAIT_S);
	return wc;
}

/* Writes sge to addr by RDMA, between two QPs of its own, and returns the status. */
static inline enum ibv_wc_status vb_write(struct vb *v, struct ibv_sge sge, uint64_t addr,
					  uint32_t rkey)
{
	struct ibv_cq *cq = ibv_create_cq(v->ctx, 8, NULL, NULL, 0);
	struct ibv_qp *qp = vb_qp(v, IBV_QPT_RC, cq, NULL), *peer = vb_qp(v, IBV_QPT_RC, cq, NULL);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { .remote_addr = addr, .rkey = rkey } },
			   *bad;
	enum ibv_wc_status status;

	vb_connect(v, qp, peer);
	cr_assert_eq(ibv_post_send(qp, &wr, &bad), 0);
	status = vb_wc(cq).status;
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_qp(peer), 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	return status;
}

/* Waits up to ms milliseconds for an asynchronous event, acknowledges it and returns its type.
 * Returns -1 if none arrives. */
static inline int vb_async(struct vb *v, struct ibv_async_event *ev, int ms)
{
	struct pollfd p = { .fd = v->ctx->async_fd, .events = POLLIN };

	if (poll(&p, 1, ms) != 1 || ibv_get_async_event(v->ctx, ev))
		return -1;
	ibv_ack_async_event(ev);
	return ev->event_type;
}

#endif
