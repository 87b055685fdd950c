/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Rules of entries. A packet goes from an entry of the root through pipes, each of which it hits or
 * misses, to queues or nowhere. Each such path is one rule, whose match is that of all entries on
 * it. The match of a miss is that of the path before the pipe, with a later priority than the
 * pipe's entries.
 */
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"
#include "qp/flow/flow.h"

/* The state of a walk along the paths of one root entry. */
struct walk {
	struct doca_flow_port *port;
	const struct doca_flow_pipe_entry *through; /* the entry that a path must pass */
	struct gdk_flow_path path;
};

static bool passes(const struct gdk_flow_path *path, const struct doca_flow_pipe_entry *entry)
{
	uint32_t i;

	for (i = 0; i < path->len; i++)
		if (path->entry[i] == entry)
			return true;
	return false;
}

static bool any_counted(const struct gdk_flow_path *path)
{
	uint32_t i;

	for (i = 0; i < path->len; i++)
		if (path->entry[i]->pipe->counted)
			return true;
	return false;
}

/* The NIC would copy a packet that matches two rules with the same match and priority. */
static doca_error_t check_same(const struct walk *w, const struct gdk_eth_match *match,
			       uint32_t priority)
{
	const struct doca_flow_pipe_entry *last = w->path.entry[w->path.len - 1];
	const struct gdk_flow_rule *r;

	for (r = w->port->rules; r; r = r->next) {
		if (r->priority != priority || !gdk_match_same(&r->match, match))
			continue;
		gdk_err("pipe \"%s\": an entry with the match and the priority of another one; "
			"use another priority in the root",
			last->pipe->name);
		return DOCA_ERROR_ALREADY_EXIST;
	}
	return DOCA_SUCCESS;
}

static doca_error_t add_rule(const struct walk *w, const struct gdk_eth_match *match,
			     const struct gdk_flow_fwd *fwd, uint32_t priority)
{
	struct gdk_flow_rule *r;
	doca_error_t err;

	if (!passes(&w->path, w->through))
		return DOCA_SUCCESS;
	err = check_same(w, match, priority);
	if (err)
		return err;
	r = calloc(1, sizeof(*r));
	if (!r) {
		gdk_err("no memory for a flow rule");
		return DOCA_ERROR_NO_MEMORY;
	}
	r->match = *match;
	r->priority = priority;
	r->path = w->path;
	r->counted = any_counted(&w->path);
	err = gdk_rule_create(w->port->dev, match, priority, fwd->rss, r->counted, &r->rule);
	if (err) {
		free(r);
		return err;
	}
	r->next = w->port->rules;
	w->port->rules = r;
	return DOCA_SUCCESS;
}

static doca_error_t walk_fwd(struct walk *w, const struct gdk_eth_match *match,
			     const struct gdk_flow_fwd *fwd, uint32_t priority);

static doca_error_t walk_entry(struct walk *w, const struct gdk_eth_match *before,
			       struct doca_flow_pipe_entry *entry, uint32_t priority)
{
	struct gdk_eth_match match = *before;
	const char *field = gdk_match_add(&match, &entry->match);
	doca_error_t err;

	if (field) {
		gdk_warn("pipe \"%s\": an entry matches no packet, because entries before it "
			 "require another %s",
			 entry->pipe->name, field);
		return DOCA_SUCCESS;
	}
	w->path.entry[w->path.len++] = entry;
	err = walk_fwd(w, &match, &entry->pipe->hit, priority);
	w->path.len--;
	return err;
}

static doca_error_t walk_fwd(struct walk *w, const struct gdk_eth_match *match,
			     const struct gdk_flow_fwd *fwd, uint32_t priority)
{
	struct doca_flow_pipe_entry *entry;
	struct doca_flow_pipe *pipe = fwd->pipe;
	doca_error_t err = DOCA_SUCCESS;

	if (!pipe)
		return add_rule(w, match, fwd, priority);
	for (entry = pipe->entries; entry && !err; entry = entry->next)
		if (pipe != w->through->pipe || entry == w->through)
			err = walk_entry(w, match, entry, priority);
	if (err)
		return err;
	return walk_fwd(w, match, &pipe->miss, priority + gdk_flow_fwd_levels(&pipe->hit));
}

static doca_error_t walk_root(struct doca_flow_pipe_entry *root,
			      const struct doca_flow_pipe_entry *through)
{
	struct walk w = { .port = root->pipe->port, .through = through };

	w.path.entry[w.path.len++] = root;
	return walk_fwd(&w, &root->match, &root->fwd, root->priority * GDK_FLOW_LEVELS);
}

doca_error_t gdk_flow_install(struct doca_flow_pipe_entry *entry)
{
	struct doca_flow_pipe_entry *root = entry->pipe->port->root
						    ? entry->pipe->port->root->entries
						    : NULL;
	doca_error_t err = DOCA_SUCCESS;

	if (entry->pipe->is_root)
		err = walk_root(entry, entry);
	else
		for (; root && !err; root = root->next)
			err = walk_root(root, entry);
	return err;
}

doca_error_t gdk_flow_uninstall(struct doca_flow_pipe_entry *entry)
{
	struct gdk_flow_rule **at = &entry->pipe->port->rules, *r;
	doca_error_t err;

	while (*at) {
		r = *at;
		if (!passes(&r->path, entry)) {
			at = &r->next;
			continue;
		}
		err = gdk_rule_destroy(r->rule);
		if (err)
			return err;
		*at = r->next;
		free(r);
	}
	return DOCA_SUCCESS;
}
