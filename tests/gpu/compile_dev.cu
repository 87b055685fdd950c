/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Instantiates the device API for several sharing modes, handlers and scopes, to
 * verify that it compiles. No code here is executed.
 */
#include "device/doca_gpunetio_dev_verbs_counter.cuh"
#include "device/doca_gpunetio_dev_verbs_onesided.cuh"
#include "device/doca_gpunetio_dev_verbs_twosided.cuh"

#ifdef __CUDACC__
#define KERNEL __global__
#else
#define KERNEL
#endif

/* ---- every function with its name, its arguments and its defaults ---- */

typedef uint64_t u64;
typedef uint32_t u32;
typedef uint16_t u16;
typedef uint8_t u8;
typedef struct doca_gpu_dev_verbs_qp *QP, **QPS;
typedef struct doca_gpu_dev_verbs_cq *CQ;
typedef struct doca_gpu_dev_verbs_wqe *WQE;
typedef struct doca_gpu_dev_verbs_addr ADDR;
typedef doca_gpu_dev_verbs_ticket_t TICKET;
typedef enum doca_gpu_dev_verbs_wqe_ctrl_flags FLAGS;

#define HANDLER	 DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO
#define SYNC	 DOCA_GPUNETIO_VERBS_SYNC_SCOPE_GPU
#define SQ	 DOCA_GPUNETIO_VERBS_QP_SQ
#define READY	 DOCA_GPUNETIO_VERBS_READY_MODE_LD_ST
#define MCST	 DOCA_GPUNETIO_VERBS_MCST_ENABLED
#define BLOCKING DOCA_GPUNETIO_VERBS_BLOCKING_MODE_ENABLED
#define ADD	 DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD
#define BYTES	 DOCA_GPUNETIO_VERBS_ATOMIC_EXT_BYTES_8

/* Accepts any result type: where DOCA's function returns void, ours may return a status. */
template <class... args> struct takes {
	template <class result> GDK_FN void *any(result (*fn)(args...))
	{
		return (void *)fn;
	}
};

template <class result> struct called {
	enum { yes = 1 };
};

/* Old versions of nvcc warn of variables that occur only in decltype(). */
#ifdef __CUDACC__
#pragma nv_diag_suppress 550
#endif
#define UNWRAP(...)	__VA_ARGS__
#define SIG(types, ...) *out++ = takes<UNWRAP types>::any(&__VA_ARGS__);
#define CALL(...)	static_assert(called<decltype(__VA_ARGS__)>::yes, #__VA_ARGS__);

template <enum doca_gpu_dev_verbs_resource_sharing_mode MODE,
	  enum doca_gpu_dev_verbs_exec_scope EXEC>
GDK_FN void **every_function(void **out, QP qp, QPS qps, CQ cq, WQE wqe, ADDR addr)
{
	struct doca_gpunetio_ib_mlx5_cqe64 *cqe = NULL;
	FLAGS flags = DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE;
	TICKET ticket = 0;
	u64 n64 = 0;
	u32 n32 = 0;
	u16 n16 = 0;
	u8 n8 = 0;
	size_t size = 0;
	unsigned int nu = 0;
	int ni = 0;
	void *mem = NULL;

#include "device_calls.def"
	(void)cqe, (void)flags, (void)ticket, (void)n64, (void)n32, (void)n16, (void)n8;
	(void)size, (void)nu, (void)ni, (void)mem, (void)qp, (void)qps, (void)cq, (void)wqe;
	(void)addr;
	return out;
}

KERNEL void all_functions(void **out, QP qp, QPS qps, CQ cq, WQE wqe, ADDR addr)
{
	out = every_function<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
			     DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP>(out, qp, qps, cq, wqe, addr);
#ifndef __CUDACC__ /* nvcc needs half a minute for these functions, because none is inlined */
	out = every_function<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE,
			     DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD>(out, qp, qps, cq, wqe, addr);
	every_function<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA, GDK_EXEC_SCOPE_BLOCK>(
		out, qp, qps, cq, wqe, addr);
#endif
}

#undef ADD
#undef SQ

/* ---- typical uses ---- */

typedef enum doca_gpu_dev_verbs_resource_sharing_mode mode_type;
typedef enum doca_gpu_dev_verbs_nic_handler handler_type;

