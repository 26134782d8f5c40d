/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names an address by libdw of elfutils, which is loaded at the first one: only a user who wants
 * reasons (base/reason.h) needs it. Without it there are the names that the dynamic linker knows.
 */
#include "symbol.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#define INLINED_MAX    512  /* bytes of an inline function */
#define LINE_MAX_BYTES 4096 /* of code for one line */

struct Dwfl;
struct Dwfl_Module;
struct Dwfl_Line;

/* The part of elfutils/libdwfl.h that is used here: an application needs no header of it. */
struct dwfl_callbacks {
	void (*find_elf)(void);
	void (*find_debuginfo)(void);
	void (*section_address)(void);
	char **debuginfo_path;
};

static struct libdw {
	struct Dwfl *(*begin)(const struct dwfl_callbacks *callbacks);
	void (*end)(struct Dwfl *dwfl);
	int (*linux_proc_report)(struct Dwfl *dwfl, pid_t pid);
	int (*report_end)(struct Dwfl *dwfl, void *removed, void *arg);
	struct Dwfl_Module *(*addrmodule)(struct Dwfl *dwfl, uint64_t address);
	const char *(*module_addrname)(struct Dwfl_Module *module, uint64_t address);
	struct Dwfl_Line *(*module_getsrc)(struct Dwfl_Module *module, uint64_t address);
	const char *(*lineinfo)(struct Dwfl_Line *line, uint64_t *address, int *number, int *column,
				uint64_t *time, uint64_t *length);
	void *(*module_nextcu)(struct Dwfl_Module *module, void *last, uint64_t *bias);
	int (*getsrclines)(void *cu, size_t *count);
	struct Dwfl_Line *(*onesrcline)(void *cu, size_t index);
	struct dwfl_callbacks callbacks;
	bool is_there;
} libdw;

/* Look for no file with debug information beside the module's own: libdw would ask a server on the
 * network, if the user's environment names one (debuginfod). */
static int find_no_debuginfo(struct Dwfl_Module *module __rte_unused, ...)
{
	return -1;
}

static void load(void)
{
	static const struct {
		const char *name;
		size_t offset;
	} symbols[] = {
		{"dwfl_begin", offsetof(struct libdw, begin)},
		{"dwfl_end", offsetof(struct libdw, end)},
		{"dwfl_linux_proc_report", offsetof(struct libdw, linux_proc_report)},
		{"dwfl_report_end", offsetof(struct libdw, report_end)},
		{"dwfl_addrmodule", offsetof(struct libdw, addrmodule)},
		{"dwfl_module_addrname", offsetof(struct libdw, module_addrname)},
		{"dwfl_module_getsrc", offsetof(struct libdw, module_getsrc)},
		{"dwfl_lineinfo", offsetof(struct libdw, lineinfo)},
		{"dwfl_module_nextcu", offsetof(struct libdw, module_nextcu)},
		{"dwfl_getsrclines", offsetof(struct libdw, getsrclines)},
		{"dwfl_onesrcline", offsetof(struct libdw, onesrcline)},
		{"dwfl_linux_proc_find_elf", offsetof(struct libdw, callbacks.find_elf)},
	};
	void *library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return;
	for (size_t i = 0; i < RTE_DIM(symbols); i++) {
		void *symbol = dlsym(library, symbols[i].name);

		if (!symbol)
			return;
		memcpy((char *)&libdw + symbols[i].offset, &symbol, sizeof(symbol));
	}
	libdw.callbacks.find_debuginfo = (void (*)(void))find_no_debuginfo;
	libdw.is_there = true;
}

static const char *without_folders(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Return the file and line of an address, or NULL. */
static const char *line_of(struct Dwfl_Module *module, uint64_t address, int *number)
{
	struct Dwfl_Line *line = libdw.module_getsrc(module, address);
	const char *file = line ? libdw.lineinfo(line, NULL, number, NULL, NULL, NULL) : NULL;

	return file ? without_folders(file) : NULL;
}

static bool is_of_verbs(const char *file)
{
	return strcmp(file, "verbs.h") == 0 || strcmp(file, "rdma_verbs.h") == 0;
}

/* Find the line by a look at all units: programs that clang has compiled have no table by which
 * libdw finds the unit of an address. Lines of verbs' headers are left out, as in line_of_program.
 */
static const char *search_line(struct Dwfl_Module *module, uint64_t address, int *number)
{
	const char *found = NULL;
	uint64_t best = LINE_MAX_BYTES, bias;
	void *cu = NULL;
	size_t count;

	while ((cu = libdw.module_nextcu(module, cu, &bias)) != NULL) {
		if (libdw.getsrclines(cu, &count) != 0)
			continue;
		for (size_t i = 0; i < count; i++) {
			struct Dwfl_Line *line = libdw.onesrcline(cu, i);
			uint64_t begin;
			int here;
			const char *file =
				line ? libdw.lineinfo(line, &begin, &here, NULL, NULL, NULL) : NULL;

			if (!file || begin > address || address - begin >= best ||
			    is_of_verbs(without_folders(file)))
				continue;
			best = address - begin;
			found = without_folders(file);
			*number = here;
		}
	}
	return found;
}

/* Do what line_of does, but for an inline function of verbs' headers return the line before it:
 * where the program calls it. */
static const char *line_of_program(struct Dwfl_Module *module, uint64_t address, int *number)
{
	const char *file = line_of(module, address, number);

	if (!file)
		return search_line(module, address, number);
	for (uint64_t back = 1; back <= INLINED_MAX && is_of_verbs(file); back++) {
		int before;
		const char *outer = line_of(module, address - back, &before);

		if (outer && !is_of_verbs(outer)) {
			*number = before;
			return outer;
		}
	}
	return file;
}

/* Write "function() file.c:12". Return false if the function is not known. */
static bool write_found(struct Dwfl_Module *module, uint64_t address, char *text, size_t size)
{
	const char *function = libdw.module_addrname(module, address), *file;
	int length, number;

	if (!function)
		return false;
	/* The compiler adds ".part.0" and others. */
	length = (int)strcspn(function, ".");
	file = line_of_program(module, address, &number);
	if (file)
		snprintf(text, size, "%.*s() %s:%d", length, function, file, number);
	else
		snprintf(text, size, "%.*s()", length, function);
	return true;
}

static bool write_by_libdw(uint64_t address, char *text, size_t size)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct Dwfl_Module *module;
	struct Dwfl *dwfl = NULL;
	bool found = false;

	pthread_once(&once, load);
	if (!libdw.is_there)
		return false;
	dwfl = libdw.begin(&libdw.callbacks);
	if (dwfl && libdw.linux_proc_report(dwfl, getpid()) == 0 &&
	    libdw.report_end(dwfl, NULL, NULL) == 0) {
		module = libdw.addrmodule(dwfl, address);
		found = module && write_found(module, address, text, size);
	}
	if (dwfl)
		libdw.end(dwfl);
	return found;
}

void symbol_write(uintptr_t address, char *text, size_t size)
{
	struct link_map *module = NULL;
	Dl_info info;

	if (dladdr1((const void *)address, &info, (void **)&module, RTLD_DL_LINKMAP) == 0 ||
	    !module)
		snprintf(text, size, "0x%lx", (unsigned long)address);
	else if (write_by_libdw(address, text, size))
		return;
	else if (info.dli_sname)
		snprintf(text, size, "%s()", info.dli_sname);
	else
		snprintf(text, size, "%s+0x%lx", without_folders(info.dli_fname),
			 (unsigned long)(address - module->l_addr));
}
