/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * 64-bit words in host memory that the CPU and a GPU access, one for each queue pair. The words
 * of one GPU and NIC are packed in pages near the NIC. A page is allocated and mapped for the
 * GPU with its first word. Unmapping it waits for kernels, so it is kept until the GPU or the NIC
 * is closed.
 */
#ifndef GDK_WORDS_H
#define GDK_WORDS_H

#include <pthread.h>

#include "core/gpu/gpu.h"
#include "core/nic/net_dev.h"

/* All words of one purpose. Different purposes do not share pages. */
struct gdk_words {
	struct gdk_words *next; /* in the list of all purposes */
	bool listed;
	pthread_mutex_t lock; /* protects the list of pages and the pages in it */
	struct gdk_word_page *pages;
	const char *what; /* plural, for messages */
};

#define GDK_WORDS_INIT(text) \
	{ \
		.lock = PTHREAD_MUTEX_INITIALIZER, .what = text \
	}

/* One word. */
struct gdk_word {
	struct gdk_word_page *page;
	uint64_t *cpu, *gpu; /* its address for the CPU and for the GPU */
};

/* Allocates a word. It is 0 if its page is new; otherwise it has the last value of its previous
 * owner. */
doca_error_t gdk_word_get(struct gdk_words *words, doca_gpu_t *gpu, struct doca_dev *dev,
			  struct gdk_word *word);
/* Frees the word of a page at this CPU address. */
void gdk_word_put(struct gdk_words *words, struct gdk_word_page *page, const uint64_t *cpu);

#endif
