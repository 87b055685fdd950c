/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Reads the configuration (struct sn_cfg) from SOFTNIC_* variables and the card model. An
 * empty variable counts as unset. An invalid value is reported once per process, and
 * the device is not opened. Also linked into softnic-run, which checks the values first.
 */
#include "setting.h"

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

#define ROCE_HEADERS	(40 + 8 + 12 + 4 + 28 + 4)
#define ETH_MTU_MIN	64
#define ETH_MTU_DEFAULT 1500
#define ETH_MTU_MAX	9216

static bool is_valid(const char *name, const char *value)
{
	const struct sn_setting *s = sn_setting_of(name);

	return s && sn_setting_ok(s, value);
}

/* Returns the value of a variable; if it is unset, empty or invalid, the card model's value, or
 * NULL. */
static const char *setting(const char *name)
{
	const char *s = getenv(name), *model = getenv("SOFTNIC_MODEL");

	if (s && *s && is_valid(name, s))
		return s;
	return model && *model ? sn_model_value(model, name) : NULL;
}

static uint64_t env_num(const char *name, uint64_t otherwise)
{
	const char *s = setting(name);
	uint64_t value;

	return s && sn_parse_number(s, 0, UINT64_MAX, &value) ? value : otherwise;
}

static void env_str(const char *name, char *dst, size_t len, const char *otherwise)
{
	const char *s = setting(name);

	snprintf(dst, len, "%s", s ? s : otherwise);
}

/* Reports each variable with an invalid value, once per process. Returns whether all are valid. */
static bool check_variables(void)
{
	static bool reported;
	const struct sn_setting *s;
	char expected[160];
	const char *value;
	bool ok = true;

	for (s = sn_settings; s < sn_settings + sn_settings_count; s++) {
		value = s->kind == SN_FRACTION ? NULL : getenv(s->variable);
		if (!value || !*value || sn_setting_ok(s, value))
			continue;
		ok = false;
		sn_setting_expected(s, expected, sizeof(expected));
		if (!reported)
			sn_message("invalid %s=\"%.*s%s\" (expected %s), not opening the device",
				   s->variable, SN_SHOWN, value,
				   strlen(value) > SN_SHOWN ? "..." : "", expected);
	}
	reported |= !ok;
	return ok;
}

