/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The software NIC's emulation of kernel and firmware, used through the
 * distribution's libibverbs and libmlx5: the device and its addresses, objects
 * created by raw DEVX commands, commands that must be refused, injected failures,
 * and cleanup after the last close.
 */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/rawnic.h"
#include "../softnic/softnic.h"

static const struct sn_stats *stats(void)
{
	const struct sn_stats *(*fn)(void);

	*(void **)&fn = dlsym(RTLD_DEFAULT, "sn_stats_get");
	cr_assert(fn);
	return fn();
}

static uint32_t live(void)
{
	uint32_t (*fn)(void);

	*(void **)&fn = dlsym(RTLD_DEFAULT, "sn_objects_live");
	cr_assert(fn);
	return fn();
}

static void fail_next(uint32_t cmd, uint8_t status, uint32_t syndrome, uint32_t nth_ioctl)
{
	void (*fn)(uint32_t, uint8_t, uint32_t, uint32_t);

	*(void **)&fn = dlsym(RTLD_DEFAULT, "sn_fail_next");
	cr_assert(fn);
	fn(cmd, status, syndrome, nth_ioctl);
}

/* ---- device ---- */
Test(softnic_front, capabilities)
{
	uint32_t in[4] = { 0 }, out[0x1010 / 4] = { 0 };
	struct ibv_context *ctx = open_nic();

	put(in, 0, 0x100u << 16);
	put(in, 4, 1);
	cr_assert_eq(mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out)), 0);
	cr_assert_eq(get(out, 0x10 + 0x34) >> 8 & 3, 1, "the port type must be Ethernet");
	cr_assert_eq(get(out, 0x10 + 0x10) >> 16 & 0xff, 15, "wrong log_max_qp_sz");
	cr_assert_eq(get(out, 0x10 + 0x04) >> 31, 1, "wrong hca_cap_2");
	memset(out, 0, sizeof(out));
	in[1] = htobe32(0x41);
	cr_assert_eq(mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out)), 0);
	cr_assert_eq(get(out, 0x10 + 0x5c) >> 30 & 1, 1, "DBREC-less QPs must be supported");
	ibv_close_device(ctx);
}

Test(softnic_front, roce_address_carries_gid_and_mac)
{
	uint32_t in[4] = { 0 }, out[12] = { 0 };
	struct ibv_context *ctx = open_nic();
	union ibv_gid gid;

	put(in, 0, 0x760u << 16);
	put(in, 8, 3u << 16);
	cr_assert_eq(mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out)), 0);
	cr_assert_eq(ibv_query_gid(ctx, 1, 3, &gid), 0);
	cr_assert_arr_eq(gid.raw, (uint8_t *)out + 0x10, 16);
	cr_assert_eq(get(out, 0x28) & 0xff, 2, "the type must be RoCE v2");
	cr_assert_eq(get(out, 0x20) & 0xffff, 0x0200);
	in[2] = htobe32(1u << 16);
	cr_assert_eq(mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out)), 0);
	cr_assert_eq(get(out, 0x28) & 0xfff, 0x102,
		     "the type must be RoCE v2 with an IPv6 address");
	in[2] = htobe32(8u << 16);
	cr_assert_eq(mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out)), EREMOTEIO);
	cr_assert_eq(get(out, 0) >> 24, 0x3);
	ibv_close_device(ctx);
}

/* ---- objects ---- */

/* Creates a QP and its CQ; in: space for the commands. */
static struct mlx5dv_devx_obj *qp_and_cq(struct nic *n, uint32_t *in, struct mlx5dv_devx_obj **cq,
					 uint32_t *qpn)
{
	struct mlx5dv_devx_obj *qp;
	uint32_t cqn;

	cq_box(n, in);
	*cq = create(n, in, &cqn);
	cr_assert(*cq, "refused: status %#x, syndrome %#x", last_status, last_syndrome);
	qp_box(n, in, cqn);
	qp = create(n, in, qpn);
	cr_assert(qp, "refused: status %#x, syndrome %#x", last_status, last_syndrome);
	return qp;
}

