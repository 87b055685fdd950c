/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Send WQEs of all kinds, written as bytes to the software NIC's ring: opcodes,
 * modifiers, flags, sizes, and invalid WQEs. Layouts are those of the mlx5 headers
 * of Linux and rdma-core; those of masked atomics are UCX's.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine_fake.h"

#define SIZE	  65536u
#define CE_ERROR  0x00
#define CE_FIRST  0x04
#define CE_ALWAYS 0x08
#define QUIET_MS  60

static struct fake_qp a, b;
static uint8_t *mem, *far;
static uint32_t lkey, rkey;

static void rig(enum sn_qp_type type)
{
	char ip[32];

	fake_ip(ip, 1);
	fake_open(ip);
	mem = aligned_alloc(4096, SIZE);
	far = aligned_alloc(4096, SIZE);
	memset(far, 0, SIZE);
	for (unsigned i = 0; i < SIZE; i++)
		mem[i] = i * 2654435761u >> 13;
	lkey = fake_mr(mem, SIZE, 0xf);
	rkey = fake_mr(far, SIZE, 0xf);
	fake_qp_init_as(&a, type, 0x101, 1);
	fake_qp_init_as(&b, type, 0x102, 1);
	fake_connect(&a, ip, 0x102);
	fake_connect(&b, ip, 0x101);
}

static void rc(void)
{
	rig(SN_QPT_RC);
}

static void uc(void)
{
	rig(SN_QPT_UC);
}

TestSuite(softnic_sq, .fini = fake_close, .timeout = 60);

/* ---- writing WQEs segment by segment ---- */

static void seg(struct fake_qp *q, unsigned i, const void *src)
{
	memcpy(q->sq + ((q->pi * 4 + i) % (FAKE_DEPTH * 4)) * 16, src, 16);
}

static void ctrl(struct fake_qp *q, uint8_t modifier, uint8_t opcode, unsigned ds, uint8_t fm)
{
	uint8_t s[16] = { 0 };

	sn_put32(s, (uint32_t)modifier << 24 | (q->pi & 0xffff) << 8 | opcode);
	sn_put32(s + 4, q->qp.qpn << 8 | ds);
	sn_put32(s + 8, fm);
	seg(q, 0, s);
}

static void raddr(struct fake_qp *q, uint32_t off)
{
	uint8_t s[16] = { 0 };

	sn_put64(s, (uintptr_t)far + off);
	sn_put32(s + 8, rkey);
	seg(q, 1, s);
}

static void data(struct fake_qp *q, unsigned i, uint32_t off, uint32_t len)
{
	uint8_t s[16];

	sn_put32(s, len);
	sn_put32(s + 4, lkey);
	sn_put64(s + 8, (uintptr_t)mem + off);
	seg(q, i, s);
}

static void ring(struct fake_qp *q, unsigned ds)
{
	q->pi += (ds + 3) / 4;
	fake_ring(q);
}

static void write8(struct fake_qp *q, uint8_t fm)
{
	ctrl(q, 0, SN_OP_WRITE, 3, fm);
	raddr(q, 0);
	data(q, 2, 0, 8);
	ring(q, 3);
}

static void expect_cqe(struct fake_qp *q, uint32_t index, uint8_t synd)
{
	uint8_t cqe[64];

	cr_assert(fake_poll(q, false, cqe, 5000), "no CQE for WQE %u", index);
	cr_assert_eq((uint32_t)(cqe[60] << 8 | cqe[61]), index,
		     "got the CQE of WQE %u, expected %u", cqe[61], index);
	cr_assert_eq(cqe[63] >> 4, synd ? 13 : 0);
	if (synd)
		cr_assert_eq(cqe[55], synd, "got syndrome 0x%02x, expected 0x%02x", cqe[55], synd);
}

static void expect_none(struct fake_qp *q)
{
	uint8_t cqe[64];

	cr_assert_not(fake_poll(q, false, cqe, QUIET_MS), "unexpected CQE of WQE %u", cqe[61]);
}

/* Posts n NOPs and waits until they are executed, so that their slots can be reused. */
static void nops(struct fake_qp *q, unsigned n)
{
	for (unsigned i = 1; i <= n; i++) {
		ctrl(q, 0, SN_OP_NOP, 1, i == n ? CE_ALWAYS : CE_ERROR);
		ring(q, 1);
	}
	expect_cqe(q, n - 1, 0);
}

/* ---- masked atomics ---- */

