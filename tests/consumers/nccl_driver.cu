/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Runs NCCL's device API for GPU-initiated networking over GDAKI (gin_gdaki.h,
 * unchanged from a checkout) on top of gdaki. Two ranks have connected queue pairs in
 * this process. The operations run in every sharing mode, by threads, warps and blocks
 * (not in all combinations). The host checks data, signals and counters; after a flush,
 * one thread of each group checks the data that the group's gets fetched.
 * usage: nccl_driver [-g GPU] [-p HANDLER] [-n ROUNDS]
 */
#include <string.h>

#include "launch.h"

#include <nccl_device/gin/gin_device_common.h>
#include <nccl_device/gin/gdaki/gin_gdaki.h>
#include <nccl_device/coop.h>

/* NCCL looks up a window's memory in its communicator; here the window handle is the
 * address of the memory. */
NCCL_DEVICE_INLINE void *ncclGetLocalPointer(ncclWindow_t w, size_t offset)
{
	return (char *)w + offset;
}

#define RANKS	   2
#define RANK	   0 /* our rank, with queue pairs to itself and to rank 1 */
#define DEPTH	   64
#define GROUPS_MAX 256
#define SIGNALS	   8
#define COUNTERS   4
#define TABLE_AT   16 /* index of this context's first signal and first counter */

/* Layout of the part of a window that one group of threads owns. */
#define REGION	     8192
#define LONG_LEN     3000
#define AT_LONG	     0
#define AT_SIGNALLED 3072
#define AT_COUNTED   3136
#define AT_LATER     3200 /* put without a doorbell; the next operation rings it */
#define AT_VALUES    3328
#define AT_VA_SIGNAL 3392
#define AT_GET	     4096
#define GET_LEN	     1024

#define COUNTED_ROUNDS 8
#define COUNTED_LEN    65536
#define COUNTED_NS     5000000000ull

struct job {
	ncclGinCtx ctx;
	ncclGinWindow_t src, win, got; /* memory handles */
	uint8_t *got_mem, *win_mem;
	uint32_t *abort_flag;
	uint32_t *bad_gets; /* per group: number of wrong bytes after flushes */
	unsigned int rounds;
	bool alone; /* only one group runs, so that the queues are empty after a flush */
};

static constexpr ncclNetDeviceType NET = NCCL_NET_DEVICE_GIN_GDAKI;
static constexpr cuda::thread_scope SYS = cuda::thread_scope_system;
static constexpr cuda::thread_scope THREAD = cuda::thread_scope_thread;

/* One group type for threads, warps and blocks, and functions that are not inlined:
 * with a template instance for each, this file would take minutes to compile. */
typedef ncclCoopAny group_type;
#define CALLED __attribute__((noinline)) __device__

__device__ static ncclGinSignalDescriptor no_signal()
{
	ncclGinSignalDescriptor s = {};

	s.type = NCCL_GIN_SIGNAL_TYPE_NONE;
	return s;
}

__device__ static ncclGinSignalDescriptor indexed(ncclGinSignal_t id)
{
	ncclGinSignalDescriptor s = {};

	s.type = NCCL_GIN_SIGNAL_TYPE_INDEXED;
	s.indexedSignal.signalId = id;
	return s;
}

__device__ static ncclGinSignalDescriptor at_address(const job &j, size_t offset)
{
	ncclGinSignalDescriptor s = {};

	s.type = NCCL_GIN_SIGNAL_TYPE_VA;
	s.vaSignal.signalWindow = j.win;
	s.vaSignal.signalOffset = offset;
	s.vaSignal.ncclWindow = (ncclWindow_t)j.win_mem;
	return s;
}

CALLED static void put(const job &j, group_type coop, int peer, bool data, size_t off, size_t bytes,
		       ncclGinSignalDescriptor signal, uint64_t add, int counter,
		       uint32_t flags = ncclGinOptFlagsDefault)
{
	ncclGinApi_Put<NET>::call(j.ctx, coop, peer, data, j.win, off, j.src, off, bytes, signal,
				  add == 1 ? ncclGinSignalInc : ncclGinSignalAdd, add, counter >= 0,
				  (ncclGinCounter_t)counter, false, nullptr, SYS, THREAD, flags);
}

