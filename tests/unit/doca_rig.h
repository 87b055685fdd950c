/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * For tests of the Verbs functions of the SDK's interface: a NIC, and queue pairs with all queues
 * in external umems, opened only with functions of that interface.
 */
#ifndef DOCA_RIG_H
#define DOCA_RIG_H

#include <criterion/criterion.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doca_dev.h"
#include "doca_gpunetio.h"
#include "doca_rdma_bridge.h"
#include "doca_uar.h"
#include "doca_umem.h"
#include "doca_verbs.h"
#include "device/gdk/onesided_dev.h"

#include "../lib/capture.h"

#define DEPTH 64u
#define BYTES 4096u
/* receive queue, then send queue */
#define QP_BYTES (DEPTH * (16 + sizeof(struct doca_gpu_dev_verbs_wqe)))
#define FLAGS \
	(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE | \
	 DOCA_ACCESS_FLAG_RDMA_READ | DOCA_ACCESS_FLAG_RDMA_ATOMIC)
#define A(name) DOCA_VERBS_QP_ATTR_##name
#define H(name) DOCA_GPUNETIO_VERBS_NIC_HANDLER_##name
#define OK(call) \
	do { \
		doca_error_t err_ = call; \
\
		cr_assert_eq(err_, DOCA_SUCCESS, "%s returned %s", #call, \
			     doca_error_get_name(err_)); \
	} while (0)

struct nic {
	struct doca_gpu *gpu;
	struct doca_verbs_context *context;
	struct doca_verbs_pd *vpd;
	struct ibv_pd *pd;
	struct doca_dev *dev;
	int gid_index;
	struct doca_verbs_gid gid;
};

struct queue { /* memory and umem of a CQ, of the queues of a QP or of a DBREC */
	void *mem;
	struct doca_umem *umem;
};

struct side {
	uint32_t type; /* DOCA_VERBS_QP_TYPE_* */
	struct doca_uar *uar;
	struct queue cq_mem, cq_rq_mem, qp_mem, dbr_mem;
	struct doca_verbs_cq *cq, *cq_rq; /* of the send queue and of the receive queue */
	struct doca_verbs_qp *qp;
	struct doca_gpu_verbs_qp *exported;
	struct doca_gpu_dev_verbs_qp *device;
};

static inline struct doca_verbs_context *open_context(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct doca_verbs_context *context;

	cr_assert(list && list[0]);
	OK(doca_verbs_bridge_verbs_context_create(list[0], DOCA_VERBS_CONTEXT_CREATE_FLAGS_NONE,
						  &context));
	ibv_free_device_list(list);
	return context;
}

static inline void find_gid(struct nic *n)
{
	struct ibv_gid_entry e;

	for (n->gid_index = 0; n->gid_index < 16; n->gid_index++)
		if (!ibv_query_gid_ex(n->pd->context, 1, (uint32_t)n->gid_index, &e, 0) &&
		    e.gid_type == IBV_GID_TYPE_ROCE_V2 && e.gid.raw[0] != 0xfe) {
			memcpy(n->gid.raw, e.gid.raw, DOCA_GID_BYTE_LENGTH);
			return;
		}
	cr_assert_fail("no RoCE v2 GID");
}

static inline struct nic nic_open(void)
{
	struct nic n = { .context = open_context() };

	OK(doca_gpu_create("host", &n.gpu));
	OK(doca_verbs_pd_create(n.context, &n.vpd));
	n.pd = doca_verbs_bridge_verbs_pd_get_ibv_pd(n.vpd);
	cr_assert(n.pd);
	OK(doca_rdma_bridge_open_dev_from_pd(n.pd, &n.dev));
	find_gid(&n);
	return n;
}

/* Closes the NIC, and leaves the GPU open. */
static inline void nic_release(struct nic *n)
{
	OK(doca_dev_close(n->dev));
	OK(doca_verbs_pd_destroy(n->vpd));
	OK(doca_verbs_context_destroy(n->context));
}

static inline void nic_close(struct nic *n)
{
	nic_release(n);
	OK(doca_gpu_destroy(n->gpu));
}

static inline struct queue queue_open(struct nic *n, size_t bytes)
{
	struct queue q;

	bytes = (bytes + 4095) & ~(size_t)4095;
	OK(doca_gpu_mem_alloc(n->gpu, bytes, 4096, DOCA_GPU_MEM_TYPE_GPU, &q.mem, NULL));
	memset(q.mem, 0, bytes);
	OK(doca_umem_gpu_create(n->gpu, n->dev, q.mem, bytes, FLAGS, &q.umem));
	return q;
}

