/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A test that overflows a signed integer, on purpose: sanity.sh checks that
 * SAN=undefined fails it. Built with -DPLANT=0 it does not, and must pass.
 */
#include <criterion/criterion.h>
#include <limits.h>

Test(planted, overflow)
{
	volatile int v = PLANT ? INT_MAX : 1;

	v = v + 1;
	cr_log_info("%d", v);
}
