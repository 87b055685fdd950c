/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Implements the slab allocator of slab.h: a list of slabs under one lock. Allocation and
 * registration also happen under this lock. Callers decide what a unit contains.
 */
#include "umem/slab.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/reclaim.h"
#include "core/gpu/gpu_priv.h"
#include "core/log/log.h"

#define UNITS_MAX 64u
/* Maximum size of a slab in bytes, unless a single unit is larger. Larger slabs would hardly reduce
 * the number of allocations and registrations. */
#define BLOCK_BYTES_MAX ((size_t)4 << 20)

/* Bit i of used: unit i is allocated. Bit i of dirty: unit i was allocated before, so its memory
 * must be formatted before the next use. */
struct slab {
	struct slab *next;
	struct gdk_slab_kind kind;
	void *mem; /* GPU address */
	struct doca_verbs_umem *umem;
	unsigned int num;
	uint64_t used, dirty;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the list and all slabs */
static struct slab *slabs;

static uint64_t all_units(const struct slab *s)
{
	return UINT64_MAX >> (UNITS_MAX - s->num);
}

static bool is_of(const struct slab *s, const struct gdk_slab_kind *k)
{
	return s->kind.gpu == k->gpu && s->kind.dev == k->dev && s->kind.mem == k->mem &&
	       s->kind.ways == k->ways && s->kind.pages == k->pages && s->kind.lines == k->lines &&
	       s->kind.format_cq == k->format_cq && s->kind.cq_at == k->cq_at &&
	       s->kind.cqe_num == k->cqe_num;
}

static size_t unit_bytes(const struct gdk_slab_kind *k)
{
	return k->pages + k->lines;
}

/* ---- registration ---- */

static bool on_gpu(const struct gdk_slab_kind *k)
{
	return k->mem != DOCA_GPU_MEM_TYPE_CPU_GPU && !gdk_gpu_is_host(k->gpu);
}

/* Registers memory with the SDK, by a dmabuf or by its address. */
static doca_error_t sdk_umem(const struct gdk_slab_kind *k, void *ptr, size_t bytes, bool dmabuf,
			     struct doca_verbs_umem **umem)
{
	int fd = (int)DOCA_VERBS_DMABUF_INVALID_FD;
	doca_error_t err = DOCA_SUCCESS;

	if (dmabuf)
		err = doca_gpu_get_dmabuf_fd(k->gpu, ptr, bytes, &fd);
	if (err != DOCA_SUCCESS)
		return err;
	err = doca_verbs_umem_create(k->dev, k->gpu, ptr, bytes, IBV_ACCESS_LOCAL_WRITE, fd, 0,
				     umem);
	if (dmabuf)
		close(fd);
	return err;
}

static doca_error_t create_umem(const struct gdk_slab_kind *k, void *ptr, size_t bytes,
				struct doca_verbs_umem **umem)
{
	doca_error_t err;

	if (!on_gpu(k))
		return doca_verbs_umem_create(k->dev, k->gpu, ptr, bytes, IBV_ACCESS_LOCAL_WRITE,
					      (int)DOCA_VERBS_DMABUF_INVALID_FD, 0, umem);
	if (!k->gpu->sdk)
		return gdk_umem_create_gpu(k->dev, k->gpu, ptr, bytes, k->ways, umem);
	if (k->ways & GDK_UMEM_TRY_DMABUF) {
		err = sdk_umem(k, ptr, bytes, true, umem);
		if (err == DOCA_SUCCESS || !(k->ways & GDK_UMEM_TRY_PEER))
			return err;
	}
	return sdk_umem(k, ptr, bytes, false, umem);
}

/* ---- slabs ---- */

/* Writes the initial content of num units (bytes: their total size) with one fill or copy. */
static doca_error_t format(const struct gdk_slab_kind *k, void *mem, unsigned int num, size_t bytes)
{
	uint8_t *image;
	doca_error_t err;
	unsigned int i;

	if (!k->cqe_num)
		return gdk_gpu_fill(k->gpu, mem, 0, bytes);
	image = calloc(1, bytes);
	if (!image) {
		gdk_err("no memory to initialize %zu bytes of queue memory", bytes);
		return DOCA_ERROR_NO_MEMORY;
	}
	for (i = 0; i < num; i++)
		k->format_cq(image + i * k->pages + k->cq_at, k->cqe_num);
	err = gdk_gpu_write(k->gpu, mem, image, bytes);
	free(image);
	return err;
}

static doca_error_t fill_memory(struct slab *s)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = gdk_align_up(s->num * unit_bytes(&s->kind), page);
	doca_error_t err;
	void *cpu = NULL;

	err = doca_gpu_mem_alloc(s->kind.gpu, bytes, page, s->kind.mem, &s->mem, &cpu);
	if (err != DOCA_SUCCESS)
		return err;
	err = format(&s->kind, s->mem, s->num, bytes);
	if (err == DOCA_SUCCESS)
		err = create_umem(&s->kind, s->mem, bytes, &s->umem);
	if (err != DOCA_SUCCESS)
		(void)doca_gpu_mem_free(s->kind.gpu, s->mem);
	return err;
}

