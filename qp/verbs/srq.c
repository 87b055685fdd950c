/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Shared receive queues (firmware object RMP, receive memory pool): a ring or a linked list of
 * receive WQEs, and behind it the DBREC, in one umem. The caller posts receives and writes the
 * DBREC.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log/log.h"
#include "core/nic/devx.h"
#include "core/sdk/sdk.h"
#include "qp/verbs/qp.h"

#define SGE_BYTES	 16u
#define LINK_BYTES	 16u /* next-WQE segment of a WQE in a linked list */
#define LINKED_MIN_BYTES 32u
#define DBREC_BYTES	 8u
#define DBREC_ALIGN	 64u
#define SRQ_WR_MAX	 32768u
#define SRQ_SGE_MAX	 31u

doca_error_t doca_verbs_srq_init_attr_create(struct doca_verbs_srq_init_attr **verbs_srq_init_attr)
{
	struct doca_verbs_srq_init_attr *attr;

	GDK_CHECK_PTR(verbs_srq_init_attr);
	attr = calloc(1, sizeof(*attr));
	if (!attr) {
		gdk_err("no memory for an srq_init_attr");
		return DOCA_ERROR_NO_MEMORY;
	}
	GDK_SDK_NEW(attr, "Verbs SRQ Init Attr", doca_verbs_srq_init_attr_create,
		    (void *)&attr->sdk);
	*verbs_srq_init_attr = attr;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_srq_init_attr_destroy(struct doca_verbs_srq_init_attr *srq_init_attr)
{
	GDK_CHECK_PTR(srq_init_attr);
	if (srq_init_attr->sdk)
		return gdk_sdk_srq_attr_destroy(srq_init_attr);
	free(srq_init_attr);
	return DOCA_SUCCESS;
}

#define SRQ_ATTR(vtype, field, v, check) \
	doca_error_t doca_verbs_srq_init_attr_set_##field( \
		struct doca_verbs_srq_init_attr *srq_init_attr, vtype v) \
	{ \
		GDK_CHECK_PTR(srq_init_attr); \
		GDK_SDK_FIRST(srq_init_attr, doca_verbs_srq_init_attr_set_##field, \
			      srq_init_attr->sdk, v); \
		if (!srq_init_attr->sdk) { /* the SDK has checked v */ \
			check; \
		} \
		srq_init_attr->field = v; \
		return DOCA_SUCCESS; \
	} \
	vtype doca_verbs_srq_init_attr_get_##field( \
		const struct doca_verbs_srq_init_attr *srq_init_attr) \
	{ \
		GDK_CHECK_PTR_OR((vtype)0, srq_init_attr); \
		GDK_SDK_GET(srq_init_attr, doca_verbs_srq_init_attr_get_##field, \
			    srq_init_attr->sdk); \
		return srq_init_attr->field; \
	}

SRQ_ATTR(uint32_t, srq_wr, srq_wr, GDK_CHECK_ARG(srq_wr, "srq_wr 0 (expected 1 to %u)", SRQ_WR_MAX))
SRQ_ATTR(uint32_t, receive_max_sges, receive_max_sges,
	 GDK_CHECK_ARG(receive_max_sges, "receive_max_sges 0 (expected 1 to %u)", SRQ_SGE_MAX))
SRQ_ATTR(enum doca_verbs_srq_type, type, srq_type,
	 GDK_CHECK_ENUM(srq_type, DOCA_VERBS_SRQ_TYPE_CONTIGUOUS))

doca_error_t doca_verbs_srq_init_attr_set_pd(struct doca_verbs_srq_init_attr *srq_init_attr,
					     struct ibv_pd *pd)
{
	GDK_CHECK_PTR(srq_init_attr);
	GDK_CHECK_PTR(pd);
	if (srq_init_attr->sdk)
		return gdk_sdk_srq_set_pd(srq_init_attr, pd);
	srq_init_attr->pd = pd;
	return DOCA_SUCCESS;
}

/* Returns the PD of the caller in SDK mode, too; the SDK only has an object of its own for it. */
struct ibv_pd *doca_verbs_srq_init_attr_get_pd(const struct doca_verbs_srq_init_attr *srq_init_attr)
{
	GDK_CHECK_PTR_OR(NULL, srq_init_attr);
	return srq_init_attr->pd;
}

