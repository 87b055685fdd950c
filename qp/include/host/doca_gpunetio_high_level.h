/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * High-level queue pairs: one call creates memory, umem, UAR, CQ and QP, and exports the QP. The
 * caller connects it with doca_verbs_qp_modify() (INIT, RTR, RTS) through the member qp.
 *
 * Return values, out-parameters and thread safety follow the rules in doca_gpunetio.h.
 */
#ifndef DOCA_GPUNETIO_HIGH_LEVEL_H
#define DOCA_GPUNETIO_HIGH_LEVEL_H

#include "host/doca_gpunetio.h"
#include "host/doca_verbs.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How GPU memory is registered with the NIC. */
enum doca_gpu_verbs_mem_reg_type {
	DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_DEFAULT = 0,	   /**< dmabuf; peer memory if that fails */
	DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_CUDA_DMABUF = 1,  /**< dmabuf only */
	DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_CUDA_PEERMEM = 2, /**< peer memory only */
	DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_MAX,		   /**< number of values */
};

/**
 * Options of a high-level QP. Set every member that is not reserved; 0 is valid for all but
 * gpu_dev, net_dev and sq_nwqe. The library does not read reserved bytes, so they need no value.
 * Options that DOCA GPUNetIO does not have are flags of gdk_verbs_create_qp_hl() (gdaki.h).
 */
struct doca_gpu_verbs_qp_init_attr_hl {
	doca_gpu_t *gpu_dev; /**< GPU that posts */
	doca_dev_t *net_dev; /**< NIC that sends */
	struct ibv_pd *ibpd; /**< NULL, or the protection domain of net_dev */
	uint16_t sq_nwqe; /**< send slots of 64 bytes, 1 to 32768, rounded up to a power of two */
	uint8_t reserved1[2];				 /**< not read */
	enum doca_gpu_dev_verbs_nic_handler nic_handler; /**< doorbell handler */
	enum doca_gpu_verbs_mem_reg_type mreg_type;	 /**< how GPU memory is registered */
	enum doca_gpu_verbs_send_dbr_mode_ext send_dbr_mode_ext; /**< DBREC mode, or
								  * GDK_SEND_DBR_MODE_AUTO */
	bool cq_collapsed;    /**< the NIC writes every CQE to entry 0 */
	uint8_t reserved2[3]; /**< not read */
	enum doca_verbs_qp_ordering_semantic ordering_semantic; /**< only IBTA is supported */
	uint8_t reserved3[12];					/**< not read */
} __attribute__((__aligned__(8))) __attribute__((__packed__));

/** A high-level QP. The library owns the objects and the memory in it, except gpu_dev. */
struct doca_gpu_verbs_qp_hl {
	doca_gpu_t *gpu_dev; /**< GPU of the QP */

	doca_verbs_cq_t *cq_sq;	       /**< CQ of the send queue */
	void *cq_sq_umem_gpu_ptr;      /**< entry 0 of the CQ, GPU address */
	doca_verbs_umem_t *cq_sq_umem; /**< umem of the CQ */

	doca_verbs_qp_t *qp;		/**< the QP; connect it with doca_verbs_qp_modify() */
	void *qp_umem_gpu_ptr;		/**< slot 0 of the send ring, GPU address */
	doca_verbs_umem_t *qp_umem;	/**< umem of the send ring */
	void *qp_umem_dbr_gpu_ptr;	/**< DBREC, GPU address */
	doca_verbs_umem_t *qp_umem_dbr; /**< umem of the DBREC */
	doca_verbs_uar_t *external_uar; /**< UAR of QP and CQ */

	enum doca_gpu_dev_verbs_nic_handler nic_handler;	 /**< handler that was chosen */
	enum doca_gpu_verbs_send_dbr_mode_ext send_dbr_mode_ext; /**< DBREC mode that was chosen */

	struct doca_gpu_verbs_qp *qp_gverbs; /**< the export */
};

