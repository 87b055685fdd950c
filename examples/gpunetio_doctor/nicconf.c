/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Checks of the PCI function of each RDMA device, and of its settings, which mlxconfig reads. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pci.h"

#define MLXCONFIG_S 30 /* time limit of mlxconfig */

static const struct {
	int id;
	const char *name;
} bluefields[] = {
	{ 0xa2d2, "BlueField" },
	{ 0xa2d6, "BlueField-2" },
	{ 0xa2dc, "BlueField-3" },
	{ 0xa2df, "BlueField-4" },
};

/* NULL: the device is not a BlueField. */
static const char *bluefield(const struct dr_env *env, const char *pci)
{
	long long id;

	if (dr_read_number(env, &id, "/sys/bus/pci/devices/%s/device", pci))
		return NULL;
	for (size_t i = 0; i < sizeof(bluefields) / sizeof(bluefields[0]); i++)
		if (bluefields[i].id == id)
			return bluefields[i].name;
	return NULL;
}

static int run_mlxconfig(const void *pci)
{
	execlp("mlxconfig", "mlxconfig", "-d", (const char *)pci, "-e", "q", (char *)NULL);
	execlp("mstconfig", "mstconfig", "-d", (const char *)pci, "-e", "q", (char *)NULL);
	return 127;
}

/* Copies the output of mlxconfig for the device. Returns NULL, or why there is none. */
static const char *read_settings(const struct dr_env *env, const char *pci, char *text, size_t size)
{
	char path[64];
	unsigned int limit = env->timeout_s < MLXCONFIG_S ? env->timeout_s : MLXCONFIG_S;
	int rc;

	if (dr_exists(env, "/sys/bus/pci/devices/%s/physfn", pci))
		return "a virtual function has no settings of its own";
	snprintf(path, sizeof(path), "/mlxconfig/%s.txt", pci);
	if (*env->root)
		return dr_read_bytes(env, text, size, "%s", path) < 0
			       ? "the recorded machine has no output of mlxconfig"
			       : NULL;
	if (geteuid())
		return "only root can run mlxconfig";
	rc = dr_capture(run_mlxconfig, pci, limit, text, size);
	if (rc == 127)
		return "mlxconfig is not installed";
	if (rc)
		return rc == -ETIMEDOUT ? "mlxconfig did not end in time" : "mlxconfig failed";
	dr_record_text(path, text);
	return NULL;
}

/*
 * Finds a setting in lines such as these, the second one of option -e with default, current and
 * next value. '*' marks a value that was changed. value is the one after the next start of the NIC.
 *
 *         LINK_TYPE_P1                    ETH(2)
 * *       LINK_TYPE_P1                    ETH(2)       IB(1)       ETH(2)
 *
 * Returns false if there is no such line. pending: another value is in use until then.
 */
static bool find_setting(const char *text, const char *name, char value[64], bool *pending)
{
	char words[3][64];

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		int used, n;

		line += strspn(line, "\n* \t\r");
		used = (int)strcspn(line, " \t\n");
		if (used != (int)strlen(name) || strncmp(line, name, (size_t)used))
			continue;
		n = sscanf(line + used,
			   "%*[ \t]%63[^ \t\n\r]%*[ \t]%63[^ \t\n\r]%*[ \t]%63[^ \t\n\r]", words[0],
			   words[1], words[2]);
		if (n < 1)
			return false;
		strcpy(value, words[n - 1]);
		*pending = n == 3 && strcmp(words[1], words[2]);
		return true;
	}
	return false;
}

/* The number in parentheses: 2 of "ETH(2)"; -1: none. */
static int setting_number(const char *value)
{
	const char *p = strchr(value, '(');

	return p ? atoi(p + 1) : -1;
}

static const char *when(bool pending)
{
	return pending ? " from the next start of the NIC on" : "";
}

/* In NIC mode the engine is disabled, and the Arm cores do not own the NIC. */
static void check_mode(const struct dr_env *env, struct dr_report *r, const char *device,
		       const char *pci, const char *settings, const char *no_settings)
{
	const char *name = bluefield(env, pci);
	char value[64], fix[256];
	bool pending;

	if (!name)
		return;
	if (no_settings ||
	    !find_setting(settings, "INTERNAL_CPU_OFFLOAD_ENGINE", value, &pending)) {
		snprintf(fix, sizeof(fix), "mlxconfig -d %s q INTERNAL_CPU_OFFLOAD_ENGINE", pci);
		dr_add(r, device, "bluefield-mode", DR_UNKNOWN, fix,
		       "%s: whether it is in NIC mode could not be read: %s", name,
		       no_settings ? no_settings : "mlxconfig does not list the setting");
		return;
	}
	snprintf(fix, sizeof(fix),
		 "mlxconfig -d %s set INTERNAL_CPU_MODEL=1 INTERNAL_CPU_OFFLOAD_ENGINE=1, then "
		 "turn the power of the host off and on",
		 pci);
	if (setting_number(value) == 1)
		dr_add(r, device, "bluefield-mode", DR_OK, NULL, "%s in NIC mode%s", name,
		       when(pending));
	else
		dr_add(r, device, "bluefield-mode", DR_WARN, fix,
		       "%s in DPU mode%s (INTERNAL_CPU_OFFLOAD_ENGINE=%s): its Arm cores control "
		       "the network traffic of the host; NIC mode is recommended",
		       name, when(pending), value);
}

