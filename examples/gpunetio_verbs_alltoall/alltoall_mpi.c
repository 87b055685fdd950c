/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * MPI for gpunetio_verbs_alltoall. MPI exchanges addresses and results; it moves no payload.
 *
 * A blocking collective operation waits forever for a rank that died, unless the launcher ends the
 * job. The operations in this file are non-blocking ones of MPI that are polled until a time limit.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "alltoall_rank.h"

#define ABORT_S 10 /* time for MPI_Abort() */

double a2a_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

void a2a_abort(const struct a2a_world *w, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ex_error("rank %d on %s: %s", w->rank, w->host, text);
	/* If MPI cannot end the job, the signal ends at least this rank. */
	signal(SIGALRM, SIG_DFL);
	alarm(ABORT_S);
	MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
	_exit(EXIT_FAILURE);
}

void a2a_world_open(struct a2a_world *w, int *argc, char ***argv)
{
	MPI_Comm local;

	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &w->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &w->ranks);
	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, w->rank, MPI_INFO_NULL, &local);
	MPI_Comm_rank(local, &w->local);
	MPI_Comm_size(local, &w->locals);
	MPI_Comm_free(&local);
	if (gethostname(w->host, sizeof(w->host) - 1))
		snprintf(w->host, sizeof(w->host), "?");
}

/* Sleeps between polls: MPI would otherwise take the processor from the threads of other ranks. */
static void finish(const struct a2a_world *w, MPI_Request *request, const char *what)
{
	const struct timespec nap = { 0, 200000 };
	const double end = a2a_now() + w->timeout_s;
	int done = 0;

	while (MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done) {
		if (ex_interrupted())
			a2a_abort(w, "interrupted while waiting for all ranks %s", what);
		if (a2a_now() > end)
			a2a_abort(w,
				  "not all ranks arrived %s within %u s (-w): one of them failed, "
				  "or is slow",
				  what, w->timeout_s);
		nanosleep(&nap, NULL);
	}
}

void a2a_barrier(const struct a2a_world *w, const char *what)
{
	MPI_Request request;

	MPI_Ibarrier(MPI_COMM_WORLD, &request);
	finish(w, &request, what);
}

void a2a_gather_all(const struct a2a_world *w, const void *mine, void *all, size_t len,
		    const char *what)
{
	MPI_Request request;

	MPI_Iallgather(mine, (int)len, MPI_BYTE, all, (int)len, MPI_BYTE, MPI_COMM_WORLD, &request);
	finish(w, &request, what);
}

void a2a_exchange(const struct a2a_world *w, const void *to, void *from, size_t len)
{
	MPI_Request request;

	MPI_Ialltoall(to, (int)len, MPI_BYTE, from, (int)len, MPI_BYTE, MPI_COMM_WORLD, &request);
	finish(w, &request, "to exchange addresses");
}
