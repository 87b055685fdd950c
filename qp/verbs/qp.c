/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Creates and destroys queue pairs. A umem contains the receive queue and, directly behind it,
 * the send queue. The DBREC is elsewhere in this umem or in another one. The send queue has
 * enough 64-byte slots for sq_wr WQEs of the size that sges and inline data need, rounded up to a
 * power of two, at most GDK_SQ_DEPTH_MAX. Transitions are in modify.c, export to the GPU in
 * export.c.
 */
#include "qp/verbs/qp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log/log.h"
#include "core/nic/devx.h"
#include "core/sdk/sdk.h"

#define WQE_HEAD_BYTES	   32u /* control and remote-address segments */
#define SGE_BYTES	   16u
#define INLINE_HEAD_BYTES  4u
#define SEND_WQE_MAX_BYTES 1024u
#define RECV_WQE_MAX_BYTES 512u
#define DBREC_BYTES	   8u
#define DBREC_ALIGN	   64u

static uint32_t send_wqe_bytes(const struct doca_verbs_qp_init_attr *init)
{
	uint64_t sges = WQE_HEAD_BYTES + (uint64_t)init->send_max_sges * SGE_BYTES;
	uint64_t inl =
		init->max_inline_data
			? WQE_HEAD_BYTES +
				  gdk_align_up(INLINE_HEAD_BYTES + (uint64_t)init->max_inline_data,
					       SGE_BYTES)
			: 0;
	uint64_t bytes = gdk_align_up(sges > inl ? sges : inl, GDK_WQEBB_SIZE);

	return bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
}

static doca_error_t size_sq(struct doca_verbs_qp_t *qp)
{
	struct doca_verbs_qp_init_attr *init = &qp->init;
	uint32_t wqe_bytes = send_wqe_bytes(init);
	uint64_t slots;

	if (!init->sq_wr)
		return DOCA_SUCCESS;
	if (!init->send_max_sges || wqe_bytes > SEND_WQE_MAX_BYTES) {
		gdk_err("QP: send_max_sges %u and max_inline_data %u are not supported (expected "
			"at least 1 sge and a send WQE of at most %u bytes)",
			init->send_max_sges, init->max_inline_data, SEND_WQE_MAX_BYTES);
		return DOCA_ERROR_INVALID_VALUE;
	}
	slots = gdk_roundup_pow2((uint64_t)init->sq_wr * (wqe_bytes / GDK_WQEBB_SIZE));
	if (slots > GDK_SQ_DEPTH_MAX ||
	    (qp->dev->caps.max_qp_wr && slots > gdk_roundup_pow2(qp->dev->caps.max_qp_wr))) {
		gdk_err("QP: sq_wr %u needs %llu slots of 64 bytes, the maximum is %u (device: %u)",
			init->sq_wr, (unsigned long long)slots, GDK_SQ_DEPTH_MAX,
			qp->dev->caps.max_qp_wr);
		return DOCA_ERROR_INVALID_VALUE;
	}
	qp->sq_num = (uint32_t)slots;
	init->sq_wr = qp->sq_num / (wqe_bytes / GDK_WQEBB_SIZE);
	if (init->max_inline_data)
		init->max_inline_data = wqe_bytes - WQE_HEAD_BYTES - INLINE_HEAD_BYTES;
	return DOCA_SUCCESS;
}

static doca_error_t size_rq(struct doca_verbs_qp_t *qp)
{
	struct doca_verbs_qp_init_attr *init = &qp->init;
	uint64_t num;

	if (!init->rq_wr || init->srq)
		return DOCA_SUCCESS;
	if (!init->receive_max_sges || init->receive_max_sges > RECV_WQE_MAX_BYTES / SGE_BYTES) {
		gdk_err("QP: receive_max_sges %u is not supported (expected 1..%u)",
			init->receive_max_sges, RECV_WQE_MAX_BYTES / SGE_BYTES);
		return DOCA_ERROR_INVALID_VALUE;
	}
	init->receive_max_sges = (uint32_t)gdk_roundup_pow2(init->receive_max_sges);
	qp->rwqe_size = init->receive_max_sges * SGE_BYTES;
	num = gdk_roundup_pow2(init->rq_wr);
	if (num * qp->rwqe_size < GDK_WQEBB_SIZE)
		num = GDK_WQEBB_SIZE / qp->rwqe_size;
	if (num > GDK_SQ_DEPTH_MAX) {
		gdk_err("QP: rq_wr %u is not supported (expected 1..%u)", init->rq_wr,
			GDK_SQ_DEPTH_MAX);
		return DOCA_ERROR_INVALID_VALUE;
	}
	qp->rq_num = (uint32_t)num;
	init->rq_wr = qp->rq_num;
	return DOCA_SUCCESS;
}

