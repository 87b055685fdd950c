/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The place of an exported queue pair's device struct: behind its state block, or in an
 * array with those of other QPs. GPU threads reserve slots by adding to sq_rsvd_index of this
 * struct, so they use only one struct of a QP at a time. When an array is destroyed, the index
 * is copied back to the struct behind the state block.
 */
#include <stdlib.h>

#include "core/log/log.h"
#include "qp/export/export.h"
#include "device/gdk/state.h"

struct gdk_dev_array {
	struct gdk_dev_array *next;
	doca_gpu_t *gpu;
	void *mem; /* GPU address; the structs are at offset GDK_DEV_SKEW */
	struct doca_gpu_dev_verbs_qp *structs;
	uint32_t num;
	struct gdk_export *members[]; /* NULL: empty entry, or the QP was unexported */
};

/* Protects the list, the members of all arrays, and qp_gpu of all exports. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gdk_dev_array *arrays;

doca_error_t doca_gpu_verbs_get_qp_dev(struct doca_gpu_verbs_qp *qp,
				       struct doca_gpu_dev_verbs_qp **qp_gpu)
{
	GDK_CHECK_PTR(qp);
	GDK_CHECK_PTR(qp_gpu);
	pthread_mutex_lock(&lock);
	if (!qp->qp_gpu) {
		qp->qp_gpu = gdk_export_own_dev(gdk_to_export(qp));
		qp->qp_gpu_h = gdk_gpu_cpu_ptr(qp->gpu_dev, qp->qp_gpu);
	}
	*qp_gpu = qp->qp_gpu;
	gdk_watch_use(gdk_to_export(qp));
	pthread_mutex_unlock(&lock);
	return DOCA_SUCCESS;
}

/* ---- arrays ---- */

static doca_error_t check_members(const struct gdk_dev_array *a)
{
	const struct doca_gpu_verbs_qp *qp;
	uint32_t i, j;

	for (i = 0; i < a->num; i++) {
		if (!a->members[i])
			continue;
		qp = &a->members[i]->q.pub;
		if (qp->gpu_dev != a->gpu) {
			gdk_err("QP 0x%x: cannot add it to an array of GPU %s: exported to GPU %s",
				qp->qp->qpn, gdk_gpu_name(a->gpu), gdk_gpu_name(qp->gpu_dev));
			return DOCA_ERROR_INVALID_VALUE;
		}
		for (j = 0; j < i && a->members[j] != a->members[i]; j++)
			;
		if (qp->qp_gpu || j < i) {
			gdk_err("QP 0x%x: cannot add it to an array: has a device struct already",
				qp->qp->qpn);
			return DOCA_ERROR_IN_USE;
		}
	}
	return DOCA_SUCCESS;
}

/* Copies the device structs to GPU memory. Only the first one has the offset GDK_DEV_SKEW from a
 * cache line; the offsets of the others follow from their size. */
static doca_error_t copy_structs(struct gdk_dev_array *a)
{
	struct doca_gpu_dev_verbs_qp *image = calloc(a->num, sizeof(*image));
	size_t bytes = a->num * sizeof(*image);
	doca_error_t err;
	void *cpu = NULL;
	uint32_t i;

	if (!image) {
		gdk_err("no memory for device structs of %u QPs", a->num);
		return DOCA_ERROR_NO_MEMORY;
	}
	for (i = 0; i < a->num; i++)
		if (a->members[i])
			image[i] = a->members[i]->dev;
	err = doca_gpu_mem_alloc(a->gpu, GDK_DEV_SKEW + bytes, GDK_STATE_LINE,
				 DOCA_GPU_MEM_TYPE_GPU, &a->mem, &cpu);
	if (err == DOCA_SUCCESS) {
		a->structs = (void *)((uint8_t *)a->mem + GDK_DEV_SKEW);
		err = gdk_gpu_write(a->gpu, a->structs, image, bytes);
		if (err != DOCA_SUCCESS)
			(void)doca_gpu_mem_free(a->gpu, a->mem);
	}
	free(image);
	return err;
}

