/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The messages of server and client: a hello of both sides, which identifies program and version,
 * then messages of fixed size. Numbers are sent in network byte order.
 */
#include <ctype.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "exchange.h"

#define PROTOCOL 3 /* changes with the messages and the data pattern */

struct hello {
	char magic[8];
	uint32_t protocol, zero;
	char program[48], version[32];
};

static const char magic[8] = "gdaki-ex";

struct wire_msg {
	uint32_t type, arg[5];
	uint64_t num;
	char text[200];
};

_Static_assert(sizeof(struct wire_msg) <= sizeof(((struct ex_conn *)0)->partial),
	       "partial is small");

/* ---- hello ---- */

/* Writes bytes that a foreign service sent as text. */
static void quote(const uint8_t *bytes, size_t len, char *out, size_t size)
{
	size_t at = 0;

	for (size_t i = 0; i < len && at + 5 < size; i++)
		at += (size_t)snprintf(out + at, size - at, isprint(bytes[i]) ? "%c" : "\\x%02x",
				       bytes[i]);
	out[at] = 0;
}

static int foreign(const struct ex_conn *c, const char *program, const uint8_t *bytes, size_t len)
{
	char text[64] = "";

	quote(bytes, len, text, sizeof(text));
	if (!len)
		return ex_error("the %s at %s closed the connection at once: it is another "
				"service, not %s, or it has failed",
				c->peer, c->where, program);
	return ex_error("the %s at %s is another service, not %s: it sent \"%s\"", c->peer,
			c->where, program, text);
}

/* Receives a hello. Bytes that no hello begins with end the wait at once. */
static int recv_hello(struct ex_conn *c, const char *program, struct hello *h)
{
	int64_t deadline = ex_now_ms() + c->timeout_s * 1000ll;
	uint8_t *bytes = (uint8_t *)h;
	size_t got = 0;

	while (got < sizeof(*h)) {
		size_t known;
		ssize_t n = ex_recv_some(c, bytes + got, sizeof(*h) - got, deadline,
					 "for its hello (is it another service?)");

		if (n < 0)
			return -1;
		got += (size_t)n;
		known = got < sizeof(magic) ? got : sizeof(magic);
		if (!n || memcmp(bytes, magic, known))
			return foreign(c, program, bytes, got);
	}
	h->program[sizeof(h->program) - 1] = 0;
	h->version[sizeof(h->version) - 1] = 0;
	return 0;
}

int ex_hello(struct ex_conn *c, const char *program)
{
	struct hello h = { .protocol = htobe32(PROTOCOL) };

	memcpy(h.magic, magic, sizeof(magic));
	snprintf(h.program, sizeof(h.program), "%s", program);
	snprintf(h.version, sizeof(h.version), "%s", gdk_version());
	if (ex_send(c, &h, sizeof(h)) == -1 || recv_hello(c, program, &h))
		return -1;
	if (be32toh(h.protocol) != PROTOCOL || strcmp(h.version, gdk_version()))
		return ex_error(
			"the %s at %s is of gdaki %s (protocol %u), this program of gdaki %s "
			"(protocol %u): use the same version on both sides",
			c->peer, c->where, h.version, be32toh(h.protocol), gdk_version(), PROTOCOL);
	if (strcmp(h.program, program))
		return ex_error("the %s at %s is %s, this program is %s: use the same program on "
				"both sides",
				c->peer, c->where, h.program, program);
	return 0;
}

/* ---- messages ---- */

static void decode(const struct wire_msg *w, struct ex_msg *m)
{
	*m = (struct ex_msg){ .type = (enum ex_msg_type)be32toh(w->type), .num = be64toh(w->num) };
	for (int i = 0; i < 4; i++)
		m->arg[i] = be32toh(w->arg[i]);
	memcpy(m->text, w->text, sizeof(m->text) - 1);
}

static int peer_failed(struct ex_conn *c, const struct ex_msg *m)
{
	c->peer_failed = true;
	return ex_error("the %s failed: %s", c->peer, m->text);
}

/* Completes a message in c->partial. Returns 1 if it is complete, 0 if not, otherwise -1. */
static int collect(struct ex_conn *c, struct ex_msg *m, int64_t deadline, const char *what)
{
	struct wire_msg w;
	ssize_t n = ex_recv_some(c, c->partial + c->received, sizeof(w) - c->received, deadline,
				 what);

	if (n == EX_NOTHING)
		return 0;
	if (n < 0)
		return -1;
	if (!n) {
		if (!c->peer_failed)
			ex_vanished(c);
		c->peer_failed = true;
		return -1;
	}
	c->received += (size_t)n;
	if (c->received < sizeof(w))
		return 0;
	c->received = 0;
	memcpy(&w, c->partial, sizeof(w));
	decode(&w, m);
	return m->type == EX_MSG_FAILED ? peer_failed(c, m) : 1;
}

