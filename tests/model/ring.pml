/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The protocol that publishes and rings slots, as in qp/include/device/gdk/token_dev.h and qp/include/device/gdk/post_dev.h,
 * run by three threads and a NIC in the memory of views.h. The environment selects the scenario
 * and the doorbell (scenarios.h). SCENARIO selects the ring: checker_of() of run.sh has the
 * scenarios that share one. To keep the number of states small, words have few slots and the ring
 * is short. To test the checker, run.sh selects one word (scenarios.h) that breaks the protocol at
 * one place; the checker must then find an error.
 *
 * Where the code lets a load and another access be in flight together, the model does
 * the load later: then it may also return all values that it could return earlier. A thread's
 * stores are made in the order of the program, so the model cannot tell whether `parked` may
 * be stored before the token; replay.c does.
 */
#if SCENARIO == 7
#define DEPTH 2
#define SPW 2			/* slots per word */
#elif SCENARIO == 8
#define DEPTH 2
#define SPW 1
#else
#define DEPTH 4
#define SPW 2
#endif
#if SCENARIO >= 10
#define RINGS 1 /* doorbells of a holder before it offers the token: GDK_RINGS */
#define POLLS 1 /* GDK_OFFER_POLLS */
#endif

/* Handlers, and gdk_token_first(): whether the token moves on before the register is stored. */
#define DB	 0 /* GPU_SM_DB, token first; the next holder finds `parked` or polls the DBREC */
#define DB_BLOCK 1 /* token first, in a block: a fence orders the DBREC before the token */
#define DB_SYS	 2 /* GPU_SM_DB, memory of the host: register, then token */
#define NO_DBR	 3
#define PROXY	 4 /* the register is the counter of CPU_PROXY */
#define BF	 5
#define HAS_DBREC     (handler != NO_DBR && handler != PROXY)
#define TOKEN_FIRST   (handler == DB || handler == DB_BLOCK)
#define HAS_HAND_OVER (handler != BF) /* gdk_post_parked(), gdk_hand_over() */
#define REG_IN_ORDER  (handler == PROXY || handler == BF)

c_decl {
	extern void (*Uerror)(char *);
\#include "views.h"
\#include "scenarios.h"

	static int word_of(int i) { return W0 + i % DEPTH / SPW; }
	static int ready(int i) { return 1 << i % SPW; }
	static int token(int i) { return 1 << (SPW + i % SPW); }
	static int odd(int i) { return i / DEPTH & 1; }
	static int lap(int i) { return i / DEPTH + 1; }
	static int published(int word, int i) { return !(word & ready(i)) == odd(i); }

	/* Value of `word` after slots a..b were published. */
	static int publish(int word, int a, int b)
	{
		for (; a <= b; a++)
			word = odd(a) ? word & ~ready(a) : word | ready(a);
		return word;
	}

	/* Token bits of slots a..b. */
	static int tokens(int a, int b)
	{
		int bits = 0;

		for (; a <= b; a++)
			bits |= token(a);
		return bits;
	}

	/* First slot from e on that is not published; at most the end of its word. */
	static int word_run(int word, int e)
	{
		while (published(word, e) && ++e % SPW)
			;
		return e;
	}

	static void want(struct memory *m, int t, int to)
	{
		const int old = newest(m, WANTED);

		modify(m, t, WANTED, to > old ? to : old);
	}

	/* Returns whether slot i is free according to the value of DONE `back` places before the
	 * newest. */
	static int complete(struct memory *m, int t, int i, unsigned back)
	{
		return readable(m, t, DONE, back) &&
		       m->val[first[DONE] + m->n[DONE] - 1 - back] + DEPTH > i;
	}

	/* Returns whether a thread with view v is certain to see the WQEs of slots from..to-1. */
	static int sees_wqes(struct memory *m, view v, int from, int to)
	{
		for (; from < to; from++)
			if (oldest(m, v, WQE0 + from % DEPTH) != lap(from))
				return 0;
		return 1;
	}

	/* A NIC that is still busy with an earlier doorbell may read the newest DBREC. Forbidden:
	 * that it then reads an old WQE. The release fence before the DBREC store (RECORD_REL)
	 * orders the WQEs before it. */
	static int busy_nic_sees(struct memory *m, int top)
	{
		const view record = m->with[first[DBREC] + m->n[DBREC] - 1];

		return sees_wqes(m, join(m->cur[NIC], record), top, newest(m, DBREC));
	}

	/* Returns whether a value of the location is v. */
	static int was_stored(const struct memory *m, int loc, int v)
	{
		int i;

		for (i = 0; i < m->n[loc]; i++)
			if (m->val[first[loc] + i] == v)
				return 1;
		return 0;
	}

	/* Returns whether t may read a value of its word that shows slot i as published. */
	static int may_show(const struct memory *m, int t, int i)
	{
		const int w = word_of(i);
		int back;

		for (back = 0; readable(m, t, w, back); back++)
			if (published(m->val[first[w] + m->n[w] - 1 - back], i))
				return 1;
		return 0;
	}

	/* How many places before the newest value of loc the value v is, if t may read it, otherwise
	 * -1. */
	static int back_to(const struct memory *m, int t, int loc, int v)
	{
		int back;

		for (back = 0; readable(m, t, loc, back); back++)
			if (m->val[first[loc] + m->n[loc] - 1 - back] == v)
				return back;
		return -1;
	}
}
c_state "struct memory m" "Global"

