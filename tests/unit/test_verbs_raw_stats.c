/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The report of Ethernet queues and flow rules: SQs, RQs and rules with their counters, apart
 * from queue pairs, while they exist and after their destruction; what a rule matches; and the
 * limit of the list of destroyed objects.
 */
#include "../lib/raw.h"
#include "../softnic/eth.h"
#include "../softnic/front.h"

#define FRAME 100u

static struct vb v;
static struct ibv_cq *cq;
static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 0x0a };

/* Functions and data of the NIC. */
static struct sn_dev *dev;
static void (*json)(struct sn_dev *dev, FILE *f);
static void (*text)(struct sn_dev *dev, int fd);
static void (*rule_gone)(struct sn_dev *dev, const struct sn_rule *rule);
static void (*forget)(struct sn_dev *dev);
static void (*save)(struct sn_dev *dev);

static void *symbol(const char *name)
{
	void *p = dlsym(RTLD_DEFAULT, name);

	cr_assert(p, "no %s; run the test under softnic-run", name);
	return p;
}

static void open_all(void)
{
	raw_need();
	v = vb_open(8 * 4096);
	cq = ibv_create_cq(v.ctx, 63, NULL, NULL, 0);
	cr_assert(cq);
	dev = *(struct sn_dev **)symbol("sn_dev");
	*(void **)&json = symbol("sn_stats_eth_json");
	*(void **)&text = symbol("sn_stats_eth_text");
	*(void **)&rule_gone = symbol("sn_stats_rule_gone");
	*(void **)&forget = symbol("sn_stats_eth_forget");
	*(void **)&save = symbol("sn_stats_save");
}

static void close_all(void)
{
	cr_assert_eq(ibv_destroy_cq(cq), 0);
	vb_close(&v);
}

TestSuite(verbs_raw_stats, .init = open_all, .fini = close_all);

/* Returns the part of the JSON file with Ethernet objects. */
static char *report(void)
{
	char *out = NULL;
	size_t len;
	FILE *f = open_memstream(&out, &len);

	cr_assert(f);
	pthread_mutex_lock(&dev->lock);
	json(dev, f);
	pthread_mutex_unlock(&dev->lock);
	fclose(f);
	return out;
}

/* Returns the value of a counter of the last object in an array; the array is not empty. */
static uint64_t last(const char *array, const char *counter)
{
	char name[64], *all = report(), *at, *end, *next;
	uint64_t value;

	snprintf(name, sizeof(name), "\"%s\": [\n", array);
	at = strstr(all, name);
	cr_assert(at, "no object in %s: %s", array, all);
	end = strchr(at, ']');
	snprintf(name, sizeof(name), "\"%s\": ", counter);
	for (next = strstr(at, name); next && next < end; next = strstr(next + 1, name))
		at = next;
	cr_assert(!strncmp(at, name, strlen(name)), "no %s in %s: %s", counter, array, all);
	value = strtoull(at + strlen(name), NULL, 10);
	free(all);
	return value;
}

static bool is_empty(const char *array)
{
	char name[64], *all = report();
	bool empty;

	snprintf(name, sizeof(name), "\"%s\": []", array);
	empty = strstr(all, name);
	free(all);
	return empty;
}

static bool contains(const char *what)
{
	char *all = report();
	bool is = strstr(all, what);

	free(all);
	return is;
}

/* Sends three frames to a QP that has posted two receive requests. */
static struct ibv_flow *traffic(struct ibv_qp *qp)
{
	struct ibv_flow *flow = raw_flow(qp, mac);
	int i;

	raw_ready(qp);
	memcpy(v.mem, mac, sizeof(mac));
	memcpy(v.mem + 12, (const uint8_t[]){ 0x88, 0xb5 }, 2);
	for (i = 0; i < 2; i++)
		cr_assert_eq(vb_recv(&v, qp, 1, 4096, 4096), 0);
	for (i = 0; i < 3; i++)
		raw_send(&v, qp, 0, FRAME);
	for (i = 0; i < 5; i++)
		cr_assert_eq(raw_wait(cq).status, IBV_WC_SUCCESS);
	while (last("rules", "packets") < 3) /* the third frame makes no CQE */
		usleep(1000);
	return flow;
}

