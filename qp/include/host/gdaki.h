/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Functions that gdaki adds to DOCA GPUNetIO: queues in host memory, reports on the choice of a
 * doorbell handler, counters and errors of a queue pair, device events, dumps of WQEs and CQEs,
 * ports of a bond, attribute values. Includes the additions of the other folders, such as CPU
 * proxy services.
 *
 * All names start with gdk_ or GDK_. Return values, out-parameters and thread safety follow the
 * rules in doca_gpunetio.h.
 */
#ifndef GDK_GDAKI_H
#define GDK_GDAKI_H

#include "host/doca_gpunetio.h"
#include "host/doca_gpunetio_high_level.h"
#include "host/doca_verbs_qp.h"
#include "host/gdaki_core.h"
#include "host/gdaki_doorbell.h"
#include "host/gdaki_recv.h"
#include "host/gdaki_umem.h"
#include "host/gdk_version.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Flag of gdk_verbs_create_qp_hl(): rings, CQs and DBREC are in pinned host memory that the GPU can
 * access. For systems with a fast path between CPU and GPU, for systems where the NIC cannot access
 * GPU memory, and for CPU threads that use the queues through the addresses in qp_gverbs->qp_cpu.
 * The state that GPU threads share, which the NIC does not access, stays in GPU memory.
 * GDAKI_QUEUE_MEM=cpu_gpu does so for all QPs of a process.
 */
#define GDK_QP_HL_QUEUES_ON_HOST (1u << 0)

/**
 * Flag of gdk_verbs_create_qp_hl(): the QP may use the NIC's copy engine, as with
 * gdk_verbs_qp_init_attr_set_copy_engine().
 */
#define GDK_QP_HL_COPY_ENGINE (1u << 1)

/**
 * Creates a high-level QP as doca_gpu_verbs_create_qp_hl() does, with options that DOCA GPUNetIO
 * does not have. Destroy it with doca_gpu_verbs_destroy_qp_hl().
 *
 * @param flags a set of GDK_QP_HL_*
 */
doca_error_t gdk_verbs_create_qp_hl(const struct doca_gpu_verbs_qp_init_attr_hl *qp_init_attr,
				    uint32_t flags, struct doca_gpu_verbs_qp_hl **qp);

/**
 * Creates a group as doca_gpu_verbs_create_qp_group_hl() does. Destroy it with
 * doca_gpu_verbs_destroy_qp_group_hl().
 *
 * @param flags as for gdk_verbs_create_qp_hl(); they apply to both QPs
 */
doca_error_t gdk_verbs_create_qp_group_hl(const struct doca_gpu_verbs_qp_init_attr_hl *qp_init_attr,
					  uint32_t flags, struct doca_gpu_verbs_qp_group_hl **qpg);

/**
 * Reports how the handler of an exported QP was chosen. For a high-level QP this is the choice
 * that doca_gpu_verbs_create_qp_hl() made, with every candidate of AUTO.
 *
 * Any thread.
 */
doca_error_t gdk_verbs_qp_get_handler_report(const struct doca_gpu_verbs_qp *qp,
					     struct gdk_handler_report *report);

/** Counters of an exported QP since its export or its last reset. */
struct gdk_qp_counters {
	uint64_t wqes_reserved; /**< slots that were reserved, 64 bytes each */
	uint64_t doorbells;	/**< stores to the doorbell register, by the GPU or the proxy */
	uint64_t dbrec_updates; /**< stores to the DBREC */
	uint64_t completions;	/**< slots whose WQEs are known to be complete */
	int status;		/**< 0, or the negative errno that ended the QP */
	/**
	 * If status is not 0: the index of the WQE that failed or was refused. If the WQE is
	 * unknown (abort, wait limit, a collapsed CQ that shows only a flush): the index of the
	 * first WQE that is not known to be complete.
	 */
	uint64_t error_wqe;
};

/**
 * Reads the counters of an exported QP.
 *
 * GPU threads may post meanwhile. Each counter then has a value that was correct at some time
 * during the call, but the counters need not belong to the same moment. Any thread.
 *
 * @retval DOCA_ERROR_NO_MEMORY no memory for a copy of the QP's state
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be read
 */
doca_error_t gdk_verbs_qp_get_counters(struct doca_gpu_verbs_qp *qp,
				       struct gdk_qp_counters *counters);

