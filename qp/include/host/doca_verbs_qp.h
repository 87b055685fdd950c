/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Queue pairs: attributes, creation, state transitions, queries.
 *
 * Return values, out-parameters and thread safety follow the rules in doca_gpunetio.h.
 */
#ifndef DOCA_VERBS_QP_H
#define DOCA_VERBS_QP_H

#include "host/doca_verbs_ah.h"
#include "host/doca_verbs_cq.h"
#include "host/doca_verbs_srq.h"
#include "host/doca_verbs_uar.h"
#include "host/doca_verbs_umem.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How far the network may reorder the packets of a QP. This library supports only IBTA. */
enum doca_verbs_qp_ordering_semantic {
	DOCA_VERBS_QP_ORDERING_SEMANTIC_IBTA = 0x0,    /**< not at all */
	DOCA_VERBS_QP_ORDERING_SEMANTIC_OOO_RW = 0x1,  /**< RDMA writes and reads */
	DOCA_VERBS_QP_ORDERING_SEMANTIC_OOO_ALL = 0x2, /**< all operations */
};

/** Payload bytes per packet. The values are those of enum ibv_mtu minus 1. */
enum doca_verbs_mtu_size {
	DOCA_VERBS_MTU_SIZE_256_BYTES = 0x0,	/**< 256 bytes */
	DOCA_VERBS_MTU_SIZE_512_BYTES = 0x1,	/**< 512 bytes */
	DOCA_VERBS_MTU_SIZE_1K_BYTES = 0x2,	/**< 1024 bytes */
	DOCA_VERBS_MTU_SIZE_2K_BYTES = 0x3,	/**< 2048 bytes */
	DOCA_VERBS_MTU_SIZE_4K_BYTES = 0x4,	/**< 4096 bytes */
	DOCA_VERBS_MTU_SIZE_RAW_ETHERNET = 0x5, /**< not valid for RC */
};

/** Attributes for the creation of a QP. Opaque. */
typedef struct doca_verbs_qp_init_attr doca_verbs_qp_init_attr_t;
/** Attributes for a state transition of a QP, or from a query. Opaque. */
typedef struct doca_verbs_qp_attr doca_verbs_qp_attr_t;
/** A queue pair. Opaque. */
typedef struct doca_verbs_qp_t doca_verbs_qp_t;

/**
 * Creates an attribute object for doca_verbs_qp_create(). Free it with
 * doca_verbs_qp_init_attr_destroy(). All attributes are 0, NULL or false at first.
 *
 * Some setters reject values that are invalid for every device; doca_verbs_qp_create() checks all
 * others. Setting an object to NULL removes it.
 *
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_verbs_qp_init_attr_create(doca_verbs_qp_init_attr_t **verbs_qp_init_attr);

/** Frees an attribute object. QPs that were created from it remain valid. */
doca_error_t doca_verbs_qp_init_attr_destroy(doca_verbs_qp_init_attr_t *qp_init_attr);

/**
 * Sets the protection domain of net_dev, which must be the device on which the QP is created.
 * Default, or NULL: the protection domain of that device.
 */
doca_error_t doca_verbs_qp_init_attr_set_pd(doca_verbs_qp_init_attr_t *qp_init_attr,
					    doca_dev_t *net_dev);

/** Sets the CQ of the send queue. It is needed if sq_wr is not 0. */
doca_error_t doca_verbs_qp_init_attr_set_send_cq(doca_verbs_qp_init_attr_t *qp_init_attr,
						 doca_verbs_cq_t *send_cq);

/**
 * Sets the CQ of the receive queue. It is needed if rq_wr is not 0 or an SRQ is set. It may be the
 * CQ of the send queue.
 */
doca_error_t doca_verbs_qp_init_attr_set_receive_cq(doca_verbs_qp_init_attr_t *qp_init_attr,
						    doca_verbs_cq_t *receive_cq);

/**
 * Sets a flag that queries return. It has no other effect: each WQE decides whether it generates a
 * CQE.
 */
doca_error_t doca_verbs_qp_init_attr_set_sq_sig_all(doca_verbs_qp_init_attr_t *qp_init_attr,
						    int sq_sig_all);

/**
 * Sets the number of send WQEs.
 *
 * @param sq_wr 0: the QP has no send queue. A WQE takes one or more slots of 64 bytes, depending
 *         on send_max_sges and max_inline_data; the slots of all WQEs are rounded up to a power of
 *         two, at most 32768 and at most the limit of the device. A query returns the number of
 *         WQEs that the slots have room for.
 */
