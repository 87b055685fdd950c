/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Posting one operation of the GPU test, with the DOCA device API. mode is the
 * sharing mode of this compilation; nothing here waits, but for blocking gets.
 */
#ifndef GT_DEVICE_OPS_CUH
#define GT_DEVICE_OPS_CUH

#include "common/doca_gpunetio_verbs_def.h"
#include "device.h"
#if GT_CHUNK_SHIFT != DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE_SHIFT
#undef DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE_SHIFT /* before anything uses it */
#define DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE_SHIFT GT_CHUNK_SHIFT
#endif
#include "../lib/cuda_shim.h"
#include "device/doca_gpunetio_dev_verbs_counter.cuh"
#include "doca_gpunetio_device.h"

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define HANDLER(h) DOCA_GPUNETIO_VERBS_NIC_HANDLER_##h

/* The compilations differ in mode: what one has is not another's. */
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

/* One operation: where its cells are. */
struct op_at {
	uint64_t k;
	addr_type src, dst, src_r, dst_l, old, old_r, third, counter, count, count_old;
	uint8_t *cell; /* of src, to be written */
	uint32_t size; /* of its bytes move */
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
		if (got[i] != (uint8_t)(gt_word(o.k, i / 8, j.seed) >> 8 * (i % 8)))
			return GT_EBADDATA;
	return 0;
}

template <uint32_t bytes>
struct chunk {
	uint8_t b[bytes];
};

template <uint32_t bytes>
__device__ struct chunk<bytes> chunk_of(const struct gt_job &j, uint64_t k)
{
	struct chunk<bytes> v;

	for (uint32_t i = 0; i < bytes; i++)
		v.b[i] = (uint8_t)(gt_word(k, i / 8, j.seed) >> 8 * (i % 8));
	return v;
}

template <int op, scope_type scope, uint32_t bytes>
__device__ int p_bytes(const struct gt_job &j, qp_type *qp, qp_type *companion,
			const struct op_at &o, ticket_type *t)
{
	typedef struct chunk<bytes> type;
	const type v = chunk_of<bytes>(j, o.k);

	if constexpr (op == GT_P_SIGNAL)
		return doca_gpu_dev_verbs_p_signal<type, ADD, mode, nic_handler, scope>(
			qp, o.dst, v, o.counter, o.old, 1, t);
	else if constexpr (op == GT_P_COUNTER)
		return doca_gpu_dev_verbs_p_counter<type, mode, nic_handler>(
			qp, o.dst, v, companion, o.count, o.count_old, 1);
	else
		return doca_gpu_dev_verbs_p<type, mode, nic_handler, scope>(qp, o.dst, v, t);
}

template <int op, scope_type scope>
__device__ int post_p(const struct gt_job &j, qp_type *qp, qp_type *companion,
		       const struct op_at &o, ticket_type *t)
{
	if (j.size == 1)
		return p_bytes<op, scope, 1>(j, qp, companion, o, t);
	if (j.size == 2)
		return p_bytes<op, scope, 2>(j, qp, companion, o, t);
	if (j.size == 4)
		return p_bytes<op, scope, 4>(j, qp, companion, o, t);
	if (j.size == 8)
		return p_bytes<op, scope, 8>(j, qp, companion, o, t);
	if (j.size == 28)
		return p_bytes<op, scope, 28>(j, qp, companion, o, t);
	if (j.size == 60)
		return p_bytes<op, scope, 60>(j, qp, companion, o, t);
	return p_bytes<op, scope, 100>(j, qp, companion, o, t);
}

__device__ static struct doca_gpu_dev_verbs_wqe *slot(qp_type *qp, uint64_t index)
{
	return doca_gpu_dev_verbs_get_wqe_ptr(qp, (uint16_t)index);
}

