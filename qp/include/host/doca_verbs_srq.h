/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Shared receive queues.
 *
 * Return values, out-parameters and thread safety follow the rules in doca_gpunetio.h. Functions
 * that return no error return 0 or NULL for a NULL argument.
 */
#ifndef DOCA_VERBS_SRQ_H
#define DOCA_VERBS_SRQ_H

#include "host/doca_verbs_dev.h"
#include "host/doca_verbs_umem.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How the entries of an SRQ are ordered. */
enum doca_verbs_srq_type {
	DOCA_VERBS_SRQ_TYPE_LINKED_LIST, /**< each entry has the index of the next one */
	DOCA_VERBS_SRQ_TYPE_CONTIGUOUS,	 /**< a ring */
};

/** Attributes for the creation of an SRQ. Opaque. */
struct doca_verbs_srq_init_attr;

/** A shared receive queue. Opaque. */
struct doca_verbs_srq;

/**
 * Creates an attribute object. Free it with doca_verbs_srq_init_attr_destroy(). The number of
 * WQEs, their data segments and the protection domain must be set. Default of the others: a linked
 * list in memory that the library allocates.
 *
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_verbs_srq_init_attr_create(struct doca_verbs_srq_init_attr **verbs_srq_init_attr);

/** Frees an attribute object. SRQs that were created from it remain valid. */
doca_error_t doca_verbs_srq_init_attr_destroy(struct doca_verbs_srq_init_attr *srq_init_attr);

/**
 * Sets the number of receive WQEs.
 *
 * @param srq_wr 1 to 32768, rounded up to a power of two; doca_verbs_srq_create() checks the upper
 *         limit
 */
doca_error_t doca_verbs_srq_init_attr_set_srq_wr(struct doca_verbs_srq_init_attr *srq_init_attr,
						 uint32_t srq_wr);

/** Returns the number of receive WQEs that was set. */
uint32_t doca_verbs_srq_init_attr_get_srq_wr(const struct doca_verbs_srq_init_attr *srq_init_attr);

/**
 * Sets the number of data segments of a receive WQE.
 *
 * @param receive_max_sges 1 to 31; doca_verbs_srq_create() checks the upper limit
 */
doca_error_t
doca_verbs_srq_init_attr_set_receive_max_sges(struct doca_verbs_srq_init_attr *srq_init_attr,
					      uint32_t receive_max_sges);

/** Returns the number of data segments that was set. */
uint32_t
doca_verbs_srq_init_attr_get_receive_max_sges(const struct doca_verbs_srq_init_attr *srq_init_attr);

/** Sets how the entries are ordered. Default: DOCA_VERBS_SRQ_TYPE_LINKED_LIST. */
doca_error_t doca_verbs_srq_init_attr_set_type(struct doca_verbs_srq_init_attr *srq_init_attr,
					       enum doca_verbs_srq_type srq_type);

/** Returns how the entries are ordered. */
enum doca_verbs_srq_type
doca_verbs_srq_init_attr_get_type(const struct doca_verbs_srq_init_attr *srq_init_attr);

/**
 * Sets the protection domain, to which the receive buffers must belong too. The caller owns
 * it; it must exist until the SRQ is destroyed.
 */
doca_error_t doca_verbs_srq_init_attr_set_pd(struct doca_verbs_srq_init_attr *srq_init_attr,
					     struct ibv_pd *pd);

/** Returns the protection domain that was set, or NULL. */
struct ibv_pd *
doca_verbs_srq_init_attr_get_pd(const struct doca_verbs_srq_init_attr *srq_init_attr);

/**
 * Places the SRQ in memory of the caller: the entries start at the offset, and the DBREC of 8
 * bytes follows them at the next multiple of 64. The umem must exist until the SRQ is destroyed.
 * doca_verbs_srq_create() clears the DBREC.
 *
 * @param external_umem the umem; NULL (default): the library allocates host memory
 * @param external_umem_offset offset in the umem in bytes, a multiple of 64; if the umem has pages
 *         of more than 4096 bytes, also a multiple of 1/64 of a page. doca_verbs_srq_create()
 *         checks it.
 */
doca_error_t
doca_verbs_srq_init_attr_set_external_umem(struct doca_verbs_srq_init_attr *srq_init_attr,
					   doca_verbs_umem_t *external_umem,
					   uint64_t external_umem_offset);

/** Returns the umem that was set, or NULL, and the offset in bytes. */
doca_error_t
doca_verbs_srq_init_attr_get_external_umem(const struct doca_verbs_srq_init_attr *srq_init_attr,
					   doca_verbs_umem_t **external_umem,
					   uint64_t *external_umem_offset);

/**
 * Creates an SRQ. Destroy it with doca_verbs_srq_destroy(). The attribute object is not used after
 * the call. Any thread.
 *
 * @param verbs_context context of the device that the QPs of the SRQ use
 * @retval DOCA_ERROR_INVALID_VALUE an attribute is missing or out of range, or the umem is too
 *         small, not aligned or on another device
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the firmware or the kernel refused, or the protection domain is not
 *         one of an mlx5 device
 */
doca_error_t doca_verbs_srq_create(struct ibv_context *verbs_context,
				   struct doca_verbs_srq_init_attr *srq_init_attr,
				   struct doca_verbs_srq **verbs_srq);

/**
 * Destroys an SRQ and frees the memory that the library allocated for it.
 *
 * @retval DOCA_ERROR_IN_USE a QP still uses it
 * @retval DOCA_ERROR_DRIVER the firmware or the kernel refused. The only valid call is then to
 *         destroy the SRQ again.
 */
doca_error_t doca_verbs_srq_destroy(struct doca_verbs_srq *srq);

/** Returns the number of the SRQ, 24 bits. */
uint32_t doca_verbs_srq_get_srqn(const struct doca_verbs_srq *srq);

/**
 * Returns the queue of an SRQ. It writes nothing if an argument is NULL.
 *
 * An entry of a linked list starts with 16 bytes for the index of the next entry, which the caller
 * fills; the data segments follow. An entry of a ring starts with the data segments.
 *
 * @param srq_buf gets the address of entry 0: a GPU address if the umem is GPU memory, otherwise a
 *         CPU address
 * @param srq_num_entries gets the number of entries, a power of two
 * @param rwqe_size_bytes gets the bytes of an entry, a power of two
 */
void doca_verbs_srq_get_wq(const struct doca_verbs_srq *srq, void **srq_buf,
			   uint32_t *srq_num_entries, uint32_t *rwqe_size_bytes);

/**
 * Returns the address of the DBREC: two big-endian words, the first of which is the receive
 * counter.
 */
void *doca_verbs_srq_get_dbr_addr(const struct doca_verbs_srq *srq);

#ifdef __cplusplus
}
#endif

#endif
