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
static void (*offered)(void);	/* called when a holder has left the token */
static unsigned int stores;	/* stores to the register */
static unsigned int nesting;	/* in a call of meanwhile or offered */
static unsigned int own_stores; /* stores to the register outside of them */

static void run_others(void)
{
	void (*others)(void) = meanwhile;

	stores++;
	own_stores += !nesting;
	meanwhile = NULL;
	nesting++;
	if (others)
		others();
	nesting--;
}

static void take_offer(const void *p);
static void poll_left(const void *p);
static void nic_takes(void);

static void nic_while_waiting(void);

/* The headers that are included below call these wrappers. */
#define gdk_mmio_st64(p, v)   (run_others(), gdk_mmio_st64(p, v), nic_takes())
#define gdk_st32(p, v, scope) (gdk_st32(p, v, scope), take_offer(p))
#define gdk_ld32(p, scope)    (poll_left(p), gdk_ld32(p, scope))
#define gdk_relax(spins)      (nic_while_waiting(), gdk_relax(spins))

#include "rig.h"

#define DEPTH 64u
#define POSTS 40000u /* more than 2^15, so a late doorbell's 16-bit index looks like a future one */

static struct rig rig;

static void nic_while_waiting(void)
{
	rig_nic(&rig);
}

static void take_offer(const void *p)
{
	void (*others)(void) = offered;

	if (p != &rig.st->left || rig.st->left != GDK_LEFT || nesting || !others)
		return;
	nesting++;
	others();
	nesting--;
}

static unsigned int polls_left; /* loads of `left` until `offered` is called */

static void poll_left(const void *p)
{
	if (p == &rig.st->left && !nesting && polls_left && !--polls_left)
		take_offer(p);
}

static uint64_t longest_step; /* largest number of slots of a doorbell */
static int nic_is_quick;      /* the NIC reads the register after each store */

static void nic_takes(void)
{
	const uint64_t before = rig.pi;

	if (!nic_is_quick)
		return;
	rig_nic(&rig);
	if (rig.pi - before > longest_step)
		longest_step = rig.pi - before;
}

static void post(uint32_t n)
{
	(void)rig_post_nops(&rig, n, RIG_CTA, 0);
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
			cr_assert_eq(gdk_put(&rig.qp, a, a, 8, &ticket,
					     gdk_how(modes[m], RIG_AUTO, RIG_THREAD,
						     i < DEPTH ? GDK_OPT_SKIP_DB : 0)),
				     0);
		cr_expect_eq(rig.st->rung, DEPTH + 1);
		cr_expect_eq(rig.st->doorbells, stores,
			     "mode %d: doorbells counted differ from %u register stores", modes[m],
			     stores);
		all_is_executed();
	}
}

/* ---- a holder does not ring for others for ever ---- */

#define OTHERS 200u /* slots that others post while a holder rings */

static gdk_mode_t how_mode;
static uint32_t posted, offers, own_at_offer;
static uint32_t others_depth = 1024, others_slots = 1; /* of the ring; of each post */

/* Others post once during each doorbell of the holder. They do not get the token. */
static void others_keep_posting(void)
{
	if (posted++ < OTHERS) {
		(void)rig_post_nops(&rig, others_slots, how_mode, 0);
		meanwhile = others_keep_posting;
	}
}

static void note_offer(void)
{
	offers++;
	own_at_offer = own_stores;
}

/* Others post and take the token. */
static void others_take_token(void)
{
	note_offer();
	meanwhile = NULL;
	(void)rig_post_nops(&rig, 1, how_mode, 0);
	cr_expect_eq(rig.st->rung, rig.qp.sq_rsvd_index);
}

static void hold(int handler, gdk_mode_t mode, uint32_t n, void (*on_offer)(void))
{
	rig_init(&rig, others_depth, handler, 0);
	how_mode = mode;
	posted = offers = own_stores = stores = 0;
	meanwhile = others_keep_posting;
	offered = on_offer;
	if (n)
		(void)rig_post_nops(&rig, n, mode, 0);
	offered = meanwhile = NULL;
}

/*
 * While a call rings, other threads publish more slots. After the doorbell of its own slots and
 * GDK_RINGS more, the call must offer the token, and return if another thread takes it.
 */
