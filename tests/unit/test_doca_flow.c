/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * DOCA Flow: the pipes of its callers, as rules: NVIDIA's simple_receive and gpu_packet_processing,
 * and Holohub's manager. Hits and misses, priorities, entries that come and go, counters, and the
 * order in which objects end.
 */
#include <arpa/inet.h>

#include "dflow_rig.h"

TestSuite(doca_flow, .init = flow_open, .fini = flow_close);

Test(doca_flow, simple_receive)
{
	struct doca_flow_pipe_entry *e, *r;
	struct doca_flow_pipe *udp;

	meta_match(DOCA_FLOW_L4_META_UDP);
	udp = basic(to_rss(0, 1, DOCA_FLOW_RSS_IPV4 | DOCA_FLOW_RSS_UDP), &to_drop);
	meta_match(DOCA_FLOW_L4_META_UDP);
	e = entry(udp);
	udp4();
	NOWHERE; /* no entry of the root leads to the pipe */
	root_match(IPPROTO_UDP);
	r = root_entry(0, to_pipe(udp));
	QUEUE(0);
	QUEUE(0);
	build(4, IPPROTO_UDP, true);
	QUEUE(0);
	build(6, IPPROTO_UDP, false);
	NOWHERE;
	tcp4(2);
	NOWHERE;
	udp4();
	put16(14 + 6, 0x2000); /* a fragment has no layer 4: it misses, and is dropped */
	NOWHERE;
	udp4();
	OK(doca_flow_pipe_remove_entry(0, DOCA_FLOW_ENTRY_FLAGS_NO_WAIT, e));
	NOWHERE;
	e = entry(udp);
	QUEUE(0);
	OK(doca_flow_pipe_remove_entry(1, 0, r));
	NOWHERE;
	OK(doca_flow_pipe_remove_entry(1, 0, e));
	OK(doca_flow_pipe_destroy(udp));
}

/* The pipes of gpu_packet_processing: UDP to queue 0, TCP to the GPU (queue 1) but SYN, RST and FIN
 * to the CPU (queue 2), ICMP to queue 3. */
static struct doca_flow_pipe *tcp_gpu;

static void add_tcp_flags(struct doca_flow_pipe *cpu)
{
	const uint8_t flags[] = { DOCA_FLOW_MATCH_TCP_FLAG_SYN, DOCA_FLOW_MATCH_TCP_FLAG_RST,
				  DOCA_FLOW_MATCH_TCP_FLAG_FIN };
	struct doca_flow_pipe_entry *e;
	size_t i;

	for (i = 0; i < sizeof(flags); i++) {
		root_match(IPPROTO_TCP);
		match.outer.l4_type_ext = DOCA_FLOW_L4_TYPE_EXT_TCP;
		match.outer.tcp.flags = flags[i];
		match_mask.outer.eth.type = 0xffff;
		match_mask.outer.ip4.next_proto = 0xff;
		match_mask.outer.tcp.flags = flags[i];
		OK(root_entry_try(true, 1, to_pipe(cpu), &e));
	}
}

static void packet_processing(bool by_connection)
{
	struct doca_flow_pipe *udp, *tcp_cpu, *icmp;

	meta_match(DOCA_FLOW_L4_META_UDP);
	udp = basic(to_rss(0, 1, DOCA_FLOW_RSS_IPV4 | DOCA_FLOW_RSS_UDP), &to_drop);
	entry(udp);
	meta_match(DOCA_FLOW_L4_META_TCP);
	tcp_cpu = basic(to_rss(2, 1, DOCA_FLOW_RSS_IPV4 | DOCA_FLOW_RSS_TCP), &to_drop);
	entry(tcp_cpu);
	match.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
	match.outer.ip4.next_proto = IPPROTO_TCP;
	if (by_connection) {
		match.outer.ip4.src_ip = 0xffffffff;
		match.outer.ip4.dst_ip = 0xffffffff;
		match.outer.tcp.l4_port.src_port = 0xffff;
		match.outer.tcp.l4_port.dst_port = 0xffff;
		match.outer.l4_type_ext = DOCA_FLOW_L4_TYPE_EXT_TCP;
	}
	tcp_gpu = basic(to_rss(1, 1, DOCA_FLOW_RSS_IPV4 | DOCA_FLOW_RSS_TCP), &to_drop);
	if (!by_connection)
		entry(tcp_gpu);
	meta_match(DOCA_FLOW_L4_META_ICMP);
	icmp = basic(to_rss(3, 1, DOCA_FLOW_RSS_IPV4), &to_drop);
	entry(icmp);
	root_match(IPPROTO_UDP);
	root_entry(0, to_pipe(udp));
	root_match(IPPROTO_ICMP);
	root_entry(3, to_pipe(icmp));
	root_match(IPPROTO_TCP);
	root_entry(3, to_pipe(tcp_gpu));
	add_tcp_flags(tcp_cpu);
}

