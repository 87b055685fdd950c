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

#define NS_PER_S 1000000000ull

/* ts_format of a queue (mlx5_ifc.h) */
enum { TS_FREE_RUNNING, TS_DEFAULT, TS_REAL_TIME };

uint64_t sn_clock_stamp(struct sn_eng *e, bool real_time)
{
	struct timespec ts;
	uint64_t ns;

	if (!real_time)
		return e->now;
	clock_gettime(CLOCK_REALTIME, &ts);
	ns = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec - (sn_now() - e->now);
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
