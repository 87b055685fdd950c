/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The host part of the benchmark of copies: images, and the judgement of a run. C and C++. */
#ifndef DMA_HOST_H
#define DMA_HOST_H

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "dma_nic.h"

#define DMA_RUNS 5

static inline struct doca_gpu_dma dma_struct(struct doca_gpu_dev_verbs_qp *qp, uint32_t by_write)
{
	struct doca_gpu_dma d;

	memset(&d, 0, sizeof(d));
	d.qp = qp;
	d.result_key = (uint64_t)DMA_RESULT << 32;
	d.result = htobe64(DMA_RESULT_AT);
	d.max = 1ull << 31;
	d.by_write = by_write;
	return d;
}

static inline void dma_bufs(struct doca_gpu_buf *bufs, uint64_t addr, uint32_t key, uint32_t size)
{
	uint32_t i;

	memset(bufs, 0, DMA_BUFS * sizeof(*bufs));
	for (i = 0; i < DMA_BUFS; i++) {
		bufs[i].addr = addr + (uint64_t)i * size;
		bufs[i].mkey = key;
		bufs[i].size = size;
	}
}

/* Each buffer was copied as often as posted, and all data arrived. Returns bits of enum dma_bad. */
static inline uint64_t dma_judge(const uint32_t *seen, uint64_t count, const uint8_t *from,
				 const uint8_t *to, uint32_t size)
{
	uint64_t bad = 0;
	uint32_t i;

	for (i = 0; i < DMA_BUFS; i++)
		if (seen[i] != count / DMA_BUFS + (i < count % DMA_BUFS))
			bad |= DMA_BAD_SET;
	if (memcmp(from, to, (size_t)size * (count < DMA_BUFS ? (uint32_t)count : DMA_BUFS)))
		bad |= DMA_BAD_DATA;
	return bad;
}

struct dma_row {
	const char *where;
	uint32_t by_write, size, threads;
	double rate[DMA_RUNS]; /* M copies/s */
	int runs;
	uint64_t verified, bad;
};

/* Prints a line: row, median, minimum and maximum in M/s, GB/s of the median, verified, bad. */
static inline int dma_row_print(const struct dma_row *r)
{
	double s[DMA_RUNS], t;
	int i, k;

	memcpy(s, r->rate, sizeof(s));
	for (i = 1; i < r->runs; i++)
		for (k = i; k && s[k] < s[k - 1]; k--)
			t = s[k], s[k] = s[k - 1], s[k - 1] = t;
	t = r->runs ? s[r->runs / 2] : 0;
	printf("dma\t%s: %s, %u bytes, %u threads\t%.3f\t%.3f\t%.3f\t%.3f\t%llu\t0x%llx\n",
	       r->where, r->by_write ? "RDMA write" : "copy engine", r->size, r->threads, t,
	       r->runs ? s[0] : 0, r->runs ? s[r->runs - 1] : 0, t * r->size / 1e3,
	       (unsigned long long)r->verified, (unsigned long long)r->bad);
	fflush(stdout);
	return r->bad != 0;
}

#endif
