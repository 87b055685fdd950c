/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Parts of the CPU proxy: one step for one queue pair (cpu_proxy_step.c), and a scan set, which
 * polls the counters of many queue pairs together (cpu_proxy_scan.c). Neither creates
 * threads; service.c does.
 */
#ifndef GDK_CPU_PROXY_H
#define GDK_CPU_PROXY_H

#include "doorbell/doorbell.h"

#define GDK_SCAN_SLOTS 8u /* 64-bit counters in a cache line */

enum gdk_step {
	GDK_STEP_NONE, /* the counter was not raised */
	GDK_STEP_RANG, /* rang the doorbell */
	GDK_STEP_BUSY, /* another thread executes a step of this QP or resets it */
};

/* Rings the doorbell once if GPU threads have increased the counter *pub.cpu_db. */
enum gdk_step gdk_proxy_step(struct gdk_db_qp *x);
/* As gdk_proxy_step, but waits until another thread's step has ended. On return, every index that
 * GPU threads raised before the call has been rung. Returns whether this call rang. */
bool gdk_proxy_drain(struct gdk_db_qp *x);

/* One cache line of counters. */
struct gdk_scan_line {
	const uint64_t *at;
	uint64_t sum; /* sum of the counters when they were last read one by one */
};

/* A set of queue pairs. Initialize it with zeros. Calls must be serialized by the caller. */
struct gdk_scan {
	struct gdk_scan_line *line;
	struct gdk_db_qp *(*member)[GDK_SCAN_SLOTS]; /* QPs of each line; NULL: not in the set */
	size_t num_lines, max_lines;
	/* QPs whose counter is in the state block, not in a page of counters
	 * (NO_DBR_SW_EMULATED). */
	struct gdk_db_qp **loose;
	size_t num_loose, max_loose;
	size_t num;	    /* number of all QPs in the set */
	unsigned int falls; /* gdk_counter_falls at the start of the last pass */
	bool stale;	    /* the next pass must read every counter */
};

doca_error_t gdk_scan_add(struct gdk_scan *s, struct gdk_db_qp *x);
void gdk_scan_remove(struct gdk_scan *s, struct gdk_db_qp *x);
/* Returns whether the set contains a QP whose counter is in the same cache line as x's. */
bool gdk_scan_has_line(const struct gdk_scan *s, const struct gdk_db_qp *x);
/* Returns some QP of the set, or NULL if the set is empty. */
struct gdk_db_qp *gdk_scan_any(const struct gdk_scan *s);
/* Polls all counters once and rings where needed. Returns the number of QPs that were rung. */
unsigned int gdk_scan_pass(struct gdk_scan *s);
void gdk_scan_free(struct gdk_scan *s);

/* Number of times that a proxy counter decreased: at a reset, or when the counter was given to
 * another QP. It is incremented after the decrease. */
extern atomic_uint gdk_counter_falls;

/* Number of proxy services that run in this process. */
extern atomic_uint gdk_proxy_services;

#endif