static void cfg_fail_cmd(struct sn_cfg *cfg)
{
	const char *s = setting("SOFTNIC_FAIL_CMD");

	cfg->fail_cmd_status = SN_ST_NO_RES;
	cfg->fail_cmd_syndrome = 0xfa17ed;
	if (s)
		sn_parse_fail_cmd(s, &cfg->fail_cmd_nth, &cfg->fail_cmd_status,
				  &cfg->fail_cmd_syndrome);
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

/* Returns the MTU of an interface; 0: unknown. */
static uint32_t ndev_mtu(const char *ndev)
{
	struct ifreq req = { .ifr_mtu = 0 };
	int fd = (int)syscall(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc;

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", ndev);
	rc = (int)syscall(SYS_ioctl, fd, SIOCGIFMTU, &req);
	syscall(SYS_close, fd);
	return rc || req.ifr_mtu < 0 ? 0 : (uint32_t)req.ifr_mtu;
}

/* Returns the payload bytes of one frame of the interface, as the kernel computes them for RoCE:
 * its MTU without the largest headers of a packet (GRH or IP, UDP, BTH, XRC, atomic, ICRC).
 * UINT64_MAX: the MTU is unknown or smaller than these headers. */
static uint64_t roce_mtu(const char *ndev)
{
	uint32_t mtu = ndev_mtu(ndev);

	return mtu < ROCE_HEADERS ? UINT64_MAX : mtu - ROCE_HEADERS;
}

/* Settings of raw Ethernet. */
static void cfg_eth(struct sn_cfg *cfg)
{
	const char *peers = setting("SOFTNIC_ETH_PEERS");
	uint32_t mtu;

	if (peers)
		sn_parse_peers(peers, cfg->eth_peers, &cfg->eth_npeers);
	env_str("SOFTNIC_ETH_IF", cfg->eth_if, sizeof(cfg->eth_if), "");
	mtu = ndev_mtu(cfg->eth_if[0] ? cfg->eth_if : cfg->ndev);
	mtu = mtu < ETH_MTU_MIN ? ETH_MTU_DEFAULT : mtu < ETH_MTU_MAX ? mtu : ETH_MTU_MAX;
	cfg->eth_mtu = (uint32_t)env_num("SOFTNIC_ETH_MTU", mtu);
	cfg->eth_vni = (uint32_t)env_num("SOFTNIC_ETH_VNI", 1);
	cfg->eth_pause = env_num("SOFTNIC_ETH_PAUSE", 0);
	cfg->wait_on_time = env_num("SOFTNIC_WAIT_ON_TIME", 1);
}

static void cfg_stall(struct sn_cfg *cfg)
{
	const char *s = setting("SOFTNIC_STALL");

	if (s)
		sn_parse_stall(s, &cfg->stall_us, &cfg->stall_every_us);
}

static void cfg_lag(struct sn_cfg *cfg)
{
	const char *s = setting("SOFTNIC_LAG");

	if (s)
		sn_parse_lag(s, &cfg->lag_ports, &cfg->lag_hash, &cfg->lag_inactive);
}

/* The value is a mask of event types, or "legacy": the device does not list its events. Default:
 * all events that this NIC sends. */
static void cfg_events(struct sn_cfg *cfg)
{
	static const uint8_t types[] = { 0x02, 0x03, 0x04, 0x05, 0x10, 0x11, 0x12, 0x13, 0x14 };
	const char *s = setting("SOFTNIC_EVENTS");
	size_t i;

	cfg->event_cap = !s || strcmp(s, "legacy");
	if (s)
		sn_parse_number(s, 0, UINT64_MAX, &cfg->events);
	for (i = 0; !s && i < sizeof(types); i++)
		cfg->events |= 1ull << types[i];
}

static void cfg_dma(struct sn_cfg *cfg)
{
	char text[8];

	env_str("SOFTNIC_DMA", text, sizeof(text), "qp");
	cfg->dma = !strcmp(text, "none") ? SN_DMA_NONE
		   : !strcmp(text, "sq") ? SN_DMA_SQ
					 : SN_DMA_QP;
	cfg->dma_max = (uint8_t)env_num("SOFTNIC_DMA_MAX", 31);
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
	cfg_dma(cfg);
	cfg->no_dbr_cap = env_num("SOFTNIC_NO_DBR", 1);
	cfg->no_dbr_max = (uint32_t)env_num("SOFTNIC_NO_DBR_MAX", 0);
	cfg->qp_max = (uint32_t)env_num("SOFTNIC_QP_MAX", 0);
	cfg->cq_behind = (uint32_t)env_num("SOFTNIC_CQ_BEHIND", 0);
	cfg->pci_device = (uint16_t)env_num("SOFTNIC_PCI_DEVICE", 0x1021);
	env_str("SOFTNIC_FW_VER", cfg->fw_ver, sizeof(cfg->fw_ver), "28.43.1000");
}

static void cfg_page_size(struct sn_cfg *cfg)
{
	const char *s = setting("SOFTNIC_PAGE_SIZE");

	cfg->page_size = SN_UAR_SIZE;
	if (s)
		sn_parse_page_size(s, &cfg->page_size, &cfg->whole_pages);
}

/* SOFTNIC_DMABUF_PCIE is "refuse" (default), "fault" or "attach". */
static void cfg_dmabuf(struct sn_cfg *cfg)
{
	const char *s = setting("SOFTNIC_DMABUF_PCIE");

	cfg->dmabuf = env_num("SOFTNIC_DMABUF", 0);
	cfg->dmabuf_pcie = !s || *s == 'r' ? SN_PCIE_REFUSED
			   : *s == 'f'	   ? SN_PCIE_FAULTS
					   : SN_PCIE_WORKS;
	cfg->no_peermem = !env_num("SOFTNIC_PEERMEM", 1);
}

static uint32_t cfg_mtu(const struct sn_cfg *cfg)
{
	uint64_t want = env_num("SOFTNIC_MTU", 4096), most = roce_mtu(cfg->ndev);
	uint64_t bytes = want < most ? want : most;
	uint32_t mtu = 256;

	while (mtu < 4096 && mtu * 2 <= bytes)
		mtu *= 2;
	return mtu;
}

bool sn_cfg_from_env(struct sn_cfg *cfg)
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
	env_str("SOFTNIC_EVIDENCE", cfg->evidence, sizeof(cfg->evidence), "");
	env_str("SOFTNIC_RUN", cfg->run, sizeof(cfg->run), "");
	cfg->stats = env_num("SOFTNIC_STATS", 0);
	cfg->strict = env_num("SOFTNIC_STRICT", 0);
	cfg->card_timers = env_num("SOFTNIC_CARD_TIMERS", 0);
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
	cfg_page_size(cfg);
	cfg->vlan = (uint16_t)env_num("SOFTNIC_VLAN", 0);
	cfg->mtu = cfg_mtu(cfg);
	cfg_eth(cfg);
	cfg->err_after = (uint32_t)env_num("SOFTNIC_ERR_AFTER", 0);
	return check_variables();
}
