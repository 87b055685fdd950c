/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * One-sided operations, end to end on the software NIC: the bytes that arrive and
 * their neighbours, the signal, the ticket, and the number of slots. The tests vary
 * the sharing mode, the execution scope, the doorbell handler and the code options.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "../lib/e2e.h"

#define BYTES	   16384u
#define GUARD	   64u
#define WORD	   8192u /* offset of the signal word in dst, and of its old value in src */
#define THREAD	   DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD
#define WARP	   DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP
#define CTA	   DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA
#define ADD	   DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD
#define SET	   GDK_SIGNAL_OP_SET
#define SKIP_CHECK DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_AVAILABILITY_CHECK
#define ASYNC	   DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_ASYNC_STORE_RELEASE
#define UPDATE_PI  DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_CPU_PROXY_UPDATE_PI
#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))

static const size_t sizes[] = { 1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 16, 27, 28, 29, 55, 56, 57, 1000 };

/* parameters of an operation */
struct way {
	gdk_mode_t mode;
	gdk_handler_t handler;
	gdk_exec_t exec;
	uint32_t opt;
};

static struct e2e_pair p;
static struct ibv_mr *atomic; /* a region over dst that allows atomics */
static struct way w;
static uint32_t seed;

static void open_pair(gdk_handler_t handler, unsigned int depth)
{
	e2e_pair_open(&p, handler, depth, BYTES);
	atomic = ibv_reg_mr(p.nic.pd, p.dst.mem, BYTES, E2E_REMOTE | IBV_ACCESS_REMOTE_ATOMIC);
	cr_assert(atomic);
	w = (struct way){ E2E_MODE, E2E_AUTO, THREAD, 0 };
}

static void close_pair(void)
{
	cr_assert_eq(ibv_dereg_mr(atomic), 0);
	e2e_pair_close(&p);
}

static struct doca_gpu_dev_verbs_addr there(size_t off)
{
	return e2e_addr(p.dst.mem + off, atomic->rkey);
}

static struct doca_gpu_dev_verbs_addr here(size_t off)
{
	return e2e_addr(p.src.mem + off, p.src.mr->lkey);
}

static uint64_t word_at(const uint8_t *mem)
{
	uint64_t v;

	memcpy(&v, mem + WORD, 8);
	return v;
}

static void set_word(uint8_t *mem, uint64_t v)
{
	memcpy(mem + WORD, &v, 8);
}

static void refill(void)
{
	seed++;
	for (size_t i = 0; i < WORD; i++) {
		p.src.mem[i] = e2e_pattern(i, seed);
		p.dst.mem[i] = 0xee;
	}
	set_word(p.src.mem, 0);
	set_word(p.dst.mem, 1000);
}

/* Expects `size` bytes of the pattern at offset GUARD, and GUARD unchanged bytes on each side. */
static void expect_moved(const uint8_t *to, size_t size)
{
	for (size_t i = 0; i < size + 2 * GUARD; i++) {
		uint8_t want = i >= GUARD && i < GUARD + size ? e2e_pattern(i, seed) : 0xee;

		cr_assert_eq(to[i], want, "byte %zu (size %zu) is 0x%02x, expected 0x%02x", i, size,
			     to[i], want);
	}
}

static uint64_t reserved(void)
{
	return p.tx.dev->sq_rsvd_index;
}

/* Expects that the operation took n slots and that its ticket is the last one, and waits for it. */
static void finish(int err, uint64_t before, uint64_t n, doca_gpu_dev_verbs_ticket_t ticket)
{
	cr_assert_eq(err, 0);
	cr_assert_eq(reserved(), before + n, "took %lu slots, expected %lu", reserved() - before,
		     n);
	cr_assert_eq(ticket, before + n - 1);
	cr_assert_eq(gdk_wait_for(p.tx.dev, ticket, w.mode, E2E_WAIT_NS), 0);
}

static unsigned int opcode_at(uint64_t idx)
{
	return be32toh(gdk_get_wqe_ptr(p.tx.dev, idx)->rw_cseg.opmod_idx_opcode) & 0xff;
}

