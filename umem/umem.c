/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Registers memory for queues with the NIC: host memory by its address; GPU memory through a
 * dmabuf of the caller, or through a dmabuf that this file exports, or through peer memory.
 * Memory is allocated elsewhere (gpu.c, slab.c, cq.c). For a dmabuf, libmlx5 takes the
 * offset in place of the address.
 *
 * A ring must begin on a multiple of 1/64 of the page size of its umem. So umems are
 * registered with pages of at most 4096 bytes where the kernel supports this, and a ring may
 * begin on any multiple of 64 bytes, as in UCX (pull request 11103). This costs 8 bytes of
 * translation table in the NIC for each 4096 bytes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/gpu/gpu_priv.h"
#include "core/log/log.h"
#include "core/log/trace.h"
#include "core/sdk/sdk.h"
#include "umem/umem.h"

#define NO_FD		(-1)
#define PAGE_CAP	((size_t)4096)
#define RING_UNITS	64u /* a ring begins on a multiple of 1/64 page */
#define RING_ALIGN	((size_t)64)
#define KERNEL_ENOTSUPP 524 /* returned by dmabuf exporters; not in errno.h */

static const char *dev_name(const struct doca_dev *dev)
{
	return ibv_get_device_name(dev->ctx->device);
}

/* Writes text for the errno value of a failed registration to buf, with the usual cause if it is
 * known. Returns buf. */
static const char *cause(int sys_err, uint32_t access, char *buf, size_t len)
{
	const uint32_t writes = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	bool bad_access = access & ~(writes | IBV_ACCESS_REMOTE_READ) ||
			  (access & writes) == IBV_ACCESS_REMOTE_WRITE;
	const char *hint = "";

	if (sys_err == KERNEL_ENOTSUPP)
		hint = ": the exporter does not allow this NIC to attach";
	else if (sys_err == EINVAL && bad_access)
		hint = " (a umem supports LOCAL_WRITE, REMOTE_READ, and REMOTE_WRITE only "
		       "together with LOCAL_WRITE)";
	else if (sys_err == EPROTONOSUPPORT)
		hint = " (page sizes of umems need Linux 5.11)";
	snprintf(buf, len, "%s%s",
		 sys_err == KERNEL_ENOTSUPP ? "ENOTSUPP (524)" : strerror(sys_err), hint);
	return buf;
}

/* ---- registration ---- */

static struct mlx5dv_devx_umem *register_in(struct ibv_context *ctx, struct mlx5dv_devx_umem_in *in,
					    size_t page)
{
	int fd = in->comp_mask & MLX5DV_UMEM_MASK_DMABUF ? in->dmabuf_fd : NO_FD, sys_err;
	struct mlx5dv_devx_umem *devx;

	in->pgsz_bitmap = page;
	devx = mlx5dv_devx_umem_reg_ex(ctx, in);
	sys_err = errno;
	gdk_trace_umem(ctx, in, fd, devx, sys_err);
	errno = sys_err;
	return devx;
}

/* Linux 5.10 to 6.6 does not support umem pages that are smaller than the CPU's pages
 * (rdma_for_each_block). On such a kernel the second attempt uses the page size of the CPU. */
struct mlx5dv_devx_umem *gdk_umem_register(struct ibv_context *ctx, struct mlx5dv_devx_umem_in *in,
					   size_t *page)
{
	size_t own = (size_t)sysconf(_SC_PAGESIZE);
	struct mlx5dv_devx_umem *devx;

	*page = PAGE_CAP;
	devx = register_in(ctx, in, PAGE_CAP);
	if (devx || errno != EINVAL || own <= PAGE_CAP)
		return devx;
	*page = own;
	return register_in(ctx, in, own);
}

static bool reg_address(struct doca_verbs_umem *umem, void *addr, uint32_t access)
{
	struct mlx5dv_devx_umem_in in = { .addr = addr, .size = umem->size, .access = access };

	umem->start = (uintptr_t)addr;
	umem->devx = gdk_umem_register(umem->dev->ctx, &in, &umem->page);
	return umem->devx;
}

static bool reg_dmabuf(struct doca_verbs_umem *umem, uint32_t access, int fd, size_t offset)
{
	struct mlx5dv_devx_umem_in in = {
		.addr = (void *)offset,
		.size = umem->size,
		.access = access,
		.comp_mask = MLX5DV_UMEM_MASK_DMABUF,
		.dmabuf_fd = fd,
	};

	umem->start = offset;
	umem->devx = gdk_umem_register(umem->dev->ctx, &in, &umem->page);
	return umem->devx;
}

