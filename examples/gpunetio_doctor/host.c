/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Checks of the system: kernel, rdma-core, limits, modules of the RDMA stack, container, IOMMU. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "machine.h"

#define HOST	      "host"
#define CAP_IPC_LOCK_ 14 /* linux/capability.h */

static void check_kernel(const struct dr_env *env, struct dr_report *r)
{
	static const char upgrade[] = "install a kernel of version 6.2 or newer";
	char release[128], taint[32];
	int major, minor, rc;
	bool apart; /* mlx5 drivers that are not part of the kernel, as those of DOCA-Host */

	rc = dr_kernel_version(env, release, sizeof(release), &major, &minor);
	if (rc) {
		dr_add(r, HOST, "kernel", DR_UNKNOWN, "uname -r",
		       "the kernel version could not be read: %s", strerror(-rc));
		return;
	}
	apart = !dr_read(env, taint, sizeof(taint), "/sys/module/mlx5_core/taint") &&
		strchr(taint, 'O');
	if (major < 5 || (major == 5 && minor < 11))
		dr_add(r, HOST, "kernel", apart ? DR_NOTE : DR_WARN, upgrade,
		       "Linux %s: queue memory needs 5.11%s", release,
		       apart ? ", or the drivers of a newer stack: mlx5_core is such a driver"
			     : ", or a newer driver stack (DOCA-Host)");
	else if (major == 5 && minor < 12)
		dr_add(r, HOST, "kernel", DR_WARN, upgrade,
		       "Linux %s: memory regions from a dmabuf need 5.12", release);
	else if (major < 6 || (major == 6 && minor < 2))
		dr_add(r, HOST, "kernel", DR_WARN, upgrade,
		       "Linux %s: NVIDIA's guide requires 6.2 for dmabuf with the open GPU modules",
		       release);
	else
		dr_add(r, HOST, "kernel", DR_OK, NULL, "Linux %s (6.2 or newer)", release);
}

static void check_rdma_core(const struct dr_env *env, struct dr_report *r)
{
	char file[DR_NAME_LEN];
	int version = dr_rdma_core(env, file, sizeof(file));

	if (!version)
		dr_add(r, HOST, "rdma-core", DR_UNKNOWN,
		       "dpkg -l libibverbs1, or rpm -q libibverbs",
		       "libibverbs.so.1 was not found in the usual library folders, so its "
		       "version is not known (dmabuf needs %d)",
		       DMABUF_RDMA_CORE);
	else if (version < DMABUF_RDMA_CORE)
		dr_add(r, HOST, "rdma-core", DR_WARN, "install rdma-core 34 or newer, or DOCA-Host",
		       "rdma-core %d (%s) cannot register a dmabuf: that needs %d", version, file,
		       DMABUF_RDMA_CORE);
	else
		dr_add(r, HOST, "rdma-core", DR_OK, NULL, "rdma-core %d (%s)", version, file);
}

/* Returns the soft limit in bytes, -1: unlimited, -2: not found. */
static long long locked_limit(const char *limits)
{
	static const char name[] = "Max locked memory";
	const char *line = strstr(limits, name);

	if (!line)
		return -2;
	line += sizeof(name) - 1;
	line += strspn(line, " ");
	return !strncmp(line, "unlimited", 9) ? -1 : strtoll(line, NULL, 10);
}

static void check_memlock(const struct dr_env *env, struct dr_report *r)
{
	static const char fix[] =
		"printf '* soft memlock unlimited\\n* hard memlock unlimited\\n' > "
		"/etc/security/limits.d/rdma.conf, then log in again; in a container: docker run "
		"--ulimit memlock=-1";
	char limits[4096] = "";
	long long limit;

	(void)dr_read_bytes(env, limits, sizeof(limits), "/proc/self/limits");
	limit = locked_limit(limits);
	if (limit == -2)
		dr_add(r, HOST, "memlock", DR_UNKNOWN, "ulimit -l",
		       "the limit of locked memory could not be read");
	else if (limit == -1)
		dr_add(r, HOST, "memlock", DR_OK, NULL, "locked memory is not limited");
	else if (dr_has_capability(env, CAP_IPC_LOCK_))
		dr_add(r, HOST, "memlock", DR_NOTE, fix,
		       "locked memory is limited to %lld KiB, but not for this process, which "
		       "has CAP_IPC_LOCK",
		       limit >> 10);
	else
		dr_add(r, HOST, "memlock", DR_WARN, fix,
		       "locked memory is limited to %lld KiB; registering more memory than that "
		       "fails",
		       limit >> 10);
}

