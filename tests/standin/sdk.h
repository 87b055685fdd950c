/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A stand-in for the DOCA SDK: three libraries, of which libdoca_common keeps the
 * record of calls. Every call adds a line "name(argument, ...)". For an argument that
 * must be an object of the SDK, the line contains the kind of the object, "NULL", or
 * "wild" for any other pointer, so that a handle that the library failed to unwrap
 * becomes visible. The stand-in includes no header of gdaki.
 */
#ifndef STANDIN_SDK_H
#define STANDIN_SDK_H

#include <stddef.h>
#include <stdint.h>

struct ibv_context;
struct ibv_pd;

#define OK     0
#define EXPORT __attribute__((visibility("default")))

/* Creates an object of a kind. user: any pointer, which sdk_user() returns. */
void *sdk_new(const char *kind, void *user);
/* Deletes a live object; ignores any other pointer. */
void sdk_delete(void *obj);
/* Returns the user pointer of a live object; NULL for any other pointer. */
void *sdk_user(const void *obj);
/* Returns the newest live object with this user pointer; NULL: there is none. */
void *sdk_of_user(const void *user);
/* Returns the kind of the object, "NULL", or "wild" for a pointer that is not a live object. */
const char *sdk_name(const void *obj);
/* Adds a line to the record. Returns the result of the call: OK, or an error if the test has
 * selected this call to fail. */
int sdk_call(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Definitions of functions with common signatures. */
#define NEW(fn, kind) \
	EXPORT int fn(void **out); \
	EXPORT int fn(void **out) \
	{ \
		int err = sdk_call(#fn "()"); \
\
		if (!err) \
			*out = sdk_new(kind, NULL); \
		return err; \
	}
#define NEW_IN(fn, kind) /* creates an object from a context and attributes */ \
	EXPORT int fn(void *context, void *attr, void **out); \
	EXPORT int fn(void *context, void *attr, void **out) \
	{ \
		int err = sdk_call(#fn "(%s, %s)", sdk_name(context), sdk_name(attr)); \
\
		if (!err) \
			*out = sdk_new(kind, NULL); \
		return err; \
	}
#define DELETE(fn) \
	EXPORT int fn(void *obj); \
	EXPORT int fn(void *obj) \
	{ \
		int err = sdk_call(#fn "(%s)", sdk_name(obj)); \
\
		if (!err) \
			sdk_delete(obj); \
		return err; \
	}
#define SET(fn, type) \
	EXPORT int fn(void *obj, type v); \
	EXPORT int fn(void *obj, type v) \
	{ \
		return sdk_call(#fn "(%s, %lld)", sdk_name(obj), (long long)v); \
	}
#define SET_POINTER(fn) \
	EXPORT int fn(void *obj, void *v); \
	EXPORT int fn(void *obj, void *v) \
	{ \
		return sdk_call(#fn "(%s, %p)", sdk_name(obj), v); \
	}
#define SET_OBJECT(fn) \
	EXPORT int fn(void *obj, void *v); \
	EXPORT int fn(void *obj, void *v) \
	{ \
		return sdk_call(#fn "(%s, %s)", sdk_name(obj), sdk_name(v)); \
	}
#define SET_UMEM(fn) \
	EXPORT int fn(void *obj, void *umem, uint64_t offset); \
	EXPORT int fn(void *obj, void *umem, uint64_t offset) \
	{ \
		return sdk_call(#fn "(%s, %s, %llu)", sdk_name(obj), sdk_name(umem), \
				(unsigned long long)offset); \
	}
/* Getters that return the value. */
#define GET(fn, type, value) \
	EXPORT type fn(const void *obj); \
	EXPORT type fn(const void *obj) \
	{ \
		sdk_call(#fn "(%s)", sdk_name(obj)); \
		return value; \
	}
/* Getters that return an error and store the value. */
#define READ(fn, type, value) \
	EXPORT int fn(const void *obj, type *out); \
	EXPORT int fn(const void *obj, type *out) \
	{ \
		int err = sdk_call(#fn "(%s)", sdk_name(obj)); \
\
		if (!err) \
			*out = value; \
		return err; \
	}

#endif
