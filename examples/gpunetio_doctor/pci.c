/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* PCI devices in sysfs, and checks that GPUs and NICs share. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pci.h"

#define DEVICES "/sys/bus/pci/devices"

static bool is_address(const char *text)
{
	unsigned int domain, bus, slot, function;
	int used = 0;

	return sscanf(text, "%x:%x:%x.%x%n", &domain, &bus, &slot, &function, &used) == 4 &&
	       !text[used] && used < PCI_LEN;
}

static bool is_host_bridge(const char *text)
{
	unsigned int domain, bus;
	int used = 0;

	return sscanf(text, "pci%x:%x%n", &domain, &bus, &used) == 2 && !text[used] &&
	       used < PCI_LEN;
}

/* Copies the PCI part of a path such as ../../../devices/pci0000:80/0000:80:01.0/0000:81:00.0. */
static void parse_path(char *text, struct dr_path *path)
{
	char *save, *name;

	path->num = 0;
	for (name = strtok_r(text, "/", &save); name; name = strtok_r(NULL, "/", &save))
		if (path->num < PCI_DEPTH && (is_host_bridge(name) || is_address(name)))
			strcpy(path->name[path->num++], name);
}

void dr_pci_path(const struct dr_env *env, const char *pci, struct dr_path *path)
{
	char target[PATH_MAX];

	path->num = 0;
	if (!dr_read_link(env, target, sizeof(target), DEVICES "/%s", pci))
		parse_path(target, path);
}

int dr_nic_pci(const struct dr_env *env, const char *device, char pci[PCI_LEN])
{
	char target[PATH_MAX];
	struct dr_path path;
	int rc = dr_read_link(env, target, sizeof(target), "/sys/class/infiniband/%s", device);

	if (!rc) {
		parse_path(target, &path);
		if (path.num > 1) {
			strcpy(pci, path.name[path.num - 1]);
			return 0;
		}
	}
	rc = dr_read_link_name(env, pci, PCI_LEN, "/sys/class/infiniband/%s/device", device);
	return rc ? rc : is_address(pci) ? 0 : -ENODEV;
}

int dr_pci_numa(const struct dr_env *env, const char *pci)
{
	long long node;

	return dr_read_number(env, &node, DEVICES "/%s/numa_node", pci) ? -1 : (int)node;
}

/* ---- PCI Express link ---- */

struct link {
	double speed; /* GT/s */
	int width;    /* lanes; 0: not known */
};

/* which: current or max */
static struct link read_link_state(const struct dr_env *env, const char *pci, const char *which)
{
	struct link link = { 0 };
	long long width = 0;
	char text[64];

	if (!dr_read(env, text, sizeof(text), DEVICES "/%s/%s_link_speed", pci, which))
		link.speed = atof(text);
	if (!dr_read_number(env, &width, DEVICES "/%s/%s_link_width", pci, which) && width > 0 &&
	    width <= 32)
		link.width = (int)width;
	return link;
}

/* The bridge above the device, "" if it is not known. */
static void bridge_of(const struct dr_env *env, const char *pci, char bridge[PCI_LEN])
{
	struct dr_path path;

	dr_pci_path(env, pci, &path);
	strcpy(bridge, path.num > 2 ? path.name[path.num - 2] : "");
}

/*
 * A link has the smaller of the two ends' speeds and widths. A GPU without load lowers its speed,
 * so that a low speed alone shows nothing.
 */
