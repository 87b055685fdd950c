#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# gpunetio_doctor on software NICs with different properties and faults, with the stand-in of the
# CUDA driver as a GPU, and on constructed ports: each check reports what is wrong and how to
# repair it, and the exit status follows from it. tests/doctor_host.py tests the other checks.
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
doctor=$B/bin/gpunetio_doctor run=$PWD/$B/bin/softnic-run
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0 checks=0

complain() {
	echo "doctor.sh: $title: $1"
	sed 's/^/    /' "$tmp/out"
	bad=1
}

# Each line of a check gets its scope in front, and a fix follows its line.
lines() {
	awk '/^[a-z]/ { scope = $0; next }
		/^ +fix: / { printf " %s", $0; next }
		{ printf "\n%s|%s", scope, $0 }
		END { print "" }' "$tmp/out" | tr -s ' ' >"$tmp/lines"
}

ended() { # exit status, command: runs it and keeps its output
	local want=$1 got=0
	shift
	timeout 60 "$@" >"$tmp/out" 2>&1 </dev/null || got=$?
	[ "$got" = "$want" ] || complain "exit status $got instead of $want"
	lines
}

nic() { # title, exit status, options of softnic-run, options of the doctor
	title=$1
	# shellcheck disable=SC2086 # lists of options
	ended "$2" "$run" --strict $3 -- "$doctor" $4
}

recorded() { # title, exit status, options of the doctor
	title=$1
	# shellcheck disable=SC2086 # a list of options
	ended "$2" "$doctor" --root "$tmp/root" $3
}

# The number of a call or command depends on the version of libmlx5.
fault() { # title, exit status, option of softnic-run with N, first and last number, arguments of has
	title=$1
	local want=$2 option=$3 first=$4 last=$5 n
	shift 5
	checks=$((checks + 1))
	for ((n = first; n <= last; n++)); do
		timeout 60 "$run" "${option/N/$n}" -- "$doctor" >"$tmp/out" 2>&1 </dev/null
		[ $? = "$want" ] || continue
		lines
		! grep -qE -- "^$1\| ?$2 $3 .*$4" "$tmp/lines" || return
	done
	complain "no $option from $first to $last shows $1: $2 $3 $4"
}

has() { # scope, level, check, pattern of the text and of the fix
	checks=$((checks + 1))
	grep -qE -- "^$1\| ?$2 $3 .*$4" "$tmp/lines" || complain "no line of $1: $2 $3 $4"
}

lacks() { # scope, check
	checks=$((checks + 1))
	! grep -qE -- "^$1\| ?[A-Za-z]+ $2 " "$tmp/lines" || complain "a line of $1: $2"
}

# ---- the software NIC ----

port="mlx5_0 port 1" cpu="gpu host \+ mlx5_0" gpu="gpu 0000:8a:00.0 \+ mlx5_0"
no_dbr="the device does not support DBREC-less QPs"

nic "default" 0 "" ""
has mlx5_0 ok model 'ConnectX-7 \(15b3:1021\)'
has mlx5_0 note firmware '28\.43\.1000, PSID GDK0000000001'
has mlx5_0 ok device-file 'uverbs0 is readable'
has mlx5_0 ok devx 'opens with DEVX'
has mlx5_0 note uar-nc-dedicated 'cannot create a dedicated'
has mlx5_0 ok uar-nc ''
has mlx5_0 ok uar-blueflame ''
has mlx5_0 ok no-dbr 'supports'
has mlx5_0 ok copy-engine 'copies up to 2147483648 bytes a request'
has mlx5_0 ok queue-pair ''
lacks mlx5_0 bond
has "$port" note link-layer 'Ethernet, 100 Gb/sec.* interface '
has "$port" ok state 'ACTIVE, LinkUp'
has "$port" ok gid 'use -l 3: RoCE v2, 127\.[0-9]+\.[0-9]+\.[0-9]+, '
has "$port" ok mtu '4096 bytes'
has "$cpu" ok queue-memory 'in host memory'
has "$cpu" ok auto 'AUTO takes GPU_SM_DB'
has "$port" ok loopback 'arrives \(GID index 3\)'
for h in cpu-proxy gpu-sm-db gpu-sm-bf gpu-sm-no-dbr; do has "$cpu" ok $h 'usable: '; done
has summary "gpu host \+ $port: works; AUTO takes" GPU_SM_DB: ''

