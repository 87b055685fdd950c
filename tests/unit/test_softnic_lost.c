/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A doorbell of a DBREC-less QP is lost: another QP's doorbell overwrote it. The NIC finds
 * the WQE in the ring, and executes it when no thread of the process can be writing it. A
 * thread that has nothing to do with the QP must not delay this for ever. The clock is
 * virtual.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "../lib/capture.h"
#include "../lib/freeze.h"
#include "engine_fake.h"

TestSuite(softnic_lost, .timeout = 60);

#define MS	  1000000ull
#define SETTLE_MS 30   /* more than the time that the WQE must not change */
#define LIMIT_MS  8000 /* for a thread that gets no core */

static struct fake_qp a, b;
static struct bystander bystander;
static uint64_t now = 1000 * MS;

static uint64_t virtual_clock(void)
{
	return now;
}

static void setup(void)
{
	char ip[32];

	fake_ip(ip, 1);
	sn_clock = virtual_clock;
	fake_open_still(ip);
	fake_qp_init(&a, 0x101, 1);
	fake_qp_init(&b, 0x102, 1);
	a.qp.no_dbr = b.qp.no_dbr = true;
	fake_connect(&a, ip, 0x102);
	fake_connect(&b, ip, 0x101);
}

static void freeze_bystander(void)
{
	if (!bystander_freeze(&bystander))
		cr_skip_test("this machine does not allow tracing");
}

static void pass_for(uint64_t ns)
{
	now += ns;
	sn_dev->eng->now = now;
	sn_eng_pass(sn_dev->eng);
}

static bool is_done(struct fake_qp *q)
{
	uint8_t cqe[64];

	return fake_poll(q, false, cqe, 0);
}

/* Writes a WQE to each QP, of which only b rings. */
static void lose_a_doorbell(void)
{
	struct fake_wqe nop = { .opcode = SN_OP_NOP, .fm = 0x08 };

	fake_write_wqe(&a, &nop);
	fake_post(&b, &nop);
	pass_for(1);
	cr_assert(is_done(&b));
}

static bool is_running(int tid)
{
	char path[64], text[512], *end;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	end = strrchr(text, ')');
	return end && end[2] == 'R';
}

/*
 * Returns once no other thread runs, `except` apart. Criterion's thread, which runs after each
 * assertion, and one on its way to sleep need real time, but the clock is virtual.
 */
static void await_others(int except)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *d;
	int tid;

	cr_assert(dir);
	while ((d = readdir(dir))) {
		tid = atoi(d->d_name);
		while (tid && tid != gettid() && tid != except && is_running(tid))
			sched_yield();
	}
	closedir(dir);
}

/* Returns the ms until the WQE of a is executed, at most `limit`. */
static unsigned wait_ms(unsigned limit)
{
	unsigned ms;

	await_others(0);
	for (ms = 0; ms < limit && !is_done(&a); ms++)
		pass_for(MS);
	return ms;
}

static void expect_losses(uint64_t recovered, uint64_t forced)
{
	cr_assert_eq(sn_dev->stats.db_recovered, recovered);
	cr_assert_eq(a.qp.stats.db_recovered, recovered);
	cr_assert_eq(sn_dev->stats.db_forced, forced);
	cr_assert_eq(a.qp.stats.db_forced, forced);
}

Test(softnic_lost, doorbell_is_recovered_after_the_settling_time, .init = setup)
{
	unsigned ms;

	lose_a_doorbell();
	ms = wait_ms(100);
	cr_assert(ms >= 20 && ms <= SETTLE_MS, "recovered after %u ms", ms);
	expect_losses(1, 0);
}

/* The thread runs, and rings when lossless.h finds the register free. */
Test(softnic_lost, doorbell_of_a_thread_that_waits_for_the_register_is_not_recovered, .init = setup)
{
	uint64_t *waiting = (uint64_t *)(void *)(a.uar + 0x640);

	__atomic_store_n(waiting, 1, __ATOMIC_RELEASE);
	lose_a_doorbell();
	cr_assert_eq(wait_ms(1000), 1000);
	fake_ring(&a);
	__atomic_store_n(waiting, 0, __ATOMIC_RELEASE);
	cr_assert_leq(wait_ms(1000), 1);
	expect_losses(0, 0);
}

/* A thread may get no core between WQE and doorbell. */
Test(softnic_lost, late_doorbell_is_not_counted, .init = setup)
{
	lose_a_doorbell();
	cr_assert_leq(wait_ms(100), SETTLE_MS);
	expect_losses(1, 0);
	fake_ring(&a);
	pass_for(MS);
	expect_losses(0, 0);
	lose_a_doorbell();
	cr_assert_leq(wait_ms(100), SETTLE_MS);
	lose_a_doorbell(); /* two of two are lost, and the last doorbell covers both */
	fake_ring(&a);
	pass_for(MS);
	cr_assert(is_done(&a));
	expect_losses(1, 0);
	cr_assert_eq(sn_dev->stats.bad_doorbell, 0);
}

/* With lossless.h no doorbell is lost. One that comes late may cover later WQEs, too, and those of
 * several recoveries. */
