/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The RDMA library on the software NIC: each operation in strong and weak mode, commits and waits,
 * positions, full rings, receives and the connection indices of their results.
 */
#include <criterion/criterion.h>
#include <endian.h>

#include "../lib/rdma_rig.h"

#define DEPTH	 64u /* of the rig's queues */
#define IMM(v)	 htobe32(v)
#define NONE	 DOCA_GPU_RDMA_WRITE_FLAG_NONE
#define WITH_IMM DOCA_GPU_RDMA_WRITE_FLAG_IMM
#define NB	 DOCA_GPU_RDMA_RECV_WAIT_FLAG_NB
#define B	 DOCA_GPU_RDMA_RECV_WAIT_FLAG_B

static struct rig r;

static void open_one(void)
{
	rig_begin(&r, (struct rig_how){ .conns = 1 });
}

static void close_rig(void)
{
	rig_end(&r);
}

TestSuite(doca_rdma, .init = open_one, .fini = close_rig, .timeout = 60);

static void fill(uint8_t *p, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 31 + seed * 7 + (i >> 8));
}

static void expect_commits(struct rig_side *s, uint32_t want)
{
	uint32_t num = 77;

	OK(doca_gpu_dev_rdma_wait_all(s->dev, &num));
	cr_expect_eq(num, want, "%u commits (expected %u)", num, want);
}

/* Waits for all receives of b, and checks their number, immediate values and connections. */
static void expect_received(uint32_t want, const uint32_t *imm, const uint32_t *conn)
{
	uint32_t num = 77, got_imm[DEPTH], got_conn[DEPTH];

	OK(doca_gpu_dev_rdma_recv_wait_all(r.b.recv, B, &num, got_imm, got_conn));
	cr_assert_eq(num, want, "%u receives (expected %u)", num, want);
	for (uint32_t i = 0; i < num; i++) {
		cr_expect_eq(got_imm[i], imm[i], "receive %u: immediate value 0x%x", i, got_imm[i]);
		cr_expect_eq(got_conn[i], conn ? conn[i] : 0, "receive %u: connection %u", i,
			     got_conn[i]);
	}
}

/* Position p of the tests: 16 bits, as older callers pass it. */
static uint32_t low16(uint64_t p)
{
	return (uint32_t)p & 0xffff;
}

/* ---- operations ---- */

Test(doca_rdma, strong_writes_arrive_once_they_are_committed)
{
	for (uint32_t i = 0; i < 8; i++) {
		fill(r.a.m.mem + 256 * i, 256, i);
		OK(doca_gpu_dev_rdma_write_strong(r.a.dev, 0, rig_remote(&r.b, i), 0,
						  rig_buf(&r.a, i), 0, 256, 0, NONE));
	}
	OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
	expect_commits(&r.a, 1);
	cr_expect_arr_eq(r.a.m.mem, r.b.m.mem, 8 * 256);
	expect_commits(&r.a, 0);
}

Test(doca_rdma, nothing_is_executed_before_the_commit)
{
	const struct gdk_qp_state *st =
		gdk_state_of_qp(gdk_rdma_conn_qp(gdk_rdma_conn(r.a.dev, 0)));

	for (uint32_t i = 0; i < 4; i++)
		OK(doca_gpu_dev_rdma_write_strong(r.a.dev, 0, rig_remote(&r.b, i), 0,
						  rig_buf(&r.a, i), 0, 256, 0, NONE));
	cr_expect_eq(st->doorbells, 0);
	expect_commits(&r.a, 0);
	OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
	OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
	expect_commits(&r.a, 2);
	cr_expect_eq(st->doorbells, 1);
	cr_expect_eq(st->completed, 4);
}

Test(doca_rdma, the_handler_is_the_one_that_was_set)
{
	static const enum doca_gpu_dev_verbs_nic_handler handlers[] = {
		DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY,
		DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB,
	};

	for (int i = 0; i < 2; i++) {
		rig_end(&r);
		rig_begin(&r, (struct rig_how){ .handler = handlers[i] });
		fill(r.a.m.mem, 256, 1);
		OK(doca_gpu_dev_rdma_write_strong(r.a.dev, 0, rig_remote(&r.b, 0), 0,
						  rig_buf(&r.a, 0), 0, 256, 0, NONE));
		OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
		expect_commits(&r.a, 1);
		cr_expect_arr_eq(r.a.m.mem, r.b.m.mem, 256);
		cr_expect_eq(gdk_rdma_conn_qp(gdk_rdma_conn(r.a.dev, 0))->nic_handler, handlers[i]);
	}
}

