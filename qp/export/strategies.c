/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Table of the doorbell strategies that a program can be linked with. The linker takes their
 * archives because of the references in this file. It is in qp/, a layer above doorbell/, so
 * that the order of the strategies on the link line does not matter.
 */
#include "core/util.h"
#include "qp/export/export.h"

#define SLOT(strategy) \
	{ \
		.name = #strategy, .ops = &gdk_doorbell_##strategy \
	}

static const struct gdk_slot slots[] = {
	SLOT(gpu_sm),
	SLOT(bf),
	SLOT(cpu_proxy),
};

/* Only the references matter: core/unlinked.c describes the first three, doorbell.h the last. */
static const bool *const references[] __attribute__((__used__)) = {
	&gdk_doorbell_gpu_sm_linked,
	&gdk_doorbell_bf_linked,
	&gdk_doorbell_cpu_proxy_linked,
	&GDK_ANY_STRATEGY,
};

doca_error_t gdk_choose_doorbell(const struct gdk_doorbell_ask *ask, struct gdk_decision *decision)
{
	return gdk_doorbell_pick(slots, GDK_ARRAY_SIZE(slots), ask, decision);
}
