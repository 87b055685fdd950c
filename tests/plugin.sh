#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Links plugins with the merged archive, with every member of it, and with the separate archives,
# by each compiler. A plugin exports its entry and nothing of the archives. The main program exports
# a doca_gpu_create() of its own; the plugin calls the one in its archives.
# shellcheck disable=SC2086 # lists of words
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
CC=${CC:-gcc}
NVCC=${NVCC:-}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
plugins=0
system="-lmlx5 -libverbs -lnuma -ldl -lpthread"

complain() {
	echo "plugin.sh: $*"
	bad=1
}

cat >"$tmp/plugin.c" <<'C'
#include <doca_gpunetio_host.h>
#include <host/gdaki.h>
#ifdef __cplusplus
extern "C"
#endif
int plugin_entry(void);

int plugin_entry(void)
{
	struct doca_gpu_verbs_qp_hl *qp;
	doca_gpu_t *gpu;
	doca_error_t err = doca_gpu_create("host", &gpu);

	if (err)
		return (int)err;
	/* Needs the doorbell strategies. */
	if (doca_gpu_verbs_create_qp_hl(NULL, &qp) != DOCA_ERROR_INVALID_VALUE)
		return -1;
	return (int)doca_gpu_destroy(gpu);
}
C
cp "$tmp/plugin.c" "$tmp/plugin.cpp"
cat >"$tmp/main.c" <<'C'
#include <dlfcn.h>
#include <stdio.h>

int doca_gpu_create(const char *name, void **gpu);

int doca_gpu_create(const char *name, void **gpu)
{
	(void)name;
	(void)gpu;
	return 77;
}

int main(int argc, char **argv)
{
	void *plugin = dlopen(argv[argc - 1], RTLD_NOW | RTLD_GLOBAL);
	int (*entry)(void) = plugin ? (int (*)(void))dlsym(plugin, "plugin_entry") : NULL;
	int err = entry ? entry() : -2;

	if (!entry)
		puts(dlerror());
	if (err == 77)
		puts("the plugin calls doca_gpu_create() of the main program");
	else if (err)
		printf("plugin_entry() returns %d\n", err);
	return err;
}
C
"$CC" -rdynamic -o "$tmp/main" "$tmp/main.c" -ldl || exit 1

plugin() { # name, compiler and its arguments...
	local name=$1 exported
	shift
	plugins=$((plugins + 1))
	"$@" -I"$B/include" -shared -o "$tmp/$name.so" $system 2>"$tmp/err" ||
		{ complain "$name does not link: $(head -n 3 "$tmp/err")"; return; }
	exported=$(nm -D --defined-only "$tmp/$name.so" | awk '{ print $3 }' | grep -v -x plugin_entry)
	[ -z "$exported" ] ||
		complain "$name exports $(wc -l <<<"$exported") symbols: $(head -n 5 <<<"$exported" | xargs)"
	DOCA_GPUNETIO_LOG=0 timeout 20 "$tmp/main" "$tmp/$name.so" >"$tmp/out" 2>&1 ||
		complain "$name: $(cat "$tmp/out")"
}

read -ra separate < <(make --no-print-directory -s B="$B" link-line)
merged="$B/lib/libgdaki.a"
c=(-fPIC "$tmp/plugin.c") cxx=(-fPIC "$tmp/plugin.cpp")
for compiler in $(printf '%s\n' "$CC" gcc clang | sort -u); do
	command -v "$compiler" >/dev/null || continue
	plugin "$compiler-merged" "$compiler" "${c[@]}" "$merged"
	plugin "$compiler-whole" "$compiler" "${c[@]}" -Wl,--whole-archive "$merged" -Wl,--no-whole-archive
	plugin "$compiler-separate" "$compiler" "${c[@]}" "${separate[@]}"
done
plugin g++-merged g++ "${cxx[@]}" "$merged"
if [ -n "$NVCC" ]; then
	plugin nvcc-merged "$NVCC" -cudart none -Xcompiler -fPIC "$tmp/plugin.cpp" "$merged"
	plugin nvcc-separate "$NVCC" -cudart none -Xcompiler -fPIC "$tmp/plugin.cpp" "${separate[@]}"
fi
[ $bad != 0 ] || echo "plugin.sh: $plugins plugins export only their entry"
exit $bad
