#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Chooses the GPU architectures that nvcc compiles for, and writes the options for them to FILE:
# machine code for each architecture, and PTX of the newest one, which newer GPUs translate. PTX of
# an architecture such as 90a runs on no other GPU, so it is chosen only if there is no other.
# FILE changes only if the choice or nvcc changes, so that rules can depend on it. FILE.key
# identifies the nvcc that was probed; while it is unchanged, nvcc is run only for its version.
#
# usage: NVCC=... [CUDA_ARCH=...] [CUDAHOSTCXX=...] [CC=...] cuda_arch.sh FILE
#   CUDA_ARCH    architectures, for example "80 90". Each must be supported. If empty: those of
#                the default list that nvcc supports
#   CUDAHOSTCXX  nvcc's compiler for host code (chosen by nvcc)
#   CC           compiler of the rest of the program; must be for the same processor
set -u
wanted="80 90 100" # one per generation of GPUs that a NIC can read and write
file=$1
CUDA_ARCH=${CUDA_ARCH:-} CUDAHOSTCXX=${CUDAHOSTCXX:-}
host=${CUDAHOSTCXX:+-ccbin $CUDAHOSTCXX}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# Messages end with the remedy.
fail() { # message...
	{
		echo "cuda_arch.sh: $1"
		[ ! -s "$tmp/err" ] || grep -v '^ *[0-9]* *|\|^#\$\|^In file included\|^ *from' "$tmp/err" | head -n 5 |
			sed 's/^/    /'
		shift
		printf '%s\n' ${1:+"$1"} "NVCC=PATH selects another nvcc, NVCC= builds without CUDA."
	} >&2
	exit 1
}

# shellcheck disable=SC2086 # NVCC and host may be several words
accepts() { # architecture
	# Not --list-gpu-arch: a wrapper, or an incomplete installation, may refuse what it lists.
	$NVCC $host --dryrun -gencode "arch=compute_$1,code=sm_$1" -c -x cu -o "$tmp/probe.o" /dev/null \
		>"$tmp/err" 2>&1
}

supported() { # prints the architectures that nvcc lists and accepts
	local a list=""
	for a in $($NVCC --list-gpu-arch 2>/dev/null | sed -n 's/^compute_//p'); do
		! accepts "$a" || list+=" $a"
	done
	echo "$list"
}

# ---- is the last choice still valid? ----
$NVCC --version >"$tmp/version" 2>"$tmp/err" </dev/null ||
	fail "NVCC=\"$NVCC\" does not run:"
key="$CUDA_ARCH, $host, ${CC:-}, ${NVCC_CCBIN:-}, ${NVCC_PREPEND_FLAGS:-}, ${NVCC_APPEND_FLAGS:-}, $wanted
$(cat "$tmp/version")"
for word in $NVCC; do
	path=$(command -v -- "$word") && key+="
$word $(readlink -f "$path") $(stat -L -c '%s %y' "$path")"
done
[ ! -e "$file" ] || [ "$key" != "$(cat "$file.key" 2>/dev/null)" ] || exit 0
rm -f "$file.key"
name="$NVCC ($(sed -n 's/.*\(release .*\)/\1/p' "$tmp/version"))"

# ---- can it compile at all? ----
echo 'gdk_host __x86_64__ __aarch64__' >"$tmp/probe.cu"
# shellcheck disable=SC2086 # NVCC and host may be several words
$NVCC $host -E "$tmp/probe.cu" >"$tmp/out" 2>"$tmp/err" </dev/null ||
	fail "$name cannot compile an empty program:" \
		"CUDAHOSTCXX=COMPILER selects its compiler for host code (${CUDAHOSTCXX:-${NVCC_CCBIN:-g++}})."
# shellcheck disable=SC2086 # CC may be several words
if [ -n "${CC:-}" ] && $CC -E -P -x c "$tmp/probe.cu" >"$tmp/cc" 2>/dev/null &&
	! grep -qxF "$(grep '^gdk_host' "$tmp/cc")" "$tmp/out"; then
	fail "$name compiles host code for another processor than CC=\"$CC\"." \
		"CUDAHOSTCXX=COMPILER selects its compiler for host code."
fi

# ---- architectures ----
chosen="" refused=""
for arch in ${CUDA_ARCH:-$wanted}; do
	if accepts "$arch"; then
		chosen+="$arch "
	else
		refused+="$arch "
		cp "$tmp/err" "$tmp/refused"
	fi
done
if [ -n "$CUDA_ARCH" ] && [ -n "$refused" ] || [ -z "$chosen" ]; then
	what="supports none of the GPU architectures $wanted:"
	[ -z "$CUDA_ARCH" ] || what="does not support ${refused% } of CUDA_ARCH=\"$CUDA_ARCH\":"
	list=$(supported)
	cp "$tmp/refused" "$tmp/err"
	fail "$name $what" "${list:+CUDA_ARCH=\"...\" selects architectures. It supports$list.}"
fi
# shellcheck disable=SC2086 # a list
newest=$(printf '%s\n' $chosen | grep -x '[0-9]*' | sort -V | tail -n 1)
# shellcheck disable=SC2086 # a list
newest=${newest:-$(printf '%s\n' $chosen | sort -V | tail -n 1)}

mkdir -p "$(dirname "$file")" &&
	{
		printf '%s' "${host:+$host }"
		for arch in $chosen; do
			printf -- '-gencode arch=compute_%s,code=sm_%s ' "$arch" "$arch"
		done
		printf -- '-gencode arch=compute_%s,code=compute_%s\n' "$newest" "$newest"
	} >"$file" && echo "$key" >"$file.key"
