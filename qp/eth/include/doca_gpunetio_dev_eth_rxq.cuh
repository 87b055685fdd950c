/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Receiving Ethernet packets in kernels. gdk_sdk_eth_rxq_dev.h describes the queue, and when a
 * packet slot is overwritten.
 */
#ifndef GDK_SDK_DOCA_GPUNETIO_DEV_ETH_RXQ_CUH
#define GDK_SDK_DOCA_GPUNETIO_DEV_ETH_RXQ_CUH

#include "gdk_sdk_eth_dev.cuh"
#include "gdk_sdk_eth_rxq_dev.h"
#include "gdk_sdk_eth_mcst_dev.h"

/**
 * Receives packets by the threads of exec_scope, all of which call this with the same arguments.
 * Waits until max_pkts have arrived or timeout_ns are over; with max_pkts 0, until at least one has
 * arrived and the next one has not. Releases the packets of the call before. A block may have any
 * number of threads; a warp must be whole.
 *
 * @tparam mcst whether to wait until the packets are visible in GPU memory
 * @tparam nic_handler not used: no doorbell register is written
 * @tparam attr 0 or RX_ATTR_NONE: out_attr is not used; else the attributes of the packets are
 *         stored
 * @param max_pkts most packets to return; 0: no limit
 * @param out_first_pkt_idx gets the index of the first packet
 * @param out_pkt_num gets the number of packets
 * @param out_attr an array of max_pkts elements, or NULL
 * @retval DOCA_SUCCESS also if no packet has arrived
 * @retval DOCA_ERROR_IO_FAILED the NIC reported an error, or the CQ was overrun: on this call and
 *         all later ones
 * @retval DOCA_ERROR_CONNECTION_ABORTED the host has aborted the queue
 * @retval DOCA_ERROR_NOT_SUPPORTED mcst is ENABLED without doca_eth_rxq_gpu_enable_mcst_qp()
 */
template <enum doca_gpu_dev_eth_exec_scope exec_scope = DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK,
	  enum doca_gpu_dev_eth_mcst mcst = DOCA_GPUNETIO_ETH_MCST_AUTO,
	  enum doca_gpu_dev_eth_nic_handler nic_handler = DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO,
	  int attr = DOCA_GPUNETIO_ETH_RX_ATTR_NONE>
GDK_FN doca_error_t doca_gpu_dev_eth_rxq_recv(struct doca_gpu_eth_rxq *rxq, uint32_t max_pkts,
					      uint64_t timeout_ns, uint64_t *out_first_pkt_idx,
					      uint32_t *out_pkt_num,
					      struct doca_gpu_dev_eth_rxq_attr *out_attr)
{
	const uint32_t size = gdk_eth_size(exec_scope);
	struct gdk_eth_batch batch;
	uint32_t i;
	int err = gdk_eth_recv(rxq, max_pkts, timeout_ns, 0, exec_scope, &batch);

	if (!err && mcst != DOCA_GPUNETIO_ETH_MCST_DISABLED)
		err = gdk_eth_mcst(rxq, &batch, mcst == DOCA_GPUNETIO_ETH_MCST_ENABLED, exec_scope);
	if (attr && out_attr)
		for (i = gdk_eth_rank(exec_scope); i < batch.num; i += size) {
			out_attr[i].bytes = gdk_eth_pkt_bytes(rxq, batch.first + i);
			out_attr[i].timestamp_ns = gdk_eth_pkt_ts(rxq, batch.first + i);
		}
	gdk_eth_out64(out_first_pkt_idx, batch.first);
	gdk_eth_out32(out_pkt_num, batch.num);
	gdk_eth_sync(exec_scope); /* the results of all threads may be in shared memory */
	return gdk_eth_error(err);
}

/** Returns the address of a packet. */
GDK_FN uint64_t doca_gpu_dev_eth_rxq_get_pkt_addr(const struct doca_gpu_eth_rxq *rxq, uint64_t idx)
{
	return gdk_eth_pkt_addr(rxq, idx);
}

/** Returns the key of the buffer, big-endian, for sends out of it. */
GDK_FN uint32_t doca_gpu_dev_eth_rxq_get_pkt_mkey(const struct doca_gpu_eth_rxq *rxq)
{
	return gdk_ldc32(&rxq->mkey);
}

/** Returns the time of arrival of a packet that is not released, in nanoseconds (see struct
 * doca_gpu_dev_eth_rxq_attr). */
GDK_FN uint64_t doca_gpu_dev_eth_rxq_get_pkt_ts(const struct doca_gpu_eth_rxq *rxq, uint64_t idx)
{
	return gdk_eth_pkt_ts(rxq, idx);
}

#endif
