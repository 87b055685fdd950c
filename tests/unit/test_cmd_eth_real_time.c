/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A device with real-time stamps only, which can wait for a time: formats of queues and
 * capabilities.
 */
/* softnic-run: --ts-format real --wait-on-time 1 */
#include "../lib/rawnic_eth.h"

enum { FREE_RUNNING, DEFAULT, REAL_TIME };

Test(cmd_eth_real_time, formats_of_queues)
{
	uint32_t box[0x110 / 4];
	struct eth e;

	eth_open_until_sq(&e, DEFAULT);
	sq_box(&e, box);
	refuse(&e.n, box, 0x110, BAD_PARAM); /* free running */
	set(box, 0x20, 0x30, REAL_TIME << 4);
	mlx5dv_devx_obj_destroy(make(&e.n, box, 0x110, NULL));
	rq_box(&e, box);
	refuse(&e.n, box, 0x110, BAD_PARAM);
	set(box, 0x20, 0x30, REAL_TIME << 4);
	mlx5dv_devx_obj_destroy(make(&e.n, box, 0x110, NULL));
	set(box, 0x20, 0x30, DEFAULT << 4);
	mlx5dv_devx_obj_destroy(make(&e.n, box, 0x110, NULL));
	eth_close(&e);
}

Test(cmd_eth_real_time, capabilities)
{
	uint32_t in[4] = { 0 }, out[0x1010 / 4] = { 0 };
	struct nic n;

	nic_open(&n);
	put(in, 0, 0x100u << 16);
	put(in, 4, 1);
	cr_assert_eq(mlx5dv_devx_general_cmd(n.ctx, in, sizeof(in), out, sizeof(out)), 0);
	cr_expect_eq(get(out, 0x10 + 0x88) >> 28, 5, "sq_ts_format and rq_ts_format: real time");
	cr_expect_eq(get(out, 0x10 + 0x9c), 1000000, "device_frequency_khz");
	cr_expect_eq(get(out, 0x10 + 0xd0) >> 19 & 1, 1, "wait_on_time");
	nic_close(&n);
}