static uint64_t pieces(size_t size)
{
	return (size + 27) / 28;
}

/* ---- functions that make and check one operation, with the parameters in w ---- */

static void do_put(size_t size)
{
	const uint64_t at = reserved();
	doca_gpu_dev_verbs_ticket_t t;
	int err;

	refill();
	err = gdk_put(p.tx.dev, there(GUARD), here(GUARD), size, &t,
		      gdk_how(w.mode, w.handler, w.exec, w.opt));
	finish(err, at, 1, t);
	expect_moved(p.dst.mem, size);
}

static void do_p(size_t size)
{
	const uint64_t at = reserved();
	doca_gpu_dev_verbs_ticket_t t;
	int err;

	refill();
	err = gdk_p(p.tx.dev, there(GUARD), p.src.mem + GUARD, size, &t,
		    gdk_how(w.mode, w.handler, w.exec, w.opt));
	finish(err, at, pieces(size), t);
	expect_moved(p.dst.mem, size);
}

static void expect_signal(enum doca_gpu_dev_verbs_signal_op op, uint64_t value)
{
	cr_assert_eq(word_at(p.dst.mem), op == SET ? value : 1000 + value);
	cr_assert_eq(word_at(p.src.mem), op == SET ? 0 : 1000);
}

static void do_put_signal(size_t size, enum doca_gpu_dev_verbs_signal_op op)
{
	const uint64_t at = reserved(), value = 0x1122334455667788u + size;
	doca_gpu_dev_verbs_ticket_t t;
	int err;

	refill();
	err = gdk_put_signal(p.tx.dev, there(GUARD), here(GUARD), size,
			     gdk_signal_of(op, there(WORD), here(WORD), value), &t,
			     gdk_how(w.mode, w.handler, w.exec, w.opt));
	finish(err, at, 2, t);
	expect_moved(p.dst.mem, size);
	expect_signal(op, value);
}

static void do_p_signal(size_t size, enum doca_gpu_dev_verbs_signal_op op)
{
	const uint64_t at = reserved();
	doca_gpu_dev_verbs_ticket_t t;
	int err;

	refill();
	err = gdk_p_signal(p.tx.dev, there(GUARD), p.src.mem + GUARD, size,
			   gdk_signal_of(op, there(WORD), here(WORD), size), &t,
			   gdk_how(w.mode, w.handler, w.exec, w.opt));
	finish(err, at, pieces(size) + 1, t);
	expect_moved(p.dst.mem, size);
	expect_signal(op, size);
}

static void do_signal(uint64_t value, enum doca_gpu_dev_verbs_signal_op op)
{
	const uint64_t at = reserved();
	doca_gpu_dev_verbs_ticket_t t;
	int err;

	refill();
	err = gdk_signal(p.tx.dev, gdk_signal_of(op, there(WORD), here(WORD), value), &t,
			 gdk_how(w.mode, w.handler, w.exec, w.opt));
	finish(err, at, 1, t);
	expect_moved(p.dst.mem, 0);
	expect_signal(op, value);
}

static void swap_sides(void)
{
	refill();
	memcpy(p.dst.mem, p.src.mem, WORD);
	memset(p.src.mem, 0xee, WORD);
}

static void do_get(size_t size)
{
	const uint64_t at = reserved();
	doca_gpu_dev_verbs_ticket_t t;
	int err;

	swap_sides();
	err = gdk_get(p.tx.dev, there(GUARD), here(GUARD), size, &t,
		      gdk_how(w.mode, w.handler, w.exec, w.opt));
	finish(err, at, 1, t);
	expect_moved(p.src.mem, size);
}

