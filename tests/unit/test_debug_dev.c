/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The debug build (GDK_DEBUG) checks WQEs before it rings them. A WQE with a wrong
 * field is not rung, and the first line of the output names the field. A correct
 * WQE is rung without output. A key in the wrong byte order is reported, but rung.
 * Reserved slots that were never rung are reported, and submits of more receives than a ring has.
 */
#include <criterion/criterion.h>
#include <stdarg.h>

#ifndef GDK_DEBUG
#define GDK_DEBUG
#endif
#define GDK_DEBUG_PRINT(text) print(text)
static void print(const char *text);

#include "../lib/post_slots.h"
#include "device/gdk/srq_dev.h"
#include "wqe_kinds.h"

static char out[8192];
static struct rig rig;

static void print(const char *text)
{
	strncat(out, text, sizeof(out) - strlen(out) - 1);
}

/* Builds five NOPs and then a WQE of this kind at index 5 of a ring of 8. Returns its last slot. */
static uint64_t prepare(enum kind kind)
{
	const uint32_t slots = kind == MCS8 ? 2 : 1;
	uint64_t at, i;

	rig_init(&rig, 8, RIG_DB, 0);
	out[0] = 0;
	cr_assert_eq(gdk_reserve(&rig.qp, 5 + slots, RIG_GPU, 0, &at), 0);
	for (i = 0; i < 5; i++)
		gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, i), (uint16_t)i, GDK_CE_ALWAYS);
	build(&rig, kind, 5);
	return 4 + slots;
}

static uint32_t *word(uint64_t slot, unsigned int n)
{
	return (uint32_t *)(void *)(rig.ring + slot * 64) + n;
}

/*
 * Builds a WQE of this kind at index 5, flips bits in its word n, and posts it with
 * the NOPs before it. Nothing must be rung, the first line of the output must
 * contain `line`, and the QP must end.
 */
static void refused(enum kind kind, unsigned int n, uint32_t flip, const char *line)
{
	const uint64_t last = prepare(kind);
	char expected[512];
	uint64_t idx;

	*word(5, n) ^= htobe32(flip);
	post_slots(&rig.qp, 0, last, RIG_GPU, RIG_AUTO, 0);
	snprintf(expected, sizeof(expected), "gdaki: QP 0xabcd WQE 5: %s; not rung\nWQE ", line);
	cr_expect(!strncmp(out, expected, strlen(expected)), "got: %s\nexpected: %s", out,
		  expected);
	cr_expect_eq(rig.st->rung, 0);
	cr_expect_eq(rig.st->doorbells, 0);
	cr_expect_eq(rig.dbrec[1], 0);
	rig_nic(&rig);
	cr_expect_eq(rig.rings, 0);
	cr_expect_eq(rig.st->error_wqe, 5);
	cr_expect_eq(gdk_wait(&rig.qp, 0, RIG_GPU), -EINVAL);
	cr_expect_eq(gdk_reserve(&rig.qp, 1, RIG_GPU, 0, &idx), -EINVAL);
	rig_fini(&rig);
}

Test(debug_dev, wqes_of_all_builders_are_rung_silently)
{
	const struct {
		enum doca_gpu_dev_verbs_resource_sharing_mode mode;
		int handler;
	} ways[] = { { RIG_EXCL, RIG_DB },
		     { RIG_CTA, RIG_BF },
		     { RIG_GPU, RIG_DB },
		     { RIG_GPU, RIG_PROXY },
		     { RIG_GPU, RIG_NO_DBR } };
	unsigned int k, w;

	for (w = 0; w < 5; w++)
		for (k = 0; k < KINDS; k++) {
			const uint64_t last = prepare((enum kind)k);

			rig.handler = ways[w].handler;
			post_slots(&rig.qp, 0, last, ways[w].mode,
				   (enum doca_gpu_dev_verbs_nic_handler)ways[w].handler, 0);
			cr_expect_str_eq(out, "", "WQE kind %u: %s", k, out);
			cr_expect_eq(rig.st->rung, last + 1);
			cr_expect_eq(gdk_qp_status(&rig.qp), 0);
			rig_fini(&rig);
		}
}