static doca_error_t from_errno(int sys_err)
{
	switch (sys_err) {
	case ENOMEM:
		return DOCA_ERROR_NO_MEMORY;
	case EOPNOTSUPP:
	case EPROTONOSUPPORT:
	case ENOSYS:
	case KERNEL_ENOTSUPP:
		return DOCA_ERROR_NOT_SUPPORTED;
	default:
		return DOCA_ERROR_DRIVER;
	}
}

static doca_error_t reg_host(struct doca_verbs_umem *umem, void *cpu_addr, uint32_t access)
{
	char text[160];
	int sys_err;

	umem->way = GDK_UMEM_HOST_MEMORY;
	if (reg_address(umem, cpu_addr, access)) {
		gdk_info("%s: registered umem at %p by its address", dev_name(umem->dev), cpu_addr);
		return DOCA_SUCCESS;
	}
	sys_err = errno;
	gdk_err("%s: cannot register a umem of %zu bytes at %p, access 0x%x: %s",
		dev_name(umem->dev), umem->size, cpu_addr, access,
		cause(sys_err, access, text, sizeof(text)));
	return from_errno(sys_err);
}

static doca_error_t reg_given_dmabuf(struct doca_verbs_umem *umem, uint32_t access, int fd,
				     size_t offset)
{
	char text[160];
	int sys_err;

	umem->way = GDK_UMEM_GIVEN_DMABUF;
	if (reg_dmabuf(umem, access, fd, offset)) {
		gdk_info("%s: registered umem at %p through the caller's dmabuf",
			 dev_name(umem->dev), umem->addr);
		return DOCA_SUCCESS;
	}
	sys_err = errno;
	gdk_err("%s: cannot register a umem of %zu bytes at offset %zu of dmabuf %d, access 0x%x: "
		"%s",
		dev_name(umem->dev), umem->size, offset, fd, access,
		cause(sys_err, access, text, sizeof(text)));
	return from_errno(sys_err);
}

/* ---- GPU memory: a dmabuf of the default mapping type, else peer memory ---- */

/* Results of the two ways to register GPU memory, as text. */
struct attempts {
	char dmabuf[GDK_UMEM_REASON_LEN], peer[GDK_UMEM_REASON_LEN];
	doca_error_t err; /* error of the last failed attempt */
};

/* Exports a dmabuf and registers it. The registration holds a reference to the dmabuf, so the file
 * descriptor is closed immediately. */
static bool try_dmabuf(struct doca_verbs_umem *umem, uint32_t access, struct attempts *tried)
{
	char text[160];
	int fd, sys_err;

	tried->err = gdk_gpu_dmabuf_fd(umem->gpu, umem->addr, umem->size, &fd);
	if (tried->err) {
		snprintf(tried->dmabuf, sizeof(tried->dmabuf),
			 "the GPU cannot export a dmabuf of the memory (%s)",
			 doca_error_get_descr(tried->err));
		return false;
	}
	umem->way = GDK_UMEM_DMABUF;
	if (!reg_dmabuf(umem, access, fd, 0)) {
		sys_err = errno;
		tried->err = from_errno(sys_err);
		snprintf(tried->dmabuf, sizeof(tried->dmabuf),
			 "the NIC cannot register the dmabuf: %s",
			 cause(sys_err, access, text, sizeof(text)));
	}
	close(fd);
	return umem->devx;
}

static bool try_peer_memory(struct doca_verbs_umem *umem, uint32_t access, struct attempts *tried)
{
	char text[160];
	int sys_err;

	umem->way = GDK_UMEM_PEER_MEMORY;
	if (reg_address(umem, umem->addr, access))
		return true;
	sys_err = errno;
	tried->err = from_errno(sys_err);
	snprintf(tried->peer, sizeof(tried->peer), "the NIC cannot register the address: %s",
		 cause(sys_err, access, text, sizeof(text)));
	return false;
}