template <typename T>
CALLED static void value(const job &j, group_type coop, int peer, size_t off, T v,
			 ncclGinSignalDescriptor signal, uint64_t add)
{
	ncclGinApi_PutValue<NET>::call(j.ctx, coop, peer, j.win, off, v, signal,
				       add == 1 ? ncclGinSignalInc : ncclGinSignalAdd, add, false,
				       nullptr, SYS, THREAD);
}

/* Runs each operation once, from this group's region to the same offset at the peer. */
CALLED static void operations(const job &j, group_type coop, int peer, size_t at)
{
	put(j, coop, peer, true, at + AT_LONG, LONG_LEN, indexed(0), 1, 0,
	    j.alone ? ncclGinOptFlagsMaySkipCreditCheck : ncclGinOptFlagsDefault);
	put(j, coop, peer, true, at + AT_SIGNALLED, 64, indexed(1), 5, -1);
	put(j, coop, peer, true, at + AT_LATER, 64, no_signal(), 0, -1,
	    ncclGinOptFlagsAggregateRequests);
	put(j, coop, peer, true, at + AT_COUNTED, 64, no_signal(), 0, 1);
	put(j, coop, peer, true, at, 0, no_signal(), 0, -1);
	put(j, coop, peer, false, 0, 0, indexed(2), 7, -1);
	put(j, coop, peer, false, 0, 0, indexed(3), 1, 2);
	value(j, coop, peer, at + AT_VALUES, (uint8_t)0x11, no_signal(), 0);
	value(j, coop, peer, at + AT_VALUES + 2, (uint16_t)0x2222, no_signal(), 0);
	value(j, coop, peer, at + AT_VALUES + 4, (uint32_t)0x33333333, indexed(4), 1);
	value(j, coop, peer, at + AT_VALUES + 8, (uint64_t)0x4444444444444444,
	      at_address(j, at + AT_VA_SIGNAL), 3);
	/* The parts of `got` for the ranks follow each other. */
	ncclGinApi_Get<NET>::call(j.ctx, coop, peer, j.win, at + AT_GET, j.got,
				  peer * (size_t)GROUPS_MAX * REGION + at, GET_LEN, false, nullptr);
}

CALLED static void settle(const job &j, group_type coop, unsigned int round)
{
	if (round % 2) {
		ncclGinApi_Flush<NET>::call(j.ctx, coop, false, nullptr, cuda::memory_order_acquire,
					    round % 4 == 1 ? j.abort_flag : nullptr);
	} else if (coop.thread_rank() == 0) {
		for (int peer = 0; peer < RANKS; peer++) {
			ncclGinRequest_t request;

			ncclGinApi_FlushAsync<NET>::call(j.ctx, peer, &request, false, nullptr, 0);
			ncclGinApi_Wait<NET>::call(j.ctx, request, false, nullptr,
						   cuda::memory_order_acquire,
						   round % 4 ? j.abort_flag : nullptr);
		}
	}
	coop.sync();
}

/* Expected byte i of a get from rank `peer`, written by prepare(). */
__host__ __device__ static inline uint8_t get_byte(int peer, unsigned int group, unsigned int i)
{
	return (uint8_t)(peer * 101 + group * 7 + i);
}

__device__ static uint32_t bad_bytes(const job &j, int peer, unsigned int group)
{
	const volatile uint8_t *got = j.got_mem + ((size_t)peer * GROUPS_MAX + group) * REGION;
	uint32_t bad = 0;

	for (unsigned int i = 0; i < GET_LEN; i++)
		bad += got[i] != get_byte(peer, group, i);
	return bad;
}

