/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Verbs objects: CQs, QPs and their attributes, paths, and the capabilities of a NIC. Return
 * values, out-parameters and threads: see doca_error.h. doca_verbs_bridge.h describes contexts and
 * protection domains, doca_umem.h and doca_uar.h the memory and the UARs of queues.
 *
 * Attribute objects hold the attributes of an object that is created or changed later. Some setters
 * reject values that are invalid for every device; the function that uses the object checks all
 * others.
 */
#ifndef GDK_SDK_DOCA_VERBS_H
#define GDK_SDK_DOCA_VERBS_H

#include "doca_types.h"
#include "doca_uar.h"
#include "doca_umem.h"
#include "doca_verbs_bridge.h"
#include "doca_verbs_event.h"
#include "host/gdk_verbs_def.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_verbs_ah_attr;	/* a path to a remote port */
struct doca_verbs_cq;		/* a completion queue */
struct doca_verbs_cq_attr;	/* attributes for the creation of a CQ */
struct doca_verbs_device_attr;	/* capabilities of a NIC */
struct doca_verbs_qp;		/* a queue pair */
struct doca_verbs_qp_attr;	/* attributes for a state transition of a QP */
struct doca_verbs_qp_init_attr; /* attributes for the creation of a QP */

/** Payload bytes per packet. */
enum gdk_mtu_size {
	GDK_MTU_SIZE_256_BYTES = 0, /**< 256 bytes */
	GDK_MTU_SIZE_512_BYTES = 1, /**< 512 bytes */
	DOCA_MTU_SIZE_1K_BYTES = 2, /**< 1024 bytes */
	GDK_MTU_SIZE_2K_BYTES = 3,  /**< 2048 bytes */
	DOCA_MTU_SIZE_4K_BYTES = 4, /**< 4096 bytes */
};

/** Bytes of an entry of a CQ. */
enum gdk_cq_entry_size {
	DOCA_VERBS_CQ_ENTRY_SIZE_64 = 0, /**< 64 bytes */
};

/* ---- capabilities ---- */

/**
 * Queries the capabilities of a NIC. Free the result with doca_verbs_device_attr_free(). Any thread
 * may call this.
 *
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the capabilities cannot be queried
 */
doca_error_t doca_verbs_query_device(struct doca_verbs_context *verbs_context,
				     struct doca_verbs_device_attr **verbs_device_attr)
	GDK_DOCA_NAME(gdk_doca_query_device);

/** Frees the result of doca_verbs_query_device(). */
doca_error_t doca_verbs_device_attr_free(struct doca_verbs_device_attr *verbs_device_attr);

/**
 * Returns how many RDMA reads and atomics of the remote side one QP can process at a time. At most
 * 255; 0 for NULL.
 */
uint8_t
doca_verbs_device_attr_get_max_qp_rd_atom(const struct doca_verbs_device_attr *verbs_device_attr);

/**
 * Returns how many RDMA reads and atomics one QP can have outstanding. At most 255; 0 for NULL.
 */
uint8_t doca_verbs_device_attr_get_max_qp_init_rd_atom(
	const struct doca_verbs_device_attr *verbs_device_attr);

/**
 * Tests whether the NIC supports a DBREC mode.
 *
 * @retval DOCA_SUCCESS supported
 * @retval DOCA_ERROR_NOT_SUPPORTED not supported
 */
doca_error_t doca_verbs_device_attr_get_is_send_dbr_mode_supported(
	const struct doca_verbs_device_attr *verbs_device_attr,
	enum doca_verbs_qp_send_dbr_mode send_dbr_mode);

/**
 * Tests whether the NIC can write received data into the CQE
 * (doca_verbs_qp_init_attr_set_cqe_inline()).
 *
 * @retval DOCA_SUCCESS supported
 * @retval DOCA_ERROR_NOT_SUPPORTED not supported
 */
