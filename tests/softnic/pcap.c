/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Writes the NIC's packets to a capture file, one file per process: packets sent (after
 * injected faults) and packets received from other processes. The NIC builds the IP and
 * UDP headers itself: checksums are 0, and received packets have the IPv4 identification
 * 0 and only those fields that the kernel reports. The linktype is raw IP. With a VLAN
 * it is Ethernet, with the tags that a hardware port would send. Raw Ethernet frames are
 * VXLAN packets in the capture as on the underlay, also those to this process. With
 * --eth-if the linktype is Ethernet, and they have no further headers. The last packets
 * also go to the evidence (recent.c).
 */
#include <time.h>

#include "eth_wire.h"
#include "evidence.h"

#define PCAP_MAGIC_NS 0xa1b23c4du
#define PCAP_ETHERNET 1u
#define PCAP_RAW_IP   101u
#define ETHER_MAX     18
#define VXLAN_HEAD    (40 + 8 + 8) /* IPv6, UDP and VXLAN headers */
#define HOPS	      64

static bool has_ether(const struct sn_eng *e)
{
	return e->dev->cfg.vlan || e->dev->cfg.eth_if[0];
}

void sn_pcap_open(struct sn_eng *e)
{
	const uint32_t head[6] = {
		PCAP_MAGIC_NS, 2 | 4 << 16, 0, 0, 65535, has_ether(e) ? PCAP_ETHERNET : PCAP_RAW_IP
	};
	static bool begun; /* a process that opens the NIC again appends to its file */

	e->recent = e->dev->cfg.evidence[0];
	sn_recent_open(e->dev->cfg.evidence, has_ether(e));
	if (!e->dev->cfg.pcap[0])
		return;
	e->pcap = fopen(e->dev->cfg.pcap, begun ? "ae" : "we");
	if (!e->pcap)
		sn_message("cannot write capture file %s: %m, capturing nothing", e->dev->cfg.pcap);
	else if (!begun)
		begun = fwrite(head, sizeof(head), 1, e->pcap);
}

static uint32_t ether_header(uint8_t h[ETHER_MAX], const struct in6_addr *src,
			     const struct in6_addr *dst, uint16_t tci)
{
	const uint8_t v4[] = { 0x08, 0x00 }, v6[] = { 0x86, 0xdd };
	const uint8_t tag[] = { 0x81, 0x00, tci >> 8, tci & 0xff };
	uint32_t at = 12;

	sn_mac_of_ip(dst, h);
	sn_mac_of_ip(src, h + 6);
	if (tci) {
		memcpy(h + at, tag, sizeof(tag));
		at += sizeof(tag);
	}
	memcpy(h + at, IN6_IS_ADDR_V4MAPPED(dst) ? v4 : v6, 2);
	return at + 2;
}

static bool captures(const struct sn_eng *e)
{
	return e->pcap || e->recent;
}

static void record(struct sn_eng *e, const struct iovec *parts, int n)
{
	struct timespec ts;
	uint32_t rec[4] = { 0 };
	int i;

	if (e->recent)
		sn_recent_add(parts, n);
	if (!e->pcap)
		return;
	for (i = 0; i < n; i++)
		rec[2] += (uint32_t)parts[i].iov_len;
	rec[3] = rec[2];
	clock_gettime(CLOCK_REALTIME, &ts);
	rec[0] = (uint32_t)ts.tv_sec;
	rec[1] = (uint32_t)ts.tv_nsec;
	fwrite(rec, sizeof(rec), 1, e->pcap);
	for (i = 0; i < n; i++)
		fwrite(parts[i].iov_base, parts[i].iov_len, 1, e->pcap);
}

void sn_pcap_write(struct sn_eng *e, const struct sn_pkt *p, uint32_t icrc)
{
	uint32_t le = htole32(icrc), ether = 0;
	uint8_t h[ETHER_MAX];

	if (!captures(e))
		return;
	if (has_ether(e))
		ether = ether_header(h, &p->src, &p->dst, p->tci);
	record(e,
	       (struct iovec[]){ { h, ether },
				 { (void *)p->ip_udp, p->head },
				 { (void *)p->data, p->len },
				 { &le, 4 } },
	       4);
}

/* Builds the IP, UDP and VXLAN headers of a frame. Returns their length. */
static uint32_t vxlan_headers(uint8_t h[VXLAN_HEAD], const struct sn_frame *f,
			      const struct in6_addr *src, const struct in6_addr *dst)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(dst);
	uint32_t ip = v4 ? 20 : 40, udp = 8 + 8 + f->len;
	uint16_t sport = f->sport ? f->sport : SN_VXLAN_PORT;

	memset(h, 0, VXLAN_HEAD);
	if (v4) {
		sn_put32(h, 0x45u << 24 | (ip + udp));
		sn_put32(h + 8, (uint32_t)HOPS << 24 | IPPROTO_UDP << 16);
		memcpy(h + 12, src->s6_addr + 12, 4);
		memcpy(h + 16, dst->s6_addr + 12, 4);
	} else {
		sn_put32(h, 6u << 28);
		sn_put32(h + 4, udp << 16 | IPPROTO_UDP << 8 | HOPS);
		memcpy(h + 8, src, 16);
		memcpy(h + 24, dst, 16);
	}
	sn_put32(h + ip, (uint32_t)sport << 16 | SN_VXLAN_PORT);
	sn_put32(h + ip + 4, udp << 16);
	memcpy(h + ip + 8, f->head, 8);
	return ip + 8 + 8;
}

void sn_eth_pcap(struct sn_eng *e, const struct sn_frame *f, bool sent)
{
	const struct in6_addr *own = &e->dev->cfg.ip, *other = f->local ? own : &f->peer;
	const struct in6_addr *src = sent ? own : other, *dst = sent ? other : own;
	uint8_t h[VXLAN_HEAD], ether[ETHER_MAX];
	uint32_t n = 0, l2 = 0;

	if (!captures(e))
		return;
	if (!e->dev->cfg.eth_if[0]) {
		n = vxlan_headers(h, f, src, dst);
		if (has_ether(e))
			l2 = ether_header(ether, src, dst, 0);
	}
	record(e, (struct iovec[]){ { ether, l2 }, { h, n }, { (void *)f->data, f->len } }, 3);
}

void sn_pcap_close(struct sn_eng *e)
{
	if (e->pcap)
		fclose(e->pcap);
	e->pcap = NULL;
}
