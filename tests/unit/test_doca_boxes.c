/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * As test_boxes.c, for what Ethernet queues and flow rules consist of: CQ, transport domain, TIS,
 * SQ, RQ, queue counters, RQT, TIR, flow counter, matcher and rule, and the structs that kernels
 * get. Fields and values are those of DPDK 22.11 (drivers/common/mlx5/mlx5_devx_cmds.c).
 */
#include <arpa/inet.h>

#include "../../qp/eth/txq.h"
#include "../../qp/flow/steer.h"
#include "box_rig.h"
#include "eth_queue_rig.h"

#define NUM	 64u
#define OK(call) cr_assert_eq(call, DOCA_SUCCESS, "line %d: %s", __LINE__, #call)
#define H(n)	 DOCA_GPUNETIO_VERBS_NIC_HANDLER_##n

static struct queues q;

static void open_all(void)
{
	rig_open_dev(&q);
	box_clear();
}

/* Criterion does not count assertions of a teardown. */
static void close_all(void)
{
	if (doca_gpu_destroy(q.gpu) || doca_dev_close(q.dev))
		abort();
}

TestSuite(doca_boxes, .init = open_all, .fini = close_all);

static uint64_t offset(const void *ptr, const struct doca_verbs_umem *umem)
{
	return (uint64_t)((const uint8_t *)ptr - (const uint8_t *)umem->addr);
}

/* The CQ of a queue of NUM entries: it ignores overruns, and its DBREC is the first line. */
static void expect_cq(const struct gdk_slab_unit *unit, const doca_verbs_cq_t *cq)
{
	uint32_t eqn;

	cr_assert(!mlx5dv_devx_query_eqn(q.dev->ctx, 0, &eqn));
	BOX(0x400, 0x110, F(0, PRM_CREATE_CQ_UMEM_OFFSET, offset(unit->pages, unit->umem) + 4096),
	    F(0, PRM_CREATE_CQ_UMEM_ID, unit->umem->devx->umem_id),
	    F(0, PRM_CREATE_CQ_UMEM_VALID, 1), F(0x10, PRM_CQC_OI, 1),
	    F(0x10, PRM_CQC_LOG_CQ_SIZE, 6), F(0x10, PRM_CQC_UAR_PAGE, cq->uar->devx->page_id),
	    F(0x10, PRM_CQC_C_EQN, eqn), F(0x10, PRM_CQC_DBR_UMEM_VALID, 1),
	    F(0x10, PRM_CQC_DBR_UMEM_ID, unit->umem->devx->umem_id),
	    F(0x10, PRM_CQC_DBR_ADDR, offset(unit->lines, unit->umem)));
}

/* The fields of a work queue at byte 0x50, of NUM entries of 2^log_stride bytes. */
#define WQ(unit, log_stride) \
	F(0x50, PRM_WQ_TYPE, 1 /* cyclic */), F(0x50, PRM_WQ_PD, q.dev->pdn), \
		F(0x50, PRM_WQ_LOG_STRIDE, log_stride), F(0x50, PRM_WQ_LOG_SZ, 6), \
		F(0x50, PRM_WQ_UMEM_VALID, 1), \
		F(0x50, PRM_WQ_UMEM_ID, (unit)->umem->devx->umem_id), \
		F(0x50, PRM_WQ_UMEM_OFFSET, offset((unit)->pages, (unit)->umem)), \
		F(0x50, PRM_WQ_DBR_UMEM_VALID, 1), \
		F(0x50, PRM_WQ_DBR_UMEM_ID, (unit)->umem->devx->umem_id), \
		F(0x50, PRM_WQ_DBR_ADDR, offset((unit)->lines, (unit)->umem) + 64)

/* A queue moves from RST (0) to RDY (1). */
#define READY(opcode, num, field) BOX(opcode, 0x110, F(0, PRM_CMD_OBJECT, num), F(0x20, field, 1))

/* ---- send queues ---- */

