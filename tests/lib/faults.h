/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Creation when something fails: the n-th allocation, firmware command, driver
 * call, CUDA or GDRCopy call of a case is made to fail for n = 1, 2, ... until a
 * run gets through. A failed run gives no object and says so, by an error that
 * tells what failed and by a line of the log. Then the same call works, and no
 * object of the NIC or of CUDA is left of the two, no descriptor, no memory.
 * Then the same while what was made is destroyed: what is refused can be repeated.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include <string.h>

#include "../../core/slab.h"
#include "capture.h"
#include "e2e.h"
#include "failalloc.h"
#include "fds.h"
#include "nicfail.h"
#include "standin.h"

#define FAULTS_RUNS_MAX 2000u
#define FAULTS_STATUS	0x0f /* of commands: no resources */

enum fault { FAULT_ALLOC, FAULT_RDMA, FAULT_COMMAND, FAULT_CALL, FAULT_CUDA, FAULT_GDR, FAULTS };

#define FAULT_ERR(name) (1u << DOCA_ERROR_##name)

static const struct {
	const char *name;
	uint32_t errors; /* any of these is right */
} fault_kinds[FAULTS] = {
	[FAULT_ALLOC] = { "allocation", FAULT_ERR(NO_MEMORY) | FAULT_ERR(OPERATING_SYSTEM) },
	[FAULT_RDMA] = { "allocation of rdma-core's", FAULT_ERR(NO_MEMORY) | FAULT_ERR(DRIVER) },
	[FAULT_COMMAND] = { "firmware command", FAULT_ERR(DRIVER) },
	[FAULT_CALL] = { "driver call", FAULT_ERR(NO_MEMORY) | FAULT_ERR(DRIVER) },
	[FAULT_CUDA] = { "CUDA call", FAULT_ERR(NO_MEMORY) | FAULT_ERR(DRIVER) },
	[FAULT_GDR] = { "GDRCopy call", FAULT_ERR(NO_MEMORY) | FAULT_ERR(DRIVER) },
};

/* One way of creating something. create ends the fault when the object is there,
 * looks at it and destroys it; errors: right for this case, too. */
struct fault_case {
	const char *name;
	doca_error_t (*create)(void);
	unsigned int at_least[FAULTS]; /* so many failures give an error */
	uint32_t errors[FAULTS];
	bool prepares; /* it calls fault_start when that is done */
};

struct fault_held {
	uint32_t objects;
	unsigned int fds;
	size_t blocks;
	int cuda, gdr;
};

static uint64_t fault_count;  /* of the NIC's, before */
static bool fault_hit;	      /* what was armed did fail */
static bool fault_on_gpu;     /* the stand-ins are loaded */
static doca_gpu_t *fault_gpu; /* whose spare memory is given back between runs */
static doca_dev_t *fault_dev;
static bool fault_uncounted; /* at_least is not for this run */

static struct fault_held fault_held_now(void)
{
	return (struct fault_held){ .objects = nicfail_live(),
				    .fds = count_fds(),
				    .blocks = failalloc_live(),
				    .cuda = fault_on_gpu ? standin_cuda_live() : 0,
				    .gdr = fault_on_gpu ? standin_gdr_live() : 0 };
}

static void fault_arm(enum fault kind, uint32_t n)
{
	fault_hit = false;
	fault_count = nicfail_stats()->faults_injected;
	if (kind == FAULT_ALLOC)
		failalloc_arm(n);
	else if (kind == FAULT_RDMA)
		failalloc_arm_rdma(n);
	else if (kind == FAULT_CUDA)
		standin_cuda_fail_at(n);
	else if (kind == FAULT_GDR)
		standin_gdr_fail_at(n);
	else
		nicfail_next(kind == FAULT_COMMAND ? n : 0, FAULTS_STATUS, 0xabc,
			     kind == FAULT_CALL ? n : 0);
}

static void fault_disarm(void)
{
	fault_hit |= failalloc_disarm() || nicfail_stats()->faults_injected != fault_count;
	nicfail_next(0, 0, 0, 0);
	fault_count = nicfail_stats()->faults_injected;
	if (!fault_on_gpu)
		return;
	fault_hit |= standin_cuda_failed() || standin_gdr_failed();
	standin_cuda_fail_at(0);
	standin_gdr_fail_at(0);
}

/* What fails later; n is 0: nothing. */
static struct {
	enum fault kind;
	uint32_t n;
	bool in_destroy;
} fault_later;

static void fault_start(void)
{
	if (fault_later.n && !fault_later.in_destroy)
		fault_arm(fault_later.kind, fault_later.n);
}

