/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Sends packets with the send kernel of holohub's gpunetio manager and receives them with its two
 * receive kernels, through its own classes of queues, from one queue to another of one NIC. Steers
 * packets as its host code does, and checks each byte of each packet.
 *
 * usage: driver PCI_ADDRESS GPU
 */
#include <unistd.h>

#include "adv_network_doca_kernels.h"

#include "../eth_driver.h"
#include "../../../examples/ethernet/frame.h"

using namespace holoscan::advanced_network;

#define BURST	600u /* packets of a burst; more than the threads of a kernel */
#define RING	2048 /* more than two bursts: slots are released by the next receive */
#define STRIDE	2048
#define BURSTS	28u /* of each receive kernel: in all, more packets than the send queue has WQEs */
#define UDP_SRC 4096
#define UDP_DST 4660

static const struct et_flow flow = {
	{ 2, 0, 127, 0, 0, 9 }, { 2, 0, 127, 0, 0, 8 }, 0x0a4d0001, 0x0a4d0002, UDP_SRC, UDP_DST
};

/* What rx_core() and tx_core() allocate for one queue, and what was sent and received. */
struct state {
	struct doca_gpu *gpu;
	DocaRxQueue *rx;
	DocaTxQueue *tx;
	shared_mem<uintptr_t> rxqs, stats;
	shared_mem<uint32_t> stats_at, batch, quit, lengths;
	cudaStream_t rx_stream, tx_stream;
	uint32_t sent, got, unsignalled, item;

	state(struct doca_gpu *g)
	    : gpu(g), rxqs(g, 1), stats(g, 1), stats_at(g, 1), batch(g, 1), quit(g, 1),
	      lengths(g, BURST), sent(0), got(0), unsignalled(0), item(0)
	{
	}
};

static uint32_t bytes_of(uint32_t number)
{
	return ET_BYTES_MIN + number * 37 % (ET_BYTES_MAX - ET_BYTES_MIN + 1);
}

/* As DocaMgr::init_doca_flow(). */
static struct doca_flow_port *start_flow(struct doca_dev *dev)
{
	struct doca_flow_port_cfg *port_cfg;
	struct doca_flow_port *port;
	struct doca_flow_cfg *cfg;

	MUST(doca_flow_cfg_create(&cfg));
	MUST(doca_flow_cfg_set_pipe_queues(cfg, 1));
	MUST(doca_flow_cfg_set_mode_args(cfg, "vnf,hws,isolated"));
	MUST(doca_flow_cfg_set_nr_counters(cfg, FLOW_NB_COUNTERS));
	MUST(doca_flow_init(cfg));
	doca_flow_cfg_destroy(cfg);
	MUST(doca_flow_port_cfg_create(&port_cfg));
	MUST(doca_flow_port_cfg_set_port_id(port_cfg, 0));
	MUST(doca_flow_port_cfg_set_dev(port_cfg, dev));
	MUST(doca_flow_port_start(port_cfg, &port));
	MUST(doca_flow_port_cfg_destroy(port_cfg));
	return port;
}

/* As DocaMgr::create_root_pipe(). */
static void steer(struct doca_flow_port *port, DocaRxQueue *rx)
{
	struct doca_flow_match match = {}, mask = {};
	struct doca_flow_monitor monitor = {};
	struct doca_flow_fwd fwd = {};
	struct doca_flow_pipe_cfg *cfg;
	struct doca_flow_pipe *root;
	FlowConfig udp = {};
	uint16_t queue = 0;

	udp.match_.udp_src_ = UDP_SRC;
	udp.match_.udp_dst_ = UDP_DST;
	MUST(rx->create_udp_pipe(udp, nullptr, queue));
	monitor.counter_type = DOCA_FLOW_RESOURCE_TYPE_NON_SHARED;
	MUST(doca_flow_pipe_cfg_create(&cfg, port));
	MUST(doca_flow_pipe_cfg_set_name(cfg, "ROOT_PIPE_P0"));
	MUST(doca_flow_pipe_cfg_set_type(cfg, DOCA_FLOW_PIPE_CONTROL));
	MUST(doca_flow_pipe_cfg_set_is_root(cfg, true));
	MUST(doca_flow_pipe_cfg_set_match(cfg, nullptr, &mask));
	MUST(doca_flow_pipe_cfg_set_monitor(cfg, &monitor));
	MUST(doca_flow_pipe_create(cfg, nullptr, nullptr, &root));
	doca_flow_pipe_cfg_destroy(cfg);
	match.outer.eth.type = htons(DOCA_FLOW_ETHER_TYPE_IPV4);
	match.outer.l3_type = DOCA_FLOW_L3_TYPE_IP4;
	match.outer.ip4.next_proto = IPPROTO_UDP;
	fwd.type = DOCA_FLOW_FWD_PIPE;
	fwd.next_pipe = rx->rxq_pipe;
	MUST(doca_flow_pipe_control_add_entry(0, 0, root, &match, nullptr, nullptr, nullptr,
					      nullptr, nullptr, nullptr, &fwd, nullptr,
					      &rx->root_udp_entry));
}

