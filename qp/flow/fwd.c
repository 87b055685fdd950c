/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Forwards of DOCA Flow: to receive queues, to a pipe, or nowhere; and monitors.
 */
#include <stdlib.h>

#include "core/log/log.h"
#include "qp/flow/flow.h"

#define RSS_ALL ((uint32_t)(DOCA_FLOW_RSS_IPV4 | DOCA_FLOW_RSS_UDP | DOCA_FLOW_RSS_TCP))

static uint32_t hash_of(uint32_t flags)
{
	return (flags & DOCA_FLOW_RSS_IPV4 ? GDK_ETH_HASH_IPV4 : 0) |
	       (flags & DOCA_FLOW_RSS_UDP ? GDK_ETH_HASH_UDP : 0) |
	       (flags & DOCA_FLOW_RSS_TCP ? GDK_ETH_HASH_TCP : 0);
}

static doca_error_t check_rss(const struct doca_flow_fwd *from, const char *what)
{
	const struct doca_flow_resource_rss_cfg *rss = &from->rss;

	if (from->rss_type != DOCA_FLOW_RESOURCE_TYPE_NON_SHARED)
		return GDK_FLOW_REFUSE("%s->rss_type %d (expected NON_SHARED)", what,
				       (int)from->rss_type);
	if (rss->outer_flags & ~RSS_ALL)
		return GDK_FLOW_REFUSE("%s->rss.outer_flags 0x%x (expected IPV4, UDP and TCP)",
				       what, rss->outer_flags);
	if (rss->inner_flags)
		return GDK_FLOW_REFUSE("%s->rss.inner_flags 0x%x", what, rss->inner_flags);
	GDK_CHECK_ARG(rss->nr_queues >= 1 && rss->nr_queues <= GDK_ETH_QUEUES_MAX,
		      "%s->rss.nr_queues %d (expected 1 to %d)", what, rss->nr_queues,
		      GDK_ETH_QUEUES_MAX);
	GDK_CHECK_ARG(rss->queues_array, "%s->rss.queues_array NULL", what);
	GDK_CHECK_ARG(rss->outer_flags || rss->nr_queues == 1,
		      "%s->rss.outer_flags 0 with %d queues (expected flags or one queue)", what,
		      rss->nr_queues);
	return DOCA_SUCCESS;
}

static doca_error_t to_queues(struct doca_flow_port *port, const struct doca_flow_fwd *from,
			      const char *what, struct gdk_flow_fwd *fwd)
{
	struct doca_eth_rxq *rxqs[GDK_ETH_QUEUES_MAX];
	doca_error_t err = check_rss(from, what);
	uint16_t id;
	int i;

	if (err)
		return err;
	for (i = 0; i < from->rss.nr_queues; i++) {
		id = from->rss.queues_array[i];
		rxqs[i] = gdk_eth_rxq_find(port->dev, id);
		if (!rxqs[i]) {
			gdk_err("%s->rss.queues_array[%d]: no receive queue of the NIC has the "
				"number %u; call doca_eth_rxq_apply_queue_id()",
				what, i, id);
			return DOCA_ERROR_NOT_FOUND;
		}
		if (!gdk_eth_rxq_runs(rxqs[i], "doca_flow_fwd"))
			return DOCA_ERROR_BAD_STATE;
	}
	return gdk_rss_create(port->dev, rxqs, (uint32_t)from->rss.nr_queues,
			      hash_of(from->rss.outer_flags), &fwd->rss);
}

static doca_error_t to_pipe(struct doca_flow_port *port, const struct doca_flow_fwd *from,
			    const char *what, struct gdk_flow_fwd *fwd)
{
	struct doca_flow_pipe *next = from->next_pipe;

	GDK_CHECK_ARG(next, "%s->next_pipe NULL", what);
	GDK_CHECK_ARG(next->port == port, "%s->next_pipe \"%s\": a pipe of another port", what,
		      next->name);
	if (next->is_root)
		return GDK_FLOW_REFUSE("%s->next_pipe \"%s\": a forward to the root", what,
				       next->name);
	next->users++;
	fwd->pipe = next;
	return DOCA_SUCCESS;
}

doca_error_t gdk_flow_fwd_create(struct doca_flow_port *port, const struct doca_flow_fwd *from,
				 const char *what, struct gdk_flow_fwd *fwd)
{
	struct gdk_flow_fwd to = { .type = from->type };
	doca_error_t err = DOCA_SUCCESS;

	switch (from->type) {
	case DOCA_FLOW_FWD_DROP:
		break;
	case DOCA_FLOW_FWD_PIPE:
		err = to_pipe(port, from, what, &to);
		break;
	case DOCA_FLOW_FWD_RSS:
		err = to_queues(port, from, what, &to);
		break;
	default:
		return GDK_FLOW_REFUSE("%s->type %d (expected RSS, PIPE or DROP)", what,
				       (int)from->type);
	}
	if (!err)
		*fwd = to;
	return err;
}

doca_error_t gdk_flow_fwd_destroy(struct gdk_flow_fwd *fwd)
{
	doca_error_t err;

	if (fwd->rss) {
		err = gdk_rss_destroy(fwd->rss);
		if (err)
			return err;
		fwd->rss = NULL;
	}
	if (fwd->pipe)
		fwd->pipe->users--;
	fwd->pipe = NULL;
	return DOCA_SUCCESS;
}

uint32_t gdk_flow_fwd_levels(const struct gdk_flow_fwd *fwd)
{
	return fwd->pipe ? fwd->pipe->levels : 1;
}

uint32_t gdk_flow_fwd_depth(const struct gdk_flow_fwd *fwd)
{
	return fwd->pipe ? fwd->pipe->depth : 0;
}

doca_error_t gdk_flow_read_monitor(const struct doca_flow_monitor *monitor, bool *counted)
{
	const enum doca_flow_resource_type type = monitor->counter_type;

	if (type != DOCA_FLOW_RESOURCE_TYPE_NONE && type != DOCA_FLOW_RESOURCE_TYPE_NON_SHARED)
		return GDK_FLOW_REFUSE("monitor->counter_type %d (expected NON_SHARED)", (int)type);
	if (monitor->meter_type)
		return GDK_FLOW_REFUSE("monitor->meter_type %d", (int)monitor->meter_type);
	if (monitor->aging_sec)
		return GDK_FLOW_REFUSE("monitor->aging_sec %u", monitor->aging_sec);
	*counted = type == DOCA_FLOW_RESOURCE_TYPE_NON_SHARED;
	return DOCA_SUCCESS;
}
