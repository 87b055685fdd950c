/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * The interface of doorbell strategies, for authors of strategies outside of gdaki.
 *
 * A strategy is an archive that takes the place of one of gdaki's strategies at link time: it
 * defines the symbols of that strategy with GDK_DOORBELL(). Programs do not need this header, and
 * gdaki.h does not include it.
 *
 * The interface belongs to one version of gdaki: compile a strategy with the headers of the gdaki
 * that it is linked with. If the interface changes, the number in GDK_STRATEGY_INTERFACE changes,
 * and a strategy that was compiled before does not link.
 */
#ifndef GDK_GDAKI_STRATEGY_H
#define GDK_GDAKI_STRATEGY_H

#include "common/doca_gpunetio_verbs_dev.h"
#include "host/doca_gpunetio.h"
#include "host/doca_verbs_dev.h"
#include "host/doca_verbs_uar.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The combination of GPU, NIC and UAR for which the library probes a strategy. */
struct gdk_doorbell_ask {
	doca_gpu_t *gpu;				/**< the GPU that posts */
	doca_dev_t *dev;				/**< the NIC */
	doca_verbs_uar_t *uar;				/**< the register page of the queue pair */
	enum doca_gpu_dev_verbs_nic_handler want;	/**< what the caller requested */
	enum doca_gpu_verbs_send_dbr_mode_ext dbr_mode; /**< with or without DBREC */
	bool dbr_mode_stated; /**< the caller requires dbr_mode; else AUTO may use VALID_DBR */
	const struct doca_gpu_verbs_qp *qp; /**< NULL: the queue pair does not exist yet */
};

/**
 * The operations of a strategy. The library serializes the calls for one queue pair, and makes
 * calls for different queue pairs in parallel.
 */
struct gdk_doorbell {
	const char *name;   /**< in the log and in gdk_handler_candidate.strategy */
	uint32_t handlers;  /**< 1u << nic_handler for each handler that it implements */
	bool dbrec_on_host; /**< the CPU must be able to write the DBREC */
	/**
	 * Checks whether handler h can work. Has no side effect.
	 *
	 * @param reason gets static text, on success too: why h is usable or not
	 * @return DOCA_SUCCESS, or DOCA_ERROR_NOT_SUPPORTED
	 */
	doca_error_t (*probe)(const struct gdk_doorbell_ask *ask,
			      enum doca_gpu_dev_verbs_nic_handler h, const char **reason);
	/**
	 * Begins to serve a queue pair, before GPU threads can use it. Must set dev->sq_db, the GPU
	 * address that the device half of the handler stores to. For CPU_PROXY this is a 64-bit
	 * counter of value 0 in memory that GPU and CPU access; qp->cpu_db is its CPU address, and
	 * qp->cpu_proxy must be true. All other members of qp that do not depend on the strategy
	 * have their values, also sq_db (the register) and sq_dbrec.
	 *
	 * @param dev the host's image of the device struct; the library then copies it to the GPU
	 */
	doca_error_t (*attach)(struct doca_gpu_verbs_qp *qp, struct doca_gpu_dev_verbs_qp *dev);
	/** Undoes attach. No GPU thread uses the queue pair any more. */
	void (*detach)(struct doca_gpu_verbs_qp *qp);
	/**
	 * Sets the counter *qp->cpu_db to 0. May be NULL if there is no such counter. Must not
	 * wait: the caller holds a spin lock, which doca_gpu_verbs_cpu_proxy_progress() takes too.
	 */
	void (*reset)(struct doca_gpu_verbs_qp *qp);
};

/** Strategy gpu_sm; NULL: not linked. */
extern const struct gdk_doorbell *const gdk_doorbell_gpu_sm;
/** Strategy bf; NULL: not linked. */
extern const struct gdk_doorbell *const gdk_doorbell_bf;
/** Strategy cpu_proxy; NULL: not linked. */
extern const struct gdk_doorbell *const gdk_doorbell_cpu_proxy;
/** Whether strategy gpu_sm is linked. */
extern const bool gdk_doorbell_gpu_sm_linked;
/** Whether strategy bf is linked. */
extern const bool gdk_doorbell_bf_linked;
/** Whether strategy cpu_proxy is linked. */
extern const bool gdk_doorbell_cpu_proxy_linked;

/**
 * Every strategy defines this symbol, and queue pairs refer to it. A program without any strategy
 * does not link, and the linker prints the name, which tells the user what to do. It is hidden, so
 * that linking a shared library without a strategy fails, too.
 */
#define GDK_ANY_STRATEGY \
	gdk_error_no_doorbell_strategy__link_lgdaki_or_put_lgdaki_db_NAME_behind_lgdaki_qp
/** The symbol that GDK_ANY_STRATEGY names. */
extern const bool GDK_ANY_STRATEGY __attribute__((__visibility__("hidden")));

/** Every strategy refers to this symbol of the library. Its name has the interface's number. */
#define GDK_STRATEGY_INTERFACE gdk_strategy_interface_1
/** The symbol that GDK_STRATEGY_INTERFACE names. */
extern const bool GDK_STRATEGY_INTERFACE;

/**
 * Defines the symbols of a strategy: gpu_sm, bf or cpu_proxy, or its replacement. They are in one
 * object file, so that a reference to any of them takes the strategy. The linker option
 * -u gdk_link_db_NAME takes the first strategy NAME on the link line, wherever its archive is; the
 * CMake package uses this. core/unlinked.c describes gdk_doorbell_NAME_linked.
 */
#define GDK_DOORBELL(strategy, operations) \
	const struct gdk_doorbell *const gdk_doorbell_##strategy = (operations); \
	const bool gdk_doorbell_##strategy##_linked = true; \
	extern const bool gdk_link_db_##strategy; \
	const bool gdk_link_db_##strategy = true; \
	static const bool *const gdk_interface_##strategy \
		__attribute__((__used__)) = &GDK_STRATEGY_INTERFACE; \
	__attribute__((__weak__)) const bool GDK_ANY_STRATEGY = true

#ifdef __cplusplus
}
#endif

#endif
