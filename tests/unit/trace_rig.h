/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Rig of test_trace.c: the files of a traced run, replacements of functions of libc,
 * and a parser that turns a trace into an array of records.
 */
#ifndef TRACE_RIG_H
#define TRACE_RIG_H

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOX_MAX	    0x1010
#define RECORDS_MAX 2048
#define TEXTS_MAX   4

static char folder[] = "/tmp/gdaki-trace-XXXXXX", trace_path[64], nic_path[64];

/* files that read_file() has read; end() frees them */
static char *texts[TEXTS_MAX];
static size_t num_texts;

static char *read_file(const char *path)
{
	struct stat st;
	FILE *f = fopen(path, "r");
	char *text;

	cr_assert(f && !fstat(fileno(f), &st), "cannot read %s", path);
	text = calloc(1, (size_t)st.st_size + 1);
	cr_assert(text && fread(text, 1, (size_t)st.st_size, f) == (size_t)st.st_size);
	fclose(f);
	cr_assert_lt(num_texts, TEXTS_MAX);
	texts[num_texts++] = text;
	return text;
}

/*
 * Replaces write() of libc. Counts the writes to the trace that are not whole
 * records. There must be none, because parts of different threads' records could
 * mix.
 */
static int torn_writes;

ssize_t write(int fd, const void *data, size_t len)
{
	static ssize_t (*real)(int, const void *, size_t);
	const char *text = data;
	char link[32], path[128];
	ssize_t n;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "write");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n > 0 && !strncmp(path, trace_path, (size_t)n) && *trace_path)
		torn_writes += text[0] == ' ' || text[len - 1] != '\n' ||
			       (!strncmp(text, "cmd ", 4) && !memmem(text, len, "\n end ", 6));
	return real(fd, data, len);
}

/*
 * Flags for the next two functions, which replace functions of libc. distrust:
 * simulate secure execution (as of a setuid program). no_memory: open_memstream()
 * fails.
 */
static bool distrust, no_memory;

char *secure_getenv(const char *name)
{
	return distrust ? NULL : getenv(name);
}

FILE *open_memstream(char **text, size_t *len)
{
	static FILE *(*real)(char **, size_t *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "open_memstream");
	errno = ENOMEM;
	return no_memory ? NULL : real(text, len);
}

/* ---- the records of a trace ---- */

struct record {
	char kind[16], name[32];
	int pid, sys_err;
	unsigned int seq, opcode, status, syndrome;
	size_t inlen, outlen;
	uint8_t in[BOX_MAX], out[BOX_MAX];
	const char *line;
};

static struct record *records;
static size_t num_records;

static void begin(void)
{
	cr_assert(mkdtemp(folder));
	snprintf(trace_path, sizeof(trace_path), "%s/trace", folder);
	snprintf(nic_path, sizeof(nic_path), "%s/nic", folder);
	setenv("GDAKI_TRACE_CMDS", trace_path, 1);
	unsetenv("GDAKI_TRACE_CMDS_MASK");
}

static void end(void)
{
	while (num_texts)
		free(texts[--num_texts]);
	free(records);
	unlink(trace_path);
	unlink(nic_path);
	rmdir(folder);
}

static void read_row(struct record *r, uint8_t *box, const char *line)
{
	unsigned int at, byte, i = 0;
	const char *p = strchr(line, ':');

	cr_assert(p && box && sscanf(line, "  %x:", &at) == 1, "not a row of bytes: %s", line);
	for (p++; *p && *p != '\n'; p += 2, i++) {
		p += *p == ' ';
		if (strncmp(p, "**", 2)) {
			cr_assert_eq(sscanf(p, "%2x", &byte), 1, "record %u: %s", r->seq, line);
			box[at + i] = (uint8_t)byte;
		}
	}
}

/*
 * A record starts with a line that is not indented. In a record of a command,
 * indented lines follow: input bytes, output bytes, end.
 */
static void parse(char *text)
{
	struct record *r = NULL;
	uint8_t *box = NULL;
	char *line, *next;
	unsigned int seq;

	records = calloc(RECORDS_MAX, sizeof(*records));
	num_records = 0;
	for (line = text; *line; line = next) {
		next = strchr(line, '\n');
		cr_assert(next, "the last line is incomplete");
		*next++ = 0;
		if (*line != ' ') {
			cr_assert(num_records < RECORDS_MAX && !box,
				  "no end of the record before: %s", line);
			r = &records[num_records++];
			r->line = line;
			cr_assert_eq(sscanf(line, "%15s pid %d seq %u t %*u.%*u", r->kind, &r->pid,
					    &r->seq),
				     3, "no header of a record: %s", line);
			if (strcmp(r->kind, "cmd"))
				continue;
			cr_assert_eq(sscanf(strstr(line, " dev "), " dev %*s %31s 0x%x", r->name,
					    &r->opcode),
				     2, "no name and opcode: %s", line);
			box = r->in;
		} else if (sscanf(line, " in %zu", &r->inlen) == 1) {
			box = r->in;
		} else if (sscanf(line, " out %zu", &r->outlen) == 1) {
			box = r->out;
		} else if (!strncmp(line, " end ", 5)) {
			cr_assert(sscanf(line, " end %u", &seq) == 1 && seq == r->seq,
				  "wrong end of a record: %s", line);
			sscanf(line, " end %*u status 0x%x syndrome 0x%x", &r->status,
			       &r->syndrome);
			cr_assert_eq(
				sscanf(strstr(line, " errno "), " errno %d us %*u", &r->sys_err),
				1);
			box = NULL;
		} else {
			read_row(r, box, line);
		}
	}
	cr_assert(!box, "the last record is incomplete");
}

#endif
