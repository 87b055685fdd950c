#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) gdaki authors
#
# The evidence of failed tests. run.sh, in a folder of its own, runs three planted programs on the
# software NIC: one passes and leaves nothing, one fails after an error completion, and one hangs.
# The folders of the last two must have their output, the counters, the states of the queue pair and
# the packets, and that of the hanging one its stacks. again.sh must report the failures. The folder
# of the NICs has a limited size, and the last packets remain in their order.
set -u
cd "$(dirname "$0")/.." || exit 2
name=evidence.sh
B=$(realpath "${B:-build}")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
command -v gdb >/dev/null || { echo "$name: gdb not found"; exit 77; }
command -v tshark >/dev/null || { echo "$name: tshark not found"; exit 77; }
. tests/lib/pair.sh

has() { # file in $tmp, extended regular expressions: the file has a line for each
	local file=$1 text
	shift
	for text; do
		grep -qE -- "$text" "$tmp/$file" || complain "$file has no line with: $text" "$file"
	done
}

# ---- planted programs ----

mkdir -p "$tmp"/{tests/unit,build/tests}
cp tests/{run,run-unit,run-one,limit,again}.sh "$tmp/tests"
ln -s "$B/bin" "$B/lib" "$tmp/build"
cat >"$tmp/planted.c" <<'END'
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char memory[64];

__attribute__((noinline)) void planted_hang(void)
{
	for (;;)
		pause();
}

/* A WRITE from a queue pair to itself. */
int main(int argc, char **argv)
{
	int fails = strstr(argv[0], "fails") != NULL, n;
	struct ibv_context *ctx = ibv_open_device(ibv_get_device_list(NULL)[0]);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 } };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = IBV_MTU_1024,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE, .dest_qp_num = qp->qp_num, .timeout = 14,
		.retry_cnt = 7, .ah_attr = { .is_global = 1, .port_num = 1,
		.grh = { .sgid_index = 3, .hop_limit = 64 } } };
	struct ibv_sge sge = { (uintptr_t)memory, 32, mr->lkey + fails };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)memory + 32, mr->rkey } }, *bad;
	struct ibv_wc wc;

	ibv_query_gid(ctx, 1, 3, &a.ah_attr.grh.dgid);
	ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	a.qp_state = IBV_QPS_RTR;
	ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	a.qp_state = IBV_QPS_RTS;
	ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	for (n = argc > 1 ? 550 : 3; n; n--) {
		if (ibv_post_send(qp, &wr, &bad))
			return 3;
		while (!ibv_poll_cq(cq, 1, &wc))
			;
		printf("status %d\n", wc.status);
		if (wc.status)
			return 1;
	}
	fflush(stdout);
	if (strstr(argv[0], "hangs"))
		planted_hang();
	puts("Tested: 1 | Passing: 1 | Failing: 0 | Crashing: 0");
	return 0;
}
END
"${CC:-gcc}" -g -O1 -o "$tmp/build/tests/test_passes" "$tmp/planted.c" -libverbs || exit 1
cp "$tmp/build/tests/test_passes" "$tmp/build/tests/test_fails"
cp "$tmp/build/tests/test_passes" "$tmp/build/tests/test_hangs"
touch "$tmp"/tests/unit/test_{passes,fails,hangs}.c

# ---- run.sh ----

(cd "$tmp" && B=build SAN='' CI='' T='test_[fhp]' LIMIT=3 tests/run.sh >out 2>&1)
[ $? = 1 ] || complain "the exit status of run.sh is not 1" out
has out '^1 passed, 2 failed, 0 skipped$' '^evidence of test_fails: build/failed/test_fails$' \
	'^evidence of test_hangs: build/failed/test_hangs$'
