/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Records the destinations and lengths of the last copies to GPUs by the stand-in CUDA
 * driver, so that tests can check what the library writes. */
#ifndef CUDA_RECORD_H
#define CUDA_RECORD_H

#include <stddef.h>

#define RECORDED 256

static struct {
	unsigned long long dst;
	size_t len;
} recorded[RECORDED];
static long writes;

/* The caller must hold the lock. Release: the record must be visible before the new number
 * of writes. Pairs with the acquire in standin_cuda_writes(). */
static void record(unsigned long long dst, size_t len)
{
	recorded[writes % RECORDED].dst = dst;
	recorded[writes % RECORDED].len = len;
	__atomic_store_n(&writes, writes + 1, __ATOMIC_RELEASE);
}

__attribute__((visibility("default"))) long standin_cuda_writes(void)
{
	return __atomic_load_n(&writes, __ATOMIC_ACQUIRE);
}

/* Returns the length of write n since the start (n from 0) and stores its destination in
 * *dst. The write must be one of the last RECORDED. */
__attribute__((visibility("default"))) size_t standin_cuda_write(long n, unsigned long long *dst)
{
	*dst = recorded[n % RECORDED].dst;
	return recorded[n % RECORDED].len;
}

#endif
