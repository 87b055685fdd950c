/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Which combinations of GPU, device and port work, and the exit status. A combination works if no
 * check has failed in the scopes that it belongs to.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results.h"

static const struct dr_result *failure(const struct dr_report *r, const char *scope)
{
	for (size_t i = 0; i < r->num; i++)
		if (r->results[i].level == DR_FAIL && !strcmp(r->results[i].scope, scope))
			return &r->results[i];
	return NULL;
}

bool dr_failed(const struct dr_report *r, const char *scope, const char *check)
{
	for (size_t i = 0; i < r->num; i++)
		if (r->results[i].level == DR_FAIL && !strcmp(r->results[i].scope, scope) &&
		    (!check || !strcmp(r->results[i].check, check)))
			return true;
	return false;
}

/* Returns the first failure of the scopes to which the device and the port belong. */
static const struct dr_result *device_failure(const struct dr_report *r, const char *device,
					      int port)
{
	char scope[DR_NAME_LEN + 16];
	const struct dr_result *x = failure(r, "host");

	snprintf(scope, sizeof(scope), "%s port %d", device, port);
	x = x ? x : failure(r, device);
	return x ? x : failure(r, scope);
}

static const struct dr_result *pair_failure(const struct dr_report *r, const char *gpu,
					    const char *device)
{
	char scope[2 * DR_NAME_LEN + 16];
	const struct dr_result *x;

	snprintf(scope, sizeof(scope), "gpu %s", gpu);
	x = failure(r, scope);
	snprintf(scope, sizeof(scope), "gpu %s + %s", gpu, device);
	return x ? x : failure(r, scope);
}

static const struct dr_choice *choice_of(const struct dr_report *r, const char *gpu,
					 const char *device)
{
	for (size_t i = 0; i < r->num_choices; i++)
		if (!strcmp(r->choices[i].gpu, gpu) && !strcmp(r->choices[i].device, device))
			return &r->choices[i];
	return NULL;
}

bool dr_uses_host_gpu(const struct dr_env *env)
{
	return env->gpu ? !strcmp(env->gpu, DR_HOST_GPU) : !env->gpus.num;
}

static void each_port(const struct dr_report *r, const char *gpu, const char *device,
		      void (*fn)(const struct dr_combination *c, void *arg), void *arg)
{
	struct dr_names ports;

	(void)dr_list(r->env, &ports, "/sys/class/infiniband/%s/ports", device);
	for (int i = 0; i < ports.num; i++) {
		int port = atoi(ports.name[i]);
		struct dr_combination c = { .gpu = gpu,
					    .device = device,
					    .port = port,
					    .choice = choice_of(r, gpu, device),
					    .failed = device_failure(r, device, port) };

		if (r->env->port && r->env->port != port)
			continue;
		c.failed = c.failed ? c.failed : pair_failure(r, gpu, device);
		c.works = !c.failed;
		fn(&c, arg);
	}
}

void dr_each_combination(const struct dr_report *r,
			 void (*fn)(const struct dr_combination *c, void *arg), void *arg)
{
	const struct dr_env *env = r->env;

	for (int d = 0; d < env->devices.num; d++) {
		for (int g = 0; g < env->gpus.num; g++)
			each_port(r, env->gpus.name[g], env->devices.name[d], fn, arg);
		if (dr_uses_host_gpu(env))
			each_port(r, DR_HOST_GPU, env->devices.name[d], fn, arg);
	}
}

struct tally {
	const struct dr_report *r;
	int working, usable; /* combinations that work; combinations whose device and port work */
};

static void count(const struct dr_combination *c, void *arg)
{
	struct tally *t = arg;

	t->working += c->works;
	t->usable += !device_failure(t->r, c->device, c->port);
}

int dr_verdict(struct dr_report *r)
{
	const struct dr_env *env = r->env;
	struct tally t = { .r = r };

	dr_each_combination(r, count, &t);
	if (env->gpu || env->device || env->port || env->handler >= 0)
		return !t.working;
	return !t.usable;
}