Test(doca_rdma, offsets_select_parts_of_buffers)
{
	fill(r.a.m.mem, 256, 1);
	OK(doca_gpu_dev_rdma_write_strong(r.a.dev, 0, rig_remote(&r.b, 1), 16, rig_buf(&r.a, 0), 8,
					  100, 0, NONE));
	OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
	expect_commits(&r.a, 1);
	cr_expect_arr_eq(r.b.m.mem + 256 + 16, r.a.m.mem + 8, 100);
	cr_expect_eq(r.b.m.mem[256 + 15], 0);
	cr_expect_eq(r.b.m.mem[256 + 116], 0);
}

Test(doca_rdma, inline_writes_of_each_size)
{
	uint8_t data[28];

	for (uint32_t size = 1; size <= 28; size++) {
		fill(data, size, size);
		if (size & 1)
			OK(doca_gpu_dev_rdma_write_inline_strong(r.a.dev, 0, rig_remote(&r.b, size),
								 3, data, size, 0, NONE));
		else
			OK(doca_gpu_dev_rdma_write_inline_weak(r.a.dev, 0, rig_remote(&r.b, size),
							       3, data, size, 0, NONE, size - 1));
		memset(data, 0xee, sizeof(data)); /* the WQE has the data */
		OK(size & 1 ? doca_gpu_dev_rdma_commit_strong(r.a.dev, 0)
			    : doca_gpu_dev_rdma_commit_weak(r.a.dev, 0, 1));
		expect_commits(&r.a, 1);
		fill(data, size, size);
		cr_expect_arr_eq(r.b.m.mem + 256 * size + 3, data, size, "%u bytes", size);
		cr_expect_eq(r.b.m.mem[256 * size + 3 + size], 0, "%u bytes", size);
	}
}

Test(doca_rdma, reads_of_both_modes)
{
	fill(r.b.m.mem, 512, 3);
	OK(gdk_rdma_read_strong(r.a.dev, 0, rig_remote(&r.b, 0), 0, rig_buf(&r.a, 2), 0, 256));
	OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
	/* The flags may have any value, because callers pass other values there. */
	OK(doca_gpu_dev_rdma_read_weak(r.a.dev, 0, rig_remote(&r.b, 1), 0, rig_buf(&r.a, 3), 0, 256,
				       17, 1));
	OK(doca_gpu_dev_rdma_commit_weak(r.a.dev, 0, 1));
	expect_commits(&r.a, 2);
	cr_expect_arr_eq(r.a.m.mem + 512, r.b.m.mem, 512);
}

Test(doca_rdma, sends_and_immediate_values_reach_receives)
{
	const uint32_t imm[] = { IMM(0x01020304), IMM(0xfffffffe), 0, IMM(7), IMM(8) };
	const uint8_t data[4] = { 1, 2, 3, 4 };

	for (uint32_t i = 0; i < 5; i++)
		OK(doca_gpu_dev_rdma_recv_strong(r.b.recv, i < 3 ? rig_buf(&r.b, 8 + i) : NULL, 256,
						 0, 0));
	OK(doca_gpu_dev_rdma_recv_commit_strong(r.b.recv));
	for (uint32_t i = 0; i < 4; i++)
		fill(r.a.m.mem + 256 * i, 256, 40 + i);
	OK(doca_gpu_dev_rdma_send_strong(r.a.dev, 0, rig_buf(&r.a, 0), 0, 256, imm[0],
					 DOCA_GPU_RDMA_SEND_FLAG_IMM));
	OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
	OK(gdk_rdma_send_weak(r.a.dev, 0, gdk_rdma_addr(rig_buf(&r.a, 1), 0), 100, imm[1],
			      DOCA_GPU_RDMA_SEND_FLAG_IMM, 1));
	OK(gdk_rdma_send_weak(r.a.dev, 0, gdk_rdma_addr(rig_buf(&r.a, 2), 0), 0, 99,
			      DOCA_GPU_RDMA_SEND_FLAG_NONE, 2));
	OK(doca_gpu_dev_rdma_write_weak(r.a.dev, 0, rig_remote(&r.b, 0), 0, rig_buf(&r.a, 3), 0,
					256, imm[3], WITH_IMM, 3));
	OK(doca_gpu_dev_rdma_write_inline_weak(r.a.dev, 0, rig_remote(&r.b, 1), 0, data, 4, imm[4],
					       WITH_IMM, 4));
	OK(doca_gpu_dev_rdma_commit_weak(r.a.dev, 0, 4));
	expect_received(5, imm, NULL);
	expect_commits(&r.a, 2);
	cr_expect_arr_eq(r.b.m.mem + 8 * 256, r.a.m.mem, 256);
	cr_expect_arr_eq(r.b.m.mem + 9 * 256, r.a.m.mem + 256, 100);
	cr_expect_eq(r.b.m.mem[9 * 256 + 100], 0);
	cr_expect_arr_eq(r.b.m.mem, r.a.m.mem + 3 * 256, 256);
	cr_expect_arr_eq(r.b.m.mem + 256, data, 4);
}

