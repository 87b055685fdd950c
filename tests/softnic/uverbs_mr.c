/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Memory regions: registration of host memory, GPU memory and dmabufs, and changes of
 * a region. Refuses what the kernel and hardware refuse. Indirect keys are created in
 * cmd_mkey.c; accesses are checked in mem.c.
 */
#include "front.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ACCESS_KNOWN \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | \
	 IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE)
#define WRITES (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)
#define DMABUF_ACCESS \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING)
/* UVERBS_METHOD_REG_MR and its attributes, from Linux 6.17 */
#define METHOD_REG_MR 5
enum {
	REG_MR_HANDLE,
	REG_MR_PD,
	REG_MR_DMA_HANDLE,
	REG_MR_IOVA,
	REG_MR_ADDR,
	REG_MR_LENGTH,
	REG_MR_ACCESS,
	REG_MR_FD,
	REG_MR_FD_OFFSET,
	REG_MR_LKEY,
	REG_MR_RKEY,
};
#define KERNEL_ENOTSUPP	    524	       /* returned by dmabuf exporters; not in errno.h */
#define SN_DMABUF_PCIE_MARK 0x50434965 /* must equal the value in tests/standin/cuda.c */
#define REREG_KNOWN \
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

bool sn_no_peermem(const struct sn_call *c, uint64_t va, uint64_t len)
{
	return c->dev->cfg.no_peermem && sn_mem_is_gpu(va, len);
}

static int set_place(struct sn_call *c, struct sn_mr *mr, uint64_t start, uint64_t len,
		     uint64_t iova)
{
	if (start + len < start || (start & 4095) != (iova & 4095))
		return -EINVAL;
	if (sn_no_peermem(c, start, len))
		return -EFAULT;
	mr->gpu = sn_mem_is_gpu(start, len);
	if (!mr->gpu && len &&
	    !(sn_mem_readable(start, len) &&
	      (!(mr->access & WRITES) || sn_mem_writable(start, len))))
		return -EFAULT;
	mr->va = start;
	mr->len = len;
	mr->iova = iova;
	return 0;
}

static void trace_mr(const char *what, const struct sn_mr *mr)
{
	sn_trace("%s va %#llx length %llu access %#x key %#x%s", what, (unsigned long long)mr->va,
		 (unsigned long long)mr->len, mr->access, mr->lkey, mr->gpu ? " gpu" : "");
}

/* ---- registration ---- */

static int add(struct sn_call *c, struct sn_pd *pd, struct sn_mr *from, struct sn_mr **mr)
{
	from->pdn = pd->pdn;
	if (from->access & IBV_ACCESS_ZERO_BASED)
		from->iova = 0;
	*mr = sn_mr_create(c->dev, c->ctx, from);
	if (!*mr) {
		sn_unmap(&from->map);
		return -ENOMEM;
	}
	trace_mr("reg_mr", *mr);
	return 0;
}

int sn_write_reg_mr(struct sn_call *c)
{
	struct ib_uverbs_reg_mr_resp resp = { 0 };
	struct ib_uverbs_reg_mr in;
	struct sn_pd *pd;
	struct sn_mr from = { 0 }, *mr;
	int rc;

	sn_attr_in(c, UVERBS_ATTR_CORE_IN, &in, sizeof(in));
	pd = sn_handle_get(c->dev, c->ctx, in.pd_handle, SN_PD);
	rc = pd ? check_access(in.access_flags) : -EINVAL;
	from.access = in.access_flags;
	if (!rc)
		rc = set_place(c, &from, in.start, in.length, in.hca_va);
	if (!rc)
		rc = add(c, pd, &from, &mr);
	if (rc)
		return rc;
	resp.mr_handle = mr->handle;
	resp.lkey = mr->lkey;
	resp.rkey = mr->rkey;
	return sn_attr_out(c, UVERBS_ATTR_CORE_OUT, &resp, sizeof(resp));
}

/* True if CUDA exported the dmabuf with the PCIe mapping type. The tests' stand-in for the CUDA
 * driver marks such a dmabuf by its file position. cuda_calls.c records exports of the real
 * driver. */
static bool is_pcie_typed(int fd)
{
	struct sn_export x;

	return lseek(fd, 0, SEEK_CUR) == SN_DMABUF_PCIE_MARK ||
	       (sn_export_of(fd, 0, 0, &x) && x.pcie);
}

static uint64_t size_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : (uint64_t)st.st_size;
}

/* Maps the pages of a dmabuf. With PROT_NONE maps anonymous memory instead, to which every
 * access fails. */
