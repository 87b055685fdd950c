/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Tests the software NIC with NVIDIA's own gpunetio library: creates two of its
 * high-level queue pairs, or two groups, connects them to each other and exports them.
 * Then it posts messages by hand into the exported queues, in both directions, for
 * three laps of the rings.
 * usage: peer_driver HANDLER [collapsed | no-dbr | emulated | service | group]
 * HANDLER is the number of an enum doca_gpu_dev_verbs_nic_handler: 0, 1, 2 or 6.
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

#define LEN    4096
#define SLOTS  64
#define ROUNDS (3 * SLOTS) /* three laps of the ring */
#define WAIT_S 20

#define MUST(call) \
	do { \
		doca_error_t status_ = (call); \
		if (status_ != DOCA_SUCCESS) { \
			fprintf(stderr, "%s: status %d\n", #call, status_); \
			exit(1); \
		} \
	} while (0)

#define NEED(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "failed: %s\n", #what); \
			exit(1); \
		} \
	} while (0)

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static doca_gpu_t *gpu;
static doca_dev_t *dev;
static struct doca_verbs_gid gid;
static uint8_t gid_index;
static uint8_t *buf; /* source, destination, a counter and its old value */
static struct ibv_mr *mr;

/* Finds the RoCE v2 GID of the port's IPv4 address. */
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

static struct doca_gpu_verbs_qp_init_attr_hl attributes(int handler, const char *how)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = {};

	attr.gpu_dev = gpu;
	attr.net_dev = dev;
	attr.ibpd = pd;
	attr.sq_nwqe = SLOTS;
	attr.nic_handler = (enum doca_gpu_dev_verbs_nic_handler)handler;
	attr.cq_collapsed = !strcmp(how, "collapsed");
	if (!strcmp(how, "no-dbr"))
		attr.send_dbr_mode_ext = DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW;
	if (!strcmp(how, "emulated"))
		attr.send_dbr_mode_ext = DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_SW_EMULATED;
	return attr;
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

/* ---- the part of a GPU thread ---- */
/* One exported queue pair. With CPU_PROXY, the library's service (if `service` is set) or
 * wait_for_last() rings for it. */
struct queue {
	struct doca_gpu_verbs_qp_hl *hl;
	struct doca_gpu_dev_verbs_qp *qp;
	uint32_t posted;
	bool collapsed, service;
};

static struct queue queue_of(struct doca_gpu_verbs_qp_hl *hl, const char *how)
{
	struct queue q = {};

	q.hl = hl;
	q.collapsed = !strcmp(how, "collapsed");
	q.service = !strcmp(how, "service");
	MUST(doca_gpu_verbs_get_qp_dev(hl->qp_gverbs, &q.qp));
	return q;
}

/* Returns the next slot with its control segment filled in. segments: number of
 * 16-byte segments. */
static uint32_t *wqe(struct queue *q, uint32_t opcode, uint32_t segments)
{
	uint32_t i = q->posted++, *w;

	w = (uint32_t *)(q->qp->sq_wqe_daddr + i % q->qp->sq_wqe_num * 64);
	memset(w, 0, 64);
	w[0] = htobe32((i & 0xffff) << 8 | opcode);
	w[1] = htobe32(q->qp->sq_num << 8 | segments);
	w[2] = htobe32(2 << 2); /* request a CQE */
	return w;
}

static void address(uint32_t *w, const void *p)
{
	w[0] = htobe32((uint32_t)((uintptr_t)p >> 32));
	w[1] = htobe32((uint32_t)(uintptr_t)p);
}

static void data(uint32_t *w, const void *p, uint32_t len)
{
	w[0] = htobe32(len);
	w[1] = htobe32(mr->lkey);
	address(w + 2, p);
}

static void remote(uint32_t *w, const void *p)
{
	address(w, p);
	w[2] = htobe32(mr->rkey);
}

static const uint32_t *put_write(struct queue *q, uint32_t dst)
{
	uint32_t *w = wqe(q, 0x08, 3);

	remote(w + 4, buf + dst);
	data(w + 8, buf, LEN);
	return w;
}

