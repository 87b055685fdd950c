/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Memory regions: registration, change in place, and what is refused. */
#include "front.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>

#define ACCESS_KNOWN                                                                          \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |          \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |              \
	 IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE)
#define REREG_KNOWN                                                                           \
	(IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS)

static int check_access(uint32_t access)
{
	if (access & IBV_ACCESS_ON_DEMAND)
		return -EOPNOTSUPP;
	if (access & ~(uint32_t)ACCESS_KNOWN ||
	    (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
	     !(access & IBV_ACCESS_LOCAL_WRITE)))
		return -EINVAL;
	return 0;
}

static int set_place(struct sn_mr *mr, uint64_t start, uint64_t len, uint64_t iova)
{
	if (start + len < start || (start & 4095) != (iova & 4095))
		return -EINVAL;
	mr->gpu = sn_mem_is_gpu(start, len);
	if (!mr->gpu && len && !sn_mem_readable(start, len))
		return -EFAULT;
	mr->va = start;
	mr->len = len;
	mr->iova = iova;
	return 0;
}

static void say(const char *what, const struct sn_mr *mr)
{
	sn_trace("%s va %#llx length %llu access %#x key %#x%s", what, (unsigned long long)mr->va,
		 (unsigned long long)mr->len, mr->access, mr->lkey, mr->gpu ? " gpu" : "");
}

static int reg(struct sn_call *c, struct sn_pd *pd, const struct ib_uverbs_reg_mr *in,
	       struct sn_mr **mr)
{
	struct sn_mr from = { .access = in->access_flags };
	int rc = check_access(in->access_flags);

	if (!rc)
		rc = set_place(&from, in->start, in->length, in->hca_va);
	if (rc)
		return rc;
	from.pdn = pd->pdn;
	if (in->access_flags & IBV_ACCESS_ZERO_BASED)
		from.iova = 0;
	*mr = sn_mr_create(c->dev, c->ctx, &from);
	if (!*mr)
		return -ENOMEM;
	say("reg_mr", *mr);
	return 0;
}

