/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The software mlx5 NIC: the objects of the device model and the functions that its
 * two halves call in each other. The front (preload, sysfs, uverbs, firmware
 * commands) creates and destroys objects. The engine (register pages, send, receive,
 * completion, wire) serves the objects on one thread per process. front.h and eng.h
 * are private to one half each.
 *
 * Locking: sn_dev.lock protects every field unless its comment says otherwise. The
 * front takes it for each call, the engine for each pass. A thread that holds it
 * does not wait for threads of the program and does not call libibverbs.
 */
#ifndef SOFTNIC_H
#define SOFTNIC_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SN_UAR_SIZE 4096u
#define SN_MAX_UARS 4096u
#define SN_GONE_MAX 4096u
/* offset of page 0 in the device file; page i is i * 4096 bytes further on */
#define SN_UAR_FILE_OFF 0x900000ull

/* ---- configuration: read from the environment that softnic-run sets ---- */

/*
 * How the NIC treats a dmabuf that CUDA exported with the PCIe mapping type. It differs on machines
 * that also connect GPU and NIC by another bus than PCIe.
 * REFUSED: registration fails (nv-dmabuf.c of NVIDIA's open kernel modules).
 * FAULTS: registration succeeds, but DMA fails (UCX pull request 11571).
 * WORKS: registration and DMA succeed.
 */
enum sn_dmabuf_pcie { SN_PCIE_REFUSED, SN_PCIE_FAULTS, SN_PCIE_WORKS };

#define SN_ETH_PEERS_MAX 16u /* addresses in --eth-peers */

struct sn_cfg {
	struct in6_addr ip; /* this process's address; IPv4 as ::ffff:a.b.c.d */
	char name[32];	    /* name of the device, by default "mlx5_0" */
	char ndev[16];	    /* interface that has ip; empty: none */
	bool infiniband;    /* link layer of the port; false: Ethernet */
	/* the InfiniBand port requires a GRH; Ethernet always does */
	bool grh_required;
	char sysfs[256]; /* root of the generated sysfs tree */
	char pcap[256];	 /* file for captured packets; empty: none */
	/* folder for the JSON counters of each process; empty: none */
	char stats_dir[256];
	char evidence[256]; /* folder for the evidence (evidence.h); empty: none */
	char run[32];	    /* name of the run of softnic-run, in the JSON counters; empty: none */
	bool stats;	    /* print counters on stderr at exit */
	bool strict;	    /* the run fails if violations were counted */
	bool trace;	    /* trace commands, WQEs, packets, CQEs */
	/* retries and grants run out by time alone, whether or not the peer's NIC runs */
	bool card_timers;
	/* dmabufs can be registered: recorded CUDA exports, and others that mmap accepts */
	bool dmabuf;
	enum sn_dmabuf_pcie dmabuf_pcie; /* treatment of dmabufs of the PCIe mapping type */
	bool no_peermem;		 /* GPU memory cannot be registered by its address */
	bool dbrec_only;		 /* QPs with DBREC: read it, ignore the doorbell's index */
	bool no_dbr_cap;		 /* DBREC-less QPs are supported (default true) */
	uint32_t no_dbr_max;		 /* maximum number of DBREC-less QPs; 0: no limit */
	uint32_t fail_cmd_nth;		 /* the n-th firmware command fails; 0: none */
	uint8_t fail_cmd_status;	 /* status that the failed command returns */
	uint32_t fail_cmd_syndrome;	 /* syndrome that it returns */
	uint32_t fail_ioctl_nth;	 /* the n-th uverbs call fails with ENOMEM; 0: none */
	uint64_t seed;			 /* seed of all random faults */
	/* probabilities of faults per packet sent, in 1/1000000; delay of each packet sent, us */
	uint32_t loss_ppm, dup_ppm, reorder_ppm, corrupt_ppm, delay_us;
	uint32_t stall_us, stall_every_us; /* length and period of stalls; 0: none */
	/* active path MTU in bytes, 256 to 4096, fits the frames of ndev */
	uint32_t mtu;
	/* a QP goes to error after it completed this many send WQEs; 0: never */
	uint32_t err_after;
	uint16_t vlan;	   /* VLAN of the GIDs made from IP addresses; 0: none */
	uint8_t lag_ports; /* number of ports of the bond that the port represents; 0: no bond */
	bool lag_hash;	   /* the bond spreads by packet headers, not by QP */
	/* the kernel's page size, 4096 to 65536; one mapping of UARs has this size */
	uint32_t page_size;
	bool whole_pages;  /* the kernel uses no umem page smaller than its own page */
	bool lag_inactive; /* the ports could form a bond, but none is active (as with ECMP) */
	bool lag_init2;	   /* INIT2INIT and INIT2RTR may set the QP's port of the bond */
	bool query_lag;	   /* QUERY_LAG is supported; false: it fails */
	bool vf;	   /* the device is a virtual function, which does not own the bond */
	bool cd;	   /* core direct is supported: WAIT, master and slave queues */
	uint8_t dma;	   /* SN_DMA_*: which queue pairs may use the copy engine */
	uint8_t dma_max;   /* log2 of the largest copy's bytes */
	uint8_t ts_format; /* SN_TS_*, format of the device's time stamps */
	/* the capability lists `events`, and only these and completions can be subscribed */
	bool event_cap;
	uint64_t events;     /* bit i: event type i is supported */
	uint32_t qp_max;     /* maximum number of QPs; 0: no limit */
	uint32_t cq_behind;  /* QUERY_CQ reports this many CQEs less than were written */
	uint16_t pci_device; /* PCI device ID */
	/* raw Ethernet: where broadcasts and frames to unknown addresses go */
	struct in6_addr eth_peers[SN_ETH_PEERS_MAX];
	unsigned eth_npeers;
	char eth_if[16];   /* interface that carries the frames; empty: VXLAN */
	bool eth_pause;	   /* lossless flow control between software NICs */
	bool wait_on_time; /* the device supports WAIT on time */
	uint32_t eth_mtu;  /* MTU of the port: payload of the largest frame */
	uint32_t eth_vni;  /* VXLAN network identifier, 24 bits */
	char fw_ver[24];
};

