/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Addresses and buffers of the UDP sockets that carry the NIC's packets: RoCE (wire.c)
 * and VXLAN (eth_sock.c). An IPv4 address is ::ffff:a.b.c.d in struct in6_addr, and an
 * IPv4 socket sends to it.
 */
#ifndef SOFTNIC_UNDERLAY_H
#define SOFTNIC_UNDERLAY_H

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define SN_SOCKET_BUFFER (8 << 20)

union sn_sockaddr {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Returns the length of the address. */
static inline socklen_t sn_sockaddr_set(union sn_sockaddr *to, const struct in6_addr *ip,
					uint16_t port)
{
	if (!IN6_IS_ADDR_V4MAPPED(ip)) {
		to->v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
						.sin6_addr = *ip,
						.sin6_port = htons(port) };
		return sizeof(to->v6);
	}
	to->v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
	memcpy(&to->v4.sin_addr, ip->s6_addr + 12, 4);
	return sizeof(to->v4);
}

static inline void sn_sockaddr_get(const union sn_sockaddr *from, struct in6_addr *ip,
				   uint16_t *port)
{
	*port = ntohs(from->v4.sin_port); /* the port is at the same offset in both structs */
	if (from->sa.sa_family == AF_INET6) {
		*ip = from->v6.sin6_addr;
		return;
	}
	*ip = (struct in6_addr){ .s6_addr = { [10] = 0xff, [11] = 0xff } };
	memcpy(ip->s6_addr + 12, &from->v4.sin_addr, 4);
}

/* Sets both buffers to SN_SOCKET_BUFFER, or to the largest size that the system allows. */
static inline void sn_set_buffers(int fd)
{
	int size = SN_SOCKET_BUFFER;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

#endif
