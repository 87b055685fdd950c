/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Private definitions of queue pairs and SRQs, and the functions that the files of qp/ share.
 * Attribute objects are in attr.h, exported queue pairs in export.h.
 */
#ifndef GDK_QP_H
#define GDK_QP_H

#include <pthread.h>

#include "core/nic/prm.h"
#include "cq/cq.h"
#include "qp/verbs/attr.h"

#define GDK_WQEBB_SIZE 64u
/* WQE indices have 16 bits in WQEs, CQEs and the DBREC, and the device struct stores the depth in
 * 16 bits. */
#define GDK_SQ_DEPTH_MAX 32768u

struct doca_verbs_qp_t {
	void *sdk; /* the SDK's object (core/sdk/sdk.h) */
	struct doca_dev *dev;
	struct mlx5dv_devx_obj *obj;
	uint32_t qpn;
	pthread_mutex_t lock; /* protects state and exported, and serializes modify */
	enum doca_verbs_qp_state state;
	uint32_t sq_num, rq_num; /* send slots of 64 bytes; receive WQEs */
	uint32_t rwqe_size;	 /* bytes of a receive WQE */
	void *rq_buf, *sq_buf;	 /* GPU addresses if the umem is GPU memory */
	uint32_t *dbrec;	 /* [0] receive, [1] send; a GPU address in GPU memory */
	bool no_dbr;		 /* created without DBREC (firmware mode) */
	bool emulate_no_dbr;
	bool ethernet; /* the SQ of a TXQ (qp/eth), which is exported as a QP; obj is NULL */
	doca_gpu_t *gpu;
	struct doca_verbs_umem *umem, *umem_dbr;
	bool own_umem;
	void *own_mem;
	struct doca_verbs_uar *uar;
	bool own_uar;
	void *sdk_reg; /* doorbell register, if the QP belongs to the SDK */
	struct doca_verbs_cq_t *send_cq, *recv_cq;
	struct doca_verbs_srq *srq;
	void *context;
	struct doca_verbs_qp_init_attr init; /* attributes of creation, sizes rounded up */
	uint8_t port;			     /* set by the last transition to INIT; 0: none */
	struct doca_gpu_verbs_qp *exported;  /* at most one live export */
	/* Set by a live export: called, with lock held, after the state has changed. */
	void (*on_state)(struct doca_verbs_qp_t *qp, enum doca_verbs_qp_state state);
};

struct doca_verbs_srq {
	void *sdk;	      /* the SDK's object (core/sdk/sdk.h) */
	void *sdk_context;    /* the SDK's object for ctx, created for this SRQ */
	struct doca_dev *dev; /* always NULL: an SRQ is created from an ibv_context and a PD */
	struct ibv_context *ctx;
	struct mlx5dv_devx_obj *obj;
	uint32_t srqn;
	uint32_t num, wqe_size;
	void *buf;
	uint32_t *dbrec;
	struct mlx5dv_devx_umem *own_devx;
	void *own_mem;
	struct doca_verbs_umem *umem;
	atomic_int users; /* queue pairs */
	bool cyclic;
	bool was_exported;		 /* now or earlier */
	struct gdk_srq_export *exported; /* export_srq.c; NULL: not exported */
};

/* Returns the CPU address of the doorbell register of a QP, or NULL if the UAR has none for it. */
void *gdk_qp_db_reg(const struct doca_verbs_qp_t *qp);
/* Adds `by` to the use counts of all objects that the QP uses: 1 at creation, -1 at destruction. */
void gdk_qp_count_uses(struct doca_verbs_qp_t *qp, int by);
/* Attributes of acknowledgements, RDMA reads and atomics, which a UC QP does not have. */
#define GDK_QP_RELIABLE_ONLY \
	(DOCA_VERBS_QP_ATTR_MIN_RNR_TIMER | DOCA_VERBS_QP_ATTR_ACK_TIMEOUT | \
	 DOCA_VERBS_QP_ATTR_RETRY_CNT | DOCA_VERBS_QP_ATTR_RNR_RETRY | \
	 DOCA_VERBS_QP_ATTR_MAX_QP_RD_ATOMIC | DOCA_VERBS_QP_ATTR_MAX_DEST_RD_ATOMIC | \
	 DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_READ | DOCA_VERBS_QP_ATTR_ATOMIC_MODE)
const char *gdk_qp_state_name(enum doca_verbs_qp_state state);

/* query.c: queries the state from the firmware. out receives the whole output
 * box; for a QP of the SDK it is not written. */
doca_error_t gdk_qp_query_state(struct doca_verbs_qp_t *qp, uint8_t out[PRM_QUERY_QP_OUT_LEN],
				enum doca_verbs_qp_state *state);

/* path.c: fills the primary path of qpc, a QP context in PRM layout, for the transition to RTR.
 * Checks the path and MTU in attr against the port. */
doca_error_t gdk_path_fill(struct doca_verbs_qp_t *qp, const doca_verbs_qp_attr_t *attr, void *qpc);
/* UDP source port of a connection, 0xC000..0xFFFF: a hash of the arguments. */
uint16_t gdk_path_udp_sport(uint32_t local_qpn, uint32_t remote_qpn, const uint8_t sgid[16],
			    const uint8_t dgid[16]);
/* Returns whether gid is an IPv4 address (::ffff:a.b.c.d). */
bool gdk_gid_is_v4(const uint8_t gid[16]);
/* lag.c: checks that the QP can use this port of the bond. Logs the reason if it cannot. */
doca_error_t gdk_lag_check(const struct doca_verbs_qp_t *qp, uint8_t port, bool connected);
/* Chooses the next port of the bond in round-robin order; 0: the NIC chooses. Fails only if the
 * query of the bond fails. */
doca_error_t gdk_lag_take_turn(struct doca_verbs_qp_t *qp, uint8_t *port);

/* qp_sdk.c: queue pairs of the DOCA SDK. */
doca_error_t gdk_sdk_qp_create(doca_dev_t *dev, doca_verbs_qp_init_attr_t *init,
			       doca_verbs_qp_t **out);
doca_error_t gdk_sdk_qp_destroy(doca_verbs_qp_t *qp);
doca_error_t gdk_sdk_qp_query_state(doca_verbs_qp_t *qp, enum doca_verbs_qp_state *state);

/* srq_sdk.c: shared receive queues of the DOCA SDK. */
doca_error_t gdk_sdk_srq_set_pd(struct doca_verbs_srq_init_attr *attr, struct ibv_pd *pd);
doca_error_t gdk_sdk_srq_attr_destroy(struct doca_verbs_srq_init_attr *attr);
doca_error_t gdk_sdk_srq_create(struct ibv_context *ctx, struct doca_verbs_srq_init_attr *attr,
				struct doca_verbs_srq **out);
doca_error_t gdk_sdk_srq_destroy(struct doca_verbs_srq *srq);

#endif
