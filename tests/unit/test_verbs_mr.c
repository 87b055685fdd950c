/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Memory regions: the operations that each right allows, refused rights and memory,
 * zero-based addresses, and regions of dmabufs (represented by memfds), which are
 * refused unless the NIC is configured to register them.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../lib/access.h"

/* One operation on memory registered with `access`, on new QPs: a refusal breaks a connection. */
static enum ibv_wc_status with(int access, enum ibv_wr_opcode op)
{
	enum ibv_wc_status status;
	struct ibv_mr *mr;
	struct rig r;

	rig_open(&r, 4);
	mr = ibv_reg_mr(r.v.pd, r.v.mem + PAGE, 64, access);
	cr_assert(mr);
	status = access_to(&r, op, (uintptr_t)mr->addr, mr->rkey);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	rig_close(&r);
	return status;
}

Test(verbs_mr, each_right_allows_its_operation)
{
	const int extra = IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_HUGETLB;

	for (size_t i = 0; i < OPS; i++) {
		cr_assert_eq(with(IBV_ACCESS_LOCAL_WRITE | ops[i].right, ops[i].op), IBV_WC_SUCCESS,
			     "operation %zu", i);
		cr_assert_eq(with(IBV_ACCESS_LOCAL_WRITE | ops[i].right | extra, ops[i].op),
			     IBV_WC_SUCCESS, "operation %zu with extra flags", i);
		cr_assert_eq(with(ALL & ~ops[i].right, ops[i].op), IBV_WC_REM_ACCESS_ERR,
			     "operation %zu without its right", i);
	}
}

Test(verbs_mr, invalid_rights_are_refused)
{
	static const struct {
		int access, error;
	} bad[] = {
		{ IBV_ACCESS_REMOTE_WRITE, EINVAL },
		{ IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_READ, EINVAL },
		{ IBV_ACCESS_ON_DEMAND, EOPNOTSUPP },
		{ IBV_ACCESS_LOCAL_WRITE | 1 << 15, EINVAL },
	};
	struct vb v = vb_open(PAGE);
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_assert_null(ibv_reg_mr(v.pd, v.mem, 64, bad[i].access));
		cr_assert_eq(errno, bad[i].error, "access %#x: %s", bad[i].access, strerror(errno));
	}
	vb_close(&v);
}

Test(verbs_mr, memory_protection_must_allow_the_rights)
{
	uint8_t *mem = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	struct mlx5dv_devx_umem *umem;
	struct vb v = vb_open(PAGE);
	struct ibv_mr *mr;

	cr_assert_neq(mem, MAP_FAILED);
	mem[PAGE] = 1;
	cr_assert_eq(mprotect(mem + PAGE, PAGE, PROT_READ), 0);
	cr_assert_null(ibv_reg_mr(v.pd, mem, 3 * PAGE, IBV_ACCESS_LOCAL_WRITE));
	cr_assert_eq(errno, EFAULT);
	cr_assert_null(mlx5dv_devx_umem_reg(v.ctx, mem, 3 * PAGE, IBV_ACCESS_LOCAL_WRITE));
	cr_assert_eq(errno, EFAULT);
	mr = ibv_reg_mr(v.pd, mem, 3 * PAGE, IBV_ACCESS_REMOTE_READ);
	cr_assert(mr);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	mr = ibv_reg_mr(v.pd, mem + 2 * PAGE, PAGE, ALL);
	cr_assert(mr, "the next page must be accepted");
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	umem = mlx5dv_devx_umem_reg(v.ctx, mem, PAGE, IBV_ACCESS_LOCAL_WRITE);
	cr_assert(umem, "the previous page must be accepted");
	cr_assert_eq(mlx5dv_devx_umem_dereg(umem), 0);
	munmap(mem, 3 * PAGE);
	vb_close(&v);
}

Test(verbs_mr, zero_based_region)
{
	struct ibv_mr *mr;
	struct rig r;

	rig_open(&r, 4);
	mr = ibv_reg_mr(r.v.pd, r.v.mem + PAGE, 2 * PAGE, ALL | IBV_ACCESS_ZERO_BASED);
	cr_assert(mr);
	r.v.mem[0] = 0x5a;
	cr_assert_eq(access_to(&r, IBV_WR_RDMA_WRITE, 100, mr->rkey), IBV_WC_SUCCESS);
	cr_assert_eq(r.v.mem[PAGE + 100], 0x5a);
	cr_assert_eq(access_to(&r, IBV_WR_RDMA_WRITE, 2 * PAGE - 7, mr->rkey),
		     IBV_WC_REM_ACCESS_ERR);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	rig_close(&r);
}

