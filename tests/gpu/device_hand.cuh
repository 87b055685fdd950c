/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Operations of the GPU test that do without the one-sided functions: they reserve
 * slots, build WQEs, mark them ready, and submit or ring themselves. */
#ifndef GT_DEVICE_HAND_CUH
#define GT_DEVICE_HAND_CUH

#include "device_at.cuh"

namespace
{

__device__ static struct doca_gpu_dev_verbs_wqe *slot(qp_type *qp, uint64_t index)
{
	return doca_gpu_dev_verbs_get_wqe_ptr(qp, (uint16_t)index);
}

/* Posts an unsignaled NOP and the write of the cell, published together. */
__device__ static int post_low(qp_type *qp, const struct op_at &o, ticket_type *t,
			       uint32_t code_opt)
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

/* BlueFlame writes a copy of the WQE from shared memory to the doorbell register. */
__device__ static int post_low_bf(qp_type *qp, const struct op_at &o, ticket_type *t)
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

/* Every third operation posts a NOP first; every second operation does not ring. */
__device__ static int post_imm(qp_type *qp, const struct op_at &o, ticket_type *t)
{
	const uint32_t nops = o.k % 3 == 0, code_opt = o.k % 2 ? SKIP_DB : 0;
	uint64_t at;
	int err = gdk_reserve(qp, nops + 1, mode, 0, &at);

	*t = at + nops;
	if (err)
		return err;
	if (nops)
		doca_gpu_dev_verbs_wqe_prepare_nop(qp, slot(qp, at), (uint16_t)at, UNSIGNALLED);
	doca_gpu_dev_verbs_wqe_prepare_write(qp, slot(qp, *t), (uint16_t)*t,
					     DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE_IMM, SIGNALLED,
					     doca_gpu_dev_verbs_bswap32((uint32_t)*t), o.dst.addr,
					     o.dst.key, o.src.addr, o.src.key, o.size);
	doca_gpu_dev_verbs_mark_wqes_ready<mode>(qp, at, *t);
	doca_gpu_dev_verbs_submit<mode>(qp, *t + 1, code_opt);
	return 0;
}

/* Posts a masked compare-and-swap, which is a WQE of two slots. It replaces the first
 * word of the cell with its expected value, whatever the old value. The old value is
 * returned in old; it must be 0, which shows that the atomic ran once. */
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

/* Number of slots of an operation of GT_BUILD; build() fills them. */
__device__ static uint32_t build_slots(enum gt_kind kind)
{
	return kind == GT_KIND_WAIT ? 3 : kind == GT_KIND_DUMP ? 2 : 1;
}

__device__ static void build_write(qp_type *qp, const struct op_at &o, uint64_t at)
{
	doca_gpu_dev_verbs_wqe_prepare_write(qp, slot(qp, at), (uint16_t)at,
					     DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, SIGNALLED, 0,
					     o.dst.addr, o.dst.key, o.src.addr, o.src.key, o.size);
}

/* Builds, in slot at + 1, a WAIT for the CQE of the write in slot `at`. The WAIT
 * contains the index of that CQE in the QP's own CQ. */
__device__ static void build_wait(qp_type *qp, uint64_t at)
{
	const struct doca_gpu_dev_verbs_cq *cq = doca_gpu_dev_verbs_qp_get_cq_sq(qp);

	doca_gpu_dev_verbs_wqe_prepare_wait(qp, slot(qp, at + 1), (uint16_t)(at + 1), SIGNALLED,
					    (uint32_t)(at + cq->cqe_rsvd), cq->cq_num);
}

__device__ static void build_pieces(qp_type *qp, const struct op_at &o, uint64_t at,
				    enum gt_kind kind)
{
	const uint32_t rest = o.size - GT_SPLIT;
	const uint16_t i = (uint16_t)at;

