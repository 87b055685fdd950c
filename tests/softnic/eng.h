/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The engine's types and the functions that its parts call in each other.
 * Opcodes and syndromes are in opcodes.h; the objects that the front creates are
 * in softnic.h.
 *
 * sn_dev.lock protects the types in this file, except atomic fields and fields of
 * sn_eng that do not change while the NIC thread runs. The NIC thread makes almost all
 * of the calls. Work queue indices are 32-bit counts; the hardware's 16-bit index is
 * the low half. PSNs are 24-bit values, compared with sn_psn_cmp().
 */
#ifndef SOFTNIC_ENG_H
#define SOFTNIC_ENG_H

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "cqe.h"
#include "opcodes.h"
#include "peer.h"
#include "softnic.h"

#define SN_MSGS		   128u	 /* maximum number of send WQEs in flight per QP */
#define SN_MSGS_FIRST	   8u	 /* messages allocated first; the array doubles up to SN_MSGS */
#define SN_FEW_SGES	   6u	 /* gather entries stored in a message itself */
#define SN_WQE_MAX	   1024u /* maximum bytes of one WQE */
#define SN_WINDOW_PKTS	   64u	 /* unacknowledged packets per QP; one bit of read_ends each */
#define SN_READ_CHUNK_PKTS 16u	 /* maximum number of response packets per READ request */
#define SN_RES		   16u	 /* READs and atomics per QP remembered to answer duplicates */
#define SN_JOBS		   (3 * SN_RES) /* maximum number of jobs waiting per QP */
#define SN_MAX_MSG	   (1u << 30)	/* maximum bytes of a message; log_max_msg is 30 */
#define SN_PKT_DATA	   (4096 + 96)
#define SN_PSN_MASK	   0xffffffu
#define SN_INLINE_MAX	   64u /* maximum number of received bytes in a CQE */
#define SN_SQ_CACHE	   64u /* maximum number of blocks of the send ring read in one copy */

/* Equal to the bits IBV_ACCESS_REMOTE_*. */
enum { SN_REMOTE_WRITE = 1u << 1, SN_REMOTE_READ = 1u << 2, SN_REMOTE_ATOMIC = 1u << 3 };

struct sn_sge {
	uint64_t addr;
	uint32_t len, lkey;
};

/* One send WQE, from fetch to completion. */
struct sn_msg {
	uint32_t idx;	    /* WQE index of its first block */
	uint16_t blocks;    /* number of 64-byte blocks */
	uint8_t opcode, fm; /* fm: fence, completion and solicited bits of the WQE */
	/* syndrome and vendor syndrome, 0: no error; the error CQE is written when the message is
	 * the oldest */
	uint8_t synd, vendor;
	bool local; /* sends no packet: NOP, WAIT, DUMP or an error */
	bool done;  /* READ or atomic: the whole response is in memory or in reply */
	bool solicited;
	uint8_t atomic_size; /* bytes of an atomic's word: 4 or 8 */
	bool inl;	     /* the payload begins with inline bytes */
	uint16_t inl_len;    /* number of inline bytes, stored at data */
	bool inl_reply;	     /* the response is in reply, not in memory, and goes to the CQE */
	uint16_t nsge;	     /* pieces in memory; they follow the inline bytes */
	uint32_t imm;	     /* immediate value, big-endian as in the WQE */
	uint32_t len;
	uint32_t psn, npkts; /* first PSN and number of PSNs */
	uint32_t got;	     /* READ: response packets received; MMO: bytes copied */
	uint64_t raddr;
	uint32_t rkey;
	uint64_t operand[4]; /* swap or add; compare; swap mask or boundary; compare mask */
	uint32_t wait_cqn, wait_index;
	struct {
		uint32_t qpn, qkey;
		struct sn_way way;
	} ud;
	union { /* both point to few, or to big if few is too small */
		struct sn_sge *sge;
		uint8_t *data;
	};
	uint8_t *big; /* SN_WQE_MAX bytes, allocated when a WQE first needs them, then kept */
	struct sn_sge few[SN_FEW_SGES];
	uint8_t reply[SN_INLINE_MAX];
};

static inline struct sn_sge *sn_msg_sges(const struct sn_msg *m)
{
	return m->sge + (m->inl_len + sizeof(*m->sge) - 1) / sizeof(*m->sge);
}

/* A READ or atomic request. It waits in sn_qp_rsp.jobs until its responses are sent. A copy in
 * sn_qp_rsp.kept is used to answer duplicates. */
