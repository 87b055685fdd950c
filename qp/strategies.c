/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Table of the doorbell strategies that a program can be linked with. The linker takes their
 * archives because of the references in this table. The table is in qp/, a layer above doorbell/,
 * so that the order of the strategies on the link line does not matter. libgdaki_db_none.a must
 * be behind them.
 */
#include "core/util.h"
#include "qp/export.h"

#define SLOT(strategy) \
	{ \
#strategy, &gdk_doorbell_##strategy, &gdk_doorbell_##strategy##_linked \
	}

static const struct gdk_slot slots[] = {
	SLOT(gpu_sm),
	SLOT(bf),
	SLOT(cpu_proxy),
};

doca_error_t gdk_choose_doorbell(const struct gdk_doorbell_ask *ask, struct gdk_decision *decision)
{
	return gdk_doorbell_pick(slots, GDK_ARRAY_SIZE(slots), ask, decision);
}
