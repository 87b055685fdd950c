/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * QPs of libibverbs: the attributes that each transition requires and allows, the
 * values of a query, recovery after a failed send, objects in use that must not be
 * destroyed, and types of objects that the device does not support.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <unistd.h>

#include "../lib/vb.h"

#define INIT_RC (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR_RC \
	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_RC \
	(IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
	 IBV_QP_MAX_QP_RD_ATOMIC)
#define EVERYTHING 0x1fffff /* IBV_QP_STATE to IBV_QP_DEST_QPN */

struct rig {
	struct vb v;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_qp_attr attr;
};

static void rig_open(struct rig *r, enum ibv_qp_type type)
{
	r->v = vb_open(8192);
	r->cq = ibv_create_cq(r->v.ctx, 64, NULL, NULL, 0);
	cr_assert(r->cq);
	r->qp = vb_qp(&r->v, type, r->cq, NULL);
	r->attr = (struct ibv_qp_attr){
		.port_num = 1,
		.qkey = 0x11111111,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 5,
		.ah_attr = vb_ah(&r->v),
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.rq_psn = 77,
		.sq_psn = 88,
		.max_dest_rd_atomic = 3,
		.max_rd_atomic = 2,
		.min_rnr_timer = 11,
		.timeout = 12,
		.retry_cnt = 6,
		.rnr_retry = 5,
	};
}

static void rig_close(struct rig *r)
{
	cr_assert_eq(ibv_destroy_qp(r->qp), 0);
	cr_assert_eq(ibv_destroy_cq(r->cq), 0);
	vb_close(&r->v);
}

static int modify(struct rig *r, enum ibv_qp_state to, int mask)
{
	r->attr.qp_state = to;
	return ibv_modify_qp(r->qp, &r->attr, IBV_QP_STATE | mask);
}

/*
 * Expects that the transition requires every attribute in `need`, and refuses those
 * that are neither in `need` nor in `may`.
 */
static void only(struct rig *r, enum ibv_qp_state to, int need, int may)
{
	int bit;

	for (bit = 2; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
		if (need & bit)
			cr_assert_eq(modify(r, to, need & ~bit), EINVAL,
				     "accepted without attribute %#x", bit);
		else if (!(may & bit))
			cr_assert_eq(modify(r, to, need | bit), EINVAL,
				     "accepted with attribute %#x", bit);
	}
	cr_assert_eq(modify(r, to, EVERYTHING), EINVAL);
}

Test(verbs_qp, transitions_check_their_attributes)
{
	int extra = IBV_QP_CUR_STATE | IBV_QP_PATH_MIG_STATE | IBV_QP_ACCESS_FLAGS |
		    IBV_QP_MIN_RNR_TIMER;
	struct rig r;

	rig_open(&r, IBV_QPT_RC);
	cr_assert_eq(modify(&r, IBV_QPS_RTR, RTR_RC), EINVAL, "RTR must be refused in RESET");
	only(&r, IBV_QPS_INIT, INIT_RC, 0);
	cr_assert_eq(modify(&r, IBV_QPS_INIT, INIT_RC), 0);
	only(&r, IBV_QPS_INIT, 0, INIT_RC);
	only(&r, IBV_QPS_RTR, RTR_RC, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX);
	cr_assert_eq(modify(&r, IBV_QPS_RTR, RTR_RC), 0);
	only(&r, IBV_QPS_RTS, RTS_RC, extra);
	r.attr.cur_qp_state = IBV_QPS_INIT;
	cr_assert_eq(modify(&r, IBV_QPS_RTS, RTS_RC | IBV_QP_CUR_STATE), EINVAL,
		     "a wrong current state must be refused");
	r.attr.cur_qp_state = IBV_QPS_RTR;
	cr_assert_eq(modify(&r, IBV_QPS_RTS, RTS_RC | IBV_QP_CUR_STATE), 0);
	only(&r, IBV_QPS_RTS, 0, extra);
	cr_assert_eq(ibv_modify_qp(r.qp, &r.attr, IBV_QP_RATE_LIMIT), EINVAL);
	only(&r, IBV_QPS_ERR, 0, 0);
	only(&r, IBV_QPS_RESET, 0, 0);
	cr_assert_eq(modify(&r, IBV_QPS_RESET, 0), 0);
	cr_assert_eq(modify(&r, IBV_QPS_RESET, 0), 0);
	rig_close(&r);
}

