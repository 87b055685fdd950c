/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * SDK mode: if DOCA_SDK_LIB_PATH names the folder of an installed DOCA SDK, this library
 * creates its objects with the SDK and forwards calls to it.
 *
 * Each object has a member sdk: the SDK's object, or NULL. The other members serve export,
 * services and high-level queue pairs, which the SDK does not replace. A public function that
 * the SDK also has calls the SDK's function through one of the macros below. Argument fn of a
 * macro gives the type of that function. It is this library's function of the same name if
 * the two differ in pointer types only, otherwise a function type.
 */
#ifndef GDK_SDK_H
#define GDK_SDK_H

#include <stdlib.h>

#include "core/log/log.h"
#include "core/util.h"

/* Returns whether SDK mode is on. The first call loads the SDK's libraries. */
bool gdk_sdk_in_use(void);
/* Returns whether the user set DOCA_SDK_LIB_PATH, even if the SDK could not be loaded. */
bool gdk_sdk_asked(void);

/* Returns the SDK's function of that name. Logs an error and returns NULL if there is none. */
void *gdk_sdk_function(const char *name);
/* As gdk_sdk_function, but does not log. */
void *gdk_sdk_find(const char *name);
/* Returns err, the result of the SDK's function name. Logs it if it is an error. */
doca_error_t gdk_sdk_result(const char *name, doca_error_t err);

/* Calls the SDK's function name, which has the type of fn. The value is its doca_error_t, or
 * DOCA_ERROR_NOT_SUPPORTED if the SDK lacks the function. */
#define GDK_SDK_CALL_AS(name, fn, ...) \
	({ \
		__typeof__(fn) *fn_ = gdk_sdk_function(name); \
		fn_ ? gdk_sdk_result(name, fn_(__VA_ARGS__)) : DOCA_ERROR_NOT_SUPPORTED; \
	})
#define GDK_SDK_CALL(fn, ...) GDK_SDK_CALL_AS(#fn, fn, __VA_ARGS__)

#define GDK_IS_SDK(obj) ((obj) && (obj)->sdk)

/* If obj belongs to the SDK, makes the caller return the result of the SDK's function with these
 * arguments. */
#define GDK_SDK_AS(obj, name, fn, ...) \
	do { \
		if (GDK_IS_SDK(obj)) \
			return GDK_SDK_CALL_AS(name, fn, __VA_ARGS__); \
	} while (0)
#define GDK_SDK(obj, fn, ...) GDK_SDK_AS(obj, #fn, fn, __VA_ARGS__)

/* As GDK_SDK, but makes the caller return only if the SDK's function fails. */
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

/* For getters that return the value. If obj belongs to the SDK and the SDK has the getter, makes
 * the caller return the SDK's value; otherwise the caller continues with its own value. */
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

/* In SDK mode, calls fn of the SDK, which creates the SDK's object for obj. If this fails, frees
 * obj, which must be from malloc, and makes the caller return the error. */
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

/* If parent belongs to the SDK, makes the caller return the value of the expression create, which
 * creates the child object with the SDK. */
#define GDK_SDK_CHILD(parent, what, create) \
	do { \
		GDK_SDK_SAY(what, GDK_IS_SDK(parent)); \
		if (GDK_IS_SDK(parent)) \
			return create; \
	} while (0)

/* Makes the caller return an error if one of the objects a and b belongs to the SDK and the other
 * one does not. Either may be NULL. */
#define GDK_CHECK_MIX(a, b) \
	do { \
		if ((a) && (b) && !(a)->sdk != !(b)->sdk) { \
			gdk_err("%s belongs to the DOCA SDK, %s does not: cannot mix them", \
				(a)->sdk ? #a : #b, (a)->sdk ? #b : #a); \
			return DOCA_ERROR_INVALID_VALUE; \
		} \
	} while (0)

#endif
