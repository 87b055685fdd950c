/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The reports of the examples: the table and the files against the values that went in, the
 * progress line, and what happens if output is impossible.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <math.h>
#include <pty.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../examples/common/common.h"
#include "../../examples/common/report.h"
#include "../../examples/common/report_parts.h"

static char last_error[512];

/* Replaces ex_error() of examples/common/error.c. */
int ex_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(last_error, sizeof(last_error), fmt, ap);
	va_end(ap);
	return -1;
}

static char dir[64], json[96], csv[96];

static void set_up(void)
{
	strcpy(dir, "/tmp/test_report.XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	snprintf(json, sizeof(json), "%s/r.json", dir);
	snprintf(csv, sizeof(csv), "%s/r.csv", dir);
}

static unsigned int files_in_dir(bool remove_them)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	unsigned int n = 0;

	while ((e = readdir(d)))
		if (e->d_name[0] != '.') {
			n++;
			if (remove_them)
				unlinkat(dirfd(d), e->d_name, 0);
		}
	closedir(d);
	return n;
}

/* Text that the tests read is freed at their end. */
static char *texts[16];
static unsigned int num_texts;

static void tear_down(void)
{
	while (num_texts)
		free(texts[--num_texts]);
	files_in_dir(true);
	rmdir(dir);
}

TestSuite(report, .init = set_up, .fini = tear_down);

/* Redirects a descriptor to a file in dir, or restores it and returns what was written. */
static int saved_fd[3];

static void capture(int fd)
{
	char path[96];
	int file;

	snprintf(path, sizeof(path), "%s/fd%d", dir, fd);
	file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	cr_assert_geq(file, 0);
	fflush(NULL);
	saved_fd[fd] = dup(fd);
	dup2(file, fd);
	close(file);
}

static char *read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 65536);

	cr_assert_lt(num_texts, sizeof(texts) / sizeof(texts[0]));
	texts[num_texts++] = text;
	cr_assert_not_null(f, "%s: %s", path, strerror(errno));
	text[fread(text, 1, 65535, f)] = 0;
	fclose(f);
	return text;
}

static char *captured(int fd)
{
	char path[96], *text;

	fflush(NULL);
	dup2(saved_fd[fd], fd);
	close(saved_fd[fd]);
	snprintf(path, sizeof(path), "%s/fd%d", dir, fd);
	text = read_file(path);
	unlink(path);
	return text;
}

static struct ex_report_run run_of(enum ex_kind kind)
{
	return (struct ex_report_run){
		.program = "gpunetio_verbs_test",
		.gpu = "host",
		.device = "mlx5_0",
		.link_layer = "Ethernet",
		.payload = "host",
		.queues = "host",
		.scope = "thread",
		.handler_requested = "AUTO",
		.handler = "GPU_SM_DB",
		.reason = "maps the register, fast",
		.kind = kind,
		.queue_pairs = 2,
		.blocks = 3,
		.threads = 96,
		.mtu = 4096,
	};
}

/* ---- the table and the files ---- */

/* Splits a line of CSV in place. Returns the number of cells. */
static size_t split_csv(char **line, char **cells, size_t max)
{
	char *in = *line, *out = in;
	size_t n = 0;
	bool quoted = false;

	for (cells[n++] = out; *in && (quoted || *in != '\n'); in++) {
		if (*in == '"' && quoted && in[1] == '"') {
			*out++ = *in++;
		} else if (*in == '"') {
			quoted = !quoted;
		} else if (*in == ',' && !quoted) {
			*out++ = 0;
			cr_assert_lt(n, max);
			cells[n++] = out;
		} else {
			*out++ = *in;
		}
	}
	*line = *in ? in + 1 : in;
	*out = 0;
	return n;
}

/* Compares each cell of the CSV text with the member of the same name of the JSON text. Returns
 * the number of rows. */
static size_t compare_files(char *csv_text, const char *json_text)
{
	struct json_object *top = json_tokener_parse(json_text), *rows, *value;
	char *names[32], *cells[32];
	size_t n = split_csv(&csv_text, names, 32), row = 0;

	cr_assert(top && json_object_object_get_ex(top, "rows", &rows), "%s", json_text);
	for (; *csv_text; row++) {
		struct json_object *r = json_object_array_get_idx(rows, row);

		cr_assert_eq(split_csv(&csv_text, cells, 32), n);
		for (size_t c = 0; c < n; c++) {
			cr_assert(json_object_object_get_ex(top, names[c], &value) ||
					  json_object_object_get_ex(r, names[c], &value),
				  "JSON lacks %s", names[c]);
			cr_assert_str_eq(cells[c], value ? json_object_get_string(value) : "", "%s",
					 names[c]);
		}
	}
	cr_assert_eq(row, json_object_array_length(rows));
	json_object_put(top);
	return row;
}

