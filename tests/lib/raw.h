/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Raw packet QPs for tests of the NIC that use libibverbs. Creation needs CAP_NET_RAW; tests
 * are skipped without it.
 */
#ifndef RAW_H
#define RAW_H

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "raw_port.h"
#include "vb.h"

struct sn_dev;

static inline bool raw_allowed(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	return !syscall(SYS_capget, &head, data) &&
	       data[CAP_TO_INDEX(CAP_NET_RAW)].effective & CAP_TO_MASK(CAP_NET_RAW);
}

static inline void raw_need(void)
{
	if (!raw_allowed())
		cr_skip_test("raw packet QPs need CAP_NET_RAW");
}

static inline struct ibv_qp_init_attr_ex raw_init(struct vb *v, struct ibv_cq *cq, uint32_t send,
						  uint32_t recv)
{
	return (struct ibv_qp_init_attr_ex){
		.qp_type = IBV_QPT_RAW_PACKET,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = send,
			 .max_recv_wr = recv,
			 .max_send_sge = 4,
			 .max_recv_sge = recv ? 4 : 0 },
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = v->pd,
	};
}

/* QPs of one context share a transport domain; these flags let them receive from it. */
static inline struct ibv_qp *raw_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *init)
{
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
		.create_flags = MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC |
				MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_MC,
	};

	return mlx5dv_create_qp(ctx, init, &dv);
}

static inline struct ibv_qp *raw_qp_try(struct vb *v, struct ibv_cq *cq, uint32_t send,
					uint32_t recv, uint32_t flags)
{
	struct ibv_qp_init_attr_ex init = raw_init(v, cq, send, recv);

	if (flags)
		init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	init.create_flags = flags;
	return raw_qp_ex(v->ctx, &init);
}

static inline struct ibv_qp *raw_qp(struct vb *v, struct ibv_cq *cq, uint32_t send, uint32_t recv,
				    uint32_t flags)
{
	struct ibv_qp *qp = raw_qp_try(v, cq, send, recv, flags);

	cr_assert(qp, "raw packet QP (flags %#x): %s", flags, strerror(errno));
	return qp;
}

/* Takes a QP from RESET to RTS. */
static inline void raw_ready(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	cr_assert_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), 0);
	attr.qp_state = IBV_QPS_RTR;
	cr_assert_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	cr_assert_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

/* Sends frames with this destination to a QP. */
static inline struct ibv_flow *raw_flow(struct ibv_qp *qp, const uint8_t dmac[6])
{
	struct ibv_flow *flow = raw_flow_try(qp, dmac);

	cr_assert(flow, "flow rule: %s", strerror(errno));
	return flow;
}

/* Posts the len bytes at off of the buffer as a frame. */
static inline void raw_send(struct vb *v, struct ibv_qp *qp, size_t off, uint32_t len)
{
	struct ibv_sge sge = vb_sge(v, off, len);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	cr_assert_eq(ibv_post_send(qp, &wr, &bad), 0);
}

/* Waits for one completion and returns it. */
static inline struct ibv_wc raw_wait(struct ibv_cq *cq)
{
	struct timespec nap = { 0, 20000 };
	time_t end = time(NULL) + VB_WAIT_S;
	struct ibv_wc wc;

	while (!ibv_poll_cq(cq, 1, &wc)) {
		cr_assert_lt(time(NULL), end, "no completion");
		nanosleep(&nap, NULL);
	}
	return wc;
}

/* The NIC's function or variable of this name. */
static inline void *raw_symbol(const char *name)
{
	void *at = dlsym(RTLD_DEFAULT, name);

	cr_assert(at, "no %s: run the test under softnic-run", name);
	return at;
}

/* Functions of the NIC for tests, see front.h. */
static inline uint32_t raw_live(void)
{
	uint32_t (*live)(void);

	*(void **)&live = raw_symbol("sn_objects_live");
	return live();
}

static inline void raw_fail_next(uint32_t nth_ioctl)
{
	void (*fail)(uint32_t nth_cmd, uint8_t status, uint32_t syndrome, uint32_t nth_ioctl);

	*(void **)&fail = raw_symbol("sn_fail_next");
	fail(0, 0, 0, nth_ioctl);
}

/* Takes the device lock as the NIC's own calls do. */
static inline void raw_lock(struct sn_dev *dev)
{
	void (*lock)(struct sn_dev * of);

	*(void **)&lock = raw_symbol("sn_dev_lock");
	lock(dev);
}

#endif
