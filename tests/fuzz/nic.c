/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The whole NIC for a fuzzer: opens and closes the device, calls its ioctl, and
 * creates objects; see nic.h. Functions named __wrap_* replace the NIC's own. */
#include "nic.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../softnic/prm_nic.h"

#define A(id) ((uint16_t)(id))

bool __wrap_sn_mem_writable(uint64_t va, uint64_t len);
bool __wrap_sn_mem_readable(uint64_t va, uint64_t len);
bool __real_sn_mem_readable(uint64_t va, uint64_t len);
int __wrap_sn_mem_write(bool gpu, uint64_t va, const void *src, size_t len);
int __real_sn_mem_write(bool gpu, uint64_t va, const void *src, size_t len);

/*
 * AddressSanitizer's shadow memory is at low addresses, which inputs may contain. The NIC
 * must not access it.
 */
static bool is_shadow(uint64_t va, uint64_t len)
{
	return va + len > 0x7fff8000 && va < 0x10007fff8000;
}

bool __wrap_sn_mem_readable(uint64_t va, uint64_t len)
{
	return !is_shadow(va, len) && __real_sn_mem_readable(va, len);
}

int __wrap_sn_mem_write(bool gpu, uint64_t va, const void *src, size_t len)
{
	return is_shadow(va, len) ? -EFAULT : __real_sn_mem_write(gpu, va, src, len);
}

/* Replaces the real function, which reads all of /proc/self/maps. */
bool __wrap_sn_mem_writable(uint64_t va, uint64_t len)
{
	return va + len <= NIC_READ_ONLY || va >= FUZZ_ARENA + FUZZ_ARENA_LEN;
}

static int first_fd; /* lowest free descriptor before the device is opened */

void nic_setup(void)
{
	struct fuzz_nic n;

	setenv("SOFTNIC_IP", "127.66.6.6", 1);
	setenv("SOFTNIC_SYSFS", "/nonexistent", 1);
	setenv("SOFTNIC_TRACE", "/dev/null", 1);
	fuzz_arena();
	if (mprotect((void *)(uintptr_t)NIC_READ_ONLY, 65536, PROT_READ))
		abort();
	/* Cause the first trace and the first fault: each opens a descriptor that stays open. */
	nic_open(&n, NIC_TRACE);
	sn_mem_readable(8, 1);
	sn_fd_closing(n.fd);
	close(n.fd);
	close(n.fds[0]);
	close(n.fds[1]);
}

/* ---- calls ---- */

void call_start(struct fuzz_call *c, uint16_t object, uint16_t method)
{
	c->object = object;
	c->method = method;
	c->n = 0;
}

static struct fuzz_attr *add(struct fuzz_call *c, uint16_t id, uint16_t len,
			     enum fuzz_attr_kind kind)
{
	struct fuzz_attr *a = &c->a[c->n++];

	a->id = id;
	a->len = len;
	a->flags = UVERBS_ATTR_F_MANDATORY;
	a->kind = kind;
	a->value = 0;
	return a;
}

struct fuzz_attr *call_value(struct fuzz_call *c, uint16_t id, uint16_t len, uint64_t value)
{
	struct fuzz_attr *a = add(c, id, len, FUZZ_VALUE);

	a->value = value;
	return a;
}

struct fuzz_attr *call_in(struct fuzz_call *c, uint16_t id, const void *data, uint16_t len)
{
	struct fuzz_attr *a = add(c, id, len, FUZZ_IN);

	memset(a->data, 0, sizeof(a->data));
	memcpy(a->data, data, len);
	return a;
}

struct fuzz_attr *call_out(struct fuzz_call *c, uint16_t id, uint16_t len)
{
	return add(c, id, len, FUZZ_OUT);
}

static void *exact(const struct fuzz_attr *a)
{
	size_t n = a->len < sizeof(a->data) ? a->len : sizeof(a->data);
	uint8_t *p = calloc(1, a->len ? a->len : 1);

	if (!p)
		abort();
	if (a->kind == FUZZ_IN)
		memcpy(p, a->data, n);
	return p;
}

static void put_attr(struct ib_uverbs_attr *u, struct fuzz_attr *a, void **buf)
{
	*u = (struct ib_uverbs_attr){ .attr_id = a->id,
				      .len = a->len,
				      .flags = a->flags,
				      .data = a->value };
	*buf = NULL;
	if (a->kind == FUZZ_FD_OUT)
		u->data = UINT64_MAX; /* no valid descriptor, in case the NIC does not write it */
	if (a->kind == FUZZ_VALUE || a->kind == FUZZ_FD_OUT || a->value)
		return;
	if (a->kind == FUZZ_IN && a->len <= sizeof(u->data)) {
		memcpy(&u->data, a->data, a->len);
		return;
	}
	*buf = exact(a);
	u->data = (uintptr_t)*buf;
}

