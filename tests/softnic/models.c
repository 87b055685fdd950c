/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Card models: a table with the differences of each model from the NIC without a
 * model, as options of softnic-run, one line per difference with its source. A
 * capability for which no source was found is the same in all models. These properties
 * of the NIC without a model are those of a ConnectX-6 Dx according to the README of
 * mlx5ctl: core direct, event_cap, changes of the port of a bond before RTS,
 * free-running time stamps. cfg.c applies the values. Also linked into softnic-run.
 */
#include "front.h"

#include <ctype.h>
#include <string.h>

#define HCA_TABLE      "rdma-core, providers/mlx5/mlx5.c"
#define FIRMWARE       "DPDK, doc/guides/platform/mlx5.rst: the oldest supported"
#define DBREC	       "DOCA GPUNetIO, CHANGELOG.md 2.0.0: QPs without DBREC are ConnectX-8's"
#define INTEGRATED_CX7 DBREC "; this is a ConnectX-7 (" HCA_TABLE ")"
#define TWO_PORTS      "mlx5ctl, README: num_lag_ports 2, lag_tx_port_affinity 1, lag_master 1"
#define WAIT_TIME      "DPDK, commit 49e8797619: wait on time needs ConnectX-7"
#define NO_MMO	       "DPDK, doc/guides/compressdevs/mlx5.rst: BlueField has engines for MMO"
#define PAGES	       "rdma-core, providers/mlx5/verbs.c: several UARs a mapping; 64 KiB pages"

static const struct {
	const char *model, *option, *value, *source;
} rows[] = {
	{ "cx5", "pci-device", "0x1017", HCA_TABLE },
	{ "cx5", "fw-ver", "16.21.1000", FIRMWARE },
	{ "cx5", "no-dbr", "0", DBREC },
	{ "cx5", "wait-on-time", "0", WAIT_TIME },
	{ "cx5", "dma", "none", NO_MMO },
	{ "cx6dx", "pci-device", "0x101d", HCA_TABLE },
	{ "cx6dx", "fw-ver", "22.27.0090", FIRMWARE },
	{ "cx6dx", "no-dbr", "0", DBREC },
	{ "cx6dx", "wait-on-time", "0", WAIT_TIME },
	{ "cx6dx", "dma", "none", NO_MMO },
	{ "cx6dx", "lag", "2:inactive", TWO_PORTS },
	{ "cx7", "pci-device", "0x1021", HCA_TABLE },
	{ "cx7", "fw-ver", "28.33.2028", FIRMWARE },
	{ "cx7", "no-dbr", "0", DBREC },
	{ "cx8", "pci-device", "0x1023", HCA_TABLE },
	{ "cx8", "fw-ver", "40.44.1036", FIRMWARE },
	{ "cx8", "no-dbr", "1", DBREC },
	{ "cx8", "page-size", "64k", PAGES },
	{ "bf3", "pci-device", "0xa2dc", HCA_TABLE },
	{ "bf3", "fw-ver", "32.36.3126", FIRMWARE },
	{ "bf3", "no-dbr", "0", INTEGRATED_CX7 },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* True if `variable` is SOFTNIC_ + the option in capitals, with _ for -. */
static bool is_variable_of(const char *option, const char *variable)
{
	const char prefix[] = "SOFTNIC_";
	char c;

	if (strncmp(variable, prefix, strlen(prefix)))
		return false;
	for (variable += strlen(prefix); *option; option++, variable++) {
		c = *option == '-' ? '_' : (char)toupper((unsigned char)*option);
		if (c != *variable)
			return false;
	}
	return !*variable;
}

const char *sn_model_value(const char *model, const char *variable)
{
	size_t i;

	for (i = 0; i < ROWS; i++)
		if (!strcmp(rows[i].model, model) && is_variable_of(rows[i].option, variable))
			return rows[i].value;
	return NULL;
}

bool sn_model_known(const char *model)
{
	size_t i;

	for (i = 0; i < ROWS && strcmp(rows[i].model, model); i++)
		;
	return i < ROWS;
}

static bool is_first(size_t i)
{
	return !i || strcmp(rows[i].model, rows[i - 1].model);
}

void sn_models_text(char *text, size_t len)
{
	size_t used = (size_t)snprintf(text, len, "one of"), i;

	for (i = 0; i < ROWS && used < len; i++)
		if (is_first(i))
			used += (size_t)snprintf(text + used, len - used, "%s %s", i ? "," : "",
						 rows[i].model);
}

void sn_models_list(FILE *f)
{
	size_t i;

	for (i = 0; i < ROWS; i++) {
		if (is_first(i))
			fprintf(f, "%s\n", rows[i].model);
		fprintf(f, "  --%-12s %-11s %s\n", rows[i].option, rows[i].value, rows[i].source);
	}
	fprintf(f, "All other properties are the same in all models.\n");
}
