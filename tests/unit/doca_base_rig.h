/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * For tests of the SDK's interface: the opened NIC, and the case of an operation that is repeated,
 * each time with another failing allocation or verbs call.
 */
#ifndef DOCA_BASE_RIG_H
#define DOCA_BASE_RIG_H

#include <criterion/criterion.h>

#include "doca_dev.h"

#include "../lib/capture.h"
#include "../lib/failalloc.h"
#include "../lib/leaks.h"
#include "../lib/nicfail.h"

static inline struct doca_dev *rig_open(void)
{
	struct doca_devinfo **list;
	struct doca_dev *dev;
	uint32_t num = 0;

	cr_assert_eq(doca_devinfo_create_list(&list, &num), DOCA_SUCCESS);
	cr_assert_geq(num, 1, "no NIC; run the test under softnic-run");
	cr_assert_eq(doca_dev_open(list[0], &dev), DOCA_SUCCESS);
	cr_expect_eq(doca_devinfo_destroy_list(list), DOCA_SUCCESS);
	return dev;
}

/* Repeats op, which undoes what it did, with the nth allocation failing, then with the nth verbs
 * call failing. Each failure must be logged, and must not leave memory or objects of the NIC. At
 * least allocs and calls runs must fail. tolerated: number of allocations without which op may
 * succeed, because only a warning needs them, or the undoing. */
static inline void rig_faults_but(doca_error_t (*op)(void), uint32_t allocs, uint32_t calls,
				  uint32_t tolerated)
{
	uint32_t n, objects, failed = 0, passed = 0;
	bool logged = false;
	doca_error_t err;
	size_t live;

	nicfail_find();
	cr_assert_eq(op(), DOCA_SUCCESS);
	objects = nicfail_live();
	live = failalloc_live();
	for (n = 1; FAILALLOC_WORKS; n++) {
		bool hit;

		capture_begin();
		failalloc_arm(n);
		err = op();
		hit = failalloc_disarm();
		cr_expect(*capture_end() || !err, "allocation %u: no log line", n);
		if (!hit)
			break;
		passed += err == DOCA_SUCCESS;
		/* OPERATING_SYSTEM: no thread can be created */
		cr_expect(err == DOCA_ERROR_NO_MEMORY || err == DOCA_ERROR_OPERATING_SYSTEM ||
				  (!err && passed <= tolerated),
			  "allocation %u: %s", n, doca_error_get_name(err));
		cr_expect_eq(failalloc_live(), live, "allocation %u: memory leaks", n);
		cr_expect_eq(nicfail_live(), objects, "allocation %u: objects leak", n);
		failed += err != DOCA_SUCCESS;
	}
	cr_expect(failed >= allocs || !FAILALLOC_WORKS, "%u allocations failed", failed);
	leaks_ignore(); /* libmlx5 keeps the memory of an object that the kernel does not destroy */
	/* At least 30, and then until one does not fail. */
	for (n = 1, failed = 0; (n <= 30 || logged) && calls; n++) {
		capture_begin();
		nicfail_next(0, 0, 0, n);
		err = op();
		nicfail_next(0, 0, 0, 0);
		logged = *capture_end();
		cr_expect(logged || !err, "verbs call %u: no log line", n);
		cr_expect_eq(nicfail_live(), objects, "verbs call %u: objects leak", n);
		cr_expect_eq(failalloc_live(), live, "verbs call %u: memory leaks", n);
		failed += err != DOCA_SUCCESS;
	}
	cr_expect_geq(failed, calls, "%u verbs calls failed", failed);
	cr_expect_eq(op(), DOCA_SUCCESS);
}

static inline void rig_faults(doca_error_t (*op)(void), uint32_t allocs, uint32_t calls)
{
	rig_faults_but(op, allocs, calls, 0);
}

#define RIG_CMDS 40u /* op() has fewer firmware commands */

/* op() with each firmware command refused. */
static inline void rig_cmd_faults(doca_error_t (*op)(void), uint32_t errors)
{
	uint32_t n, objects, failed = 0;
	bool logged = true;
	doca_error_t err;

	nicfail_find();
	cr_assert_eq(op(), DOCA_SUCCESS);
	objects = nicfail_live();
	leaks_ignore();
	for (n = 1; n <= RIG_CMDS; n++) {
		capture_begin();
		nicfail_next(n, 0x05, 0xbeef1, 0);
		err = op();
		nicfail_next(0, 0, 0, 0);
		logged = *capture_end();
		cr_expect(logged || !err, "command %u: no log line", n);
		cr_expect_eq(nicfail_live(), objects, "command %u: objects leak", n);
		failed += err != DOCA_SUCCESS;
	}
	cr_expect(!logged, "there are more than %u commands", RIG_CMDS);
	cr_expect_geq(failed, errors, "%u commands failed", failed);
	cr_expect_eq(op(), DOCA_SUCCESS);
}

#ifdef STANDIN_H
/* As rig_faults(), with the nth call of the CUDA driver failing. If it is the one that frees the
 * memory, the memory stays allocated, and op succeeds. */
static inline void rig_cuda_faults(doca_error_t (*op)(void), int errors)
{
	int live = standin_cuda_live(), failed = 0, hit = 1;
	doca_error_t err;
	long n;

	for (n = 1; hit && n < 100; n++) {
		capture_begin();
		standin_cuda_fail_at(n);
		err = op();
		hit = standin_cuda_failed();
		standin_cuda_fail_at(0);
		cr_expect(*capture_end() || !err, "CUDA call %ld: no log line", n);
		if (err)
			cr_expect_eq(standin_cuda_live(), live, "CUDA call %ld: a leak", n);
		live = standin_cuda_live();
		failed += err != DOCA_SUCCESS;
	}
	cr_expect_geq(failed, errors, "%d CUDA calls failed", failed);
	cr_expect_eq(op(), DOCA_SUCCESS);
}
#endif

#endif