Test(handover_dev, holder_passes_the_token_on, .timeout = 60)
{
	static const int handlers[] = { RIG_DB, RIG_NO_DBR, RIG_BF };

	for (uint32_t i = 0; i < 6; i++) {
		hold(handlers[i / 2], i % 2 ? RIG_GPU : RIG_CTA, 1, others_take_token);
		cr_expect_eq(offers, 1);
		cr_expect_eq(own_stores, own_at_offer, "handler %d: rang after the token was taken",
			     handlers[i / 2]);
		cr_expect_leq(own_stores, 1 + GDK_RINGS);
		cr_expect_geq(own_stores, GDK_RINGS);
		all_is_executed();
	}
}

/* A doorbell for many slots takes the holder longer, so it counts more than once. */
Test(handover_dev, holder_of_long_doorbells_offers_earlier, .timeout = 60)
{
	others_depth = 32768;
	others_slots = GDK_RING_SLOTS;
	nic_is_quick = 1;
	hold(RIG_DB, RIG_GPU, 1, others_take_token);
	cr_expect_eq(offers, 1);
	cr_expect_eq(own_stores, own_at_offer);
	cr_expect_eq(own_stores, 1 + GDK_RINGS / 2);
	all_is_executed();
}

static void others_take_token_late(void)
{
	offers++;
	offered = others_take_token;
	polls_left = GDK_OFFER_POLLS / 2;
}

/* The offer lasts until the holder has polled `left` several times. */
Test(handover_dev, token_is_offered_for_some_polls, .timeout = 60)
{
	hold(RIG_DB, RIG_GPU, 1, others_take_token_late);
	cr_expect_eq(offers, 2);
	cr_expect_eq(polls_left, 0);
	cr_expect_eq(own_stores, own_at_offer);
	cr_expect_leq(own_stores, 1 + GDK_RINGS);
	all_is_executed();
}

/* If no other thread takes the token, the holder takes it back, and no doorbell is lost. */
Test(handover_dev, token_that_is_not_taken_is_taken_back, .timeout = 60)
{
	for (uint32_t i = 0; i < 2; i++) {
		hold(RIG_DB, i ? RIG_GPU : RIG_CTA, 1, note_offer);
		cr_expect_eq(rig.st->rung, OTHERS + 1);
		cr_expect_eq(own_stores, OTHERS + 1);
		cr_expect_geq(offers, OTHERS / (1 + GDK_RINGS));
		cr_expect_leq(offers, OTHERS / GDK_RINGS + 1);
		all_is_executed();
	}
}

/* A waiter that takes the token rings for others no longer than a poster. */
Test(handover_dev, waiter_passes_the_token_on, .timeout = 60)
{
	hold(RIG_DB, RIG_GPU, 0, NULL);
	rig_post_nops(&rig, 1, RIG_GPU, GDK_OPT_SKIP_DB);
	cr_assert_eq(rig.st->left, GDK_LEFT);
	meanwhile = others_keep_posting;
	offered = others_take_token;
	cr_expect_eq(gdk_wait_for(&rig.qp, 0, RIG_GPU, 1000000000), 0);
	cr_expect_eq(offers, 1);
	cr_expect_eq(own_stores, GDK_RINGS);
	offered = meanwhile = NULL;
	all_is_executed();
}

/* ---- a ring of 32768 slots ---- */

#define HUGE_DEPTH 32768u
#define MOST_STEP  0x4000u

/* Reserves all slots, publishes them without a doorbell, then has them rung: by gdk_submit(), or by
 * the next post. */
static void ring_all(gdk_mode_t mode, int handler, int way)
{
	uint64_t idx, i;

	rig_init(&rig, HUGE_DEPTH, handler, 0);
	longest_step = stores = 0;
	cr_assert_eq(gdk_reserve(&rig.qp, HUGE_DEPTH - 1, mode, 0, &idx), 0);
	for (i = 0; i < HUGE_DEPTH; i++)
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, i), (uint16_t)i, GDK_CE_ALWAYS);
	gdk_mark_ready(&rig.qp, 0, HUGE_DEPTH - 2, mode, RIG_AUTO);
	cr_expect_eq(stores, 0);
	if (way == 0)
		gdk_submit(&rig.qp, HUGE_DEPTH - 1, gdk_how(mode, RIG_AUTO, GDK_THREAD, 0));
	else if (way == 1)
		(void)rig_post_nops(&rig, 1, mode, 0);
	else
		(void)gdk_wait_for(&rig.qp, HUGE_DEPTH - 2, mode, 1000000000);
	cr_expect_eq(rig.st->rung, HUGE_DEPTH - 1 + (way == 1));
	cr_expect_eq(rig.ci, rig.st->rung, "mode %d way %d: the NIC executed %lu of %lu slots",
		     (int)mode, way, rig.ci, rig.st->rung);
	cr_expect_leq(longest_step, MOST_STEP);
	cr_expect_geq(stores, HUGE_DEPTH / MOST_STEP);
	cr_expect_eq(rig.faults, 0);
	rig_fini(&rig);
}

