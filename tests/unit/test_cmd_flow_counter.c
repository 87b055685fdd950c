/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The firmware commands of flow counters: single counters and bulks, queries into the
 * output and into memory, and the memory keys that DPDK uses for such queries.
 */
#include <dlfcn.h>

#include "../lib/rawnic_eth.h"
#include "../softnic/eth.h"
#include "../softnic/front.h"

#define NUM 256u /* counters of a bulk of size 2 */

struct rig {
	struct nic n;
	struct mlx5dv_devx_obj *one, *bulk, *next, *key;
	uint32_t one_id, bulk_id, next_id, lkey;
	struct ibv_mr *mr;
	uint8_t *mem;
};

/* Sets the counts of the bulk in the NIC: packets are 1000 + index, octets 64 times as many. */
static void count(uint32_t id)
{
	struct sn_flow_counter *(*find)(struct sn_dev *, uint32_t, uint32_t *);
	struct sn_flow_counter *c;
	struct sn_dev **dev;
	uint32_t index, i;

	*(void **)&find = dlsym(RTLD_DEFAULT, "sn_find_flow_counter");
	*(void **)&dev = dlsym(RTLD_DEFAULT, "sn_dev");
	cr_assert(find && dev);
	c = find(*dev, id, &index);
	cr_assert(c && c->n == NUM && index == 0);
	for (i = 0; i < NUM; i++)
		c->count[i] = (struct sn_flow_count){ 1000 + i, (1000 + i) * 64 };
	cr_assert_eq(find(*dev, id + 7, &index), c);
	cr_assert_eq(index, 7);
	cr_assert_null(find(*dev, id + NUM, &index));
}

/* Writes the input of CREATE_MKEY as DPDK does: mode KLM, 4 entries of which one is used. */
static void key_box(const struct rig *r, uint32_t *in, uint32_t len)
{
	memset(in, 0, 0x150);
	put(in, 0x00, 0x200u << 16);
	put(in, 0x10, 2u << 8 | 3u << 10);
	put(in, 0x14, 0xffffffu << 8);
	put(in, 0x1c, r->n.pdn);
	memcpy(&in[0x20 / 4], &(uint64_t){ htobe64((uintptr_t)r->mem) }, 8);
	put(in, 0x2c, len);
	put(in, 0x44, 4);
	put(in, 0x60, 4);
	put(in, 0x110, len);
	put(in, 0x114, r->mr->lkey);
	memcpy(&in[0x118 / 4], &(uint64_t){ htobe64((uintptr_t)r->mem) }, 8);
}

static void rig_open(struct rig *r)
{
	uint32_t in[0x150 / 4] = { 0 };

	nic_open(&r->n);
	put(in, 0, 0x939u << 16);
	r->one = make_wide(&r->n, in, 16, &r->one_id);
	put(in, 0xc, 2);
	r->bulk = make_wide(&r->n, in, 16, &r->bulk_id);
	r->next = make_wide(&r->n, in, 16, &r->next_id);
	r->mem = aligned_alloc(4096, 8192);
	memset(r->mem, 0xee, 8192);
	r->mr = ibv_reg_mr(r->n.pd, r->mem, 8192, IBV_ACCESS_LOCAL_WRITE);
	cr_assert(r->mr);
	key_box(r, in, 8192);
	r->key = make(&r->n, in, 0x150, &r->lkey);
	r->lkey <<= 8;
}

static void rig_close(struct rig *r)
{
	cr_expect_eq(mlx5dv_devx_obj_destroy(r->key), 0);
	cr_expect_eq(ibv_dereg_mr(r->mr), 0);
	cr_expect_eq(mlx5dv_devx_obj_destroy(r->bulk), 0);
	cr_expect_eq(mlx5dv_devx_obj_destroy(r->next), 0);
	cr_expect_eq(mlx5dv_devx_obj_destroy(r->one), 0);
	nic_close(&r->n);
	free(r->mem);
}

static void query_box(uint32_t *in, uint32_t id, uint32_t num)
{
	memset(in, 0, 32);
	put(in, 0, 0x93bu << 16);
	put(in, 0x18, num);
	put(in, 0x1c, id);
}

static uint32_t status(struct mlx5dv_devx_obj *o, const uint32_t *in, uint32_t *out, size_t len)
{
	memset(out, 0, 16);
	return mlx5dv_devx_obj_query(o, in, 32, out, len) ? get(out, 0) >> 24 : 0;
}

