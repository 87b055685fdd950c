/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* NIC, memory, queue pairs, connections and puts for the end-to-end tests. e2e.h
 * describes the functions. */
#include "e2e.h"
#include "pick.h"
#include "../softnic/softnic.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static int v2_gid(struct ibv_context *ctx, union ibv_gid *gid)
{
	struct ibv_gid_entry e;

	for (uint32_t i = 0; i < 16; i++)
		if (!ibv_query_gid_ex(ctx, 1, i, &e, 0) && e.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    e.gid.raw[0] != 0xfe) { /* not link-local */
			*gid = e.gid;
			return (int)i;
		}
	return -1;
}

void e2e_open(struct e2e_nic *nic)
{
	e2e_open_on(nic, "host");
}

void e2e_open_on(struct e2e_nic *nic, const char *gpu_bus_id)
{
	struct ibv_port_attr port;

	memset(nic, 0, sizeof(*nic));
	E2E_REQUIRE(nic->ctx = pick_open());
	E2E_REQUIRE(nic->pd = ibv_alloc_pd(nic->ctx));
	E2E_REQUIRE(!doca_verbs_dev_open(nic->pd, &nic->dev));
	E2E_REQUIRE(!doca_gpu_create(gpu_bus_id, &nic->gpu));
	E2E_REQUIRE(!ibv_query_port(nic->ctx, 1, &port));
	nic->lid = port.lid;
	if (port.link_layer == IBV_LINK_LAYER_INFINIBAND)
		E2E_REQUIRE(!ibv_query_gid(nic->ctx, 1, 0, &nic->gid));
	else
		nic->gid_index = v2_gid(nic->ctx, &nic->gid);
	E2E_REQUIRE(nic->gid_index >= 0);
}

void e2e_close(struct e2e_nic *nic)
{
	E2E_REQUIRE(!doca_gpu_destroy(nic->gpu));
	E2E_REQUIRE(!doca_verbs_dev_close(nic->dev));
	E2E_REQUIRE(!ibv_dealloc_pd(nic->pd));
	E2E_REQUIRE(!ibv_close_device(nic->ctx));
}

void e2e_buf_use(struct e2e_nic *nic, struct e2e_buf *buf, void *mem, size_t len, int access)
{
	buf->mem = mem;
	buf->len = len;
	E2E_REQUIRE(buf->mr = ibv_reg_mr(nic->pd, mem, len, access));
}

void e2e_buf_open(struct e2e_nic *nic, struct e2e_buf *buf, size_t len, int access)
{
	void *mem = NULL;

	E2E_REQUIRE(!posix_memalign(&mem, 4096, (len + 4095) & ~(size_t)4095));
	memset(mem, 0, len);
	e2e_buf_use(nic, buf, mem, len, access);
}

void e2e_buf_close(struct e2e_buf *buf)
{
	E2E_REQUIRE(!ibv_dereg_mr(buf->mr));
	free(buf->mem);
}

/* ---- queue pairs ---- */
static void *proxy_main(void *arg)
{
	struct e2e_qp *qp = arg;
	bool progressed;

	while (!atomic_load(&qp->proxy_stop)) {
		if (doca_gpu_verbs_cpu_proxy_progress(qp->hl->qp_gverbs, &progressed))
			return (void *)1;
		if (!progressed)
			gdk_host_yield();
	}
	return NULL;
}

void e2e_proxy_begin(struct e2e_qp *qp)
{
	atomic_store(&qp->proxy_stop, false);
	E2E_REQUIRE(!pthread_create(&qp->proxy, NULL, proxy_main, qp));
	qp->has_proxy = true;
}

void e2e_proxy_end(struct e2e_qp *qp)
{
	void *failed;

	if (!qp->has_proxy)
		return;
	atomic_store(&qp->proxy_stop, true);
	pthread_join(qp->proxy, &failed);
	E2E_REQUIRE(!failed);
	qp->has_proxy = false;
}

void e2e_qp_adopt(struct e2e_nic *nic, struct e2e_qp *qp, struct doca_gpu_verbs_qp_hl *hl)
{
	qp->nic = nic;
	qp->hl = hl;
	qp->has_proxy = false;
	E2E_REQUIRE(!doca_verbs_qp_get_qpn(hl->qp, &qp->qpn));
	E2E_REQUIRE(!doca_gpu_verbs_get_qp_dev(hl->qp_gverbs, &qp->dev));
}