struct sn_job {
	bool atomic, again; /* again: the request is a duplicate */
	uint32_t psn, npkts, sent;
	uint64_t va; /* address as the requester gave it */
	uint32_t rkey, len;
	uint64_t result;
};

struct sn_rwqe {
	uint32_t idx;
	uint16_t nsge;
	uint32_t len;
	struct sn_sge sge[32];
};

/* A linked list through the field `next`. The field `at` of each element points to the pointer
 * that points to the element, so that an element can be removed without a search. */
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
 * The engine's state of a queue pair is struct sn_qp_eng. A reset initializes three parts of it:
 * the posted part of the send queue (sn_qp_sq), the requester (sn_qp_req), and the responder
 * with its receive queue (sn_qp_rsp). A reset keeps identity, memory and list links.
 */
struct sn_qp_sq {		    /* invariant: fetch <= pi */
	uint32_t pi, fetch;	    /* index after the last posted block; next block to parse */
	uint32_t cache_at, cache_n; /* index of the first block in cache, number of blocks */
	uint32_t last_ring;	    /* value of page->rings when this QP last rang */
	uint64_t quiet_since;	    /* time when the unrung WQEs from pi on last changed; 0: none */
	uint64_t quiet_sum;	    /* number and checksum of the blocks of these WQEs */
	uint32_t early, early_end;  /* blocks executed before a doorbell; index after the last */
	uint32_t early_times;	    /* recoveries since the last doorbell */
};

/* The send window of a reliable connection. window.c describes the algorithm. */
struct sn_window {
	uint32_t size;	    /* maximum number of unacknowledged packets */
	uint32_t good;	    /* below this size the window grows fast, from it on slowly */
	uint32_t wall;	    /* size at which packets were lost; growth pauses one packet below it */
	uint32_t step;	    /* packets of one slow growth; 1 up to the wall, doubles beyond it */
	uint32_t wall_acks; /* packets to be acknowledged before the window may reach the wall */
	uint32_t credit;    /* acknowledged packets that count for the next slow growth */
	bool full;	    /* the window delayed a packet; the next acknowledgement may grow it */
	/* a loss or an RNR NAK reduced the window, and nothing was acknowledged since */
	bool lost;
	uint32_t after; /* if lost: size that the next acknowledgement sets */
};

struct sn_qp_req {
	uint32_t head, tail;   /* messages in flight are [head, tail); counts */
	uint32_t cur, cur_pkt; /* next packet to send: message, and packet in it */
	uint32_t next_psn;     /* first PSN of the next message to be fetched */
	uint32_t una;	       /* oldest unacknowledged PSN */
	struct sn_window win;
	uint32_t max_sent;     /* highest PSN ever sent, plus 1 */
	uint32_t again_at;     /* 1 + PSN resent after a NAK or a missing response; 0: none */
	uint64_t since;	       /* time at which the timer was started */
	uint64_t timer, probe; /* times of timeout (sn_awake()) and next probe, ns; 0: off */
	uint64_t probe_wait;   /* interval between probes, ns; doubles with each probe */
	uint32_t probed;       /* 1 + PSN of the unanswered probe; 0: none */
	/* Bit PSN % 64 is set for the last PSN of a READ or atomic request that was sent since
	 * the last rewind. */
	uint64_t reads_sent;
	/* The same bits for all requests sent, before and after rewinds. */
	uint64_t read_ends;
	uint64_t srtt, rttvar; /* ns: smoothed round-trip time and its variation; 0: unknown */
	/* ns: time at which packet rtt_psn was sent (0: no packet is timed); time at which the
	 * probe was sent */
	uint64_t rtt_at, probed_at;
	uint32_t rtt_psn;
	uint64_t rnr_until; /* ns; an RNR NAK forbids to send before this time; 0: none */
	uint8_t retries, rnr_retries;
	uint32_t completed; /* messages completed, for cfg.err_after */
	/* SQD: index of the first message that waits; earlier ones are still sent */
	uint32_t drain_end;
	bool drained;  /* SQD: all messages before drain_end are finished */
	bool ce_error; /* an error CQE was written, see flush_cqe() */
};

