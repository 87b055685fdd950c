/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Time in waits: when a wait repeats a doorbell, when it reads the word of the watch, when it ends,
 * and waits for an index of the caller. Here, only turns and pauses advance the clock.
 */
#include "wait_clock.h"

static const gdk_mode_t modes[] = { RIG_EXCL, RIG_CTA, RIG_GPU };

TestSuite(wait_dev, .timeout = 60);

/* Slots below those that are complete, and CQEs, of which there are fewer than slots. */
Test(wait_dev, wait_for_a_complete_slot_polls_no_more)
{
	uint64_t idx, i;

	begin(RIG_DB);
	rig.st->flags |= GDK_QPF_HOST_LOOKS;
	cr_assert_eq(gdk_reserve(&rig.qp, 3, RIG_GPU, 0, &idx), 0);
	for (i = 0; i < 3; i++)
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, i), (uint16_t)i,
			    i == 2 ? GDK_CE_ALWAYS : 0);
	post_slots(&rig.qp, 0, 2, RIG_GPU, RIG_AUTO, 0);
	rig_nic(&rig);
	cr_assert_eq(gdk_wait_for(&rig.qp, 2, RIG_GPU, LIMIT_NS), 0);
	cr_assert_eq(rig.st->completed, 3);
	cr_expect_eq(gdk_wait_for(&rig.qp, 0, RIG_GPU, LIMIT_NS), 0);
	cr_expect_eq(gdk_poll_cq_at(&rig.qp.cq_sq, 0, RIG_GPU), 0);
	cr_expect_eq(turns_made, 0);
	rig_fini(&rig);
}

/* A NIC that is busy executes a WQE as soon as it reads the DBREC, and nothing orders `rung` before
 * the DBREC. So the CQE of slot 1 may be visible before `rung`. Its index is then 65536 too low. */
Test(wait_dev, cqe_that_is_newer_than_rung)
{
	const uint64_t base = 1 << 17;

	begin(RIG_DB);
	rig.st->uneven = 1; /* slot 0 generates no CQE */
	rig.st->completed = base;
	rig.st->rung = base + 1;
	rig_cqe(&rig, base + 1, DOCA_GPUNETIO_IB_MLX5_CQE_REQ);
	cr_expect_eq(gdk_poll_ticket(&rig.qp, base, RIG_GPU), EBUSY);
	cr_expect_eq(rig.st->cqe_ci, 0);
	cr_expect_eq(gdk_poll_ticket(&rig.qp, base, RIG_EXCL), EBUSY);
	cr_expect_eq(rig.st->cqe_ci, 0);
	rig.st->rung = base + 2;
	cr_expect_eq(gdk_poll_ticket(&rig.qp, base, RIG_GPU), 0);
	cr_expect_eq(rig.st->completed, base + 2);
	rig_fini(&rig);
}

/* Three laps posted without any poll, by a caller that learns of completions by other means. */
Test(wait_dev, wait_after_laps_that_no_thread_polled)
{
	uint64_t idx, i;

	begin(RIG_DB);
	rig.st->flags |= GDK_QPF_HOST_LOOKS;
	for (i = 0; i < 3 * DEPTH; i++) {
		cr_assert_eq(gdk_reserve(&rig.qp, 1, RIG_GPU, GDK_OPT_SKIP_CHECK, &idx), 0);
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, i), (uint16_t)i, GDK_CE_ALWAYS);
		post_slots(&rig.qp, idx, idx, RIG_GPU, RIG_AUTO, 0);
		rig_nic(&rig);
	}
	cr_assert_eq(rig.st->completed, 0);
	cr_expect_eq(gdk_wait_for(&rig.qp, 3 * DEPTH - 1, RIG_GPU, LIMIT_NS), 0);
	cr_expect_eq(rig.st->completed, 3 * DEPTH);
	rig_fini(&rig);
}

/* ---- repeated doorbells ---- */

static uint64_t rung_at[64]; /* time of each doorbell after the first */
static uint64_t bells;	     /* number of doorbells seen */
static int rings_seen;

static void note_doorbells(void)
{
	uint64_t n = rig.st ? rig.st->doorbells : 0;

	for (; rings_seen && bells < n && bells < 64; bells++)
		rung_at[bells] = clock_ns - turn_ns; /* before this turn */
}

