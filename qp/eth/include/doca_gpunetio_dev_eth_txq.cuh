/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Sending Ethernet packets in kernels. gdk_sdk_eth_txq_dev.h describes the queue, and the ways to
 * post. Memory keys are big-endian.
 *
 * Template arguments: resource_sharing_mode says which threads use the queue at the same time.
 * sync_scope has no effect: the library knows which fences a queue needs. nic_handler AUTO is the
 * handler of the queue. exec_scope says which threads call the function together.
 */
#ifndef GDK_SDK_DOCA_GPUNETIO_DEV_ETH_TXQ_CUH
#define GDK_SDK_DOCA_GPUNETIO_DEV_ETH_TXQ_CUH

#include "gdk_sdk_eth_dev.cuh"
#include "gdk_sdk_eth_txq_dev.h"

/** Returns template arguments as a struct gdk_how. The values of the enumerations are equal. */
template <enum doca_gpu_dev_eth_resource_sharing_mode share, enum doca_gpu_dev_eth_nic_handler nic,
	  enum doca_gpu_dev_eth_exec_scope exec>
GDK_FN struct gdk_how gdk_eth_how(void)
{
	static_assert((int)nic != (int)DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR,
		      "an Ethernet send queue has no mode without DBREC: the SQ context lacks the "
		      "field; use GPU_SM_DB or CPU_PROXY");
	return gdk_how((gdk_mode_t)share, (gdk_handler_t)nic, (gdk_exec_t)exec, 0);
}

/** Sends a packet for each thread of exec_scope. out_ticket gets the index of the WQE. */
template <enum doca_gpu_dev_eth_resource_sharing_mode resource_sharing_mode =
		  DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU,
	  enum doca_gpu_dev_eth_sync_scope sync_scope = DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU,
	  enum doca_gpu_dev_eth_nic_handler nic_handler = DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO,
	  enum doca_gpu_dev_eth_exec_scope exec_scope = DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD>
GDK_FN doca_error_t doca_gpu_dev_eth_txq_send(struct doca_gpu_eth_txq *txq, uint64_t addr,
					      uint32_t mkey, size_t nbytes,
					      enum doca_gpu_eth_send_flags flags,
					      doca_gpu_dev_eth_ticket_t *out_ticket)
{
	return gdk_eth_error(gdk_eth_send(
		txq, gdk_eth_pkt(addr, mkey, (uint32_t)nbytes), (uint32_t)flags,
		gdk_eth_how<resource_sharing_mode, nic_handler, exec_scope>(), out_ticket));
}

/** As doca_gpu_dev_eth_txq_send(); the NIC sends the packets not before a time
 * (doca_eth_txq_calculate_timestamp()). A warp or block has one time, that of its first thread.
 * @retval DOCA_ERROR_NOT_SUPPORTED without doca_eth_txq_set_wait_on_time_offload() */
template <enum doca_gpu_dev_eth_resource_sharing_mode resource_sharing_mode =
		  DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU,
	  enum doca_gpu_dev_eth_sync_scope sync_scope = DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU,
	  enum doca_gpu_dev_eth_nic_handler nic_handler = DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO,
	  enum doca_gpu_dev_eth_exec_scope exec_scope = DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD>
GDK_FN doca_error_t doca_gpu_dev_eth_txq_wait_send(struct doca_gpu_eth_txq *txq, uint64_t when,
						   uint64_t addr, uint32_t mkey, size_t nbytes,
						   enum doca_gpu_eth_send_flags flags,
						   doca_gpu_dev_eth_ticket_t *out_ticket)
{
	return gdk_eth_error(gdk_eth_wait(
		txq, when, gdk_eth_pkt(addr, mkey, (uint32_t)nbytes), (uint32_t)flags,
		gdk_eth_how<resource_sharing_mode, nic_handler, exec_scope>(), out_ticket));
}

