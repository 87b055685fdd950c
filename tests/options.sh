#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# softnic-run refuses each malformed or out-of-range value of each option that its --help
# lists, and of each SOFTNIC_* variable, with a message that names it and exit status 2, and
# creates nothing. A process that loads the NIC without softnic-run reports the variable once
# and does not get the device. The library reports an invalid DOCA_GPUNETIO_LOG, and its log
# lines have the documented format.
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
run=$PWD/$B/bin/softnic-run
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export TMPDIR=$tmp/t
mkdir "$TMPDIR"
bad=0 checks=0
complain() { echo "options.sh: $1"; sed 's/^/    /' "$tmp/err" | tail -n 4; bad=1; }

refused() { # text of the message, then the command line: refused before anything is created
	local text=$1
	shift
	checks=$((checks + 1))
	timeout 20 "$@" -- touch "$tmp/ran" >"$tmp/out" 2>"$tmp/err"
	local rc=$?
	[ $rc = 2 ] || complain "exit status $rc instead of 2: ${*/#"$run"/softnic-run}"
	if [ "$(wc -l <"$tmp/err")" != 1 ] || ! grep -qF -- "softnic-run: $text" "$tmp/err"; then
		complain "the message is not one line with: $text"
	fi
	[ ! -e "$tmp/ran" ] || { complain "COMMAND ran: ${*/#"$run"/softnic-run}"; rm "$tmp/ran"; }
}

# ---- every option, every variable ----

nonsense=("" abc -1 nan "0,01" 1% " 1" "1 " 1x 0x 99999999999999999999999999 +1 1:)
declare -A variables
options=0
while read -r option value _; do
	name=${option#--}
	name=${name%%\[*}
	case $option in --no-preload | --list-models | --version | --help) continue ;; esac
	options=$((options + 1))
	var=${name^^}
	[ "$value" != FRACTION ] || var+=-PPM
	var=SOFTNIC_${var//-/_}
	case $option:$value in
	*:FILE | *:FOLDER | *=FILE*)
		variables[$var]=path
		refused "invalid --$name \"\" (expected " "$run" "--$name="
		refused "invalid --$name \"/nonexistent/x/y\" (cannot write " "$run" "--$name=/nonexistent/x/y"
		refused "invalid $var=\"/nonexistent/x/y\" (cannot write " env "$var=/nonexistent/x/y" "$run" ;;
	*:[A-Z]*)
		variables[$var]=value
		for v in "${nonsense[@]}"; do
			refused "invalid --$name \"$v\" (expected " "$run" "--$name" "$v"
		done
		refused "invalid $var=\"abc\" (expected " env "$var=abc" "$run" ;;
	*)
		variables[$var]=value
		refused "option --$name takes no value: \"--$name=1\"" "$run" "--$name=1"
		refused "invalid $var=\"abc\" (expected 0 or 1)" env "$var=abc" "$run" ;;
	esac
done < <("$run" --help | sed -n -E 's/^  (--[^ ]+)( ([^ ]+))?  .*/\1 \3/p')
[ $options -gt 40 ] || complain "--help lists only $options options"

# ---- ranges ----

while read -r option values; do
	for v in $values; do
		refused "invalid $option \"$v\" (expected " "$run" "$option" "$v"
	done
