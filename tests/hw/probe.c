/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Prints one part (its argument) of a device's answers as lines "name: value", which
 * tests/hw/run compares with those of another device: capabilities, objects of each
 * kind, transitions of a queue pair, commands that the firmware must refuse, and the
 * number of QPs that can exist at once. Object numbers and addresses are not printed.
 * Exits with 0 whatever the answers are, and with 2 after a usage error; aborts if the
 * device cannot be probed.
 */
#include <stdio.h>
#include <string.h>

#include "probe.h"

static const struct part {
	const char *name, *what;
	void (*run)(struct e2e_nic *nic);
} parts[] = {
	{ "caps", "capabilities of the device and of its port", probe_caps },
	{ "objects", "umems, UARs, CQs, SRQs and QPs, created and destroyed", probe_objects },
	{ "states", "transitions of a queue pair, and writes on it", probe_states },
	{ "errors", "commands that the firmware must refuse", probe_errors },
	{ "limits", "number of QPs that can exist at once", probe_limits },
};

void probe_print(const char *value, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf(": %s\n", value);
	fflush(stdout); /* so that the last line shows where a crash occurred */
}

void probe_result(doca_error_t err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf(": %s\n", err ? doca_error_get_name(err) : "ok");
	fflush(stdout);
}

static int usage(FILE *f)
{
	size_t i;

	fprintf(f, "usage: probe PART\n");
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		fprintf(f, "  %-8s %s\n", parts[i].name, parts[i].what);
	fprintf(f, "GDAKI_TEST_DEVICE names the device (default: the first one).\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct e2e_nic nic;
	size_t i;

	if (argc != 2)
		return usage(stderr);
	if (!strcmp(argv[1], "--help"))
		return usage(stdout) * 0;
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (strcmp(argv[1], parts[i].name))
			continue;
		e2e_open(&nic);
		parts[i].run(&nic);
		e2e_close(&nic);
		return 0;
	}
	return usage(stderr);
}
