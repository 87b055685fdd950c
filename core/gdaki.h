/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What gdaki offers beyond DOCA GPUNetIO: why a doorbell handler was chosen,
 * counters of a queue pair, and its errors. All names start with gdk_ or GDK_.
 */
#ifndef GDK_GDAKI_H
#define GDK_GDAKI_H

#include "doca_gpunetio.h"
#include "doca_verbs_qp.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GDK_HANDLER_CANDIDATES_MAX 6
#define GDK_HANDLER_REASON_LEN	   160

/* One candidate that was looked at when a handler was chosen. */
struct gdk_handler_candidate {
	enum doca_gpu_dev_verbs_nic_handler handler;
	const char *strategy; /* "gpu_sm", "bf", "cpu_proxy" */
	bool usable;
	char reason[GDK_HANDLER_REASON_LEN];
};

/* The whole decision, in the order in which candidates were tried. */
struct gdk_handler_report {
	enum doca_gpu_dev_verbs_nic_handler asked;
	enum doca_gpu_dev_verbs_nic_handler chosen; /* TYPE_MAX: none */
	unsigned int num_candidates;
	struct gdk_handler_candidate candidates[GDK_HANDLER_CANDIDATES_MAX];
};

/* Short name of a handler ("GPU_SM_DB"), "?" for an unknown value. */
const char *gdk_handler_name(enum doca_gpu_dev_verbs_nic_handler handler);

/* The decision taken when qp was exported. */
doca_error_t gdk_verbs_qp_get_handler_report(const struct doca_gpu_verbs_qp *qp,
					     struct gdk_handler_report *report);

/* Counters of an exported QP since export or reset; units: events. */
struct gdk_qp_counters {
	uint64_t wqes_reserved; /* slots handed out */
	uint64_t doorbells;	/* register writes, by the GPU or the proxy */
	uint64_t dbrec_updates; /* doorbell record stores */
	uint64_t completions;	/* WQEs known to be complete */
	int status;		/* 0, or the sticky negative errno of the QP */
	/* When status is not 0: the WQE that failed or was refused. Where that cannot
	 * be known (abort, limit, a collapsed CQ that shows a flush only): the first
	 * that is not known to be complete. */
	uint64_t error_wqe;
};

/* A snapshot, read while the GPU may be posting: each value is one that was
 * true at some time during the call. */
doca_error_t gdk_verbs_qp_get_counters(struct doca_gpu_verbs_qp *qp,
				       struct gdk_qp_counters *counters);

/* What an error CQE says, and the WQE that it names; numbers in CPU byte order. */
struct gdk_qp_error {
	bool has_error; /* the QP is in error, or has an error CQE */
	bool has_cqe;	/* false: all below but qpn is 0 */
	uint8_t syndrome, vendor_err_synd, hw_err_synd, hw_synd_type;
	uint8_t opcode;	      /* of the WQE, DOCA_GPUNETIO_IB_MLX5_OPCODE_* */
	bool has_remote;      /* the operation has a remote address, and its WQE still stands */
	uint16_t wqe_counter; /* index of the WQE, modulo 2^16 */
	uint32_t qpn;
	uint32_t rkey;
	uint64_t remote_addr;
};

/* More than doca_gpu_verbs_query_last_error. Both look through the whole CQ for the
 * first error that is no flush; a collapsed CQ keeps the last CQE only. */
doca_error_t gdk_verbs_qp_get_error(struct doca_gpu_verbs_qp *qp, struct gdk_qp_error *error);

/* A syndrome in words ("remote access error"; "?": none of that number), and
 * what is usually behind it. */
const char *gdk_syndrome_text(int syndrome);
const char *gdk_syndrome_cause(int syndrome);

/* The command to the NIC's firmware that was refused last in the calling thread. */
struct gdk_command_error {
	uint32_t opcode;		   /* 0: none was */
	uint32_t syndrome;		   /* the firmware's own number, for NVIDIA's support */
	int status;			   /* the firmware's; 0: the command did not reach it */
	int sys_err;			   /* errno of the driver, or 0 */
	const char *command, *status_text; /* "CREATE_QP"; NULL: none was */
	char object[96];		   /* "QP 0x1f (INIT to RTR)" */
};

