/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Ethernet queues by groups of CPU threads, in warps of 32: receiving by a warp and by blocks,
 * sending by threads that share a queue, by warps and by blocks, and multi-packet sends. Every
 * packet arrives exactly once and unchanged. Compiled in the debug build, which checks every WQE
 * before its doorbell.
 */
#define GDK_WARP 32
#define GDK_DEBUG

#include <stdatomic.h>

#include "eth_queue_rig.h"

#define NOTIFY	    DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY
#define THREADS_MAX 96u
#define RX_NUM	    1024u
#define PACKETS_MAX 20000u

static struct queues q;
static atomic_uint wrong;	  /* checks that failed in the threads */
static _Atomic uint64_t received; /* packets that the group has received */
static uint8_t seen[PACKETS_MAX];

TestSuite(doca_eth_scopes, .timeout = 120);

/* What the threads of a block execute. */
static struct job {
	void (*body)(uint32_t rank);
	uint32_t threads, packets;
	gdk_mode_t mode;
	enum doca_gpu_dev_eth_exec_scope exec;
	uint32_t each;
} job;

static struct gdk_host_block block;
static struct gdk_host_warp warps[THREADS_MAX / 32];

static void *lane(void *rank)
{
	gdk_host_enter(&block, (uint32_t)(uintptr_t)rank);
	job.body((uint32_t)(uintptr_t)rank);
	gdk_host_leave();
	return NULL;
}

static pthread_t threads[THREADS_MAX];

static void launch(void)
{
	uint32_t i;

	gdk_host_block_init(&block, warps, job.threads, 1);
	for (i = 0; i < job.threads; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, lane, (void *)(uintptr_t)i), 0);
}

static void join(void)
{
	uint32_t i;

	for (i = 0; i < job.threads; i++)
		pthread_join(threads[i], NULL);
	gdk_host_block_fini(&block);
	cr_expect_eq(atomic_load(&wrong), 0, "%u checks failed", atomic_load(&wrong));
}

static void check(bool ok)
{
	if (!ok)
		atomic_fetch_add(&wrong, 1);
}

/* ---- receiving ---- */

static bool is_packet(const uint8_t *p, uint32_t len, uint32_t i)
{
	uint32_t at, number;

	memcpy(&number, p + 14, 4);
	if (number != i || len != packet_bytes(i))
		return false;
	for (at = 18; at < len; at++)
		if (p[at] != packet_byte(i, at))
			return false;
	return true;
}

/* All threads of the scope get the same results; each checks its share of the packets. */
static void receive_all(uint32_t rank)
{
	const uint32_t size = gdk_eth_size(job.exec), own = gdk_eth_rank(job.exec);
	struct gdk_eth_batch b;
	uint64_t total = 0, i;

	while (total < job.packets) {
		if (gdk_eth_recv(q.rx, 200, 3000000, 0, job.exec, &b)) {
			check(false);
			return;
		}
		check(b.first == total);
		for (i = own; i < b.num; i += size)
			check(is_packet(
				(const uint8_t *)(uintptr_t)gdk_eth_pkt_addr(q.rx, b.first + i),
				gdk_eth_pkt_bytes(q.rx, b.first + i), (uint32_t)(b.first + i)));
		total += b.num;
		if (own == 0)
			atomic_store(&received, total);
	}
	(void)rank;
}

static void receive_by(uint32_t n, enum doca_gpu_dev_eth_exec_scope exec)
{
	struct gdk_eth_rxq_counters c;
	uint32_t i;

	rig_open_both(&q, RX_NUM, 128, rig_gpu_cq);
	job = (struct job){ .body = receive_all, .threads = n, .packets = 10000, .exec = exec };
	launch();
	for (i = 0; i < job.packets; i++) {
		/* Slots of at most two batches are not released. */
		while (i - atomic_load(&received) > RX_NUM / 2)
			sched_yield();
		rig_send(&q, i, i % 64 == 63 ? NOTIFY : 0, EXCL);
		if (i % 64 == 63) /* before the packets' buffers are used again */
			cr_assert_eq(gdk_eth_wait_for(q.tx, i, EXCL), 0);
	}
	join();
	cr_assert_eq(gdk_eth_rxq_get_counters(q.rxq, &c), DOCA_SUCCESS);
	cr_expect_eq(c.packets, job.packets);
	cr_expect_eq(c.out_of_buffer, 0);
	rig_close_both(&q);
}

Test(doca_eth_scopes, a_warp_receives)
{
	receive_by(32, DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP);
}

Test(doca_eth_scopes, a_block_of_two_warps_receives)
{
	receive_by(64, DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK);
}

Test(doca_eth_scopes, a_block_with_a_part_of_a_warp_receives)
{
	receive_by(40, DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK);
}

/* ---- errors and aborts of a group ---- */

static void wait_for_ever(uint32_t rank)
{
	struct gdk_eth_batch b;
	int k;

	(void)rank;
	for (k = 0; k < 2; k++)
		check(gdk_eth_recv(q.rx, 100, UINT64_MAX, 0, job.exec, &b) == -ECANCELED &&
		      b.num == 0);
}

Test(doca_eth_scopes, an_abort_ends_a_block)
{
	rig_open_both(&q, RX_NUM, 128, rig_gpu_cq);
	job = (struct job){ .body = wait_for_ever,
			    .threads = 64,
			    .exec = DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK };
	launch();
	usleep(20000);
	cr_assert_eq(gdk_eth_rxq_abort(q.rxq), DOCA_SUCCESS);
	join();
	rig_close_both(&q);
}

/* ---- sending ---- */

/* Packet k of a thread has number k * threads + rank; its buffer is not written again, so that the
 * packet may be sent late. */
