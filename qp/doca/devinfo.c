/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The list of NICs and their properties, which sysfs has. A list keeps the device list of
 * libibverbs, because libibverbs frees a device that is neither open nor in a list.
 */
#include "qp/doca/dev.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <infiniband/mlx5dv.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"

#define PATH_LEN (IBV_SYSFS_PATH_MAX + 64)
#define LINE_LEN 256

struct info_list {
	struct ibv_device **devices; /* of ibv_get_device_list */
	struct doca_devinfo *infos;
	struct doca_devinfo *ptrs[]; /* what the user gets */
};

/* ---- sysfs ---- */

/* Reads the first line of a file below the folder of the verbs device. */
static bool read_line(const struct ibv_device *device, const char *name, char *line)
{
	char path[PATH_LEN];
	FILE *file;
	bool found;

	snprintf(path, sizeof(path), "%s/%s", device->ibdev_path, name);
	file = fopen(path, "re");
	if (!file)
		return false;
	found = fgets(line, LINE_LEN, file);
	fclose(file);
	if (found)
		line[strcspn(line, "\n")] = '\0';
	return found && *line;
}

/* Parses "8a:00.0" or "0000:8a:00.0" and writes it in the long form. */
static bool parse_pci(const char *text, char *pci)
{
	unsigned int domain = 0, bus, slot, func;
	int end = 0;

	if (sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &slot, &func, &end) != 4 || !end) {
		domain = 0;
		end = 0;
		if (sscanf(text, "%2x:%2x.%1x%n", &bus, &slot, &func, &end) != 3 || !end)
			return false;
	}
	if (text[end] || strpbrk(text, " +-") || slot > 31 || func > 7)
		return false;
	snprintf(pci, DOCA_DEVINFO_PCI_ADDR_SIZE, "%04x:%02x:%02x.%x", domain, bus, slot, func);
	return true;
}

/* The PCI address is the last part of the device's path that has this form: behind it, a scalable
 * function has the name of its auxiliary device. */
static void read_pci(struct doca_devinfo *info)
{
	char path[PATH_LEN], real[PATH_MAX], *part, *save;

	snprintf(path, sizeof(path), "%s/device", info->device->ibdev_path);
	if (!realpath(path, real))
		return;
	for (part = strtok_r(real, "/", &save); part; part = strtok_r(NULL, "/", &save))
		parse_pci(part, info->pci);
}

static void read_type(struct doca_devinfo *info)
{
	char line[LINE_LEN], path[PATH_LEN], real[PATH_MAX];

	info->type = GDK_PCI_FUNC_TYPE_PF;
	if (read_line(info->device, "device/sfnum", line)) {
		info->type = DOCA_PCI_FUNC_TYPE_SF;
		info->sf_index = (uint32_t)strtoul(line, NULL, 0);
		return;
	}
	snprintf(path, sizeof(path), "%s/device/physfn", info->device->ibdev_path);
	if (realpath(path, real))
		info->type = GDK_PCI_FUNC_TYPE_VF;
}

/* A device of several ports has one interface for each; dev_port is the port number - 1. */
static void read_iface(struct doca_devinfo *info)
{
	char line[LINE_LEN], path[PATH_LEN], name[PATH_LEN];
	struct dirent *entry;
	DIR *dir;

	if (read_line(info->device, "ports/1/gid_attrs/ndevs/0", line) &&
	    strlen(line) < sizeof(info->iface)) {
		strcpy(info->iface, line);
		return;
	}
	snprintf(path, sizeof(path), "%s/device/net", info->device->ibdev_path);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof(info->iface))
			continue;
		snprintf(name, sizeof(name), "device/net/%.32s/dev_port", entry->d_name);
		if (read_line(info->device, name, line) && strtoul(line, NULL, 0))
			continue;
		strcpy(info->iface, entry->d_name);
		break;
	}
	closedir(dir);
}

