/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Ethernet send queues: WQEs with random bytes. Each one is either sent, as frames that fit the
 * port, or completes with an error; nothing crashes, leaks or waits for ever.
 */
#include "../softnic/eth_wqe.h"
#include "eth_sq_rig.h"

TestSuite(eth_send_random, .init = sq_rig, .fini = sq_fini, .timeout = 60);

#define ROUNDS 40000
/* for a TSO WQE of 256 KiB with segments of one byte */
#define PASSES (SN_ETH_LSO_MAX / SN_ETH_PASS_FRAMES + 8)

static uint64_t state = 12345;

static uint32_t rnd(uint32_t n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33) % n;
}

/* Usually a valid WQE of a random kind. */
static void make_wqe(void)
{
	static const uint8_t opcodes[] = { SN_OP_SEND, SN_OP_TSO, SN_OP_EMPW, SN_OP_NOP };
	uint8_t opcode = opcodes[rnd(4)], hdr[128];
	uint32_t head = make_headers(hdr, rnd(2) ? 4 : 6, opcode == SN_OP_TSO ? 6 : 17, rnd(3), 60);

	begin(opcode, CE_ALWAYS);
	if (opcode == SN_OP_NOP)
		return;
	if (opcode == SN_OP_EMPW)
		eseg(rnd(4) << 6, 0, NULL, 0);
	else if (opcode == SN_OP_TSO)
		eseg(rnd(4) << 6, 1 + rnd(1400), hdr, head);
	else if (rnd(2))
		eseg(rnd(4) << 6, 0, hdr, 1 + rnd(head));
	else
		eseg(rnd(4) << 6, 0, NULL, 0);
	for (unsigned i = rnd(5); i; i--)
		if (rnd(2))
			data(mem + rnd(1000), 14 + rnd(300));
		else
			inline_data(mem, 14 + rnd(60));
}

static void damage(void)
{
	unsigned i;

	wqe[7] = (wqe_len + 15) / 16;
	for (i = rnd(4); i; i--)
		wqe[rnd(4) ? 16 + rnd(wqe_len) : rnd(16)] ^= rnd(2) ? 1u << rnd(8) : 1 + rnd(255);
}

static void restart(void)
{
	fake_modify(&a, SN_QPS_RST);
	a.pi = 0;
	a.dbr[1] = 0;
	fake_modify(&a, SN_QPS_RTS);
}

static void check_frames(void)
{
	while (nsent) {
		cr_assert_geq(sent[nsent - 1]->len, SN_ETH_FRAME_MIN);
		cr_assert_leq(sent[nsent - 1]->len, 1500 + 14 + 12);
		__wrap_sn_frame_put(NULL, sent[--nsent]);
	}
	cr_assert_eq(nframes, 0);
}

Test(eth_send_random, damaged_wqes_are_sent_or_refused)
{
	unsigned i, n, errors = 0;
	uint8_t cqe[64];

	for (i = 0; i < ROUNDS; i++) {
		uint64_t done = a.qp.stats.wqes;

		eth.min_inline = rnd(8) ? 0 : rnd(4);
		make_wqe();
		damage();
		n = (wqe_len + 63) / 64;
		for (unsigned k = 0; k < wqe_len; k++)
			a.sq[(a.pi * 64 + k) % (FAKE_DEPTH * 64)] = wqe[k];
		a.pi += n;
		fake_ring(&a);
		for (unsigned k = 0; !k || (k < PASSES && !sn_eth_sq_idle(a.qp.eng)); k++) {
			pass(1);
			check_frames();
		}
		cr_assert_gt(a.qp.stats.wqes, done, "round %u: no WQE was executed", i);
		cr_assert(sn_eth_sq_idle(a.qp.eng), "round %u does not end", i);
		while (fake_poll(&a, false, cqe, 0))
			;
		if (a.qp.state == SN_QPS_ERR) {
			errors++;
			restart();
		}
	}
	cr_assert_gt(errors, ROUNDS / 10);
	cr_assert_lt(errors, ROUNDS - ROUNDS / 10);
}
