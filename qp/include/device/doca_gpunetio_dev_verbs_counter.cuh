/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Device API, several QPs at once: submission to all of them in one call, and operations that a
 * companion QP counts. The functions have the names and signatures of DOCA GPUNetIO: templates
 * that call plain functions in gdk/counter_dev.h.
 *
 * A counted operation posts its WQEs to qp. To companion_qp it posts a WAIT for the completion of
 * these WQEs, and then an atomic add of counter_val to the 8 bytes at counter_raddr. The NIC
 * writes the old value of the counter to counter_laddr. companion_qp must have been created with
 * core_direct_master; doca_gpu_verbs_create_qp_group_hl() creates such a pair of QPs.
 *
 * A counted operation returns 0 or the negative errno that ended one of the QPs. It returns
 * -ENOTSUP and posts nothing if any WQE of qp, since the export or the last reset, had several
 * slots or generated no CQE: the WAIT refers to a CQE by its number, which is then unknown.
 *
 * Other parameters: see doca_gpunetio_dev_verbs_qp.cuh and doca_gpunetio_dev_verbs_onesided.cuh.
 */
#ifndef DOCA_GPUNETIO_DEV_VERBS_COUNTER_CUH
#define DOCA_GPUNETIO_DEV_VERBS_COUNTER_CUH

#include "device/doca_gpunetio_dev_verbs_onesided.cuh"
#include "device/gdk/counter_dev.h"

/* ---- submission ---- */

/** As doca_gpu_dev_verbs_submit_multi_qps() with handler GPU_SM_NO_DBR. */
template <unsigned int num_qps, GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_verbs_submit_db_multi_qps_no_dbr(struct doca_gpu_dev_verbs_qp **qps,
							  uint64_t *prod_indices, GDK_CODE_OPT)
{
	gdk_extra_fence<sync_scope>();
	gdk_submit_multi(qps, prod_indices, num_qps,
			 gdk_how(resource_sharing_mode, GDK_NO_DBR, GDK_THREAD, code_opt));
}

/** As doca_gpu_dev_verbs_submit_multi_qps() with handler GPU_SM_DB. */
template <unsigned int num_qps, GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_verbs_submit_db_multi_qps(struct doca_gpu_dev_verbs_qp **qps,
						   uint64_t *prod_indices, GDK_CODE_OPT)
{
	gdk_extra_fence<sync_scope>();
	gdk_submit_multi(qps, prod_indices, num_qps,
			 gdk_how(resource_sharing_mode, GDK_DB, GDK_THREAD, code_opt));
}

/** As doca_gpu_dev_verbs_submit_multi_qps() with handler CPU_PROXY. */
template <unsigned int num_qps, GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE>
GDK_FN void doca_gpu_dev_verbs_submit_proxy_multi_qps(struct doca_gpu_dev_verbs_qp **qps,
						      uint64_t *prod_indices)
{
	gdk_extra_fence<sync_scope>();
	gdk_submit_multi(qps, prod_indices, num_qps,
			 gdk_how(resource_sharing_mode, GDK_PROXY, GDK_THREAD, 0));
}

/**
 * Executes doca_gpu_dev_verbs_submit() for each of num_qps QPs, with the producer index of that QP.
 * With handler AUTO each QP uses the handler of its export.
 */
template <unsigned int num_qps, GDK_TEMPLATE_MODE, GDK_TEMPLATE_SCOPE, GDK_TEMPLATE_HANDLER>
GDK_FN void doca_gpu_dev_verbs_submit_multi_qps(struct doca_gpu_dev_verbs_qp **qps,
						uint64_t *prod_indices, GDK_CODE_OPT)
{
	gdk_extra_fence<sync_scope>();
	gdk_submit_multi(qps, prod_indices, num_qps,
			 gdk_how(resource_sharing_mode, nic_handler, GDK_THREAD, code_opt));
}

/* ---- operations that the companion QP counts ---- */

