/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Access through indirect memory keys (access mode KSM): translation of addresses,
 * bounds, rights of both keys, and regions that are deregistered before the key.
 */
#include <sys/mman.h>

#include "../lib/mkey.h"

/* Offsets of the memory of three entries, neither page-aligned nor in order. */
static const uint32_t places[] = { 9 * PAGE + 104, 4 * PAGE + 8, 6 * PAGE + 3000 };

static struct key three(const struct rig *r, uint64_t start, int rights)
{
	struct box b = box_of(r, start, 3 * PAGE, 12, rights);
	unsigned i;

	for (i = 0; i < 3; i++)
		piece(&b, r->v.mem + places[i], r->v.mr->lkey);
	if (start % PAGE) /* an unaligned start needs one more entry */
		piece(&b, NULL, r->v.mr->lkey);
	return made(r, &b);
}

static uint8_t *place_of(const struct rig *r, uint32_t off)
{
	return r->v.mem + places[off / PAGE] + off % PAGE;
}

/* ---- translation of addresses ---- */

static void check_atomic(struct rig *r, uint64_t addr, uint32_t key, uint8_t *place)
{
	uint64_t before = 0x1122334455667788, old, now;

	memcpy(place, &before, 8);
	cr_assert_eq(access_to(r, IBV_WR_ATOMIC_FETCH_AND_ADD, addr, key), IBV_WC_SUCCESS);
	memcpy(&old, r->v.mem, 8);
	memcpy(&now, place, 8);
	cr_assert_eq(old, before);
	cr_assert_eq(now, before + 1);
}

/*
 * A key as UCX creates it for atomics: its large first entry begins before the region.
 * The second entry is needed if `shift` is not 0.
 */
static void check_shift(struct rig *r, uint64_t shift)
{
	uint64_t base = (uintptr_t)r->v.mem & ~(uint64_t)0x7fffffff;
	uint64_t end = (uintptr_t)r->v.mem + PAGES * PAGE;
	struct box b = box_of(r, base + shift, end - base, 31, ALL | LOCAL_READ);
	uint8_t *place = r->v.mem + 5 * PAGE + 16;
	uint64_t addr = (uintptr_t)place + shift;
	struct key k;

	piece(&b, (void *)(uintptr_t)base, r->v.mr->lkey);
	piece(&b, (void *)(uintptr_t)(base + 0x80000000), r->v.mr->lkey);
	k = made(r, &b);
	cr_assert_eq(post(r, IBV_WR_RDMA_WRITE, vb_sge(&r->v, 0, 3000), addr, k.key),
		     IBV_WC_SUCCESS);
	cr_assert_arr_eq(r->v.mem, place, 3000, "wrong data with shift %#lx", (unsigned long)shift);
	cr_assert_neq(place[3000], r->v.mem[3000]);
	memset(r->v.mem, 0, PAGE);
	cr_assert_eq(post(r, IBV_WR_RDMA_READ, vb_sge(&r->v, 0, 3000), addr, k.key),
		     IBV_WC_SUCCESS);
	cr_assert_arr_eq(r->v.mem, place, 3000);
	check_atomic(r, addr + 8, k.key, place + 8);
	gone(&k);
}

Test(verbs_mkey, shifted_key_translates_addresses)
{
	static const uint64_t shifts[] = { 0, 8, 77 * 8, 255 * 8, PAGE };
	struct rig r;
	size_t i;

	for (i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
		keys_open(&r);
		check_shift(&r, shifts[i]);
		rig_close(&r);
	}
}

/* Some packets, of 1024 bytes, cross from one entry to the next. */
static void check_across(uint64_t start)
{
	const uint32_t from = 4000, len = 5000;
	uint8_t *copy = malloc(PAGES * PAGE);
	struct rig r;
	struct key k;
	uint32_t i;

	keys_open(&r);
	k = three(&r, start, ALL | LOCAL_READ);
	memcpy(copy, r.v.mem, PAGES * PAGE);
	for (i = 0; i < len; i++)
		copy[place_of(&r, from + i) - r.v.mem] = r.v.mem[i];
	cr_assert_eq(post(&r, IBV_WR_RDMA_WRITE, vb_sge(&r.v, 0, len), start + from, k.key),
		     IBV_WC_SUCCESS);
	cr_assert_arr_eq(r.v.mem, copy, PAGES * PAGE, "the write changed wrong bytes");
	memset(r.v.mem, 0, len);
	cr_assert_eq(post(&r, IBV_WR_RDMA_READ, vb_sge(&r.v, 0, len), start + from, k.key),
		     IBV_WC_SUCCESS);
	cr_assert_arr_eq(r.v.mem, copy, PAGES * PAGE);
	for (i = 0; i < 2; i++) /* like the first, the third entry's memory is aligned to 8 */
		check_atomic(&r, start + 2 * PAGE * i + 8, k.key, place_of(&r, 2 * PAGE * i + 8));
	gone(&k);
	free(copy);
	rig_close(&r);
}

