/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Calls each function of the SDK's base (devices, contexts, progress engines, memory, buffers,
 * semaphores, log) with arguments of the types that programs for the SDK pass: NVIDIA's samples in
 * C, NIXL in C++. tests/doca_calls.sh compiles this file as C11, C++17 and CUDA, and links it. It
 * is not executed: main() does nothing without arguments.
 */
#include <stdio.h>
#include <string.h>

#include <doca_bitfield.h>
#include <doca_buf.h>
#include <doca_buf_array.h>
#include <doca_buf_inventory.h>
#include <doca_buf_pool.h>
#include <doca_ctx.h>
#include <doca_dev.h>
#include <doca_error.h>
#include <doca_gpunetio.h>
#include <doca_log.h>
#include <doca_mmap.h>
#include <doca_pe.h>
#include <doca_rdma_bridge.h>
#include <doca_types.h>
#include <doca_version.h>
#if defined(__cplusplus)
#include <doca_gpunetio_dev_buf.cuh>
#include <doca_gpunetio_dev_sem.cuh>
#else
#include <gdk_sdk_buf_dev.h>
#include <gdk_sdk_semaphore_dev.h>
#endif

DOCA_LOG_REGISTER(GPU_DMA_MEMCPY::SAMPLE);

#define CALL(call) \
	do { \
		doca_error_t err_ = call; \
\
		if (err_ != DOCA_SUCCESS) { \
			DOCA_LOG_ERR("%s: %s, %s", #call, doca_error_get_name(err_), \
				     doca_error_get_descr(err_)); \
			return err_; \
		} \
	} while (0)

struct objects {
	struct doca_dev *dev;
	struct doca_gpu *gpu;
	struct doca_mmap *mmap, *remote;
	struct doca_buf_inventory *inventory;
	struct doca_buf_pool *pool;
	struct doca_buf *buf, *other;
	struct doca_buf_arr *buf_arr;
	struct doca_gpu_buf_arr *buf_arr_gpu;
	struct doca_gpu_semaphore *sem;
	struct doca_gpu_semaphore_gpu *sem_gpu;
	struct doca_pe *pe;
	struct doca_ctx *ctx;
	void *memory;
	size_t size;
};

static doca_error_t set_log(void)
{
	struct doca_log_backend *sdk_log;
	enum doca_log_level level = DOCA_LOG_LEVEL_WARNING;

	CALL(doca_log_backend_create_standard());
	CALL(doca_log_backend_create_with_file_sdk(stderr, &sdk_log));
	CALL(doca_log_backend_set_sdk_level(sdk_log, level));
	CALL(doca_log_level_set_global_sdk_limit(DOCA_LOG_LEVEL_ERROR));
	DOCA_LOG_INFO("DOCA version: %s", doca_version());
	DOCA_LOG_WARN("%d of %zu", 1, sizeof(level));
	DOCA_LOG_DBG("no arguments");
	return DOCA_SUCCESS;
}

static doca_error_t look_at(struct doca_devinfo *info, const char *pci_addr, uint8_t *is_equal)
{
	char ibdev[DOCA_DEVINFO_IBDEV_NAME_SIZE] = "", iface[DOCA_DEVINFO_IFACE_NAME_SIZE] = "";
	char pci[DOCA_DEVINFO_PCI_ADDR_SIZE] = "";
	char ipv4[DOCA_DEVINFO_IPV4_ADDR_SIZE + DOCA_DEVINFO_IPV6_ADDR_SIZE + DOCA_GID_BYTE_LENGTH];
	enum doca_pci_func_type type;
	uint32_t sf_index;

	CALL(doca_devinfo_is_equal_pci_addr(info, pci_addr, is_equal));
	CALL(doca_devinfo_get_ibdev_name(info, ibdev, DOCA_DEVINFO_IBDEV_NAME_SIZE));
	CALL(doca_devinfo_get_iface_name(info, iface, DOCA_DEVINFO_IFACE_NAME_SIZE));
	CALL(doca_devinfo_get_pci_addr_str(info, pci));
	CALL(doca_devinfo_get_ipv4_addr(info, (uint8_t *)ipv4, DOCA_DEVINFO_IPV4_ADDR_SIZE));
	CALL(doca_devinfo_get_pci_func_type(info, &type));
	if (type == DOCA_PCI_FUNC_TYPE_SF)
		CALL(doca_devinfo_get_sf_index(info, &sf_index));
	return DOCA_SUCCESS;
}

