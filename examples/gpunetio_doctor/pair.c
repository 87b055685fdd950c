/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Attempts with each GPU and device: memory of the GPU is registered with the NIC, and a queue pair
 * is created with each doorbell handler. CPU threads take the place of a GPU if there is none.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nic.h"

#define H(name)	   DOCA_GPUNETIO_VERBS_NIC_HANDLER_##name
#define MEM_BYTES  (64ul << 10)
#define MEM_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

#define FIX_MAPPING \
	"echo 'options nvidia NVreg_RegistryDwords=\"PeerMappingOverride=1;\"' " \
	">/etc/modprobe.d/nvidia-peer-mapping.conf; update-initramfs -u; reboot"
#define FIX_MEMORY \
	"use the open kernel modules of the NVIDIA driver (dmabuf), or modprobe nvidia-peermem"

struct names {
	const char *gpu, *device;
};

struct pair {
	const struct dr_env *env;
	struct dr_report *r;
	const struct names *names;
	bool is_host; /* CPU threads, no GPU */
	char scope[2 * DR_NAME_LEN + 16];
	doca_gpu_t *gpu;
	struct dr_device nic;
	char mapping[512]; /* result of mapping the register page for the GPU */
	bool mapped;
};

/* ---- memory of the GPU ---- */

static bool try_dmabuf(const struct pair *p, void *memory, char *why, size_t size)
{
	struct ibv_mr *mr;
	struct dr_log log;
	doca_error_t err;
	int fd = -1, sys_err;

	dr_log_begin(&log);
	err = doca_gpu_get_dmabuf_fd(p->gpu, memory, MEM_BYTES, &fd);
	dr_log_end(&log);
	if (err) {
		snprintf(why, size, "the GPU driver exports no dmabuf (%s)",
			 doca_error_get_descr(err));
		return false;
	}
	mr = ibv_reg_dmabuf_mr(p->nic.pd, 0, MEM_BYTES, (uintptr_t)memory, fd, MEM_ACCESS);
	sys_err = errno;
	close(fd);
	if (mr)
		ibv_dereg_mr(mr);
	else
		snprintf(why, size, "the NIC cannot register the dmabuf: %s",
			 sys_err == 524 ? "ENOTSUPP (524)" : strerror(sys_err));
	return mr;
}

static bool try_peer_memory(const struct pair *p, void *memory, char *why, size_t size)
{
	struct ibv_mr *mr = ibv_reg_mr(p->nic.pd, memory, MEM_BYTES, MEM_ACCESS);

	if (mr)
		ibv_dereg_mr(mr);
	else
		snprintf(why, size, "the NIC cannot register GPU memory by its address: %s",
			 strerror(errno));
	return mr;
}

/* Either of the two ways suffices. */
static void check_memory(const struct pair *p)
{
	char no_dmabuf[256], no_peer[256];
	bool dmabuf, peer;
	struct dr_log log;
	doca_error_t err;
	void *memory;

	dr_log_begin(&log);
	err = doca_gpu_mem_alloc(p->gpu, MEM_BYTES, 65536, DOCA_GPU_MEM_TYPE_GPU, &memory, NULL);
	dr_log_end(&log);
	if (err) {
		dr_add(p->r, p->scope, "gpu-memory", DR_FAIL,
		       "nvidia-smi shows the users of the GPU", "cannot allocate GPU memory: %s",
		       log.text);
		return;
	}
	dmabuf = try_dmabuf(p, memory, no_dmabuf, sizeof(no_dmabuf));
	peer = try_peer_memory(p, memory, no_peer, sizeof(no_peer));
	if (dmabuf)
		dr_add(p->r, p->scope, "dmabuf", DR_OK, NULL,
		       "the NIC registers GPU memory through a dmabuf");
	else
		dr_add(p->r, p->scope, "dmabuf", peer ? DR_NOTE : DR_WARN, peer ? NULL : FIX_MEMORY,
		       "%s", no_dmabuf);
	if (peer)
		dr_add(p->r, p->scope, "peer-memory", DR_OK, NULL,
		       "the NIC registers GPU memory by its address (nvidia-peermem)");
	else
		dr_add(p->r, p->scope, "peer-memory", dmabuf ? DR_NOTE : DR_WARN,
		       dmabuf ? NULL : FIX_MEMORY, "%s", no_peer);
	(void)doca_gpu_mem_free(p->gpu, memory);
}

/* ---- queue pairs ---- */