struct sn_qp_rsp {
	uint32_t epsn, msn;
	bool established; /* COMM_EST was reported: a packet arrived in state RTR */
	bool nak_sent;	  /* a sequence or RNR NAK was sent; no sequence NAK until epsn arrives */
	bool ack_due;
	uint8_t ack_held; /* number of passes for which the acknowledgement was delayed */
	uint8_t nak_due;  /* syndrome of the NAK to send; 0: none */
	uint8_t in_msg;	  /* message in progress: 0 none, 1 SEND, 2 WRITE */
	uint64_t w_va;	  /* address of the next byte of the WRITE in progress */
	uint32_t w_rkey, w_left, w_len;
	bool have_rwqe;
	struct sn_rwqe rwqe;
	uint32_t r_off;
	struct sn_job jobs[SN_JOBS];
	uint32_t job_head, job_tail;
	uint32_t fresh; /* jobs that are not duplicates */
	struct sn_job kept[SN_RES];
	uint32_t nkept; /* number of entries ever stored in kept */
	uint32_t rq_ci;
};

struct sn_qp_eng {
	struct sn_qp *qp;
	struct sn_qp_eng *next, **at;
	struct sn_page *page;
	struct sn_qp_eng *page_next, **page_at; /* list of the page's QPs */
	struct sn_qp_eng *busy_next;		/* list of QPs to serve, see sn_qp_wake() */
	bool busy;
	bool is_rts; /* counted in sn_eng.nrts */
	bool dbr_ok; /* the DBREC is readable host memory, loaded directly */
	bool sq_gpu, rq_gpu, dbr_gpu, sq_cuda; /* sq_cuda: the CUDA driver knows its memory */
	struct sn_peer *peer; /* the process of dest; NULL: unknown, or this process */
	uint32_t mtu;
	uint32_t nmsgs;	     /* length of msgs, a power of two; 0: not allocated */
	struct sn_msg *msgs; /* ring of nmsgs messages */
	uint8_t *cache;	     /* SN_SQ_CACHE * 64 bytes, allocated at the first read */

	struct sn_qp_sq sq;
	struct sn_qp_req req;
	struct sn_qp_rsp rsp;
};

struct sn_cq_eng {
	struct sn_cq *cq;
	struct sn_cq_eng *next, **at;
	bool gpu, dbr_gpu;
	uint32_t ci;	   /* consumer index last read from the DBREC, 24 bits */
	bool arm_seen;	   /* armed at least once */
	uint64_t due;	   /* time of the delayed event, ns; 0: none is delayed */
	uint32_t arm_word; /* DBREC word 1 as last read, big-endian */
};

struct sn_pkt {
	struct sn_pkt *next;
	uint64_t due;
	struct in6_addr src, dst;
	bool no_icrc;	/* packet within this process: no ICRC to check */
	bool corrupt;	/* injected fault: flip a bit after the ICRC; drop a local packet */
	uint16_t len;	/* bytes from the BTH to the end of payload and pad, without ICRC */
	uint16_t sport; /* UDP source port */
	int fd;		/* socket that sends it */
	uint8_t tclass, hop_limit;
	uint16_t tci;	    /* VLAN tag, written to the capture only */
	uint8_t head;	    /* bytes used in ip_udp: 28, or 48 with IPv6 */
	uint8_t ip_udp[48]; /* IP and UDP headers, for the ICRC and the capture */
	uint8_t data[SN_PKT_DATA];
};

struct sn_bth {
	uint8_t opcode, pad;
	bool solicited, ackreq;
	uint32_t qpn, psn;
};

#define SN_TXQ 64
#define SN_RXQ 32

/* The engine's state of one register page. */
struct sn_page {
	struct sn_qp_eng *qps;
	unsigned nqps;
	uint32_t rings;	      /* doorbells received from the QPs of this page */
	unsigned to_scan;     /* QPs whose DBRECs are still to be read for a lost ring */
	struct sn_qp_eng *at; /* QP whose DBREC is read next */
	struct sn_page *next; /* next page in sn_eng.scans */
	uint64_t polled;      /* number of the last pass that polled the registers */
};

/* The threads of this process that were awake when this list was made, see writers.c. */
struct sn_writers {
	struct sn_writer *of;
	unsigned num, max, first; /* first: index of the first one that may be writing */
	uint64_t noted;		  /* time at which the list was made, ns */
	bool warned, forced;	  /* forced: one counts as finished although it has not run */
};

#define SN_PORTS 64u /* maximum number of source ports other than 4791, each with a socket */

struct sn_port {
	uint16_t number; /* UDP port; 0: entry is free */
	int fd;		 /* -1: bind failed, e.g. because another process has the port */
};

