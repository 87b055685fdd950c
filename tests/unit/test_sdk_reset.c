/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Reset of an exported QP of the DOCA SDK: the index at which its CQ continues. The counter
 * of a CQ of the SDK cannot be queried, so the index comes from the ring. A collapsed CQ
 * shows only the newest CQE, from which the index follows if all WQEs were signalled;
 * otherwise the index stays the same. Here, the tests play the NIC.
 */
#include <endian.h>

#include "../standin/sdk_rig.h"
#include "device/gdk/onesided_dev.h"

#define DEPTH 64u /* also of the stand-in's CQs */

static struct doca_gpunetio_ib_mlx5_cqe64 *cqe_at(const struct doca_gpu_verbs_qp_hl *hl,
						  bool collapsed, uint64_t producer)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *ring = hl->cq_sq_umem_gpu_ptr;

	return &ring[collapsed ? 0 : producer % DEPTH];
}

/* Posts n NOPs after a reset and plays the NIC, which writes the CQEs from index producer on. */
static void complete_nops(const struct doca_gpu_verbs_qp_hl *hl, struct doca_gpu_dev_verbs_qp *dev,
			  bool collapsed, uint64_t producer, uint16_t n, bool all_signalled)
{
	const gdk_mode_t mode = DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU;
	const gdk_handler_t handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO;
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe;
	uint64_t idx;

	cr_assert_eq(gdk_reserve(dev, n, mode, 0, &idx), 0);
	cr_assert_eq(idx, 0);
	for (uint16_t i = 0; i < n; i++) {
		bool signalled = all_signalled || i + 1 == n;

		gdk_wqe_nop(dev, gdk_get_wqe_ptr(dev, i), i,
			    signalled ? DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE : 0);
		if (!signalled)
			continue;
		cqe = cqe_at(hl, collapsed, producer);
		cqe->wqe_counter = htobe16(i);
		cqe->op_own = !collapsed && producer & DEPTH ? 1 : 0;
		producer++;
	}
	gdk_mark_ready(dev, 0, n - 1u, mode, handler);
	gdk_submit(dev, n, gdk_how(mode, handler, GDK_THREAD, 0));
}

static const struct {
	uint16_t nops;
	bool all_signalled;
	uint64_t producer[2]; /* [1]: of a collapsed CQ */
} rounds[] = {
	{ 60, true, { 60, 60 } },
	{ 40, true, { 100, 100 } },
	{ 7, false, { 101, 100 } },
	{ 3, true, { 104, 103 } },
};

static void expect_producers(bool collapsed)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = { .sq_nwqe = DEPTH };
	struct doca_gpu_dev_verbs_qp *dev;
	struct doca_gpu_verbs_qp_hl *hl;
	uint64_t at = 0;
	struct nic nic;

	sdk_begin("sdk");
	nic = nic_open();
	cr_assert_eq(doca_gpu_create(BDF, &attr.gpu_dev), DOCA_SUCCESS);
	attr.net_dev = nic.dev;
	attr.cq_collapsed = collapsed;
	cr_assert_eq(doca_gpu_verbs_create_qp_hl(&attr, &hl), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_get_qp_dev(hl->qp_gverbs, &dev), DOCA_SUCCESS);
	for (unsigned int i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++) {
		cr_expect_eq(doca_gpu_verbs_reset_tracking_and_memory(hl->qp_gverbs), DOCA_SUCCESS);
		cr_expect_eq(dev->cq_sq.cqe_rsvd, at, "a reset without CQEs must not change it");
		complete_nops(hl, dev, collapsed, at, rounds[i].nops, rounds[i].all_signalled);
		cr_expect_eq(doca_gpu_verbs_reset_tracking_and_memory(hl->qp_gverbs), DOCA_SUCCESS);
		at = dev->cq_sq.cqe_rsvd;
		cr_expect_eq(at, rounds[i].producer[collapsed], "round %u: %lu", i, at);
		cr_expect_eq(cqe_at(hl, collapsed, at)->op_own,
			     !collapsed && at & DEPTH ? 0xf0 : 0xf1, "round %u: not invalid", i);
	}
	cr_expect_eq(doca_gpu_verbs_destroy_qp_hl(hl), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(attr.gpu_dev), DOCA_SUCCESS);
	nic_close(&nic);
}

Test(sdk_reset, cq_continues_at_its_index)
{
	expect_producers(false);
}

Test(sdk_reset, collapsed_cq_continues_at_its_index)
{
	expect_producers(true);
}
