#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Checks that every public header compiles alone, with only the installed headers in the
# include path: as C11, C++11 and C++17 with gcc, and with clang and nvcc if they are
# installed; .cuh headers as C++17 and CUDA. nvcc compiles alone those that a kernel includes, and
# all of them in one source file; with LONG=1 also each of the others alone. The macros, types and
# functions that the headers define must be named doca_* or gdk_*, except for macros that DOCA
# defines too. The headers of gdaki-doca compile alone, too, and a source file that includes both
# kinds of headers gets an error that says so.
# shellcheck disable=SC2086,SC2046 # lists of options and of header names
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
NVCC=${NVCC:-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
checked=0
warn="-Wall -Wextra -Werror"

complain() {
	echo "headers.sh: $1"
	head -n 12 "$tmp/err" | sed 's/^/    /'
	bad=1
}

compile() { # what, command...
	local what=$1
	shift
	checked=$((checked + 1))
	"$@" >"$tmp/err" 2>&1 || complain "$what"
}

# Includes the header twice, to detect a missing include guard.
source_for() {
	printf '#include "%s"\n#include "%s"\n' "$1" "$1" >"$tmp/one.$2"
}

inc="-I$B/include"
all=$(cd "$B/include" && find . -name '*.h' -o -name '*.cuh' | sed 's|^\./||' | sort)
headers=$(grep -v '/platform_' <<<"$all") # platform_*.h are parts of platform.h
[ -n "$headers" ] || { echo "headers.sh: nothing staged in $B/include"; exit 1; }

for h in $headers; do
	case $h in
	*.cuh | doca_gpunetio_device.h) c= ;; # templates
	*) c=1 ;;
	esac
	if [ -n "$c" ]; then
		source_for "$h" c
		compile "$h as C11" gcc -std=c11 $warn "$inc" -fsyntax-only "$tmp/one.c"
	fi
	case $h in
	device/gdk/*) compile "$h as C11, warps of 32" gcc -std=c11 $warn -DGDK_WARP=32 "$inc" \
		-fsyntax-only "$tmp/one.c" ;;
	esac
	source_for "$h" cpp
	case $h in
	*.cuh | doca_gpunetio_device.h) stds="c++17" ;; # templates of the device API
	device/gdk/*) stds="c++17" ;;
	*) stds="c++11 c++17" ;;
	esac
	for std in $stds; do
		compile "$h as $std" g++ -std=$std $warn "$inc" -fsyntax-only "$tmp/one.cpp"
	done
	if command -v clang >/dev/null 2>&1; then
		[ -z "$c" ] ||
			compile "$h as C11 (clang)" clang -std=c11 $warn "$inc" -fsyntax-only "$tmp/one.c"
		compile "$h as C++17 (clang)" clang++ -std=c++17 $warn "$inc" -fsyntax-only "$tmp/one.cpp"
	fi
done

# ---- headers of gdaki-doca ----
inc_doca="-I$B/include-doca -I$B/include"
doca=$(cd "$B/include-doca" && printf '%s\n' *.h *.cuh | grep -v '^\*' | sort)
[ -n "$doca" ] || { echo "headers.sh: nothing staged in $B/include-doca"; exit 1; }
for h in $doca; do
	source_for "$h" cpp
	compile "$h as c++17" g++ -std=c++17 $warn $inc_doca -fsyntax-only "$tmp/one.cpp"
	! command -v clang >/dev/null ||
		compile "$h as C++17 (clang)" clang++ -std=c++17 $warn $inc_doca -fsyntax-only "$tmp/one.cpp"
	case $h in *.cuh) continue ;; esac
	source_for "$h" c
	compile "$h as C11" gcc -std=c11 $warn $inc_doca -fsyntax-only "$tmp/one.c"
	compile "$h as c++11" g++ -std=c++11 $warn $inc_doca -fsyntax-only "$tmp/one.cpp"
	for open in doca_gpunetio_host.h host/doca_verbs.h host/doca_gpunetio.h; do
		for order in "$h $open" "$open $h"; do
			printf '#include "%s"\n' $order >"$tmp/one.c"
			checked=$((checked + 1))
			gcc -std=c11 $inc_doca -fsyntax-only "$tmp/one.c" 2>"$tmp/err" && complain "$order: both kinds are accepted"
			grep -q 'error.*headers of gdaki and of gdaki-doca: include only one set' "$tmp/err" ||
				complain "$order: the error does not name the remedy"
		done
	done
done
for h in $doca; do echo "#include \"$h\""; done >"$tmp/all.cpp"
compile "all headers of gdaki-doca" g++ -std=c++17 $warn $inc_doca -fsyntax-only "$tmp/all.cpp"
if [ -n "$NVCC" ]; then
	cp "$tmp/all.cpp" "$tmp/all.cu"
	compile "all headers of gdaki-doca as CUDA" $NVCC ${CUDAHOSTCXX:+-ccbin $CUDAHOSTCXX} -std=c++17 -arch=sm_90 \
		-Werror all-warnings $inc_doca -cubin -o "$tmp/all.cubin" "$tmp/all.cu"
fi

if [ -n "$NVCC" ]; then
	nvcc="$NVCC ${CUDAHOSTCXX:+-ccbin $CUDAHOSTCXX} -std=c++17 -arch=sm_90 -Werror all-warnings"
	for h in $headers; do
		case ${LONG:-}:$h in :device/gdk/* | :host/*) continue ;; esac
		source_for "$h" cu
		compile "$h as CUDA" $nvcc "$inc" -cubin -o "$tmp/one.cubin" "$tmp/one.cu"
	done
	for h in $headers; do echo "#include \"$h\""; done >"$tmp/all.cu"
	compile "all headers as CUDA" $nvcc "$inc" -cubin -o "$tmp/all.cubin" "$tmp/all.cu"
else
	echo "headers.sh: nvcc not found, not compiled as CUDA"
fi

# The host headers include no CUDA header and define only macros with our prefixes.
public=$(echo "$headers" | grep -v -E '^device/|^doca_gpunetio_device.h')
for h in $public; do
	echo "#include \"$h\""
done >"$tmp/all.c"
: >"$tmp/sys.c"
grep -h -o -E '#[[:space:]]*include <[^>]+>' $(for h in $all; do echo "$B/include/$h"; done) |
	grep -v -E 'cuda|nv/|cooperative' | sort -u >"$tmp/sys.c"
if grep -n -E '#[[:space:]]*include .*cuda' $(for h in $public; do echo "$B/include/$h"; done) >"$tmp/err"; then
	complain "a host header includes CUDA"
fi
macros() { gcc -std=c11 "$inc" -dM -E "$1" | awk '{ print $2 }' | sed 's/(.*//' | sort -u; }
macros "$tmp/sys.c" >"$tmp/sys.macros"
allowed='^(DOCA_|doca_|GDK_|gdk_)'
# Macros without a prefix in DOCA's headers, which users of DOCA may rely on.
peer='^(TYPEOF|ACCESS_ONCE|READ_ONCE|WRITE_ONCE)$'
macros "$tmp/all.c" | comm -23 - "$tmp/sys.macros" | grep -v -E "$allowed" | grep -v -E "$peer" >"$tmp/err" &&
	complain "macros in the user's name space"

