/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * Copies of memory by the NIC, on the device. Programs include doca_gpunetio_dev_dma.cuh; code on
 * CPU threads may include this file.
 *
 * Many threads may post copies; they begin when one thread commits. A copy of more bytes than one
 * request to the NIC may have is posted as several requests. Copies may be executed in any order.
 *
 * Return values: INVALID_VALUE for bad arguments. After an error of a copy, an abort or a time-out,
 * the queue has ended: all functions return IO_FAILED, SHUTDOWN or TIME_OUT until the context is
 * stopped and started again. The host logs the cause.
 */
#ifndef GDK_SDK_DMA_DEV_H
#define GDK_SDK_DMA_DEV_H

#include "gdk_sdk_buf_dev.h"
#include "gdk_sdk_shape.h"

#include "device/gdk/by_hand_dev.h"

/** The largest copy, bytes. */
#define GDK_DMA_MAX_COPY ((uint64_t)1 << 31)

/** A DMA object, as kernels use it. The struct does not change while the context runs. */
struct doca_gpu_dma {
	struct doca_gpu_dev_verbs_qp *qp; /**< device struct of its queue pair */
	uint64_t result_key;		  /**< first half of the result segment of a request */
	uint64_t result;		  /**< second half: address of the result, big-endian */
	uint64_t max;			  /**< bytes of one request */
	uint32_t by_write;		  /**< 1: RDMA writes copy, not the copy engine */
	uint32_t reserved;		  /**< 0 */
};

/** A copy of contiguous memory. Keys are big-endian. */
struct gdk_dma_span {
	uint64_t from;	   /**< source address */
	uint64_t to;	   /**< destination address */
	uint64_t len;	   /**< bytes */
	uint32_t from_key; /**< key of the source */
	uint32_t to_key;   /**< key of the destination */
};

/** Returns the error code for a status of a queue pair. */
GDK_FN doca_error_t gdk_dma_error(int status)
{
	switch (status) {
	case 0:
		return DOCA_SUCCESS;
	case -ECANCELED:
		return DOCA_ERROR_SHUTDOWN;
	case -ETIMEDOUT:
	case -EHOSTDOWN:
		return DOCA_ERROR_TIME_OUT;
	case -ENOTCONN:
		return DOCA_ERROR_NOT_CONNECTED;
	default:
		return DOCA_ERROR_IO_FAILED;
	}
}

/** Returns whether len bytes from an offset on are in a buffer. */
GDK_FN int gdk_dma_inside(const struct doca_gpu_buf *buf, uint64_t offset, uint64_t len)
{
	const uint64_t size = gdk_ldc64(&buf->size);

	return offset <= size && len <= size - offset;
}

/** The WQE that copies the first `bytes` bytes of a span. */
GDK_FN struct gdk_one gdk_dma_one(const struct doca_gpu_dma *dma, const struct gdk_dma_span *s,
				  uint32_t bytes, int by_write)
{
	const gdk_key_t from = gdk_key_be(s->from_key), to = gdk_key_be(s->to_key);
	struct gdk_one one;

	if (by_write) {
		one = gdk_one_of(DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, 3);
		gdk_one_raddr(&one, s->to, to);
		gdk_one_data(&one, 2, s->from, from, bytes);
		return one;
	}
	one = gdk_one_of(GDK_OPCODE_MMO, 4);
	one.w[0] = gdk_ldc64(&dma->result_key);
	one.w[1] = gdk_ldc64(&dma->result);
	gdk_one_data(&one, 2, s->from, from, bytes); /* 2^31 is written as 0 */
	gdk_one_data(&one, 4, s->to, to, bytes);
	return one;
}

/** Posts the requests of a span, without a doorbell. *ticket: the last one. Returns 0 or the status
 * that ended the queue pair. */
GDK_FN int gdk_dma_post(const struct doca_gpu_dma *dma, struct gdk_dma_span s, uint64_t *ticket)
{
	const gdk_mode_t mode = DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU;
	const gdk_handler_t handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO;
	const struct gdk_how check = gdk_how(mode, handler, GDK_THREAD, 0),
			     how = gdk_how(mode, handler, GDK_THREAD, GDK_OPT_SKIP_DB);
	struct doca_gpu_dev_verbs_qp *qp =
		(struct doca_gpu_dev_verbs_qp *)(uintptr_t)gdk_ldc64((const uint64_t *)&dma->qp);
	const uint64_t max = gdk_ldc64(&dma->max);
	const int by_write = gdk_ldc32(&dma->by_write) != 0;
	struct gdk_post p;
	struct gdk_one one;
	uint64_t bytes;
	int err;

	GDK_LOOP
	do {
		bytes = s.len < max ? s.len : max;
		err = gdk_post_begin(qp, &p, 1, 0, check);
		*ticket = p.idx;
		if (err)
			return err;
		one = gdk_dma_one(dma, &s, (uint32_t)bytes, by_write);
		gdk_one_write_mod(&p.wqes, p.idx, &one, 4, by_write ? 0 : GDK_OPMOD_MMO_DMA);
		gdk_post_end(&p, how);
		s.from += bytes;
		s.to += bytes;
		s.len -= bytes;
	} while (s.len);
	return 0;
}