struct sn_eng {
	struct sn_dev *dev;
	pthread_t thread;
	bool running, few_cores;
	int stop;   /* atomic; the front sets it, the NIC thread then returns */
	int kicked; /* atomic; evfd was written and not yet read */
	int evfd, sock;
	struct sn_port ports[SN_PORTS];		 /* hash table with open addressing */
	struct sn_id_peer id_peers[SN_ID_PEERS]; /* index: last byte of the address % 64 */
	uint64_t now, absent, passes, last_active, next_sweep, next_probe;
	uint64_t real_ns; /* last result of the real-time clock (clock.c) */
	struct sn_qp_eng *qps;
	struct sn_cq_eng *cqs;
	unsigned nqps, ncqs, nrts, ndue;     /* ndue: CQs with a delayed event */
	bool cq_failed;			     /* a CQE was lost because its CQ is in error */
	struct sn_qp_eng *busy, **busy_tail; /* QPs that the next pass serves */
	struct sn_page page[SN_MAX_UARS];
	struct sn_page *scans;	 /* pages whose QPs' DBRECs are being read */
	struct sn_qp_eng *sweep; /* next QP of the sweep; NULL: the sweep is complete */
	/* sweep_gpu: this sweep reads DBRECs in GPU memory; sweep_probes: it checks that DBRECs
	 * are still mapped */
	bool sweep_gpu, sweep_probes;
	/* no_dbr: the last sweep found a DBREC-less QP; sweep_no_dbr: this sweep found one */
	bool no_dbr, sweep_no_dbr;
	uint32_t uars[SN_MAX_UARS]; /* pages in use, see sn_uar_list() */
	unsigned nuars, next_uar;
	uint64_t next_settle, next_gpu_sweep;
	struct sn_writers writers;
	bool copied; /* this pass copied bytes for an MMO request */
	bool dead;   /* this is the copy in a forked child */

	struct sn_pkt *free;
	struct sn_pkt *txq[SN_TXQ];
	unsigned ntx;
	struct sn_pkt *local_head, **local_tail;
	unsigned nlocal;
	struct sn_pkt *delayed;	 /* packets, sorted by due */
	struct sn_pkt *held;	 /* packet to send after the next one */
	struct sn_rx *rx;	 /* receive buffers of wire.c */
	bool arriving;		 /* this pass received packets from the socket */
	bool more;		 /* this pass filled all buffers; the socket may have more */
	uint64_t probe_wait_min; /* minimum wait before the first probe, ns: see window.c */
	uint64_t last_arrival;

	struct sn_peers peers;
	struct sn_eth_port *eth;      /* the Ethernet port (eth_wire.c); NULL: not open */
	struct sn_eth_port *eth_left; /* in a forked child: that of the parent, never used */
	int eth_fd;		      /* its socket when the last pass ended; NIC thread only */
	uint64_t rng, started;
	bool stalled, recent; /* recent: packets are recorded as evidence */
	FILE *pcap;
	uint8_t scratch[SN_PKT_DATA];
};

/* Adds n to the counter of the device and to that of the queue pair. */
#define SN_COUNT(e, q, field, n) ((e)->dev->stats.field += (n), (q)->stats.field += (n))

static inline struct sn_msg *sn_msg_at(const struct sn_qp_eng *q, uint32_t n)
{
	return &q->msgs[n & (q->nmsgs - 1)];
}

static inline bool sn_msg_atomic(const struct sn_msg *m)
{
	return m->opcode >= SN_OP_CS && m->opcode <= SN_OP_MASKED_FA;
}

/* True for a READ or atomic, which is answered with data. */
static inline bool sn_msg_reads(const struct sn_msg *m)
{
	return m->opcode == SN_OP_READ || sn_msg_atomic(m);
}

static inline bool sn_bth_atomic(uint8_t opcode)
{
	return opcode == SN_BTH_CS || opcode == SN_BTH_FA ||
	       (opcode >= SN_BTH_MASKED_CS && opcode <= SN_BTH_MASKED_FA4);
}

/* Negative, 0 or positive if PSN a is before, equal to or after b. */
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
extern uint64_t (*sn_clock)(void); /* CLOCK_MONOTONIC in ns; tests replace it */
uint64_t sn_now(void);
/* Creates an engine without its thread. A test sets e->now and calls sn_eng_pass(). */
int sn_eng_create(struct sn_dev *dev);
bool sn_eng_pass(struct sn_eng *e);			/* true if the pass found work */
void sn_qp_wake(struct sn_eng *e, struct sn_qp_eng *q); /* adds q to the busy QPs */
void sn_qp_to_error(struct sn_eng *e, struct sn_qp_eng *q);
void sn_qp_send_error(struct sn_eng *e, struct sn_qp_eng *q); /* call it if a send fails */
void sn_eng_rts_count(struct sn_eng *e, struct sn_qp_eng *q);

