/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Attribute objects of queue pairs: macros define one setter or getter per line; functions that
 * need more code are written out. Some setters reject values that are invalid for every device.
 * All other limits are checked when the attributes are used (qp.c, modify.c).
 */
#include <stdlib.h>

#include "core/log.h"
#include "core/sdk.h"
#include "qp/attr.h"
#include "host/gdaki.h"
#include "qp/qp.h"

#define OBJECT(what, type, text) \
	doca_error_t doca_verbs_##what##_create(type **verbs_##what) \
	{ \
		type *attr; \
\
		GDK_CHECK_ARG(verbs_##what != NULL); \
		attr = calloc(1, sizeof(*attr)); \
		if (!attr) { \
			gdk_err("no memory for a " #what); \
			return DOCA_ERROR_NO_MEMORY; \
		} \
		GDK_SDK_NEW(attr, text, doca_verbs_##what##_create, (void *)&attr->sdk); \
		*verbs_##what = attr; \
		return DOCA_SUCCESS; \
	} \
	doca_error_t doca_verbs_##what##_destroy(type *attr) \
	{ \
		GDK_CHECK_ARG(attr != NULL); \
		GDK_SDK_FIRST(attr, doca_verbs_##what##_destroy, attr->sdk); \
		free(attr); \
		return DOCA_SUCCESS; \
	}

/* Defines a setter. It rejects values for which the expression ok is false. In SDK mode it passes
 * arg to the SDK, which checks the value itself. */
#define SETTER(what, vtype, field, ok, arg) \
	doca_error_t doca_verbs_##what##_set_##field(doca_verbs_##what##_t *what, vtype field) \
	{ \
		GDK_CHECK_ARG(what != NULL); \
		GDK_SDK_FIRST(what, doca_verbs_##what##_set_##field, what->sdk, arg); \
		if (!what->sdk) \
			GDK_CHECK_ARG(ok); \
		what->field = field; \
		return DOCA_SUCCESS; \
	}
#define SET_IF(what, vtype, field, ok) SETTER(what, vtype, field, ok, field)
#define SET(what, vtype, field)	       SETTER(what, vtype, field, true, field)

/* Defines a setter for an object. In SDK mode it passes the member arg of the object to
 * the SDK. */
#define SET_OBJECT(what, vtype, field, arg) \
	doca_error_t doca_verbs_##what##_set_##field(doca_verbs_##what##_t *what, vtype field) \
	{ \
		GDK_CHECK_ARG(what != NULL); \
		GDK_CHECK_MIX(what, field); \
		GDK_SDK_FIRST(what, doca_verbs_##what##_set_##field, what->sdk, \
			      field ? field->arg : NULL); \
		what->field = field; \
		return DOCA_SUCCESS; \
	}

#define GET(what, vtype, field) \
	doca_error_t doca_verbs_##what##_get_##field(const doca_verbs_##what##_t *what, \
						     vtype *field) \
	{ \
		GDK_CHECK_ARG(what != NULL); \
		GDK_CHECK_ARG(field != NULL); \
		GDK_SDK_VALUE(what, vtype, "doca_verbs_" #what "_get_" #field, field); \
		*field = what->field; \
		return DOCA_SUCCESS; \
	}

OBJECT(qp_init_attr, doca_verbs_qp_init_attr_t, "Verbs QP Init Attr")
SET_OBJECT(qp_init_attr, doca_dev_t *, pd, sdk_pd)
SET_OBJECT(qp_init_attr, doca_verbs_cq_t *, send_cq, sdk)
SET_OBJECT(qp_init_attr, doca_verbs_cq_t *, receive_cq, sdk)
SET(qp_init_attr, int, sq_sig_all)
SET(qp_init_attr, uint32_t, sq_wr)
SET(qp_init_attr, uint32_t, rq_wr)
SET(qp_init_attr, uint32_t, send_max_sges)
SET(qp_init_attr, uint32_t, receive_max_sges)
SET(qp_init_attr, uint32_t, max_inline_data)
SET_IF(qp_init_attr, uint32_t, user_index, user_index < (1u << 24))
SET_IF(qp_init_attr, uint32_t, qp_type, qp_type == DOCA_VERBS_QP_TYPE_RC)
SET_OBJECT(qp_init_attr, doca_verbs_uar_t *, external_uar, sdk)
SET(qp_init_attr, void *, qp_context)
SET_OBJECT(qp_init_attr, struct doca_verbs_srq *, srq, sdk)
SET_IF(qp_init_attr, uint8_t, core_direct_master, core_direct_master <= 1)
SET_IF(qp_init_attr, enum doca_verbs_qp_send_dbr_mode, send_dbr_mode,
       send_dbr_mode <= DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT)
GET(qp_init_attr, enum doca_verbs_qp_send_dbr_mode, send_dbr_mode)
SET_IF(qp_init_attr, enum doca_verbs_qp_ordering_semantic, ordering_semantic,
       ordering_semantic <= DOCA_VERBS_QP_ORDERING_SEMANTIC_OOO_ALL)

/* The flag is not passed to the SDK, because this library emulates the mode. */
doca_error_t doca_verbs_qp_init_attr_set_emulate_no_dbr_ext(doca_verbs_qp_init_attr_t *attr, bool v)
{
	GDK_CHECK_ARG(attr != NULL);
	attr->emulate_no_dbr_ext = v;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_qp_init_attr_get_emulate_no_dbr_ext(const doca_verbs_qp_init_attr_t *attr,
							    bool *emulate_no_dbr_ext)
{
	GDK_CHECK_ARG(attr != NULL);
	GDK_CHECK_ARG(emulate_no_dbr_ext != NULL);
	*emulate_no_dbr_ext = attr->emulate_no_dbr_ext;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_qp_init_attr_get_ordering_semantic(
	doca_verbs_qp_init_attr_t *attr, enum doca_verbs_qp_ordering_semantic *ordering_semantic)
{
	GDK_CHECK_ARG(attr != NULL);
	GDK_CHECK_ARG(ordering_semantic != NULL);
	GDK_SDK_VALUE(attr, enum doca_verbs_qp_ordering_semantic,
		      "doca_verbs_qp_init_attr_get_ordering_semantic", ordering_semantic);
	*ordering_semantic = attr->ordering_semantic;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_qp_init_attr_set_external_umem(doca_verbs_qp_init_attr_t *attr,
						       doca_verbs_umem_t *umem, uint64_t offset)
{
	GDK_CHECK_ARG(attr != NULL);
	GDK_CHECK_MIX(attr, umem);
	GDK_SDK_FIRST(attr, doca_verbs_qp_init_attr_set_external_umem, attr->sdk,
		      umem ? umem->sdk : NULL, offset);
	GDK_SDK_FIRST_AS(attr, "doca_verbs_qp_init_attr_set_external_datapath_en",
			 doca_error_t(void *, uint8_t), attr->sdk, 1);
	attr->external_umem = umem;
	attr->external_umem_offset = offset;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_qp_init_attr_set_external_umem_dbr(doca_verbs_qp_init_attr_t *attr,
							   doca_verbs_umem_t *umem, uint64_t offset)
{
	GDK_CHECK_ARG(attr != NULL);
	GDK_CHECK_MIX(attr, umem);
	GDK_SDK_FIRST_AS(attr, "doca_verbs_qp_init_attr_set_external_dbr_umem",
			 doca_verbs_qp_init_attr_set_external_umem_dbr, attr->sdk,
			 umem ? umem->sdk : NULL, offset);
	attr->external_umem_dbr = umem;
	attr->external_umem_dbr_offset = offset;
	return DOCA_SUCCESS;
}

OBJECT(qp_attr, doca_verbs_qp_attr_t, "Verbs QP Attr")
SET_IF(qp_attr, enum doca_verbs_qp_state, next_state, next_state <= DOCA_VERBS_QP_STATE_ERR)
SET_IF(qp_attr, enum doca_verbs_qp_state, current_state, current_state <= DOCA_VERBS_QP_STATE_ERR)
SET_IF(qp_attr, enum doca_verbs_mtu_size, path_mtu, path_mtu <= DOCA_VERBS_MTU_SIZE_4K_BYTES)
SET(qp_attr, uint32_t, rq_psn) /* modify.c uses the low 24 bits of both PSNs */
SET(qp_attr, uint32_t, sq_psn)
SET_IF(qp_attr, uint32_t, dest_qp_num, dest_qp_num < (1u << 24))
SET(qp_attr, int, allow_remote_write)
SET(qp_attr, int, allow_remote_read)
SET_IF(qp_attr, enum doca_verbs_qp_atomic_mode, atomic_mode,
       atomic_mode <= DOCA_VERBS_QP_ATOMIC_MODE_UP_TO_256BYTES)
SET(qp_attr, uint16_t, pkey_index)
SET_IF(qp_attr, uint16_t, port_num, port_num >= 1 && port_num <= UINT8_MAX)
SET_IF(qp_attr, uint16_t, ack_timeout, ack_timeout < 32)
SET_IF(qp_attr, uint16_t, retry_cnt, retry_cnt < 8)
SET_IF(qp_attr, uint16_t, rnr_retry, rnr_retry < 8)
SET_IF(qp_attr, uint16_t, min_rnr_timer, min_rnr_timer < 32)
SET(qp_attr, uint8_t, max_rd_atomic)
SET(qp_attr, uint8_t, max_dest_rd_atomic)

/* The value that the kernel uses, and the maximum that UCX allows. */
#define LOG_ACK_REQ_FREQ_MAX 8

doca_error_t gdk_verbs_qp_attr_set_log_ack_req_freq(doca_verbs_qp_attr_t *attr, uint8_t log)
{
	GDK_CHECK_ARG(attr != NULL);
	GDK_CHECK_ARG(log <= LOG_ACK_REQ_FREQ_MAX);
	attr->log_ack_req_freq = log;
	return DOCA_SUCCESS;
}

enum doca_verbs_qp_state doca_verbs_qp_attr_get_next_state(const doca_verbs_qp_attr_t *attr)
{
	GDK_CHECK_ARG_OR(DOCA_VERBS_QP_STATE_RST, attr != NULL);
	GDK_SDK_GET(attr, doca_verbs_qp_attr_get_next_state, attr->sdk);
	return attr->next_state;
}

doca_error_t doca_verbs_qp_attr_get_current_state(doca_verbs_qp_attr_t *attr,
						  enum doca_verbs_qp_state *current_state)
{
	GDK_CHECK_ARG(attr != NULL);
	GDK_CHECK_ARG(current_state != NULL);
	GDK_SDK_VALUE(attr, enum doca_verbs_qp_state, "doca_verbs_qp_attr_get_current_state",
		      current_state);
	*current_state = attr->current_state;
	return DOCA_SUCCESS;
}

/* Copies the address handle: the caller can change or destroy it afterwards. */
doca_error_t doca_verbs_qp_attr_set_ah_attr(doca_verbs_qp_attr_t *attr,
					    doca_verbs_ah_attr_t *ah_attr)
{
	GDK_CHECK_ARG(attr != NULL);
	GDK_CHECK_ARG(ah_attr != NULL);
	GDK_CHECK_MIX(attr, ah_attr);
	GDK_SDK_FIRST(attr, doca_verbs_qp_attr_set_ah_attr, attr->sdk, ah_attr->sdk);
	attr->ah = *ah_attr;
	attr->has_ah = true;
	return DOCA_SUCCESS;
}

/* ---- all attributes in one call ---- */

doca_error_t gdk_verbs_qp_attr_get(const doca_verbs_qp_attr_t *attr, struct gdk_qp_attr *values)
{
	static const struct doca_verbs_ah_attr_t none;
	const struct doca_verbs_ah_attr_t *ah;

	GDK_CHECK_ARG(attr != NULL);
	GDK_CHECK_ARG(values != NULL);
	if (attr->sdk) {
		gdk_err("attr: cannot read the values: the object belongs to the DOCA SDK");
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	ah = attr->has_ah ? &attr->ah : &none;
	*values = (struct gdk_qp_attr){
		.next_state = attr->next_state,
		.current_state = attr->current_state,
		.path_mtu = attr->path_mtu,
		.rq_psn = attr->rq_psn,
		.sq_psn = attr->sq_psn,
		.dest_qp_num = attr->dest_qp_num,
		.allow_remote_write = attr->allow_remote_write,
		.allow_remote_read = attr->allow_remote_read,
		.atomic_mode = attr->atomic_mode,
		.pkey_index = attr->pkey_index,
		.port_num = attr->port_num,
		.ack_timeout = attr->ack_timeout,
		.retry_cnt = attr->retry_cnt,
		.rnr_retry = attr->rnr_retry,
		.min_rnr_timer = attr->min_rnr_timer,
		.max_rd_atomic = attr->max_rd_atomic,
		.max_dest_rd_atomic = attr->max_dest_rd_atomic,
		.log_ack_req_freq = attr->log_ack_req_freq,
		.addr_type = ah->addr_type,
		.gid = ah->gid,
		.dlid = ah->dlid,
		.sl = ah->sl,
		.sgid_index = ah->sgid_index,
		.static_rate = ah->static_rate,
		.hop_limit = ah->hop_limit,
		.traffic_class = ah->traffic_class,
	};
	return DOCA_SUCCESS;
}

doca_error_t gdk_verbs_qp_init_attr_get(const doca_verbs_qp_init_attr_t *init_attr,
					struct gdk_qp_init_attr *values)
{
	GDK_CHECK_ARG(init_attr != NULL);
	GDK_CHECK_ARG(values != NULL);
	if (init_attr->sdk) {
		gdk_err("init_attr: cannot read the values: the object belongs to the DOCA SDK");
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	*values = (struct gdk_qp_init_attr){
		.send_cq = init_attr->send_cq,
		.receive_cq = init_attr->receive_cq,
		.srq = init_attr->srq,
		.qp_context = init_attr->qp_context,
		.sq_wr = init_attr->sq_wr,
		.rq_wr = init_attr->rq_wr,
		.send_max_sges = init_attr->send_max_sges,
		.receive_max_sges = init_attr->receive_max_sges,
		.max_inline_data = init_attr->max_inline_data,
		.user_index = init_attr->user_index,
		.sq_sig_all = init_attr->sq_sig_all,
		.core_direct_master = init_attr->core_direct_master,
		.send_dbr_mode = init_attr->send_dbr_mode,
	};
	return DOCA_SUCCESS;
}
