/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The results of all ranks: a table on the terminal, and CSV and JSON files. Their columns have the
 * names that the other examples use, too. The last row is the total: the sums, and the time of the
 * slowest rank.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alltoall_rank.h"
#include "report_parts.h"

static double gbps(const struct a2a_options *opt, const struct a2a_result *r)
{
	return 8e-9 * (double)r->messages * opt->ex.size / r->seconds;
}

static double mmsgs(const struct a2a_result *r)
{
	return 1e-6 * (double)r->messages / r->seconds;
}

static struct a2a_result sum(const struct a2a_world *w, const struct a2a_result *results)
{
	struct a2a_result total = { 0 };

	for (int i = 0; i < w->ranks; i++) {
		total.messages += results[i].messages;
		total.doorbells += results[i].doorbells;
		total.dbrec_updates += results[i].dbrec_updates;
		total.wrong += results[i].wrong;
		if (results[i].seconds > total.seconds)
			total.seconds = results[i].seconds;
	}
	return total;
}

/* ---- terminal ---- */

static void print_row(FILE *f, const struct a2a_options *opt, const char *rank,
		      const struct a2a_result *r)
{
	fprintf(f,
		"%6s  %-16.16s %-16s %-10.10s %-14s %10" PRIu64 " %10.3f %9.3f %9.4f %10" PRIu64
		" %8" PRIu64 " %6" PRIu64 "\n",
		rank, r->host, r->gpu, r->device, r->handler, r->messages, 1e3 * r->seconds,
		gbps(opt, r), mmsgs(r), r->doorbells, r->dbrec_updates, r->wrong);
}

static void print_table(FILE *f, const struct a2a_options *opt, const struct a2a_world *w,
			const struct a2a_result *results, const struct a2a_result *total)
{
	char rank[16];

	fprintf(f, "%d ranks, %u iterations, blocks of %u bytes, %u thread%s per queue pair, %s\n",
		w->ranks, opt->ex.iters, opt->ex.size, opt->ex.threads,
		opt->ex.threads == 1 ? "" : "s", opt->counter ? "signals and counters" : "signals");
	fprintf(f, "%6s  %-16s %-16s %-10s %-14s %10s %10s %9s %9s %10s %8s %6s\n", "rank", "host",
		"gpu", "device", "handler", "#messages", "time[ms]", "BW[Gb/s]", "[Mmsg/s]",
		"doorbells", "DBRECs", "wrong");
	for (int i = 0; i < w->ranks; i++) {
		snprintf(rank, sizeof(rank), "%d", i);
		print_row(f, opt, rank, &results[i]);
	}
	print_row(f, opt, "total", total);
	for (int i = 0; i < w->ranks; i++)
		if (results[i].wrong)
			ex_error("rank %d received wrong data: %s", i, results[i].text);
	if (!total->wrong)
		fprintf(f, "All ranks received all blocks correctly%s.\n",
			opt->check > 1 ? " (-k: part of the bytes was not checked)" : "");
}

/* ---- files ---- */

static const char *const names[] = { "program",	      "version",  "time",
				     "host",	      "gpu",	  "device",
				     "link_layer",    "mtu",	  "handler_requested",
				     "handler",	      "reason",	  "queue_pairs",
				     "blocks",	      "threads",  "scope",
				     "payload",	      "queues",	  "rank",
				     "bytes",	      "messages", "seconds",
				     "gbps",	      "mmsgs",	  "doorbells",
				     "dbrec_updates", "wrong" };
#define NUM_NAMES (sizeof(names) / sizeof(names[0]))

/* The values of a row as text, in the order of the names. */
struct row {
	char text[NUM_NAMES][176];
};

