/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * One step of the CPU proxy for one queue pair: rings the doorbell if GPU threads have raised the
 * counter. This file does not refer to cpu_proxy.c, so that a strategy outside of gdaki that takes
 * the place of cpu_proxy (gdaki_strategy.h) can use the step, and services, without it.
 */
#include <endian.h>

#include "core/log/log.h"
#include "doorbell/cpu_proxy.h"
#include "doorbell/mmio.h"

atomic_uint gdk_proxy_services;

/*
 * Rings if the counter was raised. The caller holds step_lock. A counter below the last index that
 * was rung is ignored: the stores of two GPU threads that ring one after the other may arrive in
 * the other order, and the NIC must not get the older index again.
 */
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

	if (pi <= qp->sq_wqe_pi_last)
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
	if (!atomic_load_explicit(&x->proxy.worker, memory_order_relaxed))
		gdk_store_hint(x);
	rings = atomic_load_explicit(&x->proxy.rings, memory_order_relaxed);
	atomic_store_explicit(&x->proxy.rings, rings + 1, memory_order_relaxed);
	return true;
}

/* Checks without step_lock whether the counter was raised. A counter in a state block can only be
 * read under the lock, because a reset overwrites the whole block. So the function returns true for
 * it. */
static bool is_raised(const struct gdk_db_qp *x)
{
	return !x->proxy.page || __atomic_load_n(x->pub.cpu_db, __ATOMIC_RELAXED) >
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