static doca_error_t open_device(struct objects *o, const char *pci_addr, struct ibv_pd *pd)
{
	struct doca_devinfo **dev_list;
	uint8_t is_equal = 0;
	uint32_t nb_devs;

	CALL(doca_devinfo_create_list(&dev_list, &nb_devs));
	for (size_t i = 0; i < nb_devs && !is_equal; i++)
		CALL(look_at(dev_list[i], pci_addr, &is_equal));
	CALL(doca_dev_open(dev_list[0], &o->dev));
	CALL(doca_devinfo_destroy_list(dev_list));
	CALL(doca_rdma_bridge_open_dev_from_pd(pd, &o->dev));
	CALL(look_at(doca_dev_as_devinfo(o->dev), pci_addr, &is_equal));
	CALL(doca_gpu_create(pci_addr, &o->gpu));
	return DOCA_SUCCESS;
}

static doca_error_t open_representor(struct objects *o, const char *pci_addr)
{
	enum doca_devinfo_rep_filter filter = (enum doca_devinfo_rep_filter)0;
	struct doca_devinfo_rep **list = NULL;
	char vuid[DOCA_DEVINFO_REP_VUID_SIZE];
	struct doca_dev_rep *rep;
	uint32_t nb_rdevs = 0;
	uint8_t is_equal;

	CALL(doca_devinfo_rep_create_list(o->dev, filter, &list, &nb_rdevs));
	CALL(doca_devinfo_rep_get_vuid(list[0], vuid, DOCA_DEVINFO_REP_VUID_SIZE));
	CALL(doca_devinfo_rep_is_equal_pci_addr(list[0], pci_addr, &is_equal));
	CALL(doca_dev_rep_open(list[0], &rep));
	CALL(doca_devinfo_rep_destroy_list(list));
	return DOCA_SUCCESS;
}

static doca_error_t map_memory(struct objects *o)
{
	const void *export_desc;
	size_t export_len;
	uint32_t mkey;
	int dmabuf_fd;

	CALL(doca_gpu_mem_alloc(o->gpu, o->size, 4096, DOCA_GPU_MEM_TYPE_GPU, &o->memory, NULL));
	CALL(doca_mmap_create(&o->mmap));
	CALL(doca_mmap_add_dev(o->mmap, o->dev));
	if (doca_gpu_dmabuf_fd(o->gpu, o->memory, o->size, &dmabuf_fd) != DOCA_SUCCESS)
		CALL(doca_mmap_set_memrange(o->mmap, o->memory, o->size));
	else
		CALL(doca_mmap_set_dmabuf_memrange(o->mmap, dmabuf_fd, o->memory, 0, o->size));
	CALL(doca_mmap_set_permissions(
		o->mmap, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE |
				 DOCA_ACCESS_FLAG_RDMA_READ | DOCA_ACCESS_FLAG_RDMA_ATOMIC |
				 DOCA_ACCESS_FLAG_PCI_RELAXED_ORDERING));
	CALL(doca_mmap_start(o->mmap));
	CALL(doca_mmap_get_mkey(o->mmap, o->dev, &mkey));
	CALL(doca_mmap_export_rdma(o->mmap, o->dev, &export_desc, &export_len));
	CALL(doca_mmap_create_from_export(NULL, export_desc, export_len, o->dev, &o->remote));
	return DOCA_SUCCESS;
}

