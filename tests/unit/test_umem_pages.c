/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The page sizes of umems in the software NIC's kernel emulation, tested with raw
 * commands. A ring's offset in a umem must be a multiple of 1/64 of the page size,
 * so the accepted offsets show which page size was chosen.
 */
#include <criterion/criterion.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MIB (1ul << 20)
#define ALL UINT64_MAX
#define LW  IBV_ACCESS_LOCAL_WRITE

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct mlx5dv_devx_uar *uar;
static struct mlx5dv_devx_umem *dbrs;
static uint8_t *mem;			   /* 4 MiB, aligned to 2 MiB */
static struct mlx5dv_devx_umem *umems[32]; /* registered umems, in order of registration */
static unsigned int num_umems;
static uint32_t pdn, eqn, status;

static void put(uint32_t *box, uint32_t off, uint32_t v)
{
	box[off / 4] = htobe32(be32toh(box[off / 4]) | v);
}

static struct mlx5dv_devx_umem *keep(struct mlx5dv_devx_umem *u)
{
	cr_assert_lt(num_umems, 32);
	if (u)
		umems[num_umems++] = u;
	return u;
}

/* page_size: page size of the kernel (SOFTNIC_PAGE_SIZE); NULL: the default */
static void open_nic(const char *page_size)
{
	struct mlx5dv_context_attr attr = { .flags = MLX5DV_CONTEXT_FLAGS_DEVX };
	struct ibv_device **list;
	struct mlx5dv_pd dvpd;
	struct mlx5dv_obj obj;
	uint8_t *map;

	if (page_size)
		setenv("SOFTNIC_PAGE_SIZE", page_size, 1);
	cr_assert(list = ibv_get_device_list(NULL));
	cr_assert(ctx = mlx5dv_open_device(list[0], &attr));
	ibv_free_device_list(list);
	cr_assert(pd = ibv_alloc_pd(ctx));
	cr_assert(uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC));
	cr_assert_eq(mlx5dv_devx_query_eqn(ctx, 0, &eqn), 0);
	obj.pd.in = pd;
	obj.pd.out = &dvpd;
	cr_assert_eq(mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD), 0);
	pdn = dvpd.pdn;
	map = mmap(NULL, 6 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(map, MAP_FAILED);
	mem = (uint8_t *)(((uintptr_t)map + 2 * MIB - 1) & ~(2 * MIB - 1));
	cr_assert(dbrs = keep(mlx5dv_devx_umem_reg(ctx, mem + 4 * MIB - 4096, 4096, LW)));
}

static struct mlx5dv_devx_umem *reg(size_t at, size_t len, uint64_t pages, uint32_t access)
{
	struct mlx5dv_devx_umem_in in = {
		.addr = mem + at,
		.size = len,
		.access = access,
		.pgsz_bitmap = pages,
	};

	return keep(mlx5dv_devx_umem_reg_ex(ctx, &in));
}

static void close_nic(void)
{
	while (num_umems)
		cr_assert_eq(mlx5dv_devx_umem_dereg(umems[--num_umems]), 0);
	mlx5dv_devx_free_uar(uar);
	cr_assert_eq(ibv_dealloc_pd(pd), 0);
	cr_assert_eq(ibv_close_device(ctx), 0);
}

static struct mlx5dv_devx_obj *create(const uint32_t *in, uint32_t *number)
{
	uint32_t out[4] = { 0 };
	struct mlx5dv_devx_obj *o = mlx5dv_devx_obj_create(ctx, in, 0x190, out, sizeof(out));

	status = be32toh(out[0]) >> 24;
	if (number)
		*number = be32toh(out[2]) & 0xffffff;
	return o;
}

static struct mlx5dv_devx_obj *cq(uint32_t umem, uint64_t off, uint32_t page_offset,
				  uint32_t log_size, uint32_t *cqn)
{
	uint32_t in[0x190 / 4] = { 0 };

	put(in, 0x00, 0x400u << 16);
	put(in, 0x14, dbrs->umem_id);
	put(in, 0x18, page_offset << 6);
	put(in, 0x1c, log_size << 24 | uar->page_id);
	put(in, 0x24, eqn);
	put(in, 0x50, (uint32_t)(off >> 32));
	put(in, 0x54, (uint32_t)off);
	put(in, 0x58, umem);
	put(in, 0x5c, 1u << 31);
	return create(in, cqn);
}

