/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The WQE builders: the bytes of the WQEs that they write over a slot filled with old
 * data, and which WQEs of a long run without CQE request are signalled nevertheless.
 */
#include <criterion/criterion.h>

#include "rig.h"

static struct rig rig;
static struct doca_gpu_dev_verbs_wqe wqe, wqe1;

static void setup(void)
{
	rig_init(&rig, 64, RIG_DB, 0);
	memset(&wqe, 0xee, sizeof(wqe));
	memset(&wqe1, 0xee, sizeof(wqe1));
}

static void teardown(void)
{
	rig_fini(&rig);
}

static void expect(const void *at, const char *hex)
{
	char got[2 * 64 + 1];
	size_t i, n = strlen(hex) / 2;

	for (i = 0; i < n; i++)
		sprintf(got + 2 * i, "%02x", ((const uint8_t *)at)[i]);
	cr_assert_str_eq(got, hex);
}

/* Bytes from n on belong to no segment and must not be written. */
static void expect_rest(const struct doca_gpu_dev_verbs_wqe *w, size_t n)
{
	for (; n < 64; n++)
		cr_assert_eq(w->inl_data[n], 0xee);
}

TestSuite(wqe, .init = setup, .fini = teardown);

Test(wqe, nop)
{
	gdk_wqe_nop(&rig.qp, &wqe, 0x1234, GDK_CE_ALWAYS);
	expect(&wqe, "0012340000abcd010000000800000000");
	expect_rest(&wqe, 16);
}

Test(wqe, write_with_immediate)
{
	struct gdk_wqe_at at = gdk_wqe_at(&wqe, 5, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE_IMM,
					  GDK_CE_ALWAYS);

	at.imm_be = htobe32(0x11223344);
	gdk_wqe_rdma(&rig.qp, at, gdk_mem(0x0102030405060708, gdk_key(0xa1a2a3a4)),
		     gdk_mem(0x1112131415161718, gdk_key(0xb1b2b3b4)), 0x00c0ffee);
	expect(&wqe, "0000050900abcd030000000811223344"
		     "0102030405060708a1a2a3a400000000"
		     "00c0ffeeb1b2b3b41112131415161718");
	expect_rest(&wqe, 48);
}

Test(wqe, read_into_two_segments)
{
	gdk_wqe_rdma2(&rig.qp, gdk_wqe_at(&wqe, 0xffff, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_READ, 0),
		      gdk_mem(1, gdk_key(2)), gdk_mem(3, gdk_key(4)), 5, gdk_mem(6, gdk_key(7)), 8);
	/* The last slot of each half of the ring is always signalled. */
	expect(&wqe, "00ffff1000abcd040000000800000000"
		     "00000000000000010000000200000000"
		     "00000005000000040000000000000003"
		     "00000008000000070000000000000006");
}

Test(wqe, inline_short)
{
	gdk_wqe_write_inl(
		&rig.qp,
		gdk_wqe_at(&wqe, 1, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, GDK_CE_ALWAYS),
		gdk_mem(9, gdk_key(8)), "abcdefg", 7);
	expect(&wqe, "0000010800abcd030000000800000000"
		     "00000000000000090000000800000000"
		     "80000007616263646566670000000000");
	expect_rest(&wqe, 48);
}

Test(wqe, inline_longest, .description = "28 bytes from an odd address")
{
	const char *text = "-0123456789abcdefghijklmnopqr";

	gdk_wqe_write_inl(
		&rig.qp,
		gdk_wqe_at(&wqe, 1, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, GDK_CE_ALWAYS),
		gdk_mem(9, gdk_key(8)), text + 1, 28);
	expect(&wqe, "0000010800abcd040000000800000000");
	expect(wqe.inl_data + 32, "8000001c");
	cr_assert_eq(memcmp(wqe.inl_data + 36, text + 1, 28), 0);
}

