/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Calls the device functions of Ethernet queues as NVIDIA's samples, Holohub and Aerial do.
 * tests/doca_calls.sh compiles this file as C++17 and as CUDA. It is not executed.
 */
#include <doca_gpunetio_dev_buf.cuh>
#include <doca_gpunetio_dev_eth_rxq.cuh>
#include <doca_gpunetio_dev_eth_txq.cuh>
#include <doca_gpunetio_dev_sem.cuh>

#define CTA   DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_CTA
#define GPU   DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU
#define AUTO  DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO
#define BLOCK DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK
#define WARP  DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP
#define ALONE DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD

[[maybe_unused]] GDK_FN uint64_t receive(struct doca_gpu_eth_rxq *rxq,
					 struct doca_gpu_dev_eth_rxq_attr *attr)
{
	uint64_t first = 0;
	uint32_t num = 0;

	/* the fourth argument is an enumerator, a bool, or left out */
	if (doca_gpu_dev_eth_rxq_recv<BLOCK, DOCA_GPUNETIO_ETH_MCST_AUTO, AUTO,
				      DOCA_GPUNETIO_ETH_RX_ATTR_ALL>(rxq, 64, 1000, &first, &num,
								     attr) ||
	    doca_gpu_dev_eth_rxq_recv<ALONE, DOCA_GPUNETIO_ETH_MCST_DISABLED, AUTO,
				      DOCA_GPUNETIO_ETH_RX_ATTR_NONE>(rxq, 0, 1000, &first, &num,
								      NULL) ||
	    doca_gpu_dev_eth_rxq_recv<WARP, DOCA_GPUNETIO_ETH_MCST_ENABLED, AUTO, true>(
		    rxq, 0, 1000, &first, &num, attr) ||
	    doca_gpu_dev_eth_rxq_recv<BLOCK, DOCA_GPUNETIO_ETH_MCST_AUTO>(rxq, 0, 1000, &first,
									  &num, NULL))
		return 0;
	return doca_gpu_dev_eth_rxq_get_pkt_addr(rxq, first) +
	       doca_gpu_dev_eth_rxq_get_pkt_mkey(rxq) +
	       doca_gpu_dev_eth_rxq_get_pkt_ts(rxq, first) + attr[0].bytes + attr[0].timestamp_ns;
}

[[maybe_unused]] GDK_FN doca_error_t send_all(struct doca_gpu_eth_txq *txq, uint64_t addr,
					      uint32_t mkey)
{
	enum doca_gpu_eth_send_flags flags = DOCA_GPUNETIO_ETH_SEND_FLAG_NONE;
	doca_gpu_dev_eth_ticket_t ticket;
	uint32_t done;
	doca_error_t err;

	if (doca_gpu_dev_eth_get_lane_id() == DOCA_GPUNETIO_ETH_WARP_SIZE - 1)
		flags = DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY;
	err = doca_gpu_dev_eth_txq_send<GPU, DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU, AUTO, WARP>(
		txq, addr, mkey, 64, flags, &ticket);
	if (!err)
		err = doca_gpu_dev_eth_txq_wait_send<CTA, DOCA_GPUNETIO_ETH_SYNC_SCOPE_CTA, AUTO,
						     BLOCK>(txq, 1, addr, mkey, 64, flags, &ticket);
	if (!err)
		err = doca_gpu_dev_eth_txq_poll_completion<DOCA_GPUNETIO_ETH_CQ_POLL_LAST>(
			txq, 1, DOCA_GPUNETIO_ETH_WAIT_FLAG_B, &done);
	if (!err)
		err = doca_gpu_dev_eth_txq_poll_completion_at<GPU,
							      DOCA_GPUNETIO_ETH_SYNC_SCOPE_CTA>(
			txq, 0, DOCA_GPUNETIO_ETH_WAIT_FLAG_B);
	return err;
}

/* Holohub */
[[maybe_unused]] GDK_FN void send_reserved(struct doca_gpu_eth_txq *txq, uint64_t addr,
					   uint32_t mkey)
{
	const uint64_t base = doca_gpu_dev_eth_txq_reserve_wq_slots(txq, 1);
	struct doca_gpu_dev_eth_txq_wqe *wqe = doca_gpu_dev_eth_txq_get_wqe_ptr(txq, base);

	doca_gpu_dev_eth_txq_wqe_prepare_send(txq, wqe, base, addr, mkey, 64,
					      DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY);
	doca_gpu_dev_eth_fence_release<DOCA_GPUNETIO_ETH_SYNC_SCOPE_SYS>();
	doca_gpu_dev_eth_txq_submit(txq, base + 1);
}

/* Aerial */
[[maybe_unused]] GDK_FN uint32_t send_by_hand(struct doca_gpu_eth_txq *txq, uint64_t addr,
					      uint32_t mkey)
{
	uint32_t at = (uint32_t)doca_gpu_dev_eth_atomic_read<uint64_t, GPU>(&txq->wqe_pi);
	struct doca_gpu_dev_eth_txq_wqe *wqe = doca_gpu_dev_eth_txq_get_wqe_ptr(txq, at & 0xFFFF);

	if (doca_gpu_dev_eth_txq_wqe_prepare_wait_time(txq, wqe, at & 0xFFFF, 1,
						       DOCA_GPUNETIO_ETH_SEND_FLAG_NONE))
		return 0;
	wqe = doca_gpu_dev_eth_txq_get_wqe_ptr(txq, at + 1);
	doca_gpu_dev_eth_txq_wqe_prepare_send_empw(txq, wqe, at + 1, 2, 0, addr, mkey, 64,
						   DOCA_GPUNETIO_ETH_SEND_FLAG_NONE);
	doca_gpu_dev_eth_txq_update_dbr(txq, 3);
	doca_gpu_dev_eth_atomic_add<uint64_t, GPU>(&txq->wqe_pi, 3);
	doca_gpu_dev_eth_txq_ring_db(txq, txq->wqe_pi);
	doca_gpu_dev_eth_txq_submit_proxy<GPU, DOCA_GPUNETIO_ETH_SYNC_SCOPE_CTA>(txq, at + 3);
	return at & txq->wqe_mask & DOCA_GPUNETIO_WQE_PI_MASK;
}

[[maybe_unused]] GDK_FN uint16_t port(uint16_t be)
{
	return DOCA_GPUNETIO_ETH_BSWAP16(be);
}
