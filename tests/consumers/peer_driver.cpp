/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Compiled and linked with NVIDIA's own gpunetio: two of its high-level queue
 * pairs, connected to each other, exported; then one message, posted by hand
 * into the exported queue, goes from the one to the other.
 * usage: peer_driver HANDLER (enum doca_gpu_dev_verbs_nic_handler: 0, 1 or 2)
 */
#include <atomic>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>

#include "doca_gpunetio_host.h"
#include "host/doca_gpunetio_high_level.h"

#define LEN 4096
#define WAIT_S 20

#define MUST(call)                                                              \
	do {                                                                    \
		doca_error_t status_ = (call);                                  \
		if (status_ != DOCA_SUCCESS) {                                  \
			fprintf(stderr, "%s: status %d\n", #call, status_);     \
			exit(1);                                                \
		}                                                               \
	} while (0)

#define NEED(what)                                                              \
	do {                                                                    \
		if (!(what)) {                                                  \
			fprintf(stderr, "failed: %s\n", #what);                 \
			exit(1);                                                \
		}                                                               \
	} while (0)

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static doca_gpu_t *gpu;
static doca_dev_t *dev;
static struct doca_verbs_gid gid;
static uint8_t gid_index;

/* The RoCE v2 entry of the port's IPv4 address. */
static void find_gid(void)
{
	struct ibv_gid_entry e;

	for (;; gid_index++) {
		NEED(!ibv_query_gid_ex(ctx, 1, gid_index, &e, 0));
		if (e.gid_type == IBV_GID_TYPE_ROCE_V2 && e.gid.raw[10] == 0xff)
			break;
	}
	memcpy(gid.raw, e.gid.raw, sizeof(gid.raw));
}

static void open_all(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	NEED(list && list[0]);
	ctx = ibv_open_device(list[0]);
	NEED(ctx);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(ctx);
	NEED(pd);
	find_gid();
	MUST(doca_gpu_create("0000:8a:00.0", &gpu));
	MUST(doca_verbs_dev_open(pd, &dev));
}

static struct doca_gpu_verbs_qp_hl *create(enum doca_gpu_dev_verbs_nic_handler handler)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = {};
	struct doca_gpu_verbs_qp_hl *qp = NULL;

	attr.gpu_dev = gpu;
	attr.net_dev = dev;
	attr.ibpd = pd;
	attr.sq_nwqe = 64;
	attr.nic_handler = handler;
	MUST(doca_gpu_verbs_create_qp_hl(&attr, &qp));
	return qp;
}

static void set_attributes(doca_verbs_qp_attr_t *attr, doca_verbs_ah_attr_t *ah, uint32_t dest)
{
	MUST(doca_verbs_ah_attr_set_addr_type(ah, DOCA_VERBS_ADDR_TYPE_IPv4));
	MUST(doca_verbs_ah_attr_set_sgid_index(ah, gid_index));
	MUST(doca_verbs_ah_attr_set_hop_limit(ah, 64));
	MUST(doca_verbs_ah_attr_set_gid(ah, gid));
	MUST(doca_verbs_qp_attr_set_path_mtu(attr, DOCA_VERBS_MTU_SIZE_1K_BYTES));
	MUST(doca_verbs_qp_attr_set_rq_psn(attr, 0x1234));
	MUST(doca_verbs_qp_attr_set_sq_psn(attr, 0x1234));
	MUST(doca_verbs_qp_attr_set_port_num(attr, 1));
	MUST(doca_verbs_qp_attr_set_ack_timeout(attr, 14));
	MUST(doca_verbs_qp_attr_set_retry_cnt(attr, 7));
	MUST(doca_verbs_qp_attr_set_rnr_retry(attr, 7));
	MUST(doca_verbs_qp_attr_set_min_rnr_timer(attr, 1));
	MUST(doca_verbs_qp_attr_set_allow_remote_write(attr, 1));
	MUST(doca_verbs_qp_attr_set_allow_remote_read(attr, 1));
	MUST(doca_verbs_qp_attr_set_atomic_mode(attr, DOCA_VERBS_QP_ATOMIC_MODE_IB_SPEC));
	MUST(doca_verbs_qp_attr_set_ah_attr(attr, ah));
	MUST(doca_verbs_qp_attr_set_dest_qp_num(attr, dest));
}

static void connect_to(struct doca_gpu_verbs_qp_hl *qp, struct doca_gpu_verbs_qp_hl *to)
{
	static const struct {
		enum doca_verbs_qp_state state;
		int mask;
	} steps[] = {
		{ DOCA_VERBS_QP_STATE_INIT,
		  DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_WRITE | DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_READ |
			  DOCA_VERBS_QP_ATTR_ATOMIC_MODE | DOCA_VERBS_QP_ATTR_PKEY_INDEX |
			  DOCA_VERBS_QP_ATTR_PORT_NUM },
		{ DOCA_VERBS_QP_STATE_RTR,
		  DOCA_VERBS_QP_ATTR_RQ_PSN | DOCA_VERBS_QP_ATTR_DEST_QP_NUM |
			  DOCA_VERBS_QP_ATTR_PATH_MTU | DOCA_VERBS_QP_ATTR_AH_ATTR |
			  DOCA_VERBS_QP_ATTR_MIN_RNR_TIMER },
		{ DOCA_VERBS_QP_STATE_RTS,
		  DOCA_VERBS_QP_ATTR_SQ_PSN | DOCA_VERBS_QP_ATTR_ACK_TIMEOUT |
			  DOCA_VERBS_QP_ATTR_RETRY_CNT | DOCA_VERBS_QP_ATTR_RNR_RETRY },
	};
	doca_verbs_qp_attr_t *attr;
	doca_verbs_ah_attr_t *ah;
	uint32_t dest;

	MUST(doca_verbs_qp_get_qpn(to->qp, &dest));
	MUST(doca_verbs_qp_attr_create(&attr));
	MUST(doca_verbs_ah_attr_create(dev, &ah));
	set_attributes(attr, ah, dest);
	for (const auto &s : steps) {
		MUST(doca_verbs_qp_attr_set_next_state(attr, s.state));
		MUST(doca_verbs_qp_modify(qp->qp, attr, s.mask | DOCA_VERBS_QP_ATTR_NEXT_STATE));
	}
	MUST(doca_verbs_ah_attr_destroy(ah));
	MUST(doca_verbs_qp_attr_destroy(attr));
}

/* An RDMA WRITE in slot 0: control, remote address and data segments, as the NIC reads them. */
static void post(struct doca_gpu_dev_verbs_qp *qp, struct ibv_mr *mr, uint64_t from, uint64_t to)
{
	uint32_t *w = (uint32_t *)qp->sq_wqe_daddr;
	uint64_t ring;

	memset(w, 0, 64);
	w[0] = htobe32(0x08);			 /* WQE 0, RDMA WRITE */
	w[1] = htobe32(qp->sq_num << 8 | 3);	 /* three segments of 16 bytes */
	w[2] = htobe32(2 << 2);			 /* a completion, please */
	w[4] = htobe32((uint32_t)(to >> 32));
	w[5] = htobe32((uint32_t)to);
	w[6] = htobe32(mr->rkey);
	w[8] = htobe32(LEN);
	w[9] = htobe32(mr->lkey);
	w[10] = htobe32((uint32_t)(from >> 32));
	w[11] = htobe32((uint32_t)from);
	memcpy(&ring, w, sizeof(ring));
	std::atomic_thread_fence(std::memory_order_release);
	if (qp->nic_handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY) {
		/* What its proxy thread looks at: the index after the last WQE. */
		__atomic_store_n(qp->sq_db, 1, __ATOMIC_RELEASE);
		return;
	}
	__atomic_store_n(qp->sq_dbrec, htobe32(1), __ATOMIC_RELEASE);
	__atomic_store_n(qp->sq_db, ring, __ATOMIC_RELEASE);
}

static void transfer(struct doca_gpu_verbs_qp_hl *hl)
{
	uint8_t *buf = (uint8_t *)aligned_alloc(4096, 2 * LEN);
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, 2 * LEN,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct doca_gpu_dev_verbs_qp *qp;
	time_t end = time(NULL) + WAIT_S;
	uint8_t *op_own;

	NEED(buf && mr);
	memset(buf, 0x5a, LEN);
	memset(buf + LEN, 0, LEN);
	MUST(doca_gpu_verbs_get_qp_dev(hl->qp_gverbs, &qp));
	op_own = qp->cq_sq.cqe_daddr + 63;
	post(qp, mr, (uintptr_t)buf, (uintptr_t)buf + LEN);
	while (__atomic_load_n(op_own, __ATOMIC_ACQUIRE) & 1) { /* hardware's, until written */
		bool out;

		if (qp->nic_handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY)
			MUST(doca_gpu_verbs_cpu_proxy_progress(hl->qp_gverbs, &out));
		NEED(time(NULL) < end);
	}
	NEED(*op_own >> 4 == 0); /* requester, no error */
	NEED(!memcmp(buf, buf + LEN, LEN));
	NEED(!ibv_dereg_mr(mr));
	free(buf);
}

int main(int argc, char **argv)
{
	auto handler = (enum doca_gpu_dev_verbs_nic_handler)(argc > 1 ? atoi(argv[1]) : 0);
	struct doca_gpu_verbs_qp_hl *a, *b;

	open_all();
	a = create(handler);
	b = create(handler);
	connect_to(a, b);
	connect_to(b, a);
	transfer(a);
	transfer(b);
	printf("handler %d asked, %d chosen: created, connected, exported, written\n", handler,
	       a->nic_handler);
	MUST(doca_gpu_verbs_destroy_qp_hl(a));
	MUST(doca_gpu_verbs_destroy_qp_hl(b));
	MUST(doca_verbs_dev_close(dev));
	MUST(doca_gpu_destroy(gpu));
	NEED(!ibv_dealloc_pd(pd));
	NEED(!ibv_close_device(ctx));
	return 0;
}
