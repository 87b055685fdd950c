/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Includes all headers of the NIC and its objects.
 */
#ifndef DOCA_VERBS_H
#define DOCA_VERBS_H

#include "host/doca_gpunetio.h"
#include "host/doca_verbs_ah.h"
#include "host/doca_verbs_cq.h"
#include "host/doca_verbs_dev.h"
#include "host/doca_verbs_qp.h"
#include "host/doca_verbs_srq.h"
#include "host/doca_verbs_uar.h"
#include "host/doca_verbs_umem.h"

#endif
