/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Memory that NICs access. Return values and threads: see doca_error.h.
 *
 * A mmap gets a range, permissions and NICs; starting it registers the range with each NIC. The
 * caller owns the memory and must keep it until the mmap is stopped.
 */
#ifndef GDK_SDK_DOCA_MMAP_H
#define GDK_SDK_DOCA_MMAP_H

#include "doca_dev.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_mmap; /* a range of memory */

/**
 * Creates a mmap, with permission LOCAL_READ_WRITE. Destroy it with doca_mmap_destroy().
 *
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_mmap_create(struct doca_mmap **mmap);

/**
 * Stops a mmap if it is started, and destroys it. GPU buffer arrays of the mmap stay, but must not
 * be used any more.
 *
 * @retval DOCA_ERROR_IN_USE a buffer, or a pool of buffers, is in the mmap
 */
doca_error_t doca_mmap_destroy(struct doca_mmap *mmap);

/**
 * Adds a NIC. The NIC cannot be closed until it is removed or the mmap is destroyed.
 *
 * @retval DOCA_ERROR_BAD_STATE the mmap is started
 * @retval DOCA_ERROR_ALREADY_EXIST the NIC was added already
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_mmap_add_dev(struct doca_mmap *mmap, struct doca_dev *dev);

/**
 * Removes a NIC.
 *
 * @retval DOCA_ERROR_BAD_STATE the mmap is started
 * @retval DOCA_ERROR_NOT_FOUND the NIC was not added
 */
doca_error_t doca_mmap_rm_dev(struct doca_mmap *mmap, struct doca_dev *dev);

/**
 * Sets the range: host memory, or GPU memory that the kernel registers by its address (peer memory,
 * for example nvidia-peermem). The same range as that of an earlier doca_mmap_set_dmabuf_memrange()
 * keeps the dmabuf.
 *
 * @retval DOCA_ERROR_BAD_STATE the mmap is started
 */
doca_error_t doca_mmap_set_memrange(struct doca_mmap *mmap, void *addr, size_t len);

/**
 * Sets the range: memory of a dmabuf. If a NIC cannot register the dmabuf, the address is
 * registered, and a warning is logged.
 *
 * @param dmabuf_fd file descriptor, which must stay open until the mmap is started. The caller
 *         closes it.
 * @param addr address by which WQEs name the memory: for GPU memory, the GPU address
 * @param dmabuf_offset offset of the range in the dmabuf, in bytes
 * @retval DOCA_ERROR_BAD_STATE the mmap is started
 */
doca_error_t doca_mmap_set_dmabuf_memrange(struct doca_mmap *mmap, int dmabuf_fd, void *addr,
					   size_t dmabuf_offset, size_t len);

/**
 * Sets the permissions.
 *
 * @param access_mask set of enum doca_access_flag
 * @retval DOCA_ERROR_BAD_STATE the mmap is started
 */
doca_error_t doca_mmap_set_permissions(struct doca_mmap *mmap, uint32_t access_mask);

/**
 * Registers the range with each NIC.
 *
 * @retval DOCA_ERROR_BAD_STATE the mmap is started, or has no range or no NIC
 * @retval DOCA_ERROR_NO_MEMORY no memory, or RLIMIT_MEMLOCK is reached
 * @retval DOCA_ERROR_DRIVER a NIC cannot register the range
 */
doca_error_t doca_mmap_start(struct doca_mmap *mmap);

/**
 * Ends the registrations. The mmap keeps its range, permissions and NICs.
 *
 * @retval DOCA_ERROR_BAD_STATE the mmap is not started, or was created from an export
 * @retval DOCA_ERROR_IN_USE a buffer, or a pool of buffers, is in the mmap
 */
doca_error_t doca_mmap_stop(struct doca_mmap *mmap);

/**
 * Returns the memory key of the range, for local access; for a mmap that was created from an
 * export, the remote key. In CPU byte order; WQEs contain it in big-endian order.
 *
 * @retval DOCA_ERROR_BAD_STATE the mmap is not started
 * @retval DOCA_ERROR_NOT_FOUND the NIC was not added
 */
doca_error_t doca_mmap_get_mkey(struct doca_mmap *mmap, struct doca_dev *dev, uint32_t *mkey);

/**
 * Describes the range for a remote host, which calls doca_mmap_create_from_export(). Both hosts
 * must use gdaki.
 *
 * @param export_desc gets the description, which is valid until the mmap is stopped
 * @param export_desc_len gets its bytes
 * @retval DOCA_ERROR_BAD_STATE the mmap is not started
 * @retval DOCA_ERROR_NOT_FOUND the NIC was not added
 * @retval DOCA_ERROR_NOT_PERMITTED the mmap has no permission for remote hosts
 */
doca_error_t doca_mmap_export_rdma(struct doca_mmap *mmap, const struct doca_dev *dev,
				   const void **export_desc, size_t *export_desc_len);

/**
 * Creates a mmap for memory of a remote host. It is started. Destroy it with doca_mmap_destroy().
 *
 * @param user_data not used; may be NULL
 * @param export_desc description of doca_mmap_export_rdma()
 * @param dev the NIC that accesses the memory
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_mmap_create_from_export(const union doca_data *user_data, const void *export_desc,
					  size_t export_desc_len, struct doca_dev *dev,
					  struct doca_mmap **mmap);

#ifdef __cplusplus
}
#endif

#endif
