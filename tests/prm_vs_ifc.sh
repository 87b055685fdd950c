#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Compares the fields of tests/lib/prm_fields.def (the library's), of tests/lib/nic_fields.def and
# the capabilities of tests/softnic/cmd_caps.c (the software NIC's) with the kernel's mlx5_ifc.h,
# from the package linux-headers-*-common. Since Linux 6.12 the header has all fields that the table
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
#include "core/nic/prm.h"
#include "tests/softnic/prm_nic.h"

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
#define NIC_START(field) (((field) >> 16) * 8 + 31 - ((field) >> 8 & 0xff))
#define NIC_WIDTH(field) (((field) >> 8 & 0xff) - ((field)&0xff) + 1)
#define NIC_FIELD(name, layout, member, field)                                             \
	checked++;                                                                         \
	if (BIT(layout, member) != NIC_START(field) || WIDTH(layout, member) != NIC_WIDTH(field)) \
		bad++, printf("FAIL %s: the kernel has %s.%s at bit 0x%zx, width %zu\n", name, #layout, \
			      #member, BIT(layout, member), WIDTH(layout, member));
#define NIC_OPCODE(name, other) \
	checked++;              \
	if (OP_##name != MLX5_CMD_OP_##other) \
		bad++, printf("FAIL opcode %s of the software NIC\n", #name);
#define OPCODE(name, opcode) \
	checked++;   \
	if (GDK_CMD_##name != MLX5_CMD_OP_##name) \
		bad++, printf("FAIL opcode %s\n", #name);

int main(void)
{
	int checked = 0, bad = 0;

#include "tests/lib/prm_fields.def"
	GDK_COMMANDS(OPCODE)
#undef FIELD
#define FIELD(name, layout, member, bit, bits)                                           \
	NIC_FIELD(#name, layout, member, name)                                           \
	if (NIC_START(name) != (bit) || NIC_WIDTH(name) != (bits))                       \
		bad++, printf("FAIL %s: not as in nic_fields.def\n", #name);
#include "tests/lib/nic_fields.def"
#undef FIELD
#define FIELD(name, layout, member, field) NIC_FIELD("capability", layout, member, field)
#include "caps.def"
#include "nic_opcodes.def"
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
cp tests/lib/prm_fields.def tests/lib/nic_fields.def "$tmp/tests/lib/"
# A capability is a line with NIC_F(offset, high, low) and a comment that begins with its name, in
# a table or function whose name gives the layout. Not compared: names that only the headers of
# DPDK (marked so) and rdma-core (rts2rts_*) have.
awk 'BEGIN {
		of["general"] = of["general_ib"] = of["general_ethernet"] = of["general_lag"] = "cmd_hca_cap"
		of["fill_general"] = of["fill_ethernet"] = "cmd_hca_cap"
		of["roce"] = "roce_cap"; of["atomic"] = "atomic_caps"
		of["ethernet"] = "per_protocol_networking_offload_caps"
		of["flow_table"] = "flow_table_prop_layout"
		of["match_fields"] = "flow_table_fields_supported"
	}
	match($0, /^static (const struct cap_value|void) [a-z0-9_]+/) {
		n = split(substr($0, 1, RLENGTH), word, " ")
		layout = of[word[n]]
	}
	/^}/ { layout = "" }
	/DPDK/ { next }
	layout && match($0, /NIC_F\([^)]*\)/) {
		field = substr($0, RSTART, RLENGTH)
		if (match($0, /\/\* [a-z][a-z0-9_]*( \*\/|:|$)/)) {
			name = substr($0, RSTART + 3, RLENGTH - 3); sub(/[^a-z0-9_].*/, "", name)
			if (name !~ /^rts2rts_/) print "FIELD(CAP, " layout ", " name ", " field ")"
		}
	}' tests/softnic/cmd_caps.c >"$tmp/caps.def"
# In the header of Linux 6.1, relaxed_ordering_read is the name of what is _pci_enabled today.
grep -q relaxed_ordering_read_pci_enabled "$dir/mlx5_ifc.h" ||
	sed -i -e '/ cmd_hca_cap, relaxed_ordering_read,/d' -e 's/relaxed_ordering_read_pci_enabled/relaxed_ordering_read/' "$tmp/caps.def"
# The kernel abbreviates less than the NIC's opcodes do.
sed -n '/^enum nic_opcode/,/^}/s/^\tOP_\([A-Z0-9_]*\).*/\1/p' tests/softnic/prm_nic.h |
	while read -r op; do
		case $op in
		ALLOC_TD) name=ALLOC_TRANSPORT_DOMAIN ;;
		RST2INIT | INIT2INIT | INIT2RTR | RTR2RTS | RTS2RTS | SQERR2RTS | 2ERR | 2RST) name=${op}_QP ;;
		*) name=$op ;;
		esac
		echo "NIC_OPCODE($op, $name)"
	done >"$tmp/nic_opcodes.def"
if ! compile; then
	version=$(sed -n 's|.*/linux-headers-\([0-9]*\)\.\([0-9]*\).*|\1 \2|p' <<<"$dir")
	if [ "${version% *}" -gt 6 ] || { [ "${version% *}" = 6 ] && [ "${version#* }" -ge 12 ]; }; then
		cat "$tmp/errors"
		exit 1
	fi
	sed -n "s/.*'struct mlx5_ifc_\([a-z0-9_]*\)_bits' has no member named '\([a-z0-9_]*\)'.*/\1 \2/p" \
		"$tmp/errors" | sort -u | while read -r layout member; do
		echo "prm_vs_ifc: this kernel's header lacks $layout.$member"
		sed -i -E "/^(FIELD|NESTED)\([A-Z0-9_ >-]+, $layout, $member,/d" "$tmp"/tests/lib/*.def \
			"$tmp/caps.def"
	done
	compile || { cat "$tmp/errors"; exit 1; }
fi
"$tmp/check"