/* A send with a completion has completed. As in the manager. */
static void completed(struct doca_eth_txq_gpu_event_notify_send_packet *, union doca_data user)
{
	(*(std::atomic<uint32_t> *)user.u64)--;
}

/* As tx_core(): requests a completion after a quarter of the WQEs. */
static void send(struct state *s, uint32_t num)
{
	const uint32_t first = s->sent % RING;
	bool signalled;

	for (uint32_t i = 0; i < num; i++) {
		const uint32_t number = s->sent + i;

		s->lengths.cpu[i] = bytes_of(number);
		et_write((uint8_t *)s->tx->cpu_pkt_addr + (size_t)(number % RING) * STRIDE, &flow,
			 bytes_of(number), number, false);
	}
	s->unsignalled += num;
	signalled = s->unsignalled > MAX_SQ_DESCR_NUM / 4;
	MUST(doca_sender_packet_kernel(s->tx_stream, s->tx->eth_txq_gpu,
				       (uint64_t)s->tx->gpu_pkt_addr, s->tx->pkt_mkey, first, num,
				       RING, STRIDE, s->lengths.gpu, signalled));
	s->sent += num;
	if (signalled) {
		s->tx->tx_cmp_posted++;
		s->unsignalled = 0;
	}
	REQUIRE(cudaStreamSynchronize(s->tx_stream) == cudaSuccess, "the send kernel fails");
}

/* Checks the packets of an item that a receive kernel has written, and frees the item. */
static void check(struct state *s, struct adv_doca_rx_gpu_info *item)
{
	const uint32_t num = item->num_pkts;
	uint32_t i, number, bytes = 0;

	REQUIRE(num && num <= s->sent - s->got, "%u packets of %u", num, s->sent - s->got);
	REQUIRE(item->gpu_pkt0_idx - s->got < num, "first packet %u, not %u", item->gpu_pkt0_idx,
		s->got);
	REQUIRE(item->gpu_pkt0_addr == (uintptr_t)s->rx->gpu_pkt_addr +
					       (size_t)(item->gpu_pkt0_idx % RING) * STRIDE,
		"packet %u is at another address", item->gpu_pkt0_idx);
	for (i = 0; i < num; i++, s->got++) {
		const uint8_t *at = (uint8_t *)s->rx->cpu_pkt_addr +
				    (size_t)(s->got % RING) * STRIDE;

		REQUIRE(et_right(at, &flow, bytes_of(s->got), bytes_of(s->got), &number) &&
				number == s->got,
			"packet %u is wrong", s->got);
		bytes += bytes_of(s->got);
	}
	REQUIRE(item->nbytes == bytes, "%u bytes, not %u", item->nbytes, bytes);
	item->gpu_pkt0_addr = 0;
	DOCA_GPUNETIO_VOLATILE(item->status) = DOCA_GPU_SEMAPHORE_STATUS_FREE;
}

static bool is_ready(const struct adv_doca_rx_gpu_info *item)
{
	if (DOCA_GPUNETIO_VOLATILE(item->status) != DOCA_GPU_SEMAPHORE_STATUS_READY)
		return false;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return true;
}

static void progress(struct state *s)
{
	if (!doca_pe_progress(s->tx->pe))
		usleep(100);
}

static void launch(struct state *s, uintptr_t *rxqs, bool persistent)
{
	MUST(doca_receiver_packet_kernel(s->rx_stream, 1, rxqs, s->stats.gpu, s->stats_at.gpu,
					 s->batch.gpu, s->quit.gpu, persistent));
}

static void await_receiver(struct state *s)
{
	REQUIRE(cudaStreamSynchronize(s->rx_stream) == cudaSuccess, "the receive kernel fails");
}

