/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Raw Ethernet by verbs and by DEVX while each driver call and each firmware command in turn
 * fails: creation of every kind of object, then destruction of what exists. Nothing may be left
 * in the NIC.
 */
#include "../lib/leaks.h"
#include "../lib/raw.h"
#include "../softnic/eth.h"
#include "../softnic/front.h"

#define STEPS_MAX 64u
#define STATUS	  0x0f /* no resources */

struct all {
	struct ibv_qp *qp, *rss;
	struct ibv_wq *wq;
	struct ibv_rwq_ind_table *table;
	struct ibv_counters *counters;
	struct ibv_flow *flows[4];
	struct mlx5dv_flow_matcher *matcher;
	struct mlx5dv_devx_obj *td, *tis, *tir, *counter, *set;
};

static struct vb v;
static struct ibv_cq *cq;

static void setup(void)
{
	raw_need();
	v = vb_open(4096);
	cq = ibv_create_cq(v.ctx, 63, NULL, NULL, 0);
	cr_assert(cq);
	/* libmlx5 keeps the register page of its first QP */
	cr_assert_eq(ibv_destroy_qp(raw_qp(&v, cq, 16, 16, 0)), 0);
}

static void teardown(void)
{
	if (!v.ctx)
		return;
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	vb_close(&v);
}

TestSuite(verbs_raw_fail, .init = setup, .fini = teardown);

static void fail_next(uint32_t nth_cmd, uint32_t nth_ioctl)
{
	void (*fail)(uint32_t nth, uint8_t status, uint32_t syndrome, uint32_t ioctl);

	*(void **)&fail = dlsym(RTLD_DEFAULT, "sn_fail_next");
	cr_assert(fail, "run the test under softnic-run");
	fail(nth_cmd, STATUS, 0xabc, nth_ioctl);
}

/* ---- creation ---- */
static struct ibv_flow *rule(const struct all *a, enum ibv_flow_attr_type type)
{
	struct ibv_flow_attr attr = { .type = type, .size = sizeof(attr), .port = 1 };

	return a->qp ? ibv_create_flow(a->qp, &attr) : NULL;
}

static void make_rss(struct all *a)
{
	struct ibv_wq_init_attr wq = { .wq_type = IBV_WQT_RQ,
				       .max_wr = 16,
				       .max_sge = 1,
				       .pd = v.pd,
				       .cq = cq };
	struct ibv_rwq_ind_table_init_attr table = { .ind_tbl = &a->wq };
	static uint8_t key[40] = { 1 };
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH |
			     IBV_QP_INIT_ATTR_IND_TABLE,
		.pd = v.pd,
		.rx_hash_conf = { .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
				  .rx_hash_key_len = sizeof(key),
				  .rx_hash_key = key,
				  .rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 },
	};

	a->wq = ibv_create_wq(v.ctx, &wq);
	if (a->wq)
		a->table = ibv_create_rwq_ind_table(v.ctx, &table);
	init.rwq_ind_tbl = a->table;
	if (a->table)
		a->rss = ibv_create_qp_ex(v.ctx, &init);
}

static void make_dv_rule(struct all *a)
{
	struct {
		struct mlx5dv_flow_match_parameters p;
		uint64_t bits[64];
	} mask = { .p.match_sz = 64 }, value = { .p.match_sz = 64 };
	struct mlx5dv_flow_matcher_attr attr = { .type = IBV_FLOW_ATTR_NORMAL,
						 .match_criteria_enable = 1,
						 .match_mask = &mask.p };
	struct mlx5dv_flow_action_attr to = { .type = MLX5DV_FLOW_ACTION_DEST_IBV_QP, .qp = a->qp };

	a->matcher = mlx5dv_create_flow_matcher(v.ctx, &attr);
	if (a->matcher && a->qp)
		a->flows[3] = mlx5dv_create_flow(a->matcher, &value.p, 1, &to);
}

