/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/*
 * A stand-in for the DOCA SDK: three libraries, of which libdoca_common keeps the
 * record of calls. Every call adds a line "name(argument, ...)". An argument that is a
 * live object is written as its kind, any other pointer in its place as "wild", so
 * that a handle that the library did not unwrap shows. No gdaki header is included.
 */
#ifndef STANDIN_SDK_H
#define STANDIN_SDK_H

#include <stddef.h>
#include <stdint.h>

struct ibv_context;
struct ibv_pd;

#define OK     0
#define EXPORT __attribute__((visibility("default")))

/* Create an object of a kind, and delete it. */
void *sdk_new(const char *kind, void *user);
void sdk_delete(void *obj);
void *sdk_user(const void *obj);
void *sdk_of_user(const void *user);
/* The kind of the object, "NULL" or "wild". */
const char *sdk_name(const void *obj);
/* Adds a line to the record. Returns the error that the call must return. */
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
#define NEW_IN(fn, kind) /* from a context and attributes */ \
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