/* The NIC compares 16-bit indices, so a doorbell must not move them by 0x8000. */
Test(handover_dev, doorbell_covers_at_most_0x4000_slots, .timeout = 60)
{
	static const gdk_mode_t modes[] = { RIG_EXCL, RIG_CTA, RIG_GPU };
	static const int handlers[] = { RIG_DB, RIG_NO_DBR, RIG_BF };

	nic_is_quick = 1;
	for (int m = 0; m < 3; m++)
		for (int way = 0; way < 3; way++)
			for (int h = 0; h < 3; h++)
				ring_all(modes[m], handlers[h], way);
}

/* An operation that has more WQEs than one doorbell may cover is posted WQE by WQE. */
Test(handover_dev, operation_of_many_wqes_is_posted_one_by_one, .timeout = 60)
{
	static const gdk_mode_t modes[] = { RIG_EXCL, RIG_CTA, RIG_GPU };
	static uint8_t data[(2 * MOST_STEP + 5) * 28];
	const struct doca_gpu_dev_verbs_addr a = { 0x1000, 1 };
	uint64_t ticket;

	nic_is_quick = 1;
	for (int m = 0; m < 3; m++) {
		rig_init(&rig, HUGE_DEPTH, RIG_DB, 0);
		longest_step = stores = 0;
		cr_assert_eq(gdk_p(&rig.qp, a, data, sizeof(data), &ticket,
				   gdk_how(modes[m], RIG_AUTO, GDK_THREAD, 0)),
			     0);
		cr_expect_eq(ticket, 2 * MOST_STEP + 4);
		cr_expect_eq(longest_step, 1);
		cr_expect_eq(stores - rig.st->bare_rings, 2 * MOST_STEP + 5);
		cr_expect_eq(rig.ci, 2 * MOST_STEP + 5);
		cr_expect_eq(rig.faults, 0);
		rig_fini(&rig);
	}
}

/* ---- WQEs that generate no CQE ---- */

static void post_without_cqe(gdk_mode_t mode)
{
	uint64_t idx;

	cr_assert_eq(gdk_reserve(&rig.qp, 1, mode, 0, &idx), 0);
	gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, idx), (uint16_t)idx, 0);
	rig_post(&rig, idx, idx, mode, RIG_AUTO, 0);
}

/* Posts `before` WQEs without CQEs, and behind them an operation of n WQEs. */
static void operation_behind(gdk_mode_t mode, uint32_t depth, uint32_t before, uint32_t n)
{
	static uint8_t data[DEPTH * 28];
	const struct doca_gpu_dev_verbs_addr a = { 0x1000, 1 };
	uint64_t ticket;
	uint32_t i;

	rig_init(&rig, depth, RIG_DB, 0);
	rig.st->wait_limit_ns = 100000000;
	for (i = 0; i < before; i++)
		post_without_cqe(mode);
	cr_assert_eq(
		gdk_p(&rig.qp, a, data, n * 28, &ticket, gdk_how(mode, RIG_AUTO, GDK_THREAD, 0)), 0,
		"mode %d, %u WQEs behind %u without CQE in a ring of %u", (int)mode, n, before,
		depth);
	cr_expect_eq(ticket, before + n - 1);
	cr_expect_eq(gdk_wait(&rig.qp, ticket, mode), 0);
	cr_expect_eq(rig.ci, before + n);
	cr_expect_eq(rig.faults, 0);
	rig_fini(&rig);
}

/* Slots become free by CQEs, so an operation of more than half a ring must not wait for WQEs before
 * it that generate none. */
Test(handover_dev, operation_needs_no_cqe_of_wqes_before_it, .timeout = 60)
{
	static const gdk_mode_t modes[] = { RIG_EXCL, RIG_CTA, RIG_GPU };
	uint32_t depth, before, n;

	for (int m = 0; m < 3; m++)
		for (depth = 2; depth <= DEPTH; depth *= 4)
			for (before = 1; before <= depth / 2; before += 1 + depth / 16)
				for (n = 1; n <= depth; n += 1 + depth / 32)
					operation_behind(modes[m], depth, before, n);
}
