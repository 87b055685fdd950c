/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The receiver of a run alone: the CPU, by the same functions that kernels use.
 */
#include "gdk_sdk_eth_rxq_dev.h"

#include "queues.h"
#include "simple_send.h"

#define SUMS_OK (GDK_ETH_L3_OK | GDK_ETH_L4_OK)

int ss_check(struct doca_gpu_eth_rxq *rxq, const struct et_flow *flow, uint32_t size,
	     struct et_account *a)
{
	struct gdk_eth_batch batch;
	uint64_t i, end;
	int rc = gdk_eth_recv(rxq, 0, 0, 0, DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD, &batch);

	if (rc)
		return ex_error("the receive queue ended: error %d", rc);
	for (i = batch.first, end = i + batch.num; i < end; i++)
		et_account_packet(a, flow, (const uint8_t *)(uintptr_t)gdk_eth_pkt_addr(rxq, i),
				  gdk_eth_pkt_bytes(rxq, i), size,
				  (gdk_eth_pkt_checks(rxq, i) & SUMS_OK) == SUMS_OK);
	return 0;
}
