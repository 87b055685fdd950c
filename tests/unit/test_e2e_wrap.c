/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Wrap-around of the send ring and of the 16-bit WQE index, with rings of 2, 64 and
 * 32768 slots. Before the first put, every slot holds a WQE that looks valid (right
 * QP, keys, index) and would write to a trap area. A NIC that executes a slot
 * before its doorbell changes the trap area.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/e2e.h"

#define WQES  (3u * 65536u + 17u)
#define WORDS 4096u
#define TRAP  (WORDS * 8u) /* offset of the trap in dst */
#define BYTES (TRAP + 4096u)

static void put_be32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, 4);
}

static void put_be64(uint8_t *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, 8);
}

/* Fills each slot with an RDMA write of 64 bytes to the trap area. */
static void plant(struct e2e_pair *p, uint32_t depth)
{
	for (uint32_t idx = 0; idx < depth; idx++) {
		uint8_t *w = p->tx.dev->sq_wqe_daddr + (size_t)idx * 64;

		memset(w, 0, 64);
		put_be32(w, idx << 8 | 0x08);
		put_be32(w + 4, p->tx.qpn << 8 | 3);
		w[11] = 0x08;
		put_be64(w + 16, (uintptr_t)p->dst.mem + TRAP);
		put_be32(w + 24, p->dst.mr->rkey);
		put_be32(w + 32, 64);
		put_be32(w + 36, p->src.mr->lkey);
		put_be64(w + 40, (uintptr_t)p->src.mem + TRAP);
	}
}

static void wrap(enum doca_gpu_dev_verbs_nic_handler handler, uint32_t depth, uint32_t wqes)
{
	uint64_t *src, *dst;
	struct gdk_qp_counters c;
	doca_gpu_dev_verbs_ticket_t t = 0;
	struct e2e_pair p;
	uint32_t i;

	e2e_pair_open(&p, handler, depth, BYTES);
	cr_assert_eq(p.tx.dev->sq_wqe_num, depth);
	src = (uint64_t *)p.src.mem;
	dst = (uint64_t *)p.dst.mem;
	memset(p.src.mem + TRAP, 0xbd, 64);
	plant(&p, depth);
	for (i = 0; i < wqes; i++) {
		uint32_t w = i % WORDS;

		/* Puts from the source words may be in flight; wait before the words are reused. */
		if (w == 0 && i)
			cr_assert_eq(e2e_wait(&p.tx, t), 0, "wait before put %u failed", i);
		src[w] = 0x0123456700000000ull + i;
		cr_assert_eq(e2e_put(&p, (size_t)w * 8, 8, &t), 0, "put %u failed", i);
		cr_assert_eq(t, i, "ticket of put %u is %lu", i, (unsigned long)t);
	}
	cr_assert_eq(e2e_wait(&p.tx, t), 0);
	for (i = wqes > WORDS ? wqes - WORDS : 0; i < wqes; i++)
		cr_assert_eq(dst[i % WORDS], 0x0123456700000000ull + i, "put %u did not arrive", i);
	for (i = 0; i < 4096; i++)
		cr_assert_eq(p.dst.mem[TRAP + i], 0, "a planted WQE was executed");
	cr_assert_eq(gdk_verbs_qp_get_counters(p.tx.hl->qp_gverbs, &c), DOCA_SUCCESS);
	cr_expect_eq(c.wqes_reserved, wqes);
	cr_expect_eq(c.completions, wqes);
	cr_expect_eq(c.status, 0);
	e2e_pair_close(&p);
}

static uint32_t laps(void)
{
	return getenv("GDAKI_TEST_SHORT") ? 70000u : WQES;
}

Test(e2e_wrap, ring_of_2)
{
	wrap(E2E_DB, 2, laps());
}

Test(e2e_wrap, ring_of_64)
{
	wrap(E2E_DB, 64, laps());
}

Test(e2e_wrap, ring_of_32768)
{
	wrap(E2E_DB, 32768, laps());
}

Test(e2e_wrap, ring_of_64_by_proxy)
{
	wrap(E2E_PROXY, 64, 70000);
}

Test(e2e_wrap, ring_of_64_without_dbrec)
{
	E2E_NEEDS_NO_DBR();
	wrap(E2E_NO_DBR, 64, 70000);
}

/* Depths above 32768 round up to 65536, which the 16-bit field cannot hold. Depth 0 is invalid. */
Test(e2e_wrap, too_large_depths_are_refused)
{
	struct e2e_nic nic;
	struct e2e_qp qp;

	e2e_open(&nic);
	cr_expect_neq(e2e_qp_try(&nic, &qp, E2E_DB, 32769, false), DOCA_SUCCESS);
	cr_expect_neq(e2e_qp_try(&nic, &qp, E2E_DB, 65535, false), DOCA_SUCCESS);
	cr_expect_neq(e2e_qp_try(&nic, &qp, E2E_DB, 0, false), DOCA_SUCCESS);
	e2e_close(&nic);
}