/* Compares n counters at p with what count() set. */
static void expect_counts(const void *p, uint32_t n)
{
	uint64_t v[2];
	uint32_t i;

	for (i = 0; i < n; i++) {
		memcpy(v, (const uint8_t *)p + 16 * i, 16);
		cr_assert_eq(be64toh(v[0]), 1000 + i, "packets of counter %u", i);
		cr_assert_eq(be64toh(v[1]), (1000 + i) * 64, "octets of counter %u", i);
	}
}

Test(cmd_flow_counter, identifiers_and_sizes)
{
	uint32_t in[8], out[(0x10 + 16 * (NUM + 1)) / 4];
	struct rig r;

	rig_open(&r);
	cr_expect(r.one_id && r.bulk_id);
	cr_expect(r.one_id < r.bulk_id || r.one_id >= r.bulk_id + NUM);
	cr_expect(r.next_id + NUM <= r.bulk_id || r.next_id >= r.bulk_id + NUM);
	query_box(in, r.one_id, 0);
	cr_expect_eq(status(r.one, in, out, 0x20), 0);
	cr_expect_eq(status(r.one, in, out, 0x1f), BAD_OUTP_LEN);
	query_box(in, r.one_id, 2);
	cr_expect_eq(status(r.one, in, out, sizeof(out)), BAD_PARAM);
	query_box(in, r.bulk_id, NUM + 1);
	cr_expect_eq(status(r.bulk, in, out, sizeof(out)), BAD_PARAM);
	query_box(in, r.bulk_id, NUM);
	cr_expect_eq(status(r.bulk, in, out, 0x10 + 16 * NUM - 1), BAD_OUTP_LEN);
	put(in, 0x14, 8);
	cr_expect_eq(status(r.bulk, in, out, sizeof(out)), BAD_PARAM);
	query_box(in, r.bulk_id, 0);
	cr_expect_eq(mlx5dv_devx_obj_query(r.one, in, 32, out, sizeof(out)), EINVAL);
	memset(in, 0, sizeof(in));
	put(in, 0, 0x939u << 16);
	put(in, 0xc, 3); /* two sizes */
	refuse(&r.n, in, 16, BAD_PARAM);
	set(in, 0xc, 0xffff, 1 << 8); /* flow_counter_bulk_log_size */
	refuse(&r.n, in, 16, BAD_PARAM);
	rig_close(&r);
}

Test(cmd_flow_counter, queries_return_and_clear_counts)
{
	uint32_t in[8], out[(0x10 + 16 * NUM) / 4], i;
	struct rig r;

	rig_open(&r);
	count(r.bulk_id);
	query_box(in, r.bulk_id, NUM);
	cr_expect_eq(status(r.bulk, in, out, sizeof(out)), 0);
	expect_counts((uint8_t *)out + 0x10, NUM);
	query_box(in, r.bulk_id, 4);
	put(in, 0x18, 1u << 31);
	cr_expect_eq(status(r.bulk, in, out, sizeof(out)), 0);
	expect_counts((uint8_t *)out + 0x10, 4);
	query_box(in, r.bulk_id, NUM);
	cr_expect_eq(status(r.bulk, in, out, sizeof(out)), 0);
	for (i = 0; i < 4; i++)
		cr_expect_eq(get(out, 0x14 + 16 * i), 0, "counter %u was not cleared", i);
	cr_expect_eq(get(out, 0x14 + 16 * 4), 1004);
	rig_close(&r);
}

static void dump_box(const struct rig *r, uint32_t *in, uint32_t at)
{
	query_box(in, r->bulk_id, NUM);
	put(in, 0x18, 1u << 30);
	put(in, 0x0c, r->lkey);
	memcpy(&in[0x10 / 4], &(uint64_t){ htobe64((uintptr_t)r->mem + at) }, 8);
}

