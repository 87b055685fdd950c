#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# Installs into empty folders and checks: which files are installed and with which modes; that a
# program builds with the installed files alone, by gcc, g++, clang and nvcc, and opens the software
# NIC; that the installed programs find their libraries, also after the tree was moved; that
# everything which reports gdaki's version reports the same; and that uninstalling leaves nothing,
# but keeps the files of others.
# shellcheck disable=SC2046,SC2086 # lists of options
set -u
cd "$(dirname "$0")/.." || exit 2
B="${B:-build}"
CC=${CC:-gcc}
nvcc=${NVCC:-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0

complain() {
	echo "install.sh: $1"
	[ ! -s "$dir/log" ] || tail -n 8 "$dir/log" | sed 's/^/    /'
	bad=1
}

run_make() { # arguments of make
	make --no-print-directory B="$B" "$@" >"$dir/log" 2>&1
}

contents() { # folder
	(cd "$1" && find . -mindepth 1 | LC_ALL=C sort)
}

# ---- paths that are refused, and an installation that fails ----
for bad_path in PREFIX="$dir/a b" DESTDIR="$dir/a b" LIBDIR='/a b' INCLUDEDIR='a b' PREFIX='/a&b' LIBDIR="/a'b" PREFIX='~/x'; do
	run_make DESTDIR="$dir/refused" install "$bad_path" && complain "$bad_path is accepted"
	grep -q 'must not contain spaces' "$dir/log" || complain "the error for $bad_path does not state the reason"
done
# A header that cannot be installed is an error, and what was installed before can be uninstalled.
mkdir -p "$dir/bad/usr"
touch "$dir/bad/usr/include"
run_make PREFIX=/usr DESTDIR="$dir/bad" install && complain "make install succeeds without installing the headers"
run_make PREFIX=/usr DESTDIR="$dir/bad" uninstall || complain "an incomplete installation cannot be uninstalled"
[ "$(contents "$dir/bad" | xargs)" = "./usr ./usr/include" ] ||
	complain "uninstalling an incomplete installation leaves $(contents "$dir/bad" | xargs)"

# A folder in place of a file is an error: nothing is put into the folder.
for in_place in lib/libgdaki.a bin/hello_put; do
	mkdir -p "$dir/place/usr/$in_place"
	run_make PREFIX=/usr DESTDIR="$dir/place" install && complain "make install puts a file into the folder $in_place"
	grep -q "$in_place is a folder" "$dir/log" || complain "the error for the folder $in_place does not name it"
	[ -z "$(ls "$dir/place/usr/$in_place")" ] || complain "make install fills the folder $in_place"
	run_make PREFIX=/usr DESTDIR="$dir/place" uninstall || complain "an installation that found a folder is not uninstalled"
	[ "$(find "$dir/place/usr" | wc -l)" = 3 ] || complain "an installation that found a folder leaves files"
	rm -r "$dir/place"
done
# An unprivileged user must not write to /usr.
if [ "$(id -u)" = 0 ]; then
	echo "" | setpriv --reuid=65534 --clear-groups env DESTDIR= PREFIX=/usr LIBDIR=/usr/lib INCLUDEDIR=/usr/include \
		SUBST= sh -c "$(cat core/install/install.sh)" install.sh install >"$dir/log" 2>&1 && complain "installing without permission succeeds"
	grep -q 'no permission to write to /usr.*sudo.*PREFIX=' "$dir/log" || complain "no remedy for a missing permission"
fi

# ---- a staged installation beside files of others ----
mkdir -p "$dir/usr/lib/pkgconfig" "$dir/usr/share/man/man7" "$dir/usr/include/host"
touch "$dir/usr/lib/pkgconfig/other.pc" "$dir/usr/include/host/other.h"
contents "$dir/usr" >"$dir/before"
umask 077 # must not change the modes of what is installed
run_make PREFIX=/usr DESTDIR="$dir" install || { complain "make install fails"; exit 1; }
umask 022
! grep -q older "$dir/log" || complain "an older gdaki is reported where there is none"
while read -r f; do
	[ -f "$dir/usr/$f" ] || complain "$f was not installed"
done <<-END
	lib/libgdaki.a
	lib/libgdaki_core.a
	lib/libgdaki_db_none.a
	lib/pkgconfig/gdaki.pc
	lib/pkgconfig/gdaki-static.pc
	lib/pkgconfig/gdaki-doca.pc
	lib/gdaki-doca/pkgconfig/doca-common.pc
	lib/gdaki-doca/pkgconfig/doca-flow.pc
	lib/gdaki-doca/pkgconfig/doca-gpunetio.pc
	lib/gdaki-doca/pkgconfig/doca-verbs.pc
	lib/gdaki-doca/pkgconfig/doca-dma.pc
	lib/gdaki-doca/pkgconfig/doca-rdma.pc
	lib/libgdaki_dma.a
	lib/libgdaki_doca.a
	lib/libgdaki_rdma.a
	lib/libgdaki_eth.a
	lib/libgdaki_flow.a
	lib/gdaki/libsoftnic.so
	bin/softnic-run
	bin/hello_put
	bin/gpunetio_plot
	include/gdaki/doca_gpunetio_host.h
	include/gdaki-doca/doca_dev.h
	include/gdaki-doca/doca_dma.h
	include/gdaki-doca/doca_rdma.h
	include/gdaki-doca/doca_flow.h
	share/man/man1/softnic-run.1
	share/man/man1/hello_put.1
	share/man/man1/gpunetio_plot.1
	share/man/man7/gdaki.7
	share/doc/gdaki/LICENSE
	share/doc/gdaki/README.md
	share/doc/gdaki/examples/CMakeLists.txt
	share/doc/gdaki/examples/example.mk
	share/doc/gdaki/examples/hello_put/hello_put.c
	share/doc/gdaki/examples/hello_put/Makefile
	share/doc/gdaki/examples/common/endpoint.c
END
while read -r f; do # documents that README.md names
	[ -f "$dir/usr/share/doc/gdaki/$f" ] || complain "README.md names $f, which was not installed"
done < <(grep -oE '`[a-z/]+[A-Za-z]+\.md`' README.md | tr -d '`')
for so in "$B"/lib/lib*_cuda.so; do
	[ ! -e "$so" ] || [ -f "$dir/usr/lib/gdaki/${so##*/}" ] || complain "${so##*/} was not installed"
done
diff <(cd "$B/include" && find -L . -type f | sort) <(cd "$dir/usr/include/gdaki" && find . -type f | sort) \
	>"$dir/log" || complain "the installed headers differ from those of the build"
diff <(ls "$B/include-doca") <(ls "$dir/usr/include/gdaki-doca") >"$dir/log" ||
	complain "the installed headers of gdaki-doca differ from those of the build"
[ "$(ls "$dir/usr/include")" = $'gdaki\ngdaki-doca\nhost' ] && [ "$(ls "$dir/usr/include/host")" = other.h ] ||
	complain "a header is installed outside include/gdaki and include/gdaki-doca"

find "$dir/usr" -type f ! -name '*.pc' ! -name other.h -printf '%m %P\n' | grep -v -E \
	'^644 (lib/.*\.a|lib/gdaki/installed.txt|lib/cmake/.*|include/gdaki(-doca)?/.*|share/.*)$|^755 lib/gdaki/' >"$dir/log" &&
	complain "unexpected modes"
find "$dir/usr" -type d ! -perm 755 >"$dir/log"
[ ! -s "$dir/log" ] || complain "folders without mode 755"
grep -rIl -F -e "$PWD" -e "$dir" "$dir/usr" >"$dir/log" && complain "files contain the path of the build or of DESTDIR"
for page in "1 softnic-run" "1 hello_put" "1 gpunetio_verbs_put_bw" "7 gpunetio_verbs_examples" "7 gdaki"; do
	! command -v man >/dev/null || [ -n "$(man -M "$dir/usr/share/man" -w $page 2>/dev/null)" ] ||
		complain "man does not find $page"
done

# ---- programs outside the tree ----
cat >"$dir/p.c" <<'C'
#include <infiniband/verbs.h>
#include <doca_gpunetio_host.h>
#include <common/doca_gpunetio_verbs_dev.h>
#include <host/doca_verbs.h>
#include <host/gdaki.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && *list ? ibv_open_device(*list) : NULL;
	struct doca_gpu_verbs_qp_init_attr_hl attr;
	struct doca_gpu_verbs_qp_hl *qp;

	puts(gdk_version());
	memset(&attr, 0, sizeof(attr));
	attr.ibpd = ctx ? ibv_alloc_pd(ctx) : NULL;
	attr.sq_nwqe = 64;
	if (!attr.ibpd || doca_gpu_create("host", &attr.gpu_dev) ||
	    doca_verbs_dev_open(attr.ibpd, &attr.net_dev) || doca_gpu_verbs_create_qp_hl(&attr, &qp))
		return 1;
	return doca_gpu_verbs_destroy_qp_hl(qp) || doca_verbs_dev_close(attr.net_dev) ||
	       doca_gpu_destroy(attr.gpu_dev) || ibv_dealloc_pd(attr.ibpd) || ibv_close_device(ctx);
}
C
cp "$dir/p.c" "$dir/p.cpp"
echo 'int helper(void); int helper(void) { return 0; }' >"$dir/helper.c"

