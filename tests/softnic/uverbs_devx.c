/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Methods of the mlx5 driver: DEVX commands and objects, user memory (umem), register
 * pages. An object has one handle; destroying the handle destroys the object. cmd.c
 * executes the commands.
 */
#include "front.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <stdlib.h>
#include <string.h>

#define A(id) ((uint16_t)(id))

/* ---- commands ---- */
void *sn_devx_obj(struct sn_call *c, uint16_t id, enum sn_kind *kind)
{
	static const enum sn_kind kinds[] = {
		SN_QP, SN_CQ,  SN_SRQ, SN_MKEY,	       SN_TD,		SN_TIS, SN_SQ,	      SN_RQ,
		SN_WQ, SN_RQT, SN_TIR, SN_COUNTER_SET, SN_FLOW_COUNTER, SN_RAW, SN_IND_TABLE,
	};
	void *obj;
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		obj = sn_attr_obj(c, id, kinds[i]);
		if (obj) {
			*kind = kinds[i];
			return obj;
		}
	}
	return NULL;
}

static int run_cmd(struct sn_call *c, uint16_t in_id, uint16_t out_id, struct sn_cmd *cmd,
		   enum sn_cmd_class class)
{
	struct ib_uverbs_attr *in = sn_attr(c, in_id), *out = sn_attr(c, out_id);
	void *box;
	int rc = -ENOMEM;

	cmd->dev = c->dev;
	cmd->ctx = c->ctx;
	if (!in || in->len < 8 || !out || out->len < 8)
		return -EINVAL;
	cmd->in = box = sn_attr_dup(c, in_id, &cmd->in_len);
	cmd->out_len = out->len;
	cmd->out = calloc(1, cmd->out_len);
	if (box && cmd->out) {
		rc = sn_cmd_exec(cmd, class);
		if (sn_attr_out(c, out_id, cmd->out, cmd->out_len) && !rc)
			rc = -EFAULT;
		if (rc == -EFAULT && class == SN_CMD_CREATE)
			sn_obj_destroy(c->dev, cmd->kind, cmd->obj);
	}
	free(cmd->out);
	free(box);
	return rc;
}

static int devx_other(struct sn_call *c)
{
	struct sn_cmd cmd = { .dev = c->dev };

	return run_cmd(c, A(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN), A(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT),
		       &cmd, SN_CMD_GENERAL);
}

static int devx_obj_create(struct sn_call *c)
{
	struct sn_cmd cmd = { .dev = c->dev };
	int rc;

	rc = run_cmd(c, A(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN),
		     A(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT), &cmd, SN_CMD_CREATE);
	if (rc)
		return rc;
	sn_attr_set_handle(c, A(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE),
			   sn_obj_handle(cmd.kind, cmd.obj));
	return 0;
}

/* Whether a firmware command created the object. Others are destroyed by their verbs only. */
static bool is_devx(enum sn_kind kind, const void *obj)
{
	switch (kind) {
	case SN_QP:
		return ((const struct sn_qp *)obj)->devx;
	case SN_CQ:
		return ((const struct sn_cq *)obj)->devx;
	case SN_SRQ:
		return ((const struct sn_srq *)obj)->devx;
	default:
		return kind != SN_WQ && kind != SN_RAW && kind != SN_IND_TABLE;
	}
}

static int devx_obj_destroy(struct sn_call *c)
{
	static const char *const names[] = {
		[SN_QP] = "DESTROY_QP",
		[SN_CQ] = "DESTROY_CQ",
		[SN_SRQ] = "DESTROY_RMP",
		[SN_MKEY] = "DESTROY_MKEY",
		[SN_TD] = "DEALLOC_TRANSPORT_DOMAIN",
		[SN_TIS] = "DESTROY_TIS",
		[SN_SQ] = "DESTROY_SQ",
		[SN_RQ] = "DESTROY_RQ",
		[SN_RQT] = "DESTROY_RQT",
		[SN_TIR] = "DESTROY_TIR",
		[SN_COUNTER_SET] = "DEALLOC_Q_COUNTER",
		[SN_FLOW_COUNTER] = "DEALLOC_FLOW_COUNTER",
	};
	enum sn_kind kind;
	void *obj = sn_devx_obj(c, A(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE), &kind);

	if (!obj || !is_devx(kind, obj))
		return -ENOENT;
	c->dev->stats.commands++;
	sn_trace("command %s", names[kind]);
	return sn_obj_destroy(c->dev, kind, obj);
}

static int devx_obj_modify(struct sn_call *c)
{
	struct sn_cmd cmd = { .dev = c->dev };

	cmd.obj = sn_devx_obj(c, A(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE), &cmd.kind);
	if (!cmd.obj)
		return -ENOENT;
	return run_cmd(c, A(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN),
		       A(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT), &cmd, SN_CMD_MODIFY);
}

static int devx_obj_query(struct sn_call *c)
{
	struct sn_cmd cmd = { .dev = c->dev };

	cmd.obj = sn_devx_obj(c, A(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE), &cmd.kind);
	if (!cmd.obj)
		return -ENOENT;
	return run_cmd(c, A(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN),
		       A(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT), &cmd, SN_CMD_QUERY);
}

static int devx_query_eqn(struct sn_call *c)
{
	uint32_t vec = (uint32_t)sn_attr_num(c, A(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC));
	uint32_t eqn = SN_EQN_BASE + vec;

	if (vec >= SN_COMP_VECTORS)
		return -EINVAL;
	return sn_attr_out(c, A(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN), &eqn, sizeof(eqn));
}

