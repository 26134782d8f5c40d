/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints on stdout: coloured text and wrapped lines, the columns of a table, items and their
 * fields. */
#include "ctl_output.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <json-c/json.h>

#define SIZE_MAX_CELLS 10000

static const char *const tints[] = {
	[TINT_PLAIN] = "",	  [TINT_NAME] = "\033[36m", [TINT_GOOD] = "\033[32m",
	[TINT_WARN] = "\033[33m", [TINT_BAD] = "\033[31m",  [TINT_HEAD] = "\033[1m",
};

static unsigned int from_environment(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);
	const long number = text ? strtol(text, NULL, 10) : 0;

	return number > 0 && number <= SIZE_MAX_CELLS ? (unsigned int)number : otherwise;
}

static bool has_colours(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return !(no && no[0] != '\0') && term && strcmp(term, "dumb") != 0;
}

void terminal_resize(struct terminal *terminal)
{
	struct winsize size;

	if (!terminal->is_terminal)
		return;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
		memset(&size, 0, sizeof(size));
	terminal->columns = from_environment("COLUMNS", size.ws_col);
	terminal->rows = from_environment("LINES", size.ws_row);
}

void terminal_look(struct terminal *terminal, enum colour_when when)
{
	*terminal = (struct terminal){.is_terminal = isatty(STDOUT_FILENO)};
	terminal_resize(terminal);
	terminal->colour = when == COLOUR_ALWAYS ||
			   (when == COLOUR_AUTO && terminal->is_terminal && has_colours());
}

const char *terminal_tint(const struct terminal *terminal, enum tint tint)
{
	return terminal->colour ? tints[tint] : "";
}

const char *terminal_plain(const struct terminal *terminal, enum tint tint)
{
	return terminal->colour && tint != TINT_PLAIN ? "\033[0m" : "";
}

static void put_bytes(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		putchar(isprint((unsigned char)text[i]) ? text[i] : '?');
}

void terminal_put(const struct terminal *terminal, enum tint tint, const char *text)
{
	fputs(terminal_tint(terminal, tint), stdout);
	put_bytes(text, strlen(text));
	fputs(terminal_plain(terminal, tint), stdout);
}

unsigned int terminal_wrap(const struct terminal *terminal, enum tint tint, unsigned int column,
			   unsigned int indent, const char *text)
{
	fputs(terminal_tint(terminal, tint), stdout);
	while (*text) {
		const size_t word = strcspn(text, " ");
		const bool first = column <= indent;

		if (terminal->columns > 0 && !first && column + 1 + word > terminal->columns) {
			printf("\n%*s", (int)indent, "");
			column = indent;
		} else if (!first) {
			putchar(' ');
			column++;
		}
		put_bytes(text, word);
		column += (unsigned int)word;
		text += word;
		text += strspn(text, " ");
	}
	fputs(terminal_plain(terminal, tint), stdout);
	return column;
}

static size_t table_width(const struct table *table)
{
	size_t width = 0;

	for (size_t i = 0; i < table->count; i++) {
		if (table->shown[i])
			width += (size_t)abs(table->columns[i].width) + (width > 0);
	}
	return width;
}

/* Leave out the shown column that matters least. Returns false if only one is left. */
static bool table_drop(struct table *table)
{
	size_t least = table->count, shown = 0;

	for (size_t i = 0; i < table->count; i++) {
		if (!table->shown[i])
			continue;
		shown++;
		if (least == table->count || table->columns[i].keep < table->columns[least].keep)
			least = i;
	}
	if (shown > 1)
		table->shown[least] = false;
	return shown > 1;
}

void table_begin(struct table *table, const struct terminal *terminal,
		 const struct table_column *columns, size_t count)
{
	*table = (struct table){.terminal = terminal, .columns = columns, .count = count};
	for (size_t i = 0; i < count; i++)
		table->shown[i] = true;
	while (terminal->columns > 0 && table_width(table) > terminal->columns && table_drop(table))
		;
}

static void put_row(const struct table *table, enum tint tint, bool titles)
{
	bool first = true;

	fputs(terminal_tint(table->terminal, tint), stdout);
	for (size_t i = 0; i < table->count; i++) {
		const struct table_column *column = &table->columns[i];

		if (!table->shown[i])
			continue;
		/* Cut names, but not numbers. */
		printf("%s%*.*s", first ? "" : " ", column->width,
		       column->width < 0 ? -column->width : TABLE_CELL,
		       titles ? column->title : table->cells[i]);
		first = false;
	}
	fputs(terminal_plain(table->terminal, tint), stdout);
	putchar('\n');
}

void table_head(const struct table *table)
{
	put_row(table, TINT_HEAD, true);
}

void table_cell(struct table *table, size_t column, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(table->cells[column], TABLE_CELL, format, args);
	va_end(args);
}

void table_row(const struct table *table, enum tint tint)
{
	put_row(table, tint, false);
}

#define PORT	   1 /* the only port of a device */
#define INDENT	   4 /* of an item's lines after the first */
#define JSON_STYLE (JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE)

/* Return the colour of a value: states of ports and queue pairs, and old reports, have one. */
static enum tint tint_of(const char *name, const char *value)
{
	static const struct {
		const char *name, *value;
		enum tint tint;
	} tinted[] = {
		{"state", "ACTIVE", TINT_GOOD}, {"state", "RTS", TINT_GOOD},
		{"state", "DOWN", TINT_BAD},	{"state", "ERR", TINT_BAD},
		{"state", "SQE", TINT_BAD},	{"answer", "old", TINT_WARN},
	};

	for (size_t i = 0; i < sizeof(tinted) / sizeof(tinted[0]); i++) {
		if (strcmp(tinted[i].name, name) == 0 && strcmp(tinted[i].value, value) == 0)
			return tinted[i].tint;
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
