/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Private definition of a UAR: one page of doorbell registers of the NIC, which libmlx5 maps
 * for the CPU. gdk_gpu_map_reg() maps it for a GPU.
 */
#ifndef GDK_UAR_H
#define GDK_UAR_H

#include <infiniband/mlx5dv.h>

#include "core/gpu/gpu.h"
#include "core/nic/net_dev.h"
#include "host/doca_verbs_uar.h"

struct doca_verbs_uar {
	void *sdk; /* the SDK's object (core/sdk/sdk.h) */
	struct doca_dev *dev;
	struct mlx5dv_devx_uar *devx;
	enum doca_verbs_uar_allocation_type type;
	uint32_t id;
	void *reg_addr;		      /* doorbell register, CPU address */
	void *dbr_less_addr;	      /* register for QPs without DBREC; NULL: none */
	atomic_int users;	      /* number of CQs and QPs that use it */
	atomic_bool bf_used;	      /* an exported QP copies WQEs to its BlueFlame buffer */
	struct gdk_reg_hold hold;     /* unless it is the SDK's */
	struct doca_verbs_uar *spare; /* next UAR in the list of those kept for reuse */
};

/* uar_sdk.c: creates the SDK's UAR and fills the members of this one. */
doca_error_t gdk_sdk_uar_create(doca_verbs_uar_t *uar);

#endif
