/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Tables of numbers and handles; creation and destruction of objects with their
 * reference counts; destruction of the objects that a closed context leaves. Address
 * handles are created in uverbs_write.c, event files in uverbs_events.c. Callers check
 * the attributes (uverbs_*.c, cmd_*.c) and hold the device's lock, except for
 * sn_objects_live().
 */
#include "eth.h"
#include "front.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PDN_BASE  0x10u
#define CQN_BASE  0x80u
#define QPN_BASE  0x100u
#define SRQN_BASE 0x40u
#define UMEM_BASE 1u
#define MKEY_BASE 0x10u

/* ---- tables ---- */
uint32_t sn_table_add(struct sn_table *t, void *obj)
{
	uint32_t i, idx;

	for (i = 0; i < SN_TABLE_SIZE; i++) {
		/* Round robin, so that a freed number is not reused at once. */
		idx = (t->next + i) % SN_TABLE_SIZE;
		if (t->slot[idx])
			continue;
		t->slot[idx] = obj;
		t->next = idx + 1;
		t->used++;
		return idx;
	}
	return UINT32_MAX;
}

void sn_table_del(struct sn_table *t, uint32_t idx)
{
	t->slot[idx] = NULL;
	t->used--;
}

void *sn_table_get(const struct sn_table *t, uint32_t idx)
{
	return idx < SN_TABLE_SIZE ? t->slot[idx] : NULL;
}

/* ---- handles: 0 means none ---- */
static uint32_t handle_free_slot(struct sn_front *f)
{
	uint32_t i;

	if (f->next_handle == 0)
		f->next_handle = 1;
	if (f->next_handle < SN_HANDLES)
		return f->next_handle++;
	for (i = 1; i < SN_HANDLES; i++)
		if (!f->handles[i].obj)
			return i;
	return 0;
}

uint32_t sn_handle_add(struct sn_dev *dev, struct sn_ctx *ctx, enum sn_kind kind, void *obj)
{
	uint32_t h = handle_free_slot(dev->front);

	if (h) {
		dev->front->handles[h] = (struct sn_handle){ kind, ctx, obj };
		dev->front->live++;
	}
	return h;
}

void *sn_handle_get(struct sn_dev *dev, struct sn_ctx *ctx, uint64_t handle, enum sn_kind kind)
{
	struct sn_handle *h;

	if (handle == 0 || handle >= SN_HANDLES)
		return NULL;
	h = &dev->front->handles[handle];
	return h->obj && h->ctx == ctx && h->kind == kind ? h->obj : NULL;
}

void sn_handle_del(struct sn_dev *dev, uint32_t handle)
{
	memset(&dev->front->handles[handle], 0, sizeof(struct sn_handle));
	dev->front->live--;
	while (dev->front->next_handle > 1 && !dev->front->handles[dev->front->next_handle - 1].obj)
		dev->front->next_handle--;
}

void sn_handle_hide(struct sn_dev *dev, uint32_t handle)
{
	dev->front->handles[handle].kind = SN_PART;
}

uint32_t sn_objects_live(void)
{
	return sn_dev ? sn_dev->front->live : 0;
}

/* ---- look-ups by number ---- */
struct sn_qp *sn_find_qp(struct sn_dev *dev, uint32_t qpn)
{
	return sn_table_get(&dev->front->qps, qpn - QPN_BASE);
}

struct sn_cq *sn_find_cq(struct sn_dev *dev, uint32_t cqn)
{
	return sn_table_get(&dev->front->cqs, cqn - CQN_BASE);
}

struct sn_srq *sn_find_srq(struct sn_dev *dev, uint32_t srqn)
{
	return sn_table_get(&dev->front->srqs, srqn - SRQN_BASE);
}

struct sn_mr *sn_find_mr(struct sn_dev *dev, uint32_t key)
{
	struct sn_mr *mr = sn_table_get(&dev->front->mrs, (key >> 8) - MKEY_BASE);

	return mr && mr->lkey == key ? mr : NULL;
}

struct sn_pd *sn_find_pd(struct sn_dev *dev, uint32_t pdn)
{
	return sn_table_get(&dev->front->pds, pdn - PDN_BASE);
}

