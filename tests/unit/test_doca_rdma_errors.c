/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Ends of waits of the RDMA library: errors of operations and receives, aborts by the host, time
 * limits, a remote side that is gone, and full rings, in strong and weak mode. Each call must
 * return within its bound.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <time.h>

#include "../lib/rdma_rig.h"

#define DEPTH	 64u
#define NONE	 DOCA_GPU_RDMA_WRITE_FLAG_NONE
#define NB	 DOCA_GPU_RDMA_RECV_WAIT_FLAG_NB
#define B	 DOCA_GPU_RDMA_RECV_WAIT_FLAG_B
#define SHORT_NS 50000000ull
#define ABORTED	 DOCA_ERROR_CONNECTION_ABORTED

static struct rig r;

TestSuite(doca_rdma_errors, .timeout = 100);

static void pause_ms(unsigned int ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000L }, NULL);
}

static doca_error_t write_strong(uint32_t conn)
{
	return doca_gpu_dev_rdma_write_strong(r.a.dev, conn, rig_remote(&r.b, 0), 0,
					      rig_buf(&r.a, 0), 0, 256, 0, NONE);
}

static doca_error_t write_weak(uint32_t conn, uint32_t position)
{
	return doca_gpu_dev_rdma_write_weak(r.a.dev, conn, rig_remote(&r.b, 0), 0, rig_buf(&r.a, 0),
					    0, 256, 0, NONE, position);
}

static doca_error_t send_strong(uint32_t conn, size_t size)
{
	return doca_gpu_dev_rdma_send_strong(r.a.dev, conn, rig_buf(&r.a, 0), 0, size, 0,
					     DOCA_GPU_RDMA_SEND_FLAG_NONE);
}

static doca_error_t wait_all(void)
{
	uint32_t num;

	return doca_gpu_dev_rdma_wait_all(r.a.dev, &num);
}

/* Receives of b. conn has DEPTH elements. */
static doca_error_t recv(uint32_t flags, uint32_t *num, uint32_t *conn)
{
	return doca_gpu_dev_rdma_recv_wait_all(r.b.recv, flags, num, NULL, conn);
}

/* ---- errors ---- */

Test(doca_rdma_errors, an_operation_without_permission_ends_its_connection_only)
{
	uint32_t num;

	rig_begin(&r, (struct rig_how){ .conns = 2,
					.flags = DOCA_ACCESS_FLAG_LOCAL_READ_WRITE |
						 DOCA_ACCESS_FLAG_RDMA_READ });
	OK(write_strong(1));
	OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 1));
	cr_expect_eq(wait_all(), DOCA_ERROR_IO_FAILED);
	cr_expect_eq(wait_all(), DOCA_ERROR_IO_FAILED, "the error is returned once only");
	cr_expect_eq(write_strong(1), DOCA_ERROR_IO_FAILED);
	cr_expect_eq(write_weak(1, 1), DOCA_ERROR_IO_FAILED);
	cr_expect_eq(doca_gpu_dev_rdma_commit_strong(r.a.dev, 1), DOCA_ERROR_IO_FAILED);
	cr_expect_eq(doca_gpu_dev_rdma_commit_weak(r.a.dev, 1, 1), DOCA_ERROR_IO_FAILED);
	OK(gdk_rdma_read_strong(r.a.dev, 0, rig_remote(&r.b, 0), 0, rig_buf(&r.a, 0), 0, 256));
	OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
	cr_expect_eq(doca_gpu_dev_rdma_wait_all(r.a.dev, &num), DOCA_ERROR_IO_FAILED);
	cr_expect_eq(num, 1, "the commit of connection 0");
	rig_end(&r);
}

