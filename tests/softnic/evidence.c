/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The text of the evidence: counters and states of the queues. The NIC thread replaces the file
 * every 100 ms, at once after an error CQE, and when the NIC is closed or the process exits; every
 * second if no counter has changed. A long text is written less often, so that it costs at most one
 * part in COST of the thread's time.
 * Files of at most PROCESSES processes remain, and of all that still run.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "evidence.h"
#include "front.h"

#define INTERVAL_NS 100000000ull
#define IDLE_NS	    (10 * INTERVAL_NS)
#define COST	    200 /* after an error: COST / 10 */
#define PROCESSES   256u

static uint64_t next, next_error; /* times of the next snapshot, the second one after an error */
static uint64_t next_idle;	  /* as long as no counter changes */
static struct sn_stats last;	  /* counters at the last snapshot */

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void write_program(int fd)
{
	char line[256];
	ssize_t n, i;
	int in = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC);

	n = in < 0 ? 0 : read(in, line, sizeof(line));
	if (in >= 0)
		syscall(SYS_close, in);
	for (i = 0; i < n - 1; i++)
		if ((unsigned char)line[i] <= ' ')
			line[i] = ' ';
	dprintf(fd, "program: %.*s\n", n > 0 ? (int)n - 1 : 0, line);
}

static void write_text(struct sn_dev *dev, int fd, const char *when)
{
	uint64_t real = now_ns(CLOCK_REALTIME);
	char ip[INET6_ADDRSTRLEN];
	time_t s = (time_t)(real / 1000000000);
	struct tm tm;
	int error;
	uint64_t packets = sn_recent_count(&error);

	gmtime_r(&s, &tm);
	sn_addr_text(&dev->cfg.ip, ip);
	dprintf(fd, "%s of process %d at %s, %s at %02d:%02d:%02d.%03u UTC\n", dev->cfg.name,
		(int)getpid(), ip, when, tm.tm_hour, tm.tm_min, tm.tm_sec,
		(unsigned)(real / 1000000 % 1000));
	write_program(fd);
	if (error)
		dprintf(fd, "packets: not recorded (%s)\n", strerror(error));
	else
		dprintf(fd, "packets: %llu, the last ones in %d.pcapng\n",
			(unsigned long long)packets, (int)getpid());
	dprintf(fd, "queues:\n");
	sn_describe_queues(dev, fd);
	dprintf(fd, "counters, also of destroyed queues:\n");
	sn_stats_text(dev, fd);
}

/* Uses system calls directly, because the interposed functions take locks. */
void sn_evidence_write(struct sn_dev *dev, const char *when)
{
	char path[PATH_MAX], final[PATH_MAX];
	int fd;

	if (!dev->snapshot)
		return;
	snprintf(final, sizeof(final), "%s/%d.txt", dev->cfg.evidence, (int)getpid());
	snprintf(path, sizeof(path), "%s/.%d", dev->cfg.evidence, (int)getpid());
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			  0644);
	if (fd < 0)
		return;
	write_text(dev, fd, when);
	syscall(SYS_close, fd);
	syscall(SYS_renameat, AT_FDCWD, path, AT_FDCWD, final);
}

static void snapshot(struct sn_dev *dev, uint64_t now)
{
	uint64_t took;

	if (now < (dev->stats.error_cqes == last.error_cqes ? next : next_error))
		return;
	next = now + INTERVAL_NS;
	if (now < next_idle && !memcmp(&last, &dev->stats, sizeof(last)))
		return;
	last = dev->stats;
	took = now_ns(CLOCK_THREAD_CPUTIME_ID);
	sn_evidence_write(dev, "running");
	took = now_ns(CLOCK_THREAD_CPUTIME_ID) - took;
	if (took * COST > INTERVAL_NS)
		next = now + took * COST;
	next_error = now + took * (COST / 10);
	next_idle = now + IDLE_NS;
}

/* ---- files of ended processes ---- */

static void remove_files(const char *folder, int pid)
{
	static const char *const forms[] = { "%s/%d.txt", "%s/%d.pcapng", "%s/.%d" };
	char path[PATH_MAX];
	size_t i;

	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		snprintf(path, sizeof(path), forms[i], folder, pid);
		unlink(path);
	}
}

/* Returns the process ID in the name of a file of packets, 0: another file. */
static int pid_of(const char *name)
{
	char *end;
	long pid = strtol(name, &end, 10);

	return strcmp(end, ".pcapng") ? 0 : (int)pid;
}

static void remove_old(const char *folder)
{
	struct timespec oldest = { 0 };
	unsigned n = 0;
	struct dirent *e;
	struct stat st;
	int pid, old = 0;
	DIR *d = opendir(folder);

	while (d && (e = readdir(d))) {
		pid = pid_of(e->d_name);
		if (!pid)
			continue;
		n++;
		if (fstatat(dirfd(d), e->d_name, &st, 0) || !kill(pid, 0) || errno != ESRCH)
			continue;
		if (old &&
		    (st.st_mtim.tv_sec > oldest.tv_sec ||
		     (st.st_mtim.tv_sec == oldest.tv_sec && st.st_mtim.tv_nsec >= oldest.tv_nsec)))
			continue;
		old = pid;
		oldest = st.st_mtim;
	}
	if (d)
		closedir(d);
	if (old && n >= PROCESSES)
		remove_files(folder, old);
}

void sn_evidence_begin(struct sn_dev *dev)
{
	if (!dev->cfg.evidence[0])
		return;
	remove_old(dev->cfg.evidence);
	next = next_error = next_idle = 0;
	dev->snapshot = snapshot;
}
