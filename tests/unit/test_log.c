/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The log: which levels are written, truncation of long lines, the message of
 * GDK_CHECK_ARG, and that lines of different threads do not mix.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../core/log.h"
#include "../lib/capture.h"

static const char *all_levels(const char *env)
{
	if (env)
		setenv("DOCA_GPUNETIO_LOG", env, 1);
	else
		unsetenv("DOCA_GPUNETIO_LOG");
	capture_begin();
	gdk_err("one %d", 1);
	gdk_warn("two");
	gdk_info("three");
	gdk_dbg("four");
	return capture_end();
}

Test(log, defect_32_errors_and_warnings_are_shown_by_default)
{
	const char *out = all_levels(NULL);

	cr_expect(strstr(out, " gdaki ERR test_log.c:"));
	cr_expect(strstr(out, "all_levels: one 1\n"));
	cr_expect(strstr(out, "two\n"));
	cr_expect_not(strstr(out, "three"));
}

Test(log, level_0_prints_nothing)
{
	cr_expect_str_eq(all_levels("0"), "");
}

Test(log, level_7_prints_everything)
{
	const char *out = all_levels("7");

	cr_expect(strstr(out, "three") && strstr(out, "four"));
}

Test(log, invalid_level_means_the_default)
{
	const char *out = all_levels("8x");

	cr_expect(strstr(out, "two"));
	cr_expect_not(strstr(out, "three"));
}

Test(log, long_line_is_truncated_and_terminated)
{
	char *big = calloc(1, 5001);
	const char *out;

	memset(big, 'x', 5000);
	capture_begin();
	gdk_err("%s", big);
	out = capture_end();
	cr_expect_leq(strlen(out), 1024);
	cr_expect_eq(out[strlen(out) - 1], '\n');
	free(big);
}

static doca_error_t wants_positive(int value)
{
	GDK_CHECK_ARG(value > 0);
	return DOCA_SUCCESS;
}

Test(log, check_arg_names_the_condition)
{
	capture_begin();
	cr_expect_eq(wants_positive(1), DOCA_SUCCESS);
	cr_expect_eq(wants_positive(0), DOCA_ERROR_INVALID_VALUE);
	cr_expect(strstr(capture_end(), "value > 0"));
}

static void *shout(void *arg)
{
	int i;

	for (i = 0; i < 50; i++)
		gdk_err("<%s%s%s>", (char *)arg, (char *)arg, (char *)arg);
	return NULL;
}

Test(log, lines_of_threads_do_not_mix)
{
	static char names[4][40] = { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
				     "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
				     "cccccccccccccccccccccccccccccccccc",
				     "dddddddddddddddddddddddddddddddddd" };
	pthread_t threads[4];
	int i, lines = 0;
	char *line, *next;

	capture_begin();
	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, shout, names[i]);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (line = (char *)capture_end(); *line; line = next + 1, lines++) {
		char *open = strchr(line, '<');

		next = strchr(line, '\n');
		cr_assert(open && open < next);
		cr_expect_eq(strspn(open + 1, (char[]){ open[1], 0 }), 102);
		cr_expect_eq(next[-1], '>');
	}
	cr_expect_eq(lines, 200);
}
