/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Calls of the verbs ioctl that no library makes. The software NIC must refuse what
 * the kernel refuses, with the same errno, and such a call must leave no object or
 * descriptor.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define A(id) ((uint16_t)(id))

/* As in the kernel's interface, the attributes are behind the header. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wgnu-variable-sized-type-not-at-end"
#endif
struct raw {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[8];
};

static struct ibv_context *ctx;

static void open_nic(void)
{
	struct mlx5dv_context_attr attr = { .flags = MLX5DV_CONTEXT_FLAGS_DEVX };
	struct ibv_device **list = ibv_get_device_list(NULL);

	cr_assert(list && list[0]);
	ctx = mlx5dv_open_device(list[0], &attr);
	ibv_free_device_list(list);
	cr_assert(ctx);
}

static void close_nic(void)
{
	cr_assert_eq(ibv_close_device(ctx), 0);
}

TestSuite(verbs_ioctl, .init = open_nic, .fini = close_nic);

static void start(struct raw *r, uint16_t object, uint16_t method)
{
	memset(r, 0, sizeof(*r));
	r->hdr.object_id = object;
	r->hdr.method_id = method;
	r->hdr.driver_id = RDMA_DRIVER_MLX5;
}

static void attr(struct raw *r, uint16_t id, uint16_t len, uint64_t data)
{
	r->attrs[r->hdr.num_attrs++] = (struct ib_uverbs_attr){ .attr_id = id,
								.len = len,
								.flags = UVERBS_ATTR_F_MANDATORY,
								.data = data };
}

/* Returns 0 or the errno. */
static int call(struct raw *r)
{
	r->hdr.length = (uint16_t)(sizeof(r->hdr) + r->hdr.num_attrs * sizeof(r->attrs[0]));
	return ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, &r->hdr) ? errno : 0;
}

/* Returns the least of several: the NIC's and Criterion's threads open files for a moment. */
static int next_fd(void)
{
	int fd, least = INT32_MAX, i;

	for (i = 0; i < 1000; i++) {
		fd = dup(0);
		close(fd);
		least = fd < least ? fd : least;
		sched_yield();
	}
	return least;
}

static uint32_t live(void)
{
	uint32_t (*fn)(void);

	*(void **)&fn = dlsym(RTLD_DEFAULT, "sn_objects_live");
	cr_assert(fn);
	return fn();
}

/* a QUERY_HCA_CAP command and its reply */
static uint32_t box[4], answer[0x1010 / 4];

static void command(struct raw *r, const void *in, const void *out)
{
	box[0] = htobe32(0x100u << 16);
	box[1] = htobe32(1);
	start(r, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER);
	attr(r, A(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN), sizeof(box), (uintptr_t)in);
	attr(r, A(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT), sizeof(answer), (uintptr_t)out);
}

Test(verbs_ioctl, inaccessible_buffers_return_efault)
{
	void *page = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct raw r;

	cr_assert_neq(page, MAP_FAILED);
	command(&r, box, answer);
	cr_expect_eq(call(&r), 0);
	command(&r, (void *)0xfff, answer);
	cr_expect_eq(call(&r), EFAULT);
	command(&r, box, (void *)0xfff);
	cr_expect_eq(call(&r), EFAULT);
	command(&r, box, page);
	cr_expect_eq(call(&r), EFAULT, "a reply to read-only memory must be refused");
	munmap(page, 8192);
}

Test(verbs_ioctl, duplicate_attribute_is_refused)
{
	struct raw r;

	command(&r, box, answer);
	attr(&r, A(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN), sizeof(box), (uintptr_t)box);
	cr_expect_eq(call(&r), EINVAL);
}

Test(verbs_ioctl, unknown_mandatory_attribute_is_refused)
{
	uint8_t resp[sizeof(struct ib_uverbs_query_port_resp_ex)];
	struct raw r;

	start(&r, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
	attr(&r, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1, 1);
	attr(&r, UVERBS_ATTR_QUERY_PORT_RESP, sizeof(resp), (uintptr_t)resp);
	attr(&r, UVERBS_ATTR_QUERY_PORT_RESP + 0x2000, 8, 0);
	cr_expect_eq(call(&r), EPROTONOSUPPORT, "an ID with known low bits is another attribute");
	r.attrs[2].flags = 0;
	cr_expect_eq(call(&r), 0);
}

Test(verbs_ioctl, invalid_headers_are_refused)
{
	struct raw r;

	errno = 0;
	cr_expect_eq(ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, (void *)0xfff), -1);
	cr_expect_eq(errno, EFAULT);
	command(&r, box, answer);
	r.hdr.driver_id++;
	cr_expect_eq(call(&r), EINVAL, "a wrong driver ID must be refused");
	command(&r, box, answer);
	r.hdr.reserved2 = 1;
	cr_expect_eq(call(&r), EPROTONOSUPPORT);
	command(&r, box, answer);
	r.hdr.length = 4096 + 24;
	r.hdr.num_attrs = 256;
	cr_expect_eq(ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, &r.hdr), -1);
	cr_expect_eq(errno, EINVAL, "more than a page of attributes must be refused");
}