void gdk_devinfo_read(struct doca_devinfo *info, struct ibv_device *device)
{
	memset(info, 0, sizeof(*info));
	info->device = device;
	read_pci(info);
	read_type(info);
	read_iface(info);
}

/* ---- list ---- */

doca_error_t doca_devinfo_create_list(struct doca_devinfo ***dev_list, uint32_t *nb_devs)
{
	struct ibv_device **devices;
	struct info_list *list;
	int num = 0, i;
	uint32_t n = 0;

	GDK_CHECK_PTR(dev_list);
	GDK_CHECK_PTR(nb_devs);
	devices = ibv_get_device_list(&num);
	if (!devices) {
		gdk_err("cannot list the RDMA devices: %s; load the kernel module mlx5_ib",
			strerror(errno));
		return errno == ENOMEM ? DOCA_ERROR_NO_MEMORY : DOCA_ERROR_OPERATING_SYSTEM;
	}
	list = calloc(1, sizeof(*list) + ((size_t)num + 1) * sizeof(list->ptrs[0]));
	if (list)
		list->infos = calloc((size_t)num + 1, sizeof(list->infos[0]));
	if (!list || !list->infos) {
		gdk_err("no memory for a list of %d devices", num);
		free(list);
		ibv_free_device_list(devices);
		return DOCA_ERROR_NO_MEMORY;
	}
	for (i = 0; i < num; i++) {
		if (!mlx5dv_is_supported(devices[i]))
			continue;
		gdk_devinfo_read(&list->infos[n], devices[i]);
		list->ptrs[n] = &list->infos[n];
		n++;
	}
	list->devices = devices;
	*dev_list = list->ptrs;
	*nb_devs = n;
	return DOCA_SUCCESS;
}

doca_error_t doca_devinfo_destroy_list(struct doca_devinfo **dev_list)
{
	struct info_list *list;

	GDK_CHECK_PTR(dev_list);
	list = (struct info_list *)((char *)dev_list - offsetof(struct info_list, ptrs));
	ibv_free_device_list(list->devices);
	free(list->infos);
	free(list);
	return DOCA_SUCCESS;
}

/* ---- properties ---- */

doca_error_t doca_devinfo_is_equal_pci_addr(const struct doca_devinfo *devinfo,
					    const char *pci_addr_str, uint8_t *is_equal)
{
	char pci[DOCA_DEVINFO_PCI_ADDR_SIZE];

	GDK_CHECK_PTR(devinfo);
	GDK_CHECK_PTR(pci_addr_str);
	GDK_CHECK_PTR(is_equal);
	GDK_CHECK_ARG(parse_pci(pci_addr_str, pci),
		      "pci_addr_str \"%.32s\" (expected a PCI address such as 0000:8a:00.0)",
		      pci_addr_str);
	*is_equal = !strcmp(pci, devinfo->pci);
	return DOCA_SUCCESS;
}

doca_error_t doca_devinfo_get_pci_addr_str(const struct doca_devinfo *devinfo, char *pci_addr_str)
{
	GDK_CHECK_PTR(devinfo);
	GDK_CHECK_PTR(pci_addr_str);
	if (!*devinfo->pci) {
		gdk_err("%s: sysfs has no PCI address", ibv_get_device_name(devinfo->device));
		return DOCA_ERROR_NOT_FOUND;
	}
	strcpy(pci_addr_str, devinfo->pci);
	return DOCA_SUCCESS;
}

doca_error_t doca_devinfo_get_pci_func_type(const struct doca_devinfo *devinfo,
					    enum doca_pci_func_type *pci_func_type)
{
	GDK_CHECK_PTR(devinfo);
	GDK_CHECK_PTR(pci_func_type);
	*pci_func_type = devinfo->type;
	return DOCA_SUCCESS;
}