static doca_error_t check_queues(const struct doca_verbs_qp_t *qp)
{
	const struct doca_verbs_qp_init_attr *init = &qp->init;
	bool has_rq = init->rq_wr || init->srq;
	const char *why = NULL;

	if (init->pd && init->pd != qp->dev)
		why = "pd (doca_verbs_qp_init_attr_set_pd) belongs to another device than net_dev";
	else if (!init->sq_wr && !has_rq)
		why = "it has no queue: set sq_wr, rq_wr or srq";
	else if (init->sq_wr && !init->send_cq)
		why = "send_cq NULL, but it has a send queue";
	else if (has_rq && !init->receive_cq)
		why = "receive_cq NULL, but it has a receive queue";
	else if (init->cqe_inline && !has_rq)
		why = "cqe_inline is set, but it has no receive queue";
	else if (!init->external_umem != !init->external_umem_dbr)
		why = "only one of external_umem and external_umem_dbr is set: set both or none";
	else if (init->emulate_no_dbr_ext &&
		 init->send_dbr_mode == DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT)
		why = "send_dbr_mode NO_DBR_EXT and emulate_no_dbr_ext exclude each other";
	if (!why)
		return DOCA_SUCCESS;
	gdk_err("QP of sq_wr %u, rq_wr %u: cannot create it: %s", init->sq_wr, init->rq_wr, why);
	return DOCA_ERROR_INVALID_VALUE;
}

