/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * GPUs: their memory, and queue pairs exported to them.
 *
 * Rules for all headers in host/:
 *
 * - Functions of type doca_error_t return DOCA_SUCCESS, DOCA_ERROR_INVALID_VALUE for an argument
 *   that is NULL or out of range, or one of the errors in their description. The log has the cause
 *   of an error.
 * - A function that sends a command to the firmware can also return DOCA_ERROR_NO_MEMORY,
 *   DOCA_ERROR_NOT_SUPPORTED or DOCA_ERROR_NOT_PERMITTED if the kernel refuses the command for
 *   that reason, and DOCA_ERROR_DRIVER if the firmware refuses it or for another error of the
 *   kernel. gdk_get_command_error() has the details.
 * - Out-parameters are written on success only.
 * - Numbers are in CPU byte order unless the description says otherwise.
 * - Calls on different objects may run in parallel, also if the objects share a device, GPU, UAR,
 *   CQ or service. Calls on one object must run one after another, except getters, queries,
 *   functions marked "Any thread" and the functions of a service. No call may run in parallel with
 *   the destruction of its object.
 * - If an installed DOCA SDK is in use, a function that the SDK also has calls it and returns its
 *   errors.
 */
#ifndef DOCA_GPUNETIO_H
#define DOCA_GPUNETIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/doca_gpunetio_verbs_def.h"
#include "doca_gpunetio_config.h"
#include "host/doca_error.h"
#include "host/gdk_gpu.h"
#include "host/gdk_open_shape.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The library that implements an object. */
enum doca_gpu_lib_type {
	DOCA_GPU_LIB_TYPE_OPEN = 0, /**< this library */
	DOCA_GPU_LIB_TYPE_SDK = 1,  /**< an installed DOCA SDK */
};

typedef struct doca_verbs_cq_t doca_verbs_cq_t; /**< a completion queue, see doca_verbs_cq.h */
typedef struct doca_verbs_qp_t doca_verbs_qp_t; /**< a queue pair, see doca_verbs_qp.h */
struct doca_gpu_dev_verbs_qp;
struct doca_gpu_dev_verbs_cq;

/**
 * An exported QP, host side. The library maintains the fields; callers only read them. "CPU proxy"
 * fields are used if the handler is CPU_PROXY or the mode is NO_DBR_SW_EMULATED.
 */
struct doca_gpu_verbs_qp {
	doca_gpu_t *gpu_dev; /**< GPU that the QP is exported to */
	doca_verbs_qp_t *qp; /**< the QP */
	uint64_t *cpu_db;    /**< CPU proxy: counter that GPU threads raise, index after last WQE.
			       * A value below sq_wqe_pi_last is ignored. */
	uint64_t sq_wqe_pi_last;   /**< CPU proxy: value of the counter that was last rung */
	uint64_t *sq_db;	   /**< doorbell register, CPU address */
	__be32 *sq_dbrec;	   /**< send word of the DBREC, CPU address; NULL: not CPU memory */
	bool cpu_proxy;		   /**< a CPU thread must ring for this QP */
	uint32_t sq_num_shift8_be; /**< QP number << 8, big-endian */
	enum doca_gpu_verbs_send_dbr_mode_ext send_dbr_mode_ext; /**< DBREC mode of the export */

	struct doca_gpu_dev_verbs_qp *qp_cpu;	/**< host image of the device struct */
	struct doca_gpu_dev_verbs_qp *qp_gpu;	/**< device struct, GPU address; NULL before
					       * doca_gpu_verbs_get_qp_dev() */
	struct doca_gpu_dev_verbs_qp *qp_gpu_h; /**< CPU address of qp_gpu, or NULL */
};

/** The error of a QP. If there is no error CQE, all fields except has_error are 0. */
struct doca_gpu_verbs_qp_error_info {
	bool has_error;	     /**< the QP is in state ERR, or has an error CQE */
	int syndrome;	     /**< see gdk_syndrome_text(); 5: flushed, not the cause */
	int vendor_err_synd; /**< for NVIDIA's support */
	int hw_err_synd;     /**< for NVIDIA's support */
	int hw_synd_type;    /**< for NVIDIA's support */
	int wqe_counter;     /**< index of the failed WQE, modulo 2^16 */
};

