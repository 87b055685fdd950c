/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* libdoca_common.so of the stand-in SDK: devices, user memory and UARs. It also holds
 * the record of calls and the list of objects for all three libraries. */
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sdk.h"

struct object {
	struct object *next;
	const char *kind;
	void *user;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *objects;
static char record[1 << 16];
static size_t used;
static long calls, fail_at; /* number of the failing call, from 1 on; 0: none */

static struct object *find(const void *obj)
{
	struct object *at = objects;

	while (at && at != obj)
		at = at->next;
	return at;
}

EXPORT void *sdk_new(const char *kind, void *user)
{
	struct object *made = calloc(1, sizeof(*made));

	made->kind = kind;
	made->user = user;
	pthread_mutex_lock(&lock);
	made->next = objects;
	objects = made;
	pthread_mutex_unlock(&lock);
	return made;
}

EXPORT void sdk_delete(void *obj)
{
	struct object **at = &objects;

	pthread_mutex_lock(&lock);
	while (*at && *at != obj)
		at = &(*at)->next;
	if (*at)
		*at = (*at)->next;
	else
		obj = NULL;
	pthread_mutex_unlock(&lock);
	free(obj);
}

EXPORT void *sdk_user(const void *obj)
{
	return find(obj) ? find(obj)->user : NULL;
}

EXPORT void *sdk_of_user(const void *user)
{
	struct object *at = objects;

	while (at && at->user != user)
		at = at->next;
	return at;
}

EXPORT const char *sdk_name(const void *obj)
{
	return !obj ? "NULL" : find(obj) ? find(obj)->kind : "wild";
}

/* Calls that release an object never fail, because the object would remain and count as a leak. */
static bool is_end(const char *fmt)
{
	return strstr(fmt, "_destroy(") || strstr(fmt, "_free(") || strstr(fmt, "_close(");
}

EXPORT int sdk_call(const char *fmt, ...)
{
	va_list args;
	int len, err;

	pthread_mutex_lock(&lock);
	va_start(args, fmt);
	len = vsnprintf(record + used, sizeof(record) - used, fmt, args);
	va_end(args);
	if (len > 0 && used + (size_t)len + 2 < sizeof(record)) {
		used += (size_t)len;
		record[used++] = '\n';
		record[used] = '\0';
	}
	err = !is_end(fmt) && ++calls == fail_at ? 21 /* DOCA_ERROR_DRIVER */ : OK;
	pthread_mutex_unlock(&lock);
	return err;
}

/* ---- for the tests ---- */

EXPORT const char *standin_sdk_record(void);
EXPORT const char *standin_sdk_record(void)
{
	return record;
}

EXPORT void standin_sdk_clear(void);
EXPORT void standin_sdk_clear(void)
{
	used = 0;
	record[0] = '\0';
}

EXPORT int standin_sdk_live(void);
EXPORT int standin_sdk_live(void)
{
	struct object *at;
	int n = 0;

	for (at = objects; at; at = at->next)
		n++;
	return n;
}

/* Makes the nth call from now fail, not counting calls that release objects; n = 0: no call
 * fails. */
EXPORT void standin_sdk_fail_at(long n);
EXPORT void standin_sdk_fail_at(long n)
{
	calls = 0;
	fail_at = n;
}

/* ---- devices ---- */

EXPORT int doca_rdma_bridge_open_dev_from_pd(struct ibv_pd *pd, void **dev);
EXPORT int doca_rdma_bridge_open_dev_from_pd(struct ibv_pd *pd, void **dev)
{
	int err = sdk_call("doca_rdma_bridge_open_dev_from_pd(%p)", (void *)pd);

	if (!err)
		*dev = sdk_new("dev", pd);
	return err;
}

READ(doca_rdma_bridge_get_dev_pd, struct ibv_pd *, sdk_user(obj))
DELETE(doca_dev_close)

/* ---- umem ---- */

struct umem {
	void *addr;
	size_t size;
};

static void *umem_new(void *addr, size_t size)
{
	struct umem *umem = malloc(sizeof(*umem));

	*umem = (struct umem){ addr, size };
	return sdk_new("umem", umem);
}

EXPORT int doca_umem_create(void *dev, void *addr, size_t size, uint32_t access, void **umem);
EXPORT int doca_umem_create(void *dev, void *addr, size_t size, uint32_t access, void **umem)
{
	int err = sdk_call("doca_umem_create(%s, %p, %zu, %u)", sdk_name(dev), addr, size, access);

	if (!err)
		*umem = umem_new(addr, size);
	return err;
}

EXPORT int doca_umem_gpu_create(void *gpu, void *dev, void *addr, size_t size, uint32_t access,
				void **umem);
EXPORT int doca_umem_gpu_create(void *gpu, void *dev, void *addr, size_t size, uint32_t access,
				void **umem)
{
	int err = sdk_call("doca_umem_gpu_create(%s, %s, %p, %zu, %u)", sdk_name(gpu),
			   sdk_name(dev), addr, size, access);

	if (!err)
		*umem = umem_new(addr, size);
	return err;
}

EXPORT int doca_umem_destroy(void *umem);
EXPORT int doca_umem_destroy(void *umem)
{
	int err = sdk_call("doca_umem_destroy(%s)", sdk_name(umem));

	if (!err) {
		free(sdk_user(umem));
		sdk_delete(umem);
	}
	return err;
}

READ(doca_umem_get_id, uint32_t, 0x1234)
READ(doca_umem_get_size, size_t, ((struct umem *)sdk_user(obj))->size)
READ(doca_umem_get_address, void *, ((struct umem *)sdk_user(obj))->addr)

/* ---- UAR ---- */

static uint64_t page[512] __attribute__((aligned(4096)));

EXPORT int doca_uar_create(void *dev, int type, void **uar);
EXPORT int doca_uar_create(void *dev, int type, void **uar)
{
	int err = sdk_call("doca_uar_create(%s, %d)", sdk_name(dev), type);

	if (!err)
		*uar = sdk_new("uar", NULL);
	return err;
}

DELETE(doca_uar_destroy)
READ(doca_uar_id_get, uint32_t, 0x77)
READ(doca_uar_reg_addr_get, void *, &page[256])
