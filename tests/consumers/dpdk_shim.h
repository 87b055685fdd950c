/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The parts of DPDK that mlx5_devx_cmds.c and its headers need, so that this one file
 * compiles alone. Replaces each header that they include with <>, mlx5_glue.h (whose
 * functions receive the command boxes) and, through their include guards,
 * mlx5_common.h and mlx5_common_log.h.
 */
#ifndef DPDK_SHIM_H
#define DPDK_SHIM_H

#define RTE_PMD_MLX5_COMMON_H_
#define RTE_PMD_MLX5_COMMON_LOG_H_

#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define __rte_internal
#define __rte_unused	    __attribute__((unused))
#define __rte_always_inline inline __attribute__((always_inline))
#define __rte_packed_begin
#define __rte_packed_end    __attribute__((packed))
#define __rte_aligned(n)    __attribute__((aligned(n)))
#define __rte_cache_aligned __rte_aligned(64)
#define alignas _Alignas

#define RTE_EXPORT_INTERNAL_SYMBOL(name)
#define RTE_CACHE_LINE_SIZE 64
#define RTE_BIT32(n)	    (1u << (n))
#define RTE_BIT64(n)	    (1ull << (n))
#define RTE_ALIGN(n, to)    (((n) + (to)-1) & ~((to)-1))
#define RTE_DIM(a)	    (sizeof(a) / sizeof((a)[0]))
#define SOCKET_ID_ANY	    (-1)
#define MLX5_ASSERT(cond)   ((void)0)
#define DRV_LOG(...)	    ((void)0)
#define rte_errno	    errno
#define rte_log2_u32(n)	    ((uint32_t)__builtin_ctz(n)) /* n is a power of two */
#define rte_mem_page_size() 4096u
#define rte_cpu_to_be_16    htobe16
#define rte_cpu_to_be_32    htobe32
#define rte_cpu_to_be_64    htobe64
#define rte_be_to_cpu_16    be16toh
#define rte_be_to_cpu_32    be32toh
#define rte_be_to_cpu_64    be64toh

typedef uint16_t rte_be16_t;
typedef uint32_t rte_be32_t;
typedef uint64_t rte_be64_t;
typedef uint32_t rte_v128u32_t __attribute__((vector_size(16)));

struct mlx5_devx_obj {
	void *obj;
	int id;
};

struct mlx5_klm {
	uint32_t byte_count, mkey;
	uint64_t address;
};

struct mlx5_glue {
	void *(*devx_obj_create)(void *ctx, const void *in, size_t inlen, void *out, size_t outlen);
	int (*devx_obj_modify)(void *obj, const void *in, size_t inlen, void *out, size_t outlen);
	int (*devx_obj_query)(void *obj, const void *in, size_t inlen, void *out, size_t outlen);
	int (*devx_obj_query_async)(void *obj, const void *in, size_t inlen, size_t outlen,
				    uint64_t id, void *comp);
	int (*devx_obj_destroy)(void *obj);
	int (*devx_wq_query)(void *wq, const void *in, size_t inlen, void *out, size_t outlen);
	int (*devx_qp_query)(void *qp, const void *in, size_t inlen, void *out, size_t outlen);
	int (*devx_general_cmd)(void *ctx, const void *in, size_t inlen, void *out, size_t outlen);
};
extern const struct mlx5_glue *mlx5_glue;

#endif