static void take_attr(struct fuzz_nic *n, const struct ib_uverbs_attr *u, struct fuzz_attr *a,
		      void *buf, long rc)
{
	size_t len = a->len < sizeof(a->data) ? a->len : sizeof(a->data);

	if (a->kind == FUZZ_OUT && buf)
		memcpy(a->data, buf, len);
	if (a->kind == FUZZ_FD_OUT && !rc && u->data < 4096 && n->nfds < NIC_FDS)
		n->fds[n->nfds++] = (int)u->data;
	if (a->kind != FUZZ_IN)
		a->value = u->data;
	free(buf);
}

long nic_call(struct fuzz_nic *n, struct fuzz_call *c)
{
	size_t len = sizeof(struct ib_uverbs_ioctl_hdr) + c->n * sizeof(struct ib_uverbs_attr);
	struct ib_uverbs_ioctl_hdr *hdr = calloc(1, len);
	void *buf[NIC_ATTRS];
	unsigned i;
	long rc;

	if (!hdr)
		abort();
	hdr->length = (uint16_t)len;
	hdr->driver_id = RDMA_DRIVER_MLX5;
	hdr->object_id = c->object;
	hdr->method_id = c->method;
	hdr->num_attrs = (uint16_t)c->n;
	for (i = 0; i < c->n; i++)
		put_attr(&hdr->attrs[i], &c->a[i], &buf[i]);
	rc = sn_ctx_ioctl(n->ctx, hdr);
	for (i = 0; i < c->n; i++)
		take_attr(n, &hdr->attrs[i], &c->a[i], buf[i], rc);
	free(hdr);
	return rc;
}

/* ---- the device, for one input ---- */

/* Resets the state that would make object numbers depend on earlier inputs. */
static void start_over(struct sn_dev *dev, uint8_t how)
{
	struct sn_front *f = dev->front;

	f->pds.next = f->mrs.next = f->umems.next = f->cqs.next = f->qps.next = f->srqs.next = 0;
	f->tds.next = f->tiss.next = f->rqts.next = f->tirs.next = 0;
	f->counter_sets.next = f->flow_counters.next = 0;
	f->next_uar = f->lag_turn = 0;
	f->mr_variant = 0;
	f->ioctls = f->cmds = 0;
	dev->ngone = dev->gone_unlisted = 0;
	sn_stats_eth_forget(dev);
	dev->cfg.infiniband = how & NIC_INFINIBAND;
	dev->cfg.dmabuf = how & NIC_DMABUF;
	dev->cfg.lag_ports = how & NIC_LAG ? 2 : 0;
	dev->cfg.trace = how & NIC_TRACE;
	dev->cfg.lag_init2 = dev->cfg.query_lag = how & NIC_LAG;
	dev->cfg.no_dbr_max = how & NIC_FEW ? 1 : 0;
	dev->cfg.qp_max = how & NIC_FEW ? 3 : 0;
	dev->cfg.page_size = how & NIC_LARGE_PAGES ? 65536 : 4096;
	dev->cfg.whole_pages = how & NIC_LARGE_PAGES;
	dev->cfg.cd = !(how & NIC_NO_CD);
	dev->cfg.dma = how & NIC_NO_CD ? SN_DMA_NONE : SN_DMA_QP;
	dev->cfg.dma_max = 31;
	dev->cfg.event_cap = how & NIC_EVENTS;
}

