/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Buffers, inventories and pools. Both have all their buffers in an array, and a list of the free
 * ones. A buffer of an inventory gets its place when it is taken; a buffer of a pool keeps it.
 */
#include "qp/doca/buf.h"

#include <stdlib.h>

#include "core/log/log.h"
#include "doca_buf_inventory.h"
#include "doca_buf_pool.h"

/* The common part of inventories and pools. */
struct gdk_bufs {
	const char *what;
	size_t num, used;
	struct doca_buf *all, *free;
	bool started;
};

struct doca_buf_inventory {
	struct gdk_bufs bufs;
};

struct doca_buf_pool {
	struct gdk_bufs bufs;
	struct doca_mmap *mmap;
};

/* ---- the common part ---- */

static doca_error_t init(struct gdk_bufs *bufs, const char *what, size_t num)
{
	size_t i;

	bufs->what = what;
	bufs->num = num;
	bufs->all = calloc(num, sizeof(*bufs->all));
	if (!bufs->all) {
		gdk_err("no memory for %zu buffers of a %s", num, what);
		return DOCA_ERROR_NO_MEMORY;
	}
	for (i = num; i--;) {
		bufs->all[i].owner = bufs;
		bufs->all[i].next = bufs->free;
		bufs->free = &bufs->all[i];
	}
	return DOCA_SUCCESS;
}

static doca_error_t must_be_unused(const struct gdk_bufs *bufs, const char *func)
{
	if (!bufs->used)
		return DOCA_SUCCESS;
	gdk_err("%s: %zu of %zu buffers of the %s are not freed; call doca_buf_dec_refcount()",
		func, bufs->used, bufs->num, bufs->what);
	return DOCA_ERROR_IN_USE;
}

static doca_error_t must_be(const struct gdk_bufs *bufs, bool started, const char *func)
{
	if (bufs->started == started)
		return DOCA_SUCCESS;
	if (started)
		gdk_err("%s: the %s is not started; start it first", func, bufs->what);
	else
		gdk_err("%s: the %s is started already", func, bufs->what);
	return DOCA_ERROR_BAD_STATE;
}

static doca_error_t take(struct gdk_bufs *bufs, const char *func, struct doca_buf **buf)
{
	doca_error_t err = must_be(bufs, true, func);

	if (err)
		return err;
	if (!bufs->free) {
		gdk_err("%s: all %zu buffers of the %s are in use; create it with more of them",
			func, bufs->num, bufs->what);
		return DOCA_ERROR_NO_MEMORY;
	}
	*buf = bufs->free;
	bufs->free = (*buf)->next;
	bufs->used++;
	(*buf)->next = NULL;
	(*buf)->refs = 1;
	return DOCA_SUCCESS;
}

static void place(struct doca_buf *buf, struct doca_mmap *mmap, void *addr, size_t len)
{
	gdk_mmap_hold(mmap);
	buf->mmap = mmap;
	buf->addr = buf->data = addr;
	buf->len = len;
	buf->data_len = 0;
}

/* ---- buffers ---- */

static doca_error_t must_be_first(const struct doca_buf *buf, const char *func)
{
	if (buf->refs && !buf->chained)
		return DOCA_SUCCESS;
	if (buf->refs)
		gdk_err("%s: buffer %p is not the first of its list; pass the first", func,
			(const void *)buf);
	else
		gdk_err("%s: buffer %p is freed", func, (const void *)buf);
	return DOCA_ERROR_BAD_STATE;
}

