/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The network interface of the NIC, as ioctl() and netlink show it: MTU, flags, MAC
 * address, link settings. Drivers in user space (DPDK) read and change these on the
 * interface that has the NIC's address. That interface is usually lo and belongs to the
 * host, so requests of a process that opened the NIC are answered here, and the kernel's
 * descriptions of the interface are changed on the way; the interface itself is not.
 */
#include "front.h"
#include "eth.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/socket.h>

#define MTU_MIN	       68
#define LINK_MBPS      100000u
#define LINK_MASKS     3  /* 32-bit words of a bitmap of link modes */
#define LINK_MODE_100G 38 /* 100000baseCR4 full duplex */
#define ROUTE_FDS      1024
#define FLAGS_FIXED    (IFF_RUNNING | IFF_BROADCAST | IFF_MULTICAST)

/* Flags that a program may change. A NIC is up when it is opened. */
static int flags_set = IFF_UP;
static uint32_t pause_autoneg, pause_rx, pause_tx;

/* Whether this process has opened a NIC whose interface is known. */
static bool has_port(void)
{
	return sn_any_open() && sn_dev && !sn_dev->cfg.infiniband && sn_dev->cfg.ndev[0];
}

static uint32_t get_mtu(void)
{
	uint32_t mtu;

	sn_dev_lock(sn_dev);
	mtu = sn_dev->cfg.eth_mtu;
	pthread_mutex_unlock(&sn_dev->lock);
	return mtu;
}

static long set_mtu(int mtu)
{
	if (mtu < MTU_MIN || mtu > (int)SN_ETH_MTU_MAX)
		return -EINVAL;
	sn_dev_lock(sn_dev);
	sn_dev->cfg.eth_mtu = (uint32_t)mtu;
	pthread_mutex_unlock(&sn_dev->lock);
	return 0;
}

/* A program asks first with a negative number of words, as the kernel requires. */
static long get_link(struct ethtool_link_settings *s)
{
	int8_t words = s->link_mode_masks_nwords;
	uint32_t cmd = s->cmd;

	memset(s, 0, sizeof(*s));
	s->cmd = cmd;
	s->link_mode_masks_nwords = words == LINK_MASKS ? LINK_MASKS : -LINK_MASKS;
	if (words != LINK_MASKS)
		return 0;
	s->speed = LINK_MBPS;
	s->duplex = DUPLEX_FULL;
	s->port = PORT_DA;
	memset(s->link_mode_masks, 0, 3 * LINK_MASKS * sizeof(s->link_mode_masks[0]));
	s->link_mode_masks[LINK_MODE_100G / 32] = 1u << LINK_MODE_100G % 32;
	return 0;
}

static long pause_param(struct ethtool_pauseparam *p)
{
	if (p->cmd == ETHTOOL_SPAUSEPARAM) {
		if (p->autoneg)
			return -EINVAL;
		pause_rx = !!p->rx_pause;
		pause_tx = !!p->tx_pause;
		return 0;
	}
	p->autoneg = pause_autoneg;
	p->rx_pause = pause_rx;
	p->tx_pause = pause_tx;
	return 0;
}

static long get_driver(struct ethtool_drvinfo *d)
{
	memset(d, 0, sizeof(*d));
	d->cmd = ETHTOOL_GDRVINFO;
	strcpy(d->driver, "mlx5_core");
	strncpy(d->fw_version, sn_dev->cfg.fw_ver, sizeof(d->fw_version) - 1);
	strcpy(d->bus_info, SN_PCI_ADDR);
	return 0;
}

