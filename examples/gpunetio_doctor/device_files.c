/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Checks of each RDMA device that need no open device: kind, firmware, device file. */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "nic.h"

#define ATTR_LEN 80
#define IB_DIR	 "/sys/class/infiniband/%s"

/* Devices of libmlx5's table. GPUNetIO needs a ConnectX-6 Dx or newer. */
static const struct {
	unsigned int id;
	bool older; /* than ConnectX-6 Dx */
	const char *name;
} models[] = {
	{ 0x1011, true, "Connect-IB" },	    { 0x1012, true, "Connect-IB VF" },
	{ 0x1013, true, "ConnectX-4" },	    { 0x1014, true, "ConnectX-4 VF" },
	{ 0x1015, true, "ConnectX-4 Lx" },  { 0x1016, true, "ConnectX-4 Lx VF" },
	{ 0x1017, true, "ConnectX-5" },	    { 0x1018, true, "ConnectX-5 VF" },
	{ 0x1019, true, "ConnectX-5 Ex" },  { 0x101a, true, "ConnectX-5 Ex VF" },
	{ 0x101b, true, "ConnectX-6" },	    { 0x101c, true, "ConnectX-6 VF" },
	{ 0x101d, false, "ConnectX-6 Dx" }, { 0x101e, false, "virtual function" },
	{ 0x101f, false, "ConnectX-6 Lx" }, { 0x1021, false, "ConnectX-7" },
	{ 0x1023, false, "ConnectX-8" },    { 0x1025, false, "ConnectX-9" },
	{ 0x1027, false, "ConnectX-10" },   { 0xa2d2, true, "BlueField" },
	{ 0xa2d3, true, "BlueField VF" },   { 0xa2d6, false, "BlueField-2" },
	{ 0xa2dc, false, "BlueField-3" },   { 0xa2df, false, "BlueField-4" },
};

static void report_model(struct dr_report *r, const char *device, unsigned int id)
{
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		if (models[i].id == id) {
			dr_add(r, device, "model", models[i].older ? DR_WARN : DR_OK,
			       models[i].older ? "use a ConnectX-6 Dx or newer" : NULL,
			       "%s (15b3:%04x)%s", models[i].name, id,
			       models[i].older ? ", older than ConnectX-6 Dx: not supported by "
						 "GPUNetIO"
					       : "");
			return;
		}
	dr_add(r, device, "model", DR_NOTE, NULL, "mlx5 device 15b3:%04x", id);
}

/* A scalable function has no PCI attributes of its own. Its name then shows the driver. */
static bool check_model(const struct dr_env *env, struct dr_report *r, const char *device)
{
	char vendor[ATTR_LEN], id[ATTR_LEN];

	if (dr_read(env, vendor, sizeof(vendor), IB_DIR "/device/vendor", device) ||
	    dr_read(env, id, sizeof(id), IB_DIR "/device/device", device)) {
		dr_add(r, device, "model", DR_NOTE, NULL,
		       "no PCI function of its own (a scalable "
		       "function, or attributes are missing)");
		return true;
	}
	if (strtoul(vendor, NULL, 16) != 0x15b3 || !strncmp(device, "mlx4", 4)) {
		dr_add(r, device, "model", DR_FAIL, "use a ConnectX-6 Dx or newer",
		       "%.10s:%.10s is not an mlx5 device", vendor, id);
		return false;
	}
	report_model(r, device, (unsigned int)strtoul(id, NULL, 16));
	return true;
}

static void check_firmware(const struct dr_env *env, struct dr_report *r, const char *device)
{
	char version[ATTR_LEN], board[ATTR_LEN];
	int rc = dr_read(env, version, sizeof(version), IB_DIR "/fw_ver", device);

	if (rc) {
		dr_add(r, device, "firmware", DR_UNKNOWN, NULL, "cannot read fw_ver: %s",
		       strerror(-rc));
		return;
	}
	if (dr_read(env, board, sizeof(board), IB_DIR "/board_id", device))
		strcpy(board, "unknown");
	dr_add(r, device, "firmware", DR_NOTE, NULL, "%s, PSID %s", version, board);
}

void dr_pci_address(const struct dr_env *env, const char *device, char *address)
{
	if (dr_read_link_name(env, address, DR_NAME_LEN, IB_DIR "/device", device))
		strcpy(address, "PCI_ADDRESS");
}

/* ---- the device file ---- */

/* Finds uverbsN of the device. */
static int find_uverbs(const struct dr_env *env, const char *device, char *uverbs)
{
	struct dr_names names;
	char ibdev[ATTR_LEN];
	int rc = dr_list(env, &names, "/sys/class/infiniband_verbs");

	for (int i = 0; i < names.num && !rc; i++) {
		if (dr_read(env, ibdev, sizeof(ibdev), "/sys/class/infiniband_verbs/%s/ibdev",
			    names.name[i]) ||
		    strcmp(ibdev, device))
			continue;
		strcpy(uverbs, names.name[i]);
		return 0;
	}
	return rc ? rc : -ENOENT;
}

static bool in_container(const struct dr_env *env)
{
	return dr_exists(env, "/.dockerenv") || dr_exists(env, "/run/.containerenv");
}

