/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Calls each Verbs, umem and UAR function of the SDK's interface with arguments of the types that
 * programs for the SDK pass: NVIDIA's samples in C, NIXL and Holoscan in C++. tests/doca_calls.sh
 * compiles this file as C11, C++17 and CUDA, and links it. It is not executed: main() does
 * nothing without arguments.
 */
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <string.h>

#include <doca_dev.h>
#include <doca_error.h>
#include <doca_gpunetio.h>
#include <doca_gpunetio_verbs_def.h>
#include <doca_rdma_bridge.h>
#include <doca_uar.h>
#include <doca_umem.h>
#include <doca_verbs.h>
#include <doca_verbs_bridge.h>

#define FLAGS \
	(DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE | \
	 DOCA_ACCESS_FLAG_RDMA_READ | DOCA_ACCESS_FLAG_RDMA_ATOMIC)
#define CALL(call) \
	do { \
		doca_error_t status = call; \
\
		if (status != DOCA_SUCCESS) \
			return status; \
	} while (0)

struct objects {
	struct ibv_pd *pd;
	struct doca_gpu *gpu;
	struct doca_dev *dev;
	struct doca_uar *uar;
	struct doca_umem *umem, *umem_dbr;
	struct doca_verbs_context *context;
	struct doca_verbs_pd *verbs_pd;
	struct doca_verbs_ah_attr *ah;
	struct doca_verbs_cq *cq_sq, *cq_rq;
	struct doca_verbs_qp *qp;
	struct doca_gpu_verbs_qp *exported;
	struct doca_gpu_dev_verbs_qp *device;
	void *memory;
	uint32_t qpn, cqn;
};

static doca_error_t open_device(struct objects *o, struct ibv_device *device, const char *bus_id)
{
	union ibv_gid gid;
	struct doca_verbs_gid remote;
	uint32_t gid_index = 0;
	int fd;

	CALL(doca_gpu_create(bus_id, &o->gpu));
	CALL(doca_verbs_bridge_verbs_context_create(device, DOCA_VERBS_CONTEXT_CREATE_FLAGS_NONE,
						    &o->context));
	CALL(doca_verbs_pd_create(o->context, &o->verbs_pd));
	o->pd = doca_verbs_bridge_verbs_pd_get_ibv_pd(o->verbs_pd);
	CALL(doca_rdma_bridge_open_dev_from_pd(o->pd, &o->dev));
	CALL(doca_uar_create(o->dev, DOCA_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED, &o->uar));
	CALL(doca_uar_create(o->dev, DOCA_UAR_ALLOCATION_TYPE_NONCACHE, &o->uar));
	CALL(doca_uar_create(o->dev, DOCA_UAR_ALLOCATION_TYPE_BLUEFLAME, &o->uar));
	CALL(doca_gpu_mem_alloc(o->gpu, 4096, 4096, DOCA_GPU_MEM_TYPE_GPU, &o->memory, NULL));
	CALL(doca_gpu_dmabuf_fd(o->gpu, o->memory, 4096, &fd));
	CALL(doca_umem_gpu_create(o->gpu, o->dev, o->memory, 4096, FLAGS, &o->umem));
	CALL(doca_umem_create(o->dev, o->memory, 4096, FLAGS, &o->umem_dbr));
	CALL(doca_verbs_ah_attr_create(o->context, &o->ah));
	CALL(doca_verbs_ah_attr_set_addr_type(o->ah, DOCA_VERBS_ADDR_TYPE_IPv4));
	CALL(doca_verbs_ah_attr_set_addr_type(o->ah, DOCA_VERBS_ADDR_TYPE_IB_NO_GRH));
	CALL(doca_verbs_ah_attr_set_sgid_index(o->ah, gid_index));
	CALL(doca_verbs_ah_attr_set_hop_limit(o->ah, 255));
	CALL(doca_verbs_ah_attr_set_dlid(o->ah, 1));
	if (ibv_query_gid(o->pd->context, 1, 0, &gid))
		return DOCA_ERROR_DRIVER;
	memcpy(remote.raw, gid.raw, DOCA_GID_BYTE_LENGTH);
	return doca_verbs_ah_attr_set_gid(o->ah, remote);
}

static doca_error_t create_cq(struct objects *o, struct doca_verbs_cq **cq)
{
	struct doca_verbs_cq_attr *attr;

	CALL(doca_verbs_cq_attr_create(&attr));
	CALL(doca_verbs_cq_attr_set_external_datapath_en(attr, 1));
	CALL(doca_verbs_cq_attr_set_entry_size(attr, DOCA_VERBS_CQ_ENTRY_SIZE_64));
	CALL(doca_verbs_cq_attr_set_external_umem(attr, o->umem, 0));
	CALL(doca_verbs_cq_attr_set_external_uar(attr, o->uar));
	CALL(doca_verbs_cq_attr_set_cq_size(attr, 64));
	CALL(doca_verbs_cq_attr_set_cq_overrun(attr, 1));
	CALL(doca_verbs_cq_create(o->context, attr, cq));
	return doca_verbs_cq_attr_destroy(attr);
}

