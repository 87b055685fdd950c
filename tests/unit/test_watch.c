/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Messages and statuses if no CPU thread rings the doorbells of a QP. */
#include "watch_rig.h"

#define GPU_NO_REG "8a:00.0" /* GPU 0 of the stand-in */
#define UNSERVED   "no CPU thread has rung its doorbells"
#define LATE	   ", because the CPU had not rung"
#define NO_SERVICE "no service monitors it: call doca_gpu_verbs_create_service"
#define BUSY	   "the thread of the service that monitors it does not run"
#define NO_CPU	   "a thread that rings may have got no processor"
#define IDLE_POLLS 6 /* polls until doorbells that no CPU thread rings are logged */

TestSuite(watch, .timeout = 60);

/* The program is linked with --wrap=gdk_cpu_wait_ns. */
static uint64_t waited_ms;

uint64_t __real_gdk_cpu_wait_ns(void);
uint64_t __wrap_gdk_cpu_wait_ns(void);

uint64_t __wrap_gdk_cpu_wait_ns(void)
{
	return waited_ms * MS;
}

/* ---- doorbells that the CPU must ring ---- */

/* A connected pair without a thread that rings for tx. */
static void open_unserved(void)
{
	e2e_pair_open(&p, E2E_PROXY, 16, 4096);
	e2e_proxy_end(&p.tx);
	watch_polls(1);
}

/* Lets the thread poll n times. Returns what it logged. */
static const char *log_of_polls(unsigned int n)
{
	capture_begin();
	watch_polls(n);
	return capture_end();
}

Test(watch, unserved_doorbells_are_reported)
{
	doca_gpu_dev_verbs_ticket_t t;
	const char *log;
	char name[24];

	open_unserved();
	snprintf(name, sizeof(name), "QP 0x%x: ", p.tx.qpn);
	put(&t);
	put(&t);
	log = log_of_polls(IDLE_POLLS - 1);
	cr_expect_eq(times(log, UNSERVED), 0, "too early: %s", log);
	log = log_of_polls(1);
	cr_expect_eq(times(log, UNSERVED), 1, "log: %s", log);
	cr_expect(strstr(log, name) && strstr(log, "pending up to index 2, rung up to 0") &&
			  strstr(log, NO_SERVICE),
		  "log: %s", log);
	log = log_of_polls(2 * IDLE_POLLS);
	cr_expect_eq(times(log, UNSERVED), 0, "logged again: %s", log);
	e2e_pair_close(&p);
}

/* Lets threads of the process wait for a processor for ms while doorbells are pending. Returns what
 * the thread then logs. */
static const char *log_after_wait_for_cpu(uint64_t ms)
{
	waited_ms = 1000;
	watch_polls(2);
	waited_ms += ms;
	return log_of_polls(IDLE_POLLS - 2);
}

Test(watch, a_busy_machine_is_named_beside_a_missing_service)
{
	doca_gpu_dev_verbs_ticket_t t;
	const char *log;

	open_unserved();
	put(&t);
	log = log_after_wait_for_cpu(199);
	cr_expect(strstr(log, UNSERVED) && !strstr(log, NO_CPU), "half of 400 ms: %s", log);
	cr_expect_eq(doca_gpu_verbs_cpu_proxy_progress(gverbs(), NULL), DOCA_SUCCESS);
	put(&t);
	log = log_after_wait_for_cpu(200);
	cr_expect(strstr(log, UNSERVED) && strstr(log, NO_CPU) && strstr(log, ", 200 ms in sum)") &&
			  strstr(log, "or " NO_SERVICE),
		  "log: %s", log);
	cr_expect_eq(gdk_wait_for(p.tx.dev, t, E2E_MODE, GDK_UNSERVED_NS), -EHOSTDOWN);
	e2e_pair_close(&p);
}

Test(watch, a_busy_machine_is_named_beside_the_end_of_a_wait)
{
	doca_gpu_dev_verbs_ticket_t t;
	const char *log;

	open_unserved();
	cr_assert_eq(gdk_verbs_qp_set_wait_limit(gverbs(), GDK_UNSERVED_NS), DOCA_SUCCESS);
	put(&t);
	watch_polls(2);
	waited_ms = 500;
	cr_expect_eq(gdk_wait(p.tx.dev, t, E2E_MODE), -EHOSTDOWN);
	log = log_of_polls(1);
	cr_expect(strstr(log, LATE) && strstr(log, NO_CPU), "log: %s", log);
	e2e_pair_close(&p);
}

/* Two threads that share a processor, and the one that measures them. */
static pthread_barrier_t begin, ran, measured;

