/* SPDX-License-Identifier: BSD-3-Clause */
/* The line of the source that an instruction was made from, out of the sections .debug_line,
 * .debug_line_str and .debug_str (DWARF 5, chapter 6.2; versions 2 to 5). */
#ifndef BASE_DEBUG_LINE_H
#define BASE_DEBUG_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
	const uint8_t *at;
	size_t size;
};

struct debug_sections {
	struct bytes line, line_str, str;
};

struct debug_line {
	const char *file; /* in one of the sections */
	uint32_t line;
	/* The line before it that is of another file: where the code of an inline function of a
	 * header was put. NULL: none. */
	const char *outer_file;
	uint32_t outer_line;
};

/** Find the line of an address, as the file of the program has it. The sections may have any
 * content. MT-safe. False: not found. */
bool debug_line_find(const struct debug_sections *sections, uint64_t address,
		     struct debug_line *found);

#endif
