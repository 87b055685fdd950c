/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Queues of an export: where they are, and their part of the device struct. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"
#include "qp/export/export.h"

enum doca_gpu_mem_type gdk_queue_mem_type(void)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	const char *env = getenv("GDAKI_QUEUE_MEM");

	if (!env || !*env || !strcmp(env, "gpu"))
		return DOCA_GPU_MEM_TYPE_GPU;
	if (!strcmp(env, "cpu_gpu"))
		return DOCA_GPU_MEM_TYPE_CPU_GPU;
	if (!atomic_flag_test_and_set(&said))
		gdk_warn("ignoring GDAKI_QUEUE_MEM=\"%s\" (expected \"gpu\" or \"cpu_gpu\"), using "
			 "\"gpu\"",
			 env);
	return DOCA_GPU_MEM_TYPE_GPU;
}

/* If the CPU can access the memory, accesses need fences at system scope: the memory may be host
 * memory, or a CPU thread may read it. */
bool gdk_export_on_host(const doca_gpu_t *umem_gpu, doca_gpu_t *gpu, const void *addr)
{
	return !umem_gpu || gdk_gpu_cpu_ptr(gpu, addr);
}

struct gdk_export_queue gdk_export_sq(struct gdk_export *x)
{
	return (struct gdk_export_queue){ .dev = &x->dev,
					  .cq = x->cq,
					  .state = x->q.state,
					  .dev_at = x->dev_at,
					  .flags = x->state_flags,
					  .depth = x->q.pub.qp->sq_num };
}

struct gdk_export_queue gdk_export_rq(struct gdk_export *x)
{
	return (struct gdk_export_queue){ .dev = &x->rq.dev,
					  .cq = x->rq.cq,
					  .state = x->rq.state,
					  .dev_at = x->rq.dev_at,
					  .flags = x->rq.flags,
					  .depth = x->q.pub.qp->rq_num };
}

size_t gdk_export_bytes(uint32_t sq_num, uint32_t rq_num)
{
	size_t bytes = gdk_dev_struct_at(sq_num) + sizeof(struct doca_gpu_dev_verbs_qp);

	if (!rq_num)
		return bytes;
	return gdk_align_up(bytes, GDK_STATE_LINE) + gdk_export_bytes(rq_num, 0);
}

enum doca_gpu_dev_verbs_mem_type gdk_dev_mem_type(bool host)
{
	return host ? DOCA_GPUNETIO_VERBS_MEM_TYPE_HOST : DOCA_GPUNETIO_VERBS_MEM_TYPE_GPU;
}

void gdk_export_fill_cq(const struct doca_verbs_cq_t *cq, doca_gpu_t *gpu, void *state,
			struct doca_gpu_dev_verbs_cq *out)
{
	out->cqe_daddr = cq->buf;
	out->cq_num = cq->cqn;
	out->cqe_num = cq->cqe_num;
	out->cqe_mask = cq->cqe_num - 1;
	out->cqe_size = DOCA_GPUNETIO_VERBS_CQE_SIZE;
	out->dbrec = cq->dbrec;
	out->mem_type = gdk_dev_mem_type(gdk_export_on_host(cq->gpu, gpu, cq->buf));
	out->gdk_state = state;
}
