/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The software NIC's engine, driven through rings, DBRECs and doorbell registers as
 * by a program: operations, errors, lost doorbells, CQs and events. The QPs are in one
 * process, or in two processes that are connected by UDP.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine_fake.h"

#define ALL_ACCESS 0xf
#define SIGNAL	   0x08
#define LEN	   20000u /* 20 packets of 1024 bytes, the last one shorter */

static struct fake_qp a, b;
static uint8_t *src, *dst;
static uint32_t lkey, rkey;
static char ip_a[32], ip_b[32];

/* Tests may run in parallel, so each uses addresses derived from its process ID. */
static void addresses(void)
{

	fake_ip(ip_a, 1);
	fake_ip(ip_b, 2);
}

static uint32_t counter(const uint8_t *cqe)
{
	return cqe[60] << 8 | cqe[61];
}

static void buffers(void)
{
	src = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	dst = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (unsigned i = 0; i < 1 << 20; i++)
		src[i] = i * 2654435761u >> 13;
	lkey = fake_mr(src, 1 << 20, ALL_ACCESS);
	rkey = fake_mr(dst, 1 << 20, ALL_ACCESS);
}

static void pair(void)
{
	addresses();
	fake_open(ip_a);
	buffers();
	fake_qp_init(&a, 0x101, 1);
	fake_qp_init(&b, 0x102, 1);
	fake_connect(&a, ip_a, 0x102);
	fake_connect(&b, ip_a, 0x101);
}

static struct fake_wqe rdma(uint8_t opcode, uint32_t off, uint32_t len)
{
	return (struct fake_wqe){ .opcode = opcode,
				  .fm = SIGNAL,
				  .raddr = (uintptr_t)dst + off,
				  .rkey = rkey,
				  .nsge = 1,
				  .sge = { { src + off, len, lkey } } };
}

static void expect_ok(struct fake_qp *q, bool recv, uint32_t index)
{
	uint8_t cqe[64];

	cr_assert(fake_poll(q, recv, cqe, 3000), "no CQE for WQE %u", index);
	cr_assert_lt(cqe[63] >> 4, 13, "error completion: syndrome 0x%02x, vendor 0x%02x", cqe[55],
		     cqe[54]);
	cr_assert_eq(counter(cqe), index);
	cr_assert_eq(sn_get32(cqe + 32), 0x55);
}

static void expect_error(struct fake_qp *q, bool recv, uint32_t index, uint8_t synd)
{
	uint8_t cqe[64];

	cr_assert(fake_poll(q, recv, cqe, 5000), "no CQE for WQE %u", index);
	cr_assert_eq(cqe[63] >> 4, recv ? 14 : 13);
	cr_assert_eq(cqe[55], synd, "got syndrome 0x%02x, expected 0x%02x", cqe[55], synd);
	cr_assert_eq(counter(cqe), index);
}

Test(softnic_engine, icrc_ignores_what_routers_change)
{
	uint8_t h[28] = { 0x45, 0, 0, 48, 0, 0, 0x40, 0, 64, 17 }, bth[20] = { 4, 0, 0xff, 0xff };
	uint32_t good = sn_icrc(h, sizeof(h), bth, sizeof(bth));

	h[1] = 0x20, h[8] = 3, h[10] = 9, h[26] = 7, bth[4] = 0xc0;
	cr_assert_eq(sn_icrc(h, sizeof(h), bth, sizeof(bth)), good);
	h[5] = 1;
	cr_assert_neq(sn_icrc(h, sizeof(h), bth, sizeof(bth)), good);
}

/* The reference CRC, bit by bit, as the standard defines it. */
static uint32_t crc_of(uint32_t reg, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < 8 * len; i++)
		reg = reg >> 1 ^ (((reg ^ p[i / 8] >> i % 8) & 1) ? 0xedb88320 : 0);
	return reg;
}

