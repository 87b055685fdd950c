/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The checks of WQEs in the posting benchmark (bench/post_verify.h): they must
 * accept the WQEs that this library posts, and must find errors in WQEs that the
 * tests change. Also the benchmark's sums, 64-bit doorbell indices and histogram.
 */
#include <criterion/criterion.h>

#include "../bench/post_hist.h"
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
		cr_assert_eq(gdk_p(&rig.qp, r, data, want.bytes, &ticket,
				   gdk_how(RIG_EXCL, RIG_AUTO,
					   DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0)),
			     0);
	else
		cr_assert_eq(gdk_put(&rig.qp, r, l, want.bytes, &ticket,
				     gdk_how(RIG_EXCL, RIG_AUTO,
					     DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0)),
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
		gdk_wqe_rdma(&rig.qp,
			     gdk_wqe_at(gdk_get_wqe_ptr(&rig.qp, slot), (uint16_t)slot,
					DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE,
					slot % 4 ? 0 : GDK_CE_ALWAYS),
			     gdk_mem(want.raddr, gdk_key_be(want.rkey)),
			     gdk_mem(want.laddr, gdk_key_be(want.lkey)), want.bytes);
	for (slot = 0; slot < 8; slot++)
		cr_assert_eq(check(slot, &k, 0, 0), 0);
	cr_assert_eq(check(4, &k, 11, 0x08), POST_BAD_FLAGS);
	cr_assert_eq(check(5, &k, 11, 0x08), POST_BAD_FLAGS);
}

static uint32_t check_head(uint64_t slot, uint32_t opcode, unsigned int byte, uint8_t flip)
{
	uint32_t w[8];

	memcpy(w, gdk_get_wqe_ptr(&rig.qp, slot), sizeof(w));
	((uint8_t *)w)[byte] ^= flip;
	return post_verify_head(slot, opcode, want.qpn, want.raddr, w);
}

/* A put at slot 0, a get at slot 1, a put with signal at slots 2 and 3. */
Test(post_verify, head_of_put_get_and_atomic_is_checked)
{
	const struct doca_gpu_dev_verbs_addr l = { 0x7e3400000000u, 0x88776655u };
	struct doca_gpu_dev_verbs_addr r;
	doca_gpu_dev_verbs_ticket_t ticket;

	expect(4096, 0);
	r = (struct doca_gpu_dev_verbs_addr){ want.raddr, want.rkey };
	post(0);
	cr_assert_eq(gdk_get(&rig.qp, r, l, 8, &ticket,
			     gdk_how(RIG_EXCL, RIG_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0)),
		     0);
	cr_assert_eq(gdk_put_signal(
			     &rig.qp, r, l, 8,
			     gdk_signal_of(DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD, r, l, 1), &ticket,
			     gdk_how(RIG_EXCL, RIG_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0)),
		     0);
	cr_assert_eq(ticket, 3);
	cr_assert_eq(check_head(0, 0x08, 0, 0), 0);
	cr_assert_eq(check_head(1, 0x10, 0, 0), 0);
	cr_assert_eq(check_head(2, 0x08, 0, 0), 0);
	cr_assert_eq(check_head(3, 0x12, 0, 0), 0);
	cr_assert_eq(check_head(1, 0x08, 0, 0), POST_BAD_OPCODE);
	cr_assert_eq(check_head(3, 0x12, 2, 1), POST_BAD_INDEX);
	cr_assert_eq(check_head(3, 0x12, 6, 1), POST_BAD_QPN_DS);
	cr_assert_eq(check_head(3, 0x12, 11, 8), POST_BAD_FLAGS);
	cr_assert_eq(check_head(3, 0x12, 23, 1), POST_BAD_RADDR);
}

Test(post_verify, histogram_buckets_are_contiguous_and_narrow)
{
	uint64_t v = 0;
	uint32_t i;

	for (i = 0; i < POST_HIST_BUCKETS; i++) {
		const uint64_t top = post_hist_top(i);

		cr_assert_eq(post_hist_bucket((uint32_t)v), i);
		cr_assert_eq(post_hist_bucket((uint32_t)top), i);
		cr_assert(top >= v && (top - v) * POST_HIST_SUB <= v);
		v = top + 1;
	}
	cr_assert_eq(v, 1ull << 32);
}

Test(post_verify, histogram_percentile)
{
	static uint64_t count[POST_HIST_BUCKETS];

	cr_assert_eq(post_hist_percentile(count, 0.5), 0);
	count[post_hist_bucket(20)] = 998;
	count[post_hist_bucket(1000)] = 1;
	count[post_hist_bucket(70000)] = 1;
	cr_assert_eq(post_hist_percentile(count, 0.5), 20);
	cr_assert_eq(post_hist_percentile(count, 0.998), 20);
	cr_assert_eq(post_hist_percentile(count, 0.999), post_hist_top(post_hist_bucket(1000)));
	cr_assert_eq(post_hist_percentile(count, 1), post_hist_top(post_hist_bucket(70000)));
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
		cr_assert(!gdk_cqe_arrived(rig.st, i, &t));
		memcpy(rig.qp.cq_sq.cqe_daddr + i % 64 * 64 + 56, &tail, sizeof(tail));
		cr_assert(gdk_cqe_arrived(rig.st, i, &t));
		cr_assert_eq(t.counter, i);
		cr_assert_eq(t.opcode, DOCA_GPUNETIO_IB_MLX5_CQE_REQ);
	}
}
