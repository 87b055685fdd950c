/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Work queues, their indirection tables and RSS QPs through libibverbs: what is created and
 * refused, the states of a work queue, busy rules, and frames that are spread by hash.
 */
#include "../lib/leaks.h"
#include "../lib/raw.h"

#include <arpa/inet.h>

#define WQS	4u
#define SLOT	2048u
#define RX_OFF	4096u
#define FRAME	64u
#define PER_WQ	64u
#define ALL_IP4 (IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4)
#define ALL_TCP (IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP)
#define ALL_UDP (IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP)
#define ALL_IP6 (IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6)

static struct vb v;
static struct ibv_cq *cq;
static struct ibv_wq *wqs[WQS];
static uint8_t key[40];

static struct ibv_wq *wq_try(uint32_t flags)
{
	struct ibv_wq_init_attr init = { .wq_type = IBV_WQT_RQ,
					 .max_wr = PER_WQ,
					 .max_sge = 1,
					 .pd = v.pd,
					 .cq = cq };

	if (flags)
		init.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
	init.create_flags = flags;
	errno = 0;
	return ibv_create_wq(v.ctx, &init);
}

static void open_all(void)
{
	unsigned i;

	raw_need();
	v = vb_open(RX_OFF + SLOT);
	cq = ibv_create_cq(v.ctx, 1023, NULL, NULL, 0);
	cr_assert(cq);
	for (i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i * 37 + 11);
	for (i = 0; i < WQS; i++)
		cr_assert((wqs[i] = wq_try(0)), "WQ: %s", strerror(errno));
}

static void close_all(void)
{
	unsigned i;

	for (i = 0; i < WQS; i++)
		cr_assert_eq(ibv_destroy_wq(wqs[i]), 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	vb_close(&v);
}

TestSuite(verbs_rss, .init = open_all, .fini = close_all);

static int wq_move(struct ibv_wq *wq, uint32_t mask, enum ibv_wq_state from, enum ibv_wq_state to)
{
	struct ibv_wq_attr attr = { .attr_mask = mask, .wq_state = to, .curr_wq_state = from };

	return ibv_modify_wq(wq, &attr);
}

static int wq_state(struct ibv_wq *wq, enum ibv_wq_state to)
{
	return wq_move(wq, IBV_WQ_ATTR_STATE, IBV_WQS_UNKNOWN, to);
}

static int wq_flags(struct ibv_wq *wq, uint32_t flags, uint32_t mask)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_FLAGS,
				    .flags = flags,
				    .flags_mask = mask };

	return ibv_modify_wq(wq, &attr);
}

static struct ibv_rwq_ind_table *table_of(uint32_t log, struct ibv_wq **list)
{
	struct ibv_rwq_ind_table_init_attr init = { .log_ind_tbl_size = log, .ind_tbl = list };

	errno = 0;
	return ibv_create_rwq_ind_table(v.ctx, &init);
}

static struct ibv_qp_init_attr_ex rss_init(struct ibv_rwq_ind_table *table, uint64_t fields)
{
	return (struct ibv_qp_init_attr_ex){
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.pd = v.pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf = { .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
				  .rx_hash_key_len = sizeof(key),
				  .rx_hash_key = key,
				  .rx_hash_fields_mask = fields },
	};
}

static struct ibv_qp *rss_qp(struct ibv_rwq_ind_table *table, uint64_t fields)
{
	struct ibv_qp_init_attr_ex init = rss_init(table, fields);

	errno = 0;
	return raw_qp_ex(v.ctx, &init);
}

/* ---- work queues ---- */
Test(verbs_rss, work_queue_changes_state)
{
	struct ibv_wq *wq = wqs[0];

	cr_assert_eq(wq_state(wq, IBV_WQS_RDY), 0);
	cr_assert_eq(wq_state(wq, IBV_WQS_RDY), 0);
	cr_assert_eq(
		wq_move(wq, IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE, IBV_WQS_RDY, IBV_WQS_ERR),
		0);
	cr_assert_eq(wq_state(wq, IBV_WQS_RDY), EINVAL, "a queue in error must be reset first");
	cr_assert_eq(
		wq_move(wq, IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE, IBV_WQS_RDY, IBV_WQS_RESET),
		EINVAL);
	cr_assert_eq(wq_state(wq, IBV_WQS_RESET), 0);
	cr_assert_eq(wq_state(wq, IBV_WQS_ERR), 0);
	cr_assert_eq(wq_state(wq, IBV_WQS_RESET), 0);
	cr_assert_eq(wq_state(wq, IBV_WQS_RDY), 0);
}

