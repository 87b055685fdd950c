/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The host half of the CPU proxy: the counters that the GPU writes, what one call
 * of doca_gpu_verbs_cpu_proxy_progress() does, and the scan that a service runs
 * over many counters.
 */
#include <criterion/criterion.h>
#include <string.h>
#include <time.h>

#include "../../doorbell/cpu_proxy.h"
#include "device/gdk/state.h"
#include "../lib/e2e.h"

static struct e2e_nic nic;
static struct doca_gpu_verbs_qp_init_attr_hl attr;

static void open_all(void)
{
	e2e_open(&nic);
	memset(&attr, 0, sizeof(attr));
	attr.gpu_dev = nic.gpu;
	attr.net_dev = nic.dev;
	attr.ibpd = nic.pd;
	attr.sq_nwqe = 16;
	attr.nic_handler = E2E_PROXY;
}

static void close_all(void)
{
	e2e_close(&nic);
}

TestSuite(cpu_proxy, .init = open_all, .fini = close_all);

/* Creates a QP whose doorbell register is *reg, so that the test can read what the proxy writes. */
static struct doca_gpu_verbs_qp *proxy_qp(struct doca_gpu_verbs_qp_hl **hl, uint64_t *reg)
{
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, hl), DOCA_SUCCESS);
	*reg = 0;
	(*hl)->qp_gverbs->sq_db = reg;
	return (*hl)->qp_gverbs;
}

Test(cpu_proxy, a_step_writes_dbrec_then_register)
{
	struct doca_gpu_verbs_qp_hl *hl;
	uint64_t reg;
	struct doca_gpu_verbs_qp *qp = proxy_qp(&hl, &reg);
	uint32_t *dbrec = hl->qp_umem_dbr_gpu_ptr, word[2];
	bool progressed = true;

	cr_assert_eq(doca_gpu_verbs_cpu_proxy_progress(qp, &progressed), DOCA_SUCCESS);
	cr_assert_not(progressed);
	cr_assert_eq(reg, 0);
	*qp->cpu_db = 0x12345;
	cr_assert_eq(doca_gpu_verbs_cpu_proxy_progress(qp, &progressed), DOCA_SUCCESS);
	cr_assert(progressed);
	memcpy(word, &reg, 8);
	cr_assert_eq(be32toh(word[0]), 0x1234500);
	cr_assert_eq(be32toh(word[1]), qp->qp_cpu->sq_num << 8);
	cr_assert_eq(be32toh(dbrec[1]), 0x2345);
	cr_assert_eq(dbrec[0], 0, "the proxy must not write the receive word");
	reg = 0;
	cr_assert_eq(doca_gpu_verbs_cpu_proxy_progress(qp, NULL), DOCA_SUCCESS);
	cr_assert_eq(reg, 0, "written although the counter did not change");
	doca_gpu_verbs_destroy_qp_hl(hl);
}

Test(cpu_proxy, counter_is_compared_in_64_bits)
{
	struct doca_gpu_verbs_qp_hl *hl;
	uint64_t reg;
	struct doca_gpu_verbs_qp *qp = proxy_qp(&hl, &reg);
	bool progressed;

	*qp->cpu_db = 5;
	doca_gpu_verbs_cpu_proxy_progress(qp, &progressed);
	*qp->cpu_db = 5 + (1ull << 32);
	doca_gpu_verbs_cpu_proxy_progress(qp, &progressed);
	cr_assert(progressed, "only the low 32 bits were compared");
	cr_assert_eq(qp->sq_wqe_pi_last, 5 + (1ull << 32));
	doca_gpu_verbs_cpu_proxy_progress(qp, &progressed);
	cr_assert_not(progressed);
	doca_gpu_verbs_destroy_qp_hl(hl);
}

