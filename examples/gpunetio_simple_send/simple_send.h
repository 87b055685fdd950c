/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* What the parts of gpunetio_simple_send share. */
#ifndef SIMPLE_SEND_H
#define SIMPLE_SEND_H

#include "ethernet.h"

/* What the kernel gets, in memory that its threads can access. */
struct ss_job {
	struct doca_gpu_eth_txq *txq;
	struct et_flow flow;
	uint8_t *frames;      /* registered memory of `each` packets for each thread */
	uint32_t key;	      /* of this memory, big-endian */
	uint32_t first, each; /* number of the first packet; packets of each thread */
	uint32_t size, scope;
	bool multi; /* several packets in a WQE */
};

/* check.c: takes the packets that the receive queue of the CPU has, into account. */
int ss_check(struct doca_gpu_eth_rxq *rxq, const struct et_flow *flow, uint32_t size,
	     struct et_account *a);

#endif
