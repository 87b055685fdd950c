/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The Ethernet port: types and functions that only the wire of raw Ethernet uses
 * (eth_wire.c, eth_sock.c, eth_packet.c, eth_peers.c, eth_pause.c, and the faults of
 * frames in fault.c). Frames of struct sn_frame are in one list or array at a time.
 */
#ifndef SOFTNIC_ETH_WIRE_H
#define SOFTNIC_ETH_WIRE_H

#include <sys/socket.h>

#include "eng.h"
#include "eth.h"

#define SN_VXLAN_PORT	 4789u
#define SN_ETH_BATCH	 32u   /* frames of one system call */
#define SN_ETH_FRAMES	 4096u /* maximum number of frames in memory */
#define SN_ETH_LOCAL_MAX 1024u /* frames that wait for delivery in this process */
#define SN_ETH_HOSTS	 64u   /* other hosts that the port knows */
#define SN_ETH_MACS	 256u  /* learned source addresses */

struct sn_frame_list {
	struct sn_frame *head, **tail;
	unsigned n;
};

/*
 * Flow control (--eth-pause), see eth_pause.c. Frames are counted by the socket memory that they
 * need at most, their cost. Counts are cumulative.
 */
struct sn_pause_tx { /* what this port may send to a host */
	uint64_t sent, limit;
	uint64_t room;	 /* limit - sent at the last grant */
	uint64_t until;	 /* time at which the last grant ends */
	uint64_t asked;	 /* sn_awake() at the first request since the last answer; 0: none */
	uint64_t again;	 /* time of the next request */
	uint64_t period; /* between requests, ns */
	bool dead;	 /* did not answer; its frames are dropped */
	bool gone;	 /* dead, because its process has ended */
};

struct sn_pause_rx {	 /* what a host may send to this port */
	bool active;	 /* it sent a request */
	bool due;	 /* its last request was not granted yet */
	uint64_t taken;	 /* cost of its frames that were delivered, dropped or lost */
	uint64_t queued; /* cost of its frames in sn_eth_port.waiting */
	uint64_t granted;
	uint64_t until;	       /* time at which the last grant ends; later than at the host */
	uint64_t nonce, stamp; /* of its last request */
};

/* Another host of the underlay: one of --eth-peers, or learned. */
struct sn_eth_host {
	struct in6_addr ip;   /* unspecified: the entry is free */
	bool fixed;	      /* in --eth-peers; never replaced */
	bool heard;	      /* sent a frame; receives broadcasts */
	uint64_t used;	      /* time of the last frame from or to it */
	struct sn_peer *peer; /* set at the first request */
	struct sn_pause_tx tx;
	struct sn_pause_rx rx;
};

struct sn_eth_mac {
	uint8_t mac[6];
	struct in6_addr ip; /* unspecified: the entry is free */
	uint64_t seen;
};

struct sn_eth_port {
	int fd;
	bool packet;	      /* fd is a packet socket (--eth-if) */
	struct sn_eth_rx *rx; /* receive buffers of eth_sock.c */
	struct sn_frame *free;
	unsigned frames, nfree; /* allocated; of these, in the list `free` */
	struct sn_frame *txq[SN_ETH_BATCH];
	unsigned ntx;
	uint32_t run_max;		 /* larger packets are sent one per message */
	struct sn_frame_list local;	 /* sent by this process to itself */
	struct sn_frame_list waiting;	 /* received; the first one waits for a receive WQE */
	struct sn_frame *delayed, *held; /* injected faults, as in struct sn_eng */
	struct sn_eth_host hosts[SN_ETH_HOSTS];
	struct sn_eth_mac macs[SN_ETH_MACS];
	uint32_t missed;	    /* value of the socket's drop counter when last read */
	uint64_t next_missed;	    /* time at which it is read again */
	uint64_t dropped, reported; /* see sn_pause_dropped() */
	uint64_t window;	    /* cost of the frames that all hosts together may send */
	uint64_t nonce;		    /* identifies the requests of this port */
	unsigned ndue;		    /* hosts whose grant is due */
	bool closing;		    /* frames that arrive are only counted */
	bool more;		    /* the last batch was full; the socket may have more */
};

