/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Copies of memory by the NIC, triggered by kernels (doca_gpunetio_dev_dma.cuh) or by the CPU. All
 * memory is on this host: main memory, or memory of GPUs. Return values and threads: see
 * doca_error.h.
 *
 * A DMA object is configured while its context is idle. With doca_ctx_set_datapath_on_gpu(),
 * kernels use it; otherwise the CPU submits tasks, and doca_pe_progress() calls the callbacks.
 */
#ifndef GDK_SDK_DOCA_DMA_H
#define GDK_SDK_DOCA_DMA_H

#include "doca_buf.h"
#include "doca_ctx.h"
#include "doca_pe.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_dev;
struct doca_dma;	     /* a DMA object */
struct doca_dma_task_memcpy; /* a copy that the CPU submits */
struct doca_gpu_dma;	     /* a DMA object, in GPU memory */

/** Called when a task is done: the task, its user data, and the user data of the context. */
typedef void (*doca_dma_task_memcpy_completion_cb_t)(struct doca_dma_task_memcpy *task,
						     union doca_data task_user_data,
						     union doca_data ctx_user_data);

/** What copies the memory. */
enum gdk_dma_engine {
	GDK_DMA_ENGINE_AUTO = 0,       /**< the copy engine if the NIC has one */
	GDK_DMA_ENGINE_COPY = 1,       /**< the NIC's copy engine */
	GDK_DMA_ENGINE_RDMA_WRITE = 2, /**< RDMA writes of a queue pair to itself */
};

/**
 * Creates a DMA object with an idle context. Destroy it with doca_dma_destroy().
 *
 * @param dev the NIC, which must stay open
 * @retval DOCA_ERROR_NOT_SUPPORTED the NIC belongs to the DOCA SDK
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_dma_create(struct doca_dev *dev, struct doca_dma **dma);

/**
 * Destroys a DMA object and its tasks.
 *
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t doca_dma_destroy(struct doca_dma *dma);

/**
 * Returns the context of a DMA object; NULL for NULL. doca_ctx_start() creates a queue pair in the
 * state RTS and logs, at level INFO, which engine copies; its errors are those of
 * doca_gpu_verbs_create_qp_hl() and, for GDK_DMA_ENGINE_COPY, NOT_SUPPORTED if the NIC has no copy
 * engine. doca_ctx_stop() destroys the queue pair; if tasks are not done, it returns IN_PROGRESS.
 */
struct doca_ctx *doca_dma_as_ctx(struct doca_dma *dma);

/**
 * Returns the object for kernels, which exists until the context is stopped.
 *
 * @param dma_gpu gets a GPU address
 * @retval DOCA_ERROR_BAD_STATE the context does not run, or the CPU drives it
 */
doca_error_t doca_dma_get_gpu_handle(struct doca_dma *dma, struct doca_gpu_dma **dma_gpu);

/**
 * Configures the tasks of the CPU.
 *
 * @param task_completion_cb called for a task that succeeded
 * @param task_error_cb called for a task that failed
 * @param num_tasks tasks that may exist at a time, 1 to 32768
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t doca_dma_task_memcpy_set_conf(struct doca_dma *dma,
					   doca_dma_task_memcpy_completion_cb_t task_completion_cb,
					   doca_dma_task_memcpy_completion_cb_t task_error_cb,
					   uint32_t num_tasks);

/**
 * Creates a task that copies the data of src behind the data of dst. When the task is done, the
 * data of dst is longer by what was copied. Both buffers must exist until then. Free the task with
 * doca_task_free().
 *
 * @param src data of 1 to 2^31 bytes, not followed by another buffer
 * @param dst has room for the data behind its own data, in other memory than the data of src
 * @retval DOCA_ERROR_BAD_STATE the context does not run, or kernels drive it
 * @retval DOCA_ERROR_NOT_SUPPORTED a buffer is part of a list
 * @retval DOCA_ERROR_NOT_PERMITTED RDMA writes copy, and the memory of dst was not given the
 *         permission DOCA_ACCESS_FLAG_RDMA_WRITE
 * @retval DOCA_ERROR_FULL num_tasks tasks exist
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_dma_task_memcpy_alloc_init(struct doca_dma *dma, const struct doca_buf *src,
					     struct doca_buf *dst, union doca_data user_data,
					     struct doca_dma_task_memcpy **task);

/** Returns the part of a task that doca_task_submit() takes; NULL for NULL. */
struct doca_task *doca_dma_task_memcpy_as_task(struct doca_dma_task_memcpy *task);

/**
 * Selects what copies. Default: GDK_DMA_ENGINE_AUTO.
 *
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t gdk_dma_set_engine(struct doca_dma *dma, enum gdk_dma_engine engine);

/**
 * Returns what copies: GDK_DMA_ENGINE_COPY or GDK_DMA_ENGINE_RDMA_WRITE.
 *
 * @param max_bytes gets the bytes of one request to the NIC; a longer copy is several requests. May
 *        be NULL
 * @retval DOCA_ERROR_BAD_STATE the context does not run
 */
doca_error_t gdk_dma_get_engine(const struct doca_dma *dma, enum gdk_dma_engine *engine,
				uint64_t *max_bytes);

/** Returns an engine in English, for example "copy engine"; "?" for an unknown value. */
const char *gdk_dma_engine_text(enum gdk_dma_engine engine);

/**
 * Sets how many requests the queue holds. Default: 1024. For tasks of the CPU at least their
 * number.
 *
 * @param requests 1 to 32768, rounded up to a power of two
 * @retval DOCA_ERROR_BAD_STATE the context is not idle
 */
doca_error_t gdk_dma_set_queue_size(struct doca_dma *dma, uint32_t requests);

/**
 * Ends all copies of a running object: threads that wait return DOCA_ERROR_SHUTDOWN, or the error
 * that ended the queue before. Copies that the NIC has begun still end. To use the object again,
 * stop and start its context. Any thread may call this.
 *
 * @retval DOCA_ERROR_BAD_STATE the context does not run
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be written
 */
doca_error_t gdk_dma_abort(struct doca_dma *dma);

/**
 * Sets how long one wait of a device thread for free slots or for copies may take before it ends
 * the queue with DOCA_ERROR_TIME_OUT. Default: 60 seconds.
 *
 * @param ns nanoseconds, at least 1
 * @retval DOCA_ERROR_BAD_STATE the context does not run
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be written
 */
doca_error_t gdk_dma_set_wait_limit(struct doca_dma *dma, uint64_t ns);

#ifdef __cplusplus
}
#endif

#endif
