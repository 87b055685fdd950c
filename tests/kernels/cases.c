/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The cases of the GPU test's kernels when they run on CPU threads. Each function adds
 * the cases of one topic, from the default parameters of shape(). */
#include <stdlib.h>
#include <string.h>

#include "../gpu/device_host.h"

#define MODE(m) DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_##m
#define THREAD	DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD
#define WARP	DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP

static const int handlers[] = { E2E_DB, E2E_PROXY, E2E_NO_DBR, E2E_BF };
static struct gt_case *out, *out_end;

static void add(const char *what, struct gt_case c)
{
	static const char *const mode_name[] = { "exclusive", "cta", "gpu" };
	static const char *const scope_name[] = { "thread", "warp", "block" };

	E2E_REQUIRE(out < out_end);
	snprintf(c.name, sizeof(c.name), "%s %d %s %s %s %uqp%s %ux%ux%u depth %u", what, (int)c.op,
		 scope_name[c.scope], mode_name[c.mode], gdk_handler_name(c.handler), c.nqps,
		 c.by_thread ? "/lane" : "", c.blocks, c.threads, c.iters, c.depth);
	*out++ = c;
}

/* For the large groups of cases: ThreadSanitizer builds are slow and run every third case. */
static void add_many(const char *what, struct gt_case c)
{
#ifdef GDK_TSAN
	static unsigned int turn;

	if (turn++ % 3)
		return;
#endif
	add(what, c);
}

/* A wait rings published slots itself, which would hide a doorbell that the operation
 * failed to ring. Operations that test their own doorbell therefore use GT_POLL_AT. */
static enum gt_wait wait_of(enum gt_op op)
{
	switch (op) {
	case GT_LOW:
	case GT_MIX:
	case GT_IMM:
		return GT_BY_TICKET;
	case GT_FORMS: /* some functions return no ticket */
		return GT_FLUSH;
	case GT_RING: /* doorbells rung by hand bypass the indices that the poll functions use */
		return GT_WAIT;
	case GT_BUILD:
	case GT_PAIR:
	case GT_LOW_BF_WARP:
		return GT_POLL_AT;
	default:
		return GT_IN_TURN;
	}
}

/* Default parameters of a case, with two blocks. The sharing mode determines which
 * threads share a QP. */
static struct gt_case shape(enum gt_op op, int mode, int scope, int handler)
{
	struct gt_case c = { .run = gt_run_ops,
			     .op = op,
			     .mode = mode,
			     .scope = scope,
			     .handler = handler,
			     .depth = 64,
			     .size = op == GT_P || op == GT_P_SIGNAL ? 8 : 64,
			     .blocks = 2,
			     .threads = 64,
			     .iters = 5,
			     .batch = 2 };

	c.nqps = mode == MODE(GPU) ? 1 : c.blocks;
	if (mode == MODE(EXCLUSIVE)) {
		c.threads = scope == THREAD ? 1 : GDK_WARP;
		c.iters = scope == THREAD ? 100 : 20;
	}
	if (gt_flags(op) & GT_READ)
		c.batch = 1;
	c.wait = wait_of(op);
	return c;
}

/* Iterations of a thread: all with LONG=1, otherwise this part of them, rounded up. In warps of 32
 * most of the time is spent in waits of lanes for each other. */
static uint32_t part_of(uint32_t iters, uint32_t num, uint32_t den)
{
	const char *form = getenv("LONG");

	return form && *form ? iters : (iters * num + den - 1) / den;
}

/* All combinations of sharing mode, scope and handler for the operations up to
 * GT_LAST_SCOPED. Each of the two warp widths (GDK_WARP) runs half of them. */
static void operations(void)
{
	struct gt_case c;

	for (int op = GT_PUT; op <= GT_LAST_SCOPED; op++)
		for (int mode = 0; mode < 3; mode++)
			for (int scope = 0; scope < 3; scope++)
				for (int h = (op + mode + scope + GDK_WARP) % 2; h < 4; h += 2) {
					c = shape(op, mode, scope, handlers[h]);
					if (GDK_WARP > 1)
						c.iters = part_of(c.iters, 1, 2);
					add_many("operation", c);
				}
}

/* Operations that the kernel builds, submits or rings itself, get_wait, fence,
 * compare-and-swap, and functions for one scope. */