Test(softnic_engine, icrc_of_every_length)
{
	uint8_t h[28], p[12 + 700], ones[8];

	memset(ones, 0xff, sizeof(ones));
	memset(h, 0xff, sizeof(h)); /* the fields that the ICRC masks are all ones already */
	for (size_t i = 0; i < sizeof(p); i++)
		p[i] = (uint8_t)(i * i * 7 + i / 5);
	p[4] = 0xff;
	for (size_t len = 12; len <= sizeof(p); len += 1)
		cr_assert_eq(sn_icrc(h, sizeof(h), p, len),
			     ~crc_of(crc_of(crc_of(~0u, ones, 8), h, 28), p, len),
			     "wrong ICRC of %zu bytes", len);
}

Test(softnic_engine, write_many_packets, .init = pair, .timeout = 60)
{
	struct fake_wqe w = rdma(SN_OP_WRITE, 0, LEN);

	fake_post(&a, &w);
	expect_ok(&a, false, 0);
	cr_assert_arr_eq(dst, src, LEN);
	cr_assert_eq(dst[LEN], 0);
	fake_close();
}

Test(softnic_engine, many_laps_in_order, .init = pair, .timeout = 60)
{
	unsigned i;

	for (i = 0; i < 1008; i++) {
		struct fake_wqe w = rdma(SN_OP_WRITE, i * 8, 8);

		fake_post(&a, &w);
		if (i % 16 == 15)
			for (unsigned k = i - 15; k <= i; k++)
				expect_ok(&a, false, k & 0xffff);
	}
	for (i = 0; i < 8064; i++)
		cr_assert_eq(dst[i], src[i], "byte %u is wrong", i);
	fake_close();
}

Test(softnic_engine, inline_and_gather, .init = pair, .timeout = 60)
{
	struct fake_wqe w = rdma(SN_OP_WRITE, 0, 0), g = rdma(SN_OP_WRITE, 4096, 5);

	w.nsge = 0;
	w.inl = "thirty-three bytes of inline data";
	w.inl_len = 33;
	fake_post(&a, &w);
	expect_ok(&a, false, 0);
	cr_assert_eq(memcmp(dst, w.inl, 33), 0);
	g.nsge = 3;
	g.sge[1] = g.sge[0], g.sge[1].addr = src + 100, g.sge[1].len = 2000;
	g.sge[2] = g.sge[0], g.sge[2].addr = src + 7;
	fake_post(&a, &g);
	expect_ok(&a, false, 2);
	cr_assert_arr_eq(dst + 4096, src + 4096, 5);
	cr_assert_arr_eq(dst + 4101, src + 100, 2000);
	cr_assert_arr_eq(dst + 6101, src + 7, 5);
	fake_close();
}

Test(softnic_engine, send_waits_for_a_receive, .init = pair, .timeout = 60)
{
	struct fake_wqe w = rdma(SN_OP_SEND_IMM, 0, 3000);
	uint8_t cqe[64];

	w.imm = 0x11223344;
	fake_post(&a, &w);
	cr_assert_not(fake_poll(&a, false, cqe, 20), "SEND completed without a receive");
	fake_recv(&b, dst, 4000, rkey);
	cr_assert(fake_poll(&b, true, cqe, 3000));
	cr_assert_eq(cqe[63] >> 4, 3);
	cr_assert_eq(sn_get32(cqe + 44), 3000);
	cr_assert_eq(memcmp(cqe + 36, &w.imm, 4), 0);
	expect_ok(&a, false, 0);
	cr_assert_arr_eq(dst, src, 3000);
	fake_close();
}

Test(softnic_engine, write_with_immediate_takes_a_receive, .init = pair, .timeout = 60)
{
	struct fake_wqe w = rdma(SN_OP_WRITE_IMM, 0, 5000);
	uint8_t cqe[64];

	fake_recv(&b, NULL, 0, 0x100);
	fake_post(&a, &w);
	expect_ok(&a, false, 0);
	cr_assert(fake_poll(&b, true, cqe, 3000));
	cr_assert_eq(cqe[63] >> 4, 1);
	cr_assert_eq(sn_get32(cqe + 44), 5000);
	cr_assert_arr_eq(dst, src, 5000);
	fake_close();
}

