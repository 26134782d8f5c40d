/* SPDX-License-Identifier: BSD-3-Clause */
/* A list of items with fields, printed as lines of words or as JSON. */
#ifndef CTL_OUTPUT_H
#define CTL_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/read.h"

struct json_object;

struct output {
	bool json;
	bool in_item;		     /* one has fields already */
	bool failed;		     /* there was no memory for all */
	struct json_object *items;   /* of JSON */
	struct json_object *item;    /* the one that is begun */
	struct report_fields fields; /* those of the item that is begun go here */
};

/** Begin a list of items. */
void output_begin(struct output *output, bool json);

/** Begin an item of a device, which lines name as in "0: uroce0: ", or with a port as in "link
 * uroce0/1 ". */
void output_dev(struct output *output, uint32_t index, const char *name);
void output_link(struct output *output, uint32_t index, const char *name);

/** Add a field to the item. */
void output_text(struct output *output, const char *name, const char *value);
void output_number(struct output *output, const char *name, uint64_t value);

/** End the item. */
void output_item_end(struct output *output);

/** End the list. Returns false if there was no memory for JSON; then nothing was printed. */
bool output_end(struct output *output);

#endif