static doca_error_t use_buffers(struct objects *o)
{
	uint8_t *data;

	CALL(doca_buf_inventory_create(2, &o->inventory));
	CALL(doca_buf_inventory_start(o->inventory));
	CALL(doca_buf_inventory_buf_get_by_addr(o->inventory, o->mmap, o->memory, 64, &o->buf));
	CALL(doca_buf_inventory_buf_get_by_data(o->inventory, o->mmap, o->memory, 64, &o->other));
	CALL(doca_buf_set_data(o->buf, o->memory, 32));
	CALL(doca_buf_chain_list(o->buf, o->other));
	CALL(doca_buf_dec_refcount(o->buf, NULL));
	CALL(doca_buf_inventory_destroy(o->inventory));
	CALL(doca_buf_pool_create(4, 1024, o->mmap, &o->pool));
	CALL(doca_buf_pool_start(o->pool));
	CALL(doca_buf_pool_buf_alloc(o->pool, &o->buf));
	CALL(doca_buf_get_data(o->buf, (void **)&data));
	CALL(doca_buf_set_data_len(o->buf, 54));
	CALL(doca_buf_dec_refcount(o->buf, NULL));
	CALL(doca_buf_pool_stop(o->pool));
	CALL(doca_buf_pool_destroy(o->pool));
	return DOCA_SUCCESS;
}

static doca_error_t use_buf_arr(struct objects *o)
{
	uint32_t num_elem = 4;

	CALL(doca_buf_arr_create(num_elem, &o->buf_arr));
	CALL(doca_buf_arr_set_target_gpu(o->buf_arr, o->gpu));
	CALL(doca_buf_arr_set_params(o->buf_arr, o->mmap, o->size / 4, 0));
	CALL(doca_buf_arr_start(o->buf_arr));
	CALL(doca_buf_arr_get_gpu_handle(o->buf_arr, &o->buf_arr_gpu));
	CALL(doca_buf_arr_stop(o->buf_arr));
	CALL(doca_buf_arr_destroy(o->buf_arr));
	return DOCA_SUCCESS;
}

static doca_error_t use_semaphore(struct objects *o)
{
	enum doca_gpu_semaphore_status status;
	uint64_t *info;

	CALL(doca_gpu_semaphore_create(o->gpu, &o->sem));
	CALL(doca_gpu_semaphore_set_memory_type(o->sem, DOCA_GPU_MEM_TYPE_CPU_GPU));
	CALL(doca_gpu_semaphore_set_items_num(o->sem, 1024));
	CALL(doca_gpu_semaphore_set_custom_info(o->sem, sizeof(*info), DOCA_GPU_MEM_TYPE_GPU_CPU));
	CALL(doca_gpu_semaphore_start(o->sem));
	CALL(doca_gpu_semaphore_get_gpu_handle(o->sem, &o->sem_gpu));
	CALL(doca_gpu_semaphore_get_status(o->sem, 0, &status));
	if (status == DOCA_GPU_SEMAPHORE_STATUS_READY)
		CALL(doca_gpu_semaphore_get_custom_info_addr(o->sem, 0, (void **)&info));
	CALL(doca_gpu_semaphore_set_status(o->sem, 0, DOCA_GPU_SEMAPHORE_STATUS_FREE));
	CALL(doca_gpu_semaphore_stop(o->sem));
	CALL(doca_gpu_semaphore_destroy(o->sem));
	return DOCA_SUCCESS;
}

static doca_error_t stop(struct objects *o)
{
	doca_error_t result = DOCA_SUCCESS, tmp_result = doca_ctx_stop(o->ctx);
	enum doca_ctx_states state = DOCA_CTX_STATE_STOPPING;

	while (tmp_result == DOCA_ERROR_IN_PROGRESS && state != DOCA_CTX_STATE_IDLE) {
		if (doca_pe_progress(o->pe) == 0)
			continue;
		CALL(doca_ctx_get_state(o->ctx, &state));
	}
	DOCA_ERROR_PROPAGATE(result, tmp_result);
	return result;
}

