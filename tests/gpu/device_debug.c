/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The GPU test's cases for the debug build. A correct WQE is rung without a message. A
 * WQE with one wrong field is not rung, a log line names the field, and all waits end
 * with an error. The GPU and the host print the same text for a WQE and a CQE. Slots
 * that were reserved but never rung are reported.
 */
#include <string.h>

#include "device_host.h"

static int read_log(const struct gt_job *job, struct gt_log *log)
{
	if (gt_gpu_copy(log, job->gpu + job->counters + GT_LOG, sizeof(*log)))
		return gt_complain("copying the log from the GPU failed");
	log->text[sizeof(log->text) - 1] = 0;
	return 0;
}

static int check_log(const struct gt_log *log, const char *expected, bool all)
{
	const size_t len = strlen(expected);

	if (all ? strcmp(log->text, expected) : strncmp(log->text, expected, len))
		return gt_complain("printed \"%.120s\" (expected \"%.120s\")", log->text, expected);
	return 0;
}

int gt_check_quiet(const struct gt_job *job)
{
	struct gt_log log;

	return job->debug && (read_log(job, &log) || check_log(&log, "", true)) ? -1 : 0;
}

/* Checks that cell k holds its data (there), or that all its bytes are still 0 (!there). */
static int check_cell(const struct gt_job *job, uint64_t k, bool there)
{
	uint8_t cell[64];

	E2E_REQUIRE(job->size <= sizeof(cell));
	if (gt_gpu_copy(cell, job->gpu + job->dst + k * job->size, job->size))
		return gt_complain("copying the payload from the GPU failed");
	for (uint32_t i = 0; i < job->size; i++)
		if (cell[i] != (there ? gt_byte(k, i, job->seed) : 0))
			return gt_complain("cell %lu: byte %u is %02x", k, i, cell[i]);
	return 0;
}

/* Opens the queue pairs and runs the case; every thread must return 0. The caller
 * closes the queue pairs. */
static int run_case(struct gt_env *env, const struct gt_case *c, struct gt_qps *qps,
		    struct gt_job *job, struct gt_log *log)
{
	gt_qps_open(env, qps, c);
	gt_qps_connect(env, qps, gt_good_path);
	return gt_prepare(env, c, qps, job) || gt_run(env, qps, job) || gt_check_status(env, job) ||
			       read_log(job, log)
		       ? -1
		       : 0;
}

/* ---- wrong WQEs ---- */

/* WQE 1 is a write of 64 bytes. Each entry flips bits of one of its words (in CPU byte
 * order) and gives the expected text of the log line. A %x in this text stands for the
 * maximum number of bytes of one WQE. */
static const struct wrong {
	uint32_t word, flip;
	const char *line;
} wrongs[] = {
	{ 0, 0x100, "wqe_index is 0x0, expected 0x1" },
	{ 0, 0x08 ^ 0x25, "opcode is 0x25, expected one that a GPU posts" },
	{ 0, 0x01000000, "opmod is 0x1, expected 0x0" },
	{ 1, 3 ^ 1, "ds is 0x1, expected 0x2 to 0x3f" },
	{ 1, 3 ^ 5, "slots is 0x2, expected 0x1" },
	{ 2, 0x01000000, "signature is 0x1, expected 0x0" },
	{ 2, 0x10, "reserved of fm_ce_se is 0x10, expected 0x0" },
	{ 7, 1, "reserved of raddr is 0x1, expected 0x0" },
	{ 8, 64, "byte_count is 0x0, expected 0x1 to 0x%x" },
	{ 8, 0x40000000, "byte_count is 0x40000040, expected 0x1 to 0x%x" },
};

/* Checks that only the good WQE was executed, and that the host reads the index of the
 * refused one. */
static int check_refused(struct gt_env *env, struct gt_qps *qps, const struct gt_job *job,
			 const char *line)
{
	struct gdk_qp_counters n;
	struct gt_log log;
	char expected[160];

	if (gt_all_returned(env, job, -EINVAL))
		return -1;
	E2E_REQUIRE(!gdk_verbs_qp_get_counters(qps->qp[0].hl->qp_gverbs, &n));
	if (n.status != -EINVAL || n.error_wqe != 1 || n.completions != 1 || n.doorbells != 1)
		return gt_complain("the host reads status %d of WQE %lu, %lu completions and %lu "
				   "doorbells",
				   n.status, n.error_wqe, n.completions, n.doorbells);
	if (read_log(job, &log) || check_cell(job, 0, true) || check_cell(job, 1, false))
		return -1;
	snprintf(expected, sizeof(expected), "gdaki: QP 0x%x WQE 1: %s; not rung\nWQE ",
		 qps->qp[0].qpn, line);
	return check_log(&log, expected, false);
}

