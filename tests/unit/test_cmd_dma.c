/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Capabilities of the copy engine and the permission to use it: at creation (the context's
 * extension, mlx5_prm.h of DPDK 22.11) and by INIT2INIT (mlx5_ifc.h of rdma-core 44). The
 * permission is read by posting a copy, see test_softnic_dma.c; here through libmlx5 and the
 * number of the queue pair.
 */
#include <dlfcn.h>

#include "../lib/rawnic.h"
#include "../softnic/softnic.h"

#define WITH_EXT (0x110 + 0xc0)
#define EXT_BIT	 (1u << 31) /* qpc_ext in word 0x08 */
#define MMO_BIT	 (1u << 29) /* first word of the extension */
#define OPT_MMO	 (1u << 3)  /* in word 0x10c of INIT2INIT */

static struct nic n;
static struct mlx5dv_devx_obj *cq;
static uint32_t cqn, box[WITH_EXT / 4];

static void open_all(void)
{
	uint32_t in[0x110 / 4];

	nic_open(&n);
	cq_box(&n, in);
	cq = create(&n, in, &cqn);
	cr_assert(cq);
	memset(box, 0, sizeof(box));
	qp_box(&n, box, cqn);
}

static void close_all(void)
{
	cr_assert_eq(mlx5dv_devx_obj_destroy(cq), 0);
	nic_close(&n);
}

TestSuite(cmd_dma, .init = open_all, .fini = close_all);

static struct mlx5dv_devx_obj *create_ext(size_t len, uint32_t *qpn)
{
	uint32_t out[4] = { 0 };
	struct mlx5dv_devx_obj *o = mlx5dv_devx_obj_create(n.ctx, box, len, out, sizeof(out));

	last_status = get(out, 0) >> 24;
	last_syndrome = get(out, 4);
	*qpn = get(out, 8) & 0xffffff;
	return o;
}

/* Returns whether the NIC lets this queue pair use the engine. */
static bool permitted(uint32_t qpn)
{
	struct sn_qp *(*find)(struct sn_dev *, uint32_t);
	struct sn_dev **dev;

	*(void **)&find = dlsym(RTLD_DEFAULT, "sn_find_qp");
	dev = dlsym(RTLD_DEFAULT, "sn_dev");
	cr_assert(find && dev, "run the test under softnic-run");
	return find(*dev, qpn)->mmo;
}

static void to_init(struct mlx5dv_devx_obj *qp, uint32_t qpn)
{
	uint32_t in[0x110 / 4];

	modify_box(in, 0x502, qpn);
	put(in, 0x18 + 0x18 + 0x24, 1u << 16);
	modify(qp, in, sizeof(in), 0);
}

static void init2init(struct mlx5dv_devx_obj *qp, uint32_t qpn, uint32_t words[3], size_t len,
		      uint32_t status)
{
	uint32_t in[WITH_EXT / 4];

	memset(in, 0, sizeof(in));
	put(in, 0, 0x50eu << 16);
	put(in, 8, words[0] | qpn);
	put(in, 0x10c, words[1]);
	put(in, 0x110, words[2]);
	modify(qp, in, len, status);
}

Test(cmd_dma, capabilities)
{
	uint32_t in[4] = { 0 }, out[0x1010 / 4] = { 0 };

	put(in, 0, 0x100u << 16);
	put(in, 4, 1);
	cr_assert_eq(mlx5dv_devx_general_cmd(n.ctx, in, sizeof(in), out, sizeof(out)), 0);
	cr_expect_eq(get(out, 0x10 + 0x0c) >> 16 & 0x1f, 31, "log_dma_mmo_max_size");
	cr_expect_eq(get(out, 0x10 + 0x24) >> 29 & 1, 1, "qpc_extension");
	cr_expect_eq(get(out, 0x10 + 0x28) >> 12 & 1, 0, "dma_mmo_sq");
	cr_expect_eq(get(out, 0x10 + 0xe8) >> 23 & 1, 1, "dma_mmo_qp");
}

Test(cmd_dma, permission_at_creation_survives_a_reset)
{
	struct mlx5dv_devx_obj *qp;
	uint32_t qpn, in[4];

	put(box, 0x08, EXT_BIT);
	put(box, 0x110, MMO_BIT);
	qp = create_ext(WITH_EXT, &qpn);
	cr_assert(qp, "status %#x syndrome %#x", last_status, last_syndrome);
	cr_expect(permitted(qpn));
	to_init(qp, qpn);
	memset(in, 0, sizeof(in));
	put(in, 0, 0x50au << 16);
	put(in, 8, qpn);
	modify(qp, in, sizeof(in), 0);
	cr_expect(permitted(qpn));
	cr_assert_eq(mlx5dv_devx_obj_destroy(qp), 0);
}

Test(cmd_dma, permission_of_init2init_ends_with_a_reset)
{
	uint32_t words[3] = { EXT_BIT, OPT_MMO, MMO_BIT }, qpn, in[4];
	struct mlx5dv_devx_obj *qp = create_ext(0x110, &qpn);

	cr_assert(qp);
	to_init(qp, qpn);
	cr_expect_not(permitted(qpn));
	init2init(qp, qpn, words, WITH_EXT, 0);
	cr_expect(permitted(qpn));
	memset(in, 0, sizeof(in));
	put(in, 0, 0x50au << 16);
	put(in, 8, qpn);
	modify(qp, in, sizeof(in), 0);
	cr_expect_not(permitted(qpn));
	cr_assert_eq(mlx5dv_devx_obj_destroy(qp), 0);
}

Test(cmd_dma, incomplete_permissions_are_refused)
{
	uint32_t words[3] = { EXT_BIT, 0, MMO_BIT }, bit[3] = { EXT_BIT, OPT_MMO, MMO_BIT | 1 };
	uint32_t none[3] = { 0, OPT_MMO, 0 }, flag[3] = { 0, 0, MMO_BIT }, qpn;
	struct mlx5dv_devx_obj *qp = create_ext(0x110, &qpn);

	cr_assert(qp);
	to_init(qp, qpn);
	init2init(qp, qpn, words, WITH_EXT, 0x3);
	init2init(qp, qpn, bit, WITH_EXT, 0x3);
	init2init(qp, qpn, none, 0x110, 0x3);
	init2init(qp, qpn, flag, WITH_EXT, 0x3);
	words[1] = OPT_MMO;
	init2init(qp, qpn, words, 0x118, 0x50);
	cr_expect_not(permitted(qpn));
	cr_assert_eq(mlx5dv_devx_obj_destroy(qp), 0);
}

Test(cmd_dma, bad_extensions_are_refused_at_creation)
{
	uint32_t qpn;

	put(box, 0x110, MMO_BIT);
	cr_expect_null(create_ext(WITH_EXT, &qpn), "an extension that qpc_ext does not announce");
	put(box, 0x08, EXT_BIT);
	cr_expect_null(create_ext(0x150, &qpn), "a short extension");
	put(box, 0x114, 1);
	cr_expect_null(create_ext(WITH_EXT, &qpn), "a reserved bit");
	box[0x114 / 4] = 0;
	put(box, 0x18, 1u << 16);
	cr_expect_null(create_ext(WITH_EXT, &qpn), "a UC queue pair");
	cr_expect_eq(last_syndrome, 0x500018);
}
