/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Register pages of the NIC (UAR), through which doorbells are rung. */
#ifndef DOCA_VERBS_UAR_H
#define DOCA_VERBS_UAR_H

#include "doca_verbs_dev.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the page is mapped for the CPU, and whether others use it. */
enum doca_verbs_uar_allocation_type {
	DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME = 0,	       /* write-combining */
	DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE = 1,	       /* uncached */
	DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED = 2, /* uncached, unshared */
};

typedef struct doca_verbs_uar doca_verbs_uar_t;

/* NOT_SUPPORTED: the kernel or device has no such page. */
doca_error_t doca_verbs_uar_create(doca_dev_t *net_dev,
				   enum doca_verbs_uar_allocation_type allocation_type,
				   doca_verbs_uar_t **uar_obj);

/* IN_USE while a CQ or QP rings it. */
doca_error_t doca_verbs_uar_destroy(doca_verbs_uar_t *uar_obj);

/* The number by which firmware commands name it. */
doca_error_t doca_verbs_uar_id_get(const doca_verbs_uar_t *uar, uint32_t *id);

/* CPU address of the doorbell register. */
doca_error_t doca_verbs_uar_reg_addr_get(const doca_verbs_uar_t *uar_obj, void **reg_addr);

/* CPU address of the register for QPs without doorbell record. NOT_SUPPORTED:
 * this page has none. */
doca_error_t doca_verbs_uar_dbr_less_addr_get(const doca_verbs_uar_t *uar_obj,
					      void **dbr_less_addr);

#ifdef __cplusplus
}
#endif

#endif
