/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Functions of the SDK's interface that a source file with the headers of DOCA GPUNetIO open cannot
 * get from doca_verbs.h and doca_gpunetio.h of gdaki-doca, because the two declare functions of the
 * same names differently. Those with a name of gdk_doca_ are bound there: doca_verbs_cq_create() of
 * the SDK is gdk_doca_cq_create(). Types of objects have their names of DOCA GPUNetIO open.
 */
#ifndef GDK_DOCA_SHAPE_H
#define GDK_DOCA_SHAPE_H

#include "host/doca_gpunetio.h"
#include "host/doca_verbs.h"

struct doca_verbs_context;
struct doca_verbs_pd;

/* context.c */
doca_error_t gdk_doca_query_device(struct doca_verbs_context *verbs_context,
				   struct doca_verbs_device_attr **verbs_device_attr);
doca_error_t doca_verbs_device_attr_get_is_send_dbr_mode_supported(
	const struct doca_verbs_device_attr *verbs_device_attr,
	enum doca_verbs_qp_send_dbr_mode send_dbr_mode);

/* cq.c */
doca_error_t gdk_doca_cq_attr_set_cq_overrun(doca_verbs_cq_attr_t *cq_attr, uint8_t overrun);
doca_error_t doca_verbs_cq_attr_set_entry_size(doca_verbs_cq_attr_t *cq_attr, int entry_size);
doca_error_t doca_verbs_cq_attr_set_external_datapath_en(doca_verbs_cq_attr_t *cq_attr,
							 uint8_t external_datapath_en);
doca_error_t gdk_doca_cq_create(struct doca_verbs_context *verbs_context,
				doca_verbs_cq_attr_t *cq_attr, doca_verbs_cq_t **verbs_cq);
uint32_t gdk_doca_cq_get_cqn(const doca_verbs_cq_t *verbs_cq);

/* qp.c */
doca_error_t gdk_doca_ah_attr_create(struct doca_verbs_context *verbs_context,
				     doca_verbs_ah_attr_t **ah_attr);
doca_error_t gdk_doca_qp_init_attr_set_pd(doca_verbs_qp_init_attr_t *qp_init_attr,
					  struct doca_verbs_pd *pd);
doca_error_t
doca_verbs_qp_init_attr_set_external_datapath_en(doca_verbs_qp_init_attr_t *qp_init_attr,
						 uint8_t external_datapath_en);
doca_error_t doca_verbs_qp_init_attr_set_external_dbr_umem(doca_verbs_qp_init_attr_t *qp_init_attr,
							   doca_verbs_umem_t *external_dbr_umem,
							   uint64_t external_dbr_umem_offset);
doca_error_t gdk_doca_qp_create(struct doca_verbs_context *verbs_context,
				doca_verbs_qp_init_attr_t *qp_init_attr,
				doca_verbs_qp_t **verbs_qp);
uint32_t gdk_doca_qp_get_qpn(const doca_verbs_qp_t *verbs_qp);

/* qp/doca/gpu.c */
doca_error_t gdk_doca_gpu_mem_alloc(doca_gpu_t *gpu_dev, size_t size, size_t alignment,
				    enum doca_gpu_mem_type mtype, void **memptr_gpu,
				    void **memptr_cpu);
doca_error_t gdk_doca_gpu_destroy(doca_gpu_t *gpu_dev);

/* export.c */
doca_error_t gdk_doca_export_qp(doca_gpu_t *gpu_dev, doca_dev_t *dev, doca_verbs_qp_t *qp,
				enum doca_gpu_dev_verbs_nic_handler nic_handler,
				void *gpu_qp_umem_dev_ptr, doca_verbs_cq_t *cq_sq,
				doca_verbs_cq_t *cq_rq, struct doca_gpu_verbs_qp **qp_out);
doca_error_t gdk_doca_cpu_proxy_progress(struct doca_gpu_verbs_qp *qp_cpu);
doca_error_t doca_gpu_dmabuf_fd(doca_gpu_t *gpu_dev, void *memptr_gpu, size_t size, int *dmabuf_fd);

#endif
