/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Fences between the stores that the NIC reads. On a CPU, a missing fence may have
 * no effect, so the tests record the order of stores and fences for each way to
 * ring, and check it. A fence is recorded only if its scope is wide enough for the
 * QP's memory. The model in tests/model checks the fences between threads.
 */
#include <criterion/criterion.h>
#include <string.h>

#define GDK_TOKEN_FIRST 1
#include "device/gdk/platform.h"

/*
 * One letter per event; an event that repeats at once is recorded only once:
 * w  segment of a WQE
 * F  fence at scope nic_scope or wider
 * r  store to `rung`
 * R  store to the DBREC
 * D  store to the doorbell register or the proxy's counter
 * T  token parked
 */
static char trace[1000];
static int nic_scope, widest; /* widest: largest scope of a release fence */
static int rung_is_read;

static void saw(char what)
{
	const size_t n = strlen(trace);

	if (n + 1 < sizeof(trace) && (!n || trace[n - 1] != what))
		trace[n] = what;
}

static void saw_fence(int scope)
{
	widest = scope > widest ? scope : widest;
	if (scope >= nic_scope)
		saw('F');
}

static void saw_store(const void *p);

static void saw_word(uint64_t bits)
{
	if (bits >> 32)
		saw('T');
}

/* The headers that are included below call these functions of platform.h through the recorder. */
#define gdk_st_wqe16(p, a, b)	   (saw('w'), gdk_st_wqe16(p, a, b))
#define gdk_fence_rel(scope)	   (saw_fence(scope), gdk_fence_rel(scope))
#define gdk_fence_sc(scope)	   (saw_fence(scope), gdk_fence_sc(scope))
#define gdk_st32(p, v, scope)	   (saw_store(p), gdk_st32(p, v, scope))
#define gdk_st64(p, v, scope)	   (saw_store(p), gdk_st64(p, v, scope))
#define gdk_st64x2(p, a, b, scope) (saw_store(p), gdk_st64x2(p, a, b, scope))
#define gdk_red_max64(p, v, scope) (saw_store(p), gdk_red_max64(p, v, scope))
#define gdk_max64(p, v, scope)	   (saw_store(p), gdk_max64(p, v, scope))
#define gdk_rmw_or64(p, v, scope)  (saw_word(v), gdk_rmw_or64(p, v, scope))
#define gdk_mmio_st64(p, v)	   (saw('D'), gdk_mmio_st64(p, v))
#define gdk_bf_bulk64(p, w)	   (saw('D'), gdk_bf_bulk64(p, w))
#define gdk_bf_st64_warp(p, w)	   (saw('D'), gdk_bf_st64_warp(p, w))

#include "rig.h"

static struct rig rig;

static void saw_store(const void *p)
{
	if (p == &rig.dbrec[1])
		saw('R');
	else if (p == &rig.counter)
		saw('D');
	else if (p == &rig.st->rung)
		saw('r');
}

enum how { PUT, NOPS, POST, SUBMIT, COPY, COPY_WARP, HELD_BACK, HAND, HAND_WARP };