/* Returns an object, and its number in *number. words: of the input, after the opcode. */
static struct mlx5dv_devx_obj *devx(uint32_t opcode, const uint32_t at[2], size_t len,
				    uint32_t *number)
{
	uint32_t in[0x110 / 4] = { 0 }, out[4] = { 0 };
	struct mlx5dv_devx_obj *o;

	in[0] = htobe32(opcode << 16);
	if (at)
		in[at[0] / 4] = htobe32(at[1]);
	o = mlx5dv_devx_obj_create(v.ctx, in, len, out, sizeof(out));
	*number = be32toh(out[2]) & 0xffffff;
	return o;
}

static void make_devx(struct all *a)
{
	struct mlx5dv_qp dv = { .comp_mask = MLX5DV_QP_MASK_RAW_QP_HANDLES };
	struct mlx5dv_obj obj = { .qp = { .in = a->qp, .out = &dv } };
	uint32_t tdn, n;

	a->td = devx(0x816, NULL, 16, &tdn);
	if (a->td)
		a->tis = devx(0x912, (uint32_t[]){ 0x44, tdn }, 0xc0, &n);
	if (a->qp && !mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP))
		a->tir = devx(0x900, (uint32_t[]){ 0x3c, dv.rqn }, 0x110, &n);
	a->counter = devx(0x939, NULL, 16, &n);
	a->set = devx(0x771, NULL, 16, &n);
}

/* Returns whether everything was created. */
static bool make_all(struct all *a)
{
	struct ibv_counters_init_attr init = { 0 };
	unsigned i;
	bool all;

	memset(a, 0, sizeof(*a));
	a->qp = raw_qp_try(&v, cq, 16, 16, 0);
	make_rss(a);
	a->counters = ibv_create_counters(v.ctx, &init);
	a->flows[0] = rule(a, IBV_FLOW_ATTR_NORMAL);
	a->flows[1] = rule(a, IBV_FLOW_ATTR_ALL_DEFAULT);
	a->flows[2] = rule(a, IBV_FLOW_ATTR_SNIFFER);
	make_dv_rule(a);
	make_devx(a);
	all = a->qp && a->rss && a->counters && a->matcher && a->tis && a->tir && a->counter &&
	      a->set;
	for (i = 0; i < 4; i++)
		all &= a->flows[i] != NULL;
	return all;
}

static void destroy_all(struct all *a)
{
	struct mlx5dv_devx_obj *devx_objects[] = { a->tir, a->tis, a->td, a->counter, a->set };
	unsigned i;

	for (i = 0; i < 4; i++)
		cr_expect(!a->flows[i] || !ibv_destroy_flow(a->flows[i]));
	for (i = 0; i < 5; i++)
		cr_expect(!devx_objects[i] || !mlx5dv_devx_obj_destroy(devx_objects[i]));
	cr_expect(!a->matcher || !mlx5dv_destroy_flow_matcher(a->matcher));
	cr_expect(!a->counters || !ibv_destroy_counters(a->counters));
	cr_expect(!a->rss || !ibv_destroy_qp(a->rss));
	cr_expect(!a->table || !ibv_destroy_rwq_ind_table(a->table));
	cr_expect(!a->wq || !ibv_destroy_wq(a->wq));
	cr_expect(!a->qp || !ibv_destroy_qp(a->qp));
}

/* Lets the n-th call or command fail, for n from 1 on, until none is left that fails. */
static unsigned sweep(bool commands)
{
	uint32_t before = raw_live();
	unsigned n, made = 0;
	struct all a;

	for (n = 1; n < STEPS_MAX && !made; n++) {
		fail_next(commands ? n : 0, commands ? 0 : n);
		made = make_all(&a) ? n : 0;
		fail_next(0, 0);
		destroy_all(&a);
		cr_assert_eq(raw_live(), before, "%s %u failed: %u objects, not %u",
			     commands ? "command" : "call", n, raw_live(), before);
	}
	return made - 1;
}

