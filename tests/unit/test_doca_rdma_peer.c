/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The process of the remote side is killed while threads write weakly and strongly, wait for room
 * in full rings, and wait for receives. Each call must return in bounded time, with the status that
 * tells why, and everything can be destroyed afterwards. The remote side is this program, started
 * again as another host: a constructor runs it if the environment has its parameters.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../lib/exec_host.h"
#include "../lib/rdma_rig.h"

#define PEER_ENV "RDMA_PEER" /* value: descriptor of the socket, connections, bytes of memory */
#define CONNS	 6u
#define DEPTH	 64u /* of the rig's queues */
#define MESSAGE	 (64u << 20)
#define NONE	 DOCA_GPU_RDMA_WRITE_FLAG_NONE
#define B	 DOCA_GPU_RDMA_RECV_WAIT_FLAG_B
#define SECOND	 1000000000ull
#define SHORT_NS SECOND
#define LONG_NS	 (60 * SECOND)
/* The NIC gives up after 8 time-outs of 537 ms each. The rest is for a loaded machine. */
#define BOUND_NS (30 * SECOND)

#define REQUIRE(cond) OK((cond) ? DOCA_SUCCESS : DOCA_ERROR_UNEXPECTED)

/* What one side tells the other. */
struct offer {
	pid_t pid;
	size_t details_len, map_len;
	uint8_t details[CONNS][64], map[256];
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void pause_ms(unsigned int ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000L }, NULL);
}

static void send_all(int fd, const void *buf, size_t len)
{
	REQUIRE(write(fd, buf, len) == (ssize_t)len);
}

static void receive(int fd, void *buf, size_t len)
{
	REQUIRE(recv(fd, buf, len, MSG_WAITALL) == (ssize_t)len);
}

/* Appends the connections of a side to an offer, which has `num` so far. */
static void add_details(struct offer *o, uint32_t num, const struct rig *r)
{
	for (uint32_t i = 0; i < r->how.conns; i++) {
		o->details_len = r->a.details_len[i];
		REQUIRE(o->details_len <= sizeof(o->details[0]) && num + i < CONNS);
		memcpy(o->details[num + i], r->a.details[i], o->details_len);
	}
}

static void add_map(struct offer *o, struct rig *r)
{
	const void *desc;

	OK(doca_mmap_export_rdma(r->a.m.map, r->nic, &desc, &o->map_len));
	REQUIRE(o->map_len <= sizeof(o->map));
	memcpy(o->map, desc, o->map_len);
}

static void connect_to(struct rig *r, const struct offer *o, uint32_t first, uint32_t num)
{
	for (uint32_t i = 0; i < num; i++)
		OK(doca_rdma_connect(r->a.rdma, o->details[first + i], o->details_len,
				     r->a.conn[i]));
}

/* ---- the remote side ---- */

/* Connects, sends a message on connection 0 when told, and lives until it is killed. */
static void peer_main(int fd, uint32_t conns, size_t bytes)
{
	struct offer mine = { .pid = getpid() }, theirs;
	struct rig r;
	char order;

	rig_base(&r, (struct rig_how){ .conns = conns, .bytes = bytes, .buf = bytes });
	rig_side_open(&r, &r.a);
	memset(r.a.m.mem, 0x5a, bytes);
	add_details(&mine, 0, &r);
	add_map(&mine, &r);
	send_all(fd, &mine, sizeof(mine));
	receive(fd, &theirs, sizeof(theirs));
	connect_to(&r, &theirs, 0, conns);
	send_all(fd, "c", 1);
	while (recv(fd, &order, 1, 0) > 0) {
		OK(doca_gpu_dev_rdma_send_strong(r.a.dev, 0, rig_buf(&r.a, 0), 0, bytes, 0, 0));
		OK(doca_gpu_dev_rdma_commit_strong(r.a.dev, 0));
	}
	_exit(1); /* the test closes its end after it has killed this process */
}

__attribute__((constructor)) static void peer_or_test(void)
{
	const char *order = getenv(PEER_ENV);
	uint32_t conns;
	size_t bytes;
	int fd;

	if (!order || sscanf(order, "%d %u %zu", &fd, &conns, &bytes) != 3)
		return;
	unsetenv(PEER_ENV);
	alarm(100); /* bounds the life of the process if the test hangs */
	peer_main(fd, conns, bytes);
}

struct peer {
	pid_t child; /* softnic-run, the parent of the process with the NIC */
	int fd;
	struct offer offer;
};

