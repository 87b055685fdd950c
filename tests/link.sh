#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The link line chooses the doorbell strategies. Checks that every subset of their archives,
# with auto before and after them, links in the documented order, that the program finds
# exactly these strategies, and that a link with an archive missing fails. Also links every
# archive completely, with only the archives that it may depend on.
set -u
cd "$(dirname "$0")/.." || exit 2
B=${B:-build}
CC=${CC:-gcc}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
links=0
parts="-lgdaki_core -lgdaki_umem -lgdaki_uar -lgdaki_cq -lgdaki_qp"
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

link_with() { # libraries...
	links=$((links + 1))
	# shellcheck disable=SC2086 # lists of libraries
	"$CC" -o "$tmp/p" "$tmp/p.o" -L"$B/lib" -Wl,--start-group $parts "$@" -Wl,--end-group \
		-lgdaki_db_none $sys 2>"$tmp/err"
}

chosen() { # handler: prints the output of the program
	timeout 20 "$B/bin/softnic-run" -- "$tmp/p" "$1" 2>"$tmp/err"
}

expect() { # subset, handler, wanted, order
	local got
	got=$(chosen "$2")
	[ "$got" = "$3" ] || complain "with {$1} ($4), handler $2 gives '$got', expected '$3'"
}

for set in "" gpu_sm bf cpu_proxy "gpu_sm bf" "gpu_sm cpu_proxy" "bf cpu_proxy" "gpu_sm bf cpu_proxy"; do
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
		# shellcheck disable=SC2086 # a list of libraries
		link_with $line || { complain "{$set} does not link with auto $order"; continue; }
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

# Without db_none, a missing strategy must be an error at link time.
links=$((links + 1))
# shellcheck disable=SC2086 # lists of libraries
if "$CC" -o "$tmp/p" "$tmp/p.o" -L"$B/lib" -Wl,--start-group $parts -lgdaki_db_auto -lgdaki_db_gpu_sm \
	-Wl,--end-group $sys 2>"$tmp/err"; then
	complain "without db_none, a program without bf and cpu_proxy links"
elif ! grep -q gdk_doorbell_ "$tmp/err"; then
	complain "without db_none, the linker does not name the missing strategy"
fi
: >"$tmp/err"

# Links every member of each archive, with all archives that it may depend on.
all="$parts -lgdaki_db_auto -lgdaki_db_gpu_sm -lgdaki_db_bf -lgdaki_db_cpu_proxy"
echo 'int main(void) { return 0; }' >"$tmp/empty.c"
for lib in "$B"/lib/libgdaki_*.a; do
	rest=$all
	name=$(basename "$lib" .a)
	name=-l${name#lib}
	[ "$name" != -lgdaki_db_none ] || rest=
	links=$((links + 1))
	# shellcheck disable=SC2086,SC2046 # lists of libraries
	"$CC" -o "$tmp/empty" "$tmp/empty.c" -Wl,--whole-archive "$lib" -Wl,--no-whole-archive -L"$B/lib" \
		-Wl,--start-group $(echo "$rest " | sed "s/$name //") -Wl,--end-group $sys 2>"$tmp/err" ||
		complain "$(basename "$lib") does not link on its own"
done
[ $bad != 0 ] || echo "link.sh: $links links"
exit $bad
