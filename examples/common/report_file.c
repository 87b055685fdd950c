/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Result files. A regular file is written whole or not at all: the data goes to a temporary file
 * in the same folder, which then replaces the file. Devices and pipes are written directly.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common.h"
#include "report_parts.h"

#define SUFFIX ".XXXXXX"

static int fail(const char *path, const char *what)
{
	return ex_error("cannot %s %s: %s", what, path, strerror(errno));
}

/* Returns whether the path names something that is written directly: no regular file. */
static bool is_special(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISREG(st.st_mode);
}

/* Creates a file beside the one that the path names, a symbolic link followed. Returns its
 * descriptor, and stores the name of the file that it will replace and its own. */
static int create_temporary(const char *path, char target[PATH_MAX], char tmp[PATH_MAX])
{
	mode_t mask = umask(0);
	int fd;

	umask(mask);
	if (!realpath(path, target) &&
	    (errno != ENOENT || snprintf(target, PATH_MAX, "%s", path) >= PATH_MAX))
		return -1;
	if (!access(target, F_OK) && access(target, W_OK))
		return -1;
	if (strlen(target) + sizeof(SUFFIX) > PATH_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(stpcpy(tmp, target), SUFFIX, sizeof(SUFFIX));
	fd = mkstemp(tmp);
	if (fd >= 0 && fchmod(fd, 0666 & ~mask)) {
		close(fd);
		unlink(tmp);
		return -1;
	}
	return fd;
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int write_special(const char *path, const char *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return fail(path, "open");
	rc = write_all(fd, data, len) ? fail(path, "write") : 0;
	if (close(fd) && !rc)
		rc = fail(path, "write");
	return rc;
}

static int write_stdout(const char *data, size_t len)
{
	if (fwrite(data, 1, len, stdout) == len && !fflush(stdout))
		return 0;
	return fail("standard output", "write");
}

int ex_file_check(const char *path)
{
	char target[PATH_MAX], tmp[PATH_MAX];
	struct stat st;
	int fd;

	if (!strcmp(path, "-"))
		return 0;
	if (is_special(path)) { /* not opened: the reader of a pipe would see its end */
		if (stat(path, &st) || access(path, W_OK))
			return fail(path, "open");
		errno = EISDIR;
		return S_ISDIR(st.st_mode) ? fail(path, "open") : 0;
	}
	fd = create_temporary(path, target, tmp);
	if (fd < 0)
		return fail(path, "create");
	close(fd);
	unlink(tmp);
	return 0;
}

int ex_file_write(const char *path, const char *data, size_t len)
{
	char target[PATH_MAX], tmp[PATH_MAX];
	int fd, rc = 0;

	if (!strcmp(path, "-"))
		return write_stdout(data, len);
	if (is_special(path))
		return write_special(path, data, len);
	fd = create_temporary(path, target, tmp);
	if (fd < 0)
		return fail(path, "create");
	/* Some file systems report a full disk only at fsync() or close(). */
	if (write_all(fd, data, len) || fsync(fd))
		rc = fail(path, "write");
	if (close(fd) && !rc)
		rc = fail(path, "write");
	if (!rc && rename(tmp, target))
		rc = fail(path, "replace");
	if (rc)
		unlink(tmp);
	return rc;
}
