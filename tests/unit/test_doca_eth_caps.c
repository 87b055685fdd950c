/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Each Ethernet capability is read from its own place in the reply of the firmware. The places
 * are numbers of the PRM, not constants of the library: a byte, a shift and a value.
 */
#include <criterion/criterion.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

#include "../../qp/eth/eth.h"
#include "../lib/nic.h"

#define REPLY_AT 0x10u
#define GENERAL	 0u /* general device capabilities; 1: Ethernet offloads */

struct place {
	unsigned group, byte, shift, value;
};

/* An Ethernet port whose functions have queues and flow tables of their own. */
static const struct place port[] = { { GENERAL, 0x36, 0, 1 },
				     { GENERAL, 0x43, 3, 1 },
				     { GENERAL, 0x34, 1, 1 } };
static const struct place *reply[4];

static void put(uint8_t *out, const struct place *p, unsigned group)
{
	if (p && p->group == group)
		out[REPLY_AT + p->byte] |= (uint8_t)(p->value << p->shift);
}

int mlx5dv_devx_general_cmd(struct ibv_context *ctx, const void *in, size_t inlen, void *out,
			    size_t outlen)
{
	const uint8_t *box = in;
	unsigned i;

	cr_assert(ctx && inlen >= 16 && outlen == 0x1010);
	cr_assert(box[0] == 1 && box[1] == 0 && box[6] == 0, "not QUERY_HCA_CAP");
	cr_assert(box[7] & 1, "not the current capabilities");
	memset(out, 0, outlen);
	for (i = 0; i < 4; i++)
		put(out, reply[i], box[7] >> 1);
	return 0;
}

static struct gdk_eth_caps caps_with(struct ibv_context *ctx, const struct place *more)
{
	struct gdk_eth_caps caps;
	unsigned i;

	for (i = 0; i < 3; i++)
		reply[i] = &port[i];
	reply[3] = more;
	cr_assert_eq(gdk_eth_query_caps(ctx, &caps), DOCA_SUCCESS);
	return caps;
}

#define EXPECT(place_, ...) \
	do { \
		const struct place p_ = place_; \
		const struct gdk_eth_caps c_ = caps_with(ctx, &p_), \
					  e_ = { .ethernet = true, __VA_ARGS__ }; \
\
		cr_expect(!memcmp(&c_, &e_, sizeof(c_)), #__VA_ARGS__); \
	} while (0)
#define PLACE(...) ((struct place){ __VA_ARGS__ })

Test(doca_eth_caps, each_is_read_from_its_place)
{
	struct ibv_context *ctx = nic_open_context();

	/* wqe_inline_mode 0: each WQE contains the Ethernet header */
	EXPECT(PLACE(GENERAL, 0x00, 0, 0), .inline_l2 = true);
	EXPECT(PLACE(GENERAL, 0xd1, 3, 1), .inline_l2 = true, .wait_on_time = true);
	EXPECT(PLACE(GENERAL, 0x88, 6, 3), .inline_l2 = true, .sq_ts = 3);
	EXPECT(PLACE(GENERAL, 0x88, 4, 3), .inline_l2 = true, .rq_ts = 3);
	EXPECT(PLACE(1, 0x03, 5, 1), .inline_l2 = true, .empw = true);
	EXPECT(PLACE(1, 0x00, 7, 1), .inline_l2 = true, .csum = true);
	EXPECT(PLACE(1, 0x02, 4, 1), .inline_l2 = false);
	ibv_close_device(ctx);
}

Test(doca_eth_caps, a_port_needs_all_of_three)
{
	struct ibv_context *ctx = nic_open_context();
	struct gdk_eth_caps caps;
	unsigned without;

	for (without = 0; without < 3; without++) {
		caps_with(ctx, NULL);
		reply[without] = NULL;
		cr_assert_eq(gdk_eth_query_caps(ctx, &caps), DOCA_SUCCESS);
		cr_expect(!caps.ethernet, "without place %u", without);
	}
	ibv_close_device(ctx);
}