/* Creates a QP with one send slot and no receive queue. */
static struct mlx5dv_devx_obj *qp(uint32_t umem, uint32_t off, uint32_t page_offset, uint32_t cqn)
{
	uint32_t in[0x190 / 4] = { 0 };

	put(in, 0x00, 0x500u << 16);
	put(in, 0x18, 3u << 11);
	put(in, 0x1c, pdn);
	put(in, 0x24, uar->page_id);
	put(in, 0x94, cqn);
	put(in, 0xb4, cqn);
	put(in, 0xbc, 64);
	put(in, 0xc4, 3u << 24);
	put(in, 0xa8, page_offset << 6);
	put(in, 0xe8, 1u << 28);
	put(in, 0xfc, dbrs->umem_id);
	put(in, 0x104, off);
	put(in, 0x108, umem);
	put(in, 0x10c, 1u << 31);
	return create(in, NULL);
}

/* Creates an RMP: a cyclic queue with one WQE of 64 bytes. */
static struct mlx5dv_devx_obj *rmp(uint32_t umem, uint32_t off, uint32_t page_offset)
{
	uint32_t in[0x190 / 4] = { 0 };

	put(in, 0x00, 0x90cu << 16);
	put(in, 0x20, 1u << 20);
	put(in, 0x50, 1u << 28);
	put(in, 0x54, page_offset << 16);
	put(in, 0x58, pdn);
	put(in, 0x64, 128);
	put(in, 0x70, 6u << 16);
	put(in, 0x74, 3u << 30);
	put(in, 0x78, dbrs->umem_id);
	put(in, 0x7c, umem);
	put(in, 0x84, off);
	return create(in, NULL);
}

static bool made(struct mlx5dv_devx_obj *o)
{
	if (o)
		cr_assert_eq(mlx5dv_devx_obj_destroy(o), 0);
	return o;
}

/* Returns the page size, 64 times the smallest accepted offset; 0: the registration was refused. */
static size_t page_of(size_t at, size_t len, uint64_t pages)
{
	struct mlx5dv_devx_umem *u = reg(at, len, pages, LW);
	size_t unit = 64;

	if (!u) {
		cr_assert_eq(errno, EINVAL);
		return 0;
	}
	while (unit < 4 * MIB && !made(cq(u->umem_id, unit, 0, 0, NULL))) {
		cr_assert_eq(status, unit < len ? 0x3 : 0x5);
		unit *= 2;
	}
	cr_assert(made(cq(u->umem_id, 0, 0, 0, NULL)));
	return unit * 64;
}

Test(umem_pages, largest_listed_page_size_that_fits)
{
	open_nic(NULL);
	cr_expect_eq(page_of(0, 65536, ALL), 65536);
	cr_expect_eq(page_of(0, MIB, ALL), MIB);
	cr_expect_eq(page_of(0, MIB, 65536 | 4096), 65536);
	cr_expect_eq(page_of(0, MIB, 4096), 4096);
	cr_expect_eq(page_of(0, MIB, 8191), 4096, "sizes below 4096 must be ignored");
	cr_expect_eq(page_of(65536, MIB, ALL), 65536, "the address does not allow larger pages");
	cr_expect_eq(page_of(4096, 65536, ALL), 4096);
	cr_expect_eq(page_of(0, 3 * 8192, ALL), 8192, "the length does not allow larger pages");
	cr_expect_eq(page_of(0, 20000, ALL), 4096);
	cr_expect_eq(page_of(0, 4096, ALL), 4096);
	close_nic();
}

Test(umem_pages, unsupported_page_sizes_are_refused)
{
	open_nic(NULL);
	cr_expect_eq(page_of(0, MIB, 65536), 0);
	cr_expect_eq(page_of(0, MIB, 2048), 0);
	cr_expect_eq(page_of(0, MIB, 0), 0);
	close_nic();
}

Test(umem_pages, largest_page_size_without_a_list)
{
	struct mlx5dv_devx_umem *u;

	open_nic(NULL);
	cr_assert(u = keep(mlx5dv_devx_umem_reg(ctx, mem, MIB, LW)));
	cr_expect(!made(cq(u->umem_id, 8192, 0, 0, NULL)));
	cr_expect(made(cq(u->umem_id, 16384, 0, 0, NULL)));
	close_nic();
}

