/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Raw Ethernet: the objects that receive and send frames, and the functions that
 * create, use and destroy them. Both halves of the NIC include this file.
 *
 * A send queue (SQ) and a receive queue (RQ) are queue pairs (struct sn_qp) of the types
 * SN_QPT_SQ and SN_QPT_RQ; their numbers are in the number space of queue pairs, as in
 * hardware. State ready is SN_QPS_RTS. A received frame is parsed, the first rule that
 * matches selects TIRs, and each TIR selects an RQ, directly or by hash. On the underlay a
 * frame is the payload of a VXLAN packet (RFC 7348).
 *
 * sn_dev.lock protects everything here. Lengths are bytes and do not include the frame
 * check sequence (FCS), which no frame of this NIC carries in memory.
 */
#ifndef SOFTNIC_ETH_H
#define SOFTNIC_ETH_H

#include "softnic.h"

#define SN_MATCH_LEN	  64u	/* bytes of the outer headers in fte_match_param */
#define SN_ETH_MTU_MAX	  9216u /* payload after the Ethernet header */
#define SN_ETH_FRAME_MAX  (SN_ETH_MTU_MAX + 14u + 8u) /* with two VLAN tags */
#define SN_ETH_FRAME_MIN  14u
#define SN_HASH_KEY	  40u
#define SN_RQT_MAX	  512u /* entries of an RQ table */
#define SN_ETH_INLINE_MAX 1024u

struct sn_eng;
struct sn_qp_eng;

/* Opcodes of Ethernet send WQEs; SEND is SN_OP_SEND. */
enum { SN_OP_TSO = 0x0e, SN_OP_EMPW = 0x29 };

/* ---- objects ---- */

struct sn_td { /* transport domain */
	uint32_t handle, tdn;
	int users;
};

struct sn_tis {
	uint32_t handle, tisn;
	struct sn_td *td;
	uint8_t prio;
	/* lag_tx_port_affinity and its strict bit: only stored and returned by queries */
	uint8_t lag_port;
	bool strict_lag_port;
	int users;
};

/* A set of queue counters. Its identifier has 8 bits. */
struct sn_counter_set {
	uint32_t handle, id;
	uint64_t out_of_buffer; /* frames that found no receive WQE */
	int users;
};

/* A flow counter. DEVX creates several with one command; each has its own identifier. */
struct sn_flow_counter {
	uint32_t handle, id;
	uint32_t n; /* identifiers id to id + n - 1; 1: a single counter */
	struct sn_flow_count {
		uint64_t packets, bytes; /* bytes with the Ethernet header */
	} * count;			 /* n entries */
	int users;
};

/* A table of RQs. An RQ in a table cannot be destroyed. */
struct sn_rqt {
	uint32_t handle, rqtn;
	uint32_t max, n; /* maximum and current number of entries */
	struct sn_qp **rq;
	int users;
};

enum sn_hash_fn { SN_HASH_NONE, SN_HASH_XOR8, SN_HASH_TOEPLITZ };
/* Bits of sn_tir.fields, as rx_hash_field_select.selected_fields in the PRM. */
enum {
	SN_HASH_SRC_IP = 1 << 0,
	SN_HASH_DST_IP = 1 << 1,
	SN_HASH_L4_SPORT = 1 << 2,
	SN_HASH_L4_DPORT = 1 << 3,
	SN_HASH_IPSEC_SPI = 1 << 4,
};

/*
 * Bits of sn_tir.self_lb_block. A TIR does not receive what an SQ of its own transport domain
 * sends, unless a bit permits it. The PRM calls the bits BLOCK_UNICAST and BLOCK_MULTICAST, but
 * Linux sets them to enable loopback (mlx5e_refresh_tirs, MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_UC).
 */
enum { SN_LOOPBACK_UNICAST = 1, SN_LOOPBACK_MULTICAST = 2 };

