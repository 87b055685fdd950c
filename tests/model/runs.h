/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The scenarios and configurations in which replay.c runs the device code. */
#ifndef RUNS_H
#define RUNS_H

#define DUMP_DEPTH 2 /* slots of queue 1, the send queue of the dumps */

struct op {
	unsigned char what, from, to;
};

/* Slot i of the model stands for `scale` slots of the code, from base + i * scale on, so that the
 * boundaries of words are where a scenario needs them. */
struct scenario {
	const char *name;
	struct {
		unsigned base, scale, depth;
		unsigned done;	/* slots that are complete at the start */
		unsigned left;	/* 1: slot 0 is published at the start, and the token left */
		unsigned cqes;	/* 1: the NIC writes CQEs, 2: and `uneven` is set; 0: it raises
				 * `completed` */
		unsigned rings; /* doorbells of a holder before it offers the token */
	};
	struct op program[THREADS][8];
};

struct config {
	const char *name;
	gdk_handler_t handler;
	int cta;
	uint32_t flags;
	uint8_t dump; /* the data of receives need a dump */
};

#if RDMA && SRQ
#include "rdma_recv_runs.h"
#elif RDMA
#include "rdma_runs.h"
#elif SRQ
#include "srq_runs.h"
#elif QUEUES == 2
#include "recv_runs.h"
#else
/*
 * from, to: slots of the model, each SCALE slots of the code. POST: one WQE of all slots from..to;
 * PUBLISH: gdk_mark_ready(); SUBMIT, BF: gdk_submit(), gdk_submit_bf() of all slots below `to`;
 * WAIT: gdk_wait() for slot `to`; SINGLE: gdk_shared_single() for slot `from`. The OWN_ operations
 * are those of exclusive use. MEET: all threads meet, as between two kernels. POLL:
 * gdk_poll_cq_at() for CQE `to`, which is that of slot `from`. HAND: the caller stores DBREC and
 * register itself. ADVANCE: writes slot `from`, and moves an index of the caller from `from` to
 * `to` by gdk_index_advance().
 */