Test(doca_boxes, send_queue)
{
	const struct gdk_slab_unit *unit;

	rig_open_txq(&q, NUM, rig_gpu_cq);
	unit = &q.txq->unit;
	expect_cq(unit, q.txq->cq);
	BOX(0x816, 0x10, F(0, PRM_CMD_UID, 0));
	BOX(0x912, 0xc0, F(0x20, PRM_TISC_TD, box_number(0x816)));
	BOX(0x904, 0x110, F(0x20, PRM_SQC_FLUSH_IN_ERROR, 1), F(0x20, PRM_SQC_MULTI_PKT, 1),
	    F(0x20, PRM_SQC_TS_FORMAT, 0 /* free running */), F(0x20, PRM_SQC_CQN, q.txq->cq->cqn),
	    F(0x20, PRM_SQC_TIS_LST_SZ, 1), F(0x20, PRM_SQC_TIS_NUM_0, box_number(0x912)),
	    F(0x50, PRM_WQ_UAR_PAGE, q.txq->uar->devx->page_id), WQ(unit, 6));
	READY(0x905, box_number(0x904), PRM_SQC_STATE);
	rig_close_txq(&q);
}

/* The UAR of the queue, then that of its CQ, which is created later. */
Test(doca_boxes, uars_of_a_send_queue)
{
	struct doca_eth_txq *txq;
	struct doca_ctx *ctx;

	OK(doca_eth_txq_create(q.dev, NUM, &txq));
	OK(doca_eth_txq_gpu_set_completion_on_gpu(txq));
	ctx = doca_eth_txq_as_doca_ctx(txq);
	OK(doca_ctx_set_datapath_on_gpu(ctx, q.gpu));
	OK(doca_ctx_start(ctx));
	UARS(UAR_DEDICATED, UAR_NC);
	OK(doca_ctx_stop(ctx));
	box_clear();
	box_refused_uars = 1u << 2;
	OK(doca_ctx_start(ctx));
	UARS(UAR_DEDICATED, UAR_NC, UAR_NC);
	OK(doca_ctx_stop(ctx));
	box_clear();
	box_refused_uars = 1u << 2 | 1u << UAR_NC;
	OK(doca_ctx_start(ctx));
	UARS(UAR_DEDICATED, UAR_NC, UAR_BF, UAR_NC, UAR_BF);
	OK(doca_ctx_stop(ctx));
	box_clear();
	box_refused_uars = 0;
	OK(gdk_eth_txq_set_nic_handler(txq, H(GPU_SM_BF)));
	OK(doca_ctx_start(ctx));
	UARS(UAR_BF, UAR_NC);
	OK(doca_ctx_stop(ctx));
	OK(doca_eth_txq_destroy(txq));
}

static void wants_nothing(struct doca_eth_txq *txq)
{
	(void)txq;
}

static void wants_checksums(struct doca_eth_txq *txq)
{
	rig_gpu_cq(txq);
	OK(doca_eth_txq_set_l3_chksum_offload(txq, 1));
	OK(doca_eth_txq_set_l4_chksum_offload(txq, 1));
}

static void wants_l3(struct doca_eth_txq *txq)
{
	rig_gpu_cq(txq);
	OK(doca_eth_txq_set_l3_chksum_offload(txq, 1));
}

static void wants_l4(struct doca_eth_txq *txq)
{
	rig_gpu_cq(txq);
	OK(doca_eth_txq_set_l4_chksum_offload(txq, 1));
}

