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

/* Prints the head of the table. json and csv: file names, "-" for standard output, or NULL. The
 * strings of run must stay valid until ex_report_end(). All return 0 or, after a message, -1. */
int ex_report_begin(const struct ex_report_run *run, const char *json, const char *csv);
int ex_report_row(const struct ex_report_row *row);
int ex_report_end(void); /* writes the JSON and CSV files */

/* Rewrites one line of progress, only if standard error is a terminal. done: 0 to 1. */
void ex_report_progress(double done, double gbps);

#endif