static void low_level(void)
{
	static const int ops[] = { GT_GET_WAIT, GT_FENCE, GT_CAS, GT_LOW, GT_BUILD, GT_FORMS };
	struct gt_case c;

	for (int i = 0; i < 6; i++)
		for (int mode = 0; mode < 3; mode++)
			for (int h = 0; h < 4; h++)
				add_many("low level", shape(ops[i], mode, THREAD, handlers[h]));
	for (int mode = 0; mode < 3; mode++) {
		for (int h = 0; h < 4; h++)
			add("scope_functions", shape(GT_FORMS, mode, WARP, handlers[h]));
		c = shape(GT_LOW_BF_WARP, mode, WARP, E2E_BF);
		/* Deep enough that no lane waits for a free slot: the lanes of a warp post
		 * together, so a lane that waits would delay all others. */
		c.depth = 256;
		add("bf_from_copy_warp", c);
	}
	for (int h = 0; h < 4; h++)
		add("ring_by_hand", shape(GT_RING, MODE(EXCLUSIVE), THREAD, handlers[h]));
}

static void pairs(void)
{
	struct gt_case c;

	for (int mode = 0; mode < 3; mode++)
		/* QP groups do not support BlueFlame, the last handler */
		for (int h = 0; h < 3; h++) {
			c = shape(GT_PAIR, mode, THREAD, handlers[h]);
			c.counted = true;
			add("two_qps", c);
		}
}

static void tools(void)
{
	struct gt_case c;

	for (int mode = 0; mode < 3; mode++) {
		c = shape(GT_TOOLS, mode, THREAD, E2E_DB);
		c.run = gt_run_tools;
		c.blocks = mode == MODE(GPU) ? 4 : 1;
		add("no_queue", c);
	}
}

/* Lanes with empty transfers beside lanes with one WQE or with several, in rings that
 * hold all of these WQEs, some of them, or fewer than one operation needs. */
static void lengths(void)
{
	static const int ops[] = { GT_PUT, GT_PUT_SIGNAL, GT_GET, GT_GET_MCST, GT_FENCE };
	unsigned int turn = 0;
	struct gt_case c;

	for (int i = 0; i < 5; i++)
		for (int scope = 0; scope < (ops[i] == GT_FENCE ? 1 : 3); scope++)
			for (uint32_t depth = 2; depth <= 128; depth *= 4) {
				c = shape(ops[i], (int)(turn / 3 % 3), scope, handlers[turn % 4]);
				c.varied = 1;
				c.size = 1000;
				c.depth = depth;
				c.iters = 4;
				add_many("lengths", c);
				turn++;
			}
}

static bool takes_one(int op)
{
	return op == GT_PUT || op == GT_FENCE;
}

/* Rings with fewer slots than a block, a warp or even one operation needs. Nearly every operation
 * waits for a slot, so without LONG=1 the threads execute fewer of them. */
static void short_rings(void)
{
	static const int ops[] = { GT_PUT, GT_P_SIGNAL, GT_PUT_SIGNAL, GT_GET_MCST, GT_FENCE };
	unsigned int turn = 0;
	struct gt_case c;

	for (uint32_t depth = 1; depth <= 16; depth *= 2)
		for (int i = 0; i < 5; i++)
			for (int scope = 0; scope < (ops[i] == GT_FENCE ? 1 : 3); scope++) {
				c = shape(ops[i], (int)(turn / 3 % 3), scope, handlers[turn % 4]);
				c.depth = depth;
				c.iters = part_of(c.iters, GDK_WARP > 1 ? 2 : 3, 5);
				turn++;
				if (depth > 1 || scope != THREAD || takes_one(ops[i]))
					add_many("short ring", c);
			}
}

/* Inline values that need several WQEs. */
static void long_values(void)
{
	struct gt_case c;

	for (int op = GT_P; op <= GT_P_SIGNAL; op += GT_P_SIGNAL - GT_P)
		for (int scope = 0; scope < 2; scope++) {
			c = shape(op, MODE(GPU), scope, E2E_DB);
			c.size = scope ? 60 : 100;
			c.depth = 256;
			add("long value", c);
		}
}

static void counters(void)
{
	struct gt_case c;

	for (int op = GT_PUT_COUNTER; op <= GT_GET_COUNTER; op++) {
		c = shape(op, MODE(GPU), THREAD, handlers[op % 3]);
		c.counted = true;
		c.wait = GT_COUNTED;
		if (op == GT_P_COUNTER)
			c.size = 8;
		add("counter", c);
	}
}

static void by_handler(int handler)
{
	struct gt_case c;

	add("put", shape(GT_PUT, MODE(GPU), WARP, handler));
	for (int mode = 0; mode < 3; mode++)
		add("mix", shape(GT_MIX, mode, THREAD, handler));
	add("named_handler", shape(GT_HANDLER, MODE(GPU), THREAD, handler));
	c = shape(GT_PUT, MODE(GPU), THREAD, handler);
	c.collapsed = true;
	c.wait = GT_COLLAPSED;
	add("collapsed", c);
	c = shape(GT_PUT, MODE(EXCLUSIVE), THREAD, handler);
	c.wait = GT_POLL_NEXT;
	add("poll next", c);
	c = shape(GT_IMM, MODE(GPU), THREAD, handler);
	c.run = gt_run_imm;
	add("write_imm_order", c);
	c = shape(GT_MIX, MODE(GPU), THREAD, handler);
	c.run = gt_run_reset;
	c.iters = 2;
	add("reset", c);
}

