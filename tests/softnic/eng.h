/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The engine's own types and the calls between its parts. Everything here is
 * touched with sn_dev.lock held, almost always by the NIC thread. Indices of
 * work queues are kept as 32-bit counts; the 16 bits of the hardware are their
 * low half. PSNs are 24-bit values compared with sn_psn_cmp.
 */
#ifndef SOFTNIC_ENG_H
#define SOFTNIC_ENG_H

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "softnic.h"

#define SN_MSGS		   128u		/* send WQEs in flight per QP, at most */
#define SN_MSGS_FIRST	   8u		/* room for so many to begin with */
#define SN_FEW_SGES	   6u		/* gather entries that a message holds itself */
#define SN_WQE_MAX	   1024u	/* bytes of one WQE */
#define SN_WINDOW_PKTS	   64u		/* unacknowledged packets per QP, at most: bits of `ends` */
#define SN_READ_CHUNK_PKTS 16u		/* response packets one READ request asks for */
#define SN_RES		   16u		/* READs and atomics kept for duplicates, per QP */
#define SN_JOBS		   (3 * SN_RES) /* READ and atomic responses owed per QP */
#define SN_MAX_MSG	   (1u << 30)	/* bytes, log_msg_max of the firmware */
#define SN_PKT_DATA	   (4096 + 96)
#define SN_PSN_MASK	   0xffffffu
#define SN_SQ_CACHE	   64u /* blocks read from the ring in one go */

/* WQE opcodes */
enum {
	SN_OP_NOP = 0x00,
	SN_OP_SEND_INVAL = 0x01,
	SN_OP_WRITE = 0x08,
	SN_OP_WRITE_IMM = 0x09,
	SN_OP_SEND = 0x0a,
	SN_OP_SEND_IMM = 0x0b,
	SN_OP_WAIT = 0x0f,
	SN_OP_READ = 0x10,
	SN_OP_CS = 0x11,
	SN_OP_FA = 0x12,
	SN_OP_MASKED_CS = 0x14,
	SN_OP_MASKED_FA = 0x15,
	SN_OP_DUMP = 0x23,
};

/* CQE opcodes and syndromes */
enum {
	SN_CQE_REQ = 0,
	SN_CQE_RESP_WRITE_IMM = 1,
	SN_CQE_RESP_SEND = 2,
	SN_CQE_RESP_SEND_IMM = 3,
	SN_CQE_RESIZE = 5,
	SN_CQE_REQ_ERR = 13,
	SN_CQE_RESP_ERR = 14,
};
enum {
	SN_SYND_LOC_LEN = 0x01,
	SN_SYND_LOC_OP = 0x02,
	SN_SYND_LOC_PROT = 0x04,
	SN_SYND_FLUSH = 0x05,
	SN_SYND_BAD_RESP = 0x10,
	SN_SYND_LOC_ACCESS = 0x11,
	SN_SYND_REM_INV = 0x12,
	SN_SYND_REM_ACCESS = 0x13,
	SN_SYND_REM_OP = 0x14,
	SN_SYND_RETRY = 0x15,
	SN_SYND_RNR = 0x16,
};

/* BTH opcodes of RC; the upper three bits are the service */
enum {
	SN_BTH_SEND_FIRST = 0,
	SN_BTH_SEND_MIDDLE,
	SN_BTH_SEND_LAST,
	SN_BTH_SEND_LAST_IMM,
	SN_BTH_SEND_ONLY,
	SN_BTH_SEND_ONLY_IMM,
	SN_BTH_WRITE_FIRST,
	SN_BTH_WRITE_MIDDLE,
	SN_BTH_WRITE_LAST,
	SN_BTH_WRITE_LAST_IMM,
	SN_BTH_WRITE_ONLY,
	SN_BTH_WRITE_ONLY_IMM,
	SN_BTH_READ_REQ,
	SN_BTH_RESP_FIRST,
	SN_BTH_RESP_MIDDLE,
	SN_BTH_RESP_LAST,
	SN_BTH_RESP_ONLY,
	SN_BTH_ACK,
	SN_BTH_ATOMIC_ACK,
	SN_BTH_CS,
	SN_BTH_FA,
	SN_BTH_UC = 0x20,
	SN_BTH_UD_SEND = 0x64,
	SN_BTH_UD_SEND_IMM = 0x65,
	/* manufacturer's range: masked atomics of 8 and of 4 bytes, between two of us */
	SN_BTH_MASKED_CS = 0xd3,
	SN_BTH_MASKED_FA,
	SN_BTH_MASKED_CS4,
	SN_BTH_MASKED_FA4,
};
enum { SN_NAK_SEQ = 0x60, SN_NAK_INV = 0x61, SN_NAK_ACCESS = 0x62, SN_NAK_OP = 0x63 };
#define SN_AETH_RNR 0x20u
/* bytes of extended headers; a masked atomic has two masks more */
enum { SN_RETH = 16, SN_ATOMIC_ETH = 28, SN_MASKED_ETH = 44 };
/* IBV_ACCESS_* */
enum { SN_REMOTE_WRITE = 1u << 1, SN_REMOTE_READ = 1u << 2, SN_REMOTE_ATOMIC = 1u << 3 };

