/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The list of flow rules: order, masks, counts, and a random comparison of the search with a
 * model that compares bit by bit.
 */
#include "eth_rq_rig.h"

#define MAX_RULES 24

static struct sn_dev dev;
static struct sn_parsed p;

static void parse(const struct build *b)
{
	build_frame(b);
	sn_eth_parse(rig_frame.data, rig_frame.len, &p);
}

static struct sn_rule *find(void)
{
	return sn_flow_find(dev.rules, &p, false);
}

Test(eth_flow, an_empty_mask_matches_each_frame)
{
	struct sn_rule any = { 0 };

	parse(&(struct build){ .ip = 1 });
	cr_assert_null(find());
	sn_flow_insert(&dev, &any);
	cr_assert_eq(find(), &any);
	memset(any.match, 0xff, sizeof(any.match));
	cr_assert_eq(find(), &any, "bits outside the mask must not matter");
	sn_flow_remove(&any);
	cr_assert_null(find());
}

Test(eth_flow, each_bit_of_the_mask_counts)
{
	struct sn_rule rule = { 0 };

	parse(&(struct build){ .ip = 6, .l4 = 6, .tag_type = { 0x8100 }, .tci = { 0x5a5a } });
	sn_flow_insert(&dev, &rule);
	memcpy(rule.match, p.match, SN_MATCH_LEN);
	memset(rule.mask, 0xff, SN_MATCH_LEN);
	cr_assert_eq(find(), &rule);
	for (unsigned i = 0; i < SN_MATCH_LEN * 8; i++) {
		rule.match[i / 8] ^= (uint8_t)(1 << i % 8);
		cr_assert_null(find(), "bit %u", i);
		rule.mask[i / 8] ^= (uint8_t)(1 << i % 8);
		cr_assert_eq(find(), &rule, "bit %u", i);
		rule.mask[i / 8] ^= (uint8_t)(1 << i % 8);
		rule.match[i / 8] ^= (uint8_t)(1 << i % 8);
	}
}

Test(eth_flow, lower_orders_come_first_and_older_rules_before_newer)
{
	struct sn_rule r[6] = { { .order = 5 }, { .order = 3 },		 { .order = UINT64_MAX },
				{ .order = 3 }, { .order = 1ull << 40 }, { .order = 0 } };
	static const int sorted[] = { 5, 1, 3, 0, 4, 2 };
	struct sn_rule *at;

	parse(&(struct build){ 0 });
	for (int i = 0; i < 6; i++)
		sn_flow_insert(&dev, &r[i]);
	at = find();
	for (int i = 0; i < 6; i++, at = sn_flow_find(at->next, &p, false))
		cr_assert_eq(at, &r[sorted[i]], "position %d", i);
	cr_assert_null(at);
	sn_flow_remove(&r[5]);
	cr_assert_eq(find(), &r[1]);
	sn_flow_remove(&r[3]);
	cr_assert_eq(sn_flow_find(r[1].next, &p, false), &r[0]);
}

Test(eth_flow, rules_of_the_other_direction_do_not_match)
{
	struct sn_rule out = { .egress = true }, in = { .order = 9 };

	parse(&(struct build){ 0 });
	sn_flow_insert(&dev, &out);
	sn_flow_insert(&dev, &in);
	cr_assert_eq(find(), &in);
	cr_assert_eq(sn_flow_find(dev.rules, &p, true), &out);
}

Test(eth_flow, same_rules)
{
	struct sn_rule a = { .order = 4 }, b = { .order = 4 };

	a.mask[3] = b.mask[3] = 0x0f;
	a.match[3] = 0x15;
	b.match[3] = 0x25;
	cr_assert(sn_rule_same(&a, &b), "they differ only outside the mask");
	b.match[3] = 0x24;
	cr_assert_not(sn_rule_same(&a, &b));
	b.match[3] = 0x15;
	b.mask[3] = 0x1f;
	cr_assert_not(sn_rule_same(&a, &b));
	b.mask[3] = 0x0f;
	b.order = 5;
	cr_assert_not(sn_rule_same(&a, &b));
	b.order = 4;
	b.egress = true;
	cr_assert_not(sn_rule_same(&a, &b));
}

Test(eth_flow, hits_are_counted)
{
	struct sn_flow_count n[4] = { { 0 } }, other = { 0 };
	struct sn_flow_counter c = { .n = 4, .count = n }, bytes = { .n = 1, .count = &other };
	struct sn_rule rule = { .counter = &c, .counter_index = 2 }, plain = { 0 };

	sn_rule_hit(&rule, 100);
	rule.bytes_counter = &bytes;
	sn_rule_hit(&rule, 60);
	sn_rule_hit(&plain, 1);
	cr_assert(rule.packets == 2 && rule.bytes == 160);
	cr_assert(n[2].packets == 2 && n[2].bytes == 160);
	cr_assert(other.packets == 1 && other.bytes == 60);
	cr_assert(!n[0].packets && !n[1].packets && !n[3].packets);
	cr_assert(plain.packets == 1 && plain.bytes == 1);
}

/* The first matching rule by a search that knows neither list nor order of insertion. */
static int model(const struct sn_rule *r, const int *age, int n)
{
	int best = -1;

	for (int i = 0; i < n; i++) {
		bool ok = !r[i].egress;

		for (unsigned bit = 0; bit < SN_MATCH_LEN * 8 && ok; bit++)
			if (r[i].mask[bit / 8] >> bit % 8 & 1)
				ok = (r[i].match[bit / 8] >> bit % 8 & 1) ==
				     (p.match[bit / 8] >> bit % 8 & 1);
		if (ok && (best < 0 || r[i].order < r[best].order ||
			   (r[i].order == r[best].order && age[i] < age[best])))
			best = i;
	}
	return best;
}

Test(eth_flow, random_rules_against_a_model)
{
	struct sn_rule r[MAX_RULES];
	int age[MAX_RULES], next_age = 0, expected;

	memset(r, 0, sizeof(r));
	for (int step = 0; step < 20000; step++) {
		int i = rand() % MAX_RULES;

		if (step >= MAX_RULES)
			sn_flow_remove(&r[i]);
		else
			i = step;
		memset(&r[i], 0, sizeof(r[i]));
		r[i].order = (uint64_t)(rand() % 5) << 33;
		r[i].egress = rand() % 8 == 0;
		for (int k = rand() % 3; k > 0; k--) {
			int at = rand() % 64;

			r[i].mask[at] = (uint8_t)(1 << rand() % 8);
			r[i].match[at] = (uint8_t)rand() & r[i].mask[at];
		}
		age[i] = next_age++;
		sn_flow_insert(&dev, &r[i]);
		parse(&(struct build){ .ip = rand() % 2 ? 4 : 6,
				       .l4 = rand() % 2 ? 6 : 17,
				       .sport = (uint16_t)rand(),
				       .dport = (uint16_t)rand(),
				       .tos = (uint8_t)rand() });
		expected = model(r, age, step < MAX_RULES ? step + 1 : MAX_RULES);
		cr_assert_eq(find(), expected < 0 ? NULL : &r[expected], "step %d", step);
	}
}