doca_error_t doca_verbs_device_attr_get_is_cqe_inline_supported(
	const struct doca_verbs_device_attr *verbs_device_attr);

/* ---- paths ---- */

/**
 * Creates a path object. Free it with doca_verbs_ah_attr_destroy(). All attributes are 0, which
 * means: IPv4, GID index 0, hop limit 64.
 *
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_verbs_ah_attr_create(struct doca_verbs_context *verbs_context,
				       struct doca_verbs_ah_attr **ah_attr)
	GDK_DOCA_NAME(gdk_doca_ah_attr_create);

/** Frees a path object. Attribute objects of QPs have their own copy of the path. */
doca_error_t doca_verbs_ah_attr_destroy(struct doca_verbs_ah_attr *ah_attr);

/** Sets the GID of the remote port, in network byte order; an IPv4 address is "::ffff:a.b.c.d". */
doca_error_t doca_verbs_ah_attr_set_gid(struct doca_verbs_ah_attr *ah_attr,
					struct doca_verbs_gid gid);

/** Sets the kind of path. For RoCE the GID decides between IPv4 and IPv6. */
doca_error_t doca_verbs_ah_attr_set_addr_type(struct doca_verbs_ah_attr *ah_attr,
					      enum doca_verbs_addr_type addr_type);

/** Sets the LID of the remote port, at most 65535. RoCE ignores it. */
doca_error_t doca_verbs_ah_attr_set_dlid(struct doca_verbs_ah_attr *ah_attr, uint32_t dlid);

/** Sets the index of the local GID, as in ibv_query_gid(). */
doca_error_t doca_verbs_ah_attr_set_sgid_index(struct doca_verbs_ah_attr *ah_attr,
					       uint8_t sgid_index);

/** Sets the hop limit of the GRH or IP header. 0 (default): 64. */
doca_error_t doca_verbs_ah_attr_set_hop_limit(struct doca_verbs_ah_attr *ah_attr,
					      uint8_t hop_limit);

/* ---- CQs ---- */

/**
 * Creates an attribute object. Free it with doca_verbs_cq_attr_destroy(). The size must be set; the
 * defaults of the other attributes are: internal memory and UAR, overrun disabled.
 *
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_verbs_cq_attr_create(struct doca_verbs_cq_attr **cq_attr);

/** Frees an attribute object. CQs that were created from it stay. */
doca_error_t doca_verbs_cq_attr_destroy(struct doca_verbs_cq_attr *cq_attr);

/** Sets the number of entries, at least 1, rounded up to a power of two. */
doca_error_t doca_verbs_cq_attr_set_cq_size(struct doca_verbs_cq_attr *cq_attr, uint32_t cq_size);

/**
 * Sets the bytes of an entry.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED the size is not DOCA_VERBS_CQ_ENTRY_SIZE_64
 */
doca_error_t doca_verbs_cq_attr_set_entry_size(struct doca_verbs_cq_attr *cq_attr,
					       enum gdk_cq_entry_size entry_size);

/**
 * Sets whether the user's code polls the CQ. In this library it always does.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED external_datapath_en is 0
 */
doca_error_t doca_verbs_cq_attr_set_external_datapath_en(struct doca_verbs_cq_attr *cq_attr,
							 uint8_t external_datapath_en);

/**
 * Places the CQ in memory of the caller: the entries, 64 bytes each, and behind them the DBREC of 8
 * bytes. doca_verbs_cq_create() initializes both.
 *
 * @param external_umem the umem; NULL (default): the library allocates host memory
 * @param external_umem_offset offset in the umem in bytes, a multiple of 64
 */
doca_error_t doca_verbs_cq_attr_set_external_umem(struct doca_verbs_cq_attr *cq_attr,
						  struct doca_umem *external_umem,
						  uint64_t external_umem_offset);

/** Sets the UAR through which the CQ is armed. NULL (default): the library allocates one. */
doca_error_t doca_verbs_cq_attr_set_external_uar(struct doca_verbs_cq_attr *cq_attr,
						 struct doca_uar *external_uar);

