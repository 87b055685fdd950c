/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * For tests of TXQs and RXQs on CPU threads: one of each on the software NIC, and a rule that sends
 * the packets of the TXQ to the RXQ. Packet i has i in its payload, and a payload that depends on
 * i.
 */
#ifndef ETH_QUEUE_RIG_H
#define ETH_QUEUE_RIG_H

/* core/nic/net_dev.h includes headers of DOCA GPUNetIO open. */
#define GDK_BOTH_SHAPES

#include <criterion/criterion.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <unistd.h>
#include <string.h>

#include "../../core/nic/net_dev.h"
#include "../../uar/uar.h"
#include "doca_eth_rxq_gpu_data_path.h"
#include "doca_eth_txq_gpu_data_path.h"
#include "doca_pe.h"
#include "gdk_eth_steer.h"
#include "gdk_sdk_eth_mcst_dev.h"

#include "doca_base_rig.h"

#define SLOT  256u /* bytes of a packet slot, of either queue */
#define EXCL  DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE
#define CTA   DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA
#define SHARE DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU
#define ALONE DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD

static const uint8_t rig_dmac[6] = { 2, 0, 0, 0, 0xe7, 1 }, rig_smac[6] = { 2, 0, 0, 0, 0xe7, 2 };

struct queues {
	struct doca_dev *dev;
	struct doca_gpu *gpu;
	uint8_t *rx_buf, *tx_buf;
	struct doca_mmap *rx_map, *tx_map;
	__be32 tx_key;
	uint32_t rx_num, tx_num;
	struct doca_eth_rxq *rxq;
	struct doca_eth_txq *txq;
	struct doca_gpu_eth_rxq *rx; /* NULL: no RXQ */
	struct doca_gpu_eth_txq *tx;
	struct gdk_eth_rule *rule;
};

/* ---- packets ---- */

static inline uint32_t packet_bytes(uint32_t i)
{
	return 64 + i * 7 % 150;
}

static inline uint8_t packet_byte(uint32_t i, uint32_t at)
{
	return (uint8_t)(i * 31 + at * 7 + (i >> 8));
}

/* An Ethernet frame of a local experimental type, with the packet's number behind the header. */
static inline uint32_t packet_write(uint8_t *p, uint32_t i)
{
	uint32_t at, len = packet_bytes(i);

	memcpy(p, rig_dmac, 6);
	memcpy(p + 6, rig_smac, 6);
	memcpy(p + 12, "\x88\xb5", 2);
	memcpy(p + 14, &i, 4);
	for (at = 18; at < len; at++)
		p[at] = packet_byte(i, at);
	return len;
}

static inline void packet_expect(const uint8_t *p, uint32_t len, uint32_t i)
{
	uint32_t at, number;

	memcpy(&number, p + 14, 4);
	cr_assert_eq(number, i, "got packet %u, expected %u", number, i);
	cr_assert_eq(len, packet_bytes(i), "packet %u has %u bytes", i, len);
	for (at = 18; at < len; at++)
		cr_assert_eq(p[at], packet_byte(i, at), "packet %u differs at byte %u", i, at);
}

/* ---- steering ---- */

/* Frames to rig_dmac go to the RXQ. */
static inline void rig_steer(struct queues *q)
{
	struct gdk_eth_match match = { .value.ether_type = 0 };

	memcpy(match.value.dst_mac, rig_dmac, 6);
	memset(match.mask.dst_mac, 0xff, 6);
	cr_assert_eq(gdk_eth_steer(q->dev, &match, &q->rxq, 1, 0, 0, &q->rule), DOCA_SUCCESS,
		     "the test needs CAP_NET_RAW");
}

static inline void rig_unsteer(struct queues *q)
{
	cr_expect_eq(gdk_eth_steer_destroy(q->rule), DOCA_SUCCESS);
}

/* ---- queues ---- */

static inline struct doca_mmap *rig_map(struct queues *q, uint32_t bytes, uint8_t **buf)
{
	struct doca_mmap *map;
	void *cpu = NULL;

	cr_assert_eq(
		doca_gpu_mem_alloc(q->gpu, bytes, 4096, DOCA_GPU_MEM_TYPE_GPU, (void **)buf, &cpu),
		DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_create(&map), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_add_dev(map, q->dev), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_set_memrange(map, *buf, bytes), DOCA_SUCCESS);
	cr_assert_eq(doca_mmap_start(map), DOCA_SUCCESS);
	return map;
}

static inline void rig_open_dev(struct queues *q)
{
	memset(q, 0, sizeof(*q));
	q->dev = rig_open();
	cr_assert_eq(doca_gpu_create("host", &q->gpu), DOCA_SUCCESS);
}

static inline void rig_start_rxq(struct queues *q, uint32_t num)
{
	struct doca_ctx *ctx;
	uint32_t bytes;

	q->rx_num = num;
	cr_assert_eq(doca_eth_rxq_create(q->dev, num, SLOT, &q->rxq), DOCA_SUCCESS);
	cr_assert_eq(doca_eth_rxq_estimate_packet_buf_size(DOCA_ETH_RXQ_TYPE_CYCLIC, 0, 0, SLOT,
							   num, 0, 0, 0, &bytes),
		     DOCA_SUCCESS);
	cr_assert_eq(bytes, num * SLOT);
	q->rx_map = rig_map(q, bytes, &q->rx_buf);
	cr_assert_eq(doca_eth_rxq_set_pkt_buf(q->rxq, q->rx_map, 0, bytes), DOCA_SUCCESS);
	ctx = doca_eth_rxq_as_doca_ctx(q->rxq);
	cr_assert_eq(doca_ctx_set_datapath_on_gpu(ctx, q->gpu), DOCA_SUCCESS);
	cr_assert_eq(doca_ctx_start(ctx), DOCA_SUCCESS);
	cr_assert_eq(doca_eth_rxq_get_gpu_handle(q->rxq, &q->rx), DOCA_SUCCESS);
}

