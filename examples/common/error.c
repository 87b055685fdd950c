/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Error messages, and the command line of programs without options.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common.h"

static char last[200];

int ex_error(const char *fmt, ...)
{
	va_list ap, again;

	va_start(ap, fmt);
	va_copy(again, ap);
	vsnprintf(last, sizeof(last), fmt, again);
	va_end(again);
	fputs("error: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	return -1;
}

const char *ex_last_error(void)
{
	return last;
}

int ex_check(doca_error_t err, const char *what)
{
	if (err == DOCA_SUCCESS)
		return 0;
	return ex_error("%s: %s (%s)", what, doca_error_get_descr(err), doca_error_get_name(err));
}

void ex_print_version(const char *prog)
{
	const char *slash = strrchr(prog, '/');

	printf("%s (gdaki) %s\n", slash ? slash + 1 : prog, gdk_version());
}

int ex_no_options(int argc, char **argv)
{
	const char *arg = argc > 1 ? argv[1] : NULL;

	if (!arg)
		return -1;
	if (argc == 2 && !strcmp(arg, "--version")) {
		ex_print_version(argv[0]);
		return 0;
	}
	if (argc == 2 && (!strcmp(arg, "--help") || !strcmp(arg, "-h"))) {
		printf("Usage: %s\n\n"
		       "  -h, --help     print this help\n"
		       "      --version  print the version of gdaki\n\n"
		       "Uses the only RDMA device. Without one: softnic-run -- %s\n",
		       argv[0], argv[0]);
		return 0;
	}
	if (argc > 2 && (!strcmp(arg, "--version") || !strcmp(arg, "--help") || !strcmp(arg, "-h")))
		arg = argv[2];
	ex_error("unknown argument '%s' (expected none, --help or --version)", arg);
	return 2;
}
