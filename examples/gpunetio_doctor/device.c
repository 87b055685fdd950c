/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Opens a device and checks what needs no GPU: DEVX, UARs, capabilities, a queue pair, MTU. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/mlx5dv.h>

#include "nic.h"

#define H(name) DOCA_GPUNETIO_VERBS_NIC_HANDLER_##name

/* ---- open ---- */

static struct ibv_device *find(struct ibv_device **list, const char *name)
{
	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			return list[i];
	return NULL;
}

static const char *fix_of_open(int sys_err)
{
	switch (sys_err) {
	case EACCES:
		return "give the user access to /dev/infiniband/uverbs* (mode 0666 by udev), or "
		       "run as root";
	case EPERM:
		return "in a container: --device /dev/infiniband";
	case ENOMEM:
		return "ulimit -l unlimited";
	default:
		return "read the kernel's log: dmesg | grep mlx5";
	}
}

static void fix_of_devx(const struct dr_env *env, struct ibv_device *device, char *fix, size_t size)
{
	char address[DR_NAME_LEN];

	dr_pci_address(env, ibv_get_device_name(device), address);
	snprintf(fix, size,
		 "as root: mlxconfig -d %s set UCTX_EN=1, then reboot (for a VF, on its host); or "
		 "update the firmware",
		 address);
}

static int open_context(struct dr_device *d, const struct dr_env *env, struct dr_report *r,
			const char *scope, struct ibv_device *device)
{
	struct mlx5dv_context_attr attr = { .flags = MLX5DV_CONTEXT_FLAGS_DEVX };
	char fix[256];
	int sys_err;

	d->ctx = mlx5dv_open_device(device, &attr);
	if (d->ctx)
		return 0;
	sys_err = errno;
	d->ctx = ibv_open_device(device);
	if (!d->ctx) {
		dr_add(r, scope, "open", DR_FAIL, fix_of_open(errno), "cannot open the device: %s",
		       strerror(errno));
		return -1;
	}
	fix_of_devx(env, device, fix, sizeof(fix));
	dr_add(r, scope, "devx", DR_FAIL, fix, "the device opens without DEVX only (with DEVX: %s)",
	       strerror(sys_err));
	return -1;
}

static int open_steps(struct dr_device *d, const struct dr_env *env, struct dr_report *r,
		      const char *scope, struct ibv_device *device)
{
	char fix[256];
	struct dr_log log;
	doca_error_t err;

	if (!mlx5dv_is_supported(device)) {
		dr_add(r, scope, "open", DR_FAIL, "use a ConnectX-6 Dx or newer",
		       "not an mlx5 device");
		return -1;
	}
	if (open_context(d, env, r, scope, device))
		return -1;
	d->pd = ibv_alloc_pd(d->ctx);
	if (!d->pd) {
		dr_add(r, scope, "open", DR_FAIL, fix_of_open(errno),
		       "cannot allocate a protection domain: %s", strerror(errno));
		return -1;
	}
	dr_log_begin(&log);
	err = doca_verbs_dev_open(d->pd, &d->dev);
	dr_log_end(&log);
	if (!err)
		return 0;
	fix_of_devx(env, device, fix, sizeof(fix));
	dr_add(r, scope, "devx", DR_FAIL, fix, "%s (%s)",
	       *log.text ? log.text : "no firmware command works", doca_error_get_descr(err));
	return -1;
}

int dr_device_open(struct dr_device *d, const struct dr_env *env, struct dr_report *r,
		   const char *scope, const char *name)
{
	struct ibv_device **list, *device;
	struct dr_log log;
	int rc = -1;

	*d = (struct dr_device){ 0 };
	dr_log_begin(&log); /* libibverbs prints warnings */
	list = ibv_get_device_list(NULL);
	dr_log_end(&log);
	device = find(list, name);
	if (!device)
		dr_add(r, scope, "open", DR_FAIL,
		       "apt install ibverbs-providers; modprobe ib_uverbs",
		       "libibverbs does not list the device: it lacks the mlx5 provider, or the "
		       "kernel module ib_uverbs is not loaded");
	else
		rc = open_steps(d, env, r, scope, device);
	if (list)
		ibv_free_device_list(list);
	if (rc)
		dr_device_close(d);
	return rc;
}

