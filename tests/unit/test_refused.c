/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Every firmware command of the library is refused once. The call must fail, and the
 * log must have one line with the command's name, the object, and the status with its
 * meaning and the syndrome (destroy commands: the errno). No object may leak. QUERY_LAG
 * is optional: if a device refuses it, the call must succeed and nothing may be logged
 * at the default level.
 */
/* softnic-run: --lag 2 */
#include <stdio.h>
#include <string.h>

#include "../../core/nic/prm.h"
#include "../lib/capture.h"
#include "../lib/e2e.h"
#include "../lib/nicfail.h"

#define A(name)	     DOCA_VERBS_QP_ATTR_##name
#define S(name)	     DOCA_VERBS_QP_STATE_##name
#define COMMANDS_MAX 64u
#define OPTIONAL     "QUERY_LAG"

/* object: beginning of the object's name in the log; NULL: a refusal must not be logged */
static const struct command {
	const char *name, *object;
} commands[] = {
	{ "QUERY_HCA_CAP", "mlx5_" },
	{ OPTIONAL, NULL },
	{ "CREATE_RMP", "mlx5_0: SRQ of 16 WQEs" },
	{ "DESTROY_RMP", "SRQ 0x" },
	{ "CREATE_CQ", "mlx5_0: CQ of 16 entries" },
	{ "DESTROY_CQ", "CQ 0x" },
	{ "CREATE_QP", "mlx5_0: QP of 16 send slots and 0 receive WQEs" },
	{ "DESTROY_QP", "QP 0x" },
	{ "RST2INIT_QP", "QP 0x" },
	{ "INIT2INIT_QP", "QP 0x" },
	{ "INIT2RTR_QP", "QP 0x" },
	{ "RTR2RTS_QP", "QP 0x" },
	{ "RTS2RTS_QP", "QP 0x" },
	{ "2ERR_QP", "QP 0x" },
	{ "2RST_QP", "QP 0x" },
	{ "QUERY_QP", "QP 0x" },
	{ "QUERY_CQ", "CQ 0x" },
};
static bool seen[sizeof(commands) / sizeof(commands[0])];

static struct {
	struct e2e_nic nic;
	doca_verbs_ah_attr_t *ah;
	doca_verbs_qp_attr_t *attr;
	doca_verbs_qp_init_attr_t *init;
	doca_verbs_cq_attr_t *cq_attr;
	struct doca_verbs_srq_init_attr *srq_attr;
	/* objects that the commands create */
	doca_dev_t *dev;
	struct doca_verbs_srq *srq;
	doca_verbs_cq_t *cq;
	doca_verbs_qp_t *qp;
} t;

static void open_all(void)
{
	struct doca_verbs_gid gid;

	nicfail_find();
	e2e_open(&t.nic);
	memcpy(gid.raw, t.nic.gid.raw, 16);
	cr_assert(!doca_verbs_ah_attr_create(t.nic.dev, &t.ah));
	cr_assert(!doca_verbs_ah_attr_set_gid(t.ah, gid));
	cr_assert(!doca_verbs_ah_attr_set_sgid_index(t.ah, (uint8_t)t.nic.gid_index));
	cr_assert(!doca_verbs_qp_attr_create(&t.attr));
	cr_assert(!doca_verbs_qp_attr_set_ah_attr(t.attr, t.ah));
	cr_assert(!doca_verbs_qp_attr_set_port_num(t.attr, 1));
	cr_assert(!doca_verbs_qp_attr_set_path_mtu(t.attr, DOCA_VERBS_MTU_SIZE_1K_BYTES));
	cr_assert(!doca_verbs_qp_init_attr_create(&t.init));
	cr_assert(!doca_verbs_cq_attr_create(&t.cq_attr));
	cr_assert(!doca_verbs_cq_attr_set_cq_size(t.cq_attr, 16));
	/* Otherwise the export warns, and the test wants no other line in the log. */
	cr_assert(!doca_verbs_cq_attr_set_cq_overrun(t.cq_attr, 1));
	cr_assert(!doca_verbs_srq_init_attr_create(&t.srq_attr));
	cr_assert(!doca_verbs_srq_init_attr_set_pd(t.srq_attr, t.nic.pd));
	cr_assert(!doca_verbs_srq_init_attr_set_srq_wr(t.srq_attr, 16));
	cr_assert(!doca_verbs_srq_init_attr_set_receive_max_sges(t.srq_attr, 1));
}

