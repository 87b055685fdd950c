/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Checks of the path between GPU and NIC. */
#include <stdio.h>
#include <string.h>

#include "pci.h"

/* The names are those of nvidia-smi topo -m. */
enum distance { PIX, PXB, PHB, NODE, SYS, UNCLEAR };
static const struct {
	const char *name, *text;
	enum dr_level level;
} distances[] = {
	[PIX] = { "PIX", "at most one PCIe switch between them", DR_OK },
	[PXB] = { "PXB", "several PCIe switches between them, no host bridge", DR_OK },
	[PHB] = { "PHB", "the same PCIe host bridge", DR_NOTE },
	[NODE] = { "NODE", "different host bridges of one NUMA node", DR_WARN },
	[SYS] = { "SYS", "different NUMA nodes", DR_WARN },
	[UNCLEAR] = { "not known", "different host bridges", DR_UNKNOWN },
};

/* What is between a GPU and a NIC. */
struct route {
	struct dr_path gpu, nic;
	int common;		/* parts of both paths that are the same */
	int gpu_node, nic_node; /* -1: not known */
	enum distance distance;
};

/*
 * A path has the host bridge, the bridges and the device. A switch has one upstream bridge and a
 * downstream bridge for each device. Two devices at one switch therefore have the upstream bridge
 * in common, and at most one more bridge each.
 */
static enum distance distance_of(const struct dr_env *env, const struct route *route)
{
	char online[64];

	if (route->common > 1) {
		int a = route->gpu.num - 1 - route->common, b = route->nic.num - 1 - route->common;

		return a <= 1 && b <= 1 ? PIX : PXB;
	}
	if (route->common == 1)
		return PHB;
	if (route->gpu_node >= 0 && route->nic_node >= 0)
		return route->gpu_node == route->nic_node ? NODE : SYS;
	if (!dr_read(env, online, sizeof(online), "/sys/devices/system/node/online") &&
	    !strcmp(online, "0"))
		return NODE;
	return UNCLEAR;
}

/* Returns false if one of the paths is not known. */
static bool find_route(const struct dr_env *env, const char *gpu, const char *device,
		       struct route *route)
{
	char pci[PCI_LEN];

	if (dr_nic_pci(env, device, pci))
		return false;
	dr_pci_path(env, gpu, &route->gpu);
	dr_pci_path(env, pci, &route->nic);
	if (!route->gpu.num || !route->nic.num)
		return false;
	route->common = 0;
	while (route->common < route->gpu.num && route->common < route->nic.num &&
	       !strcmp(route->gpu.name[route->common], route->nic.name[route->common]))
		route->common++;
	route->gpu_node = dr_pci_numa(env, gpu);
	route->nic_node = dr_pci_numa(env, pci);
	route->distance = distance_of(env, route);
	return true;
}

/* Finds the NIC that is nearest to the GPU. Returns its distance, UNCLEAR if there is none. */
static enum distance nearest(const struct dr_env *env, const char *gpu, char *name, size_t size)
{
	enum distance best = UNCLEAR;
	struct dr_names devices;
	struct route route;

	dr_find_devices(env, &devices);
	for (int i = 0; i < devices.num; i++)
		if (find_route(env, gpu, devices.name[i], &route) && route.distance < best) {
			best = route.distance;
			snprintf(name, size, "%s", devices.name[i]);
		}
	return best;
}

static void check_pair(const struct dr_env *env, struct dr_report *r, const char *gpu,
		       const char *device)
{
	char scope[2 * DR_NAME_LEN + 8], best[DR_NAME_LEN], fix[256];
	enum dr_level level;
	enum distance d;
	struct route route;
	bool nearer, integrated, same_node;

	snprintf(scope, sizeof(scope), "gpu %s + %s", gpu, device);
	if (!find_route(env, gpu, device, &route)) {
		dr_add(r, scope, "distance", DR_UNKNOWN, "nvidia-smi topo -m",
		       "sysfs does not show where both devices are");
		return;
	}
	d = route.distance;
	level = distances[d].level;
	nearer = nearest(env, gpu, best, sizeof(best)) < d;
	if (nearer)
		snprintf(fix, sizeof(fix), "use %s with this GPU", best);
	else
		snprintf(fix, sizeof(fix), "move GPU and NIC to slots of the same PCIe switch");
	integrated = !nearer && dr_gpu_is_integrated(env, gpu);
	if (integrated && level == DR_WARN)
		level = DR_NOTE; /* queues and payload are in host memory */
	dr_add(r, scope, "distance", level,
	       level == DR_WARN	     ? fix
	       : level == DR_UNKNOWN ? "nvidia-smi topo -m"
				     : NULL,
	       "%s: %s", distances[d].name, distances[d].text);
	same_node = route.gpu_node == route.nic_node;
	if (route.gpu_node >= 0 && route.nic_node >= 0)
		dr_add(r, scope, "numa",
		       same_node    ? DR_OK
		       : integrated ? DR_NOTE
				    : DR_WARN,
		       same_node || integrated ? NULL : fix,
		       "GPU on NUMA node %d, NIC on NUMA node %d", route.gpu_node, route.nic_node);
	dr_check_acs(env, r, scope, &route.gpu, &route.nic, route.common);
}

/* The nearest NIC of each GPU, also of GPUs and NICs that were not selected. */
static void recommend(const struct dr_env *env, struct dr_report *r)
{
	char best[DR_NAME_LEN], text[2048] = "";
	struct dr_names gpus;
	size_t len = 0;

	dr_find_gpus(env, &gpus);
	for (int i = 0; i < gpus.num; i++) {
		enum distance d = nearest(env, gpus.name[i], best, sizeof(best));

		if (d != UNCLEAR && len < sizeof(text))
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s + %s (%s)",
						len ? ", " : "", gpus.name[i], best,
						distances[d].name);
	}
	if (len)
		dr_add(r, "host", "nearest-nic", DR_NOTE, NULL, "nearest NIC of each GPU: %s",
		       text);
}

void dr_check_topology(const struct dr_env *env, struct dr_report *r)
{
	for (int i = 0; i < env->gpus.num; i++)
		for (int j = 0; j < env->devices.num; j++)
			check_pair(env, r, env->gpus.name[i], env->devices.name[j]);
	recommend(env, r);
	dr_check_nic_function(env, r);
}