Test(verbs_rss, work_queue_refuses_wrong_attributes)
{
	struct ibv_wq *wq = wqs[0];

	cr_assert_eq(wq_move(wq, 0, 0, 0), EINVAL);
	cr_assert_eq(wq_state(wq, IBV_WQS_UNKNOWN), EINVAL);
	cr_assert_eq(wq_move(wq, IBV_WQ_ATTR_CURR_STATE, IBV_WQS_UNKNOWN, 0), EINVAL);
	cr_assert_eq(wq_move(wq, IBV_WQ_ATTR_CURR_STATE, IBV_WQS_RDY, 0), EINVAL);
	cr_assert_eq(wq_move(wq, IBV_WQ_ATTR_CURR_STATE, IBV_WQS_RESET, 0), 0);
	cr_assert_eq(wq_flags(wq, 0, IBV_WQ_FLAGS_PCI_WRITE_END_PADDING), EOPNOTSUPP);
	cr_assert_eq(wq_flags(wq, 0, IBV_WQ_FLAGS_SCATTER_FCS), EOPNOTSUPP);
	cr_assert_eq(wq_flags(wq, 0, IBV_WQ_FLAGS_CVLAN_STRIPPING), 0);
}

Test(verbs_rss, work_queue_flags)
{
	static const uint32_t good[] = { IBV_WQ_FLAGS_CVLAN_STRIPPING, IBV_WQ_FLAGS_SCATTER_FCS,
					 IBV_WQ_FLAGS_PCI_WRITE_END_PADDING };
	struct ibv_wq *wq;
	unsigned i;

	for (i = 0; i < 3; i++) {
		wq = wq_try(good[i]);
		cr_assert(wq, "flag %#x: %s", good[i], strerror(errno));
		cr_assert_eq(ibv_destroy_wq(wq), 0);
	}
	cr_assert_null(wq_try(IBV_WQ_FLAGS_DELAY_DROP));
	cr_assert_eq(errno, EOPNOTSUPP);
}

Test(verbs_rss, work_queue_uses_pd_and_cq)
{
	cr_assert_eq(ibv_dealloc_pd(v.pd), EBUSY);
	cr_assert_eq(ibv_destroy_cq(cq), EBUSY);
}

/* ---- tables ---- */
Test(verbs_rss, tables_of_several_sizes)
{
	struct ibv_rwq_ind_table *table;
	struct ibv_wq *list[1024];
	unsigned log, i;

	for (i = 0; i < 1024; i++)
		list[i] = wqs[i % WQS];
	for (log = 0; log <= 9; log++) {
		table = table_of(log, list);
		cr_assert(table, "log size %u", log);
		cr_assert_eq(ibv_destroy_wq(wqs[0]), EBUSY);
		cr_assert_eq(ibv_destroy_rwq_ind_table(table), 0);
	}
	cr_assert_null(table_of(10, list));
	cr_assert_eq(errno, EINVAL);
}

Test(verbs_rss, table_needs_work_queues)
{
	struct ibv_wq none = { .handle = 0x3ffff }, *list[] = { wqs[0], &none };
	uint32_t before = raw_live();

	cr_assert_null(table_of(1, list));
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(raw_live(), before);
	none.handle = cq->handle;
	cr_assert_null(table_of(1, list), "a handle of another kind");
	cr_assert_eq(raw_live(), before);
}

