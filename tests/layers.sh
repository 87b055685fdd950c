#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The layers, lowest first: core; umem, uar; cq; doorbell; qp; doca (qp/doca); rdma, dma, eth (qp/rdma, ...);
# flow (qp/flow). Within qp: verbs, export, high_level. Prints how many symbols each archive takes
# from each other one, and how many includes each folder has of each other one.
# Fails on a symbol or an include from a higher layer, or between umem and uar, on object files or
# includes in a circle, and on an include that does not follow the rule:
#
#   A public header is below a folder include/, and is named by its path there
#   ("host/doca_verbs.h", "device/gdk/wait_dev.h"). A private header is named from the root of
#   the tree ("core/log/log.h").
#
# Then plants one fault of each kind in copies, and fails if it does not find one of them.
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/layers.py" <<'PYTHON'
import collections
import os
import re
import subprocess
import sys

RANK = {"core": 0, "umem": 1, "uar": 1, "cq": 2, "doorbell": 3, "qp": 4, "doca": 5, "rdma": 6, "dma": 6, "eth": 6,
        "flow": 7}
PARTS_OF_QP = ["verbs", "export", "high_level"]  # lowest first
INCLUDE = re.compile(
    r'^[ \t]*#[ \t]*(?:include(?:_next)?|import)\b[ \t]*(?:"([^"]+)"|<([^>]+)>|(.*))', re.M)


def layer_of(archive):
    name = archive[len("libgdaki_"):-len(".a")]
    return "doorbell" if name.startswith("db_") else name


def folder_layer(path):
    part = path.split("/")
    return part[1] if part[0] == "qp" and part[1] in RANK else part[0]


def part_of_qp(path):
    part = path.split("/")[1]
    return PARTS_OF_QP.index(part) if part in PARTS_OF_QP else None


def is_allowed(user, used):
    return user == used or RANK[used] < RANK[user]


def symbols(lib):
    """Undefined symbols as (layer, object, symbol), and where each symbol is defined: (layer, object)."""
    archives = sorted(f for f in os.listdir(lib) if re.match(r"libgdaki_\w+\.a$", f))
    wanted, defined = [], {}
    for archive in archives:
        layer = layer_of(archive)
        text = subprocess.run(["nm", "-A", "-g", os.path.join(lib, archive)], check=True,
                              capture_output=True, text=True).stdout
        for line in text.splitlines():
            where, kind, name = re.match(r"(.*):[0-9a-f ]* (\w) (\S+)$", line).groups()
            if kind in "Uwv":
                wanted.append((layer, os.path.basename(where), name))
            elif name not in defined or RANK[layer] > RANK[defined[name][0]]:
                defined[name] = layer, os.path.basename(where)
    if {layer_of(a) for a in archives} != set(RANK):
        sys.exit("layers.sh: the archives in %s do not match the layers" % lib)
    return wanted, defined


def public_headers(root):
    """The path below include/ of each public header, by its path in the tree."""
    found = {}
    for layer in RANK:
        top = os.path.join(root, "" if RANK[layer] <= RANK["qp"] else "qp", layer, "include")
        for folder, _, files in os.walk(top):
            for name in files:
                path = os.path.join(folder, name)
                found[os.path.relpath(path, root)] = os.path.relpath(path, top)
    return found


def includes(root, public):
    """The files that each file includes, and the lines that break the rule."""
    graph, bad = {}, []
    by_name = {v: k for k, v in public.items()}
    for layer in RANK:
        for folder, _, files in os.walk(os.path.join(root, layer)):
            for name in files:
                path = os.path.relpath(os.path.join(folder, name), root)
                if not re.search(r"\.(c|h|cuh)$", name):
                    if re.search(r"\.(inc|def|cu|cc|cpp|hpp)$", name):
                        bad.append("%s: includes of such a file are not checked" % path)
                    continue
                graph[path] = []
                with open(os.path.join(root, path), encoding="utf-8") as file:
                    text = file.read()
                for inc, system, other in INCLUDE.findall(text):
                    if system and system not in by_name and system.split("/")[0] not in RANK:
                        continue
                    target = by_name.get(inc)
                    private = path not in public and inc not in public and \
                        inc == os.path.normpath(inc) and inc.split("/")[0] in RANK and os.path.exists(os.path.join(root, inc))
                    if inc and (target or private):
                        graph[path].append(target or inc)
                    else:
                        shown = '"%s"' % inc if inc else "<%s>" % system if system else other
                        bad.append("%s: #include %s does not follow the rule" % (path, shown))
    return graph, bad


def find_circle(graph):
    done, trail = set(), []

    def visit(path):
        if path in trail:
            return trail[trail.index(path):] + [path]
        if path in done:
            return None
        trail.append(path)
        for target in graph.get(path, []):
            circle = visit(target)
            if circle:
                return circle
        trail.pop()
        done.add(path)
        return None

    for path in sorted(graph):
        circle = visit(path)
        if circle:
            return circle
    return None


def print_matrix(title, counts):
    print("%-26s" % title + "".join("%9s" % layer for layer in RANK))
    for user in RANK:
        print("%-26s" % ("  " + user) + "".join(
            "%9s" % (counts[user, used] or "-") for used in RANK))


def check_symbols(lib, show):
    """The list of faults of the archives."""
    wanted, defined = symbols(lib)
    counts, bad, graph = collections.Counter(), [], collections.defaultdict(list)
    for layer, where, name in wanted:
        used, source = defined.get(name, (None, None))
        if source and source != where:
            graph[where].append(source)
        if not used or used == layer:
            continue
        counts[layer, used] += 1
        if not is_allowed(layer, used):
            bad.append("%s: %s takes %s from %s" % (layer, where, name, used))
    if show:
        print_matrix("symbols taken from", counts)
    circle = find_circle(graph)
    if circle:
        bad.append("object files in a circle: " + " -> ".join(circle))
    return bad