/* The stores of two GPU threads to the counter may arrive in the other order. */
Test(cpu_proxy, smaller_counter_is_not_rung)
{
	struct doca_gpu_verbs_qp_hl *hl;
	uint64_t reg;
	struct doca_gpu_verbs_qp *qp = proxy_qp(&hl, &reg);
	uint32_t *dbrec = hl->qp_umem_dbr_gpu_ptr;
	bool progressed;

	*qp->cpu_db = 7;
	doca_gpu_verbs_cpu_proxy_progress(qp, &progressed);
	cr_assert(progressed);
	reg = 0;
	*qp->cpu_db = 6;
	doca_gpu_verbs_cpu_proxy_progress(qp, &progressed);
	cr_expect_not(progressed);
	/* A service does not check the counter before it takes the lock if the line changed. */
	cr_expect_not(gdk_proxy_drain(gdk_to_db_qp(qp)));
	cr_expect_eq(reg, 0, "rung for a smaller counter");
	cr_expect_eq(be32toh(dbrec[1]), 7);
	cr_expect_eq(qp->sq_wqe_pi_last, 7);
	*qp->cpu_db = 8;
	doca_gpu_verbs_cpu_proxy_progress(qp, &progressed);
	cr_expect(progressed);
	cr_expect_eq(be32toh((uint32_t)reg) >> 8, 8);
	doca_gpu_verbs_destroy_qp_hl(hl);
}

Test(cpu_proxy, counters_are_packed_and_reused)
{
	struct doca_gpu_verbs_qp_hl *hl[9];
	uint64_t *first;

	for (int i = 0; i < 9; i++)
		cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl[i]), DOCA_SUCCESS);
	first = hl[0]->qp_gverbs->cpu_db;
	cr_assert_eq((uintptr_t)first % 64, 0);
	for (int i = 1; i < 9; i++)
		cr_assert_eq(hl[i]->qp_gverbs->cpu_db, first + i);
	cr_assert_eq(hl[3]->qp_gverbs->qp_cpu->sq_db, first + 3,
		     "a host GPU uses the same address");
	*hl[3]->qp_gverbs->cpu_db = 9;
	doca_gpu_verbs_destroy_qp_hl(hl[3]);
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl[3]), DOCA_SUCCESS);
	cr_assert_eq(hl[3]->qp_gverbs->cpu_db, first + 3, "the free slot must be reused");
	cr_assert_eq(*hl[3]->qp_gverbs->cpu_db, 0);
	for (int i = 0; i < 9; i++)
		doca_gpu_verbs_destroy_qp_hl(hl[i]);
}

Test(cpu_proxy, other_handlers_have_no_progress)
{
	struct doca_gpu_verbs_qp_hl *hl;
	bool progressed;

	attr.nic_handler = E2E_DB;
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_cpu_proxy_progress(hl->qp_gverbs, &progressed),
		     DOCA_ERROR_NOT_SUPPORTED);
	doca_gpu_verbs_destroy_qp_hl(hl);
}

Test(cpu_proxy, emulation_writes_the_dbrec_that_the_gpu_does_not)
{
	struct doca_gpu_verbs_qp_hl *hl;
	uint64_t reg, *real;
	uint32_t *dbrec;

	attr.nic_handler = E2E_AUTO;
	attr.send_dbr_mode_ext = DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_SW_EMULATED;
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS);
	real = hl->qp_gverbs->sq_db;
	hl->qp_gverbs->sq_db = &reg;
	dbrec = hl->qp_umem_dbr_gpu_ptr;
	hl->qp_gverbs->qp_cpu->gdk_state->rung = 3; /* as the device functions do when they ring */
	cr_assert_eq(doca_gpu_verbs_cpu_proxy_progress(hl->qp_gverbs, NULL), DOCA_SUCCESS);
	cr_assert_eq(be32toh(dbrec[1]), 3);
	cr_assert_eq(be32toh((uint32_t)reg), 3 << 8, "the proxy must ring, too");
	hl->qp_gverbs->sq_db = real;
	doca_gpu_verbs_destroy_qp_hl(hl);
}

struct caller {
	struct doca_gpu_verbs_qp *qp;
	atomic_bool done;
};

