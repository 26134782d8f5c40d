/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/origin.c, symbol.c and debug_line.c: on this program's own file. */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/origin.h"
#include "debug_line.h"
#include "symbol.h"
#include "test.h"

#define FLIPS 3000

/* Not inline, and not the last call of its caller: it stays on the stack. */
static __attribute__((noinline)) int create(const void *object)
{
	origin_keep(object);
	return 1;
}

static __attribute__((noinline)) int call_create(const void *object)
{
	return create(object) + 1;
}

TEST(origin_write__names_functions_and_lines)
{
	static const char caller[] = " create() test_origin.c:";
	char text[ORIGIN_TEXT_MAX];
	const char *at;
	int object = 0;

	assert_int_equal(call_create(&object), 2);
	origin_write(&object, "it", text);
	assert_memory_equal(text, "; it was created by: ", strlen("; it was created by: "));
	/* In programs the library's own functions are left out; here they are in one file. */
	at = strstr(text, caller);
	if (!at)
		fail_msg("'%s'", text);
	assert_in_range(strtoul(at + strlen(caller), NULL, 10), 20, 40);
	origin_drop(&object);
	assert_string_equal(origin_write(&object, "it", text), "");
}

TEST(origin_keep__the_newest_object_at_an_address_counts)
{
	char text[ORIGIN_TEXT_MAX];
	int object = 0;

	call_create(&object);
	origin_keep(&object);
	origin_write(&object, "it", text);
	assert_null(strstr(text, "call_create"));
	origin_drop(&object);
}

TEST(origin_note__keeps_nothing_while_nobody_wants_reasons)
{
	char text[ORIGIN_TEXT_MAX];
	int object = 0;

	origin_note(&object);
	assert_string_equal(origin_write(&object, "it", text), "");
}

TEST(symbol_write__falls_back_to_the_module_or_the_number)
{
	char text[128];

	symbol_write(1, text, sizeof(text));
	assert_string_equal(text, "0x1");
	/* The C library has no symbols of its static functions, but the exported ones. */
	symbol_write((uintptr_t)strtoul + 1, text, sizeof(text));
	if (!strstr(text, "libc") && !strstr(text, "strtoul"))
		fail_msg("'%s'", text);
}

/* Return the content of a section of this program's file. */
static struct bytes section(const uint8_t *file, const char *name)
{
	const Elf64_Ehdr *elf = (const void *)file;
	const Elf64_Shdr *sections = (const void *)(file + elf->e_shoff);
	const char *names = (const char *)file + sections[elf->e_shstrndx].sh_offset;

	for (unsigned int i = 0; i < elf->e_shnum; i++) {
		if (strcmp(names + sections[i].sh_name, name) == 0)
			return (struct bytes){.at = file + sections[i].sh_offset,
					      .size = sections[i].sh_size};
	}
	return (struct bytes){0};
}

/* Whatever a file has there, nothing outside the sections is read (with ASan), and the search ends.
 */
TEST(debug_line_find__of_any_content)
{
	const int fd = open("/proc/self/exe", O_RDONLY);
	struct debug_sections sections;
	struct debug_line found;
	struct stat stat;
	uint8_t *file, *line;
	size_t size;

	assert_true(fd >= 0 && fstat(fd, &stat) == 0);
	file = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(file, MAP_FAILED);
	sections.line = section(file, ".debug_line");
	sections.line_str = section(file, ".debug_line_str");
	sections.str = section(file, ".debug_str");
	size = sections.line.size < 4096 ? sections.line.size : 4096;
	srand(1);
	for (int i = 0; i < FLIPS; i++) {
		line = malloc(size + 1);
		assert_non_null(line);
		memcpy(line, sections.line.at, size);
		for (int j = 0; j < 4 && size > 0; j++)
			line[(size_t)rand() % size] = (uint8_t)rand();
		sections.line = (struct bytes){.at = line, .size = (size_t)rand() % (size + 1)};
		if (debug_line_find(&sections, (uint64_t)rand(), &found))
			assert_non_null(found.file);
		free(line);
		sections.line = section(file, ".debug_line");
	}
	munmap(file, (size_t)stat.st_size);
	close(fd);
}
