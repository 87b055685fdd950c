/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Chooses the doorbell handler of a QP for a GPU, NIC and UAR. No other file does. The report
 * has a reason for each candidate; the log shows the reasons at level INFO. The references to
 * the strategies are strong, so the linker takes each archive that is on the link line, and
 * libgdaki_db_none.a defines the missing ones.
 */
#include <stdio.h>
#include <string.h>

#include "core/log.h"
#include "doorbell/doorbell.h"

#define H(name) DOCA_GPUNETIO_VERBS_NIC_HANDLER_##name

static const struct gdk_doorbell *const *const slots[] = {
	&gdk_doorbell_gpu_sm,
	&gdk_doorbell_bf,
	&gdk_doorbell_cpu_proxy,
};

/* Order in which AUTO tries handlers. BlueFlame is not included, because it is faster only for a
 * single small WQE. */
static const enum doca_gpu_dev_verbs_nic_handler auto_order[] = {
	H(GPU_SM_NO_DBR),
	H(GPU_SM_DB),
	H(CPU_PROXY),
};

/* The strategy of each handler. */
static const char *const strategies[] = {
	[H(AUTO)] = "auto",    [H(CPU_PROXY)] = "cpu_proxy",  [H(GPU_SM_DB)] = "gpu_sm",
	[H(GPU_SM_BF)] = "bf", [H(GPU_SM_NO_DBR)] = "gpu_sm",
};

/* NULL: no such handler. */
static const char *strategy_of(enum doca_gpu_dev_verbs_nic_handler h)
{
	return (size_t)h < GDK_ARRAY_SIZE(strategies) ? strategies[h] : NULL;
}

static const struct gdk_doorbell *linked(enum doca_gpu_dev_verbs_nic_handler h)
{
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(slots); i++)
		if (*slots[i] && ((*slots[i])->handlers >> h & 1))
			return *slots[i];
	return NULL;
}

static const char *linked_names(char *buf, size_t len)
{
	size_t i, at = 0;

	buf[0] = '\0';
	for (i = 0; i < GDK_ARRAY_SIZE(slots); i++)
		if (*slots[i])
			at += (size_t)snprintf(buf + at, len - at, "%s%s", at ? ", " : "",
					       (*slots[i])->name);
	return at ? buf : "none";
}

/* Probes one candidate and records the result. *err is the error to return if no candidate is
 * usable: NO_MEMORY replaces NOT_SUPPORTED. */
static const struct gdk_doorbell *try_one(const struct gdk_doorbell_ask *ask,
					  enum doca_gpu_dev_verbs_nic_handler h,
					  struct gdk_decision *decision, doca_error_t *err)
{
	struct gdk_candidate *c = &decision->candidates[decision->num_candidates++];
	const struct gdk_doorbell *db = linked(h);
	doca_error_t probed;

	c->handler = (uint8_t)h;
	c->reason = "the archive of this strategy is not linked";
	if (db) {
		c->reason = "supported by this GPU and NIC";
		probed = db->probe(ask, h, &c->reason);
		c->usable = probed == DOCA_SUCCESS;
		if (probed == DOCA_ERROR_NO_MEMORY)
			*err = probed;
	}
	gdk_info("handler %s (%s) on GPU %s: %s: %s", gdk_handler_name(h), strategy_of(h),
		 gdk_gpu_name(ask->gpu), c->usable ? "usable" : "not usable", c->reason);
	return c->usable ? db : NULL;
}

/* Tries the handlers of AUTO in order. If the caller did not request the DBREC mode, only the first
 * handler is probed without DBREC, the others with VALID_DBR. */
static const struct gdk_doorbell *try_auto(const struct gdk_doorbell_ask *ask,
					   enum doca_gpu_dev_verbs_nic_handler *h,
					   struct gdk_decision *decision, doca_error_t *err)
{
	struct gdk_doorbell_ask again = *ask;
	const struct gdk_doorbell *db;
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(auto_order); i++) {
		if (i && !ask->dbr_mode_stated)
			again.dbr_mode = DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR;
		*h = auto_order[i];
		db = try_one(&again, *h, decision, err);
		if (db)
			return db;
	}
	return NULL;
}

static void log_refusal(const struct gdk_doorbell_ask *ask, const struct gdk_decision *decision)
{
	char names[64], why[GDK_ARRAY_SIZE(decision->candidates) * (GDK_HANDLER_REASON_LEN + 24)];
	size_t at = 0;
	unsigned int i;

	linked_names(names, sizeof(names));
	if (ask->want == H(AUTO) && gdk_doorbell_bf && !gdk_doorbell_gpu_sm &&
	    !gdk_doorbell_cpu_proxy) {
		gdk_err("handler AUTO refused: only strategy bf (GPU_SM_BF) is linked, which AUTO "
			"does not select; request GPU_SM_BF, or link gpu_sm or cpu_proxy");
		return;
	}
	why[0] = '\0';
	for (i = 0; i < decision->num_candidates && at < sizeof(why); i++)
		at += (size_t)snprintf(why + at, sizeof(why) - at, "%s%s: %s", i ? "; " : "",
				       gdk_handler_name(decision->candidates[i].handler),
				       decision->candidates[i].reason);
	gdk_err("handler %s refused on GPU %s (%s); linked strategies: %s",
		gdk_handler_name(ask->want), gdk_gpu_name(ask->gpu), why,
		names[0] ? names : "none");
}

doca_error_t gdk_doorbell_pick(const struct gdk_doorbell_ask *ask, const struct gdk_doorbell **db,
			       enum doca_gpu_dev_verbs_nic_handler *handler,
			       struct gdk_decision *decision)
{
	enum doca_gpu_dev_verbs_nic_handler h = ask->want;
	doca_error_t err = DOCA_ERROR_NOT_SUPPORTED;
	const struct gdk_doorbell *d;

	memset(decision, 0, sizeof(*decision));
	decision->asked = h;
	decision->chosen = H(TYPE_MAX);
	if (!strategy_of(h)) {
		gdk_err("unknown nic_handler %d", (int)h);
		return DOCA_ERROR_INVALID_VALUE;
	}
	/* GPU_SM_DB without a DBREC is the same as GPU_SM_NO_DBR. */
	if (h == H(GPU_SM_DB) && ask->dbr_mode != DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR)
		h = H(GPU_SM_NO_DBR);
	d = h == H(AUTO) ? try_auto(ask, &h, decision, &err) : try_one(ask, h, decision, &err);
	if (!d) {
		log_refusal(ask, decision);
		return err;
	}
	decision->chosen = h;
	*db = d;
	*handler = h;
	return DOCA_SUCCESS;
}

void gdk_doorbell_report(const struct gdk_decision *decision, struct gdk_handler_report *report)
{
	unsigned int i;

	memset(report, 0, sizeof(*report));
	report->asked = decision->asked;
	report->chosen = decision->chosen;
	report->num_candidates = decision->num_candidates;
	for (i = 0; i < decision->num_candidates; i++) {
		const struct gdk_candidate *c = &decision->candidates[i];
		struct gdk_handler_candidate *to = &report->candidates[i];

		to->handler = c->handler;
		to->strategy = strategy_of(c->handler);
		to->usable = c->usable;
		snprintf(to->reason, sizeof(to->reason), "%s", c->reason);
	}
}
