/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The kernels of the GPU test, written with the DOCA device API; compiled once
 * for each sharing mode, so that compilers work side by side: GT_MODE is
 * EXCLUSIVE, CTA or GPU, GT_LAUNCH the function that is defined here. g++ compiles
 * them too, for CPU threads (tests/kernels).
 */
#include <stdio.h>

#include "../lib/cuda_shim.h"
#include "device.h"
#include "doca_gpunetio_device.h"

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

/* The compilations differ in mode: what one has is not another's. */
namespace
{
static constexpr auto mode = CAT(DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_, GT_MODE);
#define HANDLER(h) DOCA_GPUNETIO_VERBS_NIC_HANDLER_##h

static constexpr auto nic_handler = HANDLER(AUTO);
static constexpr auto THREAD = DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD;
static constexpr auto WARP = DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP;
static constexpr auto ADD = DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD;
static constexpr auto SIGNALLED = DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE;
static constexpr auto SKIP_DB = DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_DB_RINGING;
static constexpr auto UNSIGNALLED = DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_ERROR_UPDATE;

typedef enum doca_gpu_dev_verbs_exec_scope scope_type;
typedef struct doca_gpu_dev_verbs_qp qp_type;
typedef struct doca_gpu_dev_verbs_addr addr_type;
typedef doca_gpu_dev_verbs_ticket_t ticket_type;

/* One operation: where its cells are. */
struct op_at {
	uint64_t k;
	addr_type src, dst, src_r, dst_l, old, counter;
	uint8_t *cell; /* of src, to be written */
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
	o.counter = addr_of(j, j.counters, j.rkey_be);
	o.cell = j.gpu + j.src + k * j.size;
	return o;
}

__device__ static void stamp(const struct gt_job &j, const struct op_at &o)
{
	for (uint32_t i = 0; i < j.size; i += 8)
		*(volatile uint64_t *)(o.cell + i) = gt_word(o.k, i / 8, j.seed);
}

__device__ static int compare(const struct gt_job &j, const struct op_at &o)
{
	const uint8_t *got = j.gpu + j.dst + o.k * j.size;

	for (uint32_t i = 0; i < j.size; i += 8)
		if (*(const volatile uint64_t *)(got + i) != gt_word(o.k, i / 8, j.seed))
			return GT_EBADDATA;
	return 0;
}

template <uint32_t bytes>
struct chunk {
	uint8_t b[bytes];
};

template <uint32_t bytes, scope_type scope>
__device__ void p_bytes(const struct gt_job &j, qp_type *qp, const struct op_at &o,
			ticket_type *t)
{
	struct chunk<bytes> v;

	for (uint32_t i = 0; i < bytes; i++)
		v.b[i] = (uint8_t)(gt_word(o.k, i / 8, j.seed) >> 8 * (i % 8));
	doca_gpu_dev_verbs_p<struct chunk<bytes>, mode, nic_handler, scope>(qp, o.dst, v, t);
}

template <scope_type scope>
__device__ void post_p(const struct gt_job &j, qp_type *qp, const struct op_at &o, ticket_type *t)
{
	if (j.size == 1)
		p_bytes<1, scope>(j, qp, o, t);
	else if (j.size == 2)
		p_bytes<2, scope>(j, qp, o, t);
	else if (j.size == 4)
		p_bytes<4, scope>(j, qp, o, t);
	else if (j.size == 8)
		p_bytes<8, scope>(j, qp, o, t);
	else
		p_bytes<28, scope>(j, qp, o, t);
}

__device__ static struct doca_gpu_dev_verbs_wqe *slot(qp_type *qp, uint64_t index)
{
	return doca_gpu_dev_verbs_get_wqe_ptr(qp, (uint16_t)index);
}

/* A NOP that makes no CQE and the write of the cell, published together. */
__device__ static int post_low(const struct gt_job &j, qp_type *qp, const struct op_at &o,
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
					     o.dst.addr, o.dst.key, o.src.addr, o.src.key, j.size);
	doca_gpu_dev_verbs_mark_wqes_ready<mode>(qp, at, at + 1);
	doca_gpu_dev_verbs_submit<mode>(qp, at + 2, code_opt);
	return 0;
}

