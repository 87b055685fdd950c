/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Attribute objects of queue pairs: macros define one setter or getter per line; functions that
 * need more code are written out. Some setters reject values that are invalid for every device.
 * All other limits are checked when the attributes are used (qp.c, modify.c).
 */
#include <stdlib.h>

#include "core/log/log.h"
#include "core/sdk/sdk.h"
#include "qp/verbs/attr.h"
#include "host/gdaki.h"
#include "qp/verbs/qp.h"

#define MASK24 ((1u << 24) - 1)

#define OBJECT(what, type, text) \
	doca_error_t doca_verbs_##what##_create(type **verbs_##what) \
	{ \
		type *attr; \
\
		GDK_CHECK_PTR(verbs_##what); \
		attr = calloc(1, sizeof(*attr)); \
		if (!attr) { \
			gdk_err("no memory for a " #what); \
			return DOCA_ERROR_NO_MEMORY; \
		} \
		GDK_SDK_NEW(attr, text, doca_verbs_##what##_create, (void *)&attr->sdk); \
		*verbs_##what = attr; \
		return DOCA_SUCCESS; \
	} \
	doca_error_t doca_verbs_##what##_destroy(type *what) \
	{ \
		GDK_CHECK_PTR(what); \
		GDK_SDK_FIRST(what, doca_verbs_##what##_destroy, what->sdk); \
		free(what); \
		return DOCA_SUCCESS; \
	}

/* Defines a setter. check is a GDK_CHECK_* statement for the value, or empty. In SDK mode the
 * setter passes the value to the SDK, which checks it itself. */
#define SETTER(what, vtype, field, check) \
	doca_error_t doca_verbs_##what##_set_##field(doca_verbs_##what##_t *what, vtype field) \
	{ \
		GDK_CHECK_PTR(what); \
		GDK_SDK_FIRST(what, doca_verbs_##what##_set_##field, what->sdk, field); \
		if (!what->sdk) { \
			check; \
		} \
		what->field = field; \
		return DOCA_SUCCESS; \
	}
#define SET_RANGE(what, vtype, field, min, max) \
	SETTER(what, vtype, field, GDK_CHECK_RANGE(field, min, max))
#define SET_ENUM(what, vtype, field, last) SETTER(what, vtype, field, GDK_CHECK_ENUM(field, last))
#define SET(what, vtype, field)		   SETTER(what, vtype, field, )

/* Defines a setter for an object. In SDK mode it passes the member arg of the object to
 * the SDK. */
#define SET_OBJECT(what, vtype, field, arg) \
	doca_error_t doca_verbs_##what##_set_##field(doca_verbs_##what##_t *what, vtype field) \
	{ \
		GDK_CHECK_PTR(what); \
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
		GDK_CHECK_PTR(what); \
		GDK_CHECK_PTR(field); \
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
SET_RANGE(qp_init_attr, uint32_t, user_index, 0, MASK24)
SETTER(qp_init_attr, uint32_t, qp_type,
       GDK_CHECK_ARG(qp_type == DOCA_VERBS_QP_TYPE_RC || qp_type == DOCA_VERBS_QP_TYPE_UC,
		     "qp_type %u (expected DOCA_VERBS_QP_TYPE_RC, %u, or _UC, %u)", qp_type,
		     DOCA_VERBS_QP_TYPE_RC, DOCA_VERBS_QP_TYPE_UC))
SET_OBJECT(qp_init_attr, doca_verbs_uar_t *, external_uar, sdk)
SET(qp_init_attr, void *, qp_context)
SET_OBJECT(qp_init_attr, struct doca_verbs_srq *, srq, sdk)
SET_RANGE(qp_init_attr, uint8_t, core_direct_master, 0, 1)
SET_RANGE(qp_init_attr, uint8_t, cqe_inline, 0, 1)
SET_ENUM(qp_init_attr, enum doca_verbs_qp_send_dbr_mode, send_dbr_mode,
	 DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT)
GET(qp_init_attr, enum doca_verbs_qp_send_dbr_mode, send_dbr_mode)
SET_ENUM(qp_init_attr, enum doca_verbs_qp_ordering_semantic, ordering_semantic,
	 DOCA_VERBS_QP_ORDERING_SEMANTIC_OOO_ALL)

/* The flag is not passed to the SDK, because this library emulates the mode. */
doca_error_t doca_verbs_qp_init_attr_set_emulate_no_dbr_ext(doca_verbs_qp_init_attr_t *qp_init_attr,
							    bool emulate_no_dbr_ext)
{
	GDK_CHECK_PTR(qp_init_attr);
	qp_init_attr->emulate_no_dbr_ext = emulate_no_dbr_ext;
	return DOCA_SUCCESS;
}

doca_error_t
doca_verbs_qp_init_attr_get_emulate_no_dbr_ext(const doca_verbs_qp_init_attr_t *qp_init_attr,
					       bool *emulate_no_dbr_ext)
{
	GDK_CHECK_PTR(qp_init_attr);
	GDK_CHECK_PTR(emulate_no_dbr_ext);
	*emulate_no_dbr_ext = qp_init_attr->emulate_no_dbr_ext;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_qp_init_attr_get_ordering_semantic(
	doca_verbs_qp_init_attr_t *qp_init_attr,
	enum doca_verbs_qp_ordering_semantic *ordering_semantic)
{
	GDK_CHECK_PTR(qp_init_attr);
	GDK_CHECK_PTR(ordering_semantic);
	GDK_SDK_VALUE(qp_init_attr, enum doca_verbs_qp_ordering_semantic,
		      "doca_verbs_qp_init_attr_get_ordering_semantic", ordering_semantic);
	*ordering_semantic = qp_init_attr->ordering_semantic;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_qp_init_attr_set_external_umem(doca_verbs_qp_init_attr_t *qp_init_attr,
						       doca_verbs_umem_t *external_umem,
						       uint64_t external_umem_offset)
{
	GDK_CHECK_PTR(qp_init_attr);
	GDK_CHECK_MIX(qp_init_attr, external_umem);
	GDK_SDK_FIRST(qp_init_attr, doca_verbs_qp_init_attr_set_external_umem, qp_init_attr->sdk,
		      external_umem ? external_umem->sdk : NULL, external_umem_offset);
	GDK_SDK_FIRST_AS(qp_init_attr, "doca_verbs_qp_init_attr_set_external_datapath_en",
			 doca_error_t(void *, uint8_t), qp_init_attr->sdk, 1);
	qp_init_attr->external_umem = external_umem;
	qp_init_attr->external_umem_offset = external_umem_offset;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_qp_init_attr_set_external_umem_dbr(doca_verbs_qp_init_attr_t *qp_init_attr,
							   doca_verbs_umem_t *external_umem,
							   uint64_t external_umem_offset)
{
	GDK_CHECK_PTR(qp_init_attr);
	GDK_CHECK_MIX(qp_init_attr, external_umem);
	GDK_SDK_FIRST_AS(qp_init_attr, "doca_verbs_qp_init_attr_set_external_dbr_umem",
			 doca_verbs_qp_init_attr_set_external_umem_dbr, qp_init_attr->sdk,
			 external_umem ? external_umem->sdk : NULL, external_umem_offset);
	qp_init_attr->external_umem_dbr = external_umem;
	qp_init_attr->external_umem_dbr_offset = external_umem_offset;
	return DOCA_SUCCESS;
}

OBJECT(qp_attr, doca_verbs_qp_attr_t, "Verbs QP Attr")
SET_ENUM(qp_attr, enum doca_verbs_qp_state, next_state, DOCA_VERBS_QP_STATE_ERR)
SET_ENUM(qp_attr, enum doca_verbs_qp_state, current_state, DOCA_VERBS_QP_STATE_ERR)
SET_ENUM(qp_attr, enum doca_verbs_mtu_size, path_mtu, DOCA_VERBS_MTU_SIZE_4K_BYTES)
SET(qp_attr, uint32_t, rq_psn) /* modify.c uses the low 24 bits of both PSNs */
SET(qp_attr, uint32_t, sq_psn)
SET_RANGE(qp_attr, uint32_t, dest_qp_num, 0, MASK24)
SET(qp_attr, int, allow_remote_write)
SET(qp_attr, int, allow_remote_read)
SET_ENUM(qp_attr, enum doca_verbs_qp_atomic_mode, atomic_mode,
	 DOCA_VERBS_QP_ATOMIC_MODE_UP_TO_256BYTES)
SET(qp_attr, uint16_t, pkey_index)
SET_RANGE(qp_attr, uint16_t, port_num, 1, UINT8_MAX)
SET_RANGE(qp_attr, uint16_t, ack_timeout, 0, 31)
SET_RANGE(qp_attr, uint16_t, retry_cnt, 0, 7)
SET_RANGE(qp_attr, uint16_t, rnr_retry, 0, 7)
SET_RANGE(qp_attr, uint16_t, min_rnr_timer, 0, 31)
SET(qp_attr, uint8_t, max_rd_atomic)
SET(qp_attr, uint8_t, max_dest_rd_atomic)

/* The value that the kernel uses, and the maximum that UCX allows. */
#define LOG_ACK_REQ_FREQ_MAX 8

doca_error_t gdk_verbs_qp_init_attr_set_copy_engine(doca_verbs_qp_init_attr_t *qp_init_attr,
						    uint8_t copy_engine)
{
	GDK_CHECK_PTR(qp_init_attr);
	GDK_CHECK_RANGE(copy_engine, 0, 1);
	if (qp_init_attr->sdk && copy_engine) {
		gdk_err("%s: a QP of the DOCA SDK cannot be permitted to use the copy engine",
			__func__);
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	qp_init_attr->copy_engine = copy_engine;
	return DOCA_SUCCESS;
}

doca_error_t gdk_verbs_qp_attr_set_log_ack_req_freq(doca_verbs_qp_attr_t *attr, uint8_t log)
{
	GDK_CHECK_PTR(attr);
	GDK_CHECK_RANGE(log, 0, LOG_ACK_REQ_FREQ_MAX);
	attr->log_ack_req_freq = log;
	return DOCA_SUCCESS;
}

enum doca_verbs_qp_state doca_verbs_qp_attr_get_next_state(const doca_verbs_qp_attr_t *qp_attr)
{
	GDK_CHECK_PTR_OR(DOCA_VERBS_QP_STATE_RST, qp_attr);
	GDK_SDK_GET(qp_attr, doca_verbs_qp_attr_get_next_state, qp_attr->sdk);
	return qp_attr->next_state;
}

doca_error_t doca_verbs_qp_attr_get_current_state(doca_verbs_qp_attr_t *qp_attr,
						  enum doca_verbs_qp_state *current_state)
{
	GDK_CHECK_PTR(qp_attr);
	GDK_CHECK_PTR(current_state);
	GDK_SDK_VALUE(qp_attr, enum doca_verbs_qp_state, "doca_verbs_qp_attr_get_current_state",
		      current_state);
	*current_state = qp_attr->current_state;
	return DOCA_SUCCESS;
}

/* Copies the address handle: the caller can change or destroy it afterwards. */
doca_error_t doca_verbs_qp_attr_set_ah_attr(doca_verbs_qp_attr_t *qp_attr,
					    doca_verbs_ah_attr_t *ah_attr)
{
	GDK_CHECK_PTR(qp_attr);
	GDK_CHECK_PTR(ah_attr);
	GDK_CHECK_MIX(qp_attr, ah_attr);
	GDK_SDK_FIRST(qp_attr, doca_verbs_qp_attr_set_ah_attr, qp_attr->sdk, ah_attr->sdk);
	qp_attr->ah = *ah_attr;
	qp_attr->has_ah = true;
	return DOCA_SUCCESS;
}

/* ---- all attributes in one call ---- */

doca_error_t gdk_verbs_qp_attr_get(const doca_verbs_qp_attr_t *attr, struct gdk_qp_attr *values)
{
	static const struct doca_verbs_ah_attr_t none;
	const struct doca_verbs_ah_attr_t *ah;

	GDK_CHECK_PTR(attr);
	GDK_CHECK_PTR(values);
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
	GDK_CHECK_PTR(init_attr);
	GDK_CHECK_PTR(values);
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
		.cqe_inline = init_attr->cqe_inline,
		.send_dbr_mode = init_attr->send_dbr_mode,
	};
	return DOCA_SUCCESS;
}

const char *gdk_qp_state_name(enum doca_verbs_qp_state state)
{
	static const char *const names[] = { "RST", "INIT", "RTR", "RTS", "ERR" };

	return (unsigned int)state < GDK_ARRAY_SIZE(names) ? names[state] : "?";
}
