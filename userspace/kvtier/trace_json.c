// SPDX-License-Identifier: GPL-2.0
/*
 * One request from one JSON object on a line of its own, as the Mooncake traces
 * are published: timestamp (ms), input_length, output_length, hash_ids.
 * Members with other names are ignored.
 *
 * json-c builds the whole object before we see it, so what bounds memory is
 * checked on the text first: the number of commas bounds the number of values.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include <json-c/json.h>

#include "trace_private.h"

#define DEPTH_MAX	8
#define VALUES_MAX	(TRACE_IDS_MAX + 64)

struct trace_json {
	struct json_tokener *tokener;
};

struct trace_json *trace_json_new(void)
{
	struct trace_json *j = malloc(sizeof(*j));

	if (!j)
		return NULL;
	j->tokener = json_tokener_new_ex(DEPTH_MAX);
	if (!j->tokener) {
		free(j);
		return NULL;
	}
	json_tokener_set_flags(j->tokener, JSON_TOKENER_STRICT);
	return j;
}

void trace_json_free(struct trace_json *j)
{
	if (!j)
		return;
	json_tokener_free(j->tokener);
	free(j);
}

static bool to_number(struct json_object *value, uint64_t *number)
{
	double d;

	switch (json_object_get_type(value)) {
	case json_type_int:
		/* Saturates, so that too large stays too large. */
		if (json_object_get_int64(value) < 0)
			return false;
		*number = json_object_get_uint64(value);
		return *number < TRACE_ID_LIMIT;
	case json_type_double:
		d = json_object_get_double(value);
		if (!isfinite(d) || d < 0 || d >= 9e15)
			return false;
		*number = (uint64_t)d;
		return true;
	default:
		return false;
	}
}

static int get_member(struct trace_parse *p, struct json_object *object,
		      const char *name, uint64_t *number)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, name, &value))
		return trace_fail(p, "no \"%s\"", name);
	if (!to_number(value, number))
		return trace_fail(p, "\"%s\" is not a number in range", name);
	return 0;
}

static int get_ids(struct trace_parse *p, struct json_object *object)
{
	struct json_object *array;
	size_t nr;

	if (!json_object_object_get_ex(object, "hash_ids", &array))
		return trace_fail(p, "no \"hash_ids\"");
	if (!json_object_is_type(array, json_type_array))
		return trace_fail(p, "\"hash_ids\" is not an array");
	nr = json_object_array_length(array);
	for (size_t i = 0; i < nr; i++) {
		struct json_object *value = json_object_array_get_idx(array, i);
		uint64_t id;
		int err;

		if (!json_object_is_type(value, json_type_int) ||
		    !to_number(value, &id))
			return trace_fail(p, "hash_ids[%zu] is not a number in range",
					  i);
		err = trace_ids_add(&p->ids, id, id);
		if (err)
			return trace_fail_ids(p, err);
	}
	return 0;
}

static int get_request(struct trace_parse *p, struct json_object *object,
		       struct trace_request *request)
{
	int err;

	if (!json_object_is_type(object, json_type_object))
		return trace_fail(p, "not a JSON object");
	request->session = -1;
	err = get_member(p, object, "timestamp", &request->ts_ms);
	if (!err)
		err = get_member(p, object, "input_length", &request->input_len);
	if (!err)
		err = get_member(p, object, "output_length", &request->output_len);
	if (!err)
		err = get_ids(p, object);
	return err;
}

int trace_json_parse(struct trace_json *j, struct trace_parse *p, const char *line,
		     size_t bytes, struct trace_request *request)
{
	struct json_object *object;
	enum json_tokener_error parsed;
	size_t values = 1;
	int err;

	for (size_t i = 0; i < bytes; i++)
		values += line[i] == ',';
	if (values > VALUES_MAX)
		return trace_fail(p, "more than %u ids in one request",
				  TRACE_IDS_MAX);
	json_tokener_reset(j->tokener);
	/* With its NUL: a number at the very end is finished only by that. */
	object = json_tokener_parse_ex(j->tokener, line, (int)bytes + 1);
	parsed = json_tokener_get_error(j->tokener);
	if (parsed != json_tokener_success) {
		json_object_put(object);
		return trace_fail(p, "%s", json_tokener_error_desc(parsed));
	}
	err = get_request(p, object, request);
	json_object_put(object);
	return err;
}