/* A device that cannot be closed is in use by an object that was not destroyed. Its context must
 * stay then. */
void dr_device_close(struct dr_device *d)
{
	if (d->dev && doca_verbs_dev_close(d->dev))
		return;
	if (d->pd)
		ibv_dealloc_pd(d->pd);
	if (d->ctx)
		ibv_close_device(d->ctx);
	*d = (struct dr_device){ 0 };
}

/* ---- UARs and capabilities ---- */

static bool try_uar(const struct dr_device *d, enum doca_verbs_uar_allocation_type type, char *why,
		    size_t size)
{
	doca_verbs_uar_t *uar;
	struct dr_log log;
	doca_error_t err;

	dr_log_begin(&log);
	err = doca_verbs_uar_create(d->dev, type, &uar);
	dr_log_end(&log);
	if (!err)
		(void)doca_verbs_uar_destroy(uar);
	snprintf(why, size, "%s", *log.text ? log.text : doca_error_get_descr(err));
	return !err;
}

static void check_uars(const struct dr_device *d, struct dr_report *r, const char *scope)
{
	static const struct {
		enum doca_verbs_uar_allocation_type type;
		const char *check, *text;
	} kinds[] = {
		{ DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE_DEDICATED, "uar-nc-dedicated",
		  "a dedicated non-cached UAR" },
		{ DOCA_VERBS_UAR_ALLOCATION_TYPE_NONCACHE, "uar-nc", "a non-cached UAR" },
		{ DOCA_VERBS_UAR_ALLOCATION_TYPE_BLUEFLAME, "uar-blueflame",
		  "a BlueFlame UAR, which GPU_SM_BF needs" },
	};
	char why[512];
	int found = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		bool ok = try_uar(d, kinds[i].type, why, sizeof(why));

		found += ok;
		if (ok)
			dr_add(r, scope, kinds[i].check, DR_OK, NULL, "can create %s",
			       kinds[i].text);
		else
			dr_add(r, scope, kinds[i].check, DR_NOTE, NULL, "cannot create %s: %s",
			       kinds[i].text, why);
	}
	if (!found)
		dr_add(r, scope, "uar", DR_FAIL,
		       "update the kernel or the driver (MLNX_OFED, DOCA)",
		       "no kind of UAR can be created");
}

static void check_copy_engine(const struct doca_verbs_device_attr *attr, struct dr_report *r,
			      const char *scope)
{
	uint64_t max;

	if (gdk_verbs_device_attr_get_copy_engine(attr, &max))
		dr_add(r, scope, "copy-engine", DR_NOTE, NULL,
		       "no copy engine (BlueField has one, other NICs may); doca_dma copies by "
		       "RDMA writes");
	else
		dr_add(r, scope, "copy-engine", DR_OK, NULL,
		       "copies up to %llu bytes a request (doca_dma)", (unsigned long long)max);
}

static void check_capabilities(const struct dr_device *d, struct dr_report *r, const char *scope)
{
	struct doca_verbs_device_attr *attr;
	struct dr_log log;
	doca_error_t err;

	dr_log_begin(&log);
	err = doca_verbs_query_device(d->ctx, &attr);
	dr_log_end(&log);
	if (err) {
		dr_add(r, scope, "capabilities", DR_FAIL, NULL, "cannot be queried: %s", log.text);
		return;
	}
	if (doca_verbs_device_attr_get_send_dbr_mode_no_dbr_ext(attr))
		dr_add(r, scope, "no-dbr", DR_OK, NULL,
		       "supports queue pairs without DBREC (handler GPU_SM_NO_DBR)");
	else
		dr_add(r, scope, "no-dbr", DR_NOTE, NULL,
		       "no queue pairs without DBREC (ConnectX-8 or newer has them); "
		       "GPU_SM_DB takes their place");
	check_copy_engine(attr, r, scope);
	if (doca_verbs_device_attr_get_is_qp_type_supported(attr, DOCA_VERBS_QP_TYPE_RC))
		dr_add(r, scope, "rc", DR_FAIL, NULL, "no RC queue pairs");
	(void)doca_verbs_device_attr_free(attr);
}