Test(softnic_engine, send_longer_than_its_receive, .init = pair, .timeout = 60)
{
	struct fake_wqe w = rdma(SN_OP_SEND, 0, 3000);

	fake_recv(&b, dst, 2000, rkey);
	fake_recv(&b, dst, 2000, rkey);
	fake_post(&a, &w);
	expect_error(&a, false, 0, SN_SYND_REM_INV);
	expect_error(&b, true, 0, SN_SYND_LOC_LEN);
	expect_error(&b, true, 1, SN_SYND_FLUSH);
	fake_close();
}

Test(softnic_engine, read_and_atomics, .init = pair, .timeout = 60)
{
	struct fake_wqe r = rdma(SN_OP_READ, 0, LEN), f = rdma(SN_OP_FA, 0, 8),
			c = rdma(SN_OP_CS, 0, 8);
	uint64_t *word = (uint64_t *)dst, *old = (uint64_t *)src;

	for (unsigned i = 0; i < LEN; i++)
		dst[i] = i * 7;
	fake_post(&a, &r);
	expect_ok(&a, false, 0);
	cr_assert_arr_eq(src, dst, LEN);

	*word = 1000;
	f.swap = 11;
	fake_post(&a, &f);
	expect_ok(&a, false, 1);
	cr_assert_eq(*old, 1000);
	cr_assert_eq(*word, 1011);

	c.compare = 1011, c.swap = 5;
	fake_post(&a, &c);
	fake_post(&a, &c);
	expect_ok(&a, false, 2);
	expect_ok(&a, false, 3);
	cr_assert_eq(*old, 5);
	cr_assert_eq(*word, 5);
	fake_close();
}

Test(softnic_engine, remote_access_error_and_flush, .init = pair, .timeout = 60)
{
	struct fake_wqe w = rdma(SN_OP_WRITE, 0, 64), bad = rdma(SN_OP_WRITE, 0, LEN);

	bad.raddr = (uintptr_t)dst + (1 << 20) - LEN + 1; /* ends one byte after the region */
	fake_write_wqe(&a, &w);
	fake_write_wqe(&a, &bad);
	fake_write_wqe(&a, &w);
	fake_write_wqe(&a, &w);
	fake_ring(&a);
	expect_ok(&a, false, 0);
	expect_error(&a, false, 1, SN_SYND_REM_ACCESS);
	expect_error(&a, false, 2, SN_SYND_FLUSH);
	expect_error(&a, false, 3, SN_SYND_FLUSH);
	for (unsigned i = 64; i < 1 << 20; i++)
		cr_assert_eq(dst[i], 0, "byte %u written by a refused request", i);
	fake_post(&a, &w);
	expect_error(&a, false, 4, SN_SYND_FLUSH);
	cr_assert_eq(sn_dev->stats.remote_access_errors, 1);
	fake_close();
}

Test(softnic_engine, wrong_local_key, .init = pair, .timeout = 60)
{
	struct fake_wqe w = rdma(SN_OP_WRITE, 0, 64);

	w.sge[0].lkey ^= 1;
	fake_post(&a, &w);
	expect_error(&a, false, 0, SN_SYND_LOC_PROT);
	fake_close();
}

Test(softnic_engine, unmapped_memory_completes_in_error, .init = pair, .timeout = 60)
{
	struct fake_wqe w = rdma(SN_OP_WRITE, 0, 64);

	munmap(src, 1 << 20);
	fake_post(&a, &w);
	expect_error(&a, false, 0, SN_SYND_LOC_PROT);
	fake_close();
}

Test(softnic_engine, unknown_opcode_is_counted, .init = pair, .timeout = 60)
{
	struct fake_wqe w = rdma(0x3e, 0, 64);

	fake_post(&a, &w);
	expect_error(&a, false, 0, SN_SYND_LOC_OP);
	cr_assert_eq(sn_dev->stats.bad_opcode, 1);
	fake_close();
}

