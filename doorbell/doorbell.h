/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The interface between queue pairs and doorbell strategies. Each strategy is one archive
 * that defines gdk_doorbell_NAME, a pointer to its operations. libgdaki_db_none.a defines these
 * pointers as NULL for the strategies that are not linked. Device code is in *_dev.h.
 *
 * Each QP gets its strategy once, by gdk_doorbell_pick(): a high-level QP before it is
 * created, any other QP at its export.
 */
#ifndef GDK_DOORBELL_H
#define GDK_DOORBELL_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/doca_gpunetio_verbs_dev.h"
#include "core/gpu/words.h"
#include "core/net_dev.h"
#include "host/gdaki_core.h"
#include "host/gdaki_doorbell.h"
#include "uar/uar.h"

/* Checks an argument that is a handler, as the macros of core/log.h do. */
#define GDK_CHECK_HANDLER(arg) \
	GDK_CHECK_ARG(*gdk_handler_name(arg) != '?', #arg " %d" GDK_HANDLERS, (int)(arg))
#define GDK_HANDLERS " (expected 0 AUTO, 1 CPU_PROXY, 2 GPU_SM_DB, 6 GPU_SM_BF or 10 GPU_SM_NO_DBR)"

struct gdk_db_qp;
struct gdk_doorbell;
struct gdk_slot;
struct gdk_worker;

/* The result of a choice: a gdk_handler_report whose reasons are pointers to static text. */
struct gdk_decision {
	const struct gdk_doorbell *db; /* NULL: no candidate is usable */
	enum doca_gpu_dev_verbs_nic_handler asked, chosen;
	unsigned int num_candidates;
	struct gdk_candidate {
		const char *reason;
		uint8_t handler; /* enum doca_gpu_dev_verbs_nic_handler */
		bool usable;
	} candidates[3]; /* AUTO tries at most 3 handlers */
};

/*
 * Data of the CPU proxy and of services for one QP. step_lock serializes the steps of a
 * service's thread, of callers of cpu_proxy_progress, and resets.
 */
struct gdk_proxied {
	pthread_spinlock_t step_lock;
	atomic_uint grace_ms;	    /* longest sleep of the thread that monitors the QP; 0: none */
	struct gdk_word_page *page; /* contains *pub.cpu_db; NULL: it is in the state block */
	_Atomic uint64_t rings;	    /* register writes by the CPU; written under step_lock */
	/* Thread that monitors this QP. Written under membership_lock; the watch of qp/ reads it
	 * without the lock, and only compares it with NULL. */
	struct gdk_worker *_Atomic worker;
	/* Removes the QP from its service, if any. Set when a service first monitors the QP. */
	void (*_Atomic unmonitor)(struct gdk_db_qp *x);
};

/* Remedy for doorbells that no CPU thread rings. */
#define GDK_PROXY_REMEDY \
	"call doca_gpu_verbs_create_service and doca_gpu_verbs_service_monitor_qp, or " \
	"doca_gpu_verbs_cpu_proxy_progress repeatedly"

/* The part of an exported QP (struct gdk_export) that strategies use. */
struct gdk_db_qp {
	struct doca_gpu_verbs_qp pub;
	struct gdk_proxied proxy; /* near the members of pub that a proxy step reads */
	uint32_t *dbrec_cpu; /* CPU address of DBREC word 1; NULL: no DBREC, or no CPU access */
	uint32_t qpn;
	bool no_dbr;	  /* created in the firmware's mode without DBREC */
	bool reg_on_host; /* set by attach: the register page is not mapped as device memory */
	struct doca_dev *dev;
	struct doca_verbs_uar *uar;
	void *reg;   /* CPU address of the register that takes the QP's doorbells */
	void *state; /* GPU address of the QP's gdk_qp_state */
	struct gdk_decision decision;
};

static inline struct gdk_db_qp *gdk_to_db_qp(struct doca_gpu_verbs_qp *qp)
{
	return GDK_CONTAINER_OF(qp, struct gdk_db_qp, pub);
}

/* Input of the choice. */
struct gdk_doorbell_ask {
	doca_gpu_t *gpu;
	struct doca_dev *dev;
	struct doca_verbs_uar *uar;
	enum doca_gpu_dev_verbs_nic_handler want; /* AUTO, or one handler */
	enum doca_gpu_verbs_send_dbr_mode_ext dbr_mode;
	bool dbr_mode_stated;	    /* the caller requires dbr_mode; else AUTO may use VALID_DBR */
	const struct gdk_db_qp *qp; /* NULL: the QP does not exist yet */
};

struct gdk_doorbell {
	const char *name;
	uint32_t handlers;  /* 1u << nic_handler for each handler that it implements */
	bool dbrec_on_host; /* the CPU must be able to write the DBREC */
	/* Checks whether handler h can work. *reason is static text, also on success. */
	doca_error_t (*probe)(const struct gdk_doorbell_ask *ask,
			      enum doca_gpu_dev_verbs_nic_handler h, const char **reason);
	/* Sets sq_db and the other members of x and dev that the strategy owns. dev is the host's
	 * image of the device struct, which the caller then copies to the GPU. */
	doca_error_t (*attach)(struct gdk_db_qp *x, struct doca_gpu_dev_verbs_qp *dev);
	void (*detach)(struct gdk_db_qp *x);
	/* Resets the strategy's counter of a QP. The caller holds proxy.step_lock. NULL: there is
	 * no such counter. */
	void (*reset)(struct gdk_db_qp *x);
};

/* One strategy as it was linked into the program. *ops is NULL if it was not linked. */
struct gdk_slot {
	const char *name;
	const struct gdk_doorbell *const *ops;
};

extern const struct gdk_doorbell *const gdk_doorbell_gpu_sm;
extern const struct gdk_doorbell *const gdk_doorbell_bf;
extern const struct gdk_doorbell *const gdk_doorbell_cpu_proxy;
extern const bool gdk_doorbell_gpu_sm_linked;
extern const bool gdk_doorbell_bf_linked;
extern const bool gdk_doorbell_cpu_proxy_linked;

/*
 * Every strategy defines this symbol, and qp/strategies.c refers to it. A program without any
 * strategy does not link, and the linker prints the name, which tells the user what to do. It is
 * hidden, so that linking a shared library without a strategy fails, too.
 */
#define GDK_ANY_STRATEGY \
	gdk_error_no_doorbell_strategy__link_lgdaki_or_put_lgdaki_db_NAME_behind_lgdaki_qp
extern const bool GDK_ANY_STRATEGY __attribute__((__visibility__("hidden")));

/*
 * Defines the symbols of a strategy. They are in one object file, so that a reference to any of
 * them takes the strategy.
 *   gdk_doorbell_NAME         its operations
 *   gdk_doorbell_NAME_linked  see core/unlinked.c
 *   gdk_link_db_NAME          the linker option -u takes the strategy wherever its archive is;
 *                             the CMake package uses this
 */
#define GDK_DOORBELL(strategy, operations) \
	const struct gdk_doorbell *const gdk_doorbell_##strategy = (operations); \
	const bool gdk_doorbell_##strategy##_linked = true; \
	extern const bool gdk_link_db_##strategy; \
	const bool gdk_link_db_##strategy = true; \
	__attribute__((__weak__)) const bool GDK_ANY_STRATEGY = true

/* Chooses a strategy and a handler. Fills decision with a reason per candidate, also on failure. */
doca_error_t gdk_doorbell_pick(const struct gdk_slot *slots, size_t num,
			       const struct gdk_doorbell_ask *ask, struct gdk_decision *decision);
void gdk_doorbell_report(const struct gdk_decision *decision, struct gdk_handler_report *report);

#endif
