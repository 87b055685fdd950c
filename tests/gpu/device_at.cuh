/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Abbreviations for the operations of the GPU test, and the addresses of an
 * operation's cells. `mode` is the sharing mode of this compilation. */
#ifndef GT_DEVICE_AT_CUH
#define GT_DEVICE_AT_CUH

#include "common/doca_gpunetio_verbs_def.h"
#include "device.h"
#if GT_CHUNK_SHIFT != DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE_SHIFT
#undef DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE_SHIFT /* overrides the limit before its first use */
#define DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE_SHIFT GT_CHUNK_SHIFT
#endif
#include "../../examples/common/cuda_shim.h"
#define GDK_BOTH_SHAPES /* the RDMA library has the SDK's interface */
#ifdef GT_DEBUG
__device__ static void gt_log_text(const char *text);
#define GDK_DEBUG_PRINT(text) gt_log_text(text)
#endif
#include "device/doca_gpunetio_dev_verbs_counter.cuh"
#include "doca_gpunetio_device.h"

#define CAT_(a, b) a##b
#define CAT(a, b)  CAT_(a, b)
#define HANDLER(h) DOCA_GPUNETIO_VERBS_NIC_HANDLER_##h

/* An unnamed namespace, because the compilations for different modes are linked together. */
namespace
{
static constexpr auto mode = CAT(DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_, GT_MODE);
static constexpr auto nic_handler = HANDLER(AUTO);
static constexpr auto THREAD = DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD;
static constexpr auto WARP = DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP;
static constexpr auto BLOCK = GDK_EXEC_SCOPE_BLOCK;
static constexpr auto ADD = DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD;
static constexpr auto SET = GDK_SIGNAL_OP_SET;
static constexpr auto DUMP = DOCA_GPUNETIO_VERBS_MCST_ENABLED;
static constexpr auto SIGNALLED = DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE;
static constexpr auto SKIP_DB = DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_DB_RINGING;
static constexpr auto UNSIGNALLED = DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_ERROR_UPDATE;

typedef enum doca_gpu_dev_verbs_exec_scope scope_type;
typedef enum doca_gpu_dev_verbs_resource_sharing_mode mode_type;
typedef struct doca_gpu_dev_verbs_qp qp_type;
typedef struct doca_gpu_dev_verbs_addr addr_type;
typedef doca_gpu_dev_verbs_ticket_t ticket_type;

/* Addresses of one operation's cells. Suffix _r or _l: with the rkey or the lkey where
 * the plain name has the other key. third: the cell that GT_FENCE writes at old. counter:
 * counter 0. count and count_old: counter 1 and the word that receives its old value. */
struct op_at {
	uint64_t k;
	addr_type src, dst, src_r, dst_l, old, old_r, third, counter, count, count_old;
	uint8_t *cell; /* address of the cell at src for the GPU; stamp() fills the cell */
	uint32_t size; /* bytes that the operation moves */
};

__device__ static addr_type addr_of(const struct gt_job &j, uint64_t off, uint32_t key)
{
	addr_type a;

	a.addr = j.nic + off;
	a.key = key;
	return a;
}

__device__ static struct op_at op_at(const struct gt_job &j, uint64_t k)
{
	struct op_at o;

	o.k = k;
	o.src = addr_of(j, j.src + k * j.size, j.lkey_be);
	o.dst = addr_of(j, j.dst + k * j.size, j.rkey_be);
	o.src_r = addr_of(j, j.src + k * j.size, j.rkey_be);
	o.dst_l = addr_of(j, j.dst + k * j.size, j.lkey_be);
	o.old = addr_of(j, j.old + 8 * k, j.lkey_be);
	o.old_r = addr_of(j, j.old + 8 * k, j.rkey_be);
	o.third = addr_of(j, j.old + k * j.size, j.rkey_be);
	o.counter = addr_of(j, j.counters, j.rkey_be);
	o.count = addr_of(j, j.counters + 8, j.rkey_be);
	o.count_old = addr_of(j, j.old + GT_OLD_HALF + 8 * k, j.lkey_be);
	o.cell = j.gpu + j.src + k * j.size;
	o.size = gt_length(&j, k);
	return o;
}

__device__ static void stamp(const struct gt_job &j, const struct op_at &o)
{
	for (uint32_t i = 0; i < j.size; i += 8)
		*(volatile uint64_t *)(o.cell + i) = gt_word(o.k, i / 8, j.seed);
}

__device__ static int compare(const struct gt_job &j, const struct op_at &o)
{
	const volatile uint8_t *got = j.gpu + j.dst + o.k * j.size;

	for (uint32_t i = 0; i < o.size; i++)
		if (got[i] != gt_byte(o.k, i, j.seed))
			return GT_EBADDATA;
	return 0;
}

template <uint32_t bytes> struct chunk {
	uint8_t b[bytes];
};

template <uint32_t bytes>
__device__ struct chunk<bytes> chunk_of(const struct gt_job &j, uint64_t k) {
	struct chunk<bytes> v;

	for (uint32_t i = 0; i < bytes; i++)
		v.b[i] = gt_byte(k, i, j.seed);
	return v;
}

} // namespace

#endif