Test(debug_dev, control_segment)
{
	refused(WRITE, 0, 0x100, "wqe_index is 0x4, expected 0x5");
	refused(WRITE, 0, 0x800000, "wqe_index is 0x8005, expected 0x5");
	refused(WRITE, 1, 0x100, "qpn is 0xabcc, expected 0xabcd");
	refused(WRITE, 0, 0x08 ^ 0x25, "opcode is 0x25, expected one that a GPU posts");
	refused(WRITE, 0, 0x08 ^ 0x0e, "opcode is 0xe, expected one that a GPU posts");
	refused(WRITE, 0, 0x01000000, "opmod is 0x1, expected 0x0");
	refused(MFA4, 0, 0x02000000, "opmod is 0xa, expected 0x8 to 0x9");
	refused(FA, 0, 0x08000000, "opmod is 0x8, expected 0x0");
	refused(WRITE, 1, 0x40, "reserved of qpn_ds is 0x40, expected 0x0");
	refused(WRITE, 2, 0x01000000, "signature is 0x1, expected 0x0");
	refused(WRITE, 2, 0x00000100, "dci_stream_channel_id is 0x1, expected 0x0");
	refused(WRITE, 2, 0x10, "reserved of fm_ce_se is 0x10, expected 0x0");
	refused(WRITE, 2, 0x01, "reserved of fm_ce_se is 0x1, expected 0x0");
	refused(WRITE, 2, 0xa0, "fm is 0x5, expected 0x0 to 0x4");
}

Test(debug_dev, size_against_opcode)
{
	refused(NOP, 1, 1, "ds is 0x0, expected 0x1 to 0x3f");
	refused(WRITE, 1, 3 ^ 1, "ds is 0x1, expected 0x2 to 0x3f");
	refused(READ, 1, 3 ^ 1, "ds is 0x1, expected 0x2 to 0x3f");
	refused(FA, 1, 4 ^ 3, "ds is 0x3, expected 0x4");
	refused(MCS4, 1, 4 ^ 5, "ds is 0x5, expected 0x4");
	refused(MCS8, 1, 5 ^ 4, "ds is 0x4, expected 0x5");
	refused(MCS4, 0, 0x01000000, "ds is 0x4, expected 0x5");
	refused(WAIT, 1, 0x2 ^ 0x3, "ds is 0x3, expected 0x2");
	refused(DUMP, 1, 0x2 ^ 0x1, "ds is 0x1, expected 0x2");
	refused(COPY, 1, 0x4 ^ 0x3, "ds is 0x3, expected 0x4");
	refused(COPY, 0, 1u << 24, "opmod is 0x0, expected 0x1");
	refused(COPY, 4, 1, "control of result is 0x1, expected 0x0");
	refused(COPY, 8, 1u << 31, "byte_count is 0x80000000, expected 0x0 to 0x7fffffff");
	refused(COPY, 12, 8, "byte_count of destination is 0x8, expected 0x0");
	/* the WQE claims a second slot, but only one was published */
	refused(WRITE, 1, 3 ^ 5, "slots is 0x2, expected 0x1");
}

Test(debug_dev, inline_length_against_size)
{
	refused(INLINE, 1, 3 ^ 4, "ds is 0x4, expected 0x3");
	refused(INLINE_LONG, 1, 4 ^ 3, "ds is 0x3, expected 0x4");
	refused(INLINE, 8, 12 ^ 13, "ds is 0x3, expected 0x4");
	refused(INLINE_LONG, 8, 28 ^ 12, "ds is 0x4, expected 0x3");
	refused(INLINE, 8, 12, "byte_count of inline data is 0x0, expected 0x1 to 0x3e0");
	refused(INLINE, 8, 1u << 30,
		"byte_count of inline data is 0x4000000c, expected 0x1 to 0x3e0");
	refused(READ, 8, 1u << 31, "byte_count is 0x80000001, expected 0x1 to 0x40000000");
	refused(DUMP, 4, 1u << 31, "byte_count is 0x80000008, expected 0x1 to 0x40000000");
}

Test(debug_dev, byte_count)
{
	refused(WRITE, 8, 64, "byte_count is 0x0, expected 0x1 to 0x40000000");
	refused(WRITE_IMM, 8, 1, "byte_count is 0x40000001, expected 0x1 to 0x40000000");
	refused(WRITE2, 12, 3u << 29,
		"byte_count in all is 0x40000040, expected 0x0 to 0x40000000");
	refused(FA, 12, 8 ^ 4, "byte_count is 0x4, expected 0x8");
	refused(MFA4, 12, 4 ^ 8, "byte_count is 0x8, expected 0x4");
	refused(MFA4, 0, 0x01000000, "byte_count is 0x4, expected 0x8");
	refused(DUMP, 4, 8, "byte_count is 0x0, expected 0x1 to 0x40000000");
}

