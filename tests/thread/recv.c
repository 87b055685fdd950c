/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Tests receives by several threads that share a queue pair, end to end: each posts receives and
 * waits for its own tickets; threads that offer old slots again at a ticket of their own, as
 * Holoscan does; threads that reserve, mark and submit by hand. One more thread checks that the
 * producer index in the DBREC never falls. At the end an abort must be heard by all that wait.
 */
#include <unistd.h>

#include "../lib/recv_rig.h"

#define THREADS 4u
#define ROUNDS	400u
#define CTA	DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA

enum way { RECV, AGAIN, BY_HAND };

static const struct doca_gpu_dev_verbs_addr nothing;
static struct recv_rig r;
static gdk_mode_t mode;
static enum way way;
static int failed, stop;

static void fail(const char *what, uint64_t a, uint64_t b)
{
	if (!__atomic_exchange_n(&failed, 1, __ATOMIC_RELAXED))
		fprintf(stderr, "mode %d, way %d: %s: %llu, %llu\n", mode, way, what,
			(unsigned long long)a, (unsigned long long)b);
}

static int has_failed(void)
{
	return __atomic_load_n(&failed, __ATOMIC_RELAXED);
}

static struct gdk_how how(void)
{
	return gdk_how(mode, GDK_AUTO, GDK_THREAD, 0);
}

/* Message n carries n: receives complete in the order of their tickets. With AGAIN another thread
 * may already have offered the slot and its CQE again, so that only the status counts. */
static void check(uint64_t ticket, uint64_t at)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint64_t value;
	int rc = gdk_recv_wait(r.b.dev, ticket, nothing, DOCA_GPUNETIO_VERBS_MCST_DISABLED, mode,
			       &cqe);

	value = way == AGAIN ? 0 : *(uint64_t *)(void *)(r.b.buf.mem + at);
	if (rc)
		fail("wait for ticket", ticket, (uint64_t)-rc);
	else if (way != AGAIN && (gdk_cqe_bytes(cqe) != 8 || value != ticket))
		fail("ticket got", ticket, value);
}

static void receive(uint32_t id)
{
	uint64_t ticket, at = id * 64;

	for (uint32_t i = 0; i < ROUNDS && !has_failed(); i++) {
		int rc = gdk_recv(r.b.dev, recv_at(&r.b, at), 64, &ticket, how());

		if (rc)
			fail("recv", (uint64_t)-rc, i);
		else
			check(ticket, at);
	}
}

static void by_hand(uint32_t id)
{
	const uint64_t at = id * 64;
	uint64_t idx;

	for (uint32_t i = 0; i < ROUNDS && !has_failed(); i++) {
		int rc = gdk_rq_reserve(r.b.dev, 1, mode, 0, &idx);

		if (rc) {
			fail("reserve", (uint64_t)-rc, i);
			return;
		}
		gdk_wqe_recv(r.b.dev, gdk_get_rwqe_ptr(r.b.dev, idx), (uintptr_t)r.b.buf.mem + at,
			     gdk_key(r.b.buf.mr->lkey), 64);
		gdk_rq_mark_ready(r.b.dev, idx, idx, mode);
		(void)gdk_rq_submit(r.b.dev, idx + 1, how());
		check(idx, at);
	}
}

/* Slot i of the ring always receives at i * 64. */
static void offer_again(uint32_t id)
{
	const uint64_t depth = r.b.dev->rq_wqe_num;

	for (uint64_t i = id; i < (uint64_t)ROUNDS * THREADS && !has_failed(); i += THREADS) {
		check(i, i % depth * 64);
		if (gdk_rq_submit(r.b.dev, i + depth + 1, how()))
			fail("submit", i, depth);
	}
}

static void *receiver(void *arg)
{
	const uint32_t id = (uint32_t)(uintptr_t)arg;

	if (way == RECV)
		receive(id);
	else if (way == BY_HAND)
		by_hand(id);
	else
		offer_again(id);
	return NULL;
}

/* A message is sent only when its receive is posted, so that none is refused (RNR). */
static void *sender(void *arg)
{
	uint64_t ticket;

	for (uint64_t i = 0; i < (uint64_t)ROUNDS * THREADS && !has_failed(); i++) {
		const size_t at = i % 64 * 8;

		while ((int16_t)(uint16_t)(recv_dbrec(&r.b) - i) <= 0 && !has_failed())
			gdk_host_yield();
		memcpy(r.a.buf.mem + at, &i, sizeof(i));
		if (gdk_send(r.a.dev, recv_at(&r.a, at), 8, &ticket,
			     gdk_how(E2E_EXCL, GDK_AUTO, GDK_THREAD, 0)) ||
		    gdk_wait(r.a.dev, ticket, E2E_EXCL))
			fail("send", i, 0);
	}
	return arg;
}

static void *watch_dbrec(void *arg)
{
	uint16_t last = 0;

	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		const uint16_t now = (uint16_t)recv_dbrec(&r.b);

		if ((int16_t)(uint16_t)(now - last) < 0)
			fail("the producer index fell from, to", last, now);
		last = now;
	}
	return arg;
}

static void prepare_ring(void)
{
	const uint64_t depth = r.b.dev->rq_wqe_num;

	for (uint64_t i = 0; i < depth; i++)
		gdk_wqe_recv(r.b.dev, gdk_get_rwqe_ptr(r.b.dev, i), (uintptr_t)r.b.buf.mem + i * 64,
			     gdk_key(r.b.buf.mr->lkey), 64);
	E2E_REQUIRE(!gdk_rq_submit(r.b.dev, depth, how()));
}

static void *wait_for_abort(void *arg)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	const uint64_t ticket = (uint64_t)ROUNDS * THREADS + (uintptr_t)arg % 2;
	int rc = gdk_recv_wait(r.b.dev, ticket, nothing, DOCA_GPUNETIO_VERBS_MCST_DISABLED, mode,
			       &cqe);

	if (rc != -ECANCELED)
		fail("wait during an abort", (uintptr_t)arg, (uint64_t)-rc);
	return NULL;
}

static void run(gdk_mode_t m, enum way w)
{
	pthread_t t[THREADS], send, watch;
	uint32_t i;

	mode = m;
	way = w;
	stop = 0;
	recv_rig_open(&r, (struct recv_rig_how){ .handler = E2E_DB, .rq_wr = 16 });
	if (way == AGAIN)
		prepare_ring();
	pthread_create(&watch, NULL, watch_dbrec, NULL);
	pthread_create(&send, NULL, sender, NULL);
	for (i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, receiver, (void *)(uintptr_t)i);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	pthread_join(send, NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(watch, NULL);
	for (i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, wait_for_abort, (void *)(uintptr_t)i);
	E2E_REQUIRE(!usleep(20000));
	E2E_REQUIRE(!gdk_verbs_qp_abort(r.b.ex));
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	recv_rig_close(&r);
}

int main(void)
{
	run(E2E_MODE, RECV);
	run(CTA, RECV);
	run(E2E_MODE, AGAIN);
	run(CTA, AGAIN);
	run(E2E_MODE, BY_HAND);
	run(CTA, BY_HAND);
	return failed;
}
