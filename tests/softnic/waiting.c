/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What the NIC thread does between passes: spins for a moment after activity,
 * then sleeps in poll on the socket and on a wake-up file, for a short time while
 * a queue pair can send (registers do not wake anybody), longer otherwise,
 * without end when there is nothing to serve.
 *
 * Where cores are short (fewer than four) a thread that spins stands in the way
 * of those it serves: it sleeps after 15 us, and after 3 us when it exchanges
 * packets with another NIC, whose thread needs a core too. On a virtual machine of two cores a
 * timed sleep costs 20 us of processor time and lasts 55 us or more, a wake-up by
 * a packet a tenth of that; ibv_rc_pingpong there, others working too: 190 us an
 * iteration polled and 170 with events at best, 700 and 440 in the middle. With
 * 15 us of spinning and naps of 3 us it was 720 and 260, 1550 and 550.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "eng.h"

#define SPIN_NS		50000ull
#define SLEEP_ACTIVE_NS 50000
#define SLEEP_IDLE_NS	2000000
#define SLICE_NS	100000ull
#define GIVE_WAY_NS	200000ull
#define FEW_CORES	4
/* where cores are short */
#define SPIN_FEW_NS	   15000ull
#define SPIN_WIRE_NS	   3000ull    /* packets came: another NIC's thread wants a core too */
#define WIRE_NS		   1000000ull /* for so long after the last of them */
#define NAP_FEW_NS	   20000
#define LONG_IDLE_NS	   5000000ull
#define SLEEP_LONG_IDLE_NS 250000

static void doze(struct sn_eng *e, long ns)
{
	struct pollfd fds[2] = { { .fd = e->sock, .events = POLLIN },
				 { .fd = e->evfd, .events = POLLIN } };
	struct timespec ts = { 0, ns };
	uint64_t drained;

	if (ppoll(fds, 2, ns < 0 ? NULL : &ts, NULL) <= 0 || !fds[1].revents)
		return;
	/*
	 * Drain before letting go of the flag: a kick between the two finds it set,
	 * writes nothing, and this exchange acquires what that kick is about. The
	 * other way round its write would be drained with the flag left set, and no
	 * later kick would wake anybody.
	 */
	while (read(e->evfd, &drained, sizeof(drained)) < 0 && errno == EINTR)
		;
	__atomic_exchange_n(&e->kicked, 0, __ATOMIC_ACQ_REL);
}

/* Who waits for the lock would never win it from a busy loop. */
static void give_way(struct sn_eng *e)
{
	uint64_t end;

	if (!__atomic_load_n(&e->dev->waiting, __ATOMIC_SEQ_CST))
		return;
	end = sn_now() + GIVE_WAY_NS;
	while (__atomic_load_n(&e->dev->waiting, __ATOMIC_SEQ_CST) && sn_now() < end)
		sched_yield();
}

/*
 * The programs served often spin on every core. Hardware would not wait for
 * them, so ask for a core quickly: higher weight and a short slice, each where
 * the system allows it.
 */
static void raise_priority(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = 48, .nice = -15, .runtime = SLICE_NS };

	prctl(PR_SET_TIMERSLACK, 1000ul);
	if (!syscall(SYS_sched_setattr, 0L, &attr, 0L))
		return;
	attr.nice = 0;
	syscall(SYS_sched_setattr, 0L, &attr, 0L);
}

static long sleep_short_of_cores(const struct sn_eng *e, uint64_t quiet)
{
	bool wire = e->last_arrival && e->now - e->last_arrival < WIRE_NS;

	if (quiet < (wire ? SPIN_WIRE_NS : SPIN_FEW_NS))
		return 0;
	if (quiet < SPIN_NS)
		return NAP_FEW_NS;
	return quiet < LONG_IDLE_NS ? SLEEP_ACTIVE_NS : SLEEP_LONG_IDLE_NS;
}

/* Nanoseconds until the next pass has to come; 0: now, -1: when kicked. */
long sn_wait_time(const struct sn_eng *e)
{
	uint64_t quiet = e->now - e->last_active;
	bool due = e->delayed || e->held || e->local_head || e->ndue;

	if (e->nrts && e->few_cores && !due)
		return sleep_short_of_cores(e, quiet);
	if (e->nrts && quiet < SPIN_NS)
		return 0;
	if (e->nrts || due)
		return SLEEP_ACTIVE_NS;
	return e->nqps || e->ncqs ? SLEEP_IDLE_NS : -1;
}

void sn_wait_setup(struct sn_eng *e)
{
	e->few_cores = sysconf(_SC_NPROCESSORS_ONLN) < FEW_CORES;
	raise_priority();
}

void sn_wait(struct sn_eng *e, long ns, bool any)
{
	give_way(e);
	if (ns) {
		if (e->pcap)
			fflush(e->pcap);
		doze(e, ns);
	} else if (!any && !e->few_cores) {
		sched_yield();
	}
}
