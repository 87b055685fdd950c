/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Destinations of flow rules: a TIR to one RQ, or TIRs that select an RQ from a table (RQT) by a
 * hash. A TIR hashes the ports of one protocol, so there is one for each protocol that rules match.
 * The fields are those that DPDK 22.11 sets (drivers/common/mlx5/mlx5_devx_cmds.c).
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"
#include "core/nic/devx.h"
#include "qp/flow/steer.h"

/* The table of a number of queues that is no power of two has this many entries per queue, so that
 * the shares of two queues differ by at most this fraction. */
#define ENTRIES_PER_QUEUE 16u

static const uint8_t toeplitz_key[GDK_TOEPLITZ_KEY_LEN] = GDK_ETH_HASH_KEY;

static uint32_t table_size(uint32_t n)
{
	return gdk_is_pow2(n) ? n : (uint32_t)gdk_roundup_pow2(n) * ENTRIES_PER_QUEUE;
}

static doca_error_t create_rqt(struct gdk_rss *rss)
{
	const uint32_t entries = table_size(rss->n);
	const size_t len = PRM_CREATE_RQT_IN_LEN + (size_t)entries * PRM_RQT_ENTRY_LEN;
	uint8_t *in = calloc(1, len), *rqtc;
	doca_error_t err;
	uint32_t i;

	if (!in) {
		gdk_err("no memory for a table of %u queues", entries);
		return DOCA_ERROR_NO_MEMORY;
	}
	rqtc = in + PRM_CREATE_RQT_RQTC_AT;
	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_CREATE_RQT);
	prm_set(rqtc, PRM_RQTC_MAX_SIZE, entries);
	prm_set(rqtc, PRM_RQTC_ACTUAL_SIZE, entries);
	for (i = 0; i < entries; i++)
		prm_set(rqtc + PRM_RQTC_RQ_NUM_AT + (size_t)i * PRM_RQT_ENTRY_LEN, PRM_RQ_NUM,
			rss->rxqs[i % rss->n]->rq.number);
	err = gdk_eth_create_obj(rss->dev, "RQT", in, len, GDK_CMD_DESTROY_RQT, &rss->rqt);
	free(in);
	return err;
}

static uint32_t selected_fields(uint32_t hash, enum gdk_rss_kind kind)
{
	uint32_t fields = hash & GDK_ETH_HASH_IPV4 ? GDK_HASH_SRC_IP | GDK_HASH_DST_IP : 0;

	if (kind == GDK_RSS_UDP || kind == GDK_RSS_TCP)
		fields |= GDK_HASH_L4_SPORT | GDK_HASH_L4_DPORT;
	return fields;
}

static doca_error_t create_tir(struct gdk_rss *rss, enum gdk_rss_kind kind)
{
	uint8_t in[PRM_CREATE_TIR_IN_LEN] = { 0 }, *tirc = in + PRM_CREATE_TIR_TIRC_AT;
	uint8_t *outer = tirc + PRM_TIRC_HASH_OUTER_AT;

	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_CREATE_TIR);
	prm_set(tirc, PRM_TIRC_TRANSPORT_DOMAIN, rss->td.number);
	if (kind == GDK_RSS_PLAIN) {
		prm_set(tirc, PRM_TIRC_DISP_TYPE, GDK_TIR_DIRECT);
		prm_set(tirc, PRM_TIRC_INLINE_RQN, rss->rxqs[0]->rq.number);
	} else {
		prm_set(tirc, PRM_TIRC_DISP_TYPE, GDK_TIR_INDIRECT);
		prm_set(tirc, PRM_TIRC_INDIRECT_TABLE, rss->rqt.number);
		prm_set(tirc, PRM_TIRC_RX_HASH_FN, GDK_RX_HASH_TOEPLITZ);
		memcpy(tirc + PRM_TIRC_TOEPLITZ_KEY_AT, toeplitz_key, sizeof(toeplitz_key));
		prm_set(outer, PRM_HASH_L4_PROT_TYPE,
			kind == GDK_RSS_UDP ? GDK_HASH_L4_UDP : GDK_HASH_L4_TCP);
		prm_set(outer, PRM_HASH_SELECTED, selected_fields(rss->hash, kind));
	}
	return gdk_eth_create_obj(rss->dev, "TIR", in, sizeof(in), GDK_CMD_DESTROY_TIR,
				  &rss->tir[kind]);
}

