/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Methods of verbs CQs and QPs, whose rings libmlx5 allocated, and of PDs and address
 * handles. Modify and query of QPs are in uverbs_qp.c, reference counts in objects.c.
 */
#include "front.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <stdlib.h>
#include <string.h>

#define QP_EVENT_TYPES IBV_EVENT_QP_FATAL, IBV_EVENT_QP_LAST_WQE_REACHED
#define CQ_EVENT_TYPES IBV_EVENT_CQ_ERR, IBV_EVENT_CQ_ERR

/* A queue must begin at a multiple of 64 bytes. Otherwise Linux's mlx5 finds no page size
 * (cq.c, qp.c: mlx5_umem_find_best_quantized_pgoff with scale 64). */
#define QUEUE_ALIGN 64u

static uint8_t log2_ceil(uint32_t n)
{
	uint8_t l = 0;

	while ((1u << l) < n)
		l++;
	return l;
}

/* ---- completion queues ---- */
static struct sn_cq *cq_from_call(struct sn_call *c, const struct mlx5_ib_create_cq *drv)
{
	uint32_t cqe = (uint32_t)sn_attr_num(c, UVERBS_ATTR_CREATE_CQ_CQE);
	uint32_t flags = (uint32_t)sn_attr_num(c, UVERBS_ATTR_CREATE_CQ_FLAGS);
	struct sn_cq *cq = calloc(1, sizeof(*cq));

	if (!cq)
		return NULL;
	cq->buf = drv->buf_addr;
	cq->dbr = drv->db_addr;
	cq->log_size = log2_ceil(cqe + 1);
	cq->cqe_size = (uint8_t)drv->cqe_size;
	cq->oi = flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN;
	cq->stamped = flags & IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION;
	cq->real_time = drv->flags & MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS;
	cq->user_handle = sn_attr_num(c, UVERBS_ATTR_CREATE_CQ_USER_HANDLE);
	cq->uar = drv->uar_page_index;
	return cq;
}

static int cq_links(struct sn_call *c, struct sn_cq *cq)
{
	int rc = sn_attr_events(c, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, SN_COMP_CHANNEL,
				&cq->channel);

	if (!rc)
		rc = sn_attr_events(c, UVERBS_ATTR_CREATE_CQ_EVENT_FD, SN_ASYNC, &cq->async);
	if (rc)
		return rc;
	if (cq->dbr & 7 || cq->buf % QUEUE_ALIGN)
		return -EINVAL;
	return sn_mem_readable(cq->buf, (uint64_t)cq->cqe_size << cq->log_size) &&
			       sn_mem_readable(cq->dbr, 8)
		       ? 0
		       : -EFAULT;
}