/**
 * Sets what the NIC does when the CQ is full.
 *
 * @param cq_overrun 0 (default): the CQ and its QPs go to error; 1: the NIC overwrites the oldest
 *         entries. GPU threads that do not update the consumer index need 1.
 */
doca_error_t doca_verbs_cq_attr_set_cq_overrun(struct doca_verbs_cq_attr *cq_attr,
					       uint8_t cq_overrun)
	GDK_DOCA_NAME(gdk_doca_cq_attr_set_cq_overrun);

/**
 * Creates a CQ. Destroy it with doca_verbs_cq_destroy(). The attribute object is not used after the
 * call; the umem and the UAR that it names must exist until the CQ is destroyed. Any thread may
 * call this.
 *
 * @retval DOCA_ERROR_INVALID_VALUE the size is 0 or above the device's limit, or the queue does not
 *         fit into the umem, is not aligned, or the umem belongs to another context
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the firmware or the kernel refused
 */
doca_error_t doca_verbs_cq_create(struct doca_verbs_context *verbs_context,
				  struct doca_verbs_cq_attr *cq_attr,
				  struct doca_verbs_cq **verbs_cq)
	GDK_DOCA_NAME(gdk_doca_cq_create);

/**
 * Destroys a CQ.
 *
 * @retval DOCA_ERROR_IN_USE a QP still uses it
 * @retval DOCA_ERROR_DRIVER the firmware or the kernel refused; the caller may repeat this call
 */
doca_error_t doca_verbs_cq_destroy(struct doca_verbs_cq *cq);

/** Returns the number of the CQ, 24 bits; 0 for NULL. */
uint32_t doca_verbs_cq_get_cqn(const struct doca_verbs_cq *verbs_cq)
	GDK_DOCA_NAME(gdk_doca_cq_get_cqn);

/* ---- creation of QPs ---- */

/**
 * Creates an attribute object for doca_verbs_qp_create(). Free it with
 * doca_verbs_qp_init_attr_destroy(). All attributes are 0 or NULL at first.
 *
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_verbs_qp_init_attr_create(struct doca_verbs_qp_init_attr **qp_init_attr);

/** Frees an attribute object. QPs that were created from it remain valid. */
doca_error_t doca_verbs_qp_init_attr_destroy(struct doca_verbs_qp_init_attr *qp_init_attr);

/** Sets the protection domain of the QP, which is needed. */
doca_error_t doca_verbs_qp_init_attr_set_pd(struct doca_verbs_qp_init_attr *qp_init_attr,
					    struct doca_verbs_pd *pd)
	GDK_DOCA_NAME(gdk_doca_qp_init_attr_set_pd);

/** Sets the CQ of the send queue. It is needed if sq_wr is not 0. */
doca_error_t doca_verbs_qp_init_attr_set_send_cq(struct doca_verbs_qp_init_attr *qp_init_attr,
						 struct doca_verbs_cq *send_cq);

/** Sets the CQ of the receive queue. It is needed if rq_wr is not 0. */
doca_error_t doca_verbs_qp_init_attr_set_receive_cq(struct doca_verbs_qp_init_attr *qp_init_attr,
						    struct doca_verbs_cq *receive_cq);

/** Sets a flag that has no effect: each WQE decides whether it generates a CQE. */
doca_error_t doca_verbs_qp_init_attr_set_sq_sig_all(struct doca_verbs_qp_init_attr *qp_init_attr,
						    int sq_sig_all);

/**
 * Sets the number of send WQEs. 0: the QP has no send queue. The slots of 64 bytes that they take
 * are rounded up to a power of two, at most 32768.
 */
doca_error_t doca_verbs_qp_init_attr_set_sq_wr(struct doca_verbs_qp_init_attr *qp_init_attr,
					       uint32_t sq_wr);

