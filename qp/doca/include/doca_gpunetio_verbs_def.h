/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Constants, enumerations, device structs and formats of the NIC that host and device code share.
 * They are those of DOCA GPUNetIO open.
 */
#ifndef GDK_SDK_DOCA_GPUNETIO_VERBS_DEF_H
#define GDK_SDK_DOCA_GPUNETIO_VERBS_DEF_H

#include "common/doca_gpunetio_verbs_def.h"
#include "common/doca_gpunetio_verbs_dev.h"
#include "gdk_sdk_shape.h"

#endif
