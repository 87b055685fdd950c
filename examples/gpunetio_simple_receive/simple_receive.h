/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* What host and kernel of gpunetio_simple_receive share. */
#ifndef SIMPLE_RECEIVE_H
#define SIMPLE_RECEIVE_H

#include "ethernet.h"

/* What the kernel gets, in memory that its threads can access. The members behind stop are its
 * results. */
struct sr_job {
	struct doca_gpu_eth_rxq *rxq;
	struct et_flow flow;
	uint32_t packets, size, scope;
	uint32_t *seen; /* of each number, how often it came */
	uint32_t stop;	/* set by the host: no more packets come */
	uint32_t batches;
	uint64_t received, bytes, repeated, changed, bad_sums;
	uint64_t first_ns, last_ns; /* times of the first and the last batch */
};

#endif
