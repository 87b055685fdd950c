/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The binary interface: public structs have the size, alignment, field offsets and
 * field sizes that they have in NVIDIA's open-source gpunetio, and public constants
 * have the same values. The expected numbers were measured with gpunetio's headers,
 * not with this library's.
 */
#include <criterion/criterion.h>
#include <stddef.h>

#include "doca_gpunetio_host.h"
#include "common/doca_gpunetio_verbs_dev.h"

struct number {
	const char *what;
	long long got, want;
};

#define SIZE(type, size, align) \
	{ "sizeof " #type, (long long)sizeof(type), size }, \
		{ "alignof " #type, (long long)__alignof__(type), align },
#define FIELD(type, field, off, size) \
	{ "offsetof " #type "." #field, (long long)offsetof(type, field), off }, \
		{ "sizeof " #type "." #field, (long long)sizeof(((type *)0)->field), size },

static const struct number layout[] = {
#include "../lib/peer_layout.def"
};

#define VALUE(name, value) { #name, (long long)(name), value },

static const struct number values[] = {
#include "../lib/peer_values.def"
};

static void check(const struct number *n, size_t count)
{
	for (size_t i = 0; i < count; i++)
		cr_expect_eq(n[i].got, n[i].want, "%s is %lld, in gpunetio %lld", n[i].what,
			     n[i].got, n[i].want);
}

Test(layout, sizes_and_offsets_match_gpunetio)
{
	check(layout, sizeof(layout) / sizeof(layout[0]));
}

Test(layout, constants_match_gpunetio)
{
	check(values, sizeof(values) / sizeof(values[0]));
}

static void inside(size_t off, size_t reserved, size_t size)
{
	cr_expect_geq(off, reserved);
	cr_expect_leq(off + sizeof(void *), reserved + size);
}

/* gdk_state, which gdaki adds to device structs, must be in bytes that gpunetio reserves. */
Test(layout, private_state_lies_in_reserved_bytes)
{
	inside(offsetof(struct doca_gpu_dev_verbs_qp, gdk_state),
	       offsetof(struct doca_gpu_dev_verbs_qp, reserved1),
	       sizeof(((struct doca_gpu_dev_verbs_qp *)0)->reserved1));
	inside(offsetof(struct doca_gpu_dev_verbs_cq, gdk_state),
	       offsetof(struct doca_gpu_dev_verbs_cq, reserved2),
	       sizeof(((struct doca_gpu_dev_verbs_cq *)0)->reserved2));
}
