/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The software mlx5 NIC: objects of the device model and the seams between
 * its parts. The front (preload, sysfs, uverbs, firmware commands) creates and
 * destroys objects; the engine (register pages, send, receive, completion,
 * wire) executes them on one thread per process.
 *
 * Locking: every field is protected by sn_dev.lock unless its comment says
 * otherwise. The front takes it for each call, the engine for each pass; nobody
 * blocks or makes a call of libibverbs while holding it.
 */
#ifndef SOFTNIC_H
#define SOFTNIC_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SN_UAR_SIZE	4096u
#define SN_MAX_UARS	4096u
#define SN_GONE_MAX	4096u
#define SN_UAR_FILE_OFF 0x900000ull /* page i of the device file: this + i * 4096 */

/* ---- configuration: from the environment that softnic-run sets ---- */

/*
 * What a dmabuf of the PCIe mapping type does where GPU and NIC share another bus, too. An
 * ordinary function of the NIC cannot attach it (nv-dmabuf.c of NVIDIA's open kernel
 * modules), or registers it and its DMA fails (UCX pull request 11571).
 */
enum sn_dmabuf_pcie { SN_PCIE_REFUSED, SN_PCIE_FAULTS, SN_PCIE_WORKS };

struct sn_cfg {
	struct in6_addr ip;		 /* this process's address; of IPv4: ::ffff:a.b.c.d */
	char name[32];			 /* "mlx5_0" */
	char ndev[16];			 /* interface that has ip; empty: none has */
	bool infiniband;		 /* link layer of the port, otherwise Ethernet */
	bool grh_required;		 /* of an InfiniBand port; Ethernet always needs one */
	char sysfs[256];		 /* root of the generated tree */
	char pcap[256];			 /* capture of the wire; empty: none */
	char stats_dir[256];		 /* per-process JSON at exit; empty: none */
	bool stats;			 /* text on stderr at exit */
	bool strict;			 /* counted violations are a failure at exit */
	bool trace;			 /* commands and WQEs, readable, on stderr */
	bool dmabuf;			 /* file descriptors are registered if they can be mapped */
	enum sn_dmabuf_pcie dmabuf_pcie; /* those of the PCIe mapping type */
	bool no_peermem;		 /* GPU memory is not registered by its address */
	bool dbrec_only;		 /* doorbell values are ignored, DBREC word 1 is read */
	bool no_dbr_cap;		 /* DBREC-less QPs are offered (default true) */
	uint32_t no_dbr_max;		 /* so many of them at most; 0: no limit */
	uint32_t fail_cmd_nth;	 /* the n-th firmware command of the process fails; 0: none */
	uint8_t fail_cmd_status; /* with this status */
	uint32_t fail_cmd_syndrome;
	uint32_t fail_ioctl_nth; /* the n-th uverbs call fails with ENOMEM */
	uint64_t seed;		 /* of all random misbehaviour */
	uint32_t loss_ppm, dup_ppm, reorder_ppm, corrupt_ppm, delay_us;
	uint32_t stall_us, stall_every_us; /* it stands still so long of each period */
	uint32_t mtu;			   /* active path MTU in bytes, 256 to 4096, fits ndev's */
	uint32_t err_after;		   /* a QP goes to error after so many messages; 0: never */
	uint16_t vlan;	     /* the GIDs of IP addresses are on this VLAN; 0: on none */
	uint8_t lag_ports;   /* of the bond that the port is; 0: it is none */
	bool lag_hash;	     /* the bond spreads by packet headers, not by QP */
	uint32_t page_size;  /* of the kernel, 4096 to 65536: so many bytes of UARs a mapping */
	bool whole_pages;    /* the kernel chooses no umem page that is smaller than its own */
	bool lag_inactive;   /* the ports could be a bond and are none, as under ECMP */
	bool lag_init2;	     /* a QP's port may change from INIT on */
	bool query_lag;	     /* QUERY_LAG is answered */
	bool vf;	     /* a virtual function, which does not own the bond */
	bool cd;	     /* core direct: WAIT, and queues of a master or slave */
	uint8_t ts_format;   /* SN_TS_*, of the device's time stamps */
	bool event_cap;	     /* the events below are announced, and no others subscribed */
	uint64_t events;     /* bit i: event type i */
	uint32_t qp_max;     /* so many QPs at most; 0: any */
	uint32_t cq_behind;  /* QUERY_CQ counts so many CQEs less than were written */
	uint16_t pci_device; /* PCI device ID */
	char fw_ver[24];
};

