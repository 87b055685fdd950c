/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Makes allocations fail on demand. When included in a test executable, it replaces
 * malloc and its relatives, mmap, pthread_create and fcntl for the whole process. Only
 * calls on the thread that armed the fault are counted and fail, and only calls from
 * the executable's own code, to which the archives belong, or from rdma-core's
 * libraries (failalloc_arm_rdma()). failalloc_live() counts the blocks and mappings
 * that the executable's code holds. Sanitizer builds (GDK_SAN) replace nothing: the
 * sanitizer owns malloc, and the software NIC, whose thread also allocates, is part of
 * the executable.
 */
#ifndef FAILALLOC_H
#define FAILALLOC_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#ifdef GDK_SAN
#define FAILALLOC_WORKS false
static inline void failalloc_stay(void)
{
}
static inline void failalloc_arm(uint32_t nth)
{
	(void)nth;
}
static inline void failalloc_arm_rdma(uint32_t nth)
{
	(void)nth;
}
static inline bool failalloc_disarm(void)
{
	return false;
}
static inline size_t failalloc_live(void)
{
	return 0;
}
#else
#define FAILALLOC_WORKS true

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);

extern const char __executable_start[], etext[];

static _Thread_local uint32_t failalloc_left; /* 1: the next counted call fails; 0: not armed */
static _Thread_local bool failalloc_hit;
static _Thread_local bool failalloc_rdma; /* fail calls of rdma-core's libraries instead */
static bool failalloc_stays;

static inline bool failalloc_is_ours(const void *from)
{
	return (const char *)from >= __executable_start && (const char *)from < etext;
}

static inline bool failalloc_is_rdma(const void *from)
{
	Dl_info in;

	return dladdr(from, &in) && in.dli_fname &&
	       (strstr(in.dli_fname, "libmlx5") || strstr(in.dli_fname, "libibverbs"));
}

/* Returns whether the current call fails. from: the return address of the call. */
static inline bool failalloc_now(const void *from)
{
	if (!failalloc_left ||
	    !(failalloc_rdma ? failalloc_is_rdma(from) : failalloc_is_ours(from)))
		return false;
	if (failalloc_left > 1 && failalloc_left--)
		return false;
	failalloc_left = failalloc_stays;
	failalloc_hit = true;
	errno = ENOMEM;
	return true;
}

/* Makes the nth allocation from now fail. Later ones succeed, except after failalloc_stay(). */
static inline void failalloc_arm(uint32_t nth)
{
	failalloc_hit = false;
	failalloc_rdma = false;
	failalloc_left = nth;
}

/* Makes the nth allocation of libibverbs or libmlx5 fail, which these libraries report
 * as an error. */
static inline void failalloc_arm_rdma(uint32_t nth)
{
	failalloc_arm(nth);
	failalloc_rdma = true;
}

/* From now on, all allocations after the armed one fail too, until failalloc_disarm(). */
static inline void failalloc_stay(void)
{
	failalloc_stays = true;
}

/* Disarms. Returns whether an allocation failed. */
static inline bool failalloc_disarm(void)
{
	failalloc_left = 0;
	return failalloc_hit;
}

#define FAILALLOC_HERE	__builtin_return_address(0)

/* Set of the blocks that the executable's code allocated and has not freed: a hash
 * table of addresses with open addressing. Value 0: never used; 1: freed. */
#define FAILALLOC_SLOTS 65536u
static uintptr_t failalloc_set[FAILALLOC_SLOTS];
static size_t failalloc_blocks;
static volatile char failalloc_lock;

static inline size_t failalloc_live(void)
{
	return __atomic_load_n(&failalloc_blocks, __ATOMIC_RELAXED);
}

