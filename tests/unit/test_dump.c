/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The text of WQEs and CQEs: gdk_print_*() on the device prints the text that
 * gdk_dump_*() on the host writes to a buffer. Also what the host logs about slots
 * that were never rung.
 */
#include <criterion/criterion.h>

#define GDK_DEBUG_PRINT(text) print(text)
static void print(const char *text);

#include "../lib/capture.h"
#include "../lib/e2e.h"
#include "wqe_kinds.h"

static char out[4096];
static struct rig rig;

static void print(const char *text)
{
	snprintf(out, sizeof(out), "%s", text);
}

#define CTRL(opmod, index, opcode, ds, imm) \
	"  ctrl opmod " opmod " wqe_index " index " opcode " opcode " qpn 0xabcd ds " ds \
	" signature 0x0 dci_stream_channel_id 0x0 fm 0 ce 2 se 0 imm " imm "\n"
#define RADDR	    "  raddr raddr 0x1122334455667788 rkey 0x12345\n"
#define RESULT	    "  result control 0x0 lkey 0x12345 addr 0x1122334455667788\n"
#define DATA(bytes) "  data byte_count " bytes " lkey 0x54321 addr 0x8877665544332211\n"

static const char *const texts[KINDS] = {
	[NOP] = "WQE 3: NOP\n" CTRL("0x0", "3", "0x0", "1", "0x0"),
	[WRITE] = "WQE 3: RDMA_WRITE\n" CTRL("0x0", "3", "0x8", "3", "0x0") RADDR DATA("64"),
	[WRITE2] = "WQE 3: RDMA_WRITE\n" CTRL("0x0", "3", "0x8", "4", "0x0") RADDR DATA("64")
		DATA("536870912"),
	[WRITE_IMM] = "WQE 3: RDMA_WRITE_IMM\n" CTRL("0x0", "3", "0x9", "3", "0x7")
		RADDR DATA("1073741824"),
	[READ] = "WQE 3: RDMA_READ\n" CTRL("0x0", "3", "0x10", "3", "0x0") RADDR DATA("1"),
	[INLINE] = "WQE 3: RDMA_WRITE\n" CTRL("0x0", "3", "0x8", "3", "0x0") RADDR
	"  inline byte_count 12 data 74 77 65 6c 76 65 20 62 79 74 65 73\n",
	[INLINE_LONG] = "WQE 3: RDMA_WRITE\n" CTRL("0x0", "3", "0x8", "4", "0x0") RADDR
	"  inline byte_count 28 data 74 68 69 72 74 65 65 6e 20 62 79 74 65 73 20 61 6e 64 "
	"20 61 20 66 65 77 20 6d 6f 72\n",
	[FA] = "WQE 3: ATOMIC_FA\n" CTRL("0x0", "3", "0x12", "4", "0x0") RADDR
	"  atomic swap_add 0x5 compare 0x0\n" DATA("8"),
	[CS] = "WQE 3: ATOMIC_CS\n" CTRL("0x0", "3", "0x11", "4", "0x0") RADDR
	"  atomic swap_add 0x6 compare 0x5\n" DATA("8"),
	[MFA4] = "WQE 3: ATOMIC_MASKED_FA\n" CTRL("0x8", "3", "0x15", "4", "0x0") RADDR
	"  atomic add_data 0x1 field_boundary 0x2\n" DATA("4"),
	[MFA8] = "WQE 3: ATOMIC_MASKED_FA\n" CTRL("0x9", "3", "0x15", "4", "0x0") RADDR
	"  atomic add_data 0x1 field_boundary 0x2\n" DATA("8"),
	[MCS4] = "WQE 3: ATOMIC_MASKED_CS\n" CTRL("0x8", "3", "0x14", "4", "0x0") RADDR
	"  atomic swap_data 0x3 compare_data 0x4 swap_mask 0x5 compare_mask 0x6\n" DATA("4"),
	[MCS8] = "WQE 3: ATOMIC_MASKED_CS\n" CTRL("0x9", "3", "0x14", "5", "0x0") RADDR
	"  atomic swap 0x3 compare 0x4\n  atomic swap_mask 0x5 compare_mask 0x6\n" DATA("8"),
	[WAIT] = "WQE 3: WAIT\n" CTRL("0x0", "3", "0xf", "2",
				      "0x0") "  wait max_index 9 qpn_cqn 0x123\n",
	[DUMP] = "WQE 3: DUMP\n" CTRL("0x0", "3", "0x23", "2", "0x0") DATA("8"),
	[COPY] = "WQE 3: MMO\n" CTRL("0x1", "3", "0x2f", "4", "0x0")
		RESULT DATA("0") "  data byte_count 0 lkey 0x12345 addr 0x1122334455667788\n",
};

