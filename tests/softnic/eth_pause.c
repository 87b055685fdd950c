/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Lossless flow control between software NICs (--eth-pause), in place of the pause frames
 * of hardware. A port sends a frame to a host only within the limit that the host
 * granted. It requests more before the limit is reached, and repeats unanswered requests.
 * The cost of all frames that a port has granted and not yet delivered never exceeds its
 * window: half of its socket buffer, at most WINDOW_MAX. A frame waits while its RQ has no
 * WQE, and delays the frames behind it.
 *
 * Requests and grants are Ethernet frames of a local experimental type. A request contains
 * the cost of all frames that were sent before it, so that lost frames are not counted as
 * outstanding, a nonce and a time stamp. The grant returns the last two. The sender uses a
 * grant for GRANT_NS from the time stamp on. The receiver takes back what is left after
 * RECLAIM_NS, which is longer.
 *
 * A host that is a NIC of this machine may need any time to answer, as long as its process lives
 * (peer.c). After that, a send queue whose frame has no other receiver is in error. The frames
 * for another host that did not answer for DEAD_NS, or whose NIC runs and has no Ethernet
 * port, are dropped.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "eth_wire.h"

#define WINDOW_MAX  (2u << 20) /* such that the frames fit into the pool */
#define OVERHEAD    1024u      /* memory of a packet in the kernel beside its data */
#define HEADERS	    56u	       /* IPv6, UDP and VXLAN */
#define MAX_COST    (2 * (SN_ETH_FRAME_MAX + HEADERS) + OVERHEAD)
#define GRANT_NS    500000000ull
#define RECLAIM_NS  1000000000ull
#define DEAD_NS	    5000000000ull /* a busy machine may stop a NIC's thread for seconds */
#define ASK_NS	    1000000ull	  /* first interval between requests; it doubles */
#define ASK_MAX_NS  50000000ull
#define WATCH_NS    100000000ull /* time without answer after which the host's process is watched */
#define RAN_NS	    1000000000ull /* a NIC that did not answer queries for this time does not run */
#define PROBE_NS    100000000ull  /* interval between requests to a dead host */
#define CONTROL_LEN 60u
#define ETHERTYPE   0x88b5u
#define MAGIC	    0x67706131u

enum { REQUEST = 1, GRANT = 2 };

/* A control frame after its Ethernet header; big-endian. */
enum { OFF_MAGIC = 14, OFF_KIND = 18, OFF_NONCE = 22, OFF_STAMP = 30, OFF_COUNT = 38 };

/* The destination of pause frames, which bridges do not forward. */
static const uint8_t control_mac[6] = { 0x01, 0x80, 0xc2, 0x00, 0x00, 0x01 };

static uint64_t cost_of(const struct sn_frame *f)
{
	return 2ull * (f->len + HEADERS) + OVERHEAD;
}

void sn_pause_open(struct sn_eng *e)
{
	struct sn_eth_port *port = e->eth;
	socklen_t len = sizeof(int);
	int size = 0;

	getsockopt(port->fd, SOL_SOCKET, SO_RCVBUF, &size, &len);
	port->window = (uint64_t)size / 2;
	if (port->window > WINDOW_MAX)
		port->window = WINDOW_MAX;
	if (port->window < MAX_COST)
		port->window = MAX_COST;
	if (getrandom(&port->nonce, sizeof(port->nonce), 0) != sizeof(port->nonce))
		port->nonce = sn_now();
}

