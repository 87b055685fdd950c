/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Counters: violations said once per kind, the report at exit as text, and the
 * JSON file per process that the launcher adds up.
 */
#include "front.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	bool strict;
	size_t off;
} fields[] = {
#define SN_STAT_ROW(n, s) { #n, s, offsetof(struct sn_stats, n) },
	SN_STATS(SN_STAT_ROW)
#undef SN_STAT_ROW
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static uint64_t field_value(const struct sn_stats *st, size_t i)
{
	return *(const uint64_t *)((const char *)st + fields[i].off);
}

static uint64_t violations(const struct sn_stats *st)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < FIELDS; i++)
		if (fields[i].strict)
			sum += field_value(st, i);
	return sum;
}

/* Rewritten whole each time, so that a process that dies has left its last state. */
void sn_stats_save(struct sn_dev *dev)
{
	char path[320];
	size_t i;
	FILE *f;

	if (!dev->cfg.stats_dir[0])
		return;
	snprintf(path, sizeof(path), "%s/%d.json", dev->cfg.stats_dir, (int)getpid());
	f = fopen(path, "w");
	if (!f)
		return;
	fprintf(f, "{\"pid\": %d, \"violations\": %" PRIu64, (int)getpid(),
		violations(&dev->stats));
	for (i = 0; i < FIELDS; i++)
		fprintf(f, ", \"%s\": %" PRIu64, fields[i].name, field_value(&dev->stats, i));
	fprintf(f, "}\n");
	fclose(f);
}

void sn_violation(uint64_t *counter, const char *fmt, ...)
{
	char line[400];
	va_list ap;

	if (++*counter == 1 || (sn_dev && sn_dev->cfg.trace)) {
		va_start(ap, fmt);
		vsnprintf(line, sizeof(line), fmt, ap);
		va_end(ap);
		dprintf(STDERR_FILENO, "softnic[%d]: violation: %s\n", (int)getpid(), line);
	}
	if (sn_dev && *counter == 1)
		sn_stats_save(sn_dev);
}

void sn_stats_report(struct sn_dev *dev)
{
	size_t i;

	sn_stats_save(dev);
	if (!dev->cfg.stats)
		return;
	dprintf(STDERR_FILENO, "softnic[%d]: statistics of %s\n", (int)getpid(), dev->cfg.name);
	for (i = 0; i < FIELDS; i++)
		if (field_value(&dev->stats, i))
			dprintf(STDERR_FILENO, "  %-22s %" PRIu64 "\n", fields[i].name,
				field_value(&dev->stats, i));
}

const struct sn_stats *sn_stats_get(void)
{
	static const struct sn_stats none;

	return sn_dev ? &sn_dev->stats : &none;
}