/* The WQE is built in the ring's last slot, so that a WQE of two slots wraps. */
Test(dump, text_of_every_kind_of_wqe)
{
	struct doca_gpu_dev_verbs_wqe wqe[2];
	char text[1024];
	unsigned int k;
	size_t len;

	for (k = 0; k < KINDS; k++) {
		rig_init(&rig, 4, RIG_DB, 0);
		memset(rig.ring, 0xee, 4 * 64);
		build(&rig, (enum kind)k, 3);
		gdk_print_wqe(&rig.qp, 3);
		cr_expect_str_eq(out, texts[k], "WQE kind %u:\n%s", k, out);
		memcpy(&wqe[0], rig.ring + 3 * 64, 64);
		memcpy(&wqe[1], rig.ring, 64);
		len = gdk_dump_wqe(text, sizeof(text), wqe, 2);
		cr_expect_str_eq(text, texts[k]);
		cr_expect_eq(len, strlen(texts[k]));
		rig_fini(&rig);
	}
}

Test(dump, unknown_segments_are_dumped_raw)
{
	static const uint32_t none[16];
	uint32_t wqe[16];
	char text[1024];

	gdk_dump_wqe(text, sizeof(text), none, 1);
	cr_expect_str_eq(text, "WQE 0: NOP\n  ctrl opmod 0x0 wqe_index 0 opcode 0x0 qpn 0x0 ds 0 "
			       "signature 0x0 dci_stream_channel_id 0x0 fm 0 ce 0 se 0 imm 0x0\n"
			       "  raw 00000000 00000000 00000000 00000000\n"
			       "  raw 00000000 00000000 00000000 00000000\n"
			       "  raw 00000000 00000000 00000000 00000000\n");
	for (unsigned int i = 0; i < 16; i++)
		wqe[i] = htobe32(0x01020304 * (i + 1));
	gdk_dump_wqe(text, sizeof(text), wqe, 1);
	cr_expect_str_eq(text, "WQE 515: ?\n  ctrl opmod 0x1 wqe_index 515 opcode 0x4 qpn 0x20406 "
			       "ds 8 signature 0x3 dci_stream_channel_id 0x609 fm 0 ce 3 se 0 "
			       "imm 0x4080c10\n"
			       "  raw 050a0f14 060c1218 070e151c 08101820\n"
			       "  raw 09121b24 0a141e28 0b16212c 0c182430\n"
			       "  raw 0d1a2734 0e1c2a38 0f1e2d3c 10203040\n");
	/* only the first slot of a WQE of two slots is passed */
	rig_init(&rig, 4, RIG_DB, 0);
	build(&rig, MCS8, 0);
	gdk_dump_wqe(text, sizeof(text), rig.ring, 1);
	cr_expect(strstr(text, "WQE 0: ATOMIC_MASKED_CS\n") && strstr(text, "  raw 11223344"));
	cr_expect_eq(gdk_dump_wqe(text, sizeof(text), rig.ring, 0), 0);
	cr_expect_str_eq(text, "");
	rig_fini(&rig);
}

/* A text that does not fit is cut. The length of the whole text is returned nevertheless. */
Test(dump, text_is_cut_like_snprintf)
{
	size_t size, whole;
	char text[512];

	rig_init(&rig, 4, RIG_DB, 0);
	build(&rig, WRITE, 3);
	whole = gdk_dump_wqe(NULL, 0, rig.ring + 3 * 64, 1);
	cr_assert_eq(whole, strlen(texts[WRITE]));
	for (size = 1; size < whole + 2; size++) {
		memset(text, 0x55, sizeof(text));
		cr_assert_eq(gdk_dump_wqe(text, size, rig.ring + 3 * 64, 1), whole);
		cr_assert_eq(strlen(text), size <= whole ? size - 1 : whole);
		cr_assert_eq(strncmp(text, texts[WRITE], strlen(text)), 0);
		cr_assert_eq(text[size], 0x55);
	}
	rig_fini(&rig);
}

