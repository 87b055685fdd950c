/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Tests the software NIC with UCX's transport rc_gda (gdaki.c, unchanged,
 * with UCX's own libraries). UCX opens the NIC and creates an interface and two
 * endpoints. Each channel of an endpoint has its CQ, DBRECs and ring in one umem of
 * GPU memory. After UCX has connected the endpoints, the driver posts RDMA writes by
 * hand through their device structs. The GPU is that of the stand-in CUDA driver
 * (tests/standin). This file defines the functions of UCX's CUDA modules.
 */
#include "config.h"

#include <dlfcn.h>
#include <infiniband/mlx5dv.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <uct/api/uct.h>
#include <uct/api/v2/uct_v2.h>
#include <uct/base/uct_md.h>
#include <uct/cuda/base/cuda_ctx.h>
#include <uct/cuda/base/cuda_nvml.h>
#include <uct/cuda/base/cuda_util.h>
#include <uct/cuda/cuda_copy/cuda_copy_md.h>

#include "gdaki.h"

#define CHANNELS 4
#define WRITES	 5
#define BYTES	 64

#define MUST(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			exit(1); \
		} \
	} while (0)

/* ---- functions of the CUDA driver that the stand-in lacks ---- */

CUresult cuDeviceGetCount(int *count)
{
	*count = 1;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *bdf, int len, CUdevice device)
{
	(void)device;
	snprintf(bdf, (size_t)len, "0000:8A:00.0");
	return CUDA_SUCCESS;
}

/* Zeroed, as the real driver does with reused memory: UCX writes the DBRECs only after RTS. */
CUresult cuMemAlloc(CUdeviceptr *ptr, size_t size)
{
	CUresult (*real)(CUdeviceptr *, size_t);
	CUresult rc;

	*(void **)&real = dlsym(RTLD_NEXT, "cuMemAlloc_v2");
	rc = real(ptr, size);
	if (!rc)
		memset((void *)*ptr, 0, size);
	return rc;
}

CUresult cuMemcpyHtoD(CUdeviceptr dst, const void *src, size_t len)
{
	memcpy((void *)dst, src, len);
	return CUDA_SUCCESS;
}

/* ---- UCX's CUDA modules ---- */

const char *uct_cuda_cu_get_error_string(CUresult result)
{
	static char text[16];

	snprintf(text, sizeof(text), "%d", result);
	return text;
}

int uct_cuda_copy_md_is_dmabuf_supported(void)
{
	return 0;
}

uct_cuda_copy_md_dmabuf_t uct_cuda_copy_md_get_dmabuf(const void *address, size_t length,
						      ucs_sys_device_t sys_dev)
{
	uct_cuda_copy_md_dmabuf_t none = { .fd = UCT_DMABUF_FD_INVALID };

	(void)address, (void)length, (void)sys_dev;
	return none;
}

ucs_status_t uct_cuda_ctx_primary_push(CUdevice device, int retain, ucs_log_level_t level)
{
	CUcontext ctx;

	(void)retain, (void)level;
	MUST(!cuInit(0) && !cuDevicePrimaryCtxRetain(&ctx, device) && !cuCtxPushCurrent(ctx));
	return UCS_OK;
}

ucs_status_t uct_cuda_ctx_primary_push_first_active(CUdevice *device)
{
	*device = 0;
	return uct_cuda_ctx_primary_push(0, 1, UCS_LOG_LEVEL_ERROR);
}

void uct_cuda_ctx_primary_pop_and_release(CUdevice device)
{
	cuCtxPopCurrent(NULL);
	cuDevicePrimaryCtxRelease(device);
}

ucs_sys_device_t uct_cuda_get_sys_dev(CUdevice device)
{
	(void)device;
	return UCS_SYS_DEVICE_ID_UNKNOWN;
}

/* UCX calls these functions only to search for devices, which this driver does not need. */
#define NONE(name, ...) \
	ucs_status_t uct_cuda_##name(__VA_ARGS__) \
	{ \
		return UCS_ERR_UNSUPPORTED; \
	}
NONE(nvmlDeviceGetCount_v2, unsigned *count)
NONE(nvmlDeviceGetHandleByIndex, unsigned index, nvmlDevice_t *device)
NONE(nvmlDeviceGetPciInfo_v3, nvmlDevice_t device, nvmlPciInfo_t *info)

/* ---- UCX ---- */

static ucs_async_context_t *async;
static uct_worker_h worker;
static uct_md_h md;
static uct_iface_h iface;

static void open_md(void)
{
	uct_component_attr_t attr = { .field_mask = UCT_COMPONENT_ATTR_FIELD_NAME };
	uct_component_h *list;
	uct_md_config_t *config;
	unsigned int n, i;

	MUST(!ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async));
	MUST(!uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker));
	MUST(!uct_query_components(&list, &n));
	for (i = 0; i < n; i++) {
		MUST(!uct_component_query(list[i], &attr));
		if (strcmp(attr.name, "ib"))
			continue;
		MUST(!uct_md_config_read(list[i], NULL, NULL, &config));
		MUST(!uct_md_open(list[i], "mlx5_0", config, &md));
		uct_config_release(config);
	}
	uct_release_component_list(list);
	MUST(md);
}

