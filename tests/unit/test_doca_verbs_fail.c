/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Contexts, protection domains, umems and UARs of the SDK's interface with failing allocations and
 * verbs calls: each failure is logged, and nothing leaks.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "doca_rdma_bridge.h"
#include "doca_uar.h"
#include "doca_umem.h"
#include "doca_verbs.h"

#include "doca_base_rig.h"

static char memory[4096] __attribute__((aligned(4096)));

/* A call that destroys an object may fail once, and the object then stays valid. */
#define TWICE(call) (call != DOCA_SUCCESS ? call : DOCA_SUCCESS)

/* Opens the objects that belong to a NIC, and closes those that it opened. Returns the first error
 * of an open. */
static doca_error_t on_dev(struct doca_dev *dev)
{
	struct doca_umem *umem = NULL;
	struct doca_uar *uar = NULL;
	doca_error_t err;

	err = doca_uar_create(dev, DOCA_UAR_ALLOCATION_TYPE_NONCACHE, &uar);
	if (!err)
		err = doca_umem_create(dev, memory, sizeof(memory),
				       DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, &umem);
	if (umem)
		cr_expect_eq(TWICE(doca_umem_destroy(umem)), DOCA_SUCCESS);
	if (uar)
		cr_expect_eq(TWICE(doca_uar_destroy(uar)), DOCA_SUCCESS);
	return err;
}

static doca_error_t on_context(struct doca_verbs_context *context)
{
	struct doca_verbs_ah_attr *ah = NULL;
	struct doca_verbs_pd *pd = NULL;
	struct doca_dev *dev = NULL;
	doca_error_t err;

	err = doca_verbs_pd_create(context, &pd);
	if (!err)
		err = doca_rdma_bridge_open_dev_from_pd(doca_verbs_bridge_verbs_pd_get_ibv_pd(pd),
							&dev);
	if (!err)
		err = on_dev(dev);
	if (!err)
		err = doca_verbs_ah_attr_create(context, &ah);
	if (ah)
		cr_expect_eq(doca_verbs_ah_attr_destroy(ah), DOCA_SUCCESS);
	if (dev)
		cr_expect_eq(doca_dev_close(dev), DOCA_SUCCESS);
	if (pd)
		cr_expect_eq(TWICE(doca_verbs_pd_destroy(pd)), DOCA_SUCCESS);
	return err;
}

static doca_error_t open_context(struct doca_verbs_context **context)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	doca_error_t err;

	cr_assert(list && list[0]);
	err = doca_verbs_bridge_verbs_context_create(list[0], DOCA_VERBS_CONTEXT_CREATE_FLAGS_NONE,
						     context);
	ibv_free_device_list(list);
	return err;
}

static doca_error_t open_and_close(void)
{
	struct doca_verbs_device_attr *attr = NULL;
	struct doca_verbs_context *context = NULL;
	doca_error_t err = open_context(&context);

	if (!err)
		err = doca_verbs_query_device(context, &attr);
	if (attr)
		cr_expect_eq(doca_verbs_device_attr_free(attr), DOCA_SUCCESS);
	if (context)
		cr_expect_eq(TWICE(doca_verbs_context_destroy(context)), DOCA_SUCCESS);
	return err;
}

static struct doca_verbs_context *kept;

static doca_error_t on_kept(void)
{
	return on_context(kept);
}

Test(doca_verbs_fail, contexts, .timeout = 60)
{
	rig_faults(open_and_close, 3, 4);
	cr_expect_eq(nicfail_live(), 0);
}

/* The context stays open: its end would free what leaks. */
Test(doca_verbs_fail, objects_of_a_context, .timeout = 60)
{
	cr_assert_eq(open_context(&kept), DOCA_SUCCESS);
	rig_faults(on_kept, 5, 4);
	cr_expect_eq(doca_verbs_context_destroy(kept), DOCA_SUCCESS);
	cr_expect_eq(nicfail_live(), 0);
}
