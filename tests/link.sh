#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The link line is a plain list from qp down to core, with the doorbell strategies and
# libgdaki_db_none.a in the middle. Every subset of the strategies but the empty one, with
# auto in front of them or behind, links with this line and with the older one (a group), with
# each linker, and the program finds exactly these strategies, also with libgdaki_db_none.a in
# front of them. No strategy, by mistake or by order, is an error of the link, and the linker's
# message names the cure. libgdaki_db_none.a missing is an error, too. Every archive links with
# the archives to its right alone. The merged archive has all strategies.
# shellcheck disable=SC2086,SC2317 # lists of words; functions that are arguments
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
CC=${CC:-gcc}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
links=0
parts="-lgdaki_core -lgdaki_umem -lgdaki_uar -lgdaki_cq -lgdaki_qp"
lower="-lgdaki_cq -lgdaki_uar -lgdaki_umem -lgdaki_core"
sys="-lmlx5 -libverbs -lnuma -ldl -lpthread"

complain() {
	echo "link.sh: $1"
	[ ! -s "$tmp/err" ] || head -n 8 "$tmp/err" | sed 's/^/    /'
	bad=1
}

# Creates a QP with the handler given as argument, on a device that all strategies support,
# and prints the chosen handler.
cat >"$tmp/p.c" <<'C'
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doca_gpunetio_host.h"
#include "host/gdaki.h"

static struct ibv_pd *open_pd(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;

	return ctx ? ibv_alloc_pd(ctx) : NULL;
}

int main(int argc, char **argv)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr;
	struct gdk_handler_report report;
	struct doca_gpu_verbs_qp_hl *qp;
	struct ibv_pd *pd = open_pd();
	doca_dev_t *dev;
	doca_gpu_t *gpu;
	doca_error_t err;

	memset(&attr, 0, sizeof(attr));
	if (!pd || doca_verbs_dev_open(pd, &dev) || doca_gpu_create("host", &gpu)) {
		puts("no device");
		return 2;
	}
	attr.gpu_dev = gpu;
	attr.net_dev = dev;
	attr.ibpd = pd;
	attr.sq_nwqe = 64;
	attr.nic_handler = (enum doca_gpu_dev_verbs_nic_handler)(argc > 1 ? atoi(argv[1]) : 0);
	err = doca_gpu_verbs_create_qp_hl(&attr, &qp);
	if (err) {
		printf("refused %d\n", err);
		return 0;
	}
	if (gdk_verbs_qp_get_handler_report(qp->qp_gverbs, &report)) {
		puts("no report");
		return 3;
	}
	printf("%s\n", gdk_handler_name(report.chosen));
	return doca_gpu_verbs_destroy_qp_hl(qp) != DOCA_SUCCESS;
}
C
"$CC" -std=gnu11 -Wall -Werror -I"$B/include" -c -o "$tmp/p.o" "$tmp/p.c" 2>"$tmp/err" ||
	{ complain "the program does not compile"; exit 1; }

NVCC=${NVCC:-$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)}
linkers=
for ld in bfd gold lld; do
	! command -v ld.$ld >/dev/null || linkers="$linkers $ld"
done

link() { # options of the linker
	links=$((links + 1))
	"$CC" -o "$tmp/p" "$tmp/p.o" -L"$B/lib" "$@" $sys 2>"$tmp/err"
}
plain() { # linker, strategies and db_none
	local ld=$1
	shift
	link -fuse-ld="$ld" -lgdaki_qp "$@" $lower
}
group() { # linker, strategies
	local ld=$1
	shift
	link -fuse-ld="$ld" -Wl,--start-group $parts "$@" -Wl,--end-group -lgdaki_db_none
}
nvcc_line() { # strategies and db_none
	links=$((links + 1))
	# shellcheck disable=SC2086 # compilers with options
	$NVCC ${CUDAHOSTCXX:+-ccbin $CUDAHOSTCXX} -cudart none -o "$tmp/p" "$tmp/p.o" \
		-L"$B/lib" -lgdaki_qp "$@" $lower $sys 2>"$tmp/err"
}

# The program's symbol table has the name of the source file of each linked strategy.
linked() {
	nm -a "$tmp/p" | sed -n 's/.* a \(gpu_sm\|bf\|cpu_proxy\)\.c$/\1/p' | sort | xargs
}
links_as() { # subset, how it is linked, command...
	local set=$1 how=$2 want got
	shift 2
	"$@" || { complain "{$set} does not link: $how"; return; }
	want=$(tr ' ' '\n' <<<"$set" | sort | xargs)
	got=$(linked)
	[ "$got" = "$want" ] || complain "{$set}, $how: the program has {$got}"
}

