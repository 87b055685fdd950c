/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The software NIC's copy engine: MMO requests written as bytes to the ring. The layout is that of
 * struct mlx5_mmo_wqe (providers/mlx5/wqe.h of rdma-core 44).
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine_fake.h"

#define SIZE	  (3u << 20)
#define CE_ALWAYS 0x08
#define RESULT_AT 64u

static struct fake_qp a;
static uint8_t *mem, *to;
static uint32_t lkey, tkey;

/* The words of a WQE; init() fills in a valid copy of 4096 bytes. */
static struct {
	uint8_t modifier, ds, fm;
	uint32_t control, result_key, len, to_len, from_key, to_key;
	uint64_t result, from, to;
} w;

static void init(void)
{
	unsigned i;
	char ip[32];

	fake_ip(ip, 1);
	fake_open(ip);
	sn_dev->cfg.dma = SN_DMA_QP;
	sn_dev->cfg.dma_max = 31;
	mem = aligned_alloc(4096, SIZE);
	to = aligned_alloc(4096, SIZE);
	memset(to, 0, SIZE);
	for (i = 0; i < SIZE; i++)
		mem[i] = (uint8_t)(i * 2654435761u >> 13);
	lkey = fake_mr(mem, SIZE, 0);
	tkey = fake_mr(to, SIZE, 1);
	fake_qp_init(&a, 0x101, 1);
	fake_connect(&a, ip, 0x101);
	a.qp.mmo = true;
	memset(&w, 0, sizeof(w));
	w.modifier = 1;
	w.ds = 4;
	w.fm = CE_ALWAYS;
	w.result_key = w.to_key = tkey;
	w.result = (uintptr_t)to + RESULT_AT;
	w.len = w.to_len = 4096;
	w.from_key = lkey;
	w.from = (uintptr_t)mem;
	w.to = (uintptr_t)to + 4096;
}

TestSuite(softnic_dma, .init = init, .fini = fake_close, .timeout = 60);

static void piece(uint8_t *s, uint32_t first, uint32_t key, uint64_t addr)
{
	sn_put32(s, first);
	sn_put32(s + 4, key);
	sn_put64(s + 8, addr);
}

static void post(void)
{
	uint8_t *s = a.sq + a.pi % FAKE_DEPTH * 64;

	memset(s, 0, 64);
	sn_put32(s, (uint32_t)w.modifier << 24 | (a.pi & 0xffff) << 8 | 0x2f);
	sn_put32(s + 4, a.qp.qpn << 8 | w.ds);
	sn_put32(s + 8, w.fm);
	piece(s + 16, w.control, w.result_key, w.result);
	piece(s + 32, w.len, w.from_key, w.from);
	piece(s + 48, w.to_len, w.to_key, w.to);
	a.pi += w.ds > 4 ? 2 : 1;
	fake_ring(&a);
}

/* Expects the CQE of one copy; synd 0: success. */
static void expect(uint8_t synd)
{
	uint8_t cqe[64];

	cr_assert(fake_poll(&a, false, cqe, 10000), "no CQE");
	cr_expect_eq(cqe[63] >> 4, synd ? 13 : 0, "opcode of the CQE: %u", cqe[63] >> 4);
	cr_expect_eq(cqe[56], 0x2f, "opcode of the WQE in the CQE: %#x", cqe[56]);
	if (synd)
		cr_expect_eq(cqe[55], synd, "syndrome %#x, expected %#x", cqe[55], synd);
}

Test(softnic_dma, copies_and_writes_the_result_before_the_cqe)
{
	unsigned i;

	post();
	expect(0);
	cr_expect_arr_eq(to + 4096, mem, 4096);
	cr_expect_eq(to[4095] | to[8192], 0, "only the destination is written");
	for (i = 1; i < 64 && to[RESULT_AT + i] == to[RESULT_AT]; i++)
		;
	cr_expect(i == 64 && to[RESULT_AT], "64 bytes of result");
	cr_expect_eq(to[RESULT_AT - 1] | to[RESULT_AT + 64], 0);
	cr_expect_eq(sn_dev->stats.dma_copies, 1);
	cr_expect_eq(sn_dev->stats.dma_bytes, 4096);
	cr_expect_eq(sn_dev->stats.tx_packets, 0);
}

