/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Creation of indirect memory keys by DEVX: their numbers, their query, the PD that they
 * keep in use, their destruction, and what CREATE_MKEY refuses.
 */
#include <dlfcn.h>

#include "../lib/mkey.h"

static uint32_t objects_live(void)
{
	uint32_t (*fn)(void);

	*(void **)&fn = dlsym(RTLD_DEFAULT, "sn_objects_live");
	cr_assert(fn);
	return fn();
}

static struct box plain_box(const struct rig *r)
{
	struct box b = box_of(r, 0x20000, 2 * PAGE, 12, ALL | LOCAL_READ);

	piece(&b, r->v.mem, r->v.mr->lkey);
	piece(&b, r->v.mem + PAGE, r->v.mr->lkey);
	return b;
}

Test(verbs_mkey_make, keys_are_all_different)
{
	struct ibv_mr *mrs[300];
	struct key keys[300];
	uint32_t all[600];
	struct rig r;
	struct box b;
	int i, j;

	keys_open(&r);
	b = plain_box(&r);
	for (i = 0; i < 300; i++) {
		keys[i] = made(&r, &b);
		mrs[i] = ibv_reg_mr(r.v.pd, r.v.mem, PAGE, ALL);
		cr_assert(mrs[i]);
		cr_assert_eq(keys[i].key & 0xff, TAG);
		all[2 * i] = keys[i].key;
		all[2 * i + 1] = mrs[i]->lkey;
	}
	for (i = 0; i < 600; i++)
		for (j = 0; j < i; j++)
			cr_assert_neq(all[i] >> 8, all[j] >> 8);
	for (i = 0; i < 300; i++) {
		gone(&keys[i]);
		cr_assert_eq(ibv_dereg_mr(mrs[i]), 0);
	}
	rig_close(&r);
}

Test(verbs_mkey_make, query_returns_the_context)
{
	uint32_t in[4] = { htobe32(0x201u << 16) }, out[0x110 / 4] = { 0 };
	struct rig r;
	struct box b;
	struct key k;

	keys_open(&r);
	b = plain_box(&r);
	set(b.in, 0x10, 0, 1u << 18); /* relaxed_ordering_write */
	set(b.in, 0x48, 0, 1u << 6);  /* relaxed_ordering_read */
	k = made(&r, &b);
	in[2] = htobe32(k.key >> 8);
	cr_assert_eq(mlx5dv_devx_obj_query(k.obj, in, sizeof(in), out, sizeof(out)), 0);
	cr_assert_arr_eq((uint8_t *)out + 0x10, (uint8_t *)b.in + 0x10, 0x40);
	in[2] = htobe32((k.key >> 8) + 1);
	cr_assert_neq(mlx5dv_devx_obj_query(k.obj, in, sizeof(in), out, sizeof(out)), 0);
	gone(&k);
	rig_close(&r);
}

Test(verbs_mkey_make, key_holds_its_pd_and_is_freed_at_close)
{
	uint32_t live = objects_live();
	/* static, so that the leak checker accepts what libmlx5 does not free */
	static struct rig r;
	static struct key k;
	struct box b;

	keys_open(&r);
	b = plain_box(&r);
	k = made(&r, &b);
	cr_assert_eq(ibv_destroy_qp(r.a), 0);
	cr_assert_eq(ibv_destroy_qp(r.b), 0);
	cr_assert_eq(ibv_dereg_mr(r.v.mr), 0);
	cr_assert_neq(ibv_dealloc_pd(r.v.pd), 0, "the PD has a key and must not be freed");
	cr_assert_eq(ibv_destroy_cq(r.cq), 0);
	cr_assert_eq(ibv_close_device(r.v.ctx), 0);
	cr_assert_eq(objects_live(), live, "key %#x must be freed with the context", k.key);
}