version=$(sed -n 's/^#define GDK_VERSION "\(.*\)"/\1/p' "$dir/usr/include/gdaki/host/gdk_version.h")
same_version() { # where it was found, the version found there
	[ "$2" = "$version" ] || complain "$1 reports version \"$2\"; gdk_version.h defines \"$version\""
}
pkg() { # arguments of pkg-config
	PKG_CONFIG_PATH=$dir/usr/lib/pkgconfig pkg-config --define-variable=prefix="$dir/usr" "$@"
}
works() { # how the program $dir/p was linked, command that links it
	local how=$1 out
	shift
	rm -f "$dir/p"
	"$@" >"$dir/log" 2>&1 || { complain "a program does not link: $how"; return; }
	out=$(timeout 60 "$dir/usr/bin/softnic-run" -- "$dir/p" 2>"$dir/log") || { complain "a program fails: $how"; return; }
	same_version "gdk_version(), $how," "$out"
	nm "$dir/p" >"$dir/nm"
	for s in $(pkg --variable=strategies gdaki); do
		grep -q " [RrDd] gdk_doorbell_${s}_linked$" "$dir/nm" || complain "strategy $s is not linked: $how"
	done
}

same_version CHANGELOG.md "$(sed -n 's/^## \[\([0-9.]*\)\].*/\1/p' CHANGELOG.md | head -n 1)"
for pc in gdaki gdaki-static; do
	same_version "$pc.pc" "$(pkg --modversion $pc)"
	[ "$(pkg --variable=api_level $pc)" = 3.0.0 ] || complain "$pc.pc has no api_level"
	works "$pc.pc" "$CC" -std=c11 -Wall -Werror -o "$dir/p" "$dir/p.c" $(pkg --cflags --libs $pc)
