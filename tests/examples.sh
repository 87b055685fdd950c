#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# First mistakes with the examples, and what else goes wrong between a server and a client. Each
# malformed option value is refused with the option, the value and the expected values, and exit
# status 2. A device that is unknown or cannot be opened, a foreign service on the port, another
# program or version, an unreachable, vanished or failed peer each get a message that names it.
# Ctrl-C at either side, -D, IPv6 and sweeps end with validated data.
set -u
cd "$(dirname "$0")/.." || exit 2
. tests/lib/port.sh
B="${B:-build}"
tmp=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill -9 $server 2>/dev/null; rm -rf "$tmp"' EXIT
bad=0 checks=0

fails() { # what, files...
	echo "examples.sh: $1"
	shift
	for f; do sed "s/^/    ${f##*/}: /" "$f"; done
	bad=1
}

expect() { # exit status, text that must be in the output, command
	local want=$1 text=$2 got=0
	shift 2
	checks=$((checks + 1))
	timeout 60 "$@" >"$tmp/out" 2>&1 </dev/null || got=$?
	[ "$got" = "$want" ] && grep -qF -- "$text" "$tmp/out" && return
	fails "$*: exit $got (expected $want), expected \"$text\", printed:" "$tmp/out"
}

demo=$B/bin/gpunetio_verbs_put_bw hello=$B/bin/hello_put run=$B/bin/softnic-run nic="$B/bin/softnic-run --"

# The programs that have the common options.
programs=()
for p in "$B"/bin/gpunetio_verbs_*; do
	! "$p" --help 2>/dev/null | grep -q -- --tcp-port || programs+=("$p")
done
[ "${programs[0]:-}" ] || fails "no program has the common options"

# ---- options ----

# option letter (or -), name, expectation, wrong values. put_bw is tried with all values and both
# names of the option, the other programs with the first two values. A program may lack an option.
while IFS='|' read -r letter name expected values; do
	for p in "${programs[@]}"; do
		eval "set -- $values"
		shown="-$letter, --$name"
		[ "$letter" != - ] || shown=--$name
		if ! "$p" --help | grep -q -- "--$name "; then
			[ "$p" != "$demo" ] || fails "put_bw lacks --$name"
			expect 2 "see $p -h" "$p" "--$name=1"
			continue
		fi
		[ "$p" = "$demo" ] || set -- "${@:1:2}"
		for value; do
			text="invalid $shown '$value' (expected $expected"
			expect 2 "$text" "$p" "--$name=$value"
			[ "$p" = "$demo" ] && [ "$letter" != - ] && expect 2 "$text" "$p" "-$letter" "$value"
		done
		[ "$p" != "$demo" ] || expect 2 "see $p -h" "$p" "--$name" # without a value
	done
