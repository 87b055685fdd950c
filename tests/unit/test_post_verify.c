/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The checks of WQEs in the posting benchmark (bench/post_verify.h): they must
 * accept the WQEs that this library posts, and must find errors in WQEs that the
 * tests change. Also the benchmark's sums and 64-bit doorbell indices.
 */
#include <criterion/criterion.h>

#include "../bench/post_verify.h"
#include "rig.h"

static struct rig rig;
static struct post_expect want;

static void expect(uint32_t bytes, uint32_t inl)
{
	rig_init(&rig, 64, RIG_DB, 0);
	want = (struct post_expect){ .raddr = 0x7f1200000000u,
				     .laddr = 0x7e3400000000u,
				     .count = 40,
				     .qpn = rig.qp.sq_num,
				     .rkey = 0x44332211u,
				     .lkey = 0x88776655u,
				     .bytes = bytes,
				     .inl = inl };
}

/* Posts message k to the next slot, as post.cu does. */
static void post(uint64_t k)
{
	struct doca_gpu_dev_verbs_addr r = { want.raddr + k * POST_STEP, want.rkey };
	struct doca_gpu_dev_verbs_addr l = { want.laddr + k * POST_STEP, want.lkey };
	doca_gpu_dev_verbs_ticket_t ticket;
	uint32_t data[7], i;

	for (i = 0; i < 7; i++)
		data[i] = post_payload(k, i);
	if (want.inl)
		cr_assert_eq(gdk_p(&rig.qp, r, data, want.bytes, &ticket, RIG_EXCL, RIG_AUTO,
				   DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0),
			     0);
	else
		cr_assert_eq(gdk_put(&rig.qp, r, l, want.bytes, &ticket, RIG_EXCL, RIG_AUTO,
				     DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0),
			     0);
}

static uint32_t check(uint64_t slot, uint64_t *k, unsigned int byte, uint8_t flip)
{
	uint32_t w[16];

	memcpy(w, gdk_get_wqe_ptr(&rig.qp, slot), sizeof(w));
	((uint8_t *)w)[byte] ^= flip;
	return post_verify(&want, slot, w, k);
}

static void check_all(void)
{
	uint64_t slot, k;

	for (slot = 0; slot < 40; slot++) {
		post(39 - slot);
		cr_assert_eq(check(slot, &k, 0, 0), 0);
		cr_assert_eq(k, 39 - slot);
	}
}

Test(post_verify, puts_are_accepted)
{
	expect(4096, 0);
	check_all();
}

Test(post_verify, inline_writes_of_8_and_28_bytes_are_accepted)
{
	expect(8, 1);
	check_all();
	rig_fini(&rig);
	expect(28, 1);
	check_all();
}

/* A flipped bit must be reported in each of the first len bytes, except the ignored ones. */
static void check_bytes(unsigned int len)
{
	/*
	 * bit n: byte n is reserved or unused (in the control and address segments;
	 * also the immediate)
	 */
	static const uint64_t ignored = 0xf000f700u;
	unsigned int byte;
	uint64_t k;

	post(7);
	for (byte = 0; byte < len; byte++) {
		if (ignored >> byte & 1)
			continue;
		cr_assert_neq(check(0, &k, byte, byte == 11 ? 0x08 : 0x01), 0,
			      "a flipped bit in byte %u was accepted", byte);
	}
}

Test(post_verify, every_flipped_bit_is_reported)
{
	expect(4096, 0);
	check_bytes(48);
	rig_fini(&rig);
	expect(8, 1);
	check_bytes(44);
	rig_fini(&rig);
	expect(28, 1);
	check_bytes(64);
}

Test(post_verify, error_code_names_the_wrong_field)
{
	uint64_t k;

	expect(4096, 0);
	post(3);
	cr_assert_eq(check(0, &k, 2, 1), POST_BAD_INDEX);
	cr_assert_eq(check(0, &k, 3, 1), POST_BAD_OPCODE);
	cr_assert_eq(check(0, &k, 7, 1), POST_BAD_QPN_DS);
	cr_assert_eq(check(0, &k, 34, 1), POST_BAD_LENGTH);
	cr_assert_eq(check(0, &k, 47, 1), POST_BAD_LADDR);
	want.count = 3;
	cr_assert_eq(check(0, &k, 0, 0), POST_BAD_RADDR);
}

/* With mask 3, every fourth WQE must request a CQE, and the others must not. */
Test(post_verify, signal_mask_is_checked)
{
	uint64_t slot, k;

	expect(4096, 0);
	want.signal_mask = 3;
	for (slot = 0; slot < 8; slot++)
		gdk_wqe_rdma(&rig.qp, gdk_get_wqe_ptr(&rig.qp, slot), (uint16_t)slot,
			     DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, slot % 4 ? 0 : GDK_CE_ALWAYS,
			     0, want.raddr, gdk_key_be(want.rkey), want.laddr,
			     gdk_key_be(want.lkey), want.bytes);
	for (slot = 0; slot < 8; slot++)
		cr_assert_eq(check(slot, &k, 0, 0), 0);
	cr_assert_eq(check(4, &k, 11, 0x08), POST_BAD_FLAGS);
	cr_assert_eq(check(5, &k, 11, 0x08), POST_BAD_FLAGS);
}

Test(post_verify, sums_of_indices_and_squares)
{
	uint64_t n, sum = 0, squares = 0;

	for (n = 0; n < 1000; n++) {
		cr_assert_eq(post_sum(n), sum);
		cr_assert_eq(post_sum_squares(n), squares);
		sum += n;
		squares += n * n;
	}
	/* the intermediate products exceed 64 bits; the result must be correct modulo 2^64 */
	cr_assert_eq(post_sum_squares((1u << 24) + 1) - post_sum_squares(1u << 24), 1ull << 48);
	cr_assert_eq(post_sum_squares((1ull << 33) + 1) - post_sum_squares(1ull << 33), 0);
}

Test(post_verify, doorbells_extend_to_64_bits)
{
	cr_assert_eq(post_extend(0, 5, 64), 5);
	cr_assert_eq(post_extend(65530, 4, 64), 65540);
	cr_assert_eq(post_extend(65540, 65530, 64), 65540,
		     "an old doorbell must not move the index back");
	cr_assert_eq(post_extend(1ull << 40, 32768, 32768), (1ull << 40) + 32768);
	cr_assert_eq(post_register_index(gdk_db_value(gdk_bswap32(0x123 << 8), 0x1fffe)), 0xfffe);
	cr_assert_eq(post_register_qpn(gdk_db_value(gdk_bswap32(0x123 << 8), 1)), 0x123);
}

Test(post_verify, device_functions_read_the_cqes)
{
	struct gdk_cqe_tail t;
	uint64_t i, tail;

	expect(4096, 0);
	for (i = 0; i < 300; i++) {
		tail = post_cqe_tail(i, 64, want.qpn);
		cr_assert(!gdk_cqe_arrived(&rig.qp.cq_sq, i, &t));
		memcpy(rig.qp.cq_sq.cqe_daddr + i % 64 * 64 + 56, &tail, sizeof(tail));
		cr_assert(gdk_cqe_arrived(&rig.qp.cq_sq, i, &t));
		cr_assert_eq(t.counter, i);
		cr_assert_eq(t.opcode, DOCA_GPUNETIO_IB_MLX5_CQE_REQ);
	}
}
