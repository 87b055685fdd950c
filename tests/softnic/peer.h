/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* What the engine knows about the NICs of other processes. Included by eng.h. */
#ifndef SOFTNIC_PEER_H
#define SOFTNIC_PEER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

struct sn_eng;
struct sn_peer;
struct sn_query;

/* ipid.c */
#define SN_ID_PEERS 64u

struct sn_id_peer {
	struct in6_addr ip;
	bool zero; /* its packets have IPv4 identification 0 */
};

/* peer.c */
struct sn_peers {
	int fd;			  /* -1: none */
	struct sn_peer *list;	  /* peers whose answers this NIC waits for */
	struct sn_query *queries; /* queries of peers, allocated at the first one */
	unsigned nqueries;	  /* to be answered at the end of this pass */
	uint64_t next;		  /* time at which the socket is read again */
};

enum sn_peer_state {
	SN_PEER_UNKNOWN, /* no software NIC of this network namespace, or not found yet */
	SN_PEER_BUSY,	 /* it lives, and has not handled all packets */
	SN_PEER_HANDLED, /* it has handled all packets that were sent until `since` */
	SN_PEER_GONE,	 /* its process has ended or closed its NIC */
};

void sn_peers_open(struct sn_eng *e);
void sn_peers_close(struct sn_eng *e);
/* Returns the peer with an address, to be released by sn_peer_put(). NULL: time decides about it.
 * sn_peer_put() and sn_peer_ask() accept NULL. */
struct sn_peer *sn_peer_get(struct sn_eng *e, const struct in6_addr *ip);
void sn_peer_put(struct sn_eng *e, struct sn_peer *p);
/* Call it again while the state is SN_PEER_BUSY. */
enum sn_peer_state sn_peer_ask(struct sn_eng *e, struct sn_peer *p, uint64_t since);
/* Logs once that the peer is gone, and what follows. */
void sn_peer_report(struct sn_peer *p, const char *what);
/* sn_peer_leave() tells another NIC that this one closes its Ethernet port; there, sn_peer_left()
 * then returns true until the port answers a later request. */
void sn_peer_leave(struct sn_eng *e, const struct in6_addr *ip);
void sn_peer_opened(struct sn_peer *p, uint64_t asked); /* p NULL: nothing */
bool sn_peer_left(const struct sn_peer *p);
void sn_peers_poll(struct sn_eng *e); /* reads queries and answers */
void sn_peers_answer(
	struct sn_eng *e); /* call it when all packets before the queries are handled */

/* clock.c: sn_eng_clock() sets e->now at the start of a pass that was intended to start at `due`.
 * sn_awake() is the time that timeouts count: without the times for which the NIC thread had no
 * processor. */
void sn_eng_clock(struct sn_eng *e, uint64_t due);
uint64_t sn_awake(const struct sn_eng *e);

#endif
