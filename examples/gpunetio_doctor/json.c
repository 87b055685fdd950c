/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* The report as JSON. */
#include <stdio.h>

#include <json-c/json.h>

#include "host/gdk_version.h"
#include "results.h"

static struct json_object *text_or_null(const char *text)
{
	return text ? json_object_new_string(text) : NULL;
}

static struct json_object *json_result(const struct dr_result *x)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "scope", text_or_null(x->scope));
	json_object_object_add(o, "check", text_or_null(x->check));
	json_object_object_add(o, "level", text_or_null(dr_level_word(x->level)));
	json_object_object_add(o, "text", text_or_null(x->text));
	json_object_object_add(o, "fix", text_or_null(x->fix));
	return o;
}

static void add_combination(const struct dr_combination *c, void *arg)
{
	struct json_object *o = json_object_new_object(), *failed = NULL;

	if (c->failed) {
		failed = json_object_new_object();
		json_object_object_add(failed, "scope", text_or_null(c->failed->scope));
		json_object_object_add(failed, "check", text_or_null(c->failed->check));
	}
	json_object_object_add(o, "gpu", text_or_null(c->gpu));
	json_object_object_add(o, "device", text_or_null(c->device));
	json_object_object_add(o, "port", json_object_new_int(c->port));
	/* null: no check failed, but the combination was not tried, as with --root */
	json_object_object_add(o, "works",
			       c->works && !c->choice ? NULL : json_object_new_boolean(c->works));
	json_object_object_add(o, "failed", failed);
	json_object_object_add(o, "handler", text_or_null(c->choice ? c->choice->handler : NULL));
	json_object_object_add(o, "reason", text_or_null(c->choice ? c->choice->text : NULL));
	json_object_array_add(arg, o);
}

void dr_print_json(struct dr_report *r, int status)
{
	struct json_object *combinations = json_object_new_array();
	struct json_object *top = json_object_new_object(), *checks = json_object_new_array();

	for (size_t i = 0; i < r->num; i++)
		json_object_array_add(checks, json_result(&r->results[i]));
	json_object_object_add(top, "version", text_or_null(GDK_VERSION));
	json_object_object_add(top, "checks", checks);
	dr_each_combination(r, add_combination, combinations);
	json_object_object_add(top, "combinations", combinations);
	json_object_object_add(top, "exit_status", json_object_new_int(status));
	puts(json_object_to_json_string_ext(top, JSON_C_TO_STRING_PRETTY |
							 JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(top);
}