nic "an older model" 0 "--model cx5 --mtu 1024" ""
has mlx5_0 warn model 'ConnectX-5.*older.*fix: use a ConnectX-6 Dx or newer'
has mlx5_0 note no-dbr 'no queue pairs without DBREC'
has mlx5_0 note copy-engine 'no copy engine.*doca_dma copies by RDMA writes'
has "$cpu" note gpu-sm-no-dbr "not usable: $no_dbr"
has "$port" warn mtu '1024 bytes, the device can do more.*fix: '

nic "a handler that the device lacks" 1 "--no-dbr 0" "-p 10"
has "$cpu" FAIL gpu-sm-no-dbr "not usable: $no_dbr.*fix: use another handler"
has summary "gpu host \+ $port: cannot work" "\($cpu:" 'gpu-sm-no-dbr'

nic "a handler by name" 0 "" "-d mlx5_0 -i 1 -p 1"
has summary "gpu host \+ $port: works;" CPU_PROXY: ''

nic "InfiniBand" 0 "--link-layer infiniband --grh-required" ""
has "$port" note link-layer 'InfiniBand'
has "$port" ok lid 'LID [0-9]+, subnet manager at LID 1'
has "$port" note grh 'requires a GRH'
lacks "$port" gid

nic "a bond" 0 "--lag 2" ""
has mlx5_0 note bond '2 ports, distributes by queue'

fault "no DEVX" 1 --fail-ioctl=N 1 9 mlx5_0 FAIL devx \
	'opens without DEVX only.*fix: .*mlxconfig -d [0-9a-f:.]+ set UCTX_EN=1'
lacks "$cpu" auto
lacks "$port" loopback
fault "a refused query of capabilities" 1 --fail-cmd=N:0x3:0x1234 1 9 mlx5_0 FAIL devx \
	'firmware refused QUERY_HCA_CAP .*syndrome 0x00001234.*fix: '
fault "a refused queue pair" 1 --fail-cmd=N:0x5:0x65b500 5 15 mlx5_0 FAIL queue-pair \
	'firmware refused CREATE_QP .*syndrome 0x0065b500.*fix: '
fault "the state of the bond is unknown" 0 --fail-cmd=N 8 20 mlx5_0 unknown bond 'cannot be queried: .*QUERY_'
fault "a refused transition" 1 --fail-ioctl=N 25 45 "$port" FAIL loopback \
	'cannot be connected: .*INIT2RTR_QP .* did not reach'
fault "an object is not destroyed" 0 --fail-ioctl=N 30 50 '[a-z0-9_ +]+' warn cleanup \
	'cannot (close|deregister).*fix: '

title="packets are lost"
timeout 60 "$run" --loss 1 -- "$doctor" >"$tmp/out" 2>&1 </dev/null || complain "exit status $?"
lines
has "$port" warn loopback 'fails: transport retries exceeded .*fix: no response'

nic "unknown device" 1 "" "-d mlx5_9"
has mlx5_9 FAIL present 'no RDMA device .*fix: .*ibv_devices'
nic "unknown port" 1 "" "-i 2"
has "mlx5_0 port 2" FAIL present 'the device has 1 port'
nic "the only port" 0 "" "-i 1"