struct sn_sge {
	uint64_t addr;
	uint32_t len, lkey;
};

/* One send WQE between fetch and completion. */
struct sn_msg {
	uint32_t idx;	      /* WQE index of its first block */
	uint16_t blocks;      /* of 64 bytes */
	uint8_t opcode, fm;   /* fm: fence, completion and solicited bits */
	uint8_t synd, vendor; /* local error found: completes with it when it is the oldest */
	bool local;	      /* nothing goes on the wire */
	bool done;	      /* READ or atomic: the response is in memory */
	bool solicited;
	uint8_t atomic_size; /* bytes */
	bool inl;	     /* the payload begins with inl_len bytes of the WQE itself, */
	uint16_t inl_len;    /* kept at data; the rest is in nsge pieces of memory after them */
	uint16_t nsge;
	uint32_t imm; /* as in the WQE, network order */
	uint32_t len;
	uint32_t psn, npkts; /* first PSN and how many it takes */
	uint32_t got;	     /* READ: response packets taken */
	uint64_t raddr;
	uint32_t rkey;
	uint64_t operand[4]; /* swap/add, compare, swap mask/boundary, compare mask */
	uint32_t wait_cqn, wait_index;
	struct {
		uint32_t qpn, qkey;
		struct sn_way way;
	} ud;
	union { /* both point to few, or to big where that is too small */
		struct sn_sge *sge;
		uint8_t *data;
	};
	uint8_t *big; /* SN_WQE_MAX bytes once a WQE needed them; stays with the slot */
	struct sn_sge few[SN_FEW_SGES];
};

static inline struct sn_sge *sn_msg_sges(const struct sn_msg *m)
{
	return m->sge + (m->inl_len + sizeof(*m->sge) - 1) / sizeof(*m->sge);
}

/* A READ or atomic: responses owed, sent in order, or kept for a duplicate. */
struct sn_job {
	bool atomic, again; /* again: of a repeated request */
	uint32_t psn, npkts, sent;
	uint64_t va; /* requester's address */
	uint32_t rkey, len;
	uint64_t result;
};

struct sn_rwqe {
	uint32_t idx;
	uint16_t nsge;
	uint32_t len;
	struct sn_sge sge[32];
};

/* A list through next; at of each is what points to it, so that it leaves at once. */
#define SN_LINK(head, o, next, at) \
	do { \
		(o)->next = *(head); \
		(o)->at = (head); \
		if ((o)->next) \
			(o)->next->at = &(o)->next; \
		*(head) = (o); \
	} while (0)
#define SN_UNLINK(o, next, at) \
	do { \
		*(o)->at = (o)->next; \
		if ((o)->next) \
			(o)->next->at = (o)->at; \
	} while (0)

/*
 * A queue pair. What a reset clears is in three parts, each cleared as a whole:
 * the send queue as posted, the requester, and the responder with its receive
 * queue. All else is identity, memory and places in lists, which a reset keeps.
 */
struct sn_qp_sq { /* done <= fetch <= pi */
	uint32_t pi, fetch;
	uint32_t cache_at, cache_n; /* ring blocks held in cache */
	uint32_t last_ring;	    /* the page's count of rings at our last one */
	uint64_t quiet_since;	    /* of the block at pi, see uar_watch.c */
	uint64_t quiet_sum;
};

