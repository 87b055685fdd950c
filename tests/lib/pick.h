/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Selects the device that a test opens: the one named by the environment variable
 * GDAKI_TEST_DEVICE, or else the first in the list that can be opened. */
#ifndef PICK_H
#define PICK_H

#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

/* Returns NULL if the named device does not exist or if no device can be opened. */
static inline struct ibv_context *pick_open(void)
{
	const char *want = getenv("GDAKI_TEST_DEVICE");
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	int i;

	for (i = 0; list && list[i] && !ctx; i++)
		if (!want || !*want || !strcmp(ibv_get_device_name(list[i]), want))
			ctx = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return ctx;
}

#endif
