/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Objects that a program has created and not destroyed when it closes their NIC or their GPU. The
 * SDK's functions close both, and NVIDIA's samples rely on it. Umems and UARs belong to a NIC,
 * memory of doca_gpu_mem_alloc() and the umems in it belong to a GPU. They are released, with a
 * warning, if nothing else uses the NIC or the GPU. Otherwise closing fails and changes nothing.
 */
#ifndef GDK_DOCA_LEFT_H
#define GDK_DOCA_LEFT_H

#include "core/nic/net_dev.h"
#include "host/doca_gpunetio.h"

struct gdk_left {
	unsigned int umems, uars;
	unsigned int in_queues; /* those of them that CQs or QPs use */
};

/* verbs/umem.c. Umems and UARs of dev or, if dev is NULL, umems in memory of gpu. */
struct gdk_left gdk_doca_left(const doca_dev_t *dev, doca_gpu_t *gpu);
/* Destroys them; no queue uses them. Stops at the first error. */
doca_error_t gdk_doca_release(const doca_dev_t *dev, doca_gpu_t *gpu);

#endif
