/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The GPU and the NIC of a rank. The ranks of a host take the GPUs in turn: with as many ranks as
 * GPUs each rank has a GPU of its own. Of the NICs a rank takes one that shares the most levels of
 * the PCIe tree with its GPU. Ranks with several such NICs take these in turn.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>

#include "alltoall_rank.h"

#define MAX_NAMES 256 /* of a list; further devices of the host are not used */
#define GPUS	  "/proc/driver/nvidia/gpus"

struct names {
	int num;
	char name[MAX_NAMES][64];
};

static int add(struct names *n, const char *name, size_t len)
{
	if (!len)
		return ex_error("empty name in a list");
	if (n->num == MAX_NAMES || len >= sizeof(n->name[0]))
		return ex_error("more than %d names in a list, or a name of more than %zu "
				"characters",
				MAX_NAMES, sizeof(n->name[0]) - 1);
	snprintf(n->name[n->num++], sizeof(n->name[0]), "%.*s", (int)len, name);
	return 0;
}

static int split(struct names *n, const char *text)
{
	for (;; text++) {
		size_t len = strcspn(text, ",");

		if (add(n, text, len))
			return -1;
		text += len;
		if (!*text)
			return 0;
	}
}

static int by_name(const void *a, const void *b)
{
	return strcasecmp(a, b);
}

/* A container can list GPUs that it cannot open: those without a device file do not count. */
static bool usable(const char *gpu)
{
	char path[PATH_MAX], line[128];
	unsigned int minor;
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), GPUS "/%s/information", gpu);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Device Minor: %u", &minor) == 1) {
			snprintf(path, sizeof(path), "/dev/nvidia%u", minor);
			found = !access(path, R_OK | W_OK);
		}
	if (f)
		fclose(f);
	return found;
}

static int list_gpus(struct names *n)
{
	DIR *dir = opendir(GPUS);
	struct dirent *d;
	int rc = 0;

	while (dir && !rc && (d = readdir(dir)))
		if (d->d_name[0] != '.' && usable(d->d_name))
			rc = add(n, d->d_name, strlen(d->d_name));
	if (dir)
		closedir(dir);
	if (!rc && !n->num)
		return ex_error("-g, --gpu all: no GPU in " GPUS ": load the NVIDIA driver, or "
				"use -g host");
	qsort(n->name, (size_t)n->num, sizeof(n->name[0]), by_name);
	return rc;
}

static int list_devices(struct names *n, uint8_t port_num)
{
	int num = 0, rc = 0;
	struct ibv_device **list = ibv_get_device_list(&num);

	for (int i = 0; list && i < num && n->num < MAX_NAMES && !rc; i++) {
		struct ibv_context *ctx = mlx5dv_is_supported(list[i]) ? ibv_open_device(list[i])
								       : NULL;
		const char *name = ibv_get_device_name(list[i]);
		struct ibv_port_attr port;

		if (ctx && !ibv_query_port(ctx, port_num, &port) && port.state == IBV_PORT_ACTIVE)
			rc = add(n, name, strlen(name));
		if (ctx)
			ibv_close_device(ctx);
	}
	if (list)
		ibv_free_device_list(list);
	return rc;
}

/* Number of levels of the PCIe tree that both have in common; 0 if one of them has no path. */
static int common_levels(const char *gpu, const char *device)
{
	char link[256], a[PATH_MAX], b[PATH_MAX];
	unsigned int domain = 0, bus, slot, fn;
	int levels = 0;

	if (sscanf(gpu, "%x:%x:%x.%x", &domain, &bus, &slot, &fn) != 4) {
		domain = 0;
		if (sscanf(gpu, "%x:%x.%x", &bus, &slot, &fn) != 3)
			return 0;
	}
	snprintf(link, sizeof(link), "/sys/bus/pci/devices/%04x:%02x:%02x.%x", domain, bus, slot,
		 fn);
	if (!realpath(link, a))
		return 0;
	snprintf(link, sizeof(link), "/sys/class/infiniband/%.64s/device", device);
	if (!realpath(link, b))
		return 0;
	for (size_t i = 0; a[i] && a[i] == b[i]; i++)
		levels += a[i] == '/';
	return levels;
}

/* Keeps the devices that are nearest to the GPU. */
static void keep_nearest(struct names *n, const char *gpu)
{
	int best = 0, kept = 0;

	for (int i = 0; i < n->num; i++) {
		int levels = common_levels(gpu, n->name[i]);

		if (levels > best) {
			best = levels;
			kept = 0;
		}
		if (levels == best)
			memmove(n->name[kept++], n->name[i], sizeof(n->name[0]));
	}
	n->num = kept;
}

int a2a_place(struct a2a_options *opt, const struct a2a_world *w)
{
	static struct names gpus, devices;
	const bool host = !strcmp(opt->gpus, "host");
	int rc;

	if (!strcmp(opt->gpus, "all"))
		rc = list_gpus(&gpus);
	else
		rc = split(&gpus, opt->gpus);
	if (!rc)
		rc = opt->devices ? split(&devices, opt->devices)
				  : list_devices(&devices, opt->ex.ib_port ? opt->ex.ib_port : 1);
	if (rc)
		return -1;
	opt->ex.gpu = gpus.name[w->local % gpus.num];
	if (!host && !opt->devices)
		keep_nearest(&devices, opt->ex.gpu);
	/* Without any device, ex_endpoint_open() reports what is wrong. */
	opt->ex.device = devices.num ? devices.name[w->local % devices.num] : NULL;
	return 0;
}
