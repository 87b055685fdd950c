/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * gdk_eth_steer(): a rule with queues of its own.
 */
#include <stdlib.h>

#include "core/log/log.h"
#include "qp/flow/steer.h"

#define HASH_ALL (GDK_ETH_HASH_IPV4 | GDK_ETH_HASH_UDP | GDK_ETH_HASH_TCP)

struct gdk_eth_rule {
	struct gdk_rule *rule; /* NULL: destroyed, and only rss is left */
	struct gdk_rss *rss;   /* NULL: packets are dropped */
};

static doca_error_t check_queues(const struct doca_dev *dev, struct doca_eth_rxq *const rxqs[],
				 uint32_t n, uint32_t hash)
{
	uint32_t i;

	GDK_CHECK_RANGE(n, 0, GDK_ETH_QUEUES_MAX);
	GDK_CHECK_ARG(!(hash & ~(uint32_t)HASH_ALL), "hash 0x%x (expected bits of 0x%x)", hash,
		      HASH_ALL);
	GDK_CHECK_ARG(hash || n <= 1, "hash 0 with %u queues (expected a hash or one queue)", n);
	GDK_CHECK_ARG(!n || rxqs, "rxqs NULL with %u queues", n);
	for (i = 0; i < n; i++) {
		GDK_CHECK_ARG(rxqs[i], "rxqs[%u] NULL", i);
		GDK_CHECK_ARG(rxqs[i]->ctx.dev == dev, "rxqs[%u]: a queue of another NIC", i);
		if (!gdk_eth_rxq_runs(rxqs[i], __func__))
			return DOCA_ERROR_BAD_STATE;
	}
	return DOCA_SUCCESS;
}

doca_error_t gdk_eth_steer(struct doca_dev *dev, const struct gdk_eth_match *match,
			   struct doca_eth_rxq *const rxqs[], uint32_t n, uint32_t hash,
			   uint32_t priority, struct gdk_eth_rule **rule)
{
	struct gdk_eth_rule *r;
	doca_error_t err;

	GDK_CHECK_PTR(dev);
	GDK_CHECK_PTR(match);
	GDK_CHECK_PTR(rule);
	GDK_CHECK_RANGE(priority, 0, GDK_ETH_PRIORITY_LAST);
	err = gdk_match_check(match, "a rule");
	if (!err)
		err = check_queues(dev, rxqs, n, hash);
	if (err)
		return err;
	r = calloc(1, sizeof(*r));
	if (!r) {
		gdk_err("no memory for a flow rule");
		return DOCA_ERROR_NO_MEMORY;
	}
	err = n ? gdk_rss_create(dev, rxqs, n, hash, &r->rss) : DOCA_SUCCESS;
	if (err)
		goto free_rule;
	err = gdk_rule_create(dev, match, priority, r->rss, true, &r->rule);
	if (err)
		goto destroy_rss;
	*rule = r;
	return DOCA_SUCCESS;

destroy_rss:
	if (r->rss)
		(void)gdk_rss_destroy(r->rss);
free_rule:
	free(r);
	return err;
}

doca_error_t gdk_eth_steer_destroy(struct gdk_eth_rule *rule)
{
	doca_error_t err = DOCA_SUCCESS;

	GDK_CHECK_PTR(rule);
	if (rule->rule)
		err = gdk_rule_destroy(rule->rule);
	if (err)
		return err;
	rule->rule = NULL;
	err = rule->rss ? gdk_rss_destroy(rule->rss) : DOCA_SUCCESS;
	if (!err)
		free(rule);
	return err;
}

doca_error_t gdk_eth_steer_query(struct gdk_eth_rule *rule, uint64_t *packets, uint64_t *bytes)
{
	uint64_t p = 0, b = 0;
	doca_error_t err;

	GDK_CHECK_PTR(rule);
	GDK_CHECK_PTR(packets);
	GDK_CHECK_PTR(bytes);
	if (!rule->rule) {
		gdk_err("the rule is destroyed in part; repeat gdk_eth_steer_destroy()");
		return DOCA_ERROR_BAD_STATE;
	}
	err = gdk_rule_query(rule->rule, &p, &b);
	if (err)
		return err;
	*packets = p;
	*bytes = b;
	return DOCA_SUCCESS;
}
