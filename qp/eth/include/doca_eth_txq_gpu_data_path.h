/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Send queues of Ethernet packets for kernels: settings, completions on the CPU, and the struct
 * that kernels get. Return values and threads: see doca_error.h.
 *
 * Completions belong to the CPU, unless doca_eth_txq_gpu_set_completion_on_gpu() is called: CQEs
 * are in host memory, and a progress engine that the context is connected to calls the registered
 * functions. Kernels that send read the same CQEs to learn which slots are free, so they do not
 * depend on the CPU. The progress engine must be called before the NIC has written as many CQEs as
 * the queue has slots; what it misses is not reported.
 */
#ifndef GDK_SDK_DOCA_ETH_TXQ_GPU_DATA_PATH_H
#define GDK_SDK_DOCA_ETH_TXQ_GPU_DATA_PATH_H

#include <pthread.h> /* NVIDIA's gpunetio_simple_send expects it from these headers */

#include "doca_eth_txq.h"
#include "doca_gpunetio_eth_def.h"
#include "host/gdk_gpu.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_gpu_eth_txq;			  /* a send queue, as kernels use it */
struct doca_eth_txq_gpu_event_error_send_packet;  /* the event of a send that failed */
struct doca_eth_txq_gpu_event_notify_send_packet; /* the event of a send with NOTIFY */

/** A function that is called for each send that failed. */
typedef void (*doca_eth_txq_gpu_event_error_send_packet_cb_t)(
	struct doca_eth_txq_gpu_event_error_send_packet *event_error, union doca_data user_data);

/** A function that is called for each completed send with SEND_FLAG_NOTIFY. */
typedef void (*doca_eth_txq_gpu_event_notify_send_packet_cb_t)(
	struct doca_eth_txq_gpu_event_notify_send_packet *event_notify, union doca_data user_data);

/**
 * Returns the struct of a running send queue that kernels get as an argument.
 *
 * @param gpu_eth_txq gets a GPU address, valid until the context is stopped
 * @retval DOCA_ERROR_BAD_STATE the context does not run
 */
doca_error_t doca_eth_txq_get_gpu_handle(const struct doca_eth_txq *eth_txq,
					 struct doca_gpu_eth_txq **gpu_eth_txq);

/**
 * Sets the memory of the queue and, if completions are on the GPU, of its CQEs: GPU, GPU_CPU or
 * CPU_GPU. Without this call it is GPU memory, or with GDAKI_QUEUE_MEM=cpu_gpu host memory.
 *
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t doca_eth_txq_gpu_set_sq_mem_type(struct doca_eth_txq *eth_txq,
					      enum doca_gpu_mem_type mem_type);

/**
 * Has a CPU thread ring the doorbell (handler CPU_PROXY). The program calls
 * doca_eth_txq_gpu_cpu_proxy_progress() repeatedly.
 *
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t doca_eth_txq_gpu_set_uar_on_cpu(struct doca_eth_txq *eth_txq);

/**
 * Executes one step of the CPU proxy: rings for what kernels have submitted before the call. Any
 * number of threads may call this, while the context runs.
 *
 * @retval DOCA_ERROR_BAD_STATE the context does not run
 * @retval DOCA_ERROR_NOT_SUPPORTED a GPU thread rings the doorbell
 */
doca_error_t doca_eth_txq_gpu_cpu_proxy_progress(struct doca_eth_txq *eth_txq);

/**
 * Has kernels handle completions. No functions are called then.
 *
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t doca_eth_txq_gpu_set_completion_on_gpu(struct doca_eth_txq *eth_txq);

/**
 * Registers the function for sends that failed.
 *
 * @param user_data is passed to the function
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t
doca_eth_txq_gpu_event_error_send_packet_register(struct doca_eth_txq *eth_txq,
						  doca_eth_txq_gpu_event_error_send_packet_cb_t cb,
						  union doca_data user_data);

/** Returns the low 16 bits of the index of the WQE that failed. */
doca_error_t doca_eth_txq_gpu_event_error_send_packet_get_position(
	const struct doca_eth_txq_gpu_event_error_send_packet *event_error, uint16_t *position);

