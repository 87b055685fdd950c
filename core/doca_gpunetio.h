/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The GPU: its memory, and queue pairs exported to it. Functions return
 * DOCA_SUCCESS, or INVALID_VALUE for a bad argument, or what is stated. An
 * out-parameter is written on success only, unless stated.
 *
 * Threads, for all headers in host/: calls on different objects may run in parallel,
 * also when these share a device, a GPU, a register page, a CQ or a service. Calls on
 * one object run one after another, but for those that only ask, those marked "any
 * thread", and those of a service; none runs beside the object's destruction.
 */
#ifndef DOCA_GPUNETIO_H
#define DOCA_GPUNETIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../common/doca_gpunetio_verbs_def.h"
#include "../doca_gpunetio_config.h"
#include "doca_error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which library serves an object: this one, or an installed DOCA SDK. */
enum doca_gpu_lib_type {
	DOCA_GPU_LIB_TYPE_OPEN = 0,
	DOCA_GPU_LIB_TYPE_SDK = 1,
};

/* A GPU, opened by doca_gpu_create. Opaque. */
typedef struct doca_gpu doca_gpu_t;

typedef struct doca_verbs_cq_t doca_verbs_cq_t;
typedef struct doca_verbs_qp_t doca_verbs_qp_t;
struct doca_gpu_dev_verbs_qp;
struct doca_gpu_dev_verbs_cq;

/* Kinds of memory that GPU and NIC both reach. */
enum doca_gpu_mem_type {
	DOCA_GPU_MEM_TYPE_GPU = 0,     /* on the GPU, no CPU address */
	DOCA_GPU_MEM_TYPE_GPU_CPU = 1, /* on the GPU, with a CPU address (GDRCopy) */
	DOCA_GPU_MEM_TYPE_CPU_GPU = 2, /* on the host, pinned, with a GPU address */
};

/* An exported queue pair as the CPU sees it. */
struct doca_gpu_verbs_qp {
	doca_gpu_t *gpu_dev;
	doca_verbs_qp_t *qp;
	uint64_t *cpu_db;	 /* CPU_PROXY: the counter that the GPU raises */
	uint64_t sq_wqe_pi_last; /* CPU_PROXY: last index rung */
	uint64_t *sq_db;	 /* the register, for the CPU */
	__be32 *sq_dbrec;	 /* CPU_PROXY: send word of the doorbell record */
	bool cpu_proxy;
	uint32_t sq_num_shift8_be; /* QP number << 8, big-endian */
	enum doca_gpu_verbs_send_dbr_mode_ext send_dbr_mode_ext;

	struct doca_gpu_dev_verbs_qp *qp_cpu;	/* host image of the device struct */
	struct doca_gpu_dev_verbs_qp *qp_gpu;	/* device struct, GPU address */
	struct doca_gpu_dev_verbs_qp *qp_gpu_h; /* CPU address of qp_gpu, or NULL */
};

/* The error CQE of a queue pair; all 0 when there is none. */
struct doca_gpu_verbs_qp_error_info {
	bool has_error;	     /* the QP is in error, with a CQE or without */
	int syndrome;	     /* by gdk_syndrome_text in words; 5: flushed, no cause */
	int vendor_err_synd; /* this and the next two are for NVIDIA's support */
	int hw_err_synd;
	int hw_synd_type;
	int wqe_counter; /* index of the failed WQE, modulo 2^16 */
};

/* Threads that ring doorbells on behalf of GPUs. */
typedef void *doca_gpu_verbs_service_t;

/* Opens the GPU at a PCI address ("8A:00.0" or "0000:8a:00.0"), or "host", a GPU
 * made of CPU threads. NOT_FOUND: no such GPU, or no CUDA driver; NO_MEMORY. */
doca_error_t doca_gpu_create(const char *gpu_bus_id, doca_gpu_t **gpu_dev);

/* IN_USE while memory from doca_gpu_mem_alloc is not freed. */
doca_error_t doca_gpu_destroy(doca_gpu_t *gpu_dev);

/* size in bytes; alignment in bytes, a power of two, or 0 for that of malloc.
 * Both addresses are aligned, the CPU's of kind GPU_CPU to no more than a page.
 * *memptr_cpu is set to NULL for kind GPU, where memptr_cpu itself may be NULL.
 * NO_MEMORY; NOT_SUPPORTED: no GDRCopy. */
doca_error_t doca_gpu_mem_alloc(doca_gpu_t *gpu_dev, size_t size, size_t alignment,
				enum doca_gpu_mem_type mtype, void **memptr_gpu, void **memptr_cpu);

/* memptr_gpu as returned. NOT_FOUND: not from doca_gpu_mem_alloc of this GPU. */
doca_error_t doca_gpu_mem_free(doca_gpu_t *gpu, void *memptr_gpu);

/* Makes a queue pair usable by GPU threads, with nic_handler to ring for them.
 * gpu_qp_umem_dev_ptr is the GPU address of the umem that holds its queues.
 * cq_sq is where its sends complete; no other exported QP's may.
 * NOT_SUPPORTED: the handler cannot serve, the log says why; IN_USE: QP or CQ is
 * exported already. */
doca_error_t doca_gpu_verbs_export_qp(doca_gpu_t *gpu_dev, doca_verbs_qp_t *qp,
				      enum doca_gpu_dev_verbs_nic_handler nic_handler,
				      void *gpu_qp_umem_dev_ptr, doca_verbs_cq_t *cq_sq,
				      enum doca_gpu_verbs_send_dbr_mode_ext send_dbr_mode_ext,
				      struct doca_gpu_verbs_qp **qp_out);

