/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * For tests of DOCA Flow: a started port of the NIC of steer_rig.h, a root, and short forms of the
 * functions that create pipes and entries.
 */
#ifndef DFLOW_RIG_H
#define DFLOW_RIG_H

#include "../../qp/flow/flow.h"

#include "steer_rig.h"

#define COUNTERS 16u

static struct doca_flow_port *port;
static struct doca_flow_pipe *root;
static struct doca_flow_match match, match_mask;

static const struct doca_flow_fwd to_drop = { .type = DOCA_FLOW_FWD_DROP };

static inline doca_error_t flow_init(const char *mode, uint16_t queues)
{
	struct doca_flow_cfg *cfg;
	doca_error_t err;

	OK(doca_flow_cfg_create(&cfg));
	OK(doca_flow_cfg_set_pipe_queues(cfg, queues));
	OK(doca_flow_cfg_set_mode_args(cfg, mode));
	OK(doca_flow_cfg_set_nr_counters(cfg, COUNTERS));
	err = doca_flow_init(cfg);
	OK(doca_flow_cfg_destroy(cfg));
	return err;
}

static inline doca_error_t port_start(uint16_t id, struct doca_dev *of, struct doca_flow_port **p)
{
	struct doca_flow_port_cfg *cfg;
	doca_error_t err;

	OK(doca_flow_port_cfg_create(&cfg));
	OK(doca_flow_port_cfg_set_port_id(cfg, id));
	OK(doca_flow_port_cfg_set_dev(cfg, of));
	err = doca_flow_port_start(cfg, p);
	OK(doca_flow_port_cfg_destroy(cfg));
	return err;
}

static inline struct doca_flow_fwd to_pipe(struct doca_flow_pipe *pipe)
{
	return (struct doca_flow_fwd){ .type = DOCA_FLOW_FWD_PIPE, .next_pipe = pipe };
}

/* first: the first of n queues, in an array that the next call overwrites */
static inline struct doca_flow_fwd to_rss(uint16_t first, int n, uint32_t flags)
{
	static uint16_t ids[QUEUES];
	int i;

	for (i = 0; i < n; i++)
		ids[i] = (uint16_t)(first + i);
	return (struct doca_flow_fwd){
		.type = DOCA_FLOW_FWD_RSS,
		.rss_type = DOCA_FLOW_RESOURCE_TYPE_NON_SHARED,
		.rss = { .queues_array = ids, .nr_queues = n, .outer_flags = flags },
	};
}

static inline struct doca_flow_fwd to_queue(uint16_t queue)
{
	return to_rss(queue, 1, DOCA_FLOW_RSS_IPV4);
}

/* A basic pipe with the match of `match` and, if masked, `match_mask`; both are cleared. */
static inline doca_error_t pipe_try(bool masked, struct doca_flow_fwd fwd,
				    const struct doca_flow_fwd *miss, struct doca_flow_pipe **pipe)
{
	const struct doca_flow_monitor monitor = {
		.counter_type = DOCA_FLOW_RESOURCE_TYPE_NON_SHARED,
	};
	struct doca_flow_pipe_cfg *cfg;
	doca_error_t err = doca_flow_pipe_cfg_create(&cfg, port);

	if (err)
		return err;
	OK(doca_flow_pipe_cfg_set_name(cfg, "BASIC"));
	OK(doca_flow_pipe_cfg_set_type(cfg, DOCA_FLOW_PIPE_BASIC));
	OK(doca_flow_pipe_cfg_set_is_root(cfg, false));
	OK(doca_flow_pipe_cfg_set_match(cfg, &match, masked ? &match_mask : NULL));
	OK(doca_flow_pipe_cfg_set_monitor(cfg, &monitor));
	err = doca_flow_pipe_create(cfg, &fwd, miss, pipe);
	OK(doca_flow_pipe_cfg_destroy(cfg));
	memset(&match, 0, sizeof(match));
	memset(&match_mask, 0, sizeof(match_mask));
	return err;
}

