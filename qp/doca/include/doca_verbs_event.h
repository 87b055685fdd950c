/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Asynchronous events of a NIC. A part of doca_verbs.h, which programs include.
 */
#ifndef GDK_SDK_DOCA_VERBS_EVENT_H
#define GDK_SDK_DOCA_VERBS_EVENT_H

#include <stdint.h>

#include "doca_error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_verbs_context;

/** An asynchronous event. */
struct doca_verbs_async_event {
	int event_type;	      /**< a value of enum ibv_event_type */
	uint64_t gdk_element; /**< port number, or the object that the event concerns */
};

/**
 * Reads the next asynchronous event of a NIC. Does not wait. Acknowledge the event with
 * doca_verbs_ack_async_event(). Any thread may call this.
 *
 * @retval DOCA_ERROR_AGAIN there is no event now
 * @retval DOCA_ERROR_DRIVER the driver failed
 */
doca_error_t doca_verbs_get_async_event(struct doca_verbs_context *verbs_context,
					struct doca_verbs_async_event *event);

/** Acknowledges an event. Each event is acknowledged once. Any thread may call this. */
doca_error_t doca_verbs_ack_async_event(struct doca_verbs_async_event *event);

#ifdef __cplusplus
}
#endif

#endif