# The device file of a user without privileges.
user=()
[ "$(id -u)" != 0 ] || user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
if "${user[@]}" true; then
	title="no access to the device file"
	mkdir -m 777 "$tmp/user"
	mkdir "$tmp/bin" "$tmp/lib"
	cp "$run" "$doctor" "$tmp/bin" # the user may have no access to the folder of the build
	cp "$B/lib/libsoftnic.so" "$tmp/lib"
	chmod -R a+rX "$tmp"
	# shellcheck disable=SC2016 # the inner shell expands it
	TMPDIR=$tmp/user ended 1 "${user[@]}" "$tmp/bin/softnic-run" -- sh -c \
		'chmod 0 "$TMPDIR"/softnic.*/sys/dev/infiniband/uverbs0; "$1"' sh "$tmp/bin/gpunetio_doctor"
	has mlx5_0 FAIL device-file 'Permission denied for user [0-9]+ .*fix: run as root.*MODE="0666"'
	lacks mlx5_0 devx
	chmod 0 "$tmp/lib"
	ended 127 "${user[@]}" "$tmp/bin/softnic-run" -- true
	grep -q "^softnic-run: cannot read .*/lib/libsoftnic.so: Permission denied" "$tmp/out" ||
		complain "softnic-run does not tell that it cannot read the library"
	chmod 755 "$tmp/lib"
fi

# ---- a GPU: the stand-in of the CUDA driver ----

export LD_LIBRARY_PATH=$PWD/$B/standin STANDIN_CUDA_POINTERS=1
nic "GPU memory by dmabuf" 0 "--dmabuf --peermem 0" "-g 8A:00.0"
has "gpu 0000:8a:00.0" ok cuda-open ''
has "$gpu" ok dmabuf ''
has "$gpu" note peer-memory 'cannot register GPU memory by its address'
has "$gpu" ok queue-memory 'in GPU memory, registered through a dmabuf'
has "$gpu" ok register-mapping 'mapped as device memory'
has "$gpu" ok auto 'AUTO takes GPU_SM_DB: the register page is mapped'

nic "GPU memory by peer memory" 0 "" "-g 8a:00.0"
has "$gpu" note dmabuf 'the NIC cannot register the dmabuf'
has "$gpu" ok peer-memory ''
has "$gpu" ok queue-memory 'registered by peer memory; dmabuf: '

nic "no way to register GPU memory" 1 "--peermem 0" "-g 8a:00.0"
has "$gpu" warn dmabuf 'fix: .*nvidia-peermem'
has "$gpu" warn peer-memory 'fix: .*nvidia-peermem'
has "$gpu" FAIL auto 'cannot create a queue pair: .*fix: .*GDAKI_QUEUE_MEM=cpu_gpu'

GDAKI_QUEUE_MEM=cpu_gpu nic "queues in host memory" 0 "--peermem 0" "-g 8a:00.0"
has "$gpu" note queue-memory 'pinned host memory'

STANDIN_CUDA_IOMEM=3 nic "no mapping of registers" 0 "--dmabuf" "-g 8a:00.0"
has "$gpu" warn register-mapping 'refused to register.*fix: .*PeerMappingOverride=1'
has "$gpu" warn auto 'AUTO takes CPU_PROXY'
has "$gpu" note gpu-sm-db 'not usable: .*fix: .*PeerMappingOverride=1'
STANDIN_CUDA_IOMEM=3 nic "a handler that needs the mapping" 1 "--dmabuf" "-g 8a:00.0 -p 2"
has "$gpu" FAIL gpu-sm-db 'not usable: .*fix: .*PeerMappingOverride=1'

nic "unknown GPU" 1 "" "-g 1:02:03.0"
has "gpu 0001:02:03.0" FAIL cuda-open 'not found.*fix: '
lacks "gpu 0001:02:03.0 \+ mlx5_0" auto

# A driver that blocks, and one that crashes.
printf '#include <%s.h>\n' unistd stdlib >"$tmp/hang.c"
cat >>"$tmp/hang.c" <<'C'
static void __attribute__((constructor)) hang(void)
{
	getenv("CRASH") ? abort() : (void)sleep(30);
}
C
${CC:-gcc} -shared -fPIC -o "$tmp/libcuda.so.1" "$tmp/hang.c" || exit 1
LD_LIBRARY_PATH=$tmp nic "a driver that blocks" 1 "" "-g 8a:00.0 -w 1"
has "gpu 0000:8a:00.0" FAIL cuda-open 'did not answer within 1 s.*fix: dmesg|a driver did not answer within 1 s'
CRASH=1 LD_LIBRARY_PATH=$tmp nic "a driver that crashes" 1 "" "-g 8a:00.0"
has "gpu 0000:8a:00.0" FAIL cuda-open 'ended by signal 6'
unset LD_LIBRARY_PATH STANDIN_CUDA_POINTERS

