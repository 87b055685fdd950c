#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Tests tests/hw/run with the software NIC instead of hardware: a comparison of the NIC
# with itself finds no difference, and one with a NIC of another configuration reports exactly
# the planted differences. Also tests error messages, time limits, the masking of reports, and
# the two programs that read traces.
# shellcheck disable=SC2086 # $run and $nap are single words
set -u
cd "$(dirname "$0")/.." || exit 2
export B="${B:-build}"
run=tests/hw/run nic=$B/bin/softnic-run bad=0
tmp=$(mktemp -d) || exit 2
. tests/lib/port.sh
trap 'rm -rf "$tmp"' EXIT

complain() { # text, file to show
	echo "hw.sh: $1"
	[ -z "${2:-}" ] || tail -n 30 "$2" | cut -c1-300 | sed 's/^/    /'
	bad=1
}

# Runs the command, with its output in $tmp/out, and checks its exit status.
ends() { # expected status, label, command...
	local want=$1 label=$2 rc
	shift 2
	timeout -k 5 120 "$@" >"$tmp/out" 2>&1
	rc=$?
	[ $rc = "$want" ] || complain "$label: exit status $rc, expected $want" "$tmp/out"
}

has() { # file, line that it must contain
	grep -qxF -- "$2" "$1" || complain "no line \"$2\" in $(basename "$1")" "$1"
}

# ---- errors before a test runs ----
ends 0 "--help" $run --help
ends 0 "--list" $run --list
ends 2 "an unknown device" $run --device nosuch0
devices=$(find /sys/class/infiniband -mindepth 1 -maxdepth 1 -printf '%f\n' 2>/dev/null | sort | paste -sd, | sed 's/,/, /g')
has "$tmp/out" "run: no RDMA device nosuch0 (found: ${devices:-none})"
ends 2 "an unknown device on a machine with another one" "$nic" -- $run --device nosuch0
has "$tmp/out" "run: no RDMA device nosuch0 (found: mlx5_0)"
ends 134 "GDAKI_TEST_DEVICE" "$nic" -- env GDAKI_TEST_DEVICE=nosuch0 "$B/hw/probe" caps
ends 2 "programs that are not built" env B="$tmp" $run --under "$nic --" --only hello_put
grep -q "^run: missing: $tmp/bin/gpunetio_verbs_put_bw, .*; run make build-tests$" "$tmp/out" ||
	complain "the message does not name the missing programs" "$tmp/out"

# ---- the same NIC on both sides: softnic-run makes this a machine with one device ----
ends 0 "compared with itself" "$nic" -- $run --device mlx5_0 --peer-device mlx5_0 --short \
	--output "$tmp/same" --keep "$tmp/kept"
has "$tmp/same" "tests: 11 the same, 0 differ"
has "$tmp/same" "values: of the device first, of the software NIC ($nic --) second"
grep -q "^PCI id: 0x15b3:" "$tmp/same" || complain "the report does not say which device" "$tmp/same"
for t in "probe errors" hello_put "put_bw loopback -p 0" "put_bw to the other device -p 1" test_caps; do
	has "$tmp/same" "== $t: the same"
done

# A masked report contains no private values: addresses, GIDs and MACs of the NIC, host name.
grep -q '^ *0040:.*\*\*\*\*' "$tmp/same" || complain "no masked byte in the report" "$tmp/same"
if grep -n -E "(^|[^.0-9])127\.[0-9]+\.|0x7f[0-9a-f]{8}|0000ffff 7f" "$tmp/same" >"$tmp/private" ||
	grep -n -w -F -e "$(hostname)" -e mlx5_0 "$tmp/same" >"$tmp/private"; then
	complain "private values in the report" "$tmp/private"
fi

cat >"$tmp/text" <<'END'
mlx5_0: GID fe80::1ff:fe23:4567:890a, MAC 02:00:7f:01:02:03, IP 10.1.2.3
put to address 0x7f0012340000 by key 0x1234, rkey 0xabc; 0x7f0012340000
stays: mlx5_01, libmlx5.so.1.24.44.0, firmware 28.43.1000, 11:04:47.4, 0x500004, 8a:00.0
END
cat >"$tmp/wanted" <<'END'
DEVICE: GID GID, MAC MAC, IP IP
put to address ** by key **, rkey **; 0x**
stays: mlx5_01, libmlx5.so.1.24.44.0, firmware 28.43.1000, 11:04:47.4, 0x500004, 8a:00.0
END
python3 -B -c 'import sys; sys.path.insert(0, "tests/hw"); import environment
sys.stdout.write(environment.Mask({"mlx5_0": "DEVICE"})(open(sys.argv[1]).read()))' "$tmp/text" >"$tmp/out"
cmp -s "$tmp/out" "$tmp/wanted" || complain "wrongly masked text:" "$tmp/out"

