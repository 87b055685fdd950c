/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Events that the NIC delivers through file descriptors: completion events with and
 * without moderation, asynchronous events, DEVX events of a CQ and a QP (queued or
 * by eventfd), and asynchronous DEVX queries.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "../lib/vb.h"

/* ---- moderation ---- */

struct rig {
	struct vb v;
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq, *other;
	struct ibv_qp *qp;
};

static void rig_open(struct rig *r)
{
	r->v = vb_open(8192);
	r->ch = ibv_create_comp_channel(r->v.ctx);
	cr_assert(r->ch);
	r->cq = ibv_create_cq(r->v.ctx, 64, NULL, r->ch, 0);
	cr_assert(r->cq);
	r->qp = vb_qp(&r->v, IBV_QPT_RC, r->cq, NULL);
	vb_connect(&r->v, r->qp, r->qp);
}

static void rig_close(struct rig *r)
{
	cr_assert_eq(ibv_destroy_qp(r->qp), 0);
	cr_assert_eq(ibv_destroy_cq(r->cq), 0);
	cr_assert_eq(ibv_destroy_comp_channel(r->ch), 0);
	vb_close(&r->v);
}

/* Sends one message to itself and polls both completions. */
static void message(struct rig *r, uint32_t seen)
{
	cr_assert_eq(vb_recv(&r->v, r->qp, seen, 4096, 64), 0);
	cr_assert_eq(vb_send(&r->v, r->qp, seen, 0, 64), 0);
	cr_assert_eq(vb_wc(r->cq).status | vb_wc(r->cq).status, IBV_WC_SUCCESS);
}

static bool event(struct rig *r, int ms)
{
	struct pollfd p = { .fd = r->ch->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&p, 1, ms) != 1)
		return false;
	cr_assert_eq(ibv_get_cq_event(r->ch, &cq, &context), 0);
	cr_assert_eq(cq, r->cq);
	ibv_ack_cq_events(cq, 1);
	return true;
}

static int moderate(struct rig *r, uint16_t count, uint16_t period)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					   .moderate = { count, period } };

	return ibv_modify_cq(r->cq, &attr);
}

Test(verbs_events, moderation_delays_events)
{
	struct ibv_device_attr_ex dev;
	bool held = false;
	struct rig r;
	uint32_t n;

	rig_open(&r);
	cr_assert_eq(ibv_query_device_ex(r.v.ctx, NULL, &dev), 0);
	cr_assert_geq(dev.cq_mod_caps.max_cq_count, 4);
	cr_assert_geq(dev.cq_mod_caps.max_cq_period, 4000);
	cr_assert_eq(moderate(&r, 1, dev.cq_mod_caps.max_cq_period + 1), EINVAL);
	cr_assert_eq(ibv_req_notify_cq(r.cq, 0), 0);
	message(&r, 1);
	cr_assert(event(&r, 5000), "without moderation, the event must come at once");
	/* The machine may be slow, so one event that comes later than its completion is enough. */
	cr_assert_eq(moderate(&r, 64, dev.cq_mod_caps.max_cq_period), 0);
	for (n = 0; n < 50 && !held; n++) {
		cr_assert_eq(ibv_req_notify_cq(r.cq, 0), 0);
		message(&r, 2);
		usleep(500);
		held = !event(&r, 0);
		cr_assert(!held || event(&r, 5000), "the event must come at the end of the period");
	}
	cr_assert(held);
	cr_assert_eq(ibv_req_notify_cq(r.cq, 0), 0);
	for (n = 0; n < 33; n++)
		message(&r, n);
	cr_assert(event(&r, 5000), "the event must come when the count is reached");
	cr_assert_eq(ibv_req_notify_cq(r.cq, 0), 0);
	message(&r, 3);
	cr_assert_eq(moderate(&r, 0, 0), 0);
	cr_assert(event(&r, 5000), "without moderation, the delayed event must come");
	rig_close(&r);
}

Test(verbs_events, no_event_before_the_first_arm)
{
	struct rig r;

	rig_open(&r);
	message(&r, 1);
	cr_assert_not(event(&r, 20));
	cr_assert_eq(ibv_req_notify_cq(r.cq, 0), 0);
	message(&r, 2);
	cr_assert(event(&r, 5000));
	rig_close(&r);
}

/* ---- asynchronous events ---- */

