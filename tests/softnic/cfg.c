/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Reads the configuration (struct sn_cfg) from SOFTNIC_* variables and the card
 * model. softnic-run sets the variables and checks most values. An invalid value that
 * reaches this file is read as 0, replaced by a default or ignored. Also linked into
 * softnic-run.
 */
#include "front.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROCE_HEADERS (40 + 8 + 12 + 4 + 28 + 4)

/* Returns the value of a variable; if it is unset or empty, the card model's value, or NULL. */
static const char *setting(const char *name)
{
	const char *s = getenv(name), *model = getenv("SOFTNIC_MODEL");

	if (s && *s)
		return s;
	return model && *model ? sn_model_value(model, name) : NULL;
}

static uint64_t env_num(const char *name, uint64_t otherwise)
{
	const char *s = setting(name);

	return s && *s ? strtoull(s, NULL, 0) : otherwise;
}

static void env_str(const char *name, char *dst, size_t len, const char *otherwise)
{
	const char *s = setting(name);

	snprintf(dst, len, "%s", s && *s ? s : otherwise);
}

/* Format: n[:status[:syndrome]] */
static void cfg_fail_cmd(struct sn_cfg *cfg)
{
	const char *s = setting("SOFTNIC_FAIL_CMD");
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

static bool owns(const struct ifaddrs *a, const struct in6_addr *ip)
{
	const void *sa = a->ifa_addr;

	if (!sa)
		return false;
	if (a->ifa_addr->sa_family == AF_INET6)
		return sn_addr_same(&((const struct sockaddr_in6 *)sa)->sin6_addr, ip);
	if (a->ifa_addr->sa_family != AF_INET || !IN6_IS_ADDR_V4MAPPED(ip))
		return false;
	if (a->ifa_flags & IFF_LOOPBACK && ip->s6_addr[12] == 127)
		return true; /* all of 127.0.0.0/8 belongs to the loopback interface */
	return !memcmp(&((const struct sockaddr_in *)sa)->sin_addr, ip->s6_addr + 12, 4);
}

static void cfg_ndev(struct sn_cfg *cfg)
{
	struct ifaddrs *all, *a;

	if (getifaddrs(&all))
		return;
	for (a = all; a && !owns(a, &cfg->ip); a = a->ifa_next)
		;
	if (a)
		snprintf(cfg->ndev, sizeof(cfg->ndev), "%s", a->ifa_name);
	freeifaddrs(all);
}

/* Returns the payload bytes of one frame of the interface, as the kernel computes them for RoCE:
 * its MTU without the largest headers of a packet (GRH or IP, UDP, BTH, XRC, atomic, ICRC).
 * UINT64_MAX: the MTU is unknown or smaller than these headers. */
static uint64_t ndev_mtu(const char *ndev)
{
	struct ifreq req = { .ifr_mtu = 0 };
	int fd = (int)syscall(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc;

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", ndev);
	rc = (int)syscall(SYS_ioctl, fd, SIOCGIFMTU, &req);
	syscall(SYS_close, fd);
	return rc || req.ifr_mtu < ROCE_HEADERS ? UINT64_MAX
						: (uint64_t)(req.ifr_mtu - ROCE_HEADERS);
}

/* Format: ms[:period in ms]. The default period is 10 * ms. Invalid values are ignored. */
static void cfg_stall(struct sn_cfg *cfg)
{
	const char *s = setting("SOFTNIC_STALL");
	double ms, every;
	char *end;

	if (!s || !*s)
		return;
	ms = strtod(s, &end);
	every = *end == ':' ? strtod(end + 1, NULL) : 10 * ms;
	if (ms > 0 && every > ms && every < 4e6) {
		cfg->stall_us = (uint32_t)(ms * 1000);
		cfg->stall_every_us = (uint32_t)(every * 1000);
	}
}

/* Format: ports[:hash|:inactive] */
static void cfg_lag(struct sn_cfg *cfg)
{
	const char *s = setting("SOFTNIC_LAG");
	char *end;

	if (!s)
		return;
	cfg->lag_ports = (uint8_t)strtoul(s, &end, 0);
	cfg->lag_hash = !strcmp(end, ":hash");
	cfg->lag_inactive = !strcmp(end, ":inactive");
}

/* The value is a mask of event types, or "legacy": the device does not list its events. Default:
 * all events that this NIC sends. */
static void cfg_events(struct sn_cfg *cfg)
{
	static const uint8_t types[] = { 0x02, 0x03, 0x04, 0x05, 0x10, 0x11, 0x12, 0x13, 0x14 };
	char text[32];
	size_t i;

	env_str("SOFTNIC_EVENTS", text, sizeof(text), "");
	cfg->event_cap = strcmp(text, "legacy");
	cfg->events = strtoull(text, NULL, 0);
	for (i = 0; !text[0] && i < sizeof(types); i++)
		cfg->events |= 1ull << types[i];
}

/* Properties of a card's firmware and kernel driver. */
static void cfg_card(struct sn_cfg *cfg)
{
	char text[16];

	cfg_lag(cfg);
	cfg_events(cfg);
	cfg->lag_init2 = env_num("SOFTNIC_LAG_INIT2", 1);
	cfg->query_lag = env_num("SOFTNIC_QUERY_LAG", 1);
	cfg->vf = env_num("SOFTNIC_VF", 0);
	cfg->cd = env_num("SOFTNIC_CD", 1);
	env_str("SOFTNIC_TS_FORMAT", text, sizeof(text), "free");
	cfg->ts_format = !strcmp(text, "real")	 ? SN_TS_REAL
			 : !strcmp(text, "both") ? SN_TS_BOTH
						 : SN_TS_FREE;
	cfg->no_dbr_cap = env_num("SOFTNIC_NO_DBR", 1);
	cfg->no_dbr_max = (uint32_t)env_num("SOFTNIC_NO_DBR_MAX", 0);
	cfg->qp_max = (uint32_t)env_num("SOFTNIC_QP_MAX", 0);
	cfg->cq_behind = (uint32_t)env_num("SOFTNIC_CQ_BEHIND", 0);
	cfg->pci_device = (uint16_t)env_num("SOFTNIC_PCI_DEVICE", 0x1021);
	env_str("SOFTNIC_FW_VER", cfg->fw_ver, sizeof(cfg->fw_ver), "28.43.1000");
}

/* Format: bytes[:whole]; bytes is a power of two from 4096 (4k) to 65536 (64k). */
bool sn_cfg_page_size(struct sn_cfg *cfg)
{
	const char *s = setting("SOFTNIC_PAGE_SIZE");
	unsigned long size;
	char *end;

	cfg->page_size = SN_UAR_SIZE;
	if (!s || !*s)
		return true;
	size = strtoul(s, &end, 0);
	if (*end == 'k' || *end == 'K') {
		size *= 1024;
		end++;
	}
	if ((*end && strcmp(end, ":whole")) || size < SN_UAR_SIZE || size > 65536 ||
	    size & (size - 1))
		return false;
	cfg->page_size = (uint32_t)size;
	cfg->whole_pages = *end;
	return true;
}

/* SOFTNIC_DMABUF_PCIE is "refuse" (default), "fault" or "attach". */
static void cfg_dmabuf(struct sn_cfg *cfg)
{
	const char *s = getenv("SOFTNIC_DMABUF_PCIE");

	cfg->dmabuf = env_num("SOFTNIC_DMABUF", 0);
	cfg->dmabuf_pcie = !s || !*s || *s == 'r' ? SN_PCIE_REFUSED
			   : *s == 'f'		  ? SN_PCIE_FAULTS
						  : SN_PCIE_WORKS;
	cfg->no_peermem = !env_num("SOFTNIC_PEERMEM", 1);
}

static uint32_t cfg_mtu(const struct sn_cfg *cfg)
{
	uint64_t want = env_num("SOFTNIC_MTU", 4096), most = ndev_mtu(cfg->ndev);
	uint64_t bytes = want < most ? want : most;
	uint32_t mtu = 256;

	while (mtu < 4096 && mtu * 2 <= bytes)
		mtu *= 2;
	return mtu;
}

void sn_cfg_from_env(struct sn_cfg *cfg)
{
	const char *ip = setting("SOFTNIC_IP"), *trace = setting("SOFTNIC_TRACE");
	const char *link = setting("SOFTNIC_LINK_LAYER");

	memset(cfg, 0, sizeof(*cfg));
	cfg->infiniband = !strcmp(link ? link : "", "infiniband");
	cfg->grh_required = env_num("SOFTNIC_GRH_REQUIRED", 0);
	if (!ip || !sn_addr_parse(ip, &cfg->ip))
		sn_addr_pick(&cfg->ip, cfg->infiniband);
	env_str("SOFTNIC_NAME", cfg->name, sizeof(cfg->name), "mlx5_0");
	env_str("SOFTNIC_SYSFS", cfg->sysfs, sizeof(cfg->sysfs), "");
	env_str("SOFTNIC_PCAP", cfg->pcap, sizeof(cfg->pcap), "");
	env_str("SOFTNIC_STATS_DIR", cfg->stats_dir, sizeof(cfg->stats_dir), "");
	cfg->stats = env_num("SOFTNIC_STATS", 0);
	cfg->strict = env_num("SOFTNIC_STRICT", 0);
	cfg->trace = trace && *trace && strcmp(trace, "0"); /* 1 or the path of a file */
	cfg_dmabuf(cfg);
	cfg->dbrec_only = env_num("SOFTNIC_DBREC_ONLY", 0);
	cfg_fail_cmd(cfg);
	cfg->fail_ioctl_nth = (uint32_t)env_num("SOFTNIC_FAIL_IOCTL", 0);
	cfg->seed = env_num("SOFTNIC_SEED", 1);
	cfg->loss_ppm = (uint32_t)env_num("SOFTNIC_LOSS_PPM", 0);
	cfg->dup_ppm = (uint32_t)env_num("SOFTNIC_DUP_PPM", 0);
	cfg->reorder_ppm = (uint32_t)env_num("SOFTNIC_REORDER_PPM", 0);
	cfg->corrupt_ppm = (uint32_t)env_num("SOFTNIC_CORRUPT_PPM", 0);
	cfg->delay_us = (uint32_t)env_num("SOFTNIC_DELAY_US", 0);
	cfg_ndev(cfg);
	cfg_stall(cfg);
	cfg_card(cfg);
	sn_cfg_page_size(cfg);
	cfg->vlan = env_num("SOFTNIC_VLAN", 0) & 0xfff;
	cfg->mtu = cfg_mtu(cfg);
	cfg->err_after = (uint32_t)env_num("SOFTNIC_ERR_AFTER", 0);
}
