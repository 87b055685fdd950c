/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Attribute objects of queue pairs: one line per attribute, and by hand the
 * few setters that have something to check. A setter checks what is wrong
 * whatever the device; limits of a device are checked where it is known.
 */
#include <stdlib.h>

#include "../core/log.h"
#include "../core/sdk_objects.h"
#include "attr.h"
#include "qp.h"

#define OBJECT(what, type, text)                                                      \
	doca_error_t doca_verbs_##what##_create(type **out)                           \
	{                                                                             \
		type *attr;                                                           \
                                                                                      \
		GDK_CHECK_ARG(out != NULL);                                           \
		attr = calloc(1, sizeof(*attr));                                      \
		if (!attr) {                                                          \
			gdk_err("no memory for a " #what);                            \
			return DOCA_ERROR_NO_MEMORY;                                  \
		}                                                                     \
		GDK_SDK_NEW(attr, text, doca_verbs_##what##_create, (void *)&attr->sdk); \
		*out = attr;                                                          \
		return DOCA_SUCCESS;                                                  \
	}                                                                             \
	doca_error_t doca_verbs_##what##_destroy(type *attr)                          \
	{                                                                             \
		GDK_CHECK_ARG(attr != NULL);                                          \
		GDK_SDK_FIRST(attr, doca_verbs_##what##_destroy, attr->sdk);          \
		free(attr);                                                           \
		return DOCA_SUCCESS;                                                  \
	}

/* A setter that refuses values for which ok, an expression of v, is false; v is arg
 * for the SDK, which judges by itself. */
#define SETTER(what, vtype, field, ok, arg)                                           \
	doca_error_t doca_verbs_##what##_set_##field(doca_verbs_##what##_t *attr, vtype v) \
	{                                                                             \
		GDK_CHECK_ARG(attr != NULL);                                          \
		GDK_SDK_FIRST(attr, doca_verbs_##what##_set_##field, attr->sdk, arg); \
		if (!attr->sdk)                                                       \
			GDK_CHECK_ARG(ok);                                            \
		attr->field = v;                                                      \
		return DOCA_SUCCESS;                                                  \
	}
#define SET_IF(what, vtype, field, ok) SETTER(what, vtype, field, ok, v)
#define SET(what, vtype, field) SETTER(what, vtype, field, true, v)

/* An object, which the SDK knows by its own member named arg. */
#define SET_OBJECT(what, vtype, field, arg)                                           \
	doca_error_t doca_verbs_##what##_set_##field(doca_verbs_##what##_t *attr, vtype v) \
	{                                                                             \
		GDK_CHECK_ARG(attr != NULL);                                          \
		GDK_CHECK_MIX(attr, v);                                               \
		GDK_SDK_FIRST(attr, doca_verbs_##what##_set_##field, attr->sdk,       \
			      v ? v->arg : NULL);                                     \
		attr->field = v;                                                      \
		return DOCA_SUCCESS;                                                  \
	}

#define GET(what, vtype, field)                                                       \
	doca_error_t doca_verbs_##what##_get_##field(const doca_verbs_##what##_t *attr, \
						     vtype *out)                      \
	{                                                                             \
		GDK_CHECK_ARG(attr != NULL);                                          \
		GDK_CHECK_ARG(out != NULL);                                           \
		GDK_SDK_VALUE(attr, vtype, "doca_verbs_" #what "_get_" #field, out);  \
		*out = attr->field;                                                   \
		return DOCA_SUCCESS;                                                  \
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
SET_IF(qp_init_attr, uint32_t, user_index, v < (1u << 24))
SET_IF(qp_init_attr, uint32_t, qp_type, v == DOCA_VERBS_QP_TYPE_RC)
SET_OBJECT(qp_init_attr, doca_verbs_uar_t *, external_uar, sdk)
SET(qp_init_attr, void *, qp_context)
SET_OBJECT(qp_init_attr, struct doca_verbs_srq *, srq, sdk)
SET_IF(qp_init_attr, uint8_t, core_direct_master, v <= 1)
SET_IF(qp_init_attr, enum doca_verbs_qp_send_dbr_mode, send_dbr_mode,
	   v <= DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT)
GET(qp_init_attr, enum doca_verbs_qp_send_dbr_mode, send_dbr_mode)
SET_IF(qp_init_attr, enum doca_verbs_qp_ordering_semantic, ordering_semantic,
	   v <= DOCA_VERBS_QP_ORDERING_SEMANTIC_OOO_ALL)

/* The SDK has no such mode, and need not: this library emulates it by itself. */
doca_error_t doca_verbs_qp_init_attr_set_emulate_no_dbr_ext(doca_verbs_qp_init_attr_t *attr, bool v)
{
	GDK_CHECK_ARG(attr != NULL);
	attr->emulate_no_dbr_ext = v;
	return DOCA_SUCCESS;
}

doca_error_t
doca_verbs_qp_init_attr_get_emulate_no_dbr_ext(const doca_verbs_qp_init_attr_t *attr, bool *out)
{
	GDK_CHECK_ARG(attr != NULL);
	GDK_CHECK_ARG(out != NULL);
	*out = attr->emulate_no_dbr_ext;
	return DOCA_SUCCESS;
}

doca_error_t
doca_verbs_qp_init_attr_get_ordering_semantic(doca_verbs_qp_init_attr_t *attr,
					      enum doca_verbs_qp_ordering_semantic *out)
{
	GDK_CHECK_ARG(attr != NULL);
	GDK_CHECK_ARG(out != NULL);
	GDK_SDK_VALUE(attr, enum doca_verbs_qp_ordering_semantic,
		      "doca_verbs_qp_init_attr_get_ordering_semantic", out);
	*out = attr->ordering_semantic;
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
							   doca_verbs_umem_t *umem,
							   uint64_t offset)
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
SET_IF(qp_attr, enum doca_verbs_qp_state, next_state, v <= DOCA_VERBS_QP_STATE_ERR)
SET_IF(qp_attr, enum doca_verbs_qp_state, current_state, v <= DOCA_VERBS_QP_STATE_ERR)
SET_IF(qp_attr, enum doca_verbs_mtu_size, path_mtu, v <= DOCA_VERBS_MTU_SIZE_4K_BYTES)
SET(qp_attr, uint32_t, rq_psn) /* masked to 24 bits when used */
SET(qp_attr, uint32_t, sq_psn)
SET_IF(qp_attr, uint32_t, dest_qp_num, v < (1u << 24))
SET(qp_attr, int, allow_remote_write)
SET(qp_attr, int, allow_remote_read)
SET_IF(qp_attr, enum doca_verbs_qp_atomic_mode, atomic_mode,
	   v <= DOCA_VERBS_QP_ATOMIC_MODE_UP_TO_256BYTES)
SET(qp_attr, uint16_t, pkey_index)
SET_IF(qp_attr, uint16_t, port_num, v >= 1 && v <= UINT8_MAX)
SET_IF(qp_attr, uint16_t, ack_timeout, v < 32)
SET_IF(qp_attr, uint16_t, retry_cnt, v < 8)
SET_IF(qp_attr, uint16_t, rnr_retry, v < 8)
SET_IF(qp_attr, uint16_t, min_rnr_timer, v < 32)
SET(qp_attr, uint8_t, max_rd_atomic)
SET(qp_attr, uint8_t, max_dest_rd_atomic)

enum doca_verbs_qp_state doca_verbs_qp_attr_get_next_state(const doca_verbs_qp_attr_t *attr)
{
	GDK_SDK_GET(attr, doca_verbs_qp_attr_get_next_state, attr->sdk);
	return attr ? attr->next_state : DOCA_VERBS_QP_STATE_RST;
}

doca_error_t doca_verbs_qp_attr_get_current_state(doca_verbs_qp_attr_t *attr,
						  enum doca_verbs_qp_state *out)
{
	GDK_CHECK_ARG(attr != NULL);
	GDK_CHECK_ARG(out != NULL);
	GDK_SDK_VALUE(attr, enum doca_verbs_qp_state, "doca_verbs_qp_attr_get_current_state", out);
	*out = attr->current_state;
	return DOCA_SUCCESS;
}

/* The path is copied: the AH object may change or go afterwards. */
doca_error_t doca_verbs_qp_attr_set_ah_attr(doca_verbs_qp_attr_t *attr, doca_verbs_ah_attr_t *ah)
{
	GDK_CHECK_ARG(attr != NULL);
	GDK_CHECK_ARG(ah != NULL);
	GDK_CHECK_MIX(attr, ah);
	GDK_SDK_FIRST(attr, doca_verbs_qp_attr_set_ah_attr, attr->sdk, ah->sdk);
	attr->ah = *ah;
	attr->has_ah = true;
	return DOCA_SUCCESS;
}
