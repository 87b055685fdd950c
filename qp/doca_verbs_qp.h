/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Queue pairs: attributes, creation, state transitions. */
#ifndef DOCA_VERBS_QP_H
#define DOCA_VERBS_QP_H

#include "doca_verbs_ah.h"
#include "doca_verbs_cq.h"
#include "doca_verbs_srq.h"
#include "doca_verbs_uar.h"
#include "doca_verbs_umem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How far the network may reorder a QP's packets. */
enum doca_verbs_qp_ordering_semantic {
	DOCA_VERBS_QP_ORDERING_SEMANTIC_IBTA = 0x0,   /* not at all */
	DOCA_VERBS_QP_ORDERING_SEMANTIC_OOO_RW = 0x1, /* RDMA writes and reads */
	DOCA_VERBS_QP_ORDERING_SEMANTIC_OOO_ALL = 0x2,
};

enum doca_verbs_qp_state {
	DOCA_VERBS_QP_STATE_RST = 0x0,
	DOCA_VERBS_QP_STATE_INIT = 0x1,
	DOCA_VERBS_QP_STATE_RTR = 0x2,
	DOCA_VERBS_QP_STATE_RTS = 0x3,
	DOCA_VERBS_QP_STATE_ERR = 0x4,
};

/* Payload bytes per packet. The values are not those of ibv_mtu (which are one
 * more). */
enum doca_verbs_mtu_size {
	DOCA_VERBS_MTU_SIZE_256_BYTES = 0x0,
	DOCA_VERBS_MTU_SIZE_512_BYTES = 0x1,
	DOCA_VERBS_MTU_SIZE_1K_BYTES = 0x2,
	DOCA_VERBS_MTU_SIZE_2K_BYTES = 0x3,
	DOCA_VERBS_MTU_SIZE_4K_BYTES = 0x4,
	DOCA_VERBS_MTU_SIZE_RAW_ETHERNET = 0x5,
};

/* Remote atomics that are served. */
enum doca_verbs_qp_atomic_mode {
	DOCA_VERBS_QP_ATOMIC_MODE_NONE = 0x0,
	DOCA_VERBS_QP_ATOMIC_MODE_IB_SPEC = 0x1,
	DOCA_VERBS_QP_ATOMIC_MODE_ONLY_8BYTES = 0x2,
	DOCA_VERBS_QP_ATOMIC_MODE_UP_TO_8BYTES = 0x3,
	DOCA_VERBS_QP_ATOMIC_MODE_UP_TO_16BYTES = 0x4,
	DOCA_VERBS_QP_ATOMIC_MODE_UP_TO_32BYTES = 0x5,
	DOCA_VERBS_QP_ATOMIC_MODE_UP_TO_64BYTES = 0x6,
	DOCA_VERBS_QP_ATOMIC_MODE_UP_TO_128BYTES = 0x7,
	DOCA_VERBS_QP_ATOMIC_MODE_UP_TO_256BYTES = 0x8,
};

/* Does the NIC read the send doorbell record? */
enum doca_verbs_qp_send_dbr_mode {
	DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID = 0x0,
	DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT = 0x1,
};

/* Bits of attr_mask: which attributes a modify uses, or a query filled. */
#define DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_WRITE (1 << 0)
#define DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_READ  (1 << 1)
#define DOCA_VERBS_QP_ATTR_PKEY_INDEX	      (1 << 2)
#define DOCA_VERBS_QP_ATTR_MIN_RNR_TIMER      (1 << 3)
#define DOCA_VERBS_QP_ATTR_PORT_NUM	      (1 << 4)
#define DOCA_VERBS_QP_ATTR_NEXT_STATE	      (1 << 5)
#define DOCA_VERBS_QP_ATTR_CURRENT_STATE      (1 << 6)
#define DOCA_VERBS_QP_ATTR_PATH_MTU	      (1 << 7)
#define DOCA_VERBS_QP_ATTR_RQ_PSN	      (1 << 8)
#define DOCA_VERBS_QP_ATTR_SQ_PSN	      (1 << 9)
#define DOCA_VERBS_QP_ATTR_DEST_QP_NUM	      (1 << 10)
#define DOCA_VERBS_QP_ATTR_ACK_TIMEOUT	      (1 << 11)
#define DOCA_VERBS_QP_ATTR_RETRY_CNT	      (1 << 12)
#define DOCA_VERBS_QP_ATTR_RNR_RETRY	      (1 << 13)
#define DOCA_VERBS_QP_ATTR_AH_ATTR	      (1 << 14)
#define DOCA_VERBS_QP_ATTR_ATOMIC_MODE	      (1 << 15)
#define DOCA_VERBS_QP_ATTR_MAX_QP_RD_ATOMIC   (1 << 16)
#define DOCA_VERBS_QP_ATTR_MAX_DEST_RD_ATOMIC (1 << 17)

