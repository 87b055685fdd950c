/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The list of cases of the GPU test. Each group of cases varies a few of the
 * parameters of shape(). */
#include <string.h>

#include "device_host.h"

#define MODE(m) DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_##m
#define THREAD	DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD
#define WARP	DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP
#define BLOCK	GDK_EXEC_SCOPE_BLOCK
#define SMS	132 /* multiprocessors of an H200; many_threads() starts one block for each */

static const char *const op_name[GT_OPS] = {
	"put",
	"p",
	"signal",
	"signal_set",
	"put_signal",
	"put_signal_set",
	"p_signal",
	"get",
	"get_mcst",
	"get_wait",
	"get_fence_put",
	"cas",
	"nop_write",
	"bf_from_copy",
	"bf_from_copy_warp",
	"every_builder",
	"ring_by_hand",
	"two_qps",
	"scope_functions",
	"named_handler",
	"plain_put",
	"plain_get",
	"write_imm_order",
	"mix",
	"put_counter",
	"p_counter",
	"put_signal_counter",
	"signal_counter",
	"get_counter",
	"send_recv",
	"empty_recv",
	"rdma_strong",
	"rdma_weak",
	"empty_slot",
	"bad_rkey",
	"no_queue",
	"bad_wqe",
	"dump",
	"never_rung",
};
static const char *const mode_name[] = { "exclusive", "cta", "gpu" };
static const char *const scope_name[] = { "thread", "warp", "block" };

static struct gt_case *out, *out_end;

static void add(const char *what, struct gt_case c)
{
	E2E_REQUIRE(out < out_end);
	snprintf(c.name, sizeof(c.name),
		 "%s %s %s %s queues=%s payload=%s %uqp%s %ux%ux%u of %u wait/%u depth %u",
		 what ? what : op_name[c.op], scope_name[c.scope], mode_name[c.mode],
		 gdk_handler_name(c.handler), c.queues_on_gpu ? "gpu" : "host",
		 c.payload_on_gpu ? "gpu" : "host", c.nqps, c.by_thread ? "/lane" : "", c.blocks,
		 c.threads, c.iters, c.size, c.batch, c.depth);
	*out++ = c;
}

/* Returns whether the NIC reaches the queues or the payload through copies by the CUDA
 * driver. Such a case is slow, so it gets few operations. */
static bool slow(const struct gt_case *c)
{
	return c->queues_on_gpu || c->payload_on_gpu;
}

static enum gt_wait wait_of(enum gt_op op)
{
	switch (op) {
	case GT_LOW: /* WQEs without a CQE or of two slots: CQE and slot indices differ */
	case GT_MIX:
	case GT_IMM:
		return GT_BY_TICKET;
	case GT_FORMS: /* some functions return no ticket */
		return GT_FLUSH;
	case GT_RING: /* doorbells rung by hand bypass the indices that the poll functions use */
		return GT_WAIT;
	case GT_BUILD: /* a wait would also ring, and hide a lost doorbell */
	case GT_PAIR:
	case GT_LOW_BF_WARP:
		return GT_POLL_AT;
	default:
		return gt_flags(op) & GT_COUNT ? GT_COUNTED : GT_IN_TURN;
	}
}

/* Default parameters of a case. The sharing mode determines which threads share a QP. */
static struct gt_case shape(enum gt_op op, int mode, int scope, int handler, int mem)
{
	struct gt_case c = { .run = gt_run_ops,
			     .op = op,
			     .mode = mode,
			     .scope = scope,
			     .handler = handler,
			     .depth = 64,
			     .size = 64,
			     .queues_on_gpu = mem & 1,
			     .payload_on_gpu = mem >> 1 & 1 };
	uint32_t group = scope == THREAD ? 1 : 32; /* block scope: two warps, set below */

	if (scope == BLOCK) { /* the ring must hold all slots that a group reserves at once */
		group = 64;
		c.depth = 256;
	}
	if (op == GT_P || op == GT_P_SIGNAL || op == GT_P_COUNTER || op == GT_SIGNAL_SET)
		c.size = 8;
	c.blocks = mode == MODE(GPU) ? 8 : 4;
	c.nqps = mode == MODE(GPU) ? 1 : c.blocks;
	c.threads = mode == MODE(EXCLUSIVE) ? group : slow(&c) ? 32 : 96;
	c.iters = slow(&c) ? 2 : mode == MODE(EXCLUSIVE) && scope == THREAD ? 200 : 16;
	c.batch = gt_flags(op) & GT_READ ? 1 : 4;
	c.counted = gt_flags(op) & GT_COUNT || op == GT_PAIR;
	c.wait = wait_of(op);
	if (op == GT_CAS)
		c.iters = 8;
	return c;
}