/** A CPU proxy service: threads that ring doorbells for GPUs. */
typedef void *doca_gpu_verbs_service_t;

/**
 * Exports a QP: builds the structures through which GPU threads post to it. The QP may be in any
 * state. End the export with doca_gpu_verbs_unexport_qp() before the QP is destroyed.
 *
 * For a CUDA GPU the queues and the CQ must be in external umems. A CQ that is not collapsed needs
 * at least as many entries as the send queue has slots.
 *
 * With CPU_PROXY, and with the mode NO_DBR_SW_EMULATED, a CPU thread must ring: see
 * doca_gpu_verbs_create_service(). The log reports doorbells that no thread rings.
 *
 * @param nic_handler the doorbell handler; AUTO: the library chooses one, and
 *         gdk_verbs_qp_get_handler_report() reports the choice
 * @param gpu_qp_umem_dev_ptr not used: the umem knows its address
 * @param cq_sq the CQ of the send queue; it serves only one exported QP
 * @param send_dbr_mode_ext must match the DBREC mode that the QP was created with: NO_DBR_HW if
 *         and only if the mode of the QP is NO_DBR_EXT. Must not be VALID_DBR with handler
 *         GPU_SM_NO_DBR.
 * @retval DOCA_ERROR_INVALID_VALUE QP, CQ, GPU, handler and mode do not fit together
 * @retval DOCA_ERROR_NOT_SUPPORTED the handler does not work on this GPU and NIC, or the queues
 *         are in memory that the GPU cannot address
 * @retval DOCA_ERROR_IN_USE the QP or the CQ is exported already
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the UAR cannot be mapped, or a CUDA call failed
 */
doca_error_t doca_gpu_verbs_export_qp(doca_gpu_t *gpu_dev, doca_verbs_qp_t *qp,
				      enum doca_gpu_dev_verbs_nic_handler nic_handler,
				      void *gpu_qp_umem_dev_ptr, doca_verbs_cq_t *cq_sq,
				      enum doca_gpu_verbs_send_dbr_mode_ext send_dbr_mode_ext,
				      struct doca_gpu_verbs_qp **qp_out);

/**
 * Ends an export and frees qp and its device struct. No GPU thread may use the QP any more. If a
 * service monitors the QP, the service rings every index that was raised before the call and
 * removes the QP.
 *
 * A warning is logged if reserved slots or raised doorbells were never rung.
 *
 * @param gpu_dev the GPU of the export; INVALID_VALUE for another one
 */
doca_error_t doca_gpu_verbs_unexport_qp(doca_gpu_t *gpu_dev, struct doca_gpu_verbs_qp *qp);

/**
 * Returns the device struct of an exported QP. GPU kernels get it as an argument.
 *
 * A QP has one device struct at a time, because GPU threads reserve slots through it. While the QP
 * is in an array of doca_gpu_verbs_export_multi_qps_dev() or in a flat list, the function returns
 * the entry of the array or list. The struct exists until the export ends or the array is freed.
 *
 * @param qp_gpu gets a GPU address
 */
doca_error_t doca_gpu_verbs_get_qp_dev(struct doca_gpu_verbs_qp *qp,
				       struct doca_gpu_dev_verbs_qp **qp_gpu);

/**
 * Exports GPU memory as a dmabuf of CUDA's default mapping type. Any thread may call this.
 *
 * @param memptr_gpu GPU address, a multiple of the CPU's page size
 * @param size bytes, rounded up to the CPU's page size
 * @param dmabuf_fd gets a file descriptor, which the caller closes
 * @retval DOCA_ERROR_INVALID_VALUE also if memptr_gpu is not on a page boundary
 * @retval DOCA_ERROR_NOT_SUPPORTED the GPU or its driver cannot export this memory as a dmabuf;
 *         always for GPU "host"
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the CUDA context cannot be used
 */
