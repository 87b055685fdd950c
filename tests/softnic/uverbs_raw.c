/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Raw packet QPs and RSS QPs of libibverbs. A raw packet QP consists of an SQ, an RQ and a
 * direct TIR of the RQ; either half may be missing. An RSS QP is only a TIR that selects an RQ
 * of a table by hash. uverbs_wq.c has the work queues and tables. Flow rules name the TIR.
 */
#include "eth.h"
#include "front.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <linux/capability.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define QP_EVENT_TYPES IBV_EVENT_QP_FATAL, IBV_EVENT_QP_LAST_WQE_REACHED
#define QUEUE_ALIGN    64u

bool sn_net_raw(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (syscall(SYS_capget, &head, data))
		return false;
	return data[CAP_TO_INDEX(CAP_NET_RAW)].effective & CAP_TO_MASK(CAP_NET_RAW);
}

/* ---- create ---- */
static uint8_t loopback(uint32_t flags)
{
	return (flags & MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC ? SN_LOOPBACK_UNICAST : 0) |
	       (flags & MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_MC ? SN_LOOPBACK_MULTICAST : 0);
}

/* Scattering to a CQE and credits have no meaning for frames; the driver accepts the former. */
static int check_flags(struct sn_call *c, const struct mlx5_ib_create_qp *drv)
{
	const uint32_t known = MLX5_QP_FLAG_SCATTER_CQE | MLX5_QP_FLAG_ALLOW_SCATTER_CQE |
			       MLX5_QP_FLAG_UAR_PAGE_INDEX | MLX5_QP_FLAG_BFREG_INDEX |
			       MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC |
			       MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_MC;
	const uint64_t flags = IB_UVERBS_QP_CREATE_SQ_SIG_ALL |
			       IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK |
			       IB_UVERBS_QP_CREATE_SCATTER_FCS |
			       IB_UVERBS_QP_CREATE_CVLAN_STRIPPING |
			       IB_UVERBS_QP_CREATE_PCI_WRITE_END_PADDING;

	if (drv->flags & ~known || !(drv->flags & MLX5_QP_FLAG_UAR_PAGE_INDEX) ||
	    sn_attr_num(c, UVERBS_ATTR_CREATE_QP_FLAGS) & ~flags)
		return -EINVAL;
	return sn_attr(c, UVERBS_ATTR_CREATE_QP_SOURCE_QPN) ? -EOPNOTSUPP : 0;
}

static bool power_of_two_or_0(uint32_t n)
{
	return !(n & (n - 1));
}

static int check_rings(struct sn_call *c, const struct mlx5_ib_create_qp *drv)
{
	if (!sn_find_uar(c->dev, drv->bfreg_index) || drv->sq_wqe_count > SN_MAX_QP_SZ ||
	    drv->rq_wqe_count > SN_MAX_QP_SZ || !(drv->sq_wqe_count | drv->rq_wqe_count) ||
	    !power_of_two_or_0(drv->sq_wqe_count) || !power_of_two_or_0(drv->rq_wqe_count) ||
	    (drv->rq_wqe_count && drv->rq_wqe_shift < 4) || drv->rq_wqe_shift > 12 ||
	    drv->db_addr & 3 || drv->buf_addr % QUEUE_ALIGN || drv->sq_buf_addr % QUEUE_ALIGN ||
	    sn_attr(c, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE))
		return -EINVAL;
	return sn_mem_readable(drv->db_addr, 8) &&
			       sn_mem_readable(drv->sq_buf_addr, drv->sq_wqe_count * 64ull) &&
			       sn_mem_readable(drv->buf_addr,
					       (uint64_t)drv->rq_wqe_count << drv->rq_wqe_shift)
		       ? 0
		       : -EFAULT;
}

struct sn_qp *sn_eth_qp_alloc(enum sn_qp_type type)
{
	struct sn_qp *qp = calloc(1, sizeof(*qp));
	struct sn_eth *eth = calloc(1, sizeof(*eth));

