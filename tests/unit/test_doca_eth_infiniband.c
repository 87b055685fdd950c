/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A NIC whose port is InfiniBand has no Ethernet queues: neither of them starts.
 */
/* softnic-run: --link-layer infiniband */
#include "eth_queue_rig.h"

static struct queues q;

static void refuse(struct doca_ctx *ctx)
{
	const uint32_t objects = nicfail_live();

	REFUSED(DOCA_ERROR_NOT_SUPPORTED, "the NIC has no Ethernet queues: its port is InfiniBand",
		doca_ctx_start(ctx));
	cr_expect_eq(nicfail_live(), objects, "objects leak");
}

Test(doca_eth_infiniband, no_queue_starts)
{
	struct doca_eth_rxq *rxq;
	struct doca_eth_txq *txq;

	nicfail_find();
	rig_open_dev(&q);
	q.rx_map = rig_map(&q, 64 * SLOT, &q.rx_buf);
	cr_assert_eq(doca_eth_rxq_create(q.dev, 64, SLOT, &rxq), DOCA_SUCCESS);
	cr_assert_eq(doca_eth_rxq_set_pkt_buf(rxq, q.rx_map, 0, 64 * SLOT), DOCA_SUCCESS);
	cr_assert_eq(doca_ctx_set_datapath_on_gpu(doca_eth_rxq_as_doca_ctx(rxq), q.gpu),
		     DOCA_SUCCESS);
	refuse(doca_eth_rxq_as_doca_ctx(rxq));
	cr_assert_eq(doca_eth_txq_create(q.dev, 64, &txq), DOCA_SUCCESS);
	cr_assert_eq(doca_ctx_set_datapath_on_gpu(doca_eth_txq_as_doca_ctx(txq), q.gpu),
		     DOCA_SUCCESS);
	refuse(doca_eth_txq_as_doca_ctx(txq));
	cr_expect_eq(doca_eth_txq_destroy(txq), DOCA_SUCCESS);
	cr_expect_eq(doca_eth_rxq_destroy(rxq), DOCA_SUCCESS);
	cr_expect_eq(doca_mmap_destroy(q.rx_map), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_mem_free(q.gpu, q.rx_buf), DOCA_SUCCESS);
	rig_close_dev(&q);
}
