/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Completion channels, asynchronous event files and DEVX files. Each is a pipe. The
 * first two carry the kernel's event structures; uverbs_devx_events.c writes the
 * entries of DEVX files. When an object is destroyed, libibverbs waits until the
 * program has acknowledged as many events as the kernel reports. Unread events of the
 * object are therefore removed from the pipe and not counted.
 */
#include "front.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PACKETS 256 /* each packet takes a page of the pipe */

static int open_drain(int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

struct sn_event_queue *sn_events_create(struct sn_dev *dev, struct sn_ctx *ctx, enum sn_kind kind,
					int *fd)
{
	/* DEVX entries differ in size; in packet mode one read returns one entry */
	int packets = kind >= SN_DEVX_EVENTS ? O_DIRECT : 0;
	struct sn_event_queue *q = calloc(1, sizeof(*q));
	struct stat st;
	int p[2];

	if (!q)
		return NULL;
	if (pipe2(p, O_CLOEXEC))
		goto free_q;
	if (packets)
		syscall(SYS_fcntl, p[1], F_SETPIPE_SZ, PACKETS * 4096);
	q->drain = open_drain(p[0]);
	if (q->drain < 0)
		goto close_pipe;
	syscall(SYS_fcntl, p[1], F_SETFL, O_NONBLOCK | packets);
	syscall(SYS_fstat, p[0], &st);
	q->ino = st.st_ino;
	q->kind = kind;
	q->ctx = ctx;
	q->wr = p[1];
	q->handle = sn_handle_add(dev, ctx, kind, q);
	if (!q->handle)
		goto close_drain;
	*fd = p[0];
	return q;

close_drain:
	syscall(SYS_close, q->drain);
close_pipe:
	syscall(SYS_close, p[0]);
	syscall(SYS_close, p[1]);
free_q:
	free(q);
	return NULL;
}

void sn_events_free(struct sn_dev *dev, struct sn_event_queue *q)
{
	if (q->ctx && q->ctx->async == q)
		q->ctx->async = NULL;
	sn_handle_del(dev, q->handle);
	syscall(SYS_close, q->wr);
	syscall(SYS_close, q->drain);
	free(q);
}

void sn_events_put(struct sn_dev *dev, struct sn_event_queue *q)
{
	if (q && --q->users == 0 && q->closed)
		sn_events_free(dev, q);
}

static struct sn_event_queue *events_of_ino(struct sn_dev *dev, ino_t ino)
{
	struct sn_handle *h;
	uint32_t i;

	for (i = 0; i < dev->front->next_handle; i++) {
		h = &dev->front->handles[i];
		if (h->kind >= SN_COMP_CHANNEL && ((struct sn_event_queue *)h->obj)->ino == ino)
			return h->obj;
	}
	return NULL;
}

struct sn_event_queue *sn_events_of_fd(struct sn_dev *dev, int fd)
{
	struct stat st;

	if (syscall(SYS_fstat, fd, &st) || !S_ISFIFO(st.st_mode))
		return NULL;
	return events_of_ino(dev, st.st_ino);
}

static size_t event_size(const struct sn_event_queue *q)
{
	return q->kind == SN_ASYNC ? sizeof(struct ib_uverbs_async_event_desc)
				   : sizeof(struct ib_uverbs_comp_event_desc);
}

uint32_t sn_events_drain(struct sn_event_queue *q, uint64_t element, int first_type, int last_type)
{
	struct ib_uverbs_async_event_desc keep[512], ev;
	size_t size = event_size(q), n = 0, i;
	uint32_t removed = 0;
	bool match;

	while (n < 512 && read(q->drain, &ev, size) == (ssize_t)size) {
		match = ev.element == element;
		if (q->kind == SN_ASYNC)
			match = match && (int)ev.event_type >= first_type &&
				(int)ev.event_type <= last_type;
		if (match)
			removed++;
		else
			keep[n++] = ev;
	}
	for (i = 0; i < n; i++)
		if (write(q->wr, &keep[i], size) != (ssize_t)size)
			break;
	return removed;
}

static bool events_write(struct sn_event_queue *q, const void *ev)
{
	size_t size = event_size(q);

	return !q->closed && write(q->wr, ev, size) == (ssize_t)size;
}

void sn_event_completion(struct sn_dev *dev, struct sn_cq *cq)
{
	struct ib_uverbs_comp_event_desc ev = { .cq_handle = cq->user_handle };

	if (cq->subscribed)
		sn_devx_completion(dev, cq);
	if (cq->channel && events_write(cq->channel, &ev))
		cq->comp_events++;
}

static bool async_event(struct sn_event_queue *q, uint64_t element, int type)
{
	struct ib_uverbs_async_event_desc ev = {
		.element = element,
		.event_type = (uint32_t)type,
	};

	sn_trace("async event %d", type);
	return q && events_write(q, &ev);
}

void sn_event_async_qp(struct sn_dev *dev, struct sn_qp *qp, int ibv_event_type)
{
	sn_devx_async(dev, qp, qp->qpn, ibv_event_type);
	if (async_event(qp->async, qp->user_handle, ibv_event_type))
		qp->async_events++;
}

void sn_event_async_srq(struct sn_dev *dev, struct sn_srq *srq, int ibv_event_type)
{
	sn_devx_async(dev, srq, srq->srqn, ibv_event_type);
	if (async_event(srq->async, srq->user_handle, ibv_event_type))
		srq->async_events++;
}

void sn_event_async_cq(struct sn_dev *dev, struct sn_cq *cq, int ibv_event_type)
{
	sn_devx_async(dev, cq, cq->cqn, ibv_event_type);
	if (async_event(cq->async, cq->user_handle, ibv_event_type))
		cq->async_events++;
}
