/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The receive queue of an RDMA object, which all its connections share, and the image that kernels
 * see: one allocation in GPU memory.
 */
#include "qp/rdma/rdma.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/gpu/gpu.h"
#include "core/log/log.h"
#include "device/gdk/state.h"
#include "qp/high_level/high_level.h"

#define DBREC_BYTES 8u
#define RWQE_BYTES  16u /* a receive WQE with one data segment */

_Static_assert(sizeof(struct gdk_rdma_conn) % GDK_STATE_LINE == 0, "whole lines");
_Static_assert(sizeof(struct doca_gpu_dev_rdma) == GDK_STATE_LINE, "one line of constants");
_Static_assert(offsetof(struct doca_gpu_dev_rdma_r, committed) % GDK_STATE_LINE == 0 &&
		       offsetof(struct doca_gpu_dev_rdma_r, returned) % GDK_STATE_LINE == 0,
	       "one line per writer");

/* Offsets in the image. */
struct layout {
	size_t recv, conns, map, results, end;
};

static struct layout layout_of(const struct doca_rdma *rdma)
{
	const size_t slots = gdk_roundup_pow2(rdma->recv_size);
	struct layout l;

	l.recv = sizeof(struct doca_gpu_dev_rdma);
	l.conns = l.recv + sizeof(struct doca_gpu_dev_rdma_r);
	l.map = l.conns + rdma->max_conns * sizeof(struct gdk_rdma_conn);
	l.results = gdk_align_up(l.map + rdma->map_size * sizeof(gdk_rdma_map_t), GDK_STATE_LINE);
	l.end = l.results + slots * sizeof(struct gdk_rdma_result);
	return l;
}

static void *on_gpu_at(const struct doca_rdma *rdma, size_t offset)
{
	return (uint8_t *)rdma->on_gpu + offset;
}

/* ---- receive queue ---- */

static doca_error_t create_srq(struct doca_rdma *rdma)
{
	struct doca_verbs_srq_init_attr *attr;
	doca_error_t err = doca_verbs_srq_init_attr_create(&attr);

	if (err != DOCA_SUCCESS)
		return err;
	err = doca_verbs_srq_init_attr_set_srq_wr(attr, rdma->recv_size) ?:
	      doca_verbs_srq_init_attr_set_receive_max_sges(attr, 1) ?:
	      doca_verbs_srq_init_attr_set_type(attr, DOCA_VERBS_SRQ_TYPE_CONTIGUOUS) ?:
	      doca_verbs_srq_init_attr_set_pd(attr, rdma->ctx.dev->pd) ?:
	      doca_verbs_srq_init_attr_set_external_umem(
		      attr, rdma->unit.umem,
		      (uint64_t)((uint8_t *)rdma->unit.pages - (uint8_t *)rdma->unit.umem->addr)) ?:
	      doca_verbs_srq_create(rdma->ctx.dev->ctx, attr, &rdma->srq);
	(void)doca_verbs_srq_init_attr_destroy(attr);
	return err;
}

static doca_error_t create_queue(struct doca_rdma *rdma)
{
	const uint32_t slots = (uint32_t)gdk_roundup_pow2(rdma->recv_size);
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t cq_at = gdk_align_up(
		gdk_align_up((size_t)slots * RWQE_BYTES, GDK_WQEBB_SIZE) + DBREC_BYTES, page);
	const struct gdk_slab_kind kind = {
		.gpu = rdma->ctx.gpu,
		.dev = rdma->ctx.dev,
		.mem = gdk_queue_mem_type(),
		.ways = GDK_UMEM_TRY_DMABUF | GDK_UMEM_TRY_PEER,
		.pages = gdk_align_up(cq_at + GDK_HL_CQ_BYTES(slots), page),
		.lines = GDK_SLAB_LINE,
		.format_cq = gdk_cq_format_image,
		.cq_at = cq_at,
		.cqe_num = slots,
	};
	doca_error_t err = gdk_slab_get(&kind, &rdma->unit);

	if (err == DOCA_SUCCESS)
		err = create_srq(rdma);
	if (err == DOCA_SUCCESS)
		err = gdk_verbs_export_srq(rdma->ctx.gpu, rdma->srq, &rdma->srq_dev);
	if (err == DOCA_SUCCESS)
		err = gdk_hl_cq_create(rdma->ctx.dev, &rdma->unit, cq_at, slots, NULL,
				       &rdma->cq_rq);
	return err;
}

static doca_error_t destroy_queue(struct doca_rdma *rdma)
{
	doca_error_t err = DOCA_SUCCESS;

	if (rdma->cq_rq)
		err = doca_verbs_cq_destroy(rdma->cq_rq);
	if (err != DOCA_SUCCESS)
		return err;
	rdma->cq_rq = NULL;
	if (rdma->srq_dev)
		err = gdk_verbs_unexport_srq(rdma->srq);
	if (err != DOCA_SUCCESS)
		return err;
	rdma->srq_dev = NULL;
	if (rdma->srq)
		err = doca_verbs_srq_destroy(rdma->srq);
	if (err != DOCA_SUCCESS)
		return err;
	rdma->srq = NULL;
	if (rdma->unit.umem)
		gdk_slab_put(rdma->unit.umem, rdma->unit.pages);
	rdma->unit.umem = NULL;
	return DOCA_SUCCESS;
}

