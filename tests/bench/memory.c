/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Replaces malloc and mmap for the whole process and counts the bytes that it holds. Calls
 * before memory_begin() and calls by the software NIC or libcuda are not counted.
 */
#include "memory.h"

#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OTHERS_MAX 4
#define HERE	   __builtin_return_address(0)

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);

static struct range {
	uintptr_t low, high;
} others[OTHERS_MAX];
static int num_others;
static bool counting;
static size_t held; /* may wrap below 0: blocks from before memory_begin() may be freed */

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct range *r = &others[num_others];
	int i;

	(void)size;
	(void)arg;
	if (num_others == OTHERS_MAX ||
	    !(strstr(info->dlpi_name, "libsoftnic") || strstr(info->dlpi_name, "libcuda")))
		return 0;
	r->low = UINTPTR_MAX;
	for (i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		r->low = low < r->low ? low : r->low;
		r->high = low + info->dlpi_phdr[i].p_memsz;
	}
	num_others++;
	return 0;
}

void memory_begin(void)
{
	dl_iterate_phdr(look_at, NULL);
	counting = true;
}

size_t memory_held(void)
{
	return __atomic_load_n(&held, __ATOMIC_RELAXED);
}

static void add(size_t by, const void *from)
{
	int i;

	if (!counting)
		return;
	for (i = 0; i < num_others; i++)
		if ((uintptr_t)from >= others[i].low && (uintptr_t)from < others[i].high)
			return;
	__atomic_fetch_add(&held, by, __ATOMIC_RELAXED);
}

static void *got(void *p, const void *from)
{
	if (p)
		add(malloc_usable_size(p), from);
	return p;
}

void *malloc(size_t size)
{
	return got(__libc_malloc(size), HERE);
}

void *calloc(size_t n, size_t size)
{
	return got(__libc_calloc(n, size), HERE);
}

void *realloc(void *p, size_t size)
{
	size_t before = p ? malloc_usable_size(p) : 0;
	void *q = __libc_realloc(p, size);

	if (q || !size)
		add(-before, HERE);
	return got(q, HERE);
}

void free(void *p)
{
	if (p)
		add(-malloc_usable_size(p), HERE);
	__libc_free(p);
}

void *memalign(size_t align, size_t size)
{
	return got(__libc_memalign(align, size), HERE);
}

void *aligned_alloc(size_t align, size_t size)
{
	return got(__libc_memalign(align, size), HERE);
}

int posix_memalign(void **p, size_t align, size_t size)
{
	void *mem = got(__libc_memalign(align, size), HERE);

	if (mem)
		*p = mem;
	return mem ? 0 : ENOMEM;
}

static size_t pages(size_t len)
{
	return (len + 4095) & ~(size_t)4095;
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	void *p = (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, off);

	if (p != MAP_FAILED && flags & MAP_ANONYMOUS)
		add(pages(len), HERE);
	return p;
}

void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off64_t off)
	__attribute__((alias("mmap")));

int munmap(void *addr, size_t len)
{
	int ret = (int)syscall(SYS_munmap, addr, len);

	if (!ret)
		add(-pages(len), HERE);
	return ret;
}
