/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Capture of the wire as this NIC sees it, one file per process, linktype raw
 * IP: packets sent (after injected faults) and packets received from others.
 * IP and UDP headers are written as they are on the wire but for checksums.
 */
#include <time.h>

#include "eng.h"

#define PCAP_MAGIC_NS 0xa1b23c4du
#define PCAP_RAW_IP 101u

void sn_pcap_open(struct sn_eng *e)
{
	const uint32_t head[6] = { PCAP_MAGIC_NS, 2 | 4 << 16, 0, 0, 65535, PCAP_RAW_IP };
	static bool begun; /* a process that opens the NIC again goes on with its file */

	if (!e->dev->cfg.pcap[0])
		return;
	e->pcap = fopen(e->dev->cfg.pcap, begun ? "ae" : "we");
	if (!e->pcap)
		fprintf(stderr, "softnic: capture file %s: %m\n", e->dev->cfg.pcap);
	else if (!begun)
		begun = fwrite(head, sizeof(head), 1, e->pcap);
}

void sn_pcap_write(struct sn_eng *e, const struct sn_pkt *p, uint32_t icrc)
{
	uint32_t len = p->head + p->len + 4u, le = htole32(icrc);
	struct timespec ts;

	if (!e->pcap)
		return;
	clock_gettime(CLOCK_REALTIME, &ts);
	{
		const uint32_t rec[4] = { ts.tv_sec, ts.tv_nsec, len, len };

		fwrite(rec, sizeof(rec), 1, e->pcap);
	}
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