static void *make_progress(void *arg)
{
	struct caller *c = arg;

	cr_expect_eq(doca_gpu_verbs_cpu_proxy_progress(c->qp, NULL), DOCA_SUCCESS);
	atomic_store(&c->done, true);
	return NULL;
}

/*
 * A thread that holds step_lock may have read the counter before it rose. So
 * doca_gpu_verbs_cpu_proxy_progress() must wait for the lock and make a step itself.
 */
Test(cpu_proxy, progress_waits_for_another_threads_step)
{
	struct timespec nap = { .tv_nsec = 30000000 };
	struct doca_gpu_verbs_qp_hl *hl;
	uint64_t reg;
	struct caller c = { .qp = proxy_qp(&hl, &reg) };
	pthread_t thread;

	pthread_spin_lock(&gdk_to_db_qp(c.qp)->proxy.step_lock);
	*c.qp->cpu_db = 7;
	cr_assert_eq(pthread_create(&thread, NULL, make_progress, &c), 0);
	nanosleep(&nap, NULL);
	cr_expect_not(atomic_load(&c.done));
	pthread_spin_unlock(&gdk_to_db_qp(c.qp)->proxy.step_lock);
	pthread_join(thread, NULL);
	cr_expect_eq(be32toh((uint32_t)reg) >> 8, 7);
	doca_gpu_verbs_destroy_qp_hl(hl);
}

/*
 * A page holds 512 counters. After the second page is freed, a new QP gets a free
 * counter of the first page, although newer pages exist for another GPU and another
 * device.
 */
Test(cpu_proxy, counter_pages_are_freed_and_reused)
{
	enum { MANY = 520 };
	static struct doca_gpu_verbs_qp_hl *hl[MANY], *others[2];
	uint64_t *slot[MANY];
	doca_gpu_t *gpu;
	doca_dev_t *dev;

	for (int i = 0; i < MANY; i++) {
		cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl[i]), DOCA_SUCCESS);
		slot[i] = hl[i]->qp_gverbs->cpu_db;
		cr_assert_eq(*slot[i], 0);
		*slot[i] = (uint64_t)i + 1;
	}
	for (int i = 0; i < MANY; i++)
		cr_expect_eq(*slot[i], (uint64_t)i + 1, "two QPs share a counter");
	for (int i = 0; i < MANY; i += i == 100 ? 412 : 1)
		doca_gpu_verbs_destroy_qp_hl(hl[i]);
	for (int i = 101; i < 512; i++)
		cr_expect_eq(*slot[i], (uint64_t)i + 1);
	cr_assert_eq(doca_gpu_create("host", &gpu), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_dev_open(nic.pd, &dev), DOCA_SUCCESS);
	attr.gpu_dev = gpu;
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &others[0]), DOCA_SUCCESS);
	attr.net_dev = dev;
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &others[1]), DOCA_SUCCESS);
	cr_expect_neq((uintptr_t)others[0]->qp_gverbs->cpu_db / 4096,
		      (uintptr_t)others[1]->qp_gverbs->cpu_db / 4096);
	attr.gpu_dev = nic.gpu;
	attr.net_dev = nic.dev;
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl[0]), DOCA_SUCCESS);
	cr_expect_eq(hl[0]->qp_gverbs->cpu_db, slot[0]);
	doca_gpu_verbs_destroy_qp_hl(hl[0]);
	doca_gpu_verbs_destroy_qp_hl(others[0]);
	doca_gpu_verbs_destroy_qp_hl(others[1]);
	cr_expect_eq(doca_verbs_dev_close(dev), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
	for (int i = 101; i < 512; i++)
		doca_gpu_verbs_destroy_qp_hl(hl[i]);
}

/* ---- a CPU thread that uses only the public structs ---- */

/* more than 2^16 posts, so that the 16-bit indices of WQEs wrap */
#define BY_HAND	     66000u
#define PUTS_AT_ONCE 8u

