/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * RoCE v2 over UDP. One socket, bound to port 4791 of this process's address,
 * receives and also sends for queue pairs without a source port of their own. Each
 * other source port has a socket that only sends, up to SN_PORTS sockets; beyond
 * that, 4791 is used. The sockets are unconnected and never fragment, so Linux sends
 * with DF set and IPv4 identification 0. The ICRC covers the identification, but a
 * receiver cannot read the identification: ipid.c handles peers that set another
 * value. Traffic class and hop limit are set per packet. Packets to this process's own
 * address pass through a queue in memory, without ICRC. fault.c decides about loss and
 * delay.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "eng.h"
#include "underlay.h"

#define ROCE_PORT   4791
#define HOPS	    64
#define LOCAL_MAX   4096u
#define BTH_VERSION 0x000f0000u
#define BTH_PKEY    0x7fffu /* the default partition; bit 15 (full membership) is not compared */
#define PASS_MAX    256u    /* packets to the own address that one pass handles */

struct sn_pkt *sn_pkt_get(struct sn_eng *e)
{
	struct sn_pkt *p = e->free;

	if (p)
		e->free = p->next;
	else if (!(p = malloc(sizeof(*p))))
		return NULL;
	p->next = NULL;
	p->corrupt = p->no_icrc = false;
	return p;
}

void sn_pkt_put(struct sn_eng *e, struct sn_pkt *p)
{
	p->next = e->free;
	e->free = p;
}

/* Forbids fragments and sets the default hop limit. */
static int set_ip_options(int fd, bool v6)
{
	int df = v6 ? IPV6_PMTUDISC_DO : IP_PMTUDISC_DO, hops = HOPS;

	if (v6)
		return setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &df, sizeof(df)) ||
		       setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &hops, sizeof(hops));
	return setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &df, sizeof(df)) ||
	       setsockopt(fd, IPPROTO_IP, IP_TTL, &hops, sizeof(hops));
}