bool e2e_has_no_dbr(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct doca_verbs_device_attr *attr;
	struct ibv_context *ctx;
	bool has;

	E2E_REQUIRE(list && list[0] && (ctx = ibv_open_device(list[0])));
	E2E_REQUIRE(!doca_verbs_query_device(ctx, &attr));
	has = doca_verbs_device_attr_get_send_dbr_mode_no_dbr_ext(attr);
	doca_verbs_device_attr_free(attr);
	ibv_close_device(ctx);
	ibv_free_device_list(list);
	return has;
}

doca_error_t e2e_qp_try(struct e2e_nic *nic, struct e2e_qp *qp,
			enum doca_gpu_dev_verbs_nic_handler handler, unsigned int depth,
			bool collapsed)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr;
	struct doca_gpu_verbs_qp_hl *hl = NULL;
	doca_error_t err;

	memset(&attr, 0, sizeof(attr));
	attr.gpu_dev = nic->gpu;
	attr.net_dev = nic->dev;
	attr.ibpd = nic->pd;
	attr.sq_nwqe = (uint16_t)depth;
	attr.nic_handler = handler;
	attr.cq_collapsed = collapsed;
	if (handler == E2E_NO_DBR)
		attr.send_dbr_mode_ext = DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW;
	err = doca_gpu_verbs_create_qp_hl(&attr, &hl);
	if (err)
		return err;
	E2E_REQUIRE(hl);
	e2e_qp_adopt(nic, qp, hl);
	return DOCA_SUCCESS;
}

void e2e_qp_open(struct e2e_nic *nic, struct e2e_qp *qp,
		 enum doca_gpu_dev_verbs_nic_handler handler, unsigned int depth)
{
	E2E_REQUIRE(!e2e_qp_try(nic, qp, handler, depth, false));
}

void e2e_qp_close(struct e2e_qp *qp)
{
	e2e_proxy_end(qp);
	E2E_REQUIRE(!doca_gpu_verbs_destroy_qp_hl(qp->hl));
}

/* Attributes that a QP of type UC does not have. */
#define NOT_UC \
	(DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_READ | DOCA_VERBS_QP_ATTR_ATOMIC_MODE | \
	 DOCA_VERBS_QP_ATTR_MIN_RNR_TIMER | DOCA_VERBS_QP_ATTR_MAX_DEST_RD_ATOMIC | \
	 DOCA_VERBS_QP_ATTR_ACK_TIMEOUT | DOCA_VERBS_QP_ATTR_RETRY_CNT | \
	 DOCA_VERBS_QP_ATTR_RNR_RETRY | DOCA_VERBS_QP_ATTR_MAX_QP_RD_ATOMIC)

struct link {
	struct e2e_path path;
	uint32_t dest_qpn;
	uint16_t rnr_retry;
	bool uc;
};

static doca_error_t modify(doca_verbs_qp_t *qp, doca_verbs_qp_attr_t *attr, const struct link *l,
			   int mask)
{
	return doca_verbs_qp_modify(qp, attr, l->uc ? mask & ~NOT_UC : mask);
}

static doca_error_t to_init(doca_verbs_qp_t *qp, doca_verbs_qp_attr_t *attr, const struct link *l)
{
	doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_INIT);
	doca_verbs_qp_attr_set_allow_remote_write(attr, 1);
	doca_verbs_qp_attr_set_allow_remote_read(attr, 1);
	doca_verbs_qp_attr_set_atomic_mode(attr, DOCA_VERBS_QP_ATOMIC_MODE_IB_SPEC);
	doca_verbs_qp_attr_set_pkey_index(attr, 0);
	doca_verbs_qp_attr_set_port_num(attr, 1);
	return modify(qp, attr, l,
		      DOCA_VERBS_QP_ATTR_NEXT_STATE | DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_WRITE |
			      DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_READ |
			      DOCA_VERBS_QP_ATTR_ATOMIC_MODE | DOCA_VERBS_QP_ATTR_PKEY_INDEX |
			      DOCA_VERBS_QP_ATTR_PORT_NUM);
}

