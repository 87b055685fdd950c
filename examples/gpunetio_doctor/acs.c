/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Access control services (ACS): a downstream port of a PCIe switch that redirects requests sends
 * what one device writes to another one up to the root complex.
 */
#include <stdio.h>
#include <string.h>

#include "pci.h"

#define CONFIG_LEN	 4096
#define EXTENDED	 0x100 /* offset of the first extended capability */
#define CAPABILITY_ACS	 0x0d
#define ACS_CONTROL	 6    /* offset in the capability */
#define ACS_REQUEST	 0x04 /* request redirect */
#define ACS_COMPLETION	 0x08 /* completion redirect */
#define ACS_EGRESS	 0x20 /* egress control */
#define MAX_CAPABILITIES 64

static unsigned int read_le(const unsigned char *bytes, int len)
{
	unsigned int value = 0;

	while (len--)
		value = value << 8 | bytes[len];
	return value;
}

/* Returns the redirect bits of the port, -1 if its configuration space could not be read. */
static int redirect_bits(const struct dr_env *env, const char *port)
{
	char config[CONFIG_LEN + 1];
	const unsigned char *bytes = (const unsigned char *)config;
	int len = dr_read_bytes(env, config, sizeof(config), "/sys/bus/pci/devices/%s/config",
				port);
	int at = EXTENDED;

	if (len == EXTENDED)
		return 0; /* a device of conventional PCI has no extended capabilities */
	if (len < CONFIG_LEN)
		return -1; /* only root can read more than the first 64 bytes */
	for (int i = 0; i < MAX_CAPABILITIES && at >= EXTENDED && at <= CONFIG_LEN - 8; i++) {
		unsigned int header = read_le(bytes + at, 4);

		if ((header & 0xffff) == CAPABILITY_ACS)
			return (int)(read_le(bytes + at + ACS_CONTROL, 2) &
				     (ACS_REQUEST | ACS_COMPLETION | ACS_EGRESS));
		at = (int)(header >> 20) & ~3;
	}
	return 0;
}

/* Counts the bridges of the path below the common part by the state of ACS. */
static void count(const struct dr_env *env, const struct dr_path *path, int common, int *redirect,
		  int *unread, char *ports, size_t size)
{
	for (int i = common; i < path->num - 1; i++) {
		int bits = redirect_bits(env, path->name[i]);
		size_t len = strlen(ports);

		*unread += bits < 0;
		*redirect += bits > 0;
		if (bits)
			snprintf(ports + len, size - len, " %s", path->name[i]);
	}
}

/* common: devices that both paths begin with. Without a common bridge, data passes the root complex
 * in any case. */
void dr_check_acs(const struct dr_env *env, struct dr_report *r, const char *scope,
		  const struct dr_path *a, const struct dr_path *b, int common)
{
	char ports[PCI_DEPTH * 2 * PCI_LEN] = "", fix[sizeof(ports) + 256];
	int redirect = 0, unread = 0;

	if (common < 2)
		return;
	count(env, a, common, &redirect, &unread, ports, sizeof(ports));
	count(env, b, common, &redirect, &unread, ports, sizeof(ports));
	if (redirect) {
		snprintf(fix, sizeof(fix),
			 "disable ACS in the BIOS, or until the next reboot: for p in%s; do "
			 "setpci -s $p ECAP_ACS+6.w=0; done (not on a host that assigns devices "
			 "to virtual machines)",
			 ports);
		dr_add(r, scope, "acs", DR_WARN, fix,
		       "ACS redirects data between GPU and NIC to the root complex, at%s", ports);
	} else if (unread) {
		snprintf(fix, sizeof(fix),
			 "run gpunetio_doctor as root, or: for p in%s; do setpci -s $p "
			 "ECAP_ACS+6.w; done (0000: disabled)",
			 ports);
		dr_add(r, scope, "acs", DR_UNKNOWN, fix,
		       "whether ACS redirects data could not be read: only root can read the "
		       "configuration space of the bridges");
	} else {
		dr_add(r, scope, "acs", DR_OK, NULL,
		       "no bridge between GPU and NIC redirects data by ACS");
	}
}
