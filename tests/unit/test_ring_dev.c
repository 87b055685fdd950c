/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Random sequences of the steps that publish and ring slots, compared with a model
 * after each step: all slots that are wanted and published without a gap must be rung;
 * no unpublished slot may be rung; exactly one token must exist; the ready bits must be
 * those of the model.
 */
#include <criterion/criterion.h>

#include "rig.h"

#define MAX_DEPTH 128u
#define STEPS	  4000u

static struct rig rig;
static uint64_t reserved, wanted, published_to, state;
static bool is_published[MAX_DEPTH]; /* of slots published_to and above */
static struct range {
	uint64_t from, to;
	struct gdk_how how; /* of the post, if in_one */
	struct gdk_post post;
	bool in_one; /* reserved by gdk_post_begin(), to be posted by gdk_post_end() */
} pending[MAX_DEPTH];
static uint32_t npending;
static bool dead;

static uint32_t draw(uint32_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % n;
}

static gdk_mode_t shared_mode(void)
{
	return draw(2) ? RIG_GPU : RIG_CTA;
}

/* Fills unwritten WQEs with an invalid index, so that ringing them too early is noticed. */
static void invalidate(uint64_t from, uint64_t to)
{
	for (; from <= to; from++)
		memset(gdk_get_wqe_ptr(&rig.qp, from), 0xff, 64);
}

static void write_nops(uint64_t from, uint64_t to)
{
	for (; from <= to; from++)
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, from), (uint16_t)from, GDK_CE_ALWAYS);
}

/* ---- the model ---- */

static void model_publish(uint64_t from, uint64_t to)
{
	if (dead)
		return;
	for (; from <= to; from++)
		is_published[from % MAX_DEPTH] = true;
	while (published_to < reserved && is_published[published_to % MAX_DEPTH])
		is_published[published_to++ % MAX_DEPTH] = false;
}

static void model_want(uint64_t pi)
{
	wanted = pi > wanted ? pi : wanted;
}

static uint32_t tokens(uint64_t *at)
{
	struct gdk_qp_state *st = rig.st;
	uint32_t n = 0;

	for (uint64_t i = st->rung; i < st->rung + rig.depth; i++)
		if (*gdk_word(st, rig.depth, i) & gdk_token_bit(rig.depth, i)) {
			*at = i;
			n++;
		}
	return n;
}

static bool model_is_published(uint64_t i)
{
	return i < published_to || (i < reserved && is_published[i % MAX_DEPTH]);
}

static void check_bits(void)
{
	uint64_t i;

	for (i = rig.st->rung; i < rig.st->rung + rig.depth; i++)
		cr_assert_eq(gdk_is_ready(rig.st, rig.depth, i), model_is_published(i),
			     "wrong ready bit of slot %lu", i);
}

/*
 * The NIC must have executed all slots below `rung`, and no unpublished slot may be rung.
 * The DBREC or the proxy counter must match `rung`; with NO_DBR, the DBREC must be
 * unchanged.
 */
static void check_rung(void)
{
	const uint64_t rung = rig.st->rung;

	rig_nic(&rig);
	cr_assert_eq(rig.faults, 0);
	cr_assert_leq(rung, published_to);
	cr_assert_eq(rig.ci, rung);
	if (wanted > rung && !dead)
		cr_assert_eq(rung, published_to, "%lu slots wanted, but %lu rung", wanted, rung);
	if (rig.handler == RIG_PROXY)
		cr_assert(rig.counter == rung && !rig.st->doorbells);
	else
		cr_assert_eq(rig.dbrec[1],
			     rig.handler == RIG_NO_DBR ? RIG_POISON : gdk_dbrec_value(rung));
}

static void check(void)
{
	uint64_t at = 0;

	check_rung();
	if (dead)
		return;
	if (rig.st->left) {
		cr_assert_eq(tokens(&at), 0);
	} else {
		cr_assert_eq(tokens(&at), 1);
		cr_assert_eq(at, rig.st->rung);
	}
	check_bits();
}

/* ---- the steps ---- */

/* Reserves n slots, for separate steps or to be posted in one. */
static bool reserve(uint32_t n, gdk_mode_t mode, uint32_t opt, struct range *r)
{
	int err;

	if (reserved + n > rig.st->completed + rig.depth)
		return false;
	r->how = gdk_how(mode, RIG_AUTO, GDK_THREAD, opt);
	r->in_one = draw(2);
	if (r->in_one) {
		err = gdk_post_begin(&rig.qp, &r->post, n, 0, r->how);
		r->from = r->post.idx;
		if (mode == RIG_EXCL && !opt)
			model_want(r->from);
	} else {
		err = gdk_reserve(&rig.qp, n, mode, 0, &r->from);
	}
	if (err) {
		cr_assert(dead);
		return false;
	}
	cr_assert_eq(r->from, reserved);
	reserved += n;
	r->to = reserved - 1;
	invalidate(r->from, r->to);
	return true;
}

static void post(const struct range *r, gdk_mode_t mode, uint32_t opt)
{
	write_nops(r->from, r->to);
	/* A post in one step publishes even if the QP has ended since: its slots are its own. */
	model_publish(r->from, r->to);
	if (!opt)
		model_want(r->to + 1);
	if (r->in_one)
		gdk_post_end(&r->post, gdk_how(r->how.mode, RIG_AUTO, GDK_THREAD, opt));
	else
		rig_post(&rig, r->from, r->to, mode, RIG_AUTO, opt);
}

static void step_reserve(void)
{
	if (npending < MAX_DEPTH && reserve(1 + draw(3), shared_mode(), 0, &pending[npending]))
		npending++;
}

