/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The benchmark of copies by the NIC: the posting threads, and the NIC, which is one block of the
 * GPU or one CPU thread. The NIC polls the doorbell register, verifies every request, copies the
 * bytes and writes the CQE. The formats of mlx5 are written here a second time on purpose
 * (post_verify.h). The queue pair is that of recv_rig.h; its receive queue is not used.
 */
#ifndef DMA_NIC_H
#define DMA_NIC_H

#include "recv_nic.h"

#include "gdk_sdk_dma_dev.h"

#define DMA_QPN	      0x100u
#define DMA_BUFS      64u
#define DMA_BATCH     16u	  /* copies of a thread between two commits */
#define DMA_FROM      0x11223344u /* keys, big-endian as in a WQE */
#define DMA_TO	      0x55667788u
#define DMA_RESULT    0x99aabbccu
#define DMA_RESULT_AT 0x7e3400000000ull

enum dma_bad {
	DMA_BAD_CTRL = 1 << 0,
	DMA_BAD_RESULT = 1 << 1, /* or a wrong remote address of a write */
	DMA_BAD_SOURCE = 1 << 2,
	DMA_BAD_TARGET = 1 << 3,
	DMA_BAD_SET = 1 << 4,	 /* a copy is missing or doubled */
	DMA_BAD_SILENT = 1 << 5, /* no doorbell arrived in time */
	DMA_BAD_STATUS = 1 << 6, /* a call returned an error */
	DMA_BAD_DATA = 1 << 7,
	DMA_BAD_RECORD = 1 << 8, /* the DBREC does not show the index of the doorbell */
};

struct dma_job {
	struct doca_gpu_dma *dma;
	struct doca_gpu_buf *from, *to; /* DMA_BUFS of `size` bytes */
	const uint64_t *ring, *reg;
	const uint32_t *dbrec; /* word 1 */
	uint8_t *cq;
	uint32_t *seen; /* copies of each buffer */
	uint64_t count; /* copies of the run */
	uint32_t size, iters, by_write;
};

/* ---- posting ---- */

/* Thread n of `threads` posts its copies; each waits for its last one of a batch. */
RECV_FN void dma_post(const struct dma_job *j, struct recv_seen *out, uint32_t n, uint32_t threads)
{
	doca_error_t err = DOCA_SUCCESS;
	uint64_t ticket = 0;
	uint32_t i, b;

	for (i = 0; i < j->iters && !err; i++) {
		b = (n + i * threads) % DMA_BUFS;
		err = gdk_gpu_dev_dma_memcpy(j->dma, &j->from[b], 0, &j->to[b], 0, j->size,
					     &ticket);
		if (err || (i % DMA_BATCH != DMA_BATCH - 1 && i + 1 != j->iters))
			continue;
		err = doca_gpu_dev_dma_commit(j->dma);
		if (!err)
			err = gdk_gpu_dev_dma_wait(j->dma, ticket, 0);
	}
	if (err) {
		RECV_ADD(&out->wrong, 1);
		RECV_BITS(&out->bad, DMA_BAD_STATUS);
	}
}

/* ---- the NIC ---- */

struct dma_wqe {
	uint64_t w[8];
};

RECV_FN uint64_t dma_addr(uint64_t be)
{
	return post_swap64((uint32_t)be, (uint32_t)(be >> 32));
}

/* Verifies the request of slot idx. Returns bits of enum dma_bad; *b: its buffer. */
RECV_FN uint32_t dma_verify(const struct dma_job *j, const struct dma_wqe *q, uint64_t idx,
			    uint32_t *b)
{
	const uint32_t op = j->by_write ? 0x08u : 0x0100002fu, ds = j->by_write ? 3 : 4;
	const uint64_t ctrl = post_swap32((uint32_t)(idx & 0xffff) << 8 | op) |
			      (uint64_t)post_swap32(DMA_QPN << 8 | ds) << 32;
	const uint64_t len_from = post_swap32(j->size) | (uint64_t)DMA_FROM << 32;
	const uint64_t len_to = post_swap32(j->size) | (uint64_t)DMA_TO << 32;
	const uint64_t from = dma_addr(q->w[5]), to = dma_addr(j->by_write ? q->w[2] : q->w[7]);
	uint32_t bad = 0;

	bad |= q->w[0] != ctrl || q->w[1] != (uint64_t)8 << 24 ? DMA_BAD_CTRL : 0;
	if (j->by_write)
		bad |= q->w[3] != DMA_TO ? DMA_BAD_RESULT : 0;
	else
		bad |= q->w[2] != (uint64_t)DMA_RESULT << 32 ||
				       dma_addr(q->w[3]) != DMA_RESULT_AT || q->w[6] != len_to
			       ? DMA_BAD_RESULT
			       : 0;
	*b = (uint32_t)((from - j->from[0].addr) / j->size) % DMA_BUFS;
	bad |= q->w[4] != len_from || from != j->from[*b].addr ? DMA_BAD_SOURCE : 0;
	bad |= to != j->to[*b].addr ? DMA_BAD_TARGET : 0;
	return bad;
}

