/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Strategy "cpu_proxy": GPU threads raise a 64-bit counter in host memory; a CPU thread polls
 * it and writes the DBREC and the doorbell register. The counters of one NIC and GPU are
 * packed, eight in a cache line, in pages near the NIC, so that a thread polls few lines.
 * The CPU thread is a thread of a service (service.c) or the caller of
 * doca_gpu_verbs_cpu_proxy_progress; this file creates no threads.
 */
#include <endian.h>

#include "core/log.h"
#include "doorbell/cpu_proxy.h"
#include "doorbell/mmio.h"

static struct gdk_words counters = GDK_WORDS_INIT("proxy counters");
atomic_uint gdk_proxy_services;

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
	if (ask->qp && !ask->qp->no_dbr && !ask->qp->dbrec_cpu) {
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

static doca_error_t attach(struct gdk_db_qp *x, struct doca_gpu_dev_verbs_qp *dev)
{
	struct gdk_word counter;
	doca_error_t err;

	if (!x->no_dbr && !x->dbrec_cpu) {
		gdk_err("QP 0x%x: cannot use CPU_PROXY: the CPU cannot write the DBREC", x->qpn);
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	err = gdk_word_get(&counters, x->pub.gpu_dev, x->dev, &counter);
	if (err != DOCA_SUCCESS)
		return err;
	__atomic_store_n(counter.cpu, 0, __ATOMIC_RELAXED);
	/* Release: orders the store to the counter before this increment. Pairs with the acquire in
	 * gdk_scan_pass(). */
	atomic_fetch_add_explicit(&gdk_counter_falls, 1, memory_order_release);
	x->proxy.page = counter.page;
	x->pub.cpu_db = counter.cpu;
	x->pub.sq_db = x->reg;
	x->pub.cpu_proxy = true;
	dev->sq_db = counter.gpu;
	warn_auto(x);
	return DOCA_SUCCESS;
}

static void detach(struct gdk_db_qp *x)
{
	if (x->proxy.page)
		gdk_word_put(&counters, x->proxy.page, x->pub.cpu_db);
	x->proxy.page = NULL;
	x->pub.cpu_db = NULL;
}

/* The caller holds step_lock. Release as in attach(). */
static void reset(struct gdk_db_qp *x)
{
	__atomic_store_n(x->pub.cpu_db, 0, __ATOMIC_RELEASE);
	atomic_fetch_add_explicit(&gdk_counter_falls, 1, memory_order_release);
}

/* Rings if the counter was raised. The caller holds step_lock. */
static bool ring_raised(struct gdk_db_qp *x)
{
	struct doca_gpu_verbs_qp *qp = &x->pub;
	union {
		uint32_t word[2];
		uint64_t reg;
	} db;
	/* Acquire: pairs with the release fence of the GPU thread, which stored the WQEs below pi
	 * before it raised the counter. The stores that follow are ordered after these WQEs. */
	uint64_t pi = __atomic_load_n(qp->cpu_db, __ATOMIC_ACQUIRE), rings;

	if (pi == qp->sq_wqe_pi_last)
		return false;
	db.word[0] = htobe32((uint32_t)(pi << 8));
	db.word[1] = qp->sq_num_shift8_be;
	/* Release: the NIC can read the DBREC at any time, and must see the WQEs below pi if it
	 * sees this value. */
	if (x->dbrec_cpu)
		gdk_mmio_write_dbrec(x->dbrec_cpu, htobe32((uint32_t)(pi & 0xffff)));
	gdk_mmio_before_register();
	gdk_mmio_write8(qp->sq_db, db.reg);
	gdk_mmio_flush();
	__atomic_store_n(&qp->sq_wqe_pi_last, pi, __ATOMIC_RELAXED);
	rings = atomic_load_explicit(&x->proxy.rings, memory_order_relaxed);
	atomic_store_explicit(&x->proxy.rings, rings + 1, memory_order_relaxed);
	return true;
}

/* Checks without step_lock whether the counter was raised. A counter in a state block can only be
 * read under the lock, because a reset overwrites the whole block. So the function returns true for
 * it. */
static bool is_raised(const struct gdk_db_qp *x)
{
	return !x->proxy.page || __atomic_load_n(x->pub.cpu_db, __ATOMIC_RELAXED) !=
					 __atomic_load_n(&x->pub.sq_wqe_pi_last, __ATOMIC_RELAXED);
}

enum gdk_step gdk_proxy_step(struct gdk_db_qp *x)
{
	bool rang;

	if (!is_raised(x))
		return GDK_STEP_NONE;
	if (pthread_spin_trylock(&x->proxy.step_lock))
		return GDK_STEP_BUSY;
	rang = ring_raised(x);
	pthread_spin_unlock(&x->proxy.step_lock);
	return rang ? GDK_STEP_RANG : GDK_STEP_NONE;
}

bool gdk_proxy_drain(struct gdk_db_qp *x)
{
	bool rang;

	pthread_spin_lock(&x->proxy.step_lock);
	rang = ring_raised(x);
	pthread_spin_unlock(&x->proxy.step_lock);
	return rang;
}

doca_error_t doca_gpu_verbs_cpu_proxy_progress(struct doca_gpu_verbs_qp *qp_cpu,
					       bool *out_progressed)
{
	struct gdk_db_qp *x;
	bool rang;

	GDK_CHECK_PTR(qp_cpu);
	x = gdk_to_db_qp(qp_cpu);
	if (!qp_cpu->cpu_proxy) {
		gdk_err("QP 0x%x: no CPU progress for handler %s (expected CPU_PROXY, or "
			"NO_DBR_SW_EMULATED mode)",
			x->qpn, gdk_handler_name(x->decision.chosen));
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	rang = is_raised(x) && gdk_proxy_drain(x);
	if (out_progressed)
		*out_progressed = rang;
	return DOCA_SUCCESS;
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