# ---- recorded ports ----

d=$tmp/root/sys/class/infiniband/mlx5_0 p=$tmp/root/sys/class/infiniband/mlx5_0/ports/1
put() { # path, text
	mkdir -p "${1%/*}"
	echo "$2" >"$1"
}
gid() { # index, GID, type
	put "$p/gids/$1" "$2"
	put "$p/gid_attrs/types/$1" "$3"
	put "$p/gid_attrs/ndevs/$1" eth7
}
machine() { # an Ethernet port that works
	rm -rf "$tmp/root"
	put "$d/device/vendor" 0x15b3
	put "$d/device/device" 0x1023
	put "$d/fw_ver" 40.44.1036
	put "$p/state" "4: ACTIVE"
	put "$p/phys_state" "5: LinkUp"
	put "$p/link_layer" Ethernet
	put "$p/rate" "400 Gb/sec (4X NDR)"
	gid 0 fe80:0000:0000:0000:0000:0000:0000:0001 "IB/RoCE v1"
	gid 1 fe80:0000:0000:0000:0000:0000:0000:0001 "RoCE v2"
	gid 2 0000:0000:0000:0000:0000:ffff:c0a8:0105 "IB/RoCE v1"
	gid 3 0000:0000:0000:0000:0000:ffff:c0a8:0105 "RoCE v2"
	gid 4 2001:0db8:0000:0000:0000:0000:0000:0001 "RoCE v2"
	gid 5 0000:0000:0000:0000:0000:ffff:0a00:0001 "RoCE v2"
	gid 6 0000:0000:0000:0000:0000:0000:0000:0000 ""
	put "$tmp/root/sys/class/net/eth7/mtu" 9000
	put "$tmp/root/sys/class/net/eth7/flags" 0x1003
	put "$tmp/root/sys/class/infiniband_verbs/uverbs3/ibdev" mlx5_0
	put "$tmp/root/dev/infiniband/uverbs3" ""
}

machine
recorded "a port that works" 0 ""
has mlx5_0 ok model 'ConnectX-8'
has mlx5_0 note firmware '40\.44\.1036, PSID unknown'
has mlx5_0 ok device-file '/dev/infiniband/uverbs3 exists'
has "$port" ok state ACTIVE
has "$port" ok gid 'use -l 3: RoCE v2, 192\.168\.1\.5, eth7; also 5 \(10\.0\.0\.1, eth7\)'
has "$port" ok mtu '4096 bytes; interface eth7 has MTU 9000'
lacks mlx5_0 devx
has summary "gpu host \+ $port: no check failed;" no ''

for ((n = 100; n < 300; n++)); do
	put "$tmp/root/sys/class/infiniband/mlx5_$n/device/vendor" 0x15b3
	put "$tmp/root/sys/class/infiniband_verbs/uverbs$n/ibdev" mlx5_$n
	put "$tmp/root/dev/infiniband/uverbs$n" ""
	put "$tmp/root/dev/infiniband/umad$n" ""
done
recorded "many virtual functions" 0 "-d mlx5_0"
has host ok rdma-modules 'the kernel has 201 RDMA devices'
has host ok rdma-device-files '201 uverbs files'
has mlx5_0 ok device-file '/dev/infiniband/uverbs3 exists'

machine
printf '40\377\033[31m\n' >"$d/fw_ver"
recorded "bytes that are not printable" 0 ""
has mlx5_0 note firmware '40\?\?\[31m, PSID'