/* Creates the structs and adds the array to the list. The caller holds lock. */
static doca_error_t enter(struct gdk_dev_array *a)
{
	struct doca_gpu_verbs_qp *qp;
	doca_error_t err = check_members(a);
	uint32_t i;

	if (err == DOCA_SUCCESS)
		err = copy_structs(a);
	if (err != DOCA_SUCCESS)
		return err;
	for (i = 0; i < a->num; i++) {
		if (!a->members[i])
			continue;
		qp = &a->members[i]->q.pub;
		qp->qp_gpu = &a->structs[i];
		qp->qp_gpu_h = gdk_gpu_cpu_ptr(a->gpu, qp->qp_gpu);
		gdk_watch_use(a->members[i]);
	}
	a->next = arrays;
	arrays = a;
	return DOCA_SUCCESS;
}

doca_error_t gdk_dev_array_create(doca_gpu_t *gpu, struct doca_gpu_verbs_qp **qps, uint32_t num,
				  struct doca_gpu_dev_verbs_qp **structs)
{
	struct gdk_dev_array *a = calloc(1, sizeof(*a) + num * sizeof(a->members[0]));
	doca_error_t err;
	uint32_t i;

	if (!a) {
		gdk_err("no memory for an array of %u QPs", num);
		return DOCA_ERROR_NO_MEMORY;
	}
	a->gpu = gpu;
	a->num = num;
	for (i = 0; i < num; i++)
		a->members[i] = qps[i] ? gdk_to_export(qps[i]) : NULL;
	pthread_mutex_lock(&lock);
	err = enter(a);
	pthread_mutex_unlock(&lock);
	if (err != DOCA_SUCCESS) {
		free(a);
		return err;
	}
	*structs = a->structs;
	return DOCA_SUCCESS;
}

/* Clears the plain end of a queue (status_dev.h), in its device struct and in its state block. */
static doca_error_t clear_plain_end(struct gdk_export *x, const struct gdk_export_queue *q,
				    struct doca_gpu_dev_verbs_qp *dev)
{
	const size_t in_dev = offsetof(struct doca_gpu_dev_verbs_qp, gdk_plain_end);
	const size_t in_state = offsetof(struct gdk_qp_state, plain_sys);
	uint64_t *const words[] = { (void *)((uint8_t *)dev + in_dev),
				    (void *)((uint8_t *)q->state + in_state) };
	const uint64_t zero = 0;
	doca_error_t err = DOCA_SUCCESS;
	uint64_t *cpu;
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(words) && err == DOCA_SUCCESS; i++) {
		cpu = gdk_gpu_cpu_ptr(x->q.pub.gpu_dev, words[i]);
		if (cpu)
			__atomic_store_n(cpu, 0, __ATOMIC_RELAXED);
		else
			err = gdk_gpu_write(x->q.pub.gpu_dev, words[i], &zero, sizeof(zero));
	}
	return err;
}

doca_error_t gdk_dev_clear_plain_ends(struct gdk_export *x)
{
	const struct gdk_export_queue sq = gdk_export_sq(x), rq = gdk_export_rq(x);
	doca_error_t err;

	pthread_mutex_lock(&lock); /* the array of the device struct must not be freed meanwhile */
	err = clear_plain_end(x, &sq, x->q.pub.qp_gpu ? x->q.pub.qp_gpu : gdk_export_own_dev(x));
	if (err == DOCA_SUCCESS && rq.cq)
		err = clear_plain_end(x, &rq, (void *)((uint8_t *)rq.state + rq.dev_at));
	pthread_mutex_unlock(&lock);
	return err;
}

/* Copies the reservation index from the array back to the QP's own struct, and forgets the plain
 * end in the array (status_dev.h). The QP leaves the array even if that fails. */
