/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Errors of an exported queue pair: reads the error CQE from the CQ, in host or GPU memory,
 * and the WQE that it refers to. Also the names and usual causes of syndromes. Asynchronous
 * events are in events.c.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"
#include "device/gdk/dump_dev.h"
#include "device/gdk/wait_dev.h"
#include "qp/export/export.h"

#define CQE_BYTES 64u

typedef struct doca_gpunetio_ib_mlx5_err_cqe_ex error_cqe_t;

/* Searches the ring of a CQ for error CQEs of this QP with the opcode of one of its queues. Returns
 * the first one that is not a flush, otherwise the first flush, otherwise NULL. Other QPs may use
 * the same CQ. */
static const error_cqe_t *find_error(const struct doca_verbs_cq_t *cq, const uint8_t *ring,
				     uint32_t qpn, uint8_t opcode)
{
	const error_cqe_t *cqe, *flush = NULL;
	uint32_t i;

	for (i = 0; i < cq->cqe_num; i++) {
		cqe = (const void *)(ring + (size_t)i * CQE_BYTES);
		if (cqe->op_own >> 4 != opcode ||
		    (be32toh(cqe->s_wqe_opcode_qpn) & 0xffffff) != qpn)
			continue;
		if (cqe->syndrome != GDK_SYNDROME_FLUSH)
			return cqe;
		if (!flush)
			flush = cqe;
	}
	return flush;
}

/* Copies the error CQE that find_error() returns. *has_cqe: whether there is one. */
static doca_error_t read_queue_error(const struct gdk_export *x, const struct doca_verbs_cq_t *cq,
				     uint8_t opcode, error_cqe_t *cqe, bool *has_cqe)
{
	const error_cqe_t *found;
	uint8_t *ring;
	doca_error_t err = gdk_export_read_cq(cq, &ring);

	if (err != DOCA_SUCCESS)
		return err;
	found = find_error(cq, ring, x->q.pub.qp->qpn, opcode);
	*has_cqe = found != NULL;
	if (found)
		*cqe = *found;
	free(ring);
	return DOCA_SUCCESS;
}

/* As read_queue_error(), for the send queue. If that has no error or a flush, and the receive queue
 * is exported and has an error, returns the latter: it was first. */
static doca_error_t read_error(const struct gdk_export *x, error_cqe_t *cqe, bool *has_cqe)
{
	error_cqe_t recv;
	bool has_recv;
	doca_error_t err = read_queue_error(x, x->cq, DOCA_GPUNETIO_IB_MLX5_CQE_REQ_ERR, cqe,
					    has_cqe);

	if (err != DOCA_SUCCESS || !x->rq.cq || (*has_cqe && cqe->syndrome != GDK_SYNDROME_FLUSH))
		return err;
	err = read_queue_error(x, x->rq.cq, DOCA_GPUNETIO_IB_MLX5_CQE_RESP_ERR, &recv, &has_recv);
	if (err != DOCA_SUCCESS || !has_recv || (*has_cqe && recv.syndrome == GDK_SYNDROME_FLUSH))
		return err;
	*cqe = recv;
	*has_cqe = true;
	return DOCA_SUCCESS;
}

/* Reads the error CQE and queries the QP state, because a QP in the error state may have no error
 * CQE. */
static doca_error_t query_error(struct gdk_export *x, error_cqe_t *cqe, bool *has_cqe,
				bool *has_error)
{
	uint8_t box[PRM_QUERY_QP_OUT_LEN];
	enum doca_verbs_qp_state state;
	doca_error_t err;

	gdk_watch_report(x);
	err = gdk_qp_query_state(x->q.pub.qp, box, &state);
	if (err == DOCA_SUCCESS)
		err = read_error(x, cqe, has_cqe);
	if (err == DOCA_SUCCESS)
		*has_error = *has_cqe || state == DOCA_VERBS_QP_STATE_ERR;
	return err;
}

doca_error_t doca_gpu_verbs_query_last_error(struct doca_gpu_verbs_qp *qp,
					     struct doca_gpu_verbs_qp_error_info *error_info)
{
	struct doca_gpu_verbs_qp_error_info found = { 0 };
	bool has_cqe, has_error;
	doca_error_t err;
	error_cqe_t cqe;

	GDK_CHECK_PTR(qp);
	GDK_CHECK_PTR(error_info);
	err = query_error(gdk_to_export(qp), &cqe, &has_cqe, &has_error);
	if (err != DOCA_SUCCESS)
		return err;
	found.has_error = has_error;
	if (has_cqe) {
		found.syndrome = cqe.syndrome;
		found.vendor_err_synd = cqe.vendor_err_synd;
		found.hw_err_synd = cqe.hw_err_synd;
		found.hw_synd_type = cqe.hw_synd_type;
		found.wqe_counter = be16toh(cqe.wqe_counter);
	}
	*error_info = found;
	return DOCA_SUCCESS;
}

