/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Sends slots of an O-RAN downlink with the kernels of Aerial's front-haul driver, as
 * GpuComm::send() does, through queues that its host code creates: two cells, 14 symbols, each
 * symbol by multi-packet WQEs behind a WQE that waits for the time of the symbol. fill() is in the
 * place of Aerial's compression: it writes a pattern to the addresses that the first kernel has
 * stored. A kernel receives the packets; the CPU checks each byte, that each packet came once, and
 * none early.
 *
 * usage: driver PCI_ADDRESS GPU
 */
#include <doca_gpunetio_dev_eth_rxq.cuh>
#include <gdk_eth_steer.h>

#include "plan.h"

/* ---- kernels ---- */

static __host__ __device__ inline uint8_t pattern(int slot, int cell, int sym, int flow, int prb,
						  int at)
{
	return (uint8_t)((((slot * CELLS + cell) * 14 + sym) * FLOWS + flow) * 7 + prb * 31 +
			 at * 13);
}

__global__ void fill(uint8_t **prbs, int slot, int cell)
{
	for (int i = threadIdx.x; i < PTRS; i += blockDim.x)
		for (int at = 0; prbs[i] && at < (int)PRB_SIZE; at++)
			prbs[i][at] = pattern(slot, cell, i / (FLOWS * PRBS), i / PRBS % FLOWS,
					      i % PRBS, at);
}

/* Receives `want` packets, or fewer if none comes for `limit` receives of 10 ms. */
__global__ void recv_packets(struct doca_gpu_eth_rxq *rxq, uint32_t want, uint32_t limit,
			     struct arrival *out, uint32_t *num)
{
	uint64_t first;
	uint32_t n, i, got = 0, idle = 0;

	while (got < want && idle < limit) {
		if (doca_gpu_dev_eth_rxq_recv<DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD>(
			    rxq, want - got, 10000000, &first, &n, nullptr) != DOCA_SUCCESS)
			break;
		idle = n ? 0 : idle + 1;
		for (i = 0; i < n; i++, got++)
			out[got] = { first + i, doca_gpu_dev_eth_rxq_get_pkt_ts(rxq, first + i) };
	}
	*num = got;
}

/* ---- a slot, as GpuComm::send() ---- */

static void check_stream(state *s, const char *what)
{
	REQUIRE(cudaStreamSynchronize(s->stream) == cudaSuccess && !*s->error.cpu, "%s fails",
		what);
}

static void send_slot(state *s, enum mode mode, int slot)
{
	const size_t bytes = PTRS * sizeof(uint8_t *);
	cudaStream_t stream = s->stream;
	static CleanupParams cleanup;
	static PrepareParams prepare;
	static TriggerParams trigger;

	prepare = {};
	trigger = {};
	prepare.frame_id = (uint8_t)slot;
	prepare.num_cells = trigger.num_cells = CELLS;
	prepare.subframe_id = (uint16_t)(slot % 10);
	prepare.slot_id = (uint16_t)(slot % 2);
	prepare.host_pinned_error_flag = s->error.gpu;
	prepare.enable_gpu_comm_via_cpu = mode == BY_CPU;
	prepare.payload_info.enable_dl_cqe_tracing = mode == TRACED;
	prepare.payload_info.cqe_trace_cell_mask = prepare.payload_info.cqe_trace_slot_mask = ~0u;
	trigger.ready_flag = s->ready.gpu;
	trigger.wait_val = 1;
	for (int i = 0; i < CELLS; i++) {
		cell *c = s->cells[mode][i];

		cleanup.cell_params[i] = { c->slot.gpu, (uint4 *)c->prbs.gpu, bytes };
		prepare.payload_info.prb_ptrs[i] = c->prbs.gpu;
		prepare.payload_info.num_antennas[i] = FLOWS;
		prepare.payload_info.max_num_prb_per_symbol[i] = PRBS;
		for (int flow = 0; flow < FLOWS; flow++)
			prepare.payload_info.eAxCMap[i][flow] = (uint8_t)flow;
		prepare.cell_params[i] = { c->txq.eth_txq_gpu,
					   c->slot.gpu,
					   c->host_slot.gpu,
					   c->part.gpu,
					   MTU,
					   PRB_SIZE,
					   (size_t)PER_PKT,
					   c->index.gpu,
					   c->sym_index.gpu,
					   c->blocks.gpu,
					   c->flows.gpu,
					   c->seqid.gpu,
					   nullptr,
					   PRBS,
					   c->sends.gpu };
		trigger.cell_params[i] = { c->txq.eth_txq_gpu, nullptr, c->slot.gpu };
	}
	launch_memset_kernel(CELLS, bytes, cleanup, stream);
	REQUIRE(!gpucomm_pre_prepare_send(prepare, stream), "pre_prepare_send is not launched");
	for (int i = 0; i < CELLS; i++) {
		uint8_t **prbs = s->cells[mode][i]->prbs.gpu;

		fill<<<1, 32, 0, stream>>>(prbs, slot, i);
	}
	REQUIRE(!gpucomm_prepare_send(prepare, stream), "prepare_send is not launched");
	*s->ready.cpu = 1;
	if (mode != BY_CPU)
		REQUIRE(!gpucomm_trigger_send(trigger, stream, false),
			"trigger_send is not launched");
	check_stream(s, "a kernel");
	for (int i = 0; i < CELLS && mode == BY_CPU; i++) { /* as GpuComm::cpu_send() */
		cell *c = s->cells[mode][i];

		REQUIRE(cudaMemcpy(c->buf.cpu_comms_cpu_pkt_addr, c->buf.gpu_pkt_addr,
				   (size_t)FLOWS * kMaxPktsFlow * PKT_SIZE,
				   cudaMemcpyDefault) == cudaSuccess,
			"cudaMemcpy");
		MUST(doca_eth_txq_gpu_cpu_proxy_progress(c->txq.eth_txq_cpu));
	}
}

