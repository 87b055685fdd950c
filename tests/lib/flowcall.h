/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Calls of the verbs ioctl that create matchers and flow rules, attribute by attribute, so
 * that tests can leave out or change each one. The functions return 0 or the errno.
 */
#ifndef FLOWCALL_H
#define FLOWCALL_H

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <linux/capability.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define A(id)	  ((uint16_t)(id))
#define MATCH_LEN 64u

/* As in the kernel's interface, the attributes are behind the header. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wgnu-variable-sized-type-not-at-end"
#endif
struct raw {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attrs[16];
};

/* The beginning of libmlx5's structures of DEVX objects and of matchers. */
struct dv_head {
	struct ibv_context *ctx;
	uint32_t handle;
};

static inline uint32_t dv_handle(const void *obj)
{
	return ((const struct dv_head *)obj)->handle;
}

static inline void raw_start(struct raw *r, uint32_t object, uint32_t method)
{
	memset(r, 0, sizeof(*r));
	r->hdr.object_id = (uint16_t)object;
	r->hdr.method_id = (uint16_t)method;
	r->hdr.driver_id = RDMA_DRIVER_MLX5;
}

/* Adds an attribute, or replaces the one that has this id. */
static inline struct ib_uverbs_attr *raw_attr(struct raw *r, uint32_t id, uint32_t len,
					      uint64_t data)
{
	struct ib_uverbs_attr *a = r->attrs;

	while (a < r->attrs + r->hdr.num_attrs && a->attr_id != A(id))
		a++;
	if (a == r->attrs + r->hdr.num_attrs)
		r->hdr.num_attrs++;
	*a = (struct ib_uverbs_attr){ .attr_id = A(id),
				      .len = (uint16_t)len,
				      .flags = UVERBS_ATTR_F_MANDATORY,
				      .data = data };
	return a;
}

static inline void raw_drop(struct raw *r, uint32_t id)
{
	struct ib_uverbs_attr *end = r->attrs + r->hdr.num_attrs, *a;

	for (a = r->attrs; a < end; a++)
		if (a->attr_id == A(id)) {
			*a = end[-1];
			r->hdr.num_attrs--;
			return;
		}
}

static inline int raw_call(struct ibv_context *ctx, struct raw *r)
{
	r->hdr.length = (uint16_t)(sizeof(r->hdr) + r->hdr.num_attrs * sizeof(r->attrs[0]));
	return ioctl(ctx->cmd_fd, RDMA_VERBS_IOCTL, &r->hdr) ? errno : 0;
}

/* Calls, and returns the value of the first attribute, the new handle, in *handle. */
static inline int raw_create(struct ibv_context *ctx, struct raw *r, uint32_t *handle)
{
	int rc = raw_call(ctx, r);

	*handle = rc ? 0 : (uint32_t)r->attrs[0].data;
	return rc;
}

static inline int raw_destroy(struct ibv_context *ctx, uint32_t object, uint32_t method,
			      uint32_t id, uint32_t handle)
{
	struct raw r;

	raw_start(&r, object, method);
	raw_attr(&r, id, 0, handle);
	return raw_call(ctx, &r);
}

/* A valid call for a matcher of the outer headers with priority 3. */
static inline void matcher_call(struct raw *r, const void *mask)
{
	raw_start(r, MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_CREATE);
	raw_attr(r, MLX5_IB_ATTR_FLOW_MATCHER_CREATE_HANDLE, 0, 0);
	raw_attr(r, MLX5_IB_ATTR_FLOW_MATCHER_MATCH_MASK, MATCH_LEN, (uintptr_t)mask);
	raw_attr(r, MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE, 2, 3);
	raw_attr(r, MLX5_IB_ATTR_FLOW_MATCHER_MATCH_CRITERIA, 1, 1);
}

static inline int matcher_destroy(struct ibv_context *ctx, uint32_t handle)
{
	return raw_destroy(ctx, MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_DESTROY,
			   MLX5_IB_ATTR_FLOW_MATCHER_DESTROY_HANDLE, handle);
}

/* A call for a rule, still without destination. */
static inline void flow_call(struct raw *r, uint32_t matcher, const void *value)
{
	raw_start(r, UVERBS_OBJECT_FLOW, MLX5_IB_METHOD_CREATE_FLOW);
	raw_attr(r, MLX5_IB_ATTR_CREATE_FLOW_HANDLE, 0, 0);
	raw_attr(r, MLX5_IB_ATTR_CREATE_FLOW_MATCH_VALUE, MATCH_LEN, (uintptr_t)value);
	raw_attr(r, MLX5_IB_ATTR_CREATE_FLOW_MATCHER, 0, matcher);
}

static inline int flow_destroy(struct ibv_context *ctx, uint32_t handle)
{
	return raw_destroy(ctx, UVERBS_OBJECT_FLOW, UVERBS_METHOD_FLOW_DESTROY,
			   UVERBS_ATTR_DESTROY_FLOW_HANDLE, handle);
}

/* Sets or clears this thread's capability CAP_NET_RAW. */
static inline void net_raw(bool on)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	cr_assert_eq(syscall(SYS_capget, &head, data), 0);
	data[0].effective &= ~(1u << CAP_NET_RAW);
	data[0].effective |= (uint32_t)on << CAP_NET_RAW;
	cr_assert_eq(syscall(SYS_capset, &head, data), 0);
}

/* Rules require a capability, which a program in a restricted container may lack. */
static inline bool have_net_raw(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	return !syscall(SYS_capget, &head, data) && data[0].effective >> CAP_NET_RAW & 1;
}

static inline uint32_t objects_live(void)
{
	uint32_t (*fn)(void);

	*(void **)&fn = dlsym(RTLD_DEFAULT, "sn_objects_live");
	cr_assert(fn);
	return fn();
}

#endif