static void check_counters(void)
{
	cr_assert_eq(last("sqs", "wqes"), 3);
	cr_assert_eq(last("sqs", "cqes"), 3);
	cr_assert_eq(last("sqs", "frames"), 3);
	cr_assert_eq(last("sqs", "frame_bytes"), 3 * FRAME);
	cr_assert_eq(last("rqs", "cqes"), 2);
	cr_assert_eq(last("rqs", "frames"), 2);
	cr_assert_eq(last("rqs", "frame_bytes"), 2 * FRAME);
	cr_assert_eq(last("rqs", "out_of_buffer"), 1);
	cr_assert_eq(last("rules", "packets"), 3);
	cr_assert_eq(last("rules", "bytes"), 3 * FRAME);
	cr_assert(contains("\"direction\": \"receive\""));
	cr_assert(contains("\"match\": \"dmac 02:00:00:00:00:0a\", \"action\": \"TIR 0x"));
	cr_assert(contains(" RQ 0x"));
}

Test(verbs_raw_stats, objects_are_listed_until_and_after_destruction)
{
	struct ibv_qp *qp = raw_qp(&v, cq, 16, 16, 0);
	struct ibv_flow *flow = traffic(qp);

	check_counters();
	cr_assert_eq(ibv_destroy_flow(flow), 0);
	check_counters();
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	check_counters();
}

Test(verbs_raw_stats, idle_objects_are_listed_only_while_they_exist)
{
	struct ibv_qp *qp = raw_qp(&v, cq, 16, 16, 0);
	struct ibv_flow *flow = raw_flow(qp, mac);

	cr_assert(!is_empty("sqs") && !is_empty("rqs") && !is_empty("rules"));
	cr_assert_eq(ibv_destroy_flow(flow), 0);
	cr_assert(is_empty("rules"));
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	cr_assert(is_empty("sqs") && is_empty("rqs"));
}

/* The list "qps" has neither the SQ nor the RQ, before and after their destruction. */
Test(verbs_raw_stats, ethernet_queues_are_no_queue_pairs)
{
	char path[sizeof(dev->cfg.stats_dir) + 32], line[64] = "";
	struct ibv_qp *qp = raw_qp(&v, cq, 16, 16, 0);
	struct ibv_flow *flow = traffic(qp);
	int gone;

	snprintf(dev->cfg.stats_dir, sizeof(dev->cfg.stats_dir), "/tmp");
	snprintf(path, sizeof(path), "/tmp/%d.json", (int)getpid());
	for (gone = 0; gone < 2; gone++) {
		bool found = false;
		FILE *f;

		save(dev);
		f = fopen(path, "r");
		cr_assert(f);
		while (fgets(line, sizeof(line), f))
			found |= !strncmp(line, " \"qps\": [],", 11);
		fclose(f);
		cr_assert(found, "the list of queue pairs is not empty");
		if (gone)
			break;
		cr_assert_eq(ibv_destroy_flow(flow), 0);
		cr_assert_eq(ibv_destroy_qp(qp), 0);
	}
	dev->cfg.stats_dir[0] = 0;
	unlink(path);
}

/* ---- rules that the tests make up ---- */

static void add_gone(struct sn_rule *rule)
{
	rule->packets = 1;
	pthread_mutex_lock(&dev->lock);
	rule_gone(dev, rule);
	pthread_mutex_unlock(&dev->lock);
}

static void set(struct sn_rule *rule, unsigned off, uint8_t value, uint8_t mask)
{
	rule->match[off] = value;
	rule->mask[off] = mask;
}

Test(verbs_raw_stats, rule_shows_what_it_matches)
{
	struct sn_rule rule = { .egress = true, .drop = true };
	unsigned i;

	set(&rule, 6, 0x08, 0xff); /* Ethernet type */
	set(&rule, 7, 0x00, 0xff);
	set(&rule, 0x0e, 0x61, 0x0f); /* VLAN */
	set(&rule, 0x0f, 0x23, 0xff);
	set(&rule, 0x10, 17, 0xff);   /* protocol */
	set(&rule, 0x1e, 0x12, 0xff); /* destination port, only half of it */
	set(&rule, 0x2f, 9, 0xff);    /* source address */
	for (i = 0; i < 16; i++)
		set(&rule, 0x30 + i, (uint8_t)i, 0xff);
	add_gone(&rule);
	cr_assert(contains("\"direction\": \"send\""));
	cr_assert(contains("\"match\": \"ethertype 0x800 vlan 291 protocol 17 udp_dport 4608/65280 "
			   "src 0.0.0.9/0.0.0.255 dst 1:203:405:607:809:a0b:c0d:e0f\", "
			   "\"action\": \"drop\""),
		  "%s", report());
	forget(dev);
	rule = (struct sn_rule){ .set_tag = true, .tag = 0x123, .sniffer = true };
	add_gone(&rule);
	cr_assert(contains("\"match\": \"all\", \"action\": \"count, tag 0x123, copy\""), "%s",
		  report());
	forget(dev);
	cr_assert(is_empty("rules"));
}

