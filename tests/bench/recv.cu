/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Measures on one GPU, without a NIC, how many receives per second GPU threads post again, and
 * the round trip of a send that completes a receive of another queue pair, whose thread answers.
 * Other blocks are the NIC (recv_nic.h): they verify every WQE and write the CQEs. All memory is
 * GPU memory. recv.c runs the same code on CPU threads. tests/bench/recv.sh builds and runs both.
 * NVIDIA's open headers have no receives, so there is no peer.
 */
#define POST_HANG_S 12

#include "doca_gpunetio_device.h"

#include <vector>

#include "post_cuda.cuh"
#include "post_time.cuh"

#include "recv_host.h"

#define BLOCK_THREADS 1024 /* of the NIC and of the largest posting block */
#define FIRST_ITERS   256u
#define TARGET_NS     20000000.0
#define ROUNDS	      10000u
#define QPN_A	      RECV_QPN
#define QPN_B	      (RECV_QPN + 1)
#define ALONE_COUNT   8000000u

/* ---- kernels ---- */

__global__ void __launch_bounds__(BLOCK_THREADS)
	recv_nic(const __grid_constant__ struct recv_job job, struct recv_seen *out,
		 volatile uint32_t *up)
{
	__shared__ uint64_t box;

	if (threadIdx.x == 0)
		*up = 1;
	recv_serve(&job, out, threadIdx.x, blockDim.x, &box);
}

template <gdk_mode_t M, gdk_exec_t S, bool WAITS, int MOST>
__global__ void __launch_bounds__(MOST)
	recv_post(const __grid_constant__ struct recv_load load, struct recv_seen *out)
{
	if (threadIdx.x == 0)
		atomicMin((unsigned long long *)&out->start_ns, gdk_now_ns());
	recv_again(&load, out, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x, M, S,
		   WAITS);
}

struct recv_pair_of_links {
	struct recv_link link[2];
};
struct recv_pair_of_sides {
	struct recv_side side[2];
};

__global__ void recv_links(const __grid_constant__ struct recv_pair_of_links links,
			   struct recv_seen *out, volatile uint32_t *up)
{
	up[blockIdx.x] = 1;
	recv_forward(blockIdx.x ? &links.link[1] : &links.link[0], &out[blockIdx.x]);
}

template <gdk_mode_t M, bool IMM>
__global__ void recv_sides(const __grid_constant__ struct recv_pair_of_sides sides,
			   struct recv_seen *out)
{
	recv_ping(blockIdx.x ? &sides.side[1] : &sides.side[0], &out[blockIdx.x], M, IMM);
}

/* ---- memory ---- */

/* The memory of one or two queue pairs, and what the host shares with the kernels. */
struct rig {
	struct recv_at at;
	uint8_t *all[2], *mem[2], *image;
	struct recv_seen *seen; /* two of the NIC, two of the threads */
	uint32_t *up;
	cudaStream_t post, nic;
};

static void rig_open(struct rig *r, uint32_t depth, size_t buffers)
{
	r->at = recv_layout(depth, buffers);
	r->image = (uint8_t *)malloc(r->at.len);
	for (int i = 0; i < 2; i++)
		CK(cudaMalloc(&r->all[i], r->at.len + (size_t)RECV_FREE_PLACES * RECV_LINE));
	CK(cudaMalloc(&r->seen, 4 * sizeof(*r->seen)));
	CK(cudaHostAlloc(&r->up, 2 * sizeof(*r->up), cudaHostAllocMapped));
	CK(cudaStreamCreateWithFlags(&r->post, cudaStreamNonBlocking));
	CK(cudaStreamCreateWithFlags(&r->nic, cudaStreamNonBlocking));
}

static void rig_close(struct rig *r)
{
	CK(cudaStreamDestroy(r->post));
	CK(cudaStreamDestroy(r->nic));
	CK(cudaFreeHost(r->up));
	CK(cudaFree(r->seen));
	for (int i = 0; i < 2; i++)
		CK(cudaFree(r->all[i]));
	free(r->image);
}

/* Prepares run `place`. */
static void rig_reset(struct rig *r, uint32_t place)
{
	struct recv_seen seen[4] = {};

	for (uint32_t i = 0; i < 2; i++) {
		r->mem[i] = r->all[i] + recv_place(2 * place + i);
		recv_image(r->image, r->mem[i], &r->at, QPN_A + i, 0);
		CK(cudaMemcpy(r->mem[i], r->image, r->at.len, cudaMemcpyHostToDevice));
	}
	for (struct recv_seen &s : seen)
		s.start_ns = UINT64_MAX;
	CK(cudaMemcpy(r->seen, seen, sizeof(seen), cudaMemcpyHostToDevice));
	r->up[0] = r->up[1] = 0;
	CK(cudaDeviceSynchronize());
}

/* Waits until the blocks of the NIC run, so that they do not have to wait for the posting ones. */
static void rig_await_nic(const struct rig *r, int blocks, const char *what)
{
	const double end = seconds() + POST_HANG_S;

	for (int i = 0; i < blocks; i++)
		while (!*(volatile uint32_t *)&r->up[i])
			if (seconds() > end) {
				printf("HANG\t%s: the NIC does not start\n", what);
				fflush(stdout);
				_exit(3);
			}
}