/* Sends bytes. If the peer has closed the connection, its last message may say why. */
static int send_or_explain(struct ex_conn *c, const void *buf, size_t len)
{
	struct ex_msg m;
	int rc = ex_send(c, buf, len);

	if (rc != EX_GONE)
		return rc;
	while ((rc = collect(c, &m, 0, "")) > 0)
		; /* earlier messages */
	if (rc == 0 && !c->peer_failed)
		ex_vanished(c);
	c->peer_failed = true;
	return -1;
}

int ex_msg_send(struct ex_conn *c, const struct ex_msg *m)
{
	struct wire_msg w = { .type = htobe32(m->type), .num = htobe64(m->num) };

	for (int i = 0; i < 4; i++)
		w.arg[i] = htobe32(m->arg[i]);
	memcpy(w.text, m->text, sizeof(w.text));
	return send_or_explain(c, &w, sizeof(w));
}

int ex_msg_poll(struct ex_conn *c, struct ex_msg *m)
{
	return collect(c, m, 0, "");
}

int ex_msg_recv(struct ex_conn *c, struct ex_msg *m, enum ex_msg_type wanted, bool *stop,
		const char *what)
{
	int64_t deadline = ex_now_ms() + c->timeout_s * 1000ll;

	for (;;) {
		int rc = collect(c, m, deadline, what);

		if (rc < 0)
			return -1;
		if (rc && m->type == EX_MSG_STOP && stop) {
			*stop = true;
			continue;
		}
		if (rc && wanted && m->type != wanted)
			return ex_error("unexpected message %u of the %s, instead of %u", m->type,
					c->peer, wanted);
		if (rc)
			return 0;
	}
}

void ex_msg_failed(struct ex_conn *c)
{
	struct ex_msg m = { .type = EX_MSG_FAILED };

	if (c->sock < 0 || c->peer_failed)
		return;
	snprintf(m.text, sizeof(m.text), "%s", ex_last_error());
	c->peer_failed = true; /* do not try again */
	c->timeout_s = 1;
	(void)ex_msg_send(c, &m);
}

/* ---- peers ---- */

struct wire_peer { /* struct ex_peer, big-endian */
	uint32_t qpn, companion_qpn, psn, lid, mtu, rkey, reads, zero;
	uint64_t addr;
	uint8_t gid[16];
};

static void encode_peer(const struct ex_peer *p, struct wire_peer *w)
{
	*w = (struct wire_peer){
		.qpn = htobe32(p->qpn),
		.companion_qpn = htobe32(p->companion_qpn),
		.psn = htobe32(p->psn),
		.lid = htobe32(p->lid),
		.mtu = htobe32(p->mtu),
		.rkey = htobe32(p->rkey),
		.reads = htobe32(p->reads),
		.addr = htobe64(p->addr),
	};
	memcpy(w->gid, p->gid, sizeof(w->gid));
}

static void decode_peer(const struct wire_peer *w, struct ex_peer *p)
{
	*p = (struct ex_peer){
		.qpn = be32toh(w->qpn),
		.companion_qpn = be32toh(w->companion_qpn),
		.psn = be32toh(w->psn),
		.lid = be32toh(w->lid),
		.mtu = be32toh(w->mtu),
		.rkey = be32toh(w->rkey),
		.reads = be32toh(w->reads),
		.addr = be64toh(w->addr),
	};
	memcpy(p->gid, w->gid, sizeof(p->gid));
}

int ex_msg_swap_peers(struct ex_conn *c, const struct ex_endpoint *ep, struct ex_peer *peers)
{
	struct ex_msg m = { .type = EX_MSG_PEERS };
	struct wire_peer w;

	if (ex_msg_send(c, &m))
		return -1;
	for (uint32_t k = 0; k < ep->num_queues; k++) {
		struct ex_peer local;

		ex_queue_local(ep, k, &local);
		encode_peer(&local, &w);
		if (send_or_explain(c, &w, sizeof(w)))
			return -1;
	}
	if (ex_msg_recv(c, &m, EX_MSG_PEERS, NULL, "for its queue pairs"))
		return -1;
	for (uint32_t k = 0; k < ep->num_queues; k++) {
		if (ex_recv(c, &w, sizeof(w), "for its queue pairs"))
			return -1;
		decode_peer(&w, &peers[k]);
	}
	return 0;
}
