/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Private definitions of the attribute objects of queue pairs, address handles and SRQs.
 * Setters are in attr.c, ah.c and srq.c. The values are used in qp.c, modify.c, path.c and srq.c.
 */
#ifndef GDK_ATTR_H
#define GDK_ATTR_H

#include "core/nic/net_dev.h"
#include "host/doca_verbs.h"

struct doca_verbs_ah_attr_t {
	void *sdk; /* the SDK's object (core/sdk/sdk.h) */
	struct doca_dev *dev;
	struct doca_verbs_gid gid;
	enum doca_verbs_addr_type addr_type;
	uint32_t dlid;
	uint8_t sl;
	uint8_t sgid_index;
	uint8_t static_rate;
	uint8_t hop_limit; /* 0: GDK_HOP_LIMIT_DEFAULT */
	uint8_t traffic_class;
};

#define GDK_HOP_LIMIT_DEFAULT 64u

struct doca_verbs_qp_init_attr {
	void *sdk; /* the SDK's object (core/sdk/sdk.h) */
	struct doca_dev *pd;
	struct doca_verbs_cq_t *send_cq, *receive_cq;
	int sq_sig_all;
	uint32_t sq_wr, rq_wr;
	uint32_t send_max_sges, receive_max_sges;
	uint32_t max_inline_data;
	uint32_t user_index;
	uint32_t qp_type;
	struct doca_verbs_umem *external_umem;
	uint64_t external_umem_offset;
	struct doca_verbs_umem *external_umem_dbr;
	uint64_t external_umem_dbr_offset;
	struct doca_verbs_uar *external_uar;
	void *qp_context;
	struct doca_verbs_srq *srq;
	uint8_t core_direct_master;
	enum doca_verbs_qp_send_dbr_mode send_dbr_mode;
	bool emulate_no_dbr_ext;
	bool copy_engine;   /* the QP may use the NIC's copy engine */
	uint8_t cqe_inline; /* received data of up to 32 bytes is in the CQE */
	enum doca_verbs_qp_ordering_semantic ordering_semantic;
};

struct doca_verbs_qp_attr {
	void *sdk; /* the SDK's object (core/sdk/sdk.h) */
	enum doca_verbs_qp_state next_state, current_state;
	enum doca_verbs_mtu_size path_mtu;
	uint32_t rq_psn, sq_psn, dest_qp_num;
	int allow_remote_write, allow_remote_read;
	enum doca_verbs_qp_atomic_mode atomic_mode;
	bool has_ah;
	struct doca_verbs_ah_attr_t ah;
	uint16_t pkey_index, port_num;
	uint16_t ack_timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint8_t lag_port;
	uint8_t log_ack_req_freq;
};

struct doca_verbs_srq_init_attr {
	void *sdk;    /* the SDK's object (core/sdk/sdk.h) */
	void *sdk_pd; /* the SDK's object for pd */
	uint32_t srq_wr;
	uint32_t receive_max_sges;
	enum doca_verbs_srq_type type;
	struct ibv_pd *pd;
	struct doca_verbs_umem *external_umem;
	uint64_t external_umem_offset;
};

/* srq_sdk.c: creates the SDK's attribute object that belongs to ah. */
doca_error_t gdk_sdk_ah_create(doca_verbs_ah_attr_t *ah);

#endif