/* A NOP that makes no CQE and the write of the cell, published together. */
__device__ static int post_low(qp_type *qp, const struct op_at &o,
			       ticket_type *t, uint32_t code_opt)
{
	uint64_t at;
	int err = gdk_reserve(qp, 2, mode, 0, &at);

	*t = at + 1;
	if (err)
		return err;
	doca_gpu_dev_verbs_wqe_prepare_nop(qp, slot(qp, at), (uint16_t)at, UNSIGNALLED);
	doca_gpu_dev_verbs_wqe_prepare_write(qp, slot(qp, at + 1), (uint16_t)(at + 1),
					     DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, SIGNALLED, 0,
					     o.dst.addr, o.dst.key, o.src.addr, o.src.key, o.size);
	doca_gpu_dev_verbs_mark_wqes_ready<mode>(qp, at, at + 1);
	doca_gpu_dev_verbs_submit<mode>(qp, at + 2, code_opt);
	return 0;
}

/* A copy of the WQE in shared memory goes to the register. */
__device__ static int post_low_bf(qp_type *qp, const struct op_at &o,
				  ticket_type *t)
{
	__shared__ __align__(64) struct doca_gpu_dev_verbs_wqe copy[GT_BLOCK_MAX];
	struct doca_gpu_dev_verbs_wqe *wqe = &copy[threadIdx.x];
	int err = gdk_reserve(qp, 1, mode, 0, t);

	if (err)
		return err;
	doca_gpu_dev_verbs_wqe_prepare_write(qp, wqe, (uint16_t)*t,
					     DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, SIGNALLED, 0,
					     o.dst.addr, o.dst.key, o.src.addr, o.src.key, o.size);
	doca_gpu_dev_verbs_wqe_prepare_write(qp, slot(qp, *t), (uint16_t)*t,
					     DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, SIGNALLED, 0,
					     o.dst.addr, o.dst.key, o.src.addr, o.src.key, o.size);
	doca_gpu_dev_verbs_mark_wqes_ready<mode>(qp, *t, *t);
	doca_gpu_dev_verbs_submit_bf<mode>(qp, *t + 1, wqe);
	return 0;
}

/* Every third operation has a NOP before it, every second does not ring. */
__device__ static int post_imm(qp_type *qp, const struct op_at &o,
			       ticket_type *t)
{
	const uint32_t nops = o.k % 3 == 0, code_opt = o.k % 2 ? SKIP_DB : 0;
	uint64_t at;
	int err = gdk_reserve(qp, nops + 1, mode, 0, &at);

	*t = at + nops;
	if (err)
		return err;
	if (nops)
		doca_gpu_dev_verbs_wqe_prepare_nop(qp, slot(qp, at), (uint16_t)at, UNSIGNALLED);
	doca_gpu_dev_verbs_wqe_prepare_write(
		qp, slot(qp, *t), (uint16_t)*t, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE_IMM,
		SIGNALLED, doca_gpu_dev_verbs_bswap32((uint32_t)*t), o.dst.addr, o.dst.key,
		o.src.addr, o.src.key, o.size);
	doca_gpu_dev_verbs_mark_wqes_ready<mode>(qp, at, *t);
	doca_gpu_dev_verbs_submit<mode>(qp, *t + 1, code_opt);
	return 0;
}

template <enum doca_gpu_dev_verbs_nic_handler handler>
__device__ static int put_by(const struct gt_job &j, qp_type *qp, const struct op_at &o,
			      ticket_type *t)
{
	return doca_gpu_dev_verbs_put<mode, handler>(qp, o.dst, o.src, o.size, t, j.code_opt);
}

__device__ static int post_put_by(const struct gt_job &j, qp_type *qp, const struct op_at &o,
				   ticket_type *t)
{
	if (j.handler == HANDLER(CPU_PROXY))
		return put_by<HANDLER(CPU_PROXY)>(j, qp, o, t);
	if (j.handler == HANDLER(GPU_SM_DB))
		return put_by<HANDLER(GPU_SM_DB)>(j, qp, o, t);
	if (j.handler == HANDLER(GPU_SM_NO_DBR))
		return put_by<HANDLER(GPU_SM_NO_DBR)>(j, qp, o, t);
	return put_by<HANDLER(GPU_SM_BF)>(j, qp, o, t);
}

