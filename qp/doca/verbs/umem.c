/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Umems and UARs in the SDK's interface. A doca_umem is a doca_verbs_umem of DOCA GPUNetIO open,
 * and a doca_uar is a doca_verbs_uar, so the setters of CQs and QPs are the same functions. The
 * access flags differ. A list has those that exist, for programs that close a NIC or a GPU first.
 */
#ifndef GDK_BOTH_SHAPES
#define GDK_BOTH_SHAPES
#endif

#include <pthread.h>
#include <stdlib.h>

#include "core/gpu/gpu_priv.h"
#include "core/log/log.h"
#include "core/util.h"
#include "host/doca_verbs.h"
#include "doca_uar.h"
#include "doca_umem.h"
#include "qp/doca/left.h"
#include "uar/uar.h"
#include "umem/umem.h"

#define TYPE_IS_SAME(name) \
	_Static_assert((int)DOCA_UAR_ALLOCATION_TYPE_##name == \
			       (int)DOCA_VERBS_UAR_ALLOCATION_TYPE_##name, \
		       "UARs have the same types in both interfaces")
TYPE_IS_SAME(BLUEFLAME);
TYPE_IS_SAME(NONCACHE);
TYPE_IS_SAME(NONCACHE_DEDICATED);

/* verbs: 0 if the kernel accepts no such right for a umem, in which no remote side has rights. */
static const struct {
	uint32_t doca, verbs;
} rights[] = {
	{ DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, IBV_ACCESS_LOCAL_WRITE },
	{ DOCA_ACCESS_FLAG_RDMA_READ, IBV_ACCESS_REMOTE_READ },
	{ DOCA_ACCESS_FLAG_RDMA_WRITE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE },
	{ DOCA_ACCESS_FLAG_RDMA_ATOMIC, 0 },
	{ DOCA_ACCESS_FLAG_PCI_RELAXED_ORDERING, 0 },
};

static doca_error_t to_verbs(uint32_t access_flags, uint32_t *verbs)
{
	uint32_t left = access_flags;
	size_t i;

	*verbs = 0;
	for (i = 0; i < GDK_ARRAY_SIZE(rights); i++)
		if (access_flags & rights[i].doca) {
			left &= ~rights[i].doca;
			*verbs |= rights[i].verbs;
		}
	GDK_CHECK_ARG(!left, "access_flags 0x%x (0x%x is no DOCA_ACCESS_FLAG)", access_flags, left);
	return DOCA_SUCCESS;
}

/* ---- umems and UARs that exist ---- */

struct made { /* a umem, or a UAR */
	doca_verbs_umem_t *umem;
	doca_verbs_uar_t *uar;
	struct made *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct made *list; /* protected by lock */

static struct made *new_made(const doca_dev_t *dev)
{
	struct made *m = calloc(1, sizeof(*m));

	if (!m)
		gdk_err("%s: no memory for an object", ibv_get_device_name(dev->ctx->device));
	return m;
}

static void add(struct made *m)
{
	pthread_mutex_lock(&lock);
	m->next = list;
	list = m;
	pthread_mutex_unlock(&lock);
}

/* Destroys an object and its entry. The caller holds the lock. */
static doca_error_t destroy(struct made **at)
{
	struct made *m = *at;
	doca_error_t err = m->umem ? doca_verbs_umem_destroy(m->umem)
				   : doca_verbs_uar_destroy(m->uar);

	if (err != DOCA_SUCCESS)
		return err;
	*at = m->next;
	free(m);
	return DOCA_SUCCESS;
}

/* Destroys the umem, or the UAR, if it exists. The other argument is NULL. */
static doca_error_t destroy_handle(const struct doca_umem *umem, const struct doca_uar *uar)
{
	struct made **at = &list;
	doca_error_t err = DOCA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&lock);
	while (*at && (umem ? (const void *)(*at)->umem != umem : (const void *)(*at)->uar != uar))
		at = &(*at)->next;
	if (*at)
		err = destroy(at);
	else
		gdk_err("%s %p does not exist; closing its NIC, or the GPU of its memory, "
			"destroys it",
			umem ? "umem" : "UAR", umem ? (const void *)umem : (const void *)uar);
	pthread_mutex_unlock(&lock);
	return err;
}

/* Whether memory of the GPU is registered, by its GPU address or by its CPU address. */
static bool is_on_gpu(const doca_verbs_umem_t *umem, doca_gpu_t *gpu)
{
	const uintptr_t addr = (uintptr_t)umem->addr;
	bool found = umem->gpu == gpu;
	size_t i;

	pthread_mutex_lock(&gpu->lock);
	for (i = 0; !umem->gpu && !found && i < gpu->num_blocks; i++)
		found = addr - (uintptr_t)gpu->blocks[i]->cpu_ptr < gpu->blocks[i]->size ||
			addr - (uintptr_t)gpu->blocks[i]->gpu_ptr < gpu->blocks[i]->size;
	pthread_mutex_unlock(&gpu->lock);
	return found;
}