static doca_error_t reg_gpu(struct doca_verbs_umem *umem, uint32_t access, unsigned int ways)
{
	struct attempts tried = { .dmabuf = "not requested", .peer = "not requested" };
	void *cpu_addr = gdk_gpu_host_mem(umem->gpu, umem->addr);

	if (cpu_addr)
		return reg_host(umem, cpu_addr, access);
	if (ways & GDK_UMEM_TRY_DMABUF && try_dmabuf(umem, access, &tried)) {
		snprintf(umem->reason, sizeof(umem->reason), "%s",
			 ways & GDK_UMEM_TRY_PEER ? "the dmabuf was tried first and succeeded"
						  : tried.peer);
		gdk_info("%s: registered umem at %p through dmabuf", dev_name(umem->dev),
			 umem->addr);
		return DOCA_SUCCESS;
	}
	if (ways & GDK_UMEM_TRY_PEER && try_peer_memory(umem, access, &tried)) {
		memcpy(umem->reason, tried.dmabuf, sizeof(umem->reason));
		gdk_info("%s: registered umem at %p through peer memory; dmabuf: %s",
			 dev_name(umem->dev), umem->addr, tried.dmabuf);
		return DOCA_SUCCESS;
	}
	gdk_err("%s: cannot register a umem of %zu bytes at %p of GPU %s, access 0x%x: dmabuf: %s; "
		"peer memory: %s. Use a GPU driver with dmabuf export (open kernel modules), load "
		"nvidia-peermem, or set GDAKI_QUEUE_MEM=cpu_gpu to place queues in host memory",
		dev_name(umem->dev), umem->size, umem->addr, gdk_gpu_name(umem->gpu), access,
		tried.dmabuf, tried.peer);
	return tried.err;
}

/* ---- public ---- */

static struct doca_verbs_umem *new_umem(doca_dev_t *dev, doca_gpu_t *gpu, void *addr, size_t size)
{
	struct doca_verbs_umem *umem = calloc(1, sizeof(*umem));

	if (!umem) {
		gdk_err("%s: no memory for a umem", dev_name(dev));
		return NULL;
	}
	umem->dev = dev;
	umem->gpu = gpu;
	umem->addr = addr;
	umem->size = size;
	return umem;
}

static doca_error_t publish(struct doca_verbs_umem *umem, doca_error_t err,
			    doca_verbs_umem_t **umem_obj)
{
	if (err) {
		free(umem);
		return err;
	}
	if (umem->devx)
		umem->id = umem->devx->umem_id;
	atomic_fetch_add(&umem->dev->users, 1);
	*umem_obj = umem;
	return DOCA_SUCCESS;
}

doca_error_t gdk_umem_create_gpu(doca_dev_t *dev, doca_gpu_t *gpu, void *addr, size_t size,
				 unsigned int ways, doca_verbs_umem_t **umem_obj)
{
	struct doca_verbs_umem *umem = new_umem(dev, gpu, addr, size);

	if (!umem)
		return DOCA_ERROR_NO_MEMORY;
	return publish(umem, reg_gpu(umem, IBV_ACCESS_LOCAL_WRITE, ways), umem_obj);
}

doca_error_t doca_verbs_umem_create(doca_dev_t *net_dev, doca_gpu_t *gpu, void *address,
				    size_t size, uint32_t access_flags, int dmabuf_id,
				    size_t dmabuf_offset, doca_verbs_umem_t **umem_obj)
{
	struct doca_verbs_umem *umem;
	doca_error_t err;

	GDK_CHECK_PTR(net_dev);
	GDK_CHECK_PTR(address);
	GDK_CHECK_ARG(size, "size 0 (expected at least 1)");
	GDK_CHECK_ARG(dmabuf_id >= NO_FD,
		      "dmabuf_id %d (expected a file descriptor, or %d for none)", dmabuf_id,
		      NO_FD);
	GDK_CHECK_PTR(umem_obj);
	GDK_CHECK_MIX(net_dev, gpu);
	GDK_SDK_SAY("Verbs UMEM", net_dev->sdk);
	umem = new_umem(net_dev, gpu, address, size);
	if (!umem)
		return DOCA_ERROR_NO_MEMORY;
	if (net_dev->sdk)
		err = gdk_sdk_umem_create(umem, access_flags, dmabuf_id);
	else if (dmabuf_id != NO_FD)
		err = reg_given_dmabuf(umem, access_flags, dmabuf_id, dmabuf_offset);
	else if (gpu)
		err = reg_gpu(umem, access_flags, GDK_UMEM_TRY_DMABUF | GDK_UMEM_TRY_PEER);
	else
		err = reg_host(umem, address, access_flags);
	return publish(umem, err, umem_obj);
}