static void masked(uint8_t opcode, unsigned size, uint32_t off, const uint64_t *arg)
{
	unsigned i, n = opcode == SN_OP_MASKED_CS ? 4 : 2, ds = 2 + (n * size + 15) / 16;
	uint8_t s[32] = { 0 };

	for (i = 0; i < n; i++)
		if (size == 8)
			sn_put64(s + 8 * i, arg[i]);
		else
			sn_put32(s + 4 * i, (uint32_t)arg[i]);
	ctrl(&a, size == 8 ? 9 : 8, opcode, ds + 1, CE_ALWAYS);
	raddr(&a, off);
	seg(&a, 2, s);
	if (ds == 4)
		seg(&a, 3, s + 16);
	data(&a, ds, 0, size);
	ring(&a, ds + 1);
}

static uint64_t word(uint32_t off)
{
	uint64_t v;

	memcpy(&v, far + off, 8);
	return v;
}

Test(softnic_sq, masked_atomics_of_8, .init = rc)
{
	const uint64_t start = 0x1111222233334444, swap = 0xaaaabbbbccccdddd;
	uint64_t old;

	memcpy(far, &start, 8);
	/* the lower half is compared, the outer two 16-bit fields are swapped */
	masked(SN_OP_MASKED_CS, 8, 0,
	       (uint64_t[]){ swap, 0x9999999933334444, 0xffff00000000ffff, 0xffffffff });
	expect_cqe(&a, 0, 0);
	memcpy(&old, mem, 8);
	cr_assert_eq(old, start);
	cr_assert_eq(word(0), 0xaaaa22223333dddd);
	masked(SN_OP_MASKED_CS, 8, 0, (uint64_t[]){ 0, 1, -1ull, -1ull });
	expect_cqe(&a, 2, 0);
	cr_assert_eq(word(0), 0xaaaa22223333dddd, "swapped although the comparison failed");
	/* fields of 16 bits: a carry must not cross a field */
	masked(SN_OP_MASKED_FA, 8, 0, (uint64_t[]){ 0x555600010000ffff, 0x8000800080008000 });
	expect_cqe(&a, 4, 0);
	memcpy(&old, mem, 8);
	cr_assert_eq(old, 0xaaaa22223333dddd);
	cr_assert_eq(word(0), 0x000022233333dddc);
}

Test(softnic_sq, masked_atomics_of_4_return_big_endian, .init = rc)
{
	const uint64_t start = 0x0123456789abcdef;
	uint32_t old;

	memcpy(far, &start, 8);
	masked(SN_OP_MASKED_CS, 4, 0, (uint64_t[]){ 0x11112222, 0x89ab0000, 0xffff, 0xffff0000 });
	expect_cqe(&a, 0, 0);
	memcpy(&old, mem, 4);
	cr_assert_eq(be32toh(old), 0x89abcdef);
	cr_assert_eq(word(0), 0x0123456789ab2222);
	masked(SN_OP_MASKED_FA, 4, 4, (uint64_t[]){ 0xfedcba99, 0 });
	expect_cqe(&a, 1, 0);
	memcpy(&old, mem, 4);
	cr_assert_eq(be32toh(old), 0x01234567);
	cr_assert_eq(word(0), 0x0000000089ab2222, "the carry crossed the 32-bit word");
}

Test(softnic_sq, wrong_modifier_or_size_of_atomics_is_refused, .init = rc)
{
	static const struct {
		uint8_t opcode, modifier;
		unsigned len;
		uint8_t synd;
	} t[] = {
		{ SN_OP_FA, 8, 8, SN_SYND_LOC_OP },
		{ SN_OP_MASKED_FA, 0, 8, SN_SYND_LOC_OP },
		{ SN_OP_MASKED_FA, 10, 8, SN_SYND_LOC_OP },
		{ SN_OP_WRITE, 9, 8, SN_SYND_LOC_OP },
		{ SN_OP_FA, 0, 4, SN_SYND_LOC_LEN },
		{ SN_OP_MASKED_FA, 8, 8, SN_SYND_LOC_LEN },
	};
	const uint8_t none[16] = { 0 };

	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		bool atomic = t[i].opcode != SN_OP_WRITE;

		ctrl(&a, t[i].modifier, t[i].opcode, atomic ? 4 : 3, CE_ALWAYS);
		raddr(&a, 0);
		seg(&a, 2, none);
		data(&a, atomic ? 3 : 2, 0, t[i].len);
		ring(&a, 4);
		expect_cqe(&a, 0, t[i].synd);
		fake_modify(&a, SN_QPS_RST);
		a.pi = 0;
		memset(a.dbr, 0, 8);
		fake_modify(&a, SN_QPS_INIT);
		fake_modify(&a, SN_QPS_RTR);
		fake_modify(&a, SN_QPS_RTS);
	}
}

/* ---- completion bits ---- */