Test(verbs_events, cq_overrun_and_bad_access_raise_async_events)
{
	struct ibv_async_event ev;
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct ibv_cq *small;
	struct ibv_qp *qp, *peer;
	struct rig r;
	int n;

	rig_open(&r);
	small = ibv_create_cq(r.v.ctx, 3, NULL, NULL, 0);
	cr_assert(small);
	qp = vb_qp(&r.v, IBV_QPT_RC, small, NULL);
	peer = vb_qp(&r.v, IBV_QPT_RC, r.cq, NULL);
	vb_connect(&r.v, qp, peer);
	sge = vb_sge(&r.v, 0, 8);
	wr = (struct ibv_send_wr){ .sg_list = &sge,
				   .num_sge = 1,
				   .opcode = IBV_WR_RDMA_WRITE,
				   .send_flags = IBV_SEND_SIGNALED,
				   .wr.rdma = { (uintptr_t)r.v.mem + 4096, r.v.mr->rkey } };
	for (n = 0; n <= small->cqe + 1; n++)
		cr_assert_eq(ibv_post_send(qp, &wr, &bad), 0);
	cr_assert_eq(vb_async(&r.v, &ev, 5000), IBV_EVENT_CQ_ERR);
	cr_assert_eq(ev.element.cq, small);
	cr_assert_eq(vb_async(&r.v, &ev, 5000), IBV_EVENT_QP_FATAL);
	cr_assert_eq(ev.element.qp, qp);
	wr.wr.rdma.rkey ^= 0xff;
	cr_assert_eq(ibv_post_send(r.qp, &wr, &bad), 0);
	cr_assert_eq(vb_async(&r.v, &ev, 5000), IBV_EVENT_QP_ACCESS_ERR);
	cr_assert_eq(ev.element.qp, r.qp);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert_eq(ibv_destroy_qp(peer), 0);
	cr_assert_eq(ibv_destroy_cq(small), 0);
	rig_close(&r);
}

Test(verbs_events, wrong_file_as_channel_is_refused)
{
	struct ibv_comp_channel *ch, fake;
	struct vb v = vb_open(4096);

	ch = ibv_create_comp_channel(v.ctx);
	cr_assert(ch);
	fake = *ch;
	fake.fd = v.ctx->async_fd;
	cr_assert_null(ibv_create_cq(v.ctx, 4, NULL, &fake, 0),
		       "the file of async events is not a completion channel");
	cr_assert_eq(errno, EBADF);
	fake.fd = v.ctx->cmd_fd;
	cr_assert_null(ibv_create_cq(v.ctx, 4, NULL, &fake, 0));
	cr_assert_eq(errno, EBADF);
	cr_assert_null(ibv_create_cq(v.ctx, 4, NULL, ch, v.ctx->num_comp_vectors));
	cr_assert_eq(ibv_destroy_comp_channel(ch), 0);
	vb_close(&v);
}

/* ---- DEVX ---- */

#define RING   16384
#define CQ_AT  8192
#define DBR_AT 12288

struct devx {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct mlx5dv_devx_uar *uar;
	struct mlx5dv_devx_umem *umem;
	struct mlx5dv_devx_obj *cq, *qp;
	uint32_t *mem, cqn, qpn, eqn, pdn;
};

static void put(uint32_t *box, uint32_t off, uint32_t v)
{
	box[off / 4] = htobe32(be32toh(box[off / 4]) | v);
}

static struct mlx5dv_devx_obj *create(struct devx *d, const uint32_t *in, uint32_t *number)
{
	uint32_t out[4] = { 0 };
	struct mlx5dv_devx_obj *o = mlx5dv_devx_obj_create(d->ctx, in, 0x110, out, sizeof(out));

	cr_assert(o, "refused: status %#x, syndrome %#x", be32toh(out[0]) >> 24, be32toh(out[1]));
	*number = be32toh(out[2]) & 0xffffff;
	return o;
}

/* Creates a CQ of 64 entries and a QP of 16 send slots, with their DBRECs. */
static void devx_queues(struct devx *d)
{
	uint32_t in[0x110 / 4] = { 0 };

	put(in, 0x00, 0x400u << 16);
	put(in, 0x14, d->umem->umem_id);
	put(in, 0x1c, 6u << 24 | d->uar->page_id);
	put(in, 0x24, d->eqn);
	put(in, 0x4c, DBR_AT + 64);
	put(in, 0x54, CQ_AT);
	put(in, 0x58, d->umem->umem_id);
	put(in, 0x5c, 1u << 31);
	d->cq = create(d, in, &d->cqn);
	memset(in, 0, sizeof(in));
	put(in, 0x00, 0x500u << 16);
	put(in, 0x18, 3u << 11);
	put(in, 0x1c, d->pdn);
	put(in, 0x20, 4u << 11);
	put(in, 0x24, d->uar->page_id);
	put(in, 0x28, 0x1234);
	put(in, 0x94, d->cqn);
	put(in, 0xb4, d->cqn);
	put(in, 0xbc, DBR_AT);
	put(in, 0xc4, 3u << 24);
	put(in, 0xe8, 1u << 28);
	put(in, 0xfc, d->umem->umem_id);
	put(in, 0x108, d->umem->umem_id);
	put(in, 0x10c, 1u << 31);
	d->qp = create(d, in, &d->qpn);
}