Test(cmd_flow_counter, dump_to_memory)
{
	uint32_t in[8], out[4];
	struct rig r;

	rig_open(&r);
	count(r.bulk_id);
	dump_box(&r, in, 16);
	cr_expect_eq(status(r.bulk, in, out, sizeof(out)), 0);
	expect_counts(r.mem + 16, NUM);
	cr_expect_eq(r.mem[15], 0xee);
	cr_expect_eq(r.mem[16 + 16 * NUM], 0xee);
	dump_box(&r, in, 4096 + 16); /* 16 bytes too many */
	cr_expect_eq(status(r.bulk, in, out, sizeof(out)), BAD_PARAM);
	dump_box(&r, in, 0);
	set(in, 0x0c, ~0u, 0x12345600);
	cr_expect_eq(status(r.bulk, in, out, sizeof(out)), BAD_PARAM);
	dump_box(&r, in, 0);
	put(in, 0x18, 1u << 31); /* and clear */
	cr_expect_eq(status(r.bulk, in, out, sizeof(out)), 0);
	expect_counts(r.mem, NUM);
	dump_box(&r, in, 0);
	cr_expect_eq(status(r.bulk, in, out, sizeof(out)), 0);
	cr_expect(!r.mem[7] && !r.mem[16 * NUM - 1], "not cleared");
	rig_close(&r);
}

/* The memory must be writable by the key, and by the key's own region. */
Test(cmd_flow_counter, dump_needs_a_writable_key)
{
	uint32_t in[0x150 / 4], out[4];
	struct ibv_mr *ro;
	struct rig r;

	rig_open(&r);
	ro = ibv_reg_mr(r.n.pd, r.mem, 8192, 0);
	cr_assert(ro);
	dump_box(&r, in, 0);
	set(in, 0x0c, ~0u, ro->lkey);
	cr_expect_eq(status(r.bulk, in, out, sizeof(out)), BAD_PARAM);
	set(in, 0x0c, ~0u, r.mr->lkey);
	cr_expect_eq(status(r.bulk, in, out, sizeof(out)), 0);
	cr_expect_eq(ibv_dereg_mr(ro), 0);
	rig_close(&r);
}

Test(cmd_flow_counter, keys_of_one_piece)
{
	static const struct {
		uint32_t off, mask, value, status;
	} bad[] = {
		{ 0x48, 0x3f, 12, BAD_PARAM },	 /* log_page_size */
		{ 0x110, ~0u, 8191, BAD_PARAM }, /* shorter than the key */
		{ 0x120, ~0u, 4096, BAD_PARAM }, /* a second piece */
		{ 0x124, ~0u, 0x100, BAD_PARAM },
		{ 0x114, ~0u, 0x12345600, BAD_RES }, /* no such region */
		{ 0x60, ~0u, 5, BAD_PARAM },	     /* more entries than translations */
		{ 0x60, ~0u, 0, BAD_PARAM },
		{ 0x10, 3u << 8, 1u << 8, BAD_PARAM } /* MTT */
	};
	uint32_t in[0x150 / 4], out[0x110 / 4] = { 0 };
	struct rig r;
	size_t i;

	rig_open(&r);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		key_box(&r, in, 8192);
		set(in, bad[i].off, bad[i].mask, bad[i].value);
		refuse(&r.n, in, 0x150, bad[i].status);
	}
	key_box(&r, in, 8192);
	refuse(&r.n, in, 0x14c, BAD_INP_LEN);
	memset(in, 0, sizeof(in));
	put(in, 0, 0x201u << 16);
	put(in, 8, r.lkey >> 8);
	cr_assert_eq(mlx5dv_devx_obj_query(r.key, in, 16, out, 0x110), 0);
	cr_expect_eq(get(out, 0x10) >> 8 & 3, 2, "access mode KLM");
	cr_expect_eq(get(out, 0x48) & 0x3f, 0);
	rig_close(&r);
}

/* An identifier has 16 bits for the number of the allocation, which is not 0. */
Test(cmd_flow_counter, identifiers_wrap)
{
	struct mlx5dv_devx_obj *c[3];
	uint32_t in[4] = { 0 }, id;
	struct sn_dev **dev;
	struct rig r;
	size_t i;

	rig_open(&r);
	*(void **)&dev = dlsym(RTLD_DEFAULT, "sn_dev");
	cr_assert(dev);
	(*dev)->front->flow_counters.next = 65534;
	put(in, 0, 0x939u << 16);
	for (i = 0; i < 3; i++) {
		c[i] = make_wide(&r.n, in, 16, &id);
		cr_expect(id >> 16 && id != r.one_id && id != r.bulk_id, "identifier %#x", id);
	}
	for (i = 0; i < 3; i++)
		cr_expect_eq(mlx5dv_devx_obj_destroy(c[i]), 0);
	rig_close(&r);
}