/* Packets that may be unacknowledged: see window.c. */
struct sn_window {
	uint32_t size;	 /* so many */
	uint32_t good;	 /* grows fast up to here, */
	uint32_t wall;	 /* slowly to before this, and waits there */
	uint32_t step;	 /* how far the wall moves next */
	uint32_t hold;	 /* packets to wait before the wall is tried */
	uint32_t credit; /* packets acknowledged since it grew */
	bool full;	 /* it held a packet back since it grew */
	bool lost;	 /* nothing is acknowledged since the last loss or RNR NAK: */
	uint32_t after;	 /* the size is this with the next acknowledgement */
};

struct sn_qp_req {
	uint32_t head, tail;   /* messages, [head, tail); counts */
	uint32_t cur, cur_pkt; /* next packet to send: message and packet in it */
	uint32_t next_psn;     /* of the next message fetched */
	uint32_t una;	       /* oldest PSN not acknowledged */
	struct sn_window win;
	uint32_t max_sent;	    /* PSN after the newest ever sent */
	uint32_t again_at;	    /* 1 + PSN that a NAK or a gap made us send again; 0: none */
	uint64_t timer, probe;	    /* due; 0: off */
	uint64_t probe_wait;	    /* ns, doubles with each probe */
	uint32_t probed;	    /* 1 + PSN of the probe that is not answered; 0: none */
	uint64_t asked;		    /* READ and atomic requests sent since a rewind, */
	uint64_t ends;		    /* and all: bit n is of a last PSN that is n modulo 64 */
	uint64_t srtt, rttvar;	    /* ns, round trip and how it varies; 0: unknown */
	uint64_t rtt_at, probed_at; /* when rtt_psn (0: none is measured) and probed were sent */
	uint32_t rtt_psn;
	uint64_t rnr_until;
	uint8_t retries, rnr_retries;
	uint32_t completed; /* messages, for cfg.err_after */
	uint32_t drain_end; /* SQD: messages before it are finished, others wait */
	bool drained;	    /* SQD: they are */
	bool ce_error;	    /* an error CQE was written: see flush_cqe */
};

struct sn_qp_rsp {
	uint32_t epsn, msn;
	bool established; /* a packet came before the QP could send: reported */
	bool nak_sent;	  /* sequence NAK sent, waiting for epsn */
	bool ack_due;
	uint8_t ack_held; /* passes that it waited for more packets */
	uint8_t nak_due;  /* syndrome byte, 0: none */
	uint8_t in_msg;	  /* 0 none, 1 SEND, 2 WRITE: between first and last packet */
	uint64_t w_va;	  /* current WRITE */
	uint32_t w_rkey, w_left, w_len;
	bool have_rwqe;
	struct sn_rwqe rwqe;
	uint32_t r_off;
	struct sn_job jobs[SN_JOBS];
	uint32_t job_head, job_tail;
	uint32_t fresh; /* jobs that are no repetition */
	struct sn_job kept[SN_RES];
	uint32_t nkept; /* ever */
	uint32_t rq_ci;
};

struct sn_qp_eng {
	struct sn_qp *qp;
	struct sn_qp_eng *next, **at;
	struct sn_page *page;
	struct sn_qp_eng *page_next, **page_at; /* QPs of the same register page */
	struct sn_qp_eng *busy_next;		/* of those to be served, see sn_qp_wake */
	bool busy;
	bool is_rts;			       /* counted in nrts of the engine */
	bool dbr_ok;			       /* DBREC may be loaded directly */
	bool sq_gpu, rq_gpu, dbr_gpu, sq_cuda; /* sq_cuda: memory the CUDA driver knows of */
	uint32_t mtu;
	uint32_t nmsgs;	     /* a power of two */
	struct sn_msg *msgs; /* ring of nmsgs */
	uint8_t *cache;	     /* SN_SQ_CACHE * 64 bytes, from the first read on */

	struct sn_qp_sq sq;
	struct sn_qp_req req;
	struct sn_qp_rsp rsp;
};