/* Waits for all kernels, copies their results, and judges the state of the queue pairs. */
static uint64_t rig_finish(struct rig *r, int qps, uint64_t count, struct recv_seen seen[4],
			   const char *what)
{
	uint64_t bad = 0;

	rig_sync(r->post, what);
	rig_sync(r->nic, what);
	CK(cudaMemcpy(seen, r->seen, 4 * sizeof(seen[0]), cudaMemcpyDeviceToHost));
	for (int i = 0; i < qps; i++) {
		CK(cudaMemcpy(r->image, r->mem[i], r->at.sq, cudaMemcpyDeviceToHost));
		bad |= recv_judge(r->image, &r->at, count, qps == 1 ? &seen[0] : NULL);
	}
	return bad;
}

/* ---- receives posted again ---- */

struct post_row {
	const char *name;
	void (*kernel)(const struct recv_load load, struct recv_seen *out);
	uint32_t blocks, threads, depth;
};

/* Returns the rate in millions of receives per second. */
static double post_once(struct rig *r, const struct post_row *w, uint32_t iters, uint32_t place,
			struct recv_row *row)
{
	const uint32_t threads = w->blocks * w->threads;
	const uint64_t count = (uint64_t)iters * threads;
	struct recv_seen seen[4];
	struct recv_load load;
	struct recv_job job;

	rig_reset(r, place);
	job = recv_job_of(r->mem[0], &r->at, count, threads);
	load.qp = recv_qp(r->mem[0], &r->at);
	load.begun = recv_begun(r->mem[0], &r->at);
	load.iters = iters;
	load.window = threads == 1 ? w->depth / 2 : 1;
	recv_nic<<<1, BLOCK_THREADS, 0, r->nic>>>(job, &r->seen[0], r->up);
	CK(cudaGetLastError());
	rig_await_nic(r, 1, w->name);
	w->kernel<<<w->blocks, w->threads, 0, r->post>>>(load, &r->seen[2]);
	CK(cudaGetLastError());
	const uint64_t bad = rig_finish(r, 1, count, seen, w->name);

	recv_row_add(row, &seen[0]);
	recv_row_add(row, &seen[2]);
	recv_row_bad(row, bad);
	return (double)count * 1e3 / (double)(seen[0].end_ns - seen[2].start_ns);
}

static int post_measure(const struct post_row *w)
{
	struct recv_row row = {};
	struct rig r = {};
	double rate, iters;

	row.name = w->name;
	row.unit = "M/s";
	rig_open(&r, w->depth, 0);
	rate = post_once(&r, w, FIRST_ITERS, 0, &row);
	iters = rate * TARGET_NS / 1e3 / (w->blocks * w->threads);
	iters = iters < FIRST_ITERS ? FIRST_ITERS : iters > 1e6 ? 1e6 : iters;
	for (uint32_t i = 0; i < RECV_RUNS && !row.wrong; i++)
		row.value[row.runs++] = post_once(&r, w, (uint32_t)iters, i, &row);
	rig_close(&r);
	return recv_row_print(&row);
}

/* The rate of the NIC's block without any posting thread. */
static void alone_measure(void)
{
	struct recv_row row = {};
	struct recv_seen seen;
	struct recv_job job;
	struct rig r = {};

	row.name = "GPU: the block that is the NIC, alone";
	row.unit = "M/s";
	rig_open(&r, 32768, 0);
	for (uint32_t i = 0; i < RECV_RUNS; i++) {
		rig_reset(&r, i);
		job = recv_job_of(r.mem[0], &r.at, ALONE_COUNT, 2);
		job.alone = 1;
		recv_nic<<<1, BLOCK_THREADS, 0, r.nic>>>(job, &r.seen[0], r.up);
		CK(cudaGetLastError());
		rig_sync(r.nic, row.name);
		CK(cudaMemcpy(&seen, r.seen, sizeof(seen), cudaMemcpyDeviceToHost));
		row.value[row.runs++] = ALONE_COUNT * 1e3 / (double)(seen.end_ns - seen.start_ns);
		row.verified += seen.verified;
	}
	rig_close(&r);
	recv_row_print(&row);
}

/* ---- round trip ---- */

struct trip_row {
	const char *name;
	void (*kernel)(const struct recv_pair_of_sides sides, struct recv_seen *out);
	uint32_t imm;
};

