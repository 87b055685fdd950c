/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Stops one thread of this process between two instructions, as a thread that gets no
 * processor: a child process traces it. The thread does not run, and is not asleep either
 * (state t in /proc).
 */
#ifndef FREEZE_H
#define FREEZE_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct freeze {
	pid_t child;
	int go[2], done[2]; /* pipes to the child and from it */
};

static inline bool freeze_attach(pid_t tid)
{
	return !ptrace(PTRACE_SEIZE, tid, NULL, NULL) &&
	       !ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) && waitpid(tid, NULL, __WALL) == tid;
}

/* The thread continues when the child exits. */
static inline void freeze_child(const struct freeze *f, pid_t tid)
{
	char ok = 0;

	close(f->go[1]);
	close(f->done[0]);
	if (read(f->go[0], &ok, 1) == 1)
		ok = freeze_attach(tid);
	if (write(f->done[1], &ok, 1) == 1 && ok)
		ok = read(f->go[0], &ok, 1) > 0;
	_exit(0);
}

static inline void freeze_end(struct freeze *f)
{
	close(f->go[1]);
	close(f->done[0]);
	waitpid(f->child, NULL, 0);
}

/* Returns once the thread has stopped; false: this machine does not allow tracing. */
static inline bool freeze_begin(struct freeze *f, pid_t tid)
{
	char ok = 0;

	if (pipe(f->go))
		return false;
	if (pipe(f->done) || (f->child = fork()) < 0)
		return false;
	if (!f->child)
		freeze_child(f, tid);
	close(f->go[0]);
	close(f->done[1]);
#ifdef PR_SET_PTRACER
	prctl(PR_SET_PTRACER, (unsigned long)f->child, 0ul, 0ul, 0ul);
#endif
	if (write(f->go[1], &ok, 1) == 1 && read(f->done[0], &ok, 1) == 1 && ok)
		return true;
	freeze_end(f);
	return false;
}

/* A thread that touches no queue, stopped between two instructions. */
struct bystander {
	struct freeze freeze;
	pthread_t thread;
	atomic_int tid, stop;
};

static inline void *bystander_main(void *arg)
{
	struct bystander *b = arg;

	prctl(PR_SET_NAME, "bystander");
	atomic_store(&b->tid, (int)syscall(SYS_gettid));
	while (!atomic_load(&b->stop))
		;
	return NULL;
}

static inline void bystander_end(struct bystander *b)
{
	atomic_store(&b->stop, 1);
	pthread_join(b->thread, NULL);
}

/* false: this machine does not allow tracing, and there is no thread. */
static inline bool bystander_freeze(struct bystander *b)
{
	atomic_init(&b->tid, 0);
	atomic_init(&b->stop, 0);
	if (pthread_create(&b->thread, NULL, bystander_main, b))
		return false;
	while (!atomic_load(&b->tid))
		sched_yield();
	if (freeze_begin(&b->freeze, atomic_load(&b->tid)))
		return true;
	bystander_end(b);
	return false;
}

static inline void bystander_thaw(struct bystander *b)
{
	freeze_end(&b->freeze);
	bystander_end(b);
}

#endif