doca_error_t doca_verbs_qp_init_attr_set_sq_wr(doca_verbs_qp_init_attr_t *qp_init_attr,
					       uint32_t sq_wr);

/**
 * Sets the number of receive WQEs.
 *
 * @param rq_wr 0: the QP has no receive queue of its own; at most 32768, rounded up to a power of
 *         two whose WQEs take at least 64 bytes. Ignored if an SRQ is set.
 */
doca_error_t doca_verbs_qp_init_attr_set_rq_wr(doca_verbs_qp_init_attr_t *qp_init_attr,
					       uint32_t rq_wr);

/**
 * Sets the number of data segments of a send WQE.
 *
 * @param send_max_sges 1 to 62 if sq_wr is not 0
 */
doca_error_t doca_verbs_qp_init_attr_set_send_max_sges(doca_verbs_qp_init_attr_t *qp_init_attr,
						       uint32_t send_max_sges);

/**
 * Sets the number of data segments of a receive WQE.
 *
 * @param receive_max_sges 1 to 32 if rq_wr is not 0; rounded up to a power of two
 */
doca_error_t doca_verbs_qp_init_attr_set_receive_max_sges(doca_verbs_qp_init_attr_t *qp_init_attr,
							  uint32_t receive_max_sges);

/**
 * Sets the bytes of payload that a send WQE can carry.
 *
 * @param max_inline_data at most 988; 0 (default): no room is requested. If it is not 0, a query
 *         returns the bytes that the slots of one WQE have room for.
 */
doca_error_t doca_verbs_qp_init_attr_set_max_inline_data(doca_verbs_qp_init_attr_t *qp_init_attr,
							 uint32_t max_inline_data);

/**
 * Sets a number of the caller, which the NIC puts into CQEs.
 *
 * @param user_index less than 2^24
 */
doca_error_t doca_verbs_qp_init_attr_set_user_index(doca_verbs_qp_init_attr_t *qp_init_attr,
						    uint32_t user_index);

/** Sets the transport: DOCA_VERBS_QP_TYPE_RC (default) or DOCA_VERBS_QP_TYPE_UC. */
doca_error_t doca_verbs_qp_init_attr_set_qp_type(doca_verbs_qp_init_attr_t *qp_init_attr,
						 uint32_t qp_type);

/**
 * Places the queues in memory of the caller: the receive queue starts at the offset, and the send
 * queue follows it. Set both this umem and that of
 * doca_verbs_qp_init_attr_set_external_umem_dbr(), or neither. A QP can be exported to a CUDA GPU
 * only if its queues are in an external umem.
 *
 * @param external_umem the umem; NULL (default): the library allocates host memory
 * @param external_umem_offset offset in the umem in bytes, a multiple of 64; if the umem has pages
 *         of more than 4096 bytes, also a multiple of 1/64 of a page
 */
doca_error_t doca_verbs_qp_init_attr_set_external_umem(doca_verbs_qp_init_attr_t *qp_init_attr,
						       doca_verbs_umem_t *external_umem,
						       uint64_t external_umem_offset);

/**
 * Places the DBREC, 8 bytes, in memory of the caller. It may be in the umem of the queues, behind
 * or before them. doca_verbs_qp_create() clears it.
 *
 * @param external_umem the umem; NULL (default): the library allocates host memory
 * @param external_umem_offset offset in the umem in bytes; the address must be a multiple of 8
 */
doca_error_t doca_verbs_qp_init_attr_set_external_umem_dbr(doca_verbs_qp_init_attr_t *qp_init_attr,
							   doca_verbs_umem_t *external_umem,
							   uint64_t external_umem_offset);

/**
 * Sets the UAR with the doorbell register. A QP without DBREC needs a UAR that has a register for
 * it. Default, or NULL: the library allocates one, of type BLUEFLAME if possible.
 */
doca_error_t doca_verbs_qp_init_attr_set_external_uar(doca_verbs_qp_init_attr_t *qp_init_attr,
						      doca_verbs_uar_t *external_uar);

/**
 * Sets a pointer of the caller. The library stores it and returns it in
 * gdk_verbs_qp_init_attr_get() after a query. Default: NULL.
 */