Test(verbs_mkey_make, capability_is_reported)
{
	uint32_t in[4] = { htobe32(0x100u << 16), htobe32(1) }, out[0x1010 / 4] = { 0 };
	struct rig r;

	keys_open(&r);
	cr_assert_eq(mlx5dv_devx_general_cmd(r.v.ctx, in, sizeof(in), out, sizeof(out)), 0);
	cr_assert(be32toh(out[(0x10 + 0x20) / 4]) >> 23 & 1, "fixed_buffer_size must be set");
	rig_close(&r);
}

/* ---- refusals ---- */

enum { BAD_PARAM = 3, BAD_RES = 5, BAD_LEN = 0x50 };

/* Each row changes one word of an otherwise valid command: the bits in `mask` become `v`. */
static const struct {
	uint32_t off, mask, v, status;
} refused[] = {
	{ 0x10, 3u << 8, 0, BAD_PARAM },       /* access mode: physical */
	{ 0x10, 3u << 8, 1u << 8, BAD_PARAM }, /* access mode: MTT */
	{ 0x10, 3u << 8, 2u << 8, BAD_PARAM }, /* access mode: KLM */
	{ 0x10, 0, 1u << 26, BAD_PARAM },      /* access mode, bit 2 */
	{ 0x10, 0, 1u << 30, BAD_PARAM },      /* the "free" bit */
	{ 0x10, 0, 1u << 15, BAD_PARAM },      /* umr_en */
	{ 0x10, 0, 1u, BAD_PARAM },
	{ 0x08, 0, 1u, BAD_PARAM },
	{ 0x0c, 0, 1u << 31, BAD_PARAM },	  /* pg_access */
	{ 0x14, 0xffffff00, 0x10000, BAD_PARAM }, /* key bound to one QP */
	{ 0x18, 0, 1u, BAD_PARAM },
	{ 0x1c, 0, 1u << 31, BAD_PARAM },	       /* length64 */
	{ 0x1c, 0xffffff, 0xffffff, BAD_RES },	       /* PD */
	{ 0x24, 0xffffffff, 0x20004, BAD_PARAM },      /* start, not aligned for atomics */
	{ 0x2c, 0xffffffff, 2 * PAGE - 4, BAD_PARAM }, /* length, not aligned for atomics */
	{ 0x2c, 0xffffffff, 0, BAD_PARAM },
	{ 0x2c, 0xffffffff, 2 * PAGE + 8, BAD_PARAM }, /* longer than the list */
	{ 0x28, 0xffffffff, 1, BAD_PARAM },
	{ 0x28, 0xffffffff, 0xffffffff, BAD_PARAM }, /* beyond the end of the address space */
	{ 0x24, 0xffffffff, 0x20008, BAD_PARAM },    /* the first entry begins before the start */
	{ 0x30, 0, 1u, BAD_PARAM },		     /* signatures */
	{ 0x44, 0xffffffff, 1, BAD_PARAM },	     /* room for fewer entries than the list has */
	{ 0x44, 0xffffffff, 1u << 31, BAD_PARAM },
	{ 0x60, 0xffffffff, 1, BAD_PARAM }, /* list too short */
	{ 0x60, 0xffffffff, 3, BAD_PARAM }, /* more entries than there is room for */
	{ 0x48, 0x3f, 11, BAD_PARAM },	    /* entries too small */
	{ 0x48, 0x3f, 32, BAD_PARAM },	    /* entries too large */
	{ 0x48, 0, 1u << 7, BAD_PARAM },
	{ 0x50, 0, 1u, BAD_PARAM },
	{ 0x64, 0, 1u, BAD_PARAM }, /* list in a umem */
	{ 0x10c, 0, 1u, BAD_PARAM },
	{ 0x114, 0xffffffff, 0, BAD_RES }, /* no such region */
	{ 0x124, 0xffffffff, 0x123456, BAD_RES },
};

Test(verbs_mkey_make, invalid_mkeys_are_refused)
{
	struct box b, bad;
	uint32_t live;
	struct rig r;
	struct key k;
	size_t i;

	keys_open(&r);
	b = plain_box(&r);
	live = objects_live();
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		bad = b;
		set(bad.in, refused[i].off, refused[i].mask, refused[i].v);
		k = create(&r, &bad);
		cr_assert_null(k.obj, "row %zu: word %#x was accepted", i, refused[i].off);
		cr_assert_eq(last_status, refused[i].status, "row %zu: status %#x", i, last_status);
	}
	cr_assert_eq(objects_live(), live);
	k = made(&r, &b);
	gone(&k);
	rig_close(&r);
}