static inline void queue_close(struct nic *n, struct queue *q)
{
	OK(doca_umem_destroy(q->umem));
	if (q->mem) /* NULL: memory of the test */
		OK(doca_gpu_mem_free(n->gpu, q->mem));
}

static inline struct doca_verbs_cq *cq_open(struct nic *n, struct side *s, struct queue *mem)
{
	struct doca_verbs_cq_attr *attr;
	struct doca_verbs_cq *cq;

	*mem = queue_open(n, DEPTH * 64 + 8);
	OK(doca_verbs_cq_attr_create(&attr));
	OK(doca_verbs_cq_attr_set_external_datapath_en(attr, 1));
	OK(doca_verbs_cq_attr_set_entry_size(attr, DOCA_VERBS_CQ_ENTRY_SIZE_64));
	OK(doca_verbs_cq_attr_set_external_umem(attr, mem->umem, 0));
	OK(doca_verbs_cq_attr_set_external_uar(attr, s->uar));
	OK(doca_verbs_cq_attr_set_cq_size(attr, DEPTH));
	OK(doca_verbs_cq_attr_set_cq_overrun(attr, 1));
	OK(doca_verbs_cq_create(n->context, attr, &cq));
	OK(doca_verbs_cq_attr_destroy(attr));
	cr_assert_neq(doca_verbs_cq_get_cqn(cq), 0);
	return cq;
}

static inline struct doca_verbs_qp_init_attr *qp_attr(struct nic *n, struct side *s)
{
	struct doca_verbs_qp_init_attr *attr;

	OK(doca_verbs_qp_init_attr_create(&attr));
	OK(doca_verbs_qp_init_attr_set_external_datapath_en(attr, 1));
	OK(doca_verbs_qp_init_attr_set_external_uar(attr, s->uar));
	OK(doca_verbs_qp_init_attr_set_external_umem(attr, s->qp_mem.umem, 0));
	OK(doca_verbs_qp_init_attr_set_external_dbr_umem(attr, s->dbr_mem.umem, 0));
	OK(doca_verbs_qp_init_attr_set_pd(attr, n->vpd));
	OK(doca_verbs_qp_init_attr_set_qp_type(attr, s->type));
	OK(doca_verbs_qp_init_attr_set_sq_wr(attr, DEPTH));
	OK(doca_verbs_qp_init_attr_set_send_max_sges(attr, 1));
	OK(doca_verbs_qp_init_attr_set_send_cq(attr, s->cq));
	OK(doca_verbs_qp_init_attr_set_rq_wr(attr, DEPTH));
	OK(doca_verbs_qp_init_attr_set_receive_max_sges(attr, 1));
	OK(doca_verbs_qp_init_attr_set_receive_cq(attr, s->cq_rq));
	return attr;
}

/* Opens what the QP of a side needs, and returns the attributes of the QP. */
static inline struct doca_verbs_qp_init_attr *
side_prepare(struct nic *n, struct side *s, uint32_t qp_type, enum gdk_uar_allocation_type uar_type)
{
	memset(s, 0, sizeof(*s));
	s->type = qp_type;
	OK(doca_uar_create(n->dev, uar_type, &s->uar));
	s->cq = cq_open(n, s, &s->cq_mem);
	s->cq_rq = cq_open(n, s, &s->cq_rq_mem);
	s->qp_mem = queue_open(n, QP_BYTES);
	s->dbr_mem = queue_open(n, 8);
	return qp_attr(n, s);
}

/* Creates the QP of a side, and destroys attr. */
static inline void side_qp_open(struct nic *n, struct side *s, struct doca_verbs_qp_init_attr *attr)
{
	OK(doca_verbs_qp_create(n->context, attr, &s->qp));
	OK(doca_verbs_qp_init_attr_destroy(attr));
}

static inline void side_open(struct nic *n, struct side *s, enum gdk_uar_allocation_type uar_type)
{
	side_qp_open(n, s, side_prepare(n, s, DOCA_VERBS_QP_TYPE_RC, uar_type));
}

static inline void side_export(struct nic *n, struct side *s,
			       enum doca_gpu_dev_verbs_nic_handler handler)
{
	OK(doca_gpu_verbs_export_qp(n->gpu, n->dev, s->qp, handler, s->qp_mem.mem, s->cq, s->cq_rq,
				    &s->exported));
	OK(doca_gpu_verbs_get_qp_dev(s->exported, &s->device));
}

