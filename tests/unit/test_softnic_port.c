/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The port of the software NIC and where a program finds it: the GID table in
 * sysfs and through libibverbs, and the paths of the device.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static struct ibv_context *open_nic(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	cr_assert(list && list[0]);
	ctx = ibv_open_device(list[0]);
	cr_assert(ctx);
	ibv_free_device_list(list);
	return ctx;
}

Test(softnic_port, gid_is_the_address_in_sysfs_and_ioctl)
{
	struct ibv_context *ctx = open_nic();
	char path[128], text[64];
	struct ibv_gid_entry e;
	struct in6_addr gid;
	union ibv_gid own;
	FILE *f;
	int i;

	cr_assert_eq(ibv_query_gid(ctx, 1, 3, &own), 0);
	for (i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "/sys/class/infiniband/mlx5_0/ports/1/gids/%d", i);
		f = fopen(path, "r");
		cr_assert(f && fgets(text, sizeof(text), f));
		fclose(f);
		text[strcspn(text, "\n")] = '\0';
		cr_assert_eq(inet_pton(AF_INET6, text, &gid), 1);
		cr_assert_eq(ibv_query_gid_ex(ctx, 1, (uint32_t)i, &e, 0), 0);
		cr_assert_arr_eq(gid.s6_addr, e.gid.raw, 16);
		cr_assert_eq(IN6_IS_ADDR_LINKLOCAL(&gid), i < 2);
		cr_assert_eq(e.gid.raw[12], i < 2 ? 0xfe : 127);
		cr_assert_arr_eq(e.gid.raw + 13, own.raw + 13, 3);
		cr_assert_eq(e.gid_type,
			     (uint32_t)(i % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1));
		cr_assert_eq(e.ndev_ifindex, if_nametoindex("lo"));
	}
	ibv_close_device(ctx);
}

Test(softnic_port, empty_gid_slots_answer_as_the_kernels)
{
	static const char types[] = "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/4";
	struct ibv_context *ctx = open_nic();
	struct ibv_gid_entry e[8];
	static const union ibv_gid zero;
	struct ibv_port_attr port;
	union ibv_gid gid;
	char c;
	int fd;

	cr_assert_eq(ibv_query_port(ctx, 1, &port), 0);
	cr_assert_eq(port.gid_tbl_len, 8);
	cr_assert_eq(ibv_query_gid_ex(ctx, 1, 4, e, 0), ENODATA);
	cr_assert_eq(ibv_query_gid_ex(ctx, 1, 8, e, 0), EINVAL);
	cr_assert_eq(ibv_query_gid(ctx, 1, 7, &gid), 0);
	cr_assert_arr_eq(gid.raw, zero.raw, 16);
	cr_assert_eq(ibv_query_gid_table(ctx, e, 8, 0), 4);
	cr_assert_eq(e[3].gid_index, 3);
	cr_assert_eq(ibv_query_gid_table(ctx, e, 3, 0), -EINVAL);
	fd = open(types, O_RDONLY);
	cr_assert_geq(fd, 0);
	cr_assert_eq(read(fd, &c, 1), -1);
	cr_assert_eq(errno, EINVAL);
	close(fd);
	ibv_close_device(ctx);
}

Test(softnic_port, paths_resolve_as_in_sysfs)
{
	char path[PATH_MAX];
	struct stat st;

	cr_assert(realpath("/sys/class/infiniband/mlx5_0/device", path));
	cr_assert_str_eq(path, "/sys/devices/pci5043:00/5043:00:01.0");
	cr_assert_eq(access("/sys/devices/pci5043:00/5043:00:01.0/numa_node", R_OK), 0);
	cr_assert_eq(access("/sys/class/infiniband/mlx5_0/device/net/lo/address", R_OK), 0);
	cr_assert_eq(stat("/dev/infiniband/uverbs0", &st), 0);
	cr_assert(S_ISCHR(st.st_mode));
	cr_assert_eq(major(st.st_rdev), 231);
	cr_assert_lt(socket(AF_NETLINK, SOCK_RAW, 20), 0);
	cr_assert_eq(errno, EPROTONOSUPPORT);
}