Test(debug_dev, reserved_words)
{
	refused(WRITE, 7, 1, "reserved of raddr is 0x1, expected 0x0");
	refused(WAIT, 4, 1, "resv of wait is 0x100000000, expected 0x0");
	refused(WAIT, 5, 1, "resv of wait is 0x1, expected 0x0");
	refused(WAIT, 7, 0x01000000, "qpn_cqn is 0x1000123, expected 0x0 to 0xffffff");
	refused(MFA4, 10, 1, "reserved of atomic is 0x100000000, expected 0x0");
	refused(MFA4, 11, 1, "reserved of atomic is 0x1, expected 0x0");
}

/* The wrong field is in the second slot of a WQE that wraps at the ring's end. */
Test(debug_dev, second_slot)
{
	uint64_t at;

	rig_init(&rig, 8, RIG_DB, 0);
	cr_assert_eq(gdk_reserve(&rig.qp, 7, RIG_GPU, 0, &at), 0);
	for (at = 0; at < 7; at++)
		build(&rig, NOP, at);
	post_slots(&rig.qp, 0, 6, RIG_GPU, RIG_AUTO, 0);
	rig_nic(&rig);
	cr_assert_eq(gdk_wait(&rig.qp, 6, RIG_GPU), 0);
	cr_assert_eq(gdk_reserve(&rig.qp, 2, RIG_GPU, 0, &at), 0);
	build(&rig, MCS8, at);
	*word(0, 0) = htobe32(16);
	post_slots(&rig.qp, at, at + 1, RIG_GPU, RIG_AUTO, 0);
	cr_expect_eq(rig.st->rung, 7);
	cr_expect(strstr(out, "QP 0xabcd WQE 7: byte_count is 0x10, expected 0x8; not rung\n"),
		  "output: %s", out);
}

/*
 * If one of several WQEs of a doorbell is wrong, none of them is rung, and the output
 * names the first wrong WQE.
 */
Test(debug_dev, first_wrong_wqe_is_named)
{
	prepare(WRITE);
	*word(3, 0) = 0;
	*word(5, 0) = 0;
	post_slots(&rig.qp, 0, 5, RIG_EXCL, RIG_AUTO, 0);
	cr_expect(strstr(out, "WQE 3: wqe_index is 0x0, expected 0x3; not rung\n"), "output: %s",
		  out);
	cr_expect_eq(rig.st->error_wqe, 3);
	cr_expect_eq(rig.st->doorbells, 0);
	cr_expect(!strstr(strchr(out, '\n'), "gdaki"));
	prepare(WRITE); /* the same with ringing by hand */
	*word(3, 0) = 0;
	gdk_ring_db(&rig.qp, 6, 0);
	cr_expect(strstr(out, "WQE 3: wqe_index is 0x0, expected 0x3; not rung\n"), "output: %s",
		  out);
}

enum way {
	POST_EXCL,
	POST_CTA,
	POST_GPU,
	SUBMIT,
	WAITER,
	BF,
	BF_WARP,
	BF_WARP_EXCL,
	PROXY,
	HAND_RECORD,
	HAND_DB,
	HAND_PROXY,
	HAND_BF,
	HAND_BF_WARP,
	WAYS
};

/* Rings slot 5 alone, by the function that `way` names; from HAND_RECORD on, by hand. */
static void ring_by(enum way way)
{
	const gdk_mode_t mode = way == POST_EXCL || way == BF_WARP_EXCL ? RIG_EXCL
				: way == POST_CTA			? RIG_CTA
									: RIG_GPU;
	struct doca_gpu_dev_verbs_wqe *wqe = gdk_get_wqe_ptr(&rig.qp, 5);

	if (way <= POST_GPU || way == PROXY)
		return post_slots(&rig.qp, 5, 5, mode, RIG_AUTO, 0);
	if (way < HAND_RECORD)
		gdk_mark_ready(&rig.qp, 5, 5, mode, RIG_AUTO);
	switch (way) {
	case SUBMIT:
		return gdk_submit(&rig.qp, 6, gdk_how(mode, RIG_AUTO, RIG_THREAD, 0));
	case WAITER:
		return (void)gdk_wait_for(&rig.qp, 5, mode, 1);
	case BF:
		return gdk_submit_bf(&rig.qp, 6, wqe, gdk_how(mode, GDK_BF, RIG_THREAD, 0));
	case BF_WARP:
	case BF_WARP_EXCL:
		return gdk_submit_bf_warp(&rig.qp, 6, wqe, gdk_how(mode, GDK_BF, RIG_THREAD, 0));
	case HAND_RECORD:
		return gdk_update_dbr(&rig.qp, 6, 0);
	case HAND_DB:
		return gdk_ring_db(&rig.qp, 6, 0);
	case HAND_BF:
		return gdk_ring_bf(&rig.qp, wqe);
	case HAND_BF_WARP:
		return gdk_ring_bf_warp(&rig.qp, wqe);
	default:
		return gdk_ring_proxy(&rig.qp, 6, mode);
	}
}

