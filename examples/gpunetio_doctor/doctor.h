/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The parts of gpunetio_doctor:
 *   gpunetio_doctor.c  command line, order of the checks
 *   results.c          the results of the checks, as text
 *   json.c             the same as JSON
 *   verdict.c          which combinations of GPU, device and port work; the exit status
 *   files.c, record.c  read files below the root that the user selected; copy them for --root
 *   host.c, driver.c   checks of the system and of the NVIDIA driver
 *   gpu.c, topology.c, acs.c  checks of each GPU and of the path between GPU and NIC
 *   nicconf.c          checks of a NIC as a PCI function, and of its settings
 *   pci.c, machine.c, cuda.c  facts that these checks use
 *   capture.c          reads the output of a child process
 *   device_files.c, device.c  checks of each RDMA device: by files, by opening it
 *   port.c, loopback.c  checks of each port; a put from the port to itself
 *   pair.c             attempts with each GPU and device
 *   child.c            runs a check in a child process with a time limit
 */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

enum dr_level {
	DR_OK,	    /* works */
	DR_NOTE,    /* information; nothing is to be done */
	DR_WARN,    /* works, but slowly or not in all cases */
	DR_FAIL,    /* nothing that uses the thing named by the scope can work */
	DR_UNKNOWN, /* could not be determined; the text has the reason */
};

#define DR_NAME_LEN  64	    /* bytes of the name of a GPU or a device, final 0 included */
#define DR_NAMES_MAX 1024   /* names of a folder: devices of virtual functions, their files */
#define DR_HOST_GPU  "host" /* the name of the GPU that is CPU threads */

struct dr_names {
	int num;
	char name[DR_NAMES_MAX][DR_NAME_LEN];
};

/* What is checked. */
struct dr_env {
	const char *root;	 /* put before each path; "": this machine */
	const char *gpu;	 /* full PCI address in lower case, or "host"; NULL: not given */
	const char *device;	 /* RDMA device; NULL: not given */
	int port;		 /* 0: not given */
	int handler;		 /* value of -p; -1: not given */
	bool probe;		 /* devices are opened; false with --root */
	unsigned int timeout_s;	 /* limit of each check that calls a driver */
	bool gpu_unlisted;	 /* /sys does not have the selected GPU */
	struct dr_names gpus;	 /* PCI addresses, only the selected one; not "host" */
	struct dr_names devices; /* RDMA devices, only the selected one */
};

struct dr_report;

/*
 * Adds the result of a check. Scopes are "host", "gpu 0000:8a:00.0", "mlx5_0", "mlx5_0 port 1",
 * "gpu 0000:8a:00.0 + mlx5_0" and "gpu host + mlx5_0". A result of level DR_FAIL in one of these
 * scopes means that no combination of GPU, device and port that belongs to it works: DR_FAIL in
 * "host" means that nothing works, and in "gpu X" that no device works with this GPU.
 *
 * check: short, lower-case identifier that never changes, such as "nvidia-driver"
 * fix: a command or a sentence; NULL if nothing is to be done
 */
void dr_add(struct dr_report *r, const char *scope, const char *check, enum dr_level level,
	    const char *fix, const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/* ---- checks ---- */
void dr_check_host(const struct dr_env *env, struct dr_report *r);
void dr_check_gpu(const struct dr_env *env, struct dr_report *r);
void dr_check_nic(const struct dr_env *env, struct dr_report *r);
void dr_check_topology(const struct dr_env *env, struct dr_report *r);
void dr_check_pair(const struct dr_env *env, struct dr_report *r);

/* ---- files.c ---- */
/* All take a path such as "/sys/class/infiniband/%s" and add env->root. They return 0, or a
 * negative errno. */

/* Reads the first line of a file, without the newline and without white space at both ends. */
int dr_read(const struct dr_env *env, char *text, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Reads the names in a folder, sorted, without "." and "..". */
int dr_list(const struct dr_env *env, struct dr_names *names, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Find the PCI addresses of the GPUs and of the NICs of NVIDIA, and the RDMA devices. */
void dr_find_gpus(const struct dr_env *env, struct dr_names *gpus);
void dr_find_nics(const struct dr_env *env, struct dr_names *nics);
void dr_find_devices(const struct dr_env *env, struct dr_names *devices);

/* ---- child.c ---- */
typedef void dr_child_fn(const struct dr_env *env, struct dr_report *r, const void *arg);
/* Runs fn in a child process; its results get into r. If it blocks or crashes, the result of check
 * in scope is DR_FAIL. The child has no effect on other variables of this process. */
void dr_in_child(const struct dr_env *env, struct dr_report *r, const char *scope,
		 const char *check, dr_child_fn *fn, const void *arg);

struct dr_log {
	int file, stderr_copy;
	char text[512];
};
/* Between the two calls, what the library logs is collected instead of printed. */
void dr_log_begin(struct dr_log *log);
void dr_log_end(struct dr_log *log);

/* ---- results.c, json.c, verdict.c ---- */
struct dr_report *dr_report_new(const struct dr_env *env);
void dr_report_free(struct dr_report *r);
void dr_print_text(struct dr_report *r);
void dr_print_json(struct dr_report *r, int status);
/* Notes the handler that gdaki takes for a GPU and a device. text: why. */
void dr_add_handler(struct dr_report *r, const char *gpu, const char *device, const char *handler,
		    const char *text);
/* The check of this scope has failed; NULL: any check. */
bool dr_failed(const struct dr_report *r, const char *scope, const char *check);
/* CPU threads take the place of a GPU: the user selected them, or there is no GPU. */
bool dr_uses_host_gpu(const struct dr_env *env);
/* Returns the exit status. */
int dr_verdict(struct dr_report *r);

#endif