static bool is_number(size_t column)
{
	static const char *const texts[] = {
		"program", "version", "time",	    "host",
		"gpu",	   "device",  "link_layer", "handler_requested",
		"handler", "reason",  "scope",	    "payload",
		"queues",  "rank"
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (!strcmp(names[column], texts[i]))
			return false;
	return true;
}

#define SET(...) snprintf(row->text[n++], sizeof(row->text[0]), __VA_ARGS__)

static void fill_row(struct row *row, const struct a2a_options *opt, const struct a2a_world *w,
		     const char *rank, const struct a2a_result *r, const char *start)
{
	const bool gpu = strcmp(opt->gpus, "host");
	size_t n = 0;

	SET("gpunetio_verbs_alltoall");
	SET("%s", gdk_version());
	SET("%s", start);
	SET("%s", r->host);
	SET("%s", r->gpu);
	SET("%s", r->device);
	SET("%s", r->link_layer);
	SET("%u", r->mtu);
	SET("%s", r->requested);
	SET("%s", r->handler);
	SET("%s", r->reason);
	SET("%d", w->ranks - 1);
	SET("1");
	SET("%u", opt->ex.threads);
	SET("thread");
	SET("%s", opt->ex.payload_gpu ? "gpu" : "host");
	SET("%s", gpu && !opt->ex.queues_host ? "gpu" : "host");
	SET("%s", rank);
	SET("%u", opt->ex.size);
	SET("%" PRIu64, r->messages);
	SET("%.9g", r->seconds);
	SET("%.9g", gbps(opt, r));
	SET("%.9g", mmsgs(r));
	SET("%" PRIu64, r->doorbells);
	SET("%" PRIu64, r->dbrec_updates);
	SET("%" PRIu64, r->wrong);
}

static void put_csv(FILE *f, const struct row *row)
{
	for (size_t i = 0; i < NUM_NAMES; i++) {
		const bool quote = strpbrk(row->text[i], ",\"\n");

		fputs(quote ? "\"" : "", f);
		for (const char *c = row->text[i]; *c; c++)
			fputs(*c == '"' ? "\"\"" : (char[]){ *c, 0 }, f);
		fputs(quote ? "\"" : "", f);
		fputc(i + 1 < NUM_NAMES ? ',' : '\n', f);
	}
}

static void put_json(FILE *f, const struct row *row)
{
	fputs("\t\t{", f);
	for (size_t i = 0; i < NUM_NAMES; i++) {
		fprintf(f, "%s\"%s\": ", i ? ", " : "", names[i]);
		if (is_number(i)) {
			fputs(row->text[i], f);
			continue;
		}
		fputc('"', f);
		for (const unsigned char *c = (const unsigned char *)row->text[i]; *c; c++)
			if (*c < 0x20 || *c > 0x7e || *c == '"' || *c == '\\')
				fprintf(f, "\\u%04x", *c);
			else
				fputc(*c, f);
		fputc('"', f);
	}
	fputc('}', f);
}

/* One row for each rank and the total, as CSV or JSON. Returns 0, or -1 after a message. */
static int write_rows(const char *path, bool json, const struct row *rows, int num)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	int rc;

	if (!f)
		return ex_error("out of memory");
	if (json)
		fputs("{\n\t\"rows\": [\n", f);
	for (size_t i = 0; !json && i < NUM_NAMES; i++)
		fprintf(f, "%s%c", names[i], i + 1 < NUM_NAMES ? ',' : '\n');
	for (int i = 0; i < num; i++) {
		(json ? put_json : put_csv)(f, &rows[i]);
		fputs(!json ? "" : i + 1 < num ? ",\n" : "\n\t]\n}\n", f);
	}
	rc = ferror(f) || fclose(f) ? ex_error("out of memory") : ex_file_write(path, text, len);
	free(text);
	return rc;
}

static int write_files(const struct a2a_options *opt, const struct a2a_world *w,
		       const struct a2a_result *results, const struct a2a_result *total)
{
	struct row *rows = calloc((size_t)w->ranks + 1, sizeof(*rows));
	time_t now = time(NULL);
	char start[32], rank[16];
	struct tm tm;
	int rc = 0;

	if (!rows)
		return ex_error("out of memory");
	gmtime_r(&now, &tm);
	strftime(start, sizeof(start), "%Y-%m-%dT%H:%M:%SZ", &tm);
	for (int i = 0; i < w->ranks; i++) {
		snprintf(rank, sizeof(rank), "%d", i);
		fill_row(&rows[i], opt, w, rank, &results[i], start);
	}
	fill_row(&rows[w->ranks], opt, w, "total", total, start);
	if (opt->json)
		rc = write_rows(opt->json, true, rows, w->ranks + 1);
	if (!rc && opt->csv)
		rc = write_rows(opt->csv, false, rows, w->ranks + 1);
	free(rows);
	return rc;
}

int a2a_table(const struct a2a_options *opt, const struct a2a_world *w,
	      const struct a2a_result *results)
{
	const bool file_on_stdout = (opt->json && !strcmp(opt->json, "-")) ||
				    (opt->csv && !strcmp(opt->csv, "-"));
	struct a2a_result total = sum(w, results);

	print_table(file_on_stdout ? stderr : stdout, opt, w, results, &total);
	if (!opt->json && !opt->csv)
		return 0;
	snprintf(total.link_layer, sizeof(total.link_layer), "%s", results[0].link_layer);
	snprintf(total.requested, sizeof(total.requested), "%s", results[0].requested);
	return write_files(opt, w, results, &total);
}
