/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Fault injection for object creation and destruction. For n = 1, 2, ... the nth
 * allocation, firmware command, driver call, CUDA call or GDRCopy call of a case
 * fails, until a run makes fewer than n such calls. A failed creation must return no
 * object and an error that fits the fault, and must log an error or a warning. The same
 * call without a fault must then succeed. The case must leave no object of the NIC, of
 * CUDA or of GDRCopy, no descriptor and no memory. With `later` set, the faults occur
 * during destruction instead: a destruction that failed must succeed when repeated.
 */
#ifndef FAULTS_H
#define FAULTS_H

#include <string.h>

#include "../../core/gpu/gpu_priv.h"
#include "../../core/reclaim.h"
#include "capture.h"
#include "e2e.h"
#include "failalloc.h"
#include "fds.h"
#include "nicfail.h"
#include "standin.h"

#define FAULTS_RUNS_MAX 2000u
#define FAULTS_STATUS	0x0f /* status of a failed command: no resources */

enum fault { FAULT_ALLOC, FAULT_RDMA, FAULT_COMMAND, FAULT_CALL, FAULT_CUDA, FAULT_GDR, FAULTS };

#define FAULT_ERR(name) (1u << DOCA_ERROR_##name)

static const struct {
	const char *name;
	uint32_t errors; /* bit mask of the accepted errors, FAULT_ERR() */
} fault_kinds[FAULTS] = {
	[FAULT_ALLOC] = { "allocation", FAULT_ERR(NO_MEMORY) | FAULT_ERR(OPERATING_SYSTEM) },
	[FAULT_RDMA] = { "allocation in rdma-core", FAULT_ERR(NO_MEMORY) | FAULT_ERR(DRIVER) },
	[FAULT_COMMAND] = { "firmware command", FAULT_ERR(DRIVER) },
	[FAULT_CALL] = { "driver call", FAULT_ERR(NO_MEMORY) | FAULT_ERR(DRIVER) },
	[FAULT_CUDA] = { "CUDA call", FAULT_ERR(NO_MEMORY) | FAULT_ERR(DRIVER) },
	[FAULT_GDR] = { "GDRCopy call", FAULT_ERR(NO_MEMORY) | FAULT_ERR(DRIVER) },
};

/* One way of creating an object. create() disarms the fault once the object exists
 * (fault_made), checks the object and destroys it. */
struct fault_case {
	const char *name;
	doca_error_t (*create)(void);
	unsigned int at_least[FAULTS]; /* minimum number of faults that return an error */
	uint32_t errors[FAULTS];       /* accepted errors in addition to those of fault_kinds */
	bool prepares;		       /* create() calls fault_start() after its preparations */
};

struct fault_held {
	uint32_t objects;
	unsigned int fds;
	size_t blocks;
	int cuda, gdr;
};

static uint64_t fault_count; /* the NIC's count of injected faults when the fault was armed */
static bool fault_hit;	     /* the armed fault was injected */
static bool fault_armed;
static bool fault_on_gpu;     /* the stand-ins are loaded */
static doca_gpu_t *fault_gpu; /* fault_trim() frees what it keeps */
static doca_dev_t *fault_dev;
static bool fault_uncounted; /* do not check at_least */

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
	fault_armed = true;
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
	fault_armed = false;
	fault_hit |= failalloc_disarm() || nicfail_stats()->faults_injected != fault_count;
	nicfail_next(0, 0, 0, 0);
	fault_count = nicfail_stats()->faults_injected;
	if (!fault_on_gpu)
		return;
	fault_hit |= standin_cuda_failed() || standin_gdr_failed();
	standin_cuda_fail_at(0);
	standin_gdr_fail_at(0);
}

/* Fault that fault_start() arms, or FAULT_DONE if in_destroy; n = 0: none. */
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

/* To be called with the error and the object that a creation returned. Disarms the fault and
 * checks that obj is NULL exactly if err is an error. Returns err. */
static doca_error_t fault_made(doca_error_t err, const void *obj)
{
	fault_disarm();
	if (err)
		cr_expect_null(obj, "an object was returned although the call failed");
	else
		cr_expect_not_null(obj, "the call succeeded without returning an object");
	return err;
}

/* Destroys the object if its creation succeeded, with the fault armed if in_destroy. If the
 * destruction fails, the object must be intact, so that a second call succeeds. Returns the error
 * of the creation or of the first destruction. */