Test(softnic_lost, late_doorbells_of_a_lossless_register_are_not_counted, .init = setup)
{
	struct fake_wqe nop = { .opcode = SN_OP_NOP, .fm = 0x08 };
	unsigned i;

	__atomic_store_n((uint64_t *)(void *)(a.uar + 0x650), 1, __ATOMIC_RELAXED);
	for (i = 1; i <= 2; i++) {
		lose_a_doorbell();
		cr_assert_leq(wait_ms(100), SETTLE_MS);
		expect_losses(i, 0);
	}
	fake_post(&a, &nop);
	pass_for(MS);
	cr_assert(is_done(&a));
	expect_losses(0, 0);
	fake_post(&a, &nop);
	pass_for(MS);
	expect_losses(0, 0);
}

Test(softnic_lost, thread_without_a_core_delays_a_recovery_for_a_limited_time, .init = setup)
{
	const char *text;
	char name[64];
	unsigned ms;

	freeze_bystander();
	snprintf(name, sizeof(name), "thread %d (bystander), state t, ran only 0 ns",
		 atomic_load(&bystander.tid));
	lose_a_doorbell();
	capture_begin();
	cr_expect_eq(wait_ms(4900), 4900);
	cr_expect_eq(strlen(capture_end()), 0, "%s", capture_text);
	capture_begin();
	cr_expect_eq(wait_ms(300), 300);
	text = capture_end();
	cr_assert(strstr(text, "QP 0x101: cannot recover") && strstr(text, name), "%s", text);
	capture_begin();
	ms = 5200 + wait_ms(LIMIT_MS);
	text = capture_end();
	cr_assert(strstr(text, "QP 0x101: recovering") && strstr(text, name), "%s", text);
	cr_assert(ms >= LIMIT_MS && ms <= LIMIT_MS + 2 * SETTLE_MS, "after %u ms", ms);
	expect_losses(1, 1);
	bystander_thaw(&bystander);
}

Test(softnic_lost, thread_without_a_core_delays_only_one_recovery, .init = setup)
{
	freeze_bystander();
	lose_a_doorbell();
	cr_assert_lt(wait_ms(2 * LIMIT_MS), 2 * LIMIT_MS);
	lose_a_doorbell();
	cr_assert_leq(wait_ms(LIMIT_MS), 2 * SETTLE_MS);
	expect_losses(2, 2);
	bystander_thaw(&bystander);
}

/* A thread that runs again may begin a WQE, so the next recovery waits for it. */
Test(softnic_lost, thread_that_runs_again_is_waited_for, .init = setup)
{
	const struct timespec nap = { .tv_nsec = (long)MS };

	freeze_bystander();
	lose_a_doorbell();
	cr_assert_lt(wait_ms(2 * LIMIT_MS), 2 * LIMIT_MS);
	freeze_end(&bystander.freeze);
	lose_a_doorbell();
	while (!is_done(&a)) { /* it has to run in real time, long before the virtual limit */
		pass_for(MS / 10);
		nanosleep(&nap, NULL);
	}
	expect_losses(2, 1);
	bystander_end(&bystander);
}

static void *vfork_and_wait(void *arg)
{
	atomic_int *begun = arg;
	char end;

	if (vfork() == 0) {
		atomic_store(begun, 1);
		(void)!read(bystander.freeze.go[0], &end, 1);
		_exit(0);
	}
	return NULL;
}

/* Its parent in vfork() is not asleep for the kernel (state D), but writes no WQE. */
Test(softnic_lost, thread_in_a_system_call_does_not_delay_a_recovery, .init = setup)
{
	atomic_int begun = 0;
	pthread_t thread;

	cr_assert_eq(pipe(bystander.freeze.go), 0);
	cr_assert_eq(pthread_create(&thread, NULL, vfork_and_wait, &begun), 0);
	while (!atomic_load(&begun))
		sched_yield();
	lose_a_doorbell();
	cr_assert_leq(wait_ms(LIMIT_MS), 2 * SETTLE_MS);
	expect_losses(1, 0);
	cr_assert_eq(write(bystander.freeze.go[1], "", 1), 1);
	pthread_join(thread, NULL);
}

/* Threads that passed are not examined again. A QP that asks later does not make the list anew
 * before it is complete; with many QPs it would never be. */
Test(softnic_lost, list_of_threads_is_completed_before_the_next_one)
{
	struct bystander runner = { 0 };
	struct sn_writers w = { 0 };
	bool passed;

	cr_assert_eq(pthread_create(&runner.thread, NULL, bystander_main, &runner), 0);
	while (!atomic_load(&runner.tid))
		sched_yield();
	freeze_bystander();
	await_others(atomic_load(&runner.tid));
	do { /* until the runner has passed; the time of a core is real */
		passed = sn_writers_passed(&w, 1, 10, 11);
		sched_yield();
	} while (!passed && !w.first);
	cr_assert_not(passed);
	cr_assert_eq(w.num, 2);
	cr_assert_not(sn_writers_passed(&w, 2, 20, 21));
	cr_assert_eq(w.first, 1);
	cr_assert_eq(w.noted, 11);
	cr_assert(sn_writers_passed(&w, 1, 10, 11 + LIMIT_MS * MS));
	while (!sn_writers_passed(&w, 2, 20, 12 + LIMIT_MS * MS))
		sched_yield();
	cr_assert_eq(w.noted, 12 + LIMIT_MS * MS);
	sn_writers_free(&w);
	bystander_thaw(&bystander);
	bystander_end(&runner);
}