/*
 * Capabilities dma_mmo_sq and dma_mmo_qp (mlx5_ifc.h of rdma-core 44). SN_DMA_SQ: every RC queue
 * pair may use the engine. SN_DMA_QP: those that were given the permission `mmo`.
 */
enum { SN_DMA_NONE = 0, SN_DMA_SQ = 1, SN_DMA_QP = 2 };

/* Capability qp_ts_format of mlx5_ifc.h: the time stamp formats that the device supports. */
enum { SN_TS_FREE = 0, SN_TS_REAL = 1, SN_TS_BOTH = 2 };

/* clang-format off */
/* ---- counters: X(name, strict); strict counters count violations ---- */
#define SN_STATS(X)                                                                       \
	X(commands, 0) X(commands_failed, 0) X(doorbells, 0) X(blueflame, 0)              \
	X(db_recovered, 0) X(db_forced, 0) X(wqes, 0) X(cqes, 0) X(error_cqes, 0)         \
	X(tx_packets, 0) X(tx_bytes, 0) X(rx_packets, 0) X(rx_bytes, 0) X(retransmits, 0) \
	X(timeouts, 0) X(probes, 0) X(stalls, 0) X(dropped_messages, 0)                   \
	X(pkey_violations, 0) X(qkey_violations, 0) X(inline_cqes, 0) X(dma_copies, 0)    \
	X(dma_bytes, 0)                                                                   \
	X(naks_sent, 0) X(naks_received, 0) X(dup_requests, 0) X(faults_injected, 0)      \
	X(icrc_errors, 0) X(icrc_unchecked, 0) X(wire_malformed, 0) X(remote_access_errors, 0) \
	X(local_prot_errors, 0) X(flushed, 0)                                             \
	X(eth_tx_frames, 0) X(eth_tx_bytes, 0) X(eth_egress_dropped, 0) X(eth_no_peer, 0) \
	X(eth_tx_copies, 0) X(eth_tx_lost, 0) X(eth_tx_duplicated, 0) X(eth_tx_failed, 0) \
	X(eth_rx_frames, 0) X(eth_rx_bytes, 0) X(eth_malformed, 0) X(eth_fcs_errors, 0)   \
	X(eth_no_rule, 0) X(eth_rule_dropped, 0) X(eth_out_of_buffer, 0)                  \
	X(eth_not_ready, 0) X(eth_too_long, 0) X(eth_rx_faults, 0) X(eth_delivered, 0)    \
	X(eth_held, 0) X(eth_other_vni, 0) X(eth_rx_missed, 0)                            \
	X(bad_command, 1) X(bad_reserved, 1) X(bad_opcode, 1) X(bad_doorbell, 1)          \
	X(db_unwritten_wqe, 1) X(cq_overrun, 1) X(gpu_copy_errors, 1)

