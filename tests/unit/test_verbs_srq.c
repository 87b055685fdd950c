/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Shared receive queues: those of libibverbs, whose ring libmlx5 links and refills,
 * and those of this library, which are RMPs of the firmware, as a ring and as a
 * linked list.
 */
#include <endian.h>
#include <unistd.h>

#include "../lib/e2e.h"
#include "../lib/vb.h"
#include "device/gdk/srq_dev.h"

#define BYTES	256u
#define RECV_AT 65536u

struct shared {
	struct vb v;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *tx[2], *rx[2];
};

static void open_all(struct shared *s, uint32_t wr)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = wr, .max_sge = 3 } };
	int i;

	s->v = vb_open(2 * RECV_AT);
	s->cq = ibv_create_cq(s->v.ctx, 512, NULL, NULL, 0);
	s->srq = ibv_create_srq(s->v.pd, &init);
	cr_assert(s->cq && s->srq);
	for (i = 0; i < 2; i++) {
		s->tx[i] = vb_qp(&s->v, IBV_QPT_RC, s->cq, NULL);
		s->rx[i] = vb_qp(&s->v, IBV_QPT_RC, s->cq, s->srq);
		vb_connect(&s->v, s->tx[i], s->rx[i]);
	}
}

static void close_all(struct shared *s)
{
	int i;

	cr_assert_eq(ibv_destroy_srq(s->srq), EBUSY, "an SRQ that QPs use must not be destroyed");
	for (i = 0; i < 2; i++) {
		cr_assert_eq(ibv_destroy_qp(s->tx[i]), 0);
		cr_assert_eq(ibv_destroy_qp(s->rx[i]), 0);
	}
	cr_assert_eq(ibv_destroy_srq(s->srq), 0);
	cr_assert_eq(ibv_destroy_cq(s->cq), 0);
	vb_close(&s->v);
}

/* Three laps of the ring, consumed by two QPs alternately. */
Test(verbs_srq, two_qps_consume_one_srq)
{
	struct ibv_wc wc, got = { 0 };
	struct shared s;
	uint32_t n, i;

	open_all(&s, 15);
	for (n = 0; n < 15; n++)
		cr_assert_eq(vb_srq_recv(&s.v, s.srq, n, RECV_AT + n * BYTES, BYTES), 0);
	for (n = 0; n < 48; n++) {
		s.v.mem[0] = (uint8_t)(n + 1);
		cr_assert_eq(vb_send(&s.v, s.tx[n % 2], 1000, 0, BYTES), 0);
		for (i = 0; i < 2; i++) {
			wc = vb_wc(s.cq);
			cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
			if (wc.opcode == IBV_WC_RECV)
				got = wc;
		}
		cr_assert_eq(got.wr_id, n % 15, "message %u used the wrong receive", n);
		cr_assert_eq(got.qp_num, s.rx[n % 2]->qp_num);
		cr_assert_eq(got.byte_len, BYTES);
		cr_assert_eq(s.v.mem[RECV_AT + n % 15 * BYTES], n + 1);
		cr_assert_eq(vb_srq_recv(&s.v, s.srq, n % 15, RECV_AT + n % 15 * BYTES, BYTES), 0);
	}
	close_all(&s);
}

Test(verbs_srq, empty_srq_delays_the_sender)
{
	struct shared s;
	struct ibv_wc a, b;

	open_all(&s, 4);
	cr_assert_eq(vb_send(&s.v, s.tx[0], 7, 0, BYTES), 0);
	usleep(20000);
	cr_assert_eq(ibv_poll_cq(s.cq, 1, &a), 0, "a send completed without a receive");
	cr_assert_eq(vb_srq_recv(&s.v, s.srq, 8, RECV_AT, BYTES), 0);
	a = vb_wc(s.cq);
	b = vb_wc(s.cq);
	cr_assert_eq(a.status | b.status, IBV_WC_SUCCESS);
	cr_assert_eq(a.wr_id + b.wr_id, 15);
	close_all(&s);
}