Test(doca_rdma, wrong_arguments_post_nothing)
{
	struct doca_gpu_buf *buf = rig_buf(&r.a, 0), *to = rig_remote(&r.b, 0);
	uint32_t position = 1, mask = 0;
	uint8_t data[29] = { 0 };

	cr_expect_eq(doca_gpu_dev_rdma_write_strong(r.a.dev, 1, to, 0, buf, 0, 8, 0, NONE),
		     DOCA_ERROR_INVALID_VALUE, "a connection that does not exist");
	cr_expect_eq(doca_gpu_dev_rdma_commit_weak(r.a.dev, UINT32_MAX, 1),
		     DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_dev_rdma_write_strong(r.a.dev, 0, to, 0, buf, 0, (1ull << 30) + 1, 0,
						    NONE),
		     DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_dev_rdma_write_weak(r.a.dev, 0, to, 0, buf, 0, 0, 5, WITH_IMM, 0),
		     DOCA_ERROR_INVALID_VALUE, "an immediate value without data");
	cr_expect_eq(doca_gpu_dev_rdma_write_inline_strong(r.a.dev, 0, to, 0, data, 29, 0, NONE),
		     DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_dev_rdma_write_inline_weak(r.a.dev, 0, to, 0, data, 0, 0, NONE, 0),
		     DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_dev_rdma_recv_strong(r.b.recv, buf, (1ull << 30) + 1, 0, 0),
		     DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_gpu_dev_rdma_commit_weak(r.a.dev, 0, DEPTH + 1), DOCA_ERROR_INVALID_VALUE,
		     "more operations than the ring has");
	OK(doca_gpu_rdma_get_info(r.a.dev, 0, &position, &mask));
	cr_expect_eq(position, 0);
	cr_expect_eq(mask, DEPTH - 1);
	OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
	OK(doca_gpu_dev_rdma_commit_weak(r.a.dev, 0, 0));
	expect_commits(&r.a, 0);
}

/* ---- positions ---- */

/* The index that the WQE in the slot of an operation has. */
static uint16_t slot_index(uint64_t i)
{
	const struct gdk_qp_state *st =
		gdk_state_of_qp(gdk_rdma_conn_qp(gdk_rdma_conn(r.a.dev, 0)));
	const uint8_t *slot = (const uint8_t *)(uintptr_t)(st->ring + i % DEPTH * 64);

	return (uint16_t)(slot[1] << 8 | slot[2]);
}

/* Posts n weak inline writes of 4-byte values from position `first` on in this order of
 * writing: descending. mask: of the positions. */
static void post_weak(uint64_t first, uint32_t n, uint64_t mask)
{
	for (uint32_t i = n; i-- > 0;) {
		const uint32_t value = (uint32_t)(first + i) * 2654435761u;

		OK(doca_gpu_dev_rdma_write_inline_weak(r.a.dev, 0, rig_remote(&r.b, 0),
						       (first + i) % DEPTH * 4, &value, 4, 0, NONE,
						       (uint32_t)((first + i) & mask)));
		cr_assert_eq(slot_index(first + i), (uint16_t)(first + i), "the index in the WQE");
	}
}

