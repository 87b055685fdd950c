/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Opens and closes NICs. The list of opened NICs lets doca_dev_close() refuse a NIC that is not
 * open, for example one that was closed already.
 */
#include "qp/doca/dev.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"
#include "core/reclaim.h"
#include "doca_rdma_bridge.h"
#include "qp/doca/left.h"
#include "qp/doca/verbs/context.h"

struct opened {
	struct doca_dev *dev;
	struct doca_devinfo info;
	struct ibv_pd *pd;	    /* allocated by doca_dev_open(); NULL: the user's */
	struct doca_verbs_pd *held; /* exists until the NIC is closed, or NULL */
	struct opened *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct opened *list; /* protected by lock */

static struct opened **find(const struct doca_dev *dev)
{
	struct opened **at = &list;

	while (*at && (*at)->dev != dev)
		at = &(*at)->next;
	return at;
}

struct doca_devinfo *gdk_devinfo_of(const struct doca_dev *dev)
{
	struct opened *o;

	pthread_mutex_lock(&lock);
	o = *find(dev);
	pthread_mutex_unlock(&lock);
	return o ? &o->info : NULL;
}

bool gdk_dev_is_open(const struct doca_dev *dev, const char *func)
{
	if (dev && gdk_devinfo_of(dev))
		return true;
	gdk_err("%s: device %p is not open; open it with doca_dev_open()", func, (const void *)dev);
	return false;
}

/* own: close pd and its context when the NIC is closed */
static doca_error_t open_pd(struct ibv_pd *pd, bool own, struct doca_dev **dev)
{
	struct opened *o = calloc(1, sizeof(*o));
	doca_error_t err;

	if (!o) {
		gdk_err("%s: no memory for a device", ibv_get_device_name(pd->context->device));
		return DOCA_ERROR_NO_MEMORY;
	}
	err = doca_verbs_dev_open(pd, &o->dev);
	if (err) {
		free(o);
		return err;
	}
	gdk_devinfo_read(&o->info, pd->context->device);
	o->pd = own ? pd : NULL;
	o->held = own ? NULL : gdk_doca_pd_hold(pd);
	*dev = o->dev;
	pthread_mutex_lock(&lock);
	o->next = list;
	list = o;
	pthread_mutex_unlock(&lock);
	return DOCA_SUCCESS;
}

static doca_error_t from_errno(int sys_err)
{
	switch (sys_err) {
	case EPERM:
	case EACCES:
		return DOCA_ERROR_NOT_PERMITTED;
	case ENOMEM:
		return DOCA_ERROR_NO_MEMORY;
	default:
		return DOCA_ERROR_DRIVER;
	}
}

doca_error_t doca_dev_open(struct doca_devinfo *devinfo, struct doca_dev **dev)
{
	struct ibv_context *ctx;
	const char *name;
	struct ibv_pd *pd;
	doca_error_t err;

	GDK_CHECK_PTR(devinfo);
	GDK_CHECK_PTR(dev);
	name = ibv_get_device_name(devinfo->device);
	errno = 0;
	ctx = ibv_open_device(devinfo->device);
	if (!ctx) {
		err = from_errno(errno);
		gdk_err("%s: cannot open the device: %s; check the rights of /dev/infiniband/%s",
			name, strerror(errno), devinfo->device->dev_name);
		return err;
	}
	errno = 0;
	pd = ibv_alloc_pd(ctx);
	if (!pd) {
		err = from_errno(errno);
		gdk_err("%s: cannot allocate a protection domain: %s", name, strerror(errno));
		goto close_device;
	}
	err = open_pd(pd, true, dev);
	if (err)
		goto dealloc_pd;
	return DOCA_SUCCESS;

dealloc_pd:
	ibv_dealloc_pd(pd);
close_device:
	ibv_close_device(ctx);
	return err;
}

doca_error_t doca_rdma_bridge_open_dev_from_pd(struct ibv_pd *pd, struct doca_dev **dev)
{
	GDK_CHECK_PTR(pd);
	GDK_CHECK_PTR(pd->context);
	GDK_CHECK_PTR(dev);
	return open_pd(pd, false, dev);
}

/* Takes a NIC out of the list, so that of two threads that close it only one does. */
static struct opened *take(const struct doca_dev *dev)
{
	struct opened **at, *o;

	pthread_mutex_lock(&lock);
	at = find(dev);
	o = *at;
	if (o)
		*at = o->next;
	pthread_mutex_unlock(&lock);
	return o;
}

static void put_back(struct opened *o)
{
	pthread_mutex_lock(&lock);
	o->next = list;
	list = o;
	pthread_mutex_unlock(&lock);
}

/* Releases the umems and UARs that the program left, if nothing else uses the NIC. */
static doca_error_t release(struct doca_dev *dev)
{
	const struct gdk_left left = gdk_doca_left(dev, NULL);
	const unsigned int num = left.umems + left.uars;

	gdk_reclaim(NULL, dev);
	if (!num || left.in_queues || atomic_load(&dev->users) != (int)num)
		return DOCA_SUCCESS; /* doca_verbs_dev_close() reports the users, if any */
	gdk_warn("%s: doca_dev_close releases %u umems and %u UARs that the program has not "
		 "destroyed",
		 ibv_get_device_name(dev->ctx->device), left.umems, left.uars);
	return gdk_doca_release(dev, NULL);
}

doca_error_t doca_dev_close(struct doca_dev *dev)
{
	struct ibv_context *ctx;
	struct opened *o;
	doca_error_t err;
	int ret;

	GDK_CHECK_PTR(dev);
	o = take(dev);
	if (!o) {
		gdk_dev_is_open(dev, __func__);
		return DOCA_ERROR_INVALID_VALUE;
	}
	err = release(dev);
	if (!err)
		err = doca_verbs_dev_close(dev);
	if (err) {
		put_back(o);
		return err;
	}
	if (o->pd) {
		ctx = o->pd->context;
		ret = ibv_dealloc_pd(o->pd);
		if (ret)
			gdk_warn("%s: cannot free the protection domain: %s; its memory regions "
				 "must be deregistered before the device is closed",
				 ibv_get_device_name(ctx->device), strerror(ret));
		ibv_close_device(ctx);
	}
	if (o->held)
		gdk_doca_pd_drop(o->held);
	free(o);
	return DOCA_SUCCESS;
}

struct doca_devinfo *doca_dev_as_devinfo(const struct doca_dev *dev)
{
	return gdk_dev_is_open(dev, __func__) ? gdk_devinfo_of(dev) : NULL;
}