doca_error_t doca_verbs_qp_init_attr_set_qp_context(doca_verbs_qp_init_attr_t *qp_init_attr,
						    void *qp_context);

/**
 * Sets a shared receive queue. The QP then has no receive queue of its own. NULL (default): none.
 */
doca_error_t doca_verbs_qp_init_attr_set_srq(doca_verbs_qp_init_attr_t *qp_init_attr,
					     struct doca_verbs_srq *srq);

/**
 * Sets whether the QP may post WAIT WQEs (core direct). If the device has no core direct, a
 * warning is logged, the QP is created without it, and WAIT WQEs fail.
 *
 * @param core_direct_master 0 (default) or 1
 */
doca_error_t doca_verbs_qp_init_attr_set_core_direct_master(doca_verbs_qp_init_attr_t *qp_init_attr,
							    uint8_t core_direct_master);

/**
 * Sets whether the NIC writes the data of a received message into its CQE instead of the buffer, if
 * there are at most 32 bytes and the buffer has room for them. The CQE tells whether it did. 0: no
 * (default); 1: yes. For 1, doca_verbs_qp_create() returns NOT_SUPPORTED if the device lacks it,
 * and INVALID_VALUE for a QP without a receive queue.
 */
doca_error_t doca_verbs_qp_init_attr_set_cqe_inline(doca_verbs_qp_init_attr_t *qp_init_attr,
						    uint8_t cqe_inline);

/**
 * Sets whether the NIC reads the send word of the DBREC. Default:
 * DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID. For the other mode doca_verbs_qp_create() returns
 * NOT_SUPPORTED if the device lacks it or cannot create more such QPs.
 */
doca_error_t
doca_verbs_qp_init_attr_set_send_dbr_mode(doca_verbs_qp_init_attr_t *qp_init_attr,
					  enum doca_verbs_qp_send_dbr_mode send_dbr_mode);

/** Returns the mode that doca_verbs_qp_init_attr_set_send_dbr_mode() has set. */
doca_error_t
doca_verbs_qp_init_attr_get_send_dbr_mode(const doca_verbs_qp_init_attr_t *qp_init_attr,
					  enum doca_verbs_qp_send_dbr_mode *send_dbr_mode);

/**
 * Sets a flag: a CPU thread writes the DBREC, and GPU threads write only the doorbell register.
 * The library stores the flag and returns it with doca_verbs_qp_get_emulate_no_dbr_ext(); the
 * effect comes from the mode of the export, NO_DBR_SW_EMULATED. It cannot be combined
 * with DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT. Default: false.
 */
doca_error_t doca_verbs_qp_init_attr_set_emulate_no_dbr_ext(doca_verbs_qp_init_attr_t *qp_init_attr,
							    bool emulate_no_dbr_ext);

/** Returns the flag that doca_verbs_qp_init_attr_set_emulate_no_dbr_ext() has set. */
doca_error_t
doca_verbs_qp_init_attr_get_emulate_no_dbr_ext(const doca_verbs_qp_init_attr_t *qp_init_attr,
					       bool *emulate_no_dbr_ext);

/**
 * Sets how far the network may reorder packets. Default: IBTA. doca_verbs_qp_create() returns
 * NOT_SUPPORTED for the other values.
 */
doca_error_t doca_verbs_qp_init_attr_set_ordering_semantic(
	doca_verbs_qp_init_attr_t *qp_init_attr,
	enum doca_verbs_qp_ordering_semantic ordering_semantic);

/** Returns the value that doca_verbs_qp_init_attr_set_ordering_semantic() has set. */
doca_error_t doca_verbs_qp_init_attr_get_ordering_semantic(
	doca_verbs_qp_init_attr_t *qp_init_attr,
	enum doca_verbs_qp_ordering_semantic *ordering_semantic);

/**
 * Creates an attribute object for doca_verbs_qp_modify() and doca_verbs_qp_query(). Free it with
 * doca_verbs_qp_attr_destroy(). All attributes are 0 at first; a transition uses those whose bits
 * are in attr_mask.
 *
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_verbs_qp_attr_create(doca_verbs_qp_attr_t **verbs_qp_attr);

/** Frees an attribute object. */
doca_error_t doca_verbs_qp_attr_destroy(doca_verbs_qp_attr_t *qp_attr);

