/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* softnic-run: --dmabuf */
/*
 * What the software NIC adds for programs that use CUDA, such as NCCL: a file in /sys
 * that shows the peer memory module, registration of dmabufs that cannot be mapped,
 * and doorbell pages that the CUDA driver accepts as I/O memory. For the last two,
 * softnic-run wraps functions of the driver.
 */
#include "../lib/standin.h"
#include "../lib/vb.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <sys/mman.h>

#define PEERMEM	  "/sys/module/nvidia_peermem/version"
#define SIZE	  (1ul << 20)
#define ACCESS	  (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define IOMEMORY  4u
#define DEVICEMAP 2u
#define DMABUF	  1
#define PCIE	  1 /* flag of the export for the PCIe mapping type */

typedef int (*register_fn)(void *ptr, size_t size, unsigned flags);
typedef int (*get_fn)(const char *name, void **fn, int version, uint64_t flags);
typedef int (*get_v2_fn)(const char *name, void **fn, int version, uint64_t flags, int *status);
typedef int (*export_fn)(void *handle, uint64_t va, size_t size, int type, uint64_t flags);

/* Builds with sanitizers do not wrap the driver's functions, see cuda_calls.c. */
#ifdef GDK_SAN
#define NEEDS_WRAPPERS() cr_skip_test("not under a sanitizer")
#else
#define NEEDS_WRAPPERS() (void)0
#endif

static void *lib;

static void *driver(const char *name)
{
	void *fn = dlsym(lib, name);

	cr_assert(fn, "%s", name);
	return fn;
}

static void cuda_start(void)
{
	int (*retain)(void **, int), (*set)(void *);
	void *ctx;

	setenv("STANDIN_CUDA_POINTERS", "1", 1);
	setenv("STANDIN_CUDA_DMABUF", "3", 1);
	standin_cuda();
	lib = standin_open("libcuda.so.1");
	*(void **)&retain = driver("cuDevicePrimaryCtxRetain");
	*(void **)&set = driver("cuCtxSetCurrent");
	cr_assert(!retain(&ctx, 0) && !set(ctx));
}

static uint8_t *gpu_memory(void)
{
	int (*alloc)(unsigned long long *, size_t);
	unsigned long long mem;

	*(void **)&alloc = driver("cuMemAlloc_v2");
	cr_assert_eq(alloc(&mem, SIZE), 0);
	return (uint8_t *)(uintptr_t)mem;
}

static int dmabuf_of(const uint8_t *mem, uint64_t flags)
{
	export_fn export;
	int fd = -1;

	*(void **)&export = driver("cuMemGetHandleForAddressRange");
	cr_assert_eq(export(&fd, (uintptr_t)mem, SIZE, DMABUF, flags), 0);
	cr_assert_eq(mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0), MAP_FAILED);
	return fd;
}

Test(cuda_calls, peer_memory_module_appears_with_the_driver)
{
	bool gpu = !access("/dev/nvidiactl", F_OK);

	if (!gpu)
		cr_assert_neq(access(PEERMEM, F_OK), 0);
	cuda_start();
	cr_assert_eq(access(PEERMEM, F_OK), 0);
}

/* The NIC writes a pattern to the region, at the region's iova; the CPU checks it. */
static void use_region(struct vb *v, struct ibv_mr *mr, uint64_t iova, const uint8_t *mem)
{
	struct ibv_cq *cq = ibv_create_cq(v->ctx, 16, NULL, NULL, 0);
	struct ibv_qp *qp = vb_qp(v, IBV_QPT_RC, cq, NULL);
	struct ibv_sge sge = vb_sge(v, 0, 20000);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { .remote_addr = iova + 8192, .rkey = mr->rkey } },
			   *bad;

	vb_connect(v, qp, qp);
	memset(v->mem, 0x5c, 20000);
	cr_assert_eq(ibv_post_send(qp, &wr, &bad), 0);
	cr_assert_eq(vb_wc(cq).status, IBV_WC_SUCCESS);
	cr_assert_eq(mem[8191], 0xa5);
	cr_assert_eq(mem[8192], 0x5c);
	cr_assert_eq(mem[8192 + 19999], 0x5c);
	cr_assert_eq(mem[8192 + 20000], 0xa5);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_cq(cq), 0);
}