Test(softnic_dma, long_copies_take_several_passes_and_complete_in_order)
{
	w.len = w.to_len = SIZE - 8192;
	w.to = (uintptr_t)to + 8192;
	post();
	w.len = w.to_len = 1;
	w.from = (uintptr_t)mem + 17;
	w.to = (uintptr_t)to;
	post();
	expect(0);
	expect(0);
	cr_expect_arr_eq(to + 8192, mem, SIZE - 8192);
	cr_expect_eq(to[0], mem[17]);
}

Test(softnic_dma, length_0_means_2_gib)
{
	w.len = w.to_len = 0; /* more than the region has */
	post();
	expect(SN_SYND_LOC_PROT);
}

Test(softnic_dma, a_copy_longer_than_the_capability_is_a_length_error)
{
	sn_dev->cfg.dma_max = 12;
	post();
	expect(0);
	w.len = w.to_len = 4097;
	post();
	expect(SN_SYND_LOC_LEN);
}

Test(softnic_dma, every_queue_pair_may_copy_with_capability_sq)
{
	sn_dev->cfg.dma = SN_DMA_SQ;
	a.qp.mmo = false;
	post();
	expect(0);
}

static void refused(const char *what, uint64_t *count)
{
	uint64_t before = *count;

	post();
	expect(SN_SYND_LOC_OP);
	cr_expect_eq(*count, before + 1, "%s: not counted", what);
	cr_expect_eq(to[4096], 0, "%s: nothing is copied", what);
}

Test(softnic_dma, a_queue_pair_without_permission_is_refused)
{
	a.qp.mmo = false;
	refused("no permission", &sn_dev->stats.bad_opcode);
}

Test(softnic_dma, a_device_without_engine_refuses)
{
	sn_dev->cfg.dma = SN_DMA_NONE;
	refused("no engine", &sn_dev->stats.bad_opcode);
}

Test(softnic_dma, another_modifier_is_refused)
{
	w.modifier = 0;
	refused("modifier 0", &sn_dev->stats.bad_reserved);
}

Test(softnic_dma, another_control_word_is_refused)
{
	w.control = 1;
	refused("control word 1", &sn_dev->stats.bad_reserved);
}

Test(softnic_dma, another_size_is_refused)
{
	w.ds = 3;
	refused("three segments", &sn_dev->stats.bad_reserved);
}

Test(softnic_dma, two_lengths_are_refused)
{
	w.to_len = 4095;
	refused("two lengths", &sn_dev->stats.bad_reserved);
}

static void unprotected(const char *what)
{
	post();
	expect(SN_SYND_LOC_PROT);
	cr_expect_eq(sn_dev->stats.local_prot_errors, 1, "%s", what);
	cr_expect_eq(to[4096], 0, "%s: nothing is copied", what);
	cr_expect_eq(a.qp.state, SN_QPS_ERR, "%s: the queue pair is in error", what);
}

Test(softnic_dma, a_target_without_local_write_is_a_protection_error)
{
	w.to_key = lkey;
	w.to = (uintptr_t)mem;
	unprotected("target");
}

Test(softnic_dma, a_result_without_local_write_is_a_protection_error)
{
	w.result_key = lkey;
	w.result = (uintptr_t)mem;
	unprotected("result");
}

Test(softnic_dma, a_source_out_of_bounds_is_a_protection_error)
{
	w.from = (uintptr_t)mem + SIZE - 4095;
	unprotected("source");
}

Test(softnic_dma, a_target_out_of_bounds_is_a_protection_error)
{
	w.to = (uintptr_t)to + SIZE - 4095;
	unprotected("target");
}

Test(softnic_dma, an_unknown_key_is_a_protection_error)
{
	w.from_key = 0x7777;
	unprotected("key");
}

/* The fault of --err-after ends the queue pair after a copy as after any message. */
Test(softnic_dma, injected_errors_follow_copies)
{
	uint8_t cqe[64];

	sn_dev->cfg.err_after = 1;
	post();
	expect(0);
	post();
	cr_assert(fake_poll(&a, false, cqe, 10000));
	cr_expect_eq(cqe[55], SN_SYND_FLUSH);
	cr_expect_eq(sn_dev->stats.faults_injected, 1);
}