/** Sets the number of receive WQEs, rounded up to a power of two. 0: no receive queue. */
doca_error_t doca_verbs_qp_init_attr_set_rq_wr(struct doca_verbs_qp_init_attr *qp_init_attr,
					       uint32_t rq_wr);

/** Sets the number of data segments of a send WQE: 1 to 62 if sq_wr is not 0. */
doca_error_t doca_verbs_qp_init_attr_set_send_max_sges(struct doca_verbs_qp_init_attr *qp_init_attr,
						       uint32_t send_max_sges);

/** Sets the number of data segments of a receive WQE: 1 to 32 if rq_wr is not 0. */
doca_error_t
doca_verbs_qp_init_attr_set_receive_max_sges(struct doca_verbs_qp_init_attr *qp_init_attr,
					     uint32_t receive_max_sges);

/** Sets the transport: DOCA_VERBS_QP_TYPE_RC (default) or DOCA_VERBS_QP_TYPE_UC. */
doca_error_t doca_verbs_qp_init_attr_set_qp_type(struct doca_verbs_qp_init_attr *qp_init_attr,
						 uint32_t qp_type);

/**
 * Sets whether the user's code posts to the QP. In this library it always does.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED external_datapath_en is 0
 */
doca_error_t
doca_verbs_qp_init_attr_set_external_datapath_en(struct doca_verbs_qp_init_attr *qp_init_attr,
						 uint8_t external_datapath_en);

/**
 * Places the queues in memory of the caller: the receive queue starts at the offset, and the send
 * queue follows it. Set this umem and that of the DBREC, or neither.
 *
 * @param external_umem the umem; NULL (default): the library allocates host memory
 * @param external_umem_offset offset in the umem in bytes, a multiple of 64
 */
doca_error_t doca_verbs_qp_init_attr_set_external_umem(struct doca_verbs_qp_init_attr *qp_init_attr,
						       struct doca_umem *external_umem,
						       uint64_t external_umem_offset);

/**
 * Places the DBREC, 8 bytes, in memory of the caller. doca_verbs_qp_create() clears it.
 *
 * @param external_dbr_umem the umem; NULL (default): the library allocates host memory
 * @param external_dbr_umem_offset offset in the umem in bytes; the address must be a multiple of 8
 */
doca_error_t
doca_verbs_qp_init_attr_set_external_dbr_umem(struct doca_verbs_qp_init_attr *qp_init_attr,
					      struct doca_umem *external_dbr_umem,
					      uint64_t external_dbr_umem_offset);

/** Sets the UAR with the doorbell register. NULL (default): the library allocates one. */
doca_error_t doca_verbs_qp_init_attr_set_external_uar(struct doca_verbs_qp_init_attr *qp_init_attr,
						      struct doca_uar *external_uar);

/** Sets whether the QP may post WAIT WQEs (core direct): 0 (default) or 1. */
doca_error_t
doca_verbs_qp_init_attr_set_core_direct_master(struct doca_verbs_qp_init_attr *qp_init_attr,
					       uint8_t core_direct_master);

/**
 * Sets whether the NIC writes the data of a received message into its CQE instead of the buffer, if
 * there are at most 32 bytes and the buffer has room for them: 0 (default) or 1. For 1,
 * doca_verbs_qp_create() returns NOT_SUPPORTED if the NIC cannot do this, and INVALID_VALUE for a
 * QP without a receive queue.
 */
doca_error_t doca_verbs_qp_init_attr_set_cqe_inline(struct doca_verbs_qp_init_attr *qp_init_attr,
						    uint8_t cqe_inline);

/** Sets whether the NIC reads the send word of the DBREC. Default: it does. */
doca_error_t
doca_verbs_qp_init_attr_set_send_dbr_mode(struct doca_verbs_qp_init_attr *qp_init_attr,
					  enum doca_verbs_qp_send_dbr_mode send_dbr_mode);

