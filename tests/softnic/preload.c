/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Interposition of libc calls. Paths of the NIC (prefixes[]) are redirected to the
 * generated tree, the device file is a memfd whose ioctl is handled in uverbs.c, and
 * RDMA netlink sockets fail. Calls that concern other files go to the kernel by raw
 * system call, which works before constructors run and inside malloc. If libc has state
 * of its own for a call, as for fopen(), the call goes to libc. preload_path.c has the
 * calls that shells and scripts need.
 */
#include "front.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define UVERBS_PATH	   "/dev/infiniband/uverbs0"
#define NETLINK_RDMA_PROTO 20
#define PEERMEM		   "/sys/module/nvidia_peermem"

#define NEXT(ret, name, ...) \
	static ret (*next)(__VA_ARGS__); \
	if (!next) \
	*(void **)&next = dlsym(RTLD_NEXT, name)

/* Redirected prefixes of paths. The root of the tree replaces the first `strip` characters. */
static const struct {
	const char *prefix;
	size_t strip;
} prefixes[] = {
	{ "/sys/class/infiniband", 4 },
	{ "/sys/devices/" SN_PCI_ROOT, 4 },
	{ "/sys/bus/pci/devices/" SN_PCI_DOMAIN ":", 4 },
	{ "/dev/infiniband", 0 },
	{ PEERMEM, 4 },
};

/* True if NVIDIA's driver is present or a libcuda.so.1 (also a test's stand-in) is loaded. */
static bool cuda_is_here(void)
{
	void *lib;

	if (!syscall(SYS_faccessat, AT_FDCWD, "/dev/nvidiactl", F_OK))
		return true;
	lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	if (lib)
		dlclose(lib);
	return lib;
}

static bool is_uverbs(const char *path)
{
	return path && !strcmp(path, UVERBS_PATH);
}

const char *sn_redirect(const char *path, char buf[PATH_MAX])
{
	size_t i;

	if (!path || path[0] != '/' || (path[1] != 's' && path[1] != 'd'))
		return path;
	for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		if (strncmp(path, prefixes[i].prefix, strlen(prefixes[i].prefix)))
			continue;
		if (!strcmp(prefixes[i].prefix, PEERMEM) && !cuda_is_here())
			break;
		snprintf(buf, PATH_MAX, "%s%s", sn_sysfs_root(), path + prefixes[i].strip);
		return buf;
	}
	return path;
}

/* Reverses sn_redirect() in place, so that a program that resolves a path does not see where the
 * tree is. Leaves paths outside the tree as they are. */
void sn_unredirect(char *path)
{
	const char *root = sn_sysfs_root();
	size_t n = strlen(root), len = strlen(path);

	if (strncmp(path, root, n) || path[n] != '/')
		return;
	if (!strncmp(path + n, "/dev/", 5)) {
		memmove(path, path + n, len - n + 1);
	} else if (n >= 4) {
		memmove(path + 4, path + n, len - n + 1);
		memcpy(path, "/sys", 4);
	}
}

static void fake_stat(struct stat *st)
{
	st->st_mode = S_IFCHR | 0666;
	st->st_rdev = makedev(SN_CDEV_MAJOR, SN_CDEV_MINOR);
	st->st_size = 0;
}

static int fail(long err)
{
	errno = (int)-err;
	return -1;
}

/* ---- opening files ---- */
static int do_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	char buf[PATH_MAX];
	int fd;

	if (is_uverbs(path)) {
		fd = sn_ctx_open(flags);
		return fd < 0 ? fail(fd) : fd;
	}
	return (int)syscall(SYS_openat, dirfd, sn_redirect(path, buf), flags, mode);
}

#define OPEN_MODE(last) \
	mode_t mode = 0; \
	if (flags & (O_CREAT | __O_TMPFILE)) { \
		va_list ap; \
		va_start(ap, last); \
		mode = va_arg(ap, mode_t); \
		va_end(ap); \
	}

int open(const char *path, int flags, ...)
{
	OPEN_MODE(flags)
	return do_openat(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	OPEN_MODE(flags)
	return do_openat(AT_FDCWD, path, flags, mode);
}

int openat(int dirfd, const char *path, int flags, ...)
{
	OPEN_MODE(flags)
	return do_openat(dirfd, path, flags, mode);
}

int openat64(int dirfd, const char *path, int flags, ...)
{
	OPEN_MODE(flags)
	return do_openat(dirfd, path, flags, mode);
}

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);