/* Capability qp_ts_format, mlx5_ifc.h: formats that the device gives. */
enum { SN_TS_FREE = 0, SN_TS_REAL = 1, SN_TS_BOTH = 2 };

/* clang-format off */
/* ---- counters: X(name, strict) ; strict ones are violations ---- */
#define SN_STATS(X)                                                                       \
	X(commands, 0) X(commands_failed, 0) X(doorbells, 0) X(blueflame, 0)              \
	X(db_recovered, 0) X(wqes, 0) X(cqes, 0) X(error_cqes, 0) X(tx_packets, 0)        \
	X(tx_bytes, 0) X(rx_packets, 0) X(rx_bytes, 0) X(retransmits, 0) X(timeouts, 0)   \
	X(probes, 0) X(stalls, 0) X(dropped_messages, 0) X(pkey_violations, 0)            \
	X(qkey_violations, 0)                                                             \
	X(naks_sent, 0) X(naks_received, 0) X(dup_requests, 0) X(faults_injected, 0)      \
	X(icrc_errors, 0) X(icrc_unchecked, 0) X(wire_malformed, 0) X(remote_access_errors, 0) \
	X(local_prot_errors, 0) X(flushed, 0)                                             \
	X(bad_command, 1) X(bad_reserved, 1) X(bad_opcode, 1) X(bad_doorbell, 1)          \
	X(db_unwritten_wqe, 1) X(cq_overrun, 1) X(gpu_copy_errors, 1)

struct sn_stats {
#define SN_STAT_FIELD(n, strict) uint64_t n;
	SN_STATS(SN_STAT_FIELD)
#undef SN_STAT_FIELD
};

/* Those that are also counted per queue pair. */
#define SN_QP_STATS(X)                                                                 \
	X(doorbells) X(blueflame) X(db_recovered) X(wqes) X(cqes) X(error_cqes)        \
	X(tx_packets) X(tx_bytes) X(rx_packets) X(rx_bytes) X(retransmits) X(timeouts) \
	X(probes) X(dropped_messages) X(naks_sent) X(naks_received) X(dup_requests)    \
	X(flushed) X(remote_access_errors) X(local_prot_errors)
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
	SN_COMP_CHANNEL,
	SN_ASYNC,
	SN_DEVX_EVENTS,
	SN_DEVX_OUTPUTS, /* from SN_COMP_CHANNEL on: event queues */
};

struct sn_ctx; /* one open of the device file: owns objects, private to the front */

struct sn_pd {
	uint32_t handle, pdn;
	int users;
};

/* A dmabuf's pages in this process. */
struct sn_mapping {
	void *base; /* NULL: none */
	size_t len;
};

/*
 * What an indirect key (KSM) stands for: pieces of 1 << log_size bytes, one after another
 * from the key's iova on, each by another key and the address there. A piece may reach
 * beyond that region, and the region may be gone: what counts is asked at each access.
 */
struct sn_ksm {
	uint8_t log_size;
	bool local_read;
	bool relaxed_write, relaxed_read; /* allowed; nothing is reordered here */
	uint32_t n;
	struct {
		uint64_t addr;
		uint32_t key;
	} piece[];
};

/* Access rights are the IBV_ACCESS_* bits. */
struct sn_mr {
	uint32_t handle, lkey, rkey, pdn, access;
	uint64_t va;   /* address of the first byte in this process (CPU or GPU) */
	uint64_t iova; /* the address that WQEs and peers use for it */
	uint64_t len;
	bool gpu;    /* va is GPU memory: reached by driver copies */
	bool dmabuf; /* registered by descriptor */
	struct sn_mapping map;
	struct sn_ksm *ksm; /* an indirect key, without va, gpu and map; NULL: memory */
};

struct sn_umem {
	uint32_t handle, id;
	uint64_t va, len;
	uint64_t page, first; /* size of its pages; where in the first it begins */
	uint32_t access;
	struct sn_mapping map;
	int users;
};

/* One register page. Those of one mapping follow each other in sn_dev.uars; the first has
 * the handle. */
