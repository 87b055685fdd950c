/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * GDAKI_TRACE_CMDS: every command is recorded with the bytes that the NIC received,
 * masked traces contain no private values, and records of several threads and
 * processes are complete.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../core/log/trace.h"
#include "../../core/log/trace_mask.h"
#include "../../core/nic/devx.h"
#include "../../core/sdk/sdk.h"
#include "../../core/util.h"
#include "../../qp/verbs/qp.h"
#include "../lib/capture.h"
#include "../lib/e2e.h"
#include "../lib/standin.h"
#include "trace_rig.h"

#define ROWS_MAX 256
#define CMD_NONE 0x7ffu /* no firmware has this command */

TestSuite(trace, .init = begin, .fini = end);

static void run_queue_pair(struct e2e_nic *nic)
{
	struct e2e_qp q;

	e2e_qp_open(nic, &q, E2E_DB, 16);
	cr_assert_eq(
		e2e_connect(nic, q.hl->qp, &nic->gid, q.qpn, (struct e2e_path){ 14, 7, 0x123 }),
		DOCA_SUCCESS);
	e2e_qp_close(&q);
}

static void run_srq(struct e2e_nic *nic)
{
	struct doca_verbs_srq_init_attr *attr;
	struct doca_verbs_srq *srq;

	cr_assert_eq(doca_verbs_srq_init_attr_create(&attr), DOCA_SUCCESS);
	doca_verbs_srq_init_attr_set_srq_wr(attr, 4);
	doca_verbs_srq_init_attr_set_receive_max_sges(attr, 1);
	doca_verbs_srq_init_attr_set_pd(attr, nic->pd);
	cr_assert_eq(doca_verbs_srq_create(nic->ctx, attr, &srq), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_srq_destroy(srq), DOCA_SUCCESS);
	cr_assert_eq(doca_verbs_srq_init_attr_destroy(attr), DOCA_SUCCESS);
}

/* ---- the bytes that the NIC received ---- */

static char rows[2][ROWS_MAX][80];
static size_t num_rows[2];

static void add_row(int side, unsigned int opcode, const char *row)
{
	if (opcode == GDK_CMD_QUERY_HCA_CAP) /* libmlx5 sends this command, too */
		return;
	cr_assert_lt(num_rows[side], ROWS_MAX);
	snprintf(rows[side][num_rows[side]++], sizeof(rows[0][0]), "%#x %.70s", opcode, row);
}

static void rows_of_trace(char *text)
{
	unsigned int opcode = 0;
	bool input = false;
	char *line;

	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (!strncmp(line, "cmd ", 4))
			cr_assert(sscanf(strstr(line, " dev "), " dev %*s %*s 0x%x", &opcode));
		else if (line[0] == ' ' && line[1] != ' ')
			input = !strncmp(line, " in ", 4);
		else if (line[0] == ' ' && input)
			add_row(0, opcode, line + 2);
	}
}

static void rows_of_nic(char *text)
{
	unsigned int opcode;
	char *line, *row;

	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		row = strstr(line, " in ");
		if (row && sscanf(strstr(line, "] "), "] %*u command 0x%x in ", &opcode) == 1)
			add_row(1, opcode, row + 4);
	}
}