/* State of the checker, which no thread reads. */
byte holders;		/* number of threads that hold the token */
byte all;		/* bit i: slot i is published */
byte cut;		/* bit i: slot i is in the middle of a WQE */
byte prefix;		/* number of slots published without a gap, from slot 0 on */
byte last;		/* highest index of a doorbell */
byte top;		/* highest index that the NIC has seen */
byte ended;		/* number of threads that have ended */

#define M &now.m, Puser->me
#define P Puser
/* Chooses one of the values that the thread may still read. */
#define ANY(loc) \
	if \
	:: c_expr { readable (M, loc, 0) } -> back = 0 \
	:: c_expr { readable (M, loc, 1) } -> back = 1 \
	:: c_expr { readable (M, loc, 2) } -> back = 2 \
	:: c_expr { readable (M, loc, 3) } -> back = 3 \
	:: c_expr { readable (M, loc, 4) } -> back = 4 \
	:: c_expr { readable (M, loc, 5) } -> back = 5 \
	:: c_expr { readable (M, loc, 6) } -> back = 6 \
	:: c_expr { readable (M, loc, 7) } -> back = 7 \
	:: c_expr { readable (M, loc, 8) } -> c_code { Uerror("a load has more than 8 choices"); } \
	fi
#define LOAD(to, loc) \
	atomic { ANY(loc); c_code { P->to = load(M, loc, P->back); P->back = 0; } }
#define HOLD	holders++; assert(holders == 1)
#define FENCE(kind) c_code { fence_##kind(M); }

/* Fences and exchanges that run.sh can remove or weaken to break the protocol. */
#define POST_SC	    c_code { if (broken(NO_POST_SC)) fence_rel(M); else fence_sc(M); }
#define WANT_SC	    c_code { if (!broken(NO_WANT_SC)) fence_sc(M); }
#define LEAVE_SC    c_code { if (!broken(NO_LEAVE_SC)) fence_sc(M); }
#define MARK_REL    c_code { if (!broken(NO_MARK_REL)) fence_rel(M); }
#define RANGE_REL   c_code { if (!broken(NO_RANGE_REL)) fence_rel(M); }
#define POST_ACQ    c_code { if (!broken(NO_POST_ACQ)) fence_acq(M); }
#define MARK_ACQ    c_code { if (!broken(NO_MARK_ACQ)) fence_acq(M); }
#define TAKE_SC	    c_code { if (!broken(NO_TAKE_ACQ)) fence_sc(M); }
#define SCAN_ACQ    c_code { if (!broken(NO_SCAN_ACQ)) fence_acq(M); }
#define SERVE_ACQ   c_code { if (!broken(NO_SERVE_ACQ)) fence_acq(M); }
#define TAKE(to)    (broken(NO_TAKE_ACQ) ? modify : modify_acq_rel)(M, LEFT, to)
#define AGAIN(to)   (broken(NO_AGAIN_ACQ) ? modify : modify_acq_rel)(M, LEFT, to)
#define RECORD_REL  if (!broken(NO_RECORD_REL)) fence_rel(M);
#define RING_REL    if (!broken(NO_RING_REL)) fence_rel(M);
#define PASS_REL    if (REG_IN_ORDER && !broken(NO_PASS_REL)) fence_rel(M);
#define AWAIT	    handler == DB && !broken (NO_AWAIT)
#define RESERVE_ORDER if (!broken(NO_RESERVE_ORDER)) fence_load_store(M);
#define HAND_ORDER  if (!broken(NO_HAND_ORDER)) fence_load_store(M);
#define HAND_REL    if (!broken(NO_HAND_REL)) fence_rel(M);
#define BLOCK_REL   if (handler == DB_BLOCK && !broken(NO_BLOCK_REL)) fence_rel(M);
#define HAND_RING_REL if (HAS_DBREC && !broken(NO_HAND_RING_REL)) fence_rel(M);
#define LEAVE_REL   if (!broken(NO_LEAVE_REL)) fence_rel(M);

