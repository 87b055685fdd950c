/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Functions that gdaki adds to DOCA GPUNetIO: reports on the choice of a doorbell handler,
 * counters and errors of a queue pair, device events, CPU proxy services, dumps of WQEs and CQEs.
 *
 * All names start with gdk_ or GDK_. Return values, out-parameters and thread safety follow the
 * rules in doca_gpunetio.h.
 */
#ifndef GDK_GDAKI_H
#define GDK_GDAKI_H

#include "../host/doca_gpunetio.h"
#include "../host/doca_verbs_qp.h"
#include "../host/gdk_version.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GDK_HANDLER_CANDIDATES_MAX 6   /**< entries of gdk_handler_report.candidates */
#define GDK_HANDLER_REASON_LEN	   160 /**< bytes of a reason, final 0 included */

/** One handler that the library tested before it chose. */
struct gdk_handler_candidate {
	enum doca_gpu_dev_verbs_nic_handler handler; /**< the handler that was tested */
	const char *strategy;		     /**< its strategy: "gpu_sm", "bf", "cpu_proxy" */
	bool usable;			     /**< it works on this GPU, NIC and UAR */
	char reason[GDK_HANDLER_REASON_LEN]; /**< why it is usable or not, in English */
};

/** How a handler was chosen. The candidates are in the order in which they were tested. */
struct gdk_handler_report {
	enum doca_gpu_dev_verbs_nic_handler asked;  /**< the handler that the caller requested */
	enum doca_gpu_dev_verbs_nic_handler chosen; /**< the result; TYPE_MAX: none is usable */
	unsigned int num_candidates;		    /**< valid entries of candidates */
	struct gdk_handler_candidate candidates[GDK_HANDLER_CANDIDATES_MAX]; /**< what was tested */
};

/**
 * Returns the short name of a handler, for example "GPU_SM_DB"; "?" for an unknown value. The
 * string is static.
 */
const char *gdk_handler_name(enum doca_gpu_dev_verbs_nic_handler handler);

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
	uint64_t completions;	/**< WQEs that are known to be complete */
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
	uint8_t opcode;		 /**< of the WQE, DOCA_GPUNETIO_IB_MLX5_OPCODE_* */
	bool has_remote;	 /**< rkey and remote_addr are valid: the operation has a remote
				  * address and its WQE was not overwritten yet */
	uint16_t wqe_counter;	 /**< index of the WQE, modulo 2^16 */
	uint32_t qpn;		 /**< number of the QP, 24 bits */
	uint32_t rkey;		 /**< remote key of the WQE */
	uint64_t remote_addr;	 /**< remote address of the WQE, bytes */
};

/**
 * Reads the error of an exported QP, in more detail than doca_gpu_verbs_query_last_error().
 *
 * Both functions query the QP's state from the firmware and search the whole CQ for the first
 * error CQE that is not a flush. A collapsed CQ keeps only its last CQE, so the cause may be lost
 * there. Any thread; GPU threads may use the QP meanwhile.
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

/** Returns a line on the usual cause of a CQE syndrome. The string is static. */
const char *gdk_syndrome_cause(int syndrome);

/** The last firmware command of a thread that failed. */
struct gdk_command_error {
	uint32_t opcode;      /**< of the command; 0: no command has failed yet */
	uint32_t syndrome;    /**< number from the firmware, for NVIDIA's support */
	int status;	      /**< status from the firmware; 0: it did not get the command */
	int sys_err;	      /**< errno of the driver, or 0 */
	const char *command,  /**< for example "CREATE_QP"; NULL: no command has failed yet */
		*status_text; /**< status in English; NULL as for command */
	char object[96];      /**< for example "QP 0x1f (INIT to RTR)" */
};

/**
 * Reads the last firmware command that failed in the calling thread. Use it when a function of
 * this library has returned DOCA_ERROR_DRIVER. Later commands that succeed do not clear it.
 */
doca_error_t gdk_get_command_error(struct gdk_command_error *error);

/**
 * Errors that the NIC reports as events. A CQ that has overrun generates no more CQEs, and its QPs
 * go to state ERR without one. Device threads that wait on them return after gdk_verbs_qp_abort(),
 * or when the wait limit has passed.
 */
