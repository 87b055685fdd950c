/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Checks before its start that COMMAND can preload the NIC. The interpreter of a script,
 * and the program that env starts, are checked, too. preload_exec.c warns about programs
 * that COMMAND starts.
 */
#include "elf.h"
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define DEPTH_MAX 4 /* scripts that are interpreters of scripts */

/* Finds a program as execvp() does. */
static bool find_program(const char *name, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH"), *next;
	struct stat st;

	if (strchr(name, '/')) {
		snprintf(path, PATH_MAX, "%s", name);
		return !access(path, X_OK);
	}
	for (dirs = dirs ? dirs : "/bin:/usr/bin"; *name && dirs; dirs = next) {
		next = strchr(dirs, ':');
		snprintf(path, PATH_MAX, "%.*s%s%s", (int)(next ? next - dirs : (int)strlen(dirs)),
			 dirs, *dirs && *dirs != ':' ? "/" : "", name);
		next = next ? next + 1 : NULL;
		if (!access(path, X_OK) && !stat(path, &st) && S_ISREG(st.st_mode))
			return true;
	}
	return false;
}

/* The dynamic loader ignores LD_PRELOAD in a program that gets rights which its caller lacks. */
static bool is_privileged(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	return (st.st_mode & S_ISUID && st.st_uid != getuid()) ||
	       (st.st_mode & S_ISGID && st.st_mode & S_IXGRP && st.st_gid != getgid()) ||
	       (getuid() && getxattr(path, "security.capability", NULL, 0) > 0);
}

/* Reports a program that cannot preload the NIC. */
static bool is_usable(enum sn_program kind, const char *path)
{
	const char *why = kind == SN_PROGRAM_STATIC ? "is statically linked: the software NIC "
						      "needs a dynamically linked program"
			  : kind == SN_PROGRAM_FOREIGN
				  ? "is built for another architecture than the software NIC"
			  : kind == SN_PROGRAM_MUSL
				  ? "is linked with the C library musl: the software "
				    "NIC needs the GNU C library"
			  : is_privileged(path)
				  ? "is set-user-ID or set-group-ID or has capabilities, "
				    "so that it cannot preload the software NIC"
				  : NULL;

	if (why)
		sn_run_message("%s %s", path, why);
	return !why;
}

/* Returns the position in args of the program that env starts, or NULL if that is not certain.
 * args: env's arguments. */
static char **started_by_env(char **args)
{
	for (; *args; args++) {
		if (!strcmp(*args, "-S") || !strcmp(*args, "-0") || strchr(*args, '='))
			continue;
		if (!strcmp(*args, "-u") && args[1])
			args++;
		else
			return **args == '-' ? NULL : args;
	}
	return NULL;
}

static bool is_env(const char *path)
{
	const char *name = strrchr(path, '/');

	return !strcmp(name ? name + 1 : path, "env");
}

/* command: the program and its arguments, or NULL: unknown. */
static bool check(char **command, int depth)
{
	char path[PATH_MAX], line[256], *words[130], *save = NULL;
	enum sn_program kind;
	size_t n = 0;

	if (!command || !*command || depth == DEPTH_MAX || !find_program(*command, path))
		return true; /* the start reports it */
	kind = sn_program_kind(path, line);
	if (kind != SN_PROGRAM_SCRIPT)
		return is_usable(kind, path) &&
		       (!is_env(path) || check(started_by_env(command + 1), depth + 1));
	for (words[0] = strtok_r(line, " \t", &save); words[n] && n < 128;)
		words[++n] = strtok_r(NULL, " \t", &save);
	words[n] = NULL;
	return check(words, depth + 1);
}

bool sn_run_program_ok(char **command)
{
	return check(command, 0);
}