int sn_write_reg_mr(struct sn_call *c)
{
	struct ib_uverbs_reg_mr_resp resp = { 0 };
	struct ib_uverbs_reg_mr in;
	struct sn_pd *pd;
	struct sn_mr *mr;
	int rc;

	sn_attr_in(c, UVERBS_ATTR_CORE_IN, &in, sizeof(in));
	pd = sn_handle_get(c->dev, c->ctx, in.pd_handle, SN_PD);
	rc = pd ? reg(c, pd, &in, &mr) : -EINVAL;
	if (rc)
		return rc;
	resp.mr_handle = mr->handle;
	resp.lkey = mr->lkey;
	resp.rkey = mr->rkey;
	return sn_attr_out(c, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
}

/* Of Linux 6.17, newer than the distribution's headers. */
#define METHOD_REG_MR (UVERBS_METHOD_REG_DMABUF_MR + 1)
enum {
	REG_MR_HANDLE, REG_MR_PD_HANDLE, REG_MR_DMA_HANDLE, REG_MR_IOVA, REG_MR_ADDR,
	REG_MR_LENGTH, REG_MR_ACCESS_FLAGS, REG_MR_FD, REG_MR_FD_OFFSET, REG_MR_RESP_LKEY,
	REG_MR_RESP_RKEY,
};

static int reg_ioctl(struct sn_call *c)
{
	struct sn_pd *pd = sn_attr_obj(c, REG_MR_PD_HANDLE, SN_PD);
	struct ib_uverbs_reg_mr in = {
		.start = sn_attr_num(c, REG_MR_ADDR), .length = sn_attr_num(c, REG_MR_LENGTH),
		.hca_va = sn_attr_num(c, REG_MR_IOVA),
		.access_flags = (uint32_t)sn_attr_num(c, REG_MR_ACCESS_FLAGS),
	};
	struct sn_mr *mr;
	int rc;

	/* There are no DMA handles, so none can be named; a file is a dmabuf. */
	if (!pd || sn_attr(c, REG_MR_DMA_HANDLE))
		return -ENOENT;
	if (!sn_attr(c, REG_MR_ADDR) != !!sn_attr(c, REG_MR_FD) ||
	    !sn_attr(c, REG_MR_FD) != !sn_attr(c, REG_MR_FD_OFFSET))
		return -EINVAL;
	rc = sn_attr(c, REG_MR_FD) ? -EOPNOTSUPP : reg(c, pd, &in, &mr);
	if (rc)
		return rc;
	sn_attr_set_handle(c, REG_MR_HANDLE, mr->handle);
	sn_attr_out(c, REG_MR_RESP_LKEY, &mr->lkey, sizeof(mr->lkey));
	return sn_attr_out(c, REG_MR_RESP_RKEY, &mr->rkey, sizeof(mr->rkey));
}

/* All or nothing; the keys stay. */
int sn_write_rereg_mr(struct sn_call *c)
{
	struct ib_uverbs_rereg_mr_resp resp = { 0 };
	struct ib_uverbs_rereg_mr in;
	struct sn_pd *pd = NULL;
	struct sn_mr next, *mr;
	int rc = 0;

	sn_attr_in(c, UVERBS_ATTR_CORE_IN, &in, sizeof(in));
	mr = sn_handle_get(c->dev, c->ctx, in.mr_handle, SN_MR);
	if (!mr || !in.flags)
		return -EINVAL;
	if (in.flags & ~(uint32_t)REREG_KNOWN)
		return -EOPNOTSUPP;
	next = *mr;
	if (in.flags & IBV_REREG_MR_CHANGE_PD &&
	    !(pd = sn_handle_get(c->dev, c->ctx, in.pd_handle, SN_PD)))
		return -EINVAL;
	if (in.flags & IBV_REREG_MR_CHANGE_ACCESS) {
		rc = check_access(in.access_flags);
		next.access = in.access_flags;
	}
	if (!rc && in.flags & IBV_REREG_MR_CHANGE_TRANSLATION)
		rc = set_place(&next, in.start, in.length, in.hca_va);
	if (rc)
		return rc;
	*mr = next;
	if (pd)
		sn_mr_move(c->dev, mr, pd->pdn);
	resp.lkey = mr->lkey;
	resp.rkey = mr->rkey;
	say("rereg_mr", mr);
	return sn_attr_out(c, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
}

static int destroy(struct sn_call *c)
{
	struct sn_mr *mr = sn_attr_obj(c, UVERBS_ATTR_DESTROY_MR_HANDLE, SN_MR);

	return mr ? sn_mr_destroy(c->dev, mr) : -ENOENT;
}

static int query(struct sn_call *c)
{
	struct sn_mr *mr = sn_attr_obj(c, UVERBS_ATTR_QUERY_MR_HANDLE, SN_MR);

	if (!mr)
		return -ENOENT;
	sn_attr_out(c, UVERBS_ATTR_QUERY_MR_RESP_LKEY, &mr->lkey, sizeof(mr->lkey));
	sn_attr_out(c, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &mr->rkey, sizeof(mr->rkey));
	sn_attr_out(c, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &mr->len, sizeof(mr->len));
	sn_attr_out(c, UVERBS_ATTR_QUERY_MR_RESP_IOVA, &mr->iova, sizeof(mr->iova)); /* optional */
	return 0;
}

/* As a kernel without dmabuf support for this device. */
static int reg_dmabuf(struct sn_call *c)
{
	(void)c;
	return -EOPNOTSUPP;
}

const struct sn_method sn_methods_mr[] = {
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, 0x1, 0, destroy },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, 0x1f, 0, query },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, 0x1ff, 0, reg_dmabuf },
	{ UVERBS_OBJECT_MR, METHOD_REG_MR, 0x7ff, 0, reg_ioctl },
	{ .fn = NULL },
};