/* A masked compare-and-swap, a WQE of two slots: whatever the first word of the
 * cell is becomes its value; the old one, which is 0 but once, lands in old. */
__device__ static int post_long(const struct gt_job &j, qp_type *qp, const struct op_at &o,
				ticket_type *t)
{
	const uint64_t v = gt_word(o.k, 0, j.seed);
	uint64_t at;
	int err = gdk_reserve(qp, 2, mode, 0, &at);

	*t = at;
	if (err)
		return err;
	doca_gpu_dev_verbs_wqe_prepare_atomic_ext<DOCA_GPUNETIO_VERBS_ATOMIC_EXT_BYTES_8>(
		qp, slot(qp, at), slot(qp, at + 1), (uint16_t)at,
		DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_CS, SIGNALLED, o.dst.addr, o.dst.key,
		o.old.addr, o.old.key, 0, 0, v, 0, UINT64_MAX, 0);
	doca_gpu_dev_verbs_mark_wqes_ready<mode>(qp, at, at + 1);
	doca_gpu_dev_verbs_submit<mode>(qp, at + 2);
	return 0;
}

__device__ static int post_put_no_db(qp_type *qp, const struct op_at &o,
				      ticket_type *t)
{
	return doca_gpu_dev_verbs_put<mode, nic_handler, THREAD>(qp, o.dst, o.src, o.size, t,
								 SKIP_DB);
}

template <scope_type scope>
__device__ int post_get(qp_type *qp, const struct op_at &o,
			 ticket_type *t)
{
	return doca_gpu_dev_verbs_get<mode, nic_handler, scope>(qp, o.src_r, o.dst_l, o.size,
								o.dst_l, t);
}

/* Without the fence the put would read its cell before the get has filled it. */
__device__ static int post_fence(qp_type *qp, const struct op_at &o,
				 ticket_type *t)
{
	int err = post_get<THREAD>(qp, o, t);

	err = err ? err : doca_gpu_dev_verbs_fence<mode, nic_handler>(qp);
	return err ? err : doca_gpu_dev_verbs_put<mode, nic_handler>(qp, o.third, o.dst_l, o.size,
								     t);
}

__device__ static int post_mix(const struct gt_job &j, qp_type *qp, const struct op_at &o,
			       ticket_type *t)
{
	switch (gt_kind(o.k, j.seed)) {
	case GT_KIND_PUT:
		return doca_gpu_dev_verbs_put<mode, nic_handler>(qp, o.dst, o.src, o.size, t);
	case GT_KIND_PUT_NO_DB:
		return post_put_no_db(qp, o, t);
	case GT_KIND_P:
		return p_bytes<GT_P, THREAD, 8>(j, qp, NULL, o, t);
	case GT_KIND_ADD:
		return doca_gpu_dev_verbs_signal<ADD, mode, nic_handler>(qp, o.counter, o.old, 1,
									 t);
	case GT_KIND_LOW_PAIR:
		return post_low(qp, o, t, 0);
	case GT_KIND_LOW_NO_DB:
		return post_low(qp, o, t, SKIP_DB);
	case GT_KIND_LONG:
		return post_long(j, qp, o, t);
	default:
		return post_get<THREAD>(qp, o, t);
	}
}