/* Connection 0 has ended before operations of connection 1, whose waits come later. */
Test(doca_rdma_errors, waits_for_other_connections_work_after_one_has_ended)
{
	uint32_t num = 77, position, mask;

	rig_begin(&r, (struct rig_how){ .conns = 2 });
	OK(doca_rdma_connection_disconnect(r.a.conn[0]));
	OK(write_strong(1));
	OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 1));
	OK(doca_gpu_dev_rdma_wait_all(r.a.dev, &num));
	cr_expect_eq(num, 1);
	rig_end(&r);

	rig_begin(&r, (struct rig_how){ .conns = 3 });
	OK(send_strong(0, 8)); /* no receive: until the time limit */
	OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
	OK(gdk_rdma_set_wait_limit(r.a.rdma, SHORT_NS));
	cr_assert_eq(doca_gpu_dev_rdma_wait_all(r.a.dev, &num), DOCA_ERROR_TIME_OUT);
	cr_assert_eq(num, 0);
	OK(gdk_rdma_set_wait_limit(r.a.rdma, GDK_WAIT_LIMIT_NS));
	for (uint32_t i = 0; i < 100; i++) {
		const uint32_t conn = 1 + i % 2;

		OK(write_weak(conn, i / 2));
		OK(doca_gpu_dev_rdma_commit_weak(r.a.dev, conn, 1));
		cr_assert_eq(doca_gpu_dev_rdma_wait_all(r.a.dev, &num), DOCA_ERROR_TIME_OUT);
		cr_assert_eq(num, 1, "%u commits in turn %u", num, i);
	}
	cr_expect_eq(doca_gpu_rdma_get_info(r.a.dev, 0, &position, &mask), DOCA_ERROR_TIME_OUT);
	OK(doca_gpu_rdma_get_info(r.a.dev, 1, &position, &mask));
	rig_end(&r);
}

/* 16 connections whose operations do not complete: one limit of 250 ms, not 16. */
Test(doca_rdma_errors, a_time_limit_is_one_for_all_connections)
{
	struct timespec from, to;
	uint32_t num = 77;

	rig_begin(&r, (struct rig_how){ .conns = 16 });
	for (uint32_t c = 0; c < 16; c++) {
		OK(send_strong(c, 8));
		OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, c));
	}
	OK(gdk_rdma_set_wait_limit(r.a.rdma, 5 * SHORT_NS));
	clock_gettime(CLOCK_MONOTONIC, &from);
	cr_expect_eq(doca_gpu_dev_rdma_wait_all(r.a.dev, &num), DOCA_ERROR_TIME_OUT);
	clock_gettime(CLOCK_MONOTONIC, &to);
	cr_expect_eq(num, 0);
	cr_expect_leq(to.tv_sec - from.tv_sec, 2);
	rig_end(&r);
}

Test(doca_rdma_errors, a_message_that_is_too_long_fails_its_receive_only)
{
	uint32_t num = 0, conn[DEPTH] = { 77 };

	rig_begin(&r, (struct rig_how){ .conns = 2 });
	for (uint32_t i = 0; i < 3; i++)
		OK(doca_gpu_dev_rdma_recv_strong(r.b.recv, rig_buf(&r.b, i), 64, 0, 0));
	OK(doca_gpu_dev_rdma_recv_commit_strong(r.b.recv));
	OK(send_strong(0, 64));
	OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
	OK(wait_all());
	OK(send_strong(1, 65));
	OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 1));
	cr_expect_eq(wait_all(), DOCA_ERROR_IO_FAILED);
	/* In the order of the posts: the good one, the failed one by itself, the rest. */
	cr_expect_eq(recv(NB, &num, conn), DOCA_SUCCESS);
	cr_expect(num == 1 && conn[0] == 0, "%u receives, of connection %u", num, conn[0]);
	cr_expect_eq(recv(B, &num, conn), DOCA_ERROR_IO_FAILED);
	cr_expect(num == 1 && conn[0] == 1, "%u receives, of connection %u", num, conn[0]);
	OK(send_strong(0, 64));
	OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
	cr_expect_eq(recv(B, &num, conn), DOCA_SUCCESS);
	cr_expect(num == 1 && conn[0] == 0, "%u receives, of connection %u", num, conn[0]);
	/* Connection 1 of the receiver cannot send any more, either. */
	cr_expect_eq(doca_gpu_dev_rdma_send_strong(r.b.dev, 1, rig_buf(&r.b, 0), 0, 8, 0, 0),
		     DOCA_ERROR_IO_FAILED);
	rig_end(&r);
}

