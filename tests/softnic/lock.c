/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The device lock in threads of the program. `waiting` tells the NIC thread to pause before it
 * takes the lock again; give_way() of waiting.c reads it. A holder that gets no processor stops
 * each call of the program that needs the lock, so a long wait is reported.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "front.h"

#define AT_EXIT_MS 2000u

unsigned int sn_lock_report_ms = 5000; /* length of the first wait that is reported */

static bool lock_within(struct sn_dev *dev, unsigned int ms)
{
	struct timespec until;
	bool locked;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += ms % 1000 * 1000000l;
	until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	__atomic_add_fetch(&dev->waiting, 1, __ATOMIC_SEQ_CST);
	locked = !pthread_mutex_timedlock(&dev->lock, &until);
	__atomic_sub_fetch(&dev->waiting, 1, __ATOMIC_SEQ_CST);
	return locked;
}

/* Reads name and state of a thread from its line in /proc: "TID (NAME) STATE ...". */
static void read_state(int tid, char name[32], char *state)
{
	char path[64], line[256] = "", *end;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		syscall(SYS_read, fd, line, sizeof(line) - 1);
		syscall(SYS_close, fd);
	}
	end = strrchr(line, ')');
	*state = end && end[1] ? end[2] : '?';
	if (!end || sscanf(line, "%*d (%31[^)]", name) != 1)
		strcpy(name, "?");
}

static void report_holder(const struct sn_dev *dev, unsigned int ms)
{
	int holder = dev->lock.__data.__owner;
	char name[32], state;

	read_state(holder, name, &state);
	sn_message("a call of the program has waited %u ms for the lock of the NIC, which thread "
		   "%d (%s) holds in state %c: in state R or D the thread needs a processor, in T "
		   "a debugger holds it",
		   ms, holder, name, state);
}

void sn_dev_lock(struct sn_dev *dev)
{
	unsigned int ms = sn_lock_report_ms, waited = 0;

	if (!pthread_mutex_trylock(&dev->lock))
		return;
	for (; !lock_within(dev, ms); ms *= 2)
		report_holder(dev, waited += ms);
}

/* The NIC's thread may hang in a driver that has already shut down, and then holds the lock. */
bool sn_dev_lock_at_exit(struct sn_dev *dev)
{
	return lock_within(dev, AT_EXIT_MS);
}