/** Sets the state that the QP should get. */
doca_error_t doca_verbs_qp_attr_set_next_state(doca_verbs_qp_attr_t *qp_attr,
					       enum doca_verbs_qp_state next_state);

/** Returns the state that was set; after a query, the state of the QP. RST for NULL. */
enum doca_verbs_qp_state doca_verbs_qp_attr_get_next_state(const doca_verbs_qp_attr_t *qp_attr);

/**
 * Sets the state that the caller expects the QP to be in. doca_verbs_qp_modify() returns BAD_STATE
 * if it is in another one.
 */
doca_error_t doca_verbs_qp_attr_set_current_state(doca_verbs_qp_attr_t *qp_attr,
						  enum doca_verbs_qp_state current_state);

/** Returns the state that was set; after a query, the state of the QP. */
doca_error_t doca_verbs_qp_attr_get_current_state(doca_verbs_qp_attr_t *qp_attr,
						  enum doca_verbs_qp_state *current_state);

/**
 * Sets the payload bytes per packet. The transition to RTR fails if they exceed the active MTU of
 * the port.
 */
doca_error_t doca_verbs_qp_attr_set_path_mtu(doca_verbs_qp_attr_t *qp_attr,
					     enum doca_verbs_mtu_size path_mtu);

/**
 * Sets the first PSN that the QP expects: the sq_psn of the remote QP. 24 bits; higher bits are
 * ignored with a warning.
 */
doca_error_t doca_verbs_qp_attr_set_rq_psn(doca_verbs_qp_attr_t *qp_attr, uint32_t rq_psn);

/**
 * Sets the first PSN that the QP sends: the rq_psn of the remote QP. 24 bits; higher bits are
 * ignored with a warning.
 */
doca_error_t doca_verbs_qp_attr_set_sq_psn(doca_verbs_qp_attr_t *qp_attr, uint32_t sq_psn);

/**
 * Sets the number of the remote QP.
 *
 * @param dest_qp_num less than 2^24
 */
doca_error_t doca_verbs_qp_attr_set_dest_qp_num(doca_verbs_qp_attr_t *qp_attr,
						uint32_t dest_qp_num);

/** Sets whether the remote side may execute RDMA writes: 0 no, otherwise yes. */
doca_error_t doca_verbs_qp_attr_set_allow_remote_write(doca_verbs_qp_attr_t *qp_attr,
						       int allow_remote_write);

/** Sets whether the remote side may execute RDMA reads: 0 no, otherwise yes. */
doca_error_t doca_verbs_qp_attr_set_allow_remote_read(doca_verbs_qp_attr_t *qp_attr,
						      int allow_remote_read);

/** Sets which atomics the remote side may execute. DOCA_VERBS_QP_ATOMIC_MODE_NONE: none. */
doca_error_t doca_verbs_qp_attr_set_atomic_mode(doca_verbs_qp_attr_t *qp_attr,
						enum doca_verbs_qp_atomic_mode atomic_mode);

/**
 * Sets the path to the remote port. The object is copied. The transition RTS to RTS
 * changes only the source GID, and with RoCE also the DSCP if the device supports that.
 */
doca_error_t doca_verbs_qp_attr_set_ah_attr(doca_verbs_qp_attr_t *qp_attr,
					    doca_verbs_ah_attr_t *ah_attr);

/** Sets the index of the partition key in the port's table. */
doca_error_t doca_verbs_qp_attr_set_pkey_index(doca_verbs_qp_attr_t *qp_attr, uint16_t pkey_index);

/**
 * Sets the port of the device.
 *
 * @param port_num 1 to 255; the transition to INIT returns INVALID_VALUE if the device has fewer
 *         ports
 */
doca_error_t doca_verbs_qp_attr_set_port_num(doca_verbs_qp_attr_t *qp_attr, uint16_t port_num);

/**
 * Sets how long the QP waits for an ACK before it retransmits.
 *
 * @param ack_timeout 0 to 31: 4.096 us << ack_timeout; 0: no timeout
 */
doca_error_t doca_verbs_qp_attr_set_ack_timeout(doca_verbs_qp_attr_t *qp_attr,
						uint16_t ack_timeout);

/**
 * Sets how many times the QP retransmits after a timeout or a NAK before it goes to state ERR.
 *
 * @param retry_cnt 0 to 7
 */
doca_error_t doca_verbs_qp_attr_set_retry_cnt(doca_verbs_qp_attr_t *qp_attr, uint16_t retry_cnt);