/** Two QPs that share a UAR: one for data, and a companion for WAIT WQEs (core direct). */
struct doca_gpu_verbs_qp_group_hl {
	struct doca_gpu_verbs_qp_hl qp_main;	  /**< QP for data */
	struct doca_gpu_verbs_qp_hl qp_companion; /**< QP created with core_direct_master */
};

/**
 * Creates a high-level QP in state RST, exported to the GPU. Destroy it with
 * doca_gpu_verbs_destroy_qp_hl(). The CQ has as many entries as the send ring has slots, and
 * overrun is enabled: the NIC overwrites old entries without an error.
 *
 * @retval DOCA_ERROR_INVALID_VALUE an option is out of range, ibpd is not the protection domain of
 *         net_dev, or send_dbr_mode_ext is GDK_SEND_DBR_MODE_AUTO and the handler needs an explicit
 *         mode
 * @retval DOCA_ERROR_NOT_SUPPORTED the handler, DBREC mode, ordering or registration type does not
 *         work on this GPU and NIC
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the firmware, the kernel or the CUDA driver refused
 */
doca_error_t doca_gpu_verbs_create_qp_hl(struct doca_gpu_verbs_qp_init_attr_hl *qp_init_attr,
					 struct doca_gpu_verbs_qp_hl **qp);

/**
 * Destroys a high-level QP with its export and memory. No GPU thread may use it any more.
 *
 * If the firmware refuses to destroy an object, the call returns its error (DOCA_ERROR_DRIVER, or
 * DOCA_ERROR_IN_USE if another object of the caller still uses one of its objects) and keeps the
 * objects that were not destroyed. The caller can call the function again later; no other function
 * may be called for the QP.
 */
doca_error_t doca_gpu_verbs_destroy_qp_hl(struct doca_gpu_verbs_qp_hl *qp);

/**
 * Creates a group: two high-level QPs with the same options, of which the companion is created
 * with core_direct_master. Destroy it with doca_gpu_verbs_destroy_qp_group_hl().
 *
 * Errors are those of doca_gpu_verbs_create_qp_hl().
 *
 * @retval DOCA_ERROR_NOT_SUPPORTED also for handler GPU_SM_BF: two QPs cannot share one BlueFlame
 *         buffer
 */
doca_error_t doca_gpu_verbs_create_qp_group_hl(struct doca_gpu_verbs_qp_init_attr_hl *qp_init_attr,
					       struct doca_gpu_verbs_qp_group_hl **qpg);

/**
 * Destroys a group. Errors are those of doca_gpu_verbs_destroy_qp_hl(), which must not be called
 * for the QPs of a group.
 */
doca_error_t doca_gpu_verbs_destroy_qp_group_hl(struct doca_gpu_verbs_qp_group_hl *qpg);

/**
 * Copies the device structs of several high-level QPs, also QPs of groups, into one array in GPU
 * memory, as doca_gpu_verbs_export_multi_qps_dev() does. Free it with
 * doca_gpu_verbs_qp_flat_list_destroy_hl().
 *
 * @param qp_list QPs of one GPU, each at most once; NULL leaves an entry of zeroes. At least one
 *         entry must not be NULL.
 * @param num_elems entries of qp_list, at least 1
 * @param qp_gpu gets the GPU address of the array
 * @retval DOCA_ERROR_INVALID_VALUE all entries are NULL, or they belong to different GPUs
 * @retval DOCA_ERROR_IN_USE a QP has a device struct already
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be written
 */
doca_error_t doca_gpu_verbs_qp_flat_list_create_hl(struct doca_gpu_verbs_qp_hl **qp_list,
						   uint32_t num_elems,
						   struct doca_gpu_dev_verbs_qp **qp_gpu);

/**
 * Frees a flat list. Its QPs may be destroyed before or after.
 *
 * @retval DOCA_ERROR_NOT_FOUND the address is not a flat list
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be accessed; the list is freed nevertheless
 */
doca_error_t doca_gpu_verbs_qp_flat_list_destroy_hl(struct doca_gpu_dev_verbs_qp *qp_gpu);

#ifdef __cplusplus
}
#endif

#endif
