/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/**
 * @file
 * The RDMA library on the device. Programs include doca_gpunetio_dev_rdma.cuh; code on CPU threads
 * may include this file.
 *
 * An object has connections, numbered from 0. An operation of a connection is posted, and a commit
 * makes the NIC execute it. Strong operations take the next position; threads of any number of
 * blocks may post them and commit. Weak operations have a position that the caller chooses: each
 * position once, without a gap, not more than the queue has ahead of the commits. One thread
 * commits n of them when all are posted. Positions may be masked with 0xffff or with the mask of
 * doca_gpu_rdma_get_info(), or not at all. A connection may use both kinds in turn.
 *
 * Each operation has one position. It transfers up to 1 GiB; one that carries its data, 1 to 28
 * bytes; a write with immediate, at least one byte. If the queue is full, the thread waits, at most
 * until the time limit. Keys and immediate values are big-endian.
 *
 * All functions return INVALID_VALUE for a wrong connection, size or position, NOT_CONNECTED while
 * the connection is not established, and after a connection has ended the reason: IO_FAILED (an
 * error CQE), TIME_OUT, CONNECTION_ABORTED (by the host), INVALID_VALUE (by the debug build).
 */
#ifndef GDK_SDK_RDMA_DEV_H
#define GDK_SDK_RDMA_DEV_H

#include "gdk_rdma_recv_dev.h"
#include "gdk_sdk_buf_dev.h"

/** Flags of a write. */
enum doca_gpu_dev_rdma_write_flags {
	DOCA_GPU_RDMA_WRITE_FLAG_NONE = 0, /**< no immediate value */
	DOCA_GPU_RDMA_WRITE_FLAG_IMM = 1,  /**< with immediate: uses a receive of the remote side */
};

/** Flags of a send. */
enum doca_gpu_dev_rdma_send_flags {
	DOCA_GPU_RDMA_SEND_FLAG_NONE = 0, /**< no immediate value */
	DOCA_GPU_RDMA_SEND_FLAG_IMM = 1,  /**< with immediate */
};

/** How doca_gpu_dev_rdma_recv_wait_all() waits. */
enum doca_gpu_dev_rdma_recv_wait_flags {
	DOCA_GPU_RDMA_RECV_WAIT_FLAG_NB = 0, /**< returns what is complete */
	DOCA_GPU_RDMA_RECV_WAIT_FLAG_B = 1,  /**< waits for all receives that are committed */
};

/* ---- conversions ---- */

/** Converts a status of the device functions. */
GDK_FN doca_error_t gdk_rdma_error(int err)
{
	switch (err) {
	case 0:
		return DOCA_SUCCESS;
	case -EINVAL:
		return DOCA_ERROR_INVALID_VALUE;
	case -ENOTCONN:
		return DOCA_ERROR_NOT_CONNECTED;
	case -EIO:
		return DOCA_ERROR_IO_FAILED;
	case -ECANCELED:
		return DOCA_ERROR_CONNECTION_ABORTED;
	case -ENOBUFS:
		return DOCA_ERROR_FULL;
	case -ETIMEDOUT:
	case -EHOSTDOWN: /* no CPU thread rings the doorbells */
		return DOCA_ERROR_TIME_OUT;
	default:
		return DOCA_ERROR_UNEXPECTED;
	}
}

/** Address and key of a byte of a buffer. */
GDK_FN struct doca_gpu_dev_verbs_addr gdk_rdma_addr(const struct doca_gpu_buf *buf, uint64_t offset)
{
	return gdk_addr(buf->addr + offset, gdk_key_be(buf->mkey));
}

/** Posts a write, which may carry its data. */
GDK_FN doca_error_t gdk_rdma_write(struct doca_gpu_dev_rdma *rdma, uint32_t conn,
				   struct gdk_op_move m, uint32_t imm, uint32_t flags,
				   struct gdk_rdma_at at)
{
	const int has_imm = (flags & DOCA_GPU_RDMA_WRITE_FLAG_IMM) != 0;

	if (has_imm && m.kind == GDK_MOVE_WRITE)
		m.kind = GDK_MOVE_WRITE_IMM;
	m.imm_be = has_imm ? imm : 0;
	return gdk_rdma_error(gdk_rdma_post(rdma, conn, &m, has_imm, at));
}