/*
 * Publishes one of the reserved ranges, with or without submitting it. After the QP has
 * failed (`dead`), never submits it: the post could still ring once, because its range
 * was reserved before the failure.
 */
static void step_post(void)
{
	const uint32_t opt = dead || draw(2) ? GDK_OPT_SKIP_DB : 0, i = draw(npending + !npending);
	struct range r;

	if (!npending)
		return;
	r = pending[i];
	pending[i] = pending[--npending];
	post(&r, shared_mode(), opt);
}

/* Submits up to an index, published or not, sometimes with a copy of the last WQE. */
static void step_submit(void)
{
	const uint64_t pi = rig.st->rung + draw((uint32_t)(reserved - rig.st->rung) + 1);
	struct doca_gpu_dev_verbs_wqe copy = { 0 };

	model_want(pi);
	if (rig.handler != RIG_BF || draw(2)) {
		gdk_submit(&rig.qp, pi, gdk_how(shared_mode(), RIG_AUTO, GDK_THREAD, 0));
		return;
	}
	if (pi)
		gdk_wqe_nop(&rig.qp, &copy, (uint16_t)(pi - 1), GDK_CE_ALWAYS);
	if (draw(2))
		gdk_submit_bf(&rig.qp, pi, &copy, gdk_how(shared_mode(), GDK_BF, GDK_THREAD, 0));
	else
		gdk_submit_bf_warp(&rig.qp, pi, &copy,
				   gdk_how(shared_mode(), GDK_BF, GDK_THREAD, 0));
}

/* Posts in exclusive mode, if no reserved range is unpublished. */
static void step_exclusive(void)
{
	const uint32_t opt = draw(2) ? GDK_OPT_SKIP_DB : 0;
	struct range r;

	if (!npending && reserve(1 + draw(4), RIG_EXCL, opt, &r))
		post(&r, RIG_EXCL, opt);
}

/* Rings all slots below the first unpublished one without gdk_submit(). */
static void step_by_hand(void)
{
	if (published_to == rig.st->rung || dead)
		return;
	if (rig.handler == RIG_PROXY) {
		gdk_ring_proxy(&rig.qp, published_to, shared_mode());
		return;
	}
	if (rig.handler != RIG_NO_DBR)
		gdk_update_dbr(&rig.qp, published_to, 0);
	gdk_ring_db(&rig.qp, published_to, 0);
}

static void step_complete(void)
{
	if (rig.st->rung && !dead)
		cr_assert_eq(gdk_wait_for(&rig.qp, rig.st->rung - 1, shared_mode(), 1), 0);
}

static void step(void)
{
	switch (draw(8)) {
	case 0:
	case 1:
		return step_reserve();
	case 2:
	case 3:
		return step_post();
	case 4:
		return step_submit();
	case 5:
		return step_exclusive();
	case 6:
		return step_by_hand();
	default:
		return step_complete();
	}
}

static void start(uint32_t depth, int handler)
{
	rig_init(&rig, depth, handler, 0);
	reserved = wanted = published_to = 0;
	npending = 0;
	memset(is_published, 0, sizeof(is_published));
	dead = false;
}

static void run(uint32_t depth, int handler)
{
	uint64_t rung;

	start(depth, handler);
	for (uint32_t i = 0; i < STEPS; i++) {
		step();
		check();
	}
	cr_assert_gt(rig.st->rung, STEPS / 8);
	while (reserved == rig.st->rung) {
		step_complete();
		step_reserve();
	}
	rung = rig.st->rung;
	rig.st->status = -EIO;
	dead = true;
	for (uint32_t i = 0; i < 50; i++) {
		step_post();
		step_submit();
		gdk_submit(&rig.qp, reserved, gdk_how(RIG_EXCL, RIG_AUTO, GDK_THREAD, 0));
		cr_assert_eq(rig.st->rung, rung);
		check();
	}
	rig_fini(&rig);
}

Test(ring_dev, wanted_and_published_slots_are_rung)
{
	static const int handlers[] = { RIG_DB, RIG_PROXY, RIG_NO_DBR, RIG_BF };

	state = 1;
	for (uint32_t depth = 4; depth <= MAX_DEPTH; depth *= 2)
		for (uint32_t h = 0; h < 4; h++)
			run(depth, handlers[h]);
}

/* With GDK_OPT_SKIP_CHECK, gdk_reserve() does not wait for a free slot: the caller must wait. */
Test(ring_dev, unchecked_reservations_do_not_wait)
{
	uint64_t at;

	start(4, RIG_DB);
	for (uint32_t i = 0; i < 6; i++) {
		cr_assert_eq(gdk_reserve(&rig.qp, 1, RIG_GPU, GDK_OPT_SKIP_CHECK, &at), 0);
		cr_assert_eq(at, i);
		if (i >= 4)
			continue;
		cr_assert_eq(gdk_wait_slot(&rig.qp, i, RIG_GPU), 0);
		write_nops(at, at);
		rig_post(&rig, at, at, RIG_GPU, RIG_AUTO, 0);
	}
	rig.st->wait_limit_ns = 1000;
	rig_nic(&rig);
	cr_assert_eq(rig.st->completed, 0);
	cr_assert_eq(gdk_wait_slot(&rig.qp, 5, RIG_GPU), 0);
	cr_assert_geq(rig.st->completed, 2);
	cr_assert_eq(gdk_wait_slot(&rig.qp, 8, RIG_GPU), -ETIMEDOUT); /* slot 4 was not rung */
	cr_assert_eq(gdk_qp_status(&rig.qp), -ETIMEDOUT);
	rig_fini(&rig);
}
