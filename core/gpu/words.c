/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Pages of 64-bit words in host memory that the CPU and a GPU access (words.h). */
#include "core/gpu/words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"
#include "core/numa.h"
#include "core/reclaim.h"

#define PAGE_WORDS 512u
#define PAGE_BYTES (PAGE_WORDS * sizeof(uint64_t))

/* Bit i of used: word i is allocated. count: number of allocated words. */
struct gdk_word_page {
	struct gdk_word_page *next;
	doca_gpu_t *gpu;
	struct doca_dev *dev;
	struct gdk_host_block mem;
	uint64_t *cpu, *gpu_ptr; /* addresses of mem for CPU and GPU */
	uint64_t used[PAGE_WORDS / 64];
	unsigned int count;
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* taken before the lock of words */
static struct gdk_words *list;

static doca_error_t page_create(const char *what, doca_gpu_t *gpu, struct doca_dev *dev,
				struct gdk_word_page **out)
{
	struct gdk_word_page *page = calloc(1, sizeof(*page));
	doca_error_t err = DOCA_ERROR_NO_MEMORY;
	int sys_err = ENOMEM;

	if (page)
		sys_err = gdk_host_alloc(&page->mem, PAGE_BYTES, PAGE_BYTES, dev->numa_node);
	if (sys_err) {
		gdk_err("cannot allocate a page of %s for GPU %s: %s", what, gdk_gpu_name(gpu),
			strerror(sys_err));
		goto err_free;
	}
	page->gpu = gpu;
	page->dev = dev;
	page->cpu = page->mem.addr;
	err = gdk_gpu_map_host(gpu, page->cpu, page->mem.map_len, (void **)&page->gpu_ptr);
	if (err != DOCA_SUCCESS) {
		gdk_err("cannot map a page of %s for GPU %s", what, gdk_gpu_name(gpu));
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

static void page_destroy(struct gdk_word_page *page)
{
	(void)gdk_gpu_unmap_host(page->gpu, page->cpu);
	gdk_host_free(&page->mem);
	free(page);
}

/* Frees the pages of a GPU or a NIC that have no words. */
static void trim(struct gdk_words *words, const doca_gpu_t *gpu, const struct doca_dev *dev)
{
	struct gdk_word_page **p = &words->pages, *page;

	pthread_mutex_lock(&words->lock);
	while (*p) {
		page = *p;
		if (page->count || (page->gpu != gpu && page->dev != dev)) {
			p = &page->next;
			continue;
		}
		*p = page->next;
		page_destroy(page);
	}
	pthread_mutex_unlock(&words->lock);
}

static void reclaim(const doca_gpu_t *gpu, const struct doca_dev *dev)
{
	struct gdk_words *words;

	pthread_mutex_lock(&list_lock);
	for (words = list; words; words = words->next)
		trim(words, gpu, dev);
	pthread_mutex_unlock(&list_lock);
}

static void enlist(struct gdk_words *words)
{
	pthread_mutex_lock(&list_lock);
	if (!words->listed) {
		words->listed = true;
		words->next = list;
		list = words;
		gdk_reclaim_register(reclaim);
	}
	pthread_mutex_unlock(&list_lock);
}

static unsigned int page_take(struct gdk_word_page *page)
{
	unsigned int w = 0, bit;

	while (page->used[w] == UINT64_MAX)
		w++;
	bit = (unsigned int)__builtin_ctzll(~page->used[w]);
	page->used[w] |= 1ull << bit;
	page->count++;
	return w * 64 + bit;
}

/* Returns a page that has a free word, if possible one that is not empty. */
static struct gdk_word_page *page_with_room(const struct gdk_words *words, const doca_gpu_t *gpu,
					    const struct doca_dev *dev)
{
	struct gdk_word_page *page, *empty = NULL;

	for (page = words->pages; page; page = page->next) {
		if (page->gpu != gpu || page->dev != dev || page->count == PAGE_WORDS)
			continue;
		if (page->count)
			return page;
		empty = page;
	}
	return empty;
}

doca_error_t gdk_word_get(struct gdk_words *words, doca_gpu_t *gpu, struct doca_dev *dev,
			  struct gdk_word *word)
{
	struct gdk_word_page *page;
	doca_error_t err = DOCA_SUCCESS;
	unsigned int at;

	enlist(words);
	pthread_mutex_lock(&words->lock);
	page = page_with_room(words, gpu, dev);
	if (!page) {
		err = page_create(words->what, gpu, dev, &page);
		if (err == DOCA_SUCCESS) {
			page->next = words->pages;
			words->pages = page;
		}
	}
	if (err == DOCA_SUCCESS) {
		at = page_take(page);
		*word = (struct gdk_word){ page, page->cpu + at, page->gpu_ptr + at };
	}
	pthread_mutex_unlock(&words->lock);
	return err;
}

void gdk_word_put(struct gdk_words *words, struct gdk_word_page *page, const uint64_t *cpu)
{
	const size_t at = (size_t)(cpu - page->cpu);

	pthread_mutex_lock(&words->lock);
	page->used[at / 64] &= ~(1ull << at % 64);
	page->count--;
	pthread_mutex_unlock(&words->lock);
}
