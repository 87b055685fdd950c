/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Exports a queue pair to a GPU: chooses the doorbell strategy, builds the device struct and
 * the state block in host memory, and copies them to memory that the GPU can access. A QP has
 * at most one export at a time. Arrays of device structs are in dev_struct.c, the reset of an
 * export in reset.c.
 */
#include "qp/export/export.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "core/gpu/gpu_priv.h"
#include "core/log/log.h"
#include "core/sdk/sdk.h"
#include "device/gdk/state.h"

#define H(name)	   DOCA_GPUNETIO_VERBS_NIC_HANDLER_##name
#define MODE(name) DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_##name

_Static_assert(GDK_DEV_SKEW + offsetof(struct doca_gpu_dev_verbs_qp, sq_num_shift8_be) ==
		       GDK_STATE_LINE,
	       "the fields that every post reads begin on a cache line");

static doca_error_t check_mode(const struct doca_verbs_qp_t *qp,
			       enum doca_gpu_dev_verbs_nic_handler h,
			       enum doca_gpu_verbs_send_dbr_mode_ext mode)
{
	const char *why = NULL;

	if ((mode == MODE(NO_DBR_HW)) != qp->no_dbr)
		why = "send_dbr_mode_ext is not the one with which the QP was created";
	else if (h == H(GPU_SM_NO_DBR) && mode == MODE(VALID_DBR))
		why = "nic_handler GPU_SM_NO_DBR does not allow send_dbr_mode_ext VALID_DBR";
	if (!why)
		return DOCA_SUCCESS;
	gdk_err("QP 0x%x: cannot export it: %s (send_dbr_mode_ext %d, nic_handler %s)", qp->qpn,
		why, mode, gdk_handler_name(h));
	return DOCA_ERROR_INVALID_VALUE;
}