/* Must be called before this process opens the NIC. option: of the peer's NIC, or NULL. */
static void peer_start(struct peer *p, uint32_t conns, size_t bytes, const char *option)
{
	char order[64];
	int sv[2];

	REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	snprintf(order, sizeof(order), "%d %u %zu", sv[1], conns, bytes);
	p->child = fork();
	REQUIRE(p->child >= 0);
	if (!p->child) {
		close(sv[0]);
		setenv(PEER_ENV, order, 1);
		exec_host(option);
	}
	close(sv[1]);
	p->fd = sv[0];
	receive(p->fd, &p->offer, sizeof(p->offer));
}

static void peer_connect(struct peer *p, const struct offer *mine)
{
	char done;

	send_all(p->fd, mine, sizeof(*mine));
	receive(p->fd, &done, 1);
}

static void peer_kill(struct peer *p)
{
	REQUIRE(!kill(p->offer.pid, SIGKILL));
}

static void peer_end(struct peer *p)
{
	int status;

	close(p->fd);
	REQUIRE(waitpid(p->child, &status, 0) == p->child);
}

/* ---- threads that wait ---- */

/* Objects of the survivor: two connections with writers, two with rings that become full, one that
 * waits for an answer, and one that only receives. */
static struct rig writers, full, asker, receiver;
static struct doca_gpu_buf *remote; /* memory of the peer */
static uint64_t written[2];	    /* rounds of the writers */

static doca_error_t wait_all(struct rig *r)
{
	uint32_t num;

	return doca_gpu_dev_rdma_wait_all(r->a.dev, &num);
}

static doca_error_t write_weakly(void)
{
	doca_error_t err = DOCA_SUCCESS;
	uint32_t at = 0, i;

	while (!err) {
		for (i = 0; i < 8 && !err; i++)
			err = doca_gpu_dev_rdma_write_weak(writers.a.dev, 0, remote, 0,
							   rig_buf(&writers.a, 0), 0, 256, 0, NONE,
							   at++);
		if (!err)
			err = doca_gpu_dev_rdma_commit_weak(writers.a.dev, 0, 8);
		(void)wait_all(&writers); /* its error may be that of the other connection */
		__atomic_fetch_add(&written[0], 1, __ATOMIC_RELAXED);
	}
	return err;
}

static doca_error_t write_strongly(void)
{
	doca_error_t err = DOCA_SUCCESS;
	uint32_t i;

	while (!err) {
		for (i = 0; i < 8 && !err; i++)
			err = doca_gpu_dev_rdma_write_strong(writers.a.dev, 1, remote, 256,
							     rig_buf(&writers.a, 1), 0, 256, 0,
							     NONE);
		if (!err)
			err = doca_gpu_dev_rdma_commit_strong(writers.a.dev, 1);
		(void)wait_all(&writers);
		__atomic_fetch_add(&written[1], 1, __ATOMIC_RELAXED);
	}
	return err;
}

/* The peer posts no receives, so no slot becomes free. */
static doca_error_t fill_strongly(void)
{
	doca_error_t err = DOCA_SUCCESS;

	while (!err)
		err = doca_gpu_dev_rdma_send_strong(full.a.dev, 0, rig_buf(&full.a, 0), 0, 8, 0, 0);
	return err;
}

static doca_error_t fill_weakly(void)
{
	doca_error_t err = DOCA_SUCCESS;
	uint32_t at = 0;

	while (!err) {
		err = gdk_rdma_send_weak(full.a.dev, 1, gdk_rdma_addr(rig_buf(&full.a, 0), 0), 8, 0,
					 0, at++);
		if (!err)
			err = doca_gpu_dev_rdma_commit_weak(full.a.dev, 1, 1);
	}
	return err;
}

static doca_error_t receive_on(struct rig *r)
{
	uint32_t num = 77;
	doca_error_t err = doca_gpu_dev_rdma_recv_strong(r->a.recv, rig_buf(&r->a, 2), 256, 0, 0);

	if (!err)
		err = doca_gpu_dev_rdma_recv_commit_strong(r->a.recv);
	if (!err)
		err = doca_gpu_dev_rdma_recv_wait_all(r->a.recv, B, &num, NULL, NULL);
	cr_expect_eq(num, 0, "%u receives", num);
	return err;
}

static doca_error_t receive_beside_writers(void)
{
	return receive_on(&writers);
}

/* Posts an operation, and waits only for receives. */
static doca_error_t receive_after_request(void)
{
	doca_error_t err;

	err = doca_gpu_dev_rdma_send_strong(asker.a.dev, 0, rig_buf(&asker.a, 0), 0, 8, 0, 0);
	if (!err)
		err = doca_gpu_dev_rdma_commit_strong(asker.a.dev, 0);
	return err ? err : receive_on(&asker);
}

