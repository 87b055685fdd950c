/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * The header for host code: includes everything of DOCA GPUNetIO that runs on the CPU. The
 * additions of this library are in host/gdaki.h.
 */
/**
 * @mainpage
 * GPU threads post RDMA operations by themselves; the CPU creates and connects the queue pairs.
 *
 * Host code includes doca_gpunetio_host.h, and host/gdaki.h for what this library adds:
 *
 * - doca_gpunetio.h: GPUs, their memory, exported queue pairs, CPU proxy services; and the rules
 *   for errors, threads and byte order that hold for all host functions
 * - doca_gpunetio_high_level.h: a queue pair with its memory, CQ and UAR in one call
 * - doca_verbs_dev.h, doca_verbs_umem.h, doca_verbs_uar.h, doca_verbs_cq.h, doca_verbs_qp.h,
 *   doca_verbs_srq.h, doca_verbs_ah.h: the NIC and its objects
 * - gdaki.h: choice of the doorbell handler, counters, errors, events, dumps
 *
 * Device code includes doca_gpunetio_device.h:
 *
 * - doca_gpunetio_dev_verbs_onesided.cuh: put, get, signal, wait
 * - doca_gpunetio_dev_verbs_counter.cuh: put, get and signal that a companion queue pair counts;
 *   submission to several queue pairs
 * - doca_gpunetio_dev_verbs_qp.cuh: slots, WQEs and doorbells, for code that posts by itself
 * - doca_gpunetio_dev_verbs_cq.cuh: polling of CQs
 * - doca_gpunetio_dev_verbs_common.cuh: fences, atomics, loads and stores
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