static int open_socket(const struct in6_addr *ip, uint16_t port)
{
	union sn_sockaddr at;
	socklen_t len = sn_sockaddr_set(&at, ip, port);
	int fd = socket(at.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return -errno;
	sn_set_buffers(fd);
	if (!set_ip_options(fd, at.sa.sa_family == AF_INET6) && !bind(fd, &at.sa, len))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* Returns the socket of a source port, which it opens at first use. If that is not possible,
 * returns the main socket and sets *port to 4791. */
static int port_socket(struct sn_eng *e, uint16_t *port)
{
	struct sn_port *at;
	unsigned i;

	for (i = 0; *port && *port != ROCE_PORT && i < SN_PORTS; i++) {
		at = &e->ports[(*port + i) % SN_PORTS];
		if (!at->number) {
			at->number = *port;
			at->fd = open_socket(&e->dev->cfg.ip, *port);
		}
		if (at->number == *port && at->fd >= 0)
			return at->fd;
		if (at->number == *port)
			break;
	}
	*port = ROCE_PORT;
	return e->sock;
}

#define CTL_LEN (2 * CMSG_SPACE(sizeof(int))) /* traffic class and hop limit */

/* Buffers and message headers for recvmmsg, set up once. */
struct sn_rx {
	struct mmsghdr m[SN_RXQ];
	struct iovec iov[SN_RXQ];
	union sn_sockaddr from[SN_RXQ];
	char ctl[SN_RXQ][CTL_LEN] __attribute__((aligned(8)));
	struct sn_pkt pkt[SN_RXQ];
};

static struct sn_rx *rx_open(void)
{
	struct sn_rx *rx = calloc(1, sizeof(*rx));
	unsigned i;

	for (i = 0; rx && i < SN_RXQ; i++) {
		rx->iov[i] = (struct iovec){ rx->pkt[i].data, SN_PKT_DATA };
		rx->m[i].msg_hdr = (struct msghdr){ .msg_name = &rx->from[i],
						    .msg_iovlen = 1,
						    .msg_iov = &rx->iov[i],
						    .msg_control = rx->ctl[i],
						    .msg_controllen = CTL_LEN,
						    .msg_namelen = sizeof(rx->from[i]) };
	}
	return rx;
}

int sn_wire_open(struct sn_eng *e)
{
	e->local_tail = &e->local_head;
	e->sock = -1;
	e->rx = rx_open();
	if (!e->rx)
		return -ENOMEM;
	e->sock = open_socket(&e->dev->cfg.ip, ROCE_PORT);
	if (e->sock >= 0)
		return 0;
	free(e->rx);
	e->rx = NULL;
	return e->sock;
}

static void drop_list(struct sn_pkt **list)
{
	struct sn_pkt *p;

	while ((p = *list)) {
		*list = p->next;
		free(p);
	}
}

void sn_wire_close(struct sn_eng *e)
{
	unsigned i;

	if (e->sock >= 0)
		close(e->sock);
	e->sock = -1;
	for (i = 0; i < SN_PORTS; i++)
		if (e->ports[i].number && e->ports[i].fd >= 0)
			close(e->ports[i].fd);
	memset(e->ports, 0, sizeof(e->ports));
	for (i = 0; i < e->ntx; i++)
		free(e->txq[i]);
	free(e->rx);
	e->rx = NULL;
	e->ntx = e->nlocal = 0;
	free(e->held);
	e->held = NULL;
	drop_list(&e->free);
	drop_list(&e->local_head);
	drop_list(&e->delayed);
	e->local_tail = &e->local_head;
}

static void build_ip6(const struct sn_pkt *p, uint8_t *h, uint32_t udp)
{
	sn_put32(h, 6u << 28 | (uint32_t)p->tclass << 20);
	h[4] = udp >> 8;
	h[5] = udp;
	h[6] = IPPROTO_UDP;
	h[7] = p->hop_limit;
	memcpy(h + 8, &p->src, 16);
	memcpy(h + 24, &p->dst, 16);
}

static void build_ip4(const struct sn_pkt *p, uint8_t *h, uint32_t udp)
{
	h[0] = 0x45;
	h[1] = p->tclass;
	h[2] = (20 + udp) >> 8;
	h[3] = 20 + udp;
	h[6] = 0x40; /* DF */
	h[8] = p->hop_limit;
	h[9] = IPPROTO_UDP;
	memcpy(h + 12, p->src.s6_addr + 12, 4);
	memcpy(h + 16, p->dst.s6_addr + 12, 4);
}

static void build_headers(struct sn_pkt *p)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(&p->dst);
	uint32_t udp = 8 + p->len + 4;
	uint8_t *h;

	p->head = v4 ? 20 + 8 : 40 + 8;
	h = p->ip_udp + p->head - 8;
	memset(p->ip_udp, 0, p->head);
	(v4 ? build_ip4 : build_ip6)(p, p->ip_udp, udp);
	h[0] = p->sport >> 8;
	h[1] = p->sport & 0xff;
	h[2] = ROCE_PORT >> 8;
	h[3] = ROCE_PORT & 0xff;
	h[4] = udp >> 8;
	h[5] = udp;
}

void sn_pkt_send(struct sn_eng *e, struct sn_qp *qp, const struct sn_way *way, struct sn_pkt *p,
		 const struct sn_bth *bth, uint32_t len)
{
	uint32_t pad = -len & 3;

	memset(p->data + len, 0, pad);
	sn_put32(p->data, (uint32_t)bth->opcode << 24 | bth->solicited << 23 | 1u << 22 |
				  pad << 20 | 0xffff);
	sn_put32(p->data + 4, bth->qpn & 0xffffff);
	sn_put32(p->data + 8, (uint32_t)bth->ackreq << 31 | (bth->psn & SN_PSN_MASK));
	p->len = len + pad;
	p->src = e->dev->cfg.ip;
	p->dst = way->ip;
	p->sport = way->sport;
	p->fd = port_socket(e, &p->sport);
	p->tclass = way->tclass;
	p->tci = way->tci;
	p->hop_limit = way->hop_limit ? way->hop_limit : HOPS;
	build_headers(p);
	if (e->dev->cfg.trace)
		sn_trace_packet("tx", bth, p->len);
	SN_COUNT(e, qp, tx_packets, 1);
	SN_COUNT(e, qp, tx_bytes, p->len);
	sn_fault_send(e, p);
}

static void emit_local(struct sn_eng *e, struct sn_pkt *p)
{
	if (e->nlocal >= LOCAL_MAX) {
		sn_pkt_put(e, p);
		return;
	}
	p->no_icrc = true;
	p->next = NULL;
	*e->local_tail = p;
	e->local_tail = &p->next;
	e->nlocal++;
}

void sn_wire_emit(struct sn_eng *e, struct sn_pkt *p)
{
	bool local = sn_addr_same(&p->dst, &e->dev->cfg.ip);
	uint32_t icrc = !local || e->pcap ? sn_icrc(p->ip_udp, p->head, p->data, p->len) : 0;

	if (IN6_IS_ADDR_UNSPECIFIED(&p->dst)) { /* unknown; the kernel would send to this host */
		sn_pkt_put(e, p);
		return;
	}
	icrc = htole32(icrc);
	memcpy(p->data + p->len, &icrc, 4);
	if (p->corrupt && !local)
		sn_fault_corrupt(e, p);
	memcpy(&icrc, p->data + p->len, 4);
	sn_pcap_write(e, p, le32toh(icrc)); /* the ICRC as sent, after a possible injected fault */
	if (local) {
		emit_local(e, p);
		return;
	}
	e->txq[e->ntx++] = p;
	if (e->ntx == SN_TXQ)
		sn_wire_flush(e);
}

/* Sets traffic class and hop limit if they differ from the socket's defaults. */
static void set_control(struct msghdr *m, char ctl[CTL_LEN], const struct sn_pkt *p)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(&p->dst);
	const int value[2] = { p->tclass, p->hop_limit };
	const int type[2] = { v4 ? IP_TOS : IPV6_TCLASS, v4 ? IP_TTL : IPV6_HOPLIMIT };
	struct cmsghdr *c;
	unsigned i;

	if (!p->tclass && p->hop_limit == HOPS)
		return;
	memset(ctl, 0, CTL_LEN);
	m->msg_control = ctl;
	m->msg_controllen = CTL_LEN;
	for (i = 0, c = CMSG_FIRSTHDR(m); i < 2; i++, c = CMSG_NXTHDR(m, c)) {
		c->cmsg_level = v4 ? IPPROTO_IP : IPPROTO_IPV6;
		c->cmsg_type = type[i];
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &value[i], sizeof(int));
	}
}

