/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What the CUDA driver reports. A child process queries it, because a process that has called
 * cuInit cannot use CUDA in its children. It prints one line for the version and one for each GPU;
 * a recorded machine has the same lines in its file cuda.txt:
 *
 *   version 12080
 *   gpu 0000:8a:00.0 memory 150109880320 integrated 0 dmabuf 1 persistence 1
 *   error cuInit: 999
 */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "machine.h"

/* Values of enum CUdevice_attribute. */
#define ATTRIBUTE_INTEGRATED 18
#define ATTRIBUTE_DMABUF     124

struct cuda_calls {
	int (*init)(unsigned int flags);
	int (*version)(int *version);
	int (*count)(int *count);
	int (*get)(int *device, int ordinal);
	int (*pci)(char *text, int len, int device);
	int (*memory)(size_t *bytes, int device);
	int (*attribute)(int *value, int attribute, int device);
};

static int load(struct cuda_calls *c)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	const struct {
		void **call;
		const char *name;
	} symbols[] = {
		{ (void **)&c->init, "cuInit" },
		{ (void **)&c->version, "cuDriverGetVersion" },
		{ (void **)&c->count, "cuDeviceGetCount" },
		{ (void **)&c->get, "cuDeviceGet" },
		{ (void **)&c->pci, "cuDeviceGetPCIBusId" },
		{ (void **)&c->memory, "cuDeviceTotalMem_v2" },
		{ (void **)&c->attribute, "cuDeviceGetAttribute" },
	};

	if (!lib) {
		printf("error %s\n", dlerror());
		return 1;
	}
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		*symbols[i].call = dlsym(lib, symbols[i].name);
		if (!*symbols[i].call) {
			printf("error libcuda.so.1 has no %s\n", symbols[i].name);
			return 1;
		}
	}
	return 0;
}

/* Returns the persistence mode that the management library (NVML) reports, -1 if it does not. */
static int persistence(const char *pci)
{
	void *lib = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	int (*init)(void), (*find)(const char *pci, void **device), (*mode)(void *device, int *on);
	void *device;
	int on;

	if (!lib)
		return -1;
	*(void **)&init = dlsym(lib, "nvmlInit_v2");
	*(void **)&find = dlsym(lib, "nvmlDeviceGetHandleByPciBusId_v2");
	*(void **)&mode = dlsym(lib, "nvmlDeviceGetPersistenceMode");
	if (!init || !find || !mode || init() || find(pci, &device) || mode(device, &on))
		return -1;
	return on;
}

static int attribute(const struct cuda_calls *c, int which, int device)
{
	int value;

	return c->attribute(&value, which, device) ? -1 : value;
}

static int query(const void *unused)
{
	int version = 0, count = 0, device, rc;
	struct cuda_calls c;

	(void)unused;
	if (load(&c))
		return 1;
	if (!c.version(&version) && version)
		printf("version %d\n", version);
	rc = c.init(0);
	if (!rc)
		rc = c.count(&count);
	if (rc) {
		printf("error cuInit: %d\n", rc);
		return 1;
	}
	for (int i = 0; i < count; i++) {
		char pci[32];
		size_t memory = 0;

		if (c.get(&device, i) || c.pci(pci, sizeof(pci), device) ||
		    c.memory(&memory, device))
			continue;
		for (char *p = pci; *p; p++)
			*p = (char)tolower((unsigned char)*p);
		printf("gpu %s memory %zu integrated %d dmabuf %d persistence %d\n", pci, memory,
		       attribute(&c, ATTRIBUTE_INTEGRATED, device),
		       attribute(&c, ATTRIBUTE_DMABUF, device), persistence(pci));
	}
	return 0;
}

static void parse_line(struct dr_cuda *cuda, const char *line)
{
	struct dr_cuda_gpu *gpu = &cuda->gpus[cuda->num];

	if (sscanf(line, "version %d", &cuda->version) == 1)
		return;
	if (!strncmp(line, "error ", 6))
		snprintf(cuda->error, sizeof(cuda->error), "%s", line + 6);
	else if (cuda->num < DR_NAMES_MAX &&
		 sscanf(line, "gpu %15s memory %llu integrated %d dmabuf %d persistence %d",
			gpu->pci, &gpu->memory, &gpu->integrated, &gpu->dmabuf,
			&gpu->persistence) == 5)
		cuda->num++;
}

const struct dr_cuda *dr_cuda(const struct dr_env *env)
{
	static struct dr_cuda cuda;
	static bool done;
	char text[8192], *save, *line;
	int rc;

	if (done)
		return &cuda;
	done = true;
	if (*env->root) {
		rc = dr_read_bytes(env, text, sizeof(text), "/cuda.txt");
		if (rc < 0)
			snprintf(cuda.error, sizeof(cuda.error), "%s/cuda.txt: %s", env->root,
				 strerror(-rc));
	} else {
		rc = dr_capture(query, NULL, env->timeout_s, text, sizeof(text));
		if (rc < 0)
			snprintf(cuda.error, sizeof(cuda.error), "CUDA driver: %s", strerror(-rc));
		dr_record_text("/cuda.txt", text);
	}
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		parse_line(&cuda, line);
	return &cuda;
}

const struct dr_cuda_gpu *dr_cuda_find(const struct dr_env *env, const char *pci)
{
	const struct dr_cuda *cuda = dr_cuda(env);

	for (int i = 0; i < cuda->num; i++)
		if (!strcmp(cuda->gpus[i].pci, pci))
			return &cuda->gpus[i];
	return NULL;
}