/**
 * Takes the completions of the next WQEs with SEND_FLAG_NOTIFY.
 *
 * @param num_compl number of them
 * @param wait_flag B: waits for all; NB: takes those that have arrived, with CQ_POLL_LAST all or
 *         none
 * @param out_num_compl gets the number that was taken
 * @retval DOCA_ERROR_NOT_SUPPORTED without doca_eth_txq_gpu_set_completion_on_gpu()
 * @retval DOCA_ERROR_IO_FAILED a send has failed
 * @retval DOCA_ERROR_CONNECTION_ABORTED the host has aborted the queue
 * @retval DOCA_ERROR_TIME_OUT the time limit was reached
 */
template <enum doca_gpu_dev_eth_cq_poll_mode poll_mode = DOCA_GPUNETIO_ETH_CQ_POLL_LAST,
	  enum doca_gpu_dev_eth_resource_sharing_mode resource_sharing_mode =
		  DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU>
GDK_FN doca_error_t doca_gpu_dev_eth_txq_poll_completion(struct doca_gpu_eth_txq *txq,
							 uint32_t num_compl,
							 enum doca_gpu_dev_eth_wait_flag wait_flag,
							 uint32_t *out_num_compl)
{
	return gdk_eth_error(gdk_eth_poll(txq, num_compl,
					  poll_mode == DOCA_GPUNETIO_ETH_CQ_POLL_LAST,
					  wait_flag == DOCA_GPUNETIO_ETH_WAIT_FLAG_B,
					  (gdk_mode_t)resource_sharing_mode, out_num_compl));
}

/** Polls for one completion: that of the WQE with SEND_FLAG_NOTIFY written as number index,
 * from 0. AGAIN: it has not arrived (WAIT_FLAG_NB). Other errors are those of
 * doca_gpu_dev_eth_txq_poll_completion(). */
template <enum doca_gpu_dev_eth_resource_sharing_mode resource_sharing_mode =
		  DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU,
	  enum doca_gpu_dev_eth_sync_scope sync_scope = DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU>
GDK_FN doca_error_t doca_gpu_dev_eth_txq_poll_completion_at(
	struct doca_gpu_eth_txq *txq, uint64_t index, enum doca_gpu_dev_eth_wait_flag wait_flag)
{
	return gdk_eth_error(gdk_eth_poll_at(txq, index, wait_flag == DOCA_GPUNETIO_ETH_WAIT_FLAG_B,
					     (gdk_mode_t)resource_sharing_mode));
}

/* ---- step by step ---- */

/** Reserves slots, waits for room, and returns the index of the first one. */
template <enum doca_gpu_dev_eth_resource_sharing_mode resource_sharing_mode =
		  DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU>
GDK_FN uint64_t doca_gpu_dev_eth_txq_reserve_wq_slots(struct doca_gpu_eth_txq *txq, uint32_t count)
{
	uint64_t idx = 0;

	(void)gdk_eth_reserve(txq, count, (gdk_mode_t)resource_sharing_mode, &idx);
	return idx;
}

/** Returns the slot of an index. */
GDK_FN struct doca_gpu_dev_eth_txq_wqe *
doca_gpu_dev_eth_txq_get_wqe_ptr(struct doca_gpu_eth_txq *txq, uint64_t wqe_idx)
{
	return gdk_eth_wqe_ptr(txq, wqe_idx);
}

/** Writes a send to a slot. wqe_ptr must be that of wqe_idx. */
GDK_FN doca_error_t doca_gpu_dev_eth_txq_wqe_prepare_send(struct doca_gpu_eth_txq *txq,
							  struct doca_gpu_dev_eth_txq_wqe *wqe_ptr,
							  uint64_t wqe_idx, uint64_t addr,
							  uint32_t mkey, size_t nbytes,
							  enum doca_gpu_eth_send_flags flags)
{
	(void)wqe_ptr;
	gdk_eth_wqe_send(txq, wqe_idx, gdk_eth_pkt(addr, mkey, (uint32_t)nbytes), (uint32_t)flags);
	return DOCA_SUCCESS;
}

