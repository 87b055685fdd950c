/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * RoCE addresses of processes: picks a loopback address whose UDP port 4791 is
 * free, and derives GID and MAC from an address. Linked into the launcher too.
 */
#include "front.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROCE_PORT 4791
#define PICK_TRIES 64

static bool addr_is_free(struct in_addr ip)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_port = htons(ROCE_PORT), .sin_addr = ip,
	};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool is_free;

	if (fd < 0)
		return false;
	is_free = !bind(fd, (struct sockaddr *)&sin, sizeof(sin));
	syscall(SYS_close, fd);
	return is_free;
}

int sn_addr_pick(struct in_addr *ip)
{
	uint32_t r;
	int i;

	for (i = 0; i < PICK_TRIES; i++) {
		if (getrandom(&r, sizeof(r), 0) != sizeof(r))
			r = (uint32_t)getpid() * 2654435761u + (uint32_t)i;
		/* 127.16.0.1 … 127.239.254.254: no zero or broadcast octets */
		ip->s_addr = htonl(127u << 24 | (16 + (r >> 16) % 224) << 16 |
				   ((r >> 8 & 0xff) % 255) << 8 | (1 + (r & 0xff) % 254));
		if (addr_is_free(*ip))
			return 0;
	}
	return -EADDRNOTAVAIL;
}

void sn_mac_of_ip(struct in_addr ip, uint8_t mac[6])
{
	mac[0] = 0x02;
	mac[1] = 0x00;
	memcpy(mac + 2, &ip.s_addr, 4);
}

void sn_gid_of_ip(struct in_addr ip, uint8_t gid[16])
{
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, &ip.s_addr, 4);
}
