/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Faults that the software NIC injects on request: loss, duplicates, corruption,
 * reordering, delay, stalls, errors. Each kind must occur, also between QPs of one
 * process, and the same seed must cause the same losses.
 */
#include <stdlib.h>

#include "wire_peer.h"

#define SIZE   65536u
#define N      48u /* messages; they fit the queues of the fake front */
#define ALWAYS 1000000u
#define SIGNAL 0x08

static struct fake_qp a, b;
static uint8_t *mem, *far;
static uint32_t lkey, rkey;
static char ip[32], ip_b[32];

static void rig(enum sn_qp_type type, const struct sn_cfg *faults)
{

	fake_ip(ip, 1);
	fake_ip(ip_b, 2);
	fake_open(ip);
	fake_close();
	sn_dev->stats = (struct sn_stats){ 0 };
	sn_dev->cfg = *faults;
	fake_open(ip); /* opens again with the configured seed */
	mem = aligned_alloc(4096, SIZE);
	far = aligned_alloc(4096, SIZE);
	memset(far, 0, SIZE);
	for (unsigned i = 0; i < SIZE; i++)
		mem[i] = i + 1;
	lkey = fake_mr(mem, SIZE, 0xf);
	rkey = fake_mr(far, SIZE, 0xf);
	fake_qp_init_as(&a, type, 0x101, 1);
	fake_qp_init_as(&b, type, 0x102, 1);
	fake_connect(&a, ip, 0x102);
	fake_connect(&b, ip, 0x101);
}

static void over(void)
{
	fake_qp_fini(&a);
	fake_qp_fini(&b);
	fake_mr_drop(lkey);
	fake_mr_drop(rkey);
	fake_close();
	free(mem);
	free(far);
}

static uint64_t count(const uint64_t *field)
{
	uint64_t n;

	pthread_mutex_lock(&sn_dev->lock);
	n = *field;
	pthread_mutex_unlock(&sn_dev->lock);
	return n;
}
#define COUNT(field) count(&sn_dev->stats.field)

/* Message i transfers byte i. */
static void post(uint8_t opcode, unsigned i)
{
	struct fake_wqe w = { .opcode = opcode,
			      .fm = SIGNAL,
			      .raddr = (uintptr_t)far + i,
			      .rkey = rkey,
			      .nsge = 1,
			      .sge = { { mem + i, 1, lkey } } };

	fake_post(&a, &w);
}

static void expect_cqe(uint32_t index, uint8_t synd)
{
	uint8_t cqe[64];

	cr_assert(fake_poll(&a, false, cqe, 10000), "no CQE for WQE %u", index);
	cr_assert_eq(cqe[61], index);
	cr_assert_eq(cqe[63] >> 4, synd ? 13 : 0, "wrong result, syndrome 0x%02x", cqe[55]);
	if (synd)
		cr_assert_eq(cqe[55], synd);
}

/* Posts N messages and waits until `arrive` packets have been received. */
static void run(uint8_t opcode, uint64_t arrive)
{
	for (unsigned i = 0; i < N; i++)
		post(opcode, i);
	for (unsigned i = 0; i < N; i++)
		expect_cqe(i, 0);
	for (unsigned i = 0; i < 5000 && COUNT(rx_packets) < arrive; i++)
		usleep(1000);
	cr_assert_eq(COUNT(rx_packets), arrive);
}

/* ---- faults of the wire, tested with unreliable connections: they do not retransmit ---- */

static unsigned arrived(uint64_t seed, uint8_t map[N])
{
	unsigned n = 0;

	rig(SN_QPT_UC, &(struct sn_cfg){ .seed = seed, .loss_ppm = 400000 });
	for (unsigned i = 0; i < N; i++)
		post(SN_OP_WRITE, i);
	for (unsigned i = 0; i < N; i++)
		expect_cqe(i, 0);
	for (unsigned i = 0; i < 5000 && COUNT(rx_packets) + COUNT(faults_injected) < N; i++)
		usleep(1000);
	memcpy(map, far, N);
	for (unsigned i = 0; i < N; i++)
		n += map[i] != 0;
	cr_assert_eq(COUNT(faults_injected), N - n);
	over();
	return n;
}

Test(softnic_faults, same_seed_same_losses, .timeout = 60)
{
	uint8_t first[N], again[N], other[N];
	unsigned n = arrived(7, first);

	cr_assert(n > 0 && n < N, "%u of %u messages arrived", n, N);
	arrived(7, again);
	cr_assert_arr_eq(first, again, N);
	arrived(8, other);
	cr_assert_neq(memcmp(first, other, N), 0);
}

Test(softnic_faults, packets_are_duplicated, .timeout = 60)
{
	rig(SN_QPT_UC, &(struct sn_cfg){ .dup_ppm = ALWAYS });
	run(SN_OP_WRITE, 2 * N);
	cr_assert_eq(COUNT(faults_injected), N);
	over();
}

Test(softnic_faults, corrupt_packets_do_not_arrive, .timeout = 60)
{
	rig(SN_QPT_UC, &(struct sn_cfg){ .corrupt_ppm = ALWAYS });
	run(SN_OP_WRITE, N);
	cr_assert_eq(COUNT(icrc_errors), N);
	for (unsigned i = 0; i < N; i++)
		cr_assert_eq(far[i], 0);
	over();
}

