/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * DOCA Flow with RXQs: UDP packets are spread over two queues, TCP packets go to a third one, and
 * each packet is received once, with its bytes. A queue cannot stop while a pipe forwards to it.
 */
#include <arpa/inet.h>

#include "eth_queue_rig.h"

#include "doca_flow.h"
#include "doca_rdma_bridge.h"

#undef SLOT
#include "frame_rig.h"

#define OK(call) cr_assert_eq(call, DOCA_SUCCESS)
#define NUM	 64u
#define UDP_ID	 7u /* and the next */
#define TCP_ID	 1u

static struct queues q[3]; /* 0 and 1: UDP, 2: TCP */
static struct doca_flow_port *port;
static struct doca_flow_pipe *udp, *tcp;

static void open_all(void)
{
	uint32_t i;

	raw_need();
	v = vb_open(SLOT);
	frame = v.mem;
	send_cq = ibv_create_cq(v.ctx, 63, NULL, NULL, 0);
	sender = raw_qp(&v, send_cq, 16, 0, 0);
	raw_ready(sender);
	rig_open_dev(&q[0]);
	for (i = 0; i < 3; i++) {
		q[i].dev = q[0].dev;
		q[i].gpu = q[0].gpu;
		rig_start_rxq(&q[i], NUM);
		OK(doca_eth_rxq_apply_queue_id(q[i].rxq, (uint16_t)(i < 2 ? UDP_ID + i : TCP_ID)));
	}
}

static void close_all(void)
{
	uint32_t i;

	if (!v.ctx)
		return;
	for (i = 0; i < 3; i++)
		rig_end_rxq(&q[i]);
	rig_close_dev(&q[0]);
	cr_assert_eq(ibv_destroy_qp(sender), 0);
	cr_assert_eq(ibv_destroy_cq(send_cq), 0);
	vb_close(&v);
}

TestSuite(doca_flow_queues, .init = open_all, .fini = close_all, .timeout = 60);

static void begin(void)
{
	struct doca_flow_port_cfg *pc;
	struct doca_flow_cfg *cfg;

	OK(doca_flow_cfg_create(&cfg));
	OK(doca_flow_cfg_set_pipe_queues(cfg, 1));
	OK(doca_flow_cfg_set_mode_args(cfg, "vnf,hws"));
	OK(doca_flow_init(cfg));
	OK(doca_flow_cfg_destroy(cfg));
	OK(doca_flow_port_cfg_create(&pc));
	OK(doca_flow_port_cfg_set_dev(pc, q[0].dev));
	OK(doca_flow_port_start(pc, &port));
	OK(doca_flow_port_cfg_destroy(pc));
}

static doca_error_t pipe_to(uint16_t first, int n, uint32_t flags, enum doca_flow_l4_meta l4,
			    struct doca_flow_pipe **pipe)
{
	uint16_t ids[2] = { first, (uint16_t)(first + 1) };
	struct doca_flow_match match = { .parser_meta.outer_l3_type = DOCA_FLOW_L3_META_IPV4,
					 .parser_meta.outer_l4_type = l4 };
	const struct doca_flow_fwd fwd = {
		.type = DOCA_FLOW_FWD_RSS,
		.rss_type = DOCA_FLOW_RESOURCE_TYPE_NON_SHARED,
		.rss = { .queues_array = ids, .nr_queues = n, .outer_flags = flags },
	};
	struct doca_flow_pipe_entry *entry;
	struct doca_flow_pipe_cfg *cfg;
	doca_error_t err;

	OK(doca_flow_pipe_cfg_create(&cfg, port));
	OK(doca_flow_pipe_cfg_set_match(cfg, &match, NULL));
	err = doca_flow_pipe_create(cfg, &fwd, NULL, pipe);
	OK(doca_flow_pipe_cfg_destroy(cfg));
	if (!err)
		err = doca_flow_pipe_basic_add_entry(0, *pipe, &match, 0, NULL, NULL, NULL, 0, NULL,
						     &entry);
	return err;
}

