#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# softnic-run reports a COMMAND that cannot preload the NIC, with exit status 2, before it
# starts: static programs, also behind scripts and env, privileged programs and programs of
# another architecture. The NIC warns once per run about a static verbs program that COMMAND
# starts.
set -u
unset MAKEFLAGS MFLAGS MAKELEVEL # of the make that runs the tests
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
run=$PWD/$B/bin/softnic-run
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0 checks=0
complain() { echo "programs.sh: $1"; sed 's/^/    /' "$tmp/out" | head -n 6; bad=1; }
cd "$tmp" || exit 2

refused() { # path and reason in the message, then the command
	local text=$1
	shift
	checks=$((checks + 1))
	timeout 20 "$run" -- "$@" >out 2>&1
	local rc=$?
	[ $rc = 2 ] || complain "exit status $rc instead of 2: $*"
	[ "$(cat out)" = "softnic-run: $text" ] || complain "no message for $*: $text"
}

runs() { # exit status, expected output, then the command
	local want=$1 text=$2
	shift 2
	checks=$((checks + 1))
	timeout 20 "$run" -- "$@" >out 2>&1
	local rc=$?
	[ $rc = "$want" ] || complain "exit status $rc instead of $want: $*"
	[ "$(cat out)" = "$text" ] || complain "other output of $*: $text"
}

# ---- static programs ----

cat >hello.c <<'END'
#include <stdio.h>
int main(void) { return puts("hello") < 0; }
END
sed 's/"hello"/"\/sys\/class\/infiniband_verbs"/' hello.c >verbs.c
gcc -static hello.c -o static && gcc -static-pie hello.c -o pie && gcc -static verbs.c -o verbs && gcc hello.c -o dynamic ||
	{ echo "programs.sh: cannot compile static programs"; exit 77; }
static="is statically linked: the software NIC needs a dynamically linked program"
refused "./static $static" ./static
refused "./pie $static" ./pie
refused "$tmp/static $static" env -u X A=b "$tmp/static"
script() { printf '%s\n' "$2" >"$1" && chmod +x "$1"; }
script by_static "#!$tmp/static"
refused "$tmp/static $static" ./by_static
script by_env "#!/usr/bin/env -S A=b $tmp/static"
refused "$tmp/static $static" ./by_env
script by_script "#!$tmp/by_static"
refused "$tmp/static $static" ./by_script
refused "$tmp/static $static" env A=1 env B=2 "$tmp/static"
timeout 20 "$run" --no-preload -- ./static >out 2>&1 && [ "$(cat out)" = hello ] ||
	complain "--no-preload refuses a static program"

# ---- other programs that cannot preload it ----

cp dynamic elf32 && printf '\001' | dd of=elf32 bs=1 seek=4 conv=notrunc status=none
cp dynamic mips && printf '\010' | dd of=mips bs=1 seek=18 conv=notrunc status=none
cp dynamic musl && sed -i "s|/lib64/ld-linux-x86-64.so.2|/lib64/ld-musl-x86-64.so.1|" musl
other="is built for another architecture than the software NIC"
refused "./elf32 $other" ./elf32
refused "./mips $other" ./mips
cmp -s dynamic musl || refused "./musl is linked with the C library musl: the software NIC needs the GNU C library" ./musl
if [ "$(id -u)" = 0 ]; then
	cp dynamic setuid && chown 1 setuid && chmod u+s setuid
	cp dynamic setgid && chgrp 1 setgid && chmod g+s setgid
	for p in setuid setgid; do
		refused "./$p is set-user-ID or set-group-ID or has capabilities, so that it cannot preload the software NIC" ./$p
	done
fi

# ---- programs that run ----

runs 0 hello ./dynamic
runs 0 hello env A=b ./dynamic
runs 0 hello env A=1 env B=2 ./dynamic
runs 0 "" env env true
runs 0 A=b env -i A=b env
script env_env "#!/usr/bin/env -S env true"
runs 0 "" ./env_env
script no_line "echo hello"
runs 0 hello sh ./no_line
runs 127 "softnic-run: cannot run ./absent: No such file or directory" ./absent
runs 127 "softnic-run: cannot run absent: No such file or directory" absent
loader=$(echo /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1 | tr ' ' '\n' | while read -r l; do [ -x "$l" ] && echo "$l"; done | head -n 1)
[ -z "$loader" ] || runs 0 hello "$loader" ./dynamic

# ---- signals ----

