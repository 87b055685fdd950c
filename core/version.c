/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Version functions of the public API: they return the version of gdaki and the API version
 * of this library, and check whether host or device code compiled for another API version can
 * use it. The numbers are in gdk_version.h (gdaki) and doca_gpunetio_verbs_def.h (API).
 */
#include "host/doca_gpunetio.h"
#include "core/log/log.h"
#include "host/gdk_version.h"

const char *gdk_version(void)
{
	return GDK_VERSION;
}

doca_error_t doca_gpu_verbs_get_library_version(uint32_t *version)
{
	GDK_CHECK_PTR(version);
	*version = DOCA_GPUNETIO_VERSION;
	return DOCA_SUCCESS;
}

/* Checks the argument name of the public function func. */
static doca_error_t check(const char *func, const char *name, uint32_t version, uint32_t oldest)
{
	if (version >= oldest && version <= DOCA_GPUNETIO_VERSION)
		return DOCA_SUCCESS;
	gdk_log(GDK_LOG_ERR, __FILE__, __LINE__, func,
		"%s 0x%x (%u.%u.%u) is not supported (expected %u.%u.%u to %u.%u.%u): compile it "
		"with the headers of this library",
		name, version, version >> 16, version >> 8 & 0xff, version & 0xff, oldest >> 16,
		oldest >> 8 & 0xff, oldest & 0xff, DOCA_GPUNETIO_VERSION_MAJOR,
		DOCA_GPUNETIO_VERSION_MINOR, DOCA_GPUNETIO_VERSION_PATCH);
	return DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t doca_gpu_verbs_check_device_code_compatibility(uint32_t device_code_version)
{
	return check(__func__, "device_code_version", device_code_version,
		     DOCA_GPUNETIO_MIN_COMPAT_DEVICE_CODE_VERSION);
}

doca_error_t doca_gpu_verbs_check_host_code_compatibility(uint32_t host_code_version)
{
	return check(__func__, "host_code_version", host_code_version,
		     DOCA_GPUNETIO_MIN_COMPAT_HOST_CODE_VERSION);
}
