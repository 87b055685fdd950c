/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Allocates and frees UAR pages. libmlx5 and the kernel may share a page between users of one
 * context, unless a dedicated page is requested; the flag for a dedicated page is defined here,
 * because older headers of libmlx5 lack it. If the device
 * supports QPs without DBREC, the doorbell register for them is at a fixed offset in the UAR
 * (as in DOCA GPUNetIO 3.0).
 *
 * A UAR that is registered with CUDA is kept when it is destroyed, for the next UAR of its type and
 * NIC: unregistering it would wait for running kernels. It is freed when the NIC is closed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"
#include "core/log/trace.h"
#include "core/reclaim.h"
#include "core/sdk/sdk.h"
#include "uar/uar.h"

#ifndef MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED
#define MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED (1u << 31)
#endif

#define UAR_BYTES	((uintptr_t)4096)
#define DBR_LESS_OFFSET 0x600

static const struct {
	uint32_t flags;
	const char *name;
} types[] = {
	[DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME] = { MLX5DV_UAR_ALLOC_TYPE_BF, "BlueFlame" },
	[DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE] = { MLX5DV_UAR_ALLOC_TYPE_NC, "non-cached" },
	[DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED] = { MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED,
								"dedicated non-cached" },
};

/* Returns the address of the register for QPs without DBREC, computed from reg_addr. base_addr is
 * not usable: a kernel with 64 KiB pages maps 16 UARs at once, and base_addr is then the address of
 * the mapping, while reg_addr and page_id belong to one UAR (libmlx5, mlx5_insert_dyn_uuars). */
static void *dbr_less_register(const struct mlx5dv_devx_uar *devx)
{
	return (char *)((uintptr_t)devx->reg_addr & ~(UAR_BYTES - 1)) + DBR_LESS_OFFSET;
}

static doca_error_t alloc_page(struct doca_verbs_uar *uar)
{
	int sys_err;

	uar->devx = mlx5dv_devx_alloc_uar(uar->dev->ctx, types[uar->type].flags);
	gdk_trace_uar(uar->dev->ctx, types[uar->type].name, uar->devx, errno);
	if (uar->devx) {
		uar->id = uar->devx->page_id;
		uar->reg_addr = uar->devx->reg_addr;
		if (uar->dev->caps.send_dbr_mode_no_dbr_ext)
			uar->dbr_less_addr = dbr_less_register(uar->devx);
		return DOCA_SUCCESS;
	}
	sys_err = errno;
	/* Few drivers support dedicated pages, and callers usually try another type next. So the
	 * failure to get a dedicated page is logged at level INFO only. */
	GDK_LOG(uar->type == DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED ? GDK_LOG_INFO
									       : GDK_LOG_WARNING,
		"%s: cannot allocate a %s UAR: %s", ibv_get_device_name(uar->dev->ctx->device),
		types[uar->type].name, strerror(sys_err));
	return sys_err == ENOMEM ? DOCA_ERROR_NO_MEMORY : DOCA_ERROR_NOT_SUPPORTED;
}

/* ---- UARs kept for reuse ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct doca_verbs_uar *spares; /* protected by lock */

static struct doca_verbs_uar *take_spare(const struct doca_dev *dev,
					 enum doca_verbs_uar_allocation_type type)
{
	struct doca_verbs_uar **at = &spares, *uar;

	pthread_mutex_lock(&lock);
	while (*at && ((*at)->dev != dev || (*at)->type != type))
		at = &(*at)->spare;
	uar = *at;
	if (uar)
		*at = uar->spare;
	pthread_mutex_unlock(&lock);
	return uar;
}

static void free_uar(struct doca_verbs_uar *uar)
{
	if (uar->devx) {
		gdk_reg_release(&uar->hold);
		mlx5dv_devx_free_uar(uar->devx);
	}
	atomic_fetch_sub(&uar->dev->users, 1);
	free(uar);
}

/* The callback of core/reclaim.h. */
static void free_spares(const doca_gpu_t *gpu, const struct doca_dev *dev)
{
	struct doca_verbs_uar **at = &spares, *uar;

	(void)gpu;
	pthread_mutex_lock(&lock);
	while (*at) {
		uar = *at;
		if (uar->dev != dev) {
			at = &uar->spare;
			continue;
		}
		*at = uar->spare;
		free_uar(uar);
	}
	pthread_mutex_unlock(&lock);
}

static void keep(struct doca_verbs_uar *uar)
{
	gdk_reclaim_register(free_spares);
	pthread_mutex_lock(&lock);
	uar->spare = spares;
	spares = uar;
	pthread_mutex_unlock(&lock);
}

/* ---- create and destroy ---- */

static doca_error_t create(doca_dev_t *dev, enum doca_verbs_uar_allocation_type type,
			   struct doca_verbs_uar **out)
{
	struct doca_verbs_uar *uar = calloc(1, sizeof(*uar));
	doca_error_t err;

	if (!uar) {
		gdk_err("no memory for a UAR");
		return DOCA_ERROR_NO_MEMORY;
	}
	uar->dev = dev;
	uar->type = type;
	GDK_SDK_SAY("Verbs UAR", dev->sdk);
	err = dev->sdk ? gdk_sdk_uar_create(uar) : alloc_page(uar);
	if (err) {
		free(uar);
		return err;
	}
	if (uar->devx)
		gdk_reg_hold(&uar->hold, uar->reg_addr);
	atomic_fetch_add(&dev->users, 1);
	*out = uar;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_uar_create(doca_dev_t *net_dev,
				   enum doca_verbs_uar_allocation_type allocation_type,
				   doca_verbs_uar_t **uar_obj)
{
	struct doca_verbs_uar *uar;
	doca_error_t err;

	GDK_CHECK_PTR(net_dev);
	GDK_CHECK_ENUM(allocation_type, DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED);
	GDK_CHECK_PTR(uar_obj);
	uar = take_spare(net_dev, allocation_type);
	if (!uar) {
		err = create(net_dev, allocation_type, &uar);
		if (err)
			return err;
	}
	*uar_obj = uar;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_uar_destroy(doca_verbs_uar_t *uar_obj)
{
	int users;

	GDK_CHECK_PTR(uar_obj);
	users = atomic_load(&uar_obj->users);
	if (users) {
		gdk_err("UAR 0x%x: cannot destroy it: %d queues still use it", uar_obj->id, users);
		return DOCA_ERROR_IN_USE;
	}
	GDK_SDK_FIRST_AS(uar_obj, "doca_uar_destroy", doca_verbs_uar_destroy, uar_obj->sdk);
	if (uar_obj->devx && gdk_reg_is_registered(&uar_obj->hold))
		keep(uar_obj);
	else
		free_uar(uar_obj);
	return DOCA_SUCCESS;
}
