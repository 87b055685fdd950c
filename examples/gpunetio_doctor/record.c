/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Copies each file that the checks read into a folder, with the symbolic links on its path. Sysfs
 * has relative links only, so that they lead to the copies.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "record.h"

#define MAX_LINKS 40 /* on one path, as in Linux */

static const char *record_folder; /* NULL: nothing is copied */

int dr_record_to(const char *folder)
{
	struct dirent *e;
	int entries = 0;
	DIR *dir;

	if (mkdir(folder, 0755) && errno != EEXIST)
		return -errno;
	dir = opendir(folder);
	if (!dir)
		return -errno;
	while ((e = readdir(dir)))
		entries += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(dir);
	if (entries)
		return -ENOTEMPTY;
	record_folder = folder;
	return 0;
}

static void write_file(const char *path, const char *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0)
		return;
	if (write(fd, bytes, len) != (ssize_t)len)
		fprintf(stderr, "warning: cannot write %s: %s\n", path, strerror(errno));
	close(fd);
}

static void copy_file(const char *from, const char *to)
{
	static char bytes[DR_TEXT_LEN];
	int fd = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return;
	while (len < sizeof(bytes) && (n = read(fd, bytes + len, sizeof(bytes) - len)) > 0)
		len += (size_t)n;
	close(fd);
	write_file(to, bytes, len);
}

/* Creates what path names in the record: a link, a folder, a file with its contents, or an empty
 * file for a device. Returns the length of the link's target, otherwise 0, -1: it is missing. */
static int copy_one(const char *path, char *target)
{
	char to[PATH_MAX];
	struct stat st;
	ssize_t len;

	if (snprintf(to, sizeof(to), "%s%s", record_folder, path) >= (int)sizeof(to) ||
	    lstat(path, &st))
		return -1;
	if (S_ISLNK(st.st_mode)) {
		len = readlink(path, target, PATH_MAX - 1);
		if (len <= 0)
			return -1;
		target[len] = '\0';
		if (symlink(target, to) && errno != EEXIST)
			return -1;
		return (int)len;
	}
	if (S_ISDIR(st.st_mode))
		(void)mkdir(to, 0755);
	else if (S_ISREG(st.st_mode))
		copy_file(path, to);
	else
		write_file(to, "", 0);
	return 0;
}

/* Removes the last component. */
static void parent(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = '\0';
}

/* Copies each component of path, with rest behind it, and follows links. */
void dr_record_path(const char *path)
{
	char rest[PATH_MAX], done[PATH_MAX] = "", target[PATH_MAX], joined[2 * PATH_MAX];
	int links = 0, len;

	if (!record_folder || snprintf(rest, sizeof(rest), "%s", path) >= (int)sizeof(rest))
		return;
	while (*rest && links < MAX_LINKS) {
		size_t skip = strspn(rest, "/"), name = strcspn(rest + skip, "/");
		size_t at = strlen(done);

		if (!name || at + 1 + name >= sizeof(done))
			return;
		if (name == 2 && !strncmp(rest + skip, "..", 2)) {
			parent(done);
			memmove(rest, rest + skip + name, strlen(rest + skip + name) + 1);
			continue;
		}
		done[at] = '/';
		memcpy(done + at + 1, rest + skip, name);
		done[at + 1 + name] = '\0';
		len = copy_one(done, target);
		if (len < 0)
			return;
		memmove(rest, rest + skip + name, strlen(rest + skip + name) + 1);
		if (!len)
			continue;
		links++;
		if (target[0] == '/')
			done[0] = '\0';
		else
			parent(done);
		if (snprintf(joined, sizeof(joined), "%s%s", target, rest) >= (int)sizeof(rest))
			return;
		strcpy(rest, joined);
	}
}

void dr_record_entry(const char *folder, const char *name)
{
	char path[PATH_MAX], target[PATH_MAX], real[PATH_MAX];

	if (!record_folder || !realpath(folder, real) ||
	    snprintf(path, sizeof(path), "%s/%s", real, name) >= (int)sizeof(path))
		return;
	(void)copy_one(path, target);
}

void dr_record_text(const char *path, const char *text)
{
	char full[PATH_MAX], *slash;

	if (!record_folder ||
	    snprintf(full, sizeof(full), "%s%s", record_folder, path) >= (int)sizeof(full))
		return;
	slash = strrchr(full, '/');
	*slash = '\0';
	(void)mkdir(full, 0755);
	*slash = '/';
	write_file(full, text, strlen(text));
}