Test(trace, commands_are_what_the_nic_received)
{
	static const char *const names[] = {
		"QUERY_HCA_CAP", "CREATE_CQ",	"CREATE_QP",   "QUERY_LAG",
		"RST2INIT_QP",	 "INIT2RTR_QP", "RTR2RTS_QP",  "DESTROY_QP",
		"DESTROY_CQ",	 "CREATE_RMP",	"DESTROY_RMP",
	};
	struct e2e_nic nic;
	size_t i, k;

	/* With a bond, the library also sends QUERY_LAG, by another function: it is optional. */
	setenv("SOFTNIC_LAG", "2", 1);
	setenv("SOFTNIC_TRACE", nic_path, 1);
	e2e_open(&nic);
	run_queue_pair(&nic);
	run_srq(&nic);
	e2e_close(&nic);
	rows_of_trace(read_file(trace_path));
	rows_of_nic(read_file(nic_path));
	cr_assert_gt(num_rows[0], 15);
	cr_assert_eq(num_rows[0], num_rows[1], "%zu rows traced, %zu received", num_rows[0],
		     num_rows[1]);
	for (i = 0; i < num_rows[0]; i++)
		cr_expect_str_eq(rows[0][i], rows[1][i]);
	parse(read_file(trace_path));
	for (i = k = 0; i < num_records && k < GDK_ARRAY_SIZE(names); i++)
		k += !strcmp(records[i].name, names[k]);
	cr_expect_eq(k, GDK_ARRAY_SIZE(names), "%s is missing or out of order", names[k]);
}

Test(trace, replies_and_lengths)
{
	uint32_t cqn = 0, qpn = 0, connected = 0;
	struct e2e_nic nic;
	size_t i;

	e2e_open(&nic);
	run_queue_pair(&nic);
	e2e_close(&nic);
	parse(read_file(trace_path));
	for (i = 0; i < num_records; i++) {
		struct record *r = &records[i];

		if (!strcmp(r->name, "CREATE_CQ"))
			cqn = (uint32_t)prm_get(r->out, PRM_CMD_OUT_OBJECT);
		else if (!strcmp(r->name, "CREATE_QP"))
			qpn = (uint32_t)prm_get(r->out, PRM_CMD_OUT_OBJECT);
		else if (!strcmp(r->name, "INIT2RTR_QP"))
			connected = (uint32_t)prm_get(r->in, PRM_MODIFY_QP_QPN);
		else
			continue;
		cr_expect_eq(r->inlen, 0x110);
		cr_expect_eq(r->outlen, 0x10);
		cr_expect(!r->status && !r->sys_err, "refused: %s", r->line);
	}
	cr_expect(cqn && qpn && qpn == connected);
}

Test(trace, refused_command_is_recorded)
{
	uint8_t in[PRM_CMD_IN_LEN] = { 0 }, out[PRM_CMD_OUT_LEN];
	struct gdk_command_error last;
	struct e2e_nic nic;
	struct record *r;

	e2e_open(&nic);
	prm_set(in, PRM_CMD_OPCODE, CMD_NONE);
	cr_assert_neq(gdk_devx_cmd(nic.ctx, "test", in, sizeof(in), out, sizeof(out)),
		      DOCA_SUCCESS);
	cr_assert_eq(gdk_get_command_error(&last), DOCA_SUCCESS);
	e2e_close(&nic);
	parse(read_file(trace_path));
	r = &records[num_records - 1];
	cr_expect_eq(r->opcode, CMD_NONE);
	cr_expect_eq(r->status, (unsigned int)last.status);
	cr_expect_eq(r->syndrome, last.syndrome);
	cr_expect_eq(r->sys_err, last.sys_err);
	cr_expect(r->status && r->syndrome && r->sys_err);
}

Test(trace, facts_about_the_device_are_recorded)
{
	static const char *const kinds[] = {
		"start ",   "libmlx5 lib",     "libibverbs lib", "device ",
		"fw_ver ",  "vendor_part_id ", "umem ",		 "pgsz_bitmap ",
		"uar ",	    "page_id ",	       "eqn ",		 "events ",
		"types 0x",
	};
	struct gdk_events *events;
	struct e2e_qp q;
	struct e2e_nic nic;
	char *text;

	e2e_open(&nic);
	run_queue_pair(&nic);
	e2e_qp_open(&nic, &q, E2E_DB, 16);
	cr_assert_eq(gdk_events_open(nic.dev, &events), DOCA_SUCCESS);
	cr_expect_eq(gdk_events_watch_qp(events, q.hl->qp), DOCA_SUCCESS);
	e2e_qp_close(&q);
	cr_assert_eq(gdk_events_close(events), DOCA_SUCCESS);
	e2e_close(&nic);
	cr_expect_eq(torn_writes, 0);
	text = read_file(trace_path);
	for (size_t i = 0; i < GDK_ARRAY_SIZE(kinds); i++)
		cr_expect(strstr(text, kinds[i]), "no \"%s\" in the trace", kinds[i]);
}

