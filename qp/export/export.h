/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Private definition of an exported queue pair: the public struct doca_gpu_verbs_qp, whose
 * fields are fixed, followed by the library's own data about the export. Also the functions
 * that the files of qp/ and doorbell/ share for exports.
 */
#ifndef GDK_EXPORT_H
#define GDK_EXPORT_H

#include "doorbell/doorbell.h"
#include "qp/verbs/qp.h"
#include "qp/export/watch.h"
#include "common/doca_gpunetio_verbs_dev.h"
#include "host/doca_gpunetio.h"
#include "host/gdaki.h"

/* The receive queue of an export. Its device struct, dev, describes the receive queue in the
 * members that describe a send queue elsewhere, so that the functions that post send WQEs and wait
 * for their CQEs also work for receive WQEs (recv_dev.h). */
struct gdk_export_rq {
	struct doca_gpu_dev_verbs_qp dev; /* host image; dev.cq_sq is the receive CQ */
	struct doca_verbs_cq_t *cq;	  /* NULL: the receive queue is not exported */
	void *state;			  /* state block, GPU address */
	size_t dev_at;			  /* offset of the device struct from state */
	uint32_t flags;			  /* GDK_QPF_* */
};

struct gdk_export {
	struct gdk_db_qp q;		  /* q.pub.qp_cpu is the address of dev */
	struct doca_gpu_dev_verbs_qp dev; /* host image of the device struct */
	struct doca_verbs_cq_t *cq;
	size_t dev_at;		/* offset of the device struct from q.state */
	bool own_state;		/* q.state was allocated for this export */
	uint32_t state_flags;	/* GDK_QPF_* */
	uint64_t wait_limit_ns; /* a reset does not change it */
	struct gdk_watch watch;
	struct gdk_export_rq rq;
};

/* A send or receive queue of an export, for functions that handle both alike. */
struct gdk_export_queue {
	struct doca_gpu_dev_verbs_qp *dev; /* host image; dev->cq_sq is the queue's CQ */
	struct doca_verbs_cq_t *cq;
	void *state;
	size_t dev_at;
	uint32_t flags, depth;
};

struct gdk_export_queue gdk_export_sq(struct gdk_export *x);
/* cq is NULL if the receive queue is not exported. */
struct gdk_export_queue gdk_export_rq(struct gdk_export *x);

static inline struct gdk_export *gdk_to_export(struct doca_gpu_verbs_qp *qp)
{
	return GDK_CONTAINER_OF(qp, struct gdk_export, q.pub);
}

/* Memory type of device structs, state blocks and high-level queues: GPU memory, or with
 * GDAKI_QUEUE_MEM=cpu_gpu host memory that the GPU can access. */
enum doca_gpu_mem_type gdk_queue_mem_type(void);

/* dev_struct.c: clears the plain ends (status_dev.h), so that posts in exclusive use look at the
 * state block. */
doca_error_t gdk_dev_clear_plain_ends(struct gdk_export *x);
/* GPU address of the QP's own device struct, behind the state block (dev_struct.c). */
static inline struct doca_gpu_dev_verbs_qp *gdk_export_own_dev(const struct gdk_export *x)
{
	return (void *)((uint8_t *)x->q.state + x->dev_at);
}

/* Returns the bytes that the state blocks and device structs of an export need; rq_num 0: without a
 * receive queue. The memory must be aligned to GDK_STATE_LINE. */
size_t gdk_export_bytes(uint32_t sq_num, uint32_t rq_num);
/* strategies.c: chooses the doorbell strategy of a QP among those that are linked. */
doca_error_t gdk_choose_doorbell(const struct gdk_doorbell_ask *ask, struct gdk_decision *decision);

/* What to export, and how. */
struct gdk_export_ask {
	doca_gpu_t *gpu;
	struct doca_verbs_qp_t *qp;
	struct doca_verbs_cq_t *cq;
	struct doca_verbs_cq_t *cq_rq; /* NULL: do not export the receive queue */
	enum doca_gpu_dev_verbs_nic_handler handler;
	enum doca_gpu_verbs_send_dbr_mode_ext mode;
	const struct gdk_decision *decision; /* result of an earlier choice; NULL: choose now */
	void *place; /* gdk_export_bytes() bytes, valid until unexport; NULL: allocate */
};

