/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Sends slots of an O-RAN uplink to Aerial's kernel receive_kernel_for_test_bench(), and checks all
 * that the kernel stores: the packets of its slot, those of the next slot, their numbers, the
 * numbers of PRBs, why it ended, and the semaphore. The kernel gets the buffers as from
 * OrderEntity::runOrder(): the one for the next slot is that of the next launch.
 *
 * usage: recv PCI_ADDRESS GPU
 */
#include <doca_gpunetio_dev_eth_txq.cuh>
#include <doca_gpunetio_dev_sem.cuh>
#include <gdk_eth_steer.h>

#include "gpu_comm.hpp"

#include "../eth_driver.h"
#include "recv_plan.h"

using namespace aerial_fh;

extern "C" {
#include "launch_receive.h" /* the declaration, out of gpudevice.hpp */
}

#define STRIDE	  2048 /* space for a packet to send */
#define PKT_SIZE  MAX_PKTS_SIZE_OK_TB
#define BUF_PKTS  MAX_PKTS_PER_SLOT_OK_TB
#define BUF_BYTES ((size_t)BUF_PKTS * PKT_SIZE)
#define RING	  512  /* wraps */
#define TX_PKTS	  8192 /* more than all packets: the queue does not wrap */
#define SEM_ITEMS 256  /* a power of two; more than the packets of a slot */
#define UNTOUCHED 0xa5

#define LONG_NS	 4000000000u /* until a kernel whose packets are all sent must end */
#define SHORT_NS 1000000000u

/* Most packets of a receive: fewer than threads, and more. */
static uint32_t batch_limit(int slot)
{
	return slot / 2 % 2 ? 200 : 32;
}

struct batch {
	uint32_t num;
	uint64_t first;
};

/* ---- kernels ---- */

__global__ void send_packets(struct doca_gpu_eth_txq *txq, uint8_t *pkts, uint32_t mkey,
			     const uint32_t *len, uint32_t num, uint32_t *error)
{
	doca_gpu_dev_eth_ticket_t ticket;

	for (uint32_t i = 0; i < num && !*error; i++)
		*error = doca_gpu_dev_eth_txq_send(txq, (uint64_t)(pkts + (size_t)i * STRIDE), mkey,
						   len[i], DOCA_GPUNETIO_ETH_SEND_FLAG_NONE,
						   &ticket);
}

/* Frees the items of a semaphore that are READY, from one on, and returns them. */
__global__ void read_items(struct doca_gpu_semaphore_gpu *sem, uint32_t from, struct batch *out,
			   uint32_t *num)
{
	uint32_t n, pkts;
	uint64_t first;

	for (n = 0; n < SEM_ITEMS; n++) {
		const uint32_t item = (from + n) % SEM_ITEMS;

		if (doca_gpu_dev_semaphore_get_packet_info_status(sem, item,
								  DOCA_GPU_SEMAPHORE_STATUS_READY,
								  &pkts, &first) != DOCA_SUCCESS)
			break;
		out[n] = { pkts, first };
		doca_gpu_dev_semaphore_set_status(sem, item, DOCA_GPU_SEMAPHORE_STATUS_FREE);
	}
	*num = n;
}

/* ---- cells ---- */

/* What a kernel reads and writes of a cell. */
struct cell {
	doca_rx_items_t rxq;
	shared_mem<uint8_t> bufs[2]; /* of even and odd slots */
	shared_mem<uint32_t> exit, item, pkts, next_pkts, next_prbs[2];
	uint64_t received; /* packets before this slot */
	uint32_t early_pkts, early_prbs[2];
	std::vector<packet> planned;

	cell(struct doca_gpu *g)
	    : rxq(), bufs{ { g, BUF_BYTES }, { g, BUF_BYTES } }, exit(g, 1), item(g, 1), pkts(g, 1),
	      next_pkts(g, 1), next_prbs{ { g, 1 }, { g, 1 } }, received(0), early_pkts(0),
	      early_prbs()
	{
	}
};

/* The parameters of the kernel: arrays with an element for each cell. */
struct params {
	shared_mem<struct doca_gpu_eth_rxq *> rxq;
	shared_mem<struct doca_gpu_semaphore_gpu *> sem;
	shared_mem<uint16_t> sem_items;
	shared_mem<int> id, bits, prbs[2];
	shared_mem<uint32_t *> exit, item, pkts, next_pkts, next_prbs[2];
	shared_mem<uint8_t *> buf, next_buf;

	params(struct doca_gpu *g)
	    : rxq(g, CELLS), sem(g, CELLS), sem_items(g, CELLS), id(g, CELLS),
	      bits(g, CELLS), prbs{ { g, CELLS }, { g, CELLS } }, exit(g, CELLS), item(g, CELLS),
	      pkts(g, CELLS), next_pkts(g, CELLS), next_prbs{ { g, CELLS }, { g, CELLS } },
	      buf(g, CELLS), next_buf(g, CELLS)
	{
	}
};

