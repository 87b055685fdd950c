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
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include "eth_wire.h"
#include "underlay.h"

#define VXLAN_LEN     8u
#define FLAG_I	      0x08u
#define MISSED_NS     10000000ull
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
	else
		e->dev->stats.eth_rx_missed++;
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

int sn_sock_send(struct sn_eng *e, unsigned from)
{
	struct sn_eth_port *port = e->eth;
	union sn_sockaddr to[SN_ETH_BATCH];
	struct mmsghdr m[SN_ETH_BATCH];
	struct iovec iov[SN_ETH_BATCH];
	unsigned i, n = port->ntx - from;
	int sent;

	memset(m, 0, n * sizeof(m[0]));
	for (i = 0; i < n; i++) {
		struct sn_frame *f = port->txq[from + i];

		iov[i] = (struct iovec){ f->head, VXLAN_LEN + f->len };
		m[i].msg_hdr.msg_iov = &iov[i];
		m[i].msg_hdr.msg_iovlen = 1;
		if (port->packet) {
			iov[i] = (struct iovec){ f->data, f->len };
			continue;
		}
		m[i].msg_hdr.msg_name = &to[i];
		m[i].msg_hdr.msg_namelen = sn_sockaddr_set(&to[i], &f->peer, SN_VXLAN_PORT);
	}
	sent = sendmmsg(port->fd, m, n, MSG_DONTWAIT);
	return sent < 0 ? -errno : sent;
}
