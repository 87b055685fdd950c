/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A process that opened the NIC forks: the child can use only what it opens itself,
 * and the parent's objects keep working.
 */
#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/vb.h"

struct rig {
	struct vb v;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static void rig_open(struct rig *r)
{
	r->v = vb_open(8192);
	r->cq = ibv_create_cq(r->v.ctx, 16, NULL, NULL, 0);
	cr_assert(r->cq);
	r->qp = vb_qp(&r->v, IBV_QPT_RC, r->cq, NULL);
	vb_connect(&r->v, r->qp, r->qp);
}

static void rig_close(struct rig *r)
{
	cr_assert_eq(ibv_destroy_qp(r->qp), 0);
	cr_assert_eq(ibv_destroy_cq(r->cq), 0);
	vb_close(&r->v);
}

static bool message(struct rig *r, uint8_t byte)
{
	r->v.mem[0] = byte;
	return !vb_recv(&r->v, r->qp, 1, 4096, 64) && !vb_send(&r->v, r->qp, 2, 0, 64) &&
	       (vb_wc(r->cq).status | vb_wc(r->cq).status) == IBV_WC_SUCCESS &&
	       r->v.mem[4096] == byte;
}

/* Returns 0, or the number of the step that failed. */
static int child(struct rig *parents)
{
	struct rig own;

	errno = 0;
	if (ibv_alloc_pd(parents->v.ctx) || !errno)
		return 1;
	if (ibv_reg_mr(parents->v.pd, parents->v.mem, 64, 0))
		return 2;
	rig_open(&own);
	if (!message(&own, 33))
		return 3;
	if (!memcmp(&own.v.gid, &parents->v.gid, sizeof(own.v.gid)))
		return 4;
	rig_close(&own);
	close(parents->v.ctx->cmd_fd);
	return 0;
}

/* Number of the sockets that this process has, except Criterion's. */
static unsigned sockets(void)
{
	struct stat st;
	unsigned n = 0;
	int fd;

	for (fd = 0; fd < 256; fd++)
		n += !fstat(fd, &st) && S_ISSOCK(st.st_mode);
	return n;
}

/* Otherwise the parent's addresses would stay in use until its children end. */
Test(verbs_fork, child_keeps_no_socket_of_the_nic)
{
	unsigned before = sockets();
	struct rig r;
	pid_t pid;
	int st;

	rig_open(&r);
	cr_assert_gt(sockets(), before);
	pid = fork();
	if (pid == 0)
		_exit(sockets() == before ? 0 : 1);
	cr_assert_gt(pid, 0);
	cr_assert_eq(waitpid(pid, &st, 0), pid);
	cr_assert(WIFEXITED(st));
	cr_assert_eq(WEXITSTATUS(st), 0);
	cr_assert(message(&r, 14));
	rig_close(&r);
}

Test(verbs_fork, child_uses_its_own_nic)
{
	struct rig r;
	pid_t pid;
	int st;

	rig_open(&r);
	cr_assert(message(&r, 11));
	pid = fork();
	if (pid == 0)
		_exit(child(&r));
	cr_assert_gt(pid, 0);
	cr_assert(message(&r, 12), "the parent's message failed while the child runs");
	cr_assert_eq(waitpid(pid, &st, 0), pid);
	cr_assert(WIFEXITED(st));
	cr_assert_eq(WEXITSTATUS(st), 0);
	cr_assert(message(&r, 13),
		  "the parent's message failed after the child closed its copy of the file");
	rig_close(&r);
}