struct state {
	doca_tx_items_t txq;
	doca_tx_buf_t sent;
	cell *cells[CELLS];
	params par;
	shared_mem<uint32_t> len, error, num;
	shared_mem<batch> batches;
	cudaStream_t recv, send;
	uint64_t total, kept, early;

	state(struct doca_gpu *g)
	    : txq(), sent(), par(g), len(g, TX_PKTS), error(g, 1), num(g, 1), batches(g, SEM_ITEMS),
	      total(0), kept(0), early(0)
	{
	}
};

static cell *make_cell(struct doca_gpu *gpu, struct doca_dev *dev, int index)
{
	const enum doca_gpu_mem_type type = index == 1 ? DOCA_GPU_MEM_TYPE_CPU_GPU
						       : DOCA_GPU_MEM_TYPE_GPU;
	struct gdk_eth_match match = {};
	struct gdk_eth_rule *rule;
	cell *c = new cell(gpu);

	MUST(doca_create_rx_queue(&c->rxq, gpu, dev, RING, type, STRIDE, RING, index == 1));
	MUST(doca_create_semaphore(&c->rxq, gpu, SEM_ITEMS, DOCA_GPU_MEM_TYPE_GPU,
				   DOCA_GPU_MEM_TYPE_GPU, 0));
	match.value.dst_mac[0] = 2;
	match.value.dst_mac[5] = (uint8_t)index;
	memset(match.mask.dst_mac, 0xff, 6);
	MUST(gdk_eth_steer(dev, &match, &c->rxq.eth_rxq_cpu, 1, GDK_ETH_HASH_NONE, 0, &rule));
	memset(c->bufs[0].cpu, UNTOUCHED, BUF_BYTES);
	*c->item.cpu = SEM_ITEMS - 2; /* wraps */
	return c;
}

/* ---- a slot ---- */

static void check_stream(cudaStream_t stream, const char *what)
{
	REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess, "%s fails", what);
}

static void send_all(state *s)
{
	cudaStream_t stream = s->send;
	uint32_t num = 0;
	bool more = true;

	for (size_t at = 0; more; at++) {
		more = false;
		for (int i = 0; i < CELLS; i++) {
			const std::vector<packet> &all = s->cells[i]->planned;

			if (at >= all.size())
				continue;
			more = true;
			s->len.cpu[num] = (uint32_t)all[at].bytes.size();
			REQUIRE(cudaMemcpy(s->sent.gpu_pkt_addr + (size_t)num++ * STRIDE,
					   all[at].bytes.data(), all[at].bytes.size(),
					   cudaMemcpyDefault) == cudaSuccess,
				"cudaMemcpy");
		}
	}
	s->total += num;
	REQUIRE(num <= CELLS * BUF_PKTS && s->total < TX_PKTS, "too many packets");
	send_packets<<<1, 1, 0, stream>>>(s->txq.eth_txq_gpu, s->sent.gpu_pkt_addr,
					  s->sent.pkt_buff_mkey, s->len.gpu, num, s->error.gpu);
	check_stream(stream, "send");
	REQUIRE(!*s->error.cpu, "a send fails: %s",
		doca_error_get_name((doca_error_t)*s->error.cpu));
}

static void prepare(state *s, int slot)
{
	params *p = &s->par;

	for (int i = 0; i < CELLS; i++) {
		cell *c = s->cells[i];

		p->rxq.cpu[i] = c->rxq.eth_rxq_gpu;
		p->sem.cpu[i] = c->rxq.sem_gpu;
		p->sem_items.cpu[i] = SEM_ITEMS;
		p->id.cpu[i] = i;
		p->bits.cpu[i] = bit_widths[i];
		p->exit.cpu[i] = c->exit.gpu;
		p->item.cpu[i] = c->item.gpu;
		p->pkts.cpu[i] = c->pkts.gpu;
		p->next_pkts.cpu[i] = c->next_pkts.gpu;
		p->buf.cpu[i] = c->bufs[slot % 2].gpu;
		p->next_buf.cpu[i] = c->bufs[(slot + 1) % 2].gpu;
		for (int k = 0; k < 2; k++)
			p->next_prbs[k].cpu[i] = c->next_prbs[k].gpu;
		*c->exit.cpu = ORDER_KERNEL_RUNNING;
		memset(c->bufs[(slot + 1) % 2].cpu, UNTOUCHED, BUF_BYTES);
		c->planned = plan(i, slot);
		p->prbs[0].cpu[i] = p->prbs[1].cpu[i] = 0;
		for (int k = 0; k < num_packets(i, slot); k++) {
			const packet all = make_packet(i, frame_of(slot), slot, k, KEEP);

			p->prbs[0].cpu[i] += (int)all.prbs[0];
			p->prbs[1].cpu[i] += (int)all.prbs[1];
		}
	}
}

