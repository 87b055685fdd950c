/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * libdoca_verbs.so of the stand-in SDK. SDK_OLD leaves out functions that old versions
 * lack and that our library can do without; SDK_WITHOUT_MODIFY leaves out one that it
 * needs.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sdk.h"

struct gid {
	uint8_t raw[16];
};

/* ---- views of libibverbs' objects ---- */

EXPORT int doca_verbs_bridge_verbs_pd_import(struct ibv_pd *pd, void **view);
EXPORT int doca_verbs_bridge_verbs_pd_import(struct ibv_pd *pd, void **view)
{
	int err = sdk_call("doca_verbs_bridge_verbs_pd_import(%p)", (void *)pd);

	if (!err)
		*view = sdk_new("pd", pd);
	return err;
}

EXPORT int doca_verbs_bridge_verbs_context_import(struct ibv_context *ctx, uint32_t flags,
						  void **view);
EXPORT int doca_verbs_bridge_verbs_context_import(struct ibv_context *ctx, uint32_t flags,
						  void **view)
{
	int err = sdk_call("doca_verbs_bridge_verbs_context_import(%p, %u)", (void *)ctx, flags);

	if (!err)
		*view = sdk_new("context", ctx);
	return err;
}

#ifndef SDK_OLD
DELETE(doca_verbs_pd_destroy)
DELETE(doca_verbs_context_destroy)

/* ---- device attributes ---- */

EXPORT int doca_verbs_query_device(void *context, void **attr);
EXPORT int doca_verbs_query_device(void *context, void **attr)
{
	int err = sdk_call("doca_verbs_query_device(%s)", sdk_name(context));

	if (!err)
		*attr = sdk_new("device_attr", NULL);
	return err;
}

DELETE(doca_verbs_device_attr_free)
SET(doca_verbs_device_attr_get_is_qp_type_supported, uint32_t)

EXPORT int doca_verbs_device_attr_get_is_cqe_inline_supported(void *attr);
EXPORT int doca_verbs_device_attr_get_is_cqe_inline_supported(void *attr)
{
	return sdk_call("doca_verbs_device_attr_get_is_cqe_inline_supported(%s)", sdk_name(attr));
}

GET(doca_verbs_device_attr_get_max_qp, uint32_t, 101)
GET(doca_verbs_device_attr_get_max_qp_wr, uint32_t, 102)
GET(doca_verbs_device_attr_get_max_sge, uint32_t, 103)
GET(doca_verbs_device_attr_get_max_cq, uint32_t, 104)
GET(doca_verbs_device_attr_get_max_cqe, uint32_t, 105)
GET(doca_verbs_device_attr_get_max_mr, uint32_t, 106)
GET(doca_verbs_device_attr_get_max_pd, uint32_t, 107)
GET(doca_verbs_device_attr_get_max_ah, uint32_t, 108)
GET(doca_verbs_device_attr_get_max_srq, uint32_t, 109)
GET(doca_verbs_device_attr_get_max_srq_wr, uint32_t, 110)
GET(doca_verbs_device_attr_get_max_srq_sge, uint32_t, 111)
GET(doca_verbs_device_attr_get_max_pkeys, uint16_t, 112)
GET(doca_verbs_device_attr_get_max_qp_rd_atom, uint8_t, 113)
GET(doca_verbs_device_attr_get_max_qp_init_rd_atom, uint8_t, 114)
GET(doca_verbs_device_attr_get_send_dbr_mode_no_dbr_ext, uint8_t, 1)
#endif

/* ---- CQ ---- */

NEW(doca_verbs_cq_attr_create, "cq_attr")
DELETE(doca_verbs_cq_attr_destroy)
SET(doca_verbs_cq_attr_set_cq_size, uint32_t)
SET_POINTER(doca_verbs_cq_attr_set_cq_context)
SET(doca_verbs_cq_attr_set_external_datapath_en, uint8_t)
SET_UMEM(doca_verbs_cq_attr_set_external_umem)
SET_OBJECT(doca_verbs_cq_attr_set_external_uar)
SET(doca_verbs_cq_attr_set_cq_overrun, int)
SET(doca_verbs_cq_attr_set_cq_collapsed, uint8_t)
NEW_IN(doca_verbs_cq_create, "cq")
DELETE(doca_verbs_cq_destroy)
GET(doca_verbs_cq_get_cqn, uint32_t, 0x5c)

/* Buffer that the stand-in reports for every CQ, even if the caller passed its own umem. */
static uint8_t cq_ring[64 * 64] __attribute__((aligned(4096)));
static uint32_t cq_dbrec[2];
static uint64_t cq_reg;

EXPORT void doca_verbs_cq_get_wq(void *cq, void **buf, uint32_t *num, uint8_t *size);
EXPORT void doca_verbs_cq_get_wq(void *cq, void **buf, uint32_t *num, uint8_t *size)
{
	sdk_call("doca_verbs_cq_get_wq(%s)", sdk_name(cq));
	*buf = cq_ring;
	*num = 64;
	*size = 64;
}

