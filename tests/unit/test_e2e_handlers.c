/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Puts through each doorbell handler, to a QP of the same process and to a QP of
 * another process: every byte must arrive, and no other byte may change. Also the
 * bytes that each handler writes to the register, the DBREC or the proxy's counter.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "../lib/e2e.h"

#define BYTES 65536u
#define GUARD 4096u

/*
 * Makes puts of many sizes and alignments to consecutive ranges of dst, from offset
 * GUARD on. Returns the end of the written range.
 */
static size_t put_sizes(struct e2e_pair *p)
{
	static const size_t sizes[] = {
		1,  2,	 3,   7,   8,	 15,   16,   28,   29,	 63,   64,
		65, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 9000
	};
	doca_gpu_dev_verbs_ticket_t t = 0;
	size_t off = GUARD, i = 0;

	while (off + 9000 < BYTES - GUARD) {
		size_t len = sizes[i++ % (sizeof(sizes) / sizeof(sizes[0]))];

		cr_assert_eq(e2e_put(p, off, len, &t), 0);
		off += len;
	}
	cr_assert_eq(e2e_wait(&p->tx, t), 0);
	return off;
}

static void check_bytes(const struct e2e_pair *p, size_t from, size_t to)
{
	for (size_t i = 0; i < BYTES; i++) {
		uint8_t want = i >= from && i < to ? e2e_pattern(i, 1) : 0xee;

		cr_assert_eq(p->dst.mem[i], want, "byte %zu is 0x%02x, expected 0x%02x", i,
			     p->dst.mem[i], want);
	}
}

static void fill(struct e2e_pair *p)
{
	for (size_t i = 0; i < BYTES; i++)
		p->src.mem[i] = e2e_pattern(i, 1);
	memset(p->dst.mem, 0xee, BYTES);
}

static void deliver(enum doca_gpu_dev_verbs_nic_handler handler,
		    enum doca_gpu_dev_verbs_nic_handler expected)
{
	struct gdk_qp_counters c;
	struct e2e_pair p;
	size_t end;

	e2e_pair_open(&p, handler, 64, BYTES);
	cr_assert_eq(p.tx.hl->nic_handler, expected);
	cr_assert_eq(p.tx.dev->nic_handler, expected);
	cr_expect_eq(!!(p.tx.dev->gdk_state->flags & GDK_QPF_BLUEFLAME), expected == E2E_BF);
	fill(&p);
	end = put_sizes(&p);
	check_bytes(&p, GUARD, end);
	e2e_proxy_end(&p.tx); /* it counts a doorbell after it rang it */
	cr_assert_eq(gdk_verbs_qp_get_counters(p.tx.hl->qp_gverbs, &c), DOCA_SUCCESS);
	cr_expect_eq(c.status, 0);
	cr_expect_eq(c.completions, c.wqes_reserved);
	cr_expect_gt(c.doorbells, 0);
	if (expected == E2E_NO_DBR)
		cr_expect_eq(c.dbrec_updates, 0);
	else
		cr_expect_gt(c.dbrec_updates, 0);
	e2e_pair_close(&p);
}

Test(e2e_handlers, auto_picks_gpu_sm_db)
{
	deliver(E2E_AUTO, E2E_DB);
}

Test(e2e_handlers, cpu_proxy_delivers)
{
	deliver(E2E_PROXY, E2E_PROXY);
}

Test(e2e_handlers, gpu_sm_db_delivers)
{
	deliver(E2E_DB, E2E_DB);
}

Test(e2e_handlers, gpu_sm_bf_delivers)
{
	deliver(E2E_BF, E2E_BF);
}

Test(e2e_handlers, gpu_sm_no_dbr_delivers)
{
	E2E_NEEDS_NO_DBR();
	deliver(E2E_NO_DBR, E2E_NO_DBR);
}

/*
 * Neither the device functions nor the NIC may use the DBREC of a DBREC-less QP.
 * The test fills it with an invalid value: the value must not change, and data must
 * arrive.
 */
Test(e2e_handlers, no_dbr_works_with_a_poisoned_dbrec)
{
	struct e2e_pair p;
	uint32_t *dbrec;
	size_t end;

	E2E_NEEDS_NO_DBR();
	e2e_pair_open(&p, E2E_NO_DBR, 64, BYTES);
	dbrec = (uint32_t *)p.tx.dev->sq_dbrec - 1;
	dbrec[0] = dbrec[1] = 0xdeadbeef;
	fill(&p);
	end = put_sizes(&p);
	check_bytes(&p, GUARD, end);
	cr_expect_eq(dbrec[0], 0xdeadbeef);
	cr_expect_eq(dbrec[1], 0xdeadbeef);
	e2e_pair_close(&p);
}