done
# A program with the interface of the SDK prints the name of the NIC.
cat >"$dir/s.c" <<'C'
#include <doca_dev.h>
#include <doca_error.h>
#ifdef WITH_DMA
#include <doca_dma.h>
#endif
#include <stdio.h>
int main(void)
{
#ifdef WITH_DMA
	struct doca_dma *dma;
#endif
	char name[DOCA_DEVINFO_IBDEV_NAME_SIZE];
	struct doca_devinfo **list;
	struct doca_dev *dev;
	uint32_t num;

	if (doca_devinfo_create_list(&list, &num) || !num || doca_dev_open(list[0], &dev) ||
	    doca_devinfo_get_ibdev_name(doca_dev_as_devinfo(dev), name, sizeof(name)))
		return 1;
	puts(name);
#ifdef WITH_DMA
	if (doca_dma_create(dev, &dma) || doca_dma_destroy(dma))
		return 1;
#endif
	return doca_dev_close(dev) || doca_devinfo_destroy_list(list);
}
C
cp "$dir/s.c" "$dir/s.cpp"
same_version gdaki-doca.pc "$(pkg --modversion gdaki-doca)"
for how in "$CC -std=c11 $dir/s.c" "$CC -std=c11 -DWITH_DMA $dir/s.c" "g++ $dir/s.cpp" ${nvcc:+"$nvcc -cudart none $dir/s.c"}; do
	rm -f "$dir/s"
	$how -o "$dir/s" $(pkg --cflags --libs gdaki-doca) >"$dir/log" 2>&1 || complain "a program does not link: gdaki-doca.pc, $how"
	[ "$(timeout 60 "$dir/usr/bin/softnic-run" -- "$dir/s" 2>"$dir/log")" = mlx5_0 ] ||
		complain "a program fails: gdaki-doca.pc, $how"