Test(doca_rdma, weak_positions_of_any_mask_over_many_laps)
{
	static const uint64_t masks[] = { UINT64_MAX, 0xffffffff, 0xffff, DEPTH - 1 };
	uint64_t end = 0;
	uint32_t num, position = 0, mask = 0;

	for (uint32_t m = 0; m < 4; m++) {
		for (uint32_t turn = 0; turn < 700; turn++) {
			const uint32_t n = 1 + turn % DEPTH;

			post_weak(end, n, masks[m]);
			OK(doca_gpu_dev_rdma_commit_weak(r.a.dev, 0, n));
			end += n;
		}
		OK(doca_gpu_dev_rdma_wait_all(r.a.dev, &num));
		cr_expect_eq(num, 700);
		OK(doca_gpu_rdma_get_info(r.a.dev, 0, &position, &mask));
		cr_expect_eq(position, end & mask);
		for (uint64_t i = end - DEPTH; i < end; i++) {
			const uint32_t want = (uint32_t)i * 2654435761u;

			cr_assert_arr_eq(r.b.m.mem + i % DEPTH * 4, &want, 4, "position %llu",
					 (unsigned long long)i);
		}
	}
	cr_expect_gt(end, 65536, "the positions wrap at 16 bits");
}

/* As the server of NVIDIA's sample: positions of weak operations count the strong ones. */
Test(doca_rdma, strong_and_weak_operations_in_turn)
{
	uint32_t num;

	for (uint32_t i = 0; i < 1000; i++) {
		const uint32_t at = i % DEPTH;

		if (i % 2)
			OK(doca_gpu_dev_rdma_write_inline_weak(r.a.dev, 0, rig_remote(&r.b, at), 0,
							       &i, 4, 0, NONE, low16(i)));
		else
			OK(doca_gpu_dev_rdma_write_inline_strong(r.a.dev, 0, rig_remote(&r.b, at),
								 0, &i, 4, 0, NONE));
		OK(i % 2 ? doca_gpu_dev_rdma_commit_weak(r.a.dev, 0, 1)
			 : doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
	}
	OK(doca_gpu_dev_rdma_wait_all(r.a.dev, &num));
	cr_expect_eq(num, 1000);
	for (uint32_t i = 1000 - DEPTH; i < 1000; i++)
		cr_expect_arr_eq(r.b.m.mem + i % DEPTH * 256, &i, 4, "operation %u", i);
}

/* A full ring is rung although nothing was committed, so that its slots become free. */
Test(doca_rdma, strong_operations_beyond_the_ring_without_a_commit)
{
	for (uint32_t i = 0; i < 5 * DEPTH + 3; i++)
		OK(doca_gpu_dev_rdma_write_inline_strong(r.a.dev, 0, rig_remote(&r.b, 0),
							 i % 64 * 4, &i, 4, 0, NONE));
	OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
	expect_commits(&r.a, 1);
	for (uint32_t i = 4 * DEPTH + 3; i < 5 * DEPTH + 3; i++)
		cr_expect_arr_eq(r.b.m.mem + i % 64 * 4, &i, 4);
}

/* ---- receives ---- */

static void send_n(uint32_t n, uint32_t seed)
{
	for (uint32_t i = 0; i < n; i++) {
		fill(r.a.m.mem + i % 128 * 256, 256, seed + i);
		OK(doca_gpu_dev_rdma_send_strong(r.a.dev, 0, rig_buf(&r.a, i % 128), 0, 256,
						 IMM(seed + i), DOCA_GPU_RDMA_SEND_FLAG_IMM));
	}
	OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
}

static void wait_nb(uint32_t want, uint32_t *imm, uint32_t *conn)
{
	uint32_t got = 0, num;

	for (uint32_t polls = 0; got < want && polls < 10000000; polls++) {
		OK(doca_gpu_dev_rdma_recv_wait_all(r.b.recv, NB, &num, imm ? imm + got : NULL,
						   conn ? conn + got : NULL));
		got += num;
	}
	cr_assert_eq(got, want);
}

/* As NIXL: all receives are written once, at positions from 0 on, and committed again when they
 * were returned. */
Test(doca_rdma, weak_receives_are_committed_again_without_being_posted)
{
	uint32_t num, imm[DEPTH], n, at = 0;

	for (uint32_t i = 0; i < DEPTH; i++)
		OK(doca_gpu_dev_rdma_recv_weak(r.b.recv, rig_buf(&r.b, i), 256, 0, 0, i));
	OK(doca_gpu_dev_rdma_recv_commit_weak(r.b.recv, DEPTH));
	OK(doca_gpu_dev_rdma_recv_wait_all(r.b.recv, NB, &num, NULL, NULL));
	cr_expect_eq(num, 0);
	OK(doca_gpu_dev_rdma_recv_commit_weak(r.b.recv, 0));
	for (uint32_t turn = 0; turn < 200; turn++, at += n) {
		n = 1 + turn % DEPTH;
		send_n(n, at);
		wait_nb(n, imm, NULL);
		for (uint32_t i = 0; i < n; i++) {
			uint8_t want[256];

			fill(want, 256, at + i);
			cr_assert_eq(imm[i], IMM(at + i), "message %u", at + i);
			cr_assert_arr_eq(r.b.m.mem + (at + i) % DEPTH * 256, want, 256,
					 "message %u", at + i);
		}
		OK(doca_gpu_dev_rdma_recv_commit_weak(r.b.recv, n));
	}
}

Test(doca_rdma, a_full_receive_queue_is_refused_until_results_are_returned)
{
	uint32_t num;

	for (uint32_t i = 0; i < DEPTH; i++)
		OK(doca_gpu_dev_rdma_recv_strong(r.b.recv, rig_buf(&r.b, i), 256, 0, 0));
	cr_expect_eq(doca_gpu_dev_rdma_recv_strong(r.b.recv, NULL, 0, 0, 0), DOCA_ERROR_FULL);
	cr_expect_eq(doca_gpu_dev_rdma_recv_weak(r.b.recv, NULL, 0, 0, 0, 0), DOCA_ERROR_FULL);
	cr_expect_eq(doca_gpu_dev_rdma_recv_commit_weak(r.b.recv, 1), DOCA_ERROR_FULL);
	OK(doca_gpu_dev_rdma_recv_commit_strong(r.b.recv));
	send_n(3, 5);
	wait_nb(3, NULL, NULL);
	cr_expect_eq(doca_gpu_dev_rdma_recv_commit_weak(r.b.recv, 4), DOCA_ERROR_FULL);
	OK(doca_gpu_dev_rdma_recv_strong(r.b.recv, rig_buf(&r.b, 100), 256, 0, 0));
	OK(doca_gpu_dev_rdma_recv_commit_weak(r.b.recv, 2));
	send_n(DEPTH, 100);
	OK(doca_gpu_dev_rdma_recv_wait_all(r.b.recv, B, &num, NULL, NULL));
	cr_expect_eq(num, DEPTH);
	OK(doca_gpu_dev_rdma_recv_wait_all(r.b.recv, B, &num, NULL, NULL));
	cr_expect_eq(num, 0);
	expect_commits(&r.a, 2);
}

/* ---- connections ---- */

TestSuite(doca_rdma_conns, .timeout = 60);

Test(doca_rdma_conns, each_receive_names_its_connection)
{
	uint32_t imm[32], conn[32];

	rig_begin(&r, (struct rig_how){ .conns = 8 });
	for (uint32_t turn = 0; turn < 20; turn++) {
		for (uint32_t i = 0; i < 32; i++)
			OK(doca_gpu_dev_rdma_recv_strong(r.b.recv, rig_buf(&r.b, i), 256, 0, 0));
		OK(doca_gpu_dev_rdma_recv_commit_strong(r.b.recv));
		for (uint32_t i = 0; i < 32; i++) {
			const uint32_t c = (i * 5 + turn) % 8;

			OK(doca_gpu_dev_rdma_send_strong(r.a.dev, c, rig_buf(&r.a, c), 0, 16,
							 IMM(c << 16 | i),
							 DOCA_GPU_RDMA_SEND_FLAG_IMM));
			OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, c));
		}
		expect_commits(&r.a, 32);
		wait_nb(32, imm, conn);
		for (uint32_t i = 0; i < 32; i++)
			cr_expect_eq(conn[i], be32toh(imm[i]) >> 16, "turn %u, receive %u", turn,
				     i);
	}
	rig_end(&r);
}

