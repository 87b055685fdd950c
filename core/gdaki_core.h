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

#include "../host/doca_gpunetio.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Returns the short name of a handler, for example "GPU_SM_DB"; "?" for an unknown value. The
 * string is static.
 */
const char *gdk_handler_name(enum doca_gpu_dev_verbs_nic_handler handler);

/** The last firmware command of a thread that failed. */
struct gdk_command_error {
	uint32_t opcode;      /**< of the command; 0: no command has failed yet */
	uint32_t syndrome;    /**< number from the firmware, for NVIDIA's support */
	int status;	      /**< status from the firmware; 0: it did not get the command */
	int sys_err;	      /**< errno of the driver, or 0 */
	const char *command,  /**< for example "CREATE_QP"; NULL: no command has failed yet */
		*status_text; /**< status in English; NULL as for command */
	char object[96];      /**< for example "QP 0x1f (INIT to RTR)" */
};

/**
 * Reads the last firmware command that failed in the calling thread. Use it when a function of
 * this library has returned DOCA_ERROR_DRIVER. Later commands that succeed do not clear it.
 */
doca_error_t gdk_get_command_error(struct gdk_command_error *error);

/**
 * Exports GPU memory as a dmabuf of the PCIe mapping type. Parameters and ownership are those of
 * doca_gpu_get_dmabuf_fd().
 *
 * Use it for data-direct memory regions, on machines where GPU and NIC are also connected by
 * another bus than PCIe. Other memory regions and umems need the default mapping type, to which an
 * ordinary function of the NIC can attach.
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
