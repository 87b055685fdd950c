/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Interposition of the calls that start programs. Once per run it warns about a statically
 * linked program that contains libibverbs, because the NIC is not preloaded into it. A
 * child of vfork() makes these calls, so they use no memory or locks of the process.
 */
#include "elf.h"
#include "front.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

typedef int (*execvpe_fn)(const char *, char *const[], char *const[]);
typedef int (*spawn_fn)(pid_t *, const char *, const posix_spawn_file_actions_t *,
			const posix_spawnattr_t *, char *const[], char *const[]);

static execvpe_fn next_execve, next_execvpe;
static spawn_fn next_spawn, next_spawnp;

/* dlsym() takes locks, which a child of fork() must not. */
__attribute__((constructor)) static void find_next(void)
{
	*(void **)&next_execve = dlsym(RTLD_NEXT, "execve");
	*(void **)&next_execvpe = dlsym(RTLD_NEXT, "execvpe");
	*(void **)&next_spawn = dlsym(RTLD_NEXT, "posix_spawn");
	*(void **)&next_spawnp = dlsym(RTLD_NEXT, "posix_spawnp");
}

/* True for the first caller of the run, which creates a file beside the sysfs tree. */
static bool is_first(void)
{
	const char *tree = getenv("SOFTNIC_SYSFS");
	char mark[300];
	long fd;

	if (!tree || strlen(tree) + sizeof(".static") > sizeof(mark))
		return true;
	strcpy(mark, tree);
	strcat(mark, ".static");
	fd = syscall(SYS_openat, AT_FDCWD, mark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		syscall(SYS_close, fd);
	return fd >= 0;
}

static void warn_static(const char *path)
{
	int saved = errno;
	char line[256];

	if (sn_program_kind(path, line) == SN_PROGRAM_STATIC && sn_program_uses_verbs(path) &&
	    is_first())
		sn_message("%s is statically linked and does not see the NIC", path);
	errno = saved;
}

static void warn_in_path(const char *name)
{
	const char *dirs = getenv("PATH"), *next;
	char path[PATH_MAX];
	size_t n;

	if (!name || strchr(name, '/')) {
		if (name)
			warn_static(name);
		return;
	}
	for (; dirs; dirs = next) {
		next = strchr(dirs, ':');
		n = next ? (size_t)(next - dirs) : strlen(dirs);
		next = next ? next + 1 : NULL;
		if (n + strlen(name) + 2 > sizeof(path))
			continue;
		memcpy(path, dirs, n);
		path[n] = '/';
		strcpy(path + n + 1, name);
		if (syscall(SYS_faccessat, AT_FDCWD, path, X_OK))
			continue;
		warn_static(path);
		return;
	}
}

int execve(const char *path, char *const argv[], char *const envp[])
{
	warn_static(path);
	return next_execve(path, argv, envp);
}

int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

int execvpe(const char *name, char *const argv[], char *const envp[])
{
	warn_in_path(name);
	return next_execvpe(name, argv, envp);
}

int execvp(const char *name, char *const argv[])
{
	return execvpe(name, argv, environ);
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	warn_static(path);
	return next_spawn(pid, path, actions, attr, argv, envp);
}

int posix_spawnp(pid_t *pid, const char *name, const posix_spawn_file_actions_t *actions,
		 const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	warn_in_path(name);
	return next_spawnp(pid, name, actions, attr, argv, envp);
}
