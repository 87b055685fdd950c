/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A test with a deliberate leak: sanity.sh checks that SAN=address makes it fail.
 * If it is built with -DPLANT=0, it frees the memory and must pass.
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
