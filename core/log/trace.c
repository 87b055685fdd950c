/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Writes the command trace; trace.h describes the format. Each record is built in memory and
 * appended with one write(), so that records of several threads and processes do not mix in
 * a regular file. trace_mask.c decides which bytes are hidden.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/log/log.h"
#include "core/log/trace.h"
#include "core/log/trace_mask.h"
#include "core/nic/prm.h"

#define TRACE_VERSION 1
#define ROW_BYTES     16
#define DEVICES_MAX   16

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int trace_fd = -1;
static bool masked;
static uint64_t begun;
static atomic_uint sequence;
static atomic_bool write_failed;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- records ---- */

struct record {
	FILE *f;
	char *text;
	size_t len;
	unsigned int seq;
};

static bool record_begin(struct record *r, const char *kind)
{
	uint64_t t = now_ns() - begun;

	r->f = open_memstream(&r->text, &r->len);
	if (!r->f)
		return false;
	r->seq = atomic_fetch_add(&sequence, 1);
	fprintf(r->f, "%s pid %d seq %u t %" PRIu64 ".%06" PRIu64, kind, (int)getpid(), r->seq,
		t / 1000000000u, t / 1000u % 1000000u);
	return true;
}

static void record_end(struct record *r)
{
	bool bad = ferror(r->f);
	ssize_t written;

	if (fclose(r->f) || bad) {
		free(r->text);
		return;
	}
	written = write(trace_fd, r->text, r->len);
	if (written != (ssize_t)r->len && !atomic_exchange(&write_failed, true))
		gdk_err("GDAKI_TRACE_CMDS: wrote %zd of the %zu bytes of record %u: %s", written,
			r->len, r->seq, written < 0 ? strerror(errno) : "file is full");
	free(r->text);
}

/* ---- start ---- */

/* Returns the file name of the shared library that contains a function. Symbolic links are
 * resolved because the real file name ends in the version of the library. */
static const char *library_of(void *function, char path[PATH_MAX])
{
	const char *slash;
	Dl_info info;

	if (!dladdr(function, &info) || !info.dli_fname || !realpath(info.dli_fname, path))
		return "unknown";
	slash = strrchr(path, '/');
	if (!slash || !strstr(slash, ".so"))
		return "linked-statically";
	return slash + 1;
}

static void write_start(void)
{
	char path[PATH_MAX], utc[32];
	time_t now = time(NULL);
	struct record r;
	struct tm tm;

	if (!record_begin(&r, "start"))
		return;
	gmtime_r(&now, &tm);
	strftime(utc, sizeof(utc), "%Y-%m-%dT%H:%M:%SZ", &tm);
	fprintf(r.f, " version %d time %s masked %d", TRACE_VERSION, utc, masked);
	fprintf(r.f, " libmlx5 %s", library_of((void *)(uintptr_t)mlx5dv_is_supported, path));
	fprintf(r.f, " libibverbs %s\n", library_of((void *)(uintptr_t)ibv_open_device, path));
	record_end(&r);
}

static void open_trace(void)
{
	const char *path = secure_getenv("GDAKI_TRACE_CMDS"), *mask;
	int saved_errno = errno;

	if (!path || !*path)
		return;
	mask = secure_getenv("GDAKI_TRACE_CMDS_MASK");
	masked = mask && *mask && strcmp(mask, "0");
	if (masked && strcmp(mask, "1"))
		gdk_warn("ignoring GDAKI_TRACE_CMDS_MASK=\"%s\" (expected 0 or 1), using 1", mask);
	begun = now_ns();
	trace_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (trace_fd < 0)
		gdk_err("cannot open GDAKI_TRACE_CMDS=%s: %s; firmware commands are not traced",
			path, strerror(errno));
	else
		write_start();
	errno = saved_errno;
}

bool gdk_trace_on(void)
{
	pthread_once(&once, open_trace);
	return trace_fd >= 0;
}

uint64_t gdk_trace_clock(void)
{
	return gdk_trace_on() ? now_ns() : 0;
}

