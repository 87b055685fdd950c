/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Memory that NICs access: one memory region for each NIC. A description of remote memory has the
 * address, the length and the remote key, all big-endian.
 */
#include "qp/doca/mmap.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"

#define NO_FD (-1)
#define MAGIC 0x676461696d6d3031ull /* "gdaimm01" */

#define ACCESS_REMOTE \
	(DOCA_ACCESS_FLAG_RDMA_READ | DOCA_ACCESS_FLAG_RDMA_WRITE | DOCA_ACCESS_FLAG_RDMA_ATOMIC)
#define ACCESS_ALL \
	(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | ACCESS_REMOTE | DOCA_ACCESS_FLAG_PCI_RELAXED_ORDERING)

/* A NIC of a mmap. */
struct map_dev {
	struct doca_dev *dev;
	struct ibv_mr *mr; /* NULL: not registered */
	struct map_dev *next;
};

struct export_desc {
	uint64_t magic, addr, len;
	uint32_t rkey, access;
};

struct doca_mmap {
	void *addr; /* NULL: no range */
	size_t len, offset;
	int dmabuf; /* NO_FD: register the address */
	uint32_t access;
	struct map_dev *devs; /* in the order in which they were added */
	bool started;
	bool half_stopped; /* started, but a failed stop has deregistered some of the regions */
	bool remote;	   /* created from an export */
	uint32_t rkey;
	atomic_uint users; /* buffers and pools in the range */
	struct export_desc desc;
};

/* ---- checks ---- */

static doca_error_t must_be_stopped(const struct doca_mmap *mmap, const char *func)
{
	if (!mmap->started)
		return DOCA_SUCCESS;
	gdk_err("%s: mmap %p is started; call doca_mmap_stop() first", func, (const void *)mmap);
	return DOCA_ERROR_BAD_STATE;
}

static doca_error_t must_be_started(const struct doca_mmap *mmap, const char *func)
{
	if (mmap->started)
		return DOCA_SUCCESS;
	gdk_err("%s: mmap %p is not started; call doca_mmap_start() first", func,
		(const void *)mmap);
	return DOCA_ERROR_BAD_STATE;
}

/* Like must_be_started(), and all NICs have a key. */
static doca_error_t must_have_keys(const struct doca_mmap *mmap, const char *func)
{
	doca_error_t err = must_be_started(mmap, func);

	if (err || !mmap->half_stopped)
		return err;
	gdk_err("%s: stopping mmap %p has failed, so it lacks keys; call doca_mmap_stop() again",
		func, (const void *)mmap);
	return DOCA_ERROR_BAD_STATE;
}

static struct map_dev *find_dev(const struct doca_mmap *mmap, const struct doca_dev *dev,
				const char *func)
{
	struct map_dev *d = mmap->devs;

	while (d && d->dev != dev)
		d = d->next;
	if (!d)
		gdk_err("%s: mmap %p has no device %p; call doca_mmap_add_dev() first", func,
			(const void *)mmap, (const void *)dev);
	return d;
}

/* Like find_dev(), but the mmap must also be started. */
static doca_error_t find_started(const struct doca_mmap *mmap, const struct doca_dev *dev,
				 struct map_dev **d, const char *func)
{
	doca_error_t err = must_have_keys(mmap, func);

	if (err)
		return err;
	*d = find_dev(mmap, dev, func);
	return *d ? DOCA_SUCCESS : DOCA_ERROR_NOT_FOUND;
}

doca_error_t gdk_mmap_check(const struct doca_mmap *mmap, const void *addr, size_t len,
			    const char *func)
{
	doca_error_t err = must_have_keys(mmap, func);
	uintptr_t first = (uintptr_t)mmap->addr, at = (uintptr_t)addr;

	if (err)
		return err;
	if (at >= first && len <= mmap->len && at - first <= mmap->len - len)
		return DOCA_SUCCESS;
	gdk_err("%s: %zu bytes at %p are not in the mmap (%zu bytes at %p)", func, len, addr,
		mmap->len, mmap->addr);
	return DOCA_ERROR_INVALID_VALUE;
}

void gdk_mmap_range(const struct doca_mmap *mmap, void **addr, size_t *len)
{
	*addr = mmap->addr;
	*len = mmap->len;
}