static void *spin(void *cpus)
{
	struct timespec ts;

	cr_assert_eq(sched_setaffinity(0, sizeof(cpu_set_t), cpus), 0);
	pthread_barrier_wait(&begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	while (ts.tv_sec == 0 && ts.tv_nsec < 100 * (long)MS);
	pthread_barrier_wait(&ran);
	pthread_barrier_wait(&measured);
	return NULL;
}

Test(watch, the_time_that_threads_wait_for_a_processor_is_measured)
{
	pthread_t threads[2];
	uint64_t before;
	cpu_set_t cpus;
	int i, cpu = sched_getcpu();

	if (access("/proc/self/schedstat", R_OK))
		cr_skip_test("this kernel does not count it");
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	pthread_barrier_init(&begin, NULL, 3);
	pthread_barrier_init(&ran, NULL, 3);
	pthread_barrier_init(&measured, NULL, 3);
	for (i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, spin, &cpus), 0);
	before = __real_gdk_cpu_wait_ns();
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&ran);
	cr_expect_geq(__real_gdk_cpu_wait_ns() - before, 80 * MS,
		      "one waits while the other runs for 100 ms");
	pthread_barrier_wait(&measured);
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

/* The thread does not poll before the wait has ended. */
Test(watch, an_unserved_wait_ends_with_ehostdown_even_if_the_thread_is_late)
{
	doca_gpu_dev_verbs_ticket_t t;
	struct gdk_qp_counters c;
	const char *log;

	open_unserved();
	cr_assert_eq(gdk_verbs_qp_set_wait_limit(gverbs(), GDK_UNSERVED_NS), DOCA_SUCCESS);
	put(&t);
	put(&t);
	cr_expect_eq(gdk_wait(p.tx.dev, t, E2E_MODE), -EHOSTDOWN);
	cr_expect_eq(gdk_wait(p.tx.dev, 0, E2E_MODE), -EHOSTDOWN, "the status must be sticky");
	log = log_of_polls(1);
	cr_expect_eq(times(log, "ended with -EHOSTDOWN" LATE), 1, "log: %s", log);
	cr_expect(strstr(log, "requested up to index 2, rung up to 0 now") &&
			  strstr(log, NO_SERVICE),
		  "log: %s", log);
	cr_assert_eq(gdk_verbs_qp_get_counters(gverbs(), &c), DOCA_SUCCESS);
	cr_expect_eq(c.status, -EHOSTDOWN);
	e2e_pair_close(&p);
}

/* A program may call progress only between waits. */
Test(watch, a_short_wait_on_an_unserved_qp_times_out)
{
	doca_gpu_dev_verbs_ticket_t t;

	open_unserved();
	put(&t);
	watch_polls(2 * IDLE_POLLS);
	cr_expect_eq(gdk_wait_for(p.tx.dev, t, E2E_MODE, MS), -ETIMEDOUT);
	cr_expect_eq(doca_gpu_verbs_cpu_proxy_progress(gverbs(), NULL), DOCA_SUCCESS);
	cr_expect_eq(gdk_wait(p.tx.dev, t, E2E_MODE), 0);
	e2e_pair_close(&p);
}

Test(watch, a_doorbell_that_is_served_late_completes)
{
	doca_gpu_dev_verbs_ticket_t t;
	const char *log;

	open_unserved();
	capture_begin();
	for (unsigned int i = 0; i < 3; i++) {
		put(&t);
		watch_polls(IDLE_POLLS);
		cr_expect_eq(doca_gpu_verbs_cpu_proxy_progress(gverbs(), NULL), DOCA_SUCCESS);
		cr_expect_eq(gdk_wait(p.tx.dev, t, E2E_MODE), 0);
	}
	log = capture_end();
	cr_expect_eq(times(log, UNSERVED), 2, "1st and 2nd of 3 occurrences, log: %s", log);
	cr_expect(strstr(log, "2 times so far"), "log: %s", log);
	e2e_pair_close(&p);
}

/* A wait that ends after the CPU has rung again ends with -ETIMEDOUT. */
Test(watch, a_served_queue_pair_still_times_out)
{
	doca_gpu_dev_verbs_ticket_t t;
	const char *log;

	open_unserved();
	put(&t);
	watch_polls(IDLE_POLLS);
	cr_expect_eq(doca_gpu_verbs_cpu_proxy_progress(gverbs(), NULL), DOCA_SUCCESS);
	cr_assert_eq(gdk_verbs_qp_set_wait_limit(gverbs(), GDK_UNSERVED_NS), DOCA_SUCCESS);
	cr_expect_eq(gdk_wait(p.tx.dev, t + 1, E2E_MODE), -ETIMEDOUT);
	log = log_of_polls(1);
	cr_expect_eq(times(log, LATE), 0, "log: %s", log);
	e2e_pair_close(&p);
}

