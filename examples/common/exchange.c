/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The exchange of the two processes over TCP, before and after the transfer: connection
 * data, parameters and results. Each wait ends on Ctrl-C and at a time limit, except that
 * connect() can take longer. Numbers are sent in network byte order. The payload itself goes
 * over RDMA.
 */
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

#define SLICE_MS 100 /* interval at which waits check for signals and the time limit */

static volatile sig_atomic_t stopped;

static void on_signal(int signum)
{
	(void)signum;
	stopped = 1;
}

void ex_catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

bool ex_interrupted(void)
{
	return stopped;
}

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Waits until one of events is possible on fd. Returns 0, or prints the reason and returns -1. */
static int wait_ready(int fd, short events, int64_t deadline, const char *what)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	while (!stopped && now_ms() < deadline) {
		int n = poll(&pfd, 1, SLICE_MS);

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return ex_error("%s: %s", what, strerror(errno));
	}
	return stopped ? ex_error("interrupted while waiting %s", what)
		       : ex_error("timed out while waiting %s", what);
}

static int listen_on(uint16_t port)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_ANY),
	};
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return ex_error("socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 1)) {
		ex_error("cannot listen on TCP port %u: %s", port, strerror(errno));
		close(fd);
		return -1;
	}
	return fd;
}

int ex_tcp_accept(const struct ex_options *opt)
{
	int listener = listen_on(opt->tcp_port), sock = -1;

	if (listener < 0)
		return -1;
	printf("Waiting for a client on TCP port %u\n", opt->tcp_port);
	fflush(stdout);
	if (!wait_ready(listener, POLLIN, now_ms() + opt->timeout_s * 1000ll, "for a client")) {
		sock = accept(listener, NULL, NULL);
		if (sock < 0)
			ex_error("accept: %s", strerror(errno));
	}
	close(listener);
	return sock;
}

static int connect_once(const struct addrinfo *ai)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, ai->ai_addr, ai->ai_addrlen)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int ex_tcp_connect(const struct ex_options *opt)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *ai;
	int64_t deadline = now_ms() + opt->timeout_s * 1000ll;
	char port[8];
	int rc, sock;

	snprintf(port, sizeof(port), "%u", opt->tcp_port);
	rc = getaddrinfo(opt->server, port, &hints, &ai);
	if (rc)
		return ex_error("cannot resolve server '%s': %s", opt->server, gai_strerror(rc));
	while ((sock = connect_once(ai)) < 0 && !stopped && now_ms() < deadline)
		usleep(SLICE_MS * 1000);
	freeaddrinfo(ai);
	if (sock < 0)
		ex_error("cannot connect to the server at %s, TCP port %s", opt->server, port);
	return sock;
}

void ex_tcp_close(int sock)
{
	if (sock >= 0)
		close(sock);
}

int ex_send(int sock, const void *buf, size_t len, unsigned int timeout_s)
{
	int64_t deadline = now_ms() + timeout_s * 1000ll;
	const char *p = buf;

	while (len) {
		ssize_t n;

		if (wait_ready(sock, POLLOUT, deadline, "to send to the peer"))
			return -1;
		n = send(sock, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return ex_error("cannot send to the peer: %s", strerror(errno));
		if (n > 0)
			p += n, len -= (size_t)n;
	}
	return 0;
}

int ex_recv(int sock, void *buf, size_t len, unsigned int timeout_s)
{
	int64_t deadline = now_ms() + timeout_s * 1000ll;
	char *p = buf;

	while (len) {
		ssize_t n;

		if (wait_ready(sock, POLLIN, deadline, "for the peer"))
			return -1;
		n = recv(sock, p, len, MSG_DONTWAIT);
		if (n == 0)
			return ex_error("the peer closed the connection");
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return ex_error("cannot receive from the peer: %s", strerror(errno));
		if (n > 0)
			p += n, len -= (size_t)n;
	}
	return 0;
}

int ex_send_u32(int sock, uint32_t value, unsigned int timeout_s)
{
	value = htobe32(value);
	return ex_send(sock, &value, sizeof(value), timeout_s);
}

int ex_recv_u32(int sock, uint32_t *value, unsigned int timeout_s)
{
	if (ex_recv(sock, value, sizeof(*value), timeout_s))
		return -1;
	*value = be32toh(*value);
	return 0;
}

/* struct ex_peer on the wire, big-endian */
struct wire_peer {
	uint32_t qpn, companion_qpn, psn, lid, mtu, rkey, reads, zero;
	uint64_t addr;
	uint8_t gid[16];
};

int ex_swap_peers(int sock, const struct ex_peer *local, struct ex_peer *remote,
		  unsigned int timeout_s)
{
	struct wire_peer w = {
		.qpn = htobe32(local->qpn),
		.companion_qpn = htobe32(local->companion_qpn),
		.psn = htobe32(local->psn),
		.lid = htobe32(local->lid),
		.mtu = htobe32(local->mtu),
		.rkey = htobe32(local->rkey),
		.reads = htobe32(local->reads),
		.addr = htobe64(local->addr),
	};

	memcpy(w.gid, local->gid, sizeof(w.gid));
	if (ex_send(sock, &w, sizeof(w), timeout_s) || ex_recv(sock, &w, sizeof(w), timeout_s))
		return -1;
	*remote = (struct ex_peer){
		.qpn = be32toh(w.qpn),
		.companion_qpn = be32toh(w.companion_qpn),
		.psn = be32toh(w.psn),
		.lid = be32toh(w.lid),
		.mtu = be32toh(w.mtu),
		.rkey = be32toh(w.rkey),
		.reads = be32toh(w.reads),
		.addr = be64toh(w.addr),
	};
	memcpy(remote->gid, w.gid, sizeof(w.gid));
	return 0;
}
