/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Pipes of DOCA Flow and their settings. A pipe becomes rules only where an entry of the root leads
 * to it.
 */
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"
#include "qp/flow/flow.h"

doca_error_t doca_flow_pipe_cfg_create(struct doca_flow_pipe_cfg **cfg, struct doca_flow_port *port)
{
	struct doca_flow_pipe_cfg *c;

	GDK_CHECK_PTR(cfg);
	GDK_CHECK_PTR(port);
	c = calloc(1, sizeof(*c));
	if (!c) {
		gdk_err("no memory for settings of a pipe");
		return DOCA_ERROR_NO_MEMORY;
	}
	c->port = port;
	c->type = DOCA_FLOW_PIPE_BASIC;
	strcpy(c->name, "unnamed");
	*cfg = c;
	return DOCA_SUCCESS;
}

doca_error_t doca_flow_pipe_cfg_destroy(struct doca_flow_pipe_cfg *cfg)
{
	GDK_CHECK_PTR(cfg);
	free(cfg);
	return DOCA_SUCCESS;
}

doca_error_t doca_flow_pipe_cfg_set_name(struct doca_flow_pipe_cfg *cfg, const char *name)
{
	GDK_CHECK_PTR(cfg);
	GDK_CHECK_PTR(name);
	GDK_CHECK_ARG(strnlen(name, GDK_FLOW_NAME_MAX) < GDK_FLOW_NAME_MAX,
		      "name \"%.70s\" (expected at most %d characters)", name,
		      GDK_FLOW_NAME_MAX - 1);
	strcpy(cfg->name, name);
	return DOCA_SUCCESS;
}

doca_error_t doca_flow_pipe_cfg_set_type(struct doca_flow_pipe_cfg *cfg,
					 enum doca_flow_pipe_type type)
{
	GDK_CHECK_PTR(cfg);
	if (type != DOCA_FLOW_PIPE_BASIC && type != DOCA_FLOW_PIPE_CONTROL)
		return GDK_FLOW_REFUSE("type %d of a pipe (expected BASIC or CONTROL)", (int)type);
	cfg->type = type;
	return DOCA_SUCCESS;
}

doca_error_t doca_flow_pipe_cfg_set_is_root(struct doca_flow_pipe_cfg *cfg, bool is_root)
{
	GDK_CHECK_PTR(cfg);
	cfg->is_root = is_root;
	return DOCA_SUCCESS;
}

doca_error_t doca_flow_pipe_cfg_set_match(struct doca_flow_pipe_cfg *cfg,
					  const struct doca_flow_match *match,
					  const struct doca_flow_match *match_mask)
{
	struct gdk_flow_spec spec = { 0 };
	doca_error_t err;

	GDK_CHECK_PTR(cfg);
	err = gdk_flow_read_spec(match, match_mask, true, &spec);
	if (!err)
		cfg->spec = spec;
	return err;
}

doca_error_t doca_flow_pipe_cfg_set_monitor(struct doca_flow_pipe_cfg *cfg,
					    const struct doca_flow_monitor *monitor)
{
	GDK_CHECK_PTR(cfg);
	GDK_CHECK_PTR(monitor);
	return gdk_flow_read_monitor(monitor, &cfg->counted);
}

static bool matches_all(const struct gdk_flow_spec *spec)
{
	static const struct gdk_eth_fields none;

	return !memcmp(&spec->match.mask, &none, sizeof(none));
}

static doca_error_t check_control(const struct doca_flow_pipe_cfg *cfg,
				  const struct doca_flow_fwd *fwd,
				  const struct doca_flow_fwd *fwd_miss)
{
	if (!cfg->is_root)
		return GDK_FLOW_REFUSE("is_root false of the control pipe \"%s\"", cfg->name);
	if (cfg->port->root)
		return GDK_FLOW_REFUSE("is_root of the pipe \"%s\" beside the root \"%s\"",
				       cfg->name, cfg->port->root->name);
	if (!matches_all(&cfg->spec))
		return GDK_FLOW_REFUSE("match of the control pipe \"%s\"", cfg->name);
	if (fwd)
		return GDK_FLOW_REFUSE("fwd of the control pipe \"%s\"", cfg->name);
	if (fwd_miss)
		return GDK_FLOW_REFUSE("fwd_miss of the control pipe \"%s\"", cfg->name);
	return DOCA_SUCCESS;
}

