/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Stores the reclaim callbacks and calls them (reclaim.h). Set by words.c, umem/slab.c, uar/uar.c.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "core/reclaim.h"

#define CALLBACKS 4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the writes */
static gdk_reclaim_fn *_Atomic registered[CALLBACKS];

void gdk_reclaim_register(gdk_reclaim_fn *fn)
{
	size_t i = 0;

	pthread_mutex_lock(&lock);
	while (i < CALLBACKS && registered[i] && registered[i] != fn)
		i++;
	assert(i < CALLBACKS);
	atomic_store(&registered[i], fn);
	pthread_mutex_unlock(&lock);
}

void gdk_reclaim(const doca_gpu_t *gpu, const struct doca_dev *dev)
{
	gdk_reclaim_fn *fn;
	size_t i;

	for (i = 0; i < CALLBACKS; i++) {
		fn = atomic_load(&registered[i]);
		if (fn)
			fn(gpu, dev);
	}
}