Test(doca_rdma_conns, a_connection_is_used_only_after_it_is_established)
{
	struct doca_gpu_buf *from, *to;
	uint32_t num;

	rig_create(&r, (struct rig_how){ .conns = 2 });
	from = rig_buf(&r.a, 0);
	to = rig_remote(&r.b, 0);
	cr_expect_eq(doca_gpu_dev_rdma_write_strong(r.a.dev, 0, to, 0, from, 0, 8, 0, NONE),
		     DOCA_ERROR_NOT_CONNECTED);
	cr_expect_eq(doca_gpu_dev_rdma_commit_strong(r.a.dev, 1), DOCA_ERROR_NOT_CONNECTED);
	OK(doca_gpu_dev_rdma_wait_all(r.a.dev, &num));
	cr_expect_eq(num, 0);
	rig_connect(&r);
	OK(doca_gpu_dev_rdma_write_strong(r.a.dev, 1, to, 0, from, 0, 8, 0, NONE));
	OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 1));
	expect_commits(&r.a, 1);
	rig_end(&r);
}

/* ---- sizes ---- */

/* Writes 3 laps strongly and 3 weakly, and receives as many messages. */
static void use_size(uint32_t size)
{
	const uint32_t slots = size > 2 ? size > 3 ? 32768 : 4 : size, n = 3 * slots;
	uint32_t num, got, imm, position, mask;

	rig_begin(&r, (struct rig_how){ .send = size, .recv = size });
	OK(doca_gpu_rdma_get_info(r.a.dev, 0, &position, &mask));
	cr_expect_eq(mask, slots - 1, "size %u: mask %u", size, mask);
	for (uint32_t i = 0; i < 2 * n; i++) {
		if (i < n)
			OK(doca_gpu_dev_rdma_write_inline_strong(r.a.dev, 0, rig_remote(&r.b, 0), 0,
								 &i, 4, 0, NONE));
		else
			OK(doca_gpu_dev_rdma_write_inline_weak(r.a.dev, 0, rig_remote(&r.b, 0), 0,
							       &i, 4, 0, NONE, i & mask));
		if (i >= n)
			OK(doca_gpu_dev_rdma_commit_weak(r.a.dev, 0, 1));
		else if (i == n - 1)
			OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
	}
	OK(doca_gpu_dev_rdma_wait_all(r.a.dev, &num));
	cr_expect_eq(num, n + 1);
	cr_expect_arr_eq(r.b.m.mem, &(uint32_t){ 2 * n - 1 }, 4);
	for (uint32_t i = 0; i < 3; i++) {
		OK(doca_gpu_dev_rdma_recv_strong(r.b.recv, NULL, 0, 0, 0));
		OK(doca_gpu_dev_rdma_recv_commit_strong(r.b.recv));
		OK(doca_gpu_dev_rdma_send_strong(r.a.dev, 0, rig_buf(&r.a, 0), 0, 0, IMM(i + 1),
						 DOCA_GPU_RDMA_SEND_FLAG_IMM));
		OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
		OK(doca_gpu_dev_rdma_recv_wait_all(r.b.recv, B, &got, &imm, NULL));
		cr_expect(got == 1 && imm == IMM(i + 1), "size %u: %u receives", size, got);
	}
	rig_end(&r);
}