static void expect_tx(void (*set)(struct doca_eth_txq *), uint32_t cs, uint32_t flags)
{
	const struct gdk_qp_state *st;
	struct gdk_eth_tx want = { .cs = cs, .flags = flags };

	rig_open_txq(&q, NUM, set);
	want.marks = (uintptr_t)q.txq->marks;
	want.notes = (uintptr_t)q.txq->notes;
	cr_expect_arr_eq((uint8_t *)&q.tx->tx, (uint8_t *)&want, sizeof(want), "cs 0x%x flags 0x%x",
			 q.tx->tx.cs, q.tx->tx.flags);
	st = q.tx->qp.gdk_state;
	/* SYS_SCOPE, HOST_EXEC and ETHERNET */
	cr_expect_eq(st->flags, 0x85, "flags 0x%x", st->flags);
	cr_expect(st->uneven == 1 && st->long_wqe == 1 && st->depth == NUM);
	cr_expect_eq(st->cq_num, NUM);
	rig_close_txq(&q);
}

/* Checksum bits of the Ethernet segment: MLX5_ETH_WQE_L3_CSUM and MLX5_ETH_WQE_L4_CSUM of
 * linux/mlx5/qp.h. Flags of kernels: 1 completions on the CPU, 2 multi-packet WQEs. */
Test(doca_boxes, struct_of_a_send_queue)
{
	cr_expect_eq(GDK_ETH_TXF_CPU_CQ, 1);
	cr_expect_eq(GDK_ETH_TXF_EMPW, 2);
	expect_tx(rig_gpu_cq, 0, 2);
	expect_tx(wants_nothing, 0, 3);
	expect_tx(wants_l3, 0x40, 2);
	expect_tx(wants_l4, 0x80, 2);
	expect_tx(wants_checksums, 0xc0, 2);
}

/* ---- receive queues ---- */

static void expect_ring(uint32_t key)
{
	const struct doca_gpunetio_ib_mlx5_wqe_data_seg *ring = q.rxq->unit.pages;
	uint32_t i;

	for (i = 0; i < NUM; i++) {
		cr_expect_eq(ring[i].byte_count, htobe32(SLOT));
		cr_expect_eq(ring[i].lkey, htobe32(key));
		cr_expect_eq(ring[i].addr, htobe64((uintptr_t)q.rx_buf + i * SLOT));
	}
}

Test(doca_boxes, receive_queue)
{
	const struct gdk_slab_unit *unit;
	struct doca_gpu_eth_rxq want;
	uint32_t key;

	rig_start_rxq(&q, NUM);
	unit = &q.rxq->unit;
	expect_cq(unit, q.rxq->cq);
	UARS(UAR_NC);
	BOX(0x771, 0x10, F(0, PRM_CMD_UID, 0));
	BOX(0x908, 0x110, F(0x20, PRM_RQC_VSD, 1 /* VLAN tags stay */),
	    F(0x20, PRM_RQC_FLUSH_IN_ERROR, 1), F(0x20, PRM_RQC_TS_FORMAT, 0 /* free running */),
	    F(0x20, PRM_RQC_CQN, q.rxq->cq->cqn),
	    F(0x20, PRM_RQC_COUNTER_SET, box_number(0x771) & 0xff), WQ(unit, 4));
	READY(0x909, box_number(0x908), PRM_RQC_STATE);
	OK(doca_mmap_get_mkey(q.rx_map, q.dev, &key));
	expect_ring(key);
	cr_expect_eq(((uint32_t *)unit->lines)[16], htobe32(NUM), "all receives are offered");
	want = (struct doca_gpu_eth_rxq){
		.pkts = (uintptr_t)q.rx_buf,
		.cqes = (uintptr_t)unit->pages + 4096,
		.dbrec = (uintptr_t)unit->lines + 64,
		.num = NUM,
		.stride = SLOT,
		.mkey = htobe32(key),
		.error_packet = UINT64_MAX,
	};
	cr_expect_arr_eq((uint8_t *)q.rx, (uint8_t *)&want, sizeof(want));
	rig_end_rxq(&q);
}

/* counter_set_id has 8 bits, and the reply has more. The NIC refuses the RQ, as it has no such
 * set. */
