/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The device of the process and its contexts, one per open of the device file. Each
 * context is a memfd, which contains its register pages. A context is identified by the
 * memfd's inode, so duplicated descriptors work. The last close of a context destroys
 * the objects that the program left (objects.c). Also generates the sysfs tree of a
 * process that runs without softnic-run or whose address is in use.
 */
#include "evidence.h"
#include "front.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/mlx5-abi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define START_TRIES 16

struct sn_dev *sn_dev;

/* Serializes opens and last closes. Taken before ctx_lock and sn_dev->lock. The NIC thread is
 * joined while it is held and never takes it. */
static pthread_mutex_t life_lock = PTHREAD_MUTEX_INITIALIZER;
/* Protects the list of contexts. Taken before sn_dev->lock. */
static pthread_mutex_t ctx_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sn_ctx *contexts;
static atomic_int n_contexts;
/* The devices of the processes that forked this one. Kept so that LeakSanitizer finds a pointer to
 * them. */
static struct sn_dev *volatile inherited;
static char own_root[PATH_MAX + 16]; /* a tree that this process generated */
static char own_dir[PATH_MAX];	     /* the folder of that tree, if this process created it */
static bool own_root_removed;

bool sn_any_open(void)
{
	return atomic_load_explicit(&n_contexts, memory_order_relaxed) > 0;
}

static void raw_close(int fd)
{
	syscall(SYS_close, fd);
}

/* ---- the sysfs tree ---- */
static void own_tree_remove(void)
{
	if (own_dir[0] && !own_root_removed)
		sn_sysfs_remove(own_dir);
	own_root_removed = true;
}

/* Generates a tree for this process. Under softnic-run it is next to softnic-run's tree, and
 * softnic-run removes both. Otherwise it is in a folder of its own and is removed at exit. */
static void own_tree(const struct sn_cfg *cfg)
{
	if (cfg->sysfs[0]) {
		snprintf(own_root, sizeof(own_root), "%s.%d", cfg->sysfs, (int)getpid());
	} else if (!sn_tmp_make(own_dir)) {
		snprintf(own_root, sizeof(own_root), "%s/sys", own_dir);
		atexit(own_tree_remove);
	} else {
		own_dir[0] = '\0';
		snprintf(own_root, sizeof(own_root), "/nonexistent");
	}
	sn_sysfs_build(own_root, cfg);
}

const char *sn_sysfs_root(void)
{
	static pthread_mutex_t tree_lock = PTHREAD_MUTEX_INITIALIZER;
	const char *root = getenv("SOFTNIC_SYSFS");
	struct sn_cfg cfg;

	if (own_root[0])
		return own_root;
	if (root && *root)
		return root;
	pthread_mutex_lock(&tree_lock);
	if (!own_root[0]) {
		sn_cfg_from_env(&cfg);
		snprintf(cfg.sysfs, sizeof(cfg.sysfs), "%s", "");
		own_tree(&cfg);
	}
	pthread_mutex_unlock(&tree_lock);
	return own_root;
}

/* ---- the device ---- */
static void child_after_fork(void)
{
	/* the NIC thread does not exist in the child, which creates a new device */
	pthread_mutex_init(&life_lock, NULL);
	pthread_mutex_init(&ctx_lock, NULL);
	if (sn_dev) {
		sn_dev->front->inherited = inherited;
		sn_dev->front->inherited_contexts = contexts;
		inherited = sn_dev;
	}
	sn_dev = NULL;
	contexts = NULL;
	atomic_store(&n_contexts, 0);
	own_root[0] = own_dir[0] = '\0';
}

static void report_at_exit(void)
{
	if (sn_dev)
		sn_stats_report(sn_dev);
}

/* Returns 0 or -errno; -EINVAL: the configuration is invalid. */
static int device_create(struct sn_dev **created)
{
	static bool once;
	struct sn_dev *dev;

	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	if (!sn_cfg_from_env(&dev->cfg)) {
		free(dev);
		return -EINVAL;
	}
	dev->front = calloc(1, sizeof(*dev->front));
	if (!dev->front) {
		free(dev);
		return -ENOMEM;
	}
	pthread_mutex_init(&dev->lock, NULL);
	dev->memfd = -1;
	if (!once) {
		pthread_atfork(NULL, NULL, child_after_fork);
		atexit(report_at_exit);
		once = true;
	}
	sn_evidence_begin(dev);
	*created = dev;
	return 0;
}

/* Starts the engine. If the address is local to this machine (127.x.y.z) and in use, picks the
 * next free one and generates a matching tree. On a real network peers expect the given address,
 * so the start fails. */
