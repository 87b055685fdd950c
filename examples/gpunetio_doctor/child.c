/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Runs a check in a child process with a time limit, because a driver can block or crash. The
 * child writes its results to a pipe, from which the parent adds them to its report. A record of
 * the pipe is a letter and four texts, each ended by FIELD.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine.h"
#include "results.h"

#define FIELD	       '\x1f'
#define RECORD_LEN     4096
#define NUM_TEXTS      4
#define LETTER_RESULT  'r'
#define LETTER_HANDLER 'h'

/* ---- the library's log ---- */

/* Moves the library's log from standard error into a file in memory, to quote it. */
void dr_log_begin(struct dr_log *log)
{
	fflush(stderr);
	log->file = memfd_create("log", MFD_CLOEXEC);
	log->stderr_copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (log->file >= 0 && log->stderr_copy >= 0)
		dup2(log->file, STDERR_FILENO);
}

/* Finds the message of a log line: "TIME gdaki ERR file.c:12 function: message". */
static const char *message_of(char *line, const char *level)
{
	char mark[32], *at;

	snprintf(mark, sizeof(mark), " gdaki %s ", level);
	at = strstr(line, mark);
	at = at ? strstr(at, ": ") : NULL;
	return at ? at + 2 : NULL;
}

/* Sets log->text to the first error of the library, otherwise of the shared code of the examples,
 * otherwise to the first warning, otherwise to "". If the user has set DOCA_GPUNETIO_LOG, the lines
 * are also printed. */
void dr_log_end(struct dr_log *log)
{
	static char buf[1 << 16];
	const char *error = NULL, *example = NULL, *warning = NULL, *m;
	ssize_t len;
	char *save, *line;

	log->text[0] = '\0';
	fflush(stderr);
	if (log->stderr_copy >= 0) {
		dup2(log->stderr_copy, STDERR_FILENO);
		close(log->stderr_copy);
	}
	if (log->file < 0)
		return;
	len = pread(log->file, buf, sizeof(buf) - 1, 0);
	close(log->file);
	buf[len > 0 ? len : 0] = '\0';
	if (len > 0 && getenv("DOCA_GPUNETIO_LOG"))
		fputs(buf, stderr);
	for (line = strtok_r(buf, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		m = message_of(line, "ERR");
		error = error ? error : m;
		m = message_of(line, "WARNING");
		warning = warning ? warning : m;
		if (!example && !strncmp(line, "error: ", 7))
			example = line + 7;
	}
	m = error ? error : example ? example : warning;
	if (m)
		snprintf(log->text, sizeof(log->text), "%s", m);
}

/* ---- the child ---- */

static size_t put(char *record, size_t at, const char *text)
{
	/* A long text is cut, so that every field of the record fits. */
	for (size_t n = 0; *text && n < RECORD_LEN / 5; text++, n++)
		record[at++] = (unsigned char)*text < ' ' ? ' ' : *text;
	record[at++] = FIELD;
	return at;
}

static void send_record(int sink, char letter, char extra, const char *const texts[NUM_TEXTS])
{
	char record[RECORD_LEN];
	size_t at = 0, sent = 0;

	record[at++] = letter;
	record[at++] = extra;
	for (int i = 0; i < NUM_TEXTS; i++)
		at = put(record, at, texts[i] ? texts[i] : "");
	while (sent < at) {
		ssize_t n = write(sink, record + sent, at - sent);

		if (n < 0 && errno != EINTR)
			return;
		sent += n > 0 ? (size_t)n : 0;
	}
}

bool dr_to_parent(struct dr_report *r, const struct dr_result *x)
{
	const char *texts[NUM_TEXTS] = { x->scope, x->check, x->text, x->fix };

	if (r->sink < 0)
		return false;
	send_record(r->sink, LETTER_RESULT, (char)('0' + x->level), texts);
	return true;
}

bool dr_handler_to_parent(struct dr_report *r, const struct dr_choice *c)
{
	const char *texts[NUM_TEXTS] = { c->gpu, c->device, c->handler, c->text };

	if (r->sink < 0)
		return false;
	send_record(r->sink, LETTER_HANDLER, '0', texts);
	return true;
}

/* What the library logs outside of the attempts, for example about objects that cannot be
 * destroyed, becomes a result. */
static void run_child(const struct dr_env *env, int sink, const char *scope, dr_child_fn *fn,
		      const void *arg)
{
	struct dr_report *mine = dr_report_new(env);
	struct dr_log log;

	mine->sink = sink;
	dr_log_begin(&log);
	fn(env, mine, arg);
	dr_log_end(&log);
	if (*log.text)
		dr_add(mine, scope, "cleanup", DR_WARN, "read the kernel's log: dmesg | tail -n 50",
		       "%s", log.text);
	dr_report_free(mine);
	exit(0); /* also runs the exit handlers of libraries */
}

/* ---- the parent ---- */

/* Takes one record from the text. Returns the bytes that it has, or 0 if it is not complete. */
static size_t take_record(struct dr_report *r, char *text, size_t len)
{
	char *fields[NUM_TEXTS], *at = text + 2, *end;

	for (int i = 0; i < NUM_TEXTS; i++) {
		end = at < text + len ? memchr(at, FIELD, (size_t)(text + len - at)) : NULL;
		if (!end)
			return 0;
		*end = '\0';
		fields[i] = at;
		at = end + 1;
	}
	if (text[0] == LETTER_RESULT)
		dr_add(r, fields[0], fields[1], (enum dr_level)(text[1] - '0'),
		       *fields[3] ? fields[3] : NULL, "%s", fields[2]);
	else
		dr_add_handler(r, fields[0], fields[1], fields[2], fields[3]);
	return (size_t)(at - text);
}

/* Reads until the child closes the pipe. Returns false if the time is over first. */
static bool read_results(int fd, long long end_ms, char **text, size_t *len)
{
	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		long long left = end_ms - dr_now_ms();
		ssize_t n;

		if (left <= 0)
			return false;
		if (poll(&p, 1, left > 1000 ? 1000 : (int)left) <= 0)
			continue;
		*text = realloc(*text, *len + RECORD_LEN);
		if (!*text) {
			*len = 0;
			return true;
		}
		n = read(fd, *text + *len, RECORD_LEN);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return true;
		*len += (size_t)n;
	}
}