/* ---- RSS QPs ---- */
Test(verbs_rss, hash_fields_are_checked)
{
	static const uint64_t good[] = { ALL_IP4,
					 ALL_IP6,
					 ALL_TCP,
					 ALL_IP4 | ALL_UDP,
					 ALL_IP6 | ALL_TCP,
					 IBV_RX_HASH_SRC_IPV4,
					 IBV_RX_HASH_DST_IPV6 | IBV_RX_HASH_DST_PORT_UDP };
	static const struct {
		uint64_t fields;
		int err;
	} bad[] = { { 0, EINVAL },
		    { IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV6, EINVAL },
		    { IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_UDP, EINVAL },
		    { ALL_IP4 | IBV_RX_HASH_IPSEC_SPI, EOPNOTSUPP },
		    { ALL_IP4 | IBV_RX_HASH_INNER, EOPNOTSUPP },
		    { ALL_IP4 | 1ull << 20, EOPNOTSUPP } };
	struct ibv_rwq_ind_table *table = table_of(2, wqs), *one = table_of(0, wqs);
	struct ibv_qp *qp;
	unsigned i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		qp = rss_qp(table, good[i]);
		cr_assert(qp, "fields %#lx: %s", good[i], strerror(errno));
		cr_assert_eq(ibv_destroy_qp(qp), 0);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_assert_null(rss_qp(table, bad[i].fields), "fields %#lx", bad[i].fields);
		cr_assert_eq(errno, bad[i].err, "fields %#lx: %s", bad[i].fields, strerror(errno));
	}
	qp = rss_qp(one, 0);
	cr_assert(qp, "without fields a table of one queue is allowed");
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_rwq_ind_table(table), 0);
	cr_assert_eq(ibv_destroy_rwq_ind_table(one), 0);
}

static int refusal(struct ibv_qp_init_attr_ex *init)
{
	errno = 0;
	cr_assert_null(ibv_create_qp_ex(v.ctx, init));
	return errno;
}

Test(verbs_rss, wrong_attributes_are_refused)
{
	struct ibv_rwq_ind_table *table = table_of(2, wqs), none = { .ind_tbl_handle = 0x3ffff };
	struct ibv_qp_init_attr_ex init = rss_init(table, ALL_IP4);

	init.rx_hash_conf.rx_hash_key_len = 39;
	cr_assert_eq(refusal(&init), EINVAL);
	init = rss_init(table, ALL_IP4);
	init.rx_hash_conf.rx_hash_function = 2;
	cr_assert_eq(refusal(&init), EOPNOTSUPP);
	init = rss_init(table, ALL_IP4);
	init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	init.create_flags = IBV_QP_CREATE_CVLAN_STRIPPING;
	cr_assert_eq(refusal(&init), EINVAL);
	init = rss_init(table, ALL_IP4);
	init.cap.max_send_wr = 4;
	init.send_cq = cq;
	cr_assert_eq(refusal(&init), EINVAL);
	init = rss_init(&none, ALL_IP4);
	cr_assert_eq(refusal(&init), EINVAL);
	none.ind_tbl_handle = wqs[0]->handle;
	cr_assert_eq(refusal(&init), EINVAL);
	cr_assert_eq(ibv_destroy_rwq_ind_table(table), 0);
}

Test(verbs_rss, table_and_pd_are_busy)
{
	struct ibv_pd *pd = ibv_alloc_pd(v.ctx);
	struct ibv_rwq_ind_table *table = table_of(2, wqs);
	struct ibv_qp_init_attr_ex init = rss_init(table, ALL_IP4);
	struct ibv_qp_init_attr got;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp;

	init.pd = pd;
	qp = ibv_create_qp_ex(v.ctx, &init);
	cr_assert(qp);
	cr_assert_eq(qp->qp_num, 0);
	cr_assert_eq(ibv_dealloc_pd(pd), EBUSY);
	cr_assert_eq(ibv_destroy_rwq_ind_table(table), EBUSY);
	cr_assert_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), EOPNOTSUPP);
	cr_assert_eq(ibv_query_qp(qp, &attr, IBV_QP_STATE, &got), EOPNOTSUPP);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_dealloc_pd(pd), 0);
	cr_assert_eq(ibv_destroy_rwq_ind_table(table), 0);
}

/* Closing the context destroys a QP, its rule, table and queues in the right order. */
Test(verbs_rss, close_leaves_nothing)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 0x33 };
	uint32_t before = raw_live();
	struct vb old = v;
	struct ibv_cq *old_cq = cq;
	struct ibv_wq *list[2];

	leaks_ignore();
	v.ctx = pick_open();
	v.pd = ibv_alloc_pd(v.ctx);
	cq = ibv_create_cq(v.ctx, 63, NULL, NULL, 0);
	cr_assert(v.ctx && v.pd && cq);
	list[0] = wq_try(0);
	list[1] = wq_try(0);
	raw_flow(rss_qp(table_of(1, list), ALL_IP4), mac);
	cr_assert_geq(raw_live(), before + 9);
	cr_assert_eq(ibv_close_device(v.ctx), 0);
	cr_assert_eq(raw_live(), before);
	v = old;
	cq = old_cq;
}