Test(doca_boxes, number_of_a_set_of_counters)
{
	struct doca_ctx *ctx;

	rig_start_rxq(&q, NUM);
	ctx = doca_eth_rxq_as_doca_ctx(q.rxq);
	OK(doca_ctx_stop(ctx));
	box_clear();
	box_counter_set = 0x1234f1;
	cr_expect_eq(doca_ctx_start(ctx), DOCA_ERROR_DRIVER);
	box_counter_set = 0;
	cr_expect_eq(prm_get(boxes.box[box_last(0x908)].in + 0x20, PRM_RQC_COUNTER_SET), 0xf1);
	OK(doca_ctx_start(ctx));
	rig_end_rxq(&q);
}

/* ---- flow rules ---- */

static struct queues other; /* the RXQ only */

static void open_rxqs(void)
{
	other.dev = q.dev;
	other.gpu = q.gpu;
	rig_start_rxq(&q, NUM);
	rig_start_rxq(&other, NUM);
	box_clear();
}

static void close_rxqs(void)
{
	rig_end_rxq(&other);
	rig_end_rxq(&q);
}

/* A match of IPv4 and, unless it is 0, of this protocol. */
static struct gdk_eth_match match_of(uint8_t protocol)
{
	struct gdk_eth_match m = { .value.ether_type = htons(0x0800), .mask.ether_type = 0xffff };

	m.value.ip_protocol = protocol;
	m.mask.ip_protocol = protocol ? 0xff : 0;
	return m;
}

static struct gdk_eth_rule *steer(const struct gdk_eth_match *m, uint32_t n, uint32_t hash,
				  uint32_t priority)
{
	struct doca_eth_rxq *rxqs[] = { q.rxq, other.rxq, q.rxq };
	struct gdk_eth_rule *rule;

	OK(gdk_eth_steer(q.dev, m, rxqs, n, hash, priority, &rule));
	return rule;
}

Test(doca_boxes, tir_of_one_queue)
{
	struct gdk_eth_match m = match_of(0);
	struct gdk_eth_rule *rule;

	open_rxqs();
	rule = steer(&m, 1, 0, 0);
	BOX(0x816, 0x10, F(0, PRM_CMD_UID, 0));
	BOX(0x900, 0x110, F(0x20, PRM_TIRC_DISP_TYPE, 0 /* direct */),
	    F(0x20, PRM_TIRC_INLINE_RQN, q.rxq->rq.number),
	    F(0x20, PRM_TIRC_TRANSPORT_DOMAIN, box_number(0x816)));
	OK(gdk_eth_steer_destroy(rule));
	close_rxqs();
}

/* A table of 2 has an entry for each queue, one of 3 has 16 for each of the next power of two. */
static void expect_rqt(uint32_t n, uint32_t entries)
{
	const uint32_t rqn[] = { q.rxq->rq.number, other.rxq->rq.number, q.rxq->rq.number };
	struct box_field f[3 + 64] = {
		F(0, PRM_CMD_OPCODE, 0x916),
		F(0x20, PRM_RQTC_MAX_SIZE, entries),
		F(0x20, PRM_RQTC_ACTUAL_SIZE, entries),
	};
	uint32_t i;

	for (i = 0; i < entries; i++)
		f[3 + i] = (struct box_field)F(0x110 + 4 * i, PRM_RQ_NUM, rqn[i % n]);
	box_expect(__LINE__, 0x916, 0x110 + 4 * entries, f, 3 + entries);
}

/* The key is Microsoft's, from "Verifying the RSS Hash Calculation". */
#define KEY(i, word) F(0x20 + PRM_TIRC_TOEPLITZ_KEY_AT + 4 * (i), PRM(0, 31, 0), word)
#define KEYS \
	KEY(0, 0x6d5a56da), KEY(1, 0x255b0ec2), KEY(2, 0x4167253d), KEY(3, 0x43a38fb0), \
		KEY(4, 0xd0ca2bcb), KEY(5, 0xae7b30b4), KEY(6, 0x77cb2da3), KEY(7, 0x8030f20c), \
		KEY(8, 0x6a42b73b), KEY(9, 0xbeac01fa)

