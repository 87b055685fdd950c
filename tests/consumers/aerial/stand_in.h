/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * What Aerial's kernels and the queues of its front-haul driver need of its other parts, of
 * DPDK and of fmt. Included before everything else.
 */
#ifndef AERIAL_STAND_IN_H
#define AERIAL_STAND_IN_H

#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

/* Headers that the kernels include and need nothing of. */
#define AERIAL_FH_DPDK_HPP__
#define AERIAL_FH_GPU__
#define AERIAL_FH_METRICS_HPP__
#define AERIAL_FH_NIC_HPP__
#define AERIAL_FH_QUEUE_HPP__
#define AERIAL_FH_STATS_DUMP_HPP__
#define AERIAL_FH_UTILS_HPP__

struct rte_mbuf;
namespace aerial_fh
{
class FHStatsDump;
class Gpu;
class Txq;
} // namespace aerial_fh

#define MAX_DL_EAXCIDS 32 /* flows of a cell, as in slot_command.hpp */
namespace slot_command_api
{
struct prb_info_t;
}

/* Prints the text of a message without its values. */
template <typename... Values> void stand_in_log(const char *text, const Values &...)
{
	fprintf(stderr, "aerial: error: %s\n", text);
}
#define NVLOGI_FMT(...)		   ((void)0)
#define NVLOGC_FMT(...)		   ((void)0)
#define NVLOGD_FMT(...)		   ((void)0)
#define NVLOGE_FMT(tag, code, ...) stand_in_log(__VA_ARGS__)

#define memfoot_add_gpu_size(tag, bytes) ((void)0)

/* Times of kernels, which are not recorded. */
#define CUPHY_PTI_ACTIVITY_PREPREP 0
#define CUPHY_PTI_ACTIVITY_PREP	   1
#define CUPHY_PTI_ACTIVITY_TRIGGER 2
struct cuphy_pti_activity_stats_t {
};
#define cuphy_pti_get_record_activity(stats, activity) ((void)(stats))
#ifndef __CUDACC__
#define __device__
#endif
struct CuphyPtiRecordStartStopTimeScope {
	__device__ CuphyPtiRecordStartStopTimeScope(struct cuphy_pti_activity_stats_t &)
	{
	}
};
#ifndef __CUDACC__
#undef __device__
#endif

#endif
