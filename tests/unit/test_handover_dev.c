/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The handover of the token. A thread may be preempted just before it stores to the
 * doorbell register, while others post tens of thousands of WQEs. If token_first is
 * set, as in GPU code, the thread may have left the token already. This test makes
 * the posts of other threads just before the store to the register.
 */
#include <criterion/criterion.h>

static int token_first;
#define GDK_TOKEN_FIRST token_first
#include "device/gdk/platform.h"

static void (*meanwhile)(void);
static unsigned int stores; /* stores to the register */

static void run_others(void)
{
	void (*others)(void) = meanwhile;

	stores++;
	meanwhile = NULL;
	if (others)
		others();
}

static void nic_while_waiting(void);

/* The headers that are included below call these wrappers. */
#define gdk_mmio_st64(p, v) (run_others(), gdk_mmio_st64(p, v))
#define gdk_relax(spins)    (nic_while_waiting(), gdk_relax(spins))

#include "rig.h"

#define DEPTH 64u
#define POSTS 40000u /* more than 2^15, so a late doorbell's 16-bit index looks like a future one */

static struct rig rig;

static void nic_while_waiting(void)
{
	rig_nic(&rig);
}

static void post(uint32_t n)
{
	uint64_t idx, i;

	cr_assert_eq(gdk_reserve(&rig.qp, n, RIG_CTA, 0, &idx), 0);
	for (i = idx; i < idx + n; i++)
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, i), (uint16_t)i, GDK_CE_ALWAYS);
	gdk_post(&rig.qp, idx, idx + n - 1, RIG_CTA, RIG_AUTO, 0);
}

static uint64_t in_flight(void)
{
	(void)gdk_poll_ticket(&rig.qp, rig.qp.sq_rsvd_index - 1, RIG_CTA);
	return rig.qp.sq_rsvd_index - rig.st->completed;
}

static void others_post(void)
{
	uint32_t i;

	for (i = 0; i < POSTS && in_flight() < DEPTH; i++) {
		post(1);
		rig_nic(&rig);
	}
}

static void all_is_executed(void)
{
	do
		rig_nic(&rig);
	while (in_flight());
	cr_expect_eq(rig.faults, 0);
	cr_expect_eq(rig.ci, rig.qp.sq_rsvd_index);
	rig_fini(&rig);
}

Test(handover_dev, late_doorbell_store_does_no_harm, .timeout = 60)
{
	rig_init(&rig, DEPTH, RIG_DB, 0);
	meanwhile = others_post;
	post(1);
	all_is_executed();
}

static int overtaken;

static void others_ring(void)
{
	const uint64_t *regs = (const uint64_t *)(const void *)rig.page;

	post(1);
	overtaken = regs[0x800 / 8] || regs[0x900 / 8];
	rig_nic(&rig);
}

static void expect_overtaken(int handler, int expected)
{
	rig_init(&rig, DEPTH, handler, 0);
	meanwhile = others_ring;
	post(2);
	cr_expect(!meanwhile);
	cr_expect_eq(overtaken, expected, "handler %d: wrong order of the two doorbell stores",
		     handler);
	all_is_executed();
}

/* With token_first, the doorbell with the older index is stored last, which must do no harm. */
Test(handover_dev, token_first_leaves_the_token_before_the_doorbell, .timeout = 60)
{
	token_first = 1;
	expect_overtaken(RIG_DB, 1);
	token_first = 0;
	expect_overtaken(RIG_DB, 0);
}

/*
 * Without a DBREC, the NIC sees only the register, so holders must store to it in
 * order. With BlueFlame, 64-byte writes of two holders must not interleave. So the
 * holder must leave the token only after its store to the register.
 */
Test(handover_dev, no_dbr_and_bf_leave_the_token_after_the_doorbell, .timeout = 60)
{
	token_first = 1;
	expect_overtaken(RIG_NO_DBR, 0);
	expect_overtaken(RIG_BF, 0);
}

/*
 * A put that waits for a free slot first rings the published slots. This changes the
 * state, so the put must read it again after the wait.
 */
Test(handover_dev, state_is_read_again_after_waiting_for_a_slot)
{
	static const gdk_mode_t modes[] = { RIG_EXCL, RIG_CTA, RIG_GPU };
	const struct doca_gpu_dev_verbs_addr a = { 0x1000, 1 };
	uint64_t ticket;
	uint32_t i, m;

	for (m = 0; m < 3; m++) {
		rig_init(&rig, DEPTH, RIG_DB, 0);
		stores = 0;
		for (i = 0; i <= DEPTH; i++)
			cr_assert_eq(gdk_put(&rig.qp, a, a, 8, &ticket, modes[m], RIG_AUTO,
					     RIG_THREAD, i < DEPTH ? GDK_OPT_SKIP_DB : 0),
				     0);
		cr_expect_eq(rig.st->rung, DEPTH + 1);
		cr_expect_eq(rig.st->doorbells, stores,
			     "mode %d: doorbells counted differ from %u register stores", modes[m],
			     stores);
		all_is_executed();
	}
}
