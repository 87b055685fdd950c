/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Settings of DOCA Flow, its begin and its end, and ports. One port is one NIC.
 */
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"
#include "qp/flow/flow.h"

doca_error_t doca_flow_cfg_create(struct doca_flow_cfg **cfg)
{
	struct doca_flow_cfg *c;

	GDK_CHECK_PTR(cfg);
	c = calloc(1, sizeof(*c));
	if (!c) {
		gdk_err("no memory for settings of DOCA Flow");
		return DOCA_ERROR_NO_MEMORY;
	}
	*cfg = c;
	return DOCA_SUCCESS;
}

doca_error_t doca_flow_cfg_destroy(struct doca_flow_cfg *cfg)
{
	GDK_CHECK_PTR(cfg);
	free(cfg);
	return DOCA_SUCCESS;
}

doca_error_t doca_flow_cfg_set_pipe_queues(struct doca_flow_cfg *cfg, uint16_t pipe_queues)
{
	GDK_CHECK_PTR(cfg);
	GDK_CHECK_RANGE(pipe_queues, 1, UINT16_MAX);
	cfg->pipe_queues = pipe_queues;
	return DOCA_SUCCESS;
}

/* The rules are in the kernel's table both with hardware and with software steering, and packets
 * without a rule always go to the kernel. */
doca_error_t doca_flow_cfg_set_mode_args(struct doca_flow_cfg *cfg, const char *mode_args)
{
	static const char *const modes[] = { "vnf", "vnf,hws", "vnf,isolated", "vnf,hws,isolated",
					     "vnf,isolated,hws" };
	size_t i;

	GDK_CHECK_PTR(cfg);
	GDK_CHECK_PTR(mode_args);
	for (i = 0; i < GDK_ARRAY_SIZE(modes); i++)
		if (!strcmp(mode_args, modes[i])) {
			cfg->has_mode = true;
			return DOCA_SUCCESS;
		}
	return GDK_FLOW_REFUSE("mode_args \"%.60s\" (expected \"vnf\" or \"vnf,hws\")", mode_args);
}

doca_error_t doca_flow_cfg_set_nr_counters(struct doca_flow_cfg *cfg, uint32_t nr_counters)
{
	GDK_CHECK_PTR(cfg);
	cfg->nr_counters = nr_counters;
	return DOCA_SUCCESS;
}

doca_error_t doca_flow_init(struct doca_flow_cfg *cfg)
{
	doca_error_t err = DOCA_SUCCESS;

	GDK_CHECK_PTR(cfg);
	if (!cfg->has_mode || !cfg->pipe_queues) {
		gdk_err("doca_flow_init: the %s is not set; call doca_flow_cfg_set_%s()",
			cfg->has_mode ? "number of queues" : "mode",
			cfg->has_mode ? "pipe_queues" : "mode_args");
		return DOCA_ERROR_BAD_STATE;
	}
	pthread_mutex_lock(&gdk_flow.lock);
	if (gdk_flow.ready) {
		gdk_err("DOCA Flow is initialized already; call doca_flow_destroy() first");
		err = DOCA_ERROR_BAD_STATE;
	} else {
		gdk_flow.cfg = *cfg;
		gdk_flow.ready = true;
	}
	pthread_mutex_unlock(&gdk_flow.lock);
	return err;
}

void doca_flow_destroy(void)
{
	pthread_mutex_lock(&gdk_flow.lock);
	while (gdk_flow.ports) {
		gdk_warn("doca_flow_destroy stops port %u, which the program has not stopped",
			 gdk_flow.ports->port_id);
		if (gdk_flow_port_free(gdk_flow.ports))
			break;
	}
	if (gdk_flow.ports)
		gdk_err("DOCA Flow stays initialized, because port %u cannot be stopped; repeat "
			"doca_flow_destroy()",
			gdk_flow.ports->port_id);
	gdk_flow.ready = gdk_flow.ports;
	pthread_mutex_unlock(&gdk_flow.lock);
}

/* ---- ports ---- */

