/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Methods of basic shared receive queues, whose rings libmlx5 allocated. SRQs of XRC and
 * of tag matching are refused. rq.c takes WQEs from SRQs; cmd_rmp.c creates those of
 * firmware commands (RMPs).
 */
#include "front.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>

#define SRQ_EVENT_TYPES IBV_EVENT_SRQ_ERR, IBV_EVENT_SRQ_LIMIT_REACHED
#define NEXT_SEG	16u /* bytes before an entry's data segments */
#define SGE		16u

static uint32_t log2_ceil(uint32_t n)
{
	uint32_t l = 0;

	while ((1u << l) < n)
		l++;
	return l;
}

/* Computes the entry's size from max_sge, by the same formula as libmlx5 and the kernel driver. */
static void fill(struct sn_call *c, struct sn_srq *srq, const struct mlx5_ib_create_srq *drv)
{
	uint32_t max_wr = (uint32_t)sn_attr_num(c, UVERBS_ATTR_CREATE_SRQ_MAX_WR);

	srq->max_sge = (uint32_t)sn_attr_num(c, UVERBS_ATTR_CREATE_SRQ_MAX_SGE);
	srq->wqe_shift = log2_ceil(NEXT_SEG + srq->max_sge * SGE);
	if (srq->wqe_shift < 5)
		srq->wqe_shift = 5;
	srq->wqe_cnt = 1u << log2_ceil(max_wr + 1);
	srq->max_wr = srq->wqe_cnt - 1;
	srq->buf = drv->buf_addr;
	srq->dbr = drv->db_addr;
	srq->user_handle = sn_attr_num(c, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE);
}

static int create(struct sn_call *c)
{
	struct sn_pd *pd = sn_attr_obj(c, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, SN_PD);
	struct mlx5_ib_create_srq_resp resp = { 0 };
	struct mlx5_ib_create_srq drv;
	struct sn_srq *srq;
	int rc;

	sn_attr_in(c, UVERBS_ATTR_UHW_IN, &drv, sizeof(drv));
	if (sn_attr_num(c, UVERBS_ATTR_CREATE_SRQ_TYPE) != IB_UVERBS_SRQT_BASIC || drv.flags)
		return -EOPNOTSUPP;
	if (!pd || drv.reserved0 || drv.reserved1 || drv.buf_addr & 4095 || drv.db_addr & 3 ||
	    sn_attr_num(c, UVERBS_ATTR_CREATE_SRQ_MAX_WR) > SN_MAX_SRQ_WR ||
	    sn_attr_num(c, UVERBS_ATTR_CREATE_SRQ_MAX_SGE) > SN_MAX_SRQ_SGE)
		return -EINVAL;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	srq->pdn = pd->pdn;
	fill(c, srq, &drv);
	rc = sn_attr_events(c, UVERBS_ATTR_CREATE_SRQ_EVENT_FD, SN_ASYNC, &srq->async);
	if (!rc && !(sn_mem_readable(srq->buf, (uint64_t)srq->wqe_cnt << srq->wqe_shift) &&
		     sn_mem_readable(srq->dbr, 4)))
		rc = -EFAULT;
	if (!rc)
		rc = sn_srq_add(c->dev, c->ctx, srq);
	if (rc) {
		free(srq);
		return rc;
	}
	resp.srqn = srq->srqn;
	sn_attr_set_handle(c, UVERBS_ATTR_CREATE_SRQ_HANDLE, srq->handle);
	sn_attr_out(c, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &srq->max_wr, sizeof(srq->max_wr));
	sn_attr_out(c, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &srq->max_sge, sizeof(srq->max_sge));
	sn_attr_out(c, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
	return 0;
}

static int destroy(struct sn_call *c)
{
	struct sn_srq *srq = sn_attr_obj(c, UVERBS_ATTR_DESTROY_SRQ_HANDLE, SN_SRQ);
	struct ib_uverbs_destroy_srq_resp resp;

	if (!srq)
		return -ENOENT;
	if (srq->users)
		return -EBUSY;
	resp.events_reported = srq->async_events;
	if (srq->async)
		resp.events_reported -= sn_events_drain(srq->async, srq->user_handle,
							SRQ_EVENT_TYPES);
	sn_attr_out(c, UVERBS_ATTR_DESTROY_SRQ_RESP, &resp, sizeof(resp));
	return sn_srq_destroy(c->dev, srq);
}

/* As in mlx5 hardware, the limit can be changed, the size cannot. */
int sn_write_modify_srq(struct sn_call *c)
{
	struct ib_uverbs_modify_srq in;
	struct sn_srq *srq;

	sn_attr_in(c, UVERBS_ATTR_CORE_IN, &in, sizeof(in));
	srq = sn_handle_get(c->dev, c->ctx, in.srq_handle, SN_SRQ);
	if (!srq || in.attr_mask & ~(uint32_t)IBV_SRQ_LIMIT ||
	    (in.attr_mask & IBV_SRQ_LIMIT && in.srq_limit >= srq->wqe_cnt))
		return -EINVAL;
	if (in.attr_mask & IBV_SRQ_LIMIT)
		srq->limit = in.srq_limit;
	return 0;
}

int sn_write_query_srq(struct sn_call *c)
{
	struct ib_uverbs_query_srq_resp resp = { 0 };
	struct ib_uverbs_query_srq in;
	struct sn_srq *srq;

	sn_attr_in(c, UVERBS_ATTR_CORE_IN, &in, sizeof(in));
	srq = sn_handle_get(c->dev, c->ctx, in.srq_handle, SN_SRQ);
	if (!srq)
		return -EINVAL;
	resp.max_wr = srq->max_wr;
	resp.max_sge = srq->max_sge;
	resp.srq_limit = srq->limit;
	return sn_attr_out(c, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
}

#define D(id) (1u << ((id)&0xfff))
#define UHW   (D(UVERBS_ATTR_UHW_IN) | D(UVERBS_ATTR_UHW_OUT))

const struct sn_method sn_methods_srq[] = {
	{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, 0x3fff, UHW, create },
	{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, 0x3, 0, destroy },
	{ .fn = NULL },
};