Test(verbs_qp, drained_queue_raises_an_event_and_resumes)
{
	int sqd = RTR_RC | RTS_RC | INIT_RC | IBV_QP_PATH_MIG_STATE;
	struct ibv_qp_init_attr init;
	struct ibv_async_event ev;
	struct ibv_qp_attr a;
	struct ibv_wc wc;
	struct rig r;

	rig_open(&r, IBV_QPT_RC);
	vb_connect(&r.v, r.qp, r.qp);
	only(&r, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY);
	r.attr.en_sqd_async_notify = 1;
	cr_assert_eq(modify(&r, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	cr_assert_eq(vb_async(&r.v, &ev, 5000), IBV_EVENT_SQ_DRAINED);
	cr_assert_eq(ev.element.qp, r.qp);
	cr_assert_eq(ibv_query_qp(r.qp, &a, IBV_QP_STATE, &init), 0);
	cr_assert_eq(a.qp_state, IBV_QPS_SQD);
	cr_assert_eq(a.sq_draining, 0);
	only(&r, IBV_QPS_SQD, 0,
	     sqd & ~(IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_SQ_PSN));
	cr_assert_eq(vb_recv(&r.v, r.qp, 1, 4096, 64), 0);
	cr_assert_eq(vb_send(&r.v, r.qp, 2, 0, 64), 0);
	usleep(10000);
	cr_assert_eq(ibv_poll_cq(r.cq, 1, &wc), 0, "a send in SQD must not be executed");
	cr_assert_eq(modify(&r, IBV_QPS_RTS, 0), 0);
	cr_assert_eq(vb_wc(r.cq).status | vb_wc(r.cq).status, IBV_WC_SUCCESS);
	rig_close(&r);
}

Test(verbs_qp, ud_and_uc_need_fewer_attributes)
{
	struct rig r;

	rig_open(&r, IBV_QPT_UD);
	only(&r, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0);
	cr_assert_eq(modify(&r, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
	only(&r, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY);
	cr_assert_eq(modify(&r, IBV_QPS_RTR, 0), 0);
	only(&r, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY);
	cr_assert_eq(modify(&r, IBV_QPS_RTS, IBV_QP_SQ_PSN), 0);
	rig_close(&r);
	rig_open(&r, IBV_QPT_UC);
	cr_assert_eq(modify(&r, IBV_QPS_INIT, INIT_RC), 0);
	only(&r, IBV_QPS_RTR, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	     IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX);
	rig_close(&r);
}

Test(verbs_qp, values_out_of_range_are_refused)
{
	struct ibv_qp_attr good;
	struct rig r;

	rig_open(&r, IBV_QPT_RC);
	good = r.attr;
#define BAD(field, value, to, mask) \
	r.attr.field = value; \
	cr_assert_eq(modify(&r, to, mask), EINVAL, #field); \
	r.attr = good
	BAD(port_num, 2, IBV_QPS_INIT, INIT_RC);
	BAD(pkey_index, 1, IBV_QPS_INIT, INIT_RC);
	cr_assert_eq(modify(&r, IBV_QPS_INIT, INIT_RC), 0);
	BAD(path_mtu, 6, IBV_QPS_RTR, RTR_RC);
	BAD(path_mtu, 0, IBV_QPS_RTR, RTR_RC);
	BAD(max_dest_rd_atomic, 17, IBV_QPS_RTR, RTR_RC);
	BAD(min_rnr_timer, 32, IBV_QPS_RTR, RTR_RC);
	BAD(ah_attr.is_global, 0, IBV_QPS_RTR, RTR_RC);
	BAD(ah_attr.port_num, 2, IBV_QPS_RTR, RTR_RC);
	BAD(ah_attr.grh.sgid_index, 200, IBV_QPS_RTR, RTR_RC);
	cr_assert_eq(modify(&r, IBV_QPS_RTR, RTR_RC), 0);
	BAD(max_rd_atomic, 17, IBV_QPS_RTS, RTS_RC);
	BAD(timeout, 32, IBV_QPS_RTS, RTS_RC);
	BAD(retry_cnt, 8, IBV_QPS_RTS, RTS_RC);
	BAD(rnr_retry, 8, IBV_QPS_RTS, RTS_RC);
#undef BAD
	cr_assert_eq(modify(&r, IBV_QPS_RTS, RTS_RC), 0);
	r.attr.path_mig_state = IBV_MIG_ARMED;
	cr_assert_eq(modify(&r, IBV_QPS_RTS, IBV_QP_PATH_MIG_STATE), EINVAL,
		     "there is no alternate path");
	rig_close(&r);
}

Test(verbs_qp, query_returns_what_was_set)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	struct rig r;

	rig_open(&r, IBV_QPT_RC);
	r.attr.ah_attr.grh.traffic_class = 0x60;
	r.attr.ah_attr.sl = 3;
	cr_assert_eq(modify(&r, IBV_QPS_INIT, INIT_RC), 0);
	cr_assert_eq(modify(&r, IBV_QPS_RTR, RTR_RC), 0);
	cr_assert_eq(modify(&r, IBV_QPS_RTS, RTS_RC), 0);
	memset(&a, 0xee, sizeof(a));
	cr_assert_eq(ibv_query_qp(r.qp, &a, EVERYTHING, &init), 0);
	cr_assert_eq(a.qp_state, IBV_QPS_RTS);
	cr_assert_eq(a.cur_qp_state, IBV_QPS_RTS);
#define SAME(f) cr_assert_eq(a.f, r.attr.f, #f)
	SAME(path_mtu);
	SAME(rq_psn);
	SAME(sq_psn);
	SAME(dest_qp_num);
	SAME(qp_access_flags);
	SAME(pkey_index);
	SAME(max_rd_atomic);
	SAME(max_dest_rd_atomic);
	SAME(min_rnr_timer);
	SAME(port_num);
	SAME(timeout);
	SAME(retry_cnt);
	SAME(rnr_retry);
	SAME(ah_attr.is_global);
	SAME(ah_attr.sl);
	SAME(ah_attr.port_num);
	SAME(ah_attr.grh.sgid_index);
	SAME(ah_attr.grh.hop_limit);
	SAME(ah_attr.grh.traffic_class);
	SAME(ah_attr.grh.dgid.global.interface_id);
#undef SAME
	cr_assert_eq(a.path_mig_state, IBV_MIG_MIGRATED);
	cr_assert_eq(a.sq_draining, 0);
	cr_assert_geq(a.cap.max_send_wr, 64);
	cr_assert_geq(a.cap.max_recv_wr, 64);
	cr_assert_geq(a.cap.max_send_sge, 4);
	cr_assert_geq(a.cap.max_recv_sge, 4);
	cr_assert_geq(a.cap.max_inline_data, 64);
	cr_assert_eq(init.qp_type, IBV_QPT_RC);
	cr_assert_eq(init.send_cq, r.cq);
	rig_close(&r);
}

static void send_ud(struct rig *r, struct ibv_ah *ah, uint32_t lkey)
{
	struct ibv_sge sge = { .addr = (uintptr_t)r->v.mem, .length = 16, .lkey = lkey };
	struct ibv_send_wr wr = { .wr_id = lkey,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = r->qp->qp_num;
	wr.wr.ud.remote_qkey = 0x11111111;
	cr_assert_eq(ibv_post_send(r->qp, &wr, &bad), 0);
}

static enum ibv_qp_state state_of(struct rig *r)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	cr_assert_eq(ibv_query_qp(r->qp, &a, IBV_QP_STATE, &init), 0);
	return a.qp_state;
}

/*
 * Sends datagrams to itself: one fails, the next is flushed, and one succeeds after
 * the QP was moved back to RTS.
 */
Test(verbs_qp, ud_queue_recovers_from_a_failed_send)
{
	struct ibv_ah_attr av;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct rig r;

	rig_open(&r, IBV_QPT_UD);
	vb_connect(&r.v, r.qp, r.qp);
	av = vb_ah(&r.v);
	ah = ibv_create_ah(r.v.pd, &av);
	cr_assert(ah);
	cr_assert_eq(vb_recv(&r.v, r.qp, 9, 4096, 256), 0);
	send_ud(&r, ah, r.v.mr->lkey ^ 0xff);
	wc = vb_wc(r.cq);
	cr_assert_eq(wc.status, IBV_WC_LOC_PROT_ERR);
	cr_assert_eq(state_of(&r), IBV_QPS_SQE);
	send_ud(&r, ah, r.v.mr->lkey);
	wc = vb_wc(r.cq);
	cr_assert_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(ibv_poll_cq(r.cq, 1, &wc), 0, "the receive must not be consumed");
	cr_assert_eq(modify(&r, IBV_QPS_RTS, 0), 0);
	cr_assert_eq(state_of(&r), IBV_QPS_RTS);
	send_ud(&r, ah, r.v.mr->lkey);
	cr_assert_eq(vb_wc(r.cq).status, IBV_WC_SUCCESS);
	cr_assert_eq(vb_wc(r.cq).status, IBV_WC_SUCCESS);
	cr_assert_eq(ibv_destroy_ah(ah), 0);
	rig_close(&r);
}

Test(verbs_qp, message_before_rts_raises_comm_est)
{
	struct ibv_async_event ev;
	struct ibv_qp *peer;
	struct rig r;

	rig_open(&r, IBV_QPT_RC);
	peer = vb_qp(&r.v, IBV_QPT_RC, r.cq, NULL);
	vb_to_init(peer);
	vb_to_rts(&r.v, peer, r.qp->qp_num, 7);
	r.attr.dest_qp_num = peer->qp_num;
	r.attr.rq_psn = peer->qp_num;
	cr_assert_eq(modify(&r, IBV_QPS_INIT, INIT_RC), 0);
	cr_assert_eq(modify(&r, IBV_QPS_RTR, RTR_RC), 0);
	cr_assert_eq(vb_recv(&r.v, r.qp, 1, 0, 256), 0);
	cr_assert_eq(vb_recv(&r.v, r.qp, 2, 0, 256), 0);
	cr_assert_eq(vb_send(&r.v, peer, 3, 4096, 64), 0);
	cr_assert_eq(vb_async(&r.v, &ev, 5000), IBV_EVENT_COMM_EST);
	cr_assert_eq(ev.element.qp, r.qp);
	cr_assert_eq(vb_send(&r.v, peer, 4, 4096, 64), 0);
	cr_assert_eq(vb_wc(r.cq).status | vb_wc(r.cq).status, IBV_WC_SUCCESS);
	cr_assert_eq(vb_wc(r.cq).status | vb_wc(r.cq).status, IBV_WC_SUCCESS);
	cr_assert_eq(vb_async(&r.v, &ev, 0), -1, "the event must come once");
	cr_assert_eq(ibv_destroy_qp(peer), 0);
	rig_close(&r);
}

Test(verbs_qp, udp_source_port_can_be_changed)
{
	uint32_t in[4] = { 0 }, out[68] = { 0 };
	struct ibv_qp *peer;
	struct rig r;

	rig_open(&r, IBV_QPT_RC);
	cr_assert_eq(mlx5dv_modify_qp_udp_sport(r.qp, 50001), EOPNOTSUPP,
		     "must be refused before RTS");
	peer = vb_qp(&r.v, IBV_QPT_RC, r.cq, NULL);
	vb_connect(&r.v, r.qp, peer);
	cr_assert_eq(mlx5dv_modify_qp_udp_sport(r.qp, 50001), 0);
	in[0] = htobe32(0x50bu << 16); /* QUERY_QP */
	in[2] = htobe32(r.qp->qp_num);
	cr_assert_eq(mlx5dv_devx_qp_query(r.qp, in, sizeof(in), out, sizeof(out)), 0);
	cr_assert_eq(be32toh(out[(0x18 + 0x18 + 0x20) / 4]) & 0xffff, 50001);
	cr_assert_eq(ibv_destroy_qp(peer), 0);
	rig_close(&r);
}

Test(verbs_qp, objects_in_use_are_not_destroyed)
{
	struct ibv_comp_channel *ch;
	struct ibv_ah_attr av;
	struct ibv_ah *ah;
	struct ibv_cq *cq;
	struct rig r;

	rig_open(&r, IBV_QPT_RC);
	ch = ibv_create_comp_channel(r.v.ctx);
	cq = ibv_create_cq(r.v.ctx, 4, NULL, ch, 0);
	av = vb_ah(&r.v);
	ah = ibv_create_ah(r.v.pd, &av);
	cr_assert(ch && cq && ah);
	cr_assert_eq(ibv_destroy_cq(r.cq), EBUSY);
	cr_assert_eq(ibv_dealloc_pd(r.v.pd), EBUSY);
	cr_assert_eq(ibv_destroy_comp_channel(ch), EBUSY);
	cr_assert_eq(ibv_destroy_ah(ah), 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	cr_assert_eq(ibv_destroy_comp_channel(ch), 0);
	rig_close(&r);
}

/* The kernel returns EPROTONOSUPPORT for ioctl methods that it does not know. */
#define NO_OBJECT(call) \
	do { \
		errno = 0; \
		cr_assert_null(call); \
		cr_assert(errno == EOPNOTSUPP || errno == EPROTONOSUPPORT, "%s: errno is %s", \
			  #call, strerror(errno)); \
	} while (0)

Test(verbs_qp, unsupported_objects_are_refused)
{
	struct ibv_flow_attr flow = { .type = IBV_FLOW_ATTR_NORMAL,
				      .size = sizeof(flow),
				      .port = 1 };
	struct ibv_xrcd_init_attr xrcd = { .comp_mask = 3, .fd = -1, .oflags = O_CREAT };
	union ibv_gid group = { .raw = { 0xff, 0x0e } };
	struct ibv_qp_init_attr_ex dc = { .qp_type = IBV_QPT_DRIVER,
					  .cap = { 4, 0, 1, 0, 0 },
					  .comp_mask = IBV_QP_INIT_ATTR_PD };
	struct mlx5dv_qp_init_attr dci = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
		.dc_init_attr = { .dc_type = MLX5DV_DCTYPE_DCI },
	};
	struct rig r;

	rig_open(&r, IBV_QPT_UD);
	dc.send_cq = dc.recv_cq = r.cq;
	dc.pd = r.v.pd;
	NO_OBJECT(mlx5dv_create_qp(r.v.ctx, &dc, &dci));
	NO_OBJECT(ibv_alloc_mw(r.v.pd, IBV_MW_TYPE_1));
	NO_OBJECT(ibv_open_xrcd(r.v.ctx, &xrcd));
	cr_assert(!ibv_create_flow(r.qp, &flow));
	cr_assert_eq(errno, EINVAL, "a rule needs a raw packet QP");
	cr_assert_eq(ibv_attach_mcast(r.qp, &group, 0), EOPNOTSUPP);
	rig_close(&r);
}
