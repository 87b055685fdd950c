/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Send queues of Ethernet packets (TXQ) that kernels drive. Return values and threads: see
 * doca_error.h. Calls on one TXQ and its context must run one after another, except
 * doca_eth_txq_gpu_cpu_proxy_progress().
 *
 * A TXQ is created, configured, and started by its context (doca_ctx_start()), after
 * doca_ctx_set_datapath_on_gpu(). The functions for kernels are in doca_eth_txq_gpu_data_path.h.
 */
#ifndef GDK_SDK_DOCA_ETH_TXQ_H
#define GDK_SDK_DOCA_ETH_TXQ_H

#include "doca_ctx.h"
#include "doca_dev.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_eth_txq; /* a send queue */

/** How a NIC waits for the time of a send. */
enum doca_eth_wait_on_time_type {
	DOCA_ETH_WAIT_ON_TIME_TYPE_NONE = 0,   /**< it cannot */
	DOCA_ETH_WAIT_ON_TIME_TYPE_NATIVE = 1, /**< by a WQE that waits for a real time */
	DOCA_ETH_WAIT_ON_TIME_TYPE_DPDK = 2,   /**< by a clock of DPDK: never returned */
};

/**
 * Creates a send queue. Destroy it with doca_eth_txq_destroy().
 *
 * @param max_burst_size number of slots of 64 bytes, rounded up to a power of two and to
 *         at least 32; at most 32768
 * @retval DOCA_ERROR_INVALID_VALUE max_burst_size is 0 or too large
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_eth_txq_create(struct doca_dev *dev, uint32_t max_burst_size,
				 struct doca_eth_txq **eth_txq);

/**
 * Destroys a send queue.
 *
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t doca_eth_txq_destroy(struct doca_eth_txq *eth_txq);

/** Returns the context of a send queue, or NULL if eth_txq is NULL. */
struct doca_ctx *doca_eth_txq_as_doca_ctx(struct doca_eth_txq *eth_txq);

/**
 * Has the NIC compute the checksums of IP headers, at first not.
 *
 * @param enable_l3_chksum_offload 1 or 0
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t doca_eth_txq_set_l3_chksum_offload(struct doca_eth_txq *eth_txq,
						uint8_t enable_l3_chksum_offload);

/**
 * Has the NIC compute the checksums of TCP and UDP, at first not.
 *
 * @param enable_l4_chksum_offload 1 or 0
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t doca_eth_txq_set_l4_chksum_offload(struct doca_eth_txq *eth_txq,
						uint8_t enable_l4_chksum_offload);

/**
 * Returns how a NIC waits for the time of a send: NATIVE if it has WAIT WQEs for a time and real-
 * time clocks in send queues, otherwise NONE.
 *
 * @retval DOCA_ERROR_DRIVER the NIC cannot be opened or queried
 */
doca_error_t
doca_eth_txq_cap_get_wait_on_time_offload_supported(const struct doca_devinfo *devinfo,
						    enum doca_eth_wait_on_time_type *type);

/**
 * Allows sends at a given time. doca_ctx_start() then returns NOT_SUPPORTED if the NIC cannot wait.
 *
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t doca_eth_txq_set_wait_on_time_offload(struct doca_eth_txq *eth_txq);

/**
 * Converts a time to the form that kernels pass to the NIC.
 *
 * @param timestamp_ns nanoseconds since the epoch of the NIC's clock
 * @param wait_on_time_value gets the value
 * @retval DOCA_ERROR_NOT_SUPPORTED without doca_eth_txq_set_wait_on_time_offload()
 */
doca_error_t doca_eth_txq_calculate_timestamp(struct doca_eth_txq *eth_txq, uint64_t timestamp_ns,
					      uint64_t *wait_on_time_value);

/**
 * Gives a running send queue a number. Nothing depends on it.
 *
 * @retval DOCA_ERROR_BAD_STATE the context does not run
 */
doca_error_t doca_eth_txq_apply_queue_id(struct doca_eth_txq *eth_txq, uint16_t queue_id);

#ifdef __cplusplus
}
#endif

#endif