Test(verbs_mkey, access_continues_in_the_next_entry)
{
	check_across(0x10000);
	check_across(0);
	check_across(0x7f0000001238);
}

Test(verbs_mkey, local_gather_and_scatter_by_key)
{
	const uint32_t from = 4090, len = 200;
	struct ibv_recv_wr recv = { .num_sge = 1 }, *bad;
	uint8_t want[200];
	struct ibv_sge sge;
	struct rig r;
	struct key k;
	uint32_t i;

	keys_open(&r);
	k = three(&r, 0x10000, IBV_ACCESS_LOCAL_WRITE | LOCAL_READ);
	for (i = 0; i < len; i++)
		want[i] = *place_of(&r, from + i);
	sge = (struct ibv_sge){ .addr = k.start + from, .length = len, .lkey = k.key };
	cr_assert_eq(post(&r, IBV_WR_RDMA_WRITE, sge, (uintptr_t)r.v.mem, r.v.mr->rkey),
		     IBV_WC_SUCCESS);
	cr_assert_arr_eq(r.v.mem, want, len);

	memset(r.v.mem, 0x77, len);
	recv.sg_list = &sge;
	cr_assert_eq(ibv_post_recv(r.b, &recv, &bad), 0);
	cr_assert_eq(vb_send(&r.v, r.a, 1, 0, len), 0);
	cr_assert_eq(vb_wc(r.cq).status, IBV_WC_SUCCESS);
	cr_assert_eq(vb_wc(r.cq).status, IBV_WC_SUCCESS);
	for (i = 0; i < len; i++)
		cr_assert_eq(*place_of(&r, from + i), 0x77, "byte %u", i);
	gone(&k);
	rig_close(&r);
}

/* ---- bounds ---- */

/*
 * Writes through a key over pages 4 to 6. Unless `whole` is set, the region lacks the
 * first and last 16 bytes of these three pages.
 */
static enum ibv_wc_status write_near(uint64_t off, uint32_t len, bool whole, bool *touched)
{
	enum ibv_wc_status status;
	uint8_t *mem, *copy = malloc(PAGES * PAGE);
	struct ibv_mr *mr;
	struct rig r;
	struct box b;
	struct key k;

	keys_open(&r);
	mem = r.v.mem + 4 * PAGE;
	mr = ibv_reg_mr(r.v.pd, mem + (whole ? 0 : 16), 3 * PAGE - (whole ? 0 : 32), ALL);
	cr_assert(mr);
	b = box_of(&r, 0x20000, 3 * PAGE - 4, 12, IBV_ACCESS_REMOTE_WRITE);
	piece(&b, mem, mr->lkey);
	piece(&b, mem + PAGE, mr->lkey);
	piece(&b, mem + 2 * PAGE, mr->lkey);
	k = made(&r, &b);
	memcpy(copy, r.v.mem, PAGES * PAGE);
	memset(r.v.mem, 0xee, len);
	memset(copy, 0xee, len);
	status = post(&r, IBV_WR_RDMA_WRITE, vb_sge(&r.v, 0, len), k.start + off, k.key);
	*touched = memcmp(copy, r.v.mem, PAGES * PAGE);
	gone(&k);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	rig_close(&r);
	free(copy);
	return status;
}

Test(verbs_mkey, access_beyond_key_or_region_is_refused)
{
	static const struct {
		int64_t off;
		uint32_t len;
		bool whole, allowed;
	} at[] = {
		{ 0, 3 * PAGE - 4, true, true },
		{ 0, 3 * PAGE - 3, true, false },
		{ 3 * PAGE - 5, 1, true, true },
		{ 3 * PAGE - 4, 1, true, false },
		{ -1, 1, true, false },
		{ -1, 8, true, false },
		{ 16, 3 * PAGE - 32, false, true },
		{ 15, 1, false, false },
		{ 15, 100, false, false },
		{ 3 * PAGE - 17, 1, false, true },
		{ 3 * PAGE - 16, 1, false, false },
		{ 100, 3 * PAGE - 115, false, false },
		{ 1ll << 40, 1, true, false },
		{ INT64_MIN, 1, true, false },
	};
	bool touched;
	size_t i;

	for (i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		cr_assert_eq(write_near((uint64_t)at[i].off, at[i].len, at[i].whole, &touched),
			     at[i].allowed ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR,
			     "case %zu: wrong status", i);
		cr_assert_eq(touched, at[i].allowed,
			     "case %zu: a write must be done completely or not at all", i);
	}
}

/* ---- rights ---- */

/*
 * One operation with a key of one page, either as the remote side or, for READ and
 * WRITE, as the local side.
 */