/* The operations from GT_PUT to GT_LOW and those with a counter, in every sharing mode.
 * Operations up to GT_LAST_SCOPED run at every scope. The handlers alternate. */
static void operations(void)
{
	static const int handlers[] = { E2E_DB, E2E_PROXY, E2E_NO_DBR, E2E_BF };
	unsigned int turn = 0;

	for (int op = GT_PUT; op <= GT_LOW; op++)
		for (int mode = 0; mode < 3; mode++)
			for (int scope = 0; scope < (op <= GT_LAST_SCOPED ? 3 : 1); scope++)
				add(NULL, shape(op, mode, scope, handlers[turn++ % 4], 0));
	for (int op = GT_PUT_COUNTER; op <= GT_GET_COUNTER; op++)
		for (int mode = 0; mode < 3; mode++)
			add(NULL, shape(op, mode, THREAD, handlers[turn++ % 3], 0));
}

static void handlers(void)
{
	static const int handlers[] = { E2E_DB, E2E_PROXY, E2E_NO_DBR, E2E_BF };

	for (int h = 0; h < 4; h++)
		for (int mem = 0; mem < 4; mem++) {
			add(NULL, shape(GT_PUT, MODE(GPU), WARP, handlers[h], mem));
			add(NULL, shape(GT_PUT_SIGNAL, MODE(GPU), BLOCK, handlers[h], mem));
			if (handlers[h] != E2E_BF) /* QP groups do not support BlueFlame */
				add(NULL,
				    shape(GT_PUT_COUNTER, MODE(GPU), THREAD, handlers[h], mem));
			add(NULL, shape(GT_MIX, MODE(GPU), THREAD, handlers[h], mem));
			add(NULL, shape(GT_MIX, MODE(EXCLUSIVE), THREAD, handlers[h], mem));
		}
}

/* WQEs built and submitted by the kernel itself, functions for one scope, and
 * functions that need no queue. */
static void low_level(void)
{
	static const int handlers[] = { E2E_DB, E2E_PROXY, E2E_NO_DBR, E2E_BF };
	struct gt_case c;

	for (int mode = 0; mode < 3; mode++) {
		for (int h = 0; h < 4; h++) {
			add(NULL, shape(GT_BUILD, mode, THREAD, handlers[h], 0));
			if (handlers[h] != E2E_BF) /* QP groups do not support BlueFlame */
				add(NULL, shape(GT_PAIR, mode, THREAD, handlers[h], 0));
		}
		add(NULL, shape(GT_FORMS, mode, THREAD, handlers[mode], 0));
		add(NULL, shape(GT_FORMS, mode, WARP, handlers[mode], 0));
		c = shape(GT_LOW_BF_WARP, mode, WARP, E2E_BF, 0);
		/* Deep, so that lanes seldom wait for a free slot: the lanes of a warp post
		 * together, so a lane that waits delays all others. */
		c.depth = 1024;
		add(NULL, c);
		c = shape(GT_TOOLS, mode, THREAD, E2E_DB, 0);
		c.run = gt_run_tools;
		c.blocks = mode == MODE(GPU) ? 8 : 1;
		add(NULL, c);
	}
	for (int h = 0; h < 4; h++)
		add(NULL, shape(GT_RING, MODE(EXCLUSIVE), THREAD, handlers[h], 0));
}

/* Lanes with empty transfers beside lanes with data, in rings that hold all slots of a
 * group and in rings that do not. */
static void lengths(void)
{
	static const int ops[] = { GT_PUT, GT_PUT_SIGNAL, GT_GET_MCST };
	struct gt_case c;

	for (int i = 0; i < 3; i++)
		for (int scope = 0; scope < 3; scope++)
			for (uint32_t depth = 8; depth <= 512; depth *= 64) {
				c = shape(ops[i], (i + scope) % 3, scope, E2E_DB, 0);
				c.varied = true;
				c.depth = depth;
				add("lengths", c);
			}
}

/* Handlers named in the kernel, collapsed CQs, poll_cq, BlueFlame and reservation
 * without the check for free slots. */
