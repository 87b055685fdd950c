/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * KERNEL() defines a kernel with a loop of one operation and one wait, as in a program that
 * includes the device API. tests/footprint.sh includes this file, defines a kernel for each row of
 * tests/footprint/limits, and measures the compiled code. No code here is executed. It also
 * compiles with the headers of DOCA GPUNetIO.
 */
#define GDK_BOTH_SHAPES /* copies by the NIC, RDMA library and Ethernet: the SDK's interface */
#include "doca_gpunetio_device.h"
#if __has_include("gdk_sdk_dma_dev.h")
#include "gdk_sdk_dma_dev.h"
#endif
#ifdef GDK_QP_STATE_H
#include "gdk_rdma_recv_dev.h"
#include "gdk_sdk_eth_mcst_dev.h"
#endif

#define JOIN(a, b) a##b
#define MODE(name) JOIN(DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_, name)
#define BY(name)   JOIN(DOCA_GPUNETIO_VERBS_NIC_HANDLER_, name)
#define IN(name)   JOIN(SCOPE_, name)

#define SCOPE_THREAD DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD
#define SCOPE_WARP   DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP
#define SCOPE_BLOCK  GDK_EXEC_SCOPE_BLOCK

#define TEMPLATE SHARING, HANDLER, SCOPE
#define ADD	 DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD

enum op {
	NONE,	/* neither operation nor wait */
	PUT64,	/* put of 64 bytes */
	PUTN,	/* put of a size that only the caller knows */
	PUTSIG, /* put and signal */
	P,	/* put of a value of 8 bytes */
	GET,
	SEND,
	RECV,  /* receive, and a wait that returns the address of the CQE */
	DMA,   /* copy by the NIC, commit and wait */
	RDMAS, /* RDMA library: a strong write and its commit */
	RDMAW, /* a weak write and its commit */
	RDMAR, /* a strong receive, its commit, and a wait for it */
	ETHS,  /* send of a packet, and a wait */
	ETHM,  /* multi-packet send of four packets of each lane, and a wait */
	ETHR,  /* receive, and a load of the bytes of a packet */
};

struct operands {
	struct doca_gpu_dev_verbs_addr remote, local, sig_remote, sig_local;
	size_t size;
	uint64_t value;
};

