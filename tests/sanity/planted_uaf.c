/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A test that deliberately reads freed memory: sanity.sh checks that SAN=address makes
 * it fail. If it is built with -DPLANT=0, it reads before it frees and must pass.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

Test(planted, use_after_free)
{
	volatile int *p = malloc(sizeof(*p));
	int v;

	cr_assert_not_null((const void *)p);
	*p = 7;
	if (PLANT)
		free((void *)p);
	v = *p;
	if (!PLANT)
		free((void *)p);
	cr_log_info("%d", v);
}