CALLED static void work(const job &j, group_type coop, unsigned int group)
{
	for (unsigned int round = 0; round < j.rounds; round++) {
		for (int peer = 0; peer < RANKS; peer++)
			operations(j, coop, peer, (size_t)group * REGION);
		settle(j, coop, round);
		if (coop.thread_rank() == 0)
			for (int peer = 0; peer < RANKS; peer++)
				j.bad_gets[group] += bad_bytes(j, peer, group);
	}
}

__global__ void by_threads(job j)
{
	work(j, ncclCoopThread(), blockIdx.x * blockDim.x + threadIdx.x);
}

__global__ void by_warps(job j)
{
	work(j, ncclCoopWarp(), (blockIdx.x * blockDim.x + threadIdx.x) / 32);
}

__global__ void by_blocks(job j)
{
	work(j, ncclCoopCta(), blockIdx.x);
}

/*
 * Run by a single thread, which waits for each put by its counter: when the counter
 * equals the round, the data of that round's put must be at the destination, which is
 * this rank itself. Each put has other values in the first and the last byte of its
 * data.
 */
__global__ void counted(job j, uint8_t *src, uint64_t *bad)
{
	volatile uint64_t *counter = ncclGinApi_GetCounterPtr<NET>::call(j.ctx, 3).ptr;
	const volatile uint8_t *to = j.win_mem;

	for (unsigned int round = 1; round <= COUNTED_ROUNDS; round++) {
		const uint64_t end = doca_gpu_dev_verbs_query_globaltimer() + COUNTED_NS;

		src[0] = src[COUNTED_LEN - 1] = (uint8_t)round;
		put(j, ncclCoopThread(), RANK, true, 0, COUNTED_LEN, no_signal(), 0, 3);
		while (*counter != round && doca_gpu_dev_verbs_query_globaltimer() < end)
			;
		doca_gpu_dev_verbs_fence_acquire<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>();
		*bad += *counter != round || to[0] != (uint8_t)round ||
			to[COUNTED_LEN - 1] != (uint8_t)round;
	}
}

/* Run by a single thread. Resets all counters and signals, and adds the remaining
 * values to *left. */
__global__ void reset(job j, uint64_t *left)
{
	for (ncclGinCounter_t c = 0; c < COUNTERS; c++) {
		ncclGinApi_ResetCounter<NET>::call(j.ctx, c);
		*left += *(volatile uint64_t *)ncclGinApi_GetCounterPtr<NET>::call(j.ctx, c).ptr;
	}
	for (ncclGinSignal_t s = 0; s < SIGNALS; s++) {
		ncclGinApi_ResetSignal<NET>::call(j.ctx, indexed(s));
		*left += *(volatile uint64_t *)ncclGinApi_GetSignalPtr<NET>::call(j.ctx, s).ptr;
	}
	for (size_t g = 0; g < GROUPS_MAX; g++) {
		const size_t at = g * REGION + AT_VA_SIGNAL;

		ncclGinApi_ResetSignal<NET>::call(j.ctx, at_address(j, at));
		*left += *(volatile uint64_t *)(j.win_mem + at);
	}
}

/* ---- the host part of NCCL's GIN plugin ---- */

struct world {
	struct rig rig;
	struct doca_gpu_verbs_qp_group_hl *near_end[RANKS], *far_end[RANKS];
	struct doca_gpu_verbs_qp *mains[RANKS], *companions[RANKS];
	doca_gpu_verbs_service_t service;
	struct rig_mem src, got, sink, counters, win[RANKS], signals[RANKS];
	struct rig_mem shared; /* memory of `tables`, which the kernels also read */
	struct tables *tables;
	struct job job;
};

/* Structures that NCCL keeps in GPU memory, and results of the kernels. */
struct tables {
	ncclGinGdakiGPUContext gin;
	ncclGinGdakiMemHandle src, got, win;
	__be32 win_rkeys[RANKS], signal_rkeys[RANKS], counter_rkeys[RANKS];
	uint64_t issued[RANKS], visible[RANKS], left;
	uint32_t abort_flag, bad_gets[GROUPS_MAX];
};