static void post_by_hand(struct doca_gpu_verbs_qp *qp, uint64_t idx)
{
	const struct doca_gpu_dev_verbs_qp *cpu = qp->qp_cpu;
	struct doca_gpunetio_ib_mlx5_wqe_ctrl_seg *ctrl;

	ctrl = (void *)(cpu->sq_wqe_daddr + (size_t)(idx & cpu->sq_wqe_mask) * 64);
	memset(ctrl, 0, 64);
	ctrl->opmod_idx_opcode = htobe32((uint32_t)(uint16_t)idx << 8 |
					 DOCA_GPUNETIO_IB_MLX5_OPCODE_NOP);
	ctrl->qpn_ds = htobe32((uint32_t)cpu->sq_num << 8 | 1);
	ctrl->fm_ce_se = DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE;
	__atomic_store_n(qp->cpu_db, idx + 1, __ATOMIC_RELEASE);
}

static bool take_completion(struct doca_gpu_dev_verbs_cq *cq, uint32_t ci)
{
	volatile struct doca_gpunetio_ib_mlx5_cqe64 *cqe =
		(void *)(cq->cqe_daddr + (size_t)(ci & cq->cqe_mask) * sizeof(*cqe));
	const uint8_t op_own = cqe->op_own;

	if ((op_own & 1) != (ci / cq->cqe_num & 1) ||
	    op_own >> 4 == DOCA_GPUNETIO_IB_MLX5_CQE_INVALID)
		return false;
	cr_assert_eq(op_own >> 4, DOCA_GPUNETIO_IB_MLX5_CQE_REQ);
	cr_assert_eq(be16toh(cqe->wqe_counter), (uint16_t)ci);
	*cq->dbrec = htobe32((ci + 1) & 0xffffff);
	return true;
}

Test(cpu_proxy, cpu_thread_posts_and_polls_with_the_public_structs, .timeout = 60)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };
	const uint64_t end = e2e_now_ns() + E2E_WAIT_NS;
	struct doca_gpu_verbs_qp_hl *hl;
	struct doca_gpu_verbs_qp *qp;
	uint32_t qpn, posted = 0, done = 0;

	cr_assert_eq(gdk_verbs_create_qp_hl(&attr, GDK_QP_HL_QUEUES_ON_HOST, &hl), DOCA_SUCCESS);
	qp = hl->qp_gverbs;
	cr_assert_eq(doca_verbs_qp_get_qpn(hl->qp, &qpn), DOCA_SUCCESS);
	cr_assert_eq(e2e_connect(&nic, hl->qp, &nic.gid, qpn, path), DOCA_SUCCESS);
	while (done < BY_HAND && e2e_now_ns() < end) {
		while (posted < BY_HAND && posted - done < PUTS_AT_ONCE)
			post_by_hand(qp, posted++);
		cr_assert_eq(doca_gpu_verbs_cpu_proxy_progress(qp, NULL), DOCA_SUCCESS);
		while (take_completion(&qp->qp_cpu->cq_sq, done))
			done++;
	}
	cr_expect_eq(done, BY_HAND, "%u of %u completed", done, BY_HAND);
	doca_gpu_verbs_destroy_qp_hl(hl);
}

/* ---- the scan over many counters ---- */

#define MEMBERS 20

struct scanned {
	struct doca_gpu_verbs_qp_hl *hl[MEMBERS];
	uint64_t reg[MEMBERS];
	struct gdk_scan scan;
};

static struct scanned scanned;

static struct gdk_db_qp *member(int i)
{
	return gdk_to_db_qp(scanned.hl[i]->qp_gverbs);
}

static void raise_to(int i, uint64_t pi)
{
	*scanned.hl[i]->qp_gverbs->cpu_db = pi;
}

static void scan_join(int i)
{
	/* The last QP is emulated NO_DBR: its counter is in its state block. */
	bool emulated = i == MEMBERS - 1;

	attr.send_dbr_mode_ext = emulated ? DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_SW_EMULATED
					  : DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR;
	attr.nic_handler = emulated ? E2E_AUTO : E2E_PROXY;
	proxy_qp(&scanned.hl[i], &scanned.reg[i]);
}