static inline void failalloc_note(const void *p, bool add)
{
	size_t i = ((uintptr_t)p >> 4) * 0x9e3779b1u % FAILALLOC_SLOTS;
	uintptr_t key = (uintptr_t)p;

	while (__atomic_test_and_set(&failalloc_lock, __ATOMIC_ACQUIRE))
		;
	for (size_t n = 0; n < FAILALLOC_SLOTS; n++, i = (i + 1) % FAILALLOC_SLOTS) {
		if (add && failalloc_set[i] <= 1) {
			failalloc_set[i] = key;
			failalloc_blocks++;
			break;
		}
		if (!add && !failalloc_set[i])
			break;
		if (!add && failalloc_set[i] == key) {
			failalloc_set[i] = 1;
			failalloc_blocks--;
			break;
		}
	}
	__atomic_clear(&failalloc_lock, __ATOMIC_RELEASE);
}

static inline void *failalloc_got(void *p, const void *from)
{
	if (p && failalloc_is_ours(from))
		failalloc_note(p, true);
	return p;
}

void *malloc(size_t size)
{
	if (failalloc_now(FAILALLOC_HERE))
		return NULL;
	return failalloc_got(__libc_malloc(size), FAILALLOC_HERE);
}

void *calloc(size_t n, size_t size)
{
	if (failalloc_now(FAILALLOC_HERE))
		return NULL;
	return failalloc_got(__libc_calloc(n, size), FAILALLOC_HERE);
}

void *realloc(void *p, size_t size)
{
	void *q;

	if (failalloc_now(FAILALLOC_HERE))
		return NULL;
	q = __libc_realloc(p, size);
	if (q || !size)
		failalloc_note(p, false);
	return failalloc_got(q, FAILALLOC_HERE);
}

void free(void *p)
{
	if (p)
		failalloc_note(p, false);
	__libc_free(p);
}

void *memalign(size_t align, size_t size)
{
	if (failalloc_now(FAILALLOC_HERE))
		return NULL;
	return failalloc_got(__libc_memalign(align, size), FAILALLOC_HERE);
}

void *aligned_alloc(size_t align, size_t size)
{
	if (failalloc_now(FAILALLOC_HERE))
		return NULL;
	return failalloc_got(__libc_memalign(align, size), FAILALLOC_HERE);
}

int posix_memalign(void **p, size_t align, size_t size)
{
	void *mem = NULL;

	if (!failalloc_now(FAILALLOC_HERE))
		mem = failalloc_got(__libc_memalign(align, size), FAILALLOC_HERE);
	if (!mem)
		return ENOMEM;
	*p = mem;
	return 0;
}

char *strdup(const char *s)
{
	size_t n = strlen(s) + 1;
	char *p;

	if (failalloc_now(FAILALLOC_HERE))
		return NULL;
	p = failalloc_got(__libc_malloc(n), FAILALLOC_HERE);
	return p ? memcpy(p, s, n) : NULL;
}

/* Looks up the real function at the first call. */
#define FAILALLOC_NEXT(name) \
	do { \
		if (!real) \
			*(void **)&real = dlsym(RTLD_NEXT, #name); \
	} while (0)

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t off)
{
	static void *(*real)(void *at, size_t len, int prot, int flags, int fd, off_t off);
	void *p;

	if (failalloc_now(FAILALLOC_HERE))
		return MAP_FAILED;
	FAILALLOC_NEXT(mmap);
	p = real(at, len, prot, flags, fd, off);
	return p == MAP_FAILED ? p : failalloc_got(p, FAILALLOC_HERE);
}

int munmap(void *p, size_t len)
{
	static int (*real)(void *p, size_t len);

	FAILALLOC_NEXT(munmap);
	failalloc_note(p, false);
	return real(p, len);
}

int fcntl(int fd, int cmd, ...)
{
	static int (*real)(int fd, int cmd, ...);
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *); /* an int argument is passed in the same register */
	va_end(args);
	if (failalloc_now(FAILALLOC_HERE))
		return -1;
	FAILALLOC_NEXT(fcntl);
	return real(fd, cmd, arg);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *arg),
		   void *arg)
{
	static int (*real)(pthread_t * thread, const pthread_attr_t *attr, void *(*main)(void *),
			   void *arg);

	if (failalloc_now(FAILALLOC_HERE))
		return EAGAIN;
	FAILALLOC_NEXT(pthread_create);
	return real(thread, attr, main, arg);
}

#endif
#endif
