/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Reports on the choice of a doorbell handler, and CPU proxy services.
 *
 * A part of gdaki.h, which programs include.
 */
#ifndef GDK_GDAKI_DOORBELL_H
#define GDK_GDAKI_DOORBELL_H

#include "host/doca_gpunetio.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GDK_HANDLER_CANDIDATES_MAX 6   /**< entries of gdk_handler_report.candidates */
#define GDK_HANDLER_REASON_LEN	   160 /**< bytes of a reason, final 0 included */

/** One handler that the library tested before it chose. */
struct gdk_handler_candidate {
	enum doca_gpu_dev_verbs_nic_handler handler; /**< the handler that was tested */
	const char *strategy; /**< its strategy: "gpu_sm", "bf", "cpu_proxy" or a replacement */
	bool usable;	      /**< it works on this GPU, NIC and UAR */
	char reason[GDK_HANDLER_REASON_LEN]; /**< why it is usable or not, in English */
};

/** How a handler was chosen. The candidates are in the order in which they were tested. */
struct gdk_handler_report {
	enum doca_gpu_dev_verbs_nic_handler asked;  /**< the handler that the caller requested */
	enum doca_gpu_dev_verbs_nic_handler chosen; /**< the result; TYPE_MAX: none is usable */
	unsigned int num_candidates;		    /**< valid entries of candidates */
	/** the handlers that were tested */
	struct gdk_handler_candidate candidates[GDK_HANDLER_CANDIDATES_MAX];
};

/**
 * Options of a CPU proxy service. 0 and NULL select the defaults, which
 * doca_gpu_verbs_create_service() uses too.
 */
struct gdk_service_attr {
	uint32_t threads; /**< 1 to 16; 0: the value of GDAKI_PROXY_THREADS, or 1 */
	/**
	 * List of CPUs, for example "2,4-7". Thread i runs on the i-th CPU of the list, modulo its
	 * length. NULL: the list in GDAKI_PROXY_CPUS, or any CPU of the NUMA node of the NIC whose
	 * QPs the thread serves.
	 */
	const char *cpus;
	/**
	 * Longest sleep of an idle thread, in microseconds. An idle thread spins, then yields,
	 * then sleeps longer and longer. The limit bounds how late the first doorbell after an
	 * idle time is rung, and how long the destruction of the service takes. 0: the value of
	 * GDAKI_PROXY_NAP_US, or 1000.
	 */
	uint32_t nap_max_us;
	/**
	 * A doorbell that waits for this many milliseconds, plus nap_max_us, because a thread did
	 * not run counts as a stall. 0: 100.
	 */
	uint32_t stall_ms;
};

/**
 * Creates a CPU proxy service: threads that ring doorbells for QPs with handler CPU_PROXY, or with
 * the mode NO_DBR_SW_EMULATED. Add QPs with doca_gpu_verbs_service_monitor_qp() and destroy the
 * service with doca_gpu_verbs_destroy_service(). The threads block all signals. attr and its
 * strings are not used after the call.
 *
 * @retval DOCA_ERROR_INVALID_VALUE more than 16 threads, or a CPU list that is empty, malformed or
 *         has a CPU that this process may not use
 * @retval DOCA_ERROR_NO_MEMORY no memory
 * @retval DOCA_ERROR_OPERATING_SYSTEM a thread did not start
 */
doca_error_t gdk_verbs_service_create(const struct gdk_service_attr *attr,
				      doca_gpu_verbs_service_t *out_service);

/**
 * Removes a QP from a CPU proxy service. On return the service has rung every index that the GPU
 * had raised before the call, and does not use the QP any more.
 *
 * doca_gpu_verbs_unexport_qp() and doca_gpu_verbs_destroy_service() also do this. Any thread may
 * call this.
 *
 * @retval DOCA_ERROR_NOT_FOUND this service does not monitor the QP
 */
doca_error_t gdk_verbs_service_unmonitor_qp(doca_gpu_verbs_service_t service,
					    struct doca_gpu_verbs_qp *qp);

/** Statistics of a CPU proxy service since its creation, the sums of all its threads. */
struct gdk_service_stats {
	uint64_t passes;       /**< polls of all counters of a thread */
	uint64_t rings;	       /**< stores to doorbell registers by the service */
	uint64_t yields;       /**< idle passes that yielded the CPU */
	uint64_t sleeps;       /**< idle passes that slept */
	uint64_t stalls;       /**< number of stalls, see gdk_service_attr.stall_ms */
	uint64_t worst_gap_ns; /**< longest time, in nanoseconds, between two passes of a thread of
				* which the second found a doorbell to ring */
	uint32_t threads;      /**< threads of the service */
	uint32_t late_threads; /**< threads that have not run for the time of a stall */
	uint32_t qps;	       /**< QPs that are monitored now */
};

/**
 * Reads the statistics of a CPU proxy service. Its threads keep running, so the values are not a
 * snapshot of one point in time. Any thread may call this.
 */
doca_error_t gdk_verbs_service_get_stats(doca_gpu_verbs_service_t service,
					 struct gdk_service_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