static void handlers_and_waits(void)
{
	static const int handlers[] = { E2E_DB, E2E_PROXY, E2E_NO_DBR, E2E_BF };
	struct gt_case c;

	for (int h = 0; h < 4; h++) {
		add(NULL, shape(GT_HANDLER, MODE(GPU), THREAD, handlers[h], 0));
		add(NULL, shape(GT_MIX, MODE(CTA), THREAD, handlers[h], 0));
		c = shape(GT_PUT, MODE(GPU), THREAD, handlers[h], 0);
		c.collapsed = true;
		c.wait = GT_COLLAPSED;
		add("collapsed", c);
		c = shape(GT_PUT, MODE(EXCLUSIVE), THREAD, handlers[h], 0);
		c.wait = GT_POLL_NEXT;
		add("poll_next", c);
	}
	for (int mode = 0; mode < 3; mode++)
		add(NULL, shape(GT_LOW_BF, mode, THREAD, E2E_BF, 0));
	c = shape(GT_PUT, MODE(GPU), THREAD, E2E_DB, 0);
	c.code_opt = DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_AVAILABILITY_CHECK;
	c.depth = 32768;
	add("no_slot_check", c);
	c.scope = WARP;
	add("no_slot_check", c);
}

static void write_imm_order(void)
{
	static const int handlers[] = { E2E_DB, E2E_PROXY, E2E_NO_DBR, E2E_BF };
	struct gt_case c;

	for (int h = 0; h < 4; h++) {
		c = shape(GT_IMM, MODE(GPU), THREAD, handlers[h], 0);
		c.run = gt_run_imm;
		c.threads = 64;
		c.iters = 7;
		add(NULL, c);
	}
}

/* Sends and receives in every sharing mode and scope, also in a ring that keeps all CQEs, and all
 * handlers and memories. */
static void receives(void)
{
	static const int handlers[] = { E2E_DB, E2E_PROXY, E2E_NO_DBR, E2E_BF };
	unsigned int turn = 0;
	struct gt_case c;

	for (int mode = 0; mode < 3; mode++)
		for (int scope = 0; scope < 3; scope++)
			for (int deep = 0; deep < 2; deep++) {
				c = shape(GT_RECV, mode, scope, handlers[turn++ % 4], 0);
				c.run = gt_run_recv;
				c.iters = mode == MODE(EXCLUSIVE) ? 20 : 4;
				if (deep)
					c.depth = 4096;
				add(NULL, c);
			}
	for (int h = 0; h < 4; h++)
		for (int mem = 1; mem < 4; mem++) {
			c = shape(GT_RECV, MODE(GPU), (h + mem) % 3, handlers[h], mem);
			c.run = gt_run_recv;
			add(NULL, c);
		}
}

/* Strong and weak operations of the RDMA library by threads, warps and blocks, on one connection
 * and on several, in rings that are shorter than what is posted before a commit, and in all
 * memories. */
static void rdma(void)
{
	static const int handlers[] = { E2E_DB, E2E_PROXY, E2E_NO_DBR, E2E_BF };
	struct gt_case c;

	for (int op = GT_RDMA_STRONG; op <= GT_RDMA_WEAK; op++)
		for (int scope = op == GT_RDMA_WEAK; scope < 3; scope++)
			for (int mem = 0; mem < 4; mem++)
				for (uint32_t nqps = 1; nqps <= 4; nqps *= 4) {
					c = shape((enum gt_op)op, MODE(GPU), scope,
						  handlers[(scope + mem) % 3], mem);
					c.run = gt_run_rdma;
					c.size = 24;
					c.threads = 64;
					c.iters = mem ? 3 : 12;
					c.nqps = nqps;
					add(NULL, c);
					c.depth = op == GT_RDMA_WEAK ? 64 : 16;
					add(NULL, c);
				}
	c = shape(GT_RDMA_STRONG, MODE(GPU), THREAD, E2E_DB, 0);
	c.run = gt_run_rdma;
	c.size = 24;
	c.nqps = 8;
	c.by_thread = 1;
	add("rdma_conn_per_lane", c);
}

/* Few threads, for runs under a checker (compute-sanitizer) that makes kernels many times
 * slower. */
static void few_threads(void)
{
	static const enum gt_op ops[] = { GT_PUT, GT_P, GT_PUT_SIGNAL, GT_GET, GT_LOW_BF, GT_MIX };
	struct gt_case c;
	char what[40];

	for (unsigned int i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		c = shape(ops[i], MODE(GPU), THREAD, ops[i] == GT_LOW_BF ? E2E_BF : E2E_DB, 0);
		c.blocks = 2;
		c.threads = 32;
		c.iters = 4;
		snprintf(what, sizeof(what), "small %s", op_name[ops[i]]);
		add(what, c);
	}
}