doca_error_t
doca_verbs_srq_init_attr_set_external_umem(struct doca_verbs_srq_init_attr *srq_init_attr,
					   doca_verbs_umem_t *external_umem,
					   uint64_t external_umem_offset)
{
	GDK_CHECK_PTR(srq_init_attr);
	GDK_CHECK_MIX(srq_init_attr, external_umem);
	GDK_SDK_FIRST(srq_init_attr, doca_verbs_srq_init_attr_set_external_umem, srq_init_attr->sdk,
		      external_umem ? external_umem->sdk : NULL, external_umem_offset);
	srq_init_attr->external_umem = external_umem;
	srq_init_attr->external_umem_offset = external_umem_offset;
	return DOCA_SUCCESS;
}

doca_error_t
doca_verbs_srq_init_attr_get_external_umem(const struct doca_verbs_srq_init_attr *srq_init_attr,
					   doca_verbs_umem_t **external_umem,
					   uint64_t *external_umem_offset)
{
	GDK_CHECK_PTR(srq_init_attr);
	GDK_CHECK_PTR(external_umem);
	GDK_CHECK_PTR(external_umem_offset);
	*external_umem = srq_init_attr->external_umem;
	*external_umem_offset = srq_init_attr->external_umem_offset;
	return DOCA_SUCCESS;
}

static doca_error_t size_srq(struct doca_verbs_srq *srq,
			     const struct doca_verbs_srq_init_attr *attr)
{
	bool linked = attr->type == DOCA_VERBS_SRQ_TYPE_LINKED_LIST;
	uint32_t bytes;

	if (!attr->pd || !attr->srq_wr || attr->srq_wr > SRQ_WR_MAX || !attr->receive_max_sges ||
	    attr->receive_max_sges > SRQ_SGE_MAX) {
		gdk_err("SRQ: srq_wr %u, receive_max_sges %u, pd %p are not supported (expected "
			"1..%u WQEs, 1..%u sges and a PD)",
			attr->srq_wr, attr->receive_max_sges, (void *)attr->pd, SRQ_WR_MAX,
			SRQ_SGE_MAX);
		return DOCA_ERROR_INVALID_VALUE;
	}
	bytes = attr->receive_max_sges * SGE_BYTES + (linked ? LINK_BYTES : 0);
	if (linked && bytes < LINKED_MIN_BYTES)
		bytes = LINKED_MIN_BYTES;
	srq->wqe_size = (uint32_t)gdk_roundup_pow2(bytes);
	srq->num = (uint32_t)gdk_roundup_pow2(attr->srq_wr);
	return DOCA_SUCCESS;
}

static size_t dbrec_at(const struct doca_verbs_srq *srq)
{
	return gdk_align_up((size_t)srq->num * srq->wqe_size, DBREC_ALIGN);
}

static doca_error_t use_external(struct doca_verbs_srq *srq, struct ibv_context *ctx,
				 const struct doca_verbs_srq_init_attr *attr, uint32_t *umem_id)
{
	struct doca_verbs_umem *umem = attr->external_umem;
	doca_error_t err = gdk_umem_check_ring(umem, umem->dev->ctx == ctx, "SRQ: a ring",
					       attr->external_umem_offset,
					       dbrec_at(srq) + DBREC_BYTES);

	if (err != DOCA_SUCCESS)
		return err;
	srq->umem = umem;
	srq->buf = (uint8_t *)umem->addr + attr->external_umem_offset;
	*umem_id = umem->id;
	return gdk_umem_clear_dbrec(umem, (uint8_t *)srq->buf + dbrec_at(srq));
}

static doca_error_t use_internal(struct doca_verbs_srq *srq, struct ibv_context *ctx,
				 uint32_t *umem_id)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = gdk_align_up(dbrec_at(srq) + DBREC_BYTES, page);
	struct mlx5dv_devx_umem_in in = { .size = bytes, .access = IBV_ACCESS_LOCAL_WRITE };

	if (posix_memalign(&srq->own_mem, page, bytes)) {
		gdk_err("no memory for an SRQ of %zu bytes", bytes);
		return DOCA_ERROR_NO_MEMORY;
	}
	memset(srq->own_mem, 0, bytes);
	in.addr = srq->own_mem;
	srq->own_devx = gdk_umem_register(ctx, &in, &page);
	if (!srq->own_devx) {
		gdk_err("SRQ: cannot register %zu bytes of host memory: %s", bytes,
			strerror(errno));
		free(srq->own_mem);
		return DOCA_ERROR_DRIVER;
	}
	srq->buf = srq->own_mem;
	*umem_id = srq->own_devx->umem_id;
	return DOCA_SUCCESS;
}