struct sn_umem *sn_find_umem(struct sn_dev *dev, uint32_t id)
{
	return sn_table_get(&dev->front->umems, id - UMEM_BASE);
}

struct sn_uar *sn_find_uar(struct sn_dev *dev, uint32_t id)
{
	return id < SN_MAX_UARS && dev->uars[id].used ? &dev->uars[id] : NULL;
}

void sn_for_each_qp(struct sn_dev *dev, void (*fn)(struct sn_qp *qp, void *arg), void *arg)
{
	struct sn_table *t = &dev->front->qps;
	uint32_t i, left = t->used;

	for (i = 0; i < SN_TABLE_SIZE && left; i++)
		if (t->slot[i]) {
			left--;
			fn(t->slot[i], arg);
		}
}

int sn_obj_publish(struct sn_dev *dev, struct sn_ctx *ctx, enum sn_kind kind, struct sn_table *t,
		   void *obj, uint32_t *idx, uint32_t *handle)
{
	*idx = sn_table_add(t, obj);
	if (*idx == UINT32_MAX)
		return -ENOMEM;
	*handle = sn_handle_add(dev, ctx, kind, obj);
	if (!*handle) {
		sn_table_del(t, *idx);
		return -ENOMEM;
	}
	return 0;
}

/* ---- protection domains ---- */
struct sn_pd *sn_pd_create(struct sn_dev *dev, struct sn_ctx *ctx)
{
	struct sn_pd *pd = calloc(1, sizeof(*pd));

	if (!pd || sn_obj_publish(dev, ctx, SN_PD, &dev->front->pds, pd, &pd->pdn, &pd->handle)) {
		free(pd);
		return NULL;
	}
	pd->pdn += PDN_BASE;
	return pd;
}

int sn_pd_destroy(struct sn_dev *dev, struct sn_pd *pd)
{
	if (pd->users)
		return -EBUSY;
	sn_table_del(&dev->front->pds, pd->pdn - PDN_BASE);
	sn_handle_del(dev, pd->handle);
	free(pd);
	return 0;
}

static void pd_get(struct sn_dev *dev, uint32_t pdn)
{
	sn_find_pd(dev, pdn)->users++;
}

static void pd_put(struct sn_dev *dev, uint32_t pdn)
{
	struct sn_pd *pd = sn_find_pd(dev, pdn);

	if (pd)
		pd->users--;
}

/* ---- memory ---- */
void sn_unmap(struct sn_mapping *map)
{
	if (map->base)
		munmap(map->base, map->len);
	map->base = NULL;
}

struct sn_mr *sn_mr_create(struct sn_dev *dev, struct sn_ctx *ctx, const struct sn_mr *from)
{
	struct sn_mr *mr = malloc(sizeof(*mr));
	uint32_t idx;

	if (!mr)
		return NULL;
	*mr = *from;
	if (sn_obj_publish(dev, ctx, from->ksm ? SN_MKEY : SN_MR, &dev->front->mrs, mr, &idx,
			   &mr->handle)) {
		free(mr);
		return NULL;
	}
	/* Regions and indirect keys share one table of indices, so their keys never collide. */
	mr->lkey = (idx + MKEY_BASE) << 8 |
		   (from->ksm ? (uint8_t)from->lkey : ++dev->front->mr_variant);
	mr->rkey = mr->lkey;
	pd_get(dev, mr->pdn);
	return mr;
}

void sn_mr_move(struct sn_dev *dev, struct sn_mr *mr, uint32_t pdn)
{
	pd_put(dev, mr->pdn);
	pd_get(dev, pdn);
	mr->pdn = pdn;
}

int sn_mr_destroy(struct sn_dev *dev, struct sn_mr *mr)
{
	pd_put(dev, mr->pdn);
	sn_unmap(&mr->map);
	sn_table_del(&dev->front->mrs, (mr->lkey >> 8) - MKEY_BASE);
	sn_handle_del(dev, mr->handle);
	free(mr->ksm);
	free(mr);
	return 0;
}

struct sn_umem *sn_umem_create(struct sn_dev *dev, struct sn_ctx *ctx, const struct sn_umem *from)
{
	struct sn_umem *u = malloc(sizeof(*u));