Test(softnic_faults, reordered_packets_change_places, .timeout = 60)
{
	uint8_t cqe[64];

	rig(SN_QPT_UC, &(struct sn_cfg){ .reorder_ppm = ALWAYS });
	for (unsigned i = 0; i < N; i++)
		fake_recv(&b, far + i, 1, rkey);
	run(SN_OP_SEND, N);
	for (unsigned i = 0; i < N; i++) {
		cr_assert(fake_poll(&b, true, cqe, 5000));
		cr_assert_eq(far[i], mem[i ^ 1], "message %u arrived at place %u", far[i] - 1, i);
	}
	over();
}

/* The corrupted bit may be anywhere between the UDP header and the end; the ICRC must reveal it. */
Test(softnic_faults, corrupt_bits_on_the_wire, .timeout = 60)
{
	unsigned header = 0, payload = 0, icrc_wrong = 0;
	struct wire_peer peer;
	uint8_t p[128];
	uint32_t icrc;

	rig(SN_QPT_UC, &(struct sn_cfg){ .corrupt_ppm = ALWAYS });
	peer = peer_open(ip_b, ip);
	fake_modify(&a, SN_QPS_RST);
	fake_connect(&a, ip_b, 0x777);
	for (unsigned i = 0; i < N; i++)
		post(SN_OP_SEND, 0);
	for (unsigned i = 0; i < N; i++) {
		cr_assert_eq(recv(peer.fd, p, sizeof(p), 0), 12 + 4 + 4);
		memcpy(&icrc, p + 16, 4);
		icrc_wrong += icrc != peer_icrc(&peer.nic, &peer.self, 0, p, 16);
		payload += sn_get32(p + 12) != 0x01000000;
		header += sn_get32(p) != 0x2470ffff || sn_get32(p + 4) != 0x777;
	}
	cr_assert_eq(icrc_wrong, N, "the ICRC reveals only %u of %u errors", icrc_wrong, N);
	cr_assert(header && payload, "errors in only one part: %u in headers, %u in payloads",
		  header, payload);
	close(peer.fd);
	over();
}

Test(softnic_faults, packets_are_delayed_both_ways, .timeout = 60)
{
	uint64_t start;

	rig(SN_QPT_RC, &(struct sn_cfg){ .delay_us = 30000 });
	start = sn_now();
	post(SN_OP_WRITE, 0);
	expect_cqe(0, 0);
	cr_assert_geq(sn_now() - start, 60000000ull);
	over();
}

/* ---- the NIC itself ---- */

Test(softnic_faults, qp_fails_after_err_after_messages, .timeout = 60)
{
	rig(SN_QPT_RC, &(struct sn_cfg){ .err_after = 3 });
	fake_async = 0;
	for (unsigned i = 0; i < 5; i++)
		post(SN_OP_WRITE, i);
	for (unsigned i = 0; i < 5; i++)
		expect_cqe(i, i < 3 ? 0 : SN_SYND_FLUSH);
	cr_assert_eq(fake_async, 1);
	over();
}

static bool stalled(void)
{
	bool s;

	pthread_mutex_lock(&sn_dev->lock);
	s = sn_dev->eng->stalled;
	pthread_mutex_unlock(&sn_dev->lock);
	return s;
}

Test(softnic_faults, nic_stalls_and_resumes, .timeout = 60)
{
	uint8_t cqe[64];

	rig(SN_QPT_RC, &(struct sn_cfg){ .stall_us = 1990000, .stall_every_us = 2000000 });
	while (!stalled())
		usleep(1000);
	post(SN_OP_WRITE, 0);
	cr_assert_not(fake_poll(&a, false, cqe, 60), "the NIC completed a WQE during a stall");
	expect_cqe(0, 0);
	cr_assert_geq(COUNT(stalls), 1);
	over();
}

/* Rings the doorbell register with this index. */
static void ring_with(struct fake_qp *q, uint32_t index)
{
	uint8_t db[8];
	uint64_t v;

	sn_put32(db, (index & 0xffff) << 8);
	sn_put32(db + 4, q->qp.qpn << 8);
	memcpy(&v, db, 8);
	__atomic_store_n((uint64_t *)(void *)(q->uar + 0x800), v, __ATOMIC_RELEASE);
}

Test(softnic_faults, dbrec_only_mode, .timeout = 60)
{
	struct fake_wqe w = { .opcode = SN_OP_NOP, .fm = SIGNAL };
	uint8_t cqe[64];

	rig(SN_QPT_RC, &(struct sn_cfg){ .dbrec_only = true });
	fake_write_wqe(&a, &w);
	fake_write_wqe(&a, &w);
	__atomic_store_n(&a.dbr[1], htobe32(1), __ATOMIC_RELEASE);
	ring_with(&a, 2);
	expect_cqe(0, 0);
	ring_with(&a, 40);
	cr_assert_not(fake_poll(&a, false, cqe, 60), "the register's value was used");
	__atomic_store_n(&a.dbr[1], htobe32(2), __ATOMIC_RELEASE);
	ring_with(&a, 0);
	expect_cqe(1, 0);
	cr_assert_eq(COUNT(bad_doorbell), 0);
	over();
}