static void pipes(void)
{
	const struct doca_flow_match match = { .outer.l3_type = DOCA_FLOW_L3_TYPE_IP4 };
	struct doca_flow_fwd to[2] = { { .type = DOCA_FLOW_FWD_PIPE },
				       { .type = DOCA_FLOW_FWD_PIPE } };
	struct doca_flow_match m[2] = { match, match };
	struct doca_flow_pipe_entry *entry;
	struct doca_flow_pipe_cfg *cfg;
	struct doca_flow_pipe *root;
	int i;

	OK(pipe_to(UDP_ID, 2, DOCA_FLOW_RSS_IPV4 | DOCA_FLOW_RSS_UDP, DOCA_FLOW_L4_META_UDP, &udp));
	OK(pipe_to(TCP_ID, 1, DOCA_FLOW_RSS_IPV4 | DOCA_FLOW_RSS_TCP, DOCA_FLOW_L4_META_TCP, &tcp));
	OK(doca_flow_pipe_cfg_create(&cfg, port));
	OK(doca_flow_pipe_cfg_set_type(cfg, DOCA_FLOW_PIPE_CONTROL));
	OK(doca_flow_pipe_cfg_set_is_root(cfg, true));
	OK(doca_flow_pipe_create(cfg, NULL, NULL, &root));
	OK(doca_flow_pipe_cfg_destroy(cfg));
	m[0].outer.ip4.next_proto = IPPROTO_UDP;
	to[0].next_pipe = udp;
	m[1].outer.ip4.next_proto = IPPROTO_TCP;
	to[1].next_pipe = tcp;
	for (i = 0; i < 2; i++)
		OK(doca_flow_pipe_control_add_entry(0, root, &m[i], NULL, NULL, NULL, NULL, NULL,
						    NULL, 0, &to[i], NULL, &entry));
}

/* Receives what has arrived in a queue: the number of packets, each with the number of its
 * frame. */
static uint32_t drain(struct queues *from, bool *seen)
{
	struct gdk_eth_batch b;
	const uint8_t *p;
	uint32_t i;

	cr_assert_eq(gdk_eth_recv(from->rx, NUM, 0, 0, ALONE, &b), 0);
	for (i = 0; i < b.num; i++) {
		p = (const uint8_t *)(uintptr_t)gdk_eth_pkt_addr(from->rx, b.first + i);
		cr_assert_eq(gdk_eth_pkt_bytes(from->rx, b.first + i), len);
		cr_assert(!seen[p[60]], "frame %u was received twice", p[60]);
		cr_assert_arr_eq(p + 61, frame + 61, len - 61);
		seen[p[60]] = true;
	}
	return b.num;
}

Test(doca_flow_queues, packets_arrive_in_their_queues)
{
	bool seen[3][NUM] = { { 0 } };
	uint32_t i, got[3];

	begin();
	pipes();
	for (i = 0; i < NUM; i++) {
		build(4, i % 4 ? IPPROTO_UDP : IPPROTO_TCP, false);
		put16(14 + 20, (uint16_t)(1000 + i * 77));
		frame[60] = (uint8_t)i;
		raw_send(&v, sender, 0, len);
		cr_assert_eq(raw_wait(send_cq).status, IBV_WC_SUCCESS);
	}
	for (i = 0; i < 3; i++)
		got[i] = drain(&q[i], seen[i]);
	cr_expect_eq(got[0] + got[1], NUM - NUM / 4, "%u and %u UDP packets", got[0], got[1]);
	cr_expect(got[0] > 8 && got[1] > 8, "%u and %u UDP packets", got[0], got[1]);
	cr_expect_eq(got[2], NUM / 4);
	for (i = 0; i < NUM; i++)
		cr_expect_eq(seen[0][i] + seen[1][i] + seen[2][i], 1, "frame %u", i);
	OK(doca_flow_port_stop(port));
	doca_flow_destroy();
}

Test(doca_flow_queues, a_queue_stops_after_its_rules)
{
	struct doca_ctx *ctx = doca_eth_rxq_as_doca_ctx(q[1].rxq);
	struct doca_flow_pipe *none;

	begin();
	pipes();
	REFUSED(DOCA_ERROR_IN_USE, "flow rules or tables send packets to it", doca_ctx_stop(ctx));
	OK(doca_flow_port_stop(port));
	OK(doca_ctx_stop(ctx));
	doca_flow_destroy();
	begin();
	REFUSED(DOCA_ERROR_NOT_FOUND, "no receive queue of the NIC has the number 8",
		pipe_to(UDP_ID, 2, DOCA_FLOW_RSS_IPV4, DOCA_FLOW_L4_META_UDP, &none));
	OK(doca_ctx_start(ctx));
	OK(doca_flow_port_stop(port));
	doca_flow_destroy();
}