done <<'END'
--loss 1.1 -0.1 inf 0x1p-1 1e-7 .
--corrupt-ppm 1000001
--mtu 255 4097 99999
--fail-cmd foo 3: 3:0 3:256 3:5: 3:5:4294967296 3:5:6:7 :5 4294967296
--fail-ioctl 4294967296
--no-dbr yes 2
--seed 18446744073709551616
--delay-us 60000001
--stall 0:0 0:10 10:10 10:5 10: 1:4000000 1:2:3
--vlan 4095 5000
--page-size 2k 3k 128k 5000 4kk 4k: 4k:half 18446744073709555712
--lag 16 2:none 2: x
--events 0x10000000000000000 Legacy
--pci-device 0 0x10000 0xffff 1021h 1021 0x1010 0xa2cf
--fw-ver 1.2 1.2.3.4 1.2.65536 1..3 1.2.3a 0x1.2.3 1.0x2.3
--model cx9 CX7
--ip 300.1.1.1 127.0.0 fe80::1 ff02::1 0.0.0.0 :: localhost
--link-layer token-ring
--eth-peers 10.0.0.1, ,10.0.0.1 10.0.0.1,,10.0.0.2 10.0.0.1,10.0.0.1 ff02::1
--eth-vni 16777216
--eth-mtu 63 9217
--eth-if nosuchif longerthan16bytes lo,lo
--wait-on-time 2
--ts-format none
--dma rc
--dma-max 5 32
--dmabuf-pcie f
END
refused 'invalid --ip "203.0.113.7" (no interface of this machine has this address)' "$run" --ip 203.0.113.7
refused 'invalid --ip "127.1.255.1" (expected an address whose last 16 bits' "$run" --link-layer infiniband --ip 127.1.255.1
many=$(printf '1.1.1.%s,' {1..17})
many=${many%,}
refused 'invalid --eth-peers "1.1.1.1,1.1.1.2,' "$run" --eth-peers "$many"
refused 'invalid --eth-peers "::2" (expected IPv4 addresses' "$run" --ip 127.0.0.1 --eth-peers ::2
refused 'invalid SOFTNIC_ETH_PEERS="127.0.0.1" (expected IPv6' env SOFTNIC_ETH_PEERS=127.0.0.1 "$run" --ip ::1
refused "invalid --pcap \"$tmp\" (cannot write this file: Is a directory)" "$run" --pcap "$tmp"
refused "invalid --stats-dir \"$tmp/err\" (cannot write to this folder: Not a directory)" "$run" --stats-dir "$tmp/err"
refused "invalid --stats-dir \"$tmp/a/b\" (cannot write to this folder: No such" "$run" --stats-dir "$tmp/a/b"

for v in "$tmp/new/" "$tmp/t/"; do
	refused "invalid --pcap \"$v\" (cannot write this file: Is a directory)" "$run" --pcap "$v"
	refused "invalid --trace \"$v\" (cannot write this file: Is a directory)" "$run" --trace="$v"
done
ln -s nothing "$tmp/dangling"
refused "invalid --stats-dir \"$tmp/dangling\" (cannot write to this folder: " "$run" --stats-dir "$tmp/dangling"
refused 'invalid --stats-dir "/proc/new" (cannot write to this folder: ' "$run" --stats-dir /proc/new
refused 'invalid --stats-dir "/proc" (cannot write to this folder: ' "$run" --stats-dir /proc
for v in . ..; do
	refused "invalid SOFTNIC_NAME=\"$v\" (expected " env "SOFTNIC_NAME=$v" "$run"
done
long=$(printf '%0250d' 0)
mkdir -p "$tmp/$long"
refused "invalid TMPDIR=\"$tmp/$long\" (expected a path of at most " env "TMPDIR=$tmp/$long" "$run"
cut=$(printf '%064d' 0)...
refused "invalid --mtu \"$cut\" (expected an integer from 256 to 4096)" "$run" --mtu "$(printf '%03000d' 0)"
refused "invalid SOFTNIC_MTU=\"$cut\" (expected an integer from 256 to 4096)" env "SOFTNIC_MTU=$(printf '%03000d' 0)" "$run"
refused 'invalid --mtu "1 2 3" (expected an integer from 256 to 4096)' "$run" --mtu $'1\n2\t3'
refused "unknown option \"--a${cut:1:61}" "$run" "--a$(printf '%03000d' 0)"

# ---- the command line ----

