/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Two connected queue pairs of one process, a and b, whose receive queues are exported. Each has a
 * buffer of RECV_RIG_BYTES that the other may write.
 */
#ifndef RECV_RIG_H
#define RECV_RIG_H

#include <infiniband/mlx5dv.h>
#include <string.h>

#include "e2e.h"
#include "device/gdk/recv_dev.h"
#include "device/gdk/send_dev.h"

#define RECV_RIG_BYTES 65536u

struct recv_rig_how {
	enum doca_gpu_dev_verbs_nic_handler handler;
	uint32_t sq_wr, rq_wr, sges; /* 0: 64, 64, 1 */
	uint32_t rcq, scq;	     /* entries of the CQs; 0: as WQEs */
	bool no_rq;		     /* do not export the receive queues */
	bool uc;
	size_t bytes; /* of each buffer; 0: RECV_RIG_BYTES */
};

struct recv_end {
	struct e2e_nic *nic;
	struct recv_rig_how how;
	doca_verbs_cq_t *scq, *rcq;
	doca_verbs_qp_t *qp;
	struct doca_gpu_verbs_qp *ex;
	struct doca_gpu_dev_verbs_qp *dev;
	struct e2e_buf buf;
	uint32_t qpn;
};

struct recv_rig {
	struct e2e_nic nic;
	struct recv_end a, b;
};

static inline doca_verbs_cq_t *recv_cq_open(struct e2e_nic *nic, uint32_t num)
{
	doca_verbs_cq_attr_t *attr;
	doca_verbs_cq_t *cq;

	E2E_REQUIRE(!doca_verbs_cq_attr_create(&attr));
	E2E_REQUIRE(!doca_verbs_cq_attr_set_cq_size(attr, num));
	E2E_REQUIRE(!doca_verbs_cq_attr_set_cq_overrun(attr, DOCA_VERBS_CQ_ENABLE_OVERRUN));
	E2E_REQUIRE(!doca_verbs_cq_create(nic->dev, attr, &cq));
	E2E_REQUIRE(!doca_verbs_cq_attr_destroy(attr));
	return cq;
}

/* Changes the attributes before the QP is created; NULL: none. */
typedef void (*recv_init_fn)(doca_verbs_qp_init_attr_t *init);

static inline void recv_qp_create(struct recv_end *e, recv_init_fn change)
{
	doca_verbs_qp_init_attr_t *init;

	E2E_REQUIRE(!doca_verbs_qp_init_attr_create(&init));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_send_cq(init, e->scq));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_receive_cq(init, e->rcq));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_sq_wr(init, e->how.sq_wr));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_rq_wr(init, e->how.rq_wr));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_send_max_sges(init, 1));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_receive_max_sges(init, e->how.sges));
	if (e->how.uc)
		E2E_REQUIRE(!doca_verbs_qp_init_attr_set_qp_type(init, DOCA_VERBS_QP_TYPE_UC));
	if (e->how.handler == E2E_NO_DBR)
		E2E_REQUIRE(!doca_verbs_qp_init_attr_set_send_dbr_mode(
			init, DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT));
	if (change)
		change(init);
	E2E_REQUIRE(!doca_verbs_qp_create(e->nic->dev, init, &e->qp));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_destroy(init));
	E2E_REQUIRE(!doca_verbs_qp_get_qpn(e->qp, &e->qpn));
}

static inline void recv_end_open(struct e2e_nic *nic, struct recv_end *e, struct recv_rig_how how,
				 recv_init_fn change)
{
	const enum doca_gpu_verbs_send_dbr_mode_ext mode =
		how.handler == E2E_NO_DBR ? DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW
					  : DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR;

	memset(e, 0, sizeof(*e));
	e->nic = nic;
	how.sq_wr = how.sq_wr ? how.sq_wr : 64;
	how.rq_wr = how.rq_wr ? how.rq_wr : 64;
	how.sges = how.sges ? how.sges : 1;
	e->how = how;
	e->scq = recv_cq_open(nic, how.scq ? how.scq : how.sq_wr);
	e->rcq = recv_cq_open(nic, how.rcq ? how.rcq : how.rq_wr);
	recv_qp_create(e, change);
	if (how.no_rq)
		E2E_REQUIRE(!doca_gpu_verbs_export_qp(nic->gpu, e->qp, how.handler, NULL, e->scq,
						      mode, &e->ex));
	else
		E2E_REQUIRE(!gdk_verbs_export_qp_rq(nic->gpu, e->qp, how.handler, e->scq, e->rcq,
						    mode, &e->ex));
	E2E_REQUIRE(!doca_gpu_verbs_get_qp_dev(e->ex, &e->dev));
	E2E_REQUIRE(!gdk_verbs_qp_set_wait_limit(e->ex, E2E_WAIT_NS));
	e2e_buf_open(nic, &e->buf, how.bytes ? how.bytes : RECV_RIG_BYTES, E2E_REMOTE);
}