/* Selects the RQ of a frame: rq (direct), or an entry of rqt by hash (indirect). */
struct sn_tir {
	uint32_t handle, tirn;
	struct sn_td *td;
	struct sn_qp *rq;
	struct sn_rqt *rqt;
	enum sn_hash_fn fn;
	bool symmetric;
	bool ipv6, udp;	 /* types of layer 3 and 4 that are hashed; otherwise IPv4 and TCP */
	uint32_t fields; /* SN_HASH_* */
	uint8_t key[SN_HASH_KEY];
	uint8_t self_lb_block; /* SN_LOOPBACK_* */
	int users;	       /* rules */
};

/*
 * A flow rule. match and mask are the outer headers of fte_match_param, big-endian as in the
 * PRM; a frame matches if it equals match in all bits of mask. Rules are ordered by `order`;
 * the lowest comes first. Rules with equal order, mask and match are one entry with several
 * destinations: each destination receives the frame.
 */
struct sn_rule {
	struct sn_rule *next, **at; /* list of all rules in ascending order */
	uint32_t handle;
	uint64_t order;
	uint8_t match[SN_MATCH_LEN], mask[SN_MATCH_LEN];
	bool egress; /* applies to frames that are sent; drop, count, and copy with sniffer */
	bool drop;
	bool set_tag;
	uint32_t tag;			 /* 24 bits, reported in the CQE */
	bool sniffer;			 /* receives a copy; the search continues */
	struct sn_tir *tir;		 /* NULL: none, with drop or as a counter only */
	struct sn_flow_counter *counter; /* NULL: none */
	uint32_t counter_index;		 /* index in counter->count */
	struct sn_flow_counter
		*bytes_counter;	    /* verbs counters may bind a second one; NULL: none */
	uint64_t packets, bytes;    /* hits of this rule */
	struct sn_matcher *matcher; /* NULL: created by ibv_create_flow */
	struct sn_tir *held;	    /* TIR of the QP that a rule without tir names; NULL: none */
	bool default_miss;	    /* the search continues at SN_ORDER_LEFTOVERS */
	struct sn_rule *partner; /* other half of ALL_DEFAULT or SNIFFER, destroyed too; or NULL */
};

/*
 * sn_rule.order, as the kernel orders its flow tables: sniffer rules, then the priorities of the
 * bypass namespace (32: rules for multicast only), then those of the leftovers namespace.
 */
#define SN_ORDER_SNIFFER   0u
#define SN_ORDER_BYPASS	   1u
#define SN_ORDER_MULTICAST (SN_ORDER_BYPASS + 32)
#define SN_ORDER_LEFTOVERS 64u

/* A DV matcher: the criteria that its rules may use. */
struct sn_matcher {
	uint32_t handle;
	uint8_t mask[SN_MATCH_LEN];
	uint16_t priority;
	uint8_t criteria; /* match_criteria_enable; bit 0: outer headers */
	uint8_t ft_type;  /* mlx5dv_flow_table_type: NIC RX or NIC TX */
	bool beyond;	  /* the mask has bits that this NIC does not match */
	int users;
};

/* Counters of one SQ or RQ, in the statistics report. */
/* clang-format off */
#define SN_ETH_STATS(X)                                                                       \
	X(frames) X(frame_bytes) X(out_of_buffer) X(too_long) X(not_ready) X(tso_wqes)        \
	X(empw_wqes) X(wait_wqes)
/* clang-format on */

struct sn_eth_stats {
#define SN_STAT_FIELD(n) uint64_t n;
	SN_ETH_STATS(SN_STAT_FIELD)
#undef SN_STAT_FIELD
};

/* The part of struct sn_qp that only SQs and RQs have. sn_qp.ts_format, scq (SQ), rcq, srq (RQ;
 * srq: an RMP), sq_buf, sq_wqebbs, rq_buf, rq_wqes, rq_stride, dbr, uar, uidx are used as well. */
