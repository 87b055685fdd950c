/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Which commands and calls the emulated firmware and kernel refuse, depending on
 * the card's capabilities: time stamp formats, core direct, ports of a bond, event
 * types, number of QPs. Also which traffic class and DSCP packets carry, and a CQ
 * counter that lags. Each test configures the card before it opens it.
 */
#include <stdio.h>
#include <unistd.h>

#include "../lib/rawnic.h"

#define REFUSED 0x3 /* status: bad parameter */
#define OPT_LAG (1u << 15)

struct card {
	struct nic n;
	struct mlx5dv_devx_obj *cq, *qp;
	uint32_t cqn, qpn;
	union ibv_gid gid;
};

static void card_open(struct card *c)
{
	uint32_t in[0x110 / 4];

	memset(c, 0, sizeof(*c));
	nic_open(&c->n);
	cr_assert_eq(ibv_query_gid(c->n.ctx, 1, 3, &c->gid), 0);
	cq_box(&c->n, in);
	c->cq = create(&c->n, in, &c->cqn);
	cr_assert(c->cq);
}

static void card_close(struct card *c)
{
	cr_assert(!c->qp || !mlx5dv_devx_obj_destroy(c->qp));
	cr_assert_eq(mlx5dv_devx_obj_destroy(c->cq), 0);
	nic_close(&c->n);
}

/* Creates a QP with these bits set at byte `at` of its context. Returns the firmware's status. */
static uint32_t try_qp(struct card *c, uint32_t at, uint32_t bits)
{
	uint32_t in[0x110 / 4];

	if (c->qp)
		cr_assert_eq(mlx5dv_devx_obj_destroy(c->qp), 0);
	qp_box(&c->n, in, c->cqn);
	put(in, 0x18 + at, bits);
	c->qp = create(&c->n, in, &c->qpn);
	return last_status;
}

static uint32_t cap(const struct card *c, uint32_t group, uint32_t at)
{
	uint32_t in[4] = { 0 }, out[0x1010 / 4] = { 0 };

	put(in, 0, 0x100u << 16);
	put(in, 4, group << 1 | 1);
	return mlx5dv_devx_general_cmd(c->n.ctx, in, sizeof(in), out, sizeof(out))
		       ? UINT32_MAX
		       : get(out, 0x10 + at);
}

/* ---- time stamps ---- */

/*
 * ok: bit i is set if format i must be accepted. value: expected value of each of the
 * capability fields sq_ts_format, rq_ts_format and qp_ts_format.
 */
static void expect_formats(const char *kind, uint32_t value, uint32_t ok)
{
	struct card c;

	setenv("SOFTNIC_TS_FORMAT", kind, 1);
	card_open(&c);
	cr_expect_eq(cap(&c, 0, 0x88) >> 28, value << 2 | value);
	cr_expect_eq(cap(&c, 4, 0x00) & 3, value);
	for (uint32_t i = 0; i < 4; i++)
		cr_expect_eq(try_qp(&c, 0x08, i << 6), ok >> i & 1 ? 0 : REFUSED,
			     "capability %s, format %u", kind, i);
	card_close(&c);
}

Test(softnic_card, only_free_running_time_stamps)
{
	expect_formats("free", 0, 1 << 0 | 1 << 1);
}

Test(softnic_card, only_real_time_stamps)
{
	expect_formats("real", 1, 1 << 1 | 1 << 2);
}

Test(softnic_card, both_kinds_of_time_stamps)
{
	expect_formats("both", 2, 1 << 0 | 1 << 1 | 1 << 2);
}

/* ---- core direct ---- */

static void expect_core_direct(bool has)
{
	struct ibv_device_attr attr;
	struct card c;

	setenv("SOFTNIC_CD", has ? "1" : "0", 1);
	card_open(&c);
	cr_expect_eq(cap(&c, 0, 0x44) >> 19 & 1, has);
	cr_assert_eq(ibv_query_device(c.n.ctx, &attr), 0);
	cr_expect_eq((attr.device_cap_flags >> 27 & 1), has, "wrong IB_DEVICE_CROSS_CHANNEL");
	for (uint32_t i = 0; i < 3; i++)
		cr_expect_eq(try_qp(&c, 0x90, 1u << i), has ? 0 : REFUSED, "core direct bit %u", i);
	cr_expect_eq(try_qp(&c, 0x90, 0), 0);
	card_close(&c);
}

