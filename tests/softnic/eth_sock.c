/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * VXLAN (RFC 7348): Ethernet frames in UDP packets to port 4789, from a socket that is
 * bound to this port of the process's address. Only flag I of the header is set, and the
 * reserved bits are 0, because Linux drops other packets. The one exception is a frame
 * with an injected bit error: its reserved bits are the frame check sequence from before
 * the error, so the receiver finds the error like a hardware port. The kernel fragments
 * packets that are larger than the MTU of its interface. With --eth-if the socket is that
 * of eth_packet.c, and frames have no further header.
 */
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include "eth_wire.h"
#include "underlay.h"

#define VXLAN_LEN     8u
#define FLAG_I	      0x08u
#define MISSED_NS     10000000ull
#define RUN_BYTES     65000u	  /* of frames in one message; the kernel permits 64 frames */
#define RESERVED_HIGH 0x00ffffffu /* of the first word of the header */

_Static_assert(offsetof(struct sn_frame, data) == offsetof(struct sn_frame, head) + VXLAN_LEN,
	       "header and frame are sent as one piece");

union sn_eth_from {
	union sn_sockaddr udp;
	struct sockaddr_ll packet;
};

/* Buffers and message headers for recvmmsg. */
struct sn_eth_rx {
	struct mmsghdr m[SN_ETH_BATCH];
	struct iovec iov[SN_ETH_BATCH][2];
	union sn_eth_from from[SN_ETH_BATCH];
	char control[SN_ETH_BATCH][SN_PACKET_CONTROL] __attribute__((aligned(8)));
	struct sn_frame *frame[SN_ETH_BATCH];
};

static void set_frame(struct sn_eng *e, unsigned i, struct sn_frame *f)
{
	struct sn_eth_rx *rx = e->eth->rx;

	rx->frame[i] = f;
	rx->iov[i][0] = (struct iovec){ f->head, VXLAN_LEN };
	rx->iov[i][1] = (struct iovec){ f->data, SN_ETH_FRAME_MAX };
	rx->m[i].msg_hdr = (struct msghdr){ .msg_name = &rx->from[i],
					    .msg_namelen = sizeof(rx->from[i]),
					    .msg_iov = rx->iov[i],
					    .msg_iovlen = 2 };
	if (!e->eth->packet)
		return;
	rx->m[i].msg_hdr.msg_iov++; /* only the frame */
	rx->m[i].msg_hdr.msg_iovlen = 1;
	rx->m[i].msg_hdr.msg_control = rx->control[i];
	rx->m[i].msg_hdr.msg_controllen = SN_PACKET_CONTROL;
}

int sn_eth_rx_open(struct sn_eng *e)
{
	struct sn_eth_rx *rx = e->eth->rx = calloc(1, sizeof(*rx));
	struct sn_frame *f;
	unsigned i;

	for (i = 0; rx && i < SN_ETH_BATCH; i++) {
		f = sn_frame_get(e);
		if (!f)
			return -ENOMEM;
		set_frame(e, i, f);
	}
	return rx ? 0 : -ENOMEM;
}

void sn_eth_rx_close(struct sn_eng *e)
{
	struct sn_eth_rx *rx = e->eth->rx;
	unsigned i;

	for (i = 0; rx && i < SN_ETH_BATCH; i++)
		if (rx->frame[i])
			sn_frame_put(e, rx->frame[i]);
	free(rx);
	e->eth->rx = NULL;
}

/* Lets the kernel fragment: the size of a frame is the program's choice. */
static int set_options(int fd, bool v6)
{
	int value = v6 ? IPV6_PMTUDISC_DONT : IP_PMTUDISC_DONT;

	if (v6)
		return setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &value, sizeof(value));
	return setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &value, sizeof(value));
}

