/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Asynchronous events of the NIC about failed CQs and QPs, delivered on the file descriptor
 * of a DEVX event channel. An event contains the number of its object instead of a pointer,
 * because the object may have been destroyed before the event is read. Errors that a CQE
 * reports are in error.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"
#include "core/log/trace.h"
#include "host/gdaki.h"
#include "qp/verbs/qp.h"

/* Event types and layout of an event queue entry, as in the kernel's linux/mlx5/device.h. */
#define EQE_BYTES	64u
#define EQE_TYPE	0x01u
#define EQE_CQ_SYNDROME 0x2bu

static const struct {
	uint16_t type;
	bool of_cq;
	enum gdk_event_kind kind;
	const char *text;
} types[] = {
	{ 0x04, true, GDK_EVENT_CQ_ERROR, "completion queue error" },
	{ 0x05, false, GDK_EVENT_QP_FATAL, "queue pair error that no completion reports" },
	{ 0x10, false, GDK_EVENT_QP_REQUEST, "invalid request from the remote side" },
	{ 0x11, false, GDK_EVENT_QP_ACCESS, "access violation by the remote side" },
};

struct gdk_events {
	struct doca_dev *dev;
	struct mlx5dv_devx_event_channel *channel;
};

doca_error_t gdk_events_open(doca_dev_t *net_dev, struct gdk_events **events)
{
	struct gdk_events *opened;
	doca_error_t err;

	GDK_CHECK_PTR(net_dev);
	GDK_CHECK_PTR(events);
	opened = calloc(1, sizeof(*opened));
	if (!opened) {
		gdk_err("no memory for an event channel");
		return DOCA_ERROR_NO_MEMORY;
	}
	opened->dev = net_dev;
	opened->channel = mlx5dv_devx_create_event_channel(net_dev->ctx, 0);
	if (!opened->channel || fcntl(opened->channel->fd, F_SETFL, O_NONBLOCK)) {
		gdk_err("%s: cannot create an event channel: %s",
			ibv_get_device_name(net_dev->ctx->device), strerror(errno));
		err = opened->channel ? DOCA_ERROR_OPERATING_SYSTEM : DOCA_ERROR_DRIVER;
		goto err_free;
	}
	atomic_fetch_add(&net_dev->users, 1);
	*events = opened;
	return DOCA_SUCCESS;

err_free:
	if (opened->channel)
		mlx5dv_devx_destroy_event_channel(opened->channel);
	free(opened);
	return err;
}

doca_error_t gdk_events_close(struct gdk_events *events)
{
	GDK_CHECK_PTR(events);
	mlx5dv_devx_destroy_event_channel(events->channel);
	atomic_fetch_sub(&events->dev->users, 1);
	free(events);
	return DOCA_SUCCESS;
}

doca_error_t gdk_events_get_fd(const struct gdk_events *events, int *fd)
{
	GDK_CHECK_PTR(events);
	GDK_CHECK_PTR(fd);
	*fd = events->channel->fd;
	return DOCA_SUCCESS;
}

/* Subscribes to events of an object. The cookie of an event is the object's number. Returns 0 or an
 * errno value. */
static int subscribe(struct gdk_events *events, struct mlx5dv_devx_obj *obj, bool is_cq,
		     uint16_t *list, uint16_t n, uint32_t number)
{
	int rc = mlx5dv_devx_subscribe_devx_event(events->channel, obj, n * sizeof(list[0]), list,
						  number);

	rc = rc < 0 ? errno : rc;
	gdk_trace_events(events->dev->ctx, is_cq, number, list, n, rc);
	return rc;
}

/*
 * Subscribes to each event type separately, because the kernel refuses a whole list with
 * EINVAL if the device does not support one of its types (user_affiliated_events, devx.c).
 * Returns 0 if the device supports at least one type, EINVAL if it supports none. Any other
 * error ends the loop.
 */