/* A command that succeeds later does not clear it. */
doca_error_t gdk_get_command_error(struct gdk_command_error *error);

/*
 * Errors that the NIC tells of by itself. A CQ that overran completes nothing any
 * more, and its QPs are in error without a CQE: threads that wait end with
 * gdk_verbs_qp_abort, or when their limit has passed.
 */
enum gdk_event_kind {
	GDK_EVENT_CQ_ERROR = 0,	  /* syndrome 1: overrun, 2: its memory cannot be written */
	GDK_EVENT_QP_FATAL = 1,	  /* an error that no CQE can tell of */
	GDK_EVENT_QP_REQUEST = 2, /* the remote side sent what is not allowed here, */
	GDK_EVENT_QP_ACCESS = 3,  /* or reached for memory that it may not */
};

struct gdk_event {
	enum gdk_event_kind kind;
	uint32_t number;   /* of the CQ or QP, which may be gone by now */
	uint32_t syndrome; /* of GDK_EVENT_CQ_ERROR, 0 otherwise */
};

struct gdk_events; /* a channel */

/* net_dev cannot be closed before. NO_MEMORY; DRIVER, OPERATING_SYSTEM: refused. */
doca_error_t gdk_events_open(doca_dev_t *net_dev, struct gdk_events **events);
/* Objects that are watched need not be gone. */
doca_error_t gdk_events_close(struct gdk_events *events);
/* Readable (poll, epoll) while an event is there; it stays the channel's. */
doca_error_t gdk_events_get_fd(const struct gdk_events *events, int *fd);
/* Subscribes to all error events of the object that the device supports, until the object or the
 * channel is destroyed. NOT_SUPPORTED: the device supports none of them, or the object belongs to
 * the DOCA SDK. DRIVER: the driver failed. */
doca_error_t gdk_events_watch_cq(struct gdk_events *events, doca_verbs_cq_t *cq);
doca_error_t gdk_events_watch_qp(struct gdk_events *events, doca_verbs_qp_t *qp);
/* Takes the next event; AGAIN: there is none, it never blocks. */
doca_error_t gdk_events_get(struct gdk_events *events, struct gdk_event *event);
const char *gdk_event_text(enum gdk_event_kind kind);

/* Raises the QP's abort word: every wait on it, also one for a free slot, returns
 * -ECANCELED, and nothing more is rung. At any time, any thread. */
doca_error_t gdk_verbs_qp_abort(struct doca_gpu_verbs_qp *qp);

/* Takes the abort back, when no GPU thread uses the QP any more: what was rung
 * completes as if nothing had been, slots that could not be used are free again.
 * BAD_STATE: the QP ended otherwise, or a WQE was published behind a slot that
 * nobody published; it must be reset. */
doca_error_t gdk_verbs_qp_clear_abort(struct doca_gpu_verbs_qp *qp);

/* How long any one wait on the QP may last before it ends the QP with
 * -ETIMEDOUT; 0: for ever. 60 s from export on; kept over resets. */
doca_error_t gdk_verbs_qp_set_wait_limit(struct doca_gpu_verbs_qp *qp, uint64_t ns);

/*
 * A WQE or a CQE as text, for people:
 *
 *	WQE 5: RDMA_WRITE
 *	  ctrl opmod 0x0 wqe_index 5 opcode 0x8 qpn 0xabcd ds 3 signature 0x0 ...
 *	  raddr raddr 0x7f0012340000 rkey 0x12345
 *	  data byte_count 64 lkey 0x54321 addr 0x7f0043210000
 *
 * One line a segment (ctrl, raddr, atomic, wait, data, inline; raw when the size
 * does not fit the opcode), "name value" for each field, by its name in
 * common/doca_gpunetio_verbs_def.h and in CPU byte order. The first line of a
 * CQE says its kind; an error's last line is its syndrome, by number and name.
 * The text is cut to size bytes and ends in 0; the two functions without an
 * error return the length of the whole, as snprintf does. slots: how many of 64
 * bytes there are at wqe; a WQE has up to 16.
 * The same text in device code: gdk_print_wqe and gdk_print_cqe.
 */