void dr_in_child(const struct dr_env *env, struct dr_report *r, const char *scope,
		 const char *check, dr_child_fn *fn, const void *arg)
{
	long long end_ms = dr_now_ms() + env->timeout_s * 1000ll;
	int fds[2], status = 0;
	char *text = NULL;
	size_t len = 0, at = 0, n;
	bool done;
	pid_t child;

	fflush(NULL);
	if (pipe2(fds, O_CLOEXEC)) {
		dr_add(r, scope, check, DR_UNKNOWN, NULL, "cannot create a pipe: %s",
		       strerror(errno));
		return;
	}
	child = fork();
	if (!child) {
		close(fds[0]);
		run_child(env, fds[1], scope, fn, arg);
	}
	close(fds[1]);
	if (child < 0) {
		dr_add(r, scope, check, DR_UNKNOWN, NULL, "cannot start a process: %s",
		       strerror(errno));
		close(fds[0]);
		return;
	}
	done = read_results(fds[0], end_ms, &text, &len);
	if (!done || dr_reap(child, dr_now_ms() + DR_REAP_MS, &status)) {
		done = false;
		kill(child, SIGKILL);
		(void)dr_reap(child, dr_now_ms() + DR_REAP_MS, &status);
	}
	close(fds[0]);
	while (at < len && (n = take_record(r, text + at, len - at)))
		at += n;
	free(text);
	if (!done)
		dr_add(r, scope, check, DR_FAIL, "read the kernel's log: dmesg | tail -n 50",
		       "a driver did not answer within %u s", env->timeout_s);
	else if (WIFSIGNALED(status))
		dr_add(r, scope, check, DR_FAIL, "read the kernel's log: dmesg | tail -n 50",
		       "the check ended by signal %d (%s)", WTERMSIG(status),
		       strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		dr_add(r, scope, check, DR_FAIL, NULL, "the check ended with status %d",
		       WEXITSTATUS(status));
}