template <mode_type mode, handler_type handler>
GDK_FN int one_sided(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr r,
		     struct doca_gpu_dev_verbs_addr l, size_t size)
{
	doca_gpu_dev_verbs_ticket_t t;
	int err = 0;

	doca_gpu_dev_verbs_put<mode, handler>(qp, r, l, size);
	doca_gpu_dev_verbs_put<mode, handler, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP>(qp, r, l, size,
										   &t);
	doca_gpu_dev_verbs_p<uint64_t, mode, handler>(qp, r, (uint64_t)size);
	doca_gpu_dev_verbs_put_signal<DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD, mode, handler>(
		qp, r, l, size, r, l, 1);
	doca_gpu_dev_verbs_signal<DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD, mode, handler>(qp, r, l, 1,
										    &t);
	doca_gpu_dev_verbs_get<mode, handler, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD,
			       DOCA_GPUNETIO_VERBS_MCST_ENABLED,
			       DOCA_GPUNETIO_VERBS_BLOCKING_MODE_ENABLED>(qp, r, l, size, l, &t);
	err |= doca_gpu_dev_verbs_get_wait<mode, handler, DOCA_GPUNETIO_VERBS_MCST_ENABLED>(qp, l,
											    t);
	err |= doca_gpu_dev_verbs_mcst<mode, handler>(qp, l, &t);
	err |= gdk_put_imm(qp, r, l, 64, 7, &t, gdk_how(mode, handler, GDK_THREAD, 0));
	err |= gdk_atomic_cas(qp, r, l, 1, 2, &t, gdk_how(mode, handler, GDK_THREAD, 0));
	err |= doca_gpu_dev_verbs_wait<mode, handler>(qp, t);
	return err | doca_gpu_dev_verbs_wait<mode>(qp);
}

