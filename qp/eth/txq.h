/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Private definition of a send queue of Ethernet packets.
 */
#ifndef GDK_ETH_TXQ_PRIV_H
#define GDK_ETH_TXQ_PRIV_H

#include "qp/eth/eth.h"

#include "doca_eth_txq_gpu_data_path.h"

/* Fewest slots: a multi-packet WQE and a WAIT before it must fit into one ring of the doorbell. */
#define GDK_ETH_TXQ_MIN 32u

struct doca_eth_txq {
	struct doca_ctx ctx;
	/* settings */
	uint32_t num; /* slots, a power of two */
	uint8_t l3, l4;
	bool gpu_completion, wait_on_time;
	enum doca_gpu_mem_type mem;
	enum doca_gpu_dev_verbs_nic_handler want;
	doca_eth_txq_gpu_event_error_send_packet_cb_t on_error;
	doca_eth_txq_gpu_event_notify_send_packet_cb_t on_notify;
	union doca_data error_data, notify_data;
	/* While the context is started. unit: the ring, and behind it the CQ, if kernels handle
	 * completions; its lines have the DBRECs. host_unit: what must be in host memory. The SQ is
	 * exported as a queue pair: qp describes it in the members of a QP's send queue. */
	bool real_time;
	struct gdk_decision decision;
	struct gdk_slab_unit unit, host_unit;
	struct doca_verbs_uar *uar;
	struct doca_verbs_cq_t *cq;
	struct gdk_eth_obj td, tis, sq;
	struct doca_verbs_qp_t qp;
	struct doca_gpu_verbs_qp *exported;
	void *marks, *notes;		   /* struct gdk_eth_tx; GPU addresses */
	uint64_t *notes_cpu;		   /* if the CPU handles completions */
	struct doca_gpu_eth_txq *dev;	   /* GPU address */
	uint64_t cqe_ci, next_wqe, events; /* next CQE; WQE after the last CQE's; reported */
	bool failed;			   /* an error CQE was reported */
	uint64_t timed, early, late_sum, late_max; /* sends at a given time; ns */
};

/* txq_event.c: calls the functions of the program for the CQEs that have arrived. */
bool gdk_eth_txq_progress(struct doca_ctx *ctx);
/* Logs an error unless the context runs. */
bool gdk_eth_txq_runs(const struct doca_eth_txq *txq, const char *func);
/* txq_start.c: the operations of the context. */
doca_error_t gdk_eth_txq_start(struct doca_ctx *ctx);
doca_error_t gdk_eth_txq_stop(struct doca_ctx *ctx);

#endif
