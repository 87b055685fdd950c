/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The scenarios and configurations in which replay.c runs a connection of the RDMA library. */
#ifndef RDMA_RUNS_H
#define RDMA_RUNS_H

/*
 * STRONG: posts an operation; WEAK: writes one at position `to`; COMMIT, COMMIT_WEAK: of `to`
 * operations; WAIT_ALL, INFO: as their names; GIVE: tells other threads, by mail `to`, what the
 * thread knows; TAKE: waits for it; MEET: as in runs.h.
 */
enum what {
	END,
	STRONG,
	WEAK,
	COMMIT,
	COMMIT_WEAK,
	WAIT_ALL,
	INFO,
	GIVE,
	TAKE,
	MEET,
	POST = 0xfe, /* not used here */
	PUBLISH,
	HAND
};

static const struct scenario scenarios[] = {
	{ "strong, each thread commits",
	  { 0, 1, 4, 0, 0, 1, 16 },
	  { { { STRONG }, { COMMIT }, { WAIT_ALL } },
	    { { STRONG }, { COMMIT }, { WAIT_ALL } },
	    { { STRONG }, { COMMIT }, { WAIT_ALL }, { INFO } } } },
	{ "strong, one thread commits",
	  { 0, 1, 4, 0, 0, 1, 16 },
	  { { { STRONG }, { MEET }, { COMMIT }, { GIVE, 0, 0 }, { WAIT_ALL } },
	    { { STRONG }, { MEET }, { TAKE, 0, 0 }, { WAIT_ALL } },
	    { { STRONG }, { MEET }, { TAKE, 0, 0 }, { WAIT_ALL } } } },
	{ "strong, a full ring",
	  { 0, 1, 2, 0, 0, 1, 16 },
	  { { { STRONG }, { STRONG }, { STRONG }, { COMMIT }, { WAIT_ALL } },
	    { { STRONG }, { STRONG }, { COMMIT }, { WAIT_ALL } },
	    { { WAIT_ALL }, { WAIT_ALL } } } },
	{ "one commits, all wait",
	  { 0, 1, 4, 0, 0, 1, 16 },
	  { { { STRONG }, { COMMIT }, { GIVE, 0, 0 }, { WAIT_ALL } },
	    { { TAKE, 0, 0 }, { WAIT_ALL } },
	    { { TAKE, 0, 0 }, { WAIT_ALL } } } },
	{ "several commits, waits without a message",
	  { 0, 1, 4, 0, 0, 1, 16 },
	  { { { STRONG }, { COMMIT }, { STRONG }, { COMMIT }, { STRONG }, { COMMIT } },
	    { { WAIT_ALL }, { WAIT_ALL }, { WAIT_ALL }, { WAIT_ALL } },
	    { { WAIT_ALL }, { WAIT_ALL }, { WAIT_ALL }, { WAIT_ALL } } } },
	{ "weak, one thread commits",
	  { 0, 1, 4, 0, 0, 1, 16 },
	  { { { WEAK, 0, 0 }, { MEET }, { COMMIT_WEAK, 0, 3 }, { GIVE, 0, 0 }, { WAIT_ALL } },
	    { { WEAK, 0, 1 }, { MEET }, { TAKE, 0, 0 }, { WAIT_ALL }, { INFO } },
	    { { WEAK, 0, 2 }, { MEET }, { TAKE, 0, 0 }, { WAIT_ALL } } } },
	{ "weak, in turn",
	  { 0, 1, 4, 0, 0, 1, 16 },
	  { { { WEAK, 0, 0 }, { COMMIT_WEAK, 0, 1 }, { GIVE, 0, 0 }, { WAIT_ALL } },
	    { { WEAK, 0, 2 },
	      { WEAK, 0, 1 },
	      { TAKE, 0, 0 },
	      { COMMIT_WEAK, 0, 2 },
	      { GIVE, 0, 1 } },
	    { { WEAK, 0, 3 }, { TAKE, 0, 1 }, { COMMIT_WEAK, 0, 1 }, { WAIT_ALL } } } },
	{ "weak, three laps",
	  { 0, 1, 2, 0, 0, 1, 16 },
	  { { { WEAK, 0, 1 },
	      { WEAK, 0, 0 },
	      { COMMIT_WEAK, 0, 2 },
	      { WEAK, 0, 2 },
	      { COMMIT_WEAK, 0, 1 },
	      { WEAK, 0, 3 },
	      { COMMIT_WEAK, 0, 1 } },
	    { { WAIT_ALL }, { WAIT_ALL }, { WAIT_ALL }, { WAIT_ALL } },
	    { { WAIT_ALL }, { WAIT_ALL }, { WAIT_ALL }, { WAIT_ALL } } } },
	{ "weak, slots reused in turn",
	  { 0, 1, 2, 0, 0, 1, 16 },
	  { { { WEAK, 0, 0 },
	      { COMMIT_WEAK, 0, 1 },
	      { GIVE, 0, 0 },
	      { TAKE, 0, 1 },
	      { WEAK, 0, 2 },
	      { COMMIT_WEAK, 0, 1 },
	      { GIVE, 0, 2 } },
	    { { TAKE, 0, 0 },
	      { WEAK, 0, 1 },
	      { COMMIT_WEAK, 0, 1 },
	      { GIVE, 0, 1 },
	      { TAKE, 0, 2 },
	      { WEAK, 0, 3 },
	      { COMMIT_WEAK, 0, 1 } },
	    { { WAIT_ALL }, { TAKE, 0, 1 }, { WAIT_ALL } } } },
	{ "strong and weak in turn",
	  { 0, 1, 2, 0, 0, 1, 16 },
	  { { { STRONG },
	      { COMMIT },
	      { GIVE, 0, 0 },
	      { TAKE, 0, 1 },
	      { STRONG },
	      { COMMIT },
	      { WAIT_ALL } },
	    { { TAKE, 0, 0 }, { WEAK, 0, 1 }, { COMMIT_WEAK, 0, 1 }, { GIVE, 0, 1 }, { WAIT_ALL } },
	    { { WAIT_ALL }, { WAIT_ALL } } } },
};

static const struct config configs[] = {
	{ "GPU_SM_DB", GDK_DB, 0, 0, 0 },
	{ "GPU_SM_DB, in a block", GDK_DB, 1, 0, 0 },
	{ "GPU_SM_DB, host memory", GDK_DB, 0, GDK_QPF_SYS_SCOPE, 0 },
	{ "NO_DBR", GDK_NO_DBR, 0, 0, 0 },
	{ "CPU_PROXY", GDK_PROXY, 0, GDK_QPF_SYS_SCOPE, 0 },
};

#endif
