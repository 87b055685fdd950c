/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A test with a deliberate signed integer overflow: sanity.sh checks that
 * SAN=undefined makes it fail. If it is built with -DPLANT=0, it does not overflow and
 * must pass.
 */
#include <criterion/criterion.h>
#include <limits.h>

Test(planted, overflow)
{
	volatile int v = PLANT ? INT_MAX : 1;

	v = v + 1;
	cr_log_info("%d", v);
}