[ "$(cd "$tmp/build/failed" && echo *)" = "test_fails test_hangs" ] || complain "a test that passes leaves evidence" out
for f in fails hangs; do
	at=$tmp/build/failed/test_$f
	cp "$at"/*.txt "$tmp/text" && cp "$at"/*.pcapng "$tmp/packets" && cp "$at/output" "$tmp/output" ||
		complain "not one text, one capture and the output of test_$f" out
	tshark -r "$tmp/packets" -T fields -e infiniband.bth.opcode >"$tmp/opcodes" 2>"$tmp/err" ||
		complain "tshark cannot read the packets of test_$f" err
	if [ $f = fails ]; then
		has output 'status 4$'
		has text '^mlx5_0 of process [0-9]+ at 127\..*, exiting at ' '^program: build/tests/test_fails$' \
			'^packets: 0, ' '^  qp RC 0x[0-9a-f]+: state ERR, .*; last error: local protection .* of WQE 0$' \
			'^    send: ring [0-9]+, pi 1, DBREC 1, ci 1, in flight 0; ' '^  error_cqes  *1$'
		[ ! -e "$at/stacks" ] || complain "stacks of a test that ended"
	else
		cp "$at/stacks" "$tmp/stacks"
		cmp -s "$at"/*.pcapng "$at"/limit/*.pcapng || complain "the packets at the limit" stacks
		has stacks 'still running after [0-9]+ s$' '^  thread [0-9]+ softnic, state [A-Z], ' ' planted_hang ?\(' ' nic_thread ?\('
		has text ', running at ' '^packets: 6, ' '^  qp RC 0x[0-9a-f]+: state RTS, to 0x[0-9a-f]+ at ' \
			'^    send: ring [0-9]+, pi 3, DBREC 3, ci 3, in flight 0; .* retries 0 of 7, ' \
			'^    receive: ring [0-9]+, ci 0, DBREC 0; PSN expected 3, ' '^  cq 0x[0-9a-f]+: ring [0-9]+, pi 3, DBREC 3$'
		[ "$(sort "$tmp/opcodes" | uniq -c | tr -s ' \n' ' ')" = " 3 10 3 17 " ] ||
			complain "the packets of test_hangs" opcodes
	fi
done

# ---- again.sh ----

again() { (cd "$tmp" && B=build SAN='' CI='' T=$1 tests/again.sh "${@:2}" >out 2>&1); }
again 'test_[fp]' 2 1
[ $? = 1 ] || complain "the exit status of again.sh is not 1" out
has out '^run 2: 1 passed, 1 failed, 0 skipped; [0-9]+ s elapsed, [0-9]+ s of CPU time$' \
	'^  failed: test_fails, evidence: build/again/2/test_fails$' '^test_fails failed in 2 of 2 runs$'
[ -e "$tmp/build/again/1/test_fails/output" ] || complain "again.sh does not keep the evidence" out
again test_p 1 1 && has out '^1 runs beside 1 busy loops: no failure$' || complain "again.sh reports a failure" out
again test_nothing 1 1
[ $? = 2 ] && has out 'matches no test' || complain "again.sh runs without a test" out

# ---- limits ----

on_nic() { timeout 60 "$run" --evidence "$tmp/e" -- "$tmp/build/tests/test_passes" "$@" >"$tmp/out" 2>&1; }
run=$B/bin/softnic-run
on_nic 550 || complain "550 writes fail" out
cp "$tmp"/e/*.txt "$tmp/text"
has text '^packets: 1100, '
tshark -r "$tmp"/e/*.pcapng -T fields -e infiniband.bth.opcode -e infiniband.bth.psn >"$tmp/opcodes" 2>"$tmp/err" ||
	complain "tshark cannot read a capture that was full" err
[ "$(tail -n 2 "$tmp/opcodes" | paste -sd ' ')" = $'10\t549 17\t549' ] || complain "the last packets" opcodes
lines=$(wc -l <"$tmp/opcodes")
{ [ "$lines" -ge 128 ] && [ "$lines" -le 256 ]; } || complain "$lines packets remain, expected 128 to 256"
cut -f2 "$tmp/opcodes" | sort -nc 2>"$tmp/err" || complain "the packets are not in their order" err
# Process IDs above the largest one (proc(5)) are of ended processes.
for i in {5000001..5000300}; do touch "$tmp/e/$i.pcapng" "$tmp/e/$i.txt"; done
on_nic || complain "3 writes fail" out
n=$(find "$tmp/e" -name '*.pcapng' | wc -l)
[ "$n" = 301 ] || complain "$n files remain of 301, and the new one, expected 301: each NIC removes one file"
[ $bad != 0 ] || echo "$name: evidence of a test that fails and of one that hangs; $lines of 1100 packets remain"
exit $bad
