/* SPDX-License-Identifier: BSD-3-Clause */
/* The function, and the line of the source, of an address in the code of this process. */
#ifndef BASE_SYMBOL_H
#define BASE_SYMBOL_H

#include <stddef.h>
#include <stdint.h>

/** Write "function() file.c:12", as much of it as is known, or "module+0x12". By one
 * thread at a time: libdw has state. */
void symbol_write(uintptr_t address, char *text, size_t size);

#endif
