/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What queue pairs and gdaki's doorbell strategies share besides the interface of strategies
 * (gdaki_strategy.h). Each strategy is one archive that defines gdk_doorbell_NAME, a pointer to
 * its operations. libgdaki_db_none.a defines these pointers as NULL for the strategies that are not
 * linked. Device code is in *_dev.h.
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
#include "core/nic/net_dev.h"
#include "device/gdk/state.h"
#include "host/gdaki_core.h"
#include "host/gdaki_doorbell.h"
#include "host/gdaki_strategy.h"
#include "uar/uar.h"

/* Checks an argument that is a handler, as the macros of core/log/log.h do. */
#define GDK_CHECK_HANDLER(arg) \
	GDK_CHECK_ARG(*gdk_handler_name(arg) != '?', #arg " %d" GDK_HANDLERS, (int)(arg))
#define GDK_HANDLERS " (expected 0 AUTO, 1 CPU_PROXY, 2 GPU_SM_DB, 6 GPU_SM_BF or 10 GPU_SM_NO_DBR)"

struct gdk_db_qp;
struct gdk_worker;

/* The result of a choice: a gdk_handler_report whose reasons are pointers to static text. */
struct gdk_decision {
	const struct gdk_doorbell *db; /* NULL: no candidate is usable */
	enum doca_gpu_dev_verbs_nic_handler asked, chosen;
	unsigned int num_candidates;
	struct gdk_candidate {
		const char *strategy; /* name of the strategy that was probed, or that is missing */
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
	bool unconnected; /* protected by step_lock */
	uint32_t *hint;	  /* of the QP's gdk_watch_word; NULL: none; written under step_lock */
	struct doca_dev *dev;
	struct doca_verbs_uar *uar;
	void *reg;   /* CPU address of the register that takes the QP's doorbells */
	void *state; /* GPU address of the QP's gdk_qp_state */
	struct gdk_decision decision;
};

static inline struct gdk_db_qp *gdk_to_db_qp(const struct doca_gpu_verbs_qp *qp)
{
	return GDK_CONTAINER_OF(qp, struct gdk_db_qp, pub);
}

/* Stores what a waiting GPU thread must know: whether the QP is connected, and which doorbells are
 * served (struct gdk_watch_word). The caller holds step_lock. */
static inline void gdk_store_hint(const struct gdk_db_qp *x)
{
	uint32_t hint = 0;

	if (x->unconnected)
		hint = GDK_HINT_UNCONNECTED;
	else if (x->pub.cpu_proxy && !atomic_load_explicit(&x->proxy.worker, memory_order_relaxed))
		hint = GDK_HINT_RUNG(x->pub.sq_wqe_pi_last);
	if (x->hint)
		__atomic_store_n(x->hint, hint, __ATOMIC_RELAXED);
}

/* One strategy as it was linked into the program. *ops is NULL if it was not linked. */
struct gdk_slot {
	const char *name;
	const struct gdk_doorbell *const *ops;
};

/* Chooses a strategy and a handler. Fills decision with a reason per candidate, also on failure. */
doca_error_t gdk_doorbell_pick(const struct gdk_slot *slots, size_t num,
			       const struct gdk_doorbell_ask *ask, struct gdk_decision *decision);
void gdk_doorbell_report(const struct gdk_decision *decision, struct gdk_handler_report *report);

#endif
