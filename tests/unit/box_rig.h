/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * For tests of what the library passes to libmlx5 when it creates an object. The functions of
 * libmlx5 that take firmware commands, umems, UARs and flow rules are replaced by functions that
 * record their arguments and call the originals. BOX() compares the last command of an opcode
 * with a table of its fields, completely: bits that no row has must be 0. The values in a table
 * are numbers, not constants of the library.
 */
#ifndef BOX_RIG_H
#define BOX_RIG_H

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdbool.h>
#include <string.h>

#include "../../core/nic/prm.h"

#define BOX_BYTES 0x400 /* bytes of the longest command */
#define BOXES_MAX 64u

struct box_field {
	uint32_t field;
	uint64_t value;
	const char *name;
};

struct box_flow {
	struct mlx5dv_flow_matcher_attr matcher;
	uint8_t mask[PRM_FTE_LYR_2_4_LEN], value[PRM_FTE_LYR_2_4_LEN];
	size_t mask_len, value_len, num_actions;
	struct mlx5dv_flow_action_attr actions[4];
};

/* What was recorded, in the order of the calls. */
static struct {
	struct {
		uint32_t opcode, number; /* number: of the new object */
		size_t len;
		uint8_t in[BOX_BYTES];
	} box[BOXES_MAX];
	uint32_t num_boxes;
	struct mlx5dv_devx_umem_in umem[BOXES_MAX];
	uint32_t num_umems;
	uint32_t uar[BOXES_MAX]; /* flags */
	uint32_t num_uars;
	struct box_flow flow;
} boxes;

/* Flags of UARs: values of MLX5DV_UAR_ALLOC_TYPE_* in mlx5dv.h of rdma-core 44 and, for a
 * dedicated page, of rdma-core 50. */
#define UAR_BF	      0u
#define UAR_NC	      1u
#define UAR_DEDICATED 0x80000000u

/* UARs with these flags are refused: bit 0: BlueFlame, bit 1: non-cached, bit 2: dedicated. In
 * place of a dedicated one, libmlx5 allocates a non-cached one: old versions lack the type. */
static uint32_t box_refused_uars;
/* The reply to ALLOC_Q_COUNTER gets this number of the set; 0: that of the NIC. */
static uint32_t box_counter_set;

static inline void box_clear(void)
{
	memset(&boxes, 0, sizeof(boxes));
}

static inline uint32_t box_keep(const void *in, size_t len)
{
	uint32_t n = boxes.num_boxes++;

	cr_assert(n < BOXES_MAX && len <= BOX_BYTES, "command %u of %zu bytes", n, len);
	boxes.box[n].opcode = (uint32_t)prm_get(in, PRM_CMD_OPCODE);
	boxes.box[n].len = len;
	memcpy(boxes.box[n].in, in, len);
	return n;
}

/* ---- functions of libmlx5 ---- */

