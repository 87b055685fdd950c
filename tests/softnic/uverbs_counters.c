/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Counters objects of verbs (ibv_create_counters). A rule of ibv_create_flow binds one; the
 * first rule brings the description: which value ibv_read_counters() returns at which index.
 * The packets and bytes of all its rules are summed, also after the last rule is destroyed.
 */
#include "eth.h"
#include "front.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5-abi.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DESCS (0xffffu / sizeof(struct mlx5_ib_flow_counters_desc))

struct counters {
	uint32_t handle;
	uint32_t n;			/* entries of desc */
	uint32_t values;		/* highest index of desc + 1; 0: not described */
	struct sn_flow_counter counter; /* users: rules */
	struct sn_flow_count count;
	struct mlx5_ib_flow_counters_desc *desc;
};

static int create(struct sn_call *c)
{
	struct counters *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	k->handle = sn_handle_add(c->dev, c->ctx, SN_COUNTERS, k);
	if (!k->handle) {
		free(k);
		return -ENOMEM;
	}
	k->counter.n = 1;
	k->counter.count = &k->count;
	sn_attr_set_handle(c, UVERBS_ATTR_CREATE_COUNTERS_HANDLE, k->handle);
	return 0;
}

int sn_counters_destroy(struct sn_dev *dev, void *counters)
{
	struct counters *k = counters;

	if (k->counter.users)
		return -EBUSY;
	sn_handle_del(dev, k->handle);
	free(k->desc);
	free(k);
	return 0;
}

static int destroy(struct sn_call *c)
{
	void *k = sn_attr_obj(c, UVERBS_ATTR_DESTROY_COUNTERS_HANDLE, SN_COUNTERS);

	return k ? sn_counters_destroy(c->dev, k) : -ENOENT;
}

/* ---- binding ---- */

/* The driver data of ibv_create_flow(). The kernel accepts one description at most. */
struct data {
	uint32_t ncounters_data, reserved;
	struct mlx5_ib_flow_counters_data counters;
};
_Static_assert(offsetof(struct data, counters) == sizeof(struct mlx5_ib_create_flow),
	       "as struct mlx5_ib_create_flow, whose array has no length");

static int describe(struct counters *k, const struct mlx5_ib_flow_counters_data *data)
{
	struct mlx5_ib_flow_counters_desc *desc;
	uint32_t i, values = 0;
	int rc;

	if (data->ncounters > MAX_DESCS)
		return sn_flow_refuse(-EINVAL, "too many descriptions of counters");
	desc = calloc(data->ncounters + 1, sizeof(*desc));
	if (!desc)
		return -ENOMEM;
	rc = sn_mem_read(false, (uint64_t)(uintptr_t)data->counters_data, desc,
			 data->ncounters * sizeof(*desc));
	for (i = 0; i < data->ncounters && !rc; i++) {
		if (desc[i].description > IBV_COUNTER_BYTES || desc[i].index == UINT32_MAX)
			rc = sn_flow_refuse(-EINVAL, "unknown counter");
		else if (desc[i].index >= values)
			values = desc[i].index + 1;
	}
	if (rc) {
		free(desc);
		return rc;
	}
	free(k->desc);
	k->desc = desc;
	k->n = data->ncounters;
	k->values = values;
	return 0;
}

int sn_counters_bind(struct sn_call *c, void *counters, struct sn_flow_counter **counter)
{
	struct counters *k = counters;
	struct data data;
	int rc = 0;

	sn_attr_in(c, UVERBS_ATTR_UHW_IN, &data, sizeof(data));
	if (!k->counter.users) /* the last rule is gone, and with it the description */
		k->values = k->n = 0;
	if (data.ncounters_data && k->values)
		return sn_flow_refuse(-EINVAL, "the counters are described already");
	if (data.ncounters_data)
		rc = describe(k, &data.counters);
	else if (!k->values)
		rc = sn_flow_refuse(-EINVAL, "the counters are not described");
	if (!rc)
		*counter = &k->counter;
	return rc;
}

/* ---- reading ---- */
static int read_values(struct sn_call *c, const struct counters *k, uint32_t n)
{
	uint64_t *value = calloc(n + 1, sizeof(*value));
	uint32_t i;
	int rc;

	if (!value)
		return -ENOMEM;
	for (i = 0; i < k->n; i++)
		value[k->desc[i].index] += k->desc[i].description == IBV_COUNTER_PACKETS
						   ? k->count.packets
						   : k->count.bytes;
	rc = sn_attr_out(c, UVERBS_ATTR_READ_COUNTERS_BUFF, value, n * sizeof(*value));
	free(value);
	return rc;
}

static int read_counters(struct sn_call *c)
{
	struct counters *k = sn_attr_obj(c, UVERBS_ATTR_READ_COUNTERS_HANDLE, SN_COUNTERS);
	struct ib_uverbs_attr *buf = sn_attr(c, UVERBS_ATTR_READ_COUNTERS_BUFF);
	struct ib_uverbs_attr *flags = sn_attr(c, UVERBS_ATTR_READ_COUNTERS_FLAGS);
	uint32_t n;

	if (!k)
		return -ENOENT;
	if (!buf || (flags && flags->len != 4 && flags->len != 8) ||
	    sn_attr_num(c, UVERBS_ATTR_READ_COUNTERS_FLAGS) &
		    ~(uint64_t)IB_UVERBS_READ_COUNTERS_PREFER_CACHED)
		return -EINVAL;
	n = buf->len / (uint32_t)sizeof(uint64_t);
	if (!k->counter.users)
		return sn_flow_refuse(-EINVAL, "counters without a rule");
	if (k->values > n)
		return sn_flow_refuse(-EINVAL, "an index is outside the caller's array");
	return read_values(c, k, n);
}

const struct sn_method sn_methods_counters[] = {
	{ UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_CREATE, 0x1, 0, create },
	{ UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_DESTROY, 0x1, 0, destroy },
	{ UVERBS_OBJECT_COUNTERS, UVERBS_METHOD_COUNTERS_READ, 0x7, 0, read_counters },
	{ .fn = NULL },
};