/* waiting.c: the NIC thread between two passes. sn_wait_time() returns the ns to sleep; 0: do not
 * sleep, -1: sleep until a kick or a packet. any: the last pass found work. */
void sn_wait_setup(struct sn_eng *e);
long sn_wait_time(const struct sn_eng *e);
void sn_wait(struct sn_eng *e, long ns, bool any);
void sn_wait_stalled(struct sn_eng *e, uint64_t ns); /* an injected fault stalls the NIC */

/* uar_watch.c: doorbells and posted WQEs. The functions of type bool return true if they found
 * work: a doorbell, a new WQE, or DBRECs still to be read. */
void sn_uar_list(struct sn_eng *e);
void sn_uar_attach(struct sn_eng *e, struct sn_qp_eng *q);
void sn_uar_detach(struct sn_eng *e, struct sn_qp_eng *q);
bool sn_uar_poll(struct sn_eng *e);
void sn_uar_drain(struct sn_eng *e, uint32_t page);
bool sn_sq_posted(struct sn_eng *e, struct sn_qp_eng *q);
bool sn_uar_sweep(struct sn_eng *e);
bool sn_uar_settle(struct sn_eng *e);

/* writers.c. sn_writers_passed() returns true if each thread that /proc shows has left the WQE
 * that it may have been writing at time `since`, or gets no core (w->forced). Call it again until
 * it returns true; now: the current time. */
bool sn_writers_passed(struct sn_writers *w, uint32_t qpn, uint64_t since, uint64_t now);
void sn_writers_free(struct sn_writers *w);
/* uar_watch.c; false: there is no DBREC, or the memory cannot be read */
bool sn_dbrec_read(struct sn_qp_eng *q, unsigned word, uint32_t *value);
bool sn_sq_read(struct sn_qp_eng *q, uint32_t idx, void *dst, uint32_t blocks);

/* sq.c: turns posted WQEs into messages; true if it found any */
bool sn_sq_fetch(struct sn_eng *e, struct sn_qp_eng *q);
void sn_sq_flush(struct sn_eng *e, struct sn_qp_eng *q);
void sn_sq_free(struct sn_qp_eng *q);

/* dma.c: sn_dma_run() returns 1: done, 0: bytes are left, -1: failed and m->synd is set */
bool sn_dma_parse(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m, const uint8_t *wqe,
		  uint32_t bytes);
int sn_dma_run(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m);
bool sn_sq_bad(struct sn_eng *e, struct sn_qp_eng *q, struct sn_msg *m, uint64_t *count,
	       const char *what, uint32_t value);

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
void sn_probe_wait_init(struct sn_eng *e);
void sn_probe_wait_lossy(struct sn_eng *e);
void sn_probe_wait_early(struct sn_eng *e);
bool sn_rtt_fits(const struct sn_qp_eng *q, uint64_t ns); /* a round trip may take ns */

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

/* resource.c: READs, atomics and their duplicates. sn_rsp_read() and sn_rsp_atomic() return
 * false if they refused the request. */
bool sn_rsp_read(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth, const uint8_t *p,
		 uint32_t len);
bool sn_rsp_atomic(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
		   const uint8_t *p, uint32_t len);
void sn_rsp_again(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth, const uint8_t *p,
		  uint32_t len); /* handles a duplicate request */
bool sn_rsp_send(struct sn_eng *e, struct sn_qp_eng *q);

/* rq.c: sn_rq_take() returns 1: *w is filled, 0: no WQE is posted, -1: the WQE, or the DBREC of a
 * shared queue, cannot be read */
int sn_rq_take(struct sn_eng *e, struct sn_qp_eng *q, struct sn_rwqe *w);
int sn_rq_scatter(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_rwqe *w, uint32_t off,
		  const void *src, uint32_t len); /* returns 0 or a syndrome */
void sn_rq_flush(struct sn_eng *e, struct sn_qp_eng *q);
void sn_rq_ud(struct sn_eng *e, struct sn_qp_eng *q, const struct sn_bth *bth,
	      const struct sn_pkt *pkt, const uint8_t *p, uint32_t len);

