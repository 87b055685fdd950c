/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Converts WQEs and CQEs to text in a buffer of the caller, on the host. They are in memory of
 * the caller, or in the queues of an exported queue pair in host or GPU memory. dump_dev.h
 * formats the text, also for GPU threads.
 */
#include <endian.h>
#include <string.h>

#include "core/log/log.h"
#include "device/gdk/dump_dev.h"
#include "qp/export/export.h"

#define MAX_SLOTS 16u /* slots of the longest WQE, 63 segments */

size_t gdk_dump_wqe(char *buf, size_t size, const void *wqe, unsigned int slots)
{
	uint64_t copy[MAX_SLOTS * 8]; /* aligned */
	struct gdk_wqe_view v = { .ring = (const uint8_t *)copy, .mask = UINT64_MAX };
	struct gdk_text t;

	GDK_CHECK_ARG_OR(0, buf || !size, "buf NULL (expected a buffer of size %zu)", size);
	GDK_CHECK_ARG_OR(0, wqe || !slots, "wqe NULL (expected a WQE of %u slots)", slots);
	slots = slots < MAX_SLOTS ? slots : MAX_SLOTS;
	v.limit = slots * 4;
	gdk_text_start(&t, buf, size);
	if (slots) {
		memcpy(copy, wqe, slots * sizeof(struct doca_gpu_dev_verbs_wqe));
		gdk_text_wqe(&t, &v);
	}
	return t.len;
}

size_t gdk_dump_cqe(char *buf, size_t size, const void *cqe)
{
	uint64_t copy[8];
	const struct gdk_wqe_view v = { .ring = (const uint8_t *)copy,
					.mask = UINT64_MAX,
					.limit = 4 };
	struct gdk_text t;

	GDK_CHECK_ARG_OR(0, buf || !size, "buf NULL (expected a buffer of size %zu)", size);
	GDK_CHECK_PTR_OR(0, cqe);
	memcpy(copy, cqe, sizeof(copy));
	gdk_text_start(&t, buf, size);
	gdk_text_cqe(&t, &v);
	return t.len;
}

doca_error_t gdk_verbs_qp_dump_wqe(struct doca_gpu_verbs_qp *qp, uint64_t index, char *buf,
				   size_t size)
{
	struct doca_gpu_dev_verbs_wqe wqe[MAX_SLOTS];
	const uint8_t *ring;
	unsigned int i;
	uint32_t num;

	GDK_CHECK_PTR(qp);
	GDK_CHECK_PTR(buf);
	GDK_CHECK_ARG(size, "size 0 (expected at least 1)");
	ring = gdk_to_export(qp)->dev.sq_wqe_daddr;
	num = qp->qp->sq_num;
	for (i = 0; i < MAX_SLOTS && i < num; i++) {
		doca_error_t err = gdk_queue_read(qp->qp->gpu, &wqe[i],
						  ring + (index + i) % num * sizeof(wqe[0]),
						  sizeof(wqe[0]));
		if (err != DOCA_SUCCESS)
			return err;
	}
	(void)gdk_dump_wqe(buf, size, wqe, i);
	return DOCA_SUCCESS;
}

/* Dumps entry `at` modulo the number of entries. */
static doca_error_t dump_cqe(const struct doca_verbs_cq_t *cq, uint64_t at, char *buf, size_t size)
{
	uint64_t cqe[8];
	doca_error_t err;

	err = gdk_queue_read(cq->gpu, cqe,
			     (const uint8_t *)cq->buf + at % cq->cqe_num * sizeof(cqe),
			     sizeof(cqe));
	if (err == DOCA_SUCCESS)
		(void)gdk_dump_cqe(buf, size, cqe);
	return err;
}

doca_error_t gdk_verbs_qp_dump_cqe(struct doca_gpu_verbs_qp *qp, uint64_t index, char *buf,
				   size_t size)
{
	const struct gdk_export *x;

	GDK_CHECK_PTR(qp);
	GDK_CHECK_PTR(buf);
	GDK_CHECK_ARG(size, "size 0 (expected at least 1)");
	x = gdk_to_export(qp);
	return dump_cqe(x->cq, x->cq->collapsed ? 0 : index + x->dev.cq_sq.cqe_rsvd, buf, size);
}

/* ---- receive queue ---- */

doca_error_t gdk_verbs_qp_dump_recv_wqe(struct doca_gpu_verbs_qp *qp, uint64_t index, char *buf,
					size_t size)
{
	struct doca_gpunetio_ib_mlx5_wqe_data_seg segs[32];
	const struct doca_verbs_qp_t *q;
	struct gdk_text t;
	doca_error_t err;
	uint32_t i;

	GDK_CHECK_PTR(qp);
	GDK_CHECK_PTR(buf);
	GDK_CHECK_ARG(size, "size 0 (expected at least 1)");
	q = qp->qp;
	GDK_CHECK_ARG(gdk_to_export(qp)->rq.cq, "QP 0x%x: its receive queue is not exported",
		      q->qpn);
	err = gdk_queue_read(q->gpu, segs,
			     (const uint8_t *)q->rq_buf + index % q->rq_num * q->rwqe_size,
			     q->rwqe_size);
	if (err != DOCA_SUCCESS)
		return err;
	gdk_text_start(&t, buf, size);
	gdk_text_count(&t, "receive WQE ", index);
	gdk_text_add(&t, "\n");
	for (i = 0; i < q->rwqe_size / sizeof(segs[0]); i++) {
		gdk_text_count(&t, "  data byte_count ", be32toh(segs[i].byte_count));
		gdk_text_field(&t, " lkey ", be32toh(segs[i].lkey));
		gdk_text_field(&t, " addr ", be64toh(segs[i].addr));
		gdk_text_add(&t, "\n");
		if (!segs[i].byte_count && be32toh(segs[i].lkey) == 0x100)
			break; /* the end of the list */
	}
	return DOCA_SUCCESS;
}

doca_error_t gdk_verbs_qp_dump_recv_cqe(struct doca_gpu_verbs_qp *qp, uint64_t index, char *buf,
					size_t size)
{
	const struct gdk_export *x;

	GDK_CHECK_PTR(qp);
	GDK_CHECK_PTR(buf);
	GDK_CHECK_ARG(size, "size 0 (expected at least 1)");
	x = gdk_to_export(qp);
	GDK_CHECK_ARG(x->rq.cq, "QP 0x%x: its receive queue is not exported", qp->qp->qpn);
	return dump_cqe(x->rq.cq, index + x->dev.cq_rq.cqe_rsvd, buf, size);
}