Test(verbs_srq, limit_event_is_raised_once)
{
	struct ibv_srq_attr attr = { .srq_limit = 3 };
	struct ibv_async_event ev;
	struct shared s;
	uint32_t n;

	open_all(&s, 15);
	for (n = 0; n < 5; n++)
		cr_assert_eq(vb_srq_recv(&s.v, s.srq, n, RECV_AT, BYTES), 0);
	cr_assert_eq(ibv_modify_srq(s.srq, &attr, IBV_SRQ_LIMIT), 0);
	cr_assert_eq(ibv_query_srq(s.srq, &attr), 0);
	cr_assert_eq(attr.srq_limit, 3);
	cr_assert_geq(attr.max_wr, 15);
	cr_assert_eq(attr.max_sge, 3);
	for (n = 0; n < 4; n++) {
		cr_assert_eq(vb_send(&s.v, s.tx[0], 9, 0, BYTES), 0);
		cr_assert_eq(vb_wc(s.cq).status | vb_wc(s.cq).status, IBV_WC_SUCCESS);
		if (n < 2) /* 4 and 3 receives are left */
			cr_assert_eq(vb_async(&s.v, &ev, 0), -1,
				     "event too early, after message %u", n);
		if (n == 2) {
			cr_assert_eq(vb_async(&s.v, &ev, 5000), IBV_EVENT_SRQ_LIMIT_REACHED);
			cr_assert_eq(ev.element.srq, s.srq);
		}
	}
	cr_assert_eq(vb_async(&s.v, &ev, 0), -1, "the event must come once");
	attr.srq_limit = 100;
	cr_assert_eq(ibv_modify_srq(s.srq, &attr, IBV_SRQ_LIMIT), EINVAL,
		     "a limit above the SRQ's size must be refused");
	cr_assert_eq(ibv_modify_srq(s.srq, &attr, IBV_SRQ_MAX_WR), EINVAL,
		     "mlx5 does not resize an SRQ");
	close_all(&s);
}

Test(verbs_srq, qp_error_raises_last_wqe_reached)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_async_event ev;
	struct shared s;

	open_all(&s, 4);
	cr_assert_eq(vb_srq_recv(&s.v, s.srq, 1, RECV_AT, BYTES), 0);
	cr_assert_eq(ibv_modify_qp(s.rx[1], &attr, IBV_QP_STATE), 0);
	cr_assert_eq(vb_async(&s.v, &ev, 5000), IBV_EVENT_QP_LAST_WQE_REACHED);
	cr_assert_eq(ev.element.qp, s.rx[1]);
	/* the receive remains for the other QPs */
	cr_assert_eq(vb_send(&s.v, s.tx[0], 2, 0, BYTES), 0);
	cr_assert_eq(vb_wc(s.cq).status | vb_wc(s.cq).status, IBV_WC_SUCCESS);
	close_all(&s);
}

Test(verbs_srq, tag_matching_srq_is_refused)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.srq_type = IBV_SRQT_TM,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
		.tm_cap = { .max_num_tags = 4, .max_ops = 4 },
	};
	struct ibv_cq_init_attr_ex cq_init = { .cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct vb v = vb_open(4096);
	struct ibv_cq_ex *cq = ibv_create_cq_ex(v.ctx, &cq_init);

	cr_assert(cq);
	init.pd = v.pd;
	init.cq = ibv_cq_ex_to_cq(cq);
	cr_assert_eq(ibv_create_srq_ex(v.ctx, &init), NULL, "tag matching must be refused");
	cr_assert_eq(errno, EOPNOTSUPP);
	cr_assert_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	vb_close(&v);
}

/* ---- SRQs of this library: RMPs of the firmware ---- */

struct rmp {
	struct e2e_nic nic;
	struct e2e_qp tx;
	struct e2e_buf buf;
	struct doca_verbs_srq *srq;
	doca_verbs_cq_t *cq;
	doca_verbs_qp_t *rx;
};

static void make_srq(struct rmp *r, enum doca_verbs_srq_type type)
{
	struct doca_verbs_srq_init_attr *attr;

	cr_assert_eq(doca_verbs_srq_init_attr_create(&attr), DOCA_SUCCESS);
	doca_verbs_srq_init_attr_set_srq_wr(attr, 4);
	doca_verbs_srq_init_attr_set_receive_max_sges(attr, 1);
	doca_verbs_srq_init_attr_set_type(attr, type);
	doca_verbs_srq_init_attr_set_pd(attr, r->nic.pd);
	cr_assert_eq(doca_verbs_srq_create(r->nic.ctx, attr, &r->srq), DOCA_SUCCESS);
	doca_verbs_srq_init_attr_destroy(attr);
}