static int run_wrong(struct gt_env *env, const struct gt_case *c, const struct wrong *w)
{
	struct gt_qps qps;
	struct gt_job job;
	char line[100];
	int rc;

	snprintf(line, sizeof(line), w->line, 1u << GT_CHUNK_SHIFT);
	gt_qps_open(env, &qps, c);
	gt_qps_connect(env, &qps, gt_good_path);
	rc = gt_prepare(env, c, &qps, &job);
	job.word = w->word;
	job.flip = w->flip;
	rc = rc || gt_run(env, &qps, &job) || check_refused(env, &qps, &job, line) ? -1 : 0;
	gt_qps_close(&qps);
	return rc;
}

int gt_run_bad_wqe(struct gt_env *env, const struct gt_case *c)
{
	for (unsigned int i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++)
		if (run_wrong(env, c, &wrongs[i]))
			return -1;
	return 0;
}

/* ---- dumps ---- */

int gt_run_dump(struct gt_env *env, const struct gt_case *c)
{
	char expected[4096];
	struct gt_qps qps;
	struct gt_job job;
	struct gt_log log;
	size_t len;
	int rc = run_case(env, c, &qps, &job, &log) || check_cell(&job, 0, true);

	gt_qps_close(&qps);
	if (rc)
		return -1;
	len = gdk_dump_wqe(expected, sizeof(expected), log.wqe, 1);
	gdk_dump_cqe(expected + len, sizeof(expected) - len, log.cqe);
	if (!strstr(expected, "RDMA_WRITE") || !strstr(expected, "REQ"))
		return gt_complain("the host's dump lacks RDMA_WRITE or REQ: \"%.150s\"", expected);
	return check_log(&log, expected, true);
}

int gt_run_never_rung(struct gt_env *env, const struct gt_case *c)
{
	char expected[160];
	struct gt_qps qps;
	struct gt_job job;
	struct gt_log log;
	int rc = run_case(env, c, &qps, &job, &log);

	snprintf(expected, sizeof(expected),
		 "gdaki: QP 0x%x: WQEs 1 to 3 are reserved and were "
		 "never rung, 1 of them published\n",
		 qps.qp[0].qpn);
	rc = rc || check_cell(&job, 0, true) || check_log(&log, expected, true) ? -1 : 0;
	gt_qps_close(&qps);
	return rc;
}

/* ---- the list ---- */

static struct gt_case shape(enum gt_op op, int scope, int handler, bool queues_on_gpu)
{
	return (struct gt_case){
		.run = gt_run_ops,
		.op = op,
		.mode = E2E_MODE,
		.scope = scope,
		.handler = handler,
		.depth = 256,
		.size = 64,
		.nqps = 1,
		.blocks = 2,
		.threads = 64,
		.iters = queues_on_gpu ? 2 : 4,
		.batch = 2,
		.debug = true,
		.queues_on_gpu = queues_on_gpu,
		.wait = op == GT_BUILD ? GT_POLL_AT : GT_BY_TICKET,
	};
}

static void by_handler(void (*add)(const char *what, struct gt_case c), int handler, bool on_gpu)
{
	const int thread = DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD;
	struct gt_case c;

	add("debug mix", shape(GT_MIX, thread, handler, on_gpu));
	add("debug every_builder", shape(GT_BUILD, thread, handler, on_gpu));
	c = shape(GT_WRONG, thread, handler, on_gpu);
	c.run = gt_run_bad_wqe;
	add("debug bad_wqe", c);
}

static void single_thread_cases(void (*add)(const char *what, struct gt_case c), bool on_gpu)
{
	struct gt_case c = shape(GT_SHOW, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, E2E_DB, on_gpu);

	c.blocks = c.threads = c.iters = 1;
	c.run = gt_run_dump;
	add("debug dump", c);
	c.op = GT_UNRUNG;
	c.run = gt_run_never_rung;
	add("debug never_rung", c);
}

void gt_debug_cases(void (*add)(const char *what, struct gt_case c))
{
	static const int handlers[] = { E2E_DB, E2E_PROXY, E2E_NO_DBR, E2E_BF };

	for (int scope = 0; scope < 3; scope++)
		add("debug put", shape(GT_PUT, scope, handlers[scope], false));
	for (int h = 0; h < 4; h++)
		by_handler(add, handlers[h], false);
	by_handler(add, E2E_DB, true);
	single_thread_cases(add, false);
	single_thread_cases(add, true);
}