/**
 * As doca_gpu_dev_dma_memcpy(); *ticket is for gdk_gpu_dev_dma_wait().
 */
GDK_FN doca_error_t gdk_gpu_dev_dma_memcpy(struct doca_gpu_dma *dma, struct doca_gpu_buf *src,
					   uint64_t src_offset, struct doca_gpu_buf *dst,
					   uint64_t dst_offset, uint64_t len, uint64_t *ticket)
{
	struct gdk_dma_span s;

	if (!dma || !src || !dst || !len || len > GDK_DMA_MAX_COPY ||
	    !gdk_dma_inside(src, src_offset, len) || !gdk_dma_inside(dst, dst_offset, len))
		return DOCA_ERROR_INVALID_VALUE;
	s.from = gdk_ldc64(&src->addr) + src_offset;
	s.to = gdk_ldc64(&dst->addr) + dst_offset;
	s.len = len;
	s.from_key = gdk_ldc32(&src->mkey);
	s.to_key = gdk_ldc32(&dst->mkey);
	if (s.from < s.to + len && s.to < s.from + len)
		return DOCA_ERROR_INVALID_VALUE;
	return gdk_dma_error(gdk_dma_post(dma, s, ticket));
}

/**
 * Posts a copy of len bytes between two buffers. It begins after a doca_gpu_dev_dma_commit(), or
 * when the queue is full. Many threads may call this. If the queue is full, the call waits for a
 * free slot, at most for the time of gdk_dma_set_wait_limit().
 *
 * @param len 1 to 2^31. INVALID_VALUE: another length, a range outside of its buffer, or ranges
 *        that overlap; nothing is posted.
 */
GDK_FN doca_error_t doca_gpu_dev_dma_memcpy(struct doca_gpu_dma *dma, struct doca_gpu_buf *src,
					    uint64_t src_offset, struct doca_gpu_buf *dst,
					    uint64_t dst_offset, uint64_t len)
{
	uint64_t ticket;

	return gdk_gpu_dev_dma_memcpy(dma, src, src_offset, dst, dst_offset, len, &ticket);
}

/**
 * Begins all copies posted before. One thread calls this after the others have posted, for example
 * after __syncthreads(); other threads may post meanwhile.
 */
GDK_FN doca_error_t doca_gpu_dev_dma_commit(struct doca_gpu_dma *dma)
{
	const gdk_mode_t mode = DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU;
	struct doca_gpu_dev_verbs_qp *qp;

	if (!dma)
		return DOCA_ERROR_INVALID_VALUE;
	qp = dma->qp;
	gdk_submit(qp, gdk_ld64(gdk_rsvd_index(qp), GDK_SCOPE_GPU),
		   gdk_how(mode, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO, GDK_THREAD, 0));
	return gdk_dma_error(gdk_qp_status(qp));
}

/**
 * Waits until the copy of a ticket is done; it begins the copy if it has not begun. Many threads
 * may wait.
 *
 * @param limit_ns longest time of the wait, in nanoseconds. TIME_OUT: it has passed; the copy goes
 *        on. 0: the limit of the queue, which ends the queue when it has passed.
 */
GDK_FN doca_error_t gdk_gpu_dev_dma_wait(struct doca_gpu_dma *dma, uint64_t ticket,
					 uint64_t limit_ns)
{
	const gdk_mode_t mode = DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU;

	if (!dma)
		return DOCA_ERROR_INVALID_VALUE;
	return gdk_dma_error(limit_ns ? gdk_wait_for(dma->qp, ticket, mode, limit_ns)
				      : gdk_wait(dma->qp, ticket, mode));
}

/** As gdk_gpu_dev_dma_wait(), for all copies posted before. */
GDK_FN doca_error_t gdk_gpu_dev_dma_wait_all(struct doca_gpu_dma *dma, uint64_t limit_ns)
{
	uint64_t end;

	if (!dma)
		return DOCA_ERROR_INVALID_VALUE;
	end = gdk_ld64(gdk_rsvd_index(dma->qp), GDK_SCOPE_GPU);
	return end ? gdk_gpu_dev_dma_wait(dma, end - 1, limit_ns)
		   : gdk_dma_error(gdk_qp_status(dma->qp));
}

#endif
