/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Waiting until received packets are visible in GPU memory (MCST), for GPUs before Hopper: a DUMP
 * WQE makes the NIC read the last packet, which is ordered behind its writes, and the read pushes
 * them into the memory. The WQE is posted to a send queue beside the receive queue.
 */
#ifndef GDK_SDK_ETH_MCST_DEV_H
#define GDK_SDK_ETH_MCST_DEV_H

#include "gdk_sdk_eth_rxq_dev.h"
#include "gdk_sdk_eth_txq_dev.h"

/* Posts the DUMP of a packet and waits for it. Returns 0, or the status that ended the send queue.
 */
GDK_FN int gdk_eth_dump(struct doca_gpu_eth_txq *txq, struct gdk_eth_pkt pkt)
{
	const struct gdk_how how = gdk_how(GDK_EXCLUSIVE, GDK_AUTO, GDK_THREAD, 0);
	struct doca_gpu_dev_verbs_wqe *wqe;
	struct gdk_post p;
	int err = gdk_post_begin(&txq->qp, &p, 1, 0, how);

	if (err)
		return err;
	wqe = gdk_get_wqe_ptr(&txq->qp, p.idx);
	gdk_eth_ctrl(txq, gdk_seg(wqe, 0), p.idx, DOCA_GPUNETIO_IB_MLX5_OPCODE_DUMP, 2,
		     DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY);
	gdk_eth_data(gdk_seg(wqe, 1), pkt);
	gdk_post_end(&p, how);
	return gdk_wait(&txq->qp, p.idx, GDK_EXCLUSIVE);
}

/** After gdk_eth_recv(), by the same threads: waits until the packets of the batch are visible.
 * needed 0: only if the host created the send queue (doca_eth_rxq_gpu_enable_mcst_qp()), otherwise
 * -EOPNOTSUPP without it. Returns 0, or the status that ended the send queue; the receive queue
 * then ends with it. */
GDK_FN int gdk_eth_mcst(struct doca_gpu_eth_rxq *rxq, const struct gdk_eth_batch *batch, int needed,
			enum doca_gpu_dev_eth_exec_scope exec)
{
	const uint64_t last = batch->first + batch->num - 1, mcst = gdk_ldc64(&rxq->mcst);
	int err;

	if (!mcst)
		return needed ? -EOPNOTSUPP : 0;
	if (!batch->num)
		return 0;
	if (gdk_eth_rank(exec) == 0) {
		err = gdk_eth_dump(
			(struct doca_gpu_eth_txq *)(uintptr_t)mcst,
			gdk_eth_pkt(gdk_eth_pkt_addr(rxq, last), gdk_ldc32(&rxq->mkey), 1));
		if (err)
			gdk_eth_rxq_end(rxq, last, err);
		gdk_fence_acq_rel(GDK_SCOPE_SYS); /* the DUMP's CQE, then the packets */
	}
	gdk_eth_sync(exec);
	return gdk_eth_rxq_status(rxq);
}

#endif
