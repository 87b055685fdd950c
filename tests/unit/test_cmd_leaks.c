/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Firmware commands that create objects, with each bit of their input changed: those that the
 * software NIC refuses leave no memory.
 */
#include <malloc.h>

#include "../lib/rawnic_eth.h"

/* Creates objects with each bit of the input changed. Many of the commands are refused, also after
 * the NIC has allocated the object. */
static void flip_each(const struct nic *n, const uint32_t *box, size_t len)
{
	uint32_t in[0x120 / 4], out[4], bit;
	struct mlx5dv_devx_obj *o;

	for (bit = 64; bit < 8 * len; bit++) {
		memcpy(in, box, len);
		in[bit / 32] ^= 1u << bit % 32;
		o = mlx5dv_devx_obj_create(n->ctx, in, len, out, sizeof(out));
		if (o)
			mlx5dv_devx_obj_destroy(o);
	}
}

static void expect_heap(const struct nic *n, const uint32_t *box, size_t len)
{
	size_t bytes;

	flip_each(n, box, len); /* libraries keep memory of their first uses */
	bytes = mallinfo2().uordblks;
	flip_each(n, box, len);
	bytes = mallinfo2().uordblks - bytes;
	cr_expect_lt((long)bytes, 100, "command %#x: %ld bytes leak", get(box, 0) >> 16,
		     (long)bytes);
}

Test(cmd_leaks, refused_commands_leave_no_memory)
{
	uint32_t in[0x120 / 4] = { 0 };
	struct eth e;

#ifdef GDK_SAN
	cr_skip_test("the sanitizer replaces the heap, and finds leaks itself");
#endif
	eth_open(&e);
	cq_box(&e.n, in);
	expect_heap(&e.n, in, 0x110);
	qp_box(&e.n, in, e.cqn);
	expect_heap(&e.n, in, 0x110);
	tis_box(&e, in);
	expect_heap(&e.n, in, 0xc0);
	sq_box(&e, in);
	expect_heap(&e.n, in, 0x110);
	rq_box(&e, in);
	expect_heap(&e.n, in, 0x110);
	rmp_box(&e, in);
	expect_heap(&e.n, in, 0x110);
	rqt_box(&e, in, 1);
	expect_heap(&e.n, in, 0x114);
	tir_box(&e, in);
	expect_heap(&e.n, in, 0x110);
	eth_close(&e);
}