	if (kind == GT_KIND_WRITE2)
		doca_gpu_dev_verbs_wqe_prepare_write(
			qp, slot(qp, at), i, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, SIGNALLED, 0,
			o.dst.addr, o.dst.key, o.src.addr, o.src.key, GT_SPLIT,
			o.src.addr + GT_SPLIT, o.src.key, rest);
	else if (kind == GT_KIND_READ2)
		doca_gpu_dev_verbs_wqe_prepare_read(
			qp, slot(qp, at), i, SIGNALLED, o.src_r.addr, o.src_r.key, o.dst_l.addr,
			o.dst_l.key, GT_SPLIT, o.dst_l.addr + GT_SPLIT, o.dst_l.key, rest);
	else
		doca_gpu_dev_verbs_wqe_prepare_read(qp, slot(qp, at), i, SIGNALLED, o.src_r.addr,
						    o.src_r.key, o.dst_l.addr, o.dst_l.key, o.size);
}

__device__ static void build_inline(const struct gt_job &j, qp_type *qp, const struct op_at &o,
				    uint64_t at, enum gt_kind kind)
{
	const uint16_t i = (uint16_t)at;

	if (kind == GT_KIND_INLINE) {
		doca_gpu_dev_verbs_wqe_prepare_write_inl(qp, slot(qp, at), i, SIGNALLED, o.dst.addr,
							 o.dst.key, (uint64_t)(uintptr_t)o.cell,
							 28);
		return;
	}
	doca_gpu_dev_verbs_prepare_inl_rdma_write_wqe_header(qp, slot(qp, at), i, SIGNALLED,
							     o.dst.addr, o.dst.key, 12);
	doca_gpu_dev_verbs_prepare_inl_rdma_write_wqe_data(qp, slot(qp, at), chunk_of<12>(j, o.k));
}

/* Atomics that add 1 to the counter, or change the first bytes of the cell from 0 to
 * their expected value. */
__device__ static void build_atomic(qp_type *qp, const struct op_at &o, uint64_t at,
				    enum gt_kind kind, uint64_t v)
{
	const uint16_t i = (uint16_t)at;

