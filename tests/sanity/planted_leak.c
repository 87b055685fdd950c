/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A test that leaks, on purpose: sanity.sh checks that SAN=address fails it.
 * Built with -DPLANT=0 it frees, and must pass.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

static void *volatile held;

Test(planted, leak)
{
	held = malloc(123);
	cr_assert_not_null(held);
	if (!PLANT)
		free(held);
	held = NULL;
}