Test(softnic_engine, doorbell_beyond_the_written_wqes, .init = pair, .timeout = 60)
{
	a.pi++;
	fake_ring(&a);
	expect_error(&a, false, 0, SN_SYND_LOC_OP);
	cr_assert_eq(sn_dev->stats.db_unwritten_wqe, 1);
	fake_close();
}

Test(softnic_engine, unresponsive_peer_ends_in_a_retry_error, .init = pair, .timeout = 60)
{
	struct fake_wqe w = rdma(SN_OP_WRITE, 0, 64);

	fake_modify(&b, SN_QPS_RST);
	fake_post(&a, &w);
	expect_error(&a, false, 0, SN_SYND_RETRY);
	cr_assert_eq(sn_dev->stats.timeouts, 8);
	fake_close();
}

Test(softnic_engine, lossy_wire_delivers_once, .timeout = 60)
{
	uint64_t *word;
	unsigned i;

	addresses();
	fake_open(ip_a);
	sn_dev->cfg.loss_ppm = sn_dev->cfg.corrupt_ppm = 30000;
	sn_dev->cfg.dup_ppm = sn_dev->cfg.reorder_ppm = 30000;
	buffers();
	fake_qp_init(&a, 0x101, 1);
	fake_qp_init(&b, 0x102, 1);
	a.qp.ack_timeout = 8; /* 1 ms */
	fake_connect(&a, ip_a, 0x102);
	fake_connect(&b, ip_a, 0x101);
	word = (uint64_t *)(dst + 800000);
	for (i = 0; i < 60; i += 3) {
		struct fake_wqe w = rdma(SN_OP_WRITE, i * 1000, LEN),
				r = rdma(SN_OP_READ, i * 1000, LEN), f = rdma(SN_OP_FA, 800000, 8);

		f.swap = 1;
		fake_post(&a, &w);
		fake_post(&a, &f);
		fake_post(&a, &r);
		expect_ok(&a, false, i);
		cr_assert_arr_eq(dst + i * 1000, src + i * 1000, LEN);
		expect_ok(&a, false, i + 1);
		expect_ok(&a, false, i + 2);
	}
	cr_assert_eq(*word, 20, "%lu additions were executed", (unsigned long)*word);
	cr_assert_gt(sn_dev->stats.faults_injected, 10);
	cr_assert_gt(sn_dev->stats.retransmits, 0);
	fake_close();
}

/*
 * Both QPs store to the same doorbell register without a pause, so the second doorbell
 * may overwrite the first before the NIC reads it.
 */
static void ring_both(bool no_dbr, unsigned rounds)
{
	a.qp.no_dbr = b.qp.no_dbr = no_dbr;
	if (no_dbr)
		a.dbr[1] = b.dbr[1] = htobe32(0xdead);
	for (unsigned i = 0; i < rounds; i++) {
		struct fake_wqe w = rdma(SN_OP_WRITE, i * 8, 8);

		fake_write_wqe(&a, &w);
		fake_write_wqe(&b, &w);
		fake_ring(&a);
		fake_ring(&b);
		expect_ok(&a, false, i);
		expect_ok(&b, false, i);
	}
	cr_assert_eq(sn_dev->stats.bad_doorbell, 0);
	fake_close();
}

Test(softnic_engine, overwritten_doorbell_is_found_in_the_dbrec, .init = pair, .timeout = 60)
{
	ring_both(false, 500);
}

Test(softnic_engine, overwritten_doorbell_without_dbrec_is_recovered, .init = pair, .timeout = 60)
{
	ring_both(true, 50);
	cr_assert_gt(sn_dev->stats.db_recovered, 0);
}

