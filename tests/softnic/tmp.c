/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The temporary folder of one run, softnic.XXXXXX in TMPDIR. The process that made the
 * folder holds a lock on it until the process ends. A folder without a lock was left by a
 * killed run, and the next run removes it. sysfs.c fills the folder. This file is also
 * linked into softnic-run.
 */
#include "front.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "softnic."
#define TRIES  16

/* Locks the folder and returns its descriptor. Returns -1 if the folder does not exist, belongs to
 * another user, or is locked by a running process. */
static int lock_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st, now;

	if (fd < 0)
		return -1;
	if (!flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &st) && st.st_uid == geteuid() &&
	    !stat(dir, &now) && now.st_ino == st.st_ino)
		return fd;
	close(fd);
	return -1;
}

static void sweep(const char *base)
{
	char path[PATH_MAX];
	struct dirent *e;
	DIR *d = opendir(base);
	int fd;

	while (d && (e = readdir(d))) {
		if (strncmp(e->d_name, PREFIX, strlen(PREFIX)))
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", base, e->d_name) >= (int)sizeof(path))
			continue;
		fd = lock_dir(path);
		if (fd < 0)
			continue;
		sn_sysfs_remove(path);
		close(fd);
	}
	if (d)
		closedir(d);
}

/* A file system in memory creates and removes the files of a run faster than a disk's. */
static const char *default_base(void)
{
	return access("/dev/shm", W_OK | X_OK) ? "/tmp" : "/dev/shm";
}

int sn_tmp_make(char dir[PATH_MAX])
{
	const char *tmp = getenv("TMPDIR"), *base = tmp && *tmp ? tmp : default_base();
	int i;

	sweep(base);
	for (i = 0; i < TRIES; i++) {
		snprintf(dir, PATH_MAX, "%s/" PREFIX "XXXXXX", base);
		if (!mkdtemp(dir))
			return -errno;
		/* Another process may remove the folder before it is locked. The lock is held
		 * until this process ends. */
		if (lock_dir(dir) >= 0)
			return 0;
	}
	return -EEXIST;
}
