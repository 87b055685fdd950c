/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The TCP connection of server and client: IPv4 and IPv6, all addresses of a name. Every wait,
 * connect() included, ends at a time limit and on Ctrl-C. message.c defines what is sent. Also the
 * signals of the process.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "exchange.h"

#define MAPPED	   "::ffff:" /* an IPv4 address as an IPv6 address */
#define SLICE_MS   100	     /* interval at which waits check for signals and the time limit */
#define ATTEMPT_MS 3000	     /* time of one address to answer, before the next one is tried */

static volatile sig_atomic_t signals;
static int patience = 1; /* number of signals that end a wait */

static void on_signal(int signum)
{
	(void)signum;
	signals = signals + 1;
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
	return signals > 0;
}

bool ex_waits_end(void)
{
	return signals >= patience;
}

void ex_set_patience(int num_signals)
{
	patience = num_signals;
}

int64_t ex_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Waits until one of events is possible on fd. Returns 0, or -1 with errno ETIMEDOUT, EINTR
 * (Ctrl-C) or that of poll(). */
static int wait_ready(int fd, short events, int64_t deadline)
{
	struct pollfd pfd = { .fd = fd, .events = events };

	for (;;) {
		int n = poll(&pfd, 1, 0);
		int64_t left = deadline - ex_now_ms();

		if (!n && left > 0 && !ex_waits_end())
			n = poll(&pfd, 1, left < SLICE_MS ? (int)left : SLICE_MS);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -1;
		errno = ex_waits_end() ? EINTR : ETIMEDOUT;
		if (ex_waits_end() || left <= 0)
			return -1;
	}
}

/* Prints why a wait for the peer ended. */
static int wait_failed(const struct ex_conn *c, const char *what)
{
	if (errno == EINTR)
		return ex_error("interrupted while waiting %s", what);
	if (errno == ETIMEDOUT)
		return ex_error("no answer of the %s at %s within %u s (-w): timed out while "
				"waiting %s",
				c->peer, c->where, c->timeout_s, what);
	return ex_error("%s at %s: %s", c->peer, c->where, strerror(errno));
}

/* Each message is sent at once. Otherwise those that TCP keeps back are lost if this program ends
 * while it has not read all that the peer sent: close() then resets the connection. */
static void send_at_once(int fd)
{
	const int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/* ---- server ---- */

/* Returns a socket that listens on all addresses of IPv6 and IPv4, or of IPv4 only if the machine
 * has no IPv6. */
static int listen_on(uint16_t port)
{
	const struct sockaddr_in6 any6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	const struct sockaddr_in any4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	int on = 1, off = 0, fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool six = fd >= 0;

	if (!six)
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return ex_error("socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (six)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, six ? (const struct sockaddr *)&any6 : (const struct sockaddr *)&any4,
		 six ? sizeof(any6) : sizeof(any4)) ||
	    listen(fd, 1)) {
		ex_error("cannot listen on TCP port %u: %s (another server? select a port with -P)",
			 port, strerror(errno));
		close(fd);
		return -1;
	}
	return fd;
}

