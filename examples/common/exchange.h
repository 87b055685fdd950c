/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The exchange of server and client by TCP: the connection (exchange.c) and the messages on it
 * (message.c). The payload itself is sent by RDMA.
 */
#ifndef EXAMPLES_EXCHANGE_H
#define EXAMPLES_EXCHANGE_H

#include <stdint.h>
#include <sys/types.h>

#include "common.h"

/* ---- exchange.c ---- */
struct ex_conn {
	int sock;
	const char *peer;	/* "server" or "client", for messages */
	char where[128];	/* its address, for messages */
	unsigned int timeout_s; /* limit of each wait */
	bool peer_failed;	/* it has ended: do not report our errors to it */
	size_t received;	/* bytes of an incomplete message in partial */
	uint8_t partial[512];
};

/* ex_waits_end(): Ctrl-C or SIGTERM occurred as often as ex_set_patience() set, at first once. Then
 * all waits end. */
bool ex_waits_end(void);
void ex_set_patience(int num_signals);
int64_t ex_now_ms(void);

/* All return 0 or, after a message, -1. ex_connect() retries until the server listens. */
int ex_accept(struct ex_conn *c, const struct ex_options *opt);
int ex_connect(struct ex_conn *c, const struct ex_options *opt);
void ex_disconnect(struct ex_conn *c); /* accepts a socket of -1 */
/* Returns 0, EX_GONE if the peer has closed the connection, or -1 after a message. */
#define EX_GONE (-3)
int ex_send(struct ex_conn *c, const void *buf, size_t len);
int ex_recv(struct ex_conn *c, void *buf, size_t len, const char *what);
/* Returns the number of bytes, 0 after the end of the connection, EX_NOTHING if deadline is 0 and
 * there are none, or -1 after a message. */
#define EX_NOTHING (-2)
ssize_t ex_recv_some(struct ex_conn *c, void *buf, size_t len, int64_t deadline, const char *what);
int ex_vanished(const struct ex_conn *c); /* prints that the connection ended; returns -1 */

/* ---- message.c ---- */
/* The first exchange: both sides send who they are. Refuses a foreign service, another program and
 * another version. */
int ex_hello(struct ex_conn *c, const char *program);

/* The client drives: SETUP, then START for each message size, then END. The letters are the side
 * that sends: client, server. */
enum ex_msg_type {
	EX_MSG_SETUP = 1, /* c: arg = queues, threads, blocks, ping-pong; num = bytes of data */
	EX_MSG_PEERS,	  /* c, s: followed by the struct ex_peer of each queue pair */
	EX_MSG_CONNECTED, /* c, s: the queue pairs are connected */
	EX_MSG_START,	  /* c: a message size; arg = size, window */
	EX_MSG_READY,	  /* s: the memory is prepared */
	EX_MSG_CHUNK,	  /* c: launch, too; num = first iteration, arg = iterations, batch */
	EX_MSG_LAUNCHED,  /* s: the kernel was launched */
	EX_MSG_PROGRESS,  /* c: the transfer goes on */
	EX_MSG_DONE,	  /* c: the transfer is complete; num = iterations of each thread */
	EX_MSG_VERDICT,	  /* s: arg = data is right; text */
	EX_MSG_STOP,	  /* s: Ctrl-C: the client ends after its chunk */
	EX_MSG_END,	  /* c: no more message sizes; arg = the client found no error */
	EX_MSG_FAILED,	  /* c, s: this side ends; text = its error message */
};

struct ex_msg {
	enum ex_msg_type type;
	uint32_t arg[4];
	uint64_t num;
	char text[200];
};

int ex_msg_send(struct ex_conn *c, const struct ex_msg *m);
/* Receives a message. FAILED is printed and returns -1. wanted: type that must come; STOP may
 * precede it if stop is not NULL and is stored there. 0: any type. */
int ex_msg_recv(struct ex_conn *c, struct ex_msg *m, enum ex_msg_type wanted, bool *stop,
		const char *what);
/* Does not wait. Returns 1 with a message, 0 without, or -1 after a message to the user. */
int ex_msg_poll(struct ex_conn *c, struct ex_msg *m);
/* Sends FAILED with the last message of ex_error(), unless that came from the peer. */
void ex_msg_failed(struct ex_conn *c);
int ex_msg_swap_peers(struct ex_conn *c, const struct ex_endpoint *ep, struct ex_peer *peers);

#endif