/** The error of a QP: its error CQE and the WQE that failed. All numbers in CPU byte order. */
struct gdk_qp_error {
	bool has_error;		 /**< the QP is in state ERR, or has an error CQE */
	bool has_cqe;		 /**< an error CQE was found; false: the fields below except
				  * qpn are 0 */
	uint8_t syndrome,	 /**< see gdk_syndrome_text() */
		vendor_err_synd, /**< for NVIDIA's support */
		hw_err_synd,	 /**< for NVIDIA's support */
		hw_synd_type;	 /**< for NVIDIA's support */
	uint8_t opcode;		 /**< opcode of the WQE, DOCA_GPUNETIO_IB_MLX5_OPCODE_* */
	bool has_remote;	 /**< rkey and remote_addr are valid: the operation has a remote
				  * address and its WQE was not overwritten yet */
	bool is_receive;	 /**< the CQE is that of a receive; opcode is 0 */
	uint16_t wqe_counter;	 /**< index of the WQE, modulo 2^16 */
	uint32_t qpn;		 /**< number of the QP, 24 bits */
	uint32_t rkey;		 /**< remote key of the WQE */
	uint64_t remote_addr;	 /**< remote address of the WQE, bytes */
};

/**
 * Reads the error of an exported QP, in more detail than doca_gpu_verbs_query_last_error().
 *
 * Both functions query the QP's state from the firmware and search the whole CQ for the first
 * error CQE that is not a flush. A collapsed CQ keeps only its last CQE, so the CQE with
 * the cause may be overwritten by a flush. Any thread; GPU threads may use the QP meanwhile.
 *
 * @retval DOCA_ERROR_NO_MEMORY no memory for a copy of the CQ
 * @retval DOCA_ERROR_DRIVER the firmware or GPU memory cannot be read
 */
doca_error_t gdk_verbs_qp_get_error(struct doca_gpu_verbs_qp *qp, struct gdk_qp_error *error);

/**
 * Returns the name of a CQE syndrome, for example "remote access error"; "?" for an unknown
 * number. The string is static.
 */
const char *gdk_syndrome_text(int syndrome);

/** Returns a text about the usual cause of a CQE syndrome. The string is static. */
const char *gdk_syndrome_cause(int syndrome);

/**
 * Errors that the NIC reports as events. A CQ that has overrun generates no more CQEs, and its QPs
 * go to state ERR without an error CQE. Device threads that wait on them return after
 * gdk_verbs_qp_abort(), or when the wait limit has passed.
 */
enum gdk_event_kind {
	GDK_EVENT_CQ_ERROR = 0,	  /**< CQ error; syndrome 1: overrun, 2: the NIC cannot write its
				   * memory */
	GDK_EVENT_QP_FATAL = 1,	  /**< QP error for which the NIC cannot write a CQE */
	GDK_EVENT_QP_REQUEST = 2, /**< the remote side sent a request that the QP does not allow */
	GDK_EVENT_QP_ACCESS = 3,  /**< the remote side accessed memory without permission */
};

/** One event. */
struct gdk_event {
	enum gdk_event_kind kind; /**< what happened */
	uint32_t number;	  /**< CQ or QP number; the object may be destroyed already */
	uint32_t syndrome;	  /**< for GDK_EVENT_CQ_ERROR, otherwise 0 */
};

/** A channel that delivers the events of one NIC. Opaque. */
struct gdk_events;

/**
 * Opens an event channel. net_dev cannot be closed while the channel is open.
 *
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the driver has no event channels or refused one
 * @retval DOCA_ERROR_OPERATING_SYSTEM the channel cannot be set to non-blocking mode
 */
doca_error_t gdk_events_open(doca_dev_t *net_dev, struct gdk_events **events);

/**
 * Closes an event channel and ends its subscriptions. The CQs and QPs may still exist. The file
 * descriptor of the channel becomes invalid.
 */
doca_error_t gdk_events_close(struct gdk_events *events);

/**
 * Returns the channel's file descriptor, which is readable for poll() and epoll while an event is
 * queued. It belongs to the channel: do not read from it, change its flags or close it.
 */
doca_error_t gdk_events_get_fd(const struct gdk_events *events, int *fd);

/**
 * Subscribes to all error events of a CQ that the device supports. The subscription ends when the
 * CQ is destroyed or the channel is closed.
 *
 * @retval DOCA_ERROR_INVALID_VALUE the CQ belongs to another device context than the channel
 * @retval DOCA_ERROR_NOT_SUPPORTED the device supports none of the events, or the CQ belongs to
 *         the DOCA SDK
 * @retval DOCA_ERROR_DRIVER the driver refused the subscription
 */
