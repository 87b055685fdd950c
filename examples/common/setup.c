/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Prepares a run on both sides: creates the queue pairs that the client requests, registers the
 * payload, connects each queue pair to that of the peer, and describes all to the kernel.
 */
#include <stdlib.h>
#include <string.h>

#include "session.h"

#define BATCH_MAX  16 /* maximum number of messages after which a thread waits */
#define QUEUES_MAX 1024

uint64_t ex_payload_bytes(const struct ex_program *p, const struct ex_options *opt, size_t data)
{
	uint64_t area = (p->pingpong ? 2 : 1) * ((uint64_t)data + EX_AREA_GUARD);

	return opt->queues * (area + 2 * (sizeof(uint64_t) * opt->threads + EX_AREA_ALIGN));
}

/* ---- agreement ---- */

static int send_setup(struct ex_session *s, size_t data)
{
	struct ex_msg m = { .type = EX_MSG_SETUP, .num = data };

	m.arg[0] = s->opt.queues;
	m.arg[1] = s->opt.threads;
	m.arg[2] = s->opt.blocks;
	return ex_msg_send(&s->conn, &m);
}

static int recv_setup(struct ex_session *s, size_t *data)
{
	struct ex_options *opt = &s->opt;
	struct ex_msg m;

	if (ex_msg_recv(&s->conn, &m, EX_MSG_SETUP, NULL, "for its parameters"))
		return -1;
	opt->queues = m.arg[0];
	opt->threads = m.arg[1];
	opt->blocks = m.arg[2];
	*data = m.num;
	if (!opt->queues || opt->queues > QUEUES_MAX || !opt->threads || opt->threads > 1u << 16 ||
	    !opt->blocks || opt->threads % opt->blocks || !m.num || m.num > EX_PAYLOAD_MAX ||
	    ex_payload_bytes(s->program, opt, m.num) > EX_PAYLOAD_MAX)
		return ex_error("the client requests an invalid transfer");
	return 0;
}

/* ---- memory ---- */

static int alloc(struct ex_session *s, size_t len, struct ex_memory *m)
{
	if (ex_check(doca_gpu_mem_alloc(s->ep.gpu, len, 4096, DOCA_GPU_MEM_TYPE_CPU_GPU, &m->gpu,
					&m->cpu),
		     "memory of the kernel"))
		return -1;
	memset(m->cpu, 0, len);
	return 0;
}

static void release(struct ex_session *s, struct ex_memory *m)
{
	if (m->gpu)
		ex_check(doca_gpu_mem_free(s->ep.gpu, m->gpu), "free memory of the kernel");
	*m = (struct ex_memory){ 0 };
}

static int alloc_job(struct ex_session *s)
{
	const uint32_t queues = s->opt.queues, threads = s->opt.threads;
	const bool latency = s->program->kind == EX_LATENCY;

	if (alloc(s, queues * sizeof(struct ex_dev_queue), &s->queues) ||
	    alloc(s, (size_t)queues * threads * sizeof(int), &s->status) ||
	    alloc(s, sizeof(double), &s->tick) ||
	    (latency && alloc(s, EX_CHUNK_MAX * sizeof(uint32_t), &s->samples)))
		return -1;
	s->job = (struct ex_job){
		.queues = s->queues.gpu,
		.num_queues = queues,
		.blocks = s->opt.blocks,
		.threads = threads,
		.warp = s->opt.warp,
		.client = s->opt.server != NULL,
		.handler = s->ep.qp->nic_handler,
		.samples = s->samples.gpu,
		.ns_per_tick = s->tick.gpu,
		.status = s->status.gpu,
	};
	return 0;
}

/* ---- queue pairs ---- */

static int connect_all(struct ex_session *s)
{
	struct ex_dev_queue *dev = s->queues.cpu;

	for (uint32_t k = 0; k < s->ep.num_queues; k++)
		if (ex_queue_connect(&s->ep, k, &s->peers[k]) ||
		    ex_queue_device(&s->ep, k, &s->peers[k], &dev[k]))
			return -1;
	return 0;
}

/* Sends CONNECTED, and waits until the peer has connected its queue pairs, too. */
static int barrier(struct ex_session *s)
{
	struct ex_msg m = { .type = EX_MSG_CONNECTED };

	if (ex_msg_send(&s->conn, &m))
		return -1;
	return ex_msg_recv(&s->conn, &m, EX_MSG_CONNECTED, NULL, "for its queue pairs");
}

/* A kernel is needed by the client, and by a server that launches it. Its library also copies GPU
 * memory. */
static int open_grid(struct ex_session *s)
{
	const struct ex_grid_ops *grid;

	if (!s->opt.server && !ex_server_launches(s->program) && !s->opt.payload_gpu)
		return 0;
	grid = ex_grid_get(s->opt.gpu);
	if (!grid || grid->open(s->opt.gpu))
		return -1;
	s->grid = grid;
	return 0;
}

int ex_setup(struct ex_session *s, size_t data)
{
	if (open_grid(s) || (s->opt.server ? send_setup(s, data) : recv_setup(s, &data)))
		return -1;
	s->peers = calloc(s->opt.queues, sizeof(*s->peers));
	if (!s->peers)
		return ex_error("out of memory");
	if (ex_queues_create(&s->ep, &s->opt) ||
	    ex_areas_alloc(&s->ep, data, s->opt.threads, s->program->pingpong,
			   s->opt.payload_gpu) ||
	    alloc_job(s) || ex_msg_swap_peers(&s->conn, &s->ep, s->peers) || connect_all(s))
		return -1;
	return barrier(s);
}

uint32_t ex_batch(const struct ex_session *s)
{
	const struct ex_program *p = s->program;
	/* A signal needs a second WQE. Receives are posted one batch ahead. */
	uint32_t wqes = p->signals || p->counter || p->receives ? 2 : 1;
	uint32_t batch = EX_QUEUE_SIZE / wqes / s->job.threads;

	batch = batch > BATCH_MAX ? BATCH_MAX : batch < 1 ? 1 : batch;
	return batch < s->shape.window ? batch : s->shape.window;
}

void ex_teardown(struct ex_session *s)
{
	/* After an error of the peer, a kernel can still use the memory that is freed here. */
	if (s->grid && s->job.iters && !s->hung && !s->grid->done())
		(void)ex_end_kernel(s);
	if (!s->hung) {
		release(s, &s->queues);
		release(s, &s->status);
		release(s, &s->samples);
		release(s, &s->tick);
		if (s->grid)
			s->grid->close();
		ex_endpoint_close(&s->ep);
	}
	free(s->peers);
	ex_disconnect(&s->conn);
}