done <<'OPTIONS'
g|gpu|host or a PCI address such as 8A:00.0)|'' gpu0 0 Host '8A:00' '8A:00.0 '
d|device|the name of an RDMA device)|''
c|connect|the IP address or name of the server)|''
p|handler||'' 3 11 -1 abc 1x ' 1' 0x1 4294967296
r|send-dbr-mode|a number from 0 to 2)|'' 3 -1 no
e|scope|a number from 0 to 1)|'' 2 -1 warp
i|iterations|a number from 1 to 2147483648)|'' 0 -1 1e6 2048k 2147483649 99999999999999999999
s|size|a number from 1 to 1073741824)|'' 0 -1 1k ' 1' +1 1073741825
q|queue-pairs|a number from 1 to 1024)|'' 0 -1 1025 x
b|blocks|a number from 1 to 65536)|'' 0 -1 65537
t|threads|a number from 1 to 65536)|'' 0 -1 65537 4,5
D|duration|a number from 1 to 86400)|'' 0 -1 86401 1.5 2m
n|warm-up|a number from 0 to 1048576)|'' -1 1048577 x
l|gid-index|a number from 0 to 255)|'' 256 -1 fe80::1
m|payload|gpu or host)|'' GPU cpu
Q|queues|gpu or host)|'' GPU cpu
P|tcp-port|a number from 1 to 65535)|'' 0 65536 -1 http
w|timeout|a number from 1 to 86400)|'' 0 86401 -1 1s 0.5
-|ib-port|a number from 1 to 255)|'' 0 256 -1 x
-|json|the name of a file, or -)|''
-|csv|the name of a file, or -)|''
OPTIONS
expect 2 "invalid -p, --handler '3' (expected 0, 1, 2, 6 or 10)" "$demo" -p 3
expect 2 "invalid -p, --handler '0' (expected 1)" "$B/bin/gpunetio_verbs_service_many_qps" -p 0
expect 2 "invalid -i, --iterations 7 (expected a multiple of -t, --threads: 4)" "$demo" -i 7 -t 4
expect 2 "invalid -t, --threads 5 (expected a multiple of 32" "$demo" -g 8A:00.0 -e 1 -t 5 -i 10
expect 2 "invalid -t, --threads 6 (expected a multiple of -b, --blocks: 4)" "$demo" -b 4 -t 6
expect 2 "invalid -t, --threads 2048 (expected at most 512 in a block" "$demo" -g 8A:00.0 -t 2048 -b 1
expect 2 "invalid -t, --threads 64 (expected a multiple of 32 in each block" "$demo" -g 8A:00.0 -t 64 -b 4 -e 1
expect 2 "invalid -m, --payload gpu with -g host" "$demo" -m gpu
expect 2 "invalid -Q, --queues gpu with -g host" "$demo" -Q gpu
expect 2 "invalid -D, --duration with -i, --iterations" "$demo" -D 1 -i 4
expect 2 "invalid --json without -c, --connect" "$demo" --json -
expect 2 "invalid --csv without -c, --connect" "$demo" --csv -
expect 2 "unknown argument 'extra'" "$demo" extra
expect 2 "see $demo -h" "$demo" --no-such-option
for p in "${programs[@]}"; do
	expect 0 "Usage: $p" "$p" --help
	expect 0 "${p##*/} (gdaki)" "$p" --version
done
expect 0 "Usage: $hello" "$hello" --help
expect 0 "Usage: $hello" "$hello" -h
expect 0 "hello_put (gdaki)" "$hello" --version

# Copies by the NIC. A NIC without a copy engine does the same by RDMA writes.
dma=$B/bin/gpunetio_dma_memcpy
expect 0 "usage: gpunetio_dma_memcpy" "$dma" --help
expect 0 "gpunetio_dma_memcpy (gdaki)" "$dma" --version
expect 2 "invalid -e, --engine 'both' (expected auto or write)" "$dma" -e both
for wrong in "-s 0" "-s 16777217" "-n x" "-t 513"; do
	# shellcheck disable=SC2086 # an option and its value
	expect 2 "invalid ${wrong% *}, --" "$dma" $wrong
done
expect 2 "unexpected argument 'extra'" "$dma" extra
expect 1 "cannot open the RDMA device mlx5_7" "$run" -- "$dma" -d mlx5_7
expect 0 "3000 copies of 4096 bytes by copy engine" "$run" -- "$dma" -n 3000 -t 8
expect 0 "data: correct" "$run" --strict -- "$dma" -s 100 -n 5 -t 1
expect 0 "by RDMA write (up to 1073741824 bytes a request)" "$run" -- "$dma" -e write -t 4
expect 0 "by RDMA write" "$run" --dma none --strict -- "$dma" -t 4
# The example of the RDMA library has options of its own.
rdma=$B/bin/gpunetio_rdma_client_server_write
expect 0 "usage: gpunetio_rdma_client_server_write" "$rdma" --help
expect 0 "gpunetio_rdma_client_server_write (gdaki)" "$rdma" --version
for wrong in "-p 3" "-i 0" "-i 32769" "-s 0" "-s 1k" "-q 65" "-t 513" "-l 256" "-P 65536" "-w -1"; do
	# shellcheck disable=SC2086 # an option and its value
	expect 2 "invalid ${wrong% *}, --" "$rdma" $wrong
