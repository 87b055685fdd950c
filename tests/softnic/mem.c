/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The NIC's access to memory of its process, and the rules of memory keys. Host
 * memory is copied directly (guard.c) or by system calls that report an unmapped
 * address instead of faulting; GPU memory is accessed through mem_gpu.c. An aligned
 * word of 4 or 8 bytes is stored by one instruction if possible, because a thread may
 * poll it. process_vm_readv() cannot copy mappings of a device (pinned memory of
 * CUDA); these are read and written through a memfd as a staging buffer.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "eng.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#define STAGE_SIZE 65536u

/* ---- host memory ---- */

static __thread int stage_fd = -1;
static __thread uint8_t *stage;

static int stage_open(void)
{
	if (stage)
		return 0;
	stage_fd = syscall(SYS_memfd_create, "softnic-stage", 1u /* close on exec */);
	if (stage_fd < 0 || ftruncate(stage_fd, STAGE_SIZE))
		return -EFAULT;
	stage = mmap(NULL, STAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, stage_fd, 0);
	if (stage == MAP_FAILED)
		stage = NULL;
	return stage ? 0 : -EFAULT;
}

static int staged_copy(uint64_t va, void *buf, size_t len, bool write)
{
	long want, n;

	if (stage_open())
		return -EFAULT;
	for (; len; len -= n, va += n, buf = (uint8_t *)buf + n) {
		want = len < STAGE_SIZE ? len : STAGE_SIZE;
		if (write) {
			memcpy(stage, buf, want);
			n = syscall(SYS_pread64, stage_fd, va, want, 0L);
		} else {
			n = syscall(SYS_pwrite64, stage_fd, va, want, 0L);
		}
		if (n <= 0)
			return -EFAULT;
		if (!write)
			memcpy(buf, stage, n);
	}
	return 0;
}

/* Uses raw system calls: sanitizers would check the libc wrappers as accesses of the program. */
static int host_copy(uint64_t va, void *buf, size_t len, bool write)
{
	struct iovec local = { buf, len }, remote = { (void *)(uintptr_t)va, len };
	long n;

	if (!len)
		return 0;
	if (sn_guard_ready())
		return sn_guard_copy(va, buf, len, write);
	n = syscall(write ? SYS_process_vm_writev : SYS_process_vm_readv, (long)getpid(), &local,
		    1L, &remote, 1L, 0L);
	if (n == (long)len)
		return 0;
	if (n < 0)
		n = 0;
	return staged_copy(va + n, (uint8_t *)buf + n, len - n, write);
}

static bool word_store(uint64_t va, const void *src, size_t len)
{
	uint64_t v8;
	uint32_t v4;

	if ((len != 4 && len != 8) || va % len ||
	    syscall(SYS_madvise, va & ~4095ull, 4096L, (long)MADV_POPULATE_WRITE))
		return false;
	if (len == 8) {
		memcpy(&v8, src, 8);
		__atomic_store_n((uint64_t *)(uintptr_t)va, v8, __ATOMIC_RELEASE);
	} else {
		memcpy(&v4, src, 4);
		__atomic_store_n((uint32_t *)(uintptr_t)va, v4, __ATOMIC_RELEASE);
	}
	return true;
}

bool sn_mem_readable(uint64_t va, uint64_t len)
{
	uint64_t page = 4096, end = va + len;
	uint8_t byte;

	if (!len)
		return true;
	if (end < va || host_copy(va, &byte, 1, false))
		return false;
	for (va = (va | (page - 1)) + 1; va < end; va += page)
		if (host_copy(va, &byte, 1, false))
			return false;
	return true;
}

bool sn_mem_writable(uint64_t va, uint64_t len)
{
	unsigned long long from, to;
	bool writable = true;
	char line[512], w;
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && writable && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx-%llx %*c%c", &from, &to, &w) == 3)
			writable = w == 'w' || to <= va || from >= va + len;
	if (f)
		fclose(f);
	return writable;
}

int sn_mem_read(bool gpu, uint64_t va, void *dst, size_t len)
{
	return gpu ? sn_gpu_read(va, dst, len) : host_copy(va, dst, len, false);
}

int sn_mem_write(bool gpu, uint64_t va, const void *src, size_t len)
{
	if (gpu)
		return sn_gpu_write(va, src, len, 0);
	/* Completes the GPU writes before this write: a program that sees this write must also
	 * see those. */
	sn_mem_settle();
	if (!sn_guard_ready() && word_store(va, src, len))
		return 0;
	return host_copy(va, (void *)(uintptr_t)src, len, true);
}

/* ---- keys ---- */

static struct sn_mr *mr_of(struct sn_dev *dev, uint32_t key, uint32_t pdn, uint64_t addr,
			   uint64_t len, uint32_t access)
{
	struct sn_mr *mr = sn_find_mr(dev, key);

	if (!mr || mr->pdn != pdn || (mr->access & access) != access)
		return NULL;
	if (addr < mr->iova || len > mr->len || addr - mr->iova > mr->len - len)
		return NULL;
	return mr;
}

/*
 * In an indirect key, the offset from start_addr alone selects the piece and the place in it,
 * whatever the low bits of both addresses are. UCX (ib_mlx5dv_md.c) relies on this when it
 * shifts a key: it adds the shift to start_addr, does not change the pieces, and expects the
 * shifted address to reach the same memory as before. The access rights of both keys apply. An
 * atomic's word is always within one piece, because CREATE_MKEY requires an aligned start for
 * keys that allow atomics. The word must be aligned in the target region, too.
 */
