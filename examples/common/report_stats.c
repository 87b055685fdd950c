/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Statistics of the samples of a latency program. They are exact: no sample is rounded into a
 * histogram, and no memory is needed besides the samples.
 */
#include <math.h>
#include <string.h>

#include "report_parts.h"

#define HALF_BITS 16

/* Samples for each value of one half of a sample's 32 bits. */
static uint64_t count[1 << HALF_BITS];

/* Returns the slot of count[] that has the sample of this rank (0: the smallest), and stores the
 * rank of the sample among the samples of that slot. */
static uint32_t find_slot(uint64_t *rank)
{
	uint32_t slot = 0;

	while (*rank >= count[slot])
		*rank -= count[slot++];
	return slot;
}

/* The sample at index `rank` of the sorted samples: its upper half is found first, then its lower
 * half among the samples with that upper half. */
static uint32_t sample_of_rank(const uint32_t *samples, uint64_t num, uint64_t rank)
{
	uint32_t high;

	memset(count, 0, sizeof(count));
	for (uint64_t i = 0; i < num; i++)
		count[samples[i] >> HALF_BITS]++;
	high = find_slot(&rank);
	memset(count, 0, sizeof(count));
	for (uint64_t i = 0; i < num; i++)
		if (samples[i] >> HALF_BITS == high)
			count[samples[i] & ((1 << HALF_BITS) - 1)]++;
	return high << HALF_BITS | find_slot(&rank);
}

uint32_t ex_quantile(const uint32_t *samples, uint64_t num, uint32_t permille)
{
	uint64_t at_least = (num * permille + 999) / 1000; /* ceil(num * permille / 1000) */

	return sample_of_rank(samples, num, at_least ? at_least - 1 : 0);
}

void ex_stats_compute(struct ex_stats *stats, const uint32_t *samples, uint64_t num,
		      double ns_per_tick)
{
	double us = ns_per_tick / 1000;
	uint32_t min = UINT32_MAX, max = 0;
	uint64_t sum = 0;

	*stats = (struct ex_stats){ NAN, NAN, NAN, NAN, NAN, NAN };
	if (!num)
		return;
	for (uint64_t i = 0; i < num; i++) {
		min = samples[i] < min ? samples[i] : min;
		max = samples[i] > max ? samples[i] : max;
		sum += samples[i];
	}
	stats->min = min * us;
	stats->median = ex_quantile(samples, num, 500) * us;
	stats->average = (double)sum / (double)num * us;
	stats->p99 = ex_quantile(samples, num, 990) * us;
	stats->p999 = ex_quantile(samples, num, 999) * us;
	stats->max = max * us;
}