Test(softnic_card, with_core_direct)
{
	expect_core_direct(true);
}

Test(softnic_card, without_core_direct)
{
	expect_core_direct(false);
}

/* ---- bonds ---- */

static void init_box(const struct card *c, uint32_t *in)
{
	modify_box(in, 0x502, c->qpn);
	put(in, 0x18, 3u << 11);
	put(in, 0x18 + 0x3c, 1u << 16);
	put(in, 0x18 + 0x90, 1u << 15 | 1u << 14);
}

static void expect_port(const struct card *c, uint32_t want)
{
	uint32_t out[0x110 / 4];

	qp_state(c->qp, c->qpn, out);
	cr_expect_eq(get(out, 0x18) >> 24 & 0xf, want);
}

/*
 * Changes the port by INIT2INIT to the second, then by INIT2RTR to the first. second and
 * first: whether the command must be accepted.
 */
static void expect_change_of_port(const char *lag, const char *init2, bool second, bool first)
{
	uint32_t in[0x110 / 4];
	struct card c;

	setenv("SOFTNIC_LAG", lag, 1);
	setenv("SOFTNIC_LAG_INIT2", init2, 1);
	card_open(&c);
	cr_expect_eq(cap(&c, 0, 0x3c) >> 7 & 1, init2[0] == '1');
	cr_assert_eq(try_qp(&c, 0, 0), 0);
	init_box(&c, in);
	modify(c.qp, in, 0x110, 0);
	modify_box(in, 0x50e, c.qpn);
	put(in, 0x10, OPT_LAG);
	put(in, 0x18, 2u << 24);
	modify(c.qp, in, 0x110, second ? 0 : REFUSED);
	expect_port(&c, second ? 2 : 0);
	rtr_box(in, c.qpn, &c.gid);
	put(in, 0x10, OPT_LAG);
	put(in, 0x18, 1u << 24);
	modify(c.qp, in, 0x110, first ? 0 : REFUSED);
	expect_port(&c, first ? 1 : 0);
	card_close(&c);
}

Test(softnic_card, bond_port_changes_before_rts)
{
	expect_change_of_port("2", "1", true, true);
}

Test(softnic_card, bond_port_change_before_rts_is_refused)
{
	expect_change_of_port("2", "0", false, false);
}

/* UCX sets port 1 also on devices without a bond. */
Test(softnic_card, port_1_is_accepted_without_a_bond)
{
	expect_change_of_port("0", "1", false, true);
}

static uint32_t query_lag(const struct card *c, uint32_t *state)
{
	uint32_t in[4] = { 0 }, out[4] = { 0 };

	put(in, 0, 0x842u << 16);
	(void)mlx5dv_devx_general_cmd(c->n.ctx, in, sizeof(in), out, sizeof(out));
	*state = get(out, 8) & 7;
	return get(out, 0) >> 24;
}

static void expect_lag(const char *lag, bool vf, uint32_t status, uint32_t state)
{
	uint32_t got, caps;
	struct card c;

	setenv("SOFTNIC_LAG", lag, 1);
	setenv("SOFTNIC_VF", vf ? "1" : "0", 1);
	setenv("SOFTNIC_QUERY_LAG", status ? "0" : "1", 1);
	card_open(&c);
	cr_expect_eq(query_lag(&c, &got), status);
	cr_expect_eq(got, state);
	caps = cap(&c, 0, 0x4c);
	cr_expect_eq(caps & 0xf, 2);
	cr_expect_eq(caps >> 4 & 1, !vf, "wrong lag_master");
	cr_expect_eq(cap(&c, 0, 0x34) >> 31, !vf, "wrong vport_group_manager");
	card_close(&c);
}

Test(softnic_card, query_lag_of_an_active_bond)
{
	expect_lag("2", false, 0, 1);
}

Test(softnic_card, query_lag_of_an_inactive_bond)
{
	expect_lag("2:inactive", false, 0, 0);
}

Test(softnic_card, query_lag_refused_to_a_vf)
{
	expect_lag("2", true, 0x2, 0);
}

/* ---- the number of queue pairs ---- */

