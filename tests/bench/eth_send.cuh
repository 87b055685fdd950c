/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The rows of sends: how many packets per second GPU threads send by gdk_eth_send() and
 * gdk_eth_send_multi(), beside puts by the same threads to a queue pair. A block verifies every WQE
 * before it writes CQEs; the rig is that of the posting benchmark (post.cu).
 */
#ifndef ETH_SEND_CUH
#define ETH_SEND_CUH

#include "eth_nic.cuh"
#include "post_puts.cuh"
#include "post_run.cuh"

#define ETH_BYTES 64u /* of a packet */

/* MULTI 0: a send of one packet; else a multi-packet send of MULTI packets by each lane. */
template <enum doca_gpu_dev_verbs_resource_sharing_mode M, gdk_exec_t S, uint32_t MULTI>
__global__ void eth_sends(uint8_t *qps, uint32_t n, uint32_t iters, uint32_t,
			  struct post_clock *clock)
{
	struct doca_gpu_eth_txq *txq =
		(struct doca_gpu_eth_txq *)(qps + (size_t)(blockIdx.x % n) * POST_QP_STRIDE);
	const uint32_t stride = gridDim.x / n * blockDim.x, step = MULTI ? MULTI : 1;
	const struct gdk_how how = gdk_how(M, DB, S, 0);
	uint64_t k = blockIdx.x / n * blockDim.x + threadIdx.x;
	doca_gpu_dev_eth_ticket_t ticket;

	if (threadIdx.x == 0)
		atomicMin((unsigned long long *)&clock->start_ns, post_now());
	for (uint32_t i = 0; i < iters; i += step) {
		struct gdk_eth_pkt pkts[MULTI ? MULTI : 1];

#pragma unroll
		for (uint32_t j = 0; j < step; j++, k += stride)
			pkts[j] = gdk_eth_pkt(POST_LADDR + k * POST_STEP, POST_LKEY, ETH_BYTES);
		if constexpr (MULTI != 0)
			gdk_eth_send_multi(txq, pkts, MULTI, 0, how, &ticket);
		else
			gdk_eth_send(txq, pkts[0], 0, how, &ticket);
	}
	__syncthreads();
	if (threadIdx.x == 0)
		atomicMax((unsigned long long *)&clock->end_ns, post_now());
}

template <enum doca_gpu_dev_verbs_resource_sharing_mode M, gdk_exec_t S, uint32_t MULTI>
static struct post_row eth_row(const char *name, struct post_shape shape)
{
	struct post_row r = {};

	r.name = name;
	r.checked = eth_sends<M, S, MULTI>;
	r.handler = POST_DB;
	r.granule = MULTI ? MULTI : 1;
	r.shape = shape;
	r.bytes = ETH_BYTES;
	r.every = 1;
	r.call_packets = MULTI ? 32 * MULTI : 1;
	r.call_slots = eth_call_slots(r.call_packets);
	r.nic = post_consume<struct eth_sends_of_queue>;
	return r;
}

static struct post_options eth_options;

/* Rate of a row: 10^6 packets, or puts, per second. */
static struct rates eth_measure(const struct post_row *w)
{
	struct rates m = {};
	struct post_rig rig;

	for (int place = 0; place < PLACES; place++) {
		if (place >= PLACES_SLOW && (double)m.messages / median_of(&m) * 1e3 > RUN_LONG_NS)
			break;
		rig_open(&rig, &eth_options, w, (uint32_t)place);
		measure(&m, &rig, w->checked, w, 1, 1, eth_options.target_ms);
		rig_close(&rig);
	}
	if (m.sum.mismatches)
		printf("FAILED: %s: %llu wrong WQEs or queues (0x%llx)\n", w->name,
		       (unsigned long long)m.sum.mismatches, (unsigned long long)m.sum.bad);
	return m;
}

/* Prints a row: what, our rates, the reference's rate, the target for their ratio (0: none). */
static void eth_print(const char *section, const char *name, double median, double least,
		      double most, double reference, double target)
{
	printf("%s\t%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.3f\t%.1f\n", section, name, median, least, most,
	       reference, median / reference, target);
	fflush(stdout);
}

/* Measures a put, and then sends by the same threads in the same scope. */
template <enum doca_gpu_dev_verbs_resource_sharing_mode M, enum doca_gpu_dev_verbs_exec_scope S>
static double eth_plain(const char *name, struct post_shape shape)
{
	const struct post_row puts = row<M, DB, S, put4k, false>(name, shape, 0);
	const struct post_row sends = eth_row<M, S, 0>(name, shape);
	const struct rates put = eth_measure(&puts), m = eth_measure(&sends);

	eth_print("send", name, median_of(&m), m.v.front(), m.v.back(), median_of(&put), 1);
	return median_of(&m);
}

/* A multi-packet send; the reference is a plain send by the same warps. */
template <enum doca_gpu_dev_verbs_resource_sharing_mode M, uint32_t MULTI>
static void eth_multi(const char *name, struct post_shape shape, double plain, double target)
{
	const struct post_row sends = eth_row<M, WARP, MULTI>(name, shape);
	const struct rates m = eth_measure(&sends);
	char what[64];

	snprintf(what, sizeof(what), "%s, eMPW, %u packets/lane", name, MULTI);
	eth_print("multi", what, median_of(&m), m.v.front(), m.v.back(), plain, target);
}

template <enum doca_gpu_dev_verbs_resource_sharing_mode M>
static void eth_warps(const char *name, struct post_shape shape)
{
	const double plain = eth_plain<M, WARP>(name, shape);

	eth_multi<M, 4>(name, shape, plain, 0);
	eth_multi<M, 32>(name, shape, plain, 5);
}

static void send_rows(void)
{
	eth_options.target_ms = 8;
	eth_plain<EXC, THREAD>("exclusive, thread", { 1, 1, 1, 4096 });
	eth_plain<EXC, BLOCK>("exclusive, block of 256", { 1, 256, 1, 4096 });
	eth_plain<EXC, THREAD>("132 queues, exclusive, thread", { 132, 1, 132, 4096 });
	eth_plain<CTA, THREAD>("CTA-shared, 256 threads", { 1, 256, 1, 4096 });
	eth_plain<CTA, BLOCK>("CTA-shared, block of 256", { 1, 256, 1, 4096 });
	eth_plain<GPU, THREAD>("GPU-shared, 132x32 threads", { 132, 32, 1, 32768 });
	eth_plain<GPU, THREAD>("GPU-shared, 132x256 threads", { 132, 256, 1, 32768 });
	eth_plain<GPU, BLOCK>("GPU-shared, 132 blocks of 256", { 132, 256, 1, 32768 });
	eth_warps<EXC>("exclusive, warp", { 1, 32, 1, 4096 });
	eth_warps<CTA>("CTA-shared, 8 warps", { 1, 256, 1, 4096 });
	eth_warps<GPU>("GPU-shared, 132 warps", { 132, 32, 1, 32768 });
}

#endif