/* A template, so that only the code of one operation is instantiated. */
template <enum op OP, auto SHARING, auto HANDLER, auto SCOPE>
static __device__ __forceinline__ void call(struct doca_gpu_dev_verbs_qp *qp,
					    const struct operands &a)
{
	doca_gpu_dev_verbs_ticket_t t;

	if constexpr (OP == PUT64)
		doca_gpu_dev_verbs_put<TEMPLATE>(qp, a.remote, a.local, 64, &t);
	if constexpr (OP == PUTN)
		doca_gpu_dev_verbs_put<TEMPLATE>(qp, a.remote, a.local, a.size, &t);
	if constexpr (OP == PUTSIG)
		doca_gpu_dev_verbs_put_signal<ADD, TEMPLATE>(
			qp, a.remote, a.local, a.size, a.sig_remote, a.sig_local, a.value, &t);
	if constexpr (OP == P)
		doca_gpu_dev_verbs_p<uint64_t, TEMPLATE>(qp, a.remote, a.value, &t);
	if constexpr (OP == GET)
		doca_gpu_dev_verbs_get<TEMPLATE>(qp, a.remote, a.local, a.size, a.local, &t);
#ifdef GDK_QP_STATE_H /* DOCA GPUNetIO has no two-sided operations and no RDMA library */
	if constexpr (OP == RDMAS || OP == RDMAW) {
		struct doca_gpu_dev_rdma *rdma = (struct doca_gpu_dev_rdma *)qp;
		const struct gdk_op_move m = gdk_move_of(GDK_MOVE_WRITE, a.remote, a.local, a.size);
		uint32_t num;

		gdk_rdma_post(rdma, 0, &m, 0,
			      OP == RDMAW ? gdk_rdma_at((uint32_t)a.value) : gdk_rdma_next());
		if constexpr (OP == RDMAW)
			gdk_rdma_commit_weak(rdma, 0, 1);
		else
			gdk_rdma_commit_strong(rdma, 0);
		gdk_rdma_wait_all(rdma, &num);
	}
	if constexpr (OP == RDMAR) {
		struct doca_gpu_dev_rdma_r *r = (struct doca_gpu_dev_rdma_r *)qp;
		struct gdk_rdma_out out = { 0, NULL, NULL };

		gdk_rdma_recv(r, a.local, a.size, gdk_rdma_next());
		gdk_rdma_recv_commit_strong(r);
		gdk_rdma_recv_wait(r, 1, &out);
	}
	if constexpr (OP == ETHS || OP == ETHM) {
		const struct gdk_how how = gdk_how(TEMPLATE, 0);
		struct doca_gpu_eth_txq *txq = (struct doca_gpu_eth_txq *)qp;
		struct gdk_eth_pkt pkts[4];

#pragma unroll
		for (int k = 0; k < 4; k++)
			pkts[k] = gdk_eth_pkt(a.local.addr + k * a.size, a.local.key,
					      (uint32_t)a.size);
		if constexpr (OP == ETHM)
			gdk_eth_send_multi(txq, pkts, 4, DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY, how,
					   &t);
		else
			gdk_eth_send(txq, pkts[0], DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY, how, &t);
		gdk_eth_wait_for(txq, t, SHARING);
	}
	if constexpr (OP == ETHR) {
		struct doca_gpu_eth_rxq *rxq = (struct doca_gpu_eth_rxq *)qp;
		const auto exec = (enum doca_gpu_dev_eth_exec_scope)SCOPE;
		struct gdk_eth_batch batch;

		if (!gdk_eth_recv(rxq, (uint32_t)a.value, a.size, 0, exec, &batch) && batch.num)
			*(volatile uint32_t *)gdk_eth_pkt_addr(rxq, batch.first) =
				gdk_eth_pkt_bytes(rxq, batch.first);
	}
	if constexpr (OP == SEND)
		doca_gpu_dev_verbs_send<TEMPLATE>(qp, a.local, a.size, &t);
	if constexpr (OP == RECV) {
		struct doca_gpunetio_ib_mlx5_cqe64 *cqe;

		doca_gpu_dev_verbs_recv<TEMPLATE>(qp, a.local, a.size, &t);
		doca_gpu_dev_verbs_recv_wait<SHARING, HANDLER, DOCA_GPUNETIO_VERBS_MCST_DISABLED>(
			qp, a.local, t, &cqe);
	}
#endif
#ifdef GDK_SDK_DMA_DEV_H
	if constexpr (OP == DMA) {
		struct doca_gpu_dma *dma = (struct doca_gpu_dma *)qp;
		struct doca_gpu_buf *buf = (struct doca_gpu_buf *)a.value;

		gdk_gpu_dev_dma_memcpy(dma, buf, a.local.addr, buf + 1, a.remote.addr, a.size, &t);
		doca_gpu_dev_dma_commit(dma);
		gdk_gpu_dev_dma_wait(dma, t, 0);
	}
#endif
	if constexpr (OP != NONE && OP < RECV)
		doca_gpu_dev_verbs_wait<SHARING, HANDLER>(qp, t);
}

/* CALLS: operations in the loop; LIVE: number of floats that are live across the loop. */
template <enum op OP, auto SHARING, auto HANDLER, auto SCOPE, int CALLS, int LIVE>
static __device__ __forceinline__ void loop(struct doca_gpu_dev_verbs_qp *qp,
					    const struct operands &a, int n, float *data)
{
	float live[LIVE + 1];

#pragma unroll
	for (int k = 0; k < LIVE; k++)
		live[k] = data[k];
	for (int i = 0; i < n; i++) {
#pragma unroll
		for (int k = 0; k < CALLS; k++)
			call<OP, TEMPLATE>(qp, a);
#pragma unroll
		for (int k = 0; k < LIVE; k++)
			live[k] = live[k] * 1.5f + 1.0f;
	}
#pragma unroll
	for (int k = 0; k < LIVE; k++)
		data[k] = live[k];
}

/* op: an enumerator of enum op; sharing, handler, scope: last words of the API's enumerators;
 * bounds: __launch_bounds__() or empty. */
#define KERNEL(name, op, sharing, handler, scope, calls, live, bounds) \
	extern "C" __global__ void bounds name(struct doca_gpu_dev_verbs_qp *qp, \
					       struct operands a, int n, float *data) \
	{ \
		loop<op, MODE(sharing), BY(handler), IN(scope), calls, live>(qp, a, n, data); \
	}