doca_error_t doca_flow_port_cfg_create(struct doca_flow_port_cfg **cfg)
{
	struct doca_flow_port_cfg *c;

	GDK_CHECK_PTR(cfg);
	c = calloc(1, sizeof(*c));
	if (!c) {
		gdk_err("no memory for settings of a port");
		return DOCA_ERROR_NO_MEMORY;
	}
	*cfg = c;
	return DOCA_SUCCESS;
}

doca_error_t doca_flow_port_cfg_destroy(struct doca_flow_port_cfg *cfg)
{
	GDK_CHECK_PTR(cfg);
	free(cfg);
	return DOCA_SUCCESS;
}

doca_error_t doca_flow_port_cfg_set_port_id(struct doca_flow_port_cfg *cfg, uint16_t port_id)
{
	GDK_CHECK_PTR(cfg);
	cfg->port_id = port_id;
	return DOCA_SUCCESS;
}

doca_error_t doca_flow_port_cfg_set_dev(struct doca_flow_port_cfg *cfg, struct doca_dev *dev)
{
	GDK_CHECK_PTR(cfg);
	if (!gdk_dev_is_open(dev, __func__))
		return DOCA_ERROR_INVALID_VALUE;
	cfg->dev = dev;
	return DOCA_SUCCESS;
}

/* Two ports of one NIC would install rules with the same priorities. */
static doca_error_t may_start(const struct doca_flow_port_cfg *cfg)
{
	const struct doca_flow_port *p;

	if (!gdk_flow.ready) {
		gdk_err("DOCA Flow is not initialized; call doca_flow_init() first");
		return DOCA_ERROR_BAD_STATE;
	}
	for (p = gdk_flow.ports; p; p = p->next)
		if (p->port_id == cfg->port_id || p->dev == cfg->dev) {
			gdk_err("%s: the NIC or the number %u has a port already; stop it with "
				"doca_flow_port_stop()",
				ibv_get_device_name(cfg->dev->ctx->device), cfg->port_id);
			return DOCA_ERROR_ALREADY_EXIST;
		}
	return DOCA_SUCCESS;
}

doca_error_t doca_flow_port_start(const struct doca_flow_port_cfg *cfg,
				  struct doca_flow_port **port)
{
	struct doca_flow_port *p;
	doca_error_t err;

	GDK_CHECK_PTR(cfg);
	GDK_CHECK_PTR(port);
	if (!gdk_dev_is_open(cfg->dev, __func__))
		return DOCA_ERROR_INVALID_VALUE;
	p = calloc(1, sizeof(*p));
	if (!p) {
		gdk_err("no memory for a port");
		return DOCA_ERROR_NO_MEMORY;
	}
	p->port_id = cfg->port_id;
	p->dev = cfg->dev;
	pthread_mutex_lock(&gdk_flow.lock);
	err = may_start(cfg);
	if (!err) {
		atomic_fetch_add(&p->dev->users, 1);
		p->next = gdk_flow.ports;
		gdk_flow.ports = p;
	}
	pthread_mutex_unlock(&gdk_flow.lock);
	if (err)
		free(p);
	else
		*port = p;
	return err;
}

doca_error_t gdk_flow_port_free(struct doca_flow_port *port)
{
	struct doca_flow_port **at = &gdk_flow.ports;
	struct doca_flow_pipe *p;
	doca_error_t err = DOCA_SUCCESS;

	/* The root goes first: its entries forward to the others. A pipe forwards to older ones. */
	if (port->root)
		err = gdk_flow_pipe_free(port->root);
	while (!err && port->pipes) {
		p = port->pipes;
		err = gdk_flow_pipe_free(p);
	}
	if (err)
		return err;
	while (*at != port)
		at = &(*at)->next;
	*at = port->next;
	atomic_fetch_sub(&port->dev->users, 1);
	free(port);
	return DOCA_SUCCESS;
}

doca_error_t doca_flow_port_stop(struct doca_flow_port *port)
{
	doca_error_t err;

	GDK_CHECK_PTR(port);
	pthread_mutex_lock(&gdk_flow.lock);
	err = gdk_flow_port_free(port);
	pthread_mutex_unlock(&gdk_flow.lock);
	return err;
}
