/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Asynchronous events of a context. ibv_get_async_event() waits for an event, so this file polls
 * the file descriptor first. The lock of the context keeps a second thread from taking the event
 * between the poll and the read, which would then wait.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "core/log/log.h"
#include "qp/doca/verbs/context.h"
#include "doca_verbs_event.h"

_Static_assert(sizeof(((struct ibv_async_event *)0)->element) <= sizeof(uint64_t),
	       "the element of an event fits into gdk_element");

/* The caller holds event_lock. */
static doca_error_t read_event(struct doca_verbs_context *context, struct ibv_async_event *event)
{
	struct pollfd fd = { .fd = context->ctx->async_fd, .events = POLLIN };
	int ready;

	do
		ready = poll(&fd, 1, 0);
	while (ready < 0 && errno == EINTR);
	if (ready == 0)
		return DOCA_ERROR_AGAIN;
	if (ready > 0 && ibv_get_async_event(context->ctx, event) == 0)
		return DOCA_SUCCESS;
	gdk_err("%s: cannot read an asynchronous event: %s",
		ibv_get_device_name(context->ctx->device), strerror(errno));
	return DOCA_ERROR_DRIVER;
}

doca_error_t doca_verbs_get_async_event(struct doca_verbs_context *verbs_context,
					struct doca_verbs_async_event *event)
{
	struct ibv_async_event found;
	doca_error_t err;

	GDK_CHECK_PTR(verbs_context);
	GDK_CHECK_PTR(event);
	pthread_mutex_lock(&verbs_context->event_lock);
	err = read_event(verbs_context, &found);
	pthread_mutex_unlock(&verbs_context->event_lock);
	if (err != DOCA_SUCCESS)
		return err;
	event->event_type = (int)found.event_type;
	event->gdk_element = 0;
	memcpy(&event->gdk_element, &found.element, sizeof(found.element));
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_ack_async_event(struct doca_verbs_async_event *event)
{
	struct ibv_async_event given;

	GDK_CHECK_PTR(event);
	given.event_type = (enum ibv_event_type)event->event_type;
	memcpy(&given.element, &event->gdk_element, sizeof(given.element));
	ibv_ack_async_event(&given);
	return DOCA_SUCCESS;
}