static doca_error_t leave(struct gdk_export *x)
{
	uint64_t *from = &x->q.pub.qp_gpu->sq_rsvd_index,
		 *to = &gdk_export_own_dev(x)->sq_rsvd_index;
	void *plain_at = (uint8_t *)x->q.state + offsetof(struct gdk_qp_state, plain_at);
	const uint64_t none[2] = { 0, 0 }; /* plain_at, plain_sys */
	doca_error_t err = gdk_gpu_read(x->q.pub.gpu_dev, &x->dev.sq_rsvd_index, from,
					sizeof(*from));

	if (err == DOCA_SUCCESS)
		err = gdk_gpu_write(x->q.pub.gpu_dev, to, &x->dev.sq_rsvd_index, sizeof(*to));
	if (err == DOCA_SUCCESS)
		err = gdk_gpu_write(x->q.pub.gpu_dev, plain_at, none, sizeof(none));
	x->q.pub.qp_gpu = NULL;
	x->q.pub.qp_gpu_h = NULL;
	return err;
}

/* Finds an array and removes it from the list. gpu NULL: any GPU. */
static struct gdk_dev_array *take_out(const doca_gpu_t *gpu,
				      const struct doca_gpu_dev_verbs_qp *structs)
{
	struct gdk_dev_array **at = &arrays, *a;

	while (*at && ((*at)->structs != structs || (gpu && (*at)->gpu != gpu)))
		at = &(*at)->next;
	a = *at;
	if (a)
		*at = a->next;
	return a;
}

/* Frees the array even if GPU memory can no longer be read. */
doca_error_t gdk_dev_array_destroy(const doca_gpu_t *gpu, struct doca_gpu_dev_verbs_qp *structs)
{
	doca_error_t err = DOCA_SUCCESS, left;
	struct gdk_dev_array *a;
	uint32_t i;

	pthread_mutex_lock(&lock);
	a = take_out(gpu, structs);
	for (i = 0; a && i < a->num; i++) {
		left = a->members[i] ? leave(a->members[i]) : DOCA_SUCCESS;
		err = err == DOCA_SUCCESS ? left : err;
	}
	pthread_mutex_unlock(&lock);
	if (!a) {
		gdk_err("cannot destroy qp_gpu %p: not an array of QPs of this GPU",
			(void *)structs);
		return DOCA_ERROR_NOT_FOUND;
	}
	left = doca_gpu_mem_free(a->gpu, a->mem);
	free(a);
	return err == DOCA_SUCCESS ? left : err;
}

void gdk_dev_array_forget(const struct gdk_export *x)
{
	struct gdk_dev_array *a;
	uint32_t i;

	pthread_mutex_lock(&lock);
	a = x->q.pub.qp_gpu && x->q.pub.qp_gpu != gdk_export_own_dev(x) ? arrays : NULL;
	for (; a; a = a->next)
		for (i = 0; i < a->num; i++)
			if (a->members[i] == x)
				a->members[i] = NULL;
	pthread_mutex_unlock(&lock);
}

doca_error_t doca_gpu_verbs_export_multi_qps_dev(doca_gpu_t *gpu_dev,
						 struct doca_gpu_verbs_qp **qps,
						 unsigned int num_qps,
						 struct doca_gpu_dev_verbs_qp **out_qp_gpus)
{
	GDK_CHECK_PTR(gpu_dev);
	GDK_CHECK_PTR(qps);
	GDK_CHECK_ARG(num_qps, "num_qps 0 (expected at least 1)");
	GDK_CHECK_PTR(out_qp_gpus);
	return gdk_dev_array_create(gpu_dev, qps, num_qps, out_qp_gpus);
}

/* qps and num_qps are checked but not used: the array stores its members. */
doca_error_t doca_gpu_verbs_unexport_multi_qps_dev(doca_gpu_t *gpu_dev,
						   struct doca_gpu_verbs_qp **qps,
						   unsigned int num_qps,
						   struct doca_gpu_dev_verbs_qp *qp_gpus)
{
	GDK_CHECK_PTR(gpu_dev);
	GDK_CHECK_PTR(qps);
	GDK_CHECK_ARG(num_qps, "num_qps 0 (expected at least 1)");
	GDK_CHECK_PTR(qp_gpus);
	return gdk_dev_array_destroy(gpu_dev, qp_gpus);
}
