/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A proxy service with up to 64 QPs. QPs are created and destroyed while the
 * service rings for the others: all data must arrive, and the service must not
 * touch a QP after its destruction.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "../lib/e2e.h"

#define QPS   64
#define SLICE 256u
#define BYTES (QPS * SLICE)

struct many {
	struct e2e_nic nic;
	struct e2e_buf src, dst;
	struct e2e_qp tx[QPS], rx[QPS];
	doca_gpu_verbs_service_t service;
};

static void join(struct many *f, int i)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };

	e2e_qp_open(&f->nic, &f->tx[i], E2E_PROXY, 16);
	e2e_qp_open(&f->nic, &f->rx[i], E2E_DB, 16);
	cr_assert_eq(e2e_connect(&f->nic, f->tx[i].hl->qp, &f->nic.gid, f->rx[i].qpn, path), 0);
	cr_assert_eq(e2e_connect(&f->nic, f->rx[i].hl->qp, &f->nic.gid, f->tx[i].qpn, path), 0);
	cr_assert_eq(doca_gpu_verbs_service_monitor_qp(f->service, f->tx[i].hl->qp_gverbs),
		     DOCA_SUCCESS);
}

static void leave(struct many *f, int i)
{
	e2e_qp_close(&f->tx[i]);
	e2e_qp_close(&f->rx[i]);
}

static void put_and_wait(struct many *f, int i)
{
	doca_gpu_dev_verbs_ticket_t t;
	size_t off = (size_t)i * SLICE;

	cr_assert_eq(gdk_put(f->tx[i].dev, e2e_addr(f->dst.mem + off, f->dst.mr->rkey),
			     e2e_addr(f->src.mem + off, f->src.mr->lkey), SLICE, &t,
			     gdk_how(E2E_MODE, E2E_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0)),
		     0);
	cr_assert_eq(e2e_wait(&f->tx[i], t), 0, "put of QP %d failed", i);
}

static void many_open(struct many *f)
{
	memset(f, 0, sizeof(*f));
	e2e_open(&f->nic);
	e2e_buf_open(&f->nic, &f->src, BYTES, IBV_ACCESS_LOCAL_WRITE);
	e2e_buf_open(&f->nic, &f->dst, BYTES, E2E_REMOTE);
	cr_assert_eq(doca_gpu_verbs_create_service(&f->service), DOCA_SUCCESS);
}

static void many_close(struct many *f)
{
	e2e_buf_close(&f->src);
	e2e_buf_close(&f->dst);
	e2e_close(&f->nic);
}

static void round_of_puts(struct many *f, uint32_t seed)
{
	for (size_t i = 0; i < BYTES; i++)
		f->src.mem[i] = e2e_pattern(i, seed);
	for (int i = 0; i < QPS; i++)
		put_and_wait(f, i);
	cr_assert_eq(memcmp(f->src.mem, f->dst.mem, BYTES), 0, "data of round %u is wrong", seed);
}

static struct many many;

Test(e2e_service, qps_join_and_leave_while_others_are_rung)
{
	struct many *f = &many;

	many_open(f);
	for (int i = 0; i < QPS; i++)
		join(f, i);
	round_of_puts(f, 1);
	for (uint32_t round = 2; round < 6; round++) {
		for (int i = (int)round % 2; i < QPS; i += 2) {
			leave(f, i);
			put_and_wait(f, i ^ 1); /* QP i ^ 1 still works without QP i */
			join(f, i);
		}
		round_of_puts(f, round);
	}
	for (int i = 0; i < QPS; i++)
		leave(f, i);
	cr_assert_eq(doca_gpu_verbs_destroy_service(f->service), DOCA_SUCCESS);
	many_close(f);
}

/* A thread that puts through QP 0 continuously while other QPs are created and destroyed. */
struct worker {
	struct many *f;
	atomic_bool stop;
	uint64_t puts;
	int rc;
};

static void *keep_putting(void *arg)
{
	struct worker *w = arg;
	doca_gpu_dev_verbs_ticket_t t;
	struct many *f = w->f;

	while (!atomic_load(&w->stop) && !w->rc) {
		w->rc = gdk_put(
			f->tx[0].dev, e2e_addr(f->dst.mem, f->dst.mr->rkey),
			e2e_addr(f->src.mem, f->src.mr->lkey), SLICE, &t,
			gdk_how(E2E_MODE, E2E_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0));
		if (!w->rc)
			w->rc = e2e_wait(&f->tx[0], t);
		w->puts++;
	}
	return NULL;
}

Test(e2e_service, qps_join_and_leave_beside_a_busy_one)
{
	struct many *f = &many;
	struct worker w = { .f = f };
	pthread_t thread;

	many_open(f);
	join(f, 0);
	cr_assert_eq(pthread_create(&thread, NULL, keep_putting, &w), 0);
	for (int round = 0; round < 3; round++) {
		for (int i = 1; i < QPS; i++)
			join(f, i);
		for (int i = 1; i < QPS; i++)
			put_and_wait(f, i);
		for (int i = 1; i < QPS; i++)
			leave(f, i);
	}
	atomic_store(&w.stop, true);
	pthread_join(thread, NULL);
	cr_expect_eq(w.rc, 0);
	cr_expect_gt(w.puts, 0);
	leave(f, 0);
	cr_assert_eq(doca_gpu_verbs_destroy_service(f->service), DOCA_SUCCESS);
	many_close(f);
}

/* A service may be destroyed before its QPs; then another thread can ring for them. */
Test(e2e_service, service_destroyed_before_its_qps)
{
	struct many *f = &many;

	many_open(f);
	for (int i = 0; i < 4; i++)
		join(f, i);
	cr_assert_eq(doca_gpu_verbs_destroy_service(f->service), DOCA_SUCCESS);
	e2e_proxy_begin(&f->tx[2]);
	put_and_wait(f, 2);
	for (int i = 0; i < 4; i++)
		leave(f, i);
	many_close(f);
}