static doca_error_t receive_only(void)
{
	return receive_on(&receiver);
}

static struct waiter {
	const char *name;
	doca_error_t (*run)(void);
	doca_error_t want;
	pthread_t thread;
} waiters[] = {
	{ "weak writes", write_weakly, DOCA_ERROR_IO_FAILED, 0 },
	{ "strong writes", write_strongly, DOCA_ERROR_IO_FAILED, 0 },
	{ "a full ring, strong", fill_strongly, DOCA_ERROR_IO_FAILED, 0 },
	{ "a full ring, weak", fill_weakly, DOCA_ERROR_IO_FAILED, 0 },
	/* All connections of the object have ended. */
	{ "a receive beside writers", receive_beside_writers, DOCA_ERROR_IO_FAILED, 0 },
	{ "a receive after a request", receive_after_request, DOCA_ERROR_IO_FAILED, 0 },
	/* A side that only receives does not learn that the other one is gone. */
	{ "a receive", receive_only, DOCA_ERROR_TIME_OUT, 0 },
};
#define WAITERS (sizeof(waiters) / sizeof(waiters[0]))

static void *run(void *arg)
{
	const struct waiter *w = arg;

	return (void *)(uintptr_t)w->run();
}

static void expect_end(const struct waiter *w, uint64_t limit_ns)
{
	struct timespec t;
	void *err;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += (time_t)(limit_ns / SECOND);
	cr_assert_eq(pthread_timedjoin_np(w->thread, &err, &t), 0, "%s: did not end", w->name);
	cr_expect_eq((uintptr_t)err, w->want, "%s: returned %s", w->name,
		     doca_error_get_name((doca_error_t)(uintptr_t)err));
}

static uint64_t reserved(const struct rig *r, uint32_t conn)
{
	return gdk_ld64(gdk_rsvd_index(gdk_rdma_conn_qp(gdk_rdma_conn(r->a.dev, conn))),
			GDK_SCOPE_SYS);
}

/* The writers are in the middle of their writes, and the rings are full. */
static bool all_at_work(void)
{
	return __atomic_load_n(&written[0], __ATOMIC_RELAXED) > 100 &&
	       __atomic_load_n(&written[1], __ATOMIC_RELAXED) > 100 && reserved(&full, 0) > DEPTH &&
	       reserved(&full, 1) == DEPTH;
}

static void open_survivor(struct peer *p)
{
	struct offer mine = { 0 };
	rig_base(&writers, (struct rig_how){ .conns = 2 });
	full = asker = receiver = writers;
	asker.how.conns = receiver.how.conns = 1;
	rig_side_open(&writers, &writers.a);
	rig_side_open(&full, &full.a);
	rig_side_open(&asker, &asker.a);
	rig_side_open(&receiver, &receiver.a);
	OK(gdk_rdma_set_wait_limit(writers.a.rdma, LONG_NS));
	OK(gdk_rdma_set_wait_limit(full.a.rdma, LONG_NS));
	OK(gdk_rdma_set_wait_limit(asker.a.rdma, LONG_NS));
	OK(gdk_rdma_set_wait_limit(receiver.a.rdma, SHORT_NS));
	add_details(&mine, 0, &writers);
	add_details(&mine, 2, &full);
	add_details(&mine, 4, &asker);
	add_details(&mine, 5, &receiver);
	peer_connect(p, &mine);
	connect_to(&writers, &p->offer, 0, 2);
	connect_to(&full, &p->offer, 2, 2);
	connect_to(&asker, &p->offer, 4, 1);
	connect_to(&receiver, &p->offer, 5, 1);
}

TestSuite(doca_rdma_peer, .timeout = 100);

