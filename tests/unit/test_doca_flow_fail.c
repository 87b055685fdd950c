/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Flow rules and DOCA Flow with each allocation, each command and each call of the kernel failing
 * once: each failure is logged, nothing leaks, and older entries still work. An object whose
 * destruction fails stays valid.
 */
#include <arpa/inet.h>

#include "../../qp/doca/dev.h"
#include "doca_base_rig.h"

#include "dflow_rig.h"

TestSuite(doca_flow_fail, .timeout = 60);

/* A call that destroys an object may fail once, and the object then stays valid. */
#define TWICE(call) (call != DOCA_SUCCESS ? call : DOCA_SUCCESS)

static struct gdk_eth_match udp_match(void)
{
	struct gdk_eth_match m = { 0 };

	m.value.ether_type = htons(DOCA_FLOW_ETHER_TYPE_IPV4);
	m.mask.ether_type = 0xffff;
	m.value.ip_protocol = IPPROTO_UDP;
	m.mask.ip_protocol = 0xff;
	return m;
}

static doca_error_t steer_and_stop(void)
{
	const struct gdk_eth_match m = udp_match();
	struct gdk_eth_rule *rule = NULL;
	doca_error_t err;

	err = gdk_eth_steer(dev, &m, rxq, 3, GDK_ETH_HASH_IPV4 | GDK_ETH_HASH_UDP, 2, &rule);
	if (rule)
		cr_expect_eq(TWICE(gdk_eth_steer_destroy(rule)), DOCA_SUCCESS);
	cr_expect_eq(atomic_load(&rxqs[0].rules), 0);
	return err;
}

Test(doca_flow_fail, a_rule, .init = steer_open, .fini = steer_close)
{
	/* rule, RSS, its queues, its table, the kernel's rule; TD, RQT, TIR, counter, matcher,
	 * rule */
	rig_faults(steer_and_stop, 5, 6);
}

static doca_error_t begin_and_end(void)
{
	struct doca_flow_port_cfg *pc = NULL;
	struct doca_flow_cfg *cfg = NULL;
	struct doca_flow_port *p = NULL;
	doca_error_t err;

	err = doca_flow_cfg_create(&cfg);
	if (!err)
		err = doca_flow_port_cfg_create(&pc);
	if (!err) {
		OK(doca_flow_cfg_set_pipe_queues(cfg, 2));
		OK(doca_flow_cfg_set_mode_args(cfg, "vnf"));
		OK(doca_flow_cfg_set_nr_counters(cfg, COUNTERS));
		OK(doca_flow_init(cfg));
		OK(doca_flow_port_cfg_set_dev(pc, dev));
		err = doca_flow_port_start(pc, &p);
	}
	if (p)
		OK(doca_flow_port_stop(p));
	doca_flow_destroy();
	if (pc)
		OK(doca_flow_port_cfg_destroy(pc));
	if (cfg)
		OK(doca_flow_cfg_destroy(cfg));
	return err;
}

Test(doca_flow_fail, begin, .init = steer_open, .fini = steer_close)
{
	rig_faults(begin_and_end, 3, 0);
}

/* A root entry to a pipe with an entry and a miss to queues; then an entry that is added to the
 * pipe later. `other` is there all the time. */
static struct doca_flow_pipe_entry *other;

static doca_error_t pipes(void)
{
	struct doca_flow_pipe_entry *e = NULL, *r = NULL, *late = NULL;
	struct doca_flow_pipe *pipe = NULL;
	struct doca_flow_fwd miss = to_rss(3, 1, DOCA_FLOW_RSS_IPV4);
	const uint16_t missed[] = { 3 };
	doca_error_t err;

	miss.rss.queues_array = (uint16_t *)(uintptr_t)missed;
	match.outer.udp.l4_port.dst_port = 0xffff;
	err = pipe_try(false, to_rss(0, 2, DOCA_FLOW_RSS_IPV4 | DOCA_FLOW_RSS_UDP), &miss, &pipe);
	memset(&match, 0, sizeof(match));
	match.outer.udp.l4_port.dst_port = htons(1);
	if (!err)
		err = entry_try(pipe, &match, &e);
	memset(&match, 0, sizeof(match));
	root_match(IPPROTO_UDP);
	if (!err)
		err = root_entry_try(false, 0, to_pipe(pipe), &r);
	match.outer.udp.l4_port.dst_port = htons(2);
	if (!err)
		err = entry_try(pipe, &match, &late);
	memset(&match, 0, sizeof(match));
	if (late)
		cr_expect_eq(TWICE(doca_flow_pipe_remove_entry(0, 0, late)), DOCA_SUCCESS);
	if (r)
		cr_expect_eq(TWICE(doca_flow_pipe_remove_entry(0, 0, r)), DOCA_SUCCESS);
	if (pipe)
		cr_expect_eq(TWICE(doca_flow_pipe_destroy(pipe)), DOCA_SUCCESS);
	cr_expect_eq(atomic_load(&rxqs[0].rules) + atomic_load(&rxqs[3].rules), 0);
	return err;
}

Test(doca_flow_fail, pipes_and_entries, .init = flow_open, .fini = flow_close)
{
	root_match(IPPROTO_ICMP);
	other = root_entry(1, to_queue(2));
	/* pipe: settings, pipe, two RSS with queues and tables; entries: 3, rules: 3, each with the
	 * kernel's; TIRs, counters, matchers, rules: 3 each but 2 TIRs */
	rig_faults(pipes, 15, 15);
	icmp4();
	QUEUE(2);
	cr_expect_eq(counted(other), 1);
}

/* The port stops at the second try, whatever call fails. */
Test(doca_flow_fail, a_port_that_cannot_be_stopped_at_once, .init = flow_open, .fini = flow_close)
{
	struct doca_flow_pipe *pipe;
	uint32_t n, failed = 0;

	leaks_ignore();
	for (n = 1; n <= 20; n++) {
		match.outer.ip4.src_ip = 0xffffffff;
		pipe = basic(to_rss(0, 2, DOCA_FLOW_RSS_IPV4), &to_drop);
		match.outer.ip4.src_ip = htonl(SRC_IP);
		entry(pipe);
		match.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
		root_entry(0, to_pipe(pipe));
		nicfail_next(0, 0, 0, n);
		if (doca_flow_port_stop(port)) {
			failed++;
			OK(doca_flow_port_stop(port));
		}
		nicfail_next(0, 0, 0, 0);
		OK(port_start(0, dev, &port));
		OK(root_try(&root));
	}
	/* two rules with matcher and counter each, TIR, RQT, TD */
	cr_expect_eq(failed, 9, "%u calls failed", failed);
}

/* ---- the firmware refuses the nth command ---- */
Test(doca_flow_fail, refused_commands, .init = flow_open, .fini = flow_close)
{
	const uint32_t objects = nicfail_live();
	uint32_t n, failed = 0;
	const char *log;
	doca_error_t err;

	leaks_ignore();
	for (n = 1; n <= 12; n++) {
		capture_begin();
		nicfail_next(n, 5, 0x123456, 0);
		err = pipes();
		nicfail_next(0, 0, 0, 0);
		log = capture_end();
		cr_expect(!err || strstr(log, "syndrome 0x00123456"), "command %u: %s", n, log);
		cr_expect_eq(nicfail_live(), objects, "command %u: objects leak", n);
		failed += err == DOCA_ERROR_DRIVER;
	}
	/* TD, RQT, TD, RQT, 2 TIRs, 3 counters */
	cr_expect_geq(failed, 9, "%u commands were refused", failed);
}