RECV_FN void dma_cqe(const struct dma_job *j, uint64_t idx)
{
	uint64_t *cqe = (uint64_t *)(void *)(j->cq + (idx & (RECV_SQ_DEPTH - 1)) * 64);
	const uint32_t own = idx & RECV_SQ_DEPTH ? 1 : 0;
	const uint32_t counter = post_swap32((uint32_t)(idx & 0xffff) << 16);
	const uint32_t qpn = post_swap32((j->by_write ? 0x08u : 0x2fu) << 24 | DMA_QPN);

	/* Release: the data, then the CQE. Pairs with the acquire of the waiting thread. */
	gdk_fence_rel(GDK_SCOPE_SYS);
	gdk_st64(cqe + 7, (uint64_t)(counter | own << 24) << 32 | qpn, GDK_SCOPE_SYS);
}

/* All threads of the NIC copy a buffer; size is a multiple of 8. */
RECV_FN void dma_copy(const struct dma_job *j, uint32_t b, uint32_t n, uint32_t threads)
{
	const uint64_t *from = (const uint64_t *)(uintptr_t)j->from[b].addr;
	uint64_t *to = (uint64_t *)(uintptr_t)j->to[b].addr;
	uint32_t i;

	for (i = n; i < j->size / 8; i += threads)
		to[i] = from[i];
}

/* Polls the register until it shows more than `done`, and returns its index; `done` after the
 * deadline. The DBREC must show it, too: it is stored before the register. */
RECV_FN uint64_t dma_rung(const struct dma_job *j, uint64_t done, uint64_t deadline, uint32_t *bad)
{
	uint64_t end, record;
	uint32_t spins;

	for (spins = 0;; spins++) {
		end = post_swap32((uint32_t)gdk_ld64(j->reg, GDK_SCOPE_SYS)) >> 8 & 0xffff;
		end = done + ((end - done) & 0xffff);
		if (end - done <= RECV_SQ_DEPTH && end != done)
			break;
		if (spins % 64 == 63 && gdk_now_ns() > deadline)
			return done;
		gdk_relax(spins);
	}
	gdk_fence_acq(GDK_SCOPE_SYS); /* the register, then DBREC and WQEs */
	record = post_swap32(gdk_ld32(j->dbrec, GDK_SCOPE_SYS)) & 0xffff;
	if (((record - end) & 0xffff) > RECV_SQ_DEPTH)
		*bad |= DMA_BAD_RECORD;
	return end;
}

RECV_FN struct dma_wqe dma_read(const struct dma_job *j, uint64_t idx)
{
	const uint64_t *slot = j->ring + (idx & (RECV_SQ_DEPTH - 1)) * 8;
	struct dma_wqe q;
	int i;

	for (i = 0; i < 8; i++)
		q.w[i] = gdk_ld64(slot + i, GDK_SCOPE_SYS);
	return q;
}

/* The NIC: thread n of `threads`. box: shared by them. */
RECV_FN void dma_serve(const struct dma_job *j, struct recv_seen *out, uint32_t n, uint32_t threads,
		       uint64_t *box)
{
	const uint64_t deadline = gdk_now_ns() + RECV_LIMIT_NS;
	uint64_t done = 0, end;
	uint32_t b = 0, bad = 0;
	struct dma_wqe q;

	while (done < j->count) {
		if (n == 0)
			*box = dma_rung(j, done, deadline, &bad);
		RECV_MEET();
		end = *box;
		RECV_MEET();
		if (end == done)
			break;
		for (; done < end; done++) {
			q = dma_read(j, done);
			bad |= dma_verify(j, &q, done, &b);
			dma_copy(j, b, n, threads);
			RECV_MEET();
			if (n)
				continue;
			j->seen[b]++;
			dma_cqe(j, done);
		}
	}
	if (n)
		return;
	out->verified = done;
	out->bad = bad | (done < j->count ? DMA_BAD_SILENT : 0);
	out->wrong = out->bad != 0;
	out->end_ns = gdk_now_ns();
}

#endif
