/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Private definitions of Ethernet queues: RXQ (receive) and TXQ (send). Each has a context
 * (qp/doca); the firmware objects and the memory of a queue exist while its context runs. rxq.c and
 * txq.c have the settings and life cycles, object.c the firmware commands, device.c the NIC's
 * capabilities. Send queues are in txq.h.
 */
#ifndef GDK_ETH_H
#define GDK_ETH_H

#include "qp/doca/ctx.h"
#include "qp/doca/mmap.h"
#include "umem/slab.h"

#include "qp/export/export.h"

#include "doca_eth_rxq.h"

/* Indices have 16 bits in CQEs and DBRECs, and half of their range must stay unused. */
#define GDK_ETH_DEPTH_MAX 32768u

/* ---- the NIC (device.c) ---- */

struct gdk_eth_caps {
	bool ethernet;	      /* the port has SQs and RQs of its own */
	bool empw;	      /* multi-packet send WQEs (opcode 0x29) */
	bool csum;	      /* the NIC computes checksums */
	bool wait_on_time;    /* WAIT WQEs for a time */
	bool inline_l2;	      /* send WQEs must contain the Ethernet header */
	uint8_t sq_ts, rq_ts; /* timestamp formats of SQs and RQs, GDK_TS_CAP_* */
};
bool gdk_eth_can_wait(const struct gdk_eth_caps *caps);
/* Logs and returns NOT_SUPPORTED if the NIC cannot send at a given time. */
doca_error_t gdk_eth_check_wait(const struct doca_dev *dev, const struct gdk_eth_caps *caps);

doca_error_t gdk_eth_query_caps(struct ibv_context *ctx, struct gdk_eth_caps *caps);
/* As gdk_eth_query_caps(), and logs and returns NOT_SUPPORTED if the NIC has no Ethernet queues. */
doca_error_t gdk_eth_need_caps(const struct doca_dev *dev, struct gdk_eth_caps *caps);
/* Timestamp format of a queue, for a capability GDK_TS_CAP_*: real time where the NIC has it. */
uint32_t gdk_eth_ts_format(uint8_t cap);

/* ---- firmware objects (object.c) ---- */

/* A DEVX object: an SQ, RQ, TIS, transport domain or set of queue counters. obj NULL: none. */
struct gdk_eth_obj {
	struct mlx5dv_devx_obj *obj;
	uint32_t number;
	uint32_t destroy; /* opcode that destroys it */
	const char *kind; /* for messages */
};

/* Creates an object from a command box of len bytes. kind: for messages; destroy: the opcode that
 * destroys it. */
doca_error_t gdk_eth_create_obj(const struct doca_dev *dev, const char *kind, const void *in,
				size_t len, uint32_t destroy, struct gdk_eth_obj *o);
doca_error_t gdk_eth_create_td(const struct doca_dev *dev, struct gdk_eth_obj *td);
doca_error_t gdk_eth_create_tis(const struct doca_dev *dev, uint32_t tdn, struct gdk_eth_obj *tis);
/* Does nothing if o is empty. On success o is empty. */
doca_error_t gdk_eth_destroy_obj(const struct doca_dev *dev, struct gdk_eth_obj *o);

/* What SQs and RQs are created from. */
struct gdk_eth_wq {
	const struct doca_dev *dev;
	uint32_t cqn;
	uint32_t num, stride; /* WQEs or slots, a power of two, and their bytes */
	const struct doca_verbs_umem *umem, *umem_dbr;
	const void *ring, *dbrec; /* in these umems; of an SQ, dbrec is the pair of words */
	uint32_t uar;		  /* SQ */
	uint32_t tisn;		  /* SQ */
	uint32_t counters;	  /* RQ: a set of queue counters, or 0 */
	uint32_t ts_format;
	bool empw; /* SQ */
};

/* Creates a queue and makes it ready. */
doca_error_t gdk_eth_create_sq(const struct gdk_eth_wq *wq, struct gdk_eth_obj *sq);
doca_error_t gdk_eth_create_rq(const struct gdk_eth_wq *wq, struct gdk_eth_obj *rq);
/* The number of packets that an RQ dropped because it had no WQE. A device without queue counters
 * has an empty set. */
doca_error_t gdk_eth_create_counters(const struct doca_dev *dev, struct gdk_eth_obj *set);
doca_error_t gdk_eth_query_counters(const struct doca_dev *dev, const struct gdk_eth_obj *set,
				    uint32_t *out_of_buffer);

/* Creates the CQ of a queue: num CQEs at `ring` and a DBREC at `dbrec`, in memory of unit that is
 * formatted already. */
doca_error_t gdk_eth_create_cq(struct doca_dev *dev, const struct gdk_slab_unit *unit, uint32_t num,
			       const void *ring, const void *dbrec, struct doca_verbs_cq_t **cq);

/* ---- receive queues (rxq.c) ---- */

struct doca_eth_rxq {
	struct doca_ctx ctx; /* with the NIC, the GPU and the state */
	/* settings */
	uint32_t num;	 /* packet slots, a power of two */
	uint32_t stride; /* bytes from one slot to the next */
	struct doca_mmap *mmap;
	uint64_t offset; /* of slot 0 in mmap */
	enum doca_gpu_mem_type mem;
	bool mcst;		   /* kernels wait until packets are visible */
	struct doca_eth_rxq *next; /* in the list of RXQs with a queue_id; protected by its lock */
	uint16_t queue_id;	   /* valid while in the list */
	atomic_int rules; /* flow rules that name the RQ: doca_ctx_stop() then returns IN_USE */
	/* while the context is started */
	struct gdk_slab_unit unit;
	struct doca_verbs_cq_t *cq;
	struct doca_eth_txq *dump;	 /* for mcst, or NULL */
	struct gdk_eth_obj rq, counters; /* rq.number: the RQ number for TIR, RQT and flow rules */
	void *state;			 /* struct doca_gpu_eth_rxq, GPU address */
};

/* Returns whether the context runs, so that rq.number is the number of an RQ in state RDY.
 * Otherwise logs an error that names the function. */
bool gdk_eth_rxq_runs(const struct doca_eth_rxq *rxq, const char *func);
/* Finds the RXQ of a NIC by its doca_eth_rxq_apply_queue_id(), or returns NULL. */
struct doca_eth_rxq *gdk_eth_rxq_find(const struct doca_dev *dev, uint16_t queue_id);
/* Count the flow rules that name the RQ. */
void gdk_eth_rxq_hold(struct doca_eth_rxq *rxq);
void gdk_eth_rxq_release(struct doca_eth_rxq *rxq);

#endif