/* Configures the QP for `way`, then posts and rings the five NOPs, which must print nothing. */
static void prepare_way(enum way way)
{
	const int proxy = way == PROXY || way == HAND_PROXY;
	const int bf = (way >= BF && way <= BF_WARP_EXCL) || way >= HAND_BF;

	prepare(WRITE);
	rig.handler = proxy ? RIG_PROXY : bf ? RIG_BF : RIG_DB;
	rig.qp.nic_handler = (enum doca_gpu_dev_verbs_nic_handler)rig.handler;
	rig.st->flags |= bf ? GDK_QPF_BLUEFLAME : 0;
	rig.qp.sq_db = proxy ? &rig.counter : rig.qp.sq_db;
	gdk_qp_state_bind(rig.st, &rig.qp);
	post_slots(&rig.qp, 0, 4, way == POST_EXCL || way == BF_WARP_EXCL ? RIG_EXCL : RIG_GPU,
		   RIG_AUTO, 0);
	rig_nic(&rig);
	cr_assert_eq(rig.ci, 5);
	cr_assert_str_eq(out, "");
}

Test(debug_dev, every_way_to_ring_checks_the_wqe)
{
	for (unsigned int way = 0; way < WAYS; way++) {
		prepare_way((enum way)way);
		*word(5, 8) = 0;
		ring_by((enum way)way);
		cr_expect(strstr(out, "WQE 5: byte_count is 0x0, expected"), "way %u: %s", way,
			  out);
		cr_expect_eq(rig.st->rung, 5, "way %u", way);
		rig_nic(&rig);
		cr_expect_eq(rig.ci, 5, "way %u", way);
		cr_expect_eq(be32toh(rig.dbrec[1]), rig.handler == RIG_PROXY ? 0 : 5, "way %u",
			     way);
		cr_expect_eq(gdk_qp_status(&rig.qp), -EINVAL);
		cr_expect_eq(rig.st->error_wqe, 5);
		rig_fini(&rig);
		prepare_way((enum way)way);
		ring_by((enum way)way);
		cr_expect_eq(rig.st->rung, way == HAND_RECORD ? 5 : 6, "way %u", way);
		cr_expect_str_eq(out, "", "way %u: %s", way, out);
		rig_fini(&rig);
	}
}

Test(debug_dev, key_in_cpu_order_is_reported_once_and_rung)
{
	struct doca_gpu_dev_verbs_addr right = gdk_addr(ADDR, RKEY), wrong = { ADDR, 0x00012345 };
	uint64_t t;

	rig_init(&rig, 8, RIG_DB, 0);
	out[0] = 0;
	cr_assert_eq(
		gdk_put(&rig.qp, right, right, 8, &t, gdk_how(RIG_GPU, RIG_AUTO, RIG_THREAD, 0)),
		0);
	cr_assert_str_eq(out, "");
	cr_assert_eq(
		gdk_put(&rig.qp, right, wrong, 8, &t, gdk_how(RIG_GPU, RIG_AUTO, RIG_THREAD, 0)),
		0);
	cr_assert_eq(
		gdk_put(&rig.qp, wrong, right, 8, &t, gdk_how(RIG_GPU, RIG_AUTO, RIG_THREAD, 0)),
		0);
	cr_expect_str_eq(out, "gdaki: QP 0xabcd WQE 1: lkey is 0x45230100, in the wrong byte order "
			      "if it should be 0x12345\n");
	cr_expect_eq(rig.st->rung, 3);
	rig_fini(&rig);
	rig_init(&rig, 8, RIG_DB, 0);
	out[0] = 0;
	cr_assert_eq(
		gdk_put(&rig.qp, wrong, right, 8, &t, gdk_how(RIG_GPU, RIG_AUTO, RIG_THREAD, 0)),
		0);
	cr_expect(strstr(out, "WQE 0: rkey is 0x45230100, in the wrong byte order"), "output: %s",
		  out);
}