static void devx_open(struct devx *d)
{
	struct mlx5dv_context_attr attr = { .flags = MLX5DV_CONTEXT_FLAGS_DEVX };
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct mlx5dv_pd dvpd;
	struct mlx5dv_obj obj;
	uint32_t i;

	cr_assert(list && list[0]);
	d->ctx = mlx5dv_open_device(list[0], &attr);
	ibv_free_device_list(list);
	cr_assert(d->ctx);
	d->pd = ibv_alloc_pd(d->ctx);
	d->uar = mlx5dv_devx_alloc_uar(d->ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
	d->mem = aligned_alloc(4096, RING);
	memset(d->mem, 0, RING);
	for (i = 0; i < 64; i++)
		((uint8_t *)d->mem)[CQ_AT + 64 * i + 63] = 0xf1;
	d->umem = mlx5dv_devx_umem_reg(d->ctx, d->mem, RING, IBV_ACCESS_LOCAL_WRITE);
	cr_assert(d->pd && d->uar && d->umem);
	cr_assert_eq(mlx5dv_devx_query_eqn(d->ctx, 0, &d->eqn), 0);
	obj.pd.in = d->pd;
	obj.pd.out = &dvpd;
	cr_assert_eq(mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD), 0);
	d->pdn = dvpd.pdn;
	devx_queues(d);
}

static void devx_close(struct devx *d)
{
	if (d->qp)
		cr_assert_eq(mlx5dv_devx_obj_destroy(d->qp), 0);
	cr_assert_eq(mlx5dv_devx_obj_destroy(d->cq), 0);
	cr_assert_eq(mlx5dv_devx_umem_dereg(d->umem), 0);
	mlx5dv_devx_free_uar(d->uar);
	cr_assert_eq(ibv_dealloc_pd(d->pd), 0);
	cr_assert_eq(ibv_close_device(d->ctx), 0);
	free(d->mem);
}

static int modify(struct devx *d, uint16_t opcode, uint32_t *in)
{
	uint32_t out[4] = { 0 };

	put(in, 0x00, (uint32_t)opcode << 16);
	put(in, 0x08, d->qpn);
	return mlx5dv_devx_obj_modify(d->qp, in, 0x110, out, sizeof(out));
}

static void to_rts(struct devx *d)
{
	uint32_t in[0x110 / 4] = { 0 };
	struct ibv_gid_entry e;
	uint8_t *path;
	uint32_t i;

	put(in, 0x18 + 0x18 + 0x24, 1u << 16); /* port */
	cr_assert_eq(modify(d, 0x502, in), 0);
	memset(in, 0, sizeof(in));
	for (i = 0; !ibv_query_gid_ex(d->ctx, 1, i, &e, 0); i++)
		if (e.gid_type == IBV_GID_TYPE_ROCE_V2 && e.gid.raw[10] == 0xff)
			break;
	put(in, 0x20, 3u << 29 | 30u << 24); /* MTU 1024, messages of up to 2^30 bytes */
	put(in, 0x2c, d->qpn);		     /* peer */
	path = (uint8_t *)in + 0x18 + 0x18;
	put(in, 0x18 + 0x18 + 0x08, i << 16 | 64); /* GID index, hop limit */
	memcpy(path + 0x10, e.gid.raw, 16);
	path[0x26] = 2; /* the peer's MAC address: 02:00 and the IPv4 address */
	memcpy(path + 0x28, e.gid.raw + 12, 4);
	put(in, 0x18 + 0x18 + 0x24, 1u << 16);
	cr_assert_eq(modify(d, 0x503, in), 0);
	memset(in, 0, sizeof(in));
	put(in, 0x18 + 0x18 + 0x08, 14u << 27);
	put(in, 0x88, 7u << 16 | 7u << 13);
	cr_assert_eq(modify(d, 0x504, in), 0);
}

