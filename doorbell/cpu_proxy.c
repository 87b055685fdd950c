/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Strategy "cpu_proxy": GPU threads raise a 64-bit counter in host memory; a CPU thread polls
 * it and writes the DBREC and the doorbell register. The counters of one NIC and GPU are
 * packed, eight in a cache line, in pages near the NIC, so that a thread polls few lines.
 * The CPU thread is a thread of a service (service.c) or the caller of
 * doca_gpu_verbs_cpu_proxy_progress. This file creates no threads; its step is in cpu_proxy_step.c.
 */
#include "core/log/log.h"
#include "doorbell/cpu_proxy.h"

static struct gdk_words counters = GDK_WORDS_INIT("proxy counters");

static doca_error_t probe(const struct gdk_doorbell_ask *ask, enum doca_gpu_dev_verbs_nic_handler h,
			  const char **reason)
{
	(void)h;
	if (ask->dbr_mode == DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_SW_EMULATED) {
		*reason = "the CPU proxy writes the DBREC itself and does not support "
			  "NO_DBR_SW_EMULATED";
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	if (ask->dbr_mode == DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW &&
	    !ask->dev->caps.send_dbr_mode_no_dbr_ext) {
		*reason = "the device does not support DBREC-less QPs (ConnectX-8 or newer does)";
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	if (ask->qp && !gdk_to_db_qp(ask->qp)->no_dbr && !ask->qp->sq_dbrec) {
		*reason = "the CPU cannot write the memory of the QP's DBREC";
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	*reason = "a CPU thread rings: create a service or call cpu_proxy_progress";
	return DOCA_SUCCESS;
}

/* Logs a warning if AUTO chose the proxy for a QP and the process has no service that could ring
 * its doorbells. */
static void warn_auto(const struct gdk_db_qp *x)
{
	const struct gdk_decision *d = &x->decision;
	const char *why = "it was not tested";
	unsigned int i;

	if (d->asked != DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO ||
	    atomic_load_explicit(&gdk_proxy_services, memory_order_relaxed))
		return;
	for (i = 0; i < d->num_candidates; i++)
		if (d->candidates[i].handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB)
			why = d->candidates[i].reason;
	gdk_warn("QP 0x%x: AUTO chose CPU_PROXY because GPU_SM_DB is not usable (%s), but no proxy "
		 "service runs in this process to ring its doorbells: " GDK_PROXY_REMEDY,
		 x->qpn, why);
}

static doca_error_t attach(struct doca_gpu_verbs_qp *qp, struct doca_gpu_dev_verbs_qp *dev)
{
	struct gdk_db_qp *x = gdk_to_db_qp(qp);
	struct gdk_word counter;
	doca_error_t err;

	if (!x->no_dbr && !x->dbrec_cpu) {
		gdk_err("QP 0x%x: cannot use CPU_PROXY: the CPU cannot write the DBREC", x->qpn);
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	err = gdk_word_get(&counters, qp->gpu_dev, x->dev, &counter);
	if (err != DOCA_SUCCESS)
		return err;
	__atomic_store_n(counter.cpu, 0, __ATOMIC_RELAXED);
	/* Release: orders the store to the counter before this increment. Pairs with the acquire in
	 * gdk_scan_pass(). */
	atomic_fetch_add_explicit(&gdk_counter_falls, 1, memory_order_release);
	x->proxy.page = counter.page;
	qp->cpu_db = counter.cpu;
	qp->cpu_proxy = true;
	dev->sq_db = counter.gpu;
	warn_auto(x);
	return DOCA_SUCCESS;
}

static void detach(struct doca_gpu_verbs_qp *qp)
{
	struct gdk_db_qp *x = gdk_to_db_qp(qp);

	if (x->proxy.page)
		gdk_word_put(&counters, x->proxy.page, qp->cpu_db);
	x->proxy.page = NULL;
	qp->cpu_db = NULL;
}

/* The caller holds step_lock. Release as in attach(). */
static void reset(struct doca_gpu_verbs_qp *qp)
{
	__atomic_store_n(qp->cpu_db, 0, __ATOMIC_RELEASE);
	atomic_fetch_add_explicit(&gdk_counter_falls, 1, memory_order_release);
}

static const struct gdk_doorbell ops = {
	.name = "cpu_proxy",
	.handlers = 1u << DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY,
	.dbrec_on_host = true,
	.probe = probe,
	.attach = attach,
	.detach = detach,
	.reset = reset,
};

GDK_DOORBELL(cpu_proxy, &ops);