/* One WQE that never completes. Waits for 3 s of the recorded clock. */
static void wait_that_repeats(gdk_mode_t mode, int handler)
{
	uint64_t t;

	begin(handler);
	t = post(mode, 1);
	bells = rig.st->doorbells;
	rings_seen = 1;
	cr_assert_eq(gdk_wait_for(&rig.qp, t, mode, 3000000000), -ETIMEDOUT);
	rings_seen = 0;
}

/* Exclusive use stores DBREC and register without a fence between them: see ring_dev.h. */
Test(wait_dev, exclusive_wait_repeats_the_doorbell)
{
	static const int handlers[] = { RIG_DB, RIG_BF };
	uint64_t i, due;

	for (unsigned int h = 0; h < 2; h++) {
		wait_that_repeats(RIG_EXCL, handlers[h]);
		cr_assert_eq(rig.st->doorbells, 1 + 6, "%lu doorbells", rig.st->doorbells);
		cr_expect_eq(rig.st->bare_rings, 6);
		for (i = 1, due = GDK_REPEAT_NS; i < bells; i++, due *= 8) {
			cr_expect_geq(rung_at[i], due, "repetition %lu after %lu ns", i,
				      rung_at[i]);
			cr_expect_leq(rung_at[i], due + due / 4 + 4 * turn_ns,
				      "repetition %lu after %lu ns", i, rung_at[i]);
		}
		cr_expect_eq(be32toh(rig.dbrec[1]), 1, "a repetition must not change the DBREC");
		rig_nic(&rig);
		cr_expect_eq(rig.faults, 0);
		cr_expect_eq(rig.ci, 1);
		rig_fini(&rig);
	}
}

/* A doorbell that has got lost, with the DBREC written: the NIC sees only the repetition. */
Test(wait_dev, repeated_doorbell_is_that_of_all_slots)
{
	uint64_t t;

	begin(RIG_DB);
	t = post(RIG_EXCL, 5);
	memset(rig.page, 0, 4096);
	cr_expect_eq(gdk_wait_for(&rig.qp, t, RIG_EXCL, GDK_REPEAT_NS - turn_ns), -ETIMEDOUT);
	rig_nic(&rig);
	cr_expect_eq(rig.ci, 0);
	cr_expect_eq(gdk_wait_for(&rig.qp, t, RIG_EXCL, GDK_REPEAT_NS + 3 * turn_ns), -ETIMEDOUT);
	rig_nic(&rig);
	cr_expect_eq(rig.ci, 5);
	cr_expect_eq(gdk_wait(&rig.qp, t, RIG_EXCL), 0);
	rig_fini(&rig);
}

Test(wait_dev, other_waits_do_not_repeat)
{
	static const struct {
		gdk_mode_t mode;
		int handler;
	} ways[] = { { RIG_EXCL, RIG_PROXY }, { RIG_EXCL, RIG_NO_DBR }, { RIG_GPU, RIG_DB },
		     { RIG_CTA, RIG_DB },     { RIG_GPU, RIG_BF },	{ RIG_GPU, RIG_PROXY } };
	uint64_t i;

	for (unsigned int w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
		wait_that_repeats(ways[w].mode, ways[w].handler);
		for (i = 0; i < 1000; i++)
			cr_assert_eq(gdk_poll_ticket(&rig.qp, 0, ways[w].mode), EBUSY);
		cr_expect_eq(rig.st->doorbells, ways[w].handler == RIG_PROXY ? 0 : 1, "way %u", w);
		cr_expect_eq(rig.st->bare_rings, 0, "way %u", w);
		cr_expect_eq(rig.counter, ways[w].handler == RIG_PROXY ? 1 : 0, "way %u", w);
		rig_fini(&rig);
	}
}

/* The next thread of shared use that rings repeats the last doorbell of exclusive use. */
Test(wait_dev, shared_use_repeats_an_exclusive_doorbell)
{
	begin(RIG_DB);
	post(RIG_EXCL, 1);
	post(RIG_GPU, 1);
	cr_expect_eq(rig.st->bare_rings, 1);
	cr_expect_eq(rig.st->rung, 2);
	post(RIG_GPU, 1);
	cr_expect_eq(rig.st->bare_rings, 1);
	rig_fini(&rig);
}

