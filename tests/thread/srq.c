/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* softnic-run: --loss 0.003 --dup 0.003 --reorder 0.003 --seed 5 */
/*
 * Tests a shared receive queue whose receives device threads post: three queue pairs get messages
 * of one to three packets over a bad wire and take receives from one SRQ of 16 slots. So the slots
 * complete in another order than they were posted. Each message must arrive once, in the order of
 * its queue pair, in the slot that its CQE names. The slots are posted again by one thread per
 * queue pair with CTA and GPU sharing, or by one thread for all in exclusive use.
 */

#include "../lib/bound.h"
#include "../lib/recv_rig.h"
#include "device/gdk/srq_dev.h"

#define QPS	 3u
#define DEPTH	 16u
#define ROOM	 4096u
#define MESSAGES 1000u /* of each queue pair */
#define CTA	 DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA

static struct e2e_nic nic;
static struct doca_verbs_srq *srq;
static struct doca_gpu_dev_verbs_qp *dev;
static struct e2e_buf buf;
static struct recv_end tx[QPS], rx[QPS];
static struct doca_gpu_dev_verbs_cq cq[QPS];
static gdk_mode_t mode;
static uint64_t last_slot, turned_back;
static uint64_t messages;
static int failed;

static void fail(const char *what, uint64_t a, uint64_t b)
{
	if (!__atomic_exchange_n(&failed, 1, __ATOMIC_RELAXED))
		fprintf(stderr, "mode %d: %s: %llu, %llu\n", mode, what, (unsigned long long)a,
			(unsigned long long)b);
}

static int has_failed(void)
{
	return __atomic_load_n(&failed, __ATOMIC_RELAXED);
}

static struct gdk_how how(void)
{
	return gdk_how(mode, GDK_AUTO, GDK_THREAD, 0);
}

static uint32_t length_of(uint64_t q, uint64_t n)
{
	return 16 + (uint32_t)((n * 7919 + q * 104729) % 2900);
}

static void *sender(void *arg)
{
	const uint64_t q = (uintptr_t)arg;
	uint64_t ticket;

	for (uint64_t n = 0; n < messages && !has_failed(); n++) {
		const size_t at = n % 4 * ROOM;
		uint8_t *p = tx[q].buf.mem + at;

		if (n >= 4 && gdk_wait(tx[q].dev, n - 4, E2E_EXCL))
			fail("the send failed", q, n - 4);
		memcpy(p, &q, 8);
		memcpy(p + 8, &n, 8);
		for (uint32_t i = 16; i < length_of(q, n); i++)
			p[i] = e2e_pattern(i, (uint32_t)(n * QPS + q));
		if (gdk_send(tx[q].dev, recv_at(&tx[q], at), length_of(q, n), &ticket,
			     gdk_how(E2E_EXCL, GDK_AUTO, GDK_THREAD, 0)))
			fail("the post failed", q, n);
	}
	return NULL;
}

static void check_message(uint64_t q, uint64_t n, uint32_t slot, uint32_t bytes)
{
	const uint8_t *p = buf.mem + (size_t)slot * ROOM;
	uint64_t got[2];

	memcpy(got, p, sizeof(got));
	if (got[0] != q || got[1] != n)
		fail("expected message, got", n, got[1]);
	if (bytes != length_of(q, n))
		fail("message has bytes", n, bytes);
	for (uint32_t i = 16; i < bytes; i++)
		if (p[i] != e2e_pattern(i, (uint32_t)(n * QPS + q))) {
			fail("message changed at byte", n, i);
			return;
		}
}

/* Takes message n of queue pair q and posts its slot again. Returns false if there is none yet. */
static bool receive(uint64_t q, uint64_t n)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	const int rc = gdk_srq_poll(&cq[q], n, &cqe);
	uint32_t slot;

	if (rc == EBUSY)
		return false;
	if (rc)
		fail("error CQE", q, n);
	slot = gdk_srq_slot(cqe);
	check_message(q, n, slot, gdk_cqe_bytes(cqe));
	if (slot != (__atomic_exchange_n(&last_slot, slot, __ATOMIC_RELAXED) + 1) % DEPTH)
		__atomic_fetch_add(&turned_back, 1, __ATOMIC_RELAXED);
	gdk_wqe_recv(dev, gdk_srq_wqe(dev, slot), (uintptr_t)buf.mem + (size_t)slot * ROOM,
		     gdk_key(buf.mr->lkey), ROOM);
	if (gdk_srq_repost(dev, slot, how()))
		fail("repost", q, n);
	return true;
}