static void make_receiver(struct rmp *r)
{
	doca_verbs_qp_init_attr_t *init;
	doca_verbs_cq_attr_t *attr;

	cr_assert_eq(doca_verbs_cq_attr_create(&attr), DOCA_SUCCESS);
	doca_verbs_cq_attr_set_cq_size(attr, 64);
	cr_assert_eq(doca_verbs_cq_create(r->nic.dev, attr, &r->cq), DOCA_SUCCESS);
	doca_verbs_cq_attr_destroy(attr);
	cr_assert_eq(doca_verbs_qp_init_attr_create(&init), DOCA_SUCCESS);
	doca_verbs_qp_init_attr_set_pd(init, r->nic.dev);
	doca_verbs_qp_init_attr_set_send_cq(init, r->cq);
	doca_verbs_qp_init_attr_set_receive_cq(init, r->cq);
	doca_verbs_qp_init_attr_set_send_max_sges(init, 1);
	doca_verbs_qp_init_attr_set_sq_wr(init, 16);
	cr_assert_eq(doca_verbs_qp_init_attr_set_srq(init, r->srq), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_qp_create(r->nic.dev, init, &r->rx), DOCA_SUCCESS);
	doca_verbs_qp_init_attr_destroy(init);
}

/*
 * Writes receive WQE n and then the DBREC. linked: the WQE begins with a next segment,
 * which names the next WQE.
 */
static void post(struct rmp *r, uint32_t n, bool linked)
{
	uint32_t num, stride, *wqe, *dbr = doca_verbs_srq_get_dbr_addr(r->srq);
	void *ring;
	uint64_t at;

	doca_verbs_srq_get_wq(r->srq, &ring, &num, &stride);
	wqe = (uint32_t *)((uint8_t *)ring + n % num * stride);
	wqe[0] = htobe32((n + 1) % num);
	wqe += linked ? 4 : 0;
	wqe[0] = htobe32(BYTES);
	wqe[1] = htobe32(r->buf.mr->lkey);
	at = htobe64((uintptr_t)r->buf.mem + RECV_AT + n % num * BYTES);
	memcpy(wqe + 2, &at, 8);
	__atomic_store_n(dbr, htobe32(n + 1), __ATOMIC_RELEASE);
}

static void consume(enum doca_verbs_srq_type type)
{
	bool linked = type == DOCA_VERBS_SRQ_TYPE_LINKED_LIST;
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };
	doca_gpu_dev_verbs_ticket_t ticket;
	uint32_t qpn, n, num;
	volatile uint8_t *cqe;
	uint8_t cqe_bytes;
	struct rmp r;
	void *ring;

	e2e_open(&r.nic);
	e2e_buf_open(&r.nic, &r.buf, 2 * RECV_AT, E2E_REMOTE);
	make_srq(&r, type);
	make_receiver(&r);
	e2e_qp_open(&r.nic, &r.tx, E2E_DB, 64);
	cr_assert_eq(doca_verbs_qp_get_qpn(r.rx, &qpn), DOCA_SUCCESS);
	cr_assert_eq(e2e_connect(&r.nic, r.tx.hl->qp, &r.nic.gid, qpn, path), DOCA_SUCCESS);
	cr_assert_eq(e2e_connect(&r.nic, r.rx, &r.nic.gid, r.tx.qpn, path), DOCA_SUCCESS);
	doca_verbs_cq_get_wq(r.cq, &ring, &num, &cqe_bytes);
	for (n = 0; n < 10; n++) { /* more than two laps of four receives */
		post(&r, n, linked);
		r.buf.mem[0] = (uint8_t)(n + 1);
		cr_assert_eq(gdk_put_imm(r.tx.dev, e2e_addr(r.buf.mem + BYTES, r.buf.mr->rkey),
					 e2e_addr(r.buf.mem, r.buf.mr->lkey), 64, htobe32(n),
					 &ticket, gdk_how(E2E_MODE, E2E_DB, GDK_THREAD, 0)),
			     0);
		cr_assert_eq(e2e_wait(&r.tx, ticket), 0);
		cqe = (volatile uint8_t *)ring + cqe_bytes * n;
		cr_assert_eq(cqe[63] >> 4, 1, "entry %u is not of an RDMA write with immediate", n);
		cr_assert_eq(cqe[60] << 8 | cqe[61], n % 4, "wrong index of the consumed receive");
		cr_assert_eq(cqe[39], n, "wrong immediate");
		cr_assert_eq(r.buf.mem[BYTES], n + 1);
	}
	cr_assert_eq(doca_verbs_srq_destroy(r.srq), DOCA_ERROR_IN_USE);
	e2e_qp_close(&r.tx);
	cr_assert_eq(doca_verbs_qp_destroy(r.rx), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_cq_destroy(r.cq), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_srq_destroy(r.srq), DOCA_SUCCESS);
	e2e_buf_close(&r.buf);
	e2e_close(&r.nic);
}