/* Frees internal memory. If the NIC refuses to deregister it, the memory is kept. */
static doca_error_t drop_memory(struct doca_verbs_srq *srq)
{
	int ret = srq->own_devx ? mlx5dv_devx_umem_dereg(srq->own_devx) : 0;

	if (ret) {
		gdk_err("SRQ 0x%x: cannot deregister its memory: %s", srq->srqn,
			strerror(ret > 0 ? ret : errno));
		return DOCA_ERROR_DRIVER;
	}
	free(srq->own_mem);
	return DOCA_SUCCESS;
}

static doca_error_t pdn_of(struct ibv_pd *pd, uint32_t *pdn)
{
	struct mlx5dv_pd dv = { 0 };
	struct mlx5dv_obj obj = { 0 };

	obj.pd.in = pd;
	obj.pd.out = &dv;
	if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD)) {
		gdk_err("SRQ: the PD does not belong to an mlx5 device");
		return DOCA_ERROR_DRIVER;
	}
	*pdn = dv.pdn;
	return DOCA_SUCCESS;
}

static doca_error_t create_object(struct doca_verbs_srq *srq, struct ibv_context *ctx,
				  const struct doca_verbs_srq_init_attr *attr, uint32_t umem_id,
				  uint64_t offset)
{
	uint8_t in[PRM_CREATE_RMP_IN_LEN] = { 0 }, out[PRM_CMD_OUT_LEN] = { 0 };
	uint8_t *rmpc = in + PRM_CREATE_RMP_RMPC_AT, *wq = rmpc + PRM_RMPC_WQ_AT;
	bool cyclic = attr->type == DOCA_VERBS_SRQ_TYPE_CONTIGUOUS;
	char name[96];
	doca_error_t err;
	uint32_t pdn;

	err = pdn_of(attr->pd, &pdn);
	if (err != DOCA_SUCCESS)
		return err;
	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_CREATE_RMP);
	prm_set(rmpc, PRM_RMPC_STATE, GDK_RMPC_STATE_RDY);
	prm_set(rmpc, PRM_RMPC_BASIC_CYCLIC_RCV_WQE, cyclic);
	prm_set(wq, PRM_WQ_TYPE, cyclic ? GDK_WQ_CYCLIC : GDK_WQ_LINKED_LIST);
	prm_set(wq, PRM_WQ_END_PADDING_MODE, 1);
	prm_set(wq, PRM_WQ_PD, pdn);
	prm_set(wq, PRM_WQ_LOG_SZ, gdk_ilog2(srq->num));
	prm_set(wq, PRM_WQ_LOG_STRIDE, gdk_ilog2(srq->wqe_size));
	prm_set(wq, PRM_WQ_UMEM_VALID, 1);
	prm_set(wq, PRM_WQ_UMEM_ID, umem_id);
	prm_set(wq, PRM_WQ_UMEM_OFFSET, offset);
	prm_set(wq, PRM_WQ_DBR_UMEM_VALID, 1);
	prm_set(wq, PRM_WQ_DBR_UMEM_ID, umem_id);
	prm_set(wq, PRM_WQ_DBR_ADDR, offset + dbrec_at(srq));
	snprintf(name, sizeof(name), "%s: SRQ of %u WQEs", ibv_get_device_name(ctx->device),
		 srq->num);
	err = gdk_devx_create(ctx, name, in, sizeof(in), out, sizeof(out), &srq->obj);
	if (err == DOCA_SUCCESS)
		srq->srqn = (uint32_t)prm_get(out, PRM_CMD_OUT_OBJECT);
	return err;
}

doca_error_t doca_verbs_srq_create(struct ibv_context *verbs_context,
				   struct doca_verbs_srq_init_attr *srq_init_attr,
				   struct doca_verbs_srq **verbs_srq)
{
	struct doca_verbs_srq *srq;
	uint32_t umem_id;
	doca_error_t err;