/* A TIR can hash only headers that each packet of its rules has. */
static doca_error_t kind_of(const struct gdk_rss *rss, const struct gdk_eth_match *match,
			    enum gdk_rss_kind *kind)
{
	const uint32_t ports = GDK_ETH_HASH_UDP | GDK_ETH_HASH_TCP;
	const int protocol = gdk_match_protocol(match);

	*kind = GDK_RSS_OTHER;
	if (rss->hash & GDK_ETH_HASH_UDP && protocol == IPPROTO_UDP)
		*kind = GDK_RSS_UDP;
	else if (rss->hash & GDK_ETH_HASH_TCP && protocol == IPPROTO_TCP)
		*kind = GDK_RSS_TCP;
	else if (!rss->hash)
		*kind = GDK_RSS_PLAIN;
	if (rss->hash & GDK_ETH_HASH_IPV4 && !gdk_match_ipv4(match)) {
		gdk_err("a hash of IPv4 addresses for a rule that does not match IPv4 only: match "
			"ether_type 0x0800 as well");
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	if (rss->hash & ports && *kind == GDK_RSS_OTHER &&
	    (protocol < 0 || !(rss->hash & GDK_ETH_HASH_IPV4))) {
		gdk_err("a hash of ports (0x%x) for a rule that does not match UDP or TCP only: "
			"match ip_protocol as well",
			rss->hash);
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	return DOCA_SUCCESS;
}

doca_error_t gdk_rss_tir(struct gdk_rss *rss, const struct gdk_eth_match *match,
			 struct mlx5dv_devx_obj **tir)
{
	enum gdk_rss_kind kind;
	doca_error_t err = kind_of(rss, match, &kind);

	if (!err && !rss->tir[kind].obj)
		err = create_tir(rss, kind);
	if (!err)
		*tir = rss->tir[kind].obj;
	return err;
}

static void release_queues(struct gdk_rss *rss)
{
	uint32_t i;

	for (i = 0; i < rss->n; i++)
		gdk_eth_rxq_release(rss->rxqs[i]);
	free(rss->rxqs);
}

doca_error_t gdk_rss_create(doca_dev_t *dev, struct doca_eth_rxq *const rxqs[], uint32_t n,
			    uint32_t hash, struct gdk_rss **rss)
{
	struct gdk_rss *r = calloc(1, sizeof(*r));
	doca_error_t err = DOCA_ERROR_NO_MEMORY;
	uint32_t i;

	if (r)
		r->rxqs = calloc(n, sizeof(rxqs[0]));
	if (!r || !r->rxqs) {
		gdk_err("no memory for a rule to %u queues", n);
		goto free_rss;
	}
	r->dev = dev;
	r->hash = hash;
	r->n = n;
	for (i = 0; i < n; i++) {
		r->rxqs[i] = rxqs[i];
		gdk_eth_rxq_hold(rxqs[i]);
	}
	err = gdk_eth_create_td(dev, &r->td);
	if (err)
		goto release;
	err = hash ? create_rqt(r) : DOCA_SUCCESS;
	if (err)
		goto destroy_td;
	atomic_fetch_add(&dev->users, 1);
	*rss = r;
	return DOCA_SUCCESS;

destroy_td:
	(void)gdk_eth_destroy_obj(dev, &r->td);
release:
	release_queues(r);
	r->rxqs = NULL;
free_rss:
	if (r)
		free(r->rxqs);
	free(r);
	return err;
}

doca_error_t gdk_rss_destroy(struct gdk_rss *rss)
{
	doca_error_t err = DOCA_SUCCESS;
	unsigned int i;

	if (rss->rules) {
		gdk_err("%u rules still steer packets to the queues", rss->rules);
		return DOCA_ERROR_IN_USE;
	}
	for (i = 0; i < GDK_RSS_KINDS && !err; i++)
		err = gdk_eth_destroy_obj(rss->dev, &rss->tir[i]);
	if (!err)
		err = gdk_eth_destroy_obj(rss->dev, &rss->rqt);
	if (!err)
		err = gdk_eth_destroy_obj(rss->dev, &rss->td);
	if (err)
		return err;
	release_queues(rss);
	atomic_fetch_sub(&rss->dev->users, 1);
	free(rss);
	return DOCA_SUCCESS;
}