EXPORT void doca_verbs_cq_get_dbr_addr(void *cq, uint64_t **reg, uint32_t **ci, uint32_t **arm);
EXPORT void doca_verbs_cq_get_dbr_addr(void *cq, uint64_t **reg, uint32_t **ci, uint32_t **arm)
{
	sdk_call("doca_verbs_cq_get_dbr_addr(%s)", sdk_name(cq));
	*reg = &cq_reg;
	*ci = &cq_dbrec[0];
	*arm = &cq_dbrec[1];
}

/* ---- AH ---- */

EXPORT int doca_verbs_ah_attr_create(void *context, void **ah);
EXPORT int doca_verbs_ah_attr_create(void *context, void **ah)
{
	int err = sdk_call("doca_verbs_ah_attr_create(%s)", sdk_name(context));

	if (!err)
		*ah = sdk_new("ah", NULL);
	return err;
}

EXPORT int doca_verbs_ah_attr_set_gid(void *ah, struct gid gid);
EXPORT int doca_verbs_ah_attr_set_gid(void *ah, struct gid gid)
{
	return sdk_call("doca_verbs_ah_attr_set_gid(%s, %u..%u)", sdk_name(ah), gid.raw[0],
			gid.raw[15]);
}

DELETE(doca_verbs_ah_attr_destroy)
SET(doca_verbs_ah_attr_set_addr_type, int)
SET(doca_verbs_ah_attr_set_dlid, uint32_t)
SET(doca_verbs_ah_attr_set_sl, uint8_t)
SET(doca_verbs_ah_attr_set_sgid_index, uint8_t)
SET(doca_verbs_ah_attr_set_static_rate, uint8_t)
SET(doca_verbs_ah_attr_set_hop_limit, uint8_t)
SET(doca_verbs_ah_attr_set_traffic_class, uint8_t)
#ifndef SDK_OLD
GET(doca_verbs_ah_attr_get_gid, struct gid, ((struct gid){ { 9, [15] = 8 } }))
GET(doca_verbs_ah_attr_get_addr_type, int, 2)
GET(doca_verbs_ah_attr_get_dlid, uint32_t, 201)
GET(doca_verbs_ah_attr_get_sl, uint8_t, 202)
GET(doca_verbs_ah_attr_get_sgid_index, uint8_t, 203)
GET(doca_verbs_ah_attr_get_static_rate, uint8_t, 204)
GET(doca_verbs_ah_attr_get_hop_limit, uint8_t, 205)
GET(doca_verbs_ah_attr_get_traffic_class, uint8_t, 206)
#endif

/* ---- QP ---- */

NEW(doca_verbs_qp_init_attr_create, "qp_init_attr")
DELETE(doca_verbs_qp_init_attr_destroy)
SET_OBJECT(doca_verbs_qp_init_attr_set_pd)
SET_OBJECT(doca_verbs_qp_init_attr_set_send_cq)
SET_OBJECT(doca_verbs_qp_init_attr_set_receive_cq)
SET(doca_verbs_qp_init_attr_set_sq_sig_all, int)
SET(doca_verbs_qp_init_attr_set_sq_wr, uint32_t)
SET(doca_verbs_qp_init_attr_set_rq_wr, uint32_t)
SET(doca_verbs_qp_init_attr_set_send_max_sges, uint32_t)
SET(doca_verbs_qp_init_attr_set_receive_max_sges, uint32_t)
SET(doca_verbs_qp_init_attr_set_max_inline_data, uint32_t)
SET(doca_verbs_qp_init_attr_set_user_index, uint32_t)
SET(doca_verbs_qp_init_attr_set_qp_type, uint32_t)
SET_UMEM(doca_verbs_qp_init_attr_set_external_umem)
SET_UMEM(doca_verbs_qp_init_attr_set_external_dbr_umem)
SET(doca_verbs_qp_init_attr_set_external_datapath_en, uint8_t)
SET_OBJECT(doca_verbs_qp_init_attr_set_external_uar)
SET_POINTER(doca_verbs_qp_init_attr_set_qp_context)
SET_OBJECT(doca_verbs_qp_init_attr_set_srq)
SET(doca_verbs_qp_init_attr_set_core_direct_master, uint8_t)
SET(doca_verbs_qp_init_attr_set_cqe_inline, uint8_t)
SET(doca_verbs_qp_init_attr_set_send_dbr_mode, int)
GET(doca_verbs_qp_init_attr_get_send_dbr_mode, int, 1)
#ifndef SDK_OLD
SET(doca_verbs_qp_init_attr_set_ordering_semantic, int)
GET(doca_verbs_qp_init_attr_get_ordering_semantic, int, 2)
#endif

