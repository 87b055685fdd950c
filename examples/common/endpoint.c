/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * One side of an example: opens the GPU and the NIC (nic.c), creates high-level queue pairs, and
 * registers the payload. connect.c connects the queue pairs. Both only use the public API, so
 * applications can copy them. The exchange with the peer is in exchange.c.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

#define PAYLOAD_ALIGN 4096
#define PAYLOAD_ACCESS \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

static bool handler_may_be_proxy(const struct ex_options *opt)
{
	return opt->handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY ||
	       opt->handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO ||
	       opt->dbr_mode == DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_SW_EMULATED;
}

static bool needs_service(const struct doca_gpu_verbs_qp_hl *qp)
{
	return qp->nic_handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY ||
	       qp->send_dbr_mode_ext == DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_SW_EMULATED;
}

static int stop_service(struct ex_endpoint *ep)
{
	doca_gpu_verbs_service_t service = ep->service;

	ep->service = NULL;
	return service ? ex_check(doca_gpu_verbs_destroy_service(service), "destroy proxy service")
		       : 0;
}

static int monitor(struct ex_endpoint *ep, struct doca_gpu_verbs_qp_hl *qp)
{
	return ex_check(doca_gpu_verbs_service_monitor_qp(ep->service, qp->qp_gverbs),
			"proxy service, monitor");
}

/* A CPU_PROXY queue pair needs a CPU thread that rings. A proxy service has such threads. AUTO may
 * choose CPU_PROXY, too, and the library logs a warning if no service runs then. Adds the queue
 * pairs to the service, or stops a service that they do not need. */
static int use_service(struct ex_endpoint *ep)
{
	if (!ep->service || !needs_service(ep->queues[0].qp))
		return stop_service(ep);
	for (uint32_t k = 0; k < ep->num_queues; k++) {
		const struct ex_queue *q = &ep->queues[k];

		if (monitor(ep, q->qp) || (q->companion && monitor(ep, q->companion)))
			return -1;
	}
	return 0;
}

static int create_queue(struct ex_endpoint *ep, const struct ex_options *opt, struct ex_queue *q)
{
	const uint32_t flags = opt->queues_host ? GDK_QP_HL_QUEUES_ON_HOST : 0;
	const struct doca_gpu_verbs_qp_init_attr_hl attr = {
		.gpu_dev = ep->gpu,
		.net_dev = ep->dev,
		.ibpd = ep->pd,
		.sq_nwqe = EX_QUEUE_SIZE,
		.nic_handler = opt->handler,
		.mreg_type = DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_DEFAULT,
		.send_dbr_mode_ext = opt->dbr_mode,
	};
	const struct gdk_qp_rq_attr_hl rq = { .rq_nwqe = EX_QUEUE_SIZE };

	if (opt->receive_queues) {
		if (ex_check(gdk_verbs_create_qp_rq_hl(&attr, &rq, flags, &q->qp), "queue pair"))
			return -1;
	} else if (!opt->companions) {
		if (ex_check(gdk_verbs_create_qp_hl(&attr, flags, &q->qp), "queue pair"))
			return -1;
	} else {
		if (ex_check(gdk_verbs_create_qp_group_hl(&attr, flags, &q->group),
			     "queue pair with companion"))
			return -1;
		q->qp = &q->group->qp_main;
		q->companion = &q->group->qp_companion;
		if (ex_check(doca_verbs_qp_get_qpn(q->companion->qp, &q->companion_qpn),
			     "number of the companion queue pair"))
			return -1;
	}
	return ex_check(doca_verbs_qp_get_qpn(q->qp->qp, &q->qpn), "queue pair number");
}

