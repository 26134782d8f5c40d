/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the line number programs of an object file until one has the address. */
#include "debug_line.h"

#include <string.h>

#define OPCODES_MAX 32
#define FORMATS_MAX 16

enum {
	EXTENDED,
	COPY,
	ADVANCE_PC,
	ADVANCE_LINE,
	SET_FILE,
	SET_COLUMN,
	NEGATE_STMT,
	SET_BASIC_BLOCK,
	CONST_ADD_PC,
	FIXED_ADVANCE_PC,
};

enum { END_SEQUENCE = 1, SET_ADDRESS = 2 }; /* extended opcodes */
enum { CONTENT_PATH = 1 };		    /* of an entry of a table */

/* The rest of something. Reading behind its end gives 0, and is noted. */
struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

static uint64_t get(struct cursor *cursor, unsigned int bytes)
{
	uint64_t value = 0;

	if ((size_t)(cursor->end - cursor->at) < bytes) {
		cursor->bad = true;
		cursor->at = cursor->end;
		return 0;
	}
	for (unsigned int i = 0; i < bytes && i < sizeof(value); i++)
		value |= (uint64_t)cursor->at[i] << (8 * i);
	cursor->at += bytes;
	return value;
}

static uint64_t get_uleb(struct cursor *cursor)
{
	uint64_t value = 0, byte;
	unsigned int shift = 0;

	do {
		byte = get(cursor, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while ((byte & 0x80) && !cursor->bad);
	return value;
}

static int64_t get_sleb(struct cursor *cursor)
{
	uint64_t value = 0, byte;
	unsigned int shift = 0;

	do {
		byte = get(cursor, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while ((byte & 0x80) && !cursor->bad);
	if (shift < 64 && (byte & 0x40))
		value |= ~UINT64_C(0) << shift;
	return (int64_t)value;
}

static void skip(struct cursor *cursor, uint64_t bytes)
{
	if (bytes > (size_t)(cursor->end - cursor->at)) {
		cursor->bad = true;
		cursor->at = cursor->end;
		return;
	}
	cursor->at += bytes;
}

/* Return the string at the cursor, or "" if it has no end. */
static const char *get_string(struct cursor *cursor)
{
	const char *text = (const char *)cursor->at;
	const uint8_t *end = memchr(cursor->at, 0, (size_t)(cursor->end - cursor->at));

	if (!end) {
		cursor->bad = true;
		return "";
	}
	cursor->at = end + 1;
	return text;
}

/* Return a cursor at the begin of a section, which may be missing. */
static struct cursor cursor_of(const struct bytes *section)
{
	static const uint8_t nothing[1];
	const uint8_t *at = section->at ? section->at : nothing;

	return (struct cursor){.at = at, .end = at + section->size};
}

static const char *string_at(const struct bytes *section, uint64_t offset)
{
	struct cursor cursor = cursor_of(section);

	skip(&cursor, offset);
	return cursor.bad ? "" : get_string(&cursor);
}

/* The header of a unit, as far as it matters. */
struct unit {
	unsigned int version, offset_bytes;
	uint8_t min_length, line_range, opcode_base;
	int8_t line_base;
	uint8_t lengths[OPCODES_MAX];
	struct cursor tables;  /* directories and files */
	struct cursor program; /* to the end of the unit */
};

/* Read the header at the cursor, and move the cursor to the next unit. */
static bool read_unit(struct cursor *section, struct unit *unit)
{
	struct cursor cursor;
	uint64_t length = get(section, 4), header;

	unit->offset_bytes = 4;
	if (length == 0xffffffff) {
		length = get(section, 8);
		unit->offset_bytes = 8;
	}
	if (section->bad || length > (size_t)(section->end - section->at)) {
		section->bad = true;
		return false;
	}
	cursor = (struct cursor){.at = section->at, .end = section->at + length};
	section->at += length;
	unit->version = (unsigned int)get(&cursor, 2);
	if (unit->version >= 5)
		skip(&cursor, 2); /* sizes of an address and of a segment */
	header = get(&cursor, unit->offset_bytes);
	unit->program = cursor;
	skip(&unit->program, header);
	unit->min_length = (uint8_t)get(&cursor, 1);
	if (unit->version >= 4)
		skip(&cursor, 1); /* operations of an instruction */
	skip(&cursor, 1);	  /* default of is_stmt */
	unit->line_base = (int8_t)get(&cursor, 1);
	unit->line_range = (uint8_t)get(&cursor, 1);
	unit->opcode_base = (uint8_t)get(&cursor, 1);
	for (unsigned int i = 1; i < unit->opcode_base; i++)
		unit->lengths[i % OPCODES_MAX] = (uint8_t)get(&cursor, 1);
	unit->tables = cursor;
	return !cursor.bad && !unit->program.bad && unit->version >= 2 && unit->version <= 5 &&
	       unit->line_range > 0 && unit->opcode_base > 0 && unit->opcode_base <= OPCODES_MAX;
}

/* A row of the table of lines. */
struct row {
	uint64_t address, file, line;
};

struct run {
	struct row now, last;
	struct row outer; /* the last one before `last` of another file; line 0: none */
	bool has_last;	  /* the sequence has a row before */
};

/* Note that the table has a row. Return true if the address is between it and the row before. */
static bool emit(struct run *run, uint64_t address)
{
	/* Functions that the linker has left out begin at 0. */
	const bool found = run->has_last && run->last.address != 0 &&
			   run->last.address <= address && address < run->now.address;

	if (!found) {
		if (run->has_last && run->last.file != run->now.file)
			run->outer = run->last;
		run->last = run->now;
		run->has_last = true;
	}
	return found;
}

static void begin_sequence(struct run *run)
{
	*run = (struct run){.now = {.file = 1, .line = 1}};
}

static void advance(const struct unit *unit, struct run *run, uint64_t operations)
{
	run->now.address += operations * unit->min_length;
}

/* Return true if it ends a sequence in which the address was found. */
static bool run_extended(struct cursor *program, struct run *run, uint64_t address)
{
	const uint64_t length = get_uleb(program);
	struct cursor operands = *program;
	uint8_t opcode;
	bool found = false;

	skip(program, length);
	if (program->bad || length == 0)
		return false;
	operands.end = program->at;
	opcode = (uint8_t)get(&operands, 1);
	if (opcode == END_SEQUENCE) {
		found = emit(run, address);
		if (!found)
			begin_sequence(run);
	} else if (opcode == SET_ADDRESS) {
		run->now.address = get(&operands, (unsigned int)length - 1);
	}
	return found;
}

static bool run_standard(const struct unit *unit, struct cursor *program, struct run *run,
			 uint8_t opcode, uint64_t address)
{
	switch (opcode) {
	case COPY:
		return emit(run, address);
	case ADVANCE_PC:
		advance(unit, run, get_uleb(program));
		break;
	case ADVANCE_LINE:
		run->now.line += (uint64_t)get_sleb(program);
		break;
	case SET_FILE:
		run->now.file = get_uleb(program);
		break;
	case CONST_ADD_PC:
		advance(unit, run, (uint64_t)(255 - unit->opcode_base) / unit->line_range);
		break;
	case FIXED_ADVANCE_PC:
		run->now.address += get(program, 2);
		break;
	default:
		for (unsigned int i = 0; i < unit->lengths[opcode]; i++)
			(void)get_uleb(program);
		break;
	}
	return false;
}

/* Run the program of a unit. Return true if it has the address: in run->last. */
static bool run_program(const struct unit *unit, uint64_t address, struct run *run)
{
	struct cursor program = unit->program;
	bool found = false;

	begin_sequence(run);
	while (!found && !program.bad && program.at < program.end) {
		const uint8_t opcode = (uint8_t)get(&program, 1);

		if (opcode >= unit->opcode_base) {
			const unsigned int adjusted = opcode - unit->opcode_base;

			advance(unit, run, adjusted / unit->line_range);
			run->now.line += (uint64_t)(int64_t)(unit->line_base +
							     (int)(adjusted % unit->line_range));
			found = emit(run, address);
		} else if (opcode == EXTENDED) {
			found = run_extended(&program, run, address);
		} else {
			found = run_standard(unit, &program, run, opcode, address);
		}
	}
	return found;
}

/* Versions 2 to 4: directories end with an empty name, and so do files, which count from 1. */
static const char *old_file(const struct unit *unit, uint64_t number)
{
	struct cursor tables = unit->tables;
	const char *name;

	while (get_string(&tables)[0] != '\0')
		;
	for (uint64_t i = 1; !tables.bad; i++) {
		name = get_string(&tables);
		if (name[0] == '\0')
			return NULL;
		if (i == number)
			return name;
		for (int j = 0; j < 3; j++)
			(void)get_uleb(&tables);
	}
	return NULL;
}

/* Read a value of an entry of version 5. Return it if it is a string, or else NULL. */
static const char *read_form(const struct debug_sections *sections, const struct unit *unit,
			     struct cursor *tables, uint64_t form)
{
	switch (form) {
	case 0x08: /* DW_FORM_string */
		return get_string(tables);
	case 0x1f: /* DW_FORM_line_strp */
		return string_at(&sections->line_str, get(tables, unit->offset_bytes));
	case 0x0e: /* DW_FORM_strp */
		return string_at(&sections->str, get(tables, unit->offset_bytes));
	case 0x0b: /* DW_FORM_data1 */
		skip(tables, 1);
		break;
	case 0x05: /* DW_FORM_data2 */
		skip(tables, 2);
		break;
	case 0x06: /* DW_FORM_data4 */
		skip(tables, 4);
		break;
	case 0x07: /* DW_FORM_data8 */
		skip(tables, 8);
		break;
	case 0x1e: /* DW_FORM_data16 */
		skip(tables, 16);
		break;
	case 0x0f: /* DW_FORM_udata */
		(void)get_uleb(tables);
		break;
	case 0x09: /* DW_FORM_block */
		skip(tables, get_uleb(tables));
		break;
	default:
		tables->bad = true;
		break;
	}
	return NULL;
}

/* Read a table of version 5. Return the path of entry `number`, or NULL. */
static const char *read_table(const struct debug_sections *sections, const struct unit *unit,
			      struct cursor *tables, uint64_t number)
{
	const unsigned int formats = (unsigned int)get(tables, 1);
	uint64_t contents[FORMATS_MAX] = {0}, forms[FORMATS_MAX] = {0}, count;
	const char *path = NULL;

	if (formats > FORMATS_MAX)
		tables->bad = true;
	for (unsigned int i = 0; i < formats && !tables->bad; i++) {
		contents[i] = get_uleb(tables);
		forms[i] = get_uleb(tables);
	}
	count = get_uleb(tables);
	for (uint64_t entry = 0; entry < count && formats > 0 && !tables->bad; entry++) {
		for (unsigned int i = 0; i < formats; i++) {
			const char *text = read_form(sections, unit, tables, forms[i]);

			if (entry == number && contents[i] == CONTENT_PATH)
				path = text;
		}
	}
	return tables->bad ? NULL : path;
}

static const char *new_file(const struct debug_sections *sections, const struct unit *unit,
			    uint64_t number)
{
	struct cursor tables = unit->tables;

	(void)read_table(sections, unit, &tables, UINT64_MAX);
	return read_table(sections, unit, &tables, number);
}

static const char *file_of(const struct debug_sections *sections, const struct unit *unit,
			   uint64_t number)
{
	return unit->version >= 5 ? new_file(sections, unit, number) : old_file(unit, number);
}

bool debug_line_find(const struct debug_sections *sections, uint64_t address,
		     struct debug_line *found)
{
	struct cursor section = cursor_of(&sections->line);
	struct unit unit;
	struct run run;

	while (!section.bad && section.at < section.end) {
		if (!read_unit(&section, &unit) || !run_program(&unit, address, &run))
			continue;
		*found = (struct debug_line){.file = file_of(sections, &unit, run.last.file),
					     .line = (uint32_t)run.last.line};
		if (run.outer.line != 0) {
			found->outer_file = file_of(sections, &unit, run.outer.file);
			found->outer_line = (uint32_t)run.outer.line;
		}
		return found->file != NULL;
	}
	return false;
}
