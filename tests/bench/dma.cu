/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Measures on one GPU, without a NIC, how many copies per second GPU threads trigger, by engine and
 * size. One block is the NIC (dma_nic.h): it verifies every request, copies the bytes and writes
 * the CQEs, so the rates of large copies are those of one block. All memory is GPU memory. dma.c
 * runs the same code on CPU threads. tests/bench/dma.sh builds and runs both. NVIDIA's open headers
 * have no copies, so there is no peer.
 */
#define POST_HANG_S 12

#include "post_cuda.cuh"

#include "dma_host.h"

#define NIC_THREADS    1024
#define SIZE_MAX_BYTES 65536u
#define ITERS	       256u

__global__ void __launch_bounds__(NIC_THREADS) dma_nic(const __grid_constant__ struct dma_job job,
						       struct recv_seen *out, volatile uint32_t *up)
{
	__shared__ uint64_t box;

	if (threadIdx.x == 0)
		*up = 1;
	dma_serve(&job, out, threadIdx.x, blockDim.x, &box);
}

__global__ void __launch_bounds__(512)
	dma_threads(const __grid_constant__ struct dma_job job, struct recv_seen *out)
{
	if (threadIdx.x == 0)
		atomicMin((unsigned long long *)&out->start_ns, gdk_now_ns());
	dma_post(&job, out, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x);
}

struct rig {
	struct recv_at at;
	uint8_t *image, *mem, *from, *to, *host;
	struct doca_gpu_buf *bufs;
	struct doca_gpu_dma *dma;
	uint32_t *seen, *up;
	struct recv_seen *out; /* of the NIC, of the threads */
	cudaStream_t post, nic;
};

static void rig_open(struct rig *r)
{
	const size_t len = (size_t)SIZE_MAX_BYTES * DMA_BUFS;

	r->at = recv_layout(64, 0);
	r->image = (uint8_t *)malloc(r->at.len);
	r->host = (uint8_t *)malloc(2 * len);
	CK(cudaMalloc(&r->mem, r->at.len));
	CK(cudaMalloc(&r->from, len));
	CK(cudaMalloc(&r->to, len));
	CK(cudaMalloc(&r->bufs, 2 * DMA_BUFS * sizeof(*r->bufs)));
	CK(cudaMalloc(&r->dma, sizeof(*r->dma)));
	CK(cudaMalloc(&r->seen, DMA_BUFS * sizeof(*r->seen)));
	CK(cudaMalloc(&r->out, 2 * sizeof(*r->out)));
	CK(cudaHostAlloc(&r->up, sizeof(*r->up), cudaHostAllocMapped));
	CK(cudaStreamCreateWithFlags(&r->post, cudaStreamNonBlocking));
	CK(cudaStreamCreateWithFlags(&r->nic, cudaStreamNonBlocking));
	for (size_t i = 0; i < len; i++)
		r->host[i] = (uint8_t)(i * 2654435761u >> 13 | 1);
	CK(cudaMemcpy(r->from, r->host, len, cudaMemcpyHostToDevice));
}

/* Writes the initial state of a run, and returns its job. */
static struct dma_job rig_prepare(struct rig *r, const struct dma_row *w)
{
	struct recv_seen out[2] = {};
	struct doca_gpu_buf bufs[2][DMA_BUFS];
	struct doca_gpu_dma dma = dma_struct(recv_qp(r->mem, &r->at), w->by_write);
	struct dma_job j = {};

	recv_image(r->image, r->mem, &r->at, DMA_QPN, 0);
	CK(cudaMemcpy(r->mem, r->image, r->at.len, cudaMemcpyHostToDevice));
	CK(cudaMemset(r->to, 0, (size_t)SIZE_MAX_BYTES * DMA_BUFS));
	CK(cudaMemset(r->seen, 0, DMA_BUFS * sizeof(*r->seen)));
	dma_bufs(bufs[0], (uintptr_t)r->from, DMA_FROM, w->size);
	dma_bufs(bufs[1], (uintptr_t)r->to, DMA_TO, w->size);
	CK(cudaMemcpy(r->bufs, bufs, sizeof(bufs), cudaMemcpyHostToDevice));
	CK(cudaMemcpy(r->dma, &dma, sizeof(dma), cudaMemcpyHostToDevice));
	out[0].start_ns = out[1].start_ns = UINT64_MAX;
	CK(cudaMemcpy(r->out, out, sizeof(out), cudaMemcpyHostToDevice));
	*r->up = 0;
	j.dma = r->dma;
	j.from = r->bufs;
	j.to = r->bufs + DMA_BUFS;
	j.ring = (const uint64_t *)(r->mem + r->at.sq);
	j.reg = (const uint64_t *)(r->mem + r->at.reg);
	j.dbrec = (const uint32_t *)(r->mem + r->at.dbrec + 4);
	j.cq = r->mem + r->at.scq;
	j.seen = r->seen;
	j.count = (uint64_t)w->threads * ITERS;
	j.size = w->size;
	j.iters = ITERS;
	j.by_write = w->by_write;
	CK(cudaDeviceSynchronize());
	return j;
}

static uint64_t rig_judge(struct rig *r, const struct dma_row *w, uint64_t count)
{
	const size_t len = (size_t)SIZE_MAX_BYTES * DMA_BUFS;
	uint32_t seen[DMA_BUFS];

	CK(cudaMemcpy(seen, r->seen, sizeof(seen), cudaMemcpyDeviceToHost));
	CK(cudaMemcpy(r->host + len, r->to, len, cudaMemcpyDeviceToHost));
	return dma_judge(seen, count, r->host, r->host + len, w->size);
}

static void run_once(struct rig *r, struct dma_row *w)
{
	const uint32_t block = w->threads < 512 ? w->threads : 512;
	const struct dma_job j = rig_prepare(r, w);
	struct recv_seen out[2];

	dma_nic<<<1, NIC_THREADS, 0, r->nic>>>(j, &r->out[0], r->up);
	CK(cudaGetLastError());
	while (!*(volatile uint32_t *)r->up)
		usleep(50);
	dma_threads<<<w->threads / block, block, 0, r->post>>>(j, &r->out[1]);
	CK(cudaGetLastError());
	rig_sync(r->post, "dma");
	rig_sync(r->nic, "dma");
	CK(cudaMemcpy(out, r->out, sizeof(out), cudaMemcpyDeviceToHost));
	w->verified += out[0].verified;
	w->bad |= out[0].bad | out[1].bad | rig_judge(r, w, j.count);
	w->rate[w->runs++] = (double)j.count * 1e3 / (double)(out[0].end_ns - out[1].start_ns);
}

int main(void)
{
	static const uint32_t sizes[] = { 64, 4096, SIZE_MAX_BYTES }, threads[] = { 1, 32, 256 };
	struct rig r = {};
	int bad = 0;

	rig_open(&r);
	for (uint32_t by_write = 0; by_write < 2; by_write++)
		for (uint32_t size : sizes)
			for (uint32_t n : threads) {
				struct dma_row row = {};

				row.where = "GPU";
				row.by_write = by_write;
				row.size = size;
				row.threads = n;
				while (row.runs < DMA_RUNS && !row.bad)
					run_once(&r, &row);
				bad |= dma_row_print(&row);
			}
	return bad;
}