static void launch(state *s, int slot)
{
	const uint32_t limit = slot < WHOLE_SLOTS ? LONG_NS : SHORT_NS;
	const int in_frame = (FIRST_SLOT + slot) % PER_FRAME;
	params *p = &s->par;

	REQUIRE(!launch_receive_kernel_for_test_bench(
			s->recv, p->rxq.gpu, p->sem.gpu, p->sem_items.gpu, p->id.gpu, p->exit.gpu,
			p->item.gpu, p->bits.gpu, limit, limit, batch_limit(slot), PKT_SIZE,
			(uint8_t)frame_of(slot), (uint8_t)(in_frame / 2), (uint8_t)(in_frame % 2),
			p->pkts.gpu, p->next_pkts.gpu, p->next_prbs[0].gpu, p->next_prbs[1].gpu,
			p->buf.gpu, p->next_buf.gpu, p->prbs[0].gpu, p->prbs[1].gpu, PRACH_SECTION,
			PRACH_SECTION + 1, PRACH_SECTION + 2, PRACH_SECTION + 3, nullptr, CELLS),
		"the kernel is not launched");
}

/* ---- checks ---- */

static void check_untouched(const uint8_t *buf, size_t from, size_t to, int slot, int cell)
{
	for (size_t at = from; at < to; at++)
		REQUIRE(buf[at] == UNTOUCHED, "slot %d cell %d: byte %zu of packet %zu is written",
			slot, cell, at % PKT_SIZE, at / PKT_SIZE);
}

/* Where a buffer has a packet. The kernel also copies the 4 bytes behind it, because it adds the
 * whole eCPRI header to a length that contains half of it. */
static void check_packet(const uint8_t *buf, size_t index, const packet &p, int slot, int cell)
{
	REQUIRE(!memcmp(buf + index * PKT_SIZE, p.bytes.data(), p.bytes.size()),
		"slot %d cell %d: packet %zu is wrong", slot, cell, index);
	check_untouched(buf, index * PKT_SIZE + p.bytes.size() + 4, (index + 1) * PKT_SIZE, slot,
			cell);
}

/* The packets of this slot are where they arrived, behind those that came early. */
static void check_kept(state *s, int slot, int cell_id)
{
	cell *c = s->cells[cell_id];
	const uint8_t *buf = c->bufs[slot % 2].cpu;
	size_t index = c->early_pkts;

	for (const packet &p : c->planned) {
		if (p.use == KEEP)
			check_packet(buf, index, p, slot, cell_id);
		else
			check_untouched(buf, index * PKT_SIZE, (index + 1) * PKT_SIZE, slot,
					cell_id);
		s->kept += p.use == KEEP;
		index++;
	}
	check_untouched(buf, index * PKT_SIZE, BUF_BYTES, slot, cell_id);
}

/* The threads copy the packets of the next slot in any order. */
static void check_early(state *s, int slot, int cell_id)
{
	cell *c = s->cells[cell_id];
	const uint8_t *buf = c->bufs[(slot + 1) % 2].cpu;
	std::vector<const packet *> want;
	size_t index, i;

	c->early_prbs[0] = c->early_prbs[1] = 0;
	for (const packet &p : c->planned) {
		if (p.use != EARLY)
			continue;
		want.push_back(&p);
		c->early_prbs[0] += p.prbs[0];
		c->early_prbs[1] += p.prbs[1];
	}
	s->early += want.size();
	c->early_pkts = (uint32_t)want.size();
	for (index = 0; index < c->early_pkts; index++) {
		for (i = 0; i < want.size(); i++)
			if (!memcmp(buf + index * PKT_SIZE, want[i]->bytes.data(),
				    want[i]->bytes.size()))
				break;
		REQUIRE(i < want.size(), "slot %d cell %d: packet %zu of the next slot is wrong",
			slot, cell_id, index);
		check_packet(buf, index, *want[i], slot, cell_id);
		want.erase(want.begin() + (long)i);
	}
	check_untouched(buf, index * PKT_SIZE, BUF_BYTES, slot, cell_id);
}

