/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Measures a kernel that computes and posts: all threads copy memory, and after every few
 * chunks one thread of each block posts a put on its own exclusive queue pair and waits for
 * it. The CQEs are there before the kernel starts. The kernel needs two blocks of 1024
 * threads per multiprocessor, which leaves 32 registers per thread. Prints the copied bytes
 * per second, and the kernel's registers, local memory and blocks per multiprocessor.
 * tests/bench/post.sh builds and runs it.
 */
#define POST_HANG_S 8

#include <algorithm>
#include <vector>

#include "post_doca.cuh"

#include "post_time.cuh"

#define COMPUTE_THREADS 1024
#define COMPUTE_BLOCKS	2u	     /* per multiprocessor */
#define COMPUTE_BYTES	(1ull << 30) /* of each buffer */
#define COMPUTE_PASSES	4u
#define COMPUTE_RUNS	9
#define COMPUTE_DEPTH	2048u /* more than the puts of a run */

typedef void (*compute_kernel)(uint4 *dst, const uint4 *src, uint32_t chunks, uint32_t every,
			       uint8_t *qps, unsigned int *errors, struct post_clock *clock);

/* Posts put number k and waits for it. */
__device__ static __forceinline__ int compute_put(QP *qp, uint32_t k)
{
	struct doca_gpu_dev_verbs_addr r, l;
	doca_gpu_dev_verbs_ticket_t ticket;
	int err;

	r.addr = POST_RADDR + (uint64_t)k * POST_STEP;
	r.key = POST_RKEY;
	l.addr = POST_LADDR + (uint64_t)k * POST_STEP;
	l.key = POST_LKEY;
	err = STATUS((doca_gpu_dev_verbs_put<EXC, DB, THREAD>(qp, r, l, 4096, &ticket)));
	return err | STATUS((doca_gpu_dev_verbs_wait<EXC, DB>(qp, ticket)));
}

/* A chunk is 16 bytes per thread. `chunks` is a multiple of the number of blocks. */
template <bool POST>
__global__ void __launch_bounds__(COMPUTE_THREADS, COMPUTE_BLOCKS)
	compute_copy(uint4 *dst, const uint4 *src, uint32_t chunks, uint32_t every, uint8_t *qps,
		     unsigned int *errors, struct post_clock *clock)
{
	QP *qp = (QP *)(qps + (size_t)blockIdx.x * POST_QP_STRIDE);
	uint32_t k = 0, left = every;

	if (threadIdx.x == 0)
		atomicMin((unsigned long long *)&clock->start_ns, post_now());
	for (uint32_t pass = 0; pass < COMPUTE_PASSES; pass++)
		for (uint32_t c = blockIdx.x; c < chunks; c += gridDim.x) {
			const size_t at = (size_t)c * COMPUTE_THREADS + threadIdx.x;

			dst[at] = src[at];
			if (--left)
				continue;
			left = every;
			__syncthreads();
			if (POST && threadIdx.x == 0 && compute_put(qp, k++))
				atomicAdd(errors, 1);
		}
	__syncthreads();
	if (threadIdx.x == 0)
		atomicMax((unsigned long long *)&clock->end_ns, post_now());
}

struct compute_row {
	const char *name;
	compute_kernel kernel;
	uint32_t every; /* chunks per put */
	int posts;
};

static const struct compute_row rows[] = {
	{ "copy alone", compute_copy<false>, 16, 0 },
	{ "copy, put + wait after 64 chunks", compute_copy<true>, 64, 1 },
	{ "copy, put + wait after 16 chunks", compute_copy<true>, 16, 1 },
	{ "copy, put + wait after 4 chunks", compute_copy<true>, 4, 1 },
};

struct compute_buffers {
	uint4 *dst, *src;
	unsigned int *errors;
	uint32_t chunks, blocks;
};

/* Runs a row once. Returns bytes read and written per ns, and adds errors to *wrong. */
static double run_once(struct post_rig *rig, const struct compute_row *w,
		       const struct compute_buffers *b, uint64_t *wrong)
{
	const uint32_t puts = COMPUTE_PASSES * (b->chunks / b->blocks) / w->every;
	struct post_clock clock;
	unsigned int errors;

	rig_reset(rig, puts);
	rig_fill_cqes(rig);
	CK(cudaMemset(b->dst, 0, COMPUTE_BYTES));
	CK(cudaMemset(b->errors, 0, sizeof(*b->errors)));
	CK(cudaDeviceSynchronize());
	w->kernel<<<b->blocks, COMPUTE_THREADS, 0, rig->post>>>(b->dst, b->src, b->chunks, w->every,
								rig->qps, b->errors, rig->clock);
	CK(cudaGetLastError());
	rig_sync(rig->post, w->name);
	CK(cudaMemcpy(&clock, rig->clock, sizeof(clock), cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(&errors, b->errors, sizeof(errors), cudaMemcpyDeviceToHost));
	*wrong += errors + (w->posts ? rig_end(rig, puts, 1, 0) : 0);
	return 2. * COMPUTE_PASSES * b->chunks * COMPUTE_THREADS * sizeof(uint4) /
	       (double)(clock.end_ns - clock.start_ns);
}

static void run_row(size_t number, const struct compute_row *w, struct post_rig *rig,
		    const struct compute_buffers *b)
{
	struct cudaFuncAttributes attr;
	std::vector<double> rate;
	uint64_t wrong = 0;
	int fit = 0;

	CK(cudaFuncGetAttributes(&attr, w->kernel));
	CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, w->kernel, COMPUTE_THREADS, 0));
	run_once(rig, w, b, &wrong); /* the first run warms up */
	for (int run = 0; run < COMPUTE_RUNS; run++)
		rate.push_back(run_once(rig, w, b, &wrong));
	std::sort(rate.begin(), rate.end());
	printf("compute\t%zu\t%s\t%.1f\t%.1f\t%.1f\t%d\t%zu\t%d\t%llu\n", number, w->name,
	       rate[COMPUTE_RUNS / 2], rate.front(), rate.back(), attr.numRegs, attr.localSizeBytes,
	       fit, (unsigned long long)wrong);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const struct post_options o = {};
	struct compute_buffers b = {};
	struct post_row base = {};
	struct post_rig rig;
	int sms = 0;

	time_open();
	CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
	b.blocks = std::min((uint32_t)POST_MAX_QPS, COMPUTE_BLOCKS * (uint32_t)sms);
	b.chunks = (uint32_t)(COMPUTE_BYTES / (COMPUTE_THREADS * sizeof(uint4)));
	b.chunks -= b.chunks % b.blocks;
	CK(cudaMalloc(&b.src, COMPUTE_BYTES));
	CK(cudaMalloc(&b.dst, COMPUTE_BYTES));
	CK(cudaMalloc(&b.errors, sizeof(*b.errors)));
	CK(cudaMemset(b.src, 0x5a, COMPUTE_BYTES));
	base.shape = { b.blocks, COMPUTE_THREADS, b.blocks, COMPUTE_DEPTH };
	base.handler = POST_DB;
	rig_open(&rig, &o, &base, 0);
	for (size_t i = (size_t)time_first(argc, argv); i < sizeof(rows) / sizeof(rows[0]); i++)
		run_row(i, &rows[i], &rig, &b);
	rig_close(&rig);
	return 0;
}