/* Posts a WQE with this opcode and no other segments. */
static void post(struct devx *d, uint32_t n, uint8_t opcode)
{
	uint32_t *wqe = d->mem + 16 * (n % 16);
	uint64_t bell;

	memset(wqe, 0, 64);
	wqe[0] = htobe32(n << 8 | opcode);
	wqe[1] = htobe32(d->qpn << 8 | 1);
	wqe[2] = htobe32(8); /* each WQE makes a CQE */
	__atomic_store_n(&d->mem[DBR_AT / 4 + 1], htobe32(n + 1), __ATOMIC_RELEASE);
	memcpy(&bell, wqe, 8);
	__atomic_store_n((uint64_t *)d->uar->reg_addr, bell, __ATOMIC_RELEASE);
}

static void arm(struct devx *d, uint32_t sn, uint32_t ci)
{
	uint32_t word[2] = { htobe32(sn << 28 | ci), htobe32(d->cqn) };
	uint64_t bell;

	d->mem[DBR_AT / 4 + 17] = word[0];
	memcpy(&bell, word, 8);
	__atomic_store_n((uint64_t *)((uint8_t *)d->uar->base_addr + 0x20), bell, __ATOMIC_RELEASE);
}

static bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1 && p.revents & POLLIN;
}

union event {
	struct mlx5dv_devx_async_event_hdr hdr;
	uint8_t bytes[256];
};

static uint32_t number_of(const union event *ev)
{
	uint32_t n;

	memcpy(&n, ev->bytes + 8 + 0x38, 4);
	return be32toh(n);
}

Test(verbs_events, completion_event_has_its_cookie)
{
	struct mlx5dv_devx_event_channel *ch, *bare;
	uint16_t comp = 0, bad = 0x27;
	union event ev;
	struct devx d;
	int fd;

	devx_open(&d);
	ch = mlx5dv_devx_create_event_channel(d.ctx, 0);
	bare = mlx5dv_devx_create_event_channel(
		d.ctx, MLX5DV_DEVX_CREATE_EVENT_CHANNEL_FLAGS_OMIT_EV_DATA);
	cr_assert(ch && bare);
	fd = eventfd(0, EFD_CLOEXEC);
	cr_assert(mlx5dv_devx_subscribe_devx_event(ch, d.cq, sizeof(bad), &bad, 1));
	cr_assert(mlx5dv_devx_subscribe_devx_event(ch, d.qp, sizeof(comp), &comp, 1));
	cr_assert(mlx5dv_devx_subscribe_devx_event(ch, NULL, sizeof(comp), &comp, 1));
	cr_assert(mlx5dv_devx_subscribe_devx_event_fd(ch, 12345, d.cq, comp));
	cr_assert_eq(mlx5dv_devx_subscribe_devx_event(ch, d.cq, sizeof(comp), &comp, 77), 0);
	cr_assert_eq(mlx5dv_devx_subscribe_devx_event(bare, d.cq, sizeof(comp), &comp, 78), 0);
	cr_assert_eq(mlx5dv_devx_subscribe_devx_event_fd(ch, fd, d.cq, comp), 0);
	to_rts(&d);
	post(&d, 0, 0);
	cr_assert_not(readable(ch->fd, 20), "event although the CQ was not armed");
	arm(&d, 1, 0);
	cr_assert(readable(ch->fd, 5000));
	cr_assert_eq(mlx5dv_devx_get_event(ch, &ev.hdr, sizeof(ev)), 8 + 64);
	cr_assert_eq(ev.hdr.cookie, 77);
	cr_assert_eq(ev.bytes[8 + 1], 0);
	cr_assert_eq(number_of(&ev), d.cqn);
	cr_assert(readable(bare->fd, 5000));
	cr_assert_eq(mlx5dv_devx_get_event(bare, &ev.hdr, sizeof(ev)), 8);
	cr_assert_eq(ev.hdr.cookie, 78);
	cr_assert(readable(fd, 5000));
	arm(&d, 2, 1);
	post(&d, 1, 0);
	cr_assert(readable(ch->fd, 5000), "no second event");
	/* A read returns one event, even if the buffer has room for more. */
	arm(&d, 3, 2);
	post(&d, 2, 0);
	cr_assert(readable(bare->fd, 5000));
	usleep(20000);
	cr_assert_eq(mlx5dv_devx_get_event(ch, &ev.hdr, sizeof(ev)), 8 + 64);
	mlx5dv_devx_destroy_event_channel(bare);
	mlx5dv_devx_destroy_event_channel(ch);
	arm(&d, 0, 3);
	post(&d, 3, 0);
	close(fd);
	devx_close(&d);
}

