/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * As test_api_args.c, for the functions of the SDK's interface. lib/api_args.py generates the calls
 * from all headers in qp/NAME/include. An object that a call does not reach is zeroed memory.
 */
#include "doca_buf_array.h"
#include "doca_buf_inventory.h"
#include "doca_buf_pool.h"
#include "doca_dma.h"
#include "doca_eth_rxq_gpu_data_path.h"
#include "doca_eth_txq_gpu_data_path.h"
#include "doca_flow.h"
#include "doca_gpunetio.h"
#include "doca_log.h"
#include "doca_pe.h"
#include "doca_rdma.h"
#include "doca_rdma_bridge.h"
#include "doca_uar.h"
#include "doca_umem.h"
#include "doca_verbs.h"
#include "doca_verbs_bridge.h"
#include "doca_verbs_event.h"
#include "doca_version.h"
#include "gdk_eth_steer.h"
#include "gdk_sdk_semaphore.h"

#include "api_args_rig.h"
#include "doca_base_rig.h"

static struct {
	struct doca_dev *dev;
	struct doca_gpu *gpu;
	struct doca_verbs_context *context;
	struct doca_verbs_pd *pd;
	struct doca_verbs_gid gid;
	union doca_data data;
	char text[256];
	char page[4096] __attribute__((aligned(4096)));
	uint64_t object[1024];
} g;

#include "doca_api_args.inc"

Test(doca_api_args, every_wrong_argument_is_refused_and_named_in_the_log)
{
	struct ibv_device **list;

	g.dev = rig_open();
	cr_assert_eq(doca_gpu_create("host", &g.gpu), DOCA_SUCCESS);
	list = ibv_get_device_list(NULL);
	cr_assert_eq(doca_verbs_bridge_verbs_context_create(
			     list[0], DOCA_VERBS_CONTEXT_CREATE_FLAGS_NONE, &g.context),
		     DOCA_SUCCESS);
	ibv_free_device_list(list);
	cr_assert_eq(doca_verbs_pd_create(g.context, &g.pd), DOCA_SUCCESS);
	api_call(wrongs, sizeof(wrongs) / sizeof(wrongs[0]), false);
	cr_expect_eq(doca_verbs_pd_destroy(g.pd), DOCA_SUCCESS);
	cr_expect_eq(doca_verbs_context_destroy(g.context), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_destroy(g.gpu), DOCA_SUCCESS);
	cr_expect_eq(doca_dev_close(g.dev), DOCA_SUCCESS);
}