Test(softnic_sq, completion_flags, .init = rc)
{
	write8(&a, CE_ERROR);
	write8(&a, CE_FIRST);
	write8(&a, CE_ALWAYS);
	write8(&a, CE_ALWAYS | 0x04);
	expect_cqe(&a, 2, 0);
	expect_cqe(&a, 3, 0);
	ctrl(&a, 0, 0x3e, 1, CE_FIRST); /* fails: unknown opcode */
	ring(&a, 1);
	write8(&a, CE_FIRST); /* flushed; the flags decide which WQEs write a CQE */
	write8(&a, CE_ERROR);
	write8(&a, CE_FIRST);
	write8(&a, CE_ALWAYS);
	expect_cqe(&a, 4, SN_SYND_LOC_OP);
	expect_cqe(&a, 6, SN_SYND_FLUSH);
	expect_cqe(&a, 8, SN_SYND_FLUSH);
	expect_none(&a);
}

/* ---- invalid WQEs ---- */

static const struct refused {
	const char *what;
	uint8_t opcode, fm;
	uint32_t ds, rung; /* segments according to the WQE; segments rung */
} refused[] = {
	{ "SEND with invalidate", SN_OP_SEND_INVAL, CE_ALWAYS, 2, 2 },
	{ "unknown opcode", 0x3e, CE_ALWAYS, 2, 2 },
	{ "no size", SN_OP_NOP, CE_ALWAYS, 0, 1 },
	{ "larger than what was rung", SN_OP_SEND, CE_ALWAYS, 9, 4 },
	{ "WRITE without an address", SN_OP_WRITE, CE_ALWAYS, 1, 1 },
	{ "fence 5", SN_OP_NOP, CE_ALWAYS | 5 << 5, 1, 1 },
	{ "reserved flag 0x01", SN_OP_NOP, CE_ALWAYS | 0x01, 1, 1 },
	{ "reserved flag 0x10", SN_OP_NOP, CE_ALWAYS | 0x10, 1, 1 },
};

Test(softnic_sq, invalid_wqes_are_local_operation_errors, .init = rc)
{
	for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		const struct refused *r = &refused[i];
		uint8_t cqe[64];

		nops(&a, 1);
		ctrl(&a, 0, r->opcode, r->ds, r->fm);
		data(&a, 1, 0, 8);
		ring(&a, r->rung);
		cr_assert(fake_poll(&a, false, cqe, 5000), "%s: no CQE", r->what);
		cr_assert_eq(cqe[63] >> 4, 13, "%s: not an error CQE", r->what);
		cr_assert_eq(cqe[55], SN_SYND_LOC_OP, "%s: syndrome 0x%02x", r->what, cqe[55]);
		cr_assert_eq(cqe[61], 1, "%s: CQE of WQE %u", r->what, cqe[61]);
		fake_modify(&a, SN_QPS_RST);
		a.pi = 0;
		memset(a.dbr, 0, 8);
		memset(a.sq, 0xee, FAKE_DEPTH * 64);
		fake_modify(&a, SN_QPS_INIT);
		fake_modify(&a, SN_QPS_RTR);
		fake_modify(&a, SN_QPS_RTS);
	}
}

Test(softnic_sq, uc_refuses_reads, .init = uc)
{
	ctrl(&a, 0, SN_OP_READ, 3, CE_ALWAYS);
	raddr(&a, 0);
	data(&a, 2, 0, 8);
	ring(&a, 3);
	expect_cqe(&a, 0, SN_SYND_LOC_OP);
	cr_assert_eq(a.qp.state, SN_QPS_SQER);
}

/* The DBREC shows a WQE whose doorbell has not arrived when the queue pair ends. The WQE is flushed
 * at once: while this thread holds the lock, the NIC's thread cannot find it. */
static void end_before_the_doorbell(void)
{
	uint8_t cqe[64];

	ctrl(&a, 0, SN_OP_NOP, 1, CE_ALWAYS);
	pthread_mutex_lock(&sn_dev->lock);
	__atomic_store_n(&a.dbr[1], htobe32(1), __ATOMIC_RELEASE);
	a.qp.state = SN_QPS_ERR;
	sn_eng_qp_state(sn_dev, &a.qp, SN_QPS_RTS);
	cr_expect(fake_poll(&a, false, cqe, 0), "not flushed");
	pthread_mutex_unlock(&sn_dev->lock);
	cr_expect_eq(cqe[55], SN_SYND_FLUSH);
	cr_expect_eq(sn_dev->stats.db_recovered, 0);
}

Test(softnic_sq, wqe_without_doorbell_is_flushed, .init = rc)
{
	end_before_the_doorbell();
}

Test(softnic_sq, wqe_without_doorbell_is_flushed_on_uc, .init = uc)
{
	end_before_the_doorbell();
}

/* ---- sizes ---- */

Test(softnic_sq, largest_gather_across_the_end_of_the_ring, .init = rc)
{
	const unsigned n = 61; /* with control and address: 63 segments */

	nops(&a, FAKE_DEPTH - 7);
	ctrl(&a, 0, SN_OP_WRITE, 2 + n, CE_ALWAYS);
	raddr(&a, 100);
	for (unsigned i = 0; i < n; i++)
		data(&a, 2 + i, i * 64, i + 1);
	ring(&a, 2 + n);
	expect_cqe(&a, FAKE_DEPTH - 7, 0);
	for (unsigned i = 0, at = 100; i < n; at += ++i)
		cr_assert_arr_eq(far + at, mem + i * 64, i + 1);
}