struct sn_uar {
	uint32_t handle, id; /* id is the page number i in the device file */
	uint8_t *page;	     /* NIC's mapping; stores of the CPU and the GPU arrive here */
	bool used;
	int users;
};

/* What a CQ with a channel has in its arm word before the first arm, which may be 0. */
#define SN_ARM_NONE 0xffffffffu

/* Syndromes of a CQ's error event, mlx5_ifc.h */
enum { SN_CQ_OVERRUN = 1, SN_CQ_ACCESS = 2 };

struct sn_cq {
	uint32_t handle, cqn;
	uint64_t buf;	  /* VA of entry 0 */
	uint64_t dbr;	  /* VA of {consumer index, arm word}, big-endian */
	uint8_t log_size; /* entries */
	uint8_t cqe_size; /* 64 or 128 */
	bool oi;	  /* overrun ignored */
	bool cc;	  /* collapsed */
	bool devx;
	uint8_t error; /* SN_CQ_*, nothing is written any more; 0: none */
	bool armed, armed_solicited;
	uint32_t arm_ci;
	uint64_t notified; /* pi at the last event: CQEs up to it make no other */
	/* an event for so many CQEs, or so many microseconds after the first; 0: at once */
	uint16_t mod_count, mod_period;
	bool subscribed; /* a DEVX event channel wants its completions */
	uint64_t user_handle;
	struct sn_event_queue *channel; /* completion channel or NULL */
	struct sn_event_queue *async;
	uint32_t uar, eqn;
	uint64_t pi;			    /* CQEs written since creation */
	uint32_t comp_events, async_events; /* put into the event files (front) */
	struct sn_umem *umems[2];	    /* of a DEVX object: ring, DBREC (front) */
	int users;
	struct sn_cq_eng *eng; /* the engine's own state, NULL before sn_eng_cq_add */
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
enum sn_qp_type { SN_QPT_RC = 0, SN_QPT_UC = 1, SN_QPT_UD = 2 }; /* as QPC st */

/* A shared receive queue: of libibverbs, or the firmware's RMP. */
struct sn_srq {
	uint32_t handle, srqn, pdn;
	uint64_t buf;		     /* VA of entry 0 */
	uint64_t dbr;		     /* VA of the count of WQEs posted, big-endian */
	uint32_t wqe_cnt, wqe_shift; /* entries (power of two), log2 of their bytes */
	bool cyclic; /* entries in the order of the ring; else linked by next_wqe_index */
	bool basic;  /* entries have no next segment: data segments alone */
	bool devx, gpu, dbr_gpu;
	uint32_t max_wr, max_sge;
	uint32_t limit; /* an event when fewer WQEs are left; 0: not armed */
	uint64_t user_handle;
	struct sn_event_queue *async;
	uint32_t async_events;	  /* put into the event file (front) */
	struct sn_umem *umems[2]; /* of a DEVX object: ring, DBREC (front) */
	uint32_t next;		  /* next WQE of the linked list to consume */
	uint32_t consumed;
	int users;
};

/* Another port, as an address vector names it. */
struct sn_dest {
	uint8_t dgid[16], sgid_index;
	bool grh;      /* the GIDs count */
	uint16_t dlid; /* InfiniBand */
};

/* The way of packets to another port: its address, and what IP and UDP headers say. */
struct sn_way {
	struct in6_addr ip;	   /* unspecified: leads nowhere */
	uint16_t sport;		   /* UDP source port; 0: 4791 */
	uint8_t tclass, hop_limit; /* hop limit 0: 64 */
	uint16_t tci;		   /* VLAN tag: priority << 13 | VLAN; 0: none */
};

struct sn_qp {
	uint32_t handle, qpn, pdn;
	enum sn_qp_type type;
	enum sn_qp_state state;
	bool devx;
	uint64_t sq_buf, rq_buf;     /* VA */
	uint32_t sq_wqebbs;	     /* 64-byte blocks, power of two; 0: none */
	uint32_t rq_wqes, rq_stride; /* entries (power of two), bytes */
	uint64_t dbr;		     /* VA of word 0 (receive); word 1 is send; big-endian */
	bool no_dbr;		     /* DBREC is never read */
	bool sig_all;
	uint32_t uar; /* page its doorbells arrive on */
	uint32_t uidx;
	uint64_t user_handle;
	struct sn_cq *scq, *rcq;
	struct sn_srq *srq;
	struct sn_event_queue *async;
	uint32_t async_events;	  /* put into the event file (front) */
	struct sn_umem *umems[2]; /* of a DEVX object: ring, DBREC (front) */
	bool cd_master;