template <mode_type mode>
GDK_FN int low_level(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_wqe *copy)
{
	const enum doca_gpu_dev_verbs_wqe_ctrl_flags f = DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE;
	const uint64_t i = doca_gpu_dev_verbs_reserve_wq_slots<mode>(qp, 16);
	struct doca_gpu_dev_verbs_wqe *w = doca_gpu_dev_verbs_get_wqe_ptr(qp, (uint16_t)i);
	struct doca_gpu_dev_verbs_cq *cq = doca_gpu_dev_verbs_qp_get_cq_sq(qp);
	struct doca_gpu_dev_verbs_qp *qps[2] = { qp, qp };
	uint64_t pis[2] = { i, i + 1 };
	uint64_t v = i;
	int lock = 0;

	doca_gpu_dev_verbs_wqe_prepare_nop(qp, w, (uint16_t)i, f);
	doca_gpu_dev_verbs_wqe_prepare_write(qp, w, (uint16_t)i, 8, f, 0, 1, 2, 3, 4, 5);
	doca_gpu_dev_verbs_wqe_prepare_write(qp, w, (uint16_t)i, 8, f, 0, 1, 2, 3, 4, 5, 6, 7, 8);
	doca_gpu_dev_verbs_wqe_prepare_write_inl(qp, w, (uint16_t)i, f, 1, 2,
						 (uint64_t)(uintptr_t)&v, 8);
	doca_gpu_dev_verbs_prepare_inl_rdma_write_wqe_header(qp, w, (uint16_t)i, f, 1, 2, 8);
	doca_gpu_dev_verbs_prepare_inl_rdma_write_wqe_data<uint64_t>(qp, w, v);
	doca_gpu_dev_verbs_wqe_prepare_read(qp, w, (uint16_t)i, f, 1, 2, 3, 4, 5);
	doca_gpu_dev_verbs_wqe_prepare_read(qp, w, (uint16_t)i, f, 1, 2, 3, 4, 5, 6, 7, 8);
	doca_gpu_dev_verbs_wqe_prepare_atomic(qp, w, (uint16_t)i, 0x12, f, 1, 2, 3, 4, 8, 5, 6);
	doca_gpu_dev_verbs_wqe_prepare_atomic_ext<DOCA_GPUNETIO_VERBS_ATOMIC_EXT_BYTES_8>(
		qp, w, w + 1, (uint16_t)i, 0x14, f, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
	doca_gpu_dev_verbs_wqe_prepare_wait(qp, w, (uint16_t)i, f, 1, 2);
	doca_gpu_dev_verbs_wqe_prepare_dump(qp, w, (uint16_t)i, f, 1, 2, 3);
	doca_gpu_dev_verbs_mark_wqes_ready<mode>(qp, i, i + 15);
	doca_gpu_dev_verbs_submit<mode>(qp, i + 16);
	doca_gpu_dev_verbs_submit_db<mode>(qp, i + 16);
	doca_gpu_dev_verbs_submit_db_no_dbr<mode>(qp, i + 16);
	doca_gpu_dev_verbs_submit_proxy<mode, DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>(qp, i + 16);
	doca_gpu_dev_verbs_submit_bf<mode>(qp, i + 16, copy);
	doca_gpu_dev_verbs_submit_db_multi_qps<2, mode>(qps, pis);
	doca_gpu_dev_verbs_submit_db_multi_qps_no_dbr<2, mode>(qps, pis);
	doca_gpu_dev_verbs_update_dbr<>(qp, (uint32_t)i);
	doca_gpu_dev_verbs_ring_db<>(qp, i);
	doca_gpu_dev_common_update_dbr((uint32_t *)&v, (uint32_t)i);
	doca_gpu_dev_common_ring_db<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>(&v, (uint32_t)i, i);
	doca_gpu_dev_verbs_ring_bf<>(qp, copy);
	gdk_print_wqe(qp, i);
	gdk_print_cqe(cq, i);
	v = gdk_debug_check_tail(qp);
	doca_gpu_dev_verbs_ring_proxy<mode>(qp, i);
	doca_gpu_dev_verbs_lock<mode>(&lock);
	doca_gpu_dev_verbs_unlock<mode>(&lock);
	doca_gpu_dev_verbs_fence_acquire<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_CTA>();
	doca_gpu_dev_verbs_fence_release<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_GPU>();
	doca_gpu_dev_verbs_atomic_max<uint64_t, mode, true>(&v, i);
	doca_gpu_dev_verbs_atomic_add<uint64_t, mode>(&v, i);
	return doca_gpu_dev_verbs_poll_one_cq_at<mode>(cq, i) |
	       doca_gpu_dev_verbs_poll_cq_at<mode>(cq, i) |
	       doca_gpu_dev_verbs_poll_cq<mode>(cq, 1) |
	       doca_gpu_dev_verbs_poll_cq_collapsed_at<mode>(qp, i) |
	       (int)doca_gpu_dev_verbs_atomic_read<uint64_t, mode>(&v);
}

/* Two-sided operations as programs of the DOCA SDK call them: with types of libmlx5 for CQEs and
 * data segments, and tickets by address. */
struct mlx5_cqe64 {
	uint8_t bytes[64];
};
struct mlx5_wqe_data_seg {
	uint8_t bytes[16];
};

template <mode_type mode, handler_type handler, enum doca_gpu_dev_verbs_exec_scope exec>
GDK_FN int two_sided(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr a,
		     uint32_t size)
{
	struct mlx5_cqe64 *cqe;
	struct doca_gpunetio_ib_mlx5_cqe64 *own;
	doca_gpu_dev_verbs_ticket_t t;
	int err = 0;

	doca_gpu_dev_verbs_send<mode, handler, exec>(qp, a, size, &t);
	doca_gpu_dev_verbs_wait(qp, &t);
	doca_gpu_dev_verbs_recv<mode, handler, exec>(qp, a, size, &t);
	err |= doca_gpu_dev_verbs_recv_wait<mode, handler, DOCA_GPUNETIO_VERBS_MCST_ENABLED>(qp, a,
											     &cqe);
	err |= doca_gpu_dev_verbs_recv_wait<mode, handler, DOCA_GPUNETIO_VERBS_MCST_DISABLED>(
		qp, doca_gpu_dev_verbs_addr{ .addr = 0, .key = 0 }, &t, &cqe);
	err |= doca_gpu_dev_verbs_recv_wait<mode, handler>(qp, a, t, &own);
	if (doca_gpu_dev_verbs_cqe_is_inline(cqe) &&
	    doca_gpu_dev_verbs_cqe_get_bytes(cqe) != doca_gpu_dev_verbs_cqe_get_bytes(own))
		return doca_gpu_dev_verbs_cqe_get_inl_data(cqe)[0];
	err |= doca_gpu_dev_verbs_poll_cq_at<mode, DOCA_GPUNETIO_VERBS_QP_RQ>(
		doca_gpu_dev_verbs_qp_get_cq_rq(qp), t, &cqe);
	err |= doca_gpu_dev_verbs_poll_one_cq_at<mode, DOCA_GPUNETIO_VERBS_QP_RQ>(
		doca_gpu_dev_verbs_qp_get_cq_rq(qp), t, &own);
	return err | (int)qp->rq_wqe_pi | qp->need_mcst;
}

template <mode_type mode>
GDK_FN int two_sided_by_hand(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr a)
{
	constexpr auto RQ = DOCA_GPUNETIO_VERBS_QP_RQ;
	constexpr auto GPU = DOCA_GPUNETIO_VERBS_SYNC_SCOPE_GPU;
	FLAGS f = DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE;
	u32 op = DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND;
	u64 i = doca_gpu_dev_verbs_reserve_wq_slots<mode, RQ>(qp, 2);
	struct mlx5_wqe_data_seg *seg =
		(struct mlx5_wqe_data_seg *)doca_gpu_dev_verbs_get_rwqe_ptr(qp, i);
	WQE w = doca_gpu_dev_verbs_get_wqe_ptr(qp, 0);

	doca_gpu_dev_verbs_wqe_prepare_recv(qp, seg, a.addr, a.key, 64);
	doca_gpu_dev_verbs_wqe_prepare_recv(qp, doca_gpu_dev_verbs_get_rwqe_ptr(qp, i + 1), 0,
					    a.key, 0);
	doca_gpu_dev_verbs_mark_wqes_ready<mode, RQ>(qp, i, i + 1);
	doca_gpu_dev_verbs_submit<mode, GPU, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO, RQ>(qp, i + 2);
	doca_gpu_dev_verbs_submit_db<mode, GPU, RQ>(qp, i + 2);
	doca_gpu_dev_verbs_update_dbr<GPU, RQ>(qp, (u32)i + 2);
	doca_gpu_dev_verbs_wqe_prepare_send(qp, w, 0, op, f, 0);
	doca_gpu_dev_verbs_wqe_prepare_send(qp, w, 0, op, f, 0, a.addr, a.key, 8);
	doca_gpu_dev_verbs_wqe_prepare_send(qp, w, 0, op, f, 0, a.addr, a.key, 8, a.addr, a.key, 8);
	doca_gpu_dev_verbs_wqe_prepare_send(qp, w, 0, op, f, 0, a.addr, a.key, 8, a.addr, a.key, 8,
					    a.addr, a.key, 8);
	doca_gpu_dev_verbs_wqe_prepare_send_inl(qp, w, 0, op, f, 0, a.addr, 44);
	return doca_gpu_dev_verbs_wait_until_slot_available<mode, RQ>(qp, i) |
	       doca_gpu_dev_verbs_wait<mode, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO, RQ>(qp, i) |
	       doca_gpu_dev_verbs_wait<mode, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO, RQ>(qp, &i) |
	       doca_gpu_dev_verbs_wait<mode, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO, RQ>(qp);
}

KERNEL void receives(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr a, int *out)
{
	*out = two_sided<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
			 DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB,
			 DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP>(qp, a, 64) |
	       two_sided_by_hand<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA>(qp, a);
}

KERNEL void receives_alone(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr a,
			   int *out)
{
	*out = two_sided<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE,
			 DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
			 DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD>(qp, a, 64) |
	       two_sided_by_hand<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE>(qp, a);
}

KERNEL void exclusive(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr r,
		      struct doca_gpu_dev_verbs_addr l, size_t size, int *out)
{
	*out = one_sided<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE,
			 DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB>(qp, r, l, size);
}

KERNEL void shared_gpu(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr r,
		       struct doca_gpu_dev_verbs_addr l, size_t size, int *out)
{
	*out = one_sided<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
			 DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO>(qp, r, l, size);
}

KERNEL void shared_cta(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_wqe *copy,
		       int *out)
{
	*out = low_level<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA>(qp, copy);
}