/* ---- checks ---- */

static void check_packet(state *s, enum mode mode, int slot, const struct arrival *a)
{
	uint8_t *at = (uint8_t *)s->rxq.cpu_pkt_addr + a->idx % RING * 2048;
	auto *h = (struct oran_umsg_hdrs *)at;
	const int cell_id = h->ethvlan.eth_hdr.src_addr.addr_bytes[5],
		  flow = ntohs(h->ecpri.ecpriPcid);
	const int sym = oran_umsg_get_symbol_id(at), start = oran_umsg_get_start_prb(at);
	auto it = s->wanted.find(key(cell_id, sym, flow, start));

	REQUIRE(it != s->wanted.end(),
		"slot %d cell %d symbol %d flow %d PRB %d: twice, or not sent", slot, cell_id, sym,
		flow, start);
	cell *c = s->cells[mode][cell_id];
	const expected want = it->second;
	const uint8_t *data = at + ORAN_UMSG_IQ_HDR_SIZE;
	const uint64_t when = c->part.cpu->section_info[sym].ptp_ts;

	s->wanted.erase(it);
	REQUIRE(oran_umsg_get_num_prb(at) == want.prbs &&
			oran_umsg_get_section_id(at) == want.section &&
			oran_umsg_get_frame_id(at) == slot &&
			oran_umsg_get_subframe_id(at) == slot % 10 &&
			oran_umsg_get_slot_id(at) == slot % 2 &&
			oran_umsg_get_ecpri_payload(at) ==
				4 + sizeof(oran_umsg_iq_hdr) +
					ORAN_IQ_UNCOMPRESSED_SECTION_OVERHEAD +
					PRB_SIZE * (uint32_t)want.prbs,
		"slot %d symbol %d flow %d PRB %d: another header", slot, sym, flow, start);
	for (int i = 0; i < want.prbs * (int)PRB_SIZE; i++)
		REQUIRE(data[i] == pattern(slot, cell_id, sym, flow, start + i / (int)PRB_SIZE,
					   i % (int)PRB_SIZE),
			"slot %d symbol %d flow %d PRB %d: byte %d is wrong", slot, sym, flow,
			start, i);
	REQUIRE(a->ns >= when, "slot %d symbol %d: %llu ns early", slot, sym,
		(unsigned long long)(when - a->ns));
	s->late_ns = a->ns - when < s->late_ns ? a->ns - when : s->late_ns;
}

/* Aerial's function for completions has called getPkt_start_debug() for each WQE, also waits. */
static void check_completions(cell *c, enum mode mode, int slot)
{
	uint32_t want = 0;

	for (int sym = 0; sym < SYMBOLS; sym++) {
		const uint32_t num = c->part.cpu->section_info[sym].num_packets;

		want += num ? 1 + (num + EMPW_MAX - 1) / EMPW_MAX : 0;
	}
	want = mode == TRACED ? want : 0;
	for (const double start = seconds(); c->completions < want;)
		if (!doca_pe_progress(c->txq.eth_txq_pe))
			REQUIRE(seconds() < start + LIMIT_S, "slot %d: %u completions of %u", slot,
				c->completions, want);
	while (doca_pe_progress(c->txq.eth_txq_pe))
		;
	REQUIRE(c->completions == want, "slot %d: %u completions, not %u", slot, c->completions,
		want);
	c->completions = 0;
}