static doca_error_t set_queues(struct objects *o, struct doca_verbs_qp_init_attr *attr)
{
	CALL(doca_verbs_qp_init_attr_set_external_datapath_en(attr, 1));
	CALL(doca_verbs_qp_init_attr_set_external_uar(attr, o->uar));
	CALL(doca_verbs_qp_init_attr_set_external_umem(attr, o->umem, 0));
	CALL(doca_verbs_qp_init_attr_set_external_dbr_umem(attr, o->umem_dbr, 0));
	CALL(doca_verbs_qp_init_attr_set_pd(attr, o->verbs_pd));
	CALL(doca_verbs_qp_init_attr_set_sq_wr(attr, 64));
	CALL(doca_verbs_qp_init_attr_set_rq_wr(attr, 64));
	CALL(doca_verbs_qp_init_attr_set_qp_type(attr, DOCA_VERBS_QP_TYPE_UC));
	CALL(doca_verbs_qp_init_attr_set_qp_type(attr, DOCA_VERBS_QP_TYPE_RC));
	CALL(doca_verbs_qp_init_attr_set_send_cq(attr, o->cq_sq));
	CALL(doca_verbs_qp_init_attr_set_receive_cq(attr, o->cq_rq));
	CALL(doca_verbs_qp_init_attr_set_send_max_sges(attr, 1));
	CALL(doca_verbs_qp_init_attr_set_receive_max_sges(attr, 1));
	CALL(doca_verbs_qp_init_attr_set_sq_sig_all(attr, 0));
	CALL(doca_verbs_qp_init_attr_set_core_direct_master(attr, 1));
	CALL(doca_verbs_qp_init_attr_set_cqe_inline(attr, 1));
	return doca_verbs_qp_init_attr_set_send_dbr_mode(attr,
							 DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT);
}

static doca_error_t create_qp(struct objects *o, enum doca_gpu_dev_verbs_nic_handler handler)
{
	struct doca_verbs_qp_init_attr *attr;
	struct doca_verbs_device_attr *device;

	CALL(doca_verbs_query_device(o->context, &device));
	CALL(doca_verbs_device_attr_get_is_send_dbr_mode_supported(
		device, DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT));
	CALL(doca_verbs_device_attr_get_is_cqe_inline_supported(device));
	CALL(doca_verbs_device_attr_free(device));
	CALL(create_cq(o, &o->cq_sq));
	CALL(create_cq(o, &o->cq_rq));
	CALL(doca_verbs_qp_init_attr_create(&attr));
	CALL(set_queues(o, attr));
	CALL(doca_verbs_qp_create(o->context, attr, &o->qp));
	CALL(doca_verbs_qp_init_attr_destroy(attr));
	CALL(doca_gpu_verbs_export_qp(o->gpu, o->dev, o->qp, handler, o->memory, o->cq_sq, o->cq_rq,
				      &o->exported));
	CALL(doca_gpu_verbs_get_qp_dev(o->exported, &o->device));
	o->cqn = doca_verbs_cq_get_cqn(o->cq_sq);
	o->qpn = doca_verbs_qp_get_qpn(o->qp);
	return DOCA_SUCCESS;
}

static doca_error_t set_connection(struct objects *o, struct doca_verbs_qp_attr *attr)
{
	struct doca_verbs_device_attr *device;
	uint8_t reads;

	CALL(doca_verbs_query_device(o->context, &device));
	reads = doca_verbs_device_attr_get_max_qp_rd_atom(device);
	CALL(doca_verbs_qp_attr_set_max_rd_atomic(attr, reads));
	reads = doca_verbs_device_attr_get_max_qp_init_rd_atom(device);
	CALL(doca_verbs_qp_attr_set_max_dest_rd_atomic(attr, reads));
	CALL(doca_verbs_device_attr_free(device));
	CALL(doca_verbs_qp_attr_set_path_mtu(attr, DOCA_MTU_SIZE_1K_BYTES));
	CALL(doca_verbs_qp_attr_set_path_mtu(attr, DOCA_MTU_SIZE_4K_BYTES));
	CALL(doca_verbs_qp_attr_set_rq_psn(attr, 0));
	CALL(doca_verbs_qp_attr_set_sq_psn(attr, 0));
	CALL(doca_verbs_qp_attr_set_port_num(attr, 1));
	CALL(doca_verbs_qp_attr_set_ack_timeout(attr, 14));
	CALL(doca_verbs_qp_attr_set_retry_cnt(attr, 7));
	CALL(doca_verbs_qp_attr_set_rnr_retry(attr, 1));
	CALL(doca_verbs_qp_attr_set_min_rnr_timer(attr, 1));
	CALL(doca_verbs_qp_attr_set_allow_remote_write(attr, 1));
	CALL(doca_verbs_qp_attr_set_allow_remote_read(attr, 1));
	CALL(doca_verbs_qp_attr_set_atomic_mode(attr, DOCA_VERBS_QP_ATOMIC_MODE_IB_SPEC));
	CALL(doca_verbs_qp_attr_set_ah_attr(attr, o->ah));
	return doca_verbs_qp_attr_set_dest_qp_num(attr, o->qpn);
}

