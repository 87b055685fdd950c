/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The device clock. The free-running format counts nanoseconds of CLOCK_MONOTONIC, as the clock
 * pages of uverbs_context.c and hca_core_clock state. The real-time format is seconds << 32 | ns.
 * Both are the time at which the engine's current pass (sn_eng_pass) began.
 */
#include <time.h>

#include "eng.h"
#include "eth.h"

#define NS_PER_S  1000000000ull
#define ABSENT_NS 10000000ull /* a pass that starts so late: the NIC thread was absent */

/* The real-time clock was set back if it is this much behind its last value. */
#define STEP_NS (NS_PER_S / 10)

/* ts_format of a queue (mlx5_ifc.h) */
enum { TS_FREE_RUNNING, TS_DEFAULT, TS_REAL_TIME };

void sn_eng_clock(struct sn_eng *e, uint64_t due)
{
	e->now = sn_now();
	if (e->now > due && e->now - due >= ABSENT_NS)
		e->absent += e->now - due;
}

uint64_t sn_awake(const struct sn_eng *e)
{
	return e->now - e->absent;
}

/*
 * Real time at which the current pass began. The thread may be preempted between the two clocks.
 * With CLOCK_REALTIME read last, the result is then too late, but never later than the real time of
 * this call; a result that is too early would show packets as sent before their time. Results never
 * fall, so that a packet is not stamped before the time that let its WAIT end.
 */
static uint64_t real_ns(struct sn_eng *e)
{
	const uint64_t since = sn_now() - e->now;
	struct timespec ts;
	uint64_t ns;

	clock_gettime(CLOCK_REALTIME, &ts);
	ns = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec - since;
	if (ns > e->real_ns || e->real_ns - ns > STEP_NS)
		e->real_ns = ns;
	return e->real_ns;
}

uint64_t sn_clock_stamp(struct sn_eng *e, bool real_time)
{
	uint64_t ns;

	if (!real_time)
		return e->now;
	ns = real_ns(e);
	return (ns / NS_PER_S) << 32 | ns % NS_PER_S;
}

void sn_clock_publish(const struct sn_eng *e)
{
	const struct sn_clock *c;

	for (c = e->dev->clocks; c; c = c->next)
		__atomic_store_n(c->time, htobe64(e->now), __ATOMIC_RELAXED);
}

bool sn_clock_real(const struct sn_dev *dev, const struct sn_qp *qp)
{
	if (qp->ts_format == TS_DEFAULT)
		return dev->cfg.ts_format != SN_TS_FREE;
	return qp->ts_format == TS_REAL_TIME;
}
