/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Chooses the doorbell handler of a QP for a GPU, NIC and UAR. Only this file makes this choice.
 * The report has a reason for each candidate; the log shows the reasons at level INFO.
 */
#include <stdio.h>
#include <string.h>

#include "core/log/log.h"
#include "doorbell/doorbell.h"

#define H(name) DOCA_GPUNETIO_VERBS_NIC_HANDLER_##name

/* A choice in progress. */
struct choice {
	const struct gdk_slot *slots;
	size_t num;
	const struct gdk_doorbell_ask *ask;
	struct gdk_decision *decision;
	doca_error_t err; /* to return if no candidate is usable */
};

/* Order in which AUTO tries handlers. BlueFlame is not included, because it is faster only for a
 * single small WQE. */
static const enum doca_gpu_dev_verbs_nic_handler auto_order[] = {
	H(GPU_SM_NO_DBR),
	H(GPU_SM_DB),
	H(CPU_PROXY),
};

/* The strategy of each handler, and the reason to report if it is not linked. */
#define STRATEGY(strategy) \
	{ \
		.name = #strategy, \
		.missing = "libgdaki_db_" #strategy ".a is not linked: link -lgdaki, or put " \
			   "-lgdaki_db_" #strategy " behind -lgdaki_qp", \
	}
static const struct {
	const char *name, *missing;
} strategies[] = {
	[H(AUTO)] = { .name = "auto" },	       [H(CPU_PROXY)] = STRATEGY(cpu_proxy),
	[H(GPU_SM_DB)] = STRATEGY(gpu_sm),     [H(GPU_SM_BF)] = STRATEGY(bf),
	[H(GPU_SM_NO_DBR)] = STRATEGY(gpu_sm),
};

/* Returns the name of a handler's strategy, or NULL if the handler is unknown. */
static const char *strategy_of(enum doca_gpu_dev_verbs_nic_handler h)
{
	return (size_t)h < GDK_ARRAY_SIZE(strategies) ? strategies[h].name : NULL;
}

/* Returns the strategy that implements a handler. If it is not linked, returns NULL and sets
 * *reason to the cause and the remedy. */
static const struct gdk_doorbell *linked(const struct choice *c,
					 enum doca_gpu_dev_verbs_nic_handler h, const char **reason)
{
	const struct gdk_slot *slot;

	for (slot = c->slots; slot < c->slots + c->num; slot++)
		if (*slot->ops && ((*slot->ops)->handlers >> h & 1))
			return *slot->ops;
	*reason = strategies[h].missing;
	return NULL;
}

static const char *linked_names(const struct choice *c, char *buf, size_t len)
{
	size_t i, at = 0;

	buf[0] = '\0';
	for (i = 0; i < c->num; i++)
		if (*c->slots[i].ops && at < len)
			at += (size_t)snprintf(buf + at, len - at, "%s%s", at ? ", " : "",
					       (*c->slots[i].ops)->name);
	return at ? buf : "none";
}

/* Probes one candidate and records the result. Returns NULL if the candidate is not usable. */
static const struct gdk_doorbell *try_one(struct choice *c, const struct gdk_doorbell_ask *ask,
					  enum doca_gpu_dev_verbs_nic_handler h)
{
	struct gdk_candidate *to = &c->decision->candidates[c->decision->num_candidates++];
	const struct gdk_doorbell *db = linked(c, h, &to->reason);
	doca_error_t probed;

	to->handler = (uint8_t)h;
	to->strategy = db ? db->name : strategy_of(h);
	if (db) {
		to->reason = "supported by this GPU and NIC";
		probed = db->probe(ask, h, &to->reason);
		to->usable = probed == DOCA_SUCCESS;
		/* Without memory it is not known whether the handler is supported. */
		if (probed == DOCA_ERROR_NO_MEMORY)
			c->err = probed;
	}
	gdk_info("handler %s (%s) on GPU %s: %s: %s", gdk_handler_name(h), to->strategy,
		 gdk_gpu_name(ask->gpu), to->usable ? "usable" : "not usable", to->reason);
	return to->usable ? db : NULL;
}

/* Tries the handlers of AUTO in order. If the caller did not request the DBREC mode, only the first
 * handler is probed without DBREC, the others with VALID_DBR. */
static const struct gdk_doorbell *try_auto(struct choice *c, enum doca_gpu_dev_verbs_nic_handler *h)
{
	struct gdk_doorbell_ask again = *c->ask;
	const struct gdk_doorbell *db;
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(auto_order); i++) {
		if (i && !again.dbr_mode_stated)
			again.dbr_mode = DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR;
		*h = auto_order[i];
		db = try_one(c, &again, *h);
		if (db)
			return db;
	}
	return NULL;
}

static void log_refusal(const struct choice *c)
{
	char names[64], why[3 * (GDK_HANDLER_REASON_LEN + 24)] = "";
	const struct gdk_candidate *at,
		*end = c->decision->candidates + c->decision->num_candidates;
	const char *list = linked_names(c, names, sizeof(names));
	size_t len = 0;

	if (!strcmp(list, "none")) {
		gdk_err("handler %s refused: no doorbell strategy is linked; link -lgdaki, or put "
			"-lgdaki_db_gpu_sm, -lgdaki_db_bf or -lgdaki_db_cpu_proxy behind "
			"-lgdaki_qp",
			gdk_handler_name(c->ask->want));
		return;
	}
	if (c->ask->want == H(AUTO) && !strcmp(list, "bf")) {
		gdk_err("handler AUTO refused: only strategy bf (GPU_SM_BF) is linked, which AUTO "
			"does not select; request GPU_SM_BF, or link gpu_sm or cpu_proxy");
		return;
	}
	for (at = c->decision->candidates; at < end && len < sizeof(why); at++)
		len += (size_t)snprintf(why + len, sizeof(why) - len, "%s%s: %s", len ? "; " : "",
					gdk_handler_name(at->handler), at->reason);
	gdk_err("handler %s refused on GPU %s (%s); linked strategies: %s",
		gdk_handler_name(c->ask->want), gdk_gpu_name(c->ask->gpu), why, list);
}

doca_error_t gdk_doorbell_pick(const struct gdk_slot *slots, size_t num,
			       const struct gdk_doorbell_ask *ask, struct gdk_decision *decision)
{
	struct choice c = { slots, num, ask, decision, DOCA_ERROR_NOT_SUPPORTED };
	enum doca_gpu_dev_verbs_nic_handler h = ask->want;

	memset(decision, 0, sizeof(*decision));
	decision->asked = h;
	decision->chosen = H(TYPE_MAX);
	if (!strategy_of(h)) {
		gdk_err("invalid nic_handler %d" GDK_HANDLERS, (int)h);
		return DOCA_ERROR_INVALID_VALUE;
	}
	/* GPU_SM_DB without a DBREC is the same as GPU_SM_NO_DBR. */
	if (h == H(GPU_SM_DB) && ask->dbr_mode != DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR)
		h = H(GPU_SM_NO_DBR);
	decision->db = h == H(AUTO) ? try_auto(&c, &h) : try_one(&c, ask, h);
	if (!decision->db) {
		log_refusal(&c);
		return c.err;
	}
	decision->chosen = h;
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
		to->strategy = c->strategy;
		to->usable = c->usable;
		snprintf(to->reason, sizeof(to->reason), "%s", c->reason);
	}
}