/* Destroys QP and CQs with their memory; UAR, DBREC and the memory of the DBREC remain. */
static inline void side_leave(struct nic *n, struct side *s)
{
	if (s->exported)
		OK(doca_gpu_verbs_unexport_qp(n->gpu, s->exported));
	OK(doca_verbs_qp_destroy(s->qp));
	OK(doca_verbs_cq_destroy(s->cq));
	OK(doca_verbs_cq_destroy(s->cq_rq));
	queue_close(n, &s->cq_mem);
	queue_close(n, &s->cq_rq_mem);
	queue_close(n, &s->qp_mem);
}

static inline void side_close(struct nic *n, struct side *s)
{
	side_leave(n, s);
	queue_close(n, &s->dbr_mem);
	OK(doca_uar_destroy(s->uar));
}

static inline struct doca_verbs_ah_attr *path_to(struct nic *n)
{
	struct doca_verbs_ah_attr *ah;

	OK(doca_verbs_ah_attr_create(n->context, &ah));
	OK(doca_verbs_ah_attr_set_addr_type(ah, DOCA_VERBS_ADDR_TYPE_IPv4));
	OK(doca_verbs_ah_attr_set_sgid_index(ah, (uint8_t)n->gid_index));
	OK(doca_verbs_ah_attr_set_hop_limit(ah, 255));
	OK(doca_verbs_ah_attr_set_gid(ah, n->gid));
	return ah;
}

static inline void set_values(struct nic *n, struct doca_verbs_qp_attr *attr)
{
	struct doca_verbs_device_attr *device;

	OK(doca_verbs_query_device(n->context, &device));
	OK(doca_verbs_qp_attr_set_max_rd_atomic(
		attr, doca_verbs_device_attr_get_max_qp_init_rd_atom(device)));
	OK(doca_verbs_qp_attr_set_max_dest_rd_atomic(
		attr, doca_verbs_device_attr_get_max_qp_rd_atom(device)));
	OK(doca_verbs_device_attr_free(device));
	OK(doca_verbs_qp_attr_set_path_mtu(attr, DOCA_MTU_SIZE_1K_BYTES));
	OK(doca_verbs_qp_attr_set_rq_psn(attr, 5));
	OK(doca_verbs_qp_attr_set_sq_psn(attr, 5));
	OK(doca_verbs_qp_attr_set_port_num(attr, 1));
	OK(doca_verbs_qp_attr_set_ack_timeout(attr, 14));
	OK(doca_verbs_qp_attr_set_retry_cnt(attr, 7));
	OK(doca_verbs_qp_attr_set_rnr_retry(attr, 1));
	OK(doca_verbs_qp_attr_set_min_rnr_timer(attr, 1));
	OK(doca_verbs_qp_attr_set_allow_remote_write(attr, 1));
	OK(doca_verbs_qp_attr_set_allow_remote_read(attr, 1));
	OK(doca_verbs_qp_attr_set_atomic_mode(attr, DOCA_VERBS_QP_ATOMIC_MODE_IB_SPEC));
}

static inline void connect_to(struct nic *n, struct doca_verbs_qp *qp, struct doca_verbs_qp *peer)
{
	struct doca_verbs_ah_attr *ah = path_to(n);
	struct doca_verbs_qp_attr *attr;

	OK(doca_verbs_qp_attr_create(&attr));
	set_values(n, attr);
	OK(doca_verbs_qp_attr_set_ah_attr(attr, ah));
	OK(doca_verbs_qp_attr_set_dest_qp_num(attr, doca_verbs_qp_get_qpn(peer)));
	OK(doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_INIT));
	OK(doca_verbs_qp_modify(qp, attr,
				A(NEXT_STATE) | A(ALLOW_REMOTE_WRITE) | A(ALLOW_REMOTE_READ) |
					A(ATOMIC_MODE) | A(PKEY_INDEX) | A(PORT_NUM)));
	OK(doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_RTR));
	OK(doca_verbs_qp_modify(qp, attr,
				A(NEXT_STATE) | A(RQ_PSN) | A(DEST_QP_NUM) | A(PATH_MTU) |
					A(AH_ATTR) | A(MIN_RNR_TIMER) | A(MAX_DEST_RD_ATOMIC)));
	OK(doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_RTS));
	OK(doca_verbs_qp_modify(qp, attr,
				A(NEXT_STATE) | A(SQ_PSN) | A(ACK_TIMEOUT) | A(RETRY_CNT) |
					A(RNR_RETRY) | A(MAX_QP_RD_ATOMIC)));
	OK(doca_verbs_qp_attr_destroy(attr));
	OK(doca_verbs_ah_attr_destroy(ah));
}

#endif
