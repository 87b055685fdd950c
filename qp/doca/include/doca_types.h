/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Types that all headers of gdaki-doca share.
 */
#ifndef GDK_SDK_DOCA_TYPES_H
#define GDK_SDK_DOCA_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h> /* gpunetio_dma_memcpy of DOCA's samples does not include it */

#include "doca_error.h"

/** A value of the user, which the library stores and returns. */
union doca_data {
	void *ptr;    /**< as a pointer */
	uint64_t u64; /**< as a number */
};

/** Permissions of memory, of a umem or of an RDMA object. */
enum doca_access_flag {
	DOCA_ACCESS_FLAG_LOCAL_READ_WRITE = 1 << 0,	/**< this host reads and writes */
	DOCA_ACCESS_FLAG_RDMA_READ = 1 << 1,		/**< remote hosts read */
	DOCA_ACCESS_FLAG_RDMA_WRITE = 1 << 2,		/**< remote hosts write */
	DOCA_ACCESS_FLAG_RDMA_ATOMIC = 1 << 3,		/**< remote hosts use atomics */
	DOCA_ACCESS_FLAG_PCI_RELAXED_ORDERING = 1 << 6, /**< the NIC may reorder PCI writes */
};

/** Bytes of a GID. */
#define DOCA_GID_BYTE_LENGTH 16

#endif
