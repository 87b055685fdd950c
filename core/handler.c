/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Names of the doorbell handlers, for messages and reports. doorbell/auto.c chooses a
 * handler; the strategies in doorbell/ implement them.
 */
#include "core/util.h"
#include "host/gdaki_core.h"

#define ENTRY(name) [DOCA_GPUNETIO_VERBS_NIC_HANDLER_##name] = #name

static const char *const names[] = {
	ENTRY(AUTO), ENTRY(CPU_PROXY), ENTRY(GPU_SM_DB), ENTRY(GPU_SM_BF), ENTRY(GPU_SM_NO_DBR),
};

const char *gdk_handler_name(enum doca_gpu_dev_verbs_nic_handler handler)
{
	size_t i = (size_t)handler;

	return i < GDK_ARRAY_SIZE(names) && names[i] ? names[i] : "?";
}
