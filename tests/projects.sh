#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Installs into an empty folder and moves the installation. Then builds the projects in
# tests/projects, copied out of this tree, against it: in C, C++ and CUDA, with make and
# pkg-config, CMake, and Meson, linked by gcc, clang and nvcc. Each project has a program with the
# merged archive and one with the separate archives and the strategy cpu_proxy. Each program puts
# a message through the installed software NIC, compares it and prints the handler. A table at the
# end has a line for each program.
#
# Also checks the CMake package: what find_package refuses, that a program has exactly the
# strategies that it names, and other folders than PREFIX/lib and PREFIX/include.
# shellcheck disable=SC2317 # functions that are arguments
set -u
cd "$(dirname "$0")/.." || exit 2
top=$PWD
B=$(realpath "${B:-build}")
NVCC=${NVCC-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}
for tool in cmake ninja meson pkg-config clang; do
	command -v $tool >/dev/null || { echo "projects.sh: $tool is not installed"; exit 77; }
done
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
unset CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LIBRARY_PATH LD_LIBRARY_PATH CFLAGS CXXFLAGS LDFLAGS MAKEFLAGS
cp -r tests/projects "$tmp/src"

complain() { # what; prints the end of the log
	echo "projects.sh: $1"
	tail -n 12 "$tmp/log" | sed 's/^/    /'
	bad=1
}

install_to() { # DESTDIR and the other folders, as for make
	make --no-print-directory -C "$top" B="$B" NVCC="$NVCC" "$@" install >"$tmp/log" 2>&1 || {
		complain "make install $* fails"
		exit 1
	}
}
install_to DESTDIR="$tmp/stage" PREFIX=/opt/gdaki
prefix=$tmp/moved
mv "$tmp/stage/opt/gdaki" "$prefix"
# pkg-config finds the moved folder by the place of the .pc file.
export PKG_CONFIG="pkg-config --define-prefix" PKG_CONFIG_PATH=$prefix/lib/pkgconfig

# ---- build systems: each builds put and put_proxy in $2 from the sources in $1 ----
build_make() {
	make -C "$2" -f "$1/Makefile"
}
build_cmake() {
	cmake -G Ninja -S "$1" -B "$2" "${@:3}" -DCMAKE_PREFIX_PATH="$prefix" && ninja -C "$2"
}
build_meson() {
	cat >"$tmp/pkg-config" <<-'SH'
		#!/bin/sh
		exec pkg-config --define-prefix "$@"
	SH
	chmod +x "$tmp/pkg-config"
	PKG_CONFIG=$tmp/pkg-config meson setup "$2" "$1" && ninja -C "$2"
}

line() {
	printf '%-5s %-6s %-9s %-6s %s\n' "$@"
}
run() { # program, handler: prints its message or an error
	local got
	got=$(timeout 60 "$prefix/bin/softnic-run" -- "$1" 2>"$tmp/log") || got="FAILED ($?) $got"
	echo "$got"
	[[ $got == "$2: status 0, "*" bytes received" ]]
}
project() { # language, build system, compiler that links
	local dir=$tmp/build/$1-$2-$3 result archives program handler
	local -x CC=gcc CXX=g++ NVCC=$NVCC
	[ "$3" != clang ] || CC=clang CXX=clang++
	[ "$3" != nvcc ] || export LINKER=$NVCC CUDACXX=$NVCC
	if [ "$3" = nvcc ] && [ -z "$NVCC" ]; then
		line "$1" "$2" both "$3" "not built: no nvcc" >>"$tmp/table"
		return
	fi
	mkdir -p "$dir"
	"build_$2" "$tmp/src/$1" "$dir" >"$tmp/log" 2>&1 || complain "$1 with $2 and $3 does not build"
	! grep -rqF "$top/" --include=build.ninja --include='*.d' "$dir" || complain "$1 with $2 uses this tree"
	for program in put:merged:GPU_SM_DB put_proxy:separate:CPU_PROXY; do
		IFS=: read -r program archives handler <<<"$program"
		result=$(run "$dir/$program" "$handler") || complain "$1 with $2 and $3, $archives: $result"
		line "$1" "$2" "$archives" "$3" "$result" >>"$tmp/table"
	done
	unset LINKER CUDACXX
}

# Every value beside every value of the other columns.
project c make gcc
project c make nvcc
project c cmake clang
project c meson gcc
project cxx make clang
project cxx cmake gcc
project cxx meson clang
project cuda make nvcc
project cuda cmake nvcc
project cuda meson nvcc

# ---- the CMake package, installed with other folders ----
strategies() { # program
	nm "$1" | sed -n 's/.* gdk_link_db_//p' | sort | xargs
}
export CC=gcc
install_to DESTDIR="$tmp/stage" PREFIX=/opt/other LIBDIR=lib/x86_64-linux-gnu INCLUDEDIR=/opt/include
mv "$tmp/stage/opt" "$tmp/elsewhere"
if cmake -G Ninja -S "$tmp/src/cmake" -B "$tmp/checks" -DCMAKE_PREFIX_PATH="$tmp/elsewhere/other" >"$tmp/log" 2>&1 &&
	ninja -C "$tmp/checks" >"$tmp/log" 2>&1; then
	for s in gpu_sm bf cpu_proxy; do
		for p in behind_$s front_$s lower_$s libplugin_$s.so; do
			got=$(strategies "$tmp/checks/$p")
			[ "$got" = $s ] || complain "$p has {$got}"
		done
	done
	got=$(strategies "$tmp/checks/nested_bf")
	[ "$got" = bf ] || complain "nested_bf has {$got}"
	! ninja -C "$tmp/checks" without >"$tmp/log" 2>&1 || complain "gdaki::qp links without a strategy"
	grep -q gdk_error_no_doorbell_strategy__link_lgdaki "$tmp/log" || complain "the linker does not print the cure"
else
	grep -A 3 'CMake Error' "$tmp/log"
	complain "the checks of the CMake package fail"
fi
mkdir "$tmp/none"
config=$(find "$tmp/elsewhere/other" -name gdaki-config.cmake -exec dirname {} \;)
printf '%s\n' 'cmake_minimum_required(VERSION 3.18)' 'project(app NONE)' 'find_package(gdaki REQUIRED)' >"$tmp/none/CMakeLists.txt"
! cmake -S "$tmp/none" -B "$tmp/none/b" -Dgdaki_DIR="$config" >"$tmp/log" 2>&1 ||
	complain "find_package succeeds in a project without languages"
tr -s '\n ' ' ' <"$tmp/log" | grep -q 'call project() with a language' ||
	complain "find_package does not ask for a language"
install_to DESTDIR="$tmp/stage" PREFIX=/opt/other LIBDIR=/opt/other/lib64
prefix=$tmp/stage/opt/other
# On Debian, CMake finds packages in lib64 only if their folder is given.
if build_cmake "$tmp/src/c" "$tmp/lib64" -Dgdaki_DIR="$prefix/lib64/cmake/gdaki" >"$tmp/log" 2>&1; then
	run "$tmp/lib64/put" GPU_SM_DB >/dev/null || complain "a program of an installation in lib64 fails"
else
	complain "CMake with an installation in lib64 fails"
fi

cat "$tmp/table"
exit $bad