static void trip_once(struct rig *r, const struct trip_row *w, uint32_t place, double rate,
		      uint32_t *took, struct recv_row *row)
{
	struct recv_pair_of_links links;
	struct recv_pair_of_sides sides;
	struct recv_seen seen[4];

	rig_reset(r, place);
	for (uint32_t i = 0; i < 2; i++) {
		struct recv_link *l = &links.link[i];

		*l = recv_link_of(r->mem[i], r->mem[!i], &r->at, QPN_A + i, ROUNDS, w->imm);
		l->delay = (uint64_t)(RECV_DELAY_NS * rate);
		l->record_limit = (uint64_t)(RECV_DBREC_NS * rate);
		sides.side[i] = recv_side_of(r->mem[i], &r->at, QPN_A + i, QPN_B - i, ROUNDS,
					     i ? NULL : took);
	}
	recv_links<<<2, 1, 0, r->nic>>>(links, &r->seen[0], r->up);
	CK(cudaGetLastError());
	rig_await_nic(r, 2, w->name);
	w->kernel<<<2, 1, 0, r->post>>>(sides, &r->seen[2]);
	CK(cudaGetLastError());
	const uint64_t bad = rig_finish(r, 2, ROUNDS + RECV_BUFFERS / 2, seen, w->name);

	for (int i = 0; i < 2; i++) {
		recv_row_add(row, &seen[i]);
		recv_row_bad(row, seen[2 + i].bad);
	}
	recv_row_bad(row, bad);
}

static int trip_measure(const struct trip_row *w)
{
	const double rate = time_rate();
	std::vector<uint32_t> cycles(ROUNDS);
	std::vector<double> all, us(ROUNDS);
	struct recv_row row = {};
	struct rig r = {};
	uint32_t *took;

	row.name = w->name;
	row.unit = "us";
	rig_open(&r, RECV_RT_DEPTH, 2 * (size_t)RECV_BUFFERS * RECV_LINE);
	CK(cudaMalloc(&took, ROUNDS * sizeof(*took)));
	CK(cudaMemset(took, 0, ROUNDS * sizeof(*took)));
	for (uint32_t run = 0; run < RECV_RUNS && !row.wrong; run++) {
		trip_once(&r, w, run, rate, took, &row);
		CK(cudaMemcpy(cycles.data(), took, ROUNDS * sizeof(*took), cudaMemcpyDeviceToHost));
		for (uint32_t i = 0; i < ROUNDS; i++)
			us[i] = cycles[i] / rate / 1e3;
		all.insert(all.end(), us.begin(), us.end());
		qsort(us.data(), ROUNDS, sizeof(double), recv_by_value);
		row.value[row.runs++] = us[ROUNDS / 2];
	}
	qsort(all.data(), all.size(), sizeof(double), recv_by_value);
	row.tail = all[all.size() * 999 / 1000];
	CK(cudaFree(took));
	rig_close(&r);
	return recv_row_print(&row);
}

/* ---- rows ---- */

#define EXC  RECV_MODE(EXCLUSIVE)
#define CTA  RECV_MODE(CTA)
#define ALL  RECV_MODE(GPU)
#define THR  GDK_THREAD
#define WARP GDK_WARP_SCOPE

int main(void)
{
	const struct post_row posts[] = {
		{ "exclusive, 1 thread", recv_post<EXC, THR, false, 32>, 1, 1, 4096 },
		{ "exclusive, 1 thread, wait and post", recv_post<EXC, THR, true, 32>, 1, 1, 4096 },
		{ "exclusive, 1 warp, warp scope", recv_post<EXC, WARP, false, 32>, 1, 32, 4096 },
		{ "block-shared, 32 threads, warp scope", recv_post<CTA, WARP, false, 1024>, 1, 32,
		  4096 },
		{ "block-shared, 1024 threads, warp scope", recv_post<CTA, WARP, false, 1024>, 1,
		  1024, 4096 },
		{ "block-shared, 1024 threads, warp scope, wait and post",
		  recv_post<CTA, WARP, true, 1024>, 1, 1024, 4096 },
		{ "block-shared, 1024 threads, thread scope", recv_post<CTA, THR, false, 1024>, 1,
		  1024, 4096 },
		{ "GPU-shared, 32 threads, warp scope", recv_post<ALL, WARP, false, 32>, 1, 32,
		  4096 },
		{ "GPU-shared, 32x32 threads, warp scope", recv_post<ALL, WARP, false, 32>, 32, 32,
		  4096 },
		{ "GPU-shared, 132x32 threads, warp scope", recv_post<ALL, WARP, false, 32>, 132,
		  32, 32768 },
		{ "GPU-shared, 132x32 threads, warp scope, wait and post",
		  recv_post<ALL, WARP, true, 32>, 132, 32, 32768 },
		{ "GPU-shared, 132x32 threads, thread scope", recv_post<ALL, THR, false, 32>, 132,
		  32, 32768 },
		{ "GPU-shared, 132x32 threads, thread scope, wait and post",
		  recv_post<ALL, THR, true, 32>, 132, 32, 32768 },
	};
	const struct trip_row trips[] = {
		{ "round trip, exclusive, send", recv_sides<EXC, false>, 0 },
		{ "round trip, exclusive, send with immediate", recv_sides<EXC, true>, 1 },
		{ "round trip, GPU-shared, send", recv_sides<ALL, false>, 0 },
		{ "round trip, GPU-shared, send with immediate", recv_sides<ALL, true>, 1 },
	};
	int bad = 0;

	time_open();
	alone_measure();
	for (const struct post_row &w : posts)
		bad |= post_measure(&w);
	for (const struct trip_row &w : trips)
		bad |= trip_measure(&w);
	return bad;
}
