/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What the C files of gpunetio_verbs_alltoall share: options, the place of a rank, its queue pairs
 * and results, and collective operations of MPI with a time limit.
 */
#ifndef ALLTOALL_RANK_H
#define ALLTOALL_RANK_H

#include <mpi.h>

#include "alltoall.h"
#include "common.h"
#include "grid.h"

/* ---- alltoall_options.c ---- */
enum a2a_fault { A2A_FAULT_NONE, A2A_FAULT_WRONG, A2A_FAULT_KILL, A2A_FAULT_HANG };

struct a2a_options {
	struct ex_options ex; /* gpu and device: those of this rank, set by alltoall_place.c */
	const char *gpus;     /* "host", "all" or PCI addresses, separated by commas */
	const char *devices;  /* NULL, or names, separated by commas */
	const char *json, *csv;
	uint32_t check; /* all bytes of each check-th iteration are checked */

	bool counter, no_warmup;
	enum a2a_fault fault;
	uint32_t fault_rank;
};

/* Returns -1 to run the program, otherwise its exit status. */
int a2a_options_parse(struct a2a_options *opt, int argc, char **argv);

/* ---- alltoall_mpi.c ---- */
struct a2a_world {
	int rank, ranks;
	int local, locals; /* number of this rank among those on the same host, and their count */
	char host[64];
	unsigned int timeout_s;
};

void a2a_world_open(struct a2a_world *w, int *argc, char ***argv);
/* Prints the rank and the message, ends all ranks with status 1, and does not return. */
void a2a_abort(const struct a2a_world *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));
/* Collective operations. After the time limit they call a2a_abort(), because a rank is missing.
 * Each block has len bytes. */
void a2a_barrier(const struct a2a_world *w, const char *what);
void a2a_gather_all(const struct a2a_world *w, const void *mine, void *all, size_t len,
		    const char *what);
void a2a_exchange(const struct a2a_world *w, const void *to, void *from, size_t len);
double a2a_now(void); /* seconds */

/* ---- alltoall_place.c ---- */
/* Chooses the GPU and the NIC of this rank: opt->ex.gpu and opt->ex.device. */
int a2a_place(struct a2a_options *opt, const struct a2a_world *w);

/* ---- alltoall_traffic.c ---- */
struct a2a_result { /* of one rank */
	char host[64], gpu[32], device[64], link_layer[16], handler[24], requested[24], reason[160];
	uint32_t mtu, failed; /* failed: not 0 */
	uint64_t messages;    /* blocks that this rank put in the measured part */
	double seconds;
	uint64_t doorbells, dbrec_updates;
	uint64_t wrong; /* pieces of blocks with a wrong byte, in the whole run */
	char text[160]; /* describes the first of them */
};

/* Opens GPU and NIC, connects to all ranks, exchanges the blocks, and closes everything. Returns 0
 * with the result, or does not return after an error. */
void a2a_traffic(const struct a2a_options *opt, const struct a2a_world *w, struct a2a_result *r);

/* ---- alltoall_table.c ---- */
/* Rank 0 prints the results of all ranks. Returns 0, or -1 after a message. */
int a2a_table(const struct a2a_options *opt, const struct a2a_world *w,
	      const struct a2a_result *results);

#endif