/* ---- image ---- */

static doca_error_t fill_image(const struct doca_rdma *rdma, const struct layout *l, uint8_t *image)
{
	struct doca_gpu_dev_rdma *dev = (void *)image;
	struct doca_gpu_dev_rdma_r *recv = (void *)(image + l->recv);

	dev->conns = (uintptr_t)on_gpu_at(rdma, l->conns);
	dev->recv = (uintptr_t)on_gpu_at(rdma, l->recv);
	dev->num = rdma->max_conns;
	recv->rdma = (uintptr_t)rdma->on_gpu;
	recv->srq = (uintptr_t)rdma->srq_dev;
	recv->results = (uintptr_t)on_gpu_at(rdma, l->results);
	recv->map = (uintptr_t)on_gpu_at(rdma, l->map);
	recv->map_mask = rdma->map_size - 1;
	return gdk_verbs_srq_get_cq_dev(rdma->srq, rdma->cq_rq, &recv->cq);
}

static doca_error_t create_image(struct doca_rdma *rdma)
{
	const struct layout l = layout_of(rdma);
	uint8_t *image;
	doca_error_t err;

	rdma->map = calloc(rdma->map_size, sizeof(*rdma->map));
	image = calloc(1, l.end);
	if (!rdma->map || !image) {
		gdk_err("no memory for an RDMA object of %u connections", rdma->max_conns);
		free(image);
		return DOCA_ERROR_NO_MEMORY;
	}
	err = doca_gpu_mem_alloc(rdma->ctx.gpu, l.end, GDK_STATE_LINE, DOCA_GPU_MEM_TYPE_GPU,
				 &rdma->on_gpu, NULL);
	if (err == DOCA_SUCCESS)
		err = fill_image(rdma, &l, image);
	if (err == DOCA_SUCCESS)
		err = gdk_gpu_write(rdma->ctx.gpu, rdma->on_gpu, image, l.end);
	free(image);
	return err;
}

doca_error_t gdk_rdma_memory_destroy(struct doca_rdma *rdma)
{
	doca_error_t err = destroy_queue(rdma);

	if (err == DOCA_SUCCESS && rdma->on_gpu)
		err = doca_gpu_mem_free(rdma->ctx.gpu, rdma->on_gpu);
	if (err != DOCA_SUCCESS)
		return err;
	rdma->on_gpu = NULL;
	free(rdma->map);
	rdma->map = NULL;
	return DOCA_SUCCESS;
}

doca_error_t gdk_rdma_memory_create(struct doca_rdma *rdma)
{
	doca_error_t err;

	rdma->map_size = 2 * (uint32_t)gdk_roundup_pow2(rdma->max_conns);
	err = create_queue(rdma);
	if (err == DOCA_SUCCESS)
		err = create_image(rdma);
	if (err != DOCA_SUCCESS)
		(void)gdk_rdma_memory_destroy(rdma);
	return err;
}

/* ---- changes ---- */

/* Stores a word that kernels may read meanwhile. */
static doca_error_t store(struct doca_rdma *rdma, void *at, const void *value, size_t len)
{
	void *cpu = gdk_gpu_cpu_ptr(rdma->ctx.gpu, at);
	uint64_t word;

	if (!cpu)
		return gdk_gpu_write(rdma->ctx.gpu, at, value, len);
	if (len == sizeof(uint32_t)) {
		__atomic_store_n((uint32_t *)cpu, *(const uint32_t *)value, __ATOMIC_SEQ_CST);
	} else {
		memcpy(&word, value, sizeof(word));
		__atomic_store_n((uint64_t *)cpu, word, __ATOMIC_SEQ_CST);
	}
	return DOCA_SUCCESS;
}

doca_error_t gdk_rdma_publish_qpn(struct doca_rdma *rdma, uint32_t qpn, uint32_t index)
{
	const struct layout l = layout_of(rdma);
	const uint64_t entry = (uint64_t)qpn << 32 | (index + 1);
	uint32_t at = qpn & (rdma->map_size - 1);
	doca_error_t err;

	while (rdma->map[at]) /* at most half of the entries are in use */
		at = (at + 1) & (rdma->map_size - 1);
	err = store(rdma, on_gpu_at(rdma, l.map + at * sizeof(entry)), &entry, sizeof(entry));
	if (err == DOCA_SUCCESS)
		rdma->map[at] = entry;
	return err;
}

doca_error_t gdk_rdma_publish_qp(struct doca_rdma *rdma, uint32_t index,
				 struct doca_gpu_dev_verbs_qp *qp_dev)
{
	const struct layout l = layout_of(rdma);
	const uint64_t qp = (uintptr_t)qp_dev;

	return store(rdma,
		     on_gpu_at(rdma, l.conns + index * sizeof(struct gdk_rdma_conn) +
					     offsetof(struct gdk_rdma_conn, qp)),
		     &qp, sizeof(qp));
}

doca_error_t gdk_rdma_srq_store(struct doca_rdma *rdma, size_t offset, const void *value,
				size_t len)
{
	const size_t slots = gdk_roundup_pow2(rdma->recv_size);
	uint8_t *state = (uint8_t *)rdma->srq_dev - gdk_dev_struct_at((uint32_t)slots);

	return store(rdma, state + offset, value, len);
}