/**
 * Creates a QP in state RST. Destroy it with doca_verbs_qp_destroy(). The attribute object is not
 * used after the call; the objects that it names must exist until the QP is destroyed. Any thread
 * may call this.
 *
 * @retval DOCA_ERROR_INVALID_VALUE attributes are missing, contradict each other, exceed the limits
 *         of the device or belong to another context
 * @retval DOCA_ERROR_NOT_SUPPORTED the DBREC mode is not supported, or no suitable UAR is available
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the firmware or the kernel refused
 */
doca_error_t doca_verbs_qp_create(struct doca_verbs_context *verbs_context,
				  struct doca_verbs_qp_init_attr *qp_init_attr,
				  struct doca_verbs_qp **verbs_qp)
	GDK_DOCA_NAME(gdk_doca_qp_create);

/**
 * Destroys a QP.
 *
 * @retval DOCA_ERROR_IN_USE the QP is exported to a GPU
 * @retval DOCA_ERROR_DRIVER the firmware or the kernel refused; the caller may repeat this call
 */
doca_error_t doca_verbs_qp_destroy(struct doca_verbs_qp *verbs_qp);

/** Returns the number of the QP, 24 bits; 0 for NULL. */
uint32_t doca_verbs_qp_get_qpn(const struct doca_verbs_qp *verbs_qp)
	GDK_DOCA_NAME(gdk_doca_qp_get_qpn);

/* ---- state of QPs ---- */

/**
 * Creates an attribute object for doca_verbs_qp_modify(). Free it with
 * doca_verbs_qp_attr_destroy(). All attributes are 0 at first; a transition uses those whose bits
 * are in attr_mask.
 *
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_verbs_qp_attr_create(struct doca_verbs_qp_attr **qp_attr);

/** Frees an attribute object. */
doca_error_t doca_verbs_qp_attr_destroy(struct doca_verbs_qp_attr *qp_attr);

/** Sets the state that the QP should get. */
doca_error_t doca_verbs_qp_attr_set_next_state(struct doca_verbs_qp_attr *qp_attr,
					       enum doca_verbs_qp_state next_state);

/** Sets the payload bytes per packet, at most the active MTU of the port. */
doca_error_t doca_verbs_qp_attr_set_path_mtu(struct doca_verbs_qp_attr *qp_attr,
					     enum gdk_mtu_size path_mtu);

/** Sets the first PSN that the QP expects. 24 bits. */
doca_error_t doca_verbs_qp_attr_set_rq_psn(struct doca_verbs_qp_attr *qp_attr, uint32_t rq_psn);

/** Sets the first PSN that the QP sends. 24 bits. */
doca_error_t doca_verbs_qp_attr_set_sq_psn(struct doca_verbs_qp_attr *qp_attr, uint32_t sq_psn);

/** Sets the number of the remote QP. 24 bits. */
doca_error_t doca_verbs_qp_attr_set_dest_qp_num(struct doca_verbs_qp_attr *qp_attr,
						uint32_t dest_qp_num);

/** Sets whether the remote side may execute RDMA writes: 0 no, otherwise yes. */
doca_error_t doca_verbs_qp_attr_set_allow_remote_write(struct doca_verbs_qp_attr *qp_attr,
						       int allow_remote_write);

/** Sets whether the remote side may execute RDMA reads: 0 no, otherwise yes. */
doca_error_t doca_verbs_qp_attr_set_allow_remote_read(struct doca_verbs_qp_attr *qp_attr,
						      int allow_remote_read);

/** Sets which atomics the remote side may execute. */
doca_error_t doca_verbs_qp_attr_set_atomic_mode(struct doca_verbs_qp_attr *qp_attr,
						enum doca_verbs_qp_atomic_mode atomic_mode);

/** Sets the path to the remote port. The object is copied. */
doca_error_t doca_verbs_qp_attr_set_ah_attr(struct doca_verbs_qp_attr *qp_attr,
					    struct doca_verbs_ah_attr *ah_attr);