/** Posts a send. */
GDK_FN doca_error_t gdk_rdma_send(struct doca_gpu_dev_rdma *rdma, uint32_t conn,
				  struct doca_gpu_dev_verbs_addr buf, uint64_t size, uint32_t imm,
				  uint32_t flags, struct gdk_rdma_at at)
{
	const int has_imm = (flags & DOCA_GPU_RDMA_SEND_FLAG_IMM) != 0;
	struct gdk_op_move m = gdk_move_of(has_imm ? GDK_MOVE_SEND_IMM : GDK_MOVE_SEND, buf, buf,
					   size);

	m.imm_be = has_imm ? imm : 0;
	return gdk_rdma_error(gdk_rdma_post(rdma, conn, &m, has_imm, at));
}

/** Posts a read. */
GDK_FN doca_error_t gdk_rdma_read(struct doca_gpu_dev_rdma *rdma, uint32_t conn,
				  struct doca_gpu_dev_verbs_addr remote,
				  struct doca_gpu_dev_verbs_addr local, uint64_t size,
				  struct gdk_rdma_at at)
{
	const struct gdk_op_move m = gdk_move_of(GDK_MOVE_READ, remote, local, size);

	return gdk_rdma_error(gdk_rdma_post(rdma, conn, &m, 0, at));
}

/* ---- operations ---- */

/** Writes size bytes to the remote buffer. imm is used with flag IMM only. */
GDK_FN doca_error_t doca_gpu_dev_rdma_write_strong(struct doca_gpu_dev_rdma *rdma,
						   uint32_t connection_index,
						   const struct doca_gpu_buf *remote_buf,
						   uint64_t remote_offset,
						   const struct doca_gpu_buf *local_buf,
						   uint64_t local_offset, size_t size, uint32_t imm,
						   uint32_t flags)
{
	return gdk_rdma_write(rdma, connection_index,
			      gdk_move_of(GDK_MOVE_WRITE, gdk_rdma_addr(remote_buf, remote_offset),
					  gdk_rdma_addr(local_buf, local_offset), size),
			      imm, flags, gdk_rdma_next());
}

/** As doca_gpu_dev_rdma_write_strong(), at a position. */
GDK_FN doca_error_t doca_gpu_dev_rdma_write_weak(struct doca_gpu_dev_rdma *rdma,
						 uint32_t connection_index,
						 const struct doca_gpu_buf *remote_buf,
						 uint64_t remote_offset,
						 const struct doca_gpu_buf *local_buf,
						 uint64_t local_offset, size_t size, uint32_t imm,
						 uint32_t flags, uint32_t position)
{
	return gdk_rdma_write(rdma, connection_index,
			      gdk_move_of(GDK_MOVE_WRITE, gdk_rdma_addr(remote_buf, remote_offset),
					  gdk_rdma_addr(local_buf, local_offset), size),
			      imm, flags, gdk_rdma_at(position));
}

/** Writes 1 to 28 bytes at `data`, which may be reused at once. */
GDK_FN doca_error_t doca_gpu_dev_rdma_write_inline_strong(struct doca_gpu_dev_rdma *rdma,
							  uint32_t connection_index,
							  const struct doca_gpu_buf *remote_buf,
							  uint64_t remote_offset, const void *data,
							  size_t size, uint32_t imm, uint32_t flags)
{
	return gdk_rdma_write(rdma, connection_index,
			      gdk_move_inline(gdk_rdma_addr(remote_buf, remote_offset), data, size),
			      imm, flags, gdk_rdma_next());
}

/** As doca_gpu_dev_rdma_write_inline_strong(), at a position. */
GDK_FN doca_error_t doca_gpu_dev_rdma_write_inline_weak(struct doca_gpu_dev_rdma *rdma,
							uint32_t connection_index,
							const struct doca_gpu_buf *remote_buf,
							uint64_t remote_offset, const void *data,
							size_t size, uint32_t imm, uint32_t flags,
							uint32_t position)
{
	return gdk_rdma_write(rdma, connection_index,
			      gdk_move_inline(gdk_rdma_addr(remote_buf, remote_offset), data, size),
			      imm, flags, gdk_rdma_at(position));
}

