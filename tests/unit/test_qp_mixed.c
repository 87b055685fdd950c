/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * One thread posts in random ways: in exclusive and shared modes, with and without
 * doorbells, out of order, with waits and ringing by hand. After each step, the
 * test compares the QP's state with its own record of published slots and of the
 * highest index for which a doorbell was requested.
 */
#include <criterion/criterion.h>

#include "rig.h"

#define MOST 4096u /* limit of slots in one sequence */

static struct rig rig;
/*
 * WQE indices. start: first one of the sequence; reserved: next one to reserve;
 * asked: a doorbell was requested for all slots below; last_rung: `rung` at the
 * last check.
 */
static uint64_t start, reserved, asked, last_rung;
static uint8_t marked[MOST]; /* by index - start; 1: published */
static uint32_t seed, step;

static uint64_t *words(void)
{
	return (uint64_t *)(rig.st + 1);
}

static uint32_t dice(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return (seed >> 3) % n;
}

static enum doca_gpu_dev_verbs_resource_sharing_mode shared_mode(void)
{
	return dice(2) ? RIG_GPU : RIG_CTA;
}

/* Prepares a ring in which all slots below index `from` have been posted, rung and completed. */
static void open_at(uint32_t depth, uint64_t from, int handler)
{
	struct gdk_qp_state *st = (rig_init(&rig, depth, handler, 0), rig.st);
	uint64_t i;

	words()[0] = 0;
	for (i = from < depth ? 0 : from - depth; i < from; i++)
		if (gdk_odd_lap(depth, i))
			*gdk_word(st, depth, i) &= ~(uint64_t)gdk_slot_bits(depth, i, 1);
		else
			*gdk_word(st, depth, i) |= gdk_slot_bits(depth, i, 1);
	/*
	 * A ready bit that means "published" in one lap means "not published" in the
	 * next, so these bits are also correct for the slots from `from` on.
	 */
	*gdk_word(st, depth, from) |= gdk_token_bit(depth, from);
	rig.st->parked = dice(2) ? from : 0;
	rig.qp.sq_rsvd_index = from;
	rig.st->wanted = rig.st->rung = from;
	rig.st->completed = rig.st->cqe_ci = from;
	rig.dbrec[1] = gdk_dbrec_value(from);
	rig.counter = rig.pi = rig.ci = rig.cq_pi = from;
	rig.st->wait_limit_ns = 1000;
	if (dice(2))
		rig.st->flags &= ~GDK_QPF_SYS_SCOPE;
	start = reserved = asked = last_rung = from;
	memset(marked, 0, sizeof(marked));
}

static uint64_t gap(void)
{
	uint64_t i = start;

	while (i < reserved && marked[i - start])
		i++;
	return i;
}

static uint32_t tokens(void)
{
	uint32_t i, n = rig.st->left != 0;

	for (i = 0; i < (rig.depth + 31) / 32; i++)
		n += gdk_popc32((uint32_t)(words()[i] >> 32));
	return n;
}

#define MUST(cond) \
	cr_assert((cond), "depth %u start %llu seed %u step %u: failed: %s (rung %llu)", \
		  rig.depth, (unsigned long long)start, seed, step, #cond, \
		  (unsigned long long)st->rung)

static void check(void)
{
	struct gdk_qp_state *st = rig.st;
	const uint64_t end = gap(), rung = st->rung;
	uint64_t i;

	MUST(rung >= last_rung && rung <= end);
	MUST(rung >= (asked < end ? asked : end));
	MUST(tokens() == 1);
	MUST(st->left || *gdk_word(st, rig.depth, rung) & gdk_token_bit(rig.depth, rung));
	/* if the slot that `parked` names is not published, the token must be in its word */
	i = st->parked;
	MUST(i == GDK_NO_WQE || i < end ||
	     *gdk_word(st, rig.depth, i) & gdk_token_bit(rig.depth, i));
	for (i = rung; i < rung + rig.depth; i++)
		if (i < reserved && marked[i - start])
			MUST(gdk_is_ready(st, rig.depth, i));
		else
			MUST(!gdk_is_ready(st, rig.depth, i));
	last_rung = rung;
	rig_nic(&rig);
	MUST(rig.pi == rung && rig.ci == rung && !rig.faults);
	if (rig.handler == RIG_DB || rig.handler == RIG_BF)
		MUST(rig.dbrec[1] == gdk_dbrec_value(rung));
}

