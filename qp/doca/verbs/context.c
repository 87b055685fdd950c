/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Verbs contexts and protection domains (context.h). Programs may close the NIC that they opened
 * from a protection domain after they have destroyed the protection domain and the context; both
 * then exist until the NIC is closed. One lock protects the list of protection domains and the
 * members of both objects that change.
 */
#include "qp/doca/verbs/context.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"
#include "qp/doca/verbs/shape.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct doca_verbs_pd *pds;

static const char *name_of(const struct doca_verbs_context *context)
{
	return ibv_get_device_name(context->ctx->device);
}

static doca_error_t from_errno(int sys_err)
{
	switch (sys_err) {
	case ENOMEM:
		return DOCA_ERROR_NO_MEMORY;
	case EACCES:
	case EPERM:
		return DOCA_ERROR_NOT_PERMITTED;
	default:
		return DOCA_ERROR_DRIVER;
	}
}

/* ---- a protection domain of libibverbs with a device handle ---- */

static doca_error_t open_dev(struct ibv_context *ctx, struct ibv_pd **ibpd, doca_dev_t **dev)
{
	doca_error_t err;

	*ibpd = ibv_alloc_pd(ctx);
	if (!*ibpd) {
		err = from_errno(errno);
		gdk_err("%s: cannot allocate a protection domain: %s",
			ibv_get_device_name(ctx->device), strerror(errno));
		return err;
	}
	err = doca_verbs_dev_open(*ibpd, dev);
	if (err != DOCA_SUCCESS)
		(void)ibv_dealloc_pd(*ibpd);
	return err;
}

/* The caller has checked that no object uses dev. The protection domain is freed first: if this
 * fails, nothing has changed. */
static doca_error_t close_dev(struct ibv_pd *ibpd, doca_dev_t *dev)
{
	struct ibv_context *ctx = ibpd->context;
	int ret = ibv_dealloc_pd(ibpd);

	if (ret) {
		gdk_err("%s: cannot free a protection domain: %s%s",
			ibv_get_device_name(ctx->device), strerror(ret),
			ret == EBUSY ? " (memory regions or other objects still use it)" : "");
		return ret == EBUSY ? DOCA_ERROR_IN_USE : DOCA_ERROR_DRIVER;
	}
	return doca_verbs_dev_close(dev);
}

/* ---- context ---- */

static doca_error_t open_context(struct ibv_device *device, struct doca_verbs_context *context)
{
	doca_error_t err;

	context->ctx = ibv_open_device(device);
	if (!context->ctx) {
		err = from_errno(errno);
		gdk_err("%s: cannot open the device: %s", ibv_get_device_name(device),
			strerror(errno));
		return err;
	}
	err = open_dev(context->ctx, &context->ibpd, &context->dev);
	if (err != DOCA_SUCCESS)
		(void)ibv_close_device(context->ctx);
	return err;
}

doca_error_t doca_verbs_bridge_verbs_context_create(struct ibv_device *ibv_device, uint32_t flags,
						    struct doca_verbs_context **verbs_context)
{
	struct doca_verbs_context *context;
	doca_error_t err;

	GDK_CHECK_PTR(ibv_device);
	GDK_CHECK_ARG(flags == DOCA_VERBS_CONTEXT_CREATE_FLAGS_NONE,
		      "flags 0x%x (expected DOCA_VERBS_CONTEXT_CREATE_FLAGS_NONE, 0)", flags);
	GDK_CHECK_PTR(verbs_context);
	context = calloc(1, sizeof(*context));
	if (!context) {
		gdk_err("%s: no memory for a context", ibv_get_device_name(ibv_device));
		return DOCA_ERROR_NO_MEMORY;
	}
	err = open_context(ibv_device, context);
	if (err != DOCA_SUCCESS) {
		free(context);
		return err;
	}
	pthread_mutex_init(&context->event_lock, NULL);
	*verbs_context = context;
	return DOCA_SUCCESS;
}

/* The caller holds the lock. */
static doca_error_t close_context(struct doca_verbs_context *context)
{
	doca_error_t err = close_dev(context->ibpd, context->dev);

	if (err != DOCA_SUCCESS)
		return err;
	if (ibv_close_device(context->ctx))
		gdk_warn("closing a device failed: %s", strerror(errno));
	pthread_mutex_destroy(&context->event_lock);
	free(context);
	return DOCA_SUCCESS;
}