size_t gdk_dump_wqe(char *buf, size_t size, const void *wqe, unsigned int slots);
size_t gdk_dump_cqe(char *buf, size_t size, const void *cqe);

/* What now stands in the slot of WQE index, or in the entry of CQE index, of an
 * exported QP; both count from export or reset. */
doca_error_t gdk_verbs_qp_dump_wqe(struct doca_gpu_verbs_qp *qp, uint64_t index, char *buf,
				   size_t size);
doca_error_t gdk_verbs_qp_dump_cqe(struct doca_gpu_verbs_qp *qp, uint64_t index, char *buf,
				   size_t size);

/* How a umem was registered with the NIC. */
enum gdk_umem_way {
	GDK_UMEM_HOST_MEMORY = 0,  /* host memory, by its address */
	GDK_UMEM_GIVEN_DMABUF = 1, /* through the caller's dmabuf */
	GDK_UMEM_DMABUF = 2,	   /* GPU memory, through a dmabuf of the default mapping type */
	GDK_UMEM_PEER_MEMORY = 3,  /* GPU memory, by its address: the kernel's peer memory */
};

#define GDK_UMEM_REASON_LEN 256

struct gdk_umem_registration {
	enum gdk_umem_way way;
	size_t page_size; /* the NIC's at most; rings begin on multiples of 1/64 of it */
	/* Why not the other way, of GDK_UMEM_DMABUF and GDK_UMEM_PEER_MEMORY; else empty. */
	char reason[GDK_UMEM_REASON_LEN];
};

/* How a umem was registered when it was created, also one of a high-level QP: its qp_umem,
 * cq_sq_umem, qp_umem_dbr. It never changes. NOT_SUPPORTED: the umem is one of the DOCA SDK. */
doca_error_t gdk_verbs_umem_get_registration(const doca_verbs_umem_t *umem,
					     struct gdk_umem_registration *registration);

/* As doca_gpu_get_dmabuf_fd, but of the PCIe mapping type, for data-direct MRs on machines
 * where GPU and NIC also share another bus; other MRs and umems want the default type, which
 * an ordinary function of a NIC can attach. NOT_SUPPORTED: GPU or driver has none, or the GPU
 * is one of the DOCA SDK. */
doca_error_t gdk_gpu_get_dmabuf_fd_pcie(doca_gpu_t *gpu_dev, void *memptr_gpu, size_t size,
					int *dmabuf_fd);

/* A bond of the NIC's ports. Where it spreads by queue, each QP is given a port in
 * turn at INIT. To choose it: gdk_verbs_qp_attr_set_lag_port, and this bit in the
 * attr_mask of the transition to INIT, or of RTS to RTS. */
#define GDK_VERBS_QP_ATTR_LAG_PORT (1 << 30)
struct gdk_qp_lag {
	uint8_t ports;	     /* of the bond; 0: the device knows none */
	bool active;	     /* the bond is in use */
	bool by_queue;	     /* false: it spreads by packet headers, or not at all */
	uint8_t port;	     /* the QP's, from 1; 0: the NIC chooses */
	uint8_t active_port; /* from which that one's packets leave now; 0: unknown */
};

/* 1 to the number of ports, or 0: the NIC chooses. */
doca_error_t gdk_verbs_qp_attr_set_lag_port(doca_verbs_qp_attr_t *attr, uint8_t port);
/* As the NIC reports it. */
doca_error_t gdk_verbs_qp_get_lag(doca_verbs_qp_t *qp, struct gdk_qp_lag *lag);

/* The requester requests an acknowledgement every 2^log packets: 0 every packet (the default, as
 * DOCA GPUNetIO and NVSHMEM), 8 every 256 (as the kernel and UCX, which costs less bandwidth). At
 * most 8. It takes effect with this bit in the attr_mask of the transition from RTR to RTS. */
#define GDK_VERBS_QP_ATTR_LOG_ACK_REQ_FREQ (1 << 29)
doca_error_t gdk_verbs_qp_attr_set_log_ack_req_freq(doca_verbs_qp_attr_t *attr, uint8_t log);

/* What attribute objects hold, above all after doca_verbs_qp_query: the setters' values, in
 * their units and codes. */
