/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Addresses of a port and the values derived from them. All are computed, so that
 * processes need not exchange them. An address has 16 bytes (IPv4 as ::ffff:a.b.c.d).
 * Its last four bytes are the last four of the MAC 02:00:..., and the MAC determines
 * the link-local GID. In the other direction, a link-local GID belongs to the address
 * with these four bytes in this port's network. The LID of an InfiniBand port is the
 * last 16 bits of the address; 0 if these are not a unicast LID. wire.c sends the
 * packets. Also linked into softnic-run.
 */
#include "front.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROCE_PORT  4791
#define PICK_TRIES 64
#define LID_MAX	   0xbfff /* higher LIDs are multicast */
#define NET_LEN	   12	  /* bytes of an address before the four that the MAC contains */

static const uint8_t v4_net[NET_LEN] = { [10] = 0xff, [11] = 0xff };

static bool addr_is_free(uint32_t ip)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons(ROCE_PORT),
		.sin_addr.s_addr = ip,
	};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is_free;

	if (fd < 0)
		return false;
	is_free = !bind(fd, (struct sockaddr *)&sin, sizeof(sin));
	syscall(SYS_close, fd);
	return is_free;
}

int sn_addr_pick(struct in6_addr *ip, bool lid)
{
	uint32_t r, v4;
	int i;

	memcpy(ip, v4_net, NET_LEN);
	for (i = 0; i < PICK_TRIES; i++) {
		if (getrandom(&r, sizeof(r), 0) != sizeof(r))
			r = (uint32_t)getpid() * 2654435761u + (uint32_t)i;
		/* 127.16.0.1 to 127.239.254.254; the last octet is never 0 or 255. With a LID,
		 * 127.15.0.1 to 127.15.191.254: a LID reaches only ports of the same 16-bit
		 * network. */
		v4 = htonl(127u << 24 | (lid ? 15 : 16 + (r >> 16) % 224) << 16 |
			   ((r >> 8 & 0xff) % (lid ? 192 : 255)) << 8 | (1 + (r & 0xff) % 254));
		memcpy(ip->s6_addr + NET_LEN, &v4, 4);
		if (addr_is_free(v4))
			return 0;
	}
	return -EADDRNOTAVAIL;
}

static bool is_link_local(const uint8_t a[16])
{
	static const uint8_t net[8] = { 0xfe, 0x80 };

	return !memcmp(a, net, sizeof(net));
}

static bool is_v4(const uint8_t a[16])
{
	return !memcmp(a, v4_net, NET_LEN);
}

bool sn_addr_is_local(const struct in6_addr *ip)
{
	return is_v4(ip->s6_addr) && ip->s6_addr[NET_LEN] == 127;
}

bool sn_addr_parse(const char *text, struct in6_addr *ip)
{
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1) {
		memcpy(ip, v4_net, NET_LEN);
		memcpy(ip->s6_addr + NET_LEN, &v4, 4);
		return v4.s_addr != 0;
	}
	/* A link-local address would need an interface and is refused. */
	return inet_pton(AF_INET6, text, ip) == 1 && !is_link_local(ip->s6_addr) &&
	       !IN6_IS_ADDR_MULTICAST(ip) && !IN6_IS_ADDR_UNSPECIFIED(ip);
}

void sn_addr_text(const struct in6_addr *ip, char text[INET6_ADDRSTRLEN])
{
	if (is_v4(ip->s6_addr))
		inet_ntop(AF_INET, ip->s6_addr + NET_LEN, text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, ip, text, INET6_ADDRSTRLEN);
}

void sn_mac_of_ip(const struct in6_addr *ip, uint8_t mac[6])
{
	mac[0] = 0x02;
	mac[1] = 0x00;
	memcpy(mac + 2, ip->s6_addr + NET_LEN, 4);
}

void sn_guid_of_ip(const struct in6_addr *ip, uint8_t guid[8])
{
	uint8_t mac[6];

	sn_mac_of_ip(ip, mac);
	memcpy(guid, mac, 3);
	guid[0] ^= 2;
	guid[3] = 0xff;
	guid[4] = 0xfe;
	memcpy(guid + 5, mac + 3, 3);
}

bool sn_addr_of_gid(const struct in6_addr *own, const uint8_t gid[16], struct in6_addr *ip)
{
	struct in6_addr link = *own;
	uint8_t guid[8];

	if (!is_link_local(gid)) {
		memcpy(ip, gid, 16);
		return is_v4(gid) == is_v4(own->s6_addr) && gid[0] != 0xff &&
		       !IN6_IS_ADDR_UNSPECIFIED(ip);
	}
	link.s6_addr[12] = gid[10];
	memcpy(link.s6_addr + 13, gid + 13, 3);
	sn_guid_of_ip(&link, guid);
	*ip = link;
	return !memcmp(gid + 8, guid, 8);
}

uint16_t sn_lid_of_ip(const struct in6_addr *ip)
{
	uint16_t lid = (uint16_t)(ip->s6_addr[14] << 8 | ip->s6_addr[15]);

	return lid <= LID_MAX ? lid : 0;
}

bool sn_addr_of_lid(const struct in6_addr *own, uint16_t lid, struct in6_addr *ip)
{
	*ip = *own;
	ip->s6_addr[14] = lid >> 8;
	ip->s6_addr[15] = lid & 0xff;
	return lid && lid <= LID_MAX;
}

void sn_link_local(const struct in6_addr *ip, uint8_t gid[16])
{
	memset(gid, 0, 8);
	gid[0] = 0xfe;
	gid[1] = 0x80;
	sn_guid_of_ip(ip, gid + 8);
}

bool sn_gid_at(const struct sn_cfg *cfg, uint32_t index, struct sn_gid *gid)
{
	if (index >= (cfg->infiniband ? 1 : 4))
		return false;
	gid->v2 = index & 1;
	memcpy(gid->raw, &cfg->ip, 16);
	if (index < 2)
		sn_link_local(&cfg->ip, gid->raw);
	return true;
}

uint16_t sn_vlan_tci(const struct sn_cfg *cfg, uint32_t sgid_index, uint8_t prio)
{
	return cfg->vlan && sgid_index >= 2 ? (uint16_t)((prio & 7) << 13 | cfg->vlan) : 0;
}

int sn_dest_find(const struct sn_cfg *cfg, const struct sn_dest *dest, struct in6_addr *ip)
{
	struct in6_addr by_gid;
	struct sn_gid own;

	if (!dest->grh && (!cfg->infiniband || cfg->grh_required))
		return -EINVAL;
	if (dest->grh && !sn_gid_at(cfg, dest->sgid_index, &own))
		return -EINVAL;
	if (!cfg->infiniband)
		return sn_addr_of_gid(&cfg->ip, dest->dgid, ip) ? 0 : -EHOSTUNREACH;
	if (!sn_addr_of_lid(&cfg->ip, dest->dlid, ip))
		return -EINVAL;
	/* A port drops packets with another port's GID, so LID and GID must name the same port. */
	return !dest->grh || (sn_addr_of_gid(&cfg->ip, dest->dgid, &by_gid) &&
			      sn_addr_same(ip, &by_gid))
		       ? 0
		       : -EHOSTUNREACH;
}
