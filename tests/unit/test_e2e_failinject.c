/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Creation when something fails: every allocation of the library, every
 * firmware command and every driver call on the path is made to fail once, one
 * after another, until a run gets through. A failed run must say so, must give
 * no object, and must leave no object of the NIC, no descriptor and no memory.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "../../core/slab.h"
#include "../lib/e2e.h"
#include "../lib/failalloc.h"
#include "../lib/fds.h"
#include "../lib/nicfail.h"

#define RUNS_MAX 2000u

struct held {
	uint32_t objects;
	unsigned int fds;
	size_t blocks; /* that the library holds */
};

static struct held held_now(void)
{
	return (struct held){ .objects = nicfail_live(), .fds = count_fds(),
			      .blocks = failalloc_live() };
}

enum kind { ALLOC, COMMAND, CALL };
static const char *const kind_name[] = { "allocation", "firmware command", "driver call" };

static uint64_t faults_before;
static bool was_hit; /* what was armed did fail */

static void arm(enum kind kind, uint32_t nth)
{
	was_hit = false;
	faults_before = nicfail_stats()->faults_injected;
	if (kind == ALLOC)
		failalloc_arm(nth);
	else
		nicfail_next(kind == COMMAND ? nth : 0, 0x0f, 0xabc, kind == CALL ? nth : 0);
}

static void disarm(void)
{
	was_hit |= failalloc_disarm() || nicfail_stats()->faults_injected != faults_before;
	nicfail_next(0, 0, 0, 0);
}

/* One way of creating something. 0: it was created and is destroyed again. */
typedef doca_error_t (*create_fn)(struct e2e_nic *nic);

static struct e2e_nic nic;

static doca_error_t create_bf(struct e2e_nic *n);

/* A leak is there each time; a descriptor of another thread of the runner is not. */
static doca_error_t fail_once(enum kind kind, unsigned int n, create_fn create,
			      struct held *before, struct held *after)
{
	unsigned int tries = 0;
	doca_error_t err;

	do {
		gdk_slab_trim(nic.gpu, nic.dev); /* each time anew */
		*before = held_now();
		arm(kind, n);
		err = create(&nic);
		disarm();
		gdk_slab_trim(nic.gpu, nic.dev);
		*after = held_now();
	} while (after->fds != before->fds && ++tries < 3);
	return err;
}

static void each_failure(enum kind kind, create_fn create, unsigned int at_least)
{
	struct held before, after;
	unsigned int n, failed = 0;
	doca_error_t err;

	nicfail_find();
	e2e_open(&nic);
	/* What libmlx5 keeps for good (register pages), it has after a run of each kind. */
	cr_assert_eq(create_bf(&nic), DOCA_SUCCESS);
	cr_assert_eq(create(&nic), DOCA_SUCCESS);
	cr_assert_eq(create(&nic), DOCA_SUCCESS);
	for (n = 1; n < RUNS_MAX; n++) {
		err = fail_once(kind, n, create, &before, &after);
		cr_expect_eq(after.objects, before.objects, "%s %u: %u objects of the NIC stay",
			     kind_name[kind], n, after.objects - before.objects);
		cr_expect_eq(after.fds, before.fds, "%s %u: a descriptor stays", kind_name[kind],
			     n);
		cr_expect_eq(after.blocks, before.blocks, "%s %u: %zd blocks stay", kind_name[kind],
			     n, (ssize_t)(after.blocks - before.blocks));
		if (!was_hit) { /* there are not so many of them */
			cr_expect_eq(err, DOCA_SUCCESS);
			break;
		}
		/* Success is right only where another way was found (a second kind of
		 * register page, memory of another node): create has checked the object. */
		failed += err != DOCA_SUCCESS;
	}
	cr_expect_lt(n, RUNS_MAX);
	cr_expect_geq(failed, at_least, "%u of %u gave an error", failed, n - 1);
	e2e_close(&nic);
}

static doca_error_t create_qp(struct e2e_nic *n, enum doca_gpu_dev_verbs_nic_handler handler)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = { 0 };
	struct doca_gpu_verbs_qp_hl *hl = NULL;
	doca_error_t err;

	attr.gpu_dev = n->gpu;
	attr.net_dev = n->dev;
	attr.ibpd = n->pd;
	attr.sq_nwqe = 64;
	attr.nic_handler = handler;
	if (handler == E2E_NO_DBR)
		attr.send_dbr_mode_ext = DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW;
	err = doca_gpu_verbs_create_qp_hl(&attr, &hl);
	disarm(); /* destroying is not what fails here */
	if (err) {
		cr_expect_null(hl, "an object although it failed");
		return err;
	}
	cr_assert_not_null(hl, "success without an object");
	cr_expect_not_null(hl->qp);
	cr_expect_not_null(hl->cq_sq);
	cr_expect_not_null(hl->qp_gverbs);
	cr_expect_eq(hl->nic_handler, handler);
	return doca_gpu_verbs_destroy_qp_hl(hl);
}

static doca_error_t create_db(struct e2e_nic *n)
{
	return create_qp(n, E2E_DB);
}

static doca_error_t create_bf(struct e2e_nic *n)
{
	return create_qp(n, E2E_BF);
}

static doca_error_t create_proxy(struct e2e_nic *n)
{
	return create_qp(n, E2E_PROXY);
}

