/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Measures the cost of single instructions of the data path for one thread, in ns: the
 * mean over many consecutive executions. The result is the latency if each instruction
 * depends on the previous one (fences, loads, atomics whose result is used), and the
 * inverse of the throughput otherwise (stores, reductions).
 */
#ifndef POST_MICRO_CUH
#define POST_MICRO_CUH

#include "post_time.cuh"

#define MICRO_REPS 2000
#define MICRO_RUNS 5

enum micro_kind {
	MICRO_STORES,
	MICRO_FENCE_REL_CTA,
	MICRO_FENCE_REL_GPU,
	MICRO_FENCE_AR_GPU,
	MICRO_FENCE_SC_GPU,
	MICRO_FENCE_REL_SYS,
	MICRO_FENCE_AR_SYS,
	MICRO_MMIO,
	MICRO_MMIO_AFTER_FENCE,
	MICRO_ATOM_CTA,
	MICRO_ATOM_GPU,
	MICRO_ATOM_ACQ_REL_GPU,
	MICRO_ATOM_SYS,
	MICRO_RED_GPU,
	MICRO_ATOM_HOST,
	MICRO_LD_GPU,
	MICRO_LD_SYS,
	MICRO_LD_HOST,
	MICRO_LD_ACQ_GPU,
	MICRO_LD_FENCE_ACQ_GPU,
	MICRO_LD_FENCE_ACQ_SYS,
	MICRO_ST_REL_GPU,
	MICRO_IDLE_FENCE_REL_GPU,
	MICRO_IDLE_FENCE_REL_SYS,
	MICRO_BULK_HOST,
	MICRO_KINDS
};

static const char *const micro_name[MICRO_KINDS] = {
	"three 16-byte stores to GPU memory (WQE)",
	"WQE + fence.release.cta",
	"WQE + fence.release.gpu",
	"WQE + fence.acq_rel.gpu",
	"WQE + fence.sc.gpu",
	"WQE + fence.release.sys",
	"WQE + fence.acq_rel.sys",
	"st.mmio.relaxed.sys to pinned host memory",
	"st.mmio to pinned host memory + fence.release.gpu",
	"atom.relaxed.cta.add.u64, GPU memory, returned",
	"atom.relaxed.gpu.add.u64, GPU memory, returned",
	"atom.acq_rel.gpu.add.u64, GPU memory, returned",
	"atom.relaxed.sys.add.u64, GPU memory, returned",
	"red.relaxed.gpu.max.u64, GPU memory",
	"atom.relaxed.sys.add.u64, pinned host memory, returned",
	"ld.relaxed.gpu.u64, GPU memory",
	"ld.relaxed.sys.u64, GPU memory",
	"ld.relaxed.sys.u64, pinned host memory",
	"ld.acquire.gpu.u64, GPU memory",
	"ld.relaxed.gpu.u64, GPU memory + fence.acquire.gpu",
	"ld.relaxed.sys.u64, GPU memory + fence.acquire.sys",
	"WQE + st.release.gpu.u64",
	"fence.release.gpu, nothing stored before",
	"fence.release.sys, nothing stored before",
	"64-byte bulk copy to pinned host memory, waited for",
};

__device__ static __forceinline__ void micro_wqe(uint8_t *slot, uint64_t v)
{
	for (int i = 0; i < 3; i++)
		asm volatile("st.weak.cs.v2.b64 [%0], {%1, %1};" ::"l"(slot + 16 * i), "l"(v)
			     : "memory");
}

/* The instructions with which one thread writes a WQE through BlueFlame. */
__device__ static __forceinline__ void micro_bulk(uint64_t *dst, const uint64_t *src)
{
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
	asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 64;" ::"l"(dst),
		     "r"((uint32_t)__cvta_generic_to_shared(src))
		     : "memory");
	asm volatile("cp.async.bulk.commit_group;" ::: "memory");
	asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

#define MICRO_FENCE(kind, insn) \
	if (K == kind) { \
		micro_wqe(ring + (i & 1023) * 64, x); \
		asm volatile(insn ";" ::: "memory"); \
	}
/* The address of the next access depends on the result of this one. The result is always
 * even, so that the address stays the same, but the next access must wait for it. */
#define MICRO_READ(kind, insn, operand) \
	if (K == kind) { \
		asm volatile(insn : "=l"(x) : "l"(operand + (x & 1)) : "memory"); \
	}