/* A copy of the WQE in shared memory goes to the register. */
__device__ static int post_low_bf(const struct gt_job &j, qp_type *qp, const struct op_at &o,
				  ticket_type *t)
{
	__shared__ __align__(64) struct doca_gpu_dev_verbs_wqe copy[GT_BLOCK_MAX];
	struct doca_gpu_dev_verbs_wqe *wqe = &copy[threadIdx.x];
	int err = gdk_reserve(qp, 1, mode, 0, t);

	if (err)
		return err;
	doca_gpu_dev_verbs_wqe_prepare_write(qp, wqe, (uint16_t)*t,
					     DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, SIGNALLED, 0,
					     o.dst.addr, o.dst.key, o.src.addr, o.src.key, j.size);
	doca_gpu_dev_verbs_wqe_prepare_write(qp, slot(qp, *t), (uint16_t)*t,
					     DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, SIGNALLED, 0,
					     o.dst.addr, o.dst.key, o.src.addr, o.src.key, j.size);
	doca_gpu_dev_verbs_mark_wqes_ready<mode>(qp, *t, *t);
	doca_gpu_dev_verbs_submit_bf<mode>(qp, *t + 1, wqe);
	return 0;
}

/* Every third operation has a NOP before it, every second does not ring. */
__device__ static int post_imm(const struct gt_job &j, qp_type *qp, const struct op_at &o,
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
		o.src.addr, o.src.key, j.size);
	doca_gpu_dev_verbs_mark_wqes_ready<mode>(qp, at, *t);
	doca_gpu_dev_verbs_submit<mode>(qp, *t + 1, code_opt);
	return 0;
}

template <enum doca_gpu_dev_verbs_nic_handler handler>
__device__ static void put_by(const struct gt_job &j, qp_type *qp, const struct op_at &o,
			      ticket_type *t)
{
	doca_gpu_dev_verbs_put<mode, handler>(qp, o.dst, o.src, j.size, t, j.code_opt);
}

