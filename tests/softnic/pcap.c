/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Writes the NIC's packets to a capture file, one file per process: packets sent (after
 * injected faults) and packets received from other processes. The NIC builds the IP and
 * UDP headers itself: checksums are 0, and received packets have the IPv4 identification
 * 0 and only those fields that the kernel reports. The linktype is raw IP. With a VLAN
 * it is Ethernet, with the tags that a hardware port would send.
 */
#include <time.h>

#include "eng.h"

#define PCAP_MAGIC_NS 0xa1b23c4du
#define PCAP_ETHERNET 1u
#define PCAP_RAW_IP   101u
#define ETHER_MAX     18

void sn_pcap_open(struct sn_eng *e)
{
	const uint32_t head[6] = { PCAP_MAGIC_NS,
				   2 | 4 << 16,
				   0,
				   0,
				   65535,
				   e->dev->cfg.vlan ? PCAP_ETHERNET : PCAP_RAW_IP };
	static bool begun; /* a process that opens the NIC again appends to its file */

	if (!e->dev->cfg.pcap[0])
		return;
	e->pcap = fopen(e->dev->cfg.pcap, begun ? "ae" : "we");
	if (!e->pcap)
		sn_message("cannot write capture file %s: %m, capturing nothing", e->dev->cfg.pcap);
	else if (!begun)
		begun = fwrite(head, sizeof(head), 1, e->pcap);
}

static uint32_t ether_header(uint8_t h[ETHER_MAX], const struct sn_pkt *p)
{
	const uint8_t v4[] = { 0x08, 0x00 }, v6[] = { 0x86, 0xdd };
	const uint8_t tag[] = { 0x81, 0x00, p->tci >> 8, p->tci & 0xff };
	uint32_t at = 12;

	sn_mac_of_ip(&p->dst, h);
	sn_mac_of_ip(&p->src, h + 6);
	if (p->tci) {
		memcpy(h + at, tag, sizeof(tag));
		at += sizeof(tag);
	}
	memcpy(h + at, p->head == 28 ? v4 : v6, 2);
	return at + 2;
}

void sn_pcap_write(struct sn_eng *e, const struct sn_pkt *p, uint32_t icrc)
{
	uint32_t len = p->head + p->len + 4u, le = htole32(icrc), ether = 0;
	uint8_t h[ETHER_MAX];
	struct timespec ts;

	if (!e->pcap)
		return;
	if (e->dev->cfg.vlan)
		ether = ether_header(h, p);
	len += ether;
	clock_gettime(CLOCK_REALTIME, &ts);
	{
		const uint32_t rec[4] = { ts.tv_sec, ts.tv_nsec, len, len };

		fwrite(rec, sizeof(rec), 1, e->pcap);
	}
	fwrite(h, ether, 1, e->pcap);
	fwrite(p->ip_udp, p->head, 1, e->pcap);
	fwrite(p->data, p->len, 1, e->pcap);
	fwrite(&le, 4, 1, e->pcap);
}

void sn_pcap_close(struct sn_eng *e)
{
	if (e->pcap)
		fclose(e->pcap);
	e->pcap = NULL;
}
