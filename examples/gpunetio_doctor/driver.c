/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Checks of the NVIDIA driver, of its settings and of modules that belong to it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "machine.h"

#define HOST	       "host"
#define CAP_SYS_ADMIN_ 21 /* linux/capability.h */

static void check_kind(const struct dr_driver *driver, struct dr_report *r)
{
	static const char open_modules[] =
		"install the open kernel modules (package nvidia-open), then reboot";

	switch (driver->kind) {
	case DR_DRIVER_OPEN:
		dr_add(r, HOST, "nvidia-driver", driver->major < DMABUF_DRIVER ? DR_WARN : DR_OK,
		       driver->major < DMABUF_DRIVER ? "install driver 515 or newer" : NULL,
		       "driver %s with open kernel modules%s", driver->version,
		       driver->major < DMABUF_DRIVER ? ": dmabuf needs 515" : "");
		break;
	case DR_DRIVER_CLOSED:
		dr_add(r, HOST, "nvidia-driver", DR_WARN, open_modules,
		       "driver %s with closed kernel modules: they export no dmabuf, so that GPU "
		       "memory needs nvidia-peermem",
		       driver->version);
		break;
	case DR_DRIVER_UNCLEAR:
		dr_add(r, HOST, "nvidia-driver", DR_UNKNOWN, "modinfo -F license nvidia",
		       "driver %s; whether its kernel modules are open could not be read "
		       "(licence \"Dual MIT/GPL\": open, \"NVIDIA\": closed)",
		       driver->version);
		break;
	case DR_DRIVER_NONE:
		dr_add(r, HOST, "nvidia-driver", DR_WARN,
		       "modprobe nvidia; if there is no such module, install package nvidia-open",
		       "the NVIDIA driver is not loaded: /proc/driver/nvidia and "
		       "/sys/module/nvidia do not exist");
		break;
	}
}

static void check_cuda(const struct dr_env *env, struct dr_report *r)
{
	const struct dr_cuda *cuda = dr_cuda(env);
	int major = cuda->version / 1000, minor = cuda->version % 1000 / 10;

	if (!cuda->version)
		dr_add(r, HOST, "cuda", DR_UNKNOWN, "nvidia-smi",
		       "the CUDA version of the driver could not be read: %s", cuda->error);
	else if (cuda->version < DMABUF_CUDA)
		dr_add(r, HOST, "cuda", DR_WARN, "install driver 515 or newer",
		       "the driver has CUDA %d.%d: dmabuf needs 11.7", major, minor);
	else if (*cuda->error)
		dr_add(r, HOST, "cuda", DR_WARN, "nvidia-smi",
		       "the driver has CUDA %d.%d, but CUDA cannot be used: %s", major, minor,
		       cuda->error);
	else
		dr_add(r, HOST, "cuda", DR_OK, NULL, "the driver has CUDA %d.%d (11.7 or newer)",
		       major, minor);
}

static void check_peermem(const struct dr_env *env, const struct dr_driver *driver,
			  struct dr_report *r)
{
	if (dr_exists(env, "/sys/module/" PEERMEM_MODULE))
		dr_add(r, HOST, "nvidia-peermem", DR_OK, NULL, PEERMEM_MODULE " is loaded");
	else if (dr_exists(env, "/sys/module/" OLD_PEERMEM))
		dr_add(r, HOST, "nvidia-peermem", DR_NOTE,
		       "modprobe -r " OLD_PEERMEM "; modprobe nvidia-peermem",
		       OLD_PEERMEM " is loaded, which nvidia-peermem of the driver replaces");
	else
		dr_add(r, HOST, "nvidia-peermem",
		       driver->kind == DR_DRIVER_OPEN ? DR_NOTE : DR_WARN,
		       "modprobe nvidia-peermem",
		       "nvidia-peermem is not loaded%s (\"Invalid argument\" of modprobe: the "
		       "RDMA drivers have no peer memory interface, as those of DOCA-Host have)",
		       driver->kind == DR_DRIVER_OPEN ? "; dmabuf replaces it" : "");
}

