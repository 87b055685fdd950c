/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Private layout of a queue pair, and what its files offer to each other. */
#ifndef GDK_QP_H
#define GDK_QP_H

#include <pthread.h>

#include "core/prm.h"
#include "cq/cq.h"
#include "qp/attr.h"

#define GDK_WQEBB_SIZE 64u
/* Indices are 16 bits on the wire and in the device struct's depth field. */
#define GDK_SQ_DEPTH_MAX 32768u

struct doca_verbs_qp_t {
	void *sdk; /* core/sdk.h */
	struct doca_dev *dev;
	struct mlx5dv_devx_obj *obj;
	uint32_t qpn;
	pthread_mutex_t lock; /* state, modify, exported */
	enum doca_verbs_qp_state state;
	uint32_t sq_num, rq_num; /* WQEBBs of 64 bytes; receive WQEs */
	uint32_t rwqe_size;
	void *rq_buf, *sq_buf; /* GPU addresses for external umem in GPU memory */
	uint32_t *dbrec;       /* [0] receive, [1] send; same kind of address */
	bool no_dbr;	       /* created with the firmware's DBREC-less mode */
	bool emulate_no_dbr;
	doca_gpu_t *gpu;
	struct doca_verbs_umem *umem, *umem_dbr;
	bool own_umem;
	void *own_mem;
	struct doca_verbs_uar *uar;
	bool own_uar;
	void *sdk_reg; /* of a QP of the SDK: its register */
	struct doca_verbs_cq_t *send_cq, *recv_cq;
	struct doca_verbs_srq *srq;
	void *context;
	struct doca_verbs_qp_init_attr init; /* as granted: sizes rounded up */
	uint8_t port;			     /* of the last INIT; 0 before */
	struct doca_gpu_verbs_qp *exported;  /* at most one live export */
};

struct doca_verbs_srq {
	void *sdk;	      /* core/sdk.h */
	void *sdk_context;    /* made for this one */
	struct doca_dev *dev; /* NULL: created from a bare ibv_context and PD */
	struct ibv_context *ctx;
	struct mlx5dv_devx_obj *obj;
	uint32_t srqn;
	uint32_t num, wqe_size;
	void *buf;
	uint32_t *dbrec;
	struct mlx5dv_devx_umem *own_devx;
	void *own_mem;
	struct doca_verbs_umem *umem;
	atomic_int users;
};

/* The register that takes this QP's doorbells (CPU address). */
void *gdk_qp_db_reg(const struct doca_verbs_qp_t *qp);
/* by is 1 when the QP begins to use its parts, -1 when it ends. */
void gdk_qp_count_uses(struct doca_verbs_qp_t *qp, int by);
const char *gdk_qp_state_name(enum doca_verbs_qp_state state);

/* query.c: asks the firmware; out receives the whole box. */
doca_error_t gdk_qp_query_state(struct doca_verbs_qp_t *qp, uint8_t out[PRM_QUERY_QP_OUT_LEN],
				enum doca_verbs_qp_state *state);

/* path.c: fills the primary path of qpc, a context in PRM layout, for RTR; checks
 * attr's path and MTU against the port. */
doca_error_t gdk_path_fill(struct doca_verbs_qp_t *qp, const doca_verbs_qp_attr_t *attr, void *qpc);
/* Stable UDP source port of a connection, in 0xC000..0xFFFF. */
uint16_t gdk_path_udp_sport(uint32_t local_qpn, uint32_t remote_qpn, const uint8_t sgid[16],
			    const uint8_t dgid[16]);
/* Is it an IPv4 address (::ffff:a.b.c.d)? */
bool gdk_gid_is_v4(const uint8_t gid[16]);
/* lag.c: may the QP be given this port of the bond? Logs why not. */
doca_error_t gdk_lag_check(const struct doca_verbs_qp_t *qp, uint8_t port, bool connected);
/* The port of the bond whose turn it is; 0: the NIC chooses. Fails if the driver does. */
doca_error_t gdk_lag_take_turn(struct doca_verbs_qp_t *qp, uint8_t *port);

#endif