chosen() { # handler: prints the output of the program
	timeout 20 "$B/bin/softnic-run" -- "$tmp/p" "$1" 2>"$tmp/err"
}

expect() { # subset, handler, wanted, order
	local got
	got=$(chosen "$2")
	[ "$got" = "$3" ] || complain "with {$1} ($4), handler $2 gives '$got', expected '$3'"
}

for set in gpu_sm bf cpu_proxy "gpu_sm bf" "gpu_sm cpu_proxy" "bf cpu_proxy" "gpu_sm bf cpu_proxy"; do
	libs=
	for s in $set; do libs="$libs -lgdaki_db_$s"; done
	# AUTO tries GPU_SM_DB, then CPU_PROXY, and never chooses BlueFlame. Error 4 is
	# DOCA_ERROR_NOT_SUPPORTED.
	case " $set " in
	*" gpu_sm "*) auto=GPU_SM_DB ;;
	*" cpu_proxy "*) auto=CPU_PROXY ;;
	*) auto="refused 4" ;;
	esac
	for order in first last; do
		if [ $order = first ]; then
			line="-lgdaki_db_auto $libs"
		else
			line="$libs -lgdaki_db_auto"
		fi
		for ld in $linkers; do
			links_as "$set" "a group, $ld, auto $order" group "$ld" $line
			links_as "$set" "$ld, auto $order" plain "$ld" $line -lgdaki_db_none
		done
		[ -z "$NVCC" ] || links_as "$set" "nvcc, auto $order" nvcc_line $line -lgdaki_db_none
		plain bfd $line -lgdaki_db_none || continue
		expect "$set" 0 "$auto" "auto $order"
		case " $set " in
		*" gpu_sm "*) expect "$set" 2 GPU_SM_DB "auto $order" ;;
		*) expect "$set" 2 "refused 4" "auto $order" ;;
		esac
		case " $set " in
		*" cpu_proxy "*) expect "$set" 1 CPU_PROXY "auto $order" ;;
		*) expect "$set" 1 "refused 4" "auto $order" ;;
		esac
		case " $set " in
		*" bf "*) expect "$set" 6 GPU_SM_BF "auto $order" ;;
		*) expect "$set" 6 "refused 4" "auto $order" ;;
		esac
	done
done