static int device_start(struct sn_dev *dev)
{
	int i, rc = -EADDRINUSE;

	for (i = 0; i < START_TRIES; i++) {
		sn_dev_lock(dev);
		rc = sn_eng_start(dev);
		pthread_mutex_unlock(&dev->lock);
		if ((rc != -EADDRINUSE && rc != -EADDRNOTAVAIL) || !sn_addr_is_local(&dev->cfg.ip))
			break;
		rc = sn_addr_pick(&dev->cfg.ip, dev->cfg.infiniband);
		if (rc)
			break;
		rc = -EADDRINUSE;
		own_tree(&dev->cfg);
	}
	if (rc)
		sn_message("cannot start the NIC: %s", strerror(-rc));
	return rc;
}

/* ---- contexts ---- */

/*
 * Writes the page with which a program converts CQE time stamps (monotonic clock, ns) to the
 * time of day. The page is written when the context is opened and becomes wrong if the time of
 * day is set later.
 */
static bool clock_page(int memfd)
{
	struct mlx5_ib_clock_info info = {
		.mult = 1,
		.shift = 0,
		.mask = SN_TIMESTAMP_MASK,
		.overflow_period = SN_TIMESTAMP_MASK / 2,
	};
	off_t at = (off_t)(MLX5_IB_MMAP_CLOCK_INFO << 8 | MLX5_IB_CLOCK_INFO_V1) * SN_UAR_SIZE;
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	info.cycles = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
	clock_gettime(CLOCK_REALTIME, &ts);
	info.nsec = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
	return pwrite(memfd, &info, sizeof(info), at) == (ssize_t)sizeof(info);
}

