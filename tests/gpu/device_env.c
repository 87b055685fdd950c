/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* What every case of the GPU test needs: NIC, GPU, payload, queue pairs and launches
 * with a time limit. device_host.h describes the functions. */
#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "device_host.h"

const struct e2e_path gt_good_path = { .ack_timeout = 14, .retry_cnt = 7 };

static char complaint[400];

int gt_complain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(complaint, sizeof(complaint), format, args);
	va_end(args);
	return -1;
}

const char *gt_complaint(void)
{
	return complaint;
}

/* ---- memory ---- */

static void region_open(struct gt_env *env, struct gt_region *r, enum doca_gpu_mem_type type)
{
	const int access = E2E_REMOTE | IBV_ACCESS_REMOTE_ATOMIC;
	void *addr;

	E2E_REQUIRE(!doca_gpu_mem_alloc(env->nic.gpu, GT_BYTES, 65536, type, &r->gpu, &r->cpu));
	addr = r->cpu ? r->cpu : r->gpu;
	r->nic = (uintptr_t)addr;
	E2E_REQUIRE(r->mr = ibv_reg_mr(env->nic.pd, addr, GT_BYTES, access));
}

static void host_array(struct gt_env *env, size_t bytes, void *cpu, void *gpu)
{
	E2E_REQUIRE(!doca_gpu_mem_alloc(env->nic.gpu, bytes, 4096, DOCA_GPU_MEM_TYPE_CPU_GPU,
					(void **)gpu, (void **)cpu));
}

void gt_env_open(struct gt_env *env, const char *pci)
{
	memset(env, 0, sizeof(*env));
	E2E_REQUIRE(!gt_gpu_open(pci));
	e2e_open_on(&env->nic, pci);
	region_open(env, &env->host, DOCA_GPU_MEM_TYPE_CPU_GPU);
	region_open(env, &env->dev, DOCA_GPU_MEM_TYPE_GPU);
	E2E_REQUIRE(env->image = malloc(GT_BYTES));
	host_array(env, GT_MAX_THREADS * sizeof(int), &env->status, &env->status_gpu);
}

/* ---- queue pairs ---- */

static struct doca_gpu_verbs_qp_init_attr_hl attr_of(struct gt_env *env, const struct gt_case *c)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = {
		.gpu_dev = env->nic.gpu,
		.net_dev = env->nic.dev,
		.ibpd = env->nic.pd,
		.sq_nwqe = (uint16_t)c->depth,
		.nic_handler = c->handler,
	};

	if (c->handler == E2E_NO_DBR)
		attr.send_dbr_mode_ext = DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW;
	return attr;
}

/* Creates QP number qps->num together with its companion. */
static void group_open(struct gt_env *env, struct gt_qps *qps, const struct gt_case *c)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = attr_of(env, c);
	const uint32_t i = qps->num;

	E2E_REQUIRE(!doca_gpu_verbs_create_qp_group_hl(&attr, &qps->group[i]));
	e2e_qp_adopt(&env->nic, &qps->qp[i], &qps->group[i]->qp_main);
	e2e_qp_adopt(&env->nic, &qps->companion[i], &qps->group[i]->qp_companion);
}

/* Creates QP number qps->num with a receive queue as deep as the send queue. */
static void receiver_open(struct gt_env *env, struct gt_qps *qps, const struct gt_case *c)
{
	const struct gdk_qp_rq_attr_hl rq = { .rq_nwqe = c->depth };
	struct doca_gpu_verbs_qp_init_attr_hl attr = attr_of(env, c);
	struct doca_gpu_verbs_qp_hl *hl;

	E2E_REQUIRE(!gdk_verbs_create_qp_rq_hl(&attr, &rq, 0, &hl));
	e2e_qp_adopt(&env->nic, &qps->qp[qps->num], hl);
}

void gt_qps_open(struct gt_env *env, struct gt_qps *qps, const struct gt_case *c)
{
	E2E_REQUIRE(!setenv("GDAKI_QUEUE_MEM", c->queues_on_gpu ? "gpu" : "cpu_gpu", 1));
	E2E_REQUIRE(c->nqps && c->nqps <= GT_QPS);
	memset(qps, 0, sizeof(*qps));
	for (qps->num = 0; qps->num < c->nqps; qps->num++)
		if (c->counted)
			group_open(env, qps, c);
		else if (gt_receives(c->op))
			receiver_open(env, qps, c);
		else
			E2E_REQUIRE(!e2e_qp_try(&env->nic, &qps->qp[qps->num], c->handler, c->depth,
						c->collapsed));
}

void gt_connect_to(struct gt_env *env, struct e2e_qp *qp, uint32_t qpn, struct e2e_path path)
{
	/* A send may precede the doorbell of its receive: retry until that comes. */
	E2E_REQUIRE(!e2e_connect_rnr(&env->nic, qp->hl->qp, &env->nic.gid, qpn, path, 7));
	if (qp->hl->nic_handler == E2E_PROXY && !qp->has_proxy)
		e2e_proxy_begin(qp);
}

void gt_qps_connect(struct gt_env *env, struct gt_qps *qps, struct e2e_path path)
{
	for (uint32_t i = 0; i < qps->num; i++) {
		gt_connect_to(env, &qps->qp[i], qps->qp[i].qpn, path);
		if (qps->group[i])
			gt_connect_to(env, &qps->companion[i], qps->companion[i].qpn, path);
	}
}

