#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Compiles a kernel with a loop of one operation and one wait (tests/footprint/kernel.cu) for each
# row of tests/footprint/limits, and compares what the kernel costs with the limits of the row:
#   registers  of the kernel and of the functions that it calls
#   bytes      of machine code, with that of its copies of these functions
#   stack      bytes, of the kernel or of the function that has the largest frame
#   spills     bytes of the stores and loads of spilled registers, in all functions
#
# usage: footprint.sh          fails if a row of the short form exceeds a limit (MORE=1: also of the form
#                              more, LONG=1: any row)
#        footprint.sh table [PEER]  prints all rows; PEER: include folder of DOCA GPUNetIO, whose
#                              values are printed beside ours
#   ONLY   select rows, of all forms, by this extended regular expression
#   INC    the include folder ($B/include, which `make stage` fills)
#   B, NVCC, CUDAHOSTCXX as for make
#   FOOTPRINT_LIMITS  another file instead of tests/footprint/limits
#
# The name of a row is OPERATION-SHARING-HANDLER-SCOPE-ARCHITECTURE, and a variant:
#   bounds1024  __launch_bounds__(1024), that is, at most 64 registers
#   call2       two operations with a wait each; bytes: those of the second
#   call4       four; bytes: the mean of the third and the fourth
#   live48      48 floats are live across the loop; registers: how many more than without the
#               operation
set -u
what=${1:-test} peer=${2:-}
dir=$(realpath "$(dirname "$0")/footprint")
limits=${FOOTPRINT_LIMITS:-$dir/limits}
INC=${INC:-${B:-build}/include}
LONG=${LONG:-}
NVCC=${NVCC-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}
case $what in
test | table) ;;
*) echo "usage: footprint.sh [table [PEER]]" >&2; exit 2 ;;
esac
[ -n "$NVCC" ] || { echo "footprint.sh: nvcc not found"; exit 77; }
[ -e "$INC/doca_gpunetio_device.h" ] || {
	echo "footprint.sh: no doca_gpunetio_device.h in $INC; \`make stage\` fills build/include" >&2
	exit 1
}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# ---- rows ----

limit='(-|[0-9]+(\([0-9]+\))?)'
grep -n -v -E '^ *(#|$)' "$limits" | grep -v -E "^[0-9]+:(put64|putn|putsig|p|get|send|recv|dma|rdmas|rdmaw|rdmar|eths|ethm|ethr)-(excl|cta|gpu)\
-(db|auto)-(thread|warp|block)-sm_[0-9]+(-bounds1024|-call2|-call4|-live48)? +(short|more|long)\
( +$limit){4} *$" && {
	echo "footprint.sh: $limits: these lines are not rows"
	exit 2
}
archs=$($NVCC --list-gpu-arch | sed -n 's/^compute_/sm_/p' | tr '\n' ' ')
rows() { # prints the lines of the limits that are selected and that nvcc can compile
	local row form arch
	grep -v -E '^ *(#|$)' "$limits" | while read -r row form rest; do
		if [ -n "${ONLY:-}" ]; then
			[[ $row =~ $ONLY ]] || continue
		elif [ "$what" = test ] && [ -z "$LONG" ] && [ "$form" != short ]; then
			[ "$form" = more ] && [ -n "${MORE:-}" ] || continue
		fi
		arch=${row#*-*-*-*-}
		[[ " $archs" == *" ${arch%%-*} "* ]] || {
			echo "footprint.sh: $row: nvcc does not support ${arch%%-*}" >&2
			continue
		}
		echo "$row $form $rest"
	done
}

kernels() { # reads rows, prints the names of the kernels that they need
	local row rest
	while read -r row rest; do
		echo "$row"
		case $row in
		*-call2) echo "${row%-*}" ;;
		*-call4) echo "${row%-*}-call2" ;;
		*-live48) echo "none-excl-db-thread-${row#*-*-*-*-}" ;; # the live floats, but no operation
		esac
	done | sort -u
}

# ---- measurement ----