doca_error_t doca_gpu_get_dmabuf_fd(doca_gpu_t *gpu_dev, void *memptr_gpu, size_t size,
				    int *dmabuf_fd);

/**
 * Tests whether a GPU can map a UAR. This is the GPU whose CUDA context is current, otherwise the
 * only GPU that this process has opened. Any thread may call this.
 *
 * @param db CPU address of a doorbell register in the UAR
 * @param out_can_register gets the answer
 * @retval DOCA_ERROR_NOT_FOUND no GPU is open, or several are and none is current
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_gpu_verbs_can_gpu_register_uar(void *db, bool *out_can_register);

/**
 * Maps a UAR for the GPU whose CUDA context is current, otherwise for the only GPU that this
 * process has opened. Mappings of one page are counted: undo each with
 * doca_gpu_verbs_unexport_uar(). Any thread may call this.
 *
 * @param sq_db CPU address of a doorbell register in the UAR
 * @param uar_addr_gpu gets the GPU address of the same register
 * @retval DOCA_ERROR_NOT_FOUND no GPU is open, or several are and none is current
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the CUDA driver refused
 */
doca_error_t doca_gpu_verbs_export_uar(uint64_t *sq_db, uint64_t **uar_addr_gpu);

/**
 * Undoes one doca_gpu_verbs_export_uar(). Any thread may call this.
 *
 * @param uar_addr_gpu the GPU address that the export returned
 * @retval DOCA_ERROR_NOT_FOUND the address is not exported
 */
doca_error_t doca_gpu_verbs_unexport_uar(uint64_t *uar_addr_gpu);

/**
 * Executes one step of the CPU proxy for one QP: rings every index that GPU threads raised before
 * the call. It waits only for a step of another thread, or for a reset of the QP. Any thread may
 * call this, also in parallel with a service or a reset of the QP.
 *
 * @param out_progressed gets whether the call rang; may be NULL
 * @retval DOCA_ERROR_NOT_SUPPORTED the handler of the QP needs no CPU thread
 */
doca_error_t doca_gpu_verbs_cpu_proxy_progress(struct doca_gpu_verbs_qp *qp_cpu,
					       bool *out_progressed);

/**
 * Creates a CPU proxy service with the default options: threads that execute the steps of
 * doca_gpu_verbs_cpu_proxy_progress() for every QP that they monitor. gdk_verbs_service_create()
 * accepts options.
 *
 * @retval DOCA_ERROR_INVALID_VALUE GDAKI_PROXY_CPUS is malformed or has a CPU that this process
 *         may not use
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_OPERATING_SYSTEM a thread did not start
 */
doca_error_t doca_gpu_verbs_create_service(doca_gpu_verbs_service_t *out_service);

/**
 * Adds a QP to a service. Succeeds also if the service monitors the QP already. Remove the QP with
 * gdk_verbs_service_unmonitor_qp(); doca_gpu_verbs_unexport_qp() and
 * doca_gpu_verbs_destroy_service() also remove it. Any thread may call this.
 *
 * @retval DOCA_ERROR_IN_USE another service monitors the QP
 * @retval DOCA_ERROR_NOT_SUPPORTED the handler of the QP needs no CPU thread
 * @retval DOCA_ERROR_NO_MEMORY no memory
 */
doca_error_t doca_gpu_verbs_service_monitor_qp(doca_gpu_verbs_service_t service,
					       struct doca_gpu_verbs_qp *qp);

/**
 * Destroys a service: rings every index that GPU threads raised before the call, removes the QPs
 * and ends the threads. Indices that GPU threads raise during the call may stay unrung.
 */
doca_error_t doca_gpu_verbs_destroy_service(doca_gpu_verbs_service_t service);