static int subscribe_one_by_one(struct gdk_events *events, struct mlx5dv_devx_obj *obj, bool is_cq,
				uint16_t *list, uint16_t n, uint32_t number)
{
	int rc, err = EINVAL;
	uint16_t i;

	for (i = 0; i < n; i++) {
		rc = subscribe(events, obj, is_cq, &list[i], 1, number);
		if (rc && rc != EINVAL)
			return rc;
		if (rc)
			gdk_info("object 0x%x: cannot subscribe to events of type 0x%02x: %s",
				 number, list[i], strerror(rc));
		else
			err = 0;
	}
	return err;
}

static doca_error_t watch(struct gdk_events *events, const struct doca_dev *dev,
			  struct mlx5dv_devx_obj *obj, bool is_cq, uint32_t number)
{
	uint16_t list[GDK_ARRAY_SIZE(types)], n = 0;
	const char *what = is_cq ? "CQ" : "QP";
	size_t i;
	int rc;

	if (!obj) {
		gdk_err("%s 0x%x: cannot watch its events: it belongs to the DOCA SDK", what,
			number);
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	if (dev->ctx != events->dev->ctx) {
		gdk_err("%s 0x%x: cannot watch its events: it belongs to context %p of %s, the "
			"event channel to context %p of %s (expected the same context)",
			what, number, (void *)dev->ctx, ibv_get_device_name(dev->ctx->device),
			(void *)events->dev->ctx, ibv_get_device_name(events->dev->ctx->device));
		return DOCA_ERROR_INVALID_VALUE;
	}
	for (i = 0; i < GDK_ARRAY_SIZE(types); i++)
		if (types[i].of_cq == is_cq)
			list[n++] = types[i].type;
	rc = subscribe(events, obj, is_cq, list, n, number);
	if (rc == EINVAL)
		rc = subscribe_one_by_one(events, obj, is_cq, list, n, number);
	if (!rc)
		return DOCA_SUCCESS;
	gdk_err("%s 0x%x: cannot subscribe to its events: %s", what, number, strerror(rc));
	return rc == EINVAL ? DOCA_ERROR_NOT_SUPPORTED : DOCA_ERROR_DRIVER;
}

doca_error_t gdk_events_watch_cq(struct gdk_events *events, doca_verbs_cq_t *cq)
{
	GDK_CHECK_PTR(events);
	GDK_CHECK_PTR(cq);
	return watch(events, cq->dev, cq->obj, true, cq->cqn);
}

doca_error_t gdk_events_watch_qp(struct gdk_events *events, doca_verbs_qp_t *qp)
{
	GDK_CHECK_PTR(events);
	GDK_CHECK_PTR(qp);
	return watch(events, qp->dev, qp->obj, false, qp->qpn);
}

doca_error_t gdk_events_get(struct gdk_events *events, struct gdk_event *event)
{
	union {
		struct mlx5dv_devx_async_event_hdr hdr;
		uint8_t bytes[sizeof(struct mlx5dv_devx_async_event_hdr) + EQE_BYTES];
	} box;
	const uint8_t *eqe = box.bytes + sizeof(box.hdr);
	ssize_t len;
	size_t i;

	GDK_CHECK_PTR(events);
	GDK_CHECK_PTR(event);
	len = mlx5dv_devx_get_event(events->channel, &box.hdr, sizeof(box));
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return DOCA_ERROR_AGAIN;
	for (i = 0; len == (ssize_t)sizeof(box) && i < GDK_ARRAY_SIZE(types); i++) {
		if (types[i].type != eqe[EQE_TYPE])
			continue;
		*event = (struct gdk_event){
			.kind = types[i].kind,
			.number = (uint32_t)box.hdr.cookie,
			.syndrome = types[i].of_cq ? eqe[EQE_CQ_SYNDROME] : 0,
		};
		return DOCA_SUCCESS;
	}
	gdk_err("%s: cannot read an event (result %zd): %s",
		ibv_get_device_name(events->dev->ctx->device), len,
		len < 0 ? strerror(errno) : "unknown type or length");
	return DOCA_ERROR_DRIVER;
}

const char *gdk_event_text(enum gdk_event_kind kind)
{
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(types); i++)
		if (types[i].kind == kind)
			return types[i].text;
	return "?";
}