/* Where a frame goes. host[0] is NULL with --eth-if. */
struct sn_eth_route {
	bool local;
	unsigned n, dropped; /* dropped: dead hosts that were removed */
	struct sn_eth_host *host[SN_ETH_HOSTS];
};

/* eth_wire.c */
void sn_list_init(struct sn_frame_list *list);
void sn_list_push(struct sn_frame_list *list, struct sn_frame *f);
struct sn_frame *sn_list_pop(struct sn_frame_list *list);
struct sn_frame *sn_frame_copy(struct sn_eng *e, const struct sn_frame *f); /* NULL: no memory */
void sn_eth_emit(struct sn_eng *e, struct sn_frame *f); /* sends f after fault.c */
/* A frame arrived: its VXLAN header was checked and removed. Takes ownership. */
void sn_eth_arrived(struct sn_eng *e, struct sn_frame *f);

/* eth_sock.c */
int sn_vxlan_open(struct sn_eng *e); /* returns a socket or -errno */
bool sn_sock_poll(struct sn_eng *e);
/* Sends frames of txq from `from` on. Returns how many the kernel took, or -errno. */
int sn_sock_send(struct sn_eng *e, unsigned from);
void sn_vxlan_header(const struct sn_eng *e, struct sn_frame *f);
void sn_sock_missed(struct sn_eng *e); /* counts frames that found the socket's buffer full */
int sn_eth_rx_open(struct sn_eng *e);  /* 0 or -errno: allocates receive buffers */
void sn_eth_rx_close(struct sn_eng *e);

/* eth_packet.c */
#define SN_PACKET_CONTROL 64u	      /* bytes of control messages with a received frame */
int sn_packet_open(struct sn_eng *e); /* returns a socket or -errno */
/* Completes a frame of `len` bytes that was received. Returns false if it is dropped. */
bool sn_packet_take(struct sn_eng *e, struct msghdr *m, uint32_t len, struct sn_frame *f);

/* eth_peers.c */
void sn_eth_hosts_init(struct sn_eng *e);
struct sn_eth_host *sn_eth_host(struct sn_eng *e, const struct in6_addr *ip); /* finds or adds */
/* Returns NULL if the host is unknown. */
struct sn_eth_host *sn_eth_known_host(struct sn_eng *e, const struct in6_addr *ip);
void sn_eth_hosts_close(struct sn_eng *e);
void sn_eth_learn(struct sn_eng *e, const struct sn_frame *f);
void sn_eth_find_route(struct sn_eng *e, const struct sn_frame *f, struct sn_eth_route *r);

/* eth_pause.c */
void sn_pause_open(struct sn_eng *e);
/* Returns 1 if all hosts of a route and this process have room for the frame. Hosts that do not
 * answer are removed from the route, and counted. Otherwise as sn_eth_transmit(). */
int sn_pause_may_send(struct sn_eng *e, const struct sn_frame *f, struct sn_eth_route *r);
void sn_pause_close(struct sn_eng *e);
void sn_pause_sent(struct sn_eng *e, const struct sn_frame *f, struct sn_eth_host *h);
bool sn_pause_control(struct sn_eng *e, const struct sn_frame *f); /* true: a control frame */
void sn_pause_receive(struct sn_eng *e, struct sn_frame *f);	   /* takes ownership */
bool sn_pause_deliver(struct sn_eng *e); /* delivers frames that waited; true if any */
void sn_pause_grant(struct sn_eng *e);	 /* sends the grants that are due */
/* Logs that n frames were dropped, if --eth-pause promises that none is lost. */
void sn_pause_dropped(struct sn_eng *e, uint64_t n, const char *why);

/* fault.c: sn_fault_frame() takes ownership of f */
void sn_fault_frame(struct sn_eng *e, struct sn_frame *f);
void sn_fault_control(struct sn_eng *e, struct sn_frame *f); /* only loss and delay */
bool sn_fault_frames_due(struct sn_eng *e, bool all);	     /* all: do not wait for the due time */
void sn_fault_flip(struct sn_eng *e, struct sn_frame *f);

#endif