struct sn_stats {
#define SN_STAT_FIELD(n, strict) uint64_t n;
	SN_STATS(SN_STAT_FIELD)
#undef SN_STAT_FIELD
};

/* Counters that are kept for each queue pair as well as for the device. */
#define SN_QP_STATS(X)                                                                 \
	X(doorbells) X(blueflame) X(db_recovered) X(db_forced) X(wqes) X(cqes)         \
	X(error_cqes) X(tx_packets) X(tx_bytes) X(rx_packets) X(rx_bytes)              \
	X(retransmits) X(timeouts) X(probes) X(dropped_messages) X(naks_sent)          \
	X(naks_received) X(dup_requests)                                               \
	X(inline_cqes) X(dma_copies) X(dma_bytes) X(flushed)                            \
	X(remote_access_errors) X(local_prot_errors)
/* clang-format on */

struct sn_qp_stats {
#define SN_STAT_FIELD(n) uint64_t n;
	SN_QP_STATS(SN_STAT_FIELD)
#undef SN_STAT_FIELD
};

/* ---- objects ---- */
enum sn_kind {
	SN_PD = 1,
	SN_MR,
	SN_UMEM,
	SN_UAR,
	SN_CQ,
	SN_QP,
	SN_AH,
	SN_SRQ,
	SN_MKEY,
	/* raw Ethernet, see eth.h */
	SN_TD,
	SN_TIS,
	SN_SQ,
	SN_RQ, /* created by DEVX */
	SN_WQ, /* an RQ that verbs created */
	SN_RQT,
	SN_TIR,
	SN_COUNTER_SET,
	SN_FLOW_COUNTER,
	SN_RAW,	      /* a raw packet QP or RSS QP of verbs */
	SN_IND_TABLE, /* a table of RQs that verbs created */
	SN_MATCHER,   /* DV flow matcher */
	SN_RULE,      /* flow rule */
	SN_COUNTERS,  /* counters object of verbs */
	SN_PART,      /* of SN_RAW, SN_IND_TABLE or the context; not found by its handle */
	SN_COMP_CHANNEL,
	SN_ASYNC,
	SN_DEVX_EVENTS,
	SN_DEVX_OUTPUTS, /* SN_COMP_CHANNEL and all after it are event queues */
};

struct sn_ctx; /* one open of the device file; owns objects; private to the front */

struct sn_pd {
	uint32_t handle, pdn;
	int users;
};

/* Where a dmabuf is mapped in this process. */
struct sn_mapping {
	void *base; /* NULL: not mapped */
	size_t len;
};

/*
 * The translation of an indirect key (KSM): pieces of 1 << log_size bytes, one after another
 * from the key's iova on. Each piece names another key and an address. A piece may extend
 * beyond the region of that key, and the region may have been deregistered: each access checks
 * this.
 */
struct sn_ksm {
	uint8_t log_size;
	bool local_read;
	bool relaxed_write, relaxed_read; /* relaxed ordering is allowed; the NIC does not use it */
	uint32_t n;
	struct {
		uint64_t addr;
		uint32_t key;
	} piece[];
};

