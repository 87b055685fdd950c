/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Finds accesses behind the end of a block, and to a freed block, without a sanitizer. When
 * included in a test executable, it replaces calloc() and free() for the whole process. Blocks
 * that the calling thread allocates after guardalloc_begin() end at an inaccessible page; a freed
 * one becomes inaccessible. Blocks that do not fit into a page are allocated as usual. Sanitizer
 * builds (GDK_SAN) replace nothing: AddressSanitizer finds such accesses itself.
 */
#ifndef GUARDALLOC_H
#define GUARDALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifdef GDK_SAN
#define GUARDALLOC_WORKS false
static inline void guardalloc_begin(void)
{
}
static inline size_t guardalloc_end(void)
{
	return 0;
}
#else
#define GUARDALLOC_WORKS  true
#define GUARDALLOC_BLOCKS 512u
#define GUARDALLOC_PAGE	  ((size_t)65536) /* a multiple of every page size */

void *__libc_calloc(size_t n, size_t size);
void __libc_free(void *p);

/* Pairs of pages: a block, then an inaccessible page. A pair is used once. */
static uint8_t *guardalloc_pages;
static size_t guardalloc_used;
static _Thread_local bool guardalloc_on;

static inline void guardalloc_begin(void)
{
	void *p = guardalloc_pages;

	if (!p)
		p = mmap(NULL, 2 * GUARDALLOC_BLOCKS * GUARDALLOC_PAGE, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		abort();
	guardalloc_pages = p;
	guardalloc_on = true;
}

/* Returns how many blocks the process has allocated before an inaccessible page. */
static inline size_t guardalloc_end(void)
{
	guardalloc_on = false;
	return guardalloc_used;
}

void *calloc(size_t n, size_t size)
{
	uint8_t *page;

	if (!guardalloc_on || !n || size > GUARDALLOC_PAGE / n)
		return __libc_calloc(n, size);
	if (guardalloc_used == GUARDALLOC_BLOCKS)
		abort();
	page = guardalloc_pages + 2 * guardalloc_used++ * GUARDALLOC_PAGE;
	if (mprotect(page, GUARDALLOC_PAGE, PROT_READ | PROT_WRITE))
		return NULL;
	return page + GUARDALLOC_PAGE - n * size;
}

void free(void *p)
{
	const size_t at = (size_t)((uintptr_t)p - (uintptr_t)guardalloc_pages);

	if (!guardalloc_pages || at >= 2 * GUARDALLOC_BLOCKS * GUARDALLOC_PAGE)
		__libc_free(p);
	else if (mprotect(guardalloc_pages + at / GUARDALLOC_PAGE * GUARDALLOC_PAGE,
			  GUARDALLOC_PAGE, PROT_NONE))
		abort();
}
#endif

#endif