doca_error_t doca_devinfo_get_ibdev_name(const struct doca_devinfo *devinfo, char *ibdev_name,
					 uint32_t size)
{
	GDK_CHECK_PTR(devinfo);
	GDK_CHECK_PTR(ibdev_name);
	GDK_CHECK_ARG(size >= DOCA_DEVINFO_IBDEV_NAME_SIZE, "size %u (expected at least %d)", size,
		      DOCA_DEVINFO_IBDEV_NAME_SIZE);
	snprintf(ibdev_name, size, "%s", ibv_get_device_name(devinfo->device));
	return DOCA_SUCCESS;
}

doca_error_t doca_devinfo_get_iface_name(const struct doca_devinfo *devinfo, char *iface_name,
					 uint32_t size)
{
	GDK_CHECK_PTR(devinfo);
	GDK_CHECK_PTR(iface_name);
	GDK_CHECK_ARG(size >= DOCA_DEVINFO_IFACE_NAME_SIZE, "size %u (expected at least %d)", size,
		      DOCA_DEVINFO_IFACE_NAME_SIZE);
	if (!*devinfo->iface) {
		gdk_info("%s has no network interface", ibv_get_device_name(devinfo->device));
		return DOCA_ERROR_NOT_FOUND;
	}
	snprintf(iface_name, size, "%s", devinfo->iface);
	return DOCA_SUCCESS;
}

/* Finds the first GID of port 1 that is an IPv4 address (::ffff:a.b.c.d). */
static bool ipv4_of_gid(const struct doca_devinfo *info, uint8_t *ipv4)
{
	char name[64], line[LINE_LEN];
	struct in6_addr gid;
	int i;

	for (i = 0; i < 256; i++) {
		snprintf(name, sizeof(name), "ports/1/gids/%d", i);
		if (!read_line(info->device, name, line))
			return false;
		if (inet_pton(AF_INET6, line, &gid) != 1 || !IN6_IS_ADDR_V4MAPPED(&gid))
			continue;
		memcpy(ipv4, &gid.s6_addr[12], DOCA_DEVINFO_IPV4_ADDR_SIZE);
		return true;
	}
	return false;
}

static bool ipv4_of_iface(const struct doca_devinfo *info, uint8_t *ipv4)
{
	const struct sockaddr_in *in;
	struct ifaddrs *all, *a;
	bool found = false;

	if (getifaddrs(&all))
		return false;
	for (a = all; a && !found; a = a->ifa_next) {
		if (!a->ifa_addr || a->ifa_addr->sa_family != AF_INET ||
		    strcmp(a->ifa_name, info->iface))
			continue;
		in = (const struct sockaddr_in *)(const void *)a->ifa_addr;
		memcpy(ipv4, &in->sin_addr, DOCA_DEVINFO_IPV4_ADDR_SIZE);
		found = true;
	}
	freeifaddrs(all);
	return found;
}

doca_error_t doca_devinfo_get_ipv4_addr(const struct doca_devinfo *devinfo, uint8_t *ipv4_addr,
					uint32_t size)
{
	GDK_CHECK_PTR(devinfo);
	GDK_CHECK_PTR(ipv4_addr);
	GDK_CHECK_ARG(size >= DOCA_DEVINFO_IPV4_ADDR_SIZE, "size %u (expected at least %d)", size,
		      DOCA_DEVINFO_IPV4_ADDR_SIZE);
	if (ipv4_of_gid(devinfo, ipv4_addr) || ipv4_of_iface(devinfo, ipv4_addr))
		return DOCA_SUCCESS;
	gdk_err("%s: port 1 and its interface \"%s\" have no IPv4 address; assign one",
		ibv_get_device_name(devinfo->device), devinfo->iface);
	return DOCA_ERROR_NOT_FOUND;
}

doca_error_t doca_devinfo_get_sf_index(const struct doca_devinfo *devinfo, uint32_t *sf_index)
{
	GDK_CHECK_PTR(devinfo);
	GDK_CHECK_PTR(sf_index);
	if (devinfo->type != DOCA_PCI_FUNC_TYPE_SF) {
		gdk_info("%s is not a scalable function", ibv_get_device_name(devinfo->device));
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	*sf_index = devinfo->sf_index;
	return DOCA_SUCCESS;
}