static inline struct doca_flow_pipe *basic(struct doca_flow_fwd fwd,
					   const struct doca_flow_fwd *miss)
{
	struct doca_flow_pipe *pipe;

	OK(pipe_try(false, fwd, miss, &pipe));
	return pipe;
}

static inline doca_error_t root_try(struct doca_flow_pipe **pipe)
{
	const struct doca_flow_monitor monitor = {
		.counter_type = DOCA_FLOW_RESOURCE_TYPE_NON_SHARED,
	};
	struct doca_flow_pipe_cfg *cfg;
	doca_error_t err = doca_flow_pipe_cfg_create(&cfg, port);

	if (err)
		return err;
	OK(doca_flow_pipe_cfg_set_name(cfg, "ROOT"));
	OK(doca_flow_pipe_cfg_set_type(cfg, DOCA_FLOW_PIPE_CONTROL));
	OK(doca_flow_pipe_cfg_set_is_root(cfg, true));
	OK(doca_flow_pipe_cfg_set_monitor(cfg, &monitor));
	err = doca_flow_pipe_create(cfg, NULL, NULL, pipe);
	OK(doca_flow_pipe_cfg_destroy(cfg));
	return err;
}

static inline doca_error_t entry_try(struct doca_flow_pipe *pipe, const struct doca_flow_match *of,
				     struct doca_flow_pipe_entry **entry)
{
	return doca_flow_pipe_basic_add_entry(0, pipe, of, 0, NULL, NULL, NULL,
					      DOCA_FLOW_ENTRY_FLAGS_NO_WAIT, NULL, entry);
}

/* Adds an entry with the match of `match`, which is cleared. */
static inline struct doca_flow_pipe_entry *entry(struct doca_flow_pipe *pipe)
{
	struct doca_flow_pipe_entry *e;

	OK(entry_try(pipe, &match, &e));
	OK(doca_flow_entries_process(port, 0, 0, 0));
	memset(&match, 0, sizeof(match));
	return e;
}

static inline doca_error_t root_entry_try(bool masked, uint32_t priority, struct doca_flow_fwd fwd,
					  struct doca_flow_pipe_entry **e)
{
	doca_error_t err =
		doca_flow_pipe_control_add_entry(0, root, &match, masked ? &match_mask : NULL, NULL,
						 NULL, NULL, NULL, NULL, priority, &fwd, NULL, e);

	memset(&match, 0, sizeof(match));
	memset(&match_mask, 0, sizeof(match_mask));
	return err;
}

static inline struct doca_flow_pipe_entry *root_entry(uint32_t priority, struct doca_flow_fwd fwd)
{
	struct doca_flow_pipe_entry *e;

	OK(root_entry_try(false, priority, fwd, &e));
	return e;
}

/* The match of gpu_packet_processing's root entries, in `match`. */
static inline void root_match(uint8_t protocol)
{
	match.outer.eth.type = htons(DOCA_FLOW_ETHER_TYPE_IPV4);
	match.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
	match.outer.ip4.next_proto = protocol;
}

/* The match of its pipes. */
static inline void meta_match(enum doca_flow_l4_meta l4)
{
	match.parser_meta.outer_l3_type = DOCA_FLOW_L3_META_IPV4;
	match.parser_meta.outer_l4_type = l4;
}

static inline void flow_open(void)
{
	steer_open();
	memset(&match, 0, sizeof(match));
	memset(&match_mask, 0, sizeof(match_mask));
	OK(flow_init("vnf,hws", 2));
	OK(port_start(0, dev, &port));
	OK(root_try(&root));
}

static inline void flow_close(void)
{
	if (!v.ctx)
		return;
	if (port)
		MUST_END(!doca_flow_port_stop(port));
	doca_flow_destroy();
	steer_close();
}

static inline uint64_t counted(struct doca_flow_pipe_entry *e)
{
	struct doca_flow_resource_query q;

	OK(doca_flow_resource_query_entry(e, &q));
	cr_expect_eq(q.counter.total_bytes, q.counter.total_pkts * len);
	return q.counter.total_pkts;
}

#endif
