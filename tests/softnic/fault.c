/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Misbehaviour of the wire, decided by a seeded generator when a packet is
 * sent: lost, corrupted, duplicated, delayed, or sent after its successor. The
 * same seed and the same traffic give the same faults.
 */
#include "eng.h"

static bool happens(struct sn_eng *e, uint32_t ppm)
{
	if (!ppm)
		return false;
	e->rng ^= e->rng << 13;
	e->rng ^= e->rng >> 7;
	e->rng ^= e->rng << 17;
	if ((e->rng >> 16) % 1000000 >= ppm)
		return false;
	e->dev->stats.faults_injected++;
	return true;
}

static void delay(struct sn_eng *e, struct sn_pkt *p)
{
	struct sn_pkt **at = &e->delayed;

	p->due = e->now + e->dev->cfg.delay_us * 1000ull;
	while (*at && (*at)->due <= p->due)
		at = &(*at)->next;
	p->next = *at;
	*at = p;
}

static void pass_on(struct sn_eng *e, struct sn_pkt *p)
{
	struct sn_pkt *held = e->held;

	if (e->dev->cfg.delay_us)
		delay(e, p);
	else
		sn_wire_emit(e, p);
	if (held && held != p) {
		e->held = NULL;
		pass_on(e, held);
	}
}

void sn_fault_send(struct sn_eng *e, struct sn_pkt *p)
{
	const struct sn_cfg *cfg = &e->dev->cfg;
	struct sn_pkt *twin;

	if (happens(e, cfg->loss_ppm)) {
		sn_pkt_put(e, p);
		return;
	}
	if (happens(e, cfg->dup_ppm) && (twin = sn_pkt_get(e))) {
		memcpy(twin, p, sizeof(*twin));
		pass_on(e, twin);
	}
	p->corrupt = happens(e, cfg->corrupt_ppm);
	if (!e->held && happens(e, cfg->reorder_ppm)) {
		e->held = p;
		p->due = e->now + 1000000;
		return;
	}
	pass_on(e, p);
}

/* Sends what was delayed long enough, and a held packet that nothing followed. */
bool sn_fault_due(struct sn_eng *e)
{
	struct sn_pkt *p;
	bool any = false;

	while ((p = e->delayed) && p->due <= e->now) {
		e->delayed = p->next;
		sn_wire_emit(e, p);
		any = true;
	}
	if ((p = e->held) && p->due <= e->now) {
		e->held = NULL;
		pass_on(e, p);
		any = true;
	}
	return any;
}
