/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The configuration and the ports of the flow library. */
#include "qp/flow/flow.h"

struct gdk_flow gdk_flow = { .lock = PTHREAD_MUTEX_INITIALIZER };
