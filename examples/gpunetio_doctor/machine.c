/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Facts about the machine that several checks use. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

int dr_kernel_version(const struct dr_env *env, char *release, size_t size, int *major, int *minor)
{
	int rc = dr_read(env, release, size, "/proc/sys/kernel/osrelease");

	if (rc)
		return rc;
	return sscanf(release, "%d.%d", major, minor) == 2 ? 0 : -EINVAL;
}

/* The first word with the form of a version, such as 575.57.08. */
static void copy_version(struct dr_driver *driver, const char *text)
{
	int used;

	for (const char *p = text; *p; p += strcspn(p, " \t"), p += strspn(p, " \t")) {
		unsigned int major, minor;

		used = 0;
		if (sscanf(p, "%3u.%u%n", &major, &minor, &used) == 2 && strcspn(p, " \t") < 32) {
			snprintf(driver->version, sizeof(driver->version), "%.*s",
				 (int)strcspn(p, " \t"), p);
			driver->major = (int)major;
			return;
		}
	}
}

/*
 * /proc/driver/nvidia/version names the kind. Without it, the module's taint flags do: P is set for
 * a module whose licence is not free, and the licence of the open modules is MIT/GPL.
 */
void dr_find_driver(const struct dr_env *env, struct dr_driver *driver)
{
	char line[256], taint[32];

	memset(driver, 0, sizeof(*driver));
	if (!dr_read(env, line, sizeof(line), "/proc/driver/nvidia/version")) {
		copy_version(driver, line);
		driver->kind = strstr(line, "Open Kernel Module") ? DR_DRIVER_OPEN
			       : strstr(line, "Kernel Module")	  ? DR_DRIVER_CLOSED
								  : DR_DRIVER_UNCLEAR;
		return;
	}
	if (dr_read(env, line, sizeof(line), "/sys/module/nvidia/version")) {
		if (!dr_cuda(env)->num)
			return;
		driver->kind = DR_DRIVER_UNCLEAR; /* CUDA uses it */
		strcpy(driver->version, "of unknown version");
		return;
	}
	copy_version(driver, line);
	driver->kind = dr_read(env, taint, sizeof(taint), "/sys/module/nvidia/taint")
			       ? DR_DRIVER_UNCLEAR
		       : strchr(taint, 'P') ? DR_DRIVER_CLOSED
					    : DR_DRIVER_OPEN;
}

static const char *const library_folders[] = {
	"/usr/lib/x86_64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu",
	"/usr/lib64",
	"/lib64",
	"/usr/local/lib",
	"/usr/lib",
};
#define NUM_FOLDERS (sizeof(library_folders) / sizeof(library_folders[0]))

bool dr_find_library(const struct dr_env *env, const char *name, char *path, size_t size)
{
	for (size_t i = 0; i < NUM_FOLDERS; i++)
		if (dr_exists(env, "%s/%s", library_folders[i], name)) {
			snprintf(path, size, "%s/%s", library_folders[i], name);
			return true;
		}
	return false;
}

int dr_rdma_core(const struct dr_env *env, char *file, size_t size)
{
	int version;

	for (size_t i = 0; i < NUM_FOLDERS; i++)
		if (!dr_read_link_name(env, file, size, "%s/libibverbs.so.1", library_folders[i]) &&
		    sscanf(file, "libibverbs.so.1.%*d.%d.", &version) == 1)
			return version;
	return 0;
}

bool dr_has_capability(const struct dr_env *env, unsigned int number)
{
	char text[4096], *line;

	if (dr_read_bytes(env, text, sizeof(text), "/proc/self/status") < 0)
		return false;
	line = strstr(text, "\nCapEff:");
	return line && strtoull(line + strlen("\nCapEff:"), NULL, 16) >> number & 1;
}
