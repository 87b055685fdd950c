/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Lets an AArch64 program under qemu-user start other AArch64 programs, which the kernel of an
 * x86-64 machine cannot. It is preloaded into the program. Its execve() starts $GDAKI_QEMU with an
 * AArch64 file, and any other file directly. LD_PRELOAD has AArch64 libraries, so it goes to
 * qemu's option -E instead of the environment, where the x86-64 loader would read it.
 *
 * Criterion runs each test in a new process of the same program, and softnic-run starts its
 * command with LD_PRELOAD set: both need this.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_WORDS 1024

static bool is_aarch64(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr head;
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, &head, sizeof(head));
	close(fd);
	return n == (ssize_t)sizeof(head) && !memcmp(head.e_ident, ELFMAG, SELFMAG) &&
	       head.e_machine == EM_AARCH64;
}

/* Copies the environment without LD_PRELOAD, of which it returns the element. */
static char *split_env(char *const *envp, char **out)
{
	char *preload = NULL;
	int n = 0;

	for (; envp && *envp && n < MAX_WORDS - 1; envp++)
		if (!strncmp(*envp, "LD_PRELOAD=", strlen("LD_PRELOAD=")))
			preload = *envp;
		else
			out[n++] = *envp;
	out[n] = NULL;
	return preload;
}

int execve(const char *path, char *const *argv, char *const *envp)
{
	char *words[MAX_WORDS], *env[MAX_WORDS], *qemu = getenv("GDAKI_QEMU");
	char *const preload = split_env(envp, env);
	int n = 0;

	if (!qemu || !is_aarch64(path))
		return (int)syscall(SYS_execve, path, argv, env);
	words[n++] = qemu;
	if (preload) {
		words[n++] = (char *)"-E";
		words[n++] = preload;
	}
	words[n++] = (char *)"-0";
	words[n++] = argv[0] ? argv[0] : (char *)path;
	words[n++] = (char *)path;
	for (argv += !!argv[0]; *argv; argv++) {
		if (n == MAX_WORDS - 1) {
			errno = E2BIG;
			return -1;
		}
		words[n++] = *argv;
	}
	words[n] = NULL;
	return (int)syscall(SYS_execve, qemu, words, env);
}

int execv(const char *path, char *const *argv)
{
	return execve(path, argv, environ);
}

int execl(const char *path, const char *arg, ...)
{
	char *words[MAX_WORDS];
	int n = 0;
	va_list more;

	va_start(more, arg);
	for (words[n] = (char *)arg; words[n] && n < MAX_WORDS - 1;)
		words[++n] = va_arg(more, char *);
	va_end(more);
	words[n] = NULL;
	return execve(path, words, environ);
}

/* Searches PATH if the name has no slash. Unlike the C library's, runs no script without "#!". */
int execvp(const char *file, char *const *argv)
{
	const char *at = getenv("PATH"), *end;
	char path[PATH_MAX];

	if (strchr(file, '/'))
		return execve(file, argv, environ);
	for (; at && *at; at = *end ? end + 1 : end) {
		end = strchrnul(at, ':');
		snprintf(path, sizeof(path), "%.*s/%s", (int)(end - at), at, file);
		if (!access(path, X_OK))
			return execve(path, argv, environ);
	}
	errno = ENOENT;
	return -1;
}