struct sn_cq_eng {
	struct sn_cq *cq;
	struct sn_cq_eng *next, **at;
	bool gpu, dbr_gpu;
	uint32_t ci;	   /* last consumer index read from the DBREC, 24 bits */
	bool arm_seen;	   /* armed at least once */
	uint64_t due;	   /* an event is held back until then; 0: none */
	uint32_t arm_word; /* last DBREC word 1 seen, as in memory */
};

struct sn_pkt {
	struct sn_pkt *next;
	uint64_t due;
	struct in6_addr src, dst;
	bool no_icrc;	/* in-process: nothing to check */
	bool corrupt;	/* a payload or header bit is flipped after the ICRC */
	uint16_t len;	/* BTH to payload end and pad, ICRC not included */
	uint16_t sport; /* UDP source port */
	int fd;		/* socket to send it by */
	uint8_t tclass, hop_limit;
	uint16_t tci;	    /* VLAN tag, for the capture */
	uint8_t head;	    /* length of ip_udp: 28, or 48 with IPv6 */
	uint8_t ip_udp[48]; /* as on the wire, for ICRC and capture */
	uint8_t data[SN_PKT_DATA];
};

struct sn_bth {
	uint8_t opcode, pad;
	bool solicited, ackreq;
	uint32_t qpn, psn;
};

#define SN_TXQ 64
#define SN_RXQ 32

/* A register page as the engine sees it. */
struct sn_page {
	struct sn_qp_eng *qps;
	unsigned nqps;
	uint32_t rings;	      /* count; of all its QPs */
	unsigned to_scan;     /* QPs whose records may tell of a lost ring */
	struct sn_qp_eng *at; /* the next one of these */
	struct sn_page *next; /* of sn_eng.scans */
	uint64_t polled;      /* the pass that last read its registers */
};

/* The threads that were awake at a moment. */
struct sn_writers {
	struct sn_writer *of;
	unsigned num, max;
	uint64_t noted; /* that moment */
};

#define SN_PORTS 64u /* other source ports than 4791, each with a socket */

#define SN_ID_PEERS 64u

struct sn_id_peer {
	struct in6_addr ip;
	bool zero; /* its IPv4 identification is 0 */
};

struct sn_port {
	uint16_t number; /* 0: free */
	int fd;		 /* -1: another process has the port */
};

struct sn_eng {
	struct sn_dev *dev;
	pthread_t thread;
	bool running, few_cores;
	int stop;   /* atomic */
	int kicked; /* atomic: a write to evfd is pending */
	int evfd, sock;
	struct sn_port ports[SN_PORTS];		 /* open addressing */
	struct sn_id_peer id_peers[SN_ID_PEERS]; /* by the last byte of the address */
	uint64_t now, passes, last_active, next_sweep, next_probe;
	struct sn_qp_eng *qps;
	struct sn_cq_eng *cqs;
	unsigned nqps, ncqs, nrts, ndue;     /* ndue: CQs with an event held back */
	bool cq_failed;			     /* a completion was lost to a CQ in error */
	struct sn_qp_eng *busy, **busy_tail; /* what a pass serves */
	struct sn_page page[SN_MAX_UARS];
	struct sn_page *scans;	      /* pages with QPs to be looked at */
	struct sn_qp_eng *sweep;      /* where the sweep goes on; NULL: from the start */
	bool sweep_gpu, sweep_probes; /* it reads GPU memory, and probes records, this time */
	bool no_dbr, sweep_no_dbr;    /* the last sweep met a QP without record; this one did */
	uint32_t uars[SN_MAX_UARS];   /* pages in use, see sn_uar_list */
	unsigned nuars, next_uar;
	uint64_t next_settle, next_gpu_sweep;
	struct sn_writers writers;
	bool dead; /* copy in a forked child */

	struct sn_pkt *free;
	struct sn_pkt *txq[SN_TXQ];
	unsigned ntx;
	struct sn_pkt *local_head, **local_tail;
	unsigned nlocal;
	struct sn_pkt *delayed; /* sorted by due */
	struct sn_pkt *held;	/* to be sent after the next packet */
	struct sn_rx *rx;	/* of wire.c */
	bool arriving;		/* the socket had packets in this pass, */
	bool behind;		/* and has more */
	uint64_t patience;	/* ns before the first probe, at least: see window.c */
	uint64_t last_arrival;

