#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Builds copies of the tree, without a compiler cache:
# - A changed setting rebuilds what depends on it, and nothing else; unchanged settings rebuild
#   nothing.
# - `make B=DIR` builds outside of a source tree that it cannot write to.
# - Builds in two folders give the same bytes.
# NVCC: also compiles the kernels, for one architecture.
set -u
cd "$(dirname "$0")/.." || exit 2
NVCC=${NVCC:-}
unset B SAN CC CXX AR OPT CFLAGS CXXFLAGS LDFLAGS CUDA_ARCH MAKEFLAGS MFLAGS MAKELEVEL
export CCACHE_DISABLE=1
tmp=$(mktemp -d)
chmod 755 "$tmp"
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
bad=0

complain() {
	echo "rebuild.sh: $*"
	bad=1
}

copy() { # folder
	mkdir -p "$1"
	tar c --exclude=__pycache__ Makefile LICENSE README.md core umem uar cq qp doorbell examples tests | tar x -C "$1"
}

# Some of the examples; the others have the same rules.
some="EXAMPLE_NAMES=hello_put gpunetio_verbs_put_bw gpunetio_doctor"
build() { # folder, arguments of make...
	local dir=$1
	shift
	make -C "$dir" --no-print-directory -j2 "$some" "$@" >"$tmp/log" 2>&1 || {
		complain "make $* fails:"
		tail -n 8 "$tmp/log"
		return 1
	}
}

# ---- changed settings ----

# Five C objects, one of them of a program, and one C++ object.
small="build/lib/libgdaki_uar.a build/soak/soak build/obj/tests/rebuild.o"
copy "$tmp/a"
echo 'int gdk_rebuild(void); int gdk_rebuild(void) { return 0; }' >"$tmp/a/tests/rebuild.cpp"
cat >>"$tmp/a/Makefile" <<'MAKE'
build/obj/tests/rebuild.o: tests/rebuild.cpp build/settings/cxx
	$(call say,CXX)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(CXXFLAGS_ALL) -c -o $@ $<
MAKE

rebuilds() { # what is expected, settings...
	local want=$1 got
	shift
	# shellcheck disable=SC2086 # a list of targets
	build "$tmp/a" $small NVCC= "$@" || return
	got=$(sed -n 's/^  \([A-Z][A-Z]*\) .*/\1/p' "$tmp/log" | sort | uniq -c | awk '{ printf "%s%d ", $2, $1 }')
	[ "${got% }" = "$want" ] || complain "make $* rebuilds \"${got% }\", expected \"$want\""
}

everything="AR1 CC5 CXX1 LD1"
c="AR1 CC5 LD1"
rebuilds "$everything"
rebuilds ""
rebuilds "$everything" OPT=-O1
OPT=-O1 rebuilds ""
rebuilds "$c" OPT=-O1 CFLAGS='-DNAME="a b"'
rebuilds "" OPT=-O1 CFLAGS='-DNAME="a b"'
rebuilds "$c" OPT=-O1
rebuilds "$c" OPT=-O1 WARN=-Wall
rebuilds "$c" OPT=-O1
rebuilds LD1 OPT=-O1 LDFLAGS=-Wl,-z,now
rebuilds LD1 OPT=-O1
rebuilds "CXX1 LD1" OPT=-O1 CXX="g++ -DOTHER" # which also links the examples
rebuilds "CXX1 LD1" OPT=-O1
rebuilds AR1 OPT=-O1 AR=gcc-ar
rebuilds AR1 OPT=-O1
rebuilds "$c" OPT=-O1 CC="gcc -DOTHER" CXX=g++
rebuilds "$everything" OPT=-O1 COVFLAGS=--coverage
touch "$tmp/a/uar/uar.h"
rebuilds "AR1 CC$(grep -l '"uar/uar.h"' uar/*.c | wc -l)" OPT=-O1 COVFLAGS=--coverage

# ---- out of tree, from a source tree without write permission ----