done
expect 2 "are too many (at most 32768 in all: the receives of a queue)" "$rdma" -q 64 -i 513
expect 2 "need too much memory (at most 1024 MiB)" "$rdma" -s 1000000
expect 2 "unexpected argument 'extra'" "$rdma" extra
expect 1 "cannot open RDMA device mlx5_7" "$run" -- "$rdma" -d mlx5_7
next_port
expect 1 "timed out while waiting for a client" "$run" -- "$rdma" -P "$port" -w 1

# An object that cannot be destroyed keeps the objects that it uses: an error, not a crash.
for n in 34 35 36 37 38; do
	got=0
	timeout 10 "$run" --fail-ioctl $n -- "$hello" >"$tmp/out" 2>&1 || got=$?
	checks=$((checks + 1))
	if [ $got -gt 1 ] || ! grep -q "^error: " "$tmp/out"; then fails "--fail-ioctl $n: exit $got" "$tmp/out"; fi
done
for args in extra --no-such-option "--help extra" "--version extra" "extra --help" ""; do
	eval "set -- ${args:-\'\'}"
	wrong=$1
	case $1 in --help | --version) wrong=$2 ;; esac
	expect 2 "unknown argument '$wrong' (expected none, --help or --version)" "$hello" "$@"
done

# ---- devices ----

# shellcheck disable=SC2086 # $nic is a command with arguments
{
	expect 1 "no RDMA device has the name 'mlx5_9' (-d); present: mlx5_0 (port 1: active)" \
		$nic "$demo" -d mlx5_9
	expect 1 "invalid -l, --gid-index 200: the port has GIDs 0 to" $nic "$demo" -l 200
	expect 1 "invalid --ib-port 2: RDMA device 'mlx5_0' has ports 1 to 1" $nic "$demo" --ib-port 2
	expect 1 "GPU 0000:8a:00.0:" env LD_LIBRARY_PATH= $nic "$demo" -g 8A:00.0
	expect 1 "need too much memory (at most 4096 MiB)" $nic "$demo" -c 127.0.0.1 -s 1073741824 -q 4 -w 1
	# A small number of open files lets the device appear, but not open.
	for n in 5 6 7 8 9 10 11; do
		(ulimit -n $n && timeout 20 $nic "$demo" -d mlx5_0 -w 1 >"$tmp/out" 2>&1)
		! grep -qx "error: cannot open RDMA device 'mlx5_0': Too many open files" "$tmp/out" || break
	done
	[ $n != 11 ] || fails "a device that cannot be opened is not named" "$tmp/out"
}
if [ -z "$(ls /sys/class/infiniband 2>/dev/null)" ]; then
	expect 1 "no RDMA device found: check with ibv_devices of rdma-core" "$hello"
	expect 1 "softnic-run -- PROGRAM" "$demo" -d mlx5_0
fi

# ---- peers ----

# Starts a listener in the background that is not one of the examples: it sends bytes and keeps the
# connection open until its peer closes it, or for `hold` seconds.
fake_server() { # hold, Python expression of the bytes
	next_port
	rm -f "$tmp/fake"
	python3 - $port "$1" "$2" >"$tmp/fake" 2>&1 <<'PYTHON' &
import select, socket, struct, sys
def hello(protocol, program, version):
    return struct.pack(">8sII48s32s", b"gdaki-ex", protocol, 0, program, version)
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as s:
    s.settimeout(20)
    print("listening", flush=True)
    c = s.accept()[0]
    c.sendall(eval(sys.argv[3]))
    if float(sys.argv[2]):
        c.settimeout(float(sys.argv[2]))
        try:
            while c.recv(4096):
                pass
        except OSError:
            pass
PYTHON
	server=$!
	await grep -qs listening "$tmp/fake"
}
await() { # condition
	local i
	for ((i = 0; i < 300; i++)); do
		! "$@" || return 0
		sleep 0.05
	done
	fails "waited in vain: $*"
}
client() { # exit status, text, options of the client
	local want=$1 text=$2
	shift 2
	# shellcheck disable=SC2086 # a command with arguments
	expect "$want" "$text" $nic "$demo" -g host -d mlx5_0 -P "$port" "$@"
}
ended() { { wait $server; } 2>/dev/null; server=; }

