/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * One call of RDMA_VERBS_IOCTL: checks the header, finds the method, and gives it access
 * to attributes by the kernel's rules (inputs of up to 8 bytes inline, outputs truncated
 * to the caller's length, unknown mandatory attributes refused). The other uverbs_*.c
 * files implement the methods.
 */
#include "front.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u

struct ib_uverbs_attr *sn_attr(struct sn_call *c, uint16_t id)
{
	unsigned int i;

	for (i = 0; i < c->hdr->num_attrs; i++)
		if (c->hdr->attrs[i].attr_id == id)
			return &c->hdr->attrs[i];
	return NULL;
}

/* check_attrs() found the whole buffer readable. If it has since been unmapped, dst is zeroed. */
size_t sn_attr_in(struct sn_call *c, uint16_t id, void *dst, size_t len)
{
	struct ib_uverbs_attr *a = sn_attr(c, id);
	size_t n = a && a->len < len ? a->len : len;

	memset(dst, 0, len);
	if (!a)
		return 0;
	if (a->len <= sizeof(a->data))
		memcpy(dst, &a->data, n);
	else if (sn_mem_read(false, a->data, dst, n))
		memset(dst, 0, n);
	return a->len;
}

void *sn_attr_dup(struct sn_call *c, uint16_t id, size_t *len)
{
	struct ib_uverbs_attr *a = sn_attr(c, id);
	void *copy = a ? malloc(a->len ? a->len : 1) : NULL;

	*len = a ? a->len : 0;
	if (copy)
		sn_attr_in(c, id, copy, a->len);
	return copy;
}

uint64_t sn_attr_num(struct sn_call *c, uint16_t id)
{
	struct ib_uverbs_attr *a = sn_attr(c, id);
	uint64_t v = 0;

	if (!a)
		return 0;
	/* object handles and file descriptors have length 0 and their value inline */
	if (a->len == 0)
		return a->data;
	sn_attr_in(c, id, &v, a->len < sizeof(v) ? a->len : sizeof(v));
	return v;
}

int sn_attr_out(struct sn_call *c, uint16_t id, const void *src, size_t len)
{
	struct ib_uverbs_attr *a = sn_attr(c, id);

	if (!a)
		return -ENOENT;
	if (sn_mem_write(false, a->data, src, a->len < len ? a->len : len))
		return -EFAULT;
	a->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
	return 0;
}

void sn_attr_set_handle(struct sn_call *c, uint16_t id, int64_t value)
{
	struct ib_uverbs_attr *a = sn_attr(c, id);

	if (a) {
		a->data_s64 = value;
		a->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
	}
}

void *sn_attr_obj(struct sn_call *c, uint16_t id, enum sn_kind kind)
{
	return sn_handle_get(c->dev, c->ctx, sn_attr_num(c, id), kind);
}

int sn_attr_events(struct sn_call *c, uint16_t id, enum sn_kind kind, struct sn_event_queue **q)
{
	struct ib_uverbs_attr *a = sn_attr(c, id);

	*q = kind == SN_ASYNC ? c->ctx->async : NULL;
	if (!a)
		return 0;
	*q = sn_events_of_fd(c->dev, (int)a->data_s64);
	return *q && (*q)->kind == kind && (*q)->ctx == c->ctx ? 0 : -EBADF;
}

static const struct sn_method *find_method(const struct ib_uverbs_ioctl_hdr *hdr)
{
	static const struct sn_method *const tables[] = {
		sn_methods_dev,	 sn_methods_obj,      sn_methods_srq,
		sn_methods_mr,	 sn_methods_devx,     sn_methods_devx_events,
		sn_methods_flow, sn_methods_counters, sn_methods_wq,
	};
	const struct sn_method *m;
	size_t t;

	for (t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
		for (m = tables[t]; m->fn; m++)
			if (m->object == hdr->object_id && m->method == hdr->method_id)
				return m;
	return NULL;
}

static bool attr_known(const struct sn_method *m, uint16_t id)
{
	uint32_t bit = id & ~(uint32_t)UVERBS_UDATA_DRIVER_DATA_FLAG;

	if (bit >= 32)
		return false;
	return (id & UVERBS_UDATA_DRIVER_DATA_FLAG ? m->driver : m->core) >> bit & 1;
}

/* Checks the header as ib_uverbs_ioctl() and ib_uverbs_cmd_verbs() of Linux do. */
static int check_header(const struct ib_uverbs_ioctl_hdr *hdr)
{
	if (!sn_mem_readable((uintptr_t)hdr, sizeof(*hdr)))
		return -EFAULT;
	if (hdr->length > PAGE ||
	    hdr->length != sizeof(*hdr) + hdr->num_attrs * sizeof(hdr->attrs[0]))
		return -EINVAL;
	if (hdr->reserved1 || hdr->reserved2)
		return -EPROTONOSUPPORT;
	if (!sn_mem_readable((uintptr_t)hdr, hdr->length))
		return -EFAULT;
	return hdr->driver_id == RDMA_DRIVER_MLX5 ? 0 : -EINVAL;
}

/* True if the call lacks the handle or descriptor of its object, which is the first attribute of
 * each method of an object. The objects DEVICE and DEVX have none. */
static bool lacks_handle(struct sn_call *c, const struct sn_method *m)
{
	if (m->object == UVERBS_OBJECT_DEVICE || m->object == MLX5_IB_OBJECT_DEVX)
		return false;
	return !sn_attr(c, m->core ? 0 : UVERBS_UDATA_DRIVER_DATA_FLAG);
}

/*
 * As uverbs_set_attr() in Linux's uverbs_ioctl.c: refuses duplicate attributes, unknown
 * mandatory attributes and unreadable buffers. A value longer than `data` is in a buffer, and
 * so are outputs of any length; an unwritable output is detected when it is written.
 */
static int check_attrs(struct sn_call *c, const struct sn_method *m)
{
	const struct ib_uverbs_attr *a = c->hdr->attrs, *end = a + c->hdr->num_attrs;

	for (; a < end; a++) {
		if (!attr_known(m, a->attr_id)) {
			if (a->flags & UVERBS_ATTR_F_MANDATORY)
				return -EPROTONOSUPPORT;
			continue;
		}
		if (sn_attr(c, a->attr_id) != a)
			return -EINVAL;
		if (a->len > sizeof(a->data) && !sn_mem_readable(a->data, a->len))
			return -EFAULT;
	}
	return lacks_handle(c, m) ? -EINVAL : 0;
}

int sn_uverbs_call(struct sn_dev *dev, struct sn_ctx *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
	struct sn_call call = { dev, ctx, hdr };
	const struct sn_method *m;
	int rc;

	rc = check_header(hdr);
	if (rc)
		return rc;
	if (++dev->front->ioctls == dev->cfg.fail_ioctl_nth) {
		dev->stats.faults_injected++;
		sn_trace("uverbs %x.%x: failed with ENOMEM (injected)", hdr->object_id,
			 hdr->method_id);
		return -ENOMEM;
	}
	m = find_method(hdr);
	if (!m) {
		sn_trace("uverbs %x.%x: not supported", hdr->object_id, hdr->method_id);
		return -EPROTONOSUPPORT;
	}
	rc = check_attrs(&call, m);
	if (!rc)
		rc = m->fn(&call);
	sn_trace("uverbs %x.%x: %s%d", hdr->object_id, hdr->method_id, rc ? "errno " : "", -rc);
	return rc;
}
