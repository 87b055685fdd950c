/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * For tests that call public functions with one wrong argument at a time: macros for the calls,
 * which check result and log, and for those that lib/api_args.py generates.
 */
#ifndef API_ARGS_RIG_H
#define API_ARGS_RIG_H

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/capture.h"

static uint64_t api_out[256]; /* buffer for results; a refused call must not change it */
static bool api_named;	      /* the log must name the function */
/* The library checks only for NULL: the objects are those of the DOCA SDK, which checks all other
 * values. */
static bool api_null_only;

/* The calls of one function. */
struct wrong {
	const char *name;
	void (*calls)(void);
};

static inline bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static inline bool has_word(const char *line, size_t len, const char *word)
{
	size_t at, n = strlen(word);

	for (at = 0; at + n <= len; at++)
		if (!strncmp(line + at, word, n) && (!at || !is_word(line[at - 1])) &&
		    (at + n == len || !is_word(line[at + n])))
			return true;
	return false;
}

/* Returns true if the log line contains the value that a call passed: NULL, or a number in decimal
 * or hexadecimal notation. */
static inline bool has_value(const char *line, size_t len, const char *value)
{
	const unsigned long long n = strtoull(value, NULL, 0);
	char hex[32], hex32[32];

	snprintf(hex, sizeof(hex), "0x%llx", n);
	snprintf(hex32, sizeof(hex32), "0x%x", (unsigned int)n); /* of a negative int */
	return has_word(line, len, value) || has_word(line, len, hex) ||
	       (*value == '-' && has_word(line, len, hex32)) ||
	       (!n && (has_word(line, len, "NULL") || has_word(line, len, "nil")));
}

static inline void api_begin(void)
{
	memset(api_out, 0xa5, sizeof(api_out));
	capture_begin();
}

/* Every line must name the argument; one must also have the value and, for a api_named call, the
 * function. */
static inline void check_log(const char *fn, const char *name, const char *value)
{
	const char *line = capture_end(), *const log = line, *end;
	bool complete = false;
	size_t i, len;

	cr_expect(*line, "%s with %s %s: nothing logged", fn, name, value);
	cr_expect(!strstr(log, "does not hold"), "%s with %s %s: the log has an expression: %s", fn,
		  name, value, log);
	for (; *line; line = end + (*end == '\n')) {
		end = strchrnul(line, '\n');
		len = (size_t)(end - line);
		cr_expect(has_word(line, len, name),
			  "%s with %s %s: the log does not name the argument: %.*s", fn, name,
			  value, (int)len, line);
		complete = complete ||
			   ((!api_named || has_word(line, len, fn)) && has_value(line, len, value));
	}
	cr_expect(complete, "%s with %s %s: no line has function and value: %s", fn, name, value,
		  log);
	for (i = 0; i < sizeof(api_out) / sizeof(api_out[0]); i++)
		if (api_out[i] != 0xa5a5a5a5a5a5a5a5)
			break;
	cr_expect_eq(i, sizeof(api_out) / sizeof(api_out[0]), "%s with %s %s: a result was written",
		     fn, name, value);
}

static inline bool api_skips(const char *value)
{
	return api_null_only && strcmp(value, "NULL");
}

#define REFUSES(name, value, call) \
	do { \
		doca_error_t err_; \
\
		if (api_skips(value)) \
			break; \
		api_begin(); \
		err_ = call; \
		check_log(fn, name, value); \
		cr_expect_neq(err_, DOCA_SUCCESS, "%s with %s %s succeeded", fn, name, value); \
	} while (0)
#define DOES_NOTHING(name, value, call) \
	do { \
		api_begin(); \
		call; \
		check_log(fn, name, value); \
	} while (0)
/* For functions that return a value and no error code: it must be 0. */
#define IS_ZERO(name, value, call) \
	do { \
		__typeof__(call) got_, zero_; \
\
		memset(&zero_, 0, sizeof(zero_)); \
		api_begin(); \
		got_ = call; \
		check_log(fn, name, value); \
		cr_expect_eq(memcmp(&got_, &zero_, sizeof(got_)), 0, "%s with %s %s is not zero", \
			     fn, name, value); \
	} while (0)
/* For functions that return a name: that of an unknown value must not be empty. */
#define HAS_TEXT(name, value, call) cr_expect(*call, "%s with %s %s: empty text", fn, name, value)

/* named: the log must have the name of the function, too. */
static inline void api_call(const struct wrong *wrongs, size_t n, bool named)
{
	size_t i;

	api_named = named;
	for (i = 0; i < n; i++) {
		/* if the call crashes, the last line names the function */
		printf("%s\n", wrongs[i].name);
		fflush(stdout);
		wrongs[i].calls();
	}
}

#endif