static inline void rig_open_rxq(struct queues *q, uint32_t num)
{
	rig_start_rxq(q, num);
	rig_steer(q);
}

/* Creates a TXQ with its buffer of num slots. set: changes its settings; may be NULL. */
static inline void rig_open_txq(struct queues *q, uint32_t num, void (*set)(struct doca_eth_txq *))
{
	struct doca_ctx *ctx;
	uint32_t key;

	q->tx_num = num;
	q->tx_map = rig_map(q, num * SLOT, &q->tx_buf);
	cr_assert_eq(doca_mmap_get_mkey(q->tx_map, q->dev, &key), DOCA_SUCCESS);
	q->tx_key = htobe32(key);
	cr_assert_eq(doca_eth_txq_create(q->dev, num, &q->txq), DOCA_SUCCESS);
	if (set)
		set(q->txq);
	ctx = doca_eth_txq_as_doca_ctx(q->txq);
	cr_assert_eq(doca_ctx_set_datapath_on_gpu(ctx, q->gpu), DOCA_SUCCESS);
	cr_assert_eq(doca_ctx_start(ctx), DOCA_SUCCESS);
	cr_assert_eq(doca_eth_txq_get_gpu_handle(q->txq, &q->tx), DOCA_SUCCESS);
}

static inline void rig_gpu_cq(struct doca_eth_txq *txq)
{
	cr_assert_eq(doca_eth_txq_gpu_set_completion_on_gpu(txq), DOCA_SUCCESS);
}

static inline void rig_close_txq(struct queues *q)
{
	cr_expect_eq(doca_ctx_stop(doca_eth_txq_as_doca_ctx(q->txq)), DOCA_SUCCESS);
	cr_expect_eq(doca_eth_txq_destroy(q->txq), DOCA_SUCCESS);
	cr_expect_eq(doca_mmap_destroy(q->tx_map), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_mem_free(q->gpu, q->tx_buf), DOCA_SUCCESS);
}

static inline void rig_end_rxq(struct queues *q)
{
	cr_expect_eq(doca_ctx_stop(doca_eth_rxq_as_doca_ctx(q->rxq)), DOCA_SUCCESS);
	cr_expect_eq(doca_eth_rxq_destroy(q->rxq), DOCA_SUCCESS);
	cr_expect_eq(doca_mmap_destroy(q->rx_map), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_mem_free(q->gpu, q->rx_buf), DOCA_SUCCESS);
}

static inline void rig_close_rxq(struct queues *q)
{
	rig_unsteer(q);
	rig_end_rxq(q);
}

static inline void rig_close_dev(struct queues *q)
{
	cr_expect_eq(doca_gpu_destroy(q->gpu), DOCA_SUCCESS, "GPU memory leaks");
	cr_expect_eq(doca_dev_close(q->dev), DOCA_SUCCESS, "an object of the NIC leaks");
}

/* libmlx5 keeps pages of registers of each kind until the device is closed: gets one of each, so
 * that tests that count objects do not see new ones. */
static inline void rig_warm_uars(struct queues *q)
{
	struct doca_verbs_uar *uar;
	int type;

	for (type = 0; type <= DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED; type++)
		if (!doca_verbs_uar_create(q->dev, (enum doca_verbs_uar_allocation_type)type, &uar))
			cr_expect_eq(doca_verbs_uar_destroy(uar), DOCA_SUCCESS);
}

static inline void rig_open_both(struct queues *q, uint32_t rx_num, uint32_t tx_num,
				 void (*set)(struct doca_eth_txq *))
{
	rig_open_dev(q);
	rig_open_rxq(q, rx_num);
	rig_open_txq(q, tx_num, set);
}

static inline void rig_close_both(struct queues *q)
{
	rig_close_txq(q);
	rig_close_rxq(q);
	rig_close_dev(q);
}

/* ---- traffic ---- */

/* Writes packet i to its slot of the buffer and describes it. */
static inline struct gdk_eth_pkt rig_pkt(struct queues *q, uint32_t i)
{
	uint8_t *p = q->tx_buf + i % q->tx_num * SLOT;

	return gdk_eth_pkt((uintptr_t)p, q->tx_key, packet_write(p, i));
}

static inline struct gdk_how rig_how(gdk_mode_t mode)
{
	return gdk_how(mode, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
		       DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0);
}

static inline void rig_send(struct queues *q, uint32_t i, uint32_t flags, gdk_mode_t mode)
{
	doca_gpu_dev_eth_ticket_t ticket;

	cr_assert_eq(gdk_eth_send(q->tx, rig_pkt(q, i), flags, rig_how(mode), &ticket), 0);
	cr_assert_eq(ticket, i);
}

/* Receives exactly `num` packets, which are those from `first` on. */
static inline void rig_expect(struct queues *q, uint32_t first, uint32_t num)
{
	struct gdk_eth_batch b;
	uint32_t got = 0, i;

	while (got < num) {
		cr_assert_eq(gdk_eth_recv(q->rx, num - got, 5000000000ull, 0, ALONE, &b), 0);
		cr_assert(b.num, "packet %u has not arrived", first + got);
		cr_assert_eq((uint32_t)b.first, first + got);
		for (i = 0; i < b.num; i++)
			packet_expect(
				(const uint8_t *)(uintptr_t)gdk_eth_pkt_addr(q->rx, b.first + i),
				gdk_eth_pkt_bytes(q->rx, b.first + i), (uint32_t)b.first + i);
		got += b.num;
	}
}

#endif