static void close_all(void)
{
	cr_assert(!doca_verbs_srq_init_attr_destroy(t.srq_attr));
	cr_assert(!doca_verbs_cq_attr_destroy(t.cq_attr));
	cr_assert(!doca_verbs_qp_init_attr_destroy(t.init));
	cr_assert(!doca_verbs_qp_attr_destroy(t.attr));
	cr_assert(!doca_verbs_ah_attr_destroy(t.ah));
	e2e_close(&t.nic);
}

TestSuite(refused, .init = open_all, .fini = close_all);

static doca_error_t make_qp(void)
{
	cr_assert(!doca_verbs_qp_init_attr_set_send_cq(t.init, t.cq));
	cr_assert(!doca_verbs_qp_init_attr_set_sq_wr(t.init, 16));
	cr_assert(!doca_verbs_qp_init_attr_set_send_max_sges(t.init, 1));
	return doca_verbs_qp_create(t.dev, t.init, &t.qp);
}

static doca_error_t move(enum doca_verbs_qp_state to, int mask)
{
	doca_verbs_qp_attr_set_next_state(t.attr, to);
	return doca_verbs_qp_modify(t.qp, t.attr, mask | A(NEXT_STATE));
}

static doca_error_t query(void)
{
	doca_verbs_qp_init_attr_t *init;
	doca_verbs_qp_attr_t *attr;
	doca_error_t err;

	cr_assert(!doca_verbs_qp_attr_create(&attr));
	cr_assert(!doca_verbs_qp_init_attr_create(&init));
	err = doca_verbs_qp_query(t.qp, attr, init, NULL);
	cr_assert(!doca_verbs_qp_init_attr_destroy(init));
	cr_assert(!doca_verbs_qp_attr_destroy(attr));
	return err;
}

static doca_error_t reset(void)
{
	struct doca_gpu_verbs_qp *exported;
	doca_error_t err;

	cr_assert(!doca_gpu_verbs_export_qp(t.nic.gpu, t.qp, E2E_DB, NULL, t.cq,
					    DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR,
					    &exported));
	err = doca_gpu_verbs_reset_tracking_and_memory(exported);
	cr_assert(!doca_gpu_verbs_unexport_qp(t.nic.gpu, exported));
	return err;
}

static doca_error_t all_commands(void)
{
	return doca_verbs_dev_open(t.nic.pd, &t.dev) ?:
	       doca_verbs_srq_create(t.nic.ctx, t.srq_attr, &t.srq) ?:
	       doca_verbs_cq_create(t.dev, t.cq_attr, &t.cq) ?:
	       make_qp() ?:
	       move(S(INIT), A(PKEY_INDEX) | A(PORT_NUM) | A(ALLOW_REMOTE_WRITE) |
				     A(ALLOW_REMOTE_READ)) ?:
	       move(S(INIT), A(ALLOW_REMOTE_WRITE)) ?:
	       move(S(RTR), A(RQ_PSN) | A(DEST_QP_NUM) | A(PATH_MTU) | A(AH_ATTR) |
				    A(MIN_RNR_TIMER)) ?:
	       move(S(RTS), A(SQ_PSN) | A(ACK_TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY)) ?:
	       move(S(RTS), A(MIN_RNR_TIMER)) ?:
	       query() ?:
	       move(S(ERR), 0) ?:
	       move(S(RST), 0) ?:
	       reset();
}

static void undo(void)
{
	cr_assert(!t.qp || !doca_verbs_qp_destroy(t.qp));
	cr_assert(!t.cq || !doca_verbs_cq_destroy(t.cq));
	cr_assert(!t.srq || !doca_verbs_srq_destroy(t.srq));
	cr_assert(!t.dev || !doca_verbs_dev_close(t.dev));
	t.dev = NULL;
	t.srq = NULL;
	t.cq = NULL;
	t.qp = NULL;
}

/* The call succeeded, so the optional command was refused: once only, and without a log line. */
static void check_silent(const char *log)
{
	size_t i;

	for (i = 0; strcmp(commands[i].name, OPTIONAL); i++)
		;
	cr_expect_str_eq(log, "");
	cr_expect_not(seen[i], "a refused command other than %s caused no error", OPTIONAL);
	seen[i] = true;
}