#define FAULT_DONE(made_err, obj, destroy) \
	({ \
		doca_error_t err_ = fault_made(made_err, obj); \
\
		if (!err_ && fault_later.in_destroy) \
			fault_arm(fault_later.kind, fault_later.n); \
		err_ = err_ ?: destroy; \
		fault_disarm(); \
		if (err_ && !(made_err)) \
			cr_expect_eq(destroy, DOCA_SUCCESS, "repeat %s", #destroy); \
		err_; \
	})

/* Functions of cases that call a function of an existing object. */
#define FAULT_CHANGE(name, call) \
	static doca_error_t name(void) \
	{ \
		doca_error_t err = call; \
\
		fault_disarm(); \
		return err; \
	}
/* A query needs all of its calls. */
#define FAULT_QUERY(name, call) \
	static doca_error_t name(void) \
	{ \
		doca_error_t err = call; \
		const bool armed = fault_armed; \
\
		fault_disarm(); \
		cr_expect(err || !armed || !fault_hit, "%s succeeds despite the fault", #name); \
		return err; \
	}

static void fault_same(const struct fault_case *c, enum fault kind, unsigned int n,
		       const struct fault_held *a, const struct fault_held *b)
{
	const char *what = fault_kinds[kind].name;

	cr_expect_eq(a->objects, b->objects, "%s, %s %u: %d NIC objects leaked", c->name, what, n,
		     (int)(b->objects - a->objects));
	cr_expect_eq(a->fds, b->fds, "%s, %s %u: a descriptor leaked", c->name, what, n);
	cr_expect_eq(a->blocks, b->blocks, "%s, %s %u: %zd memory blocks leaked", c->name, what, n,
		     (ssize_t)(b->blocks - a->blocks));
	cr_expect_eq(a->cuda, b->cuda, "%s, %s %u: CUDA objects leaked", c->name, what, n);
	cr_expect_eq(a->gdr, b->gdr, "%s, %s %u: GDRCopy mappings leaked", c->name, what, n);
}

/* Frees what is kept for reuse, so that each run allocates and registers its memory again. */
static void fault_trim(void)
{
	gdk_reclaim(fault_gpu, fault_dev);
	if (fault_gpu)
		gdk_gpu_trim(fault_gpu);
}

/* Runs one case with one fault and then without, and compares the resources before and after.
 * Repeats this up to twice if the number of descriptors differs: a leak occurs in each run, a
 * descriptor that another thread opened does not. Returns the error of the run with the fault. */
static doca_error_t fault_once(const struct fault_case *c, enum fault kind, unsigned int n,
			       bool later)
{
	struct fault_held before, after;
	unsigned int tries = 0;
	const char *log;
	doca_error_t err;

	do {
		fault_trim();
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
		cr_expect_eq(c->create(), DOCA_SUCCESS, "%s, %s %u: the call without a fault",
			     c->name, fault_kinds[kind].name, n);
		fault_trim();
		after = fault_held_now();
	} while (after.fds != before.fds && ++tries < 3);
	fault_same(c, kind, n, &before, &after);
	if (!err)
		return err;
	cr_expect(strstr(log, " ERR ") || strstr(log, " WARNING "),
		  "%s, %s %u: no error or warning was logged", c->name, fault_kinds[kind].name, n);
	cr_expect((fault_kinds[kind].errors | c->errors[kind]) >> err & 1,
		  "%s, %s %u: unexpected error %s, log:\n%s", c->name, fault_kinds[kind].name, n,
		  doca_error_get_name(err), log);
	return err;
}

static void fault_each(const struct fault_case *c, enum fault kind, bool later)
{
	unsigned int n, failed = 0;
	doca_error_t err = DOCA_SUCCESS;

	printf("%s\n", c->name); /* names the case if it crashes */
	fflush(stdout);
	/* Two runs without faults, in which libmlx5 allocates the UAR pages that it never frees. */
	cr_assert_eq(c->create(), DOCA_SUCCESS, "%s", c->name);
	cr_assert_eq(c->create(), DOCA_SUCCESS, "%s", c->name);
	for (n = 1; n < FAULTS_RUNS_MAX; n++) {
		err = fault_once(c, kind, n, later);
		/* A run may succeed despite a fault only if the library has an alternative
		 * (another kind of UAR, peer memory); create() checked the object in that case. */
		failed += err != DOCA_SUCCESS;
		if (!fault_hit) /* the case makes fewer than n such calls */
			break;
	}
	cr_expect_eq(err, DOCA_SUCCESS);
	cr_expect_lt(n, FAULTS_RUNS_MAX);
	if (later || fault_uncounted || (fault_on_gpu && kind < FAULT_CUDA))
		return;
	cr_expect_geq(failed, c->at_least[kind],
		      "%s: %u of %u faults of kind \"%s\" returned an error", c->name, failed,
		      n - 1, fault_kinds[kind].name);
}

#endif
