/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The wire of raw Ethernet: the frame pool, transmission with delivery to this process
 * and to other hosts, reception, and the port's life. A frame that an SQ sends is
 * counted once; then each copy of it ends in one of these ways: it is lost
 * (eth_tx_lost, injected), it fails (eth_tx_failed), or it is sent. eth_sock.c carries
 * frames as VXLAN packets.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "eth_wire.h"

#define UNREAD_MAX 1024u /* batches that are counted before the socket is closed */
#define LOCAL_PASS 256u	 /* frames to this process that one pass delivers */

/* ---- frames ---- */

void sn_list_init(struct sn_frame_list *list)
{
	list->head = NULL;
	list->tail = &list->head;
	list->n = 0;
}

void sn_list_push(struct sn_frame_list *list, struct sn_frame *f)
{
	f->next = NULL;
	*list->tail = f;
	list->tail = &f->next;
	list->n++;
}

struct sn_frame *sn_list_pop(struct sn_frame_list *list)
{
	struct sn_frame *f = list->head;

	if (!f)
		return NULL;
	list->head = f->next;
	if (!list->head)
		list->tail = &list->head;
	list->n--;
	return f;
}

struct sn_frame *sn_frame_get(struct sn_eng *e)
{
	struct sn_eth_port *port = e->eth;
	struct sn_frame *f;

	if (!port)
		return NULL;
	f = port->free;
	if (f) {
		port->free = f->next;
		port->nfree--;
	} else {
		f = port->frames < SN_ETH_FRAMES ? malloc(sizeof(*f)) : NULL;
		port->frames += f != NULL;
	}
	if (f)
		memset(f, 0, offsetof(struct sn_frame, data));
	return f;
}

/* Keeps up to a batch of free frames. The port may be gone in a forked child. */
void sn_frame_put(struct sn_eng *e, struct sn_frame *f)
{
	struct sn_eth_port *port = e->eth;

	if (port && port->nfree < 2 * SN_ETH_BATCH) {
		f->next = port->free;
		port->free = f;
		port->nfree++;
		return;
	}
	if (port)
		port->frames--;
	free(f);
}

struct sn_frame *sn_frame_copy(struct sn_eng *e, const struct sn_frame *f)
{
	struct sn_frame *copy = sn_frame_get(e);

	if (copy)
		memcpy(copy, f, offsetof(struct sn_frame, data) + f->len);
	return copy;
}

/* ---- transmission ---- */

static void send_copy(struct sn_eng *e, struct sn_frame *f, struct sn_eth_host *host)
{
	static const struct in6_addr none;

	if (host && e->dev->cfg.eth_pause)
		sn_pause_sent(e, f, host);
	e->dev->stats.eth_tx_copies++;
	if (!f) {
		e->dev->stats.eth_tx_failed++;
		return;
	}
	f->peer = host ? host->ip : none;
	sn_fault_frame(e, f);
}

/* Sends a frame to this process. It owns f, unless the frame goes to other hosts as well. */
static void send_local(struct sn_eng *e, struct sn_frame *f, bool copy)
{
	if (copy)
		f = sn_frame_copy(e, f);
	if (f)
		f->local = true;
	send_copy(e, f, NULL);
}

static void trace_sent(const struct sn_frame *f, const struct sn_eth_route *r)
{
	char fate[48];

	snprintf(fate, sizeof(fate), ", to %u hosts%s", r->n, r->local ? " and this process" : "");
	sn_trace_frame("tx", f, fate);
}

int sn_eth_transmit(struct sn_eng *e, struct sn_frame *f)
{
	struct sn_stats *st = &e->dev->stats;
	struct sn_eth_route r;
	unsigned i;
	int may;

	if (!e->eth) {
		sn_frame_put(e, f);
		return 1;
	}
	f->local = f->corrupt = f->held = false;
	sn_eth_find_route(e, f, &r);
	may = e->dev->cfg.eth_pause ? sn_pause_may_send(e, f, &r) : 1;
	if (may <= 0)
		return may;
	if (e->dev->cfg.trace)
		trace_sent(f, &r);
	st->eth_tx_frames++;
	st->eth_tx_bytes += f->len;
	if (r.local)
		send_local(e, f, r.n);
	for (i = 0; i < r.n; i++)
		send_copy(e, i + 1 < r.n ? sn_frame_copy(e, f) : f, r.host[i]);
	st->eth_no_peer += !r.local && !r.n && !r.dropped;
	if (!r.local && !r.n)
		sn_frame_put(e, f);
	return 1;
}

static void fail(struct sn_eng *e, struct sn_frame *f, const char *why)
{
	e->dev->stats.eth_tx_failed += !f->control;
	if (!f->control)
		sn_pause_dropped(e, 1, why);
	sn_frame_put(e, f);
}

void sn_eth_emit(struct sn_eng *e, struct sn_frame *f)
{
	struct sn_eth_port *port = e->eth;

	sn_vxlan_header(e, f);
	if (f->local) {
		sn_eth_pcap(e, f, true);
		if (port->local.n >= SN_ETH_LOCAL_MAX)
			fail(e, f, "the process does not take its own frames");
		else
			sn_list_push(&port->local, f);
		return;
	}
	if (f->corrupt && port->packet) { /* a hardware receiver would drop it */
		e->dev->stats.eth_tx_lost++;
		sn_frame_put(e, f);
		return;
	}
	if (port->ntx == SN_ETH_BATCH)
		sn_eth_flush(e);
	if (port->ntx == SN_ETH_BATCH) {
		fail(e, f, "the kernel takes no more packets");
		return;
	}
	if (f->corrupt)
		sn_fault_flip(e, f);
	sn_eth_pcap(e, f, true);
	port->txq[port->ntx++] = f;
}

