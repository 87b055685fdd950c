/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The log: which levels are written, truncation of long lines, the message of
 * the GDK_CHECK_* macros, and that lines of different threads do not mix.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../core/log/log.h"
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

static void expect_invalid_level(const char *env)
{
	const char *out = all_levels(env), *at;
	char want[200];

	snprintf(want, sizeof(want),
		 ": ignoring DOCA_GPUNETIO_LOG=\"%s\" (expected 0..7, or emerg, alert, crit, err, "
		 "warning, notice, info or debug), using 4 (warning)\n",
		 env);
	at = strstr(out, want);
	cr_expect(at && strstr(out, " gdaki WARNING log.c:") < at, "%s: %s", env, out);
	cr_expect(strstr(out, "two"));
	cr_expect_not(strstr(out, "three"));
	capture_begin();
	gdk_err("later");
	cr_expect_not(strstr(capture_end(), "ignoring"), "%s: reported twice", env);
}

#define INVALID_LEVEL(name, env) \
	Test(log, name) \
	{ \
		expect_invalid_level(env); \
	}

INVALID_LEVEL(unknown_level_is_reported_once, "abc")
INVALID_LEVEL(level_9_is_reported, "9")
INVALID_LEVEL(level_8_is_reported, "8")
INVALID_LEVEL(negative_level_is_reported, "-1")
INVALID_LEVEL(level_with_more_characters_is_reported, "7x")
INVALID_LEVEL(level_with_a_blank_is_reported, " 7")
INVALID_LEVEL(level_with_a_sign_is_reported, "+7")
INVALID_LEVEL(abbreviated_level_is_reported, "warn")

Test(log, empty_level_means_the_default)
{
	const char *out = all_levels("");

	cr_expect(strstr(out, "two"));
	cr_expect_not(strstr(out, "three"));
	cr_expect_not(strstr(out, "ignoring"));
}

Test(log, name_of_a_level_is_accepted)
{
	const char *out = all_levels("info");

	cr_expect(strstr(out, "three"));
	cr_expect_not(strstr(out, "four"));
	cr_expect_not(strstr(out, "ignoring"));
}

Test(log, name_of_a_level_may_be_in_capitals)
{
	const char *out = all_levels("ERR");

	cr_expect(strstr(out, "one"));
	cr_expect_not(strstr(out, "two"));
}

/* ---- the format ---- */

/* Compiles the regular expression that the manual page gives for a line. */
static void compile_documented(regex_t *re)
{
	char text[512] = "", line[256];
	FILE *f = fopen("core/gdaki.7", "r");
	bool in = false;

	cr_assert(f, "run it at the top of the tree");
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		in = in ? strcmp(line, ".Ed") : line[0] == '^';
		if (in && snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
				   text[0] ? " " : "", line) < 0)
			break;
	}
	fclose(f);
	cr_assert_eq(regcomp(re, text, REG_EXTENDED | REG_NOSUB), 0, "%s", text);
}

static int count_documented(char *lines)
{
	char *line, *save = NULL;
	regex_t re;
	int n = 0;

	compile_documented(&re);
	for (line = strtok_r(lines, "\n", &save); line; line = strtok_r(NULL, "\n", &save), n++)
		cr_expect_eq(regexec(&re, line, 0, NULL, 0), 0, "other format: %s", line);
	regfree(&re);
	return n;
}

Test(log, lines_have_the_documented_format)
{
	char *big = calloc(1, 5001);
	int level;

	setenv("DOCA_GPUNETIO_LOG", "7", 1);
	memset(big, 'x', 5000);
	capture_begin();
	for (level = GDK_LOG_EMERG; level <= GDK_LOG_DEBUG; level++)
		GDK_LOG((enum gdk_log_level)level, "level %d: 100%% of \"it\"", level);
	gdk_err("%s", big);
	gdk_err("%s", "");
	gdk_err("two\nlines\tand\r\x1b[0mmore");
	cr_expect_eq(count_documented((char *)(uintptr_t)capture_end()), GDK_LOG_DEBUG + 1 + 3);
	free(big);
}

Test(log, report_of_an_invalid_level_has_the_documented_format)
{
	all_levels("a\nb");
	cr_expect_eq(count_documented(capture_text), 3);
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

/* ---- checks of arguments ---- */

enum color { RED, GREEN };

struct paint {
	uint8_t layers;
};

static doca_error_t buy_paint(const struct paint *attr, size_t size, enum color color)
{
	GDK_CHECK_PTR(attr);
	GDK_CHECK_RANGE(attr->layers, 1, 16);
	GDK_CHECK_ARG(!(size & (size - 1)), "size %zu (expected a power of two)", size);
	GDK_CHECK_ENUM(color, GREEN);
	return DOCA_SUCCESS;
}

static int count_paint(const struct paint *paint)
{
	GDK_CHECK_PTR_OR(-7, paint);
	GDK_CHECK_ARG_OR(-8, paint->layers != 3, "paint->layers %u (expected anything else)",
			 paint->layers);
	return paint->layers;
}

static void refused(doca_error_t err, const char *text)
{
	char want[128];
	const char *log = capture_end();

	snprintf(want, sizeof(want), " buy_paint: invalid %s\n", text);
	cr_expect_eq(err, DOCA_ERROR_INVALID_VALUE, "%s: %d", text, err);
	cr_expect(strstr(log, want), "%s: %s", text, log);
	capture_begin();
}

Test(log, failed_check_names_argument_value_and_expectation)
{
	const struct paint none = { 0 }, thick = { 17 }, good = { 16 };

	capture_begin();
	cr_expect_eq(buy_paint(&good, 8, GREEN), DOCA_SUCCESS);
	cr_expect_str_eq(capture_end(), "");
	capture_begin();
	refused(buy_paint(NULL, 8, RED), "attr NULL");
	refused(buy_paint(&none, 8, RED), "attr->layers 0 (expected 1 to 16)");
	refused(buy_paint(&thick, 8, RED), "attr->layers 17 (expected 1 to 16)");
	refused(buy_paint(&good, 3, RED), "size 3 (expected a power of two)");
	refused(buy_paint(&good, SIZE_MAX, RED),
		"size 18446744073709551615 (expected a power of two)");
	refused(buy_paint(&good, 8, (enum color)2), "color 2 (expected at most GREEN, 1)");
	refused(buy_paint(&good, 8, (enum color) - 1), "color -1 (expected at most GREEN, 1)");
	(void)capture_end();
}

Test(log, failed_check_returns_the_given_value)
{
	cr_expect_eq(count_paint(NULL), -7);
	cr_expect_eq(count_paint(&(struct paint){ 3 }), -8);
	cr_expect_eq(count_paint(&(struct paint){ 4 }), 4);
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