uint32_t gdk_mmap_key(const struct doca_mmap *mmap)
{
	return mmap->remote ? mmap->rkey : mmap->devs->mr->lkey;
}

bool gdk_mmap_remote_write(const struct doca_mmap *mmap)
{
	return mmap->access & DOCA_ACCESS_FLAG_RDMA_WRITE;
}

void gdk_mmap_hold(struct doca_mmap *mmap)
{
	atomic_fetch_add(&mmap->users, 1);
}

void gdk_mmap_release(struct doca_mmap *mmap)
{
	atomic_fetch_sub(&mmap->users, 1);
}

/* ---- creation and settings ---- */

doca_error_t doca_mmap_create(struct doca_mmap **mmap)
{
	struct doca_mmap *new;

	GDK_CHECK_PTR(mmap);
	new = calloc(1, sizeof(*new));
	if (!new) {
		gdk_err("no memory for a mmap");
		return DOCA_ERROR_NO_MEMORY;
	}
	new->dmabuf = NO_FD;
	new->access = DOCA_ACCESS_FLAG_LOCAL_READ_WRITE;
	*mmap = new;
	return DOCA_SUCCESS;
}

static doca_error_t add_dev(struct doca_mmap *mmap, struct doca_dev *dev)
{
	struct map_dev **at = &mmap->devs, *d;

	for (; *at; at = &(*at)->next)
		if ((*at)->dev == dev) {
			gdk_err("mmap %p has this device already", (void *)mmap);
			return DOCA_ERROR_ALREADY_EXIST;
		}
	d = calloc(1, sizeof(*d));
	if (!d) {
		gdk_err("no memory for a device of a mmap");
		return DOCA_ERROR_NO_MEMORY;
	}
	d->dev = dev;
	atomic_fetch_add(&dev->users, 1);
	*at = d;
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_add_dev(struct doca_mmap *mmap, struct doca_dev *dev)
{
	doca_error_t err;

	GDK_CHECK_PTR(mmap);
	GDK_CHECK_PTR(dev);
	err = must_be_stopped(mmap, __func__);
	return err ? err : add_dev(mmap, dev);
}

static void free_dev(struct map_dev **at)
{
	struct map_dev *d = *at;

	*at = d->next;
	atomic_fetch_sub(&d->dev->users, 1);
	free(d);
}

doca_error_t doca_mmap_rm_dev(struct doca_mmap *mmap, struct doca_dev *dev)
{
	struct map_dev **at, *d;
	doca_error_t err;

	GDK_CHECK_PTR(mmap);
	GDK_CHECK_PTR(dev);
	err = must_be_stopped(mmap, __func__);
	if (err)
		return err;
	d = find_dev(mmap, dev, __func__);
	if (!d)
		return DOCA_ERROR_NOT_FOUND;
	for (at = &mmap->devs; *at != d; at = &(*at)->next)
		;
	free_dev(at);
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_set_memrange(struct doca_mmap *mmap, void *addr, size_t len)
{
	doca_error_t err;

	GDK_CHECK_PTR(mmap);
	GDK_CHECK_PTR(addr);
	GDK_CHECK_ARG(len, "len 0 (expected at least 1)");
	err = must_be_stopped(mmap, __func__);
	if (err)
		return err;
	/* The DOCA sample of RDMA sets the range of a dmabuf by both calls. */
	if (mmap->addr != addr || mmap->len != len)
		mmap->dmabuf = NO_FD;
	mmap->addr = addr;
	mmap->len = len;
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_set_dmabuf_memrange(struct doca_mmap *mmap, int dmabuf_fd, void *addr,
					   size_t dmabuf_offset, size_t len)
{
	doca_error_t err;

	GDK_CHECK_PTR(mmap);
	GDK_CHECK_PTR(addr);
	GDK_CHECK_ARG(dmabuf_fd >= 0, "dmabuf_fd %d (expected a file descriptor)", dmabuf_fd);
	GDK_CHECK_ARG(len, "len 0 (expected at least 1)");
	err = must_be_stopped(mmap, __func__);
	if (err)
		return err;
	mmap->addr = addr;
	mmap->len = len;
	mmap->dmabuf = dmabuf_fd;
	mmap->offset = dmabuf_offset;
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_set_permissions(struct doca_mmap *mmap, uint32_t access_mask)
{
	doca_error_t err;

	GDK_CHECK_PTR(mmap);
	GDK_CHECK_ARG(!(access_mask & ~(uint32_t)ACCESS_ALL),
		      "access_mask 0x%x (expected a set of 0x%x)", access_mask, ACCESS_ALL);
	err = must_be_stopped(mmap, __func__);
	if (!err)
		mmap->access = access_mask;
	return err;
}

/* ---- registration ---- */

static int verbs_access(uint32_t access)
{
	int v = 0;

	/* The kernel registers remote writes and atomics only together with local writes. */
	if (access & (DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE |
		      DOCA_ACCESS_FLAG_RDMA_ATOMIC))
		v |= IBV_ACCESS_LOCAL_WRITE;
	if (access & DOCA_ACCESS_FLAG_RDMA_READ)
		v |= IBV_ACCESS_REMOTE_READ;
	if (access & DOCA_ACCESS_FLAG_RDMA_WRITE)
		v |= IBV_ACCESS_REMOTE_WRITE;
	if (access & DOCA_ACCESS_FLAG_RDMA_ATOMIC)
		v |= IBV_ACCESS_REMOTE_ATOMIC;
	if (access & DOCA_ACCESS_FLAG_PCI_RELAXED_ORDERING)
		v |= IBV_ACCESS_RELAXED_ORDERING;
	return v;
}

static doca_error_t register_with(struct doca_mmap *mmap, struct map_dev *d)
{
	const char *name = ibv_get_device_name(d->dev->ctx->device);
	int access = verbs_access(mmap->access), sys_err;

	errno = 0;
	if (mmap->dmabuf != NO_FD) {
		d->mr = ibv_reg_dmabuf_mr(d->dev->pd, mmap->offset, mmap->len,
					  (uintptr_t)mmap->addr, mmap->dmabuf, access);
		if (d->mr)
			return DOCA_SUCCESS;
		gdk_warn("%s: cannot register %zu bytes at offset %zu of dmabuf %d (%s), "
			 "registering address %p through peer memory",
			 name, mmap->len, mmap->offset, mmap->dmabuf, strerror(errno), mmap->addr);
	}
	errno = 0;
	d->mr = ibv_reg_mr(d->dev->pd, mmap->addr, mmap->len, access);
	if (d->mr)
		return DOCA_SUCCESS;
	sys_err = errno;
	gdk_err("%s: cannot register %zu bytes at %p, access 0x%x: %s; raise ulimit -l, or for GPU "
		"memory set a dmabuf range or load nvidia-peermem",
		name, mmap->len, mmap->addr, mmap->access, strerror(sys_err));
	return sys_err == ENOMEM ? DOCA_ERROR_NO_MEMORY : DOCA_ERROR_DRIVER;
}

static doca_error_t unregister(struct doca_mmap *mmap)
{
	doca_error_t err = DOCA_SUCCESS;
	struct map_dev *d;
	int ret;

	for (d = mmap->devs; d; d = d->next) {
		ret = d->mr ? ibv_dereg_mr(d->mr) : 0;
		if (ret) {
			gdk_err("%s: cannot deregister the memory at %p: %s",
				ibv_get_device_name(d->dev->ctx->device), mmap->addr,
				strerror(ret));
			err = DOCA_ERROR_DRIVER;
			continue;
		}
		d->mr = NULL;
	}
	return err;
}

doca_error_t doca_mmap_start(struct doca_mmap *mmap)
{
	doca_error_t err;
	struct map_dev *d;

	GDK_CHECK_PTR(mmap);
	err = must_be_stopped(mmap, __func__);
	if (err)
		return err;
	if (!mmap->addr || !mmap->devs) {
		gdk_err("%s: mmap %p has no %s; call %s first", __func__, (void *)mmap,
			mmap->addr ? "device" : "range",
			mmap->addr ? "doca_mmap_add_dev()" : "doca_mmap_set_memrange()");
		return DOCA_ERROR_BAD_STATE;
	}
	for (d = mmap->devs; d && !err; d = d->next)
		if (!d->mr)
			err = register_with(mmap, d);
	if (err) {
		unregister(mmap);
		return err;
	}
	mmap->started = true;
	return DOCA_SUCCESS;
}

static doca_error_t stop(struct doca_mmap *mmap, const char *func)
{
	unsigned int users = atomic_load(&mmap->users);
	doca_error_t err;

	if (users) {
		gdk_err("%s: %u buffers or pools use mmap %p; free them first", func, users,
			(void *)mmap);
		return DOCA_ERROR_IN_USE;
	}
	err = unregister(mmap);
	mmap->half_stopped = err && mmap->started;
	if (!err)
		mmap->started = false;
	return err;
}

doca_error_t doca_mmap_stop(struct doca_mmap *mmap)
{
	doca_error_t err;

	GDK_CHECK_PTR(mmap);
	err = must_be_started(mmap, __func__);
	if (err)
		return err;
	if (mmap->remote) {
		gdk_err("%s: mmap %p was created from an export; destroy it instead", __func__,
			(void *)mmap);
		return DOCA_ERROR_BAD_STATE;
	}
	return stop(mmap, __func__);
}

doca_error_t doca_mmap_destroy(struct doca_mmap *mmap)
{
	doca_error_t err;

	GDK_CHECK_PTR(mmap);
	err = stop(mmap, __func__);
	if (err)
		return err;
	while (mmap->devs)
		free_dev(&mmap->devs);
	free(mmap);
	return DOCA_SUCCESS;
}

/* ---- keys and exports ---- */

doca_error_t doca_mmap_get_mkey(struct doca_mmap *mmap, struct doca_dev *dev, uint32_t *mkey)
{
	struct map_dev *d;
	doca_error_t err;

	GDK_CHECK_PTR(mmap);
	GDK_CHECK_PTR(dev);
	GDK_CHECK_PTR(mkey);
	err = find_started(mmap, dev, &d, __func__);
	if (err)
		return err;
	*mkey = mmap->remote ? mmap->rkey : d->mr->lkey;
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_export_rdma(struct doca_mmap *mmap, const struct doca_dev *dev,
				   const void **export_desc, size_t *export_desc_len)
{
	struct map_dev *d;
	doca_error_t err;

	GDK_CHECK_PTR(mmap);
	GDK_CHECK_PTR(dev);
	GDK_CHECK_PTR(export_desc);
	GDK_CHECK_PTR(export_desc_len);
	err = find_started(mmap, dev, &d, __func__);
	if (err)
		return err;
	if (mmap->remote || !(mmap->access & ACCESS_REMOTE)) {
		gdk_err("%s: mmap %p %s; set DOCA_ACCESS_FLAG_RDMA_READ, _WRITE or _ATOMIC",
			__func__, (void *)mmap,
			mmap->remote ? "is memory of a remote host"
				     : "has no permission for remote hosts");
		return DOCA_ERROR_NOT_PERMITTED;
	}
	mmap->desc.magic = htobe64(MAGIC);
	mmap->desc.addr = htobe64((uintptr_t)mmap->addr);
	mmap->desc.len = htobe64(mmap->len);
	mmap->desc.rkey = htobe32(d->mr->rkey);
	mmap->desc.access = htobe32(mmap->access);
	*export_desc = &mmap->desc;
	*export_desc_len = sizeof(mmap->desc);
	return DOCA_SUCCESS;
}

doca_error_t doca_mmap_create_from_export(const union doca_data *user_data, const void *export_desc,
					  size_t export_desc_len, struct doca_dev *dev,
					  struct doca_mmap **mmap)
{
	struct export_desc desc;
	struct doca_mmap *new;
	doca_error_t err;

	(void)user_data;
	GDK_CHECK_PTR(export_desc);
	GDK_CHECK_PTR(dev);
	GDK_CHECK_PTR(mmap);
	GDK_CHECK_ARG(export_desc_len == sizeof(desc), "export_desc_len %zu (expected %zu)",
		      export_desc_len, sizeof(desc));
	memcpy(&desc, export_desc, sizeof(desc)); /* may be unaligned */
	GDK_CHECK_ARG(be64toh(desc.magic) == MAGIC,
		      "export_desc (expected bytes of doca_mmap_export_rdma() of gdaki)");
	err = doca_mmap_create(&new);
	if (err)
		return err;
	err = add_dev(new, dev);
	if (err) {
		free(new);
		return err;
	}
	new->addr = (void *)(uintptr_t)be64toh(desc.addr);
	new->len = be64toh(desc.len);
	new->rkey = be32toh(desc.rkey);
	new->access = be32toh(desc.access);
	new->remote = true;
	new->started = true;
	*mmap = new;
	return DOCA_SUCCESS;
}
