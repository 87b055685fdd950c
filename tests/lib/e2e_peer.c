/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The peer process of the end-to-end tests. It is the test's own executable, started
 * again through softnic-run, so that it is a separate host on the network. If the
 * environment has the peer's parameters (PEER_ENV), a constructor runs the peer and
 * exits before main(). The peer's memory is a memfd, which the test also maps in order
 * to compare it byte by byte.
 */
#include "e2e.h"
#include "exec_host.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PEER_ENV "E2E_PEER" /* value: descriptor of the socket, descriptor of the memfd, length */

struct hello {
	pid_t pid;
	union ibv_gid gid;
	uint32_t qpn, rkey;
	uint64_t addr;
};

struct destination {
	union ibv_gid gid;
	uint32_t qpn;
};

static void send_all(int fd, const void *buf, size_t len)
{
	E2E_REQUIRE(write(fd, buf, len) == (ssize_t)len);
}

static bool receive(int fd, void *buf, size_t len)
{
	return recv(fd, buf, len, MSG_WAITALL) == (ssize_t)len;
}

static void peer_main(int fd, int memfd, size_t len)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };
	struct e2e_buf buf;
	struct e2e_nic nic;
	struct e2e_qp qp;
	struct hello hello;
	struct destination to;
	char done = 1;
	void *mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);

	E2E_REQUIRE(mem != MAP_FAILED);
	e2e_open(&nic);
	e2e_qp_open(&nic, &qp, E2E_DB, 64);
	e2e_buf_use(&nic, &buf, mem, len, E2E_REMOTE);
	memset(&hello, 0, sizeof(hello));
	hello.pid = getpid();
	hello.gid = nic.gid;
	hello.qpn = qp.qpn;
	hello.rkey = buf.mr->rkey;
	hello.addr = (uintptr_t)mem;
	send_all(fd, &hello, sizeof(hello));
	if (receive(fd, &to, sizeof(to))) {
		E2E_REQUIRE(!e2e_connect(&nic, qp.hl->qp, &to.gid, to.qpn, path));
		send_all(fd, &done, 1);
	}
	while (recv(fd, &done, 1, 0) > 0) /* until the test closes its end */
		;
	e2e_qp_close(&qp);
	E2E_REQUIRE(!ibv_dereg_mr(buf.mr));
	e2e_close(&nic);
}

__attribute__((constructor)) static void peer_or_test(void)
{
	const char *order = getenv(PEER_ENV);
	int fd, memfd;
	size_t len;

	if (!order || sscanf(order, "%d %d %zu", &fd, &memfd, &len) != 3)
		return;
	unsetenv(PEER_ENV);
	alarm(100); /* bounds the peer's lifetime if the test hangs */
	peer_main(fd, memfd, len);
	exit(0);
}

void e2e_peer_start(struct e2e_peer *peer, size_t len)
{
	int memfd = memfd_create("e2e_peer", 0);
	struct hello hello;
	char order[64];
	int sv[2];

	E2E_REQUIRE(memfd >= 0 && !ftruncate(memfd, (off_t)len));
	E2E_REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	snprintf(order, sizeof(order), "%d %d %zu", sv[1], memfd, len);
	peer->child = fork();
	E2E_REQUIRE(peer->child >= 0);
	if (!peer->child) {
		close(sv[0]);
		setenv(PEER_ENV, order, 1);
		exec_host(NULL);
	}
	close(sv[1]);
	peer->fd = sv[0];
	peer->len = len;
	peer->mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	E2E_REQUIRE(peer->mem != MAP_FAILED);
	close(memfd);
	E2E_REQUIRE(receive(peer->fd, &hello, sizeof(hello)));
	peer->pid = hello.pid;
	peer->gid = hello.gid;
	peer->qpn = hello.qpn;
	peer->rkey = hello.rkey;
	peer->addr = hello.addr;
}

void e2e_peer_connect(struct e2e_peer *peer, const union ibv_gid *gid, uint32_t qpn)
{
	struct destination to;
	char done;

	memset(&to, 0, sizeof(to));
	to.gid = *gid;
	to.qpn = qpn;
	send_all(peer->fd, &to, sizeof(to));
	E2E_REQUIRE(receive(peer->fd, &done, 1));
}

void e2e_peer_kill(struct e2e_peer *peer)
{
	kill(peer->pid, SIGKILL);
}

void e2e_peer_end(struct e2e_peer *peer)
{
	int status;

	close(peer->fd);
	E2E_REQUIRE(waitpid(peer->child, &status, 0) == peer->child);
	munmap(peer->mem, peer->len);
}
