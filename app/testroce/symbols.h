/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of this program by address, from its own file. */
#ifndef TESTROCE_SYMBOLS_H
#define TESTROCE_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

struct symbol {
	uintptr_t begin, end;
	const char *source; /* the name of the file that the function is local to, or "" */
	const char *name;
};

/** Read the symbols, once. Not MT-safe. Returns 0; -ENOENT: the program is stripped; or another
 * -errno. */
int symbols_read(void);

/** Return true for an address in this program's own code, false for a library's. Call it after
 * symbols_read. MT-safe. */
bool symbols_is_own(uintptr_t address);

/** Return the function at an address, or NULL. Call it after symbols_read. MT-safe. */
const struct symbol *symbols_find(uintptr_t address);

#endif