	if (u)
		*u = *from;
	if (!u || sn_obj_publish(dev, ctx, SN_UMEM, &dev->front->umems, u, &u->id, &u->handle)) {
		free(u);
		return NULL;
	}
	u->id += UMEM_BASE;
	return u;
}

int sn_umem_destroy(struct sn_dev *dev, struct sn_umem *umem)
{
	if (umem->users)
		return -EBUSY;
	sn_unmap(&umem->map);
	sn_table_del(&dev->front->umems, umem->id - UMEM_BASE);
	sn_handle_del(dev, umem->handle);
	free(umem);
	return 0;
}

static void umem_refs(struct sn_umem *const umems[2], int delta)
{
	int i;

	for (i = 0; i < 2; i++)
		if (umems[i])
			umems[i]->users += delta;
}

/* ---- register pages ---- */

/* Returns how many UARs one mapping has. A mapping is one page of the kernel. */
static uint32_t uars_per_mapping(const struct sn_dev *dev)
{
	return dev->cfg.page_size / SN_UAR_SIZE;
}

/* Returns the first UAR of an unused mapping; 0: no mapping is left. The first mapping is never
 * used, so that a program that leaves the field uar_page at 0 fails. */
static uint32_t uar_free_mapping(const struct sn_dev *dev)
{
	uint32_t num = uars_per_mapping(dev), mappings = SN_MAX_UARS / num, i, id;

	for (i = 0; i < mappings - 1; i++) {
		id = num * (1 + (dev->front->next_uar + i) % (mappings - 1));
		if (!dev->uars[id].used)
			return id;
	}
	return 0;
}

struct sn_uar *sn_uar_create(struct sn_dev *dev, struct sn_ctx *ctx)
{
	uint32_t num = uars_per_mapping(dev), id = uar_free_mapping(dev), i;
	size_t len = num * SN_UAR_SIZE;
	struct sn_uar *uar = &dev->uars[id];
	uint8_t *page;

	if (!id)
		return NULL;
	page = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, ctx->memfd,
		    (off_t)(SN_UAR_FILE_OFF + (uint64_t)id * SN_UAR_SIZE));
	if (page == MAP_FAILED)
		return NULL;
	uar->handle = sn_handle_add(dev, ctx, SN_UAR, uar);
	if (!uar->handle) {
		munmap(page, len);
		return NULL;
	}
	memset(page, 0, len);
	for (i = 0; i < num; i++) {
		uar[i].id = id + i;
		uar[i].page = page + i * SN_UAR_SIZE;
		memcpy(uar[i].page + SN_UAR_MARK_AT, &(uint64_t){ SN_UAR_MARK }, 8);
		uar[i].users = 0;
		uar[i].used = true;
	}
	dev->front->next_uar = id / num;
	return uar;
}

int sn_uar_destroy(struct sn_dev *dev, struct sn_uar *uar)
{
	uint32_t num = uars_per_mapping(dev), i;

	for (i = 0; i < num; i++)
		if (uar[i].users)
			return -EBUSY;
	sn_handle_del(dev, uar->handle);
	munmap(uar->page, num * SN_UAR_SIZE);
	for (i = 0; i < num; i++) {
		uar[i].used = false;
		uar[i].page = NULL;
	}
	return 0;
}

static void uar_ref(struct sn_dev *dev, uint32_t id, int delta)
{
	struct sn_uar *uar = sn_find_uar(dev, id);

	if (uar)
		uar->users += delta;
}

/* ---- completion queues ---- */
int sn_cq_add(struct sn_dev *dev, struct sn_ctx *ctx, struct sn_cq *cq)
{
	int rc = sn_obj_publish(dev, ctx, SN_CQ, &dev->front->cqs, cq, &cq->cqn, &cq->handle);

	if (rc)
		return rc;
	cq->cqn += CQN_BASE;
	uar_ref(dev, cq->uar, 1);
	umem_refs(cq->umems, 1);
	if (cq->channel)
		cq->channel->users++;
	if (cq->async)
		cq->async->users++;
	sn_eng_cq_add(dev, cq);
	return 0;
}

