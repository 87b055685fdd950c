/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Posts one operation of the GPU test with the DOCA device API. GT_GET_MCST, GT_GET_WAIT,
 * GT_PAIR and GT_RING also wait for completions or data; the other operations do not.
 */
#ifndef GT_DEVICE_OPS_CUH
#define GT_DEVICE_OPS_CUH

#include "device_hand.cuh"

namespace
{

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

__device__ static int post_put_no_db(qp_type *qp, const struct op_at &o, ticket_type *t)
{
	return doca_gpu_dev_verbs_put<mode, nic_handler, THREAD>(qp, o.dst, o.src, o.size, t,
								 SKIP_DB);
}

template <scope_type scope>
__device__ int post_get(qp_type *qp, const struct op_at &o, ticket_type *t)
{
	return doca_gpu_dev_verbs_get<mode, nic_handler, scope>(qp, o.src_r, o.dst_l, o.size,
								o.dst_l, t);
}

/* Alternates between the three forms of get_wait. */
__device__ static int post_get_wait(qp_type *qp, const struct op_at &o, ticket_type *t)
{
	const int err = post_get<THREAD>(qp, o, t);

	if (err)
		return err;
	if (o.k % 3 == 0)
		return doca_gpu_dev_verbs_get_wait<mode, nic_handler, DUMP>(qp, o.dst_l, *t);
	if (o.k % 3 == 1)
		return doca_gpu_dev_verbs_get_wait<mode, nic_handler, DUMP>(qp, o.dst_l);
	return doca_priv_gpu_dev_verbs_get_wait<mode, nic_handler, DUMP>(qp, o.dst_l, *t);
}

/* Without the fence, the put could read its source before the get has written it. */
__device__ static int post_fence(qp_type *qp, const struct op_at &o, ticket_type *t)
{
	int err = post_get<THREAD>(qp, o, t);

	err = err ? err : doca_gpu_dev_verbs_fence<mode, nic_handler>(qp);
	return err ? err
		   : doca_gpu_dev_verbs_put<mode, nic_handler>(qp, o.third, o.dst_l, o.size, t);
}

__device__ static int post_mix(const struct gt_job &j, qp_type *qp, const struct op_at &o,
			       ticket_type *t)
{
	switch (gt_kind(&j, o.k)) {
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

/* The functions whose names end in a scope, used at that scope, and the functions
 * without a ticket. */
template <scope_type scope>
__device__ int post_form(const struct gt_job &j, qp_type *qp, const struct op_at &o, ticket_type *t)
{
	const uint64_t v = gt_word(o.k, 0, j.seed);

	switch (gt_kind(&j, o.k)) {
	case GT_KIND_PUT_SCOPE:
		if constexpr (scope == WARP)
			return doca_gpu_dev_verbs_put_warp<mode>(qp, o.dst, o.src, o.size, t);
		return doca_gpu_dev_verbs_put_thread<mode>(qp, o.dst, o.src, o.size, t);
	case GT_KIND_P_SCOPE:
		if constexpr (scope == WARP)
			return doca_gpu_dev_verbs_p_warp<uint64_t, mode>(qp, o.dst, v, t);
		return doca_gpu_dev_verbs_p_thread<uint64_t, mode>(qp, o.dst, v, t);
	case GT_KIND_PUT_SIGNAL_SCOPE:
		if constexpr (scope == WARP)
			return doca_gpu_dev_verbs_put_signal_warp<ADD, mode>(
				qp, o.dst, o.src, o.size, o.counter, o.old, 1, t);
		return doca_gpu_dev_verbs_put_signal_thread<ADD, mode>(qp, o.dst, o.src, o.size,
								       o.counter, o.old, 1, t);
	case GT_KIND_SIGNAL_SCOPE:
		if constexpr (scope == WARP)
			return doca_gpu_dev_verbs_signal_warp<ADD, mode>(qp, o.counter, o.old, 1,
									 t);
		return doca_gpu_dev_verbs_signal_thread<ADD, mode>(qp, o.counter, o.old, 1, t);
	case GT_KIND_GET_SCOPE:
		if constexpr (scope == WARP)
			return doca_gpu_dev_verbs_get_warp<mode>(qp, o.src_r, o.dst_l, o.size,
								 o.dst_l, t);
		return doca_gpu_dev_verbs_get_thread<mode>(qp, o.src_r, o.dst_l, o.size, o.dst_l,
							   t);
	case GT_KIND_PUT_BARE:
		return doca_gpu_dev_verbs_put<mode, nic_handler, scope>(qp, o.dst, o.src, o.size);
	case GT_KIND_P_BARE:
		return doca_gpu_dev_verbs_p<uint64_t, mode, nic_handler, scope>(qp, o.dst, v);
	case GT_KIND_PUT_SIGNAL_BARE:
		return doca_gpu_dev_verbs_put_signal<ADD, mode, nic_handler, scope>(
			qp, o.dst, o.src, o.size, o.counter, o.old, 1);
	case GT_KIND_P_SIGNAL_BARE:
		return doca_gpu_dev_verbs_p_signal<uint64_t, ADD, mode, nic_handler, scope>(
			qp, o.dst, v, o.counter, o.old, 1);
	default:
		return doca_gpu_dev_verbs_signal<ADD, mode, nic_handler, scope>(qp, o.counter,
										o.old, 1);
	}
}

/* Operations whose functions take the scope as a template argument. */
template <int op, scope_type scope>
__device__ int post_scoped(const struct gt_job &j, qp_type *qp, const struct op_at &o,
			   ticket_type *t)
{
	if constexpr (op == GT_PUT || op == GT_BARE_PUT)
		return doca_gpu_dev_verbs_put<mode, nic_handler, scope>(qp, o.dst, o.src, o.size, t,
									j.code_opt);
	if constexpr (op == GT_P || op == GT_P_SIGNAL)
		return post_p<op, scope>(j, qp, NULL, o, t);
	if constexpr (op == GT_SIGNAL)
		return doca_gpu_dev_verbs_signal<ADD, mode, nic_handler, scope>(qp, o.counter,
										o.old, 1, t);
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
__device__ int post(const struct gt_job &j, qp_type *qp, qp_type *companion, const struct op_at &o,
		    ticket_type *t)
{
	if constexpr (op <= GT_LAST_SCOPED || op == GT_BARE_PUT || op == GT_BARE_GET)
		return post_scoped<op, scope>(j, qp, o, t);
	if constexpr (gt_flags(op) & GT_COUNT)
		return post_counted<op>(j, qp, companion, o);
	if constexpr (op == GT_GET_WAIT)
		return post_get_wait(qp, o, t);
	if constexpr (op == GT_FENCE)
		return post_fence(qp, o, t);
	if constexpr (op == GT_CAS)
		return gdk_atomic_cas(qp, addr_of(j, j.counters + 8 * o.k, j.rkey_be), o.old, o.k,
				      gt_word(o.k, 0, j.seed), t,
				      gdk_how(mode, nic_handler, THREAD, 0));
	if constexpr (op == GT_HANDLER)
		return post_put_by(j, qp, o, t);
	if constexpr (op == GT_LOW)
		return post_low(qp, o, t, 0);
	if constexpr (op == GT_LOW_BF)
		return post_low_bf(qp, o, t);
	if constexpr (op == GT_LOW_BF_WARP)
		return post_low_bf_warp(qp, o, t);
	if constexpr (op == GT_BUILD)
		return post_build(j, qp, o, t);
	if constexpr (op == GT_RING)
		return post_ring(j, qp, o, t);
	if constexpr (op == GT_PAIR)
		return post_pair(j, qp, companion, o, t);
	if constexpr (op == GT_FORMS)
		return post_form<scope>(j, qp, o, t);
	if constexpr (op == GT_IMM)
		return post_imm(qp, o, t);
	if constexpr (op == GT_MIX)
		return post_mix(j, qp, o, t);
	return -ENOSYS;
}

} // namespace

#endif