/* Creates a queue pair. If that fails, writes the log's message to why and returns NULL. */
static struct doca_gpu_verbs_qp_hl *create(const struct pair *p,
					   enum doca_gpu_dev_verbs_nic_handler handler,
					   uint32_t flags, char *why, size_t size)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = {
		.gpu_dev = p->gpu,
		.net_dev = p->nic.dev,
		.ibpd = p->nic.pd,
		.sq_nwqe = 64,
		.nic_handler = handler,
		.send_dbr_mode_ext = handler == H(GPU_SM_NO_DBR)
					     ? DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW
					     : DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR,
	};
	struct doca_gpu_verbs_qp_hl *qp = NULL;
	struct dr_log log;
	doca_error_t err;

	dr_log_begin(&log);
	err = gdk_verbs_create_qp_hl(&attr, flags, &qp);
	dr_log_end(&log);
	if (!err)
		return qp;
	snprintf(why, size, "%s", *log.text ? log.text : doca_error_get_descr(err));
	return NULL;
}

static void destroy(struct doca_gpu_verbs_qp_hl *qp)
{
	struct dr_log log;

	dr_log_begin(&log);
	(void)doca_gpu_verbs_destroy_qp_hl(qp);
	dr_log_end(&log);
}

/* Shortens "handler X refused on GPU Y (X: reason); linked strategies: ..." to the reason. */
static void shorten(char *why, const char *handler)
{
	char mark[64], *start, *end;

	snprintf(mark, sizeof(mark), "(%s: ", handler);
	start = strstr(why, mark);
	end = start ? strstr(start, "); linked") : NULL;
	if (!end)
		return;
	*end = '\0';
	start += strlen(mark);
	memmove(why, start, strlen(start) + 1);
}

/* Reads the reason for which the handler was chosen. */
static void chosen_reason(const struct doca_gpu_verbs_qp_hl *qp, struct gdk_handler_report *report,
			  char *why, size_t size)
{
	snprintf(why, size, "no reason was recorded");
	if (gdk_verbs_qp_get_handler_report(qp->qp_gverbs, report))
		return;
	for (unsigned int i = 0; i < report->num_candidates; i++)
		if (report->candidates[i].handler == report->chosen)
			snprintf(why, size, "%s", report->candidates[i].reason);
}

static void check_queue_memory(const struct pair *p, const struct doca_gpu_verbs_qp_hl *qp)
{
	struct gdk_umem_registration reg;

	if (gdk_verbs_umem_get_registration(qp->qp_umem, &reg)) {
		dr_add(p->r, p->scope, "queue-memory", DR_UNKNOWN, NULL,
		       "the library does not report the registration");
		return;
	}
	switch (reg.way) {
	case GDK_UMEM_DMABUF:
	case GDK_UMEM_GIVEN_DMABUF:
		dr_add(p->r, p->scope, "queue-memory", DR_OK, NULL,
		       "queues are in GPU memory, registered through a dmabuf");
		return;
	case GDK_UMEM_PEER_MEMORY:
		dr_add(p->r, p->scope, "queue-memory", DR_OK, NULL,
		       "queues are in GPU memory, registered by peer memory; dmabuf: %s",
		       reg.reason);
		return;
	case GDK_UMEM_HOST_MEMORY:
		dr_add(p->r, p->scope, "queue-memory", p->is_host ? DR_OK : DR_NOTE, NULL,
		       "queues are in %shost memory", p->is_host ? "" : "pinned ");
	}
}

/* The queue pair that a program gets by default. */
static void check_auto(struct pair *p)
{
	char why[512], other[512];
	struct doca_gpu_verbs_qp_hl *qp = create(p, H(AUTO), 0, why, sizeof(why));
	struct gdk_handler_report report;
	bool proxy;

	if (!qp) {
		qp = create(p, H(AUTO), GDK_QP_HL_QUEUES_ON_HOST, other, sizeof(other));
		dr_add(p->r, p->scope, "auto", DR_FAIL,
		       qp ? FIX_MEMORY ", or export GDAKI_QUEUE_MEM=cpu_gpu" : NULL,
		       "cannot create a queue pair: %s", why);
		if (qp)
			destroy(qp);
		return;
	}
	chosen_reason(qp, &report, why, sizeof(why));
	check_queue_memory(p, qp);
	proxy = report.chosen == H(CPU_PROXY) && !p->is_host;
	dr_add(p->r, p->scope, "auto", proxy ? DR_WARN : DR_OK,
	       proxy ? "as for register-mapping" : NULL, "AUTO takes %s: %s%s",
	       gdk_handler_name(report.chosen), why,
	       proxy ? "; a CPU thread must ring, which costs latency" : "");
	for (unsigned int i = 0; i < report.num_candidates; i++)
		if (report.candidates[i].handler == H(GPU_SM_DB)) {
			p->mapped = report.candidates[i].usable;
			snprintf(p->mapping, sizeof(p->mapping), "%s", report.candidates[i].reason);
		}
	if (p->env->handler <= 0)
		dr_add_handler(p->r, p->names->gpu, p->names->device,
			       gdk_handler_name(report.chosen), why);
	destroy(qp);
}

static void check_mapping(const struct pair *p)
{
	if (p->is_host || !*p->mapping)
		return;
	dr_add(p->r, p->scope, "register-mapping", p->mapped ? DR_OK : DR_WARN,
	       p->mapped ? NULL : FIX_MAPPING, "%s", p->mapping);
}