Test(softnic_card, creation_beyond_the_qp_limit_is_refused)
{
	uint32_t in[0x110 / 4];
	struct card c;

	setenv("SOFTNIC_QP_MAX", "1", 1);
	card_open(&c);
	cr_assert_eq(try_qp(&c, 0, 0), 0);
	qp_box(&c.n, in, c.cqn);
	cr_assert_null(create(&c.n, in, NULL));
	cr_expect_eq(last_status, 0x5);
	cr_expect_eq(last_syndrome, 0x65b500);
	cr_expect_eq(try_qp(&c, 0, 0), 0, "a destroyed QP must make room");
	card_close(&c);
}

/* ---- events ---- */

static int subscribe(const struct card *c, struct mlx5dv_devx_event_channel *ch, uint16_t n,
		     uint16_t a, uint16_t b)
{
	uint16_t list[2] = { a, b };
	int rc = mlx5dv_devx_subscribe_devx_event(ch, c->qp, n * sizeof(list[0]), list, 7);

	return rc < 0 ? errno : rc;
}

/*
 * Subscribes to event types 0x05 and 0x10 of a QP, and to completions of a CQ, which
 * the mask does not restrict. first, second: expected errno for types 0x05 and 0x10.
 */
static void expect_events(const char *mask, uint32_t announced, int first, int second)
{
	struct mlx5dv_devx_event_channel *ch;
	uint16_t completions = 0;
	struct card c;

	setenv("SOFTNIC_EVENTS", mask, 1);
	card_open(&c);
	cr_assert_eq(try_qp(&c, 0, 0), 0);
	cr_expect_eq(cap(&c, 0, 0x10) >> 15 & 1, announced != UINT32_MAX, "wrong event_cap");
	cr_expect_eq(cap(&c, 0x14, 0x04), announced);
	cr_assert(ch = mlx5dv_devx_create_event_channel(c.n.ctx, 0));
	cr_expect_eq(subscribe(&c, ch, 1, 0x05, 0), first);
	cr_expect_eq(subscribe(&c, ch, 1, 0x10, 0), second);
	cr_expect_eq(subscribe(&c, ch, 2, 0x05, 0x10), first ? first : second,
		     "a list must be accepted or refused as a whole");
	cr_expect_eq(mlx5dv_devx_subscribe_devx_event(ch, c.cq, 2, &completions, 8), 0);
	mlx5dv_devx_destroy_event_channel(ch);
	card_close(&c);
}

Test(softnic_card, all_event_types)
{
	expect_events("", 0x1f003c, 0, 0);
}

Test(softnic_card, some_event_types)
{
	expect_events("0x20", 0x20, 0, EINVAL);
}

Test(softnic_card, no_event_types)
{
	expect_events("0", 0, EINVAL, EINVAL);
}

Test(softnic_card, event_types_without_the_capability)
{
	expect_events("legacy", UINT32_MAX, 0, 0);
}

/* ---- a write to itself: its packet's TOS, and the CQ's counter ---- */

static char pcap[] = "/tmp/gdaki-card-XXXXXX";

static void move_to_rts(const struct card *c, uint32_t tclass, uint32_t ecn, uint32_t dscp)
{
	uint32_t in[0x110 / 4], out[0x110 / 4];

	init_box(c, in);
	modify(c->qp, in, 0x110, 0);
	rtr_box(in, c->qpn, &c->gid);
	put(in, 0x18 + 0x18 + 0x04, 0);
	put(in, 0x18 + 0x18 + 0x08, 3u << 16);
	put(in, 0x18 + 0x18 + 0x0c, tclass << 20);
	put(in, 0x18 + 0x18 + 0x20, ecn << 22 | dscp << 16 | 0xc123);
	modify(c->qp, in, 0x110, 0);
	modify_box(in, 0x504, c->qpn);
	put(in, 0x18 + 0x20, 14u << 27);
	put(in, 0x18 + 0x70, 7u << 16 | 6u << 13);
	put(in, 0x18 + 0x78, 0x77);
	modify(c->qp, in, 0x110, 0);
	qp_state(c->qp, c->qpn, out);
	cr_expect_eq(get(out, 0x18 + 0x18 + 0x0c) >> 20 & 0xff, tclass,
		     "QUERY_QP must return the traffic class that was set");
	cr_expect_eq(get(out, 0x18 + 0x18 + 0x20) >> 16 & 0x3f, dscp);
}

