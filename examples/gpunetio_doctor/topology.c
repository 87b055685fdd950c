/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Checks of the path between GPU and NIC. */
#include "doctor.h"

void dr_check_topology(const struct dr_env *env, struct dr_report *r)
{
	(void)env;
	(void)r;
}
