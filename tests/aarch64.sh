#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Compiles the library, the software NIC, the examples and tests for AArch64, checks the barrier
# instructions, and runs tests and the demo under qemu-user. qemu executes memory accesses in
# x86-64's order, so this shows nothing about a weak memory order.
# apt-get downloads the arm64 packages that are needed to link, once, into $B/aarch64/sysroot. The
# system's own packages and its list of architectures stay as they are.
#
# usage: aarch64.sh [build | all]
#   build  compile the programs of the run without argument, check the barriers, do not run qemu
#   all    compile and run all unit tests and programs of threads, more than half an hour; qemu
#          refuses the mremap() of the substitute of GDRCopy, so tests that use that fail
#   B      build folder (build)
#   GDAKI_ARM64_MIRROR  mirror of the distribution's arm64 packages (Debian: the system's own
#                       mirror; Ubuntu: http://ports.ubuntu.com/ubuntu-ports)
set -u
cd "$(dirname "$0")/.." || exit 2
what=${1:-test}
arm=$(realpath -m "${B:-build}")/aarch64
sys=$arm/sysroot
triplet=aarch64-linux-gnu
bad=0

# Code that depends on the processor: atomics, barriers and byte order of the data path, the
# proxy's scan, the layouts, and the NIC from end to end. Then programs of many threads.
units="test_log test_util test_wqe test_prm test_layout test_order_dev test_handover_dev test_ring_dev
	test_qp_dev test_onesided_dev test_one_dev test_cq_dev test_doorbell_dev test_cpu_proxy test_e2e_dbrec"
threads="ring_race shared_qp proxy_storm waiters"
case $what in
test | build) ;;
all)
	units=$(cd tests/unit && ls test_*.c) units=${units//.c/}
	threads=$(cd tests/thread && ls -- *.c) threads="${threads//.c/} kernels_1 kernels_32"
	;;
*) echo "usage: tests/aarch64.sh [build | all]" >&2; exit 2 ;;
esac

if [ "$(uname -m)" = aarch64 ]; then
	echo "aarch64.sh: this machine is AArch64: its own tests are those of make test"
	exit 78
fi
for tool in $triplet-gcc:gcc-$triplet $triplet-g++:g++-$triplet qemu-aarch64:qemu-user; do
	[ "$what:$tool" != build:qemu-aarch64:qemu-user ] || continue
	command -v "${tool%%:*}" >/dev/null || {
		echo "aarch64.sh: ${tool%%:*} not found (package ${tool#*:})"
		exit 77
	}
done
mkdir -p "$arm"
exec 8>"$arm/lock"
flock -n 8 || { echo "aarch64.sh: waiting for another run"; flock -w 900 8 || exit 1; }

# ---- the arm64 packages ----

packages="libc6-dev libstdc++6 libibverbs-dev ibverbs-providers libnuma-dev zlib1g-dev libjson-c-dev libcriterion-dev"

sources() { # prints the line for apt
	local mirror=${GDAKI_ARM64_MIRROR:-} keys ID='' VERSION_CODENAME=''
	. /etc/os-release
	case $ID in
	debian)
		# shellcheck disable=SC2016 # apt-get expands it
		mirror=${mirror:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' \
			"Codename: $VERSION_CODENAME" 'Component: main' | head -n 1)}
		mirror=${mirror:-http://deb.debian.org/debian}
		keys=/usr/share/keyrings/debian-archive-keyring.gpg
		echo "deb [arch=arm64 signed-by=$keys] $mirror $VERSION_CODENAME main"
		;;
	ubuntu)
		mirror=${mirror:-http://ports.ubuntu.com/ubuntu-ports}
		keys=/usr/share/keyrings/ubuntu-archive-keyring.gpg
		echo "deb [arch=arm64 signed-by=$keys] $mirror $VERSION_CODENAME main universe"
		;;
	*) return 1 ;;
	esac
}

arm_apt() { # apt-get with a state of its own, for arm64
	local apt=$arm/apt
	apt-get -qq -o Dir::State="$apt" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt" \
		-o Dir::Etc::sourcelist="$apt/sources" -o Dir::Etc::sourceparts=/dev/null \
		-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User= \
		-o APT::Update::Error-Mode=any -o Acquire::Languages=none -o Acquire::Retries=2 \
		-o Acquire::http::Timeout=20 --no-install-recommends "$@" >>"$arm/apt.log" 2>&1
}