static void scan_open(void)
{
	for (int i = 0; i < MEMBERS; i++) {
		scan_join(i);
		cr_assert_eq(gdk_scan_add(&scanned.scan, member(i)), DOCA_SUCCESS);
	}
	cr_assert_eq(gdk_scan_pass(&scanned.scan), 0);
}

static void scan_close(void)
{
	struct gdk_db_qp *x;

	while ((x = gdk_scan_any(&scanned.scan)))
		gdk_scan_remove(&scanned.scan, x);
	cr_assert_eq(scanned.scan.num_lines + scanned.scan.num_loose, 0);
	gdk_scan_free(&scanned.scan);
	for (int i = 0; i < MEMBERS; i++) {
		scanned.hl[i]->qp_gverbs->sq_db = member(i)->reg;
		doca_gpu_verbs_destroy_qp_hl(scanned.hl[i]);
	}
}

Test(cpu_proxy, scan_rings_only_the_counters_that_rose)
{
	scan_open();
	for (uint64_t n = 1; n < 100; n++) {
		raise_to((int)n % MEMBERS, n);
		raise_to((int)(n * 7 + 1) % MEMBERS, n);
		cr_assert_eq(gdk_scan_pass(&scanned.scan), (n * 6 + 1) % MEMBERS ? 2 : 1);
		cr_assert_eq(gdk_scan_pass(&scanned.scan), 0);
		cr_assert_eq(be32toh((uint32_t)scanned.reg[n % MEMBERS]) >> 8, n);
	}
	gdk_scan_remove(&scanned.scan, member(3));
	raise_to(3, 1000);
	raise_to(4, 1000); /* in the same cache line */
	cr_assert_eq(gdk_scan_pass(&scanned.scan), 1, "QP 3 was removed but rung");
	cr_assert_eq(gdk_scan_add(&scanned.scan, member(3)), DOCA_SUCCESS);
	cr_assert_eq(gdk_scan_pass(&scanned.scan), 1, "QP 3 was raised before it was added");
	scan_close();
}

/*
 * The scan looks for changes by the sum of the counters in a cache line. It must
 * notice a rise that leaves the sum as it was in the previous pass.
 */
Test(cpu_proxy, scan_notices_a_rise_that_keeps_the_sum_of_its_line)
{
	const uint64_t pi = 5;

	scan_open();
	raise_to(0, pi);
	cr_assert_eq(gdk_scan_pass(&scanned.scan), 1);
	cr_assert_eq(doca_gpu_verbs_reset_tracking_and_memory(scanned.hl[0]->qp_gverbs),
		     DOCA_SUCCESS);
	raise_to(0, pi);
	cr_assert_eq(gdk_scan_pass(&scanned.scan), 1,
		     "counter raised to the old value after a reset");

	gdk_scan_remove(&scanned.scan, member(0));
	doca_gpu_verbs_destroy_qp_hl(scanned.hl[0]);
	scan_join(0);
	cr_assert_eq(*scanned.hl[0]->qp_gverbs->cpu_db, 0);
	cr_assert_eq(scanned.hl[0]->qp_gverbs->cpu_db, scanned.scan.line[0].at);
	raise_to(1, pi);
	cr_assert_eq(gdk_scan_pass(&scanned.scan), 1, "neighbour raised when the slot was reused");
	cr_assert_eq(gdk_scan_add(&scanned.scan, member(0)), DOCA_SUCCESS);
	scan_close();
}

Test(cpu_proxy, scan_skips_a_locked_qp_and_rings_it_later)
{
	scan_open();
	for (int i = 0; i < MEMBERS; i += MEMBERS - 1) {
		raise_to(i, 1);
		pthread_spin_lock(&member(i)->proxy.step_lock);
		cr_assert_eq(gdk_scan_pass(&scanned.scan), 0, "a pass must skip a locked QP");
		pthread_spin_unlock(&member(i)->proxy.step_lock);
		cr_assert_eq(gdk_scan_pass(&scanned.scan), 1);
	}
	scan_close();
}
