/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The whole life of many queue pairs, for tests that hold a kernel which does not end. No call may
 * wait for the GPU. Used on the stand-in driver and on a GPU (tests/gpu/spin.cu).
 */
#ifndef SPIN_LIFE_H
#define SPIN_LIFE_H

#include "e2e.h"

#define SPIN_LIFE_QPS 100u

/* Called before each call of the library, with its description and the number of the QP. */
typedef void (*spin_step_fn)(const char *what, unsigned int qp);

/* Creates, connects and uses SPIN_LIFE_QPS queue pairs of all handlers, high-level ones and some
 * made by hand as NIXL does, allocates and registers memory for each, and destroys all. Does this
 * twice, so that the second time reuses what the first released. Aborts on errors. */
void spin_life_run(struct e2e_nic *nic, spin_step_fn step);

#endif
