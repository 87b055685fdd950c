/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The lines of the trace for raw Ethernet: send WQEs, and frames that are sent and received.
 * trace.c writes the lines of CQEs. Callers check cfg.trace first.
 */
#include <inttypes.h>
#include <stdio.h>

#include "eth_wqe.h"

void sn_trace_eth_wqe(const struct sn_qp_eng *q, const struct sn_eth_wqe *w)
{
	char op[8], more[64] = "";

	if (w->opcode == SN_OP_WAIT)
		snprintf(more, sizeof(more), ", until 0x%" PRIx64, w->wait_value);
	else if (w->opcode == SN_OP_TSO)
		snprintf(more, sizeof(more), ", segments of %u bytes", w->mss);
	else if (w->vlan_proto)
		snprintf(more, sizeof(more), ", VLAN tag 0x%04x", w->vlan);
	sn_trace("WQE sq 0x%x index %u %s, %u frames, header %u bytes, data %u bytes in %u pieces, "
		 "checksums 0x%02x%s%s%s",
		 q->qp->qpn, w->idx & 0xffff, sn_wqe_name(w->opcode, op), w->frames, w->hdr_len,
		 w->len, w->npieces, w->cs_flags, more, (w->fm & 0x0c) == 0x08 ? ", signalled" : "",
		 w->synd ? ": refused" : "");
}

static void mac_text(const uint8_t mac[6], char text[18])
{
	snprintf(text, 18, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
		 mac[5]);
}

void sn_trace_frame(const char *way, const struct sn_frame *f, const char *fate)
{
	char from[18], to[18];

	if (f->len < SN_ETH_FRAME_MIN) {
		sn_trace("%s frame of %u bytes%s", way, f->len, fate);
		return;
	}
	mac_text(f->data, to);
	mac_text(f->data + 6, from);
	sn_trace("%s frame %s to %s type 0x%04x, %u bytes%s", way, from, to,
		 (unsigned)f->data[12] << 8 | f->data[13], f->len, fate);
}

void sn_trace_rule(const struct sn_frame *f, const struct sn_rule *rule, const struct sn_qp *rq)
{
	char fate[80];

	if (rule->drop)
		snprintf(fate, sizeof(fate), ", rule 0x%x: dropped", rule->handle);
	else if (rq)
		snprintf(fate, sizeof(fate), ", rule 0x%x: RQ 0x%x", rule->handle, rq->qpn);
	else
		snprintf(fate, sizeof(fate), ", rule 0x%x: no RQ", rule->handle);
	sn_trace_frame("rx", f, fate);
}
