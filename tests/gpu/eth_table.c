/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* A table of cases in which each two values of different factors occur together. */
#include <stdlib.h>
#include <string.h>

#include "eth_host.h"

#define PACKETS 10000u

enum factor { MODE, SCOPE, HANDLER, MEMORY, KIND, FACTORS };
#define LEVELS_MAX 4
#define CASES_MAX  1000

static const struct {
	uint32_t num;
	const char *name[LEVELS_MAX];
	int value[LEVELS_MAX];
} factors[FACTORS] = {
	[MODE] = { 3,
		   { "exclusive", "CTA", "GPU" },
		   { DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_EXCLUSIVE,
		     DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_CTA,
		     DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU } },
	[SCOPE] = { 3,
		    { "thread", "warp", "block" },
		    { DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD, DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP,
		      DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK } },
	[HANDLER] = { 4,
		      { "AUTO", "GPU_SM_DB", "CPU_PROXY", "GPU_SM_BF" },
		      { DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
			DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB,
			DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY,
			DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF } },
	[MEMORY] = { 3,
		     { "host", "GPU", "GPU_CPU" },
		     { DOCA_GPU_MEM_TYPE_CPU_GPU, DOCA_GPU_MEM_TYPE_GPU,
		       DOCA_GPU_MEM_TYPE_GPU_CPU } },
	[KIND] = { 2, { "plain", "multi-packet" }, { ET_SEND, ET_MULTI } },
};

#if defined(GDK_WARP) && GDK_WARP == 1
#define ONE_LANE 1
#else
#define ONE_LANE 0
#endif

static bool is_new[FACTORS][LEVELS_MAX][FACTORS][LEVELS_MAX];
static uint8_t all[CASES_MAX][FACTORS]; /* all combinations */
static uint32_t num_all;

/* Multi-packet sends are those of a warp. A CUDA GPU needs GDRCopy for GPU_CPU. */
static bool exists(const uint8_t *level, bool small)
{
	return (level[KIND] == 0 || level[SCOPE] == 1) && (small || level[MEMORY] < 2);
}

static void combine(bool small)
{
	uint8_t level[FACTORS] = { 0 };
	uint32_t f;

	num_all = 0;
	do {
		if (exists(level, small)) {
			ET_REQUIRE(num_all < CASES_MAX);
			memcpy(all[num_all++], level, sizeof(level));
		}
		for (f = 0; f < FACTORS && ++level[f] == factors[f].num; f++)
			level[f] = 0;
	} while (f < FACTORS);
}

/* Number of pairs of a combination that no case has yet. */
static uint32_t count_new(const uint8_t *level)
{
	uint32_t a, b, n = 0;

	for (a = 0; a < FACTORS; a++)
		for (b = a + 1; b < FACTORS; b++)
			n += is_new[a][level[a]][b][level[b]];
	return n;
}

static void mark(const uint8_t *level, bool to)
{
	uint32_t a, b;

	for (a = 0; a < FACTORS; a++)
		for (b = a + 1; b < FACTORS; b++)
			is_new[a][level[a]][b][level[b]] = to;
}

static struct et_case case_of(struct et_case c, const uint8_t *level, bool small)
{
	const uint32_t packets = et_env.case_packets ? et_env.case_packets : PACKETS;
	const uint32_t exec = (uint32_t)factors[SCOPE].value[level[SCOPE]];

	c.mode = (enum doca_gpu_dev_eth_resource_sharing_mode)factors[MODE].value[level[MODE]];
	c.exec = c.rx_exec = (enum doca_gpu_dev_eth_exec_scope)exec;
	c.handler = (enum doca_gpu_dev_verbs_nic_handler)factors[HANDLER].value[level[HANDLER]];
	c.mem = (enum doca_gpu_mem_type)factors[MEMORY].value[level[MEMORY]];
	c.how = (enum et_how)factors[KIND].value[level[KIND]];
	c.rx_threads = exec == DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD ? 1
		       : exec == DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP ? 32
								   : 48;
	c.max_pkts = 0;
	if (small && (ONE_LANE || exec == DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD))
		c.threads = 4; /* threads that wait take processor time from the NIC and the peer */
	else if (small && exec == DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK)
		c.threads = c.rx_threads = 20;
	if (c.mode != DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU)
		c.blocks = 1;
	/* One thread, warp or block; with warps of one thread, each of them is one thread. */
	if (c.mode == DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_EXCLUSIVE &&
	    exec != DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK)
		c.threads = exec == DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD ? 1 : 32;
	if (c.mode == DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_EXCLUSIVE && ONE_LANE)
		c.threads = 1;
	if (c.how == ET_MULTI)
		c.each = ET_EACH_MAX;
	c.rounds = (packets + c.blocks * c.threads * c.each - 1) / (c.blocks * c.threads * c.each);
	return c;
}

void et_table(void (*add)(const char *name, struct et_case c), struct et_case base, bool small)
{
	char name[sizeof(base.name)];
	uint32_t i, best, at = 0;

	combine(small);
	for (i = 0; i < num_all; i++)
		mark(all[i], true);
	for (;;) {
		for (i = best = 0; i < num_all; i++)
			if (count_new(all[i]) > best) {
				best = count_new(all[i]);
				at = i;
			}
		if (!best)
			return;
		mark(all[at], false);
		snprintf(name, sizeof(name), "table: %s %s %s %s %s",
			 factors[MODE].name[all[at][MODE]], factors[SCOPE].name[all[at][SCOPE]],
			 factors[HANDLER].name[all[at][HANDLER]],
			 factors[MEMORY].name[all[at][MEMORY]], factors[KIND].name[all[at][KIND]]);
		add(name, case_of(base, all[at], small));
	}
}