doca_error_t gdk_events_watch_cq(struct gdk_events *events, doca_verbs_cq_t *cq);

/** Subscribes to all error events of a QP that the device supports; see gdk_events_watch_cq(). */
doca_error_t gdk_events_watch_qp(struct gdk_events *events, doca_verbs_qp_t *qp);

/**
 * Removes the next event from the channel. Never blocks.
 *
 * @retval DOCA_ERROR_AGAIN no event is queued
 * @retval DOCA_ERROR_DRIVER the channel cannot be read, or the event has an unknown type
 */
doca_error_t gdk_events_get(struct gdk_events *events, struct gdk_event *event);

/** Returns a kind of event in English, "?" for an unknown value. The string is static. */
const char *gdk_event_text(enum gdk_event_kind kind);

/**
 * Aborts an exported QP: every wait of a device thread on it, also for a free slot, returns
 * -ECANCELED (or the error that ended the QP before), and no more WQEs are rung. WQEs that were
 * rung before still execute.
 *
 * Any thread, at any time before the QP is unexported. To use the QP again, call
 * gdk_verbs_qp_clear_abort() or reset it.
 *
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be written
 */
doca_error_t gdk_verbs_qp_abort(struct doca_gpu_verbs_qp *qp);

/**
 * Ends an abort, or the status -ENOTCONN once the QP is connected. WQEs that were rung
 * complete as usual, and slots that were reserved but not published are free again. No device
 * thread may use the QP during the call.
 *
 * @retval DOCA_ERROR_BAD_STATE the QP ended for another reason, or a published slot follows one
 *         that is not published; reset the QP with doca_gpu_verbs_reset_tracking_and_memory()
 * @retval DOCA_ERROR_NO_MEMORY no memory for a copy of the QP's state
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be accessed
 */
doca_error_t gdk_verbs_qp_clear_abort(struct doca_gpu_verbs_qp *qp);

/**
 * Sets how long one wait of a device thread on the QP may take before the wait ends the QP with
 * -ETIMEDOUT. The status is -EHOSTDOWN if the limit is 500 ms or more, the CPU has not rung
 * doorbells that the GPU requested, and no service monitors the QP. A wait on a QP that is not
 * connected ends after 1 ms with -ENOTCONN, whatever the limit is. A reset of the QP keeps the
 * limit.
 *
 * @param ns nanoseconds; 0: no limit. Default: 60 seconds.
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be written
 */
doca_error_t gdk_verbs_qp_set_wait_limit(struct doca_gpu_verbs_qp *qp, uint64_t ns);

/**
 * Writes a WQE as readable text:
 *
 * @code{.unparsed}
 * WQE 5: RDMA_WRITE
 *   ctrl opmod 0x0 wqe_index 5 opcode 0x8 qpn 0xabcd ds 3 signature 0x0 ...
 *   raddr raddr 0x7f0012340000 rkey 0x12345
 *   data byte_count 64 lkey 0x54321 addr 0x7f0043210000
 * @endcode
 *
 * The segments are ctrl, raddr, atomic, wait, data and inline, one line each. Inline data has one
 * line even if it fills several segments; of a NOP only ctrl is shown. If the size does not match
 * the opcode, the segments after ctrl are shown as raw words. A field has the form "name value",
 * with the name of the field in mlx5 and the value in CPU byte order. In device code gdk_print_wqe
 * and gdk_print_cqe print the same text.
 *
 * @param buf gets the text, cut to size bytes and ended by 0; NULL if size is 0
 * @param size bytes at buf
 * @param wqe the WQE as the NIC reads it
 * @param slots readable slots of 64 bytes at wqe; a WQE has at most 16
 * @return the length of the whole text without the final 0, also if it was cut; 0 for an invalid
 *         argument
 */
size_t gdk_dump_wqe(char *buf, size_t size, const void *wqe, unsigned int slots);

/**
 * Writes a CQE of 64 bytes as readable text, in the format of gdk_dump_wqe(). The first line names
 * the kind of CQE; the last line of an error CQE is its syndrome, as number and name.
 *
 * @return as gdk_dump_wqe()
 */
size_t gdk_dump_cqe(char *buf, size_t size, const void *cqe);