static inline void recv_end_close(struct recv_end *e)
{
	E2E_REQUIRE(!doca_gpu_verbs_unexport_qp(e->nic->gpu, e->ex));
	E2E_REQUIRE(!doca_verbs_qp_destroy(e->qp));
	E2E_REQUIRE(!doca_verbs_cq_destroy(e->scq));
	E2E_REQUIRE(!doca_verbs_cq_destroy(e->rcq));
	e2e_buf_close(&e->buf);
}

static inline void recv_rig_connect_rnr(struct recv_rig *r, uint16_t rnr_retry)
{
	const struct e2e_path path = { 14, 7, 0x1234 };
	struct recv_end *ends[] = { &r->a, &r->b };

	for (int i = 0; i < 2; i++) {
		doca_verbs_qp_t *qp = ends[i]->qp;
		const uint32_t dest = ends[!i]->qpn;

		E2E_REQUIRE(!(ends[i]->how.uc ? e2e_connect_uc(&r->nic, qp, &r->nic.gid, dest, path)
					      : e2e_connect_rnr(&r->nic, qp, &r->nic.gid, dest,
								path, rnr_retry)));
	}
}

static inline void recv_rig_connect(struct recv_rig *r)
{
	recv_rig_connect_rnr(r, 1);
}

/* Without the connection. */
static inline void recv_rig_create(struct recv_rig *r, struct recv_rig_how how, recv_init_fn change)
{
	e2e_open(&r->nic);
	recv_end_open(&r->nic, &r->a, how, change);
	recv_end_open(&r->nic, &r->b, how, change);
}

static inline void recv_rig_open_with(struct recv_rig *r, struct recv_rig_how how,
				      recv_init_fn change)
{
	recv_rig_create(r, how, change);
	recv_rig_connect(r);
}

static inline void recv_rig_open(struct recv_rig *r, struct recv_rig_how how)
{
	recv_rig_open_with(r, how, NULL);
}

static inline void recv_rig_close(struct recv_rig *r)
{
	recv_end_close(&r->a);
	recv_end_close(&r->b);
	e2e_close(&r->nic);
}

/* Address of byte `at` of an end's buffer. */
static inline struct doca_gpu_dev_verbs_addr recv_at(const struct recv_end *e, size_t at)
{
	return e2e_addr(e->buf.mem + at, e->buf.mr->lkey);
}

static inline struct doca_gpu_dev_verbs_addr recv_remote(const struct recv_end *e, size_t at)
{
	return e2e_addr(e->buf.mem + at, e->buf.mr->rkey);
}

/* The producer index that the NIC reads: word 0 of the DBREC. */
static inline uint32_t recv_dbrec(const struct recv_end *e)
{
	void *dbrec;

	E2E_REQUIRE(!doca_verbs_qp_get_dbr_addr(e->qp, &dbrec));
	return be32toh(__atomic_load_n((uint32_t *)dbrec, __ATOMIC_RELAXED));
}

/* Polls once as an application that does not use the library's functions: the owner bit of a CQE is
 * the parity of its lap. */
static inline int recv_poll_by_hand(struct doca_gpu_dev_verbs_cq *cq, uint64_t index)
{
	const uint8_t *cqe = cq->cqe_daddr + (index & (cq->cqe_num - 1)) * 64;
	/* Acquire: the CQE, then the data. ThreadSanitizer needs the size of the NIC's store. */
	const uint8_t op_own =
		__atomic_load_n((const uint32_t *)(const void *)(cqe + 60), __ATOMIC_ACQUIRE) >> 24;

	if ((op_own & 1) != !!(index & cq->cqe_num) || op_own >> 4 == 0xf)
		return EBUSY;
	(void)gdk_max64(&cq->cqe_ci, index + 1, GDK_SCOPE_GPU);
	return op_own >> 4 >= 13 ? -EIO : 0;
}

#endif