/* As rx_core(). At the end the kernel reports a burst that is not complete: one packet. */
static void persistent(struct state *s)
{
	struct adv_doca_rx_gpu_info *items = s->rx->pkt_list_cpu, *item;
	double start;

	launch(s, s->rxqs.gpu, true);
	for (uint32_t i = 0; i < BURSTS; i++) {
		send(s, BURST);
		item = &items[i % MAX_DEFAULT_SEM_X_QUEUE];
		for (start = seconds(); !is_ready(item); progress(s))
			REQUIRE(seconds() < start + LIMIT_S, "burst %u does not arrive", i);
		check(s, item);
		REQUIRE(s->got == s->sent, "burst %u: %u packets are missing", i, s->sent - s->got);
	}
	item = &items[BURSTS % MAX_DEFAULT_SEM_X_QUEUE];
	send(s, 1);
	for (start = seconds(); !DOCA_GPUNETIO_VOLATILE(item->gpu_pkt0_addr); progress(s))
		REQUIRE(seconds() < start + LIMIT_S, "the last packet does not arrive");
	DOCA_GPUNETIO_VOLATILE(*s->quit.cpu) = 1;
	await_receiver(s);
	REQUIRE(is_ready(item), "no report of the last packet");
	check(s, item);
}

/* Launches a kernel for each receive. If its time is over, it has fewer packets than the burst. */
static void in_turn(struct state *s)
{
	uint32_t item = 0;
	double start;

	for (uint32_t i = 0; i < BURSTS; i++) {
		send(s, BURST);
		for (start = seconds(); s->got < s->sent; progress(s)) {
			REQUIRE(seconds() < start + LIMIT_S, "burst %u does not arrive", i);
			*s->stats_at.cpu = item;
			launch(s, s->rxqs.gpu, false);
			await_receiver(s);
			if (!is_ready(&s->rx->pkt_list_cpu[item]))
				continue;
			REQUIRE(s->rx->pkt_list_cpu[item].gpu_pkt0_idx == s->got,
				"packet %u, not %u", s->rx->pkt_list_cpu[item].gpu_pkt0_idx,
				s->got);
			check(s, &s->rx->pkt_list_cpu[item]);
			item = (item + 1) % MAX_DEFAULT_SEM_X_QUEUE;
		}
	}
}

/* Loads all kernels, which CUDA cannot do while one of them runs and does not end. */
static void warm_up(struct state *s)
{
	REQUIRE(cudaStreamCreateWithFlags(&s->rx_stream, cudaStreamNonBlocking) == cudaSuccess &&
			cudaStreamCreateWithFlags(&s->tx_stream, cudaStreamNonBlocking) ==
				cudaSuccess,
		"no stream");
	launch(s, nullptr, true);
	launch(s, nullptr, false);
	await_receiver(s);
	MUST(doca_sender_packet_kernel(s->tx_stream, s->tx->eth_txq_gpu, 0, 0, 0, 0, 0, 0, nullptr,
				       false));
	REQUIRE(cudaStreamSynchronize(s->tx_stream) == cudaSuccess, "the send kernel fails");
}

int main(int argc, char **argv)
{
	const enum doca_gpu_mem_type memory = DOCA_GPU_MEM_TYPE_CPU_GPU; /* HOST_PINNED */
	struct doca_flow_port *port;
	struct doca_gpu *gpu;
	struct doca_dev *dev;
	double start;
	int device;

	if (argc != 3)
		return 2;
	dev = open_nic(argv[1]);
	REQUIRE(cudaDeviceGetByPCIBusId(&device, argv[2]) == cudaSuccess &&
			cudaSetDevice(device) == cudaSuccess,
		"no GPU %s", argv[2]);
	MUST(doca_gpu_create(argv[2], &gpu));
	port = start_flow(dev);

	state s(gpu);

	s.rx = new DocaRxQueue(dev, gpu, port, 0, RING, STRIDE, memory);
	s.tx = new DocaTxQueue(dev, gpu, 0, RING, STRIDE, memory, completed);
	MUST(s.rx->create_rx_packet_list());
	steer(port, s.rx);
	*s.rxqs.cpu = (uintptr_t)s.rx->eth_rxq_gpu;
	*s.stats.cpu = (uintptr_t)s.rx->pkt_list_gpu;
	*s.batch.cpu = BURST;
	warm_up(&s);
	persistent(&s);
	in_turn(&s);
	for (start = seconds(); s.tx->tx_cmp_posted.load(); progress(&s))
		REQUIRE(seconds() < start + LIMIT_S, "%u sends do not complete",
			s.tx->tx_cmp_posted.load());
	MUST(doca_flow_port_stop(port));
	doca_flow_destroy();
	delete s.rx;
	delete s.tx;
	printf("ok: %u packets sent and received, each once and exact\n", s.got);
	return 0;
}
