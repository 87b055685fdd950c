/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The TCP connection of two programs, one of which sends packets to the other. Ethernet has no
 * acknowledgements: the receiver tells the sender how many packets have come, so that the sender
 * does not send more than the receive queue can take.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exchange.h"

#include "ethernet.h"

#define QUIET_MS 500   /* without progress: the packets that are missing are lost */
#define NAP_NS	 50000 /* between two polls */

struct et_pair {
	struct ex_conn conn;
	uint64_t told;	/* receiver: number in the last message */
	uint64_t known; /* sender: number of packets that have come */
};

/* The sender's options, and its MAC address. */
static int exchange(struct et_pair *p, struct et_options *opt, const uint8_t mac[6],
		    uint8_t peer[6])
{
	struct ex_msg m = { .type = EX_MSG_SETUP };

	memcpy(m.text, mac, 6);
	if (opt->server) {
		m.arg[0] = opt->packets;
		m.arg[1] = opt->size;
	} else {
		m.arg[0] = opt->slots;
	}
	if (ex_msg_send(&p->conn, &m) ||
	    ex_msg_recv(&p->conn, &m, EX_MSG_SETUP, NULL, "for its options"))
		return -1;
	memcpy(peer, m.text, 6);
	if (opt->server) {
		opt->slots = m.arg[0];
		return 0;
	}
	opt->packets = m.arg[0];
	opt->size = m.arg[1];
	if (!m.arg[0] || m.arg[0] > ET_PACKETS_MAX || m.arg[1] < ET_BYTES_MIN ||
	    m.arg[1] > ET_BYTES_MAX)
		return ex_error("the sender has wrong options: %u packets of %u bytes", m.arg[0],
				m.arg[1]);
	return 0;
}

int et_pair_open(struct et_pair **pair, struct et_options *opt, const char *program,
		 const uint8_t mac[6], uint8_t peer[6])
{
	const struct ex_options at = { .server = opt->server,
				       .tcp_port = opt->tcp_port,
				       .timeout_s = opt->timeout_s };
	struct et_pair *p = calloc(1, sizeof(*p));

	*pair = p;
	if (!p)
		return ex_error("no memory");
	p->conn.sock = -1;
	if (opt->server ? ex_connect(&p->conn, &at) : ex_accept(&p->conn, &at))
		return -1;
	return ex_hello(&p->conn, program) || exchange(p, opt, mac, peer) ? -1 : 0;
}

void et_pair_failed(struct et_pair *p)
{
	if (p)
		ex_msg_failed(&p->conn);
}

void et_pair_close(struct et_pair *p)
{
	if (p)
		ex_disconnect(&p->conn);
	free(p);
}

static int tell(struct et_pair *p, enum ex_msg_type type, uint64_t num)
{
	const struct ex_msg m = { .type = type, .num = num };

	return ex_msg_send(&p->conn, &m);
}

/* ---- receiver ---- */

int et_pair_tell_ready(struct et_pair *p)
{
	return tell(p, EX_MSG_READY, 0);
}

int et_pair_progress(struct et_pair *p, uint64_t packets)
{
	if (packets == p->told)
		return 0;
	p->told = packets;
	return tell(p, EX_MSG_PROGRESS, packets);
}

int et_pair_is_done(struct et_pair *p)
{
	struct ex_msg m;
	int rc = ex_msg_poll(&p->conn, &m);

	if (rc == 1 && m.type != EX_MSG_DONE)
		return ex_error("unexpected message %u of the sender", m.type);
	return rc;
}

/* The account does not fit into the arguments of one message. */
int et_pair_send_account(struct et_pair *p, const struct et_account *a)
{
	const uint64_t num[] = { a->received, a->out_of_buffer, a->repeated, a->changed,
				 a->bad_sums };
	size_t i;

	for (i = 0; i < sizeof(num) / sizeof(num[0]); i++)
		if (tell(p, EX_MSG_VERDICT, num[i]))
			return -1;
	return 0;
}

/* ---- sender ---- */

int et_pair_await_ready(struct et_pair *p)
{
	struct ex_msg m;

	return ex_msg_recv(&p->conn, &m, EX_MSG_READY, NULL, "for its queue");
}

int et_pair_await(struct et_pair *p, uint64_t sent)
{
	const struct timespec nap = { 0, NAP_NS };
	struct et_quiet quiet = { 0 };
	struct ex_msg m;
	int rc;

	while (p->known < sent && !et_is_quiet(&quiet, p->known, QUIET_MS)) {
		rc = ex_msg_poll(&p->conn, &m);
		if (rc < 0 || ex_waits_end())
			return rc < 0 ? -1 : ex_error("interrupted");
		if (rc && m.type != EX_MSG_PROGRESS)
			return ex_error("unexpected message %u of the receiver", m.type);
		if (rc)
			p->known = m.num;
		else
			nanosleep(&nap, NULL);
	}
	return 0;
}

int et_pair_tell_done(struct et_pair *p)
{
	return tell(p, EX_MSG_DONE, 0);
}

int et_pair_take_account(struct et_pair *p, struct et_account *a)
{
	uint64_t *const num[] = { &a->received, &a->out_of_buffer, &a->repeated, &a->changed,
				  &a->bad_sums };
	struct ex_msg m = { .type = EX_MSG_PROGRESS };
	size_t i;

	for (i = 0; i < sizeof(num) / sizeof(num[0]);) {
		if (ex_msg_recv(&p->conn, &m, 0, NULL, "for its account"))
			return -1;
		if (m.type == EX_MSG_VERDICT)
			*num[i++] = m.num;
		else if (m.type != EX_MSG_PROGRESS)
			return ex_error("unexpected message %u of the receiver", m.type);
	}
	return 0;
}