# Ctrl-C reaches COMMAND once, a signal that was sent to softnic-run too.
cat >counts.py <<'END'
import os, signal, sys, time
got = []
for s in (signal.SIGINT, signal.SIGTERM):
    signal.signal(s, lambda number, frame: (got.append(number), os.write(1, b"signal\n")))
print("ready", flush=True)
end = time.time() + 20
while time.time() < end and signal.SIGTERM not in got:
    time.sleep(0.05)
print("got", got.count(signal.SIGINT), flush=True)
END
cat >ctrl_c.py <<'END'
import os, pty, signal, sys
pid, fd = pty.fork()
if not pid:
    os.execv(sys.argv[1], [sys.argv[1], "--", sys.executable, "counts.py"])
text = b""
def read_until(word):
    global text
    while word not in text:
        text += os.read(fd, 1000)
read_until(b"ready")
os.write(fd, b"\x03")
read_until(b"signal")
os.kill(pid, signal.SIGTERM)
try:
    while data := os.read(fd, 1000):
        text += data
except OSError: # the other end is closed
    pass
print(text.split(b"got ")[1].split()[0].decode())
END
if command -v python3 >/dev/null; then
	checks=$((checks + 1))
	timeout 30 python3 ctrl_c.py "$run" >out 2>&1
	[ "$(cat out)" = 1 ] || complain "Ctrl-C does not reach COMMAND once"
fi

# ---- programs that COMMAND starts ----

warnings() { # number, shell commands
	checks=$((checks + 1))
	timeout 20 "$run" -- bash -c "$2" >out 2>&1 || complain "$2 fails"
	[ "$(grep -c '^softnic\[[0-9]*\]: .*verbs is statically linked and does not see the NIC$' out)" = "$1" ] ||
		complain "expected $1 warnings: $2"
	[ "$(grep -c softnic out)" = "$1" ] || complain "other messages: $2"
}
warnings 1 './verbs; ./verbs; ./verbs'
warnings 1 'env ./verbs'
warnings 1 'PATH=.:$PATH timeout 9 verbs'
warnings 0 './static; ./dynamic; ./dynamic'
command -v python3 >/dev/null &&
	warnings 1 'python3 -c "import os, subprocess as s; s.run([\"./verbs\"]); os.posix_spawn(\"./verbs\", [\"v\"], {}); os.wait()"'
command -v make >/dev/null && warnings 1 'printf "all:\n\t./verbs\n" >Makefile; make'
# ---- the steps for CI in ci.md ----

top=$OLDPWD
ci=$(<"$top/tests/softnic/ci.md")
yaml() { # first line: the block of ci.md that begins with it
	awk -v first="$1" '/^```/ { on = 0 } on { print } /^```yaml/ { getline; on = $0 == first }' <<<"$ci"
}
github=$(yaml steps:) gitlab=$(yaml rdma:)
pkgs=$(sed -n 's/.*pkgs="$pkgs \(gcc libc6-dev .*\)"$/\1/p' "$top/tests/deps.sh")
[ -n "$pkgs" ] || complain "deps.sh has no line of packages that begins with gcc libc6-dev"
for p in $pkgs ibverbs-providers; do
	for steps in github gitlab; do
		grep -q "apt-get install .*\b$p\b" <<<"${!steps}" || complain "ci.md does not install $p ($steps)"
	done
done
mkdir ci && ln -s "$top" ci/gdaki
# "make -n", because a rebuild would disturb other tests.
{
	sed -n '/make -C/s/.*- run: make/make -n/p' <<<"$github"
	sed -n '/GITHUB_PATH/s/.*- run: //p' <<<"$github"
	echo 'PATH=$(cat "$GITHUB_PATH"):$PATH'
	sed -n '/run: |/,$s/^      //p' <<<"$github"
	echo 'wait $!'
} >github.sh
sed -n '/script:/,/artifacts:/{/apt-get\|git clone/d; s/^    - make/make -n/p; s/^    - //p}' <<<"$gitlab" >gitlab.sh
for steps in github gitlab; do
	[ "$(wc -l <$steps.sh)" -ge 3 ] || complain "ci.md: found no steps for $steps"
	[ "$B" != build ] || (cd ci && GITHUB_PATH=$tmp/path timeout 60 bash -ex ../$steps.sh) >out 2>&1 ||
		complain "the steps in ci.md fail ($steps):"
done
compgen -G 'ci/*.json' >/dev/null || [ "$B" != build ] || complain "ci.md: the GitLab job wrote no counters"
[ $bad != 0 ] || echo "programs.sh: $checks programs"
exit $bad