static long ethtool(void *data)
{
	uint32_t cmd;

	if (!data)
		return -EFAULT;
	memcpy(&cmd, data, sizeof(cmd));
	switch (cmd) {
	case ETHTOOL_GLINKSETTINGS:
		return get_link(data);
	case ETHTOOL_GPAUSEPARAM:
	case ETHTOOL_SPAUSEPARAM:
		return pause_param(data);
	case ETHTOOL_GDRVINFO:
		return get_driver(data);
	case ETHTOOL_GSTRINGS:
		((struct ethtool_gstrings *)data)->len = 0;
		return 0;
	case ETHTOOL_GSTATS:
		((struct ethtool_stats *)data)->n_stats = 0;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static long answer(unsigned long request, struct ifreq *req)
{
	switch (request) {
	case SIOCGIFMTU:
		req->ifr_mtu = (int)get_mtu();
		return 0;
	case SIOCSIFMTU:
		return set_mtu(req->ifr_mtu);
	case SIOCGIFFLAGS:
		req->ifr_flags = (short)(__atomic_load_n(&flags_set, __ATOMIC_RELAXED) |
					 FLAGS_FIXED);
		return 0;
	case SIOCSIFFLAGS:
		__atomic_store_n(&flags_set, req->ifr_flags & ~FLAGS_FIXED, __ATOMIC_RELAXED);
		return 0;
	case SIOCGIFHWADDR:
		req->ifr_hwaddr.sa_family = ARPHRD_ETHER;
		sn_mac_of_ip(&sn_dev->cfg.ip, (uint8_t *)req->ifr_hwaddr.sa_data);
		return 0;
	default: /* SIOCETHTOOL */
		return ethtool(req->ifr_data);
	}
}

bool sn_net_ioctl(unsigned long request, void *arg, long *rc)
{
	struct ifreq *req = arg;

	switch (request) {
	case SIOCGIFMTU:
	case SIOCSIFMTU:
	case SIOCGIFFLAGS:
	case SIOCSIFFLAGS:
	case SIOCGIFHWADDR:
	case SIOCETHTOOL:
		break;
	default:
		return false;
	}
	if (!req || !has_port() || strncmp(req->ifr_name, sn_dev->cfg.ndev, sizeof(req->ifr_name)))
		return false;
	*rc = answer(request, req);
	return true;
}

/* ---- netlink ---- */

/* Bit i: descriptor i is a netlink socket for links and routes. */
static uint64_t route_fds[ROUTE_FDS / 64];

void sn_net_opened(int fd)
{
	if (fd >= 0 && fd < ROUTE_FDS)
		__atomic_or_fetch(&route_fds[fd / 64], 1ull << fd % 64, __ATOMIC_RELAXED);
}

static bool is_route(int fd)
{
	return fd >= 0 && fd < ROUTE_FDS &&
	       __atomic_load_n(&route_fds[fd / 64], __ATOMIC_RELAXED) >> fd % 64 & 1;
}

void sn_net_closing(int fd)
{
	if (is_route(fd))
		__atomic_and_fetch(&route_fds[fd / 64], ~(1ull << fd % 64), __ATOMIC_RELAXED);
}

static void change_number(struct rtattr *a, uint32_t value)
{
	if (RTA_PAYLOAD(a) >= sizeof(value))
		memcpy(RTA_DATA(a), &value, sizeof(value));
}

/* lo has no limits of its MTU, which reads as a maximum of 0. */
static void change_link(struct nlmsghdr *nh)
{
	struct ifinfomsg *info = NLMSG_DATA(nh);
	uint8_t mac[6];
	struct rtattr *a;
	int left;

	if (nh->nlmsg_len < NLMSG_LENGTH(sizeof(*info)) ||
	    (unsigned int)info->ifi_index != if_nametoindex(sn_dev->cfg.ndev))
		return;
	sn_mac_of_ip(&sn_dev->cfg.ip, mac);
	left = (int)IFLA_PAYLOAD(nh);
	for (a = IFLA_RTA(info); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == IFLA_MIN_MTU)
			change_number(a, MTU_MIN);
		else if (a->rta_type == IFLA_MAX_MTU)
			change_number(a, SN_ETH_MTU_MAX);
		else if (a->rta_type == IFLA_MTU)
			change_number(a, get_mtu());
		else if (a->rta_type == IFLA_ADDRESS && RTA_PAYLOAD(a) == sizeof(mac))
			memcpy(RTA_DATA(a), mac, sizeof(mac));
	}
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	static ssize_t (*next)(int, struct msghdr *, int);
	struct nlmsghdr *nh;
	ssize_t got;
	int left;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "recvmsg");
	got = next(fd, msg, flags);
	if (got <= 0 || !is_route(fd) || !has_port() || !msg->msg_iovlen)
		return got;
	left = (int)(got < (ssize_t)msg->msg_iov[0].iov_len ? got
							    : (ssize_t)msg->msg_iov[0].iov_len);
	/* a message without padding at the end makes `left` negative */
	for (nh = msg->msg_iov[0].iov_base; left > 0 && NLMSG_OK(nh, (uint32_t)left);
	     nh = NLMSG_NEXT(nh, left))
		if (nh->nlmsg_type == RTM_NEWLINK)
			change_link(nh);
	return got;
}
