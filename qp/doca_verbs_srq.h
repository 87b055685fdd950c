/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Shared receive queues. */
#ifndef DOCA_VERBS_SRQ_H
#define DOCA_VERBS_SRQ_H

#include "doca_verbs_dev.h"
#include "doca_verbs_umem.h"

#ifdef __cplusplus
extern "C" {
#endif

enum doca_verbs_srq_type {
	DOCA_VERBS_SRQ_TYPE_LINKED_LIST, /* entries name their successor */
	DOCA_VERBS_SRQ_TYPE_CONTIGUOUS,	 /* a ring */
};

struct doca_verbs_srq_init_attr;
struct doca_verbs_srq;

/* srq_wr, receive_max_sges and pd have no default. NO_MEMORY. */
doca_error_t doca_verbs_srq_init_attr_create(struct doca_verbs_srq_init_attr **verbs_srq_init_attr);
doca_error_t doca_verbs_srq_init_attr_destroy(struct doca_verbs_srq_init_attr *verbs_srq_init_attr);

/* Receive WQEs, 1 to 32768, rounded up to a power of two. Getters return 0 for NULL. */
doca_error_t
doca_verbs_srq_init_attr_set_srq_wr(struct doca_verbs_srq_init_attr *verbs_srq_init_attr,
				    uint32_t srq_wr);
uint32_t
doca_verbs_srq_init_attr_get_srq_wr(const struct doca_verbs_srq_init_attr *verbs_srq_init_attr);

/* Pointers per receive WQE, 1 to 31. */
doca_error_t
doca_verbs_srq_init_attr_set_receive_max_sges(struct doca_verbs_srq_init_attr *verbs_srq_init_attr,
					      uint32_t receive_max_sges);
uint32_t doca_verbs_srq_init_attr_get_receive_max_sges(
	const struct doca_verbs_srq_init_attr *verbs_srq_init_attr);

/* A linked list if it is not set. */
doca_error_t doca_verbs_srq_init_attr_set_type(struct doca_verbs_srq_init_attr *verbs_srq_init_attr,
					       enum doca_verbs_srq_type srq_type);
enum doca_verbs_srq_type
doca_verbs_srq_init_attr_get_type(const struct doca_verbs_srq_init_attr *verbs_srq_init_attr);

/* The protection domain of the receive buffers. */
doca_error_t doca_verbs_srq_init_attr_set_pd(struct doca_verbs_srq_init_attr *verbs_srq_init_attr,
					     struct ibv_pd *pd);
struct ibv_pd *
doca_verbs_srq_init_attr_get_pd(const struct doca_verbs_srq_init_attr *verbs_srq_init_attr);

/* Memory for the ring and behind it the doorbell record, from offset on: bytes, at an
 * alignment of 64. Without it, or with NULL, host memory is allocated. */
doca_error_t
doca_verbs_srq_init_attr_set_external_umem(struct doca_verbs_srq_init_attr *verbs_srq_init_attr,
					   doca_verbs_umem_t *external_umem,
					   uint64_t external_umem_offset);
doca_error_t doca_verbs_srq_init_attr_get_external_umem(
	const struct doca_verbs_srq_init_attr *verbs_srq_init_attr,
	doca_verbs_umem_t **external_umem, uint64_t *external_umem_offset);

/* The attribute object can be destroyed or used again afterwards. INVALID_VALUE also for
 * attributes that do not go together; NO_MEMORY; DRIVER: the firmware refused. */
doca_error_t doca_verbs_srq_create(struct ibv_context *verbs_context,
				   struct doca_verbs_srq_init_attr *verbs_srq_init_attr,
				   struct doca_verbs_srq **verbs_srq);
/* IN_USE while a QP receives from it. DRIVER: refused; all that it can be used for then is
 * to be destroyed again. */
doca_error_t doca_verbs_srq_destroy(struct doca_verbs_srq *verbs_srq);

/* The firmware's number, 24 bits; 0 for NULL. */
uint32_t doca_verbs_srq_get_srqn(const struct doca_verbs_srq *verbs_srq);
/* The ring (an address of the kind the umem was given), its entries, and bytes per entry. A
 * linked list's entries begin with 16 bytes that name their successor, for the caller to
 * fill. Nothing is written when an argument is NULL. */
void doca_verbs_srq_get_wq(const struct doca_verbs_srq *verbs_srq, void **srq_buf,
			   uint32_t *srq_num_entries, uint32_t *rwqe_size_bytes);
/* Two big-endian words, the receive counter first; NULL for NULL. */
void *doca_verbs_srq_get_dbr_addr(const struct doca_verbs_srq *verbs_srq);

#ifdef __cplusplus
}
#endif

#endif
