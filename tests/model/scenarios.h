/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The scenarios of the model checker: a program for each of the three threads. */
#ifndef SCENARIOS_H
#define SCENARIOS_H

enum { END, POST, PUBLISH, SUBMIT };
/* POST: gdk_post() of the slots from..to; PUBLISH: gdk_mark_ready() of the slots
 * from..to; SUBMIT: gdk_submit() of all slots below `to`. */
struct op {
	unsigned char what, from, to;
};

/*
 * 1: A thread posts a WQE that spans two words; another publishes the slot before it, and
 *    the third submits all slots.
 * 2: Three threads post one slot each.
 * 3: Slots are published without a doorbell; another thread submits them.
 * 4: Starts with slot 0 published and the token left. A thread takes the token and
 *    leaves it again if no published slot is wanted.
 * 5: The token can be left by one thread, taken by another, left and taken again.
 * 6: The token can be left before slot 1, which is published but not wanted, while slot 2
 *    is posted.
 * 7: The ring wraps: a slot is reused once it is complete.
 * 8: Slot 4 is in the third lap: the ready bits have the same values as in the first lap.
 * 9: As 8, but slot 4 is published without a doorbell, and another thread submits it.
 * 10: Two threads post, and a third submits; a holder passes the token on after one doorbell.
 * 11: As 10, with two threads.
 */
static const struct op program[12][3][4] = {
	[1] = { { { POST, 1, 2 } }, { { PUBLISH, 0, 0 } }, { { SUBMIT, 0, 3 } } },
	[2] = { { { POST, 0, 0 } }, { { POST, 1, 1 } }, { { POST, 2, 2 } } },
	[3] = { { { PUBLISH, 1, 2 } }, { { PUBLISH, 0, 0 } }, { { SUBMIT, 0, 3 } } },
	[4] = { { { SUBMIT, 0, 1 } },
		{ { PUBLISH, 1, 1 }, { SUBMIT, 0, 1 } },
		{ { SUBMIT, 0, 2 } } },
	[5] = { { { POST, 0, 0 } },
		{ { PUBLISH, 1, 1 }, { PUBLISH, 2, 2 } },
		{ { SUBMIT, 0, 2 } } },
	[6] = { { { POST, 0, 0 } }, { { PUBLISH, 1, 1 } }, { { POST, 2, 2 } } },
	[7] = { { { POST, 0, 0 }, { POST, 2, 2 } }, { { POST, 1, 1 } }, { { END } } },
	[8] = { { { POST, 2, 2 }, { POST, 4, 4 } }, { { POST, 3, 3 } }, { { END } } },
	[9] = { { { POST, 2, 2 }, { PUBLISH, 4, 4 } },
		{ { POST, 3, 3 }, { SUBMIT, 0, 5 } },
		{ { END } } },
	[10] = { { { POST, 0, 0 } }, { { POST, 1, 1 } }, { { SUBMIT, 0, 2 } } },
	[11] = { { { PUBLISH, 0, 0 }, { SUBMIT, 0, 1 } }, { { POST, 1, 1 } }, { { END } } },
};

/* The words that break the model. */
/* clang-format off */
#define WORDS(W) \
	W(NOTHING) W(NO_POST_SC) W(NO_WANT_SC) W(NO_LEAVE_SC) W(NO_SECOND_LOOK) \
	W(NO_LOOK_AT_LEFT) W(NO_MARK_REL) W(NO_RANGE_REL) W(FIRST_FIRST) \
	W(TAKE_WITHOUT_RMW) W(NO_MARK_ACQ) W(NO_POST_ACQ) W(NO_TAKE_ACQ) W(NO_AGAIN_ACQ) \
	W(NO_LEAVE_REL) W(NO_LOOK_AGAIN) W(NO_SCAN_ACQ) W(NO_SERVE_ACQ) W(NO_RECORD_REL) \
	W(NO_RING_REL) W(PARK_BLIND) W(NO_AWAIT) W(NO_RESERVE_ORDER) W(NO_HAND_ORDER) \
	W(NO_HAND_REL) W(NO_BLOCK_REL) W(NO_HAND_RING_REL) W(NO_PASS_REL) W(HAND_BLIND)
/* clang-format on */
#define WORD_ENUM(w) w,
#define WORD_NAME(w) #w,
enum word { WORDS(WORD_ENUM) NUM_WORDS };

/* Of this run. */
static int scenario, handler;
static enum word word;

static int broken(enum word w)
{
	return w == word;
}

/* Reads them from the environment, in which run.sh puts them. */
static void choose(void)
{
	static const char *const names[] = { WORDS(WORD_NAME) };

	scenario = atoi(getenv("SCENARIO"));
	handler = atoi(getenv("HANDLER"));
	word = NOTHING;
	while (word < NUM_WORDS && strcmp(names[word], getenv("BROKEN")) != 0)
		word++;
	if (word == NUM_WORDS)
		Uerror("no such word");
}

#endif