/* Posts a WAIT for a CQE index of another queue, then an atomic add of 1 to the counter. */
static const uint32_t *put_wait_and_count(struct queue *q, const struct queue *other,
					  uint32_t index)
{
	uint32_t *w = wqe(q, 0x0f, 2);

	w[6] = htobe32(index);
	w[7] = htobe32(other->qp->cq_sq.cq_num);
	w = wqe(q, 0x12, 4);
	remote(w + 4, buf + 2 * LEN);
	w[9] = htobe32(1);
	data(w + 12, buf + 2 * LEN + 8, 8);
	return w;
}

/* Rings as the device API does for each handler. w: the last WQE. */
static void ring(struct queue *q, const uint32_t *w)
{
	struct doca_gpu_dev_verbs_qp *qp = q->qp;
	uint64_t value, *db = qp->sq_db;
	uint32_t words[2] = { htobe32(q->posted << 8), htobe32(qp->sq_num << 8) };

	memcpy(&value, words, sizeof(value));
	switch (qp->nic_handler) {
	case DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY: /* the counter that the CPU thread polls */
		__atomic_store_n(db, (uint64_t)q->posted, __ATOMIC_RELEASE);
		return;
	case DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF:
		__atomic_store_n(qp->sq_dbrec, htobe32(q->posted & 0xffff), __ATOMIC_RELEASE);
		for (int i = 0; i < 8; i++) {
			memcpy(&value, w + 2 * i, sizeof(value));
			__atomic_store_n(db + i, value, __ATOMIC_RELEASE);
		}
		return;
	case DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB:
		__atomic_store_n(qp->sq_dbrec, htobe32(q->posted & 0xffff), __ATOMIC_RELEASE);
		break;
	default: /* without DBREC */
		break;
	}
	__atomic_store_n(db, value, __ATOMIC_RELEASE);
}

static bool arrived(const struct queue *q, uint32_t index)
{
	const struct doca_gpu_dev_verbs_cq *cq = &q->qp->cq_sq;
	const uint8_t *cqe = cq->cqe_daddr + (q->collapsed ? 0 : index % cq->cqe_num * 64);
	uint8_t op_own = __atomic_load_n(cqe + 63, __ATOMIC_ACQUIRE);

	if (op_own >> 4 == 0xf) /* not written yet */
		return false;
	if (q->collapsed ? (cqe[60] << 8 | cqe[61]) != (int)(index & 0xffff)
			 : (op_own & 1) != (index / cq->cqe_num & 1))
		return false;
	NEED(op_own >> 4 == 0); /* requester CQE without an error */
	return true;
}

static void wait_for_last(struct queue *q)
{
	time_t end = time(NULL) + WAIT_S;
	bool out;

	while (!arrived(q, q->posted - 1)) {
		if (q->qp->nic_handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY && !q->service)
			MUST(doca_gpu_verbs_cpu_proxy_progress(q->hl->qp_gverbs, &out));
		NEED(time(NULL) < end);
	}
}

static void transfer(struct queue *q, uint32_t round)
{
	memset(buf, (int)(round * 7 + q->qp->sq_num), LEN);
	memset(buf + LEN, ~buf[0], LEN);
	ring(q, put_write(q, LEN));
	wait_for_last(q);
	NEED(!memcmp(buf, buf + LEN, LEN));
}

/* The companion waits for the main queue's next write and then counts it; its WQEs are
 * posted before that write. */
static void transfer_counted(struct queue *q, struct queue *companion)
{
	uint64_t *counter = (uint64_t *)(buf + 2 * LEN), before = *counter;

	ring(companion, put_wait_and_count(companion, q, q->posted));
	if (companion->qp->nic_handler == DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY) {
		bool out;
		MUST(doca_gpu_verbs_cpu_proxy_progress(companion->hl->qp_gverbs, &out));
	}
	NEED(__atomic_load_n(counter, __ATOMIC_ACQUIRE) == before);
	transfer(q, (uint32_t)before);
	wait_for_last(companion);
	NEED(*counter == before + 1);
}

/* ---- the part of the host ---- */
/* Checks the list for kernels: the exported queue pairs in consecutive memory. */
static void check_list(struct doca_gpu_verbs_qp_hl *a, struct doca_gpu_verbs_qp_hl *b)
{
	struct doca_gpu_verbs_qp_hl *both[] = { a, b };
	struct doca_gpu_dev_verbs_qp *list;
	uint32_t qpn;

	MUST(doca_gpu_verbs_qp_flat_list_create_hl(both, 2, &list));
	for (int i = 0; i < 2; i++) {
		MUST(doca_verbs_qp_get_qpn(both[i]->qp, &qpn));
		NEED(list[i].sq_num == qpn);
	}
	MUST(doca_gpu_verbs_qp_flat_list_destroy_hl(list));
}

