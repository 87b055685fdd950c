/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What the programs of these projects have in common: a queue pair that is connected to itself,
 * and memory for a message. It compiles as C, C++ and CUDA, and only uses installed headers.
 */
#ifndef ENDPOINT_H
#define ENDPOINT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include <doca_gpunetio_host.h>
#include <host/gdaki.h>

#define BYTES \
	4096 /* of the message, which is put from the first half of the memory to the second */

struct endpoint {
	doca_gpu_t *gpu;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	doca_dev_t *dev;
	struct doca_gpu_verbs_qp_hl *qp;
	doca_gpu_verbs_service_t service; /* NULL: the threads that post ring the doorbell */
	struct ibv_mr *mr;
	uint8_t *gpu_ptr, *cpu_ptr; /* the same memory */
};

/* Ends the program if a call fails. */
#define CHECK(call) \
	do { \
		int failed_ = (int)(call); \
		if (failed_) { \
			fprintf(stderr, "%s: error %d\n", #call, failed_); \
			exit(1); \
		} \
	} while (0)

/* The index of a RoCEv2 GID, which the software NIC always has. */
static inline int gid_index(struct ibv_context *ctx, struct ibv_gid_entry *gid)
{
	for (uint32_t i = 0; i < 16; i++)
		if (!ibv_query_gid_ex(ctx, 1, i, gid, 0) && gid->gid_type == IBV_GID_TYPE_ROCE_V2)
			return (int)i;
	fprintf(stderr, "no RoCEv2 GID\n");
	exit(1);
}

static inline void endpoint_open(struct endpoint *ep, const char *gpu,
				 enum doca_gpu_dev_verbs_nic_handler handler)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr;
	struct ibv_device **list = ibv_get_device_list(NULL);
	void *gpu_ptr, *cpu_ptr;

	memset(ep, 0, sizeof(*ep));
	CHECK(!list || !list[0]);
	ep->ctx = ibv_open_device(list[0]);
	CHECK(!ep->ctx);
	ibv_free_device_list(list);
	ep->pd = ibv_alloc_pd(ep->ctx);
	CHECK(!ep->pd);
	CHECK(doca_gpu_create(gpu, &ep->gpu));
	CHECK(doca_verbs_dev_open(ep->pd, &ep->dev));
	memset(&attr, 0, sizeof(attr));
	attr.gpu_dev = ep->gpu;
	attr.net_dev = ep->dev;
	attr.ibpd = ep->pd;
	attr.sq_nwqe = 64;
	attr.nic_handler = handler;
	CHECK(doca_gpu_verbs_create_qp_hl(&attr, &ep->qp));
	CHECK(doca_gpu_mem_alloc(ep->gpu, 2 * BYTES, 4096, DOCA_GPU_MEM_TYPE_CPU_GPU, &gpu_ptr,
				 &cpu_ptr));
	ep->gpu_ptr = (uint8_t *)gpu_ptr;
	ep->cpu_ptr = (uint8_t *)cpu_ptr;
	ep->mr = ibv_reg_mr(ep->pd, cpu_ptr, 2 * BYTES,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(!ep->mr);
}

/* The queue pair is its own peer. */
static inline void endpoint_connect(struct endpoint *ep)
{
	static const enum doca_verbs_qp_state states[] = {
		DOCA_VERBS_QP_STATE_INIT,
		DOCA_VERBS_QP_STATE_RTR,
		DOCA_VERBS_QP_STATE_RTS,
	};
	static const int masks[] = {
		DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_WRITE | DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_READ |
			DOCA_VERBS_QP_ATTR_ATOMIC_MODE | DOCA_VERBS_QP_ATTR_PKEY_INDEX |
			DOCA_VERBS_QP_ATTR_PORT_NUM,
		DOCA_VERBS_QP_ATTR_RQ_PSN | DOCA_VERBS_QP_ATTR_DEST_QP_NUM |
			DOCA_VERBS_QP_ATTR_PATH_MTU | DOCA_VERBS_QP_ATTR_AH_ATTR |
			DOCA_VERBS_QP_ATTR_MIN_RNR_TIMER,
		DOCA_VERBS_QP_ATTR_SQ_PSN | DOCA_VERBS_QP_ATTR_ACK_TIMEOUT |
			DOCA_VERBS_QP_ATTR_RETRY_CNT | DOCA_VERBS_QP_ATTR_RNR_RETRY,
	};
	doca_verbs_ah_attr_t *ah;
	doca_verbs_qp_attr_t *attr;
	struct ibv_gid_entry entry;
	struct doca_verbs_gid gid;
	uint32_t qpn;
	int index = gid_index(ep->ctx, &entry);

	memcpy(gid.raw, entry.gid.raw, sizeof(gid.raw));
	CHECK(doca_verbs_qp_get_qpn(ep->qp->qp, &qpn));
	CHECK(doca_verbs_ah_attr_create(ep->dev, &ah));
	CHECK(doca_verbs_ah_attr_set_addr_type(ah, DOCA_VERBS_ADDR_TYPE_IPv4));
	CHECK(doca_verbs_ah_attr_set_gid(ah, gid));
	CHECK(doca_verbs_ah_attr_set_sgid_index(ah, (uint8_t)index));
	CHECK(doca_verbs_ah_attr_set_hop_limit(ah, 64));
	CHECK(doca_verbs_qp_attr_create(&attr));
	CHECK(doca_verbs_qp_attr_set_path_mtu(attr, DOCA_VERBS_MTU_SIZE_1K_BYTES));
	CHECK(doca_verbs_qp_attr_set_port_num(attr, 1));
	CHECK(doca_verbs_qp_attr_set_allow_remote_write(attr, 1));
	CHECK(doca_verbs_qp_attr_set_ah_attr(attr, ah));
	CHECK(doca_verbs_qp_attr_set_dest_qp_num(attr, qpn));
	CHECK(doca_verbs_qp_attr_set_min_rnr_timer(attr, 1));
	CHECK(doca_verbs_qp_attr_set_ack_timeout(attr, 14));
	CHECK(doca_verbs_qp_attr_set_retry_cnt(attr, 7));
	CHECK(doca_verbs_qp_attr_set_rnr_retry(attr, 7));
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		CHECK(doca_verbs_qp_attr_set_next_state(attr, states[i]));
		CHECK(doca_verbs_qp_modify(ep->qp->qp, attr,
					   masks[i] | DOCA_VERBS_QP_ATTR_NEXT_STATE));
	}
	CHECK(doca_verbs_qp_attr_destroy(attr));
	CHECK(doca_verbs_ah_attr_destroy(ah));
	if (ep->qp->nic_handler != DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY)
		return;
	CHECK(doca_gpu_verbs_create_service(&ep->service));
	CHECK(doca_gpu_verbs_service_monitor_qp(ep->service, ep->qp->qp_gverbs));
}

