/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Strategy "cpu_proxy": GPU threads raise a 64-bit counter in host memory; a CPU thread polls
 * it and writes the DBREC and the doorbell register. The counters of one NIC and GPU are
 * packed, eight in a cache line, in pages near the NIC, so that a thread polls few lines.
 * The CPU thread is a thread of a service (service.c) or the caller of
 * doca_gpu_verbs_cpu_proxy_progress; this file creates no threads.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/numa.h"
#include "doorbell/cpu_proxy.h"
#include "doorbell/mmio.h"

#define PAGE_SLOTS 512u
#define PAGE_BYTES (PAGE_SLOTS * sizeof(uint64_t))

/* A page of counters. Bit i of used: counter i is allocated. count: number of allocated
 * counters. */
struct counter_page {
	struct counter_page *next;
	doca_gpu_t *gpu;
	struct doca_dev *dev;
	struct gdk_host_block mem;
	uint64_t *cpu, *gpu_ptr; /* addresses of mem for CPU and GPU */
	uint64_t used[PAGE_SLOTS / 64];
	unsigned int count;
};

static pthread_mutex_t pages_lock = PTHREAD_MUTEX_INITIALIZER;
static struct counter_page *pages;

static doca_error_t page_create(doca_gpu_t *gpu, struct doca_dev *dev, struct counter_page **out)
{
	struct counter_page *page = calloc(1, sizeof(*page));
	doca_error_t err = DOCA_ERROR_NO_MEMORY;
	int sys_err = ENOMEM;

	if (page)
		sys_err = gdk_host_alloc(&page->mem, PAGE_BYTES, PAGE_BYTES, dev->numa_node);
	if (sys_err) {
		gdk_err("cannot allocate a page of proxy counters for GPU %s: %s",
			gdk_gpu_name(gpu), strerror(sys_err));
		goto err_free;
	}
	page->gpu = gpu;
	page->dev = dev;
	page->cpu = page->mem.addr;
	err = gdk_gpu_map_host(gpu, page->cpu, page->mem.map_len, (void **)&page->gpu_ptr);
	if (err != DOCA_SUCCESS) {
		gdk_err("cannot map a page of proxy counters for GPU %s", gdk_gpu_name(gpu));
		goto err_mem;
	}
	*out = page;
	return DOCA_SUCCESS;

err_mem:
	gdk_host_free(&page->mem);
err_free:
	free(page);
	return err;
}

static void page_destroy(struct counter_page *page)
{
	(void)gdk_gpu_unmap_host(page->gpu, page->cpu);
	gdk_host_free(&page->mem);
	free(page);
}

static unsigned int page_take(struct counter_page *page)
{
	unsigned int w = 0, bit;

	while (page->used[w] == UINT64_MAX)
		w++;
	bit = (unsigned int)__builtin_ctzll(~page->used[w]);
	page->used[w] |= 1ull << bit;
	page->count++;
	return w * 64 + bit;
}

static doca_error_t slot_get(doca_gpu_t *gpu, struct doca_dev *dev, struct counter_page **out,
			     unsigned int *slot)
{
	struct counter_page *page;
	doca_error_t err = DOCA_SUCCESS;

	pthread_mutex_lock(&pages_lock);
	for (page = pages; page; page = page->next)
		if (page->gpu == gpu && page->dev == dev && page->count < PAGE_SLOTS)
			break;
	if (!page) {
		err = page_create(gpu, dev, &page);
		if (err == DOCA_SUCCESS) {
			page->next = pages;
			pages = page;
		}
	}
	if (err == DOCA_SUCCESS) {
		*slot = page_take(page);
		*out = page;
	}
	pthread_mutex_unlock(&pages_lock);
	return err;
}

static void slot_put(struct counter_page *page, unsigned int slot)
{
	struct counter_page **p = &pages;

	pthread_mutex_lock(&pages_lock);
	page->used[slot / 64] &= ~(1ull << slot % 64);
	if (--page->count == 0) {
		while (*p != page)
			p = &(*p)->next;
		*p = page->next;
		page_destroy(page);
	}
	pthread_mutex_unlock(&pages_lock);
}