static doca_error_t check_queues(doca_gpu_t *gpu, const struct doca_verbs_qp_t *qp,
				 const struct doca_verbs_cq_t *cq)
{
	const char *why = NULL;

	if (!qp->sq_num || cq != qp->send_cq)
		why = "cq_sq is not the send CQ with which the QP was created";
	else if ((qp->gpu && qp->gpu != gpu) || (cq->gpu && cq->gpu != gpu))
		why = "its queues are in memory of another GPU than gpu_dev";
	if (why) {
		gdk_err("QP 0x%x: cannot export it: %s", qp->qpn, why);
		return DOCA_ERROR_INVALID_VALUE;
	}
	if (!cq->collapsed && cq->cqe_num < qp->sq_num) {
		gdk_err("QP 0x%x: cannot export it: a CQ of %u entries is too small for a send "
			"queue of %u slots",
			qp->qpn, cq->cqe_num, qp->sq_num);
		return DOCA_ERROR_INVALID_VALUE;
	}
	if (!gdk_gpu_is_host(gpu) && (qp->own_umem || cq->own_umem)) {
		gdk_err("QP 0x%x: cannot export it: its %s is in internal host memory, which GPU "
			"%s cannot access; use an external umem",
			qp->qpn, qp->own_umem ? "queue" : "CQ", gdk_gpu_name(gpu));
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	return DOCA_SUCCESS;
}

static uint32_t *dbrec_cpu(const struct doca_verbs_qp_t *qp, doca_gpu_t *gpu)
{
	uint32_t *word = &qp->dbrec[1];

	return qp->umem_dbr->gpu ? gdk_gpu_cpu_ptr(gpu, word) : word;
}

/* Returns whether GPU threads need fences at system scope. With a CPU proxy the GPU does not write
 * the DBREC, and the proxy's counter is always written at system scope. */
static bool any_on_host(const struct gdk_export *x)
{
	const struct doca_verbs_qp_t *qp = x->q.pub.qp;
	doca_gpu_t *gpu = x->q.pub.gpu_dev;

	if (gdk_gpu_is_host(gpu) || x->q.reg_on_host ||
	    gdk_export_on_host(qp->gpu, gpu, qp->sq_buf) ||
	    gdk_export_on_host(x->cq->gpu, gpu, x->cq->buf))
		return true;
	return !x->q.pub.cpu_proxy && gdk_export_on_host(qp->umem_dbr->gpu, gpu, qp->dbrec);
}

/* Returns whether a GPU polls for completions in host memory, over PCIe. */
static bool polls_host_memory(const struct gdk_export *x)
{
	doca_gpu_t *gpu = x->q.pub.gpu_dev;

	return !gdk_gpu_is_host(gpu) && (!x->cq->gpu || gdk_gpu_host_mem(gpu, x->cq->buf) ||
					 gdk_gpu_host_mem(gpu, x->q.state));
}

static uint32_t state_flags(const struct gdk_export *x)
{
	uint32_t flags = 0;

	if (gdk_gpu_is_host(x->q.pub.gpu_dev))
		flags |= GDK_QPF_HOST_EXEC;
	if (x->cq->collapsed)
		flags |= GDK_QPF_COLLAPSED;
	if (any_on_host(x))
		flags |= GDK_QPF_SYS_SCOPE;
	if (polls_host_memory(x))
		flags |= GDK_QPF_HOST_LOOKS;
	if (x->dev.nic_handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF)
		flags |= GDK_QPF_BLUEFLAME;
	if (x->q.pub.qp->ethernet)
		flags |= GDK_QPF_ETHERNET;
	if (x->q.pub.send_dbr_mode_ext == MODE(NO_DBR_SW_EMULATED))
		flags |= GDK_QPF_RUNG_READ;
	return flags;
}

doca_error_t gdk_export_write_queue(struct gdk_export *x, const struct gdk_export_queue *q,
				    uint64_t cqe_ci)
{
	size_t bytes = q->dev_at + sizeof(*q->dev);
	struct gdk_qp_state *image = calloc(1, bytes);
	doca_error_t err;

	if (!image) {
		gdk_err("QP 0x%x: no memory for an image of the state block", x->q.pub.qp->qpn);
		return DOCA_ERROR_NO_MEMORY;
	}
	gdk_qp_state_format(image, q->depth, q->flags);
	gdk_qp_state_bind(image, q->dev);
	image->cqe_ci = cqe_ci;
	image->wait_limit_ns = x->wait_limit_ns;
	gdk_watch_bind(x, image);
	memcpy((uint8_t *)image + q->dev_at, q->dev, sizeof(*q->dev));
	err = gdk_gpu_write(x->q.pub.gpu_dev, q->state, image, bytes);
	free(image);
	return err;
}

/* Writes the state blocks of a new export. */
static doca_error_t write_queues(struct gdk_export *x)
{
	const struct gdk_export_queue sq = gdk_export_sq(x), rq = gdk_export_rq(x);
	doca_error_t err = rq.cq ? gdk_export_write_queue(x, &rq, 0) : DOCA_SUCCESS;

	return err == DOCA_SUCCESS ? gdk_export_write_queue(x, &sq, 0) : err;
}

/*
 * Allocates the state blocks and the device structs, unless place is given: in GPU memory, also if
 * the queues are in host memory. The NIC does not access them, and accesses of many threads to one
 * line of host memory take a microsecond each, one after the other. NO_DBR_SW_EMULATED needs memory
 * that the CPU can read, because a CPU thread polls `rung` in the state block.
 */
static doca_error_t alloc_state(struct gdk_export *x, void *place, uint32_t rq_num)
{
	enum doca_gpu_mem_type kind = DOCA_GPU_MEM_TYPE_GPU;
	void *cpu = NULL;
	doca_error_t err;

	x->dev_at = gdk_dev_struct_at(x->q.pub.qp->sq_num);
	if (place) {
		x->q.state = place;
		return DOCA_SUCCESS;
	}
	if (x->q.pub.send_dbr_mode_ext == MODE(NO_DBR_SW_EMULATED))
		kind = gdk_queue_mem_type() == DOCA_GPU_MEM_TYPE_GPU ? DOCA_GPU_MEM_TYPE_GPU_CPU
								     : DOCA_GPU_MEM_TYPE_CPU_GPU;
	err = doca_gpu_mem_alloc(x->q.pub.gpu_dev, gdk_export_bytes(x->q.pub.qp->sq_num, rq_num),
				 GDK_STATE_LINE, kind, &x->q.state, &cpu);
	x->own_state = err == DOCA_SUCCESS;
	if (err == DOCA_ERROR_NOT_SUPPORTED && kind == DOCA_GPU_MEM_TYPE_GPU_CPU) {
		gdk_err("QP 0x%x: NO_DBR_SW_EMULATED needs a counter that the CPU can read, but "
			"GPU %s has no CPU-readable memory (is GDRCopy installed?)",
			x->q.pub.qp->qpn, gdk_gpu_name(x->q.pub.gpu_dev));
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	return err;
}

/* Fills the device struct, except the members that the strategy sets, such as sq_db. */
static void fill_dev(struct gdk_export *x)
{
	struct doca_gpu_dev_verbs_qp *d = &x->dev;
	const struct doca_verbs_qp_t *qp = x->q.pub.qp;
	uint32_t n8 = qp->qpn << 8;

	d->sq_num = qp->qpn;
	d->sq_num_shift8 = n8;
	d->sq_num_shift8_be = htobe32(n8);
	d->sq_num_shift8_be_1ds = htobe32(n8 | 1);
	d->sq_num_shift8_be_2ds = htobe32(n8 | 2);
	d->sq_num_shift8_be_3ds = htobe32(n8 | 3);
	d->sq_num_shift8_be_4ds = htobe32(n8 | 4);
	d->sq_num_shift8_be_5ds = htobe32(n8 | 5);
	d->sq_wqe_num = (uint16_t)qp->sq_num; /* at most 32768: fits */
	d->sq_wqe_mask = (uint16_t)(qp->sq_num - 1);
	d->sq_wqe_daddr = qp->sq_buf;
	d->sq_dbrec = &qp->dbrec[1];
	d->gdk_state = x->q.state;
	d->mem_type = gdk_dev_mem_type(gdk_export_on_host(qp->gpu, x->q.pub.gpu_dev, qp->sq_buf));
	d->need_mcst = gdk_gpu_needs_dump(x->q.pub.gpu_dev);
	gdk_export_fill_cq(x->cq, x->q.pub.gpu_dev, x->q.state, &d->cq_sq);
}

/* Chooses the strategy, unless that was done before the QP was created. */
static doca_error_t choose(struct gdk_export *x, const struct gdk_export_ask *what)
{
	struct gdk_doorbell_ask ask = {
		.gpu = what->gpu,
		.dev = x->q.dev,
		.uar = x->q.uar,
		.want = what->handler,
		.dbr_mode = what->mode,
		.dbr_mode_stated = true,
		.qp = &x->q.pub,
	};
	doca_error_t err = DOCA_SUCCESS;

	if (what->decision)
		x->q.decision = *what->decision;
	else
		err = gdk_choose_doorbell(&ask, &x->q.decision);
	x->dev.nic_handler = x->q.decision.chosen;
	return err;
}

static struct gdk_export *export_new(const struct gdk_export_ask *what)
{
	struct doca_verbs_qp_t *qp = what->qp;
	struct gdk_export *x = calloc(1, sizeof(*x));

	if (!x) {
		gdk_err("QP 0x%x: no memory to export it", qp->qpn);
		return NULL;
	}
	x->q.pub.gpu_dev = what->gpu;
	x->q.pub.qp = qp;
	x->q.pub.qp_cpu = &x->dev;
	x->q.pub.send_dbr_mode_ext = what->mode;
	x->q.pub.sq_num_shift8_be = htobe32(qp->qpn << 8);
	x->q.qpn = qp->qpn;
	x->q.no_dbr = qp->no_dbr;
	x->q.dev = qp->dev;
	x->q.uar = qp->uar;
	x->q.reg = gdk_qp_db_reg(qp);
	x->q.pub.sq_db = x->q.reg;
	x->cq = what->cq;
	x->wait_limit_ns = GDK_WAIT_LIMIT_NS;
	x->q.pub.sq_dbrec = dbrec_cpu(qp, what->gpu);
	x->q.dbrec_cpu = qp->no_dbr ? NULL : x->q.pub.sq_dbrec;
	pthread_spin_init(&x->q.proxy.step_lock, PTHREAD_PROCESS_PRIVATE);
	return x;
}

static void export_free(struct gdk_export *x)
{
	if (x->own_state)
		(void)doca_gpu_mem_free(x->q.pub.gpu_dev, x->q.state);
	pthread_spin_destroy(&x->q.proxy.step_lock);
	free(x);
}

/* No function of the library updates the consumer index of a CQ, except
 * doca_gpu_dev_verbs_cq_update_dbrec(), which few programs call. */
static void warn_overrun(const struct gdk_export *x, const struct doca_verbs_cq_t *cq)
{
	if (!cq->overrun_ignore)
		gdk_warn("QP 0x%x: CQ 0x%x overruns after %u CQEs, because overrun is disabled: "
			 "enable it with doca_verbs_cq_attr_set_cq_overrun, or consume CQEs with "
			 "doca_gpu_dev_verbs_cq_update_dbrec",
			 x->q.qpn, cq->cqn, cq->cqe_num);
}

/* A wait for sends compares WQE indices of all CQEs, and does not tell receives from sends. */
static void warn_shared_cq(const struct gdk_export *x)
{
	const struct doca_verbs_qp_t *qp = x->q.pub.qp;

	if (qp->recv_cq == x->cq && (qp->rq_num || qp->srq))
		gdk_warn("QP 0x%x: its send CQ 0x%x is also its receive CQ, and a wait for sends "
			 "takes CQEs of receives for CQEs of sends: post no receives, or create "
			 "the QP with a receive CQ of its own",
			 x->q.qpn, x->cq->cqn);
}

/* Marks a CQ as used by an exported QP. */
static doca_error_t take_cq(const struct doca_verbs_qp_t *qp, struct doca_verbs_cq_t *cq)
{
	if (!atomic_exchange(&cq->exported, true))
		return DOCA_SUCCESS;
	gdk_err("QP 0x%x: cannot export it: another exported QP uses CQ 0x%x (an exported QP needs "
		"its own CQ)",
		qp->qpn, cq->cqn);
	return DOCA_ERROR_IN_USE;
}

/* Exports a QP whose CQs are taken. The caller holds qp->lock. */
static doca_error_t export_locked(const struct gdk_export_ask *what, struct doca_gpu_verbs_qp **out)
{
	struct doca_verbs_qp_t *qp = what->qp;
	struct gdk_export *x = export_new(what);
	doca_error_t err;

	if (!x)
		return DOCA_ERROR_NO_MEMORY;
	err = choose(x, what);
	if (err != DOCA_SUCCESS)
		goto err_free;
	err = alloc_state(x, what->place, what->cq_rq ? qp->rq_num : 0);
	if (err != DOCA_SUCCESS)
		goto err_free;
	fill_dev(x);
	gdk_export_rq_fill(x, what->cq_rq);
	err = x->q.decision.db->attach(&x->q.pub, &x->dev);
	if (err != DOCA_SUCCESS)
		goto err_free;
	x->state_flags = state_flags(x);
	gdk_watch_open(x);
	err = write_queues(x);
	if (err != DOCA_SUCCESS)
		goto err_watch;
	gdk_watch_start(x);
	warn_overrun(x, x->cq);
	warn_shared_cq(x);
	if (x->rq.cq)
		warn_overrun(x, x->rq.cq);
	qp->exported = &x->q.pub;
	*out = &x->q.pub;
	return DOCA_SUCCESS;

err_watch:
	gdk_watch_close(x);
	x->q.decision.db->detach(&x->q.pub);
err_free:
	export_free(x);
	return err;
}

/* As export_locked(), and takes the CQs. */
static doca_error_t export_with_cqs(const struct gdk_export_ask *what,
				    struct doca_gpu_verbs_qp **out)
{
	doca_error_t err;

	if (what->qp->exported) {
		gdk_err("QP 0x%x: cannot export it: already exported", what->qp->qpn);
		return DOCA_ERROR_IN_USE;
	}
	err = take_cq(what->qp, what->cq);
	if (err != DOCA_SUCCESS)
		return err;
	err = what->cq_rq ? take_cq(what->qp, what->cq_rq) : DOCA_SUCCESS;
	if (err != DOCA_SUCCESS)
		goto err_cq;
	err = export_locked(what, out);
	if (err == DOCA_SUCCESS)
		return DOCA_SUCCESS;
	if (what->cq_rq)
		atomic_store(&what->cq_rq->exported, false);
err_cq:
	atomic_store(&what->cq->exported, false);
	return err;
}

doca_error_t gdk_qp_export(const struct gdk_export_ask *what, struct doca_gpu_verbs_qp **out)
{
	doca_error_t err = check_mode(what->qp, what->handler, what->mode);

	if (err == DOCA_SUCCESS)
		err = check_queues(what->gpu, what->qp, what->cq);
	if (err == DOCA_SUCCESS && what->cq_rq)
		err = gdk_export_rq_check(what);
	if (err != DOCA_SUCCESS)
		return err;
	pthread_mutex_lock(&what->qp->lock);
	err = export_with_cqs(what, out);
	pthread_mutex_unlock(&what->qp->lock);
	return err;
}

/* gpu_qp_umem_dev_ptr is not needed: the QP's umem contains the address. */
doca_error_t doca_gpu_verbs_export_qp(doca_gpu_t *gpu_dev, doca_verbs_qp_t *qp,
				      enum doca_gpu_dev_verbs_nic_handler nic_handler,
				      void *gpu_qp_umem_dev_ptr, doca_verbs_cq_t *cq_sq,
				      enum doca_gpu_verbs_send_dbr_mode_ext send_dbr_mode_ext,
				      struct doca_gpu_verbs_qp **qp_out)
{
	const struct gdk_export_ask what = {
		.gpu = gpu_dev,
		.qp = qp,
		.cq = cq_sq,
		.handler = nic_handler,
		.mode = send_dbr_mode_ext,
	};

	(void)gpu_qp_umem_dev_ptr;
	GDK_CHECK_PTR(gpu_dev);
	GDK_CHECK_PTR(qp);
	GDK_CHECK_HANDLER(nic_handler);
	GDK_CHECK_PTR(cq_sq);
	GDK_CHECK_ENUM(send_dbr_mode_ext, DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_SW_EMULATED);
	GDK_CHECK_PTR(qp_out);
	GDK_CHECK_MIX(gpu_dev, qp);
	GDK_CHECK_MIX(qp, cq_sq);
	return gdk_qp_export(&what, qp_out);
}

doca_error_t doca_gpu_verbs_unexport_qp(doca_gpu_t *gpu_dev, struct doca_gpu_verbs_qp *qp)
{
	void (*unmonitor)(struct gdk_db_qp * x);
	struct gdk_export *x;

	GDK_CHECK_PTR(qp);
	GDK_CHECK_PTR(gpu_dev);
	GDK_CHECK_ARG(qp->gpu_dev == gpu_dev,
		      "gpu_dev %p (expected %p, GPU %s, to which QP 0x%x is exported)",
		      (void *)gpu_dev, (void *)qp->gpu_dev, gdk_gpu_name(qp->gpu_dev), qp->qp->qpn);
	x = gdk_to_export(qp);
	/* Remove the QP from its service first: the service's thread uses counter and register.
	 * Acquire: pairs with the release in join() of service.c. */
	unmonitor = atomic_load_explicit(&x->q.proxy.unmonitor, memory_order_acquire);
	if (unmonitor)
		unmonitor(&x->q);
	gdk_export_warn_unserved(x);
	gdk_export_warn_tail(x);
	gdk_dev_array_forget(x);
	pthread_mutex_lock(&qp->qp->lock);
	qp->qp->exported = NULL;
	gdk_watch_close(x); /* after this, a transition does not use x any more */
	pthread_mutex_unlock(&qp->qp->lock);
	x->q.decision.db->detach(&x->q.pub);
	if (x->rq.cq)
		atomic_store(&x->rq.cq->exported, false);
	atomic_store(&x->cq->exported, false);
	export_free(x);
	return DOCA_SUCCESS;
}

doca_error_t gdk_verbs_export_qp_rq(doca_gpu_t *gpu_dev, doca_verbs_qp_t *qp,
				    enum doca_gpu_dev_verbs_nic_handler nic_handler,
				    doca_verbs_cq_t *cq_sq, doca_verbs_cq_t *cq_rq,
				    enum doca_gpu_verbs_send_dbr_mode_ext send_dbr_mode_ext,
				    struct doca_gpu_verbs_qp **qp_out)
{
	const struct gdk_export_ask what = {
		.gpu = gpu_dev,
		.qp = qp,
		.cq = cq_sq,
		.cq_rq = cq_rq,
		.handler = nic_handler,
		.mode = send_dbr_mode_ext,
	};

	GDK_CHECK_PTR(gpu_dev);
	GDK_CHECK_PTR(qp);
	GDK_CHECK_HANDLER(nic_handler);
	GDK_CHECK_PTR(cq_sq);
	GDK_CHECK_PTR(cq_rq);
	GDK_CHECK_ENUM(send_dbr_mode_ext, DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_SW_EMULATED);
	GDK_CHECK_PTR(qp_out);
	GDK_CHECK_MIX(gpu_dev, qp);
	GDK_CHECK_MIX(qp, cq_sq);
	GDK_CHECK_MIX(qp, cq_rq);
	return gdk_qp_export(&what, qp_out);
}
