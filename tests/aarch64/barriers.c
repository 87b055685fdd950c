/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Functions that consist of one ordered access or fence each. tests/aarch64.sh disassembles them
 * and compares their barriers and stores with the comment in front of each function: the
 * instructions of rdma-core's util/udma_barrier.h for AArch64, or stronger ones. The NIC is in the
 * outer shareable domain, or anywhere in the system ("dsb st"). "dmb ish" and stlr order accesses
 * for CPUs only.
 */
#include <stdint.h>

#include "device/gdk/platform.h"
#include "doorbell/mmio.h"

void fence_acq_sys(void);
void fence_rel_sys(void);
void fence_sc_sys(void);
void fence_acq_gpu(void);
void fence_rel_gpu(void);
void fence_sc_gpu(void);
void store_rel_sys(uint32_t *p, uint32_t v);
void store_rel_gpu(uint32_t *p, uint32_t v);
void store_async(uint32_t *p, uint32_t v);
void register_store(uint64_t *reg, uint64_t v);
void blueflame_store(uint64_t *reg, const uint64_t *wqe);
void proxy_rings(uint32_t *dbrec, uint64_t *reg, uint32_t pi);

/* expect: dmb oshld */
void fence_acq_sys(void)
{
	gdk_fence_acq(GDK_SCOPE_SYS);
}

/* expect: dmb osh */
void fence_rel_sys(void)
{
	gdk_fence_rel(GDK_SCOPE_SYS);
}

/* expect: dmb osh */
void fence_sc_sys(void)
{
	gdk_fence_sc(GDK_SCOPE_SYS);
}

/* expect: dmb ishld */
void fence_acq_gpu(void)
{
	gdk_fence_acq(GDK_SCOPE_GPU);
}

/* expect: dmb ish */
void fence_rel_gpu(void)
{
	gdk_fence_rel(GDK_SCOPE_GPU);
}

/* expect: dmb ish */
void fence_sc_gpu(void)
{
	gdk_fence_sc(GDK_SCOPE_GPU);
}

/* expect: dmb osh, stlr */
void store_rel_sys(uint32_t *p, uint32_t v)
{
	gdk_st32_rel(p, v, GDK_SCOPE_SYS);
}

/* expect: stlr */
void store_rel_gpu(uint32_t *p, uint32_t v)
{
	gdk_st32_rel(p, v, GDK_SCOPE_GPU);
}

/* expect: dmb osh, stlr */
void store_async(uint32_t *p, uint32_t v)
{
	gdk_st32_async(p, v);
}

/* expect: dsb st, stlr, dsb st */
void register_store(uint64_t *reg, uint64_t v)
{
	gdk_mmio_st64(reg, v);
}

/* expect: dsb st, str, dsb st */
void blueflame_store(uint64_t *reg, const uint64_t *wqe)
{
	gdk_bf_st64(reg, wqe);
}

/* expect: dmb osh, stlr, dsb st, str, dsb st */
void proxy_rings(uint32_t *dbrec, uint64_t *reg, uint32_t pi)
{
	gdk_mmio_write_dbrec(dbrec, pi);
	gdk_mmio_before_register();
	gdk_mmio_write8(reg, pi);
	gdk_mmio_flush();
}