/**
 * Reads the error of an exported QP: its state from the firmware, and the first error CQE in its
 * CQ that is not a flush. gdk_verbs_qp_get_error() returns more. Any thread may call this, and GPU
 * threads may use the QP meanwhile.
 *
 * @retval DOCA_ERROR_NO_MEMORY no memory for a copy of the CQ
 * @retval DOCA_ERROR_DRIVER the firmware or GPU memory cannot be read
 */
doca_error_t doca_gpu_verbs_query_last_error(struct doca_gpu_verbs_qp *qp,
					     struct doca_gpu_verbs_qp_error_info *error_info);

/**
 * Places the device structs of several exported QPs in one array in GPU memory. GPU threads use the
 * structs in the array. Free the array with doca_gpu_verbs_unexport_multi_qps_dev().
 *
 * @param qps exported QPs of this GPU, each at most once; NULL leaves an entry of zeroes
 * @param num_qps entries of qps, at least 1
 * @param out_qp_gpus gets the GPU address of the array
 * @retval DOCA_ERROR_INVALID_VALUE a QP is exported to another GPU
 * @retval DOCA_ERROR_IN_USE a QP has a device struct already, from doca_gpu_verbs_get_qp_dev() or
 *         another array, or is in qps twice
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be written
 */
doca_error_t doca_gpu_verbs_export_multi_qps_dev(doca_gpu_t *gpu_dev,
						 struct doca_gpu_verbs_qp **qps,
						 unsigned int num_qps,
						 struct doca_gpu_dev_verbs_qp **out_qp_gpus);

/**
 * Frees an array of device structs. No GPU thread may use it any more. QPs of the array that are
 * still exported keep their send index: posting continues through the next device struct.
 *
 * @param qps not used, but not NULL: the array knows its QPs
 * @param num_qps not used, but not 0
 * @param qp_gpus the address that doca_gpu_verbs_export_multi_qps_dev() returned
 * @retval DOCA_ERROR_NOT_FOUND the address is not an array of this GPU
 * @retval DOCA_ERROR_DRIVER GPU memory cannot be accessed; the array is freed nevertheless
 */
doca_error_t doca_gpu_verbs_unexport_multi_qps_dev(doca_gpu_t *gpu_dev,
						   struct doca_gpu_verbs_qp **qps,
						   unsigned int num_qps,
						   struct doca_gpu_dev_verbs_qp *qp_gpus);

/**
 * Resets an exported QP after doca_verbs_qp_modify() has moved it to RST: send ring, DBREC, CQ
 * entries, indices and state become those of a new export. Only the CQ keeps its producer index,
 * because the NIC keeps it. Then connect the QP again.
 *
 * No GPU thread may use the QP during the call. A service may keep monitoring the QP; indices that
 * were raised before the call and are not rung yet are discarded. After an error the call can be
 * repeated.
 *
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_DRIVER the firmware cannot be queried, or GPU memory cannot be accessed
 */
doca_error_t doca_gpu_verbs_reset_tracking_and_memory(struct doca_gpu_verbs_qp *qp_gverbs);

/**
 * Returns the API version of the linked library, DOCA_GPUNETIO_VERSION when it was built: major <<
 * 16 | minor << 8 | patch. Any thread may call this.
 */
doca_error_t doca_gpu_verbs_get_library_version(uint32_t *version);

/**
 * Tests whether device code works with the linked library. Any thread may call this.
 *
 * @param device_code_version DOCA_GPUNETIO_DEVICE_CODE_VERSION when the device code was compiled
 * @retval DOCA_ERROR_NOT_SUPPORTED the code is older than 2.0.0, or newer than the library
 */
doca_error_t doca_gpu_verbs_check_device_code_compatibility(uint32_t device_code_version);

/**
 * Tests whether host code works with the linked library. Any thread may call this.
 *
 * @param host_code_version DOCA_GPUNETIO_HOST_CODE_VERSION when the host code was compiled
 * @retval DOCA_ERROR_NOT_SUPPORTED the code is older than 0.2.0, or newer than the library
 */
doca_error_t doca_gpu_verbs_check_host_code_compatibility(uint32_t host_code_version);

#ifdef __cplusplus
}
#endif

#endif