Test(softnic_engine, unrung_wqe_of_a_dbrec_less_qp_is_not_executed, .init = pair, .timeout = 60)
{
	struct fake_wqe w = rdma(SN_OP_WRITE, 0, 8);
	uint8_t cqe[64];

	a.qp.no_dbr = true;
	a.dbr[1] = htobe32(1);
	fake_write_wqe(&a, &w);
	cr_assert_not(fake_poll(&a, false, cqe, 100), "WQE executed without a doorbell");
	fake_ring(&a);
	expect_ok(&a, false, 0);
	fake_close();
}

Test(softnic_engine, dbrec_only_mode_ignores_the_register_value, .init = pair, .timeout = 60)
{
	struct fake_wqe w = rdma(SN_OP_WRITE, 0, 8);

	sn_dev->cfg.dbrec_only = true;
	fake_write_wqe(&a, &w);
	fake_ring(&a);
	expect_ok(&a, false, 0);
	fake_close();
}

Test(softnic_engine, full_cq_is_an_overrun, .init = pair, .timeout = 60)
{
	struct fake_wqe w = { .opcode = SN_OP_NOP, .fm = SIGNAL };
	unsigned i;

	for (i = 0; i < 65; i++) {
		fake_post(&a, &w);
		while (i % 32 == 31 && __atomic_load_n(&sn_dev->stats.cqes, __ATOMIC_RELAXED) <= i)
			usleep(1000);
	}
	/* the QP of an overrun CQ must be in error */
	while (__atomic_load_n(&a.qp.state, __ATOMIC_RELAXED) != SN_QPS_ERR)
		usleep(1000);
	cr_assert_eq(sn_dev->stats.cq_overrun, 1);
	cr_assert_eq(a.scq.error, SN_CQ_OVERRUN);
	cr_assert_eq(b.qp.state, SN_QPS_RTS, "a QP of another CQ must not be affected");
	fake_close();
}

static uint16_t last_index(void)
{
	return be32toh(__atomic_load_n((uint32_t *)(void *)(a.scqe + 60), __ATOMIC_ACQUIRE)) >> 16;
}

Test(softnic_engine, collapsed_cq_reports_the_last_index, .init = pair, .timeout = 60)
{
	struct fake_wqe w = { .opcode = SN_OP_NOP, .fm = SIGNAL };
	unsigned i;

	a.scq.cc = a.scq.oi = true;
	for (i = 0; i < 200; i++) {
		fake_post(&a, &w);
		while ((i % 32 == 31 || i == 199) && last_index() != i)
			usleep(100);
	}
	cr_assert_eq(a.scqe[64], 0xf1, "the second CQ entry was written");
	fake_close();
}

/* Forks the process that plays the other host. It serves until the parent closes the pipe. */
static pid_t other_host(int *stop)
{
	int fd[2];
	char c;

	cr_assert_eq(pipe(fd), 0);
	pid_t pid = fork();
	if (pid) {
		close(fd[0]);
		*stop = fd[1];
		return pid;
	}
	close(fd[1]);
	fake_open(ip_b);
	fake_mr(src, 1 << 20, ALL_ACCESS); /* gets the same keys as in the parent */
	fake_mr(dst, 1 << 20, ALL_ACCESS);
	fake_qp_init(&b, 0x102, 1);
	fake_connect(&b, ip_a, 0x101);
	if (read(fd[0], &c, 1) < 0)
		_exit(1);
	_exit(sn_dev->stats.icrc_errors != 0);
}

Test(softnic_engine, two_processes_over_udp, .timeout = 60)
{
	struct fake_wqe w, r;
	int stop, status;
	unsigned i;
	pid_t pid;

	addresses();
	src = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	dst = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < 1 << 20; i++)
		src[i] = i * 2654435761u >> 11;
	pid = other_host(&stop);
	fake_open(ip_a);
	lkey = fake_mr(src, 1 << 20, ALL_ACCESS);
	rkey = fake_mr(dst, 1 << 20, ALL_ACCESS);
	fake_qp_init(&a, 0x101, 1);
	fake_connect(&a, ip_b, 0x102);
	w = rdma(SN_OP_WRITE, 0, 500000);
	fake_post(&a, &w);
	expect_ok(&a, false, 0);
	cr_assert_arr_eq(dst, src, 500000);
	r = rdma(SN_OP_READ, 0, 500000);
	memset(src, 0, 500000);
	fake_post(&a, &r);
	expect_ok(&a, false, 1);
	cr_assert_arr_eq(dst, src, 500000);
	cr_assert_gt(sn_dev->stats.rx_packets, 0);
	close(stop);
	waitpid(pid, &status, 0);
	cr_assert_eq(status, 0, "the other host received wrong ICRCs");
	fake_close();
}

