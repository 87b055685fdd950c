/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* What host and kernel of gpunetio_send_wait_time share. */
#ifndef SEND_WAIT_TIME_H
#define SEND_WAIT_TIME_H

#include "ethernet.h"

/* What the kernel gets, in memory that its threads can access. The members behind stop are its
 * results. */
struct wt_job {
	struct doca_gpu_eth_txq *txq;
	struct doca_gpu_eth_rxq *rxq;
	struct et_flow flow;
	uint8_t *frames; /* registered memory of a packet of each thread */
	uint32_t key;	 /* of this memory, big-endian */
	uint32_t bursts, size;
	const uint64_t *at, *when; /* of each burst: its time in ns, and in the form of the NIC */
	uint64_t quiet_ns;	   /* limit of a receive */
	uint32_t *seen;		   /* of each number, how often it came */
	uint64_t received, repeated, changed, bad_sums;
	uint64_t early, late_sum, late_max; /* of the arrivals; ns */
};

#endif