static void report_missing_node(const struct dr_env *env, struct dr_report *r, const char *device,
				const char *uverbs)
{
	dr_add(r, device, "device-file", DR_FAIL,
	       in_container(env) ? "start the container with --device /dev/infiniband"
				 : "modprobe ib_uverbs; udevadm trigger --subsystem-match="
				   "infiniband_verbs (in a container: --device /dev/infiniband)",
	       "/dev/infiniband/%s does not exist", uverbs);
}

#define FIX_MODE \
	"run as root, or: echo 'KERNEL==\"uverbs*\", MODE=\"0666\"' " \
	">/etc/udev/rules.d/99-uverbs.rules; udevadm control --reload; udevadm trigger"

/* If the group of the file has access, the user can join it. */
static void fix_of_mode(const struct stat *st, char *fix, size_t size)
{
	const struct group *group = getgrgid(st->st_gid);

	if (group && st->st_gid && (st->st_mode & 0066) == 0060)
		snprintf(fix, size, "sudo usermod -aG %s $USER, then log in again", group->gr_name);
	else
		snprintf(fix, size, "%s", FIX_MODE);
}

static void check_access(struct dr_report *r, const char *device, const char *uverbs)
{
	char path[DR_NAME_LEN + 32], fix[256];
	struct stat st;
	int sys_err;

	snprintf(path, sizeof(path), "/dev/infiniband/%s", uverbs);
	if (!access(path, R_OK | W_OK)) {
		dr_add(r, device, "device-file", DR_OK, NULL, "%s is readable and writable", path);
		return;
	}
	sys_err = errno;
	if (stat(path, &st))
		memset(&st, 0, sizeof(st));
	fix_of_mode(&st, fix, sizeof(fix));
	dr_add(r, device, "device-file", DR_FAIL, fix,
	       "%s: %s for user %u (owner %u, group %u, mode %03o)", path, strerror(sys_err),
	       (unsigned int)geteuid(), (unsigned int)st.st_uid, (unsigned int)st.st_gid,
	       (unsigned int)st.st_mode & 0777);
}

static void check_node(const struct dr_env *env, struct dr_report *r, const char *device)
{
	char uverbs[DR_NAME_LEN];

	if (find_uverbs(env, device, uverbs))
		dr_add(r, device, "device-file", env->probe ? DR_FAIL : DR_UNKNOWN,
		       env->probe ? "modprobe ib_uverbs" : NULL,
		       "/sys/class/infiniband_verbs has no entry for this device");
	else if (!dr_exists(env, "/dev/infiniband/%s", uverbs))
		report_missing_node(env, r, device, uverbs);
	else if (env->probe)
		check_access(r, device, uverbs);
	else
		dr_add(r, device, "device-file", DR_OK, NULL, "/dev/infiniband/%s exists", uverbs);
}

/* ---- all devices ---- */

static void check_ports(const struct dr_env *env, struct dr_report *r, const char *device)
{
	char scope[DR_NAME_LEN + 16];
	struct dr_names ports;
	bool found = false;

	(void)dr_list(env, &ports, IB_DIR "/ports", device);
	for (int i = 0; i < ports.num; i++)
		if (!env->port || env->port == atoi(ports.name[i])) {
			found = true;
			dr_check_port_files(env, r, device, atoi(ports.name[i]));
		}
	if (found)
		return;
	snprintf(scope, sizeof(scope), "%s port %d", device, env->port);
	if (env->port)
		dr_add(r, scope, "present", DR_FAIL, NULL, "the device has %d port%s", ports.num,
		       ports.num == 1 ? "" : "s");
	else
		dr_add(r, device, "ports", DR_FAIL, NULL, "the device has no port");
}

/* Without any RDMA device: whether there is a NIC for which a driver is missing. */
static void report_no_device(const struct dr_env *env, struct dr_report *r)
{
	struct dr_names nics;

	dr_find_nics(env, &nics);
	if (nics.num)
		dr_add(r, "host", "rdma-device", DR_FAIL, "modprobe mlx5_ib; dmesg | grep mlx5",
		       "no RDMA device, although there is a NIC at %s", nics.name[0]);
	else
		dr_add(r, "host", "rdma-device", DR_FAIL,
		       "install a ConnectX-6 Dx or newer; the software NIC needs none: "
		       "softnic-run -- gpunetio_doctor",
		       "no RDMA device, and no NIC of NVIDIA (PCI vendor 15b3)");
}

void dr_check_nic(const struct dr_env *env, struct dr_report *r)
{
	if (!env->devices.num && !env->device)
		report_no_device(env, r);
	for (int i = 0; i < env->devices.num; i++) {
		const char *device = env->devices.name[i];

		if (!check_model(env, r, device))
			continue;
		check_firmware(env, r, device);
		check_node(env, r, device);
		check_ports(env, r, device);
		if (!env->probe || dr_failed(r, device, NULL))
			continue;
		dr_in_child(env, r, device, "open", dr_probe_device, device);
		if (!dr_failed(r, device, NULL))
			dr_check_loopback(env, r, device);
	}
}
