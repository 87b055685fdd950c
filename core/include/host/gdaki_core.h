/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Functions that gdaki adds for GPUs, firmware commands and the names of handlers.
 *
 * A part of gdaki.h, which programs include.
 */
#ifndef GDK_GDAKI_CORE_H
#define GDK_GDAKI_CORE_H

#include "host/doca_gpunetio.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Returns the short name of a handler, for example "GPU_SM_DB"; "?" for an unknown value. The
 * string is static.
 */
const char *gdk_handler_name(enum doca_gpu_dev_verbs_nic_handler handler);

/** A firmware command that failed. */
struct gdk_command_error {
	uint32_t opcode;      /**< opcode of the command; 0: no command has failed yet */
	uint32_t syndrome;    /**< number from the firmware, for NVIDIA's support */
	int status;	      /**< status from the firmware; 0: the command did not reach it */
	int sys_err;	      /**< errno of the driver; 0: the driver reported no error */
	const char *command,  /**< for example "CREATE_QP"; NULL: no command has failed yet */
		*status_text; /**< status in English; NULL: no command has failed yet */
	char object[96];      /**< for example "QP 0x1f (INIT to RTR)" */
};

/**
 * Reads the last firmware command that failed in the calling thread. Use this when a function of
 * this library has returned DOCA_ERROR_DRIVER. Later commands that succeed do not clear the
 * record. Commands that destroy an object, and queries that some devices lack, are not recorded.
 */
doca_error_t gdk_get_command_error(struct gdk_command_error *error);

/**
 * Exports GPU memory as a dmabuf of CUDA's mapping type PCIe: devices access the memory over PCIe
 * even if another bus connects them to the GPU. Parameters and ownership are those of
 * doca_gpu_get_dmabuf_fd().
 *
 * Use this for data-direct memory regions, on machines where GPU and NIC are also connected by
 * another bus than PCIe. Other memory regions and umems need a dmabuf of the default mapping type.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED GPU or driver lacks this mapping type, or the GPU belongs to
 *         the DOCA SDK
 */
doca_error_t gdk_gpu_get_dmabuf_fd_pcie(doca_gpu_t *gpu_dev, void *memptr_gpu, size_t size,
					int *dmabuf_fd);

#ifdef __cplusplus
}
#endif

#endif
