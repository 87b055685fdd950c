/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Functions that gdaki adds for umems.
 *
 * A part of gdaki.h, which programs include.
 */
#ifndef GDK_GDAKI_UMEM_H
#define GDK_GDAKI_UMEM_H

#include "host/doca_verbs_umem.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How a umem was registered with the NIC. */
enum gdk_umem_way {
	GDK_UMEM_HOST_MEMORY = 0,  /**< host memory, by its address */
	GDK_UMEM_GIVEN_DMABUF = 1, /**< through the caller's dmabuf */
	GDK_UMEM_DMABUF = 2,	   /**< GPU memory, through a dmabuf of the default mapping type */
	GDK_UMEM_PEER_MEMORY =
		3, /**< GPU memory, by its address, through the kernel's peer memory */
};

#define GDK_UMEM_REASON_LEN 256 /**< bytes of a reason, final 0 included */

/** The registration of a umem. */
struct gdk_umem_registration {
	enum gdk_umem_way way; /**< how it was registered */
	size_t page_size;      /**< bytes: the NIC uses pages of at most this size. A ring must
				* start on a multiple of page_size / 64, and of 64 bytes */
	/**
	 * For GDK_UMEM_DMABUF and GDK_UMEM_PEER_MEMORY: why the other of these two ways was not
	 * used. For other ways: empty.
	 */
	char reason[GDK_UMEM_REASON_LEN];
};

/**
 * Reports how a umem was registered when it was created. This also works for the umems of a
 * high-level QP: qp_umem, cq_sq_umem and qp_umem_dbr. The result never changes. Any thread may call
 * this.
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED the umem belongs to the DOCA SDK
 */
doca_error_t gdk_verbs_umem_get_registration(const doca_verbs_umem_t *umem,
					     struct gdk_umem_registration *registration);

#ifdef __cplusplus
}
#endif

#endif