static double member(const char *json_text, unsigned int row, const char *name)
{
	struct json_object *top = json_tokener_parse(json_text), *rows, *value;
	double v;

	cr_assert(top && json_object_object_get_ex(top, "rows", &rows));
	cr_assert(json_object_object_get_ex(json_object_array_get_idx(rows, row), name, &value),
		  "no %s", name);
	v = value ? json_object_get_double(value) : NAN;
	json_object_put(top);
	return v;
}

/* The number in a column of the last line of the table. */
static double in_table(const char *table, unsigned int column)
{
	const char *line = table, *next;
	double v = NAN;

	while ((next = strchr(line, '\n')) && next[1])
		line = next + 1;
	for (unsigned int c = 0; c <= column; c++) {
		int len = 0;

		cr_assert(sscanf(line, " %lf%n", &v, &len) == 1, "%s", table);
		line += len;
	}
	return v;
}

static char *make_report(enum ex_kind kind, const struct ex_report_row *rows, size_t num)
{
	struct ex_report_run run = run_of(kind);

	capture(1);
	cr_assert_eq(ex_report_begin(&run, json, csv), 0, "%s", last_error);
	for (size_t i = 0; i < num; i++)
		cr_assert_eq(ex_report_row(&rows[i]), 0, "%s", last_error);
	cr_assert_eq(ex_report_end(), 0, "%s", last_error);
	return captured(1);
}

static void near(double got, double want, double tolerance, const char *what)
{
	cr_assert(fabs(got - want) <= tolerance * fabs(want), "%s: %g instead of %g", what, got,
		  want);
}

Test(report, bandwidth_reads_back_from_table_and_files)
{
	struct ex_report_row rows[] = {
		{ .bytes = 1, .messages = 3, .seconds = 2 },
		{ .bytes = 1 << 30, .messages = 1ull << 40, .seconds = 1e5 / 3, .doorbells = 1 },
		{ .bytes = 65536,
		  .messages = 123456,
		  .seconds = 0.0777,
		  .doorbells = 4711,
		  .dbrec_updates = 815 },
	};
	char *table = make_report(EX_BANDWIDTH, rows, 3);
	char *text = read_file(json);

	cr_assert_not_null(strstr(table, "#bytes   #messages  BW[Gb/s]"), "%s", table);
	cr_assert_not_null(strstr(table, "handler: GPU_SM_DB, requested: AUTO (maps"), "%s", table);
	cr_assert_eq(in_table(table, 0), 65536);
	cr_assert_eq(in_table(table, 1), 123456);
	near(in_table(table, 2), 833.0304, 1e-3, "Gb/s in the table");
	near(in_table(table, 3), 1.588880, 1e-3, "messages/s in the table");
	near(in_table(table, 4), 77.7, 1e-3, "milliseconds in the table");
	cr_assert_eq(in_table(table, 5), 4711);
	cr_assert_eq(in_table(table, 6), 815);
	near(member(text, 2, "gbps"), 65536 * 8e-9 * 123456 / 0.0777, 1e-8, "gbps");
	near(member(text, 2, "mmsgs"), 0.123456 / 0.0777, 1e-8, "mmsgs");
	near(member(text, 2, "seconds"), 0.0777, 1e-8, "seconds");
	near(member(text, 0, "gbps"), 12e-9, 1e-8, "gbps of little data");
	cr_assert_eq(member(text, 1, "messages"), 0x1p40);
	cr_assert_eq(compare_files(read_file(csv), text), 3);
}

Test(report, latency_reads_back_from_table_and_files)
{
	uint32_t samples[] = { 900, 100, 300, 200, 400 };
	struct ex_report_row row = { .bytes = 8,
				     .samples = samples,
				     .num_samples = 5,
				     .ns_per_tick = 10 };
	char *table = make_report(EX_LATENCY, &row, 1);
	char *text = read_file(json);
	static const struct {
		const char *name;
		double value;
	} want[] = {
		{ "bytes", 8 },	   { "iterations", 5 }, { "min_us", 1 },  { "median_us", 3 },
		{ "avg_us", 3.8 }, { "p99_us", 9 },	{ "p999_us", 9 }, { "max_us", 9 },
	};

	for (unsigned int i = 0; i < 8; i++) {
		near(in_table(table, i), want[i].value, 1e-3, want[i].name);
		near(member(text, 0, want[i].name), want[i].value, 1e-8, want[i].name);
	}
	cr_assert_eq(compare_files(read_file(csv), text), 1);
}