refused 'unknown option "--nothing"' "$run" --nothing
refused 'unknown option "-x"' "$run" -x
refused 'ambiguous option "--los" (it can be --loss-ppm, --loss)' "$run" --los 0
refused 'option --no-preload takes no value' "$run" --no-preload=1
refused 'invalid --loss "--" (expected ' "$run" --loss
"$run" --loss >"$tmp/out" 2>"$tmp/err"
[ $? = 2 ] && grep -q '^softnic-run: option --loss needs a value$' "$tmp/err" || complain "an option without its value"
for args in "" "--" "--stats --"; do
	# shellcheck disable=SC2086 # several arguments
	"$run" $args >"$tmp/out" 2>"$tmp/err"
	[ $? = 2 ] && grep -q '^softnic-run: COMMAND is missing' "$tmp/err" || complain "no COMMAND: softnic-run $args"
done
[ -z "$(ls -A "$TMPDIR")" ] || complain "a refused run left files in TMPDIR"

# ---- accepted values ----

while read -r option values; do
	for v in $values; do
		timeout 20 "$run" "$option" "$v" -- true 2>"$tmp/err" || complain "refuses $option $v"
		[ ! -s "$tmp/err" ] || complain "prints a message for $option $v"
	done
done <<'END'
--loss 0 1 1.0 .5 0.000001 1e-3 1e+0 5E-1 0.01
--fail-cmd 0 3 3:0x5 3:5:0xabc
--seed 0 0xffffffffffffffff
--mtu 256 1024 4096
--stall 0 5 0.5:20 1e1:2e2
--page-size 4k 64K 8192 65536:whole 0x1000
--lag 0 2 2:hash 15:inactive
--events legacy 0 0x20
--ip 127.9.8.7 ::1
--eth-peers 127.0.0.1 127.0.0.1,127.0.0.2 1.1.1.1,1.1.1.2,1.1.1.3,1.1.1.4,1.1.1.5,1.1.1.6,1.1.1.7,1.1.1.8,1.1.1.9,1.1.1.10,1.1.1.11,1.1.1.12,1.1.1.13,1.1.1.14,1.1.1.15,1.1.1.16
--eth-vni 0 16777215
--eth-mtu 64 9216
--eth-if lo
--wait-on-time 0 1
--dma none sq qp
--dma-max 6 31
--fw-ver 22.27.0090
--pci-device 4129 0x1011 0x1027 0xa2df
END
# A relative path is one of the folder in which softnic-run started.
mkdir "$tmp/here"
(cd "$tmp/here" && timeout 20 "$run" --stats-dir s --evidence e --pcap p --trace=t -- bash -c 'cd / && ls /dev/infiniband \
	>/dev/null && echo $SOFTNIC_STATS_DIR $SOFTNIC_EVIDENCE $SOFTNIC_PCAP $SOFTNIC_TRACE') >"$tmp/out" 2>"$tmp/err"
[ "$(cat "$tmp/out")" = "$tmp/here/s $tmp/here/e $tmp/here/p $tmp/here/t" ] || complain "relative paths: $(cat "$tmp/out")"
# A run inside of another one has an address and a folder of its own, unless options set them.
inner=(timeout 20 "$run" -- printenv SOFTNIC_IP SOFTNIC_STATS_DIR)
timeout 20 "$run" -- bash -c 'printenv SOFTNIC_IP SOFTNIC_STATS_DIR; "$@"; "$@"' sh "${inner[@]}" >"$tmp/out" 2>"$tmp/err"
[ "$(sort -u "$tmp/out" | wc -l)" = 6 ] && [ ! -s "$tmp/err" ] || complain "nested runs share: $(paste -sd ' ' "$tmp/out")"
timeout 20 "$run" --ip 127.9.8.7 --stats-dir "$tmp/here" -- bash -c '"$@"' sh "${inner[@]}" >"$tmp/out" 2>"$tmp/err"
[ "$(paste -sd ' ' "$tmp/out")" = "127.9.8.7 $tmp/here" ] || complain "a nested run ignores options: $(paste -sd ' ' "$tmp/out")"
# --strict counts the violations of its own run only.
mkdir "$tmp/strict"
echo '{"pid": 1, "run": "softnic.AAAAAA", "violations": 3, ' >"$tmp/strict/1.json"
echo '{"pid": 2, "violations": 3, ' >"$tmp/strict/2.json"
timeout 20 "$run" --strict --stats-dir "$tmp/strict" -- true 2>"$tmp/err" || complain "--strict counts files of other runs"
timeout 20 "$run" --strict --stats-dir "$tmp/strict" -- bash -c \
	'printf "{\"pid\": 3, \"run\": \"%s\", \"violations\": 3, \n" $SOFTNIC_RUN >$SOFTNIC_STATS_DIR/3.json' 2>"$tmp/err"
