/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright (c) gdaki authors */
/* Results as JSON (by json-c) and as CSV (RFC 4180, lines end with a line feed). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "report_parts.h"

#define NUMBER_LENGTH 32

/* The text of a number, the same in both forms; empty if it is unknown. */
static const char *number_text(char text[NUMBER_LENGTH], const struct ex_column *column,
			       double value)
{
	if (!isfinite(value))
		return "";
	snprintf(text, NUMBER_LENGTH, column->integer ? "%.0f" : "%.9g", value);
	return text;
}

/* ---- JSON ---- */

/* Adds a member. Takes the value, also on failure. NULL: no memory. */
static int add(struct json_object *parent, const char *name, struct json_object *value)
{
	if (value && !json_object_object_add(parent, name, value))
		return 0;
	json_object_put(value);
	return -1;
}

static int add_value(struct json_object *row, const struct ex_column *column, double value)
{
	char text[NUMBER_LENGTH];

	if (!isfinite(value)) /* NULL is the null of JSON */
		return json_object_object_add(row, column->name, NULL);
	number_text(text, column, value);
	return add(row, column->name,
		   column->integer ? json_object_new_int64((int64_t)value)
				   : json_object_new_double_s(value, text));
}

static int add_row(struct json_object *rows, const struct ex_results *r, const double *values)
{
	struct json_object *row = json_object_new_object();

	if (!row || json_object_array_add(rows, row)) {
		json_object_put(row);
		return -1;
	}
	for (size_t c = 0; c < r->num_columns; c++)
		if (add_value(row, &r->columns[c], values[c]))
			return -1;
	return 0;
}

static int fill(struct json_object *top, const struct ex_results *r)
{
	struct json_object *rows;

	for (size_t i = 0; i < r->num_fields; i++) {
		const struct ex_field *f = &r->fields[i];

		if (add(top, f->name,
			f->number ? json_object_new_int64(atoll(f->text))
				  : json_object_new_string(f->text)))
			return -1;
	}
	rows = json_object_new_array();
	if (add(top, "rows", rows))
		return -1;
	for (size_t i = 0; i < r->num_rows; i++)
		if (add_row(rows, r, r->values + i * r->num_columns))
			return -1;
	return 0;
}

char *ex_results_to_json(const struct ex_results *r)
{
	struct json_object *top = json_object_new_object();
	const char *text;
	char *copy = NULL;

	if (top && !fill(top, r)) {
		text = json_object_to_json_string_ext(top, JSON_C_TO_STRING_PRETTY |
								   JSON_C_TO_STRING_NOSLASHESCAPE);
		if (text && asprintf(&copy, "%s\n", text) < 0)
			copy = NULL;
	}
	json_object_put(top);
	return copy;
}

/* ---- CSV ---- */

static void put_cell(FILE *f, const char *text, char end)
{
	if (!strpbrk(text, ",\"\r\n")) {
		fprintf(f, "%s%c", text, end);
		return;
	}
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', f);
		fputc(*text, f);
	}
	fprintf(f, "\"%c", end);
}

char *ex_results_to_csv(const struct ex_results *r)
{
	char *text = NULL, number[NUMBER_LENGTH];
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	for (size_t i = 0; i < r->num_fields; i++)
		put_cell(f, r->fields[i].name, ',');
	for (size_t c = 0; c < r->num_columns; c++)
		put_cell(f, r->columns[c].name, c + 1 < r->num_columns ? ',' : '\n');
	for (size_t k = 0; k < r->num_rows; k++) {
		for (size_t i = 0; i < r->num_fields; i++)
			put_cell(f, r->fields[i].text, ',');
		for (size_t c = 0; c < r->num_columns; c++)
			put_cell(f,
				 number_text(number, &r->columns[c],
					     r->values[k * r->num_columns + c]),
				 c + 1 < r->num_columns ? ',' : '\n');
	}
	if (ferror(f) | fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}
