/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * libFuzzer: the library's readers of CQEs and WQEs with arbitrary bytes. An input is
 * one of three: WQEs or CQEs to convert to text in a buffer of some size; a CQ and a
 * send queue in which the host searches for an error; or a sequence of posts, CQEs and
 * polls for the device functions, compiled for the CPU. No byte outside a queue or a
 * buffer may be accessed, a text must have the returned length unless it is truncated,
 * and the completed index must never decrease.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define GDK_DEBUG_PRINT(text) (printed += strlen(text))
static size_t printed;

#include "../lib/post_slots.h"
#include "../unit/rig.h"
#include "../../qp/export/export.h"
#include "../../qp/verbs/qp.h"
#include "../../qp/export/watch.h"
#include "device/gdk/dump_dev.h"
#include "input.h"

#define STEPS 32

int __wrap_clock_gettime(clockid_t id, struct timespec *ts);

/* The clock advances by one microsecond per call. */
int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	static uint64_t ns;

	(void)id;
	ns += 1000;
	ts->tv_sec = (time_t)(ns / 1000000000);
	ts->tv_nsec = (long)(ns % 1000000000);
	return 0;
}

static void *alloc(size_t len)
{
	void *p = calloc(1, len ? len : 1);

	if (!p)
		abort();
	return p;
}

static void expect(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "fuzz_cqe: %s\n", what);
	abort();
}

/* ---- conversion to text ---- */

static void check_text(const char *buf, size_t size, size_t len)
{
	size_t i, end = len < size ? len : size - 1;

	if (!size)
		return;
	expect(strnlen(buf, size) == end, "the text has another length than returned");
	for (i = 0; i < end; i++)
		expect(buf[i] == '\n' || (buf[i] >= ' ' && buf[i] <= '~'),
		       "the text has an unprintable character");
}

static void text_of_wqe(struct fuzz_in *in)
{
	unsigned slots = fuzz_u8(in) % 20;
	size_t size = fuzz_u16(in) % 4096, len;
	uint8_t *wqe = alloc(slots * 64);
	char *buf = alloc(size);

	fuzz_bytes(in, wqe, slots * 64);
	len = gdk_dump_wqe(buf, size, wqe, slots);
	check_text(buf, size, slots ? len : 0);
	free(buf);
	free(wqe);
}

static void text_of_cqe(struct fuzz_in *in)
{
	size_t size = fuzz_u16(in) % 1024, len;
	uint8_t *cqe = alloc(64);
	char *buf = alloc(size);

	fuzz_bytes(in, cqe, 64);
	len = gdk_dump_cqe(buf, size, cqe);
	check_text(buf, size, len);
	expect(gdk_syndrome_text(cqe[55]) && gdk_syndrome_cause(cqe[55]), "a syndrome has no text");
	free(buf);
	free(cqe);
}

/* ---- the host's error report: qp/export/error.c, on queues in host memory ---- */

static enum doca_verbs_qp_state state_now;

doca_error_t gdk_queue_read(doca_gpu_t *gpu, void *dst, const void *src, size_t len)
{
	(void)gpu;
	memcpy(dst, src, len);
	return DOCA_SUCCESS;
}

doca_error_t gdk_export_read_cq(const struct doca_verbs_cq_t *cq, uint8_t **out)
{
	size_t len = cq->cqe_num * (size_t)64;

	*out = alloc(len);
	memcpy(*out, cq->buf, len);
	return DOCA_SUCCESS;
}

void gdk_watch_report(struct gdk_export *x)
{
	(void)x;
}

doca_error_t gdk_qp_query_state(struct doca_verbs_qp_t *qp, uint8_t out[PRM_QUERY_QP_OUT_LEN],
				enum doca_verbs_qp_state *state)
{
	(void)qp, (void)out;
	*state = state_now;
	return DOCA_SUCCESS;
}

static void error_of_queues(struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in);
	struct doca_verbs_cq_t cq = { .cqe_num = 1u << (how & 3) };
	struct doca_verbs_qp_t qp = { .qpn = 0x1234, .sq_num = 1u << (how >> 2 & 3) };
	struct gdk_export x = { .cq = &cq, .q = { .pub = { .qp = &qp } } };
	struct doca_gpu_verbs_qp_error_info info;
	struct gdk_qp_error e;
	char text[256];
	uint8_t *cqe;
	uint32_t i;

	cq.buf = alloc(cq.cqe_num * (size_t)64);
	x.dev.sq_wqe_daddr = alloc(qp.sq_num * (size_t)64);
	state_now = how & 0x10 ? DOCA_VERBS_QP_STATE_ERR : DOCA_VERBS_QP_STATE_RTS;
	for (i = 0; i < cq.cqe_num; i++) {
		cqe = (uint8_t *)cq.buf + (size_t)i * 64;
		fuzz_bytes(in, cqe + 52, 12);
		if (how & 0x20) {
			memcpy(cqe + 57, "\x00\x12\x34", 3);
			cqe[63] |= 0xd0;
		}
	}
	fuzz_bytes(in, x.dev.sq_wqe_daddr, qp.sq_num * (size_t)64);
	expect(gdk_verbs_qp_get_error(&x.q.pub, &e) == DOCA_SUCCESS, "reading the error failed");
	expect(doca_gpu_verbs_query_last_error(&x.q.pub, &info) == DOCA_SUCCESS,
	       "reading the error failed");
	expect(e.has_error == info.has_error && e.syndrome == info.syndrome,
	       "the two error functions disagree");
	expect(!e.has_remote || e.has_cqe, "a remote address is reported without a CQE");
	expect(gdk_syndrome_text(e.syndrome) != NULL, "a syndrome has no text");
	gdk_verbs_qp_dump_wqe(&x.q.pub, fuzz_u64(in), text, sizeof(text));
	gdk_verbs_qp_dump_cqe(&x.q.pub, fuzz_u64(in), text, sizeof(text));
	free(cq.buf);
	free(x.dev.sq_wqe_daddr);
}