static void huge(void)
{
	struct gt_case c = shape(GT_BARE_PUT, MODE(EXCLUSIVE), THREAD, E2E_DB, 0);

	c.run = gt_run_huge;
	c.blocks = c.nqps = c.iters = c.batch = 1;
	add("huge put", c);
	c.op = GT_BARE_GET;
	add("huge get", c);
}

static void sizes(void)
{
	static const uint32_t p_size[] = { 1, 2, 4, 28, 60, 100 };
	struct gt_case c;

	for (int i = 0; i < 6; i++) {
		c = shape(GT_P, MODE(GPU), THREAD, E2E_DB, 0);
		c.size = p_size[i];
		add(NULL, c);
	}
	for (uint32_t size = 8; size <= 65536; size *= 16) {
		c = shape(GT_PUT, MODE(GPU), THREAD, E2E_DB, 0);
		c.size = size;
		c.iters = size > 1024 ? 1 : 4;
		c.blocks = size > 8192 ? 2 : 8;
		c.threads = size > 8192 ? 16 : 32;
		add(NULL, c);
	}
}

static void many_threads(struct gt_case c, uint32_t depth)
{
	c.depth = depth;
	c.blocks = SMS;
	c.threads = 128;
	c.iters = 3;
	c.batch = 2;
	add(c.debug ? "debug many_threads" : "many_threads", c);
}

/* Many threads on one QP, rings of several depths, idle lanes, and lanes with different QPs. */
static void shared_by_many(void)
{
	static const uint32_t idle[] = { ~0x1fu, 0x7ffffffeu, 0x55555555, 0xfffeffff };
	struct gt_case c;

	for (uint32_t depth = 64; depth <= 4096; depth *= 8) {
		c = shape(GT_PUT, MODE(GPU), WARP, E2E_DB, 0);
		many_threads(c, depth);
		c = shape(GT_MIX, MODE(GPU), THREAD, E2E_DB, 0);
		many_threads(c, depth);
		/* In the debug build, the thread that rings checks every WQE while thousands of
		 * threads poll. */
		c.debug = true;
		many_threads(c, depth);
	}
	for (int i = 0; i < 4; i++) {
		c = shape(i % 2 ? GT_MIX : GT_PUT, MODE(GPU), THREAD, E2E_DB, 0);
		c.idle = idle[i];
		add("idle lanes", c);
	}
	for (uint32_t nqps = 2; nqps <= 32; nqps *= 4)
		for (int h = 0; h < 2; h++) {
			c = shape(GT_MIX, MODE(GPU), THREAD, h ? E2E_PROXY : E2E_DB, 0);
			c.nqps = nqps;
			c.by_thread = 1;
			add("qp_per_lane", c);
		}
}

static void resets(void)
{
	static const int handlers[] = { E2E_DB, E2E_PROXY, E2E_NO_DBR, E2E_BF };
	struct gt_case c;

	for (int h = 0; h < 4; h++)
		for (int mem = 0; mem < 2; mem++) {
			c = shape(GT_MIX, MODE(GPU), THREAD, handlers[h], mem);
			c.run = gt_run_reset;
			add("reset", c);
		}
}

static void errors_and_aborts(void)
{
	struct gt_case c;

	for (int mem = 0; mem < 2; mem++)
		for (int h = 0; h < 2; h++) {
			c = shape(GT_HOLE, MODE(GPU), THREAD, h ? E2E_PROXY : E2E_DB, mem);
			c.blocks = 8;
			c.threads = 125;
			c.iters = 1;
			c.run = gt_run_abort;
			add("abort", c);
			c.run = gt_run_unconnected;
			add("unconnected", c);
			c.op = GT_RECV_HOLE;
			add("receives unconnected", c);
			c.run = gt_run_abort;
			add("receives abort", c);
			if (h) {
				c.op = GT_DENIED;
				c.run = gt_run_unserved;
				add("unserved", c);
			}
			c.op = GT_DENIED;
			c.threads = 128; /* a multiple of the warp size */
			c.run = gt_run_bad_rkey;
			c.nqps = 2;
			add("bad_rkey", c);
			c.nqps = 1;
			c.run = gt_run_no_peer;
			add("no_peer", c);
		}
}

unsigned int gt_cases(struct gt_case *cases, unsigned int max)
{
	out = cases;
	out_end = cases + max;
	operations();
	low_level();
	lengths();
	handlers();
	handlers_and_waits();
	write_imm_order();
	receives();
	rdma();
	sizes();
	shared_by_many();
	resets();
	errors_and_aborts();
	huge();
	few_threads();
	gt_debug_cases(add);
	return (unsigned int)(out - cases);
}