static void open_iface(void)
{
	uct_iface_params_t params = {
		.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE,
		.open_mode = UCT_IFACE_OPEN_MODE_DEVICE,
		.mode.device = { .tl_name = "rc_gda", .dev_name = "cuda0-mlx5_0:1" },
	};
	uct_iface_config_t *config;

	MUST(!uct_md_iface_config_read(md, "rc_gda", NULL, NULL, &config));
	MUST(!uct_iface_open(md, worker, &params, config, &iface));
	uct_config_release(config);
}

static uct_ep_h make_ep(void)
{
	uct_ep_params_t params = { .field_mask = UCT_EP_PARAM_FIELD_IFACE, .iface = iface };
	uct_ep_h ep;

	MUST(!uct_ep_create(&params, &ep));
	return ep;
}

static void connect_to(uct_ep_h ep, uct_ep_h peer)
{
	uct_ep_connect_to_ep_params_t params = { 0 };
	uint8_t dev_addr[256], ep_addr[256];

	MUST(!uct_iface_get_device_address(iface, (uct_device_addr_t *)dev_addr));
	MUST(!uct_ep_get_address(peer, (uct_ep_addr_t *)ep_addr));
	MUST(!uct_ep_connect_to_ep_v2(ep, (uct_device_addr_t *)dev_addr, (uct_ep_addr_t *)ep_addr,
				      &params));
}

/* ---- traffic: each channel writes its part of the memory ---- */

struct wqe {
	struct mlx5_wqe_ctrl_seg ctrl;
	struct mlx5_wqe_raddr_seg remote;
	struct mlx5_wqe_data_seg local;
};

static uint8_t mem[2][CHANNELS * WRITES * BYTES];
static struct ibv_mr *mr;

static void put(uct_rc_gdaki_dev_ep_t *dev, unsigned int channel, unsigned int n)
{
	uct_rc_gdaki_dev_qp_t *qp = &dev->qps[channel];
	size_t at = (channel * WRITES + n) * BYTES;
	struct wqe *wqe = (struct wqe *)(dev->sq_wqe_daddr +
					 (channel * dev->sq_wqe_num + n) * MLX5_SEND_WQE_BB);

	memset(wqe, 0, MLX5_SEND_WQE_BB);
	mlx5dv_set_ctrl_seg(&wqe->ctrl, (uint16_t)n, MLX5_OPCODE_RDMA_WRITE, 0, qp->sq_num,
			    MLX5_WQE_CTRL_CQ_UPDATE, sizeof(*wqe) / 16, 0, 0);
	wqe->remote.raddr = htobe64((uintptr_t)mem[1] + at);
	wqe->remote.rkey = htobe32(mr->rkey);
	mlx5dv_set_data_seg(&wqe->local, BYTES, mr->lkey, (uintptr_t)mem[0] + at);
	__sync_synchronize();
	((volatile uint32_t *)qp->qp_dbrec)[1] = htobe32(n + 1);
	__sync_synchronize();
	*(volatile uint64_t *)qp->sq_db = *(uint64_t *)wqe;
}

/* Waits until the one entry of the CQ is the CQE of WQE `index`. The CQ's DBREC follows the
 * entry and must still be 0. */
static void wait_for(uct_rc_gdaki_dev_qp_t *qp, uint16_t index)
{
	volatile struct mlx5_cqe64 *cqe = (volatile struct mlx5_cqe64 *)qp->cq_buff;
	int ms;

	for (ms = 0; ms < 10000 && be16toh(cqe->wqe_counter) != index; ms++)
		usleep(1000);
	MUST(be16toh(cqe->wqe_counter) == index);
	MUST(cqe->op_own >> 4 == MLX5_CQE_REQ);
	MUST(!qp->cq_dbrec[0] && !qp->cq_dbrec[1]);
}

static void use(uct_ep_h ep)
{
	uct_rc_gdaki_dev_ep_t *dev;
	uct_device_ep_h device_ep;
	unsigned int channel, n;

	MUST(!uct_ep_get_device_ep(ep, &device_ep));
	dev = (uct_rc_gdaki_dev_ep_t *)device_ep;
	MUST(dev->channel_mask == CHANNELS - 1);
	memset(mem[1], 0, sizeof(mem[1]));
	for (channel = 0; channel < CHANNELS; channel++) {
		for (n = 0; n < WRITES; n++)
			put(dev, channel, n);
		wait_for(&dev->qps[channel], WRITES - 1);
	}
	MUST(!memcmp(mem[0], mem[1], sizeof(mem[0])));
}

int main(void)
{
	uct_ep_h ep[2];
	size_t i;

	open_md();
	open_iface();
	for (i = 0; i < sizeof(mem[0]); i++)
		mem[0][i] = (uint8_t)(i * 7 + 1);
	mr = ibv_reg_mr(ucs_derived_of(md, uct_ib_md_t)->pd, mem, sizeof(mem),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	MUST(mr);
	for (i = 0; i < 2; i++)
		ep[i] = make_ep();
	for (i = 0; i < 2; i++)
		connect_to(ep[i], ep[!i]);
	for (i = 0; i < 2; i++)
		use(ep[i]);
	for (i = 0; i < 2; i++)
		uct_ep_destroy(ep[i]);
	uct_iface_close(iface);
	ibv_dereg_mr(mr);
	uct_md_close(md);
	uct_worker_destroy(worker);
	ucs_async_context_destroy(async);
	printf("%d channels, each CQ, DBRECs and ring in one umem, created and connected, "
	       "%d writes each, data right\n",
	       2 * CHANNELS, WRITES);
	return 0;
}