typedef struct doca_verbs_qp_init_attr doca_verbs_qp_init_attr_t;
typedef struct doca_verbs_qp_attr doca_verbs_qp_attr_t;
typedef struct doca_verbs_qp_t doca_verbs_qp_t;

/* What a QP is created with. All attributes are 0 at first; objects are taken back with
 * NULL. Setters refuse what is wrong on any device, creation what is wrong on this one. */
doca_error_t doca_verbs_qp_init_attr_create(doca_verbs_qp_init_attr_t **verbs_qp_init_attr);
doca_error_t doca_verbs_qp_init_attr_destroy(doca_verbs_qp_init_attr_t *qp_init_attr);

/* The protection domain is that of the device. */
doca_error_t doca_verbs_qp_init_attr_set_pd(doca_verbs_qp_init_attr_t *qp_init_attr,
					    doca_dev_t *net_dev);
doca_error_t doca_verbs_qp_init_attr_set_send_cq(doca_verbs_qp_init_attr_t *qp_init_attr,
						 doca_verbs_cq_t *send_cq);
doca_error_t doca_verbs_qp_init_attr_set_receive_cq(doca_verbs_qp_init_attr_t *qp_init_attr,
						    doca_verbs_cq_t *receive_cq);
/* Kept, and returned by a query: whether a WQE makes a CQE is said by the WQE. */
doca_error_t doca_verbs_qp_init_attr_set_sq_sig_all(doca_verbs_qp_init_attr_t *qp_init_attr,
						    int sq_sig_all);
/* WQEs, rounded up to a power of two of slots. */
doca_error_t doca_verbs_qp_init_attr_set_sq_wr(doca_verbs_qp_init_attr_t *qp_init_attr,
					       uint32_t sq_wr);
doca_error_t doca_verbs_qp_init_attr_set_rq_wr(doca_verbs_qp_init_attr_t *qp_init_attr,
					       uint32_t rq_wr);
/* Pointers per WQE. */
doca_error_t doca_verbs_qp_init_attr_set_send_max_sges(doca_verbs_qp_init_attr_t *qp_init_attr,
						       uint32_t send_max_sges);
doca_error_t doca_verbs_qp_init_attr_set_receive_max_sges(doca_verbs_qp_init_attr_t *qp_init_attr,
							  uint32_t receive_max_sges);
/* Bytes of payload within a send WQE; granted is what its slots have room for. */
doca_error_t doca_verbs_qp_init_attr_set_max_inline_data(doca_verbs_qp_init_attr_t *qp_init_attr,
							 uint32_t max_inline_data);
/* The caller's number (24 bits), reported in CQEs. */
doca_error_t doca_verbs_qp_init_attr_set_user_index(doca_verbs_qp_init_attr_t *qp_init_attr,
						    uint32_t user_index);
/* DOCA_VERBS_QP_TYPE_RC. */
doca_error_t doca_verbs_qp_init_attr_set_qp_type(doca_verbs_qp_init_attr_t *qp_init_attr,
						 uint32_t qp_type);
/* Memory for the queues, receive before send, and for the doorbell record, in the same umem
 * or another: from offset on, bytes, at an alignment of 64 and 8. Both are set or none;
 * without them host memory is allocated. */
doca_error_t doca_verbs_qp_init_attr_set_external_umem(doca_verbs_qp_init_attr_t *qp_init_attr,
						       doca_verbs_umem_t *external_umem,
						       uint64_t external_umem_offset);
doca_error_t doca_verbs_qp_init_attr_set_external_umem_dbr(doca_verbs_qp_init_attr_t *qp_init_attr,
							   doca_verbs_umem_t *external_umem,
							   uint64_t external_umem_offset);
/* The register page to ring; without it one is allocated. */
doca_error_t doca_verbs_qp_init_attr_set_external_uar(doca_verbs_qp_init_attr_t *qp_init_attr,
						      doca_verbs_uar_t *external_uar);
/* The caller's own pointer. */
doca_error_t doca_verbs_qp_init_attr_set_qp_context(doca_verbs_qp_init_attr_t *qp_init_attr,
						    void *qp_context);
doca_error_t doca_verbs_qp_init_attr_set_srq(doca_verbs_qp_init_attr_t *qp_init_attr,
					     struct doca_verbs_srq *srq);