static const struct way {
	const char *name;
	enum how how;
	gdk_mode_t mode;
	int handler;
} ways[] = {
	{ "put", PUT, RIG_GPU, RIG_DB },
	{ "put in a block", PUT, RIG_CTA, RIG_DB },
	{ "put without record", PUT, RIG_CTA, RIG_NO_DBR },
	{ "put by proxy", PUT, RIG_GPU, RIG_PROXY },
	{ "put by BlueFlame", PUT, RIG_CTA, RIG_BF },
	{ "exclusive put", PUT, RIG_EXCL, RIG_DB },
	{ "exclusive put without record", PUT, RIG_EXCL, RIG_NO_DBR },
	{ "exclusive put by proxy", PUT, RIG_EXCL, RIG_PROXY },
	{ "exclusive put by BlueFlame", PUT, RIG_EXCL, RIG_BF },
	{ "group", NOPS, RIG_GPU, RIG_DB },
	{ "group in a block", NOPS, RIG_CTA, RIG_DB },
	{ "group without record", NOPS, RIG_GPU, RIG_NO_DBR },
	{ "group by proxy", NOPS, RIG_GPU, RIG_PROXY },
	{ "group by BlueFlame", NOPS, RIG_GPU, RIG_BF },
	{ "exclusive group", NOPS, RIG_EXCL, RIG_DB },
	{ "exclusive submit", SUBMIT, RIG_EXCL, RIG_DB },
	{ "submit a copy in a block", COPY, RIG_CTA, RIG_BF },
	{ "exclusive copy", COPY, RIG_EXCL, RIG_BF },
	{ "post", POST, RIG_GPU, RIG_DB },
	{ "post in a block", POST, RIG_CTA, RIG_DB },
	{ "post without record", POST, RIG_GPU, RIG_NO_DBR },
	{ "post by proxy", POST, RIG_GPU, RIG_PROXY },
	{ "post by BlueFlame", POST, RIG_GPU, RIG_BF },
	{ "submit", SUBMIT, RIG_GPU, RIG_DB },
	{ "submit without record", SUBMIT, RIG_GPU, RIG_NO_DBR },
	{ "submit to the proxy", SUBMIT, RIG_CTA, RIG_PROXY },
	{ "submit a copy", COPY, RIG_GPU, RIG_BF },
	{ "submit a copy by a warp", COPY_WARP, RIG_GPU, RIG_BF },
	{ "submit a copy by an exclusive warp", COPY_WARP, RIG_EXCL, RIG_BF },
	{ "what was held back", HELD_BACK, RIG_GPU, RIG_DB },
	{ "by hand", HAND, RIG_GPU, RIG_DB },
	{ "by hand without record", HAND, RIG_GPU, RIG_NO_DBR },
	{ "by hand to the proxy", HAND, RIG_GPU, RIG_PROXY },
	{ "by hand by BlueFlame", HAND, RIG_GPU, RIG_BF },
	{ "by hand by BlueFlame of a warp", HAND_WARP, RIG_GPU, RIG_BF },
	{ "exclusive", POST, RIG_EXCL, RIG_DB },
	{ "exclusive without record", POST, RIG_EXCL, RIG_NO_DBR },
	{ "exclusive by proxy", POST, RIG_EXCL, RIG_PROXY },
	{ "exclusive by BlueFlame", POST, RIG_EXCL, RIG_BF },
};

static void ring_by_hand(const struct way *w, struct doca_gpu_dev_verbs_wqe *wqe, uint64_t pi)
{
	if (w->handler == RIG_PROXY)
		return gdk_ring_proxy(&rig.qp, pi, w->mode);
	if (w->handler != RIG_NO_DBR)
		gdk_update_dbr(&rig.qp, pi, 0);
	if (w->handler != RIG_BF)
		gdk_ring_db(&rig.qp, pi, 0);
	else if (w->how == HAND)
		gdk_ring_bf(&rig.qp, wqe);
	else
		gdk_ring_bf_warp(&rig.qp, wqe);
}

static void ring(const struct way *w, uint64_t at)
{
	struct doca_gpu_dev_verbs_wqe *wqe = gdk_get_wqe_ptr(&rig.qp, at);

	gdk_wqe_nop(&rig.qp, wqe, (uint16_t)at, GDK_CE_ALWAYS);
	if (w->how == POST)
		return rig_post(&rig, at, at, w->mode, RIG_AUTO, 0);
	gdk_mark_ready(&rig.qp, at, at, w->mode, RIG_AUTO);
	if (w->how == SUBMIT)
		gdk_submit(&rig.qp, at + 1, gdk_how(w->mode, RIG_AUTO, GDK_THREAD, 0));
	else if (w->how == COPY)
		gdk_submit_bf(&rig.qp, at + 1, wqe, gdk_how(w->mode, GDK_BF, GDK_THREAD, 0));
	else if (w->how == COPY_WARP)
		gdk_submit_bf_warp(&rig.qp, at + 1, wqe, gdk_how(w->mode, GDK_BF, GDK_THREAD, 0));
	else if (w->how >= HAND)
		ring_by_hand(w, wqe, at + 1);
}