static struct mlx5dv_devx_obj *with_pieces(const struct rig *r, uint64_t start, uint64_t len,
					   uint32_t log_size, unsigned n)
{
	struct box b = box_of(r, start, len, log_size, ALL);

	while (n--)
		piece(&b, r->v.mem, r->v.mr->lkey);
	return create(r, &b).obj;
}

/* Each call has the number of entries that it would need. */
Test(verbs_mkey_make, start_and_length_are_checked)
{
	const uint64_t last_page = 0ull - PAGE;
	struct mlx5dv_devx_obj *obj;
	struct rig r;

	keys_open(&r);
	cr_assert_null(with_pieces(&r, 0x20008, 0, 12, 2));
	cr_assert_null(with_pieces(&r, 0x20004, PAGE, 12, 2));
	cr_assert_null(with_pieces(&r, 0x20000, PAGE, 11, 2));
	cr_assert_null(with_pieces(&r, last_page, 2 * PAGE, 12, 2));
	obj = with_pieces(&r, last_page, PAGE, 12, 1);
	cr_assert(obj, "refused: status %#x", last_status);
	cr_assert_eq(mlx5dv_devx_obj_destroy(obj), 0);
	rig_close(&r);
}

Test(verbs_mkey_make, entry_lists_must_be_complete)
{
	struct rig r;
	struct box b;
	struct key k;

	keys_open(&r);
	b = plain_box(&r);
	b.n = 1;
	cr_assert_null(create(&r, &b).obj);
	cr_assert_eq(last_status, BAD_LEN);
	b.n = 3;
	k = made(&r, &b); /* zeros after the list are accepted */
	gone(&k);
	set(b.in, 0x110 + 2 * 16 + 4, 0, 1);
	cr_assert_null(create(&r, &b).obj);
	cr_assert_eq(last_status, BAD_PARAM);
	b = plain_box(&r);
	piece(&b, NULL, 0); /* more entries than the length needs */
	k = made(&r, &b);
	gone(&k);
	rig_close(&r);
}

Test(verbs_mkey_make, entries_must_be_regions_of_the_same_pd)
{
	struct ibv_mr *mr;
	struct ibv_pd *pd;
	struct rig r;
	struct box b;
	struct key k;

	keys_open(&r);
	pd = ibv_alloc_pd(r.v.ctx);
	mr = ibv_reg_mr(pd, r.v.mem, PAGE, ALL);
	cr_assert(pd && mr);
	b = plain_box(&r);
	k = made(&r, &b);
	set(b.in, 0x124, 0xffffffff, k.key);
	cr_assert_null(create(&r, &b).obj, "an entry must not be an indirect key");
	cr_assert_eq(last_status, BAD_RES);
	set(b.in, 0x124, 0xffffffff, mr->lkey);
	cr_assert_null(create(&r, &b).obj, "a region of another PD must be refused");
	cr_assert_eq(last_status, BAD_RES);
	gone(&k);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	cr_assert_eq(ibv_dealloc_pd(pd), 0);
	rig_close(&r);
}

Test(verbs_mkey_make, key_has_no_events)
{
	struct mlx5dv_devx_event_channel *ch;
	uint16_t type = 0x14; /* the limit event of SRQs */
	struct rig r;
	struct box b;
	struct key k;

	keys_open(&r);
	b = plain_box(&r);
	k = made(&r, &b);
	ch = mlx5dv_devx_create_event_channel(r.v.ctx, 0);
	cr_assert(ch);
	cr_assert_neq(mlx5dv_devx_subscribe_devx_event(ch, k.obj, sizeof(type), &type, 0), 0);
	mlx5dv_devx_destroy_event_channel(ch);
	gone(&k);
	rig_close(&r);
}
