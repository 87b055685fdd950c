/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Known defects 14, 29, 31 and 34 of NVIDIA's open-source gpunetio (see
 * test_defects.c), which concern GPUs. The tests use the two GPUs of the stand-in
 * CUDA driver.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

#include "../../core/gpu/gpu.h"
#include "../lib/e2e.h"
#include "../lib/fds.h"
#include "../lib/standin.h"

#define FIRST	       "8a:00.0"
#define SECOND	       "8b:00.0"
#define MEM	       65536u
#define POINTER_DEVICE 9 /* CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */

/* ---- 14: each GPU has its own capabilities ---- */

/* Returns the handler that AUTO chooses for this GPU and NIC. */
static enum doca_gpu_dev_verbs_nic_handler chosen(const char *gpu)
{
	enum doca_gpu_dev_verbs_nic_handler handler;
	struct e2e_nic nic;
	struct e2e_qp q;

	e2e_open_on(&nic, gpu);
	e2e_qp_open(&nic, &q, E2E_AUTO, 16);
	handler = q.hl->nic_handler;
	e2e_qp_close(&q);
	e2e_close(&nic);
	return handler;
}

Test(peer_defects, defect_14_register_mapping_is_probed_for_each_gpu)
{
	standin_cuda();
	setenv("STANDIN_CUDA_NO_REG", "1", 1);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(chosen(SECOND), E2E_PROXY);
		cr_expect_eq(chosen(FIRST), E2E_DB);
	}
	setenv("STANDIN_CUDA_NO_REG", "0", 1);
	cr_expect_eq(chosen(FIRST), E2E_PROXY, "the result of an earlier probe was reused");
	cr_expect_eq(chosen(SECOND), E2E_DB);
	cr_expect_eq(chosen("host"), E2E_DB);
}

/* ---- 29: dmabuf descriptors ---- */

static int umem_errno; /* errno of the registration of a dmabuf; 0: success */
static int seen_fd;    /* descriptor of the last dmabuf to be registered */

/*
 * Replaces mlx5dv_devx_umem_reg_ex of libmlx5. For a dmabuf it fails with
 * umem_errno, or registers other memory by its address instead, because this test
 * does not let the software NIC register dmabufs.
 */
struct mlx5dv_devx_umem *mlx5dv_devx_umem_reg_ex(struct ibv_context *ctx,
						 struct mlx5dv_devx_umem_in *in)
{
	struct mlx5dv_devx_umem *(*next)(struct ibv_context *, struct mlx5dv_devx_umem_in *);
	static char mem[MEM] __attribute__((aligned(4096)));

	*(void **)&next = dlsym(RTLD_NEXT, "mlx5dv_devx_umem_reg_ex");
	if (!(in->comp_mask & MLX5DV_UMEM_MASK_DMABUF))
		return next(ctx, in);
	seen_fd = in->dmabuf_fd;
	errno = umem_errno;
	return umem_errno ? NULL : mlx5dv_devx_umem_reg(ctx, mem, in->size, in->access);
}

static void *gpu_memory(struct e2e_nic *nic)
{
	void *mem, *cpu;

	cr_assert_eq(doca_gpu_mem_alloc(nic->gpu, MEM, MEM, DOCA_GPU_MEM_TYPE_GPU, &mem, &cpu),
		     DOCA_SUCCESS);
	return mem;
}

Test(peer_defects, defect_29_dmabuf_fds_are_closed_and_fd_0_is_valid)
{
	static const int errors[] = { 0, EOPNOTSUPP, ENOMEM, EINVAL };
	int kept = dup(STDIN_FILENO), fd;
	doca_verbs_umem_t *umem;
	unsigned int before;
	struct e2e_nic nic;
	void *mem;

	standin_cuda();
	e2e_open_on(&nic, FIRST);
	mem = gpu_memory(&nic);
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		umem_errno = errors[i];
		before = count_fds();
		if (!doca_verbs_umem_create(nic.dev, nic.gpu, mem, MEM, IBV_ACCESS_LOCAL_WRITE, -1,
					    0, &umem))
			cr_assert_eq(doca_verbs_umem_destroy(umem), DOCA_SUCCESS);
		cr_expect_eq(count_fds(), before, "a descriptor leaked after errno %d", errors[i]);
	}
	umem_errno = 0;
	seen_fd = -1;
	close(STDIN_FILENO);
	cr_assert_eq(doca_gpu_get_dmabuf_fd(nic.gpu, mem, MEM, &fd), DOCA_SUCCESS);
	cr_assert_eq(fd, 0);
	cr_assert_eq(doca_verbs_umem_create(nic.dev, nic.gpu, mem, MEM, IBV_ACCESS_LOCAL_WRITE, fd,
					    0, &umem),
		     DOCA_SUCCESS);
	cr_expect_eq(seen_fd, 0, "descriptor 0 must be used");
	cr_assert_eq(doca_verbs_umem_destroy(umem), DOCA_SUCCESS);
	cr_expect_geq(fcntl(fd, F_GETFD), 0, "the caller's descriptor was closed");
	dup2(kept, STDIN_FILENO);
	close(kept);
	cr_assert_eq(doca_gpu_mem_free(nic.gpu, mem), DOCA_SUCCESS);
	e2e_close(&nic);
}

