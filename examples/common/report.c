/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The report of a run: the table, the progress line, and the result files in JSON and CSV. The
 * columns are listed once, for all three forms. A value that could not be computed, such as the
 * median of no samples, is "-" in the table, null in JSON and empty in CSV.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host/gdk_version.h"
#include "common.h"
#include "report.h"
#include "report_parts.h"

#define PROGRESS_NS  200000000ll /* shortest time between two progress lines */
#define PROGRESS_BAR 30		 /* characters */

static const struct ex_column bandwidth_columns[] = {
	{ "bytes", "#bytes", 10, true, 1 },	    { "messages", "#messages", 12, true, 1 },
	{ "gbps", "BW[Gb/s]", 10, false, 1 },	    { "mmsgs", "MsgRate[M/s]", 14, false, 1 },
	{ "seconds", "time[ms]", 10, false, 1000 }, { "doorbells", "doorbells", 11, true, 1 },
	{ "dbrec_updates", "DBRECs", 11, true, 1 },
};

static const struct ex_column latency_columns[] = {
	{ "bytes", "#bytes", 10, true, 1 },	  { "iterations", "#iterations", 12, true, 1 },
	{ "min_us", "min[us]", 10, false, 1 },	  { "median_us", "median[us]", 11, false, 1 },
	{ "avg_us", "avg[us]", 10, false, 1 },	  { "p99_us", "p99[us]", 10, false, 1 },
	{ "p999_us", "p99.9[us]", 10, false, 1 }, { "max_us", "max[us]", 10, false, 1 },
};

static struct {
	struct ex_results results;
	enum ex_kind kind;
	char *json, *csv; /* file names, or NULL */
	FILE *table;	  /* standard output, or standard error if a result file is there */
	bool terminal;	  /* standard error shows progress */
	bool line_shown;  /* the line of the terminal has progress */
	bool failed;	  /* the table could not be written */
	int64_t shown_ns; /* time of the last progress line or row */
} report;

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

/* ---- strings and numbers that describe the run ---- */

/* JSON must be UTF-8. Names of devices and hosts are ASCII, so that no other byte is needed. */
static char *ascii_copy(const char *text)
{
	char *copy = strdup(text ? text : "");

	for (char *c = copy; c && *c; c++)
		if (*c & 0x80)
			*c = '?';
	return copy;
}

static int add_text(const char *name, const char *text)
{
	struct ex_results *r = &report.results;
	struct ex_field *f = &r->fields[r->num_fields];

	*f = (struct ex_field){ .name = name, .text = ascii_copy(text) };
	if (!f->text)
		return -1;
	r->num_fields++;
	return 0;
}

static int add_number(const char *name, uint32_t value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	if (add_text(name, text))
		return -1;
	report.results.fields[report.results.num_fields - 1].number = true;
	return 0;
}

static int add_fields(const struct ex_report_run *run)
{
	char host[256] = "", start[32];
	time_t now = time(NULL);
	struct tm tm;

	gethostname(host, sizeof(host) - 1);
	gmtime_r(&now, &tm);
	strftime(start, sizeof(start), "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (add_text("program", run->program) || add_text("version", gdk_version()) ||
	    add_text("time", start) || add_text("host", host) || add_text("gpu", run->gpu) ||
	    add_text("device", run->device) || add_text("link_layer", run->link_layer) ||
	    add_number("mtu", run->mtu) || add_text("handler_requested", run->handler_requested) ||
	    add_text("handler", run->handler) || add_text("reason", run->reason) ||
	    add_number("queue_pairs", run->queue_pairs) || add_number("blocks", run->blocks) ||
	    add_number("threads", run->threads) || add_text("scope", run->scope) ||
	    add_text("payload", run->payload) || add_text("queues", run->queues))
		return ex_error("no memory for the report");
	return 0;
}

/* ---- the table ---- */

/* Four significant digits; exponential notation below 1e-4. */
static void format_number(char *text, size_t len, double value)
{
	int decimals = 3;

	if (value > 0 && value < 1e-4) {
		snprintf(text, len, "%.3e", value);
		return;
	}
	for (double v = value; v >= 10 && decimals > 0; v /= 10)
		decimals--;
	for (double v = value; v > 0 && v < 1; v *= 10)
		decimals++;
	snprintf(text, len, "%.*f", decimals, value);
}

static void print_value(const struct ex_column *column, double value)
{
	char text[64];

	if (!isfinite(value))
		snprintf(text, sizeof(text), "-");
	else if (column->integer)
		snprintf(text, sizeof(text), "%.0f", value);
	else
		format_number(text, sizeof(text), value * column->scale);
	fprintf(report.table, " %*s", column->width - 1, text);
}

/* Completes a line of the table. Standard output may be a file on a full disk. */
static int end_line(void)
{
	if (fputc('\n', report.table) != EOF && !fflush(report.table) && !ferror(report.table))
		return 0;
	if (!report.failed)
		ex_error("cannot write the table: %s", strerror(errno));
	report.failed = true;
	return -1;
}