static struct doca_gpu_verbs_qp_group_hl *open_group(struct world *w)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr;
	struct doca_gpu_verbs_qp_group_hl *group;

	memset(&attr, 0, sizeof(attr));
	attr.gpu_dev = w->rig.gpu;
	attr.net_dev = w->rig.dev;
	attr.ibpd = w->rig.pd;
	attr.sq_nwqe = DEPTH;
	attr.nic_handler = w->rig.handler;
	if (attr.nic_handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR)
		attr.send_dbr_mode_ext = DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW;
	RIG_MUST(!doca_gpu_verbs_create_qp_group_hl(&attr, &group));
	return group;
}

static void serve(struct world *w, struct doca_gpu_verbs_qp_hl *qp)
{
	if (qp->nic_handler != DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY)
		return;
	if (!w->service)
		RIG_MUST(!doca_gpu_verbs_create_service(&w->service));
	RIG_MUST(!doca_gpu_verbs_service_monitor_qp(w->service, qp->qp_gverbs));
}

static void open_queues(struct world *w)
{
	ncclGinGdakiGPUContext *gin = &w->tables->gin;

	for (int p = 0; p < RANKS; p++) {
		w->near_end[p] = open_group(w);
		w->far_end[p] = open_group(w);
		rig_connect(&w->rig, w->near_end[p]->qp_main.qp, w->far_end[p]->qp_main.qp);
		rig_connect(&w->rig, w->near_end[p]->qp_companion.qp,
			    w->far_end[p]->qp_companion.qp);
		w->mains[p] = w->near_end[p]->qp_main.qp_gverbs;
		w->companions[p] = w->near_end[p]->qp_companion.qp_gverbs;
		serve(w, &w->near_end[p]->qp_main);
		serve(w, &w->near_end[p]->qp_companion);
	}
	RIG_MUST(!doca_gpu_verbs_export_multi_qps_dev(w->rig.gpu, w->mains, RANKS, &gin->gdqp));
	RIG_MUST(!doca_gpu_verbs_export_multi_qps_dev(w->rig.gpu, w->companions, RANKS,
						      &gin->companion_gdqp));
}

static void open_memory(struct world *w)
{
	const size_t window = (size_t)GROUPS_MAX * REGION;

	rig_mem_open(&w->rig, &w->shared, sizeof(struct tables), true);
	w->tables = (struct tables *)w->shared.cpu;
	rig_mem_open(&w->rig, &w->src, window, true);
	rig_mem_open(&w->rig, &w->got, RANKS * window, true);
	rig_mem_open(&w->rig, &w->sink, 4096, true);
	rig_mem_open(&w->rig, &w->counters, 4096, true);
	for (int p = 0; p < RANKS; p++) {
		rig_mem_open(&w->rig, &w->win[p], window, true);
		rig_mem_open(&w->rig, &w->signals[p], 4096, true);
	}
	for (size_t i = 0; i < window; i++)
		w->src.cpu[i] = rig_pattern(i, 1);
}

static void fill_tables(struct world *w)
{
	struct tables *on_cpu = w->tables, *on_gpu = (struct tables *)w->shared.gpu;
	ncclGinGdakiGPUContext *gin = &on_cpu->gin;

	for (int p = 0; p < RANKS; p++) {
		on_cpu->win_rkeys[p] = w->win[p].rkey_be;
		on_cpu->signal_rkeys[p] = w->signals[p].rkey_be;
		on_cpu->counter_rkeys[p] = p == RANK ? w->counters.rkey_be : 0;
	}
	on_cpu->src = { nullptr, w->src.lkey_be };
	on_cpu->got = { nullptr, w->got.lkey_be };
	on_cpu->win = { on_gpu->win_rkeys, w->win[RANK].lkey_be };
	gin->counters_table = { (uint64_t *)w->counters.gpu + TABLE_AT, on_gpu->counter_rkeys,
				w->counters.lkey_be, TABLE_AT };
	gin->signals_table = { (uint64_t *)w->signals[RANK].gpu + TABLE_AT, on_gpu->signal_rkeys,
			       w->signals[RANK].lkey_be, TABLE_AT };
	gin->sink_buffer_lkey = w->sink.lkey_be;
	gin->last_issued_get = on_gpu->issued;
	gin->last_visible_get = on_gpu->visible;

	w->job.ctx.backendMask = 1u << NET;
	w->job.ctx.backend = NET;
	w->job.ctx.rank = RANK;
	w->job.ctx.nRanks = RANKS;
	w->job.ctx.handle = &on_gpu->gin;
	w->job.ctx.contextId = 0;
	w->job.src = &on_gpu->src;
	w->job.got = &on_gpu->got;
	w->job.win = &on_gpu->win;
	w->job.got_mem = w->got.gpu;
	w->job.win_mem = w->win[RANK].gpu;
	w->job.abort_flag = &on_gpu->abort_flag;
	w->job.bad_gets = on_gpu->bad_gets;
	w->job.rounds = w->rig.rounds;
}