static int cq_create(struct sn_call *c)
{
	/* The only format of 128 bytes is padding: the CQE is in the second half of its entry. */
	const uint16_t known = MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD |
			       MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX |
			       MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS;
	const uint32_t none = SN_ARM_NONE;
	struct mlx5_ib_create_cq_resp resp = { 0 };
	struct mlx5_ib_create_cq drv;
	uint32_t cqe;
	struct sn_cq *cq;
	int rc;

	sn_attr_in(c, UVERBS_ATTR_UHW_IN, &drv, sizeof(drv));
	cqe = (uint32_t)sn_attr_num(c, UVERBS_ATTR_CREATE_CQ_CQE);
	if (cqe == 0 || cqe >= 1u << SN_MAX_CQ_LOG || drv.flags & ~known ||
	    (drv.flags & MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD && drv.cqe_size != 128) ||
	    (drv.cqe_size != 64 && drv.cqe_size != 128) || drv.cqe_comp_en ||
	    sn_attr_num(c, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR) >= SN_COMP_VECTORS ||
	    !(drv.flags & MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX) ||
	    !sn_find_uar(c->dev, drv.uar_page_index))
		return -EINVAL;
	cq = cq_from_call(c, &drv);
	if (!cq)
		return -ENOMEM;
	rc = cq_links(c, cq);
	if (!rc && cq->channel)
		rc = sn_mem_write(false, cq->dbr + 4, &none, sizeof(none));
	if (!rc)
		rc = sn_cq_add(c->dev, c->ctx, cq);
	if (rc) {
		free(cq);
		return rc;
	}
	resp.cqn = cq->cqn;
	cqe = (1u << cq->log_size) - 1;
	sn_attr_set_handle(c, UVERBS_ATTR_CREATE_CQ_HANDLE, cq->handle);
	sn_attr_out(c, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &cqe, sizeof(cqe));
	sn_attr_out(c, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
	return 0;
}

/*
 * As in mlx5, the CQ continues in another ring. A resize CQE is the last one in the old ring and
 * tells libmlx5 to change to the new ring. The size of a CQE cannot change: MODIFY_CQ has no bit
 * that selects it (MLX5_MODIFY_CQ_MASK_*, include/linux/mlx5/cq.h of Linux), and libmlx5 keeps it
 * (mlx5_resize_cq, rdma-core 44, providers/mlx5/verbs.c). Queue pairs rely on it: their CQEs may
 * hold half as many bytes of data.
 */
int sn_write_resize_cq(struct sn_call *c)
{
	struct ib_uverbs_resize_cq_resp resp = { 0 };
	struct ib_uverbs_resize_cq in;
	struct mlx5_ib_resize_cq drv;
	struct sn_cq *cq;
	int rc;

	sn_attr_in(c, UVERBS_ATTR_CORE_IN, &in, sizeof(in));
	sn_attr_in(c, UVERBS_ATTR_UHW_IN, &drv, sizeof(drv));
	cq = sn_handle_get(c->dev, c->ctx, in.cq_handle, SN_CQ);
	if (!cq || cq->devx || !in.cqe || in.cqe >= 1u << SN_MAX_CQ_LOG || drv.reserved0 ||
	    drv.reserved1 || drv.cqe_size != cq->cqe_size || drv.buf_addr % QUEUE_ALIGN)
		return -EINVAL;
	rc = sn_eng_cq_resize(c->dev, cq, drv.buf_addr, log2_ceil(in.cqe + 1));
	if (rc)
		return rc;
	resp.cqe = (1u << cq->log_size) - 1;
	return sn_attr_out(c, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
}

int sn_write_modify_cq(struct sn_call *c)
{
	struct ib_uverbs_ex_modify_cq in;
	struct sn_cq *cq;

	sn_attr_in(c, UVERBS_ATTR_CORE_IN, &in, sizeof(in));
	if (in.attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE)
		return -EOPNOTSUPP;
	cq = sn_handle_get(c->dev, c->ctx, in.cq_handle, SN_CQ);
	if (!cq || cq->devx || !in.attr_mask || in.reserved || in.attr.cq_period > SN_MAX_CQ_PERIOD)
		return -EINVAL;
	sn_eng_cq_moderate(c->dev, cq, in.attr.cq_count, in.attr.cq_period);
	return 0;
}

static int cq_destroy(struct sn_call *c)
{
	struct sn_cq *cq = sn_attr_obj(c, UVERBS_ATTR_DESTROY_CQ_HANDLE, SN_CQ);
	struct ib_uverbs_destroy_cq_resp resp;

	if (!cq)
		return -ENOENT;
	if (cq->users)
		return -EBUSY;
	/* detach the engine first, so that no event is reported after counting */
	sn_eng_cq_remove(c->dev, cq);
	resp.comp_events_reported = cq->comp_events;
	resp.async_events_reported = cq->async_events;
	if (cq->channel)
		resp.comp_events_reported -= sn_events_drain(cq->channel, cq->user_handle, 0, 0);
	if (cq->async)
		resp.async_events_reported -= sn_events_drain(cq->async, cq->user_handle,
							      CQ_EVENT_TYPES);
	sn_attr_out(c, UVERBS_ATTR_DESTROY_CQ_RESP, &resp, sizeof(resp));
	return sn_cq_destroy(c->dev, cq);
}

/* ---- queue pairs ---- */
static int qp_check(struct sn_call *c, const struct mlx5_ib_create_qp *drv, uint64_t type)
{
	uint32_t known = MLX5_QP_FLAG_SCATTER_CQE | MLX5_QP_FLAG_ALLOW_SCATTER_CQE |
			 MLX5_QP_FLAG_UAR_PAGE_INDEX | MLX5_QP_FLAG_BFREG_INDEX |
			 MLX5_QP_FLAG_PACKET_BASED_CREDIT_MODE;
	/* BLOCK_MULTICAST_LOOPBACK has no effect, because this NIC has no multicast */
	uint64_t bytes, flags = IB_UVERBS_QP_CREATE_SQ_SIG_ALL |
				IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;

	if (type != IB_UVERBS_QPT_RC && type != IB_UVERBS_QPT_UC && type != IB_UVERBS_QPT_UD)
		return -EOPNOTSUPP;
	if (drv->flags & ~known || !(drv->flags & MLX5_QP_FLAG_UAR_PAGE_INDEX) ||
	    sn_attr_num(c, UVERBS_ATTR_CREATE_QP_FLAGS) & ~flags)
		return -EOPNOTSUPP;
	if (!sn_find_uar(c->dev, drv->bfreg_index) || drv->sq_wqe_count > SN_MAX_QP_SZ ||
	    drv->rq_wqe_count > SN_MAX_QP_SZ || drv->rq_wqe_shift > 12 ||
	    drv->sq_wqe_count & (drv->sq_wqe_count - 1) ||
	    drv->rq_wqe_count & (drv->rq_wqe_count - 1) || drv->db_addr & 3 ||
	    drv->buf_addr % QUEUE_ALIGN ||
	    (drv->rq_wqe_count && sn_attr(c, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE)))
		return -EINVAL;
	bytes = ((uint64_t)drv->rq_wqe_count << drv->rq_wqe_shift) + drv->sq_wqe_count * 64ull;
	return sn_mem_readable(drv->buf_addr, bytes) && sn_mem_readable(drv->db_addr, 8) ? 0
											 : -EFAULT;
}

/* As the kernel (qp.c of mlx5): libmlx5 permits received data in the CQE by a flag; that of
 * responses needs a CQE for each WQE, or another flag. */
static void qp_inline(struct sn_qp *qp, uint32_t flags)
{
	if (!(flags & MLX5_QP_FLAG_SCATTER_CQE) || qp->type == SN_QPT_UD || !qp->scq || !qp->rcq)
		return;
	qp->inline_recv = qp->rcq->cqe_size / 2;
	if (qp->type == SN_QPT_RC && (qp->sig_all || flags & MLX5_QP_FLAG_ALLOW_SCATTER_CQE))
		qp->inline_send = qp->scq->cqe_size / 2;
}

static void qp_fill(struct sn_call *c, struct sn_qp *qp, const struct mlx5_ib_create_qp *drv)
{
	uint64_t type = sn_attr_num(c, UVERBS_ATTR_CREATE_QP_TYPE);
	uint32_t flags = (uint32_t)sn_attr_num(c, UVERBS_ATTR_CREATE_QP_FLAGS);

	qp->type = type == IB_UVERBS_QPT_RC   ? SN_QPT_RC
		   : type == IB_UVERBS_QPT_UC ? SN_QPT_UC
					      : SN_QPT_UD;
	qp->rq_buf = drv->buf_addr;
	qp->rq_wqes = drv->rq_wqe_count;
	qp->rq_stride = drv->rq_wqe_count ? 1u << drv->rq_wqe_shift : 0;
	qp->sq_buf = drv->buf_addr + (uint64_t)qp->rq_wqes * qp->rq_stride;
	qp->sq_wqebbs = drv->sq_wqe_count;
	qp->dbr = drv->db_addr;
	qp->uar = drv->bfreg_index;
	qp->uidx = drv->uidx;
	qp->sig_all = flags & IB_UVERBS_QP_CREATE_SQ_SIG_ALL;
	qp->user_handle = sn_attr_num(c, UVERBS_ATTR_CREATE_QP_USER_HANDLE);
	qp->scq = sn_attr_obj(c, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, SN_CQ);
	qp->rcq = sn_attr_obj(c, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, SN_CQ);
	qp->port = 1;
	qp->ece = sn_ece_created(drv->ece_options);
	qp_inline(qp, drv->flags);
}

static void qp_answer(struct sn_call *c, const struct sn_qp *qp,
		      const struct mlx5_ib_create_qp *drv)
{
	struct mlx5_ib_create_qp_resp resp = { .bfreg_index = drv->bfreg_index,
					       .ece_options = qp->ece };
	struct ib_uverbs_qp_cap cap;

	sn_attr_in(c, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof(cap));
	sn_attr_set_handle(c, UVERBS_ATTR_CREATE_QP_HANDLE, qp->handle);
	sn_attr_out(c, UVERBS_ATTR_CREATE_QP_RESP_CAP, &cap, sizeof(cap));
	sn_attr_out(c, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &qp->qpn, sizeof(qp->qpn));
	sn_attr_out(c, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
}

/* As in the kernel's driver: 0 free running, 1 the device's format, 2 real time. */
int sn_cq_ts_format(const struct sn_cfg *cfg, const struct sn_cq *cq)
{
	bool free_running = cfg->ts_format != SN_TS_REAL;

	if (cq->real_time)
		return cfg->ts_format == SN_TS_FREE ? -EOPNOTSUPP : 2;
	return free_running ? 0 : cq->stamped ? -EOPNOTSUPP : 1;
}

/* The CQEs of both queues have the same format. */
static int qp_stamps(struct sn_call *c, struct sn_qp *qp)
{
	int send = sn_cq_ts_format(&c->dev->cfg, qp->scq);
	int recv = sn_cq_ts_format(&c->dev->cfg, qp->rcq);

	if (send < 0 || recv < 0 || (send != recv && send != 1 && recv != 1))
		return -EOPNOTSUPP;
	qp->ts_format = (uint8_t)(send == 1 ? recv : send);
	return 0;
}

static int qp_create(struct sn_call *c)
{
	struct sn_pd *pd = sn_attr_obj(c, UVERBS_ATTR_CREATE_QP_PD_HANDLE, SN_PD);
	struct mlx5_ib_create_qp drv;
	struct sn_qp *qp;
	int rc;

	sn_attr_in(c, UVERBS_ATTR_UHW_IN, &drv, sizeof(drv));
	if (!pd)
		return -EINVAL;
	if (sn_attr_num(c, UVERBS_ATTR_CREATE_QP_TYPE) == IB_UVERBS_QPT_RAW_PACKET)
		return sn_raw_create(c);
	rc = qp_check(c, &drv, sn_attr_num(c, UVERBS_ATTR_CREATE_QP_TYPE));
	if (rc)
		return rc;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -ENOMEM;
	qp_fill(c, qp, &drv);
	qp->pdn = pd->pdn;
	qp->srq = sn_attr_obj(c, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, SN_SRQ);
	rc = qp->scq && qp->rcq && (qp->srq || !sn_attr(c, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE))
		     ? sn_attr_events(c, UVERBS_ATTR_CREATE_QP_EVENT_FD, SN_ASYNC, &qp->async)
		     : -EINVAL;
	if (!rc)
		rc = qp_stamps(c, qp);
	if (!rc)
		rc = sn_qp_add(c->dev, c->ctx, qp);
	if (rc) {
		free(qp);
		return rc;
	}
	qp_answer(c, qp, &drv);
	return 0;
}

static int qp_destroy(struct sn_call *c)
{
	struct sn_qp *qp = sn_attr_obj(c, UVERBS_ATTR_DESTROY_QP_HANDLE, SN_QP);
	struct sn_raw *raw = sn_attr_obj(c, UVERBS_ATTR_DESTROY_QP_HANDLE, SN_RAW);
	struct ib_uverbs_destroy_qp_resp resp;

	if (raw)
		return sn_raw_destroy_call(c, raw);
	if (!qp)
		return -ENOENT;
	resp.events_reported = qp->async_events;
	if (qp->async)
		resp.events_reported -= sn_events_drain(qp->async, qp->user_handle, QP_EVENT_TYPES);
	sn_attr_out(c, UVERBS_ATTR_DESTROY_QP_RESP, &resp, sizeof(resp));
	return sn_qp_destroy(c->dev, qp);
}

/* ---- PDs and address handles ---- */
static int pd_destroy(struct sn_call *c)
{
	struct sn_pd *pd = sn_attr_obj(c, UVERBS_ATTR_DESTROY_PD_HANDLE, SN_PD);

	return pd ? sn_pd_destroy(c->dev, pd) : -ENOENT;
}

static int pd_query(struct sn_call *c)
{
	struct sn_pd *pd = sn_attr_obj(c, (uint16_t)MLX5_IB_ATTR_QUERY_PD_HANDLE, SN_PD);

	if (!pd)
		return -ENOENT;
	return sn_attr_out(c, (uint16_t)MLX5_IB_ATTR_QUERY_PD_RESP_PDN, &pd->pdn, sizeof(pd->pdn));
}

static int ah_destroy(struct sn_call *c)
{
	struct sn_ah *ah = sn_attr_obj(c, UVERBS_ATTR_DESTROY_AH_HANDLE, SN_AH);

	return ah ? sn_ah_destroy(c->dev, ah) : -ENOENT;
}

#define D(id) (1u << ((id)&0xfff))
#define UHW   (D(UVERBS_ATTR_UHW_IN) | D(UVERBS_ATTR_UHW_OUT))

const struct sn_method sn_methods_obj[] = {
	{ UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, 0x1, 0, pd_destroy },
	{ UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY, 0, 0x3, pd_query },
	{ UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY, 0x1, 0, ah_destroy },
	{ UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, 0xff, UHW, cq_create },
	{ UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, 0x3, 0, cq_destroy },
	{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, 0x7fff, UHW, qp_create },
	{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, 0x3, 0, qp_destroy },
	{ .fn = NULL },
};
