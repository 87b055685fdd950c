/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Types and constants of Ethernet queues that host and kernels share.
 */
#ifndef GDK_SDK_DOCA_GPUNETIO_ETH_DEF_H
#define GDK_SDK_DOCA_GPUNETIO_ETH_DEF_H

#include "doca_gpunetio_verbs_def.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Threads of a warp. */
#define DOCA_GPUNETIO_ETH_WARP_SIZE 32

/** Low bits of an index of WQEs that the NIC knows. */
#define DOCA_GPUNETIO_WQE_PI_MASK 0xffff

#ifndef DOCA_GPUNETIO_VOLATILE
/** Accesses a variable in memory, not in a register. */
#define DOCA_GPUNETIO_VOLATILE(x) (*(volatile __typeof__(x) *)&(x))
#endif

/** Swaps the bytes of 16 bits. */
#define DOCA_GPUNETIO_ETH_BSWAP16(v) \
	((uint16_t)((((uint16_t)(v)&0x00ffu) << 8) | (((uint16_t)(v)&0xff00u) >> 8)))

/** Threads that execute a function together. */
enum doca_gpu_dev_eth_exec_scope {
	DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD = 0, /**< each thread by itself */
	DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP = 1,	 /**< all threads of a warp */
	DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK = 2,	 /**< all threads of a block */
};

/** Threads that use a queue at the same time. */
enum doca_gpu_dev_eth_resource_sharing_mode {
	DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_EXCLUSIVE = 0, /**< one thread */
	DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_CTA = 1,       /**< threads of one block */
	DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU = 2,       /**< threads of the GPU */
};

/** Which threads and devices see stores that were executed before. */
enum doca_gpu_dev_eth_sync_scope {
	DOCA_GPUNETIO_ETH_SYNC_SCOPE_SYS = 0, /**< all */
	DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU = 1, /**< threads of the GPU */
	DOCA_GPUNETIO_ETH_SYNC_SCOPE_CTA = 2, /**< threads of the block */
};

/** How a doorbell is rung. */
enum doca_gpu_dev_eth_nic_handler {
	DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO = 0,	     /**< as the queue was created */
	DOCA_GPUNETIO_ETH_NIC_HANDLER_CPU_PROXY = 1, /**< by a CPU thread */
	DOCA_GPUNETIO_ETH_NIC_HANDLER_GPU_SM_DB = 2, /**< by a GPU thread */
	DOCA_GPUNETIO_ETH_NIC_HANDLER_GPU_SM_BF = 6, /**< by a GPU thread, with a copy of the WQE */
};

/** Whether a receive waits until packets are visible in GPU memory by a WQE of the NIC. */
enum doca_gpu_dev_eth_mcst {
	DOCA_GPUNETIO_ETH_MCST_DISABLED = 0, /**< no */
	DOCA_GPUNETIO_ETH_MCST_ENABLED = 1, /**< yes; doca_eth_rxq_gpu_enable_mcst_qp() is needed */
	DOCA_GPUNETIO_ETH_MCST_AUTO = 2,    /**< if doca_eth_rxq_gpu_enable_mcst_qp() was called */
};

/** Which attributes of packets a receive returns. As a bool, true selects all. */
enum doca_gpu_dev_eth_rx_attr {
	DOCA_GPUNETIO_ETH_RX_ATTR_NONE = 0, /**< none */
	DOCA_GPUNETIO_ETH_RX_ATTR_ALL = 1,  /**< all of struct doca_gpu_dev_eth_rxq_attr */
};

/** Attributes of a packet. */
struct doca_gpu_dev_eth_rxq_attr {
	uint32_t bytes;	       /**< bytes of the packet, without the frame check sequence */
	uint64_t timestamp_ns; /**< time of arrival, or ticks if the NIC has no real-time clock */
};

/** Options of a send. */
enum doca_gpu_eth_send_flags {
	DOCA_GPUNETIO_ETH_SEND_FLAG_NONE = 0,	/**< a CQE only if the send fails */
	DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY = 8, /**< a CQE */
};

/** Whether a poll waits. */
enum doca_gpu_dev_eth_wait_flag {
	DOCA_GPUNETIO_ETH_WAIT_FLAG_NB = 0, /**< looks once */
	DOCA_GPUNETIO_ETH_WAIT_FLAG_B = 1,  /**< waits */
};

/** Which CQEs of several a poll looks at. */
enum doca_gpu_dev_eth_cq_poll_mode {
	DOCA_GPUNETIO_ETH_CQ_POLL_EACH = 0, /**< every one */
	DOCA_GPUNETIO_ETH_CQ_POLL_LAST = 1, /**< the last one: the others precede it */
};

/** Ticket of a send: the index of its last WQE. */
typedef uint64_t doca_gpu_dev_eth_ticket_t;

#ifdef __cplusplus
}
#endif

#endif