	if (!qp || !eth) {
		free(qp);
		free(eth);
		return NULL;
	}
	qp->eth = eth;
	qp->type = type;
	qp->port = 1;
	eth->flush_in_error = true;
	return qp;
}

int sn_eth_qp_own(struct sn_call *c, struct sn_qp *qp, enum sn_kind kind)
{
	int rc = sn_cq_ts_format(&c->dev->cfg, qp->scq ? qp->scq : qp->rcq);

	if (rc >= 0) {
		qp->ts_format = (uint8_t)rc;
		rc = sn_eth_qp_add(c->dev, c->ctx, qp, kind);
	}
	if (rc) {
		free(qp->eth);
		free(qp);
	}
	return rc;
}

/* What both queues have. They are parts, so that only the QP's handle reaches them. */
static void common(struct sn_call *c, const struct sn_raw *raw, struct sn_qp *qp,
		   const struct mlx5_ib_create_qp *drv)
{
	qp->pdn = raw->pd->pdn;
	qp->dbr = drv->db_addr;
	qp->uidx = drv->uidx;
	qp->user_handle = sn_attr_num(c, UVERBS_ATTR_CREATE_QP_USER_HANDLE);
	sn_attr_events(c, UVERBS_ATTR_CREATE_QP_EVENT_FD, SN_ASYNC, &qp->async);
}

static int add_sq(struct sn_call *c, struct sn_raw *raw, const struct mlx5_ib_create_qp *drv)
{
	struct sn_tis *tis = sn_ctx_tis(c->dev, c->ctx);
	struct sn_qp *qp = tis ? sn_eth_qp_alloc(SN_QPT_SQ) : NULL;
	int rc;

	if (!qp && tis)
		sn_ctx_tis_put(c->dev, c->ctx, tis);
	if (!qp)
		return -ENOMEM;
	common(c, raw, qp, drv);
	qp->sq_buf = drv->sq_buf_addr;
	qp->sq_wqebbs = drv->sq_wqe_count;
	qp->uar = drv->bfreg_index;
	qp->scq = sn_attr_obj(c, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, SN_CQ);
	qp->sig_all = raw->sig_all;
	qp->eth->empw = true;
	qp->eth->tis = tis;
	rc = sn_eth_qp_own(c, qp, SN_PART);
	if (rc)
		sn_ctx_tis_put(c->dev, c->ctx, tis);
	else
		raw->sq = qp;
	return rc;
}

static int add_rq(struct sn_call *c, struct sn_raw *raw, const struct mlx5_ib_create_qp *drv)
{
	uint64_t flags = sn_attr_num(c, UVERBS_ATTR_CREATE_QP_FLAGS);
	struct sn_qp *qp = sn_eth_qp_alloc(SN_QPT_RQ);
	struct sn_tir tir = { .td = c->ctx->td, .self_lb_block = loopback(drv->flags) };
	int rc;

	if (!qp)
		return -ENOMEM;
	common(c, raw, qp, drv);
	qp->rq_buf = drv->buf_addr;
	qp->rq_wqes = drv->rq_wqe_count;
	qp->rq_stride = 1u << drv->rq_wqe_shift;
	qp->rcq = sn_attr_obj(c, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, SN_CQ);
	qp->eth->keep_vlan = !(flags & IB_UVERBS_QP_CREATE_CVLAN_STRIPPING);
	qp->eth->scatter_fcs = flags & IB_UVERBS_QP_CREATE_SCATTER_FCS;
	qp->eth->end_pad = flags & IB_UVERBS_QP_CREATE_PCI_WRITE_END_PADDING;
	rc = sn_eth_qp_own(c, qp, SN_PART);
	if (rc)
		return rc;
	raw->rq = qp;
	tir.rq = qp;
	raw->tir = sn_tir_create(c->dev, NULL, &tir);
	return raw->tir ? 0 : -ENOMEM;
}

