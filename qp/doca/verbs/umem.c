/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Umems and UARs in the SDK's interface. A doca_umem is a doca_verbs_umem of DOCA GPUNetIO open,
 * and a doca_uar is a doca_verbs_uar, so the setters of CQs and QPs are the same functions. The
 * access flags differ.
 */
#ifndef GDK_BOTH_SHAPES
#define GDK_BOTH_SHAPES
#endif

#include "core/log.h"
#include "core/util.h"
#include "host/doca_verbs.h"
#include "doca_uar.h"
#include "doca_umem.h"
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

static doca_error_t create(struct doca_gpu *gpu, struct doca_dev *dev, void *address, size_t size,
			   uint32_t access_flags, struct doca_umem **umem)
{
	doca_verbs_umem_t *made;
	uint32_t access;
	doca_error_t err;

	GDK_CHECK_PTR(dev);
	GDK_CHECK_PTR(umem);
	err = to_verbs(access_flags, &access);
	if (err != DOCA_SUCCESS)
		return err;
	err = doca_verbs_umem_create(dev, gpu, address, size, access,
				     (int)DOCA_VERBS_DMABUF_INVALID_FD, 0, &made);
	if (err == DOCA_SUCCESS)
		*umem = (struct doca_umem *)made;
	return err;
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
	return doca_verbs_umem_destroy((doca_verbs_umem_t *)umem);
}

doca_error_t doca_uar_create(struct doca_dev *dev, enum gdk_uar_allocation_type allocation_type,
			     struct doca_uar **uar)
{
	doca_verbs_uar_t *made;
	doca_error_t err;

	GDK_CHECK_PTR(dev);
	GDK_CHECK_PTR(uar);
	err = doca_verbs_uar_create(dev, (enum doca_verbs_uar_allocation_type)allocation_type,
				    &made);
	if (err == DOCA_SUCCESS)
		*uar = (struct doca_uar *)made;
	return err;
}

doca_error_t doca_uar_destroy(struct doca_uar *uar)
{
	GDK_CHECK_PTR(uar);
	return doca_verbs_uar_destroy((doca_verbs_uar_t *)uar);
}
