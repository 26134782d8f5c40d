/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce-ctl's output: what lines and JSON say of the same items. */
#include <stdint.h>
#include <string.h>

#include <json-c/json.h>

#include "ctl_output.h"
#include "stdout_text.h"
#include "test.h"

static const struct terminal file;
static const struct report_device first = {.index = 0, .name = "uroce0", .net = "eth0@1"};
static const struct report_device second = {.index = 1, .name = "uroce1", .net = "eth1@1"};

static const char *text;

/* Print two items. */
static void say(bool json, const struct terminal *terminal)
{
	struct output output;

	stdout_begin();
	output_begin(&output, json, terminal);
	output_dev(&output, &first);
	output_text(&output, "comm", "a \"b\"\\\n/c");
	output_item_end(&output);
	output_link(&output, &second);
	output_number(&output, "bytes", UINT64_MAX);
	output_text(&output, "state", "DOWN");
	output_item_end(&output);
	assert_true(output_end(&output));
	text = stdout_end();
}

static struct json_object *field(struct json_object *items, size_t i, const char *name)
{
	struct json_object *value;

	assert_true(json_object_object_get_ex(json_object_array_get_idx(items, i), name, &value));
	return value;
}

TEST(output__json_has_all_of_any_text)
{
	struct json_object *items;

	say(true, &file);
	items = json_tokener_parse(text);
	assert_non_null(items);
	assert_int_equal(json_object_array_length(items), 2);
	assert_int_equal(json_object_get_int(field(items, 0, "ifindex")), 0);
	assert_string_equal(json_object_get_string(field(items, 0, "ifname")), "uroce0");
	assert_string_equal(json_object_get_string(field(items, 0, "comm")), "a \"b\"\\\n/c");
	assert_int_equal(json_object_get_int(field(items, 1, "port")), 1);
	assert_int_equal(json_object_get_uint64(field(items, 1, "bytes")), UINT64_MAX);
	json_object_put(items);
}

TEST(output__lines_have_one_item_each)
{
	say(false, &file);
	assert_string_equal(text,
			    "0: uroce0: net eth0@1 comm a \"b\"\\?/c\n"
			    "link uroce1/1 net eth1@1 bytes 18446744073709551615 state DOWN\n");
}

TEST(output__lines_fit_the_terminal)
{
	const struct terminal narrow = {.columns = 40};

	say(false, &narrow);
	assert_string_equal(text, "0: uroce0: net eth0@1 comm a \"b\"\\?/c\n"
				  "link uroce1/1 net eth1@1\n"
				  "    bytes 18446744073709551615\n"
				  "    state DOWN\n");
}

TEST(output__colours)
{
	const struct terminal colour = {.colour = true};

	say(false, &colour);
	assert_non_null(strstr(text, "0: \033[36muroce0\033[0m: net eth0@1 comm a"));
	assert_non_null(strstr(text, "state \033[31mDOWN\033[0m\n"));
	say(true, &colour);
	assert_null(strchr(text, '\033'));
}