/* So does shared use that stores a whole WQE to the register. */
Test(wait_dev, shared_blueflame_repeats_an_exclusive_doorbell)
{
	uint64_t at, i;

	begin(RIG_BF);
	for (i = 0; i < 3; i++) {
		(void)post(RIG_EXCL, 1);
		rig_nic(&rig);
		cr_assert_eq(gdk_reserve(&rig.qp, 1, RIG_GPU, 0, &at), 0);
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, at), (uint16_t)at, GDK_CE_ALWAYS);
		gdk_mark_ready(&rig.qp, at, at, RIG_GPU, RIG_AUTO);
		gdk_submit_bf(&rig.qp, at + 1, rig.ring + at * 64,
			      gdk_how(RIG_GPU, RIG_BF, RIG_THREAD, 0));
		rig_nic(&rig);
		cr_expect_eq(rig.ci, at + 1);
		cr_expect_eq(rig.st->bare_rings, i + 1);
	}
	cr_expect_eq(rig.faults, 0);
	rig_fini(&rig);
}

static int poll_by(unsigned int way)
{
	return way ? gdk_poll_one_cq_at(&rig.qp.cq_sq, rig.st->rung - 1, RIG_EXCL)
		   : gdk_poll_ticket(&rig.qp, rig.st->rung - 1, RIG_EXCL);
}

/* A poll repeats the doorbell after GDK_POLLS_REPEAT empty polls, and again after as many. */
Test(wait_dev, exclusive_polls_repeat_the_doorbell)
{
	for (unsigned int way = 0; way < 2; way++) {
		begin(RIG_DB);
		post(RIG_EXCL, 1);
		for (uint32_t i = 1; i <= 3 * GDK_POLLS_REPEAT; i++) {
			cr_assert_eq(poll_by(way), EBUSY);
			cr_assert_eq(rig.st->bare_rings, i / GDK_POLLS_REPEAT, "after %u polls", i);
		}
		rig_nic(&rig);
		cr_expect_eq(poll_by(way), 0);
		cr_expect_eq(rig.st->bare_rings, 3);
		post(RIG_EXCL, 20); /* the count begins anew */
		for (uint32_t i = 1; i <= GDK_POLLS_REPEAT; i++) {
			cr_assert_eq(rig.st->bare_rings, 3, "after %u polls", i - 1);
			cr_assert_eq(poll_by(way), EBUSY);
		}
		cr_expect_eq(rig.st->bare_rings, 4);
		cr_expect_eq(rig.st->doorbells, 2 + 4);
		cr_expect_eq(turns_made, 0, "a poll must not wait");
		rig_fini(&rig);
	}
}

/* ---- the time limit ---- */

static const uint64_t limits[] = { 1,	       2,	    1000,     1001,
				   19999,      20000,	    20001,    1000000,
				   1280000001, 60000000000, LIMIT_NS, 10ull * 3600 * 1000000000 };