int __open_2(const char *path, int flags)
{
	return do_openat(AT_FDCWD, path, flags, 0);
}

int __open64_2(const char *path, int flags)
{
	return do_openat(AT_FDCWD, path, flags, 0);
}

int __openat_2(int dirfd, const char *path, int flags)
{
	return do_openat(dirfd, path, flags, 0);
}

int __openat64_2(int dirfd, const char *path, int flags)
{
	return do_openat(dirfd, path, flags, 0);
}

FILE *fopen(const char *path, const char *mode)
{
	char buf[PATH_MAX];
	NEXT(FILE *, "fopen", const char *, const char *);

	return next(sn_redirect(path, buf), mode);
}

FILE *fopen64(const char *path, const char *mode)
{
	char buf[PATH_MAX];
	NEXT(FILE *, "fopen64", const char *, const char *);

	return next(sn_redirect(path, buf), mode);
}

FILE *freopen(const char *path, const char *mode, FILE *f)
{
	char buf[PATH_MAX];
	NEXT(FILE *, "freopen", const char *, const char *, FILE *);

	return next(sn_redirect(path, buf), mode, f);
}

DIR *opendir(const char *path)
{
	char buf[PATH_MAX];
	NEXT(DIR *, "opendir", const char *);

	return next(sn_redirect(path, buf));
}

typedef int (*filter_fn)(const struct dirent *);
typedef int (*compar_fn)(const struct dirent **, const struct dirent **);

int scandir(const char *path, struct dirent ***list, filter_fn filter, compar_fn compar)
{
	char buf[PATH_MAX];
	NEXT(int, "scandir", const char *, struct dirent ***, filter_fn, compar_fn);

	return next(sn_redirect(path, buf), list, filter, compar);
}

/* ---- querying files ---- */
static int do_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	char buf[PATH_MAX];
	int rc = (int)syscall(SYS_newfstatat, dirfd, sn_redirect(path, buf), st, flags);

	if (!rc && (is_uverbs(path) || (path && !*path && sn_ctx_of_fd(dirfd))))
		fake_stat(st);
	return rc;
}

static int do_fstat(int fd, struct stat *st)
{
	int rc = (int)syscall(SYS_fstat, fd, st);

	if (!rc && sn_ctx_of_fd(fd))
		fake_stat(st);
	return rc;
}

#define STAT_SET(suffix, type) \
	int stat##suffix(const char *restrict path, struct type *restrict st) \
	{ \
		return do_fstatat(AT_FDCWD, path, (struct stat *)st, 0); \
	} \
	int lstat##suffix(const char *restrict path, struct type *restrict st) \
	{ \
		return do_fstatat(AT_FDCWD, path, (struct stat *)st, AT_SYMLINK_NOFOLLOW); \
	} \
	int fstat##suffix(int fd, struct type *st) \
	{ \
		return do_fstat(fd, (struct stat *)st); \
	} \
	int fstatat##suffix(int dirfd, const char *restrict path, struct type *restrict st, \
			    int flags) \
	{ \
		return do_fstatat(dirfd, path, (struct stat *)st, flags); \
	} \
	int __xstat##suffix(int ver, const char *path, struct type *st); \
	int __lxstat##suffix(int ver, const char *path, struct type *st); \
	int __fxstat##suffix(int ver, int fd, struct type *st); \
	int __xstat##suffix(int ver, const char *path, struct type *st) \
	{ \
		(void)ver; \
		return stat##suffix(path, st); \
	} \
	int __lxstat##suffix(int ver, const char *path, struct type *st) \
	{ \
		(void)ver; \
		return lstat##suffix(path, st); \
	} \
	int __fxstat##suffix(int ver, int fd, struct type *st) \
	{ \
		(void)ver; \
		return fstat##suffix(fd, st); \
	}

STAT_SET(, stat)
STAT_SET(64, stat64)

int statx(int dirfd, const char *restrict path, int flags, unsigned int mask,
	  struct statx *restrict st)
{
	char buf[PATH_MAX];
	int rc = (int)syscall(SYS_statx, dirfd, sn_redirect(path, buf), flags, mask, st);

	if (!rc && (is_uverbs(path) || (!*path && sn_ctx_of_fd(dirfd)))) {
		st->stx_mode = S_IFCHR | 0666;
		st->stx_rdev_major = SN_CDEV_MAJOR;
		st->stx_rdev_minor = SN_CDEV_MINOR;
		st->stx_size = 0;
	}
	return rc;
}

