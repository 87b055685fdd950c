/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The field table of core/nic/prm.h, compared with offsets and widths from independent
 * data (lib/prm_fields.def), and prm_set() and prm_get(), which use the table.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../core/nic/prm.h"
#include "../../core/util.h"

struct field {
	const char *name;
	uint32_t field, first_bit, width;
};

#define FIELD(name, layout, member, bit, bits) { #name, name, bit, bits },
#define NEWER				       FIELD
#define NESTED(name, layout, member, bit)
static const struct field fields[] = {
#include "../lib/prm_fields.def"
};
#undef FIELD
#undef NESTED

#define FIELD(name, layout, member, bit, bits)
#define NESTED(name, layout, member, bit) { #name, name, bit, 0 },
static const struct field nested[] = {
#include "../lib/prm_fields.def"
};

/* Returns the number of a field's first bit; bit 0 is the most significant bit of byte 0. */
static uint32_t first_bit(uint32_t field)
{
	uint32_t bit = PRM_OFFSET(field) * 8;

	return PRM_WIDTH(field) == 64 ? bit : bit + 32 - PRM_LOW_BIT(field) - PRM_WIDTH(field);
}

Test(prm, every_field_has_the_offset_and_width_of_the_data)
{
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(fields); i++) {
		cr_expect_eq(first_bit(fields[i].field), fields[i].first_bit, "%s is at bit 0x%x",
			     fields[i].name, first_bit(fields[i].field));
		cr_expect_eq(PRM_WIDTH(fields[i].field), fields[i].width, "%s has %u bits",
			     fields[i].name, PRM_WIDTH(fields[i].field));
	}
}

Test(prm, every_nested_layout_has_the_offset_of_the_data)
{
	size_t i;

	for (i = 0; i < GDK_ARRAY_SIZE(nested); i++)
		cr_expect_eq(nested[i].field * 8, nested[i].first_bit, "%s has a wrong offset",
			     nested[i].name);
}

/* A field of the header that the data lacks would not be tested, so the test fails. */
Test(prm, every_field_of_the_header_is_in_the_data)
{
	char line[256], name[64];
	size_t i, defined = 0;
	FILE *header = fopen("core/nic/prm.h", "r");

	if (!header)
		cr_skip_test("not run from the source tree");
	while (fgets(line, sizeof(line), header)) {
		bool found = false;

		if (sscanf(line, "#define %63[A-Z0-9_] PRM%*[(6]", name) != 1 ||
		    !(strstr(line, "PRM(0x") || strstr(line, "PRM64(0x")))
			continue;
		defined++;
		for (i = 0; i < GDK_ARRAY_SIZE(fields); i++)
			found = found || !strcmp(name, fields[i].name);
		cr_expect(found, "%s is not in prm_fields.def", name);
	}
	fclose(header);
	cr_expect_eq(defined, GDK_ARRAY_SIZE(fields));
}

/* Reads a field bit by bit, independently of prm_get(). */
static uint64_t slow_get(const uint8_t *box, uint32_t bit, uint32_t width)
{
	uint64_t value = 0;

	for (; width; width--, bit++)
		value = value << 1 | (box[bit / 8] >> (7 - bit % 8) & 1);
	return value;
}

Test(prm, set_writes_the_field_and_nothing_else)
{
	const uint64_t value = 0x9e3779b97f4a7c15;
	uint8_t box[0x200], before[0x200];
	size_t i, byte;
	int fill;

	for (i = 0; i < GDK_ARRAY_SIZE(fields); i++) {
		uint32_t bit = fields[i].first_bit, width = fields[i].width;
		uint64_t mask = width == 64 ? UINT64_MAX : (1ull << width) - 1;

		for (fill = 0; fill <= 0xff; fill += 0xff) {
			memset(box, fill, sizeof(box));
			memset(before, fill, sizeof(before));
			prm_set(box, fields[i].field, value);
			cr_expect_eq(slow_get(box, bit, width), value & mask, "%s: wrong bits",
				     fields[i].name);
			cr_expect_eq(prm_get(box, fields[i].field), value & mask,
				     "%s: wrong value read", fields[i].name);
			prm_set(box, fields[i].field, fill ? UINT64_MAX : 0);
			for (byte = 0; byte < sizeof(box); byte++)
				cr_assert_eq(box[byte], before[byte], "%s changed byte %zu",
					     fields[i].name, byte);
		}
	}
}

/*
 * Defect of NVIDIA's library: it sets the 1-bit field cd_master with a 64-bit
 * store, which also sets next_rcv_psn to 1.
 */
Test(prm, defect_24_cd_master_leaves_next_rcv_psn)
{
	uint8_t qpc[PRM_QPC_LEN] = { 0 };

	prm_set(qpc, PRM_QPC_CD_MASTER, 1);
	cr_expect_eq(prm_get(qpc, PRM_QPC_CD_MASTER), 1);
	cr_expect_eq(prm_get(qpc, PRM_QPC_NEXT_RCV_PSN), 0);
	cr_expect_eq(qpc[0x93], 1);
}
