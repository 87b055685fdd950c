/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Types and values of the Verbs functions, which DOCA GPUNetIO open and the DOCA SDK define alike.
 * A part of doca_verbs.h, which programs include.
 */
#ifndef GDK_VERBS_DEF_H
#define GDK_VERBS_DEF_H

#include <stdint.h>

/** Transport of a QP: reliable connected. */
#define DOCA_VERBS_QP_TYPE_RC 0x0
/** Transport of a QP: unreliable connected, without acknowledgements, RDMA reads and atomics. */
#define DOCA_VERBS_QP_TYPE_UC 0x1

/** Bytes of a GID. */
#define DOCA_VERBS_GID_BYTE_LENGTH 16

/** A GID. */
struct doca_verbs_gid {
	uint8_t raw[DOCA_VERBS_GID_BYTE_LENGTH]; /**< in network byte order, as in ibv_gid */
};

/** Kind of path. It must match the link layer of the port. */
enum doca_verbs_addr_type {
	DOCA_VERBS_ADDR_TYPE_IPv4,	/**< RoCE */
	DOCA_VERBS_ADDR_TYPE_IPv6,	/**< RoCE */
	DOCA_VERBS_ADDR_TYPE_IB_GRH,	/**< InfiniBand, LID and GID: packets have a GRH */
	DOCA_VERBS_ADDR_TYPE_IB_NO_GRH, /**< InfiniBand, LID only. If the port requires a GRH
					 * (IBV_QPF_GRH_REQUIRED) packets have one, and the GID
					 * must be set */
};

/** State of a QP. */
enum doca_verbs_qp_state {
	DOCA_VERBS_QP_STATE_RST = 0x0,	/**< reset: the state after creation */
	DOCA_VERBS_QP_STATE_INIT = 0x1, /**< initialized */
	DOCA_VERBS_QP_STATE_RTR = 0x2,	/**< ready to receive */
	DOCA_VERBS_QP_STATE_RTS = 0x3,	/**< ready to send */
	DOCA_VERBS_QP_STATE_ERR = 0x4,	/**< error: WQEs are flushed */
};

/** Atomics of the remote side that a QP executes. */
enum doca_verbs_qp_atomic_mode {
	DOCA_VERBS_QP_ATOMIC_MODE_NONE = 0x0,		/**< none */
	DOCA_VERBS_QP_ATOMIC_MODE_IB_SPEC = 0x1,	/**< as in the InfiniBand specification */
	DOCA_VERBS_QP_ATOMIC_MODE_ONLY_8BYTES = 0x2,	/**< operands of 8 bytes */
	DOCA_VERBS_QP_ATOMIC_MODE_UP_TO_8BYTES = 0x3,	/**< operands of at most 8 bytes */
	DOCA_VERBS_QP_ATOMIC_MODE_UP_TO_16BYTES = 0x4,	/**< operands of at most 16 bytes */
	DOCA_VERBS_QP_ATOMIC_MODE_UP_TO_32BYTES = 0x5,	/**< operands of at most 32 bytes */
	DOCA_VERBS_QP_ATOMIC_MODE_UP_TO_64BYTES = 0x6,	/**< operands of at most 64 bytes */
	DOCA_VERBS_QP_ATOMIC_MODE_UP_TO_128BYTES = 0x7, /**< operands of at most 128 bytes */
	DOCA_VERBS_QP_ATOMIC_MODE_UP_TO_256BYTES = 0x8, /**< operands of at most 256 bytes */
};

/** Whether the NIC reads the send word of the DBREC. */
enum doca_verbs_qp_send_dbr_mode {
	DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID = 0x0,  /**< the NIC reads it */
	DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT = 0x1, /**< not read; needs ConnectX-8 or newer */
};

/**
 * @name Bits of attr_mask
 * They select the attributes that doca_verbs_qp_modify() uses, and report those that are valid
 * after doca_verbs_qp_query(). The comment of each bit names its attribute.
 * @{
 */
#define DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_WRITE (1 << 0)	/**< allow_remote_write */
#define DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_READ  (1 << 1)	/**< allow_remote_read */
#define DOCA_VERBS_QP_ATTR_PKEY_INDEX	      (1 << 2)	/**< pkey_index */
#define DOCA_VERBS_QP_ATTR_MIN_RNR_TIMER      (1 << 3)	/**< min_rnr_timer */
#define DOCA_VERBS_QP_ATTR_PORT_NUM	      (1 << 4)	/**< port_num */
#define DOCA_VERBS_QP_ATTR_NEXT_STATE	      (1 << 5)	/**< next_state */
#define DOCA_VERBS_QP_ATTR_CURRENT_STATE      (1 << 6)	/**< current_state */
#define DOCA_VERBS_QP_ATTR_PATH_MTU	      (1 << 7)	/**< path_mtu */
#define DOCA_VERBS_QP_ATTR_RQ_PSN	      (1 << 8)	/**< rq_psn */
#define DOCA_VERBS_QP_ATTR_SQ_PSN	      (1 << 9)	/**< sq_psn */
#define DOCA_VERBS_QP_ATTR_DEST_QP_NUM	      (1 << 10) /**< dest_qp_num */
#define DOCA_VERBS_QP_ATTR_ACK_TIMEOUT	      (1 << 11) /**< ack_timeout */
#define DOCA_VERBS_QP_ATTR_RETRY_CNT	      (1 << 12) /**< retry_cnt */
#define DOCA_VERBS_QP_ATTR_RNR_RETRY	      (1 << 13) /**< rnr_retry */
#define DOCA_VERBS_QP_ATTR_AH_ATTR	      (1 << 14) /**< ah_attr */
#define DOCA_VERBS_QP_ATTR_ATOMIC_MODE	      (1 << 15) /**< atomic_mode */
#define DOCA_VERBS_QP_ATTR_MAX_QP_RD_ATOMIC   (1 << 16) /**< max_rd_atomic */
#define DOCA_VERBS_QP_ATTR_MAX_DEST_RD_ATOMIC (1 << 17) /**< max_dest_rd_atomic */
/** @} */

#endif
