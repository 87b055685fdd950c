/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A BlueFlame doorbell stores the DBREC and then writes the WQE to the doorbell
 * register. The NIC may execute the WQE as soon as it reads the DBREC, so another
 * thread may overwrite the slot before the register is written. The register must
 * still receive the original WQE. This test overwrites the slot right after the DBREC
 * store.
 */
#include <criterion/criterion.h>

#define gdk_st32 platform_st32
#include "device/gdk/platform.h"
#undef gdk_st32

static void *overwrite_at;
static unsigned int overwrites;

static void gdk_st32(uint32_t *p, uint32_t v, int scope);

static int in_one = 1; /* one thread can copy the WQE, as a GPU thread can from shared memory */
#define gdk_bf_in_one(wqe) ((void)(wqe), in_one)

#include "rig.h"

static struct rig rig;

static void gdk_st32(uint32_t *p, uint32_t v, int scope)
{
	platform_st32(p, v, scope);
	if (p == &rig.dbrec[1] && overwrite_at) {
		memset(overwrite_at, 0xee, 64);
		overwrites++;
	}
}

static void check_register(unsigned int way, uint64_t idx, const void *wqe)
{
	if (way < 2)
		cr_assert_eq(*(uint64_t *)(void *)(rig.page + 0x800),
			     gdk_db_value(rig.qp.sq_num_shift8_be, idx + 1));
	else
		cr_assert_arr_eq(rig.page + (way % 2 ? 0x900 : 0x800), wqe, 64,
				 "wrong WQE in the register, way %u", way);
}

/* Ways 0 and 1 ring a plain doorbell, 2 and 3 copy the WQE. */
static void post(unsigned int way, uint64_t idx, const struct doca_gpu_dev_verbs_wqe *wqe)
{
	const struct gdk_how how = gdk_how(RIG_GPU, RIG_BF, GDK_THREAD, 0);

	gdk_mark_ready(&rig.qp, idx, idx, RIG_GPU, RIG_AUTO);
	if (way < 2)
		gdk_submit(&rig.qp, idx + 1, how);
	else if (way == 2)
		gdk_submit_bf(&rig.qp, idx + 1, wqe, how);
	else
		gdk_submit_bf_warp(&rig.qp, idx + 1, wqe, how);
}

Test(bf_reuse, register_holds_the_wqe_as_it_was_posted)
{
	struct doca_gpu_dev_verbs_wqe *wqe, copy, own;
	unsigned int way;
	uint64_t idx;

	rig_init(&rig, 8, RIG_BF, 0);
	for (way = 0; way < 8; way++) {
		overwrite_at = NULL;
		memset(rig.page, 0, 4096);
		/* `parked` is only a hint: if it is wrong, the poster must find the token in its
		 * slot's ready word. */
		if (way % 4 == 0)
			rig.st->parked = UINT64_MAX;
		cr_assert_eq(gdk_reserve(&rig.qp, 1, RIG_GPU, 0, &idx), 0);
		wqe = gdk_get_wqe_ptr(&rig.qp, idx);
		gdk_wqe_nop(&rig.qp, wqe, (uint16_t)idx, GDK_CE_ALWAYS);
		copy = *wqe;
		own = *wqe;
		overwrite_at = wqe;
		post(way % 4, idx, way < 4 ? &own : wqe);
		cr_assert_eq(overwrites, way + 1);
		check_register(way % 4, idx, &copy);
	}
	rig_fini(&rig);
}

/* A thread that cannot copy 64 bytes at once rings a plain doorbell. So does gdk_ring_bf(). */
Test(bf_reuse, thread_that_cannot_copy_rings_a_plain_doorbell)
{
	static const gdk_mode_t modes[] = { RIG_EXCL, RIG_CTA, RIG_GPU };
	const uint64_t *reg = NULL;
	uint64_t idx;

	in_one = 0;
	for (uint32_t i = 0; i < 6; i++) {
		rig_init(&rig, 8, RIG_BF, 0);
		reg = (const uint64_t *)(const void *)(rig.page + 0x800);
		cr_assert_eq(gdk_reserve(&rig.qp, 1, modes[i / 2], 0, &idx), 0);
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, idx), 0, GDK_CE_ALWAYS);
		if (i % 2) {
			gdk_update_dbr(&rig.qp, 1, 0);
			gdk_ring_bf(&rig.qp, rig.ring);
		} else {
			gdk_mark_ready(&rig.qp, idx, idx, modes[i / 2], RIG_AUTO);
			gdk_submit_bf(&rig.qp, 1, rig.ring,
				      gdk_how(modes[i / 2], RIG_BF, GDK_THREAD, 0));
		}
		cr_expect_eq(reg[0], gdk_db_value(rig.qp.sq_num_shift8_be, 1));
		cr_expect_eq(reg[1], 0, "the WQE was copied");
		cr_expect_eq(rig.st->bf_half, 0);
		rig_nic(&rig);
		cr_expect_eq(rig.ci, 1);
		cr_expect_eq(rig.faults, 0);
		rig_fini(&rig);
	}
}