Test(doca_flow, packet_processing_of_all_tcp)
{
	packet_processing(false);
	udp4();
	QUEUE(0);
	icmp4();
	QUEUE(3);
	tcp4(0x10);
	QUEUE(1);
	tcp4(0x18);
	QUEUE(1);
	tcp4(0x02);
	QUEUE(2);
	tcp4(0x12); /* SYN, ACK: other flags do not matter */
	QUEUE(2);
	tcp4(0x14);
	QUEUE(2);
	tcp4(0x11);
	QUEUE(2);
	build(4, 47, false); /* GRE */
	NOWHERE;
}

static void connection(uint16_t src_port)
{
	match.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
	match.outer.l4_type_ext = DOCA_FLOW_L4_TYPE_EXT_TCP;
	match.outer.ip4.src_ip = htonl(SRC_IP);
	match.outer.ip4.dst_ip = htonl(DST_IP);
	match.outer.tcp.l4_port.src_port = htons(src_port);
	match.outer.tcp.l4_port.dst_port = htons(DST_PORT);
}

Test(doca_flow, packet_processing_by_connection)
{
	struct doca_flow_pipe_entry *a, *b, *c;

	packet_processing(true);
	tcp4(0x10);
	NOWHERE; /* dropped: the connection is not known */
	tcp4(0x02);
	QUEUE(2);
	connection(SRC_PORT);
	a = entry(tcp_gpu);
	connection(SRC_PORT + 1);
	b = entry(tcp_gpu);
	tcp4(0x10);
	QUEUE(1);
	cr_expect_eq(counted(a), 1);
	cr_expect_eq(counted(b), 0);
	tcp4(0x02);
	QUEUE(2);
	OK(doca_flow_pipe_remove_entry(1, 0, a));
	tcp4(0x10);
	NOWHERE;
	put16(14 + 20, SRC_PORT + 1);
	QUEUE(1);
	connection(SRC_PORT + 1);
	REFUSED(DOCA_ERROR_ALREADY_EXIST, "the match and the priority of another one",
		entry_try(tcp_gpu, &match, &c));
	OK(doca_flow_pipe_remove_entry(0, 0, b));
	NOWHERE;
	c = entry(tcp_gpu);
	QUEUE(1);
	cr_expect_eq(counted(c), 1);
}

/* Two pipes of UDP ports, whose misses go to a pipe for all of IPv4. */
Test(doca_flow, misses_go_on_to_another_pipe)
{
	struct doca_flow_pipe *others, *ports;
	struct doca_flow_fwd miss;

	match.parser_meta.outer_l3_type = DOCA_FLOW_L3_META_IPV4;
	OK(pipe_try(true, to_rss(2, 2, DOCA_FLOW_RSS_IPV4), &to_drop, &others));
	match.parser_meta.outer_l3_type = DOCA_FLOW_L3_META_IPV4;
	entry(others);
	miss = to_pipe(others);
	meta_match(DOCA_FLOW_L4_META_UDP);
	match.outer.udp.l4_port.src_port = htons(SRC_PORT);
	match.outer.udp.l4_port.dst_port = htons(DST_PORT);
	ports = basic(to_rss(1, 1, DOCA_FLOW_RSS_IPV4 | DOCA_FLOW_RSS_UDP), &miss);
	meta_match(DOCA_FLOW_L4_META_UDP);
	match.outer.udp.l4_port.src_port = htons(SRC_PORT);
	entry(ports);
	root_match(IPPROTO_UDP);
	root_entry(0, to_pipe(ports));
	root_match(IPPROTO_UDP);
	root_entry(1, to_pipe(others));
	udp4();
	QUEUE(1);
	put16(14 + 22, DST_PORT ^ 1);
	cr_expect(arrives(4) & 12);
	tcp4(2);
	NOWHERE;
	REFUSED(DOCA_ERROR_IN_USE, "pipe \"BASIC\": 2 pipes or entries forward to it",
		doca_flow_pipe_destroy(others));
}

