/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the symbols and lines of the program and its libraries from their files. */
#include "symbol.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "debug_line.h"

static const char *without_folders(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Map a file for reading. */
static bool map(const char *path, struct bytes *file)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat stat;
	void *at = MAP_FAILED;

	if (fd < 0)
		return false;
	if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_size > 0)
		at = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return false;
	*file = (struct bytes){.at = at, .size = (size_t)stat.st_size};
	return true;
}

static bool is_inside(const struct bytes *file, uint64_t offset, uint64_t size)
{
	return offset <= file->size && size <= file->size - offset;
}

/* Return the content of a section; nothing if it is compressed or lies outside the file. */
static struct bytes content(const struct bytes *file, const Elf64_Shdr *section)
{
	if (section->sh_type == SHT_NOBITS || (section->sh_flags & SHF_COMPRESSED) ||
	    !is_inside(file, section->sh_offset, section->sh_size))
		return (struct bytes){0};
	return (struct bytes){.at = file->at + section->sh_offset, .size = section->sh_size};
}

/* The parts of an object file that are needed. */
struct object {
	struct bytes symbols, names;
	struct debug_sections debug;
};

static bool is_named(const struct bytes *names, uint32_t offset, const char *name)
{
	const size_t size = strlen(name) + 1;

	return offset <= names->size && size <= names->size - offset &&
	       memcmp(names->at + offset, name, size) == 0;
}

static bool read_object(const struct bytes *file, struct object *object)
{
	const Elf64_Ehdr *elf = (const void *)file->at;
	const Elf64_Shdr *sections;
	struct bytes names;

	*object = (struct object){0};
	if (file->size < sizeof(*elf) || memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 ||
	    elf->e_ident[EI_CLASS] != ELFCLASS64 || elf->e_shentsize != sizeof(*sections) ||
	    elf->e_shoff % _Alignof(Elf64_Shdr) != 0 || elf->e_shstrndx >= elf->e_shnum ||
	    !is_inside(file, elf->e_shoff, (uint64_t)elf->e_shnum * sizeof(*sections)))
		return false;
	sections = (const void *)(file->at + elf->e_shoff);
	names = content(file, &sections[elf->e_shstrndx]);
	for (unsigned int i = 0; i < elf->e_shnum; i++) {
		const Elf64_Shdr *section = &sections[i];

		if (section->sh_type == SHT_SYMTAB && section->sh_link < elf->e_shnum) {
			object->symbols = content(file, section);
			object->names = content(file, &sections[section->sh_link]);
		} else if (is_named(&names, section->sh_name, ".debug_line")) {
			object->debug.line = content(file, section);
		} else if (is_named(&names, section->sh_name, ".debug_line_str")) {
			object->debug.line_str = content(file, section);
		} else if (is_named(&names, section->sh_name, ".debug_str")) {
			object->debug.str = content(file, section);
		}
	}
	return true;
}

/* Return the name of the function at an address of the file, or NULL. */
static const char *find_function(const struct object *object, uint64_t address)
{
	Elf64_Sym symbol;

	for (size_t at = 0; at + sizeof(symbol) <= object->symbols.size; at += sizeof(symbol)) {
		memcpy(&symbol, object->symbols.at + at, sizeof(symbol));
		if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value <= address &&
		    address - symbol.st_value < symbol.st_size &&
		    symbol.st_name < object->names.size &&
		    memchr(object->names.at + symbol.st_name, 0,
			   object->names.size - symbol.st_name))
			return (const char *)object->names.at + symbol.st_name;
	}
	return NULL;
}

/* Let the line be one of the program's, if it is of an inline function of verbs' headers. */
static void leave_headers(struct debug_line *line)
{
	const char *name = without_folders(line->file);

	if (!line->outer_file ||
	    (strcmp(name, "verbs.h") != 0 && strcmp(name, "rdma_verbs.h") != 0))
		return;
	line->file = line->outer_file;
	line->line = line->outer_line;
}

/* Write what the file says. Return false if it does not know the function. */
static bool write_found(const struct bytes *file, uint64_t address, const char *exported,
			char *text, size_t size)
{
	struct debug_line line;
	struct object object;
	const char *function;
	int length;

	if (!read_object(file, &object))
		return false;
	function = find_function(&object, address);
	if (!function)
		function = exported;
	if (!function)
		return false;
	/* The compiler adds ".part.0" and others. */
	length = (int)strcspn(function, ".");
	if (debug_line_find(&object.debug, address, &line)) {
		leave_headers(&line);
		snprintf(text, size, "%.*s() %s:%u", length, function, without_folders(line.file),
			 line.line);
	} else {
		snprintf(text, size, "%.*s()", length, function);
	}
	return true;
}

void symbol_write(uintptr_t address, char *text, size_t size)
{
	struct link_map *module = NULL;
	struct bytes file;
	Dl_info info;
	bool is_program, found = false;

	if (dladdr1((const void *)address, &info, (void **)&module, RTLD_DL_LINKMAP) == 0 ||
	    !module) {
		snprintf(text, size, "0x%lx", (unsigned long)address);
		return;
	}
	is_program = module->l_name[0] == '\0';
	if (map(is_program ? "/proc/self/exe" : module->l_name, &file)) {
		found = write_found(&file, address - module->l_addr, info.dli_sname, text, size);
		munmap((void *)(uintptr_t)file.at, file.size);
	}
	if (!found)
		snprintf(text, size, "%s+0x%lx", without_folders(info.dli_fname),
			 (unsigned long)(address - module->l_addr));
}