Test(cuda_calls, a_dmabuf_that_cannot_be_mapped_is_registered)
{
	struct vb v = vb_open(65536);
	uint64_t iovas[2];
	uint8_t *mem[2];
	struct ibv_mr *mr;
	int fd;

	NEEDS_WRAPPERS();
	cuda_start();
	for (int i = 0; i < 2; i++) {
		mem[i] = gpu_memory();
		/* NCCL's network transport uses the address as iova, NCCL's GDAKI uses 0 */
		iovas[i] = i ? 0 : (uintptr_t)mem[i];
		fd = dmabuf_of(mem[i], 0);
		mr = ibv_reg_dmabuf_mr(v.pd, 0, SIZE, iovas[i], fd, ACCESS);
		cr_assert(mr, "not registered at iova %#lx", (unsigned long)iovas[i]);
		cr_assert_eq(close(fd), 0);
		use_region(&v, mr, iovas[i], mem[i]);
		cr_assert_eq(ibv_dereg_mr(mr), 0);
	}
	vb_close(&v);
}

Test(cuda_calls, dmabuf_region_cannot_exceed_or_leave_its_dmabuf)
{
	struct vb v = vb_open(65536);
	struct ibv_mr *mr;
	uint8_t *mem;
	int fd;

	NEEDS_WRAPPERS();
	cuda_start();
	mem = gpu_memory();
	fd = dmabuf_of(mem, 0);
	cr_expect_not(ibv_reg_dmabuf_mr(v.pd, 4096, SIZE, (uintptr_t)mem + 4096, fd, ACCESS));
	cr_expect_eq(errno, EINVAL);
	cr_expect_not(ibv_reg_dmabuf_mr(v.pd, 0, SIZE + 4096, (uintptr_t)mem, fd, ACCESS));
	cr_expect_eq(errno, EINVAL);
	mr = ibv_reg_dmabuf_mr(v.pd, 4096, SIZE - 4096, (uintptr_t)mem + 4096, fd, ACCESS);
	cr_assert(mr);
	/* libibverbs refuses to reregister a dmabuf MR; clear the MR's type so that the NIC must */
	*(int *)(mr + 1) = 0;
	cr_expect_neq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, v.mem, 4096, 0), 0);
	cr_expect_eq(errno, EOPNOTSUPP, "errno %d", errno);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	cr_assert_eq(close(fd), 0);
	vb_close(&v);
}

/*
 * Registers a dmabuf of the PCIe mapping type. The NIC knows the type only from the
 * flags of the export.
 */
static void pcie_typed(const char *nic, bool is_registered)
{
	struct ibv_mr *mr;
	uint8_t *mem;
	struct vb v;
	int fd;

	NEEDS_WRAPPERS();
	setenv("SOFTNIC_DMABUF_PCIE", nic, 1);
	v = vb_open(65536);
	cuda_start();
	mem = gpu_memory();
	fd = dmabuf_of(mem, PCIE);
	mr = ibv_reg_dmabuf_mr(v.pd, 0, SIZE, (uintptr_t)mem, fd, ACCESS);
	cr_assert_eq(mr != NULL, is_registered);
	cr_assert(mr || errno == 524, "errno %d", errno);
	if (!strcmp(nic, "attach"))
		use_region(&v, mr, (uintptr_t)mem, mem);
	cr_assert(!mr || !ibv_dereg_mr(mr));
	cr_assert_eq(close(fd), 0);
	vb_close(&v);
}

Test(cuda_calls, pcie_type_is_refused)
{
	pcie_typed("refuse", false);
}

Test(cuda_calls, pcie_type_is_registered_and_faults)
{
	pcie_typed("fault", true);
}

Test(cuda_calls, pcie_type_is_attached)
{
	pcie_typed("attach", true);
}