	GDK_CHECK_PTR(verbs_context);
	GDK_CHECK_PTR(srq_init_attr);
	GDK_CHECK_PTR(verbs_srq);
	GDK_SDK_CHILD(srq_init_attr, "Verbs SRQ",
		      gdk_sdk_srq_create(verbs_context, srq_init_attr, verbs_srq));
	srq = calloc(1, sizeof(*srq));
	if (!srq) {
		gdk_err("no memory for an SRQ");
		return DOCA_ERROR_NO_MEMORY;
	}
	srq->ctx = verbs_context;
	err = size_srq(srq, srq_init_attr);
	if (err != DOCA_SUCCESS)
		goto err_free;
	err = srq_init_attr->external_umem
		      ? use_external(srq, verbs_context, srq_init_attr, &umem_id)
		      : use_internal(srq, verbs_context, &umem_id);
	if (err != DOCA_SUCCESS)
		goto err_free;
	srq->dbrec = (uint32_t *)((uint8_t *)srq->buf + dbrec_at(srq));
	err = create_object(srq, verbs_context, srq_init_attr, umem_id,
			    srq_init_attr->external_umem ? srq_init_attr->external_umem_offset : 0);
	if (err != DOCA_SUCCESS)
		goto err_memory;
	if (srq->umem)
		atomic_fetch_add(&srq->umem->users, 1);
	srq->cyclic = srq_init_attr->type == DOCA_VERBS_SRQ_TYPE_CONTIGUOUS;
	*verbs_srq = srq;
	return DOCA_SUCCESS;

err_memory:
	(void)drop_memory(srq);
err_free:
	free(srq);
	return err;
}

doca_error_t doca_verbs_srq_destroy(struct doca_verbs_srq *srq)
{
	doca_error_t err;

	GDK_CHECK_PTR(srq);
	if (atomic_load(&srq->users) > 0) {
		gdk_err("SRQ 0x%x: cannot destroy it: %d queue pairs still use it", srq->srqn,
			atomic_load(&srq->users));
		return DOCA_ERROR_IN_USE;
	}
	if (srq->sdk)
		return gdk_sdk_srq_destroy(srq);
	if (srq->exported) {
		gdk_err("SRQ 0x%x: cannot destroy it: it is exported (gdk_verbs_unexport_srq)",
			srq->srqn);
		return DOCA_ERROR_IN_USE;
	}
	if (srq->obj) { /* NULL: an earlier call destroyed it, but could not free the memory */
		err = gdk_devx_destroy(srq->ctx, srq->obj, GDK_CMD_DESTROY_RMP, "SRQ", srq->srqn);
		if (err != DOCA_SUCCESS)
			return err;
		srq->obj = NULL;
		if (srq->umem)
			atomic_fetch_sub(&srq->umem->users, 1);
	}
	err = drop_memory(srq);
	if (err != DOCA_SUCCESS)
		return err;
	free(srq);
	return DOCA_SUCCESS;
}

uint32_t doca_verbs_srq_get_srqn(const struct doca_verbs_srq *srq)
{
	GDK_CHECK_PTR_OR(0, srq);
	GDK_SDK_GET(srq, doca_verbs_srq_get_srqn, srq->sdk);
	return srq->srqn;
}

void doca_verbs_srq_get_wq(const struct doca_verbs_srq *srq, void **srq_buf,
			   uint32_t *srq_num_entries, uint32_t *rwqe_size_bytes)
{
	GDK_CHECK_PTR_OR(, srq);
	GDK_CHECK_PTR_OR(, srq_buf);
	GDK_CHECK_PTR_OR(, srq_num_entries);
	GDK_CHECK_PTR_OR(, rwqe_size_bytes);
	GDK_SDK_GET(srq, doca_verbs_srq_get_wq, srq->sdk, srq_buf, srq_num_entries,
		    rwqe_size_bytes);
	*srq_buf = srq->buf;
	*srq_num_entries = srq->num;
	*rwqe_size_bytes = srq->wqe_size;
}

void *doca_verbs_srq_get_dbr_addr(const struct doca_verbs_srq *srq)
{
	GDK_CHECK_PTR_OR(NULL, srq);
	GDK_SDK_GET(srq, doca_verbs_srq_get_dbr_addr, srq->sdk);
	return srq->dbrec;
}