/* `line` must be one line with a command of the table, its object and the text `how`. */
static void check_line(const char *line, const char *how)
{
	const struct command *c;
	char want[128];
	const char *at;

	cr_assert(*line, "nothing logged");
	cr_expect_eq(strchr(line, '\n'), line + strlen(line) - 1, "more than one line logged:\n%s",
		     line);
	for (c = commands; c < commands + sizeof(commands) / sizeof(commands[0]); c++) {
		snprintf(want, sizeof(want), " %s (0x", c->name);
		if (strstr(line, want))
			break;
	}
	cr_assert_neq(c, commands + sizeof(commands) / sizeof(commands[0]),
		      "the line names no command:\n%s", line);
	seen[c - commands] = true;
	at = strstr(line, ": ");
	cr_assert(c->object, "refused %s must not be logged as an error:\n%s", c->name, line);
	cr_expect(at && !strncmp(at + 2, c->object, strlen(c->object)),
		  "the line does not begin with object %s:\n%s", c->object, line);
	cr_expect(strstr(line, how), "\"%s\" is not in the line:\n%s", how, line);
}

/* The driver sends the destroy commands and returns the reason of a refusal as errno. */
#define DESTROY(obj, fn) \
	do { \
		capture_begin(); \
		nicfail_next(0, 0, 0, 1); \
		cr_expect_eq(fn(t.obj), DOCA_ERROR_DRIVER); \
		nicfail_next(0, 0, 0, 0); \
		check_line(capture_end(), "failed: Cannot allocate memory"); \
		cr_expect_eq(fn(t.obj), DOCA_SUCCESS, "the second destroy must succeed"); \
		t.obj = NULL; \
	} while (0)

Test(refused, each_refused_command_is_logged_in_one_line)
{
	uint64_t faults;
	uint32_t live, n;
	doca_error_t err;
	const char *log;
	size_t i;

	cr_assert_eq(all_commands(), DOCA_SUCCESS);
	undo();
	live = nicfail_live(); /* includes objects that libmlx5 keeps until the context is closed */
	for (n = 1; n < COMMANDS_MAX; n++) {
		faults = nicfail_stats()->faults_injected;
		capture_begin();
		nicfail_next(n, 0x05, 0xbeef1, 0);
		err = all_commands();
		nicfail_next(0, 0, 0, 0);
		log = capture_end();
		if (faults == nicfail_stats()->faults_injected)
			break;
		if (err == DOCA_SUCCESS) {
			check_silent(log);
		} else {
			cr_expect_eq(err, DOCA_ERROR_DRIVER);
			check_line(log, "status 0x5 (bad resource: an object named in the "
					"command does not exist, or no object of the kind to "
					"create is left), syndrome 0x000beef1");
		}
		undo();
		cr_expect_eq(nicfail_live(), live);
	}
	cr_expect_eq(err, DOCA_SUCCESS, "without a fault, all calls must succeed");
	DESTROY(qp, doca_verbs_qp_destroy);
	DESTROY(cq, doca_verbs_cq_destroy);
	DESTROY(srq, doca_verbs_srq_destroy);
	undo();
	cr_expect_eq(nicfail_live(), live);
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		cr_expect(seen[i], "%s was never refused", commands[i].name);
}

/* Commands of Ethernet queues (test_doca_eth_refused.c) and of flow rules (test_doca_flow_fail.c).
 * The driver sends the destroy commands. */
static const char *const elsewhere[] = {
	"ALLOC_Q_COUNTER",
	"DEALLOC_Q_COUNTER",
	"QUERY_Q_COUNTER",
	"ALLOC_TRANSPORT_DOMAIN",
	"DEALLOC_TRANSPORT_DOMAIN",
	"CREATE_TIR",
	"DESTROY_TIR",
	"CREATE_SQ",
	"MODIFY_SQ",
	"DESTROY_SQ",
	"QUERY_SQ",
	"CREATE_RQ",
	"MODIFY_RQ",
	"DESTROY_RQ",
	"QUERY_RQ",
	"CREATE_TIS",
	"DESTROY_TIS",
	"CREATE_RQT",
	"DESTROY_RQT",
	"ALLOC_FLOW_COUNTER",
	"DEALLOC_FLOW_COUNTER",
	"QUERY_FLOW_COUNTER",
};

static bool is_elsewhere(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		if (!strcmp(name, elsewhere[i]))
			return true;
	return false;
}

/* Every command of the library must be in the table above, or in another test. */
Test(refused, every_command_is_in_the_table)
{
#define NAME(name, opcode) #name,
	static const char *const all[] = { GDK_COMMANDS(NAME) };
	size_t i, k;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (is_elsewhere(all[i]))
			continue;
		for (k = 0; k < sizeof(commands) / sizeof(commands[0]); k++)
			if (!strcmp(all[i], commands[k].name))
				break;
		cr_expect_lt(k, sizeof(commands) / sizeof(commands[0]), "%s is not in the table",
			     all[i]);
	}
}