static doca_error_t check_supported(const struct doca_verbs_qp_t *qp)
{
	if (qp->init.ordering_semantic != DOCA_VERBS_QP_ORDERING_SEMANTIC_IBTA) {
		gdk_err("QP: ordering_semantic %d is not supported (expected "
			"DOCA_VERBS_QP_ORDERING_SEMANTIC_IBTA, %d)",
			qp->init.ordering_semantic, DOCA_VERBS_QP_ORDERING_SEMANTIC_IBTA);
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	if (qp->init.send_dbr_mode == DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT &&
	    !qp->dev->caps.send_dbr_mode_no_dbr_ext) {
		gdk_err("QP: the device does not support DBREC-less QPs (a ConnectX-8 does)");
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	if (qp->init.copy_engine &&
	    (!qp->dev->caps.copy_engine || qp->init.qp_type != DOCA_VERBS_QP_TYPE_RC)) {
		gdk_err("QP: the device has no copy engine, or the QP is not of type RC "
			"(gdk_verbs_qp_init_attr_set_copy_engine)");
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	if (qp->init.cqe_inline && !qp->dev->caps.cqe_inline) {
		gdk_err("QP: the device does not write received data into CQEs "
			"(doca_verbs_qp_init_attr_set_cqe_inline)");
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	return DOCA_SUCCESS;
}

/* ---- memory ---- */

static size_t rq_bytes(const struct doca_verbs_qp_t *qp)
{
	return (size_t)qp->rq_num * qp->rwqe_size;
}

static size_t wq_bytes(const struct doca_verbs_qp_t *qp)
{
	return rq_bytes(qp) + (size_t)qp->sq_num * GDK_WQEBB_SIZE;
}

static doca_error_t check_external(const struct doca_verbs_qp_t *qp)
{
	const struct doca_verbs_qp_init_attr *init = &qp->init;
	const struct doca_verbs_umem *umem = init->external_umem, *dbr = init->external_umem_dbr;
	uint64_t ring_at = init->external_umem_offset, dbr_at = init->external_umem_dbr_offset;
	doca_error_t err;

	err = gdk_umem_check_ring(umem, gdk_dev_share_objects(umem->dev, qp->dev),
				  "QP: a work queue", ring_at, wq_bytes(qp));
	if (err == DOCA_SUCCESS)
		err = gdk_umem_check(dbr, gdk_dev_share_objects(dbr->dev, qp->dev), "QP: a DBREC",
				     dbr_at, DBREC_BYTES, DBREC_BYTES);
	if (err == DOCA_SUCCESS && umem == dbr && dbr_at >= ring_at &&
	    dbr_at - ring_at < wq_bytes(qp)) {
		gdk_err("QP: DBREC at offset %llu of umem 0x%x overlaps the work queues",
			(unsigned long long)dbr_at, dbr->id);
		return DOCA_ERROR_INVALID_VALUE;
	}
	return err;
}

static doca_error_t use_external(struct doca_verbs_qp_t *qp)
{
	const struct doca_verbs_qp_init_attr *init = &qp->init;
	doca_error_t err = check_external(qp);

	if (err != DOCA_SUCCESS)
		return err;
	qp->umem = init->external_umem;
	qp->umem_dbr = init->external_umem_dbr;
	qp->gpu = qp->umem->gpu;
	qp->rq_buf = (uint8_t *)qp->umem->addr + init->external_umem_offset;
	qp->dbrec = (uint32_t *)((uint8_t *)qp->umem_dbr->addr + init->external_umem_dbr_offset);
	return gdk_umem_clear_dbrec(qp->umem_dbr, qp->dbrec);
}

static doca_error_t use_internal(struct doca_verbs_qp_t *qp)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t dbrec_at = gdk_align_up(wq_bytes(qp), DBREC_ALIGN);
	size_t bytes = gdk_align_up(dbrec_at + DBREC_BYTES, page);
	doca_error_t err;

	if (posix_memalign(&qp->own_mem, page, bytes)) {
		gdk_err("no memory for a QP of %zu bytes", bytes);
		return DOCA_ERROR_NO_MEMORY;
	}
	memset(qp->own_mem, 0, bytes);
	err = doca_verbs_umem_create(qp->dev, NULL, qp->own_mem, bytes, IBV_ACCESS_LOCAL_WRITE,
				     (int)DOCA_VERBS_DMABUF_INVALID_FD, 0, &qp->umem);
	if (err != DOCA_SUCCESS) {
		free(qp->own_mem);
		return err;
	}
	qp->own_umem = true;
	qp->umem_dbr = qp->umem;
	qp->init.external_umem_offset = 0;
	qp->init.external_umem_dbr_offset = dbrec_at;
	qp->rq_buf = qp->own_mem;
	qp->dbrec = (uint32_t *)((uint8_t *)qp->own_mem + dbrec_at);
	return DOCA_SUCCESS;
}

/* Frees internal memory. If the NIC refuses to deregister it, the memory is kept. */
static doca_error_t drop_memory(struct doca_verbs_qp_t *qp)
{
	doca_error_t err = qp->own_umem ? doca_verbs_umem_destroy(qp->umem) : DOCA_SUCCESS;

	if (qp->own_umem && err == DOCA_SUCCESS)
		free(qp->own_mem);
	return err;
}

static doca_error_t take_uar(struct doca_verbs_qp_t *qp)
{
	doca_error_t err = DOCA_SUCCESS;

	qp->uar = qp->init.external_uar;
	if (!qp->uar) {
		err = doca_verbs_uar_create(qp->dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME,
					    &qp->uar);
		if (err != DOCA_SUCCESS)
			err = doca_verbs_uar_create(
				qp->dev, DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE, &qp->uar);
		qp->own_uar = err == DOCA_SUCCESS;
	}
	return err;
}

static doca_error_t check_uar(const struct doca_verbs_qp_t *qp)
{
	if (gdk_qp_db_reg(qp))
		return DOCA_SUCCESS;
	gdk_err("QP: cannot create it: UAR 0x%x has no register for QPs without DBREC",
		qp->uar->id);
	return DOCA_ERROR_NOT_SUPPORTED;
}

/* ---- firmware object ---- */

static void fill_queues(const struct doca_verbs_qp_t *qp, uint8_t *qpc)
{
	const struct doca_verbs_qp_init_attr *init = &qp->init;

	if (qp->sq_num) {
		prm_set(qpc, PRM_QPC_LOG_SQ_SIZE, gdk_ilog2(qp->sq_num));
		prm_set(qpc, PRM_QPC_CQN_SND, init->send_cq->cqn);
	} else {
		prm_set(qpc, PRM_QPC_NO_SQ, 1);
	}
	if (init->srq) {
		prm_set(qpc, PRM_QPC_RQ_TYPE, GDK_QPC_RQ_SRQ_RMP);
		prm_set(qpc, PRM_QPC_SRQN_RMPN_XRQN, init->srq->srqn);
	} else if (qp->rq_num) {
		prm_set(qpc, PRM_QPC_RQ_TYPE, GDK_QPC_RQ_REGULAR);
		prm_set(qpc, PRM_QPC_LOG_RQ_SIZE, gdk_ilog2(qp->rq_num));
		prm_set(qpc, PRM_QPC_LOG_RQ_STRIDE, gdk_ilog2(qp->rwqe_size) - 4);
	} else {
		prm_set(qpc, PRM_QPC_RQ_TYPE, GDK_QPC_RQ_NONE);
	}
	if (init->receive_cq && (init->srq || qp->rq_num))
		prm_set(qpc, PRM_QPC_CQN_RCV, init->receive_cq->cqn);
	if (init->cqe_inline)
		prm_set(qpc, PRM_QPC_CS_RES, GDK_QPC_CS_RES_32);
}

/*
 * Timestamp format, chosen as the kernel does. A device that only supports real time refuses
 * the free-running format. On an older device the field is reserved and must be zero, which is
 * the value of free running.
 */
static uint32_t ts_format(const struct gdk_caps *caps)
{
	return caps->ts_format == GDK_TS_CAP_REAL_TIME ? GDK_QPC_TS_FORMAT_DEFAULT
						       : GDK_QPC_TS_FORMAT_FREE_RUNNING;
}

/* Sets the permission to use the copy engine, in an extension of the context, as DPDK does
 * (mlx5_devx_cmd_create_qp() in mlx5_devx_cmds.c). Returns whether there is an extension. */
static bool permit_copies(const struct doca_verbs_qp_t *qp, uint8_t *in)
{
	if (!qp->init.copy_engine || qp->dev->caps.copy_engine != GDK_COPY_PERMITTED)
		return false;
	prm_set(in, PRM_CREATE_QP_QPC_EXT, 1);
	prm_set(in + PRM_CREATE_QP_QPC_EXT_AT, PRM_QPC_EXT_MMO, 1);
	return true;
}

static doca_error_t create_object(struct doca_verbs_qp_t *qp)
{
	const struct doca_verbs_qp_init_attr *init = &qp->init;
	uint8_t in[PRM_CREATE_QP_EXT_IN_LEN] = { 0 }, out[PRM_CMD_OUT_LEN] = { 0 };
	uint8_t *qpc = in + PRM_CREATE_QP_QPC_AT;
	size_t len = PRM_CREATE_QP_IN_LEN;
	char name[128];
	doca_error_t err;

	prm_set(in, PRM_CMD_OPCODE, GDK_CMD_CREATE_QP);
	prm_set(in, PRM_CREATE_QP_WQ_UMEM_ID, qp->umem->id);
	prm_set(in, PRM_CREATE_QP_WQ_UMEM_VALID, 1);
	prm_set(in, PRM_CREATE_QP_WQ_UMEM_OFFSET, init->external_umem_offset);
	/* DOCA_VERBS_QP_TYPE_* are the firmware's values: MLX5_QP_ST_RC and MLX5_QP_ST_UC of Linux
	 * 6.12, linux/mlx5/qp.h. */
	prm_set(qpc, PRM_QPC_ST, init->qp_type);
	prm_set(qpc, PRM_QPC_PM_STATE, GDK_QPC_PM_MIGRATED);
	prm_set(qpc, PRM_QPC_PD, qp->dev->pdn);
	prm_set(qpc, PRM_QPC_UAR_PAGE, qp->uar->id);
	prm_set(qpc, PRM_QPC_USER_INDEX, init->user_index);
	prm_set(qpc, PRM_QPC_SEND_DBR_MODE, init->send_dbr_mode);
	prm_set(qpc, PRM_QPC_CD_MASTER, init->core_direct_master);
	prm_set(qpc, PRM_QPC_TS_FORMAT, ts_format(&qp->dev->caps));
	prm_set(qpc, PRM_QPC_DBR_UMEM_VALID, 1);
	prm_set(qpc, PRM_QPC_DBR_UMEM_ID, qp->umem_dbr->id);
	prm_set(qpc, PRM_QPC_DBR_ADDR, init->external_umem_dbr_offset);
	fill_queues(qp, qpc);
	if (permit_copies(qp, in))
		len = PRM_CREATE_QP_EXT_IN_LEN;
	snprintf(name, sizeof(name), "%s: QP of %u send slots and %u receive WQEs",
		 ibv_get_device_name(qp->dev->ctx->device), qp->sq_num, qp->rq_num);
	err = gdk_devx_create(qp->dev->ctx, name, in, len, out, sizeof(out), &qp->obj);
	if (err == DOCA_SUCCESS)
		qp->qpn = (uint32_t)prm_get(out, PRM_CMD_OUT_OBJECT);
	return err;
}

static bool can_create_with_dbrec(struct doca_verbs_qp_t *qp)
{
	enum doca_verbs_qp_send_dbr_mode mode = qp->init.send_dbr_mode;
	doca_error_t err;

	qp->init.send_dbr_mode = DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID;
	err = create_object(qp);
	qp->init.send_dbr_mode = mode;
	return err == DOCA_SUCCESS && gdk_devx_destroy(qp->dev->ctx, qp->obj, GDK_CMD_DESTROY_QP,
						       "QP", qp->qpn) == DOCA_SUCCESS;
}

/*
 * Called when the firmware refused a QP without DBREC. A device supports a limited number of
 * these, but the firmware has no special status for this limit. It is reached if the firmware
 * accepts the same QP with DBREC and then refuses the one without again; the function then returns
 * NOT_SUPPORTED. If the firmware accepts the second one without DBREC, qp uses it.
 */
static doca_error_t check_no_dbr_limit(struct doca_verbs_qp_t *qp)
{
	unsigned int num = atomic_load(&qp->dev->no_dbr_qps);

	if (!can_create_with_dbrec(qp))
		return DOCA_ERROR_DRIVER;
	if (create_object(qp) == DOCA_SUCCESS)
		return DOCA_SUCCESS;
	gdk_err("%s: firmware limit for DBREC-less QPs reached (%u in use)",
		ibv_get_device_name(qp->dev->ctx->device), num);
	atomic_store(&qp->dev->no_dbr_max, num);
	return DOCA_ERROR_NOT_SUPPORTED;
}

/* Clears core_direct_master if the device does not support it. This is not an error, because the
 * companion QP of every group requests it, although only WAIT WQEs need it. */
static void grant_core_direct(struct doca_verbs_qp_t *qp)
{
	if (!qp->init.core_direct_master || qp->dev->caps.cd)
		return;
	qp->init.core_direct_master = 0;
	if (!atomic_exchange(&qp->dev->logged_no_cd, true))
		gdk_warn("%s: the device does not support core direct: creating QPs without "
			 "core_direct_master; WAIT work requests will fail",
			 ibv_get_device_name(qp->dev->ctx->device));
}

static doca_error_t check_and_size(struct doca_verbs_qp_t *qp)
{
	doca_error_t err = check_queues(qp);

	if (err == DOCA_SUCCESS)
		err = check_supported(qp);
	if (err == DOCA_SUCCESS)
		err = size_sq(qp);
	if (err == DOCA_SUCCESS)
		err = size_rq(qp);
	return err;
}

doca_error_t doca_verbs_qp_create(doca_dev_t *net_dev, doca_verbs_qp_init_attr_t *qp_init_attr,
				  doca_verbs_qp_t **verbs_qp)
{
	struct doca_verbs_qp_t *qp;
	doca_error_t err;

	GDK_CHECK_PTR(net_dev);
	GDK_CHECK_PTR(qp_init_attr);
	GDK_CHECK_PTR(verbs_qp);
	GDK_CHECK_MIX(net_dev, qp_init_attr);
	GDK_SDK_CHILD(net_dev, "Verbs QP", gdk_sdk_qp_create(net_dev, qp_init_attr, verbs_qp));
	qp = calloc(1, sizeof(*qp));
	if (!qp) {
		gdk_err("no memory for a QP");
		return DOCA_ERROR_NO_MEMORY;
	}
	qp->dev = net_dev;
	qp->init = *qp_init_attr;
	qp->context = qp_init_attr->qp_context;
	qp->no_dbr = qp_init_attr->send_dbr_mode == DOCA_VERBS_QP_SEND_DBR_MODE_NO_DBR_EXT;
	qp->emulate_no_dbr = qp_init_attr->emulate_no_dbr_ext;
	qp->send_cq = qp_init_attr->send_cq;
	qp->recv_cq = qp_init_attr->receive_cq;
	qp->srq = qp_init_attr->srq;
	qp->state = DOCA_VERBS_QP_STATE_RST;
	err = check_and_size(qp);
	if (err != DOCA_SUCCESS)
		goto err_free;
	grant_core_direct(qp);
	err = qp_init_attr->external_umem ? use_external(qp) : use_internal(qp);
	if (err != DOCA_SUCCESS)
		goto err_free;
	qp->sq_buf = (uint8_t *)qp->rq_buf + rq_bytes(qp);
	err = take_uar(qp);
	if (err != DOCA_SUCCESS)
		goto err_memory;
	err = check_uar(qp);
	if (err == DOCA_SUCCESS)
		err = create_object(qp);
	if (err == DOCA_ERROR_DRIVER && qp->no_dbr)
		err = check_no_dbr_limit(qp);
	if (err != DOCA_SUCCESS)
		goto err_uar;
	pthread_mutex_init(&qp->lock, NULL);
	gdk_qp_count_uses(qp, 1);
	*verbs_qp = qp;
	return DOCA_SUCCESS;

err_uar:
	if (qp->own_uar)
		(void)doca_verbs_uar_destroy(qp->uar);
err_memory:
	(void)drop_memory(qp);
err_free:
	free(qp);
	return err;
}

doca_error_t doca_verbs_qp_destroy(doca_verbs_qp_t *qp)
{
	struct doca_dev *dev;
	doca_error_t err;

	GDK_CHECK_PTR(qp);
	dev = qp->dev;
	if (qp->exported) {
		gdk_err("QP 0x%x: cannot destroy it: still exported to GPU %p", qp->qpn,
			(void *)qp->exported->gpu_dev);
		return DOCA_ERROR_IN_USE;
	}
	if (qp->sdk)
		return gdk_sdk_qp_destroy(qp);
	if (qp->obj) { /* NULL: an earlier call destroyed it, but could not free the memory */
		err = gdk_devx_destroy(dev->ctx, qp->obj, GDK_CMD_DESTROY_QP, "QP", qp->qpn);
		if (err != DOCA_SUCCESS)
			return err;
		qp->obj = NULL;
		atomic_fetch_add(&dev->users, 1); /* until the umem and UAR below are freed */
		gdk_qp_count_uses(qp, -1);
	}
	err = drop_memory(qp);
	if (err != DOCA_SUCCESS)
		return err;
	if (qp->own_uar)
		(void)doca_verbs_uar_destroy(qp->uar);
	atomic_fetch_sub(&dev->users, 1);
	pthread_mutex_destroy(&qp->lock);
	free(qp);
	return DOCA_SUCCESS;
}