struct sn_eth {
	struct sn_tis *tis;		 /* SQ */
	struct sn_counter_set *counters; /* RQ; NULL: none */
	bool empw;			 /* SQ: allow_multi_pkt_send_wqe */
	uint8_t min_inline;		 /* SQ: min_wqe_inline_mode, 0: none */
	bool flush_in_error;		 /* WQEs are completed with an error in state ERR */
	bool keep_vlan;			 /* RQ: vsd; the VLAN tag stays in the frame */
	bool scatter_fcs;		 /* RQ: 4 bytes of FCS follow the frame */
	bool end_pad;			 /* RQ: frames are padded to 64 bytes */
	int users;			 /* RQ: TIRs and RQ tables */
	uint8_t ctx[0x68];		 /* context of a DEVX queue at its creation, for queries */
	struct sn_eth_stats stats;
	struct sn_eth_tx *tx; /* SQ: the engine's state (eth_send.c), NULL before the first WQE */
};

/* ---- eth_objects.c (lock held): sn_*_create() return NULL without memory or numbers ---- */
struct sn_td *sn_td_create(struct sn_dev *dev, struct sn_ctx *ctx);
struct sn_td *sn_find_td(struct sn_dev *dev, uint32_t tdn);
struct sn_tis *sn_tis_create(struct sn_dev *dev, struct sn_ctx *ctx, struct sn_td *td,
			     uint8_t prio);
/* A TIS for a raw packet QP of verbs, in the transport domain of the context. They have no handle
 * in the context. NULL: no memory or number. sn_ctx_tis_put() destroys it. */
struct sn_tis *sn_ctx_tis(struct sn_dev *dev, struct sn_ctx *ctx);
struct sn_td *sn_ctx_td(struct sn_dev *dev, struct sn_ctx *ctx);
void sn_ctx_tis_put(struct sn_dev *dev, struct sn_ctx *ctx, struct sn_tis *tis);
/* Destroys the context's transport domain if it is not in use. */
void sn_ctx_td_put(struct sn_dev *dev, struct sn_ctx *ctx);
struct sn_tis *sn_find_tis(struct sn_dev *dev, uint32_t tisn);
struct sn_counter_set *sn_counter_set_create(struct sn_dev *dev, struct sn_ctx *ctx);
struct sn_counter_set *sn_find_counter_set(struct sn_dev *dev, uint32_t id);
struct sn_flow_counter *sn_flow_counter_create(struct sn_dev *dev, struct sn_ctx *ctx, uint32_t n);
/* Finds the object that has identifier id, and its index in *index. */
struct sn_flow_counter *sn_find_flow_counter(struct sn_dev *dev, uint32_t id, uint32_t *index);
/*
 * Adds an SQ or RQ, whose qp->eth is allocated; on success the device owns both. kind: SN_SQ,
 * SN_RQ (DEVX) or SN_WQ (verbs). Returns 0 or -errno; then the caller still owns both.
 * sn_eth_qp_destroy() fails with -EBUSY while TIRs or tables use an RQ.
 */
int sn_eth_qp_add(struct sn_dev *dev, struct sn_ctx *ctx, struct sn_qp *qp, enum sn_kind kind);
int sn_eth_qp_destroy(struct sn_dev *dev, struct sn_qp *qp);
/* engine.c: changes the state and acts on it. to: SN_QPS_RST, SN_QPS_RTS or SN_QPS_ERR. */
void sn_eth_qp_modify(struct sn_dev *dev, struct sn_qp *qp, enum sn_qp_state to);
/* Changes the queue counters of an RQ. NULL: none. */
void sn_eth_set_counters(struct sn_eth *eth, struct sn_counter_set *counters);
struct sn_qp *sn_find_rq(struct sn_dev *dev, uint32_t rqn); /* an RQ; NULL: none */
/* Copies n entries. max: maximum for later modifications. */
struct sn_rqt *sn_rqt_create(struct sn_dev *dev, struct sn_ctx *ctx, struct sn_qp *const *rq,
			     uint32_t n, uint32_t max);