rm "$p"/gids/[35]
put "$p/gids/3" 0000:0000:0000:0000:0000:0000:0000:0000
put "$p/gids/5" 0000:0000:0000:0000:0000:0000:0000:0000
recorded "IPv6" 0 ""
has "$port" ok gid 'use -l 4: RoCE v2, 2001:'
rm "$p"/gids/4
recorded "link-local" 0 ""
has "$port" warn gid 'use -l 1: .*link-local.*fix: ip addr add ADDRESS/PREFIX dev eth7'
put "$p/gid_attrs/types/1" "IB/RoCE v1"
recorded "RoCE v1" 0 ""
has "$port" warn gid 'only RoCE v1: -l 0 .*fix: enable RoCE v2'
rm -r "$p/gids"
recorded "no GID" 1 ""
has "$port" FAIL gid 'no GID.*fix: ip link set dev eth7 up; ip addr add'

machine
put "$tmp/root/sys/class/net/eth7/mtu" 1500
put "$p/state" "1: DOWN"
put "$p/phys_state" "2: Polling"
recorded "a cable is missing" 1 ""
has "$port" FAIL state 'DOWN, not ACTIVE; the link is Polling.*fix: check cable and switch: mlxlink -d mlx5_0 -p 1'
has "$port" warn mtu '1024 bytes.*MTU 1500.*fix: ip link set dev eth7 mtu 9000.*4192'
has summary "gpu host \+ $port: cannot work" '\(mlx5_0 port 1:' 'state'
put "$tmp/root/sys/class/net/eth7/flags" 0x1002
recorded "an interface is down" 1 ""
has "$port" FAIL state 'fix: ip link set dev eth7 up'
put "$tmp/root/sys/class/net/eth7/flags" 0x1003
put "$p/phys_state" "3: Disabled"
recorded "a port is disabled" 1 ""
has "$port" FAIL state 'fix: mlxlink -d mlx5_0 -p 1 --port_state UP'
rm "$p/state" "$p/link_layer" "$d/fw_ver"
recorded "attributes are missing" 0 ""
has "$port" unknown state 'No such file'
has "$port" unknown link-layer 'No such file'
has mlx5_0 unknown firmware 'No such file'

for mtu in 4191:2048 4192:4096 1120:1024 1119:512; do
	machine
	put "$tmp/root/sys/class/net/eth7/mtu" ${mtu%:*}
	recorded "interface MTU ${mtu%:*}" 0 ""
	has "$port" '(warn|ok)' mtu "${mtu#*:} bytes"
done

machine
put "$p/link_layer" InfiniBand
put "$p/state" "2: INIT"
put "$p/lid" 0x0
put "$p/sm_lid" 0x0
recorded "no subnet manager" 1 ""
has "$port" FAIL state 'INIT, not ACTIVE.*fix: start a subnet manager'
has "$port" FAIL lid 'no LID.*fix: start a subnet manager'
put "$p/state" "4: ACTIVE"
put "$p/lid" 0x11
recorded "the subnet manager has ended" 0 ""
has "$port" warn lid 'LID 17, but no subnet manager.*fix: '

machine
rm "$tmp/root/dev/infiniband/uverbs3"
recorded "no device file" 1 ""
has mlx5_0 FAIL device-file 'uverbs3 does not exist.*fix: modprobe ib_uverbs'
put "$tmp/root/.dockerenv" ""
recorded "no device file in a container" 1 ""
has mlx5_0 FAIL device-file 'fix: start the container with --device /dev/infiniband'
put "$d/device/vendor" 0x14e4
recorded "another vendor" 1 ""
has mlx5_0 FAIL model '0x14e4:0x1023 is not an mlx5 device'
mv "$d" "${d%0}1"
mv "$tmp/root" "$tmp/two"
machine
mv "$tmp/two/sys/class/infiniband/mlx5_1" "$tmp/root/sys/class/infiniband/bnxt_re0"
recorded "one of two devices works" 0 ""
recorded "the other device" 1 "-d bnxt_re0"
rm -rf "$tmp/root/sys/class/infiniband"
recorded "no NIC" 1 ""
has host FAIL rdma-device 'no NIC of NVIDIA.*fix: .*ConnectX-6 Dx.*softnic-run'
put "$tmp/root/sys/bus/pci/devices/0000:17:00.0/vendor" 0x15b3
put "$tmp/root/sys/bus/pci/devices/0000:17:00.0/class" 0x020000
recorded "no driver" 1 ""
has host FAIL rdma-device 'there is a NIC at 0000:17:00.0.*fix: modprobe mlx5_ib'

