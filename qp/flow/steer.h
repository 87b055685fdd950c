/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Private definitions of flow rules: matches (match.c), what packets are steered to (rss.c) and
 * rules in the root table of the NIC (rule.c). gdk_eth_steer() and DOCA Flow stand on them. The
 * callers serialize calls on one gdk_rss and its rules.
 */
#ifndef GDK_STEER_H
#define GDK_STEER_H

#include "qp/eth/eth.h"

#include "gdk_eth_steer.h"

/* ---- matches (match.c) ---- */

/* Checks that the NIC can compare the fields of the mask, and that the value has no other bits.
 * Logs errors; what: for messages. */
doca_error_t gdk_match_check(const struct gdk_eth_match *match, const char *what);
/* Adds the fields of from to match. Returns NULL, or the name of a field in which both require
 * different values: no packet matches. */
const char *gdk_match_add(struct gdk_eth_match *match, const struct gdk_eth_match *from);
bool gdk_match_same(const struct gdk_eth_match *a, const struct gdk_eth_match *b);
/* Writes the outer headers of a match; PRM_FTE_LYR_2_4_LEN bytes that are 0 before. */
void gdk_match_fill(const struct gdk_eth_fields *fields, bool udp, void *headers);
/* The kernel puts a rule that this returns true for behind all others, whatever its priority. */
bool gdk_match_multicast(const struct gdk_eth_match *match);
/* The protocol of layer 4 that the match requires, or -1. */
int gdk_match_protocol(const struct gdk_eth_match *match);
bool gdk_match_ipv4(const struct gdk_eth_match *match);

/* ---- destinations (rss.c) ---- */

/* What the TIR hashes; one TIR each, created for the first rule that needs it. */
enum gdk_rss_kind {
	GDK_RSS_PLAIN, /* nothing: one queue */
	GDK_RSS_OTHER, /* as the flags say, without ports */
	GDK_RSS_UDP,
	GDK_RSS_TCP,
	GDK_RSS_KINDS,
};

struct gdk_rss {
	doca_dev_t *dev;
	uint32_t hash; /* bits of enum gdk_eth_hash */
	uint32_t n;
	uint32_t rules; /* rules that use it */
	struct gdk_eth_obj td, rqt, tir[GDK_RSS_KINDS];
	struct doca_eth_rxq **rxqs; /* held */
};

/* rxqs: RXQs that run. The result holds them. */
doca_error_t gdk_rss_create(doca_dev_t *dev, struct doca_eth_rxq *const rxqs[], uint32_t n,
			    uint32_t hash, struct gdk_rss **rss);
/* After an error the object is valid, and may be destroyed again. IN_USE: rules use it. */
doca_error_t gdk_rss_destroy(struct gdk_rss *rss);
/* Creates the TIR that a match needs, unless it exists. */
doca_error_t gdk_rss_tir(struct gdk_rss *rss, const struct gdk_eth_match *match,
			 struct mlx5dv_devx_obj **tir);

/* ---- rules (rule.c) ---- */

struct gdk_rule {
	doca_dev_t *dev;
	struct gdk_rss *rss; /* NULL: packets are dropped */
	struct gdk_eth_obj counter;
	struct mlx5dv_flow_matcher *matcher;
	struct ibv_flow *flow;
};

/* priority: 0 to GDK_ETH_PRIORITY_LAST; counted: the rule has a counter. The match is checked. */
doca_error_t gdk_rule_create(doca_dev_t *dev, const struct gdk_eth_match *match, uint32_t priority,
			     struct gdk_rss *rss, bool counted, struct gdk_rule **rule);
/* After an error the object is valid, and may be destroyed again. */
doca_error_t gdk_rule_destroy(struct gdk_rule *rule);
/* Adds the values of the rule's counter, which must exist. */
doca_error_t gdk_rule_query(struct gdk_rule *rule, uint64_t *packets, uint64_t *bytes);

#endif
