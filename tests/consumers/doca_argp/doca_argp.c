/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A parser of command lines with the functions that NVIDIA's samples call: "-x VALUE",
 * "--long VALUE" and "--long=VALUE"; short names may have several letters. Values are strings or
 * numbers, and a callback of the program stores each one. An option of type BOOLEAN has no value.
 * -h and --help print the options.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doca_argp.h"

#define PARAMS_MAX 32

struct doca_argp_param {
	const char *short_name, *long_name, *description;
	doca_argp_param_cb *callback;
	enum doca_argp_type type;
	int mandatory, given;
};

static struct {
	const char *program;
	void *config;
	struct doca_argp_param *params[PARAMS_MAX];
	unsigned int num;
} parser;

doca_error_t doca_argp_init(const char *program_name, void *config)
{
	parser.program = program_name;
	parser.config = config;
	return DOCA_SUCCESS;
}

doca_error_t doca_argp_destroy(void)
{
	while (parser.num)
		free(parser.params[--parser.num]);
	return DOCA_SUCCESS;
}

/* There is no option for the version. */
doca_error_t doca_argp_register_version_callback(doca_argp_param_cb *callback)
{
	return callback ? DOCA_SUCCESS : DOCA_ERROR_INVALID_VALUE;
}

doca_error_t doca_argp_param_create(struct doca_argp_param **param)
{
	*param = calloc(1, sizeof(**param));
	return *param ? DOCA_SUCCESS : DOCA_ERROR_NO_MEMORY;
}

doca_error_t doca_argp_register_param(struct doca_argp_param *param)
{
	if (parser.num == PARAMS_MAX || !param->long_name || !param->callback) {
		free(param);
		return DOCA_ERROR_INVALID_VALUE;
	}
	parser.params[parser.num++] = param;
	return DOCA_SUCCESS;
}

void doca_argp_param_set_short_name(struct doca_argp_param *param, const char *name)
{
	param->short_name = name;
}

void doca_argp_param_set_long_name(struct doca_argp_param *param, const char *name)
{
	param->long_name = name;
}

void doca_argp_param_set_arguments(struct doca_argp_param *param, const char *arguments)
{
	(void)param;
	(void)arguments; /* the help prints the description */
}

void doca_argp_param_set_description(struct doca_argp_param *param, const char *description)
{
	param->description = description;
}

void doca_argp_param_set_callback(struct doca_argp_param *param, doca_argp_param_cb *callback)
{
	param->callback = callback;
}

void doca_argp_param_set_type(struct doca_argp_param *param, enum doca_argp_type type)
{
	param->type = type;
}

void doca_argp_param_set_mandatory(struct doca_argp_param *param)
{
	param->mandatory = 1;
}

static doca_error_t refuse(const char *what, const char *name)
{
	fprintf(stderr, "%s: %s %s\n", parser.program, what, name);
	return DOCA_ERROR_INVALID_VALUE;
}

/* Finds the option of an argument. *value is the part after "=", or NULL. */
static struct doca_argp_param *find(const char *arg, const char **value)
{
	for (unsigned int i = 0; i < parser.num; i++) {
		struct doca_argp_param *p = parser.params[i];
		size_t len = strlen(p->long_name);

		*value = NULL;
		if (arg[1] != '-' && p->short_name && !strcmp(arg + 1, p->short_name))
			return p;
		if (strncmp(arg, "--", 2) || strncmp(arg + 2, p->long_name, len))
			continue;
		if (arg[2 + len] == '=')
			*value = arg + 3 + len;
		if (*value || !arg[2 + len])
			return p;
	}
	return NULL;
}

static doca_error_t pass(struct doca_argp_param *p, const char *value)
{
	char text[256], *end;
	long number;
	int as_int;

	p->given = 1;
	if (p->type == DOCA_ARGP_TYPE_STRING) {
		snprintf(text, sizeof(text), "%s", value);
		return p->callback(text, parser.config);
	}
	errno = 0;
	number = strtol(value, &end, 0);
	as_int = (int)number;
	if (errno || end == value || *end || as_int != number)
		return refuse("not a number:", value);
	return p->callback(&as_int, parser.config);
}

static void help(void)
{
	for (unsigned int i = 0; i < parser.num; i++)
		printf("  -%s, --%s  %s\n",
		       parser.params[i]->short_name ? parser.params[i]->short_name : "",
		       parser.params[i]->long_name, parser.params[i]->description);
}

doca_error_t doca_argp_start(int argc, char **argv)
{
	doca_error_t err = DOCA_SUCCESS;

	for (int i = 1; i < argc && err == DOCA_SUCCESS; i++) {
		struct doca_argp_param *p;
		const char *value;

		if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help")) {
			help();
			exit(EXIT_SUCCESS);
		}
		p = argv[i][0] == '-' ? find(argv[i], &value) : NULL;
		if (!p)
			return refuse("unknown argument", argv[i]);
		if (!value && p->type == DOCA_ARGP_TYPE_BOOLEAN)
			value = "1";
		if (!value && ++i == argc)
			return refuse("no value for", argv[i - 1]);
		err = pass(p, value ? value : argv[i]);
	}
	for (unsigned int i = 0; i < parser.num && err == DOCA_SUCCESS; i++)
		if (parser.params[i]->mandatory && !parser.params[i]->given)
			err = refuse("missing option --", parser.params[i]->long_name);
	return err;
}