# ---- JSON, command line ----

title=JSON
json() { # exit status, options of softnic-run, options of the doctor; a Python expression of o is true
	# shellcheck disable=SC2086 # lists of options
	ended "$1" "$run" $2 -- "$doctor" --json $3
	checks=$((checks + 1))
	python3 -c 'import json, sys
o = json.load(open(sys.argv[1]))
find = lambda scope, check: [c for c in o["checks"] if (c["scope"], c["check"]) == (scope, check)][0]
levels = {"ok", "note", "warn", "FAIL", "unknown"}
assert o["exit_status"] == int(sys.argv[2]) and o["version"]
assert all(set(c) == {"scope", "check", "level", "text", "fix"} and c["level"] in levels for c in o["checks"])
assert eval("(" + sys.argv[3] + ")")' "$tmp/out" "$1" "$4" || complain "not true: $4"
}
json 0 "" "" 'o["combinations"] == [{"gpu": "host", "device": "mlx5_0", "port": 1, "works": True, "failed": None,
	"handler": "GPU_SM_DB", "reason": "CPU threads write the register page directly"}]'
json 1 "--fail-ioctl 2" "" 'o["combinations"][0]["failed"] == {"scope": "mlx5_0", "check": "devx"} and
	"UCTX_EN" in find("mlx5_0", "devx")["fix"] and not o["combinations"][0]["works"]'
json 1 "" "-d none" 'find("none", "present")["level"] == "FAIL" and o["combinations"] == []'

machine
json 0 "" "--root $tmp/root" 'o["combinations"][0]["works"] is None and o["combinations"][0]["failed"] is None'

title="output that cannot be written"
for option in --timeout=60 --json; do
	# shellcheck disable=SC2016 # the inner shell expands it
	ended 1 sh -c '"$@" >/dev/full' sh "$doctor" --root "$tmp/root" $option
	grep -q 'error: cannot write the report' "$tmp/out" || complain "$option: no message"
done

title="files of equal names" # example.mk compiles both folders into one
: >"$tmp/out"
for f in examples/gpunetio_doctor/*.c; do
	checks=$((checks + 1))
	[ ! -e "examples/common/${f##*/}" ] || complain "examples/common/${f##*/} exists"
done

title="the command line"
refused() { # text, options
	local text=$1
	shift
	checks=$((checks + 1))
	ended 2 "$doctor" "$@"
	grep -qF -- "$text" "$tmp/out" || complain "no '$text'"
}
for v in '' gpu0 8A:00 '8A:00.0 ' 1:2:3:4.5 18A:00.0 8A:20.0 8A:00.8 10000:8A:00.0 8A:-1.0; do
	refused "invalid -g, --gpu '$v' (expected host or a PCI address" -g "$v"
done
for v in '' 0 256 x 1x; do
	refused "invalid -i, --port '$v' (expected a number from 1 to 255)" -i "$v"
done
for v in '' 3 x 11; do
	refused "invalid -p, --handler '$v' (expected 0, 1, 2, 6 or 10)" -p "$v"
done
refused "invalid -w, --timeout '0' (expected a number from 1 to 86400)" --timeout 0
refused "invalid -d, --device ''" -d ''
refused "invalid --root ''" --root ''
refused "invalid --root '$doctor' (expected a folder)" --root "$doctor"
refused "unknown argument 'x'" x
refused "see gpunetio_doctor -h" --nothing

[ $bad != 0 ] || echo "doctor.sh: $checks checks"
exit $bad