/* gdk_publish_word: publishes slots a..b of one word. The old value of the word tells
 * whether the token is parked at one of them. */
#define PUBLISH_WORD(a, b) \
	if \
	:: atomic { \
		c_expr { !broken (TAKE_WITHOUT_RMW) } -> c_code { \
			int old = newest(&now.m, word_of(P->a)); \
\
			modify(M, word_of(P->a), publish(old, P->a, P->b)); \
			P->held = (old & tokens(P->a, P->b)) != 0; \
		}; \
		note(a, b) \
	} \
	:: atomic { \
		c_expr { broken (TAKE_WITHOUT_RMW) } -> \
		c_code { modify(M, word_of(P->a), publish(newest(&now.m, word_of(P->a)), P->a, P->b)); }; \
		note(a, b) \
	}; \
		LOAD(x, word_of(P->a)); \
		c_code { P->held = (P->x & tokens(P->a, P->b)) != 0; P->x = 0; } \
	fi
/* Stores the register, or the proxy's counter. */
#define RING_REG(e) \
	{ \
		if (!REG_IN_ORDER) \
			store(M, REG, e); \
		else if (!store_above(M, REG, e)) \
			Uerror("the stores of two holders to the counter, or register, are not ordered"); \
	}
#define STORE_DBREC(e) \
	if (HAS_DBREC && !store_above(M, DBREC, e)) \
		Uerror("the DBREC stores of two holders are not ordered"); \
	if (HAS_DBREC && !busy_nic_sees(&now.m, now.top)) \
		Uerror("the NIC may read an old WQE below the DBREC");
#define CLEAR_TOKEN(i) \
	modify(M, word_of(P->i), newest(&now.m, word_of(P->i)) & ~token(P->i))

inline note(a, b)
{
	x = a;
	do
	:: x <= b -> all = all | (1 << x); x++
	:: else -> break
	od;
	do
	:: all & (1 << prefix) -> prefix++
	:: else -> break
	od;
	x = 0
}