protocol=$(sed -n 's/^#define PROTOCOL \([0-9]*\).*/\1/p' examples/common/message.c)
version=$("$hello" --version | sed 's/.* //')
fake_server 5 'b"SSH-2.0-Fake\r\n"'
client 1 "TCP port $port is another service, not gpunetio_verbs_put_bw: it sent \"SSH-2.0-Fake\x0d\x0a\"" -c 127.0.0.1
ended
fake_server 0 'b""'
client 1 "the server at 127.0.0.1, TCP port $port closed the connection at once: it is another service" -c 127.0.0.1
ended
fake_server 5 'b""'
client 1 "within 1 s (-w): timed out while waiting for its hello (is it another service?)" -c 127.0.0.1 -w 1
ended
fake_server 5 'hello(1, b"gpunetio_verbs_put_bw", b"0.0.9")'
client 1 "the server at 127.0.0.1, TCP port $port is of gdaki 0.0.9 (protocol 1), this program of gdaki" -c 127.0.0.1
ended
fake_server 5 "hello($protocol, b'gpunetio_verbs_else', b'$version')"
client 1 "is gpunetio_verbs_else, this program is gpunetio_verbs_put_bw: use the same program" -c 127.0.0.1
ended
fake_server 20 "hello($protocol, b'gpunetio_verbs_put_bw', b'$version')"
client 1 "within 1 s (-w): timed out while waiting for its queue pairs" -c 127.0.0.1 -w 1
ended
client 1 "cannot connect to the server at 127.0.0.1, TCP port $port within 1 s (-w): Connection refused" -c 127.0.0.1 -w 1

# The kernel does not answer a connect to a listener whose queue is full, as of a host that is down.
next_port
python3 -c 'import socket, sys, time
s = socket.socket()
s.bind(("127.0.0.1", int(sys.argv[1])))
s.listen(0)
full = [socket.socket() for _ in range(4)]
for c in full:
    c.setblocking(False)
    c.connect_ex(s.getsockname())
print("listening", flush=True)
time.sleep(30)' $port >"$tmp/fake" 2>&1 &
server=$!
await grep -q listening "$tmp/fake"
start=$SECONDS
client 1 "cannot connect to the server at 127.0.0.1, TCP port $port within 2 s (-w): Connection timed out" -c 127.0.0.1 -w 2
[ $((SECONDS - start)) -le 15 ] || fails "connect to an unreachable address takes $((SECONDS - start)) s"
kill $server
ended
client 1 "cannot resolve server 'no-such-host.invalid'" -c no-such-host.invalid -w 1
client 1 "timed out while waiting for a client: none within 1 s (-w)" -w 1

