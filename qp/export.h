/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Private layout of an exported queue pair: the public doca_gpu_verbs_qp,
 * whose fields are fixed, and beside it what the library keeps about it.
 */
#ifndef GDK_EXPORT_H
#define GDK_EXPORT_H

#include <stdatomic.h>

#include "doorbell/doorbell.h"
#include "common/doca_gpunetio_verbs_dev.h"
#include "host/doca_gpunetio.h"
#include "host/gdaki.h"

struct gdk_export;
struct gdk_worker;

/*
 * What CPU proxy and services keep of a QP: 64 bytes together with the counter and
 * the service's entry for it. One step at a time: a service's thread and a caller of
 * cpu_proxy_progress may meet, and neither may meet a reset.
 */
struct gdk_proxied {
	pthread_spinlock_t step_lock;
	void *slot;		   /* page of proxy counters that holds *pub.cpu_db, NULL: none */
	_Atomic uint64_t rings;	   /* register writes by the CPU; written under step_lock */
	struct gdk_worker *worker; /* of the service that monitors this QP; under their lock */
	/* Set when a service first monitors it: takes it out of whichever does. */
	void (*_Atomic unmonitor)(struct gdk_export *x);
};

struct gdk_export {
	struct doca_gpu_verbs_qp pub; /* qp_cpu points to dev below */
	struct gdk_proxied proxy;     /* beside what a step reads of pub */
	uint32_t *dbrec_cpu; /* CPU's address of DBREC word 1; NULL: none, or not the CPU's */
	struct doca_gpu_dev_verbs_qp dev; /* host image of the device struct */
	const struct gdk_doorbell *db;
	struct gdk_decision decision;
	struct doca_verbs_cq_t *cq;
	void *state;		/* GPU address of the QP's gdk_qp_state */
	size_t dev_at;		/* where behind it the device struct is */
	bool own_state;		/* allocated for this export */
	uint32_t state_flags;	/* GDK_QPF_* */
	uint64_t wait_limit_ns; /* kept over a reset */
	bool reg_on_host;	/* the register page is ordinary host memory */
};

static inline struct gdk_export *gdk_to_export(struct doca_gpu_verbs_qp *qp)
{
	return GDK_CONTAINER_OF(qp, struct gdk_export, pub);
}

/* Memory kind of device structs, state blocks and high-level queues: GPU
 * memory, or CPU memory that the GPU addresses when GDAKI_QUEUE_MEM=cpu_gpu. */
enum doca_gpu_mem_type gdk_queue_mem_type(void);

/* GPU address of the device struct that is not in an array of several (dev_struct.c). */
static inline struct doca_gpu_dev_verbs_qp *gdk_export_own_dev(const struct gdk_export *x)
{
	return (void *)((uint8_t *)x->state + x->dev_at);
}

/* Bytes from an export's state block to the end of its device struct, at GDK_STATE_LINE. */
size_t gdk_export_bytes(uint32_t sq_num);
/* doca_gpu_verbs_export_qp, into memory of the GPU at place that outlives the
 * export; NULL: into memory of its own. */
doca_error_t gdk_qp_export_at(doca_gpu_t *gpu, doca_verbs_qp_t *qp,
			      enum doca_gpu_dev_verbs_nic_handler handler, doca_verbs_cq_t *cq_sq,
			      enum doca_gpu_verbs_send_dbr_mode_ext mode, void *place,
			      struct doca_gpu_verbs_qp **out);

/* Device structs of exported QPs of one GPU (NULL: a hole) in one array there; each QP
 * then has no other one. IN_USE: it has one already. */
doca_error_t gdk_dev_array_create(doca_gpu_t *gpu, struct doca_gpu_verbs_qp **qps, uint32_t num,
				  struct doca_gpu_dev_verbs_qp **structs);
/* NOT_FOUND: structs is no such array on gpu (NULL: any). Its QPs may be gone already. */
doca_error_t gdk_dev_array_destroy(const doca_gpu_t *gpu, struct doca_gpu_dev_verbs_qp *structs);
/* The export ends. */
void gdk_dev_array_forget(const struct gdk_export *x);

/* Writes a fresh state block, and the device struct behind it; cqe_ci is the
 * CQ's producer index. */
doca_error_t gdk_export_write_state(struct gdk_export *x, uint64_t cqe_ci);
/* Says so when slots were reserved or published and never rung, which is most
 * likely a lost submit; a QP that has ended is left alone. */
void gdk_export_warn_tail(struct gdk_export *x);
/* Says so when a proxy's counter was raised and nobody saw it. */
void gdk_export_warn_unserved(const struct gdk_export *x);
/* From queue memory, which belongs to a GPU or is plain host memory (NULL). */
doca_error_t gdk_queue_read(doca_gpu_t *gpu, void *dst, const void *src, size_t len);
/* A copy of the whole ring of its CQ; the caller frees it. */
doca_error_t gdk_export_read_cq(const struct gdk_export *x, uint8_t **out);
/* The producer index, modulo two laps, that a ring of CQEs shows; base is
 * where it was when the ring was last made invalid. */
uint64_t gdk_cq_find_producer(const uint8_t *ring, uint32_t num, uint64_t base);
/* The producer (at least base) by the firmware's 24-bit counter and the ring, which knows it
 * modulo laps: seen. Without a ring, by the counter alone. */
uint64_t gdk_cq_nearest(uint32_t counter, uint64_t seen, uint64_t laps, uint64_t base);
uint64_t gdk_cq_extend(uint32_t counter, uint64_t base);

/* How often the counter of any proxy fell, by reset or when its place was given
 * to another: after it fell. */
extern atomic_uint gdk_counter_falls;

#endif
