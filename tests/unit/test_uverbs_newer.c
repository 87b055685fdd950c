/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Methods of the verbs ioctl that only newer kernels and libraries than the
 * distribution's have: their numbers, attributes and rules in the software NIC.
 */
#include <errno.h>
#include <rdma/rdma_user_ioctl.h>
#include <sys/ioctl.h>

#include "../lib/vb.h"

#define OBJECT_DEVICE		0
#define METHOD_QUERY_PORT_SPEED 7
#define OBJECT_MR		7
#define METHOD_MR_DESTROY	1
#define METHOD_REG_MR		5
#define LEN			4096u

enum { HANDLE, PD, DMA_HANDLE, IOVA, ADDR, LENGTH, ACCESS, FD, FD_OFFSET, LKEY, RKEY, ATTRS };

/* As in the kernel's interface, the attributes are behind the header. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wgnu-variable-sized-type-not-at-end"
#endif
struct call {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[ATTRS];
};

static struct vb v;

static void open_all(void)
{
	v = vb_open(4 * LEN);
}

static void close_all(void)
{
	vb_close(&v);
}

TestSuite(uverbs_newer, .init = open_all, .fini = close_all);

static void give(struct call *c, uint16_t id, uint16_t len, uint64_t data)
{
	c->attrs[c->hdr.num_attrs++] = (struct ib_uverbs_attr){
		.attr_id = id,
		.len = len,
		.flags = UVERBS_ATTR_F_MANDATORY,
		.data = data,
	};
}

static void take_away(struct call *c, uint16_t id)
{
	unsigned i;

	for (i = 0; c->attrs[i].attr_id != id; i++)
		;
	c->attrs[i] = c->attrs[--c->hdr.num_attrs];
}

/* Returns 0 or the errno. */
static int ask(struct call *c)
{
	c->hdr.driver_id = RDMA_DRIVER_MLX5;
	c->hdr.length = (uint16_t)(sizeof(c->hdr) + c->hdr.num_attrs * sizeof(c->attrs[0]));
	return ioctl(v.ctx->cmd_fd, RDMA_VERBS_IOCTL, &c->hdr) ? errno : 0;
}

/* A call that registers the last page and returns the keys in keys[]. */
static struct call reg_mr(uint32_t keys[2])
{
	struct call c = { .hdr = { .object_id = OBJECT_MR, .method_id = METHOD_REG_MR } };
	uint64_t at = (uintptr_t)v.mem + 3 * LEN;

	give(&c, HANDLE, 0, 0);
	give(&c, PD, 0, v.pd->handle);
	give(&c, IOVA, 8, at);
	give(&c, ADDR, 8, at);
	give(&c, LENGTH, 8, LEN);
	give(&c, ACCESS, 4, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	give(&c, LKEY, 4, (uintptr_t)&keys[0]);
	give(&c, RKEY, 4, (uintptr_t)&keys[1]);
	return c;
}

Test(uverbs_newer, region_of_reg_mr_can_be_written)
{
	uint8_t *to = v.mem + 3 * LEN;
	uint32_t keys[2] = { 0 };
	struct call c = reg_mr(keys);

	cr_assert_eq(ask(&c), 0);
	cr_assert(c.attrs[HANDLE].flags & UVERBS_ATTR_F_VALID_OUTPUT);
	cr_assert(keys[0] && keys[1] && keys[1] != v.mr->rkey);
	memset(v.mem, 0x6b, LEN);
	cr_assert_eq(vb_write(&v, vb_sge(&v, 0, LEN), (uintptr_t)to, keys[1]), IBV_WC_SUCCESS);
	cr_assert_eq(memcmp(v.mem, to, LEN), 0);
	cr_assert_neq(ibv_dealloc_pd(v.pd), 0, "the PD has a region and must not be freed");
	c.hdr.method_id = METHOD_MR_DESTROY;
	c.hdr.num_attrs = 1; /* only the handle */
	c.attrs[0].flags = UVERBS_ATTR_F_MANDATORY;
	cr_assert_eq(ask(&c), 0);
}

Test(uverbs_newer, invalid_reg_mr_calls_are_refused)
{
	static const struct {
		uint16_t without, with, len;
		uint64_t value;
		int error;
	} cases[] = {
		{ ADDR, 0, 0, 0, EINVAL },
		{ ADDR, FD, 0, 0, EINVAL }, /* FD_OFFSET is missing */
		{ PD, PD, 0, 12345, ENOENT },
		{ ATTRS, DMA_HANDLE, 0, 1, ENOENT },
		{ ATTRS, FD, 0, 0, EINVAL },
		{ ATTRS, FD_OFFSET, 8, 0, EINVAL },
		{ ATTRS, 11, 8, 0, EPROTONOSUPPORT }, /* an even newer attribute */
		/* iova and address differ in their offsets in the page */
		{ IOVA, IOVA, 8, 8, EINVAL },
		{ LENGTH, LENGTH, 8, UINT64_MAX, EINVAL },
		{ ACCESS, ACCESS, 4, IBV_ACCESS_REMOTE_WRITE, EINVAL },
		{ ACCESS, ACCESS, 4, IBV_ACCESS_ON_DEMAND, EOPNOTSUPP },
	};
	uint32_t keys[2] = { 0 };
	struct call c;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		c = reg_mr(keys);
		if (cases[i].without != ATTRS)
			take_away(&c, cases[i].without);
		if (cases[i].with)
			give(&c, cases[i].with, cases[i].len, cases[i].value);
		cr_assert_eq(ask(&c), cases[i].error, "case %zu: errno %d", i, errno);
	}
	c = reg_mr(keys);
	take_away(&c, ADDR);
	give(&c, FD, 0, 0);
	give(&c, FD_OFFSET, 8, 0);
	cr_assert_eq(ask(&c), EOPNOTSUPP, "dmabufs must be refused");
	cr_assert(!keys[0] && !keys[1]);
}

Test(uverbs_newer, query_port_speed_sums_the_lanes)
{
	struct call c = { .hdr = { .object_id = OBJECT_DEVICE,
				   .method_id = METHOD_QUERY_PORT_SPEED } };
	struct ibv_port_attr port;
	uint64_t speed = 0;

	give(&c, 0, 8, 1);
	give(&c, 1, 8, (uintptr_t)&speed);
	cr_assert_eq(ask(&c), 0);
	cr_assert_eq(ibv_query_port(v.ctx, 1, &port), 0);
	cr_assert_eq(port.active_width, 2, "expected 4 lanes");
	cr_assert_eq(port.active_speed, 32, "expected 25 Gb/s per lane");
	cr_assert_eq(speed, 4 * 250, "expected 100 Gb/s in units of 100 Mb/s");
	c.attrs[0].data = 2;
	cr_assert_eq(ask(&c), EINVAL, "there is only one port");
}