Test(wqe, fetch_and_add)
{
	gdk_wqe_atomic(&rig.qp,
		       gdk_wqe_at(&wqe, 2, DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_FA, GDK_CE_ALWAYS),
		       gdk_mem(1, gdk_key(2)), gdk_mem(3, gdk_key(4)), 8, 0x55, 0x66);
	expect(&wqe, "0000021200abcd040000000800000000"
		     "00000000000000010000000200000000"
		     "00000000000000550000000000000000"
		     "00000008000000040000000000000003");
}

Test(wqe, compare_and_swap)
{
	gdk_wqe_atomic(&rig.qp,
		       gdk_wqe_at(&wqe, 2, DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_CS, GDK_CE_ALWAYS),
		       gdk_mem(1, gdk_key(2)), gdk_mem(3, gdk_key(4)), 8, 0x55, 0x66);
	expect(&wqe.at_seg, "00000000000000660000000000000055");
}

Test(wqe, masked_compare_and_swap_of_8_takes_two_slots)
{
	const struct gdk_atomic_ext arg = { 0, 0, 1, 2, 3, 4 };

	gdk_wqe_atomic_ext(
		&rig.qp,
		gdk_wqe_at(&wqe, 3, DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_CS, GDK_CE_ALWAYS),
		&wqe1, gdk_mem(1, gdk_key(2)), gdk_mem(3, gdk_key(4)), 8, &arg);
	expect(&wqe, "0900031400abcd050000000800000000"
		     "00000000000000010000000200000000"
		     "00000000000000010000000000000002"
		     "00000000000000030000000000000004");
	expect(&wqe1, "00000008000000040000000000000003");
	expect_rest(&wqe1, 16);
	cr_assert_eq(rig.st->uneven, 1);
	cr_assert_eq(rig.st->ring, (uint64_t)(uintptr_t)rig.ring);
}

Test(wqe, masked_atomics_of_4_bytes)
{
	const struct gdk_atomic_ext arg = { 7, 8, 1, 2, 3, 4 };

	gdk_wqe_atomic_ext(
		&rig.qp,
		gdk_wqe_at(&wqe, 3, DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_CS, GDK_CE_ALWAYS),
		NULL, gdk_mem(1, gdk_key(0)), gdk_mem(3, gdk_key(0)), 4, &arg);
	expect(&wqe, "0800031400abcd04");
	expect(&wqe.at_seg, "00000001000000020000000300000004");
	gdk_wqe_atomic_ext(
		&rig.qp,
		gdk_wqe_at(&wqe, 3, DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_FA, GDK_CE_ALWAYS),
		NULL, gdk_mem(1, gdk_key(0)), gdk_mem(3, gdk_key(0)), 4, &arg);
	expect(&wqe.at_seg, "00000007000000080000000000000000");
}

Test(wqe, wait_and_dump)
{
	gdk_wqe_wait(&rig.qp, &wqe, 4, GDK_CE_ALWAYS, 0x10, 0x20);
	expect(&wqe, "0000040f00abcd020000000800000000"
		     "00000000000000000000001000000020");
	gdk_wqe_dump(&rig.qp, &wqe, 4, GDK_CE_ALWAYS, 0x30, gdk_key(0x40), 1);
	expect(&wqe, "0000042300abcd020000000800000000"
		     "00000001000000400000000000000030");
}

Test(wqe, unsignalled_runs_signal_one_per_half)
{
	unsigned int i, signalled = 0;

	for (i = 0; i < 128; i++) {
		gdk_wqe_nop(&rig.qp, &wqe, (uint16_t)i, 0);
		signalled += wqe.rw_cseg.fm_ce_se == 8;
		cr_assert_eq(wqe.rw_cseg.fm_ce_se == 8, i % 32 == 31);
	}
	cr_assert_eq(signalled, 4);
	cr_assert_eq(rig.st->uneven, 1);
	cr_assert_eq(rig.st->long_wqe, 0);
}
