/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Public functions that map a UAR page for a GPU. They have no GPU parameter: they use the
 * GPU whose CUDA context is current, otherwise the only GPU that is open (gdk_gpu_current).
 * Exports are kept in a list, because the caller ends an export by its GPU address only.
 * gdk_gpu_map_reg() makes the mapping.
 */
#include <stdlib.h>

#include "core/gpu/gpu_priv.h"
#include "core/log/log.h"

struct export
{
	struct export *next;
	struct doca_gpu *gpu;
	void *reg, *reg_gpu;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct export *exports;

doca_error_t doca_gpu_verbs_can_gpu_register_uar(void *db, bool *out_can_register)
{
	struct doca_gpu *gpu;
	doca_error_t err;
	const char *how;
	void *reg_gpu;

	GDK_CHECK_PTR(db);
	GDK_CHECK_PTR(out_can_register);
	gpu = gdk_gpu_current();
	if (!gpu)
		return DOCA_ERROR_NOT_FOUND;
	err = gdk_gpu_map_reg(gpu, db, &reg_gpu, &how);
	GDK_LOG(err == DOCA_ERROR_NO_MEMORY ? GDK_LOG_ERR : GDK_LOG_INFO,
		"GPU %s, register at %p: %s", gdk_gpu_name(gpu), db, how);
	if (err == DOCA_ERROR_NO_MEMORY)
		return err;
	*out_can_register = !err;
	return err ? DOCA_SUCCESS : gdk_gpu_unmap_reg(gpu, db);
}

doca_error_t doca_gpu_verbs_export_uar(uint64_t *sq_db, uint64_t **uar_addr_gpu)
{
	struct export *made;
	const char *how;
	doca_error_t err;

	GDK_CHECK_PTR(sq_db);
	GDK_CHECK_PTR(uar_addr_gpu);
	made = calloc(1, sizeof(*made));
	if (!made) {
		gdk_err("no memory for the export of register %p", (void *)sq_db);
		return DOCA_ERROR_NO_MEMORY;
	}
	made->reg = sq_db;
	made->gpu = gdk_gpu_current();
	if (!made->gpu) {
		free(made);
		return DOCA_ERROR_NOT_FOUND;
	}
	err = gdk_gpu_map_reg(made->gpu, sq_db, &made->reg_gpu, &how);
	if (err) {
		gdk_err("GPU %s: cannot map the register at %p: %s", gdk_gpu_name(made->gpu),
			made->reg, how);
		free(made);
		return err;
	}
	pthread_mutex_lock(&lock);
	made->next = exports;
	exports = made;
	pthread_mutex_unlock(&lock);
	*uar_addr_gpu = made->reg_gpu;
	return DOCA_SUCCESS;
}

doca_error_t doca_gpu_verbs_unexport_uar(uint64_t *uar_addr_gpu)
{
	struct export **at, *found;
	doca_error_t err;

	GDK_CHECK_PTR(uar_addr_gpu);
	pthread_mutex_lock(&lock);
	for (at = &exports; *at && (*at)->reg_gpu != uar_addr_gpu; at = &(*at)->next)
		;
	found = *at;
	if (found)
		*at = found->next;
	pthread_mutex_unlock(&lock);
	if (!found) {
		gdk_err("cannot unexport %p: not an exported register page", (void *)uar_addr_gpu);
		return DOCA_ERROR_NOT_FOUND;
	}
	err = gdk_gpu_unmap_reg(found->gpu, found->reg);
	free(found);
	return err;
}