static struct sn_mr *ksm_part(struct sn_dev *dev, const struct sn_mr *key, uint64_t off,
			      uint64_t len, uint32_t access, uint64_t *va, uint64_t *part)
{
	const struct sn_ksm *k = key->ksm;
	uint64_t i = off >> k->log_size, in = off & ((1ull << k->log_size) - 1);
	uint64_t room = (1ull << k->log_size) - in, addr;
	struct sn_mr *mr;

	if (i >= k->n || (!access && !k->local_read))
		return NULL;
	*part = room < len ? room : len;
	addr = k->piece[i].addr + in;
	mr = mr_of(dev, k->piece[i].key, key->pdn, addr, *part, access);
	if (!mr || mr->ksm)
		return NULL;
	*va = mr->va + (addr - mr->iova);
	if (access & SN_REMOTE_ATOMIC && *va & (len - 1))
		return NULL;
	return mr;
}

/* Finds the memory of the range [addr, addr + len) of a key. Stores the address of its first byte
 * in *va, and in *part the number of contiguous bytes at *va: all len bytes of a region, or the
 * bytes up to the end of a piece of an indirect key. NULL: the access is refused. */
static struct sn_mr *mr_part(struct sn_dev *dev, uint32_t key, uint32_t pdn, uint64_t addr,
			     uint64_t len, uint32_t access, uint64_t *va, uint64_t *part)
{
	struct sn_mr *mr = mr_of(dev, key, pdn, addr, len, access);

	if (!mr)
		return NULL;
	if (mr->ksm)
		return ksm_part(dev, mr, addr - mr->iova, len, access, va, part);
	*va = mr->va + (addr - mr->iova);
	*part = len;
	return mr;
}

bool sn_mr_allows(struct sn_dev *dev, uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len,
		  uint32_t access)
{
	uint64_t va, part;

	for (; len; addr += part, len -= part)
		if (!mr_part(dev, key, pdn, addr, len, access, &va, &part))
			return false;
	return true;
}

static uint64_t planned; /* bytes that may be read ahead, see sn_mem_plan() */

void sn_mem_plan(uint64_t bytes)
{
	planned = bytes;
}

/* Reads ahead only within the region: beyond it memory may be unmapped. */
static int region_read(const struct sn_mr *mr, uint64_t va, void *dst, uint64_t len)
{
	uint64_t room = mr->va + mr->len - va;

	if (!mr->gpu || !planned)
		return sn_mem_read(mr->gpu, va, dst, len);
	return sn_gpu_read_ahead(va, dst, len, planned < room ? planned : room);
}

int sn_mr_read(struct sn_dev *dev, uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len,
	       uint32_t access, void *dst)
{
	uint64_t va, part;
	struct sn_mr *mr;

	for (; len; addr += part, len -= part, dst = (uint8_t *)dst + part) {
		mr = mr_part(dev, key, pdn, addr, len, access, &va, &part);
		if (!mr || region_read(mr, va, dst, part))
			return -EFAULT;
	}
	return 0;
}

int sn_mr_write(struct sn_dev *dev, uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len,
		uint32_t access, const void *src)
{
	uint64_t va, part;
	struct sn_mr *mr;

	for (; len; addr += part, len -= part, src = (const uint8_t *)src + part) {
		mr = mr_part(dev, key, pdn, addr, len, access, &va, &part);
		if (!mr || (mr->gpu ? sn_gpu_write(va, src, part, mr->va)
				    : sn_mem_write(false, va, src, part)))
			return -EFAULT;
	}
	return 0;
}

struct sn_mr *sn_mr_word(struct sn_dev *dev, uint32_t key, uint32_t pdn, uint64_t addr,
			 uint64_t size, uint64_t *va)
{
	uint64_t part;

	return mr_part(dev, key, pdn, addr, size, SN_REMOTE_ATOMIC, va, &part);
}

/* Copies bytes [off, off + len) of a gather or scatter list. */
static int sge_copy(struct sn_dev *dev, uint32_t pdn, const struct sn_sge *sge, unsigned n,
		    uint32_t off, uint8_t *buf, uint32_t len, bool write)
{
	const uint32_t access = write ? 1 : 0; /* IBV_ACCESS_LOCAL_WRITE */
	uint32_t part;

	for (; n && len; n--, sge++) {
		if (off >= sge->len) {
			off -= sge->len;
			continue;
		}
		part = sge->len - off < len ? sge->len - off : len;
		if (write ? sn_mr_write(dev, sge->lkey, pdn, sge->addr + off, part, access, buf)
			  : sn_mr_read(dev, sge->lkey, pdn, sge->addr + off, part, access, buf))
			return -EFAULT;
		buf += part;
		len -= part;
		off = 0;
	}
	return len ? -EFAULT : 0;
}

int sn_sge_read(struct sn_dev *dev, uint32_t pdn, const struct sn_sge *sge, unsigned n,
		uint32_t off, void *dst, uint32_t len)
{
	return sge_copy(dev, pdn, sge, n, off, dst, len, false);
}

int sn_sge_write(struct sn_dev *dev, uint32_t pdn, const struct sn_sge *sge, unsigned n,
		 uint32_t off, const void *src, uint32_t len)
{
	return sge_copy(dev, pdn, sge, n, off, (uint8_t *)(uintptr_t)src, len, true);
}