/* ---- a queue pair in host memory ---- */

static void check_bond(doca_verbs_qp_t *qp, struct dr_report *r, const char *scope)
{
	struct gdk_qp_lag lag;
	struct dr_log log;
	doca_error_t err;

	dr_log_begin(&log);
	err = gdk_verbs_qp_get_lag(qp, &lag);
	dr_log_end(&log);
	if (err)
		dr_add(r, scope, "bond", DR_UNKNOWN, NULL, "cannot be queried: %s", log.text);
	else if (lag.active)
		dr_add(r, scope, "bond", DR_NOTE, NULL, "%u ports, distributes by %s", lag.ports,
		       lag.by_queue ? "queue: each queue pair gets the next port"
				    : "packet headers");
}

static void check_queue_pair(const struct dr_device *d, struct dr_report *r, const char *scope)
{
	struct doca_gpu_verbs_qp_init_attr_hl attr = { .net_dev = d->dev,
						       .ibpd = d->pd,
						       .sq_nwqe = 64,
						       .nic_handler = H(CPU_PROXY) };
	struct doca_gpu_verbs_qp_hl *qp = NULL;
	struct dr_log log;
	doca_error_t err;

	dr_log_begin(&log);
	err = doca_gpu_create(DR_HOST_GPU, &attr.gpu_dev);
	if (!err)
		err = doca_gpu_verbs_create_qp_hl(&attr, &qp);
	dr_log_end(&log);
	if (err)
		dr_add(r, scope, "queue-pair", DR_FAIL,
		       strstr(log.text, "umem") ? "Linux 5.11 or newer; ulimit -l unlimited"
						: "update the firmware and the driver",
		       "cannot create a queue pair in host memory: %s (%s)", log.text,
		       doca_error_get_descr(err));
	else
		dr_add(r, scope, "queue-pair", DR_OK, NULL,
		       "can create a queue pair in host memory");
	if (qp) {
		check_bond(qp->qp, r, scope);
		(void)doca_gpu_verbs_destroy_qp_hl(qp);
	}
	if (attr.gpu_dev)
		(void)doca_gpu_destroy(attr.gpu_dev);
}

/* ---- ports ---- */

static void check_port(const struct dr_env *env, struct dr_report *r, struct ibv_context *ctx,
		       const char *name, int number)
{
	char scope[DR_NAME_LEN + 16];
	struct ibv_port_attr port;
	int rc = ibv_query_port(ctx, (uint8_t)number, &port);

	snprintf(scope, sizeof(scope), "%s port %d", name, number);
	if (rc) {
		dr_add(r, scope, "query", DR_FAIL, NULL, "ibv_query_port fails: %s", strerror(rc));
		return;
	}
	dr_report_mtu(env, r, name, number, 128 << port.active_mtu, 128 << port.max_mtu);
	if (port.link_layer == IBV_LINK_LAYER_INFINIBAND && port.flags & IBV_QPF_GRH_REQUIRED)
		dr_add(r, scope, "grh", DR_NOTE, NULL,
		       "the port requires a GRH: use an address of type IB_GRH");
}

void dr_probe_device(const struct dr_env *env, struct dr_report *r, const void *name)
{
	struct ibv_device_attr attr;
	struct dr_device d;

	if (dr_device_open(&d, env, r, name, name))
		return;
	dr_add(r, name, "devx", DR_OK, NULL, "the device opens with DEVX; firmware commands work");
	check_uars(&d, r, name);
	check_capabilities(&d, r, name);
	check_queue_pair(&d, r, name);
	if (!ibv_query_device(d.ctx, &attr))
		for (int i = 1; i <= attr.phys_port_cnt; i++)
			if (!env->port || env->port == i)
				check_port(env, r, d.ctx, name, i);
	dr_device_close(&d);
}