static void expect_umem(const char *mask)
{
	struct mlx5dv_devx_umem_in in = { .addr = (void *)0x7f0012345000, .size = 4096 };
	struct mlx5dv_devx_uar uar = { .reg_addr = (void *)0x7f001234a800,
				       .base_addr = (void *)0x7f0012340000 };
	bool masked = *mask == '1';
	struct e2e_nic nic;
	const char *text;

	setenv("GDAKI_TRACE_CMDS_MASK", mask, 1);
	e2e_open(&nic);
	gdk_trace_umem(nic.ctx, &in, -1, NULL, EINVAL);
	in.addr = (void *)0x31000; /* an offset in the dmabuf */
	no_memory = true;
	errno = 77;
	gdk_trace_umem(nic.ctx, &in, 5, NULL, EINVAL);
	no_memory = false;
	cr_expect_eq(errno, 77);
	gdk_trace_umem(nic.ctx, &in, 5, NULL, EINVAL);
	gdk_trace_uar(nic.ctx, "test", &uar, 0);
	e2e_close(&nic);
	text = read_file(trace_path);
	cr_expect(strstr(text, masked ? " addr **+0x5000 " : " addr 0x7f0012345000 "), "text: %s",
		  text);
	cr_expect(strstr(text, " addr 0x31000 size 4096 "), "text: %s", text);
	cr_expect(strstr(text, masked ? " reg **+0xa800 base **+0x0 "
				      : " reg 0x7f001234a800 base 0x7f0012340000 "),
		  "text: %s", text);
}

Test(trace, addresses_and_offsets)
{
	expect_umem("0");
}

Test(trace, masked_addresses_and_offsets)
{
	expect_umem("1");
}

/* The SDK sends its own commands, so log and trace must state that they are not traced. */
Test(trace, sdk_mode_is_logged_and_recorded)
{
	char path[PATH_MAX];
	const char *log;

	standin_path(path, sizeof(path), "sdk");
	setenv("DOCA_SDK_LIB_PATH", path, 1);
	capture_begin();
	cr_assert(gdk_sdk_in_use(), "the SDK stand-in in %s is not in use", path);
	log = capture_end();
	cr_expect(strstr(log, "GDAKI_TRACE_CMDS") && strstr(log, "are not traced"), "log: %s", log);
	cr_expect(strstr(read_file(trace_path), "\nsdk pid "));
}

/* ---- masks ---- */

static size_t found_in_boxes(const void *value, size_t len)
{
	size_t i, n = 0;

	for (i = 0; i < num_records; i++)
		n += memmem(records[i].in, BOX_MAX, value, len) ||
		     memmem(records[i].out, BOX_MAX, value, len);
	return n;
}

struct found {
	size_t gid, ip, mac, address, device;
};

Test(trace, mask_other_than_0_and_1_is_reported_and_masks)
{
	struct e2e_nic nic;

	setenv("GDAKI_TRACE_CMDS_MASK", "yes", 1);
	capture_begin();
	e2e_open(&nic);
	e2e_close(&nic);
	cr_expect(strstr(capture_end(),
			 "ignoring GDAKI_TRACE_CMDS_MASK=\"yes\" (expected 0 or 1), using 1"));
	cr_expect_not(strstr(read_file(trace_path), "mlx5_0"));
}

/* Counts the private values of one connection in its trace. */
static struct found found_in_trace(const char *mask)
{
	struct found f = { 0 };
	struct e2e_nic nic;
	struct e2e_qp q;
	char addr[32];
	char *text;
	uint8_t mac[6];

