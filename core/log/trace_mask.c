/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The fields of command boxes that the trace hides, and the commands that contain them
 * (trace_mask.h). Offsets that are not in core/nic/prm.h are from mlx5_ifc_qpc_bits,
 * mlx5_ifc_wq_bits and mlx5_ifc_ads_bits in mlx5_ifc.h of Linux 6.12.
 */
#include <string.h>

#include "core/log/trace_mask.h"
#include "core/nic/prm.h"
#include "core/util.h"

#define HEAD_LEN    0x10
#define CONTEXT_END 0x110 /* page addresses follow the contexts of CQ and QP */

struct span {
	uint16_t at, len;
};

static const struct span path[] = {
	{ 0x06, 2 },		 /* rlid */
	{ PRM_ADS_RGID_AT, 16 }, /* rgid_rip */
	{ 0x26, 6 },		 /* rmac */
};

static const struct span qpc[] = {
	{ 0xa8, 4 }, /* q_key */
	{ 0xc8, 8 }, /* dc_access_key */
};

#define QPC_SECONDARY_PATH_AT (PRM_QPC_PATH_AT + PRM_ADS_LEN)
#define QPC_DBR_ADDR_AT	      0xa0
#define CQC_DBR_ADDR_AT	      0x38
#define WQ_DBR_ADDR_AT	      0x10
#define WQ_HEADERS_MKEY_AT    0x38

struct box {
	const uint8_t *data;
	size_t len;
	uint8_t *hide;
};

static void hide_field(const struct box *b, size_t at, size_t len)
{
	size_t i;
	bool set = false;

	for (i = at; i < at + len && i < b->len; i++)
		set = set || b->data[i];
	for (i = at; set && i < at + len && i < b->len; i++)
		b->hide[i] = 1;
}

static void hide_spans(const struct box *b, size_t at, const struct span *spans, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		hide_field(b, at + spans[i].at, spans[i].len);
}

/* Hides dbr_addr if it is an address. If the DBREC is in a umem, dbr_addr is an offset and stays
 * visible. */
static void hide_dbr(const struct box *b, size_t context, uint32_t valid, size_t at)
{
	if (context + PRM_OFFSET(valid) + 4 <= b->len && !prm_get(b->data + context, valid))
		hide_field(b, context + at, 8);
}

static void hide_rest(const struct box *b, size_t at)
{
	if (at < b->len)
		hide_field(b, at, b->len - at);
}

static void hide_qpc(const struct box *b, size_t at)
{
	hide_spans(b, at + PRM_QPC_PATH_AT, path, GDK_ARRAY_SIZE(path));
	hide_spans(b, at + QPC_SECONDARY_PATH_AT, path, GDK_ARRAY_SIZE(path));
	hide_spans(b, at, qpc, GDK_ARRAY_SIZE(qpc));
	hide_dbr(b, at, PRM_QPC_DBR_UMEM_VALID, QPC_DBR_ADDR_AT);
	hide_rest(b, CONTEXT_END);
}

static void hide_cqc(const struct box *b, size_t at)
{
	hide_dbr(b, at, PRM_CQC_DBR_UMEM_VALID, CQC_DBR_ADDR_AT);
	hide_rest(b, CONTEXT_END);
}

static void hide_wq(const struct box *b, size_t at)
{
	hide_dbr(b, at, PRM_WQ_DBR_UMEM_VALID, WQ_DBR_ADDR_AT);
	hide_field(b, at + WQ_HEADERS_MKEY_AT, 4);
}

void gdk_trace_mask(uint32_t opcode, bool answer, const uint8_t *data, size_t len, uint8_t *hide)
{
	const struct box b = { data, len, hide };

	switch (opcode) {
	case GDK_CMD_QUERY_HCA_CAP:
	case GDK_CMD_QUERY_LAG:
	case GDK_CMD_2ERR_QP:
	case GDK_CMD_2RST_QP:
		return;
	case GDK_CMD_CREATE_CQ:
	case GDK_CMD_QUERY_CQ:
		if (answer == (opcode == GDK_CMD_QUERY_CQ))
			hide_cqc(&b, PRM_CREATE_CQ_CQC_AT);
		return;
	case GDK_CMD_CREATE_QP:
	case GDK_CMD_RST2INIT_QP:
	case GDK_CMD_INIT2INIT_QP:
	case GDK_CMD_INIT2RTR_QP:
	case GDK_CMD_RTR2RTS_QP:
	case GDK_CMD_RTS2RTS_QP:
	case GDK_CMD_QUERY_QP:
		if (answer == (opcode == GDK_CMD_QUERY_QP))
			hide_qpc(&b, PRM_CREATE_QP_QPC_AT);
		return;
	case GDK_CMD_CREATE_RMP:
		if (!answer)
			hide_wq(&b, PRM_CREATE_RMP_RMPC_AT + PRM_RMPC_WQ_AT);
		return;
	default:
		hide_rest(&b, HEAD_LEN);
	}
}