/* ---- names of devices ---- */

static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static char names[DEVICES_MAX][IBV_SYSFS_NAME_MAX];

/* Returns the number of a device in the order of first use, or DEVICES_MAX if the table is full. */
static unsigned int device_number(const char *name)
{
	unsigned int i;

	pthread_mutex_lock(&names_lock);
	for (i = 0; i < DEVICES_MAX && names[i][0] && strcmp(names[i], name); i++)
		;
	if (i < DEVICES_MAX && !names[i][0])
		snprintf(names[i], sizeof(names[i]), "%s", name);
	pthread_mutex_unlock(&names_lock);
	return i;
}

static const char *device_name(struct ibv_context *ctx, char alias[32])
{
	const char *name = ibv_get_device_name(ctx->device);

	if (!masked)
		return name;
	snprintf(alias, 32, "dev%u", device_number(name));
	return alias;
}

/* Removes the device name, and ": " after it, from the start of an object's description. */
static const char *object_name(struct ibv_context *ctx, const char *object)
{
	const char *name = ibv_get_device_name(ctx->device);
	size_t len = strlen(name);

	if (strncmp(object, name, len))
		return object;
	return strncmp(object + len, ": ", 2) ? object + len : object + len + 2;
}

/* ---- commands ---- */

static bool is_zero(const uint8_t *p, size_t len)
{
	return !len || (!*p && !memcmp(p, p + 1, len - 1));
}

static void put_row(FILE *f, const uint8_t *box, const uint8_t *hide, size_t at, size_t len)
{
	size_t i;

	fprintf(f, "  %04zx:", at);
	for (i = 0; i < len; i++) {
		if (!(i % 4))
			fputc(' ', f);
		if (hide[at + i])
			fputs("**", f);
		else
			fprintf(f, "%02x", box[at + i]);
	}
	fputc('\n', f);
}

static void put_box(FILE *f, const char *what, uint32_t opcode, const void *data, size_t len)
{
	bool answer = *what == 'o';
	const uint8_t *box = data;
	uint8_t *hide = calloc(1, len + 1);
	size_t at, row;

	fprintf(f, " %s %zu\n", what, len);
	if (!hide) {
		fprintf(f, "  no memory\n");
		return;
	}
	if (masked)
		gdk_trace_mask(opcode, answer, box, len, hide);
	for (at = 0; at < len; at += ROW_BYTES) {
		row = len - at < ROW_BYTES ? len - at : ROW_BYTES;
		if (!is_zero(box + at, row))
			put_row(f, box, hide, at, row);
	}
	free(hide);
}

void gdk_trace_command(const struct gdk_trace_cmd *cmd)
{
	uint64_t done = now_ns();
	uint32_t op_mod = cmd->in ? (uint32_t)prm_get(cmd->in, PRM_CMD_OP_MOD) : 0;
	struct record r;
	char alias[32];

	if (!gdk_trace_on() || !record_begin(&r, "cmd"))
		return;
	fprintf(r.f, " dev %s %s 0x%x op_mod 0x%x object %s\n", device_name(cmd->ctx, alias),
		cmd->name, cmd->opcode, op_mod, object_name(cmd->ctx, cmd->object));
	if (cmd->in)
		put_box(r.f, "in", cmd->opcode, cmd->in, cmd->inlen);
	if (cmd->out)
		put_box(r.f, "out", cmd->opcode, cmd->out, cmd->outlen);
	fprintf(r.f, " end %u", r.seq);
	if (cmd->out)
		fprintf(r.f, " status 0x%x syndrome 0x%x",
			(unsigned int)prm_get(cmd->out, PRM_CMD_STATUS),
			(unsigned int)prm_get(cmd->out, PRM_CMD_SYNDROME));
	fprintf(r.f, " errno %d us %" PRIu64 "\n", cmd->sys_err, (done - cmd->sent) / 1000u);
	record_end(&r);
}

/* ---- other records ---- */

