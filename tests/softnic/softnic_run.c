/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * softnic-run [options] -- COMMAND: sets the environment, generates a sysfs tree, and
 * runs COMMAND with the software NIC in LD_PRELOAD (without it with --no-preload). When
 * COMMAND ends, removes the tree. With --strict, adds up the violations of all processes
 * that used the NIC, and exits with EXIT_STRICT if there are any. cfg.c, in the NIC,
 * reads the variables that this program sets.
 */
#include "run.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_STRICT  86
#define EXIT_NOT_RUN 127

static volatile sig_atomic_t child;

/* Finds libsoftnic.so: beside this program in an installed tree, where PREFIX/bin has a link to the
 * program; in ../lib in the build tree. The other places serve installations that were copied with
 * the link replaced by the program. */
static bool find_library(char *lib, size_t size)
{
	static const char *const places[] = { "", "../lib/", "../lib/gdaki/", "../lib64/gdaki/" };
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	size_t i;

	if (n < 0) {
		sn_run_message("cannot read /proc/self/exe: %s", strerror(errno));
		return false;
	}
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(lib, size, "%s/%slibsoftnic.so", self, places[i]);
		if (!access(lib, R_OK))
			return true;
		if (errno != ENOENT && errno != ENOTDIR) {
			sn_run_message("cannot read %s: %s", lib, strerror(errno));
			return false;
		}
	}
	sn_run_message("libsoftnic.so is not in %s or %s/../lib", self, self);
	return false;
}

/* gcc's AddressSanitizer refuses to start if another library comes before its own. The NIC has the
 * same setting as a default, but not for a program that defines defaults of its own. Returns false
 * after a message. */
static bool set_asan(void)
{
	const char *old = getenv("ASAN_OPTIONS");
	char *value;

	if (old && strstr(old, "verify_asan_link_order"))
		return true;
	if (asprintf(&value, "%s%sverify_asan_link_order=0", old ? old : "",
		     old && *old ? ":" : "") < 0) {
		sn_run_message("cannot set ASAN_OPTIONS: %s", strerror(ENOMEM));
		return false;
	}
	setenv("ASAN_OPTIONS", value, 1);
	free(value);
	return true;
}

/* Puts libsoftnic.so first in LD_PRELOAD, whose entries spaces and colons separate. Returns
 * false after a message. */
static bool set_preload(void)
{
	const char *old = getenv("LD_PRELOAD");
	char lib[PATH_MAX + 64], *value;

	if (!find_library(lib, sizeof(lib)))
		return false;
	if (strpbrk(lib, " :")) {
		sn_run_message("cannot preload \"%s\": its path has a space or colon", lib);
		return false;
	}
	if (asprintf(&value, "%s%s%s", lib, old && *old ? ":" : "", old ? old : "") < 0) {
		sn_run_message("cannot set LD_PRELOAD: %s", strerror(ENOMEM));
		return false;
	}
	setenv("LD_PRELOAD", value, 1);
	free(value);
	return set_asan();
}

static int set_tree(const char *dir, const struct sn_cfg *cfg)
{
	char path[PATH_MAX + 32];
	int rc;

	snprintf(path, sizeof(path), "%s/sys", dir);
	setenv("SOFTNIC_SYSFS", path, 1);
	setenv("SOFTNIC_RUN", strrchr(dir, '/') + 1, 1);
	rc = sn_sysfs_build(path, cfg);
	if (rc)
		return rc;
	if (!cfg->stats_dir[0]) {
		snprintf(path, sizeof(path), "%s/stats", dir);
		setenv("SOFTNIC_STATS_DIR", path, 1);
		if (mkdir(path, 0755))
			return -errno;
	}
	/* DPDK looks for PCI devices only in this folder */
	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices", dir);
	setenv("SYSFS_PCI_DEVICES", path, 1);
	/* a GPU kernel that waits for the NIC must not also wait for lazy module loading */
	setenv("CUDA_MODULE_LOADING", "EAGER", 0);
	return 0;
}

