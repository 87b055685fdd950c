/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Slots and their words. A word (state.h) has a ready bit and a token bit for each of 32 slots.
 * A slot is published when its ready bit is 1 in an even lap of the ring, or 0 in an odd lap.
 * Publication never depends on the content of the slot.
 */
#ifndef GDK_SLOTS_DEV_H
#define GDK_SLOTS_DEV_H

#include "../../device/gdk/ring_dev.h"
#include "../../device/gdk/status_dev.h"

#define GDK_SCAN_WORDS 8u /* words that one step of gdk_scan_ready() loads together */

GDK_FN uint64_t *gdk_rsvd_index(struct doca_gpu_dev_verbs_qp *qp)
{
	return (uint64_t *)(uintptr_t)GDK_QP_AT(qp, sq_rsvd_index);
}

/* Address of the word of slot idx. */
GDK_FN uint64_t *gdk_word(struct gdk_qp_state *st, uint32_t depth, uint64_t idx)
{
	return (uint64_t *)(st + 1) + ((uint32_t)idx & (depth - 1)) / GDK_WORD_SLOTS;
}

GDK_FN uint32_t gdk_word_pos(uint32_t depth, uint64_t idx)
{
	return (uint32_t)idx & (depth - 1) & (GDK_WORD_SLOTS - 1);
}

/* Number of slots from idx to the end of its word, or of the ring if that is shorter. */
GDK_FN uint32_t gdk_word_room(uint32_t depth, uint64_t idx)
{
	return (depth < GDK_WORD_SLOTS ? depth : GDK_WORD_SLOTS) - gdk_word_pos(depth, idx);
}

GDK_FN int gdk_odd_lap(uint32_t depth, uint64_t idx)
{
	return ((uint32_t)idx & depth) != 0;
}

/*
 * Most slots that an operation reserves at once: half of the ring. A slot becomes free when a CQE
 * reports its WQE or a later one. The caller may have posted WQEs that generate none; only the last
 * WQE of each half of the ring is certain to generate one (gdk_wqe_signal()). So a reservation of
 * more than half of the ring could wait for WQEs before it that no CQE ever reports. It is at most
 * what one doorbell may cover (gdk_ring_most()).
 */
GDK_FN uint32_t gdk_op_most(uint32_t depth)
{
	return depth / 2;
}

/* Ready bits of n slots from idx, all in one word. */
GDK_FN uint32_t gdk_slot_bits(uint32_t depth, uint64_t idx, uint32_t n)
{
	return (uint32_t)(((uint64_t)1 << n) - 1) << gdk_word_pos(depth, idx);
}

GDK_FN uint64_t gdk_token_bit(uint32_t depth, uint64_t idx)
{
	return GDK_TOKEN(gdk_word_pos(depth, idx));
}

/* Does this value of its word show slot idx as published? */
GDK_FN int gdk_word_shows(uint32_t depth, uint64_t idx, uint64_t word)
{
	const uint32_t unset = gdk_odd_lap(depth, idx) ? ~0u : 0;

	return ((uint32_t)word ^ unset) >> gdk_word_pos(depth, idx) & 1;
}

GDK_FN int gdk_is_ready(struct gdk_qp_state *st, uint32_t depth, uint64_t idx)
{
	return gdk_word_shows(depth, idx, gdk_ld64(gdk_word(st, depth, idx), GDK_SCOPE_GPU));
}

/* Number of published slots from i on, up to the end of its GDK_SCAN_WORDS words, which *room
 * slots are away. The block has words behind a shorter ring, too (state.h); they are ignored. */
GDK_FN uint32_t gdk_ready_run(struct gdk_qp_state *st, uint32_t depth, uint64_t i, uint32_t *room)
{
	const uint32_t most = GDK_SCAN_WORDS * GDK_WORD_SLOTS, span = depth < most ? depth : most;
	const uint32_t at = (uint32_t)i & (span - 1), set = gdk_odd_lap(depth, i) ? 0 : ~0u;
	const uint64_t *words = gdk_word(st, depth, i - at);
	uint32_t gap = span, n;
	uint32_t w[GDK_SCAN_WORDS];

	GDK_UNROLL
	for (n = 0; n < GDK_SCAN_WORDS; n++)
		w[n] = gdk_ld32((const uint32_t *)(const void *)&words[n], GDK_SCOPE_GPU);
	GDK_UNROLL
	for (n = GDK_SCAN_WORDS; n-- > 0;) {
		uint32_t gaps = w[n] ^ set;

		if (n == at / GDK_WORD_SLOTS)
			gaps &= ~0u << at % GDK_WORD_SLOTS;
		if (gaps && n >= at / GDK_WORD_SLOTS)
			gap = n * GDK_WORD_SLOTS + gdk_ctz32(gaps);
	}
	*room = span - at;
	return (gap < span ? gap : span) - at;
}

/*
 * Returns the first slot at or after i that is not published, or the slot gdk_ring_most() after i.
 * A range of several slots is published with its first word last (gdk_publish()), so that a
 * doorbell never cuts a WQE of several slots. Loads are not ordered: a range whose first word was
 * loaded as published may continue in a word that was loaded earlier. So that word is loaded again
 * after an acquire fence, which pairs with the release fence before the first word.
 */
GDK_FN uint64_t gdk_scan_ready(struct gdk_qp_state *st, uint32_t depth, uint64_t i)
{
	const uint64_t start = i, end = i + gdk_ring_most(depth);
	uint32_t run, room;

	GDK_LOOP
	for (;;) {
		run = gdk_ready_run(st, depth, i, &room);
		i += run;
		if (i >= end)
			return end;
		if (run == room)
			continue;
		if (i == start || gdk_word_pos(depth, i) != 0)
			return i;
		gdk_fence_acq(GDK_SCOPE_GPU);
		if (!gdk_is_ready(st, depth, i))
			return i;
	}
}

#endif