static doca_error_t to_rtr(doca_verbs_qp_t *qp, doca_verbs_qp_attr_t *attr, const struct link *l)
{
	doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_RTR);
	doca_verbs_qp_attr_set_rq_psn(attr, l->path.psn);
	doca_verbs_qp_attr_set_dest_qp_num(attr, l->dest_qpn);
	doca_verbs_qp_attr_set_path_mtu(attr, DOCA_VERBS_MTU_SIZE_1K_BYTES);
	doca_verbs_qp_attr_set_min_rnr_timer(attr, 1);
	doca_verbs_qp_attr_set_max_dest_rd_atomic(attr, 1);
	return modify(qp, attr, l,
		      DOCA_VERBS_QP_ATTR_NEXT_STATE | DOCA_VERBS_QP_ATTR_RQ_PSN |
			      DOCA_VERBS_QP_ATTR_DEST_QP_NUM | DOCA_VERBS_QP_ATTR_PATH_MTU |
			      DOCA_VERBS_QP_ATTR_AH_ATTR | DOCA_VERBS_QP_ATTR_MIN_RNR_TIMER |
			      DOCA_VERBS_QP_ATTR_MAX_DEST_RD_ATOMIC);
}

static doca_error_t to_rts(doca_verbs_qp_t *qp, doca_verbs_qp_attr_t *attr, const struct link *l)
{
	doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_RTS);
	doca_verbs_qp_attr_set_sq_psn(attr, l->path.psn);
	doca_verbs_qp_attr_set_ack_timeout(attr, l->path.ack_timeout);
	doca_verbs_qp_attr_set_retry_cnt(attr, l->path.retry_cnt);
	doca_verbs_qp_attr_set_rnr_retry(attr, l->rnr_retry);
	doca_verbs_qp_attr_set_max_rd_atomic(attr, 1);
	return modify(qp, attr, l,
		      DOCA_VERBS_QP_ATTR_NEXT_STATE | DOCA_VERBS_QP_ATTR_SQ_PSN |
			      DOCA_VERBS_QP_ATTR_ACK_TIMEOUT | DOCA_VERBS_QP_ATTR_RETRY_CNT |
			      DOCA_VERBS_QP_ATTR_RNR_RETRY | DOCA_VERBS_QP_ATTR_MAX_QP_RD_ATOMIC);
}

static doca_error_t connect_as(struct e2e_nic *nic, doca_verbs_qp_t *qp, const union ibv_gid *gid,
			       struct link l)
{
	struct doca_verbs_gid dgid;
	doca_verbs_ah_attr_t *ah;
	doca_verbs_qp_attr_t *attr;
	doca_error_t err;

	memcpy(dgid.raw, gid->raw, sizeof(dgid.raw));
	E2E_REQUIRE(!doca_verbs_ah_attr_create(nic->dev, &ah));
	E2E_REQUIRE(!doca_verbs_qp_attr_create(&attr));
	E2E_REQUIRE(!doca_verbs_ah_attr_set_addr_type(ah, nic->lid ? DOCA_VERBS_ADDR_TYPE_IB_NO_GRH
								   : DOCA_VERBS_ADDR_TYPE_IPv4));
	E2E_REQUIRE(!doca_verbs_ah_attr_set_dlid(ah, nic->lid));
	E2E_REQUIRE(!doca_verbs_ah_attr_set_sgid_index(ah, (uint8_t)nic->gid_index));
	E2E_REQUIRE(!doca_verbs_ah_attr_set_hop_limit(ah, 64));
	E2E_REQUIRE(!doca_verbs_ah_attr_set_gid(ah, dgid));
	E2E_REQUIRE(!doca_verbs_qp_attr_set_ah_attr(attr, ah));
	err = to_init(qp, attr, &l);
	if (!err)
		err = to_rtr(qp, attr, &l);
	if (!err)
		err = to_rts(qp, attr, &l);
	E2E_REQUIRE(!doca_verbs_qp_attr_destroy(attr));
	E2E_REQUIRE(!doca_verbs_ah_attr_destroy(ah));
	return err;
}

