/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Checks of each GPU. */
#include "doctor.h"

void dr_check_gpu(const struct dr_env *env, struct dr_report *r)
{
	(void)env;
	(void)r;
}