int sn_rqt_modify(struct sn_rqt *rqt, struct sn_qp *const *rq, uint32_t n); /* 0 or -errno */
struct sn_rqt *sn_find_rqt(struct sn_dev *dev, uint32_t rqtn);
/* Copies *from, without handle and number, and counts the uses of what it names. */
struct sn_tir *sn_tir_create(struct sn_dev *dev, struct sn_ctx *ctx, const struct sn_tir *from);
/* Takes the attributes of *from, except handle, number, td and users. */
void sn_tir_modify(struct sn_tir *tir, const struct sn_tir *from);
/* Each returns 0 or -EBUSY. */
int sn_td_destroy(struct sn_dev *dev, struct sn_td *td);
int sn_tis_destroy(struct sn_dev *dev, struct sn_tis *tis);
int sn_counter_set_destroy(struct sn_dev *dev, struct sn_counter_set *set);
int sn_flow_counter_destroy(struct sn_dev *dev, struct sn_flow_counter *counter);
int sn_rqt_destroy(struct sn_dev *dev, struct sn_rqt *rqt);
int sn_tir_destroy(struct sn_dev *dev, struct sn_tir *tir);
/* Copies *from, counts the uses of TIR, counters and matcher, and inserts the rule. */
struct sn_rule *sn_rule_create(struct sn_dev *dev, struct sn_ctx *ctx, const struct sn_rule *from);
int sn_rule_destroy(struct sn_dev *dev, struct sn_rule *rule);

/* ---- verbs objects: uverbs_{raw,wq,flow,counters}.c (lock held) ---- */

/* A raw packet QP: sq, rq with a direct TIR, or both. An RSS QP (rss): only an indirect TIR.
 * The parts are hidden (SN_PART, or no context); they are destroyed with the QP, which is busy
 * while rules or DEVX objects use them. */
struct sn_raw {
	uint32_t handle;
	struct sn_ctx *ctx;
	bool rss, sig_all;
	struct sn_pd *pd;
	enum sn_qp_state state; /* of the QP; the queues have their own */
	struct sn_qp *sq, *rq;
	struct sn_tir *tir; /* destination of rules; NULL: no receive queue */
};

/* A table of RQs that verbs created. */
struct sn_ind_table {
	uint32_t handle;
	struct sn_rqt *rqt; /* an SN_PART */
};

/* Hash fields that an RSS QP may select: source and destination of IPv4, IPv6, TCP and UDP. */
#define SN_RX_HASH_FIELDS 0xffu

int sn_ind_table_destroy(struct sn_dev *dev, struct sn_ind_table *table);
int sn_raw_destroy(struct sn_dev *dev, void *raw);
struct sn_tir *sn_raw_tir(void *raw); /* where its rules send frames; NULL: it does not receive */
int sn_matcher_destroy(struct sn_dev *dev, struct sn_matcher *matcher);
int sn_counters_destroy(struct sn_dev *dev, void *counters);

/* ---- frames ---- */

struct sn_frame {
	struct sn_frame *next;
	uint64_t due;	      /* time at which an injected delay ends, ns */
	struct in6_addr peer; /* underlay address of the sender or receiver; unspecified: none */
	uint32_t tdn;	      /* transport domain of the SQ that sent it; 0: none */
	bool local;	      /* sent by this process */
	bool corrupt;	      /* injected fault: the receiver must find a wrong FCS */
	bool held;	      /* received, and waited for a receive WQE */
	bool control;	      /* of eth_pause.c; not counted */
	uint16_t sport;	      /* received: UDP source port of the VXLAN packet */
	uint32_t len;	      /* bytes in data */
	uint8_t head[8];      /* the VXLAN header */
	uint8_t data[SN_ETH_FRAME_MAX + 4];
};