Test(verbs_events, failed_qp_raises_an_event)
{
	struct mlx5dv_devx_event_channel *ch;
	uint16_t types[2] = { 0x02, 0x05 };
	union event ev;
	struct devx d;

	setenv("SOFTNIC_ERR_AFTER", "1", 1);
	devx_open(&d);
	ch = mlx5dv_devx_create_event_channel(d.ctx, 0);
	cr_assert(ch);
	cr_assert_eq(mlx5dv_devx_subscribe_devx_event(ch, d.qp, sizeof(types), types, 5), 0);
	to_rts(&d);
	post(&d, 0, 0);
	cr_assert(readable(ch->fd, 5000));
	cr_assert_eq(mlx5dv_devx_get_event(ch, &ev.hdr, sizeof(ev)), 8 + 64);
	cr_assert_eq(ev.hdr.cookie, 5);
	cr_assert_eq(ev.bytes[8 + 1], 0x05);
	cr_assert_eq(number_of(&ev), d.qpn);
	mlx5dv_devx_destroy_event_channel(ch);
	devx_close(&d);
}

/* Destroying an object must end the subscription to its events. */
Test(verbs_events, destroyed_object_raises_no_event)
{
	struct mlx5dv_devx_event_channel *ch;
	uint16_t type = 0x05;
	struct devx d;

	devx_open(&d);
	ch = mlx5dv_devx_create_event_channel(d.ctx, 0);
	cr_assert_eq(mlx5dv_devx_subscribe_devx_event(ch, d.qp, sizeof(type), &type, 5), 0);
	cr_assert_eq(mlx5dv_devx_obj_destroy(d.qp), 0);
	d.qp = NULL;
	cr_assert_not(readable(ch->fd, 0));
	mlx5dv_devx_destroy_event_channel(ch);
	devx_close(&d);
}

static int query_later(struct devx *d, struct mlx5dv_devx_cmd_comp *comp, uint32_t number,
		       uint32_t out_len, uint64_t id)
{
	uint32_t in[4] = { htobe32(0x402u << 16), 0, htobe32(number), 0 }; /* QUERY_CQ */

	return mlx5dv_devx_obj_query_async(d->cq, in, sizeof(in), out_len, id, comp);
}

Test(verbs_events, async_query_replies_through_a_file)
{
	struct mlx5dv_devx_cmd_comp *comp;
	union {
		struct mlx5dv_devx_async_cmd_hdr hdr;
		uint32_t words[128];
	} a;
	struct devx d;

	devx_open(&d);
	comp = mlx5dv_devx_create_cmd_comp(d.ctx);
	cr_assert(comp);
	cr_assert_eq(query_later(&d, comp, d.cqn, 0x110, 41), 0);
	cr_assert_eq(query_later(&d, comp, d.cqn, 0x10, 42), 0,
		     "a reply buffer that is too short must not fail the call");
	cr_assert(query_later(&d, comp, d.cqn + 1, 0x110, 43),
		  "a number that is not the handle's must be refused");
	cr_assert(query_later(&d, comp, d.cqn, 1 << 20, 44));
	cr_assert(readable(comp->fd, 5000));
	cr_assert_eq(mlx5dv_devx_get_async_cmd_comp(comp, &a.hdr, sizeof(a)), 0);
	cr_assert_eq(a.hdr.wr_id, 41);
	cr_assert_eq(a.words[2], 0, "wrong status");
	cr_assert_eq(be32toh(a.words[2 + 0x1c / 4]) >> 24 & 31, 6, "wrong size of the CQ");
	cr_assert_eq(mlx5dv_devx_get_async_cmd_comp(comp, &a.hdr, sizeof(a)), 0);
	cr_assert_eq(a.hdr.wr_id, 42);
	cr_assert_eq(be32toh(a.words[2]) >> 24, 0x51);
	cr_assert_not(readable(comp->fd, 0));
	mlx5dv_devx_destroy_cmd_comp(comp);
	devx_close(&d);
}

Test(verbs_events, modified_cq_moderation_is_stored)
{
	uint32_t in[0x60 / 4] = { 0 }, out[0x110 / 4] = { 0 };
	struct devx d;

	devx_open(&d);
	put(in, 0x00, 0x403u << 16);
	put(in, 0x08, d.cqn);
	put(in, 0x0c, 3);
	put(in, 0x20, 100u << 16 | 9);
	cr_assert_eq(mlx5dv_devx_obj_modify(d.cq, in, sizeof(in), out, sizeof(out)), 0);
	memset(in, 0, sizeof(in));
	put(in, 0x00, 0x402u << 16);
	put(in, 0x08, d.cqn);
	cr_assert_eq(mlx5dv_devx_obj_query(d.cq, in, 16, out, sizeof(out)), 0);
	cr_assert_eq(be32toh(out[0x20 / 4]), 100u << 16 | 9);
	cr_assert_eq(be32toh(out[0x24 / 4]) & 0xff, d.eqn);
	devx_close(&d);
}