static void do_get_dump(size_t size)
{
	const uint64_t at = reserved();
	doca_gpu_dev_verbs_ticket_t t;
	int err;

	swap_sides();
	err = gdk_get_dump(p.tx.dev, there(GUARD), here(GUARD), size, here(WORD), &t,
			   gdk_how(w.mode, w.handler, w.exec, w.opt));
	finish(err, at, 2, t);
	cr_assert_eq(opcode_at(t), DOCA_GPUNETIO_IB_MLX5_OPCODE_DUMP);
	expect_moved(p.src.mem, size);
	err = gdk_dump_wait(p.tx.dev, here(GUARD), t, w.mode, w.handler);
	cr_assert_eq(err, 0);
	cr_assert_eq(opcode_at(reserved() - 1), DOCA_GPUNETIO_IB_MLX5_OPCODE_DUMP);
	cr_assert_eq(gdk_state_of_qp(p.tx.dev)->completed, reserved());
}

static void do_fence(void)
{
	const uint64_t at = reserved();

	cr_assert_eq(gdk_fence(p.tx.dev, w.mode, w.handler), 0);
	cr_assert_eq(reserved(), at + 1);
	cr_assert_eq(gdk_get_wqe_ptr(p.tx.dev, at)->rw_cseg.fm_ce_se,
		     DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE_FENCE);
	do_put(100);
}

static void do_all(void)
{
	for (size_t i = 0; i < COUNT(sizes); i += 3) {
		do_put(sizes[i]);
		do_p(sizes[i]);
		do_put_signal(sizes[i], i % 2 ? SET : ADD);
		do_p_signal(sizes[i], i % 2 ? ADD : SET);
		do_get(sizes[i]);
		do_get_dump(sizes[i]);
	}
	do_signal(7, ADD);
	do_signal(7, SET);
	do_fence();
	cr_assert_eq(gdk_flush(p.tx.dev, w.mode), 0);
}

/* ---- tests ---- */

Test(onesided_dev, p_of_every_size)
{
	open_pair(E2E_DB, 64);
	for (size_t i = 0; i < COUNT(sizes); i++)
		do_p(sizes[i]);
	for (size_t n = 1; n < 60; n++)
		do_p(n);
	close_pair();
}

/* gdk_p() copies the value to the WQE, so the caller may change the value after the call. */
Test(onesided_dev, p_copies_its_value)
{
	doca_gpu_dev_verbs_ticket_t t;
	uint64_t v = 42, got;

	open_pair(E2E_DB, 64);
	cr_assert_eq(gdk_p(p.tx.dev, there(WORD), &v, 8, &t,
			   gdk_how(w.mode, w.handler, THREAD, GDK_OPT_SKIP_DB)),
		     0);
	v = 43;
	cr_assert_eq(gdk_wait_for(p.tx.dev, t, w.mode, E2E_WAIT_NS), 0);
	got = word_at(p.dst.mem);
	cr_assert_eq(got, 42);
	close_pair();
}

/* The value takes 100 WQEs, but the ring has only 8 slots. */
Test(onesided_dev, p_longer_than_the_ring)
{
	open_pair(E2E_DB, 8);
	do_p(100 * 28);
	do_p_signal(16 * 28, ADD);
	close_pair();
}

Test(onesided_dev, signals_add_and_set)
{
	static const uint64_t values[] = { 0, 1, 255, 0xffffffffu, 1ull << 63, UINT64_MAX };

	open_pair(E2E_DB, 64);
	for (size_t i = 0; i < COUNT(values); i++) {
		do_signal(values[i], ADD);
		do_signal(values[i], SET);
	}
	close_pair();
}

Test(onesided_dev, empty_operations_have_tickets)
{
	open_pair(E2E_DB, 64);
	do_put(0);
	do_get(0);
	do_put_signal(0, ADD);
	cr_assert_eq(opcode_at(reserved() - 2), DOCA_GPUNETIO_IB_MLX5_OPCODE_NOP);
	do_get_dump(0);
	close_pair();
}

Test(onesided_dev, every_mode_and_scope)
{
	static const gdk_mode_t modes[] = { E2E_EXCL, CTA, E2E_MODE };
	const gdk_exec_t scopes[] = { THREAD, WARP, GDK_EXEC_SCOPE_BLOCK };

	open_pair(E2E_DB, 64);
	for (size_t m = 0; m < COUNT(modes); m++)
		for (size_t s = 0; s < COUNT(scopes); s++) {
			w = (struct way){ modes[m], E2E_AUTO, scopes[s], 0 };
			do_all();
		}
	close_pair();
}