static void check_gdrcopy(const struct dr_env *env, struct dr_report *r)
{
	static const char source[] = "https://github.com/NVIDIA/gdrcopy";
	char path[256];
	bool device = dr_exists(env, "/dev/gdrdrv");
	bool library = dr_find_library(env, "libgdrapi.so.2", path, sizeof(path));

	if (device && library)
		dr_add(r, HOST, "gdrcopy", DR_OK, NULL, "/dev/gdrdrv and %s exist", path);
	else if (library)
		dr_add(r, HOST, "gdrcopy", DR_NOTE, "modprobe gdrdrv",
		       "%s exists, but /dev/gdrdrv does not: memory of type GPU_CPU is allocated "
		       "without GDRCopy",
		       path);
	else if (device)
		dr_add(r, HOST, "gdrcopy", DR_NOTE,
		       "install package libgdrapi, or set GDRCOPY_PATH_L to its folder",
		       "/dev/gdrdrv exists, but libgdrapi.so.2 was not found in the usual "
		       "library folders");
	else
		dr_add(r, HOST, "gdrcopy", DR_NOTE, source,
		       "GDRCopy is not installed (no /dev/gdrdrv, no libgdrapi.so.2); it is "
		       "optional");
}

/* Returns 1 if text has PeerMappingOverride with a value other than 0. */
static int has_override(const char *text)
{
	static const char name[] = "PeerMappingOverride=";
	const char *p = text ? strstr(text, name) : NULL;

	return p && strtol(p + sizeof(name) - 1, NULL, 0) != 0;
}

/* Searches the configuration of modprobe for a line that sets it. file: its name. */
static bool find_option(const struct dr_env *env, char *file, size_t size)
{
	char text[DR_TEXT_LEN], *save, *line;
	struct dr_names names;

	(void)dr_list(env, &names, "/etc/modprobe.d");
	for (int i = 0; i < names.num; i++) {
		const char *dot = strrchr(names.name[i], '.');

		if (!dot || strcmp(dot, ".conf") ||
		    dr_read_bytes(env, text, sizeof(text), "/etc/modprobe.d/%s", names.name[i]) < 0)
			continue;
		for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
			if (!strncmp(line, "options nvidia ", 15) && has_override(line)) {
				snprintf(file, size, "/etc/modprobe.d/%s", names.name[i]);
				return true;
			}
	}
	return false;
}

/* A handler with which the GPU writes to the register of the NIC. */
static bool gpu_rings(const struct dr_env *env)
{
	return env->handler == 2 || env->handler == 6 || env->handler == 10;
}

static void add_not_set(const struct dr_env *env, struct dr_report *r)
{
	static const char rebuild[] =
		"update-initramfs -u (Debian, Ubuntu) or dracut -f (RHEL, SUSE), then reboot";
	bool admin = dr_has_capability(env, CAP_SYS_ADMIN_);
	char file[DR_NAME_LEN + 32], fix[512];

	if (find_option(env, file, sizeof(file))) {
		dr_add(r, HOST, "peer-mapping", DR_WARN, rebuild,
		       "%s sets PeerMappingOverride, but the loaded driver does not have it", file);
		return;
	}
	snprintf(fix, sizeof(fix),
		 "echo 'options nvidia NVreg_RegistryDwords=\"PeerMappingOverride=1;\"' > "
		 "/etc/modprobe.d/nvidia-peer-mapping.conf; %s",
		 rebuild);
	dr_add(r, HOST, "peer-mapping", admin ? DR_NOTE : DR_WARN, fix,
	       "PeerMappingOverride is not set: the driver maps the register of the NIC only for "
	       "processes with CAP_SYS_ADMIN, which this process %s; handler%s 2, 6 and 10 need "
	       "it%s",
	       admin ? "has" : "does not have", gpu_rings(env) ? " was selected, and" : "s",
	       gpu_rings(env) ? "" : ", and AUTO takes CPU_PROXY without it");
}

