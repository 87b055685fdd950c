#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# First mistakes with the examples: each malformed option value is refused with the option, the
# value and the expected values, and exit status 2; an unknown device is reported with those that
# are present.
set -u
cd "$(dirname "$0")/.." || exit 2
B="${B:-build}"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0 checks=0

expect() { # exit status, text that must be in the output, command
	local want=$1 text=$2 got=0
	shift 2
	checks=$((checks + 1))
	timeout 60 "$@" >"$tmp/out" 2>&1 </dev/null || got=$?
	[ "$got" = "$want" ] && grep -qF -- "$text" "$tmp/out" && return
	echo "examples.sh: $*: exit $got (expected $want), expected \"$text\", printed:"
	cat "$tmp/out"
	bad=1
}

demo=$B/bin/gpunetio_verbs_put_bw hello=$B/bin/hello_put nic="$B/bin/softnic-run --"

# option letter, name, expectation, wrong values
while IFS='|' read -r letter name expected values; do
	eval "set -- $values"
	for value; do
		text="invalid -$letter, --$name '$value' (expected $expected)"
		expect 2 "$text" "$demo" "-$letter" "$value"
		expect 2 "$text" "$demo" "--$name=$value"
	done
	expect 2 "see $demo -h" "$demo" "-$letter" # without a value
done <<'OPTIONS'
g|gpu|host or a PCI address such as 8A:00.0|'' gpu0 0 Host '8A:00' '8A:00.0 '
d|device|the name of an RDMA device|''
c|connect|the IP address or name of the server|''
p|handler|0, 1, 2, 6 or 10|'' 3 11 -1 abc 1x ' 1' 0x1 4294967296
e|scope|a number from 0 to 1|'' 2 -1 warp
i|iterations|a number from 1 to 2147483648|'' 0 -1 1e6 2048k 2147483649 99999999999999999999
s|size|a number from 1 to 1073741824|'' 0 -1 1k ' 1' +1 1073741825
t|threads|a number from 1 to 65536|'' 0 -1 65537 4,5
l|gid-index|a number from 0 to 255|'' 256 -1 fe80::1
m|payload|gpu or host|'' GPU cpu
P|tcp-port|a number from 1 to 65535|'' 0 65536 -1 http
w|timeout|a number from 1 to 86400|'' 0 86401 -1 1s 0.5
OPTIONS
expect 2 "invalid -i, --iterations 7 (expected a multiple of -t, --threads: 4)" "$demo" -i 7 -t 4
expect 2 "invalid -t, --threads 5 (expected a multiple of 32" "$demo" -g 8A:00.0 -e 1 -t 5 -i 10
expect 2 "invalid -m, --payload gpu with -g host" "$demo" -m gpu
expect 2 "unknown argument 'extra'" "$demo" extra
expect 2 "see $demo -h" "$demo" --no-such-option
expect 0 "Usage: $demo" "$demo" --help
expect 0 "Usage: $hello" "$hello" --help
expect 0 "Usage: $hello" "$hello" -h
expect 0 "hello_put (gdaki)" "$hello" --version
for args in extra --no-such-option "--help extra" "--version extra" "extra --help" ""; do
	eval "set -- ${args:-\'\'}"
	wrong=$1
	case $1 in --help | --version) wrong=$2 ;; esac
	expect 2 "unknown argument '$wrong' (expected none, --help or --version)" "$hello" "$@"
done

# shellcheck disable=SC2086 # $nic is a command with arguments
{
	expect 1 "no RDMA device has the name 'mlx5_9' (-d); present: mlx5_0 (port 1: active)" \
		$nic "$demo" -d mlx5_9
	expect 1 "invalid -l, --gid-index 200: the port has GIDs 0 to" $nic "$demo" -l 200
	expect 1 "GPU 0000:8a:00.0:" env LD_LIBRARY_PATH= $nic "$demo" -g 8A:00.0
}
if [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
	expect 1 "no RDMA device found: check with ibv_devices of rdma-core" "$hello"
	expect 1 "softnic-run -- PROGRAM" "$demo" -d mlx5_0
fi
[ $bad != 0 ] || echo "examples.sh: $checks wrong and right uses of the examples"
exit $bad