static void world_open(struct world *w, int argc, char **argv)
{
	rig_open(&w->rig, argc, argv);
	launch_open(&w->rig);
	open_memory(w);
	open_queues(w);
	fill_tables(w);
}

static void world_close(struct world *w)
{
	RIG_MUST(!doca_gpu_verbs_unexport_multi_qps_dev(w->rig.gpu, w->mains, RANKS,
							w->tables->gin.gdqp));
	RIG_MUST(!doca_gpu_verbs_unexport_multi_qps_dev(w->rig.gpu, w->companions, RANKS,
							w->tables->gin.companion_gdqp));
	if (w->service)
		RIG_MUST(!doca_gpu_verbs_destroy_service(w->service));
	for (int p = 0; p < RANKS; p++) {
		RIG_MUST(!doca_gpu_verbs_destroy_qp_group_hl(w->near_end[p]));
		RIG_MUST(!doca_gpu_verbs_destroy_qp_group_hl(w->far_end[p]));
		rig_mem_close(&w->rig, &w->win[p]);
		rig_mem_close(&w->rig, &w->signals[p]);
	}
	for (struct rig_mem *m : { &w->src, &w->got, &w->sink, &w->counters, &w->shared })
		rig_mem_close(&w->rig, m);
	rig_close(&w->rig);
}

/* ---- expected results ---- */

static void prepare(struct world *w, unsigned int groups)
{
	for (int p = 0; p < RANKS; p++) {
		memset(w->win[p].cpu, 0, w->win[p].len);
		memset(w->signals[p].cpu, 0, w->signals[p].len);
		for (unsigned int g = 0; g < groups; g++)
			for (unsigned int i = 0; i < GET_LEN; i++)
				w->win[p].cpu[g * REGION + AT_GET + i] = get_byte(p, g, i);
	}
	memset(w->got.cpu, 0, w->got.len);
	memset(w->tables->bad_gets, 0, sizeof(w->tables->bad_gets));
}

static void check_region(const struct world *w, int p, unsigned int group)
{
	const uint8_t *to = w->win[p].cpu + group * REGION, *from = w->src.cpu + group * REGION;
	const uint8_t values[16] = { 0x11, 0,	 0x22, 0x22, 0x33, 0x33, 0x33, 0x33,
				     0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44 };

	RIG_MUST(!memcmp(to + AT_LONG, from + AT_LONG, LONG_LEN));
	RIG_MUST(!memcmp(to + AT_SIGNALLED, from + AT_SIGNALLED, 64));
	RIG_MUST(!memcmp(to + AT_COUNTED, from + AT_COUNTED, 64));
	RIG_MUST(!memcmp(to + AT_LATER, from + AT_LATER, 64));
	RIG_MUST(!memcmp(to + AT_VALUES, values, sizeof(values)));
	RIG_MUST(*(const uint64_t *)(to + AT_VA_SIGNAL) == 3 * w->rig.rounds);
}

