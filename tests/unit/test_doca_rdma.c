/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The RDMA library on the software NIC: each operation in strong and weak mode, commits and waits,
 * positions, receives and the connection indices of their results.
 */
#include "rdma_rig.h"

static void fill(uint8_t *p, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 31 + seed * 7 + (i >> 8));
}

Test(doca_rdma, strong_writes_arrive_once_they_are_committed, .timeout = 60)
{
	uint32_t num = 77;
	struct rig r;

	rig_begin(&r, (struct rig_how){ .conns = 1 });
	for (uint32_t i = 0; i < 8; i++) {
		fill(r.a.m.mem + 256 * i, 256, i);
		OK(doca_gpu_dev_rdma_write_strong(r.a.dev, 0, rig_remote(&r.b, i), 0,
						  rig_buf(&r.a, i), 0, 256, 0,
						  DOCA_GPU_RDMA_WRITE_FLAG_NONE));
	}
	OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
	OK(doca_gpu_dev_rdma_wait_all(r.a.dev, &num));
	cr_expect_eq(num, 1, "%u commits", num);
	cr_expect_arr_eq(r.a.m.mem, r.b.m.mem, 8 * 256);
	rig_end(&r);
}