/* 1: this QP's WQEs may wait for, and enable, other queues. */
doca_error_t doca_verbs_qp_init_attr_set_core_direct_master(doca_verbs_qp_init_attr_t *qp_init_attr,
							    uint8_t core_direct_master);
doca_error_t
doca_verbs_qp_init_attr_set_send_dbr_mode(doca_verbs_qp_init_attr_t *qp_init_attr,
					  enum doca_verbs_qp_send_dbr_mode send_dbr_mode);
doca_error_t
doca_verbs_qp_init_attr_get_send_dbr_mode(const doca_verbs_qp_init_attr_t *qp_init_attr,
					  enum doca_verbs_qp_send_dbr_mode *send_dbr_mode);
/* true: a CPU thread keeps the doorbell record that the GPU does not write. */
doca_error_t doca_verbs_qp_init_attr_set_emulate_no_dbr_ext(doca_verbs_qp_init_attr_t *qp_init_attr,
							    bool emulate_no_dbr_ext);
doca_error_t
doca_verbs_qp_init_attr_get_emulate_no_dbr_ext(const doca_verbs_qp_init_attr_t *qp_init_attr,
					       bool *emulate_no_dbr_ext);
doca_error_t doca_verbs_qp_init_attr_set_ordering_semantic(
	doca_verbs_qp_init_attr_t *verbs_qp_init_attr,
	enum doca_verbs_qp_ordering_semantic ordering_semantic);
doca_error_t doca_verbs_qp_init_attr_get_ordering_semantic(
	doca_verbs_qp_init_attr_t *verbs_qp_init_attr,
	enum doca_verbs_qp_ordering_semantic *ordering_semantic);

/* What a QP is modified with, as far as attr_mask says so. */
doca_error_t doca_verbs_qp_attr_create(doca_verbs_qp_attr_t **verbs_qp_attr);
doca_error_t doca_verbs_qp_attr_destroy(doca_verbs_qp_attr_t *qp_attr);
doca_error_t doca_verbs_qp_attr_set_next_state(doca_verbs_qp_attr_t *qp_attr,
					       enum doca_verbs_qp_state next_state);
enum doca_verbs_qp_state doca_verbs_qp_attr_get_next_state(const doca_verbs_qp_attr_t *qp_attr);
doca_error_t doca_verbs_qp_attr_set_current_state(doca_verbs_qp_attr_t *qp_attr,
						  enum doca_verbs_qp_state current_state);
doca_error_t doca_verbs_qp_attr_get_current_state(doca_verbs_qp_attr_t *qp_attr,
						  enum doca_verbs_qp_state *current_state);
doca_error_t doca_verbs_qp_attr_set_path_mtu(doca_verbs_qp_attr_t *qp_attr,
					     enum doca_verbs_mtu_size path_mtu);
/* First packet sequence numbers, of which 24 bits count, and the remote QP's number. */
doca_error_t doca_verbs_qp_attr_set_rq_psn(doca_verbs_qp_attr_t *qp_attr, uint32_t rq_psn);
doca_error_t doca_verbs_qp_attr_set_sq_psn(doca_verbs_qp_attr_t *qp_attr, uint32_t sq_psn);
doca_error_t doca_verbs_qp_attr_set_dest_qp_num(doca_verbs_qp_attr_t *qp_attr,
						uint32_t dest_qp_num);
/* What the remote side may do to this one; 0 or 1. */
doca_error_t doca_verbs_qp_attr_set_allow_remote_write(doca_verbs_qp_attr_t *qp_attr,
						       int allow_remote_write);
doca_error_t doca_verbs_qp_attr_set_allow_remote_read(doca_verbs_qp_attr_t *qp_attr,
						      int allow_remote_read);
doca_error_t doca_verbs_qp_attr_set_atomic_mode(doca_verbs_qp_attr_t *qp_attr,
						enum doca_verbs_qp_atomic_mode atomic_mode);
/* A copy is taken: ah_attr may change or go afterwards. Of a connected QP (RTS to RTS) only
 * source GID and DSCP change, the latter where the device can. */
doca_error_t doca_verbs_qp_attr_set_ah_attr(doca_verbs_qp_attr_t *qp_attr,
					    doca_verbs_ah_attr_t *ah_attr);
/* An index into the port's table, and the port, from 1 on. */
doca_error_t doca_verbs_qp_attr_set_pkey_index(doca_verbs_qp_attr_t *qp_attr, uint16_t pkey_index);
doca_error_t doca_verbs_qp_attr_set_port_num(doca_verbs_qp_attr_t *qp_attr, uint16_t port_num);
/* 4.096 microseconds << ack_timeout; 0 is for ever. At most 31. */
doca_error_t doca_verbs_qp_attr_set_ack_timeout(doca_verbs_qp_attr_t *qp_attr,
						uint16_t ack_timeout);
