/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Completion queues. */
#ifndef DOCA_VERBS_CQ_H
#define DOCA_VERBS_CQ_H

#include "doca_verbs_dev.h"
#include "doca_verbs_uar.h"
#include "doca_verbs_umem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* May the NIC overwrite CQEs that nobody has polled? */
enum doca_verbs_cq_overrun {
	DOCA_VERBS_CQ_DISABLE_OVERRUN = 0, /* no: the CQ goes to error, and its QPs too */
	DOCA_VERBS_CQ_ENABLE_OVERRUN = 1,
};

typedef struct doca_verbs_cq_attr doca_verbs_cq_attr_t;
typedef struct doca_verbs_cq_t doca_verbs_cq_t;

/* cq_size has no default, all others are 0. NO_MEMORY. */
doca_error_t doca_verbs_cq_attr_create(doca_verbs_cq_attr_t **verbs_cq_attr);
doca_error_t doca_verbs_cq_attr_destroy(doca_verbs_cq_attr_t *verbs_cq_attr);

/* Entries; rounded up to a power of two. */
doca_error_t doca_verbs_cq_attr_set_cq_size(doca_verbs_cq_attr_t *cq_attr, uint32_t cq_size);
/* The caller's own pointer. */
doca_error_t doca_verbs_cq_attr_set_cq_context(doca_verbs_cq_attr_t *cq_attr, void *cq_context);
/* Memory for entries and behind them the doorbell record, from offset on: bytes, at an
 * alignment of 64. Without it, or with NULL, host memory is allocated. */
doca_error_t doca_verbs_cq_attr_set_external_umem(doca_verbs_cq_attr_t *cq_attr,
						  doca_verbs_umem_t *external_umem,
						  uint64_t external_umem_offset);
/* The register page for arming; without it one is allocated. */
doca_error_t doca_verbs_cq_attr_set_external_uar(doca_verbs_cq_attr_t *cq_attr,
						 doca_verbs_uar_t *external_uar);
doca_error_t doca_verbs_cq_attr_set_cq_overrun(doca_verbs_cq_attr_t *cq_attr,
					       enum doca_verbs_cq_overrun overrun);
/* 1: every CQE overwrites entry 0. */
doca_error_t doca_verbs_cq_attr_set_cq_collapsed(doca_verbs_cq_attr_t *cq_attr, uint8_t cc);

/* The attribute object can be destroyed or used again afterwards. INVALID_VALUE also for a
 * size beyond the device and a ring outside its umem; NO_MEMORY; DRIVER: refused. */
doca_error_t doca_verbs_cq_create(doca_dev_t *net_dev, doca_verbs_cq_attr_t *cq_attr,
				  doca_verbs_cq_t **verbs_cq);

/* IN_USE while a QP completes here. DRIVER: refused; all that it can be used for then is
 * to be destroyed again. */
doca_error_t doca_verbs_cq_destroy(doca_verbs_cq_t *verbs_cq);

/* Entry 0 (an address of the kind the umem was given), entries, bytes per entry. */
doca_error_t doca_verbs_cq_get_wq(doca_verbs_cq_t *verbs_cq, void **cq_buf,
				  uint32_t *cq_num_entries, uint8_t *cq_entry_size);

/* The register, and the two big-endian words of the doorbell record. */
doca_error_t doca_verbs_cq_get_dbr_addr(doca_verbs_cq_t *verbs_cq, uint64_t **uar_db_reg,
					uint32_t **ci_dbr, uint32_t **arm_dbr);
doca_error_t doca_verbs_cq_get_cqn(const doca_verbs_cq_t *verbs_cq, uint32_t *cqn);

#ifdef __cplusplus
}
#endif

#endif
