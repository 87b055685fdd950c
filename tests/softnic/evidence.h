/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The evidence of --evidence FOLDER, which shows what a NIC saw last: FOLDER/PID.pcapng has its
 * last packets, FOLDER/PID.txt its counters and the states of its queues. Both are complete at any
 * time, so that a process which crashes, hangs or is killed leaves them, too.
 */
#ifndef SOFTNIC_EVIDENCE_H
#define SOFTNIC_EVIDENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct sn_dev;

/* ---- recent.c: the last packets ---- */
/* Creates the file of this process, or continues it. A failure is reported in PID.txt only. */
void sn_recent_open(const char *folder, bool ether);
void sn_recent_add(const struct iovec *parts, int n); /* does nothing without a file */
/* Returns the number of packets since the file was created. *error: errno of its creation, or 0. */
uint64_t sn_recent_count(int *error);

/* ---- describe.c: writes the states of all queue pairs and completion queues (lock held) ---- */
void sn_describe_queues(struct sn_dev *dev, int fd);

/* ---- evidence.c ---- */
/* Removes files of ended processes, the oldest first, if there are too many. Sets dev->snapshot. */
void sn_evidence_begin(struct sn_dev *dev);
/* Writes PID.txt if the evidence was requested (lock held). when: "running", "closed", ... */
void sn_evidence_write(struct sn_dev *dev, const char *when);

#endif
