/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The results of a run: a table on the terminal, and optionally JSON and CSV files. CSV columns and
 * JSON members have the same names.
 */
#ifndef EXAMPLES_REPORT_H
#define EXAMPLES_REPORT_H

#include <stdint.h>

#include "program.h"

struct ex_report_run { /* constant during a run */
	const char *program, *gpu, *device, *link_layer, *payload, *queues, *scope;
	const char *handler_requested, *handler, *reason;
	enum ex_kind kind;
	uint32_t queue_pairs, blocks, threads, mtu; /* blocks and threads of each queue pair */
};

struct ex_report_row { /* one message size */
	uint32_t bytes;
	uint64_t messages;
	double seconds;
	uint64_t doorbells, dbrec_updates;
	const uint32_t *samples; /* latency: ticks of each iteration */
	uint64_t num_samples;
	double ns_per_tick;
};

/* All return 0 or, after a message, -1. json and csv: file names, "-" for standard output (the
 * table is then on standard error), or NULL. ex_report_begin() checks that these files can be
 * written, copies the strings, and prints the head of the table. ex_report_end() frees everything,
 * and replaces each file by a complete one or leaves it as it was. */
int ex_report_begin(const struct ex_report_run *run, const char *json, const char *csv);
int ex_report_row(const struct ex_report_row *row);
int ex_report_end(void);

/* Rewrites one line of progress, only if standard error is a terminal, at most 5 times per second.
 * done: 0 to 1. gbps: 0 if it is not known. The cursor stays at the start of the line. */
void ex_report_progress(double done, double gbps);

#endif