	setenv("GDAKI_TRACE_CMDS_MASK", mask, 1);
	e2e_open(&nic);
	e2e_qp_open(&nic, &q, E2E_DB, 16);
	cr_assert_eq(e2e_connect(&nic, q.hl->qp, &nic.gid, q.qpn, (struct e2e_path){ 14, 7, 0 }),
		     DOCA_SUCCESS);
	snprintf(addr, sizeof(addr), "addr %p ", q.hl->qp->umem->addr);
	e2e_qp_close(&q);
	e2e_close(&nic);
	text = read_file(trace_path);
	f.address = strstr(text, addr) != NULL;
	f.device = strstr(text, "mlx5_0") != NULL;
	parse(text);
	f.gid = found_in_boxes(nic.gid.raw, 16);
	f.ip = found_in_boxes(nic.gid.raw + 12, 4);
	for (size_t i = 0; i < num_records; i++) {
		memcpy(mac, records[i].in + PRM_MODIFY_QP_QPC_AT + PRM_QPC_PATH_AT + 0x26, 6);
		f.mac += !strcmp(records[i].name, "INIT2RTR_QP") && memcmp(mac, (char[6]){ 0 }, 6);
	}
	return f;
}

Test(trace, unmasked_trace_has_private_values)
{
	struct found f = found_in_trace("0");

	cr_expect(f.gid && f.ip && f.mac && f.address && f.device,
		  "found: GID %zu, IP %zu, MAC %zu, address %zu, device %zu", f.gid, f.ip, f.mac,
		  f.address, f.device);
}

Test(trace, masked_trace_has_no_private_values)
{
	struct found f = found_in_trace("1");

	cr_expect(!f.gid && !f.ip && !f.mac && !f.address && !f.device,
		  "found: GID %zu, IP %zu, MAC %zu, address %zu, device %zu", f.gid, f.ip, f.mac,
		  f.address, f.device);
	cr_expect(strstr(records[1].line, " dev dev0 "));
}

static bool hidden(uint32_t opcode, bool answer, uint8_t *box, size_t at, size_t len)
{
	uint8_t hide[0x200] = { 0 };
	size_t i, n = 0;

	gdk_trace_mask(opcode, answer, box, sizeof(hide), hide);
	for (i = at; i < at + len; i++)
		n += hide[i];
	cr_expect(!n || n == len, "opcode 0x%x: only a part of the field at 0x%zx is masked",
		  opcode, at);
	return n;
}

/* Fields of mlx5_ifc.h that the library leaves zero now, but may use later. */
Test(trace, private_fields_of_each_layout)
{
	const size_t qpc = PRM_CREATE_QP_QPC_AT, wq = PRM_CREATE_RMP_RMPC_AT + PRM_RMPC_WQ_AT;
	uint8_t box[0x200];

	memset(box, 0xff, sizeof(box));
	cr_expect(hidden(GDK_CMD_CREATE_QP, false, box, qpc + 0xa8, 4), "q_key must be masked");
	cr_expect(hidden(GDK_CMD_QUERY_QP, true, box, qpc + 0xc8, 8),
		  "dc_access_key must be masked");
	cr_expect(hidden(GDK_CMD_CREATE_RMP, false, box, wq + 0x38, 4),
		  "headers_mkey must be masked");
	cr_expect(hidden(GDK_CMD_QUERY_QP, true, box, 0x110, 8), "page addresses must be masked");
	cr_expect(hidden(GDK_CMD_QUERY_CQ, true, box, 0x110, 8), "page addresses must be masked");
	cr_expect(hidden(CMD_NONE, false, box, 0x10, 0x1f0), "an unknown command must be masked");
	cr_expect_not(hidden(CMD_NONE, false, box, 0, 0x10),
		      "the header of an unknown command must not be masked");
	cr_expect_not(hidden(GDK_CMD_CREATE_QP, false, box, 0, qpc + PRM_QPC_PATH_AT));
	/*
	 * A DBREC in a umem has an offset in dbr_addr, otherwise a DMA address,
	 * which is private.
	 */
	cr_expect_not(hidden(GDK_CMD_CREATE_QP, false, box, qpc + 0xa0, 8));
	cr_expect_not(hidden(GDK_CMD_CREATE_CQ, false, box, 0x10 + 0x38, 8));
	prm_set(box + qpc, PRM_QPC_DBR_UMEM_VALID, 0);
	cr_expect(hidden(GDK_CMD_CREATE_QP, false, box, qpc + 0xa0, 8));
	prm_set(box + 0x10, PRM_CQC_DBR_UMEM_VALID, 0);
	cr_expect(hidden(GDK_CMD_CREATE_CQ, false, box, 0x10 + 0x38, 8));
	memset(box, 0, sizeof(box));
	cr_expect_not(hidden(GDK_CMD_CREATE_QP, false, box, qpc + 0xa8, 4),
		      "zeros must not be masked");
}