doca_error_t gdk_qp_export(const struct gdk_export_ask *ask, struct doca_gpu_verbs_qp **out);

/* Copies the device structs of exported QPs of one GPU to an array in GPU memory. An element of
 * qps may be NULL; its entry in the array is then zero. Returns IN_USE if a QP already has a device
 * struct. */
doca_error_t gdk_dev_array_create(doca_gpu_t *gpu, struct doca_gpu_verbs_qp **qps, uint32_t num,
				  struct doca_gpu_dev_verbs_qp **structs);
/* Frees an array. Returns NOT_FOUND if structs is not an array on gpu (NULL: any GPU). Its QPs
 * may have been unexported before. */
doca_error_t gdk_dev_array_destroy(const doca_gpu_t *gpu, struct doca_gpu_dev_verbs_qp *structs);
/* Removes a QP from its array, if any, when the QP is unexported. */
void gdk_dev_array_forget(const struct gdk_export *x);

/* Writes the initial state block of a queue and its device struct to GPU memory. cqe_ci is the
 * producer index of the CQ. */
doca_error_t gdk_export_write_queue(struct gdk_export *x, const struct gdk_export_queue *q,
				    uint64_t cqe_ci);
enum doca_gpu_dev_verbs_mem_type gdk_dev_mem_type(bool host);
/* Returns whether the CPU can access queue memory, which belongs to umem_gpu or is host memory. */
bool gdk_export_on_host(const doca_gpu_t *umem_gpu, doca_gpu_t *gpu, const void *addr);
/* Fills the device struct of a CQ for threads of gpu. state is the state block of its queue, or
 * NULL if the CQ belongs to no queue. */
void gdk_export_fill_cq(const struct doca_verbs_cq_t *cq, doca_gpu_t *gpu, void *state,
			struct doca_gpu_dev_verbs_cq *out);
/* export_rq.c: checks that the receive queue of what->qp can be exported with what->cq_rq. */
doca_error_t gdk_export_rq_check(const struct gdk_export_ask *what);
/* Fills x->rq and the members of x->dev that describe the receive queue. x->q.state and x->dev are
 * set. cq NULL: no receive queue. */
void gdk_export_rq_fill(struct gdk_export *x, struct doca_verbs_cq_t *cq);
/* Logs a warning for each queue of which slots were reserved or published but never rung, because a
 * call of submit is probably missing. Does nothing if the QP ended with an error or an abort. */
void gdk_export_warn_tail(struct gdk_export *x);
/* Logs a warning if a proxy counter was raised, but no CPU thread rang. */
void gdk_export_warn_unserved(const struct gdk_export *x);
/* Reads queue memory, which belongs to gpu or, if gpu is NULL, is host memory. */
doca_error_t gdk_queue_read(doca_gpu_t *gpu, void *dst, const void *src, size_t len);
/* Copies the whole ring of a CQ. The caller frees the copy. */
doca_error_t gdk_export_read_cq(const struct doca_verbs_cq_t *cq, uint8_t **out);
/* Finds the producer index of a CQ from its ring. The result is only significant modulo 2 * num.
 * base is the producer index at the time when all CQEs were marked invalid. */
uint64_t gdk_cq_find_producer(const uint8_t *ring, uint32_t num, uint64_t base);
/* Compute the producer index, at least base, from the firmware's 24-bit counter. gdk_cq_nearest()
 * also uses seen, the index modulo laps that the ring shows. gdk_cq_extend() is for a collapsed CQ,
 * whose ring does not show the index. */
uint64_t gdk_cq_nearest(uint32_t counter, uint64_t seen, uint64_t laps, uint64_t base);
uint64_t gdk_cq_extend(uint32_t counter, uint64_t base);

#endif