/* Whatever was repeated or checked before, the limit is kept to within a turn. */
Test(wait_dev, limit_is_kept)
{
	for (unsigned int m = 0; m < 3; m++)
		for (unsigned int i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
			for (int own = 0; own < 2; own++) {
				begin(RIG_DB);
				post(modes[m], 1);
				/* at most some thousand turns */
				turn_ns = limits[i] / 5000 > 1000 ? limits[i] / 5000 : 1000;
				rig.st->wait_limit_ns = own ? limits[i] : 1;
				cr_expect_eq(own ? gdk_wait(&rig.qp, 0, modes[m])
						 : gdk_wait_for(&rig.qp, 0, modes[m], limits[i]),
					     -ETIMEDOUT);
				cr_expect_geq(clock_ns, limits[i]);
				cr_expect_leq(clock_ns, limits[i] + 2 * turn_ns + 1,
					      "limit %lu: %lu ns, mode %u", limits[i], clock_ns, m);
				cr_expect_eq(gdk_qp_status(&rig.qp), own ? -ETIMEDOUT : 0);
				rig_fini(&rig);
			}
}

/* No limit: the NIC works after 20 hours. */
Test(wait_dev, no_limit)
{
	for (unsigned int m = 0; m < 3; m++)
		for (int own = 0; own < 2; own++) {
			begin(RIG_DB);
			post(modes[m], 1);
			turn_ns = 3600ull * 1000000000;
			served_ns = 20 * turn_ns;
			rig.st->wait_limit_ns = own ? 0 : 1;
			cr_expect_eq(own ? gdk_wait(&rig.qp, 0, modes[m])
					 : gdk_wait_for(&rig.qp, 0, modes[m], 0),
				     0);
			cr_expect_geq(clock_ns, served_ns);
			cr_expect_leq(clock_ns, served_ns + 2 * turn_ns);
			rig_fini(&rig);
		}
	served_ns = 0;
}

/* ---- the word of the watch ---- */

static struct gdk_watch_word word;
static uint64_t mapped_ns;  /* from this time on, the word can be read */
static uint64_t changed_ns; /* from this time on, the word has no hint; 0: never */
static uint64_t own_index;  /* an index of the caller */
static uint64_t index_ns;   /* from this time on, own_index is 7; 0: it does not change */

static void at_time(void)
{
	if (rig.st && clock_ns >= mapped_ns && mapped_ns)
		rig.st->watch = (uintptr_t)&word;
	if (changed_ns && clock_ns >= changed_ns)
		word.hint = 0;
	if (index_ns && clock_ns >= index_ns)
		own_index = 7;
	note_doorbells();
	nic_at_its_time();
}

/* Before 900 us any read of the word is one of address 16. */
static void watched_open(uint32_t hint, uint64_t limit_ns)
{
	rig_init(&rig, DEPTH, RIG_DB, 0);
	rig.st->watch = 16;
	rig.st->wait_limit_ns = limit_ns;
	word = (struct gdk_watch_word){ .hint = hint };
	mapped_ns = 900000;
	changed_ns = 0;
	clock_ns = 1;
}

#define WAYS 6

static int watched_wait(int way)
{
	const gdk_mode_t mode = way < 3 ? RIG_GPU : RIG_EXCL;

	if (way % 3 == 0)
		return gdk_wait(&rig.qp, 0, mode);
	return way % 3 == 1 ? gdk_poll_cq_at(&rig.qp.cq_sq, 0, mode)
			    : gdk_poll_collapsed_at(&rig.qp, 0, mode);
}

/* The first event of a wait after a millisecond. */
#define FIRST_CHECK (64ull * GDK_REPEAT_NS)

Test(wait_dev, unconnected_wait_ends_after_a_millisecond)
{
	for (int way = 0; way < WAYS; way++)
		for (uint64_t limit_ns = 0; limit_ns <= LIMIT_NS; limit_ns += LIMIT_NS) {
			watched_open(GDK_HINT_UNCONNECTED, limit_ns);
			cr_expect_eq(watched_wait(way), -ENOTCONN);
			cr_expect_geq(clock_ns, GDK_CHECK_NS);
			cr_expect_leq(clock_ns, FIRST_CHECK + 130 * 1000);
			cr_expect_eq(word.ended, ENOTCONN);
			word.ended = 0; /* by the host, which has reported it */
			cr_expect_eq(watched_wait(way), -ENOTCONN, "the status must be sticky");
			cr_expect_eq(word.ended, 0, "reported twice");
			rig_fini(&rig);
		}
}

Test(wait_dev, wait_continues_if_the_qp_is_connected_in_time)
{
	for (int way = 0; way < WAYS; way++) {
		watched_open(GDK_HINT_UNCONNECTED, LIMIT_NS);
		changed_ns = 950000;
		cr_expect_eq(watched_wait(way), -ETIMEDOUT);
		cr_expect_geq(clock_ns, LIMIT_NS);
		cr_expect_eq(word.ended, ETIMEDOUT);
		rig_fini(&rig);
	}
}

/* Waits for slot 0 while doorbells up to `rung` are requested. Returns the status. */
static int unserved_wait(int way, uint64_t rung, uint32_t hint, uint64_t limit_ns)
{
	int err;

	watched_open(hint, limit_ns);
	rig.st->rung = rung;
	err = watched_wait(way);
	cr_expect_geq(clock_ns, limit_ns);
	cr_expect_leq(clock_ns, limit_ns + 2 * turn_ns + 1);
	cr_expect_eq(word.ended, (uint32_t)-err);
	rig_fini(&rig);
	return err;
}

Test(wait_dev, unserved_wait_ends_at_its_limit)
{
	const uint64_t limit_ns = GDK_UNSERVED_NS, far = 1ull << 30;

	turn_ns = 100000;
	for (int way = 0; way < WAYS; way++) {
		cr_expect_eq(unserved_wait(way, 1, GDK_HINT_RUNG(0), limit_ns), -EHOSTDOWN);
		cr_expect_eq(unserved_wait(way, 1, GDK_HINT_RUNG(1), limit_ns), -ETIMEDOUT);
		cr_expect_eq(unserved_wait(way, 1, 0, limit_ns), -ETIMEDOUT);
		cr_expect_eq(unserved_wait(way, 1, GDK_HINT_RUNG(2), limit_ns), -ETIMEDOUT,
			     "rung between the two loads");
		cr_expect_eq(unserved_wait(way, 1, GDK_HINT_RUNG(0), limit_ns - 1), -ETIMEDOUT,
			     "a short wait");
		/* The hint has the index modulo 2^30. */
		cr_expect_eq(unserved_wait(way, far, GDK_HINT_RUNG(far - 1), limit_ns), -EHOSTDOWN);
		cr_expect_eq(unserved_wait(way, far, GDK_HINT_RUNG(far), limit_ns), -ETIMEDOUT);
	}
	turn_ns = 1000;
}

Test(wait_dev, limit_below_a_millisecond_is_kept)
{
	for (int way = 0; way < WAYS; way++) {
		watched_open(GDK_HINT_UNCONNECTED, 100000);
		mapped_ns = 1000;
		cr_expect_eq(watched_wait(way), -ENOTCONN);
		cr_expect_geq(clock_ns, 100000);
		cr_expect_leq(clock_ns, 100000 + 2 * turn_ns + 1);
		rig_fini(&rig);
	}
}

/* A limit of the caller is not an error of the QP. */
Test(wait_dev, wait_for_does_not_end_the_qp)
{
	watched_open(GDK_HINT_UNCONNECTED, LIMIT_NS);
	cr_expect_eq(gdk_wait_for(&rig.qp, 0, RIG_GPU, LIMIT_NS), -ENOTCONN);
	cr_expect_eq(gdk_qp_status(&rig.qp), 0);
	word.hint = 0;
	cr_expect_eq(gdk_wait_for(&rig.qp, 0, RIG_GPU, LIMIT_NS), -ETIMEDOUT);
	cr_expect_eq(gdk_qp_status(&rig.qp), 0);
	cr_expect_eq(word.ended, 0);
	rig_fini(&rig);
}

/* ---- an index of the caller ---- */

Test(wait_dev, index_advances_when_it_is_reached)
{
	own_index = 7;
	cr_expect_eq(gdk_index_advance(&own_index, 7, 9, GDK_SCOPE_GPU), 0);
	cr_expect_eq(own_index, 9);
	cr_expect_eq(turns_made, 0);
	own_index = 5;
	clock_ns = 1;
	index_ns = LIMIT_NS;
	cr_expect_eq(gdk_index_advance(&own_index, 7, 9, GDK_SCOPE_CTA), 0);
	cr_expect_eq(own_index, 9);
	cr_expect_geq(clock_ns, LIMIT_NS);
	cr_expect_leq(clock_ns, LIMIT_NS + 1000, "waited after the index was reached");
}

/* The limit is 60 s of the recorded clock. */
Test(wait_dev, index_that_is_never_reached_is_not_changed)
{
	turn_ns = 1000000;
	for (uint64_t at = 5; at <= 9; at += 4) {
		own_index = at; /* below or beyond the wanted one */
		clock_ns = 1;
		cr_expect_eq(gdk_index_advance(&own_index, 7, 9, GDK_SCOPE_GPU), -ETIMEDOUT);
		cr_expect_eq(own_index, at);
		cr_expect_geq(clock_ns, 60000000000u);
		cr_expect_leq(clock_ns, 60000000000u + 130ull * turn_ns);
	}
}

/* No other thread changes an index of exclusive use. */
Test(wait_dev, exclusive_index_is_not_waited_for)
{
	own_index = 5;
	cr_expect_eq(gdk_index_advance(&own_index, 7, 9, GDK_SCOPE_THREAD), 0);
	cr_expect_eq(own_index, 9);
	cr_expect_eq(turns_made, 0);
}
