/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The readable trace: one line per verbs call, command, WQE, packet, CQE and event, with
 * the microseconds since the first line of the process. Goes to stderr, or to a file
 * that all processes of a run append to. Counters are in stats.c.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "eng.h"
#include "eth.h"

/* The file is opened for appending and each line is one write, so that lines of several
 * processes do not mix. */
static int trace_fd(void)
{
	static int fd = -1;
	const char *path;

	if (fd >= 0)
		return fd;
	path = getenv("SOFTNIC_TRACE");
	if (path && strcmp(path, "1"))
		fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0)
		fd = STDERR_FILENO;
	return fd;
}

void sn_trace(const char *fmt, ...)
{
	static uint64_t start;
	char line[512];
	va_list ap;
	int n;

	if (!sn_dev || !sn_dev->cfg.trace)
		return;
	if (!start)
		start = sn_now();
	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	dprintf(trace_fd(), "softnic[%d] %9" PRIu64 " %s\n", (int)getpid(),
		(sn_now() - start) / 1000, line);
}

static const char *name_of(const char *const *names, unsigned n, unsigned value, char buf[8])
{
	if (value < n && names[value])
		return names[value];
	snprintf(buf, 8, "0x%02x", value & 0xff);
	return buf;
}

#define NAME(table, value, buf) name_of(table, sizeof(table) / sizeof((table)[0]), value, buf)

static const char *const wqe_names[] = {
	[SN_OP_NOP] = "NOP",
	[SN_OP_SEND_INVAL] = "SEND_INVAL",
	[SN_OP_WRITE] = "WRITE",
	[SN_OP_WRITE_IMM] = "WRITE_IMM",
	[SN_OP_SEND] = "SEND",
	[SN_OP_SEND_IMM] = "SEND_IMM",
	[SN_OP_WAIT] = "WAIT",
	[SN_OP_READ] = "READ",
	[SN_OP_CS] = "CMP_SWAP",
	[SN_OP_FA] = "FETCH_ADD",
	[SN_OP_MASKED_CS] = "MASKED_CMP_SWAP",
	[SN_OP_MASKED_FA] = "MASKED_FETCH_ADD",
	[SN_OP_DUMP] = "DUMP",
	[SN_OP_MMO] = "MMO",
	[SN_OP_TSO] = "TSO",
	[SN_OP_EMPW] = "EMPW",
};

const char *sn_wqe_name(uint8_t opcode, char buf[8])
{
	return NAME(wqe_names, opcode, buf);
}

static const char *const syndromes[] = {
	[SN_SYND_LOC_LEN] = "local length",	      [SN_SYND_LOC_OP] = "local QP operation",
	[SN_SYND_LOC_PROT] = "local protection",      [SN_SYND_FLUSH] = "flushed",
	[SN_SYND_BAD_RESP] = "bad response",	      [SN_SYND_LOC_ACCESS] = "local access",
	[SN_SYND_REM_INV] = "remote invalid request", [SN_SYND_REM_ACCESS] = "remote access",
	[SN_SYND_REM_OP] = "remote operation",	      [SN_SYND_RETRY] = "retries exceeded",
	[SN_SYND_RNR] = "RNR retries exceeded",
};

const char *sn_syndrome_name(uint8_t synd, char buf[8])
{
	return NAME(syndromes, synd, buf);
}

void sn_trace_wqe(const struct sn_qp_eng *q, const struct sn_msg *m)
{
	char op[8], synd[8], where[64] = "", wait[48] = "";
	bool remote = m->opcode == SN_OP_WRITE || m->opcode == SN_OP_WRITE_IMM ||
		      (m->opcode >= SN_OP_READ && m->opcode <= SN_OP_MASKED_FA);

	if (remote)
		snprintf(where, sizeof(where), ", remote 0x%" PRIx64 " rkey 0x%x", m->raddr,
			 m->rkey);
	if (m->opcode == SN_OP_WAIT)
		snprintf(wait, sizeof(wait), ", CQ 0x%x index %u", m->wait_cqn, m->wait_index);
	sn_trace("WQE qp 0x%x index %u %s, %u bytes %s %u%s%s%s%s%s%s%s", q->qp->qpn,
		 m->idx & 0xffff, NAME(wqe_names, m->opcode, op), m->len,
		 m->inl ? "inline, segments" : "in segments", m->nsge, where, wait,
		 (m->fm & 0x0c) == 0x08 ? ", signalled" : "", m->solicited ? ", solicited" : "",
		 m->fm >> 5 ? ", fence" : "", m->synd ? ": refused: " : "",
		 m->synd ? NAME(syndromes, m->synd, synd) : "");
}

/* The additional fields of a received frame's CQE. */
static void frame_text(const struct sn_cqe_args *a, char text[96])
{
	snprintf(text, 96, ", %u bytes, type 0x%04x, tag 0x%x, hash 0x%08x", a->byte_cnt,
		 a->eth->type, a->eth->flow_tag, a->eth->hash);
}

void sn_trace_cqe(const struct sn_cq *cq, const struct sn_qp *qp, const struct sn_cqe_args *a)
{
	static const char *const ops[] = {
		[SN_CQE_REQ] = "send",
		[SN_CQE_RESP_WRITE_IMM] = "WRITE_IMM received",
		[SN_CQE_RESP_SEND] = "SEND received",
		[SN_CQE_RESP_SEND_IMM] = "SEND_IMM received",
		[SN_CQE_REQ_ERR] = "send failed",
		[SN_CQE_RESP_ERR] = "receive failed",
	};
	char op[8], synd[8], vendor[24] = "", frame[96] = "";

	if (a->synd)
		snprintf(vendor, sizeof(vendor), " (vendor 0x%02x)", a->vendor);
	if (a->eth)
		frame_text(a, frame);
	if (a->inl)
		snprintf(frame, sizeof(frame), ", with %u bytes of data", a->inl_len);
	sn_trace("CQE cq 0x%x entry %" PRIu64 " qp 0x%x WQE %u %s%s%s%s%s", cq->cqn, cq->pi - 1,
		 qp->qpn, a->counter, a->eth ? "frame received" : NAME(ops, a->opcode, op),
		 a->synd ? ": " : "", a->synd ? NAME(syndromes, a->synd, synd) : "", vendor, frame);
}

void sn_trace_packet(const char *way, const struct sn_bth *bth, uint32_t len)
{
	static const char *const ops[] = {
		"SEND_FIRST",	  "SEND_MIDDLE",  "SEND_LAST",
		"SEND_LAST_IMM",  "SEND_ONLY",	  "SEND_ONLY_IMM",
		"WRITE_FIRST",	  "WRITE_MIDDLE", "WRITE_LAST",
		"WRITE_LAST_IMM", "WRITE_ONLY",	  "WRITE_ONLY_IMM",
		"READ_REQUEST",	  "READ_FIRST",	  "READ_MIDDLE",
		"READ_LAST",	  "READ_ONLY",	  "ACK",
		"ATOMIC_ACK",	  "CMP_SWAP",	  "FETCH_ADD",
	};
	static const char *const kinds[] = { "RC", "UC", "RD", "UD" };
	char op[8], kind[8];

	sn_trace("%s %s %s to qp 0x%x psn 0x%06x, %u bytes%s%s", way,
		 NAME(kinds, (unsigned)bth->opcode >> 5, kind), NAME(ops, bth->opcode & 0x1fu, op),
		 bth->qpn, bth->psn & SN_PSN_MASK, len, bth->ackreq ? ", ack requested" : "",
		 bth->solicited ? ", solicited" : "");
}
