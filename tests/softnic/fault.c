/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Injected faults. Wire: a seeded generator decides for each packet sent whether it
 * is lost, corrupted, duplicated, or sent after its successor. The same seed and the
 * same traffic give the same faults. A delay is the same for all packets. NIC: it
 * stalls at the end of each period. Injected failures of commands, calls and queue
 * pairs are in cmd.c, uverbs.c and requester.c.
 */
#include "eth_wire.h"

#define HELD_NS 1000000ull /* a packet that has no successor is held no longer */

#define RESV8A 4u /* offset in the BTH of the byte that the ICRC does not cover */

static uint64_t draw(struct sn_eng *e)
{
	e->rng ^= e->rng << 13;
	e->rng ^= e->rng >> 7;
	e->rng ^= e->rng << 17;
	return e->rng >> 16;
}

static bool happens(struct sn_eng *e, uint32_t ppm)
{
	if (!ppm || draw(e) % 1000000 >= ppm)
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
		p->due = e->now + HELD_NS;
		return;
	}
	pass_on(e, p);
}

/* Flips one bit after the UDP header, possibly in the ICRC, but not in the BTH byte that the ICRC
 * does not cover. So the ICRC is always wrong. */
void sn_fault_corrupt(struct sn_eng *e, struct sn_pkt *p)
{
	uint32_t at = draw(e) % (8 * (p->len + 3u));

	if (at / 8 >= RESV8A)
		at += 8;
	p->data[at / 8] ^= 1u << at % 8;
}

/* ---- frames of raw Ethernet ---- */

static void delay_frame(struct sn_eng *e, struct sn_frame *f)
{
	struct sn_frame **at = &e->eth->delayed;

	f->due = e->now + e->dev->cfg.delay_us * 1000ull;
	while (*at && (*at)->due <= f->due)
		at = &(*at)->next;
	f->next = *at;
	*at = f;
}

static void pass_frame(struct sn_eng *e, struct sn_frame *f)
{
	struct sn_frame *held = e->eth->held;

	if (e->dev->cfg.delay_us)
		delay_frame(e, f);
	else
		sn_eth_emit(e, f);
	if (held && held != f) {
		e->eth->held = NULL;
		pass_frame(e, held);
	}
}

void sn_fault_frame(struct sn_eng *e, struct sn_frame *f)
{
	const struct sn_cfg *cfg = &e->dev->cfg;
	struct sn_frame *twin;

	if (happens(e, cfg->loss_ppm)) {
		e->dev->stats.eth_tx_lost++;
		sn_frame_put(e, f);
		return;
	}
	if (happens(e, cfg->dup_ppm) && (twin = sn_frame_copy(e, f))) {
		e->dev->stats.eth_tx_duplicated++;
		pass_frame(e, twin);
	}
	f->corrupt = happens(e, cfg->corrupt_ppm);
	if (!e->eth->held && happens(e, cfg->reorder_ppm)) {
		e->eth->held = f;
		f->due = e->now + HELD_NS;
		return;
	}
	pass_frame(e, f);
}

void sn_fault_control(struct sn_eng *e, struct sn_frame *f)
{
	if (happens(e, e->dev->cfg.loss_ppm))
		sn_frame_put(e, f);
	else
		pass_frame(e, f);
}

/* Flips one bit of the frame. Its frame check sequence is already in the VXLAN header. */
void sn_fault_flip(struct sn_eng *e, struct sn_frame *f)
{
	uint32_t at = draw(e) % (8 * f->len);

	f->data[at / 8] ^= 1u << at % 8;
}

bool sn_fault_frames_due(struct sn_eng *e, bool all)
{
	struct sn_frame *f;
	bool any = false;

	if ((f = e->eth->held) && (all || f->due <= e->now)) {
		e->eth->held = NULL;
		pass_frame(e, f);
		any = true;
	}
	while ((f = e->eth->delayed) && (all || f->due <= e->now)) {
		e->eth->delayed = f->next;
		sn_eth_emit(e, f);
		any = true;
	}
	return any;
}

/* ---- the NIC ---- */

/* Returns the ns until the end of the stall; 0: no stall. */
uint64_t sn_fault_stall(struct sn_eng *e)
{
	const struct sn_cfg *cfg = &e->dev->cfg;
	uint64_t every = cfg->stall_every_us * 1000ull, into;
	bool stalled;

	if (!cfg->stall_us || !every)
		return 0;
	into = (e->now - e->started) % every;
	stalled = every - into <= cfg->stall_us * 1000ull;
	e->dev->stats.stalls += stalled && !e->stalled;
	e->stalled = stalled;
	return stalled ? every - into : 0;
}

/* Sends delayed packets that are due, and a held packet that had no successor for 1 ms. Returns
 * true if it sent any. */
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