Test(verbs_srq, library_srq_as_a_ring)
{
	consume(DOCA_VERBS_SRQ_TYPE_CONTIGUOUS);
}

Test(verbs_srq, library_srq_as_a_linked_list)
{
	consume(DOCA_VERBS_SRQ_TYPE_LINKED_LIST);
}

/* ---- export ---- */

static void open_rmp(struct rmp *r, enum doca_verbs_srq_type type)
{
	e2e_open(&r->nic);
	make_srq(r, type);
}

static void close_rmp(struct rmp *r)
{
	cr_assert_eq(doca_verbs_srq_destroy(r->srq), DOCA_SUCCESS);
	e2e_close(&r->nic);
}

/* tests/thread/srq.c tests how receives are posted. */
Test(verbs_srq, export_lasts_until_the_un_export)
{
	struct doca_gpu_dev_verbs_qp *dev = NULL, *again;
	struct rmp r;

	open_rmp(&r, DOCA_VERBS_SRQ_TYPE_CONTIGUOUS);
	cr_assert_eq(gdk_verbs_unexport_srq(r.srq), DOCA_ERROR_NOT_FOUND);
	cr_assert_eq(gdk_verbs_export_srq(r.nic.gpu, r.srq, &dev), DOCA_SUCCESS);
	cr_assert_eq(dev->rq_wqe_num, 4);
	cr_assert_eq(gdk_verbs_export_srq(r.nic.gpu, r.srq, &again), DOCA_ERROR_IN_USE);
	cr_assert_eq(doca_verbs_srq_destroy(r.srq), DOCA_ERROR_IN_USE);
	cr_assert_eq(gdk_verbs_unexport_srq(r.srq), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_export_srq(r.nic.gpu, r.srq, &again), DOCA_ERROR_BAD_STATE,
		     "the NIC does not begin with slot 0 again");
	close_rmp(&r);
}

static doca_error_t describe(struct rmp *r, uint32_t num, bool collapsed,
			     enum doca_verbs_cq_overrun overrun)
{
	struct doca_gpu_dev_verbs_cq dev, expected;
	doca_verbs_cq_attr_t *attr;
	doca_verbs_cq_t *cq;
	doca_error_t err;

	memset(&dev, 0xa5, sizeof(dev));
	expected = dev;
	cr_assert_eq(doca_verbs_cq_attr_create(&attr), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_cq_attr_set_cq_size(attr, num), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_cq_attr_set_cq_overrun(attr, overrun), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_cq_attr_set_cq_collapsed(attr, collapsed), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_cq_create(r->nic.dev, attr, &cq), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_cq_attr_destroy(attr), DOCA_SUCCESS);
	err = gdk_verbs_srq_get_cq_dev(r->srq, cq, &dev);
	if (!err)
		expected = (struct doca_gpu_dev_verbs_cq){ .cqe_daddr = dev.cqe_daddr,
							   .cq_num = dev.cq_num,
							   .cqe_num = num,
							   .dbrec = dev.dbrec,
							   .cqe_mask = num - 1,
							   .cqe_size = 64,
							   .mem_type = dev.mem_type };
	cr_assert(err || (dev.cqe_daddr && dev.cq_num && dev.dbrec));
	cr_assert(!memcmp(&dev, &expected, sizeof(dev)));
	cr_assert_eq(doca_verbs_cq_destroy(cq), DOCA_SUCCESS);
	return err;
}