/* guard.c: copies that return an error instead of faulting, on the NIC thread only */
void sn_guard_install(void);
void sn_guard_remove(void);
void sn_guard_pass(void); /* the NIC thread calls it at the start of each pass */
/* Whether sn_guard_copy() may be called. False in other threads, if the program has installed
 * its own handlers, and under sanitizers. */
bool sn_guard_ready(void);
int sn_guard_copy(uint64_t va, void *buf, size_t len, bool write);

/* mem.c: functions of type int return 0 or -EFAULT. No function raises a signal for unmapped
 * memory. */
struct sn_iov {
	uint64_t va;
	uint32_t len;
};
/*
 * Announces that the next reads by key fetch payload to be sent: this pass will send `bytes`
 * bytes from the address of the first read on. GPU memory may then be read ahead. bytes = 0: no
 * more such reads follow.
 */
void sn_mem_plan(uint64_t bytes);
static inline uint64_t sn_min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* mem_gpu.c: access to GPU memory; functions of type int return 0 or -EFAULT */
int sn_gpu_read(uint64_t va, void *dst, size_t len);
int sn_gpu_read_ahead(uint64_t va, void *dst, size_t len, size_t room);
int sn_gpu_write(uint64_t va, const void *src, size_t len, uint64_t region);
void sn_gpu_fresh(void);	  /* discard what was read ahead */
bool sn_mem_is_cuda(uint64_t va); /* the CUDA driver knows va: GPU or pinned memory */
void sn_mem_settle(void);	  /* wait until all writes to GPU memory have arrived */
/* mem.c: access by key, with check of PD, bounds and rights. access: IBV_ACCESS_* bits; 0 for a
 * local read. */
bool sn_mr_allows(struct sn_dev *dev, uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len,
		  uint32_t access);
int sn_mr_read(struct sn_dev *dev, uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len,
	       uint32_t access, void *dst);
/* Returns the region that holds an atomic's word of `size` bytes, and the word's address in
 * this process in *va; NULL: refused. */
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
/* Writes the BTH to p->data[0..11] and sends p. The caller has filled p->data[12..len-1]. */
void sn_pkt_send(struct sn_eng *e, struct sn_qp *qp, const struct sn_way *way, struct sn_pkt *p,
		 const struct sn_bth *bth, uint32_t len);
void sn_wire_emit(struct sn_eng *e, struct sn_pkt *p); /* sends p after fault.c */
void sn_wire_flush(struct sn_eng *e);
bool sn_wire_poll(struct sn_eng *e);
void sn_wire_report_headers(struct sn_eng *e);
void sn_wire_receive(struct sn_eng *e, struct sn_pkt *p); /* handles one received packet */

/* icrc.c: head is the length of the IP and UDP headers. */
uint32_t sn_icrc(const uint8_t *ip_udp, size_t head, const uint8_t *bth, size_t len);

/* trace.c: callers check cfg.trace first, to save time */
void sn_trace_wqe(const struct sn_qp_eng *q, const struct sn_msg *m);
void sn_trace_cqe(const struct sn_cq *cq, const struct sn_qp *qp, const struct sn_cqe_args *a);
void sn_trace_packet(const char *way, const struct sn_bth *bth, uint32_t len);

/* ipid.c: sn_icrc_but_id() returns true if packets whose ICRCs differ by `differs` may be equal
 * except for the IPv4 identification and the DF bit. */
bool sn_icrc_but_id(uint32_t differs, size_t head, size_t len);
bool sn_id_check(struct sn_eng *e, const struct sn_pkt *p, uint32_t differs);

/* pcap.c */
void sn_pcap_open(struct sn_eng *e);
void sn_pcap_write(struct sn_eng *e, const struct sn_pkt *p, uint32_t icrc);
void sn_pcap_close(struct sn_eng *e);

/* fault.c: sn_fault_send() takes ownership of p */
void sn_fault_send(struct sn_eng *e, struct sn_pkt *p);
bool sn_fault_due(struct sn_eng *e);
void sn_fault_corrupt(struct sn_eng *e, struct sn_pkt *p); /* call after the ICRC was appended */
uint64_t sn_fault_stall(struct sn_eng *e);

/* sanitizer.c: hides the memory accesses of the calling thread from ThreadSanitizer. Each
 * sn_hide_thread(true) needs an sn_hide_thread(false) in the same thread. */
void sn_hide_thread(bool hide);

#endif