Test(doca_rdma_errors, receives_return_an_error_if_all_connections_have_ended)
{
	uint32_t num = 77, conn[DEPTH];

	rig_begin(&r, (struct rig_how){ .conns = 2 });
	for (uint32_t i = 0; i < 3; i++)
		OK(doca_gpu_dev_rdma_recv_strong(r.b.recv, NULL, 0, 0, 0));
	OK(doca_gpu_dev_rdma_recv_commit_strong(r.b.recv));
	for (uint32_t c = 0; c < 2; c++) {
		OK(send_strong(c, 1));
		OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, c));
		cr_expect_eq(recv(B, &num, conn), DOCA_ERROR_IO_FAILED);
		cr_expect(num == 1 && conn[0] == c);
	}
	cr_expect_eq(recv(NB, &num, conn), DOCA_ERROR_IO_FAILED);
	cr_expect_eq(num, 0);
	cr_expect_eq(recv(B, &num, conn), DOCA_ERROR_IO_FAILED);
	cr_expect_eq(num, 0);
	rig_end(&r);
}

/* ---- aborts and time limits ---- */

/* What a thread waits for. Each returns the status of the call that ended the wait. */
static doca_error_t wait_for_commit(void)
{
	doca_error_t err = send_strong(0, 8); /* the remote side posts no receive */

	if (!err)
		err = doca_gpu_dev_rdma_commit_strong(r.a.dev, 0);
	return err ? err : wait_all();
}

static doca_error_t wait_for_receive(void)
{
	uint32_t num, conn[DEPTH];
	doca_error_t err = doca_gpu_dev_rdma_recv_strong(r.a.recv, NULL, 0, 0, 0);

	if (!err)
		err = doca_gpu_dev_rdma_recv_commit_strong(r.a.recv);
	return err ? err : doca_gpu_dev_rdma_recv_wait_all(r.a.recv, B, &num, NULL, conn);
}

static doca_error_t fill_strong_ring(void)
{
	doca_error_t err = DOCA_SUCCESS;

	for (uint32_t i = 0; i < 3 * DEPTH && !err; i++)
		err = send_strong(0, 8);
	return err;
}

static doca_error_t fill_weak_ring(void)
{
	doca_error_t err = DOCA_SUCCESS;

	for (uint32_t i = 0; i < 3 * DEPTH && !err; i++) {
		err = gdk_rdma_send_weak(r.a.dev, 0, gdk_rdma_addr(rig_buf(&r.a, 0), 0), 8, 0, 0,
					 i);
		if (!err)
			err = doca_gpu_dev_rdma_commit_weak(r.a.dev, 0, 1);
	}
	return err;
}

static doca_error_t (*const waits[])(void) = { wait_for_commit, wait_for_receive, fill_strong_ring,
					       fill_weak_ring };

static void *run(void *arg)
{
	doca_error_t (*const *wait)(void) = arg;

	return (void *)(uintptr_t)(*wait)();
}

Test(doca_rdma_errors, an_abort_ends_each_wait)
{
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		pthread_t thread;
		void *err;

		rig_begin(&r, (struct rig_how){ .conns = 1 });
		cr_assert_eq(pthread_create(&thread, NULL, run, (void *)(uintptr_t)&waits[i]), 0);
		pause_ms(30);
		OK(gdk_rdma_abort(r.a.rdma));
		pthread_join(thread, &err);
		cr_expect_eq((uintptr_t)err, ABORTED, "wait %zu returned %s", i,
			     doca_error_get_name((doca_error_t)(uintptr_t)err));
		cr_expect_eq(send_strong(0, 8), ABORTED);
		cr_expect_eq(doca_gpu_dev_rdma_recv_strong(r.a.recv, NULL, 0, 0, 0), ABORTED);
		rig_end(&r);
	}
}

