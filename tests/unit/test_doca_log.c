/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The log of the SDK's interface: which lines of a program and of the library are written where,
 * for each backend and level.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doca_log.h"
#include "doca_version.h"

#include "../../core/log/log.h"
#include "doca_base_rig.h"

DOCA_LOG_REGISTER(UNIT::TEST);

static char *text;
static size_t text_len;

static void four_lines(void)
{
	DOCA_LOG_ERR("one %d", 1);
	DOCA_LOG_WARN("two");
	DOCA_LOG_INFO("three");
	DOCA_LOG_DBG("four");
}

/* What the library writes to the memory file f. */
static const char *library_lines(FILE *f)
{
	rewind(f);
	gdk_err("l-one");
	gdk_warn("l-two");
	gdk_info("l-three");
	gdk_dbg("l-four");
	fflush(f);
	text[ftell(f)] = '\0';
	return text;
}

static FILE *memory_file(void)
{
	FILE *f = open_memstream(&text, &text_len);

	cr_assert(f);
	fprintf(f, "%4000s", "");
	fflush(f);
	return f;
}

Test(doca_log, without_a_backend_warnings_and_errors_are_written)
{
	const char *out;

	capture_begin();
	four_lines();
	out = capture_end();
	cr_expect(strstr(out, " UNIT::TEST ERR test_doca_log.c:"), "%s", out);
	cr_expect(strstr(out, "four_lines: one 1\n") && strstr(out, "two\n"), "%s", out);
	cr_expect_not(strstr(out, "three"));
}

Test(doca_log, the_standard_backend_writes_information_to_standard_output)
{
	FILE *out = tmpfile();
	char got[512] = "";
	const char *err;
	int saved;

	fflush(stdout);
	saved = dup(STDOUT_FILENO);
	cr_assert_eq(doca_log_backend_create_standard(), DOCA_SUCCESS);
	cr_assert_eq(doca_log_backend_create_standard(), DOCA_SUCCESS);
	dup2(fileno(out), STDOUT_FILENO);
	capture_begin();
	four_lines();
	err = capture_end();
	dup2(saved, STDOUT_FILENO);
	cr_expect(strstr(err, "one 1") && strstr(err, "two"));
	cr_expect_not(strstr(err, "three"), "information on standard error");
	rewind(out);
	cr_expect_gt(fread(got, 1, sizeof(got) - 1, out), 0);
	cr_expect(strstr(got, "three"));
	cr_expect_not(strstr(got, ": four") || strstr(got, "one 1"));
}

Test(doca_log, the_variable_adds_lines)
{
	const char *out;

	setenv("DOCA_GPUNETIO_LOG", "info", 1);
	capture_begin();
	gdk_info("l-three");
	gdk_dbg("l-four");
	out = capture_end();
	cr_expect(strstr(out, "l-three") && !strstr(out, "l-four"));
}

Test(doca_log, a_file_gets_the_lines_of_the_library_up_to_its_level)
{
	struct doca_log_backend *backend, *same;
	FILE *f = memory_file();
	const char *out;

	cr_assert_eq(doca_log_backend_create_with_file_sdk(f, &backend), DOCA_SUCCESS);
	cr_assert_eq(doca_log_backend_create_with_file_sdk(f, &same), DOCA_SUCCESS);
	cr_expect_eq(backend, same, "lines would be written twice");
	capture_begin();
	out = library_lines(f);
	cr_expect_str_empty(capture_end(), "lines are also on standard error");
	cr_expect(strstr(out, " gdaki ERR test_doca_log.c:") && strstr(out, "l-two"), "%s", out);
	cr_expect_not(strstr(out, "l-three"));
	cr_assert_eq(doca_log_backend_set_sdk_level(backend, DOCA_LOG_LEVEL_ERROR), DOCA_SUCCESS);
	out = library_lines(f);
	cr_expect(strstr(out, "l-one") && !strstr(out, "l-two"));
	cr_assert_eq(doca_log_backend_set_sdk_level(backend, DOCA_LOG_LEVEL_TRACE), DOCA_SUCCESS);
	cr_expect(strstr(library_lines(f), "l-four"));
	cr_assert_eq(doca_log_level_set_global_sdk_limit(DOCA_LOG_LEVEL_INFO), DOCA_SUCCESS);
	out = library_lines(f);
	cr_expect(strstr(out, "l-three") && !strstr(out, "l-four"), "the limit is not applied");
	cr_assert_eq(doca_log_backend_set_sdk_level(backend, DOCA_LOG_LEVEL_DISABLE), DOCA_SUCCESS);
	cr_expect_str_empty(library_lines(f));
	cr_assert_eq(doca_log_backend_set_sdk_level(backend, DOCA_LOG_LEVEL_CRIT), DOCA_SUCCESS);
	cr_expect_str_empty(library_lines(f));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "", doca_log_backend_set_sdk_level(backend, 41));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "", doca_log_level_set_global_sdk_limit(0));
	REFUSED(DOCA_ERROR_INVALID_VALUE, "",
		doca_log_backend_set_sdk_level(NULL, DOCA_LOG_LEVEL_INFO));
}

Test(doca_log, each_backend_has_its_own_level_and_sixteen_are_the_most)
{
	struct doca_log_backend *b[2], *more = NULL;
	FILE *loud, *quiet = fopen("/dev/null", "w");

	cr_assert_eq(doca_log_backend_create_with_file_sdk(quiet, &b[0]), DOCA_SUCCESS);
	loud = memory_file();
	cr_assert_eq(doca_log_backend_create_with_file_sdk(loud, &b[1]), DOCA_SUCCESS);
	cr_assert_eq(doca_log_backend_set_sdk_level(b[0], DOCA_LOG_LEVEL_DISABLE), DOCA_SUCCESS);
	cr_assert_eq(doca_log_backend_set_sdk_level(b[1], DOCA_LOG_LEVEL_INFO), DOCA_SUCCESS);
	cr_expect(strstr(library_lines(loud), "l-three"));
	for (int i = 2; i < 16; i++)
		cr_expect_eq(doca_log_backend_create_with_file_sdk(fopen("/dev/null", "w"), &more),
			     DOCA_SUCCESS);
	more = NULL;
	cr_expect_eq(doca_log_backend_create_with_file_sdk(tmpfile(), &more), DOCA_ERROR_FULL);
	cr_expect_null(more);
	cr_expect(strstr(text, "cannot add a log backend: 16 exist"), "%s", text);
}

Test(doca_log, version)
{
	int major, minor, patch;

	cr_expect_eq(sscanf(doca_version(), "%d.%d.%d", &major, &minor, &patch), 3);
}