Test(doca_flow, a_pipe_that_forwards_to_a_pipe)
{
	struct doca_flow_pipe *inner, *outer;
	struct doca_flow_pipe_entry *e, *f, *r;

	match.outer.udp.l4_port.dst_port = 0xffff;
	inner = basic(to_queue(1), &to_drop);
	match.outer.ip4.src_ip = 0xffffffff;
	outer = basic(to_pipe(inner), NULL);
	match.outer.ip4.src_ip = htonl(SRC_IP);
	e = entry(outer);
	match.outer.ip4.src_ip = htonl(SRC_IP ^ 1);
	entry(outer);
	root_match(IPPROTO_UDP);
	r = root_entry(2, to_pipe(outer));
	udp4();
	NOWHERE;
	match.outer.udp.l4_port.dst_port = htons(DST_PORT);
	f = entry(inner);
	QUEUE(1);
	put16(14 + 14, (SRC_IP & 0xffff) ^ 1);
	QUEUE(1);
	put16(14 + 14, (SRC_IP & 0xffff) ^ 2);
	NOWHERE;
	udp4();
	put16(14 + 22, DST_PORT + 1);
	NOWHERE;
	cr_expect_eq(counted(e), 3, "one hit and two misses of the inner pipe");
	cr_expect_eq(counted(f), 2);
	cr_expect_eq(counted(r), 5);
	OK(doca_flow_pipe_remove_entry(0, 0, e));
	udp4();
	NOWHERE;
	cr_expect_eq(counted(f), 1, "the counters of removed rules are gone");
}

Test(doca_flow, the_smaller_priority_of_the_root_comes_first)
{
	struct doca_flow_pipe_entry *first;
	struct doca_flow_pipe *pipe;

	match.outer.ip4.dst_ip = 0xffffffff;
	pipe = basic(to_queue(1), &to_drop);
	match.outer.ip4.dst_ip = htonl(DST_IP);
	entry(pipe);
	root_match(IPPROTO_UDP);
	root_entry(3, to_queue(0));
	udp4();
	QUEUE(0);
	match.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
	first = root_entry(2, to_pipe(pipe));
	QUEUE(1);
	put16(14 + 18, 0x9999);
	NOWHERE; /* the miss of the first entry comes before the second entry */
	OK(doca_flow_pipe_remove_entry(0, 0, first));
	QUEUE(0);
	root_match(IPPROTO_UDP);
	root_entry(0, to_drop);
	NOWHERE;
}

Test(doca_flow, masks_of_an_entry_of_the_root)
{
	struct doca_flow_pipe_entry *e;

	match.outer.ip4.src_ip = htonl(SRC_IP);
	match_mask.outer.ip4.src_ip = htonl(0xffffff00);
	OK(root_entry_try(true, 0, to_queue(2), &e));
	udp4();
	QUEUE(2);
	put16(14 + 14, 0x02ff);
	QUEUE(2);
	put16(14 + 14, 0x03ff);
	NOWHERE;
	/* all bits set are a value like others */
	match.outer.udp.l4_port.dst_port = 0xffff;
	OK(root_entry_try(false, 1, to_queue(1), &e));
	NOWHERE;
	put16(14 + 22, 0xffff);
	QUEUE(1);
}

Test(doca_flow, masks_of_a_basic_pipe)
{
	struct doca_flow_pipe_entry *e;
	struct doca_flow_pipe *pipe;

	match.outer.ip4.src_ip = 0xffffffff;
	match_mask.outer.ip4.src_ip = htonl(0xffff0000);
	match.outer.udp.l4_port.dst_port = htons(DST_PORT);
	match_mask.outer.udp.l4_port.dst_port = htons(0xff00);
	match.outer.ip4.dst_ip = htonl(0x7f000001); /* not in the mask */
	OK(pipe_try(true, to_queue(3), &to_drop, &pipe));
	match.outer.ip4.src_ip = htonl(SRC_IP);
	e = entry(pipe);
	match.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
	root_entry(0, to_pipe(pipe));
	udp4();
	QUEUE(3);
	put16(14 + 14, 0x7777);
	put16(14 + 22, DST_PORT ^ 0xff);
	QUEUE(3);
	put16(14 + 22, DST_PORT ^ 0x100);
	NOWHERE;
	cr_expect_eq(counted(e), 2);
}