static void want(uint64_t pi)
{
	if (pi > asked)
		asked = pi;
}

/* A wait for the slots below `need` must ring them; once the NIC has run, it must succeed. */
static void wait_below(uint64_t need, enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	const struct gdk_qp_state *st = rig.st;
	int err = gdk_wait_for(&rig.qp, need - 1, mode, 1);

	cr_assert(err == 0 || err == -ETIMEDOUT);
	want(need);
	check();
	MUST(gdk_wait_for(&rig.qp, need - 1, mode, 20000000) == 0);
}

/* Waits until n more slots are free. */
static void make_room(uint32_t n, gdk_mode_t mode)
{
	const uint64_t end = reserved + n;

	if (end > start + rig.depth && end - rig.depth > rig.st->completed)
		wait_below(end - rig.depth, mode);
}

static uint64_t take(uint32_t n, enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	uint64_t idx, i;

	make_room(n, dice(2) ? mode : shared_mode());
	cr_assert_eq(gdk_reserve(&rig.qp, n, mode, dice(4) ? 0 : GDK_OPT_SKIP_CHECK, &idx), 0);
	cr_assert_eq(idx, reserved);
	reserved += n;
	for (i = idx; i < idx + n; i++)
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, i), (uint16_t)i, GDK_CE_ALWAYS);
	return idx;
}

static void post(uint64_t from, uint32_t n, enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	const uint32_t opt = dice(2) ? GDK_OPT_SKIP_DB : 0;

	memset(marked + (from - start), 1, n);
	if (!opt)
		want(from + n);
	if (opt && dice(2))
		gdk_mark_ready(&rig.qp, from, from + n - 1, mode, RIG_AUTO);
	else
		rig_post(&rig, from, from + n - 1, mode, RIG_AUTO, opt);
	check();
}

static void submit(enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	uint64_t pi = last_rung + dice((uint32_t)(reserved - last_rung) + 1);

	want(pi);
	if (rig.handler == RIG_BF && dice(2) && pi > start)
		gdk_submit_bf_warp(&rig.qp, pi, gdk_get_wqe_ptr(&rig.qp, pi - 1),
				   gdk_how(mode, GDK_BF, GDK_THREAD, 0));
	else if (rig.handler == RIG_BF && dice(2) && pi > start)
		gdk_submit_bf(&rig.qp, pi, gdk_get_wqe_ptr(&rig.qp, pi - 1),
			      gdk_how(mode, GDK_BF, GDK_THREAD, 0));
	else
		gdk_submit(&rig.qp, pi, gdk_how(mode, RIG_AUTO, GDK_THREAD, 0));
	check();
}

/* Rings all slots below the first unpublished one by hand. */
static void ring_by_hand(enum doca_gpu_dev_verbs_resource_sharing_mode mode)
{
	const uint64_t pi = gap();

	if (pi == last_rung)
		return;
	want(pi);
	if (rig.handler == RIG_PROXY) {
		gdk_ring_proxy(&rig.qp, pi, mode);
	} else {
		if (rig.handler != RIG_NO_DBR)
			gdk_update_dbr(&rig.qp, pi, 0);
		if (rig.handler != RIG_BF)
			gdk_ring_db(&rig.qp, pi, 0);
		else if (dice(2))
			gdk_ring_bf(&rig.qp, gdk_get_wqe_ptr(&rig.qp, pi - 1));
		else
			gdk_ring_bf_warp(&rig.qp, gdk_get_wqe_ptr(&rig.qp, pi - 1));
	}
	check();
}

