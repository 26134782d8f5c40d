/* SPDX-License-Identifier: BSD-3-Clause */
/* Items and their fields on stdout. */
#include "output.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#define PORT 1 /* the only one of a device */

/* What a process calls itself may have any bytes. */
static void put_json(const char *text)
{
	putchar('"');
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			printf("\\%c", *c);
		else if (*c < ' ' || *c > '~')
			printf("\\u%04x", *c);
		else
			putchar(*c);
	}
	putchar('"');
}

static void put_plain(const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		putchar(isprint(*c) ? *c : '?');
}

static void put_name(struct output *output, const char *name)
{
	if (output->json) {
		fputs(output->in_item ? ", " : "", stdout);
		put_json(name);
		fputs(": ", stdout);
	} else {
		fputs(output->in_item ? " " : "", stdout);
		put_plain(name);
		putchar(' ');
	}
	output->in_item = true;
}

void output_text(struct output *output, const char *name, const char *value)
{
	put_name(output, name);
	if (output->json)
		put_json(value);
	else
		put_plain(value);
}

void output_number(struct output *output, const char *name, uint64_t value)
{
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
		putchar('[');
}

static void begin_item(struct output *output)
{
	if (output->json)
		fputs(output->items > 0 ? ",\n {" : "{", stdout);
	output->items++;
	output->in_item = false;
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
	fputs(output->json ? "}" : "\n", stdout);
}

void output_end(struct output *output)
{
	if (output->json)
		puts("]");
}