done
cat >"$dir/r.c" <<'C'
#include <doca_rdma.h>
int main(void)
{
	return doca_rdma_as_ctx(NULL) != NULL;
}
C
# shellcheck disable=SC2046 # options
$CC -std=c11 "$dir/r.c" -o "$dir/r" $(pkg --cflags --libs gdaki-doca) >"$dir/log" 2>&1 && "$dir/r" 2>/dev/null ||
	complain "a program does not link or run: gdaki-doca.pc, the RDMA library"
# The SDK's names of the packages are found only where PKG_CONFIG_PATH names their folder.
sdk=$(sed -n 's/^#define SDK_VERSION *"\(.*\)"/\1/p' qp/doca/log.c)
pkg_sdk() { # arguments of pkg-config
	PKG_CONFIG_PATH=$dir/usr/lib/gdaki-doca/pkgconfig:$dir/usr/lib/pkgconfig \
		pkg-config --define-variable=prefix="$dir/usr" "$@"
}
for pc in doca-common doca-gpunetio doca-verbs doca-dma doca-rdma doca-flow; do
	! PKG_CONFIG_LIBDIR=$dir/usr/lib/pkgconfig pkg-config --exists $pc || complain "$pc.pc is in lib/pkgconfig"
	[ "$(pkg_sdk --modversion $pc)" = "$sdk" ] || complain "$pc.pc has not the version $sdk"
	[ "$(pkg_sdk --cflags --libs $pc)" = "$(pkg --cflags --libs gdaki-doca)" ] ||
		complain "$pc.pc differs from gdaki-doca.pc"
done
cflags=$(pkg --cflags gdaki)
libs=$(pkg --libs gdaki)
sys=$(pkg --variable=system_libs gdaki)
backwards=$(tr ' ' '\n' <<<"$libs" | tac | xargs)
for cc in gcc clang; do
	command -v $cc >/dev/null || continue
	$cc -c $cflags -o "$dir/p.o" "$dir/p.c" && $cc -c -o "$dir/helper.o" "$dir/helper.c" || complain "$cc does not compile"
	works "$cc, objects between the libraries" $cc -o "$dir/p" "$dir/p.o" $libs "$dir/helper.o" -lm
	works "$cc, libraries twice" $cc -o "$dir/p" -lm "$dir/p.o" $libs $libs
	works "$cc, libraries backwards" $cc -o "$dir/p" -Wl,--no-as-needed "$dir/p.o" $backwards
	works "$cc, separate archives" $cc -o "$dir/p" "$dir/p.o" -L"$dir/usr/lib" \
		$(pkg --variable=separate_libs gdaki) $sys
done
works "g++" g++ -Wall -Werror -o "$dir/p" $cflags "$dir/p.cpp" $libs
if [ -n "$nvcc" ]; then
	works "nvcc" "$nvcc" -cudart none -o "$dir/p" $cflags "$dir/p.c" $libs
	works "nvcc, libraries first" "$nvcc" -cudart none -o "$dir/p" -Xlinker --no-as-needed $backwards "$dir/p.o" $libs
fi

# The headers also work below another folder, as NCCL and UCX have them, and as C++ templates.
mkdir "$dir/as"
ln -s "$dir/usr/include/gdaki" "$dir/as/doca_gpunetio"
printf '#include <%s>\n' doca_gpunetio/doca_gpunetio_device.h doca_gpunetio/common/doca_gpunetio_verbs_def.h \
	doca_gpunetio/device/doca_gpunetio_dev_verbs_qp.cuh >"$dir/as/as.cpp"
g++ -std=c++17 -fsyntax-only -I"$dir/as" "$dir/as/as.cpp" >"$dir/log" 2>&1 || complain "headers below another folder"
echo '#include <device/doca_gpunetio_dev_verbs_qp.cuh>' >"$dir/as/in.cpp"
g++ -std=c++17 -fsyntax-only $cflags "$dir/as/in.cpp" >"$dir/log" 2>&1 || complain "device headers"