/**
 * Registers the function for sends with SEND_FLAG_NOTIFY.
 *
 * @param user_data is passed to the function
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t doca_eth_txq_gpu_event_notify_send_packet_register(
	struct doca_eth_txq *eth_txq, doca_eth_txq_gpu_event_notify_send_packet_cb_t cb,
	union doca_data user_data);

/** Returns the low 16 bits of the index of the WQE. */
doca_error_t doca_eth_txq_gpu_event_notify_send_packet_get_position(
	const struct doca_eth_txq_gpu_event_notify_send_packet *event_notify, uint16_t *position);

/** Returns the time at which the NIC executed the WQE: nanoseconds, or ticks if it has no real-time
 * clock. */
doca_error_t doca_eth_txq_gpu_event_notify_send_packet_get_timestamp(
	const struct doca_eth_txq_gpu_event_notify_send_packet *event_notify, uint64_t *timestamp);

/**
 * Selects a doorbell handler, at first AUTO: GPU_SM_DB if the GPU can access the NIC's registers,
 * otherwise CPU_PROXY.
 *
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 * @retval DOCA_ERROR_NOT_SUPPORTED GPU_SM_NO_DBR: the context of an Ethernet send queue has no
 *         field
 *         for the mode without DBREC
 */
doca_error_t gdk_eth_txq_set_nic_handler(struct doca_eth_txq *eth_txq,
					 enum doca_gpu_dev_verbs_nic_handler nic_handler);

/**
 * Returns the handler of a running queue, and why it was chosen.
 *
 * @param reasons gets a text with the handlers that were tested, each with a reason; may be NULL
 * @param len bytes of reasons; a longer text is cut
 * @retval DOCA_ERROR_BAD_STATE the context does not run
 */
doca_error_t gdk_eth_txq_get_nic_handler(const struct doca_eth_txq *eth_txq,
					 enum doca_gpu_dev_verbs_nic_handler *nic_handler,
					 char *reasons, size_t len);

/** Counters of a send queue since its start. */
struct gdk_eth_txq_counters {
	uint64_t reserved;  /**< slots reserved */
	uint64_t completed; /**< slots whose completion kernels have seen */
	uint64_t doorbells; /**< register writes, of GPU and CPU */
	uint64_t dbrecs;    /**< DBREC updates */
	uint64_t notified;  /**< WQEs with SEND_FLAG_NOTIFY that the CPU has reported */
	int32_t status;	    /**< 0, or the negative errno that ended the queue */
	uint64_t error_wqe; /**< index of the WQE that failed, or of the first that is not complete;
			     * UINT64_MAX: status is 0 */
	uint64_t timed;	    /**< those of notified that were to be sent at a given time */
	uint64_t early;	    /**< those of timed that the NIC sent before their time: 0 */
	uint64_t late_ns;   /**< how late those of timed were sent: sum of all */
	uint64_t late_max_ns; /**< the latest of them */
};

/**
 * Returns the counters of a running send queue. They may lag behind a kernel that runs.
 *
 * @retval DOCA_ERROR_BAD_STATE the context does not run
 */
doca_error_t gdk_eth_txq_get_counters(const struct doca_eth_txq *eth_txq,
				      struct gdk_eth_txq_counters *counters);

/**
 * Ends all waits and sends of kernels on a running queue, now and later, with -ECANCELED. Any
 * thread may call this, also while kernels run.
 *
 * @retval DOCA_ERROR_BAD_STATE the context does not run
 */
doca_error_t gdk_eth_txq_abort(struct doca_eth_txq *eth_txq);

/**
 * Sets the time limit of waits of kernels, at first 60 s.
 *
 * @param limit_ns nanoseconds; 0: no limit
 * @retval DOCA_ERROR_BAD_STATE the context does not run
 */
doca_error_t gdk_eth_txq_set_wait_limit(struct doca_eth_txq *eth_txq, uint64_t limit_ns);

#ifdef __cplusplus
}
#endif

#endif