Test(debug_dev, unrung_tail_is_reported)
{
	uint64_t at;

	prepare(WRITE);
	post_slots(&rig.qp, 0, 1, RIG_GPU, RIG_AUTO, 0);
	cr_assert_eq(gdk_debug_check_tail(&rig.qp), 4);
	cr_expect_str_eq(out, "gdaki: QP 0xabcd: WQEs 2 to 5 are reserved and were never rung, "
			      "0 of them published\n");
	out[0] = 0;
	gdk_mark_ready(&rig.qp, 3, 5, RIG_GPU, RIG_AUTO);
	cr_assert_eq(gdk_debug_check_tail(&rig.qp), 4);
	cr_expect(strstr(out, "never rung, 3 of them published\n"), "output: %s", out);
	out[0] = 0;
	gdk_mark_ready(&rig.qp, 2, 2, RIG_GPU, RIG_AUTO);
	cr_assert_eq(gdk_debug_check_tail(&rig.qp), 4);
	cr_expect(strstr(out, "never rung, 4 of them published\n"), "output: %s", out);
	out[0] = 0;
	gdk_submit(&rig.qp, 6, gdk_how(RIG_GPU, RIG_AUTO, RIG_THREAD, 0));
	cr_assert_eq(gdk_debug_check_tail(&rig.qp), 0);
	rig.st->status = -EIO;
	cr_assert_eq(gdk_reserve(&rig.qp, 1, RIG_GPU, 0, &at), -EIO);
	cr_assert_eq(gdk_debug_check_tail(&rig.qp), 0);
	cr_expect_str_eq(out, "");
}

/* The one-WQE operations of exclusive use ring all slots before theirs, or none. */
Test(debug_dev, put_behind_a_refused_wqe_ends, .timeout = 60)
{
	const struct doca_gpu_dev_verbs_addr a = gdk_addr(ADDR, RKEY);
	uint64_t at, t;

	rig_init(&rig, 16, RIG_DB, 0);
	out[0] = 0;
	cr_assert_eq(rig_post_nops(&rig, 1, RIG_EXCL, 0), 0);
	rig_nic(&rig);
	cr_assert_eq(gdk_reserve(&rig.qp, 1, RIG_EXCL, 0, &at), 0);
	gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, at), 7, GDK_CE_ALWAYS);
	gdk_mark_ready(&rig.qp, at, at, RIG_EXCL, RIG_AUTO);
	(void)gdk_put(&rig.qp, a, a, 8, &t, gdk_how(RIG_EXCL, RIG_AUTO, RIG_THREAD, 0));
	cr_expect(strstr(out, "WQE 1: wqe_index is 0x7, expected 0x1; not rung\n"), "output: %s",
		  out);
	cr_expect_eq(t, 2);
	cr_expect_eq(rig.st->rung, 1);
	rig_nic(&rig);
	cr_expect_eq(rig.ci, 1);
	cr_expect_eq(gdk_qp_status(&rig.qp), -EINVAL);
	cr_expect_eq(gdk_wait(&rig.qp, t, RIG_EXCL), -EINVAL);
	rig_fini(&rig);
}

/* The submit of DOCA returns void: without the debug build, a program would wait in vain. */
Test(debug_dev, submit_of_receives_above_the_ring_ends)
{
	const struct gdk_how how = gdk_how(RIG_GPU, RIG_AUTO, RIG_THREAD, 0);

	rig_init(&rig, 8, RIG_DB, 0);
	rig.st->flags |= GDK_QPF_RECV;
	out[0] = 0;
	cr_expect_eq(gdk_srq_submit(&rig.qp, 8, how), 0);
	cr_expect_eq(gdk_srq_submit(&rig.qp, 16, how), 0);
	cr_expect_str_eq(out, "");
	cr_expect_eq(gdk_srq_submit(&rig.qp, 25, how), -EINVAL);
	cr_expect_str_eq(out, "gdaki: QP 0xabcd: submit of receives below 25, expected at most 24; "
			      "not offered\n");
	cr_expect_eq(rig.st->rung, 16);
	cr_expect_eq(gdk_wait(&rig.qp, 0, RIG_GPU), -EINVAL);
	rig_fini(&rig);
}
