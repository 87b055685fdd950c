/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The CQE of a received frame: each field, at the offsets where Linux's and DPDK's mlx5 drivers
 * and libmlx5 read it; time stamps in both formats.
 */
#include <infiniband/mlx5dv.h>
#include <time.h>

#include "eth_rq_rig.h"

static struct rig_rq rq;
static struct sn_rule rule;
static uint8_t cqe[64];

static void setup(void)
{
	rig_open();
	rig_rq_init(&rq, 0x40);
	rule = rig_rule(1, &rq.tir);
	sn_flow_insert(sn_dev, &rule);
	rig_post(&rq, FAKE_DEPTH, RIG_BUF);
}

static void teardown(void)
{
	rig_rq_fini(&rq);
	fake_close();
}

TestSuite(eth_recv_cqe, .init = setup, .fini = teardown);

static void receive_again(void)
{
	cr_assert_eq(rig_receive(), SN_ETH_TAKEN);
	cr_assert(rig_cqe(&rq, cqe), "no CQE");
}

static void receive(const struct build *b)
{
	build_frame(b);
	receive_again();
}

static unsigned type(void)
{
	return (unsigned)cqe[0x1c] << 8 | cqe[0x1d];
}

Test(eth_recv_cqe, fields_that_are_not_used_are_zero)
{
	static const uint8_t used[64] = {
		[0x14] = 1, [0x15] = 1, [0x1c] = 1, [0x1d] = 1, [0x23] = 1, [0x2e] = 1,
		[0x2f] = 1, [0x30] = 1, [0x31] = 1, [0x32] = 1, [0x33] = 1, [0x34] = 1,
		[0x35] = 1, [0x36] = 1, [0x37] = 1, [0x3d] = 1, [0x3f] = 1,
	};

	receive(&(struct build){ .payload = 300 });
	for (unsigned i = 0; i < 64; i++)
		cr_assert(used[i] || !cqe[i], "byte 0x%x is 0x%x", i, cqe[i]);
	cr_assert_eq(cqe[0x3f], 0x20, "opcode 2, not solicited, owner 0");
	cr_assert_eq(sn_get32(cqe + 0x20), 0x55, "user index");
	cr_assert_eq(sn_get32(cqe + 0x2c), 14 + 20 + 8 + 300);
	cr_assert_eq(cqe[0x3d], 0);
	receive_again();
	cr_assert_eq(cqe[0x3d], 1, "WQE counter");
}

Test(eth_recv_cqe, types_of_headers)
{
	static const uint8_t ext[8] = { 17 }, frag[8] = { 17, 0, 0, 1 };
	const struct {
		struct build b;
		unsigned type;
	} t[] = {
		{ { .ip = 1, .payload = 46 }, 0x100 },
		{ { .l4 = 17 }, 0x728 },
		{ { .l4 = 6 }, 0x718 },
		{ { .l4 = 6, .payload = 9 }, 0x718 },
		{ { .l4 = 6, .tcp_flags = 0x10 }, 0x738 },
		{ { .l4 = 6, .tcp_flags = 0x12 }, 0x738 },
		{ { .l4 = 6, .tcp_flags = 0x18, .payload = 1 }, 0x748 },
		{ { .l4 = 1, .payload = 8 }, 0x308 },
		{ { .l4 = 17, .options = 4 }, 0x72a },
		{ { .l4 = 17, .fragment = 0x2000, .payload = 8 }, 0x388 },
		{ { .l4 = 6, .fragment = 0x0001, .payload = 8 }, 0x388 },
		{ { .l4 = 6, .fragment = 0x4000 }, 0x718 },
		{ { .ip = 6, .l4 = 17 }, 0x724 },
		{ { .ip = 6, .l4 = 6, .tcp_flags = 0x10 }, 0x734 },
		{ { .ip = 6, .l4 = 58, .payload = 8 }, 0x304 },
		{ { .ip = 6, .ext = ext, .ext_len = 8 }, 0x726 },
		{ { .ip = 6, .ext = frag, .ext_len = 8, .first_ext = 44 }, 0x386 },
	};

	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		receive(&t[i].b);
		cr_assert_eq(type(), t[i].type, "case %u: 0x%x", i, type());
	}
}

