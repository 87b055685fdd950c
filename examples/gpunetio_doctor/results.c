/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The results of the checks, grouped by scope. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "results.h"

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

static void free_result(struct dr_result *x)
{
	free(x->scope);
	free(x->check);
	free(x->text);
	free(x->fix);
}

void dr_report_free(struct dr_report *r)
{
	for (size_t i = 0; i < r->num; i++)
		free_result(&r->results[i]);
	free(r->results);
	free(r->choices);
	free(r);
}

static char *copy(const char *text)
{
	return text ? check_alloc(strdup(text)) : NULL;
}

/* The order of the scopes: host, GPUs, devices with their ports, pairs. */
static int rank(const char *scope)
{
	if (!strcmp(scope, "host"))
		return 0;
	if (strstr(scope, " + "))
		return 3;
	return strncmp(scope, "gpu ", 4) ? 2 : 1;
}

/* Returns the place behind the last result of the same scope, otherwise behind the scopes of the
 * same rank. */
static size_t place_of(const struct dr_report *r, const char *scope)
{
	size_t at = r->num;

	while (at && strcmp(r->results[at - 1].scope, scope))
		at--;
	if (at)
		return at;
	for (at = r->num; at && rank(r->results[at - 1].scope) > rank(scope); at--)
		;
	return at;
}

static void insert(struct dr_report *r, const struct dr_result *result)
{
	size_t at = place_of(r, result->scope);

	r->results = check_alloc(realloc(r->results, (r->num + 1) * sizeof(*r->results)));
	memmove(&r->results[at + 1], &r->results[at], (r->num - at) * sizeof(*r->results));
	r->results[at] = *result;
	r->num++;
}

/* Files can have any bytes. JSON must be valid UTF-8, and a terminal obeys control characters. */
static void make_printable(char *text)
{
	for (; text && *text; text++)
		if ((unsigned char)*text < ' ' || (unsigned char)*text > '~')
			*text = '?';
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
	make_printable(result.text);
	make_printable(result.fix);
	if (!dr_to_parent(r, &result)) {
		insert(r, &result);
		return;
	}
	free_result(&result);
}

void dr_add_handler(struct dr_report *r, const char *gpu, const char *device, const char *handler,
		    const char *text)
{
	struct dr_choice c;

	snprintf(c.gpu, sizeof(c.gpu), "%s", gpu);
	snprintf(c.device, sizeof(c.device), "%s", device);
	snprintf(c.handler, sizeof(c.handler), "%s", handler);
	snprintf(c.text, sizeof(c.text), "%s", text);
	make_printable(c.text);
	if (dr_handler_to_parent(r, &c))
		return;
	r->choices = check_alloc(realloc(r->choices, (r->num_choices + 1) * sizeof(c)));
	r->choices[r->num_choices++] = c;
}

const char *dr_level_word(enum dr_level level)
{
	static const char *const words[] = { "ok", "note", "warn", "FAIL", "unknown" };

	return words[level];
}

static void print_combination(const struct dr_combination *c, void *arg)
{
	const struct dr_env *env = arg;

	printf("  gpu %s + %s port %d: ", c->gpu, c->device, c->port);
	if (c->failed)
		printf("cannot work (%s: %s)\n", c->failed->scope, c->failed->check);
	else if (c->choice)
		printf("works; %s%s: %s\n", env->handler > 0 ? "" : "AUTO takes ",
		       c->choice->handler, c->choice->text);
	else
		printf("no check failed%s\n", env->probe ? "" : "; no device was opened");
}

static void count(const struct dr_report *r, int counts[])
{
	for (size_t i = 0; i < r->num; i++)
		counts[r->results[i].level]++;
}

void dr_print_text(struct dr_report *r)
{
	int counts[DR_UNKNOWN + 1] = { 0 };

	for (size_t i = 0; i < r->num; i++) {
		const struct dr_result *x = &r->results[i];

		if (!i || strcmp(x->scope, x[-1].scope))
			printf("%s\n", x->scope);
		printf("  %-7s %-18s %s\n", dr_level_word(x->level), x->check, x->text);
		if (x->fix)
			printf("          fix: %s\n", x->fix);
		if (i + 1 < r->num && strcmp(x->scope, x[1].scope))
			putchar('\n');
	}
	puts("\nsummary");
	dr_each_combination(r, print_combination, (void *)r->env);
	count(r, counts);
	printf("  %d ok, %d note, %d warn, %d FAIL, %d unknown\n", counts[DR_OK], counts[DR_NOTE],
	       counts[DR_WARN], counts[DR_FAIL], counts[DR_UNKNOWN]);
}
