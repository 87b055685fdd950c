/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Private layout of an exported queue pair: the public doca_gpu_verbs_qp,
 * whose fields are fixed, and beside it what the library keeps about it.
 */
#ifndef GDK_EXPORT_H
#define GDK_EXPORT_H

#include "../doorbell/doorbell.h"
#include "common/doca_gpunetio_verbs_dev.h"
#include "host/doca_gpunetio.h"
#include "host/gdaki.h"

struct gdk_service;

struct gdk_export {
	struct doca_gpu_verbs_qp pub; /* qp_cpu points to dev below */
	struct doca_gpu_dev_verbs_qp dev; /* host image of the device struct */
	const struct gdk_doorbell *db;
	struct gdk_handler_report report;
	struct doca_verbs_cq_t *cq;
	void *state;	  /* GPU address of the QP's gdk_qp_state */
	size_t state_size;
	uint32_t state_flags; /* GDK_QPF_* */
	uint64_t wait_limit_ns; /* kept over a reset */
	uint32_t *dbrec_cpu;  /* CPU's address of DBREC word 1; NULL: none */
	bool reg_on_host;     /* the register page is ordinary host memory */
	bool dev_shared;      /* pub.qp_gpu lies in a multi-QP array */
	/* Proxy and service. One progress step at a time: the service's thread
	 * and a caller of cpu_proxy_progress may meet. */
	pthread_mutex_t progress_lock;
	void *slot;		     /* page of proxy counters that holds *pub.cpu_db */
	uint64_t rings;		     /* register writes by the CPU, under progress_lock */
	struct gdk_service *service; /* that monitors this QP */
	void (*unmonitor)(struct gdk_service *service, struct gdk_export *x);
};

static inline struct gdk_export *gdk_to_export(struct doca_gpu_verbs_qp *qp)
{
	return GDK_CONTAINER_OF(qp, struct gdk_export, pub);
}

/* Memory kind of device structs, state blocks and high-level queues: GPU
 * memory, or CPU memory that the GPU addresses when GDAKI_QUEUE_MEM=cpu_gpu. */
enum doca_gpu_mem_type gdk_queue_mem_type(void);

/* Writes a fresh state block; cqe_ci is the CQ's producer index. */
doca_error_t gdk_export_write_state(struct gdk_export *x, uint64_t cqe_ci);
/* Says so when slots were reserved or published and never rung, which is most
 * likely a lost submit; a QP that has ended is left alone. */
void gdk_export_warn_tail(struct gdk_export *x);
/* From queue memory, which belongs to a GPU or is plain host memory (NULL). */
doca_error_t gdk_queue_read(doca_gpu_t *gpu, void *dst, const void *src, size_t len);
/* The producer index, modulo two laps, that a ring of CQEs shows; base is
 * where it was when the ring was last made invalid. */
uint64_t gdk_cq_find_producer(const uint8_t *ring, uint32_t num, uint64_t base);

/* Rings once for every index that was published in *pub.cpu_db; *progressed
 * (may be NULL) says whether there was one. In the cpu_proxy archive. */
doca_error_t gdk_proxy_progress(struct gdk_export *x, bool *progressed);

#endif