/* ---- frames ---- */
static const uint8_t mac_a[6] = { 2, 0, 0, 0, 0, 0x0a };

/* Writes a frame with UDP over IPv4, from one address and port to another. */
static void frame(uint32_t saddr, uint32_t daddr, uint16_t sport, uint16_t dport)
{
	uint8_t *f = v.mem;
	uint32_t be;
	uint16_t p;

	memset(f, 0, FRAME);
	memcpy(f, mac_a, 6);
	f[6] = 2;
	f[12] = 8;
	f[14] = 0x45;
	f[17] = FRAME - 14;
	f[22] = 64;
	f[23] = IPPROTO_UDP;
	be = htonl(saddr);
	memcpy(f + 26, &be, 4);
	be = htonl(daddr);
	memcpy(f + 30, &be, 4);
	p = htons(sport);
	memcpy(f + 34, &p, 2);
	p = htons(dport);
	memcpy(f + 36, &p, 2);
	f[39] = FRAME - 34;
}

static void make_tcp(void)
{
	v.mem[23] = IPPROTO_TCP;
	v.mem[38] = v.mem[39] = 0;
	v.mem[46] = 5 << 4; /* length of the header in words */
}

static uint32_t bit_at(uint32_t bit)
{
	uint32_t i, window = 0;

	for (i = 0; i < 32; i++)
		window = window << 1 | (key[(bit + i) / 8] >> (7 - (bit + i) % 8) & 1);
	return window;
}

/* Toeplitz of the OR and XOR of source and destination: the kernel selects the symmetric hash. */
static uint32_t expect(uint32_t saddr, uint32_t daddr, uint16_t sport, uint16_t dport)
{
	uint32_t in[3] = { saddr | daddr, saddr ^ daddr,
			   (uint32_t)(sport | dport) << 16 | (uint16_t)(sport ^ dport) };
	uint32_t i, hash = 0;

	for (i = 0; i < 96; i++)
		if (in[i / 32] >> (31 - i % 32) & 1)
			hash ^= bit_at(i);
	return hash;
}

/* Sends one frame and returns the index of the WQ that received it. */
static unsigned which(struct ibv_qp *from, struct ibv_cq *tx)
{
	struct ibv_wc wc;
	unsigned i;

	raw_send(&v, from, 0, FRAME);
	cr_assert_eq(raw_wait(tx).status, IBV_WC_SUCCESS);
	wc = raw_wait(cq);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
	cr_assert_eq(wc.byte_len, FRAME);
	for (i = 0; i < WQS; i++)
		if (wqs[i]->wq_num == wc.wr_id)
			return i;
	cr_assert_fail("unknown work queue");
	return WQS;
}

static void fill(struct ibv_wq *wq)
{
	struct ibv_sge sge = vb_sge(&v, RX_OFF, SLOT);
	struct ibv_recv_wr wr = { .wr_id = wq->wq_num, .sg_list = &sge, .num_sge = 1 }, *bad;
	unsigned i;

	cr_assert_eq(wq_state(wq, IBV_WQS_RDY), 0);
	for (i = 0; i < PER_WQ; i++)
		cr_assert_eq(ibv_post_wq_recv(wq, &wr, &bad), 0);
}

static void hash_selects(uint64_t ports, bool tcp)
{
	struct ibv_cq *tx = ibv_create_cq(v.ctx, 63, NULL, NULL, 0);
	struct ibv_rwq_ind_table *table = table_of(2, wqs);
	struct ibv_qp *qp = rss_qp(table, ALL_IP4 | ports), *from = raw_qp(&v, tx, 16, 0, 0);
	struct ibv_flow *flow = raw_flow(qp, mac_a);
	uint32_t hits[WQS] = { 0 }, a, b, i, at;
	uint16_t s, d;

	raw_ready(from);
	for (i = 0; i < WQS; i++)
		fill(wqs[i]);
	for (i = 0; i < 24; i++) {
		a = 0x0a000001 + i * 77;
		b = 0xc0a80001 + i * 1013;
		s = (uint16_t)(1000 + i * 31);
		d = (uint16_t)(2000 + i);
		frame(a, b, s, d);
		if (tcp)
			make_tcp();
		at = which(from, tx);
		cr_assert_eq(at, expect(a, b, s, d) % WQS, "flow %u", i);
		frame(b, a, d, s);
		if (tcp)
			make_tcp();
		cr_assert_eq(which(from, tx), at, "flow %u in the other direction", i);
		hits[at]++;
	}
	for (i = 0; i < WQS; i++)
		cr_assert_gt(hits[i], 0, "queue %u received nothing", i);
	cr_assert_eq(ibv_destroy_flow(flow), 0);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_qp(from), 0);
	cr_assert_eq(ibv_destroy_rwq_ind_table(table), 0);
	cr_assert_eq(ibv_destroy_cq(tx), 0);
}

