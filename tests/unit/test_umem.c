/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Registration of memory with the firmware (umems) on the software NIC: host memory
 * and memory of the stand-in CUDA GPU, by address or by dmabuf; descriptors must
 * not leak, and refusals must be explained.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../umem/umem.h"
#include "../lib/capture.h"
#include "../lib/nic.h"
#include "../lib/fds.h"
#include "../lib/standin.h"

#define NO_FD ((int)DOCA_VERBS_DMABUF_INVALID_FD)

static void check(struct nic *nic, doca_gpu_t *gpu, void *addr, size_t size, int fd)
{
	doca_verbs_umem_t *umem = NULL;
	uint32_t id = 0;
	size_t got = 0;
	void *at = NULL;

	cr_assert_eq(doca_verbs_umem_create(nic->dev, gpu, addr, size, IBV_ACCESS_LOCAL_WRITE, fd,
					    0, &umem),
		     DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_umem_get_id(umem, &id), DOCA_SUCCESS);
	cr_expect_neq(id, 0);
	cr_expect_eq(doca_verbs_umem_get_size(umem, &got), DOCA_SUCCESS);
	cr_expect_eq(got, size);
	cr_expect_eq(doca_verbs_umem_get_address(umem, &at), DOCA_SUCCESS);
	cr_expect_eq(at, addr);
	cr_expect_eq(doca_verbs_dev_close(nic->dev), DOCA_ERROR_IN_USE);
	cr_expect_eq(doca_verbs_umem_destroy(umem), DOCA_SUCCESS);
}

Test(umem, host_memory)
{
	struct nic nic = nic_open();
	void *mem = aligned_alloc(4096, 8192);

	check(&nic, NULL, mem, 8192, NO_FD);
	free(mem);
	nic_close(&nic);
}

