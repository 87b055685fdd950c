/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Reads files and folders of this machine, or of a recorded one below --root. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine.h"
#include "record.h"

#define PATH_OF(env, path, fmt) \
	({ \
		va_list args_; \
		int rc_; \
		va_start(args_, fmt); \
		rc_ = path_of(env, path, fmt, args_); \
		va_end(args_); \
		rc_; \
	})

/* Writes the path of a file into path, a buffer of PATH_MAX bytes. */
static int path_of(const struct dr_env *env, char *path, const char *fmt, va_list args)
{
	int at = snprintf(path, PATH_MAX, "%s", env->root);
	int len = at < PATH_MAX ? vsnprintf(path + at, PATH_MAX - (size_t)at, fmt, args) : 0;

	if (at + len >= PATH_MAX)
		return -ENAMETOOLONG;
	if (!*env->root)
		dr_record_path(path);
	return 0;
}

static void trim(char *text)
{
	size_t start = strspn(text, " \t"), len = strcspn(text, "\n");

	while (len > start && isspace((unsigned char)text[len - 1]))
		len--;
	if (start > len)
		start = len;
	memmove(text, text + start, len - start);
	text[len - start] = '\0';
}

/* O_NONBLOCK: an open of a pipe or a device does not wait. */
static int read_file(const char *path, char *bytes, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size_t len = 0;
	ssize_t n;

	bytes[0] = '\0';
	if (fd < 0)
		return -errno;
	do {
		n = read(fd, bytes + len, size - 1 - len);
		if (n > 0)
			len += (size_t)n;
	} while (n > 0 && len < size - 1);
	n = n < 0 && !len ? -errno : 0;
	close(fd);
	bytes[len] = '\0';
	return n < 0 ? (int)n : (int)len;
}

int dr_read_bytes(const struct dr_env *env, char *bytes, size_t size, const char *fmt, ...)
{
	char path[PATH_MAX];
	int rc = PATH_OF(env, path, fmt);

	bytes[0] = '\0';
	return rc ? rc : read_file(path, bytes, size);
}

int dr_read(const struct dr_env *env, char *text, size_t size, const char *fmt, ...)
{
	char path[PATH_MAX];
	int rc = PATH_OF(env, path, fmt);

	text[0] = '\0';
	if (!rc)
		rc = read_file(path, text, size);
	trim(text);
	return rc < 0 ? rc : 0;
}

int dr_read_number(const struct dr_env *env, long long *value, const char *fmt, ...)
{
	char path[PATH_MAX], text[64], *end;
	int rc = PATH_OF(env, path, fmt);

	if (!rc)
		rc = read_file(path, text, sizeof(text));
	if (rc < 0)
		return rc;
	trim(text);
	errno = 0;
	*value = strtoll(text, &end, !strncmp(text, "0x", 2) ? 16 : 10);
	return errno || end == text || *end ? -EINVAL : 0;
}

static int read_link(const char *path, char *target, size_t size)
{
	ssize_t len = readlink(path, target, size - 1);

	target[len < 0 ? 0 : len] = '\0';
	return len < 0 ? -errno : 0;
}

int dr_read_link(const struct dr_env *env, char *target, size_t size, const char *fmt, ...)
{
	char path[PATH_MAX];
	int rc = PATH_OF(env, path, fmt);

	target[0] = '\0';
	return rc ? rc : read_link(path, target, size);
}

int dr_read_link_name(const struct dr_env *env, char *name, size_t size, const char *fmt, ...)
{
	char path[PATH_MAX], target[PATH_MAX], *slash;
	int rc = PATH_OF(env, path, fmt);

	name[0] = '\0';
	if (!rc)
		rc = read_link(path, target, sizeof(target));
	if (rc)
		return rc;
	slash = strrchr(target, '/');
	rc = snprintf(name, size, "%s", slash ? slash + 1 : target);
	return rc < (int)size ? 0 : -ENAMETOOLONG;
}

bool dr_exists(const struct dr_env *env, const char *fmt, ...)
{
	char path[PATH_MAX];

	return !PATH_OF(env, path, fmt) && !access(path, F_OK);
}

static int compare(const void *a, const void *b)
{
	return strverscmp(a, b);
}

static void add_name(struct dr_names *names, const char *name)
{
	if (names->num < DR_NAMES_MAX && strlen(name) < DR_NAME_LEN)
		strcpy(names->name[names->num++], name);
}

static void sort_names(struct dr_names *names)
{
	qsort(names->name, (size_t)names->num, DR_NAME_LEN, compare);
}

int dr_list(const struct dr_env *env, struct dr_names *names, const char *fmt, ...)
{
	char path[PATH_MAX];
	struct dirent *e;
	DIR *dir;
	int rc = PATH_OF(env, path, fmt);

	names->num = 0;
	if (rc)
		return rc;
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		add_name(names, e->d_name);
		if (!*env->root)
			dr_record_entry(path, e->d_name);
	}
	closedir(dir);
	sort_names(names);
	return 0;
}

void dr_find_devices(const struct dr_env *env, struct dr_names *devices)
{
	(void)dr_list(env, devices, "/sys/class/infiniband");
}

static bool is_pci(const struct dr_env *env, const char *pci, int vendor, int class)
{
	long long value;

	return !dr_read_number(env, &value, "/sys/bus/pci/devices/%s/vendor", pci) &&
	       value == vendor &&
	       !dr_read_number(env, &value, "/sys/bus/pci/devices/%s/class", pci) &&
	       value >> 16 == class;
}

/* A machine can have thousands of PCI devices, more than struct dr_names has names. class is the
 * first byte of the PCI class. */
static void find_pci(const struct dr_env *env, struct dr_names *found, int vendor, int class)
{
	static const char folder[] = "/sys/bus/pci/devices";
	char path[PATH_MAX];
	struct dirent *e;
	DIR *dir;

	found->num = 0;
	snprintf(path, sizeof(path), "%s%s", env->root, folder);
	dir = opendir(path);
	if (!dir)
		return;
	while ((e = readdir(dir)))
		if (e->d_name[0] != '.' && is_pci(env, e->d_name, vendor, class))
			add_name(found, e->d_name);
	closedir(dir);
	sort_names(found);
}

/* Display controllers and 3D controllers, and GPUs of a container that sysfs does not show. */
void dr_find_gpus(const struct dr_env *env, struct dr_names *gpus)
{
	const struct dr_cuda *cuda = dr_cuda(env);

	find_pci(env, gpus, 0x10de, 3);
	for (int i = 0; i < cuda->num; i++) {
		bool known = false;

		for (int j = 0; j < gpus->num; j++)
			known |= !strcmp(gpus->name[j], cuda->gpus[i].pci);
		if (!known)
			add_name(gpus, cuda->gpus[i].pci);
	}
	sort_names(gpus);
}

void dr_find_nics(const struct dr_env *env, struct dr_names *nics)
{
	find_pci(env, nics, 0x15b3, 2);
}