void dr_check_link(const struct dr_env *env, struct dr_report *r, const char *scope,
		   const char *pci, bool is_gpu)
{
	struct link now = read_link_state(env, pci, "current");
	struct link max = read_link_state(env, pci, "max"), slot = { 0 };
	char bridge[PCI_LEN], fix[256];
	bool slow, narrow, by_slot;

	if (!now.width || !max.width || now.speed <= 0 || max.speed <= 0) {
		snprintf(fix, sizeof(fix), "lspci -s %s -vv | grep -e LnkCap -e LnkSta", pci);
		dr_add(r, scope, "pcie-link", DR_UNKNOWN, fix,
		       "speed and width of the PCIe link could not be read (a virtual device "
		       "has none)");
		return;
	}
	slow = now.speed < max.speed;
	narrow = now.width < max.width;
	if (!slow && !narrow) {
		dr_add(r, scope, "pcie-link", DR_OK, NULL, "%g GT/s x%d, the maximum of the device",
		       now.speed, now.width);
		return;
	}
	bridge_of(env, pci, bridge);
	if (*bridge)
		slot = read_link_state(env, bridge, "max");
	by_slot = slot.width && now.width >= (slot.width < max.width ? slot.width : max.width) &&
		  now.speed >= (slot.speed < max.speed ? slot.speed : max.speed);
	if (by_slot)
		snprintf(fix, sizeof(fix), "use a slot with %g GT/s x%d: %s allows %g GT/s x%d",
			 max.speed, max.width, bridge, slot.speed, slot.width);
	else if (is_gpu && !narrow)
		snprintf(fix, sizeof(fix),
			 "check while a program uses the GPU: cat " DEVICES
			 "/%s/current_link_speed",
			 pci);
	else
		snprintf(fix, sizeof(fix),
			 "reseat the card and its cables, check the slot's setting in the BIOS, "
			 "then lspci -s %s -vv | grep LnkSta",
			 pci);
	dr_add(r, scope, "pcie-link", is_gpu && !narrow && !by_slot ? DR_NOTE : DR_WARN, fix,
	       "%g GT/s x%d, but the device can do %g GT/s x%d%s", now.speed, now.width, max.speed,
	       max.width, is_gpu && !narrow ? " (a GPU without load lowers the speed)" : "");
}

/* ---- IOMMU, NUMA ---- */

void dr_check_iommu_group(const struct dr_env *env, struct dr_report *r, const char *scope,
			  const char *pci)
{
	char type[64], iommu[64];
	struct dr_names iommus;
	int rc;

	if (dr_list(env, &iommus, "/sys/class/iommu") || !iommus.num)
		return; /* the result of the host has it */
	if (!dr_exists(env, DEVICES "/%s/iommu_group", pci)) {
		dr_add(r, scope, "iommu", DR_OK, NULL, "the device is not behind an IOMMU");
		return;
	}
	rc = dr_read(env, type, sizeof(type), DEVICES "/%s/iommu_group/type", pci);
	(void)dr_read_link_name(env, iommu, sizeof(iommu), DEVICES "/%s/iommu", pci);
	if (rc)
		dr_add(r, scope, "iommu", DR_UNKNOWN, "cat /sys/kernel/iommu_groups/*/type",
		       "whether the IOMMU translates addresses of the device could not be read: %s",
		       strerror(-rc));
	else if (!strcmp(type, "identity"))
		dr_add(r, scope, "iommu", DR_OK, NULL,
		       "the IOMMU does not translate addresses of the device (type identity)");
	else if (!strncmp(iommu, "smmu", 4))
		dr_add(r, scope, "iommu", DR_NOTE, NULL,
		       "the SMMU translates addresses of the device (type %s)", type);
	else
		dr_add(r, scope, "iommu", DR_WARN,
		       "add iommu=pt to the kernel's command line (GRUB_CMDLINE_LINUX in "
		       "/etc/default/grub, then update-grub and reboot), or disable the IOMMU in "
		       "the BIOS",
		       "the IOMMU translates addresses of the device (type %s), so that accesses "
		       "between GPU and NIC go through the root complex",
		       type);
}

void dr_check_numa(const struct dr_env *env, struct dr_report *r, const char *scope,
		   const char *pci)
{
	int node = dr_pci_numa(env, pci);
	char online[64];

	if (dr_read(env, online, sizeof(online), "/sys/devices/system/node/online"))
		strcpy(online, "?");
	if (node >= 0)
		dr_add(r, scope, "numa-node", DR_OK, NULL,
		       "NUMA node %d (nodes of the machine: %s)", node, online);
	else if (!strcmp(online, "0"))
		dr_add(r, scope, "numa-node", DR_OK, NULL, "the machine has one NUMA node");
	else
		dr_add(r, scope, "numa-node", DR_UNKNOWN,
		       "enable the NUMA tables (SRAT, _PXM) in the BIOS; lstopo shows the rest",
		       "the kernel does not know the NUMA node of the device (nodes: %s)", online);
}