/*
 * The descriptor (a pipe) was not exported through the wrapper, so the NIC knows only
 * from the address that the memory belongs to a GPU.
 */
Test(cuda_calls, unrecorded_dmabuf_is_found_by_gpu_address)
{
	struct vb v = vb_open(65536);
	struct ibv_mr *mr;
	int ends[2];
	uint8_t *mem;

	cuda_start();
	mem = gpu_memory();
	cr_assert_eq(pipe(ends), 0);
	cr_assert_not(ibv_reg_dmabuf_mr(v.pd, 0, SIZE, 0, ends[0], ACCESS));
	cr_assert_not(ibv_reg_dmabuf_mr(v.pd, 0, SIZE, (uintptr_t)mem, 9999, ACCESS));
	mr = ibv_reg_dmabuf_mr(v.pd, 0, SIZE, (uintptr_t)mem, ends[0], ACCESS);
	cr_assert(mr);
	use_region(&v, mr, (uintptr_t)mem, mem);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	vb_close(&v);
}

static void ring_memory(register_fn reg, void *page, const char *how)
{
	int (*unregister)(void *);
	void *mem = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*(void **)&unregister = driver("cuMemHostUnregister");
	cr_assert_neq(mem, MAP_FAILED);
	cr_assert_eq(reg(page, 4096, IOMEMORY | DEVICEMAP), 0,
		     "doorbell page refused, function found by %s", how);
	cr_assert_eq(unregister(page), 0);
	cr_assert_neq(reg(mem, 4096, IOMEMORY | DEVICEMAP), 0,
		      "other memory accepted, function found by %s", how);
	cr_assert_eq(reg(mem, 4096, DEVICEMAP), 0);
	cr_assert_eq(unregister(mem), 0);
	munmap(mem, 4096);
}

Test(cuda_calls, gpu_can_map_the_register_page)
{
	struct vb v = vb_open(4096);
	struct mlx5dv_devx_uar *uar = mlx5dv_devx_alloc_uar(v.ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
	void *page, *fn = NULL;
	get_v2_fn get_v2;
	register_fn reg;
	int status = 9;
	get_fn get;

	NEEDS_WRAPPERS();
	cuda_start();
	cr_assert(uar);
	page = (void *)((uintptr_t)uar->reg_addr & ~4095ul);
	*(void **)&reg = driver("cuMemHostRegister_v2");
	ring_memory(reg, page, "dlsym");
	*(void **)&get = driver("cuGetProcAddress");
	cr_assert_eq(get("cuMemHostRegister", &fn, 6050, 0), 0);
	*(void **)&reg = fn;
	ring_memory(reg, page, "cuGetProcAddress");
	cr_assert_eq(get("cuGetProcAddress", &fn, 12000, 0), 0);
	*(void **)&get_v2 = fn;
	cr_assert_eq(get_v2("cuMemHostRegister", &fn, 6050, 0, &status), 0);
	cr_assert_eq(status, 0);
	*(void **)&reg = fn;
	ring_memory(reg, page, "cuGetProcAddress_v2");
	cr_assert_neq(get("cuNoSuchFunction", &fn, 12000, 0), 0);
	mlx5dv_devx_free_uar(uar);
	vb_close(&v);
}

/*
 * The software NIC's wrapper of dlsym() must keep the meaning of RTLD_NEXT: search in the
 * objects after the calling one. The caller here is the program. The first object after it
 * that defines open() is the software NIC.
 */
Test(cuda_calls, dlsym_next_is_relative_to_the_caller)
{
	void *next = dlsym(RTLD_NEXT, "open"), *first = dlsym(RTLD_DEFAULT, "open");
	Dl_info info;

	NEEDS_WRAPPERS();
	cr_assert(dladdr(next, &info));
	cr_assert_eq(next, first);
	cr_assert(strstr(info.dli_fname, "libsoftnic"), "%s", info.dli_fname);
	cr_assert_not(dlsym(RTLD_DEFAULT, "no_such_function_anywhere"));
	cr_assert(dlerror());
}
