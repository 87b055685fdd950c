#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Compares the fields of tests/lib/prm_fields.def with the kernel's mlx5_ifc.h, from the
# package linux-headers-*-common. Since Linux 6.12 the header has all fields that the table
# does not mark as newer, so a missing field is a failure. Fields that an older header lacks
# are listed and not compared. Without the header the test is skipped, and fails in CI.
set -u
cd "$(dirname "$0")/.." || exit 2
dir=$(printf '%s\n' /usr/src/linux-headers-*/include/linux/mlx5 | sort -V | tail -n 1)
if [ ! -e "$dir/mlx5_ifc.h" ]; then
	echo "SKIP prm_vs_ifc: no mlx5_ifc.h, install linux-headers-*-common"
	[ "${CI:-}" != true ] || exit 1
	exit 0
fi
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/check.c" <<'C'
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
#define BIT(n) (1 << (n))
#define BIT_ULL(n) (1ull << (n))
#define DECLARE_FLEX_ARRAY(type, name) struct { struct { } no_##name; type name[]; }
#include "mlx5_ifc.h"
#undef BIT
#include "core/prm.h"

#define WIDTH(layout, member) sizeof(((struct mlx5_ifc_##layout##_bits *)0)->member)
#define BIT(layout, member) offsetof(struct mlx5_ifc_##layout##_bits, member)
#define START(field) \
	(PRM_OFFSET(field) * 8 + (PRM_WIDTH(field) == 64 ? 0 : 32 - PRM_LOW_BIT(field) - PRM_WIDTH(field)))
#define FIELD(name, layout, member, bit, bits)                                      \
	checked++;                                                                  \
	if (BIT(layout, member) != START(name) || WIDTH(layout, member) != PRM_WIDTH(name) || \
	    BIT(layout, member) != (bit) || WIDTH(layout, member) != (bits))        \
		bad++, printf("FAIL %s: the kernel has bit 0x%zx, width %zu\n", #name, \
			      BIT(layout, member), WIDTH(layout, member));
#define NESTED(name, layout, member, bit)                                          \
	checked++;                                                                 \
	if (BIT(layout, member) != (name)*8 || BIT(layout, member) != (bit))       \
		bad++, printf("FAIL %s: the kernel has bit 0x%zx\n", #name, BIT(layout, member));
#define NEWER(name, layout, member, bit, bits) \
	printf("newer than the header: %s (%s.%s)\n", #name, #layout, #member);
#define OPCODE(name, opcode) \
	checked++;   \
	if (GDK_CMD_##name != MLX5_CMD_OP_##name) \
		bad++, printf("FAIL opcode %s\n", #name);

int main(void)
{
	int checked = 0, bad = 0;

#include "tests/lib/prm_fields.def"
	GDK_COMMANDS(OPCODE)
	printf("%s prm_vs_ifc: %d compared, %d differ\n", bad ? "FAIL" : "PASS", checked, bad);
	return bad || !checked;
}
C
# mlx5_ifc.h includes kernel headers only for types, which check.c defines: empty files do.
mkdir -p "$tmp/empty"
sed -n 's/^#include <\(.*\)>/\1/p' "$dir"/mlx5_ifc*.h | while read -r h; do
	mkdir -p "$tmp/empty/$(dirname "$h")" && : >"$tmp/empty/$h"
done
compile() {
	LC_ALL=C "${CC:-gcc}" -std=gnu11 -w -I"$tmp/empty" -I"$dir" -I"$tmp" -I. \
		-o "$tmp/check" "$tmp/check.c" 2>"$tmp/errors"
}
mkdir -p "$tmp/tests/lib"
cp tests/lib/prm_fields.def "$tmp/tests/lib/"
if ! compile; then
	version=$(sed -n 's|.*/linux-headers-\([0-9]*\)\.\([0-9]*\).*|\1 \2|p' <<<"$dir")
	if [ "${version% *}" -gt 6 ] || { [ "${version% *}" = 6 ] && [ "${version#* }" -ge 12 ]; }; then
		cat "$tmp/errors"
		exit 1
	fi
	sed -n "s/.*'struct mlx5_ifc_\([a-z0-9_]*\)_bits' has no member named '\([a-z0-9_]*\)'.*/\1 \2/p" \
		"$tmp/errors" | sort -u | while read -r layout member; do
		echo "prm_vs_ifc: this kernel's header lacks $layout.$member"
		sed -i -E "/^(FIELD|NESTED)\([A-Z0-9_]+, $layout, $member,/d" "$tmp/tests/lib/prm_fields.def"
	done
	compile || { cat "$tmp/errors"; exit 1; }
fi
"$tmp/check"