template <int K> __global__ void micro(uint8_t *ring, uint64_t *word, uint64_t *host, uint64_t *ns)
{
	__shared__ __align__(16) uint64_t shared[8];
	uint64_t x = 0;

	for (int i = 0; i < 8; i++)
		shared[i] = 0;
	const uint64_t start = post_now();

	for (uint32_t i = 0; i < MICRO_REPS; i++) {
		if (K == MICRO_STORES)
			micro_wqe(ring + (i & 1023) * 64, x);
		MICRO_FENCE(MICRO_FENCE_REL_CTA, "fence.release.cta")
		MICRO_FENCE(MICRO_FENCE_REL_GPU, "fence.release.gpu")
		MICRO_FENCE(MICRO_FENCE_AR_GPU, "fence.acq_rel.gpu")
		MICRO_FENCE(MICRO_FENCE_SC_GPU, "fence.sc.gpu")
		MICRO_FENCE(MICRO_FENCE_REL_SYS, "fence.release.sys")
		MICRO_FENCE(MICRO_FENCE_AR_SYS, "fence.acq_rel.sys")
		if (K == MICRO_MMIO || K == MICRO_MMIO_AFTER_FENCE)
			asm volatile("st.mmio.relaxed.sys.global.b64 [%0], %1;" ::"l"(host),
				     "l"((uint64_t)i)
				     : "memory");
		if (K == MICRO_MMIO_AFTER_FENCE)
			asm volatile("fence.release.gpu;" ::: "memory");
		MICRO_READ(MICRO_ATOM_CTA, "atom.relaxed.cta.add.u64 %0, [%1], 2;", word)
		MICRO_READ(MICRO_ATOM_GPU, "atom.relaxed.gpu.add.u64 %0, [%1], 2;", word)
		MICRO_READ(MICRO_ATOM_ACQ_REL_GPU, "atom.acq_rel.gpu.add.u64 %0, [%1], 2;", word)
		MICRO_READ(MICRO_ATOM_SYS, "atom.relaxed.sys.add.u64 %0, [%1], 2;", word)
		if (K == MICRO_RED_GPU)
			asm volatile("red.relaxed.gpu.max.u64 [%0], %1;" ::"l"(word),
				     "l"((uint64_t)i)
				     : "memory");
		MICRO_READ(MICRO_ATOM_HOST, "atom.relaxed.sys.add.u64 %0, [%1], 2;", host)
		MICRO_READ(MICRO_LD_GPU, "ld.relaxed.gpu.u64 %0, [%1];", word)
		MICRO_READ(MICRO_LD_SYS, "ld.relaxed.sys.u64 %0, [%1];", word)
		MICRO_READ(MICRO_LD_ACQ_GPU, "ld.acquire.gpu.u64 %0, [%1];", word)
		MICRO_READ(MICRO_LD_FENCE_ACQ_GPU,
			   "ld.relaxed.gpu.u64 %0, [%1]; fence.acquire.gpu;", word)
		MICRO_READ(MICRO_LD_FENCE_ACQ_SYS,
			   "ld.relaxed.sys.u64 %0, [%1]; fence.acquire.sys;", word)
		if (K == MICRO_ST_REL_GPU) {
			micro_wqe(ring + (i & 1023) * 64, x);
			asm volatile("st.release.gpu.u64 [%0], %1;" ::"l"(word), "l"(x) : "memory");
		}
		if (K == MICRO_IDLE_FENCE_REL_GPU)
			asm volatile("fence.release.gpu;" ::: "memory");
		if (K == MICRO_IDLE_FENCE_REL_SYS)
			asm volatile("fence.release.sys;" ::: "memory");
		if (K == MICRO_BULK_HOST)
			micro_bulk(host, shared);
		MICRO_READ(MICRO_LD_HOST, "ld.relaxed.sys.u64 %0, [%1];", host)
	}
	*ns = post_now() - start;
	word[1] = x;
}

template <int K> static void micro_one(uint8_t *ring, uint64_t *word, uint64_t *host, uint64_t *ns)
{
	double best = 1e30, worst = 0;

	for (int i = 0; i <= MICRO_RUNS; i++) {
		uint64_t t = POST_POISON;

		CK(cudaMemcpy(ns, &t, sizeof(t), cudaMemcpyHostToDevice));
		CK(cudaMemset(word, 0, 64));
		memset(host, 0, 64);
		micro<K><<<1, 1>>>(ring, word, host, ns);
		CK(cudaGetLastError());
		CK(cudaMemcpy(&t, ns, sizeof(t), cudaMemcpyDeviceToHost));
		if (t == POST_POISON) {
			fprintf(stderr, "micro: the kernel stored no result\n");
			exit(1);
		}
		if (i == 0)
			continue;
		best = (double)t / MICRO_REPS < best ? (double)t / MICRO_REPS : best;
		worst = (double)t / MICRO_REPS > worst ? (double)t / MICRO_REPS : worst;
	}
	printf("micro\t%s\t%.1f\t%.1f\n", micro_name[K], best, worst);
}

template <int K> static void micro_all(uint8_t *ring, uint64_t *word, uint64_t *host, uint64_t *ns)
{
	if constexpr (K < MICRO_KINDS) {
		micro_one<K>(ring, word, host, ns);
		micro_all<K + 1>(ring, word, host, ns);
	}
}

static int micro_run(void)
{
	uint64_t *word, *host, *ns;
	uint8_t *ring;

	CK(cudaMalloc(&ring, 1024 * 64));
	CK(cudaMalloc(&word, 64));
	CK(cudaMalloc(&ns, sizeof(*ns)));
	CK(cudaHostAlloc(&host, 4096, cudaHostAllocMapped));
	micro_all<0>(ring, word, host, ns);
	CK(cudaFree(ring));
	CK(cudaFree(word));
	CK(cudaFree(ns));
	CK(cudaFreeHost(host));
	return 0;
}

#endif
