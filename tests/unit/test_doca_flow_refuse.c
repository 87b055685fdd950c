/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * DOCA Flow refuses each unsupported field, value and argument with its name, and wrong uses, and
 * leaves nothing behind.
 */
#include <arpa/inet.h>

#include "../lib/flowcall.h"

#include "dflow_rig.h"

TestSuite(doca_flow_refuse, .init = flow_open, .fini = flow_close);

#define UNSUPPORTED(text, call) REFUSED(DOCA_ERROR_NOT_SUPPORTED, text, call)
#define INVALID(text, call)	REFUSED(DOCA_ERROR_INVALID_VALUE, text, call)

/* ---- fields of a match ---- */
static doca_error_t set_match(const struct doca_flow_match *m, const struct doca_flow_match *mask)
{
	struct doca_flow_pipe_cfg *cfg;
	doca_error_t err;

	OK(doca_flow_pipe_cfg_create(&cfg, port));
	err = doca_flow_pipe_cfg_set_match(cfg, m, mask);
	OK(doca_flow_pipe_cfg_destroy(cfg));
	return err;
}

#define FIELD(f) \
	{ \
#f, offsetof(struct doca_flow_match, f), \
			sizeof(((struct doca_flow_match *)NULL)->f) \
	}
static const struct {
	const char *name;
	size_t at, bytes;
} unsupported[] = {
	FIELD(meta.pkt_meta),
	FIELD(meta.u32),
	FIELD(parser_meta.inner_l3_type),
	FIELD(parser_meta.inner_l4_type),
	FIELD(parser_meta.outer_ip_fragmented),
	FIELD(parser_meta.inner_ip_fragmented),
	FIELD(outer.eth.src_mac),
	FIELD(outer.eth.dst_mac),
	FIELD(outer.ip6.src_ip),
	FIELD(outer.ip6.dst_ip),
	FIELD(outer.ip6.flow_label),
	FIELD(outer.ip6.next_proto),
	FIELD(outer.tcp.seq_num),
	FIELD(outer.transport.src_port),
	FIELD(outer.transport.dst_port),
	FIELD(inner.eth.src_mac),
	FIELD(inner.eth.dst_mac),
	FIELD(inner.eth.type),
	FIELD(inner.l3_type),
	FIELD(inner.ip4.src_ip),
	FIELD(inner.ip4.dst_ip),
	FIELD(inner.ip4.next_proto),
	FIELD(inner.ip6.src_ip),
	FIELD(inner.ip6.dst_ip),
	FIELD(inner.ip6.flow_label),
	FIELD(inner.ip6.next_proto),
	FIELD(inner.l4_type_ext),
	FIELD(inner.udp.l4_port.src_port),
	FIELD(inner.udp.l4_port.dst_port),
	FIELD(inner.tcp.l4_port.src_port),
	FIELD(inner.tcp.l4_port.dst_port),
	FIELD(inner.tcp.flags),
	FIELD(inner.tcp.seq_num),
	FIELD(inner.transport.src_port),
	FIELD(inner.transport.dst_port),
};

Test(doca_flow_refuse, each_unsupported_field_with_its_name)
{
	const size_t n = sizeof(unsupported) / sizeof(unsupported[0]);
	struct doca_flow_pipe_entry *e;
	struct doca_flow_pipe *pipe;
	uint8_t *bytes = (uint8_t *)&match;
	char name[80];
	size_t i;

	pipe = basic(to_drop, &to_drop);
	for (i = 0; i < n; i++) {
		memset(&match, 0, sizeof(match));
		bytes[unsupported[i].at + unsupported[i].bytes - 1] = 1;
		snprintf(name, sizeof(name), "match.%s is not supported", unsupported[i].name);
		UNSUPPORTED(name, set_match(&match, NULL));
		UNSUPPORTED(name, entry_try(pipe, &match, &e));
		snprintf(name, sizeof(name), "match_mask.%s is not supported", unsupported[i].name);
		UNSUPPORTED(name, set_match(NULL, &match));
		memcpy(&match_mask, &match, sizeof(match));
		memset(&match, 0, sizeof(match));
		UNSUPPORTED(name, root_entry_try(true, 0, to_drop, &e));
	}
}