Test(doca_rdma_errors, a_disconnection_ends_waits_of_the_connection)
{
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		pthread_t thread;
		void *err;

		rig_begin(&r, (struct rig_how){ .conns = 1 });
		cr_assert_eq(pthread_create(&thread, NULL, run, (void *)(uintptr_t)&waits[i]), 0);
		pause_ms(30);
		OK(doca_rdma_connection_disconnect(r.a.conn[0]));
		pthread_join(thread, &err);
		cr_expect((doca_error_t)(uintptr_t)err == ABORTED ||
				  (doca_error_t)(uintptr_t)err == DOCA_ERROR_IO_FAILED,
			  "wait %zu returned %s", i,
			  doca_error_get_name((doca_error_t)(uintptr_t)err));
		rig_end(&r);
	}
}

Test(doca_rdma_errors, the_time_limit_ends_each_wait)
{
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		doca_error_t err;

		rig_begin(&r, (struct rig_how){ .conns = 1 });
		OK(gdk_rdma_set_wait_limit(r.a.rdma, SHORT_NS));
		err = waits[i]();
		cr_expect_eq(err, DOCA_ERROR_TIME_OUT, "wait %zu returned %s", i,
			     doca_error_get_name(err));
		rig_end(&r);
	}
}

Test(doca_rdma_errors, a_time_limit_does_not_end_the_receive_queue)
{
	uint32_t num = 77, conn[DEPTH];

	rig_begin(&r, (struct rig_how){ .conns = 1 });
	OK(gdk_rdma_set_wait_limit(r.b.rdma, SHORT_NS));
	for (uint32_t i = 0; i < 2; i++)
		OK(doca_gpu_dev_rdma_recv_strong(r.b.recv, rig_buf(&r.b, i), 256, 0, 0));
	OK(doca_gpu_dev_rdma_recv_commit_strong(r.b.recv));
	OK(send_strong(0, 8));
	OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
	OK(wait_all());
	cr_expect_eq(recv(B, &num, conn), DOCA_ERROR_TIME_OUT);
	cr_expect_eq(num, 1, "what is complete is returned");
	OK(send_strong(0, 8));
	OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
	OK(recv(B, &num, conn));
	cr_expect_eq(num, 1);
	rig_end(&r);
}

Test(doca_rdma_errors, a_commit_that_fails_returns_and_changes_nothing)
{
	rig_begin(&r, (struct rig_how){ .conns = 1 });
	OK(write_weak(0, 0));
	cr_expect_eq(doca_gpu_dev_rdma_commit_weak(r.a.dev, 0, DEPTH + 1),
		     DOCA_ERROR_INVALID_VALUE);
	OK(doca_gpu_dev_rdma_commit_weak(r.a.dev, 0, 1));
	OK(wait_all());
	rig_end(&r);
}

/* ---- a remote side that is gone ---- */

Test(doca_rdma_errors, operations_to_a_peer_that_is_gone_fail)
{
	rig_begin(&r, (struct rig_how){ .conns = 2 });
	OK(doca_rdma_connection_disconnect(r.b.conn[0]));
	OK(doca_rdma_connection_disconnect(r.b.conn[1]));
	OK(gdk_rdma_set_wait_limit(r.a.rdma, 60000000000ull));
	OK(write_weak(1, 0));
	OK(doca_gpu_dev_rdma_commit_weak(r.a.dev, 1, 1));
	cr_expect_eq(fill_strong_ring(), DOCA_ERROR_IO_FAILED);
	cr_expect_eq(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0), DOCA_ERROR_IO_FAILED);
	cr_expect_eq(wait_all(), DOCA_ERROR_IO_FAILED, "connection 1");
	rig_end(&r);
}
