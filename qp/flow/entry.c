/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Entries of DOCA Flow: they are added, removed and queried.
 */
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"
#include "qp/flow/flow.h"

#define FLAGS_ALL ((uint32_t)DOCA_FLOW_ENTRY_FLAGS_WAIT_FOR_BATCH)

/* Arguments of the functions that add entries which must be NULL. */
#define NEED_NULL(arg) \
	do { \
		if (arg) \
			return GDK_FLOW_REFUSE("%s of an entry", #arg); \
	} while (0)

static doca_error_t check_queue(uint16_t pipe_queue)
{
	const uint16_t queues = gdk_flow.cfg.pipe_queues;

	GDK_CHECK_ARG(pipe_queue < queues, "pipe_queue %u (expected 0 to %d)", pipe_queue,
		      queues - 1);
	return DOCA_SUCCESS;
}

static doca_error_t check_flags(uint32_t flags)
{
	GDK_CHECK_ARG(!(flags & ~FLAGS_ALL), "flags 0x%x (expected 0 or 0x%x)", flags, FLAGS_ALL);
	return DOCA_SUCCESS;
}

static doca_error_t check_counters(const struct doca_flow_pipe *pipe)
{
	if (!pipe->counted || gdk_flow.counters < gdk_flow.cfg.nr_counters)
		return DOCA_SUCCESS;
	gdk_err("pipe \"%s\": no counter is left for an entry (%u exist); raise the number of "
		"doca_flow_cfg_set_nr_counters()",
		pipe->name, gdk_flow.counters);
	return DOCA_ERROR_FULL;
}

static doca_error_t prepare(struct doca_flow_pipe_entry *e, uint16_t pipe_queue,
			    const struct doca_flow_fwd *fwd)
{
	doca_error_t err = check_queue(pipe_queue);

	if (!err)
		err = check_counters(e->pipe);
	if (err || !fwd)
		return err;
	err = gdk_flow_fwd_create(e->pipe->port, fwd, "fwd", &e->fwd);
	if (err || gdk_flow_fwd_levels(&e->fwd) <= GDK_FLOW_LEVELS)
		return err;
	err = GDK_FLOW_REFUSE("fwd->next_pipe \"%s\": more than %u misses in turn",
			      e->fwd.pipe->name, GDK_FLOW_LEVELS - 1);
	(void)gdk_flow_fwd_destroy(&e->fwd);
	return err;
}

/* Adds a copy of from. The lock is held. If rules of an entry whose installation failed cannot be
 * removed, the entry stays in its pipe, which removes them when it is destroyed. */
static doca_error_t add_locked(uint16_t pipe_queue, const struct doca_flow_pipe_entry *from,
			       const struct doca_flow_fwd *fwd, struct doca_flow_pipe_entry **entry)
{
	struct doca_flow_pipe_entry *e = calloc(1, sizeof(*e));
	doca_error_t err;

	if (!e) {
		gdk_err("no memory for an entry of the pipe \"%s\"", from->pipe->name);
		return DOCA_ERROR_NO_MEMORY;
	}
	*e = *from;
	err = prepare(e, pipe_queue, fwd);
	if (err) {
		free(e);
		return err;
	}
	e->next = e->pipe->entries;
	e->pipe->entries = e;
	gdk_flow.counters += e->pipe->counted;
	err = gdk_flow_install(e);
	if (err)
		(void)gdk_flow_entry_destroy(e);
	else
		*entry = e;
	return err;
}

static doca_error_t add(uint16_t pipe_queue, const struct doca_flow_pipe_entry *from,
			const struct doca_flow_fwd *fwd, struct doca_flow_pipe_entry **entry)
{
	doca_error_t err;

	pthread_mutex_lock(&gdk_flow.lock);
	err = add_locked(pipe_queue, from, fwd, entry);
	pthread_mutex_unlock(&gdk_flow.lock);
	return err;
}

doca_error_t doca_flow_pipe_basic_add_entry(uint16_t pipe_queue, struct doca_flow_pipe *pipe,
					    const struct doca_flow_match *match,
					    uint32_t action_idx,
					    const struct doca_flow_actions *actions,
					    const struct doca_flow_monitor *monitor,
					    const struct doca_flow_fwd *fwd, uint32_t flags,
					    void *usr_ctx, struct doca_flow_pipe_entry **entry)
{
	struct doca_flow_pipe_entry from = { .pipe = pipe };
	doca_error_t err;

	GDK_CHECK_PTR(pipe);
	GDK_CHECK_PTR(entry);
	GDK_CHECK_ARG(!pipe->is_root, "pipe \"%s\": a control pipe (expected a basic one)",
		      pipe->name);
	if (action_idx)
		return GDK_FLOW_REFUSE("action_idx %u of an entry", action_idx);
	NEED_NULL(actions);
	NEED_NULL(monitor);
	NEED_NULL(fwd);
	NEED_NULL(usr_ctx);
	err = check_flags(flags);
	if (!err)
		err = gdk_flow_read_values(&pipe->spec, match, &from.match);
	return err ? err : add(pipe_queue, &from, NULL, entry);
}

doca_error_t doca_flow_pipe_control_add_entry(
	uint16_t pipe_queue, struct doca_flow_pipe *pipe, const struct doca_flow_match *match,
	const struct doca_flow_match *match_mask, const struct doca_flow_match_condition *condition,
	const struct doca_flow_actions *actions, const struct doca_flow_actions *actions_mask,
	const struct doca_flow_action_descs *action_descs, const struct doca_flow_monitor *monitor,
	uint32_t priority, const struct doca_flow_fwd *fwd, void *usr_ctx,
	struct doca_flow_pipe_entry **entry)
{
	struct doca_flow_pipe_entry from = { .pipe = pipe, .priority = priority };
	struct gdk_flow_spec spec = { 0 };
	doca_error_t err;

	GDK_CHECK_PTR(pipe);
	GDK_CHECK_PTR(fwd);
	GDK_CHECK_PTR(entry);
	GDK_CHECK_ARG(pipe->is_root, "pipe \"%s\": a basic pipe (expected a control pipe)",
		      pipe->name);
	NEED_NULL(condition);
	NEED_NULL(actions);
	NEED_NULL(actions_mask);
	NEED_NULL(action_descs);
	NEED_NULL(monitor);
	NEED_NULL(usr_ctx);
	if (priority >= GDK_FLOW_ROOT_PRIORITIES)
		return GDK_FLOW_REFUSE("priority %u (expected 0 to %u)", priority,
				       GDK_FLOW_ROOT_PRIORITIES - 1);
	err = gdk_flow_read_spec(match, match_mask, false, &spec);
	from.match = spec.match;
	return err ? err : add(pipe_queue, &from, fwd, entry);
}

/* The function of version 3.2, which doca_flow.h binds to this name. */
doca_error_t gdk_doca_flow_control_add_entry_3_2(
	uint16_t pipe_queue, uint32_t priority, struct doca_flow_pipe *pipe,
	const struct doca_flow_match *match, const struct doca_flow_match *match_mask,
	const struct doca_flow_match_condition *condition, const struct doca_flow_actions *actions,
	const struct doca_flow_actions *actions_mask,
	const struct doca_flow_action_descs *action_descs, const struct doca_flow_monitor *monitor,
	const struct doca_flow_fwd *fwd, void *usr_ctx, struct doca_flow_pipe_entry **entry);

doca_error_t gdk_doca_flow_control_add_entry_3_2(
	uint16_t pipe_queue, uint32_t priority, struct doca_flow_pipe *pipe,
	const struct doca_flow_match *match, const struct doca_flow_match *match_mask,
	const struct doca_flow_match_condition *condition, const struct doca_flow_actions *actions,
	const struct doca_flow_actions *actions_mask,
	const struct doca_flow_action_descs *action_descs, const struct doca_flow_monitor *monitor,
	const struct doca_flow_fwd *fwd, void *usr_ctx, struct doca_flow_pipe_entry **entry)
{
	return doca_flow_pipe_control_add_entry(pipe_queue, pipe, match, match_mask, condition,
						actions, actions_mask, action_descs, monitor,
						priority, fwd, usr_ctx, entry);
}

doca_error_t gdk_flow_entry_destroy(struct doca_flow_pipe_entry *entry)
{
	struct doca_flow_pipe_entry **at = &entry->pipe->entries;
	doca_error_t err = gdk_flow_uninstall(entry);

	if (!err)
		err = gdk_flow_fwd_destroy(&entry->fwd);
	if (err)
		return err;
	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	gdk_flow.counters -= entry->pipe->counted;
	free(entry);
	return DOCA_SUCCESS;
}

doca_error_t doca_flow_pipe_remove_entry(uint16_t pipe_queue, uint32_t flags,
					 struct doca_flow_pipe_entry *entry)
{
	doca_error_t err;

	GDK_CHECK_PTR(entry);
	err = check_flags(flags);
	if (err)
		return err;
	pthread_mutex_lock(&gdk_flow.lock);
	err = check_queue(pipe_queue);
	if (!err)
		err = gdk_flow_entry_destroy(entry);
	pthread_mutex_unlock(&gdk_flow.lock);
	return err;
}

/* Nothing is pending: the functions that add and remove entries complete what they do. */
doca_error_t doca_flow_entries_process(struct doca_flow_port *port, uint16_t pipe_queue,
				       uint64_t timeout, uint32_t max_processed_entries)
{
	doca_error_t err;

	(void)timeout;
	(void)max_processed_entries;
	GDK_CHECK_PTR(port);
	pthread_mutex_lock(&gdk_flow.lock);
	err = check_queue(pipe_queue);
	pthread_mutex_unlock(&gdk_flow.lock);
	return err;
}

static doca_error_t query(struct doca_flow_pipe_entry *entry, uint64_t *packets, uint64_t *bytes)
{
	const struct gdk_flow_rule *r;
	doca_error_t err = DOCA_SUCCESS;
	uint32_t i;

	if (!entry->pipe->counted) {
		gdk_err("pipe \"%s\": its entries have no counters; call "
			"doca_flow_pipe_cfg_set_monitor()",
			entry->pipe->name);
		return DOCA_ERROR_BAD_STATE;
	}
	for (r = entry->pipe->port->rules; r && !err; r = r->next)
		for (i = 0; i < r->path.len; i++)
			if (r->path.entry[i] == entry) {
				err = gdk_rule_query(r->rule, packets, bytes);
				break;
			}
	return err;
}

doca_error_t doca_flow_resource_query_entry(struct doca_flow_pipe_entry *entry,
					    struct doca_flow_resource_query *query_stats)
{
	uint64_t packets = 0, bytes = 0;
	doca_error_t err;

	GDK_CHECK_PTR(entry);
	GDK_CHECK_PTR(query_stats);
	pthread_mutex_lock(&gdk_flow.lock);
	err = query(entry, &packets, &bytes);
	pthread_mutex_unlock(&gdk_flow.lock);
	if (err)
		return err;
	query_stats->counter.total_pkts = packets;
	query_stats->counter.total_bytes = bytes;
	return DOCA_SUCCESS;
}