static doca_error_t probe(const struct gdk_doorbell_ask *ask, enum doca_gpu_dev_verbs_nic_handler h,
			  const char **reason)
{
	(void)h;
	if (ask->dbr_mode == DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_SW_EMULATED) {
		*reason = "the CPU proxy writes the DBREC itself and does not support "
			  "NO_DBR_SW_EMULATED";
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	if (ask->dbr_mode == DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW &&
	    !ask->dev->caps.send_dbr_mode_no_dbr_ext) {
		*reason = "the device does not support DBREC-less QPs (ConnectX-8 or newer does)";
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	if (ask->qp && !ask->qp->no_dbr && !ask->qp->dbrec_cpu) {
		*reason = "the CPU cannot write the memory of the QP's DBREC";
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	*reason = "a CPU thread rings: create a service or call cpu_proxy_progress";
	return DOCA_SUCCESS;
}

static doca_error_t attach(struct gdk_db_qp *x, struct doca_gpu_dev_verbs_qp *dev)
{
	struct counter_page *page;
	unsigned int slot;
	doca_error_t err;

	if (!x->no_dbr && !x->dbrec_cpu) {
		gdk_err("QP 0x%x: cannot use CPU_PROXY: the CPU cannot write the DBREC", x->qpn);
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	err = slot_get(x->pub.gpu_dev, x->dev, &page, &slot);
	if (err != DOCA_SUCCESS)
		return err;
	__atomic_store_n(&page->cpu[slot], 0, __ATOMIC_RELAXED);
	/* Release: orders the store to the counter before this increment. Pairs with the acquire in
	 * gdk_scan_pass(). */
	atomic_fetch_add_explicit(&gdk_counter_falls, 1, memory_order_release);
	x->proxy.slot = page;
	x->pub.cpu_db = &page->cpu[slot];
	x->pub.sq_db = x->reg;
	x->pub.cpu_proxy = true;
	dev->sq_db = &page->gpu_ptr[slot];
	return DOCA_SUCCESS;
}

static void detach(struct gdk_db_qp *x)
{
	struct counter_page *page = x->proxy.slot;

	if (page)
		slot_put(page, (unsigned int)(x->pub.cpu_db - page->cpu));
	x->proxy.slot = NULL;
	x->pub.cpu_db = NULL;
}

/* The caller holds step_lock. Release as in attach(). */
static void reset(struct gdk_db_qp *x)
{
	__atomic_store_n(x->pub.cpu_db, 0, __ATOMIC_RELEASE);
	atomic_fetch_add_explicit(&gdk_counter_falls, 1, memory_order_release);
}

/* Rings if the counter was raised. The caller holds step_lock. */
static bool ring_raised(struct gdk_db_qp *x)
{
	struct doca_gpu_verbs_qp *qp = &x->pub;
	union {
		uint32_t word[2];
		uint64_t reg;
	} db;
	/* Acquire: pairs with the release fence of the GPU thread, which stored the WQEs below pi
	 * before it raised the counter. The stores that follow are ordered after these WQEs. */
	uint64_t pi = __atomic_load_n(qp->cpu_db, __ATOMIC_ACQUIRE), rings;

	if (pi == qp->sq_wqe_pi_last)
		return false;
	db.word[0] = htobe32((uint32_t)(pi << 8));
	db.word[1] = qp->sq_num_shift8_be;
	/* Release: the NIC can read the DBREC at any time, and must see the WQEs below pi if it
	 * sees this value. */
	if (x->dbrec_cpu)
		__atomic_store_n(x->dbrec_cpu, htobe32((uint32_t)(pi & 0xffff)), __ATOMIC_RELEASE);
	gdk_mmio_before_register();
	gdk_mmio_write8(qp->sq_db, db.reg);
	gdk_mmio_flush();
	__atomic_store_n(&qp->sq_wqe_pi_last, pi, __ATOMIC_RELAXED);
	rings = atomic_load_explicit(&x->proxy.rings, memory_order_relaxed);
	atomic_store_explicit(&x->proxy.rings, rings + 1, memory_order_relaxed);
	return true;
}

/* Checks without step_lock whether the counter was raised. A counter in a state block can only be
 * read under the lock, because a reset overwrites the whole block. So the function returns true for
 * it. */
static bool is_raised(const struct gdk_db_qp *x)
{
	return !x->proxy.slot || __atomic_load_n(x->pub.cpu_db, __ATOMIC_RELAXED) !=
					 __atomic_load_n(&x->pub.sq_wqe_pi_last, __ATOMIC_RELAXED);
}

enum gdk_step gdk_proxy_step(struct gdk_db_qp *x)
{
	bool rang;

	if (!is_raised(x))
		return GDK_STEP_NONE;
	if (pthread_spin_trylock(&x->proxy.step_lock))
		return GDK_STEP_BUSY;
	rang = ring_raised(x);
	pthread_spin_unlock(&x->proxy.step_lock);
	return rang ? GDK_STEP_RANG : GDK_STEP_NONE;
}

bool gdk_proxy_drain(struct gdk_db_qp *x)
{
	bool rang;

	pthread_spin_lock(&x->proxy.step_lock);
	rang = ring_raised(x);
	pthread_spin_unlock(&x->proxy.step_lock);
	return rang;
}

doca_error_t doca_gpu_verbs_cpu_proxy_progress(struct doca_gpu_verbs_qp *qp_cpu,
					       bool *out_progressed)
{
	struct gdk_db_qp *x;
	bool rang;

	GDK_CHECK_PTR(qp_cpu);
	x = gdk_to_db_qp(qp_cpu);
	if (!qp_cpu->cpu_proxy) {
		gdk_err("QP 0x%x: no CPU progress for handler %s (expected CPU_PROXY, or "
			"NO_DBR_SW_EMULATED mode)",
			x->qpn, gdk_handler_name(x->decision.chosen));
		return DOCA_ERROR_NOT_SUPPORTED;
	}
	rang = is_raised(x) && gdk_proxy_drain(x);
	if (out_progressed)
		*out_progressed = rang;
	return DOCA_SUCCESS;
}

static const struct gdk_doorbell ops = {
	.name = "cpu_proxy",
	.handlers = 1u << DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY,
	.dbrec_on_host = true,
	.probe = probe,
	.attach = attach,
	.detach = detach,
	.reset = reset,
};

GDK_DOORBELL(cpu_proxy, &ops);
