/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The results of the checks, grouped by scope in the order in which the scopes were added. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

static void *check_alloc(void *p)
{
	if (p)
		return p;
	fputs("error: no memory for the report\n", stderr);
	exit(1);
}

struct dr_report *dr_report_new(const struct dr_env *env)
{
	struct dr_report *r = check_alloc(calloc(1, sizeof(*r)));

	r->env = env;
	r->sink = -1;
	return r;
}

void dr_report_free(struct dr_report *r)
{
	for (size_t i = 0; i < r->num; i++) {
		free(r->results[i].scope);
		free(r->results[i].check);
		free(r->results[i].text);
		free(r->results[i].fix);
	}
	free(r->results);
	free(r->choices);
	free(r);
}

static char *copy(const char *text)
{
	return text ? check_alloc(strdup(text)) : NULL;
}

/* Inserts the result behind the last one of its scope. */
static void insert(struct dr_report *r, const struct dr_result *result)
{
	size_t at = r->num;

	while (at && strcmp(r->results[at - 1].scope, result->scope))
		at--;
	if (!at)
		at = r->num;
	r->results = check_alloc(realloc(r->results, (r->num + 1) * sizeof(*r->results)));
	memmove(&r->results[at + 1], &r->results[at], (r->num - at) * sizeof(*r->results));
	r->results[at] = *result;
	r->num++;
}

void dr_add(struct dr_report *r, const char *scope, const char *check, enum dr_level level,
	    const char *fix, const char *fmt, ...)
{
	struct dr_result result = { .scope = copy(scope),
				    .check = copy(check),
				    .fix = copy(fix),
				    .level = level };
	va_list args;
	int len;

	va_start(args, fmt);
	len = vasprintf(&result.text, fmt, args);
	va_end(args);
	if (len < 0)
		result.text = check_alloc(NULL);
	insert(r, &result);
}

const char *dr_level_word(enum dr_level level)
{
	static const char *const words[] = { "ok", "note", "warn", "FAIL", "unknown" };

	return words[level];
}

void dr_print_text(struct dr_report *r)
{
	for (size_t i = 0; i < r->num; i++) {
		const struct dr_result *x = &r->results[i];

		if (!i || strcmp(x->scope, x[-1].scope))
			printf("%s%s\n", i ? "\n" : "", x->scope);
		printf("  %-7s  %-20s %s\n", dr_level_word(x->level), x->check, x->text);
		if (x->fix)
			printf("           %-20s fix: %s\n", "", x->fix);
	}
}
