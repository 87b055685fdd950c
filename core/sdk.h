/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * SDK mode: if DOCA_SDK_LIB_PATH names the folder of an installed DOCA SDK, this library
 * creates its objects with the SDK and forwards calls to it.
 *
 * Each object has a member sdk: the SDK's object, or NULL. The other members hold what the
 * parts that the SDK does not replace need (export, services, high-level queue pairs). A
 * public function that the SDK also has begins with one of the macros below. Their argument
 * fn is a function or a function type. The SDK's functions differ from this library's in
 * pointer types only; where they differ more, the caller writes the type out.
 */
#ifndef GDK_SDK_H
#define GDK_SDK_H

#include <stdlib.h>

#include "core/log.h"
#include "core/util.h"

/* Returns whether SDK mode is on. The first call loads the SDK's libraries. */
bool gdk_sdk_in_use(void);
/* Returns whether the user set DOCA_SDK_LIB_PATH, even if the SDK could not be loaded. */
bool gdk_sdk_asked(void);

/* Returns the SDK's function of that name. Logs an error and returns NULL if there is none. */
void *gdk_sdk_function(const char *name);
/* As gdk_sdk_function, but does not log. */
void *gdk_sdk_find(const char *name);
/* Logs an error that the SDK returned, and returns it. */
doca_error_t gdk_sdk_result(const char *name, doca_error_t err);

/* Calls the SDK's function name, which has the type of fn. The value is a doca_error_t. */
#define GDK_SDK_CALL_AS(name, fn, ...) \
	({ \
		__typeof__(fn) *fn_ = gdk_sdk_function(name); \
		fn_ ? gdk_sdk_result(name, fn_(__VA_ARGS__)) : DOCA_ERROR_NOT_SUPPORTED; \
	})
#define GDK_SDK_CALL(fn, ...) GDK_SDK_CALL_AS(#fn, fn, __VA_ARGS__)

#define GDK_IS_SDK(obj) ((obj) && (obj)->sdk)

/* If obj belongs to the SDK, returns the result of the SDK's function with these arguments. */
#define GDK_SDK_AS(obj, name, fn, ...) \
	do { \
		if (GDK_IS_SDK(obj)) \
			return GDK_SDK_CALL_AS(name, fn, __VA_ARGS__); \
	} while (0)
#define GDK_SDK(obj, fn, ...) GDK_SDK_AS(obj, #fn, fn, __VA_ARGS__)

/* As GDK_SDK, but returns only if the SDK's function fails. */
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

/* For getters that return the value: returns the SDK's value. If the SDK lacks the getter, the
 * caller continues and returns its own value. */
#define GDK_SDK_GET_AS(obj, name, fn, ...) \
	do { \
		__typeof__(fn) *fn_ = GDK_IS_SDK(obj) ? gdk_sdk_find(name) : NULL; \
\
		if (fn_) \
			return fn_(__VA_ARGS__); \
	} while (0)
#define GDK_SDK_GET(obj, fn, ...) GDK_SDK_GET_AS(obj, #fn, fn, __VA_ARGS__)

/* For getters that return the value in the SDK, but doca_error_t in this library. */
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

/* For functions that return void in the SDK, but doca_error_t in this library. params is the
 * parameter list in parentheses. */
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

/* Logs which library creates an object, if the user set DOCA_SDK_LIB_PATH. */
#define GDK_SDK_SAY(what, is_sdk) \
	do { \
		if (gdk_sdk_asked()) \
			gdk_info("Use DOCA %s %s", what, (is_sdk) ? "SDK" : "open"); \
	} while (0)

/* In SDK mode, creates the SDK's object of obj, which is allocated and zeroed. On failure, frees
 * obj and returns the error. */
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

/* If parent belongs to the SDK, returns the value of create, which creates the child with it. */
#define GDK_SDK_CHILD(parent, what, create) \
	do { \
		GDK_SDK_SAY(what, GDK_IS_SDK(parent)); \
		if (GDK_IS_SDK(parent)) \
			return create; \
	} while (0)

/* Returns an error if one of the objects a and b belongs to the SDK and the other one does not.
 * NULL can be combined with both. */
#define GDK_CHECK_MIX(a, b) \
	do { \
		if ((a) && (b) && !(a)->sdk != !(b)->sdk) { \
			gdk_err("%s belongs to the DOCA SDK, %s does not: cannot mix them", \
				(a)->sdk ? #a : #b, (a)->sdk ? #b : #a); \
			return DOCA_ERROR_INVALID_VALUE; \
		} \
	} while (0)

#endif