Test(eth_recv_cqe, wrong_checksums_are_not_reported_as_right)
{
	build_frame(&(struct build){ .payload = 4 });
	rig_frame.data[24]++;
	receive_again();
	cr_assert_eq(type(), 0x528);
	build_frame(&(struct build){ .l4 = 6, .payload = 4 });
	rig_frame.data[56]++;
	receive_again();
	cr_assert_eq(type(), 0x318);
	build_frame(&(struct build){ .payload = 4 });
	put16(rig_frame.data + 40, 0);
	receive_again();
	cr_assert_eq(type(), 0x728, "UDP without a checksum counts as right");
	build_frame(&(struct build){ .payload = 4 });
	rig_frame.data[14] = 0x44;
	receive_again();
	cr_assert_eq(type(), 0x100, "an IP header that is too short is no IP header");
}

/* libmlx5 reports a right checksum for IPv4 only if both are right. */
Test(eth_recv_cqe, libmlx5_reads_the_same_fields)
{
	struct mlx5_cqe64 c;

	receive(&(struct build){ .tag_type = { 0x8100 }, .tci = { 0xa123 } });
	memcpy(&c, cqe, 64);
	cr_assert_eq(c.hds_ip_ext, MLX5_CQE_L2_OK | MLX5_CQE_L3_OK | MLX5_CQE_L4_OK);
	cr_assert_eq(c.l4_hdr_type_etc >> 2 & 3, MLX5_CQE_L3_HDR_TYPE_IPV4);
	cr_assert_eq(be32toh(c.byte_cnt), 14 + 4 + 28);
	cr_assert_eq(be32toh(c.srqn_uidx), 0x55);
	cr_assert_eq(c.vlan_info, 0, "not stripped");
	rq.eth.keep_vlan = false;
	receive_again();
	memcpy(&c, cqe, 64);
	cr_assert_eq(be16toh(c.vlan_info), 0xa123);
	cr_assert_eq(c.l4_hdr_type_etc & 1, 1);
	cr_assert_eq(be32toh(c.byte_cnt), 14 + 28);
	cr_assert_eq(mlx5dv_get_cqe_opcode(&c), MLX5_CQE_RESP_SEND);
}

/* The sum covers the IP packet only. */
Test(eth_recv_cqe, sum_of_the_packet)
{
	const struct build b[] = {
		{ .payload = 101, .pad = 7 },
		{ .ip = 6,
		  .l4 = 6,
		  .payload = 60,
		  .tag_type = { 0x88a8, 0x8100 },
		  .tci = { 1, 2 } },
		{ .l4 = 1, .payload = 33, .options = 12, .fragment = 0x2000, .pad = 1 },
	};
	const uint32_t from[] = { 14, 22, 14 };

	for (int i = 0; i < 3; i++) {
		receive(&b[i]);
		cr_assert_eq(
			cqe[0x14] << 8 | cqe[0x15],
			slow_sum(0, rig_frame.data + from[i], rig_frame.len - b[i].pad - from[i]),
			"case %d", i);
	}
	receive(&(struct build){ .ip = 1, .payload = 50 });
	cr_assert_eq(cqe[0x14] | cqe[0x15], 0);
}

Test(eth_recv_cqe, flow_tag)
{
	rule.tag = 0xabcdef;
	receive(&(struct build){ 0 });
	cr_assert_eq(sn_get32(cqe + 0x38), 0, "set_tag is not set");
	rule.set_tag = true;
	receive_again();
	cr_assert_eq(sn_get32(cqe + 0x38), 0xabcdef);
}

