/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * An InfiniBand port has neither the capabilities nor the queues of raw Ethernet.
 */
/* softnic-run: --link-layer infiniband */
#include "../lib/rawnic_eth.h"

static uint32_t caps(const struct nic *n, uint32_t type, uint32_t *out, size_t len)
{
	uint32_t in[4] = { 0 };

	put(in, 0, 0x100u << 16);
	put(in, 4, type << 1 | 1);
	memset(out, 0, len);
	mlx5dv_devx_general_cmd(n->ctx, in, sizeof(in), out, len);
	return get(out, 0) >> 24;
}

Test(cmd_eth_infiniband, no_capabilities)
{
	static const uint32_t types[] = { 1, 7, 0xc };
	uint32_t out[0x1010 / 4];
	struct nic n;
	size_t i;

	nic_open(&n);
	cr_expect_eq(caps(&n, 0, out, sizeof(out)), 0);
	cr_expect_eq(get(out, 0x10 + 0x40) >> 3 & 1, 0, "eth_net_offloads");
	cr_expect_eq(get(out, 0x10 + 0x34) >> 25 & 1, 0, "nic_flow_table");
	cr_expect_eq(get(out, 0x10 + 0x6c), 0, "numbers of queues");
	for (i = 0; i < 3; i++)
		cr_expect_eq(caps(&n, types[i], out, sizeof(out)), BAD_PARAM);
	nic_close(&n);
}

Test(cmd_eth_infiniband, no_queues)
{
	struct eth e = { .tisn = 0 };
	uint32_t in[0x110 / 4];

	nic_open(&e.n);
	cq_box(&e.n, in);
	e.cq = make(&e.n, in, 0x110, &e.cqn);
	rq_box(&e, in);
	refuse(&e.n, in, 0x110, BAD_PARAM);
	memset(in, 0, sizeof(in));
	put(in, 0, 0x816u << 16);
	e.td = make(&e.n, in, 16, &e.tdn);
	tis_box(&e, in);
	e.tis = make(&e.n, in, 0xc0, &e.tisn);
	sq_box(&e, in);
	refuse(&e.n, in, 0x110, BAD_PARAM);
	eth_close(&e);
}