/* eth_parse.c: what the NIC knows of a frame. Offsets are from the first byte of the frame. */
struct sn_parsed {
	uint8_t match[SN_MATCH_LEN]; /* outer headers as in fte_match_param */
	uint16_t ethertype;	     /* after the VLAN tags */
	uint32_t l2_len;	     /* Ethernet header with the VLAN tags; 0: too short */
	bool vlan;		     /* has a VLAN tag of type 0x8100 */
	uint16_t tci;
	uint8_t ip; /* 0, 4 or 6 */
	uint8_t l4; /* IPPROTO_TCP, IPPROTO_UDP, or 0 */
	bool fragment;
	bool ip_options;	 /* IPv4 options or IPv6 extension headers */
	bool l3_ok, l4_ok;	 /* checksums were verified and are right; IPv6: l3_ok is set */
	bool l3_bad, l4_bad;	 /* checksums are wrong */
	bool l4_no_csum;	 /* UDP over IPv4 with checksum 0: counts as right */
	uint32_t l3_off, l4_off; /* 0: there is none */
	uint32_t l3_len;	 /* bytes from l3_off to the end of the IP packet */
	uint8_t tcp_flags;
	bool tcp_empty; /* no payload */
	bool malformed; /* a header exceeds the frame or contradicts its length */
};
/* Fills *p. Accepts any bytes; never reads beyond len. */
void sn_eth_parse(const uint8_t *frame, uint32_t len, struct sn_parsed *p);
/* One's complement sum, not folded; continues from `sum`. Odd len: padded with 0. */
uint64_t sn_csum_add(uint64_t sum, const uint8_t *p, uint32_t len);
uint16_t sn_csum_fold(uint64_t sum); /* folds to 16 bits, not inverted */
/* Sum of the pseudo header of the packet at l3_off, for a layer 4 of `len` bytes. */
uint64_t sn_csum_pseudo(const uint8_t *frame, const struct sn_parsed *p, uint32_t len);

/* ---- eth_rss.c ---- */
/* Returns the hash of a frame, and in *type the CQE's rx_hash_type; 0 and type 0: not hashed. */
uint32_t sn_eth_hash(const struct sn_tir *tir, const uint8_t *frame, const struct sn_parsed *p,
		     uint8_t *type);
struct sn_qp *sn_eth_pick(const struct sn_tir *tir, uint32_t hash); /* NULL: the table is empty */

/* ---- flow.c ---- */
void sn_flow_insert(struct sn_dev *dev, struct sn_rule *rule);
void sn_flow_remove(struct sn_rule *rule);
/* Returns the first rule in the list from `from` on that matches; NULL: none. */
struct sn_rule *sn_flow_find(struct sn_rule *from, const struct sn_parsed *p, bool egress);
bool sn_rule_same(const struct sn_rule *a, const struct sn_rule *b); /* order, mask, match */
void sn_rule_hit(struct sn_rule *rule, uint32_t bytes);		     /* counts one frame */

/* ---- eth_recv.c ---- */
struct sn_cqe_eth { /* the fields of a received frame's CQE, host byte order */
	uint32_t hash, flow_tag;
	uint16_t csum, vlan, type; /* type: hdr_type_etc at 0x1c */
	uint8_t hash_type;
};
enum sn_eth_result {
	SN_ETH_TAKEN, /* delivered, or dropped and counted */
	SN_ETH_FULL,  /* an RQ has no WQE; nothing was done (only if may_wait) */
};
/* Applies the rules to a frame and writes it to the RQs. may_wait: with --eth-pause, a frame
 * for a full RQ is not dropped. */
enum sn_eth_result sn_eth_receive(struct sn_eng *e, const struct sn_frame *f, bool may_wait);
/* Gives a copy of a sent frame to the TIR of an egress rule, if it has one. */
void sn_eth_copy(struct sn_eng *e, const struct sn_frame *f, struct sn_rule *rule);
/* Whether any receive rule matches, so that a frame of this process is delivered here, too. */
bool sn_eth_wants(struct sn_eng *e, const struct sn_frame *f);
/* rq.c: number of WQEs posted and not consumed; UINT32_MAX: the DBREC cannot be read */
uint32_t sn_rq_left(struct sn_qp_eng *q);
void sn_eth_rq_flush(struct sn_eng *e, struct sn_qp_eng *q); /* state ERR: completes posted WQEs */

