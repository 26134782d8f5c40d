/* SPDX-License-Identifier: BSD-3-Clause */
/* A list of items with fields, printed as lines of words or as JSON. */
#ifndef CTL_OUTPUT_H
#define CTL_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/devices.h"
#include "terminal.h"

struct json_object;

struct output {
	bool json;
	const struct terminal *terminal;
	unsigned int column;	     /* of the line, for terminals */
	const char *prefix;	     /* of lines; "": none */
	bool in_item;		     /* the current item has fields already */
	bool failed;		     /* memory was short */
	struct json_object *items;   /* all finished items, for JSON */
	struct json_object *item;    /* the current item, for JSON */
	struct report_fields fields; /* callbacks that add fields to the current item */
};

/** Begin a list of items. Lines are broken between fields if they do not fit the terminal. */
void output_begin(struct output *output, bool json, const struct terminal *terminal);

/** Begin an item of JSON only; the caller prints lines. */
void output_item(struct output *output);

/** Begin an item of a device with its name and network. A line begins with "0: uroce0: " for
 * output_dev, and with "link uroce0/1 " for output_link. */
void output_dev(struct output *output, const struct report_device *device);
void output_link(struct output *output, const struct report_device *device);

/** Add a field to the item. */
void output_text(struct output *output, const char *name, const char *value);
void output_number(struct output *output, const char *name, uint64_t value);

/** End the item. */
void output_item_end(struct output *output);

/** End the list. Returns false if there was no memory for JSON; then nothing was printed. */
bool output_end(struct output *output);

#endif