int sn_vxlan_open(struct sn_eng *e)
{
	union sn_sockaddr at;
	socklen_t len = sn_sockaddr_set(&at, &e->dev->cfg.ip, SN_VXLAN_PORT);
	int fd = socket(at.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return -errno;
	sn_set_buffers(fd);
	e->eth->run_max = RUN_BYTES;
	if (!set_options(fd, at.sa.sa_family == AF_INET6) && !bind(fd, &at.sa, len))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

void sn_sock_missed(struct sn_eng *e)
{
	struct sn_eth_port *port = e->eth;
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(info);

	if (getsockopt(port->fd, SOL_SOCKET, SO_MEMINFO, info, &len))
		return;
	e->dev->stats.eth_rx_missed += info[SK_MEMINFO_DROPS] - port->missed;
	sn_pause_dropped(e, info[SK_MEMINFO_DROPS] - port->missed, "the socket's buffer is full");
	port->missed = info[SK_MEMINFO_DROPS];
	port->next_missed = e->now + MISSED_NS;
}

/* ---- the header ---- */

void sn_vxlan_header(const struct sn_eng *e, struct sn_frame *f)
{
	uint32_t fcs = 0;

	if (f->corrupt) {
		fcs = (uint32_t)crc32(0, f->data, f->len);
		fcs = fcs ? fcs : 1; /* 0: there is none */
	}
	sn_put32(f->head, FLAG_I << 24 | fcs >> 8);
	sn_put32(f->head + 4, e->dev->cfg.eth_vni << 8 | (fcs & 0xff));
}

/* Returns true if the frame carries a frame check sequence that does not match. A header with
 * further flags is that of another protocol version, which defines the reserved bits. */
static bool fcs_is_wrong(const struct sn_frame *f)
{
	uint32_t fcs = (sn_get32(f->head) & RESERVED_HIGH) << 8 | f->head[7];

	return f->head[0] == FLAG_I && fcs && fcs != (uint32_t)crc32(0, f->data, f->len);
}

static bool vxlan_ok(struct sn_eng *e, const struct mmsghdr *m, const struct sn_frame *f)
{
	struct sn_stats *st = &e->dev->stats;

	if (m->msg_hdr.msg_flags & MSG_TRUNC || m->msg_len < VXLAN_LEN || !(f->head[0] & FLAG_I))
		st->wire_malformed++;
	else if (sn_get32(f->head + 4) >> 8 != e->dev->cfg.eth_vni)
		st->eth_other_vni++;
	else
		return true;
	return false;
}

/* ---- reception ---- */

/* Removes the headers of the packet in buffer i. Returns false if it is dropped. */
static bool take_vxlan(struct sn_eng *e, unsigned i, struct sn_frame *f)
{
	struct sn_eth_rx *rx = e->eth->rx;

	if (!vxlan_ok(e, &rx->m[i], f))
		return false;
	f->len = rx->m[i].msg_len - VXLAN_LEN;
	sn_sockaddr_get(&rx->from[i].udp, &f->peer, &f->sport);
	f->corrupt = fcs_is_wrong(f);
	return true;
}

/* Handles the packet in buffer i. The frame leaves the buffer only if a new one takes its
 * place. */
static void take(struct sn_eng *e, unsigned i)
{
	struct sn_eth_rx *rx = e->eth->rx;
	struct sn_frame *f = rx->frame[i], *fresh;
	struct mmsghdr *m = &rx->m[i];

	if (e->eth->packet ? !sn_packet_take(e, &m->msg_hdr, m->msg_len, f)
			   : !take_vxlan(e, i, f)) {
		set_frame(e, i, f);
		return;
	}
	sn_eth_pcap(e, f, false);
	fresh = sn_frame_get(e);
	if (fresh)
		sn_eth_arrived(e, f);
	else {
		e->dev->stats.eth_rx_missed++;
		sn_pause_dropped(e, 1, "the port has no room for more frames");
	}
	set_frame(e, i, fresh ? fresh : f);
}

bool sn_sock_poll(struct sn_eng *e)
{
	struct sn_eth_port *port = e->eth;
	int i, n = recvmmsg(port->fd, port->rx->m, SN_ETH_BATCH, MSG_DONTWAIT, NULL);

	for (i = 0; i < n; i++)
		take(e, (unsigned)i);
	port->more = n == (int)SN_ETH_BATCH;
	if (n > 0)
		e->last_arrival = e->now;
	if (n > 0 && e->now >= port->next_missed)
		sn_sock_missed(e);
	return n > 0;
}

/* ---- transmission ---- */

/* Messages of one sendmmsg(). A message has one frame, or a run of frames that the kernel separates
 * again (UDP_SEGMENT), which costs it less than a message for each. */
struct batch {
	union sn_sockaddr to[SN_ETH_BATCH];
	struct mmsghdr m[SN_ETH_BATCH];
	struct iovec iov[SN_ETH_BATCH];
	char control[SN_ETH_BATCH][CMSG_SPACE(sizeof(uint16_t))] __attribute__((aligned(8)));
	unsigned frames[SN_ETH_BATCH];
};

static uint32_t packet_len(const struct sn_frame *f)
{
	return VXLAN_LEN + f->len;
}

/* Returns how many of the n frames one message may have: all go to one host and have one length.
 * The last one may be shorter. */
static unsigned run_of(const struct sn_eth_port *port, struct sn_frame *const *f, unsigned n)
{
	const uint32_t len = packet_len(f[0]);
	uint32_t total = len;
	unsigned i;

	if (len > port->run_max)
		return 1;
	for (i = 1; i < n && packet_len(f[i - 1]) == len; i++) {
		total += packet_len(f[i]);
		if (packet_len(f[i]) > len || total > RUN_BYTES ||
		    memcmp(&f[i]->peer, &f[0]->peer, sizeof(f[0]->peer)) != 0)
			break;
	}
	return i;
}

static void set_segment(struct msghdr *m, char *control, uint32_t len)
{
	const uint16_t size = (uint16_t)len;
	struct cmsghdr *c;

	m->msg_control = control;
	m->msg_controllen = CMSG_SPACE(sizeof(size));
	c = CMSG_FIRSTHDR(m);
	c->cmsg_level = SOL_UDP;
	c->cmsg_type = UDP_SEGMENT;
	c->cmsg_len = CMSG_LEN(sizeof(size));
	memcpy(CMSG_DATA(c), &size, sizeof(size));
}

/* Returns the number of messages for frames txq[from] and later. */
static unsigned fill_batch(const struct sn_eth_port *port, unsigned from, struct batch *b)
{
	unsigned at, i, n = 0;

	for (at = from; at < port->ntx; at += b->frames[n++]) {
		struct sn_frame *const *f = &port->txq[at];
		struct msghdr *m = &b->m[n].msg_hdr;

		b->frames[n] = port->packet ? 1 : run_of(port, f, port->ntx - at);
		*m = (struct msghdr){ .msg_iov = &b->iov[at - from], .msg_iovlen = b->frames[n] };
		if (port->packet) {
			b->iov[at - from] = (struct iovec){ f[0]->data, f[0]->len };
			continue;
		}
		for (i = 0; i < b->frames[n]; i++)
			b->iov[at - from + i] = (struct iovec){ f[i]->head, packet_len(f[i]) };
		m->msg_name = &b->to[n];
		m->msg_namelen = sn_sockaddr_set(&b->to[n], &f[0]->peer, SN_VXLAN_PORT);
		if (b->frames[n] > 1)
			set_segment(m, b->control[n], packet_len(f[0]));
	}
	return n;
}

/* The kernel refused a run. Returns whether frames of this length are now sent one by one. Shorter
 * ones may still form runs, except without checksum offload (EIO): the limit is the MTU. */
static bool limit_runs(struct sn_eth_port *port, uint32_t len, int err)
{
	if (err != EINVAL && err != EMSGSIZE && err != EIO)
		return false;
	port->run_max = err == EIO ? 0 : len - 1;
	return true;
}

int sn_sock_send(struct sn_eng *e, unsigned from)
{
	struct sn_eth_port *port = e->eth;
	unsigned n, i;
	struct batch b;
	int sent, frames = 0;

	do {
		n = fill_batch(port, from, &b);
		sent = sendmmsg(port->fd, b.m, n, MSG_DONTWAIT);
	} while (sent < 0 && b.frames[0] > 1 &&
		 limit_runs(port, packet_len(port->txq[from]), errno));
	if (sent < 0)
		return -errno;
	for (i = 0; i < (unsigned)sent; i++)
		frames += (int)b.frames[i];
	return frames;
}