static void arm(struct fake_qp *q, uint32_t sn, uint32_t ci)
{
	uint8_t db[8];
	uint64_t v;

	__atomic_store_n(&q->dbr[3], htobe32(sn << 28 | ci), __ATOMIC_RELEASE);
	sn_put32(db, sn << 28 | ci);
	sn_put32(db + 4, q->scq.cqn);
	memcpy(&v, db, 8);
	__atomic_store_n((uint64_t *)(void *)(q->uar + 0x20), v, __ATOMIC_RELEASE);
}

static unsigned events_now(void)
{
	unsigned n;

	pthread_mutex_lock(&sn_dev->lock);
	n = fake_events;
	pthread_mutex_unlock(&sn_dev->lock);
	return n;
}

/* Waits for n events in all; no further one may follow. */
static void expect_events(unsigned n)
{
	while (events_now() < n)
		usleep(1000);
	usleep(20000);
	cr_assert_eq(events_now(), n);
}

Test(softnic_engine, one_event_per_arm_even_if_arms_overwrite, .init = pair, .timeout = 60)
{
	struct fake_wqe w = rdma(SN_OP_WRITE, 0, 8);

	pthread_mutex_lock(&sn_dev->lock);
	a.scq.channel = b.scq.channel = (void *)&a;
	pthread_mutex_unlock(&sn_dev->lock);
	arm(&a, 0, 0);
	arm(&b, 0, 0); /* uses the same register, so the first arm may be overwritten */
	expect_events(0);
	fake_post(&a, &w);
	fake_post(&b, &w);
	expect_ok(&a, false, 0);
	expect_ok(&b, false, 0);
	expect_events(2);
	fake_post(&a, &w);
	expect_ok(&a, false, 1);
	expect_events(2); /* the CQ was not armed */
	arm(&a, 1, 1); /* the consumer index is one completion behind, so the event comes at once */
	arm(&b, 1, 1);
	expect_events(3);
	fake_close();
}

Test(softnic_engine, fence_waits_for_the_read, .init = pair, .timeout = 60)
{
	struct fake_wqe r = rdma(SN_OP_READ, 0, LEN), w = rdma(SN_OP_WRITE, 0, LEN);

	/* The fenced WRITE must send the data that the READ returned. */
	memset(dst, 0x5a, LEN);
	w.fm |= 4 << 5;
	w.raddr += 100000;
	fake_write_wqe(&a, &r);
	fake_write_wqe(&a, &w);
	fake_ring(&a);
	expect_ok(&a, false, 0);
	expect_ok(&a, false, 1);
	cr_assert_eq(dst[100000], 0x5a);
	cr_assert_eq(dst[100000 + LEN - 1], 0x5a);
	fake_close();
}

Test(softnic_engine, local_operations_complete_in_order, .init = pair, .timeout = 60)
{
	struct fake_wqe w = rdma(SN_OP_WRITE, 0, LEN), nop = { .opcode = SN_OP_NOP },
			dump = { .opcode = SN_OP_DUMP, .fm = SIGNAL, .nsge = 1 };

	dump.sge[0] = w.sge[0];
	fake_write_wqe(&a, &w);
	fake_write_wqe(&a, &nop); /* not signalled */
	fake_write_wqe(&a, &dump);
	fake_ring(&a);
	expect_ok(&a, false, 0);
	expect_ok(&a, false, 2);
	fake_close();
}