/* Packets that the kernel does not accept are lost, as on any wire. */
void sn_wire_flush(struct sn_eng *e)
{
	union sn_sockaddr to[SN_TXQ];
	struct mmsghdr m[SN_TXQ];
	struct iovec iov[SN_TXQ];
	char ctl[SN_TXQ][CTL_LEN] __attribute__((aligned(8)));
	unsigned i, same;
	int n;

	if (!e->ntx)
		return;
	sn_mem_settle(); /* payload must be in GPU memory before its acknowledgement is sent */
	memset(m, 0, e->ntx * sizeof(m[0]));
	for (i = 0; i < e->ntx; i++) {
		iov[i] = (struct iovec){ e->txq[i]->data, e->txq[i]->len + 4u };
		m[i].msg_hdr.msg_name = &to[i];
		m[i].msg_hdr.msg_namelen = sn_sockaddr_set(&to[i], &e->txq[i]->dst, ROCE_PORT);
		m[i].msg_hdr.msg_iov = &iov[i];
		m[i].msg_hdr.msg_iovlen = 1;
		set_control(&m[i].msg_hdr, ctl[i], e->txq[i]);
	}
	for (i = 0; i<e->ntx; i += n> 0 ? n : 1) {
		for (same = 1; i + same < e->ntx && e->txq[i + same]->fd == e->txq[i]->fd; same++)
			;
		n = sendmmsg(e->txq[i]->fd, m + i, same, MSG_DONTWAIT);
	}
	for (i = 0; i < e->ntx; i++)
		sn_pkt_put(e, e->txq[i]);
	e->ntx = 0;
}

/* Returns false for a packet of another transport than the queue pair's, which the caller drops
 * (IB spec 9.6.1.2). */
static bool opcode_fits(const struct sn_qp *qp, uint8_t op)
{
	switch (qp->type) {
	case SN_QPT_UC:
		return (op & 0xe0) == SN_BTH_UC;
	case SN_QPT_UD:
		return op == SN_BTH_UD_SEND || op == SN_BTH_UD_SEND_IMM;
	default:
		return op < SN_BTH_UC || sn_bth_atomic(op);
	}
}

static void to_qp(struct sn_eng *e, struct sn_qp *qp, struct sn_bth *bth, struct sn_pkt *pkt,
		  uint32_t len)
{
	const uint8_t *p = pkt->data + 12;

	sn_qp_wake(e, qp->eng);
	qp->stats.rx_packets++;
	qp->stats.rx_bytes += pkt->len;
	if (qp->type == SN_QPT_UD) {
		sn_rq_ud(e, qp->eng, bth, pkt, p, len);
		return;
	}
	if (!sn_addr_same(&pkt->src, &qp->way.ip))
		return;
	if (qp->state == SN_QPS_RTR && !qp->eng->rsp.established) {
		qp->eng->rsp.established = true;
		sn_event_async_qp(e->dev, qp, SN_ASYNC_COMM_EST);
	}
	if (qp->type == SN_QPT_UC)
		sn_rsp_unreliable(e, qp->eng, bth, p, len);
	else if (bth->opcode >= SN_BTH_RESP_FIRST && bth->opcode <= SN_BTH_ATOMIC_ACK)
		sn_req_response(e, qp->eng, bth, p, len);
	else
		sn_rsp_request(e, qp->eng, bth, p, len);
}