/**
 * Writes a WQE of an exported QP as readable text, in the format of gdk_dump_wqe(). The text
 * shows the current content of the slot, which may be a later or an older WQE.
 *
 * @param index index of the WQE's first slot, counted from the export or the last reset
 * @param size bytes at buf, at least 1; longer text is cut
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be read
 */
doca_error_t gdk_verbs_qp_dump_wqe(struct doca_gpu_verbs_qp *qp, uint64_t index, char *buf,
				   size_t size);

/**
 * Writes a CQE of an exported QP as readable text, in the format of gdk_dump_cqe(). The text
 * shows the current content of that entry; for a collapsed CQ it shows entry 0.
 *
 * @param index index of the CQE, counted from the export or the last reset
 * @param size bytes at buf, at least 1; longer text is cut
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be read
 */
doca_error_t gdk_verbs_qp_dump_cqe(struct doca_gpu_verbs_qp *qp, uint64_t index, char *buf,
				   size_t size);

/**
 * Bit of attr_mask for the port of a bond, valid in the transitions RST to INIT and RTS to RTS.
 * The value comes from gdk_verbs_qp_attr_set_lag_port(). Without the bit, if the bond distributes
 * traffic by queue, the library assigns its ports to QPs in turn, in the transition RST to INIT.
 */
#define GDK_VERBS_QP_ATTR_LAG_PORT (1 << 30)

/**
 * Sets whether the QP may use the NIC's copy engine, which copies memory of this host
 * (mlx5dv_wr_memcpy() of rdma-core posts such requests, too). 0: no (default); 1: yes. For 1,
 * doca_verbs_qp_create() returns NOT_SUPPORTED if the device has no copy engine
 * (gdk_verbs_device_attr_get_copy_engine()) or belongs to the DOCA SDK, and for a UC QP.
 */
doca_error_t gdk_verbs_qp_init_attr_set_copy_engine(doca_verbs_qp_init_attr_t *qp_init_attr,
						    uint8_t copy_engine);

/** A bond of the NIC's ports, and the port of one QP. */
struct gdk_qp_lag {
	uint8_t ports;	     /**< ports that the device can bond; 0 or 1: it cannot */
	bool active;	     /**< the bond is in use */
	bool by_queue;	     /**< traffic is distributed by queue; false: by packet headers, or
			      * not at all */
	uint8_t port;	     /**< port of the QP, counted from 1; 0: the NIC chooses */
	uint8_t active_port; /**< port that now sends the packets of `port`; 0: unknown */
};

/**
 * Sets the port of a bond from which a QP sends. It takes effect in a transition whose attr_mask
 * has GDK_VERBS_QP_ATTR_LAG_PORT; that call returns INVALID_VALUE if the bond has fewer ports, and
 * NOT_SUPPORTED if the device cannot change the port of a connected QP.
 *
 * @param port 1 to the number of ports; 0 (default): the NIC chooses. At most 15.
 */
doca_error_t gdk_verbs_qp_attr_set_lag_port(doca_verbs_qp_attr_t *attr, uint8_t port);

/**
 * Queries the bond and the port of a QP from the firmware. On a device that cannot have a
 * bond the call succeeds and ports is 0 or 1.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED the QP belongs to the DOCA SDK
 * @retval DOCA_ERROR_DRIVER a query failed
 */
doca_error_t gdk_verbs_qp_get_lag(doca_verbs_qp_t *qp, struct gdk_qp_lag *lag);

/**
 * Bit of attr_mask for gdk_verbs_qp_attr_set_log_ack_req_freq(), valid in the transition RTR to
 * RTS.
 */
#define GDK_VERBS_QP_ATTR_LOG_ACK_REQ_FREQ (1 << 29)

/**
 * Sets how often the requester requests an acknowledgement: every 2^log packets. It takes effect
 * if attr_mask of the transition RTR to RTS has GDK_VERBS_QP_ATTR_LOG_ACK_REQ_FREQ.
 *
 * @param log 0 to 8. 0 (default): every packet, as in DOCA GPUNetIO and NVSHMEM. 8: every 256
 *         packets, as in the kernel and UCX, which costs less bandwidth.
 */
doca_error_t gdk_verbs_qp_attr_set_log_ack_req_freq(doca_verbs_qp_attr_t *attr, uint8_t log);

/**
 * The values of a doca_verbs_qp_attr_t, in the units and codes of its setters (doca_verbs_qp.h),
 * except the port of a bond. The fields of the path, addr_type and below, are 0 if no path was set.
 */
