/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The statistics of the examples' reports, against the definition of a quantile. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../../examples/common/report_stats.c"

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The definition, word for word: the smallest sample for which at least permille / 1000 of all
 * samples are less or equal. */
static uint32_t defined_quantile(const uint32_t *sorted, uint64_t num, uint32_t permille)
{
	for (uint64_t i = 0; i < num; i++) {
		uint64_t below = 0;

		while (below < num && sorted[below] <= sorted[i])
			below++;
		if (below * 1000 >= num * permille)
			return sorted[i];
	}
	return sorted[num - 1];
}

static uint32_t random_sample(unsigned int kind)
{
	uint32_t r = (uint32_t)mrand48();

	switch (kind) {
	case 0: /* all halves differ */
		return r;
	case 1: /* the same upper half */
		return 0x30000 | (r & 0xff);
	case 2: /* the same lower half */
		return r & 0x30000;
	default: /* the limits */
		return r & 1 ? UINT32_MAX : 0;
	}
}

Test(report_stats, quantiles_agree_with_the_definition)
{
	static const uint32_t permilles[] = { 0, 1, 333, 500, 501, 990, 999, 1000 };
	uint32_t samples[2100], sorted[2100];

	srand48(1);
	for (unsigned int num = 1; num <= 2100; num += num < 40 ? 1 : 97)
		for (unsigned int kind = 0; kind < 4; kind++) {
			for (unsigned int i = 0; i < num; i++)
				samples[i] = random_sample(kind);
			memcpy(sorted, samples, sizeof(sorted));
			qsort(sorted, num, sizeof(sorted[0]), compare);
			for (size_t p = 0; p < sizeof(permilles) / sizeof(permilles[0]); p++)
				cr_assert_eq(ex_quantile(samples, num, permilles[p]),
					     defined_quantile(sorted, num, permilles[p]),
					     "%u samples of kind %u, %u permille", num, kind,
					     permilles[p]);
		}
}

Test(report_stats, statistics_are_in_microseconds)
{
	uint32_t samples[1000];
	struct ex_stats s;

	for (uint32_t i = 0; i < 1000; i++)
		samples[i] = 1000 * (1000 - i); /* 1000 to 1000000 ticks */
	ex_stats_compute(&s, samples, 1000, 0.5);
	cr_assert_float_eq(s.min, 0.5, 1e-9);
	cr_assert_float_eq(s.median, 250, 1e-9);
	cr_assert_float_eq(s.average, 250.25, 1e-9);
	cr_assert_float_eq(s.p99, 495, 1e-9);
	cr_assert_float_eq(s.p999, 499.5, 1e-9);
	cr_assert_float_eq(s.max, 500, 1e-9);
}

Test(report_stats, one_sample_is_every_quantile)
{
	uint32_t sample = 7000;
	struct ex_stats s;

	ex_stats_compute(&s, &sample, 1, 1);
	cr_assert(s.min == 7 && s.median == 7 && s.average == 7 && s.p99 == 7 && s.p999 == 7 &&
		  s.max == 7);
}