/* The caller holds the lock. */
static doca_error_t destroy_context(struct doca_verbs_context *context)
{
	unsigned int live = context->pds - context->held;
	int cqs = atomic_load(&context->dev->users);

	if (live || cqs) {
		gdk_err("%s: cannot close the context: %u protection domains and %d CQs still use "
			"it",
			name_of(context), live, cqs);
		return DOCA_ERROR_IN_USE;
	}
	if (!context->held)
		return close_context(context);
	gdk_info("%s: the context stays open until doca_dev_close closes %u NICs that were opened "
		 "from its protection domains",
		 name_of(context), context->held);
	context->destroyed = true;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_context_destroy(struct doca_verbs_context *verbs_context)
{
	doca_error_t err;

	GDK_CHECK_PTR(verbs_context);
	pthread_mutex_lock(&lock);
	err = destroy_context(verbs_context);
	pthread_mutex_unlock(&lock);
	return err;
}

doca_error_t gdk_doca_query_device(struct doca_verbs_context *verbs_context,
				   struct doca_verbs_device_attr **verbs_device_attr)
{
	GDK_CHECK_PTR(verbs_context);
	return doca_verbs_query_device(verbs_context->ctx, verbs_device_attr);
}

doca_error_t doca_verbs_device_attr_get_is_send_dbr_mode_supported(
	const struct doca_verbs_device_attr *verbs_device_attr,
	enum doca_verbs_qp_send_dbr_mode send_dbr_mode)
{
	GDK_CHECK_PTR(verbs_device_attr);
	GDK_CHECK_ENUM(send_dbr_mode, DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT);
	if (send_dbr_mode == DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID ||
	    doca_verbs_device_attr_get_send_dbr_mode_no_dbr_ext(verbs_device_attr))
		return DOCA_SUCCESS;
	gdk_info("the device does not support DBREC-less QPs (a ConnectX-8 does)");
	return DOCA_ERROR_NOT_SUPPORTED;
}

/* ---- protection domain ---- */

doca_error_t doca_verbs_pd_create(struct doca_verbs_context *verbs_context,
				  struct doca_verbs_pd **verbs_pd)
{
	struct doca_verbs_pd *pd;
	doca_error_t err;

	GDK_CHECK_PTR(verbs_context);
	GDK_CHECK_PTR(verbs_pd);
	pd = calloc(1, sizeof(*pd));
	if (!pd) {
		gdk_err("%s: no memory for a protection domain", name_of(verbs_context));
		return DOCA_ERROR_NO_MEMORY;
	}
	pd->context = verbs_context;
	err = open_dev(verbs_context->ctx, &pd->ibpd, &pd->dev);
	if (err != DOCA_SUCCESS) {
		free(pd);
		return err;
	}
	pthread_mutex_lock(&lock);
	verbs_context->pds++;
	pd->next = pds;
	pds = pd;
	pthread_mutex_unlock(&lock);
	*verbs_pd = pd;
	return DOCA_SUCCESS;
}

/* The caller holds the lock. */
static doca_error_t free_pd(struct doca_verbs_pd *pd)
{
	struct doca_verbs_pd **at = &pds;
	doca_error_t err = close_dev(pd->ibpd, pd->dev);

	if (err != DOCA_SUCCESS)
		return err;
	while (*at != pd)
		at = &(*at)->next;
	*at = pd->next;
	pd->context->pds--;
	free(pd);
	return DOCA_SUCCESS;
}

/* The caller holds the lock. */
static doca_error_t destroy_pd(struct doca_verbs_pd *pd)
{
	int qps = atomic_load(&pd->dev->users);

	if (qps) {
		gdk_err("%s: cannot free the protection domain: %d QPs still use it",
			name_of(pd->context), qps);
		return DOCA_ERROR_IN_USE;
	}
	if (!pd->holders)
		return free_pd(pd);
	gdk_info("%s: the protection domain exists until doca_dev_close closes %u NICs that were "
		 "opened from it",
		 name_of(pd->context), pd->holders);
	pd->destroyed = true;
	pd->context->held++;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_pd_destroy(struct doca_verbs_pd *verbs_pd)
{
	doca_error_t err;

	GDK_CHECK_PTR(verbs_pd);
	pthread_mutex_lock(&lock);
	err = destroy_pd(verbs_pd);
	pthread_mutex_unlock(&lock);
	return err;
}

struct ibv_pd *doca_verbs_bridge_verbs_pd_get_ibv_pd(struct doca_verbs_pd *verbs_pd)
{
	GDK_CHECK_PTR_OR(NULL, verbs_pd);
	return verbs_pd->ibpd;
}

/* ---- NICs that are opened from a protection domain ---- */

struct doca_verbs_pd *gdk_doca_pd_hold(const struct ibv_pd *ibpd)
{
	struct doca_verbs_pd *pd;

	pthread_mutex_lock(&lock);
	pd = pds;
	while (pd && pd->ibpd != ibpd)
		pd = pd->next;
	if (pd)
		pd->holders++;
	pthread_mutex_unlock(&lock);
	return pd;
}

void gdk_doca_pd_drop(struct doca_verbs_pd *pd)
{
	struct doca_verbs_context *context = pd->context;

	pthread_mutex_lock(&lock);
	if (--pd->holders == 0 && pd->destroyed && free_pd(pd) == DOCA_SUCCESS &&
	    --context->held == 0 && context->destroyed)
		(void)close_context(context);
	pthread_mutex_unlock(&lock);
}