Test(report, unknown_values_are_marked)
{
	struct ex_report_row row = { .bytes = 8, .ns_per_tick = NAN };
	char *table = make_report(EX_LATENCY, &row, 1);

	cr_assert_not_null(strstr(table, "  0         -          -"), "%s", table);
	cr_assert(isnan(member(read_file(json), 0, "median_us")));
	cr_assert_eq(compare_files(read_file(csv), read_file(json)), 1);
	table = make_report(EX_BANDWIDTH, &row, 1);
	cr_assert_not_null(strstr(table, "  0         -             -"), "%s", table);
	cr_assert_eq(compare_files(read_file(csv), read_file(json)), 1);
}

Test(report, run_without_rows_is_valid)
{
	make_report(EX_LATENCY, NULL, 0);
	cr_assert_eq(compare_files(read_file(csv), read_file(json)), 0);
}

Test(report, odd_strings_are_escaped)
{
	struct ex_report_run run = run_of(EX_BANDWIDTH);
	struct ex_report_row row = { .bytes = 1, .messages = 1, .seconds = 1 };
	char device[] = "a,b\"c\"\n{}[]\\/\t\r'\x01";
	struct json_object *top, *value;

	run.device = device;
	run.gpu = "GPU \xc3\xa9\xff"; /* no valid UTF-8 */
	run.reason = NULL;
	capture(1);
	cr_assert_eq(ex_report_begin(&run, json, csv), 0);
	device[0] = 'X'; /* the report has its own copy */
	cr_assert_eq(ex_report_row(&row), 0);
	cr_assert_eq(ex_report_end(), 0);
	captured(1);
	cr_assert_eq(compare_files(read_file(csv), read_file(json)), 1);
	top = json_tokener_parse(read_file(json));
	json_object_object_get_ex(top, "device", &value);
	device[0] = 'a';
	cr_assert_str_eq(json_object_get_string(value), device);
	json_object_object_get_ex(top, "gpu", &value);
	cr_assert_str_eq(json_object_get_string(value), "GPU ???");
	json_object_object_get_ex(top, "reason", &value);
	cr_assert_str_eq(json_object_get_string(value), "");
	json_object_put(top);
}

Test(report, minus_writes_the_file_to_stdout_and_the_table_to_stderr)
{
	struct ex_report_run run = run_of(EX_BANDWIDTH);
	struct ex_report_row row = { .bytes = 64, .messages = 1, .seconds = 1 };
	char *out, *err;

	capture(1);
	capture(2);
	cr_assert_eq(ex_report_begin(&run, csv, "-"), 0);
	cr_assert_eq(ex_report_row(&row), 0);
	cr_assert_eq(ex_report_end(), 0);
	out = captured(1);
	err = captured(2);
	cr_assert_not_null(strstr(err, "#bytes"), "%s", err);
	cr_assert_null(strstr(err, "\033"), "progress without a terminal");
	cr_assert_eq(compare_files(out, read_file(csv)), 1);
}

/* ---- output that is impossible ---- */

Test(report, paths_are_checked_before_the_measurement)
{
	struct ex_report_run run = run_of(EX_BANDWIDTH);
	char missing[128];

	snprintf(missing, sizeof(missing), "%s/missing/r.json", dir);
	cr_assert_eq(ex_report_begin(&run, missing, NULL), -1);
	cr_assert(strstr(last_error, missing) && strstr(last_error, strerror(ENOENT)), "%s",
		  last_error);
	cr_assert_eq(ex_report_begin(&run, NULL, dir), -1);
	cr_assert(strstr(last_error, dir) && strstr(last_error, strerror(EISDIR)), "%s",
		  last_error);
	cr_assert_eq(ex_report_begin(&run, json, json), -1);
	cr_assert_not_null(strstr(last_error, "same file"), "%s", last_error);
	cr_assert_eq(files_in_dir(false), 0, "a file remains");
}

Test(report, full_disk_is_reported)
{
	struct ex_report_run run = run_of(EX_BANDWIDTH);
	struct ex_report_row row = { .bytes = 64, .messages = 1, .seconds = 1 };
	char *text;

	capture(1);
	cr_assert_eq(ex_report_begin(&run, "/dev/full", csv), 0);
	cr_assert_eq(ex_report_row(&row), 0);
	cr_assert_eq(ex_report_end(), -1);
	captured(1);
	cr_assert_str_eq(last_error, "cannot write /dev/full: No space left on device");
	text = read_file(csv);
	cr_assert_eq(strncmp(text, "program,", 8), 0, "the other file is complete");
}

