/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The scenarios and configurations in which replay.c runs the device code of shared receive
 * queues. */
#ifndef SRQ_RUNS_H
#define SRQ_RUNS_H

/*
 * FILL: writes all slots and submits them; TAKE: takes `to` messages, whose CQEs are in the CQs
 * `from` (bits), writes the slot of each, and posts it again; GIVE: passes the slots to another
 * thread; GIVEN: posts `to` such slots again as they are; MEET: as in runs.h. OWN | X: exclusive
 * use. NO_DB | X: without a doorbell.
 */
enum what {
	END,
	FILL,
	TAKE,
	GIVE,
	GIVEN,
	MEET,
	NO_DB = 0x40,
	OWN = 0x80,
	POST = 0xfe, /* not used here */
	PUBLISH,
	HAND
};

static const struct scenario scenarios[] = {
	{ "three receivers",
	  { 0, 1, 2, 0, 0, 0, 16 },
	  { { { FILL }, { TAKE, 1, 2 } }, { { TAKE, 2, 2 } }, { { TAKE, 4, 2 } } } },
	{ "three receivers, passed on after one doorbell",
	  { 0, 1, 2, 0, 0, 0, 1 },
	  { { { FILL }, { TAKE, 1, 2 } }, { { TAKE, 2, 2 } }, { { TAKE, 4, 2 } } } },
	{ "four slots, passed on after one doorbell",
	  { 0, 1, 4, 0, 0, 0, 1 },
	  { { { FILL }, { TAKE, 1, 3 } }, { { TAKE, 2, 3 } }, { { TAKE, 4, 3 } } } },
	{ "without doorbells, then with them",
	  { 0, 1, 4, 0, 0, 0, 16 },
	  { { { FILL }, { NO_DB | TAKE, 1, 1 }, { TAKE, 1, 2 } },
	    { { NO_DB | TAKE, 2, 1 }, { TAKE, 2, 2 } },
	    { { TAKE, 4, 2 } } } },
	{ "slots that another thread posts again",
	  { 0, 1, 2, 0, 0, 0, 16 },
	  { { { FILL }, { GIVE, 1, 3 } }, { { GIVEN, 0, 3 } }, { { TAKE, 4, 2 } } } },
	{ "exclusive use of a shared receive queue",
	  { 0, 1, 4, 0, 0, 0, 16 },
	  { { { OWN | FILL },
	      { OWN | TAKE, 7, 6 },
	      { OWN | NO_DB | TAKE, 7, 2 },
	      { OWN | TAKE, 7, 1 } } } },
	{ "exclusive, shared, exclusive use of a shared receive queue",
	  { 0, 1, 2, 0, 0, 0, 16 },
	  { { { OWN | FILL }, { OWN | TAKE, 7, 1 }, { MEET }, { TAKE, 1, 1 }, { MEET } },
	    { { MEET }, { TAKE, 2, 2 }, { MEET }, { OWN | TAKE, 7, 2 } },
	    { { MEET }, { TAKE, 4, 1 }, { MEET } } } },
};

static const struct config configs[] = {
	{ "GPU memory", GDK_DB, 0, 0, 0 },
	{ "GPU memory, in a block", GDK_DB, 1, 0, 0 },
	{ "host memory", GDK_DB, 0, GDK_QPF_SYS_SCOPE, 0 },
	{ "host memory, in a block", GDK_DB, 1, GDK_QPF_SYS_SCOPE, 0 },
};

#endif
