/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The NIC thread's waits between passes. After activity it spins for up to SPIN_NS. Then
 * it sleeps in ppoll() on the sockets and on a wake-up file: for a short time while a
 * queue pair can send (a store to a register page wakes no thread), longer otherwise and
 * REST_NS after the last activity, so that the first doorbell then waits for up to
 * SLEEP_IDLE_NS, and without limit if no context is open: the clock page of a context
 * shows the time.
 *
 * On fewer than four cores a spinning NIC thread takes a core from the programs that
 * it serves. There it sleeps after 15 us of spinning, or after 3 us while it exchanges
 * packets with another NIC, whose thread needs a core as well. ibv_rc_pingpong on a busy
 * virtual machine of two cores then needs 190 us per iteration with polling and 170 us
 * with events at best, 700 and 440 us in the median. With 15 us of spinning and sleeps
 * of 3 us instead, it needed 720 and 260 us at best, 1550 and 550 us in the median. A
 * timed sleep costs 20 us of CPU time and lasts at least 55 us; a wake-up by a packet
 * costs a tenth of that.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "eng.h"
#include "eth.h"

#define SPIN_NS		50000ull
#define SLEEP_ACTIVE_NS 50000
#define SLEEP_IDLE_NS	2000000
#define SLICE_NS	100000ull
#define GIVE_WAY_NS	200000ull
#define FEW_CORES	4
/* used on fewer than FEW_CORES cores */
#define SPIN_FEW_NS  15000ull
#define SPIN_WIRE_NS 3000ull /* while packets of another NIC arrive */
/* time after the last packet during which SPIN_WIRE_NS applies */
#define WIRE_NS		   1000000ull
#define NAP_FEW_NS	   20000
#define LONG_IDLE_NS	   5000000ull
#define SLEEP_LONG_IDLE_NS 250000
#define REST_NS		   50000000ull

static void doze(struct sn_eng *e, long ns)
{
	struct pollfd fds[4] = { { .fd = e->sock, .events = POLLIN },
				 { .fd = e->evfd, .events = POLLIN },
				 { .fd = e->eth_fd, .events = POLLIN },
				 { .fd = e->peers.fd, .events = POLLIN } };
	struct timespec ts = { 0, ns };
	uint64_t drained;

	if (ppoll(fds, 4, ns < 0 ? NULL : &ts, NULL) <= 0)
		return;
	if (fds[3].revents)
		e->peers.next = 0;
	if (!fds[1].revents)
		return;
	/*
	 * Read evfd before clearing `kicked`. A kick between the two finds the flag set and
	 * writes nothing; the exchange below acquires what that kick published. Pairs with the
	 * exchange in sn_eng_kick(). In the opposite order evfd could be drained with the flag
	 * left set, and no later kick would wake this thread.
	 */
	while (read(e->evfd, &drained, sizeof(drained)) < 0 && errno == EINTR)
		;
	__atomic_exchange_n(&e->kicked, 0, __ATOMIC_ACQ_REL);
}

/* Lets threads that wait for the device lock take it. Pairs with sn_dev_lock(), which counts
 * them in `waiting`: without a pause this loop would always take the lock back first. */
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
 * The programs that use the NIC often spin on every core, while a hardware NIC needs no core.
 * Asks the kernel for a higher weight and a short time slice, or for the slice alone if the
 * process may not raise its weight.
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

/* Returns the ns until an Ethernet send queue continues after a WAIT on time, at most `ns`. */
static long limit_to_wait(const struct sn_eng *e, long ns)
{
	const struct sn_qp_eng *q;
	uint64_t due;

	if (!e->eth || !ns)
		return ns;
	for (q = e->qps; q; q = q->next) {
		due = q->qp->type == SN_QPT_SQ ? sn_eth_sq_due(q) : 0;
		if (due && due <= e->now)
			return 0;
		if (due && (ns < 0 || due - e->now < (uint64_t)ns))
			ns = (long)(due - e->now);
	}
	return ns;
}

static long usual_time(const struct sn_eng *e)
{
	uint64_t quiet = e->now - e->last_active;
	bool due = e->delayed || e->held || e->local_head || e->ndue || sn_eth_busy(e);

	if (e->nrts && !due && quiet >= REST_NS)
		return SLEEP_IDLE_NS;
	if (e->nrts && e->few_cores && !due)
		return sleep_short_of_cores(e, quiet);
	if (e->nrts && quiet < SPIN_NS)
		return 0;
	if (e->nrts || due)
		return SLEEP_ACTIVE_NS;
	return e->nqps || e->ncqs || e->dev->clocks ? SLEEP_IDLE_NS : -1;
}

/* Returns the ns to sleep before the next pass; 0: do not sleep, -1: sleep until woken. */
long sn_wait_time(const struct sn_eng *e)
{
	return limit_to_wait(e, usual_time(e));
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

/* A stalled NIC answers queries: its thread has a processor, so retries of its peers count. */
void sn_wait_stalled(struct sn_eng *e, uint64_t ns)
{
	struct timespec ts = { 0, (long)ns };

	pthread_mutex_lock(&e->dev->lock);
	sn_peers_poll(e);
	sn_peers_answer(e);
	pthread_mutex_unlock(&e->dev->lock);
	nanosleep(&ts, NULL);
}
