/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Functions that a DOCA SDK must have for SDK mode, as FN(name). If the SDK lacks one of them,
 * SDK mode stays off. core/sdk/sdk.c defines FN before it includes this list; there is no include
 * guard, so that the list can be expanded again with another FN.
 */
#ifndef FN
#define FN(name)
#endif
/* clang-format off */
FN(doca_gpu_create) FN(doca_gpu_destroy) FN(doca_gpu_mem_alloc) FN(doca_gpu_mem_free)
FN(doca_gpu_dmabuf_fd)

FN(doca_rdma_bridge_open_dev_from_pd) FN(doca_rdma_bridge_get_dev_pd) FN(doca_dev_close)
FN(doca_verbs_bridge_verbs_pd_import) FN(doca_verbs_bridge_verbs_context_import)

FN(doca_umem_create) FN(doca_umem_gpu_create) FN(doca_umem_destroy)
FN(doca_umem_get_id) FN(doca_umem_get_size) FN(doca_umem_get_address)
FN(doca_uar_create) FN(doca_uar_destroy) FN(doca_uar_id_get) FN(doca_uar_reg_addr_get)

FN(doca_verbs_cq_attr_create) FN(doca_verbs_cq_attr_destroy)
FN(doca_verbs_cq_attr_set_cq_size) FN(doca_verbs_cq_attr_set_cq_context)
FN(doca_verbs_cq_attr_set_external_datapath_en)
FN(doca_verbs_cq_attr_set_external_umem) FN(doca_verbs_cq_attr_set_external_uar)
FN(doca_verbs_cq_attr_set_cq_overrun) FN(doca_verbs_cq_attr_set_cq_collapsed)
FN(doca_verbs_cq_create) FN(doca_verbs_cq_destroy)
FN(doca_verbs_cq_get_wq) FN(doca_verbs_cq_get_dbr_addr) FN(doca_verbs_cq_get_cqn)

FN(doca_verbs_ah_attr_create) FN(doca_verbs_ah_attr_destroy)
FN(doca_verbs_ah_attr_set_gid) FN(doca_verbs_ah_attr_set_addr_type)
FN(doca_verbs_ah_attr_set_dlid) FN(doca_verbs_ah_attr_set_sl)
FN(doca_verbs_ah_attr_set_sgid_index) FN(doca_verbs_ah_attr_set_static_rate)
FN(doca_verbs_ah_attr_set_hop_limit) FN(doca_verbs_ah_attr_set_traffic_class)

FN(doca_verbs_qp_init_attr_create) FN(doca_verbs_qp_init_attr_destroy)
FN(doca_verbs_qp_init_attr_set_pd)
FN(doca_verbs_qp_init_attr_set_send_cq) FN(doca_verbs_qp_init_attr_set_receive_cq)
FN(doca_verbs_qp_init_attr_set_sq_sig_all)
FN(doca_verbs_qp_init_attr_set_sq_wr) FN(doca_verbs_qp_init_attr_set_rq_wr)
FN(doca_verbs_qp_init_attr_set_send_max_sges) FN(doca_verbs_qp_init_attr_set_receive_max_sges)
FN(doca_verbs_qp_init_attr_set_max_inline_data) FN(doca_verbs_qp_init_attr_set_user_index)
FN(doca_verbs_qp_init_attr_set_qp_type)
FN(doca_verbs_qp_init_attr_set_external_umem) FN(doca_verbs_qp_init_attr_set_external_dbr_umem)
FN(doca_verbs_qp_init_attr_set_external_datapath_en)
FN(doca_verbs_qp_init_attr_set_external_uar) FN(doca_verbs_qp_init_attr_set_qp_context)
FN(doca_verbs_qp_init_attr_set_srq) FN(doca_verbs_qp_init_attr_set_core_direct_master)
FN(doca_verbs_qp_init_attr_set_send_dbr_mode) FN(doca_verbs_qp_init_attr_get_send_dbr_mode)

FN(doca_verbs_qp_attr_create) FN(doca_verbs_qp_attr_destroy)
FN(doca_verbs_qp_attr_set_next_state)
FN(doca_verbs_qp_attr_set_current_state) FN(doca_verbs_qp_attr_get_current_state)
FN(doca_verbs_qp_attr_set_path_mtu)
FN(doca_verbs_qp_attr_set_rq_psn) FN(doca_verbs_qp_attr_set_sq_psn)
FN(doca_verbs_qp_attr_set_dest_qp_num)
FN(doca_verbs_qp_attr_set_allow_remote_write) FN(doca_verbs_qp_attr_set_allow_remote_read)
FN(doca_verbs_qp_attr_set_atomic_mode) FN(doca_verbs_qp_attr_set_ah_attr)
FN(doca_verbs_qp_attr_set_pkey_index) FN(doca_verbs_qp_attr_set_port_num)
FN(doca_verbs_qp_attr_set_ack_timeout) FN(doca_verbs_qp_attr_set_retry_cnt)
FN(doca_verbs_qp_attr_set_rnr_retry) FN(doca_verbs_qp_attr_set_min_rnr_timer)
FN(doca_verbs_qp_attr_set_max_rd_atomic) FN(doca_verbs_qp_attr_set_max_dest_rd_atomic)

FN(doca_verbs_qp_create) FN(doca_verbs_qp_destroy)
FN(doca_verbs_qp_modify) FN(doca_verbs_qp_query)
FN(doca_verbs_qp_get_wq) FN(doca_verbs_qp_get_dbr_addr)
FN(doca_verbs_qp_get_uar_addr) FN(doca_verbs_qp_get_qpn)
	/* clang-format on */