[ $? = 86 ] && grep -q ': 3 violations counted$' "$tmp/err" || complain "--strict does not count a file of its run"
(cd "$tmp" && timeout 20 "$run" --stats-dir json -- bash -c 'cd /; ibv_devinfo; echo $SOFTNIC_RUN') >"$tmp/out" 2>"$tmp/err"
grep -q "^{\"pid\": [0-9]*, \"run\": \"$(tail -n 1 "$tmp/out")\", \"violations\": 0, " "$tmp"/json/*.json ||
	complain "the counters do not name the run"
ppm=$("$run" --loss 0.3 -- printenv SOFTNIC_LOSS_PPM)
[ "$ppm" = 300000 ] || complain "--loss 0.3 sets $ppm parts per million"
SOFTNIC_MTU='' SOFTNIC_IP='' SOFTNIC_STATS_DIR='' timeout 20 "$run" -- true 2>"$tmp/err" || complain "refuses empty variables"
SOFTNIC_LOSS=0.5 timeout 20 "$run" -- true 2>"$tmp/err" &&
	grep -q '^softnic-run: ignoring SOFTNIC_LOSS: unknown variable' "$tmp/err" || complain "no warning of an unknown variable"

# ---- without softnic-run ----

for var in "${!variables[@]}"; do
	checks=$((checks + 1))
	v=abc
	[ "${variables[$var]}" = value ] || continue
	# The message is printed once, although the device is opened twice.
	env "$var=$v" LD_PRELOAD="$PWD/$B/lib/libsoftnic.so" timeout 20 bash -c \
		'for i in 1 2; do { exit 0; } <>/dev/infiniband/uverbs0; done; exit 1' >"$tmp/out" 2>"$tmp/err" &&
		complain "the device is opened in spite of $var=$v"
	[ "$(grep -c "^softnic\[[0-9]*\]: invalid $var=\"$v\" (expected .*), not opening the device$" "$tmp/err")" = 1 ] ||
		complain "$var=$v is not reported once"
done
# ---- the library's log ----

# Each line of a program has the format that the manual page gives, and an invalid level is reported once.
line=$(sed -n '/^\^/,/^\.Ed/{/^\.Ed/!p}' core/gdaki.7 | paste -sd ' ')
for level in 7 debug DEBUG abc 9 -1 7x "$(printf '%03000d' 0)"; do
	shown=$level
	[ ${#level} -le 64 ] || shown=$cut
	DOCA_GPUNETIO_LOG=$level timeout 20 "$run" -- "$B/bin/hello_put" >"$tmp/out" 2>"$tmp/err" || complain "hello_put fails"
	grep -v -E "$line" "$tmp/err" >"$tmp/other" && complain "the log has other lines: $(head -n 1 "$tmp/other")"
	reports=$(grep -c " WARNING log.c:[0-9]* gdk_log: ignoring DOCA_GPUNETIO_LOG=\"$shown\" (expected 0..7, or " "$tmp/err")
	case $level in
	7 | debug | DEBUG) [ "$reports" = 0 ] && grep -q ' INFO ' "$tmp/err" || complain "level $level is not accepted" ;;
	*) [ "$reports" = 1 ] || complain "level $shown is reported $reports times" ;;
	esac
done
[ -z "$(ls -A "$TMPDIR")" ] || complain "files are left in TMPDIR"
[ $bad != 0 ] || echo "options.sh: $options options, $checks refused values"
exit $bad
