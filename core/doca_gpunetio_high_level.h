/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A queue pair for GPU threads in one call: memory, umem, register page, CQ and
 * QP are created, and the QP is exported. The caller connects it (modify to
 * INIT, RTR, RTS) through the member qp.
 */
#ifndef DOCA_GPUNETIO_HIGH_LEVEL_H
#define DOCA_GPUNETIO_HIGH_LEVEL_H

#include "doca_gpunetio.h"
#include "doca_verbs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How GPU memory is given to the NIC. */
enum doca_gpu_verbs_mem_reg_type {
	DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_DEFAULT = 0, /* dmabuf, else peermem */
	DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_CUDA_DMABUF = 1,
	DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_CUDA_PEERMEM = 2,
	DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_MAX,
};

/* Zero the struct first: reserved bytes must be 0. */
struct doca_gpu_verbs_qp_init_attr_hl {
	doca_gpu_t *gpu_dev;
	doca_dev_t *net_dev;
	struct ibv_pd *ibpd; /* that of net_dev, or NULL */
	uint16_t sq_nwqe;    /* WQE slots, rounded up to a power of two, at most 32768 */
	uint8_t reserved1[2];
	enum doca_gpu_dev_verbs_nic_handler nic_handler;
	enum doca_gpu_verbs_mem_reg_type mreg_type;
	enum doca_gpu_verbs_send_dbr_mode_ext send_dbr_mode_ext;
	bool cq_collapsed; /* every CQE overwrites entry 0 */
	union {
		uint8_t reserved2[3];
		/* Newer than 3.0: rings, CQ and DBREC in pinned host memory, for CPU threads
		 * that use them by the addresses in qp_gverbs->qp_cpu. */
		bool enable_umem_cpu;
	};
	enum doca_verbs_qp_ordering_semantic ordering_semantic;
	uint8_t reserved3[12];
} __attribute__((__aligned__(8))) __attribute__((__packed__));

/* What was created. *_gpu_ptr are GPU addresses. */
struct doca_gpu_verbs_qp_hl {
	doca_gpu_t *gpu_dev;

	doca_verbs_cq_t *cq_sq;
	void *cq_sq_umem_gpu_ptr;
	doca_verbs_umem_t *cq_sq_umem;

	doca_verbs_qp_t *qp;
	void *qp_umem_gpu_ptr;
	doca_verbs_umem_t *qp_umem;
	void *qp_umem_dbr_gpu_ptr;
	doca_verbs_umem_t *qp_umem_dbr;
	doca_verbs_uar_t *external_uar;

	enum doca_gpu_dev_verbs_nic_handler nic_handler;
	enum doca_gpu_verbs_send_dbr_mode_ext send_dbr_mode_ext;

	struct doca_gpu_verbs_qp *qp_gverbs;
};

/* Two QPs on one register page; the companion is for core-direct work. */
struct doca_gpu_verbs_qp_group_hl {
	struct doca_gpu_verbs_qp_hl qp_main;
	struct doca_gpu_verbs_qp_hl qp_companion;
};

/* NOT_SUPPORTED: the handler or the doorbell-record mode is refused, the log
 * says why; NO_MEMORY; DRIVER: the firmware refused. */
doca_error_t doca_gpu_verbs_create_qp_hl(struct doca_gpu_verbs_qp_init_attr_hl *qp_init_attr,
					 struct doca_gpu_verbs_qp_hl **qp);
/* IN_USE, DRIVER: the NIC refused. What it still uses is kept; call again. */
doca_error_t doca_gpu_verbs_destroy_qp_hl(struct doca_gpu_verbs_qp_hl *qp);

/* Two such QPs, alike but for core-direct. NOT_SUPPORTED also for GPU_SM_BF, whose buffer
 * two QPs cannot share. */
doca_error_t doca_gpu_verbs_create_qp_group_hl(struct doca_gpu_verbs_qp_init_attr_hl *qp_init_attr,
					       struct doca_gpu_verbs_qp_group_hl **qpg);
/* Both; as doca_gpu_verbs_destroy_qp_hl, which cannot take one of them. */
doca_error_t doca_gpu_verbs_destroy_qp_group_hl(struct doca_gpu_verbs_qp_group_hl *qpg);

/* doca_gpu_verbs_export_multi_qps_dev for high-level QPs, also those in groups, of one GPU.
 * NULL in qp_list is a hole, but not all of them can be. */
doca_error_t doca_gpu_verbs_qp_flat_list_create_hl(struct doca_gpu_verbs_qp_hl **qp_list,
						   uint32_t num_elems,
						   struct doca_gpu_dev_verbs_qp **qp_gpu);
/* QPs in it may be gone already. NOT_FOUND: it is no flat list. */
doca_error_t doca_gpu_verbs_qp_flat_list_destroy_hl(struct doca_gpu_dev_verbs_qp *qp_gpu);

#ifdef __cplusplus
}
#endif

#endif
