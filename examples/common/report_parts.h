/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The parts of a report that do not depend on its columns. Only report.c and its test use them.
 */
#ifndef EXAMPLES_REPORT_PARTS_H
#define EXAMPLES_REPORT_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- report.c ---- */
struct ex_column {	   /* of the rows */
	const char *name;  /* in JSON and CSV */
	const char *title; /* in the table */
	int width;	   /* in the table */
	bool integer;
	double scale; /* from the value to the unit of the table */
};

struct ex_field { /* one value that describes the run */
	const char *name;
	char *text;
	bool number;
};

#define EX_MAX_FIELDS 20

struct ex_results {
	struct ex_field fields[EX_MAX_FIELDS];
	size_t num_fields;
	const struct ex_column *columns;
	size_t num_columns;
	double *values; /* num_rows times num_columns; not finite: unknown */
	size_t num_rows;
};

/* ---- report_text.c ---- */

/* Both return a string for free(), or NULL without memory. Real numbers have 9 significant digits
 * and are the same in both forms. */
char *ex_results_to_json(const struct ex_results *r);
char *ex_results_to_csv(const struct ex_results *r);

/* ---- report_stats.c ---- */

struct ex_stats { /* microseconds; NAN without samples */
	double min, median, average, p99, p999, max;
};

/* The quantile is the smallest sample for which at least permille / 1000 of all samples are less or
 * equal (nearest rank): it is always a sample that was measured. num > 0, permille 0 to 1000. */
uint32_t ex_quantile(const uint32_t *samples, uint64_t num, uint32_t permille);
void ex_stats_compute(struct ex_stats *stats, const uint32_t *samples, uint64_t num,
		      double ns_per_tick);

/* ---- report_file.c ---- */

/* Both return 0, or -1 after a message. The path "-" is standard output. ex_file_check() finds out
 * before a measurement whether the file can be written after it. */
int ex_file_check(const char *path);
int ex_file_write(const char *path, const char *data, size_t len);

#endif