/* Access rights are the IBV_ACCESS_* bits. */
struct sn_mr {
	uint32_t handle, lkey, rkey, pdn, access;
	uint64_t va;   /* address of the first byte in this process, of CPU or GPU memory */
	uint64_t iova; /* the same byte's address in WQEs and in requests of peers */
	uint64_t len;
	bool gpu;    /* va is GPU memory, accessed by copies of the CUDA driver */
	bool dmabuf; /* registered by file descriptor */
	struct sn_mapping map;
	/* set for an indirect key, which has no va, gpu and map; NULL: a region */
	struct sn_ksm *ksm;
};

struct sn_umem {
	uint32_t handle, id;
	uint64_t va, len;
	uint64_t page, first; /* page size; offset of va in the first page */
	uint32_t access;
	struct sn_mapping map;
	int users;
};

/* One register page (UAR). The UARs of one mapping are consecutive in sn_dev.uars, and the
 * first one has the handle. */
struct sn_uar {
	uint32_t handle, id; /* id: page number in the device file */
	uint8_t *page;	     /* the NIC's mapping; stores of CPU and GPU to the page appear here */
	bool used;
	int users;
};

/* Arm word of a CQ with a channel before its first arm. Not 0: the first arm may store 0, and the
 * word must then change. */
#define SN_ARM_NONE 0xffffffffu

/* Syndromes of a CQ error event (mlx5_ifc.h) */
enum { SN_CQ_OVERRUN = 1, SN_CQ_ACCESS = 2 };

struct sn_cq {
	uint32_t handle, cqn;
	uint64_t buf;	  /* address of entry 0 */
	uint64_t dbr;	  /* address of {consumer index, arm word}, big-endian */
	uint8_t log_size; /* log2 of the number of entries */
	uint8_t cqe_size; /* 64 or 128 */
	bool oi;	  /* ignore overrun */
	bool cc;	  /* collapsed: only entry 0 is written */
	bool devx;
	bool stamped, real_time; /* verbs: time stamps were requested; in the real-time format */
	uint8_t error;		 /* SN_CQ_*: no CQE is written any more; 0: none */
	bool armed, armed_solicited;
	uint32_t arm_ci;
	uint64_t notified; /* pi at the last event; a new event needs a newer CQE */
	/* An armed CQ sends its event after mod_count CQEs, or mod_period us after the first one.
	 * If either is 0, it sends the event at once. */
	uint16_t mod_count, mod_period;
	bool subscribed; /* a DEVX event channel is subscribed to its completions */
	uint64_t user_handle;
	struct sn_event_queue *channel; /* completion channel or NULL */
	struct sn_event_queue *async;
	uint32_t uar, eqn;
	uint64_t pi;			    /* CQEs written since creation */
	uint32_t comp_events, async_events; /* events written to the event files (front) */
	struct sn_umem *umems[2];	    /* umems of ring and DBREC if created by DEVX (front) */
	int users;
	struct sn_cq_eng *eng; /* the engine's state, NULL before sn_eng_cq_add() */
};

enum sn_qp_state {
	SN_QPS_RST,
	SN_QPS_INIT,
	SN_QPS_RTR,
	SN_QPS_RTS,
	SN_QPS_SQER,
	SN_QPS_SQD,
	SN_QPS_ERR
};
/* The first three are as st in the QPC. SQ and RQ: queues of Ethernet frames, see eth.h. */
enum sn_qp_type {
	SN_QPT_RC = 0,
	SN_QPT_UC = 1,
	SN_QPT_UD = 2,
	SN_QPT_SQ,
	SN_QPT_RQ,
};

/* A shared receive queue: created by libibverbs, or an RMP created by a firmware command. */
struct sn_srq {
	uint32_t handle, srqn, pdn;
	uint64_t buf; /* address of entry 0 */
	uint64_t dbr; /* address of the count of posted WQEs, big-endian */
	/* number of entries (a power of two); log2 of an entry's bytes */
	uint32_t wqe_cnt, wqe_shift;
	bool cyclic; /* entries are used in ring order; false: linked by next_wqe_index */
	bool basic;  /* entries have no next segment, only data segments */
	bool devx, gpu, dbr_gpu;
	uint32_t max_wr, max_sge;
	uint32_t limit; /* send an event when fewer WQEs are left; 0: not armed */
	uint64_t user_handle;
	struct sn_event_queue *async;
	uint32_t async_events;	  /* events written to the event file (front) */
	struct sn_umem *umems[2]; /* umems of ring and DBREC if created by DEVX (front) */
	uint32_t next;		  /* next WQE of the linked list */
	uint32_t consumed;
	int users;
};

