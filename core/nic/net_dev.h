/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * doca_dev: one opened NIC with its protection domain and its capabilities. After
 * doca_verbs_dev_open only the atomic members change: the number of users, the state of
 * ports in a bond, and flags for messages that are logged once per device. The caller owns
 * the protection domain and the verbs context.
 */
#ifndef GDK_NET_DEV_H
#define GDK_NET_DEV_H

#include <infiniband/verbs.h>
#include <stdatomic.h>

#include "host/doca_verbs_dev.h"
#include "core/util.h"

struct gdk_caps {
	uint32_t max_qp, max_qp_wr, max_sge, max_cq, max_cqe, max_mr, max_pd;
	uint32_t max_ah, max_srq, max_srq_wr, max_srq_sge, max_pkeys;
	uint8_t max_qp_rd_atom, max_qp_init_rd_atom;
	uint8_t log_max_qp_sz, log_max_cq_sz;
	uint8_t rc_supported;
	uint8_t num_ports;
	uint8_t num_lag_ports;		  /* ports of the bond that the device may be part of */
	uint8_t lag_owner;		  /* this function controls the bond; not a VF or SF */
	uint8_t lag_tx_port;		  /* a QP can be assigned to a port of the bond */
	uint8_t rts2rts_lag;		  /* RTS2RTS_QP can change the port of a QP */
	uint8_t rts2rts_dscp;		  /* RTS2RTS_QP can change the DSCP */
	uint8_t send_dbr_mode_no_dbr_ext; /* DBREC-less QPs are supported */
	uint8_t roce;			  /* the port's link layer is Ethernet */
	uint8_t cqe_version;
	uint8_t cd;	      /* core direct: WAIT WQEs and cd_master QPs are supported */
	uint8_t cqe_inline;   /* received data of up to 32 bytes can be in the CQE */
	uint8_t copy_engine;  /* GDK_COPY_* */
	uint8_t log_copy_max; /* log2 of the copy engine's largest copy, 31 at most */
	uint8_t ts_format;    /* timestamp formats that a QP can use, GDK_TS_CAP_* */
	uint32_t r_roce_min_src_udp_port, r_roce_max_src_udp_port;
};

/* Which QPs may use the NIC's copy engine: none, all of type RC, or those that were created with
 * the permission. */
enum { GDK_COPY_NONE = 0, GDK_COPY_ALL, GDK_COPY_PERMITTED };

enum { GDK_LAG_UNKNOWN = 0, GDK_LAG_NO_PORTS, GDK_LAG_PORTS };

struct doca_dev {
	void *sdk;		    /* the SDK's object (core/sdk/sdk.h) */
	void *sdk_pd, *sdk_context; /* the SDK's views of pd and ctx */
	struct ibv_pd *pd;
	struct ibv_context *ctx;
	uint32_t pdn;
	int numa_node; /* -1: unknown */
	struct gdk_caps caps;
	/* no_dbr_qps: number of DBREC-less QPs that exist. no_dbr_max: value of no_dbr_qps when
	 * the firmware's limit for such QPs was last reached; 0: it was never reached. */
	atomic_uint no_dbr_qps, no_dbr_max;
	atomic_uint lag_turn;	 /* number of QPs assigned to a port of the bond so far */
	atomic_int lag_by_queue; /* GDK_LAG_*: whether QPs have ports of the bond; cached */
	atomic_bool logged_no_dbr_fallback, logged_no_cd; /* message was logged */
	atomic_int users; /* number of objects that were created from this device */
};

/* Returns whether a firmware object of one device may use one of the other. Objects belong to the
 * verbs context that created them, not to the protection domain. */
static inline bool gdk_dev_share_objects(const struct doca_dev *a, const struct doca_dev *b)
{
	return a == b || a->ctx == b->ctx;
}

/* Queries the capabilities of a device. Logs errors. */
doca_error_t gdk_caps_query(struct ibv_context *ctx, struct gdk_caps *caps);

#endif
