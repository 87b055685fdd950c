/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Address handle attributes (setters and getters), and the UDP source port that the
 * library derives from a path.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "../../qp/verbs/qp.h"
#include "../lib/e2e.h"

Test(ah, getters_return_what_was_set)
{
	struct doca_verbs_gid gid = { .raw = { [10] = 0xff, [11] = 0xff, [15] = 7 } };
	doca_verbs_ah_attr_t *ah;
	struct e2e_nic nic;

	e2e_open(&nic);
	cr_assert_eq(doca_verbs_ah_attr_create(nic.dev, &ah), DOCA_SUCCESS);
	doca_verbs_ah_attr_set_gid(ah, gid);
	doca_verbs_ah_attr_set_addr_type(ah, DOCA_VERBS_ADDR_TYPE_IPv6);
	doca_verbs_ah_attr_set_dlid(ah, 0xffff);
	doca_verbs_ah_attr_set_sl(ah, 15);
	doca_verbs_ah_attr_set_sgid_index(ah, 3);
	doca_verbs_ah_attr_set_hop_limit(ah, 64);
	doca_verbs_ah_attr_set_traffic_class(ah, 106);
	gid = doca_verbs_ah_get_gid(ah);
	cr_assert_eq(gid.raw[15], 7);
	cr_assert_eq(doca_verbs_ah_get_addr_type(ah), DOCA_VERBS_ADDR_TYPE_IPv6);
	cr_assert_eq(doca_verbs_ah_get_dlid(ah), 0xffff);
	cr_assert_eq(doca_verbs_ah_get_sl(ah), 15);
	cr_assert_eq(doca_verbs_ah_get_sgid_index(ah), 3);
	cr_assert_eq(doca_verbs_ah_get_hop_limit(ah), 64);
	cr_assert_eq(doca_verbs_ah_get_traffic_class(ah), 106);
	cr_assert_eq(doca_verbs_ah_attr_set_sl(ah, 16), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(doca_verbs_ah_attr_set_dlid(ah, 0x10000), DOCA_ERROR_INVALID_VALUE);
	cr_assert_eq(doca_verbs_ah_attr_destroy(ah), DOCA_SUCCESS);
	e2e_close(&nic);
}

Test(ah, getters_of_null_are_zero)
{
	cr_assert_eq(doca_verbs_ah_get_sl(NULL), 0);
	cr_assert_eq(doca_verbs_ah_get_gid(NULL).raw[0], 0);
}

Test(ah, udp_sport_is_stable_and_in_range)
{
	uint8_t a[16] = { [15] = 1 }, b[16] = { [15] = 2 };
	uint16_t first = gdk_path_udp_sport(0x40, 0x41, a, b);

	cr_assert_eq(first, gdk_path_udp_sport(0x40, 0x41, a, b));
	for (uint32_t qpn = 0; qpn < 4096; qpn++)
		cr_assert_geq(gdk_path_udp_sport(qpn, qpn + 1, a, b), 0xc000);
}

Test(ah, udp_sport_spreads_over_qps)
{
	uint8_t gid[16] = { [15] = 1 };
	static bool seen[0x10000];
	int distinct = 0;

	for (uint32_t qpn = 0x100; qpn < 0x200; qpn++) {
		uint16_t p = gdk_path_udp_sport(qpn, qpn, gid, gid);

		distinct += !seen[p];
		seen[p] = true;
	}
	cr_assert_gt(distinct, 240, "256 consecutive QPNs gave only %d ports", distinct);
}

Test(ah, udp_sport_depends_on_every_part)
{
	uint8_t a[16] = { [15] = 1 }, b[16] = { [15] = 2 };
	uint16_t p = gdk_path_udp_sport(1, 2, a, b);

	cr_assert_neq(p, gdk_path_udp_sport(3, 2, a, b));
	cr_assert_neq(p, gdk_path_udp_sport(1, 3, a, b));
	cr_assert_neq(p, gdk_path_udp_sport(1, 2, b, b));
	cr_assert_neq(p, gdk_path_udp_sport(1, 2, a, a));
}