static doca_error_t fill_basic(struct doca_flow_pipe *p, const struct doca_flow_fwd *fwd,
			       const struct doca_flow_fwd *fwd_miss)
{
	static const struct doca_flow_fwd drop = { .type = DOCA_FLOW_FWD_DROP };
	uint32_t hit_depth, miss_depth;
	doca_error_t err;

	if (p->is_root)
		return GDK_FLOW_REFUSE("is_root of the basic pipe \"%s\"", p->name);
	GDK_CHECK_PTR(fwd);
	err = gdk_flow_fwd_create(p->port, fwd, "fwd", &p->hit);
	if (!err)
		err = gdk_flow_fwd_create(p->port, fwd_miss ? fwd_miss : &drop, "fwd_miss",
					  &p->miss);
	if (err)
		return err;
	hit_depth = gdk_flow_fwd_depth(&p->hit);
	miss_depth = gdk_flow_fwd_depth(&p->miss);
	p->depth = 1 + (hit_depth > miss_depth ? hit_depth : miss_depth);
	p->levels = gdk_flow_fwd_levels(&p->hit) + gdk_flow_fwd_levels(&p->miss);
	if (p->depth > GDK_FLOW_DEPTH)
		return GDK_FLOW_REFUSE("pipe \"%s\": more than %u pipes in turn", p->name,
				       GDK_FLOW_DEPTH);
	return DOCA_SUCCESS;
}

static doca_error_t fwds_destroy(struct doca_flow_pipe *p)
{
	doca_error_t err = gdk_flow_fwd_destroy(&p->hit);

	return err ? err : gdk_flow_fwd_destroy(&p->miss);
}

static doca_error_t build(struct doca_flow_pipe *p, const struct doca_flow_pipe_cfg *cfg,
			  const struct doca_flow_fwd *fwd, const struct doca_flow_fwd *fwd_miss)
{
	doca_error_t err;

	p->port = cfg->port;
	strcpy(p->name, cfg->name);
	p->is_root = cfg->is_root;
	p->counted = cfg->counted;
	p->spec = cfg->spec;
	if (cfg->type == DOCA_FLOW_PIPE_CONTROL)
		return check_control(cfg, fwd, fwd_miss);
	err = fill_basic(p, fwd, fwd_miss);
	if (err)
		(void)fwds_destroy(p);
	return err;
}

doca_error_t doca_flow_pipe_create(const struct doca_flow_pipe_cfg *cfg,
				   const struct doca_flow_fwd *fwd,
				   const struct doca_flow_fwd *fwd_miss,
				   struct doca_flow_pipe **pipe)
{
	struct doca_flow_pipe *p;
	doca_error_t err;

	GDK_CHECK_PTR(cfg);
	GDK_CHECK_PTR(pipe);
	p = calloc(1, sizeof(*p));
	if (!p) {
		gdk_err("no memory for the pipe \"%s\"", cfg->name);
		return DOCA_ERROR_NO_MEMORY;
	}
	pthread_mutex_lock(&gdk_flow.lock);
	err = build(p, cfg, fwd, fwd_miss);
	if (!err) {
		p->next = cfg->port->pipes;
		cfg->port->pipes = p;
		if (p->is_root)
			cfg->port->root = p;
	}
	pthread_mutex_unlock(&gdk_flow.lock);
	if (err)
		free(p);
	else
		*pipe = p;
	return err;
}

doca_error_t gdk_flow_pipe_free(struct doca_flow_pipe *pipe)
{
	struct doca_flow_pipe **at = &pipe->port->pipes;
	doca_error_t err = DOCA_SUCCESS;

	if (pipe->users) {
		gdk_err("pipe \"%s\": %u pipes or entries forward to it; destroy them first",
			pipe->name, pipe->users);
		return DOCA_ERROR_IN_USE;
	}
	while (pipe->entries && !err)
		err = gdk_flow_entry_destroy(pipe->entries);
	if (!err)
		err = fwds_destroy(pipe);
	if (err)
		return err;
	if (pipe->is_root)
		pipe->port->root = NULL;
	while (*at != pipe)
		at = &(*at)->next;
	*at = pipe->next;
	free(pipe);
	return DOCA_SUCCESS;
}

doca_error_t doca_flow_pipe_destroy(struct doca_flow_pipe *pipe)
{
	doca_error_t err;

	GDK_CHECK_PTR(pipe);
	pthread_mutex_lock(&gdk_flow.lock);
	err = gdk_flow_pipe_free(pipe);
	pthread_mutex_unlock(&gdk_flow.lock);
	return err;
}
