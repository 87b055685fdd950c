/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What server and client tell each other over a TCP connection: the options of the transfer, the
 * descriptions of connections and buffers, and the start and end of each round.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exchange.h"
#include "rdma_write.h"

#define PROGRAM	   "gpunetio_rdma_client_server_write"
#define BLOB_MAX   4096	 /* bytes of a description */
#define NAP_NS	   50000 /* between two polls for the end of the kernel */
#define ABORTED_MS 10000 /* time limit of a kernel to end after rw_abort() */

struct transfer {
	struct rw_options *opt;
	struct rw_side *side;
	struct ex_conn conn;
	bool hung; /* the kernel does not end, and still uses the memory of the process */
};

static const char *const modes[] = { [RW_STRONG] = "strong", [RW_WEAK] = "weak" };

/* ---- options ---- */

int rw_check_options(const struct rw_options *opt)
{
	uint64_t writes = (uint64_t)opt->connections * opt->writes;

	if (writes > RW_WRITES_MAX)
		return ex_error("-q %u connections with -i %u writes each are too many (at most %u "
				"in all: the receives of a queue)",
				opt->connections, opt->writes, RW_WRITES_MAX);
	if (writes * opt->size > RW_BYTES_MAX)
		return ex_error("-q %u connections with -i %u writes of -s %u bytes need too much "
				"memory (at most %u MiB)",
				opt->connections, opt->writes, opt->size, RW_BYTES_MAX >> 20);
	return 0;
}

static int send_options(struct transfer *t)
{
	const struct ex_msg m = {
		.type = EX_MSG_SETUP,
		.arg = { t->opt->connections, t->opt->writes, t->opt->size },
	};

	return ex_msg_send(&t->conn, &m);
}

static int receive_options(struct transfer *t)
{
	struct ex_msg m;

	if (ex_msg_recv(&t->conn, &m, EX_MSG_SETUP, NULL, "for its options"))
		return -1;
	t->opt->connections = m.arg[0];
	t->opt->writes = m.arg[1];
	t->opt->size = m.arg[2];
	if (!m.arg[0] || !m.arg[1] || !m.arg[2])
		return ex_error("the client sent options that are 0");
	return rw_check_options(t->opt);
}

/* ---- descriptions ---- */

static int send_blob(struct transfer *t, struct rw_blob blob)
{
	const struct ex_msg m = { .type = EX_MSG_PEERS, .num = blob.len };
	int rc = ex_msg_send(&t->conn, &m);

	if (!rc)
		rc = ex_send(&t->conn, blob.bytes, blob.len);
	return rc == EX_GONE ? 0 : rc; /* the error shows when a message is awaited */
}

static int receive_blob(struct transfer *t, uint8_t *bytes, struct rw_blob *blob)
{
	struct ex_msg m;

	if (ex_msg_recv(&t->conn, &m, EX_MSG_PEERS, NULL, "for its descriptions"))
		return -1;
	if (m.num > BLOB_MAX)
		return ex_error("the %s sent a description of %" PRIu64 " bytes (at most %u)",
				t->conn.peer, m.num, BLOB_MAX);
	*blob = (struct rw_blob){ bytes, m.num };
	return ex_recv(&t->conn, bytes, m.num, "for its descriptions");
}

/* The server also describes its buffers, into which the client writes. */
static int send_descriptions(struct transfer *t)
{
	struct rw_blob blob;
	uint32_t i;

	for (i = 0; i < t->opt->connections; i++)
		if (send_blob(t, rw_describe_connection(t->side, i)))
			return -1;
	if (t->opt->server)
		return 0;
	return rw_describe_buffers(t->side, &blob) || send_blob(t, blob) ? -1 : 0;
}

static int receive_descriptions(struct transfer *t)
{
	uint8_t bytes[BLOB_MAX];
	struct rw_blob blob;
	uint32_t i;

	for (i = 0; i < t->opt->connections; i++)
		if (receive_blob(t, bytes, &blob) || rw_connect(t->side, i, blob))
			return -1;
	if (!t->opt->server)
		return 0;
	return receive_blob(t, bytes, &blob) || rw_open_remote_buffers(t->side, blob) ? -1 : 0;
}

static int print_heading(struct transfer *t)
{
	struct gdk_handler_report report;
	struct doca_gpu_verbs_qp *qp;

	if (rw_get_qp(t->side, &qp) ||
	    ex_check(gdk_verbs_qp_get_handler_report(qp, &report), "handler"))
		return -1;
	printf("GPU %s, connections: %u, threads: %u, handler: %s\n", t->opt->gpu,
	       t->opt->connections, t->opt->threads, gdk_handler_name(report.chosen));
	return 0;
}

static int set_up(struct transfer *t)
{
	if (t->opt->server ? send_options(t) : receive_options(t))
		return -1;
	if (rw_create(t->side) || send_descriptions(t) || receive_descriptions(t))
		return -1;
	return print_heading(t);
}

/* ---- rounds ---- */

/* Whether the kernel shall be aborted: Ctrl-C, or an error of the other side. The client may report
 * its end before the server's kernel has ended. */
