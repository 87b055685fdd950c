/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Opens the selected NIC (see pick.h; under softnic-run the software NIC) with a PD
 * and a device handle for a unit test, and closes it again. */
#ifndef NIC_H
#define NIC_H

#include <criterion/criterion.h>
#include <infiniband/verbs.h>

#include "host/doca_verbs.h"
#include "pick.h"

struct nic {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	doca_dev_t *dev;
};

static inline struct ibv_context *nic_open_context(void)
{
	struct ibv_context *ctx = pick_open();

	cr_assert(ctx, "no NIC can be opened; run the test under softnic-run");
	return ctx;
}

static inline struct nic nic_open(void)
{
	struct nic nic = { .ctx = nic_open_context() };

	nic.pd = ibv_alloc_pd(nic.ctx);
	cr_assert(nic.pd);
	cr_assert_eq(doca_verbs_dev_open(nic.pd, &nic.dev), DOCA_SUCCESS);
	return nic;
}

static inline void nic_close(struct nic *nic)
{
	cr_expect_eq(doca_verbs_dev_close(nic->dev), DOCA_SUCCESS);
	cr_expect_eq(ibv_dealloc_pd(nic->pd), 0);
	cr_expect_eq(ibv_close_device(nic->ctx), 0);
}

#endif
