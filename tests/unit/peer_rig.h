/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The socket by which the NIC of another process tells that it runs (softnic/peer.c). The
 * test owns it, and so decides whether this NIC gets a processor, is stopped or has ended.
 */
#ifndef PEER_RIG_H
#define PEER_RIG_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PEER_QUERY = 1, PEER_ANSWER = 2, PEER_LEAVE = 3, PEER_MAGIC = 0x67706c31, PEER_PID = 4711 };

struct peer_note {
	uint32_t magic, kind;
	uint64_t stamp;
	uint8_t ip[16];
	int32_t pid;
};

static socklen_t peer_name(const char *ip, struct sockaddr_un *name)
{
	*name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) +
	       (socklen_t)sprintf(name->sun_path + 1, "gdaki-softnic/%s", ip);
}

static int peer_lives(const char *ip)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_un name;
	socklen_t len = peer_name(ip, &name);

	cr_assert_eq(bind(fd, (struct sockaddr *)&name, len), 0);
	return fd;
}

/* Takes a note and where it came from. Returns false if there is none. */
static bool peer_take(int fd, struct peer_note *n, struct sockaddr_un *from, socklen_t *len)
{
	*len = sizeof(*from);
	if (recvfrom(fd, n, sizeof(*n), 0, (struct sockaddr *)from, len) != sizeof(*n))
		return false;
	cr_assert_eq(n->magic, PEER_MAGIC);
	return true;
}

/* Returns all queries that arrived. Returns their number. */
static unsigned peer_answers(int fd)
{
	struct sockaddr_un from;
	struct peer_note n;
	socklen_t len;
	unsigned i;

	for (i = 0; peer_take(fd, &n, &from, &len); i++) {
		cr_assert_eq(n.kind, PEER_QUERY);
		n.kind = PEER_ANSWER;
		n.pid = PEER_PID;
		cr_assert_eq(sendto(fd, &n, sizeof(n), 0, (struct sockaddr *)&from, len),
			     sizeof(n));
	}
	return i;
}

#endif