	uint64_t rng, started;
	bool stalled;
	FILE *pcap;
	uint8_t scratch[SN_PKT_DATA];
};

/* Counts for the device and for the queue pair. */
#define SN_COUNT(e, q, field, n) ((e)->dev->stats.field += (n), (q)->stats.field += (n))

static inline struct sn_msg *sn_msg_at(const struct sn_qp_eng *q, uint32_t n)
{
	return &q->msgs[n & (q->nmsgs - 1)];
}

static inline bool sn_msg_atomic(const struct sn_msg *m)
{
	return m->opcode >= SN_OP_CS && m->opcode <= SN_OP_MASKED_FA;
}

/* Has a response with data. */
static inline bool sn_msg_reads(const struct sn_msg *m)
{
	return m->opcode == SN_OP_READ || sn_msg_atomic(m);
}

static inline bool sn_bth_atomic(uint8_t opcode)
{
	return opcode == SN_BTH_CS || opcode == SN_BTH_FA ||
	       (opcode >= SN_BTH_MASKED_CS && opcode <= SN_BTH_MASKED_FA4);
}

/* <0, 0, >0 as a is before, at, after b */
static inline int32_t sn_psn_cmp(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline void sn_put32(void *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, 4);
}

static inline void sn_put64(void *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, 8);
}

static inline uint32_t sn_get32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return be32toh(v);
}

static inline uint64_t sn_get64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, 8);
	return be64toh(v);
}

/* engine.c */
extern uint64_t (*sn_clock)(void); /* CLOCK_MONOTONIC in ns, or the clock of a test */
uint64_t sn_now(void);
/* An engine without its thread: a test sets e->now and calls sn_eng_pass. */
int sn_eng_create(struct sn_dev *dev);
bool sn_eng_pass(struct sn_eng *e);			/* true if it found work */
void sn_qp_wake(struct sn_eng *e, struct sn_qp_eng *q); /* there may be something to do for it */
void sn_qp_to_error(struct sn_eng *e, struct sn_qp_eng *q);
void sn_qp_send_error(struct sn_eng *e, struct sn_qp_eng *q); /* of a send request */
void sn_eng_rts_count(struct sn_eng *e, struct sn_qp_eng *q);

/* waiting.c: between passes; ns of sn_wait_time, any: the pass found work */
void sn_wait_setup(struct sn_eng *e);
long sn_wait_time(const struct sn_eng *e);
void sn_wait(struct sn_eng *e, long ns, bool any);

/* uar_watch.c: what rang since the last pass; true if anything did */
void sn_uar_list(struct sn_eng *e);
void sn_uar_attach(struct sn_eng *e, struct sn_qp_eng *q);
void sn_uar_detach(struct sn_eng *e, struct sn_qp_eng *q);
bool sn_uar_poll(struct sn_eng *e);
void sn_uar_drain(struct sn_eng *e, uint32_t page);
bool sn_sq_posted(struct sn_eng *e, struct sn_qp_eng *q);
bool sn_uar_sweep(struct sn_eng *e);
bool sn_uar_settle(struct sn_eng *e);

/* Is every WQE that a thread of this process began before `since` complete? Asked
 * again until it says so; now: the time. */
bool sn_writers_passed(struct sn_writers *w, uint64_t since, uint64_t now);
void sn_writers_free(struct sn_writers *w);
bool sn_dbrec_read(struct sn_qp_eng *q, unsigned word, uint32_t *value);
bool sn_sq_read(struct sn_qp_eng *q, uint32_t idx, void *dst, uint32_t blocks);

/* sq.c: fetches posted WQEs into messages; true if any */
bool sn_sq_fetch(struct sn_eng *e, struct sn_qp_eng *q);
void sn_sq_flush(struct sn_eng *e, struct sn_qp_eng *q);
void sn_sq_free(struct sn_qp_eng *q);

/* requester.c */
bool sn_req_send(struct sn_eng *e, struct sn_qp_eng *q);
void sn_req_complete(struct sn_eng *e, struct sn_qp_eng *q);
void sn_req_fail(struct sn_eng *e, struct sn_qp_eng *q, uint8_t synd, uint8_t vendor);
void sn_req_rewind(struct sn_qp_eng *q, uint32_t psn);
bool sn_req_probe(struct sn_eng *e, struct sn_qp_eng *q);
uint32_t sn_req_cur_psn(const struct sn_qp_eng *q);
void sn_req_drain(struct sn_qp_eng *q);
void sn_req_drained(struct sn_eng *e, struct sn_qp_eng *q);