void nic_open(struct fuzz_nic *n, uint8_t how)
{
	struct mlx5_ib_alloc_ucontext_req_v2 req = { .lib_caps = MLX5_LIB_CAP_DYN_UAR };
	static struct fuzz_call c;

	memset(n, 0, sizeof(*n));
	memset((void *)(uintptr_t)FUZZ_ARENA, 0, 65536);
	fuzz_begin();
	first_fd = dup(STDERR_FILENO);
	close(first_fd);
	n->fd = sn_ctx_open(O_CLOEXEC);
	n->ctx = n->fd < 0 ? NULL : sn_ctx_of_fd(n->fd);
	if (!n->ctx)
		abort();
	start_over(sn_dev, how);
	n->fds[n->nfds++] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	call_start(&c, UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC);
	call_value(&c, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0, 0)->kind = FUZZ_FD_OUT;
	nic_call(n, &c);
	call_start(&c, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
	call_in(&c, UVERBS_ATTR_UHW_IN, &req, sizeof(req));
	call_out(&c, UVERBS_ATTR_UHW_OUT, sizeof(struct mlx5_ib_alloc_ucontext_resp));
	call_out(&c, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, 4);
	call_out(&c, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, 8);
	if (nic_call(n, &c))
		abort();
}

void nic_close(struct fuzz_nic *n)
{
	unsigned i;
	int next;

	sn_fd_closing(n->fd);
	close(n->fd);
	for (i = 0; i < n->nfds; i++)
		close(n->fds[i]);
	if (sn_objects_live()) {
		fprintf(stderr, "%u NIC objects leaked\n", sn_objects_live());
		abort();
	}
	next = dup(STDERR_FILENO);
	close(next);
	if (next != first_fd) {
		fprintf(stderr, "a descriptor leaked\n");
		abort();
	}
}

/* ---- objects ---- */

static void write_cmd(struct fuzz_call *c, uint32_t cmd, const void *in, uint16_t len, uint16_t out)
{
	call_start(c, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	call_value(c, UVERBS_ATTR_WRITE_CMD, 8, cmd);
	call_in(c, UVERBS_ATTR_CORE_IN, in, len);
	call_out(c, UVERBS_ATTR_CORE_OUT, out);
}

static uint32_t word(const struct fuzz_attr *a, unsigned i)
{
	uint32_t v;

	memcpy(&v, a->data + 4 * i, 4);
	return v;
}

static void make_pd_mr(struct fuzz_nic *n, struct fuzz_call *c)
{
	struct ib_uverbs_alloc_pd pd = { 0 };
	struct ib_uverbs_reg_mr mr = { .start = FUZZ_ARENA, .hca_va = FUZZ_ARENA, .length = 65536 };

	write_cmd(c, IB_USER_VERBS_CMD_ALLOC_PD, &pd, sizeof(pd), 4);
	call_out(c, UVERBS_ATTR_UHW_OUT, 4);
	if (nic_call(n, c))
		abort();
	n->pd = mr.pd_handle = word(&c->a[2], 0);
	n->pdn = word(&c->a[3], 0);
	mr.access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
	write_cmd(c, IB_USER_VERBS_CMD_REG_MR, &mr, sizeof(mr), 12);
	if (nic_call(n, c))
		abort();
	n->lkey = word(&c->a[2], 1);
}

static void make_umem_uar(struct fuzz_nic *n, struct fuzz_call *c)
{
	call_start(c, MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG);
	call_value(c, A(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE), 0, 0);
	call_value(c, A(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR), 8, FUZZ_ARENA);
	call_value(c, A(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN), 8, 65536);
	call_value(c, A(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS), 4, IBV_ACCESS_LOCAL_WRITE);
	call_out(c, A(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID), 4);
	if (nic_call(n, c))
		abort();
	n->umem = c->a[0].value;
	n->umem_id = word(&c->a[4], 0);
	call_start(c, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC);
	call_value(c, A(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE), 0, 0);
	call_value(c, A(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE), 8, MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC);
	call_out(c, A(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET), 8);
	call_out(c, A(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH), 4);
	call_out(c, A(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID), 4);
	if (nic_call(n, c))
		abort();
	n->uar = c->a[0].value;
	n->uar_id = word(&c->a[4], 0);
}

/* Creates an object with a firmware command. Returns its number; *handle is its handle. */
static uint32_t make_devx(struct fuzz_nic *n, struct fuzz_call *c, uint16_t opcode,
			  uint64_t *handle)
{
	uint8_t box[BOX_MAX] = { 0 };
	size_t len = box_fill(n, opcode, 0, box);

	call_start(c, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE);
	call_value(c, A(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE), 0, 0);
	call_in(c, A(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN), box, (uint16_t)len);
	call_out(c, A(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT), 16);
	if (nic_call(n, c)) {
		fprintf(stderr, "command %#x: status %#x, syndrome %#x\n", opcode,
			nic_get(c->a[2].data, OUT_STATUS), nic_get(c->a[2].data, OUT_SYNDROME));
		abort();
	}
	*handle = c->a[0].value;
	return nic_get(c->a[2].data, OUT_FLOW_COUNTER); /* 32 bits; other numbers have 24 or 8 */
}

void nic_make_objects(struct fuzz_nic *n)
{
	static struct fuzz_call c;

	make_pd_mr(n, &c);
	make_umem_uar(n, &c);
	n->cqn = make_devx(n, &c, OP_CREATE_CQ, &n->cq);
	n->rmpn = make_devx(n, &c, OP_CREATE_RMP, &n->srq);
	n->qpn = make_devx(n, &c, OP_CREATE_QP, &n->qp);
}

void nic_make_ethernet(struct fuzz_nic *n)
{
	static const uint16_t opcodes[FUZZ_ETH] = {
		[FUZZ_TD] = OP_ALLOC_TD,    [FUZZ_TIS] = OP_CREATE_TIS,
		[FUZZ_SQ] = OP_CREATE_SQ,   [FUZZ_COUNTERS] = OP_ALLOC_Q_COUNTER,
		[FUZZ_RQ] = OP_CREATE_RQ,   [FUZZ_RQT] = OP_CREATE_RQT,
		[FUZZ_TIR] = OP_CREATE_TIR, [FUZZ_FLOW_COUNTER] = OP_ALLOC_FLOW_COUNTER,
	};
	static struct fuzz_call c;
	unsigned i;

	for (i = 0; i < FUZZ_ETH; i++) {
		n->eth[i].opcode = opcodes[i];
		n->eth[i].number = make_devx(n, &c, opcodes[i], &n->eth[i].handle);
	}
}