static void dispatch(struct sn_eng *e, struct sn_pkt *pkt)
{
	uint32_t w0 = sn_get32(pkt->data), w2 = sn_get32(pkt->data + 8);
	struct sn_bth bth = { .opcode = w0 >> 24,
			      .pad = w0 >> 20 & 3,
			      .solicited = w0 >> 23 & 1,
			      .ackreq = w2 >> 31,
			      .qpn = sn_get32(pkt->data + 4) & 0xffffff,
			      .psn = w2 & SN_PSN_MASK };
	struct sn_qp *qp = sn_find_qp(e->dev, bth.qpn);

	if (pkt->len < 12u + bth.pad || pkt->len % 4 || w0 & BTH_VERSION) {
		e->dev->stats.wire_malformed++;
		return;
	}
	if (e->dev->cfg.trace)
		sn_trace_packet("rx", &bth, pkt->len);
	if (!qp || !qp->eng || qp->eth || qp->state < SN_QPS_RTR || qp->state == SN_QPS_ERR)
		return;
	if ((w0 & BTH_PKEY) != BTH_PKEY)
		e->dev->stats.pkey_violations++;
	else if (!opcode_fits(qp, bth.opcode))
		e->dev->stats.wire_malformed++;
	else
		to_qp(e, qp, &bth, pkt, pkt->len - 12 - bth.pad);
}

void sn_wire_receive(struct sn_eng *e, struct sn_pkt *p)
{
	uint32_t icrc;

	e->dev->stats.rx_packets++;
	e->dev->stats.rx_bytes += p->len;
	if (p->no_icrc) {
		if (p->corrupt)
			e->dev->stats.icrc_errors++;
		else
			dispatch(e, p);
		return;
	}
	build_headers(p);
	memcpy(&icrc, p->data + p->len, 4);
	icrc = le32toh(icrc);
	sn_pcap_write(e, p, icrc);
	if (sn_id_check(e, p, icrc ^ sn_icrc(p->ip_udp, p->head, p->data, p->len)))
		dispatch(e, p);
	else
		e->dev->stats.icrc_errors++;
}

static bool poll_local(struct sn_eng *e)
{
	struct sn_pkt *p;
	unsigned n = 0;

	while (n < PASS_MAX && (p = e->local_head)) {
		e->local_head = p->next;
		if (!e->local_head)
			e->local_tail = &e->local_head;
		e->nlocal--;
		sn_wire_receive(e, p);
		sn_pkt_put(e, p);
		n++;
	}
	return n;
}

/*
 * Makes the kernel report traffic class and hop limit of received packets. UD needs them,
 * because it delivers the IP header. Reporting costs time, so it starts with the first UD queue
 * pair. Until then both fields are 0 in received packets; the ICRC does not cover them.
 */
void sn_wire_report_headers(struct sn_eng *e)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(&e->dev->cfg.ip);
	int level = v4 ? IPPROTO_IP : IPPROTO_IPV6, on = 1;

	setsockopt(e->sock, level, v4 ? IP_RECVTOS : IPV6_RECVTCLASS, &on, sizeof(on));
	setsockopt(e->sock, level, v4 ? IP_RECVTTL : IPV6_RECVHOPLIMIT, &on, sizeof(on));
}

static void take_headers(struct msghdr *m, struct sn_pkt *p)
{
	struct cmsghdr *c;

	p->tclass = p->hop_limit = 0;
	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		bool v4 = c->cmsg_level == IPPROTO_IP;
		int value = 0;

		memcpy(&value, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0)); /* 1 byte or 4 bytes */
		if (c->cmsg_type == (v4 ? IP_TOS : IPV6_TCLASS))
			p->tclass = (uint8_t)value;
		else
			p->hop_limit = (uint8_t)value;
	}
	m->msg_controllen = CTL_LEN;
}

static void take(struct sn_eng *e, struct mmsghdr *m, struct sn_pkt *p)
{
	m->msg_hdr.msg_namelen = sizeof(union sn_sockaddr);
	take_headers(&m->msg_hdr, p);
	if (m->msg_len < 16 || m->msg_hdr.msg_flags & MSG_TRUNC) {
		e->dev->stats.wire_malformed++;
		return;
	}
	sn_sockaddr_get(m->msg_hdr.msg_name, &p->src, &p->sport);
	p->dst = e->dev->cfg.ip;
	p->len = m->msg_len - 4;
	sn_wire_receive(e, p);
}

static bool poll_socket(struct sn_eng *e)
{
	struct sn_rx *rx = e->rx;
	int i, n = recvmmsg(e->sock, rx->m, SN_RXQ, MSG_DONTWAIT, NULL);

	for (i = 0; i < n; i++)
		take(e, &rx->m[i], &rx->pkt[i]);
	e->arriving = n > 0;
	e->more = n == (int)SN_RXQ;
	if (e->arriving)
		e->last_arrival = e->now;
	return e->arriving;
}

bool sn_wire_poll(struct sn_eng *e)
{
	bool any = sn_fault_due(e);

	any |= poll_local(e);
	return poll_socket(e) || any;
}