unpack() { # folder: the downloaded packages
	local deb link target
	mkdir -p "$1/usr/lib"
	ln -s usr/lib "$1/lib" # as on a system with merged /usr
	for deb in "$arm"/apt/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$1" || return
	done
	# Absolute links would lead out of the folder.
	find "$1" -type l -lname '/*' | while read -r link; do
		target=$(readlink "$link")
		ln -sfn "$(realpath -ms --relative-to="$(dirname "$link")" "$1$target")" "$link"
	done
}

sysroot() {
	local key
	sources >"$arm/sources" || {
		echo "aarch64.sh: this system is neither Debian nor Ubuntu: no arm64 packages"
		exit 78
	}
	key=$(cat "$arm/sources" - <<<"$packages $(declare -f unpack)" | sha256sum)
	[ "$(cat "$sys/.key" 2>/dev/null)" != "$key" ] || return
	rm -rf "$sys" "$arm/sysroot.new" "$arm/apt"
	mkdir -p "$arm"/apt/{lists,archives}/partial
	cp "$arm/sources" "$arm/apt/sources"
	# libibverbs1 depends on adduser, but only its installation scripts use it.
	printf '%s\n' 'Package: adduser' 'Status: install ok installed' 'Version: 999' \
		'Architecture: all' 'Multi-Arch: foreign' 'Maintainer: gdaki' 'Description: none' >"$arm/apt/status"
	: >"$arm/apt.log"
	# shellcheck disable=SC2086 # a list of packages
	arm_apt update && arm_apt -y -d install $packages || {
		tail -n 5 "$arm/apt.log"
		echo "aarch64.sh: cannot download arm64 packages: $(cut -d' ' -f4- "$arm/sources")"
		exit 78
	}
	unpack "$arm/sysroot.new" || { echo "aarch64.sh: cannot unpack the arm64 packages"; exit 1; }
	mv "$arm/sysroot.new" "$sys"
	rm -rf "$arm/apt"
	echo "$key" >"$sys/.key"
}

# ---- build ----

build() {
	local targets="all" opt="-O1 -Wno-maybe-uninitialized" name # compiles in half the time
	# qemu executes races in x86-64's order, as `make test` has them: a quarter of them is enough.
	local fewer="-DRACE_ROUNDS=5000 -DSHARED_WQES=384"
	local some="EXAMPLE_NAMES=hello_put gpunetio_verbs_put_bw gpunetio_echo gpunetio_doctor"
	[ "$what" != all ] || targets="all standins" opt='' some='' fewer=''
	for name in $units; do targets="$targets $arm/tests/$name"; done
	for name in $threads; do targets="$targets $arm/thread/$name"; done
	# shellcheck disable=SC2086 # a list of targets
	env -u MAKEFLAGS -u MFLAGS make -j"$(nproc)" --no-print-directory B="$arm" SAN= NVCC= MPICC= ${some:+"$some"} \
		CC=$triplet-gcc CXX=$triplet-g++ CFLAGS="--sysroot=$sys $fewer" CXXFLAGS="--sysroot=$sys" \
		LDFLAGS="--sysroot=$sys" ${opt:+OPT="$opt"} $targets >"$arm/build.log" 2>&1 || {
		tail -n 30 "$arm/build.log"
		echo "aarch64.sh: the build fails ($arm/build.log)"
		exit 1
	}
}

# ---- barriers ----

# Prints "function: instruction, instruction" for the barriers and stores of each function. Of equal
# neighbours it prints one, because the compiler may unroll loops.
emitted() { # object file
	$triplet-objdump -d --no-show-raw-insn "$1" | awk '
		function add(what) { if (what != last) list = list (list ? ", " : "") what; last = what }
		/^[0-9a-f]+ <.*>:$/ { name = substr($2, 2, length($2) - 3); list = last = "" }
		$2 == "dmb" || $2 == "dsb" { add($2 " " $3) }
		$2 ~ /^st/ { add($2) }
		$2 == "ret" { print name ": " list }'
}

