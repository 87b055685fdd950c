/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The queues and memory of the cells, and the packets of a slot. */
#ifndef AERIAL_PLAN_H
#define AERIAL_PLAN_H

#include <map>
#include <tuple>

#include <arpa/inet.h>

#include "gpu_comm.hpp"

#include "../eth_driver.h"

using namespace aerial_fh;

#define CELLS	 2
#define FLOWS	 4
#define SYMBOLS	 ((int)kPeerSymbolsInfo)
#define PRBS	 106 /* of a symbol */
#define PRB_SIZE 28u
#define MTU	 1500
#define PER_PKT	 ((int)((MTU - ORAN_IQ_HDR_SZ) / PRB_SIZE)) /* PRBs of a packet */
#define PKT_SIZE 1536					    /* space for a packet */
#define PTRS	 (SYMBOLS * FLOWS * PRBS)
#define EMPW_MAX 61  /* packets of a multi-packet WQE */
#define WQES	 512 /* fewer than those of two slots */
#define RING	 8192
#define SLOTS	 4 /* in each mode */
#define AHEAD_NS 1000000000ull
#define SYM_NS	 500000ull

enum mode {
	DIRECT, /* the GPU rings */
	TRACED, /* as DIRECT, and each WQE requests a completion */
	BY_CPU, /* packets and queue in host memory, the CPU rings */
	MODES
};

struct arrival {
	uint64_t idx, ns;
};

/* What a cell needs: Aerial's Peer and TxRequestUplaneGpuComm. */
struct cell {
	doca_tx_items_t txq;
	doca_tx_buf_t buf;
	shared_mem<UplaneSlotInfo_t> slot;
	shared_mem<UplaneSlotInfoHost_t> host_slot;
	shared_mem<PartialUplaneSlotInfo_t> part;
	shared_mem<uint32_t> index, sym_index, blocks, seqid; /* of flows */
	shared_mem<FlowPtrInfo> flows;
	shared_mem<uint8_t *> prbs;
	shared_mem<PacketStartDebugInfo> sends; /* by index of the WQE */
	uint32_t completions;

	cell(struct doca_gpu *g)
	    : txq(), buf(), slot(g, 1), host_slot(g, 1), part(g, 1), index(g, MAX_DL_EAXCIDS),
	      sym_index(g, MAX_DL_EAXCIDS * SYMBOLS), blocks(g, 1), seqid(g, MAX_DL_EAXCIDS),
	      flows(g, MAX_DL_EAXCIDS), prbs(g, PTRS), sends(g, 65536), completions(0)
	{
	}
};

/* A packet that must arrive: cell, symbol, flow and first PRB. */
typedef std::tuple<int, int, int, int> key;
struct expected {
	int prbs, section;
};

struct state {
	doca_rx_items_t rxq;
	cell *cells[MODES][CELLS];
	shared_mem<arrival> arrivals;
	shared_mem<uint32_t> num, error, ready;
	cudaStream_t stream;
	std::map<key, expected> wanted;
	uint64_t total, late_ns; /* late_ns: the least of all packets */

	state(struct doca_gpu *g)
	    : rxq(), arrivals(g, RING), num(g, 1), error(g, 1), ready(g, 1), total(0),
	      late_ns(~0ull)
	{
	}
};

static int packets(int prbs)
{
	return (prbs + PER_PKT - 1) / PER_PKT;
}

static void add_message(state *s, PartialUplaneSlotInfo_t *p, int cell, int sym, int flow,
			int start, int prbs)
{
	PartialSectionInfoPerMessagePerSymbol_t *m = &p->message_info[sym];
	const int i = p->section_info[sym].num_messages++;

	m->num_prbu[i] = (uint16_t)prbs;
	m->start_prbu[i] = (uint16_t)start;
	m->section_id[i] = (uint16_t)(i + 1);
	m->num_packets[i] = (uint16_t)packets(prbs);
	m->flow_index_info[i] = (uint16_t)flow;
	p->section_info[sym].num_packets += m->num_packets[i];
	p->flowInfo_slot.flow_packet_count[flow] += m->num_packets[i];
	for (int at = 0; at < prbs; at += PER_PKT)
		s->wanted[key(cell, sym, flow, start + at)] = { prbs - at < PER_PKT ? prbs - at
										    : PER_PKT,
								i + 1 };
}

/* From 0 to about 200 packets in a symbol. No multiple of EMPW_MAX: for that, the kernels count a
 * WQE which they do not write. */
static void plan_symbol(state *s, PartialUplaneSlotInfo_t *p, int slot, int cell, int sym)
{
	int flow, i, num, prbs;

	for (flow = 0; flow < FLOWS; flow++)
		p->flowInfo_slot.cumulative_sym_flow_packet_count[flow][sym] =
			p->flowInfo_slot.flow_packet_count[flow];
	if (sym % 6 == 1)
		return;
	for (flow = 0; flow < FLOWS - 1; flow++) {
		prbs = 1 + (sym + slot + flow) % 3;
		num = (sym * 29 + slot * 7 + cell * 3 + flow * 11) % 66;
		for (i = 0; i < num && (i + 1) * prbs <= PRBS; i++)
			add_message(s, p, cell, sym, flow, i * prbs, prbs);
	}
	if (sym % 3 == 0)
		add_message(s, p, cell, sym, flow, 0, PRBS - 1);
	if (p->section_info[sym].num_packets % EMPW_MAX == 0)
		add_message(s, p, cell, sym, flow, PRBS - 1, 1);
}

static void plan(state *s, cell *c, int slot, int index, uint64_t start_ns)
{
	PartialUplaneSlotInfo_t *p = c->part.cpu;

	memset(p, 0, sizeof(*p));
	p->frame_8b_subframe_4b_slot_6b = (uint32_t)(slot << 10 | slot % 10 << 6 | slot % 2);
	p->total_num_flows = FLOWS;
	for (int sym = 0; sym < SYMBOLS; sym++) {
		PartialSectionInfoPerSymbol_t *section = &p->section_info[sym];

		plan_symbol(s, p, slot, index, sym);
		section->ptp_ts = start_ns + (uint64_t)sym * SYM_NS;
		MUST(doca_eth_txq_calculate_timestamp(c->txq.eth_txq_cpu, section->ptp_ts,
						      &section->ts));
		if (!section->num_packets)
			continue;
		p->syms_with_packets++;
		p->last_sym_with_packets = (uint16_t)sym;
	}
}

#endif