/* window.c */
enum sn_due { SN_DUE_NONE, SN_DUE_PROBE, SN_DUE_TIMEOUT };
void sn_window_open(struct sn_qp_eng *q);
uint32_t sn_window_flight(const struct sn_qp_eng *q);
uint32_t sn_window_room(const struct sn_qp_eng *q);
void sn_window_acked(struct sn_qp_eng *q, uint32_t acked);
void sn_window_lost(struct sn_qp_eng *q);
void sn_window_not_ready(struct sn_qp_eng *q);
void sn_rtt_begin(struct sn_eng *e, struct sn_qp_eng *q, uint32_t psn);
void sn_rtt_forget(struct sn_qp_eng *q);
void sn_timer_start(struct sn_eng *e, struct sn_qp_eng *q);
void sn_timer_stop(struct sn_qp_eng *q);
void sn_timer_progress(struct sn_eng *e, struct sn_qp_eng *q);
enum sn_due sn_timer_due(struct sn_eng *e, struct sn_qp_eng *q);
void sn_patience_start(struct sn_eng *e);
void sn_patience_lossy(struct sn_eng *e);
void sn_patience_wrong(struct sn_eng *e);
bool sn_rtt_fits(const struct sn_qp_eng *q, uint64_t ns); /* no longer than a round trip */

/* response.c */
struct sn_msg *sn_msg_of_psn(struct sn_qp_eng *q, uint32_t psn);
bool sn_req_timer(struct sn_eng *e, struct sn_qp_eng *q);
void sn_req_response(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
		     const uint8_t *p, uint32_t len);

/* responder.c */
void sn_rsp_request(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
		    const uint8_t *p, uint32_t len);
void sn_rsp_unreliable(struct sn_eng *e, struct sn_qp_eng *q, struct sn_bth *bth, const uint8_t *p,
		       uint32_t len);
void sn_rsp_refuse(struct sn_eng *e, struct sn_qp_eng *q, uint8_t syndrome);

/* resource.c; false: refused */
bool sn_rsp_read(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth, const uint8_t *p,
		 uint32_t len);
bool sn_rsp_atomic(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
		   const uint8_t *p, uint32_t len);
void sn_rsp_again(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth, const uint8_t *p,
		  uint32_t len); /* a repeated request */
bool sn_rsp_send(struct sn_eng *e, struct sn_qp_eng *q);

/* rq.c: 1 a WQE, 0 none posted, -1 unreadable */
int sn_rq_take(struct sn_eng *e, struct sn_qp_eng *q, struct sn_rwqe *w);
int sn_rq_scatter(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_rwqe *w, uint32_t off,
		  const void *src, uint32_t len); /* 0 or a syndrome */
void sn_rq_flush(struct sn_eng *e, struct sn_qp_eng *q);
void sn_rq_ud(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
	      const struct sn_pkt *pkt, const uint8_t *p, uint32_t len);

/* cqe.c */
struct sn_cqe_args {
	uint8_t opcode, synd, vendor, wqe_opcode;
	bool solicited;
	uint16_t counter, slid;
	uint32_t byte_cnt, imm, flags_rqpn;
};
void sn_cqe_write(struct sn_eng *e, struct sn_cq *cq, struct sn_qp *qp,
		  const struct sn_cqe_args *a);
void sn_cq_due(struct sn_eng *e);
void sn_cq_arm(struct sn_eng *e, struct sn_cq *cq, uint32_t word);
void sn_cq_scan_arms(struct sn_eng *e, bool rung);

/* guard.c: copies that survive a fault, on the NIC thread only */
void sn_guard_install(void);
void sn_guard_remove(void);
void sn_guard_pass(void);  /* the NIC thread's next pass begins */
bool sn_guard_ready(void); /* false: another thread, or the program has handlers of its own */
int sn_guard_copy(uint64_t va, void *buf, size_t len, bool write);