/* count: REQUEST: tx.sent; GRANT: rx.granted */
static void send_control(struct sn_eng *e, struct sn_eth_host *h, uint32_t kind, uint64_t nonce,
			 uint64_t stamp, uint64_t count)
{
	struct sn_frame *f = sn_frame_get(e);

	if (!f)
		return; /* as if it were lost */
	f->control = true;
	f->peer = h->ip;
	f->len = CONTROL_LEN;
	memset(f->data, 0, CONTROL_LEN);
	memcpy(f->data, control_mac, 6);
	sn_mac_of_ip(&e->dev->cfg.ip, f->data + 6);
	f->data[12] = ETHERTYPE >> 8;
	f->data[13] = ETHERTYPE & 0xff;
	sn_put32(f->data + OFF_MAGIC, MAGIC);
	sn_put32(f->data + OFF_KIND, kind);
	sn_put64(f->data + OFF_NONCE, nonce);
	sn_put64(f->data + OFF_STAMP, stamp);
	sn_put64(f->data + OFF_COUNT, count);
	sn_fault_control(e, f);
}

/* ---- sender ---- */

static void ask(struct sn_eng *e, struct sn_eth_host *h)
{
	struct sn_pause_tx *tx = &h->tx;

	if (e->now < tx->again)
		return;
	if (!h->peer)
		h->peer = sn_peer_get(e, &h->ip);
	if (!tx->asked || e->now - tx->again > PROBE_NS) /* or there was nothing to send */
		tx->asked = sn_awake(e);
	tx->period = !tx->period		   ? ASK_NS
		     : 2 * tx->period < ASK_MAX_NS ? 2 * tx->period
						   : ASK_MAX_NS;
	tx->again = e->now + (tx->dead ? PROBE_NS : tx->period);
	send_control(e, h, REQUEST, e->eth->nonce, e->now, tx->sent);
}

static uint64_t room_of(struct sn_eng *e, const struct sn_pause_tx *tx)
{
	return e->now < tx->until && tx->limit > tx->sent ? tx->limit - tx->sent : 0;
}

/* Decides whether a host is dead that has not answered since tx->asked. */
static void judge(struct sn_eng *e, struct sn_eth_host *h)
{
	uint64_t silent = sn_awake(e) - h->tx.asked, ran = e->now - sn_min64(e->now, RAN_NS);
	char text[INET6_ADDRSTRLEN];

	if (h->tx.dead || !h->tx.asked || silent < WATCH_NS)
		return;
	switch (sn_peer_ask(e, h->peer, ran)) {
	case SN_PEER_GONE:
		h->tx.dead = true;
		h->tx.gone = !sn_peer_left(h->peer);
		sn_peer_report(h->peer, h->tx.gone
						? "failing send queues whose frames go to it alone"
						: "dropping frames that go to it");
		return;
	case SN_PEER_BUSY:
		return;
	default:
		h->tx.dead = silent > DEAD_NS;
	}
	if (!h->tx.dead)
		return;
	sn_addr_text(&h->ip, text);
	sn_message("dropping frames to %s, which did not answer requests of --eth-pause for %d s "
		   "(expected a software NIC with an Ethernet port)",
		   text, (int)(DEAD_NS / 1000000000ull));
}

/* Returns true if the host has room for the frame, or is dead. */
static bool has_room(struct sn_eng *e, const struct sn_frame *f, struct sn_eth_host *h)
{
	struct sn_pause_tx *tx = &h->tx;
	uint64_t room = room_of(e, tx);

	if (room < cost_of(f) + tx->room / 2 && (room < cost_of(f) || !tx->asked))
		ask(e, h);
	if (room >= cost_of(f))
		return true;
	judge(e, h);
	return tx->dead;
}

static void drop_dead(struct sn_eng *e, struct sn_eth_route *r)
{
	unsigned i, n = 0;

	for (i = 0; i < r->n; i++)
		if (!r->host[i] || !r->host[i]->tx.dead)
			r->host[n++] = r->host[i];
	e->dev->stats.eth_tx_copies += r->n - n;
	e->dev->stats.eth_tx_failed += r->n - n;
	r->dropped = r->n - n;
	r->n = n;
}

