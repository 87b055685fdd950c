#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Builds with versions of nvcc that lack some GPU architectures, or that do not work. Checks which
# architectures make chooses, what its messages contain, and when it compiles kernels again.
# Without CUDA only the choice is tested, with a script in place of nvcc.
set -u
cd "$(dirname "$0")/.." || exit 2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
NVCC=${NVCC:-}
export CUDA_ARCH=
unset MAKEFLAGS MAKEOVERRIDES MFLAGS
bad=0

complain() {
	echo "cuda_versions.sh: $*"
	[ ! -s "$tmp/log" ] || tail -n 8 "$tmp/log" | sed 's/^/    /'
	bad=1
}

# An nvcc that refuses architectures, with nvcc's message, and records its arguments. It compiles
# without optimization. "broken" refuses the version of the host compiler.
nvcc() { # name, refused architectures or "broken"
	cat >"$tmp/$1" <<-EOF
		#!/usr/bin/env bash
		echo "\$*" >>"$tmp/$1.calls"
		case \$* in
		*--version*) echo "Cuda compilation tools, release 12.3, V12.3.45"; exit ;;
		*--list-gpu-arch*) printf 'compute_%s\n' 50 80 90 100; exit ;;
		*--dryrun*compute_50*) exit ;; # today's nvcc refuses it
		esac
		for a in $2; do
			[ \$a != broken ] || { echo "#error -- unsupported GNU version!" >&2; exit 1; }
			case \$* in *compute_\$a*)
				echo "nvcc fatal   : Unsupported gpu architecture 'compute_\$a'" >&2
				exit 1 ;;
			esac
		done
		[ -z "$NVCC" ] || exec $NVCC "\${@/#-O3/-O0}"
		case " \$*" in *' -E '*) exec g++ -E -x c++ "\${!#}" ;; esac
	EOF
	chmod +x "$tmp/$1"
	: >"$tmp/$1.calls"
}

choose() { # nvcc, variables...
	local nvcc=$1
	shift
	env NVCC="$tmp/$nvcc" "$@" core/install/cuda_arch.sh "$tmp/options" >"$tmp/log" 2>&1
}

chosen() { grep -o 'code=[a-z]*_[0-9a-z]*' "$tmp/options" | cut -d= -f2 | sort | xargs; }

fails() { # what, parts of the message..., --, nvcc, variables...
	local what=$1 part
	local -a parts=()
	shift
	while [ "$1" != -- ]; do parts+=("$1"); shift; done
	shift
	! choose "$@" || complain "$what: no error"
	for part in "${parts[@]}" "NVCC= builds without CUDA"; do
		grep -qF -- "$part" "$tmp/log" || complain "$what: the message lacks '$part'"
	done
}

# ---- the choice ----
nvcc current ""
nvcc old "100"
nvcc ancient "80 90 100"
nvcc broken broken
choose current || complain "nvcc without restrictions fails"
[ "$(chosen)" = "compute_100 sm_100 sm_80 sm_90" ] || complain "chosen by default: $(chosen)"
choose old || complain "nvcc without sm_100 fails"
[ "$(chosen)" = "compute_90 sm_80 sm_90" ] || complain "chosen without sm_100: $(chosen)"

# PTX of 90a runs on no other GPU.
choose old CUDA_ARCH="90 90a" || complain "CUDA_ARCH=\"90 90a\" fails"
[ "$(chosen)" = "compute_90 sm_90 sm_90a" ] || complain "chosen with 90 90a: $(chosen)"
choose old CUDA_ARCH=90a || complain "CUDA_ARCH=90a fails"
[ "$(chosen)" = "compute_90a sm_90a" ] || complain "chosen with 90a: $(chosen)"
env NVCC="$tmp/old -Xcompiler -v -w" core/install/cuda_arch.sh "$tmp/options" >"$tmp/log" 2>&1 || complain "NVCC with options fails"
! grep 'command:' "$tmp/log" || complain "NVCC with options prints errors of the shell"
choose old

