/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The environment of the software NIC in a fuzzer (see stage.h). Functions named
 * __wrap_* replace those of libc and of the NIC. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#include "stage.h"

#define START_NS 1000000000ull
#define PASS_NS	 1000u
#define ARRIVALS 32u

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg);
int __wrap_pthread_timedjoin_np(pthread_t t, void **ret, const struct timespec *until);
int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_bind(int fd, const struct sockaddr *at, socklen_t len);
int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags);
int __wrap_recvmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags, struct timespec *until);
void *__wrap_dlopen(const char *file, int mode);
void __wrap_sn_uar_list(struct sn_eng *e);
void __wrap_sn_wait_setup(struct sn_eng *e);
void __wrap_sn_wait(struct sn_eng *e, long ns, bool any);

static uint64_t clock_ns = START_NS;
static void *(*thread)(void *arg);
static void *thread_arg;
static unsigned passes_left;
static struct arrival {
	struct in6_addr from;
	size_t len;
	uint8_t bytes[SN_PKT_DATA];
} arrivals[ARRIVALS];
static unsigned first, count;

void fuzz_arena(void)
{
	void *want = (void *)(uintptr_t)FUZZ_ARENA;

	if (mmap(want, FUZZ_ARENA_LEN, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != want)
		abort();
}

/* ---- the NIC's thread and clock ---- */

void fuzz_begin(void)
{
	clock_ns = START_NS;
	first = count = 0;
}

void fuzz_sleep(uint64_t ns)
{
	clock_ns += ns;
}

void fuzz_passes(struct sn_dev *dev, unsigned n)
{
	passes_left = n;
	dev->eng->stop = n == 0;
	thread(thread_arg);
	dev->eng->stop = 0;
}

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg)
{
	(void)a;
	*t = pthread_self();
	thread = fn;
	thread_arg = arg;
	return 0;
}

int __wrap_pthread_timedjoin_np(pthread_t t, void **ret, const struct timespec *until)
{
	(void)t, (void)ret, (void)until;
	return 0;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	(void)id;
	ts->tv_sec = (time_t)(clock_ns / 1000000000);
	ts->tv_nsec = (long)(clock_ns % 1000000000);
	return 0;
}

void __wrap_sn_wait_setup(struct sn_eng *e)
{
	(void)e;
}

void __wrap_sn_wait(struct sn_eng *e, long ns, bool any)
{
	(void)ns, (void)any;
	clock_ns += PASS_NS;
	e->stop = --passes_left == 0;
}

/* Like the NIC's own function, but for the first 64 pages only: scanning 4096 would
 * take most of the time. */
void __wrap_sn_uar_list(struct sn_eng *e)
{
	unsigned i;

	e->nuars = 0;
	for (i = 0; i < 64; i++)
		if (e->dev->uars[i].used && e->dev->uars[i].page)
			e->uars[e->nuars++] = i;
}

/* No GPU driver can be loaded. */
void *__wrap_dlopen(const char *file, int mode)
{
	(void)file, (void)mode;
	return NULL;
}

/* ---- the network ---- */

void fuzz_deliver(const struct in6_addr *from, const void *bytes, size_t len)
{
	struct arrival *a = &arrivals[(first + count) % ARRIVALS];

	if (count == ARRIVALS || len > sizeof(a->bytes))
		return;
	a->from = *from;
	a->len = len;
	memcpy(a->bytes, bytes, len);
	count++;
}

int __wrap_bind(int fd, const struct sockaddr *at, socklen_t len)
{
	(void)fd, (void)at, (void)len;
	return 0;
}

/* Reads the packets as the kernel would, so that a sanitizer detects bad buffers. */
int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags)
{
	static volatile uint8_t sum;
	unsigned int i;
	size_t k;

	(void)fd, (void)flags, (void)sum;
	for (i = 0; i < n; i++)
		for (k = 0; k < m[i].msg_hdr.msg_iov->iov_len; k++)
			sum += ((const uint8_t *)m[i].msg_hdr.msg_iov->iov_base)[k];
	return (int)n;
}

static void arrive(struct mmsghdr *m, const struct arrival *a)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(0xc123) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
				   .sin6_port = htons(0xc123),
				   .sin6_addr = a->from };
	bool is_v4 = IN6_IS_ADDR_V4MAPPED(&a->from);

	memcpy(&v4.sin_addr, a->from.s6_addr + 12, 4);
	memcpy(m->msg_hdr.msg_name, is_v4 ? (void *)&v4 : (void *)&v6,
	       is_v4 ? sizeof(v4) : sizeof(v6));
	m->msg_hdr.msg_namelen = is_v4 ? sizeof(v4) : sizeof(v6);
	m->msg_hdr.msg_flags = a->len > m->msg_hdr.msg_iov->iov_len ? MSG_TRUNC : 0;
	m->msg_hdr.msg_controllen = 0;
	m->msg_len = (unsigned int)(m->msg_hdr.msg_flags ? m->msg_hdr.msg_iov->iov_len : a->len);
	memcpy(m->msg_hdr.msg_iov->iov_base, a->bytes, m->msg_len);
}

int __wrap_recvmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags, struct timespec *until)
{
	unsigned int i;

	(void)fd, (void)flags, (void)until;
	for (i = 0; i < n && count; i++, first = (first + 1) % ARRIVALS, count--)
		arrive(&m[i], &arrivals[first]);
	if (i)
		return (int)i;
	errno = EAGAIN;
	return -1;
}