/* Operations of one WQE or two, at every scope. */
template <int op, scope_type scope>
__device__ int post_scoped(const struct gt_job &j, qp_type *qp, const struct op_at &o,
			    ticket_type *t)
{
	if constexpr (op == GT_PUT || op == GT_BARE_PUT)
		return doca_gpu_dev_verbs_put<mode, nic_handler, scope>(qp, o.dst, o.src, o.size,
									t, j.code_opt);
	if constexpr (op == GT_P || op == GT_P_SIGNAL)
		return post_p<op, scope>(j, qp, NULL, o, t);
	if constexpr (op == GT_SIGNAL)
		return doca_gpu_dev_verbs_signal<ADD, mode, nic_handler, scope>(
			qp, o.counter, o.old, 1, t);
	if constexpr (op == GT_SIGNAL_SET)
		return doca_gpu_dev_verbs_signal<SET, mode, nic_handler, scope>(
			qp, o.old_r, o.old, gt_word(o.k, 1, j.seed), t);
	if constexpr (op == GT_PUT_SIGNAL)
		return doca_gpu_dev_verbs_put_signal<ADD, mode, nic_handler, scope>(
			qp, o.dst, o.src, o.size, o.counter, o.old, 1, t);
	if constexpr (op == GT_PUT_SIGNAL_SET)
		return doca_gpu_dev_verbs_put_signal<SET, mode, nic_handler, scope>(
			qp, o.dst, o.src, o.size, o.old_r, o.old, gt_word(o.k, 1, j.seed), t);
	if constexpr (op == GT_GET || op == GT_BARE_GET)
		return post_get<scope>(qp, o, t);
	if constexpr (op == GT_GET_MCST)
		return doca_gpu_dev_verbs_get<mode, nic_handler, scope, DUMP,
				       DOCA_GPUNETIO_VERBS_BLOCKING_MODE_ENABLED>(
			qp, o.src_r, o.dst_l, o.size, o.dst_l, t);
	return -ENOSYS;
}

template <int op>
__device__ int post_counted(const struct gt_job &j, qp_type *qp, qp_type *companion,
			     const struct op_at &o)
{
	ticket_type t;

	if constexpr (op == GT_PUT_COUNTER)
		return doca_gpu_dev_verbs_put_counter<mode, nic_handler>(
			qp, o.dst, o.src, o.size, companion, o.count, o.count_old, 1);
	if constexpr (op == GT_P_COUNTER)
		return post_p<op, THREAD>(j, qp, companion, o, &t);
	if constexpr (op == GT_PUT_SIGNAL_COUNTER)
		return doca_gpu_dev_verbs_put_signal_counter<ADD, mode, nic_handler>(
			qp, o.dst, o.src, o.size, o.counter, o.old, 1, companion, o.count,
			o.count_old, 1);
	if constexpr (op == GT_SIGNAL_COUNTER)
		return doca_gpu_dev_verbs_signal_counter<ADD, mode, nic_handler>(
			qp, o.counter, o.old, 1, companion, o.count, o.count_old, 1);
	if constexpr (op == GT_GET_COUNTER)
		return doca_gpu_dev_verbs_get_counter<mode, nic_handler>(
			qp, o.src_r, o.dst_l, o.size, companion, o.count, o.count_old, 1);
	return -ENOSYS;
}

template <int op, scope_type scope>
__device__ int post(const struct gt_job &j, qp_type *qp, qp_type *companion,
		    const struct op_at &o, ticket_type *t)
{
	if constexpr (op <= GT_LAST_SCOPED || op == GT_BARE_PUT || op == GT_BARE_GET)
		return post_scoped<op, scope>(j, qp, o, t);
	if constexpr (gt_flags(op) & GT_COUNT)
		return post_counted<op>(j, qp, companion, o);
	if constexpr (op == GT_GET_WAIT) {
		const int err = post_get<THREAD>(qp, o, t);

		return err ? err : doca_gpu_dev_verbs_get_wait<mode, nic_handler, DUMP>(
					   qp, o.dst_l, *t);
	}
	if constexpr (op == GT_FENCE)
		return post_fence(qp, o, t);
	if constexpr (op == GT_CAS)
		return gdk_atomic_cas(qp, addr_of(j, j.counters + 8 * o.k, j.rkey_be), o.old, o.k,
				      gt_word(o.k, 0, j.seed), t, mode, nic_handler, 0);
	if constexpr (op == GT_HANDLER)
		return post_put_by(j, qp, o, t);
	if constexpr (op == GT_LOW)
		return post_low(qp, o, t, 0);
	if constexpr (op == GT_LOW_BF)
		return post_low_bf(qp, o, t);
	if constexpr (op == GT_IMM)
		return post_imm(qp, o, t);
	if constexpr (op == GT_MIX)
		return post_mix(j, qp, o, t);
	return -ENOSYS;
}

}

#endif
