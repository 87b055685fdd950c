/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The watch of exported queue pairs: detects doorbells that no CPU thread rings, and waits of GPU
 * threads on a queue pair that is not connected, and logs both. watch.c describes how.
 */
#ifndef GDK_WATCH_H
#define GDK_WATCH_H

#include <stdatomic.h>

#include "core/gpu/words.h"
#include "host/doca_verbs.h"

struct gdk_export;
struct gdk_qp_state;
struct doca_verbs_qp_t;

/* Data of the watch for one exported QP. The members from `next` on are protected by the lock of
 * the list. */
struct gdk_watch {
	struct gdk_word word, rq_word; /* the gdk_watch_word of send queue and receive queue */
	atomic_int state;	       /* enum doca_verbs_qp_state after the last transition */
	atomic_bool in_use;	       /* the caller has the device struct */
	struct gdk_export *next;
	unsigned int listed;	 /* number of the list that contains it; 0: none */
	uint64_t raised, rung;	 /* indices of the last poll: raised by the GPU, rung by the CPU */
	unsigned int idle_polls; /* polls since the CPU rang last, while doorbells were pending */
	uint64_t waited_ns;	 /* gdk_cpu_wait_ns() at the second of these */
	unsigned int unserved;	 /* number of times that doorbells were not served */
	unsigned int refused;	 /* number of waits that ended because the QP was not connected */
	unsigned int late;	 /* number of waits that ended because the CPU had not rung */
};

/* At export: allocates the word. The caller holds qp->lock. Never fails: without a word, only
 * doorbells are watched. */
void gdk_watch_open(struct gdk_export *x);
/* At the end of the export, when the state block is written: begins the watch of doorbells that the
 * CPU rings. */
void gdk_watch_start(struct gdk_export *x);
/* At un-export, before the strategy is detached, and after a failed export: ends the watch. The
 * caller holds qp->lock. */
void gdk_watch_close(struct gdk_export *x);
/* Sets the address of the gdk_watch_word in the image of the state block of a queue. */
void gdk_watch_bind(const struct gdk_export *x, struct gdk_qp_state *image);
/* The caller gets the device struct: GPU threads may use the QP from now on. Begins the watch if
 * the QP is not connected. */
void gdk_watch_use(struct gdk_export *x);
/* Logs it if a wait of a GPU thread has ended the QP since the last report, because the QP was not
 * connected or the CPU had not rung. */
void gdk_watch_report(struct gdk_export *x);

#endif
