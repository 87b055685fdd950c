/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The memory orders of the CPU proxy. A missing acquire or release has no effect on x86-64, and
 * the stores of WQEs are atomic, so ThreadSanitizer does not report it either. This test compiles
 * the proxy's step and scan with functions that record each access and its order.
 */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdint.h>

enum kind { LOAD, STORE, ADD, BARRIER };

static struct access {
	enum kind kind;
	const volatile void *at;
	int order;
} trace[64];
static unsigned int accesses;

static void note(enum kind kind, const volatile void *at, int order)
{
	if (accesses < sizeof(trace) / sizeof(trace[0]))
		trace[accesses++] = (struct access){ kind, at, order };
}

#include "doorbell/cpu_proxy.h"

#define __atomic_load_n(p, order)     (note(LOAD, p, order), __atomic_load_n(p, order))
#define __atomic_store_n(p, v, order) (note(STORE, p, order), __atomic_store_n(p, v, order))
#undef atomic_load_explicit
#define atomic_load_explicit(p, order) (note(LOAD, p, order), __atomic_load_n(p, order))
#undef atomic_fetch_add_explicit
#define atomic_fetch_add_explicit(p, v, order) \
	(note(ADD, p, order), __atomic_fetch_add((unsigned int *)(p), v, order))
#if defined(__x86_64__)
#define __builtin_ia32_sfence() (note(BARRIER, NULL, 0), __builtin_ia32_sfence())
#endif

#include "../../doorbell/cpu_proxy.c"
#include "../../doorbell/cpu_proxy_scan.c"
#include "../../doorbell/cpu_proxy_step.c"

static uint64_t line[8] __attribute__((aligned(64))), reg;
static uint32_t dbrec;
static struct gdk_db_qp qp;

static void open_qp(void)
{
	qp.pub.cpu_db = line;
	qp.pub.sq_db = &reg;
	qp.dbrec_cpu = &dbrec;
	qp.proxy.page = (void *)line; /* not NULL */
	pthread_spin_init(&qp.proxy.step_lock, PTHREAD_PROCESS_PRIVATE);
}

/* Index of the first access of this kind at or after `from`. */
static unsigned int find(enum kind kind, const volatile void *at, unsigned int from)
{
	while (from < accesses && (trace[from].kind != kind || trace[from].at != at))
		from++;
	cr_assert_lt(from, accesses, "access %d of %p is missing", (int)kind, (const void *)at);
	return from;
}

/* Counter, acquire; DBREC, release; a barrier before and after the register. */
Test(proxy_order, step_orders_counter_dbrec_and_register)
{
	unsigned int load, record, bell;

	open_qp();
	line[0] = 5;
	cr_assert_eq(gdk_proxy_step(&qp), GDK_STEP_RANG);
	load = find(LOAD, line, find(LOAD, line, 0) + 1); /* the first only checks for work */
	cr_expect_eq(trace[load].order, __ATOMIC_ACQUIRE);
	record = find(STORE, &dbrec, load);
	cr_expect_eq(trace[record].order, __ATOMIC_RELEASE);
	bell = find(STORE, &reg, record);
#if defined(__x86_64__)
	cr_expect_lt(find(BARRIER, NULL, record), bell, "no barrier before the register");
	cr_expect_eq(find(BARRIER, NULL, bell), bell + 1, "no barrier after the register");
#endif
	cr_expect_eq(be32toh(dbrec), 5);
}

/* A counter that falls is stored before the count of falls, and a pass loads this count first. */
Test(proxy_order, pass_sees_a_counter_that_has_fallen)
{
	struct gdk_scan scan = { 0 };
	unsigned int store, add;

	open_qp();
	cr_assert_eq(gdk_scan_add(&scan, &qp), DOCA_SUCCESS);
	line[0] = 9;
	reset(&qp.pub);
	store = find(STORE, line, 0);
	add = find(ADD, &gdk_counter_falls, store);
	cr_expect_eq(trace[add].order, __ATOMIC_RELEASE);
	accesses = 0;
	line[0] = 3;
	cr_assert_eq(gdk_scan_pass(&scan), 1);
	cr_expect_eq(trace[0].at, &gdk_counter_falls);
	cr_expect_eq(trace[0].order, __ATOMIC_ACQUIRE);
	gdk_scan_free(&scan);
}