int sn_cq_destroy(struct sn_dev *dev, struct sn_cq *cq)
{
	if (cq->users)
		return -EBUSY;
	sn_eng_cq_remove(dev, cq);
	sn_devx_unsubscribe(dev, cq, NULL);
	uar_ref(dev, cq->uar, -1);
	umem_refs(cq->umems, -1);
	sn_events_put(dev, cq->channel);
	sn_events_put(dev, cq->async);
	sn_table_del(&dev->front->cqs, cq->cqn - CQN_BASE);
	sn_handle_del(dev, cq->handle);
	free(cq);
	return 0;
}

/* ---- shared receive queues ---- */
int sn_srq_add(struct sn_dev *dev, struct sn_ctx *ctx, struct sn_srq *srq)
{
	int rc = sn_obj_publish(dev, ctx, SN_SRQ, &dev->front->srqs, srq, &srq->srqn, &srq->handle);

	if (rc)
		return rc;
	srq->srqn += SRQN_BASE;
	srq->gpu = sn_mem_is_gpu(srq->buf, 16);
	srq->dbr_gpu = sn_mem_is_gpu(srq->dbr, 4);
	pd_get(dev, srq->pdn);
	umem_refs(srq->umems, 1);
	if (srq->async)
		srq->async->users++;
	return 0;
}

int sn_srq_destroy(struct sn_dev *dev, struct sn_srq *srq)
{
	if (srq->users)
		return -EBUSY;
	sn_devx_unsubscribe(dev, srq, NULL);
	pd_put(dev, srq->pdn);
	umem_refs(srq->umems, -1);
	sn_events_put(dev, srq->async);
	sn_table_del(&dev->front->srqs, srq->srqn - SRQN_BASE);
	sn_handle_del(dev, srq->handle);
	free(srq);
	return 0;
}

/* ---- queue pairs ---- */
static void qp_refs(struct sn_dev *dev, struct sn_qp *qp, int delta)
{
	if (qp->scq)
		qp->scq->users += delta;
	if (qp->rcq)
		qp->rcq->users += delta;
	if (qp->srq)
		qp->srq->users += delta;
	if (qp->async && delta > 0)
		qp->async->users++;
	uar_ref(dev, qp->uar, delta);
	umem_refs(qp->umems, delta);
	if (qp->no_dbr)
		dev->front->no_dbr_qps += (uint32_t)delta;
}

int sn_qp_add(struct sn_dev *dev, struct sn_ctx *ctx, struct sn_qp *qp)
{
	return sn_qp_add_as(dev, ctx, qp, SN_QP);
}

int sn_qp_add_as(struct sn_dev *dev, struct sn_ctx *ctx, struct sn_qp *qp, enum sn_kind kind)
{
	int rc;

	if (dev->cfg.qp_max && dev->front->qps.used >= dev->cfg.qp_max)
		return -ENOMEM;
	rc = sn_obj_publish(dev, ctx, kind, &dev->front->qps, qp, &qp->qpn, &qp->handle);
	if (rc)
		return rc;
	qp->qpn += QPN_BASE;
	rc = sn_eng_qp_add(dev, qp);
	if (rc) {
		sn_table_del(&dev->front->qps, qp->qpn - QPN_BASE);
		sn_handle_del(dev, qp->handle);
		return rc;
	}
	qp_refs(dev, qp, 1);
	pd_get(dev, qp->pdn);
	return 0;
}

int sn_qp_destroy(struct sn_dev *dev, struct sn_qp *qp)
{
	sn_stats_qp_gone(dev, qp);
	sn_eng_qp_remove(dev, qp);
	sn_devx_unsubscribe(dev, qp, NULL);
	qp_refs(dev, qp, -1);
	sn_events_put(dev, qp->async);
	pd_put(dev, qp->pdn);
	sn_table_del(&dev->front->qps, qp->qpn - QPN_BASE);
	sn_handle_del(dev, qp->handle);
	free(qp->eth);
	free(qp);
	return 0;
}

/* ---- address handles ---- */
int sn_ah_destroy(struct sn_dev *dev, struct sn_ah *ah)
{
	pd_put(dev, ah->pd);
	sn_handle_del(dev, ah->handle);
	free(ah);
	return 0;
}