static doca_error_t create_no_dbr(struct e2e_nic *n)
{
	return create_qp(n, E2E_NO_DBR);
}

static doca_error_t create_group(struct e2e_nic *n)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = { 0 };
	struct doca_gpu_verbs_qp_group_hl *group = NULL;
	doca_error_t err;

	attr.gpu_dev = n->gpu;
	attr.net_dev = n->dev;
	attr.ibpd = n->pd;
	attr.sq_nwqe = 64;
	attr.nic_handler = E2E_DB;
	err = doca_gpu_verbs_create_qp_group_hl(&attr, &group);
	disarm();
	if (err) {
		cr_expect_null(group);
		return err;
	}
	return doca_gpu_verbs_destroy_qp_group_hl(group);
}

static doca_error_t create_connected(struct e2e_nic *n)
{
	struct doca_verbs_gid gid;
	doca_verbs_ah_attr_t *ah = NULL;
	doca_verbs_qp_attr_t *attr = NULL;
	doca_error_t err;

	memcpy(gid.raw, n->gid.raw, 16);
	err = doca_verbs_ah_attr_create(n->dev, &ah);
	if (err)
		return err;
	err = doca_verbs_qp_attr_create(&attr);
	disarm();
	doca_verbs_ah_attr_destroy(ah);
	if (!err)
		doca_verbs_qp_attr_destroy(attr);
	return err;
}

static doca_error_t create_device(struct e2e_nic *n)
{
	doca_gpu_t *gpu = NULL;
	doca_dev_t *dev = NULL;
	doca_error_t err = doca_verbs_dev_open(n->pd, &dev);

	if (err) {
		disarm();
		cr_expect_null(dev);
		return err;
	}
	err = doca_gpu_create("host", &gpu);
	disarm();
	cr_assert_eq(doca_verbs_dev_close(dev), DOCA_SUCCESS);
	if (err) {
		cr_expect_null(gpu);
		return err;
	}
	return doca_gpu_destroy(gpu);
}

static doca_error_t create_service(struct e2e_nic *n)
{
	doca_gpu_verbs_service_t service = NULL;
	doca_error_t err = doca_gpu_verbs_create_service(&service);

	(void)n;
	disarm();
	if (err) {
		cr_expect_null(service);
		return err;
	}
	return doca_gpu_verbs_destroy_service(service);
}

static doca_error_t create_memory(struct e2e_nic *n)
{
	void *gpu_ptr = NULL, *cpu_ptr = NULL;
	doca_error_t err = doca_gpu_mem_alloc(n->gpu, 10000, 4096, DOCA_GPU_MEM_TYPE_CPU_GPU,
					      &gpu_ptr, &cpu_ptr);

	disarm();
	if (err) {
		cr_expect_null(gpu_ptr);
		return err;
	}
	return doca_gpu_mem_free(n->gpu, gpu_ptr);
}

static void each_allocation(create_fn create, unsigned int at_least)
{
	if (!FAILALLOC_WORKS)
		cr_skip_test("a sanitizer owns malloc");
	each_failure(ALLOC, create, at_least);
}

Test(e2e_failinject, commands_of_a_db_qp)
{
	each_failure(COMMAND, create_db, 2);
}

Test(e2e_failinject, commands_of_a_bf_qp)
{
	each_failure(COMMAND, create_bf, 2);
}

Test(e2e_failinject, commands_of_a_proxy_qp)
{
	each_failure(COMMAND, create_proxy, 2);
}

Test(e2e_failinject, commands_of_a_no_dbr_qp)
{
	each_failure(COMMAND, create_no_dbr, 2);
}

Test(e2e_failinject, commands_of_a_group)
{
	each_failure(COMMAND, create_group, 4);
}

Test(e2e_failinject, commands_of_a_device)
{
	each_failure(COMMAND, create_device, 1);
}

Test(e2e_failinject, calls_of_a_db_qp)
{
	each_failure(CALL, create_db, 4);
}

Test(e2e_failinject, calls_of_a_proxy_qp)
{
	each_failure(CALL, create_proxy, 4);
}

Test(e2e_failinject, calls_of_a_group)
{
	each_failure(CALL, create_group, 8);
}

Test(e2e_failinject, calls_of_a_device)
{
	each_failure(CALL, create_device, 1);
}

Test(e2e_failinject, allocations_of_a_db_qp)
{
	each_allocation(create_db, 5);
}

Test(e2e_failinject, allocations_of_a_bf_qp)
{
	each_allocation(create_bf, 5);
}

Test(e2e_failinject, allocations_of_a_proxy_qp)
{
	each_allocation(create_proxy, 5);
}

Test(e2e_failinject, allocations_of_a_no_dbr_qp)
{
	each_allocation(create_no_dbr, 5);
}

Test(e2e_failinject, allocations_of_a_group)
{
	each_allocation(create_group, 8);
}

Test(e2e_failinject, allocations_of_a_device)
{
	each_allocation(create_device, 2);
}

Test(e2e_failinject, allocations_of_attributes)
{
	each_allocation(create_connected, 2);
}

Test(e2e_failinject, allocations_of_a_service)
{
	each_allocation(create_service, 1);
}

Test(e2e_failinject, allocations_of_memory)
{
	each_allocation(create_memory, 1);
}