/* Each byte of a match is read or refused, except padding. */
Test(doca_flow_refuse, no_field_is_ignored)
{
	struct gdk_flow_spec before, after;
	uint32_t i, ignored = 0;
	doca_error_t err;

	for (i = 0; i < sizeof(match); i++) {
		memset(&match, 0, sizeof(match));
		memset(&before, 0, sizeof(before));
		memset(&after, 0, sizeof(after));
		OK(gdk_flow_read_spec(&match, NULL, false, &before));
		((uint8_t *)&match)[i] = 1;
		capture_begin();
		err = gdk_flow_read_spec(&match, NULL, false, &after);
		capture_end();
		ignored += !err && !memcmp(&before, &after, sizeof(before));
	}
	/* padding: 2 behind the flags of parser_meta; in each header format 2 behind eth, 3 behind
	 * ip4, 3 behind ip6, 3 behind the flags of TCP */
	cr_expect_eq(ignored, 2 + 2 * (2 + 3 + 3 + 3), "%u bytes are ignored", ignored);
}

#define TYPE(member, number, text) \
	do { \
		memset(&match, 0, sizeof(match)); \
		match.member = number; \
		UNSUPPORTED("match." #member text, set_match(&match, NULL)); \
		UNSUPPORTED("match." #member text, root_entry_try(false, 0, to_drop, &e)); \
	} while (0)

Test(doca_flow_refuse, types_of_headers)
{
	struct doca_flow_pipe_entry *e;

	TYPE(parser_meta.outer_l3_type, DOCA_FLOW_L3_META_IPV6, " 2 (expected IPV4)");
	TYPE(parser_meta.outer_l4_type, DOCA_FLOW_L4_META_ESP, " 4 (expected TCP, UDP or ICMP)");
	TYPE(outer.l3_type, DOCA_FLOW_L3_TYPE_IP6, " 2 (expected IP4)");
	TYPE(outer.l4_type_ext, DOCA_FLOW_L4_TYPE_EXT_TRANSPORT, " 3 (expected TCP or UDP)");
	memset(&match, 0, sizeof(match));
	match_mask.parser_meta.outer_l4_type = (enum doca_flow_l4_meta)1;
	UNSUPPORTED("match.parser_meta.outer_l4_type 0", set_match(&match, &match_mask));
}

Test(doca_flow_refuse, matches_that_contradict_themselves)
{
	meta_match(DOCA_FLOW_L4_META_UDP);
	match.outer.tcp.flags = 2;
	INVALID("different values of ip_protocol", set_match(&match, NULL));
	memset(&match, 0, sizeof(match));
	match.outer.udp.l4_port.src_port = 1;
	match.outer.tcp.l4_port.src_port = 1;
	INVALID("different values of ip_protocol", set_match(&match, NULL));
	memset(&match, 0, sizeof(match));
	root_match(IPPROTO_TCP);
	match.outer.eth.type = htons(0x86dd);
	INVALID("different values of ether_type", set_match(&match, NULL));
}

/* ---- forwards, monitors, pipes ---- */
static doca_error_t try_fwd(struct doca_flow_fwd fwd)
{
	struct doca_flow_pipe *pipe;

	return pipe_try(false, fwd, &to_drop, &pipe);
}

Test(doca_flow_refuse, forwards)
{
	struct doca_flow_pipe_entry *e;
	struct doca_flow_fwd fwd = { .type = DOCA_FLOW_FWD_PORT };

	UNSUPPORTED("fwd->type 4", try_fwd(fwd));
	UNSUPPORTED("fwd->type 4", root_entry_try(false, 0, fwd, &e));
	fwd.type = GDK_FLOW_FWD_NONE;
	UNSUPPORTED("fwd->type 0", try_fwd(fwd));
	fwd = to_rss(0, 2, DOCA_FLOW_RSS_IPV4);
	fwd.rss_type = DOCA_FLOW_RESOURCE_TYPE_SHARED;
	UNSUPPORTED("fwd->rss_type 1", try_fwd(fwd));
	UNSUPPORTED("fwd->rss.outer_flags 0x9", try_fwd(to_rss(0, 2, 9)));
	fwd = to_rss(0, 2, DOCA_FLOW_RSS_IPV4);
	fwd.rss.inner_flags = 1;
	UNSUPPORTED("fwd->rss.inner_flags 0x1", try_fwd(fwd));
	INVALID("fwd->rss.nr_queues 0", try_fwd(to_rss(0, 0, DOCA_FLOW_RSS_IPV4)));
	INVALID("fwd->rss.nr_queues -1", try_fwd(to_rss(0, -1, DOCA_FLOW_RSS_IPV4)));
	INVALID("fwd->rss.outer_flags 0 with 2 queues", try_fwd(to_rss(0, 2, 0)));
	fwd = to_queue(0);
	fwd.rss.queues_array = NULL;
	INVALID("fwd->rss.queues_array NULL", try_fwd(fwd));
	REFUSED(DOCA_ERROR_NOT_FOUND, "fwd->rss.queues_array[1]: no receive queue of the NIC has",
		try_fwd(to_rss(3, 2, DOCA_FLOW_RSS_IPV4)));
	rxqs[1].num = 0;
	REFUSED(DOCA_ERROR_BAD_STATE, "does not run", try_fwd(to_queue(1)));
	INVALID("fwd->next_pipe NULL", try_fwd(to_pipe(NULL)));
	UNSUPPORTED("fwd->next_pipe \"ROOT\": a forward to the root", try_fwd(to_pipe(root)));
}

Test(doca_flow_refuse, hashes_that_the_match_does_not_have)
{
	struct doca_flow_pipe_entry *e;
	struct doca_flow_pipe *pipe;

	UNSUPPORTED("a hash of IPv4 addresses for a rule that does not match IPv4",
		    root_entry_try(false, 0, to_rss(0, 2, DOCA_FLOW_RSS_IPV4), &e));
	match.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
	pipe = basic(to_rss(0, 2, DOCA_FLOW_RSS_IPV4 | DOCA_FLOW_RSS_UDP), &to_drop);
	entry(pipe);
	match.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
	UNSUPPORTED("a hash of ports (0x3)", root_entry_try(false, 0, to_pipe(pipe), &e));
	root_match(IPPROTO_UDP);
	OK(root_entry_try(false, 0, to_pipe(pipe), &e));
}

static doca_error_t set_monitor(struct doca_flow_monitor monitor)
{
	struct doca_flow_pipe_cfg *cfg;
	doca_error_t err;

	OK(doca_flow_pipe_cfg_create(&cfg, port));
	err = doca_flow_pipe_cfg_set_monitor(cfg, &monitor);
	OK(doca_flow_pipe_cfg_destroy(cfg));
	return err;
}

Test(doca_flow_refuse, monitors)
{
	struct doca_flow_monitor m = { .counter_type = DOCA_FLOW_RESOURCE_TYPE_SHARED };

	UNSUPPORTED("monitor->counter_type 1", set_monitor(m));
	m = (struct doca_flow_monitor){ .meter_type = DOCA_FLOW_RESOURCE_TYPE_NON_SHARED };
	UNSUPPORTED("monitor->meter_type 2", set_monitor(m));
	m = (struct doca_flow_monitor){ .aging_sec = 7 };
	UNSUPPORTED("monitor->aging_sec 7", set_monitor(m));
	m = (struct doca_flow_monitor){ .counter_type = DOCA_FLOW_RESOURCE_TYPE_NONE };
	OK(set_monitor(m));
}

static doca_error_t create(enum doca_flow_pipe_type type, bool is_root,
			   const struct doca_flow_fwd *fwd, const struct doca_flow_fwd *miss)
{
	struct doca_flow_pipe_cfg *cfg;
	struct doca_flow_pipe *pipe;
	doca_error_t err;

	OK(doca_flow_pipe_cfg_create(&cfg, port));
	OK(doca_flow_pipe_cfg_set_name(cfg, "P"));
	OK(doca_flow_pipe_cfg_set_is_root(cfg, is_root));
	OK(doca_flow_pipe_cfg_set_match(cfg, &match, NULL));
	err = doca_flow_pipe_cfg_set_type(cfg, type);
	if (!err)
		err = doca_flow_pipe_create(cfg, fwd, miss, &pipe);
	OK(doca_flow_pipe_cfg_destroy(cfg));
	return err;
}

Test(doca_flow_refuse, pipes)
{
	const enum doca_flow_pipe_type control = DOCA_FLOW_PIPE_CONTROL;
	int t;

	for (t = DOCA_FLOW_PIPE_LPM; t <= DOCA_FLOW_PIPE_ORDERED_LIST; t++)
		UNSUPPORTED("type", create((enum doca_flow_pipe_type)t, false, NULL, NULL));
	UNSUPPORTED("type 2 of a pipe", create(DOCA_FLOW_PIPE_LPM, false, NULL, NULL));
	UNSUPPORTED("is_root of the basic pipe \"P\"",
		    create(DOCA_FLOW_PIPE_BASIC, true, &to_drop, NULL));
	UNSUPPORTED("is_root false of the control pipe", create(control, false, NULL, NULL));
	UNSUPPORTED("is_root of the pipe \"P\" beside the root \"ROOT\"",
		    create(control, true, NULL, NULL));
	OK(doca_flow_pipe_destroy(root));
	UNSUPPORTED("fwd of the control pipe", create(control, true, &to_drop, NULL));
	UNSUPPORTED("fwd_miss of the control pipe", create(control, true, NULL, &to_drop));
	match.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
	UNSUPPORTED("match of the control pipe", create(control, true, NULL, NULL));
	INVALID("fwd NULL", create(DOCA_FLOW_PIPE_BASIC, false, NULL, NULL));
	OK(root_try(&root));
}

Test(doca_flow_refuse, too_many_pipes_in_turn)
{
	struct doca_flow_pipe *pipe = basic(to_drop, &to_drop), *deep;
	struct doca_flow_pipe_entry *e;
	struct doca_flow_fwd next;
	int i;

	for (i = 0; i < 2; i++) {
		next = to_pipe(pipe);
		pipe = basic(to_drop, &next);
	}
	/* three misses need four levels */
	OK(root_entry_try(false, 0, to_pipe(pipe), &e));
	next = to_pipe(pipe);
	pipe = basic(to_drop, &next);
	UNSUPPORTED("fwd->next_pipe \"BASIC\": more than 3 misses in turn",
		    root_entry_try(false, 1, to_pipe(pipe), &e));
	for (i = 4; i < 8; i++)
		pipe = basic(to_pipe(pipe), &to_drop);
	UNSUPPORTED("pipe \"BASIC\": more than 8 pipes in turn",
		    pipe_try(false, to_pipe(pipe), &to_drop, &deep));
}

/* ---- entries ---- */
#define BASIC(...)   doca_flow_pipe_basic_add_entry(__VA_ARGS__, &e)
#define CONTROL(...) doca_flow_pipe_control_add_entry(__VA_ARGS__, &e)

Test(doca_flow_refuse, arguments_of_basic_entries)
{
	struct doca_flow_pipe *pipe = basic(to_drop, &to_drop);
	struct doca_flow_monitor m = { .counter_type = DOCA_FLOW_RESOURCE_TYPE_NONE };
	struct doca_flow_pipe_entry *e;
	void *p = &m;

	UNSUPPORTED("action_idx 1", BASIC(0, pipe, NULL, 1, NULL, NULL, NULL, 0, NULL));
	UNSUPPORTED("actions of an entry", BASIC(0, pipe, NULL, 0, p, NULL, NULL, 0, NULL));
	UNSUPPORTED("monitor of an entry", BASIC(0, pipe, NULL, 0, NULL, &m, NULL, 0, NULL));
	UNSUPPORTED("fwd of an entry", BASIC(0, pipe, NULL, 0, NULL, NULL, &to_drop, 0, NULL));
	UNSUPPORTED("usr_ctx of an entry", BASIC(0, pipe, NULL, 0, NULL, NULL, NULL, 0, p));
	INVALID("flags 0x2", BASIC(0, pipe, NULL, 0, NULL, NULL, NULL, 2, NULL));
	INVALID("pipe_queue 2 (expected 0 to 1)",
		BASIC(2, pipe, NULL, 0, NULL, NULL, NULL, 0, NULL));
	INVALID("pipe NULL", BASIC(0, NULL, NULL, 0, NULL, NULL, NULL, 0, NULL));
	INVALID("entry NULL",
		doca_flow_pipe_basic_add_entry(0, pipe, NULL, 0, NULL, NULL, NULL, 0, NULL, NULL));
	INVALID("\"ROOT\": a control pipe", BASIC(0, root, NULL, 0, NULL, NULL, NULL, 0, NULL));
}

Test(doca_flow_refuse, values_of_basic_entries)
{
	struct doca_flow_pipe_entry *e;
	struct doca_flow_pipe *pipe;

	meta_match(DOCA_FLOW_L4_META_UDP);
	match.outer.udp.l4_port.src_port = htons(7);
	match.outer.udp.l4_port.dst_port = 0xffff;
	pipe = basic(to_drop, &to_drop);
	INVALID("match NULL of an entry: the pipe leaves fields to its entries",
		entry_try(pipe, NULL, &e));
	match.outer.udp.l4_port.src_port = htons(8);
	INVALID("match.outer.udp.l4_port.src_port of an entry: the pipe has another value",
		entry_try(pipe, &match, &e));
	memset(&match, 0, sizeof(match));
	meta_match(DOCA_FLOW_L4_META_TCP);
	INVALID("different values of ip_protocol", entry_try(pipe, &match, &e));
	memset(&match, 0, sizeof(match));
	match.outer.ip4.src_ip = 99; /* the pipe matches every address */
	entry(pipe);
}

Test(doca_flow_refuse, arguments_of_entries_of_the_root)
{
	struct doca_flow_pipe *pipe = basic(to_drop, &to_drop);
	struct doca_flow_monitor m = { .counter_type = DOCA_FLOW_RESOURCE_TYPE_NONE };
	const struct doca_flow_fwd *d = &to_drop;
	struct doca_flow_pipe_entry *e;
	void *p = &m;

	UNSUPPORTED("condition of an entry",
		    CONTROL(0, root, NULL, NULL, p, NULL, NULL, NULL, NULL, 0, d, NULL));
	UNSUPPORTED("actions of an entry",
		    CONTROL(0, root, NULL, NULL, NULL, p, NULL, NULL, NULL, 0, d, NULL));
	UNSUPPORTED("actions_mask of an entry",
		    CONTROL(0, root, NULL, NULL, NULL, NULL, p, NULL, NULL, 0, d, NULL));
	UNSUPPORTED("action_descs of an entry",
		    CONTROL(0, root, NULL, NULL, NULL, NULL, NULL, p, NULL, 0, d, NULL));
	UNSUPPORTED("monitor of an entry",
		    CONTROL(0, root, NULL, NULL, NULL, NULL, NULL, NULL, p, 0, d, NULL));
	UNSUPPORTED("usr_ctx of an entry",
		    CONTROL(0, root, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, d, p));
	UNSUPPORTED("priority 4 (expected 0 to 3)", root_entry_try(false, 4, to_drop, &e));
	INVALID("pipe_queue 2",
		CONTROL(2, root, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, d, NULL));
	INVALID("fwd NULL",
		CONTROL(0, root, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL));
	INVALID("pipe NULL",
		CONTROL(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, d, NULL));
	INVALID("\"BASIC\": a basic pipe",
		CONTROL(0, pipe, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, d, NULL));
	OK(root_entry_try(false, 0, to_drop, &e));
	REFUSED(DOCA_ERROR_ALREADY_EXIST, "pipe \"ROOT\": an entry with the match and the priority",
		root_entry_try(false, 0, to_queue(1), &e));
	cr_expect_eq(atomic_load(&rxqs[1].rules), 0);
}

Test(doca_flow_refuse, other_arguments_of_entries)
{
	struct doca_flow_pipe_entry *e;
	struct doca_flow_resource_query q;

	OK(root_entry_try(false, 0, to_drop, &e));
	INVALID("entry NULL", doca_flow_pipe_remove_entry(0, 0, NULL));
	INVALID("flags 0x4", doca_flow_pipe_remove_entry(0, 4, e));
	INVALID("pipe_queue 9", doca_flow_pipe_remove_entry(9, 0, e));
	INVALID("port NULL", doca_flow_entries_process(NULL, 0, 0, 0));
	INVALID("pipe_queue 3", doca_flow_entries_process(port, 3, 0, 0));
	INVALID("entry NULL", doca_flow_resource_query_entry(NULL, &q));
	INVALID("query_stats NULL", doca_flow_resource_query_entry(e, NULL));
}

/* ---- settings ---- */
Test(doca_flow_refuse, settings)
{
	struct doca_flow_port_cfg *pc;
	struct doca_flow_pipe_cfg *cfg;
	struct doca_flow_cfg *c;
	char name[100];

	memset(name, 'x', sizeof(name));
	name[64] = 0;
	INVALID("cfg NULL", doca_flow_cfg_create(NULL));
	OK(doca_flow_cfg_create(&c));
	UNSUPPORTED("mode_args \"switch\"", doca_flow_cfg_set_mode_args(c, "switch"));
	UNSUPPORTED("mode_args \"vnf,\"", doca_flow_cfg_set_mode_args(c, "vnf,"));
	INVALID("mode_args NULL", doca_flow_cfg_set_mode_args(c, NULL));
	INVALID("pipe_queues 0", doca_flow_cfg_set_pipe_queues(c, 0));
	REFUSED(DOCA_ERROR_BAD_STATE, "call doca_flow_cfg_set_mode_args()", doca_flow_init(c));
	OK(doca_flow_cfg_set_mode_args(c, "vnf,hws,isolated"));
	REFUSED(DOCA_ERROR_BAD_STATE, "call doca_flow_cfg_set_pipe_queues()", doca_flow_init(c));
	OK(doca_flow_cfg_set_pipe_queues(c, 1));
	REFUSED(DOCA_ERROR_BAD_STATE, "initialized already", doca_flow_init(c));
	INVALID("cfg NULL", doca_flow_init(NULL));
	OK(doca_flow_cfg_destroy(c));
	INVALID("cfg NULL", doca_flow_cfg_destroy(NULL));
	OK(doca_flow_pipe_cfg_create(&cfg, port));
	INVALID("name", doca_flow_pipe_cfg_set_name(cfg, name));
	INVALID("name NULL", doca_flow_pipe_cfg_set_name(cfg, NULL));
	INVALID("monitor NULL", doca_flow_pipe_cfg_set_monitor(cfg, NULL));
	name[63] = 0;
	OK(doca_flow_pipe_cfg_set_name(cfg, name));
	OK(doca_flow_pipe_cfg_destroy(cfg));
	INVALID("port NULL", doca_flow_pipe_cfg_create(&cfg, NULL));
	OK(doca_flow_port_cfg_create(&pc));
	INVALID("is not open", doca_flow_port_cfg_set_dev(pc, (struct doca_dev *)name));
	INVALID("is not open", doca_flow_port_start(pc, &port));
	OK(doca_flow_port_cfg_destroy(pc));
}

Test(doca_flow_refuse, ports)
{
	struct doca_flow_port *second;

	REFUSED(DOCA_ERROR_ALREADY_EXIST, "has a port already", port_start(0, dev, &second));
	REFUSED(DOCA_ERROR_ALREADY_EXIST, "has a port already", port_start(1, dev, &second));
	INVALID("port NULL", doca_flow_port_stop(NULL));
}

Test(doca_flow_refuse, rules_need_a_capability)
{
	struct doca_flow_pipe_entry *e;

	match.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
	net_raw(false);
	REFUSED(DOCA_ERROR_NOT_PERMITTED, "flow rules need CAP_NET_RAW",
		root_entry_try(false, 0, to_queue(0), &e));
	net_raw(true);
	cr_expect_eq(atomic_load(&rxqs[0].rules), 0);
	match.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
	OK(root_entry_try(false, 0, to_queue(0), &e));
}
