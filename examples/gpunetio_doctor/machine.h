/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Facts about the machine that several checks use. */
#ifndef DOCTOR_MACHINE_H
#define DOCTOR_MACHINE_H

#include <sys/types.h>

#include "files.h"

/* The first versions that have what is named. */
#define DMABUF_DRIVER	 515 /* NVIDIA driver, open kernel modules: export as dmabuf (CUDA 11.7) */
#define DMABUF_CUDA	 11070 /* as cuDriverGetVersion() reports 11.7 */
#define DMABUF_RDMA_CORE 34    /* ibv_reg_dmabuf_mr() */
#define PEERMEM_MODULE	 "nvidia_peermem"
#define OLD_PEERMEM	 "nv_peer_mem" /* its predecessor, a package of its own */

#define PCI_LEN 16 /* bytes of a PCI address, final 0 included */

int dr_kernel_version(const struct dr_env *env, char *release, size_t size, int *major, int *minor);

enum dr_driver_kind { DR_DRIVER_NONE, DR_DRIVER_OPEN, DR_DRIVER_CLOSED, DR_DRIVER_UNCLEAR };
struct dr_driver {
	enum dr_driver_kind kind;
	char version[32];
	int major; /* 0: not known */
};
void dr_find_driver(const struct dr_env *env, struct dr_driver *driver);

/* Returns the version of rdma-core from the file name of libibverbs (libibverbs.so.1.14.44.0: 44),
 * 0 if it was not found. file: the name that was found. */
int dr_rdma_core(const struct dr_env *env, char *file, size_t size);
/* Searches the usual folders for a library, and copies its path. */
bool dr_find_library(const struct dr_env *env, const char *name, char *path, size_t size);

/* True if the process has the capability (its number in linux/capability.h). */
bool dr_has_capability(const struct dr_env *env, unsigned int number);

/* ---- cuda.c ---- */
struct dr_cuda_gpu {
	char pci[PCI_LEN];
	unsigned long long memory; /* bytes */
	int integrated, dmabuf;	   /* -1: not known */
	int persistence;	   /* persistence mode, -1: not known */
};
struct dr_cuda {
	int version;	 /* as 12080 for 12.8; 0: not known */
	char error[160]; /* why the version is not known */
	int num;
	struct dr_cuda_gpu gpus[DR_NAMES_MAX];
};
/* Queries the CUDA driver, or reads the file cuda.txt of a recorded machine. */
const struct dr_cuda *dr_cuda(const struct dr_env *env);
/* NULL if CUDA does not list the GPU. */
const struct dr_cuda_gpu *dr_cuda_find(const struct dr_env *env, const char *pci);

/* ---- gpu.c ---- */
/* A GPU without memory of its own, such as GB10 of DGX Spark. */
bool dr_gpu_is_integrated(const struct dr_env *env, const char *pci);

/* ---- capture.c ---- */
/* Runs child(arg) in a process whose standard output is stored in text; standard error is
 * discarded. Returns its exit status, -ETIMEDOUT, or another negative errno. */
int dr_capture(int (*child)(const void *arg), const void *arg, unsigned int timeout_s, char *text,
	       size_t size);

#define DR_REAP_MS 2000 /* how long a killed process may take to end */

long long dr_now_ms(void);
/* Waits for a child until end_ms. Returns -1 if it has not ended then: a driver can block a process
 * in the kernel, and the caller leaves it behind. */
int dr_reap(pid_t child, long long end_ms, int *status);

#endif
