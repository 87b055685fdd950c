/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The initial content of a CQ: CQEs that a poller does not mistake for completions. */
#include <stdlib.h>
#include <string.h>

#include "core/gpu/gpu.h"
#include "core/log/log.h"
#include "cq/cq.h"

/* Sets opcode "invalid" and owner bit 1 in the last byte of each CQE. In the first lap the NIC
 * writes owner bit 0. */
void gdk_cq_format_image(uint8_t *ring, uint32_t cqe_num)
{
	uint32_t i;

	for (i = 1; i <= cqe_num; i++)
		ring[(size_t)i * DOCA_GPUNETIO_VERBS_CQE_SIZE - 1] = 0xf0 | 1;
}

static void format_ring(const struct doca_verbs_cq_t *cq, void *ring, size_t dbrec_bytes)
{
	memset(ring, 0, gdk_cq_ring_bytes(cq) + dbrec_bytes);
	gdk_cq_format_image(ring, cq->cqe_num);
}

doca_error_t gdk_cq_format(struct doca_verbs_cq_t *cq, size_t dbrec_bytes)
{
	size_t bytes = gdk_cq_ring_bytes(cq) + dbrec_bytes;
	doca_error_t err;
	void *image;

	if (!cq->gpu) {
		format_ring(cq, cq->buf, dbrec_bytes);
		return DOCA_SUCCESS;
	}
	image = malloc(bytes);
	if (!image) {
		gdk_err("no memory to initialize a CQ of %u entries", cq->cqe_num);
		return DOCA_ERROR_NO_MEMORY;
	}
	format_ring(cq, image, dbrec_bytes);
	err = gdk_gpu_write(cq->gpu, cq->buf, image, bytes);
	free(image);
	return err;
}
