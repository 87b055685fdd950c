/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Doorbell strategy "batching" for handler CPU_PROXY: a CPU thread rings the doorbell of a queue
 * pair when n WQEs are pending, or t microseconds after the first of them. A program that is linked
 * with it needs no proxy service.
 *
 * BATCHING_N and BATCHING_US set n and t when the process exports its first queue pair.
 */
#ifndef BATCHING_H
#define BATCHING_H

#include <stdint.h>

#define BATCHING_N_DEFAULT  16u
#define BATCHING_N_MAX	    32768u /* slots of the largest send queue */
#define BATCHING_US_DEFAULT 50u
/* The library reports queue pairs whose doorbells wait for 500 ms. */
#define BATCHING_US_MAX 100000u

/* Doorbells rung since the start of the process, by their cause. */
struct batching_stats {
	uint64_t full;	  /* n WQEs were pending */
	uint64_t timed;	  /* fewer than n were pending for t us */
	uint64_t drained; /* the queue pair was unexported with WQEs pending */
};

/* Sets n and t for all queue pairs, from the next poll on. Returns 0, or -1 if a value is out of
 * range: n from 1 to BATCHING_N_MAX, us up to BATCHING_US_MAX. Any thread may call this. */
int batching_set(unsigned int n, unsigned int us);
/* Reads the counters. Any thread may call this. */
void batching_get_stats(struct batching_stats *stats);

#endif