/* Function 0 has port 1 of the NIC, function 1 has port 2. All list the settings of both ports. */
static void check_link_type(const struct dr_env *env, struct dr_report *r, const char *device,
			    const char *pci, const char *settings)
{
	char value[64], layer[64], fix[128], name[] = "LINK_TYPE_P1";
	bool pending, differs;

	name[sizeof(name) - 2] += pci[strlen(pci) - 1] - '0';
	if (!find_setting(settings, name, value, &pending))
		return; /* NICs with one link type have no such setting */
	differs = !dr_read(env, layer, sizeof(layer), "/sys/class/infiniband/%s/ports/1/link_layer",
			   device) &&
		  (setting_number(value) == 2) != !strcmp(layer, "Ethernet");
	snprintf(fix, sizeof(fix), "mlxfwreset -d %s reset, or reboot", pci);
	if (differs || pending)
		dr_add(r, device, "link-type", DR_WARN, fix,
		       "%s=%s is set, but the port is not restarted: its link layer is %s", name,
		       value, *layer ? layer : "not known");
	else if (setting_number(value) == 2)
		dr_add(r, device, "link-type", DR_OK, NULL, "Ethernet (%s=%s)", name, value);
	else {
		snprintf(fix, sizeof(fix), "for Ethernet: mlxconfig -d %s set %s=2, then reboot",
			 pci, name);
		dr_add(r, device, "link-type", DR_NOTE, fix, "InfiniBand (%s=%s)", name, value);
	}
}

static void check_clock(struct dr_report *r, const char *device, const char *pci,
			const char *settings)
{
	static const struct {
		const char *name, *check, *use;
	} clocks[] = {
		{ "REAL_TIME_CLOCK_ENABLE", "real-time-clock",
		  "time stamps of CQEs are real time" },
		{ "ACCURATE_TX_SCHEDULER", "accurate-tx-scheduler",
		  "packets sent at a given time" },
	};
	char value[64], fix[160];
	bool pending;

	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		if (!find_setting(settings, clocks[i].name, value, &pending))
			continue;
		snprintf(fix, sizeof(fix),
			 "only if a program needs it: mlxconfig -d %s set %s=1, then reboot", pci,
			 clocks[i].name);
		dr_add(r, device, clocks[i].check, DR_NOTE, setting_number(value) ? NULL : fix,
		       "%s=%s%s (%s; queue pairs do not need it)", clocks[i].name, value,
		       when(pending), clocks[i].use);
	}
}

static void check_settings(const struct dr_env *env, struct dr_report *r, const char *device,
			   const char *pci)
{
	char settings[DR_TEXT_LEN] = "", fix[160];
	const char *why = read_settings(env, pci, settings, sizeof(settings));

	check_mode(env, r, device, pci, settings, why);
	if (why) {
		snprintf(fix, sizeof(fix),
			 "sudo mlxconfig -d %s q LINK_TYPE_P1 ACCURATE_TX_SCHEDULER "
			 "REAL_TIME_CLOCK_ENABLE (NVIDIA's package mft has mlxconfig)",
			 pci);
		dr_add(r, device, "settings", DR_UNKNOWN, fix,
		       "the settings of the NIC could not be read: %s", why);
		return;
	}
	check_link_type(env, r, device, pci, settings);
	check_clock(r, device, pci, settings);
}

void dr_check_nic_function(const struct dr_env *env, struct dr_report *r)
{
	for (int i = 0; i < env->devices.num; i++) {
		const char *device = env->devices.name[i];
		char pci[PCI_LEN];
		int rc = dr_nic_pci(env, device, pci);

		if (rc) {
			dr_add(r, device, "pci", DR_UNKNOWN, "ls -l /sys/class/infiniband",
			       "the PCI address could not be read: %s", strerror(-rc));
			continue;
		}
		dr_check_link(env, r, device, pci, false);
		dr_check_numa(env, r, device, pci);
		dr_check_iommu_group(env, r, device, pci);
		check_settings(env, r, device, pci);
	}
}