Test(watch, calls_of_progress_keep_it_silent)
{
	doca_gpu_dev_verbs_ticket_t t;
	const char *log;

	open_unserved();
	capture_begin();
	for (unsigned int i = 0; i < 3; i++) {
		put(&t);
		watch_polls(IDLE_POLLS - 1);
		cr_expect_eq(doca_gpu_verbs_cpu_proxy_progress(gverbs(), NULL), DOCA_SUCCESS);
		cr_expect_eq(gdk_wait(p.tx.dev, t, E2E_MODE), 0);
	}
	log = capture_end();
	cr_expect_eq(times(log, UNSERVED), 0, "log: %s", log);
	e2e_pair_close(&p);
}

/* A connected pair whose tx is monitored by a new service. Returns tx, whose step_lock keeps the
 * service from ringing. */
static struct gdk_db_qp *open_monitored(struct gdk_service_attr attr,
					doca_gpu_verbs_service_t *service)
{
	open_unserved();
	cr_assert_eq(gdk_verbs_service_create(&attr, service), DOCA_SUCCESS);
	cr_assert_eq(doca_gpu_verbs_service_monitor_qp(*service, gverbs()), DOCA_SUCCESS);
	return gdk_to_db_qp(gverbs());
}

/* Here, and in the next tests, step_lock keeps the service's thread from ringing. The thread may
 * sleep for a millisecond, which is one more poll. */
Test(watch, a_stuck_service_thread_is_reported)
{
	doca_gpu_verbs_service_t service;
	doca_gpu_dev_verbs_ticket_t t;
	struct gdk_db_qp *x;
	const char *log;

	x = open_monitored((struct gdk_service_attr){ 0 }, &service);
	capture_begin();
	put(&t);
	cr_expect_eq(gdk_wait(p.tx.dev, t, E2E_MODE), 0);
	pthread_spin_lock(&x->proxy.step_lock);
	watch_polls(1);
	put(&t);
	watch_polls(IDLE_POLLS + 1);
	pthread_spin_unlock(&x->proxy.step_lock);
	cr_expect_eq(gdk_wait(p.tx.dev, t, E2E_MODE), 0);
	log = capture_end();
	cr_expect_eq(times(log, UNSERVED), 1, "log: %s", log);
	cr_expect(strstr(log, BUSY), "log: %s", log);
	cr_assert_eq(doca_gpu_verbs_destroy_service(service), DOCA_SUCCESS);
	e2e_pair_close(&p);
}

/* The status does not claim that no service monitors the QP, and the log names the thread. */
Test(watch, a_wait_for_a_busy_service_times_out)
{
	doca_gpu_verbs_service_t service;
	doca_gpu_dev_verbs_ticket_t t;
	struct gdk_db_qp *x;
	const char *log;

	x = open_monitored((struct gdk_service_attr){ 0 }, &service);
	cr_assert_eq(gdk_verbs_qp_set_wait_limit(gverbs(), GDK_UNSERVED_NS), DOCA_SUCCESS);
	pthread_spin_lock(&x->proxy.step_lock);
	put(&t);
	cr_expect_eq(gdk_wait(p.tx.dev, t, E2E_MODE), -ETIMEDOUT);
	log = log_of_polls(1);
	cr_expect_eq(times(log, "ended with -ETIMEDOUT" LATE), 1, "log: %s", log);
	cr_expect(strstr(log, BUSY), "log: %s", log);
	pthread_spin_unlock(&x->proxy.step_lock);
	cr_assert_eq(doca_gpu_verbs_destroy_service(service), DOCA_SUCCESS);
	e2e_pair_close(&p);
}

/* From the end of the service on, no thread serves the QP. */
Test(watch, a_wait_after_the_end_of_the_service_ends_with_ehostdown)
{
	doca_gpu_verbs_service_t service;
	doca_gpu_dev_verbs_ticket_t t;

	(void)open_monitored((struct gdk_service_attr){ 0 }, &service);
	put(&t);
	cr_expect_eq(gdk_wait(p.tx.dev, t, E2E_MODE), 0);
	cr_assert_eq(doca_gpu_verbs_destroy_service(service), DOCA_SUCCESS);
	cr_expect_eq(gdk_wait_for(p.tx.dev, t + 1, E2E_MODE, GDK_UNSERVED_NS), -ETIMEDOUT,
		     "nothing is pending");
	put(&t);
	cr_expect_eq(gdk_wait_for(p.tx.dev, t, E2E_MODE, GDK_UNSERVED_NS), -EHOSTDOWN);
	e2e_pair_close(&p);
}