/* Flow rules use the TIR; DEVX objects may use the RQ and the TIS, by their numbers. */
static bool in_use(const struct sn_raw *raw)
{
	return (raw->tir && raw->tir->users) ||
	       (raw->rq && raw->rq->eth->users > (raw->tir != NULL)) ||
	       (raw->sq && raw->sq->eth->tis->users > 1);
}

static int destroy_parts(struct sn_dev *dev, struct sn_raw *raw)
{
	struct sn_tis *tis;

	if (in_use(raw))
		return -EBUSY;
	if (raw->tir)
		sn_tir_destroy(dev, raw->tir);
	raw->pd->users--;
	if (raw->rq)
		sn_eth_qp_destroy(dev, raw->rq);
	if (raw->sq) {
		tis = raw->sq->eth->tis;
		sn_eth_qp_destroy(dev, raw->sq);
		sn_ctx_tis_put(dev, raw->ctx, tis);
	}
	sn_ctx_td_put(dev, raw->ctx);
	if (raw->handle)
		sn_handle_del(dev, raw->handle);
	free(raw);
	return 0;
}

int sn_raw_destroy(struct sn_dev *dev, void *raw)
{
	return destroy_parts(dev, raw);
}

struct sn_tir *sn_raw_tir(void *raw)
{
	return ((struct sn_raw *)raw)->tir;
}

