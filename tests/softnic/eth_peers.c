/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Where frames go. The Ethernet address 02:00:a:b:c:d is that of the software NIC with
 * the IPv4 address a.b.c.d, or with the IPv6 address that ends with these four bytes and
 * begins as the own one (sn_mac_of_ip()).
 * The sources of other addresses are learned and forgotten as by a bridge. Broadcasts,
 * multicasts and frames to unknown addresses go to the hosts of --eth-peers and to all
 * hosts that sent a frame. Both tables are bounded: the host that was used least
 * recently is replaced, and of four possible entries of a MAC the oldest.
 */
#include "eth_wire.h"

#define WAYS	  4u		  /* entries of the MAC table that one address can use */
#define FORGET_NS 300000000000ull /* as a bridge of Linux by default */

/* ---- hosts ---- */

static bool is_free(const struct sn_eth_host *h)
{
	return IN6_IS_ADDR_UNSPECIFIED(&h->ip);
}

/* Returns the host's entry; if there is none, an entry that may be replaced. */
static struct sn_eth_host *find_host(struct sn_eth_port *port, const struct in6_addr *ip)
{
	struct sn_eth_host *h, *old = NULL;

	for (h = port->hosts; h < port->hosts + SN_ETH_HOSTS; h++) {
		if (sn_addr_same(&h->ip, ip))
			return h;
		if (!h->fixed && (!old || is_free(h) || (!is_free(old) && h->used < old->used)))
			old = h;
	}
	return old;
}

struct sn_eth_host *sn_eth_host(struct sn_eng *e, const struct in6_addr *ip)
{
	struct sn_eth_host *h = find_host(e->eth, ip);

	if (!sn_addr_same(&h->ip, ip)) {
		e->eth->ndue -= h->rx.due;
		sn_peer_put(e, h->peer);
		*h = (struct sn_eth_host){ .ip = *ip };
	}
	h->used = e->now;
	return h;
}

struct sn_eth_host *sn_eth_known_host(struct sn_eng *e, const struct in6_addr *ip)
{
	struct sn_eth_host *h = find_host(e->eth, ip);

	return sn_addr_same(&h->ip, ip) ? h : NULL;
}

void sn_eth_hosts_init(struct sn_eng *e)
{
	const struct sn_cfg *cfg = &e->dev->cfg;
	unsigned i;

	for (i = 0; i < cfg->eth_npeers; i++)
		if (!sn_addr_same(&cfg->eth_peers[i], &cfg->ip))
			sn_eth_host(e, &cfg->eth_peers[i])->fixed = true;
}

void sn_eth_hosts_close(struct sn_eng *e)
{
	struct sn_eth_host *h;

	for (h = e->eth->hosts; h < e->eth->hosts + SN_ETH_HOSTS; h++)
		sn_peer_put(e, h->peer);
}

/* ---- Ethernet addresses ---- */

/* Returns true if a software NIC with an address in the network of `own` may have this MAC. */
static bool mac_names_host(const struct in6_addr *own, const uint8_t mac[6], struct in6_addr *ip)
{
	if (mac[0] != 0x02 || mac[1])
		return false;
	*ip = *own;
	memcpy(ip->s6_addr + 12, mac + 2, 4);
	return !IN6_IS_ADDR_V4MAPPED(ip) || (mac[2] && mac[2] < 224);
}

static struct sn_eth_mac *mac_set(struct sn_eth_port *port, const uint8_t mac[6])
{
	uint32_t hash = sn_get32(mac + 2) * 2654435761u + (uint32_t)(mac[0] << 8 | mac[1]) * 40503u;

	return &port->macs[(hash >> 16) % (SN_ETH_MACS / WAYS) * WAYS];
}

static bool is_known(const struct sn_eth_mac *m, const uint8_t mac[6])
{
	return !IN6_IS_ADDR_UNSPECIFIED(&m->ip) && !memcmp(m->mac, mac, 6);
}

static void learn_mac(struct sn_eng *e, const uint8_t mac[6], const struct in6_addr *ip)
{
	struct sn_eth_mac *set = mac_set(e->eth, mac), *at = set;
	unsigned i;

	for (i = 0; i < WAYS; i++) {
		if (is_known(&set[i], mac)) {
			at = &set[i];
			break;
		}
		if (set[i].seen < at->seen)
			at = &set[i];
	}
	memcpy(at->mac, mac, 6);
	at->ip = *ip;
	at->seen = e->now;
}

/* Addresses of software NICs are computed, never learned, so that another host cannot redirect
 * their frames. */
void sn_eth_learn(struct sn_eng *e, const struct sn_frame *f)
{
	const uint8_t *src = f->data + 6;
	struct in6_addr ip;

	if (sn_addr_same(&f->peer, &e->dev->cfg.ip))
		return;
	sn_eth_host(e, &f->peer)->heard = true;
	if (f->len >= SN_ETH_FRAME_MIN && !(src[0] & 1) &&
	    !mac_names_host(&e->dev->cfg.ip, src, &ip))
		learn_mac(e, src, &f->peer);
}

/* Returns the host with this address; NULL: unknown. */
static struct sn_eth_host *host_of_mac(struct sn_eng *e, const uint8_t mac[6])
{
	struct sn_eth_mac *set = mac_set(e->eth, mac);
	struct in6_addr ip;
	unsigned i;

	if (mac_names_host(&e->dev->cfg.ip, mac, &ip))
		return sn_eth_host(e, &ip);
	for (i = 0; i < WAYS; i++)
		if (is_known(&set[i], mac) && e->now - set[i].seen < FORGET_NS)
			return sn_eth_host(e, &set[i].ip);
	return NULL;
}

static void route_to_all(struct sn_eng *e, struct sn_eth_route *r)
{
	struct sn_eth_host *h;

	for (h = e->eth->hosts; h < e->eth->hosts + SN_ETH_HOSTS; h++)
		if (!is_free(h) && (h->fixed || h->heard))
			r->host[r->n++] = h;
}

void sn_eth_find_route(struct sn_eng *e, const struct sn_frame *f, struct sn_eth_route *r)
{
	uint8_t own[6];

	r->n = r->dropped = 0;
	r->local = sn_eth_wants(e, f);
	sn_mac_of_ip(&e->dev->cfg.ip, own);
	if (!memcmp(f->data, own, 6))
		return;
	if (e->eth->packet) {
		r->host[0] = NULL;
		r->n = 1;
		return;
	}
	if (!(f->data[0] & 1)) {
		r->host[0] = host_of_mac(e, f->data);
		r->n = r->host[0] != NULL;
	}
	if (!r->n)
		route_to_all(e, r);
}
