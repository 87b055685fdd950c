/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Private definitions of DOCA Flow: settings (cfg.c), ports (port.c), pipes (pipe.c), entries
 * (entry.c) and the rules that they become (flatten.c). One lock protects all of it, because an
 * entry can change rules of several pipes.
 *
 * Each root entry with priority p has the priorities p * GDK_FLOW_LEVELS and those behind it in the
 * NIC's table. A hit of a pipe comes before its miss, so that each miss in turn needs one level
 * more.
 */
#ifndef GDK_FLOW_H
#define GDK_FLOW_H

#include <pthread.h>

#include "qp/flow/steer.h"

#include "doca_flow.h"

#define GDK_FLOW_NAME_MAX	 64
#define GDK_FLOW_LEVELS		 4u
#define GDK_FLOW_ROOT_PRIORITIES ((GDK_ETH_PRIORITY_LAST + 1) / GDK_FLOW_LEVELS)
/* Most pipes that forward to each other in turn, so that recursion is bounded. */
#define GDK_FLOW_DEPTH 8u

struct doca_flow_cfg {
	uint16_t pipe_queues;
	uint32_t nr_counters;
	bool has_mode;
};

struct doca_flow_port_cfg {
	uint16_t port_id;
	struct doca_dev *dev;
};

/* What a pipe or a root entry matches. In the fields of per_entry, the entries of a basic pipe have
 * values of their own; match.mask has their bits, match.value does not. */
struct gdk_flow_spec {
	struct gdk_eth_match match;
	struct gdk_eth_fields per_entry;
};

struct doca_flow_pipe_cfg {
	struct doca_flow_port *port;
	char name[GDK_FLOW_NAME_MAX];
	enum doca_flow_pipe_type type;
	bool is_root, counted;
	struct gdk_flow_spec spec;
};

struct gdk_flow_fwd {
	enum doca_flow_fwd_type type; /* RSS, PIPE or DROP */
	struct doca_flow_pipe *pipe;
	struct gdk_rss *rss; /* owned */
};

struct doca_flow_pipe_entry {
	struct doca_flow_pipe *pipe;
	struct gdk_eth_match match;
	uint32_t priority;	 /* of a root entry */
	struct gdk_flow_fwd fwd; /* of a root entry */
	struct doca_flow_pipe_entry *next;
};

struct doca_flow_pipe {
	struct doca_flow_port *port;
	char name[GDK_FLOW_NAME_MAX];
	bool is_root, counted;
	struct gdk_flow_spec spec;
	struct gdk_flow_fwd hit, miss;
	uint32_t levels, depth; /* of a basic pipe: priorities that it needs, pipes in turn */
	uint32_t users;		/* pipes and root entries that forward to it */
	struct doca_flow_pipe_entry *entries;
	struct doca_flow_pipe *next;
};

/* The entries that a packet of a rule has passed, from the root on. */
struct gdk_flow_path {
	struct doca_flow_pipe_entry *entry[GDK_FLOW_DEPTH + 1];
	uint32_t len;
};

struct gdk_flow_rule {
	struct gdk_rule *rule;
	struct gdk_eth_match match;
	uint32_t priority;
	bool counted;
	struct gdk_flow_path path;
	struct gdk_flow_rule *next;
};

struct doca_flow_port {
	uint16_t port_id;
	struct doca_dev *dev;
	struct doca_flow_pipe *root, *pipes; /* pipes: the newest first, the root included */
	struct gdk_flow_rule *rules;
	struct doca_flow_port *next;
};

struct gdk_flow {
	pthread_mutex_t lock;
	bool ready;
	struct doca_flow_cfg cfg;
	uint32_t counters; /* entries that have counters */
	struct doca_flow_port *ports;
};

extern struct gdk_flow gdk_flow;

/* Logs that a value of a program is not supported, and returns NOT_SUPPORTED. */
#define GDK_FLOW_REFUSE(fmt, ...) \
	(gdk_err("DOCA Flow: " fmt " is not supported", ##__VA_ARGS__), DOCA_ERROR_NOT_SUPPORTED)

/* read_match.c: reads the match of a basic pipe, of an entry of a control pipe (may_vary false), or
 * of an entry of a pipe with this spec. Refuses unsupported fields. */
doca_error_t gdk_flow_read_spec(const struct doca_flow_match *match,
				const struct doca_flow_match *mask, bool may_vary,
				struct gdk_flow_spec *spec);
doca_error_t gdk_flow_read_values(const struct gdk_flow_spec *spec,
				  const struct doca_flow_match *match,
				  struct gdk_eth_match *values);

/* fwd.c: reads a forward and creates its destination; a forward to a pipe becomes its user. what:
 * the name of the argument. */
doca_error_t gdk_flow_fwd_create(struct doca_flow_port *port, const struct doca_flow_fwd *from,
				 const char *what, struct gdk_flow_fwd *fwd);
doca_error_t gdk_flow_fwd_destroy(struct gdk_flow_fwd *fwd);
uint32_t gdk_flow_fwd_levels(const struct gdk_flow_fwd *fwd);
uint32_t gdk_flow_fwd_depth(const struct gdk_flow_fwd *fwd);
/* Reads a monitor. */
doca_error_t gdk_flow_read_monitor(const struct doca_flow_monitor *monitor, bool *counted);

/* flatten.c: installs the rules that an entry adds; after an error, some of them. */
doca_error_t gdk_flow_install(struct doca_flow_pipe_entry *entry);
/* Removes the rules whose packets pass an entry. Stops at the first error. */
doca_error_t gdk_flow_uninstall(struct doca_flow_pipe_entry *entry);

/* entry.c: removes an entry with its rules. After an error it is valid. */
doca_error_t gdk_flow_entry_destroy(struct doca_flow_pipe_entry *entry);
/* pipe.c, port.c: the lock is held. */
doca_error_t gdk_flow_pipe_free(struct doca_flow_pipe *pipe);
doca_error_t gdk_flow_port_free(struct doca_flow_port *port);

#endif
