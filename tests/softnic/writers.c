/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Finds out whether a thread of this process may still be writing a WQE that it began
 * before a given time. A thread that loses its core while it writes a WQE may stay
 * without a core for any time, so waiting proves nothing. A thread has finished the WQE
 * if it has since run for longer than the rest of a WQE takes, or is asleep or in a system
 * call: it writes no WQE there. /proc/self/task shows all this. A thread whose state cannot
 * be read counts as finished; for it, the time that the caller waits must suffice.
 *
 * A thread that gets no core at all must not delay a queue pair for ever, because it may have
 * nothing to do with it. After LIMIT_NS it counts as finished, with a message, until it runs
 * again.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "eng.h"

#define RAN_NS	 50000ull
#define WARN_NS	 5000000000ull
#define LIMIT_NS 8000000000ull

struct sn_writer {
	int tid;
	uint64_t ran; /* ns on a core since the thread began */
	bool forced;  /* it counts as finished although it has not run */
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

/* Returns the state of a thread in /proc, X if it has ended, and its name. */
static char state_of(int tid, char name[32])
{
	char path[64], text[256], *end, *begin;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	if (!read_text(path, text, sizeof(text)))
		return 'X';
	begin = strchr(text, '(');
	end = strrchr(text, ')'); /* the name may contain any character */
	if (!begin || !end)
		return '?';
	snprintf(name, 32, "%.*s", (int)(end - begin - 1), begin + 1);
	return end[2];
}

/* Returns whether the thread is stopped or blocked in a system call. The file then begins with
 * the call's number, with -1 if it is blocked elsewhere, and is "running" otherwise. */
static bool is_in_call(int tid)
{
	char path[64], text[32];

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	return read_text(path, text, sizeof(text)) && text[0] >= '0' && text[0] <= '9';
}

static bool is_asleep(int tid)
{
	char name[32] = "", state = state_of(tid, name);

	return strchr("SZX", state) || (strchr("DTt", state) && is_in_call(tid));
}

static bool has_passed(const struct sn_writer *t)
{
	uint64_t ran;

	return !ran_ns(t->tid, &ran) || ran - t->ran >= RAN_NS || is_asleep(t->tid);
}

/* ---- the list of threads ---- */

static void add(struct sn_writers *w, struct sn_writer t)
{
	struct sn_writer *grown;

	if (w->num == w->max) {
		grown = realloc(w->of, (w->max + 64) * sizeof(*grown));
		if (!grown)
			return;
		w->of = grown;
		w->max += 64;
	}
	w->of[w->num++] = t;
}

/* Returns whether the thread counted as finished in the earlier list, and has not run since. */
static bool was_forced(const struct sn_writers *before, const struct sn_writer *t)
{
	unsigned i;

	for (i = 0; before->forced && i < before->num; i++)
		if (before->of[i].tid == t->tid)
			return before->of[i].forced && before->of[i].ran == t->ran;
	return false;
}

/* Lists all threads that are awake, except the caller. */
static void take_note(struct sn_writers *w, uint64_t now)
{
	struct sn_writers before = *w;
	int self = (int)syscall(SYS_gettid);
	DIR *dir = opendir("/proc/self/task");
	struct sn_writer t;
	struct dirent *d;

	*w = (struct sn_writers){ .noted = now };
	while (dir && (d = readdir(dir))) {
		t = (struct sn_writer){ .tid = atoi(d->d_name) };
		if (!t.tid || t.tid == self || is_asleep(t.tid) || !ran_ns(t.tid, &t.ran))
			continue;
		t.forced = was_forced(&before, &t);
		add(w, t);
	}
	if (dir)
		closedir(dir);
	free(before.of);
}

static void report(const struct sn_writer *t, uint32_t qpn, uint64_t waited, bool forced)
{
	char name[32] = "", state = state_of(t->tid, name);
	uint64_t ran = t->ran;

	ran_ns(t->tid, &ran);
	if (forced)
		sn_message("QP 0x%x: recovering a lost doorbell although thread %d (%s), state %c, "
			   "ran only %lu ns in %lu ms and may be writing a WQE; ignoring the "
			   "thread until it runs",
			   qpn, t->tid, name, state, ran - t->ran, waited / 1000000);
	else
		sn_message("QP 0x%x: cannot recover a lost doorbell yet, because thread %d (%s), "
			   "state %c, ran only %lu ns in %lu ms and may be writing a WQE; "
			   "tests/softnic/README.md, \"Lost doorbells\", avoids such losses",
			   qpn, t->tid, name, state, ran - t->ran, waited / 1000000);
}

bool sn_writers_passed(struct sn_writers *w, uint32_t qpn, uint64_t since, uint64_t now)
{
	struct sn_writer *t;

	/* Finish a list before the next one, or queue pairs that call in turn would replace it for
	 * ever. */
	if (w->first == w->num && w->noted < since)
		take_note(w, now);
	for (; w->first < w->num; w->first++) {
		t = &w->of[w->first];
		if (has_passed(t))
			continue;
		if (!t->forced && now - w->noted < LIMIT_NS) {
			if (now - w->noted >= WARN_NS && !w->warned)
				report(t, qpn, now - w->noted, false);
			w->warned |= now - w->noted >= WARN_NS;
			return false;
		}
		if (!t->forced)
			report(t, qpn, now - w->noted, true);
		t->forced = w->forced = true;
	}
	return w->noted >= since;
}

void sn_writers_free(struct sn_writers *w)
{
	free(w->of);
}
