/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Completion queues.
 *
 * Return values, out-parameters and thread safety follow the rules in doca_gpunetio.h.
 */
#ifndef DOCA_VERBS_CQ_H
#define DOCA_VERBS_CQ_H

#include "host/doca_verbs_dev.h"
#include "host/doca_verbs_uar.h"
#include "host/doca_verbs_umem.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What the NIC does when the CQ is full. */
enum doca_verbs_cq_overrun {
	DOCA_VERBS_CQ_DISABLE_OVERRUN = 0, /**< the CQ and its QPs go to error */
	DOCA_VERBS_CQ_ENABLE_OVERRUN = 1,  /**< the NIC overwrites the oldest CQEs */
};

/** Attributes for the creation of a CQ. Opaque. */
typedef struct doca_verbs_cq_attr doca_verbs_cq_attr_t;
/** A completion queue. Opaque. */
typedef struct doca_verbs_cq_t doca_verbs_cq_t;

/**
 * Creates an attribute object. Free it with doca_verbs_cq_attr_destroy(). The size must be set;
 * the defaults of the other attributes are: no context, internal memory and UAR, overrun disabled,
 * not collapsed.
 *
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_verbs_cq_attr_create(doca_verbs_cq_attr_t **verbs_cq_attr);

/** Frees an attribute object. CQs that were created from it stay. */
doca_error_t doca_verbs_cq_attr_destroy(doca_verbs_cq_attr_t *cq_attr);

/**
 * Sets the number of entries.
 *
 * @param cq_size 1 to the limit of the device, which doca_verbs_cq_create() checks; rounded up to
 *         a power of two
 */
doca_error_t doca_verbs_cq_attr_set_cq_size(doca_verbs_cq_attr_t *cq_attr, uint32_t cq_size);

/** Sets a pointer of the caller. The library stores it and does not use it. Default: NULL. */
doca_error_t doca_verbs_cq_attr_set_cq_context(doca_verbs_cq_attr_t *cq_attr, void *cq_context);

/**
 * Places the CQ in memory of the caller. The entries, 64 bytes each, start at the offset; the
 * DBREC of 8 bytes follows them. doca_verbs_cq_create() initializes both. The umem must exist
 * until the CQ is destroyed.
 *
 * @param external_umem the umem; NULL (default): the library allocates host memory
 * @param external_umem_offset offset in the umem in bytes, a multiple of 64; if the umem has pages
 *         of more than 4096 bytes, also a multiple of 1/64 of a page
 */
doca_error_t doca_verbs_cq_attr_set_external_umem(doca_verbs_cq_attr_t *cq_attr,
						  doca_verbs_umem_t *external_umem,
						  uint64_t external_umem_offset);

/**
 * Sets the UAR through which the CQ is armed. It must exist until the CQ is destroyed.
 *
 * @param external_uar the UAR; NULL (default): the library allocates one
 */
doca_error_t doca_verbs_cq_attr_set_external_uar(doca_verbs_cq_attr_t *cq_attr,
						 doca_verbs_uar_t *external_uar);

/**
 * Sets what the NIC does when the CQ is full. Default: DOCA_VERBS_CQ_DISABLE_OVERRUN. A CQ that
 * GPU threads poll without updating the consumer index needs DOCA_VERBS_CQ_ENABLE_OVERRUN.
 */
doca_error_t doca_verbs_cq_attr_set_cq_overrun(doca_verbs_cq_attr_t *cq_attr,
					       enum doca_verbs_cq_overrun overrun);

/**
 * Sets whether the NIC writes every CQE to entry 0.
 *
 * @param cc 1: yes; 0 (default): no, the NIC writes CQEs to all entries in turn
 */
doca_error_t doca_verbs_cq_attr_set_cq_collapsed(doca_verbs_cq_attr_t *cq_attr, uint8_t cc);

/**
 * Creates a CQ with entries of 64 bytes. Destroy it with doca_verbs_cq_destroy(). The attribute
 * object is not used after the call. Any thread may call this.
 *
 * @retval DOCA_ERROR_INVALID_VALUE the size is 0 or above the device's limit, or ring and DBREC do
 *         not fit into the umem, are not aligned, or the umem is on another device
 * @retval DOCA_ERROR_NOT_SUPPORTED no UAR is available
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the firmware or the kernel refused
 */
doca_error_t doca_verbs_cq_create(doca_dev_t *net_dev, doca_verbs_cq_attr_t *cq_attr,
				  doca_verbs_cq_t **verbs_cq);

/**
 * Destroys a CQ and frees the memory and the UAR that the library allocated for it.
 *
 * @retval DOCA_ERROR_IN_USE a QP still uses it
 * @retval DOCA_ERROR_DRIVER the firmware or the kernel refused; the caller may repeat this call,
 *         but must not use the CQ for anything else
 */
doca_error_t doca_verbs_cq_destroy(doca_verbs_cq_t *cq);

/**
 * Returns the ring of a CQ.
 *
 * @param cq_buf gets the address of entry 0: a GPU address if the umem has a GPU, otherwise a CPU
 *         address
 * @param cq_num_entries gets the number of entries, a power of two
 * @param cq_entry_size gets the size of an entry in bytes: 64
 */
doca_error_t doca_verbs_cq_get_wq(doca_verbs_cq_t *cq, void **cq_buf, uint32_t *cq_num_entries,
				  uint8_t *cq_entry_size);

/**
 * Returns the addresses with which a CQ is polled and armed.
 *
 * @param uar_db_reg gets the CPU address of the doorbell register of the UAR
 * @param ci_dbr gets the address of the DBREC word with the consumer index: big-endian, the low 24
 *         bits are used. It is a GPU address if the umem has a GPU.
 * @param arm_dbr gets the address of the arm word of the DBREC, which follows that word: big-endian
 */
doca_error_t doca_verbs_cq_get_dbr_addr(doca_verbs_cq_t *cq, uint64_t **uar_db_reg,
					uint32_t **ci_dbr, uint32_t **arm_dbr);

/** Returns the number of the CQ, 24 bits. */
doca_error_t doca_verbs_cq_get_cqn(const doca_verbs_cq_t *cq, uint32_t *cqn);

#ifdef __cplusplus
}
#endif

#endif