/** Reads size bytes of the remote buffer, at a position. flags are not used. */
GDK_FN doca_error_t doca_gpu_dev_rdma_read_weak(struct doca_gpu_dev_rdma *rdma,
						uint32_t connection_index,
						const struct doca_gpu_buf *remote_buf,
						uint64_t remote_offset,
						const struct doca_gpu_buf *local_buf,
						uint64_t local_offset, size_t size, uint32_t flags,
						uint32_t position)
{
	(void)flags;
	return gdk_rdma_read(rdma, connection_index, gdk_rdma_addr(remote_buf, remote_offset),
			     gdk_rdma_addr(local_buf, local_offset), size, gdk_rdma_at(position));
}

/** As doca_gpu_dev_rdma_read_weak(), at the next position. */
GDK_FN doca_error_t gdk_rdma_read_strong(struct doca_gpu_dev_rdma *rdma, uint32_t connection_index,
					 const struct doca_gpu_buf *remote_buf,
					 uint64_t remote_offset,
					 const struct doca_gpu_buf *local_buf,
					 uint64_t local_offset, size_t size)
{
	return gdk_rdma_read(rdma, connection_index, gdk_rdma_addr(remote_buf, remote_offset),
			     gdk_rdma_addr(local_buf, local_offset), size, gdk_rdma_next());
}

/** Sends size bytes, which a receive of the remote side gets. imm is used with flag IMM only. */
GDK_FN doca_error_t doca_gpu_dev_rdma_send_strong(struct doca_gpu_dev_rdma *rdma,
						  uint32_t connection_index,
						  const struct doca_gpu_buf *local_buf,
						  uint64_t local_offset, size_t size, uint32_t imm,
						  uint32_t flags)
{
	return gdk_rdma_send(rdma, connection_index, gdk_rdma_addr(local_buf, local_offset), size,
			     imm, flags, gdk_rdma_next());
}

/** As doca_gpu_dev_rdma_send_strong(), at a position. local: gdk_rdma_addr(buffer, offset). */
GDK_FN doca_error_t gdk_rdma_send_weak(struct doca_gpu_dev_rdma *rdma, uint32_t connection_index,
				       struct doca_gpu_dev_verbs_addr local, size_t size,
				       uint32_t imm, uint32_t flags, uint32_t position)
{
	return gdk_rdma_send(rdma, connection_index, local, size, imm, flags,
			     gdk_rdma_at(position));
}

/** Commits all strong operations that were posted before: by this thread, and by threads that it
 * has synchronized with. */
GDK_FN doca_error_t doca_gpu_dev_rdma_commit_strong(struct doca_gpu_dev_rdma *rdma,
						    uint32_t connection_index)
{
	return gdk_rdma_error(gdk_rdma_commit_strong(rdma, connection_index));
}

/** Commits the next num_ops positions, in which weak operations were posted by threads that the
 * caller has synchronized with. */
GDK_FN doca_error_t doca_gpu_dev_rdma_commit_weak(struct doca_gpu_dev_rdma *rdma,
						  uint32_t connection_index, uint32_t num_ops)
{
	return gdk_rdma_error(gdk_rdma_commit_weak(rdma, connection_index, num_ops));
}

/** Waits until all operations that were committed are complete, on all connections. *num_commits
 * gets the number of their commits, each of which one call counts. If a connection has ended, the
 * reason is returned, and *num_commits has the commits of the others; doca_gpu_rdma_get_info()
 * returns which one it is. The call in which it ends does not wait for the others any more. */
GDK_FN doca_error_t doca_gpu_dev_rdma_wait_all(struct doca_gpu_dev_rdma *rdma,
					       uint32_t *num_commits)
{
	return gdk_rdma_error(gdk_rdma_wait_all(rdma, num_commits));
}

/** Returns the next position of a connection, and the mask of positions: the size of the queue
 * minus 1. */
GDK_FN doca_error_t doca_gpu_rdma_get_info(struct doca_gpu_dev_rdma *rdma,
					   uint32_t connection_index, uint32_t *position,
					   uint32_t *mask)
{
	return gdk_rdma_error(gdk_rdma_info(rdma, connection_index, position, mask));
}