static int map_pages(int fd, uint64_t off, uint64_t len, int prot, struct sn_mapping *map)
{
	uint64_t head = off & 4095;
	void *base;
	int rc;

	base = prot == PROT_NONE
		       ? mmap(NULL, len + head, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
		       : mmap(NULL, len + head, prot, MAP_SHARED, fd, (off_t)(off - head));
	if (base == MAP_FAILED) {
		rc = -errno;
		sn_message("refusing dmabuf %d, cannot map it: %s", fd, strerror(-rc));
		return rc;
	}
	map->base = base;
	map->len = len + head;
	return 0;
}

int sn_map_dmabuf(struct sn_call *c, int fd, uint64_t off, uint64_t len, uint32_t access,
		  struct sn_mapping *map, uint64_t *va)
{
	const struct sn_cfg *cfg = &c->dev->cfg;
	bool write = access & ~(uint32_t)(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_RELAXED_ORDERING);
	int rc, prot = PROT_READ | (write ? PROT_WRITE : 0);
	uint64_t size = size_of(fd);
	bool pcie = is_pcie_typed(fd);
	struct sn_export x;

	if (!cfg->dmabuf)
		return -EOPNOTSUPP;
	if (pcie && cfg->dmabuf_pcie == SN_PCIE_REFUSED)
		return -KERNEL_ENOTSUPP;
	if (pcie && cfg->dmabuf_pcie == SN_PCIE_FAULTS)
		prot = PROT_NONE;
	if (!len || off + len < off || (size && off + len > size))
		return -EINVAL;
	if (sn_export_of(fd, off, len, &x)) {
		if (off > x.len || len > x.len - off)
			return -EINVAL;
		*va = x.va + off;
		if (prot != PROT_NONE && sn_mem_is_gpu(*va, len))
			return 0;
	}
	rc = map_pages(fd, off, len, prot, map);
	if (!rc)
		*va = (uint64_t)(uintptr_t)map->base + (off & 4095);
	return rc;
}

/* Numbers of the attributes: the methods REG_DMABUF_MR and REG_MR use different ones. */
struct reg_ids {
	uint16_t handle, pd, offset, length, iova, fd, access, lkey, rkey;
};

static int place_fd(struct sn_call *c, const struct reg_ids *id, struct sn_mr *from)
{
	uint64_t off = sn_attr_num(c, id->offset);
	int fd = (int)sn_attr_num(c, id->fd), rc;

	if (!c->dev->cfg.dmabuf)
		return -EOPNOTSUPP;
	if (from->access & ~(uint32_t)DMABUF_ACCESS || (off & 4095) != (from->iova & 4095))
		return -EINVAL;
	rc = sn_map_dmabuf(c, fd, off, from->len, from->access, &from->map, &from->va);
	if (rc && rc != -EINVAL && fcntl(fd, F_GETFD) >= 0 && !is_pcie_typed(fd) &&
	    sn_mem_is_gpu(from->iova, from->len)) {
		from->va = from->iova; /* NCCL passes the GPU address as iova; use it */
		rc = 0;
	}
	from->gpu = !rc && !from->map.base;
	from->dmabuf = true;
	return rc;
}

static int reg(struct sn_call *c, const struct reg_ids *id)
{
	struct sn_pd *pd = sn_attr_obj(c, id->pd, SN_PD);
	struct sn_mr from = { .iova = sn_attr_num(c, id->iova),
			      .len = sn_attr_num(c, id->length),
			      .access = (uint32_t)sn_attr_num(c, id->access) },
		     *mr;
	int rc = pd ? check_access(from.access) : -ENOENT;

	if (!rc && (id->fd != REG_MR_FD || sn_attr(c, id->fd)))
		rc = place_fd(c, id, &from);
	else if (!rc)
		rc = set_place(c, &from, sn_attr_num(c, REG_MR_ADDR), from.len, from.iova);
	if (!rc)
		rc = add(c, pd, &from, &mr);
	if (rc)
		return rc;
	sn_attr_set_handle(c, id->handle, mr->handle);
	sn_attr_out(c, id->lkey, &mr->lkey, sizeof(mr->lkey));
	return sn_attr_out(c, id->rkey, &mr->rkey, sizeof(mr->rkey));
}

static int reg_dmabuf(struct sn_call *c)
{
	static const struct reg_ids ids = {
		UVERBS_ATTR_REG_DMABUF_MR_HANDLE,	UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE,
		UVERBS_ATTR_REG_DMABUF_MR_OFFSET,	UVERBS_ATTR_REG_DMABUF_MR_LENGTH,
		UVERBS_ATTR_REG_DMABUF_MR_IOVA,		UVERBS_ATTR_REG_DMABUF_MR_FD,
		UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY,
		UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY,
	};

	return reg(c, &ids);
}

/* Registers memory or a dmabuf (method REG_MR). */
static int reg_any(struct sn_call *c)
{
	static const struct reg_ids ids = { REG_MR_HANDLE, REG_MR_PD,	REG_MR_FD_OFFSET,
					    REG_MR_LENGTH, REG_MR_IOVA, REG_MR_FD,
					    REG_MR_ACCESS, REG_MR_LKEY, REG_MR_RKEY };

	/* the NIC does not support DMA handles, so no handle exists */
	if (sn_attr(c, REG_MR_DMA_HANDLE))
		return -ENOENT;
	if (!sn_attr(c, REG_MR_ADDR) != !!sn_attr(c, REG_MR_FD) ||
	    !sn_attr(c, REG_MR_FD) != !sn_attr(c, REG_MR_FD_OFFSET))
		return -EINVAL;
	return reg(c, &ids);
}

/* ---- changing a region ---- */

/* Changes all requested properties or none. The keys stay the same. */
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
		rc = mr->dmabuf ? -EOPNOTSUPP : set_place(c, &next, in.start, in.length, in.hca_va);
	if (rc)
		return rc;
	if (next.access & IBV_ACCESS_ZERO_BASED)
		next.iova = 0;
	*mr = next;
	if (pd)
		sn_mr_move(c->dev, mr, pd->pdn);
	resp.lkey = mr->lkey;
	resp.rkey = mr->rkey;
	trace_mr("rereg_mr", mr);
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
	/* optional attribute */
	sn_attr_out(c, UVERBS_ATTR_QUERY_MR_RESP_IOVA, &mr->iova, sizeof(mr->iova));
	return 0;
}

const struct sn_method sn_methods_mr[] = {
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, 0x1, 0, destroy },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, 0x1f, 0, query },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, 0x1ff, 0, reg_dmabuf },
	{ UVERBS_OBJECT_MR, METHOD_REG_MR, 0x7ff, 0, reg_any },
	{ .fn = NULL },
};
