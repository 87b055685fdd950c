/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Raw Ethernet on an interface of the machine (--eth-if): a packet socket in promiscuous
 * mode. The kernel moves a VLAN tag out of the frame, and frames of the same machine may
 * have a checksum that a NIC would complete; both are put back. Frames that the kernel
 * has merged (GRO, or TSO of the other end of a veth pair) are longer than a frame may
 * be. They are dropped and counted.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <unistd.h>

#include "eth_wire.h"
#include "underlay.h"

#define TAG_AT	    12u
#define TAG_LEN	    4u
#define TCP_CSUM_AT 16u
#define UDP_CSUM_AT 6u

_Static_assert(SN_PACKET_CONTROL >= CMSG_SPACE(sizeof(struct tpacket_auxdata)), "too short");

static int set_options(int fd, int index)
{
	struct packet_mreq promisc = { .mr_ifindex = index, .mr_type = PACKET_MR_PROMISC };
	int on = 1;

	setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)); /* Linux 4.20 */
	return setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)) ||
	       setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promisc, sizeof(promisc));
}

int sn_packet_open(struct sn_eng *e)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int fd, err;

	at.sll_ifindex = (int)if_nametoindex(e->dev->cfg.eth_if);
	if (!at.sll_ifindex)
		return -ENODEV;
	/* protocol 0: no frame of another interface arrives before bind() */
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	sn_set_buffers(fd);
	if (!set_options(fd, at.sll_ifindex) && !bind(fd, (const struct sockaddr *)&at, sizeof(at)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* ---- received frames ---- */

static void put_tag(struct sn_frame *f, const struct tpacket_auxdata *aux)
{
	uint16_t tpid = aux->tp_status & TP_STATUS_VLAN_TPID_VALID ? aux->tp_vlan_tpid
								   : ETH_P_8021Q;

	memmove(f->data + TAG_AT + TAG_LEN, f->data + TAG_AT, f->len - TAG_AT);
	sn_put32(f->data + TAG_AT, (uint32_t)tpid << 16 | aux->tp_vlan_tci);
	f->len += TAG_LEN;
}

/* The checksum field of such a packet has only the sum of the pseudo header. */
static void complete_checksum(struct sn_frame *f)
{
	struct sn_parsed p;
	uint32_t len, at;
	uint16_t sum;

	sn_eth_parse(f->data, f->len, &p);
	if (p.malformed || p.fragment || (p.l4 != IPPROTO_TCP && p.l4 != IPPROTO_UDP))
		return;
	len = p.l3_off + p.l3_len - p.l4_off;
	at = p.l4_off + (p.l4 == IPPROTO_TCP ? TCP_CSUM_AT : UDP_CSUM_AT);
	memset(f->data + at, 0, 2);
	sum = (uint16_t)~sn_csum_fold(
		sn_csum_add(sn_csum_pseudo(f->data, &p, len), f->data + p.l4_off, len));
	if (!sum && p.l4 == IPPROTO_UDP)
		sum = 0xffff; /* 0 means no checksum */
	f->data[at] = (uint8_t)(sum >> 8);
	f->data[at + 1] = (uint8_t)sum;
}

static bool find_aux(struct msghdr *m, struct tpacket_auxdata *aux)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA) {
			memcpy(aux, CMSG_DATA(c), sizeof(*aux));
			return true;
		}
	return false;
}

bool sn_packet_take(struct sn_eng *e, struct msghdr *m, uint32_t len, struct sn_frame *f)
{
	const struct sockaddr_ll *from = m->msg_name;
	struct tpacket_auxdata aux;

	if (from->sll_pkttype == PACKET_OUTGOING)
		return false;
	f->len = len;
	if (m->msg_flags & MSG_TRUNC || len < SN_ETH_FRAME_MIN) {
		e->dev->stats.wire_malformed++;
		return false;
	}
	if (!find_aux(m, &aux))
		return true;
	if (aux.tp_status & TP_STATUS_VLAN_VALID)
		put_tag(f, &aux);
	if (aux.tp_status & TP_STATUS_CSUMNOTREADY)
		complete_checksum(f);
	return true;
}