	if (kind == GT_KIND_FA)
		doca_gpu_dev_verbs_wqe_prepare_atomic(
			qp, slot(qp, at), i, DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_FA, SIGNALLED,
			o.counter.addr, o.counter.key, o.old.addr, o.old.key, 8, 1, ~v);
	else if (kind == GT_KIND_CS)
		doca_gpu_dev_verbs_wqe_prepare_atomic(
			qp, slot(qp, at), i, DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_CS, SIGNALLED,
			o.dst.addr, o.dst.key, o.old.addr, o.old.key, 8, 0, v);
	else if (kind == GT_KIND_MFA8)
		doca_gpu_dev_verbs_wqe_prepare_atomic_ext<DOCA_GPUNETIO_VERBS_ATOMIC_EXT_BYTES_8>(
			qp, slot(qp, at), NULL, i, DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_FA,
			SIGNALLED, o.counter.addr, o.counter.key, o.old.addr, o.old.key, 1, 0, v, v,
			v, v);
	else if (kind == GT_KIND_MFA4)
		doca_gpu_dev_verbs_wqe_prepare_atomic_ext(
			qp, slot(qp, at), NULL, i, DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_FA,
			SIGNALLED, o.dst.addr, o.dst.key, o.old.addr, o.old.key, v, 0, ~v, ~v, ~v,
			~v);
	else
		doca_gpu_dev_verbs_wqe_prepare_atomic_ext(
			qp, slot(qp, at), NULL, i, DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_CS,
			SIGNALLED, o.dst.addr, o.dst.key, o.old.addr, o.old.key, ~v, ~v, v, 0,
			UINT64_MAX, UINT64_MAX);
}

__device__ static void build(const struct gt_job &j, qp_type *qp, const struct op_at &o,
			     uint64_t at, enum gt_kind kind)
{
	switch (kind) {
	case GT_KIND_WRITE2:
	case GT_KIND_READ:
	case GT_KIND_READ2:
		return build_pieces(qp, o, at, kind);
	case GT_KIND_INLINE:
	case GT_KIND_INLINE_PARTS:
		return build_inline(j, qp, o, at, kind);
	case GT_KIND_DUMP:
		build_write(qp, o, at);
		return doca_gpu_dev_verbs_wqe_prepare_dump(qp, slot(qp, at + 1), (uint16_t)(at + 1),
							   SIGNALLED, o.dst_l.addr, o.dst_l.key, 1);
	case GT_KIND_WAIT:
		build_write(qp, o, at);
		build_wait(qp, at);
		return build_write(qp, o, at + 2);
	default:
		return build_atomic(qp, o, at, kind, gt_word(o.k, 0, j.seed));
	}
}

/* Submits with the generic function or, if `named` is true, with the function for the QP's
 * handler (BlueFlame: the generic one). sq_wqe_pi must then have the submitted index. */
__device__ static int submit_by(const struct gt_job &j, qp_type *qp, uint64_t pi, bool named)
{
	if (named && j.handler == HANDLER(CPU_PROXY))
		doca_gpu_dev_verbs_submit_proxy<mode>(qp, pi);
	else if (named && j.handler == HANDLER(GPU_SM_DB))
		doca_gpu_dev_verbs_submit_db<mode, DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>(qp, pi);
	else if (named && j.handler == HANDLER(GPU_SM_NO_DBR))
		doca_gpu_dev_verbs_submit_db_no_dbr<mode>(qp, pi);
	else
		doca_gpu_dev_verbs_submit<mode>(qp, pi);
	return doca_gpu_dev_verbs_atomic_read<uint64_t, mode>(&qp->sq_wqe_pi) < pi ? GT_EBADDATA
										   : 0;
}

/* Reserves slots. unchecked: reserves without the check for free slots and then waits
 * for each slot. */
__device__ static int reserve_by_hand(qp_type *qp, uint32_t n, bool unchecked, uint64_t *at)
{
	int err = 0;

	if (!unchecked) {
		*at = doca_gpu_dev_verbs_reserve_wq_slots<mode>(qp, n);
		return gdk_qp_status(qp);
	}
	*at = doca_gpu_dev_verbs_reserve_wq_slots<mode>(
		qp, n, DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_AVAILABILITY_CHECK);
	for (uint32_t i = 0; i < n && !err; i++)
		err = doca_gpu_dev_verbs_wait_until_slot_available<mode>(qp, *at + i);
	return err;
}

__device__ static int post_build(const struct gt_job &j, qp_type *qp, const struct op_at &o,
				 ticket_type *t)
{
	const enum gt_kind kind = gt_kind(&j, o.k);
	const uint32_t n = build_slots(kind);
	uint64_t at;
	int err = reserve_by_hand(qp, n, o.k & 1, &at);

	*t = at + n - 1;
	if (err)
		return err;
	build(j, qp, o, at, kind);
	doca_gpu_dev_verbs_mark_wqes_ready<mode>(qp, at, *t);
	return submit_by(j, qp, at + n, o.k & 2);
}

/* Each lane builds one WQE. The first lane reserves and publishes for all; then the warp writes the
 * WQEs one by one through BlueFlame, from the ring and from shared memory in turn. */
__device__ static int post_low_bf_warp(qp_type *qp, const struct op_at &o, ticket_type *t)
{
	__shared__ __align__(16) struct doca_gpu_dev_verbs_wqe copies[32];
	struct doca_gpu_dev_verbs_wqe *copy = &copies[threadIdx.x / warpSize];
	const bool first = threadIdx.x % warpSize == 0;
	uint64_t base = 0;
	int err = first ? gdk_reserve(qp, warpSize, mode, 0, &base) : 0;

	if (__any_sync(0xffffffffu, err != 0))
		return err ? err : -ECONNABORTED;
	base = __shfl_sync(0xffffffffu, base, 0);
	*t = base + threadIdx.x % warpSize;
	build_write(qp, o, *t);
	__syncwarp();
	if (first)
		doca_gpu_dev_verbs_mark_wqes_ready<mode>(qp, base, base + warpSize - 1);
	__syncwarp();
	for (int lane = 0; lane < warpSize; lane++) {
		const uint64_t at = __shfl_sync(0xffffffffu, *t, lane);

		if (first)
			*copy = *slot(qp, at);
		__syncwarp();
		doca_gpu_dev_verbs_submit_bf_warp<mode>(qp, at + 1, lane & 1 ? copy : slot(qp, at));
		__syncwarp();
	}
	return 0;
}

/* ---- doorbells rung by the kernel: one thread per QP ---- */

/* Uses the addresses in the QP directly, as a user with its own QP structure does. */
__device__ static void ring_common(qp_type *qp, uint64_t pi)
{
	uint64_t *reg = (uint64_t *)(uintptr_t)qp->sq_db;

	doca_gpu_dev_common_update_dbr((uint32_t *)qp->sq_dbrec, (uint32_t)pi);
	if (pi & 2)
		doca_gpu_dev_common_ring_db<>(reg, qp->sq_num_shift8_be, pi);
	else
		doca_gpu_dev_common_write_db<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>(
			reg, doca_gpu_dev_common_prepare_db(qp->sq_num_shift8_be, pi));
}

__device__ static void ring_db_by_hand(qp_type *qp, uint64_t pi)
{
	switch (pi % 3) {
	case 0:
		doca_gpu_dev_verbs_update_dbr<>(qp, (uint32_t)pi);
		return doca_gpu_dev_verbs_ring_db<>(qp, pi);
	case 1:
		doca_priv_gpu_dev_verbs_update_dbr<>(qp, (uint32_t)pi);
		return doca_gpu_dev_verbs_ring_db<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>(qp, pi);
	default:
		return ring_common(qp, pi);
	}
}

__device__ static void ring_bf_by_hand(qp_type *qp, uint64_t at)
{
	__shared__ __align__(64) struct doca_gpu_dev_verbs_wqe copy;

	copy = *slot(qp, at);
	doca_gpu_dev_verbs_update_dbr<>(qp, (uint32_t)(at + 1));
	doca_gpu_dev_verbs_ring_bf<>(qp, &copy);
}

/* Polls until the data has arrived. Returns the status of the QP if it ends before, for example by
 * an abort of the host. The test must see the data before any wait, because a wait would ring the
 * doorbell again. */
__device__ static int arrived(const struct gt_job &j, qp_type *qp, const struct op_at &o)
{
	uint32_t polls = 0;
	int ended = 0;

	while (compare(j, o) && !(ended = gdk_qp_status(qp)))
		gdk_relax(polls++);
	return ended;
}

__device__ static int post_ring(const struct gt_job &j, qp_type *qp, const struct op_at &o,
				ticket_type *t)
{
	int err = gdk_reserve(qp, 1, mode, 0, t);

	if (err)
		return err;
	build_write(qp, o, *t);
	doca_gpu_dev_verbs_mark_wqes_ready<mode>(qp, *t, *t);
	if (j.handler == HANDLER(CPU_PROXY))
		doca_gpu_dev_verbs_ring_proxy<mode>(qp, *t + 1);
	else if (j.handler == HANDLER(GPU_SM_NO_DBR))
		doca_gpu_dev_verbs_ring_db<>(qp, *t + 1);
	else if (j.handler == HANDLER(GPU_SM_DB))
		ring_db_by_hand(qp, *t + 1);
	else
		ring_bf_by_hand(qp, *t);
	return arrived(j, qp, o);
}

/* ---- submission to two QPs at once ---- */

__device__ static void submit_pair(const struct gt_job &j, qp_type **qps, uint64_t *pis, bool named)
{
	if (named && j.handler == HANDLER(CPU_PROXY))
		doca_gpu_dev_verbs_submit_proxy_multi_qps<2, mode>(qps, pis);
	else if (named && j.handler == HANDLER(GPU_SM_DB))
		doca_gpu_dev_verbs_submit_db_multi_qps<2, mode>(qps, pis);
	else if (named && j.handler == HANDLER(GPU_SM_NO_DBR))
		doca_gpu_dev_verbs_submit_db_multi_qps_no_dbr<2, mode>(qps, pis);
	else
		doca_gpu_dev_verbs_submit_multi_qps<2, mode>(qps, pis);
}

__device__ static int post_pair(const struct gt_job &j, qp_type *qp, qp_type *companion,
				const struct op_at &o, ticket_type *t)
{
	const uint32_t half = o.size / 2;
	const addr_type dst = { o.dst.addr + half, o.dst.key };
	const addr_type src = { o.src.addr + half, o.src.key };
	qp_type *qps[2] = { qp, companion };
	uint64_t pis[2];
	int err = doca_gpu_dev_verbs_put<mode, nic_handler>(qp, o.dst, o.src, half, &pis[0],
							    SKIP_DB);

	if (!err)
		err = doca_gpu_dev_verbs_put<mode, nic_handler>(companion, dst, src, o.size - half,
								&pis[1], SKIP_DB);
	*t = pis[0]++;
	if (err)
		return err;
	pis[1]++;
	submit_pair(j, qps, pis, o.k & 1);
	return doca_gpu_dev_verbs_poll_cq_at<mode>(doca_gpu_dev_verbs_qp_get_cq_sq(companion),
						   pis[1] - 1);
}

} // namespace

#endif