static bool belongs(const struct made *m, const doca_dev_t *dev, doca_gpu_t *gpu)
{
	if (dev)
		return (m->umem ? m->umem->dev : m->uar->dev) == dev;
	return m->umem && is_on_gpu(m->umem, gpu);
}

struct gdk_left gdk_doca_left(const doca_dev_t *dev, doca_gpu_t *gpu)
{
	struct gdk_left left = { 0 };
	const struct made *m;

	pthread_mutex_lock(&lock);
	for (m = list; m; m = m->next) {
		if (!belongs(m, dev, gpu))
			continue;
		left.umems += m->umem != NULL;
		left.uars += m->uar != NULL;
		left.in_queues += atomic_load(m->umem ? &m->umem->users : &m->uar->users) != 0;
	}
	pthread_mutex_unlock(&lock);
	return left;
}

doca_error_t gdk_doca_release(const doca_dev_t *dev, doca_gpu_t *gpu)
{
	doca_error_t err = DOCA_SUCCESS;
	struct made **at = &list;

	pthread_mutex_lock(&lock);
	while (*at && err == DOCA_SUCCESS) {
		if (belongs(*at, dev, gpu))
			err = destroy(at);
		else
			at = &(*at)->next;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

/* ---- umem ---- */

static doca_error_t create(struct doca_gpu *gpu, struct doca_dev *dev, void *address, size_t size,
			   uint32_t access_flags, struct doca_umem **umem)
{
	struct made *made;
	uint32_t access;
	doca_error_t err;

	GDK_CHECK_PTR(dev);
	GDK_CHECK_PTR(umem);
	err = to_verbs(access_flags, &access);
	if (err != DOCA_SUCCESS)
		return err;
	made = new_made(dev);
	if (!made)
		return DOCA_ERROR_NO_MEMORY;
	err = doca_verbs_umem_create(dev, gpu, address, size, access,
				     (int)DOCA_VERBS_DMABUF_INVALID_FD, 0, &made->umem);
	if (err != DOCA_SUCCESS) {
		free(made);
		return err;
	}
	add(made);
	*umem = (struct doca_umem *)made->umem;
	return DOCA_SUCCESS;
}

doca_error_t doca_umem_create(struct doca_dev *dev, void *address, size_t size,
			      uint32_t access_flags, struct doca_umem **umem)
{
	return create(NULL, dev, address, size, access_flags, umem);
}

doca_error_t doca_umem_gpu_create(struct doca_gpu *gpu_dev, struct doca_dev *dev, void *address,
				  size_t size, uint32_t access_flags, struct doca_umem **umem)
{
	GDK_CHECK_PTR(gpu_dev);
	return create(gpu_dev, dev, address, size, access_flags, umem);
}

doca_error_t doca_umem_destroy(struct doca_umem *umem)
{
	GDK_CHECK_PTR(umem);
	return destroy_handle(umem, NULL);
}

/* ---- UAR ---- */

/* libmlx5 of most systems has no dedicated UARs. A BlueFlame UAR is not shared either, and its
 * register takes doorbells as well. The CPU maps it write-combining, which its stores to registers
 * consider (doorbell/mmio.h); the mapping for the GPU does not depend on it. */
static doca_error_t create_uar(doca_dev_t *dev, enum doca_verbs_uar_allocation_type type,
			       doca_verbs_uar_t **uar)
{
	doca_error_t err = doca_verbs_uar_create(dev, type, uar);

	if (err == DOCA_ERROR_NOT_SUPPORTED &&
	    type == DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED)
		err = doca_verbs_uar_create(dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME, uar);
	return err;
}

doca_error_t doca_uar_create(struct doca_dev *dev, enum gdk_uar_allocation_type allocation_type,
			     struct doca_uar **uar)
{
	struct made *made;
	doca_error_t err;

	GDK_CHECK_PTR(dev);
	GDK_CHECK_PTR(uar);
	made = new_made(dev);
	if (!made)
		return DOCA_ERROR_NO_MEMORY;
	err = create_uar(dev, (enum doca_verbs_uar_allocation_type)allocation_type, &made->uar);
	if (err != DOCA_SUCCESS) {
		free(made);
		return err;
	}
	add(made);
	*uar = (struct doca_uar *)made->uar;
	return DOCA_SUCCESS;
}

doca_error_t doca_uar_destroy(struct doca_uar *uar)
{
	GDK_CHECK_PTR(uar);
	return destroy_handle(NULL, uar);
}