/** A put. When it is complete, the companion QP adds to the counter. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_put_counter(struct doca_gpu_dev_verbs_qp *qp,
					  struct doca_gpu_dev_verbs_addr raddr,
					  struct doca_gpu_dev_verbs_addr laddr, size_t size,
					  struct doca_gpu_dev_verbs_qp *companion_qp,
					  struct doca_gpu_dev_verbs_addr counter_raddr,
					  struct doca_gpu_dev_verbs_addr counter_laddr,
					  uint64_t counter_val, GDK_CODE_OPT)
{
	const struct gdk_counter counter = { companion_qp, counter_raddr, counter_laddr,
					     counter_val };
	doca_gpu_dev_verbs_ticket_t ticket;

	return gdk_put_counter(qp, raddr, laddr, size, &counter, &ticket,
			       gdk_how(resource_sharing_mode, nic_handler, exec_scope, code_opt));
}

/** Writes a value, which the WQEs carry. Afterwards the companion QP adds to the counter. */
template <typename T, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_p_counter(struct doca_gpu_dev_verbs_qp *qp,
					struct doca_gpu_dev_verbs_addr raddr, T value,
					struct doca_gpu_dev_verbs_qp *companion_qp,
					struct doca_gpu_dev_verbs_addr counter_raddr,
					struct doca_gpu_dev_verbs_addr counter_laddr,
					uint64_t counter_val, GDK_CODE_OPT)
{
	const struct gdk_counter counter = { companion_qp, counter_raddr, counter_laddr,
					     counter_val };
	doca_gpu_dev_verbs_ticket_t ticket;

	return gdk_p_counter(qp, raddr, &value, sizeof(T), &counter, &ticket,
			     gdk_how(resource_sharing_mode, nic_handler, exec_scope, code_opt));
}

/** A put and a signal. When they are complete, the companion QP adds to the counter. */
template <GDK_TEMPLATE_SIGNAL, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_put_signal_counter(
	struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr raddr,
	struct doca_gpu_dev_verbs_addr laddr, size_t size, struct doca_gpu_dev_verbs_addr sig_raddr,
	struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
	struct doca_gpu_dev_verbs_qp *companion_qp, struct doca_gpu_dev_verbs_addr counter_raddr,
	struct doca_gpu_dev_verbs_addr counter_laddr, uint64_t counter_val, GDK_CODE_OPT)
{
	const struct gdk_counter counter = { companion_qp, counter_raddr, counter_laddr,
					     counter_val };
	const struct gdk_op op = { gdk_move_of(GDK_MOVE_WRITE, raddr, laddr, size),
				   gdk_tail_signal(
					   gdk_signal_of(sig_op, sig_raddr, sig_laddr, sig_val)) };
	doca_gpu_dev_verbs_ticket_t ticket;

	return gdk_op_run_counted(
		qp, &op, &counter, &ticket,
		gdk_how(resource_sharing_mode, nic_handler, exec_scope, code_opt));
}

/** A signal. When it is complete, the companion QP adds to the counter. */
template <GDK_TEMPLATE_SIGNAL, GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_signal_counter(
	struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr sig_raddr,
	struct doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
	struct doca_gpu_dev_verbs_qp *companion_qp, struct doca_gpu_dev_verbs_addr counter_raddr,
	struct doca_gpu_dev_verbs_addr counter_laddr, uint64_t counter_val, GDK_CODE_OPT)
{
	const struct gdk_counter counter = { companion_qp, counter_raddr, counter_laddr,
					     counter_val };
	doca_gpu_dev_verbs_ticket_t ticket;

	return gdk_signal_counter(
		qp, gdk_signal_of(sig_op, sig_raddr, sig_laddr, sig_val), &counter, &ticket,
		gdk_how(resource_sharing_mode, nic_handler, exec_scope, code_opt));
}

/** A get. When it is complete, the companion QP adds to the counter. */
template <GDK_TEMPLATE_MODE, GDK_TEMPLATE_HANDLER, GDK_TEMPLATE_EXEC>
GDK_FN int doca_gpu_dev_verbs_get_counter(struct doca_gpu_dev_verbs_qp *qp,
					  struct doca_gpu_dev_verbs_addr raddr,
					  struct doca_gpu_dev_verbs_addr laddr, size_t size,
					  struct doca_gpu_dev_verbs_qp *companion_qp,
					  struct doca_gpu_dev_verbs_addr counter_raddr,
					  struct doca_gpu_dev_verbs_addr counter_laddr,
					  uint64_t counter_val, GDK_CODE_OPT)
{
	const struct gdk_counter counter = { companion_qp, counter_raddr, counter_laddr,
					     counter_val };
	doca_gpu_dev_verbs_ticket_t ticket;

	return gdk_get_counter(qp, raddr, laddr, size, &counter, &ticket,
			       gdk_how(resource_sharing_mode, nic_handler, exec_scope, code_opt));
}

#endif
