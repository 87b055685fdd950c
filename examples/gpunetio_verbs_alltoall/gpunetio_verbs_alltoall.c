/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Every rank of an MPI job puts a block to every other rank in each iteration, from threads of a
 * GPU or CPU threads, and checks every byte that it receives. MPI starts the ranks and exchanges
 * addresses and results; the blocks do not use it.
 *
 * If a rank fails, it ends the whole job with MPI_Abort(). Wrong bytes are counted instead, so that
 * the table shows which ranks received them, and all ranks exit with status 1.
 */
#include <stdlib.h>
#include <string.h>

#include "alltoall_rank.h"
#include "report_parts.h"

/* A rank cannot exchange blocks with one that has other options. */
static void compare_options(const struct a2a_options *opt, const struct a2a_world *w)
{
	struct shape {
		uint32_t size, threads, iters, check, counter, no_warmup;
		char version[32];
	} mine = { opt->ex.size, opt->ex.threads, opt->ex.iters, opt->check,
		   opt->counter, opt->no_warmup,  GDK_VERSION };
	struct shape *all = calloc((size_t)w->ranks, sizeof(*all));

	if (!all)
		a2a_abort(w, "out of memory");
	a2a_gather_all(w, &mine, all, sizeof(mine), "to compare the options");
	for (int i = 0; i < w->ranks; i++)
		if (memcmp(&mine, &all[i], sizeof(mine)))
			a2a_abort(w,
				  "rank %d has other options or another version: -s %u -t %u -i %u "
				  "-k %u%s%s, gdaki %.32s; this rank: -s %u -t %u -i %u -k %u%s%s, "
				  "gdaki %s",
				  i, all[i].size, all[i].threads, all[i].iters, all[i].check,
				  all[i].counter ? " --counter" : "", all[i].no_warmup ? " -n" : "",
				  all[i].version, mine.size, mine.threads, mine.iters, mine.check,
				  mine.counter ? " --counter" : "", mine.no_warmup ? " -n" : "",
				  mine.version);
	free(all);
}

static int report(const struct a2a_options *opt, const struct a2a_world *w, struct a2a_result *mine)
{
	struct a2a_result *all = calloc((size_t)w->ranks, sizeof(*all));
	int rc = 0;

	if (!all)
		a2a_abort(w, "out of memory");
	a2a_gather_all(w, mine, all, sizeof(*mine), "to collect the results");
	if (w->rank == 0)
		rc = a2a_table(opt, w, all);
	for (int i = 0; i < w->ranks; i++)
		if (all[i].wrong)
			rc = -1;
	free(all);
	return rc;
}

int main(int argc, char **argv)
{
	struct a2a_options opt;
	struct a2a_world w = { 0 };
	struct a2a_result result = { 0 };
	int rc = a2a_options_parse(&opt, argc, argv);

	if (rc >= 0)
		return rc;
	/* A rank can be killed at any time. Messages of several ranks must not mix in a line. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stderr, NULL, _IOLBF, 0);
	w.timeout_s = opt.ex.timeout_s;
	a2a_world_open(&w, &argc, &argv);
	ex_catch_signals();
	if (w.ranks < 2)
		a2a_abort(&w, "at least 2 ranks are needed: mpirun -n 2 %s", argv[0]);
	if (opt.fault != A2A_FAULT_NONE && opt.fault_rank >= (uint32_t)w.ranks)
		a2a_abort(&w, "invalid --fault: there is no rank %u", opt.fault_rank);
	compare_options(&opt, &w);
	if (w.rank == 0 &&
	    ((opt.json && ex_file_check(opt.json)) || (opt.csv && ex_file_check(opt.csv))))
		a2a_abort(&w, "cannot write the results (--json, --csv)");
	if (a2a_place(&opt, &w))
		a2a_abort(&w, "cannot choose a GPU and an RDMA device");
	a2a_traffic(&opt, &w, &result);
	rc = report(&opt, &w, &result);
	MPI_Finalize();
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