/*
 * qp is a copy of the device struct, which is permitted. Register and DBREC, whose addresses are
 * also in the state block, are in ordinary memory, so that the test sees every byte that is
 * written.
 */
struct captured {
	struct e2e_pair p;
	struct doca_gpu_dev_verbs_qp qp;
	_Alignas(4096) uint64_t reg[1024];
	uint32_t dbrec[16];
};

static struct captured captured;

static void capture_open(enum doca_gpu_dev_verbs_nic_handler handler)
{
	e2e_pair_open(&captured.p, handler, 64, BYTES);
	e2e_proxy_end(&captured.p.tx);
	captured.qp = *captured.p.tx.dev;
	memset(captured.reg, 0x5a, sizeof(captured.reg));
	memset(captured.dbrec, 0xa5, sizeof(captured.dbrec));
	captured.qp.sq_db = &captured.reg[16];
	captured.qp.sq_dbrec = (__be32 *)&captured.dbrec[5];
	gdk_qp_state_bind(captured.qp.gdk_state, &captured.qp);
	if (handler == E2E_PROXY)
		captured.reg[16] = 0;
}

static void capture_post(unsigned int n)
{
	doca_gpu_dev_verbs_ticket_t t;

	while (n--)
		cr_assert_eq(gdk_put(&captured.qp,
				     e2e_addr(captured.p.dst.mem, captured.p.dst.mr->rkey),
				     e2e_addr(captured.p.src.mem, captured.p.src.mr->lkey), 8, &t,
				     gdk_how(E2E_MODE, E2E_AUTO,
					     DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0)),
			     0);
}

/*
 * Word 5 of captured.dbrec is the send word: it must hold the producer index. The
 * other words must not change.
 */
static void expect_dbrec(uint32_t pi)
{
	for (unsigned int i = 0; i < 16; i++)
		cr_expect_eq(captured.dbrec[i], i == 5 ? htobe32(pi) : 0xa5a5a5a5u,
			     "DBREC word %u is 0x%08x", i, captured.dbrec[i]);
}

static void expect_reg_only(size_t first, size_t bytes)
{
	const uint8_t *b = (const uint8_t *)captured.reg;

	for (size_t i = 0; i < sizeof(captured.reg); i++)
		if (i < first || i >= first + bytes)
			cr_assert_eq(b[i], 0x5a, "byte %zu of the register page was written", i);
}

static void expect_doorbell(uint32_t pi)
{
	const uint8_t *b = (const uint8_t *)&captured.reg[16];
	uint32_t qpn = captured.p.tx.qpn;
	uint8_t want[8] = { 0,
			    (uint8_t)(pi >> 8),
			    (uint8_t)pi,
			    0,
			    (uint8_t)(qpn >> 16),
			    (uint8_t)(qpn >> 8),
			    (uint8_t)qpn,
			    0 };

	for (unsigned int i = 0; i < 8; i++)
		cr_expect_eq(b[i], want[i], "doorbell byte %u is 0x%02x, expected 0x%02x", i, b[i],
			     want[i]);
}

Test(e2e_handlers, gpu_sm_db_writes_dbrec_and_register)
{
	capture_open(E2E_DB);
	capture_post(3);
	expect_dbrec(3);
	expect_doorbell(3);
	expect_reg_only(16 * 8, 8);
}

Test(e2e_handlers, gpu_sm_no_dbr_writes_only_the_register)
{
	E2E_NEEDS_NO_DBR();
	capture_open(E2E_NO_DBR);
	capture_post(2);
	expect_doorbell(2);
	expect_reg_only(16 * 8, 8);
	for (unsigned int i = 0; i < 16; i++)
		cr_expect_eq(captured.dbrec[i], 0xa5a5a5a5u);
}

Test(e2e_handlers, cpu_proxy_writes_only_the_counter)
{
	capture_open(E2E_PROXY);
	capture_post(5);
	cr_expect_eq(captured.reg[16], 5);
	expect_reg_only(16 * 8, 8);
	for (unsigned int i = 0; i < 16; i++)
		cr_expect_eq(captured.dbrec[i], 0xa5a5a5a5u);
}

