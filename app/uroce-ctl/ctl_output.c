/* SPDX-License-Identifier: BSD-3-Clause */
/* Print items and their fields on stdout. */
#include "ctl_output.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#include <json-c/json.h>

#define PORT	   1 /* the only port of a device */
#define JSON_STYLE (JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE)

static void put_plain(const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		putchar(isprint(*c) ? *c : '?');
}

static void put_name(struct output *output, const char *name)
{
	fputs(output->in_item ? " " : "", stdout);
	put_plain(name);
	putchar(' ');
	output->in_item = true;
}

/* Add a field. Omit it if memory is short; output_end then returns false. */
static void add_json(struct output *output, const char *name, struct json_object *value)
{
	if (!value || !output->item || json_object_object_add(output->item, name, value) != 0) {
		json_object_put(value);
		output->failed = true;
	}
}

void output_text(struct output *output, const char *name, const char *value)
{
	if (output->json) {
		add_json(output, name, json_object_new_string(value));
		return;
	}
	put_name(output, name);
	put_plain(value);
}

void output_number(struct output *output, const char *name, uint64_t value)
{
	if (output->json) {
		add_json(output, name, json_object_new_uint64(value));
		return;
	}
	put_name(output, name);
	printf("%" PRIu64, value);
}

static void field_text(void *arg, const char *name, const char *value)
{
	output_text(arg, name, value);
}

static void field_number(void *arg, const char *name, uint64_t value)
{
	output_number(arg, name, value);
}

void output_begin(struct output *output, bool json)
{
	*output = (struct output){
		.json = json,
		.fields = {.text = field_text, .number = field_number, .arg = output},
	};
	if (json)
		output->items = json_object_new_array();
	output->failed = json && !output->items;
}

static void begin_item(struct output *output)
{
	output->in_item = false;
	if (!output->json)
		return;
	output->item = json_object_new_object();
	output->failed |= !output->item;
}

void output_dev(struct output *output, uint32_t index, const char *name)
{
	begin_item(output);
	if (output->json) {
		output_number(output, "ifindex", index);
		output_text(output, "ifname", name);
		return;
	}
	printf("%" PRIu32 ": ", index);
	put_plain(name);
	fputs(": ", stdout);
}

void output_link(struct output *output, uint32_t index, const char *name)
{
	begin_item(output);
	if (output->json) {
		output_number(output, "ifindex", index);
		output_number(output, "port", PORT);
		output_text(output, "ifname", name);
		return;
	}
	fputs("link ", stdout);
	put_plain(name);
	printf("/%d ", PORT);
}

void output_item_end(struct output *output)
{
	if (!output->json) {
		putchar('\n');
		return;
	}
	if (!output->items || !output->item ||
	    json_object_array_add(output->items, output->item) != 0) {
		json_object_put(output->item);
		output->failed = true;
	}
	output->item = NULL;
}

bool output_end(struct output *output)
{
	const char *text;

	if (!output->json)
		return true;
	text = output->failed ? NULL : json_object_to_json_string_ext(output->items, JSON_STYLE);
	if (text)
		puts(text);
	json_object_put(output->items);
	output->items = NULL;
	return text != NULL;
}