# ---- planted differences ----
ends 1 "a ConnectX-5, MTU 1024" $run --under "$nic --model cx5 --mtu 1024 --" --short \
	--only 'probe|hello' --output "$tmp/planted"
for line in "tests: 1 the same, 4 differ" \
	"send_dbr_mode_no_dbr_ext: 0, 1" \
	"port.active_mtu: 3, 5" \
	"QUERY_HCA_CAP: out HCA2_SEND_DBR_MODE_NO_DBR_EXT 0x0, 0x1 (2 times)" \
	"QP without DBREC: DOCA_ERROR_NOT_SUPPORTED, ok" \
	"== hello_put: 1 difference" \
	"INIT2RTR_QP (QP # (INIT to RTR)): in QPC_MTU 0x3, 0x5"; do
	has "$tmp/planted" "$line"
done
grep -q "^CREATE_QP, send_dbr_mode 1: status 0x3 syndrome 0x[0-9a-f]* errno [0-9]*, accepted$" "$tmp/planted" ||
	complain "the report does not name the refused command and its status" "$tmp/planted"

# ---- two hosts: a script instead of ssh starts the other side on this host ----
printf '#!/bin/sh\nshift\nexec sh -c "$*"\n' >"$tmp/ssh"
chmod +x "$tmp/ssh"
other_host() {
	next_port
	timeout 120 $run --device softnic --peer-host 127.0.0.1 --peer-device softnic --ssh "$tmp/ssh" \
		--port $port --short --only host --output "$tmp/remote"
}
other_host >"$tmp/out" 2>&1 || complain "another host" "$tmp/out"
has "$tmp/remote" "== put_bw to the other host -p 1: the same"
by_hand() {
	local rc
	next_port
	timeout 60 $run --serve --device softnic --short --port $port >"$tmp/serve" 2>&1 &
	timeout 120 $run --device softnic --peer-host 127.0.0.1 --peer-device softnic --manual --short \
		--only host --port $port --output "$tmp/remote"
	rc=$?
	wait $!
	return $rc
}
by_hand >"$tmp/out" 2>&1 || complain "another host, by hand" "$tmp/out"
grep -q "tests/hw/run --serve --port [0-9]* .*--device softnic --short$" "$tmp/out" ||
	complain "the command for the other host is not printed" "$tmp/out"

# ---- limits: one second each ----
ends 0 "--limits" env PROBE_LIMIT_S=1 $run --device softnic --limits --only limits --output "$tmp/limits"
has "$tmp/limits" "== probe limits: the same"

# ---- time limits ----
nap=60.$$
printf '#!/bin/sh\nsleep %s & sleep %s\n' $nap $nap >"$tmp/hang"
chmod +x "$tmp/hang"
begun=$SECONDS
ends 1 "a program that does not end" $run --under "$tmp/hang" --only hello_put --timeout 1 \
	--output "$tmp/hung"
[ $((SECONDS - begun)) -lt 30 ] || complain "a program that does not end took $((SECONDS - begun)) s"
has "$tmp/hung" "program: no end, exit 0"
pgrep -x -f "sleep $nap" >/dev/null && complain "a child of the program that timed out is still running"

# ---- decode and compare ----
trace=$tmp/kept/device/hello_put.trace
ends 0 decode tests/hw/decode --ifc '' "$trace"
has "$tmp/out" "    in  QPC_LOG_SQ_SIZE 0xb"
has "$tmp/out" "    in  ADS_RGID masked"
ends 0 "compare with itself" tests/hw/compare "$trace" "$trace"
has "$tmp/out" "0 differences"
sed '/RTR2RTS_QP/,/ end/s/00872000 00000000/00852000 00000000/' "$trace" >"$tmp/changed"
ends 1 "compare a changed trace" tests/hw/compare "$trace" "$tmp/changed"
has "$tmp/out" "RTR2RTS_QP (QP # (RTR to RTS)): in QPC_RETRY_COUNT 0x7, 0x5"
has "$tmp/out" "1 difference"
echo nonsense >"$tmp/nonsense"
ends 2 "a file that is not a trace" tests/hw/decode "$tmp/nonsense"

[ $bad = 0 ] && echo "hw.sh: $(sed -n 's/^tests: //p' "$tmp/same"); planted differences found"
exit $bad