/* Rings that wrap between two waits of a thread, lanes with different QPs, warps with
 * idle lanes, and BlueFlame from a copy of the WQE. */
static void wrapping_and_idle(void)
{
	static const uint32_t idle[] = { ~0x1fu, 0x7ffffffeu, 0x55555555, 0xfffeffff };
	static const int some[] = { GT_PUT, GT_MIX, GT_P_SIGNAL, GT_GET_MCST };
	struct gt_case c;

	for (uint32_t depth = 16; depth <= 256; depth *= 4) {
		c = shape(GT_MIX, MODE(GPU), THREAD, E2E_DB);
		c.depth = depth;
		c.blocks = 4;
		add("wrap", c);
	}
	for (uint32_t nqps = 2; nqps <= 32; nqps *= 4) {
		c = shape(GT_MIX, MODE(GPU), THREAD, nqps == 8 ? E2E_PROXY : E2E_DB);
		c.nqps = nqps;
		c.by_thread = 1;
		add("qp_per_lane", c);
	}
	for (int i = 0; i < 4; i++)
		for (int op = 0; op < 4; op++) {
			c = shape(some[op], op % 2 ? MODE(CTA) : MODE(GPU), THREAD, handlers[i]);
			c.idle = idle[i];
			add("idle lanes", c);
		}
	for (int mode = 0; mode < 3; mode++)
		add("bf_from_copy", shape(GT_LOW_BF, mode, THREAD, E2E_BF));
}

static void errors(void)
{
	struct gt_case c;

	for (int h = 0; h < 2; h++) {
		c = shape(GT_DENIED, MODE(GPU), THREAD, handlers[h]);
		c.iters = 1;
		c.run = gt_run_bad_rkey;
		c.nqps = 2;
		add("bad_rkey", c);
		c.nqps = 1;
		c.run = gt_run_no_peer;
		add("no_peer", c);
		c.run = gt_run_unconnected;
		add("unconnected", c);
		if (handlers[h] == E2E_PROXY) {
			c.run = gt_run_unserved;
			add("unserved", c);
		}
	}
}

/* Sends and receives. With warps of 32, the group of a scope of many lanes posts together. */
static void receives(void)
{
	unsigned int turn = 0;
	struct gt_case c;

	for (int mode = 0; mode < 3; mode++)
		for (int scope = 0; scope < 3; scope++)
			for (int deep = 0; deep < 2; deep++) {
				c = shape(GT_RECV, mode, scope, handlers[turn++ % 4]);
				c.run = gt_run_recv;
				c.iters = mode == MODE(EXCLUSIVE) ? 10 : 3;
				if (deep)
					c.depth = 1024;
				add_many("send_recv", c);
			}
	for (int h = 0; h < 4; h++) {
		c = shape(GT_RECV_HOLE, MODE(GPU), THREAD, handlers[h]);
		c.iters = 1;
		c.run = gt_run_unconnected;
		add("receives unconnected", c);
	}
}

/* Strong and weak operations of the RDMA library by threads, warps and blocks, on one connection
 * and on several, in rings that are shorter than what is posted before a commit, and in longer
 * ones. */
static void rdma(void)
{
	unsigned int turn = 0;
	struct gt_case c;

	for (int op = GT_RDMA_STRONG; op <= GT_RDMA_WEAK; op++)
		for (int scope = op == GT_RDMA_WEAK; scope < 3; scope++)
			for (uint32_t nqps = 1; nqps <= 2; nqps++)
				for (uint32_t depth = 16; depth <= 256; depth *= 4) {
					c = shape((enum gt_op)op, MODE(GPU), scope,
						  handlers[turn++ % 3]);
					c.run = gt_run_rdma;
					c.size = 24;
					c.blocks = 4;
					c.threads = 32;
					c.nqps = nqps;
					c.depth = op == GT_RDMA_WEAK && depth < 32 ? 32 : depth;
					add_many("rdma", c);
				}
	c = shape(GT_RDMA_STRONG, MODE(GPU), THREAD, E2E_DB);
	c.run = gt_run_rdma;
	c.size = 24;
	c.nqps = 4;
	c.by_thread = 1;
	add("rdma_conn_per_lane", c);
}

unsigned int gt_cases(struct gt_case *cases, unsigned int max)
{
	out = cases;
	out_end = cases + max;
	operations();
	low_level();
	pairs();
	tools();
	lengths();
	short_rings();
	counters();
	long_values();
	for (int h = 0; h < 4; h++)
		by_handler(handlers[h]);
	wrapping_and_idle();
	errors();
	receives();
	rdma();
	gt_debug_cases(add);
	return (unsigned int)(out - cases);
}