if command -v cmake >/dev/null && [ -e "$dir/usr/lib/cmake/gdaki/gdaki-config.cmake" ]; then
	cmake -S "$dir/usr/share/doc/gdaki/examples" -B "$dir/cmake" -DCMAKE_PREFIX_PATH="$dir/usr" >"$dir/log" 2>&1 &&
		cmake --build "$dir/cmake" --target hello_put gpunetio_verbs_put_bw gpunetio_doctor gpunetio_dma_memcpy \
			gpunetio_rdma_client_server_write gpunetio_echo gpunetio_simple_send >"$dir/log" 2>&1 ||
		complain "the installed examples do not build with CMake"
	timeout 60 "$dir/usr/bin/softnic-run" -- "$dir/cmake/hello_put" >"$dir/log" 2>&1 || complain "hello_put of CMake fails"
fi
if command -v cmake >/dev/null; then
	mkdir "$dir/sdk"
	printf '%s\n' 'cmake_minimum_required(VERSION 3.18)' 'project(s C)' \
		'find_package(gdaki REQUIRED COMPONENTS doca dma)' "add_executable(s $dir/s.c)" \
		'target_compile_definitions(s PRIVATE WITH_DMA)' 'target_link_libraries(s gdaki::dma)' >"$dir/sdk/CMakeLists.txt"
	cmake -S "$dir/sdk" -B "$dir/sdk/build" -DCMAKE_PREFIX_PATH="$dir/usr" >"$dir/log" 2>&1 &&
		cmake --build "$dir/sdk/build" >"$dir/log" 2>&1 || complain "gdaki::dma does not link with CMake"
	[ "$(timeout 60 "$dir/usr/bin/softnic-run" -- "$dir/sdk/build/s" 2>"$dir/log")" = mlx5_0 ] ||
		complain "a program with gdaki::dma fails"
fi

# ---- installed programs ----
for program in "$B/bin/softnic-run" "$dir"/usr/bin/*; do
	said=$(timeout 60 "$program" --version) || complain "$program --version fails"
	[ "${said% *}" = "${program##*/} (gdaki)" ] || complain "$program --version prints $said"
	same_version "$program --version" "${said##* }"
done
runs_in() { # folder of the programs
	timeout 60 "$1/softnic-run" -- ibv_devinfo >"$dir/log" 2>&1 && grep -q mlx5_0 "$dir/log" ||
		complain "$1/softnic-run does not show the NIC to ibv_devinfo"
	timeout 60 "$1/softnic-run" -- "$1/hello_put" >"$dir/log" 2>&1 && grep -q 'status 0' "$dir/log" || complain "$1/hello_put fails"
}
runs_in "$dir/usr/bin"

# ---- installing again, uninstalling ----
# Files of the earlier installation that the new one lacks are removed; those of others are not.
mkdir "$dir/usr/include/gdaki/earlier"
touch "$dir/usr/lib/gdaki/libearlier_cuda.so" "$dir/usr/include/gdaki/earlier/old.h" "$dir/usr/lib/gdaki/mine"
printf '%s\n' lib/gdaki/libearlier_cuda.so include/gdaki/earlier/ include/gdaki/earlier/old.h \
	>>"$dir/usr/lib/gdaki/installed.txt"
run_make PREFIX=/usr DESTDIR="$dir" install_examples || complain "make install_examples fails"
[ -e "$dir/usr/lib/gdaki/libearlier_cuda.so" ] || complain "make install_examples removes other files of gdaki"
run_make PREFIX=/usr DESTDIR="$dir" install || complain "installing again fails"
[ ! -e "$dir/usr/lib/gdaki/libearlier_cuda.so" ] && [ ! -e "$dir/usr/include/gdaki/earlier" ] ||
	complain "installing again keeps files of the earlier installation"