/* The items of the semaphore describe all packets. */
static void check_items(state *s, int slot, int cell_id, uint32_t from)
{
	cell *c = s->cells[cell_id];
	uint64_t received = c->received;
	cudaStream_t stream = s->send;

	read_items<<<1, 1, 0, stream>>>(c->rxq.sem_gpu, from, s->batches.gpu, s->num.gpu);
	check_stream(stream, "read_items");
	for (uint32_t i = 0; i < *s->num.cpu; i++) {
		const batch *b = &s->batches.cpu[i];

		REQUIRE(b->first == received && b->num && b->num <= batch_limit(slot),
			"slot %d cell %d: a batch of %u packets from %llu on", slot, cell_id,
			b->num, (unsigned long long)b->first);
		received += b->num;
	}
	c->received += c->planned.size();
	REQUIRE(received == c->received && *c->item.cpu == (from + *s->num.cpu) % SEM_ITEMS,
		"slot %d cell %d: %u items, packets to %llu, next item %u", slot, cell_id,
		*s->num.cpu, (unsigned long long)received, *c->item.cpu);
}

static void check_cell(state *s, int slot, int cell_id, uint32_t item)
{
	const uint32_t why = slot < WHOLE_SLOTS	   ? ORDER_KERNEL_EXIT_PRB
			     : slot == WHOLE_SLOTS ? ORDER_KERNEL_EXIT_TIMEOUT_RX_PKT
						   : ORDER_KERNEL_EXIT_TIMEOUT_NO_PKT;
	cell *c = s->cells[cell_id];
	uint32_t pkts = c->early_pkts;

	REQUIRE(*c->exit.cpu == why, "slot %d cell %d: the kernel ends for reason %u, not %u", slot,
		cell_id, *c->exit.cpu, why);
	check_kept(s, slot, cell_id);
	for (const packet &p : c->planned)
		pkts += p.use != EARLY;
	check_early(s, slot, cell_id);
	REQUIRE(*c->pkts.cpu == pkts && *c->next_pkts.cpu == c->early_pkts,
		"slot %d cell %d: %u packets and %u of the next slot, not %u and %u", slot, cell_id,
		*c->pkts.cpu, *c->next_pkts.cpu, pkts, c->early_pkts);
	REQUIRE(*c->next_prbs[0].cpu == c->early_prbs[0] &&
			*c->next_prbs[1].cpu == c->early_prbs[1],
		"slot %d cell %d: %u and %u PRBs of the next slot, not %u and %u", slot, cell_id,
		*c->next_prbs[0].cpu, *c->next_prbs[1].cpu, c->early_prbs[0], c->early_prbs[1]);
	check_items(s, slot, cell_id, item);
}

/* In odd slots the kernel starts before the packets are sent. */
static void run_slot(state *s, int slot)
{
	uint32_t items[CELLS];

	prepare(s, slot);
	for (int i = 0; i < CELLS; i++)
		items[i] = *s->cells[i]->item.cpu;
	if (slot % 2 == 1)
		launch(s, slot);
	send_all(s);
	if (slot % 2 == 0)
		launch(s, slot);
	check_stream(s->recv, "receive_kernel_for_test_bench");
	for (int i = 0; i < CELLS; i++)
		check_cell(s, slot, i, items[i]);
}

int main(int argc, char **argv)
{
	struct doca_gpu *gpu;
	struct doca_dev *dev;
	int device;

	/* The kernel prints in each slot. */
	if (argc != 3 || !freopen("/dev/null", "w", stdout))
		return 2;
#ifndef __CUDACC__
	gdk_grid::blocks_in_turn = true;
#endif
	dev = open_nic(argv[1]);
	REQUIRE(cudaDeviceGetByPCIBusId(&device, argv[2]) == cudaSuccess &&
			cudaSetDevice(device) == cudaSuccess,
		"no GPU %s", argv[2]);
	MUST(doca_gpu_create(argv[2], &gpu));

	state s(gpu);

	REQUIRE(cudaStreamCreateWithFlags(&s.recv, cudaStreamNonBlocking) == cudaSuccess &&
			cudaStreamCreateWithFlags(&s.send, cudaStreamNonBlocking) == cudaSuccess,
		"no streams");
	MUST(doca_create_tx_queue(&s.txq, gpu, dev, TX_PKTS, 0, DOCA_GPU_MEM_TYPE_GPU));
	MUST(doca_create_tx_buf(&s.sent, gpu, dev, DOCA_GPU_MEM_TYPE_GPU, CELLS * BUF_PKTS, STRIDE,
				0));
	for (int i = 0; i < CELLS; i++)
		s.cells[i] = make_cell(gpu, dev, i);
	for (int slot = 0; slot < SLOTS; slot++)
		run_slot(&s, slot);
	fprintf(stderr,
		"ok: %llu packets of %d slots received: %llu of the slot, %llu of the next\n",
		(unsigned long long)s.total, SLOTS, (unsigned long long)s.kept,
		(unsigned long long)s.early);
	return 0;
}

/* ---- what Aerial's function for completions calls ---- */

PacketStartDebugInfo *GpuComm::getPkt_start_debug(int, uint16_t)
{
	return nullptr;
}

uint64_t GpuComm::getDlSlotTriggerTs(uint32_t)
{
	return 0;
}