proctype user(byte me)
{
	byte pc, what, from, to;	/* the current operation */
	byte back, x, r, e;
	bool held, wanted, waits, again, at_token;
	/* The same in all states; expressions of c_expr would make more states. */
	bool token_first, has_hand_over, await, look_at_left, look_again, second_look, hand_blind;
#ifdef RINGS
	byte rings, polls;
#define PASSES (rings == RINGS)
#else
#define PASSES 0
#endif

next:
	atomic {
		c_code {
			const struct op *o = &program[scenario][P->me][P->pc++];

			P->what = o->what; P->from = o->from; P->to = o->to;
			P->held = P->wanted = P->waits = P->again = P->at_token = 0;
			P->r = P->e = P->x = 0;
			P->token_first = TOKEN_FIRST;
			P->has_hand_over = HAS_HAND_OVER;
			P->await = AWAIT;
			P->look_at_left = !broken(NO_LOOK_AT_LEFT);
			P->look_again = !broken(NO_LOOK_AGAIN);
			P->second_look = !broken(NO_SECOND_LOOK);
			P->hand_blind = broken(HAND_BLIND);
#ifdef RINGS
			P->rings = 0;
#endif
		}
		if
		:: what != c_expr { SUBMIT } && to > from -> cut = cut | (1 << to)
		:: else
		fi
	}
	if
	:: what == c_expr { END } -> goto end
	:: what == c_expr { SUBMIT } -> goto want
	/* gdk_shared_reserve: a thread that waits for slots wants all slots before them to be rung. */
	:: else -> if
		:: to >= DEPTH -> waits = 1; goto want
		:: else
		fi
	fi;

write:
	if
	:: waits -> atomic {
			if
			:: c_expr { complete (M, P->to, 0) } -> back = 0
			:: c_expr { complete (M, P->to, 1) } -> back = 1
			:: c_expr { complete (M, P->to, 2) } -> back = 2
			:: c_expr { complete (M, P->to, 3) } -> back = 3
			fi;
			c_code { load(M, DONE, P->back); P->back = P->waits = 0; fence_acq(M); }
		}
	:: else
	fi;
	/* gdk_shared_reserve: parked and rung may tell that the token is at the first slot. */
	if
	:: has_hand_over && what == c_expr { POST } && c_expr {
			back_to (M, PARKED, P->from) >= 0 && back_to (M, RUNG, P->from) >= 0 } ->
		c_code {
			load(M, PARKED, back_to(M, PARKED, P->from));
			load(M, RUNG, back_to(M, RUNG, P->from));
			RESERVE_ORDER
			P->at_token = 1;
		}
	:: true
	fi;
	c_code {
		int i;

		for (i = P->from; i <= P->to; i++)
			store(M, WQE0 + i % DEPTH, lap(i));
		if (P->what == POST && !P->at_token)
			want(M, P->to + 1);
	}
	if
	:: at_token -> goto parked
	:: what == c_expr { POST } -> POST_SC
	:: else -> MARK_REL
	fi;

/* gdk_publish */
	if
	:: c_expr { word_of (P->from) != word_of (P->to) && !broken (FIRST_FIRST) } ->
		PUBLISH_WORD(to, to);
		assert(!held);
		RANGE_REL;
		PUBLISH_WORD(from, from)
	:: c_expr { word_of (P->from) != word_of (P->to) && broken (FIRST_FIRST) } ->
		PUBLISH_WORD(from, from);
		c_code { P->again = P->held; }
		RANGE_REL;
		PUBLISH_WORD(to, to);
		c_code { P->held = P->again; P->again = 0; }
	:: else -> PUBLISH_WORD(from, to)
	fi;
	if
	:: held -> atomic {
			c_code { CLEAR_TOKEN(from); P->held = 0; P->r = P->from; }
			HOLD
		}
		/* gdk_await_dbrec */
		if
		:: await ->
			atomic {
				c_expr { back_to (M, DBREC, P->from) >= 0 } ->
				c_code { load(M, DBREC, back_to(M, DBREC, P->from)); }
			}
		:: else
		fi;
		if
		:: what == c_expr { POST } ->
			/* Rings its own slots only, or, if the next slot is published, scans. The
			 * acquire fence before the scan forbids that the scan reads values of two
			 * laps ago. */
			if
			:: has_hand_over -> c_code { HAND_ORDER }; goto hand_over
			:: !has_hand_over || c_expr { may_show (M, P->to + 1) } ->
				e = r; wanted = 1; POST_ACQ
			fi
		:: else -> e = r; MARK_ACQ
		fi;
		goto serve
	:: else
	fi;
	if
	:: what == c_expr { POST } && look_at_left -> LOAD(x, LEFT); goto take
	:: else -> goto out
	fi;

parked:	/* gdk_publish_parked: no thread reads these bits before the token moves on */
	atomic {
		assert(c_expr { newest (&now.m, word_of(P->from)) & token(P->from) });
		c_code {
			const int w = word_of(P->from);
			int i;

			for (i = P->from; i <= P->to && word_of(i) == w; i++)
				;
			modify(M, w, publish(newest(&now.m, w), P->from, i - 1) & ~token(P->from));
			if (i <= P->to)
				modify(M, word_of(i), publish(newest(&now.m, word_of(i)), i, P->to));
		}
		HOLD;
		note(from, to)
	}

hand_over:
	atomic {
		c_code { P->e = P->to + 1; }
		assert(e <= prefix);
		assert(e > last);
		last = e;
		c_code {
			store(M, RUNG, P->e);
			HAND_REL
			STORE_DBREC(P->e)
		}
	}
	if
	:: token_first -> c_code { BLOCK_REL }
	:: else -> c_code { HAND_RING_REL RING_REG(P->e) PASS_REL }
	fi;
	/* The token moves on. */
	atomic {
		c_code {
			const int w = word_of(P->e);

			P->x = modify(M, w, newest(&now.m, w) | token(P->e));
			P->held = published(P->x, P->e);
			P->x = 0;
		}
		if
		:: held
		:: else -> holders--
		fi
	}
	if
	:: token_first -> c_code { HAND_RING_REL RING_REG(P->e) }
	:: else
	fi;
	/* gdk_handed_over */
	if
	:: held && hand_blind -> atomic { held = 0; holders-- };
		c_code { fence_load_store(M); store(M, PARKED, P->e); }
	:: held && !hand_blind -> c_code { CLEAR_TOKEN(e); P->held = 0; P->r = P->e; }; goto serve
	:: else -> c_code { fence_load_store(M); store(M, PARKED, P->e); }
	fi;
	goto out;

want:	/* gdk_shared_slow */
	c_code { want(M, P->waits ? P->from : P->to); }
	WANT_SC;
	LOAD(x, LEFT);
take:	/* gdk_take */
	if
	:: x -> atomic {
			c_code { P->x = 0; P->held = TAKE(0); }
			if
			:: held -> held = 0; HOLD
			:: else -> goto out
			fi
		}
	:: else -> goto out
	fi;
	TAKE_SC;
	LOAD(r, RUNG);
	e = r;

serve:	/* gdk_serve; rings counts since the token was taken */
	assert(r == last);
	if
	:: e == r ->
		/* gdk_scan_ready */
rescan:		do
		:: e < r + DEPTH ->
			atomic {
				LOAD(x, word_of(P->e));
				c_code {
					const int old = P->e;

					P->e = word_run(P->x, old);
					P->x = P->e > old && P->e % SPW == 0;
				}
				if
				:: x -> x = 0
				:: else -> break
				fi
			}
		:: else -> e = r + DEPTH; goto scanned
		od;
		/* A range may continue in this word, whose load may be older than that of the
		 * previous word. Loads the word again after an acquire fence, which pairs with
		 * the release fence (RANGE_REL) of the thread that published the range. */
		if
		:: e > r && e % SPW == 0 && look_again ->
			SCAN_ACQ;
			atomic {
				LOAD(x, word_of(P->e));
				if
				:: c_expr { published (P->x, P->e) } -> x = 0; goto rescan
				:: else -> x = 0
				fi
			}
		:: else
		fi
	:: else
	fi;
scanned:
	if
	:: e == r -> goto park
	:: else
	fi;
	if
	:: !wanted -> LOAD(x, WANTED); atomic { wanted = x > r; x = 0 }
	:: else
	fi;
	SERVE_ACQ;
	if
	:: wanted && !PASSES ->
		/* gdk_ring */
		atomic {
			assert(e <= prefix);
			assert(!(cut & (1 << e)));
			assert(e > last);
			last = e;
			c_code {
				RECORD_REL
				store(M, RUNG, P->e);
				STORE_DBREC(P->e)
				RING_REL
				RING_REG(P->e)
				PASS_REL
				P->r = P->e;
				P->wanted = 0;
			}
#ifdef RINGS
			rings++
#endif
		}
	:: else ->
		/* gdk_offer: the holder leaves the token, and looks at wanted once more */
		atomic {
			c_code { LEAVE_REL store(M, LEFT, 1); P->wanted = 0; }
			holders--
		}
		LEAVE_SC;
#ifdef RINGS
		polls = (PASSES -> POLLS : 0);
		rings = 0;
		do
		:: polls > 0 -> atomic { polls--; LOAD(x, LEFT) };
			if
			:: x -> x = 0
			:: else -> polls = 0; goto out
			fi
		:: else -> break
		od;
#endif
		LOAD(x, WANTED);
		if
		:: x > r && second_look -> atomic {
				c_code { P->x = 0; P->held = AGAIN(0); }
				if
				:: held -> held = 0; HOLD
				:: else -> goto out
				fi
			}
		:: else -> x = 0; goto out
		fi;
		LOAD(r, RUNG);
		e = r;
		assert(r == last)
	fi;

park:	/* gdk_park */
	atomic {
		c_code {
			const int w = word_of(P->r);

			P->x = modify(M, w, newest(&now.m, w) | token(P->r));
		}
		if
		:: c_expr { published (P->x, P->r) && !broken (PARK_BLIND) } -> x = 0
		:: else -> x = 0; holders--; goto parked_at
		fi
	}
	c_code { CLEAR_TOKEN(r); }
	goto serve;
parked_at:
	c_code { fence_load_store(M); store(M, PARKED, P->r); }

out:
	if
	:: waits -> goto write
	:: else -> goto next
	fi;
end:
	/* Fewer states: nothing depends on what an ended thread has seen. */
	atomic {
		c_code {
			now.m.cur[P->me] = now.m.acq[P->me] = 0;
			now.m.rel[P->me] = now.m.passed[P->me] = 0;
		}
		what = 0; ended++
	}
}