static bool must_abort(struct transfer *t, bool *peer_done)
{
	struct ex_msg m;
	int rc;

	if (ex_waits_end())
		return ex_error("interrupted") != 0;
	if (*peer_done)
		return false;
	rc = ex_msg_poll(&t->conn, &m);
	*peer_done = rc == 1 && m.type == EX_MSG_DONE;
	if (rc == 1 && !*peer_done)
		ex_error("unexpected message %u of the %s", m.type, t->conn.peer);
	return rc && !*peer_done;
}

/* Waits for the end of the kernel, whose waits have a time limit. */
static int await_kernel(struct transfer *t, bool *peer_done)
{
	const struct timespec nap = { 0, NAP_NS };
	int64_t end = 0; /* 0: the kernel was not aborted */
	int rc;

	while (!(rc = rw_done(t->side))) {
		nanosleep(&nap, NULL);
		if (!end && must_abort(t, peer_done)) {
			end = ex_now_ms() + ABORTED_MS;
			t->hung = rw_abort(t->side) != 0;
		}
		if (end && ex_now_ms() > end)
			t->hung = ex_error("the kernel does not end") != 0;
		if (t->hung)
			return -1;
	}
	return end || rc < 0 ? -1 : rw_check_kernel(t->side);
}

static int tell(struct transfer *t, enum ex_msg_type type, uint32_t arg)
{
	const struct ex_msg m = { .type = type, .arg = { arg } };

	return ex_msg_send(&t->conn, &m);
}

static void print_row(const struct transfer *t, enum rw_mode mode)
{
	const uint32_t writes = t->opt->connections * t->opt->writes;
	const double s = rw_seconds(t->side);

	printf("%8s %9u %11u", modes[mode], t->opt->size, writes);
	if (s > 0)
		printf(" %9.4g %13.4g %9.4g", 8e-9 * t->opt->size * writes / s, 1e-6 * writes / s,
		       1e3 * s);
	printf("\n");
}

/* The client's kernel starts when the server's kernel does. A write that finds no receive yet is
 * repeated by the NIC. */
static int client_round(struct transfer *t, enum rw_mode mode)
{
	struct ex_msg m;
	bool unused = false;

	if (tell(t, EX_MSG_START, mode) ||
	    ex_msg_recv(&t->conn, &m, EX_MSG_LAUNCHED, NULL, "for its kernel") ||
	    rw_launch(t->side, mode) || await_kernel(t, &unused) || tell(t, EX_MSG_DONE, 0) ||
	    ex_msg_recv(&t->conn, &m, EX_MSG_VERDICT, NULL, "for its verdict"))
		return -1;
	print_row(t, mode);
	return 0;
}

static int server_round(struct transfer *t, uint32_t mode)
{
	bool done = false;
	struct ex_msg m;
	int rc;

	if (mode >= RW_MODES)
		return ex_error("the client sent mode %u", mode);
	if (rw_launch(t->side, (enum rw_mode)mode))
		return -1;
	rc = tell(t, EX_MSG_LAUNCHED, 0);
	if (await_kernel(t, &done) || rc)
		return -1;
	if (!done && ex_msg_recv(&t->conn, &m, EX_MSG_DONE, NULL, "for its kernel"))
		return -1;
	if (rw_check_data(t->side))
		return -1;
	printf("%s mode: %u writes received\n", modes[mode], t->opt->connections * t->opt->writes);
	return tell(t, EX_MSG_VERDICT, 1);
}

static int drive(struct transfer *t)
{
	uint32_t mode;

	printf("%8s %9s %11s %9s %13s %9s\n", "mode", "#bytes", "#messages", "BW[Gb/s]",
	       "MsgRate[M/s]", "time[ms]");
	for (mode = 0; mode < RW_MODES; mode++)
		if (client_round(t, (enum rw_mode)mode))
			return -1;
	return tell(t, EX_MSG_END, 1);
}

static int serve(struct transfer *t)
{
	struct ex_msg m;

	for (;;) {
		if (ex_msg_recv(&t->conn, &m, (enum ex_msg_type)0, NULL, "for the next round"))
			return -1;
		if (m.type == EX_MSG_END)
			break;
		if (m.type != EX_MSG_START)
			return ex_error("unexpected message %u of the client", m.type);
		if (server_round(t, m.arg[0]))
			return -1;
	}
	printf("Validation successful! Data, immediate values and connections are right.\n");
	return 0;
}

int rw_run(struct rw_options *opt)
{
	struct transfer t = { .opt = opt, .conn = { .sock = -1 } };
	const struct ex_options tcp = {
		.server = opt->server,
		.tcp_port = opt->tcp_port,
		.timeout_s = opt->timeout_s,
	};
	int rc = rw_open(&t.side, opt);

	if (!rc)
		rc = opt->server ? ex_connect(&t.conn, &tcp) : ex_accept(&t.conn, &tcp);
	if (!rc)
		rc = ex_hello(&t.conn, PROGRAM);
	if (!rc)
		rc = set_up(&t);
	if (!rc)
		rc = opt->server ? drive(&t) : serve(&t);
	if (rc)
		ex_msg_failed(&t.conn);
	if (t.hung)
		_Exit(EXIT_FAILURE);
	ex_disconnect(&t.conn);
	rw_close(t.side);
	return rc;
}
