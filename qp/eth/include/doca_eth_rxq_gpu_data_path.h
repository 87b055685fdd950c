/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Receive queues of Ethernet packets for kernels: settings and counters. Return
 * values and threads: see doca_error.h.
 */
#ifndef GDK_SDK_DOCA_ETH_RXQ_GPU_DATA_PATH_H
#define GDK_SDK_DOCA_ETH_RXQ_GPU_DATA_PATH_H

#include "doca_eth_rxq.h"
#include "doca_gpunetio_eth_def.h"
#include "host/gdk_gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Sets the memory of the queue, its CQEs and its DBREC: GPU, GPU_CPU or CPU_GPU. Without this call
 * it is GPU memory, or with GDAKI_QUEUE_MEM=cpu_gpu host memory.
 *
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t doca_eth_rxq_gpu_set_rq_mem_type(struct doca_eth_rxq *eth_rxq,
					      enum doca_gpu_mem_type mem_type);

/**
 * Creates a send queue beside the receive queue, on which kernels wait until packets are visible in
 * GPU memory (MCST). GPUs before Hopper need it; kernels then use it with MCST_AUTO.
 *
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t doca_eth_rxq_gpu_enable_mcst_qp(struct doca_eth_rxq *eth_rxq);

/** Counters of a receive queue since its start. */
struct gdk_eth_rxq_counters {
	uint64_t packets;	/**< packets that receives returned */
	uint64_t dbrecs;	/**< DBREC updates */
	uint64_t out_of_buffer; /**< packets that the NIC dropped because no slot was free */
	int32_t status;		/**< 0, or the negative errno that ended the queue */
	uint64_t error_packet;	/**< index of the packet of that error; UINT64_MAX: none */
};

/**
 * Returns the counters of a running receive queue. They may lag behind a kernel that runs.
 *
 * @retval DOCA_ERROR_BAD_STATE the context does not run
 */
doca_error_t gdk_eth_rxq_get_counters(const struct doca_eth_rxq *eth_rxq,
				      struct gdk_eth_rxq_counters *counters);

/**
 * Ends all receives of kernels on a running queue, now and later, with -ECANCELED. Any thread may
 * call this, also while kernels run.
 *
 * @retval DOCA_ERROR_BAD_STATE the context does not run
 */
doca_error_t gdk_eth_rxq_abort(struct doca_eth_rxq *eth_rxq);

#ifdef __cplusplus
}
#endif

#endif