/* A handler that the user did not ask for may be unusable. */
static void check_handler(const struct pair *p, enum doca_gpu_dev_verbs_nic_handler handler,
			  const char *check)
{
	bool wanted = p->env->handler == (int)handler;
	char why[512];
	struct doca_gpu_verbs_qp_hl *qp = create(p, handler, 0, why, sizeof(why));
	struct gdk_handler_report report;

	if (qp) {
		chosen_reason(qp, &report, why, sizeof(why));
		dr_add(p->r, p->scope, check, DR_OK, NULL, "usable: %s", why);
		if (wanted)
			dr_add_handler(p->r, p->names->gpu, p->names->device,
				       gdk_handler_name(handler), why);
		destroy(qp);
		return;
	}
	shorten(why, gdk_handler_name(handler));
	dr_add(p->r, p->scope, check, wanted ? DR_FAIL : DR_NOTE,
	       strstr(why, "PeerMappingOverride") ? FIX_MAPPING
	       : wanted				  ? "use another handler, such as -p 0 (AUTO)"
						  : NULL,
	       "not usable: %s", why);
}

static void check_handlers(struct pair *p)
{
	static const struct {
		enum doca_gpu_dev_verbs_nic_handler handler;
		const char *check;
	} handlers[] = {
		{ H(CPU_PROXY), "cpu-proxy" },
		{ H(GPU_SM_DB), "gpu-sm-db" },
		{ H(GPU_SM_BF), "gpu-sm-bf" },
		{ H(GPU_SM_NO_DBR), "gpu-sm-no-dbr" },
	};

	check_auto(p);
	check_mapping(p);
	for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++)
		check_handler(p, handlers[i].handler, handlers[i].check);
}

/* ---- in child processes ---- */

static int open_gpu(struct dr_report *r, const char *scope, const char *name, doca_gpu_t **gpu)
{
	struct dr_log log;
	doca_error_t err;

	dr_log_begin(&log);
	err = doca_gpu_create(name, gpu);
	dr_log_end(&log);
	if (!err)
		return 0;
	dr_add(r, scope, "cuda-open", DR_FAIL,
	       "nvidia-smi must list the GPU; in a container: --gpus all; see also "
	       "CUDA_VISIBLE_DEVICES",
	       "%s", *log.text ? log.text : doca_error_get_descr(err));
	return -1;
}

static void probe_gpu(const struct dr_env *env, struct dr_report *r, const void *name)
{
	char scope[DR_NAME_LEN + 8];
	doca_gpu_t *gpu;

	(void)env;
	snprintf(scope, sizeof(scope), "gpu %s", (const char *)name);
	if (open_gpu(r, scope, name, &gpu))
		return;
	dr_add(r, scope, "cuda-open", DR_OK, NULL, "the CUDA driver opens the GPU");
	(void)doca_gpu_destroy(gpu);
}

static void scope_of(const struct names *names, char *scope, size_t size)
{
	snprintf(scope, size, "gpu %s + %s", names->gpu, names->device);
}

static void probe_pair(const struct dr_env *env, struct dr_report *r, const void *arg)
{
	struct pair p = { .env = env, .r = r, .names = arg };

	scope_of(p.names, p.scope, sizeof(p.scope));
	p.is_host = !strcmp(p.names->gpu, DR_HOST_GPU);
	if (open_gpu(r, p.scope, p.names->gpu, &p.gpu))
		return;
	if (!dr_device_open(&p.nic, env, r, p.scope, p.names->device)) {
		if (!p.is_host)
			check_memory(&p);
		check_handlers(&p);
		dr_device_close(&p.nic);
	}
	(void)doca_gpu_destroy(p.gpu);
}

/* ---- all pairs ---- */

static void check_one(const struct dr_env *env, struct dr_report *r, const char *gpu,
		      const char *device)
{
	struct names names = { gpu, device };
	char scope[2 * DR_NAME_LEN + 16];

	scope_of(&names, scope, sizeof(scope));
	if (!dr_failed(r, device, NULL))
		dr_in_child(env, r, scope, "attempts", probe_pair, &names);
}

void dr_check_pair(const struct dr_env *env, struct dr_report *r)
{
	char scope[DR_NAME_LEN + 8];

	for (int g = 0; g < env->gpus.num && env->probe; g++) {
		const char *gpu = env->gpus.name[g];

		snprintf(scope, sizeof(scope), "gpu %s", gpu);
		dr_in_child(env, r, scope, "cuda-open", probe_gpu, gpu);
		for (int d = 0; d < env->devices.num && !dr_failed(r, scope, "cuda-open"); d++)
			check_one(env, r, gpu, env->devices.name[d]);
	}
	for (int d = 0; d < env->devices.num && env->probe && dr_uses_host_gpu(env); d++)
		check_one(env, r, DR_HOST_GPU, env->devices.name[d]);
}