static doca_error_t use_context(struct objects *o)
{
	union doca_data user_data = { 0 };

	CALL(doca_pe_create(&o->pe));
	CALL(doca_pe_connect_ctx(o->pe, o->ctx));
	CALL(doca_ctx_set_datapath_on_gpu(o->ctx, o->gpu));
	user_data.ptr = o;
	CALL(doca_ctx_set_user_data(o->ctx, user_data));
	user_data.u64 = 1;
	CALL(doca_ctx_get_user_data(o->ctx, &user_data));
	CALL(doca_ctx_start(o->ctx));
	CALL(stop(o));
	CALL(doca_pe_destroy(o->pe));
	return DOCA_SUCCESS;
}

static doca_error_t close_all(struct objects *o)
{
	CALL(doca_mmap_stop(o->mmap));
	CALL(doca_mmap_rm_dev(o->mmap, o->dev));
	CALL(doca_mmap_destroy(o->mmap));
	CALL(doca_gpu_mem_free(o->gpu, o->memory));
	CALL(doca_gpu_destroy(o->gpu));
	CALL(doca_dev_close(o->dev));
	return DOCA_SUCCESS;
}

/* What kernels call; with nvcc on the device. */
GDK_FN doca_error_t call_device(struct doca_gpu_buf_arr *arr, struct doca_gpu_semaphore_gpu *sem,
				uint32_t idx)
{
	enum doca_gpu_semaphore_status status;
	struct doca_gpu_buf *buf = NULL;
	uint64_t *info = NULL, rx_buf_idx = 0;
	uintptr_t addr = 0;
	uint32_t mkey = 0, rx_pkt_num = 0;
	doca_error_t ret;

	ret = doca_gpu_dev_buf_get_buf(arr, idx, &buf);
	if (ret != DOCA_SUCCESS)
		return ret;
	doca_gpu_dev_buf_get_addr(buf, &addr);
	doca_gpu_dev_buf_get_mkey(buf, &mkey);
	ret = doca_gpu_dev_semaphore_get_status(sem, idx, &status);
	if (ret == DOCA_SUCCESS && status == DOCA_GPU_SEMAPHORE_STATUS_READY)
		ret = doca_gpu_dev_semaphore_get_custom_info_addr(sem, idx, (void **)&info);
	doca_gpu_dev_semaphore_set_status(sem, idx, DOCA_GPU_SEMAPHORE_STATUS_DONE);
	doca_gpu_dev_semaphore_set_packet_info(sem, idx, DOCA_GPU_SEMAPHORE_STATUS_READY,
					       rx_pkt_num, rx_buf_idx);
	ret = doca_gpu_dev_semaphore_get_packet_info_status(
		sem, idx, DOCA_GPU_SEMAPHORE_STATUS_READY, &rx_pkt_num, &rx_buf_idx);
	return addr && mkey && info ? ret : DOCA_ERROR_NOT_FOUND;
}

#ifdef __CUDACC__
__global__ void kernel(struct doca_gpu_buf_arr *arr, struct doca_gpu_semaphore_gpu *sem)
{
	if (call_device(arr, sem, threadIdx.x) != DOCA_SUCCESS)
		printf("thread %u failed\n", threadIdx.x);
}
#else
static doca_error_t kernel(struct doca_gpu_buf_arr *arr, struct doca_gpu_semaphore_gpu *sem)
{
	return call_device(arr, sem, 0);
}
#endif

int main(int argc, char **argv)
{
	struct objects o;

	if (argc < 2)
		return 0;
	memset(&o, 0, sizeof(o));
	o.size = 65536;
	if (set_log() || open_device(&o, argv[1], NULL) || open_representor(&o, argv[1]) ||
	    map_memory(&o) || use_buffers(&o) || use_buf_arr(&o) || use_semaphore(&o))
		return 1;
#ifdef __CUDACC__
	kernel<<<1, 32>>>(o.buf_arr_gpu, o.sem_gpu);
#else
	kernel(o.buf_arr_gpu, o.sem_gpu);
#endif
	return use_context(&o) || close_all(&o);
}
