/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * doca_dev: one opened NIC with its protection domain, and what its firmware
 * said it can do. Opened once by doca_verbs_dev_open; immutable afterwards
 * but for the reference count and once-per-device notices.
 */
#ifndef GDK_NET_DEV_H
#define GDK_NET_DEV_H

#include <infiniband/verbs.h>
#include <stdatomic.h>

#include "host/doca_verbs.h"
#include "util.h"

struct gdk_caps {
	uint32_t max_qp, max_qp_wr, max_sge, max_cq, max_cqe, max_mr, max_pd;
	uint32_t max_ah, max_srq, max_srq_wr, max_srq_sge, max_pkeys;
	uint8_t max_qp_rd_atom, max_qp_init_rd_atom;
	uint8_t log_max_qp_sz, log_max_cq_sz;
	uint8_t rc_supported;
	uint8_t num_ports;
	uint8_t num_lag_ports;		  /* of the bond that the device may be part of */
	uint8_t lag_owner;		  /* the function that makes the bond: no VF, no SF */
	uint8_t lag_tx_port;		  /* a QP may be given one of them, */
	uint8_t rts2rts_lag;		  /* and another one while it is connected */
	uint8_t rts2rts_dscp;		  /* which may have another DSCP, too */
	uint8_t send_dbr_mode_no_dbr_ext; /* QUERY_HCA_CAP, general device capabilities 2 */
	uint8_t roce;			  /* the port's link layer is Ethernet */
	uint8_t cqe_version;
	uint8_t cd;	   /* core direct: WAIT, and QPs that are its masters */
	uint8_t ts_format; /* of QPs: GDK_TS_CAP_* */
	uint32_t r_roce_min_src_udp_port, r_roce_max_src_udp_port;
};

enum { GDK_LAG_UNKNOWN = 0, GDK_LAG_NO_PORTS, GDK_LAG_PORTS };

struct doca_dev {
	void *sdk;		    /* core/sdk.h */
	void *sdk_pd, *sdk_context; /* the SDK's views of pd and ctx */
	struct ibv_pd *pd;
	struct ibv_context *ctx;
	uint32_t pdn;
	int numa_node; /* -1: unknown */
	struct gdk_caps caps;
	/* QPs without DBREC that there are here, and were when one more was refused for
	 * its mode; 0: none was. */
	atomic_uint no_dbr_qps, no_dbr_max;
	atomic_uint lag_turn;	 /* QPs that were given a port in turn */
	atomic_int lag_by_queue; /* GDK_LAG_*: are QPs given a port? queried at the first QP */
	atomic_bool said_no_dbr_fallback, said_no_cd; /* once per device */
	atomic_int users;			      /* umems, UARs, CQs and QPs that live on it */
};

/* Reads the capabilities of a device; logs and returns DRIVER on failure. */
doca_error_t gdk_caps_query(struct ibv_context *ctx, struct gdk_caps *caps);

#endif