void gt_qps_close(struct gt_qps *qps)
{
	for (uint32_t i = 0; i < qps->num; i++) {
		if (!qps->group[i]) {
			e2e_qp_close(&qps->qp[i]);
			continue;
		}
		e2e_proxy_end(&qps->qp[i]);
		e2e_proxy_end(&qps->companion[i]);
		E2E_REQUIRE(!doca_gpu_verbs_destroy_qp_group_hl(qps->group[i]));
	}
}

/* ---- launches ---- */

int gt_prepare(struct gt_env *env, const struct gt_case *c, const struct gt_qps *qps,
	       struct gt_job *job)
{
	const struct gt_region *r = c->payload_on_gpu ? &env->dev : &env->host;
	static uint32_t seed;

	*job = (struct gt_job){
		.nqps = c->nqps,
		.by_thread = c->by_thread,
		.op = c->op,
		.mode = c->mode,
		.scope = c->scope,
		.handler = c->handler,
		.wait = c->wait,
		.code_opt = c->code_opt,
		.blocks = c->blocks,
		.threads = c->threads,
		.iters = c->iters,
		.size = c->size,
		.batch = c->batch,
		.seed = ++seed,
		.varied = c->varied,
		.idle = c->idle,
		.depth = c->depth,
		.debug = c->debug,
		.lkey_be = htobe32(r->mr->lkey),
		.rkey_be = htobe32(r->mr->rkey),
		.nic = r->nic,
		.gpu = r->gpu,
		.src = 0,
		.dst = GT_PART,
		.old = 2 * GT_PART,
		.counters = 3 * GT_PART,
		.status = env->status_gpu,
	};
	for (uint32_t i = 0; i < c->nqps; i++) {
		job->qp[i] = qps->qp[i].dev;
		job->companion[i] = qps->companion[i].dev;
	}
	E2E_REQUIRE(c->blocks * c->threads <= GT_MAX_THREADS);
	E2E_REQUIRE((uint64_t)c->blocks * c->threads * c->iters * c->size < GT_PART);
	memset(env->image, 0, GT_BYTES);
	memset(env->image + job->old, 0xff, GT_PART);
	if (c->op == GT_CAS)
		for (uint32_t i = 0; i < GT_COUNTERS / 8; i++)
			memcpy(env->image + job->counters + 8 * i, &(uint64_t){ i }, 8);
	return gt_gpu_copy(r->gpu, env->image, GT_BYTES)
		       ? gt_complain("copying the payload to the GPU failed")
		       : 0;
}

int gt_launch(struct gt_env *env, const struct gt_job *job)
{
	for (uint32_t i = 0; i < job->blocks * job->threads; i++)
		__atomic_store_n(&env->status[i], GT_RUNNING, __ATOMIC_SEQ_CST);
	return gt_gpu_launch(job) ? gt_complain("the launch failed") : 0;
}

static void count_slots(const struct gt_qps *qps, uint64_t *complete, uint64_t *reserved)
{
	struct gdk_qp_counters n;

	*complete = *reserved = 0;
	for (uint32_t i = 0; i < qps->num; i++) {
		if (gdk_verbs_qp_get_counters(qps->qp[i].hl->qp_gverbs, &n))
			continue;
		*complete += n.completions;
		*reserved += n.wqes_reserved;
	}
}

/* Waits until the kernel ends, or has made no progress for this time. */
static int wait_for(const struct gt_qps *qps, uint64_t seconds)
{
	struct bound b = bound_begin(0, GT_ON_GPU);
	const struct timespec nap = { 0, 20000 };
	uint64_t complete = 0, reserved = 0;
	int done;

	while (!(done = gt_gpu_done())) {
		nanosleep(&nap, NULL);
		if (!bound_passed(&b, complete + reserved, seconds * 1000000000))
			continue;
		count_slots(qps, &complete, &reserved);
		if (bound_passed(&b, complete + reserved, seconds * 1000000000))
			break;
	}
	return done;
}

static void abort_qp(struct gt_qps *qps, uint32_t i)
{
	E2E_REQUIRE(!gdk_verbs_qp_abort(qps->qp[i].hl->qp_gverbs));
	if (qps->group[i])
		E2E_REQUIRE(!gdk_verbs_qp_abort(qps->companion[i].hl->qp_gverbs));
}

int gt_wait(struct gt_qps *qps)
{
	int done = wait_for(qps, GT_BOUND_S);
	uint64_t complete, reserved;

	if (done > 0)
		return 0;
	if (done < 0) {
		gt_complain("the kernel failed");
		gt_die();
	}
	count_slots(qps, &complete, &reserved);
	for (uint32_t i = 0; i < qps->num; i++)
		abort_qp(qps, i);
	if (wait_for(qps, GT_GRACE_S) > 0)
		return gt_complain("no progress for %d s, %lu of %lu slots complete; ended by an "
				   "abort",
				   GT_BOUND_S, complete, reserved);
	gt_complain("no progress for %d s, and an abort did not end it", GT_BOUND_S);
	gt_die();
}

int gt_run(struct gt_env *env, struct gt_qps *qps, const struct gt_job *job)
{
	return gt_launch(env, job) || gt_wait(qps) ? -1 : 0;
}
