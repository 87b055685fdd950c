/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A slot is 64 bytes of the ring. For every 32 slots, the state block (state.h) has one 64-bit word
 * with a ready bit and a token bit for each of them. A slot is published when its ready bit is 1 in
 * an even lap of the ring, or 0 in an odd lap. The content of the slot does not matter. The token
 * bits are explained in token_dev.h. Parameters: depth is the number of slots of the ring; idx is
 * the index of a slot, which counts since export or reset and never wraps.
 */
#ifndef GDK_SLOTS_DEV_H
#define GDK_SLOTS_DEV_H

#include "device/gdk/ring_dev.h"
#include "device/gdk/status_dev.h"

#define GDK_SCAN_WORDS 8u /* number of words that gdk_ready_run() loads at once */

GDK_FN uint64_t *gdk_rsvd_index(struct doca_gpu_dev_verbs_qp *qp)
{
	return (uint64_t *)(uintptr_t)GDK_QP_AT(qp, sq_rsvd_index);
}

/* Returns the address of the word that has the bits of slot idx. */
GDK_FN uint64_t *gdk_word(struct gdk_qp_state *st, uint32_t depth, uint64_t idx)
{
	return (uint64_t *)(st + 1) + ((uint32_t)idx & (depth - 1)) / GDK_WORD_SLOTS;
}

/* Returns the number of the ready bit of slot idx in its word. */
GDK_FN uint32_t gdk_word_pos(uint32_t depth, uint64_t idx)
{
	return (uint32_t)idx & (depth - 1) & (GDK_WORD_SLOTS - 1);
}

/* Returns the number of slots from idx to the last one that has its bits in the same word, both
 * included. A ring of less than 32 slots uses only a part of its word. */
GDK_FN uint32_t gdk_word_room(uint32_t depth, uint64_t idx)
{
	return (depth < GDK_WORD_SLOTS ? depth : GDK_WORD_SLOTS) - gdk_word_pos(depth, idx);
}

GDK_FN int gdk_odd_lap(uint32_t depth, uint64_t idx)
{
	return ((uint32_t)idx & depth) != 0;
}

/*
 * Returns the largest number of slots that an operation reserves at once: half of the ring. A slot
 * becomes free when a CQE reports its WQE or a later one. The caller may have posted WQEs that
 * generate no CQE; only the WQE with the last slot of either half of the ring is certain to
 * generate one (gdk_wqe_signal()). So a reservation of more than half of the ring could wait for
 * WQEs before it that no CQE ever reports. One doorbell may always announce half of the ring
 * (gdk_ring_most()).
 */
GDK_FN uint32_t gdk_op_most(uint32_t depth)
{
	return depth / 2;
}

/* Returns the mask of the ready bits of n slots from idx on, which must all be in one word. */
GDK_FN uint32_t gdk_slot_bits(uint32_t depth, uint64_t idx, uint32_t n)
{
	return (uint32_t)(((uint64_t)1 << n) - 1) << gdk_word_pos(depth, idx);
}

GDK_FN uint64_t gdk_token_bit(uint32_t depth, uint64_t idx)
{
	return GDK_TOKEN(gdk_word_pos(depth, idx));
}

/* Returns 1 if `word`, a loaded value of the word of slot idx, shows the slot as published: its
 * ready bit is 1 in an even lap and 0 in an odd lap. */
GDK_FN int gdk_word_shows(uint32_t depth, uint64_t idx, uint64_t word)
{
	const uint32_t unset = gdk_odd_lap(depth, idx) ? ~0u : 0;

	return ((uint32_t)word ^ unset) >> gdk_word_pos(depth, idx) & 1;
}

GDK_FN int gdk_is_ready(struct gdk_qp_state *st, uint32_t depth, uint64_t idx)
{
	return gdk_word_shows(depth, idx, gdk_ld64(gdk_word(st, depth, idx), GDK_SCOPE_GPU));
}

/*
 * Returns the number of slots from i on that are published without a gap. Loads the aligned group
 * of GDK_SCAN_WORDS words that contains slot i, and counts at most to the end of this group; *room
 * is the number of slots from i to there. If the ring has fewer slots than this group, the
 * loads also read the padding behind its words (gdk_qp_state_size()), which is ignored.
 */
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
 * Returns the first slot from i on that is not published, at most i + gdk_ring_most(depth).
 * A doorbell must not cut a WQE of several slots. So if a range of slots has its bits in several
 * words, the first word is changed last (gdk_publish()). But the loads of gdk_ready_run() are not
 * ordered: they may return the new value of the first word, and the old value of the next one. So
 * if the scan ends at the first slot of a word, it loads that word again after an acquire fence.
 * The fence pairs with the release fence in gdk_publish() before the change of the first word.
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
