/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Finds out whether a thread of this process may still be writing a WQE that it began
 * before a given time. A thread that loses its core while it writes a WQE may stay
 * without a core for any time, so waiting proves nothing. A thread has finished the WQE
 * if it has since run for longer than the rest of a WQE takes, or is asleep: no thread
 * sleeps while it writes a WQE. /proc/self/task shows both. A thread whose state cannot
 * be read counts as finished; for it, the time that the caller waits must suffice.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "eng.h"

#define RAN_NS 50000ull

struct sn_writer {
	int tid;
	uint64_t ran; /* ns on a core since the thread began */
};

static bool read_text(const char *path, char *text, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, len - 1);

	if (fd >= 0)
		/* not close(), which takes ctx_lock: this thread holds the device lock */
		syscall(SYS_close, fd);
	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

static bool ran_ns(int tid, uint64_t *ns)
{
	char path[64], text[128];

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
	if (!read_text(path, text, sizeof(text)))
		return false;
	*ns = strtoull(text, NULL, 10);
	return true;
}

/* A thread that has ended counts as asleep. */
static bool is_asleep(int tid)
{
	char path[64], text[256], *state;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	if (!read_text(path, text, sizeof(text)))
		return true;
	state = strrchr(text, ')'); /* the last ) ends the name, which may contain any character */
	return state && strchr("SZX", state[2]);
}

static void add(struct sn_writers *w, int tid)
{
	struct sn_writer *grown;
	uint64_t ran;

	if (!ran_ns(tid, &ran))
		return;
	if (w->num == w->max) {
		grown = realloc(w->of, (w->max + 64) * sizeof(*grown));
		if (!grown)
			return;
		w->of = grown;
		w->max += 64;
	}
	w->of[w->num++] = (struct sn_writer){ tid, ran };
}

/* Records the running time of all threads that are awake, except the caller. */
static void take_note(struct sn_writers *w)
{
	int self = (int)syscall(SYS_gettid), tid;
	DIR *dir = opendir("/proc/self/task");
	struct dirent *d;

	w->num = 0;
	while (dir && (d = readdir(dir))) {
		tid = atoi(d->d_name);
		if (tid && tid != self && !is_asleep(tid))
			add(w, tid);
	}
	if (dir)
		closedir(dir);
}

bool sn_writers_passed(struct sn_writers *w, uint64_t since, uint64_t now)
{
	uint64_t ran;
	unsigned i;

	if (w->noted < since) {
		take_note(w);
		w->noted = now;
	}
	for (i = 0; i < w->num; i++)
		if (ran_ns(w->of[i].tid, &ran) && ran - w->of[i].ran < RAN_NS &&
		    !is_asleep(w->of[i].tid))
			return false;
	return true;
}

void sn_writers_free(struct sn_writers *w)
{
	free(w->of);
}
