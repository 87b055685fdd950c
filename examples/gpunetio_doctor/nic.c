/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Checks of each RDMA device and its ports. */
#include "doctor.h"

void dr_check_nic(const struct dr_env *env, struct dr_report *r)
{
	(void)env;
	(void)r;
}