/* ---- objects by kind ---- */
int sn_obj_destroy(struct sn_dev *dev, enum sn_kind kind, void *obj)
{
	switch (kind) {
	case SN_QP:
		return sn_qp_destroy(dev, obj);
	case SN_CQ:
		return sn_cq_destroy(dev, obj);
	case SN_AH:
		return sn_ah_destroy(dev, obj);
	case SN_MKEY:
	case SN_MR:
		return sn_mr_destroy(dev, obj);
	case SN_UMEM:
		return sn_umem_destroy(dev, obj);
	case SN_UAR:
		return sn_uar_destroy(dev, obj);
	case SN_PD:
		return sn_pd_destroy(dev, obj);
	case SN_SRQ:
		return sn_srq_destroy(dev, obj);
	case SN_SQ:
	case SN_RQ:
	case SN_WQ:
		return sn_eth_qp_destroy(dev, obj);
	case SN_TD:
		return sn_td_destroy(dev, obj);
	case SN_TIS:
		return sn_tis_destroy(dev, obj);
	case SN_RQT:
		return sn_rqt_destroy(dev, obj);
	case SN_TIR:
		return sn_tir_destroy(dev, obj);
	case SN_COUNTER_SET:
		return sn_counter_set_destroy(dev, obj);
	case SN_FLOW_COUNTER:
		return sn_flow_counter_destroy(dev, obj);
	case SN_RAW:
		return sn_raw_destroy(dev, obj);
	case SN_IND_TABLE:
		return sn_ind_table_destroy(dev, obj);
	case SN_MATCHER:
		return sn_matcher_destroy(dev, obj);
	case SN_RULE:
		return sn_rule_destroy(dev, obj);
	case SN_COUNTERS:
		return sn_counters_destroy(dev, obj);
	case SN_PART:
		break;
	case SN_COMP_CHANNEL:
	case SN_ASYNC:
	case SN_DEVX_EVENTS:
	case SN_DEVX_OUTPUTS:
		sn_events_free(dev, obj);
		return 0;
	}
	return -EINVAL;
}

/* ---- close of a context ---- */

static void destroy_kind(struct sn_dev *dev, struct sn_ctx *ctx, enum sn_kind kind,
			 uint32_t *destroyed, uint32_t *busy)
{
	struct sn_handle *h;
	uint32_t i;

	for (i = 1; i < dev->front->next_handle; i++) {
		h = &dev->front->handles[i];
		if (!h->obj || h->ctx != ctx || h->kind != kind)
			continue;
		if (sn_obj_destroy(dev, h->kind, h->obj))
			++*busy;
		else
			++*destroyed;
	}
}

/* DEVX objects and the parts of verbs objects may use each other, so that no order is right for
 * all: an object that is still in use is destroyed in a later pass. */
void sn_ctx_destroy_objects(struct sn_dev *dev, struct sn_ctx *ctx)
{
	/* an object is destroyed before the objects that it uses */
	static const enum sn_kind order[] = { SN_RULE, SN_MATCHER, SN_COUNTERS,	 SN_FLOW_COUNTER,
					      SN_RAW,  SN_TIR,	   SN_IND_TABLE, SN_RQT,
					      SN_SQ,   SN_RQ,	   SN_WQ,	 SN_TIS,
					      SN_TD,   SN_QP,	   SN_SRQ,	 SN_COUNTER_SET,
					      SN_CQ,   SN_AH,	   SN_MKEY,	 SN_MR,
					      SN_UMEM, SN_UAR,	   SN_PD };
	static const enum sn_kind files[] = { SN_COMP_CHANNEL, SN_ASYNC, SN_DEVX_EVENTS,
					      SN_DEVX_OUTPUTS };
	uint32_t destroyed, busy;
	size_t k;

	do {
		destroyed = busy = 0;
		for (k = 0; k < sizeof(order) / sizeof(order[0]); k++)
			destroy_kind(dev, ctx, order[k], &destroyed, &busy);
	} while (destroyed && busy);
	sn_ctx_td_put(dev, ctx);
	for (k = 0; k < sizeof(files) / sizeof(files[0]); k++)
		destroy_kind(dev, ctx, files[k], &destroyed, &busy);
}