static void write_to_itself(const struct card *c, struct ibv_mr *mr)
{
	volatile uint8_t *owner = (uint8_t *)c->n.mem + 8192 + 63;
	uint32_t *wqe = c->n.mem, *dbrec = (uint32_t *)((uint8_t *)c->n.mem + DBR_AT);

	*owner = 0xf1;
	put(wqe, 0x00, 0x08);
	put(wqe, 0x04, c->qpn << 8 | 3);
	put(wqe, 0x08, 8);
	put(wqe, 0x10, (uint32_t)((uintptr_t)mr->addr >> 32));
	put(wqe, 0x14, (uint32_t)(uintptr_t)mr->addr);
	put(wqe, 0x18, mr->rkey);
	put(wqe, 0x20, 1u << 31 | 4);
	wqe[9] = 0x12345678;
	__atomic_store_n(&dbrec[1], htobe32(1), __ATOMIC_RELEASE);
	__atomic_store_n((uint64_t *)c->n.uar->reg_addr, *(uint64_t *)wqe, __ATOMIC_RELEASE);
	for (int ms = 0; *owner >> 4 == 0xf && ms < 5000; ms++)
		usleep(1000);
	cr_assert_eq(*owner >> 4, 0, "expected a requester's completion");
	cr_assert_eq(*(uint32_t *)mr->addr, 0x12345678);
}

/* Returns the TOS byte of the first packet in the capture. */
static int first_tos(void)
{
	uint8_t head[24], rec[16], ip[20];
	FILE *f = fopen(pcap, "r");

	cr_assert(f && fread(head, sizeof(head), 1, f) == 1 && fread(rec, sizeof(rec), 1, f) == 1 &&
		  fread(ip, sizeof(ip), 1, f) == 1 && ip[0] == 0x45);
	fclose(f);
	return ip[1];
}

static void expect_tos(uint32_t tclass, uint32_t ecn, uint32_t dscp, int tos)
{
	struct ibv_mr *mr;
	struct card c;
	uint32_t word = 0;

	cr_assert_geq(close(mkstemp(pcap)), 0);
	setenv("SOFTNIC_PCAP", pcap, 1);
	card_open(&c);
	cr_assert_eq(try_qp(&c, 0, 0), 0);
	mr = ibv_reg_mr(c.n.pd, &word, 4, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cr_assert(mr);
	move_to_rts(&c, tclass, ecn, dscp);
	write_to_itself(&c, mr);
	ibv_dereg_mr(mr);
	card_close(&c);
	cr_expect_eq(first_tos(), tos);
	unlink(pcap);
}

Test(softnic_card, traffic_class_without_dscp_is_not_sent)
{
	expect_tos(0x6b, 0, 0, 0);
}

Test(softnic_card, dscp_and_ecn_are_sent)
{
	expect_tos(0, 2, 0x1a, 0x6a);
}

/* ---- QUERY_CQ ---- */

static uint32_t producer(const struct card *c)
{
	uint32_t in[4] = { 0 }, out[0x110 / 4] = { 0 };

	put(in, 0, 0x402u << 16);
	put(in, 8, c->cqn);
	cr_assert_eq(mlx5dv_devx_obj_query(c->cq, in, sizeof(in), out, sizeof(out)), 0);
	return get(out, 0x10 + 0x2c);
}

static void expect_producer(const char *behind, uint32_t want)
{
	struct ibv_mr *mr;
	struct card c;
	uint32_t word = 0;

	setenv("SOFTNIC_CQ_BEHIND", behind, 1);
	card_open(&c);
	cr_assert_eq(try_qp(&c, 0, 0), 0);
	mr = ibv_reg_mr(c.n.pd, &word, 4, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	cr_assert(mr);
	move_to_rts(&c, 0, 0, 0);
	cr_expect_eq(producer(&c), 0);
	write_to_itself(&c, mr);
	cr_expect_eq(producer(&c), want);
	ibv_dereg_mr(mr);
	card_close(&c);
}

Test(softnic_card, query_cq_returns_the_producer_counter)
{
	expect_producer("0", 1);
}

Test(softnic_card, query_cq_counter_can_lag)
{
	expect_producer("3", 0);
}