/* Frames for which the socket has no room stay in txq, until sn_eth_emit() finds it full. Other
 * frames that the kernel refuses are dropped. */
void sn_eth_flush(struct sn_eng *e)
{
	struct sn_eth_port *port = e->eth;
	unsigned done = 0, end;
	int n;

	if (!port || !port->ntx)
		return;
	while (done < port->ntx) {
		n = sn_sock_send(e, done);
		if (n == -EAGAIN)
			break;
		if (n <= 0) {
			fail(e, port->txq[done++], strerror(-n));
			continue;
		}
		for (end = done + (unsigned)n; done < end; done++)
			sn_frame_put(e, port->txq[done]);
	}
	port->ntx -= done;
	memmove(port->txq, port->txq + done, port->ntx * sizeof(port->txq[0]));
}

/* ---- reception ---- */

static bool poll_local(struct sn_eng *e)
{
	bool pause = e->dev->cfg.eth_pause;
	struct sn_frame *f;
	unsigned n = 0;

	for (; n < LOCAL_PASS && (f = e->eth->local.head); n++) {
		if (sn_eth_receive(e, f, pause) == SN_ETH_FULL) {
			e->dev->stats.eth_held += !f->held;
			f->held = true;
			break;
		}
		sn_frame_put(e, sn_list_pop(&e->eth->local));
	}
	return n;
}

void sn_eth_arrived(struct sn_eng *e, struct sn_frame *f)
{
	bool vxlan = !e->eth->packet;

	if (vxlan && !f->corrupt)
		sn_eth_learn(e, f);
	if (vxlan && !f->corrupt && sn_pause_control(e, f)) {
		sn_frame_put(e, f);
	} else if (e->eth->closing) {
		e->dev->stats.eth_rx_missed++;
		sn_frame_put(e, f);
	} else if (vxlan) {
		sn_pause_receive(e, f);
	} else {
		sn_eth_receive(e, f, false);
		sn_frame_put(e, f);
	}
}

bool sn_eth_poll(struct sn_eng *e)
{
	bool any;

	if (!e->eth)
		return false;
	any = sn_fault_frames_due(e, false);
	any |= poll_local(e);
	any |= sn_pause_deliver(e);
	any |= sn_sock_poll(e);
	if (e->eth->ndue)
		sn_pause_grant(e);
	return any;
}

bool sn_eth_busy(const struct sn_eng *e)
{
	const struct sn_eth_port *port = e->eth;

	return port && (port->local.n || port->waiting.n || port->delayed || port->held ||
			port->ntx || port->more);
}

bool sn_eth_more(const struct sn_eng *e)
{
	return e->eth && e->eth->more;
}

/* ---- the port ---- */

int sn_eth_fd(const struct sn_eng *e)
{
	return e->eth ? e->eth->fd : -1;
}

static int open_port(struct sn_eng *e)
{
	int err;

	e->eth->packet = e->dev->cfg.eth_if[0];
	err = sn_eth_rx_open(e);
	if (err)
		return err;
	e->eth->fd = e->eth->packet ? sn_packet_open(e) : sn_vxlan_open(e);
	if (e->eth->fd < 0)
		return e->eth->fd;
	sn_pause_open(e);
	return 0;
}

int sn_eth_open(struct sn_eng *e)
{
	int err;

	if (e->eth)
		return 0;
	if (e->dead)
		return -ENODEV;
	e->eth = calloc(1, sizeof(*e->eth));
	if (!e->eth)
		return -ENOMEM;
	e->eth->fd = -1;
	sn_list_init(&e->eth->local);
	sn_list_init(&e->eth->waiting);
	sn_eth_hosts_init(e);
	err = open_port(e);
	if (!err)
		return 0;
	sn_message("cannot open the Ethernet port: %s", strerror(-err));
	sn_eth_close(e);
	return err;
}

static void free_frames(struct sn_eth_port *port)
{
	struct sn_frame *f, *next;

	for (f = port->free; f; f = next) {
		next = f->next;
		free(f);
	}
}

/* Frames that wait are sent now, or counted. */
static void empty_port(struct sn_eng *e)
{
	struct sn_eth_port *port = e->eth;
	struct sn_frame *f;
	unsigned i;

	port->closing = true;
	for (i = 0; i < UNREAD_MAX && sn_sock_poll(e); i++)
		;
	sn_fault_frames_due(e, true);
	sn_eth_flush(e);
	for (i = 0; i < port->ntx; i++)
		fail(e, port->txq[i], "the port is closed");
	while ((f = sn_list_pop(&port->local)))
		fail(e, f, "the port is closed");
	for (; (f = sn_list_pop(&port->waiting)); sn_frame_put(e, f))
		e->dev->stats.eth_rx_missed++;
	sn_sock_missed(e);
}

/* In a forked child, the parent's thread may have been changing the lists at the time of the fork.
 * They are not touched then. */
void sn_eth_close(struct sn_eng *e)
{
	struct sn_eth_port *port = e->eth;

	if (!port)
		return;
	if (!e->dead && port->fd >= 0) {
		empty_port(e);
		sn_pause_close(e);
	}
	if (port->fd >= 0)
		close(port->fd);
	if (!e->dead) {
		sn_eth_hosts_close(e);
		sn_eth_rx_close(e);
		free_frames(port);
		free(port);
	} else {
		e->eth_left = port; /* LeakSanitizer finds it here */
	}
	e->eth = NULL;
}
