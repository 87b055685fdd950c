/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* What each thread does, in the model and in the replay. */
#ifndef SCENARIOS_H
#define SCENARIOS_H

enum { END, POST, PUBLISH, SUBMIT };
/* gdk_post or gdk_mark_ready of the slots from..to; gdk_submit of those below `to`. */
struct op {
	unsigned char what, from, to;
};

static const struct op program[3][4] =
#if SCENARIO == 1 /* A WQE across words is posted, its predecessor published last. */
	{ { { POST, 1, 2 } }, { { PUBLISH, 0, 0 } }, { { SUBMIT, 0, 3 } } };
#elif SCENARIO == 2 /* Three post. */
	{ { { POST, 0, 0 } }, { { POST, 1, 1 } }, { { POST, 2, 2 } } };
#elif SCENARIO == 3 /* All is published without a doorbell, and submitted apart. */
	{ { { PUBLISH, 1, 2 } }, { { PUBLISH, 0, 0 } }, { { SUBMIT, 0, 3 } } };
#elif SCENARIO == 4 /* 0 is published and left: taken, and left with nothing wanted. */
	{ { { SUBMIT, 0, 1 } }, { { PUBLISH, 1, 1 }, { SUBMIT, 0, 1 } }, { { SUBMIT, 0, 2 } } };
#elif SCENARIO == 5 /* The token is left, used by others and taken again. */
	{ { { POST, 0, 0 } }, { { PUBLISH, 1, 1 }, { PUBLISH, 2, 2 } }, { { SUBMIT, 0, 2 } } };
#elif SCENARIO == 6 /* It is left before a slot, and one after that is posted. */
	{ { { POST, 0, 0 } }, { { PUBLISH, 1, 1 } }, { { POST, 2, 2 } } };
#elif SCENARIO == 7 /* Around the ring: a slot is used again once it is complete. */
	{ { { POST, 0, 0 }, { POST, 2, 2 } }, { { POST, 1, 1 } }, { { END } } };
#elif SCENARIO == 8 /* A third time around: ready bits are again as they were. */
	{ { { POST, 2, 2 }, { POST, 4, 4 } }, { { POST, 3, 3 } }, { { END } } };
#elif SCENARIO == 9
	{ { { POST, 2, 2 }, { PUBLISH, 4, 4 } },
	  { { POST, 3, 3 }, { SUBMIT, 0, 5 } },
	  { { END } } };
#endif

#endif