int ex_queues_create(struct ex_endpoint *ep, const struct ex_options *opt)
{
	uint32_t num = opt->queues ? opt->queues : 1;

	ep->queues = calloc(num, sizeof(*ep->queues));
	if (!ep->queues)
		return ex_error("out of memory");
	ep->num_queues = num;
	ep->companions_cross = opt->companions_cross;
	if (handler_may_be_proxy(opt) &&
	    ex_check(doca_gpu_verbs_create_service(&ep->service), "proxy service"))
		return -1;
	for (uint32_t k = 0; k < num; k++)
		if (create_queue(ep, opt, &ep->queues[k]))
			return -1;
	ep->qp = ep->queues[0].qp;
	ep->local.qpn = ep->queues[0].qpn;
	return use_service(ep);
}

int ex_device_open(struct ex_endpoint *ep, const struct ex_options *opt)
{
	struct timespec ts;

	*ep = (struct ex_endpoint){ 0 };
	clock_gettime(CLOCK_REALTIME, &ts);
	ep->local.psn = (uint32_t)(ts.tv_nsec ^ getpid() << 8) & 0xffffff;
	if (ex_check(doca_gpu_create(opt->gpu, &ep->gpu), opt->gpu) || ex_nic_open(ep, opt)) {
		ex_endpoint_close(ep);
		return -1;
	}
	return 0;
}

int ex_endpoint_open(struct ex_endpoint *ep, const struct ex_options *opt)
{
	if (ex_device_open(ep, opt))
		return -1;
	if (ex_queues_create(ep, opt)) {
		ex_endpoint_close(ep);
		return -1;
	}
	return 0;
}

/* ---- payload ---- */

static struct ibv_mr *register_dmabuf(struct ex_endpoint *ep)
{
	struct ex_payload *pl = &ep->payload;
	struct ibv_mr *mr;
	int fd;

	if (doca_gpu_get_dmabuf_fd(ep->gpu, pl->gpu_ptr, pl->len, &fd) != DOCA_SUCCESS)
		return NULL;
	mr = ibv_reg_dmabuf_mr(ep->pd, 0, pl->len, pl->addr, fd, PAYLOAD_ACCESS);
	close(fd);
	return mr;
}

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

int ex_payload_alloc(struct ex_endpoint *ep, size_t len, bool in_gpu)
{
	enum doca_gpu_mem_type type = in_gpu ? DOCA_GPU_MEM_TYPE_GPU : DOCA_GPU_MEM_TYPE_CPU_GPU;
	struct ex_payload *pl = &ep->payload;
	void *gpu_ptr, *cpu_ptr = NULL;

	pl->len = round_up(len, PAYLOAD_ALIGN);
	if (ex_check(doca_gpu_mem_alloc(ep->gpu, pl->len, PAYLOAD_ALIGN, type, &gpu_ptr,
					in_gpu ? NULL : &cpu_ptr),
		     "payload memory"))
		return -1;
	pl->gpu_ptr = gpu_ptr;
	pl->cpu_ptr = cpu_ptr;
	pl->addr = (uintptr_t)(in_gpu ? gpu_ptr : cpu_ptr);
	if (in_gpu)
		pl->mr = register_dmabuf(ep);
	if (!pl->mr)
		pl->mr = ibv_reg_mr(ep->pd, (void *)(uintptr_t)pl->addr, pl->len, PAYLOAD_ACCESS);
	if (!pl->mr)
		return ex_error("cannot register payload of %zu bytes in %s memory: %s", pl->len,
				in_gpu ? "GPU" : "host", strerror(errno));
	ep->local.addr = pl->addr;
	ep->local.rkey = pl->mr->rkey;
	return 0;
}

int ex_areas_alloc(struct ex_endpoint *ep, size_t data, uint32_t threads, bool separate_recv,
		   bool in_gpu)
{
	struct ex_area *a = &ep->area;
	size_t flags = round_up(threads * sizeof(uint64_t), EX_AREA_ALIGN);

	data = round_up(data + EX_AREA_GUARD, EX_AREA_ALIGN);
	a->recv = separate_recv ? data : 0;
	a->flags = a->recv + data;
	a->prev = a->flags + flags;
	a->stride = a->prev + flags;
	return ex_payload_alloc(ep, a->stride * ep->num_queues, in_gpu);
}