# The peer has no block scope, its p and put_signal at warp scope are empty, and it has no
# two-sided operations, no copies by the NIC and no Ethernet queues.
peer_lacks() { # kernel
	[[ $1 == send-* || $1 == recv-* || $1 == dma-* || $1 == rdma* || $1 == eth* || $1 == *-block-* || $1 == p-*-warp-* || $1 == putsig-*-warp-* ]]
}

define() { # kernel: prints its definition
	local op sharing handler scope arch variant calls=1 live=0 bounds=
	IFS=- read -r op sharing handler scope arch variant <<<"$1"
	sharing=${sharing/excl/exclusive} handler=${handler/db/gpu_sm_db}
	case $variant in
	bounds*) bounds="__launch_bounds__(${variant#bounds})" ;;
	live*) live=${variant#live} ;;
	call*) calls=${variant#call} ;;
	esac
	echo "KERNEL(${1//-/_}, ${op^^}, ${sharing^^}, ${handler^^}, ${scope^^}, $calls, $live, $bounds)"
}

# Adds a kernel to a source file. In the short form and in the form more this is the file
# ARCHITECTURE.SHARING-HANDLER-SCOPE.cu, because CUDA's own headers cost as much time as a kernel.
# Kernels that call gdk_post_gpu() or another function that is not inlined with other constant
# arguments would change the code of each other, so do the doca_gpu_dev_rdma_* by their operation,
# and so do others by a little: in all other forms each kernel has a file.
add() { # folder, kernel
	local use=${2#*-} arch=${2#*-*-*-*-} file
	[[ $what$LONG${ONLY:-} == test && $2 != rdma* ]] || use=$2
	file=$1/${arch%%-*}.${use%%-sm_*}.cu
	[ -e "$file" ] || echo "#include \"$dir/kernel.cu\"" >"$file"
	define "$2" >>"$file"
}

measure() { # include folder, source file: writes "registers bytes stack spills" of each kernel to a file
	local file=${2%.cu} arch=${2##*/}
	# shellcheck disable=SC2086 # NVCC may be several words
	$NVCC ${CUDAHOSTCXX:+-ccbin $CUDAHOSTCXX} -std=c++17 -O3 -Xptxas -v -I"$1" -I"$1-doca" \
		-arch="${arch%%.*}" -cubin -o "$file.cubin" "$2" >"$file.log" 2>&1 || {
		echo "footprint.sh: these kernels do not compile:"
		grep KERNEL "$2"
		head -n 20 "$file.log"
		return 255 # makes xargs stop
	}
	{
		readelf -SW "$file.cubin" 2>/dev/null | sed -n 's/^ *\[ *[0-9]*\] \.text\.//p' |
			while read -r kernel _ _ _ size _; do echo "code $kernel $((16#$size))"; done
		cat "$file.log"
	} | awk -v folder="${2%/*}" -v kernels="$(grep -c ^KERNEL "$2")" '
		/^code/ { text[$2] = $3 }
		/Compiling entry function/ { split($0, part, "\047"); kernel = part[2] }
		/ bytes stack frame,/ { if ($1 > stack[kernel]) stack[kernel] = $1 + 0; spills[kernel] += $5 + $9 }
		/ Used [0-9]+ registers/ {
			for (i = 1; i < NF; i++) {
				if ($i == "Used") registers[kernel] = $(i + 1)
				if ($(i + 1) == "bytes" && $(i + 2) == "cumulative" && $i > stack[kernel])
					stack[kernel] = $i + 0
			}
		}
		END {
			for (kernel in registers) {
				if (!registers[kernel] || !text[kernel])
					continue
				print registers[kernel], text[kernel], stack[kernel] + 0, spills[kernel] + 0 >(folder "/" kernel)
				kernels--
			}
			exit kernels != 0
		}' || {
		echo "footprint.sh: for a kernel of these, nvcc printed no number of registers, or its output has no code:"
		cat "$2" "$file.log"
		return 255
	}
}

value() { # folder, row: sets registers, bytes, stack and spills, or "-"
	local r b s
	registers=- bytes=- stack=- spills=-
	set -- "$1" "${2//-/_}"
	[ ! -e "$1/$2" ] || read -r registers bytes stack spills <"$1/$2"
	[ "$bytes" != - ] || return
	case $2 in
	*_call2)
		read -r r b s <"$1/${2%_*}"
		bytes=$((bytes - b))
		;;
	*_call4)
		read -r r b s <"$1/${2%_*}_call2"
		bytes=$(((bytes - b + 1) / 2))
		;;
	*_live48)
		read -r r b s <"$1/none_excl_db_thread_${2#*_*_*_*_}"
		registers=$((registers - r))
		;;
	esac
}