copy "$tmp/elsewhere/b"
mkdir "$tmp/out"
chmod -R a-w "$tmp/elsewhere"
as=()
# Permissions do not apply to root.
if [ "$(id -u)" = 0 ]; then
	chown 65534 "$tmp/out"
	as=(setpriv --reuid=65534 --clear-groups)
fi
find "$tmp/elsewhere" -printf '%p %T@\n' | sort >"$tmp/before"
"${as[@]}" make -C "$tmp/elsewhere/b" --no-print-directory -j8 NVCC= B="$tmp/out/" OPT='-O0 -g' "$some" all >"$tmp/log" 2>&1 || {
	complain "an out-of-tree build fails:"
	tail -n 8 "$tmp/log"
}
find "$tmp/elsewhere" -printf '%p %T@\n' | sort | cmp -s - "$tmp/before" ||
	complain "an out-of-tree build changes the source tree"
timeout 60 "$tmp/out/bin/softnic-run" -- "$tmp/out/bin/hello_put" >"$tmp/log" 2>&1 ||
	complain "hello_put of an out-of-tree build fails: $(tail -n 3 "$tmp/log")"

# ---- folders that make neither fills nor deletes ----

refuses() { # what the message contains, arguments of make...
	local want=$1 goal
	shift
	for goal in clean stage; do
		! make -C "$tmp/a" --no-print-directory -n NVCC= "$@" $goal >"$tmp/log" 2>&1 || complain "make $* $goal succeeds"
		grep -qF -- "$want" "$tmp/log" || complain "make $* $goal does not print '$want': $(tail -n 2 "$tmp/log")"
	done
}
mkdir -p "$tmp/other/bin" "$tmp/empty"
refuses "is empty" B=
refuses "is empty" B=/
refuses "is empty" B="a b"
refuses "sources of gdaki" B=.
refuses "sources of gdaki" B="$tmp"
refuses "sources of gdaki" B="$tmp/elsewhere/b"
refuses "not created by a build" B=/usr
refuses "not created by a build" B=tests
refuses "not created by a build" B="$tmp/other"
copy "$tmp/with space"
! make -C "$tmp/with space" -n >"$tmp/log" 2>&1 || complain "a source folder with a space is accepted"
grep -q "must not contain spaces" "$tmp/log" || complain "no reason for a refused source folder"
build "$tmp/a" B="$tmp/empty" stage
build "$tmp/a" B="$tmp/empty" stage
build "$tmp/a" B="$tmp/empty" clean
build "$tmp/a" B="$tmp/none" clean
[ -z "$(ls -A "$tmp/empty")" ] && [ ! -e "$tmp/none" ] || complain "make clean leaves $(ls -A "$tmp/empty")"

# ---- the same bytes ----

mkdir -p "$tmp/a/build/lib"
touch "$tmp/a/build/lib/libold_cuda.so"
build "$tmp/a" NVCC= OPT='-O0 -g' all
[ ! -e "$tmp/a/build/lib/libold_cuda.so" ] || complain "a build without nvcc keeps kernels of an earlier one"
if [ -n "$NVCC" ]; then
	build "$tmp/a" NVCC="$NVCC" CUDA_ARCH=90 build/lib/libgpunetio_verbs_put_bw_cuda.so
	build "$tmp/elsewhere/b" NVCC="$NVCC" CUDA_ARCH=90 B="$tmp/out" "$tmp/out/lib/libgpunetio_verbs_put_bw_cuda.so"
fi
built=$(cd "$tmp/out" && ls lib/* bin/*)
[ "$(wc -w <<<"$built")" -ge 15 ] || complain "few files were built: $built"
for f in $built; do
	cmp "$tmp/out/$f" "$tmp/a/build/$f" || complain "$f differs between builds in two folders"
done
[ $bad != 0 ] || echo "rebuild.sh: $(wc -w <<<"$built") files of two builds are identical"
exit $bad