/* Destination port, as in an address vector. */
struct sn_dest {
	uint8_t dgid[16], sgid_index;
	bool grh;      /* dgid and sgid_index are valid */
	uint16_t dlid; /* InfiniBand only */
};

/* How packets reach another port: its address and the fields of the IP and UDP headers. */
struct sn_way {
	struct in6_addr ip;	   /* unspecified: unreachable */
	uint16_t sport;		   /* UDP source port; 0: 4791 */
	uint8_t tclass, hop_limit; /* hop limit 0: 64 */
	uint16_t tci;		   /* VLAN tag: priority << 13 | VLAN; 0: none */
};

struct sn_qp {
	uint32_t handle, qpn, pdn;
	enum sn_qp_type type;
	enum sn_qp_state state;
	bool devx;
	uint64_t sq_buf, rq_buf;     /* addresses of the rings */
	uint32_t sq_wqebbs;	     /* blocks of 64 bytes, a power of two; 0: no send queue */
	uint32_t rq_wqes, rq_stride; /* entries (a power of two), bytes per entry */
	/* address of the DBREC: word 0 is the receive index, word 1 the send index; big-endian */
	uint64_t dbr;
	bool no_dbr; /* DBREC-less: posts without storing the send index in a DBREC */
	bool sig_all;
	uint32_t uar; /* page on which its doorbells arrive */
	uint32_t uidx;
	uint64_t user_handle;
	struct sn_cq *scq, *rcq;
	struct sn_srq *srq;
	struct sn_event_queue *async;
	uint32_t async_events;	  /* events written to the event file (front) */
	struct sn_umem *umems[2]; /* umems of ring and DBREC if created by DEVX (front) */
	bool cd_master;
	/* permission to use the copy engine; mmo_created: given at creation, kept by a reset */
	bool mmo, mmo_created;
	/* Bytes of received data that a CQE may hold instead of memory: 0, 32, or 64 in a CQE of
	 * 128 bytes. Of the receive queue; of responses to READs and atomics. */
	uint8_t inline_recv, inline_send;

	/* address vector and transport attributes, host byte order */
	uint8_t port, path_mtu;		/* path_mtu: IB encoding, 1 to 5 */
	uint8_t sl;			/* service level of InfiniBand, or priority of Ethernet */
	uint8_t stat_rate, atomic_mode; /* as encoded in the QPC */
	uint8_t tclass;			/* as in the address path; packets carry way.tclass */
	uint8_t ts_format;		/* as encoded in the QPC */
	uint8_t log_ack_req_freq;	/* stored and returned by queries, without effect */
	uint8_t lag_port; /* lag_tx_port_affinity, counted from 1; 0: the NIC chooses */
	struct sn_dest dest;
	uint8_t dmac[6];
	struct sn_way way; /* how packets reach dest */
	uint16_t pkey_index;
	uint32_t dest_qpn, sq_psn, rq_psn, qkey, flow_label;
	uint8_t retry_cnt, rnr_retry, ack_timeout, min_rnr_timer;
	uint8_t max_rd_atomic, max_dest_rd_atomic; /* plain numbers, not logarithms */
	bool remote_write, remote_read, remote_atomic;
	bool sqd_event; /* an SQ_DRAINED event was requested */
	uint32_t ece;	/* enhanced connection establishment, see SN_ECE_OPTIONS */

	struct sn_eth *eth; /* set for SQs and RQs only, see eth.h */
	struct sn_qp_stats stats;
	/* of the last error CQE other than a flush; synd 0: none */
	struct {
		uint8_t synd, vendor;
		uint16_t counter;
	} last_error;
	struct sn_qp_eng *eng; /* the engine's state, NULL before sn_eng_qp_add() */
};

/* The counters of a destroyed queue pair, kept for the report. */
struct sn_qp_record {
	uint32_t qpn, dest_qpn;
	enum sn_qp_type type;
	struct sn_qp_stats stats;
};