/* A thread of a service may sleep as long as the service's options allow. */
Test(watch, a_service_that_sleeps_is_not_reported)
{
	doca_gpu_verbs_service_t service;
	doca_gpu_dev_verbs_ticket_t t;
	struct gdk_db_qp *x;
	const char *log;

	x = open_monitored((struct gdk_service_attr){ .nap_max_us = 1500000 }, &service);
	capture_begin();
	pthread_spin_lock(&x->proxy.step_lock); /* the thread sleeps until it is unlocked */
	put(&t);
	watch_polls(IDLE_POLLS + 14);
	log = capture_end();
	cr_expect_eq(times(log, UNSERVED), 0, "log: %s", log);
	log = log_of_polls(1);
	cr_expect_eq(times(log, UNSERVED), 1, "after its longest sleep: %s", log);
	pthread_spin_unlock(&x->proxy.step_lock);
	cr_expect_eq(gdk_wait(p.tx.dev, t, E2E_MODE), 0);
	cr_assert_eq(doca_gpu_verbs_destroy_service(service), DOCA_SUCCESS);
	e2e_pair_close(&p);
}

/* The CPU writes the DBREC; the counter is `rung` in the state block. */
Test(watch, unserved_dbrecs_of_no_dbr_emulation_are_reported)
{
	struct doca_gpu_verbs_qp_hl *hl;
	struct e2e_nic nic;
	const char *log;
	char text[80];
	uint32_t qpn;

	e2e_open(&nic);
	hl = create(&nic, EMULATED);
	watch_polls(0);
	cr_assert_eq(doca_verbs_qp_get_qpn(hl->qp, &qpn), DOCA_SUCCESS);
	snprintf(text, sizeof(text), "QP 0x%x: " UNSERVED, qpn);
	capture_begin();
	__atomic_store_n(&hl->qp_gverbs->qp_cpu->gdk_state->rung, 3, __ATOMIC_RELEASE);
	watch_polls(IDLE_POLLS);
	log = capture_end();
	cr_expect_eq(times(log, text), 1, "log: %s", log);
	cr_expect(strstr(log, "pending up to index 3, rung up to 0"), "log: %s", log);
	__atomic_store_n(&hl->qp_gverbs->qp_cpu->gdk_state->rung, 0, __ATOMIC_RELEASE);
	cr_assert_eq(doca_gpu_verbs_destroy_qp_hl(hl), DOCA_SUCCESS);
	e2e_close(&nic);
}

/* ---- AUTO ---- */

/* Opens and closes a QP on a GPU that cannot map the register page. Returns what was logged. */
static const char *log_of_export(enum doca_gpu_dev_verbs_nic_handler handler, char *text,
				 size_t len)
{
	const char *log;

	capture_begin();
	e2e_qp_open(&p.nic, &p.tx, handler, 16);
	snprintf(text, len, "QP 0x%x: AUTO chose CPU_PROXY because GPU_SM_DB is not usable (",
		 p.tx.qpn);
	cr_expect_eq(p.tx.hl->nic_handler, E2E_PROXY);
	e2e_qp_close(&p.tx);
	log = capture_end();
	return log;
}

Test(watch, auto_that_takes_the_proxy_without_a_service_is_a_warning)
{
	doca_gpu_verbs_service_t service;
	const char *log;
	char text[100];

	standin_cuda();
	setenv("STANDIN_CUDA_NO_REG", "0", 1);
	e2e_open_on(&p.nic, GPU_NO_REG);
	for (unsigned int i = 0; i < 2; i++) {
		log = log_of_export(E2E_AUTO, text, sizeof(text));
		cr_expect_eq(times(log, text), 1, "log: %s", log);
		cr_expect(strstr(log, "call doca_gpu_verbs_create_service and "
				      "doca_gpu_verbs_service_monitor_qp, or "
				      "doca_gpu_verbs_cpu_proxy_progress"),
			  "log: %s", log);
		cr_expect_eq(times(log_of_export(E2E_PROXY, text, sizeof(text)), "AUTO"), 0,
			     "a handler that was requested by name");
		cr_assert_eq(doca_gpu_verbs_create_service(&service), DOCA_SUCCESS);
		cr_expect_eq(times(log_of_export(E2E_AUTO, text, sizeof(text)), "AUTO"), 0);
		cr_assert_eq(doca_gpu_verbs_destroy_service(service), DOCA_SUCCESS);
	}
	e2e_close(&p.nic);
}