Test(report, table_on_a_full_disk_is_reported)
{
	struct ex_report_run run = run_of(EX_BANDWIDTH);
	int full = open("/dev/full", O_WRONLY), out = dup(1);

	fflush(NULL);
	dup2(full, 1);
	cr_assert_eq(ex_report_begin(&run, NULL, NULL), -1);
	dup2(out, 1);
	cr_assert_str_eq(last_error, "cannot write the table: No space left on device");
}

static void limit_file_size(rlim_t bytes)
{
	struct rlimit limit = { bytes, RLIM_INFINITY };

	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

Test(report, failed_write_leaves_the_old_file)
{
	char data[4096], *text;

	memset(data, 'x', sizeof(data));
	cr_assert_eq(ex_file_write(json, "old", 3), 0);
	limit_file_size(1024);
	cr_assert_eq(ex_file_write(json, data, sizeof(data)), -1);
	cr_assert_eq(ex_file_write(csv, data, sizeof(data)), -1);
	limit_file_size(RLIM_INFINITY);
	cr_assert_not_null(strstr(last_error, csv), "%s", last_error);
	cr_assert_not_null(strstr(last_error, strerror(EFBIG)), "%s", last_error);
	text = read_file(json);
	cr_assert_str_eq(text, "old");
	cr_assert_eq(files_in_dir(false), 1, "part of a file remains");
}

Test(report, file_replaces_the_target_of_a_link)
{
	char *text;
	struct stat st;

	umask(027);
	cr_assert_eq(ex_file_write(json, "a longer text", 13), 0);
	cr_assert_eq(symlink(json, csv), 0);
	cr_assert_eq(ex_file_write(csv, "new", 3), 0);
	text = read_file(json);
	cr_assert_str_eq(text, "new");
	cr_assert_eq(lstat(csv, &st), 0);
	cr_assert(S_ISLNK(st.st_mode));
	cr_assert_eq(stat(json, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0640, "mode %o", st.st_mode & 0777);
}

/* ---- progress ---- */

static void pause_ms(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

static size_t read_terminal(int terminal, char *text, size_t len)
{
	ssize_t n = read(terminal, text, len - 1);

	text[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

Test(report, progress_is_rare_and_erased_before_a_row)
{
	struct ex_report_run run = run_of(EX_BANDWIDTH);
	struct ex_report_row row = { .bytes = 64, .messages = 1, .seconds = 1 };
	int terminal, slave, err = dup(2), lines = 0;
	char text[8192], *end;

	cr_assert_eq(openpty(&terminal, &slave, NULL, NULL, NULL), 0);
	fcntl(terminal, F_SETFL, O_NONBLOCK);
	capture(1);
	dup2(slave, 2);
	cr_assert_eq(ex_report_begin(&run, NULL, NULL), 0);
	for (int i = 0; i <= 100; i++) {
		ex_report_progress(i / 100.0, i < 50 ? 0 : 12.3456);
		pause_ms(9);
	}
	dup2(err, 2);
	read_terminal(terminal, text, sizeof(text));
	for (const char *c = text; (c = strchr(c, '%')); c++)
		lines++;
	cr_assert(lines >= 2 && lines <= 15, "%d progress lines: %s", lines, text);
	cr_assert_not_null(strstr(text, "12.35 Gb/s"), "%s", text);
	cr_assert_null(strchr(text, '\n'), "%s", text);
	dup2(slave, 2);
	cr_assert_eq(ex_report_row(&row), 0);
	cr_assert_eq(ex_report_end(), 0);
	dup2(err, 2);
	captured(1);
	read_terminal(terminal, text, sizeof(text));
	end = strstr(text, "\033[K");
	cr_assert(end && !end[3], "the line is not erased: %s", text);
}

Test(report, progress_survives_odd_numbers)
{
	struct ex_report_run run = run_of(EX_BANDWIDTH);
	static const double odd[] = { -1, 2, NAN, INFINITY, -INFINITY, 1e300 };
	int terminal, slave, err = dup(2);
	char text[4096];

	cr_assert_eq(openpty(&terminal, &slave, NULL, NULL, NULL), 0);
	fcntl(terminal, F_SETFL, O_NONBLOCK);
	capture(1);
	dup2(slave, 2);
	cr_assert_eq(ex_report_begin(&run, NULL, NULL), 0);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		pause_ms(210);
		ex_report_progress(odd[i], odd[i]);
	}
	ex_report_end();
	dup2(err, 2);
	captured(1);
	read_terminal(terminal, text, sizeof(text));
	cr_assert(strstr(text, "  0%") && strstr(text, "100%"), "%s", text);
	cr_assert_null(strstr(text, "nan"), "%s", text);
	cr_assert_null(strstr(text, "inf"), "%s", text);
}