struct gdk_qp_attr {
	enum doca_verbs_qp_state next_state, current_state;
	enum doca_verbs_mtu_size path_mtu;
	uint32_t rq_psn, sq_psn, dest_qp_num;
	bool allow_remote_write, allow_remote_read;
	enum doca_verbs_qp_atomic_mode atomic_mode;
	uint16_t pkey_index, port_num;
	uint16_t ack_timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint8_t log_ack_req_freq;
	/* the path; all 0 when there is none */
	enum doca_verbs_addr_type addr_type;
	struct doca_verbs_gid gid; /* the remote side's */
	uint32_t dlid;
	uint8_t sl, sgid_index, static_rate, hop_limit, traffic_class;
};

struct gdk_qp_init_attr {
	doca_verbs_cq_t *send_cq, *receive_cq;
	struct doca_verbs_srq *srq;
	void *qp_context;
	uint32_t sq_wr, rq_wr; /* after a query: as granted, like the three below */
	uint32_t send_max_sges, receive_max_sges, max_inline_data;
	uint32_t user_index;
	bool sq_sig_all, core_direct_master;
	enum doca_verbs_qp_send_dbr_mode send_dbr_mode;
};

/* NOT_SUPPORTED: the object is one of the DOCA SDK. */
doca_error_t gdk_verbs_qp_attr_get(const doca_verbs_qp_attr_t *attr, struct gdk_qp_attr *values);
doca_error_t gdk_verbs_qp_init_attr_get(const doca_verbs_qp_init_attr_t *init_attr,
					struct gdk_qp_init_attr *values);

/* For the send_dbr_mode_ext field of doca_gpu_verbs_qp_init_attr_hl: no mode is
 * stated. With handler AUTO the library then takes a DBREC-less QP where the
 * device gives one, and a QP with DBREC where it does not. */
#define GDK_SEND_DBR_MODE_AUTO ((enum doca_gpu_verbs_send_dbr_mode_ext)3)

/* How the threads of a CPU proxy service run; 0 and NULL are the defaults, which
 * are also doca_gpu_verbs_create_service's. */
struct gdk_service_attr {
	uint32_t threads; /* 1 to 16; 0: GDAKI_PROXY_THREADS of the environment, or 1 */
	/* Thread i runs on the i-th CPU of this list ("2,4-7"). NULL: GDAKI_PROXY_CPUS,
	 * or any CPU of the NUMA node of the NIC whose QPs it serves. */
	const char *cpus;
	/* An idle thread spins, yields, then naps longer and longer: up to this, in
	 * microseconds. 0: GDAKI_PROXY_NAP_US, or 1000. It bounds how late a doorbell
	 * after a quiet time is rung, and how long the service's end takes. */
	uint32_t nap_max_us;
	uint32_t stall_ms; /* a thread that is late by this is a stall; 0: 100 */
};

/* INVALID_VALUE: more than 16 threads, or a list of CPUs that names none or one that
 * this process may not use. */
doca_error_t gdk_verbs_service_create(const struct gdk_service_attr *attr,
				      doca_gpu_verbs_service_t *out_service);

/* Takes a QP out of a CPU proxy service. When it returns, every index that the
 * GPU had raised before the call is rung, and the service no longer uses the
 * QP. Un-export and the service's destruction do this by themselves. */
doca_error_t gdk_verbs_service_unmonitor_qp(doca_gpu_verbs_service_t service,
					    struct doca_gpu_verbs_qp *qp);

/* What a service did since its creation; units: events, if not said otherwise. */
struct gdk_service_stats {
	uint64_t passes;       /* looks at all counters */
	uint64_t rings;	       /* register writes */
	uint64_t yields;       /* idle passes that gave the CPU away */
	uint64_t sleeps;       /* idle passes that slept */
	uint64_t stalls;       /* times a doorbell waited because a thread was late */
	uint64_t worst_gap_ns; /* the longest time between two passes of a thread of which
				* the second found a doorbell to ring */
	uint32_t threads;
	uint32_t late_threads; /* that should have made a pass by now */
	uint32_t qps;	       /* monitored now */
};

/* A snapshot, read while the threads run. */
doca_error_t gdk_verbs_service_get_stats(doca_gpu_verbs_service_t service,
					 struct gdk_service_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