enum gdk_event_kind {
	GDK_EVENT_CQ_ERROR = 0,	  /**< CQ error; syndrome 1: overrun, 2: the NIC cannot write its
				   * memory */
	GDK_EVENT_QP_FATAL = 1,	  /**< QP error for which the NIC cannot write a CQE */
	GDK_EVENT_QP_REQUEST = 2, /**< the remote side sent a request that the QP does not allow */
	GDK_EVENT_QP_ACCESS = 3,  /**< the remote side accessed memory without the right to */
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
 * @retval DOCA_ERROR_DRIVER the driver failed
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
 * -ECANCELED, and no more WQEs are rung. WQEs that were rung before still execute.
 *
 * Any thread, at any time before the QP is unexported. To use the QP again, call
 * gdk_verbs_qp_clear_abort() or reset it.
 *
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be written
 */
doca_error_t gdk_verbs_qp_abort(struct doca_gpu_verbs_qp *qp);

/**
 * Ends an abort. WQEs that were rung complete as usual, and slots that were reserved but not
 * published are free again. No device thread may use the QP during the call.
 *
 * @retval DOCA_ERROR_BAD_STATE the QP ended for another reason than an abort, or a WQE was
 *         published after a slot that was not; reset the QP with
 *         doca_gpu_verbs_reset_tracking_and_memory()
 * @retval DOCA_ERROR_NO_MEMORY no memory for a copy of the QP's state
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be accessed
 */
doca_error_t gdk_verbs_qp_clear_abort(struct doca_gpu_verbs_qp *qp);

/**
 * Sets how long one wait of a device thread on the QP may take before the wait ends the QP with
 * -ETIMEDOUT. A reset of the QP keeps the limit.
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
 * There is one line for each segment: ctrl, raddr, atomic, wait, data or inline; raw if the size
 * does not match the opcode. Each field is printed as "name value", with its name in
 * common/doca_gpunetio_verbs_def.h and in CPU byte order. In device code gdk_print_wqe and
 * gdk_print_cqe print the same text.
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
 * Writes a WQE of an exported QP as readable text, in the format of gdk_dump_wqe(). It prints what
 * the ring holds at that index now, which may be a later or an older WQE.
 *
 * @param index index of the WQE's first slot, counted from the export or the last reset
 * @param size bytes at buf, at least 1; longer text is cut
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be read
 */
doca_error_t gdk_verbs_qp_dump_wqe(struct doca_gpu_verbs_qp *qp, uint64_t index, char *buf,
				   size_t size);

/**
 * Writes a CQE of an exported QP as readable text, in the format of gdk_dump_cqe(). It prints what
 * the CQ holds at that index now. For a collapsed CQ it prints entry 0.
 *
 * @param index index of the CQE, counted from the export or the last reset
 * @param size bytes at buf, at least 1; longer text is cut
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be read
 */
doca_error_t gdk_verbs_qp_dump_cqe(struct doca_gpu_verbs_qp *qp, uint64_t index, char *buf,
				   size_t size);

/** How a umem was registered with the NIC. */
enum gdk_umem_way {
	GDK_UMEM_HOST_MEMORY = 0,  /**< host memory, by its address */
	GDK_UMEM_GIVEN_DMABUF = 1, /**< through the caller's dmabuf */
	GDK_UMEM_DMABUF = 2,	   /**< GPU memory, through a dmabuf of the default mapping type */
	GDK_UMEM_PEER_MEMORY =
		3, /**< GPU memory, by its address, through the kernel's peer memory */
};

#define GDK_UMEM_REASON_LEN 256 /**< bytes of a reason, final 0 included */

/** The registration of a umem. */
struct gdk_umem_registration {
	enum gdk_umem_way way; /**< how it was registered */
	size_t page_size;      /**< bytes: the NIC uses pages of at most this size. A ring starts on
				* a multiple of page_size / 64, and of 64 bytes */
	/**
	 * For GDK_UMEM_DMABUF and GDK_UMEM_PEER_MEMORY: why the other one was not used. Otherwise
	 * empty.
	 */
	char reason[GDK_UMEM_REASON_LEN];
};

/**
 * Reports how a umem was registered when it was created. It works for the umems of a high-level QP
 * too: qp_umem, cq_sq_umem and qp_umem_dbr. The result never changes. Any thread.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED the umem belongs to the DOCA SDK
 */
doca_error_t gdk_verbs_umem_get_registration(const doca_verbs_umem_t *umem,
					     struct gdk_umem_registration *registration);

/**
 * Exports GPU memory as a dmabuf of the PCIe mapping type. Parameters and ownership are those of
 * doca_gpu_get_dmabuf_fd().
 *
 * Use it for data-direct memory regions, on machines where GPU and NIC are also connected by
 * another bus than PCIe. Other memory regions and umems need the default mapping type, to which an
 * ordinary function of the NIC can attach.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED GPU or driver lacks this mapping type, or the GPU belongs to
 *         the DOCA SDK
 */
doca_error_t gdk_gpu_get_dmabuf_fd_pcie(doca_gpu_t *gpu_dev, void *memptr_gpu, size_t size,
					int *dmabuf_fd);

/**
 * Bit of attr_mask for the port of a bond, valid in the transitions RST to INIT and RTS to RTS.
 * The value comes from gdk_verbs_qp_attr_set_lag_port(). Without the bit, a bond that distributes
 * traffic by queue gives each QP the next port at INIT.
 */
#define GDK_VERBS_QP_ATTR_LAG_PORT (1 << 30)

/** A bond of the NIC's ports, and the port of one QP. */
struct gdk_qp_lag {
	uint8_t ports;	     /**< ports of the bond; 0: the device has no bond */
	bool active;	     /**< the bond is in use */
	bool by_queue;	     /**< traffic is distributed by queue; false: by packet headers, or
			      * not at all */
	uint8_t port;	     /**< port of the QP, counted from 1; 0: the NIC chooses */
	uint8_t active_port; /**< port that now sends the packets of that port; 0: unknown */
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
 * Queries the bond and the port of a QP from the firmware. On a device without a bond the call
 * succeeds and ports is 0 or 1.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED the QP belongs to the DOCA SDK
 * @retval DOCA_ERROR_DRIVER the firmware did not answer
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
 * @param log 0 to 8. 0 (default): every packet, as DOCA GPUNetIO and NVSHMEM. 8: every 256
 *         packets, as the kernel and UCX, which costs less bandwidth.
 */
doca_error_t gdk_verbs_qp_attr_set_log_ack_req_freq(doca_verbs_qp_attr_t *attr, uint8_t log);

/**
 * The values of a doca_verbs_qp_attr_t, in the units and codes of its setters (doca_verbs_qp.h).
 * The fields of the path, addr_type and below, are 0 if no path was set.
 */
struct gdk_qp_attr {
	enum doca_verbs_qp_state next_state, /**< state that the QP should get */
		current_state;		     /**< state of the QP */
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

/** The values of a doca_verbs_qp_init_attr_t, in the units and codes of its setters. */
struct gdk_qp_init_attr {
	doca_verbs_cq_t *send_cq,			/**< CQ of the send queue */
		*receive_cq;				/**< CQ of the receive queue */
	struct doca_verbs_srq *srq;			/**< shared receive queue, or NULL */
	void *qp_context;				/**< the caller's pointer */
	uint32_t sq_wr,					/**< send WQEs */
		rq_wr;					/**< receive WQEs */
	uint32_t send_max_sges,				/**< data segments of a send WQE */
		receive_max_sges,			/**< data segments of a receive WQE */
		max_inline_data;			/**< bytes of inline data in a send WQE */
	uint32_t user_index;				/**< the caller's number, 24 bits */
	bool sq_sig_all,				/**< stored only */
		core_direct_master;			/**< the QP may post WAIT WQEs */
	enum doca_verbs_qp_send_dbr_mode send_dbr_mode; /**< whether the NIC reads the send DBREC */
};

/**
 * Reads all values of an attribute object, for example after doca_verbs_qp_query() has filled it.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED the object belongs to the DOCA SDK
 */
doca_error_t gdk_verbs_qp_attr_get(const doca_verbs_qp_attr_t *attr, struct gdk_qp_attr *values);

/**
 * Reads all values of a QP's creation attributes. After doca_verbs_qp_query() these are the values
 * that the QP was granted.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED the object belongs to the DOCA SDK
 */
doca_error_t gdk_verbs_qp_init_attr_get(const doca_verbs_qp_init_attr_t *init_attr,
					struct gdk_qp_init_attr *values);

/**
 * Value of doca_gpu_verbs_qp_init_attr_hl.send_dbr_mode_ext: the library chooses the DBREC mode.
 * Valid with the handlers AUTO, CPU_PROXY and GPU_SM_DB. With AUTO, the QP has no DBREC if the
 * device supports that and has not reached its limit of such QPs; otherwise it has one.
 */
#define GDK_SEND_DBR_MODE_AUTO ((enum doca_gpu_verbs_send_dbr_mode_ext)3)

/**
 * Options of a CPU proxy service. 0 and NULL select the defaults, which
 * doca_gpu_verbs_create_service() uses too.
 */
struct gdk_service_attr {
	uint32_t threads; /**< 1 to 16; 0: the value of GDAKI_PROXY_THREADS, or 1 */
	/**
	 * List of CPUs, for example "2,4-7". Thread i runs on the i-th CPU of the list, modulo its
	 * length. NULL: the list in GDAKI_PROXY_CPUS, or any CPU of the NUMA node of the NIC whose
	 * QPs the thread serves.
	 */
	const char *cpus;
	/**
	 * Longest sleep of an idle thread, in microseconds. An idle thread spins, then yields,
	 * then sleeps longer and longer. The limit bounds how late the first doorbell after an
	 * idle time is rung, and how long the destruction of the service takes. 0: the value of
	 * GDAKI_PROXY_NAP_US, or 1000.
	 */
	uint32_t nap_max_us;
	/**
	 * A doorbell that waits for this many milliseconds, plus nap_max_us, because a thread did
	 * not run counts as a stall. 0: 100.
	 */
	uint32_t stall_ms;
};

/**
 * Creates a CPU proxy service: threads that ring doorbells for QPs with handler CPU_PROXY, or with
 * the mode NO_DBR_SW_EMULATED. Add QPs with doca_gpu_verbs_service_monitor_qp() and destroy the
 * service with doca_gpu_verbs_destroy_service(). The threads block all signals. attr and its
 * strings are not used after the call.
 *
 * @retval DOCA_ERROR_INVALID_VALUE more than 16 threads, or a CPU list that is empty, malformed or
 *         has a CPU that this process may not use
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_OPERATING_SYSTEM a thread did not start
 */
doca_error_t gdk_verbs_service_create(const struct gdk_service_attr *attr,
				      doca_gpu_verbs_service_t *out_service);

/**
 * Removes a QP from a CPU proxy service. On return the service has rung every index that the GPU
 * had raised before the call, and does not use the QP any more.
 *
 * doca_gpu_verbs_unexport_qp() and doca_gpu_verbs_destroy_service() do the same. Any thread.
 *
 * @retval DOCA_ERROR_NOT_FOUND this service does not monitor the QP
 */
doca_error_t gdk_verbs_service_unmonitor_qp(doca_gpu_verbs_service_t service,
					    struct doca_gpu_verbs_qp *qp);

/** Statistics of a CPU proxy service since its creation, the sums of all its threads. */
struct gdk_service_stats {
	uint64_t passes;       /**< polls of all counters of a thread */
	uint64_t rings;	       /**< stores to doorbell registers */
	uint64_t yields;       /**< idle passes that yielded the CPU */
	uint64_t sleeps;       /**< idle passes that slept */
	uint64_t stalls;       /**< times a doorbell waited because its thread did not run */
	uint64_t worst_gap_ns; /**< longest time, in nanoseconds, between two passes of a thread of
				* which the second found a doorbell to ring */
	uint32_t threads;      /**< threads of the service */
	uint32_t late_threads; /**< threads whose next pass is overdue now */
	uint32_t qps;	       /**< QPs that are monitored now */
};

/**
 * Reads the statistics of a CPU proxy service. Its threads keep running, so the values need not
 * belong to the same moment. Any thread.
 */
doca_error_t gdk_verbs_service_get_stats(doca_gpu_verbs_service_t service,
					 struct gdk_service_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