/* At most 7; for rnr_retry 7 is for ever. */
doca_error_t doca_verbs_qp_attr_set_retry_cnt(doca_verbs_qp_attr_t *qp_attr, uint16_t retry_cnt);
doca_error_t doca_verbs_qp_attr_set_rnr_retry(doca_verbs_qp_attr_t *qp_attr, uint16_t rnr_retry);
/* The InfiniBand code of a time, 0 to 31. */
doca_error_t doca_verbs_qp_attr_set_min_rnr_timer(doca_verbs_qp_attr_t *qp_attr,
						  uint16_t min_rnr_timer);
/* Reads and atomics under way from here, and served for the remote side: rounded down to a
 * power of two, 0 up to 1. */
doca_error_t doca_verbs_qp_attr_set_max_rd_atomic(doca_verbs_qp_attr_t *qp_attr,
						  uint8_t max_rd_atomic);
doca_error_t doca_verbs_qp_attr_set_max_dest_rd_atomic(doca_verbs_qp_attr_t *qp_attr,
						       uint8_t max_dest_rd_atomic);

/* The attribute object can be destroyed or used again afterwards. INVALID_VALUE also for
 * attributes that do not go together, or are beyond the device; NOT_SUPPORTED: it lacks the
 * DBREC mode or ordering, or has no more such QPs; NO_MEMORY; DRIVER: refused. */
doca_error_t doca_verbs_qp_create(doca_dev_t *net_dev, doca_verbs_qp_init_attr_t *qp_init_attr,
				  doca_verbs_qp_t **verbs_qp);
/* IN_USE while it is exported to a GPU. DRIVER: refused; all that it can be used for then
 * is to be destroyed again. */
doca_error_t doca_verbs_qp_destroy(doca_verbs_qp_t *verbs_qp);
/* attr_mask: DOCA_VERBS_QP_ATTR_*; without NEXT_STATE the state stays. Transitions: RST to
 * INIT to RTR to RTS, INIT to INIT, RTS to RTS, any to ERR, any to RST. BAD_STATE: no such
 * transition, or CURRENT_STATE is not the QP's; INVALID_VALUE: an attribute is not in the
 * mask that the transition needs, or one is that it cannot take, or does not fit device,
 * port or path; NOT_FOUND: no MAC address of the remote port; DRIVER: refused. */
doca_error_t doca_verbs_qp_modify(doca_verbs_qp_t *verbs_qp, doca_verbs_qp_attr_t *qp_attr,
				  int attr_mask);
/* Fills both objects with what the firmware has; *attr_mask (may be NULL) says which
 * attributes of qp_attr are valid in this state. DRIVER: it did not answer. */
#ifdef __cplusplus
doca_error_t doca_verbs_qp_query(doca_verbs_qp_t *verbs_qp, doca_verbs_qp_attr_t *qp_attr,
				 doca_verbs_qp_init_attr_t *qp_init_attr, int *attr_mask = nullptr);
#else
doca_error_t doca_verbs_qp_query(doca_verbs_qp_t *verbs_qp, doca_verbs_qp_attr_t *qp_attr,
				 doca_verbs_qp_init_attr_t *qp_init_attr, int *attr_mask);
#endif

/* Rings, send slots of 64 bytes, receive WQEs and the bytes of one. Addresses are of the
 * kind that the umem was given: of the GPU for GPU memory. */
doca_error_t doca_verbs_qp_get_wq(const doca_verbs_qp_t *verbs_qp, void **sq_buf,
				  uint32_t *sq_num_entries, void **rq_buf, uint32_t *rq_num_entries,
				  uint32_t *rwqe_size_bytes);
/* Word 0: receive, word 1: send, big-endian. */
doca_error_t doca_verbs_qp_get_dbr_addr(const doca_verbs_qp_t *verbs_qp, void **dbr_addr);
/* CPU address of the doorbell register; the number, 24 bits; and whether a CPU thread keeps
 * the doorbell record (false for NULL). */
doca_error_t doca_verbs_qp_get_uar_addr(const doca_verbs_qp_t *verbs_qp, void **uar_addr);
doca_error_t doca_verbs_qp_get_qpn(const doca_verbs_qp_t *verbs_qp, uint32_t *qpn);
bool doca_verbs_qp_get_emulate_no_dbr_ext(const doca_verbs_qp_t *verbs_qp);

#ifdef __cplusplus
}
#endif

#endif