! grep earlier "$dir/usr/lib/gdaki/installed.txt" || complain "installing again keeps removed files in the list"
[ -e "$dir/usr/lib/gdaki/mine" ] && rm "$dir/usr/lib/gdaki/mine" || complain "installing again removes a file of others"
# A file that cannot be removed is reported and stays in the list; all others are removed.
cp -a "$dir/usr" "$dir/stuck"
rm "$dir/stuck/lib/libgdaki.a" && mkdir "$dir/stuck/lib/libgdaki.a"
run_make PREFIX="$dir/stuck" uninstall && complain "an incomplete removal succeeds"
grep -q "rm:.*libgdaki.a" "$dir/log" || complain "the file that was not removed is not reported"
[ "$(grep -v '/$' "$dir/stuck/lib/gdaki/installed.txt" | sort | xargs)" = "lib/gdaki/installed.txt lib/libgdaki.a" ] ||
	complain "after an incomplete removal the list has $(xargs <"$dir/stuck/lib/gdaki/installed.txt")"
rmdir "$dir/stuck/lib/libgdaki.a"
run_make PREFIX="$dir/stuck" uninstall || complain "the removal cannot be repeated"
contents "$dir/stuck" | diff "$dir/before" - >"$dir/log" || complain "the repeated removal leaves something"
cp -a "$dir/usr" "$dir/usr.copy"
run_make PREFIX=/usr DESTDIR="$dir" uninstall || complain "make uninstall fails"
contents "$dir/usr" | diff "$dir/before" - >"$dir/log" || complain "uninstalling left or removed something"
run_make PREFIX=/usr DESTDIR="$dir" uninstall && complain "uninstalling twice succeeds"
grep -q 'installed.txt not found' "$dir/log" || complain "uninstalling twice reports no reason"

# Other folders, inside PREFIX and outside, an empty prefix, two installations, and a move.
for at in "lib64 include" "lib/x86_64-linux-gnu /usr/include/x" "/opt/own/lib /opt/own/include"; do
	read -r libdir includedir <<<"$at"
	other=(LIBDIR="$libdir" INCLUDEDIR="$includedir" PREFIX=/opt/gdaki)
	mkdir "$dir/new"
	run_make DESTDIR="$dir/new" "${other[@]}" install_examples || complain "make install_examples fails, LIBDIR=$libdir"
	[ -x "$dir/new/opt/gdaki/bin/hello_put" ] || complain "make install_examples installs no example"
	run_make DESTDIR="$dir/new" "${other[@]}" install || complain "make install fails, LIBDIR=$libdir"
	mv "$dir/new" "$dir/moved"
	runs_in "$dir/moved/opt/gdaki/bin"
	pc=$(find "$dir/moved" -name gdaki.pc)
	case $libdir in
	/*) want="-I$includedir/gdaki -L$libdir" ;;
	*) want="-I$(realpath -ms "/opt/gdaki/$includedir")/gdaki -L/opt/gdaki/$libdir" ;;
	esac
	[ "${includedir#/}" = "$includedir" ] || want="-I$includedir/gdaki ${want#* }"
	got=$(PKG_CONFIG_PATH=${pc%/*} pkg-config --cflags --libs-only-L gdaki | xargs)
	[ "$got" = "$want" ] || complain "LIBDIR=$libdir: gdaki.pc has $got, expected $want"
	run_make DESTDIR="$dir/moved" "${other[@]}" uninstall || complain "make uninstall fails, LIBDIR=$libdir"
	[ -z "$(contents "$dir/moved")" ] || complain "LIBDIR=$libdir: uninstalling leaves $(contents "$dir/moved" | xargs)"
	rmdir "$dir/moved" || exit 1
done

# PREFIX was created by the installation, and DESTDIR is not used. A copy without links works.
run_make PREFIX="$dir/one/two" install || complain "make install fails without DESTDIR"
cp -rL "$dir/one/two" "$dir/copy"
runs_in "$dir/copy/bin"
# Files of an older gdaki are reported once and kept.
mkdir -p "$dir/one/two/include/host"
touch "$dir/one/two/include/host/gdaki.h" "$dir/one/two/lib/libput_bw_cuda.so"
run_make PREFIX="$dir/one/two" install
[ "$(grep -c "$dir/one/two/.*belongs to an older gdaki" "$dir/log")" = 1 ] || complain "no line about files of an older gdaki"
run_make PREFIX="$dir/one/two" uninstall
[ "$(cd "$dir/one" && find . -type f | sort | xargs)" = "./two/include/host/gdaki.h ./two/lib/libput_bw_cuda.so" ] ||
	complain "the files of an older gdaki are not all that uninstalling leaves"
exit $bad