active proctype nic()
{
	byte e, back;
	bool sees;

	atomic {
		c_code {
			int l;

			choose();
			for (l = 0; l < LOCS; l++)
				init(&now.m, l, 0);
			if (scenario == 4) {
				init(&now.m, W0, ready(0));
				init(&now.m, LEFT, 1);
				init(&now.m, WQE0, lap(0));
				now.all = 1; now.prefix = 1;
			} else {
				init(&now.m, W0, token(0));
			}
#if SCENARIO == 8
			/* Slots 0 and 1 are complete, and all threads have seen it. */
			init(&now.m, W0, ready(0) | token(2));
			init(&now.m, W1, ready(1));
			init(&now.m, WANTED, 2);
			init(&now.m, RUNG, 2);
			init(&now.m, DBREC, 2);
			init(&now.m, REG, 2);
			init(&now.m, PARKED, 2);
			init(&now.m, DONE, 2);
			init(&now.m, WQE0, lap(0));
			init(&now.m, WQE1, lap(1));
			now.all = 3; now.prefix = 2; now.last = 2; now.top = 2;
#endif
		}
		run user(0); run user(1); run user(2)
	}
	do
	:: atomic {
		/* Chooses a doorbell that the NIC has not seen, and ignores it if its index is not
		 * above those before. The acquire fence pairs with the release fences before the
		 * DBREC and register stores (RECORD_REL, RING_REL). Forbidden: that the NIC then
		 * reads a DBREC older than the doorbell, or an old WQE. */
		if
		:: c_expr { readable (&now.m, NIC, REG, 1) } -> back = 0
		:: c_expr { readable (&now.m, NIC, REG, 2) } -> back = 1
		:: c_expr { readable (&now.m, NIC, REG, 3) } -> back = 2
		fi;
		c_code {
			view v;

			Pnic->e = load(&now.m, NIC, REG, Pnic->back);
			Pnic->back = 0;
			Pnic->sees = 1;
			if (Pnic->e > now.top) {
				fence_acq(&now.m, NIC);
				v = now.m.cur[NIC];
				Pnic->sees = (!HAS_DBREC || oldest(&now.m, v, DBREC) >= Pnic->e) &&
					     sees_wqes(&now.m, v, now.top, Pnic->e);
				now.top = Pnic->e;
			}
		}
		assert(sees);
#if SCENARIO == 7 || SCENARIO == 8
		c_code {
			fence_rel(&now.m, NIC);
			store(&now.m, NIC, DONE, now.top);
		}
#endif
		sees = 0
	   }
	:: atomic {
		ended == 3 && !c_expr { readable (&now.m, NIC, REG, 1) } ->
		/* Forbidden: that slots which are wanted, and published without a gap, are never
		 * rung (a lost doorbell), or that a thread still holds the token. */
		assert(prefix <= last || c_expr { newest (&now.m, WANTED) } <= last);
		assert(c_expr { was_stored (&now.m, REG, now.last) });
		assert(holders == 0);
		break
	   }
	od
}