/* Calls text() and returns what it writes on standard error. */
static size_t text_of(char *buf, size_t size)
{
	int err = dup(STDERR_FILENO), p[2];
	size_t n = 0;
	ssize_t got;

	cr_assert_eq(pipe(p), 0);
	dup2(p[1], STDERR_FILENO);
	pthread_mutex_lock(&dev->lock);
	text(dev, STDERR_FILENO);
	pthread_mutex_unlock(&dev->lock);
	dup2(err, STDERR_FILENO);
	close(p[1]);
	close(err);
	while (n < size - 1 && (got = read(p[0], buf + n, size - 1 - n)) > 0)
		n += (size_t)got;
	close(p[0]);
	buf[n] = 0;
	return n;
}

Test(verbs_raw_stats, list_of_destroyed_objects_is_bounded)
{
	struct sn_rule rule = { .drop = true };
	static char buf[65536];
	char *all, *at;
	unsigned i;

	for (i = 0; i < SN_GONE_MAX + 3; i++) {
		rule.order = i;
		add_gone(&rule);
	}
	cr_assert(contains("\"rules_unlisted\": 3,"));
	all = report();
	for (i = 0, at = all; (at = strstr(at, "\"direction\"")); at++)
		i++;
	free(all);
	cr_assert_eq(i, SN_GONE_MAX);
	cr_assert(text_of(buf, sizeof(buf)));
	cr_assert(strstr(buf, "  4035 more flow rules not listed\n"), "%s", buf);
	for (i = 0, at = buf; (at = strstr(at, "  rule receive all -> drop: packets 1 ")); at++)
		i++;
	cr_assert_eq(i, 64);
	forget(dev);
}

Test(verbs_raw_stats, text_lists_queues_and_rules)
{
	struct ibv_qp *qp = raw_qp(&v, cq, 16, 16, 0);
	struct ibv_flow *flow = traffic(qp);
	static char buf[4096];

	cr_assert(text_of(buf, sizeof(buf)));
	cr_assert(strstr(buf, " wqes 3 cqes 3 frames 3 frame_bytes 300\n"), "%s", buf);
	cr_assert(strstr(buf, " cqes 2 frames 2 frame_bytes 200 out_of_buffer 1\n"), "%s", buf);
	cr_assert(strstr(buf, "  rule receive dmac 02:00:00:00:00:0a -> TIR 0x"), "%s", buf);
	cr_assert(strstr(buf, ": packets 3 bytes 300\n"), "%s", buf);
	cr_assert_eq(ibv_destroy_flow(flow), 0);
	cr_assert_eq(ibv_destroy_qp(qp), 0);
}

/* ---- the report of a process that exits while its threads use the NIC ---- */
static int changing;

static void *change_rules(void *arg)
{
	const struct timespec nap = { 0, 100000000 };
	struct sn_rule *rules;

	raw_lock(dev);
	rules = dev->rules;
	dev->rules = (void *)8; /* as in the middle of a change */
	__atomic_store_n(&changing, 1, __ATOMIC_RELEASE);
	nanosleep(&nap, NULL);
	dev->rules = rules;
	pthread_mutex_unlock(&dev->lock);
	return arg;
}

Test(verbs_raw_stats, report_waits_for_changes)
{
	void (*at_exit)(struct sn_dev * of);
	pthread_t thread;

	*(void **)&at_exit = symbol("sn_stats_report");
	cr_assert_eq(pthread_create(&thread, NULL, change_rules, NULL), 0);
	while (!__atomic_load_n(&changing, __ATOMIC_ACQUIRE))
		;
	at_exit(dev);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}
