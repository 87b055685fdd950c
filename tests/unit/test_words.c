/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Words of the host for GPU threads (core/gpu/words.h): each word has one owner, pages with room
 * are used before others, and empty ones are used again until GPU or NIC is closed.
 */
#include "../../core/gpu/words.h"
#include "../lib/nic.h"

#define PAGE 512u /* words */

static struct gdk_words words = GDK_WORDS_INIT("words of a test");
static struct nic nic;
static doca_gpu_t *gpu;

static void open_all(void)
{
	nic = nic_open();
	cr_assert_eq(doca_gpu_create("host", &gpu), DOCA_SUCCESS);
}

/* Criterion does not count assertions of a teardown. */
static void close_all(void)
{
	if (doca_gpu_destroy(gpu) || doca_verbs_dev_close(nic.dev) || words.pages)
		abort();
	ibv_dealloc_pd(nic.pd);
	ibv_close_device(nic.ctx);
}

TestSuite(words, .init = open_all, .fini = close_all);

static struct gdk_word get(void)
{
	struct gdk_word w;

	cr_assert_eq(gdk_word_get(&words, gpu, nic.dev, &w), DOCA_SUCCESS);
	cr_expect_eq(w.cpu, w.gpu, "host GPU: one address");
	return w;
}

static void put(const struct gdk_word *w)
{
	gdk_word_put(&words, w->page, w->cpu);
}

/* All words of a page, in order, and one of a second page. */
Test(words, each_has_one_owner)
{
	struct gdk_word w[PAGE + 1];
	uint32_t i;

	for (i = 0; i < PAGE; i++) {
		w[i] = get();
		cr_expect_eq(*w[i].cpu, 0);
		cr_expect_eq(w[i].cpu, w[0].cpu + i);
		cr_expect_eq(w[i].page, w[0].page);
	}
	for (i = 0; i < PAGE; i += 73) {
		put(&w[i]);
		cr_expect_eq(get().cpu, w[i].cpu, "the word that is free");
	}
	w[PAGE] = get();
	cr_expect_neq(w[PAGE].page, w[0].page);
	for (i = 0; i <= PAGE; i++)
		put(&w[i]);
}

Test(words, pages_are_used_again)
{
	struct gdk_word w[PAGE + 1], again;
	uint32_t i;

	for (i = 0; i < PAGE + 1; i++)
		w[i] = get();
	for (i = 0; i < PAGE; i++)
		put(&w[i]);
	again = get();
	cr_expect_eq(again.page, w[PAGE].page, "the page that is not empty");
	put(&again);
	put(&w[PAGE]);
	again = get();
	cr_expect(again.page == w[0].page || again.page == w[PAGE].page, "no third page");
	put(&again);
}