/* doca_gpu_get_dmabuf_fd() uses CUDA's default mapping type, gdk_gpu_get_dmabuf_fd_pcie() PCIe. */
Test(peer_defects, defect_29_dmabuf_has_the_requested_mapping_type)
{
	/* STANDIN_CUDA_DMABUF: the first driver supports the PCIe type, the second does not */
	static const char *const drivers[] = { "2", "1" };
	doca_error_t err;
	int (*flags)(void), fd;
	struct e2e_nic nic;
	void *mem;

	standin_cuda();
	*(void **)&flags = dlsym(standin_open("libcuda.so.1"), "standin_cuda_dmabuf_flags");
	cr_assert(flags);
	for (int i = 0; i < 2; i++) {
		setenv("STANDIN_CUDA_DMABUF", drivers[i], 1);
		e2e_open_on(&nic, FIRST);
		mem = gpu_memory(&nic);
		cr_assert_eq(doca_gpu_get_dmabuf_fd(nic.gpu, mem, MEM, &fd), DOCA_SUCCESS);
		cr_expect_eq(flags(), 0, "CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE");
		close(fd);
		err = gdk_gpu_get_dmabuf_fd_pcie(nic.gpu, mem, MEM, &fd);
		cr_expect_eq(err, i ? DOCA_ERROR_NOT_SUPPORTED : DOCA_SUCCESS);
		cr_expect_eq(flags(), !i);
		if (!err)
			close(fd);
		cr_assert_eq(doca_gpu_mem_free(nic.gpu, mem), DOCA_SUCCESS);
		e2e_close(&nic);
	}
}

/* ---- 31: failures reported as success ---- */

Test(peer_defects, defect_31_every_driver_failure_is_returned, .timeout = 60)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = { .sq_nwqe = 20 }, before;
	struct doca_gpu_verbs_qp_hl *hl;
	struct e2e_nic nic;
	doca_error_t err;
	long n = 0;

	standin_cuda();
	e2e_open_on(&nic, FIRST);
	attr.gpu_dev = nic.gpu;
	attr.net_dev = nic.dev;
	attr.ibpd = nic.pd;
	attr.nic_handler = E2E_DB;
	before = attr;
	do {
		hl = NULL;
		standin_cuda_fail_at(standin_cuda_calls() + ++n);
		err = doca_gpu_verbs_create_qp_hl(&attr, &hl);
		standin_cuda_fail_at(0);
		cr_assert_eq(memcmp(&attr, &before, sizeof(attr)), 0,
			     "the caller's struct was changed");
		cr_assert_eq(!err, !!hl, "driver call %ld fails: returned %s and object %p", n,
			     doca_error_get_name(err), (void *)hl);
		if (hl)
			cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(hl), DOCA_SUCCESS);
	} while (err || n < 20);
	e2e_close(&nic);
	cr_expect_eq(standin_cuda_live(), 0, "GPU resources leaked");
}

/* ---- 34: calls use the GPU of the object, not the current one ---- */

static int device_of(const void *mem)
{
	int (*attribute)(void *, int, unsigned long long), device = -1;

	*(void **)&attribute = dlsym(standin_open("libcuda.so.1"), "cuPointerGetAttribute");
	cr_assert_eq(attribute(&device, POINTER_DEVICE, (uintptr_t)mem), 0);
	return device;
}

Test(peer_defects, defect_34_each_call_goes_to_its_own_gpu)
{
	int (*push)(void *), (*pop)(void **), (*retain)(void **, int), (*release)(int);
	void *lib, *context, *mem[2], *cpu;
	char in[256], out[256];
	doca_gpu_t *gpu[2];

	setenv("STANDIN_CUDA_POINTERS", "1", 1);
	standin_cuda();
	lib = standin_open("libcuda.so.1");
	*(void **)&push = dlsym(lib, "cuCtxPushCurrent_v2");
	*(void **)&pop = dlsym(lib, "cuCtxPopCurrent_v2");
	*(void **)&retain = dlsym(lib, "cuDevicePrimaryCtxRetain");
	*(void **)&release = dlsym(lib, "cuDevicePrimaryCtxRelease_v2");
	cr_assert_eq(doca_gpu_create(FIRST, &gpu[0]), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_create(SECOND, &gpu[1]), DOCA_SUCCESS);
	/* -1: no current context, as in a new thread */
	for (int current = -1; current < 2; current++) {
		if (current >= 0) {
			cr_assert_eq(retain(&context, current), 0);
			cr_assert_eq(push(context), 0);
		}
		for (int i = 0; i < 2; i++) {
			cr_assert_eq(doca_gpu_mem_alloc(gpu[i], MEM, MEM, DOCA_GPU_MEM_TYPE_GPU,
							&mem[i], &cpu),
				     DOCA_SUCCESS);
			cr_expect_eq(device_of(mem[i]), i, "current GPU is %d", current);
			memset(in, 7 + i, sizeof(in));
			cr_expect_eq(gdk_gpu_write(gpu[i], mem[i], in, sizeof(in)), DOCA_SUCCESS);
			cr_expect_eq(gdk_gpu_read(gpu[i], out, mem[i], sizeof(out)), DOCA_SUCCESS);
			cr_expect_arr_eq(in, out, sizeof(in));
			cr_expect_eq(doca_gpu_mem_free(gpu[i], mem[i]), DOCA_SUCCESS);
		}
		if (current >= 0) {
			cr_assert_eq(pop(&context), 0, "the caller's context was popped");
			cr_assert_eq(release(current), 0);
		}
	}
	cr_assert_eq(doca_gpu_destroy(gpu[1]), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_destroy(gpu[0]), DOCA_SUCCESS);
}