# The log is not part of the API.
if grep -n -w -E 'DOCA_LOG\w*|DOCA_DLOG\w*|gdk_log\w*|GDK_LOG\w*|gdk_(err|warn|info|dbg)|doca_gpu_log_print' \
	$(for h in $all; do echo "$B/include/$h"; done) >"$tmp/err"; then
	complain "a public header has functions or macros of the log"
fi

# The Python program reads the preprocessed text of our headers and prints the types, tags,
# functions, objects and enumerators that they declare at file scope.
for h in $headers; do
	case $h in *.cuh | doca_gpunetio_device.h) ;; *) echo "#include \"$h\"" ;; esac
done >"$tmp/all.c"
gcc -std=c11 "$inc" -E "$tmp/all.c" | python3 -c '
import re, sys
ours, text = False, []
for line in sys.stdin:
    m = re.match(r"# \d+ \"([^\"]*)\"", line)
    if m:
        ours = m.group(1).startswith(sys.argv[1])
    elif ours:
        text.append(line)
text = re.sub(r"\"(\\.|[^\"])*\"", "0", "".join(text))
while True:  # remove attributes and asserts, which declare nothing
    new = re.sub(r"\b(__attribute__|_Static_assert|_Alignas|__alignof__|__asm__)\s*(?:volatile)?\s*\((?:[^()]|\([^()]*\)|\((?:[^()]|\([^()]*\))*\))*\)", " ", text)
    if new == text:
        break
    text = new
names, paren, stack, enum, last = set(), 0, [], False, ""
for tok in re.findall(r"[A-Za-z_]\w*|\d\w*|\S", text):
    name = bool(re.match(r"[A-Za-z_]", tok))
    scope = not paren and all(s == "extern" for s in stack)
    if tok == "(":
        if scope and re.match(r"[A-Za-z_]", last):
            names.add(last)
        paren += 1
    elif tok == ")":
        paren -= 1
    elif tok == "{":
        if scope and re.match(r"[A-Za-z_]", last):
            names.add(last)
        stack.append("enum" if enum else "x")
        enum = False
    elif tok == "}":
        stack.pop()
    elif tok in ";=[" and scope and re.match(r"[A-Za-z_]", last):
        names.add(last)
    elif stack[-1:] == ["enum"] and tok in "=," and re.match(r"[A-Za-z_]", last):
        names.add(last)
    if tok == "enum":
        enum = True
    elif not name:
        enum = enum and tok == "{"
    last = tok
keep = re.compile(r"(doca_|DOCA_|gdk_|GDK_|ibv_|enum$|struct$|union$)")
print("\n".join(sorted(n for n in names if not keep.match(n))))
' "$B/include" | grep . >"$tmp/err" && complain "names in the user's name space"
[ $bad != 0 ] || echo "headers.sh: $checked compilations"
exit $bad
