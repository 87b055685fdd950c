/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Checks of each GPU. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"
#include "pci.h"

#define GB10_ID	    0x2e12 /* PCI device, GPU of DGX Spark */
#define HOST_QUEUES "GDAKI_QUEUE_MEM=cpu_gpu"

/* The model as the driver names it, otherwise the PCI device. */
static void read_model(const struct dr_env *env, const char *pci, char *model, size_t size)
{
	char text[4096], *name;
	long long id = 0;

	if (dr_read_bytes(env, text, sizeof(text), "/proc/driver/nvidia/gpus/%s/information", pci) >
		    0 &&
	    (name = strstr(text, "Model:"))) {
		name += strlen("Model:");
		name += strspn(name, " \t");
		snprintf(model, size, "%.*s", (int)strcspn(name, "\n"), name);
		return;
	}
	(void)dr_read_number(env, &id, "/sys/bus/pci/devices/%s/device", pci);
	snprintf(model, size, "PCI device 10de:%04llx", id);
}

bool dr_gpu_is_integrated(const struct dr_env *env, const char *pci)
{
	const struct dr_cuda_gpu *gpu = dr_cuda_find(env, pci);
	long long id;

	if (gpu && gpu->integrated >= 0)
		return gpu->integrated;
	return !dr_read_number(env, &id, "/sys/bus/pci/devices/%s/device", pci) && id == GB10_ID;
}

static void check_bound(const struct dr_env *env, struct dr_report *r, const char *scope,
			const char *pci)
{
	char model[128], driver[64], fix[160];
	int rc = dr_read_link_name(env, driver, sizeof(driver), "/sys/bus/pci/devices/%s/driver",
				   pci);

	read_model(env, pci, model, sizeof(model));
	snprintf(fix, sizeof(fix), "%s%s; modprobe nvidia", rc ? "" : "modprobe -r ",
		 rc ? "" : driver);
	if (!rc && !strcmp(driver, "nvidia"))
		dr_add(r, scope, "gpu-driver", DR_OK, NULL, "%s, used by the NVIDIA driver", model);
	else if (!rc && !strncmp(driver, "vfio", 4))
		dr_add(r, scope, "gpu-driver", DR_FAIL, "give the GPU back to the NVIDIA driver",
		       "%s belongs to a virtual machine (driver %s)", model, driver);
	else if (!rc)
		dr_add(r, scope, "gpu-driver", DR_FAIL, fix,
		       "%s is used by the driver %s, not by the NVIDIA driver", model, driver);
	else if (!dr_exists(env, "/sys/bus/pci/devices/%s", pci))
		dr_add(r, scope, "gpu-driver", DR_UNKNOWN, "nvidia-smi",
		       "CUDA lists the GPU, but sysfs does not show it (a container?), so that "
		       "most of its properties cannot be read");
	else if (rc == -ENOENT)
		dr_add(r, scope, "gpu-driver", DR_FAIL, "modprobe nvidia", "no driver uses %s",
		       model);
	else
		dr_add(r, scope, "gpu-driver", DR_UNKNOWN,
		       "lspci -k -d 10de:", "%s: its driver could not be read: %s", model,
		       strerror(-rc));
}

/* ---- how a NIC reaches the memory of the GPU ---- */

/* Returns why GPU memory cannot be exported as a dmabuf and registered, NULL if nothing is known
 * against it. text: buffer for the reason. */
static const char *no_dmabuf(const struct dr_env *env, const char *pci, char *text, size_t size)
{
	const struct dr_cuda_gpu *gpu = dr_cuda_find(env, pci);
	char release[128], file[DR_NAME_LEN];
	struct dr_driver driver;
	int major, minor, version = dr_rdma_core(env, file, sizeof(file));

	dr_find_driver(env, &driver);
	if (driver.kind == DR_DRIVER_CLOSED)
		return "the kernel modules of the driver are closed";
	if (driver.major && driver.major < DMABUF_DRIVER)
		return "the driver is older than 515";
	if (gpu && gpu->dmabuf == 0)
		return "CUDA does not export memory of this GPU";
	if (!dr_kernel_version(env, release, sizeof(release), &major, &minor) &&
	    (major < 5 || (major == 5 && minor < 12))) {
		snprintf(text, size, "Linux %s is older than 5.12", release);
		return text;
	}
	if (version && version < DMABUF_RDMA_CORE) {
		snprintf(text, size, "rdma-core %d is older than %d", version, DMABUF_RDMA_CORE);
		return text;
	}
	return NULL;
}