/* Checks the NIC's answer to QUERY_QP as NVIDIA's library decodes it. */
static void check_state(struct doca_gpu_verbs_qp_hl *qp)
{
	doca_verbs_qp_init_attr_t *init;
	enum doca_verbs_qp_state state;
	doca_verbs_qp_attr_t *attr;

	MUST(doca_verbs_qp_attr_create(&attr));
	MUST(doca_verbs_qp_init_attr_create(&init));
	MUST(doca_verbs_qp_query(qp->qp, attr, init));
	MUST(doca_verbs_qp_attr_get_current_state(attr, &state));
	NEED(state == DOCA_VERBS_QP_STATE_RTS);
	MUST(doca_verbs_qp_init_attr_destroy(init));
	MUST(doca_verbs_qp_attr_destroy(attr));
}

static void run_pair(int handler, const char *how)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = attributes(handler, how);
	struct doca_gpu_verbs_qp_hl *hl[2];
	doca_gpu_verbs_service_t service = NULL;
	struct queue q[2];

	for (int i = 0; i < 2; i++) {
		MUST(doca_gpu_verbs_create_qp_hl(&attr, &hl[i]));
		q[i] = queue_of(hl[i], how);
	}
	if (q[0].service)
		MUST(doca_gpu_verbs_create_service(&service));
	for (int i = 0; i < 2; i++) {
		connect_to(hl[i], hl[!i]);
		if (service)
			MUST(doca_gpu_verbs_service_monitor_qp(service, hl[i]->qp_gverbs));
	}
	check_list(hl[0], hl[1]);
	for (uint32_t n = 0; n < 2 * ROUNDS; n++)
		transfer(&q[n % 2], n);
	check_state(hl[0]);
	printf("handler %d%s%s, %d chosen: created, connected, exported, written\n", handler,
	       *how ? " " : "", how, q[0].qp->nic_handler);
	if (service)
		MUST(doca_gpu_verbs_destroy_service(service));
	MUST(doca_gpu_verbs_destroy_qp_hl(hl[0]));
	MUST(doca_gpu_verbs_destroy_qp_hl(hl[1]));
}

static void run_groups(int handler)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = attributes(handler, "group");
	struct doca_gpu_verbs_qp_group_hl *g[2];
	struct queue q[2], companion[2];

	for (int i = 0; i < 2; i++) {
		MUST(doca_gpu_verbs_create_qp_group_hl(&attr, &g[i]));
		q[i] = queue_of(&g[i]->qp_main, "");
		companion[i] = queue_of(&g[i]->qp_companion, "");
	}
	for (int i = 0; i < 2; i++) {
		connect_to(&g[i]->qp_main, &g[!i]->qp_main);
		connect_to(&g[i]->qp_companion, &g[!i]->qp_companion);
	}
	for (uint32_t n = 0; n < ROUNDS; n++) /* each uses two slots of the companion */
		transfer_counted(&q[n % 2], &companion[n % 2]);
	check_state(&g[0]->qp_companion);
	printf("handler %d group, %d chosen: created, connected, exported, written, counted\n",
	       handler, q[0].qp->nic_handler);
	MUST(doca_gpu_verbs_destroy_qp_group_hl(g[0]));
	MUST(doca_gpu_verbs_destroy_qp_group_hl(g[1]));
}

int main(int argc, char **argv)
{
	int handler = argc > 1 ? atoi(argv[1]) : 0;
	const char *how = argc > 2 ? argv[2] : "";

	open_all();
	buf = (uint8_t *)aligned_alloc(4096, 3 * LEN);
	NEED(buf);
	memset(buf, 0, 3 * LEN);
	mr = ibv_reg_mr(pd, buf, 3 * LEN,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC);
	NEED(mr);
	if (!strcmp(how, "group"))
		run_groups(handler);
	else
		run_pair(handler, how);
	NEED(!ibv_dereg_mr(mr));
	free(buf);
	MUST(doca_verbs_dev_close(dev));
	MUST(doca_gpu_destroy(gpu));
	NEED(!ibv_dealloc_pd(pd));
	NEED(!ibv_close_device(ctx));
	return 0;
}