Test(verbs_raw_fail, each_call)
{
	cr_expect_eq(sweep(false), 15, "the number of calls that can fail");
}

Test(verbs_raw_fail, each_command)
{
	cr_expect_eq(sweep(true), 5, "the number of commands that can fail");
}

/* ---- no numbers or handles are left ---- */
static struct sn_dev *device(void)
{
	struct sn_dev **dev;

	*(void **)&dev = dlsym(RTLD_DEFAULT, "sn_dev");
	cr_assert(dev && *dev);
	return *dev;
}

static char dummy;

/* Takes all free numbers of a table but `left`, or returns them. */
static void take_numbers(struct sn_table *t, uint32_t left, bool take)
{
	uint32_t i;

	raw_lock(device());
	for (i = 0; i < SN_TABLE_SIZE; i++)
		if (!take && t->slot[i] == &dummy)
			t->slot[i] = NULL;
		else if (take && !t->slot[i] && !(left && left--))
			t->slot[i] = &dummy;
	pthread_mutex_unlock(&device()->lock);
}

static void take_handles(uint32_t left, bool take)
{
	struct sn_front *f = device()->front;
	uint32_t i;

	raw_lock(device());
	for (i = 1; i < SN_HANDLES; i++)
		if (!take && f->handles[i].obj == &dummy)
			f->handles[i].obj = NULL;
		else if (take && !f->handles[i].obj && !(left && left--))
			f->handles[i].obj = &dummy;
	for (f->next_handle = SN_HANDLES; !f->handles[f->next_handle - 1].obj;)
		f->next_handle--;
	pthread_mutex_unlock(&device()->lock);
}

Test(verbs_raw_fail, no_handle_is_left)
{
	uint32_t before = raw_live(), left;
	bool made = false;
	struct all a;

	for (left = 0; left < STEPS_MAX && !made; left++) {
		take_handles(left, true);
		made = make_all(&a);
		destroy_all(&a);
		take_handles(0, false);
		cr_assert_eq(raw_live(), before, "%u handles: %u objects, not %u", left, raw_live(),
			     before);
	}
	cr_expect_gt(left, 15);
	cr_expect(made);
}

Test(verbs_raw_fail, no_number_is_left)
{
	struct sn_front *f = device()->front;
	struct sn_table *const tables[] = { &f->qps,  &f->tds,		&f->tiss,	  &f->rqts,
					    &f->tirs, &f->counter_sets, &f->flow_counters };
	uint32_t before = raw_live(), left;
	bool made;
	struct all a;
	size_t i;

	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		made = false;
		for (left = 0; left < 8 && !made; left++) {
			take_numbers(tables[i], left, true);
			made = make_all(&a);
			destroy_all(&a);
			take_numbers(tables[i], 0, false);
			cr_assert_eq(raw_live(), before, "table %zu, %u numbers: %u objects", i,
				     left, raw_live());
		}
		cr_expect(made && left > 1, "table %zu", i);
	}
}

/* ---- close ---- */

/* The objects are destroyed by the close of the context, whatever exists. */
Test(verbs_raw_fail, close_after_each_call)
{
	struct vb own = v;
	struct ibv_cq *own_cq = cq;
	uint32_t before = raw_live();
	bool all = false;
	struct all left;
	unsigned n;

	leaks_ignore();
	for (n = 0; n < STEPS_MAX && !all; n++) {
		v = vb_open(4096);
		cq = ibv_create_cq(v.ctx, 63, NULL, NULL, 0);
		cr_assert(cq);
		fail_next(0, n + 1);
		all = make_all(&left);
		fail_next(0, 0);
		cr_assert_eq(ibv_close_device(v.ctx), 0);
		cr_assert_eq(raw_live(), before, "call %u failed: %u objects, not %u", n + 1,
			     raw_live(), before);
	}
	cr_expect(all);
	v = own;
	cq = own_cq;
}