/**
 * Sets how many times the QP retransmits after an RNR NAK before it goes to state ERR.
 *
 * @param rnr_retry 0 to 7; 7: no limit
 */
doca_error_t doca_verbs_qp_attr_set_rnr_retry(doca_verbs_qp_attr_t *qp_attr, uint16_t rnr_retry);

/**
 * Sets the delay that RNR NAKs of this QP request from the remote side.
 *
 * @param min_rnr_timer 0 to 31: the InfiniBand code of the delay
 */
doca_error_t doca_verbs_qp_attr_set_min_rnr_timer(doca_verbs_qp_attr_t *qp_attr,
						  uint16_t min_rnr_timer);

/**
 * Sets how many RDMA reads and atomics this side may have outstanding. The transition to RTS
 * returns INVALID_VALUE if the value exceeds doca_verbs_device_attr_get_max_qp_init_rd_atom().
 *
 * @param max_rd_atomic rounded down to a power of two; 0 means 1
 */
doca_error_t doca_verbs_qp_attr_set_max_rd_atomic(doca_verbs_qp_attr_t *qp_attr,
						  uint8_t max_rd_atomic);

/**
 * Sets how many RDMA reads and atomics the remote side may have outstanding. The transition to RTR
 * returns INVALID_VALUE if the value exceeds doca_verbs_device_attr_get_max_qp_rd_atom().
 *
 * @param max_dest_rd_atomic rounded down to a power of two; 0 means 1
 */
doca_error_t doca_verbs_qp_attr_set_max_dest_rd_atomic(doca_verbs_qp_attr_t *qp_attr,
						       uint8_t max_dest_rd_atomic);

/**
 * Creates a QP in state RST. Destroy it with doca_verbs_qp_destroy(). The attribute object is not
 * used after the call; the CQs, umems, UAR and SRQ that it names must exist until the QP is
 * destroyed. Any thread.
 *
 * @retval DOCA_ERROR_INVALID_VALUE attributes are missing, contradict each other or exceed the
 *         limits of the device, or a umem is too small, not aligned or on another device
 * @retval DOCA_ERROR_NOT_SUPPORTED the DBREC mode or the ordering is not supported, the device
 *         cannot create more QPs without DBREC, or no suitable UAR is available
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the firmware or the kernel refused
 */
doca_error_t doca_verbs_qp_create(doca_dev_t *net_dev, doca_verbs_qp_init_attr_t *qp_init_attr,
				  doca_verbs_qp_t **verbs_qp);

/**
 * Destroys a QP and frees the memory and the UAR that the library allocated for it.
 *
 * @retval DOCA_ERROR_IN_USE the QP is exported to a GPU
 * @retval DOCA_ERROR_DRIVER the firmware or the kernel refused. The only valid call is then to
 *         destroy the QP again.
 */
doca_error_t doca_verbs_qp_destroy(doca_verbs_qp_t *qp);

/**
 * Changes the state or the attributes of a QP.
 *
 * Transitions, with the bits that attr_mask needs besides NEXT_STATE, and the optional ones:
 *
 * - RST to INIT needs PKEY_INDEX, PORT_NUM, ALLOW_REMOTE_WRITE, ALLOW_REMOTE_READ; optional:
 *   ATOMIC_MODE, GDK_VERBS_QP_ATTR_LAG_PORT
 * - INIT to INIT; optional: PKEY_INDEX, PORT_NUM, remote rights
 * - INIT to RTR needs RQ_PSN, DEST_QP_NUM, PATH_MTU, AH_ATTR, MIN_RNR_TIMER; optional: PKEY_INDEX,
 *   MAX_DEST_RD_ATOMIC, remote rights
 * - RTR to RTS needs SQ_PSN, ACK_TIMEOUT, RETRY_CNT, RNR_RETRY; optional: MIN_RNR_TIMER,
 *   MAX_QP_RD_ATOMIC, remote rights, GDK_VERBS_QP_ATTR_LOG_ACK_REQ_FREQ
 * - RTS to RTS; optional: MIN_RNR_TIMER, AH_ATTR, remote rights, GDK_VERBS_QP_ATTR_LAG_PORT
 * - any state to ERR, any state to RST: no other bits
 *
 * The remote rights are ALLOW_REMOTE_WRITE, ALLOW_REMOTE_READ and ATOMIC_MODE. CURRENT_STATE is
 * optional in every transition. A QP of type UC has no MIN_RNR_TIMER, ACK_TIMEOUT, RETRY_CNT,
 * RNR_RETRY, MAX_QP_RD_ATOMIC, MAX_DEST_RD_ATOMIC, ALLOW_REMOTE_READ, ATOMIC_MODE and
 * LOG_ACK_REQ_FREQ.
 *
 * An exported QP that has gone through RST needs doca_gpu_verbs_reset_tracking_and_memory() before
 * GPU threads use it again.
 *
 * @param attr_mask DOCA_VERBS_QP_ATTR_* bits and the GDK_VERBS_QP_ATTR_* bits of host/gdaki.h;
 *         without NEXT_STATE the next state is the current state
 * @retval DOCA_ERROR_INVALID_VALUE a required bit is missing, a bit does not belong to the
 *         transition, or a value does not fit the device, the port or the path
 * @retval DOCA_ERROR_BAD_STATE there is no such transition, or the QP is not in CURRENT_STATE
 * @retval DOCA_ERROR_NOT_FOUND the MAC address of the remote port cannot be resolved (RoCE)
 * @retval DOCA_ERROR_NOT_SUPPORTED the device cannot change the bond port of a connected QP
 * @retval DOCA_ERROR_DRIVER the firmware refused, or the port cannot be queried
 */