/* Puts 8 bytes without a doorbell, and submits the WQE by BlueFlame. Returns its slot. */
static const void *post_bf(gdk_mode_t mode)
{
	doca_gpu_dev_verbs_ticket_t t;
	const void *wqe;

	cr_assert_eq(gdk_put(&captured.qp, e2e_addr(captured.p.dst.mem, captured.p.dst.mr->rkey),
			     e2e_addr(captured.p.src.mem, captured.p.src.mr->lkey), 8, &t,
			     gdk_how(mode, E2E_AUTO, GDK_THREAD, GDK_OPT_SKIP_DB)),
		     0);
	wqe = gdk_get_wqe_ptr(&captured.qp, t);
	gdk_submit_bf(&captured.qp, t + 1, wqe, gdk_how(mode, E2E_AUTO, GDK_THREAD, 0));
	return wqe;
}

/* BlueFlame stores the DBREC and writes only the 64 bytes of the WQE to the register page, to its
 * two halves in turn. */
Test(e2e_handlers, gpu_sm_bf_writes_the_wqe)
{
	const uint8_t *page = (const uint8_t *)captured.reg;
	const void *wqe;

	capture_open(E2E_BF);
	captured.qp.sq_db = &captured.reg[0x800 / 8];
	gdk_qp_state_bind(captured.qp.gdk_state, &captured.qp);
	wqe = post_bf(E2E_MODE);
	expect_dbrec(1);
	cr_expect_eq(memcmp(page + 0x800, wqe, 64), 0, "the register does not hold the WQE");
	expect_reg_only(0x800, 64);
	memset(captured.reg, 0x5a, sizeof(captured.reg));
	wqe = post_bf(E2E_EXCL);
	expect_dbrec(2);
	cr_expect_eq(memcmp(page + 0x900, wqe, 64), 0, "the register does not hold the WQE");
	for (size_t i = 0; i < 4096; i++)
		if (i < 0x900 || i >= 0x940)
			cr_assert_eq(page[i], 0x5a, "byte %zu of the page was written", i);
}

/* The target QP is in another process, which has its own software NIC. */
static void deliver_to_peer(enum doca_gpu_dev_verbs_nic_handler handler)
{
	/* The ACK timeout is 4.096 us << 17 = 0.5 s, and each packet is sent up to 8 times: the
	 * peer process answers in time even if other processes use both processors. */
	struct e2e_path path = { .ack_timeout = 17, .retry_cnt = 7 };
	doca_gpu_dev_verbs_ticket_t t = 0;
	struct e2e_peer peer;
	struct e2e_buf src;
	struct e2e_nic nic;
	struct e2e_qp qp;

	e2e_peer_start(&peer, BYTES);
	e2e_open(&nic);
	cr_assert_neq(memcmp(&nic.gid, &peer.gid, 16), 0, "both processes have the same GID");
	e2e_qp_open(&nic, &qp, handler, 128);
	if (handler == E2E_PROXY)
		e2e_proxy_begin(&qp);
	e2e_buf_open(&nic, &src, BYTES, IBV_ACCESS_LOCAL_WRITE);
	for (size_t i = 0; i < BYTES; i++)
		src.mem[i] = e2e_pattern(i, 7);
	memset(peer.mem, 0, BYTES);
	e2e_peer_connect(&peer, &nic.gid, qp.qpn);
	cr_assert_eq(e2e_connect(&nic, qp.hl->qp, &peer.gid, peer.qpn, path), DOCA_SUCCESS);
	for (size_t off = 0; off < BYTES; off += 512)
		cr_assert_eq(gdk_put(qp.dev, e2e_addr((void *)(peer.addr + off), peer.rkey),
				     e2e_addr(src.mem + off, src.mr->lkey), 512, &t,
				     gdk_how(E2E_MODE, E2E_AUTO,
					     DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0)),
			     0);
	cr_assert_eq(e2e_wait(&qp, t), 0);
	for (size_t i = 0; i < BYTES; i++)
		cr_assert_eq(peer.mem[i], e2e_pattern(i, 7), "byte %zu is wrong", i);
	e2e_qp_close(&qp);
	e2e_buf_close(&src);
	e2e_close(&nic);
	e2e_peer_end(&peer);
}

Test(e2e_handlers, every_handler_reaches_another_process)
{
	deliver_to_peer(E2E_DB);
	deliver_to_peer(E2E_PROXY);
	deliver_to_peer(E2E_BF);
}

Test(e2e_handlers, no_dbr_reaches_another_process)
{
	E2E_NEEDS_NO_DBR();
	deliver_to_peer(E2E_NO_DBR);
}