# Starts a server; serve_on OPTIONS of softnic-run -- OPTIONS of the program.
serve_on() {
	local of_nic=()
	while [ "$1" != -- ]; do of_nic+=("$1") && shift; done
	shift
	next_port
	rm -f "$tmp/server"
	timeout -s KILL 60 "$run" "${of_nic[@]}" -- "$demo" -g host -d mlx5_0 -P $port "$@" >"$tmp/server" 2>&1 &
	server=$!
	await grep -qs Waiting "$tmp/server"
}
served() { # exit status, text that must be in the server's output
	local got=0
	checks=$((checks + 1))
	{ wait $server || got=$?; } 2>/dev/null
	server=
	[ "$got" = "$1" ] && grep -qF -- "$2" "$tmp/server" && return
	fails "server: exit $got (expected $1), expected \"$2\", printed:" "$tmp/server" "$tmp/out"
}
ok='Validation successful! Data received correctly from client.'
column() { python3 -c 'import csv, sys
for row in csv.DictReader(open(sys.argv[1])): print(row[sys.argv[2]])' "$tmp/csv" "$1" | tr '\n' ' '; }
has() { # column, expected values
	checks=$((checks + 1))
	[ "$(column "$1")" = "$2 " ] || fails "column $1 is $(column "$1"), expected $2" "$tmp/csv"
}

serve_on --
client 1 "cannot listen on TCP port $port: Address already in use" -w 1
python3 -c 'import socket, sys
c = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
c.sendall(b"GET / HTTP/1.1\r\n\r\n")
c.recv(1000)' $port
served 1 "is another service, not gpunetio_verbs_put_bw: it sent \"GET / HTTP/1.1"

serve_on --
client 0 "gpunetio_verbs_put_bw" -c ::1 -q 3 -t 6 -b 2 --csv "$tmp/csv"
served 0 "$ok"
has messages 6156 # 2048 rounded up to a multiple of 6, three times
has queue_pairs 3
serve_on --
client 0 "gpunetio_verbs_put_bw" -c 127.0.0.1 -a -s 256 -i 64 -n 0 --csv "$tmp/csv"
served 0 "$ok"
has bytes "1 64 128 256"
has messages "64 64 64 64"
serve_on --
client 0 "GPU_SM_NO_DBR" -c localhost -p 10 -r 2 --csv "$tmp/csv"
served 0 "$ok"

# Longer than the time limit of each wait, because the transfer goes on.
serve_on -- -w 4
client 0 "gpunetio_verbs_put_bw" -c 127.0.0.1 -w 4 -D 5 --csv "$tmp/csv"
served 0 "$ok"
[[ $(column seconds) =~ ^[5-9]\. ]] || fails "-D 5 takes $(column seconds) s"

# A client that fails tells the server why.
serve_on --
expect 1 "error: " "$run" --qp-max 1 -- "$demo" -g host -d mlx5_0 -P $port -c 127.0.0.1 -q 4
served 1 "the client failed: queue pair: "

# Starts a long transfer, and waits until it goes on.
long_run() { # options of the client
	serve_on --
	rm -f "$tmp/out" "$tmp/csv"
	timeout -s KILL 60 "$run" -- "$demo" -g host -d mlx5_0 -P $port -c 127.0.0.1 -s 8 --csv "$tmp/csv" "$@" >"$tmp/out" 2>&1 &
	long=$!
	await grep -qs '#bytes' "$tmp/out"
	sleep 0.5
}
ends() { # exit status, text that must be in the client's output
	local got=0
	checks=$((checks + 1))
	{ wait $long || got=$?; } 2>/dev/null
	[ "$got" = "$1" ] && grep -qF -- "$2" "$tmp/out" && return
	fails "client: exit $got (expected $1), expected \"$2\", printed:" "$tmp/out" "$tmp/server"
}
exec 2>"$tmp/notices" # where bash writes that a process was killed
child() { pgrep -P "$1" | head -n 1; } # of timeout; softnic-run executes the program
long_run -D 500
kill -INT "$(child $server)"
served 0 "$ok"
ends 0 "#bytes"
has bytes 8
long_run -i 2147483648
kill -INT "$(child $long)"
served 0 "$ok"
ends 0 "#bytes"
has bytes 8
long_run -D 500
kill -KILL "$(child $server)"
ends 1 "the server at 127.0.0.1, TCP port $port closed the connection: it ended or was killed"
ended
long_run -D 500
kill -KILL "$(child $long)"
served 1 "closed the connection: it ended or was killed"
{ wait $long; } 2>/dev/null
[ $bad != 0 ] || echo "examples.sh: $checks uses of ${#programs[@]} programs and hello_put"
exit $bad