static void by_handler(gdk_handler_t handler)
{
	open_pair(handler, 64);
	w.handler = handler;
	do_all();
	w.mode = E2E_EXCL;
	do_all();
	close_pair();
}

Test(onesided_dev, by_gpu_sm_db)
{
	by_handler(E2E_DB);
}
Test(onesided_dev, by_gpu_sm_bf)
{
	by_handler(E2E_BF);
}
Test(onesided_dev, by_gpu_sm_no_dbr)
{
	by_handler(E2E_NO_DBR);
}
Test(onesided_dev, by_cpu_proxy)
{
	by_handler(E2E_PROXY);
}

Test(onesided_dev, every_code_option)
{
	static const uint32_t opts[] = { SKIP_CHECK, ASYNC, UPDATE_PI, GDK_OPT_SKIP_DB,
					 SKIP_CHECK | ASYNC | UPDATE_PI | GDK_OPT_SKIP_DB };

	open_pair(E2E_DB, 64);
	for (size_t i = 0; i < COUNT(opts); i++) {
		w.opt = opts[i];
		do_all();
	}
	close_pair();
}

/* WQEs with GDK_OPT_SKIP_DB are not rung until the next doorbell, which rings all of them. */
Test(onesided_dev, skipped_doorbells_are_rung_by_the_next_doorbell)
{
	doca_gpu_dev_verbs_ticket_t t;
	struct gdk_qp_counters c;

	open_pair(E2E_DB, 64);
	refill();
	for (int i = 0; i < 10; i++)
		cr_assert_eq(gdk_p(p.tx.dev, there(GUARD + 28 * (size_t)i),
				   p.src.mem + GUARD + 28 * i, 28, &t,
				   gdk_how(w.mode, w.handler, THREAD, GDK_OPT_SKIP_DB)),
			     0);
	cr_assert_eq(gdk_verbs_qp_get_counters(p.tx.hl->qp_gverbs, &c), DOCA_SUCCESS);
	cr_assert_eq(c.doorbells, 0);
	cr_assert_eq(gdk_signal(p.tx.dev, gdk_signal_of(SET, there(WORD), here(WORD), 5), &t,
				gdk_how(w.mode, w.handler, THREAD, 0)),
		     0);
	cr_assert_eq(gdk_wait_for(p.tx.dev, t, w.mode, E2E_WAIT_NS), 0);
	expect_moved(p.dst.mem, 280);
	cr_assert_eq(gdk_verbs_qp_get_counters(p.tx.hl->qp_gverbs, &c), DOCA_SUCCESS);
	cr_assert_eq(c.doorbells, 1);
	close_pair();
}

/* A wrong key ends the QP: the wait and later operations must return the error. */
Test(onesided_dev, an_error_reaches_every_operation)
{
	doca_gpu_dev_verbs_ticket_t t;
	struct doca_gpu_dev_verbs_addr bad;

	open_pair(E2E_DB, 64);
	bad = there(GUARD);
	bad.key = ~bad.key;
	cr_assert_eq(gdk_signal(p.tx.dev, gdk_signal_of(SET, bad, here(WORD), 5), &t,
				gdk_how(w.mode, w.handler, THREAD, 0)),
		     0);
	cr_assert_eq(gdk_wait_for(p.tx.dev, t, w.mode, E2E_WAIT_NS), -EIO);
	cr_assert_eq(
		gdk_p(p.tx.dev, there(GUARD), &t, 8, &t, gdk_how(w.mode, w.handler, THREAD, 0)),
		-EIO);
	cr_assert_eq(gdk_fence(p.tx.dev, w.mode, w.handler), -EIO);
	cr_assert_eq(gdk_dump_wait(p.tx.dev, here(GUARD), t, w.mode, w.handler), -EIO);
	close_pair();
}
