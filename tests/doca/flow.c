/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Calls each function of DOCA Flow, in the form of version 3.3, with arguments of the types that
 * NVIDIA's simple_receive and gpu_packet_processing pass. tests/doca_calls.sh compiles this file as
 * C11, C++17 and CUDA, and links it. It is not executed: main() does nothing without arguments.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include <doca_dev.h>
#include <doca_error.h>
#include <doca_flow.h>
#include <gdk_eth_steer.h>

/* Programs initialize the structs in these ways. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wmissing-braces"

#define COUNTERS 524228
#define CALL(call) \
	do { \
		doca_error_t status = call; \
\
		if (status != DOCA_SUCCESS) \
			return status; \
	} while (0)

static doca_error_t begin(struct doca_dev *dev, uint16_t port_id, uint8_t queues,
			  struct doca_flow_port **port)
{
	struct doca_flow_port_cfg *port_cfg;
	struct doca_flow_cfg *cfg;

	CALL(doca_flow_cfg_create(&cfg));
	CALL(doca_flow_cfg_set_pipe_queues(cfg, queues));
	CALL(doca_flow_cfg_set_mode_args(cfg, "vnf,hws"));
	CALL(doca_flow_cfg_set_nr_counters(cfg, COUNTERS));
	CALL(doca_flow_init(cfg));
	CALL(doca_flow_cfg_destroy(cfg));
	CALL(doca_flow_port_cfg_create(&port_cfg));
	CALL(doca_flow_port_cfg_set_port_id(port_cfg, port_id));
	CALL(doca_flow_port_cfg_set_dev(port_cfg, dev));
	CALL(doca_flow_port_start(port_cfg, port));
	return doca_flow_port_cfg_destroy(port_cfg);
}

static doca_error_t basic(struct doca_flow_port *port, uint16_t *queues, uint16_t numq,
			  struct doca_flow_pipe **pipe, struct doca_flow_pipe_entry **entry)
{
	struct doca_flow_match match = { 0 };
	struct doca_flow_fwd fwd, miss;
	struct doca_flow_pipe_cfg *cfg;
	struct doca_flow_monitor monitor;

	memset(&fwd, 0, sizeof(fwd));
	memset(&miss, 0, sizeof(miss));
	memset(&monitor, 0, sizeof(monitor));
	monitor.counter_type = DOCA_FLOW_RESOURCE_TYPE_NON_SHARED;
	match.parser_meta.outer_l3_type = DOCA_FLOW_L3_META_IPV4;
	match.parser_meta.outer_l4_type = DOCA_FLOW_L4_META_UDP;
	match.outer.ip4.src_ip = 0xffffffff;
	match.outer.udp.l4_port.src_port = 0xffff;
	fwd.type = DOCA_FLOW_FWD_RSS;
	fwd.rss_type = DOCA_FLOW_RESOURCE_TYPE_NON_SHARED;
	fwd.rss.queues_array = queues;
	fwd.rss.outer_flags = DOCA_FLOW_RSS_IPV4 | DOCA_FLOW_RSS_UDP | DOCA_FLOW_RSS_TCP;
	fwd.rss.nr_queues = numq;
	miss.type = DOCA_FLOW_FWD_DROP;
	CALL(doca_flow_pipe_cfg_create(&cfg, port));
	CALL(doca_flow_pipe_cfg_set_name(cfg, "GPU_RXQ_UDP_PIPE"));
	CALL(doca_flow_pipe_cfg_set_type(cfg, DOCA_FLOW_PIPE_BASIC));
	CALL(doca_flow_pipe_cfg_set_is_root(cfg, false));
	CALL(doca_flow_pipe_cfg_set_match(cfg, &match, NULL));
	CALL(doca_flow_pipe_cfg_set_monitor(cfg, &monitor));
	CALL(doca_flow_pipe_create(cfg, &fwd, &miss, pipe));
	CALL(doca_flow_pipe_cfg_destroy(cfg));
	CALL(doca_flow_pipe_basic_add_entry(0, *pipe, &match, 0, NULL, NULL, NULL,
					    DOCA_FLOW_ENTRY_FLAGS_NO_WAIT, NULL, entry));
	return doca_flow_pipe_basic_add_entry(0, *pipe, NULL, 0, NULL, NULL, NULL, 0, NULL, entry);
}

static doca_error_t root_of(struct doca_flow_port *port, struct doca_flow_pipe *next,
			    struct doca_flow_pipe **root, struct doca_flow_pipe_entry **entry)
{
	uint8_t flags[] = { DOCA_FLOW_MATCH_TCP_FLAG_SYN, DOCA_FLOW_MATCH_TCP_FLAG_RST,
			    DOCA_FLOW_MATCH_TCP_FLAG_FIN };
	struct doca_flow_match match, mask;
	struct doca_flow_pipe_cfg *cfg;
	struct doca_flow_fwd fwd;
	uint32_t priority = 1;

	memset(&fwd, 0, sizeof(fwd));
	memset(&match, 0, sizeof(match));
	memset(&mask, 0, sizeof(mask));
	match.outer.eth.type = htons(DOCA_FLOW_ETHER_TYPE_IPV4);
	match.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
	match.outer.ip4.next_proto = IPPROTO_TCP;
	match.outer.ip4.dst_ip = htonl(0x0a000001);
	match.outer.l4_type_ext = DOCA_FLOW_L4_TYPE_EXT_TCP;
	match.outer.tcp.l4_port.src_port = htons(80);
	match.outer.tcp.l4_port.dst_port = htons(80);
	match.outer.tcp.flags = flags[0];
	mask.outer.tcp.flags = flags[0];
	match.parser_meta.outer_l4_type = DOCA_FLOW_L4_META_TCP;
	mask.parser_meta.outer_l4_type = DOCA_FLOW_L4_META_ICMP;
	fwd.type = DOCA_FLOW_FWD_PIPE;
	fwd.next_pipe = next;
	CALL(doca_flow_pipe_cfg_create(&cfg, port));
	CALL(doca_flow_pipe_cfg_set_type(cfg, DOCA_FLOW_PIPE_CONTROL));
	CALL(doca_flow_pipe_cfg_set_is_root(cfg, true));
	CALL(doca_flow_pipe_create(cfg, NULL, NULL, root));
	CALL(doca_flow_pipe_control_add_entry(0, *root, &match, &mask, NULL, NULL, NULL, NULL, NULL,
					      priority, &fwd, NULL, entry));
	return doca_flow_entries_process(port, 0, 0, 0);
}

static doca_error_t end(struct doca_flow_port *port, struct doca_flow_pipe *root,
			struct doca_flow_pipe_entry *entry)
{
	struct doca_flow_resource_query stats;

	CALL(doca_flow_resource_query_entry(entry, &stats));
	CALL(doca_flow_pipe_remove_entry(0, DOCA_FLOW_ENTRY_FLAGS_NO_WAIT, entry));
	doca_flow_pipe_destroy(root);
	CALL(doca_flow_port_stop(port));
	doca_flow_destroy();
	return stats.counter.total_pkts ? DOCA_SUCCESS : DOCA_ERROR_UNEXPECTED;
}

static doca_error_t steer(struct doca_dev *dev, struct doca_eth_rxq **rxqs)
{
	struct gdk_eth_match match;
	struct gdk_eth_rule *rule;
	uint64_t packets, bytes;

	memset(&match, 0, sizeof(match));
	match.value.ether_type = htons(DOCA_FLOW_ETHER_TYPE_IPV4);
	match.mask.ether_type = 0xffff;
	CALL(gdk_eth_steer(dev, &match, rxqs, 2, GDK_ETH_HASH_IPV4, 0, &rule));
	CALL(gdk_eth_steer_query(rule, &packets, &bytes));
	return gdk_eth_steer_destroy(rule);
}

int main(int argc, char **argv)
{
	struct doca_flow_pipe_entry *entry = NULL;
	struct doca_flow_pipe *pipe = NULL, *root = NULL;
	struct doca_eth_rxq *rxqs[2] = { NULL, NULL };
	struct doca_flow_port *port = NULL;
	struct doca_dev *dev = NULL;
	uint16_t queues[2] = { 0, 1 };

	(void)argv;
	if (argc < 2)
		return 0;
	return begin(dev, 0, 1, &port) || basic(port, queues, 2, &pipe, &entry) ||
	       root_of(port, pipe, &root, &entry) || end(port, root, entry) || steer(dev, rxqs);
}