/* True if s contains `what` before the first `end`. */
static bool before(const char *s, char what, char end)
{
	const char *e = strchr(s, end), *f = strchr(s, what);

	return f && e && f < e;
}

/*
 * Required order: a fence between the WQE and the first store to the DBREC or the
 * register, and a fence between the DBREC and the register. Exclusive mode omits the
 * second fence when it posts or submits a copy of its own; waits ring again after a fence.
 */
static void check(const struct way *w)
{
	const char *last_w = strrchr(trace, 'w'), *record = strchr(trace, 'R');

	cr_assert(last_w && strchr(last_w, 'D'), "%s: order %s", w->name, trace);
	cr_expect(before(last_w, 'F', 'D'), "%s: order %s", w->name, trace);
	cr_expect(before(trace, 'r', 'D'), "%s: order %s", w->name, trace);
	/* Functions that ring for others, and exclusive use, store rung behind a fence. */
	if (rung_is_read || w->how == SUBMIT || w->how == HELD_BACK ||
	    (w->mode == RIG_EXCL && w->how <= POST))
		cr_expect(before(last_w, 'F', 'r'), "%s: order %s", w->name, trace);
	cr_expect_eq(!!record, w->handler == RIG_DB || w->handler == RIG_BF, "%s: order %s",
		     w->name, trace);
	if (!record)
		return;
	cr_expect(before(last_w, 'F', 'R'), "%s: order %s", w->name, trace);
	if (w->mode != RIG_EXCL || (w->how > POST && w->how != COPY))
		cr_expect(before(record, 'F', 'D'), "%s: order %s", w->name, trace);
}

static void put(const struct way *w)
{
	const struct doca_gpu_dev_verbs_addr a = { 0x1000, 1 };
	uint64_t at;

	if (w->how == NOPS)
		(void)rig_post_nops(&rig, 40, w->mode, 0); /* several words */
	else
		cr_assert_eq(
			gdk_put(&rig.qp, a, a, 8, &at, gdk_how(w->mode, RIG_AUTO, RIG_THREAD, 0)),
			0);
	check(w);
	rig_nic(&rig);
}

static void run(const struct way *w, uint32_t flags, int scope)
{
	uint64_t at, gap;

	rig_init(&rig, 64, w->handler, 0);
	rig.st->flags = flags;
	nic_scope = scope;
	for (int i = 0; i < 3; i++) {
		memset(trace, 0, sizeof(trace));
		if (w->how == PUT || w->how == NOPS) {
			put(w);
			continue;
		}
		cr_assert_eq(gdk_reserve(&rig.qp, 1, w->mode, 0, &gap), 0);
		at = gap;
		/* post the later slot first; its doorbell must wait for the earlier slot */
		if (w->how == HELD_BACK) {
			cr_assert_eq(gdk_reserve(&rig.qp, 1, w->mode, 0, &at), 0);
			gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, at), (uint16_t)at,
				    GDK_CE_ALWAYS);
			rig_post(&rig, at, at, w->mode, RIG_AUTO, 0);
			cr_assert_not(strchr(trace, 'D'));
		}
		ring(w, gap);
		check(w);
		rig_nic(&rig);
	}
	rig_fini(&rig);
}

Test(order_dev, fences_before_stores_to_the_nic)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		const uint32_t bf = ways[i].handler == RIG_BF ? GDK_QPF_BLUEFLAME : 0;

		run(&ways[i], bf | GDK_QPF_SYS_SCOPE, GDK_SCOPE_SYS);
		run(&ways[i], bf, GDK_SCOPE_GPU);
	}
}

/*
 * Once a thread has left the token, another thread may write 64 bytes to the
 * BlueFlame register. So on a BlueFlame QP, a thread must store to the register
 * before it leaves the token, even if it rings with another handler.
 */
