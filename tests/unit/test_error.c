/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Names and descriptions of error codes, and the checks that compare the library's
 * version with the versions for which device code and host code were compiled.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "host/doca_gpunetio.h"
#include "host/gdaki.h"

Test(error, name_is_that_of_the_enumerator)
{
	cr_expect_str_eq(doca_error_get_name(DOCA_SUCCESS), "DOCA_SUCCESS");
	cr_expect_str_eq(doca_error_get_name(DOCA_ERROR_DRIVER), "DOCA_ERROR_DRIVER");
	cr_expect_str_eq(doca_error_get_name(DOCA_ERROR_DEVICE_FATAL_ERROR),
			 "DOCA_ERROR_DEVICE_FATAL_ERROR");
}

Test(error, every_value_has_its_own_text)
{
	int i, j;

	for (i = 0; i <= DOCA_ERROR_DEVICE_FATAL_ERROR; i++) {
		cr_assert(doca_error_get_name((doca_error_t)i));
		cr_assert(*doca_error_get_descr((doca_error_t)i));
		for (j = 0; j < i; j++) {
			cr_expect_str_neq(doca_error_get_name((doca_error_t)i),
					  doca_error_get_name((doca_error_t)j));
			cr_expect_str_neq(doca_error_get_descr((doca_error_t)i),
					  doca_error_get_descr((doca_error_t)j));
		}
	}
}

Test(error, unknown_values_are_named_unknown)
{
	cr_expect_str_eq(doca_error_get_name((doca_error_t)32), "DOCA_ERROR_UNKNOWN");
	cr_expect_str_eq(doca_error_get_name((doca_error_t)-1), "DOCA_ERROR_UNKNOWN");
	cr_expect_str_eq(doca_error_get_descr((doca_error_t)-1),
			 doca_error_get_descr(DOCA_ERROR_UNKNOWN));
}

Test(error, version_is_that_of_the_headers)
{
	uint32_t version = 0;

	cr_expect_eq(doca_gpu_verbs_get_library_version(&version), DOCA_SUCCESS);
	cr_expect_eq(version, 0x030000);
	cr_expect_eq(doca_gpu_verbs_get_library_version(NULL), DOCA_ERROR_INVALID_VALUE);
}

Test(error, gdaki_has_a_version_of_its_own)
{
	cr_expect_str_eq(gdk_version(), GDK_VERSION);
}

Test(error, device_code_since_2_0_is_compatible)
{
	cr_expect_eq(doca_gpu_verbs_check_device_code_compatibility(0x020000), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_verbs_check_device_code_compatibility(0x030000), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_verbs_check_device_code_compatibility(0x01ffff),
		     DOCA_ERROR_NOT_SUPPORTED);
	cr_expect_eq(doca_gpu_verbs_check_device_code_compatibility(0x030001),
		     DOCA_ERROR_NOT_SUPPORTED);
}

Test(error, host_code_since_0_2_is_compatible)
{
	cr_expect_eq(doca_gpu_verbs_check_host_code_compatibility(0x000200), DOCA_SUCCESS);
	cr_expect_eq(doca_gpu_verbs_check_host_code_compatibility(0x0001ff),
		     DOCA_ERROR_NOT_SUPPORTED);
	cr_expect_eq(doca_gpu_verbs_check_host_code_compatibility(0x030100),
		     DOCA_ERROR_NOT_SUPPORTED);
}
