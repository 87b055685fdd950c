/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Interposition of further calls by which shells, coreutils and scripting languages
 * find files: working directory, extended attributes, access checks, inotify, sorted
 * directory lists and patterns. As in preload.c, a path of the NIC is redirected to the
 * generated tree, and a returned path is converted back.
 */
#include "front.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define NEXT(ret, name, ...) \
	static ret (*next)(__VA_ARGS__); \
	if (!next) \
	*(void **)&next = dlsym(RTLD_NEXT, name)

int chdir(const char *path)
{
	char buf[PATH_MAX];

	return (int)syscall(SYS_chdir, sn_redirect(path, buf));
}

char *getcwd(char *dst, size_t len)
{
	char *got;
	NEXT(char *, "getcwd", char *, size_t);

	got = next(dst, len);
	if (got)
		sn_unredirect(got);
	return got;
}

char *__getcwd_chk(char *dst, size_t len, size_t dstlen);
char *__getcwd_chk(char *dst, size_t len, size_t dstlen)
{
	if (len > dstlen)
		abort();
	return getcwd(dst, len);
}

char *get_current_dir_name(void)
{
	return getcwd(NULL, 0);
}

/* <sys/xattr.h> is not included because its prototypes differ between libc versions */
ssize_t getxattr(const char *path, const char *attr, void *value, size_t len);
ssize_t lgetxattr(const char *path, const char *attr, void *value, size_t len);
ssize_t listxattr(const char *path, char *list, size_t len);
ssize_t llistxattr(const char *path, char *list, size_t len);

ssize_t getxattr(const char *path, const char *attr, void *value, size_t len)
{
	char buf[PATH_MAX];

	return syscall(SYS_getxattr, sn_redirect(path, buf), attr, value, len);
}

ssize_t lgetxattr(const char *path, const char *attr, void *value, size_t len)
{
	char buf[PATH_MAX];

	return syscall(SYS_lgetxattr, sn_redirect(path, buf), attr, value, len);
}

ssize_t listxattr(const char *path, char *list, size_t len)
{
	char buf[PATH_MAX];

	return syscall(SYS_listxattr, sn_redirect(path, buf), list, len);
}

ssize_t llistxattr(const char *path, char *list, size_t len)
{
	char buf[PATH_MAX];

	return syscall(SYS_llistxattr, sn_redirect(path, buf), list, len);
}

int euidaccess(const char *path, int mode)
{
	return faccessat(AT_FDCWD, path, mode, AT_EACCESS);
}

int eaccess(const char *path, int mode)
{
	return euidaccess(path, mode);
}

int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
	char buf[PATH_MAX];

	return (int)syscall(SYS_inotify_add_watch, fd, sn_redirect(path, buf), mask);
}

typedef int (*filter64_fn)(const struct dirent64 *);
typedef int (*compar64_fn)(const struct dirent64 **, const struct dirent64 **);

int scandir64(const char *path, struct dirent64 ***list, filter64_fn filter, compar64_fn compar)
{
	char buf[PATH_MAX];
	NEXT(int, "scandir64", const char *, struct dirent64 ***, filter64_fn, compar64_fn);

	return next(sn_redirect(path, buf), list, filter, compar);
}

/* Converts the found names back in place, which is possible because no name becomes longer. */
static void found(char **names, size_t n)
{
	while (n--)
		sn_unredirect(names[n]);
}

#define GLOB(name, type) \
	int name(const char *restrict pattern, int flags, int (*err)(const char *, int), \
		 type *restrict g) \
	{ \
		size_t before = flags & GLOB_APPEND ? g->gl_pathc : 0; \
		char buf[PATH_MAX]; \
		int rc; \
		NEXT(int, #name, const char *, int, int (*)(const char *, int), type *); \
\
		rc = next(sn_redirect(pattern, buf), flags, err, g); \
		if (!rc) \
			found(g->gl_pathv + (flags & GLOB_DOOFFS ? g->gl_offs : 0) + before, \
			      g->gl_pathc - before); \
		return rc; \
	}

GLOB(glob, glob_t)
GLOB(glob64, glob64_t)