/* ---- the file ---- */

Test(trace, file_that_cannot_be_opened_is_logged)
{
	struct e2e_nic nic;
	const char *log;

	setenv("GDAKI_TRACE_CMDS", "/nonexistent/trace", 1);
	capture_begin();
	e2e_open(&nic);
	log = capture_end();
	cr_expect(strstr(log, " ERR ") && strstr(log, "GDAKI_TRACE_CMDS=/nonexistent/trace"), "%s",
		  log);
	run_queue_pair(&nic);
	e2e_close(&nic);
}

Test(trace, no_trace_without_the_variable)
{
	struct e2e_nic nic;

	unsetenv("GDAKI_TRACE_CMDS");
	cr_expect_not(gdk_trace_on());
	cr_expect_eq(gdk_trace_clock(), 0);
	e2e_open(&nic);
	run_queue_pair(&nic);
	e2e_close(&nic);
	cr_expect(access(trace_path, F_OK));
}

Test(trace, file_is_readable_by_the_user_only)
{
	struct stat st;

	cr_assert(gdk_trace_on());
	cr_assert_eq(stat(trace_path, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600, "mode %o", st.st_mode);
}

Test(trace, no_trace_in_secure_execution)
{
	distrust = true;
	cr_expect_not(gdk_trace_on());
	cr_expect(access(trace_path, F_OK));
}

static void *many_queue_pairs(void *nic)
{
	for (int i = 0; i < 8; i++)
		run_queue_pair(nic);
	return NULL;
}

static void two_threads(void)
{
	pthread_t threads[2];
	struct e2e_nic nic;

	e2e_open(&nic);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, many_queue_pairs, &nic), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	e2e_close(&nic);
}

/* Each process numbers its records from 0, without gaps. */
static void expect_whole(int pid, size_t queue_pairs)
{
	uint8_t seen[RECORDS_MAX] = { 0 };
	size_t i, n = 0, made = 0;

	for (i = 0; i < num_records; i++) {
		if (records[i].pid != pid)
			continue;
		cr_assert_lt(records[i].seq, RECORDS_MAX);
		seen[records[i].seq]++;
		made += !strcmp(records[i].name, "CREATE_QP");
		n++;
	}
	for (i = 0; i < n; i++)
		cr_expect_eq(seen[i], 1, "pid %d: record %zu found %u times", pid, i, seen[i]);
	cr_expect_eq(made, queue_pairs);
}

Test(trace, threads_and_processes_append_whole_records)
{
	pid_t pids[2];
	int status;

	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			two_threads();
			_exit(0);
		}
	}
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(waitpid(pids[i], &status, 0), pids[i]);
		cr_assert_eq(status, 0);
	}
	parse(read_file(trace_path));
	for (int i = 0; i < 2; i++)
		expect_whole(pids[i], 16);
}
