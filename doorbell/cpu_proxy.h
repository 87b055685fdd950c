/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The CPU proxy's parts: one step for one queue pair, and a set of queue pairs
 * whose counters are looked at together. Neither has threads of its own.
 */
#ifndef GDK_CPU_PROXY_H
#define GDK_CPU_PROXY_H

#include "qp/export.h"

#define GDK_SCAN_SLOTS 8u /* counters of 64 bits in a line of 64 bytes */

enum gdk_step {
	GDK_STEP_NONE, /* nothing new was raised */
	GDK_STEP_RANG,
	GDK_STEP_BUSY, /* another thread is in a step of this QP, or resets it */
};

/* Rings once for every index that was raised in *pub.cpu_db. */
enum gdk_step gdk_proxy_step(struct gdk_export *x);
/* The same, but waits for who is in a step: what was raised before the call is
 * rung when it returns. True: by this call. */
bool gdk_proxy_drain(struct gdk_export *x);

/* What an idle pass reads of a line of counters, beside the line itself. */
struct gdk_scan_line {
	const uint64_t *at;
	uint64_t sum; /* of the counters when they were last looked at one by one */
};

/* Zeroed at first; the caller serialises. */
struct gdk_scan {
	struct gdk_scan_line *line;
	struct gdk_export *(*member)[GDK_SCAN_SLOTS]; /* of each line; NULL: not in the set */
	size_t num_lines, max_lines;
	/* QPs without a slot (NO_DBR_SW_EMULATED): their counters lie anywhere. */
	struct gdk_export **loose;
	size_t num_loose, max_loose;
	size_t num;	    /* QPs, of both kinds */
	unsigned int falls; /* gdk_counter_falls when the sums were last taken anew */
	bool stale;	    /* look at every counter in the next pass */
};

doca_error_t gdk_scan_add(struct gdk_scan *s, struct gdk_export *x);
void gdk_scan_remove(struct gdk_scan *s, struct gdk_export *x);
/* Does the set have other counters of this QP's line? */
bool gdk_scan_has_line(const struct gdk_scan *s, const struct gdk_export *x);
/* One of the set, NULL if it is empty. */
struct gdk_export *gdk_scan_any(const struct gdk_scan *s);
/* One look at all counters; how many QPs were rung. */
unsigned int gdk_scan_pass(struct gdk_scan *s);
void gdk_scan_free(struct gdk_scan *s);

#endif