/* The core clock page of an open context: 8 bytes with the free-running device time, big-endian.
 * The NIC thread stores the time in each pass, so it is at most one sleep old. */
struct sn_clock {
	struct sn_clock *next;
	uint64_t *time;
};

struct sn_dev {
	pthread_mutex_t lock;
	int waiting; /* atomic: program threads that wait for the lock, see sn_dev_lock() */
	struct sn_cfg cfg;
	struct sn_stats stats;
	int memfd; /* memfd of the newest open of /dev/infiniband/uverbs0 */
	struct sn_uar uars[SN_MAX_UARS];
	/* the first SN_GONE_MAX destroyed queue pairs that had traffic */
	struct sn_qp_record *gone;
	uint32_t ngone, gone_unlisted;
	struct sn_eth_gone *eth_gone; /* destroyed SQs, RQs and rules, see stats_eth.c */
	struct sn_front *front;	      /* object tables and handles */
	struct sn_eng *eng;
	struct sn_clock *clocks; /* of all open contexts */
	struct sn_rule *rules;	 /* flow rules in ascending order, see eth.h */
	/* updates the evidence; the NIC thread calls it in each pass; NULL: not requested */
	void (*snapshot)(struct sn_dev *dev, uint64_t now);
};

/* The device of this process. The front creates it at the first open. */
extern struct sn_dev *sn_dev;

/* Takes the device lock in a thread of the program. */
void sn_dev_lock(struct sn_dev *dev);
/* Waits a limited time only. Returns whether the lock was taken. */
bool sn_dev_lock_at_exit(struct sn_dev *dev);

/* ---- implemented by the front, called by the engine (lock held) ---- */
struct sn_qp *sn_find_qp(struct sn_dev *dev, uint32_t qpn);
struct sn_cq *sn_find_cq(struct sn_dev *dev, uint32_t cqn);
/* Finds the region or indirect key whose lkey (equal to its rkey) is exactly `key`; NULL: none. */
struct sn_mr *sn_find_mr(struct sn_dev *dev, uint32_t key);
void sn_for_each_qp(struct sn_dev *dev, void (*fn)(struct sn_qp *qp, void *arg), void *arg);
void sn_event_completion(struct sn_dev *dev, struct sn_cq *cq);
/* values of enum ibv_event_type */
enum sn_async {
	SN_ASYNC_CQ_ERR = 0,
	SN_ASYNC_QP_FATAL = 1,
	SN_ASYNC_QP_REQ_ERR = 2,
	SN_ASYNC_QP_ACCESS_ERR = 3,
	SN_ASYNC_COMM_EST = 4,
	SN_ASYNC_SQ_DRAINED = 5,
	SN_ASYNC_SRQ_LIMIT = 15,
	SN_ASYNC_LAST_WQE = 16,
	SN_ASYNC_WQ_FATAL = 19,
};
void sn_event_async_qp(struct sn_dev *dev, struct sn_qp *qp, int ibv_event_type);
void sn_event_async_srq(struct sn_dev *dev, struct sn_srq *srq, int ibv_event_type);
void sn_event_async_cq(struct sn_dev *dev, struct sn_cq *cq, int ibv_event_type);

/* ---- implemented by the engine, called by the front (lock held) ---- */
int sn_eng_start(struct sn_dev *dev);	 /* opens the socket and starts the thread; 0 or -errno */
void sn_eng_stop(struct sn_dev *dev);	 /* joins the thread; lock not held */
void sn_eng_kick(struct sn_dev *dev);	 /* wakes the thread after a change */
int sn_eng_eth_open(struct sn_dev *dev); /* opens the Ethernet port at first use; 0 or -errno */
int sn_eng_qp_add(struct sn_dev *dev, struct sn_qp *qp);
/* After this call the engine does not access the queue pair's memory. */
void sn_eng_qp_remove(struct sn_dev *dev, struct sn_qp *qp);
/* Call it after the new state and attributes were stored in *qp. */
void sn_eng_qp_state(struct sn_dev *dev, struct sn_qp *qp, enum sn_qp_state from);
/* Returns what QUERY_QP reports: next send PSN, next receive PSN, hardware SQ counter. */
void sn_eng_qp_query(struct sn_qp *qp, uint32_t *sq_psn, uint32_t *rq_psn, uint16_t *sq_ci);
bool sn_eng_qp_draining(const struct sn_qp *qp); /* in SQD, with unfinished messages */
void sn_eng_cq_add(struct sn_dev *dev, struct sn_cq *cq);
/* Writes a resize CQE to the old ring and continues in the new one. -EINVAL: the new ring is not
 * readable or cannot hold the unread CQEs, or the CQ is in error. */