enum what {
	END,
	POST,
	PUBLISH,
	SUBMIT,
	BF,
	WAIT,
	SINGLE,
	OWN_POST,
	OWN_PUBLISH,
	OWN_SUBMIT,
	OWN_BF,
	OWN_WAIT,
	OWN_SINGLE,
	MEET,
	POLL,
	HAND,
	ADVANCE
};
static const struct scenario scenarios[] = {
	{ "a WQE spans two words",
	  { 30, 1, 64, 0, 0, 0, 16 },
	  { { { POST, 1, 2 } }, { { PUBLISH, 0, 0 } }, { { SUBMIT, 0, 3 } } } },
	{ "a WQE spans two words of an odd lap",
	  { 94, 1, 64, 0, 0, 0, 16 },
	  { { { POST, 1, 2 } }, { { PUBLISH, 0, 0 } }, { { SUBMIT, 0, 3 } } } },
	{ "three posters",
	  { 30, 1, 64, 0, 0, 0, 16 },
	  { { { POST, 0, 0 } }, { { POST, 1, 1 } }, { { POST, 2, 2 } } } },
	{ "published, then submitted by another",
	  { 30, 1, 64, 0, 0, 0, 16 },
	  { { { PUBLISH, 1, 2 } }, { { PUBLISH, 0, 0 } }, { { SUBMIT, 0, 3 } } } },
	{ "the token is left at the start",
	  { 30, 1, 64, 0, 1, 0, 16 },
	  { { { SUBMIT, 0, 1 } }, { { PUBLISH, 1, 1 }, { SUBMIT, 0, 1 } }, { { SUBMIT, 0, 2 } } } },
	{ "left, taken, left, taken",
	  { 30, 1, 64, 0, 0, 0, 16 },
	  { { { POST, 0, 0 } }, { { PUBLISH, 1, 1 }, { PUBLISH, 2, 2 } }, { { SUBMIT, 0, 2 } } } },
	{ "left before a slot that is not wanted",
	  { 30, 1, 64, 0, 0, 0, 16 },
	  { { { POST, 0, 0 } }, { { PUBLISH, 1, 1 } }, { { POST, 2, 2 } } } },
	{ "the ring wraps",
	  { 0, 16, 32, 0, 0, 0, 16 },
	  { { { POST, 0, 0 }, { POST, 2, 2 } }, { { POST, 1, 1 } } } },
	{ "third lap",
	  { 0, 32, 64, 2, 0, 0, 16 },
	  { { { POST, 2, 2 }, { POST, 4, 4 } }, { { POST, 3, 3 } } } },
	{ "third lap, submitted by another",
	  { 0, 32, 64, 2, 0, 0, 16 },
	  { { { POST, 2, 2 }, { PUBLISH, 4, 4 } }, { { POST, 3, 3 }, { SUBMIT, 0, 5 } } } },
	{ "passed on after one doorbell",
	  { 30, 1, 64, 0, 0, 0, 1 },
	  { { { POST, 0, 0 }, { POST, 3, 3 } }, { { POST, 1, 1 } }, { { POST, 2, 2 } } } },
	{ "passed on after two doorbells",
	  { 30, 1, 64, 0, 0, 0, 2 },
	  { { { POST, 0, 0 }, { POST, 3, 3 } }, { { POST, 1, 1 } }, { { POST, 2, 2 } } } },
	{ "passed on, submitted by another",
	  { 30, 1, 64, 0, 0, 0, 1 },
	  { { { PUBLISH, 1, 1 }, { POST, 3, 3 } }, { { POST, 0, 0 } }, { { POST, 2, 2 } } } },
	{ "BlueFlame",
	  { 30, 1, 64, 0, 0, 0, 16 },
	  { { { PUBLISH, 0, 0 }, { BF, 0, 1 } },
	    { { PUBLISH, 1, 1 }, { BF, 1, 2 } },
	    { { PUBLISH, 2, 2 }, { BF, 2, 3 } } } },
	{ "BlueFlame and posts",
	  { 30, 1, 64, 0, 1, 0, 2 },
	  { { { BF, 0, 1 }, { POST, 3, 3 } },
	    { { PUBLISH, 1, 1 }, { BF, 1, 2 } },
	    { { POST, 2, 2 } } } },
	{ "BlueFlame for another's WQE",
	  { 30, 1, 64, 0, 0, 0, 16 },
	  { { { PUBLISH, 0, 0 } }, { { BF, 0, 1 } }, { { PUBLISH, 1, 1 }, { BF, 1, 2 } } } },
	{ "exclusive BlueFlame and doorbells",
	  { 30, 1, 64, 0, 0, 0, 16 },
	  { { { OWN_POST, 0, 0 }, { OWN_PUBLISH, 1, 1 }, { OWN_BF, 1, 2 }, { OWN_POST, 2, 2 } } } },
	{ "exclusive BlueFlame, then a WQE by itself",
	  { 30, 1, 64, 0, 0, 0, 16 },
	  { { { OWN_POST, 0, 0 },
	      { OWN_PUBLISH, 1, 1 },
	      { OWN_BF, 1, 2 },
	      { OWN_SINGLE, 2, 2 },
	      { OWN_SINGLE, 3, 3 } } } },
	{ "exclusive BlueFlame, published, doorbell",
	  { 30, 1, 64, 0, 0, 0, 16 },
	  { { { OWN_POST, 0, 0 },
	      { OWN_PUBLISH, 1, 1 },
	      { OWN_BF, 1, 2 },
	      { OWN_PUBLISH, 2, 2 },
	      { OWN_POST, 3, 3 } } } },
	{ "exclusive use, then nothing to ring",
	  { 30, 1, 64, 0, 0, 0, 16 },
	  { { { OWN_POST, 0, 0 }, { OWN_POST, 1, 1 }, { MEET } },
	    { { MEET }, { SUBMIT, 0, 3 } },
	    { { MEET } } } },
	{ "exclusive use, then BlueFlame with nothing to ring",
	  { 30, 1, 64, 0, 0, 0, 16 },
	  { { { OWN_POST, 0, 0 }, { OWN_POST, 1, 1 }, { MEET } },
	    { { MEET }, { BF, 0, 3 } },
	    { { MEET } } } },
	{ "exclusive use, then BlueFlame for another's WQE",
	  { 20, 1, 64, 0, 0, 0, 16 },
	  { { { OWN_POST, 0, 0 }, { MEET } },
	    { { MEET }, { PUBLISH, 1, 1 } },
	    { { MEET }, { BF, 1, 2 } } } },
	{ "an index of the caller",
	  { 0, 1, 4, 0, 0, 0, 16 },
	  { { { ADVANCE, 0, 1 } }, { { ADVANCE, 1, 2 } }, { { ADVANCE, 2, 3 } } } },
	{ "by hand", { 30, 1, 64, 0, 0, 0, 16 }, { { { HAND, 0, 0 }, { HAND, 1, 1 } } } },
	{ "exclusive, then shared use",
	  { 30, 1, 64, 0, 0, 0, 16 },
	  { { { OWN_POST, 0, 0 }, { OWN_POST, 1, 1 }, { MEET }, { POST, 2, 2 } },
	    { { MEET }, { POST, 3, 3 } },
	    { { MEET } } } },
	{ "exclusive use publishes, shared use submits",
	  { 30, 1, 64, 0, 0, 0, 16 },
	  { { { OWN_POST, 0, 0 }, { OWN_PUBLISH, 1, 1 }, { MEET }, { SUBMIT, 0, 2 } },
	    { { MEET }, { POST, 2, 2 } },
	    { { MEET } } } },
	{ "shared, exclusive, shared use",
	  { 30, 1, 64, 0, 0, 0, 16 },
	  { { { POST, 0, 0 }, { MEET }, { OWN_POST, 2, 2 }, { MEET }, { POST, 3, 3 } },
	    { { PUBLISH, 1, 1 }, { MEET }, { MEET } },
	    { { MEET }, { MEET }, { SUBMIT, 0, 3 } } } },
	{ "shared use, exclusive BlueFlame",
	  { 30, 1, 64, 0, 0, 0, 16 },
	  { { { POST, 1, 1 }, { MEET }, { OWN_PUBLISH, 2, 2 }, { OWN_BF, 2, 3 }, { MEET } },
	    { { POST, 0, 0 }, { MEET }, { MEET }, { POST, 3, 3 } },
	    { { MEET }, { MEET } } } },
	{ "completions",
	  { 0, 1, 4, 0, 0, 1, 16 },
	  { { { POST, 0, 0 }, { WAIT, 0, 0 } },
	    { { POST, 1, 1 }, { WAIT, 0, 1 } },
	    { { WAIT, 0, 0 } } } },
	{ "two waiters",
	  { 0, 1, 4, 0, 0, 1, 16 },
	  { { { POST, 0, 0 } }, { { WAIT, 0, 0 } }, { { WAIT, 0, 0 } } } },
	{ "slots are reused",
	  { 0, 1, 2, 0, 0, 1, 16 },
	  { { { POST, 0, 0 }, { POST, 2, 2 } },
	    { { POST, 1, 1 }, { POST, 3, 3 } },
	    { { WAIT, 0, 2 } } } },
	{ "WQEs by themselves reuse slots",
	  { 0, 1, 2, 0, 0, 1, 16 },
	  { { { POST, 0, 0 }, { SINGLE, 2, 2 } },
	    { { SINGLE, 1, 1 }, { SINGLE, 3, 3 } },
	    { { WAIT, 0, 2 } } } },
	{ "three laps",
	  { 0, 1, 2, 0, 0, 1, 16 },
	  { { { POST, 0, 0 }, { POST, 2, 2 }, { POST, 4, 4 } },
	    { { POST, 1, 1 }, { POST, 3, 3 } },
	    { { WAIT, 0, 4 } } } },
	{ "three laps, looking ahead",
	  { 0, 1, 2, 0, 0, 1, 16 },
	  { { { POST, 0, 0 }, { POST, 2, 2 }, { POST, 4, 4 } },
	    { { POST, 1, 1 }, { POST, 3, 3 }, { POST, 5, 5 } },
	    { { WAIT, 0, 3 } } } },
	{ "three laps, uneven",
	  { 0, 1, 2, 0, 0, 2, 16 },
	  { { { POST, 0, 0 }, { POST, 2, 2 }, { POST, 4, 4 } },
	    { { POST, 1, 1 }, { POST, 3, 3 }, { POST, 5, 5 } },
	    { { WAIT, 0, 5 } } } },
	{ "three laps, beyond index 131072",
	  { 131070, 1, 2, 0, 0, 1, 16 },
	  { { { POST, 0, 0 }, { POST, 2, 2 }, { POST, 4, 4 } },
	    { { POST, 1, 1 }, { POST, 3, 3 }, { POST, 5, 5 } },
	    { { WAIT, 0, 5 } } } },
	{ "three laps, uneven, beyond index 131072",
	  { 131070, 1, 2, 0, 0, 2, 16 },
	  { { { POST, 0, 0 }, { POST, 2, 2 }, { POST, 4, 4 } },
	    { { POST, 1, 1 }, { POST, 3, 3 }, { POST, 5, 5 } },
	    { { WAIT, 0, 5 } } } },
	{ "WQEs of two slots",
	  { 0, 1, 4, 0, 0, 1, 16 },
	  { { { PUBLISH, 0, 1 }, { SUBMIT, 0, 2 }, { POST, 4, 4 } },
	    { { POST, 2, 2 } },
	    { { POST, 3, 3 }, { WAIT, 0, 1 } } } },
	{ "a WQE of two slots, waited for",
	  { 0, 1, 2, 0, 0, 1, 16 },
	  { { { PUBLISH, 0, 1 }, { SUBMIT, 0, 2 } }, { { WAIT, 0, 0 } }, { { WAIT, 0, 1 } } } },
	{ "a WQE of two slots, polled for",
	  { 0, 1, 4, 0, 0, 1, 16 },
	  { { { PUBLISH, 0, 1 }, { SUBMIT, 0, 2 }, { WAIT, 0, 1 } },
	    { { WAIT, 0, 1 }, { POST, 2, 2 } },
	    { { POLL, 2, 1 } } } },
	{ "WQEs of two slots, three laps",
	  { 0, 1, 2, 0, 0, 1, 16 },
	  { { { PUBLISH, 0, 1 }, { SUBMIT, 0, 2 }, { POST, 2, 2 }, { POST, 4, 4 } },
	    { { POST, 3, 3 }, { POST, 5, 5 } },
	    { { WAIT, 0, 5 } } } },
	{ "exclusive use reuses slots",
	  { 0, 1, 2, 0, 0, 1, 16 },
	  { { { OWN_POST, 0, 0 },
	      { OWN_POST, 1, 1 },
	      { OWN_POST, 2, 2 },
	      { OWN_WAIT, 0, 2 },
	      { MEET },
	      { POST, 3, 3 } },
	    { { MEET }, { POST, 4, 4 } },
	    { { MEET }, { WAIT, 0, 4 } } } },
};

static const struct config configs[] = {
	{ "GPU_SM_DB", GDK_DB, 0, 0 },
	{ "GPU_SM_DB, in a block", GDK_DB, 1, 0 },
	{ "GPU_SM_DB, host memory", GDK_DB, 0, GDK_QPF_SYS_SCOPE },
	{ "GPU_SM_DB, host memory, in a block", GDK_DB, 1, GDK_QPF_SYS_SCOPE },
	{ "GPU_SM_DB, host reads rung", GDK_DB, 0, GDK_QPF_SYS_SCOPE | GDK_QPF_RUNG_READ },
	{ "NO_DBR", GDK_NO_DBR, 0, 0 },
	{ "NO_DBR, in a block", GDK_NO_DBR, 1, 0 },
	{ "CPU_PROXY", GDK_PROXY, 0, GDK_QPF_SYS_SCOPE },
	{ "CPU_PROXY, in a block", GDK_PROXY, 1, GDK_QPF_SYS_SCOPE },
	{ "GPU_SM_BF", GDK_BF, 0, GDK_QPF_BLUEFLAME },
	{ "GPU_SM_BF, in a block", GDK_BF, 1, GDK_QPF_BLUEFLAME },
};

#endif
#endif
