/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Address handle attributes, which describe the path of a queue pair's packets. The
 * transition to RTR resolves the path: source GID, destination MAC (path.c).
 */
#include <stdlib.h>

#include "core/log/log.h"
#include "core/sdk/sdk.h"
#include "qp/verbs/attr.h"

doca_error_t doca_verbs_ah_attr_create(doca_dev_t *net_dev, doca_verbs_ah_attr_t **ah_attr)
{
	struct doca_verbs_ah_attr_t *ah;
	doca_error_t err = DOCA_SUCCESS;

	GDK_CHECK_PTR(net_dev);
	GDK_CHECK_PTR(ah_attr);
	ah = calloc(1, sizeof(*ah));
	if (!ah) {
		gdk_err("no memory for an ah_attr");
		return DOCA_ERROR_NO_MEMORY;
	}
	ah->dev = net_dev;
	GDK_SDK_SAY("Verbs AH Attr", net_dev->sdk);
	if (net_dev->sdk)
		err = gdk_sdk_ah_create(ah);
	if (err) {
		free(ah);
		return err;
	}
	*ah_attr = ah;
	return DOCA_SUCCESS;
}

doca_error_t doca_verbs_ah_attr_destroy(doca_verbs_ah_attr_t *ah_attr)
{
	GDK_CHECK_PTR(ah_attr);
	GDK_SDK_FIRST(ah_attr, doca_verbs_ah_attr_destroy, ah_attr->sdk);
	free(ah_attr);
	return DOCA_SUCCESS;
}

/* Defines a setter and a getter. The getter cannot return an error; it returns zero for NULL. */
#define AH_ATTR(vtype, field, check) \
	doca_error_t doca_verbs_ah_attr_set_##field(doca_verbs_ah_attr_t *ah_attr, vtype field) \
	{ \
		GDK_CHECK_PTR(ah_attr); \
		GDK_SDK_FIRST(ah_attr, doca_verbs_ah_attr_set_##field, ah_attr->sdk, field); \
		if (!ah_attr->sdk) { /* the SDK checked the value */ \
			check; \
		} \
		ah_attr->field = field; \
		return DOCA_SUCCESS; \
	} \
	vtype doca_verbs_ah_get_##field(const doca_verbs_ah_attr_t *ah_attr) \
	{ \
		static const struct doca_verbs_ah_attr_t none; \
\
		GDK_CHECK_PTR_OR(none.field, ah_attr); \
		GDK_SDK_GET_AS(ah_attr, "doca_verbs_ah_attr_get_" #field, \
			       doca_verbs_ah_get_##field, ah_attr->sdk); \
		return ah_attr->field; \
	}

AH_ATTR(struct doca_verbs_gid, gid, )
AH_ATTR(enum doca_verbs_addr_type, addr_type,
	GDK_CHECK_ENUM(addr_type, DOCA_VERBS_ADDR_TYPE_IB_NO_GRH))
AH_ATTR(uint32_t, dlid, GDK_CHECK_RANGE(dlid, 0, UINT16_MAX))
AH_ATTR(uint8_t, sl, GDK_CHECK_RANGE(sl, 0, 15))
AH_ATTR(uint8_t, sgid_index, )
AH_ATTR(uint8_t, static_rate, GDK_CHECK_RANGE(static_rate, 0, 15))
AH_ATTR(uint8_t, hop_limit, )
AH_ATTR(uint8_t, traffic_class, )
