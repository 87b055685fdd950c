/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Configuration of the software NIC from SOFTNIC_* variables.
 */
#include "front.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t env_num(const char *name, uint64_t otherwise)
{
	const char *s = getenv(name);

	return s && *s ? strtoull(s, NULL, 0) : otherwise;
}

static void env_str(const char *name, char *dst, size_t len, const char *otherwise)
{
	const char *s = getenv(name);

	snprintf(dst, len, "%s", s && *s ? s : otherwise);
}

/* n[:status[:syndrome]] */
static void cfg_fail_cmd(struct sn_cfg *cfg)
{
	const char *s = getenv("SOFTNIC_FAIL_CMD");
	char *end;

	cfg->fail_cmd_status = SN_ST_NO_RES;
	cfg->fail_cmd_syndrome = 0xfa17ed;
	if (!s)
		return;
	cfg->fail_cmd_nth = (uint32_t)strtoul(s, &end, 0);
	if (*end == ':')
		cfg->fail_cmd_status = (uint8_t)strtoul(end + 1, &end, 0);
	if (*end == ':')
		cfg->fail_cmd_syndrome = (uint32_t)strtoul(end + 1, &end, 0);
}

static uint32_t cfg_mtu(uint64_t bytes)
{
	uint32_t mtu = 256;

	while (mtu < 4096 && mtu * 2 <= bytes)
		mtu *= 2;
	return mtu;
}

void sn_cfg_from_env(struct sn_cfg *cfg)
{
	const char *ip = getenv("SOFTNIC_IP"), *trace = getenv("SOFTNIC_TRACE");

	memset(cfg, 0, sizeof(*cfg));
	if (!ip || inet_pton(AF_INET, ip, &cfg->ip) != 1)
		sn_addr_pick(&cfg->ip);
	env_str("SOFTNIC_NAME", cfg->name, sizeof(cfg->name), "mlx5_0");
	env_str("SOFTNIC_SYSFS", cfg->sysfs, sizeof(cfg->sysfs), "");
	env_str("SOFTNIC_PCAP", cfg->pcap, sizeof(cfg->pcap), "");
	env_str("SOFTNIC_STATS_DIR", cfg->stats_dir, sizeof(cfg->stats_dir), "");
	cfg->stats = env_num("SOFTNIC_STATS", 0);
	cfg->strict = env_num("SOFTNIC_STRICT", 0);
	cfg->trace = trace && *trace && strcmp(trace, "0"); /* 1, or the path of a file */
	cfg->dbrec_only = env_num("SOFTNIC_DBREC_ONLY", 0);
	cfg->no_dbr_cap = env_num("SOFTNIC_NO_DBR", 1);
	cfg->no_dbr_max = (uint32_t)env_num("SOFTNIC_NO_DBR_MAX", 0);
	cfg_fail_cmd(cfg);
	cfg->fail_ioctl_nth = (uint32_t)env_num("SOFTNIC_FAIL_IOCTL", 0);
	cfg->seed = env_num("SOFTNIC_SEED", 1);
	cfg->loss_ppm = (uint32_t)env_num("SOFTNIC_LOSS_PPM", 0);
	cfg->dup_ppm = (uint32_t)env_num("SOFTNIC_DUP_PPM", 0);
	cfg->reorder_ppm = (uint32_t)env_num("SOFTNIC_REORDER_PPM", 0);
	cfg->corrupt_ppm = (uint32_t)env_num("SOFTNIC_CORRUPT_PPM", 0);
	cfg->delay_us = (uint32_t)env_num("SOFTNIC_DELAY_US", 0);
	cfg->mtu = cfg_mtu(env_num("SOFTNIC_MTU", 4096));
	cfg->err_after = (uint32_t)env_num("SOFTNIC_ERR_AFTER", 0);
}