/** Sets the port of the device: 1 to 255. */
doca_error_t doca_verbs_qp_attr_set_port_num(struct doca_verbs_qp_attr *qp_attr, uint16_t port_num);

/** Sets how long the QP waits for an ACK: 4.096 us << ack_timeout, 0 to 31; 0: no timeout. */
doca_error_t doca_verbs_qp_attr_set_ack_timeout(struct doca_verbs_qp_attr *qp_attr,
						uint16_t ack_timeout);

/** Sets how many times the QP retransmits after a timeout or a NAK: 0 to 7. */
doca_error_t doca_verbs_qp_attr_set_retry_cnt(struct doca_verbs_qp_attr *qp_attr,
					      uint16_t retry_cnt);

/** Sets how many times the QP retransmits after an RNR NAK: 0 to 7; 7: no limit. */
doca_error_t doca_verbs_qp_attr_set_rnr_retry(struct doca_verbs_qp_attr *qp_attr,
					      uint16_t rnr_retry);

/** Sets the delay that RNR NAKs of this QP request, as the InfiniBand code: 0 to 31. */
doca_error_t doca_verbs_qp_attr_set_min_rnr_timer(struct doca_verbs_qp_attr *qp_attr,
						  uint16_t min_rnr_timer);

/** Sets how many RDMA reads and atomics this side may have outstanding. */
doca_error_t doca_verbs_qp_attr_set_max_rd_atomic(struct doca_verbs_qp_attr *qp_attr,
						  uint8_t max_rd_atomic);

/** Sets how many RDMA reads and atomics the remote side may have outstanding. */
doca_error_t doca_verbs_qp_attr_set_max_dest_rd_atomic(struct doca_verbs_qp_attr *qp_attr,
						       uint8_t max_dest_rd_atomic);

/**
 * Changes the state or the attributes of a QP. The transitions, with the bits that attr_mask needs
 * besides NEXT_STATE:
 *
 * - RST to INIT: PKEY_INDEX, PORT_NUM, ALLOW_REMOTE_WRITE, ALLOW_REMOTE_READ; optional: ATOMIC_MODE
 * - INIT to RTR: RQ_PSN, DEST_QP_NUM, PATH_MTU, AH_ATTR, MIN_RNR_TIMER; optional: PKEY_INDEX,
 *   MAX_DEST_RD_ATOMIC, remote rights
 * - RTR to RTS: SQ_PSN, ACK_TIMEOUT, RETRY_CNT, RNR_RETRY; optional: MIN_RNR_TIMER,
 *   MAX_QP_RD_ATOMIC, remote rights
 * - RTS to RTS; optional: MIN_RNR_TIMER, AH_ATTR, remote rights
 * - any state to ERR, any state to RST: no other bits
 *
 * A QP of type UC has no MIN_RNR_TIMER, ACK_TIMEOUT, RETRY_CNT, RNR_RETRY, MAX_QP_RD_ATOMIC,
 * MAX_DEST_RD_ATOMIC, ALLOW_REMOTE_READ and ATOMIC_MODE.
 *
 * @param attr_mask DOCA_VERBS_QP_ATTR_* bits
 * @retval DOCA_ERROR_INVALID_VALUE a required bit is missing, a bit does not belong to the
 *         transition, or a value does not fit the device, the port or the path
 * @retval DOCA_ERROR_BAD_STATE there is no such transition
 * @retval DOCA_ERROR_NOT_FOUND the MAC address of the remote port cannot be resolved (RoCE)
 * @retval DOCA_ERROR_DRIVER the firmware refused, or the port cannot be queried
 */
doca_error_t doca_verbs_qp_modify(struct doca_verbs_qp *verbs_qp,
				  struct doca_verbs_qp_attr *qp_attr, int attr_mask);

#ifdef __cplusplus
}
#endif

#endif
