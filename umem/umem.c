/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Registers user memory with the firmware: host memory by address, GPU memory
 * by a dmabuf (the caller's, else one exported here), else by the driver's peer
 * memory. libmlx5 takes a dmabuf's offset in place of the address.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../core/gpu_priv.h"
#include "../core/log.h"
#include "../core/sdk_objects.h"
#include "../core/trace.h"
#include "umem.h"

#define NO_FD (-1)

static const char *dev_name(const struct doca_dev *dev)
{
	return ibv_get_device_name(dev->ctx->device);
}

static struct mlx5dv_devx_umem *reg_address(const struct doca_verbs_umem *umem, void *addr,
					    uint32_t access)
{
	struct mlx5dv_devx_umem_in in = {.addr = addr, .size = umem->size, .access = access};
	struct mlx5dv_devx_umem *devx;

	devx = mlx5dv_devx_umem_reg(umem->dev->ctx, addr, umem->size, access);
	gdk_trace_umem(umem->dev->ctx, &in, NO_FD, devx, errno);
	return devx;
}

static struct mlx5dv_devx_umem *reg_dmabuf(const struct doca_verbs_umem *umem, uint32_t access,
					   int fd, size_t offset)
{
	struct mlx5dv_devx_umem_in in = {
	    .addr = (void *)offset,
	    .size = umem->size,
	    .access = access,
	    .pgsz_bitmap = UINT64_MAX & ~(uint64_t)(sysconf(_SC_PAGESIZE) - 1),
	    .comp_mask = MLX5DV_UMEM_MASK_DMABUF,
	    .dmabuf_fd = fd,
	};
	struct mlx5dv_devx_umem *devx;

	devx = mlx5dv_devx_umem_reg_ex(umem->dev->ctx, &in);
	gdk_trace_umem(umem->dev->ctx, &in, fd, devx, errno);
	return devx;
}

static doca_error_t from_errno(int sys_err)
{
	switch (sys_err) {
	case ENOMEM:
		return DOCA_ERROR_NO_MEMORY;
	case EOPNOTSUPP:
	case ENOSYS:
		return DOCA_ERROR_NOT_SUPPORTED;
	default:
		return DOCA_ERROR_DRIVER;
	}
}

static doca_error_t reg_host(struct doca_verbs_umem *umem, void *cpu_addr, uint32_t access)
{
	int sys_err;

	umem->devx = reg_address(umem, cpu_addr, access);
	if (umem->devx) {
		gdk_info("%s: umem at %p by its address", dev_name(umem->dev), cpu_addr);
		return DOCA_SUCCESS;
	}
	sys_err = errno;
	gdk_err("%s: umem of %zu bytes at %p, access 0x%x: %s", dev_name(umem->dev), umem->size,
		cpu_addr, access, strerror(sys_err));
	return from_errno(sys_err);
}

static doca_error_t reg_given_dmabuf(struct doca_verbs_umem *umem, uint32_t access, int fd,
				     size_t offset)
{
	int sys_err;

	umem->devx = reg_dmabuf(umem, access, fd, offset);
	if (umem->devx) {
		gdk_info("%s: umem at %p through the caller's dmabuf", dev_name(umem->dev),
			 umem->addr);
		return DOCA_SUCCESS;
	}
	sys_err = errno;
	gdk_err("%s: umem of %zu bytes at offset %zu of dmabuf %d, access 0x%x: %s",
		dev_name(umem->dev), umem->size, offset, fd, access, strerror(sys_err));
	return from_errno(sys_err);
}

static doca_error_t reg_peermem(struct doca_verbs_umem *umem, uint32_t access, const char *why)
{
	int sys_err;

	umem->devx = reg_address(umem, umem->addr, access);
	if (umem->devx) {
		gdk_info("%s: umem at %p through peer memory, as %s", dev_name(umem->dev),
			 umem->addr, why);
		return DOCA_SUCCESS;
	}
	sys_err = errno;
	gdk_err("%s: umem of %zu bytes at %p of GPU %s, access 0x%x: %s, and peer memory failed: "
		"%s (is nvidia-peermem loaded?)",
		dev_name(umem->dev), umem->size, umem->addr, gdk_gpu_name(umem->gpu), access, why,
		strerror(sys_err));
	return from_errno(sys_err);
}

/* GPU memory without a dmabuf from the caller: try one of our own first. The
 * registration keeps the dmabuf alive, so the descriptor is closed at once. */
static doca_error_t reg_gpu(struct doca_verbs_umem *umem, uint32_t access)
{
	void *cpu_addr = gdk_gpu_host_mem(umem->gpu, umem->addr);
	int fd, sys_err;

	if (cpu_addr)
		return reg_host(umem, cpu_addr, access);
	if (gdk_gpu_dmabuf_fd(umem->gpu, umem->addr, umem->size, &fd))
		return reg_peermem(umem, access, "the GPU exports no dmabuf of it");
	umem->devx = reg_dmabuf(umem, access, fd, 0);
	sys_err = errno;
	close(fd);
	if (!umem->devx)
		return reg_peermem(umem, access, strerror(sys_err));
	gdk_info("%s: umem at %p through dmabuf", dev_name(umem->dev), umem->addr);
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_umem_create(doca_dev_t *net_dev, doca_gpu_t *gpu, void *address,
				    size_t size, uint32_t access_flags, int dmabuf_id,
				    size_t dmabuf_offset, doca_verbs_umem_t **umem_obj)
{
	struct doca_verbs_umem *umem;
	doca_error_t err;

	GDK_CHECK_ARG(net_dev);
	GDK_CHECK_ARG(address);
	GDK_CHECK_ARG(size);
	GDK_CHECK_ARG(dmabuf_id >= NO_FD);
	GDK_CHECK_ARG(umem_obj);
	GDK_CHECK_MIX(net_dev, gpu);
	GDK_SDK_SAY("Verbs UMEM", net_dev->sdk);
	umem = calloc(1, sizeof(*umem));
	if (!umem) {
		gdk_err("%s: no memory for a umem", dev_name(net_dev));
		return DOCA_ERROR_NO_MEMORY;
	}
	umem->dev = net_dev;
	umem->gpu = gpu;
	umem->addr = address;
	umem->size = size;
	if (net_dev->sdk)
		err = gdk_sdk_umem_create(umem, access_flags, dmabuf_id);
	else if (dmabuf_id != NO_FD)
		err = reg_given_dmabuf(umem, access_flags, dmabuf_id, dmabuf_offset);
	else if (gpu)
		err = reg_gpu(umem, access_flags);
	else
		err = reg_host(umem, address, access_flags);
	if (err) {
		free(umem);
		return err;
	}
	if (umem->devx)
		umem->id = umem->devx->umem_id;
	atomic_fetch_add(&net_dev->users, 1);
	*umem_obj = umem;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_umem_destroy(doca_verbs_umem_t *umem_obj)
{
	int users, ret;

	GDK_CHECK_ARG(umem_obj);
	users = atomic_load(&umem_obj->users);
	if (users) {
		gdk_err("umem 0x%x: %d queues still lie in it", umem_obj->id, users);
		return DOCA_ERROR_IN_USE;
	}
	GDK_SDK_FIRST_AS(umem_obj, "doca_umem_destroy", doca_verbs_umem_destroy, umem_obj->sdk);
	ret = umem_obj->sdk ? 0 : mlx5dv_devx_umem_dereg(umem_obj->devx);
	if (ret) {
		gdk_err("umem 0x%x: cannot be released: %s", umem_obj->id,
			strerror(ret > 0 ? ret : errno));
		return DOCA_ERROR_DRIVER;
	}
	atomic_fetch_sub(&umem_obj->dev->users, 1);
	free(umem_obj);
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_umem_get_id(const doca_verbs_umem_t *umem_obj, uint32_t *umem_id)
{
	GDK_CHECK_ARG(umem_obj);
	GDK_CHECK_ARG(umem_id);
	GDK_SDK_AS(umem_obj, "doca_umem_get_id", doca_verbs_umem_get_id, umem_obj->sdk, umem_id);
	*umem_id = umem_obj->id;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_umem_get_size(const doca_verbs_umem_t *umem_obj, size_t *umem_size)
{
	GDK_CHECK_ARG(umem_obj);
	GDK_CHECK_ARG(umem_size);
	GDK_SDK_AS(umem_obj, "doca_umem_get_size", doca_verbs_umem_get_size, umem_obj->sdk,
		   umem_size);
	*umem_size = umem_obj->size;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_umem_get_address(const doca_verbs_umem_t *umem_obj, void **umem_address)
{
	GDK_CHECK_ARG(umem_obj);
	GDK_CHECK_ARG(umem_address);
	GDK_SDK_AS(umem_obj, "doca_umem_get_address", doca_verbs_umem_get_address, umem_obj->sdk,
		   umem_address);
	*umem_address = umem_obj->addr;
	return DOCA_SUCCESS;
}

doca_error_t gdk_umem_check(const struct doca_verbs_umem *umem, bool same, const char *what,
			    uint64_t offset, size_t len, size_t align)
{
	if (!same || offset > umem->size || umem->size - offset < len) {
		gdk_err("%s of %zu bytes at offset %llu is not in umem 0x%x of %zu bytes on this "
			"device", what, len, (unsigned long long)offset, umem->id, umem->size);
		return DOCA_ERROR_INVALID_VALUE;
	}
	if (((uintptr_t)umem->addr + offset) % align) {
		gdk_err("%s at offset %llu of umem 0x%x, which is at %p: not aligned to %zu bytes",
			what, (unsigned long long)offset, umem->id, umem->addr, align);
		return DOCA_ERROR_INVALID_VALUE;
	}
	return DOCA_SUCCESS;
}