Test(dump, cqe)
{
	struct doca_gpunetio_ib_mlx5_cqe64 e;
	struct doca_gpunetio_ib_mlx5_err_cqe_ex *x = (void *)&e;
	char text[512];

	memset(&e, 0, sizeof(e));
	e.srqn_uidx = htobe32(0x11);
	e.imm_inval_pkey = htobe32(0x22);
	e.byte_cnt = htobe32(4096);
	e.timestamp = htobe64(0x123456789a);
	e.sop_drop_qpn = htobe32(0x0800abcd);
	e.wqe_counter = htobe16(513);
	e.signature = 0x5a;
	e.op_own = 0x07;
	cr_expect_eq(gdk_dump_cqe(text, sizeof(text), &e), strlen(text));
	cr_expect_str_eq(text, "CQE: REQ\n"
			       "  opcode 0x0 cqe_format 1 se 1 owner 1 wqe_counter 513 "
			       "signature 0x5a s_wqe_opcode 0x8 (RDMA_WRITE) qpn 0xabcd\n"
			       "  byte_cnt 4096 timestamp 0x123456789a imm_inval_pkey 0x22 "
			       "srqn_uidx 0x11\n");
	e.op_own = 0xd0;
	x->srqn = htobe32(0x33);
	x->hw_err_synd = 1;
	x->hw_synd_type = 2;
	x->vendor_err_synd = 0x89;
	x->syndrome = 0x15;
	gdk_dump_cqe(text, sizeof(text), &e);
	cr_expect_str_eq(text, "CQE: REQ_ERR\n"
			       "  opcode 0xd cqe_format 0 se 0 owner 0 wqe_counter 513 "
			       "signature 0x5a s_wqe_opcode 0x8 (RDMA_WRITE) qpn 0xabcd\n"
			       "  syndrome 0x15 (transport retries exceeded) vendor_err_synd 0x89 "
			       "hw_err_synd 0x1 hw_synd_type 0x2 srqn 0x33\n");
}

/* The text of the error CQE of a put that the peer refuses, and of its WQE. */
Test(dump, error_cqe_written_by_the_nic)
{
	doca_gpu_dev_verbs_ticket_t t;
	struct e2e_pair p;
	char text[1024], want[256];
	struct doca_gpu_verbs_qp *tx;

	e2e_pair_open(&p, E2E_DB, 16, 4096);
	tx = p.tx.hl->qp_gverbs;
	cr_assert_eq(e2e_put(&p, 0, 64, &t), 0);
	cr_assert_eq(e2e_wait(&p.tx, t), 0);
	cr_assert_eq(gdk_put(p.tx.dev, e2e_addr(p.dst.mem, p.dst.mr->rkey ^ 0x100),
			     e2e_addr(p.src.mem, p.src.mr->lkey), 64, &t,
			     gdk_how(E2E_MODE, E2E_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD, 0)),
		     0);
	cr_assert_eq(e2e_wait(&p.tx, t), -EIO);

	cr_assert_eq(gdk_verbs_qp_dump_cqe(tx, 1, text, sizeof(text)), DOCA_SUCCESS);
	snprintf(want, sizeof(want), "s_wqe_opcode 0x8 (RDMA_WRITE) qpn 0x%x\n", p.tx.qpn);
	cr_expect(strstr(text, "CQE: REQ_ERR\n  opcode 0xd "), "text: %s", text);
	cr_expect(strstr(text, " wqe_counter 1 "), "text: %s", text);
	cr_expect(strstr(text, want), "text: %s", text);
	cr_expect(strstr(text, "  syndrome 0x13 (remote access error) "), "text: %s", text);
	gdk_print_cqe(gdk_qp_cq(p.tx.dev), 1);
	cr_expect_str_eq(out, text);

	cr_assert_eq(gdk_verbs_qp_dump_cqe(tx, 0, text, sizeof(text)), DOCA_SUCCESS);
	cr_expect(strstr(text, "CQE: REQ\n") && strstr(text, " wqe_counter 0 "), "text: %s", text);

	cr_assert_eq(gdk_verbs_qp_dump_wqe(tx, 1, text, sizeof(text)), DOCA_SUCCESS);
	snprintf(want, sizeof(want), "  raddr raddr 0x%llx rkey 0x%x\n",
		 (unsigned long long)(uintptr_t)p.dst.mem, p.dst.mr->rkey ^ 0x100);
	cr_expect(strstr(text, "WQE 1: RDMA_WRITE\n") && strstr(text, want), "text: %s", text);
	gdk_print_wqe(p.tx.dev, 1);
	cr_expect_str_eq(out, text);
	cr_expect_eq(gdk_verbs_qp_dump_wqe(NULL, 1, text, sizeof(text)), DOCA_ERROR_INVALID_VALUE);
	cr_expect_eq(gdk_verbs_qp_dump_cqe(tx, 1, NULL, 0), DOCA_ERROR_INVALID_VALUE);
	e2e_pair_close(&p);
}

/* ---- what the host logs about slots that were never rung ---- */

static void close_and_expect(struct e2e_pair *p, const char *line)
{
	const char *log;

	capture_begin();
	e2e_pair_close(p);
	log = capture_end();
	cr_expect(line ? strstr(log, line) != NULL : !strstr(log, "never rung"), "log: %s", log);
}