int sn_eng_cq_resize(struct sn_dev *dev, struct sn_cq *cq, uint64_t buf, uint8_t log_size);
void sn_eng_cq_moderate(struct sn_dev *dev, struct sn_cq *cq, uint16_t count, uint16_t period);
void sn_eng_cq_remove(struct sn_dev *dev, struct sn_cq *cq);
/* True if len is not 0 and va is memory of a GPU, other than managed memory. Queries only a CUDA
 * driver that the program has loaded. */
bool sn_mem_is_gpu(uint64_t va, uint64_t len);
/* True if the whole range is mapped and readable host memory, or len is 0. */
bool sn_mem_readable(uint64_t va, uint64_t len);
int sn_mem_read(bool gpu, uint64_t va, void *dst, size_t len); /* 0 or -EFAULT */
int sn_mem_write(bool gpu, uint64_t va, const void *src, size_t len);
/* Writes by key, see eng.h. Returns 0 or -EFAULT. */
int sn_mr_write(struct sn_dev *dev, uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len,
		uint32_t access, const void *src);
bool sn_mem_writable(uint64_t va, uint64_t len); /* every mapping in the range is writable */

/* ---- addr.c: address computation, for both halves ---- */
/* Compute the address of the port with a GID or LID. A link-local GID or a LID belongs to a port in
 * the same network as `own`. false: no port can have it. */
bool sn_addr_of_gid(const struct in6_addr *own, const uint8_t gid[16], struct in6_addr *ip);
bool sn_addr_of_lid(const struct in6_addr *own, uint16_t lid, struct in6_addr *ip);
/* Finds the address of a destination. Returns 0, -EINVAL: incomplete address vector,
 * -EHOSTUNREACH: no such port. */
int sn_dest_find(const struct sn_cfg *cfg, const struct sn_dest *dest, struct in6_addr *ip);
/* The VLAN tag (priority and VLAN) of packets that are sent from a GID; 0: none. */
uint16_t sn_vlan_tci(const struct sn_cfg *cfg, uint32_t sgid_index, uint8_t prio);
struct sn_gid {
	uint8_t raw[16];
	bool v2; /* RoCE version 2; false: version 1 or InfiniBand */
};
/* Returns an entry of the GID table, in the kernel's order. RoCE: link-local, then the address,
 * each as version 1 and version 2; InfiniBand: link-local only. False: the entry is empty. */
bool sn_gid_at(const struct sn_cfg *cfg, uint32_t index, struct sn_gid *gid);
void sn_mac_of_ip(const struct in6_addr *ip, uint8_t mac[6]);
void sn_link_local(const struct in6_addr *ip, uint8_t gid[16]);
uint16_t sn_lid_of_ip(const struct in6_addr *ip);
void sn_addr_text(const struct in6_addr *ip, char text[INET6_ADDRSTRLEN]);
static inline bool sn_addr_same(const struct in6_addr *a, const struct in6_addr *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* ---- shared functions ---- */
/* cfg.c (front); replaces invalid values by the defaults, reports them and returns false */
bool sn_cfg_from_env(struct sn_cfg *cfg);
/* message.c; writes "softnic[PID]: ", the message and '\n' on standard error */
void sn_message(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* trace.c; writes a line if cfg.trace is set */
void sn_trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* stats.c: increments the counter; prints the first violation of each kind; with cfg.trace, all */
void sn_violation(uint64_t *counter, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sn_stats_report(struct sn_dev *dev); /* stats.c: text and JSON, if configured */
void sn_stats_qp_gone(struct sn_dev *dev, const struct sn_qp *qp);

#endif
