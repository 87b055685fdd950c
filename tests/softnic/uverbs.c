/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * One call of RDMA_VERBS_IOCTL: header checks, method look-up, attribute access
 * by the kernel's rules (up to 8 bytes inline, outputs cut to the caller's
 * length, unknown mandatory attributes refused). The methods are in the
 * uverbs_*.c files beside this one.
 */
#include "front.h"

#include <errno.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <string.h>

struct ib_uverbs_attr *sn_attr(struct sn_call *c, uint16_t id)
{
	unsigned int i;

	for (i = 0; i < c->hdr->num_attrs; i++)
		if (c->hdr->attrs[i].attr_id == id)
			return &c->hdr->attrs[i];
	return NULL;
}

const void *sn_attr_ptr(struct sn_call *c, uint16_t id, size_t *len)
{
	struct ib_uverbs_attr *a = sn_attr(c, id);

	*len = a ? a->len : 0;
	if (!a)
		return NULL;
	return a->len <= sizeof(a->data) ? (const void *)&a->data
					 : (const void *)(uintptr_t)a->data;
}

size_t sn_attr_in(struct sn_call *c, uint16_t id, void *dst, size_t len)
{
	size_t have;
	const void *src = sn_attr_ptr(c, id, &have);

	memset(dst, 0, len);
	if (src)
		memcpy(dst, src, have < len ? have : len);
	return have;
}

uint64_t sn_attr_num(struct sn_call *c, uint16_t id)
{
	struct ib_uverbs_attr *a = sn_attr(c, id);
	uint64_t v = 0;

	if (!a)
		return 0;
	/* Object handles and descriptors have length 0 and their value inline. */
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
	if (a->len && !a->data)
		return -EFAULT;
	memcpy((void *)(uintptr_t)a->data, src, a->len < len ? a->len : len);
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
		sn_methods_dev, sn_methods_obj, sn_methods_srq, sn_methods_mr, sn_methods_devx,
		sn_methods_devx_events,
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
	uint32_t bit = id & 0xfff;

	if (bit >= 32)
		return false;
	return (id & UVERBS_UDATA_DRIVER_DATA_FLAG ? m->driver : m->core) >> bit & 1;
}

int sn_uverbs_call(struct sn_dev *dev, struct sn_ctx *ctx, struct ib_uverbs_ioctl_hdr *hdr)
{
	struct sn_call call = { dev, ctx, hdr };
	const struct sn_method *m;
	unsigned int i;
	int rc;

	if (++dev->front->ioctls == dev->cfg.fail_ioctl_nth) {
		dev->stats.faults_injected++;
		sn_trace("uverbs %x.%x: injected failure", hdr->object_id, hdr->method_id);
		return -ENOMEM;
	}
	if (hdr->length != sizeof(*hdr) + hdr->num_attrs * sizeof(hdr->attrs[0]) ||
	    hdr->reserved1 || hdr->reserved2)
		return -EINVAL;
	m = find_method(hdr);
	if (!m) {
		sn_trace("uverbs %x.%x: not supported", hdr->object_id, hdr->method_id);
		return -EPROTONOSUPPORT;
	}
	for (i = 0; i < hdr->num_attrs; i++)
		if (hdr->attrs[i].flags & UVERBS_ATTR_F_MANDATORY &&
		    !attr_known(m, hdr->attrs[i].attr_id))
			return -EPROTONOSUPPORT;
	rc = m->fn(&call);
	sn_trace("uverbs %x.%x: %s%d", hdr->object_id, hdr->method_id, rc ? "errno " : "", -rc);
	return rc;
}
