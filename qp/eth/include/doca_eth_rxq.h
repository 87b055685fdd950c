/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Receive queues of Ethernet packets (RXQ) that kernels drive. Return values and threads: see
 * doca_error.h. Calls on one RXQ and its context must run one after another.
 *
 * A RXQ is created, configured, and started by its context (doca_ctx_start()), after
 * doca_ctx_set_datapath_on_gpu(). Packets come to it by flow rules. Its buffer has one slot for
 * each packet; doca_gpunetio_dev_eth_rxq.cuh says when a slot is overwritten. The functions for
 * kernels are in doca_eth_rxq_gpu_data_path.h.
 */
#ifndef GDK_SDK_DOCA_ETH_RXQ_H
#define GDK_SDK_DOCA_ETH_RXQ_H

#include "doca_ctx.h"
#include "doca_dev.h"
#include "doca_mmap.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_eth_rxq;	 /* a receive queue */
struct doca_gpu_eth_rxq; /* a receive queue, as kernels use it */

/** Kinds of receive queues. */
enum doca_eth_rxq_type {
	DOCA_ETH_RXQ_TYPE_CYCLIC = 0,	       /**< one buffer with a slot for each packet */
	DOCA_ETH_RXQ_TYPE_MANAGED_MEMPOOL = 1, /**< for receiving by the CPU: not supported */
};

/**
 * Creates a receive queue. Destroy it with doca_eth_rxq_destroy().
 *
 * @param max_burst_size number of packet slots, rounded up to a power of two, at most 65536;
 *        a queue has 32768 slots then, too
 * @param max_packet_size bytes of a slot, rounded up to a multiple of 64, at most 16384
 * @retval DOCA_ERROR_INVALID_VALUE a size is 0 or too large
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_eth_rxq_create(struct doca_dev *dev, uint32_t max_burst_size,
				 uint32_t max_packet_size, struct doca_eth_rxq **eth_rxq);

/**
 * Destroys a receive queue.
 *
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t doca_eth_rxq_destroy(struct doca_eth_rxq *eth_rxq);

/** Returns the context of a receive queue, or NULL if eth_rxq is NULL. */
struct doca_ctx *doca_eth_rxq_as_doca_ctx(struct doca_eth_rxq *eth_rxq);

/**
 * Sets the kind, at first CYCLIC.
 *
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 * @retval DOCA_ERROR_NOT_SUPPORTED MANAGED_MEMPOOL
 */
doca_error_t doca_eth_rxq_set_type(struct doca_eth_rxq *eth_rxq, enum doca_eth_rxq_type type);

/**
 * Returns the bytes that the buffer of a receive queue needs: slots times bytes of a slot, both
 * rounded up as by doca_eth_rxq_create().
 *
 * @param type CYCLIC
 * @param rate not used
 * @param pkt_max_process_time not used
 * @param max_packet_size bytes of a packet
 * @param max_burst_size number of packets
 * @param log_max_lro_pkt_sz not used
 * @param head_size not used
 * @param tail_size not used
 * @param buf_size gets the number of bytes
 * @retval DOCA_ERROR_INVALID_VALUE a size is 0, or the buffer would have 4 GiB or more
 * @retval DOCA_ERROR_NOT_SUPPORTED MANAGED_MEMPOOL
 */
doca_error_t doca_eth_rxq_estimate_packet_buf_size(enum doca_eth_rxq_type type, uint32_t rate,
						   uint32_t pkt_max_process_time,
						   uint32_t max_packet_size,
						   uint32_t max_burst_size,
						   uint8_t log_max_lro_pkt_sz, uint16_t head_size,
						   uint16_t tail_size, uint32_t *buf_size);

/**
 * Sets the buffer: a range of a started mmap of the NIC of the queue. The mmap cannot be destroyed
 * while the context is started.
 *
 * @param mmap_offset start of the range in the mmap, a multiple of 64
 * @param mmap_len bytes, at least those of doca_eth_rxq_estimate_packet_buf_size()
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t doca_eth_rxq_set_pkt_buf(struct doca_eth_rxq *eth_rxq, struct doca_mmap *mmap,
				      uint32_t mmap_offset, uint32_t mmap_len);

/**
 * Gives a running receive queue a number, by which flow rules name it.
 *
 * @retval DOCA_ERROR_BAD_STATE the context does not run
 * @retval DOCA_ERROR_ALREADY_EXIST another receive queue of the NIC has this number
 */
doca_error_t doca_eth_rxq_apply_queue_id(struct doca_eth_rxq *eth_rxq, uint16_t queue_id);

/**
 * Returns the NIC's number of a running receive queue (RQ number).
 *
 * @retval DOCA_ERROR_BAD_STATE the context does not run
 */
doca_error_t doca_eth_rxq_get_hw_queue_num(const struct doca_eth_rxq *eth_rxq,
					   uint32_t *hw_queue_num);

/**
 * Returns the struct of a running receive queue that kernels get as an argument.
 *
 * @param gpu_eth_rxq gets a GPU address, valid until the context is stopped
 * @retval DOCA_ERROR_BAD_STATE the context does not run
 */
doca_error_t doca_eth_rxq_get_gpu_handle(const struct doca_eth_rxq *eth_rxq,
					 struct doca_gpu_eth_rxq **gpu_eth_rxq);

#ifdef __cplusplus
}
#endif

#endif