doca_error_t doca_verbs_qp_modify(doca_verbs_qp_t *qp, doca_verbs_qp_attr_t *qp_attr,
				  int attr_mask);

#ifdef __cplusplus
/** As in C; attr_mask may be left out. */
doca_error_t doca_verbs_qp_query(doca_verbs_qp_t *qp, doca_verbs_qp_attr_t *qp_attr,
				 doca_verbs_qp_init_attr_t *qp_init_attr, int *attr_mask = nullptr);
#else
/**
 * Queries a QP from the firmware and fills both attribute objects. gdk_verbs_qp_attr_get() and
 * gdk_verbs_qp_init_attr_get() read their values. A send queue error counts as state ERR. Any
 * thread.
 *
 * @param attr_mask gets the DOCA_VERBS_QP_ATTR_* bits that are valid in the QP's state; may be
 *         NULL
 * @retval DOCA_ERROR_UNEXPECTED the firmware reported a state that this library does not know
 * @retval DOCA_ERROR_DRIVER the query failed
 */
doca_error_t doca_verbs_qp_query(doca_verbs_qp_t *qp, doca_verbs_qp_attr_t *qp_attr,
				 doca_verbs_qp_init_attr_t *qp_init_attr, int *attr_mask);
#endif

/**
 * Returns the rings of a QP. Addresses are GPU addresses if the umem is GPU memory, otherwise CPU
 * addresses.
 *
 * @param sq_buf gets the address of send slot 0
 * @param sq_num_entries gets the number of send slots, 64 bytes each; a power of two or 0
 * @param rq_buf gets the address of receive WQE 0
 * @param rq_num_entries gets the number of receive WQEs; a power of two or 0
 * @param rwqe_size_bytes gets the bytes of a receive WQE
 */
doca_error_t doca_verbs_qp_get_wq(const doca_verbs_qp_t *qp, void **sq_buf,
				  uint32_t *sq_num_entries, void **rq_buf, uint32_t *rq_num_entries,
				  uint32_t *rwqe_size_bytes);

/**
 * Returns the address of the DBREC: two big-endian words, first the receive counter, then the send
 * counter. Only the low 16 bits of each are used. It is a GPU address if the umem is GPU memory.
 */
doca_error_t doca_verbs_qp_get_dbr_addr(const doca_verbs_qp_t *qp, void **dbr_addr);

/** Returns the CPU address of the doorbell register that the QP uses. */
doca_error_t doca_verbs_qp_get_uar_addr(const doca_verbs_qp_t *qp, void **uar_addr);

/** Returns the number of the QP, 24 bits. */
doca_error_t doca_verbs_qp_get_qpn(const doca_verbs_qp_t *qp, uint32_t *qpn);

/** Returns whether the QP was created with emulate_no_dbr_ext; false for NULL. */
bool doca_verbs_qp_get_emulate_no_dbr_ext(const doca_verbs_qp_t *qp);

#ifdef __cplusplus
}
#endif

#endif
