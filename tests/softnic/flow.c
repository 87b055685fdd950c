/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Flow rules: one list of the device in ascending order, and the search for the rules that
 * match a frame. Among rules of equal order the oldest comes first.
 */
#include "eng.h"
#include "eth.h"

void sn_flow_insert(struct sn_dev *dev, struct sn_rule *rule)
{
	struct sn_rule **at = &dev->rules;

	while (*at && (*at)->order <= rule->order)
		at = &(*at)->next;
	SN_LINK(at, rule, next, at);
}

void sn_flow_remove(struct sn_rule *rule)
{
	SN_UNLINK(rule, next, at);
}

static bool matches(const struct sn_rule *r, const uint8_t *frame)
{
	uint64_t f, mask, value;
	unsigned i;

	for (i = 0; i < SN_MATCH_LEN; i += 8) {
		memcpy(&f, frame + i, 8);
		memcpy(&mask, r->mask + i, 8);
		memcpy(&value, r->match + i, 8);
		if ((f ^ value) & mask)
			return false;
	}
	return true;
}

struct sn_rule *sn_flow_find(struct sn_rule *from, const struct sn_parsed *p, bool egress)
{
	for (; from; from = from->next)
		if (from->egress == egress && matches(from, p->match))
			break;
	return from;
}

bool sn_rule_same(const struct sn_rule *a, const struct sn_rule *b)
{
	unsigned i;

	if (a->order != b->order || a->egress != b->egress ||
	    memcmp(a->mask, b->mask, SN_MATCH_LEN))
		return false;
	for (i = 0; i < SN_MATCH_LEN; i++)
		if ((a->match[i] ^ b->match[i]) & a->mask[i])
			return false;
	return true;
}

void sn_rule_hit(struct sn_rule *rule, uint32_t bytes)
{
	struct sn_flow_count *count;

	rule->packets++;
	rule->bytes += bytes;
	if (rule->counter) {
		count = &rule->counter->count[rule->counter_index];
		count->packets++;
		count->bytes += bytes;
	}
	if (rule->bytes_counter) {
		rule->bytes_counter->count->packets++;
		rule->bytes_counter->count->bytes += bytes;
	}
}
