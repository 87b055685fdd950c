/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The account of the packets: each one that was sent must have come once and unchanged, or must be
 * among those for which the receiver had no free slot.
 */
#include <inttypes.h>
#include <stdio.h>

#include "exchange.h"

#include "ethernet.h"
#include "queues.h"

#define QUIET_CALLS 200u

bool et_is_quiet(struct et_quiet *q, uint64_t progress, int64_t limit_ms)
{
	const int64_t now = ex_now_ms();

	if (!q->since || progress != q->last) {
		q->since = now;
		q->last = progress;
		q->calls = 0;
	}
	return ++q->calls > QUIET_CALLS && now - q->since > limit_ms;
}

void et_account_packet(struct et_account *a, const struct et_flow *flow, const uint8_t *frame,
		       uint32_t got, uint32_t bytes, bool checks)
{
	uint32_t number;

	a->bad_sums += !checks;
	if (!et_right(frame, flow, got, bytes, &number) || number >= a->sent)
		a->changed++;
	else if (a->seen[number]++)
		a->repeated++;
	else
		a->received++;
}

int et_account_print(const struct et_account *a, uint64_t packets)
{
	const uint64_t known = a->received + a->out_of_buffer;
	char rate[32] = "-";
	int rc = 0;

	if (a->seconds > 0)
		snprintf(rate, sizeof(rate), "%.4g", (double)packets / a->seconds);
	printf("%10s %12s %10s %10s %8s %14s %16s\n", "packets", "bytes", "packets/s", "doorbells",
	       "DBRECs", "out of buffer", "checksum errors");
	printf("%10" PRIu64 " %12" PRIu64 " %10s %10" PRIu64 " %8" PRIu64 " %14" PRIu64
	       " %16" PRIu64 "\n",
	       packets, a->bytes, rate, a->doorbells, a->dbrecs, a->out_of_buffer, a->bad_sums);
	if (known < a->sent)
		rc = ex_error("%" PRIu64 " of %u packets are missing", a->sent - known, a->sent);
	if (known > a->sent)
		rc = ex_error("%" PRIu64 " packets more than the %u that were sent",
			      known - a->sent, a->sent);
	if (a->repeated)
		rc = ex_error("%" PRIu64 " packets came twice", a->repeated);
	if (a->changed)
		rc = ex_error("%" PRIu64 " packets were changed or unexpected", a->changed);
	if (a->bad_sums)
		rc = ex_error("%" PRIu64 " packets have wrong checksums", a->bad_sums);
	if (!rc)
		printf("all %u packets are accounted for: %" PRIu64 " received, %" PRIu64
		       " out of buffer\n",
		       a->sent, a->received, a->out_of_buffer);
	return rc;
}