static enum ibv_wc_status by_key(int of_key, int of_region, enum ibv_wr_opcode op, bool local)
{
	enum ibv_wc_status status;
	struct ibv_mr *mr;
	struct rig r;
	struct box b;
	struct key k;

	keys_open(&r);
	mr = ibv_reg_mr(r.v.pd, r.v.mem + PAGE, PAGE, of_region);
	cr_assert(mr);
	b = box_of(&r, 0x20000, 64, 12, of_key);
	piece(&b, r.v.mem + PAGE, mr->lkey);
	k = made(&r, &b);
	if (local)
		status = post(&r, op, (struct ibv_sge){ k.start, 8, k.key }, (uintptr_t)r.v.mem,
			      r.v.mr->rkey);
	else
		status = access_to(&r, op, k.start, k.key);
	gone(&k);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	rig_close(&r);
	return status;
}

static enum ibv_wc_status with(int of_key, int of_region, enum ibv_wr_opcode op)
{
	return by_key(of_key, of_region, op, false);
}

static enum ibv_wc_status local(int of_key, int of_region, enum ibv_wr_opcode op)
{
	return by_key(of_key, of_region, op, true);
}

Test(verbs_mkey, remote_rights_need_both_keys)
{
	for (size_t i = 0; i < OPS; i++) {
		cr_assert_eq(with(ops[i].right, ALL, ops[i].op), IBV_WC_SUCCESS, "operation %zu",
			     i);
		cr_assert_eq(
			with(ALL | LOCAL_READ, IBV_ACCESS_LOCAL_WRITE | ops[i].right, ops[i].op),
			IBV_WC_SUCCESS, "operation %zu", i);
		cr_assert_eq(with((ALL | LOCAL_READ) & ~ops[i].right, ALL, ops[i].op),
			     IBV_WC_REM_ACCESS_ERR, "operation %zu, key without the right", i);
		cr_assert_eq(with(ALL | LOCAL_READ, ALL & ~ops[i].right, ops[i].op),
			     IBV_WC_REM_ACCESS_ERR, "operation %zu, region without the right", i);
	}
}

Test(verbs_mkey, local_rights_need_both_keys)
{
	const int write = IBV_ACCESS_LOCAL_WRITE;

	cr_assert_eq(local(LOCAL_READ, 0, IBV_WR_RDMA_WRITE), IBV_WC_SUCCESS);
	cr_assert_eq(local(ALL, ALL, IBV_WR_RDMA_WRITE), IBV_WC_LOC_PROT_ERR);
	cr_assert_eq(local(write, write, IBV_WR_RDMA_READ), IBV_WC_SUCCESS);
	cr_assert_eq(local(LOCAL_READ | REMOTE, ALL, IBV_WR_RDMA_READ), IBV_WC_LOC_PROT_ERR);
	cr_assert_eq(local(write | LOCAL_READ, 0, IBV_WR_RDMA_READ), IBV_WC_LOC_PROT_ERR);
}

Test(verbs_mkey, atomics_must_be_aligned_in_memory)
{
	int off;

	for (off = 0; off < 8; off += 4) {
		struct rig r;
		struct box b;
		struct key k;

		keys_open(&r);
		b = box_of(&r, 0x20000, 64, 12, ALL);
		piece(&b, r.v.mem + PAGE + off, r.v.mr->lkey);
		k = made(&r, &b);
		cr_assert_eq(access_to(&r, IBV_WR_ATOMIC_FETCH_AND_ADD, k.start + 8, k.key),
			     off ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS);
		gone(&k);
		rig_close(&r);
	}
}

/* ---- a region or key that is gone ---- */

enum end { NOTHING, REGION, REGION_MADE_AGAIN, OTHER_PD, KEY, OTHER_TAG, ONE_OF_TWO };

static void end_it(struct rig *r, enum end what, struct key *k, struct ibv_mr **mr,
		   struct ibv_pd *pd)
{
	void *mem = (*mr)->addr;