/* selected: 1 source address, 2 destination address, 4 source port, 8 destination port */
static void expect_hash(uint8_t protocol, uint32_t n, uint32_t hash, uint32_t l4, uint32_t selected)
{
	const struct gdk_eth_match m = match_of(protocol);
	struct gdk_eth_rule *rule = steer(&m, n, hash, 0);

	expect_rqt(n, n == 3 ? 64 : n);
	BOX(0x900, 0x110, F(0x20, PRM_TIRC_DISP_TYPE, 1 /* indirect */),
	    F(0x20, PRM_TIRC_INDIRECT_TABLE, box_number(0x916)),
	    F(0x20, PRM_TIRC_RX_HASH_FN, 2 /* Toeplitz */),
	    F(0x20, PRM_TIRC_TRANSPORT_DOMAIN, box_number(0x816)), KEYS,
	    F(0x70, PRM_HASH_L4_PROT_TYPE, l4), F(0x70, PRM_HASH_SELECTED, selected));
	OK(gdk_eth_steer_destroy(rule));
}

Test(doca_boxes, tirs_that_hash)
{
	open_rxqs();
	expect_hash(0, 3, GDK_ETH_HASH_IPV4, 0, 3);
	expect_hash(IPPROTO_UDP, 2, GDK_ETH_HASH_UDP, 1, 12);
	expect_hash(IPPROTO_TCP, 1, GDK_ETH_HASH_IPV4 | GDK_ETH_HASH_TCP, 0, 15);
	expect_hash(IPPROTO_TCP, 2, GDK_ETH_HASH_IPV4 | GDK_ETH_HASH_UDP, 0, 3);
	close_rxqs();
}

#define MATCH(bytes, ...) box_compare(__LINE__, bytes, PRM_FTE_LYR_2_4_LEN, BOX_ROWS(__VA_ARGS__))

static void expect_matcher(uint16_t priority)
{
	const struct mlx5dv_flow_matcher_attr *a = &boxes.flow.matcher;

	cr_expect(a->type == IBV_FLOW_ATTR_NORMAL && !a->flags && !a->comp_mask);
	cr_expect_eq(a->priority, priority);
	cr_expect_eq(a->match_criteria_enable, 1, "outer headers only");
	cr_expect(boxes.flow.mask_len == 64 && boxes.flow.value_len == 64);
}