/* Ends the export, when no GPU thread uses the QP any more; a service lets it go first.
 * gpu_dev is that of the export. qp and its device struct are gone then. */
doca_error_t doca_gpu_verbs_unexport_qp(doca_gpu_t *gpu_dev, struct doca_gpu_verbs_qp *qp);

/* The device struct, to be given to kernels: a GPU address. A QP has one at a time, in
 * which its slots are counted; it is the one in an array or flat list while that is there. */
doca_error_t doca_gpu_verbs_get_qp_dev(struct doca_gpu_verbs_qp *qp,
				       struct doca_gpu_dev_verbs_qp **qp_gpu);

/* A dmabuf file descriptor of size bytes at memptr_gpu, of the default mapping
 * type; the caller closes it. NOT_SUPPORTED: GPU or driver has none. */
doca_error_t doca_gpu_get_dmabuf_fd(doca_gpu_t *gpu_dev, void *memptr_gpu, size_t size,
				    int *dmabuf_fd);

/* Can the GPU whose CUDA context is current (else the process's only opened GPU)
 * map the register page of db, a CPU address? NOT_FOUND: no such GPU. */
doca_error_t doca_gpu_verbs_can_gpu_register_uar(void *db, bool *out_can_register);

/* Maps the register page of sq_db, a CPU address, for that GPU; *uar_addr_gpu is the
 * same register. NOT_FOUND: no such GPU; DRIVER: refused. Exports of one page are
 * counted; each is undone by an unexport of its GPU address. */
doca_error_t doca_gpu_verbs_export_uar(uint64_t *sq_db, uint64_t **uar_addr_gpu);

/* NOT_FOUND: not from doca_gpu_verbs_export_uar. */
doca_error_t doca_gpu_verbs_unexport_uar(uint64_t *uar_addr_gpu);

/* One step of the CPU proxy for one QP; *out_progressed (may be NULL): it rang. What
 * the GPU raised before the call is rung when it returns. Any thread, also beside a
 * service and a reset of the QP. NOT_SUPPORTED: its handler needs no CPU. */
doca_error_t doca_gpu_verbs_cpu_proxy_progress(struct doca_gpu_verbs_qp *qp_cpu,
					       bool *out_progressed);

/* Starts threads that make such steps for every monitored QP; gdaki.h says how they
 * run, and how a QP leaves. NO_MEMORY; OPERATING_SYSTEM: a thread did not start. */
doca_error_t doca_gpu_verbs_create_service(doca_gpu_verbs_service_t *out_service);
/* Any thread, as all calls on a service but its destruction. Once more is no error.
 * IN_USE: another service has it; NOT_SUPPORTED: its handler needs no CPU; NO_MEMORY. */
doca_error_t doca_gpu_verbs_service_monitor_qp(doca_gpu_verbs_service_t service,
					       struct doca_gpu_verbs_qp *qp);
/* Rings what its QPs raised before the call, lets them go and ends its threads; it
 * does not wait for those who go on raising. */
doca_error_t doca_gpu_verbs_destroy_service(doca_gpu_verbs_service_t service);

/* From the firmware's state of the QP and the whole CQ, in whatever memory it is: the
 * first error that is no flush counts. gdk_verbs_qp_get_error says more.
 * NO_MEMORY; DRIVER: firmware or GPU cannot be read. */
doca_error_t doca_gpu_verbs_query_last_error(struct doca_gpu_verbs_qp *qp,
					     struct doca_gpu_verbs_qp_error_info *error_info);

/* Puts the device structs of num_qps QPs into one array in GPU memory, from where kernels
 * use them; NULL in qps is a hole, of zeroes. IN_USE: a QP has a device struct already;
 * NO_MEMORY; DRIVER: the GPU cannot be written. */
doca_error_t doca_gpu_verbs_export_multi_qps_dev(doca_gpu_t *gpu_dev,
						 struct doca_gpu_verbs_qp **qps,
						 unsigned int num_qps,
						 struct doca_gpu_dev_verbs_qp **out_qp_gpus);
/* Frees the array qp_gpus. Its QPs, which may be gone by now, keep their place: what is
 * posted through a next device struct follows. NOT_FOUND: no array of this GPU. */
doca_error_t doca_gpu_verbs_unexport_multi_qps_dev(doca_gpu_t *gpu_dev,
						   struct doca_gpu_verbs_qp **qps,
						   unsigned int num_qps,
						   struct doca_gpu_dev_verbs_qp *qp_gpus);

/* After the QP went through RST: puts indices, state and rings back to what they
 * were at export. No GPU thread may use the QP meanwhile; a proxy may stay, and does
 * not ring what was raised before. As often as wanted, whatever was signalled.
 * NO_MEMORY; DRIVER: firmware or GPU refused, it can be tried again. */
doca_error_t doca_gpu_verbs_reset_tracking_and_memory(struct doca_gpu_verbs_qp *qp_gverbs);

/* DOCA_GPUNETIO_VERSION of the linked library. */
doca_error_t doca_gpu_verbs_get_library_version(uint32_t *version);

/* Was code of that version (DOCA_GPUNETIO_{DEVICE,HOST}_CODE_VERSION when it was
 * compiled) made for a library like this one? NOT_SUPPORTED: too old, or newer. */
doca_error_t doca_gpu_verbs_check_device_code_compatibility(uint32_t device_code_version);
doca_error_t doca_gpu_verbs_check_host_code_compatibility(uint32_t host_code_version);

#ifdef __cplusplus
}
#endif

#endif