void ex_queue_local(const struct ex_endpoint *ep, uint32_t queue, struct ex_peer *peer)
{
	*peer = ep->local;
	peer->qpn = ep->queues[queue].qpn;
	peer->companion_qpn = ep->queues[queue].companion_qpn;
	peer->addr += queue * ep->area.stride;
}

int ex_queue_device(const struct ex_endpoint *ep, uint32_t queue, const struct ex_peer *peer,
		    struct ex_dev_queue *dev)
{
	const struct ex_queue *q = &ep->queues[queue];
	const struct ex_area *a = &ep->area;
	uint8_t *base = ep->payload.gpu_ptr + queue * a->stride;
	uint64_t addr = ep->payload.addr + queue * a->stride;

	*dev = (struct ex_dev_queue){
		.data = base,
		.recv = base + a->recv,
		.data_addr = addr,
		.peer_addr = peer->addr + a->recv,
		.flags = (uint64_t *)(base + a->flags),
		.prev = (uint64_t *)(base + a->prev),
		.flags_addr = addr + a->flags,
		.prev_addr = addr + a->prev,
		.peer_flags_addr = peer->addr + a->flags,
		.key = htobe32(ep->payload.mr->lkey),
		.peer_key = htobe32(peer->rkey),
	};
	if (ex_check(doca_gpu_verbs_get_qp_dev(q->qp->qp_gverbs, &dev->qp), "device queue pair"))
		return -1;
	if (!q->companion)
		return 0;
	return ex_check(doca_gpu_verbs_get_qp_dev(q->companion->qp_gverbs, &dev->companion),
			"device queue pair of the companion");
}

/* ---- close ---- */

/* Returns 0 if all queue pairs were destroyed. */
static int destroy_queues(struct ex_endpoint *ep)
{
	int err = 0;

	for (uint32_t k = 0; k < ep->num_queues; k++) {
		struct ex_queue *q = &ep->queues[k];

		if (q->group)
			err |= ex_check(doca_gpu_verbs_destroy_qp_group_hl(q->group),
					"destroy queue pair with companion");
		else if (q->qp)
			err |= ex_check(doca_gpu_verbs_destroy_qp_hl(q->qp), "destroy queue pair");
	}
	free(ep->queues);
	return err;
}

static int free_payload(struct ex_payload *pl, struct doca_gpu *gpu)
{
	if (pl->mr && ibv_dereg_mr(pl->mr))
		return ex_error("cannot deregister payload: %s", strerror(errno));
	if (pl->gpu_ptr)
		return ex_check(doca_gpu_mem_free(gpu, pl->gpu_ptr), "free payload memory");
	return 0;
}

static int close_nic(struct ex_endpoint *ep)
{
	if (ep->dev && ex_check(doca_verbs_dev_close(ep->dev), "close device"))
		return -1;
	if (ep->pd && ibv_dealloc_pd(ep->pd))
		return ex_error("cannot free the protection domain: %s", strerror(errno));
	if (ep->ctx && ibv_close_device(ep->ctx))
		return ex_error("cannot close the RDMA device: %s", strerror(errno));
	return 0;
}

/* Frees everything in reverse order. The service must be destroyed first, because it monitors the
 * queue pairs. If an object cannot be destroyed, the objects that it uses are kept until the
 * process exits: they must not be freed while the object exists. */
void ex_endpoint_close(struct ex_endpoint *ep)
{
	int err = stop_service(ep);

	if (!err)
		err = destroy_queues(ep);
	err |= free_payload(&ep->payload, ep->gpu);
	if (!err && !close_nic(ep) && ep->gpu)
		ex_check(doca_gpu_destroy(ep->gpu), "destroy GPU");
	*ep = (struct ex_endpoint){ 0 };
}