/* ---- the WQE ---- */

static bool has_remote_address(uint8_t opcode)
{
	switch (opcode) {
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE:
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE_IMM:
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_READ:
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_CS:
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_FA:
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_CS:
	case DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_FA:
		return true;
	default:
		return false;
	}
}

/* Reads remote address and rkey of the failed WQE. has_remote stays false if the opcode has no
 * remote address, or if a later WQE is in the slot: its control segment has another WQE index or
 * opcode. */
static doca_error_t read_remote(const struct gdk_export *x, struct gdk_qp_error *error)
{
	const struct doca_verbs_qp_t *qp = x->q.pub.qp;
	const uint8_t *ring = x->dev.sq_wqe_daddr;
	uint32_t slot[16]; /* control, then remote address segment */
	doca_error_t err;

	err = gdk_queue_read(qp->gpu, slot, ring + error->wqe_counter % qp->sq_num * sizeof(slot),
			     sizeof(slot));
	if (err != DOCA_SUCCESS)
		return err;
	if ((be32toh(slot[0]) >> 8 & 0xffff) != error->wqe_counter ||
	    (be32toh(slot[0]) & 0xff) != error->opcode || !has_remote_address(error->opcode))
		return DOCA_SUCCESS;
	error->has_remote = true;
	error->remote_addr = (uint64_t)be32toh(slot[4]) << 32 | be32toh(slot[5]);
	error->rkey = be32toh(slot[6]);
	return DOCA_SUCCESS;
}

doca_error_t gdk_verbs_qp_get_error(struct doca_gpu_verbs_qp *qp, struct gdk_qp_error *error)
{
	struct gdk_qp_error found = { 0 };
	struct gdk_export *x;
	doca_error_t err;
	error_cqe_t cqe;

	GDK_CHECK_PTR(qp);
	GDK_CHECK_PTR(error);
	x = gdk_to_export(qp);
	err = query_error(x, &cqe, &found.has_cqe, &found.has_error);
	if (err != DOCA_SUCCESS)
		return err;
	found.qpn = qp->qp->qpn;
	if (found.has_cqe) {
		found.syndrome = cqe.syndrome;
		found.vendor_err_synd = cqe.vendor_err_synd;
		found.hw_err_synd = cqe.hw_err_synd;
		found.hw_synd_type = cqe.hw_synd_type;
		found.wqe_counter = be16toh(cqe.wqe_counter);
		found.is_receive = cqe.op_own >> 4 == DOCA_GPUNETIO_IB_MLX5_CQE_RESP_ERR;
		if (!found.is_receive) {
			found.opcode = (uint8_t)(be32toh(cqe.s_wqe_opcode_qpn) >> 24);
			err = read_remote(x, &found);
		}
	}
	if (err == DOCA_SUCCESS)
		*error = found;
	return err;
}

/* ---- text ---- */

/* The most frequent cause of each syndrome. */
static const struct {
	uint8_t syndrome;
	const char *cause;
} causes[] = {
	{ 0x01, "the message is longer than the receive buffer, or longer than 1 GiB" },
	{ 0x02, "the WQE is malformed, or the QP does not allow it: check it with "
		"gdk_verbs_qp_dump_wqe" },
	{ 0x04,
	  "the lkey is wrong, belongs to another PD or is in the wrong byte order (big-endian in "
	  "a WQE), or the range exceeds its memory region" },
	{ 0x05, "an earlier WQE failed, or the host moved the QP to the error state: look for the "
		"first error" },
	{ 0x06, "the memory window or its region does not allow binding" },
	{ 0x10, "the response of the remote side does not match the request: are both QPs "
		"connected to each other, and were both reset?" },
	{ 0x11, "the NIC cannot write the result of a read or atomic to local memory: is the "
		"region registered with local write?" },
	{ 0x12, "the remote QP does not allow the operation: check its allow_remote_*, atomic_mode "
		"and max_dest_rd_atomic attributes, and the length" },
	{ 0x13,
	  "the rkey is wrong, belongs to another PD or is in the wrong byte order (big-endian in "
	  "a WQE), the range exceeds its memory region, or the region does not allow the access" },
	{ 0x14, "the remote side failed, often at its own receive or memory: check its log and "
		"CQ" },
	{ 0x15,
	  "no response: the remote process or link is down, the QP number, GID, MAC or MTU is "
	  "wrong, or the network drops packets (PFC, ECN, ACL on UDP port 4791)" },
	{ 0x16, "the remote side had no receive posted for longer than rnr_retry allows" },
	{ 0x22, "the remote side aborted the operation" },
};

const char *gdk_syndrome_text(int syndrome)
{
	return gdk_syndrome_name((uint32_t)syndrome);
}

const char *gdk_syndrome_cause(int syndrome)
{
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(causes); i++)
		if (causes[i].syndrome == syndrome)
			return causes[i].cause;
	return "unknown; report the vendor syndrome to NVIDIA support";
}
