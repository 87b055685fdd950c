/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * The DOCA SDK in place of this library: where DOCA_SDK_LIB_PATH names the folder
 * of an installed SDK, objects are the SDK's and calls go on to it.
 *
 * Every object here has the SDK's object as its member sdk, NULL where there is
 * none, and beside it what this library's own parts (export, services, high
 * level) need to know. A public function that the SDK has too begins with one of
 * the macros below. fn is a function or a
 * type: the SDK's signatures differ from those here in the types of pointers only,
 * where not, the type is written out.
 */
#ifndef GDK_SDK_H
#define GDK_SDK_H

#include "log.h"
#include "util.h"

/* Is it? Decided, and the libraries loaded, at the first call. */
bool gdk_sdk_in_use(void);
/* The same where the user asked for it, which then is worth a line in the log. */
bool gdk_sdk_asked(void);

/* The SDK's function of that name; NULL: it has none, which is logged. */
void *gdk_sdk_function(const char *name);
/* The same, not logged. */
void *gdk_sdk_find(const char *name);
/* Logs an error that the SDK returned, and returns it. */
doca_error_t gdk_sdk_result(const char *name, doca_error_t err);

/* Calls the SDK's function name, of the type of fn; a doca_error_t. */
#define GDK_SDK_CALL_AS(name, fn, ...) \
	({ \
		__typeof__(fn) *fn_ = gdk_sdk_function(name); \
		fn_ ? gdk_sdk_result(name, fn_(__VA_ARGS__)) : DOCA_ERROR_NOT_SUPPORTED; \
	})
#define GDK_SDK_CALL(fn, ...) GDK_SDK_CALL_AS(#fn, fn, __VA_ARGS__)

#define GDK_IS_SDK(obj) ((obj) && (obj)->sdk)

/* If obj is the SDK's, the call is its function's with the arguments that follow. */
#define GDK_SDK_AS(obj, name, fn, ...) \
	do { \
		if (GDK_IS_SDK(obj)) \
			return GDK_SDK_CALL_AS(name, fn, __VA_ARGS__); \
	} while (0)
#define GDK_SDK(obj, fn, ...) GDK_SDK_AS(obj, #fn, fn, __VA_ARGS__)

/* Likewise, but the caller goes on once the SDK has succeeded. */
#define GDK_SDK_FIRST_AS(obj, name, fn, ...) \
	do { \
		doca_error_t err_ = DOCA_SUCCESS; \
\
		if (GDK_IS_SDK(obj)) \
			err_ = GDK_SDK_CALL_AS(name, fn, __VA_ARGS__); \
		if (err_ != DOCA_SUCCESS) \
			return err_; \
	} while (0)
#define GDK_SDK_FIRST(obj, fn, ...) GDK_SDK_FIRST_AS(obj, #fn, fn, __VA_ARGS__)

/* Getters without an error: of an SDK that lacks one, what is known here is told. */
#define GDK_SDK_GET_AS(obj, name, fn, ...) \
	do { \
		__typeof__(fn) *fn_ = GDK_IS_SDK(obj) ? gdk_sdk_find(name) : NULL; \
\
		if (fn_) \
			return fn_(__VA_ARGS__); \
	} while (0)
#define GDK_SDK_GET(obj, fn, ...) GDK_SDK_GET_AS(obj, #fn, fn, __VA_ARGS__)

/* Getters that return the value in the SDK, and an error here. */
#define GDK_SDK_VALUE(obj, type, name, out) \
	do { \
		if (GDK_IS_SDK(obj)) { \
			type (*fn_)(const void *) = gdk_sdk_function(name); \
\
			if (!fn_) \
				return DOCA_ERROR_NOT_SUPPORTED; \
			*(out) = fn_((obj)->sdk); \
			return DOCA_SUCCESS; \
		} \
	} while (0)

/* Functions that return nothing in the SDK, and an error here; params in brackets. */
#define GDK_SDK_VOID(obj, name, params, ...) \
	do { \
		if (GDK_IS_SDK(obj)) { \
			void(*fn_) params = gdk_sdk_function(name); \
\
			if (!fn_) \
				return DOCA_ERROR_NOT_SUPPORTED; \
			fn_(__VA_ARGS__); \
			return DOCA_SUCCESS; \
		} \
	} while (0)

/* Says which library makes an object, where the user asked for the SDK. */
#define GDK_SDK_SAY(what, is_sdk) \
	do { \
		if (gdk_sdk_asked()) \
			gdk_info("Use DOCA %s %s", what, (is_sdk) ? "SDK" : "open"); \
	} while (0)

/* obj, allocated and zero, becomes the SDK's if that is in use; freed on failure. */
#define GDK_SDK_NEW(obj, what, fn, ...) \
	do { \
		doca_error_t err_ = DOCA_SUCCESS; \
\
		GDK_SDK_SAY(what, gdk_sdk_in_use()); \
		if (gdk_sdk_in_use()) \
			err_ = GDK_SDK_CALL(fn, __VA_ARGS__); \
		if (err_ != DOCA_SUCCESS) { \
			free(obj); \
			return err_; \
		} \
	} while (0)

/* What is made from parent is the SDK's where parent is: then create makes it. */
#define GDK_SDK_CHILD(parent, what, create) \
	do { \
		GDK_SDK_SAY(what, GDK_IS_SDK(parent)); \
		if (GDK_IS_SDK(parent)) \
			return create; \
	} while (0)

/* Objects of the SDK and of this library cannot meet in a call; NULL goes with both. */
#define GDK_CHECK_MIX(a, b) \
	do { \
		if ((a) && (b) && !(a)->sdk != !(b)->sdk) { \
			gdk_err("%s is of the DOCA SDK, %s is not: they cannot be mixed", \
				(a)->sdk ? #a : #b, (a)->sdk ? #b : #a); \
			return DOCA_ERROR_INVALID_VALUE; \
		} \
	} while (0)

#endif