/* Returns true if no receiver of the frame is left but processes that have ended. */
static bool all_gone(const struct sn_eth_route *r)
{
	unsigned i;

	for (i = 0; i < r->n && r->host[i] && r->host[i]->tx.gone; i++)
		;
	return r->n && i == r->n && !r->local;
}

int sn_pause_may_send(struct sn_eng *e, const struct sn_frame *f, struct sn_eth_route *r)
{
	struct sn_eth_port *port = e->eth;
	bool may = !r->local || port->local.n < SN_ETH_LOCAL_MAX / 4;
	unsigned i;

	for (i = 0; i < r->n; i++)
		may &= !r->host[i] || has_room(e, f, r->host[i]);
	if (port->ntx + r->n > SN_ETH_BATCH)
		sn_eth_flush(e);
	if (!may || (port->ntx && port->ntx + r->n > SN_ETH_BATCH))
		return 0;
	if (all_gone(r))
		return -EHOSTDOWN;
	drop_dead(e, r);
	return 1;
}

void sn_pause_sent(struct sn_eng *e, const struct sn_frame *f, struct sn_eth_host *h)
{
	(void)e;
	h->tx.sent += f ? cost_of(f) : 0;
}

static void on_grant(struct sn_eng *e, struct sn_eth_host *h, uint64_t stamp, uint64_t limit)
{
	struct sn_pause_tx *tx = &h->tx;

	if (e->now - stamp >= GRANT_NS) /* too old, or not of this port */
		return;
	tx->dead = tx->gone = false;
	sn_peer_opened(h->peer, stamp);
	tx->asked = 0;
	if (limit <= tx->limit && e->now < tx->until) { /* it answers, but has no room yet */
		tx->until = stamp + GRANT_NS > tx->until ? stamp + GRANT_NS : tx->until;
		return;
	}
	tx->limit = limit;
	tx->until = stamp + GRANT_NS;
	tx->room = room_of(e, tx);
	tx->again = tx->period = 0;
}

/* ---- receiver ---- */

/* Cost of the frames that the host may still send, or that wait. */
static uint64_t promised(struct sn_eng *e, struct sn_pause_rx *rx)
{
	uint64_t known = rx->taken + rx->queued;

	if (!rx->active)
		return 0;
	if (rx->granted < known || e->now >= rx->until)
		rx->granted = known;
	return rx->granted - rx->taken;
}

/* Raises the limit of a host to its share of the window, but not by small steps or to a limit that
 * is too low for some frames. Returns true if the limit was raised. */
static bool raise_limit(struct sn_eng *e, struct sn_eth_host *of)
{
	uint64_t all = 0, shares = 2, own = promised(e, &of->rx), share, want, left;
	struct sn_eth_port *port = e->eth;
	struct sn_eth_host *h;

	for (h = port->hosts; h < port->hosts + SN_ETH_HOSTS; h++) {
		all += promised(e, &h->rx);
		shares += h != of && h->rx.active && e->now < h->rx.until;
	}
	/* one share is left for a host that appears */
	share = port->window / shares > MAX_COST ? port->window / shares : MAX_COST;
	want = share > own ? share - own : 0;
	left = port->window > all ? port->window - all : 0;
	if (want > left)
		want = left;
	if (want < share / 4 || own - of->rx.queued + want < MAX_COST)
		return false;
	of->rx.granted += want;
	return true;
}

static void answer(struct sn_eng *e, struct sn_eth_host *h, bool always)
{
	struct sn_pause_rx *rx = &h->rx;
	bool raised = raise_limit(e, h);

	e->eth->ndue += (unsigned)!raised - (unsigned)rx->due;
	rx->due = !raised;
	if (!raised && !always)
		return;
	rx->until = e->now + RECLAIM_NS;
	send_control(e, h, GRANT, rx->nonce, rx->stamp, rx->granted);
}

