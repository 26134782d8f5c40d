/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of this program by address, from its own file. */
#include "symbols.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
	struct symbol *list; /* sorted by address; the names are in the file, which stays mapped */
	size_t count;
	uintptr_t begin, end; /* of the code */
} symbols;

/* Get the load address of the first object, which is the program itself. */
static int find_base(struct dl_phdr_info *info, size_t size, void *base)
{
	(void)size;
	*(uintptr_t *)base = info->dlpi_addr;
	return 1;
}

static int compare(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Strip folders: the symbol may hold the whole path of the source. */
static const char *name_without_folders(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_inside(size_t file_bytes, uint64_t offset, uint64_t bytes)
{
	return offset <= file_bytes && bytes <= file_bytes - offset;
}

static int symbols_take(const Elf64_Sym *from, size_t count, const char *names, size_t names_bytes,
			uintptr_t base)
{
	const char *source = "";

	symbols.list = calloc(count + 1, sizeof(symbols.list[0]));
	if (!symbols.list)
		return -ENOMEM;
	symbols.begin = UINTPTR_MAX;
	for (size_t i = 0; i < count; i++) {
		struct symbol *symbol = &symbols.list[symbols.count];

		if (from[i].st_name >= names_bytes)
			continue;
		/* The local symbols of a file follow its name. */
		if (ELF64_ST_TYPE(from[i].st_info) == STT_FILE)
			source = name_without_folders(names + from[i].st_name);
		if (ELF64_ST_TYPE(from[i].st_info) != STT_FUNC || from[i].st_value == 0)
			continue;
		symbol->begin = base + from[i].st_value;
		symbol->end = symbol->begin + from[i].st_size;
		symbol->name = names + from[i].st_name;
		symbol->source = ELF64_ST_BIND(from[i].st_info) == STB_LOCAL ? source : "";
		symbols.begin = symbol->begin < symbols.begin ? symbol->begin : symbols.begin;
		symbols.end = symbol->end > symbols.end ? symbol->end : symbols.end;
		symbols.count++;
	}
	qsort(symbols.list, symbols.count, sizeof(symbols.list[0]), compare);
	return symbols.count > 0 ? 0 : -ENOENT;
}

static int symbols_parse(const uint8_t *file, size_t bytes, uintptr_t base)
{
	const Elf64_Ehdr *elf = (const void *)file;
	const Elf64_Shdr *sections, *table, *names;

	if (bytes < sizeof(*elf) || memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 ||
	    elf->e_ident[EI_CLASS] != ELFCLASS64 ||
	    !is_inside(bytes, elf->e_shoff, (uint64_t)elf->e_shnum * sizeof(*sections)))
		return -ENOEXEC;
	sections = (const void *)(file + elf->e_shoff);
	for (unsigned int i = 0; i < elf->e_shnum; i++) {
		table = &sections[i];
		if (table->sh_type != SHT_SYMTAB || table->sh_link >= elf->e_shnum)
			continue;
		names = &sections[table->sh_link];
		if (!is_inside(bytes, table->sh_offset, table->sh_size) ||
		    !is_inside(bytes, names->sh_offset, names->sh_size))
			return -ENOEXEC;
		return symbols_take((const void *)(file + table->sh_offset),
				    table->sh_size / sizeof(Elf64_Sym),
				    (const char *)file + names->sh_offset, names->sh_size, base);
	}
	return -ENOENT;
}

int symbols_read(void)
{
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uintptr_t base = 0;
	struct stat stat;
	void *file;

	if (symbols.count > 0 || fd < 0 || fstat(fd, &stat) != 0) {
		if (fd >= 0)
			close(fd);
		return symbols.count > 0 ? 0 : -EIO;
	}
	file = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (file == MAP_FAILED)
		return -errno;
	dl_iterate_phdr(find_base, &base);
	return symbols_parse(file, (size_t)stat.st_size, base);
}

bool symbols_is_own(uintptr_t address)
{
	return address - symbols.begin < symbols.end - symbols.begin;
}

const struct symbol *symbols_find(uintptr_t address)
{
	size_t low = 0, high = symbols.count;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (symbols.list[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && address < symbols.list[low - 1].end ? &symbols.list[low - 1] : NULL;
}
