/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The environment of the software NIC in a fuzzer (see stage.h). Functions named
 * __wrap_* replace those of libc and of the NIC. */
#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#include "../softnic/eth.h"
#include "stage.h"

#define START_NS     1000000000ull
#define PASS_NS	     1000u
#define ARRIVALS     32u
#define DATAGRAM     10240u
#define MESSAGE	     65507u /* bytes of one UDP message */
#define SEGMENTS_MAX 64u    /* datagrams of one message (Linux 6.1, include/linux/udp.h) */

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
struct arrival {
	struct in6_addr from;
	size_t len;
	uint8_t bytes[DATAGRAM];
};
/* Datagrams that wait for one port of the NIC. */
static struct arrivals {
	struct arrival of[ARRIVALS];
	unsigned first, count;
} roce, vxlan;
void (*fuzz_vxlan_sent)(const struct sockaddr *to, const uint8_t *bytes, size_t len);

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
	roce.count = vxlan.count = 0;
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

static bool deliver(struct arrivals *to, const struct in6_addr *from, const void *bytes, size_t len)
{
	struct arrival *a = &to->of[(to->first + to->count) % ARRIVALS];

	if (to->count == ARRIVALS || len > sizeof(a->bytes))
		return false;
	a->from = *from;
	a->len = len;
	memcpy(a->bytes, bytes, len);
	to->count++;
	return true;
}

void fuzz_deliver(const struct in6_addr *from, const void *bytes, size_t len)
{
	if (len <= SN_PKT_DATA)
		deliver(&roce, from, bytes, len);
}

bool fuzz_deliver_vxlan(const struct in6_addr *from, const void *bytes, size_t len)
{
	return deliver(&vxlan, from, bytes, len);
}

unsigned fuzz_vxlan_left(void)
{
	return vxlan.count;
}

static bool is_vxlan(int fd)
{
	return sn_dev && sn_dev->eng && fd == sn_eth_fd(sn_dev->eng);
}

int __wrap_bind(int fd, const struct sockaddr *at, socklen_t len)
{
	(void)fd, (void)at, (void)len;
	return 0;
}

/* Bytes of each datagram of a message: those of UDP_SEGMENT, or len without it. */
static size_t segment_of(const struct msghdr *h, size_t len)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(h);
	uint16_t size;

	if (!c)
		return len;
	if (c->cmsg_level != SOL_UDP || c->cmsg_type != UDP_SEGMENT ||
	    c->cmsg_len != CMSG_LEN(sizeof(size)))
		abort();
	memcpy(&size, CMSG_DATA(c), sizeof(size));
	if (!size || (len + size - 1) / size > SEGMENTS_MAX)
		abort();
	return size;
}

/* Reads the packets as the kernel would, so that a sanitizer detects bad buffers. */
int __wrap_sendmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags)
{
	static uint8_t bytes[MESSAGE];
	size_t k, len, at, size;
	unsigned int i;

	(void)flags;
	for (i = 0; i < n; i++) {
		const struct msghdr *h = &m[i].msg_hdr;

		for (k = len = 0; k < h->msg_iovlen; len += h->msg_iov[k++].iov_len) {
			if (h->msg_iov[k].iov_len > sizeof(bytes) - len)
				abort();
			memcpy(bytes + len, h->msg_iov[k].iov_base, h->msg_iov[k].iov_len);
		}
		if (!fuzz_vxlan_sent || !is_vxlan(fd))
			continue;
		size = segment_of(h, len);
		for (at = 0; at < len; at += size)
			fuzz_vxlan_sent(h->msg_name, bytes + at, len - at < size ? len - at : size);
	}
	return (int)n;
}

/* Copies the datagram to the buffers. Returns the number of bytes that they hold of it. */
static size_t scatter(const struct msghdr *h, const struct arrival *a)
{
	size_t done = 0, n, i;

	for (i = 0; i < h->msg_iovlen && done < a->len; i++, done += n) {
		n = a->len - done < h->msg_iov[i].iov_len ? a->len - done : h->msg_iov[i].iov_len;
		memcpy(h->msg_iov[i].iov_base, a->bytes + done, n);
	}
	return done;
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
	m->msg_hdr.msg_controllen = 0;
	m->msg_len = (unsigned int)scatter(&m->msg_hdr, a);
	m->msg_hdr.msg_flags = a->len > m->msg_len ? MSG_TRUNC : 0;
}

int __wrap_recvmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags, struct timespec *until)
{
	struct arrivals *from = is_vxlan(fd) ? &vxlan : &roce;
	unsigned int i;

	(void)flags, (void)until;
	for (i = 0; i < n && from->count; i++, from->count--) {
		arrive(&m[i], &from->of[from->first]);
		from->first = (from->first + 1) % ARRIVALS;
	}
	if (i)
		return (int)i;
	errno = EAGAIN;
	return -1;
}