/* mem.c: 0 or -EFAULT; never a signal for memory that is not mapped */
struct sn_iov {
	uint64_t va;
	uint32_t len;
};
/*
 * The reads by key that follow are of payload to be sent, of which so many bytes from the
 * first on go in this pass: GPU memory may be read ahead. 0: the plan ends.
 */
void sn_mem_plan(uint64_t bytes);
static inline uint64_t sn_min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* mem_gpu.c: the same for GPU memory */
int sn_gpu_read(uint64_t va, void *dst, size_t len);
int sn_gpu_read_ahead(uint64_t va, void *dst, size_t len, size_t room);
int sn_gpu_write(uint64_t va, const void *src, size_t len, uint64_t region);
void sn_gpu_fresh(void);	  /* what was read ahead is not used any more */
bool sn_mem_is_cuda(uint64_t va); /* device or pinned */
void sn_mem_settle(void);	  /* what was written to a GPU is there */
/* By key, with PD, bounds and rights (IBV_ACCESS_*; 0: to read here). */
bool sn_mr_allows(struct sn_dev *dev, uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len,
		  uint32_t access);
int sn_mr_read(struct sn_dev *dev, uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len,
	       uint32_t access, void *dst);
int sn_mr_write(struct sn_dev *dev, uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len,
		uint32_t access, const void *src);
/* The region of an atomic's word of size bytes, and its address *va in this process. */
struct sn_mr *sn_mr_word(struct sn_dev *dev, uint32_t key, uint32_t pdn, uint64_t addr,
			 uint64_t size, uint64_t *va);
int sn_sge_read(struct sn_dev *dev, uint32_t pdn, const struct sn_sge *sge, unsigned n,
		uint32_t off, void *dst, uint32_t len);
int sn_sge_write(struct sn_dev *dev, uint32_t pdn, const struct sn_sge *sge, unsigned n,
		 uint32_t off, const void *src, uint32_t len);

/* wire.c */
int sn_wire_open(struct sn_eng *e);
void sn_wire_close(struct sn_eng *e);
struct sn_pkt *sn_pkt_get(struct sn_eng *e);
void sn_pkt_put(struct sn_eng *e, struct sn_pkt *p);
/* Writes the BTH at data[0..11]; caller has filled data[12..len). */
void sn_pkt_send(struct sn_eng *e, struct sn_qp *qp, const struct sn_way *way, struct sn_pkt *p,
		 const struct sn_bth *bth, uint32_t len);
void sn_wire_emit(struct sn_eng *e, struct sn_pkt *p); /* after faults */
void sn_wire_flush(struct sn_eng *e);
bool sn_wire_poll(struct sn_eng *e);
void sn_wire_tell_headers(struct sn_eng *e);
void sn_wire_receive(struct sn_eng *e, struct sn_pkt *p); /* one packet that arrived */

/* icrc.c */
/* head: bytes of IP and UDP headers. */
uint32_t sn_icrc(const uint8_t *ip_udp, size_t head, const uint8_t *bth, size_t len);

/* trace.c; call only when cfg.trace */
void sn_trace_wqe(const struct sn_qp_eng *q, const struct sn_msg *m);
void sn_trace_cqe(const struct sn_cq *cq, const struct sn_qp *qp, const struct sn_cqe_args *a);
void sn_trace_packet(const char *way, const struct sn_bth *bth, uint32_t len);

/* ipid.c: a packet whose ICRC differs so from that of identification 0: is it right? */
bool sn_icrc_but_id(uint32_t differs, size_t head, size_t len);
bool sn_id_check(struct sn_eng *e, const struct sn_pkt *p, uint32_t differs);

/* pcap.c */
void sn_pcap_open(struct sn_eng *e);
void sn_pcap_write(struct sn_eng *e, const struct sn_pkt *p, uint32_t icrc);
void sn_pcap_close(struct sn_eng *e);

/* fault.c: takes over p */
void sn_fault_send(struct sn_eng *e, struct sn_pkt *p);
bool sn_fault_due(struct sn_eng *e);
void sn_fault_corrupt(struct sn_eng *e, struct sn_pkt *p); /* with its ICRC in place */
uint64_t sn_fault_stall(struct sn_eng *e);

#endif