__device__ static void post_put_by(const struct gt_job &j, qp_type *qp, const struct op_at &o,
				   ticket_type *t)
{
	if (j.handler == HANDLER(CPU_PROXY))
		put_by<HANDLER(CPU_PROXY)>(j, qp, o, t);
	else if (j.handler == HANDLER(GPU_SM_DB))
		put_by<HANDLER(GPU_SM_DB)>(j, qp, o, t);
	else if (j.handler == HANDLER(GPU_SM_NO_DBR))
		put_by<HANDLER(GPU_SM_NO_DBR)>(j, qp, o, t);
	else
		put_by<HANDLER(GPU_SM_BF)>(j, qp, o, t);
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

__device__ static void post_put_no_db(const struct gt_job &j, qp_type *qp, const struct op_at &o,
				      ticket_type *t)
{
	doca_gpu_dev_verbs_put<mode, nic_handler, THREAD>(qp, o.dst, o.src, j.size, t, SKIP_DB);
}

__device__ static void post_get(const struct gt_job &j, qp_type *qp, const struct op_at &o,
				ticket_type *t)
{
	addr_type nowhere = o.dst_l;

	doca_gpu_dev_verbs_get<mode, nic_handler, THREAD>(qp, o.src_r, o.dst_l, j.size, nowhere,
							  t);
}

__device__ static int post_mix(const struct gt_job &j, qp_type *qp, const struct op_at &o,
			       ticket_type *t)
{
	switch (gt_kind(o.k, j.seed)) {
	case GT_KIND_PUT:
		doca_gpu_dev_verbs_put<mode, nic_handler>(qp, o.dst, o.src, j.size, t);
		return 0;
	case GT_KIND_PUT_NO_DB:
		post_put_no_db(j, qp, o, t);
		return 0;
	case GT_KIND_P:
		p_bytes<8, THREAD>(j, qp, o, t);
		return 0;
	case GT_KIND_ADD:
		doca_gpu_dev_verbs_signal<ADD, mode, nic_handler>(qp, o.counter, o.old, 1, t);
		return 0;
	case GT_KIND_LOW_PAIR:
		return post_low(j, qp, o, t, 0);
	case GT_KIND_LOW_NO_DB:
		return post_low(j, qp, o, t, SKIP_DB);
	case GT_KIND_LONG:
		return post_long(j, qp, o, t);
	default:
		post_get(j, qp, o, t);
		return 0;
	}
}

template <int op, scope_type scope>
__device__ int post(const struct gt_job &j, qp_type *qp, const struct op_at &o, ticket_type *t)
{
	if constexpr (op == GT_PUT || op == GT_BARE_PUT)
		doca_gpu_dev_verbs_put<mode, nic_handler, scope>(qp, o.dst, o.src, j.size, t,
								 j.code_opt);
	if constexpr (op == GT_HANDLER)
		post_put_by(j, qp, o, t);
	if constexpr (op == GT_LOW_BF)
		return post_low_bf(j, qp, o, t);
	if constexpr (op == GT_IMM)
		return post_imm(j, qp, o, t);
	if constexpr (op == GT_P)
		post_p<scope>(j, qp, o, t);
	if constexpr (op == GT_SIGNAL)
		doca_gpu_dev_verbs_signal<ADD, mode, nic_handler, scope>(qp, o.counter, o.old, 1,
									 t);
	if constexpr (op == GT_PUT_SIGNAL)
		doca_gpu_dev_verbs_put_signal<ADD, mode, nic_handler, scope>(
			qp, o.dst, o.src, j.size, o.counter, o.old, 1, t);
	if constexpr (op == GT_GET || op == GT_BARE_GET)
		post_get(j, qp, o, t);
	if constexpr (op == GT_GET_MCST)
		doca_gpu_dev_verbs_get<mode, nic_handler, scope, DOCA_GPUNETIO_VERBS_MCST_ENABLED,
				       DOCA_GPUNETIO_VERBS_BLOCKING_MODE_ENABLED>(
			qp, o.src_r, o.dst_l, j.size, o.dst_l, t);
	if constexpr (op == GT_CAS)
		return gdk_atomic_cas(qp, addr_of(j, j.counters + 8 * o.k, j.rkey_be), o.old, o.k,
				      gt_word(o.k, 0, j.seed), t, mode, nic_handler, 0);
	if constexpr (op == GT_LOW)
		return post_low(j, qp, o, t, 0);
	if constexpr (op == GT_MIX)
		return post_mix(j, qp, o, t);
	return 0;
}

__device__ static int poll_one(struct doca_gpu_dev_verbs_cq *cq, uint64_t index)
{
	uint32_t spins = 0;
	int err;

	while ((err = doca_gpu_dev_verbs_poll_one_cq_at<mode>(cq, index)) == EBUSY)
		gdk_relax(spins++);
	return err;
}

/* Until the WQE of t is complete, posted with `posted` others since the last wait. */
__device__ static int wait_for(const struct gt_job &j, qp_type *qp, ticket_type t, uint32_t posted,
			       uint64_t turn)
{
	struct doca_gpu_dev_verbs_cq *cq = doca_gpu_dev_verbs_qp_get_cq_sq(qp);
	uint32_t how = j.wait;

	if (how == GT_IN_TURN || how == GT_BY_TICKET)
		how = (uint32_t)(turn % (how == GT_IN_TURN ? 4 : 2));
	switch (how) {
	case GT_WAIT:
		return doca_gpu_dev_verbs_wait<mode>(qp, t);
	case GT_FLUSH:
		return doca_gpu_dev_verbs_wait<mode>(qp);
	case GT_POLL_AT:
		return doca_gpu_dev_verbs_poll_cq_at<mode>(cq, t);
	case GT_POLL_ONE:
		return poll_one(cq, t);
	case GT_POLL_NEXT:
		return doca_gpu_dev_verbs_poll_cq<mode>(cq, posted);
	default:
		return doca_gpu_dev_verbs_poll_cq_collapsed_at<mode>(qp, t);
	}
}

/* Lanes of one operation must give up together. */
template <scope_type scope>
__device__ bool somebody(bool failed)
{
	if constexpr (scope == WARP)
		return __any_sync(0xffffffffu, failed);
	return failed;
}

template <int op, scope_type scope>
__device__ int run(const struct gt_job &j, qp_type *qp, uint64_t thread)
{
	constexpr bool got = op == GT_GET || op == GT_GET_MCST;
	constexpr bool bare = op == GT_BARE_PUT || op == GT_BARE_GET;
	uint32_t posted = 0;
	ticket_type t;
	int err = 0;

	for (uint32_t i = 0; i < j.iters; i++) {
		const struct op_at o = op_at(j, thread * j.iters + i);

		if (op != GT_P && op != GT_SIGNAL && op != GT_CAS && !bare)
			stamp(j, o);
		err = post<op, scope>(j, qp, o, &t);
		posted++;
		if (!err && (posted == j.batch || i + 1 == j.iters)) {
			err = wait_for(j, qp, t, posted, thread + i);
			posted = 0;
		}
		if (!err && got && j.batch == 1)
			err = compare(j, o);
		if (somebody<scope>(err != 0))
			return err ? err : -ECONNABORTED;
	}
	return 0;
}

/* All threads wait for one WQE, by all the ways there are. */
__device__ static int wait_somehow(qp_type *qp, uint64_t index, uint64_t thread)
{
	struct doca_gpu_dev_verbs_cq *cq = doca_gpu_dev_verbs_qp_get_cq_sq(qp);
	uint64_t at;
	int err;

	switch (thread % 4) {
	case 0:
		return doca_gpu_dev_verbs_wait<mode>(qp, index);
	case 1:
		return doca_gpu_dev_verbs_poll_cq_at<mode>(cq, index);
	case 2: /* a slot that is free only when the ring went around */
		err = gdk_reserve(qp, 1, mode, 0, &at);
		while (!err)
			err = gdk_reserve(qp, 1, mode, 0, &at);
		return err;
	default:
		return poll_one(cq, index);
	}
}

/* Thread 0 has its slots first; all threads run at once. */
__device__ static void wait_for_first(qp_type *qp, uint64_t slots)
{
	for (uint32_t i = 0; i < 1u << 24; i++) {
		if (gdk_ld64(gdk_rsvd_index(qp), GDK_SCOPE_GPU) >= slots)
			return;
		gdk_relax(i);
	}
}

template <int op>
__device__ int end_badly(const struct gt_job &j, qp_type *qp, uint64_t thread)
{
	struct op_at o = op_at(j, thread);
	uint64_t at = 0;
	ticket_type t;

	if (thread == 0 && op == GT_HOLE)
		(void)gdk_reserve(qp, 1, mode, 0, &at);
	if (thread == 0 && op == GT_DENIED) {
		stamp(j, o);
		doca_gpu_dev_verbs_put<mode, nic_handler>(qp, o.dst, o.src, j.size, &t);
		o.dst.key ^= 0xffffffffu;
		doca_gpu_dev_verbs_put<mode, nic_handler>(qp, o.dst, o.src, j.size, &t);
	}
	wait_for_first(qp, op == GT_DENIED ? 2 : 1);
	return wait_somehow(qp, op == GT_DENIED ? 1 : 0, thread);
}

template <int op, scope_type scope>
__global__ void kernel(const struct gt_job j)
{
	const uint64_t thread = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
	qp_type *qp = j.qp[(j.by_thread ? thread : blockIdx.x) % j.nqps];

	if constexpr (op == GT_HOLE || op == GT_DENIED)
		*(volatile int *)&j.status[thread] = end_badly<op>(j, qp, thread);
	else
		*(volatile int *)&j.status[thread] = run<op, scope>(j, qp, thread);
}

template <int op>
static int launch_op(const struct gt_job *job, cudaStream_t stream)
{
	if (job->scope == THREAD)
		GDK_LAUNCH((kernel<op, THREAD>), job->blocks, job->threads, stream, *job);
	else if constexpr (op == GT_PUT)
		GDK_LAUNCH((kernel<op, WARP>), job->blocks, job->threads, stream, *job);
	else
		return -1;
	return 0;
}

template <int op>
static int launch_from(const struct gt_job *job, cudaStream_t stream)
{
	if constexpr (op < GT_OPS) {
		if (job->op == op)
			return launch_op<op>(job, stream);
		return launch_from<op + 1>(job, stream);
	}
	return -1;
}

}

extern "C" int GT_LAUNCH(const struct gt_job *job, void *stream)
{
	return launch_from<0>(job, (cudaStream_t)stream);
}