static void on_request(struct sn_eng *e, struct sn_eth_host *h, uint64_t nonce, uint64_t stamp,
		       uint64_t sent)
{
	struct sn_pause_rx *rx = &h->rx;

	if (rx->nonce != nonce || !rx->active)
		rx->granted = sent;
	rx->active = true;
	rx->nonce = nonce;
	rx->stamp = stamp;
	rx->taken = sent - rx->queued;
	answer(e, h, true);
}

void sn_pause_grant(struct sn_eng *e)
{
	struct sn_eth_host *h;

	for (h = e->eth->hosts; h < e->eth->hosts + SN_ETH_HOSTS; h++)
		if (h->rx.due)
			answer(e, h, false);
}

bool sn_pause_control(struct sn_eng *e, const struct sn_frame *f)
{
	const uint8_t *d = f->data;
	struct sn_eth_host *h;

	if (f->len != CONTROL_LEN || memcmp(d, control_mac, 6) ||
	    (d[12] << 8 | d[13]) != ETHERTYPE || sn_get32(d + OFF_MAGIC) != MAGIC)
		return false;
	h = sn_eth_host(e, &f->peer);
	if (sn_get32(d + OFF_KIND) == REQUEST)
		on_request(e, h, sn_get64(d + OFF_NONCE), sn_get64(d + OFF_STAMP),
			   sn_get64(d + OFF_COUNT));
	else if (sn_get32(d + OFF_KIND) == GRANT && sn_get64(d + OFF_NONCE) == e->eth->nonce)
		on_grant(e, h, sn_get64(d + OFF_STAMP), sn_get64(d + OFF_COUNT));
	return true;
}

/* Tells the senders that their frames are no longer wanted, so that they are dropped. */
void sn_pause_close(struct sn_eng *e)
{
	struct sn_eth_host *h;

	for (h = e->eth->hosts; h < e->eth->hosts + SN_ETH_HOSTS; h++)
		if (h->rx.active)
			sn_peer_leave(e, &h->ip);
}

/* ---- frames that wait ---- */

void sn_pause_dropped(struct sn_eng *e, uint64_t n, const char *why)
{
	struct sn_eth_port *port = e->eth;

	if (!n || !e->dev->cfg.eth_pause || port->packet)
		return;
	port->dropped += n;
	if (port->dropped < 2 * port->reported)
		return;
	port->reported = port->dropped;
	sn_message("dropped %llu frames in spite of --eth-pause: %s",
		   (unsigned long long)port->dropped, why);
}

static bool waits(struct sn_eng *e, struct sn_frame *f)
{
	if (sn_eth_receive(e, f, true) == SN_ETH_TAKEN)
		return false;
	e->dev->stats.eth_held += !f->held;
	f->held = true;
	return true;
}

/* Only the frames of hosts that obey grants may wait: the others could fill the memory. */
void sn_pause_receive(struct sn_eng *e, struct sn_frame *f)
{
	struct sn_eth_host *h = sn_eth_known_host(e, &f->peer);
	bool obeys = h && h->rx.active;

	if (obeys && !f->corrupt && e->dev->cfg.eth_pause) {
		if (e->eth->waiting.n || waits(e, f)) {
			h->rx.queued += cost_of(f);
			sn_list_push(&e->eth->waiting, f);
			return;
		}
	} else {
		sn_eth_receive(e, f, false);
	}
	if (obeys)
		h->rx.taken += cost_of(f);
	sn_frame_put(e, f);
}

bool sn_pause_deliver(struct sn_eng *e)
{
	struct sn_frame_list *waiting = &e->eth->waiting;
	struct sn_eth_host *h;
	struct sn_frame *f;
	bool any = false;

	for (; (f = waiting->head) && !waits(e, f); any = true) {
		h = sn_eth_known_host(e, &f->peer);
		if (h && h->rx.queued >= cost_of(f)) {
			h->rx.queued -= cost_of(f);
			h->rx.taken += cost_of(f);
		}
		sn_frame_put(e, sn_list_pop(waiting));
	}
	return any;
}
