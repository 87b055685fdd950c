#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Checks that shells, coreutils and Python find the software NIC in /sys and /dev as they
# would find a ConnectX, that softnic-run accepts the options that its --help lists, and
# that the folder of a killed run is removed by the next run.
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
run=$(realpath "$B")/bin/softnic-run
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
complain() { echo "paths.sh: $1"; sed 's/^/    /' "$tmp/out" | tail -n 8; bad=1; }

says() { # pattern that the output must match, shell commands
	timeout 20 "$run" -- sh -c "$2" >"$tmp/out" 2>"$tmp/err" || complain "'$2' fails: $(tail -n 1 "$tmp/err")"
	[ ! -s "$tmp/err" ] || complain "'$2' prints to stderr: $(tail -n 1 "$tmp/err")"
	grep -q -E -- "$1" "$tmp/out" || complain "the output of '$2' does not match $1"
	! grep -q softnic "$tmp/out" || complain "the output of '$2' shows where the tree really is"
}

d=/sys/class/infiniband/mlx5_0
says '^mlx5_0$' 'ls /sys/class/infiniband'
says 'mlx5_0 -> .*devices/pci' 'ls -l /sys/class/infiniband'
says '^1: CA$' "cat $d/node_type"
says '^/sys/devices/pci5043:00/5043:00:01.0$' "realpath $d/device"
says '^/sys/devices/pci5043:00/5043:00:01.0/infiniband/mlx5_0$' "readlink -f $d"
says '^/sys/class/infiniband/mlx5_0/ports/1$' "cd $d/ports/1 && pwd"
says '^RoCE v2$' "cd $d/ports/1/gid_attrs/types && cat 3"
says 'character special' 'stat -c %F /dev/infiniband/uverbs0'
says '^yes$' 'test -c /dev/infiniband/uverbs0 && test -d /sys/class/infiniband_verbs/uverbs0/device && echo yes'
says 'gids/3$' "find $d/ -name 3"
says '^4: ACTIVE$' "cat $d/ports/*/state"
says '^0xffff$' "cat $d/ports/1/pkeys/0"
says '^0$' "cat $d/ports/1/hw_counters/out_of_sequence $d/ports/1/counters/port_xmit_wait"
says '^15b3:1021$' "echo \$(cut -c 3- $d/device/vendor):\$(cut -c 3- $d/device/device)"
says '^lo$' "ls $d/device/net"
says '^/sys/bus/pci$' "readlink -f $d/device/subsystem"
# Without a GPU driver, the module that registers GPU memory (nvidia_peermem) is not shown.
[ -e /dev/nvidiactl ] || [ -e /sys/module/nvidia_peermem ] ||
	says '^absent$' 'test -e /sys/module/nvidia_peermem/version || echo absent'
# To programs with CUDA it is shown, unless --peermem 0 is given.
if [ -e "$B/standin/libcuda.so.1" ]; then
	for peermem in 1 0; do
		shown=$(LD_PRELOAD=$(realpath "$B")/standin/libcuda.so.1 timeout 20 "$run" --peermem $peermem -- \
			sh -c 'test -e /sys/module/nvidia_peermem && echo 1 || echo 0' 2>&1)
		[ "$shown" = $peermem ] || complain "--peermem $peermem: module shown: $shown"
	done
fi
says 'mlx5_0' 'bash -c "echo /sys/class/infiniband/*"'
if command -v python3 >/dev/null; then
	says "^\['mlx5_0'\] /sys/class/infiniband/mlx5_0$" \
		'python3 -c "import glob, os; print(os.listdir(\"/sys/class/infiniband\"), *glob.glob(\"/sys/class/infiniband/*\"))"'
	says '^/sys/devices/pci5043:00/5043:00:01.0$' \
		"python3 -c \"import os; print(os.path.realpath('$d/device'))\""
fi
says '^rocm|^lo$|^$' "true; echo"
# All other paths of /sys are the machine's.
[ "$(timeout 20 "$run" -- ls /sys/class/net)" = "$(ls /sys/class/net)" ] || complain "/sys/class/net differs"

# Every option that --help lists is accepted, with a value if --help shows one. options.sh has the
# values that are refused.
while read -r option value _; do
	case $value in
	ADDRESS) arg=127.9.8.7 ;;
	KIND)
		case $option in
		--dmabuf-pcie) arg=fault ;;
		--ts-format) arg=both ;;
		--dma) arg=qp ;;
		*) arg=ethernet ;;
		esac ;;
	NAME) arg=cx7 ;;
	ID)
		case $option in
		--pci-device) arg=0x1021 ;;
		*) arg=1 ;;
		esac ;;
	FILE | FOLDER) arg=$tmp/made ;;
	BYTES*:whole*) arg=64k ;;
	BYTES) arg=1024 ;;
	VERSION) arg=1.2.3 ;;
	LIST) arg=127.9.8.8 ;;
	IFNAME) arg=lo ;;
	[A-Z]*)
		case $option in
		--dma-max) arg=21 ;;
		*) arg=1 ;;
		esac ;;
	*) arg= ;; # no value, or an optional one
	esac
	rm -rf "$tmp/made"
	timeout 20 "$run" "${option%%\[*}${arg:+=$arg}" -- true >"$tmp/out" 2>&1 || complain "option $option $arg"
	options=$((${options:-0} + 1))
done < <("$run" --help | sed -n -E 's/^  (--[^ ]+)( ([^ ]+))?  .*/\1 \3/p')
[ "${options:-0}" -gt 20 ] || complain "--help lists only ${options:-0} options"

# A killed run leaves its folder. The next run removes that folder, and no other.
[ -w /dev/shm ] && base=/dev/shm || base=/tmp
tree=$(env -u TMPDIR "$run" -- sh -c 'echo "$SOFTNIC_SYSFS"')
[[ $tree == $base/softnic.* ]] || complain "without TMPDIR the sysfs tree is $tree, expected in $base"
entries() { find "$TMPDIR" -mindepth 1 -maxdepth 1 | wc -l; }
export TMPDIR=$tmp/t
mkdir "$TMPDIR"
bash -c '"$1" -- sh -c "kill -KILL \$PPID"; true' - "$run" 2>/dev/null
[ "$(entries)" = 1 ] || complain "expected one folder after a killed run, found $(entries)"
# The outer run is alive while the inner one removes folders.
"$run" -- sh -c '"$1" -- true; ls "$TMPDIR" | wc -l' sh "$run" >"$tmp/out"
[ "$(cat "$tmp/out")" = 1 ] || complain "expected only the folder of the running softnic-run in TMPDIR"
[ "$(entries)" = 0 ] || complain "a run left files in TMPDIR"
[ $bad != 0 ] || echo "paths.sh: coreutils, shells and Python find the NIC; ${options:-0} options; folders of killed runs are removed"
exit $bad