/* ---- receives ---- */

/** Returns the receive queue, which all connections share. */
GDK_FN doca_error_t doca_gpu_dev_rdma_get_recv(struct doca_gpu_dev_rdma *rdma,
					       struct doca_gpu_dev_rdma_r **rdma_r)
{
	*rdma_r = (struct doca_gpu_dev_rdma_r *)(uintptr_t)gdk_ldc64(&rdma->recv);
	return DOCA_SUCCESS;
}

/** Posts a receive; buf NULL: without a buffer. */
GDK_FN doca_error_t gdk_rdma_recv_buf(struct doca_gpu_dev_rdma_r *rdma_r,
				      const struct doca_gpu_buf *buf, size_t size, uint64_t offset,
				      struct gdk_rdma_at at)
{
	const struct doca_gpu_dev_verbs_addr none = { 0, 0 };

	return gdk_rdma_error(
		gdk_rdma_recv(rdma_r, buf ? gdk_rdma_addr(buf, offset) : none, buf ? size : 0, at));
}

/**
 * Posts a receive at the next position. recv_buf NULL: without a buffer, for a write with immediate
 * or a message without data. flags are not used. FULL: as many receives as the queue has are
 * posted, and not yet returned by doca_gpu_dev_rdma_recv_wait_all().
 */
GDK_FN doca_error_t doca_gpu_dev_rdma_recv_strong(struct doca_gpu_dev_rdma_r *rdma_r,
						  const struct doca_gpu_buf *recv_buf, size_t size,
						  uint64_t offset, uint32_t flags)
{
	(void)flags;
	return gdk_rdma_recv_buf(rdma_r, recv_buf, size, offset, gdk_rdma_next());
}

/** As doca_gpu_dev_rdma_recv_strong(), at a position. */
GDK_FN doca_error_t doca_gpu_dev_rdma_recv_weak(struct doca_gpu_dev_rdma_r *rdma_r,
						const struct doca_gpu_buf *recv_buf, size_t size,
						uint64_t offset, uint32_t flags, uint32_t position)
{
	(void)flags;
	return gdk_rdma_recv_buf(rdma_r, recv_buf, size, offset, gdk_rdma_at(position));
}

/** Commits all strong receives that were posted before. */
GDK_FN doca_error_t doca_gpu_dev_rdma_recv_commit_strong(struct doca_gpu_dev_rdma_r *rdma_r)
{
	return gdk_rdma_error(gdk_rdma_recv_commit_strong(rdma_r));
}

/** Commits the next num_ops positions. A position whose receive was returned keeps its buffer, and
 * may be committed again without being posted. FULL: as doca_gpu_dev_rdma_recv_strong(). */
GDK_FN doca_error_t doca_gpu_dev_rdma_recv_commit_weak(struct doca_gpu_dev_rdma_r *rdma_r,
						       uint32_t num_ops)
{
	return gdk_rdma_error(gdk_rdma_recv_commit_weak(rdma_r, num_ops));
}

/**
 * Returns receives that are complete, in the order of their positions, each once. Threads that call
 * it at the same time get different receives.
 *
 * flags: NB or B. num_ops gets their number. imm_val and conn_idx are NULL, or arrays with an
 * element for each receive that is posted; they get the immediate values (0: the message had none)
 * and the connection indices.
 *
 * IO_FAILED with num_ops 1: this receive failed, and its connection has ended. The other
 * connections work on. IO_FAILED or CONNECTION_ABORTED with num_ops 0: all connections have ended.
 * TIME_OUT: the receives of a call with flag B are not complete after the time limit; those that
 * are complete are returned.
 */
GDK_FN doca_error_t doca_gpu_dev_rdma_recv_wait_all(struct doca_gpu_dev_rdma_r *rdma_r,
						    uint32_t flags, uint32_t *num_ops,
						    uint32_t *imm_val, uint32_t *conn_idx)
{
	struct gdk_rdma_out out = { 0, imm_val, conn_idx };
	const int err = gdk_rdma_recv_wait(rdma_r, (flags & DOCA_GPU_RDMA_RECV_WAIT_FLAG_B) != 0,
					   &out);

	*num_ops = out.num;
	return gdk_rdma_error(err);
}

#endif
