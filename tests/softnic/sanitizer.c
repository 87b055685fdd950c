/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * Programs that are built with a sanitizer. The NIC must be as invisible to the sanitizer
 * as hardware is. A NIC that is itself built with a sanitizer (make SAN=) uses nothing of
 * this file.
 */
#include "eng.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifdef SANITIZED
void sn_hide_thread(bool hide)
{
	(void)hide;
}
#else
/* Defined by ThreadSanitizer's runtime; NULL in a program without it. */
void AnnotateIgnoreReadsBegin(const char *file, int line) __attribute__((weak));
void AnnotateIgnoreReadsEnd(const char *file, int line) __attribute__((weak));
void AnnotateIgnoreWritesBegin(const char *file, int line) __attribute__((weak));
void AnnotateIgnoreWritesEnd(const char *file, int line) __attribute__((weak));
const char *__asan_default_options(void);

/* Called by the runtime of AddressSanitizer. gcc's runtime is a shared library and refuses to
 * start if another library, here libsoftnic.so, comes before it. */
const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}

/* ThreadSanitizer sees each memcpy() of the NIC thread, but not the CQE that orders it before the
 * accesses of the program, and would report data races. */
void sn_hide_thread(bool hide)
{
	void (*reads)(const char *, int) = hide ? AnnotateIgnoreReadsBegin : AnnotateIgnoreReadsEnd;
	void (*writes)(const char *, int) = hide ? AnnotateIgnoreWritesBegin
						 : AnnotateIgnoreWritesEnd;

	if (reads)
		reads(__FILE__, __LINE__);
	if (writes)
		writes(__FILE__, __LINE__);
}
#endif