/* What a case returns after the call that makes obj. */
static doca_error_t fault_made(doca_error_t err, const void *obj)
{
	fault_disarm();
	if (err)
		cr_expect_null(obj, "an object although it failed");
	else
		cr_expect_not_null(obj, "success without an object");
	return err;
}

/* Destroys it; refused, it is whole, and can be destroyed again. */
#define FAULT_DONE(made_err, obj, destroy) \
	({ \
		doca_error_t err_ = fault_made(made_err, obj); \
\
		if (!err_ && fault_later.in_destroy) \
			fault_arm(fault_later.kind, fault_later.n); \
		err_ = err_ ?: destroy; \
		fault_disarm(); \
		if (err_ && !(made_err)) \
			cr_expect_eq(destroy, DOCA_SUCCESS, "%s, again", #destroy); \
		err_; \
	})

static void fault_same(const struct fault_case *c, enum fault kind, unsigned int n,
		       const struct fault_held *a, const struct fault_held *b)
{
	const char *what = fault_kinds[kind].name;

	cr_expect_eq(a->objects, b->objects, "%s, %s %u: %d objects of the NIC stay", c->name, what,
		     n, (int)(b->objects - a->objects));
	cr_expect_eq(a->fds, b->fds, "%s, %s %u: a descriptor stays", c->name, what, n);
	cr_expect_eq(a->blocks, b->blocks, "%s, %s %u: %zd blocks stay", c->name, what, n,
		     (ssize_t)(b->blocks - a->blocks));
	cr_expect_eq(a->cuda, b->cuda, "%s, %s %u: objects of CUDA stay", c->name, what, n);
	cr_expect_eq(a->gdr, b->gdr, "%s, %s %u: mappings of GDRCopy stay", c->name, what, n);
}

/* A leak is there each time; a descriptor of another thread of the runner is not. */
static doca_error_t fault_once(const struct fault_case *c, enum fault kind, unsigned int n,
			       bool later)
{
	struct fault_held before, after;
	unsigned int tries = 0;
	const char *log;
	doca_error_t err;

	do {
		gdk_slab_trim(fault_gpu, fault_dev); /* each time anew */
		before = fault_held_now();
		capture_begin();
		fault_hit = false;
		fault_later.kind = kind;
		fault_later.n = later || c->prepares ? n : 0;
		fault_later.in_destroy = later;
		if (!fault_later.n)
			fault_arm(kind, n);
		err = c->create();
		fault_disarm();
		memset(&fault_later, 0, sizeof(fault_later));
		log = capture_end();
		cr_expect_eq(c->create(), DOCA_SUCCESS, "%s, %s %u: the retry", c->name,
			     fault_kinds[kind].name, n);
		gdk_slab_trim(fault_gpu, fault_dev);
		after = fault_held_now();
	} while (after.fds != before.fds && ++tries < 3);
	fault_same(c, kind, n, &before, &after);
	if (!err)
		return err;
	cr_expect(strstr(log, " ERR ") || strstr(log, " WARNING "), "%s, %s %u: nothing is logged",
		  c->name, fault_kinds[kind].name, n);
	cr_expect((fault_kinds[kind].errors | c->errors[kind]) >> err & 1, "%s, %s %u gives %s\n%s",
		  c->name, fault_kinds[kind].name, n, doca_error_get_name(err), log);
	return err;
}

static void fault_each(const struct fault_case *c, enum fault kind, bool later)
{
	unsigned int n, failed = 0;
	doca_error_t err = DOCA_SUCCESS;

	printf("%s\n", c->name); /* the last one is where it crashed */
	fflush(stdout);
	/* What libmlx5 keeps for good (register pages), it has after a run or two. */
	cr_assert_eq(c->create(), DOCA_SUCCESS, "%s", c->name);
	cr_assert_eq(c->create(), DOCA_SUCCESS, "%s", c->name);
	for (n = 1; n < FAULTS_RUNS_MAX; n++) {
		err = fault_once(c, kind, n, later);
		/* Success is right only where another way was found (a second kind of
		 * register page, peer memory): create has looked at the object. */
		failed += err != DOCA_SUCCESS;
		if (!fault_hit) /* there are not so many of them */
			break;
	}
	cr_expect_eq(err, DOCA_SUCCESS);
	cr_expect_lt(n, FAULTS_RUNS_MAX);
	if (later || fault_uncounted || (fault_on_gpu && kind < FAULT_CUDA))
		return;
	cr_expect_geq(failed, c->at_least[kind], "%s: %u of %u failures of a %s gave an error",
		      c->name, failed, n - 1, fault_kinds[kind].name);
}

#endif