int access(const char *path, int mode)
{
	char buf[PATH_MAX];

	return (int)syscall(SYS_faccessat, AT_FDCWD, sn_redirect(path, buf), mode);
}

int faccessat(int dirfd, const char *path, int mode, int flags)
{
	char buf[PATH_MAX];
	NEXT(int, "faccessat", int, const char *, int, int);

	return next(dirfd, sn_redirect(path, buf), mode, flags);
}

ssize_t readlinkat(int dirfd, const char *restrict path, char *restrict dst, size_t len)
{
	char buf[PATH_MAX];

	return syscall(SYS_readlinkat, dirfd, sn_redirect(path, buf), dst, len);
}

ssize_t readlink(const char *restrict path, char *restrict dst, size_t len)
{
	return readlinkat(AT_FDCWD, path, dst, len);
}

ssize_t __readlink_chk(const char *path, char *dst, size_t len, size_t dstlen);
ssize_t __readlink_chk(const char *path, char *dst, size_t len, size_t dstlen)
{
	if (len > dstlen)
		abort();
	return readlink(path, dst, len);
}

char *realpath(const char *restrict path, char *restrict dst)
{
	char buf[PATH_MAX];
	const char *to = sn_redirect(path, buf);
	char *got;
	NEXT(char *, "realpath", const char *, char *);

	got = next(to, dst);
	if (got && to != path)
		sn_unredirect(got);
	return got;
}

char *__realpath_chk(const char *path, char *dst, size_t dstlen);
char *__realpath_chk(const char *path, char *dst, size_t dstlen)
{
	if (dstlen < PATH_MAX)
		abort();
	return realpath(path, dst);
}

char *canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}

/* ---- file descriptors ---- */
int ioctl(int fd, unsigned long request, ...)
{
	struct sn_ctx *ctx;
	va_list ap;
	void *arg;
	long rc;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (request == RDMA_VERBS_IOCTL && (ctx = sn_ctx_of_fd(fd))) {
		rc = sn_ctx_ioctl(ctx, arg);
		return rc < 0 ? fail(rc) : 0;
	}
	if (sn_net_ioctl(request, arg, &rc))
		return rc < 0 ? fail(rc) : 0;
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

int close(int fd)
{
	if (sn_any_open())
		sn_fd_closing(fd);
	sn_net_closing(fd);
	return (int)syscall(SYS_close, fd);
}

static int dup_result(int fd)
{
	if (fd >= 0 && sn_any_open())
		sn_ctx_dup(fd);
	return fd;
}

int dup(int fd)
{
	return dup_result((int)syscall(SYS_dup, fd));
}

int dup3(int fd, int to, int flags)
{
	if (fd != to && sn_any_open())
		sn_fd_closing(to);
	return dup_result((int)syscall(SYS_dup3, fd, to, flags));
}

int dup2(int fd, int to)
{
	if (fd == to)
		return syscall(SYS_fcntl, fd, F_GETFD) < 0 ? -1 : to;
	return dup3(fd, to, 0);
}

static int do_fcntl(int fd, int cmd, void *arg)
{
	int rc = (int)syscall(SYS_fcntl, fd, cmd, arg);

	return cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC ? dup_result(rc) : rc;
}

#define FCNTL_ARG \
	va_list ap; \
	void *arg; \
	va_start(ap, cmd); \
	arg = va_arg(ap, void *); \
	va_end(ap);

int fcntl(int fd, int cmd, ...)
{
	FCNTL_ARG
	return do_fcntl(fd, cmd, arg);
}

int fcntl64(int fd, int cmd, ...)
{
	FCNTL_ARG
	return do_fcntl(fd, cmd, arg);
}

int socket(int domain, int type, int protocol)
{
	int fd;

	if (domain == AF_NETLINK && protocol == NETLINK_RDMA_PROTO)
		return fail(-EPROTONOSUPPORT);
	fd = (int)syscall(SYS_socket, domain, type, protocol);
	if (domain == AF_NETLINK && protocol == NETLINK_ROUTE)
		sn_net_opened(fd);
	return fd;
}

void _exit(int status)
{
	if (sn_dev)
		sn_stats_report(sn_dev);
	syscall(SYS_exit_group, status);
	__builtin_unreachable();
}

void _Exit(int status)
{
	_exit(status);
}