NEW(doca_verbs_qp_attr_create, "qp_attr")
DELETE(doca_verbs_qp_attr_destroy)
SET(doca_verbs_qp_attr_set_next_state, int)
SET(doca_verbs_qp_attr_set_current_state, int)
GET(doca_verbs_qp_attr_get_current_state, int, 3)
SET(doca_verbs_qp_attr_set_path_mtu, int)
SET(doca_verbs_qp_attr_set_rq_psn, uint32_t)
SET(doca_verbs_qp_attr_set_sq_psn, uint32_t)
SET(doca_verbs_qp_attr_set_dest_qp_num, uint32_t)
SET(doca_verbs_qp_attr_set_allow_remote_write, int)
SET(doca_verbs_qp_attr_set_allow_remote_read, int)
SET(doca_verbs_qp_attr_set_atomic_mode, int)
SET_OBJECT(doca_verbs_qp_attr_set_ah_attr)
SET(doca_verbs_qp_attr_set_pkey_index, uint16_t)
SET(doca_verbs_qp_attr_set_port_num, uint16_t)
SET(doca_verbs_qp_attr_set_ack_timeout, uint16_t)
SET(doca_verbs_qp_attr_set_retry_cnt, uint16_t)
SET(doca_verbs_qp_attr_set_rnr_retry, uint16_t)
SET(doca_verbs_qp_attr_set_min_rnr_timer, uint16_t)
SET(doca_verbs_qp_attr_set_max_rd_atomic, uint8_t)
SET(doca_verbs_qp_attr_set_max_dest_rd_atomic, uint8_t)
#ifndef SDK_OLD
GET(doca_verbs_qp_attr_get_next_state, int, 2)
#endif

NEW_IN(doca_verbs_qp_create, "qp")
DELETE(doca_verbs_qp_destroy)

GET(doca_verbs_qp_get_qpn, uint32_t, 0x9a)

#ifndef SDK_WITHOUT_MODIFY
EXPORT int doca_verbs_qp_modify(void *qp, void *attr, int mask);
EXPORT int doca_verbs_qp_modify(void *qp, void *attr, int mask)
{
	return sdk_call("doca_verbs_qp_modify(%s, %s, %d)", sdk_name(qp), sdk_name(attr), mask);
}
#endif

EXPORT int doca_verbs_qp_query(void *qp, void *attr, void *init, int *mask);
EXPORT int doca_verbs_qp_query(void *qp, void *attr, void *init, int *mask)
{
	int err = sdk_call("doca_verbs_qp_query(%s, %s, %s)", sdk_name(qp), sdk_name(attr),
			   sdk_name(init));

	/* This call must reach this library's own function, although libdoca_other.so exports one
	 * with the same name. */
	(void)doca_verbs_qp_get_qpn(qp);
	if (!err && mask)
		*mask = 0x40;
	return err;
}

static uint8_t wq[16 * 64 + 64 * 64] __attribute__((aligned(4096)));
static uint32_t dbrec[2];
static uint64_t page[512] __attribute__((aligned(4096)));

EXPORT void doca_verbs_qp_get_wq(const void *qp, void **sq, uint32_t *sq_num, void **rq,
				 uint32_t *rq_num, uint32_t *rwqe_bytes);
EXPORT void doca_verbs_qp_get_wq(const void *qp, void **sq, uint32_t *sq_num, void **rq,
				 uint32_t *rq_num, uint32_t *rwqe_bytes)
{
	const char *rq_env = getenv("STANDIN_SDK_RQ");

	sdk_call("doca_verbs_qp_get_wq(%s)", sdk_name(qp));
	*rq = wq;
	*rq_num = rq_env ? (uint32_t)atoi(rq_env) : 0;
	*rwqe_bytes = 16;
	*sq = wq + 64;
	*sq_num = 64;
}

GET(doca_verbs_qp_get_dbr_addr, void *, dbrec)
GET(doca_verbs_qp_get_uar_addr, void *, &page[256])

/* ---- SRQ ---- */

#ifndef SDK_OLD
NEW(doca_verbs_srq_init_attr_create, "srq_init_attr")
DELETE(doca_verbs_srq_init_attr_destroy)
SET(doca_verbs_srq_init_attr_set_srq_wr, uint32_t)
GET(doca_verbs_srq_init_attr_get_srq_wr, uint32_t, 301)
SET(doca_verbs_srq_init_attr_set_receive_max_sges, uint32_t)
GET(doca_verbs_srq_init_attr_get_receive_max_sges, uint32_t, 302)
SET(doca_verbs_srq_init_attr_set_type, int)
GET(doca_verbs_srq_init_attr_get_type, int, 1)
SET_OBJECT(doca_verbs_srq_init_attr_set_pd)
SET_UMEM(doca_verbs_srq_init_attr_set_external_umem)
NEW_IN(doca_verbs_srq_create, "srq")
DELETE(doca_verbs_srq_destroy)
GET(doca_verbs_srq_get_srqn, uint32_t, 303)
GET(doca_verbs_srq_get_dbr_addr, void *, dbrec)

EXPORT void doca_verbs_srq_get_wq(const void *srq, void **buf, uint32_t *num, uint32_t *size);
EXPORT void doca_verbs_srq_get_wq(const void *srq, void **buf, uint32_t *num, uint32_t *size)
{
	sdk_call("doca_verbs_srq_get_wq(%s)", sdk_name(srq));
	*buf = wq;
	*num = 16;
	*size = 64;
}
#endif