static doca_error_t create(const struct gdk_slab_kind *kind, unsigned int num, struct slab **out)
{
	struct slab *s = calloc(1, sizeof(*s));
	doca_error_t err;

	if (!s) {
		gdk_err("no memory for a slab of queue memory");
		return DOCA_ERROR_NO_MEMORY;
	}
	gdk_reclaim_register(gdk_slab_trim);
	s->kind = *kind;
	s->num = num;
	err = fill_memory(s);
	if (err != DOCA_SUCCESS) {
		free(s);
		return err;
	}
	s->umem->slab = s;
	s->next = slabs;
	slabs = s;
	*out = s;
	return DOCA_SUCCESS;
}

/* Frees a slab. If the NIC refuses to deregister it, the slab stays in the list. */
static void destroy(struct slab *s)
{
	struct slab **at = &slabs;

	if (doca_verbs_umem_destroy(s->umem) != DOCA_SUCCESS)
		return;
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	(void)doca_gpu_mem_free(s->kind.gpu, s->mem);
	free(s);
}

/* Returns the number of units that fit into bytes, but at least 1 and at most UNITS_MAX. */
static unsigned int units_in(const struct gdk_slab_kind *kind, size_t bytes)
{
	size_t num = bytes / unit_bytes(kind);

	return num < 1 ? 1 : num > UNITS_MAX ? UNITS_MAX : (unsigned int)num;
}

/* Returns the number of units of the smallest slab: as many as fit into one page. */
static unsigned int least_units(const struct gdk_slab_kind *kind)
{
	return units_in(kind, (size_t)sysconf(_SC_PAGESIZE));
}

/* Finds a slab with a free unit, or creates one. If that fails, it tries the smallest size. */
static doca_error_t find(const struct gdk_slab_kind *kind, struct slab **out)
{
	unsigned int total = 0, least = least_units(kind), most = units_in(kind, BLOCK_BYTES_MAX);
	doca_error_t err;
	struct slab *s;

	for (s = slabs; s; s = s->next) {
		if (!is_of(s, kind))
			continue;
		if (s->used != all_units(s)) {
			*out = s;
			return DOCA_SUCCESS;
		}
		total += s->num;
	}
	total = total < least ? least : total > most ? most : total;
	err = create(kind, total, out);
	if (err != DOCA_SUCCESS && total > least)
		err = create(kind, least, out);
	return err;
}

/* ---- units ---- */

static uint8_t *pages_of(const struct slab *s, unsigned int i)
{
	return (uint8_t *)s->mem + i * s->kind.pages;
}

static uint8_t *lines_of(const struct slab *s, unsigned int i)
{
	return (uint8_t *)s->mem + s->num * s->kind.pages + i * s->kind.lines;
}

static doca_error_t format_again(const struct slab *s, unsigned int i)
{
	doca_error_t err = DOCA_SUCCESS;

	if (s->kind.pages)
		err = format(&s->kind, pages_of(s, i), 1, s->kind.pages);
	if (err == DOCA_SUCCESS)
		err = gdk_gpu_fill(s->kind.gpu, lines_of(s, i), 0, s->kind.lines);
	return err;
}

static doca_error_t get_locked(const struct gdk_slab_kind *kind, struct gdk_slab_unit *unit)
{
	struct slab *s = NULL;
	doca_error_t err = find(kind, &s);
	unsigned int i;

	if (err != DOCA_SUCCESS)
		return err;
	i = (unsigned int)__builtin_ctzll(~s->used);
	if (s->dirty >> i & 1)
		err = format_again(s, i);
	if (err != DOCA_SUCCESS)
		return err;
	s->used |= 1ull << i;
	s->dirty |= 1ull << i;
	unit->umem = s->umem;
	unit->pages = pages_of(s, i);
	unit->lines = lines_of(s, i);
	return DOCA_SUCCESS;
}

doca_error_t gdk_slab_get(const struct gdk_slab_kind *kind, struct gdk_slab_unit *unit)
{
	doca_error_t err;

	pthread_mutex_lock(&lock);
	err = get_locked(kind, unit);
	pthread_mutex_unlock(&lock);
	return err;
}

/* Returns whether an empty slab can be freed: it is larger than the smallest size, or there is
 * another empty slab of its kind. */
static bool is_spare(const struct slab *s)
{
	const struct slab *other;

	if (s->num > least_units(&s->kind))
		return true;
	for (other = slabs; other; other = other->next)
		if (other != s && !other->used && is_of(other, &s->kind))
			return true;
	return false;
}

void gdk_slab_put(struct doca_verbs_umem *umem, void *ptr)
{
	struct slab *s = umem->slab;
	size_t stride = s->kind.pages ? s->kind.pages : s->kind.lines;

	pthread_mutex_lock(&lock);
	s->used &= ~(1ull << ((uint8_t *)ptr - (uint8_t *)s->mem) / (ptrdiff_t)stride);
	if (!s->used && is_spare(s))
		destroy(s);
	pthread_mutex_unlock(&lock);
}

void gdk_slab_trim(const doca_gpu_t *gpu, const struct doca_dev *dev)
{
	struct slab *s, *next;

	pthread_mutex_lock(&lock);
	for (s = slabs; s; s = next) {
		next = s->next;
		if (!s->used && (s->kind.gpu == gpu || s->kind.dev == dev))
			destroy(s);
	}
	pthread_mutex_unlock(&lock);
}
