/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A stand-in for libgdrapi. GPU memory of the stand-in CUDA driver already has a CPU
 * address; gdr_map() creates a second mapping of the same pages, so that a test
 * notices if the library confuses the mapping with the GPU address. STANDIN_GDR_FAIL=n
 * makes the nth call of gdr_open(), gdr_pin_buffer() and gdr_map() fail. Compiled with
 * GDR_OLD, the stand-in lacks gdr_unmap(), as an old version might.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct {
	unsigned long h;
} handle_t;

static int pins, maps;
static long calls, fail_at = -1;

int standin_gdr_live(void);
void standin_gdr_fail_at(long n);
int standin_gdr_failed(void);

static int planned(void)
{
	const char *env = getenv("STANDIN_GDR_FAIL");

	if (fail_at < 0)
		fail_at = env ? atol(env) : 0;
	return ++calls == fail_at;
}

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

EXPORT void *gdr_open(void)
{
	return planned() ? NULL : &pins;
}

EXPORT int gdr_pin_buffer(void *gdr, unsigned long addr, size_t size, uint64_t token,
			  uint32_t va_space, handle_t *handle)
{
	(void)gdr;
	(void)token;
	(void)va_space;
	if (planned() || (addr | size) & 0xffff)
		return 22;
	handle->h = addr;
	pins++;
	return 0;
}

EXPORT int gdr_unpin_buffer(void *gdr, handle_t handle)
{
	(void)gdr;
	(void)handle;
	pins--;
	return 0;
}

EXPORT int gdr_map(void *gdr, handle_t handle, void **va, size_t size)
{
	void *second;

	(void)gdr;
	if (planned())
		return 12;
	/* mremap() with the old length 0 creates a second mapping */
	second = mremap((void *)handle.h, 0, size, MREMAP_MAYMOVE);
	if (second == MAP_FAILED)
		return 12;
	*va = second;
	maps++;
	return 0;
}

#ifndef GDR_OLD
EXPORT int gdr_unmap(void *gdr, handle_t handle, void *va, size_t size)
{
	(void)gdr;
	(void)handle;
	maps--;
	return munmap(va, size);
}
#endif

EXPORT int standin_gdr_live(void)
{
	return pins + maps;
}

/* Makes the nth counted call from now fail; n = 0: no call fails. */
EXPORT void standin_gdr_fail_at(long n)
{
	fail_at = n ? calls + n : 0;
}

/* Returns whether the selected call has failed. */
EXPORT int standin_gdr_failed(void)
{
	return fail_at > 0 && calls >= fail_at;
}
