/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * DEVX files. One kind delivers events of objects that a program subscribed to: the
 * program reads the cookie of the subscription and the event queue entry (only the
 * cookie with OMIT_DATA), or an eventfd of the program counts the events. The other kind
 * delivers the outputs of asynchronous queries. One read returns one entry.
 * uverbs_events.c owns the files.
 */
#include "front.h"
#include "prm_nic.h"

#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define A(id)		    ((uint16_t)(id))
#define EQE		    64u
#define EQE_TYPE	    1u
#define EQE_CQ_ERR_CQN	    0x20u
#define EQE_CQ_ERR_SYNDROME 0x2bu
#define EQE_QUEUE_TYPE	    0x34u /* of an event of a QP, SQ or RQ */
#define EQE_NUMBER	    0x38u /* number of the QP or SRQ, or of the CQ of a completion */
#define QUERY_OUT_MAX	    4088u /* one packet of the pipe, minus the identifier */

/* Event types of the device, mlx5 device.h */
enum { EV_COMP = 0x00, EV_CQ_ERR = 0x04 };
static const uint8_t qp_types[] = { 0x02, 0x03, 0x05, 0x10, 0x11, 0x13 };
static const uint8_t rq_types[] = { 0x05, 0x05 };
static const uint8_t srq_types[] = { 0x12, 0x14 };
static const uint8_t cq_types[] = { EV_COMP, EV_CQ_ERR };

/* Event types of the device, indexed by ibv_event_type */
static const uint8_t of_async[] = {
	[SN_ASYNC_CQ_ERR] = EV_CQ_ERR,	 [SN_ASYNC_QP_FATAL] = 0x05, [SN_ASYNC_QP_REQ_ERR] = 0x10,
	[SN_ASYNC_QP_ACCESS_ERR] = 0x11, [SN_ASYNC_COMM_EST] = 0x02, [SN_ASYNC_SQ_DRAINED] = 0x03,
	[SN_ASYNC_SRQ_LIMIT] = 0x14,	 [SN_ASYNC_LAST_WQE] = 0x13, [SN_ASYNC_WQ_FATAL] = 0x05,
};

struct sn_subscription {
	struct sn_subscription *next;
	const void *obj;
	struct sn_event_queue *queue;
	uint64_t cookie;
	int eventfd; /* our duplicate of the program's eventfd; -1: use queue */
	uint8_t type;
	bool rq; /* obj is an RQ */
};

static void deliver(const struct sn_subscription *s, uint32_t number)
{
	struct {
		uint64_t cookie;
		uint8_t eqe[EQE];
	} ev = { .cookie = s->cookie };
	const uint64_t one = 1;
	ssize_t n;

	ev.eqe[EQE_TYPE] = s->type;
	ev.eqe[EQE_QUEUE_TYPE] = s->rq; /* 1: RQ, MLX5_EVENT_QUEUE_TYPE_RQ of Linux */
	nic_set(ev.eqe, NIC_F(s->type == EV_CQ_ERR ? EQE_CQ_ERR_CQN : EQE_NUMBER, 23, 0), number);
	if (s->type == EV_CQ_ERR)
		ev.eqe[EQE_CQ_ERR_SYNDROME] = ((const struct sn_cq *)s->obj)->error;
	if (s->eventfd >= 0)
		n = write(s->eventfd, &one, sizeof(one));
	else
		n = write(s->queue->wr, &ev, s->queue->omit_data ? sizeof(ev.cookie) : sizeof(ev));
	if (n < 0)
		sn_trace("DEVX event %#x of %#x lost: file full or closed", s->type, number);
}

static void dispatch(struct sn_dev *dev, const void *obj, uint32_t number, uint8_t type)
{
	struct sn_subscription *s;

	for (s = dev->front->subscriptions; s; s = s->next)
		if (s->obj == obj && s->type == type)
			deliver(s, number);
}

void sn_devx_completion(struct sn_dev *dev, const struct sn_cq *cq)
{
	dispatch(dev, cq, cq->cqn, EV_COMP);
}

void sn_devx_async(struct sn_dev *dev, const void *obj, uint32_t number, int ibv_event_type)
{
	dispatch(dev, obj, number, of_async[ibv_event_type]);
}

void sn_devx_unsubscribe(struct sn_dev *dev, const void *obj, const struct sn_event_queue *queue)
{
	struct sn_subscription **at = &dev->front->subscriptions, *s;

	while ((s = *at)) {
		if (s->obj != obj && s->queue != queue) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		if (s->eventfd >= 0)
			syscall(SYS_close, s->eventfd);
		free(s);
	}
}

/*
 * Returns whether a program may subscribe to the type. The rules are those of the kernel's devx.c:
 * completions of a CQ always; with event_cap the types in user_affiliated_events; without
 * event_cap a fixed list, which contains all types of this NIC.
 */
static bool may_subscribe(const struct sn_cfg *cfg, uint16_t type)
{
	return type == EV_COMP || !cfg->event_cap || (type < 64 && cfg->events >> type & 1);
}