static void check_modules(const struct dr_env *env, struct dr_report *r)
{
	static const char *const modules[] = { "ib_uverbs", "mlx5_core", "mlx5_ib" };
	char missing[128] = "", fix[160];
	struct dr_names names;

	if (!dr_list(env, &names, "/sys/class/infiniband") && names.num) {
		dr_add(r, HOST, "rdma-modules", DR_OK, NULL, "the kernel has %d RDMA device%s",
		       names.num, names.num == 1 ? "" : "s");
		return;
	}
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
		if (!dr_exists(env, "/sys/module/%s", modules[i]))
			sprintf(missing + strlen(missing), " %s", modules[i]);
	snprintf(fix, sizeof(fix), "modprobe -a%s", missing);
	if (*missing)
		dr_add(r, HOST, "rdma-modules", DR_WARN, fix,
		       "the kernel has no RDMA device; not loaded:%s", missing);
	else
		dr_add(r, HOST, "rdma-modules", DR_WARN, "lspci -d 15b3:",
		       "the kernel has no RDMA device, although ib_uverbs, mlx5_core and "
		       "mlx5_ib are loaded");
}

/* Returns why the process seems to run in a container, NULL if nothing shows it. */
static const char *container(const struct dr_env *env)
{
	static const char *const words[] = { "docker", "kubepods", "containerd", "libpod", "lxc" };
	static char text[64];
	char cgroup[4096] = "";

	if (dr_exists(env, "/.dockerenv"))
		return "/.dockerenv exists";
	if (dr_exists(env, "/run/.containerenv"))
		return "/run/.containerenv exists";
	(void)dr_read_bytes(env, cgroup, sizeof(cgroup), "/proc/1/cgroup");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(cgroup, words[i])) {
			snprintf(text, sizeof(text), "/proc/1/cgroup contains \"%s\"", words[i]);
			return text;
		}
	return NULL;
}

static void check_devices(const struct dr_env *env, struct dr_report *r)
{
	const char *why = container(env);
	struct dr_names names, rdma;
	int nodes = 0, rc = dr_list(env, &names, "/dev/infiniband");
	bool devices = !dr_list(env, &rdma, "/sys/class/infiniband") && rdma.num;

	for (int i = 0; i < names.num; i++)
		nodes += !strncmp(names.name[i], "uverbs", 6);
	if (nodes)
		dr_add(r, HOST, "rdma-device-files", DR_OK, NULL,
		       "/dev/infiniband has %d uverbs file%s", nodes, nodes == 1 ? "" : "s");
	else if (rc == -EACCES)
		dr_add(r, HOST, "rdma-device-files", DR_UNKNOWN, "ls -l /dev/infiniband",
		       "/dev/infiniband could not be read: %s", strerror(EACCES));
	else
		dr_add(r, HOST, "rdma-device-files", devices ? DR_FAIL : DR_WARN,
		       !devices ? "load the modules that rdma-modules names"
		       : why	? "docker run --device /dev/infiniband ..."
				: "modprobe ib_uverbs",
		       "/dev/infiniband has no uverbs file%s",
		       devices ? ", so that no RDMA device of the kernel can be opened" : "");
	if (why)
		dr_add(r, HOST, "container", DR_NOTE,
		       "docker run --device /dev/infiniband --ulimit memlock=-1 --network host "
		       "--gpus all ...",
		       "this seems to be a container (%s): it needs the device files, unlimited "
		       "locked memory and the network namespace of the port",
		       why);
}

/* The words of the kernel's command line that concern the IOMMU. */
static void iommu_words(const struct dr_env *env, char *words, size_t size)
{
	char line[4096], *save, *word;
	size_t len = 0;

	words[0] = '\0';
	if (dr_read(env, line, sizeof(line), "/proc/cmdline"))
		return;
	for (word = strtok_r(line, " ", &save); word; word = strtok_r(NULL, " ", &save))
		if (strstr(word, "iommu") && len + strlen(word) + 2 < size)
			len += (size_t)sprintf(words + len, " %s", word);
}

static void check_iommu(const struct dr_env *env, struct dr_report *r)
{
	struct dr_names iommus;
	char words[256];
	int rc = dr_list(env, &iommus, "/sys/class/iommu");

	iommu_words(env, words, sizeof(words));
	if (rc)
		dr_add(r, HOST, "iommu", DR_UNKNOWN, "dmesg | grep -i -e iommu -e dmar",
		       "/sys/class/iommu could not be read: %s", strerror(-rc));
	else if (!iommus.num)
		dr_add(r, HOST, "iommu", DR_OK, NULL, "no IOMMU is active%s%s",
		       *words ? "; the kernel was started with" : "", words);
	else
		dr_add(r, HOST, "iommu", DR_NOTE, NULL,
		       "%d IOMMU%s active (%s ...)%s%s; the results of the devices show which of "
		       "them are affected",
		       iommus.num, iommus.num == 1 ? " is" : "s are", iommus.name[0],
		       *words ? "; the kernel was started with" : "", words);
}

void dr_check_host(const struct dr_env *env, struct dr_report *r)
{
	check_kernel(env, r);
	check_rdma_core(env, r);
	dr_check_driver(env, r);
	check_modules(env, r);
	check_devices(env, r);
	check_memlock(env, r);
	check_iommu(env, r);
}