/* The file has lines such as: RegistryDwords: "PeerMappingOverride=1;" */
static void check_peer_mapping(const struct dr_env *env, struct dr_report *r)
{
	char params[DR_TEXT_LEN], *save, *line;
	int rc = dr_read_bytes(env, params, sizeof(params), "/proc/driver/nvidia/params");

	if (rc < 0) {
		dr_add(r, HOST, "peer-mapping", DR_UNKNOWN,
		       "grep RegistryDwords /proc/driver/nvidia/params",
		       "/proc/driver/nvidia/params could not be read: %s", strerror(-rc));
		return;
	}
	for (line = strtok_r(params, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (strncmp(line, "RegistryDwords", 14) || !has_override(line))
			continue;
		if (line[14] == ':')
			dr_add(r, HOST, "peer-mapping", DR_OK, NULL,
			       "PeerMappingOverride=1 is set: GPUs may map the register of a NIC");
		else
			dr_add(r, HOST, "peer-mapping", DR_NOTE, NULL,
			       "PeerMappingOverride is set for some GPUs only: %s", line);
		return;
	}
	add_not_set(env, r);
}

/* nvidia-persistenced keeps the GPUs initialized, unless it has --no-persistence-mode. */
static void check_persistence(const struct dr_env *env, struct dr_report *r)
{
	static const char set[] = "nvidia-smi -pm 1";
	const struct dr_cuda *cuda = dr_cuda(env);
	char cmdline[4096] = "";
	long long pid;
	int on = 0, off = 0, len = -1;

	for (int i = 0; i < cuda->num; i++) {
		on += cuda->gpus[i].persistence == 1;
		off += cuda->gpus[i].persistence == 0;
	}
	if (on + off) {
		dr_add(r, HOST, "persistence", off ? DR_WARN : DR_OK, off ? set : NULL,
		       "persistence mode is on for %d of %d GPUs%s", on, on + off,
		       off ? "; without it the first use of a GPU takes seconds" : "");
		return;
	}
	if (!dr_read_number(env, &pid, "/run/nvidia-persistenced/nvidia-persistenced.pid"))
		len = dr_read_bytes(env, cmdline, sizeof(cmdline), "/proc/%lld/cmdline", pid);
	for (int i = 0; i < len; i++)
		if (!cmdline[i])
			cmdline[i] = ' ';
	if (len > 0 && strstr(cmdline, "nvidia-persistenced") &&
	    !strstr(cmdline, "--no-persistence-mode"))
		dr_add(r, HOST, "persistence", DR_OK, NULL,
		       "nvidia-persistenced runs and enables persistence mode");
	else
		dr_add(r, HOST, "persistence", DR_UNKNOWN,
		       "nvidia-smi --query-gpu=persistence_mode --format=csv; if off: nvidia-smi "
		       "-pm 1",
		       "persistence mode could not be read: %s",
		       len > 0 && strstr(cmdline, "nvidia-persistenced")
			       ? "nvidia-persistenced runs with --no-persistence-mode"
			       : "nvidia-persistenced does not run, and the driver was not "
				 "queried");
}

void dr_check_driver(const struct dr_env *env, struct dr_report *r)
{
	struct dr_driver driver;

	if (env->gpu && !strcmp(env->gpu, DR_HOST_GPU))
		return; /* CPU threads need none of this */
	dr_find_driver(env, &driver);
	if (driver.kind == DR_DRIVER_NONE && !env->gpus.num) {
		dr_add(r, HOST, "nvidia-driver", DR_NOTE, NULL,
		       "no NVIDIA GPU and no NVIDIA driver; only CPU threads (-g host) can be "
		       "used");
		return;
	}
	check_kind(&driver, r);
	if (driver.kind == DR_DRIVER_NONE)
		return;
	check_cuda(env, r);
	check_peermem(env, &driver, r);
	check_gdrcopy(env, r);
	check_peer_mapping(env, r);
	check_persistence(env, r);
}