#define BOX_NEXT(name) \
	do { \
		if (!next) \
			*(void **)&next = dlsym(RTLD_NEXT, #name); \
	} while (0)
#define BOX_RECORD(name, type, first) \
	type name(first, const void *in, size_t inlen, void *out, size_t outlen) \
	{ \
		static type (*next)(first, const void *, size_t, void *, size_t); \
		uint32_t n = box_keep(in, inlen); \
		type ret; \
\
		BOX_NEXT(name); \
		ret = next(obj, in, inlen, out, outlen); \
		boxes.box[n].number = (uint32_t)prm_get(out, PRM_CMD_OUT_OBJECT); \
		if (box_counter_set && prm_get(in, PRM_CMD_OPCODE) == 0x771) \
			prm_set(out, PRM_CMD_OUT_OBJECT, box_counter_set); \
		return ret; \
	}
BOX_RECORD(mlx5dv_devx_obj_create, struct mlx5dv_devx_obj *, struct ibv_context *obj)
BOX_RECORD(mlx5dv_devx_obj_modify, int, struct mlx5dv_devx_obj *obj)
BOX_RECORD(mlx5dv_devx_obj_query, int, struct mlx5dv_devx_obj *obj)

struct mlx5dv_devx_umem *mlx5dv_devx_umem_reg_ex(struct ibv_context *ctx,
						 struct mlx5dv_devx_umem_in *in)
{
	static struct mlx5dv_devx_umem *(*next)(struct ibv_context *, struct mlx5dv_devx_umem_in *);

	BOX_NEXT(mlx5dv_devx_umem_reg_ex);
	cr_assert_lt(boxes.num_umems, BOXES_MAX);
	boxes.umem[boxes.num_umems++] = *in;
	return next(ctx, in);
}

struct mlx5dv_devx_uar *mlx5dv_devx_alloc_uar(struct ibv_context *ctx, uint32_t flags)
{
	static struct mlx5dv_devx_uar *(*next)(struct ibv_context *, uint32_t);

	BOX_NEXT(mlx5dv_devx_alloc_uar);
	cr_assert_lt(boxes.num_uars, BOXES_MAX);
	boxes.uar[boxes.num_uars++] = flags;
	if (!(box_refused_uars >> (flags > 1 ? 2 : flags) & 1))
		return next(ctx, flags > 1 ? UAR_NC : flags);
	errno = EOPNOTSUPP;
	return NULL;
}

static inline void box_keep_match(const struct mlx5dv_flow_match_parameters *from, uint8_t *to,
				  size_t *len)
{
	*len = from->match_sz;
	cr_assert_leq(*len, PRM_FTE_LYR_2_4_LEN);
	memcpy(to, from->match_buf, *len);
}

struct mlx5dv_flow_matcher *mlx5dv_create_flow_matcher(struct ibv_context *ctx,
						       struct mlx5dv_flow_matcher_attr *attr)
{
	static struct mlx5dv_flow_matcher *(*next)(struct ibv_context *,
						   struct mlx5dv_flow_matcher_attr *);

	BOX_NEXT(mlx5dv_create_flow_matcher);
	memset(&boxes.flow, 0, sizeof(boxes.flow));
	boxes.flow.matcher = *attr;
	box_keep_match(attr->match_mask, boxes.flow.mask, &boxes.flow.mask_len);
	return next(ctx, attr);
}

struct ibv_flow *mlx5dv_create_flow(struct mlx5dv_flow_matcher *matcher,
				    struct mlx5dv_flow_match_parameters *value, size_t num,
				    struct mlx5dv_flow_action_attr actions[])
{
	static struct ibv_flow *(*next)(struct mlx5dv_flow_matcher *,
					struct mlx5dv_flow_match_parameters *, size_t,
					struct mlx5dv_flow_action_attr[]);

	BOX_NEXT(mlx5dv_create_flow);
	box_keep_match(value, boxes.flow.value, &boxes.flow.value_len);
	cr_assert_leq(num, 4);
	boxes.flow.num_actions = num;
	memcpy(boxes.flow.actions, actions, num * sizeof(*actions));
	return next(matcher, value, num, actions);
}

/* ---- comparison ---- */

/* A row of a table: field `field` of the layout that begins at byte `at`, and its value. */
#define F(at, field, value) \
	{ \
		((uint32_t)(at) << 16) + (field), value, #field \
	}

/* Number of the field's most significant bit; bit 0 is that of byte 0. Fields of 64 bits have
 * offset and width only. */
static inline uint32_t box_first_bit(const struct box_field *f)
{
	uint32_t bit = PRM_OFFSET(f->field) * 8, width = PRM_WIDTH(f->field);

	return width == 64 ? bit : bit + 32 - PRM_LOW_BIT(f->field) - width;
}

/* Sets the bits of one row. The loop does not use prm_set(), which the library uses. */
static inline void box_put(uint8_t *box, const struct box_field *f)
{
	uint32_t width = PRM_WIDTH(f->field), bit = box_first_bit(f) + width - 1, i;

	cr_assert(width == 64 || !(f->value >> width), "%s: value 0x%llx is too large", f->name,
		  (unsigned long long)f->value);
	for (i = 0; i < width; i++, bit--)
		if (f->value >> i & 1)
			box[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
}

static inline const char *box_name(const struct box_field *f, size_t n, uint32_t bit)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (bit >= box_first_bit(&f[i]) &&
		    bit < box_first_bit(&f[i]) + PRM_WIDTH(f[i].field))
			return f[i].name;
	return "bits that the table does not have";
}

/* Expects the bytes that the rows describe, and reports each field that differs. */
static inline void box_compare(int line, const uint8_t *got, size_t len, const struct box_field *f,
			       size_t n)
{
	uint8_t want[BOX_BYTES] = { 0 };
	const char *name, *last = NULL;
	size_t i;

	for (i = 0; i < n; i++)
		box_put(want, &f[i]);
	for (i = 0; i < len * 8; i++) {
		if (!((got[i / 8] ^ want[i / 8]) << i % 8 & 0x80))
			continue;
		name = box_name(f, n, (uint32_t)i);
		cr_expect(name == last, "line %d: %s differ: word 0x%zx is 0x%08x, expected 0x%08x",
			  line, name, i / 32 * 4,
			  (unsigned int)prm_get(got, PRM(i / 32 * 4, 31, 0)),
			  (unsigned int)prm_get(want, PRM(i / 32 * 4, 31, 0)));
		last = name;
	}
}

#define BOX_ROWS(...) \
	(const struct box_field[]){ __VA_ARGS__ }, \
		sizeof((const struct box_field[]){ __VA_ARGS__ }) / sizeof(struct box_field)

/* Index of the last command with the opcode. */
static inline uint32_t box_last(uint32_t opcode)
{
	uint32_t i = boxes.num_boxes;

	while (i-- && boxes.box[i].opcode != opcode)
		;
	cr_assert(i < BOXES_MAX, "no command 0x%x", opcode);
	return i;
}

/* Number of the object that the last command with the opcode created. */
static inline uint32_t box_number(uint32_t opcode)
{
	return boxes.box[box_last(opcode)].number;
}

/* Expects that the last command with the opcode has `bytes` bytes with these fields. */
#define BOX(opcode, bytes, ...) \
	box_expect(__LINE__, opcode, bytes, BOX_ROWS(F(0, PRM_CMD_OPCODE, opcode), __VA_ARGS__))

static inline void box_expect(int line, uint32_t opcode, size_t bytes, const struct box_field *f,
			      size_t n)
{
	uint32_t i = box_last(opcode);

	cr_expect_eq(boxes.box[i].len, bytes, "line %d: command 0x%x has 0x%zx bytes", line, opcode,
		     boxes.box[i].len);
	box_compare(line, boxes.box[i].in, boxes.box[i].len, f, n);
}

/* Expects the last umem: registered by its address, or by a dmabuf with `addr` as the offset in it.
 * A page of 4096 bytes lets rings begin on each multiple of 64 bytes. */
static inline void box_umem(int line, const void *addr, size_t size, uint32_t access, bool dmabuf)
{
	const struct mlx5dv_devx_umem_in *u = &boxes.umem[boxes.num_umems - 1];

	cr_assert(boxes.num_umems, "line %d: no umem", line);
	cr_expect_eq(u->addr, addr, "line %d: address %p", line, u->addr);
	cr_expect_eq(u->size, size, "line %d: %zu bytes", line, u->size);
	cr_expect_eq(u->access, access, "line %d: access 0x%x", line, u->access);
	cr_expect_eq(u->pgsz_bitmap, 4096, "line %d: pages 0x%llx", line,
		     (unsigned long long)u->pgsz_bitmap);
	cr_expect_eq(u->comp_mask, dmabuf ? 1 : 0, "line %d: mask 0x%llx", line,
		     (unsigned long long)u->comp_mask);
}
#define UMEM(addr, size, access, dmabuf) box_umem(__LINE__, addr, size, access, dmabuf)

/* Expects that UARs with these flags were requested, in this order, and no others. */
#define UARS(...) \
	box_uars(__LINE__, (const uint32_t[]){ __VA_ARGS__ }, \
		 sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

static inline void box_uars(int line, const uint32_t *flags, uint32_t n)
{
	uint32_t i;

	cr_expect_eq(boxes.num_uars, n, "line %d: %u UARs", line, boxes.num_uars);
	for (i = 0; i < n && i < boxes.num_uars; i++)
		cr_expect_eq(boxes.uar[i], flags[i], "line %d: UAR %u has flags 0x%x", line, i,
			     boxes.uar[i]);
}

#endif
