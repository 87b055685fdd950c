/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Measures UDP over loopback between two processes without a NIC. The packets of the
 * software NIC take the same path. The sender limits the packets in flight, so that
 * socket buffers do not overflow; the receiver acknowledges after every ACK_EVERY
 * packets.
 */
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "bench.h"

#define BATCH	  64
#define ACK_EVERY 32u
#define HEADERS	  32u /* bytes of BTH, RETH and ICRC */
#define PACKETS	  60000u
#define TRIPS	  4000u
#define TRUESIZE  12288u /* upper bound of the kernel's buffer space for a packet of 4096 bytes */

static int open_at(const char *ip)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM, 0), size = 8 << 20;

	REQUIRE(fd >= 0 && inet_aton(ip, &at.sin_addr));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	REQUIRE(!bind(fd, (struct sockaddr *)&at, sizeof(at)));
	return fd;
}

static struct sockaddr_in where(int fd)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);

	REQUIRE(!getsockname(fd, (struct sockaddr *)&at, &len));
	return at;
}

static unsigned window(int fd)
{
	socklen_t len = sizeof(int);
	int size;

	REQUIRE(!getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &len));
	size /= TRUESIZE;
	return size > 256 ? 256 : size < 32 ? 32 : (unsigned)size;
}

static void messages(struct mmsghdr *m, struct iovec *iov, uint8_t *data, size_t len,
		     struct sockaddr_in *to)
{
	memset(m, 0, BATCH * sizeof(*m));
	for (int i = 0; i < BATCH; i++) {
		iov[i] = (struct iovec){ data + (size_t)i * len, len };
		m[i].msg_hdr = (struct msghdr){ .msg_name = to,
						.msg_iov = &iov[i],
						.msg_namelen = to ? sizeof(*to) : 0,
						.msg_iovlen = 1 };
	}
}

static void receive_all(int fd, struct sockaddr_in to, size_t len)
{
	uint8_t *data = malloc(BATCH * len);
	struct mmsghdr m[BATCH];
	struct iovec iov[BATCH];
	uint32_t got = 0, acked_until = 0;
	int n;

	messages(m, iov, data, len, NULL);
	while (got < PACKETS) {
		n = recvmmsg(fd, m, BATCH, MSG_DONTWAIT, NULL);
		if (n <= 0) {
			pause_if_crowded();
			continue;
		}
		got += (uint32_t)n;
		if (got - acked_until < ACK_EVERY && got < PACKETS)
			continue;
		acked_until = got;
		REQUIRE(sendto(fd, &got, 4, 0, (struct sockaddr *)&to, sizeof(to)) == 4);
	}
	free(data);
}

static double send_all(int fd, struct sockaddr_in to, size_t len)
{
	const unsigned limit = window(fd);
	uint8_t *data = calloc(BATCH, len);
	struct mmsghdr m[BATCH];
	struct iovec iov[BATCH];
	uint32_t sent = 0, acked = 0, room;
	double start = seconds();
	int n;

	messages(m, iov, data, len, &to);
	while (acked < PACKETS) {
		while (recv(fd, &acked, 4, MSG_DONTWAIT) == 4)
			;
		room = limit - (sent - acked);
		if (room > PACKETS - sent)
			room = PACKETS - sent;
		if (room > BATCH)
			room = BATCH;
		n = room ? sendmmsg(fd, m, room, MSG_DONTWAIT) : 0;
		sent += n > 0 ? (uint32_t)n : 0;
		if (n <= 0)
			pause_if_crowded();
	}
	start = PACKETS / (seconds() - start);
	free(data);
	return start;
}

static void end_child(pid_t pid)
{
	int status;

	REQUIRE(waitpid(pid, &status, 0) == pid && status == 0);
}

/* ---- one call for each packet ---- */

static void receive_each(int fd, struct sockaddr_in to, size_t len)
{
	uint8_t *data = malloc(len);
	uint32_t got = 0;

	while (got < PACKETS) {
		REQUIRE(recv(fd, data, len, 0) == (ssize_t)len);
		if (++got % ACK_EVERY == 0)
			REQUIRE(sendto(fd, &got, 4, 0, (struct sockaddr *)&to, sizeof(to)) == 4);
	}
	free(data);
}

static double send_each(int fd, struct sockaddr_in to, size_t len)
{
	const unsigned limit = window(fd);
	uint8_t *data = calloc(1, len);
	uint32_t sent = 0, acked = 0;
	double start = seconds();

	while (acked < PACKETS) {
		for (; sent < PACKETS && sent - acked < limit; sent++)
			REQUIRE(sendto(fd, data, len, 0, (struct sockaddr *)&to, sizeof(to)) ==
				(ssize_t)len);
		REQUIRE(recv(fd, &acked, 4, 0) == 4);
	}
	start = PACKETS / (seconds() - start);
	free(data);
	return start;
}

typedef void receiver(int fd, struct sockaddr_in to, size_t len);
typedef double sender(int fd, struct sockaddr_in to, size_t len);

static double rate_of(sender *send, receiver *receive, size_t len)
{
	int tx = open_at("127.0.0.1"), rx = open_at("127.0.0.2");
	struct sockaddr_in to = where(rx), back = where(tx);
	pid_t pid = fork();
	double rate;

	REQUIRE(pid >= 0);
	if (!pid) {
		alarm(LIMIT_S);
		receive(rx, back, len);
		_exit(0);
	}
	rate = send(tx, to, len);
	end_child(pid);
	close(tx);
	close(rx);
	return rate;
}

double udp_rate(size_t payload)
{
	return rate_of(send_all, receive_all, payload + HEADERS);
}

double udp_loop_rate(size_t len)
{
	return rate_of(send_each, receive_each, len);
}

static void bounce(int fd, struct sockaddr_in to, unsigned first)
{
	uint8_t data[8 + HEADERS] = { 0 };
	unsigned i;

	for (i = 0; i < TRIPS; i++) {
		if (first)
			REQUIRE(sendto(fd, data, sizeof(data), 0, (struct sockaddr *)&to,
				       sizeof(to)) > 0);
		while (recv(fd, data, sizeof(data), MSG_DONTWAIT) <= 0)
			pause_if_crowded();
		if (!first)
			REQUIRE(sendto(fd, data, sizeof(data), 0, (struct sockaddr *)&to,
				       sizeof(to)) > 0);
	}
}

double udp_round_trip(void)
{
	int a = open_at("127.0.0.1"), b = open_at("127.0.0.2");
	struct sockaddr_in to = where(b), back = where(a);
	pid_t pid = fork();
	double start;

	REQUIRE(pid >= 0);
	if (!pid) {
		alarm(LIMIT_S);
		bounce(b, back, 0);
		_exit(0);
	}
	start = seconds();
	bounce(a, to, 1);
	start = (seconds() - start) / TRIPS * 1e6;
	end_child(pid);
	close(a);
	close(b);
	return start;
}