/* Returns the violations in the counters of a process of this run; 0 for another run's. */
static unsigned long long file_violations(const char *path)
{
	unsigned long long n = 0;
	char buf[4096], run[64];
	const char *p;
	FILE *f = fopen(path, "r");

	if (!f)
		return 0;
	snprintf(run, sizeof(run), "\"run\": \"%s\"", getenv("SOFTNIC_RUN"));
	if (fgets(buf, sizeof(buf), f) && strstr(buf, run) && (p = strstr(buf, "\"violations\": ")))
		n = strtoull(p + strlen("\"violations\": "), NULL, 10);
	fclose(f);
	return n;
}

static unsigned long long sum_violations(const char *dir)
{
	unsigned long long n = 0;
	char path[PATH_MAX + 300];
	struct dirent *e;
	DIR *d = opendir(dir);

	if (!d)
		return 0;
	while ((e = readdir(d))) {
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		if (strstr(e->d_name, ".json"))
			n += file_violations(path);
	}
	closedir(d);
	return n;
}

/* Sends a signal on to COMMAND. The terminal sends the signals of its keys to COMMAND, too, if
 * COMMAND is in the process group of softnic-run. */
static void forward(int sig, siginfo_t *info, void *context)
{
	bool key = info->si_code == SI_KERNEL && (sig == SIGINT || sig == SIGQUIT);

	(void)context;
	if (child > 0 && !(key && getpgid(child) == getpgrp()))
		kill(child, sig);
}

static int run_child(char **argv)
{
	static const int sigs[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
	struct sigaction sa = { .sa_sigaction = forward, .sa_flags = SA_RESTART | SA_SIGINFO };
	sigset_t all, old;
	size_t i;
	int st;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	child = fork();
	if (child == 0) {
		sigprocmask(SIG_SETMASK, &old, NULL);
		prctl(PR_SET_PDEATHSIG,
		      SIGKILL); /* COMMAND must not outlive a killed softnic-run */
		execvp(argv[0], argv);
		sn_run_message("cannot run %s: %s", argv[0], strerror(errno));
		_exit(EXIT_NOT_RUN);
	}
	for (i = 0; i < sizeof(sigs) / sizeof(sigs[0]); i++)
		sigaction(sigs[i], &sa, NULL);
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (child < 0)
		return EXIT_NOT_RUN;
	while (waitpid(child, &st, 0) < 0)
		if (errno != EINTR)
			return EXIT_NOT_RUN;
	return WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
}

int main(int argc, char **argv)
{
	char tmp[PATH_MAX], dir[PATH_MAX];
	unsigned long long bad;
	bool preload = true;
	struct sn_cfg cfg;
	int first, status, rc;

	first = sn_run_options(argc, argv, &preload);
	if (first < 0 || !sn_run_config(&cfg) || (preload && !sn_run_program_ok(argv + first)) ||
	    !sn_run_make_folder("SOFTNIC_STATS_DIR") || !sn_run_make_folder("SOFTNIC_EVIDENCE"))
		return EXIT_USAGE;
	rc = sn_tmp_make(tmp);
	if (rc) {
		sn_run_message("cannot create a folder for the sysfs tree in TMPDIR (default: "
			       "/dev/shm or /tmp): %s",
			       strerror(-rc));
		return EXIT_NOT_RUN;
	}
	rc = sn_run_absolute(tmp, dir) ? set_tree(dir, &cfg) : -ENAMETOOLONG;
	if (rc)
		sn_run_message("cannot create the sysfs tree in %s: %s; set TMPDIR to use another "
			       "file system",
			       tmp, strerror(-rc));
	if (rc || (preload && !set_preload())) {
		sn_sysfs_remove(tmp);
		return EXIT_NOT_RUN;
	}
	status = run_child(argv + first);
	bad = cfg.strict ? sum_violations(getenv("SOFTNIC_STATS_DIR")) : 0;
	sn_sysfs_remove(dir);
	if (bad) {
		sn_run_message("failing the run: %llu violations counted", bad);
		return EXIT_STRICT;
	}
	return status;
}