static doca_error_t connect_qp(struct objects *o)
{
	struct doca_verbs_qp_attr *attr = NULL;

	CALL(doca_verbs_qp_attr_create(&attr));
	CALL(set_connection(o, attr));
	CALL(doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_INIT));
	CALL(doca_verbs_qp_modify(
		o->qp, attr,
		DOCA_VERBS_QP_ATTR_NEXT_STATE | DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_WRITE |
			DOCA_VERBS_QP_ATTR_ATOMIC_MODE | DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_READ |
			DOCA_VERBS_QP_ATTR_PKEY_INDEX | DOCA_VERBS_QP_ATTR_PORT_NUM));
	CALL(doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_RTR));
	CALL(doca_verbs_qp_modify(o->qp, attr,
				  DOCA_VERBS_QP_ATTR_NEXT_STATE | DOCA_VERBS_QP_ATTR_RQ_PSN |
					  DOCA_VERBS_QP_ATTR_DEST_QP_NUM |
					  DOCA_VERBS_QP_ATTR_PATH_MTU | DOCA_VERBS_QP_ATTR_AH_ATTR |
					  DOCA_VERBS_QP_ATTR_MIN_RNR_TIMER |
					  DOCA_VERBS_QP_ATTR_MAX_DEST_RD_ATOMIC));
	CALL(doca_verbs_qp_attr_set_next_state(attr, DOCA_VERBS_QP_STATE_RTS));
	CALL(doca_verbs_qp_modify(
		o->qp, attr,
		DOCA_VERBS_QP_ATTR_NEXT_STATE | DOCA_VERBS_QP_ATTR_SQ_PSN |
			DOCA_VERBS_QP_ATTR_ACK_TIMEOUT | DOCA_VERBS_QP_ATTR_RETRY_CNT |
			DOCA_VERBS_QP_ATTR_RNR_RETRY | DOCA_VERBS_QP_ATTR_MAX_QP_RD_ATOMIC));
	return doca_verbs_qp_attr_destroy(attr);
}

static doca_error_t take_events(struct objects *o)
{
	struct doca_verbs_async_event event;
	doca_error_t err;

	while ((err = doca_verbs_get_async_event(o->context, &event)) == DOCA_SUCCESS) {
		if ((int)event.event_type < 0)
			return DOCA_ERROR_UNEXPECTED;
		(void)doca_verbs_ack_async_event(&event);
	}
	return err == DOCA_ERROR_AGAIN ? DOCA_SUCCESS : err;
}

static doca_error_t close_all(struct objects *o)
{
	CALL(doca_gpu_verbs_cpu_proxy_progress(o->exported));
	CALL(doca_gpu_verbs_unexport_qp(o->gpu, o->exported));
	CALL(doca_verbs_qp_destroy(o->qp));
	CALL(doca_verbs_cq_destroy(o->cq_sq));
	CALL(doca_umem_destroy(o->umem));
	CALL(doca_uar_destroy(o->uar));
	CALL(doca_gpu_mem_free(o->gpu, o->memory));
	CALL(doca_verbs_ah_attr_destroy(o->ah));
	CALL(doca_verbs_pd_destroy(o->verbs_pd));
	CALL(doca_verbs_context_destroy(o->context));
	CALL(doca_gpu_destroy(o->gpu));
	return doca_dev_close(o->dev);
}

static doca_error_t call_all(struct objects *o, struct ibv_device *device, const char *bus_id)
{
	CALL(open_device(o, device, bus_id));
	CALL(create_qp(o, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO));
	CALL(connect_qp(o));
	CALL(take_events(o));
	return close_all(o);
}

int main(int argc, char **argv)
{
	struct ibv_device **list;
	struct objects o;

	if (argc < 2)
		return 0;
	memset(&o, 0, sizeof(o));
	list = ibv_get_device_list(NULL);
	return !list || !list[0] || call_all(&o, list[0], argv[1]) != DOCA_SUCCESS;
}