Test(softnic_front, qp_state_transitions)
{
	uint32_t in[0x110 / 4], out[0x110 / 4], qpn;
	struct mlx5dv_devx_obj *cq, *qp;
	union ibv_gid gid;
	struct nic n;

	nic_open(&n);
	cr_assert_eq(ibv_query_gid(n.ctx, 1, 3, &gid), 0);
	qp = qp_and_cq(&n, in, &cq, &qpn);
	cr_assert_eq(qp_state(qp, qpn, out), 0);
	cr_assert_eq(get(out, 0x28) & 0xffffff, 0x1234);
	cr_assert_neq(get(out, 0x18 + 0x08) >> 29, 0, "a new QP must have a valid MTU");

	rtr_box(in, qpn, &gid);
	modify(qp, in, 0x110, 0x10);
	modify_box(in, 0x502, qpn);
	put(in, 0x18, 3u << 11);
	put(in, 0x18 + 0x3c, 1u << 16);
	put(in, 0x18 + 0x90, 1u << 15 | 1u << 14);
	modify(qp, in, 0x110, 0);
	cr_assert_eq(qp_state(qp, qpn, out), 1);

	rtr_box(in, qpn, &gid);
	in[(0x18 + 0x40) / 4] ^= htobe32(1);
	modify(qp, in, 0x110, 0x3);
	rtr_box(in, qpn, &gid);
	modify(qp, in, 0x110, 0);
	modify_box(in, 0x504, qpn);
	put(in, 0x10, 1u << 30);
	modify(qp, in, 0x110, 0x3);
	modify_box(in, 0x504, qpn);
	put(in, 0x18 + 0x20, 14u << 27);
	put(in, 0x18 + 0x70, 3u << 21 | 7u << 16 | 6u << 13);
	put(in, 0x18 + 0x78, 0x55);
	modify(qp, in, 0x110, 0);
	cr_assert_eq(qp_state(qp, qpn, out), 3);
	cr_assert_eq(get(out, 0x18 + 0x94) & 0xffffff, 0x77);
	cr_assert_eq(get(out, 0x18 + 0x90) >> 13 & 7, 6,
		     "reads and writes must be allowed, atomics not");
	modify_box(in, 0x507, qpn);
	modify(qp, in, 16, 0);
	cr_assert_eq(qp_state(qp, qpn, out), 6);
	modify_box(in, 0x50a, qpn);
	modify(qp, in, 16, 0);
	cr_assert_eq(qp_state(qp, qpn, out), 0);

	modify_box(in, 0x502, qpn);
	put(in, 0x18 + 0x3c, 1u << 16);
	modify(qp, in, 0x110, 0);
	rtr_box(in, qpn, &gid);
	put(in, 0x18 + 0x3c, 0);
	put(in, 0x18 + 0x40, 0);
	modify(qp, in, 0x110, 0); /* all zeros: the MAC address of lo */

	cr_assert_neq(mlx5dv_devx_obj_destroy(cq), 0, "a CQ that a QP uses must not be destroyed");
	cr_assert_eq(mlx5dv_devx_obj_destroy(qp), 0);
	cr_assert_eq(mlx5dv_devx_obj_destroy(cq), 0);
	nic_close(&n);
}

Test(softnic_front, objects_outside_their_umem_are_refused)
{
	uint32_t in[0x110 / 4], cqn;
	struct mlx5dv_devx_obj *cq;
	struct nic n;

	nic_open(&n);
	cq_box(&n, in);
	in[0x54 / 4] = htobe32(RING - 4096 + 64);
	cr_assert_null(create(&n, in, NULL));
	cr_assert_eq(last_status, 0x5);
	cq_box(&n, in);
	in[0x4c / 4] = htobe32(RING);
	cr_assert_null(create(&n, in, NULL));
	cr_assert_eq(last_status, 0x5);
	cq_box(&n, in);
	in[0x1c / 4] = htobe32(6u << 24 | 0xfff);
	cr_assert_null(create(&n, in, NULL));
	cr_assert_eq(last_status, 0x5);
	cq_box(&n, in);
	cq = create(&n, in, &cqn);
	qp_box(&n, in, cqn);
	in[0x20 / 4] = htobe32(9u << 11);
	cr_assert_null(create(&n, in, NULL));
	cr_assert_eq(last_status, 0x5);
	qp_box(&n, in, cqn + 1);
	cr_assert_null(create(&n, in, NULL));
	cr_assert_eq(last_status, 0x5);
	cr_assert_eq(stats()->bad_reserved, 0);
	cr_assert_eq(mlx5dv_devx_obj_destroy(cq), 0);
	nic_close(&n);
}