/* The rings of CQs and QPs must be aligned to 64 bytes. */
Test(verbs_ioctl, unaligned_cq_ring_is_refused)
{
	static uint8_t memory[8192] __attribute__((aligned(4096)));
	struct mlx5dv_devx_uar *uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
	struct mlx5_ib_create_cq drv = { .buf_addr = (uintptr_t)memory + 8,
					 .cqe_size = 64,
					 .db_addr = (uintptr_t)memory + 4096,
					 .flags = MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX };
	uint64_t resp[2];
	struct raw r;
	int i;

	cr_assert(uar);
	drv.uar_page_index = (uint16_t)uar->page_id;
	for (i = 0; i < 2; i++, drv.buf_addr += 56) {
		start(&r, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
		attr(&r, UVERBS_ATTR_CREATE_CQ_HANDLE, 0, 0);
		attr(&r, UVERBS_ATTR_CREATE_CQ_CQE, 4, 15);
		attr(&r, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 8, 1);
		attr(&r, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 4, 0);
		attr(&r, UVERBS_ATTR_CREATE_CQ_RESP_CQE, 4, (uintptr_t)resp);
		attr(&r, UVERBS_ATTR_UHW_IN, sizeof(drv), (uintptr_t)&drv);
		attr(&r, UVERBS_ATTR_UHW_OUT, 8, (uintptr_t)(resp + 1));
		cr_expect_eq(call(&r), i ? 0 : EINVAL);
	}
	i = (int)r.attrs[0].data;
	start(&r, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY);
	attr(&r, UVERBS_ATTR_DESTROY_CQ_HANDLE, 0, (uint64_t)i);
	attr(&r, UVERBS_ATTR_DESTROY_CQ_RESP, 8, (uintptr_t)resp);
	cr_expect_eq(call(&r), 0);
	mlx5dv_devx_free_uar(uar);
}

/* libmlx5 keeps the pages that it allocates until it closes the device. */
Test(verbs_ioctl, register_page_is_freed_once)
{
	uint32_t before = live(), page, length;
	uint64_t offset, handle;
	struct raw r;

	start(&r, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC);
	attr(&r, A(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE), 0, 0);
	attr(&r, A(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE), 8, MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC);
	attr(&r, A(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET), 8, (uintptr_t)&offset);
	attr(&r, A(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH), 4, (uintptr_t)&length);
	attr(&r, A(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID), 4, (uintptr_t)&page);
	cr_assert_eq(call(&r), 0);
	cr_expect_eq(live(), before + 1);
	handle = r.attrs[0].data;
	start(&r, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY);
	attr(&r, A(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE), 0, handle);
	cr_expect_eq(call(&r), 0);
	cr_expect_eq(live(), before);
	cr_expect_eq(call(&r), ENOENT);
}

/* A caller without room for the handle or descriptor must not get the object. */
Test(verbs_ioctl, call_without_room_for_the_handle_creates_nothing)
{
	uint32_t before = live();
	int fd = next_fd();
	uint64_t in = 0;
	uint8_t out[2];
	struct raw r;

	start(&r, UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC);
	cr_expect_eq(call(&r), EINVAL);
	start(&r, MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, MLX5_IB_METHOD_DEVX_ASYNC_CMD_FD_ALLOC);
	cr_expect_eq(call(&r), EINVAL);
	start(&r, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	attr(&r, UVERBS_ATTR_WRITE_CMD, 4, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL);
	attr(&r, UVERBS_ATTR_CORE_IN, sizeof(in), in);
	attr(&r, UVERBS_ATTR_CORE_OUT, sizeof(out), (uintptr_t)out);
	cr_expect_eq(call(&r), ENOSPC);
	cr_expect_eq(next_fd(), fd, "a descriptor leaked");
	cr_expect_eq(live(), before);
}
