/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints items and their fields on stdout. */
#include "ctl_output.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#define PORT	   1 /* the only port of a device */
#define INDENT	   4 /* of an item's lines after the first */
#define JSON_STYLE (JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE)

/* Return the colour of a value: states of ports and queue pairs, and old reports, have one. */
static enum tint tint_of(const char *name, const char *value)
{
	static const struct {
		const char *name, *value;
		enum tint tint;
	} tints[] = {
		{"state", "ACTIVE", TINT_GOOD}, {"state", "RTS", TINT_GOOD},
		{"state", "DOWN", TINT_BAD},	{"state", "ERR", TINT_BAD},
		{"state", "SQE", TINT_BAD},	{"answer", "old", TINT_WARN},
	};

	for (size_t i = 0; i < sizeof(tints) / sizeof(tints[0]); i++) {
		if (strcmp(tints[i].name, name) == 0 && strcmp(tints[i].value, value) == 0)
			return tints[i].tint;
	}
	return TINT_PLAIN;
}

/* Begin a field of `len` characters, on a new line if it does not fit. */
static void begin_field(struct output *output, size_t len)
{
	const unsigned int columns = output->terminal->columns;

	if (columns > 0 && output->column > INDENT && output->column + 1 + len > columns) {
		printf("\n%*s", INDENT, "");
		output->column = INDENT;
	} else if (output->in_item) {
		putchar(' ');
		output->column++;
	}
	output->in_item = true;
	output->column += (unsigned int)len;
}

static void put_field(struct output *output, const char *name, const char *value)
{
	begin_field(output, strlen(name) + 1 + strlen(value));
	terminal_put(output->terminal, TINT_PLAIN, name);
	putchar(' ');
	terminal_put(output->terminal, tint_of(name, value), value);
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
	put_field(output, name, value);
}

void output_number(struct output *output, const char *name, uint64_t value)
{
	char text[24];

	if (output->json) {
		add_json(output, name, json_object_new_uint64(value));
		return;
	}
	snprintf(text, sizeof(text), "%" PRIu64, value);
	put_field(output, name, text);
}

static void field_text(void *arg, const char *name, const char *value)
{
	output_text(arg, name, value);
}

static void field_number(void *arg, const char *name, uint64_t value)
{
	output_number(arg, name, value);
}

void output_begin(struct output *output, bool json, const struct terminal *terminal)
{
	*output = (struct output){
		.json = json,
		.terminal = terminal,
		.prefix = "",
		.fields = {.text = field_text, .number = field_number, .arg = output},
	};
	if (json)
		output->items = json_object_new_array();
	output->failed = json && !output->items;
}

void output_item(struct output *output)
{
	output->in_item = false;
	if (!output->json)
		return;
	output->item = json_object_new_object();
	output->failed |= !output->item;
}

void output_dev(struct output *output, const struct report_device *device)
{
	output_item(output);
	if (output->json) {
		output_number(output, "ifindex", device->index);
		output_text(output, "ifname", device->name);
	} else {
		output->column =
			(unsigned int)printf("%s%" PRIu32 ": ", output->prefix, device->index);
		terminal_put(output->terminal, TINT_NAME, device->name);
		fputs(": ", stdout);
		output->column += (unsigned int)strlen(device->name) + 2;
	}
	output_text(output, "net", device->net);
}

void output_link(struct output *output, const struct report_device *device)
{
	output_item(output);
	if (output->json) {
		output_number(output, "ifindex", device->index);
		output_number(output, "port", PORT);
		output_text(output, "ifname", device->name);
	} else {
		output->column = (unsigned int)printf("%slink ", output->prefix);
		terminal_put(output->terminal, TINT_NAME, device->name);
		output->column += (unsigned int)strlen(device->name);
		output->column += (unsigned int)printf("/%d ", PORT);
	}
	output_text(output, "net", device->net);
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