static void check(const struct world *w, unsigned int groups)
{
	static const uint64_t each[SIGNALS] = { 1, 5, 7, 1, 1 };
	const uint64_t times = (uint64_t)groups * w->rig.rounds;

	for (int c = 0; c < COUNTERS; c++)
		RIG_MUST(rig_becomes((uint64_t *)w->counters.cpu + TABLE_AT + c,
				     c < 3 ? times * RANKS : 0));
	for (int p = 0; p < RANKS; p++) {
		for (int s = 0; s < SIGNALS; s++)
			RIG_MUST(((uint64_t *)w->signals[p].cpu)[TABLE_AT + s] == times * each[s]);
		for (unsigned int g = 0; g < groups; g++)
			check_region(w, p, g);
	}
	for (unsigned int g = 0; g < groups; g++)
		RIG_MUST(!w->tables->bad_gets[g]);
}

static void run_counted(struct world *w)
{
	uint8_t first = w->src.cpu[0], last = w->src.cpu[COUNTED_LEN - 1];
	struct job j = w->job;

	j.ctx.resourceSharingMode = NCCL_GIN_RESOURCE_SHARING_THREAD;
	memset(w->counters.cpu, 0, w->counters.len);
	w->tables->left = 0;
	RUN(counted, 1, 1, j, w->src.gpu, &((struct tables *)w->shared.gpu)->left);
	RIG_MUST(w->tables->left == 0);
	w->src.cpu[0] = first;
	w->src.cpu[COUNTED_LEN - 1] = last;
	memset(w->counters.cpu, 0, w->counters.len);
}

enum by { THREADS, WARPS, BLOCKS };

static void run(struct world *w, enum ncclGinResourceSharingMode mode, enum by by,
		unsigned int blocks, unsigned int threads)
{
	static const char *const modes[] = { "GPU", "CTA", "THREAD" };
	static const char *const bys[] = { "threads", "warps", "blocks" };
	const unsigned int groups = by == BLOCKS ? blocks
						 : blocks * threads / (by == WARPS ? 32 : 1);
	struct job j = w->job;

	printf("%-6s %u x %u, by %s\n", modes[mode], blocks, threads, bys[by]);
	fflush(stdout);
	j.ctx.resourceSharingMode = mode;
	j.alone = groups == 1;
	prepare(w, groups);
	if (by == THREADS)
		RUN(by_threads, blocks, threads, j);
	else if (by == WARPS)
		RUN(by_warps, blocks, threads, j);
	else
		RUN(by_blocks, blocks, threads, j);
	check(w, groups);
	w->tables->left = 0;
	RUN(reset, 1, 1, j, &((struct tables *)w->shared.gpu)->left);
	RIG_MUST(w->tables->left == 0);
}

int main(int argc, char **argv)
{
	static struct world w;

	world_open(&w, argc, argv);
	run_counted(&w);
	run(&w, NCCL_GIN_RESOURCE_SHARING_THREAD, THREADS, 1, 1);
	run(&w, NCCL_GIN_RESOURCE_SHARING_THREAD, BLOCKS, 1, LAUNCH_BLOCK);
	run(&w, NCCL_GIN_RESOURCE_SHARING_CTA, THREADS, 1, LAUNCH_BLOCK);
	run(&w, NCCL_GIN_RESOURCE_SHARING_GPU, THREADS, LAUNCH_BLOCKS, LAUNCH_BLOCK);
	run(&w, NCCL_GIN_RESOURCE_SHARING_GPU, BLOCKS, LAUNCH_BLOCKS, LAUNCH_BLOCK);
#if LAUNCH_WARP > 1
	run(&w, NCCL_GIN_RESOURCE_SHARING_THREAD, WARPS, 1, 32);
	run(&w, NCCL_GIN_RESOURCE_SHARING_CTA, WARPS, 1, LAUNCH_BLOCK);
	run(&w, NCCL_GIN_RESOURCE_SHARING_GPU, WARPS, LAUNCH_BLOCKS, LAUNCH_BLOCK);
#endif
	printf("handler %d: data, signals, counters and gets are right\n",
	       (int)w.near_end[0]->qp_main.nic_handler);
	world_close(&w);
	return 0;
}
