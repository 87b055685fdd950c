/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Operations of the GPU test for the debug build only: a WQE that it refuses to ring, a
 * WQE that it prints, and WQEs that it reports as never rung. GT_DEBUG is defined when
 * compiling the debug build; its messages are then copied into a log (struct gt_log), and
 * on a GPU also printed.
 */
#ifndef GT_DEVICE_DEBUG_CUH
#define GT_DEVICE_DEBUG_CUH

#include "device_hand.cuh"

#ifdef GT_DEBUG

/* Address of the log. All threads of a launch store the same value before they post. */
__device__ static uint64_t gt_log_address;

/* Appends text to the log, truncated if the log is full. The host cleared the log. */
__device__ static void gt_log_text(const char *text)
{
	struct gt_log *log = (struct gt_log *)(uintptr_t)gdk_ld64(&gt_log_address, GDK_SCOPE_GPU);
	uint64_t len = 0, at;

	while (text[len])
		len++;
	at = gdk_add64(&log->used, len, GDK_SCOPE_GPU);
	for (uint64_t i = 0; i < len && at + i < sizeof(log->text) - 1; i++)
		*(volatile char *)&log->text[at + i] = text[i];
#ifdef __CUDACC__
	printf("%s", text);
#endif
}

#endif

namespace
{

__device__ static struct gt_log *log_of(const struct gt_job &j)
{
	return (struct gt_log *)(j.gpu + j.counters + GT_LOG);
}

__device__ static void log_open(const struct gt_job &j)
{
#ifdef GT_DEBUG
	gdk_st64(&gt_log_address, (uint64_t)(uintptr_t)log_of(j), GDK_SCOPE_GPU);
#else
	(void)j;
#endif
}

/* WQE 0 is good. It is complete before WQE 1, which has one changed word, is submitted. */
__device__ static inline int post_wrong(const struct gt_job &j, qp_type *qp)
{
	const struct op_at good = op_at(j, 0), bad = op_at(j, 1);
	volatile uint32_t *word;
	uint64_t at;
	int err = gdk_reserve(qp, 2, mode, 0, &at);

	if (err)
		return err;
	stamp(j, good);
	stamp(j, bad);
	build_write(qp, good, at);
	build_write(qp, bad, at + 1);
	word = (volatile uint32_t *)slot(qp, at + 1) + j.word;
	*word = *word ^ doca_gpu_dev_verbs_bswap32(j.flip);
	doca_gpu_dev_verbs_mark_wqes_ready<mode>(qp, at, at);
	doca_gpu_dev_verbs_submit<mode>(qp, at + 1);
	err = doca_gpu_dev_verbs_wait<mode>(qp, at);
	if (err)
		return err;
	doca_gpu_dev_verbs_mark_wqes_ready<mode>(qp, at + 1, at + 1);
	doca_gpu_dev_verbs_submit<mode>(qp, at + 2);
	return 0;
}

/* Prints a WQE and its CQE and stores their bytes, so that the host can convert them to
 * text and compare. */
__device__ static inline int show(const struct gt_job &j, qp_type *qp)
{
	struct doca_gpu_dev_verbs_cq *cq = doca_gpu_dev_verbs_qp_get_cq_sq(qp);
	const struct op_at o = op_at(j, 0);
	const volatile uint32_t *wqe, *cqe;
	struct gt_log *log = log_of(j);
	ticket_type t;
	int err;

	stamp(j, o);
	err = doca_gpu_dev_verbs_put<mode, nic_handler>(qp, o.dst, o.src, o.size, &t);
	err = err ? err : doca_gpu_dev_verbs_wait<mode>(qp, t);
	if (err)
		return err;
	gdk_print_wqe(qp, t);
	gdk_print_cqe(cq, t);
	wqe = (const volatile uint32_t *)slot(qp, t);
	cqe = (const volatile uint32_t *)(cq->cqe_daddr +
					  ((t + cq->cqe_rsvd) & (cq->cqe_num - 1)) * 64);
	for (int i = 0; i < 16; i++) {
		log->wqe[i] = wqe[i];
		log->cqe[i] = cqe[i];
	}
	return 0;
}

/* Posts one put, then reserves three slots and publishes only the first; no thread
 * rings for them. */
__device__ static inline int leave_unrung(const struct gt_job &j, qp_type *qp)
{
	const struct op_at o = op_at(j, 0);
	ticket_type t;
	uint64_t at;
	int err;

	stamp(j, o);
	err = doca_gpu_dev_verbs_put<mode, nic_handler>(qp, o.dst, o.src, o.size, &t);
	err = err ? err : doca_gpu_dev_verbs_wait<mode>(qp, t);
	if (!err && gdk_debug_check_tail(qp))
		return GT_EBADDATA;
	err = err ? err : gdk_reserve(qp, 3, mode, 0, &at);
	if (err)
		return err;
	doca_gpu_dev_verbs_wqe_prepare_nop(qp, slot(qp, at), (uint16_t)at, SIGNALLED);
	doca_gpu_dev_verbs_mark_wqes_ready<mode>(qp, at, at);
	return gdk_debug_check_tail(qp) == 3 ? 0 : GT_EBADDATA;
}

} // namespace

#endif
