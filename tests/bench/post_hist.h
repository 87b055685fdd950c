/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Histogram of durations: exact below 32, then 16 buckets per power of two, so that a
 * bucket is at most a sixteenth wide. Plain C, so that a unit test can run it on a CPU.
 */
#ifndef POST_HIST_H
#define POST_HIST_H

#include <stdint.h>

#include "post_verify.h"

#define POST_HIST_SUB_BITS 4
#define POST_HIST_SUB	   (1u << POST_HIST_SUB_BITS)
#define POST_HIST_BUCKETS  ((33 - POST_HIST_SUB_BITS) * POST_HIST_SUB)

POST_FN uint32_t post_hist_bucket(uint32_t v)
{
#ifdef __CUDA_ARCH__
	const uint32_t bits = 32 - (uint32_t)__clz((int)v);
#else
	const uint32_t bits = v ? 32 - (uint32_t)__builtin_clz(v) : 0;
#endif
	const uint32_t shift = bits > POST_HIST_SUB_BITS + 1 ? bits - POST_HIST_SUB_BITS - 1 : 0;

	return shift * POST_HIST_SUB + (v >> shift);
}

/* Largest value of a bucket. */
POST_FN uint32_t post_hist_top(uint32_t bucket)
{
	const uint32_t shift = bucket < 2 * POST_HIST_SUB ? 0 : bucket / POST_HIST_SUB - 1;
	const uint64_t first = bucket - shift * POST_HIST_SUB;

	return (uint32_t)(((first + 1) << shift) - 1);
}

/* Returns a value that at least `part` of all values do not exceed, at most a sixteenth
 * above the smallest such value. */
POST_FN uint32_t post_hist_percentile(const uint64_t count[POST_HIST_BUCKETS], double part)
{
	uint64_t all = 0, below = 0;
	uint32_t i;

	for (i = 0; i < POST_HIST_BUCKETS; i++)
		all += count[i];
	for (i = 0; i < POST_HIST_BUCKETS; i++) {
		below += count[i];
		if (below && (double)below >= part * (double)all)
			break;
	}
	return i < POST_HIST_BUCKETS ? post_hist_top(i) : 0;
}

#endif