static struct gdk_eth_pkt own_pkt(uint32_t number)
{
	uint8_t *p = q.tx_buf + number * SLOT;

	return gdk_eth_pkt((uintptr_t)p, q.tx_key, packet_write(p, number));
}

static struct gdk_how how_of(const struct job *j)
{
	return gdk_how(j->mode, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO, (gdk_exec_t)j->exec, 0);
}

static void send_plain(uint32_t rank)
{
	const uint32_t rounds = job.packets / job.threads;
	doca_gpu_dev_eth_ticket_t ticket = 0;
	uint32_t k, flags;

	for (k = 0; k < rounds; k++) {
		flags = k + 1 == rounds || (rank + k) % 7 == 0 ? NOTIFY : 0;
		check(gdk_eth_send(q.tx, own_pkt(k * job.threads + rank), flags, how_of(&job),
				   &ticket) == 0);
		/* Threads diverge, so that groups of lanes differ. */
		if (job.exec == DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD && (rank ^ k) % 5 == 0)
			sched_yield();
	}
	check(gdk_eth_wait_for(q.tx, ticket, SHARE) == 0);
}

/* `each` packets of each lane of a warp */
static void send_multi(uint32_t rank)
{
	const uint32_t rounds = job.packets / (job.threads * job.each);
	struct gdk_eth_pkt pkts[8];
	doca_gpu_dev_eth_ticket_t ticket = 0;
	uint32_t k, j;

	for (k = 0; k < rounds; k++) {
		for (j = 0; j < job.each; j++)
			pkts[j] = own_pkt((k * job.each + j) * job.threads + rank);
		check(gdk_eth_send_multi(q.tx, pkts, job.each, NOTIFY, how_of(&job), &ticket) == 0);
	}
	check(gdk_eth_wait_for(q.tx, ticket, SHARE) == 0);
}

/* Receives all packets, in any order, each once. */
static void expect_each_once(void)
{
	struct gdk_eth_batch b;
	uint32_t got = 0, i, number;
	const uint8_t *p;

	memset(seen, 0, sizeof(seen));
	while (got < job.packets) {
		cr_assert_eq(gdk_eth_recv(q.rx, 0, 20000000000ull, 0, ALONE, &b), 0);
		cr_assert(b.num, "%u of %u packets have arrived", got, job.packets);
		for (i = 0; i < b.num; i++) {
			p = (const uint8_t *)(uintptr_t)gdk_eth_pkt_addr(q.rx, b.first + i);
			memcpy(&number, p + 14, 4);
			cr_assert_lt(number, job.packets);
			packet_expect(p, gdk_eth_pkt_bytes(q.rx, b.first + i), number);
			cr_assert_eq(seen[number]++, 0, "packet %u came twice", number);
		}
		got += b.num;
	}
}

static void send_by(const struct job *what, uint32_t slots, void (*set)(struct doca_eth_txq *))
{
	struct gdk_eth_txq_counters c;

	job = *what;
	rig_open_dev(&q);
	rig_open_rxq(&q, 16384);
	/* a buffer for each packet, and then a shorter ring */
	rig_open_txq(&q, job.packets, NULL);
	cr_assert_eq(doca_ctx_stop(doca_eth_txq_as_doca_ctx(q.txq)), DOCA_SUCCESS);
	cr_assert_eq(doca_eth_txq_destroy(q.txq), DOCA_SUCCESS);
	cr_assert_eq(doca_eth_txq_create(q.dev, slots, &q.txq), DOCA_SUCCESS);
	if (set)
		set(q.txq);
	cr_assert_eq(doca_ctx_set_datapath_on_gpu(doca_eth_txq_as_doca_ctx(q.txq), q.gpu),
		     DOCA_SUCCESS);
	cr_assert_eq(doca_ctx_start(doca_eth_txq_as_doca_ctx(q.txq)), DOCA_SUCCESS);
	cr_assert_eq(doca_eth_txq_get_gpu_handle(q.txq, &q.tx), DOCA_SUCCESS);
	launch();
	expect_each_once();
	join();
	cr_assert_eq(gdk_eth_txq_get_counters(q.txq, &c), DOCA_SUCCESS);
	cr_expect_eq(c.status, 0);
	cr_expect_eq(c.completed, c.reserved);
	rig_close_both(&q);
}

Test(doca_eth_scopes, threads_share_a_queue)
{
	send_by(&(struct job){ .body = send_plain,
			       .threads = 64,
			       .packets = 64 * 150,
			       .mode = SHARE,
			       .exec = DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD },
		128, rig_gpu_cq);
}

Test(doca_eth_scopes, warps_share_a_queue)
{
	send_by(&(struct job){ .body = send_plain,
			       .threads = 64,
			       .packets = 64 * 100,
			       .mode = CTA,
			       .exec = DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP },
		256, rig_gpu_cq);
}

Test(doca_eth_scopes, a_block_sends)
{
	send_by(&(struct job){ .body = send_plain,
			       .threads = 64,
			       .packets = 64 * 100,
			       .mode = SHARE,
			       .exec = DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK },
		128, rig_gpu_cq);
}

/* All threads at once do not fit, so they send in turn. The CPU handles completions. */
Test(doca_eth_scopes, a_block_sends_in_a_short_ring)
{
	send_by(&(struct job){ .body = send_plain,
			       .threads = 64,
			       .packets = 64 * 10,
			       .mode = SHARE,
			       .exec = DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK },
		32, NULL);
}

Test(doca_eth_scopes, warps_send_multi_packet_wqes)
{
	send_by(&(struct job){ .body = send_multi,
			       .threads = 64,
			       .packets = 64 * 5 * 30,
			       .mode = SHARE,
			       .exec = DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP,
			       .each = 5 },
		256, rig_gpu_cq);
}