doca_error_t doca_buf_dec_refcount(struct doca_buf *buf, uint16_t *refcount)
{
	struct doca_buf *next;
	doca_error_t err;

	GDK_CHECK_PTR(buf);
	err = must_be_first(buf, __func__);
	if (err)
		return err;
	if (refcount)
		*refcount = buf->refs;
	if (--buf->refs)
		return DOCA_SUCCESS;
	for (; buf; buf = next) {
		next = buf->next;
		buf->refs = 0;
		buf->chained = false;
		gdk_mmap_release(buf->mmap);
		buf->next = buf->owner->free;
		buf->owner->free = buf;
		buf->owner->used--;
	}
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_get_data(const struct doca_buf *buf, void **data)
{
	GDK_CHECK_PTR(buf);
	GDK_CHECK_PTR(data);
	*data = buf->data;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_set_data(struct doca_buf *buf, void *data, size_t data_len)
{
	uintptr_t first, at = (uintptr_t)data;

	GDK_CHECK_PTR(buf);
	GDK_CHECK_PTR(data);
	first = (uintptr_t)buf->addr;
	GDK_CHECK_ARG(at >= first && data_len <= buf->len && at - first <= buf->len - data_len,
		      "data: %zu bytes at %p (expected a part of the buffer, %zu bytes at %p)",
		      data_len, data, buf->len, buf->addr);
	buf->data = data;
	buf->data_len = data_len;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_set_data_len(struct doca_buf *buf, size_t data_len)
{
	GDK_CHECK_PTR(buf);
	return doca_buf_set_data(buf, buf->data, data_len);
}

doca_error_t doca_buf_chain_list(struct doca_buf *list1, struct doca_buf *list2)
{
	struct doca_buf *last;
	doca_error_t err;

	GDK_CHECK_PTR(list1);
	GDK_CHECK_PTR(list2);
	err = must_be_first(list1, __func__);
	if (!err)
		err = must_be_first(list2, __func__);
	if (err)
		return err;
	if (list1 == list2) {
		gdk_err("%s: list1 and list2 are the same list", __func__);
		return DOCA_ERROR_BAD_STATE;
	}
	for (last = list1; last->next; last = last->next)
		;
	last->next = list2;
	list2->chained = true;
	return DOCA_SUCCESS;
}

/* ---- inventories ---- */

doca_error_t doca_buf_inventory_create(size_t num_elements,
				       struct doca_buf_inventory **buf_inventory)
{
	struct doca_buf_inventory *inv;
	doca_error_t err;

	GDK_CHECK_PTR(buf_inventory);
	GDK_CHECK_ARG(num_elements, "num_elements 0 (expected at least 1)");
	inv = calloc(1, sizeof(*inv));
	if (!inv) {
		gdk_err("no memory for an inventory");
		return DOCA_ERROR_NO_MEMORY;
	}
	err = init(&inv->bufs, "inventory", num_elements);
	if (err) {
		free(inv);
		return err;
	}
	*buf_inventory = inv;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_inventory_destroy(struct doca_buf_inventory *buf_inventory)
{
	doca_error_t err;

	GDK_CHECK_PTR(buf_inventory);
	err = must_be_unused(&buf_inventory->bufs, __func__);
	if (err)
		return err;
	free(buf_inventory->bufs.all);
	free(buf_inventory);
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_inventory_start(struct doca_buf_inventory *buf_inventory)
{
	doca_error_t err;

	GDK_CHECK_PTR(buf_inventory);
	err = must_be(&buf_inventory->bufs, false, __func__);
	if (!err)
		buf_inventory->bufs.started = true;
	return err;
}

doca_error_t doca_buf_inventory_buf_get_by_addr(struct doca_buf_inventory *buf_inventory,
						struct doca_mmap *mmap, void *addr, size_t len,
						struct doca_buf **buf)
{
	doca_error_t err;

	GDK_CHECK_PTR(buf_inventory);
	GDK_CHECK_PTR(mmap);
	GDK_CHECK_PTR(addr);
	GDK_CHECK_PTR(buf);
	err = gdk_mmap_check(mmap, addr, len, __func__);
	if (!err)
		err = take(&buf_inventory->bufs, __func__, buf);
	if (!err)
		place(*buf, mmap, addr, len);
	return err;
}

doca_error_t doca_buf_inventory_buf_get_by_data(struct doca_buf_inventory *buf_inventory,
						struct doca_mmap *mmap, void *data, size_t data_len,
						struct doca_buf **buf)
{
	doca_error_t err = doca_buf_inventory_buf_get_by_addr(buf_inventory, mmap, data, data_len,
							      buf);

	if (!err)
		(*buf)->data_len = data_len;
	return err;
}

/* ---- pools ---- */

doca_error_t doca_buf_pool_create(size_t num_elements, size_t element_size, struct doca_mmap *mmap,
				  struct doca_buf_pool **buf_pool)
{
	struct doca_buf_pool *pool;
	doca_error_t err;
	void *addr;
	size_t len;

	GDK_CHECK_PTR(mmap);
	GDK_CHECK_PTR(buf_pool);
	GDK_CHECK_ARG(num_elements, "num_elements 0 (expected at least 1)");
	GDK_CHECK_ARG(element_size, "element_size 0 (expected at least 1)");
	gdk_mmap_range(mmap, &addr, &len);
	if (element_size > len / num_elements) {
		gdk_err("%s: %zu buffers of %zu bytes do not fit into the mmap (%zu bytes)",
			__func__, num_elements, element_size, len);
		return DOCA_ERROR_TOO_BIG;
	}
	pool = calloc(1, sizeof(*pool));
	if (!pool) {
		gdk_err("no memory for a pool of buffers");
		return DOCA_ERROR_NO_MEMORY;
	}
	err = init(&pool->bufs, "pool", num_elements);
	if (err) {
		free(pool);
		return err;
	}
	for (size_t i = 0; i < num_elements; i++) {
		pool->bufs.all[i].addr = (char *)addr + i * element_size;
		pool->bufs.all[i].len = element_size;
	}
	pool->mmap = mmap;
	gdk_mmap_hold(mmap);
	*buf_pool = pool;
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_pool_destroy(struct doca_buf_pool *buf_pool)
{
	doca_error_t err;

	GDK_CHECK_PTR(buf_pool);
	err = must_be_unused(&buf_pool->bufs, __func__);
	if (err)
		return err;
	gdk_mmap_release(buf_pool->mmap);
	free(buf_pool->bufs.all);
	free(buf_pool);
	return DOCA_SUCCESS;
}

doca_error_t doca_buf_pool_start(struct doca_buf_pool *buf_pool)
{
	const struct doca_buf *all;
	doca_error_t err;

	GDK_CHECK_PTR(buf_pool);
	all = buf_pool->bufs.all;
	err = must_be(&buf_pool->bufs, false, __func__);
	if (!err)
		err = gdk_mmap_check(buf_pool->mmap, all[0].addr, buf_pool->bufs.num * all[0].len,
				     __func__);
	if (!err)
		buf_pool->bufs.started = true;
	return err;
}

doca_error_t doca_buf_pool_stop(struct doca_buf_pool *buf_pool)
{
	doca_error_t err;

	GDK_CHECK_PTR(buf_pool);
	err = must_be(&buf_pool->bufs, true, __func__);
	if (!err)
		err = must_be_unused(&buf_pool->bufs, __func__);
	if (!err)
		buf_pool->bufs.started = false;
	return err;
}

doca_error_t doca_buf_pool_buf_alloc(struct doca_buf_pool *buf_pool, struct doca_buf **buf)
{
	doca_error_t err;

	GDK_CHECK_PTR(buf_pool);
	GDK_CHECK_PTR(buf);
	err = take(&buf_pool->bufs, __func__, buf);
	if (!err)
		place(*buf, buf_pool->mmap, (*buf)->addr, (*buf)->len);
	return err;
}