Test(softnic_front, counts_reserved_bits_and_unknown_commands)
{
	uint32_t in[0x110 / 4], out[4] = { 0 };
	struct nic n;

	nic_open(&n);
	cq_box(&n, in);
	put(in, 0x2c, 1);
	cr_assert_null(create(&n, in, NULL));
	cr_assert_eq(errno, EREMOTEIO);
	cr_assert_eq(last_status, 0x3);
	cr_assert_eq(last_syndrome & 0xff, 0x2c);
	cr_assert_eq(stats()->bad_reserved, 1);
	memset(in, 0, sizeof(in));
	put(in, 0, 0xbadu << 16);
	cr_assert_eq(mlx5dv_devx_general_cmd(n.ctx, in, 16, out, sizeof(out)), EREMOTEIO);
	cr_assert_eq(get(out, 0) >> 24, 0x2);
	cr_assert_eq(stats()->bad_command, 1);
	nic_close(&n);
}

Test(softnic_front, qp_without_dbrec)
{
	uint32_t in[0x110 / 4], out[0x110 / 4], cqn, qpn;
	struct mlx5dv_devx_obj *cq, *qp;
	struct nic n;

	nic_open(&n);
	cq_box(&n, in);
	cq = create(&n, in, &cqn);
	qp_box(&n, in, cqn);
	put(in, 0x28, 1u << 30);
	qp = create(&n, in, &qpn);
	cr_assert(qp, "refused: status %#x, syndrome %#x", last_status, last_syndrome);
	qp_state(qp, qpn, out);
	cr_assert_eq(get(out, 0x28) >> 30, 1);
	cr_assert_eq(mlx5dv_devx_obj_destroy(qp), 0);
	cr_assert_eq(mlx5dv_devx_obj_destroy(cq), 0);
	nic_close(&n);
}

Test(softnic_front, memory_is_checked_at_registration)
{
	struct nic n;
	struct ibv_mr *mr;

	nic_open(&n);
	cr_assert_null(ibv_reg_mr(n.pd, (void *)0x1000, 4096, IBV_ACCESS_LOCAL_WRITE));
	cr_assert_eq(errno, EFAULT);
	cr_assert_null(ibv_reg_mr(n.pd, n.mem, RING, IBV_ACCESS_REMOTE_WRITE));
	cr_assert_eq(errno, EINVAL);
	cr_assert_null(ibv_reg_mr(n.pd, n.mem, RING, IBV_ACCESS_ON_DEMAND));
	cr_assert_null(ibv_reg_dmabuf_mr(n.pd, 0, 4096, 0, 0, IBV_ACCESS_LOCAL_WRITE));
	cr_assert_eq(errno, EOPNOTSUPP);
	mr = ibv_reg_mr(n.pd, n.mem, RING,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING);
	cr_assert(mr);
	cr_assert_eq(mr->lkey, mr->rkey);
	cr_assert_eq(ibv_dealloc_pd(n.pd), EBUSY);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	nic_close(&n);
}

Test(softnic_front, address_handle_resolves_the_mac)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh.sgid_index = 3 };
	struct mlx5dv_obj obj;
	struct mlx5dv_ah dv;
	struct ibv_ah *ah;
	uint8_t mac[6];
	struct nic n;

	nic_open(&n);
	cr_assert_eq(ibv_query_gid(n.ctx, 1, 3, &attr.grh.dgid), 0);
	ah = ibv_create_ah(n.pd, &attr);
	cr_assert(ah);
	obj.ah.in = ah;
	obj.ah.out = &dv;
	cr_assert_eq(mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH), 0);
	memcpy(mac, dv.av->rmac, 6);
	cr_assert_eq(mac[0], 2);
	cr_assert_arr_eq(mac + 2, attr.grh.dgid.raw + 12, 4);
	cr_assert_eq(ibv_destroy_ah(ah), 0);
	nic_close(&n);
}

