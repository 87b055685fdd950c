/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The debug build of the RDMA library: weak writers that overrun the ring, write a position twice
 * or leave one out are detected. A line names the position, and the connection ends.
 */
#define GDK_DEBUG
static void print(const char *text);
#define GDK_DEBUG_PRINT(text) print(text)

#include <criterion/criterion.h>

#include "../lib/rdma_rig.h"

#define DEPTH 64u

static struct rig r;
static char printed[4096];

static void print(const char *text)
{
	strncat(printed, text, sizeof(printed) - strlen(printed) - 1);
}

static void open_rig(void)
{
	rig_begin(&r, (struct rig_how){ .conns = 1 });
}

static void close_rig(void)
{
	rig_end(&r);
}

TestSuite(doca_rdma_debug, .init = open_rig, .fini = close_rig, .timeout = 60);

static doca_error_t write_weak(uint32_t position)
{
	return doca_gpu_dev_rdma_write_weak(r.a.dev, 0, rig_remote(&r.b, 0), 0, rig_buf(&r.a, 0), 0,
					    8, 0, DOCA_GPU_RDMA_WRITE_FLAG_NONE, position);
}

static void expect_end(const char *text)
{
	uint32_t num;

	cr_expect(strstr(printed, text), "\"%s\" was not printed: %s", text, printed);
	cr_expect_eq(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(write_weak(0), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_dev_rdma_wait_all(r.a.dev, &num), DOCA_SUCCESS);
}

/* Laps with each mask that callers use are no overrun. */
static void run_laps(void)
{
	static const uint32_t masks[] = { UINT32_MAX, 0xffff, DEPTH - 1 };
	uint32_t end = 0, num;

	for (uint32_t turn = 0; turn < 2100; turn++, end += 32) {
		for (uint32_t i = 32; i-- > 0;)
			OK(write_weak((end + i) & masks[turn % 3]));
		OK(doca_gpu_dev_rdma_commit_weak(r.a.dev, 0, 32));
	}
	OK(doca_gpu_dev_rdma_wait_all(r.a.dev, &num));
	cr_expect_eq(num, 2100);
	cr_expect_str_eq(printed, "");
}

Test(doca_rdma_debug, positions_of_any_mask_are_accepted_and_an_overrun_is_not)
{
	run_laps();
	/* 67200 operations are committed. */
	OK(write_weak(67200));
	cr_expect_eq(write_weak(67200 + DEPTH), DOCA_ERROR_INVALID_VALUE);
	expect_end("position 67264 is not among the next free ones (commits end at 67200");
}

Test(doca_rdma_debug, a_position_that_is_committed_already_is_refused)
{
	run_laps();
	cr_expect_eq(write_weak(67199), DOCA_ERROR_INVALID_VALUE);
	expect_end("position 67199 is not among");
}

Test(doca_rdma_debug, a_position_that_is_written_twice_is_refused)
{
	OK(write_weak(0));
	OK(write_weak(1));
	cr_expect_eq(write_weak(1), DOCA_ERROR_INVALID_VALUE);
	expect_end("position 1 was written already");
}

Test(doca_rdma_debug, a_position_that_is_left_out_is_refused_by_the_commit)
{
	run_laps();
	OK(write_weak(67200));
	OK(write_weak(67202));
	cr_expect_eq(doca_gpu_dev_rdma_commit_weak(r.a.dev, 0, 3), DOCA_ERROR_INVALID_VALUE);
	cr_expect(strstr(printed, "WQE 67201: wqe_index"), "%s", printed);
}

Test(doca_rdma_debug, receives_that_overrun_are_refused)
{
	for (uint32_t i = 0; i < 3; i++)
		OK(doca_gpu_dev_rdma_recv_weak(r.b.recv, NULL, 0, 0, 0, i));
	cr_expect_eq(doca_gpu_dev_rdma_recv_weak(r.b.recv, NULL, 0, 0, 0, DEPTH),
		     DOCA_ERROR_INVALID_VALUE);
	cr_expect(strstr(printed, "position 64 is not among"), "%s", printed);
	cr_expect_eq(doca_gpu_dev_rdma_recv_commit_weak(r.b.recv, 3), DOCA_ERROR_INVALID_VALUE);
}