/* ---- eth_send.c, eth_wqe.c, eth_build.c ---- */
/* Executes posted WQEs of an SQ; returns true if it did anything. */
bool sn_eth_sq_serve(struct sn_eng *e, struct sn_qp_eng *q);
bool sn_eth_sq_idle(const struct sn_qp_eng *q); /* needs no service until a doorbell */
/* Time at which a WQE that waits for a time becomes due, ns of sn_now(); 0: none waits. */
uint64_t sn_eth_sq_due(const struct sn_qp_eng *q);
void sn_eth_sq_flush(struct sn_eng *e, struct sn_qp_eng *q);
void sn_eth_sq_reset(struct sn_eng *e, struct sn_qp_eng *q); /* also before the SQ is removed */
/* engine.c calls it for a new state of an SQ or RQ. */
void sn_eth_state(struct sn_eng *e, struct sn_qp_eng *q, enum sn_qp_state from);

/* ---- eth_wire.c ---- */
int sn_eth_open(struct sn_eng *e); /* 0 or -errno; before the first SQ, RQ or rule; idempotent */
void sn_eth_close(struct sn_eng *e);
struct sn_frame *sn_frame_get(struct sn_eng *e); /* NULL: no memory */
void sn_frame_put(struct sn_eng *e, struct sn_frame *f);
/*
 * Sends a frame of an SQ to its peers and to local rules, takes ownership and returns 1. With
 * --eth-pause it may do nothing, and the caller keeps the frame: 0: a receiver is full, call again
 * in a later pass; -EHOSTDOWN: the only receivers are gone.
 */
int sn_eth_transmit(struct sn_eng *e, struct sn_frame *f);
bool sn_eth_poll(struct sn_eng *e);	  /* receives frames; true if there were any */
void sn_eth_flush(struct sn_eng *e);	  /* sends what sn_eth_transmit() collected */
bool sn_eth_busy(const struct sn_eng *e); /* frames wait in memory, so do not sleep long */
bool sn_eth_more(const struct sn_eng *e); /* the socket may have unread packets */
int sn_eth_fd(const struct sn_eng *e);	  /* socket of the wire; -1: none */
/* pcap.c: writes a frame to the capture file; sent: f->peer is the receiver */
void sn_eth_pcap(struct sn_eng *e, const struct sn_frame *f, bool sent);

/* ---- trace_eth.c: callers check cfg.trace first ---- */
/* Returns the name of a send WQE's opcode, or its number in buf (trace.c). */
const char *sn_wqe_name(uint8_t opcode, char buf[8]);
const char *sn_syndrome_name(uint8_t synd, char buf[8]); /* of a CQE; the same */
/* way: "tx" or "rx"; fate: the end of the line, "" or text that begins with a comma. */
void sn_trace_frame(const char *way, const struct sn_frame *f, const char *fate);
/* A received frame, the rule that matches it, and the RQ that it goes to; NULL: none. */
void sn_trace_rule(const struct sn_frame *f, const struct sn_rule *rule, const struct sn_qp *rq);

/* ---- clock.c: the device clock ---- */
/* The device clock as CQEs show it: ns since an arbitrary time (free running), or with real_time
 * seconds << 32 | ns of CLOCK_REALTIME. */
uint64_t sn_clock_stamp(struct sn_eng *e, bool real_time);
void sn_clock_publish(const struct sn_eng *e); /* stores the time in all core clock pages */
/* Whether CQEs of an SQ or RQ have the real-time format. The default format is real time on a
 * device that supports it. */
bool sn_clock_real(const struct sn_dev *dev, const struct sn_qp *qp);

#endif