doca_error_t gdk_verbs_umem_get_registration(const doca_verbs_umem_t *umem,
					     struct gdk_umem_registration *registration)
{
	GDK_CHECK_PTR(umem);
	GDK_CHECK_PTR(registration);
	if (umem->sdk)
		return DOCA_ERROR_NOT_SUPPORTED;
	registration->way = umem->way;
	registration->page_size = umem->page;
	memcpy(registration->reason, umem->reason, sizeof(registration->reason));
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_umem_destroy(doca_verbs_umem_t *umem_obj)
{
	int users, ret;

	GDK_CHECK_PTR(umem_obj);
	users = atomic_load(&umem_obj->users);
	if (users) {
		gdk_err("umem 0x%x: cannot destroy it: %d queues still use it", umem_obj->id,
			users);
		return DOCA_ERROR_IN_USE;
	}
	GDK_SDK_FIRST_AS(umem_obj, "doca_umem_destroy", doca_verbs_umem_destroy, umem_obj->sdk);
	ret = umem_obj->sdk ? 0 : mlx5dv_devx_umem_dereg(umem_obj->devx);
	if (ret) {
		gdk_err("umem 0x%x: cannot deregister it: %s", umem_obj->id,
			strerror(ret > 0 ? ret : errno));
		return DOCA_ERROR_DRIVER;
	}
	atomic_fetch_sub(&umem_obj->dev->users, 1);
	free(umem_obj);
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_umem_get_id(const doca_verbs_umem_t *umem_obj, uint32_t *umem_id)
{
	GDK_CHECK_PTR(umem_obj);
	GDK_CHECK_PTR(umem_id);
	GDK_SDK_AS(umem_obj, "doca_umem_get_id", doca_verbs_umem_get_id, umem_obj->sdk, umem_id);
	*umem_id = umem_obj->id;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_umem_get_size(const doca_verbs_umem_t *umem_obj, size_t *umem_size)
{
	GDK_CHECK_PTR(umem_obj);
	GDK_CHECK_PTR(umem_size);
	GDK_SDK_AS(umem_obj, "doca_umem_get_size", doca_verbs_umem_get_size, umem_obj->sdk,
		   umem_size);
	*umem_size = umem_obj->size;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_umem_get_address(const doca_verbs_umem_t *umem_obj, void **umem_address)
{
	GDK_CHECK_PTR(umem_obj);
	GDK_CHECK_PTR(umem_address);
	GDK_SDK_AS(umem_obj, "doca_umem_get_address", doca_verbs_umem_get_address, umem_obj->sdk,
		   umem_address);
	*umem_address = umem_obj->addr;
	return DOCA_SUCCESS;
}

static doca_error_t check_range(const struct doca_verbs_umem *umem, bool same, const char *what,
				uint64_t offset, size_t len)
{
	if (same && offset <= umem->size && umem->size - offset >= len)
		return DOCA_SUCCESS;
	gdk_err("%s of %zu bytes at offset %llu is not in umem 0x%x of %zu bytes%s", what, len,
		(unsigned long long)offset, umem->id, umem->size,
		same ? "" : ", which belongs to another device");
	return DOCA_ERROR_INVALID_VALUE;
}

doca_error_t gdk_umem_check(const struct doca_verbs_umem *umem, bool same, const char *what,
			    uint64_t offset, size_t len, size_t align)
{
	doca_error_t err = check_range(umem, same, what, offset, len);

	if (err)
		return err;
	if (((uintptr_t)umem->addr + offset) % align) {
		gdk_err("%s at offset %llu of umem 0x%x at %p: not aligned to %zu bytes", what,
			(unsigned long long)offset, umem->id, umem->addr, align);
		return DOCA_ERROR_INVALID_VALUE;
	}
	return DOCA_SUCCESS;
}

doca_error_t gdk_umem_check_ring(const struct doca_verbs_umem *umem, bool same, const char *what,
				 uint64_t offset, size_t len)
{
	size_t align = umem->page > PAGE_CAP ? umem->page / RING_UNITS : RING_ALIGN;
	doca_error_t err = check_range(umem, same, what, offset, len);

	if (err || (offset % align == 0 && (umem->start + offset) % align == 0))
		return err;
	gdk_err("%s at offset %llu of umem 0x%x at %p, page size %zu: a ring must begin on a "
		"multiple of %zu bytes; place it at offset %zu of a page-aligned umem",
		what, (unsigned long long)offset, umem->id, umem->addr, umem->page, align,
		gdk_align_up(offset, align));
	return DOCA_ERROR_INVALID_VALUE;
}

/* Copies instead of filling: the first fill of a process makes CUDA load a kernel, which waits for
 * a kernel that runs. */
doca_error_t gdk_umem_clear_dbrec(const struct doca_verbs_umem *umem, void *dbrec)
{
	static const uint64_t zero;

	if (umem->gpu)
		return gdk_gpu_write(umem->gpu, dbrec, &zero, sizeof(zero));
	memset(dbrec, 0, sizeof(zero));
	return DOCA_SUCCESS;
}