static void answer(struct sn_call *c, const struct sn_raw *raw, uint32_t bfreg_index)
{
	struct mlx5_ib_create_qp_resp resp = { .bfreg_index = bfreg_index };
	uint32_t qpn = raw->sq ? raw->sq->qpn : raw->rq ? raw->rq->qpn : 0;
	struct ib_uverbs_qp_cap cap;

	if (raw->sq) {
		resp.comp_mask |= MLX5_IB_CREATE_QP_RESP_MASK_SQN;
		resp.sqn = raw->sq->qpn;
		resp.comp_mask |= MLX5_IB_CREATE_QP_RESP_MASK_TISN;
		resp.tisn = raw->sq->eth->tis->tisn;
	}
	if (raw->rq) {
		resp.comp_mask |= MLX5_IB_CREATE_QP_RESP_MASK_RQN;
		resp.rqn = raw->rq->qpn;
	}
	if (raw->tir) {
		resp.comp_mask |= MLX5_IB_CREATE_QP_RESP_MASK_TIRN;
		resp.tirn = raw->tir->tirn;
	}
	sn_attr_in(c, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof(cap));
	sn_attr_set_handle(c, UVERBS_ATTR_CREATE_QP_HANDLE, raw->handle);
	sn_attr_out(c, UVERBS_ATTR_CREATE_QP_RESP_CAP, &cap, sizeof(cap));
	sn_attr_out(c, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &qpn, sizeof(qpn));
	sn_attr_out(c, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
}

static struct sn_raw *raw_alloc(struct sn_call *c)
{
	struct sn_raw *raw = calloc(1, sizeof(*raw));

	if (!raw || !sn_ctx_td(c->dev, c->ctx)) {
		free(raw);
		return NULL;
	}
	raw->ctx = c->ctx;
	raw->pd = sn_attr_obj(c, UVERBS_ATTR_CREATE_QP_PD_HANDLE, SN_PD);
	raw->pd->users++;
	return raw;
}

/* Gives the QP its handle and answers the call, or destroys its parts. */
static int finish(struct sn_call *c, struct sn_raw *raw, int rc, uint32_t bfreg_index)
{
	if (!rc) {
		raw->handle = sn_handle_add(c->dev, c->ctx, SN_RAW, raw);
		rc = raw->handle ? 0 : -ENOMEM;
	}
	if (rc)
		destroy_parts(c->dev, raw);
	else
		answer(c, raw, bfreg_index);
	return rc;
}

static int create_raw(struct sn_call *c)
{
	struct mlx5_ib_create_qp drv;
	struct sn_event_queue *async;
	struct sn_raw *raw;
	int rc;

	sn_attr_in(c, UVERBS_ATTR_UHW_IN, &drv, sizeof(drv));
	if (!sn_attr_obj(c, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, SN_CQ) ||
	    !sn_attr_obj(c, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, SN_CQ))
		return -EINVAL;
	rc = sn_attr_events(c, UVERBS_ATTR_CREATE_QP_EVENT_FD, SN_ASYNC, &async);
	if (!rc)
		rc = check_flags(c, &drv);
	if (!rc)
		rc = check_rings(c, &drv);
	if (rc)
		return rc;
	raw = raw_alloc(c);
	if (!raw)
		return -ENOMEM;
	raw->sig_all = sn_attr_num(c, UVERBS_ATTR_CREATE_QP_FLAGS) & IB_UVERBS_QP_CREATE_SQ_SIG_ALL;
	if (drv.sq_wqe_count)
		rc = add_sq(c, raw, &drv);
	if (!rc && drv.rq_wqe_count)
		rc = add_rq(c, raw, &drv);
	return finish(c, raw, rc, drv.bfreg_index);
}

/* ---- RSS QPs ---- */
#define SRC_DST(name) (MLX5_RX_HASH_SRC_##name | MLX5_RX_HASH_DST_##name)
#define PORTS(l4)     (MLX5_RX_HASH_SRC_PORT_##l4 | MLX5_RX_HASH_DST_PORT_##l4)
#define IP4	      SRC_DST(IPV4)
#define IP6	      SRC_DST(IPV6)

/* Checks the driver's data in the order of the kernel's driver. */
static int check_hash(const struct mlx5_ib_create_qp_rss *drv, const struct sn_rqt *rqt)
{
	uint64_t fields = drv->rx_hash_fields_mask;

	if (drv->flags &
	    ~(uint32_t)(MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC | MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_MC))
		return -EINVAL;
	if (drv->comp_mask || fields & ~(uint64_t)SN_RX_HASH_FIELDS ||
	    drv->rx_hash_function != MLX5_RX_HASH_FUNC_TOEPLITZ)
		return -EOPNOTSUPP;
	if (drv->rx_key_len != SN_HASH_KEY || (!fields && rqt->n != 1) ||
	    (fields & IP4 && fields & IP6) || (fields & PORTS(TCP) && fields & PORTS(UDP)))
		return -EINVAL;
	return 0;
}

static uint32_t hash_fields(uint64_t f)
{
	return (f & (MLX5_RX_HASH_SRC_IPV4 | MLX5_RX_HASH_SRC_IPV6) ? SN_HASH_SRC_IP : 0u) |
	       (f & (MLX5_RX_HASH_DST_IPV4 | MLX5_RX_HASH_DST_IPV6) ? SN_HASH_DST_IP : 0u) |
	       (f & (MLX5_RX_HASH_SRC_PORT_TCP | MLX5_RX_HASH_SRC_PORT_UDP) ? SN_HASH_L4_SPORT
									    : 0u) |
	       (f & (MLX5_RX_HASH_DST_PORT_TCP | MLX5_RX_HASH_DST_PORT_UDP) ? SN_HASH_L4_DPORT
									    : 0u);
}

/* The kernel's driver makes the hash of verbs symmetric in source and destination. */
static int create_rss(struct sn_call *c)
{
	struct sn_ind_table *t = sn_attr_obj(c, UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE,
					     SN_IND_TABLE);
	struct mlx5_ib_create_qp_rss drv;
	struct sn_tir tir = { .fn = SN_HASH_TOEPLITZ, .symmetric = true };
	struct ib_uverbs_qp_cap cap;
	struct sn_raw *raw;
	int rc;

	sn_attr_in(c, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof(cap));
	if (!t || cap.max_recv_wr || cap.max_recv_sge || cap.max_send_wr ||
	    sn_attr(c, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE) ||
	    sn_attr(c, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE) ||
	    sn_attr(c, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE) ||
	    sn_attr_num(c, UVERBS_ATTR_CREATE_QP_FLAGS) & ~IB_UVERBS_QP_CREATE_SQ_SIG_ALL ||
	    sn_attr_in(c, UVERBS_ATTR_UHW_IN, &drv, sizeof(drv)) < sizeof(drv))
		return -EINVAL;
	rc = check_hash(&drv, t->rqt);
	if (rc)
		return rc;
	raw = raw_alloc(c);
	if (!raw)
		return -ENOMEM;
	raw->rss = true;
	tir.rqt = t->rqt;
	tir.td = c->ctx->td;
	tir.self_lb_block = loopback(drv.flags);
	tir.fields = hash_fields(drv.rx_hash_fields_mask);
	tir.ipv6 = drv.rx_hash_fields_mask & IP6;
	tir.udp = drv.rx_hash_fields_mask & PORTS(UDP);
	memcpy(tir.key, drv.rx_hash_key, SN_HASH_KEY);
	raw->tir = sn_tir_create(c->dev, NULL, &tir);
	return finish(c, raw, raw->tir ? 0 : -ENOMEM, 0);
}

int sn_raw_create(struct sn_call *c)
{
	if (!sn_net_raw())
		return -EPERM;
	if (c->dev->cfg.infiniband)
		return -EOPNOTSUPP;
	return sn_attr(c, UVERBS_ATTR_CREATE_QP_IND_TABLE_HANDLE) ? create_rss(c) : create_raw(c);
}

static uint32_t events_of(struct sn_qp *qp)
{
	return qp ? qp->async_events : 0;
}

int sn_raw_destroy_call(struct sn_call *c, struct sn_raw *raw)
{
	struct ib_uverbs_destroy_qp_resp resp = { .events_reported = events_of(raw->sq) +
								     events_of(raw->rq) };
	struct sn_qp *any = raw->sq ? raw->sq : raw->rq;

	if (in_use(raw))
		return -EBUSY;
	if (any && any->async)
		resp.events_reported -= sn_events_drain(any->async, any->user_handle,
							QP_EVENT_TYPES);
	sn_attr_out(c, UVERBS_ATTR_DESTROY_QP_RESP, &resp, sizeof(resp));
	return sn_raw_destroy(c->dev, raw);
}

/* ---- modify ---- */

/* The attributes that the kernel requires (need) and allows (may) with a transition. */
static const struct edge {
	enum sn_qp_state from, to;
	uint32_t need, may;
} edges[] = {
	{ SN_QPS_RST, SN_QPS_INIT, IBV_QP_PORT, 0 },
	{ SN_QPS_INIT, SN_QPS_INIT, 0, 0 },
	{ SN_QPS_INIT, SN_QPS_RTR, 0, 0 },
	{ SN_QPS_RTR, SN_QPS_RTS, 0, IBV_QP_RATE_LIMIT },
	{ SN_QPS_RTS, SN_QPS_RTS, 0, IBV_QP_RATE_LIMIT },
};

static bool transition_ok(enum sn_qp_state from, enum sn_qp_state to, uint32_t mask)
{
	size_t i;

	mask &= ~(uint32_t)IBV_QP_STATE;
	if (to == SN_QPS_RST || to == SN_QPS_ERR)
		return !mask;
	for (i = 0; i < sizeof(edges) / sizeof(edges[0]); i++)
		if (edges[i].from == from && edges[i].to == to)
			return (mask & edges[i].need) == edges[i].need &&
			       !(mask & ~(edges[i].need | edges[i].may));
	return false;
}

/* The NIC has no packet pacing, so the only rate is 0, unlimited. */
static int check_values(struct sn_call *c, const struct ib_uverbs_ex_modify_qp *in)
{
	struct mlx5_ib_modify_qp drv;

	sn_attr_in(c, UVERBS_ATTR_UHW_IN, &drv, sizeof(drv));
	if (drv.comp_mask || drv.burst_info.reserved)
		return -EOPNOTSUPP;
	if (drv.burst_info.max_burst_sz || drv.burst_info.typical_pkt_sz ||
	    (in->base.attr_mask & IBV_QP_PORT && in->base.port_num != 1) ||
	    (in->base.attr_mask & IBV_QP_RATE_LIMIT && in->rate_limit))
		return -EINVAL;
	return 0;
}

static void set_queue(struct sn_call *c, struct sn_qp *qp, enum sn_qp_state to)
{
	if (!qp || qp->state == to)
		return;
	sn_trace("%cQ %#x: state %d to %d", qp->type == SN_QPT_SQ ? 'S' : 'R', qp->qpn, qp->state,
		 to);
	sn_eth_qp_modify(c->dev, qp, to);
}

/* As in the kernel's driver: INIT makes the RQ ready, RTS the SQ. libmlx5 publishes receive WQEs
 * at RTR only. */
static int move(struct sn_call *c, struct sn_raw *raw, enum sn_qp_state to)
{
	if (to == SN_QPS_RST || to == SN_QPS_ERR) {
		set_queue(c, raw->rq, to);
		set_queue(c, raw->sq, to);
	} else if (raw->state == SN_QPS_RST) {
		set_queue(c, raw->rq, SN_QPS_RTS);
	} else if (to == SN_QPS_RTS) {
		if (raw->sq && raw->sq->state == SN_QPS_ERR)
			return -EINVAL;
		set_queue(c, raw->sq, SN_QPS_RTS);
	}
	raw->state = to;
	return 0;
}

int sn_raw_modify(struct sn_call *c, struct sn_raw *raw, const struct ib_uverbs_ex_modify_qp *in,
		  enum sn_qp_state to)
{
	int rc;

	if (raw->rss)
		return -EOPNOTSUPP;
	if (!transition_ok(raw->state, to, in->base.attr_mask))
		return -EINVAL;
	rc = check_values(c, in);
	return rc ? rc : move(c, raw, to);
}

/* ---- query ---- */

/* Returns the state of the QP that follows from the states of both queues. The kernel's driver
 * stores the QP's state and replaces it where a queue is in error or in reset; contradictions
 * fail. */
static int raw_state(const struct sn_raw *raw)
{
	const struct sn_qp *sq = raw->sq, *rq = raw->rq;

	if (!rq)
		return (int)raw->state;
	if (rq->state == SN_QPS_RST)
		return !sq || sq->state == SN_QPS_RST ? SN_QPS_RST : -EINVAL;
	if (rq->state == SN_QPS_ERR)
		return !sq || sq->state == SN_QPS_ERR ? SN_QPS_ERR : -EINVAL;
	return sq && sq->state == SN_QPS_ERR ? SN_QPS_SQER : (int)raw->state;
}

int sn_raw_query(const struct sn_raw *raw, struct ib_uverbs_query_qp_resp *r)
{
	static const uint8_t to_ibv[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
					  IBV_QPS_SQE,	 IBV_QPS_SQD,  IBV_QPS_ERR };
	int state = raw->rss ? -EOPNOTSUPP : raw_state(raw);

	if (state < 0)
		return state;
	r->qp_state = to_ibv[state];
	r->cur_qp_state = r->qp_state;
	r->port_num = 1;
	r->sq_sig_all = raw->sig_all;
	if (raw->sq)
		r->max_send_wr = raw->sq->sq_wqebbs;
	if (raw->rq) {
		r->max_recv_wr = raw->rq->rq_wqes;
		r->max_recv_sge = (uint8_t)(raw->rq->rq_stride / 16);
	}
	return 0;
}