Test(doca_rdma_peer, each_wait_ends_if_the_process_of_the_peer_is_killed)
{
	struct doca_gpu_buf_arr *bufs;
	struct doca_buf_arr *arr;
	struct doca_mmap *map;
	struct peer p;
	uint64_t start;

	peer_start(&p, CONNS, RIG_BYTES, NULL);
	open_survivor(&p);
	OK(doca_mmap_create_from_export(NULL, p.offer.map, p.offer.map_len, writers.nic, &map));
	arr = rig_buf_arr(&writers, map, &bufs);
	OK(doca_gpu_dev_buf_get_buf(bufs, 0, &remote));
	for (size_t i = 0; i < WAITERS; i++)
		REQUIRE(!pthread_create(&waiters[i].thread, NULL, run, &waiters[i]));
	for (start = now_ns(); !all_at_work() && now_ns() - start < BOUND_NS;)
		pause_ms(1);
	cr_assert(all_at_work(), "%llu, %llu rounds, %llu, %llu sends",
		  (unsigned long long)written[0], (unsigned long long)written[1],
		  (unsigned long long)reserved(&full, 0), (unsigned long long)reserved(&full, 1));
	peer_kill(&p);
	peer_end(&p);
	start = now_ns();
	for (size_t i = 0; i < WAITERS; i++)
		expect_end(&waiters[i], BOUND_NS);
	cr_expect_lt(now_ns() - start, BOUND_NS);
	cr_expect_eq(wait_all(&full), DOCA_ERROR_IO_FAILED);
	cr_expect_eq(doca_gpu_dev_rdma_commit_strong(full.a.dev, 0), DOCA_ERROR_IO_FAILED);
	cr_expect_eq(doca_gpu_dev_rdma_commit_weak(writers.a.dev, 0, 1), DOCA_ERROR_IO_FAILED);
	OK(doca_buf_arr_destroy(arr));
	OK(doca_mmap_destroy(map));
	rig_side_close(&writers.a);
	rig_side_close(&full.a);
	rig_side_close(&asker.a);
	rig_side_close(&receiver.a);
	rig_close(&writers);
}

/* ---- a message that does not end ---- */

static void receive_on_a(struct rig *r, doca_error_t want, uint32_t num_want, uint32_t conn_want)
{
	uint32_t num = 77, conn[DEPTH] = { 77 };
	doca_error_t err = doca_gpu_dev_rdma_recv_wait_all(r->a.recv, B, &num, NULL, conn);

	cr_expect_eq(err, want, "returned %s", doca_error_get_name(err));
	cr_expect_eq(num, num_want, "%u receives", num);
	cr_expect(!num_want || conn[0] == conn_want, "of connection %u", conn[0]);
}

/* Connection 0 of `a` is to the peer, connection 1 to `b` of the same process. */
static void connect_both(struct rig *r, struct peer *p)
{
	struct offer mine = { 0 };

	memcpy(mine.details[0], r->a.details[0], r->a.details_len[0]);
	mine.details_len = r->a.details_len[0];
	peer_connect(p, &mine);
	connect_to(r, &p->offer, 0, 1);
	OK(doca_rdma_connect(r->a.rdma, r->b.details[1], r->b.details_len[1], r->a.conn[1]));
	OK(doca_rdma_connect(r->b.rdma, r->a.details[1], r->a.details_len[1], r->b.conn[1]));
}

/* The receive of the message that began is complete only when its connection ends; then receives of
 * other connections, which were posted behind it, are returned. */
Test(doca_rdma_peer, a_receive_of_half_a_message_ends_with_its_connection)
{
	volatile const uint8_t *mem;
	struct peer p;
	uint64_t start;
	struct rig r;

	/* The NIC sends for 10 ms of each 100 ms, so the message takes long. */
	peer_start(&p, 1, MESSAGE, "--stall=90:100");
	rig_create(&r, (struct rig_how){ .conns = 2, .bytes = MESSAGE, .buf = MESSAGE });
	connect_both(&r, &p);
	mem = r.a.m.mem;
	OK(doca_gpu_dev_rdma_recv_strong(r.a.recv, rig_buf(&r.a, 0), MESSAGE, 0, 0));
	OK(doca_gpu_dev_rdma_recv_strong(r.a.recv, NULL, 0, 0, 0));
	OK(doca_gpu_dev_rdma_recv_commit_strong(r.a.recv));
	send_all(p.fd, "m", 1);
	for (start = now_ns(); !*mem && now_ns() - start < BOUND_NS;)
		pause_ms(1);
	peer_kill(&p);
	peer_end(&p);
	cr_assert(*mem && !mem[MESSAGE - 1], "the message did not begin, or has ended");
	OK(doca_gpu_dev_rdma_send_strong(r.b.dev, 1, rig_buf(&r.b, 0), 0, 0, 0, 0));
	OK(doca_gpu_dev_rdma_commit_strong(r.b.dev, 1));
	OK(gdk_rdma_set_wait_limit(r.a.rdma, SHORT_NS));
	receive_on_a(&r, DOCA_ERROR_TIME_OUT, 0, 0);
	OK(doca_rdma_connection_disconnect(r.a.conn[0]));
	receive_on_a(&r, DOCA_ERROR_IO_FAILED, 1, 0);
	receive_on_a(&r, DOCA_SUCCESS, 1, 1);
	rig_end(&r);
}