Test(verbs_srq, receive_cqs_must_fit_the_srq)
{
	const enum doca_verbs_cq_overrun over = DOCA_VERBS_CQ_ENABLE_OVERRUN;
	struct doca_gpu_dev_verbs_qp *dev;
	struct rmp r;

	open_rmp(&r, DOCA_VERBS_SRQ_TYPE_CONTIGUOUS);
	cr_assert_eq(describe(&r, 4, false, over), DOCA_ERROR_NOT_FOUND, "it is not exported");
	cr_assert_eq(gdk_verbs_export_srq(r.nic.gpu, r.srq, &dev), DOCA_SUCCESS);
	cr_assert_eq(describe(&r, 4, false, over), DOCA_SUCCESS);
	cr_assert_eq(describe(&r, 2, false, over), DOCA_ERROR_INVALID_VALUE,
		     "2 entries, 4 receives");
	cr_assert_eq(describe(&r, 4, true, over), DOCA_ERROR_NOT_SUPPORTED, "collapsed");
	cr_assert_eq(describe(&r, 4, false, DOCA_VERBS_CQ_DISABLE_OVERRUN),
		     DOCA_ERROR_NOT_SUPPORTED, "the NIC would find the CQ full");
	cr_assert_eq(gdk_verbs_unexport_srq(r.srq), DOCA_SUCCESS);
	close_rmp(&r);
}

/* The QP finds its WQEs by the index of a CQE, so CQEs of the SRQ must not be among them. */
Test(verbs_srq, the_cq_of_an_exported_qp_does_not_fit)
{
	struct doca_gpu_dev_verbs_qp *dev;
	struct doca_gpu_dev_verbs_cq cq;
	struct rmp r;

	open_rmp(&r, DOCA_VERBS_SRQ_TYPE_CONTIGUOUS);
	e2e_qp_open(&r.nic, &r.tx, E2E_DB, 64);
	cr_assert_eq(gdk_verbs_export_srq(r.nic.gpu, r.srq, &dev), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_srq_get_cq_dev(r.srq, r.tx.hl->cq_sq, &cq), DOCA_ERROR_IN_USE);
	cr_assert_eq(gdk_verbs_unexport_srq(r.srq), DOCA_SUCCESS);
	e2e_qp_close(&r.tx);
	close_rmp(&r);
}

Test(verbs_srq, linked_lists_are_not_exported)
{
	struct doca_gpu_dev_verbs_qp *dev;
	struct rmp r;

	open_rmp(&r, DOCA_VERBS_SRQ_TYPE_LINKED_LIST);
	cr_assert_eq(gdk_verbs_export_srq(r.nic.gpu, r.srq, &dev), DOCA_ERROR_NOT_SUPPORTED);
	close_rmp(&r);
}

static uint32_t posted(const struct rmp *r)
{
	return be32toh(
		__atomic_load_n((uint32_t *)doca_verbs_srq_get_dbr_addr(r->srq), __ATOMIC_RELAXED));
}