static bool has_type(enum sn_kind kind, uint16_t type)
{
	const uint8_t *types = kind == SN_QP   ? qp_types
			       : kind == SN_CQ ? cq_types
			       : kind == SN_RQ ? rq_types
					       : srq_types;
	size_t n = kind == SN_QP ? sizeof(qp_types) : sizeof(cq_types);

	if (kind != SN_QP && kind != SN_CQ && kind != SN_RQ && kind != SN_SRQ)
		return false;
	return type <= 0xff && memchr(types, type, n);
}

static int add(struct sn_call *c, const struct sn_subscription *from)
{
	struct ib_uverbs_attr *fd = sn_attr(c, A(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM));
	struct sn_subscription *s = malloc(sizeof(*s));

	if (!s)
		return -ENOMEM;
	*s = *from;
	s->eventfd = -1;
	if (fd) {
		s->eventfd = (int)syscall(SYS_dup, (int)sn_attr_num(c, fd->attr_id));
		if (s->eventfd < 0) {
			free(s);
			return -EBADF;
		}
	}
	s->next = c->dev->front->subscriptions;
	c->dev->front->subscriptions = s;
	return 0;
}

/* Events without an object, such as those of a port, are not supported. */
static int subscribe(struct sn_call *c)
{
	struct sn_subscription s = {
		.cookie = sn_attr_num(c, A(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE)),
	};
	uint16_t list[16];
	enum sn_kind kind;
	size_t len, i;
	void *obj;
	int rc = sn_attr_events(c, A(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE), SN_DEVX_EVENTS,
				&s.queue);

	len = sn_attr_in(c, A(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST), list, sizeof(list));
	obj = sn_devx_obj(c, A(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE), &kind);
	if (rc || !s.queue || !obj || !len || len % 2 || len > sizeof(list))
		return rc ? rc : -EINVAL;
	for (i = 0; i < len / 2; i++)
		if (!has_type(kind, list[i]) || !may_subscribe(&c->dev->cfg, list[i]))
			return -EINVAL;
	s.obj = obj;
	s.rq = kind == SN_RQ;
	for (i = 0; i < len / 2 && !rc; i++) {
		s.type = (uint8_t)list[i];
		rc = add(c, &s);
		if (!rc && kind == SN_CQ && s.type == EV_COMP)
			((struct sn_cq *)obj)->subscribed = true;
	}
	return rc;
}

static int alloc_queue(struct sn_call *c, enum sn_kind kind, uint16_t id, bool omit_data)
{
	struct sn_event_queue *q;
	int fd;

	q = sn_events_create(c->dev, c->ctx, kind, &fd);
	if (!q)
		return -EMFILE;
	q->omit_data = omit_data;
	sn_attr_set_handle(c, id, fd);
	return 0;
}

static int alloc_events(struct sn_call *c)
{
	uint64_t flags = sn_attr_num(c, A(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS));

	if (flags & ~(uint64_t)MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA)
		return -EINVAL;
	return alloc_queue(c, SN_DEVX_EVENTS, A(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE),
			   flags);
}

static int alloc_outputs(struct sn_call *c)
{
	return alloc_queue(c, SN_DEVX_OUTPUTS, A(MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE),
			   false);
}

/* Executes a query at once and writes identifier and output to the file, also if the status in
 * the output is an error. */
static int answer(struct sn_cmd *cmd, const struct sn_event_queue *q, uint64_t id)
{
	uint8_t *out = calloc(1, sizeof(id) + cmd->out_len);
	int rc = out && cmd->in ? 0 : -ENOMEM;

	if (!rc) {
		memcpy(out, &id, sizeof(id));
		cmd->out = out + sizeof(id);
		rc = sn_cmd_exec(cmd, SN_CMD_QUERY);
	}
	if (!rc || rc == -EREMOTEIO)
		rc = write(q->wr, out, sizeof(id) + cmd->out_len) < 0 ? -errno : 0;
	free(out);
	return rc;
}

static int async_query(struct sn_call *c)
{
	uint64_t id = sn_attr_num(c, A(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_WR_ID));
	struct sn_cmd cmd = { .dev = c->dev, .ctx = c->ctx };
	struct sn_event_queue *q;
	int rc = sn_attr_events(c, A(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_FD), SN_DEVX_OUTPUTS, &q);
	void *box;

	cmd.obj = sn_devx_obj(c, A(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_HANDLE), &cmd.kind);
	cmd.out_len = sn_attr_num(c, A(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_OUT_LEN));
	if (!cmd.obj)
		return -ENOENT;
	box = sn_attr_dup(c, A(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_CMD_IN), &cmd.in_len);
	cmd.in = box;
	if (!rc)
		rc = !q || cmd.in_len < 8 || cmd.out_len < 8 || cmd.out_len > QUERY_OUT_MAX
			     ? -EINVAL
			     : answer(&cmd, q, id);
	free(box);
	return rc;
}

const struct sn_method sn_methods_devx_events[] = {
	{ MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT, 0, 0x1f, subscribe },
	{ MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_ASYNC_QUERY, 0, 0x1f, async_query },
	{ MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, MLX5_IB_METHOD_DEVX_ASYNC_CMD_FD_ALLOC, 0, 0x1,
	  alloc_outputs },
	{ MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC, 0, 0x3,
	  alloc_events },
	{ .fn = NULL },
};
