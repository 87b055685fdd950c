/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Creates, queries and destroys completion queues. A CQ is a ring of 64-byte CQEs and the
 * two words of a DBREC, usually behind the ring, in one umem. All CQEs are marked invalid
 * before the CQ is created, so that a poller cannot mistake old memory for a completion.
 * Polling by GPU threads is in cq_dev.h.
 */
#include "cq/cq.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/gpu/gpu.h"
#include "core/log/log.h"
#include "core/log/trace.h"
#include "core/nic/devx.h"
#include "core/sdk/sdk.h"

#define CQE_SIZE	64u
#define DBREC_SIZE	8u
#define LOG_CQ_SIZE_MAX 22u

doca_error_t doca_verbs_cq_attr_create(doca_verbs_cq_attr_t **verbs_cq_attr)
{
	struct doca_verbs_cq_attr *attr;

	GDK_CHECK_PTR(verbs_cq_attr);
	attr = calloc(1, sizeof(*attr));
	if (!attr) {
		gdk_err("no memory for a cq_attr");
		return DOCA_ERROR_NO_MEMORY;
	}
	GDK_SDK_NEW(attr, "Verbs CQ Attr", doca_verbs_cq_attr_create, (void *)&attr->sdk);
	*verbs_cq_attr = attr;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_cq_attr_destroy(doca_verbs_cq_attr_t *cq_attr)
{
	GDK_CHECK_PTR(cq_attr);
	GDK_SDK_FIRST(cq_attr, doca_verbs_cq_attr_destroy, cq_attr->sdk);
	free(cq_attr);
	return DOCA_SUCCESS;
}

#define CQ_ATTR(fn, vtype, v, field, check) \
	doca_error_t doca_verbs_cq_attr_set_##fn(doca_verbs_cq_attr_t *cq_attr, vtype v) \
	{ \
		GDK_CHECK_PTR(cq_attr); \
		GDK_SDK_FIRST(cq_attr, doca_verbs_cq_attr_set_##fn, cq_attr->sdk, v); \
		if (!cq_attr->sdk) { /* the SDK has checked v */ \
			check; \
		} \
		cq_attr->field = v; \
		return DOCA_SUCCESS; \
	}

CQ_ATTR(cq_size, uint32_t, cq_size, size, GDK_CHECK_ARG(cq_size, "cq_size 0 (expected at least 1)"))
CQ_ATTR(cq_context, void *, cq_context, context, )
CQ_ATTR(cq_overrun, enum doca_verbs_cq_overrun, overrun, overrun,
	GDK_CHECK_ENUM(overrun, DOCA_VERBS_CQ_ENABLE_OVERRUN))
CQ_ATTR(cq_collapsed, uint8_t, cc, collapsed, GDK_CHECK_RANGE(cc, 0, 1))

doca_error_t doca_verbs_cq_attr_set_external_uar(doca_verbs_cq_attr_t *cq_attr,
						 doca_verbs_uar_t *external_uar)
{
	GDK_CHECK_PTR(cq_attr);
	GDK_CHECK_MIX(cq_attr, external_uar);
	GDK_SDK_FIRST(cq_attr, doca_verbs_cq_attr_set_external_uar, cq_attr->sdk,
		      external_uar ? external_uar->sdk : NULL);
	cq_attr->uar = external_uar;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_cq_attr_set_external_umem(doca_verbs_cq_attr_t *cq_attr,
						  doca_verbs_umem_t *external_umem,
						  uint64_t external_umem_offset)
{
	GDK_CHECK_PTR(cq_attr);
	GDK_CHECK_ARG(external_umem_offset % CQE_SIZE == 0,
		      "external_umem_offset %llu (expected a multiple of %u)",
		      (unsigned long long)external_umem_offset, CQE_SIZE);
	GDK_CHECK_MIX(cq_attr, external_umem);
	GDK_SDK_FIRST(cq_attr, doca_verbs_cq_attr_set_external_umem, cq_attr->sdk,
		      external_umem ? external_umem->sdk : NULL, external_umem_offset);
	GDK_SDK_FIRST_AS(cq_attr, "doca_verbs_cq_attr_set_external_datapath_en",
			 doca_error_t(void *, uint8_t), cq_attr->sdk, 1);
	cq_attr->umem = external_umem;
	cq_attr->umem_offset = external_umem_offset;
	return DOCA_SUCCESS;
}

/* ---- memory ---- */

static doca_error_t use_external(struct doca_verbs_cq_t *cq, const doca_verbs_cq_attr_t *attr)
{
	size_t dbrec_bytes = attr->dbrec_offset ? 0 : DBREC_SIZE; /* behind the entries */
	struct doca_verbs_umem *umem = attr->umem;
	doca_error_t err;

	err = gdk_umem_check_ring(umem, gdk_dev_share_objects(umem->dev, cq->dev), "CQ: a ring",
				  attr->umem_offset, gdk_cq_ring_bytes(cq) + dbrec_bytes);
	if (err != DOCA_SUCCESS)
		return err;
	cq->umem = umem;
	cq->gpu = umem->gpu;
	cq->buf = (uint8_t *)umem->addr + attr->umem_offset;
	return attr->dbrec_offset ? DOCA_SUCCESS : gdk_cq_format(cq, dbrec_bytes);
}

static doca_error_t use_internal(struct doca_verbs_cq_t *cq)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = gdk_align_up(gdk_cq_ring_bytes(cq) + DBREC_SIZE, page);
	doca_error_t err;

	if (posix_memalign(&cq->own_mem, page, bytes)) {
		cq->own_mem = NULL;
		gdk_err("no memory for a CQ of %u entries", cq->cqe_num);
		return DOCA_ERROR_NO_MEMORY;
	}
	cq->buf = cq->own_mem;
	(void)gdk_cq_format(cq, DBREC_SIZE); /* never fails in host memory */
	err = doca_verbs_umem_create(cq->dev, NULL, cq->own_mem, bytes, IBV_ACCESS_LOCAL_WRITE,
				     (int)DOCA_VERBS_DMABUF_INVALID_FD, 0, &cq->umem);
	if (err != DOCA_SUCCESS) {
		free(cq->own_mem);
		return err;
	}
	cq->own_umem = true;
	return DOCA_SUCCESS;
}

/* Frees internal memory. If the NIC refuses to deregister it, the memory is kept. */
static doca_error_t drop_memory(struct doca_verbs_cq_t *cq)
{
	doca_error_t err = cq->own_umem ? doca_verbs_umem_destroy(cq->umem) : DOCA_SUCCESS;

	if (cq->own_umem && err == DOCA_SUCCESS)
		free(cq->own_mem);
	return err;
}

static doca_error_t own_uar(struct doca_verbs_cq_t *cq)
{
	doca_error_t err;

	err = doca_verbs_uar_create(cq->dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE, &cq->uar);
	if (err != DOCA_SUCCESS)
		err = doca_verbs_uar_create(cq->dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME,
					    &cq->uar);
	cq->own_uar = err == DOCA_SUCCESS;
	return err;
}

/* ---- firmware object ---- */

static doca_error_t create_object(struct doca_verbs_cq_t *cq, uint64_t offset,
				  uint64_t dbrec_offset)
{
	uint8_t in[PRM_CREATE_CQ_IN_LEN] = { 0 }, out[PRM_CMD_OUT_LEN] = { 0 };
	uint8_t *cqc = in + PRM_CREATE_CQ_CQC_AT;
	char name[96];
	doca_error_t err;
	uint32_t eqn;
	int ret;

	ret = mlx5dv_devx_query_eqn(cq->dev->ctx, 0, &eqn);
	ret = ret < 0 ? errno : ret;
	gdk_trace_eqn(cq->dev->ctx, 0, ret ? 0 : eqn, ret);
	if (ret) {
		gdk_err("CQ of %u entries: cannot query an event queue of the driver: %s",
			cq->cqe_num, strerror(ret));
		return ret == ENOMEM ? DOCA_ERROR_NO_MEMORY : DOCA_ERROR_DRIVER;
	}
	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_CREATE_CQ);
	prm_set(in, PRM_CREATE_CQ_UMEM_ID, cq->umem->id);
	prm_set(in, PRM_CREATE_CQ_UMEM_VALID, 1);
	prm_set(in, PRM_CREATE_CQ_UMEM_OFFSET, offset);
	prm_set(cqc, PRM_CQC_CQE_SZ, GDK_CQC_CQE_SZ_64);
	prm_set(cqc, PRM_CQC_CC, cq->collapsed);
	prm_set(cqc, PRM_CQC_OI, cq->overrun_ignore);
	prm_set(cqc, PRM_CQC_LOG_CQ_SIZE, gdk_ilog2(cq->cqe_num));
	prm_set(cqc, PRM_CQC_UAR_PAGE, cq->uar->id);
	prm_set(cqc, PRM_CQC_C_EQN, eqn);
	prm_set(cqc, PRM_CQC_DBR_UMEM_VALID, 1);
	prm_set(cqc, PRM_CQC_DBR_UMEM_ID, cq->umem->id);
	prm_set(cqc, PRM_CQC_DBR_ADDR, dbrec_offset);
	snprintf(name, sizeof(name), "%s: CQ of %u entries",
		 ibv_get_device_name(cq->dev->ctx->device), cq->cqe_num);
	err = gdk_devx_create(cq->dev->ctx, name, in, sizeof(in), out, sizeof(out), &cq->obj);
	if (err == DOCA_SUCCESS)
		cq->cqn = (uint32_t)prm_get(out, PRM_CMD_OUT_OBJECT);
	return err;
}

static doca_error_t check_size(const struct doca_dev *dev, uint32_t want, uint32_t *num)
{
	uint32_t log_max = dev->caps.log_max_cq_sz ? dev->caps.log_max_cq_sz : LOG_CQ_SIZE_MAX;

	if (want == 0 || want > 1u << log_max) {
		gdk_err("cq_size %u is not supported by this device (expected 1..%u)", want,
			1u << log_max);
		return DOCA_ERROR_INVALID_VALUE;
	}
	*num = (uint32_t)gdk_roundup_pow2(want);
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_cq_create(doca_dev_t *net_dev, doca_verbs_cq_attr_t *cq_attr,
				  doca_verbs_cq_t **verbs_cq)
{
	uint64_t offset, dbrec_offset;
	struct doca_verbs_cq_t *cq;
	doca_error_t err;

	GDK_CHECK_PTR(net_dev);
	GDK_CHECK_PTR(cq_attr);
	GDK_CHECK_PTR(verbs_cq);
	GDK_CHECK_MIX(net_dev, cq_attr);
	GDK_SDK_CHILD(net_dev, "Verbs CQ", gdk_sdk_cq_create(net_dev, cq_attr, verbs_cq));
	cq = calloc(1, sizeof(*cq));
	if (!cq) {
		gdk_err("no memory for a CQ");
		return DOCA_ERROR_NO_MEMORY;
	}
	cq->dev = net_dev;
	cq->collapsed = cq_attr->collapsed;
	cq->overrun_ignore = cq_attr->overrun == DOCA_VERBS_CQ_ENABLE_OVERRUN;
	cq->context = cq_attr->context;
	err = check_size(net_dev, cq_attr->size, &cq->cqe_num);
	if (err != DOCA_SUCCESS)
		goto err_free;
	err = cq_attr->umem ? use_external(cq, cq_attr) : use_internal(cq);
	if (err != DOCA_SUCCESS)
		goto err_free;
	offset = cq_attr->umem ? cq_attr->umem_offset : 0;
	dbrec_offset = cq_attr->dbrec_offset ? cq_attr->dbrec_offset
					     : offset + gdk_cq_ring_bytes(cq);
	cq->dbrec = (uint32_t *)((uint8_t *)cq->buf - offset + dbrec_offset);
	cq->uar = cq_attr->uar;
	err = cq_attr->uar ? DOCA_SUCCESS : own_uar(cq);
	if (err != DOCA_SUCCESS)
		goto err_memory;
	err = create_object(cq, offset, dbrec_offset);
	if (err != DOCA_SUCCESS)
		goto err_uar;
	atomic_fetch_add(&cq->umem->users, 1);
	atomic_fetch_add(&cq->uar->users, 1);
	atomic_fetch_add(&net_dev->users, 1);
	*verbs_cq = cq;
	return DOCA_SUCCESS;

err_uar:
	if (cq->own_uar)
		(void)doca_verbs_uar_destroy(cq->uar);
err_memory:
	(void)drop_memory(cq);
err_free:
	free(cq);
	return err;
}

doca_error_t doca_verbs_cq_destroy(doca_verbs_cq_t *cq)
{
	doca_error_t err;

	GDK_CHECK_PTR(cq);
	if (atomic_load(&cq->users) > 0) {
		gdk_err("CQ 0x%x: cannot destroy it: %d queue pairs still use it", cq->cqn,
			atomic_load(&cq->users));
		return DOCA_ERROR_IN_USE;
	}
	if (cq->sdk)
		return gdk_sdk_cq_destroy(cq);
	if (cq->obj) { /* NULL: an earlier call destroyed it, but could not free the memory */
		err = gdk_devx_destroy(cq->dev->ctx, cq->obj, GDK_CMD_DESTROY_CQ, "CQ", cq->cqn);
		if (err != DOCA_SUCCESS)
			return err;
		cq->obj = NULL;
		atomic_fetch_sub(&cq->umem->users, 1);
		atomic_fetch_sub(&cq->uar->users, 1);
	}
	err = drop_memory(cq);
	if (err != DOCA_SUCCESS)
		return err;
	if (cq->own_uar)
		(void)doca_verbs_uar_destroy(cq->uar);
	atomic_fetch_sub(&cq->dev->users, 1);
	free(cq);
	return DOCA_SUCCESS;
}

doca_error_t gdk_cq_query_producer(const struct doca_verbs_cq_t *cq, uint32_t *producer)
{
	uint8_t in[PRM_CMD_IN_LEN] = { 0 }, out[PRM_QUERY_CQ_OUT_LEN] = { 0 };
	doca_error_t err;
	char name[24];

	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_QUERY_CQ);
	prm_set(in, PRM_CMD_OBJECT, cq->cqn);
	snprintf(name, sizeof(name), "CQ 0x%x", cq->cqn);
	err = gdk_devx_query(cq->dev->ctx, cq->obj, name, in, sizeof(in), out, sizeof(out));
	if (err == DOCA_SUCCESS)
		*producer = (uint32_t)prm_get(out + PRM_QUERY_CQ_CQC_AT, PRM_CQC_PRODUCER_COUNTER);
	return err;
}