	switch (what) {
	case REGION_MADE_AGAIN:
	case REGION:
	case ONE_OF_TWO:
		cr_assert_eq(ibv_dereg_mr(*mr), 0);
		*mr = NULL;
		if (what == REGION_MADE_AGAIN)
			*mr = ibv_reg_mr(r->v.pd, mem, PAGE, ALL);
		break;
	case OTHER_PD:
		cr_assert_eq(ibv_rereg_mr(*mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
		break;
	case KEY:
		gone(k);
		break;
	case OTHER_TAG:
		k->key ^= 1;
		break;
	case NOTHING:
		break;
	}
}

static void check_end(enum end what, enum ibv_wc_status want)
{
	struct ibv_mr *mr;
	struct ibv_pd *pd;
	struct rig r;
	struct box b;
	struct key k;

	keys_open(&r);
	pd = ibv_alloc_pd(r.v.ctx);
	mr = ibv_reg_mr(r.v.pd, r.v.mem + 4 * PAGE, PAGE, ALL);
	cr_assert(pd && mr);
	b = box_of(&r, 0x20000, 2 * PAGE, 12, ALL);
	piece(&b, r.v.mem + 8 * PAGE, what == ONE_OF_TWO ? r.v.mr->lkey : mr->lkey);
	piece(&b, r.v.mem + 4 * PAGE, mr->lkey);
	k = made(&r, &b);
	end_it(&r, what, &k, &mr, pd);
	memset(r.v.mem, 0xee, 2 * PAGE);
	cr_assert_eq(post(&r, IBV_WR_RDMA_WRITE, vb_sge(&r.v, 0, 100),
			  k.start + (what == ONE_OF_TWO ? PAGE - 50 : PAGE), k.key),
		     want, "case %d", what);
	cr_assert_eq(r.v.mem[4 * PAGE] == 0xee, want == IBV_WC_SUCCESS);
	cr_assert_neq(r.v.mem[9 * PAGE - 1], 0xee);
	if (what != KEY)
		gone(&k);
	cr_assert_eq(mr ? ibv_dereg_mr(mr) : 0, 0);
	cr_assert_eq(ibv_dealloc_pd(pd), 0);
	rig_close(&r);
}

Test(verbs_mkey, access_fails_when_the_region_is_gone)
{
	check_end(NOTHING, IBV_WC_SUCCESS);
	check_end(REGION, IBV_WC_REM_ACCESS_ERR);
	check_end(REGION_MADE_AGAIN, IBV_WC_REM_ACCESS_ERR);
	check_end(OTHER_PD, IBV_WC_REM_ACCESS_ERR);
	check_end(KEY, IBV_WC_REM_ACCESS_ERR);
	check_end(OTHER_TAG, IBV_WC_REM_ACCESS_ERR);
	check_end(ONE_OF_TWO, IBV_WC_REM_ACCESS_ERR);
}

/*
 * When all indices have been used, a new key may get the number that a region had.
 * Its addresses begin at 0, so it would lead to the region's memory if the NIC took
 * it for the region.
 */
Test(verbs_mkey, key_does_not_lead_to_another_key)
{
	uint8_t *mem = mmap((void *)0x10000000, PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	struct key first, k = { 0 };
	struct ibv_mr *mr;
	uint32_t dead;
	struct rig r;
	struct box b;

	cr_assert_eq((uintptr_t)mem, 0x10000000);
	keys_open(&r);
	mr = ibv_reg_mr(r.v.pd, mem, PAGE, ALL);
	cr_assert(mr);
	dead = mr->lkey;
	b = box_of(&r, 0x20000, PAGE, 12, ALL);
	piece(&b, mem, dead);
	first = made(&r, &b);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	b = box_of(&r, 0, 1u << 31, 31, ALL);
	piece(&b, r.v.mem, r.v.mr->lkey);
	set(b.in, 0x14, 0xff, dead & 0xff);
	do {
		if (k.obj)
			gone(&k);
		k = made(&r, &b);
	} while (k.key != dead);
	cr_assert_eq(access_to(&r, IBV_WR_RDMA_WRITE, first.start, first.key),
		     IBV_WC_REM_ACCESS_ERR);
	gone(&first);
	gone(&k);
	rig_close(&r);
	munmap(mem, PAGE);
}

/*
 * Some writes may succeed, then one may be refused and the rest flushed; no other
 * result is allowed.
 */
Test(verbs_mkey, region_deregistered_during_writes)
{
	enum ibv_wc_status status, last = IBV_WC_SUCCESS;
	struct ibv_send_wr wr = { .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct rig r;
	struct box b;
	struct key k;
	int i;

	keys_open(&r);
	mr = ibv_reg_mr(r.v.pd, r.v.mem + 8 * PAGE, 4 * PAGE, ALL);
	cr_assert(mr);
	b = box_of(&r, 0x20000, 4 * PAGE, 14, ALL);
	piece(&b, mr->addr, mr->lkey);
	k = made(&r, &b);
	sge = vb_sge(&r.v, 0, 4 * PAGE);
	wr.sg_list = &sge;
	wr.wr.rdma.remote_addr = k.start;
	wr.wr.rdma.rkey = k.key;
	for (i = 0; i < 32; i++)
		cr_assert_eq(ibv_post_send(r.a, &wr, &bad), 0);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	gone(&k);
	for (i = 0; i < 32; i++, last = status) {
		status = vb_wc(r.cq).status;
		if (last == IBV_WC_SUCCESS)
			cr_assert(status == last || status == IBV_WC_REM_ACCESS_ERR, "status %d",
				  status);
		else
			cr_assert_eq(status, IBV_WC_WR_FLUSH_ERR);
	}
	rig_close(&r);
}