doca_error_t e2e_connect(struct e2e_nic *nic, doca_verbs_qp_t *qp, const union ibv_gid *gid,
			 uint32_t dest_qpn, struct e2e_path path)
{
	return e2e_connect_rnr(nic, qp, gid, dest_qpn, path, 1);
}

doca_error_t e2e_connect_rnr(struct e2e_nic *nic, doca_verbs_qp_t *qp, const union ibv_gid *gid,
			     uint32_t dest_qpn, struct e2e_path path, uint16_t rnr_retry)
{
	return connect_as(nic, qp, gid, (struct link){ path, dest_qpn, rnr_retry, false });
}

doca_error_t e2e_connect_uc(struct e2e_nic *nic, doca_verbs_qp_t *qp, const union ibv_gid *gid,
			    uint32_t dest_qpn, struct e2e_path path)
{
	return connect_as(nic, qp, gid, (struct link){ path, dest_qpn, 0, true });
}

void e2e_qp_reset(struct e2e_qp *qp)
{
	doca_verbs_qp_attr_t *attr;

	E2E_REQUIRE(!doca_verbs_qp_attr_create(&attr));
	E2E_REQUIRE(!doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_RST));
	E2E_REQUIRE(!doca_verbs_qp_modify(qp->hl->qp, attr, DOCA_VERBS_QP_ATTR_NEXT_STATE));
	E2E_REQUIRE(!doca_verbs_qp_attr_destroy(attr));
	E2E_REQUIRE(!doca_gpu_verbs_reset_tracking_and_memory(qp->hl->qp_gverbs));
}

void e2e_pair_open(struct e2e_pair *p, enum doca_gpu_dev_verbs_nic_handler handler,
		   unsigned int depth, size_t bytes)
{
	struct e2e_path path = { .ack_timeout = 14, .retry_cnt = 7 };

	e2e_open(&p->nic);
	e2e_qp_open(&p->nic, &p->tx, handler, depth);
	e2e_qp_open(&p->nic, &p->rx, E2E_DB, 64);
	E2E_REQUIRE(!e2e_connect(&p->nic, p->tx.hl->qp, &p->nic.gid, p->rx.qpn, path));
	E2E_REQUIRE(!e2e_connect(&p->nic, p->rx.hl->qp, &p->nic.gid, p->tx.qpn, path));
	e2e_buf_open(&p->nic, &p->src, bytes, IBV_ACCESS_LOCAL_WRITE);
	e2e_buf_open(&p->nic, &p->dst, bytes, E2E_REMOTE);
	if (p->tx.hl->nic_handler == E2E_PROXY)
		e2e_proxy_begin(&p->tx);
}

void e2e_pair_close(struct e2e_pair *p)
{
	e2e_qp_close(&p->tx);
	e2e_qp_close(&p->rx);
	e2e_buf_close(&p->src);
	e2e_buf_close(&p->dst);
	e2e_close(&p->nic);
}

/* ---- data path ---- */
int e2e_put(struct e2e_pair *p, size_t off, size_t len, doca_gpu_dev_verbs_ticket_t *ticket)
{
	return gdk_put(p->tx.dev, e2e_addr(p->dst.mem + off, p->dst.mr->rkey),
		       e2e_addr(p->src.mem + off, p->src.mr->lkey), len, ticket,
		       gdk_how(E2E_MODE, E2E_AUTO, GDK_THREAD, 0));
}

int e2e_wait(struct e2e_qp *qp, doca_gpu_dev_verbs_ticket_t ticket)
{
	return gdk_wait_for(qp->dev, ticket, E2E_MODE, E2E_WAIT_NS);
}

uint64_t e2e_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* The NIC is linked in (sanitizer builds) or preloaded. */
#pragma weak sn_stats_get
const struct sn_stats *sn_stats_get(void);

static const struct sn_stats *nic_stats(void)
{
	static const struct sn_stats none;
	const struct sn_stats *(*get)(void) = sn_stats_get;

	if (!get)
		*(void **)&get = dlsym(RTLD_DEFAULT, "sn_stats_get");
	return get ? get() : &none;
}

uint64_t e2e_recovered(void)
{
	return nic_stats()->db_recovered;
}

uint64_t e2e_forced(void)
{
	return nic_stats()->db_forced;
}