Test(softnic_sq, largest_inline_across_the_end_of_the_ring, .init = rc)
{
	const unsigned len = 61 * 16 - 4;
	uint8_t all[61 * 16];

	sn_put32(all, len | 0x80000000u);
	memcpy(all + 4, mem, len);
	nops(&a, FAKE_DEPTH - 9);
	ctrl(&a, 0, SN_OP_WRITE, 63, CE_ALWAYS);
	raddr(&a, 1);
	for (unsigned i = 0; i < 61; i++)
		seg(&a, 2 + i, all + 16 * i);
	ring(&a, 63);
	expect_cqe(&a, FAKE_DEPTH - 9, 0);
	cr_assert_arr_eq(far + 1, mem, len);
	cr_assert_eq(far[len + 1], 0);
}

/* UCX posts such WQEs: header inline, payload by pointers. The data takes several packets. */
Test(softnic_sq, inline_data_before_memory, .init = rc)
{
	uint8_t head[48];

	sn_put32(head, 37 | 0x80000000u);
	memcpy(head + 4, mem + 9000, 37);
	ctrl(&a, 0, SN_OP_WRITE, 7, CE_ALWAYS);
	raddr(&a, 3);
	for (unsigned i = 0; i < 3; i++)
		seg(&a, 2 + i, head + 16 * i);
	data(&a, 5, 0, 5000);
	data(&a, 6, 6000, 7);
	ring(&a, 7);
	expect_cqe(&a, 0, 0);
	cr_assert_arr_eq(far + 3, mem + 9000, 37);
	cr_assert_arr_eq(far + 40, mem, 5000);
	cr_assert_arr_eq(far + 5040, mem + 6000, 7);
	cr_assert_eq(far[5047], 0);
}

Test(softnic_sq, inline_data_after_memory_is_refused, .init = rc)
{
	uint8_t tail[16] = { 0 };

	sn_put32(tail, 8 | 0x80000000u);
	ctrl(&a, 0, SN_OP_WRITE, 4, CE_ALWAYS);
	raddr(&a, 0);
	data(&a, 2, 0, 8);
	seg(&a, 3, tail);
	ring(&a, 4);
	expect_cqe(&a, 0, SN_SYND_LOC_OP);
}

/* ---- WAIT ---- */

static void wait_for(struct fake_qp *q, uint32_t cqn, uint32_t index)
{
	uint8_t s[16] = { 0 };

	sn_put32(s + 8, index);
	sn_put32(s + 12, cqn);
	ctrl(q, 0, SN_OP_WAIT, 2, CE_ERROR);
	seg(q, 1, s);
	ring(q, 2);
}

Test(softnic_sq, wait_blocks_until_another_cq_reaches_the_index, .init = rc)
{
	wait_for(&a, b.scq.cqn, 1);
	write8(&a, CE_ALWAYS);
	write8(&b, CE_ALWAYS);
	expect_cqe(&b, 0, 0);
	expect_none(&a);
	write8(&b, CE_ALWAYS);
	expect_cqe(&b, 1, 0);
	expect_cqe(&a, 1, 0);
}

Test(softnic_sq, wait_over_a_wrap_of_the_cq_index, .init = rc)
{
	pthread_mutex_lock(&sn_dev->lock);
	b.scq.pi = 0xfffffe;
	b.scq.oi = true;
	pthread_mutex_unlock(&sn_dev->lock);
	wait_for(&a, b.scq.cqn, 0xffffff);
	write8(&a, CE_ALWAYS);
	wait_for(&a, b.scq.cqn, 0);
	write8(&a, CE_ALWAYS);
	write8(&b, CE_ALWAYS);
	expect_none(&a);
	write8(&b, CE_ALWAYS);
	expect_cqe(&a, 1, 0);
	expect_none(&a);
	write8(&b, CE_ALWAYS);
	expect_cqe(&a, 3, 0);
}

Test(softnic_sq, wait_for_an_unknown_cq_is_refused, .init = rc)
{
	wait_for(&a, 0xabcdef, 0);
	expect_cqe(&a, 0, SN_SYND_LOC_OP);
}

Test(softnic_sq, wait_without_core_direct_is_refused, .init = rc)
{
	pthread_mutex_lock(&sn_dev->lock);
	sn_dev->cfg.cd = false;
	pthread_mutex_unlock(&sn_dev->lock);
	wait_for(&a, b.scq.cqn, 0);
	expect_cqe(&a, 0, SN_SYND_LOC_OP);
}
