/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Creates a queue pair and connects it to itself. */
#include "loopback.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT   1
#define PSN    100
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

/* Makes a call. If it fails, prints it, and returns -1 from the function that uses the macro. */
#define CALL(call) \
	do { \
		doca_error_t err_ = (call); \
		if (err_) { \
			fprintf(stderr, "error %d: %s\n", err_, #call); \
			return -1; \
		} \
	} while (0)

static int failed(const char *what)
{
	fprintf(stderr, "error: %s\n", what);
	return -1;
}

/* Selects the port's first RoCEv2 GID, or on InfiniBand the GID 0. */
static int choose_gid(struct nic *nic)
{
	struct ibv_gid_entry e;
	int i;

	if (nic->port.link_layer != IBV_LINK_LAYER_ETHERNET)
		return ibv_query_gid(nic->ctx, PORT, 0, &nic->gid);
	for (i = 0; i < nic->port.gid_tbl_len; i++) {
		if (ibv_query_gid_ex(nic->ctx, PORT, (uint32_t)i, &e, 0) ||
		    e.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		nic->gid = e.gid;
		nic->gid_index = (unsigned int)i;
		return 0;
	}
	return failed("the port has no RoCEv2 GID");
}

int nic_open(struct nic *nic)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);

	memset(nic, 0, sizeof(*nic));
	nic->ctx = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
	if (devices)
		ibv_free_device_list(devices);
	if (!nic->ctx)
		return failed("no RDMA device can be opened");
	if (ibv_query_port(nic->ctx, PORT, &nic->port) || nic->port.state != IBV_PORT_ACTIVE)
		return failed("port 1 of the RDMA device is not active");
	nic->pd = ibv_alloc_pd(nic->ctx);
	if (!nic->pd)
		return failed("cannot allocate a protection domain");
	CALL(doca_verbs_dev_open(nic->pd, &nic->dev));
	CALL(doca_gpu_create("host", &nic->gpu));
	return choose_gid(nic);
}

void nic_close(struct nic *nic)
{
	if (nic->gpu)
		doca_gpu_destroy(nic->gpu);
	if (nic->dev)
		doca_verbs_dev_close(nic->dev);
	if (nic->pd)
		ibv_dealloc_pd(nic->pd);
	if (nic->ctx)
		ibv_close_device(nic->ctx);
}

static enum doca_verbs_addr_type addr_type(const struct nic *nic)
{
	static const uint8_t ipv4[12] = { [10] = 0xff, [11] = 0xff };

	if (nic->port.link_layer != IBV_LINK_LAYER_ETHERNET)
		return DOCA_VERBS_ADDR_TYPE_IB_NO_GRH;
	return memcmp(nic->gid.raw, ipv4, sizeof(ipv4)) ? DOCA_VERBS_ADDR_TYPE_IPv6
							: DOCA_VERBS_ADDR_TYPE_IPv4;
}

static int fill_attr(const struct nic *nic, doca_verbs_ah_attr_t *ah, doca_verbs_qp_attr_t *attr,
		     uint32_t qpn)
{
	struct doca_verbs_gid gid;

	memcpy(gid.raw, nic->gid.raw, sizeof(gid.raw));
	CALL(doca_verbs_ah_attr_set_addr_type(ah, addr_type(nic)));
	CALL(doca_verbs_ah_attr_set_gid(ah, gid));
	CALL(doca_verbs_ah_attr_set_sgid_index(ah, (uint8_t)nic->gid_index));
	CALL(doca_verbs_ah_attr_set_hop_limit(ah, 64));
	CALL(doca_verbs_ah_attr_set_dlid(ah, nic->port.lid));
	CALL(doca_verbs_qp_attr_set_path_mtu(
		attr, (enum doca_verbs_mtu_size)(nic->port.active_mtu - IBV_MTU_256)));
	CALL(doca_verbs_qp_attr_set_port_num(attr, PORT));
	CALL(doca_verbs_qp_attr_set_pkey_index(attr, 0));
	CALL(doca_verbs_qp_attr_set_allow_remote_write(attr, 1));
	CALL(doca_verbs_qp_attr_set_allow_remote_read(attr, 0));
	CALL(doca_verbs_qp_attr_set_ah_attr(attr, ah));
	CALL(doca_verbs_qp_attr_set_dest_qp_num(attr, qpn));
	CALL(doca_verbs_qp_attr_set_rq_psn(attr, PSN));
	CALL(doca_verbs_qp_attr_set_sq_psn(attr, PSN));
	CALL(doca_verbs_qp_attr_set_min_rnr_timer(attr, 1));
	CALL(doca_verbs_qp_attr_set_ack_timeout(attr, 14));
	CALL(doca_verbs_qp_attr_set_retry_cnt(attr, 7));
	CALL(doca_verbs_qp_attr_set_rnr_retry(attr, 1));
	return 0;
}