/* Writes a record of one line. Preserves errno. */
__attribute__((format(printf, 3, 4))) static void fact(struct ibv_context *ctx, const char *kind,
						       const char *fmt, ...)
{
	int saved_errno = errno;
	struct record r;
	char alias[32];
	va_list args;

	if (!record_begin(&r, kind)) {
		errno = saved_errno;
		return;
	}
	if (ctx)
		fprintf(r.f, " dev %s", device_name(ctx, alias));
	va_start(args, fmt);
	vfprintf(r.f, fmt, args);
	va_end(args);
	fputc('\n', r.f);
	record_end(&r);
	errno = saved_errno;
}

/* Formats an address. If addresses are masked, it shows only the offset in a page of 64 KiB, the
 * largest page of a CPU. */
static const char *address(const void *p, char text[32])
{
	if (masked)
		snprintf(text, 32, "**+0x%x", (unsigned int)((uintptr_t)p & 0xffff));
	else
		snprintf(text, 32, "0x%" PRIxPTR, (uintptr_t)p);
	return text;
}

void gdk_trace_device(struct ibv_context *ctx, const struct ibv_device_attr *attr)
{
	if (!gdk_trace_on())
		return;
	fact(ctx, "device", " fw_ver %s vendor_id 0x%x vendor_part_id %u hw_ver 0x%x ports %u",
	     attr->fw_ver, attr->vendor_id, attr->vendor_part_id, attr->hw_ver,
	     attr->phys_port_cnt);
}

void gdk_trace_umem(struct ibv_context *ctx, const struct mlx5dv_devx_umem_in *in, int dmabuf_fd,
		    const struct mlx5dv_devx_umem *umem, int sys_err)
{
	char text[32];

	if (!gdk_trace_on())
		return;
	snprintf(text, sizeof(text), "0x%" PRIxPTR, (uintptr_t)in->addr);
	fact(ctx, "umem",
	     " addr %s size %zu access 0x%x pgsz_bitmap 0x%" PRIx64 " by %s id 0x%x errno %d",
	     dmabuf_fd < 0 ? address(in->addr, text) : text, in->size, in->access, in->pgsz_bitmap,
	     dmabuf_fd < 0 ? "address" : "dmabuf", umem ? umem->umem_id : 0, umem ? 0 : sys_err);
}

void gdk_trace_uar(struct ibv_context *ctx, const char *type, const struct mlx5dv_devx_uar *uar,
		   int sys_err)
{
	static const struct mlx5dv_devx_uar none;
	char reg[32], base[32];

	if (!gdk_trace_on())
		return;
	if (!uar)
		uar = &none;
	else
		sys_err = 0;
	fact(ctx, "uar", " reg %s base %s page_id 0x%x mmap_off 0x%" PRIx64 " errno %d type %s",
	     address(uar->reg_addr, reg), address(uar->base_addr, base), uar->page_id,
	     (uint64_t)uar->mmap_off, sys_err, type);
}

void gdk_trace_eqn(struct ibv_context *ctx, uint32_t vector, uint32_t eqn, int sys_err)
{
	if (gdk_trace_on())
		fact(ctx, "eqn", " vector %u eqn 0x%x errno %d", vector, eqn, sys_err);
}

void gdk_trace_events(struct ibv_context *ctx, bool is_cq, uint32_t number, const uint16_t *types,
		      size_t num_types, int sys_err)
{
	char list[64] = "";
	size_t i, used = 0;

	if (!gdk_trace_on())
		return;
	for (i = 0; i < num_types && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s0x%02x", i ? "," : "",
					 types[i]);
	fact(ctx, "events", " of %s number 0x%x types %s errno %d", is_cq ? "CQ" : "QP", number,
	     list, sys_err);
}

void gdk_trace_sdk(const char *folder)
{
	if (!gdk_trace_on())
		return;
	fact(NULL, "sdk", " commands of its objects are not traced, folder %s",
	     masked ? "**" : folder);
	gdk_warn("GDAKI_TRACE_CMDS: the DOCA SDK in %s sends the commands of its objects: these "
		 "are not traced",
		 folder);
}