export -f measure
export NVCC dir
rows >"$out/rows"
[ -s "$out/rows" ] || { echo "footprint.sh: no row selected by ONLY=${ONLY:-} in $limits" >&2; exit 2; }
mkdir "$out/ours" "$out/peer"
kernels <"$out/rows" >"$out/kernels"
while read -r kernel; do
	add "$out/ours" "$kernel"
	[ -z "$peer" ] || peer_lacks "$kernel" || add "$out/peer" "$kernel"
done <"$out/kernels"
for file in "$out"/{ours,peer}/*.cu; do
	case $file in
	*\*.cu) ;;
	*/ours/*) printf '%s\0%s\0' "$INC" "$file" ;;
	*) printf '%s\0%s\0' "$peer" "$file" ;;
	esac
done | xargs -0 -P "$(nproc)" -n 2 bash -c 'measure "$@"' measure || exit 1

# ---- comparison ----

# A limit is a number, "-" for none, or OWN(REGULAR): the row may exceed the regular limit.
compare() { # row, name of the value, value, limit: sets result, appends to notes
	local own=${4%%(*} regular=${4#*(}
	regular=${regular%)}
	[ "$4" != - ] || return
	if [ "$3" -gt "$own" ]; then
		result=OVER
		notes+="footprint.sh: $1: $2 $3, limit $own"$'\n'
	elif [ "$3" -gt "$regular" ]; then
		[ "$result" = OVER ] || result=over
		notes+="footprint.sh: $1: $2 $3, over the regular limit $regular (its own: $own)"$'\n'
	elif [ "$own" != "$regular" ]; then
		notes+="footprint.sh: $1: $2 $3 needs no own limit $own, the regular one is $regular"$'\n'
	fi
}

line() { # row, then ours, peer's and limit of each value, then the result
	# shellcheck disable=SC2183 # two formats
	if [ -n "$peer" ]; then
		printf '%-38s  %5s %5s %7s  %7s %7s %13s  %5s %5s %6s  %6s %6s %6s  %s\n' "$@"
	else
		printf '%-38s  %5s %7s  %7s %13s  %5s %6s  %6s %6s  %s\n' \
			"$1" "$2" "$4" "$5" "$7" "$8" "${10}" "${11}" "${13}" "${14}"
	fi
}

notes="" failed=0 count=0
[ "$what" = test ] || {
	line "" regs. peer limit bytes peer limit stack peer limit spills peer limit ""
}
while read -r row _ r b s p; do
	value "$out/peer" "$row"
	peers=("$registers" "$bytes" "$stack" "$spills")
	value "$out/ours" "$row"
	result=met
	compare "$row" registers "$registers" "$r"
	compare "$row" bytes "$bytes" "$b"
	compare "$row" stack "$stack" "$s"
	compare "$row" spills "$spills" "$p"
	[ "$result" != OVER ] || failed=$((failed + 1))
	count=$((count + 1))
	[ "$what" = test ] || line "$row" "$registers" "${peers[0]}" "$r" "$bytes" "${peers[1]}" "$b" \
		"$stack" "${peers[2]}" "$s" "$spills" "${peers[3]}" "$p" "$result"
done <"$out/rows"
[ "$what" = test ] || { echo "$failed of $count rows exceed a limit"; exit 0; }
printf '%s' "$notes"
echo "footprint.sh: $failed of $count rows exceed a limit"
[ "$failed" = 0 ]
