/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What a device answers, as lines "name: value", for tests/hw/run to compare with another
 * device's: capabilities, objects of each kind, transitions of a queue pair, commands that the
 * firmware must refuse, and how many objects there may be. Object numbers and addresses are not
 * printed. Ends with 0 whatever the answers are, with 1 if it could not ask.
 */
#include <stdio.h>
#include <string.h>

#include "probe.h"

static const struct part {
	const char *name, *what;
	void (*run)(struct e2e_nic *nic);
} parts[] = {
	{ "caps", "capabilities of device and port", probe_caps },
	{ "objects", "umems, UARs, CQs, SRQs and QPs, created and destroyed", probe_objects },
	{ "states", "transitions of a queue pair, and a write over it", probe_states },
	{ "errors", "commands that the firmware must refuse", probe_errors },
	{ "limits", "how many QPs and CQs there may be", probe_limits },
};

void probe_say(const char *value, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf(": %s\n", value);
	fflush(stdout); /* the last line tells where a crash was */
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
	fprintf(f, "GDAKI_TEST_DEVICE names the device (the first one).\n");
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
