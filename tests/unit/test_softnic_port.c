/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The software NIC's port as programs find it: the GID table in sysfs and through
 * libibverbs, and the device's paths and descriptors through functions of libc.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
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

Test(softnic_port, empty_gid_entries_behave_as_in_the_kernel)
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

#define DEV "/sys/class/infiniband/mlx5_0"

static int is_mlx5(const struct dirent *e)
{
	return !strncmp(e->d_name, "mlx5", 4);
}

Test(softnic_port, directories_are_listed)
{
	struct dirent **list;
	struct dirent *e;
	glob_t g;
	DIR *d;
	int fd;

	cr_assert_eq(scandir("/sys/class/infiniband", &list, is_mlx5, alphasort), 1);
	cr_assert_str_eq(list[0]->d_name, "mlx5_0");
	free(list[0]);
	free(list);
	cr_assert_eq(glob("/sys/class/infiniband/*/fw_ver", 0, NULL, &g), 0);
	cr_assert_eq(g.gl_pathc, 1);
	cr_assert_str_eq(g.gl_pathv[0], DEV "/fw_ver");
	globfree(&g);
	fd = open(DEV "/ports/1", O_RDONLY | O_DIRECTORY);
	cr_assert_geq(fd, 0);
	cr_assert_eq(faccessat(fd, "gids/3", R_OK, 0), 0);
	d = fdopendir(fd);
	cr_assert(d);
	for (e = readdir(d); e && strcmp(e->d_name, "hw_counters"); e = readdir(d))
		;
	cr_assert(e);
	closedir(d);
}

Test(softnic_port, links_resolve_into_the_pci_tree)
{
	char path[PATH_MAX], *got;
	struct statx sx;
	ssize_t n;

	n = readlinkat(AT_FDCWD, DEV, path, sizeof(path) - 1);
	cr_assert_gt(n, 0);
	path[n] = '\0';
	cr_assert_str_eq(path, "../../devices/pci5043:00/5043:00:01.0/infiniband/mlx5_0");
	got = canonicalize_file_name(DEV "/device");
	cr_assert_str_eq(got, "/sys/devices/pci5043:00/5043:00:01.0");
	free(got);
	got = realpath("/sys/bus/pci/devices/5043:00:01.0/infiniband/mlx5_0", NULL);
	cr_assert_str_eq(got, "/sys/devices/pci5043:00/5043:00:01.0/infiniband/mlx5_0");
	free(got);
	cr_assert_eq(statx(AT_FDCWD, DEV, AT_SYMLINK_NOFOLLOW, STATX_MODE, &sx), 0);
	cr_assert(S_ISLNK(sx.stx_mode));
	cr_assert_eq(statx(AT_FDCWD, "/dev/infiniband/uverbs0", 0, STATX_MODE, &sx), 0);
	cr_assert(S_ISCHR(sx.stx_mode));
	cr_assert_eq(eaccess(DEV "/fw_ver", R_OK), 0);
	cr_assert_eq(eaccess(DEV "/none", R_OK), -1);
	cr_assert_eq(getxattr(DEV, "user.none", path, 1), -1);
	cr_assert_neq(errno, ENOENT);
}

Test(softnic_port, working_directory_in_sysfs)
{
	char path[PATH_MAX];
	FILE *f;

	cr_assert_eq(chdir(DEV), 0);
	cr_assert(getcwd(path, sizeof(path)));
	cr_assert_str_eq(path, "/sys/devices/pci5043:00/5043:00:01.0/infiniband/mlx5_0");
	f = fopen("node_type", "r");
	cr_assert(f && fgets(path, sizeof(path), f));
	cr_assert_str_eq(path, "1: CA\n");
	f = freopen(DEV "/ports/1/link_layer", "r", f);
	cr_assert(f && fgets(path, sizeof(path), f));
	cr_assert_str_eq(path, "Ethernet\n");
	fclose(f);
}

/*
 * Every duplicate of the descriptor refers to the device, which stays open until the
 * last descriptor is closed.
 */
Test(softnic_port, duplicated_descriptors_are_the_device)
{
	int fd[5] = { open("/dev/infiniband/uverbs0", O_RDWR) };
	struct stat st;
	int i;

	cr_assert_geq(fd[0], 0);
	fd[1] = dup(fd[0]);
	fd[2] = fcntl(fd[0], F_DUPFD_CLOEXEC, 100);
	fd[3] = dup2(fd[1], 200);
	fd[4] = dup3(fd[1], 201, O_CLOEXEC);
	cr_assert_geq(fd[2], 100);
	for (i = 0; i < 5; i++) {
		cr_assert_eq(fstat(fd[i], &st), 0);
		cr_assert(S_ISCHR(st.st_mode), "descriptor %d is not the device", i);
		cr_assert_eq(close(fd[i]), 0);
	}
	cr_assert_eq(fstat(fd[4], &st), -1);
}
