/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The benchmark of copies by the NIC on CPU threads: rates by engine and size, with the code that
 * dma.cu runs on a GPU. One CPU thread is the NIC. The times depend on the number of processors;
 * the checks do not. usage: dma [faults]   faults: makes one fault after the other and fails if the
 * checks do not find it
 */
#include "dma_host.h"

#include <pthread.h>

#include "bench.h"

#define FLAGS	       (GDK_QPF_HOST_EXEC | GDK_QPF_SYS_SCOPE)
#define ITERS	       256u
#define SIZE_MAX_BYTES 65536u
#define THREADS	       4u

enum fault { KEY, SOURCE, RESULT, EXTRA, DATA };

struct run {
	struct recv_at at;
	uint8_t *mem, *from, *to;
	struct doca_gpu_buf bufs[2][DMA_BUFS];
	struct doca_gpu_dma dma;
	uint32_t seen[DMA_BUFS];
	struct dma_job job;
	struct recv_seen nic, post;
	uint32_t threads;
};

struct poster {
	pthread_t thread;
	struct run *run;
	uint32_t n;
};

static void *nic_thread(void *arg)
{
	struct run *r = arg;
	uint64_t box;

	dma_serve(&r->job, &r->nic, 0, 1, &box);
	return NULL;
}

static void *post_thread(void *arg)
{
	struct poster *p = arg;

	dma_post(&p->run->job, &p->run->post, p->n, p->run->threads);
	return NULL;
}

static void prepare(struct run *r, uint32_t by_write, uint32_t size, uint32_t threads)
{
	recv_image(r->mem, r->mem, &r->at, DMA_QPN, FLAGS);
	memset(r->to, 0, (size_t)SIZE_MAX_BYTES * DMA_BUFS);
	memset(r->seen, 0, sizeof(r->seen));
	memset(&r->nic, 0, sizeof(r->nic));
	memset(&r->post, 0, sizeof(r->post));
	dma_bufs(r->bufs[0], (uintptr_t)r->from, DMA_FROM, size);
	dma_bufs(r->bufs[1], (uintptr_t)r->to, DMA_TO, size);
	r->dma = dma_struct(recv_qp(r->mem, &r->at), by_write);
	r->threads = threads;
	r->job = (struct dma_job){
		.dma = &r->dma,
		.from = r->bufs[0],
		.to = r->bufs[1],
		.ring = (const uint64_t *)(void *)(r->mem + r->at.sq),
		.reg = (const uint64_t *)(void *)(r->mem + r->at.reg),
		.dbrec = (const uint32_t *)(void *)(r->mem + r->at.dbrec + 4),
		.cq = r->mem + r->at.scq,
		.seen = r->seen,
		.count = (uint64_t)threads * ITERS,
		.size = size,
		.iters = ITERS,
		.by_write = by_write,
	};
}

/* Returns M copies/s. */
static double execute(struct run *r)
{
	struct poster p[THREADS];
	pthread_t nic;
	uint64_t start = gdk_now_ns();
	uint32_t i;

	REQUIRE(!pthread_create(&nic, NULL, nic_thread, r));
	for (i = 0; i < r->threads; i++) {
		p[i] = (struct poster){ .run = r, .n = i };
		REQUIRE(!pthread_create(&p[i].thread, NULL, post_thread, &p[i]));
	}
	for (i = 0; i < r->threads; i++)
		pthread_join(p[i].thread, NULL);
	pthread_join(nic, NULL);
	return (double)r->job.count * 1e3 / (double)(gdk_now_ns() - start);
}

static int measure(struct run *r, uint32_t by_write, uint32_t size, uint32_t threads)
{
	struct dma_row row = { .where = "CPU",
			       .by_write = by_write,
			       .size = size,
			       .threads = threads };

	while (row.runs < DMA_RUNS && !row.bad) {
		prepare(r, by_write, size, threads);
		row.rate[row.runs++] = execute(r);
		row.verified += r->nic.verified;
		row.bad |= r->nic.bad | r->post.bad |
			   dma_judge(r->seen, r->job.count, r->from, r->to, size);
	}
	return dma_row_print(&row);
}

/* Returns 1 if the checks do not find the fault. */
static int fault(struct run *r, const char *what, enum fault f, uint64_t want)
{
	uint64_t bad;

	prepare(r, 0, 64, 1);
	if (f == KEY)
		r->bufs[1][5].mkey ^= 1;
	if (f == SOURCE)
		r->bufs[0][3].mkey ^= 1;
	if (f == RESULT)
		r->dma.result ^= 1;
	if (f == EXTRA)
		r->seen[7]++;
	execute(r);
	if (f == DATA)
		r->to[9] ^= 1;
	bad = r->nic.bad | r->post.bad | dma_judge(r->seen, r->job.count, r->from, r->to, 64);
	if (bad & want)
		return 0;
	printf("FAILED: not found: %s (0x%llx)\n", what, (unsigned long long)bad);
	return 1;
}

static int faults(struct run *r)
{
	return fault(r, "a wrong key", KEY, DMA_BAD_RESULT) |
	       fault(r, "a wrong key of the source", SOURCE, DMA_BAD_SOURCE) |
	       fault(r, "a wrong result", RESULT, DMA_BAD_RESULT) |
	       fault(r, "a doubled copy", EXTRA, DMA_BAD_SET) |
	       fault(r, "wrong data", DATA, DMA_BAD_DATA);
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = { 64, 4096, SIZE_MAX_BYTES };
	static struct run r;
	uint32_t i, w;
	int bad = 0;

	r.at = recv_layout(64, 0);
	r.mem = aligned_alloc(4096, (r.at.len + 4095) & ~(size_t)4095);
	r.from = aligned_alloc(4096, (size_t)SIZE_MAX_BYTES * DMA_BUFS);
	r.to = aligned_alloc(4096, (size_t)SIZE_MAX_BYTES * DMA_BUFS);
	REQUIRE(r.mem && r.from && r.to);
	for (i = 0; i < SIZE_MAX_BYTES * DMA_BUFS; i++)
		r.from[i] = (uint8_t)(i * 2654435761u >> 13 | 1);
	if (argc > 1 && !strcmp(argv[1], "faults"))
		return faults(&r);
	for (w = 0; w < 2; w++)
		for (i = 0; i < 3; i++)
			bad |= measure(&r, w, sizes[i], 1) | measure(&r, w, sizes[i], THREADS);
	return bad;
}
