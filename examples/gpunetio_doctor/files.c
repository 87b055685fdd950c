/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Reads files and folders of this machine, or of a recorded one below --root. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define PATH_LEN 4096

static int path_of(const struct dr_env *env, char *path, const char *fmt, va_list args)
{
	int at = snprintf(path, PATH_LEN, "%s", env->root);
	int len = at < PATH_LEN ? vsnprintf(path + at, PATH_LEN - (size_t)at, fmt, args) : 0;

	return at + len < PATH_LEN ? 0 : -ENAMETOOLONG;
}

static void trim(char *text)
{
	size_t start = strspn(text, " \t"), len = strcspn(text, "\n");

	while (len > start && isspace((unsigned char)text[len - 1]))
		len--;
	memmove(text, text + start, len - start);
	text[len - start] = '\0';
}

int dr_read(const struct dr_env *env, char *text, size_t size, const char *fmt, ...)
{
	char path[PATH_LEN];
	va_list args;
	FILE *f;
	int rc;

	text[0] = '\0';
	va_start(args, fmt);
	rc = path_of(env, path, fmt, args);
	va_end(args);
	if (rc)
		return rc;
	f = fopen(path, "re");
	if (!f)
		return -errno;
	errno = 0;
	if (!fgets(text, (int)size, f) && ferror(f))
		rc = errno ? -errno : -EIO;
	fclose(f);
	trim(text);
	return rc;
}

static int compare(const void *a, const void *b)
{
	return strverscmp(a, b);
}

int dr_list(const struct dr_env *env, struct dr_names *names, const char *fmt, ...)
{
	char path[PATH_LEN];
	struct dirent *e;
	va_list args;
	DIR *dir;
	int rc;

	names->num = 0;
	va_start(args, fmt);
	rc = path_of(env, path, fmt, args);
	va_end(args);
	if (rc)
		return rc;
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((e = readdir(dir)) && names->num < DR_NAMES_MAX)
		if (e->d_name[0] != '.' && strlen(e->d_name) < DR_NAME_LEN)
			strcpy(names->name[names->num++], e->d_name);
	closedir(dir);
	qsort(names->name, (size_t)names->num, DR_NAME_LEN, compare);
	return 0;
}

void dr_find_devices(const struct dr_env *env, struct dr_names *devices)
{
	(void)dr_list(env, devices, "/sys/class/infiniband");
}

void dr_find_gpus(const struct dr_env *env, struct dr_names *gpus)
{
	(void)env;
	gpus->num = 0;
}
