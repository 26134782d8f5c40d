/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of this program by address, from its own file. */
#ifndef TESTROCE_SYMBOLS_H
#define TESTROCE_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

/** Read them, once. Not MT-safe. 0; -ENOENT: they have been stripped off; or another -errno. */
int symbols_read(void);

/** Whether an address is one of this program's own code, and not a library's. After symbols_read;
 * MT-safe. */
bool symbols_is_own(uintptr_t address);

/** The name of the function there, or NULL. After symbols_read; MT-safe. */
const char *symbols_find(uintptr_t address);

#endif
