/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The scan set of the CPU proxy (cpu_proxy.h): polls the counters of many queue pairs.
 *
 * GPU threads only increase a counter, so the sum of the eight counters of a cache line
 * changes when one of them does. A pass over idle QPs computes and compares sums only; for eight
 * QPs it reads 64 bytes of counters, an address and the old sum. If a sum has changed, the
 * counters of that line are read one by one, with the ordering that ringing needs.
 *
 * A counter decreases when its QP is reset or the counter is given to another QP. A decrease
 * and an increase can cancel out in the sum. So decreases are counted in gdk_counter_falls, and
 * a pass that sees a new value of gdk_counter_falls reads every counter.
 */
#include <stdlib.h>

#include "core/log/log.h"
#include "doorbell/cpu_proxy.h"

atomic_uint gdk_counter_falls;

static const uint64_t *line_of(const struct gdk_db_qp *x)
{
	return (const uint64_t *)((uintptr_t)x->pub.cpu_db & ~(uintptr_t)63);
}

static unsigned int slot_of(const struct gdk_db_qp *x)
{
	return (unsigned int)(x->pub.cpu_db - line_of(x));
}

static inline uint64_t line_sum(const uint64_t *at)
{
#ifdef __SANITIZE_THREAD__
	uint64_t sum = 0;

	for (unsigned int i = 0; i < GDK_SCAN_SLOTS; i++)
		sum += __atomic_load_n(&at[i], __ATOMIC_RELAXED);
	return sum;
#else
	/* Reads two counters at once. If a read is torn, the next pass sees another sum. */
	typedef uint64_t pair __attribute__((vector_size(16), may_alias));
	const volatile pair *p = (const volatile pair *)at;
	const pair sum = (p[0] + p[1]) + (p[2] + p[3]);

	return sum[0] + sum[1];
#endif
}

static size_t find_line(const struct gdk_scan *s, const struct gdk_db_qp *x)
{
	const uint64_t *at = line_of(x);
	size_t i = 0;

	while (i < s->num_lines && s->line[i].at != at)
		i++;
	return i;
}

bool gdk_scan_has_line(const struct gdk_scan *s, const struct gdk_db_qp *x)
{
	return x->proxy.page && find_line(s, x) < s->num_lines;
}

/* Makes room for one more element of size bytes in *array, which has num elements. */
static bool grow(void *array, size_t num, size_t *max, size_t size)
{
	size_t more = *max ? 2 * *max : 16;
	void *grown;

	if (num < *max)
		return true;
	grown = reallocarray(*(void **)array, more, size);
	if (!grown)
		return false;
	*(void **)array = grown;
	*max = more;
	return true;
}

static bool grow_lines(struct gdk_scan *s)
{
	size_t max = s->max_lines;

	return grow(&s->line, s->num_lines, &max, sizeof(*s->line)) &&
	       grow(&s->member, s->num_lines, &s->max_lines, sizeof(*s->member));
}

static bool add_loose(struct gdk_scan *s, struct gdk_db_qp *x)
{
	if (!grow(&s->loose, s->num_loose, &s->max_loose, sizeof(*s->loose)))
		return false;
	s->loose[s->num_loose++] = x;
	return true;
}

static bool add_to_line(struct gdk_scan *s, struct gdk_db_qp *x)
{
	size_t i = find_line(s, x), k;

	if (i == s->num_lines) {
		if (!grow_lines(s))
			return false;
		s->line[i].at = line_of(x);
		for (k = 0; k < GDK_SCAN_SLOTS; k++)
			s->member[i][k] = NULL;
		s->num_lines++;
	}
	s->member[i][slot_of(x)] = x;
	s->stale = true; /* the counter may have been raised before */
	return true;
}

doca_error_t gdk_scan_add(struct gdk_scan *s, struct gdk_db_qp *x)
{
	if (!(x->proxy.page ? add_to_line(s, x) : add_loose(s, x))) {
		gdk_err("QP 0x%x: no memory to monitor it", x->qpn);
		return DOCA_ERROR_NO_MEMORY;
	}
	s->num++;
	return DOCA_SUCCESS;
}

static void remove_loose(struct gdk_scan *s, const struct gdk_db_qp *x)
{
	size_t i = 0;

	while (s->loose[i] != x)
		i++;
	s->loose[i] = s->loose[--s->num_loose];
}

static void remove_from_line(struct gdk_scan *s, const struct gdk_db_qp *x)
{
	size_t i = find_line(s, x), last, k;

	s->member[i][slot_of(x)] = NULL;
	for (k = 0; k < GDK_SCAN_SLOTS; k++)
		if (s->member[i][k])
			return;
	last = --s->num_lines;
	s->line[i] = s->line[last];
	for (k = 0; k < GDK_SCAN_SLOTS; k++)
		s->member[i][k] = s->member[last][k];
}

void gdk_scan_remove(struct gdk_scan *s, struct gdk_db_qp *x)
{
	if (x->proxy.page)
		remove_from_line(s, x);
	else
		remove_loose(s, x);
	s->num--;
}

struct gdk_db_qp *gdk_scan_any(const struct gdk_scan *s)
{
	struct gdk_db_qp *const *x;

	if (!s->num_lines)
		return s->num_loose ? s->loose[0] : NULL;
	for (x = s->member[0]; !*x; x++)
		;
	return *x;
}

/* Executes one proxy step for a QP. If another thread is executing one for this QP, the next pass
 * reads every counter. */
static unsigned int step_qp(struct gdk_scan *s, struct gdk_db_qp *x)
{
	enum gdk_step step = gdk_proxy_step(x);

	s->stale |= step == GDK_STEP_BUSY;
	return step == GDK_STEP_RANG;
}

/* Reads the counters of a line one by one and rings where needed. The caller computed sum before: a
 * counter that increases after that makes the sum of the next pass differ. */
static unsigned int scan_line(struct gdk_scan *s, size_t i, uint64_t sum)
{
	unsigned int rung = 0, k;

	s->line[i].sum = sum;
	for (k = 0; k < GDK_SCAN_SLOTS; k++) {
		__builtin_prefetch(s->member[i][k]);
		__builtin_prefetch((const char *)s->member[i][k] + 64);
	}
	for (k = 0; k < GDK_SCAN_SLOTS; k++)
		if (s->member[i][k])
			rung += step_qp(s, s->member[i][k]);
	return rung;
}

unsigned int gdk_scan_pass(struct gdk_scan *s)
{
	/* Acquire: pairs with the release in the functions that decrease a counter (attach(),
	 * reset) and then increment gdk_counter_falls. A pass that sees the new value also sees
	 * the decreased counter. */
	unsigned int falls = atomic_load_explicit(&gdk_counter_falls, memory_order_acquire);
	bool all = s->stale || falls != s->falls;
	unsigned int rung = 0;
	uint64_t sum;
	size_t i;

	s->stale = false;
	s->falls = falls;
	for (i = 0; i < s->num_lines; i++) {
		sum = line_sum(s->line[i].at);
		if (__builtin_expect(sum != s->line[i].sum || all, 0))
			rung += scan_line(s, i, sum);
	}
	for (i = 0; i < s->num_loose; i++)
		rung += step_qp(s, s->loose[i]);
	return rung;
}

void gdk_scan_free(struct gdk_scan *s)
{
	free(s->line);
	free(s->member);
	free(s->loose);
}