/* ---- dmabufs ---- */

static int new_file(uint8_t **mem)
{
	int fd = memfd_create("buffer", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, 4 * PAGE), 0);
	*mem = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(*mem, MAP_FAILED);
	return fd;
}

static struct mlx5dv_devx_umem *umem_of(struct vb *v, int fd, uint64_t off, size_t len)
{
	struct mlx5dv_devx_umem_in in = {
		.addr = (void *)(uintptr_t)off,
		.size = len,
		.access = IBV_ACCESS_LOCAL_WRITE,
		.pgsz_bitmap = PAGE,
		.comp_mask = MLX5DV_UMEM_MASK_DMABUF,
		.dmabuf_fd = fd,
	};

	return mlx5dv_devx_umem_reg_ex(v->ctx, &in);
}

Test(verbs_mr, dmabuf_needs_support)
{
	struct vb v = vb_open(PAGE);
	uint8_t *mem;
	int fd = new_file(&mem);

	cr_assert_null(ibv_reg_dmabuf_mr(v.pd, 0, PAGE, 0, fd, ALL));
	cr_assert_eq(errno, EOPNOTSUPP);
	cr_assert_null(umem_of(&v, fd, 0, PAGE));
	cr_assert_eq(errno, EOPNOTSUPP);
	vb_close(&v);
}

Test(verbs_mr, dmabuf_region_is_accessible)
{
	struct mlx5dv_devx_umem *umem;
	struct ibv_mr *mr;
	uint8_t *mem;
	struct rig r;
	int fd;

	setenv("SOFTNIC_DMABUF", "1", 1);
	fd = new_file(&mem);
	rig_open(&r, 4);
	/*
	 * The region has PAGE bytes of the file from offset PAGE + 512 on, at an iova that
	 * the test chooses.
	 */
	mr = ibv_reg_dmabuf_mr(r.v.pd, PAGE + 512, PAGE, 0x7000000200, fd, ALL);
	cr_assert(mr, "%s", strerror(errno));
	r.v.mem[0] = 0x77;
	cr_assert_eq(access_to(&r, IBV_WR_RDMA_WRITE, 0x7000000200 + 10, mr->rkey), IBV_WC_SUCCESS);
	cr_assert_eq(mem[PAGE + 512 + 10], 0x77);
	cr_assert_eq(access_to(&r, IBV_WR_RDMA_WRITE, 0x7000000200 + PAGE - 7, mr->rkey),
		     IBV_WC_REM_ACCESS_ERR);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	umem = umem_of(&r.v, fd, PAGE, PAGE);
	cr_assert(umem);
	cr_assert_eq(mlx5dv_devx_umem_dereg(umem), 0);
	rig_close(&r);
	munmap(mem, 4 * PAGE);
	close(fd);
}

Test(verbs_mr, invalid_dmabufs_are_refused)
{
	char path[64];
	uint8_t *mem;
	struct vb v;
	int fd, other;

	setenv("SOFTNIC_DMABUF", "1", 1);
	fd = new_file(&mem);
	v = vb_open(PAGE);
#define REFUSED(why, off, len, iova, fd, access) \
	cr_assert_null(ibv_reg_dmabuf_mr(v.pd, off, len, iova, fd, access)); \
	cr_assert_eq(errno, why, "%s", strerror(errno))
	REFUSED(EINVAL, 0, 5 * PAGE, 0, fd, ALL);
	REFUSED(EINVAL, 0, 0, 0, fd, ALL);
	REFUSED(EINVAL, 8, PAGE, 0, fd, ALL);
	REFUSED(EINVAL, 0, PAGE, 0, fd, IBV_ACCESS_REMOTE_WRITE);
	REFUSED(EINVAL, 0, PAGE, 0, fd, ALL | IBV_ACCESS_ZERO_BASED);
	REFUSED(EBADF, 0, PAGE, 0, 12345, ALL);
	other = eventfd(0, EFD_CLOEXEC);
	REFUSED(ENODEV, 0, PAGE, 0, other, ALL);
	close(other);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	other = open(path, O_RDONLY);
	REFUSED(EACCES, 0, PAGE, 0, other, ALL);
	cr_assert_null(umem_of(&v, fd, 4 * PAGE, PAGE));
#undef REFUSED
	vb_close(&v);
}
