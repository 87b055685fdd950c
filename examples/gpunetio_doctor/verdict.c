/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Which combinations of GPU, device and port work, and the exit status. A combination works if no
 * check has failed in the scopes that it belongs to.
 */
#include <stdio.h>
#include <string.h>

#include "report.h"

static bool failed(const struct dr_report *r, const char *scope)
{
	for (size_t i = 0; i < r->num; i++)
		if (r->results[i].level == DR_FAIL && !strcmp(r->results[i].scope, scope))
			return true;
	return false;
}

int dr_verdict(struct dr_report *r)
{
	const struct dr_env *env = r->env;
	int usable = 0;

	for (int i = 0; i < env->devices.num; i++)
		usable += !failed(r, env->devices.name[i]);
	return !usable || failed(r, "host");
}