/** Writes one packet of a multi-packet WQE of num_pkts packets: see gdk_eth_wqe_empw(). wqe_idx is
 * the slot of this packet, and wqe_ptr its address. */
GDK_FN doca_error_t doca_gpu_dev_eth_txq_wqe_prepare_send_empw(
	struct doca_gpu_eth_txq *txq, struct doca_gpu_dev_eth_txq_wqe *wqe_ptr, uint64_t wqe_idx,
	uint32_t num_pkts, uint32_t pkt_idx, uint64_t addr, uint32_t mkey, size_t nbytes,
	enum doca_gpu_eth_send_flags flags)
{
	(void)wqe_ptr;
	return gdk_eth_error(gdk_eth_wqe_empw(txq, wqe_idx, num_pkts, pkt_idx,
					      gdk_eth_pkt(addr, mkey, (uint32_t)nbytes),
					      (uint32_t)flags));
}

/** Writes a wait for a time to one slot: see gdk_eth_wqe_wait(). */
GDK_FN doca_error_t doca_gpu_dev_eth_txq_wqe_prepare_wait_time(
	struct doca_gpu_eth_txq *txq, struct doca_gpu_dev_eth_txq_wqe *wqe_ptr, uint64_t wqe_idx,
	uint64_t when, enum doca_gpu_eth_send_flags flags)
{
	(void)wqe_ptr;
	return gdk_eth_error(gdk_eth_wqe_wait(txq, wqe_idx, when, (uint32_t)flags));
}

/** Rings for all slots below prod_index: see gdk_eth_submit(). */
template <enum doca_gpu_dev_eth_resource_sharing_mode resource_sharing_mode =
		  DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU,
	  enum doca_gpu_dev_eth_sync_scope sync_scope = DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU,
	  enum doca_gpu_dev_eth_nic_handler nic_handler = DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO>
GDK_FN void doca_gpu_dev_eth_txq_submit(struct doca_gpu_eth_txq *txq, uint64_t prod_index)
{
	gdk_eth_submit(txq, prod_index,
		       gdk_eth_how<resource_sharing_mode, nic_handler,
				   DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD>());
}

/** As doca_gpu_dev_eth_txq_submit(), for a queue with doca_eth_txq_gpu_set_uar_on_cpu(). On another
 * queue, it rings as that queue does. */
template <enum doca_gpu_dev_eth_resource_sharing_mode resource_sharing_mode =
		  DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU,
	  enum doca_gpu_dev_eth_sync_scope sync_scope = DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU>
GDK_FN void doca_gpu_dev_eth_txq_submit_proxy(struct doca_gpu_eth_txq *txq, uint64_t prod_index)
{
	doca_gpu_dev_eth_txq_submit<resource_sharing_mode, sync_scope>(txq, prod_index);
}

/** Announces that doca_gpu_dev_eth_txq_ring_db() will ring for WQEs that are written. It orders the
 * WQEs that the thread has written before what follows. The DBREC is stored by
 * doca_gpu_dev_eth_txq_ring_db(): a NIC that reads it earlier would send earlier. */
GDK_FN void doca_gpu_dev_eth_txq_update_dbr(struct doca_gpu_eth_txq *txq, uint64_t prod_index)
{
	(void)prod_index;
	gdk_nic_fence(gdk_ldc32(&gdk_state_of_qp(&txq->qp)->flags));
}

/** Rings for all slots below prod_index, which the caller has written: DBREC and register, or the
 * counter of the CPU proxy. */
template <enum doca_gpu_dev_eth_sync_scope sync_scope = DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU>
GDK_FN void doca_gpu_dev_eth_txq_ring_db(struct doca_gpu_eth_txq *txq, uint64_t prod_index)
{
	doca_gpu_dev_eth_txq_submit<DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU, sync_scope>(
		txq, prod_index);
}

#endif