# The probe is not repeated, and the file does not change.
: >"$tmp/old.calls"
touch -d '1 hour ago' "$tmp/options"
choose old
[ "$(cat "$tmp/old.calls")" = --version ] || complain "unchanged nvcc is probed again: $(cat "$tmp/old.calls")"
[ -z "$(find "$tmp/options" -mmin -30)" ] || complain "the options change without a reason"
touch "$tmp/old"
choose old
grep -q dryrun "$tmp/old.calls" || complain "a changed nvcc is not probed again"

fails "no architecture is left" "release 12.3, V12.3.45" "none of the GPU architectures 80 90 100" \
	"'compute_100'" "supports 50" "CUDA_ARCH=" -- ancient
fails "unknown CUDA_ARCH" "does not support 100 of CUDA_ARCH=\"90 100\"" "'compute_100'" \
	"supports 50 80 90." -- old CUDA_ARCH="90 100"
fails "host compiler" "$tmp/broken (release 12.3, V12.3.45)" "unsupported GNU version" CUDAHOSTCXX= -- broken
fails "missing nvcc" "does not run" -- missing
printf '#!/bin/sh\necho gdk_host other processor\n' >"$tmp/cc"
chmod +x "$tmp/cc"
fails "another processor" "another processor than CC" CUDAHOSTCXX= -- old CC="$tmp/cc"

# ---- make ----
build() { # options of make...
	make --no-print-directory B="$tmp/b" "$@" >"$tmp/log" 2>&1
}
: >"$tmp/old.calls"
build NVCC="$tmp/old" stage || complain "make stage fails"
[ ! -s "$tmp/old.calls" ] || complain "a build without kernels runs nvcc: $(cat "$tmp/old.calls")"
build NVCC= -n all || complain "make NVCC= fails"
! grep -E '_cuda\.so|nvcc' "$tmp/log" || complain "make NVCC= compiles for GPUs"

# Prints the architectures of machine code and PTX in a file: cuobjdump is not in every CUDA
# installation. An entry begins with its kind, the length of its header, and that of its contents.
contents() {
	python3 - "$1" <<-'EOF'
		import struct
		import sys

		data = open(sys.argv[1], "rb").read()
		found = set()
		at = data.find(b"\x50\xed\x55\xba\x01\x00\x10\x00")
		while at >= 0:
		    entry = at + 16
		    at = entry + struct.unpack_from("<Q", data, at + 8)[0]
		    while entry < at:
		        kind, _, header, size = struct.unpack_from("<HHIQ", data, entry)
		        arch = struct.unpack_from("<I", data, entry + 28)[0]
		        found.add("%s_%d" % ({1: "compute", 2: "sm"}[kind], arch))
		        entry += header + size
		    at = data.find(b"\x50\xed\x55\xba\x01\x00\x10\x00", at)
		print(*sorted(found))
	EOF
}
holds() { # contents, what, options of make...
	local want=$1 what=$2
	shift 2
	build NVCC="$tmp/old" "$tmp/b/lib/libgpunetio_verbs_put_bw_cuda.so" "$@" || complain "$what does not build"
	[ "$(contents "$tmp/b/lib/libgpunetio_verbs_put_bw_cuda.so")" = "$want" ] ||
		complain "$what: libgpunetio_verbs_put_bw_cuda.so has $(contents "$tmp/b/lib/libput_bw_cuda.so") instead of $want"
}
if [ -n "$NVCC" ]; then
	holds "compute_90 sm_80 sm_90" "nvcc without sm_100"
	built=$(stat -c %Y "$tmp/b/lib/libgpunetio_verbs_put_bw_cuda.so")
	holds "compute_90 sm_80 sm_90" "make without a change"
	[ "$built" = "$(stat -c %Y "$tmp/b/lib/libgpunetio_verbs_put_bw_cuda.so")" ] || complain "make without a change compiles"
	holds "compute_90 sm_90" "make CUDA_ARCH=90" CUDA_ARCH=90
	! build NVCC="$tmp/old" "$tmp/b/lib/libgpunetio_verbs_put_bw_cuda.so" CUDA_ARCH=100 || complain "make CUDA_ARCH=100 succeeds"
fi
[ $bad = 1 ] || echo "cuda_versions.sh: ok (${NVCC:-without nvcc})"
exit $bad