/* All pages are allocated dynamically, so the program's number is the device's number. */
static int devx_query_uar(struct sn_call *c)
{
	uint32_t id = (uint32_t)sn_attr_num(c, A(MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX));

	if (!sn_find_uar(c->dev, id))
		return -EINVAL;
	return sn_attr_out(c, A(MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX), &id, sizeof(id));
}

/* ---- user memory ---- */

/* Returns whether a umem may have the access rights. The rules are those of UMEM_REG of Linux
 * (hw/mlx5/devx.c), which refuses remote atomics, and of ib_check_mr_access(). Older kernels also
 * refuse relaxed ordering. */
static bool umem_access_ok(uint32_t access)
{
	const uint32_t known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_RELAXED_ORDERING;

	return !(access & ~known) &&
	       (access & IBV_ACCESS_LOCAL_WRITE || !(access & IBV_ACCESS_REMOTE_WRITE));
}

/* Returns a bitmap of the page sizes that the program permits. A program that gives none permits
 * all sizes and promises to use no offsets. */
static uint64_t umem_pages(struct sn_call *c)
{
	struct ib_uverbs_attr *pgsz = sn_attr(c, A(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP));

	return pgsz ? sn_attr_num(c, pgsz->attr_id) : UINT64_MAX;
}

/* Checks the memory and sets page size and address of *from, whose length and access are set. */
static int umem_place(struct sn_call *c, struct sn_umem *from)
{
	struct ib_uverbs_attr *fd = sn_attr(c, A(MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD));
	uint64_t dma = sn_attr_num(c, A(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR));

	if (!from->len || dma + from->len < dma || !umem_access_ok(from->access))
		return -EINVAL;
	from->page = sn_umem_page(&c->dev->cfg, dma, from->len, umem_pages(c));
	if (!from->page)
		return -EINVAL;
	from->first = dma % from->page;
	from->va = dma;
	if (fd) /* the given address is the offset in the dmabuf */
		return sn_map_dmabuf(c, (int)sn_attr_num(c, fd->attr_id), dma, from->len,
				     from->access, &from->map, &from->va);
	if (sn_mem_is_gpu(dma, from->len))
		return sn_no_peermem(c, dma, from->len) ? -EFAULT : 0;
	return sn_mem_readable(dma, from->len) && (!(from->access & IBV_ACCESS_LOCAL_WRITE) ||
						   sn_mem_writable(dma, from->len))
		       ? 0
		       : -EFAULT;
}

static int umem_reg(struct sn_call *c)
{
	struct sn_umem from = {
		.len = sn_attr_num(c, A(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN)),
		.access = (uint32_t)sn_attr_num(c, A(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS)),
	}, *umem;
	int rc = umem_place(c, &from);

	if (rc)
		return rc;
	umem = sn_umem_create(c->dev, c->ctx, &from);
	if (!umem) {
		sn_unmap(&from.map);
		return -ENOMEM;
	}
	sn_trace("umem %u va %#llx length %llu page size %llu", umem->id,
		 (unsigned long long)from.va, (unsigned long long)from.len,
		 (unsigned long long)from.page);
	sn_attr_set_handle(c, A(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE), umem->handle);
	return sn_attr_out(c, A(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID), &umem->id, sizeof(umem->id));
}

static int umem_dereg(struct sn_call *c)
{
	struct sn_umem *u = sn_attr_obj(c, A(MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE), SN_UMEM);

	return u ? sn_umem_destroy(c->dev, u) : -ENOENT;
}

/* ---- register pages ---- */
static int uar_alloc(struct sn_call *c)
{
	uint64_t type = sn_attr_num(c, A(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE));
	uint32_t length = c->dev->cfg.page_size;
	struct sn_uar *uar;
	uint64_t off;

	if (type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF && type != MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC)
		return -EOPNOTSUPP;
	uar = sn_uar_create(c->dev, c->ctx);
	if (!uar)
		return -ENOMEM;
	off = SN_UAR_FILE_OFF + (uint64_t)uar->id * SN_UAR_SIZE;
	sn_trace("uar %u %s", uar->id, type == MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF ? "BF" : "NC");
	sn_attr_set_handle(c, A(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE), uar->handle);
	sn_attr_out(c, A(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET), &off, sizeof(off));
	sn_attr_out(c, A(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH), &length, sizeof(length));
	return sn_attr_out(c, A(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID), &uar->id, sizeof(uar->id));
}

static int uar_destroy(struct sn_call *c)
{
	struct sn_uar *uar = sn_attr_obj(c, A(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE), SN_UAR);

	return uar ? sn_uar_destroy(c->dev, uar) : -ENOENT;
}

const struct sn_method sn_methods_devx[] = {
	{ MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, 0, 0x3, devx_other },
	{ MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_UAR, 0, 0x3, devx_query_uar },
	{ MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_EQN, 0, 0x3, devx_query_eqn },
	{ MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE, 0, 0x7, devx_obj_create },
	{ MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY, 0, 0x1, devx_obj_destroy },
	{ MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, 0, 0x7, devx_obj_modify },
	{ MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY, 0, 0x7, devx_obj_query },
	{ MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG, 0, 0x7f, umem_reg },
	{ MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG, 0, 0x1, umem_dereg },
	{ MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, 0, 0x1f, uar_alloc },
	{ MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, 0, 0x1, uar_destroy },
	{ .fn = NULL },
};