/* 1 to 40 operations of one WQE in one mode; 32 of them fill a ready word. */
static void put_alone(gdk_mode_t mode)
{
	const gdk_handler_t handler = dice(2) ? RIG_AUTO : (gdk_handler_t)rig.handler;
	const struct doca_gpu_dev_verbs_addr a = { 0x1000, 1 };
	const struct gdk_qp_state *st = rig.st;
	const uint8_t data[28] = { 0 };
	uint32_t i, n = 1 + dice(40);
	struct gdk_how how;
	uint64_t ticket;

	for (i = 0; i < n; i++) {
		how = gdk_how(mode, handler, RIG_THREAD, dice(4) ? 0 : GDK_OPT_SKIP_DB);
		make_room(1, mode);
		if (dice(2))
			MUST(!gdk_put(&rig.qp, a, a, dice(8), &ticket, how));
		else
			MUST(!gdk_p(&rig.qp, a, data, 1 + dice(28), &ticket, how));
		MUST(ticket == reserved);
		marked[reserved++ - start] = 1;
		if (!how.opt)
			want(reserved);
		check();
	}
}

/* An operation of n WQEs. */
static void post_in_one(uint32_t n, gdk_mode_t mode)
{
	const uint32_t opt = dice(4) ? 0 : GDK_OPT_SKIP_DB;
	const struct gdk_qp_state *st = rig.st;

	make_room(n, dice(2) ? mode : shared_mode());
	MUST(rig_post_nops(&rig, n, mode, opt) == reserved);
	memset(marked + (reserved - start), 1, n);
	reserved += n;
	if (!opt)
		want(reserved);
	check();
}

/* Posts the second part of a reservation before the first part. */
static void crosswise(uint32_t most)
{
	const uint32_t n = 1 + dice(most), k = 1 + dice(most);
	enum doca_gpu_dev_verbs_resource_sharing_mode mode = shared_mode();
	uint64_t a, b;

	if (n + k > rig.depth)
		return;
	a = take(n + k, mode);
	b = a + n;
	post(b, k, mode);
	if (dice(2))
		submit(shared_mode());
	post(a, n, shared_mode());
}

static void one_step(void)
{
	const uint32_t most = rig.depth < 5 ? rig.depth : 5;
	enum doca_gpu_dev_verbs_resource_sharing_mode mode = dice(2) ? RIG_EXCL : shared_mode();
	uint32_t n = dice(8) ? 1 + dice(most) : 1 + dice(rig.depth);

	switch (dice(10)) {
	case 9:
		put_alone(mode);
		break;
	case 8:
		ring_by_hand(mode);
		break;
	case 0:
		submit(mode);
		break;
	case 1:
		if (reserved > start)
			wait_below(start + 1 + dice((uint32_t)(reserved - start)), mode);
		break;
	case 2:
		crosswise(most);
		break;
	case 3:
	case 4:
		post_in_one(n, mode);
		break;
	default:
		post(take(n, mode), n, mode);
	}
}

static void sequence(uint32_t depth, uint64_t from, int handler, uint32_t with)
{
	seed = with * 2654435761u + 1;
	open_at(depth, from, handler);
	for (step = 0; step < 60 && reserved - start < MOST - 2 * depth; step++)
		one_step();
	want(reserved);
	gdk_submit(&rig.qp, reserved,
		   gdk_how(dice(2) ? RIG_EXCL : RIG_GPU, RIG_AUTO, GDK_THREAD, 0));
	check();
	rig_fini(&rig);
}

Test(qp_mixed, random_sequences_lose_nothing_and_ring_nothing_early)
{
	static const uint64_t starts[] = {
		0, 5, 32, 0xffe0, 0x10000 - 7, 0xffffffe0, 0x100000000 - 3
	};
	static const int handlers[] = { RIG_DB, RIG_BF, RIG_NO_DBR, RIG_PROXY };
	uint32_t lg, i, s;

	for (lg = 0; lg <= 10; lg++)
		for (s = 0; s < sizeof(starts) / sizeof(starts[0]); s++)
			for (i = 0; i < 200; i++)
				sequence(1u << lg, starts[s], handlers[i % 4], i * 77 + lg + s);
}