/* ---- failures ---- */
Test(softnic_front, injects_command_and_call_failures)
{
	uint32_t in[0x110 / 4];
	struct nic n;

	nic_open(&n);
	cq_box(&n, in);
	fail_next(1, 0x8, 0xabcde, 0);
	cr_assert_null(create(&n, in, NULL));
	cr_assert_eq(last_status, 0x8);
	cr_assert_eq(last_syndrome, 0xabcde);
	fail_next(0, 0, 0, 1);
	cr_assert_null(ibv_alloc_pd(n.ctx));
	cr_assert_eq(errno, ENOMEM);
	fail_next(0, 0, 0, 0);
	nic_close(&n);
	cr_assert_eq(live(), 0);
}

/* Runs in a child that ends by _exit(), because libmlx5 leaks the remaining objects. */
static int leave_and_close(void)
{
	uint32_t in[0x110 / 4], cqn, most;
	struct nic n;

	nic_open(&n);
	if (!ibv_create_comp_channel(n.ctx) || !ibv_create_cq(n.ctx, 15, NULL, NULL, 0) ||
	    !ibv_reg_mr(n.pd, n.mem, RING, IBV_ACCESS_LOCAL_WRITE))
		return 1;
	cq_box(&n, in);
	if (!create(&n, in, &cqn))
		return 2;
	qp_box(&n, in, cqn);
	if (!create(&n, in, NULL))
		return 3;
	most = live();
	ibv_close_device(n.ctx);
	return most > 6 && live() == 0 ? 0 : 4;
}

Test(softnic_front, close_frees_remaining_objects)
{
	pid_t pid = fork();
	int st;

	if (pid == 0)
		_exit(leave_and_close());
	cr_assert_eq(waitpid(pid, &st, 0), pid);
	cr_assert_eq(st, 0);
}

Test(softnic_front, limits_qps_without_dbrec)
{
	uint32_t in[0x110 / 4], cqn;
	struct mlx5dv_devx_obj *cq, *qp, *plain;
	struct nic n;

	setenv("SOFTNIC_NO_DBR_MAX", "1", 1);
	nic_open(&n);
	cq_box(&n, in);
	cq = create(&n, in, &cqn);
	qp_box(&n, in, cqn);
	plain = create(&n, in, NULL);
	cr_assert(plain);
	put(in, 0x28, 1u << 30);
	qp = create(&n, in, NULL);
	cr_assert(qp);
	cr_assert_null(create(&n, in, NULL));
	cr_assert_eq(last_status, 0x5, "the status must be that of a ConnectX-4 without free QPs");
	cr_assert_eq(last_syndrome, 0x65b500);
	cr_assert_eq(mlx5dv_devx_obj_destroy(qp), 0);
	qp = create(&n, in, NULL);
	cr_assert(qp, "a destroyed QP must make room");
	cr_assert_eq(mlx5dv_devx_obj_destroy(qp), 0);
	cr_assert_eq(mlx5dv_devx_obj_destroy(plain), 0);
	cr_assert_eq(mlx5dv_devx_obj_destroy(cq), 0);
	nic_close(&n);
}

Test(softnic_front, forked_child_gets_its_own_address)
{
	struct ibv_context *ctx = open_nic();
	union ibv_gid mine, its;
	int p[2], st;
	pid_t pid;

	cr_assert_eq(pipe(p), 0);
	cr_assert_eq(ibv_query_gid(ctx, 1, 3, &mine), 0);
	pid = fork();
	if (pid == 0) {
		ctx = open_nic();
		_exit(ibv_query_gid(ctx, 1, 3, &its) || write(p[1], &its, 16) != 16);
	}
	cr_assert_eq(waitpid(pid, &st, 0), pid);
	cr_assert_eq(st, 0);
	cr_assert_eq(read(p[0], &its, 16), 16);
	cr_assert_arr_neq(mine.raw, its.raw, 16);
	ibv_close_device(ctx);
}