static void token(int handler, gdk_mode_t mode, const char *order)
{
	const struct doca_gpu_dev_verbs_addr a = { 0x1000, 1 };
	uint64_t at;

	rig_init(&rig, 64, handler, 0);
	rig.st->flags &= ~GDK_QPF_SYS_SCOPE;
	nic_scope = gdk_mode_scope(mode);
	for (int i = 0; i < 3; i++) {
		memset(trace, 0, sizeof(trace));
		cr_assert_eq(gdk_put(&rig.qp, a, a, 8, &at, gdk_how(mode, RIG_DB, RIG_THREAD, 0)),
			     0);
		cr_expect(strstr(trace, order), "put %d, handler %d, mode %d: %s", i, handler,
			  (int)mode, trace);
		rig_nic(&rig);
	}
	rig_fini(&rig);
}

Test(order_dev, order_of_token_and_register)
{
	token(RIG_DB, RIG_GPU, "TFD");
	token(RIG_DB, RIG_CTA, "TFD");
	token(RIG_BF, RIG_GPU, "DFT");
	token(RIG_BF, RIG_CTA, "DFT");
}

/* In exclusive mode, a wait that lasts longer than 20 us must ring again after a fence. */
Test(order_dev, exclusive_wait_rings_again_after_a_fence)
{
	static const uint32_t flags[] = { GDK_QPF_SYS_SCOPE, 0 };

	for (int i = 0; i < 2; i++) {
		rig_init(&rig, 64, RIG_DB, 0);
		rig.st->flags = flags[i];
		nic_scope = flags[i] ? GDK_SCOPE_SYS : GDK_SCOPE_GPU;
		(void)rig_post_nops(&rig, 1, RIG_EXCL, 0);
		memset(trace, 0, sizeof(trace));
		cr_assert_eq(gdk_wait_for(&rig.qp, 0, RIG_EXCL, 50000000), -ETIMEDOUT);
		cr_assert(before(trace, 'F', 'D'), "order %s", trace);
		cr_assert_not(strchr(trace, 'R'), "order %s", trace);
		rig_fini(&rig);
	}
}

/* Shared use that takes the token from exclusive use first repeats the doorbell after a fence. */
Test(order_dev, token_of_exclusive_use_is_taken_with_a_doorbell)
{
	rig_init(&rig, 64, RIG_DB, 0);
	nic_scope = GDK_SCOPE_SYS;
	(void)rig_post_nops(&rig, 1, RIG_EXCL, 0);
	rig_nic(&rig);
	memset(trace, 0, sizeof(trace));
	(void)rig_post_nops(&rig, 1, RIG_GPU, 0);
	cr_assert_str_eq(trace, "wFDFrRFDT");
	cr_assert_eq(rig.st->bare_rings, 1);
	rig_nic(&rig);
	memset(trace, 0, sizeof(trace));
	(void)rig_post_nops(&rig, 1, RIG_GPU, 0);
	cr_assert_eq(rig.st->bare_rings, 1);
	rig_fini(&rig);
}

/*
 * The CPU polls `rung` and stores the DBREC if GDK_QPF_RUNG_READ is set: `rung` must then be stored
 * after a fence behind the WQEs, in every way. Other fences than those of the QP's scope cost time.
 */
Test(order_dev, rung_is_stored_after_the_wqes_if_the_cpu_reads_it)
{
	static const int scopes[] = { GDK_SCOPE_SYS, GDK_SCOPE_GPU };

	rung_is_read = 1;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		for (int k = 0; k < 2 && ways[i].handler == RIG_NO_DBR; k++)
			run(&ways[i], GDK_QPF_RUNG_READ | (k ? 0 : GDK_QPF_SYS_SCOPE), scopes[k]);
	rung_is_read = 0;
}

Test(order_dev, fences_are_not_wider_than_the_memory_of_the_qp)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		const uint32_t bf = ways[i].handler == RIG_BF ? GDK_QPF_BLUEFLAME : 0;

		widest = 0;
		run(&ways[i], bf, GDK_SCOPE_GPU);
		cr_expect_lt(widest, GDK_SCOPE_SYS, "%s: fence of system scope", ways[i].name);
	}
}