static void run_slot(state *s, enum mode mode, int slot)
{
	struct timespec now;
	uint32_t want, i;
	cudaStream_t stream = s->stream;

	clock_gettime(CLOCK_REALTIME, &now);
	for (int k = 0; k < CELLS; k++)
		plan(s, s->cells[mode][k], slot, k,
		     (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + AHEAD_NS);
	want = (uint32_t)s->wanted.size();
	send_slot(s, mode, slot);
	recv_packets<<<1, 1, 0, stream>>>(s->rxq.eth_rxq_gpu, want, LIMIT_S * 50, s->arrivals.gpu,
					  s->num.gpu);
	check_stream(s, "receive");
	for (i = 0; i < *s->num.cpu; i++)
		check_packet(s, mode, slot, &s->arrivals.cpu[i]);
	REQUIRE(s->wanted.empty(), "slot %d: %zu of %u packets are missing", slot, s->wanted.size(),
		want);
	s->total += want;
	for (int k = 0; k < CELLS; k++)
		check_completions(s->cells[mode][k], mode, slot);
}

/* ---- queues ---- */

static cell *traced[CELLS];

/* Headers of all packets of a cell. The kernels write the rest. */
static void write_headers(uint8_t *to, int index)
{
	std::vector<uint8_t> all((size_t)FLOWS * kMaxPktsFlow * PKT_SIZE);

	for (int i = 0; i < FLOWS * kMaxPktsFlow; i++) {
		auto *h = (struct oran_umsg_hdrs *)&all[(size_t)i * PKT_SIZE];

		h->ethvlan.eth_hdr.dst_addr.addr_bytes[0] = 2;
		h->ethvlan.eth_hdr.src_addr.addr_bytes[0] = 2;
		h->ethvlan.eth_hdr.src_addr.addr_bytes[5] = (uint8_t)index;
		h->ethvlan.eth_hdr.ether_type = htons(0x8100);
		h->ethvlan.vlan_hdr.eth_proto = htons(0xaefe);
		h->ecpri.ecpriPcid = htons((uint16_t)(i / kMaxPktsFlow));
	}
	REQUIRE(cudaMemcpy(to, all.data(), all.size(), cudaMemcpyDefault) == cudaSuccess,
		"cudaMemcpy");
}

static cell *make_cell(struct doca_gpu *gpu, struct doca_dev *dev, enum mode mode, int index)
{
	const enum doca_gpu_mem_type type = mode == BY_CPU ? DOCA_GPU_MEM_TYPE_CPU_GPU
							   : DOCA_GPU_MEM_TYPE_GPU;
	cell *c = new cell(gpu);

	MUST(doca_create_tx_queue(&c->txq, gpu, dev, WQES, index, type));
	MUST(doca_create_tx_buf(&c->buf, gpu, dev, type, FLOWS * kMaxPktsFlow, PKT_SIZE,
				mode == BY_CPU));
	write_headers(c->buf.gpu_pkt_addr, index);
	c->txq.cell_idx = index;
	if (mode == TRACED)
		traced[index] = c;
	for (int flow = 0; flow < FLOWS; flow++)
		c->flows.cpu[flow] = { c->buf.gpu_pkt_addr,
				       c->buf.cpu_comms_cpu_pkt_addr,
				       c->buf.pkt_buff_mkey,
				       c->buf.cpu_comms_pkt_buff_mkey,
				       PKT_SIZE,
				       (uint32_t)(flow * kMaxPktsFlow) };
	return c;
}

/* ---- what Aerial's function for completions calls ---- */

PacketStartDebugInfo *GpuComm::getPkt_start_debug(int index, uint16_t wqe)
{
	traced[index]->completions++;
	return &traced[index]->sends.cpu[wqe];
}

uint64_t GpuComm::getDlSlotTriggerTs(uint32_t)
{
	return 0;
}

int main(int argc, char **argv)
{
	struct gdk_eth_match match = {};
	struct gdk_eth_rule *rule;
	cudaStream_t stream;
	struct doca_gpu *gpu;
	struct doca_dev *dev;
	int device;

	if (argc != 3)
		return 2;
#ifndef __CUDACC__
	gdk_grid::blocks_in_turn = true;
#endif
	dev = open_nic(argv[1]);
	REQUIRE(cudaDeviceGetByPCIBusId(&device, argv[2]) == cudaSuccess &&
			cudaSetDevice(device) == cudaSuccess &&
			cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess,
		"no GPU %s", argv[2]);
	MUST(doca_gpu_create(argv[2], &gpu));

	state s(gpu);

	s.stream = stream;
	MUST(doca_create_rx_queue(&s.rxq, gpu, dev, RING, DOCA_GPU_MEM_TYPE_CPU_GPU, 2048, RING,
				  1));
	match.value.dst_mac[0] = 2;
	memset(match.mask.dst_mac, 0xff, 6);
	MUST(gdk_eth_steer(dev, &match, &s.rxq.eth_rxq_cpu, 1, GDK_ETH_HASH_NONE, 0, &rule));
	for (int mode = 0; mode < MODES; mode++)
		for (int i = 0; i < CELLS; i++)
			s.cells[mode][i] = make_cell(gpu, dev, (enum mode)mode, i);
	for (int mode = 0; mode < MODES; mode++)
		for (int slot = 0; slot < SLOTS; slot++)
			run_slot(&s, (enum mode)mode, slot);
	recv_packets<<<1, 1, 0, stream>>>(s.rxq.eth_rxq_gpu, 1, 30, s.arrivals.gpu, s.num.gpu);
	check_stream(&s, "receive");
	REQUIRE(!*s.num.cpu, "a packet more than were sent");
	printf("ok: %llu packets of %d slots, each once and exact, %llu us or more late\n",
	       (unsigned long long)s.total, SLOTS * MODES, (unsigned long long)s.late_ns / 1000);
	MUST(gdk_eth_steer_destroy(rule));
	return 0;
}