static int to_rts(doca_verbs_qp_t *qp, doca_verbs_qp_attr_t *attr)
{
	CALL(doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_INIT));
	CALL(doca_verbs_qp_modify(
		qp, attr,
		DOCA_VERBS_QP_ATTR_NEXT_STATE | DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_WRITE |
			DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_READ | DOCA_VERBS_QP_ATTR_PKEY_INDEX |
			DOCA_VERBS_QP_ATTR_PORT_NUM));
	CALL(doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_RTR));
	CALL(doca_verbs_qp_modify(qp, attr,
				  DOCA_VERBS_QP_ATTR_NEXT_STATE | DOCA_VERBS_QP_ATTR_RQ_PSN |
					  DOCA_VERBS_QP_ATTR_DEST_QP_NUM |
					  DOCA_VERBS_QP_ATTR_PATH_MTU | DOCA_VERBS_QP_ATTR_AH_ATTR |
					  DOCA_VERBS_QP_ATTR_MIN_RNR_TIMER));
	CALL(doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_RTS));
	CALL(doca_verbs_qp_modify(qp, attr,
				  DOCA_VERBS_QP_ATTR_NEXT_STATE | DOCA_VERBS_QP_ATTR_SQ_PSN |
					  DOCA_VERBS_QP_ATTR_ACK_TIMEOUT |
					  DOCA_VERBS_QP_ATTR_RETRY_CNT |
					  DOCA_VERBS_QP_ATTR_RNR_RETRY));
	return 0;
}

static int connect_self(const struct nic *nic, doca_verbs_qp_t *qp)
{
	doca_verbs_ah_attr_t *ah;
	doca_verbs_qp_attr_t *attr;
	uint32_t qpn;
	int rc;

	CALL(doca_verbs_qp_get_qpn(qp, &qpn));
	CALL(doca_verbs_ah_attr_create(nic->dev, &ah));
	if (doca_verbs_qp_attr_create(&attr)) {
		doca_verbs_ah_attr_destroy(ah);
		return failed("cannot create attributes of a queue pair");
	}
	rc = fill_attr(nic, ah, attr, qpn) || to_rts(qp, attr) ? -1 : 0;
	doca_verbs_qp_attr_destroy(attr);
	doca_verbs_ah_attr_destroy(ah);
	return rc;
}

int loopback_open(struct loopback *lo, const struct nic *nic, size_t len)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = {
		.gpu_dev = nic->gpu,
		.net_dev = nic->dev,
		.ibpd = nic->pd,
		.sq_nwqe = LOOPBACK_DEPTH,
		.nic_handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY,
		.mreg_type = DOCA_GPUNETIO_VERBS_MEM_REG_TYPE_DEFAULT,
	};

	memset(lo, 0, sizeof(*lo));
	lo->mem = calloc(1, len);
	lo->len = len;
	lo->mr = lo->mem ? ibv_reg_mr(nic->pd, lo->mem, len, ACCESS) : NULL;
	if (!lo->mr)
		return failed("cannot register payload memory");
	CALL(doca_gpu_verbs_create_qp_hl(&attr, &lo->qp));
	if (connect_self(nic, lo->qp->qp))
		return -1;
	CALL(doca_gpu_verbs_get_qp_dev(lo->qp->qp_gverbs, &lo->dev_qp));
	return 0;
}

void loopback_close(struct loopback *lo)
{
	if (lo->qp)
		doca_gpu_verbs_destroy_qp_hl(lo->qp);
	if (lo->mr)
		ibv_dereg_mr(lo->mr);
	free(lo->mem);
}
