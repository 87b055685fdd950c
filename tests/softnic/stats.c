/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Reports the counters of the device and of each queue pair, including destroyed ones.
 * Prints the first violation of each kind (all with cfg.trace) and, with cfg.stats, a
 * text at exit. Writes the JSON file of this process, whose violations softnic-run adds
 * up. The code that detects an event increments the counters. softnic.h declares them.
 */
#include "evidence.h"
#include "front.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	bool strict;
	size_t off;
} fields[] = {
#define SN_STAT_ROW(n, s) { #n, s, offsetof(struct sn_stats, n) },
	SN_STATS(SN_STAT_ROW)
#undef SN_STAT_ROW
};

static const struct {
	const char *name;
	size_t off;
} qp_fields[] = {
#define SN_STAT_ROW(n) { #n, offsetof(struct sn_qp_stats, n) },
	SN_QP_STATS(SN_STAT_ROW)
#undef SN_STAT_ROW
};

#define FIELDS	  (sizeof(fields) / sizeof(fields[0]))
#define QP_FIELDS (sizeof(qp_fields) / sizeof(qp_fields[0]))
#define TEXT_QPS  64u /* queue pairs listed in the text; the JSON file lists all */

static uint64_t at(const void *st, size_t off)
{
	return *(const uint64_t *)((const char *)st + off);
}

static uint64_t field_value(const struct sn_stats *st, size_t i)
{
	return at(st, fields[i].off);
}

/* ---- queue pairs ---- */

static void record(struct sn_qp_record *r, const struct sn_qp *qp)
{
	*r = (struct sn_qp_record){ .qpn = qp->qpn,
				    .dest_qpn = qp->dest_qpn,
				    .type = qp->type,
				    .stats = qp->stats };
}

bool sn_stats_grow(void **array, uint32_t n, size_t size)
{
	void *p;

	if (n >= SN_GONE_MAX)
		return false;
	if (n & (n - 1)) /* the array is doubled when n is a power of two */
		return true;
	p = realloc(*array, (n ? 2 * n : 1) * size);
	if (p)
		*array = p;
	return p;
}

void sn_stats_qp_gone(struct sn_dev *dev, const struct sn_qp *qp)
{
	void *records = dev->gone;

	if (qp->eth) {
		sn_stats_eth_gone(dev, qp);
		return;
	}
	if (!qp->stats.rx_packets && !qp->stats.wqes)
		return;
	if (!sn_stats_grow(&records, dev->ngone, sizeof(*dev->gone))) {
		dev->gone_unlisted++;
		return;
	}
	dev->gone = records;
	record(&dev->gone[dev->ngone++], qp);
}

struct qp_report {
	void (*one)(struct qp_report *r, const struct sn_qp_record *qp);
	FILE *f; /* JSON */
	int fd;	 /* text */
	unsigned n;
};

static void report_live(struct sn_qp *qp, void *arg)
{
	struct qp_report *r = arg;
	struct sn_qp_record now;

	if (qp->eth) /* SQs and RQs: stats_eth.c */
		return;
	record(&now, qp);
	r->one(r, &now);
}

static void each_qp(struct sn_dev *dev, struct qp_report *r)
{
	uint32_t i;

	for (i = 0; i < dev->ngone; i++)
		r->one(r, &dev->gone[i]);
	sn_for_each_qp(dev, report_live, r);
}

static const char *type_name(enum sn_qp_type type)
{
	return type == SN_QPT_RC ? "RC" : type == SN_QPT_UC ? "UC" : "UD";
}

static void qp_json(struct qp_report *r, const struct sn_qp_record *qp)
{
	size_t i;

	fprintf(r->f, "%s\n  {\"qpn\": %u, \"dest_qpn\": %u, \"type\": \"%s\"", r->n++ ? "," : "",
		qp->qpn, qp->dest_qpn, type_name(qp->type));
	for (i = 0; i < QP_FIELDS; i++)
		fprintf(r->f, ", \"%s\": %" PRIu64, qp_fields[i].name,
			at(&qp->stats, qp_fields[i].off));
	fputc('}', r->f);
}