static void post_in_any_order(gdk_mode_t mode)
{
	const struct gdk_how how = gdk_how(mode, GDK_AUTO, GDK_THREAD, 0);
	const struct doca_gpu_dev_verbs_addr nothing = { 0, 0 };
	struct doca_gpu_dev_verbs_qp *dev = NULL;
	uint64_t ticket;
	struct rmp r;

	open_rmp(&r, DOCA_VERBS_SRQ_TYPE_CONTIGUOUS);
	cr_assert_eq(gdk_verbs_export_srq(r.nic.gpu, r.srq, &dev), DOCA_SUCCESS);
	cr_assert_eq(gdk_srq_repost(dev, 0, how), -EINVAL, "nothing is posted");
	cr_assert_eq(gdk_srq_submit(dev, 5, how), -EINVAL, "more than the ring");
	cr_assert_eq(gdk_srq_submit(dev, 3, how), 0);
	cr_assert_eq(posted(&r), 3);
	cr_assert_eq(gdk_srq_repost(dev, 0, how), -EINVAL, "slot 3 was never posted");
	cr_assert_eq(posted(&r), 3);
	cr_assert_eq(gdk_srq_submit(dev, 4, how), 0);
	cr_assert_eq(posted(&r), 4);
	for (uint32_t lap = 1; lap < 16500; lap++) { /* more than 65536 receives */
		cr_assert_eq(gdk_srq_repost(dev, 1, how), 0);
		cr_assert_eq(gdk_srq_repost(dev, 3, how), 0);
		cr_assert_eq(posted(&r), (uint16_t)(4 * lap), "slot 0 is not complete");
		cr_assert_eq(gdk_srq_submit(dev, 4 * lap + 4, how), 0);
		cr_assert_eq(posted(&r), (uint16_t)(4 * lap),
			     "a submit does not vouch for slots 0 and 2");
		cr_assert_eq(gdk_srq_repost(dev, 0, how), 0);
		cr_assert_eq(posted(&r), (uint16_t)(4 * lap + 2));
		cr_assert_eq(gdk_srq_repost(dev, 4 * lap + 2, how), 0, "an index as slot");
		cr_assert_eq(posted(&r), (uint16_t)(4 * lap + 4));
	}
	cr_assert_eq(gdk_recv(dev, nothing, 0, &ticket, how), -EOPNOTSUPP);
	cr_assert_eq(gdk_verbs_unexport_srq(r.srq), DOCA_SUCCESS);
	close_rmp(&r);
}

Test(verbs_srq, slots_are_posted_again_in_any_order)
{
	post_in_any_order(E2E_EXCL);
	post_in_any_order(DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA);
	post_in_any_order(E2E_MODE);
}

/* A thread that has seen the CQE of a receive may load rung from before its doorbell. */
Test(verbs_srq, slot_is_posted_again_with_an_old_value_of_rung)
{
	const struct gdk_how how = gdk_how(E2E_MODE, GDK_AUTO, GDK_THREAD, 0);
	struct doca_gpu_dev_verbs_qp *dev = NULL;
	struct gdk_qp_state *st;
	struct rmp r;

	open_rmp(&r, DOCA_VERBS_SRQ_TYPE_CONTIGUOUS);
	cr_assert_eq(gdk_verbs_export_srq(r.nic.gpu, r.srq, &dev), DOCA_SUCCESS);
	st = gdk_state_of_qp(dev);
	cr_assert_eq(gdk_srq_submit(dev, 4, how), 0);
	for (uint32_t slot = 0; slot < 4; slot++)
		cr_assert_eq(gdk_srq_repost(dev, slot, how), 0);
	cr_assert_eq(st->rung, 8);
	for (uint64_t rung = 4; rung <= 8; rung++) {
		st->rung = rung;
		for (uint32_t slot = 0; slot < 4; slot++)
			cr_assert_eq(gdk_srq_index(st, 4, slot), 4 + slot, "rung %lu", rung);
	}
	cr_assert_eq(gdk_verbs_unexport_srq(r.srq), DOCA_SUCCESS);
	close_rmp(&r);
}

Test(verbs_srq, cqes_of_each_kind_and_lap)
{
	struct doca_gpunetio_ib_mlx5_cqe64 ring[4], *cqe;
	const struct doca_gpu_dev_verbs_cq cq = { .cqe_daddr = (uint8_t *)ring,
						  .cqe_num = 4,
						  .cqe_mask = 3 };

	memset(ring, 0, sizeof(ring));
	ring[2].op_own = 0xf1;
	ring[2].wqe_counter = htobe16(0x1234);
	cr_assert_eq(gdk_srq_poll(&cq, 2, &cqe), EBUSY, "of another lap");
	cr_assert_eq(gdk_srq_poll(&cq, 6, &cqe), EBUSY, "invalid");
	ring[2].op_own = 0x21;
	cr_assert_eq(gdk_srq_poll(&cq, 2, &cqe), EBUSY);
	cr_assert_eq(gdk_srq_poll(&cq, 6, &cqe), 0);
	cr_assert_eq(cqe, &ring[2]);
	cr_assert_eq(gdk_srq_slot(cqe), 0x1234);
	ring[2].op_own = 0xe0;
	cr_assert_eq(gdk_srq_poll(&cq, 10, &cqe), -EIO);
	cr_assert_eq(gdk_srq_slot(cqe), 0x1234);
}