static inline void message_fill(struct endpoint *ep)
{
	for (int i = 0; i < BYTES; i++)
		ep->cpu_ptr[i] = (uint8_t)(i * 7 + i / 256);
	memset(ep->cpu_ptr + BYTES, 0, BYTES);
}

/* Prints the handler and the result. Returns the exit status of the program. */
static inline int message_verify(const struct endpoint *ep, int status)
{
	struct gdk_handler_report report;
	int equal = !memcmp(ep->cpu_ptr, ep->cpu_ptr + BYTES, BYTES);

	CHECK(gdk_verbs_qp_get_handler_report(ep->qp->qp_gverbs, &report));
	printf("%s: status %d, %d bytes %s\n", gdk_handler_name(report.chosen), status, BYTES,
	       equal ? "received" : "differ");
	return status || !equal;
}

static inline void endpoint_close(struct endpoint *ep)
{
	if (ep->service)
		CHECK(doca_gpu_verbs_destroy_service(ep->service));
	CHECK(doca_gpu_verbs_destroy_qp_hl(ep->qp));
	CHECK(ibv_dereg_mr(ep->mr));
	CHECK(doca_gpu_mem_free(ep->gpu, ep->gpu_ptr));
	CHECK(doca_verbs_dev_close(ep->dev));
	CHECK(ibv_dealloc_pd(ep->pd));
	CHECK(ibv_close_device(ep->ctx));
	CHECK(doca_gpu_destroy(ep->gpu));
}

#endif