static void name_peer(struct ex_conn *c, const struct sockaddr *addr, socklen_t len)
{
	char host[NI_MAXHOST], port[NI_MAXSERV];

	if (getnameinfo(addr, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(c->where, sizeof(c->where), "unknown address");
	else
		snprintf(c->where, sizeof(c->where), "%.80s, TCP port %.8s",
			 host + (strncmp(host, MAPPED, strlen(MAPPED)) ? 0 : strlen(MAPPED)), port);
}

int ex_accept(struct ex_conn *c, const struct ex_options *opt)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	int listener = listen_on((uint16_t)opt->tcp_port);

	*c = (struct ex_conn){ .sock = -1, .peer = "client", .timeout_s = opt->timeout_s };
	if (listener < 0)
		return -1;
	printf("Waiting for a client on TCP port %u\n", opt->tcp_port);
	fflush(stdout);
	if (wait_ready(listener, POLLIN, ex_now_ms() + opt->timeout_s * 1000ll)) {
		if (errno == ETIMEDOUT)
			ex_error("timed out while waiting for a client: none within %u s (-w)",
				 opt->timeout_s);
		else
			wait_failed(c, "for a client");
	} else {
		c->sock = accept4(listener, (struct sockaddr *)&addr, &len, SOCK_CLOEXEC);
		if (c->sock < 0)
			ex_error("accept: %s", strerror(errno));
		else
			name_peer(c, (struct sockaddr *)&addr, len);
	}
	if (c->sock >= 0)
		send_at_once(c->sock);
	close(listener);
	return c->sock < 0 ? -1 : 0;
}

/* ---- client ---- */

/* Returns a connected socket, or -1 with errno. */
static int connect_once(const struct addrinfo *ai, int64_t deadline)
{
	int error = 0, fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t len = sizeof(error);

	if (fd < 0)
		return -1;
	if (!connect(fd, ai->ai_addr, ai->ai_addrlen))
		return fd;
	error = errno;
	if (error == EINPROGRESS) {
		if (wait_ready(fd, POLLOUT, deadline))
			error = errno;
		else
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
	}
	if (!error)
		return fd;
	close(fd);
	errno = error;
	return -1;
}

/* Tries all addresses until one accepts, again and again, because the server may start later. */
static int connect_any(struct ex_conn *c, const struct addrinfo *list, int64_t deadline)
{
	const struct timespec pause = { .tv_nsec = SLICE_MS * 1000000 };
	int error = 0;

	do {
		for (const struct addrinfo *ai = list; ai && c->sock < 0; ai = ai->ai_next) {
			int64_t attempt = ex_now_ms() + ATTEMPT_MS;

			c->sock = connect_once(ai, attempt < deadline ? attempt : deadline);
			if (c->sock < 0)
				error = errno;
		}
		if (c->sock >= 0)
			return 0;
		nanosleep(&pause, NULL);
	} while (!ex_waits_end() && ex_now_ms() < deadline);
	errno = error;
	return -1;
}

int ex_connect(struct ex_conn *c, const struct ex_options *opt)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;
	char port[8];
	int rc;

	*c = (struct ex_conn){ .sock = -1, .peer = "server", .timeout_s = opt->timeout_s };
	snprintf(port, sizeof(port), "%u", opt->tcp_port);
	snprintf(c->where, sizeof(c->where), "%.80s, TCP port %s", opt->server, port);
	rc = getaddrinfo(opt->server, port, &hints, &list);
	if (rc)
		return ex_error("cannot resolve server '%s': %s", opt->server, gai_strerror(rc));
	rc = connect_any(c, list, ex_now_ms() + opt->timeout_s * 1000ll);
	freeaddrinfo(list);
	if (rc && ex_waits_end())
		return ex_error("interrupted while connecting to the server at %s", c->where);
	if (rc)
		return ex_error("cannot connect to the server at %s within %u s (-w): %s", c->where,
				opt->timeout_s, strerror(errno));
	send_at_once(c->sock);
	return 0;
}

void ex_disconnect(struct ex_conn *c)
{
	if (c->sock >= 0)
		close(c->sock);
	c->sock = -1;
}

/* ---- bytes ---- */

int ex_send(struct ex_conn *c, const void *buf, size_t len)
{
	int64_t deadline = ex_now_ms() + c->timeout_s * 1000ll;
	const char *p = buf;

	while (len) {
		ssize_t n;

		if (wait_ready(c->sock, POLLOUT, deadline))
			return wait_failed(c, "to send");
		n = send(c->sock, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return EX_GONE;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return ex_error("cannot send to the %s at %s: %s", c->peer, c->where,
					strerror(errno));
		if (n > 0)
			p += n, len -= (size_t)n;
	}
	return 0;
}

ssize_t ex_recv_some(struct ex_conn *c, void *buf, size_t len, int64_t deadline, const char *what)
{
	for (;;) {
		ssize_t n;

		if (wait_ready(c->sock, POLLIN, deadline))
			return deadline ? wait_failed(c, what) : EX_NOTHING;
		n = recv(c->sock, buf, len, MSG_DONTWAIT);
		if (n >= 0)
			return n;
		if (errno == ECONNRESET)
			return 0;
		if (errno != EAGAIN && errno != EINTR)
			return ex_error("cannot receive from the %s at %s: %s", c->peer, c->where,
					strerror(errno));
	}
}

int ex_recv(struct ex_conn *c, void *buf, size_t len, const char *what)
{
	int64_t deadline = ex_now_ms() + c->timeout_s * 1000ll;
	char *p = buf;

	while (len) {
		ssize_t n = ex_recv_some(c, p, len, deadline, what);

		if (n < 0)
			return -1;
		if (!n)
			return ex_vanished(c);
		p += n, len -= (size_t)n;
	}
	return 0;
}

int ex_vanished(const struct ex_conn *c)
{
	return ex_error("the %s at %s closed the connection: it ended or was killed", c->peer,
			c->where);
}