Test(dump, unrung_tail_is_logged_at_close_and_reset)
{
	doca_gpu_dev_verbs_ticket_t t;
	struct e2e_pair p;
	const char *log;
	uint64_t idx;

	e2e_pair_open(&p, E2E_DB, 16, 4096);
	cr_assert_eq(e2e_put(&p, 0, 64, &t), 0);
	cr_assert_eq(e2e_wait(&p.tx, t), 0);
	cr_assert_eq(gdk_put(p.tx.dev, e2e_addr(p.dst.mem, p.dst.mr->rkey),
			     e2e_addr(p.src.mem, p.src.mr->lkey), 64, &t,
			     gdk_how(E2E_MODE, E2E_AUTO, DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD,
				     GDK_OPT_SKIP_DB)),
		     0);
	cr_assert_eq(gdk_reserve(p.tx.dev, 2, E2E_MODE, 0, &idx), 0);
	capture_begin();
	cr_assert_eq(doca_gpu_verbs_reset_tracking_and_memory(p.tx.hl->qp_gverbs), DOCA_SUCCESS);
	log = capture_end();
	cr_expect(strstr(log, "slots from 1 on were never rung: 3 reserved, 1 of them published"),
		  "log: %s", log);
	cr_assert_eq(gdk_reserve(p.tx.dev, 2, E2E_MODE, 0, &idx), 0);
	close_and_expect(&p, "slots from 0 on were never rung: 2 reserved, 0 of them published");
}

static void publish(const struct e2e_pair *p, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i <= to; i++)
		gdk_wqe_nop(p->tx.dev, gdk_get_wqe_ptr(p->tx.dev, i), (uint16_t)i,
			    DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE);
	gdk_mark_ready(p->tx.dev, from, to, E2E_MODE, E2E_AUTO);
}

/* Opens a pair and completes `rung` puts. Then 7 slots are reserved and 4 of them published: the
 * first one, and three behind a gap of two. */
static void open_with_gap(struct e2e_pair *p, uint64_t rung)
{
	doca_gpu_dev_verbs_ticket_t t;
	uint64_t idx;

	e2e_pair_open(p, E2E_DB, 16, 4096);
	for (uint64_t i = 0; i < rung; i++) {
		cr_assert_eq(e2e_put(p, 0, 64, &t), 0);
		cr_assert_eq(e2e_wait(&p->tx, t), 0);
	}
	cr_assert_eq(gdk_reserve(p->tx.dev, 7, E2E_MODE, 0, &idx), 0);
	cr_assert_eq(idx, rung);
	publish(p, idx + 3, idx + 5);
	publish(p, idx, idx);
}

/* In the second case the slots are at both ends of the ring, in the third in an odd lap of it. */
Test(dump, slots_published_behind_a_gap_are_counted)
{
	static const char *const lines[] = {
		"slots from 2 on were never rung: 7 reserved, 4 of them published",
		"slots from 11 on were never rung: 7 reserved, 4 of them published",
		"slots from 18 on were never rung: 7 reserved, 4 of them published",
	};
	static const uint64_t rung[] = { 2, 11, 18 };
	struct e2e_pair p;

	for (unsigned int i = 0; i < 3; i++) {
		open_with_gap(&p, rung[i]);
		close_and_expect(&p, lines[i]);
	}
}

Test(dump, first_slot_of_a_gap_is_logged_when_an_abort_cannot_be_cleared)
{
	struct e2e_pair p;
	const char *log;

	open_with_gap(&p, 11);
	cr_assert_eq(gdk_verbs_qp_abort(p.tx.hl->qp_gverbs), DOCA_SUCCESS);
	capture_begin();
	cr_expect_eq(gdk_verbs_qp_clear_abort(p.tx.hl->qp_gverbs), DOCA_ERROR_BAD_STATE);
	log = capture_end();
	cr_expect(strstr(log, "published behind slot 12,"), "log: %s", log);
	close_and_expect(&p, NULL);
}

Test(dump, rung_or_aborted_tail_is_not_logged)
{
	doca_gpu_dev_verbs_ticket_t t;
	struct e2e_pair p;
	uint64_t idx;

	e2e_pair_open(&p, E2E_DB, 16, 4096);
	for (unsigned int i = 0; i < 40; i++) {
		cr_assert_eq(e2e_put(&p, 0, 64, &t), 0);
		cr_assert_eq(e2e_wait(&p.tx, t), 0);
	}
	close_and_expect(&p, NULL);
	e2e_pair_open(&p, E2E_DB, 16, 4096);
	cr_assert_eq(gdk_reserve(p.tx.dev, 2, E2E_MODE, 0, &idx), 0);
	cr_assert_eq(gdk_verbs_qp_abort(p.tx.hl->qp_gverbs), DOCA_SUCCESS);
	close_and_expect(&p, NULL);
}