/* Maps the core clock page, which libmlx5 reads (ibv_query_rt_values_ex). */
static bool core_clock_map(struct sn_ctx *ctx)
{
	off_t at = (off_t)(MLX5_IB_MMAP_CORE_CLOCK << 8) * SN_UAR_SIZE;
	void *page = mmap(NULL, SN_UAR_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, ctx->memfd, at);

	struct timespec ts;

	if (page == MAP_FAILED)
		return false;
	clock_gettime(CLOCK_MONOTONIC, &ts); /* until the first pass with this context */
	ctx->clock.time = page;
	*ctx->clock.time = htobe64((uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec);
	return true;
}

static void core_clock_unmap(struct sn_ctx *ctx)
{
	munmap(ctx->clock.time, SN_UAR_SIZE);
}

static void core_clock_add(struct sn_ctx *ctx)
{
	sn_dev_lock(sn_dev);
	ctx->clock.next = sn_dev->clocks;
	sn_dev->clocks = &ctx->clock;
	sn_eng_kick(sn_dev);
	pthread_mutex_unlock(&sn_dev->lock);
}

static void core_clock_remove(struct sn_ctx *ctx)
{
	struct sn_clock **at = &sn_dev->clocks;

	while (*at != &ctx->clock)
		at = &(*at)->next;
	*at = ctx->clock.next;
}

static int context_memfd(struct sn_ctx *ctx, int flags, int *user)
{
	struct stat st;

	ctx->memfd = (int)syscall(SYS_memfd_create, SN_MEMFD_NAME, MFD_CLOEXEC);
	if (ctx->memfd < 0)
		return -errno;
	if (ftruncate(ctx->memfd, SN_MEMFD_SIZE) || !clock_page(ctx->memfd) ||
	    syscall(SYS_fstat, ctx->memfd, &st) || !core_clock_map(ctx))
		goto close_memfd;
	ctx->dev = st.st_dev;
	ctx->ino = st.st_ino;
	*user = (int)syscall(SYS_fcntl, ctx->memfd, flags & O_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD,
			     0);
	if (*user < 0)
		goto unmap_clock;
	ctx->fds = 1;
	return 0;

unmap_clock:
	core_clock_unmap(ctx);
close_memfd:
	raw_close(ctx->memfd);
	return -errno;
}

int sn_ctx_open(int flags)
{
	struct sn_ctx *ctx = calloc(1, sizeof(*ctx));
	int fd = -1, rc = ctx ? 0 : -ENOMEM;

	pthread_mutex_lock(&life_lock);
	if (!rc && !sn_dev)
		rc = device_create(&sn_dev);
	if (rc)
		goto unlock;
	rc = context_memfd(ctx, flags, &fd);
	if (rc)
		goto unlock;
	if (!sn_any_open())
		rc = device_start(sn_dev);
	if (rc)
		goto close_fds;
	sn_dev->memfd = ctx->memfd;
	core_clock_add(ctx);
	pthread_mutex_lock(&ctx_lock);
	ctx->next = contexts;
	contexts = ctx;
	pthread_mutex_unlock(&ctx_lock);
	atomic_fetch_add(&n_contexts, 1);
	pthread_mutex_unlock(&life_lock);
	return fd;

close_fds:
	core_clock_unmap(ctx);
	raw_close(fd);
	raw_close(ctx->memfd);
unlock:
	pthread_mutex_unlock(&life_lock);
	free(ctx);
	return rc;
}

static struct sn_ctx *find_ctx(int fd)
{
	struct sn_ctx *ctx;
	struct stat st;

	if (!contexts || syscall(SYS_fstat, fd, &st) || !S_ISREG(st.st_mode))
		return NULL;
	for (ctx = contexts; ctx; ctx = ctx->next)
		if (ctx->ino == st.st_ino && ctx->dev == st.st_dev)
			return ctx;
	return NULL;
}

struct sn_ctx *sn_ctx_of_fd(int fd)
{
	int saved = errno;
	struct sn_ctx *ctx;

	if (!sn_any_open())
		return NULL;
	pthread_mutex_lock(&ctx_lock);
	ctx = find_ctx(fd);
	pthread_mutex_unlock(&ctx_lock);
	errno = saved;
	return ctx;
}

void sn_ctx_dup(int fd)
{
	int saved = errno;
	struct sn_ctx *ctx;

	pthread_mutex_lock(&ctx_lock);
	ctx = find_ctx(fd);
	if (ctx)
		ctx->fds++;
	pthread_mutex_unlock(&ctx_lock);
	errno = saved;
}

static void ctx_unlink(struct sn_ctx *ctx)
{
	struct sn_ctx **p;

	for (p = &contexts; *p != ctx; p = &(*p)->next)
		;
	*p = ctx->next;
}

static void ctx_destroy(struct sn_ctx *ctx)
{
	pthread_mutex_lock(&life_lock);
	sn_dev_lock(sn_dev);
	sn_ctx_destroy_objects(sn_dev, ctx);
	core_clock_remove(ctx);
	pthread_mutex_unlock(&sn_dev->lock);
	if (atomic_fetch_sub(&n_contexts, 1) == 1) {
		sn_eng_stop(sn_dev);
		sn_stats_save(sn_dev);
		sn_evidence_write(sn_dev, "closed");
	}
	core_clock_unmap(ctx);
	raw_close(ctx->memfd);
	free(ctx);
	pthread_mutex_unlock(&life_lock);
}

static void events_closing(int fd)
{
	struct sn_event_queue *q;

	sn_dev_lock(sn_dev);
	q = sn_events_of_fd(sn_dev, fd);
	if (q) {
		q->closed = true;
		sn_devx_unsubscribe(sn_dev, NULL, q);
		if (!q->users)
			sn_events_free(sn_dev, q);
	}
	pthread_mutex_unlock(&sn_dev->lock);
}

void sn_fd_closing(int fd)
{
	int saved = errno;
	struct sn_ctx *ctx;
	struct stat st;

	if (syscall(SYS_fstat, fd, &st) || !(S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode)))
		goto out;
	pthread_mutex_lock(&ctx_lock);
	if (S_ISFIFO(st.st_mode) && contexts)
		events_closing(fd);
	ctx = find_ctx(fd);
	if (ctx && --ctx->fds)
		ctx = NULL;
	if (ctx)
		ctx_unlink(ctx);
	pthread_mutex_unlock(&ctx_lock);
	if (ctx)
		ctx_destroy(ctx);
out:
	errno = saved;
}

long sn_ctx_ioctl(struct sn_ctx *ctx, void *arg)
{
	struct sn_dev *dev = sn_dev;
	int rc;

	sn_dev_lock(dev);
	rc = sn_uverbs_call(dev, ctx, arg);
	pthread_mutex_unlock(&dev->lock);
	return rc;
}

void sn_fail_next(uint32_t nth_cmd, uint8_t status, uint32_t syndrome, uint32_t nth_ioctl)
{
	struct sn_dev *dev = sn_dev;

	if (!dev)
		return;
	sn_dev_lock(dev);
	dev->front->cmds = 0;
	dev->front->ioctls = 0;
	dev->cfg.fail_cmd_nth = nth_cmd;
	dev->cfg.fail_cmd_status = status;
	dev->cfg.fail_cmd_syndrome = syndrome;
	dev->cfg.fail_ioctl_nth = nth_ioctl;
	pthread_mutex_unlock(&dev->lock);
}