static int print_head(const struct ex_report_run *run)
{
	const struct ex_results *r = &report.results;

	fprintf(report.table, "%s (gdaki %s)\n", run->program, gdk_version());
	fprintf(report.table, "GPU %s, device %s (%s, MTU %u), payload: %s, queues: %s\n", run->gpu,
		run->device, run->link_layer, run->mtu, run->payload, run->queues);
	fprintf(report.table, "queue pairs: %u, blocks: %u, threads: %u each, scope: %s\n",
		run->queue_pairs, run->blocks, run->threads, run->scope);
	fprintf(report.table, "handler: %s, requested: %s", run->handler, run->handler_requested);
	if (run->reason && *run->reason)
		fprintf(report.table, " (%s)", run->reason);
	fprintf(report.table, "\n");
	for (size_t c = 0; c < r->num_columns; c++)
		fprintf(report.table, " %*s", r->columns[c].width - 1, r->columns[c].title);
	return end_line();
}

/* ---- the progress line ---- */

/* The cursor stays at the start of the line, so that an error message overwrites it. */
static void erase_progress(void)
{
	if (report.line_shown) {
		fputs("\r\033[K", stderr);
		fflush(stderr);
	}
	report.line_shown = false;
}

void ex_report_progress(double done, double gbps)
{
	int64_t now = now_ns();
	char bar[PROGRESS_BAR + 1], rate[32] = "";
	int filled;

	if (!report.terminal || now - report.shown_ns < PROGRESS_NS)
		return;
	done = done > 0 ? done < 1 ? done : 1 : 0; /* not a number: 0 */
	filled = (int)(done * PROGRESS_BAR);
	memset(bar, '.', PROGRESS_BAR);
	memset(bar, '#', (size_t)filled);
	bar[PROGRESS_BAR] = 0;
	if (isfinite(gbps) && gbps > 0) {
		format_number(rate, sizeof(rate) - 6, gbps);
		strcat(rate, " Gb/s");
	}
	fprintf(stderr, "\r\033[K[%s] %3.0f%%  %s\r", bar, 100 * done, rate);
	fflush(stderr);
	report.line_shown = true;
	report.shown_ns = now;
}

/* ---- a run ---- */

static void free_all(void)
{
	for (size_t i = 0; i < report.results.num_fields; i++)
		free(report.results.fields[i].text);
	free(report.results.values);
	free(report.json);
	free(report.csv);
	memset(&report, 0, sizeof(report));
}

static int set_files(const char *json, const char *csv)
{
	if (json && csv && !strcmp(json, csv))
		return ex_error("--json and --csv have the same file: %s", json);
	if ((json && ex_file_check(json)) || (csv && ex_file_check(csv)))
		return -1;
	report.json = json ? strdup(json) : NULL;
	report.csv = csv ? strdup(csv) : NULL;
	if ((json && !report.json) || (csv && !report.csv))
		return ex_error("no memory for the report");
	report.table = (json && !strcmp(json, "-")) || (csv && !strcmp(csv, "-")) ? stderr : stdout;
	return 0;
}

int ex_report_begin(const struct ex_report_run *run, const char *json, const char *csv)
{
	struct ex_results *r = &report.results;

	free_all();
	report.kind = run->kind;
	if (run->kind == EX_BANDWIDTH) {
		r->columns = bandwidth_columns;
		r->num_columns = sizeof(bandwidth_columns) / sizeof(bandwidth_columns[0]);
	} else {
		r->columns = latency_columns;
		r->num_columns = sizeof(latency_columns) / sizeof(latency_columns[0]);
	}
	if (set_files(json, csv) || add_fields(run) || print_head(run)) {
		free_all();
		return -1;
	}
	report.terminal = isatty(STDERR_FILENO);
	report.shown_ns = now_ns();
	return 0;
}

static void compute(const struct ex_report_row *row, double *values)
{
	double bits = 8.0 * (double)row->bytes * (double)row->messages;
	bool known = row->messages && row->seconds > 0;
	struct ex_stats s;

	values[0] = row->bytes;
	if (report.kind == EX_BANDWIDTH) {
		values[1] = (double)row->messages;
		values[2] = known ? bits / row->seconds * 1e-9 : NAN;
		values[3] = known ? (double)row->messages / row->seconds * 1e-6 : NAN;
		values[4] = row->seconds;
		values[5] = (double)row->doorbells;
		values[6] = (double)row->dbrec_updates;
		return;
	}
	ex_stats_compute(&s, row->samples, row->num_samples, row->ns_per_tick);
	values[1] = (double)row->num_samples;
	values[2] = s.min;
	values[3] = s.median;
	values[4] = s.average;
	values[5] = s.p99;
	values[6] = s.p999;
	values[7] = s.max;
}

int ex_report_row(const struct ex_report_row *row)
{
	struct ex_results *r = &report.results;
	double *values = realloc(r->values, (r->num_rows + 1) * r->num_columns * sizeof(*values));

	erase_progress();
	if (!values)
		return ex_error("no memory for the report");
	r->values = values;
	values += r->num_rows++ * r->num_columns;
	compute(row, values);
	for (size_t c = 0; c < r->num_columns; c++)
		print_value(&r->columns[c], values[c]);
	report.shown_ns = now_ns();
	return end_line();
}

static int write_results(const char *path, char *text)
{
	int rc;

	if (!text)
		return ex_error("no memory for %s", path);
	rc = ex_file_write(path, text, strlen(text));
	free(text);
	return rc;
}

int ex_report_end(void)
{
	const struct ex_results *r = &report.results;
	int rc = report.failed ? -1 : 0;

	erase_progress();
	if (report.json && write_results(report.json, ex_results_to_json(r)))
		rc = -1;
	if (report.csv && write_results(report.csv, ex_results_to_csv(r)))
		rc = -1;
	free_all();
	return rc;
}
