/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Opens and closes doca_dev (net_dev.h): reads capabilities, protection domain number and
 * NUMA node. The caller opens and closes the verbs context and the protection domain.
 */
#include <infiniband/mlx5dv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"
#include "core/nic/net_dev.h"
#include "core/numa.h"
#include "core/sdk/sdk_dev.h"
#include "core/reclaim.h"

static int read_numa_node(const struct ibv_device *device)
{
	char path[IBV_SYSFS_PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/device/numa_node", device->ibdev_path);
	return gdk_read_numa_node(path);
}

static doca_error_t read_pdn(struct ibv_pd *pd, uint32_t *pdn)
{
	struct mlx5dv_pd dvpd = { 0 };
	struct mlx5dv_obj obj = { .pd = { .in = pd, .out = &dvpd } };
	int ret = mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD);

	if (ret) {
		gdk_err("%s: cannot read the number of the protection domain: %s",
			ibv_get_device_name(pd->context->device), strerror(ret));
		return DOCA_ERROR_DRIVER;
	}
	*pdn = dvpd.pdn;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_dev_open(struct ibv_pd *verbs_pd, doca_dev_t **net_dev)
{
	struct doca_dev *dev;
	doca_error_t err;

	GDK_CHECK_PTR(verbs_pd);
	GDK_CHECK_PTR(verbs_pd->context);
	GDK_CHECK_PTR(net_dev);
	dev = calloc(1, sizeof(*dev));
	if (!dev) {
		gdk_err("no memory for a device");
		return DOCA_ERROR_NO_MEMORY;
	}
	dev->pd = verbs_pd;
	dev->ctx = verbs_pd->context;
	err = gdk_caps_query(dev->ctx, &dev->caps);
	if (err)
		goto free_dev;
	err = read_pdn(verbs_pd, &dev->pdn);
	if (err)
		goto free_dev;
	err = gdk_sdk_dev_open(dev);
	if (err)
		goto free_dev;
	dev->numa_node = read_numa_node(dev->ctx->device);
	gdk_info("%s: pd %u, NUMA node %d, %s, DBREC-less QPs %s",
		 ibv_get_device_name(dev->ctx->device), dev->pdn, dev->numa_node,
		 dev->caps.roce ? "Ethernet" : "InfiniBand",
		 dev->caps.send_dbr_mode_no_dbr_ext ? "supported" : "not supported");
	*net_dev = dev;
	return DOCA_SUCCESS;

free_dev:
	free(dev);
	return err;
}

doca_error_t doca_verbs_dev_close(doca_dev_t *net_dev)
{
	doca_error_t err = DOCA_SUCCESS;
	int users;

	GDK_CHECK_PTR(net_dev);
	gdk_reclaim(NULL, net_dev);
	users = atomic_load(&net_dev->users);
	if (users) {
		gdk_err("%s: cannot close the device: %d objects still use it",
			ibv_get_device_name(net_dev->ctx->device), users);
		return DOCA_ERROR_IN_USE;
	}
	if (net_dev->sdk)
		err = gdk_sdk_dev_close(net_dev);
	if (err)
		return err;
	free(net_dev);
	return DOCA_SUCCESS;
}