# The log of a refusal names the archive and says what to change.
for s in gpu_sm:2 bf:6 cpu_proxy:1; do
	others=$(printf ' -lgdaki_db_%s' gpu_sm bf cpu_proxy | sed "s/ -lgdaki_db_${s%:*}//")
	plain bfd -lgdaki_db_auto $others -lgdaki_db_none || complain "without ${s%:*} it does not link"
	[ "$(chosen "${s#*:}")" = "refused 4" ] || complain "handler ${s#*:} is not refused without ${s%:*}"
	text="libgdaki_db_${s%:*}.a is not linked: link -lgdaki, or put -lgdaki_db_${s%:*} behind -lgdaki_qp"
	grep -q -F -e "$text" "$tmp/err" || complain "handler ${s#*:} is refused, but this is not logged: $text"
done

# db_none may be anywhere: the program has the strategies behind it, too. gold loses them if core
# is also in front of db_none. If db_none is missing, the linker names the strategy that is missing.
set="gpu_sm bf cpu_proxy"
three="-lgdaki_db_gpu_sm -lgdaki_db_bf -lgdaki_db_cpu_proxy"
for ld in $linkers; do
	for s in $set; do
		others=$(printf ' -lgdaki_db_%s' gpu_sm bf cpu_proxy | sed "s/ -lgdaki_db_$s//")
		links_as "$set" "$ld, db_none in front of $s" \
			plain "$ld" -lgdaki_db_auto $others -lgdaki_db_none "-lgdaki_db_$s"
		plain "$ld" -lgdaki_db_auto $others && complain "$ld: $s is missing, and so is db_none: it links"
		grep -q "gdk_doorbell_$s" "$tmp/err" || complain "$ld, without db_none: the linker does not name $s"
	done
	links_as "$set" "$ld, db_none in front, in a group" \
		link -fuse-ld="$ld" -Wl,--start-group $parts -lgdaki_db_auto -lgdaki_db_none $three -Wl,--end-group
	links_as "$set" "$ld, db_none in front, muldefs" \
		plain "$ld" -Wl,-z,muldefs -lgdaki_db_auto -lgdaki_db_none $three
	links_as "$set" "$ld, all of every archive" \
		plain "$ld" -Wl,--whole-archive -lgdaki_db_none $three -lgdaki_db_auto -Wl,--no-whole-archive
	links_as "$set" "$ld, merged" link -fuse-ld="$ld" -lgdaki
	links_as "$set" "$ld, merged, with db_none" link -fuse-ld="$ld" -lgdaki_db_none -lgdaki
	links_as cpu_proxy "$ld, -u" \
		link -fuse-ld="$ld" -Wl,-u,gdk_link_db_cpu_proxy -lgdaki_db_none -lgdaki_db_cpu_proxy \
		-lgdaki_qp -lgdaki_db_auto -lgdaki_db_none $lower
	[ "$ld" != gold ] || continue
	links_as "$set" "$ld, core and db_none in front" \
		link -fuse-ld="$ld" -lgdaki_qp -lgdaki_core -lgdaki_db_none -lgdaki_db_auto $three $lower
	expect "$set" 0 GPU_SM_DB "$ld, core and db_none in front"
done

# Without any strategy the program does not link, and the linker prints the cure.
cure=no_doorbell_strategy__link_lgdaki_or_put_lgdaki_db_NAME_behind_lgdaki_qp
fails() { # how it is linked, command...
	local how=$1
	shift
	"$@" && complain "it links without a strategy: $how"
	grep -q "$cure" "$tmp/err" || complain "no strategy, $how: the linker does not print the cure"
}
for ld in $linkers; do
	fails "$ld" plain "$ld" -lgdaki_db_auto -lgdaki_db_none
	fails "$ld, shared library" plain "$ld" -shared -lgdaki_db_auto -lgdaki_db_none
	fails "$ld, a group" group "$ld" -lgdaki_db_auto
	in_front="-fuse-ld=$ld $three -lgdaki_db_auto -lgdaki_qp -lgdaki_db_auto -lgdaki_db_none $lower"
	if [ "$ld" = lld ]; then
		links_as "$set" "$ld, strategies in front of qp" link $in_front
	else
		fails "$ld, strategies in front of qp" link $in_front
	fi
done
[ -z "$NVCC" ] || fails nvcc nvcc_line -lgdaki_db_auto -lgdaki_db_none
: >"$tmp/err"

# A program without queue pairs of the GPU needs no strategy.
cat >"$tmp/q.c" <<'C'
#include "doca_gpunetio_host.h"

int main(int argc, char **argv)
{
	doca_verbs_umem_t *umem;
	doca_verbs_cq_t *cq;
	doca_verbs_qp_t *qp;

	(void)argv;
	return argc > 1 && (doca_verbs_umem_create(NULL, NULL, NULL, 0, 0, -1, 0, &umem) ||
			    doca_verbs_cq_create(NULL, NULL, &cq) || doca_verbs_qp_create(NULL, NULL, &qp));
}
C
for ld in $linkers; do
	links=$((links + 1))
	"$CC" -std=gnu11 -Wall -Werror -I"$B/include" -fuse-ld="$ld" -o "$tmp/q" "$tmp/q.c" -L"$B/lib" -lgdaki_qp \
		$lower $sys 2>"$tmp/err" || complain "$ld: a program without GPU queue pairs needs a strategy"
done

# Each archive with the archives to its right, every member of it.
sdk="$(sed -n 's/^SDK_PARTS := //p' Makefile) doca"
all="$(printf -- '-lgdaki_%s ' $sdk)-lgdaki_qp -lgdaki_db_auto -lgdaki_db_gpu_sm -lgdaki_db_bf -lgdaki_db_cpu_proxy $lower"
echo 'int main(void) { return 0; }' >"$tmp/empty.c"
for lib in "$B"/lib/libgdaki_*.a; do
	name=$(basename "$lib" .a)
	name=-l${name#lib}
	case $name in
	-lgdaki_db_*) rest=$lower ;;
	*) rest=${all#*"$name"} ;;
	esac
	[ "$name" != -lgdaki_db_none ] || rest=
	links=$((links + 1))
	"$CC" -o "$tmp/empty" "$tmp/empty.c" -Wl,--whole-archive "$lib" -Wl,--no-whole-archive -L"$B/lib" \
		$rest $sys 2>"$tmp/err" || complain "$(basename "$lib") takes symbols from archives on its left"
done
[ $bad != 0 ] || echo "link.sh: $links links (${linkers# }${NVCC:+ nvcc})"
exit $bad
