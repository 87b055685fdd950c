/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * The header for host code: includes everything of DOCA GPUNetIO that runs on the CPU. The
 * additions of this library are in host/gdaki.h.
 */
#ifndef DOCA_GPUNETIO_HOST_H
#define DOCA_GPUNETIO_HOST_H

#include "doca_gpunetio_config.h"
#include "common/doca_gpunetio_verbs_def.h"
#include "common/doca_gpunetio_verbs_dev.h"
#include "host/doca_error.h"
#include "host/doca_verbs.h"
#include "host/doca_gpunetio.h"
#include "host/doca_gpunetio_high_level.h"

#endif