struct gdk_qp_attr {
	enum doca_verbs_qp_state next_state, /**< state that the QP should get */
		current_state;		     /**< after a query: state of the QP */
	enum doca_verbs_mtu_size path_mtu;   /**< code of the payload bytes per packet */
	uint32_t rq_psn,		     /**< first PSN to receive, 24 bits */
		sq_psn,			     /**< first PSN to send, 24 bits */
		dest_qp_num;		     /**< number of the remote QP */
	bool allow_remote_write,	     /**< RDMA writes of the remote side are accepted */
		allow_remote_read;	     /**< RDMA reads of the remote side are accepted */
	enum doca_verbs_qp_atomic_mode atomic_mode; /**< accepted atomics of the remote side */
	uint16_t pkey_index,			    /**< index of the partition key */
		port_num;			    /**< port of the device, counted from 1 */
	uint16_t ack_timeout,			    /**< 4.096 us << ack_timeout; 0: no timeout */
		retry_cnt,			    /**< retransmits after a timeout or NAK */
		rnr_retry,	    /**< retransmits after an RNR NAK; 7: no limit */
		min_rnr_timer;	    /**< InfiniBand code of the RNR delay */
	uint8_t max_rd_atomic,	    /**< outstanding reads and atomics of this side */
		max_dest_rd_atomic; /**< outstanding reads and atomics of the remote side */
	uint8_t log_ack_req_freq;   /**< ACK request every 2^n packets */
	enum doca_verbs_addr_type addr_type; /**< kind of the path */
	struct doca_verbs_gid gid;	     /**< GID of the remote port, in network byte order */
	uint32_t dlid;			     /**< LID of the remote port (InfiniBand) */
	uint8_t sl,			     /**< service level or priority */
		sgid_index,		     /**< index of the local GID */
		static_rate,		     /**< rate code of the NIC; 0: rate of the port */
		hop_limit,		     /**< of the GRH or IP header; 0: 64 */
		traffic_class;		     /**< of the GRH or IP header */
};

/**
 * Values of a doca_verbs_qp_init_attr_t, in the units and codes of its setters. Protection domain,
 * QP type, umems, UAR, ordering and emulate_no_dbr_ext are not included.
 */
struct gdk_qp_init_attr {
	doca_verbs_cq_t *send_cq,   /**< CQ of the send queue */
		*receive_cq;	    /**< CQ of the receive queue */
	struct doca_verbs_srq *srq; /**< shared receive queue, or NULL */
	void *qp_context;	    /**< the caller's pointer */
	uint32_t sq_wr,		    /**< send WQEs */
		rq_wr;		    /**< receive WQEs */
	uint32_t send_max_sges,	    /**< data segments of a send WQE */
		receive_max_sges,   /**< data segments of a receive WQE */
		max_inline_data;    /**< bytes of inline data in a send WQE */
	uint32_t user_index;	    /**< number that the caller chose, less than 2^24 */
	bool sq_sig_all,	    /**< stored, without effect */
		core_direct_master, /**< the QP may post WAIT WQEs */
		cqe_inline;	    /**< received data of up to 32 bytes is in the CQE */
	enum doca_verbs_qp_send_dbr_mode send_dbr_mode; /**< whether the NIC reads the send DBREC */
};

/**
 * Reads the values of an attribute object, for example after doca_verbs_qp_query() has filled it.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED the object belongs to the DOCA SDK
 */
doca_error_t gdk_verbs_qp_attr_get(const doca_verbs_qp_attr_t *attr, struct gdk_qp_attr *values);

/**
 * Reads the values of a QP's creation attributes. After doca_verbs_qp_query() these are the values
 * that the QP has.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED the object belongs to the DOCA SDK
 */
doca_error_t gdk_verbs_qp_init_attr_get(const doca_verbs_qp_init_attr_t *init_attr,
					struct gdk_qp_init_attr *values);

/**
 * Value of doca_gpu_verbs_qp_init_attr_hl.send_dbr_mode_ext: the library chooses the DBREC mode.
 * Valid with the handlers AUTO, CPU_PROXY and GPU_SM_DB. With handler AUTO, the QP has no DBREC
 * if the device supports that and has not reached its limit of such QPs, and if AUTO then chooses
 * handler GPU_SM_NO_DBR. Otherwise the QP has a DBREC.
 */
#define GDK_SEND_DBR_MODE_AUTO ((enum doca_gpu_verbs_send_dbr_mode_ext)3)

#ifdef __cplusplus
}
#endif

#endif
