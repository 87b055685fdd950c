/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The scenarios and configurations in which replay.c runs receives of the RDMA library. */
#ifndef RDMA_RECV_RUNS_H
#define RDMA_RECV_RUNS_H

/*
 * STRONG: posts a receive; WEAK: writes one at position `to`; COMMIT, COMMIT_WEAK: of `to`
 * receives; WAIT: for all that are committed; POLL: until `to` receives have been returned; GIVE,
 * TAKE, MEET: as in rdma_runs.h. The NIC begins a message for each receive that it gets.
 */
enum what {
	END,
	STRONG,
	WEAK,
	COMMIT,
	COMMIT_WEAK,
	WAIT,
	POLL,
	GIVE,
	TAKE,
	MEET,
	POST = 0xfe, /* not used here */
	PUBLISH,
	HAND
};

static const struct scenario scenarios[] = {
	{ "strong, each thread commits and waits",
	  { 0, 1, 4, 0, 0, 0, 16 },
	  { { { STRONG }, { COMMIT }, { WAIT } },
	    { { STRONG }, { COMMIT }, { WAIT } },
	    { { STRONG }, { COMMIT }, { WAIT } } } },
	{ "one thread commits, all wait",
	  { 0, 1, 4, 0, 0, 0, 16 },
	  { { { STRONG }, { MEET }, { COMMIT }, { GIVE, 0, 0 }, { WAIT } },
	    { { STRONG }, { MEET }, { TAKE, 0, 0 }, { WAIT } },
	    { { STRONG }, { MEET }, { TAKE, 0, 0 }, { WAIT } } } },
	{ "slots are reused, all wait",
	  { 0, 1, 2, 0, 0, 0, 16 },
	  { { { STRONG }, { COMMIT }, { WAIT }, { STRONG }, { COMMIT }, { WAIT } },
	    { { STRONG }, { COMMIT }, { WAIT }, { STRONG }, { COMMIT }, { WAIT } },
	    { { POLL, 0, 4 } } } },
	{ "slots are reused by threads that do not wait",
	  { 0, 1, 2, 0, 0, 0, 16 },
	  { { { STRONG }, { COMMIT }, { STRONG }, { COMMIT }, { STRONG }, { COMMIT } },
	    { { STRONG }, { COMMIT }, { STRONG }, { COMMIT } },
	    { { POLL, 0, 5 } } } },
	{ "weak, committed again without being posted",
	  { 0, 1, 2, 0, 0, 0, 16 },
	  { { { WEAK, 0, 1 },
	      { WEAK, 0, 0 },
	      { COMMIT_WEAK, 0, 2 },
	      { WAIT },
	      { COMMIT_WEAK, 0, 2 },
	      { WAIT } },
	    { { WAIT }, { WAIT }, { WAIT } },
	    { { POLL, 0, 4 } } } },
	{ "weak, written by three threads",
	  { 0, 1, 4, 0, 0, 0, 16 },
	  { { { WEAK, 0, 0 }, { MEET }, { COMMIT_WEAK, 0, 3 }, { GIVE, 0, 0 }, { WAIT } },
	    { { WEAK, 0, 1 }, { MEET }, { TAKE, 0, 0 }, { WAIT } },
	    { { WEAK, 0, 2 }, { MEET }, { TAKE, 0, 0 }, { WAIT } } } },
	{ "weak, slots are reused by a thread that does not wait",
	  { 0, 1, 2, 0, 0, 0, 16 },
	  { { { WEAK, 0, 1 },
	      { WEAK, 0, 0 },
	      { COMMIT_WEAK, 0, 2 },
	      { WEAK, 0, 2 },
	      { COMMIT_WEAK, 0, 1 },
	      { WEAK, 0, 3 },
	      { COMMIT_WEAK, 0, 1 } },
	    { { POLL, 0, 4 } },
	    { { POLL, 0, 4 } } } },
};

static const struct config configs[] = {
	{ "GPU memory", GDK_DB, 0, 0, 0 },
	{ "GPU memory, in a block", GDK_DB, 1, 0, 0 },
	{ "host memory", GDK_DB, 0, GDK_QPF_SYS_SCOPE, 0 },
};

#endif