static void qp_text(struct qp_report *r, const struct sn_qp_record *qp)
{
	char line[1024];
	size_t i, n;

	if (r->n++ >= TEXT_QPS)
		return;
	n = snprintf(line, sizeof(line), "  qp 0x%x %s to 0x%x:", qp->qpn, type_name(qp->type),
		     qp->dest_qpn);
	for (i = 0; i < QP_FIELDS && n < sizeof(line); i++)
		if (at(&qp->stats, qp_fields[i].off))
			n += snprintf(line + n, sizeof(line) - n, " %s %" PRIu64, qp_fields[i].name,
				      at(&qp->stats, qp_fields[i].off));
	dprintf(r->fd, "%s\n", line);
}

/* ---- the device ---- */

static uint64_t violations(const struct sn_stats *st)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < FIELDS; i++)
		if (fields[i].strict)
			sum += field_value(st, i);
	return sum;
}

/* Each call writes the whole file anew. The first violation of each kind also calls this function,
 * so that the file has the violation if the process is killed later. */
void sn_stats_save(struct sn_dev *dev)
{
	struct qp_report qps = { .one = qp_json };
	char path[320];
	size_t i;
	FILE *f;

	if (!dev->cfg.stats_dir[0])
		return;
	snprintf(path, sizeof(path), "%s/%d.json", dev->cfg.stats_dir, (int)getpid());
	f = fopen(path, "w");
	if (!f)
		return;
	fprintf(f, "{\"pid\": %d, \"run\": \"%s\", \"violations\": %" PRIu64, (int)getpid(),
		dev->cfg.run, violations(&dev->stats));
	for (i = 0; i < FIELDS; i++)
		fprintf(f, ", \"%s\": %" PRIu64, fields[i].name, field_value(&dev->stats, i));
	fprintf(f, ", \"qps_unlisted\": %u,\n \"qps\": [", dev->gone_unlisted);
	qps.f = f;
	each_qp(dev, &qps);
	fprintf(f, "]");
	sn_stats_eth_json(dev, f);
	fprintf(f, "}\n");
	fclose(f);
}

void sn_violation(uint64_t *counter, const char *fmt, ...)
{
	char line[400];
	va_list ap;

	if (++*counter == 1 || (sn_dev && sn_dev->cfg.trace)) {
		va_start(ap, fmt);
		vsnprintf(line, sizeof(line), fmt, ap);
		va_end(ap);
		sn_message("violation: %s", line);
	}
	if (sn_dev && *counter == 1)
		sn_stats_save(sn_dev);
}

void sn_stats_text(struct sn_dev *dev, int fd)
{
	struct qp_report qps = { .one = qp_text, .fd = fd };
	size_t i;

	for (i = 0; i < FIELDS; i++)
		if (field_value(&dev->stats, i))
			dprintf(fd, "  %-22s %" PRIu64 "\n", fields[i].name,
				field_value(&dev->stats, i));
	each_qp(dev, &qps);
	if (qps.n > TEXT_QPS || dev->gone_unlisted)
		dprintf(fd, "  %u more queue pairs not listed\n",
			(qps.n > TEXT_QPS ? qps.n - TEXT_QPS : 0) + dev->gone_unlisted);
	sn_stats_eth_text(dev, fd);
}

/* Threads of the program may still create and destroy objects. */
void sn_stats_report(struct sn_dev *dev)
{
	bool locked = sn_dev_lock_at_exit(dev);

	sn_stats_save(dev);
	sn_evidence_write(dev, "exiting");
	dev->snapshot = NULL; /* this text is the last one */
	if (dev->cfg.stats) {
		sn_message("statistics of %s", dev->cfg.name);
		sn_stats_text(dev, STDERR_FILENO);
	}
	if (locked)
		pthread_mutex_unlock(&dev->lock);
}

const struct sn_stats *sn_stats_get(void)
{
	static const struct sn_stats none;

	return sn_dev ? &sn_dev->stats : &none;
}