Test(doca_boxes, rule_with_every_field)
{
	struct gdk_eth_match m = match_of(IPPROTO_TCP);
	struct gdk_eth_rule *rule;

	open_rxqs();
	memcpy(m.value.dst_mac, "\x02\x11\x22\x33\x44\x55", 6);
	memset(m.mask.dst_mac, 0xff, 6);
	memcpy(m.value.src_mac, "\x66\x77\x88\x99\xaa\xb0", 6);
	memcpy(m.mask.src_mac, "\xff\xff\xff\xff\xff\xf0", 6);
	m.value.vlan_id = htons(0x123), m.mask.vlan_id = htons(0xfff);
	m.value.src_ip = htonl(0x0a010203), m.mask.src_ip = htonl(0xffffffff);
	m.value.dst_ip = htonl(0x0a040500), m.mask.dst_ip = htonl(0xffffff00);
	m.value.src_port = htons(0x1112), m.mask.src_port = htons(0xffff);
	m.value.dst_port = htons(0x2220), m.mask.dst_port = htons(0xfff0);
	m.value.tcp_flags = 0x12, m.mask.tcp_flags = 0x3f;
	m.mask.fragment = 1;
	rule = steer(&m, 1, 0, 5);
	expect_matcher(5);
	MATCH(boxes.flow.mask, F(0, PRM_FTE_SMAC_47_16, 0xffffffff),
	      F(0, PRM_FTE_SMAC_15_0, 0xfff0), F(0, PRM_FTE_ETHERTYPE, 0xffff),
	      F(0, PRM_FTE_DMAC_47_16, 0xffffffff), F(0, PRM_FTE_DMAC_15_0, 0xffff),
	      F(0, PRM_FTE_FIRST_VID, 0xfff), F(0, PRM_FTE_IP_PROTOCOL, 0xff),
	      F(0, PRM_FTE_CVLAN_TAG, 1), F(0, PRM_FTE_FRAG, 1), F(0, PRM_FTE_TCP_FLAGS, 0x3f),
	      F(0, PRM_FTE_TCP_SPORT, 0xffff), F(0, PRM_FTE_TCP_DPORT, 0xfff0),
	      F(0x20, PRM_IPV4, 0xffffffff), F(0x30, PRM_IPV4, 0xffffff00));
	MATCH(boxes.flow.value, F(0, PRM_FTE_SMAC_47_16, 0x66778899),
	      F(0, PRM_FTE_SMAC_15_0, 0xaab0), F(0, PRM_FTE_ETHERTYPE, 0x0800),
	      F(0, PRM_FTE_DMAC_47_16, 0x02112233), F(0, PRM_FTE_DMAC_15_0, 0x4455),
	      F(0, PRM_FTE_FIRST_VID, 0x123), F(0, PRM_FTE_IP_PROTOCOL, 6),
	      F(0, PRM_FTE_CVLAN_TAG, 1), F(0, PRM_FTE_TCP_FLAGS, 0x12),
	      F(0, PRM_FTE_TCP_SPORT, 0x1112), F(0, PRM_FTE_TCP_DPORT, 0x2220),
	      F(0x20, PRM_IPV4, 0x0a010203), F(0x30, PRM_IPV4, 0x0a040500));
	OK(gdk_eth_steer_destroy(rule));
	close_rxqs();
}

static void expect_action(size_t i, enum mlx5dv_flow_action_type type)
{
	cr_expect_eq(boxes.flow.actions[i].type, type, "action %zu is %d", i,
		     boxes.flow.actions[i].type);
}

/* Ports of UDP are other fields than those of TCP. A rule without queues drops. */
Test(doca_boxes, rule_for_udp_that_drops)
{
	struct gdk_eth_match m = match_of(IPPROTO_UDP);
	struct gdk_eth_rule *rule;
	uint64_t packets, bytes;

	m.value.src_port = htons(0x1112), m.mask.src_port = htons(0xffff);
	m.value.dst_port = htons(0x2220), m.mask.dst_port = htons(0xfff0);
	OK(gdk_eth_steer(q.dev, &m, NULL, 0, 0, 15, &rule));
	expect_matcher(15);
	MATCH(boxes.flow.mask, F(0, PRM_FTE_ETHERTYPE, 0xffff), F(0, PRM_FTE_IP_PROTOCOL, 0xff),
	      F(0, PRM_FTE_UDP_SPORT, 0xffff), F(0, PRM_FTE_UDP_DPORT, 0xfff0));
	MATCH(boxes.flow.value, F(0, PRM_FTE_ETHERTYPE, 0x0800), F(0, PRM_FTE_IP_PROTOCOL, 17),
	      F(0, PRM_FTE_UDP_SPORT, 0x1112), F(0, PRM_FTE_UDP_DPORT, 0x2220));
	cr_expect_eq(boxes.flow.num_actions, 2);
	expect_action(0, MLX5DV_FLOW_ACTION_DROP);
	expect_action(1, MLX5DV_FLOW_ACTION_COUNTERS_DEVX);
	BOX(0x939, 0x10, F(0, PRM_CMD_UID, 0));
	OK(gdk_eth_steer_query(rule, &packets, &bytes));
	BOX(0x93b, 0x20, F(0, PRM_QUERY_FLOW_COUNTER_ID, box_number(0x939)));
	OK(gdk_eth_steer_destroy(rule));
	cr_expect_eq(boxes.num_boxes, 2);
}