def check_includes(root, show):
    """The list of faults of the sources."""
    graph, bad = includes(root, public_headers(root))
    counts = collections.Counter()
    for path, targets in graph.items():
        for target in targets:
            user, used = folder_layer(path), folder_layer(target)
            counts[user, used] += 1
            if not is_allowed(user, used):
                bad.append("%s: includes %s, which is in a higher layer or a peer" % (path, target))
            elif user == used == "qp" and None not in (part_of_qp(path), part_of_qp(target)) and \
                    part_of_qp(path) < part_of_qp(target):
                bad.append("%s: includes %s, which is in a higher part of qp" % (path, target))
    if show:
        print_matrix("includes of", counts)
    circle = find_circle(graph)
    if circle:
        bad.append("includes in a circle: " + " -> ".join(circle))
    return bad


def main():
    what, show = sys.argv[1], sys.argv[1] == "all"
    faults = []
    if what in ("all", "symbols"):
        faults += check_symbols(sys.argv[2], show)
    if what in ("all", "includes"):
        faults += check_includes(sys.argv[3], show)
    for fault in faults:
        print("layers.sh: " + fault)
    sys.exit(bool(faults))


main()
PYTHON

check() { python3 "$tmp/layers.py" "$@"; }

check all "$B/lib" . || exit 1

# ---- planted faults ----
bad=0
planted=0
finds() { # symbols or includes, text that the check has to print
	planted=$((planted + 1))
	check "$1" "$tmp/lib" "$tmp/tree" >"$tmp/out" && rc=0 || rc=$?
	[ "$rc" != 0 ] && grep -q -F -e "$2" "$tmp/out" && return
	echo "layers.sh: a planted fault was not found: $2"
	head -n 4 "$tmp/out" | sed 's/^/    /'
	bad=1
}
add_user() { # archive, symbol that an object of it takes
	rm -rf "${tmp:?}/lib"
	mkdir "$tmp/lib"
	ln -s "$(readlink -f "$B/lib")"/libgdaki_*.a "$tmp/lib"
	rm "$tmp/lib/libgdaki_$1.a"
	cp "$B/lib/libgdaki_$1.a" "$tmp/lib"
	echo "void $2(void); void gdk_planted(void) { $2(); }" >"$tmp/planted.c"
	"${CC:-gcc}" -c -o "$tmp/planted.o" "$tmp/planted.c" && ar r "$tmp/lib/libgdaki_$1.a" "$tmp/planted.o"
}
plant_symbol() { # archive, symbol that an object of it takes, layer of the symbol
	add_user "$1" "$2"
	finds symbols "$1: libgdaki_$1.a:planted.o takes $2 from $3"
}
plant_circle() { # archive that gets two objects which refer to each other
	add_user "$1" gdk_planted_too
	echo "void gdk_planted(void); void gdk_planted_too(void); void gdk_planted_too(void) { gdk_planted(); }" >"$tmp/too.c"
	"${CC:-gcc}" -c -o "$tmp/too.o" "$tmp/too.c" && ar r "$tmp/lib/libgdaki_$1.a" "$tmp/too.o"
	finds symbols "object files in a circle: libgdaki_$1.a:planted.o -> libgdaki_$1.a:too.o -> libgdaki_$1.a:planted.o"
}
plant_include() { # file, header that it includes, text that the check has to print
	rm -rf "${tmp:?}/tree"
	mkdir "$tmp/tree"
	cp -r core umem uar cq doorbell qp "$tmp/tree"
	case $2 in "<"*) echo "#include $2" ;; *) echo "#include \"$2\"" ;; esac >>"$tmp/tree/$1"
	finds includes "$3"
}

plant_symbol core gdk_slab_put umem
plant_symbol uar doca_verbs_umem_get_id umem
plant_symbol qp doca_devinfo_create_list doca
plant_symbol doca doca_dma_create dma
plant_circle core
plant_include cq/cq.h qp/verbs/qp.h "cq/cq.h: includes qp/verbs/qp.h"
plant_include qp/verbs/attr.c qp/export/export.h "qp/verbs/attr.c: includes qp/export/export.h, which is in a higher part"
plant_include qp/doca/ctx.h qp/dma/dma.h "qp/doca/ctx.h: includes qp/dma/dma.h"
plant_include qp/verbs/qp.h qp/doca/dev.h "qp/verbs/qp.h: includes qp/doca/dev.h"
plant_include qp/doca/include/doca_dev.h ../host/doca_error.h 'qp/doca/include/doca_dev.h: #include "../host/doca_error.h" does not follow the rule'
plant_include doorbell/include/device/gdk/ring_dev.h device/gdk/wait_dev.h "doorbell/include/device/gdk/ring_dev.h: includes qp/include/device/gdk/wait_dev.h"
plant_include core/util.h core/nic/net_dev.h "includes in a circle: core/util.h -> core/nic/net_dev.h -> core/util.h"
plant_include core/include/device/gdk/platform_warp.h device/gdk/platform.h "includes in a circle: core/include/device/gdk/platform.h"
plant_include core/nic/caps.c log.h 'core/nic/caps.c: #include "log.h" does not follow the rule'
plant_include core/log/log.h "<host/doca_verbs_qp.h>" 'core/log/log.h: #include <host/doca_verbs_qp.h> does not follow the rule'
plant_include core/log/log.c core/../qp/verbs/qp.h 'core/log/log.c: #include "core/../qp/verbs/qp.h" does not follow the rule'
[ $bad != 0 ] || echo "layers.sh: $planted planted faults found"
exit $bad