Test(verbs_rss, hash_of_udp_selects_the_queue)
{
	hash_selects(ALL_UDP, false);
}

Test(verbs_rss, hash_of_tcp_selects_the_queue)
{
	hash_selects(ALL_TCP, true);
}

/* Sends a frame with a VLAN tag to the only queue of a table; returns the received length. */
static uint32_t tagged_to(struct ibv_wq *wq, struct ibv_qp *from, struct ibv_cq *tx)
{
	struct ibv_rwq_ind_table *table = table_of(0, &wq);
	struct ibv_qp *qp = rss_qp(table, 0);
	struct ibv_flow *flow = raw_flow(qp, mac_a);
	struct ibv_wc wc;

	frame(1, 2, 3, 4);
	v.mem[12] = 0x81;
	raw_send(&v, from, 0, FRAME);
	cr_assert_eq(raw_wait(tx).status, IBV_WC_SUCCESS);
	wc = raw_wait(cq);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
	cr_assert_eq(ibv_destroy_flow(flow), 0);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_rwq_ind_table(table), 0);
	return wc.byte_len;
}

Test(verbs_rss, work_queue_flags_have_effect)
{
	struct ibv_cq *tx = ibv_create_cq(v.ctx, 63, NULL, NULL, 0);
	struct ibv_wq *strip = wq_try(IBV_WQ_FLAGS_CVLAN_STRIPPING),
		      *fcs = wq_try(IBV_WQ_FLAGS_SCATTER_FCS);
	struct ibv_qp *from = raw_qp(&v, tx, 16, 0, 0);

	raw_ready(from);
	fill(strip);
	fill(fcs);
	fill(wqs[0]);
	cr_assert_eq(tagged_to(wqs[0], from, tx), FRAME);
	cr_assert_eq(tagged_to(strip, from, tx), FRAME - 4);
	cr_assert_eq(tagged_to(fcs, from, tx), FRAME + 4);
	cr_assert_eq(wq_flags(strip, 0, IBV_WQ_FLAGS_CVLAN_STRIPPING), 0);
	cr_assert_eq(tagged_to(strip, from, tx), FRAME);
	cr_assert_eq(wq_flags(strip, IBV_WQ_FLAGS_CVLAN_STRIPPING, IBV_WQ_FLAGS_CVLAN_STRIPPING),
		     0);
	cr_assert_eq(tagged_to(strip, from, tx), FRAME - 4);
	cr_assert_eq(ibv_destroy_wq(strip), 0);
	cr_assert_eq(ibv_destroy_wq(fcs), 0);
	cr_assert_eq(ibv_destroy_qp(from), 0);
	cr_assert_eq(ibv_destroy_cq(tx), 0);
}

Test(verbs_rss, no_loopback_without_the_flag)
{
	struct ibv_cq *tx = ibv_create_cq(v.ctx, 63, NULL, NULL, 0);
	struct ibv_rwq_ind_table *table = table_of(0, wqs);
	struct ibv_qp_init_attr_ex init = rss_init(table, 0);
	struct ibv_qp *qp = ibv_create_qp_ex(v.ctx, &init), *from = raw_qp(&v, tx, 16, 0, 0);
	struct timespec nap = { 0, 20000000 };
	struct ibv_flow *flow;
	struct ibv_wc wc;

	cr_assert(qp);
	flow = raw_flow(qp, mac_a);
	raw_ready(from);
	fill(wqs[0]);
	frame(1, 2, 3, 4);
	raw_send(&v, from, 0, FRAME);
	cr_assert_eq(raw_wait(tx).status, IBV_WC_SUCCESS);
	nanosleep(&nap, NULL);
	cr_assert_eq(ibv_poll_cq(cq, 1, &wc), 0);
	cr_assert_eq(ibv_destroy_flow(flow), 0);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_qp(from), 0);
	cr_assert_eq(ibv_destroy_rwq_ind_table(table), 0);
	cr_assert_eq(ibv_destroy_cq(tx), 0);
}