expected() {
	awk '/^\/\* expect: / { sub(/^\/\* expect: /, ""); sub(/ \*\/$/, ""); list = $0 }
		/^void .*\)$/ { sub(/^void /, ""); sub(/\(.*/, ""); print $0 ": " list }' tests/aarch64/barriers.c
}

barriers() {
	$triplet-gcc --sysroot="$sys" -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -O2 \
		-I"$arm/include" -iquote . -c -o "$arm/barriers.o" tests/aarch64/barriers.c || { bad=1; return; }
	diff <(expected) <(emitted "$arm/barriers.o") >"$arm/barriers.diff" || {
		echo "aarch64.sh: barriers (<: expected, >: emitted):"
		grep '^[<>]' "$arm/barriers.diff"
		bad=1
	}
	emitted "$arm/obj/doorbell/cpu_proxy_step.o" | grep -q 'dmb osh, stlr, dsb st, str, dsb st' || {
		echo "aarch64.sh: the proxy does not order WQEs, DBREC and register by these barriers"
		bad=1
	}
}

# ---- run ----

# Compiles what is preloaded into the programs, and sets preload.
helpers() {
	local git2
	library tests/aarch64/qemu_exec.c "$arm/lib/qemu_exec.so"
	preload=$arm/lib/qemu_exec.so
	git2=$($triplet-readelf -d "$sys/usr/lib/$triplet/libcriterion.so" | sed -n 's/.*\[\(libgit2\.so.*\)\]/\1/p')
	[ -n "$git2" ] || return
	library tests/aarch64/no_git2.c "$arm/lib/no_git2.so" "-Wl,-soname,$git2"
	preload=$preload:$arm/lib/no_git2.so
}

library() { # source, library, linker options...
	$triplet-gcc --sysroot="$sys" -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -O2 -fPIC -shared \
		-o "$2" "$1" "${@:3}" || exit 1
}

# A build folder for run-unit.sh, run-one.sh and demo.sh. Its softnic-run starts qemu with that of
# AArch64, which starts the test in a qemu again (qemu_exec.c).
prepare() {
	local run=$arm/qemu name
	helpers
	mkdir -p "$run/bin"
	for name in tests thread lib standin; do ln -sfnr "$arm/$name" "$run/$name"; done
	for name in "$arm"/bin/*; do
		[ "${name##*/}" = softnic-run ] || ln -sfnr "$name" "$run/bin"
	done
	cat >"$run/bin/softnic-run" <<-END
		#!/bin/sh
		export GDAKI_QEMU='$(command -v qemu-aarch64)' QEMU_LD_PREFIX='$sys'
		export QEMU_SET_ENV='LD_PRELOAD=$preload'
		exec "\$GDAKI_QEMU" '$arm/bin/softnic-run' "\$@"
	END
	chmod +x "$run/bin/softnic-run"
	export B=$run
}

run() {
	local name said
	# shellcheck disable=SC2046,SC2086 # lists of names
	tests/run-unit.sh $(printf "$arm/tests/%s\n" $units) || bad=1
	for name in $threads; do
		if GDAKI_TEST_TIMEOUT=120 tests/run-one.sh "$B/thread/$name" >"$arm/$name.log" 2>&1; then
			echo "PASS thread/$name"
		else
			echo "FAIL thread/$name (exit $?)"
			tail -n 20 "$arm/$name.log" | sed 's/^/    /'
			bad=1
		fi
	done
	said=$(timeout 60 "$B/bin/softnic-run" -- "$arm/bin/hello_put" 2>&1)
	[ "$said" = "status 0: put by a thread, carried by a NIC" ] || {
		echo "FAIL hello_put: $said"
		bad=1
	}
	DEMO_ARGS="-i 512 -s 2048" examples/demo.sh || bad=1
}

start=$SECONDS
sysroot
packages_done=$SECONDS
build
barriers
echo "aarch64.sh: arm64 packages $((packages_done - start)) s, build $((SECONDS - packages_done)) s"
[ "$what" = build ] || { prepare; run; }
exit $bad