Test(umem, memory_of_the_host_gpu)
{
	struct nic nic = nic_open();
	doca_gpu_t *gpu;
	void *mem;

	cr_assert_eq(doca_gpu_create("host", &gpu), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_mem_alloc(gpu, 8192, 4096, DOCA_GPU_MEM_TYPE_GPU, &mem, NULL),
		     DOCA_SUCCESS);
	check(&nic, gpu, mem, 8192, NO_FD);
	cr_expect_eq(doca_gpu_mem_free(gpu, mem), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
	nic_close(&nic);
}

/*
 * mlx5dv_devx_umem_reg_ex() below wraps the function of libmlx5. It stores the last
 * request with a dmabuf, and fails if reg_error is set.
 */
static bool take_dmabuf; /* the NIC registers dmabufs */
static int asked_fd;
static struct mlx5dv_devx_umem_in asked;
static int reg_error; /* errno of the failure; 0: do not fail */

struct mlx5dv_devx_umem *mlx5dv_devx_umem_reg_ex(struct ibv_context *ctx,
						 struct mlx5dv_devx_umem_in *in)
{
	struct mlx5dv_devx_umem *(*next)(struct ibv_context *, struct mlx5dv_devx_umem_in *);

	*(void **)&next = dlsym(RTLD_NEXT, "mlx5dv_devx_umem_reg_ex");
	if (reg_error) {
		errno = reg_error;
		return NULL;
	}
	if (in->comp_mask & MLX5DV_UMEM_MASK_DMABUF) {
		asked = *in;
		asked_fd = dup(in->dmabuf_fd);
	}
	return next(ctx, in);
}

static void check_cuda(enum doca_gpu_mem_type type, const char *dmabuf, bool give_fd)
{
	struct nic nic;
	unsigned int fds;
	int fd = NO_FD;
	long calls;
	doca_gpu_t *gpu;
	void *mem, *cpu;

	standin_cuda();
	setenv("STANDIN_CUDA_DMABUF", dmabuf, 1);
	setenv("SOFTNIC_DMABUF", take_dmabuf ? "1" : "0", 1);
	nic = nic_open();
	cr_assert_eq(doca_gpu_create("8a:00.0", &gpu), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_mem_alloc(gpu, 65536, 65536, type, &mem, &cpu), DOCA_SUCCESS);
	if (give_fd)
		cr_assert_eq(doca_gpu_get_dmabuf_fd(gpu, mem, 65536, &fd), DOCA_SUCCESS);
	fds = count_fds();
	asked_fd = -1;
	calls = standin_cuda_calls();
	check(&nic, gpu, mem, 65536, fd);
	if (type == DOCA_GPU_MEM_TYPE_CPU_GPU)
		cr_expect_eq(standin_cuda_calls(), calls,
			     "pinned host memory needs no driver call");
	if (take_dmabuf) {
		struct stat held, kept;

		cr_expect_eq(asked.comp_mask, MLX5DV_UMEM_MASK_DMABUF);
		cr_expect_null(asked.addr, "the offset in the dmabuf must be 0");
		cr_expect_eq(asked.size, 65536);
		cr_expect_eq(fstat(asked_fd, &held), 0);
		cr_expect_geq(held.st_size, 65536);
		cr_expect(!give_fd || (!fstat(fd, &kept) && kept.st_ino == held.st_ino));
	}
	close(asked_fd);
	cr_expect_eq(count_fds(), fds, "a descriptor leaked");
	if (give_fd)
		cr_expect_eq(close(fd), 0, "the caller's descriptor was closed");
	cr_expect_eq(doca_gpu_mem_free(gpu, mem), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(gpu), DOCA_SUCCESS);
	cr_expect_eq(standin_cuda_live(), 0);
	nic_close(&nic);
}

Test(umem, gpu_memory_by_the_librarys_dmabuf)
{
	take_dmabuf = true;
	check_cuda(DOCA_GPU_MEM_TYPE_GPU, "1", false);
}

Test(umem, gpu_memory_by_the_callers_dmabuf)
{
	take_dmabuf = true;
	check_cuda(DOCA_GPU_MEM_TYPE_GPU, "1", true);
}

Test(umem, gpu_memory_by_peermem)
{
	check_cuda(DOCA_GPU_MEM_TYPE_GPU, "0", false);
	cr_expect_eq(asked.size, 0, "no dmabuf can be tried");
}

Test(umem, gpu_memory_by_peermem_when_the_dmabuf_is_refused)
{
	check_cuda(DOCA_GPU_MEM_TYPE_GPU, "1", false);
	cr_expect_eq(asked.size, 65536, "the dmabuf must be tried first");
}

Test(umem, pinned_host_memory)
{
	check_cuda(DOCA_GPU_MEM_TYPE_CPU_GPU, "1", false);
}

Test(umem, invalid_dmabuf_is_refused)
{
	struct nic nic = nic_open();
	doca_verbs_umem_t *umem = NULL;
	static char mem[4096];

	cr_expect_neq(doca_verbs_umem_create(nic.dev, NULL, mem, sizeof(mem),
					     IBV_ACCESS_LOCAL_WRITE, 9999, 0, &umem),
		      DOCA_SUCCESS);
	cr_expect_null(umem);
	nic_close(&nic);
}

Test(umem, umem_in_use_is_not_destroyed)
{
	struct nic nic = nic_open();
	doca_verbs_umem_t *umem;
	void *mem = aligned_alloc(4096, 4096);

	cr_assert_eq(doca_verbs_umem_create(nic.dev, NULL, mem, 4096, IBV_ACCESS_LOCAL_WRITE, NO_FD,
					    0, &umem),
		     DOCA_SUCCESS);
	atomic_fetch_add(&umem->users, 1);
	cr_expect_eq(doca_verbs_umem_destroy(umem), DOCA_ERROR_IN_USE);
	atomic_fetch_sub(&umem->users, 1);
	cr_expect_eq(doca_verbs_umem_destroy(umem), DOCA_SUCCESS);
	free(mem);
	nic_close(&nic);
}

Test(umem, bad_arguments_are_refused)
{
	struct nic nic = nic_open();
	doca_verbs_umem_t *umem;
	char mem[64];

	cr_expect_eq(doca_verbs_umem_create(NULL, NULL, mem, 64, 0, NO_FD, 0, &umem),
		     DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_verbs_umem_create(nic.dev, NULL, NULL, 64, 0, NO_FD, 0, &umem),
		     DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_verbs_umem_create(nic.dev, NULL, mem, 0, 0, NO_FD, 0, &umem),
		     DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_verbs_umem_create(nic.dev, NULL, mem, 64, 0, -2, 0, &umem),
		     DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(doca_verbs_umem_destroy(NULL), DOCA_ERROR_INVALID_VALUE);
	nic_close(&nic);
}

static void expect_refused(int error, uint32_t access, doca_error_t want, bool hint)
{
	static uint8_t mem[4096] __attribute__((aligned(4096)));
	struct nic nic = nic_open();
	doca_verbs_umem_t *umem;
	const char *log;

	reg_error = error;
	capture_begin();
	cr_expect_eq(doca_verbs_umem_create(nic.dev, NULL, mem, 4096, access, NO_FD, 0, &umem),
		     want, "errno %d", error);
	log = capture_end();
	cr_expect_eq(strstr(log, "a umem supports LOCAL_WRITE") != NULL, hint, "log: %s", log);
	nic_close(&nic);
}

Test(umem, driver_without_page_sizes_is_not_supported)
{
	expect_refused(EPROTONOSUPPORT, IBV_ACCESS_LOCAL_WRITE, DOCA_ERROR_NOT_SUPPORTED, false);
}

Test(umem, wrong_access_flags_are_explained)
{
	expect_refused(EINVAL,
		       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE,
		       DOCA_ERROR_DRIVER, false);
	expect_refused(EINVAL, 0, DOCA_ERROR_DRIVER, false);
	expect_refused(EINVAL, IBV_ACCESS_REMOTE_WRITE, DOCA_ERROR_DRIVER, true);
	expect_refused(EINVAL, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC, DOCA_ERROR_DRIVER,
		       true);
}
