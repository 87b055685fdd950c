/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Completions on the CPU: a progress engine reads the CQEs of a send queue, and calls the functions
 * of the program. A CQE says which WQE is complete. Only those whose slot has a note are reported:
 * the library requests CQEs of its own, so that slots become free.
 *
 * Order: the kernel stores the note, then publishes the WQE and rings (release); the NIC writes the
 * CQE. This file: CQE, acquire, note.
 */
#include <endian.h>

#include "core/log/log.h"
#include "qp/eth/txq.h"

#include "gdk_sdk_eth_txq_dev.h"

#define CQE_BYTES      64u
#define TAIL_AT	       60u /* wqe_counter, signature, op_own */
#define TIME_AT	       48u
#define SYNDROME_AT    55u
#define OP_INVALID     0xfu
#define OP_REQ_ERR     0xdu
#define SYNDROME_FLUSH 0x05u
#define CQES_AT_ONCE   256u

struct doca_eth_txq_gpu_event_error_send_packet {
	uint16_t position;
};

struct doca_eth_txq_gpu_event_notify_send_packet {
	uint16_t position;
	uint64_t timestamp;
};

static const uint8_t *next_cqe(const struct doca_eth_txq *txq, uint32_t *tail)
{
	const uint8_t *ring = gdk_gpu_cpu_ptr(txq->ctx.gpu, txq->cq->buf);
	const uint8_t *cqe = ring + (txq->cqe_ci & (txq->num - 1)) * CQE_BYTES;

	*tail = __atomic_load_n((const uint32_t *)(const void *)(cqe + TAIL_AT), __ATOMIC_ACQUIRE);
	if (*tail >> 28 == OP_INVALID || (*tail >> 24 & 1) != !!(txq->cqe_ci & txq->num))
		return NULL;
	return cqe;
}

static uint64_t timestamp(const struct doca_eth_txq *txq, const uint8_t *cqe)
{
	const uint64_t t = be64toh(*(const uint64_t *)(const void *)(cqe + TIME_AT));

	return txq->real_time ? (t >> 32) * 1000000000ull + (uint32_t)t : t;
}

static void report_error(struct doca_eth_txq *txq, const uint8_t *cqe, uint16_t position)
{
	struct doca_eth_txq_gpu_event_error_send_packet ev = { position };

	/* The WQEs behind the first error are flushed: one event for all. */
	if (cqe[SYNDROME_AT] == SYNDROME_FLUSH && txq->failed)
		return;
	txq->failed = true;
	gdk_err("SQ 0x%x: WQE %u failed, syndrome 0x%x: no later packet is sent", txq->sq.number,
		position, cqe[SYNDROME_AT]);
	if (txq->on_error)
		txq->on_error(&ev, txq->error_data);
}

/* Counts how late a send at a given time was. Only NICs with real-time clocks have such sends. */
static void count_time(struct doca_eth_txq *txq, uint64_t idx, uint64_t sent)
{
	const uint64_t t = __atomic_load_n(&txq->notes_cpu[txq->num + (idx & (txq->num - 1))],
					   __ATOMIC_RELAXED);
	const uint64_t when = (t >> 32) * 1000000000ull + (uint32_t)t;
	const uint64_t late = sent < when ? 0 : sent - when;

	txq->timed++;
	txq->early += sent < when;
	txq->late_sum += late;
	if (late > txq->late_max)
		txq->late_max = late;
}

/* Handles one CQE. The functions of the program may not stop the context. */
static void handle(struct doca_eth_txq *txq, const uint8_t *cqe, uint32_t tail)
{
	struct doca_eth_txq_gpu_event_notify_send_packet ev = {
		.position = be16toh((uint16_t)tail),
	};
	/* CQEs are in the order of their WQEs, fewer than 2^16 apart. */
	const uint64_t idx = txq->next_wqe + (uint16_t)(ev.position - (uint16_t)txq->next_wqe);
	uint64_t note;

	txq->next_wqe = idx + 1;
	if (tail >> 28 >= OP_REQ_ERR) {
		report_error(txq, cqe, ev.position);
		return;
	}
	note = __atomic_load_n(&txq->notes_cpu[idx & (txq->num - 1)], __ATOMIC_RELAXED);
	if ((note & ~GDK_ETH_TIMED) != idx + 1)
		return;
	txq->events++;
	ev.timestamp = timestamp(txq, cqe);
	if (note & GDK_ETH_TIMED)
		count_time(txq, idx, ev.timestamp);
	if (txq->on_notify)
		txq->on_notify(&ev, txq->notify_data);
}

bool gdk_eth_txq_progress(struct doca_ctx *ctx)
{
	struct doca_eth_txq *txq = GDK_CONTAINER_OF(ctx, struct doca_eth_txq, ctx);
	const uint8_t *cqe;
	unsigned int n;
	uint32_t tail;

	if (txq->gpu_completion || ctx->state != GDK_CTX_STATE_RUNNING)
		return false;
	for (n = 0; n < CQES_AT_ONCE; n++) {
		cqe = next_cqe(txq, &tail);
		if (!cqe)
			break;
		txq->cqe_ci++;
		handle(txq, cqe, tail);
	}
	return n > 0;
}

doca_error_t doca_eth_txq_gpu_event_error_send_packet_get_position(
	const struct doca_eth_txq_gpu_event_error_send_packet *event_error, uint16_t *position)
{
	GDK_CHECK_PTR(event_error);
	GDK_CHECK_PTR(position);
	*position = event_error->position;
	return DOCA_SUCCESS;
}

doca_error_t doca_eth_txq_gpu_event_notify_send_packet_get_position(
	const struct doca_eth_txq_gpu_event_notify_send_packet *event_notify, uint16_t *position)
{
	GDK_CHECK_PTR(event_notify);
	GDK_CHECK_PTR(position);
	*position = event_notify->position;
	return DOCA_SUCCESS;
}

doca_error_t doca_eth_txq_gpu_event_notify_send_packet_get_timestamp(
	const struct doca_eth_txq_gpu_event_notify_send_packet *event_notify, uint64_t *timestamp)
{
	GDK_CHECK_PTR(event_notify);
	GDK_CHECK_PTR(timestamp);
	*timestamp = event_notify->timestamp;
	return DOCA_SUCCESS;
}