Test(umem_pages, page_sizes_on_a_64k_kernel)
{
	open_nic("64k");
	cr_expect_eq(page_of(0, MIB, 4096), 4096);
	cr_expect_eq(page_of(0, 65536, 8191), 4096);
	cr_expect_eq(page_of(0, MIB, 65536), 65536);
	cr_expect_eq(page_of(0, 8192, ALL), 8192, "one page of 8 KiB holds it");
	cr_expect_eq(page_of(0, 3 * 65536, ALL), 65536);
	close_nic();
}

Test(umem_pages, page_sizes_on_an_older_64k_kernel)
{
	open_nic("64k:whole");
	cr_expect_eq(page_of(0, MIB, 4096), 0);
	cr_expect_eq(page_of(0, MIB, 8191), 0);
	cr_expect_eq(page_of(0, MIB, 65536), 65536);
	cr_expect_eq(page_of(0, 8192, ALL), 65536);
	close_nic();
}

/* page_offset 63 is 1024 bytes before the end of the page: 16 CQEs fit into the umem, 32 do not. */
Test(umem_pages, page_offset_counts_64ths_of_a_page)
{
	struct mlx5dv_devx_umem *u;
	struct mlx5dv_devx_obj *c;
	uint32_t cqn;

	open_nic(NULL);
	cr_assert(u = reg(0, 65536, ALL, LW));
	cr_expect(made(cq(u->umem_id, 0, 63, 4, NULL)));
	cr_expect(!made(cq(u->umem_id, 0, 63, 5, NULL)));
	cr_expect_eq(status, 0x5);
	cr_assert(c = cq(u->umem_id, 0, 0, 0, &cqn));
	cr_expect(made(qp(u->umem_id, 0, 63, cqn)));
	cr_expect(!made(qp(u->umem_id, 1024, 63, cqn)));
	cr_expect_eq(status, 0x5);
	cr_expect(made(rmp(u->umem_id, 32768, 31)));
	cr_expect(!made(rmp(u->umem_id, 33792, 31)));
	cr_expect_eq(status, 0x5);
	cr_expect(made(c));
	close_nic();
}

Test(umem_pages, ring_offsets_are_multiples_of_a_64th_page)
{
	struct mlx5dv_devx_umem *u, *askew;
	struct mlx5dv_devx_obj *c;
	uint32_t cqn;

	open_nic(NULL);
	cr_assert(u = reg(0, 65536, ALL, LW));
	cr_assert(c = cq(u->umem_id, 1024, 0, 0, &cqn));
	cr_expect(!made(qp(u->umem_id, 512, 0, cqn)));
	cr_expect_eq(status, 0x3);
	cr_expect(made(qp(u->umem_id, 1024, 0, cqn)));
	cr_expect(!made(rmp(u->umem_id, 512, 0)));
	cr_expect_eq(status, 0x3);
	cr_expect(made(rmp(u->umem_id, 1024, 0)));
	/* First the ring's address is aligned and its offset is not, then the reverse. */
	cr_assert(askew = reg(32, 8192, 4096, LW));
	cr_expect(!made(cq(askew->umem_id, 32, 0, 0, NULL)));
	cr_expect(!made(cq(askew->umem_id, 64, 0, 0, NULL)));
	cr_expect(made(c));
	close_nic();
}

Test(umem_pages, invalid_access_flags_are_refused)
{
	static const uint32_t bad[] = {
		LW | IBV_ACCESS_REMOTE_ATOMIC,
		LW | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		IBV_ACCESS_REMOTE_WRITE,
		LW | IBV_ACCESS_MW_BIND,
		LW | IBV_ACCESS_ZERO_BASED,
		LW | IBV_ACCESS_ON_DEMAND,
		LW | IBV_ACCESS_HUGETLB,
	};
	static const uint32_t good[] = {
		0,
		LW,
		IBV_ACCESS_REMOTE_READ,
		LW | IBV_ACCESS_RELAXED_ORDERING,
		LW | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	size_t i;

	open_nic(NULL);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_expect_null(reg(0, 4096, 4096, bad[i]), "access flags %#x must be refused",
			       bad[i]);
		cr_expect_eq(errno, EINVAL, "access flags %#x: errno %d", bad[i], errno);
	}
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cr_expect(reg(0, 4096, 4096, good[i]), "access flags %#x must be accepted",
			  good[i]);
	close_nic();
}