Test(doca_flow, counters_of_entries)
{
	struct doca_flow_pipe_entry *e, *r, *d;
	struct doca_flow_pipe *pipe;
	int i;

	meta_match(DOCA_FLOW_L4_META_UDP);
	pipe = basic(to_queue(0), &to_drop);
	e = entry(pipe);
	match.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
	r = root_entry(1, to_pipe(pipe));
	root_match(IPPROTO_ICMP);
	d = root_entry(0, to_drop);
	udp4();
	for (i = 0; i < 3; i++)
		QUEUE(0);
	tcp4(2);
	NOWHERE;
	icmp4();
	NOWHERE;
	NOWHERE;
	cr_expect_eq(counted(e), 3);
	cr_expect_eq(counted(r), 4, "with the miss");
	cr_expect_eq(counted(d), 2);
}

Test(doca_flow, as_many_entries_as_counters)
{
	struct doca_flow_pipe_entry *e, *last = NULL;
	struct doca_flow_pipe *pipe;
	uint32_t i;

	match.outer.udp.l4_port.dst_port = 0xffff;
	pipe = basic(to_queue(0), &to_drop);
	for (i = 0; i < COUNTERS; i++) {
		match.outer.udp.l4_port.dst_port = htons((uint16_t)i);
		last = entry(pipe);
	}
	match.outer.udp.l4_port.dst_port = htons(99);
	REFUSED(DOCA_ERROR_FULL, "no counter is left for an entry (16 exist)",
		entry_try(pipe, &match, &e));
	OK(doca_flow_pipe_remove_entry(0, 0, last));
	entry(pipe);
}

Test(doca_flow, an_entry_that_matches_nothing)
{
	struct doca_flow_pipe_entry *r;
	struct doca_flow_pipe *pipe;

	meta_match(DOCA_FLOW_L4_META_UDP);
	pipe = basic(to_queue(0), &to_drop);
	entry(pipe);
	root_match(IPPROTO_TCP);
	REFUSED(DOCA_SUCCESS, "require another ip_protocol",
		root_entry_try(false, 0, to_pipe(pipe), &r));
	tcp4(2);
	NOWHERE;
}

Test(doca_flow, rules_end_before_queues)
{
	struct doca_flow_pipe_entry *r;
	struct doca_flow_pipe *pipe;

	match.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
	r = root_entry(0, to_queue(2));
	cr_expect_eq(atomic_load(&rxqs[2].rules), 1);
	cr_expect_eq(ibv_destroy_wq(wq[2]), EBUSY);
	REFUSED(DOCA_ERROR_IN_USE, "", doca_dev_close(dev));
	OK(doca_flow_pipe_remove_entry(0, 0, r));
	cr_expect_eq(atomic_load(&rxqs[2].rules), 0);
	/* the root goes first, and then a pipe, as in simple_receive */
	meta_match(DOCA_FLOW_L4_META_UDP);
	pipe = basic(to_queue(1), &to_drop);
	entry(pipe);
	root_match(IPPROTO_UDP);
	root_entry(0, to_pipe(pipe));
	REFUSED(DOCA_ERROR_IN_USE, "forward to it", doca_flow_pipe_destroy(pipe));
	OK(doca_flow_pipe_destroy(root));
	OK(doca_flow_pipe_destroy(pipe));
	cr_expect_eq(atomic_load(&rxqs[1].rules), 0);
	OK(root_try(&root));
}

Test(doca_flow, the_end_stops_the_port)
{
	match.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
	root_entry(0, to_queue(2));
	udp4();
	QUEUE(2);
	REFUSED(DOCA_SUCCESS, "stops port 0, which the program has not stopped",
		(doca_flow_destroy(), DOCA_SUCCESS));
	NOWHERE;
	port = NULL;
	REFUSED(DOCA_ERROR_BAD_STATE, "call doca_flow_init() first", port_start(0, dev, &port));
	OK(flow_init("vnf", 1));
	OK(port_start(5, dev, &port));
	OK(root_try(&root));
	match.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
	root_entry(0, to_queue(1));
	QUEUE(1);
	OK(doca_flow_port_stop(port));
	NOWHERE;
	port = NULL;
}