	/* address vector and transport attributes, host byte order */
	uint8_t port, path_mtu;		/* path_mtu: IB code 1..5 */
	uint8_t sl;			/* of InfiniBand, or the priority of Ethernet */
	uint8_t stat_rate, atomic_mode; /* codes of the QPC */
	uint8_t tclass;		  /* traffic class of the address path; what is sent is in way */
	uint8_t ts_format;	  /* code of the QPC */
	uint8_t log_ack_req_freq; /* kept only: an acknowledgement is asked for as it is needed */
	uint8_t lag_port;	  /* lag_tx_port_affinity, from 1; 0: the NIC's choice */
	struct sn_dest dest;
	uint8_t dmac[6];
	struct sn_way way; /* to dest */
	uint16_t pkey_index;
	uint32_t dest_qpn, sq_psn, rq_psn, qkey, flow_label;
	uint8_t retry_cnt, rnr_retry, ack_timeout, min_rnr_timer;
	uint8_t max_rd_atomic, max_dest_rd_atomic; /* counts, not logarithms */
	bool remote_write, remote_read, remote_atomic;
	bool sqd_event; /* SQ_DRAINED is asked for */
	uint32_t ece;	/* options of enhanced connection establishment, SN_ECE_OPTIONS */

	struct sn_qp_stats stats;
	struct sn_qp_eng *eng; /* the engine's own state, NULL before sn_eng_qp_add */
};

/* What is kept of a queue pair that was destroyed, for the report. */
struct sn_qp_record {
	uint32_t qpn, dest_qpn;
	enum sn_qp_type type;
	struct sn_qp_stats stats;
};

struct sn_dev {
	pthread_mutex_t lock;
	int waiting; /* atomic: threads of the program that want the lock, see sn_dev_lock */
	struct sn_cfg cfg;
	struct sn_stats stats;
	int memfd; /* what /dev/infiniband/uverbs0 is */
	struct sn_uar uars[SN_MAX_UARS];
	struct sn_qp_record *gone; /* destroyed queue pairs, the first SN_GONE_MAX */
	uint32_t ngone, gone_unlisted;
	struct sn_front *front; /* tables and handles */
	struct sn_eng *eng;
};

/* The device of this process; created by the front at the first open. */
extern struct sn_dev *sn_dev;

/* A busy NIC thread takes the lock again at once, unless it sees that others wait. */
static inline void sn_dev_lock(struct sn_dev *dev)
{
	__atomic_add_fetch(&dev->waiting, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&dev->lock);
	__atomic_sub_fetch(&dev->waiting, 1, __ATOMIC_SEQ_CST);
}

/* ---- front, called by the engine (lock held) ---- */
struct sn_qp *sn_find_qp(struct sn_dev *dev, uint32_t qpn);
struct sn_cq *sn_find_cq(struct sn_dev *dev, uint32_t cqn);
/* Exact lkey or rkey match (they are equal), of a region or an indirect key; NULL: none. */
struct sn_mr *sn_find_mr(struct sn_dev *dev, uint32_t key);
void sn_for_each_qp(struct sn_dev *dev, void (*fn)(struct sn_qp *qp, void *arg), void *arg);
void sn_event_completion(struct sn_dev *dev, struct sn_cq *cq);
/* ibv_event_type values */
enum sn_async {
	SN_ASYNC_CQ_ERR = 0,
	SN_ASYNC_QP_FATAL = 1,
	SN_ASYNC_QP_REQ_ERR = 2,
	SN_ASYNC_QP_ACCESS_ERR = 3,
	SN_ASYNC_COMM_EST = 4,
	SN_ASYNC_SQ_DRAINED = 5,
	SN_ASYNC_SRQ_LIMIT = 15,
	SN_ASYNC_LAST_WQE = 16,
};
void sn_event_async_qp(struct sn_dev *dev, struct sn_qp *qp, int ibv_event_type);
void sn_event_async_srq(struct sn_dev *dev, struct sn_srq *srq, int ibv_event_type);
void sn_event_async_cq(struct sn_dev *dev, struct sn_cq *cq, int ibv_event_type);

/* ---- engine, called by the front (lock held) ---- */
int sn_eng_start(struct sn_dev *dev); /* binds the wire, starts the thread; 0 or -errno */
void sn_eng_stop(struct sn_dev *dev); /* lock NOT held: joins the thread */
void sn_eng_kick(struct sn_dev *dev); /* wake the thread: a QP became active */
int sn_eng_qp_add(struct sn_dev *dev, struct sn_qp *qp);
/* No access to its memory after this. */
void sn_eng_qp_remove(struct sn_dev *dev, struct sn_qp *qp);
/* After the front has stored the new state and attributes in *qp. */
void sn_eng_qp_state(struct sn_dev *dev, struct sn_qp *qp, enum sn_qp_state from);
/* Counters a QUERY_QP reports: next send PSN, next receive PSN, hw SQ counter. */
void sn_eng_qp_query(struct sn_qp *qp, uint32_t *sq_psn, uint32_t *rq_psn, uint16_t *sq_ci);
bool sn_eng_qp_draining(const struct sn_qp *qp); /* SQD, and what was begun is not finished */
void sn_eng_cq_add(struct sn_dev *dev, struct sn_cq *cq);
/* Ends the old ring with a marker and goes on in another; -EINVAL: it would not hold all. */
int sn_eng_cq_resize(struct sn_dev *dev, struct sn_cq *cq, uint64_t buf, uint8_t log_size,
		     uint8_t cqe_size);
void sn_eng_cq_moderate(struct sn_dev *dev, struct sn_cq *cq, uint16_t count, uint16_t period);
void sn_eng_cq_remove(struct sn_dev *dev, struct sn_cq *cq);
/* At register_mr: is va..len GPU memory (driver loaded)? Reads must not fault. */
bool sn_mem_is_gpu(uint64_t va, uint64_t len);
bool sn_mem_readable(uint64_t va, uint64_t len);	       /* host memory mapped and readable */
int sn_mem_read(bool gpu, uint64_t va, void *dst, size_t len); /* 0 or -EFAULT */
int sn_mem_write(bool gpu, uint64_t va, const void *src, size_t len);
bool sn_mem_writable(uint64_t va, uint64_t len); /* no mapping in it forbids it */

/* ---- addr.c: addresses, by both sides ---- */
/* Where a GID or LID leads from the port whose address is own; false: nowhere. */
bool sn_addr_of_gid(const struct in6_addr *own, const uint8_t gid[16], struct in6_addr *ip);
bool sn_addr_of_lid(const struct in6_addr *own, uint16_t lid, struct in6_addr *ip);
/* The address of a destination: 0, -EINVAL: badly named, -EHOSTUNREACH: leads nowhere. */
int sn_dest_find(const struct sn_cfg *cfg, const struct sn_dest *dest, struct in6_addr *ip);
struct sn_gid {
	uint8_t raw[16];
	bool v2; /* RoCE version 2, otherwise 1 or InfiniBand */
};
/* As the kernel orders them. RoCE: link-local, then the address, version 1 before 2 of
 * each; InfiniBand: one. false: the slot is empty. */
bool sn_gid_at(const struct sn_cfg *cfg, uint32_t index, struct sn_gid *gid);
void sn_mac_of_ip(const struct in6_addr *ip, uint8_t mac[6]);
void sn_link_local(const struct in6_addr *ip, uint8_t gid[16]);
uint16_t sn_lid_of_ip(const struct in6_addr *ip);
static inline bool sn_addr_same(const struct in6_addr *a, const struct in6_addr *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* ---- shared services ---- */
void sn_cfg_from_env(struct sn_cfg *cfg);  /* cfg.c (front) */
bool sn_cfg_page_size(struct sn_cfg *cfg); /* false: SOFTNIC_PAGE_SIZE is none */
void sn_trace(const char *fmt, ...)
	__attribute__((format(printf, 1, 2))); /* trace.c, if cfg.trace */
void sn_violation(uint64_t *counter, const char *fmt, ...)
	__attribute__((format(printf, 2, 3))); /* stats.c: counts; on stderr once per kind */
void sn_stats_report(struct sn_dev *dev);      /* stats.c: at exit, text and JSON */
void sn_stats_qp_gone(struct sn_dev *dev, const struct sn_qp *qp);

#endif
