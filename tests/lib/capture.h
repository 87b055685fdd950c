/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Captures standard error in a pipe: capture_begin() redirects it, capture_end()
 * restores it and returns the text. The text must fit in the pipe (64 KiB). REFUSED() is
 * for Criterion tests that include doca_error.h.
 */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char capture_text[65536];
static int capture_pipe[2], capture_saved;

static inline void capture_begin(void)
{
	if (pipe(capture_pipe))
		abort();
	capture_saved = dup(STDERR_FILENO);
	dup2(capture_pipe[1], STDERR_FILENO);
}

static inline const char *capture_end(void)
{
	ssize_t len, used = 0;

	dup2(capture_saved, STDERR_FILENO);
	close(capture_saved);
	close(capture_pipe[1]);
	while ((len = read(capture_pipe[0], capture_text + used,
			   sizeof(capture_text) - 1 - (size_t)used)) > 0)
		used += len;
	capture_text[used] = 0;
	close(capture_pipe[0]);
	return capture_text;
}

/* The call returns err, and the log contains text. */
#define REFUSED(err, text, call) \
	do { \
		const char *log_; \
		doca_error_t err_; \
\
		capture_begin(); \
		err_ = call; \
		log_ = capture_end(); \
		cr_expect_eq(err_, err, "%s returned %s", #call, doca_error_get_name(err_)); \
		cr_expect(strstr(log_, text), "\"%s\" is not in the log:\n%s", text, log_); \
	} while (0)

#endif