static void *receiver(void *arg)
{
	const uint64_t first = (uintptr_t)arg, end = mode == E2E_EXCL ? QPS : first + 1;
	uint64_t n[QPS] = { 0 }, left = (end - first) * messages;
	struct bound b = bound_begin(left, false);

	while (left && !has_failed()) {
		const uint64_t before = left;

		for (uint64_t q = first; q < end; q++)
			if (n[q] < messages && receive(q, n[q])) {
				n[q]++;
				left--;
			}
		if (bound_passed(&b, left, E2E_WAIT_NS))
			fail("no message after", first, n[first]);
		if (left == before)
			gdk_host_yield();
	}
	return NULL;
}

static void use_srq(doca_verbs_qp_init_attr_t *init)
{
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_rq_wr(init, 0));
	E2E_REQUIRE(!doca_verbs_qp_init_attr_set_srq(init, srq));
}

static void open_srq(void)
{
	struct doca_verbs_srq_init_attr *attr;

	E2E_REQUIRE(!doca_verbs_srq_init_attr_create(&attr));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_srq_wr(attr, DEPTH));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_receive_max_sges(attr, 2));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_type(attr, DOCA_VERBS_SRQ_TYPE_CONTIGUOUS));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_set_pd(attr, nic.pd));
	E2E_REQUIRE(!doca_verbs_srq_create(nic.ctx, attr, &srq));
	E2E_REQUIRE(!doca_verbs_srq_init_attr_destroy(attr));
	E2E_REQUIRE(!gdk_verbs_export_srq(nic.gpu, srq, &dev));
	e2e_buf_open(&nic, &buf, (size_t)DEPTH * ROOM, IBV_ACCESS_LOCAL_WRITE);
	for (uint32_t slot = 0; slot < DEPTH; slot++)
		gdk_wqe_recv(dev, gdk_srq_wqe(dev, slot), (uintptr_t)buf.mem + slot * ROOM,
			     gdk_key(buf.mr->lkey), ROOM);
	E2E_REQUIRE(!gdk_srq_submit(dev, DEPTH, how()));
}

static void open_pair(uint32_t q)
{
	const struct recv_rig_how plain = { .handler = E2E_DB, .no_rq = true };
	const struct e2e_path path = { 14, 7, 100 * q };

	recv_end_open(&nic, &tx[q], plain, NULL);
	recv_end_open(&nic, &rx[q], plain, use_srq);
	E2E_REQUIRE(!gdk_verbs_srq_get_cq_dev(srq, rx[q].rcq, &cq[q]));
	E2E_REQUIRE(!e2e_connect_rnr(&nic, tx[q].qp, &nic.gid, rx[q].qpn, path, 7));
	E2E_REQUIRE(!e2e_connect_rnr(&nic, rx[q].qp, &nic.gid, tx[q].qpn, path, 7));
}

static void close_all(void)
{
	for (uint32_t q = 0; q < QPS; q++) {
		recv_end_close(&tx[q]);
		recv_end_close(&rx[q]);
	}
	E2E_REQUIRE(!gdk_verbs_unexport_srq(srq));
	E2E_REQUIRE(!doca_verbs_srq_destroy(srq));
	e2e_buf_close(&buf);
	e2e_close(&nic);
}

static void run(gdk_mode_t m, uint64_t num)
{
	const uint32_t receivers = m == E2E_EXCL ? 1 : QPS;
	pthread_t send[QPS], recv[QPS];
	uint32_t q, posted;

	mode = m;
	messages = num;
	turned_back = 0;
	e2e_open(&nic);
	open_srq();
	for (q = 0; q < QPS; q++)
		open_pair(q);
	for (q = 0; q < receivers; q++)
		pthread_create(&recv[q], NULL, receiver, (void *)(uintptr_t)q);
	for (q = 0; q < QPS; q++)
		pthread_create(&send[q], NULL, sender, (void *)(uintptr_t)q);
	for (q = 0; q < QPS; q++)
		pthread_join(send[q], NULL);
	for (q = 0; q < receivers; q++)
		pthread_join(recv[q], NULL);
	posted = be32toh(
		__atomic_load_n((uint32_t *)doca_verbs_srq_get_dbr_addr(srq), __ATOMIC_RELAXED));
	if (posted != (uint16_t)(DEPTH + QPS * num))
		fail("posted, expected", posted, (uint16_t)(DEPTH + QPS * num));
	if (!turned_back)
		fail("all slots completed in order", 0, 0);
	close_all();
}

int main(void)
{
	run(E2E_MODE, MESSAGES);
	run(CTA, MESSAGES / 2);
	run(E2E_EXCL, MESSAGES / 2);
	return failed;
}