static void check_memory(const struct dr_env *env, struct dr_report *r, const char *scope,
			 const char *pci)
{
	char text[192];
	const char *why = no_dmabuf(env, pci, text, sizeof(text));
	const struct dr_cuda_gpu *gpu = dr_cuda_find(env, pci);
	bool peermem = dr_exists(env, "/sys/module/" PEERMEM_MODULE) ||
		       dr_exists(env, "/sys/module/" OLD_PEERMEM);
	struct dr_driver driver;

	dr_find_driver(env, &driver);
	if (dr_gpu_is_integrated(env, pci))
		dr_add(r, scope, "gpu-memory", DR_WARN,
		       HOST_QUEUES
		       " puts queues into pinned host memory; allocate payload there, too "
		       "(cudaHostAlloc)",
		       "an integrated GPU shares the memory of the CPU: NICs cannot access "
		       "memory of cudaMalloc, neither by dmabuf nor by nvidia-peermem");
	else if (driver.kind == DR_DRIVER_NONE)
		dr_add(r, scope, "gpu-memory", DR_UNKNOWN, "modprobe nvidia",
		       "the NVIDIA driver is not loaded");
	else if (!why && (driver.kind == DR_DRIVER_OPEN || (gpu && gpu->dmabuf == 1)))
		dr_add(r, scope, "gpu-memory", DR_OK, NULL,
		       "driver, kernel and rdma-core can register GPU memory by dmabuf%s",
		       peermem ? "; nvidia-peermem is loaded, too" : "");
	else if (peermem)
		dr_add(r, scope, "gpu-memory", DR_OK, NULL,
		       "GPU memory is registered by peer memory (no dmabuf: %s)",
		       why ? why : "whether the driver is open is not known");
	else if (!why)
		dr_add(r, scope, "gpu-memory", DR_UNKNOWN, "modinfo -F license nvidia",
		       "whether the driver exports dmabufs could not be read, and "
		       "nvidia-peermem is not loaded");
	else
		dr_add(r, scope, "gpu-memory", DR_WARN,
		       "modprobe nvidia-peermem, or install the open kernel modules (package "
		       "nvidia-open); without them " HOST_QUEUES " puts queues into host memory",
		       "NICs cannot access GPU memory: no dmabuf (%s), and nvidia-peermem is not "
		       "loaded",
		       why);
}

/* ---- BAR1 ---- */

#define IORESOURCE_MEM_ 0x200 /* linux/ioport.h */

/* Finds the second memory resource, which the driver calls BAR1: on GPUs whose first resource has a
 * 64-bit address it is the PCI resource 2. Returns its index, -1 if there is none. */
static int find_bar1(const struct dr_env *env, const char *pci, unsigned long long *size)
{
	unsigned long long start, end, flags;
	char text[4096], *save, *line;
	int index = 0, found = 0;

	if (dr_read_bytes(env, text, sizeof(text), "/sys/bus/pci/devices/%s/resource", pci) < 0)
		return -1;
	for (line = strtok_r(text, "\n", &save); line && index < 6;
	     line = strtok_r(NULL, "\n", &save), index++) {
		if (sscanf(line, "%llx %llx %llx", &start, &end, &flags) != 3 ||
		    !(flags & IORESOURCE_MEM_) || end <= start)
			continue;
		if (++found == 2) {
			*size = end - start + 1;
			return index;
		}
	}
	return -1;
}

/* The largest size in bytes that the device supports; 0: not known. */
static unsigned long long largest_bar(const struct dr_env *env, const char *pci, int index)
{
	unsigned long long sizes;
	char text[64];

	if (dr_read(env, text, sizeof(text), "/sys/bus/pci/devices/%s/resource%d_resize", pci,
		    index) ||
	    !(sizes = strtoull(text, NULL, 16)))
		return 0;
	return 1ULL << (63 - __builtin_clzll(sizes)) << 20; /* bit n: 2^n MiB */
}

static void check_bar1(const struct dr_env *env, struct dr_report *r, const char *scope,
		       const char *pci)
{
	static const char fix[] = "enable \"Above 4G decoding\" and \"Resizable BAR\" in the BIOS; "
				  "in a virtual machine, enlarge the MMIO window";
	const struct dr_cuda_gpu *gpu = dr_cuda_find(env, pci);
	unsigned long long size = 0, largest, mib;
	int index = find_bar1(env, pci, &size);

	mib = size >> 20;
	if (index < 0) {
		dr_add(r, scope, "bar1", DR_UNKNOWN, "nvidia-smi -q -d MEMORY | grep -A 3 BAR1",
		       "the size of BAR1 could not be read");
		return;
	}
	largest = largest_bar(env, pci, index);
	if (gpu && gpu->memory && size >= gpu->memory)
		dr_add(r, scope, "bar1", DR_OK, NULL,
		       "BAR1 has %llu MiB, all memory of the GPU (%llu MiB)", mib,
		       gpu->memory >> 20);
	else if (gpu && gpu->memory)
		dr_add(r, scope, "bar1", DR_WARN, fix,
		       "BAR1 has %llu MiB, the GPU %llu MiB: not all of its memory can be "
		       "registered at a time",
		       mib, gpu->memory >> 20);
	else if (largest > size)
		dr_add(r, scope, "bar1", DR_WARN, fix,
		       "BAR1 has %llu MiB, and the GPU supports %llu MiB", mib, largest >> 20);
	else if (mib <= 256)
		dr_add(r, scope, "bar1", DR_WARN, fix,
		       "BAR1 has %llu MiB: no more GPU memory can be registered", mib);
	else
		dr_add(r, scope, "bar1", DR_OK, NULL,
		       "BAR1 has %llu MiB (the size of the GPU's memory was not read)", mib);
}

void dr_check_gpu(const struct dr_env *env, struct dr_report *r)
{
	for (int i = 0; i < env->gpus.num; i++) {
		const char *pci = env->gpus.name[i];
		char scope[DR_NAME_LEN + 8];

		snprintf(scope, sizeof(scope), "gpu %s", pci);
		check_bound(env, r, scope, pci);
		check_memory(env, r, scope, pci);
		if (!dr_gpu_is_integrated(env, pci)) {
			check_bar1(env, r, scope, pci);
			dr_check_link(env, r, scope, pci, true);
		}
		dr_check_numa(env, r, scope, pci);
		dr_check_iommu_group(env, r, scope, pci);
	}
}