Test(doca_rdma_conns, queues_of_each_size)
{
	static const uint32_t sizes[] = { 1, 2, 3, 32768 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		use_size(sizes[i]);
}

/* ---- permissions ---- */

static doca_error_t read_or_write(uint32_t flags, int read, uint32_t gid)
{
	uint32_t num;
	doca_error_t err;

	rig_begin(&r, (struct rig_how){ .flags = flags, .gid = gid });
	if (read)
		OK(gdk_rdma_read_strong(r.a.dev, 0, rig_remote(&r.b, 0), 0, rig_buf(&r.a, 0), 0,
					8));
	else
		OK(doca_gpu_dev_rdma_write_strong(r.a.dev, 0, rig_remote(&r.b, 0), 0,
						  rig_buf(&r.a, 0), 0, 8, 0, NONE));
	OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
	err = doca_gpu_dev_rdma_wait_all(r.a.dev, &num);
	rig_end(&r);
	return err;
}

Test(doca_rdma_conns, permissions_of_the_object_are_those_of_its_connections)
{
	const uint32_t local = DOCA_ACCESS_FLAG_LOCAL_READ_WRITE;

	OK(read_or_write(local | DOCA_ACCESS_FLAG_RDMA_READ, 1, 0));
	OK(read_or_write(local | DOCA_ACCESS_FLAG_RDMA_WRITE, 0, 0));
	cr_expect_eq(read_or_write(local | DOCA_ACCESS_FLAG_RDMA_WRITE, 1, 0),
		     DOCA_ERROR_IO_FAILED);
	cr_expect_eq(read_or_write(local | DOCA_ACCESS_FLAG_RDMA_READ, 0, 0), DOCA_ERROR_IO_FAILED);
}

Test(doca_rdma_conns, each_gid_index_connects)
{
	for (uint32_t gid = 0; gid < 4; gid++) /* link-local and IPv4, RoCE v1 and v2 */
		OK(read_or_write(RIG_FLAGS, 0, gid + 1));
}