Test(eth_recv_cqe, hash_and_its_type)
{
	struct sn_qp *entry = &rq.q.qp;
	struct sn_rqt rqt = { .rq = &entry, .n = 1, .max = 1 };
	struct sn_parsed p;
	uint8_t t;

	receive(&(struct build){ .sport = 7 });
	cr_assert_eq(sn_get32(cqe + 0x0c) | cqe[0x10], 0, "a direct TIR does not hash");
	rq.tir = (struct sn_tir){ .rqt = &rqt,
				  .fn = SN_HASH_TOEPLITZ,
				  .fields = 15,
				  .udp = true,
				  .key = { 0x5a, 0xa5, 0x77 } };
	receive_again();
	sn_eth_parse(rig_frame.data, rig_frame.len, &p);
	cr_assert_eq(sn_get32(cqe + 0x0c), sn_eth_hash(&rq.tir, rig_frame.data, &p, &t));
	cr_assert_neq(sn_get32(cqe + 0x0c), 0);
	cr_assert_eq(cqe[0x10], 0x84);
}

/* ---- time stamps ---- */

static uint64_t stamp(uint8_t format, uint8_t capability)
{
	rq.q.qp.ts_format = format;
	sn_dev->cfg.ts_format = capability;
	receive(&(struct build){ 0 });
	return sn_get64(cqe + 0x30);
}

static uint64_t real_ns(uint64_t stamp)
{
	cr_assert_lt(stamp & 0xffffffff, 1000000000);
	return (stamp >> 32) * 1000000000 + (stamp & 0xffffffff);
}

static uint64_t time_of_day(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

Test(eth_recv_cqe, free_running_time_stamps_are_the_engines_clock)
{
	cr_assert_eq(stamp(0, SN_TS_FREE), RIG_CLOCK);
	cr_assert_eq(stamp(0, SN_TS_BOTH), RIG_CLOCK);
	cr_assert_eq(stamp(1, SN_TS_FREE), RIG_CLOCK);
}

Test(eth_recv_cqe, real_time_stamps_are_seconds_and_nanoseconds)
{
	static const uint8_t format[] = { 2, 2, 1, 1 };
	static const uint8_t cap[] = { SN_TS_REAL, SN_TS_BOTH, SN_TS_REAL, SN_TS_BOTH };

	for (int i = 0; i < 4; i++) {
		uint64_t before = time_of_day(), at = real_ns(stamp(format[i], cap[i]));

		cr_assert(at >= before && at <= time_of_day(), "case %d", i);
	}
}

/* Both formats have the time at which the pass began. */
Test(eth_recv_cqe, real_time_is_that_of_the_pass)
{
	uint64_t before, at;

	sn_dev->eng->now = RIG_CLOCK - 5000000000ull;
	before = time_of_day();
	at = real_ns(stamp(2, SN_TS_BOTH));
	cr_assert(at + 5000000000ull >= before && at + 5000000000ull <= time_of_day());
}

/* The engine's thread is preempted while it reads the clock. */
static uint64_t slow_clock(void)
{
	const struct timespec pause = { 0, 2000000 };
	const uint64_t start = time_of_day();

	nanosleep(&pause, NULL);
	return RIG_CLOCK + time_of_day() - start;
}

Test(eth_recv_cqe, real_time_is_not_early_after_a_preemption)
{
	const uint64_t before = time_of_day();

	sn_clock = slow_clock;
	cr_assert_geq(real_ns(stamp(2, SN_TS_BOTH)), before);
}

Test(eth_recv_cqe, real_time_falls_only_if_the_clock_is_set_back)
{
	const uint64_t first = real_ns(stamp(2, SN_TS_BOTH));
	uint64_t later;

	sn_dev->eng->now -= 50000000;
	cr_assert_eq(real_ns(stamp(2, SN_TS_BOTH)), first);
	sn_dev->eng->now -= 5000000000ull;
	later = real_ns(stamp(2, SN_TS_BOTH));
	cr_assert(later < first && later > first - 5100000000ull);
}