/* ---- the device functions ---- */

static struct rig rig;
static gdk_mode_t mode;

static void post(uint8_t how)
{
	const struct gdk_atomic_ext arg = { 0, 0, 1, 2, 3, 4 };
	uint32_t slots = how & 1 ? 2 : 1, n = (how >> 2 & 7) + 1, flags;
	uint64_t idx;

	while (n-- && rig.qp.sq_rsvd_index - rig.st->completed + slots <= rig.depth) {
		flags = how & 2 ? GDK_CE_ALWAYS : 0;
		if (gdk_reserve(&rig.qp, slots, mode, 0, &idx))
			return;
		if (slots == 2)
			gdk_wqe_atomic_ext(&rig.qp,
					   gdk_wqe_at(gdk_get_wqe_ptr(&rig.qp, idx), (uint16_t)idx,
						      DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_CS,
						      flags),
					   gdk_get_wqe_ptr(&rig.qp, idx + 1),
					   gdk_mem(1, gdk_key(2)), gdk_mem(3, gdk_key(4)), 8, &arg);
		else
			gdk_wqe_nop(&rig.qp, gdk_get_wqe_ptr(&rig.qp, idx), (uint16_t)idx, flags);
		post_slots(&rig.qp, idx, idx + slots - 1, mode, RIG_AUTO, 0);
	}
}

/* Fills a CQE with bytes of the input: all 64, or only those that the device functions read. */
static void put_cqe(struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in), *cqe = (uint8_t *)&rig.cqe[how % rig.cqe_num];

	if (how & 0x80)
		fuzz_bytes(in, cqe, 64);
	else
		fuzz_bytes(in, cqe + 60, 4);
	if (how & 0x40)
		cqe[55] = fuzz_u8(in);
}

static int poll(struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in);
	/* below 2^63, so that no ticket wraps */
	uint64_t index = how & 0x80 ? fuzz_u64(in) >> 1 : fuzz_u8(in);
	int collapsed = rig.collapsed;

	switch (how & 7) {
	case 0:
		return gdk_poll_one_cq_at(&rig.qp.cq_sq, index, mode);
	case 1:
		return gdk_poll_ticket(&rig.qp, index, mode);
	case 2:
		return gdk_poll_cq_at(&rig.qp.cq_sq, index, mode);
	case 3:
		return gdk_poll_cq(&rig.qp.cq_sq, (uint32_t)index, mode);
	case 4:
		return collapsed ? gdk_poll_collapsed_at(&rig.qp, index, mode) : 0;
	case 5:
		return gdk_wait(&rig.qp, index, mode);
	case 6:
		if (!collapsed)
			gdk_cq_consume(&rig.qp.cq_sq, (uint32_t)index % 32, how >> 3 & 1);
		return 0;
	}
	gdk_print_wqe(&rig.qp, index);
	gdk_print_cqe(&rig.qp.cq_sq, index);
	return (int)(gdk_qp_error_wqe(&rig.qp) & 0);
}

static void polls(struct fuzz_in *in)
{
	uint8_t how = fuzz_u8(in);
	uint32_t dbrec[2] = { 0, 0 };
	uint64_t completed = 0;
	int i, err, status = 0;

	mode = how & 8 ? RIG_EXCL : RIG_GPU;
	rig_init(&rig, 1u << (how & 3), RIG_DB, how >> 2 & 1);
	rig.st->wait_limit_ns = 1;
	rig.qp.cq_sq.dbrec = dbrec;
	/* The rig logs only the first 8 faults. Log none, because the input causes them. */
	rig.faults = 8;
	for (i = 0; i < STEPS && in->left; i++) {
		switch (fuzz_u8(in) & 3) {
		case 0:
			post(fuzz_u8(in));
			break;
		case 1:
			rig_nic(&rig);
			break;
		case 2:
			put_cqe(in);
			break;
		case 3:
			err = poll(in);
			expect(!status || err <= 0 || err == EBUSY,
			       "a poll of the failed queue pair returned a positive error");
			break;
		}
		expect(rig.st->completed >= completed, "the completed index decreased");
		expect(rig.st->completed <= rig.st->rung + 15,
		       "the completed index is more than 15 beyond the rung index");
		expect(!status || (int)rig.st->status == status,
		       "the status of the failed queue pair changed");
		completed = rig.st->completed;
		status = (int)rig.st->status;
	}
	rig_fini(&rig);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };

	switch (fuzz_u8(&in) & 3) {
	case 0:
		text_of_wqe(&in);
		break;
	case 1:
		text_of_cqe(&in);
		break;
	case 2:
		error_of_queues(&in);
		break;
	case 3:
		polls(&in);
		break;
	}
	return 0;
}
